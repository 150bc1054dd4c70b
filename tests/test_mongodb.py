"""MongoDB: documents as columns, the forms of extended JSON, updates that carry no document, keys and order."""

import base64
import copy
import json
import re
import uuid
from datetime import datetime, timezone
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from conftest import REPOSITORY, Lakehouse, corpus, corpus_records
from event_factory import shuffled

Record = dict[str, Any]
EVENTS = REPOSITORY / "tests" / "events"
FULL = "partial_row: capture.mode has to be change_streams_update_full"


class Collection:
    """Changes of one collection in the order of the source; every change has a cluster time of its own unless given."""

    def __init__(self, name: str, version: str = "2.7.4.Final") -> None:
        self.name, self.version = name, version
        self.records: list[Record] = []

    def add(self, op: str, id: Any, after: Any = None, update: Any = None, before: Any = None, **members: Any) -> Record:
        number = len(self.records)
        source: Record = {"version": self.version, "connector": "mongodb", "snapshot": "true" if op == "r" else "false"}
        source |= {
            "ts_ms": 1700000000000,
            "name": "m",
            "db": "d",
            "collection": self.name,
            "ord": number,
            "rs": "rs0",
            "lsid": None,
        }
        source |= members.pop("source", {})
        value = {"before": text(before), "after": text(after), "updateDescription": update, "source": source, "op": op}
        key = members.pop("key", {"id": id if isinstance(id, str) else json.dumps(id)})
        return self.record({**value, "ts_ms": 1700000009999, **members}, key)

    def record(self, value: Any, key: Any) -> Record:
        place = {"topic": f"m.d.{self.name}", "partition": 0, "offset": len(self.records)}
        self.records.append({**place, "key": text(key), "value": text(value)})
        return self.records[-1]


def text(value: Any) -> str | None:
    return value if isinstance(value, str | None) else json.dumps(value)


def sets(removed: Any = None, truncated: Any = None, **fields: Any) -> dict[str, Any]:
    return {"updatedFields": json.dumps(fields), "removedFields": removed, "truncatedArrays": truncated}


def oid(number: int) -> dict[str, str]:
    return {"$oid": f"{number:024x}"}


# Corpora and the example


def test_corpora_give_their_rows(lakehouse: Lakehouse) -> None:
    folder = corpus("risingwave_mongodb_customers")
    wanted = json.loads((folder / "expected.json").read_text(encoding="utf-8"))["tables"]["inventory.customers"]["rows"]
    lakehouse.run("risingwave", corpus_records(corpus("risingwave_mongodb_customers")))
    with_schema = (folder / "debezium_mongo_json_customers.1").read_text(encoding="utf-8").splitlines()
    lakehouse.run("risingwave_schema", [{"topic": "t", "offset": at, "value": line} for at, line in enumerate(with_schema)])
    for system in ("risingwave", "risingwave_schema"):
        rows = lakehouse.rows(f"{system}.customers")
        documents = [{"_id": {"$numberLong": str(row["id"])}, **{name: row[name] for name in list(row)[1:]}} for row in wanted]
        assert [json.loads(row.pop("document")) for row in rows] == documents
        assert [{"id": row.pop("_id"), **row} for row in rows] == wanted
        assert lakehouse.rejected(system) == []


def test_corpus_of_bson_gives_each_of_its_states(lakehouse: Lakehouse) -> None:
    """Every field is text there, as another project prints it; a date is its milliseconds."""
    records = corpus_records(corpus("paimon_mongodb_bson"))
    told = json.loads((corpus("paimon_mongodb_bson") / "expected.json").read_text(encoding="utf-8"))
    insert, update, _ = told["per_event"]
    states = [insert["row"], update["row_after"], update["row_after"]]  # with the document as it was, and without
    for at, state in enumerate(states):
        lakehouse.run("paimon", [records[at]])
        rows = lakehouse.spark.sql(
            "select _id, cast(created_at as string) as created_at, created_by, tags, "
            "cast(unix_millis(updated_at) as string) as updated_at from paimon.sync_test_table"
        ).collect()
        assert [row.asDict() for row in rows] == [state], at
    for record in records[3:]:  # by an object, by a text and with the document as it was
        lakehouse.run("paimon", [record])
        assert lakehouse.rows("paimon.sync_test_table") == told["final_state_after_all_files"]["bigdata_test.sync_test_table"]
    for part in shuffled(records, seed=5):
        lakehouse.run("paimon_shuffled", part)
    assert lakehouse.rows("paimon_shuffled.sync_test_table") == []
    assert lakehouse.rejected("paimon") == lakehouse.rejected("paimon_shuffled") == []


