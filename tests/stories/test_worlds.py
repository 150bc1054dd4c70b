"""The promise as a property: silver is the fold of the distinct events, whatever their order, splits, repeats and crashes.

A world is a history of a lakehouse: events of many independent groups of keys in one table (so that a run of dbt checks all
of them at once), dealt to several runs, and what happens around each run. A few more tables have truncates, which are of all keys.
`make soak` draws many more. All that hypothesis draws is the seed of the rest.
"""

import itertools
import json
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from conftest import Lakehouse
from event_factory import PLACEHOLDER, created, event, of_mysql
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

WORLDS = int(os.environ.get("SOAK_WORLDS", "2"))
GROUPS = 150 if WORLDS < 10 else 600  # of keys, each with a history of its own
KEYS = 3  # of a group
RUNS = 4
COLUMNS = ("a", "b", "n")
HAPPENINGS = ("land again", "crash", "compact", "full refresh", "nothing")
SYSTEMS = itertools.count()
MUTATION = re.compile(r"\s*(/\*.*?\*/\s*)?(create|insert|merge|delete|update|alter)\b", re.DOTALL | re.IGNORECASE)

Event = tuple[int, str, int, dict[str, Any] | None, str]  # lsn, op, key in the group, row without key, snapshot mark


def worlds(number: int) -> settings:
    return settings(
        max_examples=number, deadline=None, suppress_health_check=list(HealthCheck), print_blob=True, derandomize=WORLDS < 10
    )


def history_of(chance: Random, connector: str) -> list[Event]:
    """Events of a group of keys at growing positions; they need not make sense together. MySQL leaves out no values."""
    found: list[Event] = []
    for number in range(1, chance.randint(1, 6) + 1):
        lsn, key, op = number * 10, chance.randrange(KEYS), chance.choice("cuuuudrk")
        if op == "k":  # the key of a row changes: a delete and a create at one position
            found.append((lsn, "d", key, None, "false"))
            key, op = (key + chance.randint(1, KEYS - 1)) % KEYS, "c"
        row = None
        if op != "d":
            row = {"a": f"a{lsn}", "b": chance.choice([None, f"b{lsn}"]), "n": lsn}
            for name in chance.choice(["", "a", "b", "ab"]) if op == "u" and connector == "postgresql" else "":
                row[name] = PLACEHOLDER
        found.append((lsn, op, key, row, chance.choice(["true", "incremental"]) if op == "r" else "false"))
        if op in "cu" and chance.random() < 0.5:
            found.append((lsn, "r", key, {"a": "snapshot", "b": "snapshot", "n": 0}, "true"))  # loses to the change at its position
    return found


def arrival_of(chance: Random, events: int) -> list[tuple[int, int]]:
    """(number of the event, run that lands it), some twice, in the order of arrival."""
    numbers = list(range(events)) + chance.choices(range(events), k=chance.randint(0, 3))
    chance.shuffle(numbers)
    return [(number, chance.randrange(RUNS)) for number in numbers]


Group = tuple[list[Event], list[tuple[int, int]]]


def groups(chance: Random, count: int, connector: str = "postgresql") -> list[Group]:
    """Independent groups of keys: a failure names the shortest history that went wrong, so nothing has to be shrunk."""
    histories = [history_of(chance, connector) for _ in range(count)]
    return [(history, arrival_of(chance, len(history))) for history in histories]


def around_runs(chance: Random) -> list[tuple[str, int]]:
    """What happens beside each run, another thing each time, and at which of its commits where it is a crash."""
    return [(happening, chance.randint(1, 8)) for happening in chance.sample(HAPPENINGS, RUNS)]


