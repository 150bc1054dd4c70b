"""MongoDB: documents as columns, the forms of extended JSON, updates that carry no document, keys and order."""

import base64
import json
import uuid
from typing import Any

from conftest import Lakehouse, corpus, corpus_records
from event_factory import shuffled

Record = dict[str, Any]


class Collection:
    """Changes of one collection in the order of the source; every change has a cluster time of its own unless given."""

    def __init__(self, name: str, version: str = "2.7.4.Final") -> None:
        self.name, self.version = name, version
        self.records: list[Record] = []

    def add(
        self, op: str, id: Any, after: Any = None, update: Any = None, before: Any = None, **members: Any
    ) -> Record:
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
    lakehouse.run(
        "risingwave_schema", [{"topic": "t", "offset": at, "value": line} for at, line in enumerate(with_schema)]
    )
    for system in ("risingwave", "risingwave_schema"):
        rows = lakehouse.rows(f"{system}.customers")
        documents = [
            {"_id": {"$numberLong": str(row["id"])}, **{name: row[name] for name in list(row)[1:]}} for row in wanted
        ]
        assert [json.loads(row.pop("document")) for row in rows] == documents
        assert [{"id": row.pop("_id"), **row} for row in rows] == wanted
        assert lakehouse.rejected(system) == []


def test_corpus_of_every_bson_type_keeps_each_value(lakehouse: Any) -> None:
    """The other project prints every field as text; here they are typed, and what has no type of SQL is its whole
    extended JSON.

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
    (row,) = lakehouse.query("select *, unix_millis(deleted_time) as deleted_millis from every_type.every").collect()
    found = {**row.asDict(), "deleted_time": row["deleted_millis"]}
    assert json.loads(found["document"]) == json.loads(after)
    for name, text in told.items():
        if (
            isinstance(of_file[name], (dict, list))
            and isinstance(found[name], str)
            and found[name].startswith(("{", "["))
        ):
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
    kinds = dict(lakehouse.table("every_type.every").dtypes)
    assert {name: kinds[name] for name in typed if kinds[name] != "string"} == {
        **dict.fromkeys(("age", "created_time", "updated_time"), "bigint"),
        **dict.fromkeys(("double_nan", "double_inf", "double_ninf", "double_zero"), "double"),
        **dict.fromkeys(("boolean_true", "boolean_false"), "boolean"),
        **dict.fromkeys(("binary", "uuid"), "binary"),
        "deleted_time": "timestamp",
    }
    assert told.keys() - typed == {
        "register_time",
        "regex",
        "symbol",
        "minKey",
        "maxKey",
        "code",
        "undefined",
        "context",
    }
    assert lakehouse.rejected("every_type") == []


def test_documented_samples_are_changes(lakehouse: Lakehouse) -> None:
    """A create with its schema block, an update with everything and a delete with the document as it was, with the key
    of the page.

    The block of a transaction is shown in an event that leaves out `source`: nothing tells of what collection it is.
    """
    lines = (corpus("debezium_docs_examples") / "examples.jsonl").read_text(encoding="utf-8").splitlines()
    samples = [sample for sample in map(json.loads, lines) if sample["connector"] == "mongodb"]
    (key,) = [sample["value"] for sample in samples if sample["kind"] == "key"]
    records, changes = [], []
    for at, sample in enumerate(samples):
        payload = json.loads(sample["value"]).get("payload", {})
        topic = "docs.customers" if payload.get("source") else f"docs.{sample['kind']}"
        record = {
            "topic": topic,
            "partition": 0,
            "offset": at,
            "key": key if payload else None,
            "value": sample["value"],
        }
        if payload.get("source"):
            document = payload.get("after")
            row = json.loads(document) if document else {}
            changes.append(
                (payload["op"], 1004, *(row.get(name) for name in ("first_name", "last_name", "email")), document)
            )
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
    others = (
        "select kind, sum(events) from monitoring.mongo_docs__event_counts where source_table is null group by kind"
    )
    assert dict(lakehouse.sql(others)) == {"transaction": 2, "change_without_model": 1}


# Types


def test_scaffold_finds_the_types_of_fields(lakehouse: Lakehouse) -> None:
    """What no column can be named like, and what has several types, stays in the document or is its extended JSON."""
    from scripts.declared import declared_tables

    events = Collection("shapes")
    document: Record = {
        "_id": oid(1),
        "n": 1,
        "x": 1,
        "at": {"$date": 5},
        "raw": {"$binary": "", "$type": "00"},
        "none": None,
    }
    events.add(
        "c", oid(1), {**document, "mixed": "a", "a.b": 1, "Name": "x", "name": "y", "_cdc_op": 1, "document": {}}
    )
    events.add("c", oid(2), {"_id": oid(2), "n": {"$numberLong": "2"}, "x": 1.5, "mixed": 5, "list": []})
    lakehouse.run("shapes", events.records)
    (declared,) = declared_tables("shapes", lakehouse.project / "models").values()
    kinds = {
        "_id": "objectId",
        "n": "long",
        "x": "double",
        "at": "date",
        "raw": "binData",
        "none": "any",
        "mixed": "any",
    }
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
    events.add(
        "d", 3, before={"_id": {"$numberLong": "3"}, "a": 1}, key=None, source={"ord": 2, "ts_ms": 1700000001000}
    )
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
    (row,) = lakehouse.sql(
        "select _cdc_transaction_id, _cdc_position, document from silver.mongo_order__orders where _id = 4"
    )
    assert row[0] == "s:8" and json.loads(row[2]) == {"_id": 4, "a": 2}
    assert row[1] == "0000.000000017000000010000000000005.1.0000000000.00000000000000000010"


# Updates that carry no document


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
    cuts = (
        "transform(filter(_cdc_patches, p -> p.size is not null), p -> concat_ws('.', p.name, p.path) || '=' || p.size)"
    )
    assert lakehouse.sql(f"select {cuts} from silver.whole__whole") == [
        (["e.0=2", "e=0", "document.e.0=2", "document.e=0"],)
    ]  # of cuts of one array, the last
    assert lakehouse.rejected("whole") == []


# What is no document
