"""The source's log starts over: what is found, what is told, and how an epoch puts it right."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY, Lakehouse
from event_factory import created, deleted, event, of_mysql, truncated, updated
from test_stories import Record

EVENTS = REPOSITORY / "tests" / "events"
HEADER = "system,topic,partition,from_offset,from_batch,epoch\n"


@pytest.fixture
def epochs(project: Path) -> Any:
    """Write `seeds/cdc_epochs.csv`; it is empty again after the test."""
    path = project / "seeds" / "cdc_epochs.csv"
    yield lambda *lines: path.write_text(HEADER + "".join(f"{line}\n" for line in lines))
    path.write_text(HEADER)


def failing(lakehouse: Lakehouse, system: str) -> list[str]:
    silver = [path.stem for path in (lakehouse.project / "models" / "silver" / system).glob("*.sql")]
    return sorted(lakehouse.failing(*silver, test="no_log_reset").values())


def missed_by_snapshot(lakehouse: Lakehouse, model: str) -> list[int]:
    """The keys of rows that the newest snapshot did not find."""
    found = lakehouse.failing(model, test="no_row_missed_by_snapshot")
    return sorted(key for rows in found.values() for key, *_ in rows)


def at(offset: int, record: dict[str, Any]) -> dict[str, Any]:
    return {**record, "offset": offset}


def later(record: dict[str, Any]) -> dict[str, Any]:
    """The record as of three years later, by the clock of the source."""
    return {**record, "value": record["value"].replace('"ts_ms": 17', '"ts_ms": 18')}


def rebuild(lakehouse: Lakehouse, system: str) -> None:
    """Build the change logs anew, and ask them: what was found in them before is forgotten."""
    assert lakehouse.dbt("run", "--full-refresh", "--select", f"path:models/staging/{system}").success
    lakehouse.resets(system)


def stored(lakehouse: Lakehouse, system: str) -> dict[str, dict[str, list[int]]]:
    """The resets that the last run has found; `Lakehouse.resets` asks once more."""
    from scripts import resets

    return resets.resets(lakehouse.spark, [system])[system]


def log(lakehouse: Lakehouse, system: str, records: Any, connector: str | None = None) -> None:
    """Land records, build the change logs and ask them, as a run does. Resets need no other models."""
    lakehouse.land(system, records)
    lakehouse.scaffold(system, connector)
    assert lakehouse.dbt("run", "--select", f"path:models/staging/{system}").success
    lakehouse.resets(system)


def of_table(table: str, record: dict[str, Any]) -> dict[str, Any]:
    return {
        **record,
        "topic": f"shop.public.{table}",
        "value": record["value"].replace('"table": "orders"', f'"table": "{table}"'),
    }


HISTORY = [
    at(0, created(1000, id=1, note="old")),
    at(1, created(1010, id=2, note="old")),
    at(2, updated(1020, id=1, note="older")),
]
RESTORED = [at(3, updated(300, id=1, note="new")), at(4, deleted(310, id=2)), at(5, created(320, id=3, note="new"))]


def test_restored_database_is_told_and_an_epoch_puts_it_right(lakehouse: Lakehouse, epochs: Any) -> None:
    landings = {
        "a": [HISTORY, RESTORED, []],
        "b": [HISTORY + RESTORED, [], []],
        "c": [HISTORY[:2], HISTORY[2:] + RESTORED[:1], RESTORED[1:]],
    }
    for number in range(3):
        lakehouse.run("restored", [of_table(table, one) for table, parts in landings.items() for one in parts[number]])
    for table in landings:
        assert lakehouse.rows(f"restored.{table}", "id")[:2] == [{"id": 1, "note": "older"}, {"id": 2, "note": "old"}]
    assert stored(lakehouse, "restored") == {
        f"public.{table}": {f"shop.public.{table}/0": [3, 4, 2]} for table in landings
    }
    messages = failing(lakehouse, "restored")
    assert len(messages) == 3
    assert (
        "restored__a" in messages[0] and "public.a" in messages[0] and "2 in shop.public.a/0 from 3 to 4" in messages[0]
    )

    epochs(*(f"restored,shop.public.{table},0,3,,1" for table in landings))
    done = lakehouse.scaffold("restored")
    assert sum("epochs changed" in note for note in done.notes) == 3
    assert lakehouse._build.build(lakehouse.spark, ["restored"], [done], print) == 0
    for table in landings:
        assert lakehouse.rows(f"restored.{table}", "id") == [{"id": 1, "note": "new"}, {"id": 3, "note": "new"}]
    assert lakehouse.resets("restored") == {}
    assert failing(lakehouse, "restored") == []
    lakehouse.run("restored", [of_table("a", at(6, updated(330, id=3, note="newer")))])
    assert lakehouse.rows("restored.a", "id")[1] == {"id": 3, "note": "newer"}


def test_a_reset_is_reported_once_whether_a_run_is_killed_before_its_merge_or_before_it_asks(
    lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    from scripts import resets

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    lakehouse.run("retold", HISTORY)
    (before,) = lakehouse.sql("select snapshot_id from silver.retold__orders.refs where name = 'main'")
    lakehouse.run("retold", RESTORED[:1])
    known = {"public.orders": {"shop.public.orders/0": [3, 3, 1]}}
    assert stored(lakehouse, "retold") == known
    lakehouse.spark.sql(
        f"call system.rollback_to_snapshot('silver.retold__orders', {before[0]})"
    )  # its properties stay, as after a kill
    assert lakehouse.dbt("run", "--select", "retold__orders").success
    assert lakehouse.resets("retold") == known
    lakehouse.land("retold", RESTORED[1:2])
    with monkeypatch.context() as patch:
        patch.setattr(resets, "ask", killed)
        with pytest.raises(KeyboardInterrupt):
            lakehouse.build_landed("retold")
    assert stored(lakehouse, "retold") == known
    lakehouse.build_landed("retold")
    assert stored(lakehouse, "retold") == {"public.orders": {"shop.public.orders/0": [3, 4, 2]}}


def test_what_was_checked_and_cleared_is_not_reported_again(lakehouse: Lakehouse) -> None:
    log(lakehouse, "cleared", HISTORY + RESTORED[:1])
    assert stored(lakehouse, "cleared") == {"public.orders": {"shop.public.orders/0": [3, 3, 1]}}
    lakehouse.sql("alter table staging.stg_cleared__orders set tblproperties ('cdc.resets' = '{}')")
    for further in (at(6, deleted(310, id=2)), at(7, created(1040, id=9))):
        log(lakehouse, "cleared", [further])
        assert stored(lakehouse, "cleared") == {"public.orders": {"shop.public.orders/0": [6, 6, 1]}}
    lakehouse.sql("alter table staging.stg_cleared__orders set tblproperties ('cdc.resets' = '{}')")
    log(lakehouse, "cleared", [at(8, updated(320, id=1)), at(9, created(1050, id=8))])  # one below, one above
    assert stored(lakehouse, "cleared") == {"public.orders": {"shop.public.orders/0": [8, 8, 1]}}


def test_a_run_that_does_not_know_of_a_truncate_merges_nothing(lakehouse: Lakehouse) -> None:
    """Another one has merged it since this one looked: what it has of before the truncate would come back."""
    lakehouse.run("truncated_meanwhile", [created(10, id=1), created(20, id=2)])
    lakehouse.land("truncated_meanwhile", [created(30, id=3)])
    model = lakehouse.project / "models" / "silver" / "truncated_meanwhile" / "truncated_meanwhile__orders.sql"
    text = model.read_text()
    other = "alter table silver.truncated_meanwhile__orders set tblproperties ('cdc.truncated-at' = '0000.9')"
    model.write_text(f'{{{{ config(pre_hook = "{other}") }}}}\n{text}')
    *_, failed = lakehouse.dbt(
        "run", "--select", "stg_truncated_meanwhile__orders", "truncated_meanwhile__orders"
    ).result
    assert "another run has merged a truncate meanwhile" in failed.message
    assert len(lakehouse.rows("silver.truncated_meanwhile__orders")) == 2


def test_what_is_a_reset_and_what_is_none(lakehouse: Lakehouse, tmp_path: Path) -> None:
    from scripts import runs
    from scripts.resets import report_resets

    redelivered = [at(3 + number, record) for number, record in enumerate(HISTORY)]
    emptied = [*HISTORY, at(3, truncated(1030))]
    emptying = at(2, truncated(1015))
    below = at(4, created(300, id=7, note="new"))
    restored_twice = [RESTORED[0], at(4, RESTORED[0]), at(5, updated(305, id=1, note="newer")), at(6, RESTORED[0])]
    cases: dict[str, tuple[list[list[dict[str, Any]]], list[int] | None]] = {
        "redelivered": ([HISTORY + redelivered], None),
        "redelivered_later": ([HISTORY, redelivered], None),
        "late": ([HISTORY[1:], HISTORY[:1]], None),
        "before_a_truncate": ([[*HISTORY, at(4, truncated(1030)), at(3, created(1025, id=7, note="gone"))]], None),
        "restored_twice": ([HISTORY, restored_twice], [3, 5, 2]),
        "truncated_twice": ([[*HISTORY[:2], emptying, at(3, HISTORY[2]), at(4, emptying)], [at(5, emptying)]], None),
        "truncated_late": ([[*HISTORY[:2], at(3, HISTORY[2])], [emptying]], None),
        "truncated": ([[*HISTORY, at(3, truncated(300))]], [3, 3, 1]),
        "truncated_later": ([HISTORY, [at(3, truncated(300)), at(4, truncated(310))]], [3, 4, 2]),
        "emptied": ([[*emptied, below]], [4, 4, 1]),
        "emptied_before": ([emptied, [below]], [4, 4, 1]),
        "original_late": ([[*HISTORY[1:], at(5, HISTORY[0])], [HISTORY[0]]], None),
        "one_original_late": ([[*HISTORY[1:], at(5, HISTORY[0]), *RESTORED[1:2]], [HISTORY[0]]], [4, 4, 1]),
        "late_then_restored": ([HISTORY[1:], [HISTORY[0], at(9, updated(300, id=2, note="new"))]], [9, 9, 1]),
    }
    for landing in (0, 1):
        records = [of_table(name, one) for name, (parts, _) in cases.items() for one in (parts + [[]])[landing]]
        log(lakehouse, "cases", records)
        assert lakehouse.dbt(
            "run", "--select", *(f"cases__{name}" for name in ("late", "emptied", "emptied_before"))
        ).success
    wanted = {f"public.{name}": {f"shop.public.{name}/0": found} for name, (_, found) in cases.items() if found}
    assert stored(lakehouse, "cases") == wanted
    runs.begin()
    report_resets(lakehouse.spark, ["cases"])
    assert runs.warned() == {"cases"}  # the exit status is 3
    assert lakehouse.sql("select id, note from silver.cases__late order by id")[0] == (1, "older")
    for table in ("emptied", "emptied_before"):
        assert lakehouse.sql(f"select * from silver.cases__{table} where not _cdc_is_deleted") == []
    rebuild(lakehouse, "cases")
    assert stored(lakehouse, "cases") == wanted


@pytest.mark.soak
def test_topic_and_log_that_were_made_anew_are_told_and_an_epoch_puts_them_right(
    lakehouse: Lakehouse, epochs: Any
) -> None:
    """The same offsets again, with other records: what landed from a batch on is of the new log."""
    lakehouse.run("made_anew", HISTORY + [of_table("goes_on", one) for one in HISTORY])
    new = {**at(0, later(updated(300, id=1, note="new"))), "timestamp": 1800000000000}
    lakehouse.run(
        "made_anew", [new, of_table("goes_on", at(0, later(updated(1600, id=1, note="new"))))]
    )  # whose log is the same
    told = {"public.orders": {"shop.public.orders/0": [0, 0, 1]}}
    assert stored(lakehouse, "made_anew") == told
    rebuild(lakehouse, "made_anew")
    assert stored(lakehouse, "made_anew") == told
    epochs("made_anew,shop.public.orders,0,0,2,1")
    lakehouse.build_landed("made_anew")
    assert lakehouse.rows("made_anew.orders", "id") == [{"id": 1, "note": "new"}, {"id": 2, "note": "old"}]
    assert lakehouse.resets("made_anew") == {}


def written(offset: int, file: int, pos: int, note: str, id: int = 1, id_before: int | None = None) -> dict[str, Any]:
    """An update of MySQL's, which may change the key."""
    source = {
        "connector": "mysql",
        "name": "b",
        "db": "b",
        "table": "t",
        "file": f"bin.{file:06}",
        "pos": pos,
        "row": 0,
        "ts_ms": offset,
    }
    before = None if id_before is None else {"id": id_before, "note": note}
    value = {"before": before, "after": {"id": id, "note": note}, "source": source, "op": "u", "ts_ms": offset}
    place = {"topic": "b.b.t", "partition": 0, "offset": offset, "timestamp": 0, "headers": []}
    return {**place, "key": json.dumps({"id": id}), "value": json.dumps(value)}