def fold(history: list[Event], truncates: Sequence[int] = ()) -> dict[int, dict[str, Any]]:
    """The rows that a history leaves, by key: per column the newest write, nothing after a delete or a truncate."""
    rows: dict[int, dict[str, Any]] = {}
    emptied: list[Event] = [(lsn, "t", key, None, "false") for lsn in truncates for key in range(-1, KEYS)]
    for _, _, key, image, _ in sorted(history + emptied, key=lambda e: (e[0], e[4] != "true")):
        if image is None:
            rows.pop(key, None)
        else:
            old = rows.get(key, dict.fromkeys(COLUMNS))
            rows[key] = {name: old[name] if image[name] == PLACEHOLDER else image[name] for name in COLUMNS}
    return rows


def record(system: str, table: str, group: int, item: Event, offset: int, connector: str = "postgresql") -> dict[str, Any]:
    lsn, op, key, row, snapshot = item
    identity = {"id": group * KEYS + key}
    made = event(op, lsn, None if row is None else {**identity, **row}, identity, table, offset, snapshot, prefix=system)
    if op == "t":
        made["key"] = None
    return of_mysql(made) if connector == "mysql" else made


@contextmanager
def dying_at(monkeypatch: pytest.MonkeyPatch, commit: int) -> Iterator[None]:
    """dbt dies before the statement of this number that would write, and writes nothing more."""
    from dbt.adapters.spark import session

    execute, seen = session.Cursor.execute, itertools.count(1)

    def dies(self: Any, sql: str, *parameters: Any) -> None:
        if MUTATION.match(sql) and next(seen) >= commit:
            raise RuntimeError("the process was killed")
        execute(self, sql, *parameters)

    with monkeypatch.context() as patch:
        patch.setattr(session.Cursor, "execute", dies)
        yield


def build(lakehouse: Lakehouse, system: str, crash_at: int | None = None) -> bool:
    """Scaffold and build what has landed. Whether all of it was built."""
    done = lakehouse.scaffold(system)
    if crash_at is None:
        said: list[str] = []
        assert lakehouse._run._build(lakehouse.spark, [system], [done], said.append) == 0, said
        return True
    from scripts.errors import LakehouseError

    with pytest.MonkeyPatch.context() as patch, dying_at(patch, crash_at), suppress(LakehouseError):
        return bool(lakehouse._run._build(lakehouse.spark, [system], [done], lambda _: None) == 0)
    return False


def live_through(lakehouse: Lakehouse, system: str, runs: list[list[dict[str, Any]]], around: list[tuple[str, int]]) -> None:
    for records, (happening, number) in zip(runs, around, strict=True):
        lakehouse.land(system, records)
        if happening == "land again":
            lakehouse.land(system, records)
        if happening == "crash":
            build(lakehouse, system, crash_at=number)
        build(lakehouse, system)
        tables = [row.tableName for row in lakehouse.spark.sql(f"show tables in silver like '{system}__*'").collect()]
        if happening == "compact":
            for table in tables:
                lakehouse.spark.sql(
                    f"call system.rewrite_data_files(table => 'silver.{table}', options => map('rewrite-all', 'true'))"
                ).collect()
                lakehouse.spark.sql(
                    f"call system.expire_snapshots(table => 'silver.{table}', older_than => current_timestamp())"
                ).collect()
        if happening == "full refresh":
            assert lakehouse.dbt("run", "--full-refresh", "--select", *tables).success


def of_table(lakehouse: Lakehouse, system: str, table: str) -> dict[int, dict[str, Any]]:
    return by_id(lakehouse.rows(f"{system}.{table}"))


