{#-
    The changes of a table without a key. Its rows cannot be identified, so no update or delete is applied. A change
    that Debezium sent twice stands here twice, because equal rows of one statement share their position. A truncate
    removes all changes before it.
-#}
{% macro debezium_log(changes, columns) -%}
{%- set new = debezium_new_changes(changes, [], columns) -%}
select
    {{ _quoted_list(columns, '{},', ' ') }}
    {%- for name in metadata_columns() %}
    {{ "_cdc_op = 'd' as _cdc_is_deleted" if name == '_cdc_is_deleted' else name }},
    {%- endfor %}
    _cdc_append
from {{ new.relation }}
where
    _cdc_kind = 'change'
    and {{ new.condition }}
{%- endmacro %}
