"""Every Debezium type in every handling mode of the connectors: the value itself, or the event is rejected.

Source: Debezium's documentation of PostgreSQL, MySQL and MariaDB, "Data type mappings", `time.precision.mode`, and the handling
modes `decimal`, `binary`, `bigint.unsigned`, `interval` and `hstore`.
"""

import base64
import json
import random
import re
from collections.abc import Callable
from datetime import date, datetime, timezone
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from conftest import Lakehouse
from event_factory import PLACEHOLDER, created, deleted, event, of_mysql, updated

from scripts.errors import LakehouseError

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
NO_SCALES = [{"value": "AA=="}, {"value": "MDk="}, {"scale": 3}, {"scale": 3, "value": "#"}, {"scale": None, "value": "AA=="}]
NO_SCALES += [{"scale": scale, "value": "AQ=="} for scale in (2**31 - 1, 2**31 - 2, -(2**31))] + [{"scale": 2, "value": 1234}]
NO_WKB = [{"wkb": "?"}, {"x": 1}]
NO_POINT = [{"lat": 1}, {"x": 1}]
NO_ANY = [10**38, {"a": [10**38, "x"]}, {"a": {"b": -(10**38)}}]


# Type, semantic name and parameters of a column's schema; a value; its text (bytes as base64); values that cannot be used.
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
        field: dict[str, Any] = {"type": kind, "optional": True, "name": semantic, "parameters": parameters, "field": name}
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
        for name, kind in lakehouse.spark.table("types.orders").dtypes
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
        sign * (256**size // part + more) for size in range(33) for part in (1, 2) for more in (-1, 0, 1) for sign in (1, -1)
    ]
    numbers += [chance.randrange(-(10**digits), 10**digits) for digits in range(1, 600, 7)]
    numbers += [10**digits for digits in range(17, 130)]
    fields = [
        {"type": "int32", "field": "id"},
        {"type": "bytes", "optional": True, "name": CONNECT + "Decimal", "parameters": decimal(600, 0), "field": "whole"},
        {"type": "bytes", "optional": True, "name": CONNECT + "Decimal", "parameters": decimal(600, 40), "field": "parts"},
        {"type": "struct", "optional": True, "name": DEBEZIUM + "data.VariableScaleDecimal", "field": "any_scale"},
    ]
    schema = {"type": "struct", "fields": [{"type": "struct", "fields": fields, "optional": True, "field": "after"}]}
    records = []
    for at, number in enumerate(numbers):
        row = {"id": at, "whole": unscaled(number), "parts": unscaled(number), "any_scale": {"scale": 7, "value": unscaled(number)}}
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


def test_numbers_that_json_has_where_a_text_was_declared_are_whole_or_rejected(lakehouse: Lakehouse) -> None:
    """To read a number with a fraction as a text, Spark prints it anew."""
    texts = ["n/a", "1.10", "[1.10]", '{"a": 1.10}', "2.0.1\nE", "7E", "12", "true"]
    exact = {
        "1.5": "1.5",
        '{"x":1.0,"w":"2.0E"}': '{"x":1.0,"w":"2.0E"}',
        "-5": "-5",
        "12345678901234567890123": "12345678901234567890123",
        "false": "false",
        "[1]": "[1]",
        '{"a": 1.5, "b": "\\u00e9"}': '{"a":1.5,"b":"é"}',
        '"1.10", "meta": {"version": 1.5}': "1.10",
    }
    changed = ["1.10", "-12345678901234567890.12", "1e3", "[1.10]", '{"a": 1.10}']
    # The digits that Spark prints may stand elsewhere in the event.
    changed += ['1.10, "b": 1.1', '0.1000000000000000055, "tax": "0.1"', "[1.10, 1.1]", '{"a": 1.10, "b": 1.1}']
    records = [created(at, id=at, version=text) for at, text in enumerate(texts, 1)]
    for at, token in enumerate([*exact, *changed], len(texts) + 1):
        record = created(at, id=at, version="<>")
        records.append({**record, "value": str(record["value"]).replace('"<>"', token)})
    lakehouse.land("reprinted", records[: len(texts)])
    lakehouse.scaffold("reprinted")
    lakehouse.run("reprinted", records[len(texts) :])
    assert [version for _, version in lakehouse.sql("select id, version from reprinted.orders order by id")] == [
        *texts,
        *exact.values(),
    ]
    first = len(texts) + len(exact) + 1
    assert [(int(event.rsplit("/", 1)[1]), reason) for event, reason in lakehouse.rejected("reprinted")] == [
        (at, "value_not_exact: version") for at in range(first, first + len(changed))
    ]


def test_numbers_that_json_has_where_other_texts_were_declared_are_exact_or_rejected(lakehouse: Lakehouse) -> None:
    """Also beside a schema block: what a column was declared as need not be what this block says."""
    kinds = {"price": "DecimalText(30,2)", "tags": "array<string>", "attributes": "map", "note": "string"}
    exact = [
        ("price", "1.5", "1.50"),
        ("price", "100.10", "100.10"),
        ("price", "0.1e1", "1.00"),
        ("price", "1234567890123.45", "1234567890123.45"),
        ("tags", '["1.10", 1.5, 3, null]', '["1.10","1.5","3",null]'),
        ("attributes", '{"a": "1.10", "b": 1.5}', '{"a":"1.10","b":"1.5"}'),
        ("attributes", '{"1.5l": "2.50", "2.0l": "3.75"}', '{"1.5l":"2.50","2.0l":"3.75"}'),
        ("tags", '["4ever", "2e"]', '["4ever","2e"]'),
        ("tags", '["1. item", "1e05ab32-0000"]', '["1. item","1e05ab32-0000"]'),
        ("tags", '["1.5 caf\\u00e9", "2.5"]', '["1.5 café","2.5"]'),
    ]
    changed = [
        ("price", "12345678901234567890.12"),
        ("price", "0.1000000000000000055"),
        ("tags", '["a", 1.10]'),
        ("attributes", '{"a": 1.10}'),
        ("note", "12345678901234567890.12"),
    ]
    at_first = created(1, id=1, price="1", tags=["a"], attributes={"a": "b"}, note="n")
    records = []
    for at, (name, token) in enumerate([case[:2] for case in exact] + changed, 2):
        record = created(at, id=at, **{name: "<>"})
        value = str(record["value"]).replace('"<>"', token)
        records += [{**record, "value": value if at % 2 else '{"schema":null,"payload":' + value + "}"}]
    lakehouse.land("retyped_texts", [at_first])
    lakehouse.scaffold("retyped_texts")
    declare(lakehouse, "retyped_texts", kinds)
    lakehouse.run("retyped_texts", records)
    columns = "cast(price as string), to_json(tags), to_json(attributes), note"
    found = lakehouse.sql(f"select id, {columns} from retyped_texts.orders where id > 1 order by id")
    assert [(at, *[value for value in values if value is not None]) for at, *values in found] == [
        (at, value) for at, (_, _, value) in enumerate(exact, 2)
    ]
    first = 2 + len(exact)
    assert sorted((int(event.rsplit("/", 1)[1]), reason) for event, reason in lakehouse.rejected("retyped_texts")) == [
        (at, f"value_not_exact: {name}") for at, (name, _) in enumerate(changed, first)
    ]


