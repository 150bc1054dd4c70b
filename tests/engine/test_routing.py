"""Topics that carry several tables: each record is parsed for its own table only."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import Lakehouse
from event_factory import created, deleted, event, truncated, updated

from scripts.errors import LakehouseError

Record = dict[str, Any]


def on_topic(topic: str, records: list[Record]) -> list[Record]:
    """The records as one topic carries them, in their order."""
    return [{**record, "topic": topic, "offset": offset} for offset, record in enumerate(records)]


def again(records: list[Record]) -> list[Record]:
    """The records as a connector that was killed sends them again: at other offsets."""
    return [{**record, "offset": record["offset"] + 1000} for record in records]


def bare(value: str | None, key: str | None = None) -> Record:
    return {"topic": "", "partition": 0, "offset": 0, "key": key, "value": value}


def change(table: str, op: str, lsn: int, key: int, **row: Any) -> Record:
    return event(op, lsn, {"id": key, **row} if op in "cur" else None, {"id": key}, table)


def live(lakehouse: Lakehouse, system: str, tables: tuple[str, ...]) -> dict[str, list[Record]]:
    return {table: lakehouse.rows(f"{system}.{table}", "id") for table in tables}


def counted(lakehouse: Lakehouse, system: str) -> list[tuple[Any, ...]]:
    """The counts by table and kind, whose sum is what landed."""
    found = lakehouse.sql(
        f"select source_table, kind, reject_reason, sum(events) from monitoring.{system}__event_counts group by all"
        " order by all"
    )
    assert lakehouse.sql(f"select count(*) from bronze.{system}") == [(sum(row[-1] for row in found),)]
    return found


def snapshots(lakehouse: Lakehouse, *tables: str) -> list[tuple[Any, ...]]:
    return [
        row for table in tables for row in lakehouse.sql(f"select count(*), max(snapshot_id) from {table}.snapshots")
    ]


def staging(project: Path, system: str, table: str) -> Path:
    return project / "models" / "staging" / system / f"stg_{system}__{table}.sql"


def test_messages_of_a_table_that_never_had_a_key_are_read_beside_those_of_another(lakehouse: Lakehouse) -> None:
    """Models of the last version do not say how messages are keyed; those of a dropped key are refused."""
    system = "never_keyed"

    def records(number: int) -> list[Record]:
        notes = {**change("notes", "c", 10 * number, number, n=0), "key": None}
        return on_topic(system, [notes, change("orders", "c", 10 * number + 1, number, n=0)])

    lakehouse.run(system, records(1), keys={"notes": ["id"]})
    path = lakehouse.project / "models" / "silver" / system / f"{system}__notes.yml"
    text = path.read_text()
    assert "message_keys" in text
    path.write_text(text.replace("message_keys: [[]]", ""))
    assert "message_keys" not in path.read_text()
    lakehouse.run(system, records(2))
    assert [row["id"] for row in lakehouse.rows(f"{system}.notes", "id")] == [1, 2]
    lakehouse.land(system, [{**one, "key": None} for one in records(3)])
    with pytest.raises(LakehouseError, match="public.orders: its messages are keyed by id and by nothing"):
        lakehouse.scaffold(system)


def test_a_topic_of_three_tables_gives_each_its_rows_and_counts_each_record_once(lakehouse: Lakehouse) -> None:
    """In any order, in two runs, with repeats; a fourth table comes later, and has what landed of it before."""
    system = "one"
    tables: tuple[str, ...] = ("orders", "lines", "notes")
    records = on_topic(
        system,
        [
            *(change(table, "c", 10 * number, key, n=0) for number, table in enumerate(tables, 1) for key in (1, 2)),
            change("orders", "u", 50, 1, n=1),
            change("lines", "d", 51, 2),
            event("t", 52, table="notes"),
            change("notes", "c", 53, 3, n=3),
            change("parcels", "d", 54, 9),  # of a table whose rows are not known yet
            bare(None, '{"id":2}'),
            bare('{"ts_ms":1700000000000}'),
            bare('{"op":"m","source":{"schema":"","table":""},"message":{"prefix":"p","content":"eA=="}}'),
            bare('{"source":{"schema":"public","table":"orders"},"ts_ms":1,"ddl":null,"tableChanges":[]}'),
            bare('{"source":{"schema":"","table":""},"ts_ms":1,"ddl":null,"tableChanges":[{"type":"DROP"}]}'),
            bare(
                '{"id":"a","aggregate_type":"Incremental Snapshot","type":"STARTED","additional_data":{},"timestamp":1}'
            ),
            bare('{"op":"c","after":{"id":1},"source":{"schema":"public","table":"orders","lsn":60}'),
            bare('{"hello":1}'),
            bare('{"op":"c","after":{"id":1},"source":{"connector":"postgresql","lsn":61}}'),
            bare('{"op":"c","after":{"id":1},"source":{"connector":"mysql","file":"b.1","pos":1}}'),
        ],
    )
    random.Random(5).shuffle(records)
    half = len(records) // 2
    wanted = {
        "orders": [{"id": 1, "n": 1}, {"id": 2, "n": 0}],
        "lines": [{"id": 1, "n": 0}],
        "notes": [{"id": 3, "n": 3}],
    }
    rejected = [
        (None, "invalid_json"),
        (None, "no_table"),
        (None, "not_an_envelope"),
        (None, "other_connector"),
    ]
    lakehouse.run(system, records[:half])
    lakehouse.run(system, records[half:] + records[:3])
    assert live(lakehouse, system, tables) == wanted
    assert counted(lakehouse, system) == [
        (None, "change_without_model", None, 1),
        (None, "ddl", None, 1),
        (None, "heartbeat", None, 1),
        (None, "message", None, 1),
        (None, "notification", None, 1),
        *((None, "rejected", reason, 1) for _, reason in rejected),
        (None, "tombstone", None, 1),
        ("public.lines", "change", None, 3),
        ("public.notes", "change", None, 3),
        ("public.notes", "truncate", None, 1),
        ("public.orders", "change", None, 3),
        ("public.orders", "ddl", None, 1),
    ]
    query = f"select source_table, reason from monitoring.{system}__rejected_events order by 2"
    assert lakehouse.sql(query) == rejected

    parcels = [{**change("parcels", "c", 40, key, n=7), "topic": system, "offset": 5000 + key} for key in (8, 9)]
    lakehouse.run(system, again(records) + parcels)
    tables = (*tables, "parcels")
    wanted["parcels"] = [{"id": 8, "n": 7}]
    assert live(lakehouse, system, tables) == wanted
    counts = counted(lakehouse, system)
    assert ("public.parcels", "change", None, 4) in counts
    assert "change_without_model" not in {kind for _, kind, _, _ in counts}
    assert lakehouse.sql(query) == sorted(rejected * 2)

    relations = [f"staging.{system}__events", *(f"silver.{system}__{table}" for table in tables)]
    models = [relation.split(".")[1] for relation in relations] + [
        f"{system}__event_counts",
        f"{system}__rejected_events",
    ]
    before = snapshots(lakehouse, *relations)
    lakehouse.land(system, [{**bare('{"ts_ms":1}'), "topic": "another"}])
    assert lakehouse.dbt("run", "--select", *models).success
    assert snapshots(lakehouse, *relations) == before
    assert set(counted(lakehouse, system)) - set(counts) == {(None, "heartbeat", None, 3)}

    counts = counted(lakehouse, system)
    assert lakehouse.dbt("run", "--full-refresh", "--select", *models).success
    assert live(lakehouse, system, tables) == wanted
    assert counted(lakehouse, system) == counts
    assert lakehouse.sql(query) == sorted(rejected * 2)


def test_a_table_that_gets_company_in_its_topic_is_routed_and_an_edited_one_left_alone(
    lakehouse: Lakehouse, project: Path
) -> None:
    system, broken = "company", bare('{"op":"c"')
    lakehouse.run(system, on_topic("t", [change("orders", "c", 10, 1), broken]))
    assert "routed" not in staging(project, system, "orders").read_text()
    assert counted(lakehouse, system) == [
        ("public.orders", "change", None, 1),
        ("public.orders", "rejected", "invalid_json", 1),
    ]

    later = on_topic(
        "t", [change("orders", "c", 10, 1), broken, change("lines", "c", 20, 1), change("orders", "c", 30, 2)]
    )[2:]
    lakehouse.run(system, later)
    assert "routed = true" in staging(project, system, "orders").read_text()
    (described,) = yaml.safe_load(staging(project, system, "orders").with_name("company__events.yml").read_text())[
        "models"
    ]
    assert {column["name"] for column in described["columns"]} == set(
        lakehouse.spark.table("staging.company__events").columns
    )
    assert live(lakehouse, system, ("orders", "lines")) == {"orders": [{"id": 1}, {"id": 2}], "lines": [{"id": 1}]}
    counts = [
        (None, "rejected", "invalid_json", 1),
        ("public.lines", "change", None, 1),
        ("public.orders", "change", None, 2),
    ]
    assert counted(lakehouse, system) == counts
    assert lakehouse.rejected(system) == [("t/0/1", "invalid_json")]

    edited = staging(project, system, "lines")
    edited.write_text(
        edited.read_text()
        .replace("ref('company__events')", "source('bronze', 'company')")
        .replace("    routed = true,\n", "")
    )
    text = edited.read_text()
    new = (change("lines", "c", 40, 2), change("orders", "u", 41, 2, note="a column more"))
    lakehouse.run(system, [{**record, "topic": "t", "offset": record["offset"]} for record in new])
    assert edited.read_text() == text
    assert live(lakehouse, system, ("orders", "lines")) == {
        "orders": [{"id": 1, "note": None}, {"id": 2, "note": "a column more"}],
        "lines": [{"id": 1}, {"id": 2}],
    }
    assert counted(lakehouse, system) == [
        ("public.lines", "change", None, 2),
        ("public.lines", "rejected", "invalid_json", 1),
        ("public.orders", "change", None, 3),
    ]
    assert lakehouse.rejected(system) == [("t/0/1", "invalid_json")]


def test_a_replay_builds_each_table_that_a_record_which_names_none_may_be_of(
    lakehouse: Lakehouse, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nameless = bare('{"op":"c","after":{"id":3},"source":{"connector":"postgresql","lsn":12}}')
    own = {**change("alone", "c", 13, 1), "topic": "alone"}
    lakehouse.run(
        "replayed_all", [*on_topic("t", [change("orders", "c", 10, 1), change("lines", "c", 11, 1), nameless]), own]
    )
    assert [reason for _, reason in lakehouse.rejected("replayed_all")] == ["no_table"]

    from scripts.arguments import Request

    built: list[str] = []

    def dbt(arguments: list[str], *_: Any, **__: Any) -> list[str]:
        built.extend(arguments if arguments[0] == "run" else [])
        return []

    monkeypatch.setattr(lakehouse._dbt_commands, "run", dbt)
    lakehouse._build.replay(lakehouse.spark, [Request("replayed_all", "", None, {})], print)
    tables = [f"{of}replayed_all__{table}" for table in ("lines", "orders") for of in ("stg_", "")]
    assert sorted(built) == sorted(["run", "--select", *tables, "replayed_all__events", "replayed_all__event_counts"])

    # What a replay of another machine, which died, has typed again is merged too.
    lakehouse.spark.sql("alter table staging.stg_replayed_all__alone set tblproperties ('cdc.replayed' = '2')")
    built.clear()
    lakehouse._build.replay(lakehouse.spark, [Request("replayed_all", "", None, {})], print)
    assert {"stg_replayed_all__alone", "replayed_all__alone"} <= set(built)


def test_a_replay_that_is_stopped_is_finished_by_the_next_run(
    lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once the log has the record, nothing else tells that its table, or what reads it, lacks it."""
    from scripts.arguments import Request

    def killed(*_: Any, **__: Any) -> list[str]:
        raise KeyboardInterrupt

    lakehouse.run("replay_stopped", [{**change("orders", "c", 10, 1), "value": "{"}, change("orders", "c", 11, 2)])
    with monkeypatch.context() as patch:
        patch.setattr(lakehouse._dbt_commands, "run", killed)
        with pytest.raises(KeyboardInterrupt):
            lakehouse._build.replay(lakehouse.spark, [Request("replay_stopped", "", None, {})], print)
    for is_left in (True, False):
        done = lakehouse.scaffold("replay_stopped")
        said: list[str] = []
        assert lakehouse._build.build(lakehouse.spark, ["replay_stopped"], [done], said.append) == 0
        assert ("Nothing new to build." not in said) == is_left


