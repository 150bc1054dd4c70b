{#-
    Rows of `ExtractNewRecordState`, of whatever connector: docs/connectors/flattened.md.

    - prefix: `add.fields.prefix` of the transform; `__deleted` has none of it.
-#}
{% macro flattened_connector(prefix='__') -%}
    {%- set fields = ['`__deleted`: string'] -%}
    {%- for name in _flattened_metadata() if prefix ~ name != '__deleted' -%}
        {%- do fields.append(quoted(prefix ~ name) ~ ': string') -%}
    {%- endfor -%}
    {{ return(envelope_capabilities({
        'form': 'flat',
        'fields': fields,
        'op': _flattened_op(prefix),
        'snapshot': _flattened(prefix, 'snapshot',
            "if(lower(" ~ _flattened(prefix, 'op') ~ ") = 'r', 'true', 'false')"),
        'position': _flattened_position(prefix),
        'changed_at': _flattened(prefix, 'ts_ms'),
        'transaction_id': 'cast(null as string)',
        'left_out': 'placeholder',
        'splits_key_changes': true,
        'tombstone_deletes': true,
    })) }}
{%- endmacro %}

{#- The metadata that are read, of `add.fields=op,source.lsn,…`, named with their struct and without. -#}
{% macro _flattened_metadata() -%}
    {%- set names = ['op'] -%}
    {%- for name in ('ts_ms', 'snapshot', 'lsn', 'sequence', 'file', 'pos', 'row') -%}
        {%- do names.extend(['source_' ~ name, name]) -%}
    {%- endfor -%}
    {{ return(names) }}
{%- endmacro %}

{% macro _flattened(prefix, name, otherwise='') -%}
    {%- set plain = '_event.payload.' ~ quoted(prefix ~ name) -%}
    {%- if name == 'op' -%}
        {{ plain }}
    {%- else -%}
        coalesce(_event.payload.{{ quoted(prefix ~ 'source_' ~ name) }}, {{ plain }}{{ ', ' ~ otherwise if otherwise }})
    {%- endif -%}
{%- endmacro %}

{#-
    A row says that it is gone by `__deleted`; a record without a value stands for a delete too. So does Connect's
    wrapper around none, but no row that begins with a column of its name.
-#}
{% macro _flattened_op(prefix) -%}
    case
        when _event.payload is null
            and (value is null or octet_length(value) < 64 and trim(value) in ('', 'null') or {{ _is_wrapper() }})
            then 'd'
        when _event.payload.`__deleted` = 'true' then 'd'
        else coalesce(lower({{ _flattened(prefix, 'op') }}), 'u')
    end
{%- endmacro %}

{#-
    The source's position where the row has one, else nothing: the order of the topic decides. Without `__deleted`
    deletes come as tombstones, which have no position, so the rows must not have one either. A tombstone beside a row
    with `__deleted` sorts before every row, and changes nothing.

    Fields of these names that mean something else: the `sequence` of Spanner and Db2 for i (a number) and of
    CockroachDB (`[]`), the `lsn` of YugabyteDB's gRPC connector (`1:2::9:0`), the `file` of Cassandra
    (`CommitLog-7-1.log`).
-#}
{% macro _flattened_position(prefix) -%}
    {%- set postgresql = _postgresql_position()
        | replace('_event.payload.source.snapshot', _flattened(prefix, 'snapshot'))
        | replace('_event.payload.source.sequence', _flattened(prefix, 'sequence'))
        | replace('_event.payload.source.lsn', _flattened(prefix, 'lsn')) -%}
    {%- set binlog = _mysql_position()
        | replace('_event.payload.source.file', _flattened(prefix, 'file'))
        | replace('_event.payload.source.pos', _flattened(prefix, 'pos'))
        | replace('_event.payload.source.row', _flattened(prefix, 'row')) -%}
    case
        when _event.payload.`__deleted` is null then ''
        when contains({{ _flattened(prefix, 'lsn') }}, ':') then ''
        when {{ _flattened(prefix, 'lsn') }} is not null or {{ _flattened(prefix, 'sequence') }} like '[_%]'
            then {{ postgresql }}
        when {{ _flattened(prefix, 'file') }} not like '%.log'
            then {{ binlog | replace('_event.payload.source', '_event.payload') }}
        else ''
    end
{%- endmacro %}
