{#- Envelopes of writers without a source position: the order of the topic is all there is. docs/connectors/generic.md. -#}
{% macro generic_connector() -%}
    {{ return(envelope_capabilities({
        'left_out': 'placeholder',
    })) }}
{%- endmacro %}
