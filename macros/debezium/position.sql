{#- The place of a change in the source's order. -#}

{#- The place of a record in the source's order; the log, then what tells apart the records of one place. -#}
{% macro _position(c, topics, epochs) -%}
    concat(
        {{ _epoch(epochs) }}, '.', _source_position,
            if(_snapshot in {{ initial_snapshot_marks() }} and not ({{ c.in_topic_order }}), '.0.', '.1.'),
        {%- if c.ties != 'topic' %}
        if(_op = 'd', {{ "'0', '1'" if c.ties == 'deletes_first' else "'1', '0'" }}), '.',
        {%- endif %}
        if(partition >= 0 and offset >= 0L,
            concat(lpad(cast(partition as string), 10, '0'), '.', lpad(cast(offset as string), 20, '0')),
            concat(file, ':', lpad(cast(line as string), 12, '0')))
        {%- if topics | length > 1 %}
        {#- Two topics may have a record at one offset: their order has to be the same in each run. #},
        '.', {{ _hash_of_topic('topic') }}
        {%- endif %}
    )
{%- endmacro %}

{#-
    The epoch of a record: the greatest one that is declared for its topic at its offset or batch or before it, else 0.
    What the source logged after it started over sorts after all that it logged before.

    - logged: the topics of a change log whose rows are asked; none if records of bronze are. The two must agree.
-#}
{% macro _epoch(epochs, logged=none) -%}
    {%- if not epochs -%} '0000' {%- else -%}
    case
        {%- for declared in epochs | sort(attribute='epoch', reverse=true, case_sensitive=true) %}
        when {{ _is_of_epoch(declared, logged) | join(' and ') }} then '{{ '%04d' % declared.epoch }}'
        {%- endfor %}
        else '0000'
    end
    {%- endif -%}
{%- endmacro %}

{% macro _is_of_epoch(declared, logged) -%}
    {%- set topic, found = literal(declared.topic), [] -%}
    {%- if logged is none -%}
        {%- do found.append('topic = ' ~ topic) -%}
    {%- elif logged | length > 1 -%}
        {%- do found.append("endswith(_cdc_position, '.' || " ~ _hash_of_topic(topic) ~ ')') -%}
    {%- endif -%}
    {%- if declared.partition is defined -%}
        {%- set of_record = _has_coordinates() ~ ' and partition = ' ~ declared.partition | int -%}
        {%- set of_log = '_cdc_place_hash = xxhash64(' ~ topic ~ ', ' ~ declared.partition | int ~ ')' -%}
        {%- do found.append(of_record if logged is none else of_log) -%}
    {%- endif -%}
    {%- if declared.from_offset is defined -%}
        {%- do found.append(('offset' if logged is none else '_cdc_place_number') ~ ' >= '
            ~ declared.from_offset | int) -%}
    {%- endif -%}
    {%- if declared.from_batch is defined -%}
        {%- do found.append(('batch' if logged is none else '_cdc_batch') ~ ' >= ' ~ declared.from_batch | int) -%}
    {%- endif -%}
    {{ return(found or ['true']) }}
{%- endmacro %}

{#- The position of a row of a change log under these epochs; its first four digits are the epoch. -#}
{% macro _position_in_epochs(epochs, topics) -%}
    concat({{ _epoch(epochs, topics) }}, substring(_cdc_position, 5))
{%- endmacro %}

{% macro _hash_of_topic(topic) -%}
    lpad(hex(xxhash64({{ topic }})), 16, '0')
{%- endmacro %}

{#-
    The values of `source.snapshot` that mark a row of a snapshot at its position; `incremental` rows are ordered like
    changes.
-#}
{% macro initial_snapshot_marks() -%}
    ('true', 'first', 'first_in_data_collection', 'last_in_data_collection', 'last')
{%- endmacro %}

{#- The place of a change in the source's log: its position without what tells apart the records of one place. -#}
{% macro log_position() -%}
    {{ return("substring_index(_cdc_position, '.', 2)") }}
{%- endmacro %}

{#- The place in the log; of a change that has none its place in the topic. -#}
{% macro _log_or_topic_place() -%}
    {{ return('if(' ~ _has_no_log_place() ~ ', _cdc_position, ' ~ log_position() ~ ')') }}
{%- endmacro %}

{% macro _epoch_of_position() -%}
    {{ return("substring_index(_cdc_position, '.', 1)") }}
{%- endmacro %}

{#-
    Whether the order of the topic is all there is for a change. MongoDB's since 3.1 is not asked: its servers have a
    clock each.
-#}
{% macro _has_no_log_place(relation='') -%}
    endswith(substring_index({{ relation }}_cdc_position, '.', 2), '.')
{%- endmacro %}
