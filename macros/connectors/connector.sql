{#-
    The one place that knows which connectors there are. A connector is a file beside this one with the
    capabilities below; it is chosen by name here, so dbt sees every edge.
-#}
{% macro connector_names() -%}
    {{ return(['generic', 'mariadb', 'mysql', 'postgresql']) }}
{%- endmacro %}


{#- The members of `source` that a connector's capabilities read, as a Spark schema of texts. -#}
{% macro connector_source_fields(connector) -%}
    {%- if connector == 'postgresql' -%} {{ return(postgresql_source_fields()) }}
    {%- elif connector in ('mysql', 'mariadb') -%} {{ return(mysql_source_fields()) }}
    {%- elif connector == 'generic' -%} {{ return(generic_source_fields()) }}
    {%- else -%} {{ _unknown_connector(connector) }}
    {%- endif -%}
{%- endmacro %}


{#- The source position as SQL text that sorts in the source's order; NULL where the event has none. -#}
{% macro connector_position(connector, source) -%}
    {%- if connector == 'postgresql' -%} {{ postgresql_position(source) }}
    {%- elif connector in ('mysql', 'mariadb') -%} {{ mysql_position(source) }}
    {%- elif connector == 'generic' -%} {{ generic_position(source) }}
    {%- else -%} {{ _unknown_connector(connector) }}
    {%- endif -%}
{%- endmacro %}


{#- The names that identify a table inside an event: the members of `source`, outermost first. -#}
{% macro connector_table_fields(connector) -%}
    {%- if connector == 'postgresql' -%} {{ return(postgresql_table_fields()) }}
    {%- elif connector in ('mysql', 'mariadb') -%} {{ return(mysql_table_fields()) }}
    {%- elif connector == 'generic' -%} {{ return(generic_table_fields()) }}
    {%- else -%} {{ _unknown_connector(connector) }}
    {%- endif -%}
{%- endmacro %}


{#- Whether the connector may leave out a value that the row keeps (TOAST) and write a placeholder for it. -#}
{% macro connector_omits_values(connector) -%}
    {%- if connector == 'postgresql' -%} {{ return(postgresql_omits_values()) }}
    {%- elif connector in ('mysql', 'mariadb') -%} {{ return(mysql_omits_values()) }}
    {%- elif connector == 'generic' -%} {{ return(generic_omits_values()) }}
    {%- else -%} {{ _unknown_connector(connector) }}
    {%- endif -%}
{%- endmacro %}


{% macro _unknown_connector(connector) -%}
    {{ exceptions.raise_compiler_error(
        "debezium_changes: unknown connector '" ~ connector ~ "' in model " ~ model.name ~ ".\n"
        ~ "  Expected one of: " ~ connector_names() | join(', ') ~ ".\n"
        ~ "  Use the name that Debezium writes in source.connector ('postgresql', not 'postgres')."
    ) }}
{%- endmacro %}


{#-
    A number that is no text yet, as text of a fixed width that sorts like the number. NULL where it is
    negative or wider: a position that cannot be compared must be seen, not guessed.
-#}
{% macro sortable_number(number, width) -%}
    if({{ number }} >= 0 and length(cast({{ number }} as string)) <= {{ width }},
       lpad(cast({{ number }} as string), {{ width }}, '0'), null)
{%- endmacro %}
