"""Files of Kafka records: records, `kcat -J` output, bare Debezium values; plain, gzip, zstd or bzip2.

A file has one record a line (JSON Lines), or JSON values in a row: an array, objects without line ends, objects over
several lines. The text of key and value is kept byte for byte: where they stand as nested JSON they are cut out of the
line, never parsed and printed again (a printed number may have lost digits).
"""

import bz2
import gzip
import hashlib
import io
import json
import re
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Any, NamedTuple

import orjson
import zstandard

from scripts.errors import LakehouseError

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
BZIP2_MAGIC = re.compile(rb"BZh[1-9]1AY&SY|BZh[1-9]\x17rE8P\x90")
UTF8_BOM = b"\xef\xbb\xbf"
# How files begin that are not read → what they are, and what to do.
CONVERT = "Convert it (iconv -f UTF-16 -t UTF-8) and run again."
UNPACK = "Unpack it, or compress it with gzip, zstd or bzip2, and run again."
EXPORT = "Export the records as JSON (JsonConverter writes them), and run again."
NOT_READ = (
    (rb"\xff\xfe", "UTF-16 or UTF-32 (little endian) text; expected UTF-8", CONVERT),
    (rb"\xfe\xff|\0\0\xfe\xff", "UTF-16 or UTF-32 (big endian) text; expected UTF-8", CONVERT),
    (rb"[{\[]\0|\0[{\[]", "UTF-16 text; expected UTF-8", CONVERT),
    (rb"Obj\x01", "Avro; expected JSON", EXPORT),
    (rb"PAR1", "Parquet; expected JSON", EXPORT),
    (rb"ORC", "ORC; expected JSON", EXPORT),
    (rb"PK\x03\x04", "a zip archive", UNPACK),
    (rb".{257}ustar", "a tar archive", UNPACK),
    (rb"\xfd7zXZ\0", "compressed with xz", UNPACK),
    (rb"\x04\x22\x4d\x18", "compressed with lz4", UNPACK),
    (rb"\xff\x06\0\0sNaPpY", "compressed with snappy", UNPACK),
    (
        rb"\0.{4}\s*\{",
        "JSON behind the five bytes of a schema registry (JsonSchemaConverter); expected JSON alone",
        EXPORT,
    ),
)
BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c\x1d\x1f]")  # never in JSON, nor in colours and separators around it
SPACE = b" \t\r\n"
BETWEEN_VALUES = re.compile(rb"(?:\xef\xbb\xbf|[ \t\r\n,\[\]])*")
BRACKET = re.compile(
    rb'"[^"\\\n]*(?:\\.[^"\\\n]*)*("?)|[{}\[\]]', re.DOTALL
)  # or a text, in which brackets do not count
NO_OBJECT = re.compile(rb'(?:"[^"\\\n]*(?:\\.[^"\\\n]*)*"?|[^"{\[\],\n])+', re.DOTALL)
HEAD_BYTES = 1 << 16  # in which most files show their form
MAX_INT = 2**31 - 1
MAX_LONG = 2**63 - 1
MAX_TIMESTAMP = 253402300799999
# As `kafka-console-consumer` and clients print timestamps: milliseconds, and ISO 8601 with an offset.
MILLISECONDS = re.compile(r"(?:CreateTime:|LogAppendTime:)?(\d{1,15})")
ISO_TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.(\d{1,3})0*)?(Z|[+-]\d\d:?\d\d)")


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


class NotARecord(Exception):
    """Why a line cannot be landed as a record; lands as a rejected line."""


@dataclass(frozen=True)
class Taken:
    """How much of a file has landed, and what it looked like: enough to go on after it, or to see that
    another file stands under the same name now.

    `bytes` and `lines` count the uncompressed text, `digest` is that of all of it. `whole` is of the file as it stood
    (compressed or not) when all its complete lines had been taken: its digest and its times, as `described` writes
    them; empty before that.
    """

    bytes: int = 0
    lines: int = 0
    digest: str = ""
    whole: str = ""


@dataclass
class Rest:
    """What `read_records` leaves at the end of a file."""

    size: int = 0  # bytes of a last record that is not complete
    begin: bytes = b""  # how that begins


def file_digest(path: Path) -> str:
    """Of the file as it stands (compressed or not), to recognise it again, or a copy under another name."""
    with path.open("rb") as file:
        content = hashlib.sha256()
        while block := file.read(1 << 20):
            content.update(block)
        return content.hexdigest()


def text_hash(path: Path, size: int) -> Any:
    """A hash (of hashlib) over the first `size` bytes of the file's text, which can go on; None where it has fewer."""
    with _open(path) as file:
        content = hashlib.sha256()
        while size and (block := _block(file, min(1 << 20, size), path)):
            content.update(block)
            size -= len(block)
        return None if size else content


def times(path: Path) -> str:
    """When the file was changed last, and its size: while this stays, so does the content.

    A file that was changed just now has only the first part: another change may give it the same times.
    """
    state = path.stat()
    settled = time.time_ns() - max(state.st_mtime_ns, state.st_ctime_ns) > 2_000_000_000
    return f"{state.st_ctime_ns:020}" + (f" {state.st_mtime_ns} {state.st_size}" if settled else "")


