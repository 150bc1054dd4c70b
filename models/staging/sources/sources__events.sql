{{ config(materialized = 'incremental', incremental_strategy = 'debezium_merge', file_format = 'iceberg', partition_by = 'source_table') }}

{{ debezium_events(
    events = source('bronze', 'sources'),
    topics = ['flink'],
    connector = 'generic',
) }}
