"""The ledger of a system: how far each file and each partition has landed.

It is a summary of bronze, brought up to date from there where a loader died between its two commits. What was deleted
from bronze, or rolled back, the ledger alone knows.
"""

import json
import time
from collections.abc import Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from scripts import bronze
from scripts.bronze import COORDINATES, LONG, TEXT, OtherLoader, Place, State
from scripts.catalog import mark_of, properties_of
from scripts.framing import read_records
from scripts.literals import sql_text
from scripts.stores import File, located
from scripts.taken import Taken, text_hash

KAFKA = "kafka:"  # what a partition is called in the ledger: kafka:<topic>/<partition>
LEDGER_SCHEMA = pa.schema(
    [("file", TEXT), ("bytes", LONG), ("lines", LONG), ("digest", TEXT), ("file_digest", TEXT), ("batch", LONG)]
    + [("offsets", pa.list_(pa.struct(COORDINATES)))]
)
GONE = "gone"  # in place of a digest: none is like it
RECOVERED_BY = ["topic", "partition", "offset", "timestamp", "key", "value", "raw"]
Back = list[tuple[int, int]]  # batches that were rolled back: after which one, and up to which


@dataclass
class Ledger:
    """What has landed of files and partitions."""

    files: dict[str, Taken]  # by name, as it stood when it was looked at last
    contents: dict[str, tuple[str, Taken]]  # digest of a whole file → one that had it, and how far that is taken
    newest: dict[Place, int]  # the highest offset of each partition
    given: int  # the greatest batch number that was given
    last: int  # the greatest batch that was not rolled back, of which rows are where nothing is new
    recovered: dict[str, int] = field(default_factory=dict)  # file → its newest batch, which is not noted here

    def landed(self, place: Place, offset: int) -> None:
        self.newest[place] = max(offset, self.newest.get(place, -1))


def partition_name(topic: str | None, partition: int | None) -> str:
    return f"{KAFKA}{topic}/{partition}"


def read(spark: SparkSession, system: str, state: State, wanted: Set[str] | None, notes: list[str]) -> Ledger:
    """What has landed.

    Where a loader died, only the files that are `wanted` now are looked at again; None: all of them. Numbers of batches
    that were rolled back or deleted from bronze are not given again: tables that merged them would not read the new
    ones. Batches that were rolled back have one row without a file.

    Raises:
        OtherLoader: more has landed since bronze was looked at.
    """
    ledger, batch = f"bronze.`{system}__files`", state.batch
    rows = _rows(spark, ledger, batch)
    given = max([batch, state.given, *(row.newest.batch for row in rows)])
    back = _rolled_back(spark, system, state, given, rows, notes)
    # A loader that was stopped for long may write its row after another one noted that its batch was rolled back.
    conditions = " and ".join(["file <> ''", *(f"batch not between {after + 1} and {last}" for after, last in back)])
    rows = _rows(spark, ledger, batch, conditions) if back else [row for row in rows if row.file]
    missing: set[int] = set()
    expected = set(range(1, batch + 1)).difference(*(range(after + 1, last + 1) for after, last in back))
    noted = sum(row.commits for row in rows), sum(row.sum_of_batches for row in rows)
    if noted != (len(expected), sum(expected)):  # a loader died between its commits, or is between them now
        batches_noted = spark.sql(f"select distinct batch from {ledger} where offsets is not null").collect()
        missing = expected - {row.batch for row in batches_noted}
        # After that: what is noted in between is looked for once too often, never too little.
        rows = _rows(spark, ledger, batch, conditions)
    found = Ledger({}, {}, {}, given, batch if any(after < given <= last for after, last in back) else given)
    batches: dict[str, int] = {}
    for row in sorted(rows, key=lambda row: (row.newest.batch, row.newest.times, row.newest.bytes)):
        taken = Taken(row.newest.bytes, row.newest.lines, row.newest.digest, row.newest.file_digest)
        batches[row.file], found.files[row.file] = row.newest.batch, taken
        if row.content:
            found.contents[row.content] = row.file, taken
    last_commit = max((row.last_commit for row in rows), default=0)
    for row in spark.sql(f"select inline(offsets) from {ledger} where batch = {last_commit}").collect():
        found.newest[row.topic, row.partition] = row.offset
    if missing:
        _recover(spark, f"bronze.`{system}`", missing, wanted, found, batches)
    return found


