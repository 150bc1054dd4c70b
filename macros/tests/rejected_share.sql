{#- Of no table's records, and of no records without a table, is a greater share rejected than the variable `rejected_share` (0 to 1) allows. -#}
{% test rejected_share(model) %}
select source_table, sum(if(kind = 'rejected', events, 0)) as rejected, sum(events) as landed
from {{ model }}
group by source_table
having rejected > {{ var('rejected_share') | float }} * landed
{% endtest %}
