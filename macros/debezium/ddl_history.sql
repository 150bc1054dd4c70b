{#-
    The DDL of a system as its records tell it: one row per record and changed table. `order_key` sorts them like the
    source did.

    Debezium has three shapes of it: events of the schema-change topic, records of the schema history, and schema
    history as a text in `historyRecord` (Flink CDC, Debezium 1.x). Where `tableChanges` is empty, as for DROP TABLE,
    kind and table come from the statement.
-#}
{% macro debezium_ddl_history(events) -%}
    {%- set members -%}
        databaseName string, schemaName string, ddl string, source map<string, string>, position map<string, string>,
        tableChanges array<struct<type string, id string, comment string, table struct<defaultCharsetName string,
        primaryKeyColumnNames array<string>, comment string, attributes array<map<string, string>>,
            columns array<struct<name string,
        jdbcType int, nativeType int, typeName string, typeExpression string, charsetName string, length int, scale int,
            position int,
        optional boolean, autoIncremented boolean, generated boolean, hasDefaultValue boolean,
            defaultValueExpression string,
        enumValues array<string>, comment string>>>>>
    {%- endset -%}
    {%- set name = '(`(?:[^`]|``)+`|"(?:[^"]|"")+"|[^\\s.,`"(;]+)' -%}
    {%- set statement = '(?is)^' ~ leading_comments()
        ~ '(create|alter|drop|rename|truncate)\\s+'
        ~ '(?:(?:or|replace|temporary|unique|fulltext|spatial|online|offline)\\s+)*(\\w+)' -%}
    {%- set object = statement ~ '\\s+(?:if\\s+(?:not\\s+)?exists\\s+)?' ~ name ~ '(?:\\s*[.]\\s*' ~ name ~ ')?' -%}
    {%- set object_name -%}
        trim('`"' from coalesce(
            nullif(regexp_extract(record.ddl, {{ literal(object) }}, 4), ''),
            nullif(regexp_extract(record.ddl, {{ literal(object) }}, 3), '')
        ))
    {%- endset -%}
with parsed as (

    select
        *,
        from_json(value, {{ literal('payload struct<' ~ members ~ ', historyRecord string>, historyRecord string, '
            ~ members) }}) as _json
    from {{ events }}
    where value like '%"ddl"%' or value like '%"tableChanges"%' or value like '%"historyRecord"%'

),

records as (

    select
        topic,
        partition,
        offset,
        file,
        line,
        batch,
        key,
        value,
        coalesce(
            from_json(coalesce(_json.payload.historyRecord, _json.historyRecord), {{ literal(members) }}),
            if(_json.payload.ddl is not null or _json.payload.tableChanges is not null, named_struct(
                'databaseName', _json.payload.databaseName, 'schemaName', _json.payload.schemaName, 'ddl',
                _json.payload.ddl,
                'source', _json.payload.source, 'position', _json.payload.position, 'tableChanges',
                _json.payload.tableChanges
            ), named_struct(
                'databaseName', _json.databaseName, 'schemaName', _json.schemaName, 'ddl', _json.ddl,
                'source', _json.source, 'position', _json.position, 'tableChanges', _json.tableChanges
            ))
        ) as record
    from parsed

),

changes as (

    select
        records.*,
        coalesce(record.position, record.source) as place,
        number,
        change,
        coalesce(
            element_at(regexp_extract_all(change.id, '"((?:[^"]|"")*)"', 1), -1),
            if(lower(regexp_extract(record.ddl, {{ literal(statement) }}, 2)) = 'table', {{ object_name }}, null)
        ) as table_name
    from records lateral view outer posexplode(record.tableChanges) as number, change
    where record.ddl is not null or record.tableChanges is not null

)

select
    coalesce(record.source['server'], record.source['name']) as server,
    record.databaseName as database_name,
    record.schemaName as schema_name,
    table_name,
    coalesce(
        nullif(regexp_extract(change.id, '"((?:[^"]|"")*)"\\s*,', 1), ''),
        case lower(regexp_extract(record.ddl, {{ literal(statement) }}, 1))
            when 'alter' then if(
                record.ddl rlike '(?is)\\brename\\s+(?!column\\b|index\\b|key\\b|constraint\\b)',
                nullif({{ object_name }}, table_name), null
            )
            when 'rename'
                then get(filter({{ _renamed_tables('record.ddl', name) }}, pair -> pair.new = table_name), 0).old
        end
    ) as renamed_from,
    upper(coalesce(
        nullif(
            trim(concat_ws(' ', regexp_extract(record.ddl, {{ literal(statement) }}, 1),
                regexp_extract(record.ddl, {{ literal(statement) }}, 2))), ''
        ),
        concat(change.type, ' TABLE')
    )) as kind,
    record.ddl as ddl,
    change.type as table_change,
    change.table.primaryKeyColumnNames as primary_key,
    change.table.columns as columns,
    coalesce(change.table.comment, change.comment) as table_comment,
    change.table.defaultCharsetName as default_charset,
    change.table.attributes as attributes,
    place as position,
    concat(
        {{ _ddl_position() }}, '.',
        coalesce(
            concat({{ sortable_number('partition', 10) }}, '.', {{ sortable_number('offset', 20) }}),
            concat(file, ':', {{ sortable_number('line', 12) }})
        ), '.', {{ sortable_number('coalesce(number, 0)', 10) }}
    ) as order_key,
    coalesce(concat(topic, '/', partition, '/', offset), concat(file, ':', line)) as event_id,
    batch
from changes

{%- endmacro %}


{#- A regular expression of what may stand before a statement. -#}
{% macro leading_comments() -%}
    {{ return('(?:\\s|/[*].*?[*]/|--[^\\n]*\\n|#[^\\n]*\\n)*') }}
{%- endmacro %}


{#- The pairs of `old` and `new` names of tables in a statement RENAME TABLE a TO b, c TO d. -#}
{% macro _renamed_tables(ddl, name) -%}
    {%- set table = name ~ '(?:\\s*[.]\\s*' ~ name ~ ')?' -%}
    {%- set pair = literal('(?is)' ~ table ~ '(?:\\s+wait\\s+\\d+|\\s+nowait)?\\s+to\\s+' ~ table) -%}
    transform(
        arrays_zip(
            {%- for part in range(1, 5) %}
            regexp_extract_all({{ ddl }}, {{ pair }}, {{ part }}){{ ',' if not loop.last }}
            {%- endfor %}
        ),
        n -> named_struct(
            'old', trim('`"' from coalesce(nullif(n.`1`, ''), n.`0`)), 'new',
            trim('`"' from coalesce(nullif(n.`3`, ''), n.`2`))
        )
    )
{%- endmacro %}


{#-
    The place in the source's log as text that sorts in its order: number of the binlog's file and position in it, LSNs,
    SCN, or TSO of the commit. '' where the record has none of them, as in a snapshot: these come first.
-#}
{% macro _ddl_position() -%}
    {%- set number = "try_cast(place['{}'] as decimal(38, 0))" -%}
    coalesce(case
        when place['file'] rlike '[.][0-9]+$' then concat(
            {{ sortable_number("try_cast(regexp_extract(place['file'], '[.]([0-9]+)$', 1) as decimal(38, 0))", 20) }},
            {{ sortable_number(number.format('pos'), 20) }}
        )
        when contains(place['commit_lsn'], ':') then concat(
            {{ sortable_lsn("place['commit_lsn']", _lsn_zero()) }},
                {{ sortable_lsn("place['change_lsn']", _lsn_zero()) }}
        )
        when place['commit_lsn'] is not null then concat(
            {{ sortable_number(number.format('commit_lsn'), 20) }},
            {{ sortable_number('coalesce(' ~ number.format('change_lsn') ~ ', 0)', 20) }}
        )
        when place['commit_ts'] is not null then {{ sortable_number(number.format('commit_ts'), 20) }}
        else {{ sortable_number(number.format('scn'), 38) }}
    end, '')
{%- endmacro %}


{#-
    The transactions that the connector has told of (`provide.transaction.metadata`): how many events each of them
    has, and how many of these have landed.
-#}
{% macro debezium_transactions(events) -%}
    {%- set members -%}
        transaction struct<id: string, total_order: string>, op string, before string, after string,
            updateDescription string,
        source map<string, string>
    {%- endset -%}
with markers as (

    select
        batch,
        coalesce(marker.payload.id, marker.id) as id,
        coalesce(marker.payload.status, marker.status) as status,
        try_cast(coalesce(marker.payload.event_count, marker.event_count) as bigint) as event_count,
        try_cast(coalesce(marker.payload.ts_ms, marker.ts_ms) as bigint) as ts_ms
    from (
        select
            batch,
            from_json(value, 'payload struct<id: string, status: string, event_count: string, ts_ms: string>,
                id string, status string, event_count string, ts_ms string') as marker
        from {{ events }}
        where value like '%"BEGIN"%' or value like '%"END"%'
    ) as records

),

transactions as (

    select
        {{ _transaction('id') }} as transaction_id,
        bool_or(status = 'BEGIN') as has_begun,
        bool_or(status = 'END') as has_ended,
        max(event_count) filter (where status = 'END') as expected_events,
        timestamp_millis(max(ts_ms) filter (where status = 'END')) as ended_at
    from markers
    where id is not null and status in ('BEGIN', 'END')
    group by {{ _transaction('id') }}

),

landed as (

    {#-
        An event that is delivered again has other times, and in a transaction that was cut another number; equal rows
        of a table without a key may share everything but the number.
    #}
    select
        {{ _transaction('transaction.id') }} as transaction_id,
        greatest(count(distinct transaction.total_order), count(distinct struct(
            topic, key, op, before, after, updateDescription,
            to_json(map_filter(source, (name, text) -> not (
                name in ('version', 'ts_ms', 'ts_us', 'ts_ns', 'xmin', 'read_at_timestamp', 'low_watermark')
                or name = 'sequence' and startswith(text, '[')
            )))
        ))) as landed_events
    from (
        select topic, key, inline(array(if(event.payload is null, struct(event.* except (payload)), event.payload)))
        from (
            select topic, key, from_json(value, {{ literal('payload struct<' ~ members ~ '>, ' ~ members) }}) as event
            from {{ events }}
            where value like '%"total_order":%'
        ) as records
    ) as numbered
    where transaction.id is not null
    group by {{ _transaction('transaction.id') }}

)

select
    transactions.*,
    coalesce(landed.landed_events, 0) as landed_events
from transactions left join landed on transactions.transaction_id = landed.transaction_id

{%- endmacro %}


{#-
    PostgreSQL writes <transaction>:<position>, and BEGIN, END and the events of a transaction differ in the position.
-#}
{% macro _transaction(id) -%}
    if({{ id }} rlike '^[0-9]+:[0-9]+$', substring_index({{ id }}, ':', 1), {{ id }})
{%- endmacro %}
