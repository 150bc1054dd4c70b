"""Lands Kafka records, from files or from topics, in the bronze table of a system, verbatim and exactly once.

A landing is one commit or several, each with a batch number of its own. The number is claimed by the commit
itself: it overwrites what has that number, checked against the table as it was read, so of two loaders at the
same number one is refused and starts over. Whoever commits batch n has therefore seen all batches before n, and
what has landed of each file and of each partition is known from the bronze table: the ledger beside it
(`<system>__files`) is a summary, brought up to date from bronze where a loader died between the two commits. What was
deleted from bronze, or taken back, the ledger alone knows.
"""

import glob
import hashlib
import os
import time
import uuid
from collections.abc import Callable, Iterator, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from scripts.errors import LakehouseError
from scripts.kafka import Offsets, RecordsGoneError, Topics
from scripts.records import Record, Rest, Taken, described, file_digest, is_unchanged, read_records, text_hash, times

CHUNK_BYTES = 64 << 20  # text of one commit, kept in memory; repeated schema blocks do not count
FILE_BYTES = 16 << 20  # text of one data file, likewise
HEADS_BYTES = 1 << 20  # text of the schema blocks of one commit
CHUNK_OFFSETS = 200_000  # of topics, in one commit
CHECKED_OFFSETS = 100  # by which a topic is known again
WITH_RECORDS = (  # of a snapshot; a commit of none leaves its number to the next one
    "summary['added-records'] is not null"
)
KAFKA = "kafka:"  # what a partition is called in the ledger: kafka:<topic>/<partition>
ATTEMPTS = 20