def is_unchanged(whole: str, now: str) -> bool:
    """Whether the file with the times `now` is still the one that `described` told of."""
    return " " in now and whole.endswith(" " + now)


def described(digest: str, now: str) -> str:
    """What the ledger keeps of a file: digest and times. Of two descriptions of a file the one with the later times is
    true.
    """
    return f"{digest} {now}"


def read_records(path: Path, taken: Taken, content: Any = None, rest: Rest | None = None) -> Iterator[Record]:
    """The records of `path` after what was taken, to the last one that is complete.

    A last line without a newline is complete if it is a JSON object; otherwise it is left for a later run:
    the file may still be growing, or be cut off.

    Args:
        content: a hash (of hashlib) over the text that was taken; it is brought to the end of each record when the next
            one is asked for.
        rest: is told at the end what was left.

    Raises:
        LakehouseError: the file is not text in UTF-8, is of a format that is not read, or is compressed and damaged.
    """
    content = content or hashlib.sha256()
    if _has_values_in_a_row(path):
        yield from _records_in_a_row(path, taken, content, rest)
        return
    line_number = taken.lines
    end = taken.bytes
    read: list[bytes] = []
    with _open(path) as file:
        _skip(file, max(0, end - 1), path)
        is_open = end > 0 and _read(file, 1, path) != b"\n"  # the last line was taken before its newline came
        for line in _lines(file, path):
            complete = line.endswith(b"\n")
            end += len(line)
            read.append(line)
            text = line if line_number else line.removeprefix(UTF8_BOM)
            text = text.strip(SPACE)
            if not complete and not _is_object(text):
                if rest:
                    rest.size, rest.begin = len(line), text[:20]
                return
            if is_open and not text:
                is_open = False
                continue
            is_open = False
            line_number += 1
            if not text:
                continue
            yield _record(text, line_number, end)
            content.update(b"".join(read))
            read = []


def _records_in_a_row(path: Path, taken: Taken, content: Any, rest: Rest | None) -> Iterator[Record]:
    """As `read_records`, of a file with JSON values in a row.

    What separates them is passed over; numbers count the values.
    """
    number, end = taken.lines, taken.bytes
    with _open(path) as file:
        _skip(file, end, path)
        for before, value in _values(file, path):
            if not value:
                if rest:
                    rest.size, rest.begin = len(before.strip(SPACE)), before.strip(SPACE)[:20]
                return
            number += 1
            end += len(before) + len(value)
            yield _record(value.strip(SPACE), number, end)
            content.update(before + value)


def _record(text: bytes, line: int, end: int) -> Record:
    try:
        return parse_line(text, line, end)
    except NotARecord as problem:
        return Record(None, None, None, None, None, None, None, line, end, str(problem), text)


def parse_line(text: bytes, line: int, end: int) -> Record:
    """One line as a record: `{topic, partition, offset, …, key, value}`, `kcat -J`, or a bare Debezium value.

    A record without `topic` or `offset` is one if its `value` is an envelope: rows have columns `key` and `value`, too.
    It gets the topic of a bare value, and without `offset` has no place in Kafka, as bare values.

    Raises:
        NotARecord: with a reason of the closed list in docs/rejects.md.
    """
    try:
        record = orjson.loads(text)
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
    if is_row or not (isinstance(topic, str) and payload in record and "offset" in record):
        of_value = None if is_row or "value" not in record else _topic_of_envelope(record["value"])
        if not of_value:
            return Record(_topic(record), None, None, None, None, text.decode("utf-8"), None, line, end)
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
        value=value,
        headers=_headers(record.get("headers")),
        line=line,
        end=end,
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


def _is_object(text: bytes) -> bool:
    if not text.startswith((b"{", UTF8_BOM)):
        return False
    try:
        return isinstance(orjson.loads(text.removeprefix(UTF8_BOM)), dict)
    except orjson.JSONDecodeError:
        return False


def _has_values_in_a_row(path: Path) -> bool:
    """Whether a file has JSON values in a row, not one a line: an array, objects without line ends, or over several
    lines.

    That is decided by its first value and by what follows it, so that it stays the same when the file grows.

    Raises:
        LakehouseError: the file is of a format that is not read.
    """
    with _open(path) as file:
        text = b""
        while True:
            block = _read(file, max(HEAD_BYTES, len(text)), path)
            if not text:
                _refuse_other_formats(path, block)
            text = (text + block).removeprefix(UTF8_BOM).lstrip(SPACE)
            line, line_end, others = text.partition(b"\n")
            if not text.startswith(b"{") or (line_end and _is_object(line.strip(SPACE))):
                return text.startswith(b"[")
            end, depth = _scan(text, 0, 0)
            if not depth and text[end:].startswith(b"\t"):  # a key and its value, as kafka-console-consumer prints them
                return False
            follows = text[end:].lstrip(SPACE + b",")[:1]
            if not depth and (follows or not block):
                is_over_lines = b"\n" in text[:end] or b"," in text[end:]
                return _is_object(text[:end]) and (follows in (b"{", b"[") or (not follows and is_over_lines))
            # A line that is cut off may have begun a file of lines.
            if any(_is_object(other.strip(SPACE)) for other in others.split(b"\n") if other.startswith(b"{")):
                return False
            if not block:
                return bool(line_end)


