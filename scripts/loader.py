"""Lands files of Kafka records in the bronze table of a system, verbatim and exactly once.

A landing is one commit or several, each with a batch number of its own. The number is claimed by the commit
itself: it overwrites what has that number, checked against the table as it was read, so of two loaders at the
same number one is refused and starts over. Whoever commits batch n has therefore seen all batches before n, and
what has landed of each file is known from the bronze table alone: the ledger beside it (`<system>__files`) is a
summary, brought up to date from bronze where a loader died between the two commits.
"""

import glob
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from scripts.errors import LakehouseError
from scripts.records import Record, Taken, file_digest, read_records, text_digest

CHUNK_BYTES = 128 << 20  # text of one commit, kept in memory
FILE_BYTES = 32 << 20  # text of one data file
ATTEMPTS = 20

BRONZE_COLUMNS = """
    topic string comment 'Kafka topic; for a bare value the topic that Debezium would have used',
    partition int comment 'Kafka partition; null for a bare value',
    offset bigint comment 'Kafka offset; null for a bare value',
    timestamp timestamp comment 'Kafka timestamp',
    key string comment 'Key, byte for byte',
    value string comment 'Value, byte for byte; null is a tombstone',
    headers array<struct<key: string, value: binary>> comment 'Kafka headers',
    batch bigint comment 'Number of the landing commit, from 1 without gaps',
    landed_at timestamp comment 'When the batch was landed',
    file string comment 'File that the record was read from',
    line bigint comment 'Line in the file, from 1',
    line_end bigint comment 'Bytes of the uncompressed file up to the end of the line',
    error string comment 'Why the line is no record; null for a record',
    raw binary comment 'The bytes of a line that is no record'
"""
BRONZE_PROPERTIES = {
    "format-version": "3",
    "write.distribution-mode": "none",
    "write.parquet.compression-codec": "zstd",
    "write.parquet.compression-level": "1",
    "write.metadata.metrics.column.value": "counts",
    "write.metadata.metrics.column.key": "counts",
    "write.metadata.metrics.column.raw": "none",
    "write.metadata.metrics.column.headers": "none",
    "write.metadata.metrics.column.topic": "full",
    "write.metadata.metrics.column.file": "full",
    "commit.retry.num-retries": "20",
}
ARROW_SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("key", pa.string()),
        ("value", pa.string()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
        ("file", pa.string()),
        ("line", pa.int64()),
        ("line_end", pa.int64()),
        ("error", pa.string()),
        ("raw", pa.binary()),
    ]
)


@dataclass
class Landed:
    """What one call of `land_files` did."""

    records: int = 0
    repeated: int = 0  # records that bronze already held
    invalid: int = 0  # lines that are no record; landed with their reason
    batches: list[int] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass
class _Chunk:
    """Records in memory that will be one commit, and how far each file is taken once it is done."""

    records: list[tuple[str, Record]] = field(default_factory=list)
    size: int = 0
    taken: dict[str, Taken] = field(default_factory=dict)


def event_files(events: str) -> list[Path]:
    """The files that a path, a folder (all files below it) or a glob pattern names, each once, sorted.

    Raises:
        LakehouseError: nothing is there.
    """
    path = Path(events)
    if path.is_dir():
        found = [file for file in path.rglob("*") if file.is_file() and not file.name.startswith((".", "_"))]
    elif path.exists():
        found = [path]
    else:
        found = [Path(name) for name in glob.glob(events, recursive=True) if Path(name).is_file()]
    if not found:
        what = "the folder holds no files" if path.is_dir() else "there is no such file, folder or match"
        raise LakehouseError(f"EVENTS={events}: {what}. Name a file, a folder or a glob of JSON Lines files.")
    return sorted({file.resolve() for file in found})