BRONZE_COLUMNS = """
    topic string comment 'Kafka topic; for a bare value the topic that Debezium would have used',
    partition int comment 'Kafka partition; null for a bare value',
    offset bigint comment 'Kafka offset; null for a bare value',
    timestamp timestamp comment 'Kafka timestamp',
    key string comment 'Key, byte for byte',
    value string comment 'Value, byte for byte; null is a tombstone',
    headers array<struct<key: string, value: binary>> comment 'Kafka headers',
    batch bigint comment 'Number of the landing commit, from 1; none is given twice',
    landed_at timestamp comment 'When the batch was landed',
    file string comment 'File that the record was read from; null where it came from Kafka itself',
    line bigint comment 'Line in the file, from 1',
    line_end bigint comment 'Bytes of the uncompressed file up to the end of the line',
    error string comment 'Why it is no record; null for a record',
    raw binary comment 'What is no record: the bytes of the line, or key and value in base64 where they came from Kafka'
"""
# Each commit writes all of a table's metadata anew; Iceberg would keep a hundred of these files in mind, and delete
# none.
METADATA_PROPERTIES = {
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "10",
}
BRONZE_PROPERTIES = {
    **METADATA_PROPERTIES,
    "format-version": "3",
    # Events are up to forty times as large when they are read as in their files. For Iceberg small files share a task,
    # up to
    # 16 MB: where each counts for more than half of that, all cores read what landed at once.
    "read.split.open-file-cost": str(9 * 1024 * 1024),
    "write.distribution-mode": "none",
    "write.parquet.compression-codec": "zstd",
    "write.parquet.compression-level": "1",
    "write.metadata.metrics.column.value": "counts",
    "write.metadata.metrics.column.key": "counts",
    "write.metadata.metrics.column.raw": "none",
    "write.metadata.metrics.column.headers": "none",
    "write.metadata.metrics.column.topic": "full",
    "write.metadata.metrics.column.file": "full",
    # Values begin with the same kilobytes of schema block: comparing them for a minimum costs as much as writing them.
    "write.parquet.stats-enabled.column.key": "false",
    "write.parquet.stats-enabled.column.value": "false",
    "write.parquet.dict-encoding-enabled.column.value": "false",
    "commit.retry.num-retries": "20",
}
LEDGER_COLUMNS = """
    file string comment 'A file, or kafka:<topic>/<partition>; empty where the batch was taken back from bronze',
    bytes bigint comment 'Bytes taken of the uncompressed file; of a partition the offset to go on with',
    lines bigint comment 'Lines taken; of a partition the offset of the last record',
    digest string comment 'Digest of the bytes taken; of a partition the hash of the last record',
    file_digest string comment 'Digest and times of the file as it stood when all of it was taken',
    batch bigint comment 'The batch that took the file so far, or the newest one where nothing in it was new',
    offsets array<struct<topic: string, partition: int, offset: bigint>>
        comment 'Highest offsets up to the batch, in the first of its rows; null where nothing was new'
"""
ARROW_SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("key", pa.string()),
        ("head", pa.int32()),
        ("value", pa.string()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
        ("file", pa.string()),
        ("line", pa.int64()),
        ("line_end", pa.int64()),
        ("error", pa.string()),
        ("raw", pa.binary()),
    ]
)
LEDGER_SCHEMA = pa.schema(
    [
        ("file", pa.string()),
        ("bytes", pa.int64()),
        ("lines", pa.int64()),
        ("digest", pa.string()),
        ("file_digest", pa.string()),
        ("batch", pa.int64()),
        ("offsets", pa.list_(pa.struct([("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64())]))),
    ]
)

RECOVERED_BY = ["topic", "partition", "offset", "timestamp", "key", "value", "raw"]
IDENTITY = ["topic", "partition", "offset", "content"]
Place = tuple[str | None, int | None]  # topic and partition
_Row = tuple[Any, ...]  # in the order of its schema


@dataclass
class Landed:
    """What one call of `land_files` or `land_topics` did."""

    records: int = 0
    repeated: int = 0  # records that bronze already held
    invalid: int = 0  # lines that are no record; landed with their reason
    batches: list[int] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)  # what was deleted before it was read
    gaps: dict[str, int] = field(default_factory=dict)  # topic → offsets that hold no record


@dataclass(frozen=True)
class _Chunk:
    """Records that will be one commit, and how far each file is taken once it is done."""

    records: pa.Table
    heads: list[str]  # `head` counts from 0 in these; the value is head and `value`
    spans: dict[Place, tuple[int, int]]  # lowest and highest offset
    repeated: int  # records left out, as they stand in the chunk already
    invalid: int
    taken: dict[str, Taken]


@dataclass(frozen=True)
class _Span:
    """Offsets of topics that will be one commit, and with which offset each partition goes on once it is done."""

    offsets: Offsets
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
        self._last_heads: dict[str, tuple[int, str]] = {}  # of each topic: most values begin as the one before
        self._spans: dict[Place, tuple[int, int]] = {}
        self._in_order = True
        self._invalid = 0
        self._rows: dict[str, list[_Row]] = {}
        self._sizes: dict[str, int] = {}

    def add(self, file: str, record: Record) -> None:
        if record.offset is not None:
            place = (record.topic, record.partition)
            low, high = self._spans.get(place, (record.offset, -1))
            self._in_order &= record.offset > high
            self._spans[place] = (min(low, record.offset), max(high, record.offset))
        self._invalid += record.error is not None
        topic = record.topic or ""
        head, value = self._cut(topic, record.value)
        timestamp = None if record.timestamp is None else record.timestamp * 1000
        row = (*record[:3], timestamp, record.key, head, value, record.headers, file, *record[7:])
        size = 64 + len(value or "") + len(record.key or "") + len(record.raw or b"")
        self._rows.setdefault(topic, []).append(row)
        self._sizes[topic] = self._sizes.get(topic, 0) + size
        self.size += size

    def _cut(self, topic: str, value: str | None) -> tuple[int, str | None]:
        if value is None or not value.startswith('{"schema":'):
            return 0, value
        number, head = self._last_heads.get(topic, (0, ""))
        if not (number and value.startswith(head)):
            before, payload, _ = value.partition('"payload":')
            head = before + payload
            number = self._heads.get(head, 0)
            if not number:
                if not payload or self._heads_size + len(head) > HEADS_BYTES:
                    return 0, value
                number = self._heads[head] = len(self._heads)
                self._heads_size += len(head)
            self._last_heads[topic] = number, head
        return number, value[len(head) :]

    def chunk(self) -> _Chunk:
        groups = self._groups()
        read = sum(map(len, groups))
        if not self._in_order:
            groups = _distinct(groups)
        batches = []
        for rows in groups:
            batches.append(_arrow_batch(rows, ARROW_SCHEMA))
            rows.clear()  # for the memory
        records = pa.Table.from_batches(batches, ARROW_SCHEMA)
        return _Chunk(records, list(self._heads), self._spans, read - records.num_rows, self._invalid, self.taken)

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


def event_files(events: str, say: Callable[[str], None] = lambda _: None) -> list[Path]:
    """The files that a path, a folder or a glob pattern names, each once, sorted.

    Of a folder, also of one that a pattern matches, these are all files below it, also in folders that it links to.
    Files and folders below it that begin with `.` or `_` are left out: half-written files and markers of the programs
    that write folders (`.part`, `_SUCCESS`, `_temporary/`). A path or a pattern names such a file, too.

    Args:
        say: called with a line about files that are left out.

    Raises:
        LakehouseError: nothing is there, or a folder or a link in it cannot be read.
    """
    path = Path(events)
    hidden: list[Path] = []
    if path.is_dir():
        found, hidden = _files_below(path)
    elif path.exists():
        found = [path]
    else:
        found = []
        for match in map(Path, glob.glob(events, recursive=True)):
            _refuse_broken_link(match)
            if match.is_dir():
                hidden_parts = [part for part in match.parts if part.startswith((".", "_"))]
                is_hidden = any(
                    not any(named[0] == part[0] and fnmatch(part, named) for named in path.parts)
                    for part in hidden_parts
                )
                below, left_out = ([], [match]) if is_hidden else _files_below(match)
                found, hidden = found + below, hidden + left_out
            elif match.is_file():
                found.append(match)
    if not found:
        what = "the folder holds no files" if path.is_dir() else "there is no such file, folder or match"
        what += f" but {len(hidden)} whose names begin with . or _" if hidden else ""
        raise LakehouseError(f"EVENTS={events}: {what}. Name a file, a folder or a glob of JSON Lines files.")
    if set(hidden) - set(found):
        say(f"{events}: {len(set(hidden) - set(found))} files or folders skipped, as their names begin with . or _")
    files = sorted({file.resolve() for file in found})
    for file in files:
        try:
            str(file).encode()
        except UnicodeEncodeError:
            raise LakehouseError(
                f"{os.fsencode(file)!r}: the file's name is no UTF-8, so nothing can name its records. Rename it."
            ) from None
    return files


def _refuse_broken_link(path: Path) -> None:
    if path.is_symlink() and not path.exists():
        raise LakehouseError(f"{path}: the link leads nowhere. All that is in EVENTS has to be readable.")


def _files_below(folder: Path) -> tuple[list[Path], list[Path]]:
    """All files below a folder, through links, each folder once; and the files and folders that are left out for their
    names.
    """

    def refuse(error: OSError) -> None:
        raise LakehouseError(
            f"{error.filename}: the folder cannot be read ({error.strerror}). All that is in EVENTS has to be."
        )

    found, hidden, seen = list[Path](), list[Path](), set[Path]()
    for place, folders, names in os.walk(folder, onerror=refuse, followlinks=True):
        here = Path(place)
        seen.add(here.resolve())
        hidden += [here / name for name in (*folders, *names) if name.startswith((".", "_"))]
        folders[:] = [
            name for name in folders if not name.startswith((".", "_")) and (here / name).resolve() not in seen
        ]
        for path in (here / name for name in names if not name.startswith((".", "_"))):
            _refuse_broken_link(path)
            if path.is_file():
                found.append(path)
    return found, hidden


def land_files(
    spark: SparkSession, system: str, files: list[Path], say: Callable[[str], None] = lambda _: None
) -> Landed:
    """Land what is new in `files` in `bronze.<system>`.

    Args:
        spark: the session.
        system: name of the system, already checked to be a plain name.
        files: files of records in any of the forms of `scripts.records`.
        say: called with a line of progress.

    Raises:
        LakehouseError: a file is unreadable, or another loader kept winning.
    """

    def chunks(ledger: _Ledger, landed: Landed) -> Iterator[_Chunk]:
        return _read_ahead(_chunks(files, ledger, landed))

    return _land(spark, system, chunks, _commit, say, {str(file) for file in files})


def land_topics(
    spark: SparkSession,
    system: str,
    topics: Topics,
    say: Callable[[str], None] = lambda _: None,
    warn: Callable[[str], None] = lambda _: None,
) -> Landed:
    """Land what is new in topics of a Kafka in `bronze.<system>`.

    Args:
        spark: the session, with Spark's Kafka connector.
        system: name of the system, already checked to be a plain name.
        topics: where and which they are.
        say: called with a line of progress.
        warn: called with each of `Landed.lost`, before anything is committed: no later run finds it again, whatever
            this one does.

    Raises:
        LakehouseError: the broker does not answer or refuses, a topic does not exist, or another loader kept winning.
    """

    warned = set[str]()

    def spans(ledger: _Ledger, landed: Landed) -> Iterator[_Span]:
        found = _spans(spark, system, topics, ledger.files, landed)
        while True:
            span = next(found, None)
            for told in landed.lost:
                if told not in warned:
                    warned.add(told)
                    warn(told)
            if span is None:
                return
            yield span

    def commit(*arguments: Any) -> bool:
        try:
            return _commit_span(topics, *arguments)
        except _OtherLoader:
            raise
        except Exception as error:
            raise topics.explained(error) from error

    landed = _land(spark, system, spans, commit, say)
    if landed.gaps:
        told = ", ".join(f"{topic} {offsets:,}" for topic, offsets in sorted(landed.gaps.items()))
        landed.notes.append(f"offsets that hold no record (compacted, or marks of transactions): {told}")
    return landed


def _land(
    spark: SparkSession,
    system: str,
    chunks: Callable[..., Iterator[Any]],
    commit: Callable[..., bool],
    say: Any,
    files: Set[str] = frozenset(),
) -> Landed:
    """Commit each of the chunks, which go on where the ledger says, under a number of its own."""
    table = f"bronze.`{system}`"
    create_bronze(spark, system)
    landed = Landed()
    refused: Exception | None = None
    for _ in range(ATTEMPTS):
        try:
            snapshot, batch, given = _table_state(spark, table)
            ledger, newest, given = _read_ledger(spark, system, snapshot, batch, given, files, landed)
            last = ledger.last
            seen: dict[str, Taken] = {}  # files of which nothing was new
            committed = False
            for chunk in chunks(ledger, landed):
                if committed:  # were the table rolled back meanwhile, the next commit would fail
                    snapshot, committed = _snapshot_of(spark, table, given), False
                is_new = commit(spark, table, chunk, given + 1, snapshot, newest, landed)
                if isinstance(chunk, _Span) and not chunk.offsets:
                    _write_ledger(spark, system, last, chunk.taken, None)
                    continue
                seen.update(chunk.taken)
                if not is_new:
                    continue
                last = given = given + 1
                committed = True
                landed.batches.append(given)
                if len(landed.batches) > 1:  # the number of a small landing is said once, at its end
                    say(f"{system}: {landed.records:,} records landed")
                _write_ledger(spark, system, given, seen, newest)
                seen = {}
            if seen:
                _write_ledger(spark, system, last, seen, None)
        except (_OtherLoader, RecordsGoneError) as error:
            refused = error
            continue
        # Those of an attempt that was refused come again.
        landed.notes, landed.lost = list(dict.fromkeys(landed.notes)), list(dict.fromkeys(landed.lost))
        return landed
    if isinstance(refused, RecordsGoneError):
        problem = "the broker keeps deleting records before they are read, or breaks off"
        remedy = "Raise the topics' retention and run again; what has landed stays"
        raise LakehouseError(f"{system}: {problem}; spark.log in LAKEHOUSE_DIR says more. {remedy}.")
    raise LakehouseError(f"{system}: another loader kept landing records in {table}. Wait for it and run again.")


def create_bronze(spark: SparkSession, system: str) -> None:
    """Create the bronze table and the ledger of a system where they are missing."""
    from scripts.spark import locked  # which reads the environment when it is imported

    with locked("create.lock"):  # two processes that create one namespace, or the catalog itself, would fail
        table, ledger = f"bronze.`{system}`", f"bronze.`{system}__files`"
        if spark.catalog.tableExists(table) and spark.catalog.tableExists(ledger):
            return
        spark.sql("create namespace if not exists bronze")
        properties, of_ledger = (
            ", ".join(f"'{name}' = '{value}'" for name, value in given.items())
            for given in (BRONZE_PROPERTIES, METADATA_PROPERTIES)
        )
        spark.sql(
            f"create table if not exists {table} ({BRONZE_COLUMNS}) using iceberg tblproperties ({properties},"
            f" {_new_id()})"
        )
        if _table_state(spark, table)[1:] == (
            0,
            0,
        ):  # without the ledger nothing tells whether numbers were given before
            spark.sql(f"alter table {table} set tblproperties ({_new_id()})")
        spark.sql(f"create table if not exists {ledger} ({LEDGER_COLUMNS}) using iceberg tblproperties ({of_ledger})")


def _new_id() -> str:
    """The property by which tables that were built from bronze know whether its batches are still those that they have
    merged.
    """
    return f"'cdc.id' = '{uuid.uuid4().hex}'"


class _OtherLoader(Exception):
    """Another loader has committed the batch number that this one tried to claim."""


def _table_state(spark: SparkSession, table: str) -> tuple[int | None, int, int]:
    """The current snapshot of the bronze table, the greatest batch in it, and the greatest that any snapshot landed."""
    landed = f"(select max(cast(summary['cdc-batch'] as bigint)) from {table}.snapshots where {WITH_RECORDS}) as landed"
    rows = spark.sql(f"select snapshot_id, {landed} from {table}.refs where name = 'main'").collect()
    if not rows:
        return None, 0, 0
    snapshot = rows[0].snapshot_id
    batch = _as_of(spark, table, snapshot).agg(F.max("batch").alias("batch")).collect()[0].batch
    return snapshot, batch or 0, rows[0].landed or 0


def _snapshot_of(spark: SparkSession, table: str, batch: int) -> int | None:
    """The snapshot that landed the records of a batch; None where it had none."""
    query = f"select snapshot_id from {table}.snapshots where summary['cdc-batch'] = '{batch}' and {WITH_RECORDS}"
    rows = spark.sql(query).collect()
    return rows[0].snapshot_id if rows else None


@dataclass(frozen=True)
class _Ledger:
    """What has landed of files and partitions."""

    files: dict[str, Taken]  # by name, as it stood when it was looked at last
    contents: dict[
        str, tuple[str, Taken]
    ]  # digest of a file that was taken as a whole → one that had it, and how far that is
    last: int  # the greatest batch that was not taken back, of which rows are where nothing is new


def _read_ledger(
    spark: SparkSession, system: str, snapshot: int | None, batch: int, given: int, wanted: Set[str], told: Landed
) -> tuple[_Ledger, dict[Place, int], int]:
    """What has landed, the highest offset of each partition, and the greatest number that was given.

    `snapshot` is that of bronze, `batch` the greatest in it, `given` the greatest of all its snapshots. Where a loader
    died, only the files that are wanted now are looked at again. Numbers of batches that were taken back or deleted
    from bronze are not given again: tables that merged them would not read the new ones. Batches that were taken back
    have one row without a file.

    Raises:
        _OtherLoader: more has landed since bronze was looked at.
    """
    table, ledger = f"bronze.`{system}`", f"bronze.`{system}__files`"
    rows = _ledger_rows(spark, ledger, batch)
    given = max([batch, given, *(row.newest.batch for row in rows)])
    back = [(row.newest.bytes, row.newest.batch) for row in rows if not row.file]  # after which batch, and up to which
    if any(after < batch <= last for after, last in back):  # they were put back
        with _conflicts():
            spark.sql(f"delete from {ledger} where file = '' and bytes < {batch} and batch >= {batch}")
        back = []
    numbers = {given, *(row.newest.batch for row in rows if row.file), *(row.last_commit for row in rows)}
    above = {number for number in numbers if number > batch and not any(after < number <= last for after, last in back)}
    if above:
        if _table_state(spark, table)[1] > batch:
            raise _OtherLoader
        if _was_taken_back(spark, table, snapshot, max(above)):
            told.notes.append(_forget(spark, system, batch, given))
            back.append((batch, given))
    # A loader that was stopped for long may have written its row after another one noted that its batch was taken back.
    is_back = any(after < given <= last for after, last in back)
    conditions = " and ".join(["file <> ''", *(f"batch not between {after + 1} and {last}" for after, last in back)])
    rows = _ledger_rows(spark, ledger, batch, conditions) if back else [row for row in rows if row.file]
    missing: set[int] = set()
    expected = set(range(1, batch + 1)).difference(*(range(after + 1, last + 1) for after, last in back))
    if (rows[0].commits if rows else 0) != len(
        expected
    ):  # a loader died between its two commits, or is between them now
        noted = spark.sql(f"select distinct batch from {ledger} where offsets is not null").collect()
        missing = expected - {row.batch for row in noted}
        # After that: what is noted in between is looked for once too often, never too little.
        rows = _ledger_rows(spark, ledger, batch, conditions)
    files: dict[str, Taken] = {}
    contents: dict[str, tuple[str, Taken]] = {}
    at: dict[str, tuple[int, str, int]] = {}
    newest: dict[Place, int] = {}
    for row in rows:
        taken = Taken(row.newest.bytes, row.newest.lines, row.newest.digest, row.newest.file_digest)
        order = row.newest.batch, row.newest.times, row.newest.bytes
        if order > at.get(row.file, (-1, "", -1)):
            at[row.file], files[row.file] = order, taken
        if row.content:
            contents[row.content] = row.file, taken
    last_commit = max((row.last_commit for row in rows), default=0)
    for row in spark.sql(f"select inline(offsets) from {ledger} where batch = {last_commit}").collect():
        newest[row.topic, row.partition] = row.offset
    if missing:
        landed = spark.table(table).where(F.col("batch").isin(*missing))
        place = "batch", F.col("line").alias("lines"), F.col("line_end").alias("bytes")
        coordinates = "topic", "partition", "offset", F.unix_millis("timestamp").alias("timestamp")
        entry = F.max(F.struct(*place, *coordinates, "key", "value", "raw")).alias("entry")
        for row in landed.where("file is not null").groupBy("file").agg(entry).collect():
            if row.file in wanted and row.entry.batch > at.get(row.file, (0, "", 0))[0]:
                files[row.file] = _recovered(row.file, row.entry)
        highest = F.max("offset").alias("highest")
        for row in landed.where("offset is not null").groupBy("topic", "partition").agg(highest).collect():
            _raise(newest, (row.topic, row.partition), row.highest)
        last = F.max(F.struct("batch", "offset")).alias("last")
        for row in landed.where("file is null").groupBy("topic", "partition").agg(last).collect():
            name = f"{KAFKA}{row.topic}/{row.partition}"
            if row.last.batch > at.get(name, (0, "", 0))[0]:
                files[name] = Taken(row.last.offset + 1)
    return _Ledger(files, contents, batch if is_back else given), newest, given


def _ledger_rows(spark: SparkSession, ledger: str, batch: int, condition: str = "true") -> list[Row]:
    """Of each file and content the newest row: of those of one batch the one of later times, then the longer one.

    Beside it how many batches up to `batch` are noted (`commits`, the same in each row), and the greatest of each that
    is. In time a ledger has a row for each partition and batch.
    """
    times = "if(instr(file_digest, ' ') > 0, substr(file_digest, instr(file_digest, ' ') + 1), '') as times"
    rows: list[Row] = spark.sql(f"""
        select
            file,
            substring_index(file_digest, ' ', 1) as content,
            max(struct(batch, {times}, bytes, lines, digest, file_digest)) as newest,
            (
                select count(distinct batch) from {ledger}
                where offsets is not null and batch <= {batch} and {condition}
            ) as commits,
            max(if(offsets is not null, batch, 0)) as last_commit
        from {ledger}
        where {condition}
        group by file, content, if(file = '', batch, 0)
        """).collect()
    return rows


def _was_taken_back(spark: SparkSession, table: str, current: int | None, batch: int) -> bool:
    """Whether bronze, at the snapshot `current`, lacks a batch because it was rolled back or made anew; else it was
    deleted.

    Where the snapshots that would tell are expired, it is taken for deleted: what tables have merged of it stays, and
    they are not built anew without it.
    """
    if current is None:
        return True
    rows = spark.sql(f"select snapshot_id, parent_id, committed_at from {table}.snapshots").collect()
    snapshots = {row.snapshot_id: row for row in rows}
    landed = snapshots.get(_snapshot_of(spark, table, batch))
    if landed is None:
        return False
    while current in snapshots and current != landed.snapshot_id:
        oldest = snapshots[current]
        current = oldest.parent_id
    return current != landed.snapshot_id and (current is None or oldest.committed_at < landed.committed_at)


def _forget(spark: SparkSession, system: str, batch: int, given: int) -> str:
    """Forget the files and offsets of the batches after `batch`, which were taken back. Returns what to tell.

    Tables that were built of them are not what is in bronze: they refuse it by its new identity. Their numbers are kept
    in mind.
    """
    table, ledger = f"bronze.`{system}`", f"bronze.`{system}__files`"
    spark.sql(f"alter table {table} set tblproperties ({_new_id()})")
    with _conflicts():
        spark.sql(f"delete from {ledger} where batch > {batch} and batch <= {given}")
        spark.sql(f"insert into {ledger} select '', {batch}, 0, '', '', {given}, null")
    return (
        f"{table} ends with batch {batch}, where {given} had landed: what was taken back lands again where it is among"
        " the events named. Land all that is missing, then build its tables anew: .venv/bin/dbt run --full-refresh"
        f" --select source:bronze.{system}+"
    )


def _raise(newest: dict[Place, int], place: Place, offset: int) -> None:
    newest[place] = max(offset, newest.get(place, -1))


def _recovered(file: str, entry: Row) -> Taken:
    """How far a file is taken whose last record in bronze is `entry`; no digest fits if another record stands there."""
    path = Path(file)
    taken = Taken(entry.bytes, entry.lines, "gone")
    seen = text_hash(path, entry.bytes) if path.exists() else None
    if seen:
        there = next((record for record in read_records(path, Taken()) if record.line >= entry.lines), None)
        is_the_same = there and all(getattr(there, name) == entry[name] for name in RECOVERED_BY)
        if there and is_the_same and (there.end == entry.bytes or _ends_now(path, seen, entry.bytes, there.end)):
            return replace(taken, digest=seen.hexdigest())
    return taken


def _ends_now(path: Path, seen: Any, end: int, now: int) -> bool:
    """Whether a line that had no line break, and ended at `end`, has got nothing but that since."""
    found = text_hash(path, now) if 0 < now - end <= 2 else None
    for line_break in (b"\n", b"\r\n"):
        expected = seen.copy()
        expected.update(line_break)
        if found and found.digest() == expected.digest():
            return True
    return False


def _read_ahead(chunks: Iterator[_Chunk]) -> Iterator[_Chunk]:
    """The chunks, each of which is read while Spark commits the one before it."""
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, chunks, None)
        while (chunk := coming.result()) is not None:
            coming = reader.submit(next, chunks, None)
            yield chunk


def _state(path: Path) -> tuple[int, ...] | None:
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


def _chunks(files: list[Path], ledger: _Ledger, landed: Landed) -> Iterator[_Chunk]:
    """The new records of the files in pieces of about `CHUNK_BYTES`, without repeating what the ledger has."""
    contents = dict(ledger.contents)
    chunk = _Gathering()
    for path in files:
        name = str(path)
        taken = ledger.files.get(name, Taken())
        if not path.stat().st_size:
            landed.notes.append(f"{path}: the file is empty")
            continue
        now = times(path)
        if is_unchanged(taken.whole, now):
            continue
        state = _state(path)
        digest = file_digest(path)
        whole = described(digest, now)
        if taken.whole.partition(" ")[0] == digest:
            if whole != taken.whole:  # its times are others
                chunk.taken[name] = replace(taken, whole=whole)
            continue
        if digest in contents:
            original, as_taken = contents[digest]
            landed.notes.append(
                f"{path}: same content as {original}{' had' if original == name else ''}, which has landed; skipped"
            )
            chunk.taken[name] = replace(as_taken, whole=whole)  # for when the other one grows or goes
            continue
        text = hashlib.sha256()
        if taken.bytes:
            before = text_hash(path, taken.bytes)
            if before and taken.digest == before.hexdigest():
                text = before
            else:
                landed.notes.append(f"{path}: the file was replaced since it was landed; all of it is landed again")
                taken = Taken()
        last, rest = None, Rest()
        for record in read_records(path, taken, text, rest):
            if chunk.size >= CHUNK_BYTES:  # and there is more: no chunk is empty
                if last is not None:
                    chunk.taken[name] = Taken(last.end, last.line, text.hexdigest())
                yield chunk.chunk()
                chunk = _Gathering()
            chunk.add(name, record)
            last = record
        if last is None and not taken.bytes:
            landed.notes.append(f"{path}: {_without_records(rest)}")
            continue
        if _state(path) != state:
            whole = ""  # of another content than was read: a file that is rotated is cut while it is read
        # Where there is no record, all that it has was taken by a run that died, or what came is not complete.
        as_taken = Taken(last.end, last.line, text.hexdigest(), whole) if last else replace(taken, whole=whole)
        chunk.taken[name] = as_taken
        if whole:
            contents[digest] = name, as_taken
        if rest.size:
            landed.notes.append(
                f"{path}: {rest.size} bytes at the end are no complete record: still being written, or cut off"
            )
    if chunk.taken:
        yield chunk.chunk()


def _commit(
    spark: SparkSession,
    table: str,
    chunk: _Chunk,
    batch: int,
    snapshot: int | None,
    newest: dict[Place, int],
    landed: Landed,
) -> bool:
    """Commit the chunk as `batch` and raise `newest`; False where bronze holds all of it already.

    `snapshot` is the newest that is known, at which `batch` is not yet there.

    Raises:
        _OtherLoader: somebody else has committed that batch.
    """
    records = _not_landed(spark, table, chunk, newest)
    kept = records.num_rows
    repeated = chunk.repeated + chunk.records.num_rows - kept
    if not kept:
        landed.repeated += repeated
        return False
    _write(table, _frame(spark, records, chunk.heads), batch, snapshot)
    landed.records += kept
    landed.repeated += repeated
    landed.invalid += chunk.invalid
    for place, (_, high) in chunk.spans.items():
        _raise(newest, place, high)
    return True


def _commit_span(
    topics: Topics,
    spark: SparkSession,
    table: str,
    span: _Span,
    batch: int,
    snapshot: int | None,
    newest: dict[Place, int],
    landed: Landed,
) -> bool:
    """As `_commit`, for offsets of topics; Spark reads them and writes them."""
    if not span.offsets:
        return False
    records = topics.read(spark, span.offsets)
    repeated: dict[Place, int] = {}
    if any(start <= newest.get(place, -1) for place, (start, _) in span.offsets.items()):
        found = _compared(spark, table, records, span.offsets)
        repeated = {place: known for place, (_, known) in found.items()}
        _remember(span, records)
        if all(known == read for read, known in found.values()):
            _count(landed, span.offsets, repeated, {})
            return False
        records = _identified(records).join(_held(spark, table, span.offsets), IDENTITY, "left_anti").drop("content")
    _write(table, records, batch, snapshot)
    # Of all offsets none may hold a record: then the number is still free. The table may be another again by now.
    committed = _snapshot_of(spark, table, batch)
    kept = {} if committed is None else _remember(span, _as_of(spark, table, committed).where(F.col("batch") == batch))
    _count(landed, span.offsets, repeated, {place: row.n for place, row in kept.items()})
    landed.invalid += sum(row.bad for row in kept.values())
    for place, (_, end) in span.offsets.items():
        _raise(newest, place, end - 1)
    return bool(kept)


def _as_of(spark: SparkSession, table: str, snapshot: int) -> DataFrame:
    return spark.sql(f"select * from {table} version as of {snapshot}")


def _remember(span: _Span, records: DataFrame) -> dict[Place, Row]:
    """Note the last record of each partition, by which it is known again; returns how many there are."""
    columns = F.count("*").alias("n"), F.count("error").alias("bad"), F.max(F.struct("offset", "digest")).alias("last")
    marked = _marked(records).groupBy("topic", "partition")
    found = {(row.topic, row.partition): row for row in marked.agg(*columns).collect()}
    for (topic, partition), row in found.items():
        name = f"{KAFKA}{topic}/{partition}"
        taken = span.taken.get(name)
        if taken and (not taken.digest or row.last.offset >= taken.lines):
            span.taken[name] = replace(taken, lines=row.last.offset, digest=str(row.last.digest))
    return found


def _count(landed: Landed, offsets: Offsets, repeated: dict[Place, int], kept: dict[Place, int]) -> None:
    landed.records += sum(kept.values())
    landed.repeated += sum(repeated.values())
    for (topic, partition), (start, end) in offsets.items():
        gap = end - start - repeated.get((topic, partition), 0) - kept.get((topic, partition), 0)
        if gap:
            landed.gaps[topic] = landed.gaps.get(topic, 0) + gap


def _write(table: str, records: DataFrame, batch: int, snapshot: int | None) -> None:
    """Commit records as `batch`.

    Raises:
        _OtherLoader: somebody else has committed that batch.
    """
    writer = (
        records.withColumn("batch", F.lit(batch).cast("bigint"))
        .withColumn("landed_at", F.current_timestamp())
        .writeTo(table)
        .option("isolation-level", "serializable")
        .option("snapshot-property.cdc-batch", str(batch))
    )
    if snapshot is not None:
        writer = writer.option("validate-from-snapshot-id", str(snapshot))
    with _conflicts():
        writer.overwrite(F.col("batch") == F.lit(batch))


@contextmanager
def _conflicts() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if "ValidationException" in str(error) or "Found conflicting files" in str(error):
            raise _OtherLoader from error
        raise


def _frame(spark: SparkSession, records: pa.Table, heads: list[str]) -> DataFrame:
    head = F.get(F.array(*map(F.lit, heads)), F.col("head"))
    return spark.createDataFrame(records).withColumn("value", F.concat(head, "value")).drop("head")


def _not_landed(spark: SparkSession, table: str, chunk: _Chunk, newest: dict[Place, int]) -> pa.Table:
    """The records of the chunk that bronze does not hold, by coordinates and content.

    Bronze is read only where an offset is not above all that have landed, and there in one range of offsets, so that
    Iceberg leaves out most files unread.
    """
    again = {place: span for place, span in chunk.spans.items() if span[0] <= newest.get(place, -1)}
    if not again:
        return chunk.records
    old = _held(spark, table, {place: (low, high + 1) for place, (low, high) in again.items()})
    new = _identified(_frame(spark, chunk.records, chunk.heads))
    found = new.join(old, IDENTITY, "left_semi").select("file", "line")
    landed = {(row.file, row.line) for row in found.collect()}
    lines = zip(chunk.records["file"].to_pylist(), chunk.records["line"].to_pylist(), strict=True)
    return chunk.records.filter(pa.array([line not in landed for line in lines], pa.bool_()))


def _identified(records: DataFrame) -> DataFrame:
    return records.withColumn("content", F.xxhash64("key", "value", "raw"))


def _marked(records: DataFrame) -> DataFrame:
    """With a digest to know the very record again: a tombstone may be the same as one of a topic's former life, its
    time is not.
    """
    return records.withColumn("digest", F.xxhash64("key", "value", "raw", "timestamp"))


def _held(spark: SparkSession, table: str, offsets: dict[Any, tuple[int, int]]) -> DataFrame:
    """The identities of records that bronze holds, of at least these offsets: one range, so that most files are left
    unread.
    """
    topics = {topic for topic, _ in offsets}
    lowest, highest = min(start for start, _ in offsets.values()), max(end for _, end in offsets.values()) - 1
    old = spark.table(table).where(F.col("topic").isin(*topics) & F.col("offset").between(lowest, highest))
    return _identified(old).select(*IDENTITY)


def _compared(spark: SparkSession, table: str, records: DataFrame, offsets: Offsets) -> dict[Place, tuple[int, int]]:
    """How many records each partition has, and how many of these bronze holds."""
    old = _held(spark, table, offsets).withColumn("is_held", F.lit(True))
    both = _identified(records).select(*IDENTITY).join(old, IDENTITY, "left").groupBy("topic", "partition")
    counted = both.agg(F.count("*").alias("read"), F.count("is_held").alias("known")).collect()
    return {(row.topic, row.partition): (row.read, row.known) for row in counted}


def _spans(
    spark: SparkSession, system: str, topics: Topics, ledger: dict[str, Taken], landed: Landed
) -> Iterator[_Span]:
    """The new offsets of the topics in pieces of `CHUNK_OFFSETS`, a partition after the other."""
    offsets = topics.offsets(spark)
    taken = _gone(topics, offsets, ledger, landed)
    todo = _new_offsets(spark, system, topics, offsets, ledger, landed)
    known = {name: entry for name, entry in ledger.items() if name.startswith(KAFKA)}
    # Where a partition begins is noted before anything is committed: should this run end, the next takes nothing before
    # for lost.
    starts = {f"{KAFKA}{topic}/{partition}": start for (topic, partition), (start, _) in todo.items()}
    begun = {name: Taken(start) for name, start in starts.items() if start and name not in known and name not in taken}
    if begun:
        yield _Span({}, begun)
        known |= begun
    span: Offsets = {}
    left = CHUNK_OFFSETS
    for (topic, partition), (start, end) in todo.items():
        if start == end:  # all of it is gone: told once
            taken[f"{KAFKA}{topic}/{partition}"] = Taken(end)
        while start < end:
            upto = min(end, start + left)
            span[topic, partition] = (start, upto)
            name = f"{KAFKA}{topic}/{partition}"
            before = known.get(name, Taken())
            # Its last record stays known until there is a later one; of what is read from its start it is another's.
            taken[name] = replace(before, bytes=upto) if before.bytes <= start else Taken(upto)
            left -= upto - start
            start = upto
            if not left:
                yield _Span(span, taken)
                known.update(taken)  # as the commit has left it
                span, taken, left = {}, {}, CHUNK_OFFSETS
    if span or taken:
        yield _Span(span, taken)


def _new_offsets(
    spark: SparkSession, system: str, topics: Topics, offsets: Offsets, ledger: dict[str, Taken], landed: Landed
) -> Offsets:
    """The offsets that are to be read: those after the last that was read, or all where the topic is not the one that
    was read.

    Reading again is harmless, as what bronze holds does not land again; taking another topic for the same would lose
    records.
    """
    read_so_far = {place: ledger.get(f"{KAFKA}{place[0]}/{place[1]}", Taken()) for place in offsets}
    topics_read = {topic for (topic, _), taken in read_so_far.items() if taken.bytes}
    new, checked, marked = {}, {}, {}
    for place, (earliest, latest) in offsets.items():
        upto = read_so_far[place].bytes
        name = f"{place[0]}/{place[1]}"
        if latest < upto:
            landed.notes.append(
                f"{name} ends at offset {latest:,}, and {upto:,} had been read: it was created anew or cut. Read from"
                " its start" + (f", offset {earliest:,}: what it held before that is not known" if earliest else "")
            )
            new[place] = (earliest, latest)
        elif not upto and earliest and place[0] in topics_read:
            landed.lost.append(f"{name}: offsets 0 to {earliest - 1:,} were deleted before they were read")
            new[place] = (earliest, latest)
        elif not upto and earliest:
            landed.notes.append(
                f"{name} begins at offset {earliest:,}: older records were deleted before the first run"
            )
            new[place] = (earliest, latest)
        elif earliest > upto:
            landed.lost.append(f"{name}: offsets {upto:,} to {earliest - 1:,} were deleted before they were read")
            new[place] = (earliest, latest)
        elif upto:
            if latest > upto:
                new[place] = (upto, latest)
            last = read_so_far[place].lines
            if read_so_far[place].digest and earliest <= last < upto:
                marked[place] = (last, last + 1)
            else:
                checked[place] = (max(earliest, upto - CHECKED_OFFSETS), upto)
        elif latest:
            new[place] = (0, latest)
    held: dict[Place, tuple[int, int]] = {}
    try:
        if marked:
            for row in _marked(topics.read(spark, marked)).select("topic", "partition", "digest").collect():
                place = row.topic, row.partition
                held[place] = (1, int(str(row.digest) == read_so_far[place].digest))
        for place in marked.keys() - held.keys():  # compacted, or the mark of a transaction of another topic
            checked[place] = (
                max(offsets[place][0], read_so_far[place].bytes - CHECKED_OFFSETS),
                read_so_far[place].bytes,
            )
        checked = {place: (start, end) for place, (start, end) in checked.items() if start < end}
        if checked:
            held |= _compared(spark, f"bronze.`{system}`", topics.read(spark, checked), checked)
    except Exception as error:
        raise topics.explained(error) from error
    for place in {**checked, **marked}:
        read, known = held.get(place, (0, 0))
        if known < read or (not read and place in new):
            new[place] = offsets[place]
            why = (
                "holds other records than have landed at their offsets: it was created anew or cut"
                if read
                else "has no record left by which to know it again"
            )
            landed.notes.append(f"{place[0]}/{place[1]} {why}. Read from its start")
    return new


def _gone(topics: Topics, offsets: Offsets, ledger: dict[str, Taken], landed: Landed) -> dict[str, Taken]:
    """Partitions that were read before and are there no more: what the ledger is to forget."""
    forgotten = {}
    for name, taken in ledger.items():
        topic, _, partition = name.removeprefix(KAFKA).rpartition("/")
        if name.startswith(KAFKA) and taken.bytes and topics.has(topic) and (topic, int(partition)) not in offsets:
            landed.notes.append(f"{topic}/{partition} is there no more; {taken.bytes:,} offsets of it had been read")
            forgotten[name] = Taken()
    return forgotten


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


def _arrow_batch(rows: list[_Row], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(zip(*rows, strict=True), schema.types, strict=True)
    return pa.RecordBatch.from_arrays([pa.array(column, kind) for column, kind in columns], schema=schema)


def _write_ledger(
    spark: SparkSession, system: str, batch: int, taken: dict[str, Taken], newest: dict[Place, int] | None
) -> None:
    """Note how far the files are taken; `newest` are the highest offsets up to `batch`, None where nothing was
    committed.
    """
    offsets: list[Any] = [None if newest is None else []] * len(taken)
    if newest is not None:
        offsets[0] = [(*place, offset) for place, offset in newest.items()]
    entries = zip(taken.items(), offsets, strict=True)
    # A partition has no times: of two rows of one batch the later one counts, also where it is of fewer offsets.
    of_partition = f" {time.time_ns():020}" if newest is None else ""
    rows = [
        (file, to.bytes, to.lines, to.digest, of_partition if file.startswith(KAFKA) else to.whole, batch, highest)
        for (file, to), highest in entries
    ]
    frame = spark.createDataFrame(pa.Table.from_batches([_arrow_batch(rows, LEDGER_SCHEMA)]))
    frame.writeTo(f"bronze.`{system}__files`").append()
