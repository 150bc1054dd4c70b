"""What a table of the source looks like, read from landed events: its columns and their Debezium types.

The order of trust is that of the events themselves: the schema block of a record, the DDL records of the same
system (`tableChanges`), the values. Sources: Kafka Connect's JsonConverter (schema blocks), Debezium's
documentation "Data type mappings" of each connector. DDL records are read in `scripts.ddl`.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from math import isfinite
from typing import Any

import orjson

MAX_NESTING = 8  # arrays in arrays that get a type; what nests deeper is kept as its JSON text

# Semantic names that are read as what they hold; all others by the type that carries them.
SEMANTIC_TYPES = {
    "Date": "Date",
    "Time": "Time",
    "MicroTime": "MicroTime",
    "NanoTime": "NanoTime",
    "Timestamp": "Timestamp",
    "MicroTimestamp": "MicroTimestamp",
    "NanoTimestamp": "NanoTimestamp",
    "ZonedTimestamp": "ZonedTimestamp",
    "ZonedTime": "ZonedTime",
    "IsoDate": "IsoDate",
    "IsoTime": "IsoTime",
    "IsoTimestamp": "IsoTimestamp",
    "Year": "Year",
    "MicroDuration": "MicroDuration",
    "NanoDuration": "NanoDuration",
    "Interval": "Interval",
    "VariableScaleDecimal": "VariableScaleDecimal",
    "Enum": "Enum",
    "EnumSet": "EnumSet",
    "Json": "Json",
    "Xml": "Xml",
    "Uuid": "Uuid",
    "Ltree": "Ltree",
    "TsVector": "TsVector",
    "Tsvector": "TsVector",  # as Debezium 3.5 spells it
    "Point": "Point",
    "Geometry": "Geometry",
    "Geography": "Geography",
    "FloatVector": "FloatVector",
    "DoubleVector": "DoubleVector",
}
PLAIN_TYPES = {
    "int8": "int16",
    "int16": "int16",
    "int32": "int32",
    "int64": "int64",
    "float": "float",
    "float32": "float",
    "double": "double",
    "float64": "double",
    "boolean": "boolean",
    "string": "string",
    "bytes": "bytes",
    "map": "map",
}


# Names that some writers give to a text, compared in lower case; the same names by another type are in SEMANTIC_TYPES.
TEXT_TYPES = {"decimal": "string", "timestamp": "TimestampText", "date": "string", "time": "string"}


@dataclass
class TableSeen:
    """A table of the source as landed events show it."""

    connector: str
    identity: tuple[str, ...]  # schema and table, database and table, or the topic
    topics: set[str] = field(default_factory=set)
    columns: dict[str, str] = field(default_factory=dict)  # name → Debezium type
    keys: list[str] = field(default_factory=list)
    message_keys: list[list[str]] = field(default_factory=list)  # the sets of columns that messages are keyed by
    types_from: str = ""  # schema block, DDL records, values
    servers: set[str] = field(default_factory=set)  # names of the connectors (`topic.prefix`) that sent its events
    source_tables: set[str] = field(default_factory=set)  # that flattened rows name
    tells_deletes: bool = False  # whether its events say when a row is gone; not so for some flattened ones
    doubts: dict[str, list[str]] = field(
        default_factory=dict
    )  # setting of the connector → columns whose types depend on it
    possible: dict[str, set[str]] = field(default_factory=dict)  # column → types that its DDL record may stand for
    unlike: dict[str, set[str]] = field(
        default_factory=dict
    )  # column → types that its values do not look like, if no schema says
    kinds: dict[str, set[str]] = field(default_factory=dict)  # column → the types that schema blocks of its events have
    older: dict[str, str] = field(
        default_factory=dict
    )  # column → what it was by an older DDL record, and would be read otherwise
    misread: dict[str, list[str]] = field(
        default_factory=dict
    )  # column → types of events that may be misread, as somebody said
    renamed: dict[str, str] = field(
        default_factory=dict
    )  # name in the lakehouse → name in the events, of columns that need two
    comments: dict[str, str] = field(default_factory=dict)  # column → what the source says of it

    @property
    def name(self) -> str:
        return ".".join(self.identity)

    @property
    def shard(self) -> str | None:
        """The column that names the shard, where the table has one."""
        return next((name for name, kind in self.columns.items() if kind == SHARD), None)

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
                why = (
                    "Iceberg keeps that name for itself"
                    if name.lower() in RESERVED
                    else "another column is kept by that name"
                )
                notes.append(f"{self.name}: column {name} is kept as {kept}, because {why}")
                self.renamed[kept] = name
        return notes


RESERVED = {
    "_file",
    "_pos",
    "_deleted",
    "_spec_id",
    "_partition",
    "_row_id",
    "_last_updated_sequence_number",
}  # Iceberg's own


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


INTEGERS = ["int16", "int32", "int64"]
FLOATS = ["float", "double"]
FLOAT_NAMES = {"float32": "float", "float64": "double"}
PLAIN_NUMBERS = {*INTEGERS, *FLOATS, "uint64", "Year", "MicroDuration", "NanoDuration"}
ENCODED_NUMBERS = {"Date", "Time", "MicroTime", "NanoTime", "Timestamp", "MicroTimestamp", "NanoTimestamp"}
NO_DOUBLES = {
    "int64",
    "uint64",
    "Decimal",
    "MicroDuration",
    "NanoDuration",
    *(ENCODED_NUMBERS - {"Date", "Time"}),
}  # nor floats
ENCODED_TEXTS = {"Decimal", "Bits", "bytes", "bytes_url", "bytes_hex"}
PLAIN_TEXTS = {
    "string",
    "Enum",
    "EnumSet",
    "Json",
    "Xml",
    "Uuid",
    "Ltree",
    "TsVector",
    "Interval",
    "ZonedTime",
    "DecimalText",
}
DECIMAL = re.compile(r"Decimal\((\d+),(-?\d+)\)")
ARRAY = re.compile(r"array<(.+)>")


def wider_type(one: str, other: str) -> str:
    """The type that holds both, where there is one; else the first: what is written as the second is rejected, or
    `is_misread`.
    """
    for order in (INTEGERS, FLOATS):
        if one in order and other in order:
            return max(one, other, key=order.index)
    if {one, other} == {"Timestamp", "TimestampText"}:
        return "TimestampText"
    decimals = [DECIMAL.fullmatch(kind) for kind in (one, other)]
    if decimals[0] and decimals[1] and decimals[0][2] == decimals[1][2]:
        return max(one, other, key=lambda kind: int(kind[8:].partition(",")[0]))
    arrays = [ARRAY.fullmatch(kind) for kind in (one, other)]
    return f"array<{wider_type(arrays[0][1], arrays[1][1])}>" if arrays[0] and arrays[1] else one


def is_misread(written: str, declared: str) -> bool:
    """Whether values that are written as one type are read as others of the declared one; if not, they are exact or
    rejected.

    So it is with another scale, another unit of time, a text that is taken for base64, a whole number that no double
    holds: nothing but the schema block of an event, which models do not read, tells what its values are. What is
    declared as a plain whole number or text has what stands in the event.
    """
    written, declared = (FLOAT_NAMES.get(kind, kind) for kind in (written, declared))
    names = [kind.partition("(")[0] for kind in (written, declared)]
    if written == declared or wider_type(declared, written) == wider_type(written, declared) == declared:
        return False
    decimals = [DECIMAL.fullmatch(kind) for kind in (written, declared)]
    if decimals[0] and decimals[1]:
        return decimals[0][2] != decimals[1][2]
    arrays = [ARRAY.fullmatch(kind) for kind in (written, declared)]
    if arrays[0] and arrays[1]:
        return is_misread(arrays[0][1], arrays[1][1])
    if names[0] == names[1]:
        return False
    of_numbers = names[1] in ENCODED_NUMBERS | {"TimestampText"} and names[0] in PLAIN_NUMBERS | ENCODED_NUMBERS
    of_texts = names[1] in ENCODED_TEXTS and names[0] in PLAIN_TEXTS | ENCODED_TEXTS
    of_digits = names[1] == "DecimalText" and names[0] in ENCODED_TEXTS
    of_doubles = (
        names[1] in FLOATS and names[0] in NO_DOUBLES or names[1] == "float" and names[0] in ("double", "int32", "Time")
    )
    # MySQL's unsigned numbers, in the form of the connector that has negative ones for the greatest.
    of_signs = [written, declared] in (["int64", "uint64"], ["uint64", "Decimal(20,0)"])
    return of_numbers or of_texts or of_digits or of_doubles or of_signs


def columns_of_schema(schema: Any, after: str, before: str) -> dict[str, str]:
    """Columns and types from the schema block of a value, which has its images in two members; empty if it has none."""
    images = fields_of(schema)
    row = images.get(after) or images.get(before)
    return columns_of_struct(row)


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


def columns_of_values(rows: Iterable[dict[str, Any]]) -> dict[str, str]:
    """Columns and types from row images alone: the widest type that all values have. No value tells a double from a
    decimal.
    """
    kinds: dict[str, set[str]] = {}
    for row in rows:
        for name, value in row.items():
            kinds.setdefault(name, set()).add(_kind(value))
    types = {name: _widest(found - {"null"}) for name, found in kinds.items()}
    return {name: "number" if kind == "double" else kind for name, kind in types.items()}


class BsonKind(str):
    """A BSON type, in place of a value of it."""


SHARD = "shard"  # the type of a column that names the connector which sent the event
DOCUMENT = "Bson(document)"  # the type of a column that is the whole document
# Members of the objects that stand for a value in extended JSON.
BSON_KINDS = {
    "$oid": "objectId",
    "$numberLong": "long",
    "$numberInt": "long",
    "$numberDouble": "double",
    "$numberDecimal": "decimal",
    "$date": "date",
    "$binary": "binData",
    "$uuid": "binData",
}


def bson_kind(value: Any) -> BsonKind | None:
    """The BSON type of a value of extended JSON, None of a null; `any` of what has no Spark type of its own."""
    if value is None:
        return None
    if isinstance(value, dict):
        return BsonKind(
            BSON_KINDS.get(next(iter(value), ""), "any") if value.keys() - {"$type"} <= BSON_KINDS.keys() else "any"
        )
    plain = {bool: "bool", int: "long", float: "double", str: "string"}
    return BsonKind(plain.get(type(value), "any"))


EXACT_IN_DOUBLES = 2**53
LONG = "int64 that no double holds"  # a kind of values, not a type: beside fractions it makes the column `any`


def _kind(value: Any, nesting: int = 0) -> str:
    if value is None:
        return "null"
    if isinstance(value, BsonKind):
        return f"Bson({value})"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        if abs(value) > EXACT_IN_DOUBLES:
            return LONG if -(2**63) <= value < 2**63 else "any"
        return "int64"
    if isinstance(value, float):
        return "double" if not isinstance(value, JsonFloat) or value.is_a_double() else "any"
    if isinstance(value, str):
        return "string"
    if isinstance(value, list) and nesting < MAX_NESTING:
        return f"array<{_widest({_kind(item, nesting + 1) for item in value} - {'null'})}>"
    return "any"


def _widest(kinds: set[str]) -> str:
    if LONG in kinds and kinds <= {LONG, "int64"}:
        return "int64"
    if len(kinds) == 1:
        return kinds.pop()
    if kinds == {"int64", "double"}:
        return "double"
    for wide in ("double", "decimal"):
        if kinds == {"Bson(long)", f"Bson({wide})"}:
            return f"Bson({wide})"
    return DOCUMENT if DOCUMENT in kinds else "any"


class JsonFloat(float):
    """A number that has a fraction or an exponent, and its text: a float alone has lost digits that the text has."""

    text: str

    def __new__(cls, text: str) -> "JsonFloat":
        number = super().__new__(cls, text)
        number.text = text
        return number

    def is_a_double(self) -> bool:
        """Whether a double holds the number."""
        try:
            return isfinite(self) and Decimal(self.text) == Decimal(repr(float(self)))
        except ArithmeticError:  # an exponent that no Decimal has either
            return False

    def is_a_double_as_printed(self) -> bool:
        """Whether it was printed from a double, as far as can be told: an exact decimal has the zeros of its scale."""
        return self.is_a_double() and not re.search(r"[.]\d+0\Z", self.text)

    def scale(self) -> int | None:
        """Digits after the point; None of a number with an exponent."""
        return len(self.text.partition(".")[2]) if self.text.lstrip("-").replace(".", "").isdecimal() else None


def parsed(text: str | None) -> Any:
    """The JSON of a key or value, or None: what cannot be read here is a rejected record elsewhere."""
    if text is None:
        return None
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def parsed_exactly(text: str | None) -> Any:
    """The same, with all digits of all numbers; slower."""
    value = parsed(text)
    try:
        return value if text is None or value is None else json.loads(text, parse_float=JsonFloat)
    except (ValueError, RecursionError):  # a number of thousands of digits, nested to the limit
        return value


def key_columns(key: Any) -> list[str]:
    """The names of the key columns in a Kafka key: of its payload, whatever its schema block looks like.

    A payload that is no object is a column of that name, unless a schema block says that it is the whole key.
    """
    if isinstance(key, dict) and "payload" in key:
        is_wrapped = isinstance(key["payload"], dict) or isinstance(key.get("schema", ""), dict | None)
        key = key["payload"] if is_wrapped else key
    return [str(name) for name in key] if isinstance(key, dict) else []
