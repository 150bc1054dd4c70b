"""Builds that die before one of their statements, told apart by what executes these: dbt's cursor or the engine's
adapter.
"""

import itertools
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from conftest import Lakehouse

MUTATION = re.compile(r"\s*(/\*.*?\*/\s*)?(create|insert|merge|delete|update|alter)\b", re.DOTALL | re.IGNORECASE)
Executing = tuple[Any, str]  # a class and the name of its method that executes statements


@contextmanager
def dying_at(executing: Executing, commit: int) -> Iterator[None]:
    """The run dies before the statement of this number that would write, and writes nothing more."""
    execute, seen = getattr(*executing), itertools.count(1)

    def dies(self: Any, sql: str, *parameters: Any) -> Any:
        if MUTATION.match(sql) and next(seen) >= commit:
            raise RuntimeError("the process was killed")
        return execute(self, sql, *parameters)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(*executing, dies)
        yield


def build(lakehouse: Lakehouse, system: str) -> None:
    """Scaffold and build what has landed."""
    done = lakehouse.scaffold(system)
    said: list[str] = []
    assert lakehouse._build.build(lakehouse.spark, [system], [done], said.append) == 0, said


def build_and_die(lakehouse: Lakehouse, system: str, executing: Executing, commit: int) -> bool:
    """The same, dying at a commit. Whether all was built all the same, because there are not so many."""
    from scripts.errors import LakehouseError

    done = lakehouse.scaffold(system)
    with dying_at(executing, commit), suppress(LakehouseError):
        return bool(lakehouse._build.build(lakehouse.spark, [system], [done], lambda _: None) == 0)
    return False


def land_and_die(lakehouse: Lakehouse, system: str, path: Path) -> None:
    """Land a file with a loader that dies between its commits to bronze and to the ledger."""
    from scripts import ledger

    def die(*_: Any) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledger, "write", die)
        with pytest.raises(KeyboardInterrupt):
            lakehouse.land(system, path)
