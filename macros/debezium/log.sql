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

{#-
    Of a table without a key: truncates below something before them, and changes below the newest truncate. Its change
    log keeps what was found, in one commit with the append up to which it was looked for.
-#}
{% macro _store_resets_of_log(bounds) -%}
    {%- set append = _last_append(bounds) -%}
    {%- set truncate = run_query('select max(_cdc_position) from ' ~ this ~ " where _cdc_kind = 'truncate'").rows[0][0]
        if append > bounds.compared else none -%}
    {%- if truncate is not none -%}
        {%- set below = run_query('select 1 from ' ~ this ~ ' where _cdc_append > ' ~ bounds.compared
            ~ " and _cdc_kind in ('change', 'truncate') and _cdc_position <= " ~ literal(truncate)
            ~ ' limit 1').rows -%}
        {%- set resets = _resets_of_log(bounds, truncate, append) if below or fromjson(bounds.known_resets)
            else '{}' -%}
        {%- do run_query('alter table ' ~ this ~ " set tblproperties ('cdc.compared' = '" ~ append
            ~ "', 'cdc.resets' = " ~ literal(resets) ~ ')') -%}
    {%- endif -%}
{%- endmacro %}

{#- As `debezium_resets`; without a key a row is known again by all of its columns. -#}
{% macro _resets_of_log(bounds, truncate, append) -%}
    {%- set log -%}
        (select *, to_json(struct({{ _quoted_list(bounds.columns) }})) as _cdc_row from {{ this }})
    {%- endset -%}
    {%- set asked = {'keys': ['_cdc_row'], 'changes': log, 'above': 0, 'up_to': append, 'is_of_topic': true,
        'has_snapshot': true, 'known_resets': bounds.known_resets} -%}
    {%- set rows = _in_place(log, "_cdc_kind in ('change', 'truncate')", true) -%}
    {%- set below = _below_others(_dated(asked, rows, none), [
        [rows, "new._cdc_kind = 'truncate'"], [rows, 'other._cdc_position = ' ~ literal(truncate)],
    ], asked['keys']) -%}
    {{ return(_found_resets(asked, below | join('\nunion all\n'), bounds.compared)) }}
{%- endmacro %}

{#- Whether a silver model is such a view: its code, without comments and texts, calls the macro. -#}
{% macro _is_view_of_log(node) -%}
    {{ return('debezium_log' in _code_of(node)) }}
{%- endmacro %}

{#- The change logs of those models that this one reads and that are such views: name of the view → its log. -#}
{% macro _logs_of_views() -%}
    {%- set logs = {} -%}
    {%- for id in model.depends_on.nodes if execute and id in graph.nodes and _is_view_of_log(graph.nodes[id]) -%}
        {%- set log = graph.nodes[graph.nodes[id].depends_on.nodes[0]] -%}
        {%- do logs.update({graph.nodes[id].alias: api.Relation.create(schema=log.schema, identifier=log.alias)}) -%}
    {%- endfor -%}
    {{ return(logs) }}
{%- endmacro %}
