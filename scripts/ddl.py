"""Columns and types from the DDL records (`tableChanges`) of MySQL, MariaDB and TiCDC, for events without a schema
block.

A DDL record tells the column's type; how the connector writes its values is a setting of the connector (a handling
mode), which no event names. The values tell it where they can: a mode in which one of them cannot have been written is
ruled out, and of the others the one that they look like is taken, for all columns together, because a setting is one
for the whole connector. What stays open is declared as in the setting's default, and reported.

Source: Debezium's documentation of MySQL and MariaDB, "Data type mappings", and its `JsonTableChangeSerializer`.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from scripts.debezium_types import ENCODED_NUMBERS, ENCODED_TEXTS, FLOATS, INTEGERS, PLAIN_TEXTS, is_misread
from scripts.values import JsonFloat

# Digits of a second that the unit of a type has.
TIMESTAMPS = {"Timestamp": 3, "MicroTimestamp": 6, "NanoTimestamp": 9}
TIMES = {"Time": 3, "MicroTime": 6, "NanoTime": 9}
YEAR = 365 * 24 * 3600
FIRST_SECOND, LAST_SECOND = -62135596800, 253402300799  # of the years 1 to 9999, from 1970
LAST_TIME = 839 * 3600
MAX_VALUES = 1000  # of a column that are looked at
ENOUGH_DIGITS = 16  # of hexadecimal: by chance base64 looks so in one of four billion cases
NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?\Z")
HEXADECIMAL = re.compile(r"(?:[0-9a-f]{2})*\Z")

BINARY = {"BINARY", "VARBINARY", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB"}
GEOMETRY = set("GEOMETRY LINESTRING POLYGON MULTIPOINT MULTILINESTRING MULTIPOLYGON GEOMETRYCOLLECTION".split())
SIMPLE = {
    "FLOAT": "float",
    "REAL": "double",
    "DOUBLE": "double",
    "BOOL": "boolean",
    "BOOLEAN": "int16",
    "TIMESTAMP": "ZonedTimestamp",
    "YEAR": "Year",
    "POINT": "Point",
    "VECTOR": "FloatVector",
}
# Other names that MySQL takes for a type; a DDL record of a running table has the one that the statement has.
SYNONYMS = {
    "INT1": "TINYINT",
    "INT2": "SMALLINT",
    "INT3": "MEDIUMINT",
    "MIDDLEINT": "MEDIUMINT",
    "INT4": "INT",
    "INT8": "BIGINT",
    "FLOAT4": "FLOAT",
    "FLOAT8": "DOUBLE",
    "LONG VARBINARY": "MEDIUMBLOB",
    "CHAR BYTE": "BINARY",
    "CHARACTER BYTE": "BINARY",
}
Identity = tuple[str, ...]


@dataclass
class Typed:
    """The columns of a table whose types are from its DDL record."""

    columns: dict[str, str]  # name → Debezium type
    # Setting of the connector → the modes that the values show, if the default is none of them.
    settings: dict[str, str] = field(default_factory=dict)
    # Setting → columns that it would change, and no value shows whether.
    doubts: dict[str, list[str]] = field(default_factory=dict)
    # Name → the types that it has in one setting or another.
    possible: dict[str, set[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class _Column:
    """A column, and the type that it has in each mode of the connector's setting; the default comes first."""

    types: dict[str, str]
    setting: str = ""
    fraction: int = 0  # digits of a second that its values have at most
    values: tuple[Any, ...] = ()

    def allows(self, mode: str) -> bool:
        return all(_can_be(self.types[mode], value, self.fraction) for value in self.values)

    def suggests(self, mode: str) -> bool:
        return looks_like(self.types[mode], self.values)


def key_of_ddl(table: dict[str, Any]) -> list[str]:
    """The primary key of a `tableChanges` element."""
    names = table.get("primaryKeyColumnNames")
    return [str(name) for name in names] if isinstance(names, list) else []


