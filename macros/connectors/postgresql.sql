{#- PostgreSQL: docs/connectors/postgresql.md. -#}
{% macro postgresql_connector() -%}
    {{ return(envelope_capabilities({
        'source': ['lsn', 'sequence', 'txId'],
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

    `lsn` alone is not the order, not even of one key: a transaction that waits on a unique index has written its record
    before the one that it waits for. Events without `sequence` (before Debezium 1.5) keep that race. A negative
    position is a rewritten snapshot's "unknown" and sorts before everything.

    A row of an incremental snapshot has what was committed up to its commit, and nothing of the transaction after it,
    which may have written, and lie, before the change whose position the row has (`read.only=true`). So it sorts before
    all of that transaction.
-#}
{% macro _postgresql_position() -%}
    {#-
        `["<end of the transaction before>","<position>"]`, the first null before the first commit. Cut by what looks
        for no pattern.
    -#}
    {%- set both = "split_part(translate(_event.payload.source.sequence, '[]\" ', ''), ',', %d)" -%}
    {%- set commit_lsn, event_lsn = 'try_cast(' ~ both % 1 ~ ' as bigint)', 'try_cast(' ~ both % 2 ~ ' as bigint)' -%}
    {%- set lsn = 'try_cast(_event.payload.source.lsn as bigint)' -%}
    {#- Their type has no wider numbers. -#}
    concat(
        lpad(cast(coalesce({{ commit_lsn }}, {{ lsn }}, {{ event_lsn }}) as string), 20, '0'),
        lpad(
            if(
                lower(_event.payload.source.snapshot) = 'incremental' and {{ commit_lsn }} is not null,
                '0', cast(coalesce({{ lsn }}, {{ event_lsn }}) as string)
            ),
            20, '0'
        )
    )
{%- endmacro %}
