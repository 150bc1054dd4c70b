{#-
    Bytes, in the encoding that `binary.handling.mode` names. Base64 has its padding: Spark does without, and would take
    hexadecimal for it more often.
-#}
{% macro type_bytes(value, encoding) -%}
    {%- if encoding == 'hex' -%}
        {#- Spark takes an odd number of digits for one that lacks a zero in front: half a byte was cut off. #}
        {%- set sql = "case when octet_length(" ~ value ~ ") % 2 = 0 then try_to_binary(" ~ value ~ ", 'hex') end" -%}
    {%- elif encoding == 'base64-url-safe' -%}
        {%- set sql = _padded_base64("translate(" ~ value ~ ", '-_', '+/')") -%}
    {%- else -%}
        {%- set sql = _padded_base64(value) -%}
    {%- endif -%}
    {{ return(_reading('string', sql, is_placeholder(value), text=value, no_text='^(true|-?[0-9]+)\\\\z')) }}
{%- endmacro %}

{% macro _padded_base64(text) -%}
    case when octet_length({{ text }}) % 4 = 0 then try_to_binary({{ text }}, 'base64') end
{%- endmacro %}

{#-
    A bit string. Debezium writes its bytes in base64, the lowest first, without those above the last bit that is set:
    zero has none. They are turned round in hexadecimal, because `reverse` takes bytes for UTF-8 characters. Up to 63
    bits it is a number, as databases print it; longer ones stay bytes, the highest first.
-#}
{% macro type_bits(value, parameters) -%}
    {%- set bytes = _padded_base64(value) -%}
    {%- set highest_first = "regexp_replace(reverse(hex(" ~ bytes ~ ")), '(.)(.)', '$2$1')" -%}
    {%- set is_number = parameters and parameters[0] | int <= 63 -%}
    {%- set number -%}
        try_cast(conv(concat('0', {{ highest_first }}), 16, 10) as bigint)
    {%- endset -%}
    {%- set sql = 'case when octet_length(' ~ bytes ~ ') <= 8 then ' ~ number ~ ' end' if is_number
        else 'unhex(' ~ highest_first ~ ')' -%}
    {{ return(_reading('string', sql, is_placeholder(value), text=value, no_text='^(true|-?[0-9]+)\\\\z')) }}
{%- endmacro %}
