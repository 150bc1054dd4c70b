{#- Envelopes of writers without a source position: the order of the topic is all there is. -#}
{% macro generic_source_fields() -%}
    {{ return(['connector', 'db', 'schema', 'table', 'snapshot', 'ts_ms']) }}
{%- endmacro %}


{% macro generic_position(source) -%}
    ''
{%- endmacro %}


{% macro generic_table_fields() -%}
    {{ return([]) }}
{%- endmacro %}


{% macro generic_omits_values() -%}
    {{ return(true) }}
{%- endmacro %}
