{#- `body` with `expression` under the name `name`: a text that is used twice is computed, and analysed, once. -#}
{% macro let(expression, name, body) -%}
    get(transform(array({{ expression }}), {{ name }} -> {{ body }}), 0)
{%- endmacro %}

{#- BIGINT UNSIGNED under `bigint.unsigned.handling.mode=long`: from 2^63 on it arrives as a negative number. -#}
{% macro type_uint64(value) -%}
    {%- set sql -%}
        cast({{ value }} as decimal(20, 0))
            + if({{ value }} < 0L, 18446744073709551616bd, cast(0 as decimal(20, 0)))
    {%- endset -%}
    {{ return(_plain_type('bigint', 'cast(' ~ sql ~ ' as decimal(20, 0))')) }}
{%- endmacro %}

{#-
    A double. Infinity and NaN are texts in JSON; a JSON number that is too large would become infinite in
    silence, so an infinite value whose event does not spell it is invalid.
-#}
{% macro type_double(value) -%}
    {{ return(_reading('double', "if(abs(" ~ value ~ ") = double('Infinity'), case when " ~ _spells_infinity()
        ~ " then " ~ value ~ " end, " ~ value ~ ")")) }}
{%- endmacro %}

{#-
    A JSON number that no schema block calls a double: it may be an exact decimal (`decimal.format=NUMERIC`), of which a
    double holds some. It is one where its digits are those that the double is printed with, in the fewest digits or in
    17, or where both are the same whole number. With an exponent and up to 17 digits it is the double that it names.
-#}
{% macro type_number(value, read_as=none) -%}
    {%- set read = "variant_get(" ~ value ~ ", '$', 'string')" -%}
    {%- set text = read_as or read -%}
    {%- set double = 'try_cast(' ~ text ~ ' as double)' -%}
    {%- set digits = "trim('0' from translate(split_part(%s, 'e', 1), '-.', ''))" -%}
    {%- set sql -%}
        case schema_of_variant({{ value }})
            when 'STRING' then case when {{ text }} in ('NaN', 'Infinity', '-Infinity') then {{ double }} end
            when 'DOUBLE' then case when abs({{ double }}) < double('Infinity')
                and not value rlike '{{ _lost_digits() }}' then {{ double }} end
            else case when length({{ text }}) < 16
                or {{ digits % text }} in ({{ digits % ('lower(cast(' ~ double ~ ' as string))') }},
                {{ digits % ("format_string('%.16e', " ~ double ~ ')') }})
                or {{ double }} < 9223372036854775807d
                    and try_cast({{ double }} as bigint) = try_cast({{ text }} as bigint) then {{ double }} end
        end
    {%- endset -%}
    {{ return(_reading('variant', sql, read=read if read_as else none)) }}
{%- endmacro %}

{#-
    Whether an event has it as a text of its own. Asked of infinite values only, in a branch of its own: what stands
    behind an `or` Spark may compute of each event, if it needs it twice.
-#}
{% macro _spells_infinity() -%}
    value rlike '"[+-]?Infinity"'
{%- endmacro %}

{#-
    A single-precision number; its JSON may have been printed with the digits of a double. To Spark NaN is greater than
    all others.
-#}
{% macro type_float(value) -%}
    {%- set sql -%}
        case
            when abs({{ value }}) = double('Infinity')
                then case when {{ _spells_infinity() }} then cast({{ value }} as float) end
            when abs({{ value }}) < 3.4028235677973366e38d or isnan({{ value }}) then cast({{ value }} as float)
        end
    {%- endset -%}
    {{ return(_reading('double', sql)) }}
{%- endmacro %}

{#-
    org.apache.kafka.connect.data.Decimal: base64 of the unscaled number, or a JSON number
    (decimal.format=NUMERIC). Up to 38 digits it is a DECIMAL, beyond that its exact text.
-#}
{% macro type_decimal(value, parameters, read_as=none) -%}
    {%- set scale = parameters[1] | int -%}
    {#- Of a negative scale the number ends with zeros: Spark's DECIMAL has them as digits. #}
    {%- set digits = [scale, 0] | max(case_sensitive=true) -%}
    {%- set declared = parameters[0] | int -%}
    {%- set precision = [declared + digits - scale, digits] | max(case_sensitive=true) -%}
    {%- set read = "variant_get(" ~ value ~ ", '$', 'string')" -%}
    {%- set text = read_as or read -%}
    {%- set hexadecimal = 'hex(' ~ _padded_base64(text) ~ ')' -%}
    {%- set is_small = precision <= 18 and scale >= 0 -%}
    {%- set sql -%}
        case schema_of_variant({{ value }})
            when 'STRING' then {{ small_decimal(text, precision, scale) if is_small
                else _decimal(big_unscaled(hexadecimal, scale, precision > 38), precision, digits) }}
            {#-
                With an exponent: of its digits a double is left. Zero is `0E-8` to Connect, and is no small number if
                no exponent of a double gives it.
            #}
            when 'DOUBLE' then {{ "case when " ~ text
                ~ " rlike '^-?0[.]0$' and not value rlike '(:|,|\\\\[)\\\\s*-?[0-9.]+[eE]-[0-9]{3}' then "
                ~ 'cast(0 as decimal(' ~ precision ~ ', ' ~ digits ~ ')) end' if precision <= 38
                else 'cast(null as string)' }}
            else {{ _decimal(text, precision, digits) }}
        end
    {%- endset -%}
    {{ return(_reading('variant', sql, is_placeholder(text), read=read if read_as else none)) }}
{%- endmacro %}

{#- A decimal that is written as its text (decimal.handling.mode=string). -#}
{% macro type_decimal_text(value, parameters) -%}
    {%- set precision = parameters[0] | int -%}
    {%- set scale = parameters[1] | int -%}
    {{ return(_reading('string', _decimal_of_text(value, precision, scale), is_placeholder(value), text=value,
        no_text='^-?[0-9]+[.eE][-+.0-9eE]*\\\\z')) }}
{%- endmacro %}

{#-
    Such a text as its type, NULL where digits would be lost. Java prints a decimal that has six zeros behind its point,
    or more, with an exponent (`1E-7`; such a zero as `0E-7`): it is exact where the digits that it has behind the
    point, without zeros at the end, are not more than the scale. No lambda up to 38 digits: Spark compiles no
    projection that has one.
-#}
{% macro _decimal_of_text(text, precision, scale) -%}
    {%- set with_exponent = text ~ " rlike '^-?[0-9]+([.][0-9]+)?[eE][+-]?[0-9]{1,3}$'" -%}
    {%- set digits = "regexp_replace(" ~ text ~ ", '[eE].*|[^0-9]', '')" -%}
    {%- set behind_point = "length(regexp_extract(" ~ text ~ ", '[.]([0-9]+)', 1))" -%}
    {%- set exponent = "cast(regexp_extract(" ~ text ~ ", '[eE](.+)', 1) as int)" -%}
    {%- if precision > 38 -%}
        {%- set numbers = "named_struct('digits', concat(if(startswith(" ~ text ~ ", '-'), '-', ''), " ~ digits
            ~ "), 'scale', " ~ behind_point ~ " - " ~ exponent ~ ")" -%}
        case
            when {{ text }} rlike '^-?[0-9]+([.][0-9]+)?$' then {{ text }}
            when {{ with_exponent }} then {{ let(numbers, 'n', _shifted('n.digits', 'n.scale')) }}
        end
    {%- else -%}
        {%- set zeros = "length(" ~ digits ~ ") - length(rtrim('0', " ~ digits ~ "))" -%}
        case
            when
                {{ text }} rlike '^-?[0-9]+([.][0-9]{0,{{ scale }}}0*)?$'
                or {{ with_exponent }}
                and (rtrim('0', {{ digits }}) = ''
                or {{ behind_point }} - {{ exponent }} - ({{ zeros }}) <= {{ scale }})
                then try_cast({{ text }} as decimal({{ precision }}, {{ scale }}))
        end
    {%- endif -%}
{%- endmacro %}

{#- io.debezium.data.VariableScaleDecimal: every value has a scale of its own, so it stays exact text. -#}
{% macro type_variable_scale_decimal(value) -%}
    {%- set scale = "try_variant_get(" ~ value ~ ", '$.scale', 'int')" -%}
    {%- set is_text = "schema_of_variant(try_variant_get(" ~ value ~ ", '$.value')) = 'STRING'" -%}
    {%- set hexadecimal = "if(" ~ is_text ~ ", hex(try_to_binary(try_variant_get(" ~ value
        ~ ", '$.value', 'string'), 'base64')), null)" -%}
    {#- No database has a number of so many digits; a hostile one would fill the memory. #}
    {{ return(_reading(
        'variant',
        'if(' ~ scale ~ ' between -20000 and 20000, ' ~ big_unscaled(hexadecimal, scale, true) ~ ', null)',
        is_placeholder("coalesce(try_variant_get(" ~ value ~ ", '$.value', 'string'), variant_get(" ~ value
            ~ ", '$', 'string'))"),
    )) }}
{%- endmacro %}

{#-
    The text of a plain number as DECIMAL, NULL where digits would be lost; as it is beyond 38 digits. A name is not
    computed twice.
-#}
{% macro _decimal(text, precision, scale) -%}
    {%- set is_name = modules.re.fullmatch('[a-z0-9_]+', text) -%}
    {%- set t = text if is_name else 't' -%}
    {%- if precision > 38 -%}
        {%- set number = "case when " ~ t ~ " rlike '^-?[0-9]+([.][0-9]+)?$' then " ~ t ~ " end" -%}
    {%- else -%}
        {%- set number = "case when " ~ t ~ " rlike '^-?[0-9]+([.][0-9]{0," ~ scale ~ "}0*)?$' then try_cast(" ~ t
            ~ " as decimal(" ~ precision ~ ", " ~ scale ~ ")) end" -%}
    {%- endif -%}
    {{ number if is_name else let(text, 't', number) }}
{%- endmacro %}

{#-
    An unscaled number of up to 8 bytes (two's complement, big-endian, in base64) as the decimal it stands for. The text
    tells what else the bytes would be read again for: more than 8 bytes are 12 characters without padding or more; the
    first one has the first 6 bits, of which A to f are those without a sign. No bytes are zero.
-#}
{% macro small_decimal(text, precision, scale) -%}
    case when octet_length({{ text }}) % 4 = 0 and (octet_length({{ text }}) < 12 or {{ text }} like '___________=')
       then try_cast(cast(conv(lpad(hex(try_to_binary({{ text }}, 'base64')), 16,
           if({{ text }} = '' or {{ text }} rlike '^[A-f]', '0', 'F')), 16, -10) as decimal(19, 0))
           * {{ '0.' ~ '0' * (scale - 1) ~ '1bd' if scale else '1bd' }} as decimal({{ precision }}, {{ scale }})) end
{%- endmacro %}

{#-
    An unscaled number as the exact text of the decimal it stands for.

    Up to 38 digits it is done on two halves of 64 bits: plain `high * 2^64 + low` overflows near -10^38, and `abs` or a
    unary minus of a DECIMAL of more than 34 digits loses digits in Spark. Some numbers of 16 bytes have 39 digits.
-#}
{% macro big_unscaled(hexadecimal, scale, may_be_wide) -%}
    {%- set unscaled -%}
        if(h.high < 0 and h.low > 0,
           try_subtract(try_multiply(h.high + 1, h.base), h.base - h.low), try_add(try_multiply(h.high, h.base), h.low))
    {%- endset -%}
    {%- set halves -%}
        named_struct(
            'high', cast(conv(substr(p, 1, 16), 16, -10) as decimal(38, 0)),
            'low', cast(conv(substr(p, 17, 16), 16, 10) as decimal(20, 0)),
            'base', cast('18446744073709551616' as decimal(20, 0))
        )
    {%- endset -%}
    {%- set integer = let(let("lpad(x, 32, if(x >= '8', 'F', '0'))", 'p', halves), 'h',
        'cast(' ~ unscaled ~ ' as string)') -%}
    {%- set short = 'if(length(x) <= 32, ' ~ integer ~ ', null)' -%}
    {%- set wide = 'if(x is null, null, coalesce(' ~ short ~ ', ' ~ wide_integer('x') ~ '))' -%}
    {{ let(hexadecimal, 'x', _shifted(wide if may_be_wide else short, scale)) }}
{%- endmacro %}

{#-
    A two's-complement number of any length, in hexadecimal, as its decimal text: seven bytes at a time into groups of
    21 digits, so that what is carried fits a DECIMAL(38) and a BIGINT. A negative number is the complement of its bits,
    plus one.
-#}
{% macro wide_integer(hexadecimal) -%}
    {%- set is_negative = hexadecimal ~ " >= '8'" -%}
    {%- set magnitude -%}
        lpad(if({{ is_negative }}, translate({{ hexadecimal }}, '0123456789ABCDEF', 'FEDCBA9876543210'),
            {{ hexadecimal }}),
             14 * cast(ceil(length({{ hexadecimal }}) / 14.0) as int), '0')
    {%- endset -%}
    {%- set words -%}
        transform(sequence(1, length(m), 14),
            i -> cast(conv(substr(m, i, 14), 16, 10) as bigint) + if({{ is_negative }} and i + 14 > length(m), 1L, 0L))
    {%- endset -%}
    {%- set step -%}
        named_struct('done', concat(a.done, array(cast(t % 1000000000000000000000bd as decimal(38, 0)))), 'carry',
            t div 1000000000000000000000bd)
    {%- endset -%}
    {%- set times_word_plus_word -%}
        aggregate(groups, named_struct('done', cast(array() as array<decimal(38, 0)>), 'carry', word),
                  (a, g) -> {{ let('g * 72057594037927936bd + a.carry', 't', step) }},
                  a -> concat(a.done, array(cast(a.carry as decimal(38, 0)))))
    {%- endset -%}
    {%- set groups -%}
        aggregate({{ words }}, cast(array() as array<decimal(38, 0)>), (groups, word) -> {{ times_word_plus_word }})
    {%- endset -%}
    concat(if({{ is_negative }}, '-', ''), coalesce(nullif(ltrim('0', array_join(
        transform(reverse({{ let(magnitude, 'm', groups) }}), g -> lpad(cast(g as string), 21, '0')), '')), ''), '0'))
{%- endmacro %}

{#- The text of an integer with its decimal point moved left by `scale` digits. -#}
{% macro _shifted(integer, scale) -%}
    {%- set parts -%}
        named_struct(
            'sign', if(startswith(i, '-'), '-', ''),
            'digits', lpad(ltrim('-', i), greatest(length(ltrim('-', i)), {{ scale }} + 1), '0')
        )
    {%- endset -%}
    {%- set text -%}
        concat(
            d.sign,
            left(d.digits, length(d.digits) - greatest({{ scale }}, 0)),
            if({{ scale }} > 0, concat('.', right(d.digits, {{ scale }})),
                repeat('0', -1 * {{ scale }} * if(d.digits = '0', 0, 1)))
        )
    {%- endset -%}
    {{ let(let(integer, 'i', parts), 'd', text) }}
{%- endmacro %}
