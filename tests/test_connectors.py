"""Debezium's other connectors, the forks that write its events, and flattened rows: order, images and refusals of each.

The histories are those of `histories.py`. All tables are one system, so that a run builds all of them.
"""

import json
import random
import re
from datetime import datetime
from typing import Any

from conftest import Lakehouse, corpus
from histories import EXPECTED, FLINK_ROWS, SAMPLE, History, Record, flink, sample_lines


def test_the_sample_is_made_of_these_histories() -> None:
    assert SAMPLE.read_text(encoding="utf-8") == sample_lines()


def test_histories_have_every_member_that_the_documentation_shows() -> None:
    made: dict[str, set[str]] = {}
    for events, _ in EXPECTED.values():
        for record in events.records:
            value = json.loads(record["value"])
            made.setdefault(events.connector, set()).update(value, (value.get("source") or {}))
    compared = set()
    for line in (corpus("debezium_docs_examples") / "examples.jsonl").read_text(encoding="utf-8").splitlines():
        sample = json.loads(line)
        if sample["kind"].startswith("op=") and sample["connector"] in (
            "cassandra",
            "db2",
            "informix",
            "spanner",
            "vitess",
            "yashandb",
        ):
            value = json.loads(sample["value"]) if isinstance(sample["value"], str) else sample["value"]
            value = value.get("payload", value)
            if source := value.get("source"):
                assert not {*value, *source} - made[sample["connector"]], sample["doc"]
                compared.add(sample["connector"])
    assert len(compared) == 6


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


def test_histories_give_the_rows_of_their_sources(lakehouse: Lakehouse) -> None:
    """Also with DDL and notifications in the topics of the tables."""
    others = [
        {"topic": f"src.{events.table}", "partition": 0, "offset": 900 + offset, "key": None, "value": json.dumps(value)}
        for events, _ in EXPECTED.values()
        for offset, value in enumerate((ddl_without_statement(events), {"payload": NOTIFICATION}))
    ]
    lakehouse.run("sources", [record for events, _ in EXPECTED.values() for record in events.records] + others)
    check(lakehouse, "sources")
    assert lakehouse.resets("sources") == {}
    kinds = lakehouse.sql(
        "select source_table, kind, events from monitoring.sources__event_counts where kind in ('ddl', 'notification')"
    )
    assert sorted((kind, events) for _, kind, events in kinds) == [(kind, 1) for kind in ("ddl", "notification") for _ in EXPECTED]
    assert len({table for table, _, _ in kinds}) == len(EXPECTED)


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


def test_the_order_of_the_topic_decides_where_there_is_no_position(lakehouse: Lakehouse) -> None:
    """Vitess without ordered transactions, CockroachDB without times, Flink's own JSON: by offset, in any order of arrival."""
    tables = {
        "no_rank": History("no_rank", "vitess", {"keyspace": "commerce", "table": "no_rank", "vgtid": "[]"}),
        "no_time": History("no_time", "cockroachdb", {"db": "d", "schema": "public", "table": "no_time", "ts_hlc": None}),
    }
    for events in tables.values():
        events.add("c", 1, after={"id": 1, "note": "first"}, transaction={"id": "[]", "total_order": 1})
        events.add("u", 1, after={"id": 1, "note": "new"}, transaction={"id": "[]", "total_order": 1})
        events.add("c", 2, after={"id": 2, "note": "first"})
        events.add("d", 2)
        events.add("u", 3, after={"id": 3, "note": "old"})
        events.add("r", 3, after={"id": 3, "note": "read again"}, source={"snapshot": "true"})
    records = [record for events in [*tables.values(), *flink()] for record in events.records]
    random.Random(3).shuffle(records)
    keys = {"carts": ["id"], "d.lines": ["id"]}
    lakehouse.run("by_topic", records[::2], keys=keys)
    lakehouse.run("by_topic", records[1::2])

    for name in tables:
        assert lakehouse.rows(f"by_topic.{name}", "id") == [{"id": 1, "note": "new"}, {"id": 3, "note": "read again"}], name
    for events in flink():
        assert lakehouse.rows(f"by_topic.{events.table}", "id") == FLINK_ROWS
    assert lakehouse.rejected("by_topic") == []


