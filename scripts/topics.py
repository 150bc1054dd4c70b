"""What topics are to their tables: shared ones are read from one model, and have epochs where a log started over."""

import csv
from pathlib import Path
from typing import Any

from scripts.declared import Declared
from scripts.dialects import are_alike
from scripts.errors import LakehouseError
from scripts.scaffolded import Scaffolded
from scripts.written_models import is_untouched, write_models


def route(system: str, known: dict[tuple[str, ...], Declared], models: Path, done: Scaffolded) -> None:
    """Have the tables that share topics read them from one model, which parses each record once, and all others read
    bronze.
    """
    sharing = _sharing_topics(list(known.values()))
    for declared in known.values():
        wanted = any(declared is other for other in sharing)
        if declared.routed == wanted:
            continue
        if is_untouched(system, declared, models):
            declared.routed = wanted
            write_models(system, declared, models, done)
        elif done.written:
            told = (
                f"events = ref('{system}__events') and routed = true"
                if wanted
                else f"events = source('bronze', '{system}')"
            )
            done.notes.append(
                f"{declared.table.name}: its models were edited by hand; its staging model should have {told} now"
            )


def _sharing_topics(tables: list[Declared]) -> list[Declared]:
    """The tables that share a topic with another one, directly or through others, where all their events name their
    tables.

    Those of one connector, the first by name: there is one events model for a system.
    """
    groups: list[list[Declared]] = []
    for declared in tables:
        joined = [group for group in groups if any(other.table.topics & declared.table.topics for other in group)]
        groups = [group for group in groups if group not in joined] + [
            [declared, *(other for group in joined for other in group)]
        ]
    fit = [group for group in groups if len(group) > 1 and all(_can_be_routed(other, group[0]) for other in group)]
    connector = min((group[0].table.connector for group in fit), default="")
    return [declared for group in fit if are_alike(group[0].table.connector, connector) for declared in group]


def _can_be_routed(declared: Declared, other: Declared) -> bool:
    names_topic = len(declared.table.identity) == 1 and declared.table.identity[0] in declared.table.topics
    return not names_topic and are_alike(declared.table.connector, other.table.connector)


def declare_epochs(system: str, known: dict[tuple[str, ...], Declared], models: Path, done: Scaffolded) -> None:
    epochs = epochs_of(system, models.parent / "seeds")
    for declared in known.values():
        wanted = [epoch for epoch in epochs if epoch["topic"] in declared.table.topics]
        if declared.epochs == wanted:
            continue
        if not is_untouched(system, declared, models):
            done.notes.append(
                f"{declared.table.name}: its models were edited by hand; its staging model should have epochs ="
                f" {wanted} now"
            )
            continue
        declared.epochs = wanted
        done.notes.append(f"{declared.table.name}: epochs changed; the table is rebuilt")
        write_models(system, declared, models, done)
    unused = {epoch["topic"] for epoch in epochs}.difference(*(declared.table.topics for declared in known.values()))
    if unused:
        done.notes.append(f"seeds/cdc_epochs.csv names {', '.join(sorted(unused))}, which is no topic of a table")


def epochs_of(system: str, seeds: Path) -> list[dict[str, Any]]:
    """The epochs that `cdc_epochs.csv` declares for a system: from where on a topic has records of another log.

    Raises:
        LakehouseError: a line is not of the form system, topic, partition, from_offset, from_batch, epoch.
    """
    path = seeds / "cdc_epochs.csv"
    if not path.exists():
        return []
    found: list[dict[str, Any]] = []
    with path.open(encoding="utf-8", newline="") as lines:
        reader = csv.DictReader(lines, strict=True)
        expected = ["system", "topic", "partition", "from_offset", "from_batch", "epoch"]
        if reader.fieldnames != expected:
            raise LakehouseError(f"{path}: the first line is {reader.fieldnames}; expected {','.join(expected)}.")
        for row in reader:
            given = {name: value for name in expected[2:] if (value := str(row[name] or "").strip())}
            numbers = {name: int(value) for name, value in given.items() if value.isdecimal()}
            is_placed = {"partition", "from_offset"} <= numbers.keys() or (
                "from_batch" in numbers and "from_offset" not in numbers
            )
            if (
                numbers.keys() != given.keys()
                or not is_placed
                or not 1 <= numbers.get("epoch", 0) <= 9999
                or None in row
            ):
                raise LakehouseError(
                    f"{path}, line {reader.line_num}: expected {','.join(expected)}, with a partition and an offset"
                    " from 0, or a batch, or all of these, and an epoch from 1 to 9999; found"
                    f" {','.join(str(value) for value in row.values())}."
                )
            if row["system"] == system:
                found.append({"topic": row["topic"], **numbers})
    return found
