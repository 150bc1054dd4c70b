{#-
    The DDL of a system as its records tell it: one row per record and changed table. `order_key` sorts them like the
    source did.

    Debezium has three shapes of it: events of the schema-change topic, records of the schema history, and schema
    history as a text in `historyRecord` (Flink CDC, Debezium 1.x). Where `tableChanges` is empty, as for DROP TABLE,
    kind and table come from the statement.
-#}
{% macro debezium_ddl_history(events) -%}
    {%- set statement = literal(_ddl_statement()) -%}
with {{ _ddl_records(events) }},

changes as (

    select
        records.*,
        coalesce(record.position, record.source) as place,
        number,
        change,
        coalesce(
            element_at(regexp_extract_all(change.id, '"((?:[^"]|"")*)"', 1), -1),
            if(lower(regexp_extract(record.ddl, {{ statement }}, 2)) = 'table', {{ _ddl_object_name() }}, null)
        ) as table_name
    from records lateral view outer posexplode(record.tableChanges) as number, change
    where record.ddl is not null or record.tableChanges is not null

)

select
    coalesce(record.source['server'], record.source['name']) as server,
    record.databaseName as database_name,
    record.schemaName as schema_name,
    table_name,
    {{ _renamed_from(statement) }} as renamed_from,
    upper(coalesce(
        nullif(
            trim(concat_ws(' ', regexp_extract(record.ddl, {{ statement }}, 1),
                regexp_extract(record.ddl, {{ statement }}, 2))), ''
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

{#- The records that hold DDL, parsed: `record` has the members of whatever shape it is. -#}
{% macro _ddl_records(events) -%}
{%- set members = _ddl_members() -%}
parsed as (

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

)
{%- endmacro %}

{% macro _ddl_members() -%}
    databaseName string, schemaName string, ddl string, source map<string, string>, position map<string, string>,
    tableChanges array<struct<type string, id string, comment string, table struct<defaultCharsetName string,
    primaryKeyColumnNames array<string>, comment string, attributes array<map<string, string>>,
        columns array<struct<name string,
    jdbcType int, nativeType int, typeName string, typeExpression string, charsetName string, length int, scale int,
        position int,
    optional boolean, autoIncremented boolean, generated boolean, hasDefaultValue boolean,
        defaultValueExpression string,
    enumValues array<string>, comment string>>>>>
{%- endmacro %}

{#- The name that a table had before this statement, else NULL. -#}
{% macro _renamed_from(statement) -%}
    coalesce(
        nullif(regexp_extract(change.id, '"((?:[^"]|"")*)"\\s*,', 1), ''),
        case lower(regexp_extract(record.ddl, {{ statement }}, 1))
            when 'alter' then if(
                record.ddl rlike '(?is)\\brename\\s+(?!column\\b|index\\b|key\\b|constraint\\b)',
                nullif({{ _ddl_object_name() }}, table_name), null
            )
            when 'rename'
                then get(filter({{ _renamed_tables('record.ddl') }}, pair -> pair.new = table_name), 0).old
        end
    )
{%- endmacro %}

{#- A regular expression of a statement's beginning: its verb and the kind of object. -#}
{% macro _ddl_statement() -%}
    {{ return('(?is)^' ~ leading_comments()
        ~ '(create|alter|drop|rename|truncate)\\s+'
        ~ '(?:(?:or|replace|temporary|unique|fulltext|spatial|online|offline)\\s+)*(\\w+)') }}
{%- endmacro %}

{#- A regular expression of a name in a statement. -#}
{% macro _ddl_name() -%}
    {{ return('(`(?:[^`]|``)+`|"(?:[^"]|"")+"|[^\\s.,`"(;]+)') }}
{%- endmacro %}

{#- The name of the table in `record.ddl`, without its schema. -#}
{% macro _ddl_object_name() -%}
    {%- set name = _ddl_name() -%}
    {%- set object = _ddl_statement()
        ~ '\\s+(?:if\\s+(?:not\\s+)?exists\\s+)?' ~ name ~ '(?:\\s*[.]\\s*' ~ name ~ ')?' -%}
    trim('`"' from coalesce(
        nullif(regexp_extract(record.ddl, {{ literal(object) }}, 4), ''),
        nullif(regexp_extract(record.ddl, {{ literal(object) }}, 3), '')
    ))
{%- endmacro %}

{#- A regular expression of what may stand before a statement. -#}
{% macro leading_comments() -%}
    {{ return('(?:\\s|/[*].*?[*]/|--[^\\n]*\\n|#[^\\n]*\\n)*') }}
{%- endmacro %}

{#- The pairs of `old` and `new` names of tables in a statement RENAME TABLE a TO b, c TO d. -#}
{% macro _renamed_tables(ddl) -%}
    {%- set name = _ddl_name() -%}
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
