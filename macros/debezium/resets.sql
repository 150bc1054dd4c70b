{#-
    Where the source's log started over: a restored database, a failover, a reset binlog. Changes below an earlier
    change of their key, or below a truncate, lose to it; so does a truncate below a change. A redelivery is no reset.
    The change log is asked, of all that has landed.

    Returns of each change log, by its name as SQL, whose positions are those of a log:

    - resets: a JSON text: partition or file → number (offset or line) of the first such change, of the last one, and
      how many there are. Earlier findings are checked again, because the original of a redelivery may have landed
      since,
    - compared: the last append that was compared, and the greatest place in the source's log,
    - is_stored: whether that is worth a commit.

    One query asks of twenty logs whether their new changes are in order. Only if not, all of the log is read.

    Within a partition or file the numbers say which change is later. Across them, across batches with the same numbers
    and across epochs the source's clock says it. This is the only place that uses a clock, and it decides nothing.
-#}
{% macro debezium_resets(logs) -%}
    {%- set asked, questions, orders, found = {}, [], [], {} -%}
    {%- for log_name in logs -%}
        {%- set of_log = _asked_of_log(log_name) -%}
        {%- do asked.update({log_name: of_log}) if of_log -%}
        {%- do questions.append(_order_of_new(of_log)) if of_log -%}
    {%- endfor -%}
    {%- for some in questions | batch(20) -%} {#- of hundreds of tables one query would take long to plan -#}
        {%- do orders.extend(run_query(some | join('\nunion all\n')).rows) -%}
    {%- endfor -%}
    {%- for order in orders -%}
        {%- set of_log = dict(asked[order.log_name], up_to=(order.up_to or 0) | int,
            is_truncated=order.truncates > 0) -%}
        {%- set is_asked = order.changes > 0 and (of_log.known != '{}' or not _is_in_order(of_log, order)) -%}
        {%- do found.update({order.log_name: {
            'resets': _found_resets(of_log) if is_asked else of_log.known,
            'compared': of_log.up_to ~ ' ' ~ [of_log.highest, order.highest or ''] | max(case_sensitive=true),
            'is_stored': is_asked or order.changes > 10000 or of_log.up_to >= of_log.above + 10,
        }}) -%}
    {%- endfor -%}
    {{ return(found) }}
{%- endmacro %}

{#-
    Ask change logs for resets, and store what was found. Few changes of few appends, if in order, are compared again
    with the next ones: to read them costs less than a commit.
-#}
{% macro store_log_resets(logs) -%}
    {%- for log_name, found in debezium_resets(logs).items() if found.is_stored -%}
        {%- do run_query('alter table ' ~ log_name ~ " set tblproperties ('cdc.compared' = " ~ literal(found.compared)
            ~ ", 'cdc.resets' = " ~ literal(found.resets) ~ ')') -%}
    {%- endfor -%}
{%- endmacro %}

{#-
    What a change log is asked by, from its properties; none if its positions are not those of a log.

    - changes: its rows. Without a key a row is known again by all of its columns, `_cdc_row`,
    - above, highest: the last append that was compared, and the greatest place up to it; empty if unknown,
    - known: the resets that it stores.
-#}
{% macro _asked_of_log(log_name) -%}
    {%- set stored = _table_properties(log_name) -%}
    {%- set declared = fromjson(stored.get('cdc.declared') or '{}') -%}
    {%- if not declared or not debezium_connector(declared.connector).is_log -%} {{ return(none) }} {%- endif -%}
    {%- set row -%}
        (select *, to_json(struct({{ _quoted_list(declared.columns) }})) as _cdc_row from {{ log_name }})
    {%- endset -%}
    {%- set compared = (stored.get('cdc.compared') or '0').split(' ', 1) + [''] -%}
    {{ return({
        'log_name': log_name,
        'has_key': declared['keys'] | length > 0,
        'keys': declared['keys'] or ['_cdc_row'],
        'changes': log_name if declared['keys'] else row,
        'above': compared[0] | int,
        'highest': compared[1],
        'known': stored.get('cdc.resets', '{}'),
    }) }}
{%- endmacro %}

{#- The new changes and truncates of a log; all if it is not known how high the others reach. -#}
{% macro _new_of_log(asked) -%}
({{ _in_place(asked.changes, '_cdc_append > ' ~ (asked.above if asked.highest else 0)) }})
{%- endmacro %}

{#-
    Of the new changes of a log their places, and `order_of_keys`: 1 if a change stands behind one of the same key that
    lies above it in one partition or file, or landed later, 2 if a key stands in two of them. It is enough to compare
    each change with the one before it. Keys are compared by a hash, so that the sort is narrow; if two keys share it,
    the next question finds the truth.
-#}
{% macro _order_of_new(asked) -%}
select
    {{ literal(asked.log_name) }} as log_name,
    count(*) as changes,
    max(_cdc_append) as up_to,
    min(_cdc_log) as lowest,
    max(_cdc_log) as highest,
    count_if(_cdc_kind = 'truncate') as truncates,
    {%- if asked.has_key %}
    coalesce(bit_or(if(_cdc_place_hash <> _cdc_place_before, 2, if(_cdc_epoch = _cdc_epoch_before
        and (_cdc_log < _cdc_log_before or _cdc_batch < _cdc_batch_before), 1, 0))), 0) as order_of_keys
from (
    select
        *,
        lag(_cdc_place_hash) over of_key as _cdc_place_before,
        lag(_cdc_epoch) over of_key as _cdc_epoch_before,
        lag(_cdc_log) over of_key as _cdc_log_before,
        lag(_cdc_batch) over of_key as _cdc_batch_before
    from {{ _new_of_log(asked) }} as new
    window of_key as (partition by xxhash64({{ _quoted_list(asked['keys']) }}) order by _cdc_place_hash, _cdc_epoch,
        _cdc_place_number, _cdc_batch)
) as ordered
    {%- else %}
    0 as order_of_keys
from {{ _new_of_log(asked) }} as new
    {%- endif %}
{%- endmacro %}

{#- Whether no new change can lie below an earlier one. -#}
{% macro _is_in_order(asked, order) -%}
    {%- if order.order_of_keys or asked.above and not asked.highest -%} {{ return(false) }} {%- endif -%}
    {%- if asked.above and order.lowest < asked.highest
        and (asked.is_truncated or run_query(_older_above_new(asked, order.lowest)).rows | length > 0) -%}
        {{ return(false) }}
    {%- endif -%}
    {%- set in_order = 'sign(new._cdc_place_number - other._cdc_place_number)' -%}
    {%- set not_in_order -%}
select 1
from {{ _new_of_log(asked) }} as new
inner join {{ _new_of_log(asked) }} as other
    on
        other._cdc_kind = 'truncate' and new._cdc_log <> other._cdc_log
        and not (
            new._cdc_place_hash = other._cdc_place_hash and new._cdc_epoch = other._cdc_epoch
            and {{ in_order }} = if(new._cdc_log < other._cdc_log, -1, 1)
            and {{ in_order }} * sign(new._cdc_batch - other._cdc_batch) >= 0
        )
limit 1
    {%- endset -%}
    {{ return(not asked.is_truncated or run_query(not_in_order).rows | length == 0) }}
{%- endmacro %}

{#-
    A row, if an older truncate lies above a new change, or an older change above a new one of its key. The new changes
    of several partitions begin below the last ones of the others: of the log only what lies above the lowest is read.
-#}
{% macro _older_above_new(asked, lowest) -%}
    {%- set older = '(' ~ _in_place(asked.changes, '_cdc_append <= ' ~ asked.above ~ ' and _cdc_position >= '
        ~ literal(lowest)) ~ ')' -%}
select 1
from {{ older }} as other
where other._cdc_kind = 'truncate' and other._cdc_log > {{ literal(lowest) }}
    {%- if asked.has_key %}
union all
select 1
from {{ older }} as other
left semi join {{ _new_of_log(asked) }} as new
    on {{ _is_same_key(asked['keys']) }} and new._cdc_log < other._cdc_log
    {%- endif %}
limit 1
{%- endmacro %}
