"""Commands of dbt in this process and session."""

import os
import re
import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any

from scripts import runs
from scripts.errors import LakehouseError, ResourceError
from scripts.messages import cause, exhausted
from scripts.spark import PROFILES, PROJECT

PROGRESS_SECONDS = 5
# What Iceberg, its catalogs and our own merge say if somebody else has changed or created the table meanwhile.
CONFLICT = re.compile(
    r"\bValidationException|CommitFailedException|AlreadyExists|ALREADY_EXISTS"
    r"|another run has [a-z ]+ meanwhile"
)
# Nothing reads the manifest that dbt would write for each run; `make docs` writes its own.
OPTIONS = ["--log-level", "none", "--log-level-file", "debug", "--no-write-json"]
OPTIONS += ["--profiles-dir", str(PROFILES), "--project-dir", str(PROJECT)]


def prepare() -> None:
    """Import dbt, and have it parse the project where it never has.

    What is wrong there is reported when models are built.
    """
    with suppress(Exception):  # also if the run has ended with an error meanwhile: this thread would print a traceback
        from dbt.cli.main import dbtRunner

        if not (PROJECT / os.environ.get("DBT_TARGET_PATH", "target") / "partial_parse.msgpack").exists():
            dbtRunner().invoke(["parse", *OPTIONS])


def log_file() -> str:
    """Where dbt's own messages go."""
    return f"{os.environ.get('DBT_LOG_PATH', 'logs')}/dbt.log"


def manifest() -> Any:
    """What dbt knows of all models: parsed once, for all that the run asks of dbt."""
    from dbt.cli.main import dbtRunner

    return _result(dbtRunner().invoke(["parse", *OPTIONS]))


def _result(result: Any) -> Any:
    """What a command of dbt gave, or the reason why it could not begin."""
    if isinstance(result.exception, KeyboardInterrupt):
        raise result.exception
    if result.exception:
        if reason := exhausted(str(result.exception)):
            raise ResourceError(reason)
        raise LakehouseError(f"dbt: {result.exception}")
    return result.result


def run(
    arguments: list[str],
    say: Callable[[str], None],
    models: Collection[str] = (),
    manifest: Any = None,
    conflicts: list[str] | None = None,
) -> list[str]:
    """Run dbt in this process and session, and say what failed and why. Returns the names of the models that failed.

    Args:
        models: those that it builds; it says now and then how far it is. Without them it does not.
        manifest: what dbt has parsed, as `manifest` gives it; without it dbt parses.
        conflicts: gets the names of models whose tables somebody else changed meanwhile. If there are any, nothing is
            said of what failed: the caller tries it again.
    """
    from dbt.cli.main import dbtRunner

    runs.building(models)
    reasons: list[str] = []  # of an operation that failed: its result has none

    def note(event: Any) -> None:
        if event.info.name in ("RunningOperationCaughtError", "RunningOperationUncaughtError"):
            reasons.append(event.data.exc)
        elif event.info.name == "JinjaLogWarning":
            with suppress(OSError):  # as in `_Progress`
                say(f"  {event.data.msg}")

    callbacks: list[Any] = [note, *[_Progress(models, say)] * bool(models)]
    nodes = _result(dbtRunner(manifest, callbacks).invoke([*arguments, *OPTIONS]))
    failed = [node for node in nodes if str(node.status) in ("error", "fail", "skipped")]
    if conflicts is not None:
        conflicts += [_name(node) for node in failed if CONFLICT.search(str(node.message))]
    for node in failed:
        message = str(node.message or "\n".join(reasons))
        if reason := exhausted(message):
            raise ResourceError(reason)
        if not conflicts:
            lines = [line.strip() for line in message.splitlines() if line.strip()]
            told = cause(message) or " ".join(lines[:4]) or node.status
            problem = f"{_name(node)}: {told}"
            runs.problem(problem)
            say(f"  {problem}")
    return [_name(node) for node in failed]


def _name(result: Any) -> str:
    """What a result is of: a model, a test, or a macro that was run as an operation."""
    return str(result.node.name) if hasattr(result, "node") else str(result.unique_id).rpartition(".")[2]


class _Progress:
    """Says every few seconds how many models and tables dbt has built, and which it builds.

    Args:
        models: the names of all.
    """

    def __init__(self, models: Collection[str], say: Callable[[str], None]) -> None:
        self.say, self.models = say, len(models)
        self.tables = {name for name in models if f"stg_{name}" in models}
        self.built: set[str] = set()
        self.running: dict[str, None] = {}  # in the order in which they started
        self.told_at = time.monotonic()
        self.lock = threading.Lock()  # dbt has several threads

    def __call__(self, event: Any) -> None:
        if event.info.name not in ("NodeStart", "NodeFinished"):
            return
        name = event.data.node_info.node_name
        with self.lock:
            if event.info.name == "NodeFinished":
                self.running.pop(name, None)
                self.built.add(name)
                return
            self.running[name] = None
            if time.monotonic() - self.told_at >= PROGRESS_SECONDS:
                self.told_at = time.monotonic()
                with suppress(OSError):  # of a terminal that is gone: dbt would wait for this thread forever
                    self.say(self.line())

    def line(self) -> str:
        tables = f", {len(self.built & self.tables)} of {len(self.tables)} tables" if self.tables else ""
        models = max(self.models, len(self.built) + len(self.running))  # live models that are tables come besides
        return f"  {len(self.built)} of {models} models built{tables}; now {', '.join(self.running)} …"
