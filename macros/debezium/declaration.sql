{#- What a model declares: whether it can be, and by what a table was built. -#}

{% macro _check_declaration(c, topics, table, keys, columns, routed, renamed) -%}
    {%- set problems = [] -%}
    {%- set meta = meta_of_model() -%}
    {%- if meta.topics and meta.topics | sort(case_sensitive=true) != topics | sort(case_sensitive=true) -%}
        {%- do problems.append("topics is " ~ topics
            ~ ", and meta.debezium.topics in its YAML, by which new records are found, is " ~ meta.topics
            ~ ": give both the same") -%}
    {%- endif -%}
    {%- for name in keys if name not in columns -%}
        {%- do problems.append("key '" ~ name ~ "' is not among the columns (" ~ columns | join(', ') ~ ")") -%}
    {%- endfor -%}
    {%- set seen = {} -%}
    {%- for name in columns -%}
        {%- if name == '' or name.lower().startswith('_cdc_') -%}
            {%- do problems.append("a column is named '" ~ name
                ~ "'; names that begin with _cdc_ are those of the metadata columns") -%}
        {%- endif -%}
        {%- if name | lower in reserved_columns() -%}
            {%- do problems.append(
                "a column is named '" ~ name ~ "', which Iceberg keeps for its metadata: the table could not be read. "
                ~ "Name it '" ~ name ~ "_source' in columns and keys, and say "
                ~ "renamed = {'" ~ name ~ "_source': '" ~ name ~ "'}"
            ) -%}
        {%- endif -%}
        {%- if name | lower in seen -%}
            {%- do problems.append("columns '" ~ seen[name | lower] ~ "' and '" ~ name
                ~ "' differ in case only, which Spark cannot tell apart") -%}
        {%- endif -%}
        {%- do seen.update({name | lower: name}) -%}
    {%- endfor -%}
    {%- for name in renamed if name not in columns -%}
        {%- do problems.append("renamed has '" ~ name ~ "', which is none of the columns: " ~ columns | join(', ')) -%}
    {%- endfor -%}
    {%- if _in_events(keys, columns, renamed)[1] | length < columns | length -%}
        {%- do problems.append('renamed is ' ~ renamed ~ ', by which two columns have one name in the events') -%}
    {%- endif -%}
    {%- if 'shard' in columns.values() and (c.form == 'document' or (columns.values() | list).count('shard') > 1) -%}
        {%- do problems.append('a table of rows has one column of type shard at most, a table of documents none') -%}
    {%- endif -%}
    {%- for name, type in columns.items() if ' | ' in type and (name in keys or c.form not in ('rows', 'flat')) -%}
        {%- do problems.append("column '" ~ name ~ "' is declared " ~ type
            ~ "; several types are for columns of rows outside of the key") -%}
    {%- endfor -%}
    {%- if c.document_key and keys and keys != [c.document_key[1]] -%}
        {%- do problems.append("keys is " ~ keys ~ "; a document is identified by ['" ~ c.document_key[1] ~ "']") -%}
    {%- endif -%}
    {%- if c.table | length > table | length and not (c.table_by_topic and table | length == 1) -%}
        {%- do problems.append("table is " ~ table ~ "; expected a name for each of " ~ c.table | join(', ')) -%}
    {%- endif -%}
    {%- if routed and (not c.table or c.table | length != table | length) -%}
        {%- do problems.append("table is " ~ table
            ~ ", which the events do not name, so they cannot be routed; read the bronze table without routed") -%}
    {%- endif -%}
    {%- if problems -%}
        {{ exceptions.raise_compiler_error('debezium_changes in model ' ~ model.name ~ ': ' ~ problems | join('; ')
            ~ '.') }}
    {%- endif -%}
{%- endmacro %}

{#- What the YAML of this model says of its table. -#}
{% macro meta_of_model() -%}
    {{ return((config.get('meta') or {}).get('debezium', {}) if model.resource_type == 'model' else {}) }}
{%- endmacro %}

{#- Whether a model that reads a change log has its key: a delete has that one only. -#}
{% macro _check_keys(keys, source) -%}
    {%- if keys and source['keys'] is not none and _without_blanks(source['keys']) != _without_blanks(keys) -%}
        {{ exceptions.raise_compiler_error(
            'model ' ~ model.name ~ ': the key is ' ~ tojson(keys) ~ ', and its staging model has '
                ~ tojson(source['keys']) ~ ' (`keys` in the meta of its YAML).\n'
            ~ '  A delete has the key of the staging model only. '
            ~ 'Write the same in both models and in the YAML, and build both.'
        ) }}
    {%- endif -%}
{%- endmacro %}

{#- Keys and columns under the names that they have in the events. -#}
{% macro _in_events(keys, columns, renamed) -%}
    {%- set named, in_key = {}, [] -%}
    {%- for name, type in columns.items() -%} {%- do named.update({renamed.get(name, name): type}) -%} {%- endfor -%}
    {%- for name in keys -%} {%- do in_key.append(renamed.get(name, name)) -%} {%- endfor -%}
    {{ return([in_key, named]) }}
{%- endmacro %}

{#-
    By what a table was built. The number grows with changes of these macros that give other rows of the same events:
    then existing tables are rebuilt.
-#}
{% macro declaration_digest(text) -%}
    {{ return(local_md5('9 ' ~ text)) }}
{%- endmacro %}

{#- What the arguments of `debezium_changes` declare, as text. -#}
{% macro _declared_text(declared) -%}
    {{ return(tojson(dict(declared, events=none, engine=declaration_digest('')))) }}
{%- endmacro %}

{#- Whether the arguments of `debezium_changes` are others, which a text with `var()` does not tell. -#}
{% macro _is_declared_otherwise(stored, declared) -%}
    {%- set now = fromjson(_declared_text(dict(declared, epochs=none))) -%}
    {%- for name, value in fromjson(stored.get('cdc.declared') or '{}').items() if name != 'epochs'
        and now.get(name, value) != value -%} {{ return(true) }} {%- endfor -%}
    {{ return(false) }}
{%- endmacro %}

{#- The name of the last rebuild of a change log, from its properties. -#}
{% macro _base(stored) -%}
    {{ return(stored.get('cdc.base') or stored.get('cdc.declaration')) }}
{%- endmacro %}

{#-
    The columns that a change log has to get; none if its rows would be others with what is declared now, so that it has
    to be rebuilt. Other epochs are no reason: `_follow_epochs`.

    A record that does not name a column has the same row with it, and NULL there. So the records that may name it are
    typed once more, from bronze.

    - stored: the properties of the log,
    - declared: the arguments of `debezium_changes`,
    - above: the newest batch that the log has read.
-#}
{% macro _columns_added_to_log(stored, declared, above) -%}
    {%- set stored = fromjson(stored.get('cdc.declared') or '{}') -%}
    {%- set before = stored.get('columns', {}) -%}
    {%- do _check_not_older(before, declared) -%}
    {%- set added = declared.columns.keys() | reject('in', before) | list -%}
    {%- set columns, renamed, named = {}, {}, [] -%}
    {%- for name, type in declared.columns.items() if name in before -%}
        {%- do columns.update({name: type}) -%}
    {%- endfor -%}
    {%- for name, in_events in declared.renamed.items() if name in before -%}
        {%- do renamed.update({name: in_events}) -%}
    {%- endfor -%}
    {%- set has_other_rows = tojson(dict(stored, epochs=none))
        != _declared_text(dict(declared, columns=columns, renamed=renamed, epochs=none)) -%}
    {%- for name in added if not has_other_rows -%}
        {%- do named.append(declared.renamed.get(name, name)) -%}
    {%- endfor -%}
    {%- if has_other_rows or added
        and not _is_null_where_absent(declared, added, named) -%} {{ return(none) }} {%- endif -%}
    {%- set condition = ' and ' ~ _batches('batch', 0, above) ~ ' and (' ~ _may_have_members(named) ~ ')' -%}
    {%- set of_topics = 'topic in (' ~ _literals(declared.topics) ~ ')' -%}
    {%- if not (added and above) or not run_query(
        'select count(*) from ' ~ declared.events ~ ' where ' ~ of_topics ~ condition
    ).rows[0][0] -%}
        {{ return(added) }}
    {%- endif -%}
    {%- set typed = _typed_records(**dict(declared, condition=condition)) -%}
    {%- set others = "_cdc_kind = 'rejected' or " ~ _have_something_in(added) -%}
    {{ return(none if run_query('select 1 from (' ~ typed ~ ') as typed where ' ~ others ~ ' limit 1').rows
        else added) }}
{%- endmacro %}

{#-
    An error if a change log has columns that neither its model nor the YAML beside it names: a checkout of older models
    would take them away.
-#}
{% macro _check_not_older(before, declared) -%}
    {%- set known, lacking = meta_of_model().columns, {} -%}
    {%- for name, type in before.items() if known and name not in known and name not in declared.columns
        and name not in declared.renamed.values() -%}
        {%- do lacking.update({name: type}) -%}
    {%- endfor -%}
    {%- if lacking -%}
        {{ exceptions.raise_compiler_error('model ' ~ model.name ~ ': ' ~ this ~ ' has columns that neither this model '
            ~ 'nor its YAML names: ' ~ tojson(lacking) ~ '.\n'
            ~ '  Its models are older than the table. Take the newer files of models/, or declare these columns again; '
            ~ 'to take them away,\n  run .venv/bin/dbt run --full-refresh --select ' ~ model.name ~ '+') }}
    {%- endif -%}
{%- endmacro %}

{#-
    Whether a record that does not name a column has the same row with that column as without it. `named`: the columns
    as events name them.
-#}
{% macro _is_null_where_absent(declared, added, named) -%}
    {%- set c = debezium_connector(declared.connector) -%}
    {%- set reads_otherwise = ['payload'] + (_flat_markers({}).keys() | map('lower') | list if c.form == 'flat'
        else []) -%}
    {%- for name in added -%}
        {%- if declared.columns[name] == 'shard'
            or named[loop.index0] | lower in reads_otherwise -%} {{ return(false) }} {%- endif -%}
    {%- endfor -%}
    {{ return(c.left_out not in ('unset', 'untouched') and not c.null_is_ambiguous) }}
{%- endmacro %}

{#-
    The condition that a record may have one of some members: its text has the name, or has letters escaped. No writer
    escapes ASCII letters and digits; some escape the letters of other languages.
-#}
{% macro _may_have_members(names) -%}
    {%- set marks = [] -%}
    {%- for name in names -%}
        {%- if modules.re.search('["&/<>\\\\\x00-\x1f]', name) -%} {%- do marks.append('true') -%} {%- endif -%}
        {%- do marks.append('contains(value, ' ~ literal('"' ~ name ~ '"') ~ ')'
            ~ ('' if name.isascii() else " or contains(value, '\\\\u')")) -%}
    {%- endfor -%}
    {{ marks | join(' or ') }}
{%- endmacro %}

{#- The condition that a change has a value, or an unavailable one, in one of some columns. -#}
{% macro _have_something_in(names) -%}
    {%- set found = [] -%}
    {%- for name in names -%}
        {%- do found.append(quoted(name) ~ ' is not null or array_contains(_cdc_omitted, ' ~ literal(name) ~ ')') -%}
    {%- endfor -%}
    {{ return(found | join(' or ')) }}
{%- endmacro %}

{#-
    The columns that silver or a history has to get; none if merged changes have something in them, or if it has others,
    so that it has to be rebuilt. `merged`: the condition of merged changes.
-#}
{% macro _columns_added_to_silver(stored, changes, columns, merged) -%}
    {%- set before = fromjson(stored.get('cdc.columns', '[]')) -%}
    {%- set added = columns | reject('in', before) | list -%}
    {%- if columns | select('in', before) | list != before -%} {{ return(none) }} {%- endif -%}
    {%- if added and run_query(
        'select 1 from ' ~ changes ~ ' where ' ~ merged ~ ' and (' ~ _have_something_in(added) ~ ') limit 1'
    ).rows -%}
        {{ return(none) }}
    {%- endif -%}
    {{ return(added) }}
{%- endmacro %}

{#-
    An event that is merged is read in no increment again: where it has something in a new column or topic, or connector
    and keys are others, the table is rebuilt. `on_schema_change: fail` stops here where columns changed.
-#}
{% macro _report_changed_declaration(before, now, is_new) -%}
    {%- set added = now | reject('in', before) | list -%}
    {%- set removed = before | reject('in', now) | list -%}
    {%- set told -%}
        model {{ model.name }}: {% if added or removed -%}
            columns added: {{ added | join(', ') or 'none' }}; removed: {{ removed | join(', ') or 'none' }}
        {%- else -%}
            its change log was rebuilt
        {%- endif -%}
    {%- endset -%}
    {%- if config.get('on_schema_change') == 'fail' and (added or removed) -%}
        {{ exceptions.raise_compiler_error(told
            ~ '.\n  on_schema_change is fail; rebuild the table with --full-refresh to take them.') }}
    {%- endif -%}
    {%- do log(told ~ ('; the table is rebuilt from all events' if is_new else ''), info=true) -%}
{%- endmacro %}

{#- dbt reads a line break in a text of its YAML as none, or as another. -#}
{% macro _without_blanks(names) -%}
    {%- set found = [] -%}
    {%- for name in names -%} {%- do found.append(modules.re.sub('\\s', '', name)) -%} {%- endfor -%}
    {{ return(found) }}
{%- endmacro %}
