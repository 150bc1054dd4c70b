{#- MySQL and MariaDB, which share the binlog's positions: docs/connectors/mysql.md. -#}
{% macro mysql_connector() -%}
    {{ return(envelope_capabilities({
        'source': ['file', 'pos', 'row', 'gtid'],
        'not_from': ['postgresql'],
        'read_as': ['mysql', 'mariadb'],
        'greatest_scale': 30,
        'position': _mysql_position(),
        'table': ['_event.payload.source.db', '_event.payload.source.table'],
        'transaction_id': 'coalesce(_event.payload.transaction.id, _event.payload.source.gtid)',
        'left_out': 'placeholder',
    })) }}
{%- endmacro %}

{#-
    Number of the binlog file, position of the row event, row inside it, all compared as numbers: the file
    after …999999 is …1000000. Events rewritten without a file and its position have the order of the topic.
-#}
{% macro _mysql_position() -%}
    {%- set source = '_event.payload.source' -%}
    {%- set file -%}
        case when coalesce({{ source }}.file, '') = '' then 0
             else try_cast(regexp_extract({{ source }}.file, '[.]([0-9]+)$', 1) as decimal(20, 0)) end
    {%- endset -%}
    {%- set pos = 'try_cast(' ~ source ~ '.pos as bigint)' -%}
    if(coalesce({{ source }}.file, '') = '' and coalesce(nullif({{ source }}.pos, ''), '0') = '0'
        and {{ source }} is not null, '', concat(
        {{ sortable_number('(' ~ file ~ ')', 20) }},
        {{ sortable_number(pos, 20) }},
        {{ sortable_number('coalesce(try_cast(' ~ source ~ '.row as bigint), 0)', 10) }}
    ))
{%- endmacro %}
