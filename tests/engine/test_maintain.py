"""`make maintain`: fewer files and snapshots, the same rows and marks, and increments that go on, wherever it was
stopped.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import Lakehouse
from crashes import build
from event_factory import created, deleted, event, updated

SYSTEM = "maintained"


def part(number: int) -> list[dict[str, Any]]:
    """A new row, an update and one that comes late, a redelivery, and a delete of the row of two parts before."""
    lsn = number * 100
    changed = updated(lsn + 2, id=1, note=f"at {lsn}")
    late = [updated(lsn - 90, id=1, note="late"), {**changed, "offset": lsn + 50}]
    return [created(lsn + 1, id=number, note="new"), changed, *late, deleted(lsn + 4, id=number - 2)]


def tables(lakehouse: Lakehouse) -> list[str]:
    from scripts.maintain import all_tables, of_system

    return of_system(all_tables(lakehouse.spark), SYSTEM)


def content(lakehouse: Lakehouse, *of: str) -> dict[str, Any]:
    """The rows of tables, and what the next run takes for merged or landed."""
    from adapter import Engine, Macros, Relation

    from scripts.bronze import state

    engine = Engine(lakehouse.spark, lakehouse.project)
    module = Macros(overridden=()).module(execute=True, run_query=engine._query)
    found: dict[str, Any] = {}
    for table in of or tables(lakehouse):
        schema, name = table.replace("`", "").split(".")
        found[table] = sorted(map(str, lakehouse.printed(table)))
        properties = {row[0]: row[1] for row in lakehouse.sql(f"show tblproperties {table}")}
        if schema == "bronze":
            found[table] += [state(lakehouse.spark, f"bronze.`{SYSTEM}`")[1:]]
        else:
            found[table] += [module.merged_up_to(Relation(schema, name), "-1, ''", properties)]
    return found


def numbers(lakehouse: Lakehouse, kind: str) -> dict[str, int]:
    return {table: lakehouse.sql(f"select count(*) from {table}.{kind}")[0][0] for table in tables(lakehouse)}


def maintain(lakehouse: Lakehouse) -> list[str]:
    from scripts import maintain

    said: list[str] = []
    maintain.maintain(lakehouse.spark, SYSTEM, 0, said.append)
    return said


@contextmanager
def stopped_before(step: str) -> Iterator[None]:
    from scripts.maintain import Maintenance

    execute = Maintenance.sql

    def sql(self: Maintenance, statement: str) -> list[Any]:
        if step in statement.split("(")[0]:
            raise KeyboardInterrupt
        return execute(self, statement)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Maintenance, "sql", sql)
        yield


@pytest.mark.loader
def test_tables_become_smaller_and_stay_the_same_and_runs_go_on(
    lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one table each step is a place to be stopped; a landing has looked at bronze before it was compacted."""
    from scripts import bronze
    from scripts import maintain as module

    monkeypatch.setattr(module, "SMALL_FILES", 2)
    monkeypatch.setattr(module, "MANIFESTS", 1)
    silver = f"`silver`.`{SYSTEM}__orders`"
    lakehouse.land(SYSTEM, part(1))
    lakehouse.scaffold(SYSTEM)
    history = lakehouse.project / "models" / "history" / SYSTEM / f"history_{SYSTEM}__orders.sql"
    history.parent.mkdir(parents=True)
    call = f"{{{{ debezium_history(changes = ref('stg_{SYSTEM}__orders'), keys = ['id']) }}}}"
    history.write_text(f"{{{{ config(alias = '{SYSTEM}__orders') }}}}\n\n{call}\n")
    build(lakehouse, SYSTEM)
    lakehouse.land(SYSTEM, part(2))
    build(lakehouse, SYSTEM)
    lakehouse.spark.sql(f"alter table {silver} unset tblproperties ('write.metadata.previous-versions-max')")
    folder = lakehouse.project / "lakehouse" / "warehouse" / "silver" / f"{SYSTEM}__orders" / "data"
    orphan, in_flight = folder / "orphan.parquet", folder / "in_flight.parquet"
    for path, hours in ((orphan, 26), (in_flight, 23)):
        path.write_text("")
        os.utime(path, (path.stat().st_mtime - hours * 3600,) * 2)

    before = content(lakehouse)
    for step in ("alter", "rewrite_data_files", "rewrite_manifests", "expire_snapshots", "remove_orphan_files"):
        with stopped_before(step), pytest.raises(KeyboardInterrupt):
            module.Maintenance(lakehouse.spark, silver, snapshot_days=0).run()
        assert content(lakehouse, silver) == {silver: before[silver]}, step
    files = numbers(lakehouse, "files")
    stale = bronze.state(lakehouse.spark, f"bronze.`{SYSTEM}`")
    said = maintain(lakehouse)
    assert content(lakehouse) == before and not orphan.exists() and in_flight.exists()
    assert len(said) == 7 and said[-1].startswith("6 of 6 tables changed: "), said
    assert f"silver.{SYSTEM}__orders: 1 orphan files removed" in said
    assert set(numbers(lakehouse, "files").values()) == {1} and sum(files.values()) > 10
    assert set(numbers(lakehouse, "snapshots").values()) <= {1, 2, 3}  # the newest mark, files and manifests
    assert maintain(lakehouse) == ["0 of 6 tables changed."]

    looks, look = iter([stale]), bronze.state
    monkeypatch.setattr(bronze, "state", lambda *of: next(looks, None) or look(*of))
    assert lakehouse.land(SYSTEM, [*part(2), *part(3)]).batches == [3]
    build(lakehouse, SYSTEM)
    assert lakehouse.sql(f"select id, note from {SYSTEM}.orders order by id") == [(2, "new"), (3, "new")]
    landed = lakehouse.sql(f"select count(*) from bronze.{SYSTEM}")
    assert lakehouse.sql(f"select sum(events) from monitoring.{SYSTEM}__event_counts") == landed == [(15,)]
    current = f"select id, note from history.{SYSTEM}__orders where _cdc_is_current order by id"
    assert lakehouse.sql(current) == [(2, "new"), (3, "new")]