def test_binlog_that_was_reset_is_told_and_an_epoch_puts_it_right(lakehouse: Lakehouse, epochs: Any) -> None:
    lakehouse.run("rebinned", [written(0, 9, 400, "old"), written(1, 10, 4, "older")])
    lakehouse.run("rebinned", [written(2, 1, 500, "new")])
    assert stored(lakehouse, "rebinned") == {"b.t": {"b.b.t/0": [2, 2, 1]}}
    epochs("rebinned,b.b.t,0,2,,1")
    lakehouse.run("rebinned", [written(3, 1, 300, "late")])
    assert lakehouse.rows("rebinned.t") == [{"id": 1, "note": "new"}]
    assert stored(lakehouse, "rebinned") == {"b.t": {"b.b.t/0": [3, 3, 1]}}


def test_a_row_that_a_change_of_key_does_not_remove_is_told(lakehouse: Lakehouse) -> None:
    """Only the old half of the change lies below anything: under the new key nothing was there."""
    lakehouse.run("rebinned_key", [written(0, 9, 400, "old"), written(1, 1, 500, "new", id=2, id_before=1)])
    assert [row["id"] for row in lakehouse.rows("rebinned_key.t", "id")] == [1, 2]
    assert stored(lakehouse, "rebinned_key") == {"b.t": {"b.b.t/0": [1, 1, 1]}}