@pytest.mark.parametrize(
    ("begins", "is_done"),
    [
        ("merge into staging.{0}__events", False),
        ("merge into staging.{0}__events", True),
        pytest.param("merge into staging.stg_{0}__lines", False, marks=pytest.mark.soak),
        pytest.param("alter table staging.stg_{0}__orders", False, marks=pytest.mark.soak),
    ],
)
def test_a_record_that_named_no_table_is_in_its_table_wherever_a_replay_is_stopped(
    lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch, begins: str, is_done: bool
) -> None:
    """Also where bronze has lost the batch before it. `begins`: of the statement before which, or after, it dies."""
    from adapter import Engine

    system = f"nameless{len(begins)}{is_done:d}"
    tables = [f"{system}__{table}" for table in ("lines", "orders")]
    models = [f"{system}__events", *(f"{of}{table}" for table in tables for of in ("stg_", ""))]
    first = [change("orders", "c", 10, 1, note="a"), change("lines", "c", 11, 1)]
    later = [change("orders", "u", 12, 1, note="x"), change("lines", "c", 13, 2), change("orders", "c", 14, 3)]
    records = on_topic("t", first + later)
    lakehouse.run(system, records[:2])
    lakehouse.land(system, records[2:])
    assert lakehouse.dbt("run", "--select", models[0], *(f"stg_{name}" for name in tables)).success
    # As before a fix: the records of the second batch named no table.
    unnamed = "source_table = null, error = 'no_table'"
    lakehouse.spark.sql(f"update staging.{system}__events set {unnamed} where batch = 2")
    for table in tables:
        lakehouse.spark.sql(f"delete from staging.stg_{table} where _cdc_batch = 2")
    assert lakehouse.dbt("run", "--select", *tables, f"{system}__event_counts").success
    assert [reason for _, reason in lakehouse.rejected(system)] == ["no_table"] * 3
    assert live(lakehouse, system, ("lines", "orders")) == {"lines": [{"id": 1}], "orders": [{"id": 1, "note": "a"}]}
    lakehouse.spark.sql(f"delete from bronze.{system} where batch = 1")

    execute = Engine.sql

    def stopped(self: Any, sql: str) -> Any:
        if not sql.startswith(begins.format(system)):
            return execute(self, sql)
        if is_done:
            execute(self, sql)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Engine, "sql", stopped)
        patch.setenv("REPLAY", "1")
        lakehouse.dbt("run", "--select", *models)
    assert lakehouse.dbt("run", "--select", *models).success  # as the next run does
    if "__events" in begins and not is_done:
        assert len(lakehouse.rejected(system)) == 3
        monkeypatch.setenv("REPLAY", "1")
        assert lakehouse.dbt("run", "--select", *models).success
    assert lakehouse.dbt("run", "--select", f"{system}__event_counts").success
    assert live(lakehouse, system, ("lines", "orders")) == {
        "lines": [{"id": 1}, {"id": 2}],
        "orders": [{"id": 1, "note": "x"}, {"id": 3, "note": None}],
    }
    assert lakehouse.rejected(system) == []
    found = lakehouse.sql(f"select source_table, kind, sum(events) from monitoring.{system}__event_counts group by all")
    assert sorted(found) == [("public.lines", "change", 2), ("public.orders", "change", 3)]


