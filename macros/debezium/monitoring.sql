{#-
    What the landed records were: for each batch and table how many of each kind, operation and reason to reject.
    Rows are added once per batch and never change, so sums over them reconcile with bronze.
-#}
{% macro debezium_event_counts(events, changes) -%}
{%- set increment = debezium_increment(events, [], changes.keys() | list, 'batch') | replace('batch', '_cdc_batch') -%}
select * from (
    {% for table, relation in changes.items() -%}
    select
        _cdc_batch as batch,
        {{ literal(table) }} as source_table,
        _cdc_kind as kind,
        _cdc_op as op,
        _cdc_reject_reason as reject_reason,
        count(*) as events,
        max(_cdc_changed_at) as newest_change_at
    from {{ relation }}
    where
        _cdc_kind <> 'other_table'
        and {{ increment }}
    group by _cdc_batch, _cdc_kind, _cdc_op, _cdc_reject_reason
    {% if not loop.last %}union all{% endif %}
    {% endfor %}
) as counts
{%- endmacro %}


{#- Records that cannot be used, with the reason, where they came from and what they hold. -#}
{% macro debezium_rejected_events(events, changes) -%}
{% for table, relation in changes.items() %}
select {{ literal(table) }} as source_table, _cdc_reject_reason as reason, _cdc_event_id as event_id, _cdc_batch as batch
from {{ relation }}
where _cdc_reject_reason is not null
union all
{% endfor %}
select null as source_table, error as reason, concat(file, ':', line) as event_id, batch
from {{ events }}
where error is not null
{%- endmacro %}
