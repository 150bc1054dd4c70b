{#- The schema of each model. In a folder of its own, for projects that have a macro of this name. -#}
{% macro generate_schema_name(custom_schema_name, node) -%}
    {{ return(lakehouse_schema_name(custom_schema_name)) }}
{%- endmacro %}