def test_corpus_of_every_bson_type_keeps_each_value(lakehouse: Lakehouse) -> None:
    """The other project prints every field as text; here they are typed, and what has no type of SQL is its whole extended JSON.

    Of that the other's text keeps less: no increment of a `$timestamp`, no types inside of arrays and objects.
    """
    folder = corpus("paimon_mongodb_bson")
    document = (folder / "event-bson.txt").read_text(encoding="utf-8").splitlines()[-1]
    told = json.loads((folder / "expected.json").read_text(encoding="utf-8"))["bson_extended_json_to_text"]["expected"]
    of_file = json.loads(document)
    after = json.dumps({"_id": of_file["id"], **of_file})
    source = {"connector": "mongodb", "db": "d", "collection": "every", "ord": 1, "ts_ms": 1739321992000}
    value = json.dumps({"before": None, "after": after, "source": source, "op": "c", "ts_ms": 0})
    key = json.dumps({"id": json.dumps(of_file["id"])})
    lakehouse.run("every_type", [{"topic": "e.d.every", "partition": 0, "offset": 0, "key": key, "value": value}])
    (row,) = lakehouse.spark.sql("select *, unix_millis(deleted_time) as deleted_millis from every_type.every").collect()
    found = {**row.asDict(), "deleted_time": row["deleted_millis"]}
    assert json.loads(found["document"]) == json.loads(after)
    for name, text in told.items():
        if isinstance(of_file[name], (dict, list)) and isinstance(found[name], str) and found[name].startswith(("{", "[")):
            assert json.loads(found[name]) == of_file[name], name
        elif isinstance(found[name], bytes):
            assert text == (
                str(uuid.UUID(bytes=bytes(found[name]))) if name == "uuid" else base64.b64encode(found[name]).decode()
            ), name
        elif isinstance(found[name], float):
            assert repr(found[name]) == repr(float(text)), name
        else:
            assert (found[name] if found[name] is None else str(found[name]).lower()) == (text and text.lower()), name
    typed = {name for name in told if not str(found[name]).startswith("{")}
    kinds = dict(lakehouse.spark.table("every_type.every").dtypes)
    assert {name: kinds[name] for name in typed if kinds[name] != "string"} == {
        **dict.fromkeys(("age", "created_time", "updated_time"), "bigint"),
        **dict.fromkeys(("double_nan", "double_inf", "double_ninf", "double_zero"), "double"),
        **dict.fromkeys(("boolean_true", "boolean_false"), "boolean"),
        **dict.fromkeys(("binary", "uuid"), "binary"),
        "deleted_time": "timestamp",
    }
    assert told.keys() - typed == {"register_time", "regex", "symbol", "minKey", "maxKey", "code", "undefined", "context"}
    assert lakehouse.rejected("every_type") == []


def test_documented_samples_are_changes(lakehouse: Lakehouse) -> None:
    """A create with its schema block, an update with everything and a delete with the document as it was, with the key of the page.

    The block of a transaction is shown in an event that leaves out `source`: nothing tells of what collection it is.
    """
    lines = (corpus("debezium_docs_examples") / "examples.jsonl").read_text(encoding="utf-8").splitlines()
    samples = [sample for sample in map(json.loads, lines) if sample["connector"] == "mongodb"]
    (key,) = [sample["value"] for sample in samples if sample["kind"] == "key"]
    records, changes = [], []
    for at, sample in enumerate(samples):
        payload = json.loads(sample["value"]).get("payload", {})
        topic = "docs.customers" if payload.get("source") else f"docs.{sample['kind']}"
        record = {"topic": topic, "partition": 0, "offset": at, "key": key if payload else None, "value": sample["value"]}
        if payload.get("source"):
            document = payload.get("after")
            row = json.loads(document) if document else {}
            changes.append((payload["op"], 1004, *(row.get(name) for name in ("first_name", "last_name", "email")), document))
        if sample["kind"] != "key":
            records.append(record)
    done = lakehouse.run("mongo_docs", records[:-1])
    assert [note for note in done.notes if note == "docs.op=c: no event carries a row; no model was written"]
    assert lakehouse.sql("select * from mongo_docs.customers") == [changes[1][1:]]
    lakehouse.run("mongo_docs", records[-1:])
    assert lakehouse.rows("mongo_docs.customers") == []
    columns = "_cdc_op, _id, first_name, last_name, email, document"
    assert lakehouse.sql(f"select {columns} from staging.stg_mongo_docs__customers order by _cdc_event_id") == changes
    assert lakehouse.rejected("mongo_docs") == []
    others = "select kind, sum(events) from monitoring.mongo_docs__event_counts where source_table is null group by kind"
    assert dict(lakehouse.sql(others)) == {"transaction": 2, "change_without_model": 1}


