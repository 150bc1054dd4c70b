{#-
    Where the source's log started over: a restored database, a failover, a reset binlog. New changes that came after another
    change of their key, or after a truncate, and lie below it lose to what is older; so does a truncate below a change of any
    key. What had landed before is none of these, but a redelivery; its original is looked for only where there is something to ask.

    - bounds: of the model that is run, with its new changes in the cache.

    Returns partition or file → numbers (offsets or lines) of the first such change and the last one, and how many there
    are; with those that were known, as text of JSON.

    Of one partition or file the numbers tell what came later; of different ones, in batches of their own, and of different epochs (a
    topic that was made anew has its numbers again) the source's clock: the one place where a clock counts, and it decides nothing.
-#}
{% macro debezium_resets(bounds) -%}
    {%- if not bounds.get('keys') or not bounds.oldest or not bounds.is_log -%}
        {{ return(bounds.resets) }}
    {%- endif -%}
    {%- set below = _changes_below(bounds) -%}
    {%- set ids = run_query('select distinct _cdc_event_id from (' ~ below ~ ') as below limit 1001').columns[0].values() -%}
    {%- if not ids -%}
        {{ return(bounds.resets) }}
    {%- endif -%}
    {%- set resets = fromjson(bounds.resets) -%}
    {%- for row in run_query(_without_redeliveries(bounds, below, ids)).rows -%}
        {%- set first, last, count = row[1] | int, row[2] | int, row[3] | int -%}
        {%- set known = resets.get(row[0], [first, last, 0]) -%}
        {%- do resets.update({row[0]: [[known[0], first] | min, [known[1], last] | max, known[2] + count]}) -%}
    {%- endfor -%}
    {{ return(tojson(resets, sort_keys=true)) }}
{%- endmacro %}


{#- The new changes and truncates that came after something that lies above them: another new one, what is merged, the last truncate. -#}
{% macro _changes_below(bounds) -%}
    {%- set keys = bounds.get('keys') -%}
    {%- set new = _in_place(new_changes_name(), "_cdc_kind in ('change', 'truncate')") -%}
    {%- set found -%}
        {% for name in keys %}new.{{ quoted(name) }}, {% endfor %}new._cdc_op, new._cdc_event_id, new._cdc_log, new._cdc_place, new._cdc_number
    {%- endset -%}
    {%- set before = 'order by _cdc_number rows between unbounded preceding and 1 preceding' -%}
select {{ found }}
from (
    select
        *,
        {%- if bounds.is_truncated %}
        if(_cdc_kind = 'truncate', max(_cdc_log) over (partition by _cdc_place, _cdc_epoch {{ before }}), null) as _cdc_highest_of_all,
        {%- endif %}
        max(_cdc_log) over (partition by {{ _quoted_list(keys) }}, _cdc_place, _cdc_epoch {{ before }}) as _cdc_highest
    from ({{ new }}) as new
) as new
where _cdc_log < {{ 'coalesce(_cdc_highest_of_all, _cdc_highest)' if bounds.is_truncated else '_cdc_highest' }}
{%- if bounds.above and bounds.oldest < bounds.merged_position %}
{%- for condition in [_is_same_key(keys)] + (["new._cdc_kind = 'truncate'"] if bounds.is_truncated else []) %}
union
select {{ found }}
from ({{ new }}) as new
inner join ({{ _in_place(this, 'true') }}) as other on {{ condition }} and {{ _is_later_and_below() }}
{%- endfor %}
{%- endif %}
{%- if bounds.truncated_by and bounds.oldest < bounds.truncated_at %}
{%- set truncate -%}
    (select
        {{ literal(bounds.truncated_at) }} as _cdc_position,
        {{ literal(bounds.truncated_by[0]) }} as _cdc_event_id,
        cast({{ _literal_or_null(bounds.truncated_by[1]) }} as timestamp) as _cdc_changed_at,
        {{ bounds.truncated_by[2] }} as _cdc_batch
    )
{%- endset %}
union
select {{ found }}
from ({{ new }}) as new
inner join ({{ _in_place(truncate, 'true') }}) as other on {{ _is_later_and_below() }}
{%- endif %}
{%- endmacro %}


{#- Changes with their place in the source's log, and where they stood when they landed: a number in a partition or a file. -#}
{% macro _in_place(changes, condition) -%}
select
    *,
    {{ log_position() }} as _cdc_log,
    split_part(_cdc_position, '.', 1) as _cdc_epoch,
    regexp_replace(_cdc_event_id, '[/:][0-9]+(#before)?$', '') as _cdc_place,
    cast(regexp_extract(_cdc_event_id, '([0-9]+)(#before)?$', 1) as bigint) as _cdc_number
from {{ changes }} as changes
where {{ condition }}
{%- endmacro %}


{% macro _is_same_key(keys) -%}
    {%- for name in keys -%} new.{{ quoted(name) }} <=> other.{{ quoted(name) }}{{ ' and ' if not loop.last }} {%- endfor -%}
{%- endmacro %}


{% macro _is_later_and_below() -%}
    new._cdc_log < other._cdc_log
    and if(
        new._cdc_place = other._cdc_place and new._cdc_epoch = other._cdc_epoch
        and (new._cdc_number > other._cdc_number or new._cdc_batch <= other._cdc_batch),
        new._cdc_number > other._cdc_number,
        new._cdc_changed_at > other._cdc_changed_at and not new._cdc_is_snapshot
    )
{%- endmacro %}


{#- By partition or file, those of them whose like had not landed before; `ids` are their events, where these are few. -#}
{% macro _without_redeliveries(bounds, below, ids) -%}
    {%- set keys = bounds.get('keys') -%}
    {%- set is_original = "_cdc_kind in ('change', 'truncate') and _cdc_batch <= " ~ bounds.up_to -%}
    {%- if ids | length <= 1000 -%}
        {#- Staging parses only what passes a filter on a column of bronze, such as the Kafka key; by its hash, as it is a value of a row. #}
        {%- set kafka_keys = run_query(
            'select distinct cast(xxhash64(key) as string) from ' ~ bounds.records ~ ' as records where ' ~ _batches('batch', bounds.above, bounds.up_to)
            ~ ' and ' ~ _record_id('records') ~ ' in (' ~ _literals(ids | map('replace', '#before', '') | unique | list) ~ ')'
        ).columns[0].values() -%}
        {%- set is_original = is_original ~ ' and xxhash64(_cdc_key) in (' ~ kafka_keys | join(', ') ~ ')' -%}
    {%- endif -%}
select below._cdc_place, min(below._cdc_number) as first, max(below._cdc_number) as last, count(*) as changes
from ({{ below }}) as below
left anti join ({{ _in_place(bounds.changes, is_original) }}) as original
    on
        {% for name in keys %}below.{{ quoted(name) }} <=> original.{{ quoted(name) }} and {% endfor %}
        below._cdc_op = original._cdc_op
        and below._cdc_log = original._cdc_log
        and (below._cdc_place <> original._cdc_place or below._cdc_number > original._cdc_number)
group by below._cdc_place
{%- endmacro %}
