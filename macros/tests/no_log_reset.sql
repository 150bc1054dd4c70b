{#-
    No change came that was below others in the source's log without having landed before: the log has not started over.
-#}
{% test no_log_reset(model, source_table) %}
    {%- if execute and flags.WHICH in ('test', 'build') -%}
        {%- set told = [] -%}
        {%- for found in debezium_resets(_logs_of_tested(model)).values() -%}
            {%- for place, numbers in fromjson(found.resets).items() -%}
                {%- do told.append(numbers[2] ~ ' in ' ~ place ~ ' from ' ~ numbers[0] ~ ' to ' ~ numbers[1]) -%}
            {%- endfor -%}
        {%- endfor -%}
        {%- if told -%}
            {{ exceptions.raise_compiler_error(
                'the log of ' ~ source_table ~ ' has started over: ' ~ model
                    ~ ' shows older states than the source for changes that lie below those\n'
                ~ '  before them (' ~ told | join('; ') ~ ').\n'
                ~ '  Declare an epoch in seeds/cdc_epochs.csv: docs/operating.md#when-the-sources-positions-start-over'
            ) }}
        {%- endif -%}
    {%- endif %}
select 1 as log_reset where false
{% endtest %}
