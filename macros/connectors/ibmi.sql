{#- Db2 for i: docs/connectors/ibmi.md. Its source block names no table; the topic does. -#}
{% macro ibmi_connector() -%}
    {{ return(envelope_capabilities({
        'source': ['receiver', 'sequence'],
        'position': _ibmi_position(),
    })) }}
{%- endmacro %}

{#-
    The journal receiver's number, the digits at the end of its name, then the entry's sequence number, which may
    restart with a new receiver.
-#}
{% macro _ibmi_position() -%}
    {%- set receiver -%}
        coalesce(try_cast(regexp_extract(_event.payload.source.receiver, '([0-9]+) *$', 1) as decimal(20, 0)), 0)
    {%- endset -%}
    {%- set sequence -%}
        try_cast(coalesce(nullif(_event.payload.source.sequence, ''),
            if({{ is_snapshot_row() }}, '0', null)) as decimal(38, 0))
    {%- endset -%}
    concat(
        {{ let(receiver, 'n', sortable_number('n', 10)) }},
        {{ let(sequence, 'n', sortable_number('n', 38)) }}
    )
{%- endmacro %}