def place_of(connector: str, at: int) -> dict[str, Any]:
    """The members of an event that place it in the log of its source; later ones are greater."""
    if connector == "vitess":
        return {"transaction": {"id": "[]", "transaction_epoch": 0, "transaction_rank": at, "total_order": 1}}
    lsn = f"00000027:00000ac0:{at:04x}"
    source: dict[str, dict[str, Any]] = {
        "cockroachdb": {"ts_hlc": f"{at}.0000000000"},
        "db2": {"commit_lsn": lsn, "change_lsn": lsn},
        "ibmi": {"receiver": "QSQJRN0009", "sequence": str(at), "schema": None, "table": None},
        "informix": {"commit_lsn": str(at), "change_lsn": str(at), "txId": "7"},
        "mariadb": {"file": "bin.000001", "pos": at, "row": 0, "gtid": f"0-1-{at}"},
        "mysql": {"file": "bin.000001", "pos": at, "row": 0},
        "oracle": {"scn": str(at), "commit_scn": str(at), "txSeq": 1, "txId": "0500080076ca0000"},
        "postgresql": {"lsn": at},
        "spanner": {"ts_ns": at, "sequence": "1", "mod_number": 0, "value_capture_type": "NEW_ROW"},
        "sqlserver": {"commit_lsn": lsn, "change_lsn": lsn, "event_serial_no": 1},
        "yashandb": {"position_scn": at, "group_lsn": at, "group_offset": 0, "batch_row_id": 0, "txId": "7"},
        "yugabytedb": {"commit_time": at, "lsn": "1:1::0:0", "txId": ""},
        "YugabyteDB": {"lsn": at},
    }
    return {"source": source.get(connector, {})}


# What connectors have beside updates and deletes: a truncate, values that are left out.
SHARED = {
    "cockroachdb": "",
    "db2": "",
    "generic": "truncate, left out",
    "ibmi": "",
    "informix": "truncate",
    "mariadb": "truncate",
    "mysql": "truncate",
    "oracle": "truncate, left out",
    "opengauss": "truncate, left out",
    "spanner": "",
    "sqlserver": "",
    "vitess": "",
    "yashandb": "truncate, left out",
    "yboutput": "",
    "yugabytedb": "",
}


def shared_history(name: str, also: str) -> History:
    connector = {"generic": "", "opengauss": "postgresql", "yboutput": "YugabyteDB"}.get(name, name)
    names = {"vitess": {"keyspace": "k"}, "generic": {"db": "d"}}.get(name, {"db": "d", "schema": "s"})
    events = History(name, connector, {**names, "table": name}, cells=name in ("yboutput", "yugabytedb"))

    def add(at: int, op: str, id: int, before: Any = None, after: Any = None, number: int | None = None, **members: Any) -> None:
        found = place_of(connector, at)
        if number:
            order = {"id": f"of {name}", "total_order": number, "data_collection_order": number}
            found["transaction"] = found.get("transaction", {}) | order
        events.add(op, id, before, after, **found, **members)

    old, moved = {"id": 1, "note": "kept", "more": "old"}, {"note": "moved", "more": "too"}
    add(1, "c", 9, after={"id": 9, "note": "gone", "more": None})
    if "truncate" in also:
        add(2, "t", 0, key=None)
    else:
        add(2, "d", 9, before={"id": 9, "note": "gone", "more": None})
    add(3, "c", 1, after=old, number=1)
    note = "__debezium_unavailable_value" if "left out" in also else "kept"
    add(4, "u", 1, before=old, after={"id": 1, "note": note, "more": "new"}, number=2)
    add(5, "c", 3, after={"id": 3, **moved})
    add(6, "d", 3, before={"id": 3, **moved})  # the key changes: both events are of one change
    add(6, "c", 4, after={"id": 4, **moved})
    return events


