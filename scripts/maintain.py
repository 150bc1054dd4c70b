"""`make maintain`: compacts small files, expires old snapshots and removes orphan files, for all tables of a system.
With KEEP it deletes old batches of bronze besides (scripts/prune.py).

What a table has merged, or bronze has landed, is a property of the snapshot that did it: its mark
(macros/debezium/merged.sql, `State` in scripts/bronze.py). The snapshot of a compaction has none; the newest
mark is then looked up among its parents. So expiry keeps the snapshot with the newest mark, and all after it. No other
step changes a row, and each finds what is left to do by looking at the table: stopped anywhere, the next call goes on.

Sources: Iceberg's pages "Maintenance" and "Spark procedures". `rewrite_position_delete_files` is not called, as it
leaves deletion vectors as they are; `rewrite_data_files` removes them with the rows that they delete.
"""

import os
import re
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession

from scripts.bronze import METADATA_PROPERTIES
from scripts.errors import LakehouseError, UsageError
from scripts.messages import end_with, refuse_words, say
from scripts.prune import days_kept, prune
from scripts.spark import locked, session

LAYERS = ("bronze", "staging", "silver", "history", "monitoring")
SNAPSHOT_DAYS = 5
ORPHAN_HOURS = 25  # Iceberg refuses less than 24: younger files may belong to a commit that is not done
SMALL_FILES = 5  # of a partition
MANIFESTS, MANIFEST_BYTES = 20, 4 << 20  # Iceberg writes up to 8 MiB into one
# Only files below `min` are small, and none is too large: a row is rewritten a few times, however much its table grows.
SIZES = {"min-file-size-bytes": 32 << 20, "target-file-size-bytes": 128 << 20, "max-file-size-bytes": 1 << 30}
# A model reads few of bronze's topics, so these are not mixed. Values are up to forty times as large in memory: groups
# are small.
SIZES_OF_BRONZE = {
    "min-file-size-bytes": 8 << 20,
    "target-file-size-bytes": 16 << 20,
    "max-file-group-size-bytes": 256 << 20,
}
SORTED = "strategy => 'sort', sort_order => 'topic ASC NULLS FIRST, batch ASC NULLS FIRST'"
LOCATION = re.compile("^Location: (.+)$", re.MULTILINE)
# A landing without records leaves its number to the next one.
SNAPSHOTS = """
    select snapshot_id, parent_id, unix_millis(committed_at) as at, name as ref,
        int(summary['total-data-files']) as files,
        int(summary['total-delete-files']) as deletes,
        exists(map_keys(summary), key -> startswith(key, 'cdc-batch-'))
            or summary['cdc-batch'] is not null and summary['added-records'] is not null as is_marked
    from {0}.snapshots left join (select name, snapshot_id from {0}.refs) using (snapshot_id)
    order by committed_at
"""


def all_tables(spark: SparkSession) -> list[str]:
    """All tables of the lakehouse as `schema`.`name`, without views."""
    schemas = sorted(row.namespace for row in spark.sql("show namespaces").collect())
    rows = [row for schema in schemas for row in spark.sql(f"show tables in `{schema}`").collect()]
    return [f"`{row.namespace}`.`{row.tableName}`" for row in rows]


def of_system(tables: list[str], system: str) -> list[str]:
    """All tables of a system, of all systems if it is empty."""
    found = {}
    for table in tables:
        schema, name = table.strip("`").split("`.`")
        name = name.removeprefix("stg_") if schema == "staging" else name
        found[table] = name.partition("__")[0] if schema in LAYERS else schema
    systems = sorted({of for table, of in found.items() if table.startswith("`bronze`")})
    if system and system not in systems:
        raise UsageError(f"SYSTEM={system}: nothing has landed for it. Systems: {', '.join(systems) or 'none'}.")
    return [table for table, of in found.items() if of == system or not system and of in systems]


