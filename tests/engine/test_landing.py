"""Landing exactly once, what the scaffold reads of it, and what is rejected."""

import gzip
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from conftest import Lakehouse
from event_factory import created, deleted, event, truncated

from scripts import bronze as bronze_table
from scripts import chunks, ledger, loader
from scripts.bronze import Landed

pytestmark = pytest.mark.loader
CUT = "no complete record: still being written, or cut off"
FIELDS: list[dict[str, Any]] = [
    {"type": "int32", "field": "id"},
    {"type": "int16", "field": "small"},
    {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "field": "price",
     "parameters": {"scale": "2", "connect.decimal.precision": "5"}},
    {"type": "int32", "name": "io.debezium.time.Date", "field": "day"},
    {"type": "int64", "name": "io.debezium.time.MicroTimestamp", "field": "at"},
    {"type": "string", "name": "io.debezium.time.ZonedTimestamp", "field": "instant"},
    {"type": "double", "field": "ratio"},
    {"type": "string", "field": "payload"},
]  # fmt: skip


def with_schema(record: dict[str, Any], fields: list[dict[str, Any]] = FIELDS) -> dict[str, Any]:
    """The record as JsonConverter writes it with `schemas.enable`."""
    schema = {"type": "struct", "fields": [{"type": "struct", "fields": fields, "field": "after"}]}
    value = f'{{"schema":{json.dumps(schema)},"payload":{record["value"]}}}'
    return {**record, "value": value}


def text(*records: dict[str, Any] | str) -> str:
    """Records, or lines that stand for themselves, as a file."""
    lines = [record if isinstance(record, str) else json.dumps(record, ensure_ascii=False) for record in records]
    return "".join(line + "\n" for line in lines)


def land(lakehouse: Lakehouse, system: str, events: Path | str) -> Landed:
    landed: Landed = lakehouse.land(system, events)
    return landed


def bronze(lakehouse: Lakehouse, system: str, columns: str = "offset") -> list[Any]:
    rows = lakehouse.sql(f"select {columns} from bronze.{system} order by {columns}")
    return [row[0] if len(row) == 1 else row for row in rows]


def batches(lakehouse: Lakehouse, system: str) -> list[int]:
    return [row[0] for row in lakehouse.sql(f"select distinct batch from bronze.{system} order by batch")]


def test_what_has_landed_does_not_land_again(lakehouse: Lakehouse, tmp_path: Path) -> None:
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    first.write_text(text(created(10, id=1), created(11, id=2)))
    second.write_text(text(created(12, id=3)))

    assert land(lakehouse, "once", first).records == 2
    assert land(lakehouse, "once", first) == Landed()  # the same file
    assert land(lakehouse, "once", tmp_path).records == 1  # a folder with it and another
    assert land(lakehouse, "once", tmp_path / "*.jsonl") == Landed()  # a pattern of the same
    assert land(lakehouse, "once", f"{tmp_path}/../{tmp_path.name}/a.jsonl") == Landed()

    overlapping = tmp_path / "overlapping.jsonl"
    overlapping.write_text(text(created(11, id=2), created(12, id=3), created(12, id=3), created(13, id=4)))
    landed = land(lakehouse, "once", overlapping)
    assert (landed.records, landed.repeated) == (1, 3)

    other_topic = event("c", 10, {"id": 1}, table="others")
    recreated = [event("c", 20, {"id": 9}, offset=10), {**created(11, id=2), "key": None}, other_topic]
    (tmp_path / "recreated.jsonl").write_text(text(*recreated))
    landed = land(lakehouse, "once", tmp_path / "recreated.jsonl")
    assert (landed.records, landed.repeated) == (3, 0)

    assert bronze(lakehouse, "once", "topic, offset, key") == [
        ("shop.public.orders", 10, '{"id": 1}'),
        ("shop.public.orders", 10, '{"id": 9}'),
        ("shop.public.orders", 11, None),
        ("shop.public.orders", 11, '{"id": 2}'),
        ("shop.public.orders", 12, '{"id": 3}'),
        ("shop.public.orders", 13, '{"id": 4}'),
        ("shop.public.others", 10, '{"id": 1}'),
    ]
    assert batches(lakehouse, "once") == [1, 2, 3, 4]


