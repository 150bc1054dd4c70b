{#-
    Envelopes of writers without a source position: the order of the topic is all there is. docs/connectors/generic.md.
-#}
{% macro generic_connector() -%}
    {{ return(envelope_capabilities({
        'not_from': ['mariadb', 'mysql', 'postgresql'],
        'op': _generic_op(),
        'fields': ['transaction: struct<id: string>', 'isHeartbeat: string'],
        'table': ['_event.payload.source.db', '_event.payload.source.table'],
        'table_by_topic': true,
        'left_out': 'placeholder',
        'kind': "when _event.payload.isHeartbeat = 'true' then 'heartbeat'",
    })) }}
{%- endmacro %}

{#-
    What the row was and is tells the operation where the event has both and no operation. Oracle GoldenGate's events,
    which tell it by `op_type`, are none of these.
-#}
{% macro _generic_op() -%}
    coalesce(lower(_event.payload.op), case
        when not (array_intersect(array('before', 'after', 'op', 'op_type'), {{ _members() }}) <=> array('before',
            'after')) then null
        when _event.payload.before is null and _event.payload.after is not null then 'c'
        when _event.payload.before is not null and _event.payload.after is null then 'd'
        when _event.payload.before is not null then 'u'
    end)
{%- endmacro %}
