"""`make maintain KEEP=`: old batches leave bronze once they were read, and tables, counts and landings go on."""

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Lakehouse
from crashes import build, land_and_die
from event_factory import created, event, updated

from scripts.errors import LakehouseError, UsageError

Record = dict[str, Any]


def prune(lakehouse: Lakehouse, system: str, keep: int | None = 90, stopped_before: str = "") -> list[str]:
    from scripts import maintain

    said: list[str] = []
    execute = maintain.Maintenance.sql

    def sql(self: maintain.Maintenance, statement: str) -> list[Any]:
        if stopped_before and statement.startswith(stopped_before):
            raise KeyboardInterrupt
        return execute(self, statement)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(maintain.Maintenance, "sql", sql)
        patch.setattr(maintain.Maintenance, "run", lambda _: None)  # which test_maintain.py shows
        maintain.maintain(lakehouse.spark, system, 5, said.append, keep)
    return said


def age(lakehouse: Lakehouse, system: str, up_to: int) -> None:
    """Batches landed a hundred days earlier."""
    lakehouse.sql(f"update bronze.{system} set landed_at = landed_at - interval 100 days where batch <= {up_to}")


def batches(lakehouse: Lakehouse, system: str) -> list[tuple[Any, ...]]:
    return lakehouse.sql(f"select batch, count(*) from bronze.{system} group by batch order by batch")


def counts(lakehouse: Lakehouse, system: str) -> list[tuple[Any, ...]]:
    return lakehouse.sql(f"select batch, sum(events) from monitoring.{system}__event_counts group by 1 order by 1")


def others(batch: int) -> list[Record]:
    """A record of a topic without models, and a line that is no record."""
    heartbeat = {"topic": "heartbeats", "partition": 0, "offset": batch, "key": None, "value": '{"ts_ms": 1}'}
    return [heartbeat, f"no record {batch}"]  # type: ignore[list-item]


def line(lsn: int, **row: Any) -> Record:
    return event("c", lsn, row, table="lines")


@pytest.mark.loader
def test_old_batches_that_were_read_go_and_everything_goes_on(lakehouse: Lakehouse) -> None:
    system = "pruning"

    def check(*rows: tuple[int, str]) -> None:
        assert lakehouse.sql(f"select id, note from {system}.orders order by id") == list(rows)
        assert all(landed <= dict(counts(lakehouse, system))[batch] for batch, landed in batches(lakehouse, system))

    first = [created(10, id=1, note="a"), line(11, id=1)]
    for number, records in enumerate((first, [updated(20, id=1, note="b")], [created(30, id=2, note="c")])):
        lakehouse.land(system, records + others(number))
    lakehouse.scaffold(system)
    build(lakehouse, system)
    before = counts(lakehouse, system)
    lakehouse.land(system, [updated(40, id=2, note="d")])
    lakehouse.land(system, [line(50, id=2)])

    assert prune(lakehouse, system) == ["0 of 7 tables changed."]
    age(lakehouse, system, 2)
    assert prune(lakehouse, system, keep=101) == prune(lakehouse, system, keep=None) == ["0 of 7 tables changed."]
    assert batches(lakehouse, system) == [(1, 4), (2, 3), (3, 3), (4, 1), (5, 1)]
    with pytest.raises(KeyboardInterrupt):
        prune(lakehouse, system, stopped_before="delete")
    assert lakehouse.sql(f"show tblproperties bronze.{system} ('cdc.pruned-up-to')")[0][1] == "2"
    assert batches(lakehouse, system)[0] == (1, 4)
    assert f"bronze.{system}: 3 records pruned" in prune(lakehouse, system)
    assert batches(lakehouse, system) == [(1, 2), (2, 2), (3, 3), (4, 1), (5, 1)]

    age(lakehouse, system, 5)
    told = "1 records pruned, batches from 4 on stay, because a table has not read them"
    assert prune(lakehouse, system)[0] == f"bronze.{system}: {told}"
    build(lakehouse, system)
    check((1, "b"), (2, "d"))
    assert counts(lakehouse, system)[:3] == before
    prune(lakehouse, system)
    assert batches(lakehouse, system) == [(1, 2), (2, 2), (3, 2), (5, 1)]  # the newest one stays

    result = lakehouse.dbt("run", "--full-refresh", "--select", f"stg_{system}__orders")
    (told,) = [str(node.message) for node in result.result if node.message]
    assert "has not 4 of its records" in told and "has pruned batches up to 4 (KEEP)" in told
    assert lakehouse.dbt("run", "--full-refresh", "--select", f"{system}__orders").success

    again = lakehouse.land(system, first + others(0))  # the same content as a file that has landed
    assert (again.records, again.batches) == (0, [])
    again = lakehouse.land(system, [*first, created(60, id=3, note="e")])
    assert (again.records, again.repeated, again.batches, again.notes) == (3, 0, [6], [])
    lakehouse.scaffold(system)
    build(lakehouse, system)
    check((1, "b"), (2, "d"), (3, "e"))


