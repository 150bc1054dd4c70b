"""The promise as a property: silver is the fold of the distinct events, whatever their order, splits and repeats.

Many random histories share one table (or a few), so that a run of dbt checks all of them at once. The first example that
hypothesis draws is the simplest there is; the others are random.
"""

import itertools
import json
from typing import Any

from conftest import Lakehouse
from event_factory import PLACEHOLDER, event
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

HISTORIES = 150
RUNS = 4
COLUMNS = ("a", "b", "n")
SYSTEMS = itertools.count()

Event = tuple[int, str, dict[str, Any] | None, str]  # lsn, op, row without key, snapshot mark


@st.composite
def histories(draw: st.DrawFn, truncates: bool = False) -> list[Event]:
    """Events of one key (or of the whole table: `t`) at growing positions; they need not make sense together."""
    found: list[Event] = []
    for lsn in range(1, draw(st.integers(1, 6)) + 1):
        op = draw(st.sampled_from("cuuuudr" + ("t" if truncates else "")))
        row = None
        if op in "cur":
            row = {"a": f"a{lsn}", "b": draw(st.sampled_from([None, f"b{lsn}"])), "n": lsn}
            for name in draw(st.sets(st.sampled_from(["a", "b"]))) if op == "u" else ():
                row[name] = PLACEHOLDER
        found.append((lsn * 10, op, row, "true" if op == "r" else "false"))
        if op in "cu" and draw(st.booleans()):
            snapshot = {"a": "snapshot", "b": "snapshot", "n": 0}
            found.append((lsn * 10, "r", snapshot, "true"))  # at the position of a change: loses to it
    return found


@st.composite
def arrivals(draw: st.DrawFn, events: int) -> list[tuple[int, int]]:
    """(number of the event, run that lands it), some twice, in the order of arrival."""
    numbers = list(range(events)) + draw(st.lists(st.integers(0, events - 1), max_size=3))
    return [(number, draw(st.integers(0, RUNS - 1))) for number in draw(st.permutations(numbers))]


@st.composite
def worlds(draw: st.DrawFn, count: int, truncates: bool) -> list[tuple[list[Event], list[tuple[int, int]]]]:
    found = []
    for _ in range(count):
        history = draw(histories(truncates))
        found.append((history, draw(arrivals(len(history)))))
    return found


def fold(history: list[Event]) -> dict[str, Any] | None:
    """The row that a history leaves: per column the newest write, nothing after a delete or a truncate."""
    row: dict[str, Any] | None = None
    for _, op, image, _ in sorted(history, key=lambda e: (e[0], e[3] == "false")):
        if op in "dt":
            row = None
            values: dict[str, Any] = dict.fromkeys(COLUMNS)
        else:
            assert image is not None
            old = row if row is not None else dict.fromkeys(COLUMNS)
            values = {name: old[name] if image[name] == PLACEHOLDER else image[name] for name in COLUMNS}
            row = values
    return row


def record(system: str, table: str, key: int, item: Event, offset: int) -> dict[str, Any]:
    lsn, op, row, snapshot = item
    image = None if row is None else {"id": key, **row}
    made = event(op, lsn, image, {"id": key}, table, offset, snapshot, prefix=system)
    if op == "t":
        made["key"] = None
    return made


def land_and_build(lakehouse: Lakehouse, system: str, runs: dict[int, list[dict[str, Any]]]) -> None:
    for number in range(RUNS):
        if runs.get(number):
            lakehouse.run(system, runs[number], keys={})


@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck), print_blob=True, derandomize=True)
@given(world=worlds(HISTORIES, truncates=False))
def test_any_history_gives_the_fold(lakehouse: Lakehouse, world: Any) -> None:
    system = f"any_history_{next(SYSTEMS)}"
    offsets = itertools.count(1)
    full = {"a": "", "b": "", "n": 0}
    runs = {0: [record(system, "orders", -1, (1, "c", full, "false"), 0)]}
    for key, (history, arrival) in enumerate(world):
        for number, run in arrival:
            runs.setdefault(run, []).append(record(system, "orders", key, history[number], next(offsets)))
    land_and_build(lakehouse, system, runs)

    wanted = {key: row for key, (history, _) in enumerate(world) if (row := fold(history)) is not None}
    wanted[-1] = full
    found = {row.pop("id"): row for row in lakehouse.rows(f"{system}.orders")}
    assert found == wanted
    landed = sum(len(records) for records in runs.values())
    assert lakehouse.sql(f"select sum(events) from monitoring.{system}__event_counts") == [(landed,)]


@settings(max_examples=2, deadline=None, suppress_health_check=list(HealthCheck), print_blob=True, derandomize=True)
@given(data=st.data())
def test_any_table_history_with_truncates_gives_the_fold(lakehouse: Lakehouse, data: st.DataObject) -> None:
    system = f"any_table_{next(SYSTEMS)}"
    offsets = itertools.count(1)
    tables = [f"t{number}" for number in range(6)]
    runs: dict[int, list[dict[str, Any]]] = {}
    wanted: dict[str, dict[int, dict[str, Any]]] = {}
    for table in tables:
        runs.setdefault(0, []).append(record(system, table, -1, (1, "c", {"a": "", "b": "", "n": 0}, "false"), 0))
        histories_of_keys = [data.draw(histories()) for _ in range(4)]
        truncates: list[Event] = [(lsn * 10 + 5, "t", None, "false") for lsn in data.draw(st.sets(st.integers(1, 6), max_size=2))]
        wanted[table] = {}
        first: list[Event] = [(1, "c", {"a": "", "b": "", "n": 0}, "false")]
        for key, history in enumerate([first, *histories_of_keys], start=-1):
            row = fold(history + truncates)
            if row is not None:
                wanted[table][key] = row
            if key >= 0:
                for number, run in data.draw(arrivals(len(history))):
                    runs.setdefault(run, []).append(record(system, table, key, history[number], next(offsets)))
        for item in truncates:
            runs.setdefault(data.draw(st.integers(0, RUNS - 1)), []).append(record(system, table, 0, item, next(offsets)))
    land_and_build(lakehouse, system, runs)

    for table in tables:
        assert {row.pop("id"): row for row in lakehouse.rows(f"{system}.{table}")} == wanted[table], table
    models = [f"{system}__{table}" for table in tables]
    assert lakehouse.dbt("run", "--full-refresh", "--select", *models).success
    for table in tables:
        assert {row.pop("id"): row for row in lakehouse.rows(f"{system}.{table}")} == wanted[table], table


def test_the_fold_itself() -> None:
    history: list[Event] = [
        (10, "c", {"a": "old", "b": "old", "n": 1}, "false"),
        (20, "d", None, "false"),
        (30, "u", {"a": PLACEHOLDER, "b": "new", "n": 2}, "false"),
    ]
    assert fold(history) == {"a": None, "b": "new", "n": 2}
    assert fold(history[:2]) is None
    assert json.loads(record("s", "t", 1, history[1], 0)["value"])["before"] == {"id": 1}
