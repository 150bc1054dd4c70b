"""What tables hold after the lakehouse was changed, pruned, rolled back, keyed otherwise or built again."""

import json
import shutil
import sqlite3
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import pytest
from conftest import Lakehouse
from event_factory import PLACEHOLDER, created, deleted, event, updated
from one_jvm import another_session
from test_stories import Record, live, of_table
from test_types_that_change import POINT, of_schema

from scripts import bronze as bronze_table
from scripts.errors import LakehouseError


def test_a_session_that_keeps_reading_sees_what_another_one_commits(lakehouse: Lakehouse) -> None:
    """As a SQL shell or a dashboard does: Iceberg's cache would show it the same rows for as long as it asks."""
    lakehouse.run("watched", [created(10, id=1, note="a")])
    reader = another_session(lakehouse.spark)
    queries = ["select id, note from watched.orders order by id", "select count(*) from bronze.watched"]
    seen = [[reader.sql(query).collect() for query in queries]]
    lakehouse.run("watched", [updated(20, id=1, note="b")])
    seen.append([reader.sql(query).collect() for query in queries])
    assert seen == [[[(1, "a")], [(1,)]], [[(1, "b")], [(2,)]]]


def test_a_run_with_nothing_new_commits_nothing(lakehouse: Lakehouse) -> None:
    lakehouse.run("idle", [created(10, id=1, note="a")])
    before = lakehouse.sql("select count(*), max(snapshot_id) from silver.idle__orders.snapshots")

    assert lakehouse.dbt("run", "--select", "idle__orders", "idle__event_counts").success
    assert lakehouse.sql("select count(*), max(snapshot_id) from silver.idle__orders.snapshots") == before
    assert lakehouse.sql("select count(*) from monitoring.idle__event_counts.snapshots") == [(1,)]


def test_what_a_table_has_read_is_known_whatever_the_letters_of_its_name(lakehouse: Lakehouse) -> None:
    from adapter import Macros, Relation

    lakehouse.run("letters", [created(10, id=1)])
    folder = lakehouse.project / "models" / "staging" / "letters"
    (folder / "Copy.sql").write_text((folder / "stg_letters__orders.sql").read_text())
    for number in (2, 3):  # a table is created, and appended to
        assert lakehouse.dbt("run", "--select", "Copy").success
        lakehouse.land("letters", [created(number * 10, id=number)])
    assert lakehouse.sql("select id from staging.Copy order by id") == [(1,), (2,)]
    lakehouse.spark.sql("delete from staging.Copy")
    module = Macros(overridden=()).module(run_query=lakehouse._engine._query)
    properties = dict(lakehouse.sql("show tblproperties staging.Copy"))
    assert module.appended_to_log(Relation("staging", "Copy"), properties)["up_to"] == 2
    expired = {**properties, "current-snapshot-id": "1"}  # since they were asked for
    assert module.appended_to_log(Relation("staging", "Copy"), expired) == {"up_to": 0, "append": 0, "greatest": 2}


@pytest.mark.loader
def test_small_files_of_one_table_are_read_by_several_tasks(lakehouse: Lakehouse) -> None:
    """Or one core would type all that landed of one large table: its file is forty times smaller than what is in it."""
    for number in (1, 2):
        lakehouse.land("tasks", [created(number, id=number)])
    assert lakehouse.spark.table("bronze.tasks").rdd.getNumPartitions() == 2


@pytest.mark.loader
def test_what_lands_while_a_run_writes_its_models_has_models_with_the_next_one(lakehouse: Lakehouse) -> None:
    from scripts import runs

    lakehouse.land("meanwhile", [created(10, id=1)])
    done = lakehouse.scaffold("meanwhile")
    lakehouse.land("meanwhile", [event("c", 20, {"id": 2, "note": "b"}), event("c", 21, {"id": 3}, table="lines")])
    assert lakehouse._build.build(lakehouse.spark, ["meanwhile"], [done], print) == 0
    runs.begin()
    lakehouse._run.show(lakehouse.spark, {"meanwhile": 0})
    assert runs.warned() == set()  # that lines have no models yet

    lakehouse.build_landed("meanwhile")
    assert live(lakehouse, "meanwhile") == [{"id": 1, "note": None}, {"id": 2, "note": "b"}]
    assert live(lakehouse, "meanwhile", "lines") == [{"id": 3}]


def grew(lakehouse: Lakehouse, table: str) -> bool:
    """Whether a table was never rebuilt: its first snapshot is one of those that the present one came from."""
    return lakehouse.sql(f"select min_by(is_current_ancestor, made_current_at) from {table}.history") == [(True,)]


def test_new_column_is_named_and_has_its_history(lakehouse: Lakehouse) -> None:
    """No event that was read has it, so nothing is rebuilt; one that lands late is older than the row, and has it."""
    from adapter import Macros

    lakehouse.run(
        "grown",
        [
            created(10, id=1, note="a"),
            created(30, id=2, note="b"),
            event("c", 11, {"id": 1, "code": 1}, table="keyless"),
        ],
    )
    done = lakehouse.run(
        "grown",
        [created(20, id=2, note="b", colour="red", name="x"), updated(40, id=3, note="c", colour="green", name="y")],
    )

    assert any("new columns colour, name" in note for note in done.notes)
    expected = [
        {"id": 1, "note": "a", "colour": None, "name": None},
        {"id": 2, "note": "b", "colour": None, "name": None},
        {"id": 3, "note": "c", "colour": "green", "name": "y"},
    ]
    assert live(lakehouse, "grown") == expected
    lakehouse.run("grown", [of_schema(4, {"place": POINT}, {"place": {"x": 1.5, "y": -2.0, "wkb": "AQE="}})])
    of_orders = dict.fromkeys(expected[0])
    expected = [{**row, "place": None} for row in expected]
    expected.append({**of_orders, "id": 4, "place": {"x": 1.5, "y": -2.0, "wkb": bytearray(b"\x01\x01"), "srid": None}})
    assert live(lakehouse, "grown") == expected
    module = Macros(overridden=()).module(run_query=lakehouse._engine._query)
    types = dict(row[:2] for row in module.spark__get_columns_in_relation_raw("silver.grown__orders").rows)
    assert types["place"] == "struct<x:double,y:double,wkb:binary,srid:int>"
    assert grew(lakehouse, "staging.stg_grown__orders") and grew(lakehouse, "silver.grown__orders")
    assert lakehouse.dbt("run", "--full-refresh", "--select", "stg_grown__orders", "grown__orders").success
    assert live(lakehouse, "grown") == expected


