{#- SQL Server: docs/connectors/sqlserver.md. -#}
{% macro sqlserver_connector() -%}
    {{ return(envelope_capabilities({
        'source': ['connector', 'db', 'schema', 'table', 'snapshot', 'ts_ms', 'commit_lsn', 'change_lsn', 'event_serial_no'],
        'position': _sqlserver_position(),
        'table': ['_event.payload.source.db', '_event.payload.source.schema', '_event.payload.source.table'],
    })) }}
{%- endmacro %}


{#-
    Commit, change inside it, half of an update; where writers put none of them, the order of the topic. Log sequence
    numbers are those of one database, which is part of the table's name.
-#}
{% macro _sqlserver_position() -%}
    concat(
        {{ sortable_lsn('_event.payload.source.commit_lsn', 'if(_event.payload.source is null, null, ' ~ _lsn_zero() ~ ')') }},
        {{ sortable_lsn('_event.payload.source.change_lsn', _lsn_zero()) }},
        {{ sortable_number('coalesce(try_cast(_event.payload.source.event_serial_no as decimal(20, 0)), 0)', 10) }}
    )
{%- endmacro %}