def test_every_connector_has_what_it_shares_with_others(lakehouse: Lakehouse) -> None:
    """Key changes, transactions with their markers, and where a connector tells of them truncates and values that are left out."""
    arriving = []
    for name, also in SHARED.items():
        arriving += shared_history(name, also).records
        for status, count in (("BEGIN", None), ("END", 2)):
            marker = {"status": status, "id": f"of {name}", "event_count": count, "data_collections": None, "ts_ms": 1700000000000}
            arriving.append({"topic": "src.transaction", "key": json.dumps({"id": f"of {name}"}), "value": json.dumps(marker)})
    flattened = History("flattened", "", {})
    for lsn, id, row in (
        (1, 1, {"note": "kept", "more": "old"}),
        (2, 1, {"note": "__debezium_unavailable_value", "more": "new"}),
        (3, 3, {"note": "moved", "more": "too"}),
        (4, 3, None),
        (5, 4, {"note": "moved", "more": "too"}),
    ):
        flattened.record({"id": id, **(row or {}), "__op": "u", "__lsn": lsn, "__deleted": str(row is None).lower()}, {"id": id})
    tidb = History("tidb", "TiCDC", {"db": "d", "table": "tidb"})
    tidb.add("c", 1, after={"id": 1}, source={"commit_ts": 1})
    tidb.record(
        {"source": {"connector": "TiCDC", "db": "d", "table": "tidb", "commit_ts": 2}, "ddl": "alter table tidb add more int"}, None
    )
    arriving += flattened.records + tidb.records

    random.Random(11).shuffle(arriving)
    in_order = ("src.generic",)  # of the others nothing but the source's position can tell the order
    for offset, record in enumerate(arriving):
        record.update({"partition": 0} if record["topic"] in in_order else {"partition": 0, "offset": offset})
    lakehouse.run("alike", arriving)
    wanted = [{"id": 1, "note": "kept", "more": "new"}, {"id": 4, "note": "moved", "more": "too"}]
    by_topic = {"ibmi": "src_ibmi", "flattened": "src_flattened"}
    found = {name: lakehouse.rows(f"alike.{by_topic.get(name, name)}", "id") for name in (*SHARED, "flattened")}
    assert found == dict.fromkeys(found, wanted)
    assert lakehouse.rejected("alike") == []
    told = lakehouse.sql("select transaction_id, expected_events, landed_events from monitoring.alike__transactions order by 1")
    assert told == [(f"of {name}", 2, 2) for name in sorted(SHARED)]
    gtid = lakehouse.sql("select _cdc_transaction_id from silver.alike__mariadb where id = 4")
    assert gtid == [("0-1-6",)]  # of an event without a transaction block
    assert lakehouse.sql("select table_name, ddl from monitoring.alike__ddl_history") == [("tidb", "alter table tidb add more int")]


PARTIAL = "partial_row: value_capture_type has to be NEW_ROW"
AMBIGUOUS = "null_or_unchanged: REPLICA IDENTITY has to be FULL, or the plugin yboutput"


def test_what_cannot_be_folded_safely_is_refused_with_a_reason(lakehouse: Lakehouse) -> None:
    row = {"id": 1, "note": "a"}
    refused: dict[str, str] = {}
    tables = []
    for name, connector, source in (
        ("bad_lsn", "sqlserver", {"db": "d", "schema": "s", "commit_lsn": "00000027:00000ac0:00g2"}),
        ("no_scn", "oracle", {"db": "d", "schema": "s", "scn": None, "commit_scn": None}),
        ("short_lsn", "db2", {"schema": "s", "commit_lsn": "0000:0001"}),
        ("no_lsn", "informix", {"db": "d", "schema": "s", "commit_lsn": None}),
        ("no_commit", "yashandb", {"schema": "s", "scn": "7", "position_scn": None}),
        ("no_entry", "ibmi", {"receiver": "QSQJRN0009", "sequence": None}),
        ("no_tso", "TiCDC", {"db": "d"}),
        ("bad_time", "cockroachdb", {"db": "d", "schema": "s", "ts_hlc": "yesterday"}),
        ("half_rank", "vitess", {"keyspace": "k"}),
    ):
        events = History(name, connector, {"table": name})
        events.add("u", 1, after=row, source=source, transaction={"id": "t", "transaction_rank": "7"})
        tables.append(events)
        refused[f"src.{name}/0/0"] = "no_position"

    spanner = History("partial", "spanner", {"db": "database", "table": "partial", "sequence": "1"})
    for time, (op, kind) in enumerate([("c", "NEW_ROW"), ("u", "NEW_VALUES"), ("u", "OLD_AND_NEW_VALUES"), ("c", "NEW_VALUES")]):
        spanner.add(op, 1, after={"id": 1, "note": None if time else "a"}, source={"ts_ns": time, "value_capture_type": kind})
        if time:
            refused[f"src.partial/0/{time}"] = PARTIAL
    spanner.add(
        "u", 1, after={"id": 1, "note": None}, source={"ts_ns": 4, "value_capture_type": None}
    )  # nobody says that it is whole
    refused["src.partial/0/4"] = PARTIAL
    spanner.add("c", 2, after={"id": 2, "note": "b"}, source={"ts_ns": 8, "value_capture_type": "NEW_ROW"})
    spanner.add("d", 2, source={"ts_ns": 9, "value_capture_type": "NEW_VALUES"})

    change = History("change", "YugabyteDB", {"db": "d", "schema": "public", "table": "change"})
    change.add("c", 1, after={"id": 1, "note": "a", "more": None}, source={"lsn": 1})
    change.add("u", 1, after={"id": 1, "note": "b", "more": None}, source={"lsn": 2})
    refused["src.change/0/1"] = AMBIGUOUS

    plain = History("plain", "yugabytedb", {"db": "d", "schema": "public", "table": "plain", "lsn": "1:1::0:0"})
    plain.add("u", 1, after={"id": 1, "note": "b"})  # the gRPC connector through a transform that takes the cells away
    refused["src.plain/0/0"] = "value_of_wrong_type"

    ranges = History("ranges", "cassandra", {"keyspace": "ks", "table": "ranges"}, cells=True)
    writes: list[tuple[str, dict[str, Any]]] = [
        ("i", {"id": 1, "at": 1, "note": "a", "tags": ["x", "y"]}),
        ("r", {"id": 1, "at": ..., "note": ..., "tags": ...}),
        ("d", {"id": 1, "at": None, "note": None, "tags": None}),
        ("u", {"id": 1, "at": 1, "note": ..., "tags": ["z"]}),
    ]
    for time, (op, columns) in enumerate(writes):
        key = {"id": 1, "at": 1 if columns["at"] == 1 else None}
        ranges.add(op, 1, None, columns, key=key, source={"ts_us": time})
    refused |= {
        "src.ranges/0/1": "range_delete: delete row by row",
        "src.ranges/0/2": "no_key",
        "src.ranges/0/3": "collection_in_update: the column has to be frozen",
    }

    tables += [spanner, change, plain, ranges]
    lakehouse.run("refused", [record for events in tables for record in events.records])

    assert dict(lakehouse.rejected("refused")) == refused
    assert lakehouse.rows("refused.partial") == [{"id": 1, "note": "a"}]
    assert lakehouse.rows("refused.change") == [{"id": 1, "note": "a", "more": None}]
    assert lakehouse.rows("refused.ranges") == [{"id": 1, "at": 1, "note": "a", "tags": ["x", "y"]}]


