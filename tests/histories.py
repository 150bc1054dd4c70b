"""Histories of Debezium's other connectors and of the forks that write its events, each with the rows that have to come
out.

Every connector has a history of its own, in the order in which its source committed it, with positions that compare
wrongly as text and clocks that run backwards. Forks and other writers of Debezium's events have all members that their
source code writes, also schema blocks, and tombstones where they send them. Of connectors that have no other example

    python tests/histories.py

writes them to `tests/events/sources.jsonl`. The pages of the connectors follow one event of each.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Record = dict[str, Any]
Rows = list[dict[str, Any]]
SAMPLE = Path(__file__).parent / "events" / "sources.jsonl"
# Members of `source` that documentation or code of the connectors show besides, and that nothing here reads; an older
# `version`.
FURTHER: dict[str, dict[str, Any]] = {
    "TiCDC": {
        **{
            "version": "2.4.0.Final",
            "server_id": 0,
            "gtid": None,
            "file": "",
            "pos": 0,
            "row": 0,
            "thread": 0,
            "query": None,
        },
        "cluster_id": "default",
    },
    "YugabyteDB": {"version": "2.5.2.Final", "txId": 812, "xmin": None},
    "cassandra": {"cluster": "Test Cluster"},
    "ibmi": {"receiver_library": "JOURNALS"},
    "informix": {"txId": "212", "begin_lsn": "95"},
    "spanner": {
        "project_id": "p",
        "instance_id": "i",
        "database_id": "database",
        "change_stream_name": "all_tables",
        "server_transaction_id": "MTY4",
        "low_watermark": 1699999990000,
        "read_at_timestamp": 1700000000100,
        "number_records_in_transaction": 1,
        "transaction_tag": "",
        "system_transaction": False,
        "partition_token": "AYcT",
        "is_last_record_in_transaction_in_partition": True,
        "number_of_partitions_in_transaction": 1,
    },
    "vitess": {"sequence": None, "vgtid": '[{"keyspace":"commerce","shard":"-80","gtid":"MySQL56/8a5e7c02:1-57"}]'},
    "yashandb": {"sequence": None, "instance_id": "0"},
    "yugabytedb": {
        **{"version": "1.9.5.y.220.4", "record_time": 6995023, "tablet_id": "7c1de0", "partition_id": "4f00.7c1de0"},
        "origin_id": None,
    },
}
TRANSACTION = {"id": "", "total_order": 1, "data_collection_order": 1}


def schema_of(value: Any, **about: Any) -> dict[str, Any]:
    """The schema block of a value as JsonConverter writes it. What is null is taken for a text, which is optional."""
    if isinstance(value, dict):
        about["fields"] = [schema_of(inner, field=name) for name, inner in value.items()]
    if isinstance(value, list):
        about["items"] = schema_of(value[0] if value else "")
    kinds = {bool: "boolean", dict: "struct", int: "int64", list: "array"}
    return {"type": kinds.get(type(value), "string"), "optional": value is None, **about}


@dataclass
class History:
    """Changes of one table in the order of the source; `source` fields of a change make its position."""

    table: str
    connector: str
    names: dict[str, Any]  # members of `source` that name the table, and others that are the same in all events
    cells: bool = False
    has_schema: bool = False  # keys and values have their schema block
    has_tombstones: bool = False  # one follows each delete
    records: list[Record] = field(default_factory=list)
    row: Any = None  # the first image: what a schema block describes

    def add(
        self,
        op: str,
        id: int,
        before: Any = None,
        after: Any = None,
        key: Any = "id",
        headers: Any = None,
        **members: Any,
    ) -> None:
        offset = len(self.records)
        further = FURTHER.get(self.connector, {}) | self.names | members.pop("source", {})
        is_since_2_6 = self.connector and further.get("version", "3") > "2.6"
        source = {
            "version": "3.4.0.Final",
            "connector": self.connector,
            "name": "src",
            "ts_ms": 1700000000000 - offset,
            "snapshot": "false",
            **({"ts_us": 1700000000000000 - offset, "ts_ns": 1700000000000000000 - offset} if is_since_2_6 else {}),
            **further,
        }
        value = {
            "before": self._image(before),
            "after": self._image(after),
            "source": source,
            "op": op,
            "ts_ms": 1700000009999 - offset,
            **({"ts_us": 1700000009999000 - offset, "ts_ns": 1700000009999000000 - offset} if is_since_2_6 else {}),
            **({"transaction": None} if self.connector else {}),
        }
        name = {"id": {"value": id} if self.cells else id} if key == "id" else key
        self.record({**value, **members}, name, headers)
        if op == "d" and self.has_tombstones:
            self.record(None, name)

    def record(self, value: Any, key: Any, headers: Any = None) -> None:
        """Add a record; `headers` are names and keys that are their values."""
        if self.has_schema:
            value = self._with_schema(value)
            key = None if key is None else {"schema": schema_of(key), "payload": key}
        self.records.append(
            {
                "topic": f"src.{self.table}",
                "partition": 0,
                "offset": len(self.records),
                **(
                    {"headers": [{"key": name, "value": json.dumps(of)} for name, of in headers.items()]}
                    if headers
                    else {}
                ),
                "key": None if key is None else json.dumps(key),
                "value": None if value is None else json.dumps(value),
            }
        )

    def _with_schema(self, value: Any) -> Any:
        """Of a change the block describes rows and transactions also where the event has none."""
        if value is None:
            return None
        self.row = self.row or value.get("after")
        whole = {"before": self.row, "after": self.row, "transaction": TRANSACTION}
        described = {**value, **{name: whole[name] for name in whole if name in value}}
        return {"schema": schema_of(described, name=f"src.{self.table}.Envelope"), "payload": value}

    def _image(self, image: Any) -> Any:
        if image is None or not self.cells:
            return image
        return {name: None if value is ... else {"value": value, "set": True} for name, value in image.items()}


def history(
    name: str, connector: str, places: list[dict[str, Any]], whole: bool = False, **names: str | None
) -> History:
    """Four rows over seven places: one is changed twice, one deleted, one deleted and written again, one moved to
    another key.

    `whole`: with schema blocks and tombstones; `names`: None for a member that `source` does not have.
    """
    named = {"db": "d", "schema": "s", "table": name, **names}
    named = {member: value for member, value in named.items() if value is not None}
    events = History(name, connector, named, has_schema=whole, has_tombstones=whole)
    first, *later = places
    snapshot = {"snapshot": "true", **first}
    events.add("r", 1, after={"id": 1, "note": "read"}, source=snapshot)
    events.add("r", 2, after={"id": 2, "note": "read"}, source=snapshot)
    events.add("u", 1, before={"id": 1, "note": "read"}, after={"id": 1, "note": "old"}, source=later[0])
    events.add("d", 2, before={"id": 2, "note": "read"}, source=later[1])
    events.add("c", 3, after={"id": 3, "note": "first"}, source=later[2])
    events.add("u", 1, before={"id": 1, "note": "old"}, after={"id": 1, "note": "new"}, source=later[3])
    events.add("d", 3, before={"id": 3, "note": "first"}, source=later[4])
    events.add("c", 3, after={"id": 3, "note": "again"}, source=later[5])
    events.add("c", 4, after={"id": 4, "note": "moved"}, source=later[4])
    left = {"headers": {"__debezium.newkey": {"id": 5}}, "source": later[5]}
    events.add("d", 4, before={"id": 4, "note": "moved"}, **left)
    events.add("c", 5, after={"id": 5, "note": "moved"}, **(left | {"headers": {"__debezium.oldkey": {"id": 4}}}))
    return events


HISTORY_ROWS = [{"id": 1, "note": "new"}, {"id": 3, "note": "again"}, {"id": 5, "note": "moved"}]


def numbers(name: str, *values: Any, **others: Any) -> list[dict[str, Any]]:
    return [{name: value, **others} for value in values]


def sqlserver() -> History:
    def place(commit: str, change: str | None, serial: int | None = 1) -> dict[str, Any]:
        return {"commit_lsn": commit, "change_lsn": change, "event_serial_no": serial}

    places = [place("00000027:00000ac0:0001", None, None), place("00000027:00000ac0:0009", "00000027:00000ac0:0009", 2)]
    places += [
        place("00000027:00000ac0:000a", "00000027:00000ac0:0009"),
        place("00000027:00000ac0:000F", "00000027:00000ac0:000b"),
    ]
    places += [place("00000027:00000AC0:0010", "00000027:00000ac0:0002", 2)]
    places += [
        place("00000027:00000b00:0001", "00000027:00000aff:000a"),
        place("00000027:00000b00:0001", "00000027:00000aff:000B"),
    ]
    return history("sqlserver", "sqlserver", places, db="sales", schema="dbo")


def sqlserver_rewritten() -> History:
    """As Flink CDC writes SQL Server: snapshot rows without a mark, and what has no position, come first."""
    events = History("rewritten", "sqlserver", {"db": "sales", "schema": "dbo", "table": "rewritten"})
    for id, unknown in enumerate(("00", "NULL", None), start=1):
        events.add(
            "r",
            id,
            after={"id": id, "note": "read"},
            source={"commit_lsn": unknown, "change_lsn": None, "event_serial_no": None},
        )
    later = {"commit_lsn": "00000000:00000001:0001", "change_lsn": "NULL", "event_serial_no": None}
    events.add("u", 1, after={"id": 1, "note": "new"}, source=later)
    events.add("d", 2, before={"id": 2, "note": "read"}, source=later)
    events.add("u", 3, after={"id": 3, "note": "new"}, source=later)
    events.add("c", 4, after={"id": 4, "note": "gone"}, source={"commit_lsn": "00", "change_lsn": "00"})
    events.add(
        "d", 4, before={"id": 4, "note": "gone"}, source={"commit_lsn": "00000000:00000001:0002", "change_lsn": None}
    )
    return events


def oracle() -> History:
    """A change that was begun before the snapshot and committed after it comes after the snapshot's row."""
    places: list[dict[str, Any]] = [{"scn": "900", "commit_scn": None, "txSeq": None}]
    for commit, change, number in (("950", "850", 1), ("999", "998", 9), ("999", "998", 10), ("1000", "998", 2)):
        places.append({"commit_scn": commit, "scn": change, "txSeq": number, "txId": "0500080076ca0000"})
    places += [{"commit_scn": "10000", "scn": "9999", "txSeq": number} for number in (9, 10)]
    return history("oracle", "oracle", places, db="ORCLPDB1", schema="APP")


