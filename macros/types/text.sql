{#- Text, and every type that Debezium writes as its text (enum, json, uuid, interval …). -#}
{% macro type_string(value) -%}
    {{ return({'json': 'string', 'sql': value, 'can_fail': false, 'omitted': is_placeholder(value)}) }}
{%- endmacro %}


{#- Whatever the JSON holds, as its JSON text: for types without a rule of their own. A number beyond a double would be infinite. -#}
{% macro type_any(value) -%}
    {%- set text = "variant_get(" ~ value ~ ", '$', 'string')" -%}
    {%- set sql -%}
        case schema_of_variant({{ value }})
            when 'STRING' then {{ text }}
            when 'DOUBLE' then if(abs(variant_get({{ value }}, '$', 'double')) < double('Infinity'), to_json({{ value }}), null)
            else to_json({{ value }})
        end
    {%- endset -%}
    {{ return({
        'json': 'variant',
        'sql': sql,
        'can_fail': true,
        'omitted': "schema_of_variant(" ~ value ~ ") = 'STRING' and " ~ is_placeholder(text),
    }) }}
{%- endmacro %}


{#- A mapping of texts (hstore.handling.mode=map). -#}
{% macro type_map(value) -%}
    {{ return({
        'json': 'map<string, string>',
        'sql': value,
        'can_fail': false,
        'omitted': "map_contains_key(" ~ value ~ ", '__debezium_unavailable_value')",
    }) }}
{%- endmacro %}
