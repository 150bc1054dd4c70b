{#-
    YugabyteDB, whose connectors write three forms: the gRPC connector, and the logical one with either of its plugins.
    docs/connectors/yugabytedb.md.
-#}
{% macro yugabytedb_connector() -%}
    {{ return(envelope_capabilities({
        'form': 'cells',
        'source': ['lsn', 'commit_time', 'txId'],
        'position': _yugabytedb_position(),
        'table': ['_event.payload.source.schema', '_event.payload.source.table'],
        'transaction_id': "coalesce(_event.payload.transaction.id, nullif(_event.payload.source.txId, ''))",
        'left_out': 'unset',
        'splits_key_changes': true,
    })) }}
{%- endmacro %}

{#-
    Commit, then the place in the tablet's log, `term:index:key:write_id:time`. A key stays in its tablet. Snapshot rows
    have negative parts.
-#}
{% macro _yugabytedb_position() -%}
    {%- set parts = ["coalesce(_event.payload.source.commit_time, '0')"] -%}
    {%- for number in (1, 2, 4) -%}
        {%- do parts.append("split_part(_event.payload.source.lsn, ':', " ~ number ~ ")") -%}
    {%- endfor -%}
    concat(
        {%- for part in parts %}
        {{ let('try_cast(' ~ part ~ ' as decimal(20, 0))', 'n', sortable_number('if(n < 0, 0, n)', 20)) }}{{ ','
            if not loop.last }}
        {%- endfor %}
    )
{%- endmacro %}

{#-
    The logical connector with its plugin `yboutput`: PostgreSQL's positions, and cells that tell what did not change.
-#}
{% macro yugabytedb_yboutput_connector() -%}
    {%- set capabilities = postgresql_connector() -%}
    {%- do capabilities.update({'form': 'cells', 'left_out': 'unset', 'passes_keys_on': none}) -%}
    {{ return(capabilities) }}
{%- endmacro %}

{#-
    The logical connector with plain values. Those of replica identity CHANGE leave out what did not change as null, and
    nothing in an event tells which identity it was.
-#}
{% macro yugabytedb_pgoutput_connector() -%}
    {%- set capabilities = postgresql_connector() -%}
    {%- do capabilities.update({'null_is_ambiguous': true, 'passes_keys_on': none}) -%}
    {{ return(capabilities) }}
{%- endmacro %}
