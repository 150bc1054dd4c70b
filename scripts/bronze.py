"""The bronze table of a system and the ledger beside it: what they are, and how a batch is committed to bronze.

A batch number is claimed by the commit itself: it overwrites what has that number, checked against the table as it was
read, so of two loaders at the same number one is refused and starts over. Whoever commits batch n has therefore seen
all batches before n.
"""

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from scripts.catalog import properties_of

LANDED = "cdc-batch-landed"  # of a commit that took records: the newest batch, which bronze may have none of then
PRUNED_TOPICS = "cdc.pruned-topics"  # a property of the table: topic → the newest batch of which records were pruned
# Of a snapshot. A commit of no records leaves its number to the next one.
WITH_RECORDS = "summary['added-records'] is not null"
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
# Each commit writes all of a table's metadata anew; Iceberg would keep a hundred of these files, and delete none.
METADATA_PROPERTIES = {
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "10",
    # Each read opens all manifests, and each commit adds one: with the usual 100 the hundredth run takes twice as long.
    "commit.manifest.min-count-to-merge": "10",
}
BRONZE_PROPERTIES = {
    **METADATA_PROPERTIES,
    "format-version": "3",
    # Events are up to forty times as large when they are read as in their files. For Iceberg small files share a task,
    # up to 16 MB: where each counts for more than half of that, all cores read what landed at once.
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
    # Of values that hardly repeat a dictionary is built and thrown away.
    **{
        f"write.parquet.dict-encoding-enabled.column.{name}": "false"
        for name in ("value", "key", "offset", "timestamp", "line", "line_end")
    },
    "commit.retry.num-retries": "20",
}
LEDGER_COLUMNS = """
    file string comment 'A file, or kafka:<topic>/<partition>; empty where the batch was rolled back from bronze',
    bytes bigint comment 'Bytes taken of the uncompressed file; of a partition the offset to go on with',
    lines bigint comment 'Lines taken; of a partition the offset of the last record',
    digest string comment 'Digest of the bytes taken; of a partition the hash of the last record',
    file_digest string comment 'Digest and times of the file as it stood when all of it was taken',
    batch bigint comment 'The batch that took the file so far, or the newest one where nothing in it was new',
    offsets array<struct<topic: string, partition: int, offset: bigint>>
        comment 'Highest offsets up to the batch, in the first of its rows; null where nothing was new'
"""
TEXT, LONG = pa.string(), pa.int64()
COORDINATES = [("topic", TEXT), ("partition", pa.int32()), ("offset", LONG)]
IDENTITY = ["topic", "partition", "offset", "content"]
Place = tuple[str | None, int | None]  # topic and partition
Span = tuple[int, int]  # the first offset, and the one after the last


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


class State(NamedTuple):
    """A bronze table as it is now."""

    snapshot: int | None
    batch: int  # the greatest that it has
    given: int  # the greatest that any of its snapshots landed


class OtherLoader(Exception):
    """Another loader has committed the batch number that this one tried to claim."""


def create(spark: SparkSession, system: str) -> None:
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
        properties += f", {new_id()}"
        spark.sql(f"create table if not exists {table} ({BRONZE_COLUMNS}) using iceberg tblproperties ({properties})")
        if state(spark, table)[1:] == (0, 0):  # without the ledger, numbers may have been given before
            spark.sql(f"alter table {table} set tblproperties ({new_id()})")
        spark.sql(f"create table if not exists {ledger} ({LEDGER_COLUMNS}) using iceberg tblproperties ({of_ledger})")


def new_id() -> str:
    """The property by which tables that were built from bronze know whether its batches are those that they merged."""
    return f"'cdc.id' = '{uuid.uuid4().hex}'"


def state(spark: SparkSession, table: str) -> State:
    head = properties_of(spark, table)["current-snapshot-id"]
    if head == "none":
        return State(None, 0, 0)
    landed = f"select cast(summary['cdc-batch'] as bigint) as landed from {table}.snapshots where {WITH_RECORDS}"
    given = spark.sql(f"{landed} order by landed desc nulls last limit 1").collect()
    batch = as_of(spark, table, int(head)).agg(F.max("batch").alias("batch")).collect()[0].batch
    return State(int(head), batch or 0, (given[0].landed or 0) if given else 0)


def snapshot_of(spark: SparkSession, table: str, batch: int) -> int | None:
    """The snapshot that landed the records of a batch; None where it had none."""
    query = f"select snapshot_id from {table}.snapshots where summary['cdc-batch'] = '{batch}' and {WITH_RECORDS}"
    rows = spark.sql(query).collect()
    return rows[0].snapshot_id if rows else None


def as_of(spark: SparkSession, table: str, snapshot: int) -> DataFrame:
    return spark.sql(f"select * from {table} version as of {snapshot}")


def write(table: str, records: DataFrame, batch: int, snapshot: int | None) -> None:
    """Commit records as `batch`, which is not there yet at `snapshot`.

    Raises:
        OtherLoader: somebody else has committed that batch.
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
    with conflicts():
        writer.overwrite(F.col("batch") == F.lit(batch))


@contextmanager
def conflicts() -> Iterator[None]:
    """Raise `OtherLoader` for a commit that Iceberg refused because of another one."""
    try:
        yield
    except Exception as error:
        if "ValidationException" in str(error) or "Found conflicting files" in str(error):
            raise OtherLoader from error
        raise


def identified(records: DataFrame) -> DataFrame:
    return records.withColumn("content", F.xxhash64("key", "value", "raw"))


def marked(records: DataFrame) -> DataFrame:
    """With a digest by which the very record is known again: two tombstones of a key differ in their time only."""
    return records.withColumn("digest", F.xxhash64("key", "value", "raw", "timestamp"))


def held(spark: SparkSession, table: str, offsets: Mapping[Any, Span]) -> DataFrame:
    """The identities of the records in bronze that may have these offsets: one range leaves most files unread."""
    topics = {topic for topic, _ in offsets}
    lowest, highest = min(start for start, _ in offsets.values()), max(end for _, end in offsets.values()) - 1
    old = spark.table(table).where(F.col("topic").isin(*topics) & F.col("offset").between(lowest, highest))
    return identified(old).select(*IDENTITY)


def compared(spark: SparkSession, table: str, records: DataFrame, offsets: Mapping[Any, Span]) -> dict[Place, Row]:
    """Of each partition the number of records (`read`), of those that bronze holds (`known`), and of those at whose
    offsets it holds others (`others`).
    """
    place = IDENTITY[:-1]
    old = held(spark, table, offsets).groupBy(*place).agg(F.collect_set("content").alias("contents"))
    both = identified(records).select(*IDENTITY).join(old, place, "left").groupBy("topic", "partition")
    is_known = F.array_contains("contents", F.col("content"))
    counts = F.count("*").alias("read"), F.count_if(is_known).alias("known"), F.count_if(~is_known).alias("others")
    return {(row.topic, row.partition): row for row in both.agg(*counts).collect()}


def arrow_batch(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(zip(*rows, strict=True), schema.types, strict=True)
    return pa.RecordBatch.from_arrays([pa.array(column, kind) for column, kind in columns], schema=schema)
