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
{% macro _is_view_of_log(node) -%}
    {{ return('debezium_log' in _code_of(node)) }}
{%- endmacro %}

{#- The change logs of those models that this one reads and that are such views: name of the view → its log. -#}
{% macro _logs_of_views() -%}
    {%- set logs = {} -%}
    {%- for id in model.depends_on.nodes if execute and id in graph.nodes and _is_view_of_log(graph.nodes[id]) -%}
        {%- do logs.update({graph.nodes[id].alias: _log_of(graph.nodes[id])}) -%}
    {%- endfor -%}
    {{ return(logs) }}
{%- endmacro %}

{#- The names of the change logs of the silver table that a test is of. -#}
{% macro _logs_of_tested(table) -%}
    {%- set logs = [] -%}
    {%- for id in model.depends_on.nodes if id in graph.nodes and graph.nodes[id].alias == table.identifier -%}
        {%- do logs.append(_log_of(graph.nodes[id]) | string) -%}
    {%- endfor -%}
    {{ return(logs) }}
{%- endmacro %}

{#- The change log that a silver model reads: the shared one where `ref` would give that (`--defer`). -#}
{% macro _log_of(node) -%}
    {%- set log = graph.nodes[node.depends_on.nodes[0]] -%}
    {%- set own = api.Relation.create(schema=log.schema, identifier=log.alias) -%}
    {%- set shared = log.defer_relation if log.defer_relation and (invocation_args_dict.favor_state
        and log.unique_id not in selected_resources or not load_cached_relation(own)) -%}
    {{ return(api.Relation.create(schema=shared.schema, identifier=shared.alias) if shared else own) }}
{%- endmacro %}
