"""Debezium's other connectors, the forks that write its events, and flattened rows: order, images and refusals of each.

The histories are those of `histories.py`. All tables are one system, so that a run builds all of them.
"""

import json
import random
import re
import struct
from collections import Counter
from datetime import date, datetime, timedelta, timezone
from typing import Any

from conftest import Lakehouse, corpus
from event_factory import created
from histories import EXPECTED, NOTIFICATION, History, Record, sent_with

# Members of an update and of its `source` as the code of each writer has them.


def place_of(connector: str, at: int) -> dict[str, Any]:
    """The members of an event that place it in the log of its source; later ones are greater."""
    if connector == "vitess":
        return {"transaction": {"id": "[]", "transaction_epoch": 0, "transaction_rank": at, "total_order": 1}}
    lsn = f"00000027:00000ac0:{at:04x}"
    source: dict[str, dict[str, Any]] = {
        "cockroachdb": {"ts_hlc": f"{at}.0000000000"},
        "db2": {"commit_lsn": lsn, "change_lsn": lsn},
        "ibmi": {"receiver": "QSQJRN0009", "sequence": str(at)},
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
    "pgoutput": "",
    "spanner": "",
    "sqlserver": "",
    "vitess": "left out",
    "yashandb": "truncate, left out",
    "yboutput": "",
    "yugabytedb": "",
}


def shared_history(name: str, also: str) -> History:
    connector = {"generic": "", "opengauss": "postgresql", "pgoutput": "YugabyteDB", "yboutput": "YugabyteDB"}.get(
        name, name
    )
    in_schema = {"db": "d", "schema": "s", "table": name}
    names = {"vitess": {"keyspace": "k", "table": name}, "generic": {"db": "d", "table": name}, "ibmi": {}}.get(
        name, in_schema
    )
    events = History(name, connector, names, cells=name in ("yboutput", "yugabytedb"))

    def add(
        at: int, op: str, id: int, before: Any = None, after: Any = None, number: int | None = None, **members: Any
    ) -> None:
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
    # The key changes: both events are of one change.
    add(6, "d", 3, before={"id": 3, **moved}, headers={"__debezium.newkey": {"id": 4}})
    add(6, "c", 4, after={"id": 4, **moved}, headers={"__debezium.oldkey": {"id": 3}})
    return events


def check(lakehouse: Lakehouse, system: str) -> None:
    found = {name: lakehouse.rows(f"{system}.{name}", "id") for name in EXPECTED}
    assert found == {name: rows for name, (_, rows) in EXPECTED.items()}
    assert lakehouse.rejected(system) == []


def kinds_of(events: History) -> dict[str, int]:
    """How many records of each kind a history has, and the two that are landed with it."""
    others = {"ticdc": {"ddl": 1, "truncate": 1, "message": 1}, "cockroachdb": {"heartbeat": 1}}.get(events.table, {})
    tombstones = sum(record["value"] is None for record in events.records)
    changes = len(events.records) - tombstones - sum(others.values())
    kinds = {**others, "tombstone": tombstones, "change": changes, "ddl": others.get("ddl", 0) + 1, "notification": 1}
    return {kind: number for kind, number in kinds.items() if number}


def test_histories_give_the_rows_of_their_sources(lakehouse: Lakehouse) -> None:
    """Also with DDL and notifications in the topics of the tables."""
    lakehouse.run(
        "sources", [record for events, _ in EXPECTED.values() for record in events.records + sent_with(events)]
    )
    check(lakehouse, "sources")
    told = lakehouse.sql("select source_table, kind, sum(events) from monitoring.sources__event_counts group by 1, 2")
    counted: dict[str, dict[str, int]] = {}
    for table, kind, number in told:
        counted.setdefault(table.rsplit(".", 1)[1], {})[kind] = number
    assert counted == {events.table: kinds_of(events) for events, _ in EXPECTED.values()}
    for name, ids in {
        "ticdc": [1, 2, 3, 4],
        "cockroachdb": [1, 2, 3],
    }.items():  # also of deleted rows, and of nothing else
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


