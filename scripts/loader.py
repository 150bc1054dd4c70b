"""Lands Kafka records, from files or from topics, in the bronze table of a system, verbatim and exactly once.

A landing is one commit or several, each with a batch number of its own (scripts/bronze.py). What has landed of each
file and of each partition is known from the bronze table and its ledger (scripts/ledger.py).
"""

from collections.abc import Callable, Iterator, Set
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from scripts import bronze, ledger
from scripts.bronze import IDENTITY, Landed, OtherLoader, Place
from scripts.chunks import Chunk, chunks
from scripts.errors import LakehouseError
from scripts.kafka import Offsets, RecordsGoneError, Topics
from scripts.ledger import Ledger, partition_name
from scripts.offsets import Offered, offered
from scripts.stores import File
from scripts.taken import Taken

ATTEMPTS = 20


@dataclass
class _Attempt:
    """One attempt to land, which ends where another loader has committed the number that it tried to claim."""

    spark: SparkSession
    system: str
    landed: Landed
    ledger: Ledger
    snapshot: int | None  # the newest that is known, at which the next batch is not yet there

    @property
    def table(self) -> str:
        return f"bronze.`{self.system}`"


def land_files(
    spark: SparkSession, system: str, files: list[File], say: Callable[[str], None] = lambda _: None
) -> Landed:
    """Land what is new in `files` in `bronze.<system>`.

    Args:
        system: name of the system, already checked to be a plain name.
        files: files of records in any of the forms of `scripts.framing`.
        say: called with a line of progress.

    Raises:
        LakehouseError: a file is unreadable, or another loader kept winning.
    """

    def of_files(attempt: _Attempt) -> Iterator[Chunk]:
        return chunks(files, attempt.ledger, attempt.landed.notes)

    return _land(spark, system, of_files, _commit, say, {str(file) for file in files})


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
        warn: called with each of `Landed.lost`, before anything is committed: no later run finds it again, whatever
            this one does.

    Raises:
        LakehouseError: the broker does not answer or refuses, a topic does not exist, or another loader kept winning.
    """
    warned = set[str]()

    def of_topics(attempt: _Attempt) -> Iterator[Offered]:
        found = offered(spark, system, topics, attempt.ledger, attempt.landed)
        while True:
            span = next(found, None)
            for lost in attempt.landed.lost:
                if lost not in warned:
                    warned.add(lost)
                    warn(lost)
            if span is None:
                return
            yield span

    def commit(attempt: _Attempt, span: Offered) -> bool:
        try:
            return _commit_offered(attempt, topics, span)
        except OtherLoader:
            raise
        except Exception as error:
            raise topics.explained(error) from error

    landed = _land(spark, system, of_topics, commit, say)
    if landed.gaps:
        gaps = ", ".join(f"{topic} {offsets:,}" for topic, offsets in sorted(landed.gaps.items()))
        landed.notes.append(f"offsets that hold no record (compacted, or marks of transactions): {gaps}")
    return landed


def _land(
    spark: SparkSession,
    system: str,
    found: Callable[[_Attempt], Any],
    commit: Callable[[_Attempt, Any], bool],
    say: Callable[[str], None],
    files: Set[str] = frozenset(),
) -> Landed:
    """Commit each of the chunks that are found, which go on where the ledger says, under a number of its own."""
    bronze.create(spark, system)
    landed = Landed()
    refused: Exception | None = None
    for _ in range(ATTEMPTS):
        try:
            state = bronze.state(spark, f"bronze.`{system}`")
            known = ledger.read(spark, system, state, files, landed.notes)
            attempt = _Attempt(spark, system, landed, known, state.snapshot)
            with closing(found(attempt)) as new:  # the thread that reads ahead ends with the attempt
                _commit_all(attempt, new, commit, say)
        except (OtherLoader, RecordsGoneError) as error:
            refused = error
            continue
        # Those of an attempt that was refused come again.
        landed.notes, landed.lost = list(dict.fromkeys(landed.notes)), list(dict.fromkeys(landed.lost))
        return landed
    if isinstance(refused, RecordsGoneError):
        problem = "the broker keeps deleting records before they are read, or breaks off"
        remedy = "Raise the topics' retention and run again; what has landed stays"
        raise LakehouseError(f"{system}: {problem}; spark.log in LAKEHOUSE_DIR says more. {remedy}.")
    problem = f"another loader kept landing records in bronze.`{system}`"
    raise LakehouseError(f"{system}: {problem}. Wait for it and run again.")


def _commit_all(
    attempt: _Attempt,
    found: Iterator[Any],
    commit: Callable[[_Attempt, Any], bool],
    say: Callable[[str], None],
) -> None:
    spark, system, landed, known = attempt.spark, attempt.system, attempt.landed, attempt.ledger
    seen: dict[str, Taken] = {}  # files of which nothing was new
    committed = False
    for chunk in found:
        if committed:  # were the table rolled back meanwhile, the next commit would fail
            attempt.snapshot, committed = bronze.snapshot_of(spark, attempt.table, known.given), False
        is_new = commit(attempt, chunk)
        if not chunk.offsets and isinstance(chunk, Offered):
            ledger.write(spark, system, known.last, chunk.taken, None)
            continue
        seen.update(chunk.taken)
        if not is_new:
            continue
        known.last = known.given = known.given + 1
        committed = True
        landed.batches.append(known.given)
        if len(landed.batches) > 1:  # the number of a small landing is said once, at its end
            say(f"{system}: {landed.records:,} records landed")
        ledger.write(spark, system, known.given, seen, known.newest)
        seen = {}
    if seen:
        ledger.write(spark, system, known.last, seen, None)


def _commit(attempt: _Attempt, chunk: Chunk) -> bool:
    """Commit a chunk; False where bronze holds all of it already."""
    landed = attempt.landed
    records = _not_landed(attempt, chunk)
    kept = records.num_rows
    repeated = chunk.repeated + chunk.records.num_rows - kept
    if not kept:
        landed.repeated += repeated
        return False
    bronze.write(attempt.table, _frame(attempt.spark, records, chunk.heads), attempt.ledger.given + 1, attempt.snapshot)
    landed.records += kept
    landed.repeated += repeated
    landed.invalid += chunk.invalid
    for place, (_, end) in chunk.offsets.items():
        attempt.ledger.landed(place, end - 1)
    return True


def _not_landed(attempt: _Attempt, chunk: Chunk) -> pa.Table:
    """The records of the chunk that bronze does not hold, by coordinates and content.

    Bronze is read only where an offset is not above all that have landed, and there in one range of offsets, so that
    Iceberg leaves out most files unread.
    """
    newest = attempt.ledger.newest
    again = {place: span for place, span in chunk.offsets.items() if span[0] <= newest.get(place, -1)}
    if not again:
        return chunk.records
    old = bronze.held(attempt.spark, attempt.table, again)
    new = bronze.identified(_frame(attempt.spark, chunk.records, chunk.heads))
    found = new.join(old, IDENTITY, "left_semi").select("file", "line")
    landed = {(row.file, row.line) for row in found.collect()}
    lines = zip(chunk.records["file"].to_pylist(), chunk.records["line"].to_pylist(), strict=True)
    return chunk.records.filter(pa.array([line not in landed for line in lines], pa.bool_()))


def _frame(spark: SparkSession, records: pa.Table, heads: list[str]) -> DataFrame:
    head = F.get(F.array(*map(F.lit, heads)), F.col("head"))
    return spark.createDataFrame(records).withColumn("value", F.concat(head, "value")).drop("head")


def _commit_offered(attempt: _Attempt, topics: Topics, span: Offered) -> bool:
    """As `_commit`, for offsets of topics; Spark reads them and writes them."""
    if not span.offsets:
        return False
    spark, table, landed = attempt.spark, attempt.table, attempt.landed
    records = topics.read(spark, span.offsets)
    repeated: dict[Place, int] = {}
    if any(start <= attempt.ledger.newest.get(place, -1) for place, (start, _) in span.offsets.items()):
        found = bronze.compared(spark, table, records, span.offsets)
        repeated = {place: row.known for place, row in found.items()}
        _remember(span, records)
        if all(row.known == row.read for row in found.values()):
            _count(landed, span.offsets, repeated, {})
            return False
        held = bronze.held(spark, table, span.offsets)
        records = bronze.identified(records).join(held, IDENTITY, "left_anti").drop("content")
    bronze.write(attempt.table, records, attempt.ledger.given + 1, attempt.snapshot)
    # Of all offsets none may hold a record: then the number is still free. The table may be another again by now.
    batch = attempt.ledger.given + 1
    committed = bronze.snapshot_of(spark, table, batch)
    kept = {}
    if committed is not None:
        kept = _remember(span, bronze.as_of(spark, table, committed).where(F.col("batch") == batch))
    _count(landed, span.offsets, repeated, {place: row.n for place, row in kept.items()})
    landed.invalid += sum(row.bad for row in kept.values())
    for place, (_, end) in span.offsets.items():
        attempt.ledger.landed(place, end - 1)
    return bool(kept)


def _remember(span: Offered, records: DataFrame) -> dict[Place, Row]:
    """Note the last record of each partition, by which it is known again; returns how many there are."""
    columns = F.count("*").alias("n"), F.count("error").alias("bad"), F.max(F.struct("offset", "digest")).alias("last")
    marked = bronze.marked(records).groupBy("topic", "partition")
    found = {(row.topic, row.partition): row for row in marked.agg(*columns).collect()}
    for place, row in found.items():
        name = partition_name(*place)
        taken = span.taken.get(name)
        if taken and (not taken.digest or row.last.offset >= taken.lines):
            span.taken[name] = replace(taken, lines=row.last.offset, digest=str(row.last.digest))
    return found


def _count(landed: Landed, offsets: Offsets, repeated: dict[Place, int], kept: dict[Place, int]) -> None:
    landed.records += sum(kept.values())
    landed.repeated += sum(repeated.values())
    for place, (start, end) in offsets.items():
        if gap := end - start - repeated.get(place, 0) - kept.get(place, 0):
            landed.gaps[place[0]] = landed.gaps.get(place[0], 0) + gap
