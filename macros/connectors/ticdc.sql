{#- TiCDC, TiDB's own writer of Debezium JSON: docs/connectors/ticdc.md. -#}
{% macro ticdc_connector() -%}
    {{ return(envelope_capabilities({
        'source': ['commit_ts'],
        'types_in_schema': false,
        'op': _ticdc_op(),
        'position': sortable_number('try_cast(_event.payload.source.commit_ts as decimal(20, 0))', 20),
        'ties': 'deletes_first',
        'table': ['_event.payload.source.db', '_event.payload.source.table'],
        'truncate_has_key': true,
    })) }}
{%- endmacro %}

{#- A truncate comes as DDL only, in the table's topic; comments may stand before it. -#}
{% macro _ticdc_op() -%}
    {%- set truncate = literal('(?is)^' ~ leading_comments() ~ 'truncate\\b') -%}
    if(_event.payload.op is null and _event.payload.ddl rlike {{ truncate }}, 't', lower(_event.payload.op))
{%- endmacro %}
