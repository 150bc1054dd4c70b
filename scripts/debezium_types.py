"""Debezium types as models declare them: which holds which, and which is misread as which."""

import re
from collections.abc import Iterable
from functools import reduce

INTEGERS = ["int16", "int32", "int64"]
FLOATS = ["float", "double"]
FLOAT_NAMES = {"float32": "float", "float64": "double"}
PLAIN_NUMBERS = {*INTEGERS, *FLOATS, "uint64", "Year", "MicroDuration", "NanoDuration"}
ENCODED_NUMBERS = {"Date", "Time", "MicroTime", "NanoTime", "Timestamp", "MicroTimestamp", "NanoTimestamp"}
# No double holds all of these, nor does a float.
NO_DOUBLES = {"int64", "uint64", "Decimal", "MicroDuration", "NanoDuration", *ENCODED_NUMBERS} - {"Date", "Time"}
ENCODED_TEXTS = {"Decimal", "Bits", "bytes", "bytes_url", "bytes_hex"}
PLAIN_TEXTS = set("string Enum EnumSet Json Xml Uuid Ltree TsVector Interval ZonedTime DecimalText".split())
DECIMAL = re.compile(r"Decimal\((\d+), *(-?\d+)\)")
ARRAY = re.compile(r"array<(.+)>")
SEVERAL = " | "  # between the types of a column whose type changed; the schema block of an event says which one it has
DIGITS = {"int16": 5, "int32": 10, "int64": 19, "uint64": 20}
MAX_DIGITS = 38  # of Spark's DECIMAL; a number of more is a text
INSTANTS = {"Date", "Timestamp", "MicroTimestamp", "NanoTimestamp"}
CLOCKS = {"Time", "MicroTime", "NanoTime"}


def wider_type(one: str, other: str) -> str:
    """The type that holds both, if there is one; else the first: values of the second are rejected or misread.

    Where one text of JSON stands for other values under the second type, it is both, as `Decimal(8,2) | Decimal(12,4)`.
    """
    arrays = [ARRAY.fullmatch(kind) for kind in (one, other)]
    if arrays[0] and arrays[1]:
        item = wider_type(arrays[0][1], arrays[1][1])
        return f"array<{item}>" if SEVERAL not in item else one
    found = one.split(SEVERAL)
    for kind in other.split(SEVERAL):
        wide = [_read_alike(known, kind) for known in found]
        at = next((number for number, text in enumerate(wide) if text), len(found))
        found[at : at + 1] = [wide[at] if at < len(wide) else kind]
    return SEVERAL.join(found) if len(found) == 1 or held_as(found) else one


def widest_type(known: str, kinds: Iterable[str]) -> str:
    """A declared type, widened by those that events were seen to have."""
    return reduce(wider_type, sorted(kinds), known)


def _read_alike(one: str, other: str) -> str:
    """The type that reads what both write; empty where there is none."""
    if one == other:
        return one
    if one in INTEGERS and other in INTEGERS:
        return max(one, other, key=INTEGERS.index)
    if {one, other} == {"Timestamp", "TimestampText"}:
        return "TimestampText"
    if {one, other} in ({"double", "int16"}, {"double", "int32"}):
        return "double"
    if one in PLAIN_TEXTS and other in PLAIN_TEXTS and "DecimalText" not in (one, other):
        return one
    decimals = [DECIMAL.fullmatch(kind) for kind in (one, other)]
    if decimals[0] and decimals[1] and decimals[0][2] == decimals[1][2]:
        return max(one, other, key=lambda kind: int(kind[8:].partition(",")[0]))
    return ""


def reads(declared: str, written: str) -> bool:
    """Whether all values that are written as one type are read right as the declared one."""
    return any(_read_alike(one, written) == one for one in declared.split(SEVERAL))


def held_as(types: list[str]) -> str:
    """The narrowest Spark type that holds the values of all, as their source would have converted them; empty: none.

    Spark prints doubles, days and times otherwise than databases: these are not taken into a text.
    """
    names = {kind.partition("(")[0] for kind in types}
    if names <= INSTANTS:
        return "timestamp_ntz"
    if names <= CLOCKS:
        return "string"
    if names <= {*FLOATS, *INTEGERS} and names & set(FLOATS):
        return "double" if "float" not in names or names == set(FLOATS) else ""
    if names - {*DIGITS, "Decimal"} - (PLAIN_TEXTS - {"DecimalText", "Interval", "ZonedTime"}):
        return ""
    if names - {*DIGITS, "Decimal"}:
        return "string"
    numbers = [(int(found[1]), int(found[2])) for kind in types if (found := DECIMAL.fullmatch(kind))]
    scale = max([0, *(scale for _, scale in numbers)])
    digits = max([*(DIGITS[name] for name in names & DIGITS.keys()), *(digits - scale for digits, scale in numbers)])
    return f"decimal({digits + scale},{scale})" if digits + scale <= MAX_DIGITS else "string"


def is_misread(written: str, declared: str) -> bool:
    """Whether values that are written as one type are read as others of the declared one; if not, they are exact or
    rejected.

    So it is with another scale, another unit of time, a text that is taken for base64, a whole number that no double
    holds. What is declared as a plain whole number or text has what stands in the event. Models reject such values by
    the schema block of the event (`kinds_read_as` in macros/types/several.sql).
    """
    written, declared = (FLOAT_NAMES.get(kind, kind) for kind in (written, declared))
    if SEVERAL in declared or SEVERAL in written:
        return not all(reads(declared, kind) for kind in written.split(SEVERAL))
    names = [kind.partition("(")[0] for kind in (written, declared)]
    if _read_alike(declared, written) == _read_alike(written, declared) == declared:
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
    of_doubles = names[1] in FLOATS and names[0] in NO_DOUBLES
    # A float is another number as a double than the one that its digits are.
    of_floats = names[1] == "float" and names[0] in ("double", "int32", "Time") or names == ["float", "double"]
    # MySQL's unsigned numbers, in the form of the connector that has negative ones for the greatest.
    of_signs = [written, declared] in (["int64", "uint64"], ["uint64", "Decimal(20,0)"])
    return of_numbers or of_texts or of_digits or of_doubles or of_floats or of_signs
