{#- YashanDB: docs/connectors/yashandb.md. Its types and its way of leaving LOBs out are Oracle's. -#}
{% macro yashandb_connector() -%}
    {{ return(envelope_capabilities({
        'source': ['scn', 'txId', 'position_scn', 'group_lsn', 'group_offset', 'batch_row_id'],
        'position': _yashandb_position(),
        'passes_keys_on': '_event.payload.source.txId',
        'table': ['_event.payload.source.schema', '_event.payload.source.table'],
        'transaction_id': 'coalesce(_event.payload.transaction.id, _event.payload.source.txId)',
        'left_out': 'placeholder',
    })) }}
{%- endmacro %}

{#-
    The commit, the group of the log, the place in it, the row of a batch. A row of a snapshot has at most the SCN of
    the snapshot: `scn` of a change is that of the change, not of its commit, and is not used.
-#}
{% macro _yashandb_position() -%}
    {%- set source = '_event.payload.source' -%}
    {%- set commit -%}
        try_cast(coalesce(
            nullif({{ source }}.position_scn, '0'),
            if({{ is_snapshot_row() }}, coalesce(nullif({{ source }}.scn, ''), '0'), null)
        ) as decimal(20, 0))
    {%- endset -%}
    concat(
        {{ let(commit, 'n', sortable_number('n', 20)) }}
        {%- for part, width in (('group_lsn', 20), ('group_offset', 20), ('batch_row_id', 10)) -%}
        {%- set number -%}
            try_cast(coalesce({{ source }}.{{ part }}, if({{ is_snapshot_row() }}, '0', null)) as decimal({{ width }},
                0))
        {%- endset -%}
        , {{ let(number, 'n', sortable_number('n', width)) }}
        {%- endfor -%}
    )
{%- endmacro %}
