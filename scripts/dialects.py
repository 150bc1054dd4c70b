"""Which connector wrote an event, and where the event has its table, its row images and its key.

The scaffold reads a sample of the landed events with this; the models read all of them with the macro of the same
connector in `macros/connectors`. A dialect is recognised by its value alone, in the order of `DIALECTS`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from scripts.errors import LakehouseError
from scripts.schema import columns_of_schema, key_columns

Payload = dict[str, Any]
ROW_OPERATIONS = {"c", "r", "u", "d"}
CDL_OPERATIONS = {"INSERT", "UPDATE", "DELETE"}


def _source(payload: Payload) -> dict[str, Any]:
    source = payload.get("source")
    return source if isinstance(source, dict) else {}


def _has_row_operation(payload: Payload) -> bool:
    return str(payload.get("op")).lower() in ROW_OPERATIONS and payload.get("isHeartbeat") is not True


def _is_written_by(connector: str) -> Callable[[Payload], bool]:
    return lambda payload: _source(payload).get("connector") == connector


def _named_by(*members: str) -> Callable[[Payload], tuple[str, ...]]:
    """The members of `source` that identify a table, outermost first; empty where one of them is missing."""

    def names(payload: Payload) -> tuple[str, ...]:
        found = [_source(payload).get(member) for member in members]
        return tuple(name for name in found if name) if all(isinstance(name, str) and name for name in found) else ()

    return names


def _is_huawei_cdl_row(payload: Payload) -> bool:
    """Not a heartbeat, which has an operation like any other and no row data."""
    is_row = _has_row_operation(payload) or str(payload.get("OPERATION")).upper() in CDL_OPERATIONS
    return is_row and any(isinstance(payload.get(member), dict) for member in ("before", "after", "data", "unique"))


def _huawei_cdl_table(payload: Payload) -> tuple[str, ...]:
    names = (payload.get("SEG_OWNER"), payload.get("TABLE_NAME"))
    return tuple(str(name) for name in names) if all(names) else ()


def _huawei_cdl_keys(payload: Payload, schema: Any) -> list[str]:
    return key_columns(payload.get("unique")) or list(columns_of_schema(schema, "unique", "unique"))


def _is_lindorm(payload: Payload) -> bool:
    source = _source(payload)
    return "op" in payload and bool(source.get("namespace")) and not source.get("connector")


def _is_hbase_row(columns: Iterable[str]) -> bool:
    """Whether columns are those of an HBase table: `ROW`, and `<family>_<qualifier>` all others."""
    names = set(columns)
    return "ROW" in names and all("_" in name for name in names - {"ROW"})


def _lindorm_keys(payload: Payload, schema: Any) -> list[str]:
    image = payload.get("after") or payload.get("before")
    return ["ROW"] if isinstance(image, dict) and _is_hbase_row(image) else []


def _lindorm_columns(columns: dict[str, str]) -> dict[str, str]:
    """HBase has bytes, which come as base64; nothing in the event says so but the names."""
    return dict.fromkeys(columns, "bytes") if _is_hbase_row(columns) else columns


@dataclass(frozen=True)
class Dialect:
    """How a connector writes events, as far as the scaffold has to know. Macros know the rest."""

    connector: str  # name of the macro file
    recognises: Callable[[Payload], bool]
    table: Callable[[Payload], tuple[str, ...]] | None = None  # empty: no table can be told; None: the topic identifies it
    is_row: Callable[[Payload], bool] = _has_row_operation
    after: str = "after"  # the members that hold the row images
    before: str = "before"
    keys: Callable[[Payload, Any], list[str]] = lambda payload, schema: []  # key columns that payload or schema block tell
    columns: Callable[[dict[str, str]], dict[str, str]] = lambda columns: columns  # types that only the dialect knows


# The first that recognises an event wins; the last recognises every envelope without a connector.
DIALECTS = (
    Dialect("lindorm", _is_lindorm, _named_by("db", "namespace", "table"), keys=_lindorm_keys, columns=_lindorm_columns),
    Dialect(
        "huawei_cdl",
        lambda payload: "OPERATION" in payload and "DATA_STORE" in payload,
        _huawei_cdl_table,
        _is_huawei_cdl_row,
        after="data",
        keys=_huawei_cdl_keys,
    ),
    Dialect(
        "huawei_cdl",
        lambda payload: "message_version" in payload and "op" in payload,
        _named_by("schema", "table"),
        _is_huawei_cdl_row,
        keys=_huawei_cdl_keys,
    ),
    Dialect("postgresql", _is_written_by("postgresql"), _named_by("schema", "table")),
    Dialect("mysql", _is_written_by("mysql"), _named_by("db", "table")),
    Dialect("mariadb", _is_written_by("mariadb"), _named_by("db", "table")),
    Dialect("generic", lambda payload: not _source(payload).get("connector") and "op" in payload),
)


def foreign_format(payload: Payload) -> str | None:
    """The name of a format of changes that is not Debezium's, or None where the record is of none that is known."""
    if "op" in payload:
        return None
    if "isDdl" in payload or (isinstance(payload.get("data"), list) and "pkNames" in payload):
        return "Canal JSON (which Canal, DTS and DRS write)"
    if "op_type" in payload and "op_ts" in payload:
        return "Oracle GoldenGate JSON"
    if {"database", "table", "type", "ts"} <= payload.keys() and ("data" in payload or "sql" in payload):
        return "Maxwell JSON"
    return None


def refuse_foreign_formats(formats: dict[str | None, str], system: str) -> None:
    """Raise a `LakehouseError` that names the first topic whose records are of another format, if there is one.

    Args:
        formats: topic (None for bare values) → the name of the format.
    """
    for topic, name in sorted(formats.items(), key=str):
        where = f"topic {topic!r}" if topic else "files of bare values"
        raise LakehouseError(
            f"system {system}: the records of {where} are {name}, not Debezium events. They stay in bronze.{system}. "
            "Have their writer send Debezium JSON, and land that under a SYSTEM of its own."
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
    chosen = known[wanted] if wanted and not (found and found.connector == wanted) else found
    return chosen if chosen and chosen.is_row(payload) else None