def test_example_gives_its_rows_in_order_and_shuffled(lakehouse: Lakehouse) -> None:
    records = [json.loads(line) for line in (EVENTS / "mongodb.jsonl").read_text(encoding="utf-8").splitlines()]
    wanted = json.loads((EVENTS / "mongodb.expected.json").read_text(encoding="utf-8"))
    lakehouse.run("greenhouse", records)
    for part in shuffled(records, seed=5):
        lakehouse.run("greenhouse_shuffled", part)
    for system in ("greenhouse", "greenhouse_shuffled"):
        for table, content in wanted.items():
            assert content["key"] == ["_id"]
            assert lakehouse.printed(f"{system}.{table.split('.')[1]}", "_id") == content["rows"], (system, table)
        assert lakehouse.rejected(system) == []


# Types


FORMS: dict[str, tuple[list[Any], Any]] = {
    "objectId": ([{"$oid": "65F2c0de00000000000000ff"}, "65f2c0de00000000000000ff"], "65f2c0de00000000000000ff"),
    "string": (["", "5", '{"$oid": "x"}'], None),
    "bool": ([True, False], None),
    "long": ([-7, {"$numberLong": "-7"}, {"$numberInt": "-7"}], -7),
    "double": ([0.5, {"$numberDouble": "0.5"}, {"$numberDouble": "5E-1"}], 0.5),
    "decimal": ([12, {"$numberLong": "12"}, {"$numberDecimal": "12"}], "12"),
    "decimal,6,2": ([{"$numberDecimal": "-12.50"}, {"$numberDecimal": "-12.5"}], Decimal("-12.50")),
    "date": (
        [{"$date": 1456012800123}, {"$date": {"$numberLong": "1456012800123"}}, {"$date": "2016-02-21T00:00:00.123Z"}],
        datetime(2016, 2, 21, 0, 0, 0, 123000, tzinfo=timezone.utc),
    ),
    "binData": (
        [
            {"$binary": "uE2/4v5MSVOiJZkOo3APKQ==", "$type": "04"},
            {"$binary": {"base64": "uE2/4v5MSVOiJZkOo3APKQ==", "subType": "04"}},
            {"$uuid": "b84dbfe2-fe4c-4953-a225-990ea3700f29"},
        ],
        bytes.fromhex("b84dbfe2fe4c4953a225990ea3700f29"),
    ),
    "any": (
        [
            {"$numberLong": "9007199254740993"},
            "5",
            5,
            [1, {"b": {"$date": 1}, "a": None}],
            {"$timestamp": {"t": 1, "i": 2}},
            {"$numberDouble": "NaN"},
        ],
        None,
    ),
}
UNFIT: dict[str, list[Any]] = {
    "objectId": [5, "65f2", {"$oid": 5}, {"a": 1}],
    "string": [5, True, {"$symbol": "s"}, ["a"]],
    "bool": [1, "true", {"$numberInt": "1"}],
    "long": ["5", 5.0, True, {"$numberLong": "9223372036854775808"}, {"$numberDouble": "5.0"}, 2**64, [5]],
    "double": ["0.5", {"$numberDouble": "1E999"}, {"$numberLong": "9007199254740993"}, {"$numberDecimal": "0.5"}, True],
    "decimal": ["12", 12.5, {"$numberDouble": "1"}],
    "decimal,6,2": [{"$numberDecimal": "0.125"}, {"$numberDecimal": "12345.00"}, {"$numberDecimal": "NaN"}],
    "date": [1456012800123, "2016-02-21T00:00:00Z", {"$date": "tomorrow"}, {"$date": {"$numberLong": "253402300800000"}}],
    "binData": ["uE2/", {"$binary": "no base64 at all!", "$type": "00"}, {"$uuid": "b84d"}],
}