def test_types_of_most_tables_are_compiled(lakehouse: Lakehouse) -> None:
    """A lambda anywhere among the expressions of a table's types has Spark copy each row there (docs/decisions/0005)."""
    plain = ["int32", "uint64", "double", "float32", "Decimal(12,2)", "DecimalText(12,2)", "string", "bytes", "Date", "MicroTime"]
    plain += ["Timestamp", "MicroTimestamp", "ZonedTimestamp", "Bits(5)", "any"]
    names = [f"c{at}" for at in range(len(plain))]
    lakehouse.land("compiled", [created(1, **dict.fromkeys(["id", *names]))])
    lakehouse.scaffold("compiled")
    declare(lakehouse, "compiled", dict(zip(names, plain, strict=True)))
    lakehouse.run("compiled", [])
    text = lakehouse.sql("show create table staging.stg_compiled__orders")[0][0]
    assert text.count("->") == text.count("cut ->") + 1 > 1  # where the envelope is parsed; where names are checked


def shared_expressions(lakehouse: Lakehouse, relation: str) -> list[str]:
    """What Spark computes for each row, whatever conditions stand around it, as several expressions of a projection have it."""
    expressions = lakehouse.spark._jvm.org.apache.spark.sql.catalyst.expressions
    found = []
    plans = [lakehouse.spark.table(relation)._jdf.queryExecution().sparkPlan()]
    for plan in plans:
        plans += [plan.children().apply(at) for at in range(plan.children().size())]
        if plan.nodeName() == "Project":
            known = expressions.EquivalentExpressions(False)  # as spark.sql.subexpressionElimination.skipForShortcutExpr is
            for at in range(plan.projectList().size()):
                known.addExprTree(plan.projectList().apply(at), getattr(known, "addExprTree$default$2")())
            common = known.getCommonSubexpressions()
            found += [common.apply(at).sql() for at in range(common.size())]
    return found


def test_no_event_is_searched_for_what_few_of_its_values_ask(lakehouse: Lakehouse) -> None:
    """Texts had the search for half a character in common: it went through every event, and took more time than all else."""
    kinds = ["string", "string", "double", "double", "float32", "bytes", "any", "any", "Decimal(12,2)", "map", "array<string>"]
    names = [f"c{at}" for at in range(len(kinds))]
    lakehouse.land("searched", [created(1, **dict.fromkeys(["id", *names]))])
    lakehouse.scaffold("searched")
    declare(lakehouse, "searched", dict(zip(names, kinds, strict=True)))
    lakehouse.run("searched", [])
    shared = shared_expressions(lakehouse, "staging.stg_searched__orders")
    assert any("payload" in text for text in shared)
    assert not [text for text in shared if re.search(r"\bvalue\b", text) and "startswith(" not in text]


def test_decimals_in_scientific_notation_are_exact_or_rejected(lakehouse: Lakehouse) -> None:
    """Java prints a decimal so from six zeros behind its point on: with a scale of seven each zero."""
    exact = {"0E-8": "0.00000000", "-1E-8": "-0.00000001", "1.5E-7": "0.00000015", "1.5e+1": "15.00000000", "0.50": "0.50000000"}
    inexact = ["1.55E-8", "1E-9", "1E2", "E-8", "1E", "1E-8 "]
    numeric = {"0E-8": "0.00000000", "0e0": "0.00000000", "0.00000015": "0.00000015"}
    none = ["1E-8", "0E-400", "1E-400"]
    kinds = {"small": "DecimalText(10,8)", "wide": "DecimalText(45,8)", "number": "Decimal(10,8)"}

    def row(at: int, text: str, number: str = "0") -> dict[str, Any]:
        record = created(at, id=at, small=text, wide=text, number="<>", name="0e91b7f4-6e-4821-1e-300")
        return {**record, "value": str(record["value"]).replace('"<>"', number)}

    cases = [(text, "0") for text in [*exact, *inexact]] + [("0", number) for number in [*numeric, *none]]
    lakehouse.land("scientific", [row(at, *case) for at, case in enumerate(cases)])
    lakehouse.scaffold("scientific")
    declare(lakehouse, "scientific", kinds)
    lakehouse.run("scientific", [])

    def plain(value: str) -> str:
        return format(Decimal(value), "f")

    columns = "cast(small as string), wide, cast(number as string)"
    found = lakehouse.sql(f"select id, {columns} from scientific.orders order by id")
    wanted = [*exact.values(), *["0.00000000"] * len(numeric)]
    assert [plain(small) for _, small, _, _ in found] == wanted
    assert [wide for _, _, wide, _ in found[: len(exact)]] == [plain(text) for text in exact]
    assert [plain(number) for _, _, _, number in found[len(exact) :]] == list(numeric.values())
    rejected = {int(event.rsplit("/", 1)[1]) for event, _ in lakehouse.rejected("scientific")}
    assert rejected == {at for at, (text, number) in enumerate(cases) if text in inexact or number in none}


def test_placeholders_in_columns_of_any_type_keep_what_was_there(lakehouse: Lakehouse) -> None:
    """Without a schema block arrays and maps are often declared so: where one was empty, or is an object."""
    letters = list(PLACEHOLDER.encode())
    uuid, decimals = "b68a35a7-17ad-35b3-af2a-ae46edb4545a", [unscaled(n) for n in letters]
    forms: list[Any] = [PLACEHOLDER, [PLACEHOLDER], {PLACEHOLDER: PLACEHOLDER}, letters, [uuid], decimals]
    forms.append([unscaled(int.from_bytes(PLACEHOLDER.encode(), "big"))])
    names = [f"c{at}" for at in range(len(forms))]
    lakehouse.land("unavailable", [created(10, id=1, **dict.fromkeys(names, ["a", {"b": 1}])), created(11, id=2, c0=letters[1:])])
    lakehouse.scaffold("unavailable")
    declare(lakehouse, "unavailable", dict.fromkeys(names, "any"))
    lakehouse.run("unavailable", [updated(20, id=1, **dict(zip(names, forms, strict=True)))])
    first, second = lakehouse.rows("unavailable.orders", "id")
    assert first == {"id": 1, **dict.fromkeys(names, '["a",{"b":1}]')}
    assert second["c0"] == json.dumps(letters[1:], separators=(",", ":"))


