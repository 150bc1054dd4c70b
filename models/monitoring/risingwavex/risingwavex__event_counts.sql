{{ config(materialized = 'incremental', incremental_strategy = 'debezium_merge', file_format = 'iceberg') }}

{{ debezium_event_counts(
    events = source('bronze', 'risingwavex'),
    changes = {
        'inventory.customers': ref('stg_risingwavex__customers'),
    },
) }}
