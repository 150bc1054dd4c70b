"""The files of a system as a whole: source, monitoring, and the events that tables with shared topics read.

The SQL is generated at each run, the YAML is written if it is missing.
"""

import re
from pathlib import Path
from typing import Any

from scripts.bronze import BRONZE_COLUMNS
from scripts.declared import Declared, declared_tables
from scripts.files import put
from scripts.literals import quoted, quoted_list
from scripts.scaffolded import Scaffolded
from scripts.schema import TableSeen
from scripts.written_models import says
from scripts.written_yaml import dump

# The models of a system as a whole: name → its description, with the system to be filled in, and its columns.
MONITORING: dict[str, tuple[str, dict[str, str]]] = {
    "event_counts": (
        "What the landed records of system `{}` were, per table and batch.",
        {
            "batch": "Number of the bronze batch.",
            "source_table": "The table's name in the source; NULL for records that are no table's.",
            "kind": "What the records are, as `_cdc_kind` of the staging model says.",
            "op": (
                "The operation as Debezium's letter, which the seed `cdc_operations` explains; NULL where there is"
                " none."
            ),
            "reject_reason": "Why the records cannot be used; NULL where they can.",
            "events": "Number of such records.",
            "newest_change_at": "When the source made the newest of the changes, in UTC.",
        },
    ),
    "rejected_events": (
        "Records of system `{}` that cannot be used, why, and what they hold.",
        {
            "source_table": "The table's name in the source; NULL for a line that is no record.",
            "reason": "Why the record cannot be used. The reasons are a closed list: docs/rejects.md.",
            "event_id": "The record in bronze: topic/partition/offset, or file:line.",
            "batch": "Number of the bronze batch.",
            "key": "The Kafka key, as it came.",
            "value": "The value, as it came; of a line that is no record, the line.",
        },
    ),
    "ddl_history": (
        "The DDL statements of system `{}`, as its DDL records tell them.",
        {
            "server": "Name of the connector (`topic.prefix`).",
            "database_name": "Database of the statement.",
            "schema_name": "Schema of the statement.",
            "table_name": "Table of the change, or of the statement if that names no change of a table.",
            "renamed_from": "The name that the table had before the statement, where that renames it.",
            "kind": "The statement's first words, such as `ALTER TABLE`.",
            "ddl": "The statement.",
            "table_change": "What became of the table: `CREATE`, `ALTER` or `DROP`.",
            "primary_key": "Columns of the primary key afterwards.",
            "columns": "Columns afterwards, as the connector tells them.",
            "table_comment": "Comment of the table afterwards.",
            "default_charset": "Character set of the table's columns that name none.",
            "attributes": "Further attributes of the table, as the connector tells them.",
            "position": "Where the statement stands in the source's log, as the connector tells it.",
            "order_key": (
                "A text that sorts the statements as the source made them: by the place in its log, then by partition"
                " and offset, else by file and line. Statements without a place come first. A log that started over is"
                " not told apart."
            ),
            "event_id": "The record in bronze: topic/partition/offset, or file:line.",
            "batch": "Number of the bronze batch.",
        },
    ),
    "transactions": (
        "Transactions of system `{}`: events expected and landed.",
        {
            "transaction_id": "The transaction's own name.",
            "has_begun": "Whether its first marker has landed.",
            "has_ended": "Whether its last marker has landed.",
            "expected_events": "Number of its events, as the last marker tells; NULL before.",
            "ended_at": "Time of the last marker, in UTC.",
            "landed_events": "Number of its events that have landed.",
        },
    ),
    "lag": (
        "How late the tables of system `{}` are: the way of the newest change of each, and how long it took.",
        {
            "source_table": "The table's name in the source.",
            "changed_at": "When the source committed the change, in UTC; NULL for a table without changes.",
            "connector_at": "When the connector read it (`ts_ms` of the event); NULL if the event does not say it.",
            "kafka_at": (
                "Timestamp of the Kafka record; NULL for a bare value, and if bronze does not hold it any more."
            ),
            "landed_at": "When the change landed in bronze.",
            "merged_at": "When the change was merged; NULL before, and if the snapshot of that merge has expired.",
            "source_to_connector": "Seconds from the commit to the connector.",
            "connector_to_kafka": "Seconds from the connector to Kafka.",
            "kafka_to_landing": "Seconds from Kafka to bronze.",
            "landing_to_merge": "Seconds from bronze to the table.",
            "lag": "Seconds from the commit to the table. Below 0, the clock of the source is ahead.",
            "batch": "Number of the bronze batch that landed the change.",
        },
    ),
}


