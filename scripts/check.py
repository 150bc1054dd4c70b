"""`make check`: what the models of this repository make of the events that it keeps, as its CI does it.

`events/<system>/` holds a few events of each system; without that folder it is the demo. Models that people wrote are
linted, all are parsed, and built in a lakehouse of their own; then dbt's tests run. The lakehouse stays, for `make
docs`.
"""

import contextlib
import io
import os
import shutil
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path
from typing import TextIO

from scripts.arguments import DEMO, OPTIONS, SOURCES
from scripts.errors import LakehouseError
from scripts.own_models import own_files
from scripts.run import WARNED
from scripts.run import main as make_run
from scripts.spark import PROFILES, PROJECT, lakehouse_dir, session

LAKEHOUSE = "target/check"
# As `make lint` has it. A fork need not have a model of each folder that dbt_project.yml configures.
WARNINGS_FAIL = ("--warn-error-options", '{"error": "all", "silence": ["UnusedResourceConfigPath"]}')


class _Copy(io.StringIO):
    """Text that is printed all the same."""

    def __init__(self, terminal: TextIO) -> None:
        super().__init__()
        self._terminal = terminal

    def write(self, text: str) -> int:
        self._terminal.write(text)
        self._terminal.flush()
        return super().write(text)


def run(events: str = "", system: str = "") -> str:
    """What `make run` prints. A run that fails is the end."""
    for name in (*SOURCES, *OPTIONS, "REPLAY"):
        os.environ.pop(name, None)
    os.environ.update({"EVENTS": events, "SYSTEM": system})
    printed = _Copy(sys.stdout)
    with contextlib.redirect_stdout(printed):
        status = make_run()
    if status not in (0, WARNED):  # dbt's tests say more of what a run warns of
        sys.exit(f"make run failed with status {status}: see above.")
    return printed.getvalue()


def dbt(*arguments: str) -> list[str]:
    """Run dbt and return what failed, with its message."""
    from dbt.cli.main import dbtRunner

    result = dbtRunner().invoke([*arguments, "--quiet", "--log-level", "none", "--profiles-dir", str(PROFILES)])
    if result.exception:
        return [f"dbt {' '.join(arguments)}: {result.exception}"]
    nodes = [] if result.success else getattr(result.result, "results", [])
    return [f"{node.node.name}: {node.message}" for node in nodes if str(node.status) not in ("success", "pass")]


def event_folders(folder: Path) -> dict[str, Path]:
    """System → the folder of its events; empty if there is no `folder`.

    Raises:
        LakehouseError: it holds no folders, or files beside them.
    """
    if not folder.exists():
        return {}
    entries = [path for path in sorted(folder.iterdir()) if path.name[0] not in "._"]
    systems = {path.name: path for path in entries if path.is_dir()}
    if files := [path.name for path in entries if not path.is_dir() and path.suffix != ".md"]:
        raise LakehouseError(f"{folder}/{files[0]} is of no system. Move it into {folder}/<system>/.")
    if not systems:
        raise LakehouseError(f"{folder} holds no events. Put some of each system into {folder}/<system>/.")
    return systems


def lint(models: Path) -> list[str]:
    """Lint the SQL of the models that people wrote. Those that `make run` writes are all of one form."""
    files = [str(models / path) for path in own_files(models, "") if path.endswith(".sql")]
    if not files:
        return []
    print(f"Linting {len(files)} models …", flush=True)
    command = [sys.executable, "-m", "sqlfluff", "lint", "--disable-progress-bar", *files]
    done = subprocess.run(command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if not done.returncode:
        return []
    print(done.stdout)
    return ["sqlfluff found what is listed above; `.venv/bin/sqlfluff fix <file>` mends most of it"]


def test(models: Path, systems: Collection[str]) -> list[str]:
    """Run dbt's tests, but not those of models that read a system without events here."""
    others = [path.stem for path in sorted((models / "bronze").glob("*.yml")) if path.stem not in systems]
    without = ["--exclude", *(f"source:bronze.{system}+" for system in others)] if others else []
    return dbt("test", *without)


def texts(models: Path) -> dict[str, bytes]:
    files = (path for path in sorted(models.rglob("*")) if path.is_file())
    return {str(path.relative_to(models.parent)): path.read_bytes() for path in files}


def main() -> int:
    os.chdir(PROJECT)
    for name in ("SPARK_REMOTE", "LAKEHOUSE_TARGET"):  # the events of the check are no business of a server or a store
        os.environ.pop(name, None)
    os.environ["LAKEHOUSE_DIR"] = LAKEHOUSE
    models = PROJECT / "models"
    try:
        folders = event_folders(Path("events"))
    except LakehouseError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    problems = lint(models)
    print("Parsing …", flush=True)
    if wrong := dbt("parse", "--no-partial-parse", *WARNINGS_FAIL):
        problems += wrong
    else:
        shutil.rmtree(lakehouse_dir(), ignore_errors=True)
        session()
        problems += dbt("seed")  # models may read them
        before = texts(models)
        if not folders:
            print("There is no folder events/: the demo is checked.", flush=True)
            run()
        for system, folder in folders.items():
            run(str(folder), system)
        after = texts(models)
        for path in sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path)):
            problem = "is not what make run writes for these events, and was written. Look at it, and commit it"
            problems.append(f"{path} {problem}")
        print("Testing …", flush=True)
        problems += test(models, folders or DEMO)
    for problem in problems:
        print(f"Error: {problem}", file=sys.stderr)
    if not problems:
        print(f"All checks passed. The tables are in {lakehouse_dir()}.")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