def test_tables_of_any_name_are_told_apart(lakehouse: Lakehouse) -> None:
    """Dots, quotes, backslashes, names too long for a path, and the names of the system's own models."""
    names = ["a.b", "it's", 'a "b"', "a\\b", "表" * 60, "Stück", "events", "transactions"]
    tables = [change(name, "c", 10 * number, number) for number, name in enumerate(names, 1)]
    twin = change("b", "c", 999, 999)  # public.a.b as well
    tables.append({**twin, "value": twin["value"].replace('"public"', '"public.a"')})
    notes = lakehouse.run("named", on_topic("t", tables)).notes
    assert any("public.a.b: another table is called public.a.b too" in note for note in notes), notes

    found = lakehouse.sql("select source_table, kind, events from monitoring.named__event_counts order by 1")
    assert found == [(None, "change_without_model", 1), *sorted((f"public.{name}", "change", 1) for name in names)]
    models = [row.tableName for row in lakehouse.spark.sql("show tables in silver like 'named__*'").collect()]
    ids = [row[0] for model in models for row in lakehouse.sql(f"select id from silver.`{model}`")]
    assert sorted(ids) == list(range(1, len(names) + 1))


def test_topics_whose_events_do_not_all_name_their_table_are_not_routed(lakehouse: Lakehouse, project: Path) -> None:
    mysql: Record = {
        "version": "3.5",
        "connector": "mysql",
        "db": "d",
        "table": "items",
        "file": "b.000001",
        "pos": 4,
        "row": 0,
    }
    other = bare(json.dumps({"op": "c", "before": None, "after": {"id": 1}, "source": mysql, "ts_ms": 1}), '{"id":1}')
    routed = on_topic("t", [change("orders", "c", 10, 1), change("lines", "c", 11, 1)])
    lakehouse.run("mixed", routed)
    assert "routed = true" in staging(project, "mixed", "orders").read_text()

    lakehouse.run("mixed", [{**other, "topic": "t", "offset": 9}])
    assert "routed" not in staging(project, "mixed", "orders").read_text()
    assert not (project / "models" / "staging" / "mixed" / "mixed__events.sql").exists()
    assert live(lakehouse, "mixed", ("orders", "lines", "items")) == {
        "orders": [{"id": 1}],
        "lines": [{"id": 1}],
        "items": [{"id": 1}],
    }


