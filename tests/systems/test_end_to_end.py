"""Databases → Debezium → Kafka → loader → silver, while the connector is killed: in the end the tables hold the
databases' rows.
"""

import importlib
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from captures import differences
from conftest import REPOSITORY, Lakehouse
from kafka_broker import Broker

from scripts.kafka import Topics

# Database → a topic that is recreated, with more partitions, while the engine is down.
RECREATED = {"shop": "shop.public.orders", "billing": "billing.billing.invoices"}


@contextmanager
def timed(times: dict[str, float], what: str) -> Iterator[None]:
    before = time.monotonic()
    yield
    times[what] = times.get(what, 0) + time.monotonic() - before


@pytest.mark.parametrize("source", ["shop", pytest.param("billing", marks=pytest.mark.soak)])
def test_tables_hold_the_databases_rows(
    lakehouse: Lakehouse,
    broker: Broker,
    source: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Half of the topics, those of `shop`, have schema blocks; land and build while the engine is down, which is killed
    twice.

    The changes have all types, a schema change, and an incremental snapshot while its rows change.
    """
    monkeypatch.setattr(sys, "path", [*sys.path, str(REPOSITORY / "tests" / "capture")])
    capture: Any = importlib.import_module("capture")
    system = f"{source}_end_to_end"
    topics = Topics(broker.servers, rf"{source}([.].*)?")
    times: dict[str, float] = {}
    landed: list[Any] = []

    def run() -> None:
        with timed(times, "loader and dbt"):
            landed.append(lakehouse.land(system, topics))
            if len(landed) in (2, 4):  # for time; a build takes up all that has landed
                lakehouse.build_landed(system)
        if len(landed) == 1:
            broker.do("delete", RECREATED[source])
            broker.create(RECREATED[source], partitions=5)

    with tempfile.TemporaryDirectory(prefix=f"end-{source}-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o711)  # the servers have accounts of their own
        try:
            with timed(times, "all"):
                records, tables = capture.CAPTURES[source](Path(name), broker.servers, run)
        except capture.CaptureError as error:
            if os.environ.get("CI") or "is not installed" not in str(error):
                raise
            pytest.skip(str(error).replace("\n", " "))

    assert len(landed) == 4 and all(one.records and not one.lost for one in landed)
    emitted = Counter((record["topic"], record["key"], record["value"]) for record in records)
    in_bronze = Counter(lakehouse.sql(f"select topic, key, value from bronze.{system}"))
    assert not emitted - in_bronze
    assert (in_bronze - emitted).total() <= 4, (
        "the engine sends a record before it writes it down, and was stopped four times"
    )
    assert sum(one.records for one in landed) == in_bronze.total() and capture.redelivered(records) > 0
    assert any("recreated" in note for one in landed for note in one.notes)
    assert differences(lakehouse, tables, system) == []
    times["databases and Debezium"] = times["all"] - times["loader and dbt"]
    with capsys.disabled():
        print(
            f"\n{system}: {len(records)} records, {len(tables)} tables; "
            + ", ".join(f"{k} {v:.0f} s" for k, v in times.items())
        )
