{#-
    Days since 1970-01-01. The range is Spark's own, 0001-01-01 to 9999-12-31: PostgreSQL's infinity and its
    farther dates have no value in Spark and are rejected.
-#}
{% macro type_date(value) -%}
    {{ return(_reading('int', 'case when ' ~ value ~ " between -719162 and 2932896 then date_add(date '1970-01-01', "
        ~ value ~ ') end')) }}
{%- endmacro %}

{#-
    Milliseconds, microseconds or nanoseconds of a day as text `hh:mm:ss[.fraction]`, without the fraction's
    closing zeros. MySQL's TIME runs from -838:59:59 to 838:59:59, so it is no time of day.
-#}
{% macro type_time(value, per_second) -%}
    {%- set width = {1000: 3, 1000000: 6, 1000000000: 9}[per_second] -%}
    {%- set seconds = '(abs(' ~ value ~ ') div ' ~ per_second ~ 'L)' -%}
    {%- set fraction = "rtrim('0', lpad(cast(abs(" ~ value ~ ") % " ~ per_second ~ "L as string), " ~ width
        ~ ", '0'))" -%}
    {%- set sql -%}
        concat(
            if({{ value }} < 0L, '-', ''),
            lpad(cast({{ seconds }} div 3600L as string), greatest(2, length(cast({{ seconds }} div 3600L as string))),
                '0'), ':',
            lpad(cast({{ seconds }} div 60L % 60L as string), 2, '0'), ':',
            lpad(cast({{ seconds }} % 60L as string), 2, '0'),
            if({{ value }} % {{ per_second }}L = 0L, '', concat('.', {{ fraction }}))
        )
    {%- endset -%}
    {{ return(_reading('bigint', 'case when ' ~ value ~ ' between ' ~ -3020400 * per_second ~ 'L and '
        ~ 3020400 * per_second ~ 'L then ' ~ sql ~ ' end')) }}
{%- endmacro %}

{#-
    Milliseconds, microseconds or nanoseconds since 1970 on a clock without a zone. Outside of the years 1 to
    9999, and where nanoseconds would be cut off, the value cannot be given and is rejected.
-#}
{% macro type_timestamp(value, per_second) -%}
    {%- set micros = {1000: value ~ ' * 1000L', 1000000: value, 1000000000: value ~ ' div 1000L'}[per_second] -%}
    {%- if per_second == 1000000000 -%}
        {%- set is_exact = value ~ ' % 1000L = 0L' -%}
    {%- else -%}
        {%- set is_exact = value ~ ' between ' ~ -62135596800 * per_second ~ ' and '
            ~ (253402300800 * per_second - 1) -%}
    {%- endif -%}
    {{ return(_reading('bigint', 'cast(timestamp_micros(case when ' ~ is_exact ~ ' then ' ~ micros
        ~ ' end) as timestamp_ntz)')) }}
{%- endmacro %}

{#-
    ISO 8601 text with an offset: an instant. Infinity, other years than 1 to 9999 and fractions below a microsecond are
    rejected.
-#}
{% macro type_zoned_timestamp(value) -%}
    {%- set form = '^(?!0000|(0001-01-01|9999-12-31).*[+-][0-9:]+$)'
        ~ '[0-9]{4}-[^.:]*[T ][^.]*([.][0-9]{0,6}0*)?(Z|[+-][0-9:]+)$' -%}
    {{ return(_reading('string', 'case when ' ~ value ~ " rlike '" ~ form ~ "' then try_cast(" ~ value
        ~ ' as timestamp) end', is_placeholder(value))) }}
{%- endmacro %}

{#-
    Text of a clock without a zone, `yyyy-mm-dd hh:mm:ss[.fraction]`, or a number of milliseconds since 1970. Spark
    would drop a zone, and digits below a microsecond, in silence: a text with either is rejected.
-#}
{% macro type_timestamp_text(value) -%}
    {%- set text = "try_variant_get(" ~ value ~ ", '$', 'string')" -%}
    {%- set clock = '^' ~ _date_form() ~ '[ T]' ~ _time_form() ~ '([.][0-9]{0,6}0*)?$' -%}
    {%- set sql -%}
        case schema_of_variant({{ value }})
            when 'STRING' then {{ let(text, 't', "case when t rlike '" ~ clock
                ~ "' then try_cast(t as timestamp_ntz) end") }}
            when 'BIGINT' then {{ let("try_variant_get(" ~ value ~ ", '$', 'bigint')", 'n',
                type_timestamp('n', 1000)['sql']) }}
        end
    {%- endset -%}
    {{ return(_reading('variant', sql, is_placeholder(text))) }}
{%- endmacro %}

{#-
    time.precision.mode=isostring: the closing Z marks no zone. Any other text than Debezium's is rejected, as Spark is
    lenient.
-#}
{% macro type_iso(value, spark) -%}
    {%- set forms = {
        'date': _date_form(),
        'string': _time_form() ~ '([.][0-9]{1,9})?',
        'timestamp_ntz': _date_form() ~ 'T' ~ _time_form() ~ '([.][0-9]{0,6}0*)?',
    } -%}
    {{ return(_reading('string', 'case when ' ~ value ~ " rlike '^" ~ forms[spark] ~ "Z?$' then try_cast(rtrim('Z', "
        ~ value ~ ') as ' ~ spark ~ ') end', is_placeholder(value))) }}
{%- endmacro %}

{% macro _date_form() -%}
    (?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}
{%- endmacro %}

{% macro _time_form() -%}
    ([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]
{%- endmacro %}
