"""What a table of the source looks like, read from the schema blocks of landed events: its columns and their types.

The order of trust is that of the events themselves: the schema block of a record, the DDL records of the same system
(scripts/ddl.py), the values (scripts/values.py). Sources: Kafka Connect's JsonConverter (schema blocks), Debezium's
documentation "Data type mappings" of each connector.
"""

import hashlib
import json
import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from scripts.debezium_types import ARRAY, SEVERAL, reads

MAX_NESTING = 8  # arrays in arrays that get a type; what nests deeper is kept as its JSON text
SHARD = "shard"  # the type of a column that names the connector which sent the event
DOCUMENT = "Bson(document)"  # the type of a column that is the whole document
# Semantic names that are read as what they hold; all others by the type that carries them.
SEMANTIC_TYPES = {
    name: name
    for name in """
    Date Time MicroTime NanoTime Timestamp MicroTimestamp NanoTimestamp ZonedTimestamp ZonedTime IsoDate IsoTime
    IsoTimestamp Year MicroDuration NanoDuration Interval VariableScaleDecimal Enum EnumSet Json Xml Uuid Ltree TsVector
    Point Geometry Geography FloatVector DoubleVector
    """.split()
} | {"Tsvector": "TsVector"}  # as Debezium 3.5 spells it
PLAIN_TYPES = {name: name for name in "int16 int32 int64 float double boolean string bytes map".split()} | {
    "int8": "int16",
    "float32": "float",
    "float64": "double",
}
# Names that some writers give to a text, compared in lower case; the same names by another type are in SEMANTIC_TYPES.
TEXT_TYPES = {"decimal": "string", "timestamp": "TimestampText", "date": "string", "time": "string"}
# Type in a schema block → how the types begin that look the same there, and that DDL records and values tell.
NOT_IN_SCHEMA_BLOCKS = {
    "int64": ("uint64",),
    "double": ("number",),
    "string": ("DecimalText", "bytes_"),
    "TimestampText": ("ZonedTimestamp",),
}
# Iceberg's own names of columns.
RESERVED = set("_file _pos _deleted _spec_id _partition _row_id _last_updated_sequence_number".split())


