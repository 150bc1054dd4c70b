{#-
    Every key of what is merged stands at the greatest position of its changes, or knows it to have taken another row's,
    unless a later truncate took it.
-#}
{% test newest_change_wins(model, changes, keys) %}
select newest.*
from (
    select {{ _quoted_list(keys) }}, max(_cdc_position) as newest_position
    from {{ changes }} where _cdc_kind = 'change' {{- _is_merged(model) }}
    group by {{ _quoted_list(keys) }}
) as newest
left join {{ model }} as stored
    on {{ _quoted_list(keys, 'newest.{} <=> stored.{}', ' and ') }}
where
    coalesce(stored._cdc_position, '') <> newest.newest_position
    {%- if execute and _keeps_moves(changes) %}
    and coalesce(stored._cdc_moves.`out`._cdc_position, '') <> newest.newest_position
    {%- endif %}
    and newest.newest_position > coalesce((select max(_cdc_position) from {{ changes }}
    where _cdc_kind = 'truncate' {{- _is_merged(model) }}), '')
{% endtest %}

{#-
    The condition, after others, that a change is of an append that a model has merged: what has landed since is not
    compared.
-#}
{% macro _is_merged(model) -%}
    {%- set up_to = merged_by_silver(model, _table_properties(model)).up_to if execute
        and flags.WHICH in ('test', 'build') else 0 -%}
    {%- if up_to %} and _cdc_append <= {{ up_to }} {%- endif -%}
{%- endmacro %}
