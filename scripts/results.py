"""What a run shows at its end: what each source table had and has, and rejected records."""

import time
from collections import Counter
from typing import Any

from pyspark.sql import SparkSession

from scripts import runs
from scripts.built import MODELS, Built
from scripts.catalog import tables_in
from scripts.declared import Declared, declared_tables
from scripts.literals import sql_text
from scripts.messages import say, shown

REASONS_SHOWN = 5  # of a table
MANY_TABLES = 40  # of a system with more, only those are shown that have something new or rejected
NUMBERS = ("events", "inserts", "updates", "deletes", "truncates", "rejected", "live rows")
HEAD = ("source table", "relation", *NUMBERS, "newest change", "lag")
Counts = dict[tuple[str, str | None], list[Any]]  # system and table → rows of its counts


def show(spark: SparkSession, before: dict[str, int]) -> None:
    """The table that ends a run: what each source table had and has; below it what was rejected, and other notes.

    Args:
        before: system → the newest batch that was built before the run.
    """
    merged_at = time.time()
    counted = tables_in(spark, "monitoring")
    declared = {system: declared_tables(system, MODELS) for system in before if f"{system}__event_counts" in counted}
    tables = {
        system: sorted(found.values(), key=lambda table: table.relation) for system, found in declared.items() if found
    }
    if not tables:
        say("No tables yet.")
        return
    counts = counts_of(spark, {system: before[system] for system in tables})
    shown_tables = {system: _shown_tables(system, of_system, counts) for system, of_system in tables.items()}
    lines, notes = _lines(spark, shown_tables, counts, merged_at)
    if lines:
        has_lag = any(line[-1] != "-" for line in lines)
        say("\n" + "\n".join(_aligned([line if has_lag else line[:-1] for line in [HEAD, *lines]])))
    for system, of_system in tables.items():
        if unshown := len(of_system) - len(shown_tables[system]):
            nothing = "tables have nothing new and no rejected record; they are not shown"
            say(f"{system}: {unshown} of {len(of_system)} {nothing}.")
    if rejects := [line for (system, table), rows in counts.items() for line in _rejects(system, table, rows)]:
        say("\n" + "\n".join(rejects))
    # What others have landed since the run wrote models is left to the next one.
    known = {system: [row for row in counts.get((system, None), []) if not row.is_later] for system in tables}
    without_model = {system: _sum(rows, "change_without_model") for system, rows in known.items()}
    if any(without_model.values()):
        say("")
    for system, number in without_model.items():
        if number:
            runs.warn(system)
            say(f"{system}: {number:,} changes are of no table that has models; they are in bronze.{system}.")
    if notes:
        say("\n" + "\n".join(notes))
        say("Values of these rows are not known (docs/operating.md#watching says which).")


def _lines(
    spark: SparkSession, tables: dict[str, list[Declared]], counts: Counts, merged_at: float
) -> tuple[list[tuple[str, ...]], list[str]]:
    """The line of each table, and a note of each that has rows with unknown values."""
    live = _live_rows(spark, tables)
    lines, notes = [], []
    for system, of_system in tables.items():
        for table in of_system:
            is_log = not table.table.keys
            relation = f"silver.{table.model('silver', system)}" if is_log else f"{system}.{table.relation}"
            found = live.get((system, table.relation))
            rows = "change log" if is_log else f"{found.live_rows if found else 0:,}"
            if found and found.unknown:
                unknown = "rows with a NULL for a value that every landed event left out"
                notes.append(f"{relation}: {unknown}: {found.unknown:,}")
            of_table = counts.get((system, table.table.name), [])
            *numbers, newest = counts_of_table(of_table)
            lines.append((shown(table.table.name), relation, *numbers, rows, newest, _lag(of_table, merged_at)))
    return lines, notes


def without_tables(spark: SparkSession, system: str) -> str:
    """What to say of a system whose records gave no table; empty where it has one, or nothing has landed."""
    if declared_tables(system, MODELS) or not spark.catalog.tableExists(f"bronze.`{system}`"):
        return ""
    query = f"select error, count(*) as n from bronze.`{system}` group by error order by error nulls first"
    rows = spark.sql(query).collect()
    if not rows:
        return ""
    found = ", ".join(
        f"{row.n:,} {f'rejected ({row.error})' if row.error else 'of which no table was made'}" for row in rows
    )
    return (
        f"SYSTEM={system}: what has landed gave no table: {found}. The run that landed it said more. Expected are"
        " Debezium change events as JSON (README.md, docs/rejects.md). To see what is there: select * from"
        f" bronze.{system} limit 1"
    )


def counts_of(spark: SparkSession, before: dict[str, int]) -> Counts:
    """How many records of each kind, operation and reason have landed, up to a batch and above it."""
    columns = "source_table, kind, op, reject_reason, events, newest_change_at"
    last = Built().state["batches"]  # that had models written
    queries = [
        f"select '{system}' as system, {columns}, batch > {batch} as is_new, batch > {last.get(system, 0)} as is_later"
        f" from monitoring.`{system}__event_counts`"
        for system, batch in before.items()
    ]
    found: Counts = {}
    for row in spark.sql(f"""
        select system, source_table, kind, op, reject_reason, is_new, is_later, sum(events) as events,
            date_format(max(newest_change_at), 'yyyy-MM-dd HH:mm:ss') as newest,
            unix_timestamp(max(newest_change_at)) as newest_second
        from ({" union all ".join(queries)}) as counts
        group by system, source_table, kind, op, reject_reason, is_new, is_later
        order by system, source_table nulls last
        """).collect():
        found.setdefault((row.system, row.source_table), []).append(row)
    return found


