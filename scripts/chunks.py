"""The new records of files in chunks: each chunk is one commit."""

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from scripts.bronze import COORDINATES, LONG, TEXT, Place, Span, arrow_batch
from scripts.compression import is_compressed
from scripts.framing import Rest, read_records
from scripts.ledger import Ledger
from scripts.records import Record, SchemaBlocks
from scripts.stores import File, StoredObject
from scripts.taken import Taken, described, file_digest, is_unchanged, size_of, text_hash, times

# All is made and freed once a chunk, for which Arrow's own pool takes 3 µs more an event.
pa.set_memory_pool(pa.system_memory_pool())
CHUNK_BYTES = 64 << 20  # text of one commit, kept in memory; repeated schema blocks do not count
FILE_BYTES = 16 << 20  # text of one data file, likewise
HEADS_BYTES = 1 << 20  # text of the schema blocks of one commit
HEADERS = pa.list_(pa.struct([("key", TEXT), ("value", pa.binary())]))
ARROW_SCHEMA = pa.schema(
    [*COORDINATES, ("timestamp", pa.timestamp("us", "UTC")), ("key", TEXT), ("head", pa.int32()), ("value", TEXT)]
    + [("headers", HEADERS), ("file", TEXT), ("line", LONG), ("line_end", LONG), ("error", TEXT), ("raw", pa.binary())]
)
_Row = tuple[Any, ...]  # in the order of the schema


@dataclass(frozen=True)
class Chunk:
    """Records that will be one commit, and how far each file is taken once it is done."""

    records: pa.Table
    heads: list[str]  # `head` counts from 0 in these; the value is head and `value`
    offsets: dict[Place, Span]
    repeated: int  # records left out, as they stand in the chunk already
    invalid: int
    taken: dict[str, Taken]


class _Gathering:
    """The records of a chunk as they are read.

    A value with a schema block is cut where its payload begins. The heads are long and few: each is kept once, and sent
    once.
    """

    def __init__(self) -> None:
        self.size = 0
        self.taken: dict[str, Taken] = {}
        self._heads = {"": 0}
        self._heads_size = 0
        self._last_heads: dict[str, str] = {}  # of each topic: most values begin as the one before
        self._offsets: dict[Place, Span] = {}
        self._in_order = True
        self._invalid = 0
        self._rows: dict[str, list[_Row]] = {}
        self._sizes: dict[str, int] = {}

    def add(self, file: str, record: Record) -> None:
        if record.offset is not None:
            place = (record.topic, record.partition)
            start, end = self._offsets.get(place, (record.offset, 0))
            self._in_order &= record.offset >= end
            self._offsets[place] = (min(start, record.offset), max(end, record.offset + 1))
        self._invalid += record.error is not None
        topic = record.topic or ""
        head, value = self._cut(topic, record.value, record.block)
        timestamp = None if record.timestamp is None else record.timestamp * 1000
        row = (*record[:3], timestamp, record.key, head, value, record.headers, file, *record[7:11])
        size = 64 + len(value or "") + len(record.key or "") + len(record.raw or b"")
        self._rows.setdefault(topic, []).append(row)
        self._sizes[topic] = self._sizes.get(topic, 0) + size
        self.size += size

    def _cut(self, topic: str, value: str | None, head: str) -> tuple[int, str | None]:
        if value is None:
            return 0, None
        if not head:
            if not value.startswith('{"schema":'):
                return 0, value
            head = self._last_heads.get(topic, "")
            if not (head and value.startswith(head)):
                head, payload, _ = value.partition('"payload":')
                if not payload:
                    return 0, value
                head = self._last_heads[topic] = head + payload
            value = value[len(head) :]
        number = self._heads.get(head, 0)
        if not number:
            if self._heads_size + len(head) > HEADS_BYTES:
                return 0, head + value
            number = self._heads[head] = len(self._heads)
            self._heads_size += len(head)
        return number, value

    def chunk(self) -> Chunk:
        groups = self._groups()
        read = sum(map(len, groups))
        if not self._in_order:
            groups = _distinct(groups)
        batches = []
        for rows in groups:
            batches.append(arrow_batch(rows, ARROW_SCHEMA))
            rows.clear()  # for the memory
        records = pa.Table.from_batches(batches, ARROW_SCHEMA)
        return Chunk(records, list(self._heads), self._offsets, read - records.num_rows, self._invalid, self.taken)

    def _groups(self) -> list[list[_Row]]:
        """The rows by data file. A large topic has its own, so that a model of one topic reads little of the others."""
        groups: list[list[_Row]] = []
        rest: list[_Row] = []
        rest_size = 0
        for topic in sorted(self._rows):
            rows, size = self._rows.pop(topic), self._sizes[topic]
            if size >= FILE_BYTES // 2:
                step = -(-len(rows) // max(1, round(size / FILE_BYTES)))
                groups += [rows[at : at + step] for at in range(0, len(rows), step)]
                continue
            if rest and rest_size + size > FILE_BYTES:
                groups.append(rest)
                rest, rest_size = [], 0
            rest += rows
            rest_size += size
        return [*groups, rest] if rest else groups


def _distinct(groups: list[list[_Row]]) -> list[list[_Row]]:
    """Rows without those that repeat coordinates, key and value of an earlier one."""
    seen: set[_Row] = set()
    kept: list[list[_Row]] = []
    for rows in groups:
        kept.append([])
        for row in rows:
            if row[2] is not None:
                identity = (*row[:3], *row[4:7])
                if identity in seen:
                    continue
                seen.add(identity)
            kept[-1].append(row)
    return kept


def chunks(files: list[File], ledger: Ledger, notes: list[str]) -> Iterator[Chunk]:
    """The new records of the files. Each chunk is read while Spark commits the one before it."""
    found = _Reading(ledger, notes).chunks(files)
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, found, None)
        while (chunk := coming.result()) is not None:
            coming = reader.submit(next, found, None)
            yield chunk