@dataclass
class TableSeen:
    """A table of the source as landed events show it."""

    connector: str
    identity: tuple[str, ...]  # schema and table, database and table, or the topic
    topics: set[str] = field(default_factory=set)
    columns: dict[str, str] = field(default_factory=dict)  # name → Debezium type
    keys: list[str] = field(default_factory=list)
    # The sets of columns that messages are keyed by; an empty one is of messages without a key.
    message_keys: list[list[str]] = field(default_factory=list)
    types_from: str = ""  # schema block, DDL records, values
    servers: set[str] = field(default_factory=set)  # names of the connectors (`topic.prefix`) that sent its events
    source_tables: set[str] = field(default_factory=set)  # that flattened rows name
    tells_deletes: bool = False  # whether its events say when a row is gone; not so for some flattened ones
    # Setting of the connector → columns whose types depend on it.
    doubts: dict[str, list[str]] = field(default_factory=dict)
    # Of columns: the types that their DDL record may stand for, those that their values do not look like, if no schema
    # says, and those that schema blocks have.
    possible: dict[str, set[str]] = field(default_factory=dict)
    unlike: dict[str, set[str]] = field(default_factory=dict)
    kinds: dict[str, set[str]] = field(default_factory=dict)
    # Column → what it was by an older DDL record, and would be read otherwise.
    older: dict[str, str] = field(default_factory=dict)
    # Column → types of events that may be misread, as somebody said.
    misread: dict[str, list[str]] = field(default_factory=dict)
    # Name in the lakehouse → name in the events, of columns that need two.
    renamed: dict[str, str] = field(default_factory=dict)
    comments: dict[str, str] = field(default_factory=dict)  # column → what the source says of it
    signed: set[str] = field(default_factory=set)  # columns of `int64` that a schema block calls signed
    # Checksum of a schema block → the types that it gives to columns; empty if it was compared before.
    schemas: dict[int, dict[str, str]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return ".".join(self.identity)

    @property
    def is_flat(self) -> bool:
        """Whether its rows have no envelope."""
        return self.connector.startswith("flattened")

    @property
    def shard(self) -> str | None:
        """The column that names the shard, where the table has one."""
        return next((name for name, kind in self.columns.items() if kind == SHARD), None)

    def says_more(self, name: str, known: str, kind: str) -> bool:
        """Whether a declared type is one that no schema block tells from `kind`: DDL records or values did, or somebody
        by hand.
        """
        while (arrays := [ARRAY.fullmatch(one) for one in (known, kind)]) and arrays[0] and arrays[1]:
            known, kind = arrays[0][1], arrays[1][1]
        if kind == "string" and known == "bytes":  # which a schema block names itself, where it is not base64 as text
            return self.columns.get(name) == "string" or self.connector == "ticdc"
        return is_told_by_ddl_alone(known, kind)

    def known_schemas(self) -> Any:
        """The schema blocks of which no column is read as another type than it has, with the types of columns that had
        several.
        """

        def is_read(name: str, kind: str) -> bool:
            known = self.columns.get(name, kind)
            is_accepted = kind in self.misread.get(name, []) or self.says_more(name, known, kind)
            return is_accepted or reads(known, kind)

        known = {one: kinds for one, kinds in self.schemas.items() if all(is_read(*column) for column in kinds.items())}
        several = [name for name, kind in self.columns.items() if SEVERAL in kind]
        told = {str(one): {name: known[one][name] for name in several if name in known[one]} for one in sorted(known)}
        return told if several else sorted(known)

    def kept(self, names: Iterable[str]) -> list[str]:
        """The names that some columns have in the lakehouse. Everywhere else columns have their names in the events."""
        kept = {in_events: name for name, in_events in self.renamed.items()}
        return [kept.get(name, name) for name in names]

    def in_events(self, names: Iterable[str]) -> list[str]:
        """The names that some columns of the lakehouse have in the events."""
        return [self.renamed.get(name, name) for name in names]

    def rename_reserved(self) -> list[str]:
        """Give columns that are named as Iceberg's own names that they can be read by. Returns what there is to say."""
        notes, taken = [], {name.lower() for name in self.renamed}
        unnamed = [name for name in self.columns if name not in self.renamed.values()]
        for name in sorted(unnamed, key=lambda name: name.lower() in RESERVED):
            kept = f"{name}_source" if name.lower() in RESERVED else name
            while kept.lower() in taken:
                kept += "_source"
            taken.add(kept.lower())
            if kept != name:
                is_reserved = name.lower() in RESERVED
                why = "Iceberg keeps that name for itself" if is_reserved else "another column is kept by that name"
                notes.append(f"{self.name}: column {name} is kept as {kept}, because {why}")
                self.renamed[kept] = name
        return notes


def has_checksum(text: str) -> bool:
    """Whether what stands before the payload of a value is its schema block, and nothing of the row."""
    return text.startswith('{"schema"') and text.count('"payload":') == 1


def columns_digest(columns: dict[str, str]) -> str:
    """Of the declared columns that schema blocks were compared with, as `_compared_schemas` has it."""
    return hashlib.md5(json.dumps(columns).encode()).hexdigest()[:8]


def schema_checksum(text: str) -> int:
    """Of what stands before the payload of a value: `_checksum_of_schema` in macros/types/several.sql is the same."""
    return zlib.crc32("".join(text.rpartition('"payload":')[:2]).encode("utf-8", "surrogatepass"))


def column_type(schema: Any, nesting: int = 0) -> str:
    """The declared type of a column from its field in a schema block; `any` where that is no schema."""
    if not isinstance(schema, dict) or nesting > MAX_NESTING:
        return "any"
    kind = schema.get("type", "string")
    parameters: Any = schema.get("parameters")
    parameters = parameters if isinstance(parameters, dict) else {}
    name = str(schema.get("name") or "").rsplit(".", 1)[-1]
    source_type = str(parameters.get("__debezium.source.column.type", "")).upper()
    if kind == "string" and name.lower() in TEXT_TYPES:
        return TEXT_TYPES[name.lower()]
    if kind in ("double", "float64") and name.lower() == "decimal":  # CockroachDB; without a limit its precision is 0
        numbers = parameters.get("precision", 0), parameters.get("scale", 0)
        return _with_numbers("Decimal", *numbers) if str(numbers[0]) != "0" else "any"
    if name == "Decimal":
        return _with_numbers(name, parameters.get("connect.decimal.precision", 38), parameters.get("scale", 0))
    if name == "Bits":
        return _with_numbers(name, parameters.get("length", 64))
    if name == "Geometry" and "extensions" in fields_of(schema):  # of which the struct would lose a part
        return "any"
    if name in SEMANTIC_TYPES:
        return SEMANTIC_TYPES[name]
    if kind == "array":
        return f"array<{column_type(schema.get('items') or {}, nesting + 1)}>"
    if kind == "map" and any(_type_of(schema.get(part)) != "string" for part in ("keys", "values")):
        return "any"
    if kind == "int64" and "BIGINT" in source_type and "UNSIGNED" in source_type:
        return "uint64"
    return PLAIN_TYPES.get(str(kind), "any")


def _type_of(schema: Any) -> Any:
    return schema.get("type") if isinstance(schema, dict) else "string"


def _with_numbers(name: str, *numbers: Any) -> str:
    texts = [str(number) for number in numbers]
    return f"{name}({','.join(texts)})" if all(re.fullmatch(r"-?\d{1,10}", text) for text in texts) else "any"


def is_told_by_ddl_alone(told: str, kind: str) -> bool:
    """Whether a type is one that looks like `kind` in a schema block; DDL records and values tell it."""
    return told.startswith(NOT_IN_SCHEMA_BLOCKS.get(kind, ()))


def are_alike_in_schema_blocks(one: str, other: str) -> bool:
    """Whether DDL records and values alone tell two types apart."""
    return any(
        all(told == kind or is_told_by_ddl_alone(told, kind) for told in (one, other)) for kind in NOT_IN_SCHEMA_BLOCKS
    )


def columns_of_schema(schema: Any, *members: str) -> dict[str, str]:
    """Columns and types from the schema block of a value: of the first of some members that it has, or empty."""
    images = fields_of(schema)
    return columns_of_struct(next((images[name] for name in members if images.get(name)), None))


def columns_of_struct(schema: Any) -> dict[str, str]:
    """Columns and types from the schema of a row; empty where it is none."""
    return {name: column_type(item) for name, item in fields_of(schema).items()}


def columns_of_cells(schema: Any, member: str) -> dict[str, str]:
    """The same of an image whose columns are objects with a `value`.

    Writers have been seen to describe cells as plain.
    """
    found = {}
    for name, item in fields_of(fields_of(schema).get(member)).items():
        cell = fields_of(item) if item.get("type") == "struct" else {"value": item}
        if "value" in cell:
            found[name] = column_type(cell["value"])
    return found


def fields_of(struct: Any) -> dict[str, dict[str, Any]]:
    """The fields of a struct's schema by name; empty where it is no struct."""
    fields = struct.get("fields") if isinstance(struct, dict) else None
    if not isinstance(fields, list):
        return {}
    return {item["field"]: item for item in fields if isinstance(item, dict) and isinstance(item.get("field"), str)}
