{#- The changes of a log that lie below earlier ones, and which of them are redeliveries: see `debezium_resets`. -#}

{#- As JSON: those of the changes below others that are new, or were found before, and are no redeliveries. -#}
{% macro _found_resets(asked) -%}
    {%- set candidates, resets = ['below._cdc_append > ' ~ asked.above], {} -%}
    {%- for place, found in fromjson(asked.known).items() -%}
        {%- do candidates.append('below._cdc_place = ' ~ literal(place) ~ ' and below._cdc_place_number between '
            ~ found[0] ~ ' and ' ~ found[1]) -%}
    {%- endfor -%}
    {%- set all = _in_place(asked.changes, '_cdc_append <= ' ~ asked.up_to) -%}
    {%- set of_log = dict(asked, is_truncated=asked.is_truncated or asked.known != '{}') -%}
    {%- set rows = all if of_log.is_truncated or not asked.has_key else _of_new_keys(asked, all) -%}
    {%- set below = _changes_below(of_log, all, rows) -%}
    {%- if below -%}
        {%- for row in run_query(_without_redeliveries(asked, rows, below, candidates | join(' or '))).rows -%}
            {%- do resets.update({row[0]: [row[1] | int, row[2] | int, row[3] | int]}) -%}
        {%- endfor -%}
    {%- endif -%}
    {{ return(tojson(resets, sort_keys=true)) }}
{%- endmacro %}

{#- The changes whose keys have new ones. -#}
{% macro _of_new_keys(asked, rows) -%}
select other.*
from ({{ rows }}) as other
left semi join (select {{ _quoted_list(asked['keys']) }} from {{ asked.changes }} as changes
    where _cdc_append > {{ asked.above }} and _cdc_kind = 'change') as new on {{ _is_same_key(asked['keys']) }}
{%- endmacro %}

{#-
    The changes and truncates below an earlier one, or below the last truncate; empty if there can be none. Without a
    key only truncates can be compared with other rows.
-#}
{% macro _changes_below(asked, all, rows) -%}
    {%- set dated, parts = _dated(all, rows), [] -%}
    {%- do parts.append(_below_of_key(asked['keys'], dated, rows)) if asked.has_key -%}
    {%- set truncates = 'select * from (' ~ all ~ ") as truncates where _cdc_kind = 'truncate'" -%}
    {%- if run_query(truncates ~ ' limit 1').rows | length > 0 -%}
        {%- set others = [[truncates ~ ' order by _cdc_position desc limit 1', 'true']] -%}
        {%- do others.append([rows, "new._cdc_kind = 'truncate'"]) if asked.is_truncated -%}
        {%- for other, pair in others -%} {#- no semi join: it would send all of `other` to each task -#}
            {%- do parts.append('select distinct ' ~ _columns_below(asked['keys']) ~ ' from (' ~ dated
                ~ ') as new inner join (' ~ other ~ ') as other on ' ~ pair ~ ' and ' ~ _is_later_and_below()) -%}
        {%- endfor -%}
    {%- endif -%}
    {{ return(parts | join('\nunion all\n')) }}
{%- endmacro %}

{#- What is asked of a change below others. -#}
{% macro _columns_below(keys) -%}
    {{ _quoted_list(keys, 'new.{}, ', '') }}new._cdc_op, new._cdc_log, new._cdc_place, new._cdc_place_number,
        new._cdc_append, new._cdc_changed_at
{%- endmacro %}

{#-
    The changes below an earlier one of their key. The windows leave few to compare one by one: those later by the clock
    than a change above them, and those behind something above them in their own partition or file. A tombstone after
    its delete may have no place in the log, and is ignored, in whatever order the two landed.
-#}
{% macro _below_of_key(keys, dated, rows) -%}
{%- set of_key = 'partition by ' ~ _quoted_list(keys) -%}
{%- set in_place = of_key ~ ', _cdc_place, _cdc_epoch order by _cdc_batch, _cdc_place_number' -%}
{%- set before = 'rows between unbounded preceding and 1 preceding' -%}
select {{ _columns_below(keys) }}
from (
    select
        *,
        min(_cdc_changed_at) over ({{ of_key }} order by _cdc_log desc {{ before }}) as _cdc_earliest_above,
        max(_cdc_log) over ({{ in_place }} {{ before }}) as _cdc_highest,
        lag(_cdc_op) over (
            {{ of_key }}, _cdc_place, _cdc_epoch order by _cdc_place_number, _cdc_batch
        ) as _cdc_op_before
    from ({{ dated }}) as dated
) as new
left semi join ({{ rows }}) as other on {{ _is_same_key(keys) }} and {{ _is_later_and_below() }}
where
    (new._cdc_since > new._cdc_earliest_above or new._cdc_log < new._cdc_highest)
    and not coalesce(new._cdc_op = 'd' and new._cdc_op_before = 'd' and {{ _has_no_log_place('new.') }}, false)
{%- endmacro %}

{#-
    Changes with the time that is compared, `_cdc_since`. A row of an initial snapshot has the time at which its
    snapshot began to be read; a row of an incremental snapshot has none, because older writes may lie above it.
-#}
{% macro _dated(all, rows) -%}
    {%- set is_initial = "_cdc_is_snapshot and split_part(_cdc_position, '.', 3) = '0'" -%}
select new.*, if(new._cdc_is_snapshot, snapshots._cdc_began, new._cdc_changed_at) as _cdc_since
from ({{ rows }}) as new
left join (
    select _cdc_log, min(_cdc_changed_at) as _cdc_began
    from ({{ all }}) as read
    where {{ is_initial }}
    group by _cdc_log
) as snapshots on new._cdc_log = snapshots._cdc_log and {{ is_initial | replace('_cdc_', 'new._cdc_') }}
{%- endmacro %}

{#-
    Changes and truncates with their place in the source's log, and the partition or file in which they stood when they
    landed. Those that have no place in a log have their place in the topic.
-#}
{% macro _in_place(changes, condition) -%}
select
    *,
    {{ _log_or_topic_place() }} as _cdc_log,
    {{ _epoch_of_position() }} as _cdc_epoch,
    {{ _place() }} as _cdc_place
from {{ changes }} as changes
where _cdc_kind in ('change', 'truncate') and {{ condition }}
{%- endmacro %}

{#-
    The partition or file of a change: its event's id up to the number. Such texts are cut for every change there is: by
    functions that do not look for patterns.
-#}
{% macro _place() -%}
    {%- set with_mark = "trim(trailing '#before0123456789' from _cdc_event_id)" -%}
    left({{ with_mark }}, char_length({{ with_mark }}) - 1)
{%- endmacro %}

{% macro _is_same_key(keys) -%}
    {{ _quoted_list(keys, 'new.{} <=> other.{}', ' and ') }}
{%- endmacro %}

{#-
    Numbers of one place say which change is later, unless the batches contradict them; otherwise the clock does. A row
    of a snapshot is compared by the clock only if it also landed later.
-#}
{% macro _is_later_and_below() -%}
    new._cdc_log < other._cdc_log
    and if(
        new._cdc_place = other._cdc_place and new._cdc_epoch = other._cdc_epoch
        and sign(new._cdc_place_number - other._cdc_place_number) * sign(new._cdc_batch - other._cdc_batch) >= 0,
        new._cdc_place_number > other._cdc_place_number,
        new._cdc_since > other._cdc_changed_at and (new._cdc_batch > other._cdc_batch or not new._cdc_is_snapshot)
    )
    and not (new._cdc_op = 'd' and other._cdc_op = 'd' and {{ _has_no_log_place('new.') }})
{%- endmacro %}

{#- By partition or file, those of them that are asked for and whose like has not landed before. -#}
{% macro _without_redeliveries(asked, rows, below, candidates) -%}
select below._cdc_place, min(below._cdc_place_number) as first, max(below._cdc_place_number) as last,
    count(distinct below._cdc_place_number) as changes
from ({{ below }}) as below
left anti join ({{ rows }}) as original
    on
        {{ _quoted_list(asked['keys'], 'below.{} <=> original.{} and ', '') }}below._cdc_op = original._cdc_op
        and if({{ _has_no_log_place('original.') }}, below._cdc_changed_at = original._cdc_changed_at,
            below._cdc_log = original._cdc_log)
        and (below._cdc_place <> original._cdc_place or below._cdc_place_number > original._cdc_place_number)
where {{ candidates }}
group by below._cdc_place
{%- endmacro %}