def oracle_before_3() -> History:
    """Until 3.0, `commit_scn` is that of an earlier commit; the change's own number, segment and sequence are its
    place.
    """
    places: list[dict[str, Any]] = [{"scn": "900", "commit_scn": "0"}]
    for number, segment, sequence in (
        ("999", "0x0034b1.00143517.0010", 1),
        ("999", "0x0034b1.00143517.0010", 9),
        ("999", "0x0034b1.00143517.0010", 10),
        ("1000", "0x0034b1.00143516.0010", 0),
        ("10000", " 0x0034b1.00143519.0010 ", 9),
        ("10000", " 0x0034b1.0014351a.0010 ", 0),
    ):
        places.append({"scn": number, "rs_id": segment, "ssn": sequence, "commit_scn": "950", "version": "2.7.0.Final"})
    return history("oracle_before_3", "oracle", places, db="ORCLPDB1", schema="APP")


def oracle_xstream() -> History:
    def place(commit: int, change: int) -> dict[str, Any]:
        position = f"{commit:016x}0000000100000001{change:016x}000000010000000102"
        return {"lcr_position": position, "scn": "1", "commit_scn": None}

    places = [{"scn": "900", "lcr_position": None}, place(0x389, 0x388), place(0x38A, 0x389), place(0x3AF, 0x39A)]
    places += [place(0x400, 0x3FF), place(0x1000, 0xFF9), place(0x1000, 0xFFA)]
    return history("oracle_xstream", "oracle", places, db="ORCLPDB1", schema="APP")


