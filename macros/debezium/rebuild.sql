{#- A table is rebuilt only if nothing is lost by it. -#}

{#-
    A rebuild fails if it would lose changes whose records were deleted. Each row names its event, which has to be
    there. Older events have left their number only: so many changes and rejected records were read up to a batch. If no
    snapshot has that number, it is that of the first build. If bronze was created again, its batches differ and all
    count.
-#}
{% macro _check_all_is_there(bounds, bronze) -%}
    {%- set replaced = load_relation(this) -%}
    {%- set stored, counted, found = bounds.replaced.stored, bounds.replaced.counted, bounds.found -%}
    {%- set changes, rejected = counted.split(':') | map('int') -%}
    {#-
        Of what was rejected then some may be changes now: both together count. Of a table that became routed they may
        be the events model's.
    #}
    {%- set becomes_routed = bounds.is_routed and stored.get('cdc.routed') != 'true' -%}
    {%- set counted_rejects = [rejected, found[1]] | min(case_sensitive=true) if becomes_routed else rejected -%}
    {%- set missing = changes + counted_rejects - found[0] - found[1] -%}
    {%- if missing > 0 -%}
        {%- do _refuse_to_build(
            bronze ~ ' has ' ~ (changes + rejected - missing) ~ ' of the ' ~ (changes + rejected)
            ~ ' changes and rejected records that it has read up to batch ' ~ bounds.replaced.batch, bronze
        ) -%}
    {%- endif -%}
    {%- do _check_events_are_there(replaced, new_changes(bounds), bronze) if 'cdc.built-from' in stored -%}
{%- endmacro %}

{#- Fail if a change log lacks events that rows of a table name, which would be read from it again. -#}
{% macro _check_events_are_there(table, changes, bronze) -%}
    {#- The event of an old key has a row of its own in the change log, under the event's name with a mark. #}
    {%- set event = "replace(_cdc_event_id, '#before', '')" -%}
    {%- set lost = run_query(
        'select count(*), min(event) from (select ' ~ event ~ ' as event from ' ~ table
            ~ ' where _cdc_event_id is not null) left anti join '
        ~ '(select ' ~ event ~ ' as event from ' ~ changes ~ ') using (event)'
    ).rows[0] -%}
    {%- if lost[0] -%}
        {%- do _refuse_to_build(bronze ~ ' has not the events of ' ~ lost[0] ~ ' of its rows (' ~ lost[1] ~ ')',
            bronze) -%}
    {%- endif -%}
{%- endmacro %}

{#-
    What the table that is rebuilt had read: its properties (`stored`), and how many changes and rejected records
    (`counted`) up to which batch. If bronze was created again, all batches count.
-#}
{% macro _counted_by_replaced(bronze_id) -%}
    {%- set replaced = load_relation(this) -%}
    {%- set stored = _table_properties(replaced) if replaced and not replaced.is_view else {} -%}
    {%- set merged = merged_by_silver(replaced, stored) if 'cdc.built-from' in stored else {} -%}
    {%- set batch, counted = [merged.batch, merged.counted] if merged.counted else stored.get('cdc.built-from',
        '0 0:0').split(' ') -%}
    {%- set is_same_bronze = stored.get('cdc.bronze') == bronze_id -%}
    {{ return({'stored': stored, 'counted': counted,
        'batch': batch | int if is_same_bronze else 9223372036854775807}) }}
{%- endmacro %}

{% macro _refuse_to_build(reason, bronze) -%}
    {%- set pruned = _table_properties(bronze).get('cdc.pruned-up-to') -%}
    {{ exceptions.raise_compiler_error(
        'model ' ~ model.name ~ ': it has to be rebuilt, but ' ~ reason ~ '.\n'
        ~ ('  make maintain has pruned batches up to ' ~ pruned ~ ' (KEEP).\n' if pruned else '')
        ~ '  What they said would be lost. Put them back (insert into ' ~ bronze ~ ' select * from ' ~ bronze
        ~ ' version as of <snapshot> where …)\n  and run .venv/bin/dbt run --full-refresh --select source:bronze.'
        ~ (bronze | string).replace('`', '').split('.')[-1] ~ '+,\n'
        ~ '  take back what changed in the text of its models (.sql) or in the version of this project, '
        ~ 'or drop the table to build it from what is left: drop table ' ~ this
    ) }}
{%- endmacro %}