def test_every_connector_has_what_it_shares_with_others(lakehouse: Lakehouse) -> None:
    """Key changes, transactions with their markers, and where a connector tells of them truncates and values that are
    left out.
    """
    arriving = []
    for name, also in SHARED.items():
        arriving += shared_history(name, also).records
        for status, count in (("BEGIN", None), ("END", 2)):
            marker = {
                "status": status,
                "id": f"of {name}",
                "event_count": count,
                "data_collections": None,
                "ts_ms": 1700000000000,
            }
            arriving.append(
                {"topic": "src.transaction", "key": json.dumps({"id": f"of {name}"}), "value": json.dumps(marker)}
            )
    flattened = History("flattened", "", {})
    for lsn, id, row in (
        (1, 1, {"note": "kept", "more": "old"}),
        (2, 1, {"note": "__debezium_unavailable_value", "more": "new"}),
        (3, 3, {"note": "moved", "more": "too"}),
        (4, 3, None),
        (5, 4, {"note": "moved", "more": "too"}),
    ):
        flattened.record(
            {"id": id, **(row or {}), "__op": "u", "__lsn": lsn, "__deleted": str(row is None).lower()}, {"id": id}
        )
    tidb = History("tidb", "TiCDC", {"db": "d", "table": "tidb"})
    tidb.add("c", 1, after={"id": 1}, source={"commit_ts": 1})
    tidb.add(
        "c", 2, after={"id": 2}, source={"commit_ts": 1, "table": "tidb_too"}
    )  # so that the topic is read once, for both
    ticdc = {"connector": "TiCDC", "commit_ts": 2, "name": "src"}
    tidb.record({"source": {**ticdc, "db": "d", "table": "tidb"}, "ddl": "alter table tidb add more int"}, None)
    watermark = {"source": {**ticdc, "db": "", "table": ""}, "ts_ms": 1, "transaction": None, "op": "m"}
    tidb.record(watermark, {})
    resolved = {"resolved": "1747243394200039011.0000000000"}
    of_vitess = {"vgtid": "[]", "ts_ms": 1}
    arriving += [
        {"topic": f"src.{table}", "key": None, "value": json.dumps(of_vitess)} for table in ("vitess", "flattened")
    ]
    arriving += [
        {"topic": "src.no_table", "key": None, "value": json.dumps(value)} for value in (watermark, resolved, of_vitess)
    ]
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
    told = lakehouse.sql(
        "select transaction_id, expected_events, landed_events from monitoring.alike__transactions order by 1"
    )
    assert told == [(f"of {name}", 2, 2) for name in sorted(SHARED)]
    gtid = lakehouse.sql("select _cdc_transaction_id from silver.alike__mariadb where id = 4")
    assert gtid == [("0-1-6",)]  # of an event without a transaction block
    assert lakehouse.sql("select table_name, ddl from monitoring.alike__ddl_history") == [
        ("tidb", "alter table tidb add more int")
    ]
    kinds = (
        "select source_table, kind, sum(events) from monitoring.alike__event_counts where kind <> 'change' group by"
        " 1, 2"
    )
    of_no_row = {
        ("d.tidb", "ddl"): 1,
        (None, "message"): 2,
        (None, "heartbeat"): 2,
        (None, "transaction"): 2 * len(SHARED),
    }
    of_no_row |= {("k.vitess", "heartbeat"): 1, ("src.flattened", "heartbeat"): 1}
    assert {(table, kind): number for table, kind, number in lakehouse.sql(kinds) if kind != "truncate"} == of_no_row
    assert lakehouse.rows("alike.tidb") == [{"id": 1}] and lakehouse.rows("alike.tidb_too") == [{"id": 2}]