def test_a_column_that_events_had_before_it_was_declared_has_its_history(lakehouse: Lakehouse, project: Path) -> None:
    """Their values are in bronze only: the change log is rebuilt, and silver from it. Columns may come in any place."""
    folder = project / "models"
    staging, silver = folder / "staging/missed/stg_missed__orders.sql", folder / "silver/missed/missed__orders.sql"
    events = [
        created(10, id=1, note="a", colour="red"),
        {**event("c", 11, {"id": 1, "code": 1}, table="hits"), "key": None},
    ]
    lakehouse.run("missed", events)
    whole = {path: path.read_text() for path in (staging, silver)}
    staging.write_text(whole[staging].replace("'note': 'string',", ""))
    silver.write_text(whole[silver].replace("'note',", ""))
    assert staging.read_text() != whole[staging] and silver.read_text() != whole[silver]
    lakehouse.run("missed", [updated(20, id=1, note="b", colour="blue")])
    assert live(lakehouse, "missed") == [{"id": 1, "colour": "blue"}]
    staging.write_text(whole[staging])
    lakehouse.build_landed("missed")  # the log only
    assert not grew(lakehouse, "staging.stg_missed__orders")
    silver.write_text(whole[silver])
    lakehouse.run("missed", [{**event("c", 30, {"id": 2, "code": 2}, table="hits"), "key": None}])
    assert live(lakehouse, "missed") == [{"id": 1, "note": "b", "colour": "blue"}]
    properties = silver.with_suffix(".yml")
    newer = {path: path.read_text() for path in (staging, silver, properties)}
    staging.write_text(newer[staging].replace("'note': 'string',", ""))
    silver.write_text(newer[silver].replace("'note',", ""))
    properties.write_text(newer[properties].replace("note: string", ""))  # a checkout of older models
    lakehouse.land("missed", [updated(35, id=3, colour="green")])
    (failed,) = lakehouse.dbt("run", "--select", "stg_missed__orders").result
    assert 'neither this model nor its YAML names: {"note": "string"}' in failed.message
    for file, text in newer.items():
        file.write_text(text)

    for path, place in (
        ("staging/missed/stg_missed__hits.sql", "'place': 'string', "),
        ("silver/missed/missed__hits.sql", "'place', "),
    ):
        text = (folder / path).read_text()
        (folder / path).write_text(text.replace("'id'", place + "'id'", 1))
    lakehouse.run("missed", [{**event("c", 40, {"id": 3, "code": 3, "place": "here"}, table="hits"), "key": None}])
    assert lakehouse.sql("select place, id, code from silver.missed__hits order by id") == [
        (None, 1, 1),
        (None, 2, 2),
        ("here", 3, 3),
    ]
    assert grew(lakehouse, "staging.stg_missed__hits")


def test_a_change_log_that_was_rolled_back_loses_nothing_and_repeats_nothing(lakehouse: Lakehouse) -> None:
    """Its readers have merged appends that it does not hold any more; numbers that were given again would hide what
    lands next.
    """

    def hit(number: int) -> Record:
        return {**event("c", number, {"id": number}, table="hits"), "key": None}

    ids: list[int] = []

    def land() -> None:
        ids.append(10 * len(ids))
        lakehouse.run("log_rolled", [created(10 + ids[-1], id=ids[-1]), hit(11 + ids[-1])])

    def check() -> None:
        assert [row["id"] for row in live(lakehouse, "log_rolled")] == ids
        assert lakehouse.sql("select id from silver.log_rolled__hits order by 1") == [(11 + number,) for number in ids]
        assert lakehouse.sql("select sum(events) from monitoring.log_rolled__event_counts") == [(2 * len(ids),)]

    land()
    land()
    for reads_between in (True, False):
        for log in ("staging.stg_log_rolled__orders", "staging.stg_log_rolled__hits"):
            history = f"{log}.history where is_current_ancestor"
            ((first,),) = lakehouse.sql(f"select min_by(snapshot_id, made_current_at) from {history}")
            lakehouse.spark.sql(f"call system.rollback_to_snapshot('{log}', {first})")
        if reads_between:
            assert lakehouse.dbt("run", "--select", "log_rolled__orders", "log_rolled__hits").success
        land()
        check()
    assert lakehouse.dbt("run", "--full-refresh", "--select", "source:bronze.log_rolled+").success
    check()
    land()  # a rebuild is no rollback
    for table in ("silver.log_rolled__orders", "staging.stg_log_rolled__orders"):
        assert lakehouse.sql(f"select count_if(is_current_ancestor) from {table}.history") == [(2,)]


def test_a_change_log_that_was_rolled_back_with_its_records_is_told(lakehouse: Lakehouse) -> None:
    for number in (1, 2):
        lakehouse.run("both_rolled", [created(10 * number, id=number)])
    for table in ("staging.stg_both_rolled__orders", "bronze.both_rolled"):
        ((first,),) = lakehouse.sql(f"select min_by(snapshot_id, made_current_at) from {table}.history")
        lakehouse.spark.sql(f"call system.rollback_to_snapshot('{table}', {first})")
    with pytest.raises(AssertionError, match="both_rolled__orders: it has to be rebuilt, but bronze.* has 1 of the 2"):
        lakehouse.run("both_rolled", [created(30, id=3)])


def test_the_lag_is_that_of_the_merge_whenever_a_table_begins_or_is_rebuilt(lakehouse: Lakehouse) -> None:
    """Its appends are not the batches of bronze."""
    lakehouse.run("later", [created(10, id=1)])
    lakehouse.run("later", [created(20, id=2), of_table(created(21, id=1), "lines")])
    for _ in range(2):
        lag = lakehouse.view("later", "lag")
        found = lakehouse.sql(f"select source_table, batch, merged_at > landed_at from {lag} order by 1")
        assert found == [("public.lines", 2, True), ("public.orders", 2, True)]
        before = lakehouse.sql(f"select max(merged_at) from {lag}")
        assert lakehouse.dbt("run", "--full-refresh", "--select", "source:bronze.later+").success
    assert lakehouse.sql(f"select min(merged_at) from {lag}") > before
    lakehouse.run("later", [created(5, id=3)])  # which is older than the newest change
    options = "older_than => timestamp '2100-01-01', retain_last => 1"
    lakehouse.spark.sql(f"call system.expire_snapshots(table => 'silver.later__orders', {options})").collect()
    merged = f"select source_table from {lakehouse.view('later', 'lag')} where merged_at is not null"
    assert lakehouse.sql(merged) == [("public.lines",)]


def test_changed_key_is_refused_until_the_table_is_rebuilt(lakehouse: Lakehouse, project: Path) -> None:
    lakehouse.run("rekeyed", [created(10, id=1, code="x")])
    names = (
        "silver/rekeyed/rekeyed__orders.sql",
        "staging/rekeyed/stg_rekeyed__orders.sql",
        "silver/rekeyed/rekeyed__orders.yml",
    )
    silver, staging, properties = (project / "models" / name for name in names)
    silver.write_text(silver.read_text().replace("keys = ['id']", "keys = ['code']"))

    def refused(told: str, *options: str) -> None:
        result = lakehouse.dbt("run", "--select", "rekeyed__orders", *options)
        assert not result.success and any(told in str(node.message) for node in result.result)

    refused("--full-refresh")
    refused('its staging model has ["id"]', "--full-refresh")  # whose deletes would name no row
    staging.write_text(staging.read_text().replace("keys = ['id']", "keys = ['code']"))
    properties.write_text(properties.read_text().replace("keys: [id]", "keys: [code]"))
    assert lakehouse.dbt("run", "--full-refresh", "--select", "rekeyed__orders", "stg_rekeyed__orders").success


def test_a_key_that_is_named_for_models_that_were_edited_by_hand_is_asked_for_there(
    lakehouse: Lakehouse, project: Path
) -> None:
    """It would not be taken into them, and rows be merged under the old, narrower one."""

    def lines(*rows: tuple[int, int]) -> list[dict[str, Any]]:
        found = []
        for number, (id, line) in enumerate(rows, 10):
            record = created(number, id=id, line=line, note="n")
            found.append({**record, "key": json.dumps({"id": id, "line": line}) if line else record["key"]})
        return found

    lakehouse.run("edited_key", lines((1, 0)))
    models = project / "models"
    staging = models / "staging" / "edited_key" / "stg_edited_key__orders.sql"
    staging.write_text(staging.read_text().replace("'line': 'int64'", "'line': 'int32'"))
    lakehouse.build_landed("edited_key")
    lakehouse.land("edited_key", [{**record, "offset": record["offset"] + 10} for record in lines((1, 1), (1, 2))])
    wanted = {"orders": ["id", "line"]}
    for keys in (None, wanted, wanted):
        with pytest.raises(
            LakehouseError, match=r"Write keys = \['id', 'line'\] there" if keys else "its messages are keyed by"
        ):
            lakehouse.scaffold("edited_key", keys=keys)
    for name in ("staging/edited_key/stg_edited_key__orders.sql", "silver/edited_key/edited_key__orders.sql"):
        path = models / name
        path.write_text(path.read_text().replace("keys = ['id']", "keys = ['id', 'line']"))
    properties = models / "silver" / "edited_key" / "edited_key__orders.yml"
    properties.write_text(properties.read_text().replace("        keys: [id]", "        keys: [id, line]", 1))
    lakehouse.build_landed("edited_key", keys=wanted)
    assert [row["line"] for row in lakehouse.rows("edited_key.orders", "line")] == [0, 1, 2]
    lakehouse.run(
        "edited_key", [{**record, "offset": record["offset"] + 30} for record in lines((1, 3))]
    )  # and is known now


