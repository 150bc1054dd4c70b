{#- PostgreSQL: docs/connectors/postgresql.md. -#}
{% macro postgresql_connector() -%}
    {{ return(envelope_capabilities({
        'source': ['connector', 'db', 'schema', 'table', 'snapshot', 'ts_ms', 'lsn', 'sequence', 'txId'],
        'not_from': ['mariadb', 'mysql'],
        'position': _postgresql_position(),
        'passes_keys_on': '_event.payload.source.txId',
        'table': ['_event.payload.source.schema', '_event.payload.source.table'],
        'left_out': 'placeholder',
        'splits_key_changes': true,
    })) }}
{%- endmacro %}


{#-
    Commit order: the end of the transaction committed before, then the position of the change.

    `lsn` alone is not the order, not even of one key: a transaction that waits on a unique index has written
    its record before the one that it waits for. Events without `sequence` (before Debezium 1.5) keep that race.
    A negative position is a rewritten snapshot's "unknown" and sorts before everything.
-#}
{% macro _postgresql_position() -%}
    {#- `["<end of the transaction before>","<position>"]`, the first null before the first commit. -#}
    {%- set sequence = "translate(_event.payload.source.sequence, '[]\" ', '')" -%}
    {%- set commit_lsn = "try_cast(substring_index(" ~ sequence ~ ", ',', 1) as decimal(20, 0))" -%}
    {%- set event_lsn = "if(contains(" ~ sequence ~ ", ','), try_cast(substring_index(" ~ sequence ~ ", ',', -1) as decimal(20, 0)), null)" -%}
    {%- set lsn -%}
        try_cast(_event.payload.source.lsn as decimal(20, 0))
    {%- endset -%}
    {%- set commit_part = 'coalesce(' ~ commit_lsn ~ ', ' ~ lsn ~ ', ' ~ event_lsn ~ ')' -%}
    {%- set event_part = 'coalesce(' ~ lsn ~ ', ' ~ event_lsn ~ ')' -%}
    concat(
        {{ sortable_number('if(' ~ commit_part ~ ' < 0, 0, ' ~ commit_part ~ ')', 20) }},
        {{ sortable_number('if(' ~ event_part ~ ' < 0, 0, ' ~ event_part ~ ')', 20) }}
    )
{%- endmacro %}
