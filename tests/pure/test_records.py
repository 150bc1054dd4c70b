"""What is read from a file of Kafka records, and what a line that is none says of itself."""

import base64
import bz2
import gzip
import hashlib
import io
import json
import os
import random
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from scripts.chunks import chunks
from scripts.errors import LakehouseError
from scripts.framing import read_records
from scripts.ledger import Ledger
from scripts.records import NotARecord, Record, SchemaBlocks, parse_line
from scripts.taken import Taken, described, file_digest, is_unchanged, text_hash, times

Headers = list[tuple[str, bytes | None]] | None


def read(path: Path, content: str | bytes, taken: Taken | None = None) -> list[Record]:
    """The records of a file that holds `content`."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(read_records(path, taken or Taken()))


def zstd(content: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(content)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "events.jsonl"


def test_a_schema_block_is_left_out_of_the_value_that_begins_with_it_and_of_nothing_else(file: Path) -> None:
    """Whatever stands in a line: with the block, the record is that of the line alone."""
    block = '{"schema":{"name":"ä\\n"},"payload":'
    value = json.dumps(block + '{"op":"c"}}', ensure_ascii=False)
    other = json.dumps(block + '"\\\\"}', ensure_ascii=False)

    def of(*members: str, topic: str = '"topic":"t","offset":1,') -> str:
        return "{" + topic + ",".join(members) + "}"

    known = of(f'"value":{value}')
    lines = [
        (known, block),
        (f"{known}\n", block),
        (of(f'"value":{other}'), block),
        (of(f'"value": {value}'), ""),  # it is known as it stands in the line
        (of(f'"payload":{value}'), ""),
        (of(f'"headers":[{{"key":"a","value":{value}}}]', '"value":"{}"'), ""),
        (of(f'"value":{value}', '"value":"{}"'), ""),
        (of('"value":"{}"', f'"value":{value}'), ""),
        (of(f'"key":{{"value":{value}}}', '"value":null'), ""),
        (of(f'"value":{value}', '"__deleted":"false"'), ""),
        (of(f'"value":{value}', topic='"topic":"t",'), ""),
        (of(f'"value":{value}', topic=""), ""),
        (known[:-1], ""),
        (known[:-2], ""),
        (f"{{{known}", ""),
        (f"[{known}]", ""),
        (value, ""),
    ]

    def parsed(line: str, blocks: SchemaBlocks | None) -> Any:
        try:
            return parse_line(line.encode(), 1, 1, blocks)
        except NotARecord as problem:
            return str(problem)

    for line, left_out in lines:
        blocks = SchemaBlocks()
        assert parsed(known, blocks) == parsed(known, None)  # what has not been seen is not left out
        found = parsed(line, blocks)
        if left_out:
            assert found.block == left_out
            found = found._replace(value=left_out + found.value, block="")
        assert found == parsed(line, None), line
    file.write_text(f"{known}\n" * 3)
    (chunk,) = chunks([file], Ledger({}, {}, {}, 0, 0), [])
    assert (chunk.records.num_rows, chunk.repeated) == (1, 2), "with the block or without, it is the same value"
    without_payload = json.dumps('{"schema":{}}')
    line = of(f'"headers":[{{"key":"a","value":{without_payload}}}]', f'"value":{value}')
    assert parsed(line, SchemaBlocks()) == parsed(line, None)


# Forms


def test_record_with_text_key_and_value_has_all_its_members(file: Path) -> None:
    line = json.dumps(
        {
            "topic": "shop.public.orders",
            "partition": 3,
            "offset": 2**63 - 1,
            "timestamp": 1700000000123,
            "headers": [{"key": "trace", "value": "ä"}],
            "key": '{"id": 1.10}',
            "value": '{"op" : "c"}\n',
        },
        ensure_ascii=False,
    )

    assert read(file, line + "\n") == [
        Record(
            topic="shop.public.orders",
            partition=3,
            offset=2**63 - 1,
            timestamp=1700000000123,
            key='{"id": 1.10}',
            value='{"op" : "c"}\n',
            headers=[("trace", "ä".encode())],
            line=1,
            end=len(line.encode()) + 1,
        )
    ]


def test_kcat_record_is_read(file: Path) -> None:
    line = (
        '{"topic":"t","partition":0,"offset":7,"tstype":"create","ts":1700000000123,"broker":1,'
        '"headers":["a","1","b",null],"key":null,"payload":"{}"}\n'
    )

    assert read(file, line) == [Record("t", 0, 7, 1700000000123, None, "{}", [("a", b"1"), ("b", None)], 1, len(line))]


@pytest.mark.parametrize(
    "text",
    [
        '{"price":1.10,"big":1e2,"wide":123456789012345678901234567890,"minus":-0.0,"exact":0.30000000000000000001}',
        '{ "a" :1 ,\t"b": [ 1,2 ,{ } ] }',
        r'{"a":"\u00e9\u00E9\/\ud83d\ude00 é 😀 \" } ] , \\"}',
        '{"a":1,"a":2,"A":3}',
        '{"value":{"key":{"value":"}"}},"key":","}',
        '{"\\u0061":1}',
        "[1.0,[],{}]",
        "1.10",
        "1e2",
        "-0",
        "true",
        "false",
        "{}",
        "{" + '"a":{' * 400 + "}" * 401,
    ],
)
def test_nested_json_is_kept_byte_for_byte(file: Path, text: str) -> None:
    for line in (
        f'{{"topic":"t","offset":1,"key":{text},"value":{text}}}\n',
        f' {{ "value" : {text} , "offset" : 1 , "topic" : "t" , "key" :\t{text} }} \r\n',
        f'{{"topic":"t","partition":0,"offset":1,"key":{text},"payload":{text}}}\n',
        f'{{"topic":"t","offset":1,"k\\u0065y":{text},"value":0,"v\\u0061lue":{text}}}\n',
    ):
        (record,) = read(file, line)
        assert (record.error, record.key, record.value) == (None, text, text)


def test_text_beside_nested_json_is_taken_as_it_is_meant(file: Path) -> None:
    assert [
        (record.key, record.value)
        for record in read(
            file,
            '{"topic":"t","offset":1,"key":"a","value":{"b":1.0}}\n'
            '{"topic":"t","offset":2,"key":{"a":1.0},"value":"b"}\n'
            '{"topic":"t","offset":3,"key":{"a":1.0},"value":null}\n'
            '{"topic":"t","offset":4,"value":{"b":1.0}}\n'
            '{"topic":"t","offset":5,"key":{"a":1},"key":"last","value":{"b":1},"value":{"b":2.0}}\n',
        )
    ] == [("a", '{"b":1.0}'), ('{"a":1.0}', "b"), ('{"a":1.0}', None), (None, '{"b":1.0}'), ("last", '{"b":2.0}')]


@pytest.mark.parametrize(
    ("source", "topic"),
    [
        (
            {"connector": "postgresql", "name": "shop", "db": "d", "schema": "public", "table": "or.ders"},
            "shop.public.or.ders",
        ),
        ({"connector": "mysql", "name": "billing", "db": "inventory", "table": "orders"}, "billing.inventory.orders"),
        ({"connector": "sqlserver", "name": "s", "db": "d", "schema": "dbo", "table": "t"}, "s.d.dbo.t"),
        ({"connector": "mysql", "name": 5, "db": None, "table": ""}, None),
        ("text", None),
        (None, None),
    ],
)
def test_bare_value_has_the_topic_that_its_source_names(file: Path, source: Any, topic: str | None) -> None:
    bare = json.dumps({"op": "c", "source": source, "after": {"price": 1.10}}, separators=(" ,", " : "))
    with_schema = f'{{"schema": null, "payload": {bare}}}'

    first, second = read(file, f"{bare}\n  {with_schema} \n")
    assert first == Record(topic, None, None, None, None, bare, None, 1, len(bare) + 1)
    assert second[:6] == (topic, None, None, None, None, with_schema)


def test_bare_null_is_a_tombstone_without_a_topic(file: Path) -> None:
    assert read(file, "null\n") == [Record(None, None, None, None, None, None, None, 1, 5)]


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ("null", None),
        ("[]", None),
        ("{}", None),
        (
            '[{"key":"a","value":"é"},{"key":"a","value":null},{"key":"c"}]',
            [("a", "é".encode()), ("a", None), ("c", None)],
        ),
        ('[["a","b"],["c",null]]', [("a", b"b"), ("c", None)]),
        ('["a","b","c",null]', [("a", b"b"), ("c", None)]),
        ('{"a":"b","c":{"n":1}}', [("a", b"b"), ("c", b'{"n":1}')]),
        ('{"a":["b",null],"c":[1,255],"d":null}', [("a", b"b"), ("a", None), ("c", b"[1,255]"), ("d", None)]),
    ],
)
def test_headers_of_every_form_are_pairs(file: Path, headers: str, expected: Headers) -> None:
    (record,) = read(file, f'{{"topic":"t","offset":1,"headers":{headers},"value":"x"}}\n')

    assert (record.error, record.headers) == (None, expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("253402300799999", 253402300799999),
        ("null", None),
        ("-1", None),
        ('"1780000000000"', 1780000000000),
        ('"CreateTime:1780000000000"', 1780000000000),
        ('"2026-05-28T20:26:44.123Z"', 1780000004123),
        ('"2026-05-28T22:26:44.120000+02:00"', 1780000004120),
        ('"2026-05-28 20:26:44+0000"', 1780000004000),
        ('"1969-12-31T23:59:59Z"', "invalid_timestamp"),
        ('"2026-05-28T20:26:44.1234Z"', "invalid_timestamp"),
        ('"2026-05-28T20:26:44"', "invalid_timestamp"),
        ('"2026-02-30T20:26:44Z"', "invalid_timestamp"),
        ('"yesterday"', "invalid_timestamp"),
        ('"NaN"', "invalid_timestamp"),
        ("253402300800000", "invalid_timestamp"),
        ("1780000000.5", "invalid_timestamp"),
        ("-2", "invalid_timestamp"),
        ("true", "invalid_timestamp"),
        ("{}", "invalid_timestamp"),
    ],
)
def test_timestamp_is_read_or_the_record_is_rejected(file: Path, text: str, expected: int | str | None) -> None:
    (record,) = read(file, f'{{"topic":"t","offset":1,"timestamp":{text},"value":"x"}}\n')

    assert (record.error or record.timestamp) == expected


ENVELOPE = '{"op":"c","source":{"connector":"postgresql","name":"s","schema":"public","table":"t"},"after":{"n":1.10}}'
WRAPPED = f'{{"schema":{{}},"payload":{ENVELOPE}}}'
DDL = '{"source":{"name":"s"},"ddl":"create table t"}'


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        # Without a topic it is that of the source; without an offset the record has no place in Kafka.
        (f'{{"key":{{"id":1.0}},"value":{ENVELOPE}}}', ("s.public.t", None, None, '{"id":1.0}', ENVELOPE)),
        (f'{{"key":"1","value":{json.dumps(WRAPPED)},"headers":[]}}', ("s.public.t", None, None, "1", WRAPPED)),
        (f'{{"value":{ENVELOPE},"offset":7,"key":null}}', ("s.public.t", 0, 7, None, ENVELOPE)),
        (f'{{"value":{WRAPPED},"offset":7,"partition":2}}', ("s.public.t", 2, 7, None, WRAPPED)),
        (f'{{"value":{ENVELOPE},"topic":"other","partition":2}}', ("other", None, None, None, ENVELOPE)),
        (f'{{"value":{DDL},"key":1}}', ("s", None, None, "1", DDL)),
        # Rows and other JSON with such members are bare values.
        ('{"key":"a","value":"b"}', None),
        ('{"key":"a","value":{"op":"c"}}', None),
        ('{"key":"a","value":null,"topic":"t"}', None),
        (f'{{"key":"a","value":{ENVELOPE},"__deleted":"false"}}', None),
        ('{"key":"a","value":{"source":{"name":"s"},"n":1}}', None),
        ('{"key":"a","value":"{"}', None),
    ],
)
def test_record_without_topic_or_offset_is_one_if_its_value_is_an_envelope(
    file: Path, line: str, expected: tuple[str, int, int, str, str] | None
) -> None:
    (record,) = read(file, line + "\n")

    bare = (None, None, None, None, line)
    assert (record.error, (*record[:3], *record[4:6])) == (None, expected or bare)


# Lines that are no record


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"op":', "invalid_json"),
        (b'{"a":1}{"b":2}', "invalid_json"),
        (b'{"a":NaN}', "invalid_json"),
        (b"{'a':1}", "invalid_json"),
        (b'{"a":"\x01"}', "invalid_json"),
        (b"\x00", "invalid_json"),
        (b'{"topic":"t","offset":1,"value":"\\ud800"}', "invalid_json"),
        (b'{"topic":"t","offset":1,"value":{"a":"\\udc00"}}', "invalid_json"),
        (b"[1]", "not_an_object"),
        (b"5", "not_an_object"),
        (b'"text"', "not_an_object"),
        (b'{"a":"\xff"}', "not_utf8"),
        (b'{"a":"\xed\xa0\x80"}', "not_utf8"),
        (b'{"a":' * 2000 + b"1" + b"}" * 2000, "nested_too_deep"),
        (b'{"topic":"t","offset":1,"value":' + b"[" * 2000 + b"]" * 2000 + b"}", "nested_too_deep"),
        (b'{"topic":"t","offset":9223372036854775808,"value":"x"}', "invalid_offset"),
        (b'{"topic":"t","offset":99999999999999999999999,"value":"x"}', "invalid_offset"),
        (b'{"topic":"t","offset":-5,"value":"x"}', "invalid_offset"),
        (b'{"topic":"t","offset":1.5,"value":"x"}', "invalid_offset"),
        (b'{"topic":"t","offset":1.0,"value":"x"}', "invalid_offset"),
        (b'{"topic":"t","offset":"1","value":"x"}', "invalid_offset"),
        (b'{"topic":"t","offset":null,"value":"x"}', "invalid_offset"),
        (b'{"topic":"t","offset":true,"value":"x"}', "invalid_offset"),
        (b'{"topic":"t","partition":2147483648,"offset":1,"value":"x"}', "invalid_partition"),
        (b'{"topic":"t","partition":-2,"offset":1,"value":"x"}', "invalid_partition"),
        (b'{"topic":"t","partition":"0","offset":1,"value":"x"}', "invalid_partition"),
        (b'{"topic":"t","offset":1,"headers":["a"],"value":"x"}', "invalid_headers"),
        (b'{"topic":"t","offset":1,"headers":"ab","value":"x"}', "invalid_headers"),
        (b'{"topic":"t","offset":1,"headers":5,"value":"x"}', "invalid_headers"),
        (b'{"topic":"t","offset":1,"headers":true,"value":"x"}', "invalid_headers"),
        (b'{"topic":"t","offset":1,"headers":[{"value":"a"}],"value":"x"}', "invalid_headers"),
        (b'{"topic":"t","offset":1,"headers":[["a","b"],{"key":"c"}],"value":"x"}', "invalid_headers"),
        (b'{"topic":"t","offset":1,"headers":[{"key":"a","stringValue":"b"}],"value":"x"}', "invalid_headers"),
        (b'{"topic":"t","offset":1,"headers":[{"a":"b"}],"value":"x"}', "invalid_headers"),
    ],
    ids=lambda value: value[:60].decode("latin-1") if isinstance(value, bytes) else value,
)
def test_line_that_is_no_record_has_a_reason_and_its_bytes(file: Path, line: bytes, reason: str) -> None:
    good = b'{"topic":"t","offset":1,"value":"x"}'
    records = read(file, good + b"\n" + line + b"\r\n" + good + b"\n")

    ends = [len(good) + 1, len(good) + len(line) + 3, 2 * len(good) + len(line) + 4]
    assert records[1] == Record(None, None, None, None, None, None, None, 2, ends[1], reason, line)
    assert [(record.error, record.value, record.line, record.end) for record in (records[0], records[2])] == [
        (None, "x", 1, ends[0]),
        (None, "x", 3, ends[2]),
    ]


# Lines and their ends


def test_byte_order_mark_line_ends_and_blank_lines_are_no_content(file: Path) -> None:
    records = read(file, '\ufeff{"a":1}\r\n\r\n  \n\n{"a":"\u2028\u0085"}\n{"a":3}')

    assert [(record.value, record.line) for record in records] == [
        ('{"a":1}', 1),
        ('{"a":"\u2028\u0085"}', 5),
        ('{"a":3}', 6),
    ]
    assert records[-1].end == file.stat().st_size
    assert read(file, '\ufeff{"a":1}')[0].value == '{"a":1}'
    for nothing in ("", "\ufeff", "\n", " \r\n\n"):
        assert read(file, nothing) == []


def test_utf_16_is_refused_with_the_way_out(file: Path) -> None:
    for encoding in ("utf-16", "utf-32", "utf-16-le", "utf-16-be"):
        for bom in ("\ufeff", "") if encoding.endswith("e") else ("",):
            with pytest.raises(LakehouseError, match=r"events\.jsonl: the file is UTF-16.*iconv"):
                read(file, gzip.compress((bom + '{"a":1}\n').encode(encoding)))


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"Obj\x01\x04\x16avro.schema", "is Avro; expected JSON. Export the records as JSON"),
        (b"PAR1\x15\x04\x15\x10", "is Parquet; expected JSON. Export the records as JSON"),
        (b"PK\x03\x04\x14\0\0\0", "is a zip archive. Unpack it"),
        (b"events.jsonl".ljust(257, b"\0") + b'ustar  \0\n{"a":1}\n', "is a tar archive. Unpack it"),
        (b"\xfd7zXZ\0\0\x04", "is compressed with xz. Unpack it"),
        (b'\0\0\0\0\x05{"before":null}\n', "is JSON behind the five bytes of a schema registry"),
        (b"\0\0\0\0\n\x02\x06abc" * 20, "is binary, for instance Avro or Protobuf without a header; expected JSON"),
        (b"\n\x07orders\x12\x04\x08\x01\x10\x02" * 20, "is binary, for instance Avro or Protobuf"),
    ],
    ids=str,
)
def test_file_of_another_format_is_refused_by_its_name(file: Path, content: bytes, told: str) -> None:
    with pytest.raises(LakehouseError) as raised:
        read(file, content)

    assert str(raised.value).startswith(f"{file}: the file {told}")


def test_binary_bytes_before_and_among_lines_are_rejected_lines(file: Path) -> None:
    assert [record.error for record in read(file, b"\0" * 40 + b'{"a":1}\n{"a":2}\n\0\n{"a":3}\n')] == [
        "invalid_json",
        None,
        "invalid_json",
        None,
    ]


# Values in a row

ITEMS = [
    '{"topic":"t","offset":1,"value":{"a" : 1.10}}',
    '{"op":"c","text":"}{][,\\" \\\\"}',
    '{"a":{"b":[[],{}]}}',
    '{"é":[1,2]}',
]
PRETTY = [json.dumps(json.loads(item), indent=2, ensure_ascii=False) for item in ITEMS]
IN_A_ROW = {
    "array": f"[{', '.join(ITEMS)}]",
    "array over lines": "[\n" + ",\n".join(ITEMS) + "\n]\n",
    "array of indented objects": "\ufeff[\r\n" + ",\r\n".join(PRETTY) + "]",
    "an array a line": f"[{ITEMS[0]},{ITEMS[1]}]\n[]\n[{ITEMS[2]}]\n[{ITEMS[3]}]\n",
    "without line ends": "".join(ITEMS),
    "some without line ends": f"{ITEMS[0]}{ITEMS[1]}\n{ITEMS[2]} {ITEMS[3]}\n",
    "with commas": ",\n".join(ITEMS) + ",\n",
    "over several lines": "\n".join(PRETTY) + "\n",
    "over several lines without line ends": "".join(PRETTY),
}


def seen(records: list[Record]) -> list[tuple[str | None, Any, int]]:
    return [(record.error, json.loads(record.value or ""), record.line) for record in records]


VALUES = [(None, value, number) for number, value in enumerate([{"a": 1.10}, *map(json.loads, ITEMS[1:])], 1)]


@pytest.mark.parametrize("form", IN_A_ROW)
def test_values_in_a_row_are_records_byte_for_byte_wherever_a_growing_file_is_cut(file: Path, form: str) -> None:
    content = IN_A_ROW[form].encode()
    whole = read(file, content)
    assert seen(whole) == VALUES
    assert [record.value for record in whole[1:]] == (PRETTY if PRETTY[1] in IN_A_ROW[form] else ITEMS)[1:]
    for packed in (gzip.compress(content), bz2.compress(content)):
        assert read(file, packed) == whole

    for cut in range(len(content) + 1):
        text = hashlib.sha256()
        file.write_bytes(content[:cut])
        first = list(read_records(file, Taken(), text))
        taken = Taken(first[-1].end, first[-1].line) if first else Taken()
        file.write_bytes(content)
        second = list(read_records(file, taken, text))
        assert seen(first + second) == VALUES, cut
        found = text_hash(file, (first + second)[-1].end)
        assert found and found.digest() == text.digest(), cut


def test_values_longer_than_what_is_read_at_once(file: Path) -> None:
    text = random.Random(1).randbytes(3 << 20).hex()
    for content in (
        f'[{{"a":"{text}"}},{{"a":"x"}}]',
        f'{{"a":"{text}"}}{{"a":"x"}}',
        f'{{\n"a":"{text}"}}\n{{\n"a":"x"}}',
    ):
        for packed in (content.encode(), gzip.compress(content.encode(), 1)):
            assert [json.loads(record.value or "")["a"] for record in read(file, packed)] == [text, "x"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        # What is no object stays beside the others, and is named.
        ('[{"a":1}, 5, "te,xt", nul]\n', [None, "not_an_object", "not_an_object", "invalid_json"]),
        ('{"a":1}{"a":}{"a":3}', [None, "invalid_json", None]),
        ('[{"a":1}}, {"a":2}]', [None, "invalid_json", None]),
        # Lines stay lines, however they are broken.
        ('{"op":\n{"a":1}\n', ["invalid_json", None]),
        ('{"op":"\n{"a":1}\n', ["invalid_json", None]),
        ('{"op":[\n\n\n{"a":1}\n{"a":2}\n', ["invalid_json", None, None]),
        ('{"a":1} and more\n{"a":2}\n', ["invalid_json", None]),
        ('{"a":1}\n{"a":2}{"a":3}\n[{"a":4}]\n', [None, "invalid_json", "not_an_object"]),
        ('[1]\n{"a":2}\n', ["not_an_object", None]),
        ('[12:00] a "log{\n{"a":2}\n', ["invalid_json", "invalid_json", None]),
        ("a,b\n1,2\n", ["invalid_json", "invalid_json"]),
        ('{"id":1}\t{"op":"c"}\n{"id":2}\t{"op":"c"}\n', ["invalid_json", "invalid_json"]),
        ('\x1e{"a":1}\n\x1b[1;39m{"a":2}\n', ["invalid_json", "invalid_json"]),
        ('{"a":1}\r{"a":2}\r', [None, None]),
        # Nothing is complete, or there is nothing.
        ("[]", []),
        ("[\n\n]\n", []),
        ('[{"a":1', []),
        ('{\n"a":1', []),
    ],
    ids=str,
)
def test_what_is_no_value_in_a_row_is_rejected_and_lines_stay_lines(
    file: Path, content: str, expected: list[str | None]
) -> None:
    assert [record.error for record in read(file, content)] == expected


def test_half_a_last_line_is_left_until_it_is_complete(file: Path) -> None:
    whole = '{"a":1}\n{"a":"é"}\n{"a":3}\n'.encode()
    for cut in range(len(whole) + 1):
        first = read(file, whole[:cut])
        taken = Taken(first[-1].end, first[-1].line) if first else Taken()
        second = read(file, whole, taken)
        assert [(record.value, record.line, record.end) for record in first + second] == [
            ('{"a":1}', 1, first[0].end if first else 8),
            ('{"a":"é"}', 2, first[1].end if len(first) > 1 else 19),
            ('{"a":3}', 3, first[2].end if len(first) > 2 else 27),
        ], cut


def test_value_of_30_mb_is_read_in_a_moment(file: Path) -> None:
    text = base64.b64encode(random.Random(1).randbytes(22 << 20)).decode()
    text = f'{{"blob":"{text}","price":1.10}}'
    line = f'{{"topic":"t","offset":1,"key":{{"id":1.0}},"value":{text}}}\n'
    lines = (line + '{"topic":"t","offset":2,"value":"x"}\n').encode()
    for content in (lines, gzip.compress(lines, 1), zstd(lines)):
        big, small = read(file, content)
        assert (big.key, big.value == text, small.value, small.end) == ('{"id":1.0}', True, "x", len(lines))


# Compressed files

LINES = [
    b'{"topic":"t","offset":%d,"value":"%s"}\n' % (n, random.Random(n).randbytes(9).hex().encode()) for n in range(40)
]
FORMS = {
    "gzip": gzip.compress(b"".join(LINES)),
    "two gzip members": gzip.compress(b"".join(LINES[:11])) + gzip.compress(b"".join(LINES[11:])),
    "many gzip members": b"".join(gzip.compress(line) for line in LINES),
    "zstd": zstd(b"".join(LINES)),
    "two zstd frames": zstd(b"".join(LINES[:11])) + zstd(b"".join(LINES[11:])),
    "two bzip2 streams": bz2.compress(b"".join(LINES[:11])) + bz2.compress(b"".join(LINES[11:])),
}


@pytest.mark.parametrize("form", FORMS)
def test_compressed_file_broken_off_at_any_byte_gives_its_whole_lines_and_goes_on(file: Path, form: str) -> None:
    content = FORMS[form]
    counts = []
    for cut in range(0, len(content) + 1, 1 if len(content) < 1500 else 3):
        first = read(file, content[:cut])
        taken = Taken(first[-1].end, first[-1].line) if first else Taken()
        second = read(file, content, taken)
        assert [record.offset for record in first + second] == list(range(len(LINES))), cut
        assert [record.line for record in first + second] == list(range(1, len(LINES) + 1)), cut
        counts.append(len(first))
    assert counts == sorted(counts)
    assert len(read(file, content)) == len(LINES)


def test_damaged_compressed_file_is_named(file: Path) -> None:
    plain = b"".join(LINES)
    flipped = bytearray(gzip.compress(plain))
    flipped[300] ^= 255
    broken_block = bytearray(gzip.compress(plain))
    broken_block[10] |= 6  # a kind of block that there is not
    broken_zstd = bytearray(zstd(plain))
    broken_zstd[9] ^= 255
    broken_bzip2 = bytearray(bz2.compress(plain))
    broken_bzip2[40] ^= 255
    rests = (gzip.compress(plain) + b"garbage", bz2.compress(plain) + b"garbage")
    for content in (bytes(flipped), bytes(broken_block), bytes(broken_zstd), bytes(broken_bzip2), *rests):
        with pytest.raises(LakehouseError, match=r"events\.jsonl: the compressed file is damaged"):
            read(file, content)
    for content in (bytes(broken_block), bytes(broken_zstd)):
        with pytest.raises(LakehouseError, match="is damaged"):
            read(file, content, Taken(len(LINES[0]), 1))
        with pytest.raises(LakehouseError, match="is damaged"):
            text_hash(file, len(plain))


# Digests


@pytest.mark.parametrize("size", [1, 100, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, (3 << 20) + 7])
def test_digest_of_text_is_that_of_the_plain_and_the_compressed_file(tmp_path: Path, size: int) -> None:
    text = random.Random(size).randbytes(size + 10)
    found = []
    for name, packed in {
        "plain": text,
        "gz": gzip.compress(text),
        "zst": zstd(text),
        "bz2": bz2.compress(text, 1),
        "exact": text[:size],
    }.items():
        (tmp_path / name).write_bytes(packed)
        found.append(text_hash(tmp_path / name, size).hexdigest())
        assert text_hash(tmp_path / name, size + 11) is None
    found.append(file_digest(tmp_path / "exact"))
    assert set(found) == {hashlib.sha256(text[:size]).hexdigest()}

    for at in {0, size // 2, size - 1}:
        changed = bytearray(text)
        changed[at] ^= 1
        (tmp_path / "changed").write_bytes(changed)
        assert text_hash(tmp_path / "changed", size).hexdigest() not in found, at
    (tmp_path / "cut.gz").write_bytes(gzip.compress(text)[:-12])
    assert text_hash(tmp_path / "cut.gz", size + 10) is None


def test_a_file_is_unchanged_while_its_times_are_unless_they_are_of_just_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.touch()
    changed = path.stat().st_ctime_ns

    def times_after(seconds: int) -> str:
        monkeypatch.setattr("scripts.taken.time.time_ns", lambda: changed + seconds * 1_000_000_000)
        return times(path)

    settled, fresh = times_after(3), times_after(1)
    assert is_unchanged(described("digest", settled), times_after(4))
    assert not is_unchanged(described("digest", fresh), fresh)
    assert not is_unchanged(described("digest", fresh), settled)
    assert not is_unchanged("", settled)


@pytest.mark.parametrize("is_settled", [True, False], ids=["sizes known", "sizes unknown"])
@pytest.mark.parametrize("end", [b"\n", b"", b"\n\n \n", b"\n{"], ids=["lines", "no line end", "blanks", "cut off"])
@pytest.mark.parametrize("packed", [bytes, partial(gzip.compress, mtime=0)], ids=["plain", "gzip"])
def test_a_file_that_landed_has_the_digest_of_all_its_bytes_and_a_copy_is_known(
    tmp_path: Path, packed: Callable[[bytes], bytes], end: bytes, is_settled: bool
) -> None:
    """Also files whose size no other file has, which are hashed only while they are read."""
    text = b'{"id": 1}\n{"id": 2}'
    files = [tmp_path / name for name in ("first", "as long", "longer", "copy")]
    for file, content in zip(files, (text, text[::-1], text + b" " * 20, text), strict=True):
        file.write_bytes(packed(content + end))
        if is_settled:
            os.utime(file, (1, 1))
    age = 5 * 10**9 if is_settled else 0
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("scripts.taken.time.time_ns", lambda: files[-1].stat().st_ctime_ns + age)
        notes: list[str] = []
        landed = {
            name: taken
            for chunk in chunks(list(files), Ledger({}, {}, {}, 0, 0), notes)
            for name, taken in chunk.taken.items()
        }
        again = Ledger(landed, {taken.whole.split()[0]: (name, taken) for name, taken in landed.items()}, {}, 1, 1)
        moved = tmp_path / "moved"
        moved.write_bytes(files[2].read_bytes())
        (found,) = chunks([moved], again, notes)

    assert [landed[str(file)].whole.split()[0] for file in files] == [file_digest(file) for file in files]
    assert [note for note in notes if "same content" in note] == [
        f"{files[3]}: same content as {files[0]}, which has landed; skipped",
        f"{moved}: same content as {files[2]}, which has landed; skipped",
    ]
    assert found.records.num_rows == 0


@pytest.mark.parametrize("end", [b"\n", b"\n{"], ids=["lines", "cut off"])
def test_a_file_that_is_deleted_while_it_is_read_lands_and_is_looked_at_again(
    file: Path, monkeypatch: pytest.MonkeyPatch, end: bytes
) -> None:
    file.write_bytes(b'{"id": 1}' + end)

    def read_and_deleted(*arguments: Any) -> Any:
        yield from read_records(*arguments)
        file.unlink()

    monkeypatch.setattr("scripts.chunks.read_records", read_and_deleted)
    (chunk,) = chunks([file], Ledger({}, {}, {}, 0, 0), [])
    assert (chunk.records.num_rows, chunk.taken[str(file)].whole) == (1, "")


def test_a_compressed_file_as_long_as_its_text_has_the_digest_of_its_bytes(file: Path) -> None:
    text = b'{"id": 1}\n' * 40

    def packed(name: str) -> bytes:
        with io.BytesIO() as buffer:
            with gzip.GzipFile(name, "wb", fileobj=buffer) as target:
                target.write(text)
            return buffer.getvalue()

    file.write_bytes(packed("n" * (len(text) - len(packed("n")) + 1)))
    assert file.stat().st_size == len(text)
    (chunk,) = chunks([file], Ledger({}, {}, {}, 0, 0), [])
    assert chunk.taken[str(file)].whole.split()[0] == file_digest(file)


# Any records, any form, any cuts

numbers = st.one_of(
    st.integers(-(10**30), 10**30).map(str),
    st.decimals(-1000, 1000, places=3).map(str).filter(lambda text: "E" not in text),
    st.sampled_from(["1.10", "1e2", "-0", "0.0E-7", "123456789012345678901234567890.10"]),
)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
strings = st.tuples(texts, st.booleans()).map(lambda given: json.dumps(given[0], ensure_ascii=given[1]))
scalars = st.one_of(numbers, strings, st.sampled_from(["true", "false", "null"]))
spaces = st.sampled_from(["", " ", "\t", "  "])


def json_objects(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    members = st.lists(st.tuples(strings, spaces, values, spaces), max_size=3)
    return members.map(lambda found: "{" + ",".join(f"{a}{name}{b}:{a}{value}{b}" for name, a, value, b in found) + "}")


def json_arrays(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(spaces, st.lists(values, max_size=3)).map(
        lambda found: f"[{found[0]}{','.join(found[1])}{found[0]}]"
    )


json_texts = st.recursive(scalars, lambda values: json_objects(values) | json_arrays(values), max_leaves=6)
objects = json_objects(json_texts)
nested = st.one_of(objects, json_arrays(json_texts), numbers, st.sampled_from(["true", "false"]))


@st.composite
def lines_of_records(draw: st.DrawFn) -> tuple[str, tuple[str | None, str | None]]:
    """A line without its end, and the key and value that are to be read from it."""
    form = draw(st.sampled_from(["text", "nested", "kcat", "kcat nested", "bare", "null"]))
    value: str | None
    if form == "null":
        return "null", (None, None)
    if form == "bare":
        value = draw(objects.filter(lambda text: not {"topic", "offset", "payload"} & json.loads(text).keys()))
        return value, (None, value)
    strategy = nested if "nested" in form else texts | json_texts
    key, value = draw(st.none() | strategy), draw(st.none() | strategy)
    written = [
        "null" if text is None else text if "nested" in form else json.dumps(text, ensure_ascii=draw(st.booleans()))
        for text in (key, value)
    ]
    space = draw(spaces)
    members = [
        '"topic":"t"',
        f'"offset":{space}{draw(st.integers(0, 2**63 - 1))}',
        f'"key":{space}{written[0]}',
        f'"{"payload" if "kcat" in form else "value"}"{space}:{written[1]}{space}',
    ]
    return "{" + f"{space},".join(draw(st.permutations(members))) + "}", (key, value)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    lines=st.lists(st.tuples(lines_of_records(), st.sampled_from(["\n", "\r\n", " \n", "\n\n"])), max_size=8),
    packing=st.sampled_from(["plain", "bom", "gzip", "gzip members", "zstd", "zstd frames"]),
    cuts=st.lists(st.floats(0, 1), max_size=5),
)
@example(lines=[(('{"a":1}', (None, '{"a":1}')), "\r\n")] * 3, packing="gzip members", cuts=[0.1, 0.34, 0.36, 0.5])
def test_every_record_is_read_once_and_exactly_wherever_a_growing_file_is_cut(
    lines: list[tuple[tuple[str, tuple[str | None, str | None]], str]], packing: str, cuts: list[float]
) -> None:
    written = [(line + end).encode() for (line, _), end in lines]
    if packing in ("gzip", "zstd"):
        content = gzip.compress(b"".join(written)) if packing == "gzip" else zstd(b"".join(written))
    else:
        packs: dict[str, Callable[[bytes], bytes]] = {"gzip members": gzip.compress, "zstd frames": zstd}
        pack = packs.get(packing, bytes)
        content = (b"\xef\xbb\xbf" if packing == "bom" else b"") + b"".join(pack(line) for line in written)
    places = [number for number, end in enumerate([0, *(line.count(b"\n") for line in written)]) for _ in range(end)]

    found: list[Record] = []
    taken = Taken()
    text = hashlib.sha256()
    with tempfile.TemporaryDirectory() as folder:
        for cut in [*sorted(cuts), 1.0]:
            file = Path(folder) / "events"
            file.write_bytes(content[: round(cut * len(content))])
            records = list(read_records(file, taken, text))
            found += records
            if records:
                taken = Taken(records[-1].end, records[-1].line)
                whole = text_hash(file, taken.bytes)
                assert whole and whole.hexdigest() == text.hexdigest()

    assert [record.error for record in found] == [None] * len(lines)
    assert [(record.key, record.value) for record in found] == [expected for (_, expected), _ in lines]
    assert [places[record.line - 1] for record in found] == list(range(1, len(lines) + 1))
