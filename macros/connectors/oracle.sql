{#- Oracle, captured by LogMiner, OpenLogReplicator or XStream: docs/connectors/oracle.md. -#}
{% macro oracle_connector() -%}
    {{ return(envelope_capabilities({
        'source': ['scn', 'commit_scn', 'start_scn', 'txSeq', 'txId', 'rs_id', 'ssn', 'lcr_position'],
        'position': _oracle_position(),
        'passes_keys_on': '_event.payload.source.txId',
        'table': ['_event.payload.source.db', '_event.payload.source.schema', '_event.payload.source.table'],
        'transaction_id': 'coalesce(_event.payload.transaction.id, _event.payload.source.txId)',
        'left_out': 'placeholder',
    })) }}
{%- endmacro %}

{#-
    The commit, then the change inside it. `commit_scn` is the event's own since Debezium 3.1, which also writes
    `start_scn`; before that it is that of some earlier commit, and the change's own number is the order of its row. The
    numbers are compared as numbers. XStream's LCR position begins with its commit; a position of another form than
    Oracle's two is compared with its like only, after every snapshot.
-#}
{% macro _oracle_position() -%}
    {%- set source = '_event.payload.source' -%}
    {%- set commit -%}
        case
            when {{ source }}.lcr_position is null then try_cast(coalesce(
                if({{ source }}.txSeq is not null or {{ source }}.start_scn is not null, {{ source }}.commit_scn, null),
                {{ source }}.scn,
                if({{ is_snapshot_row() }}, '0', null)
            ) as decimal(20, 0))
            when length({{ source }}.lcr_position) = 58
                then try_cast(conv(left({{ source }}.lcr_position, 12), 16, 10) as decimal(20, 0))
            when length({{ source }}.lcr_position) = 66
                then try_cast(conv(left({{ source }}.lcr_position, 16), 16, 10) as decimal(20, 0))
            else cast('99999999999999999999' as decimal(20, 0))
        end
    {%- endset -%}
    {%- set segment -%}
        lpad(translate(replace(lower(trim(coalesce({{ source }}.rs_id, ''))), '0x', ''), '.', ''), 32, '0')
    {%- endset -%}
    concat(
        {{ let(commit, 'n', sortable_number('n', 20)) }},
        case
            when length({{ source }}.lcr_position) <= 66
                then concat('1', rpad(lower({{ source }}.lcr_position), 66, '0'))
            when {{ source }}.lcr_position is not null then null
            when {{ source }}.txSeq is not null
                then concat('1', {{ sortable_number('try_cast(' ~ source ~ '.txSeq as decimal(20, 0))', 20) }})
            else concat(
                '0',
                {{ sortable_number('try_cast(coalesce(' ~ source ~ '.scn, \'0\') as decimal(20, 0))', 20) }},
                {{ segment }},
                {{ sortable_number('coalesce(try_cast(' ~ source ~ '.ssn as decimal(20, 0)), 0)', 20) }}
            )
        end
    )
{%- endmacro %}
