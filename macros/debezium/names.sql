{#- A name as Spark reads it whatever it holds: in backticks, with its own backticks doubled. -#}
{% macro quoted(name) -%}
    {{ return('`' ~ name | replace('`', '``') ~ '`') }}
{%- endmacro %}


{#- A text as a SQL literal whatever it holds. -#}
{% macro literal(text) -%}
    {{ return("'" ~ text | replace('\\', '\\\\') | replace("'", "\\'") ~ "'") }}
{%- endmacro %}


{#- The metadata columns that silver keeps for each row, in their one order. -#}
{% macro metadata_columns() -%}
    {{ return([
        '_cdc_op', '_cdc_is_deleted', '_cdc_position', '_cdc_is_snapshot', '_cdc_transaction_id',
        '_cdc_changed_at', '_cdc_batch', '_cdc_event_id',
    ]) }}
{%- endmacro %}
