"""Files of Kafka records: JSON Lines of records, `kcat -J` output, bare Debezium values; plain, gzip or zstd.

The text of key and value is kept byte for byte: where they stand as nested JSON they are cut out of the
line, never parsed and printed again (a printed number may have lost digits).
"""

import gzip
import hashlib
import io
import json
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

import orjson
import zstandard

from scripts.errors import LakehouseError

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
UTF8_BOM = b"\xef\xbb\xbf"
OTHER_BOMS = {b"\xff\xfe": "UTF-16 or UTF-32 (little endian)", b"\xfe\xff": "UTF-16 (big endian)"}
MAX_INT = 2**31 - 1
MAX_LONG = 2**63 - 1


class Record(NamedTuple):
    """One Kafka record as it stands in a file, or a line that is none (`error` and `raw` are set then)."""

    topic: str | None
    partition: int | None
    offset: int | None
    timestamp: int | None  # milliseconds since 1970
    key: str | None
    value: str | None
    headers: list[tuple[str, bytes | None]] | None
    line: int  # from 1
    end: int  # bytes of the (uncompressed) file up to the end of this line
    error: str | None = None
    raw: bytes | None = None


class NotARecord(Exception):
    """Why a line cannot be landed as a record; lands as a rejected line."""


@dataclass(frozen=True)
class Taken:
    """How much of a file has landed, and what it looked like: enough to go on after it, or to see that
    another file stands under the same name now.

    `bytes` and `lines` count the uncompressed text, `digest` is that of all of it. `whole` is of the file as it stood (compressed
    or not) when all its complete lines had been taken: its digest and its times, as `described` writes them; empty before that.
    """

    bytes: int = 0
    lines: int = 0
    digest: str = ""
    whole: str = ""


@dataclass
class Rest:
    """What `read_records` leaves at the end of a file."""

    bytes: int = 0  # of a last line that is not complete


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
    """What the ledger keeps of a file: digest and times. Of two descriptions of a file the one with the later times is true."""
    return f"{digest} {now}"


def read_records(path: Path, taken: Taken, content: Any = None, rest: Rest | None = None) -> Iterator[Record]:
    """The records of `path` after what was taken, to the last line that is complete.

    A last line without a newline is complete if it is a JSON object; otherwise it is left for a later run:
    the file may still be growing, or be cut off.

    Args:
        content: a hash (of hashlib) over the text that was taken; it is brought to the end of each record when the next one
            is asked for.
        rest: is told at the end what was left.

    Raises:
        LakehouseError: the file is not text in UTF-8, or is compressed and damaged.
    """
    line_number = taken.lines
    end = taken.bytes
    content = content or hashlib.sha256()
    read: list[bytes] = []
    with _open(path) as file:
        _skip(file, max(0, end - 1), path)
        is_open = end > 0 and _read(file, 1, path) != b"\n"  # the last line was taken before its newline came
        for line in _lines(file, path):
            complete = line.endswith(b"\n")
            end += len(line)
            read.append(line)
            text = line
            if line_number == 0:
                for bom, encoding in OTHER_BOMS.items():
                    if text.startswith(bom):
                        raise LakehouseError(
                            f"{path}: the file is {encoding} text; expected UTF-8. "
                            f"Convert it (iconv -f UTF-16 -t UTF-8) and run again."
                        )
                text = text.removeprefix(UTF8_BOM)
            text = text.strip(b" \t\r\n")
            if not complete and not _is_object(text):
                if rest:
                    rest.bytes = len(line)
                return
            if is_open and not text:
                is_open = False
                continue
            is_open = False
            line_number += 1
            if not text:
                continue
            try:
                record = parse_line(text, line_number, end)
            except NotARecord as problem:
                record = Record(None, None, None, None, None, None, None, line_number, end, str(problem), text)
            yield record
            content.update(b"".join(read))
            read = []


def parse_line(text: bytes, line: int, end: int) -> Record:
    """One line as a record: `{topic, partition, offset, …, key, value}`, `kcat -J`, or a bare Debezium value.

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
    if is_row or not (isinstance(record.get("topic"), str) and payload in record and "offset" in record):
        return Record(_topic(record), None, None, None, None, text.decode("utf-8"), None, line, end)

    key, value = record.get("key"), record[payload]
    if not (isinstance(key, str | None) and isinstance(value, str | None)):
        members = _member_texts(text)
        key = key if isinstance(key, str | None) else members["key"]
        value = value if isinstance(value, str | None) else members[payload]
    return Record(
        topic=record["topic"],
        partition=_integer(record.get("partition", 0), "partition", MAX_INT),
        offset=_integer(record["offset"], "offset", MAX_LONG),
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
    that name no prefix have what else they say of the table (Lindorm, CockroachDB; Huawei CDL JSON, which has no `source`).
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


def _integer(value: object, member: str, greatest: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= greatest:
        raise NotARecord(f"invalid_{member}")
    return value


def _timestamp(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 253402300799999:
        return None
    return value


def _headers(value: Any) -> list[tuple[str, bytes | None]] | None:
    """Headers as pairs: `[{"key": …, "value": …}]`, `[[name, value]]`, kcat's flat `[name, value, …]`, or an object."""
    if not value:
        return None
    if isinstance(value, dict):
        pairs: list[tuple[Any, Any]] = list(value.items())
    elif not isinstance(value, list):
        raise NotARecord("invalid_headers")
    elif all(isinstance(header, dict) for header in value):
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


def _open(path: Path) -> IO[bytes]:
    file = io.BufferedReader(path.open("rb", buffering=0), 1 << 20)
    magic = file.peek(4)[:4]
    if magic.startswith(GZIP_MAGIC):
        return gzip.GzipFile(fileobj=file)  # type: ignore[return-value]
    if magic == ZSTD_MAGIC:
        return zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True, closefd=True)
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
    parts = b""
    while len(parts) < size:
        part = _block(file, size - len(parts), path)
        if not part:
            break
        parts += part
    return parts


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
