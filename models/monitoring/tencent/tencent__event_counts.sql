{{ config(materialized = 'incremental', incremental_strategy = 'debezium_merge', file_format = 'iceberg') }}

{{ debezium_event_counts(
    events = source('bronze', 'tencent'),
    tables = {
        'depot.drivers': [ref('stg_tencent__drivers'), ref('tencent__drivers')],
        'public.shipments': [ref('stg_tencent__shipments'), ref('tencent__shipments')],
        'public.slots': [ref('stg_tencent__slots'), ref('tencent__slots')],
        'depot.vehicles': [ref('stg_tencent__vehicles'), ref('tencent__vehicles')],
    },
) }}
