"""Histories of all connectors, landed, merged and counted."""

import json
import random
from typing import Any

from conftest import Lakehouse
from histories import EXPECTED, History, Record
from test_connectors import flat


def check(lakehouse: Lakehouse, system: str) -> None:
    found = {name: lakehouse.rows(f"{system}.{name}", "id") for name in EXPECTED}
    assert found == {name: rows for name, (_, rows) in EXPECTED.items()}
    assert lakehouse.rejected(system) == []


NOTIFICATION = {"id": "f8e", "aggregate_type": "Initial Snapshot", "type": "COMPLETED", "additional_data": {}, "timestamp": 1}


def ddl_without_statement(events: History) -> dict[str, Any]:
    """A schema change as SQL Server, Db2 and Informix tell it: the table as it is now, and no statement."""
    source = {
        "version": "3.4.0.Final",
        "connector": events.connector,
        "name": "src",
        "ts_ms": 1,
        "snapshot": "false",
    } | events.names
    change = {"type": "ALTER", "id": f'"d"."s"."{events.table}"', "table": {"primaryKeyColumnNames": ["id"], "columns": []}}
    return {"source": source, "ts_ms": 2, "databaseName": "d", "schemaName": "s", "ddl": None, "tableChanges": [change]}


def sent_with(events: History) -> list[Record]:
    """Records that are no rows, in the topic of the table."""
    return [
        {"topic": f"src.{events.table}", "partition": 0, "offset": 900 + offset, "key": None, "value": json.dumps(value)}
        for offset, value in enumerate((ddl_without_statement(events), {"payload": NOTIFICATION}))
    ]


def kinds_of(events: History) -> dict[str, int]:
    """How many records of each kind a history has, and the two that are landed with it."""
    others = {"ticdc": {"ddl": 1, "truncate": 1, "message": 1}, "cockroachdb": {"heartbeat": 1}}.get(events.table, {})
    tombstones = sum(record["value"] is None for record in events.records)
    changes = len(events.records) - tombstones - sum(others.values())
    kinds = {**others, "tombstone": tombstones, "change": changes, "ddl": others.get("ddl", 0) + 1, "notification": 1}
    return {kind: number for kind, number in kinds.items() if number}


def test_histories_give_the_rows_of_their_sources(lakehouse: Lakehouse) -> None:
    """Also with DDL and notifications in the topics of the tables."""
    lakehouse.run("sources", [record for events, _ in EXPECTED.values() for record in events.records + sent_with(events)])
    check(lakehouse, "sources")
    assert lakehouse.resets("sources") == {}
    told = lakehouse.sql("select source_table, kind, sum(events) from monitoring.sources__event_counts group by 1, 2")
    counted: dict[str, dict[str, int]] = {}
    for table, kind, number in told:
        counted.setdefault(table.rsplit(".", 1)[1], {})[kind] = number
    assert counted == {events.table: kinds_of(events) for events, _ in EXPECTED.values()}
    for name, ids in {"ticdc": [1, 2, 3, 4], "cockroachdb": [1, 2, 3]}.items():  # also of deleted rows, and of nothing else
        assert lakehouse.sql(f"select id from silver.sources__{name} order by id") == [(id,) for id in ids]


