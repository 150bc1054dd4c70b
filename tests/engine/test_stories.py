"""Stories: what a table holds after events have come in some way. One test is one promise of the README."""

import itertools
import json
from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest
from conftest import Lakehouse, engine_for
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
    lakehouse.tests = "test_stories.py"

    def run(records: list[Record]) -> None:
        lakehouse.run("stories", records)

    def rows_of(tables: list[str]) -> dict[str, Rows]:
        return {table: live(lakehouse, "stories", table) for table in tables}

    def rebuild(models: list[str]) -> None:
        assert lakehouse.dbt("run", "--full-refresh", "--select", *models).success

    with engine_for(lakehouse):
        yield tell(run, rows_of, rebuild)


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
