"""Values of events: their JSON, and the types that they look like where no schema block says."""

import json
import re
from collections.abc import Iterable
from decimal import Decimal
from math import isfinite
from typing import Any

import orjson

from scripts.schema import DOCUMENT, MAX_NESTING

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
EXACT_IN_DOUBLES = 2**53
LONG = "int64 that no double holds"  # a kind of values, not a type: beside fractions it makes the column `any`


class BsonKind(str):
    """A BSON type, in place of a value of it."""


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
        """Whether its text may be printed from a double: an exact decimal has the zeros of its scale."""
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


def columns_of_values(rows: Iterable[dict[str, Any]]) -> dict[str, str]:
    """Columns and types from row images alone. No value shows whether it is a double or a decimal."""
    kinds: dict[str, set[str]] = {}
    for row in rows:
        for name, value in row.items():
            kinds.setdefault(name, set()).add(_kind(value))
    types = {name: _widest(found - {"null"}) for name, found in kinds.items()}
    return {
        name: kind if kind.startswith("Bson(") else kind.replace("double", "number") for name, kind in types.items()
    }


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


def bson_kind(value: Any) -> BsonKind | None:
    """The BSON type of a value of extended JSON, None of a null; `any` of what has no Spark type of its own."""
    if value is None:
        return None
    if isinstance(value, dict):
        is_known = value.keys() - {"$type"} <= BSON_KINDS.keys()
        return BsonKind(BSON_KINDS.get(next(iter(value), ""), "any") if is_known else "any")
    plain = {bool: "bool", int: "long", float: "double", str: "string"}
    return BsonKind(plain.get(type(value), "any"))
