{#-
    The change log of a table: every landed record of its topics as one typed row. `_cdc_kind` says what the record is;
    `_cdc_reject_reason` says why it cannot be used.

    JSON is parsed once, with the declared types. A value that is not exact in its type, or has no place in the source's
    order, rejects the record: it never silently becomes NULL.

    Spark analyses this statement in every run, and its time grows with the text. So names that stand often are short.
    It does so in passes over all of it. A conversion that is not written, that of a NULL too, takes a pass more: hence
    the casts, and `case when … then … end` for `if(…, …, null)`, where most tables have it.
-#}
{% macro debezium_changes(events, topics, connector, table, keys, columns, routed=false, epochs=[], renamed={}) -%}
    {%- set declared = dict(
        events=events, topics=topics, connector=connector, table=table, keys=keys, columns=columns, routed=routed,
        epochs=epochs, renamed=renamed
    ) -%}
    {%- set new = _new_records_of_log(declared) -%}
    {%- if new.replayed -%}
        {%- set again = _typed_records(condition=new.replayed, append=new.append + new.has_new, **declared) -%}
        {%- do bounds_of_run()[model.unique_id].update({'replay': again}) -%}
    {%- endif -%}
    {%- set typed = _typed_records(condition=new.condition, append=new.append, **declared) -%}
    {{ typed }}
    {%- if new.pruned %}
union all
{{ _rows_of_pruned(typed, declared, events, new) }}
    {%- endif -%}
{%- endmacro %}

{#-
    The rows of a change log. `condition` selects records and follows other conditions; `append` is the number of the
    append.
-#}
{% macro _typed_records(events, topics, connector, table, keys, columns, routed, epochs, renamed, condition,
    append=0) -%}
    {%- set c = debezium_connector(connector) -%}
    {%- do _check_declaration(c, topics, table, keys, columns, routed, renamed) -%}
    {#- Up to the last step columns have their names in the events. #}
    {%- set kept = columns.keys() | list -%}
    {%- set keys, columns = _in_events(keys, columns, renamed) -%}
    {%- set fields = _fields(c, keys, columns, kept) -%}
    {#- What the rows hold, without a column that names the shard. #}
    {%- set of_row, row_keys = {}, [] -%}
    {%- for field in fields if not field.is_shard -%}
        {%- do of_row.update({field.name: field.type}) -%}
        {%- do row_keys.append(field.name) if field.is_key -%}
    {%- endfor -%}
    {%- if of_row | length < columns | length and 'name' not in c.source -%}
        {%- do c.update({'source': c.source + ['name']}) -%}
    {%- endif -%}
    {%- set has_two_halves = keys and not c.splits_key_changes -%}
{#-
    Each step is a subquery of the next one. Spark analyses the statement about three times more for each step, so there
    are few. None is a CTE: Spark analyses those once more.
-#}
{%- set condition = 'topic in (' ~ _literals(topics) ~ ') and error is null'
    ~ (' and ' ~ _is_of_table(table) if routed else '') ~ condition -%}
{%- set of_table = {
    'c': c, 'fields': fields, 'key': keys, 'columns': columns, 'row_keys': row_keys, 'of_row': of_row,
    'has_two_halves': has_two_halves,
} -%}
{%- set opened = _opened_records(of_table, events, condition) -%}
{%- set named = fields | selectattr('is_named') | list %}
{%- if named %}
{%- set opened %}
    select *{% for field in named %},
        {{ _image_value(c, field, row_keys, has_two_halves) }} as {{ field.image }}{% endfor %}
    from ({{ opened }}) as opened
{%- endset -%}
{%- endif %}
{%- set rows %}
    select
        *,
        {%- for field in fields %}
        {{ _image_value(c, field, row_keys, has_two_halves) if field.sql == field.image
            and not field.is_named else field.sql }} as {{ field.row }},
        {%- endfor %}
        {{ _omitted_columns(fields) }} as _omitted,
        {{ _kind(c, table, keys, columns) }} as _kind,
        {{ _position(c, topics, epochs) }} as _position,
        try_cast({{ c.changed_at }} as bigint) as _changed_at
    from ({{ opened }}) as opened
{%- endset -%}
{%- set judged %}
    select *, {{ _reject_reason(c, fields, columns, keys, row_keys) }} as _reject_reason
    from ({{ rows }}) as rows
{%- endset -%}

select
    {{ _columns_of_log(of_table, renamed, append) }}
from ({{ judged }}) as judged
{%- endmacro %}

{#- The parsed records with their operation, position and images. `of_table` is that of `_typed_records`. -#}
{% macro _opened_records(of_table, events, condition) -%}
    {%- set c, fields, keys, columns = of_table.c, of_table.fields, of_table.key, of_table.columns -%}
    {%- set row_keys, of_row, has_two_halves = of_table.row_keys, of_table.of_row, of_table.has_two_halves -%}
    {%- set row = _row_image(c, fields, keys, has_two_halves) -%}
    {%- set has_own_payload = 'payload' in columns | map('lower') | list -%}
    {%- set tail = "substring_index(value, '\"payload\":', -1)" if has_own_payload else '_tail' -%}
{%- set opened %}
    select
        *,
        coalesce(lower({{ c.snapshot }}), 'false') as _snapshot,
        {{ c.position }} as _source_position,
        {%- if c.left_out_columns %}
        {{ c.left_out_columns }} as _left_out,
        {%- endif %}
        {%- if c.left_out in ('placeholder', 'listed') %}
        {{ placeholders() }} as _unavailable,
        {%- endif %}
        {%- if keys and c.form != 'document' %}
        case when {{ c.op }} = 'd' then {{ _parsed_key(c, row_keys, of_row) }} end as _key,
        {%- endif %}
        {{ row if not has_two_halves }}
        {{ c.op }} as {{ '_event_op' if has_two_halves else '_op' }}
        {{- _written_columns(c, _guarded_columns(c, fields), tail) }}
    from {{ parsed_event(events, condition, envelope_schema(c, row_keys, of_row), c.form == 'flat',
        has_own_payload, _parsed_document_key(c) if c.form == 'document' else none) }}
    {%- if c.form == 'document' %}
    {{ parsed_document(c, keys, columns) }}
    {%- endif %}
{%- endset -%}

{%- if has_two_halves %}
{%- set opened %}
    {#- A key that changed in one event: the row under the old key is gone, the one under the new key is there. #}
    select {{ row }} *
    from ({{ opened }}) as opened
    lateral view inline(if(
        _event_op = 'u' and ({{ _key_has_changed(c, fields, row_keys) }}),
        array(named_struct('op', 'd', 'half', 'out'), named_struct('op', 'u', 'half', 'in')),
        array(named_struct('op', _event_op, 'half', ''))
    )) as _op, _half
{%- endset -%}
{%- endif %}
{{ opened }}
{%- endmacro %}

{#- The row image of an event, and the values of columns that are read more than once. -#}
{% macro _row_image(c, fields, keys, has_two_halves) -%}
    {%- set op = '_op' if has_two_halves else c.op -%}
        {%- if c.form != 'document' -%}
        {{ _of_row(op, _image(c, 'before'), _image(c, 'after'), keys) }} as _row,
        {%- for field in fields if field.read %}
        {%- set cell = '.value' if c.form == 'cells' else '' -%}
        {%- set column = _of_row(op, _column_of_image(c, 'before', field.name) ~ cell,
            _column_of_image(c, 'after', field.name) ~ cell, keys) %}
        {{ field.read | replace(field.image, column, 1) }} as {{ field.read_as }},
        {%- endfor %}
        {%- endif -%}
{%- endmacro %}

{#- What an event has of its row: a delete nothing where there is a key, else what was. -#}
{% macro _of_row(op, before, after, keys) -%}
    {%- if keys -%}
        case when {{ op }} is distinct from 'd' then {{ after }} end
    {%- else -%}
        if({{ op }} = 'd', {{ before }}, {{ after }})
    {%- endif -%}
{%- endmacro %}

{#- The columns of a change log. -#}
{% macro _columns_of_log(of_table, renamed, append) -%}
    {%- set c, fields, keys, columns = of_table.c, of_table.fields, of_table.key, of_table.columns -%}
    {%- set has_two_halves = of_table.has_two_halves -%}
    {%- for field in fields %}
    {{ 'case when array_contains(_omitted, ' ~ literal(field.kept) ~ ') is not true then ' ~ field.row
        ~ ' end' if field.omitted else field.row }} as {{ quoted(field.kept) }},
    {%- endfor %}
    _op as _cdc_op,
    _position as _cdc_position,
    _snapshot not in ('false', '') as _cdc_is_snapshot,
    {{ c.transaction_id }} as _cdc_transaction_id,
    case when _changed_at between -62135596800000 and 253402300799999 then timestamp_millis(_changed_at) end
        as _cdc_changed_at,
    batch as _cdc_batch,
    landed_at as _cdc_landed_at,
    cast({{ append }} as bigint) as _cdc_append,
    {{ 'current_timestamp()' if append else 'cast(null as timestamp)' }} as _cdc_appended_at,
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
    case when _reject_reason is not null then value end as _cdc_value
{%- endmacro %}

{#-
    One record for each column, in the order of the declaration, with what `debezium_type` gives and
    - name, kept: its name in the events and in the lakehouse,
    - type, is_key, is_shard, is_document: what is declared,
    - image, row: its JSON value and its typed value in the query,
    - is_named: whether `image` is computed in a step of its own, because it is long and read more than once,
    - present: an expression that is NULL if the JSON value is null (a variant is not),
    - omitted: the condition that the event has no value for it; none if that is impossible.
-#}
{% macro _fields(c, keys, columns, kept) -%}
    {%- set found = [] -%}
    {%- for name, type in columns.items() -%}
        {%- set is_key, is_shard, read_as = name in keys, type == 'shard', '_read_' ~ loop.index -%}
        {%- set plain = debezium_type(type, 'x') -%}
        {%- set json, is_plain = plain.json, plain.sql == 'x' and is_key -%}
        {%- set is_named = c.form == 'document' or (is_key or is_shard) and not is_plain -%}
        {%- set image = '_image_' ~ loop.index if is_named or is_key or is_shard else '_row.' ~ quoted(name)
            ~ ('.value' if c.form == 'cells' else '') -%}
        {%- set field = dict(
            debezium_type(type, image, none if is_named else read_as,
                _written_type(name) if ' | ' in type else 'null'),
            name=name, kept=kept[loop.index0], type=type, is_key=is_key, is_shard=is_shard,
            is_document=_is_whole_document(type), is_named=is_named,
            image=image, row='_row_' ~ loop.index, read_as=read_as
        ) -%}
        {%- set present = read_as if field.read else "variant_get(" ~ image ~ ", '$', 'string')" if json == 'variant'
            and not is_named else image -%}
        {%- do field.update({'present': present, 'text': field.row if field.text and is_key else field.text}) -%}
        {%- do field.update({'omitted': none if is_key else _omitted_condition(c, field)}) -%}
        {%- do found.append(field) -%}
    {%- endfor -%}
    {{ return(found) }}
{%- endmacro %}

{#- The condition under which an event leaves out the value of a column, or none; a key is always there. -#}
{% macro _omitted_condition(c, field) -%}
    {%- if c.left_out == 'placeholder' -%}
        {{ return(field.omitted) }}
    {%- elif c.left_out == 'unset' -%}
        {%- set cell = '_row.' ~ quoted(field.name) -%}
        {{ return("_op <> 'd' and (" ~ cell ~ " is null or not coalesce(" ~ cell ~ ".`set`, true))") }}
    {%- elif c.left_out == 'listed' -%}
        {%- set listed = "_op <> 'd' and " ~ field.present ~ " is null and array_contains(_left_out, "
            ~ literal(field.name) ~ ")" -%}
        {{ return(field.omitted ~ ' or ' ~ listed if field.omitted else listed) }}
    {%- elif c.left_out == 'untouched' -%}
        {{ return('_update.touched is not null'
            ~ ('' if field.is_document else ' and not array_contains(_update.touched, ' ~ literal(field.name) ~ ')')) }}
    {%- else -%}
        {{ return(none) }}
    {%- endif -%}
{%- endmacro %}

{#- The columns with unavailable values of a change; NULL if there are none, as nearly always. -#}
{% macro _omitted_columns(fields) -%}
    {%- set conditions, names = [], [] -%}
    {%- for field in fields if field.omitted -%}
        {%- do conditions.append(field.omitted) -%}
        {%- do names.append('case when ' ~ field.omitted ~ ' then ' ~ literal(field.kept) ~ ' end') -%}
    {%- endfor -%}
    {#- `array_compact` does the same by a lambda, and Spark compiles no projection that has one. #}
    {{ 'case when ' ~ conditions | join(' or ') ~ ' then array_except(array(' ~ names | join(', ')
        ~ '), array(cast(null as string))) end' if names else 'cast(null as array<string>)' }}
{%- endmacro %}
