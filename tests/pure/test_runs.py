"""What `make run` notes of itself for `make report`."""

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest


def a_run(**given: Any) -> dict[str, Any]:
    run = {
        "started": 1_795_800_600.0,
        "seconds": {"start": 2.0, "build": 8.5},
        "systems": ["shop"],
        "records": 3,
        "tables": 1,
    }
    return {**run, "models": 4, "status": 0, "problem": "", **given}


def test_runs_are_noted_and_broken_lines_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from scripts import runs

    monkeypatch.setenv("LAKEHOUSE_DIR", str(tmp_path / "none"))
    runs.begin()
    runs.end(1)  # there is no folder
    assert runs.last(9) == [] and not (tmp_path / "none").exists()

    monkeypatch.setenv("LAKEHOUSE_DIR", str(tmp_path))
    monkeypatch.setattr(runs, "KEPT", 4)
    file = tmp_path / "runs.jsonl"
    broken = [b"", b"{", b"\xff", b"[]", b"[" * 9999, json.dumps(a_run(seconds={"a": "b"})).encode()]
    broken += [json.dumps(a_run(status="0")).encode(), json.dumps(a_run(started=1e300)).encode(), b'{"started": NaN}']
    file.write_bytes(b"\n".join([*broken, json.dumps(a_run(records=7)).encode()]))
    assert [run["records"] for run in runs.last(9)] == [7]

    for number in range(3):
        runs.begin()
        runs.of(["shop"])
        runs.phase("build")
        runs.landed(number)
        runs.landed(10)
        runs.building(["stg_shop__a", "shop__a", "shop__event_counts"])
        runs.problem("first")
        runs.problem("second")
        runs.end(number)
        runs.end(9)
    runs.begin(["shop"], is_round=True)
    runs.end(0)  # did nothing
    last = runs.last(3)
    assert [(run["records"], run["status"]) for run in last] == [(10, 0), (11, 1), (12, 2)]
    assert {(run["tables"], run["models"], run["problem"], *run["systems"]) for run in last} == {
        (1, 3, "first", "shop")
    }
    assert set(last[0]["seconds"]) == {"start", "build"}
    assert len(file.read_bytes().splitlines()) == 4 and not (tmp_path / "runs.part").exists()


def test_a_large_first_load_has_both_compilers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from scripts import run
    from scripts.built import STATE
    from scripts.spark import LONG_RUN

    monkeypatch.setenv("LAKEHOUSE_DIR", str(tmp_path))
    monkeypatch.setattr(run, "LARGE", 100)
    (tmp_path / "built.json").write_text(json.dumps({**dict.fromkeys(STATE, {}), "batches": {"known": 3}}))
    plain, packed = tmp_path / "events.jsonl", tmp_path / "events.jsonl.gz"
    plain.write_bytes(b"x" * 60)
    packed.write_bytes(b"x" * 7)

    def options(files: dict[str, list[Path]], given: str | None = None) -> str | None:
        monkeypatch.delenv("LAKEHOUSE_JVM_OPTIONS", raising=False)
        if given is not None:
            monkeypatch.setenv("LAKEHOUSE_JVM_OPTIONS", given)
        run._fit_jvm_to(files)
        return os.environ.get("LAKEHOUSE_JVM_OPTIONS")

    assert (
        options({"new": [plain, packed]})
        == options({"a": [plain], "b": [plain]})
        == options({"b": [packed]})
        == LONG_RUN
    )
    assert options({"new": [plain, tmp_path / "gone"]}) is None and options({"known": [plain, packed]}) is None
    assert options({"new": [plain, packed]}, given="-Xint") == "-Xint"
    monkeypatch.delenv("LAKEHOUSE_JVM_OPTIONS")


def test_progress_that_nobody_reads_any_more_stops_no_thread_of_dbt() -> None:
    from scripts.dbt_commands import _Progress

    said: list[str] = []

    def say(text: str) -> None:
        said.append(text)
        raise BrokenPipeError

    progress = _Progress({"orders"}, say)
    progress.told_at = float("-inf")
    node = SimpleNamespace(node_info=SimpleNamespace(node_name="orders"))
    progress(SimpleNamespace(info=SimpleNamespace(name="NodeStart"), data=node))
    assert said == ["  0 of 1 models built; now orders …"]


def test_the_tables_of_a_system_are_known_whatever_its_name(project: Path) -> None:
    from scripts.maintain import of_system

    named = ["bronze.stg", "bronze.stg__files", "staging.stg_stg__t", "silver.stg__t", "monitoring.stg__event_counts"]
    tables = [f"`{schema}`.`{name}`" for schema, name in (one.split(".") for one in [*named, "bronze.shop"])]
    assert of_system([*tables, "`silver`.`shop__t`"], "stg") == tables[:-1]
