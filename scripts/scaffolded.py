"""What one call of `scaffold` did, and what it says of new tables and of topics without models."""

from dataclasses import dataclass, field

from scripts import runs
from scripts.declared import Declared
from scripts.observe import Bronze
from scripts.schema import TableSeen


@dataclass
class Scaffolded:
    """What one call of `scaffold` did."""

    up_to: int = 0  # the newest batch when it began: what landed meanwhile is looked at the next time
    above: int = 0  # the batch above which events were looked at
    topics: set[str | None] = field(default_factory=set)  # those that have new records
    written: list[str] = field(default_factory=list)  # names of models that are new or changed
    rebuilt: list[str] = field(default_factory=list)  # models of tables that have another key now
    refused: set[str] = field(default_factory=set)  # topics of tables of which no models could be written
    notes: list[str] = field(default_factory=list)


def tell_unmodelled(
    bronze: Bronze,
    known: dict[tuple[str, ...], Declared],
    above_batch: int,
    odd: dict[str | None, str],
    done: Scaffolded,
) -> None:
    """Note which topics have new records; tell of those that no model reads: heartbeats, transactions, DDL, what is
    unknown.
    """
    modelled = {topic for declared in known.values() for topic in declared.table.topics}
    arrived = bronze.arrived(above_batch)
    done.topics = {one.topic for one in arrived}
    for one in arrived:
        if one.topic and one.rejected:
            done.notes.append(
                f"{one.rejected:,} records of topic {one.topic} are rejected: {one.reasons} (docs/rejects.md)"
            )
        if one.records and one.topic not in modelled:
            what = (
                f"{one.records:,} records of topic {one.topic}"
                if one.topic
                else f"{one.records:,} values that name no topic"
            )
            told = f". {odd[one.topic]}" if one.topic in odd else ""
            of = "of a table without models" if one.topic in done.refused else "no table's events"
            done.notes.append(f"{what}: {of}, for instance {one.first}; they stay in bronze{told}")


def describe_new(system: str, table: TableSeen, done: Scaffolded) -> None:
    key = ", ".join(table.kept(table.keys)) if table.keys else "none: a change log only, until KEYS names one"
    done.notes.append(f"{table.name}: {table.connector}, types from {table.types_from}, key: {key}")
    tell_doubts(system, table, list(table.columns), done)


def tell_doubts(system: str, table: TableSeen, columns: list[str], done: Scaffolded) -> None:
    for setting, doubtful in table.doubts.items():
        names = ", ".join(name for name in doubtful if name in columns)
        if names:
            done.notes.append(
                f"{table.name}: no value tells the connector's {setting}, on which the types of {names} depend:"
                " declared as in its default. If it is another, correct `columns` in the staging model"
                " (docs/connectors/mysql.md#handling-modes)"
            )
    older = {name: kind for name, kind in table.older.items() if name in columns}
    if older:
        runs.warn(system)
    done.notes += [
        f"{table.name}: column {name} was {kind} by an older DDL record. Events from before it changed are read as "
        f"{table.columns[name]}, which may give other values: land a snapshot of the table from after that"
        for name, kind in older.items()
    ]
