"""Vendors' dialects of Debezium's events: Tencent, Huawei CDL, Alibaba Lindorm; and formats that are not Debezium's."""

import base64
import json
import re
from datetime import datetime
from typing import Any

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
    wanted = [
        {name: row[name] for name in ("count1", "id", "time1", "decimalNum")}
        for row in corpus_rows("vendor_huawei_cdl")
    ]

    assert texts(lakehouse.rows("huawei_corpus.ct_pg2hudi", "id")) == wanted
    assert lakehouse.rejected("huawei_corpus") == []
    kinds = lakehouse.sql("select kind, sum(events) from monitoring.huawei_corpus__event_counts group by 1 order by 1")
    assert kinds == [("change", 10), ("heartbeat", 2)]
    check_events(lakehouse, "huawei_corpus", corpus_events("vendor_huawei_cdl"), as_text)
    types = {"count1": "bigint", "id": "int", "time1": "timestamp_ntz", "decimalNum": "string"}
    assert dict(lakehouse.table("huawei_corpus.ct_pg2hudi").dtypes) == types

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
    assert dict(lakehouse.table("lindorm_sample.customers").dtypes) == {"id": "int", "name": "string"}

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
    assert {kind for _, kind in lakehouse.table("lindorm_corpus.customers").dtypes} == {"string"}
    assert {kind for _, kind in lakehouse.table("hbase_corpus.customers").dtypes} == {"binary"}
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
    """All in one system: the vendors' tables have names of their own, but for the one that both of Huawei's formats
    carry.
    """
    from scripts.declared import declared_tables

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
    assert {name: d.table.keys for name, d in declared.items()} == {
        name: content["key"] for name, content in wanted.items()
    }
    for table, content in wanted.items():
        for system in ("vendors", "vendors_shuffled"):
            assert ordered(lakehouse.printed(f"{system}.{declared[table].relation}")) == ordered(content["rows"]), (
                system,
                table,
            )
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
        "transaction": {
            "properties": [{"name": "txId", "value": 7}] + ([{"name": "lsn", "value": lsn}] if lsn else [])
        },
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


# Lindorm


def lindorm(
    offset: int,
    op: str,
    before: Any,
    after: Any,
    at: int | None = 100,
    written: int = 200,
    topic: str = "l",
    **source: Any,
) -> Record:
    told = {"version": "v1.0", "db": "ld-1", "namespace": "n", "table": "t", "ts_ms": at, **source}
    payload = {"op": op, "ts_ms": written, "before": before, "after": after, "source": told}
    return record(topic, offset, {"schema": {}, "payload": payload})


# Tencent


