{#- One clear line where models are run before anything has landed. -#}
{% macro require_landed_events() -%}
    {%- if execute and flags.WHICH in ('run', 'build') and graph.sources -%}
        {%- set schemas = run_query('show schemas').columns[0].values() -%}
        {%- if 'bronze' not in schemas -%}
            {{ exceptions.raise_compiler_error(
                'no events have landed yet: run `make run`, or `make run EVENTS=<file, folder or glob> SYSTEM=<name>` for your own.'
            ) }}
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}