def _refuse_other_formats(path: Path, head: bytes) -> None:
    for begin, name, remedy in NOT_READ:
        if re.match(begin, head, re.DOTALL):
            raise LakehouseError(f"{path}: the file is {name}. {remedy}")
    # The first bytes of a compressed file may be all that there is of it yet.
    if len(head) > 16 and BINARY.search(head) and not any(_is_object(line.strip(SPACE)) for line in head.split(b"\n")):
        raise LakehouseError(
            f"{path}: the file is binary, for instance Avro or Protobuf without a header; expected JSON. {EXPORT}"
        )


def _values(file: IO[bytes], path: Path) -> Iterator[tuple[bytes, bytes]]:
    """Each value and what stands before it; at the end what is no complete value, before an empty one."""
    text = b""
    first = at = depth = 0  # where the value begins, up to where and how deep its brackets are counted
    while block := _read(file, max(1 << 20, len(text)), path):
        text += block
        start = 0
        while True:
            if not depth:
                first = at = BETWEEN_VALUES.match(text, start).end()  # type: ignore[union-attr]
                other = NO_OBJECT.match(text, first)
                if other and other.end() < len(text):
                    yield text[start:first], other[0]
                    start = other.end()
                    continue
                if other or first == len(text):
                    break
            at, depth = _scan(text, at, depth)
            if depth:
                break
            yield text[start:first], text[first:at]
            start = at
        text, first, at = text[start:], first - start, at - start
    yield (text if depth or text[first:] else b""), b""


def _scan(text: bytes, at: int, depth: int) -> tuple[int, int]:
    """Count brackets from `at` on: where the value ends, and 0; else where to go on with more text, and the depth
    there.
    """
    for found in BRACKET.finditer(text, at):
        if found[0].startswith(b'"'):
            if not found[1] and found.end() >= len(text) - 1:
                return found.start(), depth
            continue
        depth += 1 if found[0] in b"{[" else -1
        if not depth:
            return found.end(), 0
    return len(text), depth


class _Bzip2:
    """The text of a bzip2 file: of its streams, one after the other, up to where the last one breaks off."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._stream = bz2.BZ2Decompressor()

    def __enter__(self) -> "_Bzip2":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def read1(self, size: int) -> bytes:
        while True:
            packed = b""
            if self._stream.eof:
                packed = self._stream.unused_data or self._file.read1(1 << 20)
                if not packed:
                    return b""
                self._stream = bz2.BZ2Decompressor()
            elif self._stream.needs_input and not (packed := self._file.read1(1 << 20)):
                return b""
            if text := self._stream.decompress(packed, size):
                return text


def _open(path: Path) -> IO[bytes]:
    file = io.BufferedReader(path.open("rb", buffering=0), 1 << 20)
    magic = file.peek(10)[:4]
    if magic.startswith(GZIP_MAGIC):
        return gzip.GzipFile(fileobj=file)  # type: ignore[return-value]
    if magic == ZSTD_MAGIC:
        return zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True, closefd=True)
    if BZIP2_MAGIC.match(file.peek(10)):
        return _Bzip2(file)  # type: ignore[return-value]
    return file


def _skip(file: IO[bytes], size: int, path: Path) -> None:
    if isinstance(file, io.BufferedReader):
        file.seek(size)
        return
    while size > 0:
        part = _read(file, min(size, 1 << 20), path)
        if not part:
            return
        size -= len(part)


def _read(file: IO[bytes], size: int, path: Path) -> bytes:
    """Up to `size` bytes; fewer at the end of the file, also where a compressed file breaks off."""
    parts: list[bytes] = []
    while size and (part := _block(file, size, path)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _block(file: IO[bytes], size: int, path: Path) -> bytes:
    """The next bytes, as one call gives them: a longer read would lose what precedes a break in a compressed file.

    What is compressed may break off at any byte: that is its end.
    """
    try:
        return file.read1(size)  # type: ignore[attr-defined, no-any-return]
    except EOFError:
        return b""
    except (OSError, zlib.error, zstandard.ZstdError) as error:
        if isinstance(error, gzip.BadGzipFile) and str(error).endswith("(b'\\x1f')"):  # one byte of another member
            return b""
        raise LakehouseError(f"{path}: the compressed file is damaged ({error}). Replace it and run again.") from None


def _lines(file: IO[bytes], path: Path) -> Iterator[bytes]:
    """Lines with their newline; the last one may be without."""
    if isinstance(file, io.BufferedReader):
        yield from file
        return
    rest: list[bytes] = []  # joined once: a long line comes in thousands of blocks
    while block := _block(file, 1 << 20, path):
        first, *others = block.split(b"\n")
        rest.append(first)
        if others:
            yield b"".join(rest) + b"\n"
            rest = [others.pop()]
            for line in others:
                yield line + b"\n"
    if last := b"".join(rest):
        yield last
