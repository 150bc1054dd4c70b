{#-
    The newest initial snapshot found every row that the table shows: a repeated snapshot sends no deletes for rows that
    vanished meanwhile. All rows of such a snapshot have one position, that of its start; a row below it was not there
    any more. For connectors whose snapshots have one and read the whole table (`snapshot_has_one_position` of the seed
    `cdc_connectors`).
-#}
{% test no_row_missed_by_snapshot(model, changes, keys) %}
select {{ _quoted_list(keys) }}, _cdc_position, _cdc_event_id
from {{ model }}
where
    not _cdc_is_deleted
    and {{ log_position() }} < (
        select max({{ log_position() }})
        from {{ changes }} where _cdc_kind = 'change' and _cdc_is_snapshot
            and split_part(_cdc_position, '.', 3) = '0' {{- _is_merged(model) }}
    )
{% endtest %}
