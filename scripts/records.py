"""Kafka records in JSON: records, `kcat -J` output, bare Debezium values.

The text of key and value is kept byte for byte: where they stand as nested JSON they are cut out of the line, never
parsed and printed again (a printed number may have lost digits).
"""

import json
import re
import secrets
from datetime import datetime
from typing import Any, NamedTuple

import orjson

MAX_INT = 2**31 - 1
MAX_LONG = 2**63 - 1
MAX_TIMESTAMP = 253402300799999
# As `kafka-console-consumer` and clients print timestamps: milliseconds, and ISO 8601 with an offset.
MILLISECONDS = re.compile(r"(?:CreateTime:|LogAppendTime:)?(\d{1,15})")
ISO_TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.(\d{1,3})0*)?(Z|[+-]\d\d:?\d\d)")

SPACE = b" \t\r\n"
# Of a line: a value that is text, up to its payload.
SCHEMA_BLOCK = re.compile(rb'("(?:value|payload)": ?")(\{\\"schema\\":(?:[^"\\]|\\.)*?\\"payload\\":)')
MARK = secrets.token_hex(8)  # which no line holds; it stands for a block that is known
MAX_BLOCKS = 16  # each line may be compared with all of them


class Record(NamedTuple):
    """One Kafka record as it stands in a file, or a line that is none (`error` and `raw` are set then)."""

    topic: str | None
    partition: int | None
    offset: int | None
    timestamp: int | None  # milliseconds since 1970
    key: str | None
    value: str | None
    headers: list[tuple[str, bytes | None]] | None
    line: int  # from 1; in a file of values in a row the number of the value
    end: int  # bytes of the (uncompressed) file up to the end of this line or value
    error: str | None = None
    raw: bytes | None = None
    block: str = ""  # with which the value begins, and which `value` is without


class SchemaBlocks:
    """The schema blocks of values. They are most of a line, and the same in line after line: each is read once."""

    def __init__(self) -> None:
        self._known: dict[bytes, list[tuple[bytes, str]]] = {}  # what stands before → blocks as in the line, as text

    def loads(self, line: bytes) -> tuple[Any, str]:
        """Parse a line, with `MARK` in place of a block that is known; and that block, else an empty text."""
        for before, blocks in self._known.items():
            start = line.find(before) + len(before)
            for block, text in blocks:
                if line.startswith(block, start):
                    return orjson.loads(b"".join((line[:start], MARK.encode(), line[start + len(block) :]))), text
        record = orjson.loads(line)
        if sum(map(len, self._known.values())) < MAX_BLOCKS and (found := SCHEMA_BLOCK.search(line)):
            text = orjson.loads(b'"' + found[2] + b'"')
            if text.count('"payload":') == 1:  # else it does not end there
                self._known.setdefault(found[1], []).append((found[2], text))
        return record, ""


class NotARecord(Exception):
    """Why a line cannot be landed as a record; lands as a rejected line."""


def parse_line(text: bytes, line: int, end: int, blocks: SchemaBlocks | None = None) -> Record:
    """One line as a record: `{topic, partition, offset, …, key, value}`, `kcat -J`, or a bare Debezium value.

    A record without `topic` or `offset` is one if its `value` is an envelope: rows have columns `key` and `value`, too.
    It gets the topic of a bare value, and without `offset` has no place in Kafka, as bare values.

    Args:
        blocks: those that are known, which the record's value is then without.

    Raises:
        NotARecord: with a reason of the closed list in docs/rejects.md.
    """
    try:
        record, block = blocks.loads(text) if blocks else (orjson.loads(text), "")
    except orjson.JSONDecodeError as error:
        try:
            text.decode("utf-8")
        except UnicodeDecodeError:
            raise NotARecord("not_utf8") from None
        if "depth limit" in str(error):
            raise NotARecord("nested_too_deep") from None
        raise NotARecord("invalid_json") from None
    if record is None:
        return Record(None, None, None, None, None, None, None, line, end)
    if not isinstance(record, dict):
        raise NotARecord("not_an_object")
    payload = "value" if "value" in record else "payload"
    is_row = "__deleted" in record or "__op" in record  # of a table with columns of these names
    topic = record.get("topic")
    is_record = not is_row and isinstance(topic, str) and payload in record and "offset" in record
    if block and not (is_record and str(record[payload]).startswith(MARK)):
        return parse_line(text, line, end)  # it is not the value that begins with it
    if not is_record:
        of_value = None if is_row or "value" not in record else _topic_of_envelope(record["value"])
        if not of_value:
            return Record(_topic(record), None, None, None, None, text.strip(SPACE).decode("utf-8"), None, line, end)
        topic = topic if isinstance(topic, str) else of_value

    key, value = record.get("key"), record[payload]
    if not (isinstance(key, str | None) and isinstance(value, str | None)):
        members = _member_texts(text)
        key = key if isinstance(key, str | None) else members["key"]
        value = value if isinstance(value, str | None) else members[payload]
    return Record(
        topic=topic,
        partition=_integer(record.get("partition", 0), "partition", MAX_INT) if "offset" in record else None,
        offset=_integer(record["offset"], "offset", MAX_LONG) if "offset" in record else None,
        timestamp=_timestamp(record.get("timestamp", record.get("ts"))),
        key=key,
        value=value[len(MARK) :] if block and value else value,
        headers=_headers(record.get("headers")),
        line=line,
        end=end,
        block=block,
    )


