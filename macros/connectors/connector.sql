{#-
    The one place that knows which connectors there are. A connector is a file beside this one whose macro
    gives the capabilities below; it is chosen by name here, so dbt sees every edge.
-#}
{% macro connector_names() -%}
    {{ return(['generic', 'huawei_cdl', 'lindorm', 'mariadb', 'mysql', 'postgresql']) }}
{%- endmacro %}


{#- The capabilities of a connector by name: see `envelope_capabilities` for what each of them is. -#}
{% macro debezium_connector(connector) -%}
    {%- if connector == 'postgresql' -%} {{ return(postgresql_connector()) }}
    {%- elif connector in ('mysql', 'mariadb') -%} {{ return(mysql_connector()) }}
    {%- elif connector == 'huawei_cdl' -%} {{ return(huawei_cdl_connector()) }}
    {%- elif connector == 'lindorm' -%} {{ return(lindorm_connector()) }}
    {%- elif connector == 'generic' -%} {{ return(generic_connector()) }}
    {%- else -%}
        {{ exceptions.raise_compiler_error(
            "debezium_changes: unknown connector '" ~ connector ~ "' in model " ~ model.name ~ ".\n"
            ~ "  Expected one of: " ~ connector_names() | join(', ') ~ ".\n"
            ~ "  Use the name that Debezium writes in source.connector ('postgresql', not 'postgres')."
        ) }}
    {%- endif -%}
{%- endmacro %}


{#-
    The capabilities of a connector that writes Debezium's own envelope; a connector's macro replaces those in
    which it differs. All but the first four are SQL over `_event.payload`, the parsed value, and the record's own columns.

    - form: how a row image is written. `rows`: an object with the columns; `cells`: each column an object
      `{"value": …, "set": …}`; `flat`: the columns are members of the value itself; `document`: a text of JSON,
    - source: the members of `source` that are read, as texts,
    - not_from: names in `source.connector` of events that are another connector's, and are rejected,
    - fields: further members of the value that are read, as a Spark schema; none of them may be named like an image,
    - before, after: the member that holds the row image, or a list of members of which the first that is there counts,
    - op: the operation as Debezium's letter (c, r, u, d, t, m),
    - snapshot: the mark of `source.snapshot`,
    - position: the place in the source's log, as text that sorts in the source's order; NULL where it should be
      there and is not; '' where the connector has none and the order of the topic is all there is,
    - table: the names that identify the table inside an event, outermost first,
    - changed_at: milliseconds of the change in the source,
    - transaction_id: the transaction's own name,
    - key: the member of the value that holds the key of the row as it was, or none. Where there is one it counts before the
      record's own key,
    - left_out: how an event says that it leaves out a value that the row keeps. `never`; `placeholder`: Debezium's text in
      its place; `unset`: the cell is null or not set; `listed`: the placeholder, or no value for a column that is in
      `left_out_columns`,
    - left_out_columns: an array of names, all of which have to be columns, or none,
    - splits_key_changes: whether `before` of an update may hold invented keys, so that only a delete and a create tell of
      a changed key, and another key in `before` rejects the update; otherwise such an update stands for both,
    - tombstone_deletes: whether a record without a value is a delete,
    - kind: further branches of a CASE that tell records which are no rows,
    - reject: further branches of a CASE with reasons to reject.
-#}
{% macro envelope_capabilities(capabilities) -%}
    {%- set found = {
        'form': 'rows',
        'source': ['connector', 'db', 'schema', 'table', 'snapshot', 'ts_ms'],
        'not_from': [],
        'fields': ['transaction: struct<id: string>'],
        'before': 'before',
        'after': 'after',
        'op': 'lower(_event.payload.op)',
        'snapshot': '_event.payload.source.snapshot',
        'position': "''",
        'table': [],
        'changed_at': "coalesce(nullif(_event.payload.source.ts_ms, '0'), _event.payload.ts_ms)",
        'transaction_id': '_event.payload.transaction.id',
        'key': none,
        'left_out': 'never',
        'left_out_columns': none,
        'splits_key_changes': false,
        'tombstone_deletes': false,
        'kind': '',
        'reject': '',
    } -%}
    {%- for name in capabilities if name not in found -%}
        {{ exceptions.raise_compiler_error('connector: there is no capability ' ~ name ~ '; there are ' ~ found | join(', ')) }}
    {%- endfor -%}
    {%- do found.update(capabilities) -%}
    {{ return(found) }}
{%- endmacro %}


{#-
    A number that is no text yet, as text of a fixed width that sorts like the number. NULL where it is
    negative or wider: a position that cannot be compared must be seen, not guessed.
-#}
{% macro sortable_number(number, width) -%}
    if({{ number }} >= 0 and length(cast({{ number }} as string)) <= {{ width }},
       lpad(cast({{ number }} as string), {{ width }}, '0'), null)
{%- endmacro %}
