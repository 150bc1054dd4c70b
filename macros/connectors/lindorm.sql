{#-
    Alibaba Lindorm, Debezium Format V2.0, SQL and HBase tables: docs/connectors/lindorm.md. The format has no log
    position: the times of the change and of its writing to the topic are all that it tells, then the topic's order.
-#}
{% macro lindorm_connector() -%}
    {%- set source = '_event.payload.source' -%}
    {{ return(envelope_capabilities({
        'source': ['namespace'],
        'types_in_schema': false,
        'snapshot': "if(lower(_event.payload.op) = 'r', 'true', 'false')",
        'is_log': false,
        'position': 'concat('
            ~ let('try_cast(' ~ source ~ '.ts_ms as decimal(20, 0))', 'n', sortable_number('n', 20)) ~ ', '
            ~ let('try_cast(_event.payload.ts_ms as decimal(20, 0))', 'n', sortable_number('n', 20)) ~ ')',
        'table': [source ~ '.db', source ~ '.namespace', source ~ '.table'],
        'key': 'before',
    })) }}
{%- endmacro %}