def test_the_report_counts_a_change_of_key_once(lakehouse: Lakehouse) -> None:
    from scripts.maintain import all_tables
    from scripts.report import Report

    lakehouse.run("reported_key", [written(0, 1, 400, "old"), written(1, 1, 500, "new", id=2, id_before=1)])
    (figures,) = Report(lakehouse.spark, ["reported_key"], all_tables(lakehouse.spark)).read()
    assert not figures.problems
    assert sum(one.events for one in figures.events) == 2


@pytest.mark.soak
@pytest.mark.loader
def test_bare_values_of_a_later_time_are_told_and_an_epoch_puts_them_right(
    lakehouse: Lakehouse, epochs: Any, tmp_path: Path
) -> None:
    def bare(name: str, *records: dict[str, Any]) -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(record["value"] + "\n" for record in records))
        return path

    new = later(updated(300, id=1, note="new"))
    bare("first/a.jsonl", *HISTORY)
    lakehouse.run("bare_reset", bare("first/b.jsonl", updated(1005, id=1, note="late")).parent, keys={"orders": ["id"]})
    lakehouse.run("bare_reset", bare("c.jsonl", new))
    told = {"public.orders": {f"{tmp_path}/c.jsonl": [1, 1, 1]}}
    assert stored(lakehouse, "bare_reset") == told
    rebuild(lakehouse, "bare_reset")
    assert stored(lakehouse, "bare_reset") == told
    epochs("bare_reset,shop.public.orders,,,2,1")
    lakehouse.run("bare_reset", bare("d.jsonl", later(updated(310, id=1, note="newer"))))
    assert lakehouse.rows("bare_reset.orders", "id") == [{"id": 1, "note": "newer"}, {"id": 2, "note": "old"}]
    assert lakehouse.resets("bare_reset") == {}


