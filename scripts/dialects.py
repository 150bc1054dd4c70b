"""Which connector wrote an event, and where the event has its table, its row images and its key.

The scaffold reads a sample of the landed events with this; the models read all of them with the macro of the same
connector in `macros/connectors`. A dialect is recognised by its value alone, in the order of `DIALECTS`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from scripts.errors import LakehouseError

Payload = dict[str, Any]
ROW_OPERATIONS = {"c", "r", "u", "d"}


def _source(payload: Payload) -> dict[str, Any]:
    source = payload.get("source")
    return source if isinstance(source, dict) else {}


def _has_row_operation(payload: Payload) -> bool:
    return str(payload.get("op")).lower() in ROW_OPERATIONS


def _is_written_by(connector: str) -> Callable[[Payload], bool]:
    return lambda payload: _source(payload).get("connector") == connector


def _named_by(*members: str) -> Callable[[Payload], tuple[str, ...]]:
    """The members of `source` that identify a table, outermost first; empty where one of them is missing."""

    def names(payload: Payload) -> tuple[str, ...]:
        found = [_source(payload).get(member) for member in members]
        return tuple(name for name in found if name) if all(isinstance(name, str) and name for name in found) else ()

    return names


@dataclass(frozen=True)
class Dialect:
    """How a connector writes events, as far as the scaffold has to know. Macros know the rest."""

    connector: str  # name of the macro file
    recognises: Callable[[Payload], bool]
    table: Callable[[Payload], tuple[str, ...]] | None = None  # empty: no table can be told; None: the topic identifies it
    is_row: Callable[[Payload], bool] = _has_row_operation
    after: str = "after"  # the members that hold the row images
    before: str = "before"
    key: Callable[[Payload], Any] = lambda payload: None  # an object with the key columns inside the value


# The first that recognises an event wins; the last recognises every envelope without a connector.
DIALECTS = (
    Dialect("postgresql", _is_written_by("postgresql"), _named_by("schema", "table")),
    Dialect("mysql", _is_written_by("mysql"), _named_by("db", "table")),
    Dialect("mariadb", _is_written_by("mariadb"), _named_by("db", "table")),
    Dialect("generic", lambda payload: not _source(payload).get("connector") and "op" in payload),
)


def dialect_of(payload: Payload, wanted: str | None, topic: str, system: str) -> Dialect | None:
    """The dialect of an event, or None where it is no change of a row.

    Args:
        wanted: the connector that the user named (CONNECTOR), or None.

    Raises:
        LakehouseError: the event is of another connector than `wanted`, or of one that there is no macro for.
    """
    known = {dialect.connector: dialect for dialect in DIALECTS}
    if wanted and wanted not in known:
        raise LakehouseError(f"CONNECTOR={wanted}: expected one of {', '.join(known)}.")
    found = next((dialect for dialect in DIALECTS if dialect.recognises(payload)), None)
    told = _source(payload).get("connector")
    if found is None and told and _has_row_operation(payload):
        if wanted:
            return known[wanted] if known[wanted].is_row(payload) else None
        raise LakehouseError(
            f"system {system}: the events of topic {topic!r} are of connector {told!r}; expected one of {', '.join(known)}."
        )
    if found and wanted and found.connector not in (wanted, "generic") and {found.connector, wanted} != {"mysql", "mariadb"}:
        raise LakehouseError(
            f"CONNECTOR={wanted}: the events of topic {topic!r} are of connector {found.connector!r}. "
            "Leave CONNECTOR out, or give the system's events a SYSTEM of their own."
        )
    chosen = known[wanted] if wanted else found
    return chosen if chosen and chosen.is_row(payload) else None
