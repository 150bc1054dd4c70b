{{ debezium_lag(
    events = source('bronze', 'tencent'),
    tables = {
        'public.shipments': [ref('stg_tencent__shipments'), ref('tencent__shipments')],
        'depot.vehicles': [ref('stg_tencent__vehicles'), ref('tencent__vehicles')],
    },
) }}