def test_a_heartbeat_of_many_shards_is_a_heartbeat(lakehouse: Lakehouse) -> None:
    """A pattern over it overflowed the stack of the JVM, which ended every run."""
    shards = [{"keyspace": "sales", "shard": f"-{at:04x}", "gtid": f"MySQL56/e9148eb0:1-{at}"} for at in range(2000)]
    beat = json.dumps({"ts_ms": 1700000000000, "vgtid": json.dumps(shards)})
    others = [
        {"topic": topic, "partition": 0, "offset": 90, "key": None, "value": beat}
        for topic in ("shop.public.orders", "beats")
    ]
    lakehouse.run("shards", [created(1, id=1), *others])
    counts = lakehouse.sql(
        "select source_table, kind, events from monitoring.shards__event_counts order by 1 nulls first, 2"
    )
    assert counts == [(None, "heartbeat", 1), ("public.orders", "change", 1), ("public.orders", "heartbeat", 1)]


def test_cells_are_exact_and_keys_that_are_collections_are_whole(lakehouse: Lakehouse) -> None:
    """In a cell, too, a number that a text column gets is printed anew; a tuple in a key is no list that grew."""
    names = {"db": "NULL", "keyspace": "ks", "table": "cells"}
    events = History("cells", "cassandra", names, cells=True)
    rows = [
        ("n/a", "1.10"),
        ("[1. Note]", "2.20"),
        ("12.50 kg", "3.30"),
        ("n/a", 12345678901234567890.12),
        ("n/a", 4.5),
    ]
    for at, (note, price) in enumerate(rows):
        row = {"id": [1, at], "note": note, "price": price}
        events.add("u" if at else "c", at, after=row, key={"id": {"value": row["id"]}}, source={"ts_us": 1000 + at})
    records = [
        {**one, "value": one["value"].replace("1.2345678901234567e+19", "12345678901234567890.12")}
        for one in events.records
    ]
    assert "12345678901234567890.12" in records[3]["value"]
    kinds = {"id": "any", "note": "string", "price": "DecimalText(30,2)"}
    lakehouse.land("in_cells", records)
    lakehouse.scaffold("in_cells")
    staging = lakehouse.project / "models" / "staging" / "in_cells" / "stg_in_cells__cells.sql"
    text = re.sub(
        r"'(id|price|note)': '[^']+'", lambda found: f"'{found[1]}': '{kinds[found[1]]}'", staging.read_text()
    )
    staging.write_text(text)
    lakehouse.build_landed("in_cells")
    assert lakehouse.sql("select id, note, cast(price as string) from in_cells.cells order by id") == [
        ("[1,0]", "n/a", "1.10"),
        ("[1,1]", "[1. Note]", "2.20"),
        ("[1,2]", "12.50 kg", "3.30"),
    ]
    assert lakehouse.rejected("in_cells") == [(f"src.cells/0/{at}", "value_not_exact: price") for at in (3, 4)]


