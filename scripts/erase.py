"""`make erase SYSTEM= TABLE= KEY=`: removes what is known of rows, by their keys, from bronze, change log, silver and
history, with the files that hold it.

The change log says which records are about a row, so it loses its own rows last: stopped anywhere, the next call
finishes. Commits carry the mark of what is merged, so no run builds again what went, and the older snapshots, which
hold it, can all expire.
"""

import os
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession

from scripts.bronze import LANDED
from scripts.built import MODELS
from scripts.catalog import HEAD, mark_of, properties_of
from scripts.declared import Declared, declared_tables
from scripts.erased_rows import Rows, find_table, parse_keys
from scripts.errors import LakehouseError, UsageError
from scripts.ledger import complete
from scripts.literals import sql_text
from scripts.maintain import Maintenance, all_tables
from scripts.messages import end_with, refuse_words, say, shown
from scripts.prune import readers
from scripts.spark import locked, session

ERASING = "cdc.erasing"  # a property of the change log from the first statement to the last
COORDINATES = """batch, if(partition is not null and offset is not null, xxhash64(topic, partition), xxhash64(file)),
    if(partition is not null and offset is not null, offset, line), coalesce(key, '')"""
RECORD = "coalesce(concat(topic, '/', partition, '/', offset), concat(file, ':', line))"  # as event_id has it
STAYS = """What may still hold it: backups; older versions of objects in a bucket; the source's topics, and the files
that were named as EVENTS; the logs of Spark and dbt; files of stopped runs and of dropped tables, which make maintain
removes after a day; other tables of the source, and your own models, where they mention it. An event that lands again
brings the row back."""


