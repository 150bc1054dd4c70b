{#-
    Google Spanner: docs/connectors/spanner.md. Change streams of new values alone write null for a value that did not
    change, and for one that is NULL now; a delete loses nothing by that.
-#}
{% macro spanner_connector() -%}
    {%- set kind = "coalesce(upper(_event.payload.source.value_capture_type), '')" -%}
    {{ return(envelope_capabilities({
        'source': ['ts_us', 'ts_ns', 'sequence', 'mod_number', 'value_capture_type', 'server_transaction_id'],
        'position': _spanner_position(),
        'is_log': false,
        'table': ['_event.payload.source.db', '_event.payload.source.table'],
        'transaction_id': 'coalesce(_event.payload.transaction.id, _event.payload.source.server_transaction_id)',
        'reject': "when _op <> 'd' and " ~ kind
            ~ " not like 'NEW_ROW%' then 'partial_row' || ': value_capture_type has to be NEW_ROW'",
    })) }}
{%- endmacro %}

{#-
    The time of the commit, record in its transaction, row of the record. Transactions that change one row have
    different times. Records of one row may arrive out of order when partitions split, so the topic's order would not
    do.
-#}
{% macro _spanner_position() -%}
    {%- set source = '_event.payload.source' -%}
    {%- set time = 'coalesce(' ~ source ~ '.ts_ns, concat(' ~ source ~ ".ts_us, '000'), concat(" ~ source
        ~ ".ts_ms, '000000'))" -%}
    concat(
        {{ let('try_cast(' ~ time ~ ' as decimal(20, 0))', 'n', sortable_number('n', 20)) }},
        {{ sortable_number('try_cast(' ~ source ~ '.sequence as decimal(20, 0))', 20) }},
        {{ sortable_number('coalesce(try_cast(' ~ source ~ '.mod_number as decimal(20, 0)), 0)', 10) }}
    )
{%- endmacro %}