def test_every_form_of_extended_json_is_its_value_and_others_are_rejected(lakehouse: Lakehouse) -> None:
    """One document per value, each kind in a field of its own; a null and a missing field are NULL."""
    columns = {kind: f"v{at}" for at, kind in enumerate(FORMS)}
    events = Collection("forms")
    fit: dict[str, list[int]] = {}
    unfit: dict[str, str] = {}
    for kind, column in columns.items():
        fit[kind] = list(range(len(events.records), len(events.records) + len(FORMS[kind][0])))
        for value in FORMS[kind][0]:
            events.add("c", len(events.records), {"_id": len(events.records), column: value})
        for value in UNFIT.get(kind, []):
            unfit[f"m.d.forms/0/{len(events.records)}"] = f"value_not_exact: {column}"
            events.add("c", len(events.records), {"_id": len(events.records), column: value})
    nothing = len(events.records)
    events.add("c", nothing, {"_id": nothing, **dict.fromkeys(columns.values())})
    lakehouse.land("bson", events.records)
    lakehouse.scaffold("bson")
    path = lakehouse.project / "models" / "staging" / "bson" / "stg_bson__forms.sql"
    declared = path.read_text(encoding="utf-8")
    for kind, column in columns.items():
        declared = re.sub(f"'{column}': '[^']*'", f"'{column}': 'Bson({kind})'", declared)
    path.write_text(declared, encoding="utf-8")
    lakehouse.run("bson", [])

    assert dict(lakehouse.rejected("bson")) == unfit
    rows = {row["_id"]: row for row in lakehouse.rows("bson.forms")}
    assert len(rows) == len(events.records) - len(unfit)
    for kind, column in columns.items():
        found = [rows[id][column] for id in fit[kind]]
        forms, one = FORMS[kind]
        if kind == "date":
            found = [value.astimezone(timezone.utc) for value in found]
        if kind == "any":
            assert found[:3] == ["9007199254740993", '"5"', "5"]
            assert [json.loads(value) for value in found[3:]] == forms[3:]
        else:
            assert found == (forms if one is None else [one] * len(forms)), kind
        assert {row[column] for id, row in rows.items() if id not in fit[kind]} == {None}
    assert all(json.loads(row["document"])["_id"] == id for id, row in rows.items())


def test_scaffold_finds_the_types_of_fields(lakehouse: Lakehouse) -> None:
    """What no column can be named like, and what has several types, stays in the document or is its extended JSON."""
    from scripts.scaffold import declared_tables

    events = Collection("shapes")
    document: Record = {"_id": oid(1), "n": 1, "x": 1, "at": {"$date": 5}, "raw": {"$binary": "", "$type": "00"}, "none": None}
    events.add("c", oid(1), {**document, "mixed": "a", "a.b": 1, "Name": "x", "name": "y", "_cdc_op": 1, "document": {}})
    events.add("c", oid(2), {"_id": oid(2), "n": {"$numberLong": "2"}, "x": 1.5, "mixed": 5, "list": []})
    lakehouse.run("shapes", events.records)
    (declared,) = declared_tables("shapes", lakehouse.project / "models").values()
    kinds = {"_id": "objectId", "n": "long", "x": "double", "at": "date", "raw": "binData", "none": "any", "mixed": "any"}
    kinds |= {"Name": "string", "document": "any", "list": "any", "_document": "document"}
    assert declared.table.columns == {name: f"Bson({kind})" for name, kind in kinds.items()}
    assert declared.table.keys == ["_id"]
    rows = lakehouse.rows("shapes.shapes", "_id")
    assert [row["mixed"] for row in rows] == ['"a"', "5"]
    assert json.loads(rows[0]["_document"])["a.b"] == 1
    assert lakehouse.rejected("shapes") == []


# Order, deletes, keys


def test_documents_are_replaced_deleted_and_come_back_in_any_order(lakehouse: Lakehouse) -> None:
    events = Collection("orders")
    events.add("r", 1, {"_id": 1, "a": 1, "b": "x"}, source={"ord": 9})
    events.add("u", 1, {"_id": 1, "a": 2}, source={"ord": 9})  # a field that is missing is gone
    events.add("u", 1, {"_id": 1, "a": 3, "c": 1}, sets(a=3, c=1), source={"ord": 10}, before={"_id": 1, "a": 2})
    events.add("c", 2, {"_id": 2, "a": 1}, source={"ord": 11})
    events.add("d", 2, source={"ord": 12})
    events.record(None, {"id": "2"})
    events.add("c", 3, {"_id": {"$numberLong": "3"}, "a": 1}, source={"ord": 1, "ts_ms": 1700000001000})
    events.add("d", 3, before={"_id": {"$numberLong": "3"}, "a": 1}, key=None, source={"ord": 2, "ts_ms": 1700000001000})
    events.add("c", 3, {"_id": 3, "a": 5}, source={"ord": 3, "ts_ms": 1700000001000})
    for a in (1, 2):  # one transaction: one cluster time, so the topic's order decides
        told = {"ord": 5, "ts_ms": 1700000001000, "lsid": "s", "txnNumber": 8}
        events.add("c" if a == 1 else "u", 4, {"_id": 4, "a": a}, sets(a=a), source=told)
    records = events.records
    wanted = [(1, 3, None, 1), (3, 5, None, None), (4, 2, None, None)]
    lakehouse.run("mongo_order", records)
    lakehouse.run("mongo_late", list(reversed(records))[:6])
    lakehouse.run("mongo_late", records[:6])
    for part in shuffled(records, seed=5):
        lakehouse.run("mongo_shuffled", part)
    for system in ("mongo_order", "mongo_late", "mongo_shuffled"):
        assert lakehouse.sql(f"select _id, a, b, c from {system}.orders order by _id") == wanted, system
        assert lakehouse.rejected(system) == []
    (row,) = lakehouse.sql("select _cdc_transaction_id, _cdc_position, document from silver.mongo_order__orders where _id = 4")
    assert row[0] == "s:8" and json.loads(row[2]) == {"_id": 4, "a": 2}
    assert row[1] == "0000.000000017000000010000000000005.1.0000000000.00000000000000000010"


