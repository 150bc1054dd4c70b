{#- SQL Server: docs/connectors/sqlserver.md. -#}
{% macro sqlserver_connector() -%}
    {{ return(envelope_capabilities({
        'source': ['commit_lsn', 'change_lsn', 'event_serial_no'],
        'position': _sqlserver_position(),
        'table': ['_event.payload.source.db', '_event.payload.source.schema', '_event.payload.source.table'],
    })) }}
{%- endmacro %}

{#-
    Commit, change inside it, half of an update; where writers put neither of the first two, the order of the topic. Log
    sequence numbers are those of one database, which is part of the table's name.
-#}
{% macro _sqlserver_position() -%}
    {%- set source = '_event.payload.source' -%}
    {%- set position -%}
        concat(
            {{ sortable_lsn(source ~ '.commit_lsn', _lsn_zero()) }},
            {{ sortable_lsn(source ~ '.change_lsn', _lsn_zero()) }},
            {{ sortable_number('coalesce(try_cast(' ~ source ~ '.event_serial_no as decimal(20, 0)), 0)', 10) }}
        )
    {%- endset -%}
    case
        when {{ source }} is null then null
        when {{ _is_no_lsn(source ~ '.commit_lsn') }} and {{ _is_no_lsn(source ~ '.change_lsn') }} then ''
        else {{ position }}
    end
{%- endmacro %}