PARTIAL = "partial_row: value_capture_type has to be NEW_ROW"


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
        {
            "status": "END",
            "id": "571:9",
            "event_count": 1,
            "data_collections": [{"data_collection": "s.t", "event_count": 1}],
        },
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
        (
            {"id": 2, "note": "gone"},
            {"op": "c", "lsn": 100, "file": "b.000009", "pos": 100, "row": 9, "deleted": "false"},
        ),
        ({"id": 2, "note": ""}, {"op": "d", "lsn": 101, "file": "b.000009", "pos": 100, "row": 10, "deleted": "true"}),
        (
            {"id": 1, "note": "new"},
            {"op": "u", "lsn": 1000, "file": "b.1000000", "pos": 4, "row": 0, "deleted": "false"},
        ),
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
    for topic, told in (
        ("renamed_rewrite", True),
        ("renamed_tombstone", False),
    ):  # add.fields=op:operation,source.lsn:place
        for at, (columns, metadata) in enumerate(rows):
            value = {**columns, "__operation": metadata["op"], "__place": metadata["lsn"]}
            gone = metadata["op"] == "d" and not told
            value |= {"__deleted": metadata["deleted"]} if told else {}
            arriving.append(flat(topic, at, {"id": columns["id"]}, None if gone else value))
    others = (
        {"sequence": "9"},
        {"lsn": "1:2::9:0"},
        {"file": "CommitLog-7-9.log"},
        {"sequence": "[]"},
        {"sequence": "1"},
    )
    for at, ((columns, metadata), fields) in enumerate(
        zip(rows, others, strict=True)
    ):  # called as PostgreSQL's and MySQL's are
        value = {**columns, **{f"__source_{name}": told for name, told in fields.items()}, "__source_mod_number": at}
        arriving.append(
            flat("rewrite_other_fields", at, {"id": columns["id"]}, {**value, "__deleted": metadata["deleted"]})
        )
    topics = {record["topic"] for record in arriving}
    arriving += no_rows("rewrite_offset") + no_rows("tombstones")
    arriving += [flat("look_alikes", at, None, value) for at, value in enumerate(LOOK_ALIKES)]
    lakehouse.run("flattened", arriving[::2], connector="flattened")
    lakehouse.run("flattened", arriving[1::2], connector="flattened")

    for topic in topics:
        assert lakehouse.sql(f"select id, note from flattened.{topic}") == [(1, "new")], topic
    assert lakehouse.table("flattened.rewrite_other_fields").columns == ["id", "note"]
    assert lakehouse.sql("select id, status from silver.flattened__look_alikes order by id") == [
        ("1", "OPEN"),
        ("2", "BEGIN"),
    ]
    assert lakehouse.rejected("flattened") == []
    query = (
        "select source_table, kind, sum(events) from monitoring.flattened__event_counts where kind not in ('change',"
        " 'tombstone')"
    )
    kinds = {"ddl": 3, "heartbeat": 3, "message": 1, "notification": 1, "transaction": 2}
    assert lakehouse.sql(f"{query} group by 1, 2 order by 1, 2") == [
        ("look_alikes", "heartbeat", 1),
        *((topic, kind, number) for topic in ("rewrite_offset", "tombstones") for kind, number in kinds.items()),
    ]


def envelope(topic: str, row: dict[str, Any]) -> Record:
    value = {"op": "u", "before": None, "after": row, "source": {"db": "d", "table": "t"}}
    return {
        "topic": topic,
        "partition": 0,
        "offset": 0,
        "key": json.dumps({"id": row["id"]}),
        "value": json.dumps(value),
    }


def test_images_without_an_operation_tell_it(lakehouse: Lakehouse) -> None:
    def images(offset: int, before: Any, after: Any) -> dict[str, Any]:
        value = {"before": before, "after": after, "source": {"db": "d", "table": "images"}}
        key = json.dumps({"id": (before or after or {"id": 9})["id"]})
        return {"topic": "t", "partition": 0, "offset": offset, "key": key, "value": json.dumps(value)}

    rows = [{"id": number, "note": note} for number, note in ((1, "a"), (1, "b"), (2, "c"))]
    changes = [(None, rows[0]), (rows[0], rows[1]), (None, rows[2]), (rows[2], None), (None, None)]
    gone = {"before": rows[0], "after": None}
    parts: list[dict[str, Any]] = [
        {"before": rows[0]},
        {"after": rows[0]},
        {**gone, "op": None},
        {"before": rows[0], "op": None},
    ]
    lakehouse.run("images", [images(offset, *images_of) for offset, images_of in enumerate(changes)])
    assert lakehouse.rows("images.images") == [rows[1]]
    told = lakehouse.sql("select _cdc_op, _cdc_reject_reason from staging.stg_images__images order by _cdc_event_id")
    assert told == [("c", None), ("u", None), ("c", None), ("d", None), (None, "not_an_envelope")]
    others = [json.dumps({**part, "source": {"db": "d", "table": "images"}}) for part in parts]
    others.append('{"before": "broken", "after": null}')
    lakehouse.run("images", [{**images(5 + number, None, None), "value": value} for number, value in enumerate(others)])
    assert lakehouse.rejected("images") == [(f"t/0/{offset}", "not_an_envelope") for offset in range(4, 10)]
    assert lakehouse.rows("images.images") == [rows[1]]


