"""Commands that are killed without warning, Python, Spark and all, at each of their commits; that are interrupted; that meet."""

import hashlib
import itertools
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from conftest import REPOSITORY
from event_factory import PLACEHOLDER, event
from test_properties import KEYS, Event, fold, groups, record
from test_server import Checkout

SOAK = "SOAK_KILLS" in os.environ
BOUNDARIES = 80  # of a story, at least
SEED = int(os.environ.get("SEED", "5"))
PARTS = 2  # of what a story lands
SYSTEMS = itertools.count(1)
At = tuple[int, str, float]  # number of the boundary, when, and after how many seconds


class Killed(Exception):
    """The process is no more."""


class Command:
    """A process that does what a user does, and dies where it is told to (tests/killed_run.py)."""

    def __init__(self, checkout: Checkout, **environment: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(REPOSITORY / "tests" / "killed_run.py")],
            cwd=checkout.folder,
            env={**checkout.environment, "THREADS": "1", **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.told = ""
        self.passed: list[str] = []

    def start(self, do: str, *arguments: str, at: At | None = None, **environment: str) -> None:
        assert self.process.stdin
        command = {"do": do, "arguments": arguments, "at": at or (), "environment": environment}
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def end(self) -> Any:
        """The result of what was started.

        Raises:
            Killed: the process died before.
        """
        assert self.process.stdout
        self.told = ""
        for line in self.process.stdout:
            if line.startswith("#"):
                result, self.passed = json.loads(line[1:])
                return result
            self.told += line
        self.process.wait()
        raise Killed(self.told)

    def do(self, do: str, *arguments: str, at: At | None = None, **environment: str) -> Any:
        self.start(do, *arguments, at=at, **environment)
        return self.end()

    def stop(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


class Story:
    """Events of a system of its own in two parts, with what a run can have to do: all of it is done once more for each kill.

    The first part is a table with a key and two without. In the second, the first table has a truncate and values left out, the
    second one a new column, a key that the user names, and another table in its topic, and there is a record that is broken.
    """

    def __init__(self, checkout: Checkout, seed: int) -> None:
        self.system = f"story{next(SYSTEMS)}"
        self.file = checkout.folder / "events" / f"{self.system}.jsonl"
        self.file.parent.mkdir(exist_ok=True)
        self.done = 0
        chance = Random(seed)
        self.world = groups(chance, 8)
        self.world[0] = ([(1, "c", 0, {"a": "", "b": "", "n": 0}, "false")], [(0, 0)])  # tells the scaffold the columns
        self.truncates = [chance.randrange(5, 60, 10)]
        self.arrivals = [
            (number, event_number, 0 if number == 0 else run % PARTS)
            for number, (_, arrival) in enumerate(self.world)
            for event_number, run in arrival
        ]
        self.lines = [[json.dumps(one) + "\n" for one in self._part(part)] for part in range(PARTS)]

    def _part(self, part: int) -> list[dict[str, Any]]:
        """The events are in any order and some stand twice; their offsets are in the order of the log."""

        def other(table: str, op: str, lsn: int, **row: Any) -> dict[str, Any]:
            made = event(op, lsn, row, {"id": row.get("id")}, table, prefix=self.system)
            return {**made, "key": made["key"] if table == "pears" else None}

        def change(item: Event, number: int, event_number: int) -> dict[str, Any]:
            return record(self.system, "orders", number, item, item[0] * 1000 + number * 20 + event_number)

        orders = [
            change(self.world[number][0][event_number], number, event_number)
            for number, event_number, of_part in self.arrivals
            if of_part == part
        ]
        if part == 0:
            return [*orders, other("visits", "c", 1, id=1, v="a"), other("visits", "c", 2, id=2, v="b"), other("notes", "c", 3, t="x")]
        emptied = [change((lsn, "t", 0, None, "false"), 0, 0) for lsn in self.truncates]
        pears = [{**other("pears", op, lsn, id=1, p=p), "topic": f"{self.system}.public.visits"} for op, lsn, p in (("c", 6, 1), ("u", 7, 2))]
        broken = {"topic": f"{self.system}.public.orders", "partition": 0, "offset": 1, "key": None, "value": "{"}
        return [*orders, *emptied, other("visits", "u", 4, id=1, v=PLACEHOLDER, w=5), *pears, other("notes", "c", 8, t="y"), broken]

    def run(self, command: Command, at: At | None = None) -> bool:
        """Land the next part and build. Whether all went well; where it did not, the part counts as landed too."""
        with self.file.open("a") as file:
            file.writelines(self.lines[self.done])
        self.done += 1
        return self.run_again(command, at)

    def run_again(self, command: Command, at: At | None = None) -> bool:
        return bool(command.do("run", at=at, **self.environment()) == 0)

    def environment(self) -> dict[str, str]:
        return {"EVENTS": str(self.file), "SYSTEM": self.system, "KEYS": "visits=id" if self.done == PARTS else ""}

    def check(self, command: Command) -> None:
        """Bronze holds every record once, all are counted, and the tables are the fold of what has landed."""
        silver = f"silver.{self.system}__"
        found = command.do(
            "sql",
            f"select topic, offset, count(*) as n from bronze.{self.system} group by all",
            f"select sum(events) as n from monitoring.{self.system}__event_counts",
            f"select * from {self.system}.orders",
            f"select * except (id) from {self.system}.visits order by id" if self.done == PARTS else "select 1",
            f"select t from {silver}notes order by t",
            f"select p from {self.system}.pears" if self.done == PARTS else "select 1",
            f"select reason from monitoring.{self.system}__rejected_events",
        )
        landed, counted, orders, visits, notes, pears, rejected = found
        events = {line: json.loads(line) for part in self.lines[: self.done] for line in part}
        assert Counter({(row["topic"], row["offset"]): row["n"] for row in landed}) == Counter(
            (one["topic"], one["offset"]) for one in events.values()
        )
        assert counted == [{"n": len(events)}]
        rows = {row.pop("id"): row for row in orders}
        for number, (history, _) in enumerate(self.world):
            arrived = {event_number for group, event_number, part in self.arrivals if group == number and part < self.done}
            expected = fold([history[n] for n in sorted(arrived)], self.truncates if self.done == PARTS else [])
            assert {key: rows[number * KEYS + key] for key in range(KEYS) if number * KEYS + key in rows} == expected, history
        if self.done == PARTS:
            assert visits == [{"v": "a", "w": 5}, {"v": "b", "w": None}]
            assert pears == [{"p": 2}] and rejected == [{"reason": "invalid_json"}]
        assert notes == [{"t": "x"}, {"t": "y"}][: self.done]

    def forget(self, checkout: Checkout) -> None:
        """Its models: dbt reads all that there are with every run."""
        for path in (checkout.folder / "models").glob(f"*/{self.system}*"):
            subprocess.run(["rm", "-r", str(path)], check=True)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    return new_checkout(tmp_path_factory.mktemp("killed"))


def new_checkout(folder: Path) -> Checkout:
    """A checkout whose dbt has as many threads as the environment says: with one, a run passes its boundaries in one order."""
    checkout = Checkout(folder)
    profile = folder / "profiles" / "profiles.yml"
    text = profile.read_text()
    assert "threads: 4" in text
    profile.write_text(text.replace("threads: 4", "threads: \"{{ env_var('THREADS', '4') | as_number }}\""))
    return checkout


def play(story: Story, command: Command, at: At | None) -> bool:
    """Both parts, unless the process dies at the boundary `at`, counted over both. Whether it did."""
    try:
        for _ in range(PARTS):
            assert story.run(command, at), command.told
            at = (at[0] - len(command.passed), *at[1:]) if at and at[0] > len(command.passed) else None
    except Killed as killed:
        print(str(killed).splitlines()[-1], flush=True)
        return True
    return False


def finish(story: Story, command: Command) -> None:
    """The run after the one that was killed, and the parts that had not come yet."""
    assert story.run_again(command), command.told
    story.check(command)
    while story.done < PARTS:
        assert story.run(command), command.told
        story.check(command)


def kills() -> Iterator[At]:
    """Where to die, one after the other, until a run survives: all boundaries in a soak, else some, others with each change."""
    if SOAK:
        yield from ((number, when, 0.0) for number in itertools.count(1) for when in ("before", "after"))
    chance = Random(SEED)
    yield chance.randrange(1, BOUNDARIES // 2), chance.choice(["before", "after"]), 0.0
    yield chance.randrange(BOUNDARIES // 2, BOUNDARIES), chance.choice(["before", "after"]), 0.0


def test_a_run_killed_at_any_of_its_commits_is_finished_by_the_next(checkout: Checkout, capsys: pytest.CaptureFixture[str]) -> None:
    command, died = Command(checkout), 0
    for at in kills():
        story = Story(checkout, at[0])
        if not play(story, command, at):
            break
        died += 1
        command = Command(checkout)
        finish(story, command)
        story.forget(checkout)
    command.stop()


MAINTENANCE = """
call system.rewrite_data_files(table => '{}', options => map('rewrite-all', 'true'))
call system.rewrite_manifests(table => '{}')
call system.expire_snapshots(table => '{}', older_than => current_timestamp(), retain_last => 1)
"""


def maintain(story: Story, command: Command, at: At | None = None) -> int:
    """Compact and expire all tables that a story has. Returns how many procedures that were."""
    tables = command.do("sql", *(f"show tables in {schema}" for schema in ("bronze", "staging", "silver", "monitoring")))
    names = [f"{row['namespace']}.{row['tableName']}" for rows in tables for row in rows if row["tableName"].startswith(story.system)]
    views = command.do("sql", *(f"show views in {schema}" for schema in ("staging", "monitoring")))
    names = sorted(set(names) - {f"{row['namespace']}.{row['viewName']}" for rows in views for row in rows})
    command.do("sql", *(line.format(name) for name in names for line in MAINTENANCE.splitlines() if line), at=at)
    return len(command.passed)


def test_compacted_and_expired_tables_go_on_also_where_that_was_killed(checkout: Checkout) -> None:
    ...