def types_of_ddl(tables: dict[Identity, tuple[dict[str, Any], list[dict[str, Any]]]]) -> dict[Identity, Typed]:
    """Columns and types of the tables of a system.

    Args:
        tables: the `table` of a `tableChanges` element, and rows as they stand in events, of which some may be missing.
    """
    columns = {name: _columns(table, rows) for name, (table, rows) in tables.items()}
    everything = [column for of_table in columns.values() for column in of_table.values()]
    modes = {
        setting: _modes([column for column in everything if column.setting == setting])
        for setting in {column.setting for column in everything if column.setting}
    }
    return {name: _typed(of_table, modes) for name, of_table in columns.items()}


def read_otherwise(older: dict[str, Any], newer: dict[str, Any], typed: Typed) -> dict[str, str]:
    """Columns → the type by an older DDL record, if its values may be misread as the type by the newer one."""
    before, now = _columns(older, []), _columns(newer, [])
    found = {}
    for name in (name for name in before if name in now):
        modes = [mode for mode, kind in now[name].types.items() if kind == typed.columns[name]]
        then = before[name].types
        kinds = [then.get(mode, next(iter(then.values()))) for mode in modes]
        if kinds and stands_for_another(kinds[0], typed.columns[name]):
            found[name] = kinds[0]
    return found


def stands_for_another(written: str, declared: str) -> bool:
    """Whether a value that is written as one type may not be, as the declared one, what the source made of it.

    So it is also with what is declared as a plain text or number, and has what stands in the event: base64, the number
    of a day, a double that the source prints otherwise.
    """
    name, plain = (kind.partition("(")[0] for kind in (written, declared))
    is_text = plain in PLAIN_TEXTS and name in ENCODED_TEXTS | ENCODED_NUMBERS | {"boolean", "uint64", *FLOATS}
    is_number = plain in INTEGERS and name in ENCODED_NUMBERS | {"uint64"}
    return is_changed(written, declared) or is_text or is_number


def is_changed(written: str, declared: str) -> bool:
    """Whether values that are written as one type may be read as others of the declared one, where DDL records alone
    tell the two apart: `007` of a text would be a number.
    """
    return is_misread(written, declared) or (written == "string" and declared.startswith("DecimalText"))


def written_otherwise(
    older: dict[str, Any], newer: dict[str, Any], declared: dict[str, str], seen: dict[str, str]
) -> dict[str, str]:
    """Columns to which a newer DDL record gives another type than an older one and the declaration, and the type they
    have now.

    Where several modes of the connector give what is declared, of all columns of the older record, it is the first of
    them.

    Args:
        seen: the types of columns in new rows, where DDL records and values tell them.
    """
    before, now = _columns(older, []), _columns(newer, [])
    modes = _modes_of(before, declared)
    found = {}
    for name in (name for name in declared if name in before and name in now):
        mode = next(iter(modes.get(before[name].setting, [])), None)
        if mode is not None and before[name].types[mode] == declared[name]:
            is_same = now[name].setting == before[name].setting
            kind = now[name].types[mode] if is_same else _kind_now(name, now, declared, seen)
            if kind != declared[name]:
                found[name] = kind
    return found


def _kind_now(name: str, now: dict[str, _Column], declared: dict[str, str], seen: dict[str, str]) -> str:
    """The type of a column in new rows; without any, in the mode that other columns are declared in, or the default."""
    others = {one: column for one, column in now.items() if one != name}
    types, modes = now[name].types, _modes_of(others, declared).get(now[name].setting, [])
    return seen.get(name) or types[next(iter([*modes, *types]))]


def guessed_otherwise(
    older: dict[str, Any], newer: dict[str, Any], declared: dict[str, str], seen: dict[str, str]
) -> dict[str, str]:
    """Columns whose rows landed before any DDL record that has them, where what the declared type reads may be another
    value than by the newer record; and the type by that one.

    Args:
        seen: the types of columns in new rows, where DDL records and values tell them.
    """
    before, now = _columns(older, []), _columns(newer, [])
    found = {}
    for name in (name for name in declared if name in now and name not in before):
        is_guess = declared[name] not in now[name].types.values()
        if is_guess and stands_for_another(kind := _kind_now(name, now, declared, seen), declared[name]):
            found[name] = kind
    return found