def test_models_that_are_not_those_that_built_the_lakehouse_are_not_written_anew(
    lakehouse: Lakehouse, project: Path
) -> None:
    """A fresh checkout on a lakehouse whose table was built under a key that KEYS named."""
    keyless = [{**created(number, id=number), "key": None} for number in (1, 2)]
    lakehouse.run("elsewhere", keyless, keys={"orders": ["id"]})
    for layer in ("staging", "silver", "live"):
        shutil.rmtree(project / "models" / layer / "elsewhere")
    with pytest.raises(LakehouseError, match=r"Put models/ back as it was then, .*KEYS='public.orders=<column>'"):
        lakehouse.scaffold("elsewhere")


@pytest.mark.loader
def test_table_whose_events_were_deleted_goes_on_and_is_not_built_anew(lakehouse: Lakehouse) -> None:
    """A full refresh of its change log would lose what no record tells any more."""
    bronze = "bronze.pruned"

    def refused(match: str) -> None:
        result = lakehouse.dbt("run", "--full-refresh", "--select", "stg_pruned__orders")
        assert [
            str(node.message)
            for node in result.result
            if match in str(node.message) and "drop table" in str(node.message)
        ]
        assert lakehouse.dbt(
            "run", "--full-refresh", "--select", "pruned__orders"
        ).success  # which reads the change log

    def snapshot() -> Any:
        return lakehouse.sql(f"select snapshot_id from {bronze}.refs")[0][0]

    lines = [of_table(created(offset, id=offset, note="line"), "lines") for offset in (11, 12)]
    lakehouse.run("pruned", [created(10, id=1, note="only here"), *lines, created(13, id=2, note="b")])
    whole = snapshot()
    lakehouse.spark.sql(f"delete from {bronze} where offset = 10")
    later = [updated(30, id=2, note="c")]
    lakehouse.run("pruned", later)
    assert len(live(lakehouse, "pruned")) == 2
    refused("has not 1 of its records (shop.public.orders/0/10)")
    assert len(live(lakehouse, "pruned")) == 2
    assert lakehouse.dbt("run", "--full-refresh", "--select", "stg_pruned__lines", "pruned__lines").success
    lakehouse.run("pruned", [created(40, id=3, note="d", more="new")])  # which no event had before
    assert len(live(lakehouse, "pruned")) == 3

    lakehouse.spark.sql(f"insert into {bronze} select * from {bronze} version as of {whole} where offset = 10")
    lakehouse.build_landed("pruned")
    assert [row["id"] for row in live(lakehouse, "pruned")] == [1, 2, 3]

    for number, offset in enumerate((50, 60)):  # all is deleted; the second time no snapshot tells what there was
        lakehouse.spark.sql(f"delete from {bronze}")
        if number:
            lakehouse.spark.sql(f"call system.expire_snapshots(table => '{bronze}', older_than => current_timestamp())")
        landed = lakehouse.land("pruned", later)  # a copy of a file that has landed
        assert (landed.records, landed.batches, ["same content" in note for note in landed.notes]) == (0, [], [True])
        landed = lakehouse.land("pruned", [updated(offset, id=3, note=str(offset), more="newer")])
        assert (landed.batches, landed.notes) == ([4 + number], [])
        lakehouse.build_landed("pruned")
        assert live(lakehouse, "pruned")[-1] == {"id": 3, "note": str(offset), "more": "newer"}
        refused(f"has not {4 + number} of its records")


@pytest.mark.loader
@pytest.mark.parametrize("system", ["takenback", pytest.param("takenback_routed", marks=pytest.mark.soak)])
def test_batches_that_were_taken_back_from_bronze_are_not_merged_by_halves(lakehouse: Lakehouse, system: str) -> None:
    """What lands next would have their numbers, which tables that have merged them would never read."""
    is_routed = system == "takenback_routed"
    built_from_others = f"(?s)not what it was built from.* --select source:bronze.{system}[+]"

    def of(*records: Record) -> list[Record]:
        return [{**record, "topic": "shop.all"} for record in records] if is_routed else list(records)

    def rebuilt() -> Any:
        return lakehouse.dbt("run", "--full-refresh", "--select", f"source:bronze.{system}+")

    first = of(created(10, id=1, note="a"), {**of_table(created(11, id=1), "hits"), "key": None})
    taken_back = of(
        updated(20, id=1, note="b"), created(21, id=2, note="b"), {**of_table(created(22, id=2), "hits"), "key": None}
    )
    others = of(*(updated(offset, id=1, note="c") for offset in (30, 31, 32)))
    last = of(updated(40, id=2, note="d")), of(updated(50, id=1, note="e"))
    lakehouse.run(system, first)
    then = lakehouse.sql(f"select snapshot_id from bronze.{system}.refs")[0][0]
    lakehouse.run(system, taken_back)
    if is_routed:  # its loader died between its two commits
        lakehouse.spark.sql(f"delete from bronze.{system}__files where batch = 2")
    lakehouse.spark.sql(f"call system.rollback_to_snapshot('bronze.{system}', {then})")

    landed = lakehouse.land(system, others)
    assert landed.batches == [3] and "ends with batch 1, where 2 had landed" in landed.notes[0]
    for _ in range(2):
        with pytest.raises(AssertionError, match=built_from_others):
            lakehouse.build_landed(system)
        models = {line.split(":")[0].strip().removeprefix(f"{system}__") for line in lakehouse.said[1:]}
        tables = {name for name in models if not name.startswith(("stg_", "live_"))}  # all that reads them is told, too
        assert (
            tables - {"events"} == {"orders", "hits", "event_counts", "rejected_events"}
            and ("events" in models) == is_routed
        )
    if is_routed:
        result = lakehouse.dbt("run", "--select", f"{system}__orders")
        assert any("not what it was built from" in str(node.message) for node in result.result)
    result = lakehouse.dbt(
        "run", "--full-refresh", "--select", f"{system}__orders"
    )  # its change log is not of this bronze
    assert any("not what it was built from" in str(node.message) for node in result.result)
    told = [str(node.message) for node in rebuilt().result]
    assert [message for message in told if "has not 2 of its records" in message]  # there are as many as it has read
    landed = lakehouse.land(system, taken_back)
    assert (landed.batches, landed.notes) == ([4], [])
    assert rebuilt().success
    assert live(lakehouse, system) == [{"id": 1, "note": "c"}, {"id": 2, "note": "b"}]
    assert lakehouse.sql(f"select id from silver.{system}__hits order by 1") == [(1,), (2,)]
    assert lakehouse.sql(f"select sum(events) from monitoring.{system}__event_counts") == [(8,)]
    lakehouse.build_landed(system)
    lakehouse.run(system, last[0])
    assert live(lakehouse, system) == [{"id": 1, "note": "c"}, {"id": 2, "note": "d"}]

    if is_routed:
        return
    for table in (system, f"{system}__files"):  # to land everything anew
        lakehouse.spark.sql(f"drop table bronze.{table}")
    lakehouse.land(system, first)
    with pytest.raises(AssertionError, match=built_from_others):
        lakehouse.build_landed(system)
    assert any("has not 6 of its records" in str(node.message) for node in rebuilt().result)
    for records in (taken_back, others, *last):
        lakehouse.land(system, records)
    assert rebuilt().success
    lakehouse.build_landed(system)
    assert live(lakehouse, system) == [{"id": 1, "note": "e"}, {"id": 2, "note": "d"}]


