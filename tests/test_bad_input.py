"""Input as it should not be: files that come again, half, damaged or hostile. What is good in them is loaded."""

import json
import shutil
from pathlib import Path
from random import Random
from typing import Any

import pytest
from conftest import Lakehouse
from event_factory import created, deleted, event, updated

from scripts import loader
from scripts.errors import LakehouseError


def text(*records: dict[str, Any] | str) -> str:
    """Records, or lines that stand for themselves, as a file."""
    lines = [record if isinstance(record, str) else json.dumps(record, ensure_ascii=False) for record in records]
    return "".join(line + "\n" for line in lines)


def bronze(lakehouse: Lakehouse, system: str, columns: str = "offset") -> list[Any]:
    rows = lakehouse.sql(f"select {columns} from bronze.{system} order by {columns}")
    return [row[0] if len(row) == 1 else row for row in rows]


def batches(lakehouse: Lakehouse, system: str) -> list[int]:
    return [row[0] for row in lakehouse.sql(f"select distinct batch from bronze.{system} order by batch")]


def land(lakehouse: Lakehouse, system: str, events: Path | str) -> loader.Landed:
    return loader.land_files(lakehouse.spark, system, loader.event_files(str(events)))


# Landing exactly once


def test_what_has_landed_does_not_land_again(lakehouse: Lakehouse, tmp_path: Path) -> None:
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    first.write_text(text(created(10, id=1), created(11, id=2)))
    second.write_text(text(created(12, id=3)))

    assert land(lakehouse, "once", first).records == 2
    assert land(lakehouse, "once", first) == loader.Landed()  # the same file
    assert land(lakehouse, "once", tmp_path).records == 1  # a folder with it and another
    assert land(lakehouse, "once", tmp_path / "*.jsonl") == loader.Landed()  # a pattern of the same
    assert land(lakehouse, "once", f"{tmp_path}/../{tmp_path.name}/a.jsonl") == loader.Landed()

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
    monkeypatch.setattr(loader, "CHUNK_BYTES", 4000)
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
    landed = loader.Landed()
    for number, part in enumerate(parts):
        path = tmp_path / f"{number}.jsonl"
        path.write_text(text(*part))
        done = land(lakehouse, "disorder", path)
        landed = loader.Landed(landed.records + done.records, landed.repeated + done.repeated, 0, landed.batches + done.batches)
    assert done == loader.Landed(repeated=len(records))

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
        *(block % '"same"' + end for end in ('{"id":1}}', "null}", '{"payload":{"payload":1}}}', "", '"é\\u0000\U0001f600"} ')),
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
        monkeypatch.setattr(loader, "HEADS_BYTES", room)
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


def test_large_topics_have_data_files_of_their_own(lakehouse: Lakehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "FILE_BYTES", 10_000)
    sizes = {"a": 3, "b": 100, "c": 3, "d": 300, "e": 40}  # of the three large ones d takes several files
    records = [{"topic": topic, "offset": offset, "value": "x" * 100} for topic, size in sizes.items() for offset in range(size)]
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
    assert land(lakehouse, "files", path).notes == [f"{path}: 20 bytes at the end are no complete record yet"]
    path.write_bytes(b"".join(lines[:3])[:-1])
    assert land(lakehouse, "files", path).records == 2
    path.write_bytes(whole.encode())
    assert land(lakehouse, "files", path) == loader.Landed(records=1, batches=[3])
    assert bronze(lakehouse, "files", "line") == [1, 2, 3, 4]

    copy = tmp_path / "copy.jsonl"
    shutil.copy(path, copy)
    assert land(lakehouse, "files", copy) == loader.Landed(notes=[f"{copy}: same content as {path}, which has landed; skipped"])

    path.write_text('{"n":"replaced"}\n')
    assert land(lakehouse, "files", path) == loader.Landed(
        records=1,
        batches=[4],
        notes=[f"{path}: the file was replaced since it was landed; all of it is landed again"],
    )
    assert [json.loads(value)["n"] for value in bronze(lakehouse, "files", "value")] == [0, 1, 2, 3, "replaced"]

    empty, half = tmp_path / "empty.jsonl", tmp_path / "half.jsonl"
    empty.touch()
    half.write_text('{"n":')
    assert land(lakehouse, "files", empty) == loader.Landed(notes=[f"{empty}: the file is empty"])
    assert land(lakehouse, "files", half) == loader.Landed(notes=[f"{half}: no complete line yet"])