class _Reading:
    """Files as they are read, without repeating what the ledger has."""

    def __init__(self, ledger: Ledger, notes: list[str]) -> None:
        self._files = ledger.files
        self._contents = dict(ledger.contents)
        self._sizes = {size_of(taken.whole) for _, taken in self._contents.values()}  # 0: not known
        self._notes = notes
        self._chunk = _Gathering()
        self._blocks = SchemaBlocks()

    def chunks(self, files: list[File]) -> Iterator[Chunk]:
        for path in files:
            try:
                yield from self._chunks_of(path)
            finally:
                if isinstance(path, StoredObject):
                    path.close()
        if self._chunk.taken:
            yield self._chunk.chunk()

    def _chunks_of(self, path: File) -> Iterator[Chunk]:
        """Add the new records of a file; the chunks are those that are full."""
        name, taken = str(path), self._files.get(str(path), Taken())
        size = path.stat().st_size
        if not size:
            self._notes.append(f"{path}: the file is empty")
            return
        now, state = times(path), _state(path)
        if is_unchanged(taken.whole, now):
            return
        digest = ""
        if {size, 0} & self._sizes:
            digest = file_digest(path)
            if self._has_landed(path, taken, digest, described(digest, now)):
                return
        taken, text = self._beginning(path, taken)
        last, rest = None, Rest()
        for record in read_records(path, taken, text, rest, self._blocks):
            if self._chunk.size >= CHUNK_BYTES:  # and there is more: no chunk is empty
                if last is not None:
                    self._chunk.taken[name] = Taken(last.end, last.line, text.hexdigest())
                yield self._chunk.chunk()
                self._chunk = _Gathering()
            self._chunk.add(name, record)
            last = record
        if last is None and not taken.bytes:
            self._notes.append(f"{path}: {_without_records(rest)}")
            return
        whole = ""
        with suppress(FileNotFoundError):  # a file that is rotated is moved, deleted or cut while it is read
            if not digest:
                is_read = last is not None and last.end == size and not is_compressed(path)
                digest = text.hexdigest() if is_read else file_digest(path)
            if _state(path) == state:  # else it is of another content than was read
                whole = described(digest, now)
        # Where there is no record, all that it has was taken by a run that died, or what came is not complete.
        as_taken = Taken(last.end, last.line, text.hexdigest(), whole) if last else replace(taken, whole=whole)
        self._chunk.taken[name] = as_taken
        if whole:
            self._contents[digest] = name, as_taken
            self._sizes.add(size)
        if rest.size:
            problem = f"{rest.size} bytes at the end are no complete record: still being written, or cut off"
            self._notes.append(f"{path}: {problem}")

    def _has_landed(self, path: File, taken: Taken, digest: str, whole: str) -> bool:
        """Whether the content of a file has landed, under its name or another one."""
        name = str(path)
        if taken.whole.partition(" ")[0] == digest:
            if whole != taken.whole:  # its times are others
                self._chunk.taken[name] = replace(taken, whole=whole)
            return True
        if digest not in self._contents:
            return False
        original, as_taken = self._contents[digest]
        same = f"same content as {original}{' had' if original == name else ''}"
        self._notes.append(f"{path}: {same}, which has landed; skipped")
        self._chunk.taken[name] = replace(as_taken, whole=whole)  # for when the other one grows or goes
        return True

    def _beginning(self, path: File, taken: Taken) -> tuple[Taken, Any]:
        """After what to read a file, and the hash of that."""
        if not taken.bytes:
            return taken, hashlib.sha256()
        before = text_hash(path, taken.bytes)
        if before and taken.digest == before.hexdigest():
            return taken, before
        self._notes.append(f"{path}: the file was replaced since it was landed; all of it is landed again")
        return Taken(), hashlib.sha256()


def _state(path: File) -> tuple[int, ...] | None:
    """What tells a file that was replaced, cut or written to meanwhile from the one that was looked at."""
    try:
        state = path.stat()
    except FileNotFoundError:
        return None
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns


def _without_records(rest: Rest) -> str:
    """Why nothing of a file can be landed."""
    if not rest.size:
        return "the file holds no records"
    if rest.begin.startswith((b"{", b"[")):
        return f"its first record, of {rest.size} bytes so far, has no end: still being written, or cut off"
    return f"no records: expected JSON, and the file begins with {rest.begin!r}"
