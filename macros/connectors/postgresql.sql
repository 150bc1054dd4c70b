{#- PostgreSQL: docs/connectors/postgresql.md. -#}
{% macro postgresql_source_fields() -%}
    {{ return(['connector', 'db', 'schema', 'table', 'snapshot', 'ts_ms', 'lsn', 'sequence']) }}
{%- endmacro %}


{#-
    Commit order: the end of the transaction committed before, then the position of the change.

    `lsn` alone is not the order, not even of one key: a transaction that waits on a unique index has written
    its record before the one that it waits for. Events without `sequence` (before Debezium 1.5) keep that race.
    A negative position is a rewritten snapshot's "unknown" and sorts before everything.
-#}
{% macro postgresql_position(source) -%}
    {%- set commit_lsn -%}
        try_cast(get(from_json({{ source }}.sequence, 'array<string>'), 0) as decimal(20, 0))
    {%- endset -%}
    {%- set event_lsn -%}
        try_cast(get(from_json({{ source }}.sequence, 'array<string>'), 1) as decimal(20, 0))
    {%- endset -%}
    {%- set lsn -%}
        try_cast({{ source }}.lsn as decimal(20, 0))
    {%- endset -%}
    {%- set commit_part = 'coalesce(' ~ commit_lsn ~ ', ' ~ lsn ~ ', ' ~ event_lsn ~ ')' -%}
    {%- set event_part = 'coalesce(' ~ lsn ~ ', ' ~ event_lsn ~ ')' -%}
    concat(
        {{ sortable_number('if(' ~ commit_part ~ ' < 0, 0, ' ~ commit_part ~ ')', 20) }},
        {{ sortable_number('if(' ~ event_part ~ ' < 0, 0, ' ~ event_part ~ ')', 20) }}
    )
{%- endmacro %}


{% macro postgresql_table_fields() -%}
    {{ return(['schema', 'table']) }}
{%- endmacro %}


{% macro postgresql_omits_values() -%}
    {{ return(true) }}
{%- endmacro %}
