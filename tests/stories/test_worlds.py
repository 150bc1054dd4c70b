"""The promise where dbt and its runs are in it: crashes, compaction, expiry and full refreshes around random histories.

The histories alone, many more of them: tests/engine/test_histories.py.
"""

import itertools
from random import Random
from typing import Any

from conftest import Lakehouse
from crashes import build, build_and_die
from hypothesis import given
from hypothesis import strategies as st
from worlds import GROUPS, KEYS, RUNS, SYSTEMS, WORLDS, Event, by_id, groups, record, worlds, wrong

HAPPENINGS = ("land again", "crash", "compact", "full refresh")
CONNECTORS = {"orders": "postgresql", "visits": "mysql"}


def live_through(
    lakehouse: Lakehouse, system: str, runs: list[list[dict[str, Any]]], around: list[tuple[str, int]]
) -> None:
    from dbt.adapters.spark import session

    for records, (happening, number) in zip(runs, around, strict=True):
        lakehouse.land(system, records)
        if happening == "land again":
            lakehouse.land(system, records)
        if happening == "crash":
            build_and_die(lakehouse, system, (session.Cursor, "execute"), number)
        build(lakehouse, system)
        tables = [f"{system}__{table}" for table in CONNECTORS]
        if happening == "compact":
            for table in tables:
                name = f"table => 'silver.{table}'"
                lakehouse.spark.sql(
                    f"call system.rewrite_data_files({name}, options => map('rewrite-all', 'true'))"
                ).collect()
                lakehouse.spark.sql(
                    f"call system.expire_snapshots({name}, older_than => current_timestamp())"
                ).collect()
        if happening == "full refresh":
            assert lakehouse.dbt("run", "--full-refresh", "--select", *tables).success


@worlds((WORLDS + 1) // 2)
@given(chance=st.randoms(use_true_random=True))
def test_any_history_gives_the_fold_whatever_happens_around_its_runs(lakehouse: Lakehouse, chance: Random) -> None:
    """Another thing happens around each run, a crash at any of its commits. One table is PostgreSQL's, one MySQL's."""
    system, offsets = f"any_world_{next(SYSTEMS)}", itertools.count(1)
    count = min(GROUPS, 150) if WORLDS < 10 else GROUPS
    runs: list[list[dict[str, Any]]] = [[] for _ in range(RUNS)]
    expected = {}
    for table, connector in CONNECTORS.items():
        world = groups(chance, count, connector)
        world[0] = ([(1, "c", 0, {"a": "", "b": "", "n": 0}, "false")], [(0, 0)])  # tells the scaffold the columns
        for number, (history, arrival) in enumerate(world):
            for event_number, run in arrival:
                runs[run].append(record(system, table, number, history[event_number], next(offsets), connector))
        truncates = [chance.choice([5, 15, 25])] if chance.random() < 0.5 else []
        for lsn in truncates:
            emptied: Event = (lsn, "t", 0, None, "false")
            chance.choice(runs).append(record(system, table, 0, emptied, next(offsets), connector))
        expected[table] = world, truncates
    live_through(
        lakehouse, system, runs, [(happening, chance.randint(1, 8)) for happening in chance.sample(HAPPENINGS, RUNS)]
    )

    for table, (world, truncates) in expected.items():
        found = by_id(lakehouse.rows(f"{system}.{table}"))
        assert not wrong(found, world, truncates), table
        assert set(found) <= set(range(count * KEYS))
    landed = sum(map(len, runs))
    assert lakehouse.sql(f"select sum(events) from monitoring.{system}__event_counts") == [(landed,)]
    assert lakehouse.sql(f"select count(*) from bronze.{system}") == [(landed,)]
