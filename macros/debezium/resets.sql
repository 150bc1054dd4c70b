{#-
    Where the source's log started over: a restored database, a failover, a reset binlog. New changes below an older
    change of their key, or below a truncate, lose to it; so does a truncate below a change. A redelivery is no reset:
    its original is looked for only if such changes are found.

    Returns a JSON text: partition or file → number (offset or line) of the first such change, of the last one, and how
    many there are. Earlier findings are checked again, because the original of a redelivery may have landed since.

    Within a partition or file the numbers say which change is later. Across them, across batches with the same numbers
    and across epochs the source's clock says it. This is the only place that uses a clock, and it decides nothing.
-#}
{% macro debezium_resets(bounds) -%}
    {%- if not (bounds.lowest and bounds.is_log) -%} {{ return(bounds.known_resets) }} {%- endif -%}
    {%- set asked = bounds if not fromjson(bounds.known_resets) else dict(bounds, **{
        'above': 0, 'lowest': '', 'is_truncated': bounds.truncated_at != '', 'is_in_order': false,
        'has_key_in_places': true,
        'has_snapshot': true, 'is_of_topic': true, 'places': [1, 2], 'batches': [1, 2],
    }) -%}
    {{ return(_found_resets(asked, _changes_below(asked), bounds.above)) }}
{%- endmacro %}

{#- As JSON: those of the changes below others that are new, or were found before, and are no redeliveries. -#}
{% macro _found_resets(asked, below, above) -%}
    {%- set candidates, resets = ['below._cdc_append > ' ~ above], {} -%}
    {%- for place, found in fromjson(asked.known_resets).items() -%}
        {%- do candidates.append('below._cdc_place = ' ~ literal(place) ~ ' and below._cdc_number between ' ~ found[0]
            ~ ' and ' ~ found[1]) -%}
    {%- endfor -%}
    {%- set found = run_query(_without_redeliveries(asked, below, candidates | join(' or '))).rows if below else [] -%}
    {%- for row in found -%}
        {%- do resets.update({row[0]: [row[1] | int, row[2] | int, row[3] | int]}) -%}
    {%- endfor -%}
    {{ return(tojson(resets, sort_keys=true)) }}
{%- endmacro %}

{#-
    The new changes and truncates below an earlier one: a new one, a merged one, or the last truncate. Empty if
    impossible.
-#}
{% macro _changes_below(bounds) -%}
    {%- set keys = bounds.get('keys') -%}
    {%- set new = _in_place(new_changes(bounds), "_cdc_kind in ('change', 'truncate')", bounds.is_of_topic) -%}
    {%- set merged = _in_place(this, 'true', bounds.is_of_topic) -%}
    {%- set found = _columns_below(keys) -%}
    {%- set dated = _dated(bounds, new, merged) -%}
    {%- set others = [] -%}
    {%- set parts = [] -%}
    {%- set between = _between_places(bounds) -%}
    {%- set truncates = "new._cdc_kind = 'truncate'" -%}
    {%- do parts.append(_below_in_their_place(bounds, new, found, between)) if bounds.is_truncated
        or not bounds.is_in_order -%}
    {%- do parts.append(_below_in_several(keys, dated, new, found)) if between -%}
    {%- do others.append([new, truncates]) if bounds.is_truncated and between -%}
    {%- if bounds.above and (bounds.is_of_topic or bounds.lowest < bounds.merged_position) -%}
        {%- do others.append([merged, _is_same_key(keys)]) -%}
        {%- do others.append([merged, truncates]) if bounds.is_truncated -%}
    {%- endif -%}
    {%- if bounds.truncated_by and bounds.lowest < bounds.truncated_at -%}
        {%- set truncate -%}
        (select
            't' as _cdc_op,
            {{ literal(bounds.truncated_at) }} as _cdc_position,
            {{ literal(bounds.truncated_by[0]) }} as _cdc_event_id,
            cast({{ _literal_or_null(bounds.truncated_by[1]) }} as timestamp) as _cdc_changed_at,
            {{ bounds.truncated_by[2] }} as _cdc_batch)
        {%- endset -%}
        {%- do others.append([_in_place(truncate, 'true', bounds.is_of_topic), 'true']) -%}
    {%- endif -%}
    {{ return((parts + _below_others(dated, others, keys)) | join('\nunion all\n')) }}
{%- endmacro %}

{#- Of each relation of `others` and its condition the query of the changes that are later than a row and below it. -#}
{% macro _below_others(dated, others, keys) -%}
    {%- set parts = [] -%}
    {%- for other, pair in others -%}
        {%- do parts.append(
            'select distinct ' ~ _columns_below(keys) ~ ' from (' ~ dated ~ ') as new inner join (' ~ other
                ~ ') as other on ' ~ pair ~ ' and ' ~ _is_later_and_below()
        ) -%}
    {%- endfor -%}
    {{ return(parts) }}
{%- endmacro %}

{#- What is asked of a change below others. -#}
{% macro _columns_below(keys) -%}
    {{ _quoted_list(keys, 'new.{}, ', '') }}new._cdc_op, new._cdc_log, new._cdc_place, new._cdc_number,
        new._cdc_append, new._cdc_changed_at
{%- endmacro %}

{#-
    Bit 1: a change stands behind one of the same key that lies above it, in one partition or file. Bit 2: a key stands
    in two of them. It is enough to compare each change with the one before it. Keys are compared by a hash, so that the
    sort is narrow; if two keys share it, later questions find the truth.
-#}
{% macro _order_of_keys(changes, keys) -%}
select coalesce(bit_or(if(_cdc_place_hash <> _cdc_place_before, 2,
    if(_cdc_epoch = _cdc_epoch_before and _cdc_log < _cdc_log_before, 1, 0))), 0)
from (
    select
        _cdc_place_hash,
        _cdc_epoch,
        _cdc_log,
        lag(_cdc_place_hash) over of_key as _cdc_place_before,
        lag(_cdc_epoch) over of_key as _cdc_epoch_before,
        lag(_cdc_log) over of_key as _cdc_log_before
    from (
        select *, {{ _log_or_topic_place() }} as _cdc_log, {{ _epoch_of_position() }} as _cdc_epoch
        from {{ changes }}
        where _cdc_kind in ('change', 'truncate')
    ) as changes
    window of_key as (partition by xxhash64({{ _quoted_list(keys) }}) order by _cdc_place_hash, _cdc_epoch,
        _cdc_place_number)
) as ordered
{%- endmacro %}

{#-
    The changes that stand behind something above them in one partition or file. If numbers repeat (`between`), each
    batch is looked at alone. A tombstone after its delete may have no place in the log, and is ignored.
-#}
{% macro _below_in_their_place(bounds, new, found, between) -%}
    {%- set place = '_cdc_place, _cdc_epoch' ~ (', _cdc_batch' if between == 'numbers' else '') -%}
    {%- set before = 'order by _cdc_number rows between unbounded preceding and 1 preceding' -%}
    {%- set of_key = 'partition by ' ~ _quoted_list(bounds.get('keys')) ~ ', ' ~ place -%}
select {{ found }}
from (
    select
        *,
        {%- if bounds.is_truncated %}
        if(_cdc_kind = 'truncate', max(_cdc_log) over (partition by {{ place }} {{ before }}),
            null) as _cdc_highest_of_all,
        {%- endif %}
        {%- if bounds.is_of_topic %}
        lag(_cdc_op) over ({{ of_key }} order by _cdc_number) as _cdc_op_before,
        {%- endif %}
        max(_cdc_log) over ({{ of_key }} {{ before }}) as _cdc_highest
    from ({{ new }}) as new
) as new
where
    _cdc_log < {{ 'coalesce(_cdc_highest_of_all, _cdc_highest)' if bounds.is_truncated else '_cdc_highest' }}
    {%- if bounds.is_of_topic %}
    and not coalesce(_cdc_op = 'd' and _cdc_op_before = 'd' and {{ _has_no_log_place() }}, false)
    {%- endif %}
{%- endmacro %}

{#-
    The same across partitions, files or batches. The windows leave few changes to compare one by one: those later by
    the clock than a change above them, and those behind something above them in their own place.
-#}
{% macro _below_in_several(keys, dated, new, found) -%}
{%- set of_key = 'partition by ' ~ _quoted_list(keys) -%}
{%- set before = 'rows between unbounded preceding and 1 preceding' -%}
select {{ found }}
from (
    select
        *,
        min(_cdc_changed_at) over ({{ of_key }} order by _cdc_log desc {{ before }}) as _cdc_earliest_above,
        max(_cdc_log) over ({{ of_key }}, _cdc_place, _cdc_epoch order by _cdc_batch,
            _cdc_number {{ before }}) as _cdc_highest
    from ({{ dated }}) as dated
) as new
left semi join ({{ new }}) as other on {{ _is_same_key(keys) }} and {{ _is_later_and_below() }}
where new._cdc_since > new._cdc_earliest_above or new._cdc_log < new._cdc_highest
{%- endmacro %}

{#-
    Whether numbers alone cannot order the new changes: `numbers` if they repeat in a later batch, `places` if a key
    stands in two partitions or files, else none.
-#}
{% macro _between_places(bounds) -%}
    {%- set found = [] -%}
    {%- if bounds.batches | length > 1 -%}
        {%- set numbers -%}
select 1
from (
    select
        min(_cdc_place_number) as first,
        max(max(_cdc_place_number)) over (
            partition by _cdc_place_hash, _cdc_epoch order by _cdc_batch rows between unbounded preceding
                and 1 preceding
        ) as last
    from (select *, {{ _epoch_of_position() }} as _cdc_epoch from {{ new_changes(bounds) }}
        where _cdc_kind in ('change', 'truncate')) as new
    group by _cdc_place_hash, _cdc_epoch, _cdc_batch
) as batches
where first <= last
limit 1
        {%- endset -%}
        {%- do found.append('numbers') if run_query(numbers).rows | length > 0 -%}
    {%- endif -%}
    {%- if not found and bounds.places | length > 1 -%}
        {%- do found.append('places') if bounds.is_truncated or bounds.has_key_in_places -%}
    {%- endif -%}
    {{ return(found | first | default(none)) }}
{%- endmacro %}

{#-
    Changes with the time that is compared, `_cdc_since`. A row of an initial snapshot has the time at which its
    snapshot began to be read; a row of an incremental snapshot has none, because older writes may lie above it.
-#}
{% macro _dated(bounds, new, merged) -%}
    {%- if not bounds.has_snapshot -%}
select *, _cdc_changed_at as _cdc_since from ({{ new }}) as new
    {%- else -%}
    {%- set is_initial = "_cdc_is_snapshot and split_part(_cdc_position, '.', 3) = '0'" -%}
select new.*, if(new._cdc_is_snapshot, snapshots._cdc_began, new._cdc_changed_at) as _cdc_since
from ({{ new }}) as new
left join (
    select _cdc_log, min(_cdc_changed_at) as _cdc_began
    from (
        select _cdc_log, _cdc_changed_at from ({{ new }}) as new where {{ is_initial }}
        {%- if bounds.above %}
        union all
        select _cdc_log, _cdc_changed_at from ({{ merged }}) as merged where {{ is_initial }}
        {%- endif %}
    ) as read
    group by _cdc_log
) as snapshots on new._cdc_log = snapshots._cdc_log and {{ is_initial | replace('_cdc_', 'new._cdc_') }}
    {%- endif -%}
{%- endmacro %}

{#-
    Changes with their place in the source's log, and where they stood when they landed: a number in a partition or a
    file. Where some have no place in a log, `is_of_topic`, these have their place in the topic.
-#}
{% macro _in_place(changes, condition, is_of_topic) -%}
select
    *,
    {{ _log_or_topic_place() if is_of_topic else log_position() }} as _cdc_log,
    {{ _epoch_of_position() }} as _cdc_epoch,
    {{ _place() }} as _cdc_place,
    cast(substring_index(substring(_cdc_event_id, char_length({{ _place() }}) + 2), '#', 1) as bigint) as _cdc_number
from {{ changes }} as changes
where {{ condition }}
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
        and sign(new._cdc_number - other._cdc_number) * sign(new._cdc_batch - other._cdc_batch) >= 0,
        new._cdc_number > other._cdc_number,
        new._cdc_since > other._cdc_changed_at and (new._cdc_batch > other._cdc_batch or not new._cdc_is_snapshot)
    )
    and not (new._cdc_op = 'd' and other._cdc_op = 'd' and {{ _has_no_log_place('new.') }})
{%- endmacro %}

{#- By partition or file, those of them that are asked for and whose like has not landed before. -#}
{% macro _without_redeliveries(bounds, below, candidates) -%}
    {%- set is_original = "_cdc_kind in ('change', 'truncate') and _cdc_append <= " ~ bounds.up_to -%}
select below._cdc_place, min(below._cdc_number) as first, max(below._cdc_number) as last,
    count(distinct below._cdc_number) as changes
from ({{ below }}) as below
left anti join ({{ _in_place(bounds.changes, is_original, bounds.is_of_topic) }}) as original
    on
        {{ _quoted_list(bounds.get('keys'), 'below.{} <=> original.{} and ', '') }}below._cdc_op = original._cdc_op
        and {{ 'if(' ~ _has_no_log_place('original.')
        ~ ', below._cdc_changed_at = original._cdc_changed_at, below._cdc_log = original._cdc_log)'
        if bounds.is_of_topic else 'below._cdc_log = original._cdc_log' }}
        and (below._cdc_place <> original._cdc_place or below._cdc_number > original._cdc_number)
where {{ candidates }}
group by below._cdc_place
{%- endmacro %}