def own_folders(spark: SparkSession, tables: list[str]) -> set[str]:
    """The tables whose orphan files may be removed. In other folders `remove_orphan_files` would remove files of
    tables: in one that is not absolute, and in one of two tables, because one was renamed and the other one has its old
    name."""
    folders: dict[str, str] = {}
    for schema in sorted({table.split("`")[1] for table in tables}):
        for row in spark.sql(f"show table extended in `{schema}` like '*'").collect():
            # A comment, which stands before it, may have such a line too; in names of columns line breaks are escaped.
            for place in LOCATION.findall(row.information)[-1:]:
                folders[f"`{row.namespace}`.`{row.tableName}`"] = place.rstrip("/") + "/"
    shared = Counter(above for above in folders.values() for below in folders.values() if below.startswith(above))
    return {table for table, folder in folders.items() if shared[folder] == 1 and (folder[0] == "/" or ":/" in folder)}


def expired(snapshots: list[Any], before: int) -> list[int]:
    """The rows of SNAPSHOTS that may go: replaced before a time (milliseconds), and not needed to find a mark."""
    by_id = {one.snapshot_id: one for one in snapshots}
    replaced_at = {one.snapshot_id: one.at for one in snapshots} | {one.parent_id: one.at for one in snapshots}
    kept = {one.snapshot_id for one in snapshots if one.ref}
    kept.update([one.snapshot_id for one in snapshots if one.is_marked][-1:])  # also tells that bronze was rolled back
    since_mark, at = set(), next((one for one in snapshots if one.ref == "main"), None)
    while at and not at.is_marked:
        since_mark.add(at.snapshot_id)
        at = by_id.get(at.parent_id)
    kept |= since_mark | {at.snapshot_id} if at else set()
    return [name for name in by_id if replaced_at[name] <= before and name not in kept]


@dataclass
class Maintenance:
    """What is done to one table, and what was done so far: the names in `summary` and how many."""

    spark: SparkSession
    table: str
    with_orphans: bool = True
    snapshot_days: int = SNAPSHOT_DAYS
    done: Counter[str] = field(default_factory=Counter)

    @property
    def is_bronze(self) -> bool:
        """Whether it holds landed records."""
        return self.table.startswith("`bronze`") and "__" not in self.table

    def sql(self, statement: str) -> list[Any]:
        """Every statement goes through here."""
        return list(self.spark.sql(statement).collect())

    def call(self, procedure: str, *arguments: str) -> list[Any]:
        """Call a procedure of Iceberg for the table."""
        return self.sql(f"call system.{procedure}(" + ", ".join([f"table => '{self.table}'", *arguments]) + ")")

    def run(self) -> None:
        """Do what there is to do. A step that changes nothing commits nothing."""
        stored = {row.key for row in self.sql(f"show tblproperties {self.table}")}
        if missing := [f"'{name}' = '{value}'" for name, value in METADATA_PROPERTIES.items() if name not in stored]:
            self.sql(f"alter table {self.table} set tblproperties ({', '.join(missing)})")
            self.done["properties"] += 1
        self._compact()
        self._rewrite_manifests()
        self._expire()
        if self.with_orphans:
            since = time.gmtime(time.time() - ORPHAN_HOURS * 3600)
            older = time.strftime("older_than => timestamp '%Y-%m-%d %H:%M:%SZ'", since)
            self.done["orphans"] += len(self.call("remove_orphan_files", older, "prefix_listing => true"))

    def _compact(self) -> None:
        head = next((one for one in self.snapshots() if one.ref == "main"), None)
        if not head or ((head.files or 0) < SMALL_FILES and not head.deletes):
            return
        options = SIZES | (SIZES_OF_BRONZE if self.is_bronze else {}) | {"min-input-files": SMALL_FILES}
        texts = ", ".join(f"'{name}', '{value}'" for name, value in options.items())
        (row,) = self.call("rewrite_data_files", *[SORTED] * self.is_bronze, f"options => map({texts})")
        files, written, _, _, deletes = row
        self.done.update(files=files, written=written, deletes=deletes)

    def _rewrite_manifests(self) -> None:
        # Those that name only removed files do not count: the next commit leaves them out.
        named = " + ".join(f"{how}_{what}_files_count" for how in ("added", "existing") for what in ("data", "delete"))
        found = self.sql(f"select count(*) as n, avg(length) as bytes from {self.table}.manifests where {named} > 0")[0]
        if found.n >= MANIFESTS and found.bytes < MANIFEST_BYTES:
            self.done["manifests"] += self.call("rewrite_manifests")[0].rewritten_manifests_count

    def _expire(self) -> None:
        before = int((time.time() - self.snapshot_days * 86_400) * 1000)
        self.expire(expired(self.snapshots(), before))

    def snapshots(self) -> list[Any]:
        """The rows of SNAPSHOTS."""
        return self.sql(SNAPSHOTS.format(self.table))

    def expire(self, ids: list[int]) -> None:
        """Expire snapshots, and remove the files that only these have."""
        if ids:
            older = "older_than => timestamp '1970-01-02'"  # without it, also all that are older than five days
            self.call("expire_snapshots", older, f"snapshot_ids => array({', '.join(map(str, ids))})")
            self.done["snapshots"] += len(ids)