def test_placeholders_in_every_form_keep_what_was_there(lakehouse: Lakehouse) -> None:
    """As Debezium's PostgreSQL connector writes them: a HSTORE in JSON, arrays of numbers as the bytes of the text."""
    letters = list(PLACEHOLDER.encode())
    decimals = {"type": "bytes", "optional": True, "name": CONNECT + "Decimal", "parameters": decimal(8, 2)}
    numbers = {"type": "double", "optional": True}
    fields: list[dict[str, Any]] = [{"type": "int32", "optional": False, "field": "id"}]
    fields.append({"type": "string", "name": DEBEZIUM + "data.Json", "optional": True, "field": "pairs"})
    fields += [
        {"type": "array", "items": items, "optional": True, "field": name}
        for name, items in (("ratios", numbers), ("sums", decimals))
    ]
    schema = {"type": "struct", "fields": [{"type": "struct", "fields": fields, "optional": True, "field": "after"}]}
    rows = [
        {"id": 1, "pairs": '{"a":"1"}', "ratios": [0.5, None], "sums": [unscaled(150)]},
        {
            "id": 1,
            "pairs": json.dumps({PLACEHOLDER: PLACEHOLDER}, separators=(",", ":")),
            "ratios": letters,
            "sums": [unscaled(n) for n in letters],
        },
        {"id": 2, "pairs": "{}", "ratios": letters[1:], "sums": [unscaled(n) for n in letters[1:]]},
    ]
    records = [event("c" if at != 1 else "u", at + 1, row) for at, row in enumerate(rows)]
    values = [json.dumps({"schema": schema, "payload": json.loads(record["value"])}) for record in records]
    lakehouse.run("placeholders", [{**record, "value": value} for record, value in zip(records, values, strict=True)])
    first, second = lakehouse.rows("placeholders.orders", "id")
    assert (first["pairs"], first["ratios"], first["sums"]) == ('{"a":"1"}', [0.5, None], [Decimal("1.50")])
    assert (second["ratios"], second["sums"]) == ([float(n) for n in letters[1:]], [Decimal(n) / 100 for n in letters[1:]])


def test_a_null_among_structures_is_null(lakehouse: Lakehouse) -> None:
    """And a map whose keys are no texts is what it is in JSON."""
    items = {"type": "struct", "fields": [{"type": "int32", "field": "a"}], "optional": True}
    fields: list[dict[str, Any]] = [{"type": "int32", "optional": False, "field": "id"}]
    fields += [{"type": "array", "items": items, "optional": True, "field": "parts"}]
    fields += [{"type": "map", "keys": {"type": "int32"}, "values": {"type": "string"}, "optional": True, "field": "pairs"}]
    schema = {"type": "struct", "fields": [{"type": "struct", "fields": fields, "optional": True, "field": "after"}]}
    record = created(1, id=1, parts=[{"a": 1}, None, "null"], pairs=[[1, "a"]])
    lakehouse.run("structures", [{**record, "value": json.dumps({"schema": schema, "payload": json.loads(record["value"])})}])
    assert lakehouse.sql("select parts, pairs from structures.orders") == [(['{"a":1}', None, "null"], '[[1,"a"]]')]


def test_a_key_column_may_be_named_as_the_wrapper_of_a_key(lakehouse: Lakehouse) -> None:
    schema = {"type": "struct", "fields": [{"type": "int32", "field": "payload"}]}
    records = [created(1, payload=5, note="a", id=0), created(2, payload=6, note="b", id=0)]
    records.append({**deleted(3, payload=5), "value": str(deleted(3, id=0)["value"])})
    keys = [5, 6, 5]
    for record, key in zip(records, keys, strict=True):
        record["key"] = json.dumps({"schema": schema, "payload": {"payload": key}})
    lakehouse.run("wrapper", records)
    assert lakehouse.sql("select payload, note from wrapper.orders") == [(6, "b")]