def db2() -> History:
    def place(commit: str, change: str | None) -> dict[str, Any]:
        return {
            "commit_lsn": f"00000000:0000150f:{commit:0>16}",
            "change_lsn": change and f"00000000:0000150f:{change:0>16}",
        }

    places = [
        place("48fc0", None),
        place("48fc9", "48fc1"),
        place("48fca", "48fc2"),
        place("48fCB", "48fc3"),
        place("48fd0", "48fc4"),
    ]
    return history("db2", "db2", [*places, place("50000", "4ffff"), place("50000", "50000")], schema="DB2INST1")


def informix() -> History:
    places = [
        {"commit_lsn": "0", "change_lsn": "0"},
        *({"commit_lsn": str(n), "change_lsn": "99"} for n in (99, 100, 101, 627404540760620)),
    ]
    places += [{"commit_lsn": "627404540760621", "change_lsn": change} for change in ("99", "100")]
    return history("informix", "informix", places, schema="informix")


def ibmi() -> History:
    """The table is the topic; a new receiver may begin the sequence anew. Without one, its name is the text `null`."""
    places = [
        {"receiver": "null", "receiver_library": "null", "sequence": None},
        *numbers("sequence", "99", "100", "101", receiver="QSQJRN0009"),
    ]
    places += [{"receiver": "QSQJRN0010", "sequence": "3"}, *numbers("sequence", "9", "10", receiver="QSQJRN0010")]
    return history("ibmi", "ibmi", places, whole=True, db="db name", schema=None, table=None)


