"""Vendors' dialects of Debezium's events: Tencent, Huawei CDL, Alibaba Lindorm; and formats that are not Debezium's."""

import base64
import json
import re
from datetime import datetime
from typing import Any

import pytest
from conftest import REPOSITORY, Lakehouse, check_events, corpus, corpus_records
from event_factory import shuffled

Record = dict[str, Any]
EVENTS = REPOSITORY / "tests" / "events"


def corpus_rows(name: str, by_topic: str | None = None) -> list[dict[str, Any]]:
    content = json.loads((corpus(name) / "expected.json").read_text(encoding="utf-8"))
    (table,) = (content["tables_by_topic"][by_topic] if by_topic else content["tables"]).values()
    rows: list[dict[str, Any]] = table["rows"]
    return rows


def as_text(value: Any) -> Any:
    """A value of a row as the corpora write it."""
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds")
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    return value


def corpus_events(name: str) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = json.loads((corpus(name) / "expected.json").read_text(encoding="utf-8"))["per_event"]
    return events


def texts(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: as_text(value) for name, value in row.items()} for row in rows]


def ordered(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: str(next(iter(row.values()))))


def record(topic: str, offset: int, value: Any, key: Any = None) -> Record:
    return {
        "topic": topic,
        "partition": 0,
        "offset": offset,
        "key": key if isinstance(key, str | None) else json.dumps(key),
        "value": value if isinstance(value, str | None) else json.dumps(value, separators=(",", ":")),
    }


# The corpora


def test_huawei_corpus_gives_its_rows_in_order_and_shuffled(lakehouse: Lakehouse) -> None:
    """Both formats are of one table, and are loaded as one."""
    records = corpus_records(corpus("vendor_huawei_cdl"))
    lakehouse.run("huawei_corpus", records)
    wanted = [{name: row[name] for name in ("count1", "id", "time1", "decimalNum")} for row in corpus_rows("vendor_huawei_cdl")]

    assert texts(lakehouse.rows("huawei_corpus.ct_pg2hudi", "id")) == wanted
    assert lakehouse.rejected("huawei_corpus") == []
    kinds = lakehouse.sql("select kind, sum(events) from monitoring.huawei_corpus__event_counts group by 1 order by 1")
    assert kinds == [("change", 10), ("heartbeat", 2)]
    check_events(lakehouse, "huawei_corpus", corpus_events("vendor_huawei_cdl"), as_text)
    types = {"count1": "bigint", "id": "int", "time1": "timestamp_ntz", "decimalNum": "string"}
    assert dict(lakehouse.spark.table("huawei_corpus.ct_pg2hudi").dtypes) == types

    for part in shuffled(records, seed=3):
        lakehouse.run("huawei_shuffled", part)
    assert texts(lakehouse.rows("huawei_shuffled.ct_pg2hudi", "id")) == wanted
    assert lakehouse.rejected("huawei_shuffled") == []


def test_lindorm_corpora_give_their_rows(lakehouse: Lakehouse) -> None:
    content = json.loads((corpus("vendor_lindorm_sql") / "expected.json").read_text(encoding="utf-8"))
    steps = {int(step["after"].rsplit(" ", 1)[1]): step["rows"] for step in content["intermediate_states"]}
    records = corpus_records(corpus("vendor_lindorm_sql"))
    sample = [one for one in records if one["topic"] == "lindorm.structure_sample"]
    waiting: list[Record] = []
    for one in records[: -len(sample)]:
        waiting.append(one)
        if one["offset"] in steps:
            lakehouse.run("lindorm_corpus", waiting, keys={"default.customers": ["id"]})
            waiting = []
            assert lakehouse.rows("lindorm_corpus.customers") == steps[one["offset"]], one["offset"]
    lakehouse.run("lindorm_corpus", waiting)
    assert ordered(lakehouse.rows("lindorm_corpus.customers")) == corpus_rows("vendor_lindorm_sql")

    lakehouse.run("lindorm_sample", sample, keys={"customers": ["id"]})
    assert lakehouse.rows("lindorm_sample.customers") == corpus_rows("vendor_lindorm_sql", "lindorm.structure_sample")
    assert dict(lakehouse.spark.table("lindorm_sample.customers").dtypes) == {"id": "int", "name": "string"}

    parts = shuffled(corpus_records(corpus("vendor_lindorm_hbase")), seed=3)
    for part in parts:
        lakehouse.run("hbase_corpus", part)
    assert ordered(texts(lakehouse.rows("hbase_corpus.customers"))) == ordered(corpus_rows("vendor_lindorm_hbase"))
    of_sample = [event for event in content["per_event"] if event["topic"] == sample[0]["topic"]]
    check_events(lakehouse, "lindorm_corpus", [event for event in content["per_event"] if event not in of_sample])
    check_events(lakehouse, "lindorm_sample", of_sample)
    of_hbase = corpus_events("vendor_lindorm_hbase")
    redelivered = {one["offset"] - 1000 for part in parts for one in part}
    of_hbase += [{**event, "offset": event["offset"] + 1000} for event in of_hbase if event["offset"] in redelivered]
    check_events(lakehouse, "hbase_corpus", of_hbase, as_text)
    assert {kind for _, kind in lakehouse.spark.table("lindorm_corpus.customers").dtypes} == {"string"}
    assert {kind for _, kind in lakehouse.spark.table("hbase_corpus.customers").dtypes} == {"binary"}
    for system in ("lindorm_corpus", "lindorm_sample", "hbase_corpus"):
        assert lakehouse.rejected(system) == []


