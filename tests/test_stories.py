"""Stories: what a table holds after events have come in some way. One test is one promise of the README."""

import itertools
import json
import shutil
from pathlib import Path

from conftest import Lakehouse
from event_factory import PLACEHOLDER, created, deleted, event, truncated, updated

Rows = list[dict[str, object]]


def live(lakehouse: Lakehouse, system: str, table: str = "orders") -> Rows:
    return lakehouse.rows(f"{system}.{table}", "id")


def test_late_update_is_ignored(lakehouse: Lakehouse) -> None:
    lakehouse.run("late_update", [created(10, id=1, status="new"), updated(30, id=1, status="paid")])
    lakehouse.run("late_update", [updated(20, id=1, status="open")])

    assert live(lakehouse, "late_update") == [{"id": 1, "status": "paid"}]


def test_late_older_event_does_not_bring_a_deleted_row_back(lakehouse: Lakehouse) -> None:
    lakehouse.run("late_delete", [created(10, id=1, status="new"), deleted(30, id=1)])
    assert live(lakehouse, "late_delete") == []

    lakehouse.run("late_delete", [updated(20, id=1, status="open")])
    assert live(lakehouse, "late_delete") == []

    lakehouse.run("late_delete", [created(40, id=1, status="again")])
    assert live(lakehouse, "late_delete") == [{"id": 1, "status": "again"}]


def test_unavailable_value_keeps_the_stored_one_and_null_overwrites(lakehouse: Lakehouse) -> None:
    lakehouse.run("toast", [created(10, id=1, status="new", note="long"), created(11, id=2, status="new", note="long")])
    lakehouse.run("toast", [updated(20, id=1, status="paid", note=PLACEHOLDER), updated(21, id=2, status="paid", note=None)])

    assert live(lakehouse, "toast") == [
        {"id": 1, "status": "paid", "note": "long"},
        {"id": 2, "status": "paid", "note": None},
    ]


def test_late_older_event_supplies_exactly_the_value_that_was_left_out(lakehouse: Lakehouse) -> None:
    lakehouse.run("held", [updated(40, id=1, status="paid", note=PLACEHOLDER)])
    assert live(lakehouse, "held") == [{"id": 1, "status": "paid", "note": None}]

    lakehouse.run("held", [created(10, id=1, status="new", note="old")])
    lakehouse.run("held", [updated(30, id=1, status="open", note="newer")])
    lakehouse.run("held", [updated(20, id=1, status="open", note="older")])
    assert live(lakehouse, "held") == [{"id": 1, "status": "paid", "note": "newer"}]


def test_a_delete_before_an_unavailable_value_leaves_null_in_every_order(lakehouse: Lakehouse) -> None:
    orders = list(itertools.permutations(range(3)))  # each is the order of arrival of one key
    events = [[created(10, id=key, note="old"), deleted(20, id=key), updated(40, id=key, note=PLACEHOLDER)] for key in range(6)]
    for step in range(3):
        arriving = [{**events[key][order[step]], "offset": 100 * step + key} for key, order in enumerate(orders)]
        lakehouse.run("gap", arriving)
    assert live(lakehouse, "gap") == [{"id": key, "note": None} for key in range(6)]


def test_truncate_takes_what_is_older_also_what_arrives_later(lakehouse: Lakehouse) -> None:
    lakehouse.run("cleared", [created(10, id=1, note="a"), created(11, id=2, note="b")])
    lakehouse.run("cleared", [truncated(20), created(30, id=3, note="c")])
    assert live(lakehouse, "cleared") == [{"id": 3, "note": "c"}]

    lakehouse.run("cleared", [updated(15, id=1, note="late"), created(16, id=4, note="late")])
    assert live(lakehouse, "cleared") == [{"id": 3, "note": "c"}]

    lakehouse.run("cleared", [updated(25, id=2, note="after")])
    assert live(lakehouse, "cleared") == [{"id": 2, "note": "after"}, {"id": 3, "note": "c"}]

    before = live(lakehouse, "cleared")
    assert lakehouse.dbt("run", "--full-refresh", "--select", "cleared__orders").success
    assert live(lakehouse, "cleared") == before


