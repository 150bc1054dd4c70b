"""The columns of a table that events speak of: what DDL records, values and comments add to schema blocks."""

import re
from typing import Any

from scripts.connectors import capabilities
from scripts.ddl import MAX_VALUES, key_of_ddl, looks_like, read_otherwise, types_of_ddl
from scripts.dialects import Dialect
from scripts.schema import TableSeen, are_alike_in_schema_blocks, fields_of, is_told_by_ddl_alone
from scripts.values import columns_of_values

ZONED = re.compile(r"\d(Z|[+-]\d\d(:?\d\d)?)\Z")
OF_DDL = ("mysql", "mariadb", "ticdc")  # connectors whose DDL records are read
DOCS_OF_TYPES = {
    "Geography",
    "Geometry",
    "Geometry (POINT)",
    "Variable scaled decimal",
}  # `doc` that Debezium writes itself
COMMENT = "__debezium.source.column.comment"  # a parameter of a column's schema


def type_from_ddl(
    tables: dict[tuple[str, ...], TableSeen],
    rows: dict[tuple[str, ...], list[dict[str, Any]]],
    ddl: dict[tuple[str, ...], list[dict[str, Any]]],
) -> None:
    """Give tables without a schema block the columns and the key that their DDL records tell, and others what it leaves
    open.
    """
    with_ddl = {
        identity: (ddl[identity][-1], rows.get(identity, []))
        for identity, table in tables.items()
        if identity in ddl and table.connector in OF_DDL
    }
    for identity, typed in types_of_ddl(with_ddl).items():
        table = tables[identity]
        of_columns = {
            str(column.get("name")): _one_line(column.get("comment"))
            for column in ddl[identity][-1].get("columns") or []
            if isinstance(column, dict)
        }
        table.comments = {name: told for name, told in of_columns.items() if told} | table.comments
        if table.columns:
            doubtful = {name for names in typed.doubts.values() for name in names}
            told = {
                name: kind for name, kind in typed.columns.items() if name in table.columns and name not in doubtful
            }
            in_blocks = dict(table.columns)
            table.columns |= {name: kind for name, kind in told.items() if is_told_by_ddl_alone(kind, in_blocks[name])}
            table.older = {
                name: kind
                for older in ddl[identity][:-1]
                for name, kind in read_otherwise(older, with_ddl[identity][0], typed).items()
                if name in told and kind != told[name] and are_alike_in_schema_blocks(kind, told[name])
            }
            continue
        table.columns, table.doubts, table.keys = typed.columns, typed.doubts, key_of_ddl(ddl[identity][-1])
        table.possible = typed.possible
        for older in ddl[identity][:-1]:
            table.older |= read_otherwise(older, with_ddl[identity][0], typed)
        settings = ", ".join(f"{setting}={mode}" for setting, mode in typed.settings.items())
        table.types_from = "DDL records" + (f" and values, which show {settings}" if settings else "")


def comments_in_schema(schema: Any, dialect: Dialect) -> dict[str, str]:
    """What the source says of its columns, from the schema block of a value: column → comment."""
    fields = fields_of(schema)
    images = [schema] if dialect.form == "flat" else [fields.get(name) for name in dialect.members("before", "after")]
    return {
        name: comment
        for image in images
        for name, item in fields_of(image).items()
        if (comment := _one_line((item.get("parameters") or {}).get(COMMENT) or item.get("doc")))
        and comment not in DOCS_OF_TYPES
    }


def signed_in_schema(schema: Any, dialect: Dialect) -> set[str]:
    """The columns that the schema block of a value calls BIGINT of the source, which is not unsigned."""
    fields = fields_of(schema)
    images = [schema] if dialect.form == "flat" else [fields.get(name) for name in dialect.members("after", "before")]
    image = next(filter(None, images), None)
    types = {
        name: str((item.get("parameters") or {}).get("__debezium.source.column.type", "")).upper()
        for name, item in fields_of(image).items()
        if item.get("type") == "int64" and isinstance(item.get("parameters"), dict)
    }
    return {name for name, told in types.items() if "BIGINT" in told and "UNSIGNED" not in told}


def _one_line(text: Any) -> str:
    """A comment as it can stand in YAML that dbt renders; empty if there is none."""
    line = re.sub(r"[\s\x00-\x1f\x7f-\x9f\ufeff]+", " ", text).strip() if isinstance(text, str) else ""
    return re.sub(r"\{(?=[{%#])", "{ ", line)


def complete(table: TableSeen, rows: list[dict[str, Any]], tables: dict[tuple[str, ...], TableSeen]) -> None:
    if not table.columns:
        same_topic = [
            other for other in tables.values() if other.types_from == "schema block" and other.topics & table.topics
        ]
        if same_topic:
            table.columns, table.types_from = dict(same_topic[0].columns), "schema block of the same topic"
    if not table.columns:
        table.columns, table.types_from = columns_of_values(rows), "values"
    for name, kind in columns_of_values(rows).items():
        table.columns.setdefault(name, kind)
    if not table.types_from.startswith("schema block"):
        table.unlike = _unlike(rows)
    if table.connector == "cockroachdb":
        table.columns |= _with_zones(table.columns, rows)
    if scale := capabilities(table.connector).get("greatest_scale"):
        table.columns = {name: _decimal(kind, scale) for name, kind in table.columns.items()}
        table.kinds = {name: {_decimal(kind, scale) for kind in kinds} for name, kinds in table.kinds.items()}
        table.schemas = {
            schema: {name: _decimal(kind, scale) for name, kind in kinds.items()}
            for schema, kinds in table.schemas.items()
        }
    # A key of other names (a router's, say) identifies no row of the table.
    table.message_keys = [key for key in table.message_keys if all(name in table.columns for name in key)]
    table.keys = next(filter(None, table.message_keys), table.keys)
    if any(key not in table.columns for key in table.keys):
        table.keys = []


def _with_zones(columns: dict[str, str], rows: list[dict[str, Any]]) -> dict[str, str]:
    """Timestamps whose texts have a zone, in arrays too: CockroachDB's schema block has one name for both kinds."""
    zoned = {}
    for name, kind in columns.items():
        if kind in ("TimestampText", "array<TimestampText>"):
            values = [row[name] for row in rows if row.get(name)]
            texts = [
                text for value in values for text in (value if isinstance(value, list) else [value]) if text is not None
            ]
            if texts and all(ZONED.search(str(text)) for text in texts):
                zoned[name] = kind.replace("TimestampText", "ZonedTimestamp")
    return zoned


def _unlike(rows: list[dict[str, Any]]) -> dict[str, set[str]]:
    values: dict[str, list[Any]] = {}
    for row in rows[:MAX_VALUES]:
        for name, value in row.items():
            values.setdefault(name, []).append(value)
    kinds = ("Timestamp", "MicroTimestamp", "NanoTimestamp", "bytes", "bytes_url", "Decimal")
    return {name: {kind for kind in kinds if not looks_like(kind, found)} for name, found in values.items()}


def _decimal(kind: str, greatest_scale: int) -> str:
    """A type without a scale that the source has not: precision and scale are in each other's place."""
    decimal = re.fullmatch(r"Decimal\((\d+),(\d+)\)", kind)
    if decimal and int(decimal[2]) > greatest_scale >= int(decimal[1]):
        return f"Decimal({decimal[2]},{decimal[1]})"
    return kind