def summary(done: Counter[str]) -> str:
    """What was done, in words; empty if nothing was."""
    deletes = f" and {done['deletes']:,} delete files" if done["deletes"] else ""
    parts = {
        "pruned": f"{done['pruned']:,} records pruned",
        "files": f"{done['files']:,} files{deletes} became {done['written']:,}",
        "manifests": f"{done['manifests']:,} manifests rewritten",
        "snapshots": f"{done['snapshots']:,} snapshots expired",
        "orphans": f"{done['orphans']:,} orphan files removed",
        "properties": "old metadata files go from now on",
    }
    return ", ".join(text for name, text in parts.items() if done[name])


def maintain(spark: SparkSession, system: str, snapshot_days: int, say: Any, keep: int | None = None) -> None:
    """Maintain the tables of a system, of all if it is empty, and say what was done.

    No run builds meanwhile; landing goes on.

    Args:
        keep: the days after which batches of bronze go; None: all stay.

    Raises:
        LakehouseError: some batches may not go, because tables have to be rebuilt. All else was done.
    """
    there = all_tables(spark)
    chosen, own = of_system(there, system), own_folders(spark, there)
    total, changed, problems = Counter[str](), 0, list[str]()
    for table in chosen:
        one = Maintenance(spark, table, table in own, snapshot_days)
        notes = [] if table in own else ["orphan files stay, because its folder is not absolute or not its own"]
        with locked("build.lock", lambda: say("A run is building in this lakehouse; waiting for it …")):
            try:
                if keep is not None and one.is_bronze:
                    notes += _prune(one, keep, problems)
                one.run()
            except Exception as error:
                if not any(conflict in str(error) for conflict in ("ValidationException", "CommitFailedException")):
                    say(f"{table.replace('`', '')}: failed")
                    raise
                notes = ["another program changed the table, so the rest is left to the next make maintain"]
        if text := ", ".join(filter(None, (summary(one.done), *notes))):
            say(f"{table.replace('`', '')}: {text}")
        changed, total = changed + any(one.done.values()), total + one.done
    say(f"{changed} of {len(chosen)} tables changed" + (f": {summary(total)}" if changed else "."))
    if problems:
        raise LakehouseError("\n".join(problems))


def _prune(bronze: Maintenance, keep: int, problems: list[str]) -> list[str]:
    """Delete old batches of bronze. Returns what to say; why none may go is added to `problems`."""
    system = bronze.table.split("`")[3]
    try:
        bronze.done["pruned"], note = prune(bronze.sql, bronze.spark, system, int(time.time()) - keep * 86_400)
    except LakehouseError as error:
        problems.append(f"no batch is pruned of {error}")
        return []
    return [note]


def main() -> int:
    """Maintain what SYSTEM names, and return the exit status."""
    days = os.environ.get("SNAPSHOT_DAYS") or str(SNAPSHOT_DAYS)
    try:
        if not (days.isascii() and days.isdigit()):
            raise UsageError(f"SNAPSHOT_DAYS={days}: expected a number of days, 0 or more.")
        keep = days_kept(os.environ.get("KEEP", ""))
        maintain(session(), os.environ.get("SYSTEM", ""), int(days), say, keep)
        return 0
    except KeyboardInterrupt:
        say("\nStopped. The next make maintain goes on.")
        return 130
    except Exception as error:
        return end_with(error)


if __name__ == "__main__":
    sys.exit(refuse_words(sys.argv) or main())
