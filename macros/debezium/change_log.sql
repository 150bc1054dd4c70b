{#-
    Appending to a change log, and reading it (docs/decisions/0010). `debezium_changes` gives the rows. An events model, which other change logs
    read, grows in the same way.
-#}


{#- The condition of the records that the change log of this model lacks; all records outside of a run. -#}
{% macro _new_records_of_log() -%}
    {%- if model.resource_type == 'unit_test' or not execute or flags.WHICH not in ('run', 'build') -%}
        {{ return('') }}
    {%- endif -%}
    {%- set source = _records_read_by(graph.nodes[model.unique_id]) -%}
    {%- set bounds = _bounds_of_records(source.bronze, source, newest_batch_of(source), '_cdc_batch') -%}
    {%- do bounds.update({'properties': {
        'write.parquet.stats-enabled.column._cdc_value': 'false',
        'write.parquet.dict-encoding-enabled.column._cdc_value': 'false',
    }}) -%}
    {%- do bounds_of_run().update({model.unique_id: bounds}) -%}
    {%- do _check_all_records_are_there(source) if bounds.is_new -%}
    {{ return(' and ' ~ _batches('batch', bounds.above, bounds.up_to)) }}
{%- endmacro %}


{#- Refuse to rebuild a change log if bronze lacks records that it holds: they would be lost. -#}
{% macro _check_all_records_are_there(source) -%}
    {%- set replaced = load_relation(this) -%}
    {%- if replaced and not replaced.is_view -%}
        {%- set of_log -%}
            select replace(_cdc_event_id, '#before', '') as event from {{ replaced }} where _cdc_kind in ('change', 'truncate', 'rejected')
        {%- endset -%}
        {%- set there -%} select {{ _record_id('records') }} as event from {{ source.relation }} as records {%- endset -%}
        {%- set lost = run_query(
            'select count(*), min(event) from (' ~ of_log ~ ') left anti join (' ~ there ~ ') using (event)'
        ).rows[0] -%}
        {%- if lost[0] -%}
            {%- set told = source.bronze ~ ' has not ' ~ lost[0] ~ ' of its records (' ~ lost[1] ~ ')' -%}
            {%- do _refuse_to_build(told, source.bronze) -%}
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}


{#-
    The increment of a table that grows by appending records, as its materialization needs it (`_look_up_bounds`).

    - bronze: relation, what has landed,
    - source: mapping, as of `_records_read_by`,
    - up_to: the newest batch that there is to read,
    - batch: the column of the table with the batch.
-#}
{% macro _bounds_of_records(bronze, source, up_to, batch) -%}
    {%- set declaration = declaration_digest(model.raw_code) -%}
    {%- set existing = load_relation(this) if is_incremental() else none -%}
    {%- set stored = _table_properties(existing) if existing else {} -%}
    {%- set is_new = stored.get('cdc.declaration') != declaration -%}
    {%- set snapshot = none if is_new else stored['current-snapshot-id'] -%}
    {%- set above = 0 if is_new else merged_up_to(existing, batch, stored).batch -%}
    {%- do _check_bronze(bronze, stored) -%}
    {{ return({
        'keys': [],
        'declaration': declaration,
        'bronze': landed_batches(bronze).id,
        'is_new': is_new,
        'above': above,
        'up_to': up_to,
        'has_new': is_new or up_to > above and _has_records(source, above, up_to),
        'truncated_at': '',
        'is_truncated': false,
        'snapshot': snapshot,
        'batch': batch,
        'properties': {},
    }) }}
{%- endmacro %}


{#-
    The newest batch of a change log. An error if the log was built from another text of its model: silver would merge the rows of the old text,
    and never read them again.
-#}
{% macro newest_batch_of_log(changes, source) -%}
    {%- set of_run = bounds_of_run().get(source.id) -%}
    {%- if of_run -%} {{ return(of_run.up_to) }} {%- endif -%}
    {%- set stored = _table_properties(changes) -%}
    {%- do _check_bronze(source.bronze, stored) -%}
    {%- if stored.get('cdc.declaration') != declaration_digest(source.declaration) -%}
        {{ exceptions.raise_compiler_error(
            'model ' ~ model.name ~ ': ' ~ changes ~ ' is not what its model says now, and the model is not in this run.\n'
            ~ '  Build it with the models that read it: .venv/bin/dbt run --profiles-dir profiles --select ' ~ changes.identifier ~ '+'
        ) }}
    {%- endif -%}
    {{ return(merged_up_to(changes, '_cdc_batch', stored).batch) }}
{%- endmacro %}


{#- The increment of a silver model, as a query of its change log. -#}
{% macro new_changes(bounds) -%}
    {{ return('(select * from ' ~ bounds.changes ~ ' where ' ~ _batches('_cdc_batch', bounds.above, bounds.up_to) ~ ')') }}
{%- endmacro %}