def test_tencent_keys_as_text_booleans_and_records_that_are_no_rows(lakehouse: Lakehouse) -> None:
    key_schema = {
        "type": "struct",
        "fields": [{"name": "id", "index": "0", "schema": {"type": "INT64", "optional": "false"}}],
    }

    def postgresql(offset: int, op: str, lsn: int, number: int | None, **members: Any) -> Record:
        source = {
            "connector": "postgresql",
            "name": "p",
            "ts_ms": 900 - offset,
            "snapshot": members.pop("snapshot", False),
        }
        source |= {"db": "d", "schema": "s", "table": "t", "lsn": lsn, **members.pop("source", {})}
        key = None if number is None else {"schema": key_schema, "payload": {"id": str(number)}}
        value = {
            "schema": {"type": "struct", "fields": []},
            "payload": {"source": source, "op": op, "ts_ms": 5, **members},
        }
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
            postgresql(
                9, "m", 120, None, message={"prefix": "x", "content": "Ymfy"}, source={"schema": "", "table": ""}
            ),
            postgresql(10, "c", 130, 2**53 + 1, before=None, after=row(2**53 + 1, "exact")),
            postgresql(11, "d", 140, 2**53 + 1, before=None, after=None),
            postgresql(12, "u", 150, 2, before={"id": 2}, after=row(2, "__debezium_unavailable_value")),
        ],
    )
    assert lakehouse.rows("tencent_pg.t", "id") == [row(1, "changed"), row(2, "read")]
    assert lakehouse.rejected("tencent_pg") == []
    kinds = dict(lakehouse.sql("select kind, sum(events) from monitoring.tencent_pg__event_counts group by 1"))
    assert kinds == {"change": 8, "message": 1}

    def mysql(
        offset: int, op: str, pos: int, before: Any, after: Any, badge: str | None, at: int = 1700000000000
    ) -> Record:
        source = {"connector": "mysql", "name": "m", "ts_ms": at, "snapshot": False, "db": "d", "table": "t"}
        source |= {"server_id": 0, "gtid": None, "file": "b.000009", "pos": pos, "row": 0, "query": "DELETE FROM t"}
        payload = {"before": before, "after": after, "source": source, "op": op, "ts_ms": 1700000001500}
        text = json.dumps({"payload": payload}).replace('"name": "m"', '"name": "m", "name": "m"')
        return record("m.d.t", offset, text, key={"schema": {}, "payload": {"badge": badge}})

    columns = [
        {"name": "badge", "jdbcType": 12, "typeName": "VARCHAR", "length": 9, "position": 1, "optional": True},
        {"name": "born", "jdbcType": 91, "typeName": "DATE", "position": 2, "optional": True},
    ]
    change = {
        "type": "CREATE",
        "id": '"d"."t"',
        "table": {"primaryKeyColumnNames": [], "columns": columns},
        "comment": None,
    }
    history = {
        "source": {"server": "m"},
        "position": {"ts_sec": 1, "file": "b.000009", "pos": 4, "gtids": "", "snapshot": True},
    }
    schema_change = {
        "source": {"connector": "mysql", "name": "m", "snapshot": "false", "db": "d", "table": "t", "pos": 4}
    }
    lakehouse.run(
        "tencent_my",
        [
            record(
                "m.d.t",
                0,
                json.dumps(history | {"databaseName": "d", "ddl": "CREATE TABLE `t` (…)", "tableChanges": [change]}),
            ),
            record(
                "m.d.t",
                1,
                {"schema": {}, "payload": schema_change | {"databaseName": "d", "ddl": "rename …", "tableChanges": []}},
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


def test_worked_events_of_the_pages_are_of_the_sample_and_have_the_rows_that_are_shown(lakehouse: Any) -> None:
    """Each value that is shown is what silver has after the event alone; a metadata column that is not shown has
    nothing to say.
    """
    sample: dict[tuple[Any, ...], Record] = {}
    for path in EVENTS.glob("*.jsonl"):
        for line in path.read_bytes().splitlines():
            one = json.loads(line)
            sample.setdefault((one["topic"], one["partition"], one["offset"]), one)
    worked: dict[str, list[tuple[str, str]]] = {}
    landed = []
    for page in sorted((REPOSITORY / "docs" / "connectors").glob("*.md")):
        for section in re.findall(
            r"^## A worked .*?(?=^## |\Z)", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
        ):
            shown = json.loads(re.findall(r"```json\n(.*?)```", section, re.DOTALL)[0])
            place = shown["topic"], shown["partition"], shown["offset"]
            for member in ("key", "value"):
                whole = sample[place][member]
                whole = json.loads(whole) if isinstance(whole, str) else whole
                assert is_part(shown[member], whole), (page.name, place, member)
            landed.append(sample[place])
            cells = re.findall(r"^\| (`[^|]+`) \| (.+) \|$", section, re.MULTILINE)
            worked["/".join(map(str, place))] = [
                (name, cell) for names, cell in cells for name in re.findall("`([^`]+)`", names)
            ]
    assert len(worked) == len(landed) == 24

    lakehouse.run("worked", landed, keys={"meters": ["meter_id"], "carts": ["id"], "lines": ["id"]})
    wrong: list[tuple[str, ...]] = []
    for one in lakehouse.tables("worked"):
        for row in lakehouse.printed(f"silver.{one.model('silver', 'worked')}"):
            event = str(row["_cdc_event_id"])
            if event.endswith("#before"):  # the old key of the row that is shown
                continue
            cells = worked.pop(event)
            for name in row.keys() - {name for name, _ in cells}:
                by_rule = name in ("_cdc_op", "_cdc_changed_at", "_cdc_batch", "_cdc_event_id")
                if not by_rule and not (name.startswith("_cdc_") and row[name] in (None, "false")):
                    wrong.append((event, name))
            for name, cell in cells:
                value = re.fullmatch(
                    r"`([^`]+)`( \(.*\))?", cell.split(" | ")[-1]
                )  # else it comes from events before it
                if row.get(name) != value[1] if value else cell.startswith("NULL") and row.get(name) is not None:
                    wrong.append((event, name, cell, str(row.get(name))))
    of_other_records = {  # shown as a number in base 16, and as the type that a DDL record tells
        ("lindorm_sensors/0/3", "ROW", "`00FF10`", base64.b64encode(bytes.fromhex("00FF10")).decode()),
        (
            "billing.billing.tariffs/0/29",
            "cents_per_kwh",
            "`9.900`",
            base64.b64encode((9900).to_bytes(2, "big")).decode(),
        ),
    }
    assert (set(wrong), worked) == (of_other_records, {})