def test_missing_files_are_an_error_that_says_what_was_given(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / ".hidden").touch()
    with pytest.raises(LakehouseError, match=r"EVENTS=.*/folder: the folder holds no files"):
        loader.event_files(str(tmp_path / "folder"))
    for missing in ("missing.jsonl", "*.jsonl", "folder/**/*.jsonl"):
        with pytest.raises(LakehouseError, match="there is no such file, folder or match"):
            loader.event_files(str(tmp_path / missing))


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
        path.write_text(text(json.dumps({"bare": number}), created(10 * number, id=1), created(10 * number + 1, id=2)) + "{")
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


def test_loader_that_dies_between_its_commits_loses_and_repeats_nothing(
    lakehouse: Lakehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bare values have no coordinates: only what is known of the file keeps them from landing twice."""
    path, other = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    write_ledger = loader._write_ledger

    def die(*_: Any) -> None:
        raise KeyboardInterrupt

    def landing_dies() -> None:
        monkeypatch.setattr(loader, "_write_ledger", die)
        with pytest.raises(KeyboardInterrupt):
            land(lakehouse, "died", path)
        monkeypatch.setattr(loader, "_write_ledger", write_ledger)

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

    monkeypatch.setattr(loader, "CHUNK_BYTES", 5)  # every line a commit
    with other.open("a") as file:
        file.write(text('{"n":6}', '{"n":7}', '{"n":8}'))
    assert land(lakehouse, "died", tmp_path).batches == [6, 7, 8]
    assert land(lakehouse, "died", tmp_path) == loader.Landed()

    assert bronze(lakehouse, "died", "coalesce(cast(offset as string), value)") == [
        None, "1", "2", *(f'{{"n":{n}}}' for n in range(1, 9))
    ]  # fmt: skip
    assert batches(lakehouse, "died") == [1, 2, 3, 4, 5, 6, 7, 8]


# Lines and envelopes


def test_good_lines_are_loaded_and_bad_ones_rejected_with_their_reasons(lakehouse: Lakehouse, tmp_path: Path) -> None:
    path = (tmp_path / "mixed.jsonl").resolve()
    bad = {
        "half": ('{"op":', "invalid_json"),
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
    path.write_bytes(text(*lines).encode("utf-8", "surrogateescape"))
    lakehouse.run("mixed", path)

    assert lakehouse.rows("mixed.orders") == [{"id": number} for number in range(1, len(bad) + 1)]
    assert lakehouse.rejected("mixed") == sorted(
        (f"{path}:{2 * number}", reason) for number, (_, reason) in enumerate(bad.values(), 1)
    )
    assert bronze(lakehouse, "mixed", "raw") == [None] * len(bad) + sorted(
        line.encode("utf-8", "surrogateescape") for line, _ in bad.values()
    )


FIELDS: list[dict[str, Any]] = [
    {"type": "int32", "field": "id"},
    {"type": "int16", "field": "small"},
    {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "field": "price",
     "parameters": {"scale": "2", "connect.decimal.precision": "5"}},
    {"type": "int32", "name": "io.debezium.time.Date", "field": "day"},
    {"type": "string", "field": "payload"},
]  # fmt: skip


def with_schema(record: dict[str, Any], fields: list[dict[str, Any]] = FIELDS) -> dict[str, Any]:
    """The record as JsonConverter writes it with `schemas.enable`."""
    schema = {"type": "struct", "fields": [{"type": "struct", "fields": fields, "field": "after"}]}
    value = f'{{"schema":{json.dumps(schema)},"payload":{record["value"]}}}'
    return {**record, "value": value}


def test_values_that_are_no_usable_event_are_rejected_with_their_reasons(lakehouse: Lakehouse) -> None:
    good = {"id": 1, "small": -32768, "price": "AYaf", "day": 19000, "payload": '"payload":{}}'}
    row: dict[str, Any] = {"id": 2, "small": 1, "price": "ew==", "day": 1, "payload": "x"}
    usual = event("c", 99, row)

    def value(new: str | None, key: str | None = usual["key"]) -> dict[str, Any]:
        return {**usual, "key": key, "value": new}

    def envelope(**members: Any) -> dict[str, Any]:
        return value(json.dumps({**json.loads(usual["value"]), **members}))

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
        (envelope(op="u", before={**row, "id": 3}), "key_changed_in_update"),
        (envelope(op="d", before=None, after=None) | {"key": None}, "no_key"),
        (envelope(op="t", after=None), "truncate_with_key"),
    ]
    records = [with_schema(event("c", 1, good))]
    records += [{**record, "offset": number} for number, (record, _) in enumerate(bad, 100)]
    records.append(event("c", 900, {**row, "id": 4, "small": None, "price": None, "day": None, "payload": None}))
    lakehouse.run("envelopes", records)

    rejected = {int(name.rsplit("/", 1)[1]): reason for name, reason in lakehouse.rejected("envelopes")}
    assert rejected == {number: reason for number, (_, reason) in enumerate(bad, 100) if reason}
    assert lakehouse.sql(
        "select id, small, cast(price as string), cast(day as string), payload from envelopes.orders order by id"
    ) == [
        (1, -32768, "999.99", "2022-01-08", '"payload":{}}'),
        (4, None, None, None, None),
    ]


# Names

HOSTILE = [
    "a.b",
    "back`tick``s",
    "quo\"te's",
    "with spaces  ",
    "ünï😀",
    "select",
    "from",
    "'; drop table x; --",
    "../x",
    "back\\slash\\n",
    "a,b",
    "$.a[0]",
    "{braces}",
    "%s%%",
    "#hash: - [x]",
]
TABLES = ["a.b", "a`b", "'; drop table x; --", '../ünï😀 "\\n']


def test_hostile_names_and_values_are_only_names_and_values(lakehouse: Lakehouse) -> None:
    values = [*HOSTILE, "{{ 1 }}", "{% set x = 1 %}", "{# x #}", "line\nbreak\r\t\x00", "\\u0041", "null", ""]
    records, expected = [], []
    for number, table in enumerate(TABLES):
        row = {"id": number, **{name: values[(number + at) % len(values)] for at, name in enumerate(HOSTILE)}}
        records.append(event("c", 10 + number, row, table=table))
        expected.append(row)
    key = {name: f"{name}{{{{ 1 }}}}" for name in HOSTILE}
    records.append(event("c", 50, {**key, "note": "{{ 1 }}"}, key, table="keyed by all"))
    records.append(event("c", 51, {**key, "note": "gone", "ünï😀": "other"}, {**key, "ünï😀": "other"}, table="keyed by all"))
    records.append(event("d", 52, None, {**key, "ünï😀": "other"}, table="keyed by all"))
    records.append(event("c", 60, {"id": 1, "a": 2}, table="{{ 1 }}"))
    records.append(event("c", 61, {"id": 1, "{% raw %}": 2}, table="marked column"))
    records.append(event("c", 62, {"id": 1, "Name": "a", "name": "b"}, table="twice"))
    done = lakehouse.run("hostile", records)

    problems = {
        "{{ 1 }}": "the name '{{ 1 }}' holds marks of Jinja, which no dbt project can name",
        "marked column": "the name '{% raw %}' holds marks of Jinja, which no dbt project can name",
        "twice": "columns 'Name' and 'name' differ in case only, which Spark cannot tell apart",
    }
    for table, problem in problems.items():
        assert f"public.{table}: {problem}; no model was written" in done.notes
    from scripts.scaffold import declared_tables  # not before the project fixture has said where the project is

    declared = declared_tables("hostile", lakehouse.project / "models").values()
    relations = {table.table.identity[-1]: table.relation for table in declared}
    assert set(relations) == {*TABLES, "keyed by all"}
    for row, table in zip(expected, TABLES, strict=True):
        assert lakehouse.rows(f"hostile.{relations[table]}") == [row], table
    assert lakehouse.rows(f"hostile.{relations['keyed by all']}") == [{**key, "note": "{{ 1 }}"}]
    assert lakehouse.rejected("hostile") == []

    lakehouse.run("hostile", [event("u", 70, {**expected[0], "a.b": "new"}, table=TABLES[0])])
    assert lakehouse.rows(f"hostile.{relations[TABLES[0]]}") == [{**expected[0], "a.b": "new"}]


def test_columns_named_as_spark_hides_its_secrets_are_columns(lakehouse: Lakehouse) -> None:
    """Spark shows a table property that has one of these words as `*********(redacted)`."""
    row = {"id": 1, "url": "a", "password": "b", "secret": "c", "token": "d", "access_key": "e"}
    lakehouse.run("secrets", [created(10, **row)])
    lakehouse.run("secrets", [updated(20, **{**row, "url": "new"})])

    assert lakehouse.rows("secrets.orders") == [{**row, "url": "new"}]


def test_events_of_another_connector_than_the_one_named_are_refused(lakehouse: Lakehouse) -> None:
    lakehouse.land("mistaken", [created(10, id=1), updated(11, id=1), deleted(12, id=1)])
    with pytest.raises(LakehouseError, match=r"CONNECTOR=mysql: the events of topic 'shop.public.orders' are of connector"):
        lakehouse.scaffold("mistaken", "mysql")

    foreign = created(10, id=1)
    foreign["value"] = foreign["value"].replace('"postgresql"', '"db2"')
    lakehouse.land("foreign", [foreign])
    with pytest.raises(LakehouseError, match=r"of connector 'db2'; expected one of postgresql, mysql, mariadb"):
        lakehouse.scaffold("foreign")
