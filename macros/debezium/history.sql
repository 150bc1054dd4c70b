{#-
    The versions of every row, with two time axes: from when to when the source had a version (`_cdc_valid_from`,
    `_cdc_valid_to`), and from which append of the change log to which the lakehouse said so (`_cdc_known_from`,
    `_cdc_known_to`). All of them are half-open; NULL is no end.

    Versions are ordered by position. A delete or a truncate ends a version. Equal versions in a row are one; with
    `track`, those that are equal in these columns, and the other columns have the values of the last change.

    An increment folds the keys again that its changes touch, from the whole change log, and compares the versions with
    those that are known: one that is not true any more gets an end of knowledge, and what is true now begins. So late
    changes do not rewrite what was believed before.
-#}
{% macro debezium_history(changes, keys, track=none) -%}
    {%- set bounds = _history_bounds(changes, keys, track) %}
    {%- set versions = _versions(changes, keys, track, bounds) -%}
    {%- set row = _quoted_list(bounds.columns + _version_columns()) -%}
    {%- set compared = _comparable(bounds.columns + _version_columns(), bounds.maps) -%}
    {%- set of_version = _quoted_list(keys + ['_cdc_position']) ~ ', struct(' ~ row ~ ') as _cdc_row, ' ~ compared
        ~ ' as _cdc_compared' %}
    {%- if bounds.is_new %}
select {{ row }} from ({{ versions }}) as versions
    {%- else %}
    {#- Of each version that is another now, the known row to close and the new one to open. #}
select changed._cdc_row.*, changed._cdc_is_new
from (
    select known._cdc_row as _cdc_known, versions._cdc_row
    from (
        select {{ of_version }}
        from {{ this }}
        where _cdc_known_to is null {%- if not bounds.is_truncated %}
            and ({{ _quoted_list(keys) }}) in ({{ _touched_keys(changes, keys, bounds) }}) {%- endif %}
    ) as known
    full outer join (select {{ of_version }} from ({{ versions }}) as versions) as versions
        on {{ _quoted_list(keys + ['_cdc_position'], 'known.{} = versions.{}', ' and ') }}
    where not known._cdc_compared <=> versions._cdc_compared
) as compared
lateral view inline(filter(
    array(struct(_cdc_known as _cdc_row, false as _cdc_is_new), struct(_cdc_row, true as _cdc_is_new)),
    c -> c._cdc_row is not null
)) changed as _cdc_row, _cdc_is_new
    {%- endif %}
{%- endmacro %}

{#- What a history has besides the columns of the table, up to what is known. -#}
{% macro _version_columns() -%}
    {{ return([
        '_cdc_op', '_cdc_position', '_cdc_end_position', '_cdc_is_snapshot', '_cdc_event_id', '_cdc_valid_from',
        '_cdc_valid_to',
        '_cdc_valid_from_landing',
    ]) }}
{%- endmacro %}

{#- Columns as one value that can be compared, which Spark does not do with maps. -#}
{% macro _comparable(names, maps) -%}
    struct({% for name in names %}{{ 'array_sort(map_entries(' ~ quoted(name)
        ~ '))' if name in maps else quoted(name) }}{{ ', ' if not loop.last }}{% endfor %})
{%- endmacro %}

{#- The keys that new changes touch. -#}
{% macro _touched_keys(changes, keys, bounds) -%}
    select {{ _quoted_list(keys) }} from {{ changes }} where _cdc_kind = 'change'
        and {{ _batches('_cdc_append', bounds.above, bounds.up_to) }}
{%- endmacro %}

{#-
    The versions of all keys, or of those that new changes touch.

    A source's clock may run backwards: then a version begins when the one before it did. Without a time of the source
    the time of landing stands for it.
-#}
{% macro _versions(changes, keys, track, bounds) -%}
{%- set by_key = 'partition by ' ~ _quoted_list(keys) ~ ' order by _cdc_position' -%}
{%- set in_life = 'partition by ' ~ _quoted_list(keys) ~ ', _cdc_life order by _cdc_position' -%}
{%- set others = bounds.columns | reject('in', keys) | list -%}
{%- set tracked = track or others -%}
{{ _lives(changes, keys, by_key, bounds) }}

followed as (
    select *, lead(_cdc_position) over ({{ by_key }}) as _cdc_next,
    lead(_cdc_since) over ({{ by_key }}) as _cdc_next_since
    from lives
),

whole as (
    select
        {{ _quoted_list(keys) }}, _cdc_life, _cdc_op, _cdc_position, _cdc_is_snapshot, _cdc_event_id, _cdc_changed_at,
            _cdc_since,
        if(_cdc_truncate.position < coalesce(_cdc_next, '~'), _cdc_truncate.position, _cdc_next) as _cdc_end,
        if(_cdc_truncate.position < coalesce(_cdc_next, '~'), greatest(_cdc_since, _cdc_truncate.at),
            _cdc_next_since) as _cdc_until,
        {%- for name in others %}
        last_value(if(array_contains(_cdc_omitted, {{ literal(name) }}), null, struct({{ quoted(name) }})),
            true) over ({{ in_life }}).{{ quoted(name) }} as {{ quoted(name) }},
        {%- endfor %}
        _cdc_is_end
    from followed
),

told_apart as (
    select *, count_if(_cdc_is_other) over ({{ in_life }}) as _cdc_version
    from (
        select *, not {{ _comparable(tracked, bounds.maps) }} <=> lag({{ _comparable(tracked,
            bounds.maps) }}) over ({{ in_life }}) as _cdc_is_other
        from whole
        where not _cdc_is_end
    ) as compared
)

select
    {%- for name in bounds.columns %}
    {{ quoted(name) if name in keys else 'max_by(' ~ quoted(name) ~ ', _cdc_position) as ' ~ quoted(name) }},
    {%- endfor %}
    min_by(_cdc_op, _cdc_position) as _cdc_op,
    min(_cdc_position) as _cdc_position,
    max_by(_cdc_end, _cdc_position) as _cdc_end_position,
    min_by(_cdc_is_snapshot, _cdc_position) as _cdc_is_snapshot,
    min_by(_cdc_event_id, _cdc_position) as _cdc_event_id,
    min(_cdc_since) as _cdc_valid_from,
    max_by(_cdc_until, _cdc_position) as _cdc_valid_to,
    min_by(_cdc_changed_at, _cdc_position) is null as _cdc_valid_from_landing
from told_apart
group by {{ _quoted_list(keys) }}, _cdc_life, _cdc_version
{%- endmacro %}

{#-
    A life of a key ends with a delete or a truncate. Values that a change left out are those of the change before it in
    the same life.
-#}
{% macro _lives(changes, keys, by_key, bounds) -%}
{%- set at = 'coalesce(_cdc_changed_at, _cdc_landed_at)' -%}
with truncates as (
    select coalesce(array_sort(collect_list(struct(_cdc_position as position, {{ at }} as at))),
        array()) as _cdc_truncates
    from {{ changes }}
    where _cdc_kind = 'truncate' and {{ _batches('_cdc_append', 0, bounds.up_to) }}
),

changes as (
    select {{ _quoted_list(bounds.columns + ['_cdc_op', '_cdc_position', '_cdc_is_snapshot', '_cdc_event_id',
        '_cdc_changed_at', '_cdc_omitted']) }}, {{ at }} as _cdc_at, _cdc_truncates,
        size(filter(_cdc_truncates, t -> t.position < _cdc_position)) as _cdc_truncated
        {{- ', _cdc_move' if bounds.is_moved }}
    from {{ changes }}
    cross join truncates
    where
        _cdc_kind = 'change'
        and {{ _batches('_cdc_append', 0, bounds.up_to) }}
        {%- if not bounds.is_new and not bounds.is_truncated %}
        and ({{ _quoted_list(keys) }}) in ({{ _touched_keys(changes, keys, bounds) }})
        {%- endif %}
),

{{ _with_handovers(keys) if bounds.is_moved }}
lives as (
    select
        changes.*,
        _cdc_op = 'd' as _cdc_is_end,
        get(filter(_cdc_truncates, t -> t.position > _cdc_position), 0) as _cdc_truncate,
        greatest(max(_cdc_at) over ({{ by_key }}),
            array_max(transform(filter(_cdc_truncates, t -> t.position < _cdc_position), t -> t.at))) as _cdc_since,
        _cdc_truncated
            + count_if(_cdc_op = 'd') over ({{ by_key }} rows between unbounded preceding and 1 preceding)
            {{- ' + count_if(_cdc_begins) over (' ~ by_key ~ ')' if bounds.is_moved }} as _cdc_life
    from {{ '_handovers' if bounds.is_moved else 'changes' }} as changes
    {{ 'where not _cdc_is_void' if bounds.is_moved }}
),
{%- endmacro %}

{#-
    Changes of keys that one statement passed on (`_moves_event`): an `out` ends a row only if none is left under its
    key, else it is void; an `in` begins another row. A truncate leaves none.
-#}
{% macro _with_handovers(keys) -%}
{%- set since_truncate = 'partition by ' ~ _quoted_list(keys) ~ ', _cdc_truncated order by _cdc_position' -%}
moved as (
    select *, max(contains(_cdc_move, ' ')) over (partition by {{ _quoted_list(keys) }}) as _cdc_is_moved
    from changes
),

counted as (
    select
        *,
        if(_cdc_is_moved, {{ _rows_under_key('array_sort(collect_set(if(_cdc_is_moved, '
            ~ _moves_event('moved', 'moved._cdc_move') ~ ', null)) over (' ~ since_truncate ~ '))') }},
            null) as _cdc_rows
    from moved
),

_handovers as (
    select
        *,
        _cdc_op = 'd' and endswith(_cdc_move, ' out') and _cdc_rows > 0 as _cdc_is_void,
        endswith(_cdc_move, ' in') as _cdc_begins
    from counted
),
{%- endmacro %}

{#-
    What a history has to read, as its materialization needs it.

    - columns: those of the change log; `maps`, those of them that are maps,
    - above, up_to: the appends of the change log that it has read, and that there are,
    - is_truncated: whether new changes hold a truncate, so that all keys are touched,
    - is_moved: whether some keys were passed on in one statement,
    - known_at: the time of the newest append.
-#}
{% macro _history_bounds(changes, keys, track) -%}
    {%- if model.resource_type == 'unit_test' or not execute or flags.WHICH not in ('run', 'build') -%}
        {{ return({'columns': keys, 'maps': [], 'is_new': true, 'above': 0, 'up_to': 0, 'is_moved': false,
            'is_truncated': false}) }}
    {%- endif -%}
    {%- set source = _records_of(changes) -%}
    {%- do _check_keys(keys, source) -%}
    {%- if not keys -%}
        {{ exceptions.raise_compiler_error(
            'debezium_history in model ' ~ model.name ~ ': keys is empty. Rows without a key have no versions.') }}
    {%- endif -%}
    {%- set state = state_of_log(changes, source) -%}
    {%- for name in keys + (track or []) if name not in state.columns -%}
        {{ exceptions.raise_compiler_error(
            'debezium_history in model ' ~ model.name ~ ": '" ~ name ~ "' is none of the columns of " ~ changes ~ ': '
                ~ state.columns | join(', ') ~ '.'
        ) }}
    {%- endfor -%}
    {%- set existing = load_relation(this) if is_incremental() else none -%}
    {%- set stored = _table_properties(existing) if existing else {} -%}
    {%- set merged = merged_up_to(existing, "max(_cdc_known_from), ''", stored) if existing else {'up_to': 0,
        'is_moved': false} -%}
    {%- set declaration = declaration_digest(state.base ~ tojson([keys, track])) -%}
    {%- set added = _columns_added_to_silver(stored, changes, state.columns, _batches('_cdc_append', 0, merged.up_to))
        if stored.get('cdc.declaration') == declaration else none -%}
    {%- set is_new = added is none -%}
    {%- do _check_bronze(source.bronze, stored) -%}
    {%- set above = 0 if is_new or merged.up_to > state.append else merged.up_to -%}
    {%- set replaced = load_relation(this) if not above else none -%}
    {%- do _check_events_are_there(replaced, changes, source.bronze) if replaced -%}
    {%- set found = _found_for_history(changes, source, above, state.append) -%}
    {%- do exceptions.warn('model ' ~ model.name ~ ': the history is rebuilt; what was known before is lost')
        if existing and is_new -%}
    {%- set maps = [] -%}
    {%- for row in run_query('describe query select * from ' ~ changes).rows -%}
        {%- do maps.append(row[0]) if row[1].startswith('map<') -%}
    {%- endfor -%}
    {%- set bounds = {
        'is_history': true,
        'keys': keys,
        'columns': state.columns,
        'added': added or [],
        'changes': changes | string,
        'maps': maps,
        'declaration': declaration,
        'is_described': true,
        'bronze': landed_batches(source.bronze).id,
        'is_new': is_new,
        'above': above,
        'up_to': state.append,
        'has_new': is_new or found[0] + found[1] > 0,
        'is_truncated': found[1] > 0,
        'is_moved': found[3] > 0 or not is_new and merged.is_moved and source.tells_moves,
        'known_at': found[2],
        'batch': '_cdc_known_from',
        'properties': {},
    } -%}
    {%- do bounds_of_run().update({model.unique_id: bounds}) -%}
    {{ return(bounds) }}
{%- endmacro %}

{#- What new changes hold: how many changes, how many truncates, the time of the newest append, how many moved keys. -#}
{% macro _found_for_history(changes, source, above, up_to) -%}
    {%- set found = run_query(
        "select count_if(_cdc_kind = 'change'), count_if(_cdc_kind = 'truncate'), "
        ~ 'cast(max(_cdc_appended_at) as string), '
        ~ ("count_if(contains(_cdc_move, ' '))" if source.tells_moves else '0')
        ~ (', count(_cdc_patches)' if source.is_of_documents else ', 0')
        ~ ' from ' ~ changes ~ ' where ' ~ _batches('_cdc_append', above, up_to)
    ).rows[0] -%}
    {%- if found[4] -%}
        {{ exceptions.raise_compiler_error(
            'debezium_history in model ' ~ model.name ~ ': ' ~ changes ~ ' has ' ~ found[4]
                ~ ' changes of a part of a document. Such documents have no history.\n'
            ~ '  Set capture.mode to change_streams_update_full, and take a snapshot; or delete this model.'
        ) }}
    {%- endif -%}
    {{ return(found) }}
{%- endmacro %}
