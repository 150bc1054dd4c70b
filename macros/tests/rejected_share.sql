{#-
    Of no table's records is a greater share rejected than the variable `rejected_share` allows: of no table any, but
    for those that it names as `<system>.<table>`. Records without a table count as one table, `<system>.`.
-#}
{% test rejected_share(model) %}
    {%- set system = model.identifier.rsplit('__event_counts', 1)[0] -%}
    {%- set allowed = [] -%}
    {%- for table, share in (var('rejected_share', none) or {}).items() if table.startswith(system ~ '.') -%}
        {%- do allowed.append('when ' ~ literal(table[system | length + 1:]) ~ ' then ' ~ share | float) -%}
    {%- endfor %}
select source_table, sum(if(kind = 'rejected', events, 0)) as rejected, sum(events) as landed
from {{ model }}
group by source_table
having rejected > landed * {% if allowed %}case coalesce(source_table, '') {{ allowed | join(' ') }}
    else 0 end{% else %}0{% endif %}
{% endtest %}