@pytest.mark.loader
def test_what_is_taken_back_from_bronze_lands_again_however_often(
    lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it was put back meanwhile, where bronze is gone, and where nothing tells any more what had landed."""
    bronze = "bronze.again_and_again"
    batches = [[created(10, id=1)], [created(20, id=2)], [created(30, id=3)]]
    for records in batches:
        lakehouse.land("again_and_again", records)
        if records is batches[1]:
            stale = bronze_table.state(lakehouse.spark, bronze)

    def set_to(number: int) -> None:
        lakehouse.spark.sql(f"call system.set_current_snapshot('{bronze}', {snapshots[number][0]})")

    def landed(*records: Record) -> tuple[int, bool]:
        found = lakehouse.land("again_and_again", list(records))
        return found.records, any("where" in note and "had landed" in note for note in found.notes)

    def identity() -> Any:
        return lakehouse.sql(f"show tblproperties {bronze} ('cdc.id')")

    # A loader whose look at bronze is old: of what landed since there is only that it landed once more.
    lakehouse.spark.sql(f"delete from {bronze}__files where batch = 3")
    assert landed(*batches[2]) == (0, False)
    state = bronze_table.state
    looks = iter([stale])
    monkeypatch.setattr(bronze_table, "state", lambda *of: next(looks, None) or state(*of))
    assert landed(*batches[2], created(31, id=3)) == (1, False)

    snapshots = lakehouse.sql(f"select snapshot_id from {bronze}.snapshots order by committed_at")
    set_to(0)
    assert landed(*batches[0]) == (0, True)
    set_to(-1)
    assert landed(*batches[2]) == (0, False)
    set_to(0)
    assert landed(*batches[1], *batches[2]) == (2, True)

    lakehouse.spark.sql(f"drop table {bronze}")
    assert landed(*batches[0]) == (1, True)
    before = identity()
    lakehouse.spark.sql(f"delete from {bronze}")
    lakehouse.spark.sql(f"call system.expire_snapshots(table => '{bronze}', older_than => current_timestamp())")
    lakehouse.spark.sql(f"drop table {bronze}__files")
    assert landed(*batches[0]) == (1, False)
    assert identity() != before


@pytest.mark.loader
def test_batches_that_were_taken_back_without_a_trace_stay_in_the_tables(lakehouse: Lakehouse) -> None:
    """Their snapshots were expired: what was merged stays, new batches have other numbers, and no table is built
    without them.
    """
    lakehouse.run("untraced", [created(10, id=1, note="a")])
    then = lakehouse.sql("select snapshot_id from bronze.untraced.refs")[0][0]
    taken_back = [updated(20, id=1, note="b"), created(21, id=2, note="b")]
    lakehouse.run("untraced", taken_back)
    lakehouse.spark.sql(f"call system.rollback_to_snapshot('bronze.untraced', {then})")
    lakehouse.spark.sql("call system.expire_snapshots(table => 'bronze.untraced', older_than => current_timestamp())")
    assert lakehouse.land("untraced", [updated(15, id=1, note="late"), created(30, id=3, note="c")]).batches == [3]
    lakehouse.build_landed("untraced")
    assert [row["note"] for row in live(lakehouse, "untraced")] == ["b", "b", "c"]
    assert lakehouse.dbt("run", "--full-refresh", "--select", "untraced__orders").success
    assert [row["note"] for row in live(lakehouse, "untraced")] == ["b", "b", "c"]
    result = lakehouse.dbt("run", "--full-refresh", "--select", "stg_untraced__orders")
    assert any("has not 2 of its records" in str(node.message) for node in result.result)


def test_table_whose_snapshots_were_expired_counts_no_change_twice(lakehouse: Lakehouse) -> None:
    """What it reads again, as none of its rows is of the batch that it was built from last, it had counted."""
    lakehouse.land("expired", [updated(30, id=1, note="c")])
    lakehouse.run("expired", [created(10, id=1, note="a"), updated(20, id=1, note="b")])
    silver = "silver.expired__orders"
    lakehouse.spark.sql(f"call system.rewrite_data_files(table => '{silver}', options => map('rewrite-all', 'true'))")
    lakehouse.spark.sql(f"call system.expire_snapshots(table => '{silver}', older_than => current_timestamp())")
    lakehouse.run("expired", [created(40, id=2, note="d")])
    assert lakehouse.dbt("run", "--full-refresh", "--select", "expired__orders").success
    assert [row["note"] for row in live(lakehouse, "expired")] == ["c", "d"]


def test_table_that_was_rolled_back_merges_again_what_it_lacks(lakehouse: Lakehouse) -> None:
    """What it has merged the commits before its present one tell, of which the last are another tool's."""

    def snapshot() -> Any:
        return lakehouse.sql("select snapshot_id from silver.rolledback__orders.refs")[0][0]

    def compact() -> None:
        before = snapshot()
        for _ in range(2):
            lakehouse.spark.sql(
                "call system.rewrite_data_files(table => 'silver.rolledback__orders', options => map('rewrite-all',"
                " 'true'))"
            )
        assert snapshot() != before

    lakehouse.run("rolledback", [created(10, id=1, note="a")])
    then = snapshot()
    lakehouse.run("rolledback", [updated(20, id=1, note="b"), created(21, id=2, note="b")])
    compact()
    merged = snapshot()
    assert lakehouse.dbt("run", "--select", "rolledback__orders").success
    assert snapshot() == merged
    lakehouse.run("rolledback", [updated(30, id=2, note="c")])
    lakehouse.spark.sql(f"call system.rollback_to_snapshot('silver.rolledback__orders', {then})")
    compact()
    lakehouse.run("rolledback", [created(40, id=3, note="d")])
    assert [row["note"] for row in live(lakehouse, "rolledback")] == ["b", "c", "d"]
    assert lakehouse.dbt("run", "--full-refresh", "--select", "rolledback__orders").success
    assert [row["note"] for row in live(lakehouse, "rolledback")] == ["b", "c", "d"]


@pytest.mark.loader
def test_a_catalog_that_was_restored_is_built_from_what_lands_again(lakehouse: Lakehouse) -> None:
    """The batches that it lacks come again under numbers that had been built and counted; those of another table are no
    sign of them.
    """

    def catalog(*statements: tuple[str, tuple[Any, ...]]) -> list[Any]:
        with closing(sqlite3.connect(lakehouse.project / "lakehouse" / "catalog.db")) as database:
            for statement, values in statements:
                database.execute(statement, values)
            database.commit()
            tables = (
                "select metadata_location, table_namespace, table_name from iceberg_tables where table_name like"
                " '%putback%'"
            )
            return database.execute(tables).fetchall()

    first, others = created(10, id=1, note="a"), of_table(created(11, id=1, note="a"), "others")
    lakehouse.run("putback", [first, others])
    backup = catalog()
    later = [[created(20, id=2, note="b")], [created(30, id=3, note="c")]]
    for records in later:
        lakehouse.run("putback", records)
    assert len(live(lakehouse, "putback")) == 3
    put_back = "update iceberg_tables set metadata_location = ? where table_namespace = ? and table_name = ?"
    catalog(*((put_back, row) for row in backup))
    assert len(live(lakehouse, "putback")) == 1
    for records in later:
        assert lakehouse.land("putback", records).records == 1
    lakehouse.run("putback", [of_table(created(40, id=2, note="b"), "others")])
    assert [row["note"] for row in live(lakehouse, "putback")] == ["a", "b", "c"]

    lakehouse.land("putback", [created(50, id=4, note="d")])  # and the backup is of before this was built
    backup = catalog()
    lakehouse.build_landed("putback")
    catalog(*((put_back, row) for row in backup))
    assert len(live(lakehouse, "putback")) == 3
    lakehouse.build_landed("putback")
    assert [row["note"] for row in live(lakehouse, "putback")] == ["a", "b", "c", "d"]
    assert lakehouse.build_landed("putback").above > 0 and lakehouse.said == ["Nothing new to build."]


def test_tables_are_built_from_what_their_models_say_now_or_not_at_all(lakehouse: Lakehouse) -> None:
    """Also where a run leaves the staging model, or the live view, out, and where more stands in a model than the one
    call.
    """
    lakehouse.run("stale", [created(10, id=1, first="a", last="b"), created(11, id=2, first="c", last="d")])
    models = lakehouse.project / "models"
    staging, silver = (
        models / layer / "stale" / f"{name}stale__orders.sql" for layer, name in (("staging", "stg_"), ("silver", ""))
    )
    as_written = staging.read_text(), silver.read_text()
    staging.write_text(as_written[0].replace("        'first':", "        'middle': 'string',\n        'first':"))
    silver.write_text(as_written[1].replace("        'first',", "        'middle',\n        'first',"))
    for arguments in (["--full-refresh"], []):
        told = str([node.message for node in lakehouse.dbt("run", *arguments, "--select", "stale__orders").result])
        assert "is not what its model says now" in told and "dbt run --select stg_stale__orders+" in told
    assert lakehouse.dbt("run", "--select", "stg_stale__orders", "stale__orders").success
    assert lakehouse.sql("select middle, first, last from silver.stale__orders order by id") == [
        (None, "a", "b"),
        (None, "c", "d"),
    ]
    assert live(lakehouse, "stale") == [{"id": 1, "first": "a", "last": "b"}, {"id": 2, "first": "c", "last": "d"}]
    assert lakehouse.dbt("run", "--select", "live_stale__orders").success
    assert lakehouse.sql("select middle, first, last from stale.orders order by id") == [
        (None, "a", "b"),
        (None, "c", "d"),
    ]

    silver.write_text(silver.read_text() + "where first = 'a'\n")
    told = str([node.message for node in lakehouse.dbt("run", "--select", "stale__orders").result])
    assert "has to be one call of debezium_changes, debezium_latest" in told and "and nothing else" in told


def test_what_is_gone_is_built_again_and_what_is_not_ours_is_left(lakehouse: Lakehouse) -> None:
    """A table that was dropped, models that were deleted; a model that somebody wrote where one would be."""
    lakehouse.run("dropped", [created(10, id=1, note="a")])
    for table in ("silver.dropped__orders", "staging.stg_dropped__orders"):
        lakehouse.spark.sql(f"drop table {table}")
        lakehouse.build_landed("dropped")
        assert live(lakehouse, "dropped") == [{"id": 1, "note": "a"}]
        assert lakehouse.sql("select id from staging.stg_dropped__orders") == [(1,)]

    for layer in ("staging", "silver", "live"):
        shutil.rmtree(lakehouse.project / "models" / layer / "dropped")
    own = lakehouse.project / "models" / "silver" / "dropped" / "dropped__orders.sql"
    own.parent.mkdir()
    own.write_text("select 1 as ours")
    done = lakehouse.scaffold("dropped")
    assert any(
        "no model was written, as models/silver/dropped/dropped__orders.sql is there" in note for note in done.notes
    )
    assert own.read_text() == "select 1 as ours"
    own.unlink()
    lakehouse.build_landed("dropped")
    assert own.exists() and live(lakehouse, "dropped") == [{"id": 1, "note": "a"}]


def test_a_table_that_was_removed_does_not_come_back(lakehouse: Lakehouse) -> None:
    """As docs/operating.md says it. Without the last step its changes would be told of: they have no model."""
    lakehouse.run("removed", [created(10, id=1), of_table(created(11, id=1), "lines")])

    def remove(table: str) -> None:
        for path in (lakehouse.project / "models").glob(f"*/removed/*__{table}.*"):
            path.unlink()
        for name in (f"table silver.removed__{table}", f"table staging.stg_removed__{table}", f"view removed.{table}"):
            lakehouse.spark.sql(f"drop {name}")
        lakehouse.spark.sql(f"delete from bronze.removed where topic = 'shop.public.{table}'")

    remove("lines")
    for offset in (20, 30):
        lakehouse.run("removed", [created(offset, id=offset)])
    assert not list((lakehouse.project / "models").glob("*/removed/*__lines.*"))
    assert len(live(lakehouse, "removed")) == 3
    assert lakehouse.sql("select kind, sum(events) from monitoring.removed__event_counts group by kind") == [
        ("change", 3)
    ]

    remove("orders")
    lakehouse.run("removed", [])
    assert lakehouse.rejected("removed") == []
    counts = lakehouse.project / "models" / "monitoring" / "removed" / "removed__event_counts.sql"
    assert "ref(" not in counts.read_text(), "dbt would compile no system, for want of these models"


def test_a_type_that_was_corrected_by_hand_is_that_of_the_live_view_too(lakehouse: Lakehouse) -> None:
    lakehouse.run("corrected", [created(10, id=1, at=1700000000000)])
    model = lakehouse.project / "models" / "staging" / "corrected" / "stg_corrected__orders.sql"
    model.write_text(model.read_text().replace("'at': 'int64'", "'at': 'Timestamp'"))
    lakehouse.run("corrected", [])
    assert lakehouse.sql("select cast(at as string) from corrected.orders") == [("2023-11-14 22:13:20",)]


def test_topics_that_were_added_to_a_model_by_hand_are_followed(lakehouse: Lakehouse) -> None:
    """Its YAML, by whose topics a run finds what is new, has to say the same."""

    def renamed(record: Record) -> Record:
        return {**record, "topic": "shop2.public.orders"}

    lakehouse.run("followed", [created(10, id=1, note="a")])
    staging = lakehouse.project / "models" / "staging" / "followed" / "stg_followed__orders.sql"
    staging.write_text("-- ours\n" + staging.read_text())
    done = lakehouse.run("followed", [renamed(created(20, id=2, note="b"))])
    assert any(
        "topics shop2.public.orders: its models were edited by hand, so add them there" in note for note in done.notes
    )
    both = staging.read_text().replace("['shop.public.orders']", "['shop.public.orders', 'shop2.public.orders']")
    staging.write_text(both)
    told = [str(node.message) for node in lakehouse.dbt("run", "--select", "stg_followed__orders").result]
    assert any("meta.debezium.topics in its YAML" in message for message in told)
    lakehouse.run("followed", [])
    assert live(lakehouse, "followed") == [{"id": 1, "note": "a"}, {"id": 2, "note": "b"}]
    lakehouse.run("followed", [renamed(updated(30, id=1, note="c")), renamed(deleted(31, id=2))])
    assert live(lakehouse, "followed") == [{"id": 1, "note": "c"}]
    assert staging.read_text() == both


def test_a_silver_table_that_is_built_anew_by_itself_keeps_its_counts_and_rejects(lakehouse: Lakehouse) -> None:
    broken = {**created(12, id=3), "value": "{"}
    lakehouse.run("recounted", [created(10, id=1), created(11, id=2), broken])
    lakehouse.run("recounted", [updated(20, id=1)])
    counts = (
        "select source_table, kind, op, sum(events) from monitoring.recounted__event_counts group by all order by all"
    )
    before, rejected = lakehouse.sql(counts), lakehouse.rejected("recounted")
    assert len(before) == 3 and len(rejected) == 1
    lakehouse.spark.sql("drop table silver.recounted__orders")
    assert lakehouse.dbt("run", "--select", "source:bronze.recounted+").success
    assert (lakehouse.sql(counts), lakehouse.rejected("recounted")) == (before, rejected)


def test_a_tombstone_whose_delete_was_compacted_away_deletes_nothing(lakehouse: Lakehouse) -> None:
    """It has no position, and may be older than the row: what docs/operating.md says of compacted topics."""
    tombstone = {**created(11, id=1), "value": None}
    lakehouse.run("half_compacted", [created(10, id=1), tombstone])
    assert lakehouse.rows("half_compacted.orders") == [{"id": 1}]
    assert lakehouse.sql(
        "select sum(events) from monitoring.half_compacted__event_counts where kind = 'tombstone'"
    ) == [(1,)]


def test_an_old_half_that_is_rejected_is_shown_where_nothing_else_is(lakehouse: Lakehouse) -> None:
    """Its `before` lacks a part of the key: the new row is there, the old one stays, and that is no secret."""

    def moved(offset: int, before: dict[str, int] | None, after: dict[str, int]) -> Record:
        value = {"op": "u" if before else "c", "before": before, "after": after, "source": {"db": "d", "table": "t"}}
        return {"topic": "d.t", "partition": 0, "offset": offset, "key": None, "value": json.dumps(value)}

    keys = {"t": ["a", "b"]}
    lakehouse.run("halves", [moved(0, None, {"a": 1, "b": 5})], "generic", keys)
    lakehouse.run("halves", [moved(1, {"a": 1}, {"a": 2, "b": 5})])
    assert lakehouse.rows("halves.t", "a") == [{"a": 1, "b": 5}, {"a": 2, "b": 5}]
    assert lakehouse.rejected("halves") == [("d.t/0/1#before", "no_key")]


@pytest.mark.loader
def test_rejected_records_of_the_same_coordinates_are_each_shown_once_also_when_built_anew(
    lakehouse: Lakehouse,
) -> None:
    """A topic that was recreated has other records at its offsets, and one landing may have both."""
    broken = [{**created(11, id=1), "value": text} for text in ("{", "[", '{"op":"c"')]
    lakehouse.run("twins", [created(10, id=1), *broken])
    lakehouse.run("twins", [created(20, id=2, more="a"), {**broken[0], "value": "{{"}])
    query = "select event_id, value, count(*) from monitoring.twins__rejected_events group by 1, 2 order by 2"
    texts = sorted(["{", "[", '{"op":"c"', "{{"])
    assert lakehouse.sql(query) == [("shop.public.orders/0/11", text, 1) for text in texts]
    assert lakehouse.sql("select sum(events) from monitoring.twins__event_counts where kind = 'rejected'") == [(4,)]


@pytest.mark.parametrize("system", ["usable", "usable_routed"])
def test_records_that_became_usable_do_not_stand_for_ones_that_were_deleted(lakehouse: Lakehouse, system: str) -> None:
    def of(*records: Record) -> list[Record]:
        others = {**of_table(created(9, id=1), "others"), "key": None}
        return (
            [{**one, "topic": "shop.all"} for one in (*records, others)] if system == "usable_routed" else list(records)
        )

    lakehouse.run(system, of(created(10, id=1, note="big", k=1)))
    lakehouse.run(system, of(updated(20, id=1, note=PLACEHOLDER, k=2), created(21, id=2, note="b", k="text")))
    assert len(lakehouse.rejected(system)) == 1
    lakehouse.spark.sql(f"delete from bronze.{system} where offset = 10")
    if system == "usable_routed":
        lakehouse.spark.sql(f"delete from staging.{system}__events where offset = 10")
    model = lakehouse.project / "models" / "staging" / system / f"stg_{system}__orders.sql"
    model.write_text(model.read_text().replace("'k': 'int64'", "'k': 'string'"))
    with pytest.raises(AssertionError, match="has not 1 of its records"):
        lakehouse.run(system, [])
    lakehouse.sql(f"drop table staging.stg_{system}__orders")  # so that none of its rows says what is missing
    with pytest.raises(AssertionError, match="has 2 of the 3 changes and rejected records"):
        lakehouse.run(system, [])
    assert lakehouse.sql(f"select id, note from silver.{system}__orders") == [(1, "big")]


def test_table_without_a_key_is_a_change_log_until_a_key_is_named(lakehouse: Lakehouse) -> None:
    records = [event("c", 10, {"id": 1, "note": "a"}), event("c", 11, {"id": 1, "note": "a"})]
    for record in records:
        record["key"] = None
    done = lakehouse.run("keyless", records)
    assert any("change log" in note for note in done.notes)
    rows = "select id, note, _cdc_op from silver.keyless__orders"
    assert lakehouse.sql(rows) == [(1, "a", "c")] * 2
    lakehouse.sql("drop view silver.keyless__orders")  # which a former version made as a table
    lakehouse.sql("create table silver.keyless__orders using iceberg as select 1 as id")
    (lakehouse.project / "lakehouse" / "built.json").unlink()
    lakehouse.run("keyless", [])
    assert lakehouse.sql(rows) == [(1, "a", "c")] * 2
    lakehouse.sql("drop view silver.keyless__orders")
    lakehouse.run("keyless", [])
    assert lakehouse.sql(rows) == [(1, "a", "c")] * 2

    lakehouse.run("keyless_still", records)
    lakehouse.land("keyless_still", [{**event("c", 12, {"id": 2, "code": "x"}), "key": None}])
    assert any(
        "new columns code" in note
        for note in lakehouse.scaffold("keyless_still", keys={"orders": ["id", "code"]}).notes
    )
    lakehouse.forget_models()
    lakehouse.run("keyless_still", [])
    lakehouse.build_landed("keyless_still", keys={"orders": ["id"]})
    assert live(lakehouse, "keyless_still") == [
        {"id": 1, "note": "a", "code": None},
        {"id": 2, "note": None, "code": "x"},
    ]

    again = event("u", 12, {"id": 1, "note": "b"})
    again["key"] = None
    lakehouse.run("keyless", [again], keys={"orders": ["id"]})
    assert live(lakehouse, "keyless") == [{"id": 1, "note": "b"}]


def test_transactions_have_their_expected_and_their_landed_events(lakehouse: Lakehouse) -> None:
    """Of a table with a column named like a marker's.

    What is delivered again counts once, with any number; equal rows do not.
    """

    def marker(status: str, id: str, offset: int, count: int | None) -> dict[str, object]:
        value = {"status": status, "id": id, "event_count": count, "data_collections": None, "ts_ms": 1700000000000}
        place = {"topic": "paid.transaction", "partition": 0, "offset": offset, "timestamp": 0, "headers": []}
        return {**place, "key": json.dumps({"id": id}), "value": json.dumps(value)}

    def of_transaction(record: Record, id: str, number: int, **changed: int) -> Record:
        value = json.loads(str(record["value"]))
        value["transaction"] = {"id": id, "total_order": number, "data_collection_order": number}
        value["source"]["ts_ms"] += number
        return {**record, "value": json.dumps(value), **changed}

    first, second = created(20, id=1, status="a"), created(21, id=2, status="b")
    gtid, equal = "0-1-5", event("c", 31, {"note": "x"}, {}, "notes")  # of a table without a key
    lakehouse.run(
        "paid",
        [
            marker("BEGIN", "571:9000", 0, None),
            of_transaction(first, "571:9001", 1),
            of_transaction(second, "571:9002", 2),
            of_transaction(second, "571:9002", 1, offset=50),  # it was cut, and its numbers begin anew
            of_transaction(created(22, id=3, status="b"), "571:9003", 2),
            marker("END", "571:9004", 1, 4),
            marker("BEGIN", gtid, 2, None),
            of_transaction(updated(30, id=1, status="c"), gtid, 1),
            of_transaction(updated(30, id=2, status="c"), gtid, 2),
            *(of_transaction({**equal, "key": None}, gtid, number, offset=number) for number in (3, 4)),
            marker("END", gtid, 3, 4),
        ],
    )

    view = lakehouse.view("paid", "transactions")
    columns = "transaction_id, has_begun, has_ended, expected_events, landed_events"
    found = lakehouse.sql(f"select {columns} from {view} order by 1")
    assert found == [("0-1-5", True, True, 4, 4), ("571", True, True, 4, 3)]
    assert lakehouse.rejected("paid") == []


def test_renamed_tables_are_told_with_their_old_names(lakehouse: Lakehouse) -> None:
    statements: dict[str, list[str]] = {
        "rename table `a b` to d.`c d`, m to n,d.x wait 10 to y": ['"d"."c d"', '"d"."n"', '"d"."y"'],
        "ALTER TABLE p RENAME AS q": ['"d"."p","d"."q"'],
        "/* moved */ ALTER TABLE `r` ADD n INT, RENAME `s`": ['"d"."s"'],
        "ALTER TABLE t RENAME COLUMN u TO t": ['"d"."t"'],
        "ALTER TABLE v ADD rename_to INT": ['"d"."v"'],
    }
    lakehouse.run(
        "renamed_tables",
        [
            {
                "topic": "s",
                "offset": offset,
                "value": json.dumps({"ddl": ddl, "tableChanges": [{"type": "ALTER", "id": id} for id in ids]}),
            }
            for offset, (ddl, ids) in enumerate(statements.items())
        ]
        + [created(10, id=1)],
    )
    view = lakehouse.view("renamed_tables", "ddl_history")
    found = lakehouse.sql(f"select table_name, renamed_from from {view} order by 1")
    assert found == [("c d", "a b"), ("n", "m"), ("q", "p"), ("s", "r"), ("t", None), ("v", None), ("y", "x")]


def test_every_record_is_counted_once_with_or_without_a_table(lakehouse: Lakehouse) -> None:
    def other(topic: str, offset: int, value: str | None) -> dict[str, object]:
        place = {"topic": topic, "partition": 0, "offset": offset, "timestamp": 0, "headers": [], "key": None}
        return {**place, "value": value}

    heartbeat = other("__debezium-heartbeat.all", 1, '{"ts_ms":1700000000000}')
    resolved = other("feed", 1, '{"payload": {"resolved": "1747243394200039011.0000000000"}}')  # of CockroachDB
    ddl = other(
        "all", 1, '{"source":{"server":"all"},"position":{},"databaseName":"d","ddl":"DROP TABLE t","tableChanges":[]}'
    )
    in_binlog = {
        3: ("b.1000000", 4),
        9: ("b.999999", 1000),
        10: ("b.999999", 999),
        19: ("b.000001", 5),
        100: ("b.000001", 5),
    }
    places: dict[int, dict[str, object]] = {
        offset: {"file": file, "pos": pos} for offset, (file, pos) in in_binlog.items()
    }
    places |= {
        201: {"commit_lsn": "00000027:00000ac0:000F"},
        202: {"commit_lsn": "00000027:00000ac0:000a", "change_lsn": None},
    }
    places |= {203: {"commit_lsn": "1000"}, 204: {"commit_lsn": "999"}, 205: {"scn": "1000"}, 206: {"scn": "999"}}
    places |= {207: {"commit_ts": 1000}, 208: {"commit_ts": 999}}
    in_log = [
        other("all", offset, json.dumps({"position": place, "ddl": f"DROP TABLE t{offset}", "tableChanges": []}))
        for offset, place in places.items()
    ]
    no_statement = other(
        "all",
        2,
        '{"source":{"connector":"sqlserver"},"ts_ms":1,"ddl":null,"tableChanges":[{"type":"ALTER","id":"\\"d\\".\\"s\\".\\"t\\""}]}',
    )
    notification = other(
        "notes", 1, '{"id":"a","aggregate_type":"Initial Snapshot","type":"STARTED","additional_data":{}}'
    )
    nothing = other("all.unknown", 1, '{"hello":1}')
    message = other(
        "all.message", 1, '{"op":"m","source":{"connector":"postgresql"},"message":{"prefix":"p","content":"eA=="}}'
    )
    lakehouse.run(
        "all",
        [created(10, id=1, note="a"), heartbeat, resolved, ddl, no_statement, *in_log, notification, nothing, message],
    )
    lakehouse.run("all", [event("c", 20, {"id": 1}, table="later", prefix="all"), other("all.public.later", 9, None)])
    for further in ("no record", {**heartbeat, "offset": 2}):  # beside a row of a table that is counted already
        lakehouse.run("all", [created(30 if isinstance(further, str) else 40, id=2), further])

    query = "select source_table, kind, sum(events) from monitoring.all__event_counts group by 1, 2 order by 1, 2"
    assert lakehouse.sql(query) == [
        (None, "ddl", 15),
        (None, "heartbeat", 3),
        (None, "message", 1),
        (None, "notification", 1),
        (None, "rejected", 1),
        (None, "unrecognised", 1),
        ("public.later", "change", 1),
        ("public.later", "tombstone", 1),
        ("public.orders", "change", 3),
    ]
    view = lakehouse.view("all", "ddl_history")
    history = lakehouse.sql(f"select event_id, table_name, kind from {view} order by order_key")
    offsets = [int(event.removeprefix("all/0/")) for event, _, _ in history]
    assert [offset for offset in offsets if offset < 200] == [1, 2, 19, 100, 10, 9, 3]
    for earlier in (202, 204, 206, 208):
        assert offsets.index(earlier) < offsets.index(earlier - 1)
    assert history[:2] == [("all/0/1", "t", "DROP TABLE"), ("all/0/2", "t", "ALTER TABLE")]


def test_counts_wait_for_change_logs_that_a_run_leaves_out(lakehouse: Lakehouse) -> None:
    """What a log has not read yet is read and counted later, and not skipped; a table without new records holds nothing
    up.
    """
    counts = ["waiting__event_counts", "waiting__rejected_events"]
    counted = "select source_table, sum(events) from monitoring.waiting__event_counts group by 1 order by 1"
    lakehouse.run("waiting", [created(10, id=1), of_table(created(11, id=1), "lines")])
    lakehouse.land("waiting", [created(20, id=2)])
    assert lakehouse.dbt("run", "--select", *counts).success
    assert lakehouse.sql(counted) == [("public.lines", 1), ("public.orders", 1)]
    assert lakehouse.dbt("run", "--select", "stg_waiting__orders", *counts).success
    assert lakehouse.sql(counted) == [("public.lines", 1), ("public.orders", 2)]

    lakehouse.land("waiting", [created(30, id=3), of_table(created(31, id=2), "lines")])
    assert lakehouse.dbt("run", "--select", "stg_waiting__lines").success
    lakehouse.run(
        "waiting", [of_table(created(41, id=3), "lines")]
    )  # the log of orders has read less than the one that asks first
    assert lakehouse.sql(counted) == [("public.lines", 3), ("public.orders", 3)]


def test_a_row_that_comes_and_moves_on_at_one_place_of_the_log_is_gone(lakehouse: Lakehouse) -> None:
    """The order of the topic decides between its insert and the delete under its old key, also where they land one by
    one.
    """
    headers = {"d": [{"key": "__debezium.newkey", "value": "{}"}], "c": [{"key": "__debezium.oldkey", "value": "{}"}]}
    inserted = event("c", 10, {"id": 5, "note": "a"}, offset=1)
    left = {**event("d", 10, None, {"id": 5}, offset=2), "headers": headers["d"]}
    came = {**event("c", 10, {"id": 6, "note": "a"}, offset=3), "headers": headers["c"]}
    lakehouse.run("one_place", [inserted, left, came])
    assert lakehouse.sql("select id, note from one_place.orders") == [(6, "a")]

    for records in ([inserted], [left], [came]):
        lakehouse.run("one_place_by_one", records)
    assert lakehouse.sql("select id, note from one_place_by_one.orders") == [(6, "a")]
    assert lakehouse.failing("one_place_by_one__orders") == {}


def test_counts_have_what_a_change_log_has_read_without_them(lakehouse: Lakehouse) -> None:
    """A log that is not in the run is looked into only if records of its topics are still to be counted."""

    def line(lsn: int) -> dict[str, Any]:
        return event("c", lsn, {"id": lsn}, table="lines")

    system, counts = "alone", "alone__event_counts"
    lakehouse.run(system, [created(10, id=1), line(11)])
    lakehouse.land(system, [created(20, id=2)])
    assert lakehouse.dbt("run", "--select", f"stg_{system}__orders").success
    lakehouse.land(system, [line(30)])
    assert lakehouse.dbt("run", "--select", f"stg_{system}__lines", counts).success
    by_batch = f"select batch, sum(events) from monitoring.{counts} group by batch order by batch"
    assert lakehouse.sql(by_batch) == [(1, 2), (2, 1), (3, 1)]

    # A log that was rebuilt without the counts is counted again, and one that is behind has the rest wait.
    assert lakehouse.dbt("run", "--full-refresh", "--select", f"stg_{system}__orders").success
    lakehouse.land(system, [line(40), created(41, id=3)])
    assert lakehouse.dbt("run", "--select", f"stg_{system}__lines", counts).success
    assert lakehouse.sql(by_batch) == [(1, 2), (2, 1), (3, 1)]
    assert lakehouse.dbt("run", "--select", f"stg_{system}__orders", counts).success
    assert lakehouse.sql(by_batch) == [(1, 2), (2, 1), (3, 1), (4, 2)]


def test_a_declaration_that_a_variable_changes_is_followed(
    lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model's text stays the same."""
    monkeypatch.setenv("TYPE_OF_N", "int32")
    lakehouse.run("varied", [created(10, id=1, n=1)])
    model = lakehouse.project / "models" / "staging" / "varied" / "stg_varied__orders.sql"
    model.write_text(model.read_text().replace("'n': 'int64'", "'n': env_var('TYPE_OF_N')"))
    models = ["run", "--select", "stg_varied__orders", "varied__orders"]
    assert lakehouse.dbt(*models).success
    before = lakehouse.sql("show tblproperties staging.stg_varied__orders")
    assert lakehouse.dbt(*models).success
    assert lakehouse.sql("show tblproperties staging.stg_varied__orders") == before
    monkeypatch.setenv("TYPE_OF_N", "int64")
    lakehouse.land("varied", [created(20, id=2, n=2**40)])
    assert lakehouse.dbt(*models).success
    assert dict(lakehouse.table("staging.stg_varied__orders").dtypes)["n"] == "bigint"
    assert lakehouse.sql("select id, n from silver.varied__orders order by id") == [(1, 1), (2, 2**40)]


def test_what_a_replay_types_is_counted_also_where_one_died_before_it(
    lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had said that its table has to be counted again, and a run did so before anything was typed."""
    from adapter import Engine

    system = "replay_counted"
    models, log = (
        [f"stg_{system}__orders", f"{system}__orders", f"{system}__event_counts"],
        f"staging.stg_{system}__orders",
    )
    lakehouse.run(system, [created(10, id=1)])
    lakehouse.land(system, [created(20, id=2)])
    assert lakehouse.dbt("run", "--select", models[0]).success
    # As before a fix, which the replay has.
    rejected = "_cdc_kind = 'rejected', _cdc_reject_reason = 'no_key'"
    lakehouse.spark.sql(f"update {log} set {rejected} where _cdc_event_id = 'shop.public.orders/0/20'")
    execute = Engine.sql

    def stopped(self: Any, sql: str) -> Any:
        if sql.startswith(f"merge into {log}"):
            raise KeyboardInterrupt
        return execute(self, sql)

    assert lakehouse.dbt("run", "--select", *models).success
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setenv("REPLAY", "1")
        patch.setattr(Engine, "sql", stopped)
        lakehouse.dbt("run", "--select", *models)
    assert lakehouse.dbt("run", "--select", *models).success
    counts = f"select kind, sum(events) from monitoring.{system}__event_counts group by all order by all"
    assert lakehouse.sql(counts) == [("change", 1), ("rejected", 1)]
    monkeypatch.setenv("REPLAY", "1")
    assert lakehouse.dbt("run", "--select", *models).success
    assert lakehouse.sql(counts) == [("change", 2)]


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_replay_beside_an_append_of_another_machine_is_merged(
    lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch, is_killed: bool
) -> None:
    """Both looked up the same number, and silver has merged the append before the replay is there."""
    from adapter import Engine

    system = "replay_beside_killed" if is_killed else "replay_beside"
    models, log = [f"stg_{system}__orders", f"{system}__orders"], f"staging.stg_{system}__orders"
    lakehouse.run(system, [created(10, id=1, note="a")])
    lakehouse.land(system, [updated(20, id=1, note="typed again"), created(21, id=2)])
    assert lakehouse.dbt("run", "--select", models[0]).result
    # As before a fix, which the replay has.
    rejected = "_cdc_kind = 'rejected', _cdc_reject_reason = 'no_key'"
    lakehouse.spark.sql(f"update {log} set {rejected} where _cdc_event_id = 'shop.public.orders/0/20'")
    assert lakehouse.dbt("run", "--select", *models).result
    assert live(lakehouse, system)[0] == {"id": 1, "note": "a"}

    execute = Engine.sql

    def beside(self: Any, sql: str) -> Any:
        if not sql.startswith(f"merge into {log}"):
            return execute(self, sql)
        mark = f"spark.sql.iceberg.snapshot-property.cdc-batch-{models[0]}"
        number = lakehouse.spark.conf.get(mark)
        lakehouse.land(system, [created(30, id=3, note="meanwhile")])
        with monkeypatch.context() as patch:
            patch.setattr(Engine, "sql", execute)
            patch.delenv("REPLAY")
            Engine(lakehouse.spark, lakehouse.project / "models").run(models)
        lakehouse.spark.conf.set(mark, number)  # that of the replay's own session
        found = execute(self, sql)
        if is_killed:
            raise KeyboardInterrupt
        return found

    monkeypatch.setenv("REPLAY", "1")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt) if is_killed else nullcontext():
        patch.setattr(Engine, "sql", beside)
        told = [str(node.message) for node in lakehouse.dbt("run", "--select", *models).result]
        assert "another run has appended changes meanwhile" in "".join(told)
    lakehouse.spark.conf.unset(f"spark.sql.iceberg.snapshot-property.cdc-batch-{models[0]}")
    assert lakehouse.dbt("run", "--select", *models).result  # as `make replay` does then
    assert [row["note"] for row in live(lakehouse, system)] == ["typed again", None, "meanwhile"]