def test_commit_order_decides_a_race_for_a_unique_key(lakehouse: Lakehouse) -> None:
    """T2 wrote its record before T1's delete, and committed after it (docs/connectors/postgresql.md)."""
    lakehouse.run(
        "race",
        [
            event("c", 100, {"id": 5, "owner": "T1"}, offset=1, sequence=(90, 100)),
            event("d", 140, None, {"id": 5}, offset=2, sequence=(90, 140)),
            event("c", 120, {"id": 5, "owner": "T2"}, offset=3, sequence=(150, 120)),
        ],
    )

    assert live(lakehouse, "race") == [{"id": 5, "owner": "T2"}]


def test_snapshot_row_loses_to_a_change_at_its_position(lakehouse: Lakehouse) -> None:
    lakehouse.run("snap", [event("u", 10, {"id": 1, "note": "changed"}, offset=0)])
    lakehouse.run("snap", [event("r", 10, {"id": 1, "note": "snapshot"}, offset=1, snapshot="true")])
    assert live(lakehouse, "snap") == [{"id": 1, "note": "changed"}]

    lakehouse.run("snap", [event("r", 10, {"id": 1, "note": "incremental"}, offset=2, snapshot="incremental")])
    assert live(lakehouse, "snap") == [{"id": 1, "note": "incremental"}]


def test_a_run_with_nothing_new_commits_nothing(lakehouse: Lakehouse) -> None:
    lakehouse.run("idle", [created(10, id=1, note="a")])
    before = lakehouse.sql("select count(*), max(snapshot_id) from silver.idle__orders.snapshots")

    assert lakehouse.dbt("run", "--select", "idle__orders", "idle__event_counts").success
    assert lakehouse.sql("select count(*), max(snapshot_id) from silver.idle__orders.snapshots") == before
    assert lakehouse.sql("select count(*) from monitoring.idle__event_counts.snapshots") == [(1,)]


def test_dbt_knows_what_was_modified_and_views_become_tables_and_back(lakehouse: Lakehouse, project: Path, tmp_path: Path) -> None:
    lakehouse.run("habits", [created(10, id=1, note="a")])
    shutil.copy(project / "target" / "manifest.json", tmp_path)
    modified = ["ls", "--resource-type", "model", "--select", "state:modified", "--state", str(tmp_path)]
    assert lakehouse.dbt(*modified).result == []

    model = project / "models" / "live" / "habits" / "live_habits__orders.sql"
    view = model.read_text()
    table = view.replace("schema =", "materialized = 'table', file_format = 'iceberg', schema =")
    for text, is_view in ((table, False), (view, True)):
        model.write_text(text)
        assert lakehouse.dbt(*modified).result == ([] if is_view else ["debezium_lakehouse.live.habits.live_habits__orders"])
        assert lakehouse.dbt("run", "--select", "live_habits__orders").success
        assert [name for _, name, _ in lakehouse.sql("show views in habits")] == ["orders"] * is_view
        assert live(lakehouse, "habits") == [{"id": 1, "note": "a"}]


def test_new_column_is_named_and_has_its_history(lakehouse: Lakehouse) -> None:
    lakehouse.run("grown", [created(10, id=1, note="a")])
    done = lakehouse.run("grown", [created(20, id=2, note="b", colour="red")])

    assert any("new columns colour" in note for note in done.notes)
    assert live(lakehouse, "grown") == [{"id": 1, "note": "a", "colour": None}, {"id": 2, "note": "b", "colour": "red"}]


