{#- Text, and every type that Debezium writes as its text (enum, json, uuid, interval …). -#}
{% macro type_string(value) -%}
    {{ return(_plain_type('string', value, is_placeholder(value), text=value,
        no_text='^-?[0-9]+[.eE][-+.0-9eE]*\\\\z')) }}
{%- endmacro %}

{#-
    Whatever the JSON holds, as its JSON text: for types without a rule of their own. Spark reads a number of more than
    38 digits, or with an exponent, as a double: where the event has one that a double cannot hold, or NaN, the value is
    not exact.
-#}
{% macro type_any(value, read_as=none) -%}
    {%- set read = "variant_get(" ~ value ~ ", '$', 'string')" -%}
    {%- set text = read_as or read -%}
    {%- set double = "variant_get(" ~ value ~ ", '$', 'double')" -%}
    {%- set out_of_range = '[^0-9A-Za-z."-]-?[0-9.]+[eE][+-]?([3-9][0-9]{2}|[0-9]{4})' -%}
    {%- set sql -%}
        case
            when {{ value }} is null or is_variant_null({{ value }}) then null
            when schema_of_variant({{ value }}) = 'STRING' then {{ text }}
            when schema_of_variant({{ value }}) = 'DOUBLE' and not abs({{ double }}) < double('Infinity') then null
            when schema_of_variant({{ value }}) rlike 'DOUBLE|VARIANT' and value rlike '{{ _lost_digits() }}' then null
            when (schema_of_variant({{ value }}) rlike '.DOUBLE|VARIANT'
                or schema_of_variant({{ value }}) = 'DOUBLE' and {{ double }} = 0)
                and value rlike '{{ out_of_range }}' then null
            else to_json({{ value }})
        end
    {%- endset -%}
    {%- set omitted = "case when schema_of_variant(" ~ value ~ ") = 'STRING' then " ~ is_placeholder(text)
        ~ " when schema_of_variant(" ~ value
        ~ ") rlike '^(ARRAY<(STRING|BIGINT|DECIMAL.*)>|OBJECT<__debezium_unavailable_value: STRING>)$'"
        ~ " then to_json(" ~ value ~ ") in (" ~ placeholder_forms() ~ ") end" -%}
    {{ return(_reading('variant', sql, omitted, read=read if read_as else none)) }}
{%- endmacro %}

{#-
    A pattern of a number in an event that a variant holds as a double, which has lost some of its digits: more than 38,
    or more than 17 and an exponent.
-#}
{% macro _lost_digits() -%}
    {{ return('[^0-9A-Za-z."-]-?([0-9]{39}|[0-9.]{40}|([0-9]{18}|[0-9.]{19})[0-9.]*[eE])') }}
{%- endmacro %}

{#- A mapping of texts (hstore.handling.mode=map). -#}
{% macro type_map(value) -%}
    {{ return(_plain_type('map<string, string>', value,
        "map_contains_key(" ~ value ~ ", '__debezium_unavailable_value')")) }}
{%- endmacro %}
