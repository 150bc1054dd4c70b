"""Where a source's log started over: change logs are asked after they were built, and a run reports what they store."""

import json
from collections.abc import Callable, Collection
from typing import Any

from pyspark.sql import SparkSession

from scripts import dbt_commands, runs
from scripts.built import MODELS
from scripts.catalog import properties_of, tables_in
from scripts.declared import declared_tables
from scripts.messages import say


def ask(
    spark: SparkSession, systems: list[str], models: Collection[str], say: Callable[[str], None], manifest: Any = None
) -> list[str]:
    """Ask the change logs among these models, and have them store what is found. Returns the names of what failed.

    Args:
        manifest: what dbt has parsed; without it dbt parses.
    """
    found = _logs(spark, systems).values()
    logs = [f"staging.`{log}`" for of_system in found for log in of_system.values() if log in models]
    arguments = ["run-operation", "store_log_resets", "--args", json.dumps({"logs": logs})]
    return dbt_commands.run(arguments, say, manifest=manifest) if logs else []


def resets(spark: SparkSession, systems: list[str]) -> dict[str, dict[str, dict[str, list[int]]]]:
    """Where a source's log started over: system → table → partition or file → first number, last one, how many changes.

    Only tables of which a reset was found are in it.
    """
    found: dict[str, dict[str, dict[str, list[int]]]] = {system: {} for system in systems}
    for system, logs in _logs(spark, systems).items():
        for table, log in logs.items():
            stored = properties_of(spark, f"staging.`{log}`").get("cdc.resets", "")
            if stored.startswith("{") and (places := json.loads(stored)):
                found[system][table] = places
    return found


def _logs(spark: SparkSession, systems: list[str]) -> dict[str, dict[str, str]]:
    """System → table → its change log, of those that are there."""
    there = tables_in(spark, "staging")
    named = {
        system: {one.table.name: one.model("staging", system) for one in declared_tables(system, MODELS).values()}
        for system in systems
    }
    return {system: {table: log for table, log in logs.items() if log in there} for system, logs in named.items()}


def report_resets(spark: SparkSession, systems: list[str]) -> None:
    """Say where the source's log started over."""
    found = resets(spark, systems)
    for system, tables in found.items():
        for table, places in tables.items():
            runs.warn(system)
            for place, (first, last, count) in places.items():
                say(
                    f"\n{system}: {table}: {count:,} changes in {place} from {first} to {last} lie below those before"
                    " them: the source's log started over, and the older states are shown."
                )
    if any(found.values()):
        page = "docs/operating.md#when-the-sources-positions-start-over"
        say(f"Make sure that it did. Declare an epoch in seeds/cdc_epochs.csv then ({page}).")
