{#- A name as Spark reads it whatever it holds: in backticks, with its own backticks doubled. -#}
{% macro quoted(name) -%}
    {{ return('`' ~ name | replace('`', '``') ~ '`') }}
{%- endmacro %}

{#- A text for each name, with the quoted name where the text has `{}`. -#}
{% macro _quoted_list(names, text='{}', separator=', ') -%}
    {%- set found = [] -%}
    {%- for name in names -%} {%- do found.append(text.replace('{}', quoted(name))) -%} {%- endfor -%}
    {{ return(found | join(separator)) }}
{%- endmacro %}

{#-
    Columns of a query → their types. `describe` leaves the fields of structs out, because the profile has plans printed
    so.
-#}
{% macro _types_of(query) -%}
    {%- set names, types = run_query('select * from (' ~ query ~ ') where false').column_names, {} -%}
    {%- set told = _quoted_list(names, 'typeof(any_value({}))') -%}
    {%- for type in run_query('select ' ~ told ~ ' from (' ~ query ~ ') where false').rows[0] -%}
        {%- do types.update({names[loop.index0]: type}) -%}
    {%- endfor -%}
    {{ return(types) }}
{%- endmacro %}

{#- A text as a SQL literal whatever it holds. -#}
{% macro literal(text) -%}
    {{ return("'" ~ text | replace('\\', '\\\\') | replace("'", "\\'") ~ "'") }}
{%- endmacro %}

{% macro _literals(texts) -%}
    {%- set found = [] -%}
    {%- for text in texts -%} {%- do found.append(literal(text)) -%} {%- endfor -%}
    {{ return(found | join(', ')) }}
{%- endmacro %}

{% macro _literal_or_null(text) -%}
    {{ return('null' if text is none else literal(text)) }}
{%- endmacro %}

{#-
    The names that no column of an Iceberg table may have, whatever their case: tables that have one cannot be read, or
    not be merged into. Source: org.apache.iceberg.MetadataColumns, without those of delete files and change views,
    which tables may have.
-#}
{% macro reserved_columns() -%}
    {{ return(['_file', '_pos', '_deleted', '_spec_id', '_partition', '_row_id', '_last_updated_sequence_number']) }}
{%- endmacro %}

{#- The metadata columns that silver keeps for each row, in their one order. -#}
{% macro metadata_columns() -%}
    {{ return([
        '_cdc_op', '_cdc_is_deleted', '_cdc_position', '_cdc_is_snapshot', '_cdc_transaction_id',
        '_cdc_changed_at', '_cdc_batch', '_cdc_event_id',
    ]) }}
{%- endmacro %}
