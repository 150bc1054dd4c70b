{#- What a model declares: whether it can be, and by what a table was built. -#}


{% macro _check_declaration(c, topics, table, keys, columns, routed, renamed) -%}
    {%- set problems = [] -%}
    {%- set meta = (config.get('meta') or {}).get('debezium', {}) if execute and model.resource_type == 'model' else {} -%}
    {%- if meta.topics and meta.topics | sort(case_sensitive=true) != topics | sort(case_sensitive=true) -%}
        {%- do problems.append("topics is " ~ topics ~ ", and meta.debezium.topics in its YAML, by which new records are found, is " ~ meta.topics ~ ": give both the same") -%}
    {%- endif -%}
    {%- for name in keys if name not in columns -%}
        {%- do problems.append("key '" ~ name ~ "' is not among the columns (" ~ columns | join(', ') ~ ")") -%}
    {%- endfor -%}
    {%- set seen = {} -%}
    {%- for name in columns -%}
        {%- if name == '' or name.lower().startswith('_cdc_') -%}
            {%- do problems.append("a column is named '" ~ name ~ "'; names that begin with _cdc_ are those of the metadata columns") -%}
        {%- endif -%}
        {%- if name | lower in reserved_columns() -%}
            {%- do problems.append(
                "a column is named '" ~ name ~ "', which Iceberg keeps for its metadata: the table could not be read. "
                ~ "Name it '" ~ name ~ "_source' in columns and keys, and say "
                ~ "renamed = {'" ~ name ~ "_source': '" ~ name ~ "'}"
            ) -%}
        {%- endif -%}
        {%- if name | lower in seen -%}
            {%- do problems.append("columns '" ~ seen[name | lower] ~ "' and '" ~ name ~ "' differ in case only, which Spark cannot tell apart") -%}
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
    {%- if c.document_key and keys and keys != [c.document_key[1]] -%}
        {%- do problems.append("keys is " ~ keys ~ "; a document is identified by ['" ~ c.document_key[1] ~ "']") -%}
    {%- endif -%}
    {%- if c.table | length > table | length and not (c.table_by_topic and table | length == 1) -%}
        {%- do problems.append("table is " ~ table ~ "; expected a name for each of " ~ c.table | join(', ')) -%}
    {%- endif -%}
    {%- if routed and (not c.table or c.table | length != table | length) -%}
        {%- do problems.append("table is " ~ table ~ ", which the events do not name, so they cannot be routed; read the bronze table without routed") -%}
    {%- endif -%}
    {%- if problems -%}
        {{ exceptions.raise_compiler_error('debezium_changes in model ' ~ model.name ~ ': ' ~ problems | join('; ') ~ '.') }}
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
    By what a table was built. The number grows with changes of these macros that give other rows of the same events: then
    existing tables are rebuilt.
-#}
{% macro declaration_digest(text) -%}
    {{ return(local_md5('6 ' ~ text)) }}
{%- endmacro %}


{#-
    An event that is merged is read in no increment again: with other columns, topics or another connector the table is built
    anew, so that a new column or topic has its history. `on_schema_change: fail` stops here where columns changed.
-#}
{% macro _report_changed_declaration(before, now) -%}
    {%- set added = now | reject('in', before) | list -%}
    {%- set removed = before | reject('in', now) | list -%}
    {%- set told -%}
        model {{ model.name }}: {% if added or removed -%}
            columns added: {{ added | join(', ') or 'none' }}; removed: {{ removed | join(', ') or 'none' }}
        {%- else -%}
            its staging model changed
        {%- endif -%}
    {%- endset -%}
    {%- if config.get('on_schema_change') == 'fail' and (added or removed) -%}
        {{ exceptions.raise_compiler_error(told ~ '.\n  on_schema_change is fail; rebuild the table with --full-refresh to take them.') }}
    {%- endif -%}
    {%- do log(told ~ '; the table is rebuilt from all events', info=true) -%}
{%- endmacro %}


{% macro _stored_columns(relation) -%}
    {%- set names = [] -%}
    {%- for column in adapter.get_columns_in_relation(relation) if not column.name.startswith('_cdc_') -%}
        {%- do names.append(column.name) -%}
    {%- endfor -%}
    {{ return(names) }}
{%- endmacro %}


{#- dbt reads a line break in a text of its YAML as none, or as another. -#}
{% macro _without_blanks(names) -%}
    {%- set found = [] -%}
    {%- for name in names -%} {%- do found.append(modules.re.sub('\\s', '', name)) -%} {%- endfor -%}
    {{ return(found) }}
{%- endmacro %}