def yashandb() -> History:
    """A row of the snapshot has an SCN and no commit; each number of the place counts more than the one after it."""

    def place(commit: int, group: int, offset: int, row: int) -> dict[str, Any]:
        return {
            "position_scn": commit,
            "group_lsn": group,
            "group_offset": offset,
            "batch_row_id": row,
            "scn": "98",
            "txId": "7",
        }

    places: list[dict[str, Any]] = [{"scn": "98", "position_scn": 0}, place(99, 9, 9, 9), place(99, 9, 9, 10)]
    places += [
        place(99, 9, 10, 0),
        place(99, 10, 0, 0),
        place(9007199254740993, 0, 0, 9),
        place(9007199254740993, 0, 0, 10),
    ]
    return history("yashandb", "yashandb", places, db="", schema="APP")


def vitess() -> History:
    """Inside a shard: epoch, rank, place in the transaction. A failover raises the epoch and may lower the rank."""
    events = History("vitess", "vitess", {"keyspace": "commerce", "table": "vitess", "shard": "-80", "db": ""})

    def order(epoch: int, rank: int, number: int) -> dict[str, Any]:
        return {"id": "[]", "transaction_epoch": epoch, "transaction_rank": str(rank), "total_order": number}

    events.add("r", 1, after={"id": 1, "note": "read"}, source={"snapshot": "true"})
    events.add("u", 1, after={"id": 1, "note": "old"}, transaction=order(0, 99, 1))
    events.add("u", 1, after={"id": 1, "note": "older"}, transaction=order(0, 100, 1))
    events.add("c", 2, after={"id": 2, "note": "first"}, transaction=order(0, 1000, 9))
    events.add("d", 2, before={"id": 2, "note": "first"}, transaction=order(0, 1000, 10))
    events.add("u", 1, after={"id": 1, "note": "new"}, transaction=order(1, 5, 1))
    events.add("c", 3, after={"id": 3, "note": "first"}, transaction=order(1, 6, 9))
    events.add("u", 3, after={"id": 3, "note": "again"}, transaction=order(1, 6, 10))
    return events


