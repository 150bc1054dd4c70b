{#-
    The counts name every record of bronze, by batch. What has landed since they were made is not compared; of topics
    that are not routed a record may be counted for more than one table, and one of a table without a model fails it:
    nothing reads that record.
-#}
{% test every_record_counted(model, records) %}
select landed.batch, landed, counted
from (select batch, count(*) as landed from {{ records }} group by batch) as landed
left join (select batch, sum(events) as counted
    from {{ model }} group by batch) as counted on landed.batch = counted.batch
where landed > coalesce(counted, 0) and landed.batch <= (select max(batch) from {{ model }})
{% endtest %}
