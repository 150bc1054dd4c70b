{#-
    dbt's incremental materialization with one strategy more, `debezium_merge`: rows are merged by the source's
    position, a run with nothing new commits nothing, and a full refresh replaces the table in one commit.
    Every other strategy is dbt-spark's own.
-#}
{% materialization incremental, adapter='spark', supported_languages=['sql', 'python'] -%}
    {%- if config.get('incremental_strategy') == 'debezium_merge' -%}
        {{ return(debezium_merge_materialization()) }}
    {%- else -%}
        {{ return(dbt.materialization_incremental_spark()) }}
    {%- endif -%}
{%- endmaterialization %}

{% macro debezium_merge_materialization() -%}
    {%- set bounds = bounds_of_run().get(model.unique_id) -%}
    {#-
        What else stands in its text would be computed of new changes only: a row that a condition leaves out keeps what
        it had.
    #}
    {%- set call = '(?s)\\s*[{][{]-?\\s*debezium_[a-z_]+\\([^{}]*([{][^{}]*[}][^{}]*)*\\)\\s*-?[}][}]\\s*' -%}
    {%- if not modules.re.fullmatch(call, _code_of(model)) or bounds is none and not _is_view_of_log(model) -%}
        {{ exceptions.raise_compiler_error(
            'debezium_merge: the SQL of model ' ~ model.name
                ~ ' has to be one call of debezium_changes, debezium_latest, debezium_log,\n'
            ~ '  debezium_history, debezium_events or debezium_event_counts, and nothing else: '
            ~ 'conditions and further columns belong in a model that reads it.'
        ) }}
    {%- endif -%}
    {%- if _is_view_of_log(model) -%} {{ return(create_or_replace_view()) }} {%- endif -%}
    {%- do _require_all_events() -%} {#- a project that uses this one as a package may have switched its hook off -#}
    {%- do _check_own_mark() -%}
    {%- set existing = load_relation(this) -%}
    {{ run_hooks(pre_hooks) }}

    {%- if existing is not none and existing.is_view -%} {%- do adapter.drop_relation(existing) -%} {%- endif -%}
    {%- if existing is none or existing.is_view or should_full_refresh() or bounds.is_new -%}
        {%- do _create_table(bounds) -%}
    {%- elif bounds.declarations is defined -%}
        {%- do _merge_counts(bounds) -%}
    {%- else -%}
        {%- do _follow_declaration(bounds) if bounds.added or not bounds.is_described -%}
        {%- if not bounds.has_new -%}
            {%- call noop_statement('main', 'nothing new') -%} {%- endcall -%}
        {%- elif bounds.is_history is defined -%}
            {%- do _write_history(bounds) -%}
        {%- elif bounds.counted is defined -%}
            {%- do _merge_changes(bounds) -%}
        {%- else -%}
            {%- do _append_records(bounds) -%}
        {%- endif -%}
        {%- if bounds.replay is defined -%}
            {%- do _write_replayed(bounds) if bounds.declared else _write_named(bounds) -%}
        {%- endif -%}
        {%- do run_query('alter table ' ~ this ~ " set tblproperties ('cdc.events' = '" ~ bounds.events ~ "')")
            if bounds.events is defined and bounds.events != bounds.known_events -%}
    {%- endif -%}

    {%- do apply_grants(this, config.get('grants'), should_revoke(existing, should_full_refresh())) -%}
    {{ run_hooks(post_hooks) }}
    {{ return({'relations': [this]}) }}
{%- endmacro %}

{#- The code of a model: its text without comments, texts and configuration. -#}
{% macro _code_of(node) -%}
    {%- set re = modules.re -%}
    {%- set comments = '(?s)[{]#.*?#[}]|[{]%.*?%[}]|/[*].*?[*]/|--[^\\n]*' -%}
    {%- set strings = '\'(?:[^\'\\\\]|\\\\.)*\'|"(?:[^"\\\\]|\\\\.)*"' -%}
    {%- set text = re.sub(comments ~ '|' ~ strings, '', node.raw_code) -%}
    {{ return(re.sub('(?s)[{][{]-?\\s*config\\(.*?\\)\\s*-?[}][}]', '', text)) }}
{%- endmacro %}

{% macro _create_table(bounds) -%}
    {%- do _store_with_next_commit(bounds) -%}
    {%- call statement('main') -%}
        create or replace table {{ this }}
        using iceberg
        tblproperties (
            'format-version' = '3',
            'write.merge.mode' = 'merge-on-read',
            'write.delete.mode' = 'merge-on-read',
            'write.update.mode' = 'merge-on-read',
            'write.metadata.metrics.max-inferred-column-defaults' = '200',
            'write.metadata.delete-after-commit.enabled' = 'true', 'write.metadata.previous-versions-max' = '10',
            'commit.manifest.min-count-to-merge' = '10',
            'cdc.bronze' = {{ literal(bounds.bronze) }},
            {%- if bounds.declarations is defined %}
            'cdc.declarations' = {{ literal(tojson(bounds.declarations)) }}
            {%- else %}
            'write.metadata.metrics.column.{{ bounds.batch }}' = 'full',
            {{ _declaration_properties(bounds) }},
            {%- if bounds.counted is defined %}
            'cdc.keys' = {{ literal(local_md5(tojson(bounds.get('keys')))) }},
            'cdc.truncated-at' = {{ literal(bounds.truncated_at) }},
            'cdc.routed' = '{{ 'true' if bounds.is_routed else 'false' }}',
            'cdc.built-from' = '{{ bounds.newest_batch }} {{ bounds.counted or '0:0' }}',
            {%- endif %}
            'cdc.described' = '{{ local_md5(_descriptions(_described_columns(bounds)) | join) }}'
            {%- endif %}
            {%- for name, value in dict(bounds.get('properties', {}), **(config.get('tblproperties') or {})).items() %},
            {{ literal(name) }} = {{ literal(value) }}
            {%- endfor %}
        )
        {{ partition_cols(label='partitioned by') }}
        {{ comment_clause() }}
        as
        {{ _with_knowledge(sql, bounds) if bounds.is_history is defined else sql }}
    {%- endcall -%}
    {%- do _store_with_next_commit(none) -%}
    {%- do _comment_columns(this, _described_columns(bounds)) -%}
{%- endmacro %}

{#- By what a table is declared, as properties. -#}
{% macro _declaration_properties(bounds) -%}
    'cdc.declaration' = {{ literal(bounds.declaration) }}, 'cdc.declared' = {{ literal(bounds.get('declared', '')) }},
    'cdc.columns' = {{ literal(tojson(bounds.columns)) }}, 'cdc.base' = {{ literal(bounds.get('base', '')) }}
{%- endmacro %}

{#- Give the table its new columns, each behind the one before it: rows are appended by the order of the columns. -#}
{% macro _follow_declaration(bounds) -%}
    {%- set types, there, parts, place = {}, [], [], namespace(of='first') -%}
    {%- if bounds.added -%}
        {%- do types.update(_types_of('select * from ' ~ bounds.changes if bounds.changes is defined else sql)) -%}
        {%- do there.extend(run_query('select * from ' ~ this ~ ' where false').column_names) -%}
    {%- endif -%}
    {%- for name in bounds.columns -%}
        {%- do parts.append(quoted(name) ~ ' ' ~ types[name] ~ ' ' ~ place.of) if name in bounds.added
            and name not in there -%}
        {%- set place.of = 'after ' ~ quoted(name) -%}
    {%- endfor -%}
    {%- do run_query('alter table ' ~ this ~ ' add columns (' ~ parts | join(', ') ~ ')') if parts -%}
    {%- do _follow_epochs(bounds) if bounds.epochs -%}
    {%- do run_query('alter table ' ~ this ~ ' set tblproperties (' ~ _declaration_properties(bounds) ~ ')') -%}
{%- endmacro %}

{#- Append records to a change log or an events model. -#}
{% macro _append_records(bounds) -%}
    {%- call statement('main') -%}
        insert into {{ this }} with ('isolation-level' = 'serializable',
            'validate-from-snapshot-id' = '{{ bounds.snapshot }}', {{ _with_mark(bounds) }})
        replace where {{ bounds.batch }} > {{ bounds.above }}
        {{ sql }}
    {%- endcall -%}
    {%- do _check_no_other_epochs(bounds) if bounds.declared -%}
{%- endmacro %}

{% macro _merge_changes(bounds) -%}
    {%- do _follow_descriptions(bounds) -%}
    {%- do _check_no_other_truncate(bounds) -%}
    {%- if bounds.is_truncated -%}
        {%- do _store_with_next_commit(none) -%}
        {%- do _truncate_silver(bounds) -%}
    {%- endif -%}
    {%- do _store_with_next_commit(bounds) -%}
    {%- call statement('main') -%}
        {{ debezium_merge_sql(this, '(' ~ sql ~ ')', bounds.get('keys'), bounds.columns, bounds.patched,
            bounds.is_moved, bounds.is_narrow) }}
    {%- endcall -%}
    {%- do _store_with_next_commit(none) -%}
{%- endmacro %}

{#-
    Rejected records, typed again, in place of their rows, and others that the log lacks; the counts see by the name of
    this attempt that they have to be counted again.

    Another run that appends meanwhile takes the same number, and silver may have merged that. So nothing is replayed
    beside rows of this number, and nothing in the condition may be one that Iceberg looks for conflicts by: it refuses
    the commit beside any other one.
-#}
{% macro _write_replayed(bounds) -%}
    {%- set append = _last_append(bounds) -%}
    {%- do run_query("alter table " ~ this ~ " set tblproperties ('cdc.replayed' = '" ~ _name_of_replay() ~ "')") -%}
    {%- do _store_with_next_commit(dict(bounds, append=append)) -%}
    {%- do run_query(
        'merge into ' ~ this ~ ' as stored using (select * from (' ~ bounds.replay ~ ') where (select count(*) from '
        ~ this ~ ' where _cdc_append >= ' ~ append ~ ') = 0) as typed'
        ~ ' on stored._cdc_event_id = typed._cdc_event_id and stored._cdc_batch = typed._cdc_batch'
        ~ " and coalesce(stored._cdc_reject_reason, '') <> ''"
        ~ ' when matched and not stored._cdc_reject_reason <=> typed._cdc_reject_reason then update set *'
        ~ ' when not matched then insert *'
    ) -%}
    {%- do _store_with_next_commit(none) -%}
    {%- do _head_after(bounds.snapshot, 1 + bounds.has_new) -%}
{%- endmacro %}

{#-
    Another run may have merged a truncate since the bounds were looked up: what this one has of before it would come
    back. Merges of other changes may come in any order.
-#}
{% macro _check_no_other_truncate(bounds) -%}
    {%- if run_query('show tblproperties ' ~ this ~ " ('cdc.truncated-at')").rows[0][1] != bounds.known_truncated_at -%}
        {{ exceptions.raise_compiler_error('model ' ~ model.name
            ~ ': another run has merged a truncate meanwhile. Nothing is lost; run it again.') }}
    {%- endif -%}
{%- endmacro %}

{#-
    The columns of a model by name. Those that only its live model describes, as generated YAML does, are described so.
-#}
{% macro _described_columns(bounds) -%}
    {%- set path = model.unique_id.split('.') -%}
    {%- set live = graph.nodes.get((path[:-1] + ['live_' ~ path[-1]]) | join('.')) -%}
    {%- set columns = dict(model.columns) -%}
    {%- for name in bounds.get('columns') or [] if live and name in live.columns and name not in columns -%}
        {%- do columns.update({name: live.columns[name]}) -%}
    {%- endfor -%}
    {{ return(columns) }}
{%- endmacro %}
{% macro _descriptions(columns) -%}
    {%- set comments = [] -%}
    {%- for column in columns.values() if config.persist_column_docs() and column.description -%}
        {%- do comments.append(quoted(column.name) ~ ' comment ' ~ literal(column.description)) -%}
    {%- endfor -%}
    {{ return(comments) }}
{%- endmacro %}

{#- Where descriptions of columns are other ones now, they become the comments with the next changes. -#}
{% macro _follow_descriptions(bounds) -%}
    {%- set columns = _described_columns(bounds) -%}
    {%- set described = local_md5(_descriptions(columns) | join) -%}
    {%- if bounds.described != described -%}
        {%- do _comment_columns(this, columns) -%}
        {%- do run_query("alter table " ~ this ~ " set tblproperties ('cdc.described' = '" ~ described ~ "')") -%}
    {%- endif -%}
{%- endmacro %}

{#-
    The descriptions of the columns as comments: one statement, where dbt-spark has one for each column. Spark's ALTER
    TABLE finds fault with backticks in a name (INVALID_ATTRIBUTE_NAME_SYNTAX): a table that has such a column goes
    without.
-#}
{% macro _comment_columns(relation, columns) -%}
    {%- set comments = _descriptions(columns) -%}
    {%- if comments and '`' not in columns.keys() | join -%}
        {%- do run_query('alter table ' ~ relation ~ ' alter column ' ~ comments | join(', ')) -%}
    {%- endif -%}
{%- endmacro %}

{#- What is older than a truncate is gone. -#}
{% macro _truncate_silver(bounds) -%}
    {%- set position = literal(bounds.truncated_at) -%}
    {%- do run_query("alter table " ~ this ~ " set tblproperties ('cdc.truncated-at' = " ~ position ~ ")") -%}
    {%- set moved_later = ' and coalesce(_cdc_moves.`out`._cdc_position, \'\') < '
        ~ position if bounds.is_moved else '' -%}
    {%- do run_query('delete from ' ~ this ~ ' where _cdc_position < ' ~ position ~ moved_later) -%}
    {%- do _forget_values_before(position, bounds) -%}
    {%- if bounds.is_moved -%} {%- do _forget_moves_before(position, bounds) -%} {%- endif -%}
{%- endmacro %}

{#- A column whose write is older than a truncate has no value any more. -#}
{% macro _forget_values_before(position, bounds) -%}
    {%- set assignments = ['_cdc_held = transform_values(_cdc_held, (c, held) -> greatest(held, ' ~ position ~ '))'] -%}
    {%- for name in bounds.get('columns') if name not in bounds.get('keys') -%}
        {%- do assignments.append(quoted(name) ~ ' = if(_cdc_held[' ~ literal(name) ~ '] < ' ~ position ~ ', null, '
            ~ quoted(name) ~ ')') -%}
    {%- endfor -%}
    {%- do run_query(
        'update ' ~ this ~ ' set ' ~ assignments | join(', ') ~ ' where exists(map_values(_cdc_held), held -> held < '
            ~ position ~ ')'
    ) -%}
{%- endmacro %}

{#-
    What moved under a key before a truncate, and the row that was under it then, have no bearing on what moves
    afterwards.
-#}
{% macro _forget_moves_before(position, bounds) -%}
    {%- set is_older = '_cdc_moves.`row`._cdc_position < ' ~ position -%}
    {%- set no_row = "from_json('{\"_cdc_position\": \"\"}', '" ~ _moves_write_type() ~ "')" -%}
    {%- set row = 'if(' ~ is_older ~ ', ' ~ no_row ~ ', _cdc_moves.`row`)' -%}
    {%- set events = 'filter(_cdc_moves.events, e -> e > ' ~ position ~ ')' -%}
    {%- set shown = _shown_write(row, '_cdc_moves.`out`', events) -%}
    {%- set assignments = [
        '_cdc_held = if(' ~ is_older ~ ', null, _cdc_held)',
        '_cdc_moves = ' ~ _moves(events, row, '_cdc_moves.`out`'),
    ] -%}
    {%- for name in bounds.get('columns') if name not in bounds.get('keys') -%}
        {%- do assignments.append(quoted(name) ~ ' = if(' ~ is_older ~ ', null, ' ~ quoted(name) ~ ')') -%}
    {%- endfor -%}
    {%- for name in metadata_columns() -%}
        {%- do assignments.append(name ~ ' = ' ~ _of_shown_write(name, shown)) -%}
    {%- endfor -%}
    {%- do run_query('update ' ~ this ~ ' set ' ~ assignments | join(', ')
        ~ ' where exists(_cdc_moves.events, e -> e < ' ~ position ~ ')') -%}
{%- endmacro %}