def _rows(spark: SparkSession, ledger: str, batch: int, condition: str = "true") -> list[Row]:
    """Of each file and content the newest row: of those of one batch the one of later times, then the longer one.

    Beside it how many batches up to `batch` are noted there (`commits`), their sum, and the greatest that is. In time a
    ledger has a row for each partition and batch.
    """
    times = "if(instr(file_digest, ' ') > 0, substr(file_digest, instr(file_digest, ' ') + 1), '') as times"
    rows: list[Row] = spark.sql(f"""
        select
            file,
            substring_index(file_digest, ' ', 1) as content,
            max(struct(batch, {times}, bytes, lines, digest, file_digest)) as newest,
            count_if(offsets is not null and batch <= {batch}) as commits,
            coalesce(sum(batch) filter (where offsets is not null and batch <= {batch}), 0) as sum_of_batches,
            max(if(offsets is not null, batch, 0)) as last_commit
        from {ledger}
        where {condition}
        group by file, content, if(file = '', batch, 0)
        """).collect()
    return rows


def _rolled_back(spark: SparkSession, system: str, state: State, given: int, rows: list[Row], notes: list[str]) -> Back:
    """The batches that were rolled back, those included that were since the ledger was read last."""
    table, ledger, batch = f"bronze.`{system}`", f"bronze.`{system}__files`", state.batch
    back = [(row.newest.bytes, row.newest.batch) for row in rows if not row.file]
    if any(after < batch <= last for after, last in back):  # they were put back
        with bronze.conflicts():
            spark.sql(f"delete from {ledger} where file = '' and bytes < {batch} and batch >= {batch}")
        back = []
    if given > batch:  # the newest ones may have lost all of their records to `make erase`
        batch = max(batch, int(mark_of(spark, table, bronze.LANDED) or 0))
    numbers = {given, *(row.newest.batch for row in rows if row.file), *(row.last_commit for row in rows)}
    above = {number for number in numbers if number > batch and not any(after < number <= last for after, last in back)}
    if above:
        if bronze.state(spark, table).batch > batch:
            raise OtherLoader
        if _was_rolled_back(spark, table, state.snapshot, max(above)):
            notes.append(_forget(spark, system, batch, given))
            back.append((batch, given))
    return back


def _was_rolled_back(spark: SparkSession, table: str, current: int | None, batch: int) -> bool:
    """Whether bronze, at the snapshot `current`, lacks a batch because it was rolled back or recreated; else it was
    deleted.

    Where the snapshots that would tell are expired, it is taken for deleted: what tables have merged of it stays, and
    they are not rebuilt without it.
    """
    if current is None:
        return True
    rows = spark.sql(f"select snapshot_id, parent_id, committed_at from {table}.snapshots").collect()
    snapshots = {row.snapshot_id: row for row in rows}
    landed = snapshots.get(bronze.snapshot_of(spark, table, batch))
    if landed is None:
        return False
    while current in snapshots and current != landed.snapshot_id:
        oldest = snapshots[current]
        current = oldest.parent_id
    return current != landed.snapshot_id and (current is None or oldest.committed_at < landed.committed_at)


def _forget(spark: SparkSession, system: str, batch: int, given: int) -> str:
    """Forget the files and offsets of the batches after `batch`, which were rolled back. Returns what to report.

    Tables that were built of them are not what is in bronze: they refuse it by its new identity. Their numbers are kept
    in mind.
    """
    table, ledger = f"bronze.`{system}`", f"bronze.`{system}__files`"
    pruned = json.loads(properties_of(spark, table).get(bronze.PRUNED_TOPICS) or "{}")  # no roll-back changes it
    pruned = json.dumps({topic: min(newest, batch) for topic, newest in pruned.items()})
    texts = f"{bronze.new_id()}, '{bronze.PRUNED_TOPICS}' = {sql_text(pruned)}"
    spark.sql(f"alter table {table} set tblproperties ({texts})")
    with bronze.conflicts():
        spark.sql(f"delete from {ledger} where batch > {batch} and batch <= {given}")
        spark.sql(f"insert into {ledger} select '', {batch}, 0, '', '', {given}, null")
    return (
        f"{table} ends with batch {batch}, where {given} had landed: what was rolled back lands again if it is among"
        " the events named. Land all that is missing, then rebuild its tables: .venv/bin/dbt run --full-refresh"
        f" --select source:bronze.{system}+"
    )


