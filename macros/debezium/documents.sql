{#-
    Lateral views that parse the texts of JSON in which a connector of form `document` has its images and its key:

    - `_after`: the document with the declared columns, or the fields that an update sets if it carries no document,
    - `_before`: the document before a delete,
    - `_document_key`: the key as the record's own key has it,
    - `_touched`, `_patches`: of an update that carries no document, the fields that it sets or removes, and all that it does, in
      its order; NULL of all other events,
    - `_document_end`, `_document_corrupt`: as of the value itself.

    All texts are parsed in one go; the generators keep Spark from copying the parse.
-#}
{% macro parsed_document(c, keys, columns) -%}
{%- set payload = '_event.payload' -%}
    lateral view inline(array(from_json(
        key, 'payload struct<{{ c.document_key[0] }}: string>, {{ c.document_key[0] }} string'
    ))) as _key_payload, _key_text
    lateral view inline(array(if(
        {{ payload }}.after is null and {{ c.op }} = 'u' and {{ c.field_update.set }} is not null,
        {{ let(_parsed_members(c.field_update.set), 'fields', _touched_and_patches(c, 'fields')) }},
        named_struct(
            'touched', cast(null as array<string>),
            'patches', cast(null as array<struct<path: array<string>, size: int, value: string>>)
        )
    ))) as _touched, _patches
    lateral view inline(array(from_json(
        concat(
            '{"after":', coalesce({{ payload }}.after, if({{ c.op }} = 'u', {{ c.field_update.set }}, null), 'null'),
            ',"before":', if({{ c.op }} = 'd', coalesce({{ payload }}.before, 'null'), 'null'),
            ',"key":', coalesce(_key_payload.{{ c.document_key[0] }}, _key_text, 'null'), ',"_end":1}'
        ),
        {{ literal(_document_schema(keys, columns)) }}, map('columnNameOfCorruptRecord', '_corrupt', 'maxStringLen', '2147483647')
    ))) as _after, _before, _document_key, _document_end, _document_corrupt
{%- endmacro %}


{% macro _document_schema(keys, columns) -%}
    {%- set after = [] -%}
    {%- set before = [] -%}
    {%- for name, type in columns.items() if not _is_whole_document(type) -%}
        {%- do after.append(quoted(name) ~ ': ' ~ debezium_type(type, name).json) -%}
        {%- if name in keys or not keys -%} {%- do before.append(after[-1]) -%} {%- endif -%}
    {%- endfor -%}
    {{ return(
        'after struct<' ~ (after or ['_none: string']) | join(', ') ~ '>, before struct<' ~ (before or ['_none: string']) | join(', ')
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
        if(_op = 'd', {{ 'null' if keys else '_event.payload.before' }}, _event.payload.after)
    {%- elif name in keys -%}
        coalesce(
            {{ _json_value('_document_key', type.json) }},
            {{ _json_value('_after.' ~ quoted(name), type.json) }},
            {{ _json_value('_before.' ~ quoted(name), type.json) }}
        )
    {%- elif keys -%}
        if(_op = 'd', null, {{ _json_value('_after.' ~ quoted(name), type.json) }})
    {%- else -%}
        {{ _json_value("if(_op = 'd', _before." ~ quoted(name) ~ ', _after.' ~ quoted(name) ~ ')', type.json) }}
    {%- endif -%}
{%- endmacro %}


{#-
    Whether an update that carries no document cannot be applied: it changes a part of a column that is no JSON.
    A dot in a path may as well be part of a field's name; no column with a dot is told from a path.
-#}
{% macro _cannot_be_patched(keys, columns) -%}
    {%- set whole = [] -%}
    {%- for name, type in columns.items() if '.' in name or not keys and _is_whole_document(type) -%} {%- do whole.append(name) -%} {%- endfor -%}
    {%- set closed = columns.keys() | reject('in', _columns_of_json('Bson(any)', keys, columns) + _columns_of_json('Bson(document)', keys, columns)) | list -%}
    {%- if whole -%}
        _touched is not null
    {%- else -%}
        _touched is not null and _patches is null or exists(_patches, p ->
            p.path is null or p.size < 0
            {%- if closed %} or (size(p.path) > 1 or p.size is not null) and p.path[0] in ({{ _literals(closed) }}){% endif %})
    {%- endif -%}
{%- endmacro %}


{#- The columns of a type of BSON, of which an update may change a part where they hold JSON; a log without a key has none. -#}
{% macro _columns_of_json(kind, keys, columns) -%}
    {%- set found = [] -%}
    {%- for name, type in columns.items() if type == kind and keys and name not in keys -%} {%- do found.append(name) -%} {%- endfor -%}
    {{ return(found) }}
{%- endmacro %}


{#- Whether the rows of a table are documents with a key, by the `meta` of its staging model. -#}
{% macro is_of_documents(meta) -%}
    {%- if meta.get('keys') and meta.get('connector') -%} {{ return(debezium_connector(meta.connector).form == 'document') }} {%- endif -%}
    {{ return(false) }}
{%- endmacro %}


{#- The type of `_cdc_patches`: docs/dbt/columns.md. -#}
{% macro patches_type() -%}
    array<struct<position: string, name: string, at: int, path: array<string>, size: int, value: string>>
{%- endmacro %}


{#-
    The fields that an update sets or removes, and what it did, in the order in which it is applied: arrays are cut before fields are set.
    `fields` are the members of what it sets, NULL where that is no JSON.
-#}
{% macro _touched_and_patches(c, fields) -%}
    named_struct(
        'touched', array_union(coalesce({{ fields }}.name, array()), {{ c.field_update.removed }}),
        'patches', concat(
            transform({{ c.field_update.truncated }}, t -> struct({{ _steps('t.field') }} as path, coalesce(t.size, -1) as size, cast(null as string) as value)),
            transform({{ c.field_update.removed }}, f -> struct({{ _steps('f') }} as path, cast(null as int) as size, cast(null as string) as value)),
            transform({{ fields }}, f -> struct({{ _steps('f.name') }} as path, cast(null as int) as size, f.text as value))
        )
    )
{%- endmacro %}


{#- The steps of a path of fields; most have one. -#}
{% macro _steps(path) -%}
    case when contains({{ path }}, '.') then split({{ path }}, '\\.') when {{ path }} is not null then array({{ path }}) end
{%- endmacro %}


{#- What an update did to columns of JSON: to a part of one, and all of it to the document itself. -#}
{% macro _patches_of_columns(keys, columns, renamed) -%}
    {%- set kept = {} -%}
    {%- for name, in_events in renamed.items() -%} {%- do kept.update({in_events: name}) -%} {%- endfor -%}
    {%- set fields = _columns_of_json('Bson(any)', keys, columns) -%}
    concat(
        {%- for name in _columns_of_json('Bson(document)', keys, columns) %}
        {%- set column = literal(kept.get(name, name)) %}
        transform(_patches, (p, i) -> {{ _patch('_position', column, 'i', 'p.path', 'p.size', 'p.value') }}),
        {%- endfor %}
        {%- if fields %}
        transform(
            filter(_patches, p -> p.path[0] in ({{ _literals(fields) }}) and (size(p.path) > 1 or p.size is not null)),
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


{% macro _patch(position, column, at, path, size, value) -%}
    struct({{ position }} as position, {{ column }} as name, {{ at }} as at, {{ path }} as path, {{ size }} as size, {{ value }} as value)
{%- endmacro %}


{#- A column of JSON as a row has it: first the write of the whole, then what was done to it. -#}
{% macro written_patches(row, name, patches) -%}
    {%- set written = _patch(_write_position(row, name), literal(name), '-1', 'cast(array() as array<string>)', 'cast(null as int)', row ~ '.' ~ quoted(name)) -%}
    concat(array({{ written }}){% if patches %}, filter({{ patches }}, p -> p.name = {{ literal(name) }}){% endif %})
{%- endmacro %}


{#- The patches of several columns that are more than the write of the whole; NULL where there are none. -#}
{% macro patches_of_row(patches) -%}
    {%- set kept = [] -%}
    {%- for of_column in patches -%} {%- do kept.append(let(of_column, 'ps', 'if(size(ps) > 1, ps, array())')) -%} {%- endfor -%}
    {{ let('concat(' ~ kept | join(', ') ~ ')', 'ps', 'if(size(ps) > 0, ps, null)') }}
{%- endmacro %}


{#-
    Patches without those that a later one of the same or a larger part undoes, in their order. What is left is the same whatever
    was merged with what before. From the last one on, each is kept unless one that is kept wrote it, or what it is a part of.
-#}
{% macro pruned_patches(patches) -%}
    aggregate(
        reverse(array_sort({{ patches }})),
        struct(cast(array() as {{ patches_type() }}) as kept, cast(array() as array<array<string>>) as written),
        (known, p) -> if(
            exists(sequence(0, size(p.path)), n -> array_contains(known.written, slice(p.path, 1, n)))
                or p.size is not null and exists(known.kept, q -> q.path = p.path and q.size <= p.size),
            known,
            struct(
                concat(array(p), known.kept) as kept,
                if(p.size is null, concat(known.written, array(p.path)), known.written) as written
            )
        ),
        known -> known.kept
    )
{%- endmacro %}


{#-
    The value of a column of JSON: its patches in their order, of which the first is the write of the whole. Where a step of a path leads into
    an array it is an index, else a name: of the rest of the path, if there is a field of that name.

    For each patch, the values along its path are looked up on the way down (`d`), and on the way up each is written with the new
    value of the one inside it (`c`, NULL of a field that is gone). An object that was not there was: what made it is not known, or pruned.
    Where all patches set or remove fields of the object itself, as most do, its members are read and written once.

    Source: MongoDB manual, "Update Events", updateDescription.
-#}
{% macro patched_value(patches) -%}
    {%- set later = 'slice(ps, 2, size(ps))' -%}
    {%- set of_fields -%}
        '{' || array_join(transform(
            aggregate({{ later }}, {{ _json_members('ps[0].value') }}, (fields, p) -> {{ _with_field('fields', 'p') }}),
            m -> {{ _json_text('m.name') }} || ':' || m.text
        ), ',') || '}'
    {%- endset -%}
    {%- set of_parts -%}
        aggregate({{ later }}, ps[0].value, (doc, p) -> {{ let(_along_path('doc', 'p.path'), 'd', _written_back('d', 'p')) }})
    {%- endset -%}
    {%- set is_of_fields -%}
        size(ps) > 1 and not coalesce(startswith(ps[0].value, '['), false) and forall({{ later }}, p -> size(p.path) = 1 and p.size is null)
    {%- endset -%}
    {{ let(patches, 'ps', 'if(' ~ is_of_fields ~ ', ' ~ of_fields ~ ', ' ~ of_parts ~ ')') }}
{%- endmacro %}


{#- The members of an object with the one that a patch sets, or without the one that it removes. -#}
{% macro _with_field(members, patch) -%}
    {%- set name, text = patch ~ '.path[0]', patch ~ '.value' -%}
    concat(
        transform(
            filter({{ members }}, m -> m.name <> {{ name }} or {{ text }} is not null),
            m -> if(m.name = {{ name }}, struct(m.name as name, {{ text }} as text), m)
        ),
        if({{ text }} is null or exists({{ members }}, m -> m.name = {{ name }}), array(), array(struct({{ name }} as name, {{ text }} as text)))
    )
{%- endmacro %}


{% macro _along_path(document, path) -%}
    {%- set name = "if(size(d.rest) > 1 and exists(ms, m -> m.name = array_join(d.rest, '.')), array_join(d.rest, '.'), d.rest[0])" -%}
    {%- set step -%}
        struct(
            concat(d.texts, array(if(
                startswith(element_at(d.texts, -1), '['),
                get({{ _json_elements('element_at(d.texts, -1)') }}, try_cast(k as int)), get(filter(ms, m -> m.name = k), 0).text
            ))) as texts,
            concat(d.steps, array(k)) as steps,
            if(k = d.rest[0], slice(d.rest, 2, size(d.rest)), cast(array() as array<string>)) as rest
        )
    {%- endset -%}
    aggregate(
        {{ path }},
        struct(array({{ document }}) as texts, cast(array() as array<string>) as steps, {{ path }} as rest),
        (d, _) -> if(size(d.rest) = 0, d, {{ let(_json_members('element_at(d.texts, -1)'), 'ms', let(name, 'k', step)) }})
    )
{%- endmacro %}


{% macro _written_back(found, patch) -%}
    {%- set found_value = 'element_at(' ~ found ~ '.texts, -1)' -%}
    {%- set cut = "'[' || array_join(slice(" ~ _json_elements(found_value) ~ ', 1, ' ~ patch ~ ".size), ',') || ']'" -%}
    {%- set in_array -%}
        {{ let(_json_elements('s.text'), 'es', let('try_cast(s.step as int)', 'i', "if(
            i between 0 and size(es) + 1500000,
            '[' || array_join(transform(
                sequence(0, greatest(size(es) - 1, i)), x -> coalesce(if(x = i, c, get(es, x)), 'null')
            ), ',') || ']',
            s.text
        )")) }}
    {%- endset -%}
    {%- set in_object -%}
        {{ let(_json_members('s.text'), 'ms', "'{' || array_join(concat(
            transform(
                filter(ms, m -> m.name <> s.step or c is not null),
                m -> " ~ _json_text('m.name') ~ " || ':' || if(m.name = s.step, c, m.text)
            ),
            if(c is null or exists(ms, m -> m.name = s.step), array(), array(" ~ _json_text('s.step') ~ " || ':' || c))
        ), ',') || '}'") }}
    {%- endset -%}
    aggregate(
        reverse(zip_with({{ found }}.steps, slice({{ found }}.texts, 1, size({{ found }}.steps)), (step, text) -> struct(step, text))),
        if({{ patch }}.size is null, {{ patch }}.value, if(startswith({{ found_value }}, '['), {{ cut }}, {{ found_value }})),
        (c, s) -> if(startswith(s.text, '['), {{ in_array }}, {{ in_object }})
    )
{%- endmacro %}


{#- The members of a JSON object as structs of `name` and JSON `text`, in their order; none of a value that is no object. -#}
{% macro _json_members(json) -%}
    coalesce({{ _parsed_members(json) }}, if(startswith({{ json }}, '{'), {{ _not_to_be_changed_in_part() }}, array()))
{%- endmacro %}


{#- The same, or NULL. -#}
{% macro _parsed_members(json) -%}
    zip_with(
        map_entries(from_json({{ json }}, 'map<string, string>', {{ _whole_texts() }})),
        map_entries(from_json({{ json }}, 'map<string, variant>', {{ _whole_texts() }})),
        (a, b) -> struct(a.key as name, {{ _json_of('a.value', 'b.value') }} as text)
    )
{%- endmacro %}


{#- Spark does not read such an object as a variant, and its members would be lost. -#}
{% macro _not_to_be_changed_in_part() -%}
    raise_error('debezium_latest: a document with an object that names a member twice was changed in part. Set capture.mode to change_streams_update_full, or take the column that holds it out of the models.')
{%- endmacro %}


{#- The elements of a JSON array as JSON texts. -#}
{% macro _json_elements(json) -%}
    coalesce(zip_with(
        from_json({{ json }}, 'array<string>', {{ _whole_texts() }}), from_json({{ json }}, 'array<variant>', {{ _whole_texts() }}),
        (a, b) -> {{ _json_of('a', 'b') }}
    ), if(startswith({{ json }}, '['), {{ _not_to_be_changed_in_part() }}, array()))
{%- endmacro %}


{#- The JSON text of a value that was read as text, which keeps 2.0 apart from 2, and as variant, which tells texts from others. -#}
{% macro _json_of(text, variant) -%}
    if(schema_of_variant({{ variant }}) = 'STRING', {{ _json_text(text) }}, coalesce({{ text }}, 'null'))
{%- endmacro %}


{#- A text as JSON. Spark's own writer costs much for a short one. -#}
{% macro _json_text(text) -%}
    if(
        {{ text }} rlike '["\\\\\\x00-\\x1f]',
        {{ let('to_json(array(' ~ text ~ '))', 't', 'substr(t, 2, length(t) - 2)') }},
        '"' || {{ text }} || '"'
    )
{%- endmacro %}


{% macro _whole_texts() -%}
    map('maxStringLen', '2147483647')
{%- endmacro %}
