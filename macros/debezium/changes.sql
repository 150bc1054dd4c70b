{#-
    Every landed record of a table's topics as one typed row: a change of the table, or a record that is none
    (`_cdc_kind` says what it is), or one that cannot be used (`_cdc_reject_reason` says why).

    JSON is parsed once for each record, with the declared types; a value that does not fit its type, is no
    exact value of it, or cannot be placed in the source's order rejects the record, and is never NULL in silence.
-#}
{% macro debezium_changes(events, topics, connector, table, keys, columns) -%}

    {%- do _check_declaration(connector, table, keys, columns) -%}
    {%- set names = columns.keys() | list -%}
    {%- set types = [] -%}
    {%- for type in columns.values() -%}
        {%- do types.append(debezium_type(type, '_image_' ~ loop.index)) -%}
    {%- endfor %}

with records as (

    select
        *,
        {{ envelope_text('value') }} as _text
    from {{ events }}
    where topic in ({{ _literals(topics) }})

),

parsed as (

    select
        *,
        from_json(_text, {{ literal(envelope_schema(connector, keys, columns)) }}, map('columnNameOfCorruptRecord', '_corrupt')) as _json
    from records

),

opened as (

    select
        *,
        lower(_json.payload.op) as _op,
        coalesce(lower(_json.payload.source.snapshot), 'false') as _snapshot,
        {%- if keys %}
        if(lower(_json.payload.op) = 'd', from_json(key, {{ literal(_key_schema(keys, columns)) }}), null) as _key,
        {%- endif %}
        {{ connector_position(connector, '_json.payload.source') }} as _source_position
    from parsed

),

images as (

    select
        *,
        {%- for name in names %}
        {{ _image_value(name, types[loop.index0], keys) }} as _image_{{ loop.index }},
        {%- endfor %}
        {{ _kind(connector, table) }} as _kind,
        concat(
            '0000.', _source_position, '.', if(_snapshot in {{ initial_snapshot_marks() }}, '0', '1'), '.',
            coalesce(
                concat({{ sortable_number('partition', 10) }}, '.', {{ sortable_number('offset', 20) }}),
                concat(file, ':', {{ sortable_number('line', 12) }})
            )
        ) as _position
    from opened

),

rows as (

    select
        *,
        {%- for type in types %}
        {{ type.sql }} as _row_{{ loop.index }}{{ ',' if not loop.last }}
        {%- endfor %}
    from images

),

judged as (

    select
        *,
        {{ _reject_reason(names, types, keys, connector_omits_values(connector)) }} as _reject_reason,
        {{ _omitted_columns(names, types, connector_omits_values(connector)) }} as _omitted,
        try_cast(coalesce(_json.payload.source.ts_ms, _json.payload.ts_ms) as bigint) as _changed_at
    from rows

)

select
    {%- for name in names %}
    {{ _row_value(types[loop.index0], loop.index, connector_omits_values(connector)) }} as {{ quoted(name) }},
    {%- endfor %}
    _op as _cdc_op,
    _position as _cdc_position,
    _snapshot not in ('false', '') as _cdc_is_snapshot,
    _json.payload.transaction.id as _cdc_transaction_id,
    timestamp_millis(if(_changed_at between -62135596800000 and 253402300799999, _changed_at, null)) as _cdc_changed_at,
    batch as _cdc_batch,
    coalesce(concat(topic, '/', partition, '/', offset), concat(file, ':', line)) as _cdc_event_id,
    _omitted as _cdc_omitted,
    if(_reject_reason is null, _kind, 'rejected') as _cdc_kind,
    _reject_reason as _cdc_reject_reason,
    key as _cdc_key
from judged

{%- endmacro %}


{% macro _literals(texts) -%}
    {%- for text in texts -%} {{ literal(text) }}{{ ', ' if not loop.last }} {%- endfor -%}
{%- endmacro %}


{#-
    The value as `{"payload": …, "_end": 1}`: one shape for values with and without a schema block.

    The schema block, most of the bytes, is cut off unread where that is safe: it stands first and "payload"
    is a member name once (an escaped quote never makes one). `_end` is read only if everything before it is
    whole JSON and nothing follows it.
-#}
{% macro envelope_text(value) -%}
    {%- set member = "'\"payload\":'" -%}
    {%- set after = "substring_index(" ~ value ~ ", " ~ member ~ ", -1)" -%}
    {%- set before = "substring_index(" ~ value ~ ", " ~ member ~ ", 1)" -%}
    case
        when startswith({{ value }}, '{"schema":') and octet_length({{ before }}) + octet_length({{ after }}) + 10 = octet_length({{ value }})
            then concat('{"payload":', {{ _without_last_brace(after) }}, ',"_end":1}')
        when {{ value }} rlike '^\\s*[{]\\s*"(schema|payload)"\\s*:'
            then concat({{ _without_last_brace(value) }}, ',"_end":1}')
        else concat('{"payload":', {{ value }}, ',"_end":1}')
    end
{%- endmacro %}


{% macro _without_last_brace(text) -%}
    if(endswith({{ text }}, '}'), left({{ text }}, length({{ text }}) - 1), regexp_replace({{ text }}, '[}]\\s*$', ''))
{%- endmacro %}


{#- The schema that `envelope_text` is parsed with. -#}
{% macro envelope_schema(connector, keys, columns) -%}
    {%- set source = [] -%}
    {%- for field in connector_source_fields(connector) -%}
        {%- do source.append(quoted(field) ~ ': string') -%}
    {%- endfor -%}
    {%- set before = [] -%}
    {%- set after = [] -%}
    {%- for name, type in columns.items() -%}
        {%- set field = quoted(name) ~ ': ' ~ debezium_type(type, name).json -%}
        {%- do after.append(field) -%}
        {%- if name in keys or not keys -%} {%- do before.append(field) -%} {%- endif -%}
    {%- endfor -%}
    {%- set envelope = [
        'op: string', 'ts_ms: string', 'source: struct<' ~ source | join(', ') ~ '>', 'transaction: struct<id: string>',
        'before: struct<' ~ (before or ['_none: string']) | join(', ') ~ '>', 'after: struct<' ~ after | join(', ') ~ '>',
        'status: string', 'ddl: string', 'historyRecord: string',
    ] -%}
    {{ return('payload struct<' ~ envelope | join(', ') ~ '>, _end int, _corrupt string') }}
{%- endmacro %}


{#- The values of `source.snapshot` that mark a row of a snapshot at its position; `incremental` rows are ordered like changes. -#}
{% macro initial_snapshot_marks() -%}
    ('true', 'first', 'first_in_data_collection', 'last_in_data_collection', 'last')
{%- endmacro %}


{#-
    The JSON value of a column. A delete has key columns only, from the Kafka key, else from `before`: other
    columns of a partial `before` are invented by Debezium.
-#}
{% macro _image_value(name, type, keys) -%}
    {%- set column = quoted(name) -%}
    {%- set after = '_json.payload.after.' ~ column -%}
    {%- set before = '_json.payload.before.' ~ column -%}
    {%- if type.json == 'variant' -%}
        {%- set after = 'if(is_variant_null(' ~ after ~ '), null, ' ~ after ~ ')' -%}
        {%- set before = 'if(is_variant_null(' ~ before ~ '), null, ' ~ before ~ ')' -%}
    {%- endif -%}
    {%- if name in keys -%}
        if(_op = 'd', coalesce({{ _key_value(name, type, keys) }}, _json.payload.before.{{ column }}), {{ after }})
    {%- else -%}
        if(_op = 'd', {{ 'null' if keys else before }}, {{ after }})
    {%- endif -%}
{%- endmacro %}


{#- Kafka keys come as `{"payload": {…}}`, `{…}`, `{"payload": 1}` or a bare value, and with numbers as texts. -#}
{% macro _key_schema(keys, columns) -%}
    {%- set fields = [] -%}
    {%- for name in keys -%}
        {%- set json = debezium_type(columns[name], name).json -%}
        {%- do fields.append(quoted(name) ~ ': ' ~ ('string' if _is_plain_key(json) else json)) -%}
    {%- endfor -%}
    {{ return('payload struct<' ~ fields | join(', ') ~ '>, ' ~ fields | join(', ') | replace('`: ', '` ')) }}
{%- endmacro %}


{% macro _is_plain_key(json) -%}
    {{ return(json in ('smallint', 'int', 'bigint', 'string', 'boolean')) }}
{%- endmacro %}


{% macro _key_value(name, type, keys) -%}
    {%- set parts = ['_key.payload.' ~ quoted(name), '_key.' ~ quoted(name)] -%}
    {%- if _is_plain_key(type.json) and keys | length == 1 -%}
        {%- do parts.append("nullif(regexp_replace(get_json_object(key, '$.payload'), '^[{\\\\[].*', ''), '')") -%}
        {%- do parts.append("if(key rlike '^[^{\\\\[]', trim('\"', key), null)") -%}
    {%- endif -%}
    {%- set value = 'coalesce(' ~ parts | join(', ') ~ ')' -%}
    {{ 'try_cast(' ~ value ~ ' as ' ~ type.json ~ ')' if _is_plain_key(type.json) else value }}
{%- endmacro %}


{#- What a record is. -#}
{% macro _kind(connector, table) -%}
    case
        when value is null or trim(value) = '' then 'tombstone'
        when _json.payload is null and _json._end is not null and _json._corrupt is null then 'tombstone'
        when _op = 'm' then 'message'
        when _op is null and _json.payload.status in ('BEGIN', 'END') then 'transaction'
        when _op is null and (_json.payload.ddl is not null or _json.payload.historyRecord is not null) then 'ddl'
        when _op is null and _json.payload.ts_ms is not null and _json.payload.source is null then 'heartbeat'
        {%- for field in connector_table_fields(connector) %}
        when _json.payload.source.{{ quoted(field) }} <> {{ literal(table[loop.index0]) }} then 'other_table'
        {%- endfor %}
        when _op = 't' then 'truncate'
        else 'change'
    end
{%- endmacro %}


{#- Why a record cannot be used, or NULL. The reasons are a closed list: docs/rejects.md. -#}
{% macro _reject_reason(names, types, keys, omits_values) -%}
    case
        when _kind in ('tombstone', 'message', 'transaction', 'ddl', 'heartbeat', 'other_table') then null
        when _json._end is null then 'invalid_json'
        when _op is null then 'not_an_envelope'
        when _op not in ('c', 'r', 'u', 'd', 't') then 'unknown_operation'
        when _position is null then 'no_position'
        when _op = 't' then if(key is null, null, 'truncate_with_key')
        when _json._corrupt is not null then 'value_of_wrong_type'
        when _op <> 'd' and _json.payload.after is null then 'no_after_image'
        {%- for name in keys %}
        when _row_{{ names.index(name) + 1 }} is null then 'no_key'
        when _op = 'u' and {{ _key_text('before', name, types[names.index(name)]) }} <> {{ _key_text('after', name, types[names.index(name)]) }} then 'key_changed_in_update'
        {%- endfor %}
        {%- if types | selectattr('can_fail') | list %}
        else nullif(
            concat('value_not_exact: ', concat_ws(', '
                {%- for type in types if type.can_fail -%}
                , {{ _if_inexact(names, types, type, omits_values) }}
                {%- endfor -%}
            )), 'value_not_exact: '
        )
        {%- endif %}
    end
{%- endmacro %}


{% macro _key_text(image, name, type) -%}
    {%- set member = '_json.payload.' ~ image ~ '.' ~ quoted(name) -%}
    {{ 'to_json(' ~ member ~ ')' if type.json == 'variant' else member }}
{%- endmacro %}


{% macro _if_inexact(names, types, type, omits_values) -%}
    {%- set at = types.index(type) -%}
    if(_image_{{ at + 1 }} is not null and _row_{{ at + 1 }} is null
       {%- if type.omitted and omits_values %} and not {{ type.omitted }} {%- endif %}, {{ literal(names[at]) }}, null)
{%- endmacro %}


{% macro _row_value(type, index, omits_values) -%}
    {%- if type.omitted and omits_values -%}
        if({{ type.omitted }}, null, _row_{{ index }})
    {%- else -%}
        _row_{{ index }}
    {%- endif -%}
{%- endmacro %}


{#- The columns of a change whose value the source's log did not hold; NULL where it held all. -#}
{% macro _omitted_columns(names, types, omits_values) -%}
    {%- set found = [] -%}
    {%- for type in types if type.omitted and omits_values -%}
        {%- do found.append('if(' ~ type.omitted ~ ', ' ~ literal(names[types.index(type)]) ~ ', null)') -%}
    {%- endfor -%}
    {%- if found -%}
        nullif(array_compact(array({{ found | join(', ') }})), array())
    {%- else -%}
        cast(null as array<string>)
    {%- endif -%}
{%- endmacro %}


{% macro _check_declaration(connector, table, keys, columns) -%}
    {%- set problems = [] -%}
    {%- for name in keys if name not in columns -%}
        {%- do problems.append("key '" ~ name ~ "' is not among the columns (" ~ columns | join(', ') ~ ")") -%}
    {%- endfor -%}
    {%- set seen = {} -%}
    {%- for name in columns -%}
        {%- if name | lower in seen -%}
            {%- do problems.append("columns '" ~ seen[name | lower] ~ "' and '" ~ name ~ "' differ in case only, which Spark cannot tell apart") -%}
        {%- endif -%}
        {%- do seen.update({name | lower: name}) -%}
    {%- endfor -%}
    {%- if connector_table_fields(connector) | length > table | length -%}
        {%- do problems.append("table is " ~ table ~ "; expected a name for each of " ~ connector_table_fields(connector)) -%}
    {%- endif -%}
    {%- if problems -%}
        {{ exceptions.raise_compiler_error('debezium_changes in model ' ~ model.name ~ ': ' ~ problems | join('; ') ~ '.') }}
    {%- endif -%}
{%- endmacro %}
