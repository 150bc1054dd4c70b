{#- The landed records that a model reads. -#}

{#-
    What the staging model behind `changes` reads. It is found by its name: with `--defer` the relation has another
    schema than the model.
-#}
{% macro _records_of(changes) -%}
    {%- for id in model.depends_on.nodes if graph.nodes.get(id) and graph.nodes[id].alias == changes.identifier -%}
        {%- set staging = graph.nodes[id] -%}
        {%- if staging.depends_on.nodes -%} {{ return(_records_read_by(staging)) }} {%- endif -%}
    {%- endfor -%}
    {{ exceptions.raise_compiler_error(
        'model ' ~ model.name ~ ': changes has to be ref() of a staging model that reads the records of a system; '
        ~ 'found ' ~ changes ~ '.'
    ) }}
{%- endmacro %}

{#-
    - id: of a staging model,
    - relation: the records that it reads,
    - bronze: the records that have landed,
    - topics, connector: those of its `meta`; none where it has none,
    - table: the names of the table in the source, of its `meta`; none where it has none,
    - keys: the key columns of its `meta`; none where it has none,
    - routed_by: the events model that it reads, or none,
    - declaration: its text,
    - is_of_documents: whether its rows are documents with a key,
    - passes_keys_on: whether rows may pass keys on in a transaction,
    - tells_moves: whether the staging model has what tells that; not where its text names another connector than its
      `meta`.
-#}
{% macro _records_read_by(staging) -%}
    {%- set parent = staging.depends_on.nodes[0] -%}
    {%- set records = graph.sources.get(parent) or graph.nodes[parent] -%}
    {%- if parent not in graph.sources and records.config.get('incremental_strategy') != 'debezium_merge' -%}
        {{ exceptions.raise_compiler_error(
            'model ' ~ model.name ~ ': changes has to be ref() of a staging model that reads the records of a system; '
                ~ staging.name ~ ' reads ' ~ records.name ~ '.'
        ) }}
    {%- endif -%}
    {%- set meta = staging.config.get('meta', {}).get('debezium', {}) -%}
    {%- set bronze = graph.sources.get(parent) or graph.sources.get(records.depends_on.nodes | first) or records -%}
    {{ return({
        'id': staging.unique_id,
        'bronze': api.Relation.create(schema = bronze.schema, identifier = bronze.identifier or bronze.alias),
        'relation': api.Relation.create(schema = records.schema, identifier = records.identifier or records.alias),
        'topics': meta.get('topics', []),
        'connector': meta.get('connector', ''),
        'table': meta.get('table'),
        'keys': meta.get('keys'),
        'routed_by': parent if parent in graph.nodes else none,
        'declaration': staging.raw_code,
        'is_of_documents': is_of_documents(meta),
        'passes_keys_on': _passes_keys_on(meta),
        'tells_moves': _passes_keys_on(meta)
            and ("'" ~ meta.connector ~ "'" in staging.raw_code or '"' ~ meta.connector ~ '"' in staging.raw_code),
    }) }}
{%- endmacro %}

{#- Whether a text of a model has none of some names. -#}
{% macro _names_none_of(text, names) -%}
    {%- for name in names if literal(name) in text or tojson(name) in text -%} {{ return(false) }} {%- endfor -%}
    {{ return(true) }}
{%- endmacro %}

{#-
    The newest batch whose records can be read. An events model may be behind bronze if a run left it out; then it is
    the batch that this model has read.
-#}
{% macro newest_batch_of(source) -%}
    {%- if not source.routed_by -%} {{ return(landed_batches(source.bronze).last) }} {%- endif -%}
    {%- set routed = bounds_of_run().get(source.routed_by) -%}
    {%- set text = graph.nodes[source.routed_by].raw_code -%}
    {%- set alike = debezium_connector(source.connector).read_as if source.connector else [] -%}
    {%- for topic in source.topics + ([source.connector] if source.connector else []) if _names_none_of(text,
        alike if topic in alike else [topic]) -%}
        {{ exceptions.raise_compiler_error(
            'model ' ~ model.name ~ ': it reads ' ~ source.relation ~ ', whose model does not name ' ~ literal(topic)
                ~ ': give both the same topics and connector.'
        ) }}
    {%- endfor -%}
    {%- set stored = {} if routed else _table_properties(source.relation) -%}
    {%- set declaration = declaration_digest(text) -%}
    {%- do _check_bronze(source.bronze, stored) -%}
    {%- if not routed and stored.get('cdc.declaration') != declaration -%}
        {{ exceptions.raise_compiler_error(
            'model ' ~ model.name ~ ': ' ~ source.relation
                ~ ' was built by another text of its model than it has now, and is not in this run.\n'
            ~ '  Build it with the models that read it: .venv/bin/dbt run --select ' ~ source.relation.identifier ~ '+'
        ) }}
    {%- endif -%}
    {{ return(routed.up_to if routed else merged_up_to(source.relation, "max(batch), ''", stored).up_to) }}
{%- endmacro %}

{#-
    The newest batch of a system (`last`, 0 if none), the `id` of its bronze table, and the newest batch of which
    records were pruned, by topic (`pruned`). The loader changes the id when batches are rolled back. It is asked once a
    run.
-#}
{% macro landed_batches(bronze) -%}
    {%- set known = graph.setdefault('debezium_landed', {}) -%}
    {%- set place = invocation_id ~ bronze -%}
    {%- if place not in known -%}
        {%- set properties = _table_properties(bronze) -%}
        {%- do known.update({place: {'id': properties.get('cdc.id', ''),
            'pruned': fromjson(properties.get('cdc.pruned-topics') or '{}'),
            'last': (run_query('select max(batch) from ' ~ bronze).rows[0][0] or 0) | int}}) -%}
    {%- endif -%}
    {{ return(known[place]) }}
{%- endmacro %}

{#-
    Whether a change log has records to read in the batches above `above`. Bronze is asked once for all change logs that
    have read as much.
-#}
{% macro _has_records(source, above, up_to) -%}
    {%- set batches = 'batch > ' ~ above ~ ' and batch <= ' ~ up_to -%}
    {%- if source.routed_by or not source.topics -%}
        {%- set of_table = ' and ' ~ _is_of_table(source.table) if source.routed_by and source.table else '' -%}
        {%- set in_topics = ' and topic in (' ~ _literals(source.topics) ~ ')' if source.topics else '' -%}
        {{ return(run_query('select 1 from ' ~ source.relation ~ ' where ' ~ batches ~ in_topics ~ of_table
            ~ ' limit 1').rows | length > 0) }}
    {%- endif -%}
    {%- set arrived = _arrived(source.relation, above, up_to) -%}
    {%- for topic in source.topics if arrived.get('topic ' ~ topic, 0) > above -%} {{ return(true) }} {%- endfor -%}
    {{ return(false) }}
{%- endmacro %}

{#-
    The topics of bronze that have records in batches above `above`, perhaps some in older ones too: `topic <name>` →
    their newest batch. Of records without a topic and lines that are no records the name is `other`.
-#}
{% macro _arrived(bronze, above, up_to) -%}
    {%- set known = graph.setdefault('debezium_landed', {}) -%}
    {%- set place = invocation_id ~ bronze ~ ' up to ' ~ up_to -%}
    {%- set asked = known.get(place) -%} {#- which another thread may replace meanwhile -#}
    {%- if asked is none or asked.above > above -%}
        {%- set asked = {'above': above, 'newest': {}} -%}
        {#- With a word before it, a topic of digits stays a text for dbt. -#}
        {%- set name = "if(error is null and topic is not null, 'topic ' || topic, 'other')" -%}
        {%- for row in run_query('select ' ~ name ~ ', max(batch) from ' ~ bronze ~ ' where batch > ' ~ above
            ~ ' and batch <= ' ~ up_to ~ ' group by 1').rows -%}
            {%- do asked.newest.update({row[0]: row[1] | int}) -%}
        {%- endfor -%}
        {%- do known.update({place: asked}) -%}
    {%- endif -%}
    {{ return(asked.newest) }}
{%- endmacro %}

{#-
    If batches of bronze were rolled back, or bronze was created again, a table no longer matches it and merges nothing
    more.
-#}
{% macro _check_bronze(bronze, stored) -%}
    {%- set id = landed_batches(bronze).id -%}
    {%- if stored.get('cdc.bronze', id) != id -%}
        {{ exceptions.raise_compiler_error(
            'model ' ~ model.name ~ ': ' ~ bronze
                ~ ' is not what it was built from: batches were rolled back, or the table was recreated.\n'
            ~ '  Land again what is missing, and build all that reads it from what is there then:\n'
            ~ '  .venv/bin/dbt run --full-refresh --select source:' ~ bronze.schema ~ '.' ~ bronze.identifier ~ '+'
        ) }}
    {%- endif -%}
{%- endmacro %}

{#- Whether a record has its place in Kafka; else its place is a line of a file. -#}
{% macro _has_coordinates() -%}
    partition is not null and offset is not null
{%- endmacro %}

{#- The name of a record: its coordinates in Kafka, else file and line. -#}
{% macro _record_id(records='') -%}
    {%- set of = records ~ '.' if records else '' -%}
    coalesce(concat({{ of }}topic, '/', cast({{ of }}partition as string), '/', cast({{ of }}offset as string)),
        concat({{ of }}file, ':', cast({{ of }}line as string)))
{%- endmacro %}
