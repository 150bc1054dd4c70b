"""Where the records of a file begin and end: one a line (JSON Lines), or values in a row, also over several lines."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

import orjson

from scripts.compression import lines, opened, read, skip
from scripts.errors import LakehouseError
from scripts.records import SPACE, NotARecord, Record, SchemaBlocks, parse_line
from scripts.stores import File
from scripts.taken import Taken

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
BETWEEN_VALUES = re.compile(rb"(?:\xef\xbb\xbf|[ \t\r\n,\[\]])*")
# Or a text, in which brackets do not count.
BRACKET = re.compile(rb'"[^"\\\n]*(?:\\.[^"\\\n]*)*("?)|[{}\[\]]', re.DOTALL)
NO_OBJECT = re.compile(rb'(?:"[^"\\\n]*(?:\\.[^"\\\n]*)*"?|[^"{\[\],\n])+', re.DOTALL)
HEAD_BYTES = 1 << 16  # in which most files show their form


@dataclass
class Rest:
    """What `read_records` leaves at the end of a file."""

    size: int = 0  # bytes of a last record that is not complete
    begin: bytes = b""  # how that begins


def read_records(
    path: File, taken: Taken, content: Any = None, rest: Rest | None = None, blocks: SchemaBlocks | None = None
) -> Iterator[Record]:
    """The records of `path` after what was taken, to the last one that is complete.

    A last line without a newline is complete if it is a JSON object; otherwise it is left for a later run:
    the file may still be growing, or be cut off.

    Args:
        content: a hash (of hashlib) over the text that was taken; it is brought to the end of each record when the next
            one is asked for.
        rest: gets at the end what was left.
        blocks: those that are known, which values are then without.

    Raises:
        LakehouseError: the file is not text in UTF-8, is of a format that is not read, or is compressed and damaged.
    """
    content = content or hashlib.sha256()
    if _has_values_in_a_row(path):
        yield from _records_in_a_row(path, taken, content, rest)
        return
    line_number = taken.lines
    end = taken.bytes
    pending: list[bytes] = []
    with opened(path) as file:
        skip(file, max(0, end - 1), path)
        is_open = end > 0 and read(file, 1, path) != b"\n"  # the last line was taken before its newline came
        for line in lines(file, path):
            complete = line.endswith(b"\n")
            end += len(line)
            pending.append(line)
            text = line if line_number else line.removeprefix(UTF8_BOM)
            if not text.startswith(b"{"):
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
            yield _record(text, line_number, end, blocks)
            content.update(b"".join(pending))
            pending = []


def _records_in_a_row(path: File, taken: Taken, content: Any, rest: Rest | None) -> Iterator[Record]:
    """As `read_records`, of a file with JSON values in a row.

    What separates them is passed over; numbers count the values.
    """
    number, end = taken.lines, taken.bytes
    with opened(path) as file:
        skip(file, end, path)
        for before, value in _values(file, path):
            if not value:
                if rest:
                    rest.size, rest.begin = len(before.strip(SPACE)), before.strip(SPACE)[:20]
                return
            number += 1
            end += len(before) + len(value)
            yield _record(value, number, end)
            content.update(before + value)


def _record(text: bytes, line: int, end: int, blocks: SchemaBlocks | None = None) -> Record:
    try:
        return parse_line(text, line, end, blocks)
    except NotARecord as problem:
        return Record(None, None, None, None, None, None, None, line, end, str(problem), text.strip(SPACE))


def _is_object(text: bytes) -> bool:
    if not text.startswith((b"{", UTF8_BOM)):
        return False
    try:
        return isinstance(orjson.loads(text.removeprefix(UTF8_BOM)), dict)
    except orjson.JSONDecodeError:
        return False


def _has_values_in_a_row(path: File) -> bool:
    """Whether a file has JSON values in a row, not one a line: an array, objects without line ends, or over several
    lines.

    That is decided by its first value and by what follows it, so that it stays the same when the file grows.

    Raises:
        LakehouseError: the file is of a format that is not read.
    """
    with opened(path) as file:
        text = b""
        while True:
            block = read(file, max(HEAD_BYTES, len(text)), path)
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


def _refuse_other_formats(path: File, head: bytes) -> None:
    for begin, name, remedy in NOT_READ:
        if re.match(begin, head, re.DOTALL):
            raise LakehouseError(f"{path}: the file is {name}. {remedy}")
    # The first bytes of a compressed file may be all that there is of it yet.
    if len(head) > 16 and BINARY.search(head) and not any(_is_object(line.strip(SPACE)) for line in head.split(b"\n")):
        problem = "the file is binary, for instance Avro or Protobuf without a header; expected JSON"
        raise LakehouseError(f"{path}: {problem}. {EXPORT}")


def _values(file: IO[bytes], path: File) -> Iterator[tuple[bytes, bytes]]:
    """Each value and what stands before it; at the end what is no complete value, before an empty one."""
    text = b""
    first = at = depth = 0  # where the value begins, up to where and how deep its brackets are counted
    while block := read(file, max(1 << 20, len(text)), path):
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
    """Count brackets from `at` on: where the value ends, and 0; else where to go on, and the depth there."""
    for found in BRACKET.finditer(text, at):
        if found[0].startswith(b'"'):
            if not found[1] and found.end() >= len(text) - 1:
                return found.start(), depth
            continue
        depth += 1 if found[0] in b"{[" else -1
        if not depth:
            return found.end(), 0
    return len(text), depth
