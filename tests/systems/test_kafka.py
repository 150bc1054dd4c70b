"""Topics of a real Kafka: what lands, once, whatever becomes of the loader and of the topics."""

import base64
import itertools
import json
import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from conftest import Lakehouse, engine_for
from event_factory import created, deleted, event, updated
from json_cases import EITHER, EVENTS, NO_EVENTS, NO_UTF8, NO_VALUES, VALUES
from kafka_broker import Broker
from test_kills import SOAK, Command, Killed
from test_server import Checkout

from scripts import bronze as bronze_table
from scripts import kafka, ledger, offsets
from scripts.bronze import Landed
from scripts.errors import LakehouseError
from scripts.kafka import Topics


def of(system: str, *records: dict[str, Any]) -> list[dict[str, Any]]:
    """Records with topics of their own: those of a system."""
    return [{**record, "topic": record["topic"].replace("shop.", f"{system}.", 1)} for record in records]


def topics(broker: Broker, names: str) -> Topics:
    return Topics(broker.servers, names)


def bronze(lakehouse: Lakehouse, system: str, columns: str = "topic, partition, offset") -> list[Any]:
    return lakehouse.sql(f"select {columns} from bronze.{system} order by {columns}")


@pytest.fixture
def engine(lakehouse: Lakehouse) -> Iterator[None]:
    """Without dbt, where it is not what is tested; `test_secrets_open_the_broker_and_are_shown_nowhere` has it."""
    with engine_for(lakehouse, has_loader=True):
        yield


@pytest.mark.usefixtures("engine")
def test_topics_give_what_files_of_their_records_give(lakehouse: Lakehouse, broker: Broker) -> None:
    broker.create("plain.public.orders", partitions=2)
    broker.create("plain.public.others")
    headers = [("__debezium.name", b"x"), ("none", None), ("bytes", b"\xff\x00")]
    first = of(
        "plain",
        created(10, id=1, status="new"),
        created(11, id=2, status="new"),
        event("c", 12, {"id": 5}, table="others"),
    )
    first[0] |= {"headers": headers, "timestamp": 1700000000123}
    first[1] |= {"partition": 1}
    tombstone = {"topic": "plain.public.orders", "partition": 0, "key": '{"id": 1}', "value": None}
    broken = [
        {"topic": "plain.public.orders", "partition": 0, "key": b"\xff\xfe", "value": first[0]["value"]},
        {"topic": "plain.public.orders", "partition": 0, "key": '{"id": 7}', "value": b"\x00\xe2\x82"},
    ]
    odd = {"topic": "plain.public.others", "key": "", "value": "no json \x00 \U0001f600\u2028"}
    broker.produce([*first, tombstone, *broken, odd])

    lakehouse.run("plain", topics(broker, "plain[.]public[.].*"))
    assert "Building" in lakehouse.said[0]
    assert bronze(lakehouse, "plain", "topic, partition, offset, key, value, error, batch, file, line") == [
        ("plain.public.orders", 0, 0, '{"id": 1}', first[0]["value"], None, 1, None, None),
        ("plain.public.orders", 0, 1, '{"id": 1}', None, None, 1, None, None),
        ("plain.public.orders", 0, 2, None, None, "not_utf8", 1, None, None),
        ("plain.public.orders", 0, 3, None, None, "schema_registry", 1, None, None),
        ("plain.public.orders", 1, 0, '{"id": 2}', first[1]["value"], None, 1, None, None),
        ("plain.public.others", 0, 0, '{"id": 5}', first[2]["value"], None, 1, None, None),
        ("plain.public.others", 0, 1, "", odd["value"], None, 1, None, None),
    ]
    (stored,) = lakehouse.sql("select headers, unix_millis(timestamp) from bronze.plain where headers is not null")
    assert [(name, value and bytes(value)) for name, value in stored[0]] == headers and stored[1] == 1700000000123
    raws = lakehouse.sql("select cast(raw as string) from bronze.plain where error is not null order by offset")
    both = [json.loads(raw) for (raw,) in raws]
    assert [[base64.b64decode(one["key"]), base64.b64decode(one["value"])] for one in both] == [
        [b"\xff\xfe", first[0]["value"].encode()],
        [b'{"id": 7}', b"\x00\xe2\x82"],
    ]
    assert lakehouse.rejected("plain") == [
        ("plain.public.orders/0/2", "not_utf8"),
        ("plain.public.orders/0/3", "schema_registry"),
        ("plain.public.others/0/1", "invalid_json"),
    ]
    counts = lakehouse.sql(
        "select source_table, kind, sum(events) from monitoring.plain__event_counts group by all order by 1, 2"
    )
    assert counts == [
        (None, "rejected", 2),
        ("public.orders", "change", 2),
        ("public.orders", "tombstone", 1),
        ("public.others", "change", 1),
        ("public.others", "rejected", 1),
    ]

    broker.produce(of("plain", updated(20, id=1, status="paid"), deleted(21, id=2)))
    landed = lakehouse.land("plain", topics(broker, "plain.public.orders, plain.public.others"))
    assert (landed.records, landed.repeated, landed.notes, landed.lost) == (2, 0, [], [])
    assert lakehouse.land("plain", topics(broker, "plain.*")) == Landed()
    lakehouse.run("plain", topics(broker, "plain.*"))
    assert lakehouse.rows("plain.orders") == [{"id": 1, "status": "paid"}]


