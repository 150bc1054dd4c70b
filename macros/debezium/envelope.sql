{#-
    Records of a relation with `value` parsed once, by a lateral view: `_event.payload` (values with and without a
    schema block in one shape), `_end`, which is set only if the whole value is JSON and nothing follows it, and
    `_corrupt`, which is set where a value does not fit its declared type. All lateral views of a query have one name:
    qualify nothing by it.

    The schema block, most of the bytes, is cut off unread: `_tail` is what stands behind the last `"payload":`. Where
    that is a member inside of the payload, it does not begin as a payload does, and the value is parsed as it is; if it
    does, the rest is no whole JSON (`_end`). Of rows without an envelope it has to be the first one as well. The
    generator keeps Spark from copying the parse into every expression that reads it, and into filters.
-#}
{% macro parsed_event(events, condition, schema, is_flat=false, has_own_payload=false, parsed_key=none) -%}
{%- set begins = '{"schema":' ~ ('{' if is_flat else '') -%}
{%- set is_payload = "startswith(_tail, '{') and octet_length(_tail) + 10 = octet_length(value)"
        ~ " - octet_length(substring_index(value, '\"payload\":', 1))" if is_flat
    else "left(_tail, 7) in ('{\"befor', '{\"after', '{\"sourc', '{\"ts_ms', '{\"op\":\"')" -%}
    (
        select *{% if not has_own_payload %},
        case when startswith(value, '{{ begins }}') then substring_index(value, '"payload":', -1) end as _tail
        {%- endif %}
        {%- if parsed_key %},
        {{ parsed_key }} as _key
        {%- endif %}
        from {{ events }} where {{ condition }}
    ) as records
    lateral view inline(array(from_json(
        concat('{"_event":', case
            {%- if not has_own_payload %}
            when {{ is_payload }} then concat('{"payload":', _tail)
            {%- endif %}
            when {{ _begins_as_wrapped() }}{{ ' and ' ~ _is_wrapper() if is_flat }} then value
            else concat('{"payload":', value, '}')
        end, ',"_end":1}'),
        {{ literal(schema) }}, map('columnNameOfCorruptRecord', '_corrupt', 'maxStringLen', '2147483647',
            'allowSingleQuotes', 'false')
    ))) as _event, _end, _corrupt
{%- endmacro %}

{#- Whether a value may be Connect's wrapper around a row or an envelope: its first member is one of the wrapper's. -#}
{% macro _begins_as_wrapped() -%}
    left(value, 40) rlike '^\\s*[{]\\s*"(schema|payload)"\\s*:'
{%- endmacro %}

{#-
    Whether a value is nothing but what Connect puts around a row. Rows may have columns of these names, and begin with
    them.
-#}
{% macro _is_wrapper() -%}
    sort_array(json_object_keys(value)) in (cast(array('payload') as array<string>),
        cast(array('payload', 'schema') as array<string>))
{%- endmacro %}

{#- The schema that a value is parsed with: what the connector reads, and the row images with their declared types. -#}
{% macro envelope_schema(c, keys, columns) -%}
    {%- set before = [] -%}
    {%- set after = [] -%}
    {%- for name, type in columns.items() -%}
        {%- set json = debezium_type(type, name).json -%}
        {%- set field = quoted(name) ~ ': ' ~ _column_schema(c, json, name in keys) -%}
        {%- do after.append(field) -%}
        {%- if name in keys or not keys -%} {%- do before.append(field) -%} {%- endif -%}
    {%- endfor -%}
    {%- if c.form == 'flat' -%}
        {%- set told_by = [] -%}
        {%- for name in _flat_markers(columns) -%} {%- do told_by.append(name ~ ': string') -%} {%- endfor -%}
        {{ return('_event struct<payload: struct<' ~ (after + c.fields + told_by) | join(', ')
            ~ '>>, _end int, _corrupt string') }}
    {%- endif -%}
    {%- set members = [
        'op: string', 'ts_ms: string', 'source: struct<' ~ _quoted_list(c.source, '{}: string') ~ '>',
        'status: string', 'ddl: string',
        'tableChanges: string',
        'historyRecord: string', 'aggregate_type: string',
    ] + c.fields -%}
    {%- if c.form == 'document' -%}
        {{ return('_event struct<payload: struct<' ~ (members + ['before: string', 'after: string']) | join(', ')
            ~ '>>, _end int, _corrupt string') }}
    {%- endif -%}
    {%- set befores = c.before + ([c.key] if c.key and c.key not in c.before else []) -%}
    {%- for member in befores | reject('in', c.after) -%}
        {%- do members.append(quoted(member) ~ ': struct<' ~ (before or ['_none: string']) | join(', ') ~ '>') -%}
    {%- endfor -%}
    {%- for member in c.after -%}
        {%- do members.append(quoted(member) ~ ': struct<' ~ after | join(', ') ~ '>') -%}
    {%- endfor -%}
    {{ return('_event struct<payload: struct<' ~ members | join(', ') ~ '>>, _end int, _corrupt string') }}
{%- endmacro %}

{#- A column of an image, as `from_json` reads it. A key column of cells may be a cell or a plain value. -#}
{% macro _column_schema(c, json, is_key) -%}
    {%- if c.form != 'cells' -%}
        {{ return(json) }}
    {%- endif -%}
    {{ return('variant' if is_key else 'struct<value: ' ~ json ~ ', `set`: boolean>') }}
{%- endmacro %}

{#- An image as a struct; of several members the first that is there, of flattened rows the value itself. -#}
{% macro _image(c, image) -%}
    {%- if c.form == 'flat' -%} {{ return('_event.payload') }} {%- endif -%}
    {%- if c.form == 'document' -%} {{ return('_document.' ~ image) }} {%- endif -%}
    {{ return(_of_members(c, image, '_event.payload.{}')) }}
{%- endmacro %}

{#- A column of an image; of several members that hold images, of the first that has it. -#}
{% macro _column_of_image(c, image, name) -%}
    {%- if c.form in ('flat', 'document') -%} {{ return(_image(c, image) ~ '.' ~ quoted(name)) }} {%- endif -%}
    {{ return(_of_members(c, image, '_event.payload.{}.' ~ quoted(name))) }}
{%- endmacro %}

{#- What the first member that holds an image gives. -#}
{% macro _of_members(c, image, text) -%}
    {%- set found = _quoted_list(c[image], text) -%}
    {{ return(found if c[image] | length == 1 else 'coalesce(' ~ found ~ ')') }}
{%- endmacro %}

{#- The JSON value of a column of an image, `before` or `after`, or of the row that counts, `_row`. -#}
{% macro _member(image, c, name, json, keys) -%}
    {%- set value = '_row.' ~ quoted(name) if image == '_row' else _column_of_image(c, image, name) -%}
    {%- if c.form == 'cells' and name in keys -%}
        {{ _json_value(_of_cell(value, json), json) }}
    {%- else -%}
        {{ _json_value(value ~ ('.value' if c.form == 'cells' else ''), json) }}
    {%- endif -%}
{%- endmacro %}

{#- The JSON value of a key column that is a cell, an object with `set` or `value`, or a plain value. -#}
{% macro _of_cell(key, json) -%}
    if(coalesce(try_variant_get({{ key }}, '$.set', 'string'), try_variant_get({{ key }}, '$.value', 'string')) is null,
        try_variant_get({{ key }}, '$', '{{ json }}'), try_variant_get({{ key }}, '$.value', '{{ json }}'))
{%- endmacro %}

{% macro _json_value(value, json) -%}
    {{ 'case when not is_variant_null(' ~ value ~ ') then ' ~ value ~ ' end' if json == 'variant' else value }}
{%- endmacro %}

{#-
    The JSON value of a key column in the row as it was. Of an update `before` counts before the connector's own member,
    which may have the new key; of a delete that member does, because columns of `before` may be invented.
-#}
{% macro _old_key_value(c, name, json, keys, of_delete=false) -%}
    {%- set before = _member('before', c, name, json, keys) -%}
    {%- if c.key and c.key not in c.before -%}
        {%- set own = _json_value('_event.payload.' ~ quoted(c.key) ~ '.' ~ quoted(name), json) -%}
        coalesce({{ own ~ ', ' ~ before if of_delete else before ~ ', ' ~ own }})
    {%- else -%}
        {{ before }}
    {%- endif -%}
{%- endmacro %}

{#-
    The JSON value of a column. A delete has key columns only, from the Kafka key where that names them, else from the
    event (the other way round where the connector names a member for it), else from a Kafka key that is a bare value,
    which may be that of any column: other columns of a partial `before` are invented by Debezium.
-#}
{% macro _image_value(c, field, keys, has_two_halves) -%}
    {%- if field.is_shard -%}
        _event.payload.source.name
    {%- elif c.form == 'document' -%}
        {{ _document_value(field.name, field, field.is_document, keys) }}
    {%- elif field.is_key -%}
        {%- set before = _old_key_value(c, field.name, field.json, keys, of_delete=true) -%}
        {%- set named = _key_value(c, field.name, field, keys) -%}
        {%- set bare = [_bare_key(field)] if _is_plain_key(field.json) and keys | length == 1 else [] -%}
        {%- set old = 'coalesce(' ~ (([before, named] if c.key else [named, before]) + bare) | join(', ') ~ ')' -%}
        if(_op = 'd', {{ "if(_half = 'out', " ~ _old_key_value(c, field.name, field.json, keys) ~ ', ' ~ old
            ~ ')' if has_two_halves else old }},
            {{ _member('_row', c, field.name, field.json, keys) }})
    {%- else -%}
        {{ field.image }}
    {%- endif -%}
{%- endmacro %}

{#- Whether both images have a key and these differ: as JSON text, because a variant has no equality. -#}
{% macro _key_has_changed(c, fields, keys) -%}
    {%- for field in fields if field.name in keys -%}
        {%- set before = _old_key_value(c, field.name, field.json, keys) -%}
        {%- set after = _member('after', c, field.name, field.json, keys) -%}
        {{ 'to_json(' ~ before ~ ') <> to_json(' ~ after ~ ')' if field.json == 'variant' else before ~ ' <> '
            ~ after }}{{ ' or ' if not loop.last }}
    {%- endfor -%}
{%- endmacro %}

{#-
    Kafka keys come as `{"payload": {…}}`, `{…}`, `{"payload": 1}` or a bare value, and with numbers as texts. Where a
    column of the key is named `payload`, its object tells which of them it is.
-#}
{% macro _parsed_key(c, keys, columns) -%}
    {%- set fields = [] -%}
    {%- for name in keys -%}
        {%- set json = debezium_type(columns[name], name).json -%}
        {%- set read_as = 'variant' if c.form == 'cells' else 'string' if _is_plain_key(json) else json -%}
        {%- do fields.append(quoted(name) ~ ': ' ~ read_as) -%}
    {%- endfor -%}
    {%- set wrapped = 'payload struct<' ~ fields | join(', ') ~ '>' -%}
    {%- if _names_payload(keys) -%}
        from_json(if(startswith(get_json_object(key, '$.payload'), '{'), key, concat('{"payload":', key, '}')),
            {{ literal(wrapped) }})
    {%- else -%}
        from_json(key, {{ literal(wrapped ~ ', ' ~ fields | join(', ') | replace('`: ', '` ')) }})
    {%- endif -%}
{%- endmacro %}

{% macro _names_payload(keys) -%}
    {{ return('payload' in keys | map('lower') | list) }}
{%- endmacro %}

{% macro _is_plain_key(json) -%}
    {{ return(json in ('smallint', 'int', 'bigint', 'string', 'boolean')) }}
{%- endmacro %}

{% macro _key_value(c, name, type, keys) -%}
    {%- set parts = [] -%}
    {%- set places = ['_key.payload.'] if _names_payload(keys) else ['_key.payload.', '_key.'] -%}
    {%- for place in places -%}
        {%- set part = place ~ quoted(name) -%}
        {%- do parts.append(_of_cell(part, type.json) if c.form == 'cells' else part) -%}
    {%- endfor -%}
    {%- set value = 'coalesce(' ~ parts | join(', ') ~ ')' -%}
    {{ 'try_cast(' ~ value ~ ' as ' ~ type.json ~ ')' if _is_plain_key(type.json) and c.form != 'cells' else value }}
{%- endmacro %}

{#-
    A Kafka key that is one value: of JSON, with or without a schema block, or a text. `Struct{id=1}` is Connect's text
    of a key, and no value.
-#}
{% macro _bare_key(type) -%}
    try_cast(coalesce(
        nullif(regexp_replace(get_json_object(key, '$.payload'), '^[{\\[].*', ''), ''),
        case
            when startswith(key, '"') then get_json_object(concat('{"k":', key, '}'), '$.k')
            when key rlike '^(?!Struct[{])[^{\\[]' then key
        end
    ) as {{ type.json }})
{%- endmacro %}