Ddl = dict[str, tuple[str, int | None, int | None]]  # column → type, length, scale
AT, EXACTLY = ("DATETIME", None, None), ("DATETIME", 6, None)
BLOB, BINARY = ("BLOB", None, None), ("BINARY", 4, None)
# Columns of MySQL, two rows of values, and the types that they tell of.
MODES: dict[str, tuple[Ddl, list[list[Any]], list[str]]] = {
    "usual": (
        {"day": ("DATE", None, None), "at": AT, "exactly": EXACTLY, "time": ("TIME", 3, None)},
        [[DAY, SECOND * 1000, SECOND * 10**6 + 7, TIME // 10**6 * 1000], [DAY, 0, -1, 1000]],
        ["Date", "Timestamp", "MicroTimestamp", "MicroTime"],
    ),
    "connect": (
        {"at": AT, "exactly": EXACTLY, "until": EXACTLY, "time": ("TIME", 6, None)},
        [[SECOND * 1000, SECOND * 1000 + 7, 253402300799000, 1000], [None, 0, 253402300799000, None]],
        ["Timestamp", "Timestamp", "Timestamp", "Time"],
    ),
    "a column of the first days": (
        {"first": EXACTLY, "exactly": EXACTLY},
        [[1000, SECOND * 1000], [86400000, None]],
        ["Timestamp", "Timestamp"],
    ),
    "microseconds": (
        {"at": AT, "exactly": EXACTLY, "time": ("TIME", None, None)},
        [[SECOND * 10**6, SECOND * 10**6 + 1, 45296 * 10**6], [None, None, None]],
        ["MicroTimestamp", "MicroTimestamp", "MicroTime"],
    ),
    "nanoseconds": (
        {"at": AT, "exactly": EXACTLY, "time": ("TIME", None, None)},
        [[SECOND * 10**9, SECOND * 10**9 + 1000, 45296 * 10**9], [None, None, None]],
        ["NanoTimestamp", "NanoTimestamp", "NanoTime"],
    ),
    "isostring": (
        {"day": ("DATE", None, None), "exactly": EXACTLY, "time": ("TIME", 3, None)},
        [["2017-09-15Z", "2017-09-15T12:34:56Z", None], ["2017-09-16Z", None, None]],
        ["IsoDate", "IsoTimestamp", "IsoTime"],
    ),
    "bytes": (
        {"hash": ("BINARY", 3, None), "blob": BLOB, "none": BLOB},
        [["abcd", "3q2+7w==", None], ["0000", "", None]],
        ["bytes", "bytes", "bytes"],
    ),
    "url": ({"blob": BLOB}, [["3q2-7w=="], ["aaaa"]], ["bytes_url"]),
    "hex": ({"hash": BINARY, "blob": BLOB}, [["deadbeef", "00"], ["0badcafe", None]], ["bytes_hex"] * 2),
    "hex_of_four_bytes": ({"hash": BINARY}, [["deadbeef"], ["0badcafe"]], ["bytes_hex"]),
    "string": (
        {"price": ("DECIMAL", 8, 2), "amount": ("DECIMAL", 8, 0), "huge": ("BIGINT UNSIGNED", None, None)},
        [["123.45", "1234", unscaled(2**64 - 1)], [None, "12345678", None]],
        ["DecimalText(8,2)", "DecimalText(8,0)", "Decimal(20,0)"],
    ),
    "digits": ({"price": ("DECIMAL", 8, 2)}, [["1234"], ["5678"]], ["Decimal(8,2)"]),
    "precise": (
        {"price": ("DECIMAL", 8, 2), "amount": ("DECIMAL", 8, 0), "huge": ("BIGINT UNSIGNED", None, None)},
        [["J3Q=", "1234", -1], ["Jqw=", None, 2**63 - 1]],
        ["Decimal(8,2)", "Decimal(8,0)", "uint64"],
    ),
    "double": ({"price": ("DECIMAL", 20, 2), "rate": ("DECIMAL", 9, 4)}, [[1.5, 2.25], [1e17, 3.0]], ["double", "double"]),
    "numeric": ({"price": ("DECIMAL", 30, 2)}, [["<1.50>"], ["<12345678901234567890.25>"]], ["Decimal(30,2)"]),
    "synonyms": (
        {"a": ("INT8 UNSIGNED", None, None), "b": ("MIDDLEINT", None, None), "c": ("FLOAT", 30, None), "d": ("FLOAT", 7, 3)},
        [[-1, 2, 0.1234567890123, 1.5]],
        ["uint64", "int32", "double", "float"],
    ),
    "long": ({"a": ("LONG VARBINARY", None, None), "b": ("LONG", None, None)}, [["3q2+7w==", "a"]], ["bytes", "string"]),
    "zeros": ({"a": ("DECIMAL", 10, 8)}, [["0E-8"], ["0.50000000"]], ["DecimalText(10,8)"]),
    # Nothing tells: as in the default, and told.
    "binary.handling.mode": ({"hash": BINARY, "none": BLOB}, [["deadbeef", None]] * 2, ["bytes"] * 2),
    "time.precision.mode": ({"at": EXACTLY, "time": ("TIME", 3, None)}, [[None, 60000]] * 2, ["MicroTimestamp", "MicroTime"]),
    "decimal.handling.mode": ({"amount": ("DECIMAL", 8, 0)}, [[None], [None]], ["Decimal(8,0)"]),
}  # fmt: skip


def test_handling_modes_are_told_by_values_where_only_ddl_records_tell_the_types(project: Path) -> None:
    from scripts.scaffold import _tables

    members = ("typeName", "length", "scale")
    for name, (columns, rows, types) in MODES.items():
        told = [{"name": column, **dict(zip(members, kind, strict=True))} for column, kind in columns.items()]
        change = {"type": "CREATE", "id": '"d"."t"', "table": {"primaryKeyColumnNames": [], "columns": told}}
        source = {"connector": "mysql", "name": name, "db": "d", "table": "t"}
        values = [{"source": source, "databaseName": "d", "ddl": "CREATE TABLE t", "tableChanges": [change]}]
        values += [{"op": "c", "source": source, "after": dict(zip(columns, row, strict=True))} for row in rows]
        texts = [json.dumps(value).replace('"<', "").replace('>"', "") for value in values]
        events: list[tuple[str | None, str, str | None]] = [("t", text, None) for text in texts]
        (table,) = _tables(events, None, name, set())
        assert list(table.columns.values()) == types, name
        assert list(table.doubts) == ([name] if "." in name else []), name


def test_what_a_schema_block_does_not_tell_is_told_by_ddl_records(project: Path) -> None:
    """Unsigned numbers, and what is sent as text; a column that the DDL has otherwise stays what the schema block says."""
    from scripts.scaffold import _tables

    told = {"huge": "BIGINT UNSIGNED", "big": "BIGINT", "price": "DECIMAL", "hash": "BLOB", "words": "VARCHAR", "at": "DATETIME"}
    described = {"huge": "int64", "big": "int64", "price": "string", "hash": "string", "words": "string", "at": "string"}
    row = {"huge": -1, "big": -1, "price": "1.50", "hash": "deadbeef00112233", "words": "deadbeef", "at": "x"}
    columns = [{"name": name, "typeName": kind, "length": 8, "scale": 2} for name, kind in told.items()]
    change = {"type": "CREATE", "id": '"d"."t"', "table": {"primaryKeyColumnNames": [], "columns": columns}}
    source = {"connector": "mysql", "name": "s", "db": "d", "table": "t"}
    fields = [{"type": kind, "optional": True, "field": name} for name, kind in described.items()]
    schema = {"type": "struct", "fields": [{"type": "struct", "fields": fields, "optional": True, "field": "after"}]}
    ddl = {"source": source, "databaseName": "d", "ddl": "CREATE TABLE t", "tableChanges": [change]}
    values = [ddl, {"schema": schema, "payload": {"op": "c", "source": source, "after": row}}]
    (table,) = _tables([("t", json.dumps(value), None) for value in values], None, "s", set())
    assert table.columns == {
        **{"huge": "uint64", "big": "int64", "price": "DecimalText(8,2)"},
        **{"hash": "bytes_hex", "words": "string", "at": "string"},
    }
    assert not table.doubts and table.types_from == "schema block"


def test_a_column_of_another_type_in_the_schema_block_is_told(lakehouse: Lakehouse) -> None:
    """But not one whose declaration says more than a schema block can."""

    def described(lsn: int, **kinds: str) -> dict[str, Any]:
        fields = [{"type": kind, "optional": True, "field": name} for name, kind in {"id": "int32", **kinds}.items()]
        schema = {"type": "struct", "fields": [{"type": "struct", "fields": fields, "optional": True, "field": "after"}]}
        record = of_mysql(event("c", lsn, {"id": lsn, **dict.fromkeys(kinds)}))
        return {**record, "value": json.dumps({"schema": schema, "payload": json.loads(record["value"])})}

    column = {"name": "huge", "typeName": "BIGINT UNSIGNED"}
    change = {"type": "CREATE", "id": '"public"."orders"', "table": {"primaryKeyColumnNames": ["id"], "columns": [column]}}
    ddl = {"source": {"connector": "mysql", "db": "public"}, "databaseName": "public", "ddl": "CREATE", "tableChanges": [change]}
    schema = {
        "type": "struct",
        "fields": [{"type": "array", "optional": False, "field": "tableChanges"}],
    }  # the same of all of them
    other = {**ddl, "tableChanges": [{**change, "id": '"public"."others"'}]}
    told = [
        {"topic": "shop", "offset": at, "value": json.dumps({"schema": schema, "payload": one})}
        for at, one in enumerate([other, ddl])
    ]
    lakehouse.run("retyped", [*told, described(1, price="int32", huge="int64")])
    model = lakehouse.project / "models" / "staging" / "retyped" / "stg_retyped__orders.sql"
    assert "'huge': 'uint64'" in model.read_text()
    lakehouse.land("retyped", [described(2, price="string", huge="int64")])
    (told,) = [note for note in lakehouse.scaffold("retyped").notes if "is declared" in note]
    assert (
        "public.orders: column price is declared int32, new events have string; events that do not fit are rejected, others" in told
    )


def priced(lsn: int, scale: int, price: int, snapshot: str = "false", **others: str) -> dict[str, Any]:
    """An event with a schema block that says how many digits of `price` stand behind the point."""
    fields: list[dict[str, Any]] = [{"type": "int32", "field": "id"}]
    fields.append({"type": "bytes", "name": CONNECT + "Decimal", "parameters": decimal(10, scale), "field": "price"})
    fields += [{"type": "int64", "name": DEBEZIUM + f"time.{kind}", "field": name} for name, kind in others.items()]
    schema = {"type": "struct", "fields": [{"type": "struct", "fields": fields, "optional": True, "field": "after"}]}
    row = {"id": lsn % 10, "price": unscaled(price), **dict.fromkeys(others, SECOND * 1000)}
    record = event("r" if snapshot == "true" else "c", lsn, row, snapshot=snapshot)
    return {**record, "value": json.dumps({"schema": schema, "payload": json.loads(record["value"])})}


def test_a_column_that_is_written_in_another_way_is_refused_until_it_is_declared(lakehouse: Lakehouse) -> None:
    """Another scale, another unit: every value would fit the declared type, and be another one."""
    lakehouse.run("rescaled", [priced(11, 2, 1234), priced(12, 2, 500)])
    # A batch may have events of both kinds, in any order of its partitions.
    lakehouse.land("rescaled", [priced(22, 3, 1234), priced(23, 2, 700)])
    for _ in range(2):
        with pytest.raises(LakehouseError, match=r"column price is declared Decimal\(10,2\), and new events have Decimal\(10,3\)"):
            lakehouse.scaffold("rescaled")
    assert lakehouse.sql("select id, cast(price as string) from rescaled.orders order by id") == [(1, "12.34"), (2, "5.00")]

    lakehouse.land("rescaled", [priced(30 + id, 3, 1234 * id, "true") for id in (1, 2, 3)])
    declare(lakehouse, "rescaled", {"price": "Decimal(10,3)"})
    with pytest.raises(LakehouseError, match=r"is declared Decimal\(10,3\), and new events have Decimal\(10,2\)"):
        lakehouse.scaffold("rescaled")
    properties = lakehouse.project / "models" / "silver" / "rescaled" / "rescaled__orders.yml"
    text = properties.read_text().replace("        keys:\n", "        misread: {'price': ['Decimal(10,2)']}\n        keys:\n", 1)
    properties.write_text(text)
    for late in ([], [priced(14, 2, 1)]):
        lakehouse.run("rescaled", late)
        found = lakehouse.sql("select id, cast(price as string) from rescaled.orders where id < 4 order by id")
        assert found == [(1, "1.234"), (2, "2.468"), (3, "3.702")]
    assert lakehouse.rejected("rescaled") == []

    for system, records in {
        "rescaled_at_once": [priced(11, 2, 1234), priced(12, 3, 500)],
        "reunited_at_once": [priced(11, 2, 1234, at="Timestamp"), priced(12, 2, 500, at="MicroTimestamp")],
    }.items():
        lakehouse.land(system, records)
        (note,) = [note for note in lakehouse.scaffold(system).notes if "no model was written" in note]
        assert "in some events" in note and "would be read as other values" in note

    def altered(at: int, length: int, scale: int | None = None) -> list[dict[str, Any]]:
        """A DDL record that gives two columns so many digits behind the second and the point, and a row."""
        scale = length if scale is None else scale
        columns = [{"name": "id", "typeName": "INT"}, {"name": "at", "typeName": "DATETIME", "length": length}]
        columns.append({"name": "price", "typeName": "DECIMAL", "length": 10, "scale": scale})
        change = {"type": "CREATE", "id": '"public"."orders"', "table": {"primaryKeyColumnNames": ["id"], "columns": columns}}
        ddl = {"source": {"connector": "mysql", "db": "public"}, "ddl": "ALTER", "tableChanges": [change]}
        row = of_mysql(event("c", 10 + at, {"id": at, "at": SECOND * (1000 if length <= 3 else 10**6), "price": unscaled(1234)}))
        return [{"topic": "shop", "offset": at, "value": json.dumps(ddl)}, row]

    lakehouse.land("widened_at_once", [priced(11, 2, 1234, at="Timestamp"), priced(12, 2, 10**8)])
    assert not [note for note in lakehouse.scaffold("widened_at_once").notes if "no model was written" in note]

    for system, lengths in {"altered_at_once": (3, 6), "altered_later": (3,), "altered_not_at_all": (3, 3)}.items():
        lakehouse.land(system, [record for at, length in enumerate(lengths) for record in altered(at, length)])
        told = [note for note in lakehouse.scaffold(system).notes if "by an older DDL record" in note]
        assert len(told) == 2 * (system == "altered_at_once"), system
    lakehouse.build_landed("altered_later")
    lakehouse.run("altered_later", altered(5, 3))  # as a connector that starts anew sends it again
    lakehouse.run("altered_price", altered(0, 3))
    lakehouse.run("altered_amid", altered(0, 6))
    changes = [json.loads(altered(at, digits)[0]["value"]) for at, digits in ((7, 6), (7, 3))]
    del changes[0]["tableChanges"][0]["table"]["columns"][1:]  # dropped, and added as another one
    dropped = [{"topic": "shop", "offset": 70 + at, "value": json.dumps(change)} for at, change in enumerate(changes)]
    lakehouse.run("altered_anew", altered(0, 6))
    lakehouse.land("altered_anew", dropped)
    with pytest.raises(LakehouseError, match="at is declared MicroTimestamp, and new events have Timestamp"):
        lakehouse.scaffold("altered_anew")
    ddl, _ = altered(9, 3, scale=6)  # a row from before it comes with it, and is no word on what follows
    lakehouse.land("altered_amid", [altered(8, 6)[1], ddl])
    with pytest.raises(LakehouseError, match="at is declared MicroTimestamp, and new events have Timestamp"):
        lakehouse.scaffold("altered_amid")
    for system, (ddl, row), reason in (
        ("altered_later", altered(9, 6), "at is declared Timestamp, and new events have MicroTimestamp"),
        ("altered_price", altered(9, 3, scale=6), r"price is declared Decimal\(10,3\), and new events have Decimal\(10,6\)"),
    ):
        for landing in (ddl, row):  # whose rows come with a later run
            lakehouse.land(system, [landing])
            with pytest.raises(LakehouseError, match=reason):
                lakehouse.scaffold(system)


def test_a_new_column_of_two_types_is_refused_until_one_is_declared(lakehouse: Lakehouse) -> None:
    """It came with one scale and had another one before the next run: nothing that is declared tells them apart."""
    lakehouse.run("new_rescaled", [event("c", 11, {"id": 1})])
    landed = [priced(22, 2, 1234), priced(23, 4, 12345)]
    lakehouse.land("new_rescaled", landed)
    with pytest.raises(LakehouseError, match=r"price is new and would be Decimal\(10,2\), and new events have Decimal\(10,4\)"):
        lakehouse.scaffold("new_rescaled")

    name = "new_rescaled__orders"
    for file, old, new in (  # as the error says
        (f"staging/new_rescaled/stg_{name}.sql", "        'id': 'int64',\n", "        'price': 'Decimal(10,4)',\n"),
        (f"silver/new_rescaled/{name}.sql", "        'id',\n", "        'price',\n"),
        (f"silver/new_rescaled/{name}.yml", "          id: int64\n", "          price: Decimal(10,4)\n"),
        (f"silver/new_rescaled/{name}.yml", "        keys:\n", "        misread: {'price': ['Decimal(10,2)']}\n"),
    ):
        path = lakehouse.project / "models" / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new + old if old.strip() == "keys:" else old + new, 1))
    lakehouse.run("new_rescaled", [priced(30 + id, 4, 12345 * id, "true") for id in (1, 2, 3)])
    found = lakehouse.sql("select id, cast(price as string) from new_rescaled.orders order by id")
    assert found == [(1, "1.2345"), (2, "2.4690"), (3, "3.7035")]


