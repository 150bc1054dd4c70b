{{ debezium_lag(
    events = source('bronze', 'oracle'),
    tables = {
        'ERPPDB.LOGISTICS.SHIPMENTS': [ref('stg_oracle__shipments'), ref('oracle__shipments')],
    },
) }}
