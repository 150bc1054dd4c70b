{#-
    Where a model finds the changes that it has not merged yet: a mapping with `relation`, `condition`, a boolean
    over its columns, `has_partial`, whether changes among them leave out values, `is_of_documents`, whether they may hold patches,
    `patched`, the columns of which they do, `passes_keys_on`, whether rows may pass keys on, `is_moved`, whether some did,
    and `stored`, the table that they are merged into, if any. A first build and a full refresh take everything.

    When a model runs, what its new changes are (how many of each kind, the newest truncate) is asked of the change log.

    - changes: relation, the change log,
    - keys, columns: lists of texts, what the model declares.
-#}
{% macro debezium_new_changes(changes, keys, columns) -%}
    {%- if model.resource_type == 'unit_test' or not execute or flags.WHICH not in ('run', 'build') -%}
        {{ return({'relation': changes, 'condition': 'true', 'has_partial': true, 'is_of_documents': false, 'patched': [], 'passes_keys_on': false, 'is_moved': false, 'stored': none}) }}
    {%- endif -%}
    {%- set bounds = _look_up_bounds(changes, keys, columns) -%}
    {%- do bounds_of_run().update({model.unique_id: bounds}) -%}
    {%- set condition = _batches('_cdc_batch', bounds.above, bounds.up_to) if bounds.has_new else 'false' -%}
    {%- if bounds.truncated_at -%}
        {%- set condition = condition ~ ' and _cdc_position > ' ~ literal(bounds.truncated_at) -%}
    {%- endif -%}
    {{ return({
        'relation': changes,
        'condition': condition,
        'has_partial': bounds.has_partial,
        'is_of_documents': bounds.is_of_documents,
        'patched': bounds.patched if bounds.has_partial else [],
        'passes_keys_on': bounds.passes_keys_on,
        'is_moved': bounds.is_moved,
        'stored': none if bounds.is_new else this,
    }) }}
{%- endmacro %}


{#- Model → its bounds, of this run. The graph may be that of another one, where a manifest is used again. -#}
{% macro bounds_of_run() -%}
    {{ return(graph.setdefault('debezium_bounds ' ~ invocation_id, {})) }}
{%- endmacro %}


{#-
    - keys, columns: what the model declares,
    - declaration: a digest of its columns and of its staging model's text,
    - changes: the change log, as text,
    - is_new: whether the table has to be built from all events: it is not there, or was built by another declaration,
    - bronze: the identity of the table of records,
    - is_routed: whether the change log reads them of an events model,
    - above: the newest batch that this table has merged (0 for none),
    - up_to: the newest batch there is,
    - has_new: whether the log has records between the two,
    - counts: what they are: lists of batch, kind, operation, reason, events, newest change,
    - is_log: whether its positions are those of a log,
    - truncated_at: the position of the last truncate that is known, stored or among the new events,
    - known_truncated_at: the stored one,
    - described: a digest of the descriptions that its columns have as comments,
    - truncated_by: its event, the time of it as text, and its batch; none where there is none,
    - is_truncated: whether the new events hold a truncate,
    - has_partial: whether some of them leave out values,
    - is_of_documents: whether the table has patches of columns of JSON,
    - patched: columns of which it or the new changes have some,
    - passes_keys_on: whether the table has `_cdc_moves`,
    - tells_moves: whether the staging model has `_cdc_move`,
    - is_moved: whether it or the new changes may have any,
    - lowest: the least place in the log of the new changes and truncates,
    - places, batches: hashes of their partitions or files, and their batches, two where there are more,
    - has_snapshot, is_of_topic: whether some are rows of a snapshot; whether some have no place in a log,
    - is_in_order: whether the changes of each key stand in each partition or file in the order of the log,
    - has_key_in_places: whether changes of one key stand in two partitions or files,
    - merged_position: the greatest place in the log that was merged; with the new changes, once they are read,
    - is_whole: whether no row ever held a value that its newest change left out; with the new changes, once they are read,
    - is_narrow: whether the newer row counts as a whole wherever two meet,
    - counted: how many changes and rejected records were merged, as `<number>:<number>`, with the new ones; empty where that is not known,
    - known_resets, resets: where the log has started over, as stored and as `debezium_resets` finds it now,
    - snapshot: the one that was looked at, where rows have no key that would show that another run has written them since,
    - batch: the column of the table that holds the batch.
-#}
{% macro _look_up_bounds(changes, keys, columns) -%}
    {%- set existing = load_relation(this) if is_incremental() else none -%}
    {%- set stored = _silver_properties(existing) if existing else {} -%}
    {%- set snapshot = stored['current-snapshot-id'] if existing and not keys else none -%}
    {%- set merged = merged_up_to(existing, '_cdc_batch', stored) if existing else {} -%}
    {%- if existing and stored.get('cdc.keys') != local_md5(tojson(keys)) -%}
        {{ exceptions.raise_compiler_error(
            'model ' ~ model.name ~ ': the key is ' ~ tojson(keys) ~ ', but the table was built with another one.\n'
            ~ '  Rebuild it: .venv/bin/dbt run --full-refresh --profiles-dir profiles --select ' ~ model.name
        ) }}
    {%- endif -%}
    {%- set source = _records_of(changes) -%}
    {%- if keys and source['keys'] is not none and _without_blanks(source['keys']) != _without_blanks(keys) -%}
        {{ exceptions.raise_compiler_error(
            'model ' ~ model.name ~ ': the key is ' ~ tojson(keys) ~ ', and its staging model has ' ~ tojson(source['keys']) ~ ' (`keys` in the meta of its YAML).\n'
            ~ '  A delete has the key of the staging model only. Write the same in both models and in the YAML, and build both.'
        ) }}
    {%- endif -%}
    {%- set declaration = declaration_digest(tojson(columns) ~ source.declaration ~ (' with patches' if source.is_of_documents else '') ~ (' with moves' if source.passes_keys_on else '')) -%}
    {%- set is_new = existing is none or stored.get('cdc.declaration') != declaration -%}
    {%- if existing and is_new -%}
        {%- do _report_changed_declaration(_stored_columns(existing), columns) -%}
    {%- endif -%}
    {%- do _check_bronze(source.bronze, stored) -%}
    {%- if is_new -%} {%- set snapshot, merged = none, {'batch': 0, 'position': '', 'counted': '0:0', 'is_moved': false, 'is_whole': true} -%} {%- endif -%}
    {%- set above = merged.batch -%}
    {#- Of a table whose snapshots are gone: what it was built from, unless some of that is read, and would be counted, again. #}
    {%- set built_from, _, counted_then = stored.get('cdc.built-from', '').partition(' ') -%}
    {%- set up_to = newest_batch_of_log(changes, source) -%}
    {%- set bounds = {
        'keys': keys,
        'columns': columns,
        'declaration': declaration,
        'changes': changes | string,
        'is_new': is_new,
        'bronze': landed_batches(source.bronze).id,
        'is_routed': source.routed_by is not none,
        'above': above,
        'up_to': up_to,
        'has_new': is_new or up_to > above,
        'counts': [],
        'truncated_at': '' if is_new else stored.get('cdc.truncated-at', ''),
        'truncated_by': none if is_new else fromjson(stored.get('cdc.truncated-by', 'null')),
        'known_truncated_at': stored.get('cdc.truncated-at', ''),
        'described': stored.get('cdc.described', ''),
        'is_truncated': false,
        'has_partial': false,
        'is_of_documents': source.is_of_documents,
        'patched': [],
        'passes_keys_on': source.passes_keys_on,
        'tells_moves': source.tells_moves,
        'is_moved': source.tells_moves and merged.is_moved,
        'is_log': source.is_log,
        'lowest': none,
        'places': [],
        'batches': [],
        'has_snapshot': false,
        'is_of_topic': false,
        'is_in_order': true,
        'has_key_in_places': false,
        'merged_position': merged.position,
        'is_whole': merged.is_whole,
        'is_narrow': false,
        'counted': merged.counted or (counted_then if above >= built_from | int else ''),
        'known_resets': '{}' if is_new else stored.get('cdc.resets', '{}'),
        'resets': '{}',
        'snapshot': snapshot,
        'batch': '_cdc_batch',
    } -%}
    {%- do _ask_new_changes(bounds) if bounds.has_new -%}
    {%- do _check_all_is_there(bounds, source.bronze) if is_new -%}
    {{ return(bounds) }}
{%- endmacro %}


{#-
    By what a table was built. The number grows with changes of these macros that give other rows of the same events: the tables that
    there are are built anew then.
-#}
{% macro declaration_digest(text) -%}
    {{ return(local_md5('6 ' ~ text)) }}
{%- endmacro %}


{#- Note in `bounds` what the new changes are. -#}
{% macro _ask_new_changes(bounds) -%}
    {%- set new = new_changes(bounds) -%}
    {%- set asks_order = bounds.is_log and bounds.get('keys') -%}
    {#- A set of few numbers is also what keeps Spark from sorting all changes to count them. #}
    {%- set places = 'to_json(slice(sort_array(collect_set(_cdc_place_hash)), 1, 2))' -%}
    {%- set of_truncate = "filter (where _cdc_kind = 'truncate')" -%}
    {%- set further = [
        'max(_cdc_position)', 'count(_cdc_omitted)', 'min(' ~ log_position() ~ ')', 'max(' ~ log_position() ~ ')',
        'max_by(_cdc_event_id, _cdc_position) ' ~ of_truncate, 'cast(max_by(_cdc_changed_at, _cdc_position) ' ~ of_truncate ~ ' as string)',
        "count_if(contains(_cdc_move, ' '))" if bounds.tells_moves else '0',
        places, 'count_if(_cdc_is_snapshot)', 'count_if(' ~ _has_no_log_place() ~ ')',
        'any_value((' ~ _order_of_keys(new, bounds.get('keys')) ~ '))' if asks_order else '0', _is_old_half(),
    ] -%}
    {%- set found = run_query(count_changes_sql(new, ', ' ~ further | join(', '), with_old_halves=true)) -%}
    {%- do bounds.update({'has_new': bounds.is_new or found.rows | length > 0}) -%}
    {%- set newest = [] -%}
    {%- for row in found.rows if row[16] -%}
        {%- do bounds.update({'is_in_order': row[16] | int in (0, 2), 'has_key_in_places': row[16] | int >= 2}) -%}
    {%- endfor -%}
    {%- for row in found.rows if not row[17] -%}
        {%- do bounds.counts.append(row.values()[:6] | list) -%}
        {%- if row[1] == 'truncate' and row[6] > bounds.truncated_at -%}
            {%- do bounds.update({'truncated_at': row[6], 'truncated_by': [row[10], row[11], row[0]]}) -%}
        {%- endif -%}
        {%- if row[1] == 'truncate' -%} {%- do bounds.update({'is_truncated': true}) -%} {%- endif -%}
        {%- if row[1] in ('change', 'truncate') -%}
            {%- do bounds.update({
                'lowest': [bounds.lowest or row[8], row[8]] | min(case_sensitive=true),
                'places': ((bounds.places + fromjson(row[13])) | unique(case_sensitive=true) | list)[:2],
                'batches': ((bounds.batches + [row[0]]) | unique(case_sensitive=true) | list)[:2],
                'has_snapshot': bounds.has_snapshot or row[14] > 0,
                'is_of_topic': bounds.is_of_topic or row[15] > 0,
            }) -%}
        {%- endif -%}
        {%- if row[1] == 'change' -%} {%- do newest.append(row[9]) -%} {%- endif -%}
        {%- if row[7] -%} {%- do bounds.update({'has_partial': true}) -%} {%- endif -%}
        {%- if row[12] -%} {%- do bounds.update({'is_moved': true}) -%} {%- endif -%}
    {%- endfor -%}
    {%- if bounds.is_of_documents -%}
        {%- set patches = 'select explode(_cdc_patches.name) from ' -%}
        {%- set found = run_query(patches ~ new ~ ('' if bounds.is_new else ' union ' ~ patches ~ this)) -%}
        {%- do bounds.update({'patched': bounds.columns | select('in', found.columns[0].values()) | list}) -%}
    {%- elif bounds.has_partial and '_cdc_patches' in run_query('describe ' ~ bounds.changes).columns[0].values() -%}
        {{ exceptions.raise_compiler_error(
            'model ' ~ model.name ~ ': its staging model reads documents that updates change in part, and does not say so.\n'
            ~ '  Give it meta.debezium.connector and keys in its YAML, as make run writes them.'
        ) }}
    {%- endif -%}
    {%- if bounds.counted -%}
        {%- set before, new = bounds.counted.split(':') | map('int') | list, _counted(bounds.counts, bounds.up_to) -%}
        {%- do bounds.update({'counted': (before[0] + new[0]) ~ ':' ~ (before[1] + new[1])}) -%}
    {%- endif -%}
    {%- do bounds.update({'resets': debezium_resets(bounds)}) -%}
    {#- Where a row may hold a value, a late change of the whole row would overwrite it, unless it is no late one. #}
    {%- do bounds.update({
        'is_whole': bounds.is_whole and not bounds.has_partial,
        'is_narrow': not bounds.has_partial and not bounds.patched and not bounds.is_moved
            and (bounds.is_whole or (bounds.lowest or '') > bounds.merged_position),
    }) -%}
    {%- do bounds.update({'merged_position': ([bounds.merged_position] + newest) | max(case_sensitive=true)}) -%}
{%- endmacro %}


{#-
    How many records of each batch, kind, operation and reason a relation of changes holds; `further` are aggregates besides. The old half of
    a change of key is no record; `with_old_halves` they are counted too, in rows of their own.
-#}
{% macro count_changes_sql(relation, further='', condition='true', with_old_halves=false) -%}
    {%- set is_counted = "_cdc_kind <> 'other_table'" ~ ('' if with_old_halves else ' and not ' ~ _is_old_half()) %}
select
    _cdc_batch as batch,
    _cdc_kind as kind,
    _cdc_op as op,
    _cdc_reject_reason as reject_reason,
    count(*) as events,
    cast(max(_cdc_changed_at) as string) as newest_change_at
    {{- further }}
from {{ relation }}
where {{ is_counted }} and {{ condition }}
group by _cdc_batch, _cdc_kind, _cdc_op, _cdc_reject_reason {{- ', ' ~ _is_old_half() if with_old_halves }}
{%- endmacro %}


{% macro _is_old_half() -%}
    {{ return("endswith(coalesce(_cdc_event_id, ''), '#before')") }}
{%- endmacro %}


{#- What the staging model behind `changes` reads. -#}
{% macro _records_of(changes) -%}
    {%- for id in model.depends_on.nodes if graph.nodes.get(id) and graph.nodes[id].alias == changes.identifier and graph.nodes[id].schema == changes.schema -%}
        {%- set staging = graph.nodes[id] -%}
        {%- if staging.depends_on.nodes -%}
            {{ return(_records_read_by(staging)) }}
        {%- endif -%}
    {%- endfor -%}
    {{ exceptions.raise_compiler_error(
        'model ' ~ model.name ~ ': changes has to be ref() of a staging model that reads the records of a system; found ' ~ changes ~ '.'
    ) }}
{%- endmacro %}


{#- dbt reads a line break in a text of its YAML as none, or as another. -#}
{% macro _without_blanks(names) -%}
    {%- set found = [] -%}
    {%- for name in names -%} {%- do found.append(modules.re.sub('\\s', '', name)) -%} {%- endfor -%}
    {{ return(found) }}
{%- endmacro %}


{#- Whether a text of a model has none of some names. -#}
{% macro _names_none_of(text, names) -%}
    {%- for name in names if literal(name) in text or tojson(name) in text -%} {{ return(false) }} {%- endfor -%}
    {{ return(true) }}
{%- endmacro %}


{#-
    - id: of a staging model,
    - relation: the records that it reads,
    - bronze: the records that have landed,
    - topics, connector: those of its `meta`; none where it has none,
    - table: the names of the table in the source, of its `meta`; none where it has none,
    - keys: the key columns of its `meta`; none where it has none,
    - routed_by: the events model that it reads, or none,
    - declaration: its text,
    - is_log: whether its connector's positions are those of a log,
    - is_of_documents: whether its rows are documents with a key,
    - passes_keys_on: whether rows may pass keys on in a transaction,
    - tells_moves: whether the staging model has what tells that; not where its text names another connector than its `meta`.
-#}
{% macro _records_read_by(staging) -%}
    {%- set parent = staging.depends_on.nodes[0] -%}
    {%- set records = graph.sources.get(parent) or graph.nodes[parent] -%}
    {%- if parent not in graph.sources and records.config.get('incremental_strategy') != 'debezium_merge' -%}
        {{ exceptions.raise_compiler_error(
            'model ' ~ model.name ~ ': changes has to be ref() of a staging model that reads the records of a system; ' ~ staging.name ~ ' reads ' ~ records.name ~ '.'
        ) }}
    {%- endif -%}
    {%- set meta = staging.config.get('meta', {}).get('debezium', {}) -%}
    {%- set bronze = graph.sources.get(parent) or graph.sources.get(records.depends_on.nodes | first) or records -%}
    {{ return({
        'id': staging.unique_id,
        'bronze': api.Relation.create(schema = bronze.schema, identifier = bronze.identifier or bronze.alias),
        'relation': api.Relation.create(schema = records.schema, identifier = records.identifier or records.alias),
        'topics': meta.get('topics', []),
        'connector': meta.get('connector', ''),
        'table': meta.get('table'),
        'keys': meta.get('keys'),
        'routed_by': parent if parent in graph.nodes else none,
        'declaration': staging.raw_code,
        'is_log': not meta.get('connector') or debezium_connector(meta.connector).is_log,
        'is_of_documents': is_of_documents(meta),
        'passes_keys_on': _passes_keys_on(meta),
        'tells_moves': _passes_keys_on(meta) and ("'" ~ meta.connector ~ "'" in staging.raw_code or '"' ~ meta.connector ~ '"' in staging.raw_code),
    }) }}
{%- endmacro %}


{#-
    The newest batch whose records can be read: of an events model the one that it has read itself, which is behind
    what has landed where the model was left out of a run. Were it rebuilt with other topics later, what these had up to
    that batch would be read by no increment.
-#}
{% macro newest_batch_of(source) -%}
    {%- if not source.routed_by -%}
        {{ return(landed_batches(source.bronze).last) }}
    {%- endif -%}
    {%- set routed = bounds_of_run().get(source.routed_by) -%}
    {%- set text = graph.nodes[source.routed_by].raw_code -%}
    {%- for topic in source.topics + ([source.connector] if source.connector else []) if _names_none_of(text, connectors_read_as(topic)) -%}
        {{ exceptions.raise_compiler_error(
            'model ' ~ model.name ~ ': it reads ' ~ source.relation ~ ', whose model does not name ' ~ literal(topic) ~ ': give both the same topics and connector.'
        ) }}
    {%- endfor -%}
    {%- set stored = {} if routed else _silver_properties(source.relation) -%}
    {%- set declaration = declaration_digest(text) -%}
    {%- do _check_bronze(source.bronze, stored) -%}
    {%- if not routed and stored.get('cdc.declaration') != declaration -%}
        {{ exceptions.raise_compiler_error(
            'model ' ~ model.name ~ ': ' ~ source.relation ~ ' was built by another text of its model than it has now, and is not in this run.\n'
            ~ '  Build it with the models that read it: .venv/bin/dbt run --profiles-dir profiles --select ' ~ source.relation.identifier ~ '+'
        ) }}
    {%- endif -%}
    {{ return(routed.up_to if routed else merged_up_to(source.relation, 'batch', stored).batch) }}
{%- endmacro %}


{#-
    The newest batch of a system (`last`; 0 where there is none) and the `id` of its bronze table, which the loader gives it anew where batches
    were taken back; the same for all models of a run.
-#}
{% macro landed_batches(bronze) -%}
    {%- set known = graph.setdefault('debezium_landed', {}) -%}
    {%- set place = invocation_id ~ bronze -%}
    {%- if place not in known -%}
        {%- set id = run_query('show tblproperties ' ~ bronze ~ " ('cdc.id')").rows[0][1] -%}
        {%- do known.update({place: {'id': id, 'last': (run_query('select max(batch) from ' ~ bronze).rows[0][0] or 0) | int}}) -%}
    {%- endif -%}
    {{ return(known[place]) }}
{%- endmacro %}


{#- A table of which batches were taken back from bronze, or whose bronze was made anew, is not the fold of what is there: it merges nothing more. -#}
{% macro _check_bronze(bronze, stored) -%}
    {%- set id = landed_batches(bronze).id -%}
    {%- if stored.get('cdc.bronze', id) != id -%}
        {{ exceptions.raise_compiler_error(
            'model ' ~ model.name ~ ': ' ~ bronze ~ ' is not what it was built from: batches were taken back, or the table was made anew.\n'
            ~ '  Land again what is missing, and build all that reads it from what is there then:\n'
            ~ '  .venv/bin/dbt run --full-refresh --profiles-dir profiles --select source:' ~ bronze.schema ~ '.' ~ bronze.identifier ~ '+'
        ) }}
    {%- endif -%}
{%- endmacro %}


{#-
    A table that is built anew would lose what only records told that were deleted since: that is refused. Each of its rows names the event that
    decided it, which has to be there. Of what only older events told (values that later ones left out) there is the number: it has merged so many
    changes up to a batch; some may be rejected now. Where no snapshot tells how many, it is more than those of its first build.
    Of a bronze that was made anew, whose batches are others, all count.
-#}
{% macro _check_all_is_there(bounds, bronze) -%}
    {%- set replaced = load_relation(this) -%}
    {%- set stored = _silver_properties(replaced) if replaced and not replaced.is_view else {} -%}
    {%- set merged = merged_up_to(replaced, '_cdc_batch', stored) if 'cdc.built-from' in stored else {} -%}
    {%- set batch, counted = [merged.batch, merged.counted] if merged.counted else stored.get('cdc.built-from', '0 0:0').split(' ') -%}
    {%- set found = _counted(bounds.counts, batch | int if stored.get('cdc.bronze') == bounds.bronze else bounds.up_to) -%}
    {%- set changes, rejected = counted.split(':') | map('int') -%}
    {#- Of what was rejected then some may be changes now: both together count. Of a table that became routed they may be the events model's. #}
    {%- set becomes_routed = bounds.is_routed and stored.get('cdc.routed') != 'true' -%}
    {%- set counted_rejects = [rejected, found[1]] | min(case_sensitive=true) if becomes_routed else rejected -%}
    {%- set missing = changes + counted_rejects - found[0] - found[1] -%}
    {%- if missing > 0 -%}
        {%- do _refuse_to_build(
            bronze ~ ' has ' ~ (changes + rejected - missing) ~ ' of the ' ~ (changes + rejected)
            ~ ' changes and rejected records that it has read up to batch ' ~ batch, bronze
        ) -%}
    {%- endif -%}
    {%- if 'cdc.built-from' in stored -%}
        {#- The event of an old key has a row of its own in the change log, under the event's name with a mark. #}
        {%- set event = "replace(_cdc_event_id, '#before', '')" -%}
        {%- set lost = run_query(
            'select count(*), min(event) from (select ' ~ event ~ ' as event from ' ~ replaced ~ ' where _cdc_event_id is not null) left anti join '
            ~ '(select ' ~ event ~ ' as event from ' ~ new_changes(bounds) ~ ') using (event)'
        ).rows[0] -%}
        {%- if lost[0] -%}
            {%- do _refuse_to_build(bronze ~ ' has not the events of ' ~ lost[0] ~ ' of its rows (' ~ lost[1] ~ ')', bronze) -%}
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}


{% macro _refuse_to_build(reason, bronze) -%}
    {{ exceptions.raise_compiler_error(
        'model ' ~ model.name ~ ': it has to be built anew, but ' ~ reason ~ '.\n'
        ~ '  What they told would be lost. Put them back (insert into ' ~ bronze ~ ' select * from ' ~ bronze ~ ' version as of <snapshot> where …),\n'
        ~ '  take back what changed in the text of its models (.sql) or in the version of this project, or drop the table to build it from what is left: drop table ' ~ this
    ) }}
{%- endmacro %}


{#- How many changes and how many rejected records there are up to a batch. -#}
{% macro _counted(counts, up_to) -%}
    {%- set changes, rejected = [0], [0] -%}
    {%- for row in counts if row[0] <= up_to -%}
        {%- do changes.append(row[4] | int) if row[1] in ('change', 'truncate') -%}
        {%- do rejected.append(row[4] | int) if row[1] == 'rejected' -%}
    {%- endfor -%}
    {{ return([changes | sum, rejected | sum]) }}
{%- endmacro %}


{#- Whether a change log has records to read in the batches above `above`. Bronze is asked once for all change logs that have read as much. -#}
{% macro _has_records(source, above, up_to) -%}
    {%- set batches = 'batch > ' ~ above ~ ' and batch <= ' ~ up_to -%}
    {%- if source.routed_by or not source.topics -%}
        {%- set of_table = ' and ' ~ _is_of_table(source.table) if source.routed_by and source.table else '' -%}
        {%- set in_topics = ' and topic in (' ~ _literals(source.topics) ~ ')' if source.topics else '' -%}
        {{ return(run_query('select 1 from ' ~ source.relation ~ ' where ' ~ batches ~ in_topics ~ of_table ~ ' limit 1').rows | length > 0) }}
    {%- endif -%}
    {%- set known = graph.setdefault('debezium_landed', {}) -%}
    {%- set place = invocation_id ~ source.relation ~ ' up to ' ~ up_to -%}
    {%- if place not in known or known[place].above > above -%}
        {#- With a word before it, a topic of digits stays a text for dbt. -#}
        {%- set newest = {} -%}
        {%- for row in run_query("select 'topic ' || topic, max(batch) from " ~ source.relation ~ ' where ' ~ batches ~ ' group by topic').rows -%}
            {%- do newest.update({row[0]: row[1] | int}) -%}
        {%- endfor -%}
        {%- do known.update({place: {'above': above, 'newest': newest}}) -%}
    {%- endif -%}
    {%- for topic in source.topics if known[place].newest.get('topic ' ~ topic, 0) > above -%} {{ return(true) }} {%- endfor -%}
    {{ return(false) }}
{%- endmacro %}


{% macro _silver_properties(relation) -%}
    {%- set properties = {} -%}
    {%- for row in run_query('show tblproperties ' ~ relation).rows -%}
        {%- if row[0].startswith('cdc.') and '(redacted)' in row[1] -%}
            {{ exceptions.raise_compiler_error(
                'model ' ~ model.name ~ ': Spark hides the table property ' ~ row[0] ~ '.\n'
                ~ '  Set spark.redaction.regex and spark.sql.redaction.options.regex as in profiles/profiles.yml.'
            ) }}
        {%- endif -%}
        {%- do properties.update({row[0]: row[1]}) -%}
    {%- endfor -%}
    {{ return(properties) }}
{%- endmacro %}


{#- The snapshot of a table as it is now. -#}
{% macro current_snapshot(relation) -%}
    {{ return(run_query("select snapshot_id from " ~ relation ~ ".refs where name = 'main'").rows[0][0]) }}
{%- endmacro %}


{% macro _stored_columns(relation) -%}
    {%- set names = [] -%}
    {%- for column in adapter.get_columns_in_relation(relation) if not column.name.startswith('_cdc_') -%}
        {%- do names.append(column.name) -%}
    {%- endfor -%}
    {{ return(names) }}
{%- endmacro %}


{#-
    An event that is merged is read in no increment again: with other columns, topics or another connector the table is built
    anew, so that a new column or topic has its history. `on_schema_change: fail` stops here where columns changed.
-#}
{% macro _report_changed_declaration(before, now) -%}
    {%- set added = now | reject('in', before) | list -%}
    {%- set removed = before | reject('in', now) | list -%}
    {%- set told -%}
        model {{ model.name }}: {% if added or removed -%}
            columns added: {{ added | join(', ') or 'none' }}; removed: {{ removed | join(', ') or 'none' }}
        {%- else -%}
            its staging model changed
        {%- endif -%}
    {%- endset -%}
    {%- if config.get('on_schema_change') == 'fail' and (added or removed) -%}
        {{ exceptions.raise_compiler_error(told ~ '.\n  on_schema_change is fail; rebuild the table with --full-refresh to take them.') }}
    {%- endif -%}
    {%- do log(told ~ '; the table is built anew from all events', info=true) -%}
{%- endmacro %}


{#-
    What a table has merged: `batch`, the newest one, `position`, the greatest place in the source's log, and `counted`, how many changes and rejected
    records, as `<number>:<number>`, which only silver has, `is_moved`, whether rows may have `_cdc_moves`, and `is_whole`, whether none ever held a value. They are stored with the commit of the
    merge as a property of its snapshot. What is told is of the snapshot that `properties` are of, the table's, whatever is committed meanwhile: of it or of the
    last one before it that tells, as commits of other tools do not; snapshots that a rollback took back are none of these. Where no snapshot is left
    that tells (expiry) the greatest ones in the table count: they may be lower, and reading an event again changes nothing.
-#}
{% macro merged_up_to(relation, batch, properties) -%}
    {%- set head = properties['current-snapshot-id'] -%}
    {%- set told = "summary['" ~ batch_property(relation) ~ "']" -%}
    {%- set of_head = run_query('select ' ~ told ~ ' from ' ~ relation ~ '.snapshots where snapshot_id = ' ~ head).rows if head != 'none' else [] -%}
    {%- set stored = of_head[0][0] if of_head else none -%}
    {%- if stored is none and of_head -%}
        {%- set stored = _told_before(head, run_query(
            'select cast(snapshot_id as string), cast(parent_id as string), ' ~ told ~ ' from ' ~ relation ~ '.snapshots'
        ).rows) -%}
    {%- endif -%}
    {%- if stored is none -%}
        {%- set position = 'max(' ~ log_position() ~ ')' if batch == '_cdc_batch' else "''" -%}
        {%- set of_rows = 'select max(' ~ batch ~ '), ' ~ position ~ ' from ' ~ relation ~ ' version as of ' ~ head -%}
        {%- set greatest = run_query(of_rows).rows[0] if of_head else [none, none] -%}
        {{ return({'batch': (greatest[0] or 0) | int, 'position': greatest[1] or '', 'counted': '', 'is_moved': true, 'is_whole': false}) }}
    {%- endif -%}
    {%- set parts = stored.split(' ') + ['', ''] -%}
    {{ return({
        'batch': parts[0] | int, 'position': parts[1], 'counted': parts[2] if ':' in parts[2] else '', 'is_moved': 'moved' in parts, 'is_whole': 'whole' in parts,
    }) }}
{%- endmacro %}


{#- What the nearest snapshot before `head` tells that tells anything; `snapshots` are rows of id, parent and what is told. -#}
{% macro _told_before(head, snapshots) -%}
    {%- set by_id = {} -%}
    {%- for id, parent, told in snapshots -%} {%- do by_id.update({id: [parent, told]}) -%} {%- endfor -%}
    {%- set at = namespace(id=head, told=none) -%}
    {%- for _ in by_id -%}
        {%- if at.told is none and at.id in by_id -%}
            {%- set at.told = by_id[at.id][1] -%}
            {%- set at.id = by_id[at.id][0] -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(at.told) }}
{%- endmacro %}


{#- The place of a change in the source's log: its position without what tells apart the records of one place. -#}
{% macro log_position() -%}
    {{ return("substring_index(_cdc_position, '.', 2)") }}
{%- endmacro %}


{#- One name per model: the session that carries it to the commit is shared by threads. -#}
{% macro batch_property(relation) -%}
    {{ return('cdc-batch-' ~ relation.identifier) }}
{%- endmacro %}
