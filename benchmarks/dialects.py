"""What the events of a dialect cost, as a ratio to PostgreSQL's: landed, typed, merged, in one warm process.

    python benchmarks/dialects.py [--events 50000] [--runs 3] [--work DIR] [NAME ...]

Each dialect writes the same changes of one table of ten columns, without a schema block, in events of about the same
size. Its first 200 events make the models; the rest are timed. Printed are the seconds of every run, their medians, and
the ratios of the medians. HBase mode has columns of bytes only, MongoDB documents of extended JSON; `mongodb_updates`
tells updates by what they set.
"""

import argparse
import io
import json
import os
import shutil
import statistics
import sys
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from random import Random
from typing import Any

from bench import REPOSITORY, Project

Row = dict[str, Any]
Change = tuple[int, str, int, Row | None, Row | None]  # its number, op, key, row before and after
FIRST = 200
START_MS = 1_750_000_000_000
TABLE_NAMES: dict[str, Any] = {"db": "d", "schema": "s", "table": "t"}


def changes(count: int) -> Iterator[Change]:
    """Creates, updates and some deletes of a quarter as many keys."""
    chance = Random(1)
    rows: dict[int, Row] = {}
    for number in range(1, count + 1):
        id = chance.randrange(count // 4)
        before = rows.get(id)
        if before and chance.random() < 0.1:
            del rows[id]
            yield number, "d", id, before, None
            continue
        rows[id] = {
            "id": id,
            "name": f"name {chance.randrange(1000)}",
            "amount": chance.randrange(10**6) / 100 + 0.001,
            "quantity": chance.randrange(1000),
            "is_active": chance.random() < 0.7,
            "weight": chance.randrange(10**5) / 10 + 0.01,
            "changed_at": START_MS * 1000 + number,
            "created_at": "2025-06-15T15:06:40Z",
            "code": f"{chance.getrandbits(64):016x}",
            "note": "λ 'quoted' text of some length, " * chance.randrange(1, 8),
        }
        yield number, "u" if before else "c", id, before, rows[id]


def rows_after(number: int, count: int) -> int:
    """How many rows are left after so many of the changes."""
    left = {id: after is not None for at, _, id, _, after in changes(count) if at <= number}
    return sum(left.values())


def envelope(
    connector: str, place: Callable[[int], Row], image: Callable[[Row], Row] = dict, **names: Any
) -> Callable[[Change], Row]:
    def made(change: Change) -> Row:
        number, op, _, before, after = change
        source = {
            "version": "3.5.0.Final",
            "connector": connector,
            "name": "b",
            "ts_ms": START_MS + number,
            "snapshot": "false",
        }
        images = {"before": before and image(before), "after": after and image(after)}
        return {**images, "source": {**source, **names, **place(number)}, "op": op, "ts_ms": START_MS + number + 50}

    return made


def cells(row: Row) -> Row:
    return {name: {"value": value, "set": True} for name, value in row.items()}


def vitess(change: Change) -> Row:
    made = envelope("vitess", lambda n: {"shard": "-80"}, keyspace="k", table="t", db="")(change)
    return {
        **made,
        "transaction": {"id": "[]", "transaction_epoch": 0, "transaction_rank": str(change[0]), "total_order": 1},
    }


def cockroachdb(change: Change) -> Row:
    number, op, id, _, after = change
    names = {
        "origin": "cockroachdb",
        "database_name": "d",
        "schema_name": "public",
        "table_name": "t",
        "primary_keys": ["id"],
    }
    source = {**names, "mvcc_timestamp": f"{START_MS + number}000000.0000000000", "ts_ns": 5}
    return {"payload": {"op": op, "after": after, "key": {"id": id}, "source": source, "ts_ns": 5}}


def mongodb(change: Change) -> Row:
    def document(row: Row | None) -> str | None:
        return (
            None
            if row is None
            else json.dumps({"_id": {"$numberLong": str(row["id"])}, **{k: v for k, v in row.items() if k != "id"}})
        )

    number, op, _, before, after = change
    source = {
        "version": "2.7.4.Final",
        "connector": "mongodb",
        "name": "b",
        "ts_ms": START_MS + number,
        "snapshot": "false",
    }
    source |= {"db": "d", "collection": "t", "ord": 1}
    return {
        "before": document(before),
        "after": document(after),
        "updateDescription": None,
        "source": source,
        "op": op,
        "ts_ms": 5,
    }


def mongodb_updates(change: Change) -> Row:
    """As MongoDB's without `capture.mode=change_streams_update_full`: an update tells what it set."""
    made, (_, op, _, before, after) = mongodb(change), change
    if op != "u" or before is None or after is None:
        return made
    fields = {name: value for name, value in after.items() if value != before[name]}
    told = {"removedFields": None, "updatedFields": json.dumps(fields), "truncatedArrays": None}
    return {**made, "before": None, "after": None, "updateDescription": told}


def huawei_cdl(change: Change) -> Row:
    number, op, id, before, after = change
    return {
        "DATA_STORE": "POSTGRESQL",
        "SEG_OWNER": "s",
        "TABLE_NAME": "t",
        "TIMESTAMP": START_MS + number,
        "OPERATION": {"c": "INSERT", "u": "UPDATE", "d": "DELETE"}[op],
        "LOB_COLUMNS": None,
        "transaction": {"properties": [{"name": "txId", "value": number}, {"name": "lsn", "value": number}]},
        "unique": {"id": id},
        "data": after,
        "before": before,
        "message_version": "1.0",
        "message_type": "0",
        "HEARTBEAT_IDENTIFIER": None,
    }


def huawei_cdl_debezium(change: Change) -> Row:
    made = envelope("postgresql", lambda n: {"lsn": n, "txId": n}, **TABLE_NAMES)(change)
    further = {"message_version": "2.0", "message_type": "0", "LOB_COLUMNS": None, "HEARTBEAT_IDENTIFIER": None}
    return {**made, **further, "unique": {"id": change[2]}}


def lindorm(version: str, image: Callable[[Row], Row]) -> Callable[[Change], Row]:
    def made(change: Change) -> Row:
        number, op, _, before, after = change
        source = {"version": version, "db": "d", "namespace": "n", "table": "t", "ts_ms": START_MS + number}
        images = {"before": before and image(before), "after": after and image(after)}
        return {"op": op, "ts_ms": START_MS + number, **images, "source": source}

    return made


def of_bytes(row: Row) -> Row:
    texts = {"ROW" if name == "id" else f"f_{name}": str(value) for name, value in row.items()}
    return {name: b64encode(text.encode()).decode() for name, text in texts.items()}


def flattened(change: Change) -> Row:
    number, op, _, before, after = change
    row = after or before or {}
    return {
        **row,
        "__op": op,
        "__deleted": "true" if op == "d" else "false",
        "__lsn": number,
        "__source_ts_ms": START_MS + number,
    }


def lsn(number: int) -> str:
    return f"0000002e:{number:08x}:0001"


DIALECTS: dict[str, Callable[[Change], Row]] = {
    "postgresql": envelope(
        "postgresql", lambda n: {"lsn": n, "sequence": f'["{n - 1}","{n}"]', "txId": n}, **TABLE_NAMES
    ),
    "mysql": envelope(
        "mysql", lambda n: {"file": "binlog.000009", "pos": n, "row": 0, "gtid": None}, db="d", table="t"
    ),
    "sqlserver": envelope(
        "sqlserver", lambda n: {"commit_lsn": lsn(n), "change_lsn": lsn(n), "event_serial_no": 1}, **TABLE_NAMES
    ),
    "oracle": envelope(
        "oracle", lambda n: {"scn": str(n), "commit_scn": str(n), "txSeq": 1, "txId": "05"}, **TABLE_NAMES
    ),
    "db2": envelope("db2", lambda n: {"commit_lsn": f"00000000:0000150f:{n:016x}", "change_lsn": None}, **TABLE_NAMES),
    "informix": envelope("informix", lambda n: {"commit_lsn": str(n), "change_lsn": str(n)}, **TABLE_NAMES),
    "ibmi": envelope("ibmi", lambda n: {"receiver": "QSQJRN0009", "sequence": str(n)}, db="d"),
    "yashandb": envelope(
        "yashandb",
        lambda n: {"position_scn": n, "group_lsn": n, "group_offset": 0, "batch_row_id": 0, "txId": "7"},
        db="",
        schema="s",
        table="t",
    ),
    "vitess": vitess,
    "spanner": envelope(
        "spanner",
        lambda n: {"ts_ns": n, "sequence": "1", "mod_number": 0, "value_capture_type": "NEW_ROW"},
        db="d",
        table="t",
    ),
    "cassandra": envelope(
        "cassandra",
        lambda n: {"ts_us": n, "file": "CommitLog-7-1.log", "pos": 1},
        cells,
        db="NULL",
        keyspace="k",
        table="t",
    ),
    "cockroachdb": cockroachdb,
    "ticdc": envelope(
        "TiCDC", lambda n: {"commit_ts": n, "pos": 0, "row": 0, "cluster_id": "default"}, db="d", table="t"
    ),
    "yugabytedb": envelope("yugabytedb", lambda n: {"commit_time": n, "lsn": f"1:{n}::0:0"}, cells, **TABLE_NAMES),
    "yugabytedb_yboutput": envelope("YugabyteDB", lambda n: {"lsn": n, "sequence": None}, cells, **TABLE_NAMES),
    "yugabytedb_pgoutput": envelope("YugabyteDB", lambda n: {"lsn": n, "sequence": None}, **TABLE_NAMES),
    "tencent": envelope("postgresql", lambda n: {"lsn": n, "sequence": f'["{n - 1}","{n}"]'}, **TABLE_NAMES),
    "huawei_cdl": huawei_cdl,
    "huawei_cdl_debezium": huawei_cdl_debezium,
    "lindorm_sql": lindorm("v1.0", dict),
    "lindorm_hbase": lindorm("v2.0", of_bytes),
    "flattened": flattened,
    "generic": envelope("", lambda n: {}, db="d", table="t"),
    "mongodb": mongodb,
    "mongodb_updates": mongodb_updates,
}


def key_of(dialect: str, id: int) -> Row:
    if dialect.startswith("mongodb"):
        return {"id": json.dumps({"$numberLong": str(id)})}
    return {"id": {"value": id} if dialect == "yugabytedb" else str(id) if dialect == "tencent" else id}


def write(folder: Path, dialect: str, count: int) -> int:
    """The events of a dialect: the first ones in one file, the rest in another. Returns the mean bytes of a value."""
    folder.mkdir(parents=True, exist_ok=True)
    total = 0
    with (
        (folder / "first.jsonl").open("w", encoding="utf-8") as first,
        (folder / "rest.jsonl").open("w", encoding="utf-8") as rest,
    ):
        for change in changes(count):
            value = json.dumps(DIALECTS[dialect](change), ensure_ascii=False)
            total += len(value.encode())
            key = None if dialect.startswith("lindorm") else json.dumps(key_of(dialect, change[2]))
            record = {
                "topic": "b.s.t",
                "partition": 0,
                "offset": change[0],
                "timestamp": START_MS,
                "key": key,
                "value": value,
            }
            (first if change[0] <= FIRST else rest).write(json.dumps(record, ensure_ascii=False) + "\n")
    return total // count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(DIALECTS))
    parser.add_argument("--events", type=int, default=50_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--work", type=Path, default=REPOSITORY / "target" / "bench")
    options = parser.parse_args()
    if unknown := set(options.names) - set(DIALECTS):
        parser.error(f"there is no {', '.join(sorted(unknown))}; expected some of {', '.join(DIALECTS)}")
    work: Path = options.work.resolve()
    project = Project(REPOSITORY, work / "dialects")
    os.environ.update(project.environment)
    os.chdir(project.folder)

    sys.path.insert(0, str(REPOSITORY))
    from scripts import run  # which finds the project by the environment

    def took(system: str, dialect: str, events: Path) -> float:
        os.environ.update(SYSTEM=system, EVENTS=str(events), KEYS="t=id" if dialect == "lindorm_sql" else "")
        start, told = time.monotonic(), io.StringIO()
        with redirect_stdout(told):
            status = run.main()
        elapsed = time.monotonic() - start
        lines = [line.split() for line in told.getvalue().splitlines()]
        rejected_and_live = [fields[7:9] for fields in lines if fields[1:] and fields[1].startswith(f"{system}.")]
        if status or rejected_and_live != [["0", f"{live[events.stem]:,}"]]:
            raise SystemExit(f"{dialect}: {told.getvalue()}")
        return elapsed

    live = {"first": rows_after(FIRST, options.events), "rest": rows_after(options.events, options.events)}
    sizes = {
        name: write(work / f"dialect-{name}", name, options.events)
        for name in dict.fromkeys(["postgresql", *options.names])
    }
    seconds: dict[str, list[float]] = {name: [] for name in sizes}
    for number in range(options.runs + 1):
        turn = number * len(sizes) // (options.runs + 1)  # the lakehouse grows: none is always first
        order = [*sizes][turn:] + [*sizes][:turn]
        for name in order if number else ["postgresql"]:  # the first of all is slower, and does not count
            took(f"{name}{number}", name, work / f"dialect-{name}" / "first.jsonl")
            elapsed = took(f"{name}{number}", name, work / f"dialect-{name}" / "rest.jsonl")
            if number:
                seconds[name].append(elapsed)
                print(f"{name:20} {elapsed:6.2f} s", flush=True)
            for folder in (project.folder / "models").iterdir():
                shutil.rmtree(folder)
    base = statistics.median(seconds["postgresql"])
    for name, size in sizes.items():
        median = statistics.median(seconds[name])
        print(f"{name:20} {size:5} bytes an event, {median:6.2f} s, {median / base:.2f} x PostgreSQL")


if __name__ == "__main__":
    main()
