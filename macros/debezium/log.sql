{#-
    The change log of a table without a key: every change as it came, in no table's likeness. Rows of such a
    table cannot be told apart, so an update or a delete cannot be applied; and a change that Debezium sent
    twice stands here twice, because two equal rows of one statement share their position too. A truncate removes all
    changes before it.
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
