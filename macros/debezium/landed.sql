{#- One clear error if models are run whose events have not landed, or of which dbt would read a part. -#}
{% macro require_landed_events() -%}
    {%- do _require_all_events() if execute and flags.WHICH in ('run', 'build') -%}
    {%- if execute and flags.WHICH in ('run', 'build') and graph.sources -%}
        {%- if 'bronze' not in run_query('show schemas').columns[0].values() -%}
            {{ exceptions.raise_compiler_error(
                'no events have landed yet: run `make run`, '
                ~ 'or `make run EVENTS=<file, folder or glob> SYSTEM=<name>` for your own.'
            ) }}
        {%- endif -%}
        {%- set landed = run_query('show tables in bronze').columns['tableName'].values() -%}
        {%- set missing = _systems_read() | reject('in', landed) | list -%}
        {%- if missing -%}
            {%- set choice = [] -%}
            {%- for name in landed if not name.endswith('__files') -%}
                {%- do choice.append('source:bronze.' ~ name ~ '+') -%}
            {%- endfor -%}
            {{ exceptions.raise_compiler_error(
                'nothing has landed for ' ~ missing | join(', ')
                    ~ '. Land their events (`make run` does, of the samples), or build '
                ~ 'what has landed: dbt ' ~ flags.WHICH ~ ' --select '
                ~ choice | sort(case_sensitive=true) | join(' ')
            ) }}
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}

{#- With `--empty` or `--sample` dbt leaves out rows, and the tables would count these as merged. -#}
{% macro _require_all_events() -%}
    {%- if flags.EMPTY or invocation_args_dict.sample -%}
        {{ exceptions.raise_compiler_error('--empty reads no events, --sample not all, and the tables would take the '
            ~ 'others for merged. Run dbt without them.') }}
    {%- endif -%}
{%- endmacro %}

{#- The systems whose bronze tables the selected models read, themselves or through others. -#}
{% macro _systems_read() -%}
    {%- set reached, systems = [], [] -%}
    {%- do reached.extend(selected_resources) -%}
    {%- for name in reached -%} {#- which grows on the way -#}
        {%- for parent in graph.nodes.get(name, {}).get('depends_on', {}).get('nodes', []) if parent not in reached -%}
            {%- do reached.append(parent) -%}
        {%- endfor -%}
        {%- if graph.sources.get(name, {}).source_name == 'bronze' -%}
            {%- do systems.append(graph.sources[name].name) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(systems | unique(case_sensitive=true) | sort(case_sensitive=true)) }}
{%- endmacro %}
