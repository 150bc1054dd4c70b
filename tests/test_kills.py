"""The whole command, killed without warning at moments all over its run: Python, Spark and all."""

import itertools
import json
import os
import signal
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest
from test_properties import fold, groups, record, wrong
from test_server import Checkout

KILLS = int(os.environ.get("SOAK_KILLS", "3"))
READ = """
import json
from scripts.spark import session
rows, landed = "select * from shop.orders", "select count(*) as n from bronze.shop"
for query in (rows, landed, "select sum(events) as n from monitoring.shop__event_counts"):
    print("#" + json.dumps([row.asDict() for row in session().sql(query).collect()]))
"""


def test_a_command_killed_at_any_moment_leaves_no_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each killed run has new events to land and merge, and what the one before left undone."""
    checkout = Checkout(tmp_path)
    chance, offsets = Random(time.time_ns() if KILLS > 10 else 5), itertools.count(1)
    world = groups(chance, 40)
    world[0] = ([(1, "c", 0, {"a": "", "b": "", "n": 0}, "false")], [(0, 0)])  # tells the scaffold the columns
    arrivals = [(number, event) for number, (_, arrival) in enumerate(world) for event, _ in arrival]
    chance.shuffle(arrivals)
    arrivals.sort(key=lambda arrival: arrival[0] > 0)
    lines = [record("shop", "orders", number, world[number][0][event], next(offsets)) for number, event in arrivals]
    share = len(lines) // (KILLS + 2) + 1

    def append() -> None:
        with (tmp_path / "events.jsonl").open("a") as file:
            file.writelines(json.dumps(lines.pop(0)) + "\n" for _ in range(min(share, len(lines))))

    def start() -> Any:
        append()
        return checkout.start("setsid", sys.executable, "-m", "scripts.run")

    started = time.monotonic()
    told = "".join(start().communicate())
    took = time.monotonic() - started
    assert "live rows" in told, told
    moments = [took * (number + 0.5) / KILLS for number in range(KILLS)]
    for moment in moments:
        process = start()
        time.sleep(moment)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    total = sum(1 for _ in (tmp_path / "events.jsonl").open()) + len(lines)
    share = len(lines)
    told = "".join(start().communicate())
    assert "live rows" in told, told

    _, shown = checkout.run(sys.executable, "-c", READ)
    rows, landed, counted = (json.loads(line[1:]) for line in shown.splitlines() if line.startswith("#"))
    assert not wrong({row.pop("id"): row for row in rows}, world, [])
    assert len(rows) == sum(len(fold(history)) for history, _ in world)
    assert landed == counted == [{"n": total}]
    with capsys.disabled():
        print(f"\n{KILLS} kills within {took:.0f} s of a run, of {total} events; the {len(rows)} rows are the fold")
