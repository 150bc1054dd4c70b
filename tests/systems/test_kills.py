"""Commands that are killed at each of their commits, Python, Spark and all; that are interrupted; that meet; that run
out of room.

`make soak` dies at every boundary (tests/killed_run.py) of a run and of the tables' maintenance; `make test` at one of
each part of a story, at others whenever the code changes.
"""

import hashlib
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from conftest import REPOSITORY
from event_factory import PLACEHOLDER, created, event
from test_server import Checkout
from worlds import KEYS, Event, by_id, fold, groups, record

SOAK = int(os.environ.get("SOAK_KILLS", "0"))  # so many moments within statements, besides all boundaries
CODE = sorted([*(REPOSITORY / "scripts").glob("*.py"), *(REPOSITORY / "macros").rglob("*.sql")])
SEED = hashlib.sha256(b"".join(path.read_bytes() for path in CODE)).hexdigest()[:8]
PARTS = 2  # of what a story lands
SYSTEMS = itertools.count(1)
STATEMENT = "(?!write|replace |remove)"
At = tuple[int, str, str, float]  # which of the boundaries that match, when, the pattern, and after how many seconds


class Killed(Exception):
    """The process is no more."""


class Command:
    """A process that does what a user does, and dies where it is told to (tests/killed_run.py).

    After that it is another one.
    """

    def __init__(self, checkout: Checkout, **environment: str) -> None:
        self.checkout, self.environment = checkout, environment
        self.process: subprocess.Popen[str] | None = None
        self.status = 0
        self.told = ""
        self.passed: list[str] = []

    def start(self, do: str, *arguments: str, at: At | None = None, environment: dict[str, str] | None = None) -> None:
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, str(REPOSITORY / "tests" / "killed_run.py")],
                cwd=self.checkout.folder,
                env={**self.checkout.environment, **self.environment},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )
        assert self.process.stdin
        command = {"do": do, "arguments": arguments, "at": at or (), "environment": environment or {}}
        with suppress(BrokenPipeError):  # it died after the end of the last one
            self.process.stdin.write(json.dumps(command) + "\n")
            self.process.stdin.flush()

    def end(self) -> Any:
        """The result of what was started.

        Raises:
            Killed: the process died before that, or with it.
        """
        assert self.process and self.process.stdout
        self.told, result = "", None
        for line in self.process.stdout:
            if line.startswith("#"):
                result, self.passed = json.loads(line[1:])
                if result != 130:
                    return result
            else:
                self.told += line
        self.status = self.process.wait()
        while alive(self.process.pid):
            time.sleep(0.05)
        self.process = None
        assert self.status in (-signal.SIGKILL, 130), self.told
        raise Killed(self.told)

    def wait_until_held(self) -> None:
        """Until the process is where `at` has it wait for `go_on`."""
        assert self.process and self.process.stdout
        line = next((line for line in self.process.stdout if line.startswith(("held ", "#"))), "it died")
        assert line.startswith("held "), line

    def go_on(self) -> None:
        assert self.process and self.process.stdin
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def do(self, do: str, *arguments: str, at: At | None = None, environment: dict[str, str] | None = None) -> Any:
        self.start(do, *arguments, at=at, environment=environment)
        return self.end()

    def sql(self, *queries: str, at: At | None = None) -> list[list[dict[str, Any]]]:
        found: list[list[dict[str, Any]]] = self.do("sql", *queries, at=at)
        return found

    def stop(self) -> None:
        if self.process and self.process.stdin:
            with suppress(BrokenPipeError):
                self.process.stdin.close()
            self.process.wait()
            self.process = None


