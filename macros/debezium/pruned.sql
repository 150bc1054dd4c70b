{#-
    Records that `make maintain` has pruned from bronze. A change log that is rebuilt keeps their rows: they are copied,
    not read again, and their columns get the types that are declared now.
-#}

{#-
    The number of rows of a change log whose records were pruned from bronze. An error if others would be lost.
    `source` is that of `_records_read_by`.
-#}
{% macro _pruned_records(source) -%}
    {%- set replaced = load_relation(this) -%}
    {%- if not replaced or replaced.is_view -%} {{ return(0) }} {%- endif -%}
    {#- After a roll-back every reader of bronze is built in full: it keeps these rows, however often it is asked. #}
    {%- set stored, id = _table_properties(replaced), landed_batches(source.bronze).id -%}
    {%- set is_asked = should_full_refresh() and id == stored.get('cdc.bronze') and id != stored.get('cdc.kept') -%}
    {%- set pruned = _table_properties(source.bronze).get('cdc.pruned-up-to', 0) -%}
    {%- set of_log -%}
        select _cdc_batch as batch, replace(_cdc_event_id, '#before', '') as event from {{ replaced }}
            where _cdc_kind in ('change', 'truncate', 'rejected')
    {%- endset -%}
    {%- set there -%} select {{ _record_id('records') }} as event, batch as batch_there
        from {{ source.relation }} as records {%- endset -%}
    {%- set lost = run_query(
        'select count(*), min(event), count_if(batch > ' ~ pruned ~ ') from (' ~ of_log ~ ') as kept'
            ~ ' left anti join (' ~ there ~ ') as there on kept.event = there.event and '
            ~ _is_its_batch('batch', 'batch_there', source.bronze)
    ).rows[0] -%}
    {%- if lost[0] and (lost[2] or is_asked) -%}
        {%- do _refuse_to_build(source.bronze ~ ' has not ' ~ lost[0] ~ ' of its records (' ~ lost[1] ~ ')',
            source.bronze) -%}
    {%- endif -%}
    {{ return(0 if is_asked else run_query('select count(*) from ' ~ _kept_rows(source.relation, source.bronze,
        pruned)).rows[0][0] | int) }}
{%- endmacro %}

{#-
    An error if records were pruned that a table has not read, up to the batch `above`: it was rolled back, or it is in
    another schema than the tables that `make maintain` asks.
-#}
{% macro _check_read_before_pruned(source, bronze, above) -%}
    {%- set pruned = landed_batches(bronze).pruned -%}
    {%- for topic in source.topics if not source.routed_by and pruned.get(topic, 0) > above -%}
        {{ exceptions.raise_compiler_error(
            'model ' ~ model.name ~ ': ' ~ this ~ ' has read up to batch ' ~ above
                ~ ', but make maintain has pruned records of ' ~ topic ~ ' up to batch ' ~ pruned[topic] ~ ' (KEEP).\n'
            ~ '  What they said would be missing. If the table was rolled back, give it its newest snapshot again '
            ~ '(call system.set_current_snapshot);\n  else drop it to build it from what is left: drop table ' ~ this
        ) }}
    {%- endfor -%}
{%- endmacro %}

{#-
    The condition that a record of a row's name is the row's own: in its batch, or, where that was rolled back, in a
    later one. Other records may have its coordinates: of a recreated topic, of a file with other content.
-#}
{% macro _is_its_batch(of_row, there, bronze) -%}
    {%- set found, name = [of_row ~ ' = ' ~ there], bronze.identifier ~ '__files' -%}
    {%- set ledger = load_relation(api.Relation.create(schema=bronze.schema, identifier=name)) -%}
    {%- set back = run_query('select bytes, batch from ' ~ ledger ~ " where file = ''").rows if ledger else [] -%}
    {#- Bronze was created again, and nothing is known of its former batches. #}
    {%- if not back and _table_properties(this).get('cdc.bronze') != landed_batches(bronze).id -%}
        {{ return('true') }}
    {%- endif -%}
    {%- for after, last in back -%}
        {%- do found.append(of_row ~ ' > ' ~ after ~ ' and ' ~ of_row ~ ' <= ' ~ last ~ ' and ' ~ there ~ ' > '
            ~ last) -%}
    {%- endfor -%}
    {{ return('(' ~ found | join(' or ') ~ ')') }}
{%- endmacro %}

{#-
    The rows of a change log whose records are not among those up to a batch, behind FROM. A pruned record that landed
    again is in another batch, and has a row more.
-#}
{% macro _kept_rows(records, bronze, pruned) -%}
    {{ this }} as kept left anti join (select {{ _record_id() }} as event, batch from {{ records }}) as there
        on replace(kept._cdc_event_id, '#before', '') = there.event
            and {{ _is_its_batch('kept._cdc_batch', 'there.batch', bronze) }}
    where kept._cdc_batch <= {{ pruned }}
{%- endmacro %}

{#-
    The rows of a change log whose records were pruned, as a query with the columns of `typed`, the query of all other
    rows. A column that is new is NULL in them.

    - records: the records that are there,
    - declared: the arguments of `debezium_changes`,
    - new: what `_new_records_of_log` returns.
-#}
{% macro _rows_of_pruned(typed, declared, records, new) -%}
    {%- set before = fromjson(_table_properties(this).get('cdc.declared') or '{}') -%}
    {%- do _check_same_rows(declared, before, new) -%}
    {%- set stored, selected = _types_of('select * from ' ~ this), [] -%}
    {%- for name, type in _types_of(typed).items() -%}
        {%- set value -%}
            {%- if name == '_cdc_append' -%} cast({{ new.append }} as bigint)
            {%- elif name == '_cdc_appended_at' -%} current_timestamp()
            {%- elif name == '_cdc_position' -%} {{ _position_of_kept(declared, before.topics) }}
            {%- elif name not in stored and name in declared.columns -%} cast(null as {{ type }})
            {%- else -%} {{ _converted(name, stored.get(name, 'none'), type, new) }}
            {%- endif -%}
        {%- endset -%}
        {%- do selected.append(value ~ ' as ' ~ quoted(name)) -%}
    {%- endfor -%}
    {%- do log('model ' ~ model.name ~ ': the rows of ' ~ new.pruned ~ ' records that were pruned from bronze are kept',
        info=true) -%}
    select {{ selected | join(', ') }}
    from {{ _kept_rows(records, new.bronze, _table_properties(new.bronze)['cdc.pruned-up-to']) }}
{%- endmacro %}

{#- The position of a row that was stored when the log had these topics: with one of them it does not name it. -#}
{% macro _position_of_kept(declared, topics) -%}
    {%- set epochs = declared.epochs | selectattr('topic', 'in', topics) | list -%}
    {%- set parts = [_position_in_epochs(epochs, topics)] -%}
    {%- if topics | length == 1 and declared.topics | length > 1 -%}
        {%- do parts.append("'.'") -%}
        {%- do parts.append(_hash_of_topic(literal(topics[0]))) -%}
    {%- endif -%}
    concat({{ parts | join(', ') }})
{%- endmacro %}

{#- An error if pruned records would have other rows now, for another reason than the types of their columns. -#}
{% macro _check_same_rows(declared, before, new) -%}
    {%- set others, added, named, removed = [], [], [], [] -%}
    {%- for name in ['connector', 'table', 'keys'] if before.get(name) != declared[name] -%}
        {%- do others.append(name) -%}
    {%- endfor -%}
    {%- if before.get('topics', []) | reject('in', declared.topics) | list -%} {%- do others.append('topics') -%}
        {%- endif -%}
    {%- for name in before.get('columns', {}) if name not in declared.columns -%}
        {%- do removed.append(before.renamed.get(name, name)) -%}
    {%- endfor -%}
    {%- for name in declared.columns -%}
        {%- set in_events = declared.renamed.get(name, name) -%}
        {%- if name not in before.get('columns', {}) -%}
            {%- do added.append(name) -%} {%- do named.append(in_events) -%}
            {%- do others.append('renamed') if in_events in removed -%}
        {%- elif before.renamed.get(name, name) != in_events -%} {%- do others.append('renamed') -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if added and not _is_null_where_absent(declared, added, named) -%} {%- do others.append('columns') -%}
        {%- endif -%}
    {%- if others -%}
        {%- do _refuse_to_build('its ' ~ others | join(', ') ~ ' changed, and ' ~ new.bronze ~ ' has not ' ~ new.pruned
            ~ ' of its records', new.bronze) -%}
    {%- endif -%}
{%- endmacro %}

{#-
    A column of pruned records in the type that it has now: as `type_of_several` reads values of several types. An error
    if some values cannot be converted.
-#}
{% macro _converted(name, before, now, new) -%}
    {%- set column, wholes = quoted(name), ['tinyint', 'smallint', 'int', 'bigint'] -%}
    {%- if before == now -%} {{ return(column) }} {%- endif -%}
    {%- set is_whole, is_decimal = before in wholes, before.startswith('decimal') -%}
    {%- if now == 'string' and is_decimal -%}
        {{ return(let('cast(' ~ column ~ ' as string)', 't', _decimal_of_text('t', 39, 0))) }}
    {%- endif -%}
    {%- set to_number = now in wholes or now.startswith('decimal') -%}
    {%- set is_known = (is_whole or is_decimal) and to_number or is_whole and now in ['double', 'string']
        or [before, now] in [['float', 'double'], ['date', 'timestamp_ntz']] -%}
    {%- set cast = 'try_cast(' ~ column ~ ' as ' ~ now ~ ')' -%}
    {%- set is_same = column ~ ' between -9007199254740992 and 9007199254740992' if now == 'double' and is_whole
        else 'try_cast(' ~ cast ~ ' as ' ~ before ~ ') <=> ' ~ column -%}
    {%- if not is_known or run_query('select 1 from ' ~ this ~ ' where not (' ~ is_same ~ ') limit 1').rows -%}
        {%- do _refuse_to_build('column ' ~ name ~ ' was ' ~ before ~ ' and is ' ~ now ~ ' now, and ' ~ new.bronze
            ~ ' has not ' ~ new.pruned ~ ' of its records', new.bronze) -%}
    {%- endif -%}
    {{ return(cast) }}
{%- endmacro %}