@dataclass
class Erasure:
    """The rows of one table that are to go, and how many went from each table so far."""

    spark: SparkSession
    system: str
    declared: Declared
    rows: Rows
    done: Counter[str] = field(default_factory=Counter)
    landed: int = 0  # the newest batch of bronze

    @property
    def bronze(self) -> str:
        return f"bronze.`{self.system}`"

    @property
    def events(self) -> str:
        return f"staging.`{self.system}__events`"

    @property
    def silver(self) -> str:
        return f"silver.`{self.system}__{self.declared.relation}`"

    @property
    def history(self) -> str:
        return f"history.`{self.system}__{self.declared.relation}`"

    def run(self) -> None:
        """Erase the rows from all tables.

        Raises:
            LakehouseError: the tables are behind what has landed, or nothing is known of the rows.
        """
        log, rows = self.rows.log, self.rows
        has_history = self.spark.catalog.tableExists(self.history)
        self._check_no_other_log()
        self._check_all_is_merged([self.silver, *[self.history] * has_history])
        rows.check_other_keys()
        states = dict.fromkeys([self.silver, *[self.history] * has_history], rows.of_state)
        there = any(self._count(table, condition) for table, condition in [*states.items(), (log, rows.of_log)])
        if not there and ERASING not in properties_of(self.spark, log):
            raise LakehouseError(f"{self.system}: no row or event of {self.declared.table.name} has this key.")
        self._sql(log, f"alter table {log} set tblproperties ('{ERASING}' = 'true')")
        for table, condition in self._in_place_of_views().items():
            self._erase(table, condition)
        is_left = True
        while is_left:
            self._erase_records(self._batches(), states)
            # Dbt, which waits for no lock, has read them in the change log meanwhile, and may have appended more.
            for table, condition in states.items():
                if self._count(table, condition):
                    self._erase(table, condition)
            is_left = bool(self._count(log, rows.of_log))
        self._sql(log, f"alter table {log} unset tblproperties ('{ERASING}')")

    def _erase_records(self, batches: list[int], states: dict[str, str]) -> None:
        """Erase the records of some batches about the rows, and the rows themselves; from the change log last."""
        log, rows, events = self.rows.log, self.rows, self.events if self.declared.routed else ""
        condition = rows.of_records(batches, COORDINATES, events) if batches else "false"
        self.landed = complete(self.spark, self.system)  # else what goes would be taken for what never landed
        self._erase(self.bronze, condition)
        if events:
            self._erase(events, condition)
        for table, condition in states.items():
            self._erase(table, condition)
        if batches:
            self._count_again(batches)
        of_batches = f"_cdc_batch in ({', '.join(map(str, batches))})" if batches else "false"
        self._erase(log, f"({rows.of_log}) and {of_batches}")

    def _in_place_of_views(self) -> dict[str, str]:
        """The tables that stand for views of the others, and the condition of the rows in each."""
        system, name, rows = self.system, self.declared.relation, self.rows
        rejected = f"event_id in (select _cdc_event_id from {rows.log} where {rows.of_log})"
        if self.declared.routed:
            rejected += f" or event_id in (select {RECORD} from {self.events} where {rows.of_no_table})"
        views = {f"`{schema}`.`{name}`": rows.of_state for schema in (system, f"{system}_history")}
        views[f"`monitoring`.`{system}__rejected_events`"] = rejected
        there = all_tables(self.spark)
        return {table: condition for table, condition in views.items() if table in there}

    def _check_no_other_log(self) -> None:
        """Two change logs that read one topic without an events model have each record twice."""
        own = self.declared
        for one in declared_tables(self.system, MODELS).values():
            is_shared = one.relation != own.relation and one.table.topics & own.table.topics
            if is_shared and not (one.routed and own.routed):
                problem = f"{own.table.name} and {one.table.name} read the same topic, without an events model"
                raise LakehouseError(f"{self.system}: {problem}. Their rows cannot be erased.")

    def _check_all_is_merged(self, tables: list[str]) -> None:
        """What is not merged yet would come back with the next run."""
        log, system = self.rows.log, self.system
        behind = f"{system}: the tables are behind what has landed. First: make run SYSTEM={system}"
        read = readers(self.spark, system)
        marks = ", ".join(f"({batch}L, {sql_text(topic)})" for topic, batch in read.topics.items())
        unread = f"select 1 from bronze.`{system}` join (values {marks}) as marks (up_to, topic) using (topic)"
        topics = ", ".join(map(sql_text, self.declared.table.topics))
        unread += f" where batch > up_to and error is null and topic in ({topics}) limit 1"
        if read.routed or self.spark.sql(unread).collect():
            raise LakehouseError(behind)
        append = int((self._mark(log).split(" ") + ["0"])[1] or 0)
        for table in tables:
            up_to = int(self._mark(table).split(" ")[0] or -1)
            kinds = "'change', 'truncate'" + (", 'rejected'" if table == self.silver else "")  # which it counts
            new = f"{log} where _cdc_append > {up_to} and _cdc_kind in ({kinds})"
            if not 0 <= up_to <= append or self.spark.sql(f"select 1 from {new} limit 1").collect():
                raise LakehouseError(behind)

    def _batches(self) -> list[int]:
        """The batches with records about the rows."""
        query = f"select _cdc_batch as batch from {self.rows.log} where {self.rows.of_log}"
        if self.declared.routed:
            query += f" union select batch from {self.events} where {self.rows.of_no_table}"
        return sorted({row.batch for row in self.spark.sql(query).collect()})

    def _count(self, table: str, condition: str) -> int:
        return int(self.spark.sql(f"select count(*) as n from {table} where {condition}").collect()[0].n)

    def _mark_name(self, table: str) -> str:
        schema, name = table.replace("`", "").split(".")
        if schema == "bronze":
            return LANDED
        return f"cdc-batch-{'history_' if schema == 'history' else ''}{name}"

    def _mark(self, table: str) -> str:
        return mark_of(self.spark, table, self._mark_name(table))

    def _new_mark(self, table: str) -> str:
        if table == self.bronze:
            return str(self.landed)
        return self._mark_of_silver() if table == self.silver else self._mark(table)

    def _mark_of_silver(self) -> str:
        """With the number of changes and rejected records that stay: a rebuild compares it with the change log."""
        parts = self._mark(self.silver).split(" ") + ["", "", ""]
        is_record = "not endswith(coalesce(_cdc_event_id, ''), '#before')"
        (found,) = self.spark.sql(f"""
            select count_if(_cdc_kind in ('change', 'truncate') and {is_record}) as changes,
                count_if(_cdc_kind = 'rejected' and {is_record}) as rejected
            from {self.rows.log} where not {self.rows.of_log} and _cdc_append <= {parts[0]}
            """).collect()
        parts[2] = f"{found.changes}:{found.rejected}"
        built = f"'cdc.built-from' = '{parts[3] or 0} {parts[2]}'"  # which counts if no snapshot has the mark
        self._sql(self.silver, f"alter table {self.silver} set tblproperties ({built})")
        return " ".join(parts).rstrip()

    def _sql(self, table: str, statement: str) -> list[Any]:
        return Maintenance(self.spark, table).sql(statement)

    def _erase(self, table: str, condition: str) -> None:
        """Delete rows of a table, and the files and snapshots that hold them or held them."""
        one = Maintenance(self.spark, table)
        if self.spark.sql(f"select 1 from {table}.delete_files limit 1").collect():  # older states of rows
            one.call("rewrite_data_files", "options => map('delete-file-threshold', '1')")
        count = self._count(table, condition)
        if count:
            self._delete(one, condition)
            self.done[table] += count
        self._mark_again(one)
        one.expire([row.snapshot_id for row in one.snapshots() if not row.ref])
        if refs := [row.ref for row in one.snapshots() if row.ref and row.ref != "main"]:
            say(f"{table.replace('`', '')}: branches and tags keep what they hold: {', '.join(map(shown, refs))}")

    def _delete(self, one: Maintenance, condition: str) -> None:
        """Delete rows in one commit, which writes the files that held them anew."""
        mode = "alter table {} set tblproperties ('write.delete.mode' = '{}')"
        has_mode = "write.delete.mode" in properties_of(self.spark, one.table)
        if has_mode:
            one.sql(mode.format(one.table, "copy-on-write"))
        one.sql(f"delete from {one.table} where {condition}")
        if has_mode:
            one.sql(mode.format(one.table, "merge-on-read"))

    def _mark_again(self, one: Maintenance) -> None:
        """Commit the mark of a table, if it has one, without a row: the snapshots that have it go.

        Readers of a change log and of an events model would pass over what dbt, which waits for no lock, has added with
        a later mark meanwhile: there the commit is refused then, and made again. Other tables would only read it again.
        """
        number = {self.rows.log: "_cdc_batch", self.events: "batch"}.get(one.table)  # of these, files know the greatest
        while heads := self.spark.sql(HEAD.format(one.table)).collect():
            head = heads[0].snapshot_id
            mark = self._new_mark(one.table)
            if not mark:
                return
            where, is_refused = "", ""
            if number:
                greatest = f"select coalesce(max({number}), -1) as n from {one.table} version as of {head}"
                where = f"replace where {number} > {self.spark.sql(greatest).collect()[0].n}"
                is_refused = f"'isolation-level' = 'serializable', 'validate-from-snapshot-id' = '{head}',"
            try:  # read without `version`, the table would take the options from the statement that writes
                one.sql(f"""
                    insert into {one.table} with ({is_refused}
                        'snapshot-property.{self._mark_name(one.table)}' = '{mark}')
                    {where} select * from {one.table} version as of 'main' where false
                    """)
                return
            except Exception:
                if self.spark.sql(HEAD.format(one.table)).collect() == heads:
                    raise

    def _count_again(self, batches: list[int]) -> None:
        """Count the records of the table that stay in these batches."""
        counts, numbers = f"monitoring.`{self.system}__event_counts`", ", ".join(map(str, batches))
        name = sql_text(self.declared.table.name)
        same = ("source_table", "batch", "kind", "op", "reject_reason")
        self._sql(
            counts,
            f"""
            merge into {counts} as stored
            using (
                select _cdc_batch as batch, {name} as source_table, _cdc_kind as kind, _cdc_op as op,
                    _cdc_reject_reason as reject_reason, count(*) as events, max(_cdc_changed_at) as newest_change_at
                from {self.rows.log}
                where _cdc_batch in ({numbers}) and _cdc_kind <> 'other_table' and not {self.rows.of_log}
                    and not endswith(coalesce(_cdc_event_id, ''), '#before')
                group by all
            ) as counted
            on {" and ".join(f"stored.{column} <=> counted.{column}" for column in same)}
            when matched and stored.events <> counted.events then update set *
            when not matched then insert *
            when not matched by source and source_table = {name} and batch in ({numbers}) then delete
            """,
        )
        if self.declared.routed:  # the next run counts again what names no table
            self._sql(counts, f"alter table {counts} set tblproperties ('cdc.declarations' = '{{}}')")


