"""What the last runs did and how long they took: a line of JSON for each in `runs.jsonl`, which `make report` shows.

A process has one run at a time. Its parts note what they do, so that none has to hand that on.
"""

import json
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Any

from scripts.spark import lakehouse_dir, locked

KEPT = 1000
LONGEST = 500  # characters of a problem
# Of a line: name → type. Another version of this project may have written it.
FIELDS = {
    "started": float,
    "seconds": dict,
    "systems": list,
    "records": int,
    "tables": int,
    "models": int,
    "status": int,
    "problem": str,
}


class _Run:
    def __init__(self, systems: Collection[str] = (), is_round: bool = False) -> None:
        self.is_round, self.is_over = is_round, False
        self.started = time.time()
        self.systems = list(systems)
        self.seconds: dict[str, float] = {}
        self.records = 0
        self.models: set[str] = set()
        self.problem = ""
        self.warned: set[str] = set()
        self.phase, self.since = "land" if is_round else "start", time.monotonic()

    def enter(self, name: str) -> None:
        now = time.monotonic()
        self.seconds[self.phase] = self.seconds.get(self.phase, 0) + now - self.since
        self.phase, self.since = name, now


_run = _Run()


def begin(systems: Collection[str] = (), is_round: bool = False) -> None:
    """A run begins, of these systems; or a round of one that goes on, which is noted only if it does something."""
    global _run
    _run = _Run(systems, is_round)


def of(systems: Collection[str]) -> None:
    """The run is known to be of these systems."""
    _run.systems = list(systems)


def phase(name: str) -> None:
    """The time from now on is spent on this."""
    _run.enter(name)


def landed(records: int) -> None:
    _run.records += records


def building(models: Collection[str]) -> None:
    _run.models |= set(models)


def problem(text: str) -> None:
    """Something went wrong; the first such text of a run is kept."""
    _run.problem = _run.problem or text[:LONGEST]


def warn(system: str) -> None:
    """What the run did for a system is not all there was to do: the exit status of a run without errors is 3."""
    _run.warned.add(system)


def warned() -> set[str]:
    """The systems of which `warn` was called."""
    return _run.warned


def end(status: int) -> None:
    """Append the run to the file, of which the last lines are kept, unless that is done.

    The file is replaced as a whole. A run does not fail because this cannot be written, nor makes a lakehouse for it.
    """
    if _run.is_over or (_run.is_round and not (_run.records or _run.models or _run.problem)):
        return
    _run.enter("")
    _run.is_over = True
    line = {
        "started": round(_run.started, 3),
        "seconds": {name: round(seconds, 3) for name, seconds in _run.seconds.items()},
        "systems": _run.systems,
        "records": _run.records,
        "tables": sum(f"stg_{name}" in _run.models for name in _run.models),
        "models": len(_run.models),
        "status": status,
        "problem": _run.problem,
    }
    with suppress(OSError), locked("runs.lock"):
        lines = _file().read_bytes().splitlines() if _file().exists() else []
        part = _file().with_suffix(".part")
        part.write_bytes(b"".join(each + b"\n" for each in [*lines[1 - KEPT :], json.dumps(line).encode()]))
        part.replace(_file())


def last(number: int) -> list[dict[str, Any]]:
    """The last runs, the newest last. A line that is none of them is left out."""
    found: list[dict[str, Any]] = []
    lines = _file().read_bytes().splitlines() if _file().exists() else []
    for line in lines:
        with suppress(ValueError, RecursionError):
            one = json.loads(line)
            if isinstance(one, dict) and all(_is(one.get(name), kind) for name, kind in FIELDS.items()):
                found.append(one)
    return found[-number:]


def _is(value: Any, kind: type) -> bool:
    """Whether a value of a line is of a type, and if it holds others, these are numbers or names."""
    if kind is dict:
        return isinstance(value, dict) and all(_is(each, float) for each in value.values())
    if kind is list:
        return isinstance(value, list) and all(isinstance(each, str) for each in value)
    is_number = isinstance(value, int) or (isinstance(value, float) and abs(value) < 1e15)
    return isinstance(value, str) if kind is str else is_number and (kind is float or isinstance(value, int))


def _file() -> Path:
    return lakehouse_dir() / "runs.jsonl"
