{#- Vitess: docs/connectors/vitess.md. -#}
{% macro vitess_connector() -%}
    {{ return(envelope_capabilities({
        'source': ['keyspace'],
        'fields': [
            'transaction: struct<id: string, transaction_epoch: string, transaction_rank: string, total_order: string>',
        ],
        'position': _vitess_position(),
        'table': ['_event.payload.source.keyspace', '_event.payload.source.table'],
        'left_out': 'placeholder',
    })) }}
{%- endmacro %}

{#-
    The rank of a transaction in its shard, which the connector gives where it is asked to; without it there is the
    topic's order only: a VGTID is a set, which cannot be compared as text.
-#}
{% macro _vitess_position() -%}
    {%- set transaction = '_event.payload.transaction' -%}
    if({{ transaction }}.transaction_rank is null, '', concat(
        {{ sortable_number('try_cast(' ~ transaction ~ '.transaction_epoch as decimal(20, 0))', 20) }},
        {{ sortable_number('try_cast(' ~ transaction ~ '.transaction_rank as decimal(38, 0))', 38) }},
        {{ sortable_number('try_cast(' ~ transaction ~ '.total_order as decimal(20, 0))', 20) }}
    ))
{%- endmacro %}