def test_corpora_of_other_projects(lakehouse: Lakehouse) -> None:
    """One after each of its states, the other beside it.

    The first says that an event with `source.schema` is of a table of its own, `test.dbo.t1`. Of MySQL that is held
    wrong: its source block has no such member, "`db` = schema name", so the event is one of `test.t1`. It repeats the
    delete before it.
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
        columns = dict.fromkeys(wanted["rows"][-1])  # of which some came later: older rows have none
        assert found == [columns | row for row in wanted["rows"]]
    assert lakehouse.rejected("peers") == []
    counts = lakehouse.sql(
        "select kind, sum(events) from monitoring.peers__event_counts where source_table = 'test.t1' group by 1"
    )
    assert dict(counts) == {"change": 6, "ddl": 1}


def test_corpus_of_sqlserver_types_as_flink_writes_them(lakehouse: Lakehouse) -> None:
    """Without a schema block: the types that its README tells are declared by hand."""
    folder = corpus("seatunnel_sqlserver_alltypes_row")
    tables = json.loads((folder / "expected.json").read_text(encoding="utf-8"))["tables"]
    ((table, content),) = tables.items()
    declared = {"f29": "bytes", "f35": "Date", "f36": "NanoTime", "f37": "Time", "f39": "NanoTimestamp"}
    declared |= dict.fromkeys(["f7", "f9"], "double")
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
    (told,) = content["rows"]
    told["f29"] = bytes.fromhex(told.pop("f29_hex"))
    times = {
        name: datetime.fromisoformat(told[name].replace("Z", "")) for name in ("f38", "f39", "f40", "f41", "f42", "f43")
    }
    wanted = json.loads(record["value"])["after"] | told | times
    assert {name: str(value) for name, value in row.items()} == {name: str(value) for name, value in wanted.items()}
    assert lakehouse.rejected("seatunnel") == []


def test_corpus_of_flattened_rows_and_envelopes(lakehouse: Lakehouse) -> None:
    from scripts.declared import declared_tables

    folder = corpus("memiiso_iceberg_serde")
    wanted = json.loads((folder / "expected.json").read_text(encoding="utf-8"))["per_file"]
    records = [json.loads(line) for line in (folder / "events.jsonl").read_text(encoding="utf-8").splitlines()]
    systems: dict[str, list[Record]] = {}
    for record in records:
        flattened = wanted[record["file"]].get("flattened")
        systems.setdefault("memiiso" if flattened else record["topic"].split(".")[0].replace("-", "_"), []).append(
            record
        )
    schema = (folder / "serde-with-schema2.json").read_text(encoding="utf-8")  # without a payload: no event
    systems["testc"].append({"topic": "schemas", "partition": 0, "offset": 0, "key": None, "value": schema})
    lakehouse.run("memiiso", systems["memiiso"], keys={"orders": ["id"], "geom": ["id"], "array_data": ["name"]})
    lakehouse.run("testc", systems["testc"])
    lakehouse.run("mysql_server_1", systems["mysql_server_1"], keys={"customers": ["id"]})

    for told in wanted.values():
        if "order_date" in (row := told.get("row", {})):
            row["order_date"] = date.fromisoformat(row["order_date"])
    order = wanted["serde-unnested-order-val-withschema.json"]["row"]
    assert order["order_date"] == date(1970, 1, 1) + timedelta(days=order.pop("order_date_epoch_day"))
    place = wanted["serde-with-schema_geom.json"]["row"]["g"]
    place["wkb"] = bytes.fromhex(place.pop("wkb_hex"))
    assert struct.unpack("<bidd", place["wkb"]) == (1, 1, *place.pop("point"))  # little-endian, a point
    assert wanted["serde-with-array.json"]["row"]["schedule"] == "array of string"
    assert dict(lakehouse.table("memiiso.array_data").dtypes)["schedule"] == "array<string>"
    (array,) = [
        json.loads(record["value"])["payload"] for record in records if record["file"] == "serde-with-array.json"
    ]
    wanted["serde-with-array.json"]["row"]["schedule"] = array["schedule"]

    declared = declared_tables("memiiso", lakehouse.project / "models").values()
    tables_of = {topic: one.table.source_tables for one in declared for topic in one.table.topics}
    tables = [("memiiso", "orders"), ("memiiso", "geom"), ("memiiso", "array_data")]
    tables += [("testc", "orders"), ("testc", "customers"), ("mysql_server_1", "customers")]
    changes = {
        row["_cdc_event_id"]: row for table in tables for row in lakehouse.rows("staging.stg_{}__{}".format(*table))
    }
    for record in records:
        told = wanted[record["file"]]
        if "kind" in told:
            continue
        change = changes.pop(f"{record['topic']}/0/{record['offset']}")
        row = {name: value for name, value in change.items() if not name.startswith("_cdc_")}
        assert row == told.get("row", dict.fromkeys(row) | told.get("deleted_key", {})), record["file"]
        meta = told.get("meta", {})
        op = told.get("op") or meta.get("__op") or json.loads(record["value"])["payload"]["__op"]
        assert (change["_cdc_op"], change["_cdc_is_snapshot"]) == (op, op == "r"), record["file"]
        if meta:
            assert tables_of[record["topic"]] == {meta["__table"]}
            assert f"{meta['__lsn']:020}" in change["_cdc_position"]
            assert change["_cdc_changed_at"].replace(tzinfo=timezone.utc).timestamp() == meta["__source_ts_ms"] / 1000
    assert changes == {}
    # Of MySQL are the create and the update of one row, at one place of the log.
    left = [
        wanted[file]["row"]
        for file in ("unwrap-with-schema.json", "serde-with-schema_geom.json", "serde-with-array.json")
    ]
    left += [order, None, wanted["serde-update.json"]["row"]]
    assert [lakehouse.rows(".".join(table)) for table in tables] == [[row] if row else [] for row in left]
    for system in ("memiiso", "testc", "mysql_server_1"):
        assert lakehouse.rejected(system) == []
    counted = "select kind, sum(events) from monitoring.testc__event_counts where source_table is null group by kind"
    assert dict(lakehouse.sql(counted)) == {"ddl": 1, "unrecognised": 1}
    (ddl,) = [json.loads(record["value"])["payload"] for record in records if "kind" in wanted[record["file"]]]
    history = lakehouse.sql(
        "select database_name, schema_name, table_name, kind, ddl, columns from monitoring.testc__ddl_history"
    )
    assert history == [(ddl["databaseName"], None, "geom", "CREATE TABLE", ddl["ddl"], None)]


def _check_dialects(samples: list[Record]) -> None:
    """Each sample is of the connector whose page shows it.

    But for those that leave out `source.connector`, some of Oracle's and the tutorial's, or all of `source`. These are
    slips of the pages: every connector writes it ("`source.connector` values are `Module.name()` of each connector").
    Such an event is read by `generic`, in the order of its topic.
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
    assert (
        len(seen) == len({sample["connector"] for sample in samples if not sample["connector"].startswith("proc-")}) + 2
    )