def test_values_that_would_be_read_as_others_are_rejected(lakehouse: Lakehouse) -> None:
    """No schema block says that a number is a double: it may be a decimal of more digits. Of two members of a name none counts."""
    first = {"id": 0, "ratio": 19.99, "note": "a", "rest": {"a": [1]}}
    good: list[tuple[str, Any]] = [
        ('"ratio": %s', "0.30000000000000004"),
        ('"ratio": %s', "19.990000000000000000000000"),
        ('"ratio": %s', "123456789012345680000"),
        ('"ratio": %s', "-9007199254740994"),
        ('"ratio": %s', "1.7976931348623157E308"),
        ('"ratio": %s', "1152921504606847000"),
        ('"ratio": %s', "36028797018963968"),
        ('"ratio": %s', "1152921504606846976"),
        ('"ratio": %s', '"-Infinity"'),
        ('"ratio": %s', "null"),
        ('"note": %s', r'"a? \\\\ud800 \ud83d\ude00"'),
        ('"rest": %s', r'{"b":"?","c":"\ud83d\ude00"}'),
    ]
    bad: list[tuple[str, str, str]] = [
        ('"ratio": %s', "12345678901234567.89", "value_not_exact: ratio"),
        ('"ratio": %s', "0.1000000000000000055", "value_not_exact: ratio"),
        ('"ratio": %s', "9007199254740993", "value_not_exact: ratio"),
        ('"after": %s', '{"id": 999, "ratio": 1e309, "note": "Infinity"}', "value_not_exact: ratio"),
        ('"note": %s', r'"\ud800"', "value_not_exact: note"),
        ('"note": %s', r'"\\\\\\\udc00"', "value_not_exact: note"),
        ('"rest": %s', r'{"\ud83d\ud83d\ude00":1}', "value_not_exact: rest"),
        ('"ratio": %s', '1, "ratio": 2', "duplicate_column"),
        ('"rest": %s', '1, "payload": "{}", "rest": 2', "duplicate_column"),
        ('"id": %s', '7, "id": 8', "duplicate_column"),
        (
            '"before": {"ratio": 12345678901234567.89}, "after": %s',
            '{"id": 999, "ratio": 9007199254740993}',
            "value_not_exact: ratio",
        ),
    ]
    old = '"before": {"ratio": 12345678901234567.89, "id": 1, "id": 1}, "after": %s'
    good.append((old, '{"id": 999, "ratio": 0.5, "note": "an old value says nothing"}'))
    good.append(
        ('"before": {"ratio": 0.5, "id": 1}, "after": %s', '{"id": 999, "ratio": "Infinity", "note": "nor does an old number"}')
    )

    def made(at: int, member: str, text: str) -> dict[str, Any]:
        record = event("c", 100 + at, {**first, "id": at})
        value = json.dumps({"op": "c", "after": {**first, "id": at}, "source": json.loads(record["value"])["source"]})
        name = member.split(": ")[0]
        whole = {"after": json.dumps({**first, "id": at})} | {key: json.dumps(part) for key, part in {**first, "id": at}.items()}
        shown = "after" if name == '"before"' else name.strip('"')
        written = member.replace("%s", text.replace("999", str(at)))
        return {**record, "value": value.replace(f'"{shown}": {whole[shown]}', written, 1)}

    cases = [*good, *((member, text) for member, text, _ in bad)]
    lakehouse.run("exactly", [event("c", 99, first)])
    lakehouse.run("exactly", [made(at, *case) for at, case in enumerate(cases, 1)])
    wanted = {at: reason for at, (_, _, reason) in enumerate(bad, 1 + len(good))}
    found = {int(name.rsplit("/", 1)[1]) - 100: reason for name, reason in lakehouse.rejected("exactly")}
    assert found == wanted
    rows = {row["id"]: row for row in lakehouse.rows("exactly.orders", "id")}
    assert rows.keys() == set(range(1 + len(good)))
    ratios = [19.99, 0.30000000000000004, 19.99, 123456789012345680000.0, -9007199254740994.0, 1.7976931348623157e308]
    assert [rows[at]["ratio"] for at in range(11)] == [*ratios, 2.0**60, 2.0**55, 2.0**60, float("-inf"), None]
    assert (rows[11]["note"], rows[12]["rest"]) == ("a? \\\\ud800 \U0001f600", '{"b":"?","c":"\U0001f600"}')
    assert rows[14]["ratio"] == float("inf")