def alive(group: int) -> bool:
    """Whether any process of the group is left: the JVM of a command is in its group."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


class Story:
    """Events of a system of its own in two parts, with what a run can have to do: all of it is done once more for each
    kill.

    The first part is a table with a key and two without. In the second, the first table has a truncate and values left
    out, the second one a new column, a key that the user names, and another table in its topic, the third one a
    truncate, and there is a record that is broken.
    """

    def __init__(self, checkout: Checkout, seed: int) -> None:
        self.system = f"story{next(SYSTEMS)}"
        self.file = checkout.folder / "events" / f"{self.system}.jsonl"
        self.file.parent.mkdir(exist_ok=True)
        self.done = 0
        self.changed_by = PARTS
        self.threads = "1"  # of dbt: it passes its boundaries in one order
        self.notes = ["x", "y"]
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
            return [
                *orders,
                other("visits", "c", 1, id=1, v="a"),
                other("visits", "c", 2, id=2, v="b"),
                other("notes", "c", 3, t="x"),
            ]
        emptied = [change((lsn, "t", 0, None, "false"), 0, 0) for lsn in self.truncates]
        pears = [
            {**other("pears", op, lsn, id=1, p=p), "topic": f"{self.system}.public.visits"}
            for op, lsn, p in (("c", 6, 1), ("u", 7, 2))
        ]
        broken = {"topic": f"{self.system}.public.orders", "partition": 0, "offset": 1, "key": None, "value": "{"}
        notes = [event("t", 7, table="notes", prefix=self.system), other("notes", "c", 8, t="y")]
        return [*orders, *emptied, other("visits", "u", 4, id=1, v=PLACEHOLDER, w=5), *pears, *notes, broken]

    def run(self, command: Command, at: At | None = None) -> bool:
        """Land the next part and build. Whether all went well; where it did not, the part counts as landed too."""
        self.append()
        return self.run_again(command, at)

    def append(self) -> None:
        with self.file.open("a") as file:
            file.writelines(self.lines[self.done])
        self.done += 1

    def run_again(self, command: Command, at: At | None = None) -> bool:
        return bool(command.do("run", at=at, environment=self.environment()) == 0)

    def environment(self) -> dict[str, str]:
        keys = "visits=id" if self.done >= self.changed_by else ""
        return {"EVENTS": str(self.file), "SYSTEM": self.system, "KEYS": keys, "THREADS": self.threads}

    def goes_on(self, characters: int = 0) -> None:
        """From here on other parts: updates of the first table, one with so long a value, and a row of the log."""
        if self.done < PARTS:
            self.changed_by = sys.maxsize
            self.arrivals = [arrival for arrival in self.arrivals if arrival[2] < self.done]
            del self.lines[self.done :], self.notes[self.done :]
        history, _ = self.world[0]
        lsn = 1000 + 10 * len(history)
        long: Event = (lsn, "u", 0, {"a": PLACEHOLDER, "b": "x" * characters, "n": lsn}, "false")
        new: list[Event] = [long, (lsn + 1, "u", 0, {"a": PLACEHOLDER, "b": f"b{lsn}", "n": lsn + 1}, "false")]
        self.arrivals += [(0, len(history) + number, len(self.lines)) for number in range(len(new))]
        history += new
        self.notes.append(f"z{lsn}")
        note = {**event("c", lsn, {"t": self.notes[-1]}, {}, "notes", prefix=self.system), "key": None}
        records = [*(record(self.system, "orders", 0, item, item[0] * 1000) for item in new), note]
        self.lines.append([json.dumps(one) + "\n" for one in records])

    def check(self, command: Command) -> None:
        """Bronze holds every record once, all are counted, and the tables are the fold of what has landed."""
        silver = f"silver.{self.system}__"
        found = command.do(
            "sql",
            f"select topic, offset, count(*) as n from bronze.{self.system} group by all",
            f"select sum(events) as n from monitoring.{self.system}__event_counts",
            f"select * from {self.system}.orders",
            (
                f"select * except (id) from {self.system}.visits order by id"
                if self.done >= self.changed_by
                else "select 1"
            ),
            f"select t from {silver}notes order by t",
            f"select p from {self.system}.pears" if self.done >= self.changed_by else "select 1",
            f"select reason from monitoring.{self.system}__rejected_events",
        )
        landed, counted, orders, visits, notes, pears, rejected = found
        events = {line: json.loads(line) for part in self.lines[: self.done] for line in part}
        assert Counter({(row["topic"], row["offset"]): row["n"] for row in landed}) == Counter(
            (one["topic"], one["offset"]) for one in events.values()
        )
        assert counted == [{"n": len(events)}]
        rows = by_id(orders)
        for number, (history, _) in enumerate(self.world):
            arrived = {
                event_number for group, event_number, part in self.arrivals if group == number and part < self.done
            }
            expected = fold(
                [history[n] for n in sorted(arrived)], self.truncates if self.done >= self.changed_by else []
            )
            assert {key: rows[number * KEYS + key] for key in range(KEYS) if number * KEYS + key in rows} == expected, (
                history
            )
        if self.done >= self.changed_by:
            assert visits == [{"v": "a", "w": 5}, {"v": "b", "w": None}]
            assert pears == [{"p": 2}] and rejected == [{"reason": "invalid_json"}]
        assert notes == [{"t": text} for text in self.notes[self.done >= self.changed_by : self.done]]

    def forget(self, checkout: Checkout) -> None:
        """Its models: dbt reads all that there are with every run."""
        for path in (checkout.folder / "models").glob(f"*/{self.system}*"):
            subprocess.run(["rm", "-r", str(path)], check=True)


def new_checkout(folder: Path) -> Checkout:
    """A checkout whose dbt has as many threads as the environment says."""
    checkout = Checkout(folder)
    profile = folder / "profiles" / "profiles.yml"
    text = profile.read_text()
    assert "threads: 4" in text
    profile.write_text(text.replace("threads: 4", "threads: \"{{ env_var('THREADS', '4') | as_number }}\""))
    (folder / "events").mkdir()
    return checkout


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    return new_checkout(tmp_path_factory.mktemp("killed"))


@pytest.fixture(scope="module")
def command(checkout: Checkout) -> Iterator[Command]:
    command = Command(checkout)
    yield command
    command.stop()


def test_a_run_killed_at_any_of_its_commits_is_finished_by_the_next(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    chance = Random(SEED)
    story = Story(command.checkout, chance.randrange(1000))
    for _ in range(PARTS):  # a run of either has more than 20 statements
        with pytest.raises(Killed):
            story.run(command, (chance.randint(2, 20), chance.choice(["before", "after"]), STATEMENT, 0.0))
        with capsys.disabled():
            print(f"\nseed {SEED}: {killed_where(command)}")
        assert story.run_again(command), command.told
        story.check(command)
    story.forget(command.checkout)


def killed_where(command: Command) -> str:
    return next((line for line in command.told.splitlines() if " boundary " in line), "after the end")


@pytest.mark.soak
@pytest.mark.parametrize("quarter", range(4))  # so that workers share them
def test_a_run_killed_at_each_of_its_boundaries_is_finished_by_the_next(
    quarter: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before every statement and every file, and after the last one; then moments within statements, with dbt's
    threads.

    What another process sees after one of them is what it sees before the next, unless that is a file: before it, half
    of it is there. A story is killed once in each of its parts.
    """

    def begun(folder: str) -> Command:
        """In a lakehouse that has its schemas: only its first run creates them."""
        command = Command(new_checkout(tmp_path / folder))
        passed(Story(command.checkout, 0), command)
        return command

    def passed(story: Story, command: Command) -> list[list[str]]:
        names = []
        while story.done < PARTS:
            assert story.run(command), command.told
            names.append(command.passed)
        story.forget(command.checkout)
        return names

    command = begun("counted")
    names = passed(Story(command.checkout, 0), command)
    command.stop()
    chance = Random(SEED)
    kills: list[list[tuple[At, str]]] = []
    for of_part in names:
        statements = sum(bool(re.match(STATEMENT, name)) for name in of_part)
        kills.append([((number, "before", "", 0.0), "1") for number in range(1, len(of_part) + 1)])
        ends = [number for number, next_one in enumerate([*of_part[1:], "write"], 1) if next_one.startswith("write")]
        kills[-1] += [((number, "after", "", 0.0), "1") for number in ends]
        kills[-1] += [
            ((chance.randint(1, statements), "during", STATEMENT, chance.random() / 2), "4")
            for _ in range(SOAK // PARTS)
        ]
        kills[-1] = kills[-1][quarter::4]
        chance.shuffle(kills[-1])
    stories = list(itertools.zip_longest(*kills, fillvalue=(None, "1")))
    unknown = []
    command = begun("killed")
    for number, kills_of_parts in enumerate(stories):
        story = Story(command.checkout, number)
        for at, threads in kills_of_parts:
            story.threads = threads
            try:
                assert story.run(command, at), command.told
                told = f"survived {at}"
                if at and at[1] != "during":
                    unknown.append(at)
                command.stop()  # its moment came too late, or is still to come
            except Killed:
                told = killed_where(command)
                assert story.run_again(command), command.told
            story.check(command)
            with capsys.disabled():
                print(f"\n{number + 1} of {len(stories)}, part {story.done}: {told}", end="", flush=True)
        story.forget(command.checkout)
    command.stop()
    assert not unknown


MAINTENANCE = """
call system.rewrite_data_files(table => '{}', options => map('rewrite-all', 'true'))
call system.expire_snapshots(table => '{}', older_than => current_timestamp(), retain_last => 1)
"""


def maintain(story: Story, command: Command, at: At | None = None) -> None:
    """Compact all tables of a system and expire their snapshots: bronze, ledger, routed records, silver, monitoring."""
    system = story.system
    tables = [
        system,
        f"{system}__files",
        *(f"{system}__{name}" for name in ("events", "orders", "visits", "notes", "pears")),
    ]
    tables += [f"{system}__event_counts", f"{system}__rejected_events"]
    found = command.sql(*(f"show tables in {schema}" for schema in ("bronze", "staging", "silver", "monitoring")))
    names = [f"{row['namespace']}.{row['tableName']}" for rows in found for row in rows if row["tableName"] in tables]
    command.sql(*(line.format(name) for name in sorted(names) for line in MAINTENANCE.split("\n") if line), at=at)


@pytest.mark.soak
def test_tables_compacted_and_expired_at_any_time_go_on(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    """Also where that was killed.

    What has landed is known without snapshots; what was merged, by what is in the tables.
    """
    story, chance = Story(command.checkout, 1), Random(SEED)
    while story.done < PARTS:
        assert story.run(command), command.told
        maintain(story, command)
        assert story.run_again(command), command.told
        assert " 0 new records" in command.told and "Nothing new to build." in command.told
        story.check(command)
    maintain(story, command)
    passed = len(command.passed)
    kills: list[At] = [(chance.randint(1, passed), chance.choice(["before", "after"]), "call", 0.0)]
    if SOAK:
        kills = [(number, "before", "call", 0.0) for number in range(1, passed + 1)] + [(passed, "after", "call", 0.0)]
        kills += [(chance.randint(1, passed), "during", "call", chance.random() / 4) for _ in range(SOAK // 2)]
    for at in kills:
        with suppress(Killed):
            maintain(story, command, at)
            assert at[1] == "during", f"no boundary {at}"
            command.stop()
        with capsys.disabled():
            print(f"\nseed {SEED}: {killed_where(command)}")
        story.goes_on()
        assert story.run(command), command.told
        story.check(command)
    story.forget(command.checkout)


@pytest.mark.soak
def test_ctrl_c_ends_a_run_and_its_spark_while_it_lands_and_while_it_builds(command: Command) -> None:
    story = Story(command.checkout, 2)
    story.append()
    for boundary in ("overwrite", "create or replace table"):
        with pytest.raises(Killed):
            story.run_again(command, (1, "interrupted", boundary, 0.05))
        assert command.status == 130, command.told
        assert command.told.endswith("Stopped. What has landed stays; the next run goes on after it.\n")
        assert not re.search("Traceback|Error", command.told), command.told
    assert story.run_again(command), command.told
    story.check(command)
    story.forget(command.checkout)


@pytest.mark.soak
def test_pipelines_started_at_once_on_a_new_lakehouse_do_each_thing_once(tmp_path: Path) -> None:
    """Two of one system whose files overlap, and one of another system; then two runs of dbt alone on one table."""
    checkout = new_checkout(tmp_path / "at_once")
    story, other = Story(checkout, 3), Story(checkout, 4)
    halves = [checkout.folder / "events" / f"{story.system}.{name}.jsonl" for name in ("first", "both", "last")]
    lines = story.lines[0]
    for number, path in enumerate(halves):
        path.write_text("".join(lines[number::3]))
    story.done = 1
    commands = [Command(checkout) for _ in range(3)]
    for command, pattern in zip(commands, ("[fb]*", "[bl]*"), strict=False):
        events = str(checkout.folder / "events" / f"{story.system}.{pattern}.jsonl")
        command.start("run", environment={**story.environment(), "EVENTS": events})
    other.file.write_text("".join(other.lines[0]))
    other.done = 1
    commands[2].start("run", environment=other.environment())
    assert [command.end() for command in commands] == [0, 0, 0], "\n".join(command.told for command in commands)
    assert "Another run is building in this lakehouse; waiting for it …" in "".join(
        command.told for command in commands
    )
    story.check(commands[0])
    other.check(commands[0])
    commands[2].stop()

    story.goes_on()
    story.append()
    assert commands[0].do("land", environment=story.environment()) == 3
    orders, notes, counts = (f"{story.system}__{name}" for name in ("orders", "notes", "event_counts"))
    models = [f"stg_{orders}", f"stg_{notes}", orders, notes, counts]
    for command in commands[:2]:
        command.start("dbt", "run", "--select", *models)
    told = [said for _, said in (command.end() for command in commands[:2])]
    conflicts = [
        {line.split(":")[0] for line in said if "ValidationException: Found conflicting files" in line} for said in told
    ]
    assert not conflicts[0] & conflicts[1], told  # one of them has built each table
    for said, lost in zip(told, conflicts, strict=True):
        assert all(
            line.split(":")[0] in lost or line.endswith(": skipped") for line in said if line.startswith("  ")
        ), told
    assert story.run_again(commands[0]), commands[0].told
    story.check(commands[0])

    story.goes_on()
    story.append()
    commands[0].do("land", environment=story.environment())
    commands[0].start("dbt", "run", "--select", *models, at=(1, "held", r"insert into \S*stg_\S*__notes", 0.0))
    commands[0].wait_until_held()
    assert commands[1].do("dbt", "run", "--select", *models) == [0, []]
    commands[0].go_on()
    failed, (conflict, *skipped) = commands[0].end()
    assert failed == 3 and conflict.startswith(f"  stg_{notes}: "), (failed, conflict, skipped)
    assert "ValidationException: Found conflicting files" in conflict
    assert sorted(skipped) == [f"  {counts}: skipped", f"  {notes}: skipped"]
    story.check(commands[0])
    for command in commands[:2]:
        command.stop()


@pytest.mark.soak
def test_machines_that_share_tables_but_no_lock_build_at_once(tmp_path: Path) -> None:
    """Each has its own folder, lock and models, and lands and builds increments of one table while the other does."""
    commands = []
    for name in ("first", "second"):
        checkout = new_checkout(tmp_path / name)
        profile = checkout.folder / "profiles" / "profiles.yml"
        own = re.compile(r"\{\{ '' if env_var\('LAKEHOUSE_DIR'.*?\}\}\{\{.*?\}\}/(catalog|warehouse)")
        text, replaced = own.subn(rf"{tmp_path}/\1", profile.read_text())
        assert replaced == 2
        profile.write_text(text)
        commands.append(Command(checkout))
    (tmp_path / "warehouse").mkdir()

    def note(offset: int) -> dict[str, Any]:
        return {**event("c", offset, {"t": str(offset)}, {}, "notes", prefix="machines"), "key": None}

    def start(command: Command, records: list[dict[str, Any]]) -> None:
        file = command.checkout.folder / "events.jsonl"
        with file.open("a") as lines:
            lines.writelines(json.dumps(one) + "\n" for one in records)
        command.start("run", environment={"EVENTS": str(file), "SYSTEM": "machines"})

    first = [event("c", 10 + n, {"id": n, "n": 0}, prefix="machines") for n in range(8)]
    rows, notes, again = dict.fromkeys(range(8), 0), [1, 2], 0
    start(commands[0], [*first, note(1)])
    start(commands[1], [note(2)])
    ended = [command.end() for command in commands]
    assert ended == [0, 0], "\n".join(command.told for command in commands)
    for number in range(5):
        for machine, command in enumerate(commands):
            lsn = 100 * (number + 1) + 50 * machine
            records = [
                event("u", lsn + n, {"id": n, "n": lsn + n}, prefix="machines") for n in range(machine, 8 - machine)
            ]
            rows |= {n: max(rows.get(n, 0), lsn + n) for n in range(machine, 8 - machine)}
            if number == 2 and machine:
                records.append(event("t", lsn + 20, prefix="machines"))
                rows = {}
            notes.append(lsn)
            start(command, [*records, note(lsn)])
        ended = [command.end() for command in commands]
        assert ended == [0, 0], "\n".join(command.told for command in commands)
        again += sum("another machine was first" in command.told for command in commands)
    found = commands[0].sql(
        "select id, n from machines.orders order by id",
        "select t from silver.machines__notes order by int(t)",
        "select sum(events) as n from monitoring.machines__event_counts",
        "select count(*) as n from bronze.machines",
    )
    assert found[0] == [{"id": n, "n": rows[n]} for n in sorted(rows)]
    assert found[1] == [{"t": str(n)} for n in sorted(notes)]
    assert found[2] == found[3] and again, "no conflict: nothing was tested"
    for command in commands:
        command.stop()


NO_MEMORY = (
    "Error: Spark ran out of memory (LAKEHOUSE_DRIVER_MEMORY=480m). Run again with more, for instance "
    "LAKEHOUSE_DRIVER_MEMORY=4g make run; a resident Spark gets it with make up. No record is lost."
)


def told_of(command: Command) -> list[str]:
    return [line for line in command.told.splitlines() if "rror" in line]


@pytest.mark.soak
def test_a_run_without_enough_memory_says_so_and_the_next_one_does_the_rest(command: Command) -> None:
    """While it lands, and while it builds what another one has landed."""
    small = Command(command.checkout, LAKEHOUSE_DRIVER_MEMORY="480m")
    story = Story(command.checkout, 5)
    assert story.run(command), command.told
    story.goes_on(characters=48 << 20)
    assert story.run(small) is False
    assert told_of(small) == [NO_MEMORY] and " 3 new records" not in small.told, small.told
    small.stop()
    assert command.do("land", environment=story.environment()) == 3
    assert story.run_again(small) is False
    assert told_of(small) == [NO_MEMORY] and " 0 new records" in small.told, small.told
    small.stop()
    assert story.run_again(command), command.told
    story.check(command)
    story.forget(command.checkout)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)], capture_output=True, text=True
    )
    if mounted.returncode:
        assert not (os.environ.get("CI") and os.geteuid() == 0), f"CI's root may not mount: {mounted.stderr}"
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.soak
def test_a_full_disk_is_one_line_and_nothing_is_lost_or_repeated(small_disk: Path, tmp_path: Path) -> None:
    """It is full while events land, then while tables are built, then large enough."""
    checkout = new_checkout(tmp_path / "checkout")
    some = Random(1)
    notes = {n: some.randbytes(1500).hex() for n in range(1, 2001)}
    wanted = {n: hashlib.sha256(note.encode()).hexdigest() for n, note in notes.items()}
    events = checkout.folder / "events" / "full.jsonl"
    events.write_text(
        "".join(json.dumps(created(n, id=n, note=note)) + "\n" for n, note in notes.items())
    )  # 3.1 MB compressed
    folder = small_disk / "lakehouse"
    environment = {"LAKEHOUSE_DIR": str(folder), "EVENTS": str(events), "SYSTEM": "full"}
    full = (
        f"Error: a disk is full: that of LAKEHOUSE_DIR={folder}, or of Spark's own files (SPARK_LOCAL_DIRS, /tmp). Free"
        " space and run again; no record is lost.\n"
    )
    process = checkout.start(sys.executable, "-m", "scripts.run", **environment)
    told, errors = process.communicate(timeout=900)
    errors = errors.removeprefix("WARNING: Using incubator modules: jdk.incubator.vector\n")
    assert (process.returncode, errors.strip() + "\n") == (1, full)
    assert " 2,000 new records" not in told

    subprocess.run(["mount", "-o", "remount,size=7m", str(small_disk)], check=True)
    command = Command(checkout, **environment)
    assert command.do("run") == 1 and command.told.endswith(full), command.told
    assert "full: 2,000 new records" in command.told
    assert not re.search(r"Traceback|Exception|No space|^\s+at ", command.told, re.MULTILINE), command.told
    command.stop()

    subprocess.run(["mount", "-o", "remount,size=60m", str(small_disk)], check=True)
    assert command.do("run") == 0, command.told
    line = next(line for line in command.told.splitlines() if line.startswith("public.orders"))
    assert line.split()[2:9] == ["2,000", "2,000", "0", "0", "0", "0", "2,000"]
    found, rows, counted = command.sql(
        "select count(*) as n, count(distinct offset) as offsets, count(distinct value) as texts from bronze.full",
        "select id, sha2(note, 256) as note from full.orders",
        "select sum(events) as n from monitoring.full__event_counts",
    )
    assert found == [{"n": 2000, "offsets": 2000, "texts": 2000}] and counted == [{"n": 2000}]
    assert {row["id"]: row["note"] for row in rows} == wanted and len(rows) == 2000
    command.stop()