@pytest.mark.soak
@pytest.mark.usefixtures("engine")
def test_json_is_read_as_rfc_8259_has_it(lakehouse: Lakehouse, broker: Broker, tmp_path: Path) -> None:
    """Each text lands byte for byte, as a value in Kafka and as a line of a file, and gives its value or a reason."""
    cases = [(b"%s", value) for value in [*VALUES, *NO_VALUES, *NO_UTF8, *EITHER]]
    cases += [(around, b"1") for around in [*EVENTS, *NO_EVENTS]]
    texts: dict[str, list[bytes]] = {"topic": [], "lines": []}
    for table, made in texts.items():
        for number, (around, value) in enumerate(cases):
            whole = event("c", number, {"id": number, "value": "%s"}, table=table, prefix="rfc")["value"].encode()
            made.append(around.replace(b"%s", whole.replace(b'"%s"', value)))
    texts["lines"] = [
        text.strip(b" \t\r\n").replace(b"\n", b"\r") for text in texts["lines"]
    ]  # no line breaks in a line
    file = (tmp_path / "rfc.jsonl").resolve()
    file.write_bytes(b"".join(line + b"\n" for line in texts["lines"]))
    broker.create("rfc.public.topic")
    broker.produce(
        [{"topic": "rfc.public.topic", "partition": 0, "key": None, "value": text} for text in texts["topic"]]
    )
    lakehouse.land("rfc", file)
    lakehouse.run("rfc", topics(broker, "rfc.*"), keys={"topic": ["id"], "lines": ["id"]})

    landed: dict[str, dict[int, bytes]] = {"topic": {}, "lines": {}}
    for offset, line, value, raw in lakehouse.sql("select offset, line, value, raw from bronze.rfc"):
        if line is not None:
            landed["lines"][line - 1] = bytes(raw) if value is None else value.encode()
        else:
            landed["topic"][offset] = base64.b64decode(json.loads(raw)["value"]) if value is None else value.encode()
    assert landed == {table: dict(enumerate(made)) for table, made in texts.items()}
    assert lakehouse.sql("select sum(events) from monitoring.rfc__event_counts") == [(2 * len(cases),)]
    reasons = dict(lakehouse.rejected("rfc"))
    for table, place, first in (("topic", "rfc.public.topic/0/", 0), ("lines", f"{file}:", 1)):
        rows = {row["id"]: row["value"] for row in lakehouse.rows(f"rfc.{table}")}
        for number, (around, value) in enumerate(cases):
            told = (
                table,
                around,
                value[:80],
                rows.get(number, "no row"),
                reason := reasons.get(f"{place}{number + first}"),
            )
            if around in NO_EVENTS:  # a bare line that names no table is of none
                assert number not in rows and (reason or (table, around) == ("lines", b"{}")), told
            elif value in VALUES or around != b"%s":
                wanted = json.loads(value, parse_float=Decimal)
                assert number in rows and reason is None, told
                found = (
                    rows[number] if isinstance(wanted, str | None) else json.loads(rows[number], parse_float=Decimal)
                )
                assert (type(found) is type(wanted) or isinstance(found, Decimal)) and found == wanted, told
            elif (given := EITHER.get(value)) is not None:
                assert (rows[number] == given) if number in rows else (table == "lines" and reason == "invalid_json"), (
                    told
                )
            else:
                assert number not in rows and reason, told


