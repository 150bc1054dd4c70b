{#- Informix: docs/connectors/informix.md. -#}
{% macro informix_connector() -%}
    {{ return(envelope_capabilities({
        'source': ['commit_lsn', 'change_lsn', 'txId'],
        'position': _informix_position(),
        'passes_keys_on': '_event.payload.source.commit_lsn',
        'table': ['_event.payload.source.db', '_event.payload.source.schema', '_event.payload.source.table'],
        'transaction_id': 'coalesce(_event.payload.transaction.id, _event.payload.source.txId)',
    })) }}
{%- endmacro %}

{#- Commit, then change inside it; the numbers are 64 bits as decimal text, which must not be compared as text. -#}
{% macro _informix_position() -%}
    {%- set commit -%}
        try_cast(coalesce(_event.payload.source.commit_lsn, if({{ is_snapshot_row() }}, '0', null)) as decimal(20, 0))
    {%- endset -%}
    concat(
        {{ let(commit, 'n', sortable_number('n', 20)) }},
        {{ sortable_number('try_cast(coalesce(_event.payload.source.change_lsn, \'0\') as decimal(20, 0))', 20) }}
    )
{%- endmacro %}
