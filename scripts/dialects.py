"""Which connector wrote an event, and where the event has its table, its row images and its key.

The scaffold reads a sample of the landed events with this; the models read all of them with the macro of the same
connector in `macros/connectors`. A dialect is recognised by its value alone, in the order of `DIALECTS`.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from scripts.errors import LakehouseError, UsageError
from scripts.flattened import ROW_OPERATIONS, Payload, is_marked_row, is_metadata, is_plain_row, with_prefix
from scripts.schema import DOCUMENT, TableSeen, columns_of_cells, columns_of_schema, columns_of_struct
from scripts.values import BsonKind, bson_kind, key_columns, parsed

CDL_OPERATIONS = {"INSERT", "UPDATE", "DELETE"}
RANGE_BOUNDS = {"_range_start", "_range_end"}  # members of Cassandra's images that are no columns


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


def _is_cassandra_row(payload: Payload) -> bool:
    """`i` is an insert; `r` is the delete of a range of rows, not a row."""
    return str(payload.get("op")).lower() in {"c", "i", "u", "d"}


def _is_cockroachdb(payload: Payload) -> bool:
    return "op" in payload and "cockroachdb" in (_source(payload).get("origin"), _source(payload).get("connector"))


def _cockroachdb_table(payload: Payload) -> tuple[str, ...]:
    names = _named_by("database_name", "schema_name", "table_name")
    return names(payload) or _named_by("db", "schema", "table")(payload)


def _cockroachdb_keys(payload: Payload, schema: Any) -> list[str]:
    names = _source(payload).get("primary_keys")
    return key_columns(payload.get("key")) or ([str(name) for name in names] if isinstance(names, list) else [])


def _cockroachdb_columns(columns: dict[str, str]) -> dict[str, str]:
    """Bytes come as `\\x` and their digits, in arrays too."""
    return {name: re.sub(r"\bbytes\b", "string", kind) for name, kind in columns.items()}


def _document(payload: Payload, member: str) -> dict[str, Any] | None:
    """The kinds of a document's fields, or of those that an update without a document sets, wholly or in part."""
    document = parsed(payload[member]) if isinstance(payload.get(member), str) else None
    if isinstance(document, dict):
        return {name: bson_kind(value) for name, value in document.items()}
    update = payload.get("updateDescription")
    updated = update.get("updatedFields") if isinstance(update, dict) else None
    fields = parsed(updated) if isinstance(updated, str) else None
    if not (str(payload.get("op")).lower() == "u" and member == "after" and isinstance(fields, dict)):
        return None
    in_part = {name.partition(".")[0]: BsonKind("any") for name in fields if "." in name}
    return {"_id": None} | {name: bson_kind(value) for name, value in fields.items() if "." not in name} | in_part


def _mongodb_columns(columns: dict[str, str]) -> dict[str, str]:
    """The fields and the document itself, which has those that cannot be a column."""
    fields = {name: "Bson(any)" if kind == "any" else kind for name, kind in columns.items()}
    if not fields:
        return fields
    named: dict[str, str] = {}
    for name in fields:
        if name and "." not in name and not name.lower().startswith("_cdc_"):
            named.setdefault(name.lower(), name)
    document = next(name for name in ("document", "_document", "__document") if name not in named)
    return {name: fields[name] for name in named.values()} | {document: DOCUMENT}


def _has_row_image(payload: Payload) -> bool:
    return _has_row_operation(payload) and any(isinstance(payload.get(member), dict) for member in ("before", "after"))


def _has_cells(payload: Payload) -> bool:
    """Whether the row images hold a `{"value": …, "set": …}` for each column; null stands for one left out."""
    images = [payload[member] for member in ("before", "after") if isinstance(payload.get(member), dict)]
    cells = [cell for image in images for cell in image.values() if cell is not None]
    return bool(cells) and all(isinstance(cell, dict) and "value" in cell for cell in cells)


