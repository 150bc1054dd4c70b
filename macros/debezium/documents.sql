{#-
    Lateral views that parse the texts of JSON in which a connector of form `document` has its images and its key:

    - `_after`: the document with the declared columns, or the fields that an update sets if it carries no document,
    - `_before`: the document before a delete,
    - `_document_key`: the key as the record's own key has it,
    - `_touched`, `_in_part`: of an update that carries no document, the paths of the fields that it sets or removes, and of
      those that it changes in part; NULL of all other events,
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
        named_struct(
            'touched', array_union(coalesce(json_object_keys({{ c.field_update.set }}), array()), {{ c.field_update.removed }}),
            'in_part', {{ c.field_update.in_part }}
        ),
        named_struct('touched', cast(null as array<string>), 'in_part', cast(null as array<string>))
    ))) as _touched, _in_part
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
{% macro _document_value(c, name, type, is_whole, keys) -%}
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
    Whether an update that carries no document cannot be applied column by column: it changes a part of a column, or one column
    is the document. A path with a dot may as well be a field of that name; no column with a dot is told from a path.
-#}
{% macro _touches_part_of_column(columns) -%}
    {%- set changed_in_part = [] -%}
    {%- for name, type in columns.items() if _is_whole_document(type) or '.' in name -%}
        {%- do changed_in_part.append(name) -%}
    {%- endfor -%}
    {%- if changed_in_part -%}
        _touched is not null
    {%- else -%}
        exists(
            array_union(filter(_touched, p -> contains(p, '.')), _in_part), p -> substring_index(p, '.', 1) in ({{ _literals(columns) }})
        )
    {%- endif -%}
{%- endmacro %}
