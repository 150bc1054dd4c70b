{#-
    Every landed record of a table's topics as one typed row: a change of the table, or a record that is none
    (`_cdc_kind` says what it is), or one that cannot be used (`_cdc_reject_reason` says why).

    JSON is parsed once for each record, with the declared types; a value that does not fit its type, is no
    exact value of it, or cannot be placed in the source's order rejects the record, and is never NULL in silence.
-#}
{% macro debezium_changes(events, topics, connector, table, keys, columns, routed=false, epochs=[], renamed={}) -%}

    {%- set c = debezium_connector(connector) -%}
    {%- do _check_declaration(c, topics, table, keys, columns, routed, renamed) -%}
    {#- Up to the last step columns have their names in the events. #}
    {%- set kept = columns.keys() | list -%}
    {%- set keys, columns = _in_events(keys, columns, renamed) -%}
    {%- set names = columns.keys() | list -%}
    {%- set types = [] -%}
    {#- What the rows hold, without a column that names the shard. #}
    {%- set of_row, row_keys = {}, [] -%}
    {%- for name, type in columns.items() -%}
        {%- set value, read_as = '_image_' ~ loop.index, '_read_' ~ loop.index -%}
        {%- do types.append(dict(
            debezium_type(type, value, read_as), image=value, read_as=read_as, is_shard=type == 'shard', is_document=_is_whole_document(type)
        )) -%}
        {%- do of_row.update({name: type}) if type != 'shard' -%}
    {%- endfor -%}
    {%- for name in keys if name in of_row -%} {%- do row_keys.append(name) -%} {%- endfor -%}
    {%- if of_row | length < columns | length and 'name' not in c.source -%}
        {%- do c.update({'source': c.source + ['name']}) -%}
    {%- endif -%}
    {%- set has_two_halves = keys and not c.splits_key_changes -%}

{#- Each step is a query of the one before it, and none a CTE: those Spark would look through once more whenever the view is read. #}
{%- set records %}
    select * from {{ events }} where topic in ({{ _literals(topics) }}) and error is null {{- ' and ' ~ _is_of_table(table) if routed }}
{%- endset -%}

{%- set opened %}
    select
        *,
        coalesce(lower({{ c.snapshot }}), 'false') as _snapshot,
        {{ c.position }} as _source_position,
        {%- if c.left_out_columns %}
        {{ c.left_out_columns }} as _left_out,
        {%- endif %}
        {%- for image in ('before', 'after') if _image_members(c, image) | length > 1 %}
        coalesce({% for member in _image_members(c, image) %}_event.payload.{{ quoted(member) }}{{ ', ' if not loop.last }}{% endfor %}) as {{ _image(c, image) }},
        {%- endfor %}
        {{ c.op }} as _event_op
    from {{ parsed_event(records, envelope_schema(c, row_keys, of_row), c.form == 'flat', _names_a_wrapper(names)) }}
    {%- if c.form == 'document' %}
    {{ parsed_document(c, keys, columns) }}
    {%- endif %}
{%- endset -%}

{%- set changes %}
    {#- A key that changed in one event: the row under the old key is gone, the one under the new key is there. #}
    select
        *,
        {%- if not has_two_halves %}
        _event_op as _op,
        {%- endif %}
        {%- if keys and c.form != 'document' %}
        if({{ '_op' if has_two_halves else '_event_op' }} = 'd', {{ _parsed_key(row_keys, of_row) }}, null) as _key
        {%- else %}
        null as _key
        {%- endif %}
    from ({{ opened }}) as opened
    {%- if has_two_halves %}
    lateral view inline(if(
        _event_op = 'u' and ({{ _key_has_changed(c, names, types, row_keys) }}),
        array(named_struct('op', 'd', 'half', 'out'), named_struct('op', 'u', 'half', 'in')),
        array(named_struct('op', _event_op, 'half', ''))
    )) as _op, _half
    {%- endif %}
{%- endset -%}

{%- set images %}
    select
        *,
        {%- for name in names %}
        {% if c.form == 'document' -%}
        {{ _document_value(name, types[loop.index0], _is_whole_document(columns[name]), keys) }}
        {%- else -%}
        {{ _image_value(c, name, types[loop.index0], row_keys, has_two_halves) }}
        {%- endif %} as _image_{{ loop.index }},
        {%- endfor %}
        {{ _kind(c, table, keys, columns) }} as _kind,
        concat(
            {{ _epoch(epochs) }}, '.', _source_position, '.', if(_snapshot in {{ initial_snapshot_marks() }} and not ({{ c.in_topic_order }}), '0', '1'), '.',
            {%- if c.ties != 'topic' %}
            if(_op = 'd', {{ "'0', '1'" if c.ties == 'deletes_first' else "'1', '0'" }}), '.',
            {%- endif %}
            coalesce(
                concat({{ sortable_number('partition', 10) }}, '.', {{ sortable_number('offset', 20) }}),
                concat(file, ':', {{ sortable_number('line', 12) }})
            )
            {%- if topics | length > 1 %}
            {#- Two topics may have a record at one offset, and no position may tell their order: it has to be the same in each run. #},
            '.', lpad(hex(xxhash64(topic)), 16, '0')
            {%- endif %}
        ) as _position
    from ({{ changes }}) as changes
{%- endset -%}

{%- set rows %}
    select
        *,
        {%- for type in types %}
        {%- set omitted = _omitted_condition(c, names[loop.index0], type, keys) %}
        {%- if omitted %}
        coalesce({{ omitted }}, false) as {{ _is_omitted(type) }},
        {%- do type.update({'can_be_omitted': true}) %}
        {%- endif %}
        {{ type.sql }} as _row_{{ loop.index }}{{ ',' if not loop.last }}
        {%- endfor %}
    from ({{ _with_reads(images, types) }}) as images
{%- endset -%}

{%- set inexact = _inexact_columns(c, names, types) -%}
{%- set judged %}
    select
        *,
        {{ _reject_reason(c, columns, types, keys, row_keys, inexact) }} as _reject_reason,
        {{ _omitted_columns(kept, types) }} as _omitted,
        try_cast({{ c.changed_at }} as bigint) as _changed_at
    {#- By a name of its own Spark compiles each condition once. #}
    from (
        select
            *,
            {{ _names_of_row(c) }} as _names
            {%- if inexact %},
            concat_ws(', '
                {%- for name, condition in inexact.items() -%}
                , if({{ condition }}, {{ literal(name) }}, null)
                {%- endfor -%}
            ) as _inexact
            {%- endif %}
        from ({{ rows }}) as rows
    ) as rows
{%- endset -%}

select
    {%- for name in kept %}
    {{ _row_value(types[loop.index0], loop.index) }} as {{ quoted(name) }},
    {%- endfor %}
    _op as _cdc_op,
    _position as _cdc_position,
    _snapshot not in ('false', '') as _cdc_is_snapshot,
    {{ c.transaction_id }} as _cdc_transaction_id,
    timestamp_millis(if(_changed_at between -62135596800000 and 253402300799999, _changed_at, null)) as _cdc_changed_at,
    batch as _cdc_batch,
    {{ "concat(" if has_two_halves }}{{ _record_id('judged') }}
    {{- ", if(_half = 'out', '#before', ''))" if has_two_halves }} as _cdc_event_id,
    if({{ _has_coordinates() }}, xxhash64(topic, partition), xxhash64(file)) as _cdc_place_hash,
    if({{ _has_coordinates() }}, offset, line) as _cdc_place_number,
    _omitted as _cdc_omitted,
    {%- if c.passes_keys_on and keys %}
    {{ _move(c, has_two_halves) }} as _cdc_move,
    {%- endif %}
    {%- if c.form == 'document' and keys %}
    {{ _patches_of_columns(keys, columns, renamed) }} as _cdc_patches,
    {%- endif %}
    if(_reject_reason is null, _kind, 'rejected') as _cdc_kind,
    _reject_reason as _cdc_reject_reason,
    key as _cdc_key,
    if(_reject_reason is null, null, value) as _cdc_value
from ({{ judged }}) as judged

{%- endmacro %}


{#- Keys and columns under the names that they have in the events. -#}
{% macro _in_events(keys, columns, renamed) -%}
    {%- set named, in_key = {}, [] -%}
    {%- for name, type in columns.items() -%} {%- do named.update({renamed.get(name, name): type}) -%} {%- endfor -%}
    {%- for name in keys -%} {%- do in_key.append(renamed.get(name, name)) -%} {%- endfor -%}
    {{ return([in_key, named]) }}
{%- endmacro %}


{#- Whether a record has its place in Kafka; else its place is a line of a file. -#}
{% macro _has_coordinates() -%}
    partition is not null and offset is not null
{%- endmacro %}


{#- The name of a record: its coordinates in Kafka, else file and line. -#}
{% macro _record_id(records) -%}
    coalesce(
        concat({{ records }}.topic, '/', {{ records }}.partition, '/', {{ records }}.offset), concat({{ records }}.file, ':', {{ records }}.line)
    )
{%- endmacro %}


{#-
    The epoch of a record: the greatest one that is declared for its topic at its offset or batch or before it, else 0. What the
    source logged after it started over sorts after all that it logged before.
-#}
{% macro _epoch(epochs) -%}
    {%- if not epochs -%} '0000' {%- else -%}
    case
        {%- for declared in epochs | sort(attribute='epoch', reverse=true, case_sensitive=true) %}
        when topic = {{ literal(declared.topic) }}
            {%- if declared.partition is defined %} and partition = {{ declared.partition | int }}{% endif %}
            {%- if declared.from_offset is defined %} and offset >= {{ declared.from_offset | int }}{% endif %}
            {%- if declared.from_batch is defined %} and batch >= {{ declared.from_batch | int }}{% endif %}
            then '{{ '%04d' % declared.epoch }}'
        {%- endfor %}
        else '0000'
    end
    {%- endif -%}
{%- endmacro %}


{% macro _literals(texts) -%}
    {%- for text in texts -%} {{ literal(text) }}{{ ', ' if not loop.last }} {%- endfor -%}
{%- endmacro %}


{#-
    Records with `value` parsed once, by a lateral view: `_event.payload` (values with and without a schema block in one shape), `_end`, which is
    set only if the whole value is JSON and nothing follows it, and `_corrupt`, which is set where a value does not fit its declared
    type. All lateral views of a query have one name: qualify nothing by it.

    The schema block, most of the bytes, is first cut off unread: `_tail` is what stands behind the last `"payload":`, NULL of a value without a
    schema block. Where that was a member inside the payload, the rest is no whole JSON, and the value is parsed as it is. The generator
    keeps Spark from copying the parse into every expression that reads it, and into filters.
-#}
{% macro parsed_event(records, schema, is_flat=false, rows_look_wrapped=false) -%}
{%- set parse -%} , {{ literal(schema) }}, map('columnNameOfCorruptRecord', '_corrupt', 'maxStringLen', '2147483647', 'allowSingleQuotes', 'false')) {%- endset -%}
{%- set whole = _whole_value(is_flat) -%}
{%- if is_flat and rows_look_wrapped -%}
    ({{ records }}) as records
    lateral view inline(array(from_json({{ whole }}{{ parse }})) as _event, _end, _corrupt
{%- else -%}
    (
        select *, if(startswith(value, '{"schema":{{ '{' if is_flat }}'), substring_index(value, '"payload":', -1), null) as _tail
        from ({{ records }}) as records
    ) as records
    lateral view inline(transform(
        array(from_json(if(_tail is null, {{ whole }}, concat('{"_event":{"payload":', _tail, ',"_end":1}')){{ parse }}),
        cut -> if(cut._end is not null or _tail is null, cut, from_json({{ whole }}{{ parse }})
    )) as _event, _end, _corrupt
{%- endif -%}
{%- endmacro %}


{#- The value with the members of an envelope, whether Connect's wrapper is around it or not. Flattened rows may begin as that does. -#}
{% macro _whole_value(is_flat) -%}
    if({{ _begins_as_wrapped() }}{{ ' and ' ~ _is_wrapper() if is_flat }},
       concat('{"_event":', value, ',"_end":1}'), concat('{"_event":{"payload":', value, '},"_end":1}'))
{%- endmacro %}


{% macro _begins_as_wrapped() -%}
    (startswith(value, '{"schema":') or startswith(value, '{"payload":') or value rlike '^\\s*[{]\\s*"(schema|payload)"\\s*:')
{%- endmacro %}


{#- Whether a value is nothing but what Connect puts around a row. Rows may have columns of these names, and begin with them. -#}
{% macro _is_wrapper() -%}
    sort_array(json_object_keys(value)) in (array('payload'), array('payload', 'schema'))
{%- endmacro %}


{% macro _names_a_wrapper(names) -%}
    {{ return(names | map('lower') | select('in', ['schema', 'payload']) | list != []) }}
{%- endmacro %}


{#- The schema that a value is parsed with: what the connector reads, and the row images with their declared types. -#}
{% macro envelope_schema(c, keys, columns) -%}
    {%- set source = [] -%}
    {%- for field in c.source -%} {%- do source.append(quoted(field) ~ ': string') -%} {%- endfor -%}
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
        {{ return('_event struct<payload: struct<' ~ (after + c.fields + told_by) | join(', ') ~ '>>, _end int, _corrupt string') }}
    {%- endif -%}
    {%- set members = [
        'op: string', 'ts_ms: string', 'source: struct<' ~ source | join(', ') ~ '>', 'status: string', 'ddl: string', 'tableChanges: string',
        'historyRecord: string', 'aggregate_type: string',
    ] + c.fields -%}
    {%- if c.form == 'document' -%}
        {{ return('_event struct<payload: struct<' ~ (members + ['before: string', 'after: string']) | join(', ') ~ '>>, _end int, _corrupt string') }}
    {%- endif -%}
    {%- set befores = _image_members(c, 'before') + ([c.key] if c.key and c.key not in _image_members(c, 'before') else []) -%}
    {%- for member in befores | reject('in', _image_members(c, 'after')) -%}
        {%- do members.append(quoted(member) ~ ': struct<' ~ (before or ['_none: string']) | join(', ') ~ '>') -%}
    {%- endfor -%}
    {%- for member in _image_members(c, 'after') -%}
        {%- do members.append(quoted(member) ~ ': struct<' ~ after | join(', ') ~ '>') -%}
    {%- endfor -%}
    {{ return('_event struct<payload: struct<' ~ members | join(', ') ~ '>>, _end int, _corrupt string') }}
{%- endmacro %}


{#- A column of an image, as `from_json` reads it. A key column of cells is text: it may be a cell or a plain value. -#}
{% macro _column_schema(c, json, is_key) -%}
    {%- if c.form != 'cells' -%}
        {{ return(json) }}
    {%- elif is_key and _is_plain_key(json) -%}
        {{ return('string') }}
    {%- else -%}
        {{ return('struct<value: ' ~ json ~ ', `set`: boolean>') }}
    {%- endif -%}
{%- endmacro %}


{#- The values of `source.snapshot` that mark a row of a snapshot at its position; `incremental` rows are ordered like changes. -#}
{% macro initial_snapshot_marks() -%}
    ('true', 'first', 'first_in_data_collection', 'last_in_data_collection', 'last')
{%- endmacro %}


{#- The members of the value that hold an image, `before` or `after`. -#}
{% macro _image_members(c, image) -%}
    {{ return([c[image]] if c[image] is string else c[image]) }}
{%- endmacro %}


{#- An image as a struct; of several members `opened` has the first that is there, of flattened rows it is the value itself. -#}
{% macro _image(c, image) -%}
    {%- set members = _image_members(c, image) -%}
    {%- if c.form == 'flat' -%} {{ return('_event.payload') }} {%- endif -%}
    {%- if c.form == 'document' -%} {{ return('_' ~ image) }} {%- endif -%}
    {{ return('_event.payload.' ~ quoted(members[0]) if members | length == 1 else '_first_' ~ image) }}
{%- endmacro %}


{#- The JSON value of a column in an image, `before` or `after`. -#}
{% macro _member(c, image, name, json, keys) -%}
    {%- set value = _image(c, image) ~ '.' ~ quoted(name) -%}
    {%- if c.form == 'cells' and name in keys and _is_plain_key(json) -%}
        try_cast({{ _text_of_cell(c, value) }} as {{ json }})
    {%- else -%}
        {{ _json_value(value ~ ('.value' if c.form == 'cells' else ''), json) }}
    {%- endif -%}
{%- endmacro %}


{#- The text of a key column that may be a cell. -#}
{% macro _text_of_cell(c, text) -%}
    {{ return("if(startswith(" ~ text ~ ", '{'), get_json_object(" ~ text ~ ", '$.value'), " ~ text ~ ")" if c.form == 'cells' else text) }}
{%- endmacro %}


{% macro _json_value(value, json) -%}
    {{ 'if(is_variant_null(' ~ value ~ '), null, ' ~ value ~ ')' if json == 'variant' else value }}
{%- endmacro %}


{#-
    The JSON value of a key column in the row as it was. Of an update `before` counts before the connector's own member, which may have the
    new key; of a delete that member does, because columns of `before` may be invented.
-#}
{% macro _old_key_value(c, name, json, keys, of_delete=false) -%}
    {%- set before = _member(c, 'before', name, json, keys) -%}
    {%- if c.key and c.key not in _image_members(c, 'before') -%}
        {%- set own = _json_value('_event.payload.' ~ quoted(c.key) ~ '.' ~ quoted(name), json) -%}
        coalesce({{ own ~ ', ' ~ before if of_delete else before ~ ', ' ~ own }})
    {%- else -%}
        {{ before }}
    {%- endif -%}
{%- endmacro %}


{#-
    The JSON value of a column. A delete has key columns only, from the Kafka key where that names them, else from the event (the other way
    round where the connector names a member for it), else from a Kafka key that is a bare value, which may be that of any column: other
    columns of a partial `before` are invented by Debezium.
-#}
{% macro _image_value(c, name, type, keys, has_two_halves) -%}
    {%- set after = _member(c, 'after', name, type.json, keys) -%}
    {%- if type.is_shard -%}
        _event.payload.source.name
    {%- elif name in keys -%}
        {%- set before = _old_key_value(c, name, type.json, keys, of_delete=true) -%}
        {%- set named = _key_value(c, name, type, keys) -%}
        {%- set bare = [_bare_key(type)] if _is_plain_key(type.json) and keys | length == 1 else [] -%}
        {%- set old = 'coalesce(' ~ (([before, named] if c.key else [named, before]) + bare) | join(', ') ~ ')' -%}
        if(_op = 'd', {{ "if(_half = 'out', " ~ _old_key_value(c, name, type.json, keys) ~ ', ' ~ old ~ ')' if has_two_halves else old }}, {{ after }})
    {%- else -%}
        if(_op = 'd', {{ 'null' if keys else _member(c, 'before', name, type.json, keys) }}, {{ after }})
    {%- endif -%}
{%- endmacro %}


{#- Whether both images have a key and these differ: as JSON text, because a variant has no equality. -#}
{% macro _key_has_changed(c, names, types, keys) -%}
    {%- for name in keys -%}
        {%- set json = types[names.index(name)].json -%}
        {%- set before, after = _old_key_value(c, name, json, keys), _member(c, 'after', name, json, keys) -%}
        {{ 'to_json(' ~ before ~ ') <> to_json(' ~ after ~ ')' if json == 'variant' else before ~ ' <> ' ~ after }}{{ ' or ' if not loop.last }}
    {%- endfor -%}
{%- endmacro %}


{#-
    Kafka keys come as `{"payload": {…}}`, `{…}`, `{"payload": 1}` or a bare value, and with numbers as texts. Where a column of the key is
    named `payload`, its object tells which of them it is.
-#}
{% macro _parsed_key(keys, columns) -%}
    {%- set fields = [] -%}
    {%- for name in keys -%}
        {%- set json = debezium_type(columns[name], name).json -%}
        {%- do fields.append(quoted(name) ~ ': ' ~ ('string' if _is_plain_key(json) else json)) -%}
    {%- endfor -%}
    {%- set wrapped = 'payload struct<' ~ fields | join(', ') ~ '>' -%}
    {%- if _names_payload(keys) -%}
        from_json(if(startswith(get_json_object(key, '$.payload'), '{'), key, concat('{"payload":', key, '}')), {{ literal(wrapped) }})
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
        {%- do parts.append(_text_of_cell(c, part) if _is_plain_key(type.json) else part) -%}
    {%- endfor -%}
    {%- set value = 'coalesce(' ~ parts | join(', ') ~ ')' -%}
    {{ 'try_cast(' ~ value ~ ' as ' ~ type.json ~ ')' if _is_plain_key(type.json) else value }}
{%- endmacro %}


{#- A Kafka key that is one value: of JSON, with or without a schema block, or a text. `Struct{id=1}` is Connect's text of a key, and no value. -#}
{% macro _bare_key(type) -%}
    try_cast(coalesce(
        nullif(regexp_replace(get_json_object(key, '$.payload'), '^[{\\[].*', ''), ''),
        case
            when startswith(key, '"') then get_json_object(concat('{"k":', key, '}'), '$.k')
            when key rlike '^(?!Struct[{])[^{\\[]' then key
        end
    ) as {{ type.json }})
{%- endmacro %}


{#- What a record is. -#}
{% macro _kind(c, table, keys, columns) -%}
    case
        {%- if not (c.tombstone_deletes and keys) %}
        when value is null or octet_length(value) < 64 and trim(value) = '' then 'tombstone'
        when _event.payload is null and _end is not null and _corrupt is null
            and (contains(value, '"payload"'){{ ' and ' ~ _is_wrapper() if c.form == 'flat' }} or octet_length(value) < 64 and trim(value) = 'null') then 'tombstone'
        {%- endif %}
        {{ c.kind }}
        {%- if c.form == 'flat' %}
        {{ _flat_kinds(columns) }}
        {%- else %}
        {#- What is no whole JSON may seem to have members of a column. #}
        when _op = 'm' and _end is not null then 'message'
        when _op is null and _event.payload.status in ('BEGIN', 'END') and _end is not null then 'transaction'
        when _op is null and coalesce(_event.payload.ddl, _event.payload.tableChanges, _event.payload.historyRecord) is not null and _end is not null then 'ddl'
        when _op is null and _event.payload.aggregate_type is not null and _event.payload.source is null and _end is not null then 'notification'
        when _op is null and _event.payload.ts_ms is not null and _event.payload.source is null and {{ _has_members(['ts_ms'], ['ts_us', 'ts_ns', 'vgtid']) }} then 'heartbeat'
        {%- if c.not_from %}
        when {{ _is_of_other_connector(c) }} then 'change'
        {%- endif %}
        {%- endif %}
        {%- for field in c.table if table | length == c.table | length %}
        when {{ field }} <> {{ literal(table[loop.index0]) }} then 'other_table'
        {%- endfor %}
        when _op = 't' then 'truncate'
        else 'change'
    end
{%- endmacro %}


{#-
    Records among flattened rows that are none. Rows may have any columns, so such a record is recognised only by its members, all
    of them, and not where one of them is a column of the table; `id` may be.
-#}
{% macro _flat_kinds(columns) -%}
    {%- for told_by, marker in _flat_markers(columns).items() %}
        when _event.payload.{{ told_by }} {{ marker.value }} and {{ _has_members(marker.members, marker.further) }} then '{{ marker.kind }}'
    {%- endfor -%}
{%- endmacro %}


{#- The member that tells of a record which is no row → the members that it has, those that it may have, and what it is then. -#}
{% macro _flat_markers(columns) -%}
    {%- set times = ['ts_ms', 'ts_us', 'ts_ns'] -%}
    {%- set of_ddl = ['source', 'databaseName', 'ddl', 'tableChanges'] -%}
    {%- set markers = {
        'status': {'kind': 'transaction', 'members': ['status', 'id', 'event_count', 'data_collections'], 'value': "in ('BEGIN', 'END')"},
        'tableChanges': {'kind': 'ddl', 'members': of_ddl, 'further': ['schemaName', 'position'] + times},
        'historyRecord': {'kind': 'ddl', 'members': ['source', 'historyRecord']},
        'aggregate_type': {'kind': 'notification', 'members': ['id', 'aggregate_type', 'type', 'additional_data'], 'further': ['timestamp']},
        'message': {'kind': 'message', 'members': ['op', 'source', 'message'], 'further': times + ['transaction']},
        'ts_ms': {'kind': 'heartbeat', 'members': ['ts_ms'], 'further': times + ['vgtid']},
    } -%}
    {%- set declared = columns.keys() | map('lower') | list -%}
    {%- set found = {} -%}
    {%- for told_by, marker in markers.items() -%}
        {%- set marker = dict({'further': times, 'value': 'is not null'}, **marker) -%}
        {%- if (marker.members + marker.further) | map('lower') | reject('equalto', 'id') | select('in', declared) | list == [] -%}
            {%- do found.update({told_by: marker}) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(found) }}
{%- endmacro %}


{#- Whether a value has these members and no others but `further` ones. Asked of the few records that one of them tells of. -#}
{% macro _has_members(members, further) -%}
    size(array_except(array({{ _literals(members) }}), {{ _members() }})) = 0 and size(array_except({{ _members() }}, array({{ _literals(members + further) }}))) = 0
{%- endmacro %}


{#- The names of a value's members, also of those that are null. -#}
{% macro _members() -%}
    json_object_keys(if({{ _is_wrapper() }}, get_json_object(value, '$.payload'), value))
{%- endmacro %}


{#- An event of another connector does not name this one's tables: it is rejected, not taken for another table's. -#}
{% macro _is_of_other_connector(c) -%}
    _event.payload.source.connector in ({{ _literals(c.not_from) }})
{%- endmacro %}


{#-
    The names of the members of a row's image, as they stand in the event: `from_json` takes the last of two members of one name, and tells
    nothing. The image is looked for behind the schema block first, where nearly all are. Behind an empty `before`, or at the front of a delete
    without `after`, it is read where it stands: what follows an object is not looked at. The front is cut off as bytes, which are not counted.
    With a lambda, although nothing is transformed: of a projection that has one Spark makes many methods, and of others one that is too long for
    Java's first compiler, which then compiles nothing of it.
-#}
{% macro _names_of_row(c) -%}
    {%- if c.form == 'flat' -%}
        {%- set row = 'if(' ~ _begins_as_wrapped() ~ ' and ' ~ _is_wrapper() ~ ", get_json_object(value, '$.payload'), value)" -%}
        {{ return(let(row, 'row', 'json_object_keys(row)')) }}
    {%- elif c.form == 'document' -%}
        {{ return(let('_event.payload.after', 'row', 'json_object_keys(row)')) }}
    {%- endif -%}
    {%- set images = _image_members(c, 'after') + _image_members(c, 'before') | reject('in', _image_members(c, 'after')) | list -%}
    {%- set found = [] -%}
    {%- for text, path in [['p', '$.'], ['value', '$.payload.']] -%}
        {%- for member in images -%} {%- do found.append('get_json_object(' ~ text ~ ', ' ~ literal(path ~ member) ~ ')') -%} {%- endfor -%}
    {%- endfor -%}
    {%- set image = 'coalesce(' ~ found | join(', ') ~ ')' -%}
    {%- if images == ['after', 'before'] -%}
        {%- set image -%}
            case
                when startswith(p, '{"before":null,"after":{') then {{ _behind('p', '{"before":null,"after":') }}
                when startswith(p, '{"before":{') and _event.payload.after is null then {{ _behind('p', '{"before":') }}
                else {{ image }}
            end
        {%- endset -%}
    {%- endif -%}
    {{ return(let('coalesce(_tail, value)', 'p', 'json_object_keys(' ~ image ~ ')')) }}
{%- endmacro %}


{#- A text without its front, which is ASCII. -#}
{% macro _behind(text, front) -%}
    {{ return('cast(substring(cast(' ~ text ~ ' as binary), ' ~ (front | length + 1) ~ ') as string)') }}
{%- endmacro %}


{#- Why a record cannot be used, or NULL. The reasons are a closed list: docs/rejects.md. -#}
{% macro _reject_reason(c, columns, types, keys, row_keys, inexact) -%}
    {%- set names = columns.keys() | list -%}
    case
        when _kind in ('tombstone', 'message', 'transaction', 'ddl', 'heartbeat', 'notification', 'other_table') then null
        {%- if c.tombstone_deletes and keys %}
        when value is null or octet_length(value) < 64 and trim(value) = '' then {{ _if_no_key(names, keys) }}
        {%- endif %}
        when _end is null{{ ' or _document_end is null' if c.form == 'document' }} then 'invalid_json'
        when _op is null then 'not_an_envelope'
        when _op not in ('c', 'r', 'u', 'd', 't') then 'unknown_operation'
        {{ c.reject }}
        {%- if c.not_from %}
        when {{ _is_of_other_connector(c) }} then 'other_connector'
        {%- endif %}
        {%- if c.left_out_columns %}
        when size(array_except(_left_out, array({{ _literals(names) }}))) > 0 then 'unknown_left_out_column'
        {%- endif %}
        when _position is null then 'no_position'
        {%- if types | selectattr('is_shard') | list %}
        when _op = 't' then 'truncate_of_a_shard'
        {%- endif %}
        when _op = 't' then {{ 'null' if c.truncate_has_key else "if(key is null, null, 'truncate_with_key')" }}
        when _corrupt is not null{{ ' or _document_corrupt is not null' if c.form == 'document' }} then 'value_of_wrong_type'
        when _op <> 'd' and {{ _image(c, 'after') }} is null then 'no_after_image'
        when {{ _only_if('_names <> array(' ~ _literals(names) ~ ')', 'size(array_distinct(_names)) < size(_names)') }} then 'duplicate_column'
        {%- if c.form == 'document' %}
        when {{ _cannot_be_patched(keys, columns) }} then 'partial_row' || {{ literal(': ' ~ c.field_update.otherwise) }}
        {%- endif %}
        {%- for name in keys %}
        when _row_{{ names.index(name) + 1 }} is null then 'no_key'
        {%- endfor %}
        {%- set others = names | reject('in', keys) | list %}
        {%- if c.null_is_ambiguous and others %}
        when _op = 'u' and {{ _image(c, 'before') }} is null and ({{ _any_image(names, others, 'is null') }})
            then 'null_or_unchanged' || ': REPLICA IDENTITY has to be FULL, or the plugin yboutput'
        {%- endif %}
        {%- set collections = _collections(columns, types, keys) if c.updates_parts_of_collections else [] %}
        {%- if collections %}
        when _op = 'u' and ({{ collections | join(' or ') }}) then 'collection_in_update' || ': the column has to be frozen'
        {%- endif %}
        {%- if keys and c.splits_key_changes and c.form != 'document' and _image(c, 'before') != _image(c, 'after') %}
        when _op = 'u' and ({{ _key_has_changed(c, names, types, row_keys) }}) then 'key_changed_in_update'
        {%- endif %}
        {%- if inexact %}
        when _inexact <> '' then concat('value_not_exact: ', _inexact)
        {%- endif %}
    end
{%- endmacro %}


{#- For each column that may be a collection, the condition that an event has one for it. In a key they are whole. -#}
{% macro _collections(columns, types, keys) -%}
    {%- set found = [] -%}
    {%- for name, type in columns.items() if name not in keys -%}
        {%- set at = (columns.keys() | list).index(name) -%}
        {%- set image = '_image_' ~ (at + 1) -%}
        {%- if types[at].json.startswith('array<') or types[at].json.startswith('map<') -%}
            {%- do found.append(image ~ ' is not null') -%}
        {%- elif type == 'any' -%}
            {%- do found.append("schema_of_variant(" ~ image ~ ") rlike '^(ARRAY|OBJECT)'") -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(found) }}
{%- endmacro %}


{#- Whether the JSON value of one of some columns is, or is not, null. -#}
{% macro _any_image(names, some, condition) -%}
    {%- for name in some -%} _image_{{ names.index(name) + 1 }} {{ condition }}{{ ' or ' if not loop.last }} {%- endfor -%}
{%- endmacro %}


{% macro _if_no_key(names, keys) -%}
    if({% for name in keys %}_row_{{ names.index(name) + 1 }} is null{{ ' or ' if not loop.last }}{% endfor %}, 'no_key', null)
{%- endmacro %}


{#- Column → the condition under which its value cannot be given exactly; only of columns for which that can be. -#}
{% macro _inexact_columns(c, names, types) -%}
    {%- set found = {} -%}
    {%- for type in types -%}
        {%- set at, conditions = types.index(type), [] -%}
        {%- if type.text -%}
            {%- do conditions.append(_reprinted_number(c, names[at], type.text, type.changed_number or '-?[0-9]+[.eE]')) -%}
        {%- endif -%}
        {%- if type.text or type.is_text -%}
            {%- do conditions.append(_has_half_a_character(type.text or '_row_' ~ (at + 1))) -%}
        {%- endif -%}
        {%- if type.number -%}
            {%- do conditions.append(_became_infinite(c, names[at], type.number)) -%}
            {%- do conditions.append(_no_double(c, names[at], type.number)) if not type.is_float -%}
        {%- endif -%}
        {%- if type.encoded and names[at] not in c.source + ['version', 'before', 'after', 'source', 'schema', 'payload', 'parameters', 'items'] -%}
            {#- A text so long is no number, and is not copied to look at it. #}
            {%- set is_number = type.encoded ~ " rlike '^(true|-?[0-9]+)$'" -%}
            {%- set is_written = 'value rlike ' ~ literal(_member_pattern(c, names[at]) ~ '[t0-9-]') -%}
            {%- do conditions.append(_only_if('octet_length(' ~ type.encoded ~ ') < 400', _only_if(is_number, is_written))) -%}
        {%- endif -%}
        {%- if type.can_fail -%}
            {%- do conditions.append(
                '(' ~ type.image ~ ' is not null and _row_' ~ (at + 1) ~ ' is null'
                ~ (' and not ' ~ _is_omitted(type) if type.can_be_omitted else '') ~ ')'
            ) -%}
        {%- endif -%}
        {%- if conditions -%} {%- do found.update({names[at]: conditions | join(' or ')}) -%} {%- endif -%}
    {%- endfor -%}
    {{ return(found) }}
{%- endmacro %}


{#-
    Whether a text was a JSON number, or an array or object that holds one, and has other digits now: Spark prints a number with a fraction or an
    exponent anew, through a double. A number that the event has under this name as it is, or in quotes, was printed as it came; of arrays
    and objects the numbers have to stand there one after the other. A column that has the name of a member of an envelope or schema with
    braces is not looked at for objects.
-#}
{% macro _reprinted_number(c, name, text, changed_number) -%}
    {%- set of_connect = ('before', 'after', 'source', 'transaction', 'schema', 'payload', 'parameters', 'items') -%}
    {%- set member = _member_pattern(c, name) -%}
    {%- set opening = '[\\[{]' if name not in of_connect else '\\[' -%}
    {%- set number = '-?[0-9]+(?:[.][0-9]+(?:[eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+)' -%}
    {%- set numbers = literal(number) -%}
    {%- set is_other -%}
        if({{ text }} rlike {{ literal('^' ~ number ~ '$') }},
            value rlike {{ literal(member ~ changed_number) }}
                and not array_contains(regexp_extract_all(value, {{ literal(member ~ '"?(' ~ number ~ ')(?![0-9.eE])') }}, 1), {{ text }}),
            {{ text }} rlike {{ literal('(?s)^' ~ opening ~ '.*?' ~ number) }} and value rlike {{ literal(_member_pattern(c, name, is_cell=true) ~ opening) }}
                and not contains(concat(' ', array_join(regexp_extract_all(regexp_replace(value, {{ literal('\\\\u[0-9a-fA-F]{4}') }}, ''), {{ numbers }}, 0), ' '), ' '),
                                 concat(' ', array_join(regexp_extract_all({{ text }}, {{ numbers }}, 0), ' '), ' '))
        )
    {%- endset -%}
    {#- The first character of nearly all texts says that they are none, before a pattern has them copied. #}
    {{ return(_only_if("instr('-0123456789[{', left(" ~ text ~ ", 1)) > 0", is_other)) }}
{%- endmacro %}


{#-
    Whether a text may have lost a surrogate that stood without its other half (`\\ud800`), which Spark reads as a question mark, so that texts
    which differ would be the same. It is looked for in the whole event and in its key.
-#}
{% macro _has_half_a_character(text) -%}
    {%- set high, low = '\\\\u[dD][89abAB][0-9a-fA-F]{2}', '\\\\u[dD][c-fC-F][0-9a-fA-F]{2}' -%}
    {%- set half = '(?<!\\\\)(?:\\\\\\\\)*(?:' ~ high ~ '(?!' ~ low ~ ')|(?<!' ~ high ~ ')' ~ low ~ ')' -%}
    {%- set is_written = "contains(value, " ~ literal('\\ud') ~ ") or contains(value, " ~ literal('\\uD') ~ ") or contains(key, " ~ literal('\\u') ~ ")" -%}
    {{ return(_only_if("instr(" ~ text ~ ", '?') > 0", _only_if(is_written, "concat_ws(' ', key, value) rlike " ~ literal(half)))) }}
{%- endmacro %}


{#-
    Whether a number is one that no double holds: of more than 17 digits, or a whole number that is another one as a double. With a schema block
    the connector wrote a double, and none is looked for. A number of the event that is held, under the name of the column, is taken for its value.
    Writers print a great double in full or in its first 17 digits. What is no whole JSON is looked at, too: hence `try_cast`.
-#}
{% macro _no_double(c, name, number) -%}
    {%- set member = _member_pattern(c, name) -%}
    {%- set few_digits = '(-?(?=[0-9])[0.]*(?:[1-9](?:[.]?[0-9]){0,16})?[0.]*(?:[eE][+-]?[0-9]{1,3})?)(?![0-9.eE])' -%}
    {%- set whole = 'if(abs(' ~ number ~ ') <= 9.2e18, try_cast(' ~ number ~ ' as bigint), null)' -%}
    {%- set is_whole -%}
        coalesce(arrays_overlap(
            try_cast(regexp_extract_all(value, {{ literal(member ~ '(-?[0-9]{16,19})(?![0-9.eE])') }}, 1) as array<bigint>),
            array({{ whole }}, round({{ whole }}, -1), round({{ whole }}, -2), round({{ whole }}, -3))
        ), false)
    {%- endset -%}
    {%- set is_held_by_none -%}
        value rlike {{ literal(member ~ '-?[0.]*[1-9](?:[.]?[0-9]){16,}[.]?[1-9]') }}
            and not coalesce(array_contains(try_cast(regexp_extract_all(value, {{ literal(member ~ few_digits) }}, 1) as array<double>), {{ number }}), false)
            and not {{ is_whole }}
        or abs({{ number }}) between 9007199254740992 and 9.2e18
            and value rlike {{ literal(member ~ '-?[0-9]{16,19}(?![0-9.eE])') }}
            and not {{ is_whole }}
    {%- endset -%}
    {{ return(_only_if("abs(" ~ number ~ ") < double('Infinity') and not startswith(value, '{\"schema\":{\"')", is_held_by_none)) }}
{%- endmacro %}


{#- Whether a number is infinite, and the event does not say so under its name: it was too large. -#}
{% macro _became_infinite(c, name, number) -%}
    {%- set member = _member_pattern(c, name) -%}
    {%- set is_number = 'value rlike ' ~ literal(member ~ '-?[0-9]') ~ ' and not value rlike ' ~ literal(member ~ '"[+-]?Infinity"') -%}
    {{ return(_only_if("abs(" ~ number ~ ") = double('Infinity')", is_number)) }}
{%- endmacro %}


{#-
    A condition that costs something, computed only where another one holds: not with `and`, which has it computed where that one is NULL; and
    what several columns have in common of their conditions Spark would compute for each row.
-#}
{% macro _only_if(guard, condition) -%}
    {{ return('if(' ~ guard ~ ', ' ~ condition ~ ', false)') }}
{%- endmacro %}


{#- A pattern of what stands in front of the value of a column. -#}
{% macro _member_pattern(c, name, is_cell=false) -%}
    {%- set cell = '(?:[{]\\s*"value"\\s*:\\s*)' ~ ('' if is_cell else '?') if c.form == 'cells' else '' -%}
    {{ return('"' ~ modules.re.escape(name | replace('\\', '\\\\') | replace('"', '\\"')) ~ '"\\s*:\\s*' ~ cell) }}
{%- endmacro %}


{#- The condition under which an event leaves out the value of a column, or none; a key is always there. -#}
{% macro _omitted_condition(c, name, type, keys) -%}
    {%- if name in keys -%}
        {{ return(none) }}
    {%- elif c.left_out == 'placeholder' -%}
        {{ return(type.omitted) }}
    {%- elif c.left_out == 'unset' -%}
        {%- set cell = _image(c, 'after') ~ '.' ~ quoted(name) -%}
        {{ return("(_op <> 'd' and (" ~ cell ~ " is null or not coalesce(" ~ cell ~ ".`set`, true)))") }}
    {%- elif c.left_out == 'listed' -%}
        {%- set listed = "(_op <> 'd' and " ~ type.image ~ " is null and coalesce(array_contains(_left_out, " ~ literal(name) ~ "), false))" -%}
        {{ return('(' ~ type.omitted ~ ' or ' ~ listed ~ ')' if type.omitted else listed) }}
    {%- elif c.left_out == 'untouched' -%}
        {{ return('(_touched is not null' ~ ('' if type.is_document else ' and not array_contains(_touched, ' ~ literal(name) ~ ')') ~ ')') }}
    {%- else -%}
        {{ return(none) }}
    {%- endif -%}
{%- endmacro %}


{#- The name of what that condition gave. -#}
{% macro _is_omitted(type) -%}
    {{ return(type.image | replace('_image_', '_is_omitted_')) }}
{%- endmacro %}


{#- The query of the images, with what expressions of their types read more than once under a name. -#}
{% macro _with_reads(images, types) -%}
    {%- set reads = [] -%}
    {%- for type in types if type.read -%} {%- do reads.append(type.read ~ ' as ' ~ type.read_as) -%} {%- endfor -%}
    {{ 'select *, ' ~ reads | join(', ') ~ ' from (' ~ images ~ ') as images' if reads else images }}
{%- endmacro %}


{% macro _row_value(type, index) -%}
    {{ 'if(' ~ _is_omitted(type) ~ ', null, _row_' ~ index ~ ')' if type.can_be_omitted else '_row_' ~ index }}
{%- endmacro %}


{#- The columns of a change whose value the source's log did not hold; NULL where it held all, which is nearly always. -#}
{% macro _omitted_columns(names, types) -%}
    {%- set conditions = [] -%}
    {%- set found = [] -%}
    {%- for type in types if type.can_be_omitted -%}
        {%- do conditions.append(_is_omitted(type)) -%}
        {%- do found.append('if(' ~ _is_omitted(type) ~ ', ' ~ literal(names[types.index(type)]) ~ ', null)') -%}
    {%- endfor -%}
    {%- if found -%}
        {#- `array_compact` does the same by a lambda, and Spark compiles no projection that has one. #}
        if({{ conditions | join(' or ') }}, array_except(array({{ found | join(', ') }}), array(null)), null)
    {%- else -%}
        cast(null as array<string>)
    {%- endif -%}
{%- endmacro %}


{% macro _check_declaration(c, topics, table, keys, columns, routed, renamed) -%}
    {%- set problems = [] -%}
    {%- set meta = (config.get('meta') or {}).get('debezium', {}) if execute and model.resource_type == 'model' else {} -%}
    {%- if meta.topics and meta.topics | sort(case_sensitive=true) != topics | sort(case_sensitive=true) -%}
        {%- do problems.append("topics is " ~ topics ~ ", and meta.debezium.topics in its YAML, by which new records are found, is " ~ meta.topics ~ ": give both the same") -%}
    {%- endif -%}
    {%- for name in keys if name not in columns -%}
        {%- do problems.append("key '" ~ name ~ "' is not among the columns (" ~ columns | join(', ') ~ ")") -%}
    {%- endfor -%}
    {%- set seen = {} -%}
    {%- for name in columns -%}
        {%- if name == '' or name.lower().startswith('_cdc_') -%}
            {%- do problems.append("a column is named '" ~ name ~ "'; names that begin with _cdc_ are those of the metadata columns") -%}
        {%- endif -%}
        {%- if name | lower in reserved_columns() -%}
            {%- do problems.append(
                "a column is named '" ~ name ~ "', which Iceberg keeps for its metadata: the table could not be read. "
                ~ "Name it '" ~ name ~ "_source' in columns and keys, and say "
                ~ "renamed = {'" ~ name ~ "_source': '" ~ name ~ "'}"
            ) -%}
        {%- endif -%}
        {%- if name | lower in seen -%}
            {%- do problems.append("columns '" ~ seen[name | lower] ~ "' and '" ~ name ~ "' differ in case only, which Spark cannot tell apart") -%}
        {%- endif -%}
        {%- do seen.update({name | lower: name}) -%}
    {%- endfor -%}
    {%- for name in renamed if name not in columns -%}
        {%- do problems.append("renamed has '" ~ name ~ "', which is none of the columns: " ~ columns | join(', ')) -%}
    {%- endfor -%}
    {%- if _in_events(keys, columns, renamed)[1] | length < columns | length -%}
        {%- do problems.append('renamed is ' ~ renamed ~ ', by which two columns have one name in the events') -%}
    {%- endif -%}
    {%- if 'shard' in columns.values() and (c.form == 'document' or (columns.values() | list).count('shard') > 1) -%}
        {%- do problems.append('a table of rows has one column of type shard at most, a table of documents none') -%}
    {%- endif -%}
    {%- if c.document_key and keys and keys != [c.document_key[1]] -%}
        {%- do problems.append("keys is " ~ keys ~ "; a document is identified by ['" ~ c.document_key[1] ~ "']") -%}
    {%- endif -%}
    {%- if c.table | length > table | length and not (c.table_by_topic and table | length == 1) -%}
        {%- do problems.append("table is " ~ table ~ "; expected a name for each of " ~ c.table | join(', ')) -%}
    {%- endif -%}
    {%- if routed and (not c.table or c.table | length != table | length) -%}
        {%- do problems.append("table is " ~ table ~ ", which the events do not name, so they cannot be routed; read the bronze table without routed") -%}
    {%- endif -%}
    {%- if problems -%}
        {{ exceptions.raise_compiler_error('debezium_changes in model ' ~ model.name ~ ': ' ~ problems | join('; ') ~ '.') }}
    {%- endif -%}
{%- endmacro %}
