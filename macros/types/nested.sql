{#- A point of MySQL or PostgreSQL: its coordinates, its well-known binary, its reference system. -#}
{% macro type_point(value) -%}
    {%- set sql -%}
        if({{ value }}.x is null or {{ value }}.y is null or {{ value }}.wkb is not null
            and try_to_binary({{ value }}.wkb, 'base64') is null, null, named_struct(
            'x', {{ value }}.x, 'y', {{ value }}.y, 'wkb', try_to_binary({{ value }}.wkb, 'base64'), 'srid',
            {{ value }}.srid
        ))
    {%- endset -%}
    {{ return(_reading('struct<x: double, y: double, wkb: string, srid: int>', sql)) }}
{%- endmacro %}

{#- A geometry or geography: its well-known binary (EWKB for PostgreSQL) and its reference system. -#}
{% macro type_geometry(value) -%}
    {%- set sql -%}
        if(try_to_binary({{ value }}.wkb, 'base64') is null,
           null, named_struct('wkb', try_to_binary({{ value }}.wkb, 'base64'), 'srid', {{ value }}.srid))
    {%- endset -%}
    {{ return(_reading('struct<wkb: string, srid: int>', sql, is_placeholder(value ~ '.wkb'))) }}
{%- endmacro %}

{#-
    An array of a type. An array that was not in the log has the placeholder as its only element, or its bytes
    as elements where the elements are numbers (of decimals as unscaled numbers; Debezium after 3.5).
-#}
{% macro type_array(element_type, value) -%}
    {%- set element = debezium_type(element_type, 'e') -%}
    {%- set whole = "transform(" ~ value ~ ", e -> " ~ element['sql'] ~ ")" -%}
    {%- set is_there = 'not is_variant_null(a)' if element['json'] == 'variant' else 'a is not null' -%}
    {%- set misses = "exists(zip_with(" ~ value ~ ", v, (a, b) -> " ~ is_there ~ " and b is null), m -> m)" -%}
    {%- set bytes = 'array(' ~ placeholder_bytes() | join(', ') ~ ')' -%}
    {%- if element_type == 'number' -%}
        {%- set omitted = "transform(" ~ value ~ ", e -> try_variant_get(e, '$', 'int')) = " ~ bytes -%}
    {%- elif element['json'] in ('smallint', 'int', 'bigint', 'double') -%}
        {%- set omitted = value ~ ' = cast(' ~ bytes ~ ' as array<' ~ element['json'] ~ '>)' -%}
    {%- elif element['omitted'] -%}
        {%- set uuid = " or e = 'b68a35a7-17ad-35b3-af2a-ae46edb4545a'" if element['json'] == 'string' else '' -%}
        {%- set omitted = 'size(' ~ value ~ ') = 1 and exists(' ~ value ~ ', e -> ' ~ element['omitted'] ~ uuid
            ~ ')' -%}
        {%- if element_type.startswith('Decimal(') or element['json'] == 'string' -%}
            {%- set texts = "transform(" ~ value
                ~ ", e -> try_variant_get(e, '$', 'string'))" if element['json'] == 'variant' else value -%}
            {%- set decimals = 'transform(' ~ bytes ~ ', b -> base64(unhex(hex(b))))' -%}
            {%- set omitted = '(' ~ omitted ~ ' or size(' ~ value ~ ") = 28 and " ~ texts ~ " = " ~ decimals ~ ')' -%}
        {%- endif -%}
    {%- else -%}
        {%- set omitted = none -%}
    {%- endif -%}
    {%- if element['sql'] == 'e' -%}
        {%- set sql = value -%}
    {%- elif element['can_fail'] -%}
        {%- set sql = let(whole, 'v', 'if(' ~ misses ~ ', null, v)') -%}
    {%- else -%}
        {%- set sql = whole -%}
    {%- endif -%}
    {{ return(dict(_reading('array<' ~ element['json'] ~ '>', sql, omitted), can_fail=element['can_fail'])) }}
{%- endmacro %}
