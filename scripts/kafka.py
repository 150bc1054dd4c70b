"""Kafka as a source: the offsets that its topics hold, and the records of a range of offsets as rows of bronze.

Spark reads the records and writes them; nothing of them passes through this process. What has been read is known from
bronze, not from a checkpoint of Spark's: docs/decisions/0007-kafka.md.
"""

import ast
import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import reduce
from operator import and_, or_
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from scripts.errors import LakehouseError, UsageError

Offsets = dict[tuple[str, int], tuple[int, int]]  # topic and partition → the first offset, and the one after the last

ANSWER_SECONDS = 90
TASK_OFFSETS = 50_000  # offsets of one partition that one task reads: a data file
FILE_OFFSETS = 5_000  # offsets of a data file that holds several small partitions
# What a client may not choose here, as it decides what lands.
NOT_PASSED = ("bootstrap.servers", "key.deserializer", "value.deserializer", "auto.offset.reset", "enable.auto.commit")
# A broker that does not answer is reported after half a minute. Records of aborted transactions were never written. All
# is there already: a fetch that waits for more (half a second by default) would do so once for each partition.
DEFAULTS = {
    "default.api.timeout.ms": "30000",
    "request.timeout.ms": "15000",
    "isolation.level": "read_committed",
    "fetch.max.wait.ms": "10",
}


class RecordsGoneError(Exception):
    """The broker deleted records between the look at its offsets and the reading."""


def read_properties(path: str) -> dict[str, str]:
    """The properties of a file as Kafka's own clients read it (`java.util.Properties`).

    Args:
        path: the file, in UTF-8; empty for none.

    Raises:
        LakehouseError: it cannot be read, or a line of it has no value. The line itself is not shown: it may be a
            secret.
    """
    if not path:
        return {}
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise UsageError(f"KAFKA_CONFIG={path}: {reason}. Name a properties file of a Kafka client.") from None
    properties = {}
    lines = iter(enumerate(text.splitlines(), 1))
    for number, line in lines:
        line = line.strip()
        if not line or line[0] in "#!":
            continue
        while re.search(r"(?<!\\)(\\\\)*\\$", line):  # goes on in the next line
            line = line[:-1] + next(lines, (0, ""))[1].strip()
        found = re.fullmatch(r"((?:\\.|[^\\=:\s])+)\s*[=:\s]\s*(.*)", line)
        if not found:
            raise UsageError(f"KAFKA_CONFIG={path}: line {number} is not of the form name=value.")
        properties[_unescaped(found[1])] = _unescaped(found[2])
    return properties


def _unescaped(text: str) -> str:
    known = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
    return re.sub(r"\\(?:u([0-9a-fA-F]{4})|(.))", lambda m: chr(int(m[1], 16)) if m[1] else known.get(m[2], m[2]), text)


def add_connector(spark: SparkSession, jars: list[Path]) -> None:
    """Give a session Spark's Kafka connector, unless it has it: a server may have been started without.

    Args:
        spark: the session, in this process or on a server.
        jars: those of the connector, on this machine.

    Raises:
        LakehouseError: the server cannot read them.
    """
    if _has_connector(spark):
        return
    for jar in jars:
        with suppress(Exception):  # a server elsewhere does not find the file
            spark.sql(f"add jar '{jar}'").collect()
    if not _has_connector(spark):
        raise LakehouseError(
            "the Spark server has no Kafka connector, and cannot read the jars of this machine. Start it with the"
            " package org.apache.spark:spark-sql-kafka-0-10_2.13 in its own version, or unset SPARK_REMOTE."
        )


def _has_connector(spark: SparkSession) -> bool:
    try:
        frame = spark.read.format("kafka").option("subscribe", "any").option("kafka.bootstrap.servers", "any").load()
        return bool(frame.columns)
    except Exception as error:
        if "Failed to find data source" in str(error) or "DATA_SOURCE_NOT_FOUND" in str(error):
            return False
        raise


