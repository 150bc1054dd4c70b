"""The records that a run looks at, one of each shape, tell what all records tell, but the types of values without a
schema block.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY

TESTS = REPOSITORY / "tests"
TOLD = ("topics", "kinds", "servers", "source_tables", "tells_deletes", "comments", "signed")
COLUMNS = "topic string, partition int, offset bigint, key string, value string, batch bigint, file string, line bigint"


def told(events: list[Any], connector: str | None) -> Any:
    """What the scaffold knows of the tables of some events; or why it refuses them."""
    from scripts.errors import LakehouseError
    from scripts.tables_seen import _tables

    ddl: dict[Any, list[dict[str, Any]]] = {}
    try:
        tables = _tables(events, connector, "system", {}, ddl)
    except LakehouseError as error:
        return str(error)
    known = {}
    for table in tables:
        keys = sorted(map(sorted, table.message_keys))
        known[table.identity] = [getattr(table, name) for name in TOLD] + [set(table.columns), keys, set(table.schemas)]
    newest = {(name, table["topic"]): table for name, changes in ddl.items() for table in changes}
    return known, newest


def test_one_record_of_each_shape_tells_what_all_tell(
    workbench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from adapter import Landing

    from scripts import observe

    monkeypatch.setattr(observe, "SAMPLE_ROWS", 0)
    landing, rows = Landing(tmp_path), []
    expected: dict[str, Any] = {}
    for path in sorted([*(TESTS / "cases").rglob("*.json"), *(TESTS / "events").glob("*.jsonl")]):
        connector: str | None = None
        records: Any = path
        if path.suffix == ".json":
            steps = json.loads(path.read_text("utf-8"))["steps"]
            connector = next((step["connector"] for step in steps if "connector" in step), None)
            records = [event for step in steps for event in step["events"]]
        landed = [one for one in landing.land(path.stem, records) if one.topic is not None and one.value is not None]
        landed = observe.in_order(landed)
        events = [observe.Event(one.topic, str(one.value), one.key, one.offset) for one in landed]
        expected[path.stem] = connector, told(events, connector)
        for one in landed:
            place = (f"{path.stem}/{one.topic}", one.partition, one.offset)
            rows.append((*place, one.key, one.value, one.batch, one.file, one.line))
    found: dict[str, list[Any]] = {}
    for event in observe.sample_of(workbench.spark.createDataFrame(rows, COLUMNS)):
        name, _, topic = str(event.topic).partition("/")
        found.setdefault(name, []).append(event._replace(topic=topic))
    for name, (connector, of_all) in expected.items():
        assert told(found.get(name, []), connector) == of_all, name
    assert sum(map(len, found.values())) < len(rows) / 2


def test_what_is_looked_at_for_types_is_a_number_of_bytes_whatever_the_size_of_a_record(
    workbench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from scripts import observe

    monkeypatch.setattr(observe, "SAMPLE_BYTES", 300_000)
    text = {"large": "x" * 4000, "small": "x"}
    rows = [
        (topic, 0, number, None, json.dumps({"op": "c", "after": {"id": number, "note": note}}), 1, None, None)
        for topic, note in text.items()
        for number in range(1000)
    ]
    found = observe.sample_of(workbench.spark.createDataFrame(rows, COLUMNS))
    sizes = {topic: sum(len(event.value) for event in found if event.topic == topic) for topic in text}
    assert 120_000 < sizes["large"] < 360_000, "what the other one leaves"
    assert sum(event.topic == "small" for event in found) == 1000, "all of what is small"


ROW, BLOCK = {"op": "c", "after": {"id": 1}}, {"type": "struct", "fields": [{"field": "after"}]}
WITHOUT_BLOCK: list[tuple[Any, bool]] = [
    ({"schema": BLOCK, "payload": ROW}, False),
    ({"payload": ROW, "schema": BLOCK}, False),
    (ROW, True),
    ({"schema": {}, "payload": {"op": "d", "before": {"id": 1}, "after": None}}, True),
    ({"id": 1, "__op": "c"}, True),
    ({"schema": None, "payload": {"id": 1}}, True),
    ({"schema": None, "payload": None}, False),
    ({"ts_ms": 1}, False),
    ({"status": "BEGIN", "id": "1", "ts_ms": 1}, False),
    ({"source": {}, "ddl": "drop table t", "tableChanges": []}, False),
    *((text, False) for text in (None, "", " ", "{x")),
]


def test_rows_without_a_schema_block_are_told_from_what_is_no_row(workbench: Any) -> None:
    from types import SimpleNamespace

    from adapter import Records

    from scripts.observe import Bronze

    values = [json.dumps(value) if isinstance(value, dict) else value for value, _ in WITHOUT_BLOCK]
    rows = [SimpleNamespace(topic=str(number), value=value) for number, value in enumerate(values)]
    bronze, double = Bronze(workbench.spark, "one"), Records("one", rows)  # type: ignore[arg-type]
    bronze._name = "values_of_topics"
    frame = workbench.spark.createDataFrame([(row.topic, row.value) for row in rows], "topic string, value string")
    frame.createOrReplaceTempView(bronze._name)
    for number, (value, has_row) in enumerate(WITHOUT_BLOCK):
        found = [one.has_rows_without_schema({str(number)}) for one in (bronze, double)]
        assert found == [has_row, has_row], value
    workbench.spark.catalog.dropTempView(bronze._name)
