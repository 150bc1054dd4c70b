{#- No key stands twice or has a missing part. -#}
{% test unique_key(model, columns) %}
select {{ _quoted_list(columns) }}, count(*) as times
from {{ model }}
group by {{ _quoted_list(columns) }}
having count(*) > 1 or {{ _quoted_list(columns, '{} is null', ' or ') }}
{% endtest %}
