{#- BIGINT UNSIGNED under `bigint.unsigned.handling.mode=long`: from 2^63 on it arrives as a negative number. -#}
{% macro type_uint64(value) -%}
    {%- set sql -%}
        if({{ value }} < 0, cast({{ value }} as decimal(20, 0)) + 18446744073709551616, cast({{ value }} as decimal(20, 0)))
    {%- endset -%}
    {{ return({'json': 'bigint', 'sql': 'cast(' ~ sql ~ ' as decimal(20, 0))', 'invalid': none, 'omitted': none}) }}
{%- endmacro %}


{#-
    A double. Infinity and NaN are texts in JSON; a JSON number that is too large would become infinite in
    silence, so an infinite value whose event does not spell it is invalid.
-#}
{% macro type_double(value) -%}
    {{ return({
        'json': 'double',
        'sql': value,
        'invalid': "abs(" ~ value ~ ") = double('Infinity') and not contains(_text, 'Infinity')",
        'omitted': none,
    }) }}
{%- endmacro %}


{#- A single-precision number; its JSON may have been printed with the digits of a double. -#}
{% macro type_float(value) -%}
    {%- set invalid -%}
        abs({{ value }}) >= 3.4028235677973366e38d
        and not (abs({{ value }}) = double('Infinity') and contains(_text, 'Infinity'))
    {%- endset -%}
    {{ return({'json': 'double', 'sql': 'cast(' ~ value ~ ' as float)', 'invalid': invalid, 'omitted': none}) }}
{%- endmacro %}


{#-
    org.apache.kafka.connect.data.Decimal: base64 of the unscaled number, or a JSON number
    (decimal.format=NUMERIC). Up to 38 digits it is a DECIMAL, beyond that its exact text.
-#}
{% macro type_decimal(value, parameters) -%}
    {%- set precision = (parameters[0] if parameters else '38') | int -%}
    {%- set scale = (parameters[1] if parameters | length > 1 else '0') | int -%}
    {%- set number -%}
        case when {{ value }}.is_text
             then {{ small_unscaled(value, scale) if precision <= 18 else big_unscaled(value, scale) }}
             else {{ value }}.text end
    {%- endset -%}
    {%- set exact -%}
        {{ value }}.is_text or length(rtrim('0', regexp_extract({{ value }}.text, '[.]([0-9]*)$', 1))) <= {{ scale }}
    {%- endset -%}
    {{ return(_exact_decimal(value, 'variant', _number_parts(value), number, exact, precision, scale)) }}
{%- endmacro %}


{#- A decimal that is written as its text (decimal.handling.mode=string). -#}
{% macro type_decimal_text(value, parameters) -%}
    {%- set precision = (parameters[0] if parameters else '38') | int -%}
    {%- set scale = (parameters[1] if parameters | length > 1 else '0') | int -%}
    {%- set parts = "if(" ~ value ~ " is null, null, named_struct('text', " ~ value ~ "))" -%}
    {%- set exact -%}
        length(rtrim('0', regexp_extract({{ value }}.text, '[.]([0-9]*)$', 1))) <= {{ scale }}
        and not contains(lower({{ value }}.text), 'e')
    {%- endset -%}
    {{ return(_exact_decimal(value, 'string', parts, value ~ '.text', exact, precision, scale)) }}
{%- endmacro %}


{#- io.debezium.data.VariableScaleDecimal: every value has a scale of its own, so it stays exact text. -#}
{% macro type_variable_scale_decimal(value) -%}
    {%- set text = "coalesce(try_variant_get(" ~ value ~ ", '$.value', 'string'), try_variant_get(" ~ value ~ ", '$', 'string'))" -%}
    {%- set prepare -%}
        if({{ value }} is null or is_variant_null({{ value }}), null, named_struct(
            'text', {{ text }},
            'hex', hex(try_to_binary({{ text }}, 'base64')),
            'scale', try_variant_get({{ value }}, '$.scale', 'int')
        ))
    {%- endset -%}
    {%- set sql = big_unscaled(value, value ~ '.scale') -%}
    {{ return({
        'json': 'variant',
        'prepare': prepare,
        'sql': sql,
        'invalid': value ~ ' is not null and (' ~ sql ~ ') is null',
        'omitted': is_placeholder(value ~ '.text'),
    }) }}
{%- endmacro %}


{#- A decimal as DECIMAL(precision, scale), invalid where digits would be lost; as text beyond 38 digits. -#}
{% macro _exact_decimal(value, json, prepare, number, exact, precision, scale) -%}
    {%- if precision > 38 -%}
        {%- set sql = 'cast(' ~ number ~ ' as string)' -%}
        {%- set exact = 'true' -%}
    {%- else -%}
        {%- set sql = 'try_cast(' ~ number ~ ' as decimal(' ~ precision ~ ', ' ~ scale ~ '))' -%}
    {%- endif -%}
    {{ return({
        'json': json,
        'prepare': prepare,
        'sql': sql,
        'invalid': value ~ ' is not null and (' ~ sql ~ ' is null or not (' ~ exact ~ '))',
        'omitted': is_placeholder(value ~ '.text'),
    }) }}
{%- endmacro %}


{#- The JSON text of a number or of its base64, which of the two, and the bytes in hexadecimal. -#}
{% macro _number_parts(value) -%}
    if({{ value }} is null or is_variant_null({{ value }}), null, named_struct(
        'text', if(schema_of_variant({{ value }}) in ('DOUBLE', 'BOOLEAN'), null, try_variant_get({{ value }}, '$', 'string')),
        'is_text', schema_of_variant({{ value }}) = 'STRING',
        'hex', hex(try_to_binary(try_variant_get({{ value }}, '$', 'string'), 'base64'))
    ))
{%- endmacro %}


{#- An unscaled number of up to 8 bytes (two's complement, big-endian) as the decimal it stands for. -#}
{% macro small_unscaled(value, scale) -%}
    if(length({{ value }}.hex) <= 16,
       cast(conv(lpad({{ value }}.hex, 16, if({{ value }}.hex >= '8', 'F', '0')), 16, -10) as decimal(19, 0))
       * cast('1e-{{ scale }}' as decimal({{ scale + 1 }}, {{ scale }})), null)
{%- endmacro %}


{#-
    An unscaled number of up to 16 bytes as the exact text of the decimal it stands for; NULL beyond.

    Done on two halves of 64 bits: plain `high * 2^64 + low` overflows near -10^38, and `abs` or a unary
    minus of a DECIMAL of more than 34 digits loses digits in Spark.
-#}
{% macro big_unscaled(value, scale) -%}
    {%- set padded = "lpad(" ~ value ~ ".hex, 32, if(" ~ value ~ ".hex >= '8', 'F', '0'))" -%}
    {%- set high = "cast(conv(substr(" ~ padded ~ ", 1, 16), 16, -10) as decimal(38, 0))" -%}
    {%- set low = "cast(conv(substr(" ~ padded ~ ", 17, 16), 16, 10) as decimal(20, 0))" -%}
    {%- set base = "cast('18446744073709551616' as decimal(20, 0))" -%}
    {%- set unscaled -%}
        if({{ high }} < 0 and {{ low }} > 0,
           try_subtract(try_multiply({{ high }} + 1, {{ base }}), {{ base }} - {{ low }}),
           try_add(try_multiply({{ high }}, {{ base }}), {{ low }}))
    {%- endset -%}
    if(length({{ value }}.hex) <= 32, {{ _shifted('cast(' ~ unscaled ~ ' as string)', scale) }}, null)
{%- endmacro %}


{#- The text of an integer with its decimal point moved left by `scale` digits. -#}
{% macro _shifted(integer, scale) -%}
    {%- set digits = "translate(" ~ integer ~ ", '-', '')" -%}
    {%- set padded = "lpad(" ~ digits ~ ", greatest(length(" ~ digits ~ "), " ~ scale ~ " + 1), '0')" -%}
    concat(
        if(startswith({{ integer }}, '-'), '-', ''),
        substr({{ padded }}, 1, length({{ padded }}) - greatest({{ scale }}, 0)),
        if({{ scale }} > 0, concat('.', right({{ padded }}, {{ scale }})), repeat('0', -1 * {{ scale }}))
    )
{%- endmacro %}