def land_files(spark: SparkSession, system: str, files: list[Path], say: Callable[[str], None] = lambda _: None) -> Landed:
    """Land what is new in `files` in `bronze.<system>`.

    Args:
        spark: the session.
        system: name of the system, already checked to be a plain name.
        files: files of records in any of the forms of `scripts.records`.
        say: called with a line of progress.

    Raises:
        LakehouseError: a file is unreadable, or another loader kept winning.
    """
    table = f"bronze.`{system}`"
    create_bronze(spark, system)
    landed = Landed()
    for _ in range(ATTEMPTS):
        snapshot, batch = _table_state(spark, table)
        ledger = _read_ledger(spark, system, batch)
        try:
            seen: dict[str, Taken] = {}  # files of which nothing was new
            for chunk in _chunks(files, ledger, landed):
                committed = _commit(spark, table, chunk, batch + 1, snapshot, landed)
                seen.update(chunk.taken)
                if committed is None:
                    continue
                batch, snapshot = batch + 1, committed
                landed.batches.append(batch)
                say(f"{system}: {landed.records:,} records landed")
                _write_ledger(spark, system, batch, seen)
                seen = {}
            if seen:
                _write_ledger(spark, system, batch, seen)
        except _OtherLoader:
            continue
        landed.notes = list(dict.fromkeys(landed.notes))  # those of an attempt that was refused come again
        return landed
    raise LakehouseError(f"{system}: another loader kept landing records in {table}. Wait for it and run again.")


def create_bronze(spark: SparkSession, system: str) -> None:
    """Create the bronze table and the ledger of a system where they are missing."""
    spark.sql("create namespace if not exists bronze")
    names = {row.tableName for row in spark.sql("show tables in bronze").collect()}
    properties = ", ".join(f"'{name}' = '{value}'" for name, value in BRONZE_PROPERTIES.items())
    if system not in names:
        spark.sql(f"create table if not exists bronze.`{system}` ({BRONZE_COLUMNS}) using iceberg tblproperties ({properties})")
    if f"{system}__files" not in names:
        spark.sql(
            f"create table if not exists bronze.`{system}__files` (file string, bytes bigint, lines bigint, digest string, "
            "file_digest string, batch bigint) using iceberg"
        )


class _OtherLoader(Exception):
    """Another loader has committed the batch number that this one tried to claim."""


def _table_state(spark: SparkSession, table: str) -> tuple[int | None, int]:
    """The current snapshot of the bronze table and the greatest batch in it."""
    rows = spark.sql(f"select snapshot_id from {table}.refs where name = 'main'").collect()
    if not rows:
        return None, 0
    snapshot = rows[0].snapshot_id
    batch = spark.sql(f"select max(batch) as batch from {table} version as of {snapshot}").collect()[0].batch
    return snapshot, batch or 0


def _read_ledger(spark: SparkSession, system: str, batch: int) -> dict[str, Taken]:
    """What has landed of each file up to `batch`."""
    files = spark.sql(
        f"select file, max_by(struct(bytes, lines, digest, file_digest, batch), struct(batch, bytes)) as entry, "
        f"collect_set(batch) as batches "
        f"from bronze.`{system}__files` where batch <= {batch} group by file"
    ).collect()
    ledger = {row.file: Taken(row.entry.bytes, row.entry.lines, row.entry.digest, row.entry.file_digest) for row in files}
    newest = {row.file: row.entry.batch for row in files}
    known = {number for row in files for number in row.batches}
    missing = [str(number) for number in range(1, batch + 1) if number not in known]
    if missing:  # a loader died between its two commits, or is between them now
        ahead = spark.sql(
            f"select file, max(struct(batch, line as lines, line_end as bytes)) as entry from bronze.`{system}` "
            f"where batch in ({', '.join(missing)}) and file is not null group by file"
        ).collect()
        for row in ahead:
            if row.entry.batch > newest.get(row.file, 0):
                ledger[row.file] = _recovered(row.file, row.entry)
    return ledger


def _recovered(file: str, entry: Row) -> Taken:
    path = Path(file)
    seen = text_digest(path, entry.bytes) if path.exists() else None
    return Taken(entry.bytes, entry.lines, seen or "gone")


