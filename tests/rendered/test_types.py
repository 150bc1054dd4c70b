"""Every Debezium type in every handling mode of the connectors: the value itself, or the event is rejected.

Source: Debezium's documentation of PostgreSQL, MySQL and MariaDB, "Data type mappings", `time.precision.mode`, and the
handling modes `decimal`, `binary`, `bigint.unsigned`, `interval` and `hstore`.
"""

import base64
import json
import random
import re
from datetime import date, datetime, timezone
from typing import Any

from conftest import Lakehouse
from event_factory import created, event

DAY = (date(2017, 9, 15) - date(1970, 1, 1)).days
SECOND = int(datetime(2017, 9, 15, 12, 34, 56, tzinfo=timezone.utc).timestamp())
TIME = 45_296_789_012_345  # 12:34:56.789012345 in nanoseconds
CONNECT = "org.apache.kafka.connect.data."
DEBEZIUM = "io.debezium."


def unscaled(number: int) -> str:
    return base64.b64encode(number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)).decode()


def decimal(precision: int, scale: int) -> dict[str, Any]:
    return {"scale": str(scale), "connect.decimal.precision": str(precision)}


# Texts of another form than Debezium's, for which Spark is lenient.
NO_DATES = [
    "2017-02-30Z",
    "2017",
    "2017-09",
    "2017-9-15Z",
    "2017-09-15T00:00:00Z",
    "2017-09-15 x",
    "0000-01-01Z",
    "2017-09-15+02:00",
]
NO_TIMES = ["12:34Z", "noon", "24:00:00Z", "12:60:00Z", "12:34:56+02:00", "12:34:56.0123456789Z"]
NO_TIMESTAMPS = ["2017-13-15T00Z", "2017-13-15T00:00:00Z", "2017-09-15T12:34:56.0000001Z", "2017-09-15T12:34:56+02:00"]
NO_TIMESTAMPS += ["0000-01-01T00:00:00Z", "2017-09-15Z", "2017-09-15T12:34Z"]
NO_SCALES = [
    {"value": "AA=="},
    {"value": "MDk="},
    {"scale": 3},
    {"scale": 3, "value": "#"},
    {"scale": None, "value": "AA=="},
]
NO_SCALES += [{"scale": scale, "value": "AQ=="} for scale in (2**31 - 1, 2**31 - 2, -(2**31))] + [
    {"scale": 2, "value": 1234}
]
NO_WKB = [{"wkb": "?"}, {"x": 1}]
NO_POINT = [{"lat": 1}, {"x": 1}]
NO_ANY = [10**38, {"a": [10**38, "x"]}, {"a": {"b": -(10**38)}}]


