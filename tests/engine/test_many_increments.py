"""A thousand increments of one table, with `make maintain` after each hundred: the table is the fold, and what an
increment costs at the end is printed beside what it cost at the beginning, if this test has a JVM of its own:

    SOAK_INCREMENTS=1000 .venv/bin/python -m pytest -m soak tests/engine/test_many_increments.py
"""

import os
import statistics
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import Lakehouse
from event_factory import updated

INCREMENTS = int(os.environ.get("SOAK_INCREMENTS") or "1000")
DAYS = int(os.environ.get("SNAPSHOT_DAYS") or "0")
SYSTEM = "lasting"
WARM = slice(105, 125)  # the JVM still compiles the hundred before


def processor_seconds() -> float:
    """What this process and its JVM have used; 0 if other processes share the JVM."""
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway
    if gateway.proc is None:
        return 0
    used = time.process_time()
    for pid in os.listdir("/proc"):
        try:
            parts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() if pid.isdigit() else []
        except OSError:  # it has ended meanwhile
            continue
        if parts and gateway.proc.pid in (int(pid), int(parts[1])):
            used += (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")
    return used


@pytest.mark.soak
def test_increments_are_the_fold_however_many_there_are(
    lakehouse: Lakehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    from scripts.maintain import maintain

    spent: list[float] = []
    said: list[str] = []
    for number in range(1, INCREMENTS + 1):
        before = processor_seconds()
        changes = [updated(number * 100 + key, id=key % 50, note=f"{number}") for key in range(number, number + 10)]
        lakehouse.run(SYSTEM, changes)
        spent.append(processor_seconds() - before)
        if number % 100 == 0:
            maintain(lakehouse.spark, SYSTEM, DAYS, said.append)
            with capsys.disabled():
                print(f"\n{number}: {statistics.median(spent[-20:]):.2f} processor s, {said[-1]}", flush=True)
    newest = {key % 50: number for number in range(1, INCREMENTS + 1) for key in range(number, number + 10)}
    rows = lakehouse.sql(f"select id, note from silver.{SYSTEM}__orders order by id")
    assert rows == sorted((key, f"{number}") for key, number in newest.items())
    # Only the newest appends are compared again for resets of the log: else each increment reads the files of all.
    properties = dict(lakehouse.sql(f"show tblproperties staging.stg_{SYSTEM}__orders"))
    assert int(properties["cdc.compared"].split()[0]) >= INCREMENTS - 10
    if any(spent[WARM]):
        first, last = statistics.median(spent[WARM]), statistics.median(spent[-20:])
        with capsys.disabled():
            print(f"increments 106 to 125: {first:.2f} processor s, the last 20: {last:.2f}, {last / first:.2f} times")
