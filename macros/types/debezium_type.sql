{#-
    How a column of a Debezium type is read: a mapping with

    - json: the Spark type that `from_json` reads it as; `variant` where Spark would round, shift or drop what does not
      fit,
    - sql: the value as the type that the table has; NULL where it cannot be given exactly,
    - can_fail: whether that can happen,
    - text: the text that `from_json` gives, where it may have been none; `no_text`: a pattern of the texts to ask that
      of,
    - omitted: a condition that is true for what Debezium writes if the value was not in the log, or none,
    - read: an expression over `value` that the caller has to give the name `read_as`, or none: what the others read
      more than once. Without `read_as` (within a lambda) there is none.

    `written` is an expression: which type the schema block of the event names, for a column that had several.

    The names are those of the schema block without their package (io.debezium.time.MicroTimestamp → MicroTimestamp),
    with parameters in brackets: Decimal(12,2), Bits(5), array<int32>.
-#}
{% macro debezium_type(type, value, read_as=none, written='null') -%}
    {%- if ' | ' in type -%} {{ return(type_of_several(type.split(' | '), value, written)) }} {%- endif -%}
    {%- set name = type.split('(')[0] -%}
    {%- set parameters = type.split('(')[1].rstrip(')').split(',') if '(' in type
        and not type.startswith('array<') else [] -%}
    {%- if name in ('Decimal', 'DecimalText') and parameters | length != 2 -%}
        {{ exceptions.raise_compiler_error("debezium_type: '" ~ type ~ "' in model " ~ model.name
            ~ ".\n  Expected precision and scale, as " ~ name ~ '(12,2).') }}
    {%- endif -%}
    {%- if type.startswith('array<') -%} {{ return(type_array(type[6:-1], value)) }}
    {%- elif name in ('int8', 'int16') -%} {{ return(_plain_type('smallint', value)) }}
    {%- elif name in ('int32', 'Year') -%} {{ return(_plain_type('int', value)) }}
    {%- elif name in ('int64', 'MicroDuration', 'NanoDuration') -%} {{ return(_plain_type('bigint', value)) }}
    {%- elif name == 'uint64' -%} {{ return(type_uint64(value)) }}
    {%- elif name == 'boolean' -%} {{ return(_plain_type('boolean', value)) }}
    {%- elif name in ('float', 'float32') -%} {{ return(type_float(value)) }}
    {%- elif name in ('double', 'float64') -%} {{ return(type_double(value)) }}
    {%- elif name == 'number' -%} {{ return(type_number(value, read_as)) }}
    {%- elif name == 'Decimal' -%} {{ return(type_decimal(value, parameters, read_as)) }}
    {%- elif name == 'DecimalText' -%} {{ return(type_decimal_text(value, parameters)) }}
    {%- elif name == 'VariableScaleDecimal' -%} {{ return(type_variable_scale_decimal(value)) }}
    {%- elif name in ('string', 'Enum', 'EnumSet', 'Json', 'Xml', 'Uuid', 'Ltree', 'TsVector', 'Tsvector', 'Interval',
        'ZonedTime') -%}
        {{ return(type_string(value)) }}
    {%- elif name == 'bytes' -%} {{ return(type_bytes(value, 'base64')) }}
    {%- elif name == 'bytes_url' -%} {{ return(type_bytes(value, 'base64-url-safe')) }}
    {%- elif name == 'bytes_hex' -%} {{ return(type_bytes(value, 'hex')) }}
    {%- elif name == 'Bits' -%} {{ return(type_bits(value, parameters)) }}
    {%- elif name == 'Date' -%} {{ return(type_date(value)) }}
    {%- elif name == 'Time' -%} {{ return(type_time(value, 1000)) }}
    {%- elif name == 'MicroTime' -%} {{ return(type_time(value, 1000000)) }}
    {%- elif name == 'NanoTime' -%} {{ return(type_time(value, 1000000000)) }}
    {%- elif name == 'Timestamp' -%} {{ return(type_timestamp(value, 1000)) }}
    {%- elif name == 'MicroTimestamp' -%} {{ return(type_timestamp(value, 1000000)) }}
    {%- elif name == 'NanoTimestamp' -%} {{ return(type_timestamp(value, 1000000000)) }}
    {%- elif name == 'ZonedTimestamp' -%} {{ return(type_zoned_timestamp(value)) }}
    {%- elif name == 'TimestampText' -%} {{ return(type_timestamp_text(value)) }}
    {%- elif name == 'IsoDate' -%} {{ return(type_iso(value, 'date')) }}
    {%- elif name == 'IsoTime' -%} {{ return(type_iso(value, 'string')) }}
    {%- elif name == 'IsoTimestamp' -%} {{ return(type_iso(value, 'timestamp_ntz')) }}
    {%- elif name == 'Point' -%} {{ return(type_point(value)) }}
    {%- elif name in ('Geometry', 'Geography') -%} {{ return(type_geometry(value)) }}
    {%- elif name == 'map' -%} {{ return(type_map(value)) }}
    {%- elif name == 'FloatVector' -%} {{ return(type_array('float', value)) }}
    {%- elif name == 'DoubleVector' -%} {{ return(type_array('double', value)) }}
    {%- elif name == 'Bson' -%} {{ return(type_bson(value, parameters)) }}
    {%- elif name in ('any', 'frozen') -%} {{ return(type_any(value, read_as)) }}
    {%- elif name == 'shard' -%} {{ return(_plain_type('string', value)) }}
    {%- else -%}
        {{ exceptions.raise_compiler_error(
            "debezium_type: unknown type '" ~ type ~ "' in model " ~ model.name ~ ".\n"
            ~ "  Expected a Debezium type as in the table of docs/types.md, such as int32, string,\n"
            ~ "  Decimal(12,2) or MicroTimestamp; 'any' keeps the JSON text of whatever comes."
        ) }}
    {%- endif -%}
{%- endmacro %}

{#- A type that `from_json` reads exactly or not at all: what does not fit marks the event as corrupt. -#}
{% macro _plain_type(spark, value, omitted=none, text=none, no_text=none) -%}
    {{ return(dict(_reading(spark, value, omitted, text, no_text), can_fail=false)) }}
{%- endmacro %}

{#- What `debezium_type` gives. -#}
{% macro _reading(json, sql, omitted=none, text=none, no_text=none, read=none) -%}
    {{ return({'json': json, 'sql': sql, 'can_fail': true, 'omitted': omitted, 'text': text, 'no_text': no_text,
        'read': read}) }}
{%- endmacro %}

{#-
    The JSON that Debezium writes for unavailable arrays and maps: of texts, bytes, UUIDs, whole numbers, decimals as
    their bytes in base64, and a HSTORE.
-#}
{% macro placeholder_forms() -%}
    {%- set bytes = placeholder_bytes() | string -%}
    {%- set forms = [
        '["__debezium_unavailable_value"]', '["X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="]',
        '["5f5f646562657a69756d5f756e617661696c61626c655f76616c7565"]',
        '["b68a35a7-17ad-35b3-af2a-ae46edb4545a"]', bytes | replace(' ', ''),
        '["Xw==","Xw==","ZA==","ZQ==","Yg==","ZQ==","eg==","aQ==","dQ==","bQ==","Xw==","dQ==","bg==","YQ==",'
            ~ '"dg==","YQ==","aQ==","bA==","YQ==","Yg==","bA==","ZQ==","Xw==","dg==","YQ==","bA==","dQ==","ZQ=="]',
        '{"__debezium_unavailable_value":"__debezium_unavailable_value"}',
    ] -%}
    {{ return(_literals(forms)) }}
{%- endmacro %}

{#- The bytes of `__debezium_unavailable_value`. -#}
{% macro placeholder_bytes() -%}
    {{ return([95, 95, 100, 101, 98, 101, 122, 105, 117, 109, 95, 117, 110, 97, 118, 97, 105, 108, 97, 98, 108, 101, 95,
        118, 97, 108, 117, 101]) }}
{%- endmacro %}

{#-
    The texts that Debezium writes for a value that the log did not hold, with the default
    `unavailable.value.placeholder`: as it is, as base64 and hexadecimal of its bytes, and as a HSTORE in JSON.
-#}
{% macro placeholders() -%}
    array(
        '__debezium_unavailable_value',
        'X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==',
        '5f5f646562657a69756d5f756e617661696c61626c655f76616c7565',
        '{"__debezium_unavailable_value":"__debezium_unavailable_value"}'
    )
{%- endmacro %}

{#- Whether a text is one of them: the query has them under a name. -#}
{% macro is_placeholder(text) -%}
    {{ return('array_contains(_unavailable, ' ~ text ~ ')') }}
{%- endmacro %}
