{#-
    Appending to a change log, and reading it (docs/decisions/0010). `debezium_changes` gives the rows. An events model,
    which other change logs read, grows in the same way.
-#}

{#-
    The condition of the records that the change log of this model lacks, and the number of this append; all records
    outside of a run. `declared`: the arguments of `debezium_changes`.
-#}
{% macro _new_records_of_log(declared) -%}
    {%- if model.resource_type == 'unit_test' or not execute or flags.WHICH not in ('run', 'build') -%}
        {{ return({'condition': '', 'append': 0, 'replayed': '', 'pruned': 0}) }}
    {%- endif -%}
    {%- set source = _records_read_by(graph.nodes[model.unique_id]) -%}
    {%- set bounds = _bounds_of_records(source, declared) -%}
    {%- do bounds.update({'properties': {
        'write.parquet.stats-enabled.column._cdc_value': 'false',
        'write.parquet.dict-encoding-enabled.column._cdc_value': 'false',
        'cdc.compared': '0',
        'cdc.resets': '{}',
        'cdc.events': bounds.events,
    }}) -%}
    {%- do bounds_of_run().update({model.unique_id: bounds}) -%}
    {%- set pruned = _pruned_records(source) if bounds.is_new else 0 -%}
    {%- if pruned and (should_full_refresh() or _table_properties(this).get('cdc.kept') == bounds.bronze) -%}
        {%- do bounds.properties.update({'cdc.kept': bounds.bronze}) -%}
    {%- endif -%}
    {{ return({
        'bronze': source.bronze,
        'pruned': pruned,
        'condition': ' and ' ~ _batches('batch', bounds.above, bounds.up_to),
        'append': bounds.append,
        'has_new': bounds.has_new,
        'replayed': '' if bounds.is_new else _records_to_replay(bounds, source, declared),
    }) }}
{%- endmacro %}

{#-
    The condition of the records to type again, or for the first time; empty if there are none: those that this change
    log has rejected, for `make replay`, and those that an events model, which was replayed or built anew, names this
    table for by now.
-#}
{% macro _records_to_replay(bounds, source, declared) -%}
    {%- set of_log, found = "select replace(_cdc_event_id, '#before', '') as id, _cdc_batch as batch from " ~ this,
        [] -%}
    {%- do found.append(of_log ~ ' where _cdc_reject_reason is not null') if env_var('REPLAY', '') -%}
    {%- if bounds.events != bounds.known_events -%}
        {%- do found.append('select * from (select ' ~ _record_id() ~ ' as id, batch from ' ~ source.relation
            ~ ' where error is null and topic in (' ~ _literals(declared.topics) ~ ') and '
            ~ _is_of_table(declared.table) ~ ' and batch <= ' ~ bounds.above ~ ') left anti join (' ~ of_log
            ~ ') using (id, batch)') -%}
    {%- endif -%}
    {%- set ids = found | join(' union all ') -%}
    {%- set batches = run_query('select distinct batch from (' ~ ids ~ ')').columns[0].values() if ids else [] -%}
    {%- if not batches -%} {{ return('') }} {%- endif -%}
    {{ return(' and batch in (' ~ batches | join(', ') ~ ') and (' ~ _record_id() ~ ', batch) in (' ~ ids ~ ')') }}
{%- endmacro %}

{% macro _name_of_replay() -%}
    {{ return(local_md5('replay ' ~ invocation_id)) }}
{%- endmacro %}

{#- The name of the last replay or rebuild of the events model that is read; empty if there is none. -#}
{% macro _base_of_events(source) -%}
    {%- if not source.routed_by -%} {{ return('') }} {%- endif -%}
    {{ return((bounds_of_run().get(source.routed_by) or {}).base or _base(_table_properties(source.relation))) }}
{%- endmacro %}

{#-
    Give the rows of a change log the positions of other epochs (`bounds.epochs`), without its records. Whether the log
    has resets is asked again. The append that follows is compared with what this leaves behind. If a run dies in
    between, no text of the model is what the log was built by.
-#}
{% macro _follow_epochs(bounds) -%}
    {%- do run_query('alter table ' ~ this ~ " set tblproperties ('cdc.compared' = '0', 'cdc.resets' = '{}',"
        ~ " 'cdc.declaration' = 'other epochs')") -%}
    {#- With the number of an append, a roll-back to what was before is seen. #}
    {%- do _store_with_next_commit(dict(bounds, up_to=bounds.above)) -%}
    {%- do run_query('update ' ~ this ~ ' set _cdc_position = ' ~ bounds.epochs ~ ' where _cdc_position <> '
        ~ bounds.epochs) -%}
    {%- do _store_with_next_commit(none) -%}
    {%- do bounds.update({'snapshot': _head_after(bounds.snapshot, 1)}) -%}
{%- endmacro %}

{#-
    The snapshot of a change log, where this run has made no more than so many commits since the one that its bounds
    were looked up in. An error if another run has committed meanwhile: its readers are rebuilt by the next one.
-#}
{% macro _head_after(snapshot, commits) -%}
    {%- set head, parents = _table_properties(this)['current-snapshot-id'], {} -%}
    {%- for id, parent in run_query('select cast(snapshot_id as string), cast(parent_id as string) from ' ~ this
        ~ '.snapshots').rows -%}
        {%- do parents.update({id: parent}) -%}
    {%- endfor -%}
    {%- set found = [head] -%}
    {%- for _ in range(commits) -%} {%- do found.append(parents.get(found[-1])) -%} {%- endfor -%}
    {%- if snapshot not in found -%}
        {%- do run_query('alter table ' ~ this ~ " set tblproperties ('cdc.declaration' = 'other epochs')") -%}
        {{ exceptions.raise_compiler_error('model ' ~ model.name
            ~ ': another run has appended changes meanwhile. Nothing is lost; run it again.') }}
    {%- endif -%}
    {{ return(head) }}
{%- endmacro %}

{#-
    Another run may have given the log other epochs since the bounds were looked up. The rows that were appended have
    not got them: the next run sees to it, whatever is declared then.
-#}
{% macro _check_no_other_epochs(bounds) -%}
    {%- set stored = _table_properties(this) -%}
    {%- if stored['cdc.declaration'] == 'other epochs' or _base(stored) != bounds.base -%}
        {%- do run_query('alter table ' ~ this ~ " set tblproperties ('cdc.declaration' = 'other epochs')") -%}
        {{ exceptions.raise_compiler_error('model ' ~ model.name
            ~ ': another run has changed epochs meanwhile. Nothing is lost; run it again.') }}
    {%- endif -%}
{%- endmacro %}

{#- The number of the last append of a change log after this run. -#}
{% macro _last_append(bounds) -%}
    {%- set appends = bounds.has_new + (bounds.replay is defined) -%}
    {{ return(bounds.append - 1 + appends if appends else bounds.last_append) }}
{%- endmacro %}

{#-
    The increment of a table that grows by appending records, as its materialization needs it (`_look_up_bounds`).

    - source: mapping, as of `_records_read_by`,
    - declared: of a change log, the arguments of `debezium_changes`.

    A change log that was rolled back, or whose rows get other epochs, gets another `base`: its readers have merged
    what it does not hold, and are rebuilt.
-#}
{% macro _bounds_of_records(source, declared=none) -%}
    {%- set bronze, up_to = source.bronze, newest_batch_of(source) -%}
    {%- set declaration = declaration_digest(model.raw_code) -%}
    {%- set table = load_relation(this) -%}
    {%- set existing = table if is_incremental() else none -%}
    {%- set stored = _table_properties(table) if table and not table.is_view else {} -%}
    {%- set merged = {'up_to': 0, 'append': 0, 'greatest': 0} -%}
    {%- if stored and declared -%}
        {%- set merged = appended_to_log(table, stored) -%}
    {%- elif existing -%}
        {%- set merged = merged_up_to(existing, "max(batch), ''", stored) -%}
    {%- endif -%}
    {%- set above = merged.up_to -%}
    {%- set is_same = stored.get('cdc.declaration') == declaration and not (declared
        and _is_declared_otherwise(stored, declared)) -%}
    {%- set is_rolled_back = declared and merged.greatest > merged.append -%}
    {%- set before = fromjson(stored.get('cdc.declared') or '{}').get('epochs', []) if declared else [] -%}
    {%- set has_other_epochs = declared and (before != declared.epochs or is_rolled_back
        or stored.get('cdc.declaration') == 'other epochs') -%}
    {%- set added = none -%}
    {%- if existing -%}
        {%- set added = [] if is_same else _columns_added_to_log(stored, declared, above) if declared else none -%}
    {%- endif -%}
    {%- set is_new = added is none -%}
    {%- set above = 0 if is_new else above -%}
    {%- do _check_bronze(bronze, stored if existing else {}) -%}
    {%- do _check_read_before_pruned(source, bronze, merged.up_to) if stored and (declared or existing) -%}
    {{ return({
        'columns': declared.columns.keys() | list if declared else [],
        'added': added or [],
        'declaration': declaration,
        'declared': _declared_text(declared) if declared else '',
        'base': local_md5(declaration ~ invocation_id) if is_new or is_rolled_back
            or has_other_epochs else _base(stored),
        'last_append': merged.append,
        'append': 1 + merged.greatest if declared else 0,
        'replayed': '' if is_new else stored.get('cdc.replayed', ''),
        'events': _base_of_events(source),
        'known_events': stored.get('cdc.events', ''),
        'is_described': is_same and not is_rolled_back and not has_other_epochs,
        'epochs': _position_in_epochs(declared.epochs, declared.topics) if has_other_epochs and not is_new else '',
        'bronze': landed_batches(bronze).id,
        'is_new': is_new,
        'above': above,
        'up_to': up_to,
        'has_new': is_new or up_to > above and _has_records(source, above, up_to),
        'snapshot': none if is_new else stored['current-snapshot-id'],
        'batch': '_cdc_batch' if declared else 'batch',
        'properties': {},
    }) }}
{%- endmacro %}

{#-
    The newest batch of a change log (`up_to`), the number of its last `append`, its `columns`, the name of its last
    rebuild (`base`), of the last replay (`replayed`), and of that of its `events` model; without the first two, which
    cost a query, if it can have nothing new. An error if the log is not what its model says now: silver would merge the
    rows of the old text, and never read them again.
-#}
{% macro state_of_log(changes, source, can_have_new=true) -%}
    {%- set of_run = bounds_of_run().get(source.id) -%}
    {%- if of_run -%}
        {%- set append = _last_append(of_run) -%}
        {{ return(dict(of_run, append=append,
            replayed=_name_of_replay() if of_run.replay is defined else of_run.replayed)) }}
    {%- endif -%}
    {%- set stored = _table_properties(changes) -%}
    {%- do _check_bronze(source.bronze, stored) -%}
    {%- if stored.get('cdc.declaration') != declaration_digest(source.declaration) -%}
        {{ exceptions.raise_compiler_error(
            'model ' ~ model.name ~ ': ' ~ changes
                ~ ' is not what its model says now, and the model is not in this run.\n'
            ~ '  Build it with the models that read it: .venv/bin/dbt run --select ' ~ changes.identifier ~ '+'
        ) }}
    {%- endif -%}
    {{ return(dict(
        appended_to_log(changes, stored) if can_have_new else {},
        base=_base(stored), columns=fromjson(stored.get('cdc.columns', '[]')), replayed=stored.get('cdc.replayed', ''),
        events=stored.get('cdc.events', ''),
    )) }}
{%- endmacro %}

{#- The increment of a silver model, as a query of its change log. -#}
{% macro new_changes(bounds) -%}
    {{ return('(select * from ' ~ bounds.changes ~ ' where ' ~ _batches('_cdc_append', bounds.above, bounds.up_to)
        ~ ')') }}
{%- endmacro %}
