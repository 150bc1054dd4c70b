{#-
    The changes of a table without a key: a view of its change log. Its rows cannot be identified, so no update or
    delete is applied. A change that Debezium sent twice stands here twice, because equal rows of one statement share
    their position. A truncate removes all changes before it.
-#}
{% macro debezium_log(changes, columns) -%}
select
    {{ _quoted_list(columns, '{},', ' ') }}
    {%- for name in metadata_columns() %}
    {{ "_cdc_op = 'd' as _cdc_is_deleted" if name == '_cdc_is_deleted' else name }},
    {%- endfor %}
    _cdc_append
from {{ changes }}
where
    _cdc_kind = 'change'
    and _cdc_position > coalesce((select max(_cdc_position) from {{ changes }} where _cdc_kind = 'truncate'), '')
{%- endmacro %}

{#- Whether a silver model is such a view: its code, without comments and texts, calls the macro. -#}
{% macro is_view_of_log(node) -%}
    {{ return('debezium_log' in code_of(node)) }}
{%- endmacro %}

{#- The change logs of those models that this one reads and that are such views: name of the view → its log. -#}
{% macro _logs_of_views() -%}
    {%- set logs = {} -%}
    {%- for id in model.depends_on.nodes if execute and id in graph.nodes and is_view_of_log(graph.nodes[id]) -%}
        {%- set log = graph.nodes[graph.nodes[id].depends_on.nodes[0]] -%}
        {%- do logs.update({graph.nodes[id].alias: api.Relation.create(schema=log.schema, identifier=log.alias)}) -%}
    {%- endfor -%}
    {{ return(logs) }}
{%- endmacro %}
