"""Stories: what a table holds after events have come in some way. One test is one promise of the README."""

import itertools
import json
import shutil
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Lakehouse
from event_factory import PLACEHOLDER, created, deleted, event, of_mysql, truncated, updated

Record = dict[str, Any]
Rows = list[dict[str, object]]


def live(lakehouse: Lakehouse, system: str, table: str = "orders") -> Rows:
    return lakehouse.rows(f"{system}.{table}", "id")


# A story of one table yields the events of one run after the other, and is sent the rows that the table has then.
Story = Generator[list[Record], Rows, None]
STORIES: dict[str, Callable[[], Story]] = {}


def story(told: Callable[[], Story]) -> Callable[[dict[str, Exception]], None]:
    """A test of a story. All stories are tables of one system, so that a run takes each of them one step further."""
    name = told.__name__
    STORIES[name] = told

    def test(failures: dict[str, Exception]) -> None:
        if name in failures:
            raise failures[name]

    test.__name__, test.__doc__ = name, told.__doc__
    return test


def tell(
    run: Callable[[list[Record]], None],
    rows_of: Callable[[list[str]], dict[str, Rows]],
    rebuild: Callable[[list[str]], None],
) -> dict[str, Exception]:
    """What went wrong in which story, told to the end, and each table rebuilt from all events.

    Args:
        run: lands records of the system `stories`, and builds.
        rows_of: tables → their rows, by `id`.
        rebuild: builds silver models anew.
    """
    tables = {name: name.removeprefix("test_") for name in STORIES}
    running = {name: told() for name, told in STORIES.items()}
    failed: dict[str, Exception] = {}
    rows: dict[str, Rows] = {}
    while running:
        arriving = []
        for name, told in list(running.items()):
            try:
                events = told.send(rows[name]) if name in rows else next(told)
                arriving += [of_table(event, tables[name]) for event in events]
            except StopIteration:
                del running[name]
            except Exception as error:
                failed[name] = error
                del running[name]
        if arriving:
            run(arriving)
        found = rows_of([tables[name] for name in running])
        rows |= {name: found[tables[name]] for name in running}

    rebuild([f"stories__{table}" for table in tables.values()])
    rebuilt = rows_of([*tables.values()])
    for name, table in tables.items():
        if rebuilt[table] != rows[name]:
            failed.setdefault(
                name, AssertionError(f"rebuilt from all events: {rebuilt[table]} instead of {rows[name]}")
            )
    return failed


@pytest.fixture(scope="module")
def failures(_one_lakehouse: Lakehouse) -> Iterator[dict[str, Exception]]:
    lakehouse = _one_lakehouse

    def run(records: list[Record]) -> None:
        lakehouse.run("stories", records)

    def rows_of(tables: list[str]) -> dict[str, Rows]:
        return {table: live(lakehouse, "stories", table) for table in tables}

    def rebuild(models: list[str]) -> None:
        assert lakehouse.dbt("run", "--full-refresh", "--select", *models).success

    yield tell(run, rows_of, rebuild)
    lakehouse.forget_models()


def of_table(record: Record, table: str) -> Record:
    value = json.loads(record["value"])
    value["source"]["table"] = table
    return {**record, "topic": f"shop.public.{table}", "value": json.dumps(value)}


@story
def test_late_update_is_ignored() -> Story:
    yield [created(10, id=1, status="new"), updated(30, id=1, status="paid")]
    rows = yield [updated(20, id=1, status="open")]
    assert rows == [{"id": 1, "status": "paid"}]


