{#-
    MongoDB: docs/connectors/mongodb.md. Images are texts of extended JSON, and an update may carry, instead of the
    document, only the fields that it touched.
-#}
{% macro mongodb_connector() -%}
    {%- set update = '_event.payload.updateDescription' -%}
    {{ return(envelope_capabilities({
        'form': 'document',
        'source': ['version', 'collection', 'ord', 'lsid', 'txnNumber'],
        'fields': [
            'transaction: struct<id: string>',
            'updateDescription: struct<updatedFields: string, removedFields: array<string>, '
                ~ 'truncatedArrays: array<struct<field: string, size: int>>>',
        ],
        'document_key': ['id', '_id'],
        'field_update': {
            'set': 'case when ' ~ update ~ ' is not null then coalesce(' ~ update ~ ".updatedFields, '{}') end",
            'removed': 'coalesce(' ~ update ~ '.removedFields, array())',
            'truncated': 'coalesce(' ~ update ~ '.truncatedArrays, array())',
            'otherwise': 'capture.mode has to be change_streams_update_full',
        },
        'left_out': 'untouched',
        'position': _mongodb_position(),
        'in_topic_order': "_source_position = repeat('9', 30)",
        'table': ['_event.payload.source.db', '_event.payload.source.collection'],
        'transaction_id': "coalesce(_event.payload.transaction.id, "
            ~ "concat(_event.payload.source.lsid, ':', _event.payload.source.txnNumber))",
        'splits_key_changes': true,
        'reject': "when _op = 't' then 'unknown_operation'",
    })) }}
{%- endmacro %}

{#-
    The cluster time of the change, which orders all operations but those of one transaction. From 3.1 on snapshot rows
    have the time of their reading there, from 3.4 on changes have the server's clock: these events keep the topic's
    order, after those of earlier versions.
-#}
{% macro _mongodb_position() -%}
    {%- set source = '_event.payload.source' -%}
    if(coalesce({{ source }}.version rlike '^(3[.][1-9]|[4-9][.]|[1-9][0-9]+[.])', false), repeat('9', 30), concat(
        {{ let('try_cast(' ~ source ~ '.ts_ms as decimal(20, 0))', 'n', sortable_number('n', 20)) }},
        {{ let('try_cast(' ~ source ~ '.ord as bigint)', 'n', sortable_number('n', 10)) }}
    ))
{%- endmacro %}