def _has_images_alone(payload: Payload) -> bool:
    """Whether there is no operation, and what the row was and is tells it."""
    images = [payload.get(member) for member in ("before", "after")]
    has_both = payload.keys() & {"before", "after", "op", "op_type"} == {"before", "after"}
    return has_both and any(isinstance(image, dict) for image in images)


@dataclass(frozen=True)
class Dialect:
    """How a connector writes events, as far as the scaffold has to know. Macros know the rest."""

    connector: str  # name of the macro file
    recognises: Callable[[Payload], bool]
    # Empty: the event names no table; None: the topic identifies it.
    table: Callable[[Payload], tuple[str, ...]] | None = None
    is_row: Callable[[Payload], bool] = _has_row_operation
    after: str = "after"  # the members that hold the row images
    before: str = "before"
    form: str = "rows"  # of a row image, as in the macro's capabilities
    by_topic: bool = False  # whether the topic identifies the table where the payload does not
    # Key columns that payload or schema block tell, and types that only the dialect knows.
    keys: Callable[[Payload, Any], list[str]] = lambda payload, schema: []
    columns: Callable[[dict[str, str]], dict[str, str]] = lambda columns: columns

    def identity(self, payload: Payload, topic: str) -> tuple[str, ...]:
        """The names of an event's table, outermost first; empty if it has none."""
        found = self.table(payload) if self.table else ()
        return found or ((topic,) if self.by_topic or self.table is None else ())

    def described(self, schema: Any) -> dict[str, str]:
        """Columns and types from the schema block of a value; empty where it has none."""
        if self.form == "flat":
            columns = columns_of_struct(schema)
            return {name: kind for name, kind in columns.items() if not is_metadata(name, self.connector)}
        if self.form == "cells":
            return columns_of_cells(schema, self.after) or columns_of_cells(schema, self.before)
        return columns_of_schema(schema, self.after, self.before)

    def image(self, payload: Payload, member: str) -> dict[str, Any] | None:
        """A row image with plain values, or None where the event has none."""
        if self.form == "flat":
            return {name: value for name, value in payload.items() if not is_metadata(name, self.connector)}
        if self.form == "document":
            return _document(payload, member)
        image = payload.get(member)
        if not isinstance(image, dict):
            return None
        if self.form == "cells":
            cells = {name: cell for name, cell in image.items() if name not in RANGE_BOUNDS}
            return {name: cell.get("value") if isinstance(cell, dict) else cell for name, cell in cells.items()}
        return image

    def source_table(self, payload: Payload) -> str:
        """The table that a flattened row names in its metadata; empty where it names none."""
        prefix = self.connector[len("flattened(") : -1] or "__"
        names = ("db", "schema", "keyspace", "table", "collection")
        found = [payload.get(f"{prefix}source_{name}") or payload.get(f"{prefix}{name}") for name in names]
        return ".".join(str(name) for name in found if name) if self.form == "flat" else ""

    def tells_deletes(self, payload: Payload) -> bool:
        """Whether an event of a stream like this would tell that a row is gone."""
        return self.form != "flat" or "__deleted" in payload


