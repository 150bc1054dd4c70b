"""`make report`: one HTML page of what happened: events, delays, rejected records, rows, growth and the last runs.

It reads small columns of the change logs and of silver, the counts, and what Iceberg knows of its files; values of
bronze, which are large, are not read. What cannot be read is a note on the page.
"""

import os
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from scripts import runs
from scripts.catalog import relations_in
from scripts.declared import Declared, declared_tables
from scripts.errors import LakehouseError, UsageError
from scripts.files import put
from scripts.literals import sql_text
from scripts.maintain import all_tables, of_system
from scripts.messages import end_with, refuse_words, say
from scripts.report_page import Commit, Delay, Events, Figures, Reject, Rows, page
from scripts.results import counts_of, counts_of_table
from scripts.spark import PROJECT, lakehouse_dir, local_target, session

RUNS = 40
STEP = 600  # seconds between snapshots
DAYS, HOURS = 60, 48  # of events: those of so many days before the newest one, of the last hours by hour
KINDS = "('change', 'truncate', 'rejected')"


class Report:
    """What the page shows of some systems."""

    def __init__(self, spark: SparkSession, systems: list[str], tables: list[str]) -> None:
        self.spark, self.there = spark, tables
        self.of_system = {system: of_system(tables, system) for system in systems}
        self.declared: dict[str, list[Declared]] = {
            system: list(declared_tables(system, PROJECT / "models").values()) for system in systems
        }
        self.figures = {system: Figures(system) for system in systems}

    def ask(self, what: str, queries: dict[str, list[str]], outer: str = "select * from ({0})") -> list[Any]:
        """The rows of all queries: one statement, as each costs. If it fails, one of each system: of those that fail
        the page says so.

        Args:
            what: what the queries ask for, as the page names it.
            queries: system → its queries.
            outer: the statement, with {0} for the union of all.
        """
        queries = {system: of_system for system, of_system in queries.items() if of_system}
        if not queries:
            return []
        try:
            every = [query for of_system in queries.values() for query in of_system]
            return list(self.spark.sql(outer.format(" union all ".join(every))).collect())
        except Exception as error:
            if len(queries) > 1:
                return [row for one in queries.items() for row in self.ask(what, dict([one]), outer)]
            (system,) = queries
            lines = str(error).splitlines() or [type(error).__name__]
            self.figures[system].problems.append(f"{what} could not be read: {lines[0]}")
            return []

    def tables(self, schema: str, layer: str) -> list[tuple[str, Declared, str]]:
        """System, declared table and relation of those tables of a layer that are there."""
        found = [
            (system, one, f"`{schema}`.`{one.model(layer, system)}`")
            for system, of_system in self.declared.items()
            for one in of_system
        ]
        return [each for each in found if each[2] in self.there]

    def by_system(self, tables: list[tuple[str, Declared, str]], query: str) -> dict[str, list[str]]:
        """A query of each table, by system: {0} is its relation, {1} the literal of the system, {2} of the table."""
        queries: dict[str, list[str]] = {}
        for system, one, relation in tables:
            texts = (relation, sql_text(system), sql_text(one.table.name))
            queries.setdefault(system, []).append(query.format(*texts))
        return queries

    def read(self) -> list[Figures]:
        self.read_counts()
        with ThreadPoolExecutor(
            2
        ) as both:  # while Spark plans one statement, for a second or more, it runs another one
            list(both.map(lambda read: read(), (self.read_delays, self.read_commits, self.read_events, self.read_rows)))
        return list(self.figures.values())

    def read_counts(self) -> None:
        """Records of each table, kind, operation and reason; a system without counts has no table yet."""
        counted = [system for system in self.figures if f"`monitoring`.`{system}__event_counts`" in self.there]
        counts = counts_of(self.spark, dict.fromkeys(counted, 0)) if counted else {}
        for (system, table), rows in counts.items():
            figures = self.figures[system]
            figures.records += sum(row.events for row in rows)
            figures.newest = max([figures.newest, *(row.newest_second or 0 for row in rows)])
            where = "is null" if table is None else f"= {sql_text(table)}"
            query = (
                f"select reason, event_id, value from monitoring.`{system}__rejected_events` where source_table {where}"
            )
            reasons: Counter[str] = Counter()
            for row in rows:
                if row.kind == "rejected":
                    reasons[str(row.reject_reason)] += row.events
            figures.rejects += [Reject(table, reason, events, query) for reason, events in reasons.items()]
        for system in counted:
            for one in self.declared[system]:
                cells = counts_of_table(counts.get((system, one.table.name), []))
                self.figures[system].rows[one.table.name] = Rows(f"{system}.{one.relation}", cells)

    def read_events(self) -> None:
        """Events by table, operation and time of their commit: a day, in the end an hour."""
        union = {}
        for system, queries in self.by_system(
            self.tables("staging", "staging"),
            "select {1} as system, {2} as name, _cdc_kind as kind, _cdc_op as op, _cdc_changed_at as at"
            f" from {{0}} where _cdc_kind in {KINDS} and not endswith(coalesce(_cdc_event_id, ''), '#before')",
        ).items():
            newest = min(self.figures[system].newest + 1, int(time.time()) + 86_400)  # a wrong clock hides the others
            bounds = f"timestamp_seconds({newest} - {DAYS} * 86400) and timestamp_seconds({newest})"
            hourly = f"at >= timestamp_seconds({newest} - {HOURS} * 3600) as is_hour"
            bounded = f"_cdc_changed_at between {bounds}"
            union[system] = [f"select *, {hourly} from ({query} and {bounded})" for query in queries]
        for row in self.ask(
            "events by time",
            union,
            "select system, name, kind, op, is_hour, unix_timestamp(date_trunc(if(is_hour, 'hour', 'day'), at)) as at,"
            " count(*) as events from ({0}) group by all",
        ):
            op = row.kind if row.kind != "change" else str(row.op)
            self.figures[row.system].events.append(Events(row.name, op, row.at, row.is_hour, row.events))

    def read_delays(self) -> None:
        times = ("changed_at", "kafka_at", "landed_at", "merged_at")
        there = relations_in(self.spark, "monitoring")
        queries = {
            system: [
                f"select {sql_text(system)} as system, source_table as name,"
                f" {', '.join(f'unix_millis({at}) / 1000 as {at}' for at in times)} from monitoring.`{system}__lag`"
            ]
            for system, of_system in self.declared.items()
            if of_system and f"{system}__lag" in there
        }
        for row in self.ask("delays", queries):
            self.figures[row.system].delays.append(Delay(row.name, *(row[at] for at in times)))

    def read_rows(self) -> None:
        """Rows and deleted rows of the tables with a key; records of the others."""
        query = "select {1} as system, {2} as name, _cdc_is_deleted as is_deleted from {0}"
        keyed = [each for each in self.tables("silver", "silver") if each[1].table.keys]
        logs = [each for each in self.tables("staging", "staging") if not each[1].table.keys]
        union = self.by_system(keyed, query)
        for system, of_logs in self.by_system(logs, "select {1} as system, {2} as name, null as is_deleted from {0}"
                                              " where _cdc_kind in ('change', 'truncate')").items():  # fmt: skip
            union.setdefault(system, []).extend(of_logs)
        for row in self.ask(
            "rows",
            union,
            "select system, name, count_if(not is_deleted) as live, count_if(is_deleted) as deleted,"
            " count_if(is_deleted is null) as log from ({0}) group by system, name",
        ):
            if found := self.figures[row.system].rows.get(row.name):
                found.live, found.deleted, found.log = row.live, row.deleted, row.log

    def read_commits(self) -> None:
        """What the last snapshot of every ten minutes, if it has not expired, left of files, bytes and records."""
        totals = {"files": "data-files", "deletes": "delete-files", "bytes": "files-size", "records": "records"}
        columns = ", ".join(f"bigint(summary['total-{key}']) as {name}" for name, key in totals.items())
        queries = {
            system: [
                f"select {sql_text(system)} as system, {sql_text(table.replace('`', ''))} as name,"
                f" unix_timestamp(committed_at) as at, summary from {table}.snapshots"
                for table in tables
            ]
            for system, tables in self.of_system.items()
        }
        for row in self.ask(
            "files and their growth",
            queries,
            f"select system, name, at, snapshots, {columns} from ("
            "select system, name, max(at) as at, count(*) as snapshots, max_by(summary, at) as summary from ({0})"
            f" group by system, name, at div {STEP}) order by at",
        ):
            numbers = (row[name] or 0 for name in (*totals, "snapshots"))
            self.figures[row.system].commits.append(Commit(row.name, row.at, *numbers))