def write_system(system: str, known: dict[tuple[str, ...], Declared], models: Path, done: Scaffolded) -> None:
    """The source and the models of the system as a whole."""
    tables = "".join(
        f"        {quoted(table.table.name)}: [ref('{table.model('staging', system)}'),"
        f" ref('{table.model('silver', system)}')],\n"
        for table in sorted(known.values(), key=lambda declared: declared.relation)
    )
    call = (
        "{{{{ {macro}(\n    events = source('bronze', '{system}'),\n    tables = {{\n{tables}    }},\n{further}) }}}}\n"
    )
    routed = [declared.table for declared in known.values() if declared.routed]
    events = f"    routed = ref('{system}__events'),\n" if routed else ""
    counts, rejected = f"{system}__event_counts", f"{system}__rejected_events"
    ddl, transactions, lag = (f"{system}__{name}" for name in ("ddl_history", "transactions", "lag"))
    records = "{{{{ {macro}(events = source('bronze', '{system}')) }}}}\n"
    config = (
        "{{ config(materialized = 'incremental', incremental_strategy = 'debezium_merge', file_format = 'iceberg')"
        " }}\n\n"
    )
    files = {
        f"bronze/{system}.yml": dump(_source(system)),
        f"monitoring/{system}/{counts}.sql": (
            config + call.format(macro="debezium_event_counts", system=system, tables=tables, further="")
        ),
        f"monitoring/{system}/{rejected}.sql": call.format(
            macro="debezium_rejected_events", system=system, tables=tables, further=events
        ),
        f"monitoring/{system}/{ddl}.sql": records.format(macro="debezium_ddl_history", system=system),
        f"monitoring/{system}/{transactions}.sql": records.format(macro="debezium_transactions", system=system),
        f"monitoring/{system}/{lag}.sql": call.format(macro="debezium_lag", system=system, tables=tables, further=""),
        f"monitoring/{system}/{system}__monitoring.yml": dump(_monitoring_properties(system)),
    }
    events = f"staging/{system}/{system}__events"
    if routed:
        files |= _events_model(system, events, routed)
    else:
        (models / f"{events}.sql").unlink(missing_ok=True)
        if says(models / f"{events}.yml", _events_properties(system)):
            (models / f"{events}.yml").unlink()
    for name, text in files.items():
        path = models / name
        # The YAML of a system as a whole says the same for ever: if the file says something else, somebody edited it.
        if not (path.exists() if path.suffix == ".yml" else says(path, text)):
            put(path, text)
            if path.suffix == ".sql":
                done.written.append(path.stem)


def leave_out_removed(system: str, models: Path) -> None:
    """Write the models of each other system as a whole again that name models of tables which somebody removed: with
    them, dbt would compile no system.
    """
    for folder in sorted((models / "monitoring").glob("*")):
        other, counts = folder.name, folder / f"{folder.name}__event_counts.sql"
        named = re.findall(r"ref\('(\w+)'\)", counts.read_text(encoding="utf-8")) if counts.exists() else []
        there = {path.stem for layer in ("staging", "silver") for path in (models / layer / other).glob("*.sql")}
        if other != system and set(named) - there:
            write_system(other, declared_tables(other, models), models, Scaffolded())


def _source(system: str) -> dict[str, Any]:
    return {
        "version": 2,
        "sources": [
            {
                "name": "bronze",
                "description": "Landed records, one table per system, byte for byte as they came.",
                "tables": [
                    {
                        "name": system,
                        "description": f"All records of system `{system}`, of all its topics.",
                        # `dbt source freshness` warns if nothing has landed for a day. The file is a person's from then
                        # on.
                        "config": {
                            "loaded_at_field": "landed_at",
                            "freshness": {"warn_after": {"count": 1, "period": "day"}},
                        },
                        "columns": _described(_bronze_columns()),
                    }
                ],
            }
        ],
    }


def _monitoring_properties(system: str) -> dict[str, Any]:
    counted = {"every_record_counted": {"arguments": {"records": f"source('bronze', '{system}')"}}}
    return {
        "version": 2,
        "models": [
            {"name": f"{system}__{name}", "description": told.format(system), "columns": _described(columns)}
            | ({"data_tests": ["rejected_share", counted]} if name == "event_counts" else {})
            for name, (told, columns) in MONITORING.items()
        ],
    }


def _events_model(system: str, path: str, routed: list[TableSeen]) -> dict[str, str]:
    """The files of the model that the staging models of tables with shared topics read."""
    topics = sorted(set[str]().union(*(table.topics for table in routed)))
    materialized = "materialized = 'incremental', incremental_strategy = 'debezium_merge', file_format = 'iceberg'"
    return {
        f"{path}.sql": (
            f"{{{{ config({materialized}, partition_by = 'source_table') }}}}\n\n"
            "{{ debezium_events(\n"
            f"    events = source('bronze', '{system}'),\n"
            f"    topics = {quoted_list(topics)},\n"
            f"    connector = {quoted(min(table.connector for table in routed))},\n"
            ") }}\n"
        ),
        f"{path}.yml": _events_properties(system),
    }


def _events_properties(system: str) -> str:
    columns = {
        **{name: told for name, told in _bronze_columns().items() if name != "error"},
        "source_table": "The table that the record names, as a JSON array of names; NULL where it names none.",
        "kind": "What a record is that names no table.",
        "error": "Why a record that names no table cannot be used.",
    }
    properties = {
        "name": f"{system}__events",
        "description": (
            f"The records of the topics of system `{system}` that carry several tables, each with its table."
        ),
        "columns": _described(columns),
    }
    return dump({"version": 2, "models": [properties]})


def _bronze_columns() -> dict[str, str]:
    return dict(re.findall(r"(\w+) \S.* comment '(.*)'", BRONZE_COLUMNS))


def _described(columns: dict[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "description": text} for name, text in columns.items()]
