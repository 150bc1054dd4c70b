"""Which connector wrote an event, and where the event has its table, its row images and its key.

The scaffold reads a sample of the landed events with this; the models read all of them with the macro of the same
connector in `macros/connectors`, which declares the table, the images and the key for both. A dialect is recognised by
its value alone, in the order of `DIALECTS`.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from scripts.connectors import capabilities, connector_names
from scripts.errors import LakehouseError, UsageError
from scripts.flattened import ROW_OPERATIONS, Payload, is_marked_row, is_metadata, is_plain_row, with_prefix
from scripts.schema import DOCUMENT, TableSeen, columns_of_cells, columns_of_schema, columns_of_struct
from scripts.values import BsonKind, bson_kind, key_columns, parsed

CDL_OPERATIONS = {"INSERT", "UPDATE", "DELETE", *map(str.upper, ROW_OPERATIONS)}
# Members of Cassandra's images that are no columns; the connector's releases have either names.
RANGE_BOUNDS = {"_range_start", "_range_end", ".range_start", ".range_end"}


def _source(payload: Payload) -> dict[str, Any]:
    source = payload.get("source")
    return source if isinstance(source, dict) else {}


def _has_row_operation(payload: Payload) -> bool:
    return str(payload.get("op")).lower() in ROW_OPERATIONS and payload.get("isHeartbeat") is not True


def _is_written_by(connector: str) -> Callable[[Payload], bool]:
    return lambda payload: _source(payload).get("connector") == connector


def _at(payload: Payload, path: str) -> Any:
    found: Any = payload
    for member in path.split("."):
        found = found.get(member) if isinstance(found, dict) else None
    return found


def _is_huawei_cdl(payload: Payload) -> bool:
    return {"OPERATION", "DATA_STORE"} <= payload.keys() or {"message_version", "op"} <= payload.keys()


def _is_huawei_cdl_row(payload: Payload) -> bool:
    """Not a heartbeat, which has an operation like any other and no row data."""
    is_row = _has_row_operation(payload) or str(payload.get("OPERATION")).upper() in CDL_OPERATIONS
    return is_row and any(isinstance(payload.get(member), dict) for member in ("before", "after", "data", "unique"))


def _is_lindorm(payload: Payload) -> bool:
    source = _source(payload)
    return "op" in payload and bool(source.get("namespace")) and not source.get("connector")


def _is_hbase_row(columns: Iterable[str]) -> bool:
    """Whether columns are those of an HBase table: `ROW`, and `<family>_<qualifier>` all others."""
    names = set(columns)
    return "ROW" in names and all("_" in name for name in names - {"ROW"})


def _lindorm_keys(payload: Payload) -> list[str]:
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


def _cockroachdb_keys(payload: Payload) -> list[str]:
    names = _source(payload).get("primary_keys")
    return [str(name) for name in names] if isinstance(names, list) else []


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


def _document_columns(columns: dict[str, str]) -> dict[str, str]:
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
    """How a connector writes events. What differs from Debezium's envelope and is no capability stands here."""

    connector: str
    recognises: Callable[[Payload], bool]
    is_row: Callable[[Payload], bool] = _has_row_operation
    # Key columns that no member for a key names, and types that only the dialect knows.
    own_keys: Callable[[Payload], list[str]] | None = None
    own_columns: Callable[[dict[str, str]], dict[str, str]] = lambda columns: columns
    deletes_partitions: bool = False  # a delete may have a part of the key, for all rows of a partition

    @property
    def form(self) -> str:
        return str(capabilities(self.connector)["form"])

    def members(self, *images: str) -> list[str]:
        """The members of the value that may hold some images, `before` or `after`; the first counts."""
        return [member for image in images for member in capabilities(self.connector)[image]]

    def identity(self, payload: Payload, topic: str) -> tuple[str, ...]:
        """The names of an event's table, outermost first; empty if it has none."""
        members = capabilities(self.connector)["table"]
        found = [next((name for path in paths if (name := _at(payload, path)) is not None), None) for paths in members]
        if found and all(isinstance(name, str) and name for name in found):
            return tuple(map(str, found))
        return (topic,) if not members or capabilities(self.connector)["table_by_topic"] else ()

    def keys(self, payload: Payload, schema: Any) -> list[str]:
        """The key columns that payload or schema block name."""
        declared = capabilities(self.connector)
        if declared["document_key"]:
            return [declared["document_key"][1]]
        member, named = declared["key"], []
        if member and member not in self.members("after", "before"):
            named = key_columns(payload.get(member)) or list(columns_of_schema(schema, member))
        return named or (self.own_keys(payload) if self.own_keys else [])

    @property
    def has_keys_of_messages(self) -> bool:
        """Whether the keys of messages alone say by what a row is identified."""
        return not self.own_keys and capabilities(self.connector)["key"] in (None, *self.members("after", "before"))

    def columns(self, columns: dict[str, str]) -> dict[str, str]:
        """Columns with the types that they have in the dialect."""
        return _document_columns(columns) if self.form == "document" else self.own_columns(columns)

    def described(self, schema: Any) -> dict[str, str]:
        """Columns and types from the schema block of a value; empty where it has none."""
        if self.form == "flat":
            columns = columns_of_struct(schema)
            return {name: kind for name, kind in columns.items() if not is_metadata(name, self.connector)}
        members = self.members("after", "before")
        if self.form == "cells":
            columns = next((found for name in members if (found := columns_of_cells(schema, name))), {})
            return {name: kind for name, kind in columns.items() if name not in RANGE_BOUNDS}
        return columns_of_schema(schema, *members)

    def image(self, payload: Payload, image: str) -> dict[str, Any] | None:
        """A row image, `before` or `after`, with plain values, or None where the event has none."""
        if self.form == "flat":
            return {name: value for name, value in payload.items() if not is_metadata(name, self.connector)}
        if self.form == "document":
            return _document(payload, image)
        row = next((payload[name] for name in self.members(image) if isinstance(payload.get(name), dict)), None)
        if row is not None and self.form == "cells":
            cells = {name: cell for name, cell in row.items() if name not in RANGE_BOUNDS}
            return {name: cell.get("value") if isinstance(cell, dict) else cell for name, cell in cells.items()}
        return row

    def server(self, payload: Payload) -> str:
        """The connector that wrote an event (`topic.prefix`); empty where it does not say so."""
        name = self._metadata(payload, "name") if self.form == "flat" else _source(payload).get("name")
        return name if isinstance(name, str) else ""

    def source_table(self, payload: Payload) -> str:
        """The table that a flattened row names in its metadata; empty where it names none."""
        found = [self._metadata(payload, name) for name in ("db", "schema", "keyspace", "table", "collection")]
        return ".".join(str(name) for name in found if name) if self.form == "flat" else ""

    def _metadata(self, payload: Payload, name: str) -> Any:
        """A member of `source` that a flattened row has in its metadata."""
        prefix = self.connector[len("flattened(") : -1] or "__"
        return payload.get(f"{prefix}source_{name}") or payload.get(f"{prefix}{name}")

    def tells_deletes(self, payload: Payload) -> bool:
        """Whether an event of a stream like this would tell that a row is gone."""
        return self.form != "flat" or "__deleted" in payload