def _modes_of(columns: dict[str, _Column], declared: dict[str, str]) -> dict[str, list[str]]:
    """Settings of the connector → the modes that give all its columns, which are not of a type that somebody chose, the
    declared type; a setting without such a column is missing.
    """
    modes: dict[str, list[str]] = {}
    for name, column in columns.items():
        fit = [mode for mode, kind in column.types.items() if kind == declared.get(name)]
        if fit:
            known = modes.get(column.setting, fit) if column.setting else fit
            modes[column.setting] = [mode for mode in known if mode in fit]
    return modes


def _typed(columns: dict[str, _Column], modes: dict[str, list[str]]) -> Typed:
    typed = Typed({})
    for name, column in columns.items():
        # Where columns contradict one another, each has what its own values tell.
        fitting = modes.get(column.setting) or _modes([column]) or list(column.types)
        types = list(dict.fromkeys(column.types[mode] for mode in fitting))
        typed.columns[name] = types[0]
        typed.possible[name] = set(column.types.values())
        default = next(iter(column.types))
        if default not in fitting and column.types[default] != types[0]:
            typed.settings[column.setting] = " or ".join(fitting)
        if _are_confusable(types):
            typed.doubts.setdefault(column.setting, []).append(name)
    return typed


def _modes(columns: list[_Column]) -> list[str]:
    """The modes in which all values of the columns can have been written, and of these the ones that they look like."""
    possible = [mode for mode in columns[0].types if all(column.allows(mode) for column in columns)]
    # Others look like none of them.
    telling = [column for column in columns if any(column.suggests(mode) for mode in possible)]
    return [mode for mode in possible if all(column.suggests(mode) for column in telling)] or possible


def _are_confusable(types: list[str]) -> bool:
    """Whether a value of one of the types is read as another value of the other; else it is rejected, and seen."""
    whole_number = any(kind.startswith("Decimal(") and kind.endswith(",0)") for kind in types)
    return (
        len(set(types) & TIMESTAMPS.keys()) > 1
        or len(set(types) & TIMES.keys()) > 1
        or "bytes_hex" in types and len(types) > 1
        or whole_number and any(kind.startswith("DecimalText") for kind in types)
    )  # fmt: skip


def _can_be(kind: str, value: Any, fraction: int) -> bool:
    """Whether a connector can have written the value, whose seconds have at most `fraction` digits, as the type."""
    name = kind.split("(")[0]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if digits := (TIMESTAMPS | TIMES).get(name):
        first, last = (-LAST_TIME, LAST_TIME) if name in TIMES else (FIRST_SECOND, LAST_SECOND)
        unused = 10 ** max(0, digits - fraction)
        return isinstance(value, int) and first <= value // 10**digits <= last and value % unused == 0
    if name == "uint64":
        return isinstance(value, int) and -(2**63) <= value < 2**63
    if name == "Date":
        return isinstance(value, int)
    if name.startswith("Iso"):
        return isinstance(value, str)
    if name == "double":
        return is_number and (not isinstance(value, JsonFloat) or value.is_a_double_as_printed())
    if name == "Decimal":
        return is_number or isinstance(value, str) and _is_base64(value)
    if name == "DecimalText":
        is_text = isinstance(value, str) and bool(NUMBER.match(value))
        return is_text and (kind.endswith(",0)") or bool(re.search("[.eE]", value)))
    if name == "bytes_hex":
        return isinstance(value, str) and bool(HEXADECIMAL.match(value))
    if name == "bytes_url":
        is_text = isinstance(value, str) and not re.search("[+/]", value)
        return is_text and _is_base64(value.translate({45: "+", 95: "/"}))
    return name != "bytes" or isinstance(value, str) and _is_base64(value)