def flat(topic: str, offset: int, key: Any, value: Any) -> Record:
    return {
        "topic": topic,
        "partition": 0,
        "offset": offset,
        "key": None if key is None else json.dumps(key),
        "value": None if value is None else json.dumps(value),
    }


# Rows with the members of a transaction marker, one of which every record has that is a marker; and a heartbeat.
LOOK_ALIKES: list[dict[str, Any]] = [
    {"status": "OPEN", "id": "1", "event_count": None, "data_collections": None, "__op": "c"},
    {"status": "BEGIN", "id": "2", "event_count": None, "data_collections": None, "__op": "c"},
    {"ts_ms": 1700000000000},
]


def no_rows(topic: str) -> list[Record]:
    """What the transform lets through as it is: it takes the envelope off changes only."""
    source = {"connector": "postgresql", "name": "src", "schema": "", "table": ""}
    ddl: dict[str, Any] = {"source": source, "databaseName": "d", "schemaName": "s", "ddl": None, "tableChanges": []}
    values: list[dict[str, Any]] = [
        {"ts_ms": 1700000000000},
        {"ts_ms": 1700000000000, "ts_us": 1700000000000000, "ts_ns": 1700000000000000000},
        {"schema": {"type": "struct", "fields": []}, "payload": {"ts_ms": 1700000000000}},
        {"status": "BEGIN", "id": "571:5", "event_count": None, "data_collections": None, "ts_ms": 1},
        {"status": "END", "id": "571:9", "event_count": 1, "data_collections": [{"data_collection": "s.t", "event_count": 1}]},
        ddl | {"ts_ms": 1},
        ddl | {"ddl": "DROP TABLE t", "position": {"file": "b.000001", "pos": 4}},
        {"source": source, "historyRecord": json.dumps(ddl)},
        NOTIFICATION,
        {"op": "m", "ts_ms": 1, "source": source, "message": {"prefix": "p", "content": "eA=="}, "transaction": None},
    ]
    return [flat(topic, 500 + offset, None, value) for offset, value in enumerate(values)]


