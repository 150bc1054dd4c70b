"""Random histories of keys, and the rows that they leave: a fold in plain Python that the engine is compared with.

A world is many independent groups of keys in one table, so that one build checks all of them; a failure names the
shortest history that went wrong. All that hypothesis draws is the seed of the rest. `make soak` draws many more
(SOAK_WORLDS).
"""

import itertools
import json
import os
from collections.abc import Sequence
from random import Random
from typing import Any

from event_factory import PLACEHOLDER, event, of_mysql
from hypothesis import HealthCheck, Phase, settings

WORLDS = int(os.environ.get("SOAK_WORLDS", "2"))
GROUPS = 500 if WORLDS < 10 else 600  # of keys, each with a history of its own
KEYS = 3  # of a group
RUNS = 4
COLUMNS = ("a", "b", "n")
SYSTEMS = itertools.count()

Event = tuple[int, str, int, dict[str, Any] | None, str]  # lsn, op, key in the group, row without key, snapshot mark


def worlds(number: int) -> settings:
    """So many worlds; always the same ones, but in the soak. A seed has nothing to shrink or to explain."""
    phases = (Phase.explicit, Phase.reuse, Phase.generate)
    health = list(HealthCheck)
    soak = WORLDS >= 10
    return settings(
        max_examples=number,
        deadline=None,
        suppress_health_check=health,
        print_blob=True,
        derandomize=not soak,
        phases=phases,
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
            found.append(
                (lsn, "r", key, {"a": "snapshot", "b": "snapshot", "n": 0}, "true")
            )  # loses to the change at its position
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


def record(
    system: str, table: str, group: int, item: Event, offset: int, connector: str = "postgresql"
) -> dict[str, Any]:
    lsn, op, key, row, snapshot = item
    identity = {"id": group * KEYS + key}
    made = event(
        op, lsn, None if row is None else {**identity, **row}, identity, table, offset, snapshot, prefix=system
    )
    if op == "t":
        made["key"] = None
    return of_mysql(made) if connector == "mysql" else made


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


def transactions_that_pass_keys_on(
    chance: Random, truncated_after: int | None
) -> tuple[list[list[Event]], dict[int, dict[str, Any]]]:
    """What Debezium writes of transactions on a group of keys whose constraint is checked at the end, and the rows that
    are left.

    A statement gives rows the keys of others in any order, so that two are under one key in between; single rows change
    too. A value that a row left out when its key changed is lost. Transaction number `n` is at the positions from 1000
    n on.
    """
    rows: dict[int, dict[str, Any]] = {
        key: {"a": f"row {key}", "b": None, "n": 0} for key in range(KEYS) if chance.random() < 0.7
    }
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