def test_of_topics_of_several_tables_a_batch_goes_once_all_tables_have_it(lakehouse: Lakehouse) -> None:
    for records in ([created(10, id=1), line(11, id=1)], [line(12, id=2)], [created(13, id=2)]):
        lakehouse.land("pruning_routed", [{**one, "topic": "shop.all"} for one in records])
    assert prune(lakehouse, "pruning_routed") == ["0 of 2 tables changed."]  # without models
    lakehouse.scaffold("pruning_routed")
    for models in ((), ("pruning_routed__events",), ("stg_pruning_routed__orders",)):
        assert not models or lakehouse.dbt("run", "--select", *models).success
        assert "batches from 1 on stay, because" in prune(lakehouse, "pruning_routed")[0]
    assert lakehouse.dbt("run", "--select", "stg_pruning_routed__lines").success
    assert prune(lakehouse, "pruning_routed")[0] == "bronze.pruning_routed: 3 records pruned"
    assert batches(lakehouse, "pruning_routed") == [(3, 1)]
    assert lakehouse.sql("select count(*) from staging.pruning_routed__events") == [(4,)]
    lakehouse.spark.sql("create table staging.stg_pruning_routed__own using iceberg as select 1 as id")
    assert "pruned" not in prune(lakehouse, "pruning_routed")[0]  # a table of somebody's own says nothing


def test_no_batch_goes_while_a_table_has_to_be_rebuilt(lakehouse: Lakehouse) -> None:
    for record in (created(10, id=1, note="a"), created(20, id=2, note="b")):
        lakehouse.land("unpruned", [record])
    lakehouse.scaffold("unpruned")
    assert lakehouse.dbt("run", "--select", "stg_unpruned__orders").success
    (identity,) = lakehouse.sql("show tblproperties bronze.unpruned ('cdc.id')")
    lakehouse.sql("alter table bronze.unpruned set tblproperties ('cdc.id' = 'another')")
    with pytest.raises(
        LakehouseError, match="no batch is pruned of unpruned: staging.`stg_unpruned__orders` was built"
    ):
        prune(lakehouse, "unpruned")
    assert batches(lakehouse, "unpruned") == [(1, 1), (2, 1)]
    lakehouse.sql(f"alter table bronze.unpruned set tblproperties ('cdc.id' = '{identity[1]}')")
    from scripts.built import Built

    built = Built()
    for lacking in (["shop.public.orders"], ["elsewhere"]):  # where models/ is read-only, and a column is not declared
        assert batches(lakehouse, "unpruned") == [(1, 1), (2, 1)]
        built.state["refused"]["unpruned"] = lacking
        built.save()
        prune(lakehouse, "unpruned")
    assert batches(lakehouse, "unpruned") == [(2, 1)]


@pytest.mark.parametrize("text", ["90", "d", "-1d", "1.5d", "90 d"])
def test_what_is_no_number_of_days_is_refused(lakehouse: Lakehouse, text: str) -> None:
    from scripts.prune import days_kept

    assert (days_kept("90d"), days_kept("")) == (90, None)
    with pytest.raises(UsageError, match="expected a number of days, as 90d"):
        days_kept(text)


@pytest.mark.loader
def test_what_was_pruned_does_not_land_again_with_the_file_of_a_loader_that_died(
    lakehouse: Lakehouse, tmp_path: Path
) -> None:
    system, path = "pruned_died", tmp_path / "events.jsonl"
    path.write_text("".join(json.dumps(created(number, id=number)) + "\n" for number in (1, 2)))

    land_and_die(lakehouse, system, path)
    lakehouse.land(system, [created(3, id=3)])
    lakehouse.scaffold(system)
    build(lakehouse, system)
    age(lakehouse, system, 1)
    prune(lakehouse, system)
    assert batches(lakehouse, system) == [(2, 1)]
    assert lakehouse.land(system, path).records == 0