def test_flattened_rows_in_every_way_of_telling_deletes(lakehouse: Lakehouse) -> None:
    """`rewrite` has a position of the source and is shuffled; tombstones are in the order of their topic."""
    rows = [
        ({"id": 1, "note": "read"}, {"op": "r", "lsn": 90, "file": "b.000009", "pos": 4, "row": 0, "deleted": "false"}),
        ({"id": 1, "note": "old"}, {"op": "u", "lsn": 99, "file": "b.000009", "pos": 99, "row": 0, "deleted": "false"}),
        ({"id": 2, "note": "gone"}, {"op": "c", "lsn": 100, "file": "b.000009", "pos": 100, "row": 9, "deleted": "false"}),
        ({"id": 2, "note": ""}, {"op": "d", "lsn": 101, "file": "b.000009", "pos": 100, "row": 10, "deleted": "true"}),
        ({"id": 1, "note": "new"}, {"op": "u", "lsn": 1000, "file": "b.1000000", "pos": 4, "row": 0, "deleted": "false"}),
    ]

    def row(columns: Any, metadata: Any, prefix: str, *names: str) -> Any:
        added = {f"{prefix}{name}": metadata[name.removeprefix("source_")] for name in names}
        return {**columns, **added, "__deleted": metadata["deleted"], f"{prefix}source_ts_ms": 1700000000000}

    arriving = []
    for topic, prefix, names in (
        ("rewrite_lsn", "__", ["op", "lsn"]),
        ("rewrite_source_lsn", "__", ["source_lsn"]),
        ("rewrite_binlog", "__", ["op", "source_file", "source_pos", "source_row"]),
        ("rewrite_offset", "__", ["op"]),
    ):
        for at, (columns, metadata) in enumerate(rows):
            arriving.append(flat(topic, at, {"id": columns["id"]}, row(columns, metadata, prefix, *names)))
        arriving.append(flat(topic, 4 + len(rows), {"id": 2}, None))  # rewrite-with-tombstone
    random.Random(5).shuffle(arriving)
    for offset, record in enumerate(arriving):
        if record["topic"] != "rewrite_offset":
            record["offset"] = offset
    for topic, marked in (("tombstones", True), ("delete_to_tombstone", False)):
        for at, (columns, metadata) in enumerate(rows):
            value = {**columns, **({"__op": metadata["op"], "__lsn": metadata["lsn"]} if marked else {})}
            gone = metadata["op"] == "d"
            arriving.append(flat(topic, at, {"payload": {"id": columns["id"]}}, None if gone else value))
            if gone:  # also as a schema block with nothing
                arriving.append(flat(topic, 10, {"id": 2}, {"schema": None, "payload": None}))
    for topic, told in (("renamed_rewrite", True), ("renamed_tombstone", False)):  # add.fields=op:operation,source.lsn:place
        for at, (columns, metadata) in enumerate(rows):
            value = {**columns, "__operation": metadata["op"], "__place": metadata["lsn"]}
            gone = metadata["op"] == "d" and not told
            value |= {"__deleted": metadata["deleted"]} if told else {}
            arriving.append(flat(topic, at, {"id": columns["id"]}, None if gone else value))
    topics = {record["topic"] for record in arriving}
    arriving += no_rows("rewrite_offset") + no_rows("tombstones")
    arriving += [flat("look_alikes", at, None, value) for at, value in enumerate(LOOK_ALIKES)]
    lakehouse.run("flattened", arriving[::2], connector="flattened")
    lakehouse.run("flattened", arriving[1::2], connector="flattened")

    for topic in topics:
        assert lakehouse.sql(f"select id, note from flattened.{topic}") == [(1, "new")], topic
    assert lakehouse.sql("select id, status from silver.flattened__look_alikes order by id") == [("1", "OPEN"), ("2", "BEGIN")]
    assert lakehouse.rejected("flattened") == []
    query = (
        "select source_table, kind, sum(events) from monitoring.flattened__event_counts where kind not in ('change', 'tombstone')"
    )
    kinds = {"ddl": 3, "heartbeat": 3, "message": 1, "notification": 1, "transaction": 2}
    assert lakehouse.sql(f"{query} group by 1, 2 order by 1, 2") == [
        ("look_alikes", "heartbeat", 1),
        *((topic, kind, number) for topic in ("rewrite_offset", "tombstones") for kind, number in kinds.items()),
    ]


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