@pytest.mark.soak
def test_what_came_from_files_does_not_land_again_from_its_topic_nor_the_other_way(
    lakehouse: Lakehouse, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create("both.public.orders")
    records = of("both", *(created(10 + n, id=n, text="é" * n) for n in range(9)))
    broker.produce(records)
    numbered = [{**record, "offset": n} for n, record in enumerate(records)]

    assert lakehouse.land("both", numbered[2:5]).records == 3
    monkeypatch.setattr(offsets, "SPAN_OFFSETS", 3)
    landed = lakehouse.land("both", topics(broker, "both.*"))
    assert (landed.records, landed.repeated, landed.batches, landed.notes) == (6, 3, [2, 3, 4], [])
    landed = lakehouse.land("both", numbered)
    assert (landed.records, landed.repeated) == (0, 9)
    broker.produce(of("both", created(30, id=30)))
    assert lakehouse.land("both", topics(broker, "both.*")).records == 1
    assert bronze(lakehouse, "both", "offset, batch") == [
        *((n, 2) for n in (0, 1)), *((n, 1) for n in (2, 3, 4)), (5, 3), *((n, 4) for n in (6, 7, 8)), (9, 5)
    ]  # fmt: skip


def test_loader_that_dies_or_loses_its_ledger_loses_and_repeats_nothing(
    lakehouse: Lakehouse, broker: Broker, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broker.create("dead.public.orders", partitions=3)
    write_ledger = ledger.write
    monkeypatch.setattr(offsets, "SPAN_OFFSETS", 4)
    for at in range(0, 40, 10):
        broker.produce(
            [
                {**record, "partition": n % 3}
                for n, record in enumerate(of("dead", *(created(at + n, id=n) for n in range(9))))
            ]
        )

        def die(*_: Any) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(ledger, "write", die)
        with pytest.raises(KeyboardInterrupt):
            lakehouse.land("dead", topics(broker, "dead.*"))
        monkeypatch.setattr(ledger, "write", write_ledger)
        if at == 10:
            lakehouse.spark.sql("drop table bronze.dead__files")
        if at == 20:  # a file comes in between
            lakehouse.land("dead", [{"bare": 1}])
        landed = lakehouse.land("dead", topics(broker, "dead.*"))
        assert landed.records == 5 and not landed.lost and not landed.notes
    assert len(bronze(lakehouse, "dead")) == 37 == len(set(bronze(lakehouse, "dead")))
    assert lakehouse.land("dead", topics(broker, "dead.*")) == Landed()

    monkeypatch.setattr(ledger, "write", die)
    broker.produce(list(of("dead", created(90, id=90), created(91, id=91))))
    with pytest.raises(KeyboardInterrupt):
        lakehouse.land("dead", topics(broker, "dead.*"))
    monkeypatch.setattr(ledger, "write", write_ledger)
    lakehouse.spark.sql("delete from bronze.dead where offset > 2 and offset % 2 = 0")  # erased
    broker.produce(list(of("dead", created(92, id=92))))
    landed = lakehouse.land("dead", topics(broker, "dead.*"))
    assert (landed.records, landed.notes) == (1, [])


@pytest.mark.soak
def test_a_loader_killed_at_each_of_its_boundaries_lands_each_record_once(broker: Broker, tmp_path: Path) -> None:
    """Of one that finds its tables, and with `make soak` of those that create them; the next one does the rest."""
    checkout = Checkout(tmp_path)
    given = {"EVENTS": "", "KAFKA": broker.servers, "SYSTEM": "slain", "TOPICS": "slain.public.orders"}
    command = Command(checkout, **given)
    broker.create("slain.public.orders", partitions=3)
    produced = 0

    def produce() -> None:
        nonlocal produced
        for _ in range(4):
            broker.produce([{**of("slain", created(produced, id=produced))[0], "partition": produced % 3}])
            produced += 1

    try:
        for first in itertools.count(1):  # until a landing has no boundary left to die at
            produce()
            try:
                assert command.do("land", at=(first, "before", "", 0.0) if SOAK else None) == produced
                break
            except Killed:
                pass
        produce()
        assert command.do("land") == 4
        boundaries = command.passed
        for at in [(number, "before", "", 0.0) for number in range(1, len(boundaries) + 1)] + [
            (len(boundaries), "after", "", 0.0)
        ]:
            produce()
            with pytest.raises(Killed):
                command.do("land", at=at)
        command.do("land")
        (landed,) = command.sql("select partition, offset from bronze.slain order by 1, 2")
        wanted = sorted((number % 3, number // 3) for number in range(produced))
        assert [(row["partition"], row["offset"]) for row in landed] == wanted
        assert command.do("land") == 0
    finally:
        command.stop()


@pytest.mark.soak
def test_files_and_topics_land_in_one_system_at_once(
    lakehouse: Lakehouse, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create("rival.public.orders")
    records = of("rival", *(created(10 + n, id=n) for n in range(6)))
    broker.produce(records)
    numbered = [{**record, "offset": n} for n, record in enumerate(records)]
    write = bronze_table.write
    rivals: list[Any] = [numbered[1:3], topics(broker, "rival.*")]

    def write_after_the_other(*arguments: Any) -> None:
        if rivals:
            lakehouse.land("rival", rivals.pop(0))
        write(*arguments)

    monkeypatch.setattr(bronze_table, "write", write_after_the_other)
    lakehouse.land("rival", topics(broker, "rival.*"))
    assert [offset for _, _, offset in bronze(lakehouse, "rival")] == [0, 1, 2, 3, 4, 5]

    broker.produce(of("rival", created(30, id=30), created(31, id=31)))
    rivals.append(topics(broker, "rival.*"))
    lakehouse.land("rival", [{**of("rival", created(31, id=31))[0], "offset": 7}])
    assert [offset for _, _, offset in bronze(lakehouse, "rival")] == list(range(8))
    batches = {batch for (batch,) in bronze(lakehouse, "rival", "batch")}
    assert batches == set(range(1, len(batches) + 1))


@pytest.mark.parametrize("again", [2, *(pytest.param(again, marks=pytest.mark.soak) for again in (5, 9))])
@pytest.mark.usefixtures("engine")
def test_topic_that_was_created_anew_is_read_from_its_start(lakehouse: Lakehouse, broker: Broker, again: int) -> None:
    """With fewer, as many, and more records than had been read."""
    system = f"anew{again}"
    topic = f"{system}.public.orders"
    broker.create(topic, partitions=2)
    broker.produce(of(system, *(created(10 + n, id=n) for n in range(5))))
    lakehouse.land(system, topics(broker, topic))
    broker.do("delete", topic)
    broker.create(topic, partitions=1)
    broker.produce(of(system, *(created(20 + n, id=100 + n) for n in range(again))))

    landed = lakehouse.land(system, topics(broker, topic))
    assert landed.records == again and not landed.lost
    assert any(f"{topic}/0" in note and "recreated" in note for note in landed.notes), landed.notes
    assert len(bronze(lakehouse, system)) == 5 + landed.records
    broker.produce(of(system, created(40, id=300)))
    landed = lakehouse.land(system, topics(broker, topic))
    assert (landed.records, landed.notes) == (1, [])
    lakehouse.run(system, topics(broker, topic))
    assert len(lakehouse.rows(f"{system}.orders")) == 5 + again + 1


@pytest.mark.soak
def test_topic_that_was_created_anew_and_ends_with_the_same_tombstone_is_read_from_its_start(
    lakehouse: Lakehouse, broker: Broker
) -> None:
    topic = "same_end.public.orders"
    end = {"topic": topic, "partition": 0, "key": '{"id": 1}', "value": None}
    for life in range(2):
        broker.create(topic)
        broker.produce([*of("same_end", created(10, id=life)), {**end, "timestamp": 1700000000000 + life}])
        landed = lakehouse.land("same_end", topics(broker, topic))
        broker.do("delete", topic)
    assert (landed.records, landed.repeated) == (1, 1)
    assert "recreated" in landed.notes[0]


@pytest.mark.soak
def test_partitions_that_come_are_read_and_those_that_go_are_told(lakehouse: Lakehouse, broker: Broker) -> None:
    topic = "partitions.public.orders"
    broker.create(topic)
    broker.produce(of("partitions", created(10, id=1)))
    lakehouse.land("partitions", topics(broker, "partitions.*"))
    broker.do("grow", topic, partitions=3)
    broker.create("partitions.public.new")
    more = of("partitions", *(created(20 + n, id=20 + n) for n in range(6)), event("c", 30, {"id": 1}, table="new"))
    broker.produce([{**record, "partition": n % 3 if n < 6 else 0} for n, record in enumerate(more)])
    landed = lakehouse.land("partitions", topics(broker, "partitions.*"))
    assert (landed.records, landed.notes) == (7, [])

    broker.do("delete", "partitions.public.new")
    (note,) = lakehouse.land("partitions", topics(broker, "partitions.*")).notes
    assert note.startswith("partitions.public.new/0 is there no more")
    assert (
        lakehouse.land("partitions", topics(broker, "partitions.*")) == Landed()
    )  # told once, though nothing has landed

    broker.do("delete", topic)
    broker.create(topic)
    broker.produce(of("partitions", created(40, id=40)))
    landed = lakehouse.land("partitions", topics(broker, "partitions.*"))
    assert landed.records == 1
    gone = sorted(note.split(" ")[0] for note in landed.notes if "there no more" in note)
    assert gone == [f"{topic}/1", f"{topic}/2"]
    assert lakehouse.land("partitions", topics(broker, "partitions.*")).notes == []


def test_records_deleted_before_they_were_read_are_told(lakehouse: Lakehouse, broker: Broker) -> None:
    topic = "late.public.orders"
    broker.create(topic)
    broker.produce(of("late", *(created(10 + n, id=n) for n in range(10))))
    broker.do("delete_records", topic, before=3)
    landed = lakehouse.land("late", topics(broker, "late.*"))
    assert (landed.records, landed.lost) == (7, [])
    assert landed.notes == [f"{topic}/0 begins at offset 3: older records were deleted before the first run"]

    broker.produce(of("late", *(created(30 + n, id=n) for n in range(10))))
    broker.do("delete_records", topic, before=15)
    landed = lakehouse.land("late", topics(broker, "late.*"))
    assert (landed.records, landed.notes) == (5, [])
    assert landed.lost == [f"{topic}/0: offsets 10 to 14 were deleted before they were read"]
    assert lakehouse.land("late", topics(broker, "late.*")) == Landed()

    broker.produce(of("late", *(created(50 + n, id=n) for n in range(2))))
    broker.do("delete_records", topic, before=22)
    landed = lakehouse.land("late", topics(broker, "late.*"))
    assert (landed.records, landed.lost) == (0, [f"{topic}/0: offsets 20 to 21 were deleted before they were read"])
    assert lakehouse.land("late", topics(broker, "late.*")) == Landed()  # told once


@pytest.mark.soak
def test_a_first_landing_that_stops_takes_nothing_for_lost_that_was_gone_before(
    lakehouse: Lakehouse, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = "stopped.public.orders"
    broker.create(topic)
    broker.do("grow", topic, partitions=2)
    records = of("stopped", *(created(10 + n, id=n) for n in range(12)))
    broker.produce([{**record, "partition": int(n >= 6)} for n, record in enumerate(records)])
    broker.do("delete_records", topic, partition=1, before=2)
    monkeypatch.setattr(offsets, "SPAN_OFFSETS", 2)
    write, left = bronze_table.write, [2]

    def write_and_stop(*arguments: Any) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        write(*arguments)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(bronze_table, "write", write_and_stop)
        lakehouse.land("stopped", topics(broker, "stopped.*"))
    landed = lakehouse.land("stopped", topics(broker, "stopped.*"))
    assert landed.lost == []
    assert lakehouse.sql("select count(*), count(distinct partition, offset) from bronze.stopped") == [(10, 10)]


def test_a_first_landing_that_dies_after_its_commit_takes_nothing_for_lost_that_was_gone_before(
    lakehouse: Lakehouse, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = "died_first.public.orders"
    broker.create(topic, partitions=2)
    records = of("died_first", *(created(10 + n, id=n) for n in range(4)))
    broker.produce([{**record, "partition": n % 2} for n, record in enumerate(records)])
    broker.do("delete_records", topic, partition=1, before=2)  # all that it had
    write = bronze_table.write

    def write_and_die(*arguments: Any) -> None:
        write(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(bronze_table, "write", write_and_die)
        lakehouse.land("died_first", topics(broker, "died_first.*"))
    landed = lakehouse.land("died_first", topics(broker, "died_first.*"))
    assert (landed.records, landed.lost) == (0, [])
    assert lakehouse.sql("select count(*) from bronze.died_first") == [(2,)]


@pytest.mark.soak
def test_records_deleted_while_they_are_read_are_told(
    lakehouse: Lakehouse, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = "gone.public.orders"
    broker.create(topic)
    broker.produce(of("gone", *(created(10 + n, id=n) for n in range(10))))
    lakehouse.land("gone", topics(broker, "gone.*"))
    broker.produce(of("gone", *(created(30 + n, id=n) for n in range(10))))
    write = bronze_table.write
    todo = [15]

    def write_what_is_gone(*arguments: Any) -> None:
        if todo:
            broker.do("delete_records", topic, before=todo.pop())
        write(*arguments)

    monkeypatch.setattr(bronze_table, "write", write_what_is_gone)
    landed = lakehouse.land("gone", topics(broker, "gone.*"))
    assert landed.records == 5
    assert landed.lost == [f"{topic}/0: offsets 10 to 14 were deleted before they were read"]


def test_offsets_without_records_are_told_and_only_committed_transactions_land(
    lakehouse: Lakehouse, broker: Broker
) -> None:
    topic = "marks.public.orders"
    broker.create(topic)
    broker.produce(of("marks", created(10, id=1), created(11, id=2)), "transaction")
    broker.produce(of("marks", created(12, id=3)), "transaction", abort=True)
    broker.produce(of("marks", created(13, id=4)))
    landed = lakehouse.land("marks", topics(broker, "marks.*"))
    assert landed.records == 3
    assert landed.notes == [f"offsets that hold no record (compacted, or marks of transactions): {topic} 3"]
    assert [offset for _, _, offset in bronze(lakehouse, "marks")] == [0, 1, 5]

    broker.produce(of("marks", created(14, id=5)), "transaction", abort=True)
    landed = lakehouse.land("marks", topics(broker, "marks.*"))  # nothing but what was never written
    assert (landed.records, landed.batches) == (0, [])
    broker.produce(of("marks", created(15, id=6)), "transaction")
    assert lakehouse.land("marks", topics(broker, "marks.*")).batches == [2]
    assert lakehouse.land("marks", topics(broker, "marks.*")) == Landed()

    broker.produce(of("marks", created(16, id=7)), "begin")
    broker.produce(of("marks", created(17, id=8)))
    assert lakehouse.land("marks", topics(broker, "marks.*")) == Landed()  # what stands after an open one waits with it
    broker.do("commit")
    assert lakehouse.land("marks", topics(broker, "marks.*")).records == 2
    assert [offset for _, _, offset in bronze(lakehouse, "marks")] == [0, 1, 5, 8, 10, 11]


@pytest.mark.soak
def test_what_is_taken_back_while_a_topic_lands_or_to_a_commit_without_records_lands_again(
    lakehouse: Lakehouse, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create("undone.public.orders")

    def land(ids: list[int], *how: str, **options: Any) -> Landed:
        broker.produce(of("undone", *(created(number, id=number) for number in ids)), *how, **options)
        landed: Landed = lakehouse.land("undone", topics(broker, "undone.*"))
        return landed

    def current() -> int:
        snapshot: int = lakehouse.sql("select snapshot_id from bronze.undone.refs")[0][0]
        return snapshot

    def roll_back(snapshot: int) -> None:
        lakehouse.spark.sql(f"call system.rollback_to_snapshot('bronze.undone', {snapshot})")

    assert land([1]).batches == [1]
    assert land([2], "transaction", abort=True).batches == []
    empty = current()
    assert land([3]).batches == [2]
    roll_back(empty)
    landed = land([4])
    assert (landed.records, ["ends with batch 1, where 2 had landed" in note for note in landed.notes]) == (2, [True])

    write = bronze_table.write

    def write_what_is_taken_back(*arguments: Any) -> None:
        before = current()
        write(*arguments)
        roll_back(before)

    monkeypatch.setattr(bronze_table, "write", write_what_is_taken_back)
    land([5])
    monkeypatch.setattr(bronze_table, "write", write)
    land([6])
    assert [offset for _, _, offset in bronze(lakehouse, "undone")] == [0, 3, 4, 5, 6]


@pytest.mark.soak
@pytest.mark.usefixtures("engine")
def test_a_compacted_topic_gives_what_is_left_and_is_known_again_or_read_from_its_start(
    lakehouse: Lakehouse, broker: Broker
) -> None:
    topic = "compact.public.orders"
    settings = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0.001", "segment_ms": "1"}
    broker.create(topic, 1, **settings)
    end = 0

    def compacted(left: list[int], *ids: int) -> Any:
        """What lands once changes of these ids were written and only these offsets are left; the broker keeps the last
        one.
        """
        nonlocal end
        for key in ids:  # each in a segment of its own
            (record,) = of("compact", updated(10 + end, id=key, note=f"at {end}"))
            broker.produce([{**record, "timestamp": 1700000000000 + 1000 * end}])
            end += 1
        for _ in range(300):  # a minute, if need be
            found = topics(broker, topic).read(lakehouse.spark, {(topic, 0): (0, end)}).select("offset").collect()
            if sorted(row.offset for row in found) == left:
                return lakehouse.land("compact", topics(broker, topic))
            time.sleep(0.2)
        raise AssertionError(f"the broker did not compact: {found}")

    landed = compacted([1, 3, 4], 1, 2, 1, 1, 2)
    gap = "offsets that hold no record (compacted, or marks of transactions): compact.public.orders"
    assert (landed.records, landed.notes, landed.lost) == (3, [f"{gap} 2"], [])
    landed = compacted([4, 6, 7], 1, 1, 3)
    assert (landed.records, landed.notes, landed.lost) == (2, [f"{gap} 1"], [])
    landed = compacted([8, 9, 10, 11], 3, 1, 2, 1)
    unknown = f"{topic}/0 has no record left by which to know it again. Read from its start"
    assert (landed.records, landed.notes, landed.lost) == (4, [unknown, f"{gap} 8"], [])
    lakehouse.run("compact", topics(broker, topic))
    assert [offset for _, _, offset in bronze(lakehouse, "compact")] == [1, 3, 4, 6, 7, 8, 9, 10, 11]
    assert lakehouse.rows("compact.orders", "id") == [
        {"id": n, "note": f"at {at}"} for n, at in ((1, 11), (2, 10), (3, 8))
    ]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"TOPICS": "a", "SYSTEM": "x"}, "There is no KAFKA."),
        ({"KAFKA": "a:1", "SYSTEM": "x"}, "There is no TOPICS."),
        ({"KAFKA": "a:1", "TOPICS": "a"}, "There is no SYSTEM."),
        ({"KAFKA": "a:1", "TOPICS": "a", "SYSTEM": "x", "EVENTS": "x"}, "EVENTS and KAFKA were both given"),
        ({"KAFKA": "a:1", "TOPICS": "a", "SYSTEM": "x", "EVERY": "soon"}, "EVERY=soon: expected a number of seconds"),
        ({"EVENTS": ".", "SYSTEM": "x", "EVERY": "5"}, "EVERY goes with KAFKA"),
        ({"KAFKA": "a:1", "TOPICS": "a", "SYSTEM": "x", "KAFKA_CONFIG": "/nix"}, "KAFKA_CONFIG=/nix: No such file"),
        ({"KAFKA": "127.0.0.1:1", "TOPICS": "a", "SYSTEM": "x"}, "KAFKA=127.0.0.1:1: the broker does not answer"),
        ({"KAFKA": "nix", "TOPICS": "a", "SYSTEM": "x"}, "KAFKA=nix: Failed to create new KafkaAdminClient"),
        ({"KAFKA": "", "TOPICS": "here, nix,t.x", "SYSTEM": "x"}, "there is no topic nix, t.x"),
        ({"KAFKA": "", "TOPICS": "nix.*", "SYSTEM": "x"}, "no topic matches TOPICS=nix.*"),
        ({"KAFKA": "", "TOPICS": "[a", "SYSTEM": "x"}, "Unclosed character class"),
    ],
)
def test_what_cannot_be_read_is_one_line_that_names_it(
    lakehouse: Lakehouse,
    broker: Broker,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    given: dict[str, str],
    problem: str,
) -> None:
    if "here" in given.get("TOPICS", ""):
        broker.create("here")
    for name, value in given.items():
        monkeypatch.setenv(name, value or broker.servers)
    for name in ("default.api.timeout.ms", "request.timeout.ms"):  # users wait for half a minute
        monkeypatch.setitem(kafka.DEFAULTS, name, "3000")

    assert lakehouse._run.main() == (1 if given.get("KAFKA") in ("", "nix", "127.0.0.1:1") else 2)
    error = capsys.readouterr().err
    assert problem in error
    assert error.strip().count("\n") == 0, error


def test_secrets_open_the_broker_and_are_shown_nowhere(
    lakehouse: Lakehouse,
    broker: Broker,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    broker.create("secret.public.orders")
    broker.produce(of("secret", created(10, id=1)))
    file = tmp_path / "client.properties"
    properties = {**broker.client_properties, "group.id": "any", "auto.offset.reset": "latest"}
    for password in ("canary-of-the-reader", "canary-that-is-wrong"):
        text = "".join(f"{name}={value}\n" for name, value in properties.items())
        file.write_text(text.replace("canary-of-the-reader", password))
        given = {"KAFKA": broker.secured, "TOPICS": "secret.*", "SYSTEM": "secret", "KAFKA_CONFIG": str(file)}
        for name, value in given.items():
            monkeypatch.setenv(name, value)
        status = lakehouse._run.main()
        output = capfd.readouterr()
        if password == "canary-of-the-reader":
            assert status == 0 and "secret: 1 new records\n" in output.out
        else:
            assert status == 1 and "Authentication failed" in output.err and output.err.strip().count("\n") == 0
        assert "canary" not in output.out + output.err

    shown = [path for path in lakehouse.project.rglob("*") if path.is_file() and b"canary" in path.read_bytes()]
    assert shown == []


@pytest.mark.soak
@pytest.mark.usefixtures("engine")
def test_lost_records_end_the_run_with_an_error_after_the_rest_is_built(
    lakehouse: Lakehouse, broker: Broker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broker.create("short.public.orders")
    for name, value in {"KAFKA": broker.servers, "TOPICS": "short.*", "SYSTEM": "short"}.items():
        monkeypatch.setenv(name, value)
    broker.produce(of("short", created(10, id=1)))
    assert lakehouse._run.main() == 0
    broker.produce(of("short", *(created(20 + n, id=20 + n) for n in range(4))))
    broker.do("delete_records", "short.public.orders", before=3)

    assert lakehouse._run.main() == 1
    error = "Error: short.public.orders/0: offsets 1 to 2 were deleted before they were read. Their changes are missing"
    assert error in capsys.readouterr().err
    assert [row["id"] for row in lakehouse.rows("short.orders")] == [1, 22, 23]
    assert lakehouse._run.main() == 0

    def refuse(*_: Any) -> int:
        raise LakehouseError("nothing can be built")

    broker.produce(of("short", *(created(30 + n, id=30 + n) for n in range(4))))
    broker.do("delete_records", "short.public.orders", before=7)
    monkeypatch.setattr(lakehouse._build, "refresh", refuse)
    assert lakehouse._run.main() == 1
    told = capsys.readouterr()
    assert (
        "Error: short: short.public.orders/0: offsets 5 to 6 were deleted" in told.out
        and "nothing can be built" in told.err
    )


@pytest.mark.soak
def test_a_run_on_a_resident_server_goes_on_until_it_is_stopped(broker: Broker, tmp_path: Path) -> None:
    checkout = Checkout(tmp_path)
    broker.create("going.public.orders")
    broker.create("going.public.others")
    broker.produce(of("going", created(10, id=1), event("c", 11, {"id": 1}, table="others")))
    checkout.up()
    try:
        given = {"EVENTS": "", "KAFKA": broker.servers, "TOPICS": "going.*", "SYSTEM": "going", "EVERY": "1"}
        going = checkout.start(sys.executable, "-m", "scripts.run", **given, JAVA_HOME=os.environ.get("JAVA_HOME", ""))
        assert going.stdout and going.stderr

        def said(pattern: str) -> str:
            for line in going.stdout or ():
                if re.search(pattern, line):
                    return line
            raise AssertionError(f"{pattern}: {going.stderr and going.stderr.read()}")

        said("going: 2 new records$")
        said("Looking for new records every 1 s")
        broker.produce(of("going", created(20, id=2)))
        said("going: 1 new records$")
        assert "Building 3 models" in said("Building")  # not those of the other table
        broker.produce(of("going", created(30, id=3)))
        said("going: 1 new records$")
        said("Building")
        going.send_signal(signal.SIGINT)
        said("Stopped.")
        assert going.wait(60) == 0 and going.stderr.read() == ""
        status, told = checkout.module("run", **{**given, "EVERY": ""})  # builds what was stopped
        assert status == 0 and "going: 0 new records" in told, told
        assert checkout.rows("select id from going.orders order by 1") == ["1", "2", "3"]
    finally:
        checkout.module("server", "down")
