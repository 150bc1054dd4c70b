{#-
    The rows of new batches replace those of the same batches, which are there only if two runs counted at once. If a
    table is new or its log was rebuilt, older batches are counted too: rows are merged, and those of a rebuilt log
    replace all that the table had.
-#}
{% macro _merge_counts(bounds) -%}
    {%- if bounds.up_to <= bounds.above and not bounds.rebuilt and not bounds.is_behind -%}
        {%- call noop_statement('main', 'nothing new') -%} {%- endcall -%}
    {%- else -%}
        {%- set is_insert = not bounds.rebuilt and not bounds.is_behind -%}
        {%- do _store_with_next_commit(bounds) if not is_insert -%}
        {%- call statement('main') -%}
            {%- if is_insert %}
            insert into {{ this }} with ({{ _with_mark(bounds) }}) replace where batch > {{ bounds.above }}
            {{ sql }}
            {%- else %}
            merge into {{ this }} as stored
            using ({{ sql }}) as counted
            on {% for name in ('source_table', 'batch', 'kind', 'op', 'reject_reason') -%}
                stored.{{ name }} <=> counted.{{ name }}{{ ' and ' if not loop.last }}
            {%- endfor %}
            when matched and stored.events <> counted.events then update set *
            when not matched then insert *
            {%- if bounds.rebuilt %}
            when not matched by source and stored.source_table in ({{ _literals(bounds.rebuilt) }}) then delete
            {%- endif %}
            {%- if bounds.is_behind %}
            when not matched by source and stored.source_table is null then delete
            {%- endif %}
            {%- endif %}
        {%- endcall -%}
        {%- do _store_with_next_commit(none) if not is_insert -%}
        {%- if bounds.is_behind -%}
            {%- do run_query("alter table " ~ this ~ " set tblproperties ('cdc.declarations' = "
                ~ literal(tojson(bounds.declarations)) ~ ")") -%}
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}
