"""`make maintain KEEP=90d`: deletes batches of bronze that landed long ago and that every reader has read.

Readers are the change logs of a system, and its events model. What nobody reads stays: records of topics without
models, and lines that are no records; so does the newest batch, which gives the next one its number.

The numbers of the last batches, of all and of each topic, are stored before the records go: stopped in between, the
next call deletes them.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from scripts.bronze import PRUNED_TOPICS
from scripts.built import MODELS, Built, bronze_id
from scripts.catalog import mark_of, properties_of, tables_in
from scripts.declared import declared_tables
from scripts.errors import LakehouseError, UsageError
from scripts.ledger import complete
from scripts.literals import sql_text

PRUNED = "cdc.pruned-up-to"


def days_kept(text: str) -> int | None:
    """The days of KEEP; None if it is empty.

    Raises:
        UsageError: it is no number of days.
    """
    if text and not re.fullmatch("[0-9]{1,5}d", text):
        raise UsageError(f"KEEP={text}: expected a number of days, as 90d.")
    return int(text[:-1]) if text else None


@dataclass
class Readers:
    """What the change logs and the events model of a system have read."""

    topics: dict[str, int]  # topic → the newest batch of which all readers of bronze have read it
    routed: int | None = None  # the first batch of which a change log lacks records that the events model has

    def add(self, topics: set[str], batch: int) -> None:
        for topic in topics:
            self.topics[topic] = min(batch, self.topics.get(topic, batch))


def readers(spark: SparkSession, system: str) -> Readers:
    """What all readers of a system have read: those that have models, and change logs that are there without.

    Raises:
        LakehouseError: a reader was built from batches that bronze does not have any more.
    """
    declared: dict[str, set[str]] = {}
    events = f"{system}__events"
    for one in declared_tables(system, MODELS).values():
        for name in [one.model("staging", system), *[events] * one.routed]:
            declared.setdefault(name, set()).update(one.table.topics)
    there = tables_in(spark, "staging")
    found, bronze = Readers({}), bronze_id(spark, system)
    for name in sorted(declared.keys() | {name for name in there if name.startswith(f"stg_{system}__")}):
        table, wanted = f"staging.`{name}`", declared.get(name, set())
        if name not in there:
            found.add(wanted, 0)
            continue
        stored = properties_of(spark, table)
        if name not in declared and "cdc.bronze" not in stored:  # a table that somebody built
            continue
        if stored.get("cdc.bronze") != bronze:
            raise LakehouseError(
                f"{system}: {table} was built from batches that bronze does not have any more. Rebuild it first:"
                f" .venv/bin/dbt run --full-refresh --select source:bronze.{system}+"
            )
        built = json.loads(stored.get("cdc.declared") or "{}")
        batch = _read_up_to(spark, table, name, "batch" if name == events else "_cdc_batch")
        topics = set(built.get("topics", []))
        if built.get("routed") and events in there:
            names, of_log = (", ".join(map(sql_text, some)) for some in (built["table"], topics))
            unread = f"batch > {batch} and topic in ({of_log}) and source_table = to_json(array({names}))"
            first = spark.sql(f"select min(batch) as batch from staging.`{events}` where {unread}").collect()[0].batch
            found.routed = min(filter(None, (first, found.routed)), default=None)
            continue
        if name == events:
            topics = {row.topic for row in spark.sql(f"select distinct topic from {table}").collect()}
        found.add(topics, batch)
        found.add(wanted - topics, 0)  # its model has got them since
    # A run that could not write models reads these again: a column may lack in them.
    found.add(found.topics.keys() & set(Built().state["refused"].get(system, [])), 0)
    return found


def _read_up_to(spark: SparkSession, table: str, name: str, column: str) -> int:
    mark = mark_of(spark, table, f"cdc-batch-{name}")
    return int(mark.split(" ")[0] if mark else spark.sql(f"select max({column}) from {table}").collect()[0][0] or 0)


def prune(sql: Callable[[str], list[Any]], spark: SparkSession, system: str, before: int) -> tuple[int, str]:
    """Delete the batches that landed before a time, in seconds. Returns how many records went, and what to say.

    Args:
        sql: executes a statement.
    """
    table, read = f"bronze.`{system}`", readers(spark, system)
    if not read.topics:
        return 0, ""
    known = ", ".join(f"({sql_text(topic)}, {batch}L)" for topic, batch in read.topics.items())
    (found,) = sql(f"""
        select max(batch) as newest, min(batch) filter (where batch > up_to and error is null) as unread,
            min(batch) filter (where landed_at >= timestamp_seconds({before})) as young
        from {table} left join (values {known}) as readers (topic, up_to) using (topic)
        """)
    unread = min(filter(None, (found.unread, read.routed)), default=None)
    last = min(filter(None, (found.newest, found.young, unread)), default=0) - 1
    note = ""
    if unread == last + 1 and unread not in (found.newest, found.young):
        note = f"batches from {unread} on stay, because a table has not read them"
    topics = ", ".join(map(sql_text, read.topics))
    gone = f"{table} where batch <= {last} and error is null and topic in ({topics})"
    rows = sql(f"select topic, count(*) as n, max(batch) as batch from {gone} group by topic")
    if rows:
        complete(spark, system)
        stored = properties_of(spark, table)
        pruned = json.loads(stored.get(PRUNED_TOPICS) or "{}") | {row.topic: row.batch for row in rows}
        values = {PRUNED: str(max(last, int(stored.get(PRUNED, 0)))), PRUNED_TOPICS: json.dumps(pruned)}
        texts = ", ".join(f"'{name}' = {sql_text(value)}" for name, value in values.items())
        sql(f"alter table {table} set tblproperties ({texts})")
        sql(f"delete from {gone}")
    return sum(row.n for row in rows), note
