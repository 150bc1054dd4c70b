"""`make erase`: what is known of a row is gone from tables, files and snapshots, and runs go on as if it never was."""

import itertools
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from conftest import Lakehouse
from crashes import MUTATION, build, land_and_die
from event_factory import created, deleted, event, updated

from scripts.errors import LakehouseError, UsageError

Record = dict[str, Any]
SECRET = "told by nobody else"


@contextmanager
def stopped_at(number: int) -> Iterator[None]:
    """Stopped before the statement of this number that would write."""
    from scripts.maintain import Maintenance

    execute, seen = Maintenance.sql, itertools.count(1)

    def sql(self: Maintenance, statement: str) -> list[Any]:
        if (MUTATION.match(statement) or statement.startswith("call")) and next(seen) >= number:
            raise KeyboardInterrupt
        return execute(self, statement)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Maintenance, "sql", sql)
        yield


def erase(lakehouse: Lakehouse, system: str, table: str, key: str) -> dict[str, int]:
    from scripts.erase import erase

    return {name.replace("`", ""): number for name, number in erase(lakehouse.spark, system, table, key).items()}


def files_with(lakehouse: Lakehouse, system: str, text: str) -> list[str]:
    """The data files of a system, of any snapshot, that hold a text."""
    found = []
    for layer in ("bronze", "staging", "silver", "history"):
        for path in (lakehouse.project / "lakehouse" / "warehouse" / layer).glob(f"*{system}*/data/**/*.parquet"):
            if text in str(pq.read_table(path, partitioning=None).to_pylist()):
                found.append(f"{layer}/{path.name}")
    return found


def with_history(lakehouse: Lakehouse, system: str) -> None:
    path = lakehouse.project / "models" / "history" / system / f"history_{system}__orders.sql"
    path.parent.mkdir(parents=True)
    call = f"{{{{ debezium_history(changes = ref('stg_{system}__orders'), keys = ['id']) }}}}"
    path.write_text(f"{{{{ config(alias = '{system}__orders') }}}}\n\n{call}\n")


@pytest.mark.loader
@pytest.mark.parametrize("system", ["erasing", pytest.param("erasing_routed", marks=pytest.mark.soak)])
def test_a_row_is_erased_wherever_it_is_stopped_and_runs_go_on(lakehouse: Lakehouse, system: str) -> None:
    from scripts.catalog import mark_of

    is_routed = system == "erasing_routed"

    def of(*records: Record) -> list[Record]:
        return [{**one, "topic": "shop.all"} for one in records] if is_routed else list(records)

    line = event("c", 11, {"id": 2}, table="lines")
    person = created(12, id=2, note=SECRET)
    lakehouse.land(system, of(created(10, id=1, note="a"), line, person))
    lakehouse.scaffold(system)
    with_history(lakehouse, system)
    build(lakehouse, system)
    broken = {**updated(21, id=2), "value": json.dumps({"op": SECRET})}
    tombstone = {**person, "offset": 23, "value": None}
    lakehouse.land(system, of(updated(20, id=2, note=f"{SECRET}!"), broken, deleted(22, id=2), tombstone))
    with pytest.raises(LakehouseError, match="tables are behind what has landed"):
        erase(lakehouse, system, "orders", "id=2")
    build(lakehouse, system)
    assert len(files_with(lakehouse, system, SECRET)) > 4

    for number in itertools.count(1):
        with suppress(KeyboardInterrupt), stopped_at(number):
            erase(lakehouse, system, "public.orders", "id=2")
            break
    assert number > 10
    assert files_with(lakehouse, system, SECRET) == []
    for table in (f"staging.stg_{system}__orders", f"silver.{system}__orders", f"history.{system}__orders"):
        name = table.split(".")[1]
        assert mark_of(lakehouse.spark, table, f"cdc-batch-{'history_' if 'history' in table else ''}{name}"), table
    with pytest.raises(LakehouseError, match="no row or event of public.orders has this key"):
        erase(lakehouse, system, "orders", "id=2")

    def check(*rows: tuple[int, str]) -> None:
        for table in (f"{system}.orders", f"history.{system}__orders where _cdc_is_current"):
            assert lakehouse.sql(f"select id, note from {table} order by id") == list(rows), table
        landed = lakehouse.sql(f"select count(*) from bronze.{system}")
        is_counted = lakehouse.sql(f"select sum(events) from monitoring.{system}__event_counts") == landed
        assert is_counted or is_routed and len(rows) == 1  # the next run counts what names no table

    check((1, "a"))
    assert lakehouse.sql(f"select id from {system}.lines") == [(2,)]
    assert lakehouse.land(system, of(created(30, id=3, note="c"))).batches == [3]
    build(lakehouse, system)
    check((1, "a"), (3, "c"))
    assert lakehouse.dbt("run", "--full-refresh", "--select", f"stg_{system}__orders", f"{system}__orders").success
    check((1, "a"), (3, "c"))