def _recover(
    spark: SparkSession, table: str, missing: Set[int], wanted: Set[str] | None, found: Ledger, batches: dict[str, int]
) -> None:
    """Add to a ledger what bronze holds of batches that are missing in it; `batches` are those of its files."""
    landed = spark.table(table).where(F.col("batch").isin(*missing))
    place = "batch", F.col("line").alias("lines"), F.col("line_end").alias("bytes")
    coordinates = "topic", "partition", "offset", F.unix_millis("timestamp").alias("timestamp")
    entry = F.max(F.struct(*place, *coordinates, "key", "value", "raw")).alias("entry")
    for row in landed.where("file is not null").groupBy("file").agg(entry).collect():
        if (wanted is None or row.file in wanted) and row.entry.batch > batches.get(row.file, 0):
            found.files[row.file], found.recovered[row.file] = _recovered(row.file, row.entry), row.entry.batch
    highest = F.max("offset").alias("highest")
    for row in landed.where("offset is not null").groupBy("topic", "partition").agg(highest).collect():
        found.landed((row.topic, row.partition), row.highest)
    last = F.max(F.struct("batch", "offset")).alias("last")
    for row in landed.where("file is null").groupBy("topic", "partition").agg(last).collect():
        name = partition_name(row.topic, row.partition)
        if row.last.batch > batches.get(name, 0):
            found.files[name], found.recovered[name] = Taken(row.last.offset + 1), row.last.batch


def complete(spark: SparkSession, system: str) -> int:
    """Note what loaders that died have landed, before records go from bronze: nothing else tells it then. Of files
    that are not there, or say something else now, it stays open. Returns the newest batch that was not rolled back."""
    while True:
        with suppress(OtherLoader):
            found = read(spark, system, bronze.state(spark, f"bronze.`{system}`"), None, [])
            break
    for batch in sorted(set(found.recovered.values())):
        of_batch = [file for file, number in found.recovered.items() if number == batch]
        taken = {file: found.files[file] for file in of_batch if found.files[file].digest != GONE}
        if taken:
            write(spark, system, batch, taken, found.newest)
    return found.last


def _recovered(file: str, entry: Row) -> Taken:
    """How far a file is taken whose last record in bronze is `entry`; no digest fits if another record stands there."""
    path = located(file)
    taken = Taken(entry.bytes, entry.lines, GONE)
    seen = text_hash(path, entry.bytes) if path.exists() else None
    if seen:
        there = next((record for record in read_records(path, Taken()) if record.line >= entry.lines), None)
        is_the_same = there and all(getattr(there, name) == entry[name] for name in RECOVERED_BY)
        if there and is_the_same and (there.end == entry.bytes or _ends_now(path, seen, entry.bytes, there.end)):
            return replace(taken, digest=seen.hexdigest())
    return taken


def _ends_now(path: File, seen: Any, end: int, now: int) -> bool:
    """Whether a line that had no line break, and ended at `end`, has got nothing but that since."""
    found = text_hash(path, now) if 0 < now - end <= 2 else None
    for line_break in (b"\n", b"\r\n"):
        expected = seen.copy()
        expected.update(line_break)
        if found and found.digest() == expected.digest():
            return True
    return False


def write(
    spark: SparkSession, system: str, batch: int, taken: dict[str, Taken], newest: dict[Place, int] | None
) -> None:
    """Note how far files are taken, and the highest offsets up to `batch`; None where nothing was committed."""
    offsets: list[Any] = [None if newest is None else []] * len(taken)
    if newest is not None:
        offsets[0] = [(*place, offset) for place, offset in newest.items()]
    # A partition has no times: of two rows of one batch the later one counts, also where it is of fewer offsets.
    of_partition = f" {time.time_ns():020}" if newest is None else ""
    rows = [
        (file, to.bytes, to.lines, to.digest, of_partition if file.startswith(KAFKA) else to.whole, batch, highest)
        for (file, to), highest in zip(taken.items(), offsets, strict=True)
    ]
    frame = spark.createDataFrame(pa.Table.from_batches([bronze.arrow_batch(rows, LEDGER_SCHEMA)]))
    frame.writeTo(f"bronze.`{system}__files`").append()
