{#- What a record is. -#}
{% macro _kind(c, table, keys, columns) -%}
    case
        {%- if not (c.tombstone_deletes and keys) %}
        when _event.payload is null and (
            coalesce(trim(value), '') = ''
            or _end is not null and _corrupt is null
            and (contains(value, '"payload"'){{ ' and ' ~ _is_wrapper() if c.form == 'flat' }} or trim(value) = 'null')
        ) then 'tombstone'
        {%- endif %}
        {{ c.kind }}
        {%- if c.form == 'flat' %}
        {{ _flat_kinds(columns) }}
        {%- else %}
        {#- What is no whole JSON may seem to have members of a column. #}
        when _op = 'm' and _end is not null then 'message'
        when _op is null and _event.payload.status in ('BEGIN', 'END') and _end is not null then 'transaction'
        when _op is null and coalesce(_event.payload.ddl, _event.payload.tableChanges,
            _event.payload.historyRecord) is not null and _end is not null then 'ddl'
        when _op is null and _event.payload.aggregate_type is not null and _event.payload.source is null
            and _end is not null then 'notification'
        when _op is null and _event.payload.ts_ms is not null and _event.payload.source is null
            and {{ _has_no_members_but(_members_of_a_heartbeat()) }} then 'heartbeat'
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
    Records among flattened rows that are none. Rows may have any columns, so such a record is recognised only by its
    members, all of them, and not where one of them is a column of the table; `id` may be.
-#}
{% macro _flat_kinds(columns) -%}
    {%- for told_by, marker in _flat_markers(columns).items() %}
        when _event.payload.{{ told_by }} {{ marker.value }} and {{ _has_members(marker.members, marker.further) }}
            then '{{ marker.kind }}'
    {%- endfor -%}
{%- endmacro %}

{#-
    The member that shows that a record is no row → the members that it has, those that it may have, and what it is
    then.
-#}
{% macro _flat_markers(columns) -%}
    {%- set times = ['ts_ms', 'ts_us', 'ts_ns'] -%}
    {%- set of_ddl = ['source', 'databaseName', 'ddl', 'tableChanges'] -%}
    {%- set markers = {
        'status': {'kind': 'transaction', 'members': ['status', 'id', 'event_count', 'data_collections'],
            'value': "in ('BEGIN', 'END')"},
        'tableChanges': {'kind': 'ddl', 'members': of_ddl, 'further': ['schemaName', 'position'] + times},
        'historyRecord': {'kind': 'ddl', 'members': ['source', 'historyRecord']},
        'aggregate_type': {'kind': 'notification', 'members': ['id', 'aggregate_type', 'type', 'additional_data'],
            'further': ['timestamp']},
        'message': {'kind': 'message', 'members': ['op', 'source', 'message'], 'further': times + ['transaction']},
        'ts_ms': {'kind': 'heartbeat', 'members': ['ts_ms'], 'further': times + ['vgtid']},
    } -%}
    {%- set declared = columns.keys() | map('lower') | list -%}
    {%- set found = {} -%}
    {%- for told_by, marker in markers.items() -%}
        {%- set marker = dict({'further': times, 'value': 'is not null'}, **marker) -%}
        {%- if (marker.members + marker.further) | map('lower') | reject('equalto', 'id') | select('in',
            declared) | list == [] -%}
            {%- do found.update({told_by: marker}) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(found) }}
{%- endmacro %}

{#- Whether a value has these members, and at most those of `further` besides. -#}
{% macro _has_members(members, further) -%}
    size(array_except(array({{ _literals(members) }}), {{ _members() }})) = 0
        and {{ _has_no_members_but(members + further) }}
{%- endmacro %}

{#-
    Whether a value has only these members. Not by a pattern: Java's patterns overflow the stack on a text of some
    kilobytes.
-#}
{% macro _has_no_members_but(members) -%}
    size(array_except({{ _members() }}, array({{ _literals(members) }}))) = 0
{%- endmacro %}

{#- The members of a heartbeat. Vitess adds its position (`vgtid`), which grows with the number of shards. -#}
{% macro _members_of_a_heartbeat() -%}
    {{ return(['ts_ms', 'ts_us', 'ts_ns', 'vgtid']) }}
{%- endmacro %}

{#- The names of a value's members, also of those that are null. -#}
{% macro _members() -%}
    json_object_keys(if({{ _is_wrapper() }}, get_json_object(value, '$.payload'), value))
{%- endmacro %}

{#- An event of another connector does not name this one's tables: it is rejected, not taken for another table's. -#}
{% macro _is_of_other_connector(c) -%}
    _event.payload.source.connector in ({{ _literals(c.not_from) }})
{%- endmacro %}

{#- Why a record cannot be used, or NULL. The reasons are a closed list: docs/rejects.md. -#}
{% macro _reject_reason(c, fields, columns, keys, row_keys) -%}
    {%- set names = columns.keys() | list -%}
    {%- set lacks_key = fields | selectattr('is_key') | map(attribute='row') | join(' is null or ') ~ ' is null' -%}
    case
        when _kind in ('tombstone', 'message', 'transaction', 'ddl', 'heartbeat', 'notification', 'other_table')
            then cast(null as string)
        {%- if c.tombstone_deletes and keys %}
        when coalesce(trim(left(value, 64)), '') = '' and _event.payload is null
            then case when {{ lacks_key }} then 'no_key' end
        {%- endif %}
        when _end is null{{ ' or _document._end is null' if c.form == 'document' }} then 'invalid_json'
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
        {%- if fields | selectattr('is_shard') | list %}
        when _op = 't' then 'truncate_of_a_shard'
        {%- endif %}
        when _op = 't' then {{ 'cast(null as string)' if c.truncate_has_key
            else "case when key is not null then 'truncate_with_key' end" }}
        {%- if _guarded_columns(c, fields) %}
        when _undeclared is not null and _event.payload is not null then 'undeclared_schema' || ': ' || _undeclared
        {%- endif %}
        when _corrupt is not null{{ ' or _document._corrupt is not null' if c.form == 'document' }}
            then 'value_of_wrong_type'
        when _op <> 'd' and {% if c.form == 'document' %}_document.after{% else %}_row{% endif %} is null
            then 'no_after_image'
        {%- if c.form == 'document' %}
        when {{ _cannot_be_patched(keys, columns) }}
            then 'partial_row' || {{ literal(': ' ~ c.field_update.otherwise) }}
        {%- endif %}
        {%- if keys %}
        when {{ lacks_key }} then 'no_key'
        {%- endif %}
        {%- set others = fields | rejectattr('is_key') | map(attribute='present') | list %}
        {%- if c.null_is_ambiguous and others %}
        when _op = 'u' and {{ _image(c, 'before') }} is null and ({{ others | join(' is null or ') }} is null)
            then 'null_or_unchanged' || ': REPLICA IDENTITY has to be FULL, or the plugin yboutput'
        {%- endif %}
        {%- set collections = _collections(fields) if c.updates_parts_of_collections else [] %}
        {%- if collections %}
        when _op = 'u' and ({{ collections | join(' or ') }})
            then 'collection_in_update' || ': the column has to be frozen'
        {%- endif %}
        {%- if keys and c.splits_key_changes and c.form != 'document' and _image(c, 'before') != _image(c, 'after') %}
        when _op = 'u' and ({{ _key_has_changed(c, fields, row_keys) }}) then 'key_changed_in_update'
        {%- endif %}
        {%- set inexact = fields | selectattr('can_fail') | list %}
        {%- set texts = fields | selectattr('text') | list %}
        {%- if inexact + texts %}
        else 'value_not_exact: ' || nullif(concat_ws(', ', {{ _inexact_columns(inexact, texts, fields) }}), '')
        {%- endif %}
    end
{%- endmacro %}

{#- For each column that may be a collection, the condition that an event has one for it. In a key they are whole. -#}
{% macro _collections(fields) -%}
    {%- set found = [] -%}
    {%- for field in fields if not field.is_key -%}
        {%- if field.json.startswith('array<') or field.json.startswith('map<') -%}
            {%- do found.append(field.image ~ ' is not null') -%}
        {%- elif field.type == 'any' -%}
            {%- do found.append("schema_of_variant(" ~ field.image ~ ") rlike '^(ARRAY|OBJECT)'") -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(found) }}
{%- endmacro %}

{#-
    The names of the columns whose values are not exact, each NULL for a record whose value is: it has no typed value,
    or is a text that the event does not have in quotes. Spark gives a JSON number or `true` as a text if a text is
    declared.
-#}
{% macro _inexact_columns(inexact, texts, fields) -%}
    {%- set names = [] -%}
    {%- for field in fields if field in inexact + texts -%}
        {%- set conditions = [] -%}
        {%- if field.can_fail -%}
            {%- set unread = field.row ~ ' is null and ' ~ field.present ~ ' is not null' -%}
            {%- do conditions.append(unread
                ~ (' and not coalesce(array_contains(_omitted, ' ~ literal(field.kept)
                ~ '), false)' if field.omitted else '')) -%}
        {%- endif -%}
        {%- if field.text -%}
            {#-
                Digits and a minus sign sort before letters: a comparison of bytes, where a pattern would have each text
                copied.
            #}
            {%- set may_be = field.text ~ " < ':'" -%}
            {%- set may_be = '(' ~ may_be ~ ' or ' ~ field.text
                ~ " = 'true')" if 'true' in field.no_text else may_be -%}
            {%- do conditions.append(
                may_be ~ " and _op <> 'd' and " ~ field.text ~ " rlike '" ~ field.no_text
                    ~ "' and not contains(value, concat('\"', " ~ field.text ~ ", '\"'))"
            ) -%}
        {%- endif -%}
        {%- do names.append('case when ' ~ conditions | join(' or ') ~ ' then ' ~ literal(field.kept) ~ ' end') -%}
    {%- endfor -%}
    {{ names | join(', ') }}
{%- endmacro %}