def test_from_3_1_on_the_order_is_the_topics(lakehouse: Lakehouse) -> None:
    """A snapshot row has the time of its reading, a change the clock of its server: either may be the greater one."""
    events = Collection("clocks", version="3.0.8.Final")
    events.add("c", 1, {"_id": 1, "a": "first"}, source={"ts_ms": 1800000000000})
    events.version = "3.10.0.Final"
    events.add("r", 1, {"_id": 1, "a": "read"}, source={"ts_ms": 1700000005123, "ord": 0})
    events.add("u", 1, {"_id": 1, "a": "newest"}, sets(a="newest"), source={"ts_ms": 1700000004000, "ord": 2})
    events.version = "4.0.0.Final"
    events.add("c", 2, {"_id": 2, "a": "new"}, source={"ts_ms": 1700000000500, "ord": 7})
    events.add("u", 2, {"_id": 2, "a": "newest"}, sets(a="newest"), source={"ts_ms": 1700000000400, "ord": 1})
    events.add("u", 3, {"_id": 3, "a": "old"}, sets(a="old"))
    events.add("r", 3, {"_id": 3, "a": "newest"}, source={"snapshot": "true"})  # a snapshot that is taken again
    lakehouse.run("clocks", events.records[2:])
    lakehouse.run("clocks", events.records[:2])
    assert lakehouse.sql("select a from clocks.clocks order by _id") == [("newest",)] * 3
    assert lakehouse.rejected("clocks") == []


def test_keys_of_several_types_are_told_apart(lakehouse: Lakehouse) -> None:
    """A key is text in relaxed form, a document's own may be canonical; a number is none of a text's rows."""
    events = Collection("keys")
    events.add("c", "1001", {"_id": {"$numberLong": "1001"}, "v": "number"})
    events.add("c", '"1001"', {"_id": "1001", "v": "text"})
    events.add("c", oid(1), {"_id": oid(1), "v": "object"})
    events.add(
        "c", '{"a": {"$date": "2020-01-01T00:00:00Z"}, "b": 1}', {"_id": {"a": {"$date": 1577836800000}, "b": 1}, "v": "both"}
    )
    events.add("c", None, {"_id": {"$numberInt": "5"}, "v": "no key"}, key=None)
    events.add("u", "5", {"_id": 5, "v": "key"}, sets(v="key"))
    events.add("d", '"1001"')
    events.add("d", oid(1), key={"schema": {"type": "struct"}, "payload": {"id": '{"$oid" : "000000000000000000000001"}'}})
    lakehouse.run("mongo_keys", events.records)
    found = lakehouse.sql("select _id, v from mongo_keys.keys order by 1")
    assert found == [("1001", "number"), ("5", "key"), ('{"a":{"$date":"2020-01-01T00:00:00Z"},"b":1}', "both")]
    assert lakehouse.rejected("mongo_keys") == []


# Updates that carry no document


