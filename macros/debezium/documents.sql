{#-
    A lateral view that parses the texts of JSON in which a connector of form `document` has its images and its key:

    - `_document`: `after`, the document with the declared columns, or the fields that an update sets if it carries no
      document; `before`, the document before a delete; `key`, as the record's own key has it; `_end` and `_corrupt`, as
      of the value itself,
    - `_update`: of an update that carries no document, the fields that it sets or removes (`touched`), and all that it
      does, in its order (`patches`); NULL of all other events.

    All texts are parsed in one go; the generator keeps Spark from copying the parse.
-#}
{% macro parsed_document(c, keys, columns) -%}
{%- set payload = '_event.payload' -%}
    lateral view inline(array(named_struct(
        '_document', from_json(
            concat(
                '{"after":', coalesce({{ payload }}.after, case when {{ c.op }} = 'u' then {{ c.field_update.set }} end,
                    'null'),
                ',"before":', if({{ c.op }} = 'd', coalesce({{ payload }}.before, 'null'), 'null'),
                ',"key":', coalesce(_key.payload.{{ c.document_key[0] }}, _key.{{ c.document_key[0] }}, 'null'),
                ',"_end":1}'
            ),
            {{ literal(_document_schema(keys, columns)) }},
            map('columnNameOfCorruptRecord', '_corrupt', 'maxStringLen', '2147483647')
        ),
        '_update', case
            when {{ payload }}.after is null and {{ c.op }} = 'u' and {{ c.field_update.set }} is not null
                then {{ let(_parsed_members(c.field_update.set), 'fields', _touched_and_patches(c, 'fields')) }}
        end
    ))) as _document, _update
{%- endmacro %}

{#- The key of a record, parsed: the text of JSON that holds the key of a document. -#}
{% macro _parsed_document_key(c) -%}
    from_json(key, 'payload struct<{{ c.document_key[0] }}: string>, {{ c.document_key[0] }} string')
{%- endmacro %}

{% macro _document_schema(keys, columns) -%}
    {%- set after = [] -%}
    {%- set before = [] -%}
    {%- for name, type in columns.items() if not _is_whole_document(type) -%}
        {%- do after.append(quoted(name) ~ ': ' ~ debezium_type(type, name).json) -%}
        {%- if name in keys or not keys -%} {%- do before.append(after[-1]) -%} {%- endif -%}
    {%- endfor -%}
    {{ return(
        'after struct<' ~ (after or ['_none: string']) | join(', ') ~ '>, before struct<'
            ~ (before or ['_none: string']) | join(', ')
        ~ '>, key variant, _end int, _corrupt string'
    ) }}
{%- endmacro %}

{#- Whether a column is the document itself, and no field of it. -#}
{% macro _is_whole_document(type) -%}
    {{ return(type == 'Bson(document)') }}
{%- endmacro %}

{#- The JSON value of a column: the whole document as it came, a field of it, or the key. -#}
{% macro _document_value(name, type, is_whole, keys) -%}
    {%- if is_whole -%}
        {{ _of_row('_op', '_event.payload.before', '_event.payload.after', keys) }}
    {%- elif name in keys -%}
        {%- set key -%}
        coalesce(
            {{ _json_value('_document.key', type.json) }},
            {{ _json_value('_document.after.' ~ quoted(name), type.json) }},
            {{ _json_value('_document.before.' ~ quoted(name), type.json) }}
        )
        {%- endset -%}
        {#- The digits of an ObjectId as a text are the key of another document. #}
        {{- let(key, 'k', "case when schema_of_variant(k) <> 'STRING' then k end")
            if type.type == 'Bson(objectId)' else key }}
    {%- elif keys -%}
        {{ _of_row('_op', none, _json_value('_document.after.' ~ quoted(name), type.json), keys) }}
    {%- else -%}
        {{ _json_value("if(_op = 'd', _document.before." ~ quoted(name) ~ ', _document.after.' ~ quoted(name) ~ ')',
            type.json) }}
    {%- endif -%}
{%- endmacro %}

{#-
    Whether an update without a document cannot be applied: it changes a part of a column that is no JSON. A column with
    a dot in its name cannot be distinguished from a path.
-#}
{% macro _cannot_be_patched(keys, columns) -%}
    {%- set whole = [] -%}
    {%- for name, type in columns.items() if '.' in name or not keys and _is_whole_document(type) -%}
        {%- do whole.append(name) -%}
    {%- endfor -%}
    {%- set closed = columns.keys() | reject('in',
        _columns_of_json('Bson(any)', keys, columns) + _columns_of_json('Bson(document)', keys, columns)) | list -%}
    {%- if whole -%}
        _update is not null
    {%- else -%}
        _update.touched is not null and _update.patches is null or exists(_update.patches, p ->
            p.path is null or p.size < 0
            {%- if closed %} or (size(p.path) > 1 or p.size is not null)
                and p.path[0] in ({{ _literals(closed) }}){% endif %})
    {%- endif -%}
{%- endmacro %}

{#- The columns of a BSON type that an update may change in part; none without a key. -#}
{% macro _columns_of_json(kind, keys, columns) -%}
    {%- set found = [] -%}
    {%- for name, type in columns.items() if type == kind and keys and name not in keys -%}
        {%- do found.append(name) -%}
    {%- endfor -%}
    {{ return(found) }}
{%- endmacro %}

{#- Whether the rows of a table are documents with a key, by the `meta` of its staging model. -#}
{% macro is_of_documents(meta) -%}
    {%- set has_key = meta.get('keys') and meta.get('connector') -%}
    {{ return(debezium_connector(meta.connector).form == 'document' if has_key else false) }}
{%- endmacro %}

{#-
    The fields that an update sets or removes, and what it did, in the order in which it is applied: arrays are cut
    before fields are set. `fields` are the members of what it sets, NULL where that is no JSON.
-#}
{% macro _touched_and_patches(c, fields) -%}
    named_struct(
        'touched', array_union(coalesce({{ fields }}.name, array()), {{ c.field_update.removed }}),
        'patches', concat(
            transform({{ c.field_update.truncated }},
                t -> struct({{ _steps('t.field') }} as path, coalesce(t.size, -1) as size,
                    cast(null as string) as value)),
            transform({{ c.field_update.removed }},
                f -> struct({{ _steps('f') }} as path, cast(null as int) as size, cast(null as string) as value)),
            transform({{ fields }}, f -> struct({{ _steps('f.name') }} as path, cast(null as int) as size,
                f.text as value))
        )
    )
{%- endmacro %}

{#- The steps of a path of fields; most have one. -#}
{% macro _steps(path) -%}
    case when contains({{ path }}, '.') then split({{ path }}, '\\.') when {{ path }} is not null
        then array({{ path }}) end
{%- endmacro %}

{#- What an update did to columns of JSON: to a part of one, and all of it to the document itself. -#}
{% macro _patches_of_columns(keys, columns, renamed) -%}
    {%- set kept = {} -%}
    {%- for name, in_events in renamed.items() -%} {%- do kept.update({in_events: name}) -%} {%- endfor -%}
    {%- set fields = _columns_of_json('Bson(any)', keys, columns) -%}
    concat(
        {%- for name in _columns_of_json('Bson(document)', keys, columns) %}
        {%- set column = literal(kept.get(name, name)) %}
        transform(_update.patches, (p, i) -> {{ _patch('_position', column, 'i', 'p.path', 'p.size', 'p.value') }}),
        {%- endfor %}
        {%- if fields %}
        transform(
            filter(_update.patches,
                p -> p.path[0] in ({{ _literals(fields) }}) and (size(p.path) > 1 or p.size is not null)),
            {%- set column = _name_kept('p.path[0]', fields, kept) %}
            (p, i) -> {{ _patch('_position', column, 'i', 'slice(p.path, 2, size(p.path))', 'p.size', 'p.value') }}
        ),
        {%- endif %}
        cast(array() as {{ patches_type() }})
    )
{%- endmacro %}

{#- The name that a column has in the table, of an expression that gives its name in the events. -#}
{% macro _name_kept(name, columns, kept) -%}
    {%- set others = columns | select('in', kept) | list -%}
    {%- if not others -%} {{ return(name) }} {%- endif -%}
    case {{ name }}
        {%- for one in others %} when {{ literal(one) }} then {{ literal(kept[one]) }}{% endfor %} else {{ name }} end
{%- endmacro %}
