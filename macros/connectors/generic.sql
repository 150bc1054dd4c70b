{#- Envelopes of writers without a source position: the order of the topic is all there is. docs/connectors/generic.md. -#}
{% macro generic_connector() -%}
    {{ return(envelope_capabilities({
        'not_from': ['mariadb', 'mysql', 'postgresql'],
        'fields': ['transaction: struct<id: string>', 'isHeartbeat: string'],
        'table': ['_event.payload.source.db', '_event.payload.source.table'],
        'table_by_topic': true,
        'left_out': 'placeholder',
        'kind': "when _event.payload.isHeartbeat = 'true' then 'heartbeat'",
    })) }}
{%- endmacro %}