# Those that more than the name in `source.connector` recognises, or that tell rows, keys or types otherwise.
PECULIAR = (
    Dialect("lindorm", _is_lindorm, own_keys=_lindorm_keys, own_columns=_lindorm_columns),
    Dialect("huawei_cdl", _is_huawei_cdl, _is_huawei_cdl_row),
    Dialect("cassandra", _is_written_by("cassandra"), _is_cassandra_row, deletes_partitions=True),
    Dialect("ticdc", _is_written_by("TiCDC")),
    Dialect("cockroachdb", _is_cockroachdb, own_keys=_cockroachdb_keys, own_columns=_cockroachdb_columns),
    Dialect("yugabytedb_yboutput", lambda payload: _is_written_by("YugabyteDB")(payload) and _has_cells(payload)),
    Dialect("yugabytedb_pgoutput", _is_written_by("YugabyteDB"), _has_row_image),
    Dialect("flattened", is_marked_row, is_plain_row),
    Dialect(
        "generic",
        lambda payload: not _source(payload).get("connector") and ("op" in payload or _has_images_alone(payload)),
        lambda payload: _has_row_operation(payload) or _has_images_alone(payload),
    ),
)
# The first that recognises an event wins; the last recognises every envelope without a connector.
DIALECTS = tuple(
    {dialect.connector: dialect for dialect in PECULIAR}.get(name, Dialect(name, _is_written_by(name)))
    for name in connector_names()
)


def has_one_type(table: TableSeen, column: str) -> bool:
    """Whether models cannot read a column as several types (`_check_declaration` in macros/debezium)."""
    return column in table.keys or capabilities(table.connector).get("form", "rows") not in ("rows", "flat")


def are_alike(one: str, other: str) -> bool:
    """Whether one model reads the events of both connectors."""
    return one == other or other in capabilities(one).get("read_as", ())


def check_arguments(connector: str | None, servers: str | None) -> None:
    """Raise a `UsageError` if CONNECTOR or SERVERS is nothing that they can be."""
    if servers not in (None, "one", "shards"):
        raise UsageError(
            f"SERVERS={servers}: expected shards, or one (docs/operating.md#one-table-of-several-connectors)."
        )
    known = _dialects(connector)
    if connector and connector not in known:
        raise UsageError(f"CONNECTOR={connector}: expected one of {', '.join(known)}.")


def _dialects(wanted: str | None) -> dict[str, Dialect]:
    known = {dialect.connector: dialect for dialect in DIALECTS}
    if wanted and re.fullmatch(r"flattened\(.+\)", wanted):
        known[wanted] = replace(known["flattened"], connector=wanted)
    return known


def dialect_of(payload: Payload, wanted: str | None, topic: str, system: str) -> Dialect | None:
    """The dialect of an event, or None where it is no change of a row.

    Args:
        wanted: the connector that the user named (CONNECTOR), or None.

    Raises:
        LakehouseError: the event is of another connector than `wanted`, or of one that there is no macro for.
    """
    known = _dialects(wanted)
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
