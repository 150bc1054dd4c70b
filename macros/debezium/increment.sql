{#-
    The changes that a model has not merged: their `relation` and a `condition`, and `stored`, the table that they are
    merged into, or none; with the bounds of the model (`_look_up_bounds`). A first build and a full refresh take
    everything.
-#}
{% macro debezium_new_changes(changes, keys, columns) -%}
    {%- if model.resource_type == 'unit_test' or not execute or flags.WHICH not in ('run', 'build') -%}
        {{ return({'relation': changes, 'condition': 'true', 'has_partial': true, 'is_of_documents': false,
            'patched': [], 'passes_keys_on': false, 'is_moved': false, 'stored': none}) }}
    {%- endif -%}
    {%- set bounds = _look_up_bounds(changes, keys, columns) -%}
    {%- do bounds_of_run().update({model.unique_id: bounds}) -%}
    {%- set condition = _batches('_cdc_append', bounds.above, bounds.up_to) if bounds.has_new else 'false' -%}
    {%- if bounds.truncated_at -%}
        {%- set condition = condition ~ ' and _cdc_position > ' ~ literal(bounds.truncated_at) -%}
    {%- endif -%}
    {{ return(dict(bounds, relation=changes, condition=condition, stored=none if bounds.is_new else this,
        patched=bounds.patched if bounds.has_partial else [])) }}
{%- endmacro %}

{#- Model → its bounds, of this run. The graph may be that of another one, where a manifest is used again. -#}
{% macro bounds_of_run() -%}
    {{ return(graph.setdefault('debezium_bounds ' ~ invocation_id, {})) }}
{%- endmacro %}

{#-
    What a silver model has to merge, as its materialization needs it. Facts of the new changes are there if `has_new`.

    - keys, columns: what the model declares,
    - added: new columns in which no merged change has a value,
    - declaration: a digest of what the change log was built by; is_described: whether the table's properties have it,
    - changes: the change log, as text,
    - is_new: whether the table is built from all events,
    - bronze: the identity of the table of records; is_routed: whether the change log reads them of an events model,
    - above, up_to: the newest append that this table has merged (0 for none), and the newest there is,
    - has_new: whether changes or rejected records lie between the two,
    - found, replaced: of a rebuild, the changes and rejected records among those read before, and what
      `_counted_by_replaced` knows,
    - truncated_at: the position of the last truncate; known_truncated_at: the stored one; is_truncated: whether new
      changes hold one,
    - described: a digest of the comments of its columns,
    - has_partial: whether new changes have unavailable values,
    - is_of_documents, patched: whether the table has patches, and the columns with some,
    - passes_keys_on, tells_moves, is_moved: whether the table has `_cdc_moves`, the change log `_cdc_move`, and rows
      some of these,
    - lowest, merged_position: the least place in the log of new changes, and the greatest one merged,
    - is_whole: whether no row ever had an unavailable value,
    - is_narrow: whether the newer row counts as a whole,
    - counted, newest_batch: how many changes and rejected records were merged (`<number>:<number>`, empty if unknown),
      and up to which batch,
    - batch: the column that holds the batch.
-#}
{% macro _look_up_bounds(changes, keys, columns) -%}
    {%- set existing = load_relation(this) if is_incremental() else none -%}
    {%- set stored = _table_properties(existing) if existing else {} -%}
    {%- set merged = merged_by_silver(existing, stored) if existing else {} -%}
    {%- do _check_same_key(keys, stored) if existing -%}
    {%- set source = _records_of(changes) -%}
    {%- do _check_keys(keys, source) -%}
    {%- set state = state_of_log(changes, source) -%}
    {%- set declaration = declaration_digest(state.base ~ (' with patches' if source.is_of_documents else '')
        ~ (' with moves' if source.passes_keys_on else '')) -%}
    {%- set added = _columns_added_to_silver(stored, changes, columns, _batches('_cdc_append', 0, merged.up_to))
        if stored.get('cdc.declaration') == declaration else none -%}
    {%- set is_new = added is none -%}
    {%- if existing and (is_new or added) -%}
        {%- do _report_changed_declaration(fromjson(stored.get('cdc.columns', '[]')), columns, is_new) -%}
    {%- endif -%}
    {%- do _check_bronze(source.bronze, stored) -%}
    {%- if is_new -%}
        {%- set merged = {'up_to': 0, 'second': '', 'batch': 0, 'is_whole': true} -%}
    {%- endif -%}
    {#- A log that is behind was rolled back, and no snapshot says so any more: it is read again from its beginning. #}
    {%- set above = merged.up_to if merged.up_to <= state.append else 0 -%}
    {%- set bounds = {
        'keys': keys,
        'columns': columns,
        'added': added or [],
        'declaration': declaration,
        'is_described': true,
        'changes': changes | string,
        'is_new': is_new,
        'bronze': landed_batches(source.bronze).id,
        'is_routed': source.routed_by is not none,
        'above': above,
        'up_to': state.append,
        'has_new': is_new or state.append > above,
        'truncated_at': '' if is_new else stored.get('cdc.truncated-at', ''),
        'known_truncated_at': stored.get('cdc.truncated-at', ''),
        'described': stored.get('cdc.described', ''),
        'is_of_documents': source.is_of_documents,
        'patched': [],
        'passes_keys_on': source.passes_keys_on,
        'tells_moves': source.tells_moves,
        'is_moved': source.tells_moves and merged.is_moved,
        'merged_position': merged.second,
        'is_whole': merged.is_whole,
        'counted': merged.counted if above else '0:0',
        'newest_batch': merged.batch,
        'replaced': _counted_by_replaced(landed_batches(source.bronze).id) if is_new else {},
        'batch': '_cdc_batch',
    } -%}
    {%- do _ask_new_changes(bounds) if bounds.has_new -%}
    {%- do _check_all_is_there(bounds, source.bronze) if is_new -%}
    {{ return(bounds) }}
{%- endmacro %}

{% macro _check_same_key(keys, stored) -%}
    {%- if stored.get('cdc.keys') != local_md5(tojson(keys)) -%}
        {{ exceptions.raise_compiler_error(
            'model ' ~ model.name ~ ': the key is ' ~ tojson(keys) ~ ', but the table was built with another one.\n'
            ~ '  Rebuild it: .venv/bin/dbt run --full-refresh --select ' ~ model.name
        ) }}
    {%- endif -%}
{%- endmacro %}

{#- Note in `bounds` what the new changes are. -#}
{% macro _ask_new_changes(bounds) -%}
    {%- set new = new_changes(bounds) -%}
    {%- set found = run_query(_question_of_changes(bounds, new)).rows[0] -%}
    {%- set counted = bounds.counted.split(':') | map('int') | list if bounds.counted else none -%}
    {%- do bounds.update({
        'has_new': bounds.is_new or found.changes + found.rejected > 0,
        'counted': (counted[0] + found.changes | int) ~ ':'
            ~ (counted[1] + found.rejected | int - found.replayed | int) if counted else '',
        'newest_batch': [bounds.newest_batch, (found.newest_batch or 0) | int] | max(case_sensitive=true),
        'found': [found.replaced_changes | int, found.replaced_rejects | int],
        'has_partial': found.partial > 0,
        'is_moved': bounds.is_moved or found.moved > 0,
        'lowest': found.lowest,
        'is_truncated': found.truncated_at is not none,
        'truncated_at': [bounds.truncated_at, found.truncated_at or ''] | max(case_sensitive=true),
    }) -%}
    {%- if bounds.is_of_documents -%}
        {%- set patches = 'select explode(_cdc_patches.name) from ' -%}
        {%- set names = run_query(patches ~ new ~ ('' if bounds.is_new else ' union ' ~ patches ~ this)) -%}
        {%- do bounds.update({'patched': bounds.columns | select('in', names.columns[0].values()) | list}) -%}
    {%- elif bounds.has_partial and '_cdc_patches' in run_query('describe ' ~ bounds.changes).columns[0].values() -%}
        {{ exceptions.raise_compiler_error(
            'model ' ~ model.name ~ ': its staging model reads documents that updates change in part, '
            ~ 'and does not say so.\n'
            ~ '  Give it meta.debezium.connector and keys in its YAML, as make run writes them.'
        ) }}
    {%- endif -%}
    {#- Where a row may hold a value, a late change of the whole row would overwrite it, unless it is no late one. #}
    {%- do bounds.update({
        'is_whole': bounds.is_whole and not bounds.has_partial,
        'is_narrow': not bounds.has_partial and not bounds.patched and not bounds.is_moved
            and (bounds.is_whole or (bounds.lowest or '') > bounds.merged_position),
    }) -%}
    {%- do bounds.update({'merged_position': [bounds.merged_position,
        found.highest or ''] | max(case_sensitive=true)}) -%}
{%- endmacro %}

{#- The query that asks what new changes are. -#}
{% macro _question_of_changes(bounds, new) -%}
    {%- set is_change, is_reject = "_cdc_kind in ('change', 'truncate') and not " ~ _is_old_half(),
        "_cdc_kind = 'rejected' and not " ~ _is_old_half() -%}
    {%- set is_replaced = ' and _cdc_batch <= ' ~ bounds.replaced.batch if bounds.replaced.batch is defined else '' -%}
    {%- set asked = {
        'changes': 'count_if(' ~ is_change ~ ')',
        'rejected': 'count_if(' ~ is_reject ~ ')',
        'replaced_changes': 'count_if(' ~ is_change ~ is_replaced ~ ')',
        'replaced_rejects': 'count_if(' ~ is_reject ~ is_replaced ~ ')',
        'replayed': 'count_if((' ~ is_change ~ ' or ' ~ is_reject ~ ') and _cdc_batch <= ' ~ bounds.newest_batch ~ ')',
        'newest_batch': 'max(_cdc_batch)',
        'partial': 'count(_cdc_omitted)',
        'moved': "count_if(contains(_cdc_move, ' '))" if bounds.tells_moves else '0',
        'lowest': 'min(' ~ log_position() ~ ") filter (where _cdc_kind in ('change', 'truncate'))",
        'highest': 'max(' ~ log_position() ~ ") filter (where _cdc_kind = 'change')",
        'truncated_at': "max(_cdc_position) filter (where _cdc_kind = 'truncate')",
    } -%}
    {%- set aggregates = [] -%}
    {%- for name, aggregate in asked.items() -%} {%- do aggregates.append(aggregate ~ ' as ' ~ name) -%} {%- endfor -%}
    {{ return('select ' ~ aggregates | join(', ') ~ ' from ' ~ new ~ " as new where _cdc_kind <> 'other_table'") }}
{%- endmacro %}

{#-
    How many records of each batch, kind, operation and reason a change log holds. The old half of a change of key is no
    record.
-#}
{% macro count_changes_sql(changes, condition='true') -%}
select
    _cdc_batch as batch,
    _cdc_kind as kind,
    _cdc_op as op,
    _cdc_reject_reason as reject_reason,
    count(*) as events,
    max(_cdc_changed_at) as newest_change_at
from {{ changes }}
where _cdc_kind <> 'other_table' and not {{ _is_old_half() }} and {{ condition }}
group by _cdc_batch, _cdc_kind, _cdc_op, _cdc_reject_reason
{%- endmacro %}

{#- Whether a row of a change log is the old half of a change of key. -#}
{% macro _is_old_half() -%}
    {{ return("endswith(coalesce(_cdc_event_id, ''), '#before')") }}
{%- endmacro %}
