{#-
    The versions of a history as a relation: those that were true at a time of the source, as they were known at a time.

    - history: relation, of `debezium_history`,
    - valid_at: a time, as SQL; none for all versions,
    - known_at: the number of an append of the change log, or a time, as SQL; none for what is known now.
-#}
{% macro debezium_as_of(history, valid_at=none, known_at=none) -%}
    {%- set of_knowledge = ['_cdc_is_current', '_cdc_known_from', '_cdc_known_to', '_cdc_known_from_at',
        '_cdc_known_to_at'] -%}
    {%- set columns = [] -%}
    {%- if execute and flags.WHICH in ('run', 'build') and model.resource_type != 'unit_test' -%}
        {#- Written out: a view binds `*` by place. #}
        {%- for name in run_query('select * from ' ~ history ~ ' where false').column_names
            if name not in of_knowledge -%}
            {%- do columns.append(name) -%}
        {%- endfor -%}
    {%- endif -%}
    {%- set conditions = [] -%}
    {%- if known_at is none -%}
        {%- do conditions.append('_cdc_known_to is null') -%}
    {%- else -%}
        {%- set suffix = '' if known_at is number else '_at' -%}
        {%- set told = '_cdc_known_from' ~ suffix ~ ' <= ' ~ known_at ~ ' and (_cdc_known_to is null or _cdc_known_to'
            ~ suffix ~ ' > ' ~ known_at ~ ')' -%}
        {%- do conditions.append(told) -%}
    {%- endif -%}
    {%- if valid_at is not none -%}
        {%- do conditions.append('_cdc_valid_from <= ' ~ valid_at ~ ' and (_cdc_valid_to is null or _cdc_valid_to > '
            ~ valid_at ~ ')') -%}
    {%- endif -%}
select
    {{ _quoted_list(columns) if columns else '* except (' ~ of_knowledge | join(', ') ~ ')' }},
    _cdc_end_position is null as _cdc_is_current
from {{ history }}
where {{ conditions | join(' and ') }}
{%- endmacro %}
