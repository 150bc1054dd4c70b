"""Histories of all connectors, landed, merged and counted."""

from typing import Any

from conftest import Lakehouse
from histories import EXPECTED, Record
from test_connectors import flat

MERGED = ("cassandra", "db2", "ticdc")  # of which each has its own ties or parts


def test_histories_are_merged_and_start_over_nowhere(lakehouse: Lakehouse) -> None:
    """In two runs, the second of which has what the first had once more.

    All connectors: tests/rendered/test_connectors.py.
    """
    histories = [EXPECTED[name][0].records for name in MERGED]
    first = [record for records in histories for record in records[: len(records) // 2]]
    lakehouse.run("merged", first)
    again = [{**record, "offset": record["offset"] + 100} for record in first]
    lakehouse.run("merged", again + [record for records in histories for record in records[len(records) // 2 :]])
    for name in MERGED:
        assert lakehouse.rows(f"merged.{name}", "id") == EXPECTED[name][1], name
    # Of Spanner the records of one row may come out of order.
    spanner, rows = EXPECTED["spanner"][0].records, EXPECTED["spanner"][1]
    lakehouse.run("merged", [{**record, "offset": at} for at, record in enumerate(reversed(spanner))])
    assert lakehouse.rows("merged.spanner", "id") == rows
    assert lakehouse.rejected("merged") == []
    assert lakehouse.resets("merged") == {}


def test_tombstones_after_deletes_are_no_log_that_starts_over(lakehouse: Lakehouse) -> None:
    """Of `rewrite-with-tombstone` only the row has a position."""

    def row(at: int, note: str, deleted: bool = False) -> Record:
        return flat(
            "twice", at, {"id": 1}, {"id": 1, "note": note, "__lsn": 10 * at, "__deleted": str(deleted).lower()}
        )

    tombstone = flat("twice", 3, {"id": 1}, None)
    lakehouse.run("twice", [row(1, "a"), row(2, "a", True), tombstone, row(4, "b"), row(5, "b", True)])
    lakehouse.run("twice", [{**tombstone, "offset": 6}, row(7, "c")])
    assert lakehouse.rows("twice.twice") == [{"id": 1, "note": "c"}]
    assert lakehouse.resets("twice") == {}
    lakehouse.run("twice", [{**tombstone, "offset": 8}])  # a row that says nothing was deleted: its mode has changed
    assert lakehouse.resets("twice") == {"twice": {"twice/0": [8, 8, 1]}}

    for records in ([row(1, "a"), tombstone, row(4, "b")], [row(2, "a", True)]):  # the delete lands after its tombstone
        lakehouse.run("twice_late", [{**record, "topic": "twice_late"} for record in records])
    assert lakehouse.rows("twice_late.twice_late") == [{"id": 1, "note": "b"}]
    assert lakehouse.resets("twice_late") == {}


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
    new = [
        {"schema": "public", "id": 1, **told},
        {"payload": None, "id": 1, **told},
        {"payload": {"id": 9}, "id": 2, **told},
    ]
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
