{#-
    The one place that knows which connectors there are, in the order in which `make run` recognises their events. A
    connector is a file beside this one whose macro gives the capabilities below, also to `scripts/connectors.py`; it is
    chosen by name here, so dbt sees every edge.
-#}
{% macro connector_names() -%}
    {{ return([
        'lindorm', 'huawei_cdl', 'postgresql', 'mysql', 'mariadb', 'sqlserver', 'oracle', 'db2', 'ibmi', 'informix',
        'mongodb', 'vitess', 'yashandb', 'spanner', 'cassandra', 'ticdc', 'cockroachdb', 'yugabytedb',
        'yugabytedb_yboutput', 'yugabytedb_pgoutput', 'flattened', 'generic',
    ]) }}
{%- endmacro %}

{#- Whether a record that no model reads is a heartbeat in a form that is not Debezium's. -#}
{% macro _is_heartbeat_of_a_vendor() -%}
    {{ _huawei_cdl_is_heartbeat() }} or {{ _cockroachdb_is_resolved(_event_member('resolved')) }}
{%- endmacro %}

{#- The capabilities of a connector by name: see `envelope_capabilities` for what each of them is. -#}
{% macro debezium_connector(connector) -%}
    {%- if connector == 'postgresql' -%} {{ return(postgresql_connector()) }}
    {%- elif connector in ('mysql', 'mariadb') -%} {{ return(mysql_connector()) }}
    {%- elif connector == 'huawei_cdl' -%} {{ return(huawei_cdl_connector()) }}
    {%- elif connector == 'lindorm' -%} {{ return(lindorm_connector()) }}
    {%- elif connector == 'sqlserver' -%} {{ return(sqlserver_connector()) }}
    {%- elif connector == 'oracle' -%} {{ return(oracle_connector()) }}
    {%- elif connector == 'db2' -%} {{ return(db2_connector()) }}
    {%- elif connector == 'ibmi' -%} {{ return(ibmi_connector()) }}
    {%- elif connector == 'informix' -%} {{ return(informix_connector()) }}
    {%- elif connector == 'mongodb' -%} {{ return(mongodb_connector()) }}
    {%- elif connector == 'vitess' -%} {{ return(vitess_connector()) }}
    {%- elif connector == 'yashandb' -%} {{ return(yashandb_connector()) }}
    {%- elif connector == 'spanner' -%} {{ return(spanner_connector()) }}
    {%- elif connector == 'cassandra' -%} {{ return(cassandra_connector()) }}
    {%- elif connector == 'cockroachdb' -%} {{ return(cockroachdb_connector()) }}
    {%- elif connector == 'ticdc' -%} {{ return(ticdc_connector()) }}
    {%- elif connector == 'yugabytedb' -%} {{ return(yugabytedb_connector()) }}
    {%- elif connector == 'yugabytedb_yboutput' -%} {{ return(yugabytedb_yboutput_connector()) }}
    {%- elif connector == 'yugabytedb_pgoutput' -%} {{ return(yugabytedb_pgoutput_connector()) }}
    {%- elif connector == 'flattened' -%} {{ return(flattened_connector()) }}
    {%- elif connector.startswith('flattened(') -%} {{ return(flattened_connector(connector[10:-1])) }}
    {%- elif connector == 'generic' -%} {{ return(generic_connector()) }}
    {%- else -%}
        {{ exceptions.raise_compiler_error(
            "debezium_changes: unknown connector '" ~ connector ~ "' in model " ~ model.name ~ ".\n"
            ~ "  Expected one of: " ~ connector_names() | sort(case_sensitive=true) | join(', ') ~ ".\n"
            ~ "  Use the name that Debezium writes in source.connector ('postgresql', not 'postgres')."
        ) }}
    {%- endif -%}
{%- endmacro %}

{#-
    The capabilities of a connector that writes Debezium's own envelope; a connector's macro replaces those in which it
    differs. Those that are expressions are SQL over `_event.payload`, the parsed value, and the record's own columns;
    the others are names, flags or lists.

    - form: how a row image is written. `rows`: an object with the columns; `cells`: each column an object `{"value": …,
      "set": …}` (key columns may be plain); `flat`: the columns are members of the value itself; `document`: a text of
      JSON, of which columns are fields,
    - source: the members of `source` that are read, as texts, beside connector, db, schema, table, snapshot and ts_ms,
    - not_from: names in `source.connector` of events that are another connector's, and are rejected,
    - read_as: the names of connectors that one model may read together, its own among them,
    - fields: further members of the value that are read, as a Spark schema; none of them may be named like an image,
    - greatest_scale: of decimals of the source: Flink CDC has been seen to write precision and scale in each other's
      place; none if a scale may be greater than the precision,
    - types_in_schema: whether its schema blocks have the types that its columns are declared by,
    - before, after: the members that may hold the row image; the first that is there counts,
    - op: the operation as Debezium's letter (c, r, u, d, t, m),
    - snapshot: the mark of `source.snapshot`,
    - position: the place in the source's log, as text that sorts in the source's order; NULL where it should be there
      and is not; '' where the connector has none and the order of the topic is all there is,
    - in_topic_order: whether the order of the topic is all there is for a record with the position `_source_position`.
      A row of a snapshot that is taken again is then newer than the changes before it in the topic; at a position it
      loses to the change there,
    - is_log: whether a later change of a key has a greater position. Where writers choose the time of their write, or
      records of a row come out of order, it may not, and a lesser one is no sign of a reset of the log,
    - passes_keys_on: the number of the transaction, where the source may give a row the key of another one that moves
      on later in it, or none,
    - ties: what decides between an event and a delete of one key at one position: `topic`, the order of the topic;
      `deletes_first`; `deletes_last`,
    - table: the names that identify the table inside an event, outermost first: members, or a `coalesce` of members,
    - table_by_topic: whether the topic may identify the table: then `table` of the model is the topic alone, and names
      inside events are not compared,
    - changed_at: milliseconds of the change in the source,
    - transaction_id: the transaction's own name,
    - key: the member of the value that holds the key of the row as it was, or none. Where there is one it counts before
      the record's own key,
    - document_key: of documents, the member of the record's key that holds the key as a text of JSON, and its column,
    - field_update: of documents, how an update tells what it did if it carries no document. `set`: a text of JSON, the
      fields that it set; `removed`: an array of those that it removed; `truncated`: an array of structs with the
      `field` and the new `size` of arrays; a dot in a field's name leads into an object or an array; `otherwise`: what
      to do where that cannot be applied,
    - left_out: how an event says that it leaves out a value that the row keeps. `never`; `placeholder`: Debezium's text
      in its place; `unset`: the cell is null or not set; `listed`: the placeholder, or no value for a column that is in
      `left_out_columns`; `untouched`: an update without a document does not name the field,
    - left_out_columns: an array of names, all of which have to be columns, or none,
    - null_is_ambiguous: whether a null in an update without `before` may stand for a value that the row keeps,
    - updates_parts_of_collections: whether an update of an array or a map may hold only the elements that changed,
    - splits_key_changes: whether `before` of an update may hold invented keys, so that only a delete and a create tell
      of a changed key, and another key in `before` rejects the update; otherwise such an update stands for both,
    - tombstone_deletes: whether a record without a value is a delete,
    - truncate_has_key: whether a truncate comes with a Kafka key, which is then not one of a row,
    - kind: further branches of a CASE that tell records which are no rows,
    - reject: further branches of a CASE with reasons to reject.
-#}
{% macro envelope_capabilities(capabilities) -%}
    {%- set found = {
        'form': 'rows',
        'source': [],
        'not_from': [],
        'read_as': [],
        'fields': ['transaction: struct<id: string>'],
        'greatest_scale': none,
        'types_in_schema': true,
        'before': ['before'],
        'after': ['after'],
        'op': 'lower(_event.payload.op)',
        'snapshot': '_event.payload.source.snapshot',
        'position': "''",
        'in_topic_order': "_source_position = ''",
        'is_log': true,
        'passes_keys_on': none,
        'ties': 'topic',
        'table': [],
        'table_by_topic': false,
        'changed_at': "coalesce(nullif(_event.payload.source.ts_ms, '0'), _event.payload.ts_ms)",
        'transaction_id': '_event.payload.transaction.id',
        'key': none,
        'document_key': none,
        'field_update': none,
        'left_out': 'never',
        'left_out_columns': none,
        'null_is_ambiguous': false,
        'updates_parts_of_collections': false,
        'splits_key_changes': false,
        'tombstone_deletes': false,
        'truncate_has_key': false,
        'kind': '',
        'reject': '',
    } -%}
    {%- for name in capabilities if name not in found -%}
        {{ exceptions.raise_compiler_error('connector: there is no capability ' ~ name ~ '; there are '
            ~ found | join(', ')) }}
    {%- endfor -%}
    {%- do found.update(capabilities) -%}
    {%- do found.update({'source': ['connector', 'db', 'schema', 'table', 'snapshot', 'ts_ms'] + found.source}) -%}
    {{ return(found) }}
{%- endmacro %}

{#-
    A number that is no text yet, as text of a fixed width that sorts like the number. NULL where it is
    negative or wider: a position that cannot be compared must be seen, not guessed.
-#}
{% macro sortable_number(number, width) -%}
    case when {{ number }} >= 0 and length(cast({{ number }} as string)) <= {{ width }}
        then {{ zero_padded('cast(' ~ number ~ ' as string)', width) }} end
{%- endmacro %}

{#-
    A text of at most `width` characters with zeros before it. Spark's `lpad` copies them one at a time, for each
    position.
-#}
{% macro zero_padded(text, width) -%}
    substring(concat('{{ '0' * width }}', {{ text }}), -{{ width }})
{%- endmacro %}

{#- Whether an event is a row of a snapshot, by its mark or its operation: writers have been seen to drop the mark. -#}
{% macro is_snapshot_row() -%}
    (lower(_event.payload.op) = 'r' or lower(coalesce(_event.payload.source.snapshot, '')) not in ('', 'false'))
{%- endmacro %}

{#-
    A log sequence number of SQL Server or Db2, hexadecimal `8:8:4` or `8:8:16` digits, as text of one width that sorts
    like it; `unknown` where the event says that it has none, NULL where it is no such number.
-#}
{% macro sortable_lsn(lsn, unknown) -%}
    case
        when {{ _is_no_lsn(lsn) }} then {{ unknown }}
        when {{ lsn }} rlike '^[0-9a-fA-F]{8}:[0-9a-fA-F]{8}:([0-9a-fA-F]{4}|[0-9a-fA-F]{16})$'
            then lower(concat(left({{ lsn }}, 18), lpad(substr({{ lsn }}, 19), 16, '0')))
    end
{%- endmacro %}

{% macro _is_no_lsn(lsn) -%}
    coalesce(upper({{ lsn }}), '') in ('', 'NULL', '00')
{%- endmacro %}

{#- The first of all log sequence numbers. -#}
{% macro _lsn_zero() -%}
    '00000000:00000000:0000000000000000'
{%- endmacro %}
