{#-
    Key changes and key handovers. Debezium writes a key change as a delete under the old key and a create under the new
    one, with a header each, or as one update.

    A statement may give a row the key of another row that it moves later (`set id = id + 1`). Under that key the create
    comes before the delete, and no event says so. The number of rows does: none or one before the transaction, one more
    for each `in`, one less for each `out`. So such a delete does not overwrite the row. `_cdc_moves` keeps what
    decides, and merges in any order:

    - events: place, transaction and action of the moves since the newest transaction that moved nothing, and that one's
      newest place. At one place `gone` sorts before `in`, `kept` and `out`,
    - row: the metadata of the newest event that is no `out`; the columns have its values,
    - out: the metadata of the newest `out`, which the row shows if no row is left under its key.
-#}
{% macro _moves_type() -%}
    struct<events: array<string>, `row`: {{ _moves_write_type() }}, `out`: {{ _moves_write_type() }}>
{%- endmacro %}

{% macro _moves_write_type() -%}
    struct<_cdc_position: string, _cdc_op: string, _cdc_is_snapshot: boolean, _cdc_transaction_id: string,
        _cdc_changed_at: timestamp,
        _cdc_batch: bigint, _cdc_event_id: string>
{%- endmacro %}

{#-
    The number of the transaction, and whether the change moves a row to (` in`) or from (` out`) its key. Debezium
    marks both halves (`RelationalChangeRecordEmitter.emitUpdateAsPrimaryKeyChangeRecord`); the presence of the header
    counts, its content is the converter's.
-#}
{% macro _move(c, has_two_halves) -%}
    concat(
        replace(coalesce({{ c.passes_keys_on }}, ''), ' ', '_'),
        case
            {%- if has_two_halves %}
            when _half <> '' and {{ c.passes_keys_on }} is not null then ' ' || _half
            {%- endif %}
            when _op = 'd' and array_contains(headers.key, '__debezium.newkey') then ' out'
            when _op = 'c' and array_contains(headers.key, '__debezium.oldkey') then ' in'
            else ''
        end
    )
{%- endmacro %}

{#- Whether rows of a table may pass keys on, by the `meta` of its staging model. -#}
{% macro _passes_keys_on(meta) -%}
    {{ return(meta.get('connector') and meta.get('keys')
        and debezium_connector(meta.connector).passes_keys_on is not none) }}
{%- endmacro %}

{#- Whether silver tables of a staging relation have `_cdc_moves`. -#}
{% macro _keeps_moves(changes) -%}
    {%- for node in graph.nodes.values() if node.resource_type == 'model' and node.alias == changes.identifier -%}
        {{ return(_passes_keys_on(node.config.get('meta', {}).get('debezium', {}))) }}
    {%- endfor -%}
    {{ return(false) }}
{%- endmacro %}

{#-
    Place, transaction and action of a change, with blanks between. A change without a known transaction has one of its
    own.
-#}
{% macro _moves_event(row, move="''") -%}
    {%- set place = "substring_index(" ~ row ~ "._cdc_position, '.', 3)" -%}
    {%- set did = "case when contains(" ~ move ~ ", ' ') then split_part(" ~ move ~ ", ' ', 2) when " ~ row
        ~ "._cdc_op = 'd' then 'gone' else 'kept' end" -%}
    concat_ws(' ', {{ place }}, coalesce(nullif(split_part({{ move }}, ' ', 1), ''), {{ place }}), {{ did }})
{%- endmacro %}

{#- The metadata of a write, the position first, so that the greater of two is the newer. -#}
{% macro _moves_write(row) -%}
    named_struct(
        {%- for name in ['_cdc_position', '_cdc_op', '_cdc_is_snapshot', '_cdc_transaction_id', '_cdc_changed_at',
            '_cdc_batch', '_cdc_event_id'] -%}
        '{{ name }}', {{ row }}.{{ name }}{{ ', ' if not loop.last }}
        {%- endfor -%}
    )
{%- endmacro %}

{#- What a row shows: the newest write, or the `out` after it where that left nothing under the key. -#}
{% macro _shown_write(row, out, events) -%}
    if({{ out }}._cdc_position > {{ row }}._cdc_position and {{ _rows_under_key(events) }} = 0, {{ out }}, {{ row }})
{%- endmacro %}

{#-
    How many rows are under a key after these events. A transaction begins with one or none; what it takes first was
    there.
-#}
{% macro _rows_under_key(events) -%}
    {%- set is_first = "split_part(e, ' ', 2) <> s.transaction" -%}
    {%- set rows = 'if(' ~ is_first ~ ', least(s.n, 1), s.n)' -%}
    aggregate(
        {{ events }},
        named_struct('n', 0, 'transaction', ''),
        (s, e) -> named_struct(
            'n', case
                when endswith(e, ' gone') then 0
                when endswith(e, ' kept') then greatest({{ rows }}, 1)
                when endswith(e, ' in') then {{ rows }} + 1
                when {{ is_first }} then 0
                else greatest({{ rows }} - 1, 0)
            end,
            'transaction', split_part(e, ' ', 2)
        ),
        s -> s.n
    )
{%- endmacro %}

{#- `_cdc_moves` of a row; NULL where a later transaction that moved nothing decides alone. -#}
{% macro _moves_of_row(events, row, out) -%}
    {%- set moves = "filter(events, e -> endswith(e, ' in') or endswith(e, ' out'))" -%}
    {%- set transactions = 'transform(' ~ moves ~ ", e -> split_part(e, ' ', 2))" -%}
    {#- There are few of these; to look for each event among all transactions would take the square of its number. #}
    {%- set others = "array_except(transform(events, e -> split_part(e, ' ', 2)), " ~ transactions ~ ')' -%}
    {%- set of_others = "filter(events, e -> array_contains(others, split_part(e, ' ', 2)))" -%}
    {%- set since = "coalesce(array_max(" ~ of_others ~ "), '')" -%}
    {%- set kept = let(others, 'others', let(since, 'since', 'filter(events, e -> e >= since)')) -%}
    {%- set found = let(events, 'events', kept) -%}
    {%- set has_moves = "exists(kept, e -> endswith(e, ' in') or endswith(e, ' out'))" -%}
    {{ let(found, 'kept', 'if(' ~ has_moves ~ ', ' ~ _moves('kept', row, out) ~ ', null)') }}
{%- endmacro %}

{% macro _moves(events, row, out) -%}
    named_struct('events', {{ events }}, 'row', {{ row }}, 'out', {{ out }})
{%- endmacro %}