def test_flattened_rows_are_recognised_and_refused_where_nothing_tells_of_deletes(lakehouse: Lakehouse) -> None:
    rows = [{"id": 1, "note": "a", "__op": "c"}, {"id": 1, "note": "b", "__op": "u"}]
    lakehouse.land("drop", [flat("drop", offset, {"id": 1}, row) for offset, row in enumerate(rows)])
    done = lakehouse.scaffold("drop")
    assert not (lakehouse.project / "models" / "staging" / "drop").exists()
    assert any("no event tells of deletes" in note and "delete.tombstone.handling.mode" in note for note in done.notes)

    lakehouse.run("drop", [flat("drop", 2, {"id": 1}, None)])
    assert lakehouse.rows("drop.drop") == []

    renamed = [flat("renamed", offset, {"id": 1}, {"id": 1, "__operation": row["__op"]}) for offset, row in enumerate(rows)]
    lakehouse.land("drop_renamed", renamed)  # of which nobody can tell whether deletes are dropped
    notes = lakehouse.scaffold("drop_renamed", "flattened").notes
    assert [note for note in notes if "renamed: no event tells of deletes" in note and "deleted rows stay" in note]


def test_images_without_an_operation_tell_it(lakehouse: Lakehouse) -> None:
    def images(offset: int, before: Any, after: Any) -> dict[str, Any]:
        value = {"before": before, "after": after, "source": {"db": "d", "table": "images"}}
        key = json.dumps({"id": (before or after or {"id": 9})["id"]})
        return {"topic": "t", "partition": 0, "offset": offset, "key": key, "value": json.dumps(value)}

    rows = [{"id": number, "note": note} for number, note in ((1, "a"), (1, "b"), (2, "c"))]
    changes = [(None, rows[0]), (rows[0], rows[1]), (None, rows[2]), (rows[2], None), (None, None)]
    lakehouse.run("images", [images(offset, *images_of) for offset, images_of in enumerate(changes)])
    assert lakehouse.rows("images.images") == [rows[1]]
    told = lakehouse.sql("select _cdc_op, _cdc_reject_reason from staging.stg_images__images order by _cdc_event_id")
    assert told == [("c", None), ("u", None), ("c", None), ("d", None), (None, "not_an_envelope")]
    lakehouse.run("images", [{**images(5, None, None), "value": '{"before": "broken", "after": null}'}])
    assert lakehouse.rejected("images") == [("t/0/4", "not_an_envelope"), ("t/0/5", "not_an_envelope")]


def test_flattened_rows_of_several_tables_in_one_topic_are_asked_for_and_told(lakehouse: Lakehouse) -> None:
    """Which may be parts of one, as a router makes them, or would overwrite one another."""
    told = {"__op": "c", "__deleted": "false", "__source_schema": "s"}
    rows = [{"id": 1, "note": "a", **told, "__table": "east"}, {"id": 2, "note": "b", **told, "__source_table": "west", "more": 1}]
    lakehouse.land("merged", [flat("merged", offset, {"id": row["id"]}, row) for offset, row in enumerate(rows)])
    notes = lakehouse.scaffold("merged").notes
    assert [
        note for note in notes if "tables s.east and s.west" in note and "SERVERS=one" in note and "no model was written" in note
    ]
    done = lakehouse.build_landed("merged", servers="one")
    assert [note for note in done.notes if "merged: its rows are of the tables s.east and s.west, and become one table" in note]
    assert lakehouse.sql("select id, note from merged.merged order by id") == [(1, "a"), (2, "b")]
    done = lakehouse.run("merged", [flat("merged", 2, {"id": 3}, {**rows[0], "id": 3})])
    assert not [note for note in done.notes if "become one table" in note]
    done = lakehouse.run("merged", [flat("merged", 3, {"id": 4}, {**rows[0], "id": 4, "__table": "north"})])
    assert [note for note in done.notes if "of the tables s.east and s.north and s.west, and become one table" in note]


def test_metadata_of_another_prefix_are_no_columns(lakehouse: Lakehouse) -> None:
    row = {"id": 1, "note": "new", "cdc_op": "u", "cdc_source_lsn": 1000, "__deleted": "false", "cdc_note": "a column"}
    records = [flat("prefix", 0, {"id": 1}, row), flat("prefix", 1, {"id": 1}, {**row, "note": "old", "cdc_source_lsn": 999})]
    lakehouse.run("prefix", records, connector="flattened(cdc_)")
    assert lakehouse.rows("prefix.prefix") == [{"id": 1, "note": "new", "cdc_note": "a column"}]


