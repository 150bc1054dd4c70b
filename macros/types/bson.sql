{#-
    A value of extended JSON, in whichever of its forms (canonical, relaxed, and the one before both), as the BSON type
    that its column has. A value of another type is not exact: NULL here, which rejects the event.
-#}
{% macro type_bson(value, parameters) -%}
    {%- set kind = parameters[0] if parameters else 'any' -%}
    {%- if kind == 'document' -%} {{ return(_plain_type('string', value)) }}
    {%- elif kind == 'any' -%} {%- set sql = 'coalesce(' ~ _bson_whole_text(value) ~ ', to_json(' ~ value ~ '))' -%}
    {%- elif kind == 'string' -%}
        {%- set sql = "case when schema_of_variant(" ~ value ~ ") = 'STRING' then " ~ _bson_member(value, '')
            ~ ' end' -%}
    {%- elif kind == 'bool' -%}
        {%- set sql = "case when schema_of_variant(" ~ value ~ ") = 'BOOLEAN' then try_variant_get(" ~ value
            ~ ", '$', 'boolean') end" -%}
    {%- elif kind == 'objectId' -%} {%- set sql = _bson_object_id(value) -%}
    {%- elif kind == 'long' -%} {%- set sql = _bson_long(value) -%}
    {%- elif kind == 'double' -%} {%- set sql = _bson_double(value) -%}
    {%- elif kind == 'decimal' -%} {%- set sql = _bson_decimal(value, parameters[1:]) -%}
    {%- elif kind == 'date' -%} {%- set sql = _bson_date(value) -%}
    {%- elif kind == 'binData' -%} {%- set sql = _bson_binary(value) -%}
    {%- else -%}
        {{ exceptions.raise_compiler_error(
            "debezium_type: unknown type 'Bson(" ~ kind ~ ")' in model " ~ model.name ~ ".\n"
            ~ "  Expected Bson(objectId), Bson(string), Bson(bool), Bson(long), Bson(double), "
            ~ "Bson(decimal), Bson(date),\n"
            ~ "  Bson(binData), Bson(any) or Bson(document), as in docs/types.md."
        ) }}
    {%- endif -%}
    {{ return({'json': 'variant', 'sql': sql, 'can_fail': kind != 'any', 'omitted': none}) }}
{%- endmacro %}

{#- A member of a value, `$oid` and the like, as text; of no name the value itself. -#}
{% macro _bson_member(value, name) -%}
    try_variant_get({{ value }}, {{ literal('$' ~ ('["' ~ name ~ '"]' if name)) }}, 'string')
{%- endmacro %}

{#- The text of a whole number that is written as an object. -#}
{% macro _bson_whole_text(value) -%}
    coalesce({{ _bson_member(value, '$numberLong') }}, {{ _bson_member(value, '$numberInt') }})
{%- endmacro %}

{% macro _bson_long(value) -%}
    if(schema_of_variant({{ value }}) = 'BIGINT', try_variant_get({{ value }}, '$', 'bigint'),
       {{ let(_bson_whole_text(value), 't', "case when t rlike '^-?[0-9]+$' then try_cast(t as bigint) end") }})
{%- endmacro %}

{#- Not every whole number beyond 2^53 is a double: none of them is taken for one. -#}
{% macro _bson_double(value) -%}
    case
        when schema_of_variant({{ value }}) rlike '^(DECIMAL|DOUBLE|FLOAT)'
            then {{ _finite("try_variant_get(" ~ value ~ ", '$', 'double')") }}
        when {{ _bson_member(value, '$numberDouble') }} in ('NaN', 'Infinity', '-Infinity')
            then cast({{ _bson_member(value, '$numberDouble') }} as double)
        else coalesce(
            {{ _finite('try_cast(' ~ _bson_member(value, '$numberDouble') ~ ' as double)') }},
            {{ let(_bson_long(value), 'n',
                'case when n between -9007199254740992 and 9007199254740992 then cast(n as double) end') }}
        )
    end
{%- endmacro %}

{% macro _finite(number) -%}
    {{ let(number, 'd', "case when abs(d) < double('Infinity') then d end") }}
{%- endmacro %}

{#- Decimal128, as its text, or as DECIMAL where precision and scale are given and no digits are lost. -#}
{% macro _bson_decimal(value, numbers) -%}
    {%- set text = 'coalesce(' ~ _bson_member(value, '$numberDecimal') ~ ', cast(' ~ _bson_long(value)
        ~ ' as string))' -%}
    {{ _decimal(text, numbers[0] | int, numbers[1] | int) if numbers | length == 2 else text }}
{%- endmacro %}

{#- Twenty-four hexadecimal digits; some writers leave their object out. -#}
{% macro _bson_object_id(value) -%}
    {%- set text = 'lower(coalesce(' ~ _bson_member(value, '$oid') ~ ', ' ~ _bson_member(value, '') ~ '))' -%}
    {{ let(text, 't', "case when t rlike '^[0-9a-f]{24}$' then t end") }}
{%- endmacro %}

{#- An instant in milliseconds, as a number, as an object with its text, or in ISO 8601. -#}
{% macro _bson_date(value) -%}
    {%- set text = "regexp_replace(" ~ _bson_member(value, '$date')
        ~ ", '^[{]\"[$]numberLong\":\"(-?[0-9]+)\"[}]$', '$1')" -%}
    {%- set instant -%}
        if(t rlike '^-?[0-9]+$',
           {{ let('try_cast(t as bigint)', 'n',
               'case when n between -62135596800000 and 253402300799999 then timestamp_millis(n) end') }},
           {{ type_zoned_timestamp('t')['sql'] }})
    {%- endset -%}
    {{ let(text, 't', instant) }}
{%- endmacro %}

{#- Bytes without their subtype; a UUID is its sixteen. -#}
{% macro _bson_binary(value) -%}
    {%- set text = "coalesce(try_variant_get(" ~ value ~ ", '$[\"$binary\"][\"base64\"]', 'string'), "
        ~ _bson_member(value, '$binary') ~ ')' -%}
    coalesce(
        try_to_binary({{ text }}, 'base64'),
        {{ let(_bson_member(value, '$uuid'), 'u',
            "case when u rlike '^[0-9a-fA-F-]{36}$' then try_to_binary(replace(u, '-', ''), 'hex') end") }}
    )
{%- endmacro %}
