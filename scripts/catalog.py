"""What there is in a catalog."""

import os

from pyspark.sql import SparkSession

from scripts.errors import UsageError

# The mark of a snapshot, and that of the nearest one before it that has one, as `merged_up_to` of the macros finds it.
MARKS = "select snapshot_id, parent_id, summary['{1}'] as mark from {0}.snapshots"
HEAD = "select snapshot_id from {0}.refs where name = 'main'"


def kind_of_views() -> str:
    """What a model that is a view becomes: `view` or `table`.

    Raises:
        UsageError: LAKEHOUSE_VIEWS is something else.
    """
    kind = os.environ.get("LAKEHOUSE_VIEWS") or "view"
    if kind not in ("view", "table"):
        raise UsageError(f"LAKEHOUSE_VIEWS={kind}: expected view or table.")
    return kind


def relations_in(spark: SparkSession, schema: str) -> set[str]:
    """The tables and views of a schema, which may not be there. A catalog may have no views if they are tables."""
    return tables_in(spark, schema, "tables", *["views"] * (kind_of_views() == "view"))


def tables_in(spark: SparkSession, schema: str, *kinds: str) -> set[str]:
    """The tables of a schema, which may not be there; its views if `kinds` are `views`."""
    if not spark.catalog.databaseExists(f"`{schema}`"):
        return set()
    rows = [row for kind in kinds or ("tables",) for row in spark.sql(f"show {kind} in `{schema}`").collect()]
    return {row[1] for row in rows if not row.isTemporary}


def properties_of(spark: SparkSession, table: str) -> dict[str, str]:
    """The properties of a table; Iceberg has some of its own, such as `current-snapshot-id`."""
    return {row.key: row.value for row in spark.sql(f"show tblproperties {table}").collect()}


def mark_of(spark: SparkSession, table: str, name: str) -> str:
    """What the last commit of a table says that it has merged, under the name of a property; empty if none says it."""
    heads = spark.sql(HEAD.format(table)).collect()
    snapshots = {row.snapshot_id: row for row in spark.sql(MARKS.format(table, name)).collect()}
    at = snapshots.get(heads[0].snapshot_id) if heads else None
    while at and at.mark is None:
        at = snapshots.get(at.parent_id)
    return str(at.mark) if at else ""