# Type, semantic name and parameters of a column's schema; a value; its text (bytes as base64); values that cannot be
# used.
Column = tuple[str, str | None, dict[str, Any] | None, Any, str | None, list[Any]]
COLUMNS: dict[str, Column] = {
    "small": ("int16", None, None, -32768, "-32768", [32768, 1.5, "x"]),
    "number": ("int32", None, None, 2147483647, "2147483647", [2147483648, True]),
    "big": ("int64", None, None, -9223372036854775808, "-9223372036854775808", [9223372036854775808]),
    "yes": ("boolean", None, None, True, "true", ["yes", 2]),
    "single": ("float", None, None, 1.5, "1.5", [1e39]),
    "single_not_a_number": ("float", None, None, "NaN", "NaN", []),
    "single_infinity": ("float", None, None, "-Infinity", "-Infinity", []),
    "ratio": ("double", None, None, 0.1, "0.1", []),
    "not_a_number": ("double", None, None, "NaN", "NaN", []),
    "words": ("string", None, None, 'a "quoted" ünïcode\n', 'a "quoted" ünïcode\n', []),
    # decimal.handling.mode
    "precise": ("bytes", CONNECT + "Decimal", decimal(8, 2), unscaled(-12345), "-123.45", [unscaled(10**8), "#", "Infinity"]),
    "precise_empty": ("bytes", CONNECT + "Decimal", decimal(8, 2), "", "0.00", []),
    "precise_38_empty": ("bytes", CONNECT + "Decimal", decimal(38, 2), "", "0.00", []),
    "precise_38": ("bytes", CONNECT + "Decimal", decimal(38, 10), unscaled(10**38 - 1), "9" * 28 + "." + "9" * 10, []),
    "precise_65": ("bytes", CONNECT + "Decimal", decimal(65, 1), unscaled(10**65 - 1), "9" * 64 + ".9", ["#"]),
    "precise_fraction": ("bytes", CONNECT + "Decimal", decimal(18, 18), unscaled(-123456789012345678), "-0.123456789012345678", []),
    "precise_hundreds": ("bytes", CONNECT + "Decimal", decimal(17, -2), unscaled(-123), "-12300", [unscaled(10**17)]),
    "precise_hundreds_38": ("bytes", CONNECT + "Decimal", decimal(36, -2), unscaled(10**36 - 1), "9" * 36 + "00", []),
    "no_hundreds": ("bytes", CONNECT + "Decimal", decimal(40, -2), unscaled(0), "0", []),
    "any_scale": ("struct", DEBEZIUM + "data.VariableScaleDecimal", None, {"scale": 3, "value": "MDk="}, "12.345", NO_SCALES),
    "no_scale": ("struct", DEBEZIUM + "data.VariableScaleDecimal", None, None, None, []),
    "scale_below": ("struct", DEBEZIUM + "data.VariableScaleDecimal", None, {"scale": -3, "value": "AA=="}, "0", []),
    "decimal_string": ("string", None, None, "-123.45", "-123.45", ["1234567.89", "0.123", "1e-3", "1e6", "NaN"]),
    "decimal_wide_string": ("string", None, None, "9" * 63 + ".99", "9" * 63 + ".99", ["many", "1e1000", ""]),
    "decimal_double": ("double", None, None, 123.45, "123.45", []),
    # bigint.unsigned.handling.mode
    "unsigned_precise": ("bytes", CONNECT + "Decimal", decimal(20, 0), unscaled(2**64 - 1), "18446744073709551615", []),
    "unsigned_long": ("int64", None, {"__debezium.source.column.type": "BIGINT UNSIGNED"}, -1, "18446744073709551615", []),
    # binary.handling.mode
    "binary_bytes": ("bytes", None, None, "AAEC/w==", "AAEC/w==", ["#", "deadbe", 12345678, True]),
    "binary_base64": ("string", None, None, "AAEC/w==", "AAEC/w==", ["AAEC_w==", "deadbe", 1234]),
    "binary_base64_url": ("string", None, None, "AAEC_w==", "AAEC/w==", ["#"]),
    "binary_hex": ("string", None, None, "000102ff", "AAEC/w==", ["000102f", "0g", 1234]),
    "three_bits": ("bytes", DEBEZIUM + "data.Bits", {"length": "3"}, "BQ==", "5", ["#", True, 10]),
    "no_bits_set": ("bytes", DEBEZIUM + "data.Bits", {"length": "8"}, "", "0", ["#"]),
    "many_bits": ("bytes", DEBEZIUM + "data.Bits", {"length": "72"}, "AQAAAAAAAACA", "gAAAAAAAAAAB", []),
    # time.precision.mode: adaptive, adaptive_time_microseconds, connect, isostring, microseconds, nanoseconds
    "day": ("int32", DEBEZIUM + "time.Date", None, DAY, "2017-09-15", [2932897, -719163]),
    "day_connect": ("int32", CONNECT + "Date", None, DAY, "2017-09-15", []),
    "day_iso": ("string", DEBEZIUM + "time.IsoDate", None, "2017-09-15Z", "2017-09-15", NO_DATES),
    "time_millis": ("int32", DEBEZIUM + "time.Time", None, TIME // 10**6, "12:34:56.789", []),
    "time_connect": ("int32", CONNECT + "Time", None, TIME // 10**6, "12:34:56.789", []),
    "time_micros": ("int64", DEBEZIUM + "time.MicroTime", None, -TIME // 10**3 - 1, "-12:34:56.789014", [839 * 3600 * 10**6 + 1]),
    "time_nanos": ("int64", DEBEZIUM + "time.NanoTime", None, TIME, "12:34:56.789012345", []),
    "time_iso": ("string", DEBEZIUM + "time.IsoTime", None, "12:34:56Z", "12:34:56", NO_TIMES),
    "time_zoned": ("string", DEBEZIUM + "time.ZonedTime", None, "12:34:56Z", "12:34:56Z", []),
    "at_millis": ("int64", DEBEZIUM + "time.Timestamp", None, SECOND * 10**3 + 7, "2017-09-15 12:34:56.007", [253402300800000]),
    "at_connect": ("int64", CONNECT + "Timestamp", None, SECOND * 10**3, "2017-09-15 12:34:56", []),
    "at_micros": ("int64", DEBEZIUM + "time.MicroTimestamp", None, -1, "1969-12-31 23:59:59.999999", [253402300800000000]),
    "at_nanos": ("int64", DEBEZIUM + "time.NanoTimestamp", None, SECOND * 10**9 + 1000, "2017-09-15 12:34:56.000001", [1]),
    "at_iso": ("string", DEBEZIUM + "time.IsoTimestamp", None, "2017-09-15T12:34:56Z", "2017-09-15 12:34:56", NO_TIMESTAMPS),
    "instant": (
        *("string", DEBEZIUM + "time.ZonedTimestamp", None, "2017-09-15T12:34:56.789012+02:00", "2017-09-15 10:34:56.789012"),
        [
            *("+10000-01-01T00:00:00Z", "2017-09-15T12:34:56.0000001Z", "infinity"),
            *("2017-09-15", "2017-09-15Z"),
            *("0000-12-31T23:59:59Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"),
        ],
    ),
    "year": ("int32", DEBEZIUM + "time.Year", None, 2017, "2017", []),
    # interval.handling.mode
    "interval_numeric": ("int64", DEBEZIUM + "time.MicroDuration", None, 37091106780000, "37091106780000", []),
    "interval_string": ("string", DEBEZIUM + "time.Interval", None, "P1Y2M3DT4H5M6.78S", "P1Y2M3DT4H5M6.78S", []),
    # hstore.handling.mode
    "hstore_json": ("string", DEBEZIUM + "data.Json", None, '{"a":"1","b":null}', '{"a":"1","b":null}', []),
    "hstore_map": ("map", None, None, {"a": "1", "b": None}, "{a -> 1, b -> null}", [["a"]]),
    # structures
    "names": ("string", DEBEZIUM + "data.EnumSet", {"allowed": "a,b"}, "a,b", "a,b", []),
    "numbers": ("array", None, None, [1, None, 3], "[1, null, 3]", [["x"]]),
    "decimals": ("array", CONNECT + "Decimal", decimal(8, 2), [unscaled(-225), None], "[-2.25, null]", [[unscaled(10**8)]]),
    "vector": ("array", DEBEZIUM + "data.FloatVector", None, [1.5, 2], "[1.5, 2.0]", []),
    "vector_of_doubles": ("array", DEBEZIUM + "data.DoubleVector", None, [0.1, 2], "[0.1, 2.0]", [["x"]]),
    "place": ("struct", DEBEZIUM + "data.geometry.Geography", None, {"wkb": "aGk=", "srid": 8307}, "{hi, 8307}", NO_WKB),
    "point": ("struct", DEBEZIUM + "data.geometry.Point", None, {"x": 1.5, "y": 2}, "{1.5, 2.0, null, null}", NO_POINT),
    "anything": ("struct", None, None, {"a": [1.5, 10**38 - 1, "9" * 40]}, f'{{"a":[1.5,{"9" * 38},"{"9" * 40}"]}}', NO_ANY),
    "nothing": ("string", None, None, None, None, []),
}  # fmt: skip
# What a schema block cannot tell, and is declared by hand.
DECLARED = {
    "decimal_string": "DecimalText(8,2)",
    "decimal_wide_string": "DecimalText(65,2)",
    "binary_base64": "bytes",
    "binary_base64_url": "bytes_url",
    "binary_hex": "bytes_hex",
}


def with_schema(record: dict[str, Any]) -> dict[str, Any]:
    fields: list[dict[str, Any]] = [{"type": "int32", "optional": False, "field": "id"}]
    for name, (kind, semantic, parameters, *_) in COLUMNS.items():
        field: dict[str, Any] = {
            "type": kind,
            "optional": True,
            "name": semantic,
            "parameters": parameters,
            "field": name,
        }
        if kind == "array":
            items = {None: "int32", CONNECT + "Decimal": "bytes", DEBEZIUM + "data.FloatVector": "float"}
            items[DEBEZIUM + "data.DoubleVector"] = "double"
            field["items"] = {"type": items[semantic], "optional": True}
            if items[semantic] == "bytes":
                field["items"] |= {"name": field.pop("name"), "parameters": field.pop("parameters")}
        fields.append({key: value for key, value in field.items() if value is not None})
    schema = {"type": "struct", "fields": [{"type": "struct", "fields": fields, "optional": True, "field": "after"}]}
    return {**record, "value": json.dumps({"schema": schema, "payload": json.loads(record["value"])})}


def declare(lakehouse: Lakehouse, system: str, kinds: dict[str, str]) -> None:
    """Give columns of `orders` other types than the scaffold found, as a user does."""
    model = lakehouse.project / "models" / "staging" / system / f"stg_{system}__orders.sql"
    text = model.read_text()
    for name, kind in kinds.items():
        text = re.sub(f"'{name}': '[^']+'", f"'{name}': '{kind}'", text)
    model.write_text(text)


def test_every_type_in_every_handling_mode_is_exact_or_rejected(lakehouse: Lakehouse) -> None:
    good = {"id": 0, **{name: value for name, (_, _, _, value, *_) in COLUMNS.items()}}
    bad = [(name, value) for name, column in COLUMNS.items() for value in column[5]]
    records = [event("c", 1, good)]
    records += [event("c", lsn, {**good, "id": lsn, name: value}) for lsn, (name, value) in enumerate(bad, 2)]
    lakehouse.land("types", [with_schema(record) for record in records])
    lakehouse.scaffold("types")
    declare(lakehouse, "types", DECLARED)
    lakehouse.run("types", [])

    columns = [
        f"base64(`{name}`) as `{name}`" if kind == "binary" else f"cast(`{name}` as string) as `{name}`"
        for name, kind in lakehouse.table("types.orders").dtypes
    ]
    (row,) = lakehouse.sql(f"select {', '.join(columns)} from types.orders where id = 0")
    assert dict(zip(good, row, strict=True)) == {"id": "0", **{name: column[4] for name, column in COLUMNS.items()}}

    reasons = {int(name.rsplit("/", 1)[1]): reason for name, reason in lakehouse.rejected("types")}
    kept = [f"{name}: {value!r}" for lsn, (name, value) in enumerate(bad, 2) if lsn not in reasons]
    assert kept == []
    for lsn, (name, _) in enumerate(bad, 2):
        assert reasons[lsn] in ("value_of_wrong_type", f"value_not_exact: {name}")


def test_numbers_of_any_length_are_exact(lakehouse: Lakehouse) -> None:
    chance = random.Random(20)
    numbers = [
        sign * (256**size // part + more)
        for size in range(33)
        for part in (1, 2)
        for more in (-1, 0, 1)
        for sign in (1, -1)
    ]
    numbers += [chance.randrange(-(10**digits), 10**digits) for digits in range(1, 600, 7)]
    numbers += [10**digits for digits in range(17, 130)]
    fields = [
        {"type": "int32", "field": "id"},
        {
            "type": "bytes",
            "optional": True,
            "name": CONNECT + "Decimal",
            "parameters": decimal(600, 0),
            "field": "whole",
        },
        {
            "type": "bytes",
            "optional": True,
            "name": CONNECT + "Decimal",
            "parameters": decimal(600, 40),
            "field": "parts",
        },
        {"type": "struct", "optional": True, "name": DEBEZIUM + "data.VariableScaleDecimal", "field": "any_scale"},
    ]
    schema = {"type": "struct", "fields": [{"type": "struct", "fields": fields, "optional": True, "field": "after"}]}
    records = []
    for at, number in enumerate(numbers):
        row = {
            "id": at,
            "whole": unscaled(number),
            "parts": unscaled(number),
            "any_scale": {"scale": 7, "value": unscaled(number)},
        }
        record = event("c", at + 1, row)
        records.append({**record, "value": json.dumps({"schema": schema, "payload": json.loads(record["value"])})})
    lakehouse.run("numbers", records)

    def shifted(number: int, scale: int) -> str:
        digits = str(abs(number)).rjust(scale + 1, "0")
        return f"{'-' if number < 0 else ''}{digits[:-scale]}.{digits[-scale:]}"

    wanted = [(at, str(n), shifted(n, 40), shifted(n, 7)) for at, n in enumerate(numbers)]
    found = lakehouse.sql("select id, whole, parts, any_scale from numbers.orders order by id")
    assert lakehouse.rejected("numbers") == []
    assert [pair for pair in zip(found, wanted, strict=True) if pair[0] != pair[1]] == []


def test_types_of_most_tables_are_compiled(lakehouse: Any) -> None:
    """A lambda anywhere among the expressions of a table's types has Spark copy each row (docs/decisions/0005)."""
    plain = [
        "int32",
        "uint64",
        "double",
        "float32",
        "Decimal(12,2)",
        "DecimalText(12,2)",
        "string",
        "bytes",
        "Date",
        "MicroTime",
    ]
    plain += ["Timestamp", "MicroTimestamp", "ZonedTimestamp", "Bits(5)", "any"]
    names = [f"c{at}" for at in range(len(plain))]
    lakehouse.land("compiled", [created(1, **dict.fromkeys(["id", *names]))])
    lakehouse.scaffold("compiled")
    declare(lakehouse, "compiled", dict(zip(names, plain, strict=True)))
    lakehouse.run("compiled", [])
    text = lakehouse.text("staging", "stg_compiled__orders")
    assert "->" not in text


# Columns of MySQL, two rows of values, and the types that they tell of.
