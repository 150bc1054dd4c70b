{#-
    The transactions that the connector reports (`provide.transaction.metadata`): how many events each has, and how many
    have landed.
-#}
{% macro debezium_transactions(events) -%}
with markers as (

    select
        batch,
        coalesce(marker.payload.id, marker.id) as id,
        coalesce(marker.payload.status, marker.status) as status,
        try_cast(coalesce(marker.payload.event_count, marker.event_count) as bigint) as event_count,
        try_cast(coalesce(marker.payload.ts_ms, marker.ts_ms) as bigint) as ts_ms
    from (
        select
            batch,
            from_json(value, 'payload struct<id: string, status: string, event_count: string, ts_ms: string>,
                id string, status string, event_count string, ts_ms string') as marker
        from {{ events }}
        where value like '%"BEGIN"%' or value like '%"END"%'
    ) as records

),

transactions as (

    select
        {{ _transaction('id') }} as transaction_id,
        bool_or(status = 'BEGIN') as has_begun,
        bool_or(status = 'END') as has_ended,
        max(event_count) filter (where status = 'END') as expected_events,
        timestamp_millis(max(ts_ms) filter (where status = 'END')) as ended_at
    from markers
    where id is not null and status in ('BEGIN', 'END')
    group by {{ _transaction('id') }}

),

{{ _landed_of_transactions(events) }}

select
    transactions.*,
    coalesce(landed.landed_events, 0) as landed_events
from transactions left join landed on transactions.transaction_id = landed.transaction_id

{%- endmacro %}

{#-
    PostgreSQL writes <transaction>:<position>, and BEGIN, END and the events of a transaction differ in the position.
-#}
{% macro _transaction(id) -%}
    if({{ id }} rlike '^[0-9]+:[0-9]+$', substring_index({{ id }}, ':', 1), {{ id }})
{%- endmacro %}

{#-
    How many events of each transaction have landed.

    An event that is delivered again has other times, and another number in a transaction that was cut. Equal rows of a
    table without a key may differ in the number only.
-#}
{% macro _landed_of_transactions(events) -%}
    {%- set members -%}
        transaction struct<id: string, total_order: string>, op string, before string, after string,
            updateDescription string,
        source map<string, string>
    {%- endset -%}
landed as (

    select
        {{ _transaction('transaction.id') }} as transaction_id,
        greatest(count(distinct transaction.total_order), count(distinct struct(
            topic, key, op, before, after, updateDescription,
            to_json(map_filter(source, (name, text) -> not (
                name in ('version', 'ts_ms', 'ts_us', 'ts_ns', 'xmin', 'read_at_timestamp', 'low_watermark')
                or name = 'sequence' and startswith(text, '[')
            )))
        ))) as landed_events
    from (
        select topic, key, inline(array(if(event.payload is null, struct(event.* except (payload)), event.payload)))
        from (
            select topic, key, from_json(value, {{ literal('payload struct<' ~ members ~ '>, ' ~ members) }}) as event
            from {{ events }}
            where value like '%"total_order":%'
        ) as records
    ) as numbered
    where transaction.id is not null
    group by {{ _transaction('transaction.id') }}

)
{%- endmacro %}
