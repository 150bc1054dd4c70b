{#-
    Appending to a change log, and reading it (docs/decisions/0010). `debezium_changes` gives the rows. An events model, which other change logs
    read, grows in the same way.
-#}


{#- The condition of the records that the change log of this model lacks; all records outside of a run. `declared`: the arguments of `debezium_changes`. -#}
{% macro _new_records_of_log(declared) -%}
    {%- if model.resource_type == 'unit_test' or not execute or flags.WHICH not in ('run', 'build') -%}
        {{ return('') }}
    {%- endif -%}
    {%- set source = _records_read_by(graph.nodes[model.unique_id]) -%}
    {%- set bounds = _bounds_of_records(source.bronze, source, newest_batch_of(source), '_cdc_batch', declared) -%}
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
    - batch: the column of the table with the batch,
    - declared: of a change log, the arguments of `debezium_changes`.
-#}
{% macro _bounds_of_records(bronze, source, up_to, batch, declared=none) -%}
    {%- set declaration = declaration_digest(model.raw_code) -%}
    {%- set existing = load_relation(this) if is_incremental() else none -%}
    {%- set stored = _table_properties(existing) if existing else {} -%}
    {%- set above = merged_up_to(existing, batch, stored).batch if existing else 0 -%}
    {%- set is_same = stored.get('cdc.declaration') == declaration -%}
    {%- set added = [] if is_same else _columns_added_to_log(stored, declared, above) if existing and declared else none -%}
    {%- set is_new = added is none -%}
    {%- set above = 0 if is_new else above -%}
    {%- do _check_bronze(bronze, stored) -%}
    {{ return({
        'keys': [],
        'columns': declared.columns.keys() | list if declared else [],
        'added': added or [],
        'declaration': declaration,
        'declared': _declared_text(declared) if declared else '',
        'base': local_md5(_declared_text(declared) if declared else declaration) if is_new else _base(stored),
        'is_described': is_same,
        'bronze': landed_batches(bronze).id,
        'is_new': is_new,
        'above': above,
        'up_to': up_to,
        'has_new': is_new or up_to > above and _has_records(source, above, up_to),
        'truncated_at': '',
        'is_truncated': false,
        'snapshot': none if is_new else stored['current-snapshot-id'],
        'batch': batch,
        'properties': {},
    }) }}
{%- endmacro %}


{#-
    The newest batch of a change log (`up_to`), and a digest of what it was built by (`base`), which stays if columns are added. An error if the log
    is not what its model says now: silver would merge the rows of the old text, and never read them again.
-#}
{% macro state_of_log(changes, source) -%}
    {%- set of_run = bounds_of_run().get(source.id) -%}
    {%- if of_run -%} {{ return(of_run) }} {%- endif -%}
    {%- set stored = _table_properties(changes) -%}
    {%- do _check_bronze(source.bronze, stored) -%}
    {%- if stored.get('cdc.declaration') != declaration_digest(source.declaration) -%}
        {{ exceptions.raise_compiler_error(
            'model ' ~ model.name ~ ': ' ~ changes ~ ' is not what its model says now, and the model is not in this run.\n'
            ~ '  Build it with the models that read it: .venv/bin/dbt run --select ' ~ changes.identifier ~ '+'
        ) }}
    {%- endif -%}
    {{ return({'up_to': merged_up_to(changes, '_cdc_batch', stored).batch, 'base': _base(stored)}) }}
{%- endmacro %}


{#- The increment of a silver model, as a query of its change log. -#}
{% macro new_changes(bounds) -%}
    {{ return('(select * from ' ~ bounds.changes ~ ' where ' ~ _batches('_cdc_batch', bounds.above, bounds.up_to) ~ ')') }}
{%- endmacro %}
