"""What dbt does with the models: runs, selections, comments, views and tables, and tests."""

import shutil
from pathlib import Path

import pytest
from conftest import Lakehouse
from event_factory import created, event, updated
from test_stories import live


def test_a_build_tells_how_far_it_is_and_dbt_knows_what_was_modified_and_views_become_tables_and_back(
    lakehouse: Lakehouse, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scripts.dbt_commands.PROGRESS_SECONDS", 0)
    lakehouse.run("habits", [created(10, id=1, note="a")])
    told = [line for line in lakehouse.said if " models built" in line]
    assert len(told) == 8 and told[0].startswith("  0 of 8 models built, 0 of 1 tables; now ")
    assert all("habits__" in line.split("; now ")[1] for line in told)
    assert [line for line in told if "live_habits__orders" in line and ", 1 of 1 tables" in line]

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
    model.write_text(table.replace("schema = 'habits'", "schema = 'elsewhere'"))
    lakehouse.run("habits", [updated(20, id=1, note="b")])
    lakehouse.run("habits", [updated(30, id=1, note="c")])
    assert lakehouse.rows("elsewhere.orders", "id") == [{"id": 1, "note": "c"}]


def test_descriptions_and_a_model_of_a_person_with_a_strategy_of_dbt_spark_follow_the_next_changes(
    lakehouse: Lakehouse, project: Path
) -> None:
    lakehouse.run("tallied", [created(10, id=1, note="a")])
    tally = project / "models" / "marts" / "tally.sql"
    tally.parent.mkdir()
    tally.write_text(
        "{{ config(materialized = 'incremental', incremental_strategy = 'append') }}\n"
        "select count(*) as orders from {{ ref('live_tallied__orders') }}\n"
    )
    lakehouse.build_landed("tallied")
    properties = project / "models" / "silver" / "tallied" / "tallied__orders.yml"
    properties.write_text(properties.read_text().replace("string in the events.", "What the customer wishes."))
    lakehouse.run("tallied", [created(20, id=2, note="b")])
    assert lakehouse.sql("select orders from marts.tally order by orders") == [(1,), (2,)]
    silver, live = (
        {name: comment for name, _, comment in lakehouse.sql(f"describe table {relation}")}
        for relation in ("silver.tallied__orders", "tallied.orders")
    )
    assert (silver["id"], silver["note"]) == ("Key. int64 in the events.", "What the customer wishes.")
    assert silver["_cdc_position"] and live["id"] == silver["id"]


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
    """`dbt run --empty`, which reads no events, does not mark them as merged."""
    lakehouse.run("unbuilt", [event("r", 10, {"id": 1, "note": "a"}, snapshot="true")])
    lakehouse.land("unbuilt", [updated(20, id=1, note="b"), event("r", 30, {"id": 2, "note": "c"}, snapshot="true")])
    empty = lakehouse.dbt("run", "--empty", "--select", "source:bronze.unbuilt+")
    assert not empty.success and "--empty reads no events" in str(empty.exception)
    assert lakehouse.dbt("run", "--select", "stg_unbuilt__orders").success
    assert lakehouse.dbt("test", "--select", "unbuilt__orders").success
    lakehouse.run("unbuilt", [{**updated(5, id=1, note="new"), "offset": 40}])  # a log that has started over
    assert live(lakehouse, "unbuilt") == [{"id": 1, "note": "b"}, {"id": 2, "note": "c"}]
    done = {node.node.name: node for node in lakehouse.dbt("test", "--select", "unbuilt__orders").result}
    missed, reset = sorted((name for name in done if str(done[name].status) in ("fail", "error")), reverse=True)
    assert missed.startswith("no_row_missed_by_snapshot") and done[missed].failures == 1
    assert reset.startswith("no_log_reset") and "1 in shop.public.orders/0 from 40 to 40" in done[reset].message
