{#-
    CockroachDB: changefeeds with `envelope=enriched`, and Debezium's connector, which reads these.
    docs/connectors/cockroachdb.md.
-#}
{% macro cockroachdb_connector() -%}
    {{ return(envelope_capabilities({
        'source': ['origin', 'database_name', 'schema_name', 'table_name', 'ts_ns', 'mvcc_timestamp', 'ts_hlc'],
        'fields': ['transaction: struct<id: string>', 'ts_ns: string', 'resolved: string'],
        'types_in_schema': false,
        'position': _cockroachdb_position(),
        'table': [
            'coalesce(_event.payload.source.database_name, _event.payload.source.db)',
            'coalesce(_event.payload.source.schema_name, _event.payload.source.schema)',
            'coalesce(_event.payload.source.table_name, _event.payload.source.table)',
        ],
        'changed_at': _cockroachdb_changed_at(),
        'key': 'key',
        'kind': 'when _op is null and ' ~ _cockroachdb_is_resolved('_event.payload.resolved') ~ " then 'heartbeat'",
    })) }}
{%- endmacro %}

{#- A time up to which all changes have been sent. -#}
{% macro _cockroachdb_is_resolved(resolved) -%}
    {{ return("coalesce(" ~ resolved ~ " rlike '^[0-9]+[.][0-9]+$', false)") }}
{%- endmacro %}

{#-
    The time of the commit, nanoseconds and a logical counter: all versions of a row have different ones. The topic's
    order is all there is where the changefeed was not asked for it.
-#}
{% macro _cockroachdb_position() -%}
    {%- set time = 'coalesce(_event.payload.source.mvcc_timestamp, _event.payload.source.ts_hlc)' -%}
    if({{ time }} is null, '',
        translate({{ let('try_cast(' ~ time ~ ' as decimal(30, 10))', 'n', sortable_number('n', 31)) }}, '.', ''))
{%- endmacro %}

{% macro _cockroachdb_changed_at() -%}
    coalesce(
        cast(try_cast(coalesce(_event.payload.source.ts_ns, _event.payload.ts_ns) as bigint) div 1000000 as string),
        _event.payload.source.ts_ms,
        _event.payload.ts_ms
    )
{%- endmacro %}