def _documented(samples: list[Record]) -> dict[str, list[Record]]:
    """The events of the documentation by the system that they land in, in a topic for each page and table.

    Rows without `source`, which show the block of a transaction, are in one topic: nothing tells their table. Keys are
    no events; they go with those of their page, with the value of its row where the page shows that of another one.
    MongoDB's events are landed in `test_mongodb.py`. One slip is mended: Informix' schema block says `id`, its key and
    an update say `ID`.
    """
    systems: dict[str, list[Record]] = {"samples": [], "samples_mysql": []}
    keys: dict[str, Any] = {}
    for offset, sample in enumerate(samples):
        page = "tutorial" if sample["connector"].startswith("proc-") else sample["connector"]
        kind = sample["kind"].removeprefix("op=")
        text = sample["value"].replace('"ID"', '"id"') if page == "informix" else sample["value"]
        payload = json.loads(text).get("payload", json.loads(text))
        source = payload.get("source") or {}
        if kind == "key":
            keys[page] = json.loads(text)
        if kind == "key" or page == "mongodb":
            continue
        is_row = kind in ("c", "u", "d", "r")
        key = keys.get(page) if source and (is_row or kind == "ddl") else None
        image = payload.get("after") or payload.get("before")
        if key and image:  # some keys are text
            key = {**key, "payload": {name: type(shown)(image[name]) for name, shown in key["payload"].items()}}
        topic = f"docs.{page}.{(source.get('table') or 'rows') if is_row or kind == 't' else kind}"
        topic = topic if source or not is_row else "docs.without_source"
        record = {
            "topic": topic,
            "partition": 0,
            "offset": offset,
            "key": json.dumps(key) if key else None,
            "value": text,
        }
        is_of_mysql = page in ("mysql", "mariadb", "tutorial") and topic.endswith("customers")
        systems["samples_mysql" if is_of_mysql else "samples"].append(record)
    return systems


