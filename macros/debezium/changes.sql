{#-
    Every landed record of a table's topics as one typed row: a change of the table, or a record that is none
    (`_cdc_kind` says what it is), or one that cannot be used (`_cdc_reject_reason` says why).

    JSON is parsed once for each record, with the declared types; a value that does not fit its type, is no
    exact value of it, or cannot be placed in the source's order rejects the record, and is never NULL in silence.
-#}
{% macro debezium_changes(events, topics, connector, table, keys, columns) -%}

    {%- do _check_declaration(connector, table, keys, columns) -%}
    {%- set image = {} -%}
    {%- set row = {} -%}
    {%- for name, type in columns.items() -%}
        {%- do image.update({name: debezium_type(type, 'image.' ~ quoted(name))}) -%}
        {%- do row.update({name: debezium_type(type, 'row.' ~ quoted(name))}) -%}
    {%- endfor %}

with records as (

    select
        *,
        {{ envelope_text('value') }} as _text
    from {{ events }}
    where
        topic in ({% for topic in topics %}{{ literal(topic) }}{{ ', ' if not loop.last }}{% endfor %})

),

parsed as (

    select
        *,
        from_json(_text, {{ literal(envelope_schema(connector, keys, columns)) }}, map('columnNameOfCorruptRecord', '_corrupt')) as _json
    from records

),

images as (

    select
        * except (_json),
        _json.payload as envelope,
        _json._end is not null as is_json,
        _json._corrupt is not null as is_corrupt,
        lower(_json.payload.op) as op,
        {{ connector_position(connector, '_json.payload.source') }} as source_position,
        coalesce(lower(_json.payload.source.snapshot), 'false') in {{ initial_snapshot_marks() }} as is_initial_snapshot,
        coalesce(lower(_json.payload.source.snapshot), 'false') not in ('false', '') as is_snapshot,
        named_struct(
            {%- for name in columns %}
            {{ literal(name) }}, {{ _image_value(name, keys, columns) }}{{ ',' if not loop.last }}
            {%- endfor %}
        ) as image
    from parsed

),

prepared as (

    select
        * except (image),
        {{ _kind(connector, table) }} as kind,
        concat(
            '0000.', source_position, '.', if(is_initial_snapshot, '0', '1'), '.',
            coalesce(
                concat({{ sortable_number('partition', 10) }}, '.', {{ sortable_number('offset', 20) }}),
                concat(file, ':', {{ sortable_number('line', 12) }})
            )
        ) as position,
        named_struct(
            {%- for name in columns %}
            {{ literal(name) }}, {{ image[name].prepare or 'image.' ~ quoted(name) }}{{ ',' if not loop.last }}
            {%- endfor %}
        ) as row
    from images

)

select
    {%- for name in columns %}
    {% if row[name].omitted and connector_omits_values(connector) -%}
    if({{ row[name].omitted }}, null, {{ row[name].sql }})
    {%- else -%}
    {{ row[name].sql }}
    {%- endif %} as {{ quoted(name) }},
    {%- endfor %}
    op as _cdc_op,
    position as _cdc_position,
    is_snapshot as _cdc_is_snapshot,
    envelope.transaction.id as _cdc_transaction_id,
    timestamp_millis(try_cast(coalesce(envelope.source.ts_ms, envelope.ts_ms) as bigint)) as _cdc_changed_at,
    batch as _cdc_batch,
    coalesce(concat(topic, '/', partition, '/', offset), concat(file, ':', line)) as _cdc_event_id,
    {{ _omitted_columns(connector, row) }} as _cdc_omitted,
    if(_reject_reason is null, kind, 'rejected') as _cdc_kind,
    _reject_reason as _cdc_reject_reason,
    key as _cdc_key
from (
    select
        *,
        {{ _reject_reason(keys, row) }} as _reject_reason
    from prepared
) as judged

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
        {%- if name in keys -%} {%- do before.append(field) -%} {%- endif -%}
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
{% macro _image_value(name, keys, columns) -%}
    {%- set column = quoted(name) -%}
    {%- if name in keys -%}
        if(lower(_json.payload.op) = 'd', coalesce({{ _key_value(name, keys, columns) }}, _json.payload.before.{{ column }}), _json.payload.after.{{ column }})
    {%- else -%}
        if(lower(_json.payload.op) = 'd', null, _json.payload.after.{{ column }})
    {%- endif -%}
{%- endmacro %}


{#-
    The value of a key column in the Kafka key, which comes as `{"payload": {…}}`, `{…}` or a bare value, and
    with numbers as texts from some writers.
-#}
{% macro _key_value(name, keys, columns) -%}
    {%- set json = debezium_type(columns[name], name).json -%}
    {%- set is_plain = json in ('smallint', 'int', 'bigint', 'string', 'boolean') -%}
    {%- set field = quoted(name) ~ ': ' ~ ('string' if is_plain else json) -%}
    {%- set parsed = "from_json(key, " ~ literal('payload struct<' ~ field ~ '>, ' ~ field | replace(': ', ' ', 1)) ~ ")" -%}
    {%- set member = 'coalesce(' ~ parsed ~ '.payload.' ~ quoted(name) ~ ', ' ~ parsed ~ '.' ~ quoted(name) -%}
    {%- if is_plain and keys | length == 1 -%}
        {%- set member = member ~ ", get_json_object(key, '$.payload'), if(key rlike '^[^{\\\\[]', trim('\"', key), null)" -%}
    {%- endif -%}
    {{ 'try_cast(' ~ member ~ ') as ' ~ json ~ ')' if is_plain else member ~ ')' }}
{%- endmacro %}


{#- What a record is. -#}
{% macro _kind(connector, table) -%}
    case
        when error is not null then 'rejected'
        when value is null then 'tombstone'
        when op = 'm' then 'message'
        when op is null and envelope.status in ('BEGIN', 'END') then 'transaction'
        when op is null and (envelope.ddl is not null or envelope.historyRecord is not null) then 'ddl'
        when op is null and envelope.ts_ms is not null and envelope.source is null then 'heartbeat'
        {%- for field in connector_table_fields(connector) %}
        when envelope.source.{{ quoted(field) }} <> {{ literal(table[loop.index0]) }} then 'other_table'
        {%- endfor %}
        when op = 't' then 'truncate'
        else 'change'
    end
{%- endmacro %}


{#- Why a record cannot be used, or NULL. The reasons are a closed list: docs/rejects.md. -#}
{% macro _reject_reason(keys, row) -%}
    {%- set invalid = [] -%}
    {%- for name, type in row.items() if type.invalid -%}
        {%- do invalid.append('if(coalesce(' ~ type.invalid ~ (' and not ' ~ type.omitted if type.omitted else '') ~ ', false), ' ~ literal(name) ~ ', null)') -%}
    {%- endfor %}
    case
        when error is not null then error
        when value is null or kind in ('message', 'transaction', 'ddl', 'heartbeat', 'other_table') then null
        when not is_json then 'invalid_json'
        when op is null then 'not_an_envelope'
        when op not in ('c', 'r', 'u', 'd', 't') then 'unknown_operation'
        when position is null then 'no_position'
        when op = 't' then if(key is null, null, 'truncate_with_key')
        when is_corrupt then 'value_of_wrong_type'
        when op <> 'd' and envelope.after is null then 'no_after_image'
        {%- for name in keys %}
        when row.{{ quoted(name) }} is null then 'no_key'
        {%- endfor %}
        {%- for name in keys %}
        when op = 'u' and envelope.before.{{ quoted(name) }} <> envelope.after.{{ quoted(name) }} then 'key_changed_in_update'
        {%- endfor %}
        {%- if invalid %}
        when concat_ws('', {{ invalid | join(', ') }}) <> ''
            then concat('value_not_exact: ', concat_ws(', ', {{ invalid | join(', ') }}))
        {%- endif %}
    end
{%- endmacro %}


{#- The columns of a change whose value the source's log did not hold; NULL where it held all. -#}
{% macro _omitted_columns(connector, row) -%}
    {%- set found = [] -%}
    {%- for name, type in row.items() if type.omitted and connector_omits_values(connector) -%}
        {%- do found.append('if(' ~ type.omitted ~ ', ' ~ literal(name) ~ ', null)') -%}
    {%- endfor -%}
    {%- if found -%}
        if(op <> 'd' and ({% for name, type in row.items() if type.omitted %}{{ ' or ' if not loop.first }}coalesce({{ type.omitted }}, false){% endfor %}),
           array_compact(array({{ found | join(', ') }})), null)
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
