"""What the suite notices: each slip of a list is made in a copy of the project, and tests are run until one fails.

    python tests/mutate.py [--only N,M] [--selectors FILE] [--then-all] [--project FOLDER]

The slips stand in `mutations.yml`. A test that failed has to pass without them: all that did are run once more at the
end, on the project as it is. The status is 0 if each slip is noticed.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

PROJECT = Path(__file__).resolve().parent.parent
MUTATIONS = PROJECT / "tests" / "mutations.yml"
LEVELS = ["tests/pure", "tests/rendered", "tests/engine", "tests/stories", "tests/systems"]  # the cheapest first
NOT_COPIED = (".git", ".venv", ".lakehouse", "target", "logs", "__pycache__", ".hypothesis", ".*_cache")
SECONDS = 3600  # of one call of pytest; a slip may make something go on for ever
NO_TESTS = 5  # pytest's exit status where it ran none


class MutationError(Exception):
    """Something is wrong with a mutation, or with the way that it is tried."""


@dataclass(frozen=True)
class Mutation:
    """A slip: in `file`, `old`, which stands there once, is `new`. `tests` are the likeliest to notice it, in order."""

    number: int
    name: str
    file: str
    old: str
    new: str
    wrong: str  # what goes wrong then
    tests: list[str]


def mutations(path: Path = MUTATIONS) -> list[Mutation]:
    entries = yaml.safe_load(path.read_text(encoding="utf-8"))
    found = [Mutation(number, **{"tests": [], **entry}) for number, entry in enumerate(entries, 1)]
    names = [one.name for one in found]
    if twice := {name for name in names if names.count(name) > 1}:
        raise MutationError(f"{path}: {', '.join(sorted(twice))} stands there twice")
    return found


def mutated(text: str, mutation: Mutation) -> str:
    """The text of a file with the slip in it."""
    times = text.count(mutation.old)
    if times != 1 or mutation.old == mutation.new:
        told = f"its text stands {times} times in {mutation.file}; expected once, and another one in its place"
        raise MutationError(f"mutation {mutation.number} ({mutation.name}): {told}")
    return text.replace(mutation.old, mutation.new)


@contextmanager
def copy_of(project: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="mutate-", ignore_cleanup_errors=True) as folder:
        copy = Path(folder) / project.name
        shutil.copytree(project, copy, ignore=shutil.ignore_patterns(*NOT_COPIED))
        (copy / ".venv").symlink_to((project / ".venv").resolve())
        if (shared := project.parent / "shared").exists():  # the corpora
            (Path(folder) / "shared").symlink_to(shared.resolve())
        yield copy


def failing(copy: Path, selectors: list[str], *options: str) -> list[str]:
    """The tests among these that fail, with `-x` the first of them; a call that takes too long is one.

    Those of `make soak` run where they are named.
    """
    fixed = ["-q", "-rfE", "-p", "no:cacheprovider", f"--basetemp={copy.parent}/pytest"]
    fixed += ["-m", "soak or not soak"] if all("::" in one for one in selectors) else []
    pytest = subprocess.Popen(
        [sys.executable, "-m", "pytest", *fixed, *options, *selectors],
        cwd=copy,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={name: value for name, value in os.environ.items() if name != "SPARK_REMOTE"},
        start_new_session=True,  # so that Spark's JVM and what else the tests start can be ended with it
    )
    try:
        told, _ = pytest.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return [f"{' '.join(selectors)}: no end after {SECONDS} s"]
    finally:
        with suppress(ProcessLookupError):
            os.killpg(pytest.pid, signal.SIGKILL)
        pytest.wait()
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+?\.py(?:::.+?)?)(?: - .*)?$", told, re.MULTILINE)
    if pytest.returncode in (0, NO_TESTS):
        return []
    if not failed and "Timeout (0:" in told:  # of pytest's own faulthandler_timeout, which ends the process
        return [f"{' '.join(selectors)}: a test did not end"]
    if not failed:
        raise MutationError(f"pytest {' '.join(selectors)} ended with {pytest.returncode}:\n{told[-3000:]}")
    return failed


def first_failure(project: Path, mutation: Mutation, then_all: bool) -> str | None:
    """The test that notices the slip, or None."""
    tests = mutation.tests or [level for level in LEVELS if (project / level).exists()]
    if then_all or not tests:
        tests = [*tests, "tests"]
    with copy_of(project) as copy:
        path = copy / mutation.file
        path.write_text(mutated(path.read_text(encoding="utf-8"), mutation), encoding="utf-8")
        for selector in tests:
            if failed := failing(copy, selector.split(), "-x"):
                return failed[0]
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="N,M", help="numbers or names of mutations")
    parser.add_argument("--selectors", metavar="FILE", type=Path, help="JSON of names and tests to run instead")
    parser.add_argument("--then-all", action="store_true", help="run the whole suite where these do not fail")
    parser.add_argument("--project", metavar="FOLDER", type=Path, default=PROJECT, help="a checkout to try them on")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # which ends what runs, and takes the copy away
    project: Path = given.project.resolve()
    chosen = mutations()
    for one in chosen:  # before hours are spent
        mutated((project / one.file).read_text(encoding="utf-8"), one)
    if given.selectors:
        told = json.loads(given.selectors.read_text(encoding="utf-8"))
        chosen = [replace(one, tests=told.get(one.name, one.tests)) for one in chosen]
    if given.only:
        wanted = given.only.split(",")
        if unknown := set(wanted) - {known for one in chosen for known in (str(one.number), one.name)}:
            raise MutationError(f"--only: there is no mutation {', '.join(sorted(unknown))}")
        chosen = [one for one in chosen if str(one.number) in wanted or one.name in wanted]
    noticed: list[str] = []
    for one in chosen:
        began = time.monotonic()
        failed = first_failure(project, one, given.then_all)
        noticed += [failed] if failed else []
        result = failed or f"survived ({', '.join(one.tests) or 'all levels'})"
        print(f"{one.number:2}  {one.file}  {one.wrong}: {result}  [{time.monotonic() - began:.0f} s]", flush=True)
    wrong = []
    if tests := sorted({test for test in noticed if "::" in test}):
        with copy_of(project) as copy:
            wrong = failing(copy, tests)
    for test in wrong:
        print(f"Error: {test} fails without a mutation, too", file=sys.stderr)
    print(f"{len(noticed)} of {len(chosen)} mutations are noticed")
    return 1 if wrong or len(noticed) < len(chosen) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except MutationError as error:
        sys.exit(f"Error: {error}")