def test_a_shared_topic_that_goes_over_from_mysqls_connector_to_mariadbs_is_read_on(
    lakehouse: Lakehouse, project: Path
) -> None:
    def of(connector: str, table: str, at: int) -> Record:
        source = {
            "version": "3.5",
            "connector": connector,
            "name": "s",
            "db": "d",
            "table": table,
            "file": "b.000001",
            "pos": at,
            "row": 0,
        }
        value = {"op": "c", "before": None, "after": {"id": at}, "source": source, "ts_ms": 1}
        return {"topic": "t", "partition": 0, "offset": at, "key": json.dumps({"id": at}), "value": json.dumps(value)}

    lakehouse.run("went_over", [of("mysql", "orders", 1), of("mysql", "lines", 2)])
    lakehouse.run("went_over", [of("mariadb", "orders", 3), of("mariadb", "bills", 4)])
    assert "mariadb" in (project / "models" / "staging" / "went_over" / "stg_went_over__bills.sql").read_text()
    assert live(lakehouse, "went_over", ("orders", "lines", "bills")) == {
        "orders": [{"id": 1}, {"id": 3}],
        "lines": [{"id": 2}],
        "bills": [{"id": 4}],
    }


def test_one_table_of_several_connectors_has_a_shard_column_or_is_refused(lakehouse: Lakehouse) -> None:
    def of(prefix: str, *records: dict[str, Any]) -> list[dict[str, Any]]:
        named = f'"name": "{prefix}"'
        topic = f"{prefix}.public.orders"
        return [{**one, "topic": topic, "value": one["value"].replace('"name": "shop"', named)} for one in records]

    first = of("a", created(1000, id=1, note="a"), created(1001, id=2, note="a")) + of("b", created(10, id=1, note="b"))
    lakehouse.land("sharded", first)
    with pytest.raises(LakehouseError, match="connectors a and b .*SERVERS=shards"):
        lakehouse.scaffold("sharded")
    lakehouse.run("sharded", of("b", updated(20, id=1, note="newer")), servers="shards")
    later = [*of("a", deleted(1002, id=2)), *of("c", created(5, id=9, note="c"), truncated(6))]
    lakehouse.run("sharded", later)
    rows = [("a", 1, "a"), ("b", 1, "newer"), ("c", 9, "c")]
    assert lakehouse.sql("select shard, id, note from sharded.orders order by 1, 2") == rows
    assert lakehouse.rejected("sharded") == [("c.public.orders/0/6", "truncate_of_a_shard")]
    assert lakehouse.resets("sharded") == {}

    lakehouse.run("renamed", of("a", created(10, id=1, note="a")))
    lakehouse.land("renamed", of("b", updated(20, id=1, note="b")))
    with pytest.raises(LakehouseError, match="SERVERS=one"):
        lakehouse.scaffold("renamed")
    lakehouse.run("renamed", of("b", updated(30, id=1, note="newer")), servers="one")
    lakehouse.run("renamed", of("a", updated(25, id=1, note="late")))
    assert lakehouse.rows("renamed.orders") == [{"id": 1, "note": "newer"}]