def snapshot(name: int, parent: int | None, at: int, ref: str | None = None, marked: bool = True) -> Any:
    return SimpleNamespace(snapshot_id=name, parent_id=parent, at=at, ref=ref, is_marked=marked)


def test_snapshots_expire_by_when_they_were_replaced_and_never_the_newest_mark(lakehouse: Lakehouse) -> None:
    from scripts.maintain import expired

    history = [snapshot(number, number - 1, number * 10) for number in range(1, 5)]
    assert expired([*history, snapshot(5, 4, 50, "main")], 40) == [1, 2, 3]
    unmarked = [snapshot(5, 4, 50, marked=False), snapshot(6, 5, 60, "main", marked=False)]
    assert expired([*history, *unmarked], 100) == [1, 2, 3]
    assert expired([*history[:3], snapshot(4, 3, 40, "a tag"), snapshot(5, 4, 50, "main")], 100) == [1, 2, 3]
    rolled_back = [*history, snapshot(5, 2, 50, "main", marked=False)]
    assert expired(rolled_back, 100) == [1, 3]  # 4 tells that bronze was rolled back to 2
    assert expired([snapshot(1, None, 10, marked=False), snapshot(2, 1, 20, "main", marked=False)], 100) == [1]
    assert expired([], 100) == []


def test_a_run_makes_no_snapshot_of_a_table_without_changes(lakehouse: Lakehouse) -> None:
    from scripts.maintain import all_tables, of_system

    def counted() -> dict[str, Any]:
        names = of_system(all_tables(lakehouse.spark), "idle_neighbour")
        return {name: lakehouse.sql(f"select count(*) from {name}.snapshots") for name in names}

    others = [event("c", number, {"id": number}, table="notes") for number in (1, 2, 3)]
    lakehouse.run("idle_neighbour", [created(10, id=1), *others[:2]])
    before = counted()
    lakehouse.run("idle_neighbour", others[2:])
    changed = {name for name, number in counted().items() if number != before[name]}
    assert len(before) == 7 and {re.split("`|__", name)[-2] for name in changed} == {
        "idle_neighbour",
        "notes",
        "event_counts",
    }


def test_a_folder_of_two_tables_and_what_looks_like_a_place(lakehouse: Lakehouse) -> None:
    """A renamed table keeps its folder, and the next one of its old name gets it too. Comments and names can hold
    anything.
    """
    from scripts.maintain import own_folders

    def create(name: str, column: str = "Location", comment: str = "") -> None:
        lakehouse.spark.sql(f"create table folders.{name} (id int, `{column}` string) using iceberg {comment}")

    lakehouse.spark.sql("create namespace folders")
    create("renamed")
    lakehouse.spark.sql("alter table folders.renamed rename to folders.elsewhere")
    create("renamed")
    create("commented", "a\nLocation: b", "comment 'of\nLocation: /\nno folder'")
    create("plain")
    there = [f"`folders`.`{name}`" for name in ("renamed", "elsewhere", "commented", "plain")]
    assert own_folders(lakehouse.spark, there) == {"`folders`.`commented`", "`folders`.`plain`"}