def test_corpora_of_other_projects(lakehouse: Lakehouse) -> None:
    """One after each of its states, the other beside it.

    The first says that an event with `source.schema` is of a table of its own, `test.dbo.t1`. Of MySQL that is held wrong: its
    source block has no such member, "`db` = schema name", so the event is one of `test.t1`. It repeats the delete before it.
    """
    folder, other = corpus("doris_flink_mysql_t1"), corpus("flinkcdc_pipeline_customers_products")
    content = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text(encoding="utf-8").splitlines()]
    others = [json.loads(line) for line in (other / "events.jsonl").read_text(encoding="utf-8").splitlines()]
    keys = {"test.t1": ["id"], "customers": ["id"], "products": ["id"]}
    parts = ([*others, events[0]], events[1:2], events[2:])
    for part, state in zip(parts, content["intermediate_states"], strict=True):
        lakehouse.run("peers", part, keys=keys)
        assert lakehouse.rows("peers.t1") == state["rows"], state["after"]
    assert content["tables"]["test.t1"]["rows"] == content["intermediate_states"][-1]["rows"]
    for table, wanted in json.loads((other / "expected.json").read_text(encoding="utf-8"))["tables"].items():
        found = lakehouse.rows(f"peers.{table.split('.')[-1]}", "id")
        assert [row["id"] for row in found] == [row["id"] for row in wanted["rows"]]
        for row, expected in zip(found, wanted["rows"], strict=True):
            assert {column: row[column] for column in expected} == expected
    assert lakehouse.rejected("peers") == []
    counts = lakehouse.sql("select kind, sum(events) from monitoring.peers__event_counts where source_table = 'test.t1' group by 1")
    assert dict(counts) == {"change": 6, "ddl": 1}


def test_corpus_of_sqlserver_types_as_flink_writes_them(lakehouse: Lakehouse) -> None:
    """Without a schema block: the types that its README tells are declared by hand."""
    folder = corpus("seatunnel_sqlserver_alltypes_row")
    tables = json.loads((folder / "expected.json").read_text(encoding="utf-8"))["tables"]
    ((table, content),) = tables.items()
    declared = {"f7": "double", "f29": "bytes", "f35": "Date", "f36": "NanoTime", "f37": "Time", "f39": "NanoTimestamp"}
    declared |= dict.fromkeys(["f38", "f40", "f43"], "Timestamp") | dict.fromkeys(["f41", "f42"], "ZonedTimestamp")
    record = json.loads((folder / "events.jsonl").read_text(encoding="utf-8"))
    lakehouse.land("seatunnel", [record])
    lakehouse.scaffold("seatunnel", keys={table: ["id"]})
    for path in (lakehouse.project / "models" / "staging" / "seatunnel").glob("*.sql"):
        text = path.read_text(encoding="utf-8")
        for column, kind in declared.items():
            text = re.sub(f"'{column}': '[^']*'", f"'{column}': '{kind}'", text)
        path.write_text(text, encoding="utf-8")
    lakehouse.run("seatunnel", [{**record, "offset": 1}])
    (row,) = lakehouse.rows("seatunnel.full_types_1")
    (wanted,) = content["rows"]
    for name, value in wanted.items():
        if name == "f29_hex":
            assert bytes(row["f29"]).hex() == value
        elif isinstance(row[name], datetime):
            assert row[name] == datetime.fromisoformat(value.replace("Z", "")), name
        else:
            assert str(row[name]) == str(value) or row[name] == value, name
    assert lakehouse.rejected("seatunnel") == []


def test_corpus_of_flattened_rows_and_envelopes(lakehouse: Lakehouse) -> None:
    folder = corpus("memiiso_iceberg_serde")
    wanted = json.loads((folder / "expected.json").read_text(encoding="utf-8"))["per_file"]
    records = [json.loads(line) for line in (folder / "events.jsonl").read_text(encoding="utf-8").splitlines()]
    systems: dict[str, list[Record]] = {}
    for record in records:
        flattened = wanted[record["file"]].get("flattened")
        systems.setdefault("memiiso" if flattened else record["topic"].split(".")[0].replace("-", "_"), []).append(record)
    lakehouse.run("memiiso", systems["memiiso"], keys={"orders": ["id"], "geom": ["id"], "array_data": ["name"]})
    lakehouse.run("testc", systems["testc"])
    lakehouse.run("mysql_server_1", systems["mysql_server_1"], keys={"customers": ["id"]})

    (order,) = lakehouse.rows("memiiso.orders")
    assert {**order, "order_date": str(order["order_date"])} == wanted["unwrap-with-schema.json"]["row"]
    (geometry,) = lakehouse.rows("memiiso.geom")
    expected = wanted["serde-with-schema_geom.json"]["row"]
    assert (bytes(geometry["g"]["wkb"]).hex(), geometry["g"]["srid"]) == (expected["g"]["wkb_hex"], expected["g"]["srid"])
    assert geometry["h"] is None
    (arrays,) = lakehouse.rows("memiiso.array_data")
    assert arrays["pay_by_quarter"] == wanted["serde-with-array.json"]["row"]["pay_by_quarter"]
    (order,) = lakehouse.rows("testc.orders")
    read = wanted["serde-unnested-order-val-withschema.json"]["row"]
    assert {**order, "order_date": str(order["order_date"])} == {name: read[name] for name in order}
    assert lakehouse.rows("testc.customers") == []
    assert lakehouse.rows("mysql_server_1.customers") == [wanted["serde-update.json"]["row"]]
    for system in ("memiiso", "testc", "mysql_server_1"):
        assert lakehouse.rejected(system) == []


