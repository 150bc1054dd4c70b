"""Debezium types as models declare them: which holds which, and which is misread as which."""

import re

INTEGERS = ["int16", "int32", "int64"]
FLOATS = ["float", "double"]
FLOAT_NAMES = {"float32": "float", "float64": "double"}
PLAIN_NUMBERS = {*INTEGERS, *FLOATS, "uint64", "Year", "MicroDuration", "NanoDuration"}
ENCODED_NUMBERS = {"Date", "Time", "MicroTime", "NanoTime", "Timestamp", "MicroTimestamp", "NanoTimestamp"}
# No double holds all of these, nor does a float.
NO_DOUBLES = {"int64", "uint64", "Decimal", "MicroDuration", "NanoDuration", *ENCODED_NUMBERS} - {"Date", "Time"}
ENCODED_TEXTS = {"Decimal", "Bits", "bytes", "bytes_url", "bytes_hex"}
PLAIN_TEXTS = set("string Enum EnumSet Json Xml Uuid Ltree TsVector Interval ZonedTime DecimalText".split())
DECIMAL = re.compile(r"Decimal\((\d+),(-?\d+)\)")
ARRAY = re.compile(r"array<(.+)>")


def wider_type(one: str, other: str) -> str:
    """The type that holds both, if there is one; else the first: values of the second are rejected or misread."""
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
    holds: only the schema block of an event, which models do not read, says what its values are. What is
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
    of_doubles = names[1] in FLOATS and names[0] in NO_DOUBLES
    of_floats = names[1] == "float" and names[0] in ("double", "int32", "Time")
    # MySQL's unsigned numbers, in the form of the connector that has negative ones for the greatest.
    of_signs = [written, declared] in (["int64", "uint64"], ["uint64", "Decimal(20,0)"])
    return of_numbers or of_texts or of_digits or of_doubles or of_floats or of_signs
