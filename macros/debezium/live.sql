{#- The rows that the source's table has now, under the source's own column names. -#}
{% macro debezium_live(silver) -%}
select * except ({{ (metadata_columns() + ['_cdc_held'] + (['_cdc_patches'] if _reads_documents() else [])) | join(', ') }})
from {{ silver }}
where not _cdc_is_deleted
{%- endmacro %}


{#- Whether the rows of the silver model that this model reads are documents. -#}
{% macro _reads_documents() -%}
    {%- for silver in model.depends_on.nodes if silver in graph.nodes -%}
        {%- for staging in graph.nodes[silver].depends_on.nodes if staging in graph.nodes -%}
            {%- if is_of_documents(graph.nodes[staging].config.get('meta', {}).get('debezium', {})) -%} {{ return(true) }} {%- endif -%}
        {%- endfor -%}
    {%- endfor -%}
    {{ return(false) }}
{%- endmacro %}
