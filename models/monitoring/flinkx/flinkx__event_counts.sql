{{ config(materialized = 'incremental', incremental_strategy = 'debezium_merge', file_format = 'iceberg') }}

{{ debezium_event_counts(
    events = source('bronze', 'flinkx'),
    changes = {
        'inventory.products': ref('stg_flinkx__products'),
    },
) }}