def spanner() -> History:
    """No snapshot. Two changes of one commit differ in their record's number, or in the row of the record."""
    events = History("spanner", "spanner", {"db": "database", "table": "spanner"})

    def place(time: int, sequence: str, number: int = 0) -> dict[str, Any]:
        return {"ts_ns": time, "sequence": sequence, "mod_number": number, "value_capture_type": "NEW_ROW"}

    events.add("c", 1, after={"id": 1, "note": "first"}, source=place(999_999_999_999_999_999, "7"))
    events.add("u", 1, after={"id": 1, "note": "old"}, source=place(1_000_000_000_000_000_000, "9", 5))
    events.add("u", 1, after={"id": 1, "note": "new"}, source=place(1_000_000_000_000_000_000, "10", 0))
    events.add("c", 2, after={"id": 2, "note": "first"}, source=place(1_000_000_000_000_000_001, "1", 9))
    events.add("d", 2, before={"id": 2}, source=place(1_000_000_000_000_000_001, "1", 10))
    events.add("d", 3, before={"id": 3}, source=place(1_000_000_000_000_000_002, "1", 9))
    events.add("c", 3, after={"id": 3, "note": "again"}, source=place(1_000_000_000_000_000_002, "1", 10))
    return events


def cockroachdb() -> History:
    """An enriched changefeed: no `source.connector`, its own names, the time of the commit as nanoseconds.counter."""
    events = History("cockroachdb", "", {}, has_schema=True)
    cluster = {
        "cluster_id": "0d3f7ab2",
        "cluster_name": "",
        "db_version": "v25.2.4",
        "node_id": "3",
        "node_name": "10.0.0.3",
    }
    cluster |= {"source_node_locality": "", "job_id": "1101", "changefeed_sink": "webhook", "origin": "cockroachdb"}
    table = {"database_name": "d", "schema_name": "public", "table_name": "cockroachdb", "crdb_internal_table_id": 104}

    def add(op: str, id: int, time: str, note: str | None) -> None:
        source = cluster | table | {"primary_keys": ["id"], "mvcc_timestamp": time}
        source |= {
            "ts_hlc": "1747243394200039000.0000000000",
            "ts_ns": 1747243394200039000,
        }  # when the changefeed came to it
        value = {
            "after": None if note is None else {"id": id, "note": note},
            "key": {"id": id},
            "op": op,
            "source": source,
        }
        events.record(
            {**value, "ts_ns": 1747243394300000000 - len(events.records)}, None
        )  # a sink that is no Kafka has no other key

    add("c", 1, "999999999999999999.0000000000", "first")
    add("u", 1, "1747243394200039000.0000000009", "old")
    add("u", 1, "1747243394200039000.0000000010", "new")
    add("c", 2, "1747243394200039001.0000000000", "first")
    add("d", 2, "1747243394200039002.0000000000", None)
    add("d", 3, "1747243394200039009.0000000000", None)
    add("c", 3, "1747243394200039010.0000000000", "again")
    events.has_schema = False  # which this has in no changefeed: all before it has been sent
    events.record({"resolved": "1747243394200039011.0000000000"}, None)
    return events