def test_several_partitions_are_compared_by_the_clock(lakehouse: Lakehouse) -> None:
    """A new log in another partition: of updates, of a truncate, and of rows that a new snapshot reads; and what is
    none.
    """

    def elsewhere(*records: dict[str, Any]) -> list[dict[str, Any]]:
        return [{**record, "partition": 1} for record in records]

    read = [at(number, event("r", 1020, {"id": number, "note": "read"}, snapshot="true")) for number in (1, 2, 3)]
    read_anew = [at(number, event("r", 310, {"id": number, "note": "anew"}, snapshot="true")) for number in (1, 2, 3)]
    # Read while others write: the clock of a row of a snapshot is later than that of what lies above its snapshot.
    meanwhile = at(9, updated(1030, id=2, note="meanwhile"))
    incremental = at(7, later(event("r", 1000, {"id": 1, "note": "late"}, snapshot="incremental")))
    cases: dict[str, tuple[list[dict[str, Any]], list[int] | None]] = {
        "updates": (HISTORY + elsewhere(*map(later, RESTORED)), [3, 4, 2]),
        "truncate": (HISTORY + elsewhere(later(at(6, truncated(300)))), [6, 6, 1]),
        "emptied_and_restored": ([*HISTORY, at(3, truncated(1030)), *elsewhere(later(RESTORED[2]))], [5, 5, 1]),
        "snapshot": (read + elsewhere(*map(later, read_anew)), [1, 3, 3]),
        "snapshot_of_changed_rows": (HISTORY + elsewhere(*map(later, read_anew)), [1, 2, 2]),
        "partitions": (
            HISTORY + elsewhere(at(3, updated(1040, id=2, note="newer")), at(4, updated(990, id=3, note="of"))),
            None,
        ),
        "read_slowly": ([later(one) for one in read] + elsewhere(meanwhile), None),
        "read_late": ([read[0], meanwhile] + elsewhere(later(read[1])), None),
        "read_in_chunks": (HISTORY + elsewhere(incremental), None),
    }
    for partition in (0, 1):  # then all at once
        of_partition = {
            name: [one for one in rows if one["partition"] == partition] for name, (rows, _) in cases.items()
        }
        log(lakehouse, "by_the_clock", [of_table(name, one) for name, rows in of_partition.items() for one in rows])
    told = {f"public.{name}": {f"shop.public.{name}/1": found} for name, (_, found) in cases.items() if found}
    assert stored(lakehouse, "by_the_clock") == told
    rebuild(lakehouse, "by_the_clock")
    assert stored(lakehouse, "by_the_clock") == told