def test_updates_without_a_document_are_laid_over_the_row(lakehouse: Lakehouse) -> None:
    """Fields and parts of them are set and removed in the source's order, in the columns and in the document."""
    events = Collection("stock")
    first = {"_id": oid(1), "name": "nail", "count": 5, "place": {"row": 1}, "tags": ["a", "b"]}
    events.add("r", oid(1), first)
    events.add("u", oid(1), None, sets(count=6, place={"row": 2}))
    events.add("u", oid(1), None, sets(removed=["name"], count={"$numberLong": "7"}))
    events.add("u", oid(1), None, sets(name=None, other=1))
    events.add("u", oid(1), None, sets(**{"place.row": 3}))
    events.add("u", oid(1), None, sets(removed=["place.row"]))
    events.add("u", oid(1), None, sets(truncated=[{"field": "tags", "size": 1}]))
    events.add("u", oid(1), None, sets(**{"tags.1": "c"}, count=8))
    events.add("u", oid(1), None, sets(**{"depth.a": 1}, count=9))
    events.add("u", oid(1), None, {"updatedFields": "{", "removedFields": None, "truncatedArrays": None})
    events.add("u", oid(1), None, sets(count="many"))
    events.add("u", oid(1))  # the document was gone when it was looked up
    events.add("c", oid(2), {"_id": oid(2), "name": "hook", "count": 1})
    events.add("u", oid(2), {"_id": oid(2), "name": "hook", "count": 2}, sets(count=2))
    events.add("u", oid(2), None, sets(tags=[]))
    events.add("d", oid(2), None)
    records = events.records[:9] + events.records[12:13] + events.records[14:]
    for system, parts in {"stock": [records], "stock_late": [[records[0], *records[8:]], records[1:8]]}.items():
        for part in parts:
            lakehouse.run(system, part)
        row = lakehouse.sql(f"select _id, name, count, place, tags, other, depth, document from {system}.stock")
        assert row[0][:-1] == (oid(1)["$oid"], None, 9, "{}", '["a","c"]', 1, '{"a":1}'), system
        whole = {"_id": oid(1), "name": None, "count": 9, "place": {}, "tags": ["a", "c"], "other": 1, "depth": {"a": 1}}
        assert json.loads(row[0][-1]) == whole
        assert lakehouse.rejected(system) == []
    twice = {"updatedFields": '{"count": 1, "place.q": {"k": 1, "k": 2}}', "removedFields": None, "truncatedArrays": None}
    for update in (
        sets(removed=[None]),
        sets(truncated=[{"size": 1}]),
        sets(truncated=[{"field": "tags"}]),
        twice,
        sets(**{"count.a": 1}),
    ):
        events.add("u", oid(1), None, update)
    lakehouse.run("stock", events.records[9:12] + events.records[16:])
    assert lakehouse.sql("select name, count, tags from stock.stock") == [(None, 9, '["a","c"]')]
    assert dict(lakehouse.rejected("stock")) == {
        "m.d.stock/0/9": "invalid_json",
        "m.d.stock/0/10": "value_not_exact: count",
        "m.d.stock/0/11": "no_after_image",
        **{f"m.d.stock/0/{at}": FULL for at in range(16, 21)},
    }


def test_an_object_that_names_a_member_twice_is_not_changed_in_part(lakehouse: Lakehouse) -> None:
    events = Collection("named_twice")  # in a field that is no column: others would be rejected
    events.add("c", 1, '{"_id": 1, "b": 5, "x.y": {"k": 1, "k": 2}}')
    lakehouse.run("named_twice", events.records)
    events.add("u", 1, None, sets(b=6))
    with pytest.raises(AssertionError, match="a document with an object that names a member twice was changed in part"):
        lakehouse.run("named_twice", events.records[1:])
    assert lakehouse.sql("select b from named_twice.named_twice") == [(5,)]


def test_a_document_is_kept_as_it_is_until_an_update_changes_it(lakehouse: Lakehouse) -> None:
    events = Collection("whole")
    first = '{ "_id" : 1, "z" : 1.50, "a" : {"$numberLong":"2"}, "b": {"c.d": 1}, "e": [[1, 2, 3], 4] }'
    events.add("c", 1, first)
    lakehouse.run("whole", events.records)
    assert lakehouse.sql("select document, a from whole.whole") == [(first, 2)]
    events.add("u", 1, None, sets(w=2, t='say "ü"', **{"b.c.d": 2}))  # a field whose name has a dot
    events.add("u", 1, None, sets(truncated=[{"field": "e.0", "size": 2}], document=5))  # a field named like the column
    events.add("u", 1, None, sets(removed=["z"], truncated=[{"field": "e", "size": 1}]))
    lakehouse.run("whole", events.records[1:])
    assert lakehouse.sql("select document, z from whole.whole") == [
        ('{"_id":1,"a":{"$numberLong":"2"},"b":{"c.d":2},"e":[[1,2]],"w":2,"t":"say \\"ü\\"","document":5}', None)
    ]
    events.add("u", 1, None, sets(truncated=[{"field": "e", "size": 0}]))
    lakehouse.run("whole", events.records[4:])
    assert lakehouse.sql("select get_json_object(document, '$.e') from whole.whole") == [("[]",)]
    cuts = "transform(filter(_cdc_patches, p -> p.size is not null), p -> concat_ws('.', p.name, p.path) || '=' || p.size)"
    assert lakehouse.sql(f"select {cuts} from silver.whole__whole") == [
        (["e.0=2", "e=0", "document.e.0=2", "document.e=0"],)
    ]  # of cuts of one array, the last
    assert lakehouse.rejected("whole") == []


