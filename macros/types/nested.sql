{#- A point of MySQL or PostgreSQL: its coordinates, its well-known binary, its reference system. -#}
{% macro type_point(value) -%}
    {%- set sql -%}
        if({{ value }} is null, null, named_struct(
            'x', {{ value }}.x, 'y', {{ value }}.y, 'wkb', try_to_binary({{ value }}.wkb, 'base64'), 'srid', {{ value }}.srid
        ))
    {%- endset -%}
    {{ return({'json': 'struct<x: double, y: double, wkb: string, srid: int>', 'sql': sql, 'invalid': none, 'omitted': none}) }}
{%- endmacro %}


{#- A geometry or geography: its well-known binary (EWKB for PostgreSQL) and its reference system. -#}
{% macro type_geometry(value) -%}
    {%- set sql -%}
        if({{ value }} is null, null, named_struct('wkb', try_to_binary({{ value }}.wkb, 'base64'), 'srid', {{ value }}.srid))
    {%- endset -%}
    {{ return({
        'json': 'struct<wkb: string, srid: int>',
        'sql': sql,
        'invalid': value ~ ".wkb is not null and try_to_binary(" ~ value ~ ".wkb, 'base64') is null",
        'omitted': is_placeholder(value ~ '.wkb'),
    }) }}
{%- endmacro %}


{#-
    An array of a type. An array that was not in the log has the placeholder as its only element, or its bytes
    as elements where the elements are numbers.
-#}
{% macro type_array(element_type, value) -%}
    {%- set raw = debezium_type(element_type, 'e') -%}
    {%- set element = debezium_type(element_type, 'p') -%}
    {%- set prepare = 'transform(' ~ value ~ ', e -> ' ~ raw['prepare'] ~ ')' if raw['prepare'] else none -%}
    {%- set placeholder_bytes -%}
        array(95, 95, 100, 101, 98, 101, 122, 105, 117, 109, 95, 117, 110, 97, 118, 97, 105, 108, 97, 98, 108, 101, 95, 118, 97, 108, 117, 101)
    {%- endset -%}
    {%- if element['json'] in ('smallint', 'int', 'bigint') -%}
        {%- set omitted = value ~ ' = cast(' ~ placeholder_bytes ~ ' as array<' ~ element['json'] ~ '>)' -%}
    {%- elif element['omitted'] -%}
        {%- set uuid = " or p = 'b68a35a7-17ad-35b3-af2a-ae46edb4545a'" if element['json'] == 'string' and not raw['prepare'] else '' -%}
        {%- set omitted = 'size(' ~ value ~ ') = 1 and exists(' ~ value ~ ', p -> ' ~ element['omitted'] ~ uuid ~ ')' -%}
    {%- else -%}
        {%- set omitted = none -%}
    {%- endif -%}
    {{ return({
        'json': 'array<' ~ element['json'] ~ '>',
        'prepare': prepare,
        'sql': value if element['sql'] == 'p' else 'transform(' ~ value ~ ', p -> ' ~ element['sql'] ~ ')',
        'invalid': 'exists(' ~ value ~ ', p -> ' ~ element['invalid'] ~ ')' if element['invalid'] else none,
        'omitted': omitted,
    }) }}
{%- endmacro %}
