"""Each case of `tests/cases`: the macros, rendered, give its rows, types, rejects and notes."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY

from scripts.errors import LakehouseError

CASES = REPOSITORY / "tests" / "cases"
MEMBERS = {"why", "system", "steps", "tables", "changes", "counts", "rejected"}
OF_STEP = {"events", "lands", "connector", "keys", "servers", "declare", "notes", "error"}


def names() -> list[str]:
    return sorted(path.relative_to(CASES).with_suffix("").as_posix() for path in CASES.rglob("*.json"))


@pytest.mark.parametrize("name", names())
def test_case(workbench: Any, name: str) -> None:
    check(workbench, json.loads((CASES / f"{name}.json").read_text(encoding="utf-8")))


def test_columns_that_are_not_read_are_a_warning(workbench: Any) -> None:
    from scripts import runs

    name = "bad_input/columns_that_differ_in_case_only_leave_their_table_as_it_was"
    runs.begin()
    check(workbench, json.loads((CASES / f"{name}.json").read_text(encoding="utf-8")))
    assert runs.warned() == {"as_it_was_4"}  # the exit status is 3


def check(workbench: Any, case: dict[str, Any]) -> None:
    """Take the steps of a case and compare what it results in."""
    assert set(case) <= MEMBERS and all(set(step) <= OF_STEP for step in case["steps"]), (
        "unknown members: tests/cases/README.md"
    )
    system = case["system"]
    for step in case["steps"]:
        land(workbench, system, step)
        for table, columns in step.get("declare", {}).items():
            declare(workbench.project / "models", system, table, columns)
        arguments = {name: step[name] for name in ("connector", "keys", "servers") if name in step}
        if "error" in step:
            with pytest.raises(LakehouseError) as raised:
                workbench.build_landed(system, **arguments)
            assert short(workbench, f"{type(raised.value).__name__}: {raised.value}") == step["error"]
        else:
            notes = workbench.build_landed(system, **arguments).notes
            assert [short(workbench, note) for note in notes] == step["notes"]
    found = {one.relation: one for one in workbench.tables(system)}
    assert sorted(found) == sorted(case["tables"])
    for relation, expected in case["tables"].items():
        name = f"{system}.{relation}" if found[relation].table.keys else f"silver.{system}__{relation}"
        if "types" in expected:
            types = {column: kind for column, kind in workbench.dtypes(name).items() if not column.startswith("_cdc_")}
            assert types == expected["types"], relation
        assert in_order(of_source(workbench.plain_rows(name))) == in_order(expected["rows"]), relation
    for relation, changes in case.get("changes", {}).items():
        told = workbench.sql(
            f"select _cdc_event_id, _cdc_kind, _cdc_position from staging.stg_{system}__{relation} order by 1"
        )
        assert [[short(workbench, event), *others] for event, *others in told] == changes, relation
    if "counts" in case:
        counts = "select source_table, kind, sum(events) from monitoring.{}__event_counts group by 1, 2 order by 1, 2"
        assert [list(row) for row in workbench.sql(counts.format(system))] == case["counts"]
    rejected = [[short(workbench, event), reason] for event, reason in workbench.rejected(system)]
    assert rejected == case.get("rejected", [])


def land(workbench: Any, system: str, step: dict[str, Any]) -> None:
    """Land the events of a step, in one landing unless `lands` says how many there are in each."""
    at = 0
    for count in step.get("lands", [len(step["events"])] if step["events"] else []):
        workbench.land(system, step["events"][at : at + count])
        at += count
    assert at == len(step["events"]), "`lands` does not add up to the events of the step"


def declare(models: Path, system: str, table: str, columns: dict[str, str]) -> None:
    """Give columns of a staging model other types than were found, as a user does."""
    path = models / "staging" / system / f"stg_{system}__{table}.sql"
    text = path.read_text(encoding="utf-8")
    for column, kind in columns.items():
        text, count = re.subn(f"'{re.escape(column)}': '[^']*'", f"'{column}': '{kind}'", text)
        assert count, f"{path.name} has no column {column}"
    path.write_text(text, encoding="utf-8")


def short(workbench: Any, text: str) -> str:
    """A text that names files, without the folder of the test."""
    return text.replace(f"{workbench.project / 'events'}/", "").replace(str(workbench.project), "<project>")


def of_source(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if not name.startswith("_cdc_")} for row in rows]


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: json.dumps(row, ensure_ascii=False, sort_keys=True))