# The example systems

EXAMPLES = (
    "tencent_postgresql",
    "tencent_mysql",
    "huawei_cdl",
    "huawei_cdl_debezium",
    "lindorm_sql",
    "lindorm_hbase",
    "sqlserver",
    "oracle",
)
KEYS = {"meters": ["meter_id"]}


def test_examples_give_their_rows_in_order_and_shuffled(lakehouse: Lakehouse) -> None:
    """All in one system: the vendors' tables have names of their own, but for the one that both of Huawei's formats carry."""
    from scripts.scaffold import declared_tables

    records: list[Record] = []
    wanted: dict[str, dict[str, Any]] = {}
    for name in EXAMPLES:
        records += [json.loads(line) for line in (EVENTS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]
        for table, content in json.loads((EVENTS / f"{name}.expected.json").read_text(encoding="utf-8")).items():
            wanted.setdefault(table, {"key": content["key"], "rows": []})["rows"] += content["rows"]

    lakehouse.run("vendors", records, keys=KEYS)
    for part in shuffled(records, seed=3):
        lakehouse.run("vendors_shuffled", part, keys=KEYS)
    declared = {d.table.name: d for d in declared_tables("vendors", lakehouse.project / "models").values()}
    assert {name: d.table.keys for name, d in declared.items()} == {name: content["key"] for name, content in wanted.items()}
    for table, content in wanted.items():
        for system in ("vendors", "vendors_shuffled"):
            assert ordered(lakehouse.printed(f"{system}.{declared[table].relation}")) == ordered(content["rows"]), (system, table)
    assert lakehouse.rejected("vendors") == lakehouse.rejected("vendors_shuffled") == []


# Huawei CDL


def cdl(
    offset: int,
    operation: str,
    data: Any,
    before: dict[str, Any] | None = None,
    unique: dict[str, Any] | None = None,
    **members: Any,
) -> Record:
    """CDL JSON without a schema block; `lsn` is the offset unless given."""
    lsn = members.pop("lsn", offset)
    payload = {
        "DATA_STORE": "POSTGRESQL",
        "SEG_OWNER": "hr",
        "TABLE_NAME": "staff",
        "TIMESTAMP": 1700000000000 + offset,
        "OPERATION": operation,
        "LOB_COLUMNS": None,
        "transaction": {"properties": [{"name": "txId", "value": 7}] + ([{"name": "lsn", "value": lsn}] if lsn else [])},
        "unique": unique,
        "data": data,
        "before": before,
        "message_version": "1.0",
        "message_type": "0",
        "HEARTBEAT_IDENTIFIER": None,
        **members,
    }
    return record("staff", offset, {"payload": payload})


def debezium_json(offset: int, op: str, after: Any, before: Any = None, unique: Any = None, **members: Any) -> Record:
    """CDL's Debezium JSON without a schema block."""
    source = {"version": "1.4.0.Final", "connector": "postgresql", "name": "cdl", "ts_ms": 1, "snapshot": "false"}
    source |= {"db": "d", "schema": "hr", "table": "staff", "txId": 9, "lsn": offset, **members.pop("source", {})}
    payload = {"before": before, "after": after, "source": source, "op": op, "ts_ms": 2, "message_version": "2.0"}
    return record("staff2", offset, payload | {"message_type": "0", "LOB_COLUMNS": None, "unique": unique} | members)


def test_huawei_lob_columns_that_are_listed_keep_their_value(lakehouse: Lakehouse) -> None:
    def row(number: int, note: str | None = None, photo: str | None = None, pay: int = 1) -> dict[str, Any]:
        return {"id": number, "pay": pay, "note": note, "photo": photo}

    late = cdl(12, "UPDATE", row(2, None, "p2"), unique={"id": 2}, LOB_COLUMNS="note")
    lakehouse.run(
        "cdl_lob",
        [
            cdl(10, "INSERT", row(1, "n", "p"), unique={"id": 1}),
            cdl(11, "INSERT", row(2, "n", "p"), unique={"id": 2}),
            cdl(20, "UPDATE", row(1, pay=2), row(1, "n", "p"), unique={"id": 1}, LOB_COLUMNS="note, photo"),
            cdl(21, "UPDATE", row(2, pay=3), unique={"id": 2}, LOB_COLUMNS='["photo"]'),
            debezium_json(22, "c", row(3, "kept", "p"), unique={"id": 3}),
            debezium_json(23, "u", {"id": 3, "pay": 4}, unique={"id": 3}, LOB_COLUMNS="photo;note"),
            cdl(24, "INSERT", row(4, None, "carried"), unique={"id": 4}, LOB_COLUMNS="note,photo"),
            cdl(25, "INSERT", row(5), unique={"id": 5}, LOB_COLUMNS="note|picture"),
            debezium_json(26, "u", row(3, "__debezium_unavailable_value", "new"), unique={"id": 3}),
        ],
    )
    lakehouse.run("cdl_lob", [late])

    assert lakehouse.rows("cdl_lob.staff", "id") == [
        row(1, "n", "p", pay=2),
        row(2, None, "p2", pay=3),  # `photo` from the late event, the newest that carries it
        row(3, "kept", "new"),
        row(4, None, "carried"),
    ]
    assert lakehouse.rejected("cdl_lob") == [("staff/0/25", "unknown_left_out_column")]


def test_huawei_records_are_rows_heartbeats_or_rejected(lakehouse: Lakehouse) -> None:
    row = {"id": 1, "name": "a"}
    beat: dict[str, Any] = {"HEARTBEAT_IDENTIFIER": "b6c1"}
    lakehouse.run(
        "cdl_kinds",
        [
            cdl(10, "INSERT", row, unique={"id": 1}, **beat),
            cdl(11, "INSERT", {"id": 2, "name": "b"}, unique={"id": 2}, **beat),
            cdl(12, "INSERT", None, **beat),
            cdl(13, "HEARTBEAT", None, message_type="9"),
            debezium_json(14, "c", None, **beat),
            debezium_json(15, "u", row, unique={"id": 1}, isHeartbeat=True),
            cdl(16, "DELETE", None, unique={"id": 2}, **beat),
            cdl(17, "TRUNCATE", None),
            cdl(18, "UPDATE", row, unique={"id": 1}, message_type="1"),
            cdl(19, "UPDATE", row, unique={"id": 1}, message_version="3.0"),
            cdl(20, "UPDATE", None, unique={"id": 1}),
            cdl(21, "UPDATE", row, unique={"id": 1}, lsn=None),
            cdl(22, "MERGE", row, unique={"id": 1}),
            record("staff", 23, "{}"),
            record("staff", 24, None),
            cdl(25, "INSERT", "no row"),
            {**cdl(33, "INSERT", {"id": 7, "name": "g"}, unique={"id": 7})},
            {**cdl(34, "DELETE", None, lsn=99999999), "key": '{"id": 7}'},  # a delete that the Kafka key alone names
            cdl(35, "DELETE", None),  # one that nothing names
            cdl(36, "INSERT", {"id": 8, "name": "h"}, unique={"id": 8}),
            cdl(37, "DELETE", None, {"id": 1, "name": "invented"}, unique={"id": 8}),
            cdl(26, "INSERT", {"id": 9, "name": "other"}, unique={"id": 9}, TABLE_NAME="board"),
            *(
                {**one, "topic": "no_table"}
                for one in (
                    cdl(27, "INSERT", None, **beat),
                    cdl(28, "HEARTBEAT", None, TABLE_NAME=None),
                    debezium_json(29, "c", None, **beat),
                    debezium_json(30, "u", row, unique={"id": 1}, isHeartbeat=True, source={"table": ""}),
                    cdl(31, "DELETE", None, unique={"id": 2}, TABLE_NAME=None),
                    cdl(32, "TRUNCATE", None, TABLE_NAME=None),
                )
            ),
        ],
    )

    assert lakehouse.rows("cdl_kinds.staff", "id") == [row]
    assert lakehouse.rows("cdl_kinds.board", "id") == [{"id": 9, "name": "other"}]
    assert dict(lakehouse.rejected("cdl_kinds")) == {
        "staff/0/17": "unknown_operation",
        "staff/0/18": "unknown_message",
        "staff/0/19": "unknown_message",
        "staff/0/20": "no_after_image",
        "staff/0/21": "no_position",
        "staff/0/22": "unknown_operation",
        "staff/0/23": "not_an_envelope",
        "staff/0/25": "value_of_wrong_type",
        "staff/0/35": "no_key",
    }
    kinds = dict(lakehouse.sql("select kind, sum(events) from monitoring.cdl_kinds__event_counts group by 1"))
    assert kinds == {
        "change": 8,
        "heartbeat": 8,
        "tombstone": 1,
        "rejected": 9,
        "change_without_model": 2,
    }  # in other topics, 6 and 2


def test_huawei_positions_and_key_changes(lakehouse: Lakehouse) -> None:
    def oracle(offset: int, time: int, name: str) -> Record:
        told: dict[str, Any] = {"DATA_STORE": "ORACLE", "TABLE_NAME": "budget", "TIMESTAMP": time}
        return cdl(offset, "UPDATE", {"id": 1, "name": name}, unique={"id": 1}, lsn=None, **told)

    lakehouse.run(
        "cdl_order",
        [
            cdl(1, "UPDATE", {"id": 1, "name": "newest"}, unique={"id": 1}, lsn=100000),
            cdl(2, "INSERT", {"id": 1, "name": "older"}, unique={"id": 1}, lsn=99999),
            debezium_json(3, "u", {"id": 2, "name": "streamed"}, unique={"id": 2}, source={"lsn": 50}),
            debezium_json(4, "r", {"id": 2, "name": "read"}, unique={"id": 2}, source={"lsn": 50, "snapshot": "last"}),
            cdl(5, "INSERT", {"id": 3, "name": "moves"}, unique={"id": 3}, lsn=200),
            cdl(6, "UPDATE", {"id": 30, "name": "moved"}, {"id": 3, "name": "moves"}, {"id": 30}, lsn=300),
            cdl(7, "INSERT", {"id": 4, "name": "moves"}, unique={"id": 4}, lsn=400),
            cdl(8, "UPDATE", {"id": 40, "name": "moved"}, None, {"id": 4}, lsn=500),
            record("staff", 9, cdl(9, "DELETE", None, None, {"id": 40}, lsn=600)["value"], key="3"),  # no key of a row
            cdl(10, "INSERT", {"id": 3, "name": "again"}, unique={"id": 3}, lsn=550),
            cdl(11, "INSERT", {"id": 5, "name": "gone"}, unique={"id": 5}, lsn=40),
            debezium_json(12, "t", None, source={"lsn": 45}),
            oracle(15, 1700000000900, "later"),
            oracle(17, 1700000000899, "earlier"),
            oracle(16, 1700000000900, "last"),
            oracle(14, 1700000000900, "first"),
        ],
    )
    assert lakehouse.rows("cdl_order.staff", "id") == [
        {"id": 1, "name": "newest"},
        {"id": 2, "name": "streamed"},
        {"id": 3, "name": "again"},
        {"id": 30, "name": "moved"},
    ]
    silver = lakehouse.sql(
        "select id, _cdc_transaction_id, _cdc_is_snapshot from silver.cdl_order__staff where id in (1, 2) order by 1"
    )
    assert silver == [(1, "7", False), (2, "9", False)]

    assert lakehouse.rows("cdl_order.budget") == [{"id": 1, "name": "last"}]
    assert lakehouse.rejected("cdl_order") == []


def test_huawei_rows_pass_keys_on_and_tables_without_a_key_are_logs(lakehouse: Lakehouse) -> None:
    """`set id = id + 1` on two rows in one transaction: the second row's new key is told before the first one's old one is free."""
    rows = [cdl(at, "INSERT", {"id": at, "name": f"row {at}"}, unique={"id": at}) for at in (1, 2)]
    moved = [
        cdl(10 + at, "UPDATE", {"id": at + 1, "name": f"row {at}"}, {"id": at, "name": f"row {at}"}, {"id": at + 1})
        for at in (1, 2)
    ]
    for one in moved:
        one["value"] = one["value"].replace('"name":"txId","value":7', '"name":"txId","value":8')

    def in_schema(one: Record) -> Record:
        image = {"type": "struct", "optional": True, "fields": [{"type": kind, "field": name} for name, kind in COLUMNS.items()]}
        members = [{**image, "field": name} for name in ("data", "before")] + [{**image, "fields": [], "field": "unique"}]
        value = {"schema": {"type": "struct", "fields": members}, **json.loads(one["value"])}
        value["payload"]["TABLE_NAME"] = "notes"
        return {**one, "topic": "notes", "value": json.dumps(value, separators=(",", ":"))}

    keyless = [in_schema(cdl(20 + number, "INSERT", {"id": at, "name": "n"})) for number, at in enumerate((1, 1, 2))]
    board = [{**cdl(30 + at, "INSERT", {"id": at, "name": "b"}, unique={"id": at}, TABLE_NAME="board")} for at in (1, 2)]
    done = lakehouse.run("cdl_moves", [*rows, *moved, *keyless, *board])
    assert lakehouse.rows("cdl_moves.staff", "id") == [{"id": 2, "name": "row 1"}, {"id": 3, "name": "row 2"}]
    assert lakehouse.rows("cdl_moves.board", "id") == [{"id": 1, "name": "b"}, {"id": 2, "name": "b"}]
    assert any("hr.notes: huawei_cdl, types from schema block, key: none" in note for note in done.notes), done.notes
    assert lakehouse.sql("select count(*) from silver.cdl_moves__notes") == [(3,)]
    assert lakehouse.rejected("cdl_moves") == []
    lakehouse.build_landed("cdl_moves", keys={"notes": ["id"]})
    assert lakehouse.rows("cdl_moves.notes", "id") == [{"id": 1, "name": "n"}, {"id": 2, "name": "n"}]


COLUMNS = {"id": "int32", "name": "string"}


def test_texts_of_vendors_types_are_exact_or_rejected(lakehouse: Lakehouse) -> None:
    texts_of_time = {
        "2026-05-06 07:08:09": "2026-05-06 07:08:09",
        "2026-05-06T07:08:09.123456": "2026-05-06 07:08:09.123456",
        "2026-05-06 07:08:09.1230000000": "2026-05-06 07:08:09.123",
        1700000000123: "2023-11-14 22:13:20.123",
        "2026-05-06 07:08:09.1234567": None,
        "2026-05-06 07:08:09+02": None,
        "2026-05-06T07:08:09Z": None,
        "2026-02-30 07:08:09": None,
        "1700000000123": None,
        "tomorrow": None,
        "": None,
        1.5: None,
        True: None,
        10**20: None,
    }
    fields = [
        {"type": "int32", "field": "id"},
        {"type": "string", "name": "com.acme.cdc.data.TIMESTAMP", "field": "at"},
        {"type": "string", "name": "com.acme.cdc.data.decimal", "field": "amount"},
        {"type": "string", "name": "com.acme.cdc.data.Date", "field": "day"},
    ]
    schema = {
        "type": "struct",
        "fields": [{"type": "struct", "fields": fields, "field": "data"}, {"field": "unique", "fields": fields[:1]}],
    }
    records = []
    for number, text in enumerate(texts_of_time):
        row = {"id": number, "at": text, "amount": "1" * 50 + ".50", "day": "6 May"}
        value = json.loads(cdl(number, "INSERT", row, unique={"id": number}, lsn=number + 1)["value"])
        records.append(record("staff", number, {"schema": schema, **value}))
    lakehouse.run("cdl_types", records)

    wanted = {number: text for number, text in enumerate(texts_of_time.values()) if text}
    assert dict(lakehouse.sql("select id, cast(at as string) from cdl_types.staff")) == wanted
    assert lakehouse.sql("select distinct amount, day from cdl_types.staff") == [("1" * 50 + ".50", "6 May")]
    assert dict(lakehouse.rejected("cdl_types")) == {
        f"staff/0/{number}": "value_not_exact: at" for number, text in enumerate(texts_of_time.values()) if not text
    }


# Lindorm


def lindorm(
    offset: int, op: str, before: Any, after: Any, at: int | None = 100, written: int = 200, topic: str = "l", **source: Any
) -> Record:
    told = {"version": "v1.0", "db": "ld-1", "namespace": "n", "table": "t", "ts_ms": at, **source}
    payload = {"op": op, "ts_ms": written, "before": before, "after": after, "source": told}
    return record(topic, offset, {"schema": {}, "payload": payload})


def test_lindorm_order_keys_and_columns_that_were_deleted(lakehouse: Lakehouse) -> None:
    keys = {"n.t": ["k"]}
    lakehouse.run(
        "lindorm_story",
        [
            lindorm(10, "u", {"k": 1, "a": "x"}, {"k": 1}, at=300),  # `a` was deleted, and `b` with it
            lindorm(11, "c", None, {"k": 1, "a": "old", "b": "old"}, at=200),
            lindorm(12, "u", None, {"k": 2, "a": "second"}, at=300, written=999),
            lindorm(13, "u", None, {"k": 2, "a": "first"}, at=300, written=998),
            lindorm(14, "c", None, {"k": 3, "a": "twice"}),
            record("l", 15, lindorm(15, "d", {"k": 3}, None)["value"], key="1"),  # no key of a row
            lindorm(16, "c", None, {"k": 4, "a": "moves"}),
            lindorm(17, "u", {"k": 4, "a": "moves"}, {"k": 5, "a": "moved"}),
            lindorm(18, "u", None, {"k": 6, "a": "changed"}),
            lindorm(19, "r", None, {"k": 6, "a": "exported"}),
            lindorm(20, "d", None, None),
            lindorm(21, "c", None, {"k": 7}, at=None),
            lindorm(22, "c", None, {"k": 8, "a": "elsewhere"}, namespace="m"),
            lindorm(23, "c", None, {"k": 9}, db="ld-2"),
        ],
        keys=keys,
    )
    assert lakehouse.rows("lindorm_story.ld_1__n__t", "k") == [
        {"k": 1, "a": None, "b": None},
        {"k": 2, "a": "second", "b": None},
        {"k": 5, "a": "moved", "b": None},
        {"k": 6, "a": "changed", "b": None},
    ]
    assert lakehouse.rejected("lindorm_story") == [("l/0/20", "no_key"), ("l/0/21", "no_position")]


# Tencent


def test_tencent_keys_as_text_booleans_and_records_that_are_no_rows(lakehouse: Lakehouse) -> None:
    key_schema = {"type": "struct", "fields": [{"name": "id", "index": "0", "schema": {"type": "INT64", "optional": "false"}}]}

    def postgresql(offset: int, op: str, lsn: int, number: int | None, **members: Any) -> Record:
        source = {"connector": "postgresql", "name": "p", "ts_ms": 900 - offset, "snapshot": members.pop("snapshot", False)}
        source |= {"db": "d", "schema": "s", "table": "t", "lsn": lsn, **members.pop("source", {})}
        key = None if number is None else {"schema": key_schema, "payload": {"id": str(number)}}
        value = {"schema": {"type": "struct", "fields": []}, "payload": {"source": source, "op": op, "ts_ms": 5, **members}}
        return record("p.s.t", offset, json.dumps(value), key=key)

    def row(number: int, note: str) -> dict[str, Any]:
        return {"id": number, "note": note}

    sequence = {"sequence": '["90","100"]'}
    lakehouse.run(
        "tencent_pg",
        [
            postgresql(4, "u", 100, 1, before={"id": 1}, after=row(1, "changed")),
            postgresql(5, "c", 100, 1, before=None, after=row(1, "read"), snapshot=True, source=sequence),
            postgresql(6, "r", 100, 2, before=None, after=row(2, "read"), snapshot="true", source=sequence),
            postgresql(7, "c", 110, 3, before=None, after=row(3, "gone")),
            postgresql(8, "d", 120, 3, before=None, after=None),
            postgresql(9, "m", 120, None, message={"prefix": "x", "content": "Ymfy"}, source={"schema": "", "table": ""}),
            postgresql(10, "c", 130, 2**53 + 1, before=None, after=row(2**53 + 1, "exact")),
            postgresql(11, "d", 140, 2**53 + 1, before=None, after=None),
            postgresql(12, "u", 150, 2, before={"id": 2}, after=row(2, "__debezium_unavailable_value")),
        ],
    )
    assert lakehouse.rows("tencent_pg.t", "id") == [row(1, "changed"), row(2, "read")]
    assert lakehouse.rejected("tencent_pg") == []
    kinds = dict(lakehouse.sql("select kind, sum(events) from monitoring.tencent_pg__event_counts group by 1"))
    assert kinds == {"change": 8, "message": 1}

    def mysql(offset: int, op: str, pos: int, before: Any, after: Any, badge: str | None, at: int = 1700000000000) -> Record:
        source = {"connector": "mysql", "name": "m", "ts_ms": at, "snapshot": False, "db": "d", "table": "t"}
        source |= {"server_id": 0, "gtid": None, "file": "b.000009", "pos": pos, "row": 0, "query": "DELETE FROM t"}
        payload = {"before": before, "after": after, "source": source, "op": op, "ts_ms": 1700000001500}
        text = json.dumps({"payload": payload}).replace('"name": "m"', '"name": "m", "name": "m"')
        return record("m.d.t", offset, text, key={"schema": {}, "payload": {"badge": badge}})

    columns = [
        {"name": "badge", "jdbcType": 12, "typeName": "VARCHAR", "length": 9, "position": 1, "optional": True},
        {"name": "born", "jdbcType": 91, "typeName": "DATE", "position": 2, "optional": True},
    ]
    change = {"type": "CREATE", "id": '"d"."t"', "table": {"primaryKeyColumnNames": [], "columns": columns}, "comment": None}
    history = {"source": {"server": "m"}, "position": {"ts_sec": 1, "file": "b.000009", "pos": 4, "gtids": "", "snapshot": True}}
    schema_change = {"source": {"connector": "mysql", "name": "m", "snapshot": "false", "db": "d", "table": "t", "pos": 4}}
    lakehouse.run(
        "tencent_my",
        [
            record(
                "m.d.t", 0, json.dumps(history | {"databaseName": "d", "ddl": "CREATE TABLE `t` (…)", "tableChanges": [change]})
            ),
            record(
                "m.d.t", 1, {"schema": {}, "payload": schema_change | {"databaseName": "d", "ddl": "rename …", "tableChanges": []}}
            ),
            mysql(2, "c", 10, None, {"badge": "a", "born": 0}, "a", at=0),
            mysql(3, "c", 20, None, {"badge": "b", "born": 1}, "b"),
            mysql(4, "d", 30, {"badge": "b", "born": 1}, None, "b"),
            mysql(5, "c", 40, None, {"badge": None, "born": 2}, None),
        ],
    )
    assert lakehouse.printed("tencent_my.t") == [{"badge": "a", "born": "1970-01-01"}]
    assert lakehouse.rejected("tencent_my") == [("m.d.t/0/5", "no_key")]
    assert lakehouse.sql("select cast(_cdc_changed_at as string) from silver.tencent_my__t where badge = 'a'") == [
        ("2023-11-14 22:13:21.5",)
    ]
    kinds = dict(lakehouse.sql("select kind, sum(events) from monitoring.tencent_my__event_counts group by 1"))
    assert kinds == {"change": 3, "ddl": 2, "rejected": 1}


# Formats that are not Debezium's

CANAL: dict[str, Any] = {
    "data": [{"id": "1"}],
    "database": "d",
    "table": "t",
    "type": "INSERT",
    "isDdl": False,
    "es": 1,
    "ts": 2,
    "id": 3,
    "sql": "",
}
CLOUDEVENTS = r"CloudEvents \(which Debezium's CloudEventsConverter writes; set JsonConverter\)"
FOREIGN: dict[str, tuple[dict[str, Any], str]] = {
    "canal": (CANAL | {"old": None, "pkNames": ["id"], "mysqlType": {"id": "int"}, "sqlType": {"id": 4}}, "Canal JSON"),
    "canal_ddl": (CANAL | {"isDdl": True, "data": None, "type": "ALTER", "sql": "ALTER TABLE t"}, "Canal JSON"),
    "maxwell": ({"database": "d", "table": "t", "type": "update", "ts": 1, "data": {"id": 1}, "old": {"id": 0}}, "Maxwell JSON"),
    "goldengate": (
        {"table": "D.T", "op_type": "U", "op_ts": "2026-01-01", "pos": "1", "before": {"ID": 1}, "after": {"ID": 2}},
        "Oracle GoldenGate JSON",
    ),
    "cloudevents": (
        {"id": "n:1", "source": "/debezium/postgresql/n", "specversion": "1.0", "type": "change", "iodebeziumop": "c", "data": {}},
        CLOUDEVENTS,
    ),
    "cloudevents_without_extensions": (  # extension.attributes.enable = false
        {"id": "n:1", "source": "/n", "specversion": "1.0", "type": "io.debezium.connector.postgresql.DataChangeEvent", "data": {}},
        CLOUDEVENTS,
    ),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_format_is_named_and_refused(lakehouse: Lakehouse, name: str) -> None:
    from scripts.errors import LakehouseError
    from scripts.records import parse_line

    value, named = FOREIGN[name]
    system = f"foreign_{name}"
    lakehouse.land(system, [record("t1", 1, value)])
    with pytest.raises(LakehouseError, match=f"system {system}: the records of topic 't1' are {named}.*SYSTEM of its own"):
        lakehouse.scaffold(system)
    assert parse_line(json.dumps(value).encode(), 1, 1).topic is None  # a bare value: see the next test


def test_foreign_bare_values_are_refused_and_among_events_rejected(lakehouse: Lakehouse) -> None:
    from scripts.errors import LakehouseError

    lakehouse.land("foreign_bare", [value for value, _ in FOREIGN.values()][:1])
    with pytest.raises(LakehouseError, match="the records of files of bare values are Canal JSON"):
        lakehouse.scaffold("foreign_bare")

    good = {"op": "c", "before": None, "after": {"id": 1}, "source": {"name": "x", "db": "d", "table": "t"}}
    heartbeat = {"op": "u", "before": {"job": 1}, "after": {"job": 2}, "source": {"name": "x"}, "isHeartbeat": True}
    lakehouse.run("foreign_among", [record("t1", 0, good, key={"id": 1}), record("t1", 1, heartbeat)])
    lakehouse.run("foreign_among", [record("t1", 2 + at, value) for at, (value, _) in enumerate(FOREIGN.values())])
    assert lakehouse.rows("foreign_among.t") == [{"id": 1}]
    assert lakehouse.rejected("foreign_among") == [(f"t1/0/{2 + at}", "not_an_envelope") for at in range(len(FOREIGN))]
    assert lakehouse.sql("select op from monitoring.foreign_among__event_counts where kind = 'heartbeat'") == [("u",)]


def test_bare_values_without_a_prefix_have_the_topic_of_their_table(lakehouse: Lakehouse) -> None:
    path = lakehouse.project / "events" / "bare_cdl.jsonl"
    path.parent.mkdir(exist_ok=True)
    bare = [
        cdl(1, "INSERT", {"id": 1}, unique={"id": 1}, lsn=20),
        cdl(2, "DELETE", None, unique={"id": 1}, lsn=10),
        lindorm(3, "c", None, {"k": 1}),
        lindorm(4, "c", None, {"k": 2}, namespace="m"),
    ]
    path.write_text("".join(one["value"] + "\n" for one in bare), encoding="utf-8")
    lakehouse.land("bare_vendors", path)
    assert lakehouse.sql("select topic from bronze.bare_vendors order by line") == [
        ("hr.staff",),
        ("hr.staff",),
        ("ld-1.n.t",),
        ("ld-1.m.t",),
    ]


# The pages


def is_part(shown: Any, whole: Any) -> bool:
    """Whether all members that are shown are those of the whole; `…` stands for anything."""
    if isinstance(shown, dict) and isinstance(whole, dict):
        return all(name in whole and is_part(value, whole[name]) for name, value in shown.items())
    if isinstance(shown, str) and isinstance(whole, str) and "…" in shown:
        return all(part in whole for part in shown.split("…"))
    return bool(shown == whole)


def test_worked_events_of_the_pages_are_of_the_sample_and_have_the_rows_that_are_shown(lakehouse: Lakehouse) -> None:
    """Each column of silver is shown, and each value that is shown is what silver has after the event alone."""
    sample: dict[tuple[Any, ...], Record] = {}
    for path in EVENTS.glob("*.jsonl"):
        for line in path.read_bytes().splitlines():
            one = json.loads(line)
            sample.setdefault((one["topic"], one["partition"], one["offset"]), one)
    worked: dict[str, list[tuple[str, str]]] = {}
    landed = []
    for page in sorted((REPOSITORY / "docs" / "connectors").glob("*.md")):
        for section in re.findall(r"^## A worked .*?(?=^## |\Z)", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
            shown = json.loads(re.findall(r"```json\n(.*?)```", section, re.DOTALL)[0])
            place = shown["topic"], shown["partition"], shown["offset"]
            for member in ("key", "value"):
                whole = sample[place][member]
                whole = json.loads(whole) if isinstance(whole, str) else whole
                assert is_part(shown[member], whole), (page.name, place, member)
            landed.append(sample[place])
            cells = re.findall(r"^\| (`[^|]+`) \| (.+) \|$", section, re.MULTILINE)
            worked["/".join(map(str, place))] = [(name, cell) for names, cell in cells for name in re.findall("`([^`]+)`", names)]
    assert len(worked) == len(landed) == 24

    lakehouse.run("worked", landed, keys={"meters": ["meter_id"], "carts": ["id"], "lines": ["id"]})
    wrong: list[tuple[str, ...]] = []
    for _, table, _ in lakehouse.sql("show tables in silver like 'worked__*'"):
        for row in lakehouse.printed(f"silver.{table}"):
            event = str(row["_cdc_event_id"])
            if event.endswith("#before"):  # the old key of the row that is shown
                continue
            cells = worked.pop(event)
            wrong += [(event, name) for name in row.keys() - {name for name, _ in cells}]
            for name, cell in cells:
                value = re.fullmatch(r"`([^`]+)`( \(.*\))?", cell.split(" | ")[-1])  # else it comes from events before it
                if row.get(name) != value[1] if value else cell.startswith("NULL") and row.get(name) is not None:
                    wrong.append((event, name, cell, str(row.get(name))))
    of_other_records = {  # shown as a number in base 16, and as the type that a DDL record tells
        ("lindorm_sensors/0/3", "ROW", "`00FF10`", base64.b64encode(bytes.fromhex("00FF10")).decode()),
        ("billing.billing.tariffs/0/29", "cents_per_kwh", "`9.900`", base64.b64encode((9900).to_bytes(2, "big")).decode()),
    }
    assert (set(wrong), worked) == (of_other_records, {})
