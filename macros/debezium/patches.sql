{#- Changes of a part of a column of JSON: how they are kept, sorted out and applied. -#}

{#- The type of `_cdc_patches`: docs/dbt/columns.md. -#}
{% macro patches_type() -%}
    array<struct<position: string, name: string, at: int, path: array<string>, size: int, value: string>>
{%- endmacro %}

{% macro _patch(position, column, at, path, size, value) -%}
    struct({{ position }} as position, {{ column }} as name, {{ at }} as at, {{ path }} as path, {{ size }} as size,
        {{ value }} as value)
{%- endmacro %}

{#- A column of JSON as a row has it: first the write of the whole, then what was done to it. -#}
{% macro written_patches(row, name, patches) -%}
    {%- set written = _patch(_write_position(row, name), literal(name), '-1', 'cast(array() as array<string>)',
        'cast(null as int)', row ~ '.' ~ quoted(name)) -%}
    concat(array({{ written }}){% if patches %}, filter({{ patches }}, p -> p.name = {{ literal(name) }}){% endif %})
{%- endmacro %}

{#- The patches of several columns that are more than the write of the whole; NULL where there are none. -#}
{% macro patches_of_row(patches) -%}
    {%- set kept = [] -%}
    {%- for of_column in patches -%}
        {%- do kept.append(let(of_column, 'ps', 'if(size(ps) > 1, ps, array())')) -%}
    {%- endfor -%}
    {{ let('concat(' ~ kept | join(', ') ~ ')', 'ps', 'if(size(ps) > 0, ps, null)') }}
{%- endmacro %}

{#-
    Patches without those that a later one of the same or a larger part undoes, in their order. What is left is the same
    whatever was merged with what before. From the last one on, each is kept unless one that is kept wrote it, or what
    it is a part of.
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
    The value of a column of JSON: its patches in order; the first is the write of the whole. A step of a path is an
    index in an array, else a name; the rest of a path may be one name with dots.

    For each patch, the values along its path are looked up on the way down (`d`) and written back on the way up (`c`,
    NULL for a removed field). If all patches set or remove fields of the object itself, as most do, its members are
    read and written once.

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
        aggregate({{ later }}, ps[0].value,
            (doc, p) -> {{ let(_along_path('doc', 'p.path'), 'd', _written_back('d', 'p')) }})
    {%- endset -%}
    {%- set is_of_fields -%}
        size(ps) > 1 and not coalesce(startswith(ps[0].value, '['), false)
            and forall({{ later }}, p -> size(p.path) = 1 and p.size is null)
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
        if({{ text }} is null or exists({{ members }}, m -> m.name = {{ name }}), array(),
            array(struct({{ name }} as name, {{ text }} as text)))
    )
{%- endmacro %}

{% macro _along_path(document, path) -%}
    {%- set rest = "array_join(d.rest, '.')" -%}
    {%- set name = 'if(size(d.rest) > 1 and exists(ms, m -> m.name = ' ~ rest ~ '), ' ~ rest ~ ', d.rest[0])' -%}
    {%- set step -%}
        struct(
            concat(d.texts, array(if(
                startswith(element_at(d.texts, -1), '['),
                get({{ _json_elements('element_at(d.texts, -1)') }}, try_cast(k as int)),
                get(filter(ms, m -> m.name = k), 0).text
            ))) as texts,
            concat(d.steps, array(k)) as steps,
            if(k = d.rest[0], slice(d.rest, 2, size(d.rest)), cast(array() as array<string>)) as rest
        )
    {%- endset -%}
    aggregate(
        {{ path }},
        struct(array({{ document }}) as texts, cast(array() as array<string>) as steps, {{ path }} as rest),
        (d, _) -> if(size(d.rest) = 0, d,
        {{ let(_json_members('element_at(d.texts, -1)'), 'ms', let(name, 'k', step)) }})
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
        reverse(zip_with({{ found }}.steps, slice({{ found }}.texts, 1, size({{ found }}.steps)),
            (step, text) -> struct(step, text))),
        if({{ patch }}.size is null, {{ patch }}.value,
            if(startswith({{ found_value }}, '['), {{ cut }}, {{ found_value }})),
        (c, s) -> if(startswith(s.text, '['), {{ in_array }}, {{ in_object }})
    )
{%- endmacro %}

{#-
    The members of a JSON object as structs of `name` and JSON `text`, in their order; none of a value that is no
    object.
-#}
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
    {%- set problem = 'debezium_latest: a document with an object that names a member twice was changed in part. '
        ~ 'Set capture.mode to change_streams_update_full, or take the column that holds it out of the models.' -%}
    raise_error({{ literal(problem) }})
{%- endmacro %}

{#- The elements of a JSON array as JSON texts. -#}
{% macro _json_elements(json) -%}
    coalesce(zip_with(
        from_json({{ json }}, 'array<string>', {{ _whole_texts() }}),
        from_json({{ json }}, 'array<variant>', {{ _whole_texts() }}),
        (a, b) -> {{ _json_of('a', 'b') }}
    ), if(startswith({{ json }}, '['), {{ _not_to_be_changed_in_part() }}, array()))
{%- endmacro %}

{#-
    The JSON text of a value that was read as text, which keeps 2.0 apart from 2, and as variant, which tells texts from
    others.
-#}
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
