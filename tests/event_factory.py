"""Debezium events of a PostgreSQL table, as brief as a story needs them, and the disorder that they may come in."""

import json
import random
from typing import Any

PLACEHOLDER = "__debezium_unavailable_value"


def event(
    op: str,
    lsn: int,
    row: dict[str, Any] | None = None,
    key: dict[str, Any] | None = None,
    table: str = "orders",
    offset: int | None = None,
    snapshot: str = "false",
    sequence: tuple[int | None, int] | None = None,
    prefix: str = "shop",
) -> dict[str, Any]:
    """A Kafka record with a schemaless envelope; the key is the row's `id` unless given."""
    if key is None and row is not None:
        key = {"id": row["id"]}
    source: dict[str, Any] = {
        "version": "3.5.0.Final",
        "connector": "postgresql",
        "name": prefix,
        "ts_ms": 1700000000000 + lsn,
        "snapshot": snapshot,
        "db": "shop",
        "sequence": None if sequence is None else json.dumps([None if n is None else str(n) for n in sequence]),
        "schema": "public",
        "table": table,
        "txId": 1,
        "lsn": lsn,
        "xmin": None,
    }
    value = {
        "before": key if op == "d" else None,
        "after": None if op in ("d", "t") else row,
        "source": source,
        "transaction": None,
        "op": op,
        "ts_ms": 1700000000001 + lsn,
    }
    return {
        "topic": f"{prefix}.public.{table}",
        "partition": 0,
        "offset": lsn if offset is None else offset,
        "timestamp": 1700000000000,
        "headers": [],
        "key": None if op == "t" else json.dumps(key),
        "value": json.dumps(value),
    }


def created(lsn: int, **row: Any) -> dict[str, Any]:
    return event("c", lsn, row)


def updated(lsn: int, **row: Any) -> dict[str, Any]:
    return event("u", lsn, row)


def deleted(lsn: int, **key: Any) -> dict[str, Any]:
    return event("d", lsn, None, key)


def truncated(lsn: int) -> dict[str, Any]:
    return event("t", lsn)


def of_mysql(record: dict[str, Any]) -> dict[str, Any]:
    """The record as MySQL's connector writes it: its positions are places in files, whose digits grow here."""
    value = json.loads(record["value"])
    lsn = value["source"].pop("lsn")
    place = {"connector": "mysql", "db": "public", "file": f"bin.{999_998 + lsn // 20}", "pos": 4 + lsn % 20, "row": 0}
    return {**record, "value": json.dumps({**value, "source": {**value["source"], **place}})}


def shuffled(records: list[dict[str, Any]], seed: int) -> list[list[dict[str, Any]]]:
    """The records and a redelivery of each topic's last ones, under later offsets, in any order and in two parts."""
    order = random.Random(seed)
    mixed = list(records)
    for topic in sorted({one["topic"] for one in records}):
        of_topic = [one for one in records if one["topic"] == topic]
        mixed += [{**one, "offset": one["offset"] + 1000} for one in of_topic[order.randrange(len(of_topic)) :]]
    order.shuffle(mixed)
    return [mixed[: len(mixed) // 2], mixed[len(mixed) // 2 :]]
