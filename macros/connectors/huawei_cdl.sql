{#-
    Huawei MRS CDL, both of its formats: CDL JSON (`message_version` 1.0), which has no `op` and no `source`, and its
    Debezium JSON (2.0). docs/connectors/huawei_cdl.md.
-#}
{% macro huawei_cdl_connector() -%}
    {%- set transaction_id = 'coalesce(_event.payload.source.txId, ' ~ _huawei_cdl_property('txid') ~ ')' -%}
    {{ return(envelope_capabilities({
        'source': ['lsn', 'txId'],
        'fields': [
            'DATA_STORE: string', 'SEG_OWNER: string', 'TABLE_NAME: string', '`TIMESTAMP`: string', 'OPERATION: string',
            'LOB_COLUMNS: string', 'message_version: string', 'message_type: string', 'isHeartbeat: string',
            'transaction: struct<properties: array<struct<name: string, value: string>>>',
        ],
        'after': ['after', 'data'],
        'op': _huawei_cdl_op(),
        'position': _huawei_cdl_position(),
        'table': [
            'coalesce(_event.payload.SEG_OWNER, _event.payload.source.schema)',
            'coalesce(_event.payload.TABLE_NAME, _event.payload.source.table)',
        ],
        'changed_at': 'coalesce(_event.payload.`TIMESTAMP`, _event.payload.source.ts_ms, _event.payload.ts_ms)',
        'transaction_id': transaction_id,
        'passes_keys_on': 'if(coalesce(_event.payload.source.lsn, ' ~ _huawei_cdl_property('lsn') ~ ') is not null, '
            ~ transaction_id ~ ', null)',
        'key': 'unique',
        'left_out': 'listed',
        'left_out_columns': "array_remove(split(_event.payload.LOB_COLUMNS, '[^\\\\p{L}\\\\p{N}_$#]+'), '')",
        'kind': _huawei_cdl_kind(),
        'reject': "when _event.payload.message_version not in ('1.0', '2.0') or _event.payload.message_type <> '0' "
            ~ "then 'unknown_message'",
    })) }}
{%- endmacro %}

{#- CDL JSON spells the operation out; one that is not documented stays, which rejects the record. -#}
{% macro _huawei_cdl_op() -%}
    coalesce(
        lower(_event.payload.op),
        case upper(_event.payload.OPERATION)
            when 'INSERT' then 'c' when 'UPDATE' then 'u' when 'DELETE' then 'd' else lower(_event.payload.OPERATION)
        end
    )
{%- endmacro %}

{#- A property of CDL JSON's `transaction`: the element of that name, wherever it stands. -#}
{% macro _huawei_cdl_property(name) -%}
    get(filter(_event.payload.transaction.properties, p -> lower(p.name) = '{{ name }}'), 0).value
{%- endmacro %}

{#-
    `lsn`, compared as a number. Stores other than PostgreSQL and openGauss are not documented to have one: where theirs
    have none, the time of the change stands in its place, and the order of the topic decides inside a millisecond.
-#}
{% macro _huawei_cdl_position() -%}
    {%- set lsn = 'try_cast(coalesce(_event.payload.source.lsn, ' ~ _huawei_cdl_property('lsn')
        ~ ') as decimal(20, 0))' -%}
    if(
        coalesce(upper(_event.payload.DATA_STORE), 'POSTGRES') rlike 'POSTGRES|GAUSS'
            or {{ _huawei_cdl_property('lsn') }} is not null,
        concat({{ let(lsn, 'n', sortable_number('if(n < 0, 0, n)', 20)) }}, '00000000000000000000'),
        concat('00000000000000000000',
            {{ let('try_cast(_event.payload.`TIMESTAMP` as decimal(20, 0))', 'n', sortable_number('n', 20)) }})
    )
{%- endmacro %}

{#-
    A heartbeat is a record without any row data: `HEARTBEAT_IDENTIFIER` is filled in ordinary rows too. A truncate has
    none either, nor has a delete that at most the Kafka key names; these must not be lost as one.
-#}
{% macro _huawei_cdl_kind() -%}
    when _event.payload.isHeartbeat = 'true' then 'heartbeat'
    when _event.payload.message_version is not null and _corrupt is null
        and coalesce(_event.payload.after, _event.payload.data) is null and _event.payload.before is null
        and _event.payload.`unique` is null and coalesce(_op, '') not in ('t', 'm', 'd')
        and not startswith(coalesce(_op, ''), 'truncate')
        then 'heartbeat'
{%- endmacro %}

{#-
    The same of a record of a topic that no model reads. What is no heartbeat's is read only where the format's own
    member is there.
-#}
{% macro _huawei_cdl_is_heartbeat() -%}
    {%- set members = 'after string, data string, before string, `unique` string' -%}
    {%- set images -%}
        coalesce(images.payload.after, images.payload.data, images.payload.before, images.payload.`unique`,
                 images.after, images.data, images.before, images.`unique`)
    {%- endset -%}
    {%- set operation = 'coalesce(lower(coalesce(' ~ _event_member('op') ~ ', ' ~ _event_member('OPERATION')
        ~ ")), '')" -%}
    {{ _event_member('message_version') }} is not null
        and {{ operation }} not in ('t', 'm', 'd', 'delete') and not startswith({{ operation }}, 'truncate')
        and {{ let("from_json(value, '" ~ 'payload struct<' ~ members ~ '>, ' ~ members ~ "')", 'images',
        images ~ ' is null') }}
{%- endmacro %}