def by_id(rows: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    found = {row["id"]: {name: value for name, value in row.items() if name != "id"} for row in rows}
    assert len(found) == len(rows), "a key stands twice"
    return found


def wrong(found: dict[int, dict[str, Any]], world: list[Group], truncates: list[int]) -> str:
    """The group with the shortest history whose rows are not its fold; empty where there is none."""
    told = []
    for number, (history, arrival) in enumerate(world):
        rows = {key: found[number * KEYS + key] for key in range(KEYS) if number * KEYS + key in found}
        if rows != fold(history, truncates):
            told.append((len(history), f"{history}, landed as {arrival}: {rows}, not {fold(history, truncates)}"))
    return min(told, default=(0, ""))[1]


@pytest.mark.parametrize("connector", ["postgresql", "mysql"])
@worlds((WORLDS + 1) // 2)
@given(chance=st.randoms(use_true_random=True))
def test_any_history_gives_the_fold(lakehouse: Lakehouse, chance: Random, connector: str) -> None:
    system, world = f"any_history_{next(SYSTEMS)}", groups(chance, GROUPS, connector)
    world[0] = ([(1, "c", 0, {"a": "", "b": "", "n": 0}, "false")], [(0, 0)])  # tells the scaffold the columns
    offsets = itertools.count(1)
    runs: list[list[dict[str, Any]]] = [[] for _ in range(RUNS)]
    for number, (history, arrival) in enumerate(world):
        for event_number, run in arrival:
            runs[run].append(record(system, "orders", number, history[event_number], next(offsets), connector))
    truncates = [chance.choice([5, 15, 25])] if chance.random() < 0.5 else []
    for lsn in truncates:
        chance.choice(runs).append(record(system, "orders", 0, (lsn, "t", 0, None, "false"), next(offsets), connector))
    live_through(lakehouse, system, runs, around_runs(chance))

    found = of_table(lakehouse, system, "orders")
    assert not wrong(found, world, truncates)
    assert set(found) <= set(range(GROUPS * KEYS))
    landed = sum(map(len, runs))
    assert lakehouse.sql(f"select sum(events) from monitoring.{system}__event_counts") == [(landed,)]
    assert lakehouse.sql(f"select count(*) from bronze.{system}") == [(landed,)]


def transactions_that_pass_keys_on(
    chance: Random, truncated_after: int | None
) -> tuple[list[list[Event]], dict[int, dict[str, Any]]]:
    """What Debezium writes of transactions on a group of keys whose constraint is checked at the end, and the rows that are left.

    A statement gives rows the keys of others in any order, so that two are under one key in between; single rows change too. A
    value that a row left out when its key changed is lost. Transaction number `n` is at the positions from 1000 n on.
    """
    rows: dict[int, dict[str, Any]] = {key: {"a": f"row {key}", "b": None, "n": 0} for key in range(KEYS) if chance.random() < 0.7}
    found: list[list[Event]] = [[(1, "r", key, row, "true") for key, row in rows.items()]]
    for number in range(1, 5):
        events: list[Event] = []
        for lsn in range(1000 * number, 1000 * number + 10 * chance.randint(0, 3), 10):
            keys = chance.sample(range(KEYS), KEYS)
            key = keys[0]
            if chance.random() < 0.5:  # a statement that moves some rows, each at most once
                moved = [key for key in chance.sample(sorted(rows), len(rows)) if keys[key] != key]
                if len({keys[key] for key in moved} | (rows.keys() - set(moved))) < len(rows):
                    continue
                before = dict(rows)
                for place, key in enumerate(moved, lsn):
                    left_out = chance.random() < 0.2
                    changed = {**before[key], "n": place, **({"a": PLACEHOLDER} if left_out else {})}
                    events += [(place, "d", key, None, "out"), (place, "c", keys[key], changed, "in")]
                    rows[keys[key]] = {**changed, **({"a": None} if left_out else {})}
                for key in set(moved) - {keys[key] for key in moved}:
                    del rows[key]
            elif key not in rows:
                rows[key] = {"a": f"a{lsn}", "b": f"b{lsn}", "n": lsn}
                events.append((lsn, "c", key, rows[key], "false"))
            elif chance.random() < 0.6:
                rows[key] = {**rows[key], "b": f"b{lsn}", "n": lsn}
                left_out = chance.random() < 0.5
                events.append((lsn, "u", key, {**rows[key], **({"a": PLACEHOLDER} if left_out else {})}, "false"))
            else:
                del rows[key]
                events.append((lsn, "d", key, None, "false"))
        found.append(events)
        if number == truncated_after:
            rows.clear()
    return found, rows


def of_transaction(system: str, group: int, item: Event, number: float, offset: int) -> dict[str, Any]:
    """A record as PostgreSQL's connector writes it, with the headers of a change of key."""
    lsn, op, key, row, mark = item
    made = record(system, "orders", group, (lsn, op, key, row, "true" if op == "r" else "false"), offset)
    value = json.loads(made["value"])
    committed = None if number <= 1 else str(round(1000 * number))  # as long as none was, there is none
    value["source"] |= {"sequence": json.dumps([committed, str(lsn)]), "txId": 700 + round(number)}
    header = {"out": "__debezium.newkey", "in": "__debezium.oldkey"}.get(mark)
    return {**made, "value": json.dumps(value), "headers": [{"key": header, "value": "{}"}] if header else []}


@worlds(max(1, WORLDS // 3))
@given(chance=st.randoms(use_true_random=True))
def test_keys_that_rows_pass_on_in_one_statement_have_the_rows_of_the_source(lakehouse: Lakehouse, chance: Random) -> None:
    """Transactions land in any order, in parts, and again; the parts of one in their order, as a topic has them."""
    system, offsets = f"passed_on_{next(SYSTEMS)}", itertools.count(1)
    runs: list[list[dict[str, Any]]] = [[] for _ in range(RUNS)]
    expected: dict[int, dict[str, Any]] = {}
    histories: list[list[tuple[Event, list[int]]]] = []  # each event with the runs that land it
    truncated_after = chance.choice([1, 2, 3, None])
    for group in range(GROUPS):
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
    live_through(lakehouse, system, runs, around_runs(chance))

    def compared() -> list[dict[str, Any]]:
        found = of_table(lakehouse, system, "orders")
        wrong = {key // KEYS for key in found.keys() | expected.keys() if found.get(key) != expected.get(key)}
        told = [f"{histories[group]}: {[found.get(group * KEYS + key) for key in range(KEYS)]}" for group in wrong]
        assert not told, f"truncated after {truncated_after}, {min(told, key=len)}"
        return lakehouse.rows(f"(select * except (_cdc_moves) from silver.{system}__orders)")

    silver = compared()
    assert lakehouse.dbt("run", "--full-refresh", "--select", f"{system}__orders").success
    different = [pair for pair in zip(silver, compared(), strict=True) if pair[0] != pair[1]]
    assert not different, (len(different), different[0])
    assert lakehouse.dbt("test", "--select", f"{system}__orders,test_name:newest_change_wins").success


@worlds(max(1, WORLDS // 3))
@given(chance=st.randoms(use_true_random=True), of_first=st.sampled_from(["postgresql", "mysql"]))
def test_any_table_history_with_truncates_gives_the_fold(lakehouse: Lakehouse, chance: Random, of_first: str) -> None:
    """Every other table is of the other connector."""
    system, offsets = f"any_table_{next(SYSTEMS)}", itertools.count(1)
    runs: list[list[dict[str, Any]]] = [[] for _ in range(RUNS)]
    tables: dict[str, tuple[list[Group], list[int]]] = {}
    for table_number in range(6):
        table, connector = f"t{table_number}", "mysql" if (of_first == "mysql") != bool(table_number % 2) else "postgresql"
        world, truncates = (
            groups(chance, 4, connector),
            [number * 10 + 5 for number in chance.sample(range(1, 7), chance.randint(0, 2))],
        )
        world[0] = ([(1, "c", 0, {"a": "", "b": "", "n": 0}, "false")], [(0, 0)])
        tables[table] = world, truncates
        for number, (history, arrival) in enumerate(world):
            for event_number, run in arrival:
                runs[run].append(record(system, table, number, history[event_number], next(offsets), connector))
        for lsn in truncates:
            emptied: Event = (lsn, "t", 0, None, "false")
            runs[chance.randrange(RUNS)].append(record(system, table, 0, emptied, next(offsets), connector))
    live_through(lakehouse, system, runs, around_runs(chance))

    for table, (world, truncates) in tables.items():
        assert not wrong(of_table(lakehouse, system, table), world, truncates), (table, truncates)
    assert lakehouse.dbt("run", "--full-refresh", "--select", *[f"{system}__{table}" for table in tables]).success
    for table, (world, truncates) in tables.items():
        assert not wrong(of_table(lakehouse, system, table), world, truncates), (table, truncates)


def test_a_run_that_dies_before_any_of_its_commits_is_repeated_without_a_trace(lakehouse: Lakehouse) -> None:
    """Every statement of a run that writes is a place to die: in the first run, and in one with a truncate and values left out."""
    system = "dying"
    row = {"a": "x", "b": "y", "n": 0}
    history: list[Event] = [(5, "c", key, row, "false") for key in range(KEYS)]
    truncates: list[int] = []
    lakehouse.land(system, [record(system, "orders", 0, item, 100 + number) for number, item in enumerate(history)])
    crashes = next(number for number in range(1, 100) if build(lakehouse, system, crash_at=number))
    assert crashes > 4  # bronze's models, silver, live, counts, rejected records
    assert of_table(lakehouse, system, "orders") == fold(history)
    for number in itertools.count(1):
        lsn, offset = number * 100, itertools.count(number * 1000)
        new: list[Event] = [
            (lsn + 1, "u", 0, {"a": PLACEHOLDER, "b": f"b{lsn}", "n": lsn}, "false"),
            (lsn + 50, "c", 1, {"a": f"a{lsn}", "b": None, "n": lsn}, "false"),
            (lsn + 60, "u", 1, {"a": PLACEHOLDER, "b": PLACEHOLDER, "n": lsn + 1}, "false"),
            (lsn - 40, "u", 2, {"a": "late", "b": "late", "n": lsn}, "false"),
        ]
        history += new
        truncates.append(lsn + 40)
        emptied: Event = (lsn + 40, "t", 0, None, "false")
        lakehouse.land(system, [record(system, "orders", 0, item, next(offset)) for item in [*new, emptied]])
        survived = build(lakehouse, system, crash_at=number)
        build(lakehouse, system)
        assert of_table(lakehouse, system, "orders") == fold(history, truncates), number
        if survived:
            break
    assert number > 5
    counted = lakehouse.sql(f"select sum(events) from monitoring.{system}__event_counts")
    assert counted == lakehouse.sql(f"select count(*) from bronze.{system}")


def test_models_written_in_part_are_finished_by_the_next_run(
    lakehouse: Lakehouse, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that dies before it puts a file in its place; what it leaves is not taken for edits, whatever comes next."""
    models, replace, left = project / "models", Path.replace, 0

    def written() -> dict[str, str]:
        return {path.name: path.read_text() for path in models.rglob("*.*") if path.suffix in (".sql", ".yml")}

    def dies(path: Path, target: Path) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        return replace(path, target)

    lakehouse.land("parts", [created(1, id=1)])
    lakehouse.scaffold("parts")
    before = shutil.copytree(models, project / "before")
    lakehouse.land("parts", [created(2, id=2, a="x")])
    for number in range(5):  # the declaration, three models, the declaration in its place
        shutil.copytree(before, models, dirs_exist_ok=True)
        left = number
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(Path, "replace", dies)
            lakehouse.scaffold("parts")
        if number == 3:
            lakehouse.land("parts", [created(3, id=3, b="y")])
        assert not any("edited" in note for note in lakehouse.scaffold("parts").notes)
        columns = ("a",) if number < 3 else ("a", "b")
        assert all(f"'{name}'" in written()[file] for name in columns for file in ("parts__orders.sql", "stg_parts__orders.sql"))
        assert not list(models.rglob("*.intended"))


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