@story
def test_no_clock_decides_anything() -> Story:
    """Those of source, connector and broker all tell another order than the positions."""

    def at(lsn: int, second: int, status: str) -> Record:
        record = updated(lsn, id=1, status=status)
        value = json.loads(record["value"])
        times = {"ts_ms": 1000 * second, "ts_us": 1_000_000 * second, "ts_ns": 10**9 * second}
        text = json.dumps({**value, **times, "source": {**value["source"], **times}})
        return {**record, "timestamp": 1000 * second, "value": text}

    rows = yield [at(20, 4_000_000_000, "older"), at(30, 1, "newest"), at(10, 2_000_000_000, "oldest")]
    assert rows == [{"id": 1, "status": "newest"}]
    rows = yield [at(25, 4_100_000_000, "late")]
    assert rows == [{"id": 1, "status": "newest"}]
    rows = yield [at(40, 0, "new")]
    assert rows == [{"id": 1, "status": "new"}]


@story
def test_late_older_events_of_mysql_are_ignored() -> Story:
    yield list(
        map(
            of_mysql,
            [created(10, id=1, note="new"), updated(40, id=1, note="paid"), created(11, id=2), deleted(50, id=2)],
        )
    )
    rows = yield list(map(of_mysql, [updated(30, id=1, note="open"), updated(45, id=2, note="gone"), deleted(9, id=1)]))
    assert rows == [{"id": 1, "note": "paid"}]


@story
def test_row_images_of_mysql_are_whole() -> Story:
    """Debezium requires them (binlog_row_image=FULL): what is missing is NULL. Under NOBLOB it says which values it has
    not.
    """
    yield [of_mysql(created(10, id=1, note="a", more="b"))]
    rows = yield [of_mysql(updated(20, id=1, note=PLACEHOLDER))]
    assert rows == [{"id": 1, "note": "a", "more": None}]


@story
def test_events_of_mysql_without_a_position_have_the_order_of_the_topic() -> Story:
    """Whatever marks a snapshot has: it may be taken again."""

    def unplaced(record: Record, **source: Any) -> Record:
        value = json.loads(str(of_mysql(record)["value"]))
        value["source"].update({"file": "", "pos": 0, "row": 0}, **source)
        return {**record, "value": json.dumps(value)}

    yield [unplaced(created(10, id=1, note="a")), unplaced(updated(20, id=1, note="b"))]
    rows = yield [unplaced(event("r", 30, {"id": 1, "note": "c"}), snapshot="true")]
    assert rows == [{"id": 1, "note": "c"}]
    rows = yield [unplaced(updated(15, id=1, note="late"))]
    assert rows == [{"id": 1, "note": "c"}]
    rows = yield [unplaced(updated(40, id=1, note="d"), pos="")]
    assert rows == [{"id": 1, "note": "d"}]


@story
def test_late_older_event_does_not_bring_a_deleted_row_back() -> Story:
    rows = yield [created(10, id=1, status="new"), deleted(30, id=1)]
    assert rows == []

    rows = yield [updated(20, id=1, status="open")]
    assert rows == []

    rows = yield [created(40, id=1, status="again")]
    assert rows == [{"id": 1, "status": "again"}]


@story
def test_unavailable_value_keeps_the_stored_one_and_null_overwrites() -> Story:
    yield [created(10, id=1, status="new", note="long"), created(11, id=2, status="new", note="long")]
    rows = yield [updated(20, id=1, status="paid", note=PLACEHOLDER), updated(21, id=2, status="paid", note=None)]
    assert rows == [{"id": 1, "status": "paid", "note": "long"}, {"id": 2, "status": "paid", "note": None}]


@story
def test_late_older_event_supplies_exactly_the_value_that_was_left_out() -> Story:
    rows = yield [updated(40, id=1, status="paid", note=PLACEHOLDER)]
    assert rows == [{"id": 1, "status": "paid", "note": None}]

    yield [created(10, id=1, status="new", note="old")]
    yield [updated(30, id=1, status="open", note="newer")]
    rows = yield [updated(20, id=1, status="open", note="older")]
    assert rows == [{"id": 1, "status": "paid", "note": "newer"}]