def erase(spark: SparkSession, system: str, table: str, key: str) -> Counter[str]:
    """Erase what is known of rows; no run builds meanwhile. Returns how many rows went from each table."""
    with locked("build.lock", lambda: say("A run is building in this lakehouse; waiting for it …")):
        declared = find_table(system, table, MODELS)
        keys = parse_keys(key, declared)
        erasure = Erasure(spark, system, declared, Rows(spark, system, declared, keys))
        erasure.run()
        return erasure.done


def main() -> int:
    """Erase the row that SYSTEM, TABLE and KEY name, and return the exit status."""
    try:
        given = {name: os.environ.get(name, "") for name in ("SYSTEM", "TABLE", "KEY")}
        if missing := [name for name, value in given.items() if not value]:
            raise UsageError(
                f"make erase SYSTEM=<name> TABLE=<table> KEY='<column>=<value>': there is no {' and '.join(missing)}."
            )
        done = erase(session(), *given.values())
        for table, number in done.items():
            say(f"{table.replace('`', '')}: {number:,} rows erased")
        say(STAYS)
        return 0
    except KeyboardInterrupt:
        say("\nStopped. The same make erase finishes it.")
        return 130
    except Exception as error:
        return end_with(error)


if __name__ == "__main__":
    sys.exit(refuse_words(sys.argv) or main())
