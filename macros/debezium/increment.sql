{#-
    The condition that selects what a model has not taken yet: landed batches above its own and up to the newest
    one that is there now; and where the table was truncated, events after its last truncate.

    The bounds are looked up when the model is compiled for a run and handed to the materialization, which
    stores the upper one with its commit. A first build and a full refresh take everything.
-#}
{% macro debezium_increment(changes, keys, columns, batch='_cdc_batch') -%}
    {%- if model.resource_type == 'unit_test' or not execute or flags.WHICH not in ('run', 'build') -%}
        {%- set bounds = {'above': 0, 'up_to': none, 'truncated_at': ''} -%}
    {%- else -%}
        {%- set bounds = _look_up_bounds(changes, keys, columns, batch) -%}
        {%- do graph.setdefault('debezium_bounds', {}).update({model.unique_id: bounds}) -%}
    {%- endif -%}
    {%- if bounds.up_to is none -%}
    true
    {%- else -%}
    {{ batch }} > {{ bounds.above }} and {{ batch }} <= {{ bounds.up_to }}
    {%- endif -%}
    {%- if bounds.truncated_at %}
    and _cdc_position > {{ literal(bounds.truncated_at) }}
    {%- endif -%}
{%- endmacro %}


{#-
    - keys, columns: what the model declares,
    - is_new: whether the table has to be built from all events: it is not there, or has other columns,
    - above: the newest batch that this table has merged (0 for none),
    - up_to: the newest batch with records of its topics,
    - truncated_at: the position of the last truncate that is known, stored or among the new events,
    - is_truncated: whether the new events hold a truncate.
-#}
{% macro _look_up_bounds(changes, keys, columns, batch) -%}
    {%- set existing = load_relation(this) if is_incremental() else none -%}
    {%- set stored = _silver_properties(existing) if existing else {} -%}
    {%- if existing and stored.get('cdc.keys') != local_md5(tojson(keys)) -%}
        {{ exceptions.raise_compiler_error(
            'model ' ~ model.name ~ ': the key is ' ~ tojson(keys) ~ ', but the table was built with another one.\n'
            ~ '  Rebuild it: dbt run --full-refresh --select ' ~ model.name
        ) }}
    {%- endif -%}
    {%- set is_new = existing is none or stored.get('cdc.columns') != local_md5(tojson(columns)) -%}
    {%- if existing and is_new -%}
        {%- do _report_changed_columns(_stored_columns(existing), columns) -%}
    {%- endif -%}
    {%- set above = 0 if is_new else merged_batch(existing, batch) -%}
    {%- set new = run_query(
        'select max(' ~ batch ~ ') as up_to, ' ~ ('coalesce(bool_or(_cdc_key is null), false)' if keys else 'false')
        ~ ' as may_be_truncated from ' ~ changes ~ ' where ' ~ batch ~ ' > ' ~ above
    ).rows[0] -%}
    {%- set up_to = (new[0] or above) | int -%}
    {%- set new_truncate = none -%}
    {%- if new[1] -%}
        {%- set new_truncate = run_query(
            "select max(_cdc_position) from " ~ changes ~ " where _cdc_kind = 'truncate' and _cdc_key is null"
            ~ ' and _cdc_batch > ' ~ above ~ ' and _cdc_batch <= ' ~ up_to
        ).rows[0][0] -%}
    {%- endif -%}
    {%- set known = '' if is_new else stored.get('cdc.truncated-at', '') -%}
    {{ return({
        'keys': keys,
        'columns': columns,
        'is_new': is_new,
        'above': above,
        'up_to': up_to,
        'truncated_at': [known, new_truncate or ''] | max,
        'is_truncated': new_truncate is not none,
    }) }}
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


{% macro _stored_columns(relation) -%}
    {%- set names = [] -%}
    {%- for column in adapter.get_columns_in_relation(relation) if not column.name.startswith('_cdc_') -%}
        {%- do names.append(column.name) -%}
    {%- endfor -%}
    {{ return(names) }}
{%- endmacro %}


{#- `on_schema_change: fail` stops here; otherwise the table is built anew, so that a new column has its history. -#}
{% macro _report_changed_columns(before, now) -%}
    {%- set added = now | reject('in', before) | list -%}
    {%- set removed = before | reject('in', now) | list -%}
    {%- set told = 'model ' ~ model.name ~ ': columns added: ' ~ (added | join(', ') or 'none') ~ '; removed: ' ~ (removed | join(', ') or 'none') -%}
    {%- if config.get('on_schema_change') == 'fail' -%}
        {{ exceptions.raise_compiler_error(told ~ '.\n  on_schema_change is fail; rebuild the table with --full-refresh to take them.') }}
    {%- endif -%}
    {%- do log(told ~ '; the table is built anew from all events', info=true) -%}
{%- endmacro %}


{#-
    The newest batch that a silver table has merged: stored with the commit of the merge as a property of its
    snapshot; after a rollback the snapshots that it took back do not count. Where no snapshot is left that tells (expiry, a commit of another tool) the greatest batch in the
    table counts: it may be lower, and reading an event again changes nothing.
-#}
{% macro merged_batch(relation, batch) -%}
    {%- set stored = run_query(
        "select max_by(summary['" ~ batch_property() ~ "'], committed_at) from " ~ relation ~ ".snapshots"
        ~ " where summary['" ~ batch_property() ~ "'] is not null and snapshot_id in"
        ~ " (select snapshot_id from " ~ relation ~ ".history where is_current_ancestor)"
    ).rows[0][0] -%}
    {%- if stored is none -%}
        {%- set stored = run_query('select max(' ~ batch ~ ') from ' ~ relation).rows[0][0] -%}
    {%- endif -%}
    {{ return((stored or 0) | int) }}
{%- endmacro %}


{#- One name per model: the session that carries it to the commit is shared by threads. -#}
{% macro batch_property() -%}
    {{ return('cdc-batch-' ~ this.identifier) }}
{%- endmacro %}