@dataclass(frozen=True)
class Topics:
    """Topics of a Kafka.

    Attributes:
        servers: its bootstrap servers.
        names: the topics' names, separated by commas, or one regular expression (Java's) that matches all of a name.
        properties: those of a Kafka client. They may hold passwords, and are shown nowhere.
    """

    servers: str
    names: str
    properties: dict[str, str] = field(default_factory=dict, repr=False)

    @property
    def listed(self) -> list[str]:
        """The names, if they are names."""
        names = [name.strip() for name in self.names.split(",")]
        return names if all(re.fullmatch(r"[\w.-]+", name, re.ASCII) for name in names) else []

    def has(self, topic: str) -> bool:
        """Whether a topic is one of these; a pattern that only Java understands has none."""
        if self.listed:
            return topic in self.listed
        try:
            return re.fullmatch(self.names, topic) is not None
        except re.error:
            return False

    def offsets(self, spark: SparkSession) -> Offsets:
        """The offsets that the topics hold now.

        A stream that waits for more records than there can be: its first batch ends where the topics begin, has no
        records, and tells how far they reach. Spark has no other way to ask, also on a server elsewhere.

        Raises:
            LakehouseError: the broker does not answer or refuses, or a topic does not exist.
        """
        pattern = "|".join(name.replace(".", "[.]") for name in self.listed) or self.names
        with self._told():
            query = (
                self._reader(spark.readStream)
                .option("subscribePattern", pattern)
                .option("startingOffsets", "earliest")
                .option("minOffsetsPerTrigger", str(2**62))
                .option("maxTriggerDelay", "36500d")
                .load()
                .writeStream.format("noop")
                .trigger(processingTime="1 day")
                .start()
            )
            try:
                begin, end = self._first_batch(query)
            finally:
                with suppress(Exception):  # it would hide what ended the wait, which may be Ctrl-C
                    query.stop()
        found: Offsets = {}
        for topic, partitions in end.items():
            for number, latest in partitions.items():
                found[topic, int(number)] = begin[topic][number], latest
        missing = sorted(set(self.listed) - {topic for topic, _ in found})
        if missing:
            problem = f"there is no topic {', '.join(missing)}, or it may not be read"
            raise LakehouseError(f"KAFKA={self.servers}: {problem}. Check TOPICS.")
        if not found:
            problem = f"no topic matches TOPICS={self.names}; all of a name has to match"
            raise LakehouseError(f"KAFKA={self.servers}: {problem}.")
        return dict(sorted(found.items()))

    def _first_batch(self, query: Any) -> Any:
        until = time.monotonic() + ANSWER_SECONDS
        while not (progress := query.lastProgress):
            if query.awaitTermination(0.05) or time.monotonic() > until:
                raise TimeoutError("the broker does not answer")
        printed = progress.sources[0].endOffset, progress.sources[0].latestOffset  # as Python's dictionaries
        return tuple(ast.literal_eval(offsets) or {} for offsets in printed)

    def read(self, spark: SparkSession, offsets: Offsets) -> DataFrame:
        """The records from the first offset of each partition to before the second one, as rows of bronze without a
        batch.

        Key and value are text, byte for byte. A record of which one is no UTF-8 has neither, but `error`, and both as
        base64 in `raw`. The error is another one if it begins with the zero byte of a schema registry (Avro, Protobuf).
        Reading fails where records were deleted meanwhile; offsets that never held one are passed over.
        """
        with self._told():
            records = (
                self._reader(spark.read)
                .option("assign", _by_topic(dict.fromkeys(offsets)))
                .option("startingOffsets", _by_topic({place: start for place, (start, _) in offsets.items()}))
                .option("endingOffsets", _by_topic({place: end for place, (_, end) in offsets.items()}))
                .option("includeHeaders", "true")
                .option("maxRecordsPerPartition", str(TASK_OFFSETS))
                .load()
            )
        total = sum(end - start for start, end in offsets.values())
        if len(offsets) > 1 + total // FILE_OFFSETS:
            records = records.coalesce(1 + total // FILE_OFFSETS)
        texts = {name: F.col(name).cast("string") for name in ("key", "value")}
        checks = (F.coalesce(F.is_valid_utf8(text), F.lit(True)) for text in texts.values())
        is_text = F.col("is_text")  # a column, or Spark would check once for each of those below
        begins = (F.coalesce(F.substring(name, 1, 1) == F.lit(b"\0"), F.lit(False)) for name in texts)
        error = F.when(reduce(or_, begins), "schema_registry").otherwise("not_utf8")
        epoch = F.lit("1970-01-01T00:00:00Z").cast("timestamp")
        raw = F.to_json(F.struct(*(F.base64(name).alias(name) for name in texts)))
        return records.withColumn("is_text", reduce(and_, checks)).select(
            "topic",
            "partition",
            "offset",
            F.when(F.col("timestamp") >= epoch, F.col("timestamp")).alias("timestamp"),
            *(F.when(is_text, text).alias(name) for name, text in texts.items()),
            F.when(F.size("headers") > 0, F.col("headers")).alias("headers"),
            F.lit(None).cast("string").alias("file"),
            F.lit(None).cast("bigint").alias("line"),
            F.lit(None).cast("bigint").alias("line_end"),
            F.when(~is_text, error).alias("error"),
            F.when(~is_text, raw.cast("binary")).alias("raw"),
        )

    def _reader(self, reader: Any) -> Any:
        for name, value in {**DEFAULTS, **self.properties}.items():
            if name not in NOT_PASSED:
                reader = reader.option(f"kafka.{name}", value)
        reader = reader.format("kafka").option("kafka.bootstrap.servers", self.servers)
        return reader.option("fetchOffset.numRetries", "1")

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except LakehouseError:
            raise
        except Exception as error:
            raise self.explained(error, always=True) from error

    def explained(self, error: Exception, always: bool = False) -> Exception:
        """What to raise for an error of Spark's: the error itself if it did not come of reading Kafka."""
        text = str(error)
        # A server that was started without the connector cannot tell what stopped its task.
        if "may have been lost" in text or "OffsetOutOfRange" in text or "UnknownReason" in text:
            return RecordsGoneError(text)
        if not always and not re.search(r"org\.apache\.kafka\.|kafka010", text):
            return error
        ended = re.search(r"terminated with exception: (?:(?:[\w$]+\.)+)?(.+?)(?: SQLSTATE: \w+)?$", text, re.MULTILINE)
        problem = ended[1] if ended else next((line.strip() for line in text.splitlines() if line.strip()), "")
        if "imeout" in problem:
            problem = f"the broker does not answer ({problem})"
        check = "Check KAFKA, TOPICS and KAFKA_CONFIG; spark.log in LAKEHOUSE_DIR says more."
        return LakehouseError(f"KAFKA={self.servers}: {problem.rstrip('.')}. {check}")


def _by_topic(offsets: dict[tuple[str, int], int | None]) -> str:
    """Offsets by topic and partition as Spark's options take them; the partitions alone where there are none."""
    topics: dict[str, Any] = {}
    for (topic, partition), offset in offsets.items():
        if offset is None:
            topics.setdefault(topic, []).append(partition)
        else:
            topics.setdefault(topic, {})[str(partition)] = offset
    return json.dumps(topics)