def test_half_a_character_in_a_kafka_key_deletes_no_question_mark(lakehouse: Lakehouse) -> None:
    """The key is found where the value of the delete has none; what Spark makes of `\\ud800` there is another row's key."""
    row = {"code": "?", "note": "a"}
    halves = [event("d", 2, key={"code": "\ud800"}), event("d", 3, key={"code": "?"})]
    halves = [{**record, "value": json.dumps(json.loads(record["value"]) | {"before": None})} for record in halves]
    lakehouse.run("halved", [event("c", 1, row, {"code": "?"}), halves[0]])
    assert lakehouse.rejected("halved") == [("shop.public.orders/0/2", "value_not_exact: code")]
    assert lakehouse.rows("halved.orders") == [row]
    lakehouse.run("halved", halves[1:])
    assert lakehouse.rows("halved.orders") == []


@pytest.mark.parametrize("comma, colon", [(",", ":"), (", ", ": ")], ids=["as_connect_writes_it", "with_spaces"])
def test_a_column_that_stands_twice_is_found_wherever_the_row_stands(lakehouse: Lakehouse, comma: str, colon: str) -> None:
    """In each form of Connect's wrapper, behind an empty `before` or a row's. In the `before` of an update it does not count."""
    system = f"twice_{len(comma)}"
    schema = {"type": "struct", "fields": [], "optional": False, "name": "shop.public.orders.Envelope"}
    note = '{"before":null,"after":{"id":0,"note":"x","note":"y"}}'
    wrappers: list[Callable[[dict[str, Any]], dict[str, Any]]] = [
        lambda value: value,
        lambda value: {"payload": value},
        lambda value: {"schema": schema, "payload": value},
        lambda value: {"schema": schema, "payload": value | {"transaction": {"payload": 1}}},  # the last one is not the wrapper's
    ]
    cases: list[tuple[str, bool, str, str]] = [
        ("u", has_before, *twice) for has_before in (False, True) for twice in (("", ""), ("after", "id"))
    ]
    cases += [("u", False, "after", "note"), ("u", True, "after", "note"), ("u", True, "before", "note")]
    cases += [("d", True, "", ""), ("d", True, "before", "id"), ("d", True, "before", "note")]
    records, rejected, shown = [created(1, id=0, note="a")], {}, {0: "a"}
    for at, (wrapped, (op, has_before, image, name)) in enumerate(product(wrappers, cases), 2):
        row = {"id": at, "note": note}
        value = json.loads(event(op, at, row)["value"]) | {"before": row if has_before else None}
        text = json.dumps(wrapped(value), separators=(comma, colon))
        begins = f'"{image}"{colon}{{'
        assert text.count(begins) == bool(image)
        text = text.replace(begins, f"{begins}{json.dumps(name)}{colon}{json.dumps(row.get(name))}{comma}")
        records.append({**event(op, at, row), "value": text})
        if image == "after" or (image and op == "d"):
            rejected[at] = "duplicate_column"
        elif op == "u":
            shown[at] = note
    lakehouse.run(system, records)
    assert {int(event_id.rsplit("/", 1)[1]): reason for event_id, reason in lakehouse.rejected(system)} == rejected
    assert {row["id"]: row["note"] for row in lakehouse.rows(f"{system}.orders", "id")} == shown