def test_documents_without_a_connector_in_the_yaml_are_refused(lakehouse: Lakehouse) -> None:
    events = Collection("unsaid")
    events.add("c", 1, {"_id": 1, "a": 1})
    lakehouse.run("unsaid", events.records)
    properties = lakehouse.project / "models" / "silver" / "unsaid" / "unsaid__unsaid.yml"
    told = properties.read_text()
    assert "connector: mongodb" in told
    properties.write_text(told.replace("connector: mongodb", "hand: written"))
    events.add("u", 1, None, sets(a=2))
    lakehouse.land("unsaid", events.records[1:])
    result = lakehouse.dbt("run", "--select", "stg_unsaid__unsaid", "unsaid__unsaid")
    assert not result.success
    assert any("reads documents that updates change in part, and does not say so" in str(node.message) for node in result.result)
    assert lakehouse.rows("unsaid.unsaid")[0]["a"] == 1

    properties.write_text(told)
    assert lakehouse.dbt("run", "--select", "stg_unsaid__unsaid", "unsaid__unsaid").success
    assert lakehouse.rows("unsaid.unsaid")[0]["a"] == 2


class Document:
    """A document as the server changes it, and what it tells of that."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.content: Any = None

    def value(self, depth: int = 0) -> Any:
        kind = self.random.choice(["number", "text", "null", "object", "array"] if depth < 3 else ["number", "text"])
        if kind == "object":
            return {
                name: self.value(depth + 1) for name in self.random.sample(["a", "b", 'c"d', "0", "é"], self.random.randint(0, 3))
            }
        if kind == "array":
            return [self.value(depth + 1) for _ in range(self.random.randint(0, 4))]
        return {
            "number": self.random.choice([0, -5, 2**60, 0.5]),
            "text": self.random.choice(["", '"{', "x", "\\", "\n\x01é"]),
            "null": None,
        }[kind]

    def step(self) -> dict[str, Any] | None:
        """Change some places, no place inside another that was changed, and return the update's description."""
        update: dict[str, Any] = {"updatedFields": {}, "removedFields": [], "truncatedArrays": []}
        touched: list[str] = []
        for _ in range(self.random.randint(1, 3)):
            place, path = self.content, ""
            name: Any = self.random.choice(["n", "place", "tags", "deep"])
            while self.random.random() < 0.8 and (name in range(len(place)) if isinstance(place, list) else name in place):
                inside = place[name]
                if not isinstance(inside, dict | list) or not inside:
                    break
                place, path = inside, f"{path}{name}."
                name = self.random.choice([*inside, "new"] if isinstance(inside, dict) else range(len(inside) + 1))
            path += str(name)
            if any(f"{path}.".startswith(f"{other}.") or f"{other}.".startswith(f"{path}.") for other in touched):
                continue
            if isinstance(place, list) and any(other.startswith(path.rpartition(".")[0]) for other in touched):
                continue  # an array is cut or written, not both
            touched.append(path)
            if isinstance(place, list):
                if self.random.random() < 0.5:
                    size = self.random.randint(0, len(place))
                    del place[size:]
                    update["truncatedArrays"].append({"field": path.rpartition(".")[0], "size": size})
                else:
                    update["updatedFields"][path] = value = self.value(2)
                    place[name : name + 1] = [value]
            elif name in place and self.random.random() < 0.4:
                del place[name]
                update["removedFields"].append(path)
            else:
                update["updatedFields"][path] = place[name] = self.value()
        return {**update, "updatedFields": json.dumps(update["updatedFields"])} if touched else None