def _topic(value: dict[str, Any]) -> str | None:
    """The topic that Debezium would have used for a bare value: prefix, database or schema, table.

    Source: Debezium documentation, "Topic names": `<prefix>.<schema>.<table>` (PostgreSQL),
    `<prefix>.<database>.<table>` (MySQL, MariaDB), `<prefix>.<database>.<schema>.<table>` (SQL Server, Oracle). Writers
    that name no prefix have what else they say of the table (Lindorm, CockroachDB; Huawei CDL JSON, which has no
    `source`).
    """
    payload = value.get("payload", value)
    if not isinstance(payload, dict):
        return None
    source = payload.get("source")
    if isinstance(source, dict):
        database = source.get("keyspace") or source.get("db") or source.get("database_name")
        parts = [source.get("name"), database if source.get("connector") != "postgresql" else None]
        parts += [source.get("namespace"), source.get("schema") or source.get("schema_name")]
        parts.append(source.get("table") or source.get("collection") or source.get("table_name"))
    else:
        parts = [payload.get("SEG_OWNER"), payload.get("TABLE_NAME")] if "OPERATION" in payload else []
    names = [part for part in parts if isinstance(part, str) and part]
    return ".".join(names) or None


def _topic_of_envelope(value: Any) -> str | None:
    """The topic of an envelope or DDL record, as nested JSON or as text; None: the value is none, or names no table."""
    if isinstance(value, str):
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError:
            return None
    payload = value.get("payload", value) if isinstance(value, dict) else None
    is_envelope = (
        isinstance(payload, dict) and isinstance(payload.get("source"), dict) and payload.keys() & {"op", "ddl"}
    )
    return _topic(value) if is_envelope else None


def _integer(value: object, member: str, greatest: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= greatest:
        raise NotARecord(f"invalid_{member}")
    return value


def _timestamp(value: object) -> int | None:
    """Milliseconds since 1970, from a number or a text. None and -1 are Kafka's own: the record has no timestamp."""
    if isinstance(value, str):
        milliseconds, iso = MILLISECONDS.fullmatch(value), ISO_TIMESTAMP.fullmatch(value)
        if milliseconds:
            value = int(milliseconds[1])
        elif iso:
            day, time_of_day, fraction, offset = iso.groups()
            zone = "+0000" if offset == "Z" else offset.replace(":", "")
            try:
                seconds = datetime.strptime(f"{day} {time_of_day} {zone}", "%Y-%m-%d %H:%M:%S %z").timestamp()
            except ValueError:  # February 30
                raise NotARecord("invalid_timestamp") from None
            value = round(seconds) * 1000 + int((fraction or "").ljust(3, "0"))
    if value is None or value == -1:
        return None
    return _integer(value, "timestamp", MAX_TIMESTAMP)


def _headers(value: Any) -> list[tuple[str, bytes | None]] | None:
    """Headers as pairs: `[{"key": …, "value": …}]`, `[[name, value]]`, kcat's flat `[name, value, …]`, or an object."""
    if not value:
        return None
    if isinstance(value, dict):  # a list of texts: a name that stands several times
        pairs: list[tuple[Any, Any]] = [(name, one) for name, content in value.items() for one in _several(content)]
    elif not isinstance(value, list):
        raise NotARecord("invalid_headers")
    elif all(isinstance(header, dict) for header in value):
        if not all("value" in header or header.keys() == {"key"} for header in value):  # it is there under another name
            raise NotARecord("invalid_headers")
        pairs = [(header.get("key"), header.get("value")) for header in value]
    elif all(isinstance(header, list) and len(header) == 2 for header in value):
        pairs = [(header[0], header[1]) for header in value]
    elif len(value) % 2 == 0:
        pairs = list(zip(value[::2], value[1::2], strict=True))
    else:
        raise NotARecord("invalid_headers")
    if not all(isinstance(name, str) for name, _ in pairs):
        raise NotARecord("invalid_headers")
    return [(name, _header_bytes(content)) for name, content in pairs]


def _several(content: Any) -> list[Any]:
    return content if isinstance(content, list) and all(isinstance(one, str | None) for one in content) else [content]


def _header_bytes(content: Any) -> bytes | None:
    if content is None:
        return None
    return content.encode("utf-8") if isinstance(content, str) else orjson.dumps(content)


def _member_texts(line: bytes) -> dict[str, str]:
    """The text of each member of a valid JSON object, exactly as it is written."""
    text = line.decode("utf-8")
    decoder = json.JSONDecoder(parse_int=_skip_number, parse_float=_skip_number)
    space = " \t\r\n"
    members: dict[str, str] = {}
    at = text.index("{") + 1
    try:
        while True:
            while text[at] in space or text[at] == ",":
                at += 1
            if text[at] == "}":
                return members
            name, at = json.decoder.scanstring(text, at + 1, True)  # type: ignore[attr-defined]
            while text[at] in space or text[at] == ":":
                at += 1
            start = at
            _, at = decoder.raw_decode(text, start)
            members[name] = text[start:at]
    except RecursionError:
        raise NotARecord("nested_too_deep") from None


def _skip_number(text: str) -> None:
    """Numbers are cut out, never read: an integer of a thousand digits is as good as any."""
