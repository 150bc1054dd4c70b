"""The promise as a property of the merge: any order, any split into landings, duplicates, and landings that come again.

Crashes, compaction and full refreshes need dbt: tests/stories/test_worlds.py.
"""

import itertools
from random import Random
from typing import Any

import pytest
from event_factory import PLACEHOLDER
from hypothesis import given
from hypothesis import strategies as st
from worlds import (
    GROUPS,
    KEYS,
    RUNS,
    SYSTEMS,
    WORLDS,
    Event,
    Group,
    by_id,
    fold,
    groups,
    of_transaction,
    record,
    transactions_that_pass_keys_on,
    worlds,
    wrong,
)


def live_through(tables: Any, system: str, runs: list[list[dict[str, Any]]], again: int) -> None:
    """Land and build each part; the part of number `again` lands twice, and a build with nothing new follows it."""
    for number, records in enumerate(runs):
        tables.land(system, records)
        tables.build(system)
        if number == again:
            tables.land(system, records)
            tables.build(system)


@pytest.mark.parametrize("connector", ["postgresql", "mysql"])
@worlds((WORLDS + 1) // 2)
@given(chance=st.randoms(use_true_random=True))
def test_any_history_gives_the_fold(tables: Any, chance: Random, connector: str) -> None:
    system, world = f"any_history_{next(SYSTEMS)}", groups(chance, GROUPS, connector)
    world[0] = ([(1, "c", 0, {"a": "", "b": "", "n": 0}, "false")], [(0, 0)])  # tells the scaffold the columns
    offsets = itertools.count(1)
    runs: list[list[dict[str, Any]]] = [[] for _ in range(RUNS)]
    for number, (history, arrival) in enumerate(world):
        for event_number, run in arrival:
            runs[run].append(record(system, "orders", number, history[event_number], next(offsets), connector))
    lsn = chance.choice([15, 25])  # of a truncate that lands after changes from before and after it
    truncate: Event = (lsn, "t", 0, None, "false")
    chance.choice(runs[2:]).append(record(system, "orders", 0, truncate, next(offsets), connector))
    live_through(tables, system, runs, chance.randrange(RUNS))

    found = by_id(tables.rows(system, "orders"))
    assert not wrong(found, world, [lsn])
    assert set(found) <= set(range(GROUPS * KEYS))


@worlds(1)
@given(chance=st.randoms(use_true_random=True))
def test_runs_of_whole_rows_before_and_after_values_that_were_left_out_give_the_fold(
    tables: Any, chance: Random
) -> None:
    """A MERGE of whole rows, which reads keys and positions only, takes turns with the one that decides each column."""
    system, world = f"whole_history_{next(SYSTEMS)}", groups(chance, GROUPS)
    world[0] = ([(1, "c", 0, {"a": "", "b": "", "n": 0}, "false")], [(0, 0)])
    offsets = itertools.count(1)
    runs: list[list[dict[str, Any]]] = [[] for _ in range(5)]
    for number, (history, _) in enumerate(world):
        for change in history:
            is_partial, is_late = PLACEHOLDER in (change[3] or {}).values(), change[0] >= 35
            # Run 3 lies above all that was merged before it; 2 and 4 bring whole rows from below.
            run = (
                (4 if is_partial else chance.choice([3, 4]))
                if is_late
                else 1
                if is_partial
                else chance.choice([0, 2, 4])
            )
            runs[run].append(record(system, "orders", number, change, next(offsets)))
    for records in runs:
        tables.land(system, records)
        tables.build(system)
    assert not wrong(by_id(tables.rows(system, "orders")), world, [])
    log = tables.spark.table(f"staging.stg_{system}__orders")
    assert log.count() == sum(map(len, runs)), "a record stands twice in the change log"


@worlds(max(1, WORLDS // 3))
@given(chance=st.randoms(use_true_random=True))
def test_keys_that_rows_pass_on_in_one_statement_have_the_rows_of_the_source(tables: Any, chance: Random) -> None:
    """Transactions land in any order, in parts, and again; the parts of one in their order, as a topic has them."""
    system, offsets, count = f"passed_on_{next(SYSTEMS)}", itertools.count(1), min(GROUPS, 200)
    runs: list[list[dict[str, Any]]] = [[] for _ in range(RUNS)]
    expected: dict[int, dict[str, Any]] = {}
    histories: list[list[tuple[Event, list[int]]]] = []  # each event with the runs that land it
    truncated_after = chance.choice([1, 2, 3, None])
    for group in range(count):
        transactions, rows = transactions_that_pass_keys_on(chance, truncated_after)
        expected |= {group * KEYS + key: row for key, row in rows.items()}
        histories.append([])
        for number, events in enumerate(transactions):
            for item, run in zip(events, sorted(chance.choices(range(RUNS), k=len(events))), strict=True):
                landed_by = [run] + [chance.randrange(run, RUNS)] * (chance.random() < 0.1)
                histories[-1].append((item, landed_by))
                for lands in landed_by:
                    runs[lands].append(of_transaction(system, group, item, number, next(offsets)))
    if truncated_after:
        truncate: Event = (1000 * truncated_after + 500, "t", 0, None, "false")
        runs[chance.randrange(RUNS)].append(of_transaction(system, 0, truncate, truncated_after + 0.5, next(offsets)))
    for records in runs:
        chance.shuffle(records)
    tables.write_history(system, "orders")
    live_through(tables, system, runs, chance.randrange(RUNS))

    def compared() -> list[dict[str, Any]]:
        found = by_id(tables.rows(system, "orders"))
        assert by_id(tables.current(system, "orders")) == found, "the current versions are not the live rows"
        wrong = {key // KEYS for key in found.keys() | expected.keys() if found.get(key) != expected.get(key)}
        told = [f"{histories[group]}: {[found.get(group * KEYS + key) for key in range(KEYS)]}" for group in wrong]
        assert not told, f"truncated after {truncated_after}, {min(told, key=len)}"
        return [{**row, "_cdc_moves": None} for row in tables.silver(system, "orders")]

    merged = compared()
    tables.build(system, full_refresh=True)
    different = [pair for pair in zip(merged, compared(), strict=True) if pair[0] != pair[1]]
    assert not different, (len(different), different[0])


@worlds(max(1, WORLDS // 3))
@given(chance=st.randoms(use_true_random=True), of_first=st.sampled_from(["postgresql", "mysql"]))
def test_any_table_history_with_truncates_gives_the_fold(tables: Any, chance: Random, of_first: str) -> None:
    """Every other table is of the other connector."""
    system, offsets = f"any_table_{next(SYSTEMS)}", itertools.count(1)
    runs: list[list[dict[str, Any]]] = [[] for _ in range(RUNS)]
    expected: dict[str, tuple[list[Group], list[int]]] = {}
    for table_number in range(4):
        table, connector = (
            f"t{table_number}",
            "mysql" if (of_first == "mysql") != bool(table_number % 2) else "postgresql",
        )
        world = groups(chance, 20, connector)
        truncates = [number * 10 + 5 for number in chance.sample(range(1, 7), chance.randint(0, 2))]
        world[0] = ([(1, "c", 0, {"a": "", "b": "", "n": 0}, "false")], [(0, 0)])
        expected[table] = world, truncates
        for number, (history, arrival) in enumerate(world):
            for event_number, run in arrival:
                runs[run].append(record(system, table, number, history[event_number], next(offsets), connector))
        for lsn in truncates:
            emptied: Event = (lsn, "t", 0, None, "false")
            runs[chance.randrange(RUNS)].append(record(system, table, 0, emptied, next(offsets), connector))
    live_through(tables, system, runs, chance.randrange(RUNS))

    for full_refresh in (False, True):
        if full_refresh:
            tables.build(system, full_refresh=True)
        for table, (world, truncates) in expected.items():
            assert not wrong(by_id(tables.rows(system, table)), world, truncates), (table, truncates, full_refresh)


def test_the_fold_itself() -> None:
    history: list[Event] = [
        (10, "c", 0, {"a": "old", "b": "old", "n": 1}, "false"),
        (20, "d", 0, None, "false"),
        (20, "c", 1, {"a": "moved", "b": "old", "n": 1}, "false"),
        (30, "u", 0, {"a": PLACEHOLDER, "b": "new", "n": 2}, "false"),
    ]
    assert fold(history) == {0: {"a": None, "b": "new", "n": 2}, 1: {"a": "moved", "b": "old", "n": 1}}
    assert fold(history[:3], [25]) == {}
    assert fold(history[:2]) == {}