def test_a_table_that_is_ahead_of_the_events_model_is_counted_as_far_as_that_and_then_the_rest(
    lakehouse: Lakehouse,
) -> None:
    """Were its newest batch counted too, its file would hold rows that the next run replaces and others, which Iceberg
    refuses.
    """
    system, counts = "ahead", ["ahead__event_counts", "ahead__rejected_events"]
    lakehouse.run(
        system,
        [*on_topic("t", [change("orders", "c", 10, 1), change("lines", "c", 11, 1)]), change("notes", "c", 12, 1)],
    )
    lakehouse.land(system, [{**change("orders", "c", 20, 2), "topic": "t"}, change("notes", "u", 21, 1)])
    assert lakehouse.dbt("run", "--select", "ahead__events", "stg_ahead__orders").success
    lakehouse.land(system, [change("notes", "u", 30, 1)])

    assert lakehouse.dbt("run", "--select", "stg_ahead__notes", "ahead__notes", *counts).success
    assert lakehouse.sql("select batch, sum(events) from monitoring.ahead__event_counts group by 1 order by 1") == [
        (1, 3),
        (2, 2),
    ]
    assert lakehouse.dbt("run", "--select", "ahead__events", *counts).success
    assert counted(lakehouse, system) == [
        ("public.lines", "change", None, 1),
        ("public.notes", "change", None, 3),
        ("public.orders", "change", None, 2),
    ]