@story
def test_a_delete_before_an_unavailable_value_leaves_null_in_every_order() -> Story:
    orders = list(itertools.permutations(range(3)))  # each is the order of arrival of one key
    events = [
        [created(10, id=key, note="old"), deleted(20, id=key), updated(40, id=key, note=PLACEHOLDER)]
        for key in range(6)
    ]
    for step in range(3):
        rows = yield [{**events[key][order[step]], "offset": 100 * step + key} for key, order in enumerate(orders)]
    assert rows == [{"id": key, "note": None} for key in range(6)]


@story
def test_truncate_takes_what_is_older_also_what_arrives_later() -> Story:
    yield [created(10, id=1, note="a"), created(11, id=2, note="b")]
    rows = yield [truncated(20), created(30, id=3, note="c")]
    assert rows == [{"id": 3, "note": "c"}]

    rows = yield [updated(15, id=1, note="late"), created(16, id=4, note="late")]
    assert rows == [{"id": 3, "note": "c"}]

    rows = yield [updated(25, id=2, note="after")]
    assert rows == [{"id": 2, "note": "after"}, {"id": 3, "note": "c"}]


@story
def test_commit_order_decides_a_race_for_a_unique_key() -> Story:
    """T2 wrote its record before T1's delete, and committed after it (docs/connectors/postgresql.md)."""
    rows = yield [
        event("c", 100, {"id": 5, "owner": "T1"}, offset=1, sequence=(90, 100)),
        event("d", 140, None, {"id": 5}, offset=2, sequence=(90, 140)),
        event("c", 120, {"id": 5, "owner": "T2"}, offset=3, sequence=(150, 120)),
    ]
    assert rows == [{"id": 5, "owner": "T2"}]


@story
def test_snapshot_row_loses_to_a_change_at_its_position() -> Story:
    yield [event("u", 10, {"id": 1, "note": "changed"}, offset=0)]
    rows = yield [event("r", 10, {"id": 1, "note": "snapshot"}, offset=1, snapshot="true")]
    assert rows == [{"id": 1, "note": "changed"}]

    rows = yield [event("r", 10, {"id": 1, "note": "incremental"}, offset=2, snapshot="incremental")]
    assert rows == [{"id": 1, "note": "incremental"}]


@story
def test_row_of_an_incremental_snapshot_loses_to_the_transaction_after_its_commit() -> Story:
    """With `read.only=true` it has the position of a change that was written after those of a transaction that was
    still open.
    """
    rows = yield [event("r", 30, {"id": 1, "note": "read"}, offset=0, snapshot="incremental", sequence=(40, 30))]
    assert rows == [{"id": 1, "note": "read"}]

    rows = yield [event("u", 20, {"id": 1, "note": "open"}, offset=1, sequence=(40, 20))]
    assert rows == [{"id": 1, "note": "open"}]