def _chunks(files: list[Path], ledger: dict[str, Taken], landed: Landed) -> Iterator[_Chunk]:
    """The new records of the files in pieces of about `CHUNK_BYTES`, without repeating what the ledger has."""
    whole = {taken.whole: file for file, taken in ledger.items() if taken.whole}
    chunk = _Chunk()
    for path in files:
        name = str(path)
        taken = ledger.get(name, Taken())
        now = file_digest(path)
        if taken.whole == now or not path.stat().st_size:
            if not path.stat().st_size:
                landed.notes.append(f"{path}: the file is empty")
            continue
        if taken.bytes and text_digest(path, taken.bytes) != taken.digest:
            landed.notes.append(f"{path}: the file was replaced since it was landed; all of it is landed again")
            taken = Taken()
        if not taken.bytes and now in whole:
            landed.notes.append(f"{path}: same content as {whole[now]}, which has landed; skipped")
            continue
        whole[now] = name
        last = None
        for record in read_records(path, taken):
            if chunk.size >= CHUNK_BYTES:  # and there is more: no chunk is empty
                if last is not None:
                    _take(chunk, path, last, "")
                yield chunk
                chunk = _Chunk()
            chunk.records.append((name, record))
            chunk.size += record.end - (last.end if last else taken.bytes)
            last = record
        if last is None and not taken.bytes:
            landed.notes.append(f"{path}: no complete line yet")
        if last is not None:
            _take(chunk, path, last, now)
            text_size = path.stat().st_size
            if last.end < text_size and path.suffix not in (".gz", ".zst"):
                landed.notes.append(f"{path}: {text_size - last.end} bytes at the end are no complete record yet")
    if chunk.taken:
        yield chunk


def _take(chunk: _Chunk, path: Path, last: Record, whole: str) -> None:
    seen = text_digest(path, last.end)
    if seen is None:
        raise LakehouseError(f"{path}: the file became shorter while it was read. Run again when it is complete.")
    chunk.taken[str(path)] = Taken(last.end, last.line, seen, whole)


def _commit(spark: SparkSession, table: str, chunk: _Chunk, batch: int, snapshot: int | None, landed: Landed) -> int | None:
    """Commit the chunk as `batch` and return the snapshot; None where bronze holds all of it already.

    Raises:
        _OtherLoader: somebody else has committed that batch.
    """
    records, repeated = _distinct(chunk.records)
    frame = spark.createDataFrame(_arrow_table(records))
    repeated_before = _landed_before(spark, table, frame, records) if snapshot is not None else None
    if repeated_before is not None:
        count = frame.count()
        frame = repeated_before
        kept = frame.count()
        repeated += count - kept
    else:
        kept = len(records)
    if not kept:
        landed.repeated += repeated
        return None
    writer = (
        frame.withColumn("batch", F.lit(batch).cast("bigint"))
        .withColumn("landed_at", F.current_timestamp())
        .writeTo(table)
        .option("isolation-level", "serializable")
        .option("snapshot-property.cdc-batch", str(batch))
    )
    if snapshot is not None:
        writer = writer.option("validate-from-snapshot-id", str(snapshot))
    try:
        writer.overwrite(F.col("batch") == F.lit(batch))
    except Exception as error:
        if "ValidationException" in str(error) or "Found conflicting files" in str(error):
            raise _OtherLoader from error
        raise
    landed.repeated += repeated
    landed.records += kept
    landed.invalid += sum(1 for _, record in records if record.error)
    rows = spark.sql(
        f"select snapshot_id from {table}.snapshots where summary['cdc-batch'] = '{batch}' order by committed_at desc limit 1"
    ).collect()
    return int(rows[0].snapshot_id)


def _distinct(records: list[tuple[str, Record]]) -> tuple[list[tuple[str, Record]], int]:
    """Records without those that repeat coordinates, key and value of an earlier one; and how many were left out."""
    newest: dict[tuple[str | None, int | None], int] = {}
    for _, record in records:
        if record.offset is not None:
            place = (record.topic, record.partition)
            if record.offset <= newest.get(place, -1):
                break
            newest[place] = record.offset
    else:
        return records, 0
    seen: set[tuple[str | None, int | None, int, str | None, str | None]] = set()
    kept = []
    for name, record in records:
        if record.offset is not None:
            identity = (record.topic, record.partition, record.offset, record.key, record.value)
            if identity in seen:
                continue
            seen.add(identity)
        kept.append((name, record))
    return kept, len(records) - len(kept)


