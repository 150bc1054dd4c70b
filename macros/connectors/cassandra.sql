{#- Apache Cassandra: docs/connectors/cassandra.md. Every event is a write of some cells, also an insert. -#}
{% macro cassandra_connector() -%}
    {{ return(envelope_capabilities({
        'form': 'cells',
        'source': ['keyspace', 'ts_us'],
        'before': ['after'],
        'op': _cassandra_op(),
        'is_log': false,
        'position': sortable_number('try_cast(_event.payload.source.ts_us as decimal(20, 0))', 20),
        'ties': 'deletes_last',
        'table': ['_event.payload.source.keyspace', '_event.payload.source.table'],
        'left_out': 'unset',
        'updates_parts_of_collections': true,
        'splits_key_changes': true,
        'reject': "when lower(_event.payload.op) in ('r', 't') then 'range_delete' || ': delete row by row'",
    })) }}
{%- endmacro %}

{#-
    `r` is no snapshot row but the delete of a range of rows, which Debezium's `EnvelopeTransformation` calls `t`; `i`
    is an insert.
-#}
{% macro _cassandra_op() -%}
    case lower(_event.payload.op) when 'i' then 'c' when 'r' then 'd' when 't' then 'd'
        else lower(_event.payload.op) end
{%- endmacro %}
