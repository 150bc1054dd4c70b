{#-
    Tables and views of a schema, in the four columns of SHOW TABLE EXTENDED that the adapter reads.

    Iceberg refuses SHOW TABLE EXTENDED, and dbt-spark's fallback describes every table with a statement of its
    own and never sees views. Where views are tables, nothing asks the catalog for views: it may have none.
-#}
{% macro spark__list_relations_without_caching(relation) %}
    {%- set tables = run_query('show tables in ' ~ relation.schema) -%}
    {%- set views = [] if _views_are_tables() else run_query('show views in ' ~ relation.schema).rows -%}
    {%- set rows = [] -%}
    {%- set seen = [] -%}
    {%- for view in views -%}
        {%- do seen.append(view[1]) -%}
        {%- do rows.append([relation.schema, view[1], false, 'Type: VIEW']) if not view[2] -%}
    {%- endfor -%}
    {%- for table in tables.rows if table[1] not in seen and not table[2] -%}
        {%- do rows.append([relation.schema, table[1], false, 'Type: MANAGED\nProvider: iceberg']) -%}
    {%- endfor -%}
    {% do return(rows) %}
{% endmacro %}

{#- Whether all views are tables (LAKEHOUSE_VIEWS): the catalog has no views, or other readers cannot read them. -#}
{% macro _views_are_tables() -%}
    {%- set kind = env_var('LAKEHOUSE_VIEWS', '') or 'view' -%}
    {%- if kind not in ('view', 'table') -%}
        {{ exceptions.raise_compiler_error('LAKEHOUSE_VIEWS=' ~ kind ~ ': expected view or table.') }}
    {%- endif -%}
    {{ return(kind == 'table') }}
{%- endmacro %}

{#- A view of any model, as dbt builds it; or a table, which keeps its rows until the model is built again. -#}
{% macro create_or_replace_view() -%}
    {{ return(dbt.materialization_table_spark() if _views_are_tables() else dbt.create_or_replace_view()) }}
{%- endmacro %}

{#- What dbt asks of a table, with the fields of structs: Spark prints as many from then on, in plans too. -#}
{% macro spark__get_columns_in_relation_raw(relation) -%}
    {%- do run_query('set spark.sql.debug.maxToStringFields = 1000') -%}
    {{ return(run_query('describe extended ' ~ relation)) }}
{%- endmacro %}

{#-
    The schema that a model names: analysts query `shop.orders`. The schema of the profile, if it is set, stands before
    it: `dev_shop.orders`.
-#}
{% macro lakehouse_schema_name(custom_schema_name) -%}
    {%- set schema = custom_schema_name or '' -%}
    {{ return([target.schema, schema] | select | join('_') or 'lakehouse') }}
{%- endmacro %}

{#-
    dbt-spark can only clone tables of Delta. Of all others a clone is a view, which costs nothing; building the model
    replaces it. What would be a view of itself, in a schema that is shared, stays as it is.
-#}
{% materialization clone, adapter='spark' -%}
    {%- if config.get('file_format') == 'delta' -%}
        {{ return(dbt.materialization_clone_spark()) }}
    {%- endif -%}
    {%- set is_shared = defer_relation and (defer_relation | string) == (this | string) -%}
    {%- if not defer_relation or is_shared or (load_cached_relation(this) and not flags.FULL_REFRESH) -%}
        {{ return({'relations': []}) }}
    {%- endif -%}
    {{ return(create_or_replace_view()) }}
{%- endmaterialization %}

{#- dbt-spark's column comment of a view, with names and texts quoted whatever they hold. -#}
{% macro get_column_comment_sql(column_name, column_dict) -%}
    {{ quoted(column_name) }}
    {%- set described = column_dict.get(column_name, {}).get('description') -%}
    {%- if described %} comment {{ literal(described) }} {%- endif -%}
{%- endmacro %}

{#-
    Comments on the columns of a table: one statement for an Iceberg table, with names and texts quoted; of others
    dbt-spark's own.
-#}
{% macro spark__alter_column_comment(relation, column_dict) -%}
    {%- if config.get('file_format') == 'iceberg' -%}
        {%- do _comment_columns(relation, column_dict) -%}
    {%- else -%}
        {%- do dbt.spark__alter_column_comment(relation, column_dict) -%}
    {%- endif -%}
{%- endmacro %}