def _landed_before(spark: SparkSession, table: str, frame: DataFrame, records: list[tuple[str, Record]]) -> DataFrame | None:
    """`frame` without the records that bronze holds, by coordinates and content; None where it holds none."""
    ranges: dict[str, tuple[int, int]] = {}
    for _, record in records:
        if record.offset is not None and record.topic is not None:
            low, high = ranges.get(record.topic, (record.offset, record.offset))
            ranges[record.topic] = (min(low, record.offset), max(high, record.offset))
    if not ranges:
        return None
    lowest = min(low for low, _ in ranges.values())
    highest = max(high for _, high in ranges.values())
    old = (
        spark.table(table)
        .where(F.col("offset").between(lowest, highest) & F.col("topic").isin(*ranges))
        .select("topic", "partition", "offset", F.xxhash64("key", "value").alias("content"))
    )
    if not old.limit(1).collect():
        return None
    return (
        frame.withColumn("content", F.xxhash64("key", "value"))
        .join(old, ["topic", "partition", "offset", "content"], "left_anti")
        .drop("content")
        .select(*ARROW_SCHEMA.names)
    )


def _arrow_table(records: list[tuple[str, Record]]) -> pa.Table:
    """The records as Arrow batches of one topic each where topics are large: one batch becomes one data file,
    and a model of one topic then reads the files of that topic only."""
    by_topic: dict[str, list[tuple[str, Record]]] = {}
    for item in records:
        by_topic.setdefault(item[1].topic or "", []).append(item)
    batches: list[pa.RecordBatch] = []
    group: list[tuple[str, Record]] = []
    size = 0
    for topic in sorted(by_topic):
        topic_size = sum(_size(record) for _, record in by_topic[topic])
        if group and size + topic_size > FILE_BYTES:
            batches.append(_arrow_batch(group))
            group, size = [], 0
        for item in by_topic[topic]:
            group.append(item)
            size += _size(item[1])
            if size >= FILE_BYTES:
                batches.append(_arrow_batch(group))
                group, size = [], 0
    if group:
        batches.append(_arrow_batch(group))
    return pa.Table.from_batches(batches, ARROW_SCHEMA)


def _size(record: Record) -> int:
    return 64 + len(record.value or "") + len(record.key or "") + len(record.raw or b"")


def _arrow_batch(items: list[tuple[str, Record]]) -> pa.RecordBatch:
    records = [record for _, record in items]
    columns = [
        [record.topic for record in records],
        [record.partition for record in records],
        [record.offset for record in records],
        [None if record.timestamp is None else record.timestamp * 1000 for record in records],
        [record.key for record in records],
        [record.value for record in records],
        [_header_structs(record) for record in records],
        [name for name, _ in items],
        [record.line for record in records],
        [record.end for record in records],
        [record.error for record in records],
        [record.raw for record in records],
    ]
    arrays = [pa.array(column, kind) for column, kind in zip(columns, ARROW_SCHEMA.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=ARROW_SCHEMA)


def _header_structs(record: Record) -> list[dict[str, object]] | None:
    if record.headers is None:
        return None
    return [{"key": name, "value": content} for name, content in record.headers]


def _write_ledger(spark: SparkSession, system: str, batch: int, taken: dict[str, Taken]) -> None:
    rows = [(file, entry.bytes, entry.lines, entry.digest, entry.whole, batch) for file, entry in taken.items()]
    names = ["file", "bytes", "lines", "digest", "file_digest", "batch"]
    columns = [pa.array(list(column)) for column in zip(*rows, strict=True)]
    spark.createDataFrame(pa.table(dict(zip(names, columns, strict=True)))).writeTo(f"bronze.`{system}__files`").append()