def test_changed_key_is_refused_until_the_table_is_rebuilt(lakehouse: Lakehouse, project: Path) -> None:
    lakehouse.run("rekeyed", [created(10, id=1, code="x")])
    model = project / "models" / "silver" / "rekeyed" / "rekeyed__orders.sql"
    model.write_text(model.read_text().replace("keys = ['id']", "keys = ['code']"))

    result = lakehouse.dbt("run", "--select", "rekeyed__orders")
    assert not result.success
    assert any("--full-refresh" in str(node.message) for node in result.result)
    assert lakehouse.dbt("run", "--full-refresh", "--select", "rekeyed__orders").success


def test_table_without_a_key_is_a_change_log_until_a_key_is_named(lakehouse: Lakehouse) -> None:
    records = [event("c", 10, {"id": 1, "note": "a"}), event("c", 11, {"id": 1, "note": "a"})]
    for record in records:
        record["key"] = None
    done = lakehouse.run("keyless", records)
    assert any("change log" in note for note in done.notes)
    assert lakehouse.sql("select id, note, _cdc_op from silver.keyless__orders") == [(1, "a", "c")] * 2

    again = event("u", 12, {"id": 1, "note": "b"})
    again["key"] = None
    lakehouse.run("keyless", [again], keys={"orders": ["id"]})
    assert live(lakehouse, "keyless") == [{"id": 1, "note": "b"}]


def test_transactions_have_their_expected_and_their_landed_events(lakehouse: Lakehouse) -> None:
    def marker(status: str, offset: int, count: int | None) -> dict[str, object]:
        value = {
            "status": status,
            "id": f"571:{9000 + offset}",
            "event_count": count,
            "data_collections": None,
            "ts_ms": 1700000000000,
        }
        place = {"topic": "paid.transaction", "partition": 0, "offset": offset, "timestamp": 0, "headers": []}
        return {**place, "key": json.dumps({"id": "571"}), "value": json.dumps(value)}

    changes = [created(20, id=1, note="a"), created(21, id=2, note="b")]
    for number, record in enumerate(changes, start=1):
        value = json.loads(str(record["value"]))
        value["transaction"] = {"id": f"571:{9000 + number}", "total_order": number, "data_collection_order": number}
        record["value"] = json.dumps(value)
    lakehouse.run("paid", [marker("BEGIN", 0, None), *changes, marker("END", 1, 3)])

    found = lakehouse.sql(
        "select transaction_id, has_begun, has_ended, expected_events, landed_events from monitoring.paid__transactions"
    )
    assert found == [("571", True, True, 3, 2)]
    assert lakehouse.rejected("paid") == []


def test_every_record_is_counted_once_with_or_without_a_table(lakehouse: Lakehouse) -> None:
    def other(topic: str, offset: int, value: str | None) -> dict[str, object]:
        place = {"topic": topic, "partition": 0, "offset": offset, "timestamp": 0, "headers": [], "key": None}
        return {**place, "value": value}

    heartbeat = other("__debezium-heartbeat.all", 1, '{"ts_ms":1700000000000}')
    ddl = other("all", 1, '{"source":{"server":"all"},"position":{},"databaseName":"d","ddl":"DROP TABLE t","tableChanges":[]}')
    nothing = other("all.unknown", 1, '{"hello":1}')
    message = other("all.message", 1, '{"op":"m","source":{"connector":"postgresql"},"message":{"prefix":"p","content":"eA=="}}')
    lakehouse.run("all", [created(10, id=1, note="a"), heartbeat, ddl, nothing, message])
    lakehouse.run("all", [event("c", 20, {"id": 1}, table="later", prefix="all"), other("all.public.later", 9, None)])

    query = "select source_table, kind, sum(events) from monitoring.all__event_counts group by 1, 2 order by 1, 2"
    assert lakehouse.sql(query) == [
        (None, "ddl", 1),
        (None, "heartbeat", 1),
        (None, "message", 1),
        (None, "unrecognised", 1),
        ("public.later", "change", 1),
        ("public.later", "tombstone", 1),
        ("public.orders", "change", 1),
    ]