def report(spark: SparkSession, system: str) -> Path:
    """Write the page of a system, of all if it is empty. Returns its place.

    Raises:
        LakehouseError: nothing has landed, or not for this system.
    """
    tables = all_tables(spark)
    names = [table.strip("`").split("`.`") for table in tables]
    systems = sorted(name for schema, name in names if schema == "bronze" and "__" not in name)
    if not systems:
        raise LakehouseError("nothing has landed yet, so there is nothing to report. Run make run first.")
    if system:
        of_system(tables, system)  # that there is one
        systems = [system]
    figures = Report(spark, systems, tables).read()
    last = [run for run in runs.last(runs.KEPT) if not system or system in run["systems"]]
    path = lakehouse_dir() / "report.html"
    put(path, page(figures, last[-RUNS:], time.time()))
    return path


def main() -> int:
    """Write the page of what SYSTEM names, and return the exit status."""
    try:
        if local_target() == "local" and not os.environ.get("SPARK_REMOTE") and not lakehouse_dir().exists():
            raise UsageError(f"LAKEHOUSE_DIR={lakehouse_dir()}: there is no lakehouse yet. Run make run first.")
        path = report(session(), os.environ.get("SYSTEM", ""))
        say(f"The report is in {path}")
        return 0
    except KeyboardInterrupt:
        say("\nStopped. No report was written.")
        return 130
    except Exception as error:
        return end_with(error)


if __name__ == "__main__":
    sys.exit(refuse_words(sys.argv) or main())