def test_records_in_any_order_over_many_commits_and_files_land_once(
    lakehouse: Lakehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Topics stand at very different offsets, and commits overlap in all of them, in some, or in none."""
    monkeypatch.setattr(chunks, "CHUNK_BYTES", 4000)
    records = [
        {"topic": topic, "partition": partition, "offset": start + number, "key": f"{number % 3}", "value": "x" * 40}
        for topic, start in (("low", 0), ("high", 2**62))
        for partition in (0, 1)
        for number in range(15)
    ]
    again = [{**record, "key": "recreated"} for record in records[:10]]  # the same coordinates, another record
    random = Random(1)
    arrivals = [*records, *again, *random.choices(records + again, k=40)]
    random.shuffle(arrivals)
    parts = [records[:20], arrivals[:60], arrivals[60:], records]
    landed = Landed()
    for number, part in enumerate(parts):
        path = tmp_path / f"{number}.jsonl"
        path.write_text(text(*part))
        done = land(lakehouse, "disorder", path)
        landed = Landed(
            landed.records + done.records, landed.repeated + done.repeated, 0, landed.batches + done.batches
        )
    assert done == Landed(repeated=len(records))

    columns = ["topic", "partition", "offset", "key"]
    assert bronze(lakehouse, "disorder", ", ".join(columns)) == sorted(
        tuple(record[column] for column in columns) for record in records + again
    )
    assert (landed.records, landed.repeated) == (70, sum(map(len, parts)) - 70)
    assert batches(lakehouse, "disorder") == landed.batches == list(range(1, len(landed.batches) + 1))


def test_key_value_and_headers_are_kept_byte_for_byte(
    lakehouse: Lakehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Schema blocks go to Spark apart from their values, as far as there is room for them."""
    block = '{"schema":{"type":"struct","name":"ä東","fields":[%s]},"payload":'
    values = [
        *(
            block % '"same"' + end
            for end in ('{"id":1}}', "null}", '{"payload":{"payload":1}}}', "", '"é\\u0000\U0001f600"} ')
        ),
        *(block % f'"{number}"' + "1.10}" for number in range(20)),
        '{"schema":{}}',
        '{"schema":',
        ' {"schema":1,"payload":2}',
        '{"payload":1,"schema":2}',
        '"payload":',
        "",
        None,
    ]
    headers = [{"key": "a", "value": "ä"}, {"key": "a", "value": None}]
    for room in (0, 200, 1 << 20):
        monkeypatch.setattr(chunks, "HEADS_BYTES", room)
        lines = [
            {"topic": "t", "offset": room + number, "key": value, "value": value, "headers": headers}
            for number, value in enumerate(values)
        ]
        path = tmp_path / f"{room}.jsonl"
        path.write_text(text(*lines))
        assert land(lakehouse, "verbatim", path).records == len(values)
        assert land(lakehouse, "verbatim", path.rename(tmp_path / "renamed.jsonl")).records == 0
        kept = lakehouse.sql(f"select key, value from bronze.verbatim where file = '{path.resolve()}' order by offset")
        assert kept == [(value, value) for value in values]
    assert lakehouse.sql(
        "select distinct transform(headers, h -> concat_ws('=', h.key, string(h.value))) from bronze.verbatim"
    ) == [(["a=ä", "a"],)]


def test_large_topics_have_data_files_of_their_own(
    lakehouse: Lakehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "FILE_BYTES", 10_000)
    sizes = {"a": 3, "b": 100, "c": 3, "d": 300, "e": 40}  # of the three large ones d takes several files
    records = [
        {"topic": topic, "offset": offset, "value": "x" * 100}
        for topic, size in sizes.items()
        for offset in range(size)
    ]
    Random(1).shuffle(records)
    path = tmp_path / "topics.jsonl"
    path.write_text(text(*records))
    land(lakehouse, "topics", path)

    files = lakehouse.sql(
        "select concat_ws('', sort_array(collect_set(topic))), count(*) from bronze.topics group by _file order by 1"
    )
    assert [topics for topics, _ in files] == ["ac", "b", "b", "d", "d", "d", "d", "d", "e"]
    assert max(rows for _, rows in files) <= 100


def test_growing_replaced_copied_and_empty_files_are_told_apart(lakehouse: Lakehouse, tmp_path: Path) -> None:
    path, whole = tmp_path / "events.jsonl", text(*({"n": n, "pad": "é" * 10} for n in range(4)))
    lines = whole.encode().splitlines(keepends=True)

    path.write_bytes(lines[0] + lines[1][:20])
    assert land(lakehouse, "files", path).notes == [f"{path}: 20 bytes at the end are {CUT}"]
    path.write_bytes(b"".join(lines[:3])[:-1])
    assert land(lakehouse, "files", path).records == 2
    path.write_bytes(whole.encode())
    assert land(lakehouse, "files", path) == Landed(records=1, batches=[3])
    assert bronze(lakehouse, "files", "line") == [1, 2, 3, 4]

    copy = tmp_path / "copy.jsonl"
    shutil.copy(path, copy)
    assert land(lakehouse, "files", copy) == Landed(
        notes=[f"{copy}: same content as {path}, which has landed; skipped"]
    )
    with path.open("a") as file:
        file.write('{"n":"more"}\n')
    rotated = tmp_path / "rotated.jsonl"
    shutil.copy(path, rotated)
    assert land(lakehouse, "files", tmp_path).records == 1
    assert land(lakehouse, "files", tmp_path) == Landed()
    with copy.open("a") as file:
        file.write('{"n":"of the copy"}\n')
    assert land(lakehouse, "files", tmp_path).records == 1

    path.write_text('{"n":"replaced"}\n')
    assert land(lakehouse, "files", path) == Landed(
        records=1,
        batches=[6],
        notes=[f"{path}: the file was replaced since it was landed; all of it is landed again"],
    )
    assert [json.loads(value)["n"] for value in bronze(lakehouse, "files", "value")] == [
        0,
        1,
        2,
        3,
        "more",
        "of the copy",
        "replaced",
    ]

    empty, half = tmp_path / "empty.jsonl", tmp_path / "half.jsonl"
    empty.touch()
    half.write_text('{"n":')
    assert land(lakehouse, "files", empty) == Landed(notes=[f"{empty}: the file is empty"])
    assert land(lakehouse, "files", half) == Landed(
        notes=[f"{half}: its first record, of 5 bytes so far, has no end: still being written, or cut off"]
    )

    packed = tmp_path / "packed"
    packed.write_bytes(gzip.compress(whole.encode() + b'{"n":4}\n{"n')[:-8])
    assert land(lakehouse, "files", packed).notes == [f"{packed}: 3 bytes at the end are {CUT}"]
    with half.open("w") as file:
        file.write('{"n":5}\n')
    assert land(lakehouse, "files", half).records == 1
    with half.open("a") as file:
        file.write('{"n":')
    assert land(lakehouse, "files", half).notes == [f"{half}: 5 bytes at the end are {CUT}"]


def test_an_edit_in_the_middle_of_a_large_file_is_seen_and_files_with_the_same_ends_are_two(
    lakehouse: Lakehouse, tmp_path: Path
) -> None:
    path, other = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    lines = [json.dumps({"n": n, "pad": "x" * 1000}) for n in range(200)]

    def changed(number: int, name: str) -> str:
        return text(*(line.replace("n", name, 1) if at == number else line for at, line in enumerate(lines)))

    path.write_text(text(*lines))
    os.utime(path, (1, 1))
    assert land(lakehouse, "large", path).records == 200
    path.write_text(changed(100, "m"))  # as long as before, and changed in the middle
    os.utime(path, (1, 1))
    assert land(lakehouse, "large", path).notes == [
        f"{path}: the file was replaced since it was landed; all of it is landed again"
    ]
    other.write_text(changed(100, "o"))
    assert land(lakehouse, "large", tmp_path).notes == []
    with path.open("w") as file:  # changed in the middle, and longer
        file.write(changed(100, "p") + text('{"n": 200}'))
    assert land(lakehouse, "large", path).records == 201
    names = [next(iter(json.loads(value))) for value in bronze(lakehouse, "large", "value")]
    assert [names.count(name) for name in "nmop"] == [4 * 199 + 2, 1, 1, 1]

    copy = tmp_path / "copy.jsonl"
    shutil.copy(other, copy)
    assert land(lakehouse, "large", copy).notes == [f"{copy}: same content as {other}, which has landed; skipped"]
    copy.write_text(changed(100, "q"))
    assert land(lakehouse, "large", tmp_path).records == 200
    assert lakehouse.sql("select count(distinct file) from bronze.large__files where file_digest like '% %'") == [(3,)]
    with path.open("a") as file:
        file.write(text('{"n": 201}'))
    assert land(lakehouse, "large", tmp_path).records == 1


def test_batches_that_others_land_meanwhile_are_none_that_were_taken_back(
    lakehouse: Lakehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the first the ledger does not tell, as its loader died; its lines would land again."""
    path, other = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    path.write_text(text(json.dumps({"bare": 1})))
    other.write_text(text(json.dumps({"bare": 2})))
    look = bronze_table.state
    waiting = [path, other]

    def look_before_the_others(*arguments: Any) -> Any:
        found = look(*arguments)
        others = waiting.copy()
        waiting.clear()
        for each in others:
            assert land(lakehouse, "overtaken", each).records == 1
            lakehouse.spark.sql("delete from bronze.overtaken__files where batch = 1")
        return found

    bronze_table.create(lakehouse.spark, "overtaken")  # which looks too, while nobody else may
    monkeypatch.setattr(bronze_table, "state", look_before_the_others)
    landed = land(lakehouse, "overtaken", path)
    assert (landed.batches, landed.notes) == ([], [])
    assert bronze(lakehouse, "overtaken", "value") == ['{"bare": 1}', '{"bare": 2}']


def test_a_rollback_while_a_loader_lands_is_seen(
    lakehouse: Lakehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its next commit would go on from what is no more there."""
    path = tmp_path / "a.jsonl"
    path.write_text(text(*(json.dumps({"bare": number}) for number in range(4))))
    monkeypatch.setattr(chunks, "CHUNK_BYTES", 1)  # a commit for each line
    rolled_back: list[Any] = []

    def say(_: str) -> None:
        snapshots = lakehouse.sql("select snapshot_id from bronze.reversed.snapshots order by committed_at")
        if len(snapshots) == 2 and not rolled_back:
            rolled_back.append(snapshots[0])
            lakehouse.spark.sql(f"call system.rollback_to_snapshot('bronze.reversed', {snapshots[0][0]})")

    landed = loader.land_files(lakehouse.spark, "reversed", [path], say)
    assert rolled_back and any("ends with batch 1, where 2 had landed" in note for note in landed.notes)
    assert bronze(lakehouse, "reversed", "value") == [json.dumps({"bare": number}) for number in range(4)]


def test_of_two_loaders_at_once_each_record_lands_once_in_batches_without_gaps(
    lakehouse: Lakehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, other = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    commit = loader._commit
    waiting: list[Path] = []

    def commit_after_the_other(*arguments: Any) -> Any:
        if waiting:
            assert land(lakehouse, "rivals", waiting.pop()).records == 2
        return commit(*arguments)

    monkeypatch.setattr(loader, "_commit", commit_after_the_other)
    for number in range(2):  # into a new table, and into one that has batches
        path.write_text(
            text(json.dumps({"bare": number}), created(10 * number, id=1), created(10 * number + 1, id=2)) + "{"
        )
        other.write_text(text(created(10 * number + 1, id=2), created(10 * number + 2, id=3)))
        waiting.append(other)
        landed = land(lakehouse, "rivals", path)
        assert (landed.records, landed.repeated, landed.batches) == (2, 1, [3 * number + 2])
        assert len(landed.notes) == 1 + number  # the half line; in the second round also that the file was replaced

        waiting.append(path)  # both land the same file
        path.write_text(text(created(10 * number + 5, id=5), json.dumps({"bare again": number})))
        assert land(lakehouse, "rivals", path).records == 0

    assert bronze(lakehouse, "rivals", "coalesce(cast(offset as string), value)") == sorted(
        [
            '{"bare": 0}',
            "0",
            "1",
            "2",
            "5",
            '{"bare again": 0}',
            '{"bare": 1}',
            "10",
            "11",
            "12",
            "15",
            '{"bare again": 1}',
        ]
    )
    assert batches(lakehouse, "rivals") == [1, 2, 3, 4, 5, 6]


def test_a_file_that_is_cut_while_it_is_read_hides_no_copy_of_it(
    lakehouse: Lakehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log is rotated: what it was is no file that has landed, though a digest was taken of the same content."""
    path, rotated = tmp_path / "x.jsonl", tmp_path / "x.jsonl.1"
    lines = [json.dumps({"bare": number}) for number in range(4)]
    path.write_text(text(*lines))
    from scripts.framing import read_records as read

    def read_what_is_cut(*arguments: Any) -> Iterator[Any]:
        for number, record in enumerate(read(*arguments)):
            yield record
            if number == 1:
                path.rename(rotated)
                path.write_text("")
                return

    monkeypatch.setattr(chunks, "read_records", read_what_is_cut)
    assert land(lakehouse, "rotated", path).records == 2
    monkeypatch.undo()
    land(lakehouse, "rotated", tmp_path)
    assert set(bronze(lakehouse, "rotated", "value")) == set(lines)
    assert land(lakehouse, "rotated", rotated) == Landed()


def test_content_that_has_landed_is_known_under_any_name_also_when_its_file_has_another_one_now(
    lakehouse: Lakehouse, tmp_path: Path
) -> None:
    path, archived = tmp_path / "latest.jsonl", tmp_path / "archive" / "1.jsonl"
    archived.parent.mkdir()
    first, second = (text(*({"bare": [state, number]} for number in range(2))) for state in (1, 2))
    for content in (first, second):
        path.write_text(content)
        assert land(lakehouse, "latest", path).records == 2
    for later in (archived, path):
        later.write_text(first)
        landed = land(lakehouse, "latest", tmp_path / "*")  # of a folder that a pattern matches, all that is below
        assert landed.records == 0 and all("same content as" in note for note in landed.notes) and landed.notes
    with path.open("a") as file:
        file.write(text({"bare": [1, 2]}))
    assert land(lakehouse, "latest", tmp_path / "*").records == 1
    assert len(bronze(lakehouse, "latest", "value")) == 5


def test_what_a_loader_notes_late_of_a_batch_that_was_taken_back_does_not_count(
    lakehouse: Lakehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It committed, bronze was rolled back, another loader came, and only then it wrote its row."""
    path, other = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    path.write_text(text({"bare": 1}))
    assert land(lakehouse, "late_row", path).records == 1
    other.write_text(text({"bare": 2}))
    write = ledger.write
    waiting: list[Any] = []

    def write_late(*arguments: Any) -> None:
        (write if waiting else lambda *given: waiting.append(given))(*arguments)

    monkeypatch.setattr(ledger, "write", write_late)
    assert land(lakehouse, "late_row", other).records == 1
    (first,) = lakehouse.sql("select snapshot_id from bronze.late_row.snapshots where summary['cdc-batch'] = '1'")
    lakehouse.spark.sql(f"call system.rollback_to_snapshot('bronze.late_row', {first[0]})")
    path.write_text(text({"bare": 1}, {"bare": 3}))
    land(lakehouse, "late_row", path)
    write(*waiting[0])
    land(lakehouse, "late_row", other)
    assert bronze(lakehouse, "late_row", "value") == [json.dumps({"bare": number}) for number in (1, 2, 3)]


def test_loader_that_dies_between_its_commits_loses_and_repeats_nothing(
    lakehouse: Lakehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bare values have no coordinates: only what is known of the file keeps them from landing twice."""
    path, other = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    write_ledger = ledger.write

    def die(*_: Any) -> None:
        raise KeyboardInterrupt

    def landing_dies() -> None:
        monkeypatch.setattr(ledger, "write", die)
        with pytest.raises(KeyboardInterrupt):
            land(lakehouse, "died", path)
        monkeypatch.setattr(ledger, "write", write_ledger)

    path.write_text(text('{"n":1}', "no record", '{"n":2}'))
    landing_dies()
    assert land(lakehouse, "died", path).records == 0

    path.write_text(text('{"n":1}', "no record", '{"n":2}', '{"n":3}'))
    landing_dies()
    other.write_text(text('{"n":4}'))
    assert land(lakehouse, "died", other).records == 1  # another loader is first to come after it
    assert land(lakehouse, "died", tmp_path).records == 0

    known = tmp_path / "known.jsonl"
    known.write_text(text(created(1, id=1)))
    assert land(lakehouse, "died", known).records == 1
    with path.open("a") as file:
        file.write(text('{"n":5}', created(2, id=2)))
    landing_dies()
    known.write_text(text(created(1, id=1), created(2, id=2)))
    assert land(lakehouse, "died", known).records == 0  # nothing is new in it: that is no word on the batch before
    assert land(lakehouse, "died", path).records == 0

    monkeypatch.setattr(chunks, "CHUNK_BYTES", 5)  # every line a commit
    with other.open("a") as file:
        file.write(text('{"n":6}', '{"n":7}', '{"n":8}'))
    assert land(lakehouse, "died", tmp_path).batches == [6, 7, 8]
    assert land(lakehouse, "died", tmp_path) == Landed()

    assert bronze(lakehouse, "died", "coalesce(cast(offset as string), value)") == [
        None, "1", "2", *(f'{{"n":{n}}}' for n in range(1, 9))
    ]  # fmt: skip
    assert batches(lakehouse, "died") == [1, 2, 3, 4, 5, 6, 7, 8]

    monkeypatch.undo()
    with path.open("a") as file:
        file.write(text('{"n":9}'))
    landing_dies()
    path.write_text(text(*(f'{{"n":{n}}}' for n in range(10, 400))))  # another file stands there before anybody looked
    assert land(lakehouse, "died", path).records == 390
    assert land(lakehouse, "died", tmp_path).records == 0

    def deletes(offset: int) -> str:
        return text(*({"topic": "t", "offset": offset + n, "key": "k", "value": None} for n in range(3)))

    path = tmp_path / "open.jsonl"
    path.write_text('{"n":1000}\n{"n":1001}')
    landing_dies()
    path.write_text('{"n":1000}\n{"n":1001}\r\n{"n":1002}\n')  # the last line has got its line break since
    assert land(lakehouse, "died", path) == Landed(1, batches=[batches(lakehouse, "died")[-1]])

    path = tmp_path / "newest.jsonl"
    path.write_text(deletes(100))
    landing_dies()
    path.write_text(deletes(200))  # as many bytes, and the last record is the same one but for its place
    assert land(lakehouse, "died", path).records == 3


def test_good_lines_are_loaded_and_bad_ones_rejected_with_their_reasons(lakehouse: Lakehouse, tmp_path: Path) -> None:
    path = (tmp_path / "mixed.jsonl").resolve()
    bad = {
        "half": ('{"op":', "invalid_json"),
        "trailing": ('{"topic":"t","offset":5,"value":null} {"more":1}', "invalid_json"),
        "no object": ("[1, 2]", "not_an_object"),
        "offset": ('{"topic":"t","offset":-5,"value":null}', "invalid_offset"),
        "partition": ('{"topic":"t","partition":2147483648,"offset":5,"value":null}', "invalid_partition"),
        "headers": ('{"topic":"t","offset":5,"headers":7,"value":null}', "invalid_headers"),
        "deep": ('{"a":' * 2000 + "1" + "}" * 2000, "nested_too_deep"),
        "surrogate": ('{"topic":"t","offset":5,"value":"\\ud800"}', "invalid_json"),
        "latin": ('{"topic":"t","offset":5,"value":"\udcff"}', "not_utf8"),
    }
    lines: list[dict[str, Any] | str] = []
    for number, (line, _) in enumerate(bad.values(), 1):
        lines += [created(number, id=number), line]
    path.write_bytes(b"\xef\xbb\xbf" + text(*lines).encode("utf-8", "surrogateescape"))
    lakehouse.run("mixed_lines", path)

    assert lakehouse.rows("mixed_lines.orders") == [{"id": number} for number in range(1, len(bad) + 1)]
    assert lakehouse.rejected("mixed_lines") == sorted(
        (f"{path}:{2 * number}", reason) for number, (_, reason) in enumerate(bad.values(), 1)
    )
    assert bronze(lakehouse, "mixed_lines", "raw") == [None] * len(bad) + sorted(
        line.encode("utf-8", "surrogateescape") for line, _ in bad.values()
    )


def test_values_that_are_no_usable_event_are_rejected_with_their_reasons(lakehouse: Lakehouse) -> None:
    times = {"at": 253402300799999999, "instant": "9999-12-31T23:59:59.999999Z", "ratio": 1.7976931348623157e308}
    good = {"id": 1, "small": -32768, "price": "AYaf", "day": 19000, **times, "payload": '"payload":{}}'}
    row: dict[str, Any] = {"id": 2, "small": 1, "price": "ew==", "day": 1, **times, "payload": "x"}
    usual = event("c", 99, row)

    def value(new: str | None, key: str | None = usual["key"]) -> dict[str, Any]:
        return {**usual, "key": key, "value": new}

    def envelope(**members: Any) -> dict[str, Any]:
        return value(json.dumps({**json.loads(usual["value"]), **members}))

    def replaced(old: str, new: str) -> dict[str, Any]:
        assert old in usual["value"]
        return value(usual["value"].replace(old, new))

    def keyed(key: str) -> dict[str, Any]:
        return envelope(op="d", before=None, after=None) | {"key": key}

    deep = '{"a":' * 2000 + "1" + "}" * 2000
    source = json.loads(usual["value"])["source"]
    bad: list[tuple[dict[str, Any], str | None]] = [
        (value('{"id":7,"name":"no envelope"}'), "not_an_envelope"),
        (value("{}"), "not_an_envelope"),
        (value("[]"), "not_an_envelope"),
        (value('{"op":"c"'), "invalid_json"),
        (value(""), None),
        (value("null"), None),
        (value("no JSON"), "invalid_json"),
        (value(usual["value"] + " trailing"), "invalid_json"),
        (value(usual["value"] + usual["value"]), "invalid_json"),
        (with_schema(value(usual["value"] + "}}")), "invalid_json"),
        (value(None), None),
        (envelope(op="x"), "unknown_operation"),
        (envelope(op=None), "not_an_envelope"),
        (envelope(source={**source, "lsn": None}), "no_position"),
        (envelope(source={**source, "lsn": "0/16B3748"}), "no_position"),
        (envelope(after=None), "no_after_image"),
        (envelope(after={**row, "id": None}), "no_key"),
        (envelope(after={"small": 1}), "no_key"),
        (envelope(after={**row, "id": "one"}), "value_of_wrong_type"),
        (envelope(after={**row, "small": 32768}), "value_of_wrong_type"),
        (envelope(after={**row, "small": 1.5}), "value_of_wrong_type"),
        (envelope(after={**row, "small": 10**30}), "value_of_wrong_type"),
        (envelope(after={**row, "price": "Acn//w=="}), "value_not_exact: price"),
        (envelope(after={**row, "price": "no base64"}), "value_not_exact: price"),
        (envelope(after={**row, "price": 1.234}), "value_not_exact: price"),
        (envelope(after={**row, "day": 2932897}), "value_not_exact: day"),
        (envelope(after={**row, "day": -719163}), "value_not_exact: day"),
        (envelope(after={**row, "day": 2932897, "price": "Acn//w=="}), "value_not_exact: price, day"),
        (envelope(after={**row, "at": 253402300800000000}), "value_not_exact: at"),
        (envelope(after={**row, "at": 2**63}), "value_of_wrong_type"),
        (envelope(after={**row, "instant": "infinity"}), "value_not_exact: instant"),
        (envelope(after={**row, "instant": "2024-01-01T00:00:00.1234567Z"}), "value_not_exact: instant"),
        (replaced('"ratio": 1.7976931348623157e+308', '"ratio": 1e309'), "value_not_exact: ratio"),
        (value(usual["value"][:-1] + f', "more": {deep}}}'), "invalid_json"),
        (replaced('"payload": "x"', f'"payload": {deep}'), "invalid_json"),
        (envelope(op="u", before={**row, "id": 3}), "key_changed_in_update"),
        *(
            (keyed(key), "no_key")
            for key in ("null", "{}", "[2]", '"two"', '{"id":null}', '{"id":2', '{"key":2}', "2.5", deep)
        ),
        (envelope(op="d", before=None, after=None) | {"key": None}, "no_key"),
        (envelope(op="t", after=None), "truncate_with_key"),
    ]
    records = [with_schema(event("c", 1, good))]
    records += [{**record, "offset": number} for number, (record, _) in enumerate(bad, 100)]
    records.append(event("c", 900, {"id": 4, **dict.fromkeys(row.keys() - {"id"})}))
    lakehouse.run("envelopes", records)

    rejected = {int(name.rsplit("/", 1)[1]): reason for name, reason in lakehouse.rejected("envelopes")}
    assert rejected == {number: reason for number, (_, reason) in enumerate(bad, 100) if reason}
    assert lakehouse.sql(
        "select id, small, cast(price as string), cast(day as string), cast(at as string), cast(instant as string),"
        " ratio, payload from envelopes.orders order by id"
    ) == [
        (
            1,
            -32768,
            "999.99",
            "2022-01-08",
            *["9999-12-31 23:59:59.999999"] * 2,
            1.7976931348623157e308,
            '"payload":{}}',
        ),
        (4, *[None] * 7),
    ]

    looks_like_a_heartbeat = value('{"before":null,"after":{"id":7},"ts_ms":1}')
    lakehouse.land("envelopes", [{**looks_like_a_heartbeat, "offset": 901}, {**value('{"ts_ms":1}'), "offset": 902}])
    assert lakehouse.dbt("run", "--select", "source:bronze.envelopes+").success
    assert {name: reason for name, reason in lakehouse.rejected("envelopes") if "/90" in name} == {
        "shop.public.orders/0/901": "not_an_envelope"
    }


@pytest.mark.soak
def test_a_value_of_30_mb_is_a_value(lakehouse: Lakehouse) -> None:
    lakehouse.run("big", [created(10, id=1, note="é" * (15 << 20)), created(11, id=2, note="small")])

    assert lakehouse.sql("select id, octet_length(note), left(note, 1) from big.orders order by id") == [
        (1, 30 << 20, "é"),
        (2, 5, "s"),
    ]
    assert lakehouse.rejected("big") == []


def test_a_column_is_found_wherever_it_first_comes(lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without schema blocks the types come from a sample of the events; the columns come from all of them."""
    from scripts import observe

    monkeypatch.setattr(observe, "SAMPLE_ROWS", 2)
    records = [created(number, id=number, note="a") for number in range(1, 9)]
    lakehouse.run("late_column", [*records, created(9, id=9, note="b", colour="red"), deleted(10, id=8)])

    assert lakehouse.rows("late_column.orders")[-1] == {"id": 9, "note": "b", "colour": "red"}


def test_a_table_or_column_is_found_behind_any_number_of_alike_events(
    lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A router gives the events of two tables one topic and shape; flattened rows have no image, Huawei's `data`."""
    from scripts import observe

    monkeypatch.setattr(observe, "SAMPLE_ROWS", 2)
    tables = ["north"] * 5 + ["south"]
    routed = [event("c", number, {"id": number}, table=table) for number, table in enumerate(tables, 1)]
    for one in routed:  # a statement, or Vitess's position, may hold braces
        one["value"] = one["value"].replace('"source": {', '"source": {"query": "}", ')
    lakehouse.run("alike_tables", [{**one, "topic": "routed"} for one in routed])
    assert lakehouse.rows("alike_tables.south") == [{"id": 6}]
    names = ["north"] * 5 + ["south", 'a"b', 'a"c', "\\", "\\\\"]  # as Debezium writes them, without spaces
    routed = [event("c", number, {"id": number}, table=name) for number, name in enumerate(names, 1)]
    compact = [json.dumps(json.loads(one["value"]), separators=(",", ":")) for one in routed]
    lakehouse.land(
        "alike_names", [{**one, "topic": "r", "value": text} for one, text in zip(routed, compact, strict=True)]
    )
    found = {event.value for event in observe.Bronze(lakehouse.spark, "alike_names").sample(0, set())}
    assert set(compact[4:]) - found == {compact[4]} and compact[0] in found

    rows = [{"id": number, "note": "a", "__op": "c", "__deleted": "false"} for number in range(1, 7)]
    rows[-1]["colour"] = "red"
    places = [
        {"topic": "flat", "partition": 0, "offset": row["id"], "key": json.dumps({"id": row["id"]})} for row in rows
    ]
    lakehouse.run("alike_rows", [{**place, "value": json.dumps(row)} for place, row in zip(places, rows, strict=True)])
    assert lakehouse.rows("alike_rows.flat")[-1] == {"id": 6, "note": "a", "colour": "red"}
    bronze, with_block = observe.Bronze(lakehouse.spark, "alike_rows"), {"schema": {"type": "struct"}, "payload": None}
    assert not bronze.has_tombstones({"flat"})
    lakehouse.land("alike_rows", [{**places[0], "offset": 7, "value": json.dumps(with_block)}])
    assert bronze.has_tombstones({"flat"}) and not bronze.has_tombstones({"other"})

    described = [{"type": "int32", "field": "id"}, {"type": "string", "field": "__table"}]
    block = {"type": "struct", "fields": described, "name": "joined.Value"}  # of a router that gives all one schema
    of_tables = ["north"] * 5 + ["south"]
    joined = [
        {"id": id, "source": "web", "__table": table, "__deleted": "false"} for id, table in enumerate(of_tables, 1)
    ]
    joined_texts = [json.dumps({"schema": block, "payload": row}, separators=(",", ":")) for row in joined]
    lakehouse.land("alike_joined", [{**place, "value": text} for place, text in zip(places, joined_texts, strict=True)])
    assert len(observe.Bronze(lakehouse.spark, "alike_joined").sample(0, set())) == 2

    told = {
        "DATA_STORE": "POSTGRESQL",
        "SEG_OWNER": "s",
        "TABLE_NAME": "t",
        "OPERATION": "INSERT",
        "message_version": "1.0",
    }
    images = [{"id": number, "note": "a"} for number in range(1, 7)]
    images[-1]["colour"] = "red"
    values = [
        {
            **told,
            "transaction": {"properties": [{"name": "lsn", "value": number}]},
            "unique": {"id": number},
            "data": image,
        }
        for number, image in enumerate(images, 1)
    ]
    lakehouse.run(
        "alike_cdl", [{**place, "value": json.dumps(value)} for place, value in zip(places, values, strict=True)]
    )
    assert lakehouse.rows("alike_cdl.t")[-1] == images[-1]

    fields = [{"type": "int32", "field": "id"}, {"type": "string", "field": "note"}]
    block = {"type": "struct", "fields": [{"type": "struct", "optional": True, "fields": fields, "field": "data"}]}
    for value, table in zip(values, tables, strict=True):
        value |= {"TABLE_NAME": table, "data": {"id": 1, "note": table}, "unique": {"id": 1}}
    texts = [json.dumps({"schema": block, "payload": value}, separators=(",", ":")) for value in values]
    lakehouse.run("alike_blocks", [{**place, "value": text} for place, text in zip(places, texts, strict=True)])
    assert lakehouse.rows("alike_blocks.south") == [{"id": 1, "note": "south"}]


def test_a_model_for_another_connector_rejects_the_events_until_it_is_corrected(lakehouse: Lakehouse) -> None:
    """The names by which it knows its table are in none of them: without a reason they would count as others'."""
    events = [created(10, id=1), deleted(11, id=1), truncated(12), created(13, id=2)]
    lakehouse.land("by_hand", events)
    lakehouse.scaffold("by_hand")
    model = lakehouse.project / "models" / "staging" / "by_hand" / "stg_by_hand__orders.sql"
    declaration = model.read_text()
    for connector in ("mysql", "generic"):
        model.write_text(declaration.replace("'postgresql'", f"'{connector}'"))
        lakehouse.run("by_hand", [])
        assert lakehouse.rejected("by_hand") == [
            (f"shop.public.orders/0/{n}", "other_connector") for n in (10, 11, 12, 13)
        ]
        assert lakehouse.rows("by_hand.orders") == []
    assert [*lakehouse.failing("by_hand__event_counts")] == ["rejected_share by_hand__event_counts"]
    texts = lakehouse.sql("select value from monitoring.by_hand__rejected_events order by event_id")
    assert texts == [(record["value"],) for record in events]

    model.write_text(declaration)
    lakehouse.run("by_hand", [])
    assert lakehouse.rejected("by_hand") == []
    assert lakehouse.failing("by_hand__event_counts") == {}
    assert lakehouse.rows("by_hand.orders") == [{"id": 2}]
    counted = lakehouse.sql("select kind, sum(events) from monitoring.by_hand__event_counts group by 1 order by 1")
    assert counted == [("change", 3), ("truncate", 1)]
