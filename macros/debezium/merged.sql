{#- The properties of a table, and what it has merged: the mark of its last commit. -#}

{#-
    What a table has merged, from the property of its last commit, `<up_to> <second> <counted> <batch> <flags>`:

    - up_to: of silver and a history the newest append of the change log, of other tables the newest batch,
    - second: of silver the greatest place in the source's log, of a change log the number of its last append,
    - counted, batch: of silver how many changes and rejected records (`<number>:<number>`), and their newest batch,
    - is_moved: whether rows may have `_cdc_moves`; is_whole: whether none ever had an unavailable value.

    The answer is that of the table's snapshot in `properties`, whatever is committed meanwhile, or of the last one
    before it that has the property, because commits of other tools have none; snapshots that a rollback removed are
    none of these. If no snapshot is left that says so (expiry), `otherwise` counts, two aggregates of the table: they
    may be lower, and reading an event again changes nothing.

    The rows themselves are asked for, because an aggregate costs Spark a stage more. With `number`, a text of SQL, the
    snapshot that has the greatest one is asked for, too: its property is `greatest`.
-#}
{% macro merged_up_to(relation, otherwise, properties, number='') -%}
    {%- set head = properties['current-snapshot-id'] -%}
    {%- set told = "summary['" ~ batch_property(relation) ~ "']" -%}
    {%- set is_head = '(snapshot_id = ' ~ head ~ ')' -%}
    {%- set chosen = ' order by ' ~ is_head ~ ' desc, ' ~ number ~ ' desc nulls last limit 2' if number
        else ' where ' ~ is_head -%}
    {%- set snapshots = run_query('select ' ~ is_head ~ ', ' ~ told ~ ' from ' ~ relation ~ '.snapshots' ~ chosen).rows
        if head != 'none' else [] -%}
    {%- set is_there = snapshots | length > 0 and snapshots[0][0] -%}
    {%- set stored = snapshots[0][1] if is_there else none -%}
    {%- set next = 1 if is_there else 0 -%} {#- the head may have expired meanwhile -#}
    {%- set of_greatest = snapshots[next][1] if snapshots | length > next else none -%}
    {%- if stored is none and is_there -%}
        {%- set stored = _told_before(head, run_query(
            'select cast(snapshot_id as string), cast(parent_id as string), ' ~ told ~ ' from ' ~ relation
                ~ '.snapshots'
        ).rows) -%}
    {%- endif -%}
    {%- if stored is none -%}
        {%- set greatest = run_query('select * from (select ' ~ otherwise ~ ' from ' ~ relation ~ ' version as of '
            ~ head ~ ') as greatest(up_to, second)').rows[0] if is_there else [none, none] -%}
        {{ return({'up_to': (greatest[0] or 0) | int, 'second': greatest[1] or '', 'counted': '', 'batch': 0,
            'is_moved': true, 'is_whole': false, 'greatest': of_greatest}) }}
    {%- endif -%}
    {%- set parts = stored.split(' ') + ['', '', ''] -%}
    {{ return({
        'up_to': parts[0] | int, 'second': parts[1], 'counted': parts[2] if ':' in parts[2] else '',
        'batch': parts[3] | int,
        'is_moved': 'moved' in parts, 'is_whole': 'whole' in parts, 'greatest': of_greatest,
    }) }}
{%- endmacro %}

{#-
    What a change log has read (`up_to`, a batch), the number of its last `append`, and the greatest number ever given
    (`greatest`): after a rollback or a rebuild no number is given again, or readers would take new rows for merged
    ones.
-#}
{% macro appended_to_log(log, properties) -%}
    {%- set number = "try_cast(split_part(summary['" ~ batch_property(log) ~ "'], ' ', 2) as bigint)" -%}
    {%- set merged = merged_up_to(log, 'max(_cdc_batch), max(_cdc_append)', properties, number) -%}
    {%- set append = (merged.second or 0) | int -%}
    {%- set of_others = (merged.greatest or '').split(' ') + ['0'] -%}
    {{ return({'up_to': merged.up_to, 'append': append,
        'greatest': [append, of_others[1] | int] | max(case_sensitive=true)}) }}
{%- endmacro %}

{#- What silver has merged. Without a mark it reads the change log again from its beginning. -#}
{% macro merged_by_silver(relation, properties) -%}
    {{ return(merged_up_to(relation, '0, max(' ~ log_position() ~ ')', properties)) }}
{%- endmacro %}

{#- The property of the nearest snapshot before `head` that has it; `snapshots` are rows of id, parent and property. -#}
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

{#-
    One name per model: the session that carries it to the commit is shared by threads. Spark makes the names of options
    lower case: a digest keeps a name with capitals apart from others.
-#}
{% macro batch_property(relation) -%}
    {%- set name = relation.identifier -%}
    {%- set in_lower_case = name if name == name | lower else name | lower ~ '-' ~ local_md5(name) -%}
    {{ return('cdc-batch-' ~ ('history_' if relation.schema.endswith('history') else '') ~ in_lower_case) }}
{%- endmacro %}

{#- Models whose tables have one name would give their commits each other's marks, and pass over what they lack. -#}
{% macro _check_own_mark() -%}
    {%- set known = graph.setdefault('debezium_marks', {}) -%}
    {%- if invocation_id not in known -%}
        {%- set models = {} -%}
        {%- for node in graph.nodes.values() if node.config.get('incremental_strategy') == 'debezium_merge'
            and node.config.get('materialized') == 'incremental' -%}
            {%- set relation = api.Relation.create(schema=node.schema, identifier=node.alias) -%}
            {%- do models.setdefault(batch_property(relation), []).append(node.name) -%}
        {%- endfor -%}
        {%- do known.update({invocation_id: models}) -%}
    {%- endif -%}
    {%- set others = known[invocation_id][batch_property(this)] -%}
    {%- if others | length > 1 -%}
        {{ exceptions.raise_compiler_error('models ' ~ others | join(' and ') ~ " have tables of one name, '"
            ~ this.identifier ~ "': give all but one another alias. A silver model and a history may have one if "
            ~ "the history's schema ends with 'history'.") }}
    {%- endif -%}
{%- endmacro %}

{#-
    Give the next commit of this model's table the property `_mark`; none takes it back. A statement that has options
    gives it by `_with_mark`.
-#}
{% macro _store_with_next_commit(bounds) -%}
    {%- set setting = '`spark.sql.iceberg.snapshot-property.' ~ batch_property(this) ~ '`' -%}
    {%- call statement(auto_begin=false) -%} {#- what it answers is not fetched -#}
        {{ 'reset ' ~ setting if bounds is none else 'set ' ~ setting ~ ' = ' ~ _mark(bounds) }}
    {%- endcall -%}
{%- endmacro %}

{% macro _with_mark(bounds) -%}
    {{ literal('snapshot-property.' ~ batch_property(this)) }} = {{ literal(_mark(bounds)) }}
{%- endmacro %}

{#- The property of a commit: what was merged, as `merged_up_to` reads it. -#}
{% macro _mark(bounds) -%}
    {%- set further = '    moved' if bounds.is_history is defined and bounds.is_moved else ' '
        ~ bounds.append if bounds.append is defined else '' -%}
    {%- set of_silver = ' ' ~ bounds.merged_position ~ ' ' ~ bounds.counted ~ ' ' ~ bounds.newest_batch
        ~ (' moved' if bounds.is_moved else '') ~ (' whole' if bounds.is_whole else '') -%}
    {{ return(bounds.up_to ~ (of_silver if bounds.merged_position is defined else further)) }}
{%- endmacro %}

{% macro _table_properties(relation) -%}
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