def ticdc() -> History:
    """Updates may change the key, also swap two; DDL (also a truncate) and a watermark, a message, are in the table's
    topic.
    """
    events = History("ticdc", "TiCDC", {"db": "test", "table": "ticdc"}, has_schema=True)

    def add(op: str, id: int, time: int, before: Any = None, after: Any = None) -> None:
        events.add(op, id, before, after, source={"commit_ts": time})

    def tell(time: int, key: Any, table: dict[str, str], **members: Any) -> None:
        source = {"connector": "TiCDC", "name": "src", "ts_ms": 1700000000000, "snapshot": "false", "commit_ts": time}
        events.record({"source": FURTHER["TiCDC"] | source | table, "ts_ms": 1700000009999, **members}, key)

    def ddl(time: int, statement: str, changes: list[Any]) -> None:
        told = {"databaseName": "test", "schemaName": None, "ddl": statement, "tableChanges": changes}
        tell(time, {"databaseName": "test"}, events.names, **told)

    columns = [
        {"name": "id", "jdbcType": -5, "typeName": "BIGINT"},
        {"name": "note", "jdbcType": 12, "typeName": "VARCHAR", "length": 40},
    ]
    kinds = {
        "nativeType": None,
        "comment": None,
        "defaultValueExpression": None,
        "enumValues": None,
        "charsetName": None,
        "length": None,
    }
    flags = {"scale": None, "optional": True, "autoIncremented": False, "generated": False}
    columns = [
        kinds | flags | column | {"typeExpression": column["typeName"], "position": at}
        for at, column in enumerate(columns, 1)
    ]
    created = {"defaultCharsetName": "utf8mb4", "primaryKeyColumnNames": ["id"], "columns": columns}
    statement = "CREATE TABLE ticdc (id BIGINT PRIMARY KEY, note VARCHAR(40))"
    ddl(80, statement, [{"type": "CREATE", "id": '"test"."ticdc"', "table": created}])
    add("c", 9, 90, after={"id": 9, "note": "before the truncate"})
    ddl(99, "/* by hand */ TRUNCATE TABLE ticdc", [])
    add("c", 1, 999, after={"id": 1, "note": "one"})
    add("c", 2, 999, after={"id": 2, "note": "two"})
    tell(1000, {}, {"db": "", "table": ""}, transaction=None, op="m")
    add("u", 2, 1001, before={"id": 1, "note": "one"}, after={"id": 2, "note": "one"})
    add("u", 1, 1001, before={"id": 2, "note": "two"}, after={"id": 1, "note": "two"})
    add("u", 3, 10000, before={"id": 2, "note": "one"}, after={"id": 3, "note": "one"})
    add("u", 1, 10001, before={"id": 1, "note": "two"}, after={"id": 1, "note": "new"})
    add("c", 4, 10001, after={"id": 4, "note": "gone"})
    add("d", 4, 10002, before={"id": 4, "note": "gone"})
    return events


def yugabytedb() -> History:
    """The gRPC connector: keys are cells too, and a null cell is a value that did not change."""
    names = {"db": "yugabyte", "schema": "public", "table": "yugabytedb"}
    events = History("yugabytedb", "yugabytedb", names, cells=True, has_schema=True, has_tombstones=True)

    def place(commit: int, lsn: str) -> dict[str, Any]:
        return {"commit_time": commit, "lsn": lsn, "txId": "", "sequence": f'[null,"{lsn}"]'}

    events.add(
        "r",
        1,
        after={"id": 1, "note": "read", "more": "kept"},
        source={"snapshot": "true", **place(90, "1:4:AAA=:-1:90")},
    )
    events.add("u", 1, after={"id": 1, "note": "old", "more": ...}, source=place(999, "1:9::0:0"))
    events.add("u", 1, after={"id": 1, "note": "older", "more": ...}, source=place(999, "1:10::0:0"))
    events.add("u", 1, after={"id": 1, "note": "new", "more": ...}, source=place(1000, "1:2::9:0"))
    events.add("c", 2, after={"id": 2, "note": "first", "more": "gone"}, source=place(1001, "1:12::9:0"))
    events.add("d", 2, before={"id": 2, "note": ..., "more": ...}, source=place(1001, "1:12::10:0"))
    events.add("c", 3, after={"id": 3, "note": "again", "more": None}, source=place(1002, "2:1::0:0"))
    return events


def yugabytedb_yboutput() -> History:
    """The logical connector's own plugin: PostgreSQL's positions; its Kafka keys are plain, its columns cells."""
    events = History("yboutput", "YugabyteDB", {"db": "yugabyte", "schema": "public", "table": "yboutput"}, cells=True)
    for op, id, before, after, lsn in (
        ("r", 1, None, {"id": 1, "note": "read", "more": "kept"}, 99),
        ("u", 1, None, {"id": 1, "note": "new", "more": ...}, 100),
        ("c", 2, None, {"id": 2, "note": "first", "more": "gone"}, 101),
        ("d", 2, {"id": 2, "note": ..., "more": ...}, None, 102),
    ):
        events.add(
            op,
            id,
            before,
            after,
            key={"id": id},
            source={"lsn": lsn, "sequence": None, "snapshot": str(op == "r").lower()},
        )
    return events


