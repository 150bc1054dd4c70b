{#-
    What the landed records were: for each batch and table how many of each kind, operation and reason to reject. The
    rows of a batch replace those that it had, so counting it again changes nothing.
-#}
{% macro debezium_event_counts(events, tables) -%}
    {%- set bounds = _start_counting(events, tables) -%}
    {%- set parts = [] -%}
    {%- for table, models in tables.items() if table not in bounds.quiet -%}
        {%- do parts.append('select ' ~ literal(table) ~ ' as source_table, * from ('
            ~ count_changes_sql(models[0], _uncounted(bounds, table, '_cdc_batch')) ~ ') as counted') -%}
    {%- endfor -%}
    {%- do parts.append(_count_other_records(events, bounds)) if bounds.has_others or not parts -%}
select
    cast(batch as bigint) as batch,
    cast(source_table as string) as source_table,
    cast(kind as string) as kind,
    cast(op as string) as op,
    cast(reject_reason as string) as reject_reason,
    cast(events as bigint) as events,
    newest_change_at
from (
    {{ parts | join('\n    union all\n    ') }}
) as counts
{%- endmacro %}

{#- Records of topics that are no table's, and lines that are no records: counted without a table. -#}
{% macro _count_other_records(events, bounds) -%}
    select
        null as source_table,
        batch,
        kind,
        null as op,
        error as reject_reason,
        count(*) as events,
        cast(null as timestamp) as newest_change_at
    from (
        select batch, {{ _kind_of_other_record() }} as kind, error
        from (
            {%- set members -%}
                op string, source struct<name string>, status string, ddl string, tableChanges string,
                historyRecord string, aggregate_type string,
                ts_ms string, isHeartbeat string, message_version string, OPERATION string, resolved string
            {%- endset %}
            select *, from_json(value, 'payload struct<{{ members }}>, {{ members }}') as event
            from {{ events }}
            where
                {{ _uncounted(bounds, none, 'batch') }}
                {% if bounds.topics -%} and (error is not null or topic is null
                    or topic not in ({{ _literals(bounds.topics) }})) {%- endif %}
        ) as records
        {%- for routed in bounds.routed %}
        union all
        select
            batch,
            case when error is not null then 'rejected' when kind in ('change', 'truncate') then 'change_without_model'
                else kind end as kind,
            error
        from {{ routed }}
        where {{ _uncounted(bounds, none, 'batch') }} and {{ _is_of_no_model(bounds) }}
        {%- endfor %}
    ) as others
    group by batch, kind, error
{%- endmacro %}

{% macro _kind_of_other_record() -%}
    case
        when error is not null then 'rejected'
        when value is null or octet_length(value) < 64 and trim(value) = '' then 'tombstone'
        when {{ _event_member('isHeartbeat') }} = 'true' or {{ _is_heartbeat_of_a_vendor() }} then 'heartbeat'
        when lower({{ _event_member('op') }}) = 'm' then 'message'
        when coalesce({{ _event_member('op') }}, {{ _event_member('OPERATION') }}) is not null
            then 'change_without_model'
        when {{ _event_member('status') }} in ('BEGIN', 'END') then 'transaction'
        when coalesce({{ _event_member('ddl') }}, {{ _event_member('tableChanges') }},
            {{ _event_member('historyRecord') }}) is not null then 'ddl'
        when {{ _event_member('source') }} is not null then 'unrecognised'
        when {{ _event_member('aggregate_type') }} is not null then 'notification'
        when {{ _event_member('ts_ms') }} is not null and {{ _has_no_members_but(_members_of_a_heartbeat()) }}
            then 'heartbeat'
        else 'unrecognised'
    end
{%- endmacro %}

{#- A member of a value, with a schema block or without. -#}
{% macro _event_member(name) -%}
    coalesce(event.payload.{{ name }}, event.{{ name }})
{%- endmacro %}

{#-
    The condition that a record of an events model is none of a staging model: neither of its table nor of topics that
    it reads itself.
-#}
{% macro _is_of_no_model(bounds) -%}
    {%- set names = [] -%}
    {%- for table in bounds.named -%} {%- do names.append(_table_name(table)) -%} {%- endfor -%}
    {%- set unnamed = 'source_table is null'
        ~ (' and topic not in (' ~ _literals(bounds.unrouted) ~ ')' if bounds.unrouted else '') -%}
    ({{ unnamed }} or {{ 'source_table not in (' ~ names | join(', ') ~ ')' if names else 'source_table is not null' }})
{%- endmacro %}

{#- The bounds of this run of a monitoring model, noted for its materialization; outside of a run everything. -#}
{% macro _start_counting(events, tables) -%}
    {%- if not execute or flags.WHICH not in ('run', 'build') -%}
        {{ return({'above': 0, 'up_to': 0, 'known': [], 'quiet': [], 'topics': [], 'routed': [], 'is_behind': false,
            'has_others': true, 'rebuilt': []}) }}
    {%- endif -%}
    {%- set bounds = _count_bounds(events, tables) -%}
    {%- do bounds_of_run().update({model.unique_id: bounds}) -%}
    {{ return(bounds) }}
{%- endmacro %}

{#- The batches that are not counted for a table, or for records that are no table's, as a condition. -#}
{% macro _uncounted(bounds, table, batch) -%}
    {%- set is_known = not bounds.is_behind if table is none else table in bounds.known -%}
    {{ _batches(batch, bounds.above if is_known else 0, bounds.up_to) }}
{%- endmacro %}

{% macro _batches(batch, above, up_to) -%}
    {{ batch }} > {{ above }} {{- ' and ' ~ batch ~ ' <= ' ~ up_to if up_to }}
{%- endmacro %}

{#-
    - above, up_to: the batches to count; 0 where there is nothing,
    - is_new: whether everything is counted,
    - declarations: table → a digest of what its change log was built by, and when rejected records were replayed,
    - known: the tables that are counted up to `above` in such a log; others are counted from the first batch,
    - quiet: those of them whose logs got nothing since,
    - topics: the topics of all tables,
    - routed: the events models of these,
    - unrouted: the topics of tables that read bronze themselves,
    - named: the names of all tables in the source,
    - is_behind: whether tables are declared otherwise now, so that records without a table are counted anew,
    - has_others: whether records to count may be no table's,
    - rebuilt: the tables whose rows are replaced as a whole: what their staging models tell of older batches is another
      now, or they have no models any more.
-#}
{% macro _count_bounds(events, tables) -%}
    {%- set existing = load_relation(this) if is_incremental() else none -%}
    {%- set stored = _table_properties(existing) if existing else {} -%}
    {%- set counted = fromjson(stored.get('cdc.declarations', '{}')) -%}
    {%- do _check_bronze(events, stored) -%}
    {%- set bounds = {
        'bronze': landed_batches(events).id,
        'declarations': {},
        'topics': [],
        'routed': [],
        'unrouted': [],
        'named': [],
        'is_new': existing is none,
        'above': merged_up_to(existing, "max(batch), ''", stored).up_to if existing else 0,
        'up_to': landed_batches(events).last,
        'known': [],
        'quiet': [],
        'rebuilt': [],
    } -%}
    {%- set staging = {} -%}
    {%- for id in model.depends_on.nodes if graph.nodes.get(id) -%}
        {%- do staging.update({graph.nodes[id].alias: graph.nodes[id]}) -%}
    {%- endfor -%}
    {%- for table, models in tables.items() -%}
        {%- set source = _records_read_by(staging[models[0].identifier]) -%}
        {%- do bounds.topics.extend(source.topics) -%}
        {%- do bounds.named.append(source.table) if source.table -%}
        {%- if not source.routed_by -%}
            {%- do bounds.unrouted.extend(source.topics) -%}
        {%- elif source.relation not in bounds.routed -%}
            {%- do bounds.routed.append(source.relation) -%}
            {%- do bounds.update({'up_to': [bounds.up_to, newest_batch_of(source)] | min(case_sensitive=true)}) -%}
        {%- endif -%}
        {%- set state = _state_to_count(models[0], source, counted.get(table), bounds) -%}
        {%- do bounds.declarations.update({table: _counted_as(state)}) -%}
        {%- if state.can_have_new and state.up_to < bounds.up_to and _has_records(source, state.up_to, bounds.up_to) -%}
            {%- do bounds.update({'up_to': state.up_to}) -%}
        {%- endif -%}
        {%- if counted.get(table) == bounds.declarations[table] -%}
            {%- do bounds.known.append(table) -%}
            {%- do bounds.quiet.append(table) if not state.can_have_new or state.has_new is defined
                and not state.has_new and state.above <= bounds.above -%}
        {%- elif table in counted -%}
            {%- do bounds.rebuilt.append(table) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do bounds.rebuilt.extend(counted.keys() | reject('in', tables) | list) -%}
    {%- do bounds.update({
        'topics': bounds.topics | unique(case_sensitive=true) | list,
        'unrouted': bounds.unrouted | unique(case_sensitive=true) | list,
        'is_behind': counted != bounds.declarations,
    }) -%}
    {%- do bounds.update({'has_others': bounds.is_behind or bounds.routed | length > 0
        or _brings_others(events, bounds)}) -%}
    {{ return(bounds) }}
{%- endmacro %}

{#-
    The state of a change log, and whether it can have something to count (`can_have_new`): not if its topics have no
    records in the batches to count, and it is what it was when it was `counted`.
-#}
{% macro _state_to_count(changes, source, counted, bounds) -%}
    {%- set can_have_new = source.routed_by or not counted or _has_records(source, bounds.above, bounds.up_to) -%}
    {%- set state = state_of_log(changes, source, can_have_new) -%}
    {%- if not can_have_new and counted != _counted_as(state) -%}
        {%- set can_have_new, state = true, state_of_log(changes, source) -%}
    {%- endif -%}
    {{ return(dict(state, can_have_new=can_have_new)) }}
{%- endmacro %}

{#- What a change log was when it was counted. -#}
{% macro _counted_as(state) -%}
    {{ return(([state.base, state.replayed, state.events] | join(' ')).rstrip()) }}
{%- endmacro %}

{#- Whether batches to count have records without a topic, or of topics that no table reads. -#}
{% macro _brings_others(events, bounds) -%}
    {%- for name in _arrived(events, bounds.above, bounds.up_to) -%}
        {%- if name == 'other' or name[6:] not in bounds.topics -%} {{ return(true) }} {%- endif -%}
    {%- endfor -%}
    {{ return(false) }}
{%- endmacro %}

{#-
    Records that cannot be used, with the reason, where they came from and what they hold: a view of the change logs and
    of bronze.

    - events: relation, the records of the system,
    - tables: name of the source's table → its staging model and its silver model,
    - routed: relation, the events model of the system, if it has one. What that rejects may be rejected by a change log
      of the same topic, too.
-#}
{% macro debezium_rejected_events(events, tables, routed=none) -%}
    {%- set of_logs %}
        {%- for table, models in tables.items() %}
select
    {{ literal(table) }} as source_table,
    _cdc_reject_reason as reason,
    _cdc_event_id as event_id,
    _cdc_batch as batch,
    _cdc_key as key,
    _cdc_value as value
from {{ models[0] }}
where _cdc_reject_reason is not null
union all
        {%- endfor %}
    {%- endset -%}
    {%- set columns -%}
select
    cast(null as string) as source_table,
    error as reason,
    {{ _record_id('records') }} as event_id,
    batch,
    key,
    coalesce(value, make_valid_utf8(cast(raw as string))) as value
    {%- endset -%}
    {{ of_logs }}
    {{ columns }}
from {{ events }} as records
where error is not null
    {%- if routed %}
union all
select routed.*
from (
    {{ columns | replace('make_valid_utf8(cast(raw as string))', 'null') }}
    from {{ routed }} as records where error is not null
) as routed
left anti join ({{ of_logs }} select null, null, null, null, null, null where false) as rejected
    on routed.event_id = rejected.event_id and routed.batch = rejected.batch
    {%- endif %}
{%- endmacro %}
