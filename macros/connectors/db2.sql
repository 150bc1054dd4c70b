{#- Db2 for Linux, UNIX, Windows and z/OS: docs/connectors/db2.md. -#}
{% macro db2_connector() -%}
    {{ return(envelope_capabilities({
        'source': ['commit_lsn', 'change_lsn'],
        'position': _db2_position(),
        'passes_keys_on': '_event.payload.source.commit_lsn',
        'table': ['_event.payload.source.schema', '_event.payload.source.table'],
    })) }}
{%- endmacro %}

{% macro _db2_position() -%}
    concat(
        {{ sortable_lsn('_event.payload.source.commit_lsn',
            'if(' ~ is_snapshot_row() ~ ', ' ~ _lsn_zero() ~ ', null)') }},
        {{ sortable_lsn('_event.payload.source.change_lsn', _lsn_zero()) }}
    )
{%- endmacro %}