def test_ddl_records_that_landed_before_a_row_give_its_types(lakehouse: Lakehouse) -> None:
    """As they do where a run lands what there is every minute."""
    from scripts.observe import Bronze
    from scripts.scaffold import scaffold

    def ddl(at: int, *columns: dict[str, Any]) -> dict[str, Any]:
        change = {"type": "ALTER", "id": '"public"."orders"', "table": {"primaryKeyColumnNames": ["id"], "columns": columns}}
        value = {"source": {"connector": "mysql", "db": "public"}, "ddl": "ALTER", "tableChanges": [change]}
        return {"topic": "shop", "offset": at, "value": json.dumps(value)}

    def scaffolded(batch: int, record: dict[str, Any]) -> list[str]:
        """What is told of a batch that alone is new."""
        lakehouse.land("told_before", [record])
        models = lakehouse.project / "models"
        return scaffold(Bronze(lakehouse.spark, "told_before"), None, {}, batch - 1, models).notes

    id, n = {"name": "id", "typeName": "INT"}, {"name": "n", "typeName": "BIGINT UNSIGNED"}
    price = {"name": "price", "typeName": "DECIMAL", "length": 10, "scale": 2}
    when = {"name": "at", "typeName": "DATETIME", "length": 3}
    row = {"id": 1, "n": -1, "price": unscaled(222)}
    staging = lakehouse.project / "models" / "staging" / "told_before" / "stg_told_before__orders.sql"
    scaffolded(1, ddl(1, id, n, price))
    scaffolded(2, of_mysql(created(10, **row)))
    assert all(told in staging.read_text() for told in ("'id': 'int32'", "'n': 'uint64'", "'price': 'Decimal(10,2)'"))
    scaffolded(3, ddl(3, id, n, price, when))
    scaffolded(4, of_mysql(created(20, **row, at=SECOND * 1000)))
    assert "'at': 'Timestamp'" in staging.read_text()
    notes = scaffolded(5, ddl(5, {**id, "typeName": "BIGINT"}, n, price, when))
    assert any("column id is declared int32, new events have int64" in note for note in notes), notes
    with pytest.raises(LakehouseError, match="column n is declared uint64, and new events have int64"):
        scaffolded(6, ddl(6, id, {**n, "typeName": "BIGINT"}, price, when))


def test_the_mode_of_the_connector_tells_what_a_ddl_record_changes(project: Path) -> None:
    from scripts.ddl import written_otherwise

    def table(digits: int) -> dict[str, Any]:
        columns = [{"name": "at", "typeName": "DATETIME", "length": digits}, {"name": "t", "typeName": "TIME"}]
        return {"columns": [*columns, {"name": "other", "typeName": "DATETIME", "length": digits}]}

    for of_time, of_datetime, digits, changed in (
        ("MicroTime", "Timestamp", (3, 6), "MicroTimestamp"),  # the default
        ("MicroTime", "MicroTimestamp", (6, 3), "Timestamp"),
        ("Time", "Timestamp", (3, 6), None),  # connect
        ("NanoTime", "NanoTimestamp", (3, 6), None),
        ("MicroTime", "MicroTimestamp", (3, 6), None),  # microseconds
    ):
        declared = {"at": of_datetime, "t": of_time, "other": "string"}  # as somebody corrected it
        found = written_otherwise(table(digits[0]), table(digits[1]), declared)
        assert found == ({"at": changed} if changed else {}), (of_time, of_datetime)