def test_documents_changed_in_part_are_the_servers_in_any_order(lakehouse: Lakehouse) -> None:
    """Forty random lives of documents, in the order of the source and shuffled over runs, with and without documents in updates."""
    random = Random(20261122)
    events = Collection("lives")
    wanted: dict[int, Any] = {}
    for id in range(40):
        document = Document(random)
        for _ in range(random.randint(3, 25)):
            if document.content is None or random.random() < 0.1:
                document.content = {
                    "_id": id,
                    "n": 1,
                    "place": document.value(),
                    "tags": [document.value(2) for _ in range(random.randint(0, 5))],
                    "deep": {},
                }
                events.add("c" if id not in wanted else "u", id, document.content)
            elif random.random() < 0.05:
                document.content = None
                events.add("d", id)
            elif update := document.step():
                events.add("u", id, None, copy.deepcopy(update))
            wanted[id] = copy.deepcopy(document.content)
    lakehouse.run("lives", events.records)
    for part in shuffled(events.records + random.sample(events.records, 60), seed=8):
        lakehouse.run("lives_shuffled", part)
    for system in ("lives", "lives_shuffled"):
        assert lakehouse.rejected(system) == []
        rows = {row["_id"]: row for row in lakehouse.rows(f"{system}.lives")}
        assert rows.keys() == {id for id, content in wanted.items() if content is not None}
        for id, row in rows.items():
            assert json.loads(row["document"]) == wanted[id], (system, id)
            for name in ("n", "place", "tags", "deep"):
                assert json.loads(row[name] or "null") == wanted[id].get(name), (system, id, name)
    silver = "(select * except (_cdc_batch) from silver.lives_shuffled__lives)"  # of a repeated event any
    merged = lakehouse.rows(silver)
    assert lakehouse.rows("lives.lives") == lakehouse.rows("lives_shuffled.lives")
    assert lakehouse.dbt("run", "--full-refresh", "--select", "lives_shuffled__lives").success
    assert lakehouse.rows(silver) == merged


# What is no document


def test_records_are_documents_or_something_else_or_rejected(lakehouse: Lakehouse) -> None:
    events = Collection("kinds")
    events.add("c", 1, {"_id": 1, "a": 1})
    events.add("c", 2, '{"_id": 2, "a": ')
    events.add("c", 3, "[1]")
    events.add("c", 4, {"a": 1}, key=None)
    events.add("c", "not json", {"_id": 5})
    events.add("d", 6, key=None)
    events.add("c", 7, "null")
    events.add("c", 8, {"_id": 8}, source={"ord": None})
    events.add("d", "true")
    events.record({"ts_ms": 1}, {"serverName": "m"})
    events.record({"status": "END", "id": "1", "event_count": 2, "data_collections": [], "ts_ms": 1}, {"id": "1"})
    events.add("c", 9, {"_id": 9}, source={"collection": "elsewhere"}, transaction={"id": "1", "total_order": 1})
    events.add("x", 10, {"_id": 10})
    events.record({"id": "a", "aggregate_type": "Initial Snapshot", "type": "STARTED", "additional_data": {}}, {"id": "a"})
    lakehouse.run("mongo_kinds", events.records)
    assert lakehouse.sql("select _id, a from mongo_kinds.kinds") == [(1, 1)]
    reasons = {int(event.rsplit("/", 1)[1]): reason for event, reason in lakehouse.rejected("mongo_kinds")}
    assert reasons == {
        1: "invalid_json",
        2: "value_of_wrong_type",
        3: "no_key",
        4: "invalid_json",
        5: "no_key",
        6: "no_after_image",
        7: "no_position",
        8: "no_key",
        12: "unknown_operation",
    }
    kinds = lakehouse.sql("select kind, sum(events) from monitoring.mongo_kinds__event_counts group by 1")
    one = dict.fromkeys(("heartbeat", "notification", "transaction"), 1)
    assert dict(kinds) == {"change": 2, "rejected": 9, **one}  # one change is of another collection
    transactions = "select transaction_id, has_ended, expected_events, landed_events from monitoring.mongo_kinds__transactions"
    assert lakehouse.sql(transactions) == [("1", True, 2, 1)]


def test_a_document_has_no_key_but_its_own(lakehouse: Lakehouse) -> None:
    from scripts.errors import LakehouseError

    events = Collection("keyed_otherwise")
    events.add("c", 1, {"_id": 1, "a": 1})
    with pytest.raises(LakehouseError, match=r"KEYS: d\.keyed_otherwise is a collection, and its documents are identified by _id"):
        lakehouse.run("keyed_otherwise", events.records, keys={"keyed_otherwise": ["a"]})
    lakehouse.run("keyed_otherwise", [], keys={"keyed_otherwise": ["_id"]})
    assert lakehouse.sql("select _id, a from keyed_otherwise.keyed_otherwise") == [(1, 1)]