def yugabytedb_pgoutput() -> History:
    events = History("pgoutput", "YugabyteDB", {"db": "yugabyte", "schema": "public", "table": "pgoutput"})
    events.add("r", 1, after={"id": 1, "note": "read", "more": None}, source={"lsn": 99, "snapshot": "true"})
    events.add("u", 1, after={"id": 1, "note": "new", "more": "whole"}, source={"lsn": 100})
    events.add(
        "u", 1, {"id": 1, "note": "new", "more": "whole"}, {"id": 1, "note": "newer", "more": None}, source={"lsn": 101}
    )
    events.add("c", 2, after={"id": 2, "note": "gone", "more": "too"}, source={"lsn": 999})
    events.add("d", 2, {"id": 2, "note": None, "more": None}, source={"lsn": 1000})
    return events


def opengauss() -> History:
    """The fork's base is Debezium 1.8. Each change but the last two is of a transaction of its own."""
    lsns = [90, 99, 100, 101, 999, 1000, 1001]
    places: list[dict[str, Any]] = [{"lsn": lsn, "txId": 500 + lsn, "xmin": None} for lsn in lsns]
    for place, before in zip(places, [None, *lsns], strict=False):
        place["sequence"] = json.dumps([before and str(before), str(place["lsn"])], separators=(",", ":"))
    return history("opengauss", "postgresql", places, whole=True, schema="public", version="1.8.1.Final")


def cassandra() -> History:
    """Each cell by its time of writing; a delete wins against a write of the same time; replicas repeat each other."""
    events = History("cassandra", "cassandra", {"db": "NULL", "keyspace": "ks", "table": "cassandra"}, cells=True)

    def add(
        op: str, id: int, time: int, file: str = "CommitLog-7-1.log", snapshot: str = "false", **columns: Any
    ) -> None:
        after = {"id": id, "note": ..., "more": ..., **columns}
        source = {"ts_us": time, "file": file, "pos": 1, "snapshot": snapshot}
        events.add(op, id, None, after, key={"id": id}, source=source)

    add("i", 1, 99, note="first", more="first")
    add("u", 1, 1000, note="new")
    add("u", 1, 999, more="late")
    add("u", 1, 999, more="late", file="CommitLog-7-2.log")
    add("u", 1, 100, note="old")
    add("i", 2, 100, note="gone")
    add("d", 2, 1000, note=None, more=None)
    add("u", 2, 999, note="too late")
    add("i", 3, 100, note="gone", more="gone")
    add("d", 3, 200, note=None, more=None)
    add("u", 3, 300, note="again")
    add("u", 4, 500, note="at the same time")
    add("d", 4, 500, note=None, more=None)
    add("i", 5, 100, snapshot="true", note="set", more="set")
    add("u", 5, 101, more=None)
    return events


def flattened() -> History:
    """Rows without an envelope, of a PostgreSQL; the clock is that of `__source_ts_ms`."""
    events = History("flattened", "", {})
    for op, lsn, id, note in (
        ("r", 90, 1, "read"),
        ("u", 99, 1, "old"),
        ("c", 100, 2, "gone"),
        ("d", 101, 2, ""),
        ("u", 1000, 1, "new"),
        ("c", 1001, 3, "again"),
    ):
        deleted = "true" if op == "d" else "false"
        value = {
            "id": id,
            "note": note,
            "__op": op,
            "__lsn": lsn,
            "__deleted": deleted,
            "__source_ts_ms": 1700000000000 - lsn,
        }
        events.record(value, {"id": id})
    return events


def flink() -> list[History]:
    """Flink's own JSON, of two tables in one topic: no connector and no position, and no keys either."""
    tables = [History(name, "", {}) for name in ("carts", "lines")]
    for at, (op, before, after) in enumerate(
        [
            ("r", None, {"id": 4, "note": "read"}),
            ("c", None, {"id": 1, "note": "first"}),
            ("d", {"id": 1, "note": "first"}, None),  # Flink SQL writes an update as two records
            ("c", None, {"id": 1, "note": "new"}),
            ("c", None, {"id": 2, "note": "first"}),
            ("u", {"id": 2, "note": "first"}, {"id": 3, "note": "moved"}),  # Flink CDC as one, also of a key
        ]
    ):
        for number, events in enumerate(tables):
            events.record(
                {"before": before, "after": after, "op": op, "source": {"db": "d", "table": events.table}}, None
            )
            events.records[-1].update(topic="flink", offset=2 * at + number)
    return tables