# The first that recognises an event wins; the last recognises every envelope without a connector.
DIALECTS = (
    Dialect(
        "lindorm", _is_lindorm, _named_by("db", "namespace", "table"), keys=_lindorm_keys, columns=_lindorm_columns
    ),
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
    Dialect("sqlserver", _is_written_by("sqlserver"), _named_by("db", "schema", "table")),
    Dialect("oracle", _is_written_by("oracle"), _named_by("db", "schema", "table")),
    Dialect("db2", _is_written_by("db2"), _named_by("schema", "table")),
    Dialect("ibmi", _is_written_by("ibmi")),
    Dialect("informix", _is_written_by("informix"), _named_by("db", "schema", "table")),
    Dialect(
        "mongodb",
        _is_written_by("mongodb"),
        _named_by("db", "collection"),
        form="document",
        keys=lambda payload, schema: ["_id"],
        columns=_mongodb_columns,
    ),
    Dialect("vitess", _is_written_by("vitess"), _named_by("keyspace", "table")),
    Dialect("yashandb", _is_written_by("yashandb"), _named_by("schema", "table")),
    Dialect("spanner", _is_written_by("spanner"), _named_by("db", "table")),
    Dialect(
        "cassandra",
        _is_written_by("cassandra"),
        _named_by("keyspace", "table"),
        _is_cassandra_row,
        before="after",
        form="cells",
    ),
    Dialect("ticdc", _is_written_by("TiCDC"), _named_by("db", "table")),
    Dialect("cockroachdb", _is_cockroachdb, _cockroachdb_table, keys=_cockroachdb_keys, columns=_cockroachdb_columns),
    Dialect("yugabytedb", _is_written_by("yugabytedb"), _named_by("schema", "table"), form="cells"),
    Dialect(
        "yugabytedb_yboutput",
        lambda payload: _is_written_by("YugabyteDB")(payload) and _has_cells(payload),
        _named_by("schema", "table"),
        form="cells",
    ),
    Dialect("yugabytedb_pgoutput", _is_written_by("YugabyteDB"), _named_by("schema", "table"), _has_row_image),
    Dialect("flattened", is_marked_row, is_row=is_plain_row, form="flat"),
    Dialect(
        "generic",
        lambda payload: not _source(payload).get("connector") and ("op" in payload or _has_images_alone(payload)),
        _named_by("db", "table"),
        lambda payload: _has_row_operation(payload) or _has_images_alone(payload),
        by_topic=True,
    ),
)
# Connectors whose events one model reads alike.
ALIKE = ({"mysql", "mariadb"},)


def has_one_type(table: TableSeen, column: str) -> bool:
    """Whether models cannot read a column as several types (`_check_declaration` in macros/debezium)."""
    forms = {dialect.form for dialect in DIALECTS if dialect.connector == table.connector.partition("(")[0]}
    return column in table.keys or not forms <= {"rows", "flat"}


def are_alike(one: str, other: str) -> bool:
    return one == other or any({one, other} == group for group in ALIKE)


def dialect_of(payload: Payload, wanted: str | None, topic: str, system: str) -> Dialect | None:
    """The dialect of an event, or None where it is no change of a row.

    Args:
        wanted: the connector that the user named (CONNECTOR), or None.

    Raises:
        LakehouseError: the event is of another connector than `wanted`, or of one that there is no macro for.
    """
    known = {dialect.connector: dialect for dialect in DIALECTS}
    if wanted and re.fullmatch(r"flattened\(.+\)", wanted):
        known[wanted] = replace(known["flattened"], connector=wanted)
    if wanted and wanted not in known:
        raise UsageError(f"CONNECTOR={wanted}: expected one of {', '.join(known)}.")
    found = next((dialect for dialect in DIALECTS if dialect.recognises(payload)), None)
    named = _source(payload).get("connector")
    if found is None and named and _has_row_operation(payload):
        if wanted:
            return known[wanted] if known[wanted].is_row(payload) else None
        raise LakehouseError(
            f"system {system}: the events of topic {topic!r} are of connector {named!r}; expected one of"
            f" {', '.join(known)}. Name the one that writes as it does (CONNECTOR), or take them away: delete from"
            f" bronze.{system} where topic = {topic!r} and coalesce(get_json_object(value,"
            f" '$.payload.source.connector'), get_json_object(value, '$.source.connector')) = {named!r}"
        )
    expected = ("generic", wanted, wanted.split("(")[0]) if wanted else ()
    if found and wanted and found.connector not in expected and not are_alike(found.connector, wanted):
        if not found.is_row(payload):  # DDL and messages are not flattened
            return None
        raise UsageError(
            f"CONNECTOR={wanted}: the events of topic {topic!r} are of connector {found.connector!r}. "
            "Leave CONNECTOR out, or give the system's events a SYSTEM of their own."
        )
    chosen = known[wanted] if wanted and not (found and found.connector == wanted) else found
    if chosen and chosen.connector == "flattened":
        chosen = replace(chosen, connector=with_prefix(payload))
    return chosen if chosen and chosen.is_row(payload) else None