def test_partitions_that_overlap_are_compared_without_reading_all_of_the_log(
    lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is new of a partition mostly begins below the last change of another one, and is no reset."""

    def elsewhere(*records: dict[str, Any]) -> list[dict[str, Any]]:
        return [{**later(record), "partition": 1} for record in records]

    table, sql, asked = "staging.stg_overlapping__orders", type(lakehouse.spark).sql, []

    def noted(self: Any, query: str, *rest: Any, **named: Any) -> Any:
        asked.append(query)
        return sql(self, query, *rest, **named)

    def reads_all(*records: dict[str, Any]) -> bool:
        """Whether a run with these records reads all of the log, which others have compared before."""
        place = "substring_index(max(_cdc_position), '.', 2)"
        compared = lakehouse.sql(f"select concat_ws(' ', max(_cdc_append), {place}) from {table}")[0][0]
        lakehouse.sql(f"alter table {table} set tblproperties ('cdc.compared' = '{compared}', 'cdc.resets' = '{{}}')")
        asked.clear()
        with monkeypatch.context() as patch:
            patch.setattr(type(lakehouse.spark), "sql", noted)
            log(lakehouse, "overlapping", list(records))
        return any(") as below" in query for query in asked)

    log(lakehouse, "overlapping", HISTORY)
    assert not reads_all(*elsewhere(at(0, created(1005, id=3, note="new")), at(1, updated(1015, id=3, note="newer"))))
    assert not reads_all(*elsewhere(at(2, created(1012, id=4, note="new"))), at(3, updated(1018, id=2, note="newer")))
    assert lakehouse.resets("overlapping") == {}
    assert reads_all(*elsewhere(at(3, updated(1016, id=1, note="below"))))
    assert stored(lakehouse, "overlapping") == {"public.orders": {"shop.public.orders/1": [3, 3, 1]}}
    log(lakehouse, "overlapping", [at(4, truncated(1030))])
    assert reads_all(*elsewhere(at(4, created(1025, id=5, note="below"))))
    assert stored(lakehouse, "overlapping") == {"public.orders": {"shop.public.orders/1": [4, 4, 1]}}


@pytest.mark.soak
def test_changes_without_a_position_are_compared_by_the_clock(lakehouse: Lakehouse) -> None:
    """Their order is that of a partition.

    A key in two of them, a truncate in one, and a topic that was recreated are reported.
    """

    def written(
        table: str, partition: int, offset: int, id: int, op: str = "u", at: int | None = None
    ) -> dict[str, Any]:
        value: dict[str, Any] = {
            "op": op,
            "before": None,
            "after": {"id": id, "at": offset},
            "ts_ms": 1700000000000 + (offset if at is None else at),
        }
        value["source"] = {"db": "d", "table": table}
        key: str | None = json.dumps({"id": id})
        if op == "t":
            value["after"], key = None, None
        place = {"topic": f"made.{table}", "partition": partition, "offset": offset, "timestamp": 0, "headers": []}
        return {**place, "key": key, "value": json.dumps(value)}

    cases: dict[str, tuple[list[list[dict[str, Any]]], dict[str, list[int]]]] = {
        "one_each": (
            [[written("one_each", 0, 1, 1), written("one_each", 1, 2, 2)], [written("one_each", 0, 3, 1)]],
            {},
        ),
        "moved": ([[written("moved", 1, 1, 1), written("moved", 0, 2, 1)], []], {"made.moved/0": [2, 2, 1]}),
        "moved_later": (
            [[written("moved_later", 1, 1, 1)], [written("moved_later", 0, 2, 1)]],
            {"made.moved_later/0": [2, 2, 1]},
        ),
        "moved_up": ([[written("moved_up", 0, 1, 1)], [written("moved_up", 1, 2, 1)]], {}),
        "anew": ([[written("anew", 0, 8, 1)], [written("anew", 0, 1, 1, at=90)]], {"made.anew/0": [1, 1, 1]}),
        "late": ([[written("late", 0, 8, 1)], [written("late", 0, 1, 1)]], {}),
        "emptied": (
            [[written("emptied", 0, 1, 1), written("emptied", 1, 2, 2)], [written("emptied", 0, 3, 0, "t")]],
            {"made.emptied/0": [3, 3, 1]},
        ),
        "emptied_above": (
            [
                [written("emptied_above", 0, 1, 1), written("emptied_above", 1, 2, 0, "t")],
                [written("emptied_above", 0, 3, 1)],
            ],
            {"made.emptied_above/0": [3, 3, 1]},
        ),
        "again": (  # of the first one there is another copy, which is no change
            [[written("again", 0, 1, 1, at=5), written("again", 1, 2, 1, at=3), written("again", 0, 3, 1, at=5)], []],
            {"made.again/0": [1, 1, 1]},
        ),
    }
    for landing in (0, 1):
        log(lakehouse, "unplaced", [one for parts, _ in cases.values() for one in parts[landing]], "generic")
    told = {table: found for table, (_, found) in cases.items() if found}
    assert {table.split(".")[-1]: found for table, found in stored(lakehouse, "unplaced").items()} == told
    rebuild(lakehouse, "unplaced")
    assert {table.split(".")[-1]: found for table, found in stored(lakehouse, "unplaced").items()} == told


def test_truncates_and_changes_below_them_are_told_of_a_table_without_a_key(lakehouse: Lakehouse) -> None:
    def unkeyed(offset: int, record: dict[str, Any]) -> dict[str, Any]:
        return {**at(offset, record), "key": None}

    emptied = [
        unkeyed(0, created(1000, id=1, note="old")),
        unkeyed(1, created(300, id=9, note="other")),
        unkeyed(2, truncated(1010)),
    ]
    full = [of_table("full", unkeyed(0, created(1000, id=1, note="old")))]
    lakehouse.run("unkeyed", [*emptied, unkeyed(3, created(1020, id=2, note="kept")), *full])
    assert lakehouse.resets("unkeyed") == {}
    lakehouse.run(
        "unkeyed",
        [
            unkeyed(4, created(1000, id=1, note="old")),  # a copy
            unkeyed(5, created(300, id=3, note="new")),
            *(of_table("full", unkeyed(1 + number, truncated(300 + number))) for number in (0, 1)),
        ],
    )
    told = {"public.orders": {"shop.public.orders/0": [5, 5, 1]}, "public.full": {"shop.public.full/0": [1, 2, 2]}}
    assert stored(lakehouse, "unkeyed") == told
    assert len(failing(lakehouse, "unkeyed")) == 2
    assert lakehouse.sql("select id, note from silver.unkeyed__orders") == [(2, "kept")]
    orders = "staging.stg_unkeyed__orders"
    lakehouse.sql(f"alter table {orders} unset tblproperties ('cdc.resets', 'cdc.compared')")  # as if killed before
    assert lakehouse.dbt("run", "--select", "stg_unkeyed__orders").success
    assert lakehouse.resets("unkeyed") == told
    rebuild(lakehouse, "unkeyed")
    assert stored(lakehouse, "unkeyed") == told

    lakehouse.sql(f"alter table {orders} set tblproperties ('cdc.resets' = '{{}}')")
    lakehouse.run("unkeyed", [unkeyed(6, created(1030, id=4, note="new"))])
    assert stored(lakehouse, "unkeyed") == {"public.full": told["public.full"]}


def test_a_lost_server_is_told_and_a_slot_that_was_made_anew_is_not(lakehouse: Lakehouse, epochs: Any) -> None:
    """A capture (`ferry`): a replica that lagged takes over, then its slot is recreated. Each time all rows are read
    anew.
    """
    lines = (EVENTS / "ferry.jsonl").read_text().splitlines()
    lost, replica, new_slot = (number for number, line in enumerate(lines) if r"\"snapshot\":\"first\"" in line)
    records = [json.loads(line) for line in lines]

    def missed() -> list[int]:
        return missed_by_snapshot(lakehouse, "ferry__sailings")

    lakehouse.run("ferry", records[lost:replica])
    assert lakehouse.resets("ferry") == {}  # the engine was killed: there are redeliveries
    lakehouse.run("ferry", records[replica:new_slot])
    ((first, last, _),) = stored(lakehouse, "ferry")["public.sailings"].values()
    assert replica <= first < last < new_slot
    epochs(f"ferry,ferry.public.sailings,0,{replica},,1")
    lakehouse.build_landed("ferry")
    assert lakehouse.resets("ferry") == {}
    assert missed() == [6, 7]  # the replica never had them
    lakehouse.run("ferry", records[new_slot:])
    assert lakehouse.resets("ferry") == {}
    assert missed() == [4, 6, 7]  # and this one was deleted while there was no slot
    lakehouse.sql("update silver.ferry__sailings set _cdc_is_deleted = true where sailing in (4, 6, 7)")
    wanted = json.loads((EVENTS / "ferry.expected.json").read_text())["public.sailings"]["rows"]
    assert lakehouse.printed("ferry.sailings", "sailing") == wanted


def test_a_topic_that_follows_another_one_is_named_and_an_epoch_makes_it_the_later_one(
    lakehouse: Lakehouse, epochs: Any
) -> None:
    """Without a position: its offsets begin below those of the topic before it."""

    def written(topic: str, offset: int, id: int, op: str, value: int | None = None) -> dict[str, Any]:
        image = None if value is None else json.dumps({"_id": id, "v": value})
        source = {"version": "3.2.0.Final", "connector": "mongodb", "name": "m", "db": "d", "collection": "pets"}
        event = {"before": None, "after": image, "source": {**source, "ts_ms": 1700000000000, "ord": 1}, "op": op}
        place = {"topic": topic, "partition": 0, "offset": offset, "timestamp": 0, "headers": []}
        return {**place, "key": json.dumps({"id": str(id)}), "value": json.dumps(event)}

    lakehouse.run("topic_after_another", [written("m.d.pets", 100, 1, "c", 1), written("m.d.pets", 101, 2, "c", 1)])
    done = lakehouse.run("topic_after_another", [written("pets", 0, 1, "u", 2), written("pets", 1, 2, "d")])
    (note,) = [note for note in done.notes if "new topics pets" in note]
    assert "declare an epoch" in note
    epochs("topic_after_another,pets,0,0,,1")
    lakehouse.build_landed("topic_after_another")
    assert lakehouse.sql("select _id, v from topic_after_another.pets") == [(1, 2)]


def test_a_log_that_is_rolled_back_to_before_an_epoch_gets_it_again(lakehouse: Lakehouse, epochs: Any) -> None:
    log = "staging.stg_epoch_back__orders"
    lakehouse.run("epoch_back", HISTORY + RESTORED)
    ((before,),) = lakehouse.sql(f"select snapshot_id from {log}.refs")
    epochs("epoch_back,shop.public.orders,0,3,,1")
    lakehouse.run("epoch_back", [])
    lakehouse.spark.sql(f"call system.rollback_to_snapshot('{log}', {before})").collect()
    lakehouse.run("epoch_back", [at(6, updated(330, id=3, note="newer"))])
    assert lakehouse.rows("epoch_back.orders", "id") == [{"id": 1, "note": "new"}, {"id": 3, "note": "newer"}]
    assert lakehouse.resets("epoch_back") == {}


def test_epochs_that_say_nothing_are_refused(lakehouse: Lakehouse, epochs: Any) -> None:
    from scripts.errors import LakehouseError

    lakehouse.run("epochs", HISTORY)
    for rest in ("0,3,,0", ",3,,1", "0,-3,,1", "0,1,1,1,1", "0,1", "0,,,1", ",1,1,1"):
        epochs(f"epochs,shop.public.orders,{rest}")
        with pytest.raises(LakehouseError, match="cdc_epochs.csv, line 2"):
            lakehouse.scaffold("epochs")
    epochs("epochs,elsewhere,0,3,,1")
    assert any("elsewhere" in note for note in lakehouse.scaffold("epochs").notes)


def test_rows_that_a_repeated_snapshot_did_not_find_are_named(lakehouse: Lakehouse) -> None:
    systems: dict[str, Callable[[Record], Record]] = {"again_postgresql": dict, "again_mysql": of_mysql}

    def snapshot(lsn: int, *ids: int) -> list[Record]:
        return [event("r", lsn, {"id": key, "note": "read"}, offset=lsn + key, snapshot="true") for key in ids]

    def missed(*records: Record) -> list[list[int]]:
        for system, written in systems.items():
            lakehouse.land(system, list(map(written, records)))
        done = [lakehouse.scaffold(system) for system in systems]
        assert not lakehouse._build.build(lakehouse.spark, [*systems], done, print)
        return [missed_by_snapshot(lakehouse, f"{system}__orders") for system in systems]

    assert missed(*snapshot(10, 1, 2, 3, 4), updated(25, id=2, note="b"), deleted(26, id=4)) == [[], []]
    found = missed(*snapshot(30, 2), updated(35, id=5, note="e"), *snapshot(20, 3))  # and one that is older
    assert found == [[1, 3], [1, 3]]
    for system in systems:  # only events delete
        assert lakehouse.sql(f"select id from {system}.orders order by id") == [(1,), (2,), (3,), (5,)]
