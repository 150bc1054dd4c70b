{{ config(materialized = 'incremental', incremental_strategy = 'debezium_merge', file_format = 'iceberg') }}

{{ debezium_event_counts(
    events = source('bronze', 'sqlserver'),
    tables = {
        'sales.dbo.subscriptions': [ref('stg_sqlserver__subscriptions'), ref('sqlserver__subscriptions')],
    },
) }}
