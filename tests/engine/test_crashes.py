"""A run that dies before any of its statements that write, or of its files, is finished by the next one."""

import itertools
import shutil
from pathlib import Path
from typing import Any

import pytest
from conftest import Lakehouse
from crashes import build, build_and_die
from event_factory import PLACEHOLDER, created
from worlds import KEYS, Event, by_id, fold, record


def of_table(lakehouse: Lakehouse, system: str, table: str) -> dict[int, dict[str, Any]]:
    return by_id(lakehouse.rows(f"{system}.{table}"))


def test_a_run_that_dies_before_any_of_its_commits_is_repeated_without_a_trace(lakehouse: Lakehouse) -> None:
    """Every statement of a run that writes is a place to die: in the first run, and in one with a truncate and values
    left out.
    """
    from adapter import Engine

    system = "dying"
    row = {"a": "x", "b": "y", "n": 0}
    history: list[Event] = [(5, "c", key, row, "false") for key in range(KEYS)]
    truncates: list[int] = []
    lakehouse.land(system, [record(system, "orders", 0, item, 100 + number) for number, item in enumerate(history)])
    crashes = next(number for number in range(1, 100) if build_and_die(lakehouse, system, (Engine, "sql"), number))
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
        survived = build_and_die(lakehouse, system, (Engine, "sql"), number)
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
    """A run that dies before it puts a file in its place: what it leaves is not taken for edits, whatever is next."""
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
    for number in range(4):  # the declaration, two models (the live one is there), the declaration in its place
        shutil.copytree(before, models, dirs_exist_ok=True)
        left = number
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(Path, "replace", dies)
            lakehouse.scaffold("parts")
        if number == 3:
            lakehouse.land("parts", [created(3, id=3, b="y")])
        assert not any("edited" in note for note in lakehouse.scaffold("parts").notes)
        columns = ("a",) if number < 3 else ("a", "b")
        assert all(
            f"'{name}'" in written()[file]
            for name in columns
            for file in ("parts__orders.sql", "stg_parts__orders.sql")
        )
        assert not list(models.rglob("*.intended"))