def test_documented_samples_are_recognised_and_have_their_rows(lakehouse: Lakehouse) -> None:
    """Samples of documentations: each event lands with its key, the dialect that wrote it is found, and each row has
    its values.
    """
    from scripts.declared import declared_tables

    folder = corpus("debezium_docs_examples")
    samples = [json.loads(line) for line in (folder / "examples.jsonl").read_text(encoding="utf-8").splitlines()]
    _check_dialects(samples)
    systems = _documented(samples)
    elsewhere = [sample for sample in samples if sample["kind"] == "key" or sample["connector"] == "mongodb"]
    assert sum(map(len, systems.values())) + len(elsewhere) == len(samples) == 111
    # Cassandra's page shows no key; the tutorial leaves out the connector, and its pages are not in the order of the
    # events.
    lakehouse.run("samples", systems["samples"], keys={"inventory.customers": ["id", "registration_date"]})
    lakehouse.run("samples_mysql", systems["samples_mysql"], "mysql", servers="one")

    refused = {"docs.spanner.Users/0/52": PARTIAL}  # "refuse NEW_VALUES/OLD_AND_NEW_VALUES in merge mode"
    for system, records in systems.items():
        events = {f"{record['topic']}/0/{record['offset']}": record for record in records}
        for declared in declared_tables(system, lakehouse.project / "models").values():
            wanted: dict[str, Any] = {}
            for row in lakehouse.rows(f"staging.stg_{system}__{declared.relation}", "_cdc_event_id"):
                event = row["_cdc_event_id"]
                record = events.pop(event)
                payload = json.loads(record["value"])
                payload = payload.get("payload", payload)
                is_gone = payload["op"] in ("d", "t")
                key = json.loads(record["key"])["payload"] if record["key"] else {}
                image = payload.get("after") or payload.get("before") or key
                wanted = {name: value["value"] if isinstance(value, dict) else value for name, value in image.items()}
                if is_gone:
                    wanted = {name: value for name, value in wanted.items() if name in declared.table.keys}
                found = {name: value for name, value in row.items() if not name.startswith("_cdc_")}
                assert found == dict.fromkeys(declared.table.columns) | wanted, event
                assert (row["_cdc_op"], row["_cdc_reject_reason"]) == (payload["op"], refused.get(event)), event
            if system == "samples" and declared.table.keys:  # each page has one row, and its events in their order
                assert lakehouse.rows(f"samples.{declared.relation}") == ([] if is_gone else [wanted]), (
                    declared.relation
                )
        # Oracle's truncate is of a table that has no other event.
        names = {"ddl": "ddl", "tx": "transaction", "m": "message", "TEST_TABLE": "change_without_model"}
        others = Counter(names[record["topic"].split(".")[-1]] for record in events.values())
        counted = (
            f"select kind, sum(events) from monitoring.{system}__event_counts where source_table is null group by kind"
        )
        assert dict(lakehouse.sql(counted)) == others
    sarah = {"id": 1005, "first_name": "Sarah", "last_name": "Thompson", "email": "kitt@acme.com"}
    kenneth = {"id": 1006, "first_name": "Kenneth", "last_name": "Anderson", "email": "kander@acme.com"}
    assert lakehouse.rows("samples_mysql.customers") == [sarah, kenneth]

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