@pytest.mark.soak
@pytest.mark.loader
@pytest.mark.parametrize("begins", ["insert into", "delete from"])
def test_what_dbt_builds_from_another_machine_while_a_row_is_erased_is_merged(
    lakehouse: Lakehouse, begins: str
) -> None:
    """It waits for no lock, and commits between the statements of `make erase`."""
    from scripts.maintain import Maintenance

    system, execute, seen = f"erased_beside_{begins[:6]}", Maintenance.sql, list[str]()
    wide = {f"c{number}": number for number in range(210)}  # of more columns than Iceberg has bounds of
    person = created(10, id=1, note=SECRET, **wide)
    lakehouse.land(system, [person, created(11, id=2, note="a"), created(12, id=3, note="a")])
    lakehouse.scaffold(system)
    with_history(lakehouse, system)
    build(lakehouse, system)

    def sql(self: Maintenance, statement: str) -> list[Any]:
        if not seen and " ".join(statement.split()).startswith(f"{begins} staging."):
            seen.append(statement)
            lakehouse.land(system, [created(20, id=5, note="b"), updated(21, id=1, note=SECRET)])
            assert lakehouse.dbt("run", "--select", f"source:bronze.{system}+").success
        return execute(self, statement)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Maintenance, "sql", sql)
        erase(lakehouse, system, "orders", "id=1")
    assert seen and files_with(lakehouse, system, SECRET) == []
    lakehouse.land(system, [updated(30, id=3, note="c"), created(31, id=6, note="c"), deleted(32, id=2)])
    build(lakehouse, system)
    for table in (f"{system}.orders", f"history.{system}__orders where _cdc_is_current"):
        assert lakehouse.sql(f"select id, note from {table} order by id") == [(3, "c"), (5, "b"), (6, "c")], table


@pytest.mark.loader
@pytest.mark.parametrize("is_there", [True, False])
def test_a_row_does_not_come_back_with_the_file_of_a_loader_that_died(
    lakehouse: Lakehouse, tmp_path: Path, is_there: bool
) -> None:
    """If the file is not there meanwhile, the erased record lands again with it, and no other."""
    system, path = f"erased_died_{is_there}".lower(), tmp_path / "events.jsonl"
    path.write_text("".join(json.dumps(created(number, id=number, note=SECRET)) + "\n" for number in (1, 2, 3)))

    land_and_die(lakehouse, system, path)
    build(lakehouse, system)
    for table in (f"staging.stg_{system}__orders", f"silver.{system}__orders"):
        lakehouse.spark.sql(f"alter table {table} add columns (later string)")  # which no snapshot has yet
    if not is_there:
        path.rename(tmp_path / "away")
    erase(lakehouse, system, "orders", "id=3")
    if not is_there:
        (tmp_path / "away").rename(path)
    landed = lakehouse.land(system, path)
    assert (landed.records, landed.notes) == (0 if is_there else 1, [])


def test_a_row_that_changed_its_key_is_erased_under_all_of_its_keys(lakehouse: Lakehouse) -> None:
    def event_of(offset: int, before: Any, after: Any) -> Record:
        value = {"op": "u" if before else "c", "before": before, "after": after, "source": {"db": "d", "table": "t"}}
        key = json.dumps({name: after[name] for name in "ab"})
        return {"topic": "d.t", "partition": 0, "offset": offset, "key": key, "value": json.dumps(value)}

    first, then, other = ({"a": 1, "b": "x y", "c": 5}, {"a": 1, "b": "z", "c": 6}, {"a": 2, "b": "z", "c": 7})
    records = [event_of(0, None, first), event_of(1, first, then), event_of(2, None, other)]
    lakehouse.run("rekeyed_person", records, "generic", {"t": ["a", "b"]})
    with pytest.raises(UsageError, match="also a=1,b=x y. Name all of its keys"):
        erase(lakehouse, "rekeyed_person", "t", "a=1,b=z")
    with pytest.raises(UsageError, match="also a=1,b=z. Name all of its keys"):
        erase(lakehouse, "rekeyed_person", "t", "'a=1,b=x y'")
    assert erase(lakehouse, "rekeyed_person", "d.t", "'a=1,b=x y' b=z,a=1") == {
        "bronze.rekeyed_person": 2,
        "silver.rekeyed_person__t": 2,
        "staging.stg_rekeyed_person__t": 3,
    }
    assert lakehouse.rows("rekeyed_person.t") == [other]
    assert lakehouse.sql("select sum(events) from monitoring.rekeyed_person__event_counts") == [(1,)]

    for key, told in (
        ("a=1", "not of the form a=<value>,b=<value>"),
        ("a=1,a=2", "not of the form"),
        ("a=x,b=z", "a=x: the value is not of type bigint"),
        ("'a=1,b=z", "a quote is not closed"),
    ):
        with pytest.raises(UsageError, match=told):
            erase(lakehouse, "rekeyed_person", "t", key)
    with pytest.raises(UsageError, match="TABLE=u: no table with models has that name. Tables of rekeyed_person: d.t"):
        erase(lakehouse, "rekeyed_person", "u", "a=1")


@pytest.mark.loader
def test_what_was_erased_does_not_land_again_after_a_roll_back_of_what_came_later(
    lakehouse: Lakehouse, tmp_path: Path
) -> None:
    """The newest batch then had no records any more, and did not look like one that stays."""
    system, files = "erased_rolled", []
    for number, records in enumerate(([created(1, id=1)], [created(2, id=7, note=SECRET)], [created(3, id=3)])):
        files.append(tmp_path / f"{number}.jsonl")
        files[-1].write_text("".join(json.dumps(one) + "\n" for one in records))
        lakehouse.land(system, files[-1])
        lakehouse.scaffold(system)
        build(lakehouse, system)
        if number == 1:
            erase(lakehouse, system, "orders", "id=7")
            ((then,),) = lakehouse.sql(f"select snapshot_id from bronze.{system}.refs where name = 'main'")
    lakehouse.spark.sql(f"call system.rollback_to_snapshot('bronze.{system}', {then})").collect()
    landed = [lakehouse.land(system, path) for path in files]
    assert [one.records for one in landed] == [0, 0, 1]
    assert "ends with batch 2, where 3 had landed" in landed[0].notes[0]