def _check_dialects(samples: list[Record]) -> None:
    """Each sample is of the connector whose page shows it.

    But for those that leave out `source.connector`, some of Oracle's and the tutorial's, or all of `source`. These are slips of the
    pages: every connector writes it ("`source.connector` values are `Module.name()` of each connector"). Such an event is read by
    `generic`, in the order of its topic.
    """
    from scripts.dialects import DIALECTS

    seen = set()
    for sample in samples:
        if sample["kind"] == "key":
            continue
        value = json.loads(sample["value"])
        payload = value.get("payload", value)
        told = (payload.get("source") or {}).get("connector")
        wanted = None if sample["kind"] == "tx" else sample["connector"] if told else "generic"
        found = next((dialect for dialect in DIALECTS if dialect.recognises(payload)), None)
        assert (found and found.connector) == wanted, sample["doc"]
        seen.add(wanted)
    assert len(seen) == len({sample["connector"] for sample in samples if not sample["connector"].startswith("proc-")}) + 2


def test_documented_samples_are_recognised_and_stop_nothing(lakehouse: Lakehouse) -> None:
    """Samples of documentations, whole values: each lands, the dialect that wrote it is found, and a run of them all goes on."""
    folder = corpus("debezium_docs_examples")
    samples = [json.loads(line) for line in (folder / "examples.jsonl").read_text(encoding="utf-8").splitlines()]
    systems: dict[str, list[Record]] = {"samples": [], "samples_cassandra": []}  # both have a table inventory.customers
    for number, sample in enumerate(samples):
        connector = sample["connector"]
        value = sample["value"] if isinstance(sample["value"], str) else json.dumps(sample["value"])
        is_tutorial = connector.startswith("proc-")  # of the same table as the samples of MySQL
        if connector not in ("mongodb", "ingres") and sample["kind"] != "key" and not is_tutorial:
            record = {"topic": f"docs.{connector}", "partition": 0, "offset": number, "key": None, "value": value}
            systems["samples_cassandra" if connector == "cassandra" else "samples"].append(record)
    _check_dialects(samples)
    found = set()
    notes: list[str] = []
    for system, records in systems.items():
        notes += lakehouse.run(system, records, servers="one").notes
        counted = lakehouse.sql(f"select distinct source_table from monitoring.{system}__event_counts")
        found |= {(system, table) for (table,) in counted}
    tables = ["inventory.customers", "testDB.dbo.customers", "MYSCHEMA.CUSTOMERS", "commerce.customers", "DEBEZIUM.CUSTOMERS"]
    tables += ["database.Users", "defaultdb.public.orders", "public.customers"]
    assert [note for note in notes if "mydatabase.myschema.customers: columns 'id' and 'ID' differ in case only" in note]
    assert found >= {("samples", table) for table in tables} | {("samples_cassandra", "inventory.customers")}

    history = {}
    for record in systems["samples"]:
        text = str(record["value"])
        event = json.loads(text) if text.startswith("{") else {}
        statement = event.get("payload", event)
        for change in statement.get("tableChanges", []) if isinstance(statement, dict) else []:
            names = change["id"].replace('"', "").split(".")
            ddl, columns = statement["ddl"], [column["name"] for column in change["table"]["columns"]]
            place = statement["databaseName"], statement.get("schemaName"), names[-1]
            kind = " ".join(ddl.split()[:2]) if ddl else f"{change['type']} TABLE"
            key = change["table"]["primaryKeyColumnNames"]
            history[f"{record['topic']}/0/{record['offset']}"] = (*place, kind, ddl, change["type"], key, columns)
    told = lakehouse.sql(
        "select event_id, database_name, schema_name, table_name, kind, ddl, table_change, primary_key, columns.name "
        "from monitoring.samples__ddl_history"
    )
    assert len(history) == 6 and {event: tuple(statement) for event, *statement in told} == history
