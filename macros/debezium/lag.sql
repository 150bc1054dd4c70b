{#-
    How late each table is: when the newest change that the source committed was read by the connector, written to
    Kafka, landed and merged, and the seconds between. A view of small columns of the change logs and of bronze, and of
    what the tables' snapshots say.

    Only `connector_at` and the delays beside it read the values of bronze: a query without them costs a fraction.

    - events: relation, the records of the system,
    - tables: name of the source's table → its staging model and its silver model.
-#}
{% macro debezium_lag(events, tables) -%}
select
    source_table,
    changed_at,
    connector_at,
    kafka_at,
    landed_at,
    merged_at,
    {{ _seconds_between('changed_at', 'connector_at') }} as source_to_connector,
    {{ _seconds_between('connector_at', 'kafka_at') }} as connector_to_kafka,
    {{ _seconds_between('kafka_at', 'landed_at') }} as kafka_to_landing,
    {{ _seconds_between('landed_at', 'merged_at') }} as landing_to_merge,
    {{ _seconds_between('changed_at', 'merged_at') }} as lag,
    batch
from (
    select
        source_table,
        newest.changed_at,
        timestamp_millis(try_cast(coalesce(event.payload.ts_ms, event.ts_ms) as bigint)) as connector_at,
        kafka_at,
        newest.landed_at,
        {#- The first of them is the merge if there is an earlier commit, too; else that one may have expired. #}
        if(exists(merges, merge -> merge.is_first or merge.up_to < newest.append), array_min(transform(
            filter(merges, merge -> merge.up_to >= newest.append and merge.committed_at >= newest.appended_at),
            merge -> merge.committed_at
        )), null) as merged_at,
        newest.batch
    from (
        {#- Above the join, where only the newest records are left. #}
        select *, from_json(value, 'payload struct<ts_ms: string>, ts_ms string') as event
        from ({{ _newest_changes(tables) }}) as changes
        left join ({{ _merges(tables) }}) as commits using (source_table)
        left join (
            select
                batch,
                if({{ _has_coordinates() }}, xxhash64(topic, partition), xxhash64(file)) as place_hash,
                if({{ _has_coordinates() }}, offset, line) as place_number,
                timestamp as kafka_at,
                value
            from {{ events }}
        ) as records
            on
                changes.newest.batch = records.batch
                and changes.newest.place_hash = records.place_hash
                and changes.newest.place_number = records.place_number
    ) as placed
) as times
{%- endmacro %}

{#-
    The newest change of each table by the time of its commit; of those of one time the last record of the first batch
    that has one.
-#}
{% macro _newest_changes(tables) -%}
    select
        cast(null as string) as source_table,
        cast(null as struct<
            changed_at: timestamp, order_of_batch: bigint, place_number: bigint, place_hash: bigint, batch: bigint,
            landed_at: timestamp, append: bigint, appended_at: timestamp
        >) as newest
    where false
    {%- for table, models in tables.items() %}
    union all
    select
        {{ literal(table) }} as source_table,
        max(struct(
            _cdc_changed_at as changed_at, -_cdc_batch as order_of_batch, _cdc_place_number as place_number,
            _cdc_place_hash as place_hash, _cdc_batch as batch, _cdc_landed_at as landed_at, _cdc_append as append,
            _cdc_appended_at as appended_at
        )) as newest
    from {{ models[0] }}
    where _cdc_kind in ('change', 'truncate')
    {%- endfor %}
{%- endmacro %}

{#-
    The commits of each table, with the append of its change log that it had merged then. Commits of other tools have
    none.
-#}
{% macro _merges(tables) -%}
    select cast(null as string) as source_table,
        cast(null as array<struct<committed_at: timestamp, is_first: boolean, up_to: bigint>>) as merges
    where false
    {%- set logs = _logs_of_views() -%}
    {%- for table, models in tables.items() %}
    {%- set merged, place = [logs[models[1].identifier], 2] if models[1].identifier in logs else [models[1], 1] %}
    union all
    select
        {{ literal(table) }} as source_table,
        collect_list(named_struct(
            'committed_at', committed_at, 'is_first', parent_id is null,
            'up_to', try_cast(split_part(summary['{{ batch_property(merged) }}'], ' ', {{ place }}) as bigint)
        )) as merges
    from {{ merged }}.snapshots
    {%- endfor %}
{%- endmacro %}

{% macro _seconds_between(first, last) -%}
    cast((unix_millis({{ last }}) - unix_millis({{ first }})) / 1000 as decimal(18, 3))
{%- endmacro %}