FLINK_ROWS = [{"id": 1, "note": "new"}, {"id": 3, "note": "moved"}, {"id": 4, "note": "read"}]
EXPECTED: dict[str, tuple[History, Rows]] = {
    name: (events, rows)
    for name, events, rows in (
        ("sqlserver", sqlserver(), HISTORY_ROWS),
        ("rewritten", sqlserver_rewritten(), [{"id": 1, "note": "new"}, {"id": 3, "note": "new"}]),
        ("oracle", oracle(), HISTORY_ROWS),
        ("oracle_before_3", oracle_before_3(), HISTORY_ROWS),
        ("oracle_xstream", oracle_xstream(), HISTORY_ROWS),
        ("db2", db2(), HISTORY_ROWS),
        ("informix", informix(), HISTORY_ROWS),
        ("src_ibmi", ibmi(), HISTORY_ROWS),
        ("yashandb", yashandb(), HISTORY_ROWS),
        ("opengauss", opengauss(), HISTORY_ROWS),
        ("vitess", vitess(), HISTORY_ROWS[:2]),
        ("spanner", spanner(), HISTORY_ROWS[:2]),
        ("cockroachdb", cockroachdb(), HISTORY_ROWS[:2]),
        ("ticdc", ticdc(), [{"id": 1, "note": "new"}, {"id": 3, "note": "one"}]),
        (
            "yugabytedb",
            yugabytedb(),
            [{"id": 1, "note": "new", "more": "kept"}, {"id": 3, "note": "again", "more": None}],
        ),
        ("yboutput", yugabytedb_yboutput(), [{"id": 1, "note": "new", "more": "kept"}]),
        ("pgoutput", yugabytedb_pgoutput(), [{"id": 1, "note": "newer", "more": None}]),
        (
            "cassandra",
            cassandra(),
            [
                {"id": 1, "note": "new", "more": "late"},
                {"id": 3, "note": "again", "more": None},
                {"id": 5, "note": "set", "more": None},
            ],
        ),
        ("src_flattened", flattened(), HISTORY_ROWS[:2]),
    )
}
HAVE_OTHER_EXAMPLES = ("sqlserver", "rewritten", "oracle", "oracle_before_3", "oracle_xstream")


def sample_lines() -> str:
    """The events of the system `sources`, as JSON Lines."""
    histories = [events for name, (events, _) in EXPECTED.items() if name not in HAVE_OTHER_EXAMPLES] + flink()
    return "".join(json.dumps(record) + "\n" for events in histories for record in events.records)


NOTIFICATION = {
    "id": "f8e",
    "aggregate_type": "Initial Snapshot",
    "type": "COMPLETED",
    "additional_data": {},
    "timestamp": 1,
}


def ddl_without_statement(events: History) -> dict[str, Any]:
    """A schema change as SQL Server, Db2 and Informix tell it: the table as it is now, and no statement."""
    source = {
        "version": "3.4.0.Final",
        "connector": events.connector,
        "name": "src",
        "ts_ms": 1,
        "snapshot": "false",
    } | events.names
    change = {
        "type": "ALTER",
        "id": f'"d"."s"."{events.table}"',
        "table": {"primaryKeyColumnNames": ["id"], "columns": []},
    }
    return {"source": source, "ts_ms": 2, "databaseName": "d", "schemaName": "s", "ddl": None, "tableChanges": [change]}


def sent_with(events: History) -> list[Record]:
    """Records that are no rows, in the topic of the table."""
    return [
        {
            "topic": f"src.{events.table}",
            "partition": 0,
            "offset": 900 + offset,
            "key": None,
            "value": json.dumps(value),
        }
        for offset, value in enumerate((ddl_without_statement(events), {"payload": NOTIFICATION}))
    ]


if __name__ == "__main__":
    SAMPLE.write_text(sample_lines(), encoding="utf-8")
