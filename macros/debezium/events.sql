{#-
    The records of topics that carry several tables, each once, with the table that it names: `source_table`, a JSON
    array of names. The staging models of these tables read their own part of it, not all of the topics.

    A record that names no table is no model's: `kind` says what it is, and `error` why it cannot be used.
-#}
{% macro debezium_events(events, topics, connector) -%}

    {%- set c = debezium_connector(connector) -%}
    {%- if not c.table -%}
        {{ exceptions.raise_compiler_error(
            "debezium_events in model " ~ model.name ~ ": events of connector '" ~ connector
                ~ "' do not name their table; their topic does.\n"
            ~ "  Have the staging models read source('bronze', …) without routed, and delete this model."
        ) }}
    {%- endif -%}
    {%- set bounds = _look_up_landed(events, topics) -%}
    {%- do bounds.update({'replay': _named_records(_unusable_records(), 'true', c)}) if bounds.is_replay is defined -%}
    {{ _named_records(events, 'topic in (' ~ _literals(topics)
        ~ ') and error is null and ' ~ _batches('batch', bounds.above, bounds.up_to), c) }}
{%- endmacro %}

{#- The records that this model has rejected, as they landed. -#}
{% macro _unusable_records() -%}
    (
        select * except (source_table, kind, error), cast(null as string) as error
        from {{ this }} where error is not null
    ) as landed
{%- endmacro %}

{% macro _named_records(events, condition, c) -%}
with named as (

    select
        *,
        case
            when _end is not null {%- for name in c.table %} and {{ name }} <> '' {%- endfor %}
                then to_json(array({{ c.table | join(', ') }}))
        end as source_table,
        {{ c.op }} as _op
    from {{ parsed_event(events, condition, envelope_schema(c, [], {})) }}

),

told as (

    select
        *,
        {{ _kind(c, [], [], {}) }} as kind
    from named

)

select
    * except (_tail, _event, _end, _corrupt, _op, error),
    {{ _error(c) }} as error
from told

{%- endmacro %}

{#- Why a record that names no table cannot be used, or NULL; one that names a table is judged by its staging model. -#}
{% macro _error(c) -%}
    case
        when error is not null then error
        when kind = 'tombstone' or source_table is not null then null
        when _end is null then 'invalid_json'
        when kind not in ('change', 'truncate') then null
        when _op is null then 'not_an_envelope'
        {%- if c.not_from %}
        when {{ _is_of_other_connector(c) }} then 'other_connector'
        {%- endif %}
        else 'no_table'
    end
{%- endmacro %}

{#- The condition that a record of an events model names a table. -#}
{% macro _is_of_table(table) -%}
    source_table = {{ _table_name(table) }}
{%- endmacro %}

{#- The name of a table as it stands in `source_table`. -#}
{% macro _table_name(table) -%}
    to_json(array({{ _literals(table) }}))
{%- endmacro %}

{#-
    The records that an events model has not read yet, as in `_look_up_bounds`; everything outside of a run. A model
    whose text changed is rebuilt. If another run has written since `snapshot`, this one fails, so no record stands
    twice.
-#}
{% macro _look_up_landed(events, topics) -%}
    {%- if not execute or flags.WHICH not in ('run', 'build') -%}
        {{ return({'above': 0, 'up_to': none}) }}
    {%- endif -%}
    {%- set bounds = _bounds_of_records({'bronze': events, 'relation': events, 'topics': topics}) -%}
    {%- do bounds.update({'properties': dict(bounds.properties, **{
        'write.object-storage.enabled': 'true',
        'write.object-storage.partitioned-paths': 'false',
        'write.parquet.stats-enabled.column.key': 'false',
        'write.parquet.stats-enabled.column.value': 'false',
        'write.parquet.dict-encoding-enabled.column.value': 'false',
    })}) -%}
    {%- if env_var('REPLAY', '') and not bounds.is_new
        and run_query('select 1 from ' ~ this ~ ' where error is not null limit 1').rows -%}
        {%- do bounds.update({'is_replay': true, 'base': local_md5(bounds.declaration ~ invocation_id)}) -%}
    {%- endif -%}
    {%- do bounds_of_run().update({model.unique_id: bounds}) -%}
    {{ return(bounds) }}
{%- endmacro %}

{#-
    Rejected records of an events model that can be used now. Change logs take theirs when its `base` is another one:
    it is so before the commit, after which this run may die, and again behind it, for those that have looked meanwhile.
-#}
{% macro _write_named(bounds) -%}
    {%- set change = 'alter table ' ~ this ~ " set tblproperties ('cdc.base' = '" -%}
    {%- do run_query(change ~ bounds.base ~ " begun')") -%}
    {%- do _store_with_next_commit(bounds) -%}
    {%- do run_query(
        'merge into ' ~ this ~ ' as stored using (' ~ bounds.replay ~ ') as named on stored.batch = named.batch and '
        ~ _record_id('stored') ~ ' = ' ~ _record_id('named') ~ ' and stored.error is not null'
        ~ ' when matched and not stored.error <=> named.error then update set'
        ~ ' source_table = named.source_table, kind = named.kind, error = named.error'
    ) -%}
    {%- do _store_with_next_commit(none) -%}
    {%- do run_query(change ~ bounds.base ~ "')") -%}
{%- endmacro %}
