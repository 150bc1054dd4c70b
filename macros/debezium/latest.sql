{#-
    The newest state of every key: one row per key, deleted ones included.

    Per column, the write with the greatest position counts. Of the events that carry every column (`full`) only the
    newest matters; the events after it that left out unchanged values (`partial`) are laid over it in order.
    `_cdc_held` names, for each column that the newest event left out, the position of the write that decided its value
    ('' where no landed event did), so that a late event can still supply it. What is named on the way begins with
    `_cdc_`: a key may be named `event` or `state`.

    An update that carries no document may change a part of a column of JSON: `_cdc_patches` keeps the write of the
    whole and what was done since, so that a late one finds its place. Under a key that rows passed on, `_cdc_moves`
    keeps what tells whether one is there.
-#}
{% macro debezium_latest(changes, keys, columns) -%}

    {%- set others = columns | reject('in', keys) | list -%}
    {%- set new = debezium_new_changes(changes, keys, columns) %}

select
    {%- for name in columns %}
    {%- if name in new.patched %}
    {{ patched_value(_patches_column(name, columns)) }} as {{ quoted(name) }},
    {%- else %}
    {{ quoted(name) if name in keys else '_cdc_state.' ~ quoted(name) ~ ' as ' ~ quoted(name) }},
    {%- endif %}
    {%- endfor %}
    {%- set shown = '_cdc_shown' if new.is_moved else '_cdc_state' %}
    {%- for name in metadata_columns() %}
    {{ _of_shown_write(name, shown) }} as {{ name }},
    {%- endfor %}
    _cdc_state._cdc_held as _cdc_held
    {%- if new.patched %},
    {%- set patches = [] -%}
    {%- for name in new.patched -%} {%- do patches.append(_patches_column(name, columns)) -%} {%- endfor %}
    {{ patches_of_row(patches) }} as _cdc_patches
    {%- elif new.is_of_documents %},
    cast(null as {{ patches_type() }}) as _cdc_patches
    {%- endif %}
    {%- if new.is_moved %},
    {%- if new.stored %}
    if(size(_cdc_events) > 0, {{ _moves('_cdc_events', _moves_write('_cdc_state'), '_cdc_out') }}, null) as _cdc_moves
    {%- else %}
    {{ _moves_of_row('_cdc_events', _moves_write('_cdc_state'), '_cdc_out') }} as _cdc_moves
    {%- endif %}
    {%- elif new.passes_keys_on %},
    cast(null as {{ _moves_type() }}) as _cdc_moves
    {%- endif %}
from (
    {%- if new.patched %}
    {#- A column's patches are read twice above, and sorted out once here. #}
    select
        *
        {%- for name in new.patched %},
        {{ pruned_patches(written_patches('_cdc_state', name, '_cdc_done')) }} as {{ _patches_column(name, columns) }}
        {%- endfor %}
    from (
    {%- endif %}
    {%- if new.is_moved %}
    select
        *,
        {{ _shown_write(_moves_write('_cdc_state'), '_cdc_out', '_cdc_events') }} as _cdc_shown
    from (
    {%- endif %}
    {{ _folded_changes(new, keys, others) }}
    {%- if new.is_moved %}
    ) as moves
    {%- endif %}
    {%- if new.patched %}
    ) as unpatched
    {%- endif %}
) as states

{%- endmacro %}

{#- The changes of each key folded: the state of its columns, and what decides patches and moves. -#}
{% macro _folded_changes(new, keys, others) -%}
    {%- set kept = metadata_columns() | reject('equalto', '_cdc_is_deleted') | list -%}
    {%- set is_full = [] -%}
    {%- do is_full.append('_cdc_omitted is null') if new.has_partial -%}
    {%- do is_full.append("not endswith(_cdc_move, ' out')") if new.is_moved -%}
    {%- set further = ['_cdc_omitted'] -%}
    {%- do further.append('_cdc_patches') if new.patched -%}
    {%- do further.append('_cdc_move') if new.is_moved %}
    select
        {{ _quoted_list(keys) }},
        {%- if new.has_partial %}
        if(size(_cdc_partial) = 0, {{ _state('_cdc_full', others, kept) }},
            {{ _fold_partial_events(others, kept, new.is_moved) }}) as _cdc_state
        {%- else %}
        {{ _state('_cdc_full', others, kept) }} as _cdc_state
        {%- endif %}
        {%- if new.patched %},
        flatten(transform(_cdc_partial, e -> e._cdc_patches)) as _cdc_done
        {%- endif %}
        {%- if new.is_moved %},
        _cdc_out,
        array_sort(_cdc_events) as _cdc_events
        {%- endif %}
    from (
        select
            {{ _quoted_list(keys) }},
            max_by(_cdc_event, _cdc_position) {{- ' filter (where ' ~ is_full | join(' and ') ~ ')' if is_full }}
                as _cdc_full
            {%- if new.has_partial %},
            collect_list(_cdc_event) filter (where _cdc_omitted is not null) as _cdc_partial
            {%- endif %}
            {%- if new.is_moved %},
            max({{ _moves_write('_cdc_event') }}) filter (where endswith(_cdc_move, ' out')) as _cdc_out,
            collect_set({{ _moves_event('_cdc_event', '_cdc_move') }}) filter (where _cdc_is_moved) as _cdc_events
            {%- endif %}
        from (
            select
                {{ _quoted_list(keys) }},
                _cdc_position,
                _cdc_omitted,
                {%- if new.is_moved %}
                _cdc_move,
                _cdc_is_moved,
                {%- endif %}
                struct({{ _quoted_list(others + kept + further) }}) as _cdc_event
            from {{ new.relation }}
            {%- if new.is_moved %}
            {#- Of keys that rows came to or left all changes are collected. #}
            left join ({{ _moved_keys(new, keys) }}) as moved using ({{ _quoted_list(keys) }})
            {%- endif %}
            where
                _cdc_kind = 'change'
                and {{ new.condition }}
        ) as events
        group by {{ _quoted_list(keys) }}
    ) as folded
{%- endmacro %}

{#- The keys that rows came to or left. -#}
{% macro _moved_keys(new, keys) -%}
    select {{ _quoted_list(keys) }}, true as _cdc_is_moved
    from {{ new.relation }}
    where _cdc_kind = 'change' and contains(_cdc_move, ' ') and {{ new.condition }}
    {%- if new.stored %}
    union
    select {{ _quoted_list(keys) }}, true
    from {{ new.stored }}
    where _cdc_moves is not null
    {%- else %}
    group by {{ _quoted_list(keys) }}
    {%- endif %}
{%- endmacro %}

{% macro _patches_column(name, columns) -%}
    {{ return('_cdc_patches_' ~ columns.index(name)) }}
{%- endmacro %}

{#- An event as the state of its key; a missing event as the state that nothing has decided. -#}
{% macro _state(event, others, kept) -%}
    named_struct(
        {%- for name in others + kept if name != '_cdc_position' %}
        {{ literal(name) }}, {{ event }}.{{ quoted(name) }},
        {%- endfor %}
        '_cdc_position', coalesce({{ event }}._cdc_position, ''),
        '_cdc_held', cast(null as map<string, string>)
    )
{%- endmacro %}

{#-
    The newest full event with the partial events after it laid over, column by column. A row that came from another key
    takes nothing from the one that was there: what it left out is NULL, held at the place of the event without its own
    number.
-#}
{% macro _fold_partial_events(others, kept, is_moved=false) -%}
    aggregate(
        array_sort(
            filter(_cdc_partial, e -> e._cdc_position > coalesce(_cdc_full._cdc_position, '')),
            (a, b) -> case when a._cdc_position < b._cdc_position then -1 when a._cdc_position > b._cdc_position then 1
                else 0 end
        ),
        {{ _state('_cdc_full', others, kept) }},
        (s, e) -> named_struct(
            {%- for name in others %}
            {{ literal(name) }}, if(array_contains(e._cdc_omitted,
                {{ literal(name) }}) {{- " and not contains(e._cdc_move, ' ')" if is_moved }}, s.{{ quoted(name) }},
                    e.{{ quoted(name) }}),
            {%- endfor %}
            {%- for name in kept if name != '_cdc_position' %}
            {{ literal(name) }}, e.{{ quoted(name) }},
            {%- endfor %}
            '_cdc_position', e._cdc_position,
            '_cdc_held', map_from_arrays(
                e._cdc_omitted,
                transform(e._cdc_omitted,
                    c -> {{ "if(contains(e._cdc_move, ' '), substring_index(e._cdc_position, '.', 3), "
                        if is_moved }}coalesce(s._cdc_held[c], s._cdc_position){{ ')' if is_moved }})
            )
        )
    )
{%- endmacro %}
