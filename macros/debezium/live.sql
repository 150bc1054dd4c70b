{#- The rows that the source's table has now, under the source's own column names. -#}
{% macro debezium_live(silver) -%}
select * except ({{ (metadata_columns() + ['_cdc_held']) | join(', ') }})
from {{ silver }}
where not _cdc_is_deleted
{%- endmacro %}