def test_a_long_build_tells_how_far_it_is(lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scripts.dbt_commands.PROGRESS_SECONDS", 0)
    lakehouse.run("progress", [created(10, id=1)])
    told = [line for line in lakehouse.said if " models built" in line]
    assert len(told) == 8 and told[0].startswith("  0 of 8 models built, 0 of 1 tables; now ")
    assert all("progress__" in line.split("; now ")[1] for line in told)
    assert [line for line in told if "live_progress__orders" in line and ", 1 of 1 tables" in line]


@pytest.mark.parametrize("connector", ["postgresql", "mysql"])
def test_rows_that_a_repeated_snapshot_did_not_find_are_named(lakehouse: Lakehouse, connector: str) -> None:
    system = f"again_{connector}"

    def snapshot(lsn: int, *ids: int) -> list[Record]:
        return [event("r", lsn, {"id": key, "note": "read"}, offset=lsn + key, snapshot="true") for key in ids]

    def missed(*records: Record) -> list[int]:
        lakehouse.run(system, list(map(of_mysql, records)) if connector == "mysql" else list(records))
        result = lakehouse.dbt("test", "--select", f"{system}__orders,test_name:no_row_missed_by_snapshot")
        (test,) = [node for node in result.result if node.node.name.startswith("no_row_missed_by_snapshot")]
        named = [key for key, *_ in lakehouse.sql(test.node.compiled_code)]
        assert (str(test.status), test.failures) == ("fail" if named else "pass", len(named))
        return sorted(named)

    assert missed(*snapshot(10, 1, 2, 3, 4), updated(25, id=2, note="b"), deleted(26, id=4)) == []
    assert missed(*snapshot(30, 2), updated(35, id=5, note="e"), *snapshot(20, 3)) == [1, 3]  # and one that is older
    assert lakehouse.sql(f"select id from {system}.orders order by id") == [
        (1,),
        (2,),
        (3,),
        (5,),
    ]  # only events delete


def test_dbt_knows_what_was_modified_and_views_become_tables_and_back(
    lakehouse: Lakehouse, project: Path, tmp_path: Path
) -> None:
    lakehouse.run("habits", [created(10, id=1, note="a")])
    assert lakehouse.dbt("parse").success
    shutil.copy(project / "target" / "manifest.json", tmp_path)
    modified = ["ls", "--resource-type", "model", "--select", "state:modified", "--state", str(tmp_path)]
    assert lakehouse.dbt(*modified).result == []

    model = project / "models" / "live" / "habits" / "live_habits__orders.sql"
    view = model.read_text()
    table = view.replace("schema =", "materialized = 'table', file_format = 'iceberg', schema =")
    for text, is_view in ((table, False), (view, True)):
        model.write_text(text)
        assert lakehouse.dbt(*modified).result == (
            [] if is_view else ["debezium_lakehouse.live.habits.live_habits__orders"]
        )
        assert lakehouse.dbt("run", "--select", "live_habits__orders").success
        assert [name for _, name, _ in lakehouse.sql("show views in habits")] == ["orders"] * is_view
        assert live(lakehouse, "habits") == [{"id": 1, "note": "a"}]


def test_descriptions_that_change_become_comments_with_the_next_changes(lakehouse: Lakehouse) -> None:
    lakehouse.run("described", [created(10, id=1, note="a")])
    properties = lakehouse.project / "models" / "silver" / "described" / "described__orders.yml"
    properties.write_text(properties.read_text().replace("string in the events.", "What the customer wishes."))
    lakehouse.run("described", [updated(20, id=1, note="b")])
    silver, live = (
        {name: comment for name, _, comment in lakehouse.sql(f"describe table {relation}")}
        for relation in ("silver.described__orders", "described.orders")
    )
    assert (silver["id"], silver["note"]) == ("Key. int64 in the events.", "What the customer wishes.")
    assert silver["_cdc_position"] and live["id"] == silver["id"]


def test_an_incremental_model_of_a_person_may_have_a_strategy_of_dbt_spark(lakehouse: Lakehouse, project: Path) -> None:
    lakehouse.run("tallied", [created(10, id=1, note="a")])
    tally = project / "models" / "marts" / "tally.sql"
    tally.parent.mkdir()
    tally.write_text(
        "{{ config(materialized = 'incremental', incremental_strategy = 'append') }}\n"
        "select count(*) as orders from {{ ref('live_tallied__orders') }}\n"
    )
    lakehouse.build_landed("tallied")
    lakehouse.run("tallied", [created(20, id=2, note="b")])
    assert lakehouse.sql("select orders from marts.tally order by orders") == [(1,), (2,)]


def test_plain_dbt_builds_what_has_landed_and_names_what_has_not(lakehouse: Lakehouse, project: Path) -> None:
    lakehouse.land("bydbt", [created(10, id=1, note="a")])
    lakehouse.scaffold("bydbt")
    for path in [
        *(project / "models").glob("*/bydbt/*"),
        project / "models" / "bronze" / "bydbt.yml",
    ]:  # another system's models
        other = Path(str(path).replace("bydbt", "absent"))
        other.parent.mkdir(exist_ok=True)
        other.write_text(path.read_text().replace("bydbt", "absent"))

    told = str(lakehouse.dbt("build").exception)
    assert "nothing has landed for absent. " in told
    choice = told.partition("dbt build ")[2].split()
    assert choice[0] == "--select" and "source:bronze.bydbt+" in choice
    assert lakehouse.dbt("build", "--select", "source:bronze.bydbt+").success
    shown = lakehouse.dbt("show", "--inline", "select id, note from {{ ref('live_bydbt__orders') }}").result.results
    assert [list(map(str, row)) for row in shown[0].agate_table.rows] == [["1", "a"]]
    assert not (project / "spark-warehouse").exists()  # all state is below LAKEHOUSE_DIR


def test_columns_and_tables_that_are_renamed_dropped_or_of_another_type_keep_what_they_had(
    lakehouse: Lakehouse,
) -> None:
    lakehouse.run(
        "altered",
        [created(10, id=1, note="a", size=1), created(11, id=2, note="b", size=2), created(12, id=3, note="c")],
    )
    renamed = [updated(20, id=1, remark="new", size=3), {**updated(21, id=2, note="b", size="large"), "offset": 21}]
    done = lakehouse.run("altered", [*renamed, event("c", 30, {"id": 4, "note": "d"}, table="orders_of_2026")])

    assert any("new columns remark" in note for note in done.notes)
    assert live(lakehouse, "altered") == [
        {"id": 1, "note": None, "size": 3, "remark": "new"},
        {"id": 2, "note": "b", "size": 2, "remark": None},
        {"id": 3, "note": "c", "size": None, "remark": None},
    ]
    assert lakehouse.rejected("altered") == [("shop.public.orders/0/21", "value_of_wrong_type")]
    assert live(lakehouse, "altered", "orders_of_2026") == [{"id": 4, "note": "d"}]
    comments = {name: comment for name, _, comment in lakehouse.sql("describe table silver.altered__orders")}
    assert comments["_cdc_position"] and comments["remark"]
    assert "public.orders" in lakehouse.sql("show create table silver.altered__orders")[0][0]

    model = lakehouse.project / "models" / "silver" / "altered" / "altered__orders.sql"
    model.write_text("{{ config(on_schema_change = 'fail') }}\n" + model.read_text().replace("        'remark',\n", ""))
    result = lakehouse.dbt("run", "--select", "altered__orders")
    assert not result.success
    assert any("on_schema_change is fail" in str(node.message) for node in result.result)
    assert len(live(lakehouse, "altered")) == 3


def test_changes_that_have_landed_and_are_not_built_yet_fail_no_test(lakehouse: Lakehouse) -> None:
    lakehouse.run("unbuilt", [event("r", 10, {"id": 1, "note": "a"}, snapshot="true")])
    lakehouse.land("unbuilt", [updated(20, id=1, note="b"), event("r", 30, {"id": 2, "note": "c"}, snapshot="true")])
    assert lakehouse.dbt("run", "--select", "stg_unbuilt__orders").success
    assert lakehouse.dbt("test", "--select", "unbuilt__orders").success
    lakehouse.build_landed("unbuilt")
    done = lakehouse.dbt("test", "--select", "unbuilt__orders")
    (failed,) = [node.node.name for node in done.result if str(node.status) == "fail"]
    assert failed.startswith("no_row_missed_by_snapshot")


def test_dbt_told_to_read_nothing_takes_nothing_for_merged(lakehouse: Lakehouse) -> None:
    lakehouse.run("left_empty", [created(10, id=1, note="a")])
    lakehouse.land("left_empty", [updated(20, id=1, note="b")])
    done = lakehouse.dbt("run", "--empty", "--select", "source:bronze.left_empty+")
    assert not done.success and "--empty reads no events" in str(done.exception)
    lakehouse.build_landed("left_empty")
    assert live(lakehouse, "left_empty") == [{"id": 1, "note": "b"}]