def test_what_is_counted_anew_because_of_a_further_table_stands_once(lakehouse: Lakehouse, tmp_path: Path) -> None:
    """Records of no table, of a routed topic and of another one in one batch, and a line that is broken in two states
    of a file.
    """
    system, path, beat = "anew", tmp_path / "broken.jsonl", bare('{"ts_ms":1}')
    tables = on_topic("t", [change("orders", "c", 10, 1), change("lines", "c", 11, 1), beat])
    lakehouse.run(system, [*tables, {**beat, "topic": "beats"}])
    for line in ('{"op":}\n', '{"op"}\n'):
        path.write_text(line)
        lakehouse.run(system, path)
    counts = [(None, "heartbeat", None, 2), (None, "rejected", "invalid_json", 2), ("public.lines", "change", None, 1)]
    counts.append(("public.orders", "change", None, 1))
    assert counted(lakehouse, system) == counts
    assert lakehouse.rejected(system) == [(f"{path}:1", "invalid_json")] * 2

    lakehouse.run(system, [{**change("parcels", "c", 20, 1), "topic": "t", "offset": 20}])
    assert counted(lakehouse, system) == [*counts, ("public.parcels", "change", None, 1)]
    assert lakehouse.rejected(system) == [(f"{path}:1", "invalid_json")] * 2
