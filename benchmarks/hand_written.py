"""The baseline: what an expert writes by hand in PySpark for the four tables of `generate.py`.

    python benchmarks/hand_written.py LAKEHOUSE_DIR EVENTS_DIR

One process lands the records of EVENTS_DIR in `bronze.bench`, folds the new batch into `silver.t1` to
`silver.t4` with a guarded MERGE (a new table is created from the select), and prints each table's number of
live rows and a checksum. It knows these tables and this connector only, and expects the events of a key in
order across batches. The seconds of each phase go to standard error.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

PACKAGES = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0,org.xerial:sqlite-jdbc:3.51.0.0"
TABLES = ("t1", "t2", "t3", "t4")

RECORD = (
    "topic STRING, partition INT, offset BIGINT, timestamp BIGINT, "
    "headers ARRAY<STRUCT<key: STRING, value: STRING>>, key STRING, value STRING"
)
PAYLOAD = (
    "before STRUCT<id: BIGINT>, "
    "after STRUCT<id: BIGINT, name: STRING, amount: STRING, quantity: INT, is_active: BOOLEAN, "
    "ordered_on: INT, changed_at: BIGINT, created_at: STRING, score: DOUBLE, note: STRING>, "
    "source STRUCT<sequence: STRING, lsn: BIGINT>, op STRING"
)

# Silver's columns and how each follows from the row image `after`.
COLUMNS = {
    "id": "id",
    "name": "after.name",
    # Big-endian two's complement, sign-extended to 64 bits: numeric(12,2) fits.
    "amount": (
        """cast(
        cast(conv(lpad(amount_hex, 16, if(amount_hex >= '8', 'F', '0')), 16, -10) as decimal(20, 0)) * 0.01BD
        as decimal(12, 2)
    )"""
    ),
    "quantity": "after.quantity",
    "is_active": "after.is_active",
    "ordered_on": "date_add(date'1970-01-01', after.ordered_on)",
    "changed_at": "cast(timestamp_micros(after.changed_at) as timestamp_ntz)",
    "created_at": "cast(after.created_at as timestamp)",
    "score": "after.score",
    "note": "noted.note",
}
STORED = (*COLUMNS, "position", "is_deleted")
CHECKSUM = "sum(cast(xxhash64({}) as decimal(20, 0)))".format(
    ", ".join(f"coalesce(cast({column} as string), '')" for column in COLUMNS)
)

FORMAT = "'format-version' = '3', 'write.distribution-mode' = 'none', 'write.spark.fanout.enabled' = 'true'"
MERGE_ON_READ = ", ".join(
    f"'write.{command}.{setting}'"
    for command in ("delete", "update", "merge")
    for setting in ("mode' = 'merge-on-read", "distribution-mode' = 'none")
)


@contextmanager
def timed(phase: str) -> Iterator[None]:
    """Report the seconds that a phase took."""
    start = time.perf_counter()
    yield
    print(f"{phase}: {time.perf_counter() - start:.2f} s", file=sys.stderr)


def session(lakehouse: Path, jvm_options: str, driver_memory: str, class_path: str) -> SparkSession:
    """A session on all cores with an Iceberg catalog in a SQLite file."""
    settings: dict[str, bool | float | int | str | None] = {
        "spark.driver.memory": driver_memory,
        "spark.driver.extraJavaOptions": jvm_options,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.defaultCatalog": "lakehouse",
        "spark.sql.catalog.lakehouse": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lakehouse.type": "jdbc",
        "spark.sql.catalog.lakehouse.uri": f"jdbc:sqlite:{lakehouse}/catalog.db",
        "spark.sql.catalog.lakehouse.warehouse": f"{lakehouse}/warehouse",
        "spark.sql.catalog.lakehouse.jdbc.schema-version": "V1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.shuffle.partitions": "4",
        **({"spark.driver.extraClassPath": class_path} if class_path else {"spark.jars.packages": PACKAGES}),
    }
    builder = SparkSession.builder.master("local[*]").appName("hand_written")
    return builder.config(map=settings).getOrCreate()


def land(spark: SparkSession, events: Path) -> int:
    """Append the records of the files to bronze, verbatim, and return the number of their batch."""
    lines = spark.read.text(str(events), lineSep="\n")
    record = F.from_json("value", RECORD, {"mode": "FAILFAST"}).alias("record")
    if spark.catalog.tableExists("bronze.bench"):
        batch: int = spark.sql("select max(batch) + 1 from bronze.bench").first()[0]
    else:
        batch = 1
        for namespace in ("bronze", "silver", "live"):
            spark.sql(f"create namespace if not exists {namespace}")
        spark.sql(
            f"create table bronze.bench ({RECORD}, batch BIGINT) using iceberg partitioned by (topic) tblproperties"
            f" ({FORMAT})"
        )
    records = lines.select(record).select("record.*", F.lit(batch).cast("bigint").alias("batch"))
    records.writeTo("bronze.bench").append()
    return batch


def latest_changes(table: str, batch: int) -> str:
    """The query for the newest change of every key in a batch, typed.

    A note that the newest change did not carry comes from the newest one in the batch that did; `has_note` is
    false if there is none. A delete writes every column.
    """
    columns = ", ".join(f"{expression} as {column}" for column, expression in COLUMNS.items())
    return f"""
        with payloads as (
            select offset, from_json(substring_index(value, '"payload":', -1), '{PAYLOAD}') as payload
            from bronze.bench
            where topic = 'bench.public.{table}' and batch = {batch} and value is not null
        ),
        changes as (
            select
                coalesce(payload.after.id, payload.before.id) as id,
                payload.after as after,
                payload.op = 'd' as is_deleted,
                -- Commit order: the first number of `sequence` is the last commit's, or the lsn before any.
                struct(
                    cast(regexp_extract(payload.source.sequence, '"([0-9]+)"', 1) as bigint) as commit,
                    payload.source.lsn as lsn,
                    offset
                ) as position
            from payloads
        ),
        folded as (
            select
                id,
                max_by(struct(after, is_deleted, position), position) as latest,
                max_by(struct(after.note as note), position) filter (
                    where after.note is distinct from '__debezium_unavailable_value'
                ) as noted
            from changes
            group by id
        ),
        latest as (
            select id, latest.*, noted, hex(unbase64(latest.after.amount)) as amount_hex from folded
        )
        select {columns}, position, is_deleted, noted is not null as has_note
        from latest
    """


def merge(spark: SparkSession, table: str, batch: int) -> None:
    """Fold a batch into a silver table, newer positions over older ones; deleted rows stay as tombstones."""
    changes = latest_changes(table, batch)
    if not spark.catalog.tableExists(f"silver.{table}"):
        spark.sql(
            f"create table silver.{table} using iceberg tblproperties ({FORMAT}, {MERGE_ON_READ}) "
            f"as select {', '.join(STORED)} from ({changes})"
        )
        spark.sql(f"create view live.{table} as select {', '.join(COLUMNS)} from silver.{table} where not is_deleted")
        return
    values = {column: f"changes.{column}" for column in STORED}
    updates = values | {"note": "if(changes.has_note, changes.note, stored.note)"}
    spark.sql(f"""
        merge into silver.{table} as stored
        using ({changes}) as changes
        on stored.id = changes.id
        when matched and changes.position > stored.position then
            update set {", ".join(f"{column} = {value}" for column, value in updates.items())}
        when not matched then
            insert ({", ".join(values)}) values ({", ".join(values.values())})
    """)


def report(spark: SparkSession, table: str) -> str:
    """A table's name, number of live rows and checksum."""
    row = spark.sql(f"select '{table}', count(*), {CHECKSUM} from live.{table}").collect()[0]
    return " ".join(map(str, row))


def main() -> None:
    """Land the events, merge them, print each table's count and checksum."""
    parser = argparse.ArgumentParser(description="Land and merge the benchmark's events with plain PySpark.")
    parser.add_argument("lakehouse", type=Path)
    parser.add_argument("events", type=Path)
    parser.add_argument("--jvm-options", default="", help="options of the driver's JVM")
    parser.add_argument("--driver-memory", default="4g")
    parser.add_argument("--class-path", default="", help="jars to use instead of resolving the packages")
    arguments = parser.parse_args()

    lakehouse = arguments.lakehouse.resolve()
    lakehouse.mkdir(parents=True, exist_ok=True)
    with timed("session"):
        spark = session(lakehouse, arguments.jvm_options, arguments.driver_memory, arguments.class_path)
    with timed("landing"):
        batch = land(spark, arguments.events)
    with ThreadPoolExecutor(len(TABLES)) as threads:
        with timed("merge"):
            list(threads.map(lambda table: merge(spark, table, batch), TABLES))
        with timed("count"):
            print(*threads.map(lambda table: report(spark, table), TABLES), sep="\n")
    spark.stop()


if __name__ == "__main__":
    main()