def test_shuffled_and_repeated_histories_give_the_rows_of_their_sources(lakehouse: Lakehouse) -> None:
    """The offsets are those of the shuffled arrival, so nothing but the source's position can tell the order."""
    records = [record for events, _ in EXPECTED.values() for record in events.records]
    chance = random.Random(7)
    arriving = [dict(record) for record in records + chance.sample(records, len(records) // 3)]
    chance.shuffle(arriving)
    for offset, record in enumerate(arriving):
        record["offset"] = offset
    half = len(arriving) // 2
    lakehouse.run("shuffled", arriving[:half])
    lakehouse.run("shuffled", arriving[half:])
    check(lakehouse, "shuffled")


def test_tombstones_after_deletes_are_no_log_that_starts_over(lakehouse: Lakehouse) -> None:
    """Of `rewrite-with-tombstone` only the row has a position."""

    def row(at: int, note: str, deleted: bool = False) -> Record:
        return flat("twice", at, {"id": 1}, {"id": 1, "note": note, "__lsn": 10 * at, "__deleted": str(deleted).lower()})

    tombstone = flat("twice", 3, {"id": 1}, None)
    lakehouse.run("twice", [row(1, "a"), row(2, "a", True), tombstone, row(4, "b"), row(5, "b", True)])
    lakehouse.run("twice", [{**tombstone, "offset": 6}, row(7, "c")])
    assert lakehouse.rows("twice.twice") == [{"id": 1, "note": "c"}]
    assert lakehouse.resets("twice") == {}
    lakehouse.run("twice", [{**tombstone, "offset": 8}])  # a row that says nothing was deleted: its mode has changed
    assert lakehouse.resets("twice") == {"twice": {"twice/0": [8, 8, 1]}}


def test_flattened_rows_may_have_columns_that_are_named_as_connects_wrapper(lakehouse: Lakehouse) -> None:
    """A column that nobody has declared makes no delete of a row either."""
    plain: list[dict[str, Any]] = [
        {"schema": "public", "id": 1, "note": "a"},
        {"payload": None, "id": 2, "note": "b"},
        {"payload": {"id": 9}, "id": 3, "note": "c"},
        {"schema": {"id": 9}, "payload": {"id": 9}, "id": 4, "note": "d"},
        {"schema": "x", "id": 5, "note": "e"},
    ]
    rows = [{**row, "__op": "c", "__deleted": str(row["id"] == 5).lower()} for row in plain]
    wrapped = {"schema": None, "payload": {"id": 6, "schema": "s", "note": "f", "__op": "c", "__deleted": "false"}}
    nothing = [{"schema": None, "payload": None}, None]
    records = [flat("wraps", at, {"id": at + 1}, row) for at, row in enumerate([*rows, wrapped])]
    lakehouse.run("wraps", [*records, *(flat("wraps", 6 + at, {"id": 7}, value) for at, value in enumerate(nothing))])
    found = lakehouse.sql("select id, `schema`, payload is null, note from wraps.wraps order by id")
    assert [(id, note) for id, _, _, note in found] == [(1, "a"), (2, "b"), (3, "c"), (4, "d"), (6, "f")]
    assert [(schema, is_null) for _, schema, is_null, _ in found] == [
        ("public", True), (None, True), (None, False), ('{"id":9}', False), ("s", True),
    ]  # fmt: skip
    assert lakehouse.rejected("wraps") == []
    lakehouse.run("wraps", [flat("wraps", 8 + at, {"id": 1}, value) for at, value in enumerate(({}, {"schema": None}))])
    assert lakehouse.rows("wraps.wraps", "id")[0]["note"] == "a"
    assert lakehouse.rejected("wraps") == [("wraps/0/8", "no_key"), ("wraps/0/9", "no_key")]

    first = [flat("undeclared", 0, {"id": 1}, {"id": 1, "__deleted": "false"})]
    lakehouse.run("undeclared", first)
    told: dict[str, Any] = {"__deleted": "false"}
    new = [{"schema": "public", "id": 1, **told}, {"payload": None, "id": 1, **told}, {"payload": {"id": 9}, "id": 2, **told}]
    new.append({"schema": "public", "payload": {"id": 9}, "id": 3, **told})
    lakehouse.land("undeclared", [flat("undeclared", 1 + at, {"id": 1}, row) for at, row in enumerate(new)])
    assert lakehouse.dbt("run", "--select", "source:bronze.undeclared+").success
    assert lakehouse.rows("undeclared.undeclared", "id") == [{"id": 1}, {"id": 2}, {"id": 3}]
    lakehouse.build_landed("undeclared")
    assert lakehouse.rows("undeclared.undeclared", "id") == [
        {"id": 1, "schema": None, "payload": None},
        {"id": 2, "schema": None, "payload": '{"id":9}'},
        {"id": 3, "schema": "public", "payload": '{"id":9}'},
    ]
    assert lakehouse.rejected("undeclared") == []
