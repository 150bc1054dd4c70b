{#-
    The rows that the source's table has now, under the source's column names. The names are written out: a view binds
    `*` by place, and shows wrong columns after silver was rebuilt without it.
-#}
{% macro debezium_live(silver) -%}
    {%- set columns = [] -%}
    {%- set built = bounds_of_run().get(model.depends_on.nodes[0]) if execute else none -%}
    {%- if built -%}
        {%- do columns.extend(built.columns) -%}
    {%- elif execute and flags.WHICH in ('run', 'build') and model.resource_type != 'unit_test' -%}
        {#- Not by DESCRIBE, whose last lines the adapter knows by their `#`: names may begin with one. #}
        {%- for name in run_query('select * from ' ~ silver ~ ' where false').column_names
            if not name.startswith('_cdc_') -%}
            {%- do columns.append(name) -%}
        {%- endfor -%}
    {%- endif -%}
select {{ _quoted_list(columns) if columns else '* except ('
    ~ (metadata_columns() + ['_cdc_held'] + _further_columns()) | join(', ') ~ ')' }}
from {{ silver }}
where not _cdc_is_deleted
{%- endmacro %}

{#- What the silver model that this model reads keeps besides. -#}
{% macro _further_columns() -%}
    {%- for silver in model.depends_on.nodes if silver in graph.nodes -%}
        {%- for staging in graph.nodes[silver].depends_on.nodes if staging in graph.nodes -%}
            {%- set meta = graph.nodes[staging].config.get('meta', {}).get('debezium', {}) -%}
            {%- if is_of_documents(meta) -%} {{ return(['_cdc_patches']) }} {%- endif -%}
            {%- if _passes_keys_on(meta) -%} {{ return(['_cdc_moves']) }} {%- endif -%}
        {%- endfor -%}
    {%- endfor -%}
    {{ return([]) }}
{%- endmacro %}