def _shown_tables(system: str, tables: list[Declared], counts: Counts) -> list[Declared]:
    """The tables that the run shows: all, or of many those that have new records or rejected ones."""
    if len(tables) <= MANY_TABLES:
        return tables

    def is_shown(table: Declared) -> bool:
        return any(row.is_new or row.kind == "rejected" for row in counts.get((system, table.table.name), []))

    return list(filter(is_shown, tables))


def _lag(rows: list[Any], now: float) -> str:
    """How long ago the source committed the newest of a table's new changes; `-` of a table without any."""
    new = (row for row in rows if row.is_new and row.kind in ("change", "truncate"))
    seconds = [row.newest_second for row in new if row.newest_second]
    return duration(now - max(seconds)) if seconds else "-"


def duration(seconds: float) -> str:
    """In the greatest unit that fits twice: `90 s`, `36 h`. `< 0 s` if the clock of the source is ahead."""
    if seconds < 0:
        return "< 0 s"
    for unit, of in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * of:
            return f"{seconds // of:.0f} {unit}"
    return f"{seconds:.0f} s"


def _sum(rows: list[Any], kind: str, *ops: str) -> int:
    return sum(row.events for row in rows if row.kind == kind and (not ops or row.op in ops))


def counts_of_table(rows: list[Any]) -> list[str]:
    """The cells of a table from `events` to `rejected`, and `newest change`."""
    inserts, updates, deletes = (_sum(rows, "change", *ops) for ops in ("cr", "u", "d"))
    truncates, rejected = _sum(rows, "truncate"), _sum(rows, "rejected")
    numbers = _sum(rows, "change") + truncates + rejected, inserts, updates, deletes, truncates, rejected
    return [*(f"{number:,}" for number in numbers), max((row.newest for row in rows if row.newest), default="-")]


def _aligned(lines: list[tuple[str, ...]]) -> list[str]:
    """The lines of a table, the head first: texts on the left of their columns, numbers on the right."""
    columns = []
    for cells in zip(*lines, strict=True):
        width, is_number = max(map(len, cells)), cells[0] in (*NUMBERS, "lag")
        columns.append([cell.rjust(width) if is_number else cell.ljust(width) for cell in cells])
    return ["  ".join(line).rstrip() for line in zip(*columns, strict=True)]


def _rejects(system: str, table: str | None, rows: list[Any]) -> list[str]:
    """How many records of a table were rejected for which reason, and the query that shows them; empty if none was."""
    number = _sum(rows, "rejected")
    if not number:
        return []
    of_reason: Counter[str] = Counter()
    for row in rows:
        if row.kind == "rejected":
            of_reason[str(row.reject_reason)] += row.events
    reasons = sorted(of_reason.items(), key=lambda one: (-one[1], one[0]))
    records = "1 record was rejected" if number == 1 else f"{number:,} records were rejected"
    others = sum(events for _, events in reasons[REASONS_SHOWN:])
    quoted = "is null" if table is None else f"= {sql_text(table)}"
    return [
        f"{system}: {records} of {'no table' if table is None else shown(table)}:",
        *(f"  {events:,} because of {shown(reason)}" for reason, events in reasons[:REASONS_SHOWN]),
        *([f"  {others:,} for other reasons"] if others else []),
        f"  select reason, event_id, value from monitoring.`{system}__rejected_events` where source_table {quoted}",
    ]


def _live_rows(spark: SparkSession, tables: dict[str, list[Declared]]) -> dict[tuple[str, str], Any]:
    """System and relation → its `live_rows`, and how many of them have a value that every event left out (`unknown`).

    Many tables in one query with one aggregation: each costs, but Spark takes minutes to plan one of hundreds.
    Tables without a live row are not in it.
    """
    there = tables_in(spark, "silver")
    queries = [
        f"select '{system}' as system, '{table.relation}' as relation, _cdc_held "
        f"from silver.`{table.model('silver', system)}` where not _cdc_is_deleted"
        for system, of_system in tables.items()
        for table in of_system
        if table.table.keys and table.model("silver", system) in there
    ]
    found: dict[tuple[str, str], Any] = {}
    for first in range(0, len(queries), MANY_TABLES):
        rows = spark.sql(f"""
            select system, relation, count(*) as live_rows,
                count_if(exists(map_values(_cdc_held), held -> held not like '%.%.%.%')) as unknown
            from ({" union all ".join(queries[first : first + MANY_TABLES])}) as rows group by system, relation
            """).collect()
        found |= {(row.system, row.relation): row for row in rows}
    return found


def next_steps(system: str) -> None:
    say("\nNext: make sql      a SQL shell, for instance: select * from " + _example(system) + " limit 10")
    say("      make docs     the documentation of every model and column, with lineage")
    say("      make run EVENTS=<file, folder or glob> SYSTEM=<name>     your own Debezium events")


def _example(system: str) -> str:
    keyed = [table.relation for table in declared_tables(system, MODELS).values() if table.table.keys]
    return f"{system}.{sorted(keyed)[0]}" if keyed else f"bronze.{system}"