def looks_like(kind: str, values: Iterable[Any]) -> bool:
    """Whether values that can have been written as the type look so.

    A timestamp in a unit that is too large is a date within a year of 1970 (2255 in milliseconds is March 1970 in
    microseconds), so most values have to be of other years. A whole number in plain digits is, as base64, a negative
    one.
    """
    name = kind.split("(")[0]
    if name in TIMESTAMPS:
        numbers = [value for value in values if isinstance(value, int) and value]
        return not numbers or sum(abs(number) >= YEAR * 10 ** TIMESTAMPS[name] for number in numbers) * 2 > len(numbers)
    texts = {value for value in values if isinstance(value, str)}
    if name in ("bytes", "bytes_url"):
        return not all(map(HEXADECIMAL.match, texts)) or sum(map(len, texts)) < ENOUGH_DIGITS
    if name == "Decimal":
        fractions = [value for value in values if isinstance(value, float)] if "(" in kind else []
        scale = kind.rstrip(")").partition(",")[2]
        is_plain = all(isinstance(value, JsonFloat) and str(value.scale()) == scale for value in fractions)
        return is_plain and not (texts and all(map(NUMBER.match, texts)))
    return name != "double" or all(isinstance(value, float) for value in values)


def _is_base64(text: str) -> bool:
    try:
        return len(base64.b64decode(text, validate=True)) >= 0
    except (binascii.Error, ValueError):
        return False


def _columns(table: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, _Column]:
    columns = table.get("columns")
    return {
        column["name"]: _column(column, tuple(islice(_values(rows, column["name"]), MAX_VALUES)))
        for column in (columns if isinstance(columns, list) else [])
        if isinstance(column, dict) and isinstance(column.get("name"), str)
    }


def _values(rows: list[dict[str, Any]], name: str) -> Iterator[Any]:
    return (row[name] for row in rows if row.get(name) is not None)


def _column(column: dict[str, Any], values: tuple[Any, ...]) -> _Column:
    kind = str(column.get("typeName", "")).upper()
    unsigned = "UNSIGNED" in kind
    words = " ".join(kind.split("(")[0].replace("UNSIGNED", "").replace("ZEROFILL", "").split())
    base = SYNONYMS.get(words, words.partition(" ")[0])
    base = SYNONYMS.get(base, base)
    length, scale = (number if isinstance(number, int) else 0 for number in (column.get("length"), column.get("scale")))
    if base == "FLOAT" and length > 24 and column.get("scale") is None:
        base = "DOUBLE"  # of so many bits
    if base in ("BIGINT", "SERIAL") and (unsigned or base == "SERIAL"):
        return _Column({"long": "uint64", "precise": "Decimal(20,0)"}, "bigint.unsigned.handling.mode", 0, values)
    if base in ("DECIMAL", "NUMERIC", "DEC", "FIXED"):
        numbers = f"({length or 10},{scale})"
        types = {"precise": "Decimal" + numbers, "string": "DecimalText" + numbers, "double": "double"}
        return _Column(types, "decimal.handling.mode", 0, values)
    if base in BINARY:
        types = {"bytes or base64": "bytes", "base64-url-safe": "bytes_url", "hex": "bytes_hex"}
        return _Column(types, "binary.handling.mode", 0, values)
    if base in ("DATE", "TIME", "DATETIME"):
        suffix = {"DATE": "Date", "TIME": "Time", "DATETIME": "Timestamp"}[base]
        usual = {"DATE": "Date", "TIME": "MicroTime"}.get(base, "Timestamp" if length <= 3 else "MicroTimestamp")
        units = ["Date"] * 3 if base == "DATE" else [suffix, "Micro" + suffix, "Nano" + suffix]
        modes = ("adaptive_time_microseconds", "connect", "microseconds", "nanoseconds", "isostring")
        types = dict(zip(modes, (usual, *units, "Iso" + suffix), strict=True))
        return _Column(types, "time.precision.mode", length, values)
    return _Column({"": _type_in_every_mode(base, unsigned, length)})


def _type_in_every_mode(base: str, unsigned: bool, length: int) -> str:
    if base in ("TINYINT", "SMALLINT"):
        return "int32" if unsigned and base == "SMALLINT" else "int16"
    if base in ("MEDIUMINT", "INT", "INTEGER"):
        return "int64" if unsigned and base in ("INT", "INTEGER") else "int32"
    if base == "BIGINT":
        return "int64"
    if base == "BIT":
        return "boolean" if length <= 1 else f"Bits({length})"
    if base in GEOMETRY:
        return "Geometry"
    return SIMPLE.get(base, "string")
