{#-
    A column whose type in the source changed: `A | B`. The schema block of each event says which of the types its value
    has (`written`, an expression); the column has the narrowest type that holds both. Without a schema block that says
    one of them there is no value. `scripts/debezium_types.py` says which types can stand together.
-#}
{% macro type_of_several(types, value, written) -%}
    {%- set spark, text = _type_that_holds(types), "variant_get(" ~ value ~ ", '$', 'string')" -%}
    {%- set sql -%}
        case
        {%- for type in types %}
            {%- set others = _own_kinds(types | reject('eq', type)) %}
            {%- set others = others | reject('eq', 'int64' if type == 'uint64') | list %}
            {%- set kinds = kinds_read_as(type) | reject('in', others) | list %}
            {%- set json = debezium_type(type, 'x').json %}
            {%- set plain = value if json == 'variant' else 'try_cast(' ~ text ~ ' as ' ~ json ~ ')' %}
            {%- set typed = debezium_type(type, plain)['sql'] %}
            {#- dbt-spark turns ANSI off, and Spark then prints a small decimal with an exponent. #}
            {%- if spark == 'string' and type.startswith('Decimal') %}
                {%- set typed = let('cast(' ~ typed ~ ' as string)', 't', _decimal_of_text('t', 39, 0)) %}
            {%- endif %}
            {%- set is_whole = json in ('smallint', 'int', 'bigint') and spark == 'double' %}
            when {{ written }} in ({{ _literals(kinds) }})
                {{- " and schema_of_variant(" ~ value ~ ") = 'STRING'" if type in _text_types() }}
                {{- ' and ' ~ plain ~ ' between -9007199254740992 and 9007199254740992' if is_whole }}
                then cast({{ typed }} as {{ spark }})
        {%- endfor %}
        end
    {%- endset -%}
    {{ return({'json': 'variant', 'sql': sql, 'can_fail': true, 'omitted': is_placeholder(text)}) }}
{%- endmacro %}

{#- The types of a schema block that are these types, not only read alike. -#}
{% macro _own_kinds(types) -%}
    {%- set found = [] -%}
    {%- for type in types -%}
        {%- set kinds = kinds_read_as(type) -%}
        {%- do found.extend(kinds if kinds[0] == 'int8' else kinds[:1]) -%}
    {%- endfor -%}
    {{ return(found) }}
{%- endmacro %}

{#- The narrowest Spark type that holds values of all these types, as the source converts them; `held_as` in Python. -#}
{% macro _type_that_holds(types) -%}
    {%- set names, sizes, whole = [], namespace(scale=0, digits=0), ['int16', 'int32', 'int64'] -%}
    {%- for type in types -%} {%- do names.append(type.split('(')[0]) -%} {%- endfor -%}
    {%- set texts = _text_types() | reject('in', ['Interval', 'ZonedTime']) | list -%}
    {%- if not names | reject('in', ['Date', 'Timestamp', 'MicroTimestamp', 'NanoTimestamp']) | list -%}
        {{ return('timestamp_ntz') }}
    {%- elif not names | reject('in', ['Time', 'MicroTime', 'NanoTime']) | list -%} {{ return('string') }}
    {%- elif names in (['double', 'float'], ['float', 'double'])
        or 'double' in names and not names | reject('in', whole + ['double']) | list -%}
        {{ return('double') }}
    {%- elif names | reject('in', texts + whole + ['uint64', 'Decimal']) | list -%}
        {{ exceptions.raise_compiler_error('model ' ~ model.name ~ ': no type holds the values of '
            ~ types | join(' and of ') ~ '. Declare one: docs/operating.md#when-a-column-changes-its-type') }}
    {%- elif names | select('in', texts) | list -%} {{ return('string') }}
    {%- endif -%}
    {%- for type in types if '(' in type -%}
        {%- set sizes.scale = [sizes.scale, type[8:-1].split(',')[1] | int] | max(case_sensitive=true) -%}
    {%- endfor -%}
    {%- for type in types -%}
        {%- set numbers = type[8:-1].split(',') if '(' in type else [] -%}
        {%- set digits = numbers[0] | int - numbers[1] | int if numbers
            else {'int16': 5, 'int32': 10, 'int64': 19, 'uint64': 20}[type] -%}
        {%- set sizes.digits = [sizes.digits, digits] | max(case_sensitive=true) -%}
    {%- endfor -%}
    {%- set digits = sizes.digits + sizes.scale -%}
    {{ return('decimal(' ~ digits ~ ', ' ~ sizes.scale ~ ')' if digits <= 38 else 'string') }}
{%- endmacro %}

{#- The types whose values are a text in JSON, and stay that text. -#}
{% macro _text_types() -%}
    {{ return(['string', 'Enum', 'EnumSet', 'Json', 'Xml', 'Uuid', 'Ltree', 'TsVector', 'Interval', 'ZonedTime']) }}
{%- endmacro %}

{#- The types of a schema block, as `_type_in_schema` has them, whose values are read right as a declared type. -#}
{% macro kinds_read_as(type) -%}
    {%- set name, integers = type.split('(')[0], ['int8', 'int16', 'int32', 'int64', 'int64 signed'] -%}
    {{ return(
        integers if name in integers + ['Year', 'MicroDuration', 'NanoDuration']
        else ['string'] if name in _text_types() + ['bytes_url', 'bytes_hex']
        else ['uint64', 'int64'] if name == 'uint64'
        else ['float', 'int8', 'int16'] if name == 'float'
        else ['double', 'int8', 'int16', 'int32'] if name == 'double'
        else ['double', 'float'] + integers if name == 'number'
        else ['Decimal ' ~ (type[8:-1].split(',')[1] | trim), 'double'] + integers if name == 'Decimal'
        else ['string', 'double'] if name == 'DecimalText'
        else ['Timestamp', 'string'] if name == 'TimestampText'
        else ['ZonedTimestamp', 'string'] if name == 'ZonedTimestamp'
        else [name]
    ) }}
{%- endmacro %}

{#- The columns in the schema block of a value, as an array of structs; NULL where there is no block of a row. -#}
{% macro _fields_of_schema(c) -%}
    {%- set field = 'field string, type string, name string, parameters map<string, string>' -%}
    {%- set row = 'fields array<struct<' ~ field ~ '>>' -%}
    {%- set block = row if c.form == 'flat' else 'fields array<struct<field string, ' ~ row ~ '>>' -%}
    {%- set parsed = "from_json(value, 'schema struct<" ~ block
        ~ ">', map('maxStringLen', '2147483647')).schema.fields" -%}
    {{ return(parsed if c.form == 'flat'
        else 'get(filter(' ~ parsed ~ ', i -> i.field in (' ~ _literals(c.after) ~ ')), 0).fields') }}
{%- endmacro %}

{#-
    The type that a schema block gives a column `f`, that of `debezium_type` without parameters but the scale of a
    decimal; `string` of all texts that stay as they are.
-#}
{% macro _type_in_schema(c) -%}
    {%- set texts = 'ZonedTimestamp|Iso[A-Z][a-z]+' -%}
    {%- set encoded = 'Date|(Micro|Nano)?Time(stamp)?|VariableScaleDecimal|Point|Geo[a-z]+|[A-Z][a-z]+Vector|Bits|'
        ~ texts -%}
    {%- set precision, scale = "f.parameters['connect.decimal.precision']", "coalesce(f.parameters['scale'], '0')" -%}
    {%- if c.greatest_scale -%}
        {%- set scale = 'if(try_cast(' ~ scale ~ ' as int) > ' ~ c.greatest_scale ~ ' and try_cast(' ~ precision
            ~ ' as int) <= ' ~ c.greatest_scale ~ ', ' ~ precision ~ ', ' ~ scale ~ ')' -%}
    {%- endif -%}
        case
            when f.type = 'string' and not coalesce(f.name, '') rlike '(^|[.])({{ texts }})$' then 'string'
            when f.name rlike '(^|[.])Decimal$' or f.type in ('double', 'float64') and f.name rlike '(^|[.])decimal$'
                then concat('Decimal ', {{ scale }})
            when f.name rlike '(^|[.])({{ encoded }})$'
                then substring_index(f.name, '.', -1)
            when f.type = 'int64' and upper(f.parameters['__debezium.source.column.type']) like '%BIGINT%UNSIGNED%'
                then 'uint64'
            when f.type = 'int64' and upper(f.parameters['__debezium.source.column.type']) like '%BIGINT%'
                then 'int64 signed'
            else decode(f.type, 'float32', 'float', 'float64', 'double', f.type)
        end
{%- endmacro %}

{#-
    The schema blocks that `make run` has compared: checksum → the types of columns that had several. None, if somebody
    has declared other columns since.
-#}
{% macro _compared_schemas() -%}
    {%- set meta, found = meta_of_model(), {} -%}
    {%- if meta.schemas and meta.schemas_for == local_md5(tojson(meta.columns))[:8] -%}
        {%- for schema in meta.schemas -%}
            {%- do found.update({schema: meta.schemas[schema] if meta.schemas is mapping else {}}) -%}
        {%- endfor -%}
    {%- endif -%}
    {{ return(found) }}
{%- endmacro %}

{#-
    What the schema block of the event says of a column of several types: `schemas` in the YAML knows the blocks that
    `make run` has compared by their checksums; of others it is in `_written`.
-#}
{% macro _written_type(name) -%}
    {%- set schemas, told = _compared_schemas(), {} -%}
    {%- for schema, types in schemas.items() if name in types -%}
        {%- do told.setdefault(types[name], []).append((schema | int) ~ 'L') -%}
    {%- endfor -%}
    coalesce(get(_written.type, array_position(_written.field, {{ literal(name) }}) - 1)
    {%- for type, schemas in told.items() %},
        case when _checksum in ({{ schemas | join(', ') }}) then {{ literal(kinds_read_as(type)[0]) }} end
    {%- endfor %})
{%- endmacro %}

{#-
    The columns of which events may be of another type than is declared, by their type. So is each that stands in the
    YAML as in the model, without another word: what somebody declares by hand is read as it says.
-#}
{% macro _guarded_columns(c, fields) -%}
    {%- set meta, found = meta_of_model(), {} -%}
    {%- for field in fields if c.form in ('rows', 'flat') -%}
        {%- set is_declared = (meta.columns or {}).get(field.kept) == field.type
            and c.types_in_schema and field.name not in (meta.misread or {}) -%}
        {%- if ' | ' in field.type or is_declared and not field.is_shard
            and field.type.split('<')[0].split('(')[0] not in ('any', 'array', 'Bson', 'frozen') -%}
            {%- do found.setdefault(field.type, []).append(field.name) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(found) }}
{%- endmacro %}

{#- Of what stands before the payload, by the bytes: `schema_checksum` in scripts/schema.py is the same. -#}
{% macro _checksum_of_schema(tail) -%}
    crc32(substring(cast(value as binary), 1, octet_length(value) - octet_length({{ tail }})))
{%- endmacro %}

{#-
    Further columns of records. `_undeclared`: the columns that the schema block of an event gives a type that their
    model does not read. A block is looked at if it is none of those that `make run` has compared (`schemas` in the
    YAML). Where a column had several types, `_written` is what it says: an array of structs with `field` and `type`.
    `tail`: what stands behind the block.
-#}
{% macro _written_columns(c, guarded, tail) -%}
    {%- set several, schemas, kinds = [], [], {} -%}
    {%- for schema in _compared_schemas() -%} {%- do schemas.append((schema | int) ~ 'L') -%} {%- endfor -%}
    {%- for type, names in guarded.items() if ' | ' in type -%} {%- do several.extend(names) -%} {%- endfor -%}
    {%- set checksum = '_checksum' if several else _checksum_of_schema(tail) -%}
    {%- set is_new = "(startswith(value, '{\"schema\"') and " ~ checksum ~ ' in (' ~ schemas | join(', ')
        ~ ')) is not true' if schemas else 'true' -%}
    {%- for type, names in guarded.items() -%}
        {%- set read = [] -%}
        {%- for one in type.split(' | ') -%} {%- do read.extend(kinds_read_as(one)) -%} {%- endfor -%}
        {%- for name in names -%} {%- do kinds.update({name: read | join(',')}) -%} {%- endfor -%}
    {%- endfor -%}
    {%- if guarded -%},
        {%- if several %}
        {{ _checksum_of_schema(tail) }} as _checksum,
        case when {{ is_new }} then transform({{ _fields_of_schema(c) }},
            f -> named_struct('field', f.field, 'type', {{ _type_in_schema(c) }})) end as _written,
        {%- endif %}
        case
            {{ 'when ' ~ is_new ~ ' and _written is null then ' ~ literal(several | join(', ')) if several }}
            when {{ '_written is not null' if several else is_new ~ ' and ' ~ _begins_as_wrapped() }}
                then nullif(array_join(filter({{ '_written' if several else _fields_of_schema(c) }}, f -> find_in_set(
                    {{ 'f.type' if several else _type_in_schema(c) }},
                    from_json({{ literal(tojson(kinds)) }}, 'map<string, string>')[f.field]) = 0).field, ', '), '')
        end as _undeclared
    {%- endif -%}
{%- endmacro %}
