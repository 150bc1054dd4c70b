{#- Envelopes of writers without a source position: the order of the topic is all there is. docs/connectors/generic.md. -#}
{% macro generic_connector() -%}
    {{ return(envelope_capabilities({
        'not_from': ['mariadb', 'mysql', 'postgresql'],
        'op': _generic_op(),
        'fields': ['transaction: struct<id: string>', 'isHeartbeat: string', 'op_type: string'],
        'table': ['_event.payload.source.db', '_event.payload.source.table'],
        'table_by_topic': true,
        'left_out': 'placeholder',
        'kind': "when _event.payload.isHeartbeat = 'true' then 'heartbeat'",
    })) }}
{%- endmacro %}


{#- What the row was and is tells the operation where the event does not. Oracle GoldenGate's events, which tell it by `op_type`, are none of these. -#}
{% macro _generic_op() -%}
    coalesce(lower(_event.payload.op), case
        when _event.payload.op_type is not null then null
        when _event.payload.before is null and _event.payload.after is not null then 'c'
        when _event.payload.before is not null and _event.payload.after is null then 'd'
        when _event.payload.before is not null then 'u'
    end)
{%- endmacro %}