def test_types_that_hold_what_several_events_have(project: Path) -> None:
    from scripts.scaffold import Declared, _check_types
    from scripts.schema import TableSeen, column_type, columns_of_values, is_misread, wider_type

    assert wider_type("Decimal(8,2)", "Decimal(12,2)") == wider_type("Decimal(12,2)", "Decimal(8,2)") == "Decimal(12,2)"
    assert wider_type("array<int32>", "array<int64>") == "array<int64>" and wider_type("float", "double") == "double"
    misread = [("Decimal(12,4)", "Decimal(8,2)"), ("Timestamp", "MicroTimestamp"), ("Date", "MicroTimestamp"), ("double", "float")]
    misread += [("string", "bytes"), ("string", "Decimal(8,0)"), ("Time", "MicroTime"), ("int64", "Timestamp")]
    misread += [("array<Decimal(8,3)>", "array<Decimal(8,2)>"), ("int64", "double"), ("int32", "float"), ("Decimal(8,2)", "double")]
    misread += [("int64", "uint64"), ("uint64", "Decimal(20,0)"), ("int64", "float64"), ("MicroTimestamp", "TimestampText")]
    misread += [("Decimal(8,2)", "DecimalText(8,2)"), ("Date", "TimestampText")]
    exact_or_rejected = [("Decimal(12,2)", "Decimal(8,2)"), ("int64", "int32"), ("float", "double"), ("string", "int32")]
    exact_or_rejected += [("Timestamp", "TimestampText"), ("double", "Decimal(8,2)"), ("uint64", "int64"), ("int32", "string")]
    exact_or_rejected += [("Enum", "string"), ("any", "string"), ("Bits(8)", "Bits(4)"), ("Decimal(8,2)", "any")]
    exact_or_rejected += [("Timestamp", "int64"), ("Decimal(8,2)", "string")]  # what stands in the event
    exact_or_rejected += [("int32", "double"), ("int16", "float"), ("int64", "Decimal(20,0)"), ("string", "DecimalText(8,2)")]
    assert [pair for pair in misread if not is_misread(*pair)] == []
    assert [pair for pair in exact_or_rejected if is_misread(*pair)] == []

    declared = Declared("orders", TableSeen("oracle", ("S", "ORDERS"), columns={"id": "Decimal(8,2)", "n": "bytes"}, keys=["id"]))
    declared.table.misread = {name: ["Decimal(8,3)", "string"] for name in ("id", "n")}
    seen = TableSeen("oracle", ("S", "ORDERS"), kinds={"id": {"Decimal(8,2)", "Decimal(9,2)"}, "n": {"bytes", "string"}})
    _check_types("retyped_key", seen, declared, project / "models", {})
    seen.kinds["id"].add("Decimal(8,3)")  # rows would stay under keys that were misread
    with pytest.raises(LakehouseError, match="column id is declared .*It is part of the key"):
        _check_types("retyped_key", seen, declared, project / "models", {})
    declared.table.misread = {}
    seen.kinds.pop("id")
    for connector in ("oracle", "mysql"):  # whose hexadecimal digits are text in the schema block, as a text is
        declared.table.connector = connector
        told = r"column n is declared bytes, and new events have string.*misread: {'n': \['<older type>'\]}.* name 'string' there"
        with pytest.raises(LakehouseError, match=told):
            _check_types("retyped_key", seen, declared, project / "models", {})
        for kind in ("bytes_hex", "bytes_url"):
            declared.table.columns["n"] = f"array<array<{kind}>>"
            seen.kinds["n"] = {"array<array<string>>"}
            _check_types("retyped_key", seen, declared, project / "models", {})
        declared.table.columns["n"], seen.kinds["n"] = "bytes", {"string"}
    declared.table.connector = "ticdc"  # which has one name for both
    _check_types("retyped_key", seen, declared, project / "models", {})

    long = 2**53 + 1
    assert columns_of_values([{"a": long, "b": long, "c": 1}, {"a": 0.5, "b": 7, "c": 0.5}]) == {
        "a": "any", "b": "int64", "c": "double",
    }  # fmt: skip
    of_cockroachdb = {"type": "float64", "name": "decimal", "parameters": {"precision": "20", "scale": "2"}}
    assert column_type(of_cockroachdb) == "Decimal(20,2)"
    assert column_type({**of_cockroachdb, "parameters": {"precision": "0", "scale": "0"}}) == "any"
    of_geometry: dict[str, Any] = {"type": "struct", "name": "io.debezium.data.geometry.Geometry", "fields": [{"field": "wkb"}]}
    assert column_type(of_geometry) == "Geometry"
    assert column_type({**of_geometry, "fields": [{"field": "wkb"}, {"field": "extensions"}]}) == "any"  # open and closed paths
    of_bits = {"type": "bytes", "name": "io.debezium.data.Bits", "parameters": {"length": "2147483647"}}
    assert column_type(of_bits) == "Bits(2147483647)"


def test_what_is_no_whole_json_is_of_no_kind_but_rejected(lakehouse: Lakehouse) -> None:
    """A member that stands twice deep in a column ends the column's row for the parser: what follows looks like the event's own."""
    lakehouse.land("twice_within", [created(1, id=1, doc={"a": 1}, status="x", ddl="y")])
    lakehouse.scaffold("twice_within")
    declare(lakehouse, "twice_within", {"doc": "any"})
    broken = [created(at, id=at, doc="<>", **more) for at, more in enumerate(({"status": "BEGIN"}, {"ddl": "drop"}), 2)]
    records = [{**one, "value": str(one["value"]).replace('"<>"', '{"a": {"x": 1, "x": 2}, "b": 3}')} for one in broken]
    lakehouse.run("twice_within", records)
    assert len(lakehouse.rejected("twice_within")) == 2
    kinds = dict(lakehouse.sql("select kind, sum(events) from monitoring.twice_within__event_counts group by 1"))
    assert kinds == {"change": 1, "rejected": 2}


def test_columns_that_no_value_tells_of_are_named_and_values_that_look_otherwise_later(lakehouse: Lakehouse) -> None:
    told = [{"name": "id", "typeName": "INT"}, {"name": "at", "typeName": "DATETIME", "length": 6}]
    told.append({"name": "price", "typeName": "DECIMAL", "length": 8, "scale": 0})
    change = {"type": "CREATE", "id": '"shop"."orders"', "table": {"primaryKeyColumnNames": ["id"], "columns": told}}
    ddl = {"source": {"connector": "mysql", "db": "shop"}, "databaseName": "shop", "ddl": "CREATE", "tableChanges": [change]}
    first = event("c", 1, {"id": 1, "at": None, "price": None})
    later = event("c", 2, {"id": 2, "at": SECOND * 1000, "price": "1234"})
    for record in (first, later):
        record["value"] = record["value"].replace('"postgresql"', '"mysql"')

    lakehouse.land("doubtful", [{"topic": "shop", "offset": 1, "value": json.dumps(ddl)}, first])
    notes = lakehouse.scaffold("doubtful").notes
    assert any("time.precision.mode, on which the types of at depend" in note for note in notes), notes
    lakehouse.land("doubtful", [later])
    notes = lakehouse.scaffold("doubtful").notes
    for name, kind in {"at": "MicroTimestamp", "price": "Decimal(8,0)"}.items():
        assert any(f"column {name} is declared {kind}, and new values do not look so" in note for note in notes), notes
