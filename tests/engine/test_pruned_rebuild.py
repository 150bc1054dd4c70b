"""A change log that is rebuilt after `make maintain KEEP=` keeps the rows of pruned records, and gets what is declared
now: epochs, other types, further columns."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from conftest import Lakehouse
from event_factory import created, deleted, event, updated
from test_history import write_model
from test_mongodb import Collection, sets
from test_prune import age, batches, prune
from test_resets import HISTORY, RESTORED, at, epochs, of_table  # noqa: F401
from test_types_that_change import BIG, CHANGES, DOUBLE, Field, of_era, of_schema

Record = dict[str, Any]
LOG = "_cdc_position, _cdc_kind, _cdc_op, _cdc_reject_reason, _cdc_event_id"


def pruned(lakehouse: Lakehouse, system: str, *landings: list[Record]) -> None:
    """Landings of which only the newest one is left in bronze."""
    for records in landings:
        lakehouse.run(system, records)
    age(lakehouse, system, len(landings))
    prune(lakehouse, system)
    assert [batch for batch, _ in batches(lakehouse, system)] == [len(landings)]


def log(lakehouse: Lakehouse, system: str, table: str = "orders", columns: str = "id, note") -> list[tuple[Any, ...]]:
    rows = lakehouse.sql(f"select {columns}, {LOG} from staging.stg_{system}__{table} order by _cdc_event_id")
    return [tuple(map(str, row)) for row in rows]


@contextmanager
def dying_before(text: str) -> Iterator[None]:
    from adapter import Engine

    execute = Engine.sql

    def dies(self: Any, sql: str) -> Any:
        if text in sql:
            raise RuntimeError("the process was killed")
        return execute(self, sql)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Engine, "sql", dies)
        yield


def build_and_die_before(lakehouse: Lakehouse, system: str, text: str) -> None:
    with dying_before(text):
        assert lakehouse._build.build(lakehouse.spark, [system], [lakehouse.scaffold(system)], print) > 0


def test_an_epoch_moves_the_rows_of_records_that_are_not_there_any_more(
    lakehouse: Lakehouse,
    epochs: Any,  # noqa: F811
) -> None:
    """As if it had been declared before the first record landed. One table has one topic, the other has two."""
    topics = {"orders": ["shop.public.orders"], "lines": ["shop.public.lines", "shop2.public.lines"]}
    old, new, last = (
        [
            {**of_table(table, record), "topic": topic}
            for table, names in topics.items()
            for topic in names
            for record in some
        ]
        for some in (
            HISTORY,
            [*RESTORED, {**HISTORY[0], "offset": 9, "value": "{"}],
            [at(20, created(400, id=4, note="x"))],
        )
    )
    declared = [f"{{}},shop.public.{table},0,3,,1" for table in topics]
    epochs(*(one.format("early") for one in declared))
    lakehouse.run("early", old + new + last)
    pruned(lakehouse, "epochal", old, new, last)
    assert lakehouse.rows("epochal.orders", "id") != lakehouse.rows("early.orders", "id")

    epochs(*(one.format(system) for one in declared for system in ("epochal", "early")))
    done = lakehouse.run("epochal", [])
    assert sum("epochs changed" in note for note in done.notes) == 2
    for table in topics:
        assert log(lakehouse, "epochal", table) == log(lakehouse, "early", table)
        assert lakehouse.rows(f"epochal.{table}", "id") == lakehouse.rows(f"early.{table}", "id")
    assert lakehouse.resets("epochal") == lakehouse.resets("early")


@pytest.mark.soak
def test_pruned_rows_get_the_types_and_columns_that_are_declared_now(lakehouse: Lakehouse) -> None:
    wrong = {**of_era(3, 0), "value": "{"}
    pruned(lakehouse, "kept_types", [of_era(1, 0), wrong], [of_era(2, 0)])
    before = log(lakehouse, "kept_types", columns="id")
    rejected = lakehouse.rejected("kept_types")
    lakehouse.land("kept_types", [of_era(4, 1, point={"x": 1.5, "y": -2.0, "wkb": "AQE="})])
    done = lakehouse.scaffold("kept_types")
    assert lakehouse._build.build(lakehouse.spark, ["kept_types"], [done], print) == 0
    assert log(lakehouse, "kept_types", columns="id")[:3] == before and rejected == lakehouse.rejected("kept_types")
    types = dict(lakehouse.table("kept_types.orders").dtypes)
    assert {name: types[name] for name in CHANGES} == {name: change[4] for name, change in CHANGES.items()}
    for row in lakehouse.printed("kept_types.orders", "id"):
        era = int(row["id"] == "4")
        assert {name: row[name] for name in CHANGES} == {name: change[5 + era] for name, change in CHANGES.items()}
    points = lakehouse.sql("select id, point.x, point.y from kept_types.orders order by id")
    assert [tuple(row) for row in points] == [(1, None, None), (2, None, None), (4, 1.5, -2.0)]


def test_what_pruned_rows_cannot_be_is_refused(lakehouse: Lakehouse) -> None:
    fields: dict[str, Field] = {"n": BIG}
    pruned(lakehouse, "kept_not", [of_schema(1, fields, {"n": 2**63 - 1})], [of_schema(2, fields, {"n": 2})])
    before = log(lakehouse, "kept_not", columns="id, n")
    lakehouse.land("kept_not", [of_schema(3, {"n": DOUBLE}, {"n": 0.5})])
    told: list[str] = []
    assert lakehouse._build.build(lakehouse.spark, ["kept_not"], [lakehouse.scaffold("kept_not")], told.append) > 0
    assert "column n was bigint and is double now, and" in "\n".join(told)
    assert "make maintain has pruned batches up to 1 (KEEP)" in "\n".join(told)
    assert log(lakehouse, "kept_not", columns="id, n") == before

    model = lakehouse.project / "models" / "staging" / "kept_not" / "stg_kept_not__orders.sql"
    renamed = model.read_text().replace("'n':", "'m':").replace("    columns", "    renamed = {'m': 'n'},\n    columns")
    model.write_text(renamed)
    (failed,) = lakehouse.dbt("run", "--select", "stg_kept_not__orders").result
    assert "its renamed changed, and bronze.kept_not has not 1 of its records" in failed.message


@pytest.mark.soak
def test_pruned_rows_keep_their_place_beside_another_topic_and_their_own_redelivery(
    lakehouse: Lakehouse,
    epochs: Any,  # noqa: F811
) -> None:
    epochs("kept_places,shop.public.orders,0,1,,1")
    reset = at(1, updated(20, id=1, note="new"))
    pruned(
        lakehouse, "kept_places", [at(0, created(100, id=1, note="old")), reset], [at(2, created(30, id=2, note="b"))]
    )
    of_other = {**at(0, created(40, id=3, note="c")), "topic": "shop2.public.orders"}
    lakehouse.run("kept_places", [of_other, {**reset, "timestamp": 1}])
    notes = [(1, "new"), (2, "b"), (3, "c")]
    assert lakehouse.sql("select id, note from kept_places.orders order by id") == notes
    found = "select count(*), count(distinct _cdc_position) from staging.stg_kept_places__orders"
    assert lakehouse.sql(found) == [(5, 4)]  # the redelivery has the position of the row that was kept


@pytest.mark.soak
def test_an_upgrade_keeps_pruned_changes_of_parts_of_documents(lakehouse: Lakehouse) -> None:
    events = Collection("kept_parts")
    events.add("c", 1, {"_id": 1, "a": 1, "b": "x"})
    events.add("u", 1, None, sets(a=2))
    pruned(lakehouse, "kept_parts", events.records[:1], events.records[1:])
    before = lakehouse.rows("silver.kept_parts__kept_parts")
    table = "staging.stg_kept_parts__kept_parts"
    ((_, declared),) = lakehouse.sql(f"show tblproperties {table} ('cdc.declared')")
    older = json.dumps({**json.loads(declared), "engine": "older"})
    lakehouse.sql(f"alter table {table} set tblproperties ('cdc.declared' = '{older}', 'cdc.declaration' = 'older')")
    assert lakehouse.dbt("run", "--select", "stg_kept_parts__kept_parts", "kept_parts__kept_parts").success
    ((_, rebuilt),) = lakehouse.sql(f"show tblproperties {table} ('cdc.declared')")
    assert rebuilt == declared and lakehouse.rows("silver.kept_parts__kept_parts") == before


@pytest.mark.soak
def test_an_epoch_that_is_removed_after_its_run_died_leaves_no_trace(
    lakehouse: Lakehouse,
    epochs: Any,  # noqa: F811
) -> None:
    lakehouse.run("withdrawn", HISTORY + RESTORED)
    before = log(lakehouse, "withdrawn")
    epochs("withdrawn,shop.public.orders,0,3,,1")
    build_and_die_before(lakehouse, "withdrawn", "set tblproperties ('cdc.declaration'")
    assert log(lakehouse, "withdrawn") != before
    epochs()
    lakehouse.run("withdrawn", [])
    assert log(lakehouse, "withdrawn") == before


@pytest.mark.soak
def test_a_history_is_not_read_again_from_a_log_that_lacks_what_was_pruned(lakehouse: Lakehouse) -> None:
    system, history = "short_log", "history.short_log__orders"
    write_model(lakehouse, system)
    lands = ([created(1, id=1, note="a")], [updated(2, id=1, note="b")], [updated(3, id=1, note="c")])
    pruned(lakehouse, system, *lands)
    assert lakehouse.dbt("run", "--select", f"history_{system}__orders").success
    known = lakehouse.sql(f"select note, _cdc_known_from, _cdc_known_to from {history} order by all")
    log = f"staging.stg_{system}__orders"
    lakehouse.sql(f"drop table {log}")
    lakehouse.land(system, [updated(4, id=1, note="d")])
    lakehouse.scaffold(system)
    assert lakehouse.dbt("run", "--select", f"stg_{system}__orders").success
    assert not lakehouse.dbt("run", "--select", f"history_{system}__orders").success
    assert lakehouse.sql(f"select note, _cdc_known_from, _cdc_known_to from {history} order by all") == known


@pytest.mark.soak
def test_other_epochs_do_not_count_a_rebuild_that_failed_before(
    lakehouse: Lakehouse,
    epochs: Any,  # noqa: F811
) -> None:
    """All in one session, as of a run that goes on with every new record."""
    lakehouse.run("epoch_failed", HISTORY)
    lakehouse.land("epoch_failed", RESTORED)
    with dying_before("create or replace table"):
        assert not lakehouse.dbt("run", "--full-refresh", "--select", "stg_epoch_failed__orders").success
    epochs("epoch_failed,shop.public.orders,0,2,,1")
    build_and_die_before(lakehouse, "epoch_failed", "set tblproperties ('cdc.declaration'")
    lakehouse.run("epoch_failed", [])
    assert len(log(lakehouse, "epoch_failed")) == 6


@pytest.mark.soak
def test_an_append_beside_a_run_with_other_epochs_gets_these_as_well(
    lakehouse: Lakehouse,
    epochs: Any,  # noqa: F811
) -> None:
    """The other run, of another machine, looks up what the log lacks before records land that this one appends."""
    from adapter import Engine

    execute, table, early = Engine.sql, "staging.stg_epoch_beside__orders", "epoch_beside,shop.public.orders,0,3,,1"
    lakehouse.run("epoch_beside", HISTORY)
    epochs(early)
    lakehouse.run("epoch_beside", [])
    of_other = dict(lakehouse.sql(f"show tblproperties {table}"))
    epochs()
    lakehouse.run("epoch_beside", [])
    lakehouse.land("epoch_beside", RESTORED)

    def beside(self: Any, sql: str) -> Any:
        if "replace where" in sql:
            declared = [f"'{name}' = '{of_other[name]}'" for name in ("cdc.declared", "cdc.base")]
            execute(self, f"alter table {table} set tblproperties ({', '.join(declared)})")
        return execute(self, sql)

    told: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Engine, "sql", beside)
        done = lakehouse.scaffold("epoch_beside")
        assert lakehouse._build.build(lakehouse.spark, ["epoch_beside"], [done], told.append) > 0
    assert "another run has changed epochs meanwhile" in "\n".join(told)
    epochs(early)
    lakehouse.run("epoch_beside", [])
    assert [row[2][:4] for row in log(lakehouse, "epoch_beside")] == ["0000"] * 3 + ["0001"] * 3


@pytest.mark.loader
@pytest.mark.parametrize(
    ("system", "when"),
    [
        ("pruned_back", "before"),
        pytest.param("pruned_far_back", "to before", marks=pytest.mark.soak),
        pytest.param("pruned_back_routed", "after", marks=pytest.mark.soak),
    ],
)
def test_bronze_that_was_pruned_and_rolled_back_loses_nothing(lakehouse: Lakehouse, system: str, when: str) -> None:
    """Pruned before the roll-back, between it and the landing that notes it, or rolled back to what was there before
    the pruning."""
    write_model(lakehouse, system)

    def of(*records: Record) -> list[Record]:
        return [{**record, "topic": "shop.all"} for record in records] if "routed" in system else list(records)

    def hit(lsn: int) -> Record:
        return {**event("c", lsn, {"id": lsn}, table="hits"), "key": None}

    def rebuilt() -> Any:
        return lakehouse.dbt("run", "--full-refresh", "--select", f"source:bronze.{system}+")

    def snapshot() -> int:
        return int(lakehouse.sql(f"select snapshot_id from bronze.{system}.refs")[0][0])

    lands = (
        of(created(10, id=1, note="a"), hit(11)),
        of(updated(20, id=1, note="b"), hit(21)),
        of(created(30, id=2)),
        of(updated(40, id=2, note="d"), hit(41), created(42, id=3, note="e")),
    )
    then = 0
    for number, records in enumerate(lands, 1):
        lakehouse.run(system, records)
        if when == "before" and number == 3:
            age(lakehouse, system, 2)
            prune(lakehouse, system)
        if number == (1 if when == "to before" else 3):
            then = snapshot()
    assert lakehouse.dbt("run", "--select", f"history_{system}__orders").success
    if when == "to before":
        age(lakehouse, system, 2)
        prune(lakehouse, system)
    lakehouse.spark.sql(f"call system.rollback_to_snapshot('bronze.{system}', {then})").collect()
    if when == "after":
        age(lakehouse, system, 2)
        prune(lakehouse, system)
    assert batches(lakehouse, system) == ([(1, 2)] if when == "to before" else [(3, 1)])
    lakehouse.land(system, lands[-1][:1])
    assert not rebuilt().success
    for records in lands[1:]:
        lakehouse.land(system, records)
    for _ in range(2):  # the first one may have been killed, or refused another table
        result = rebuilt()
        assert result.success, [node.message for node in result.result]
    assert lakehouse.sql(f"select id from silver.{system}__hits order by id") == [(11,), (21,), (41,)]
    assert lakehouse.sql(f"select note from {system}.orders order by id") == [("b",), ("d",), ("e",)]
    lakehouse.run(system, of(updated(50, id=1, note="f")))
    assert lakehouse.sql(f"select note from {system}.orders order by id") == [("f",), ("d",), ("e",)]


@pytest.mark.soak
@pytest.mark.loader
def test_pruned_records_of_a_file_that_is_overwritten_are_kept_after_a_roll_back(
    lakehouse: Lakehouse, tmp_path: Path
) -> None:
    """All records are the first line of one file: only their batches tell them apart."""
    system, path = "pruned_daily", tmp_path / "day.jsonl"

    def land(day: int) -> None:
        path.write_text(event("c", day, {"id": day}, table="hits")["value"] + "\n")
        lakehouse.run(system, path)

    for day in (1, 2, 3):
        land(day)
    age(lakehouse, system, 3)
    prune(lakehouse, system)
    ((then,),) = lakehouse.sql(f"select snapshot_id from bronze.{system}.refs where name = 'main'")
    land(4)
    lakehouse.spark.sql(f"call system.rollback_to_snapshot('bronze.{system}', {then})").collect()
    lakehouse.land(system, path)
    assert batches(lakehouse, system) == [(3, 1), (5, 1)]
    result = lakehouse.dbt("run", "--full-refresh", "--select", f"source:bronze.{system}+")
    assert result.success, [node.message for node in result.result]
    assert lakehouse.sql(f"select id from silver.{system}__hits order by id") == [(1,), (2,), (3,), (4,)]


def test_a_log_that_lacks_what_was_pruned_does_not_go_on(lakehouse: Lakehouse) -> None:
    """Rolled back with its silver; a key shows that a row of that time would be back, a keyless table has a hole."""
    system = "behind_pruned"
    lands = ([created(1, id=1, note="a")], [deleted(2, id=1)], [created(3, id=4, note="c")])
    tables = [f"staging.stg_{system}__orders", f"silver.{system}__orders"]
    for records in lands:
        lakehouse.run(system, records)
    age(lakehouse, system, 3)
    prune(lakehouse, system)
    for table in tables:
        ((first,),) = lakehouse.sql(f"select snapshot_id from {table}.snapshots order by committed_at limit 1")
        lakehouse.spark.sql(f"call system.rollback_to_snapshot('{table}', {first})").collect()
    lakehouse.land(system, [created(5, id=5, note="d")])
    told = "has read up to batch 1, but make maintain has pruned records of shop.public.orders up to batch 2"
    for options in ([], ["--full-refresh"]):
        result = lakehouse.dbt("run", *options, "--select", f"stg_{system}__orders", f"{system}__orders").result
        assert told in "".join(str(node.message) for node in result)
    for table in tables:
        ((newest,),) = lakehouse.sql(f"select snapshot_id from {table}.snapshots order by committed_at desc limit 1")
        lakehouse.spark.sql(f"call system.set_current_snapshot('{table}', {newest})").collect()
    lakehouse.run(system, [])
    assert lakehouse.sql(f"select id from {system}.orders order by id") == [(4,), (5,)]


def test_records_of_a_recreated_topic_are_not_those_that_were_pruned(
    lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They have the same coordinates: a full refresh would lose the pruned rows, a replay the rejected ones."""
    system = "pruned_recreated"

    def generation(lsn: int, *ids: int | None) -> list[Record]:
        records = [{**created(lsn + at, id=of), "offset": at, "timestamp": lsn} for at, of in enumerate(ids)]
        return [{**one, "value": "{"} if of is None else one for one, of in zip(records, ids, strict=True)]

    rows = f"select id, _cdc_batch, _cdc_reject_reason from staging.stg_{system}__orders order by all"
    for landing in (generation(100, 1, None, None), generation(200, 2, 3, None)):
        lakehouse.run(system, landing)
    before = lakehouse.sql(rows)
    assert len(before) == 6
    for is_pruned in (False, True):
        if is_pruned:
            age(lakehouse, system, 2)
            prune(lakehouse, system)
            result = lakehouse.dbt("run", "--full-refresh", "--select", f"stg_{system}__orders")
            assert not result.success and "has not 3 of its records" in str(result.result[0].message)
        with monkeypatch.context() as patch:
            patch.setenv("REPLAY", "1")
            assert lakehouse.dbt("run", "--select", f"stg_{system}__orders", f"{system}__orders").success
        assert lakehouse.sql(rows) == before
