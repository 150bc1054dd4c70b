"""`make check`: which events it takes, what it runs, and what it reports."""

from pathlib import Path
from typing import Any

import pytest

from scripts.errors import LakehouseError


def test_each_folder_of_events_is_a_system(project: Path, tmp_path: Path) -> None:
    from scripts.check import event_folders

    events = tmp_path / "events"
    assert event_folders(events) == {}
    events.mkdir()
    (events / "README.md").touch()
    with pytest.raises(
        LakehouseError, match=r"events holds no events. Put some of each system into .*/events/<system>/\."
    ):
        event_folders(events)
    for name in ("shop", "crm", ".hidden"):
        (events / name).mkdir()
    assert event_folders(events) == {"crm": events / "crm", "shop": events / "shop"}
    (events / "orders.jsonl").touch()
    with pytest.raises(
        LakehouseError, match=r"events/orders.jsonl is of no system. Move it into .*/events/<system>/\."
    ):
        event_folders(events)


def test_a_check_reports_what_fails_and_which_models_the_events_would_change(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from scripts import check

    monkeypatch.setenv("LAKEHOUSE_DIR", "not this one")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(check, "PROJECT", tmp_path)
    for path in (
        "events/mine/a.jsonl",
        "models/bronze/mine.yml",
        "models/bronze/other.yml",
        "target/check/old",
        "not this one/old",
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    calls: list[tuple[str, ...]] = []
    fails: dict[str, list[str]] = {}
    model = tmp_path / "models" / "silver.sql"

    def dbt(*arguments: str) -> list[str]:
        calls.append(arguments)
        return fails.get(arguments[0], [])

    def run(*arguments: str) -> str:
        calls.append(("run", *arguments))
        model.write_text("new")
        return ""

    for name, fake in {"dbt": dbt, "run": run, "lint": lambda _: [], "session": lambda: None}.items():
        monkeypatch.setattr(check, name, fake)

    def told() -> Any:
        calls.clear()
        status = check.main()
        return status, capsys.readouterr().err

    changed = (
        "Error: models/silver.sql is not what make run writes for these events, and was written. Look at it, and commit"
        " it\n"
    )
    assert told() == (1, changed)
    parse, seed, test = (
        ("parse", "--no-partial-parse", *check.WARNINGS_FAIL),
        ("seed",),
        ("test", "--exclude", "source:bronze.other+"),
    )
    assert calls == [parse, seed, ("run", "events/mine", "mine"), test]
    assert not (tmp_path / "target" / "check").exists() and (tmp_path / "not this one" / "old").exists()
    assert told() == (0, "")
    fails["test"] = ["unique_customers: Got 1 result"]
    assert told() == (1, "Error: unique_customers: Got 1 result\n")
    fails["parse"] = ["a model is wrong"]
    assert (told(), calls) == ((1, "Error: a model is wrong\n"), [parse])
    (tmp_path / "events" / "b.jsonl").touch()
    assert told() == (1, "Error: events/b.jsonl is of no system. Move it into events/<system>/.\n")
