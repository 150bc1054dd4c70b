{#- YashanDB: docs/connectors/yashandb.md. -#}
{% macro yashandb_connector() -%}
    {{ return(envelope_capabilities({
        'source': [
            'connector', 'db', 'schema', 'table', 'snapshot', 'ts_ms', 'txId', 'scn', 'position_scn', 'group_lsn', 'group_offset',
            'batch_row_id',
        ],
        'position': _yashandb_position(),
        'table': ['_event.payload.source.schema', '_event.payload.source.table'],
        'transaction_id': 'coalesce(_event.payload.transaction.id, _event.payload.source.txId)',
        'left_out': 'placeholder',
    })) }}
{%- endmacro %}


{#- Commit, log record, place in it, row of a batch: all numbers. A snapshot row may have its commit only. -#}
{% macro _yashandb_position() -%}
    {%- set source = '_event.payload.source' -%}
    {%- set commit -%}
        try_cast(coalesce({{ source }}.position_scn, if({{ is_snapshot_row() }}, coalesce({{ source }}.scn, '0'), null)) as decimal(20, 0))
    {%- endset -%}
    concat(
        {{ let(commit, 'n', sortable_number('n', 20)) }}
        {%- for member in ('group_lsn', 'group_offset', 'batch_row_id') -%}
        , {{ sortable_number('coalesce(try_cast(' ~ source ~ '.' ~ member ~ ' as decimal(20, 0)), 0)', 20) }}
        {%- endfor -%}
    )
{%- endmacro %}
