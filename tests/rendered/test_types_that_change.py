"""Columns whose type changes in the source: events of both eras, in any order, in one file or several.

What the values have to be is what `ALTER TABLE` of PostgreSQL and MariaDB makes of those that are there.
"""

import itertools
import json
import random
from types import SimpleNamespace
from typing import Any

import pytest
from captures import differences, expected, records
from conftest import SHARED, Lakehouse
from event_factory import event, of_mysql
from test_types import CONNECT, DAY, DEBEZIUM, SECOND, decimal, declare, unscaled

Field = tuple[str, str | None, dict[str, Any] | None]
INT, BIG, REAL, DOUBLE, TEXT = (
    (kind, None, None) for kind in ("int32", "int64", "float", "double", "string")
)  # without a semantic name
SIGNED: Field = ("int64", None, {"__debezium.source.column.type": "BIGINT"})
UNSIGNED: Field = ("int64", None, {"__debezium.source.column.type": "BIGINT UNSIGNED"})
DATE, MILLIS, MICROS = (
    (kind, f"{DEBEZIUM}time.{name}", None)
    for kind, name in (("int32", "Date"), ("int64", "Timestamp"), ("int64", "MicroTimestamp"))
)
MILLIS_OF_DAY, MICROS_OF_DAY = (
    (kind, f"{DEBEZIUM}time.{name}", None) for kind, name in (("int32", "Time"), ("int64", "MicroTime"))
)
UUID: Field = ("string", f"{DEBEZIUM}data.Uuid", None)
POINT: Field = ("struct", f"{DEBEZIUM}data.geometry.Point", None)


def numeric(precision: int, scale: int) -> Field:
    return "bytes", CONNECT + "Decimal", decimal(precision, scale)


# Column: the field and a value of the old era, those of the new one, the Spark type, and what both values are.
CHANGES: dict[str, tuple[Field, Any, Field, Any, str, str, str]] = {
    "int_to_varchar": (INT, 42, TEXT, "forty-two", "string", "42", "forty-two"),
    "int_to_bigint": (INT, -5, BIG, 2**40, "bigint", "-5", str(2**40)),
    "bigint_to_unsigned": (BIG, 7, UNSIGNED, -1, "decimal(20,0)", "7", str(2**64 - 1)),
    "int_to_numeric": (INT, 5, numeric(8, 2), unscaled(1250), "decimal(12,2)", "5.00", "12.50"),
    "int_to_double": (INT, 3, DOUBLE, 0.25, "double", "3.0", "0.25"),
    "bigint_to_double": (BIG, 2**53, DOUBLE, 0.5, "double", "9.007199254740992E15", "0.5"),
    "numeric_to_finer": (numeric(8, 2), unscaled(12345), numeric(12, 4), unscaled(12345), "decimal(12,4)", "123.4500", "1.2345"),
    "numeric_to_more_digits": (numeric(8, 2), unscaled(1), numeric(12, 2), unscaled(10**11), "decimal(12,2)", "0.01", "1000000000.00"),
    "numeric_to_varchar": (numeric(8, 2), unscaled(-1230), TEXT, "x", "string", "-12.30", "x"),
    "small_numeric_to_varchar": (numeric(10, 8), unscaled(-50), TEXT, "x", "string", "-0.00000050", "x"),
    "numeric_to_huge": (numeric(38, 2), unscaled(101), numeric(38, 10), unscaled(10**11), "string", "1.01", "10.0000000000"),
    "real_to_double": (REAL, 1.1, DOUBLE, 1.1, "double", "1.100000023841858", "1.1"),
    "timestamp_3_to_6": (MILLIS, SECOND * 1000 + 7, MICROS, SECOND * 10**6 + 7, "timestamp_ntz", "2017-09-15 12:34:56.007", "2017-09-15 12:34:56.000007"),
    "date_to_timestamp": (DATE, DAY, MICROS, SECOND * 10**6, "timestamp_ntz", "2017-09-15 00:00:00", "2017-09-15 12:34:56"),
    "time_3_to_6": (MILLIS_OF_DAY, 1500, MICROS_OF_DAY, 1500, "string", "00:00:01.5", "00:00:00.0015"),
    "varchar_to_text": (TEXT, "a", TEXT, "b", "string", "a", "b"),
    "varchar_to_uuid": (TEXT, "a", UUID, "b68a35a7-17ad-35b3-af2a-ae46edb4545a", "string", "a", "b68a35a7-17ad-35b3-af2a-ae46edb4545a"),
}  # fmt: skip


def of_schema(lsn: int, fields: dict[str, Field], row: dict[str, Any]) -> dict[str, Any]:
    """An insert whose value has a schema block."""
    columns: list[dict[str, Any]] = [{"type": "int32", "field": "id"}]
    for field, (kind, name, parameters) in fields.items():
        of_field = {"name": name, "parameters": parameters}
        columns.append({"type": kind, "field": field, **{one: told for one, told in of_field.items() if told}})
    block = {"type": "struct", "fields": [{"type": "struct", "fields": columns, "field": "after"}]}
    record = event("c", lsn, {"id": lsn, **row})
    return {**record, "value": json.dumps({"schema": block, "payload": json.loads(record["value"])})}


def of_era(lsn: int, era: int, point: dict[str, Any] | None = None) -> dict[str, Any]:
    """An event with all columns of `CHANGES`, of the old era (0) or the new one (1), and with a point if one is given."""
    fields = {name: (change[0], change[2])[era] for name, change in CHANGES.items()}
    row = {name: (change[1], change[3])[era] for name, change in CHANGES.items()}
    return of_schema(lsn, fields | ({"point": POINT} if point else {}), row | ({"point": point} if point else {}))


@pytest.mark.parametrize("landings", [[(0, 1, 0, 1)], [(0, 0), (1, 0, 1)], [(1,), (0, 1, 0)]], ids=str)
def test_events_of_both_eras_are_read_as_their_own_schema_block_says(lakehouse: Lakehouse, landings: Any) -> None:
    lsn = itertools.count(1)
    for eras in landings:
        done = lakehouse.run("retyped", [of_era(next(lsn), era) for era in eras])
    if len(landings) > 1:
        assert [note for note in done.notes if "column real_to_double was" in note and "the table is rebuilt" in note]
    types = dict(lakehouse.table("retyped.orders").dtypes)
    assert {name: types[name] for name in CHANGES} == {name: change[4] for name, change in CHANGES.items()}
    eras = [era for landing in landings for era in landing]
    for era, row in zip(eras, lakehouse.printed("retyped.orders", "id"), strict=True):
        assert {name: row[name] for name in CHANGES} == {name: change[5 + era] for name, change in CHANGES.items()}
    assert lakehouse.rejected("retyped") == []


@pytest.mark.parametrize("parts", [0, 1, 2, 5])
@pytest.mark.parametrize("system", ["parcels", "letters"])
def test_altered_tables_of_real_databases_are_theirs(lakehouse: Lakehouse, system: str, parts: int) -> None:
    """`ALTER TABLE`s of PostgreSQL and MariaDB, events of which come twice: in order, at once and (0) one by one; shuffled."""
    landed = records(system)
    if parts > 1:
        random.Random(parts).shuffle(landed)
    for part in [landed[at::parts] for at in range(parts)] or [[record] for record in landed]:
        lakehouse.run(system, part)
    assert differences(lakehouse, expected(system), system) == []
    assert lakehouse.rejected(system) == []


def ddl_of_mysql(offset: int, *columns: dict[str, Any]) -> dict[str, Any]:
    told = {"primaryKeyColumnNames": ["id"], "columns": [{"name": "id", "typeName": "INT"}, *columns]}
    change = {"type": "ALTER", "id": '"public"."orders"', "table": told}
    value = {"source": {"connector": "mysql", "db": "public"}, "ddl": "ALTER", "tableChanges": [change]}
    return {"topic": "shop", "offset": offset, "value": json.dumps(value)}


def row_of_mysql(lsn: int, fields: dict[str, Field], row: dict[str, Any], with_block: bool = True) -> dict[str, Any]:
    described = of_schema(lsn, fields, row)
    value = json.loads(described["value"])
    plain = json.loads(of_mysql({**described, "value": json.dumps(value["payload"])})["value"])
    return {**described, "value": json.dumps({**value, "payload": plain} if with_block else plain)}


def test_types_of_ddl_records_count_again_once_schema_blocks_are_switched_off(lakehouse: Any) -> None:
    """The record that changes a type lands alone, where a run looks every minute, and the next row has no block."""
    from scripts.errors import LakehouseError

    def ddl(offset: int, scale: int, digits: int) -> dict[str, Any]:
        price = {"name": "price", "typeName": "DECIMAL", "length": 10, "scale": scale}
        return ddl_of_mysql(offset, {"name": "at", "typeName": "DATETIME", "length": digits}, price)

    def row(lsn: int, scale: int, at: Field, with_block: bool) -> dict[str, Any]:
        values = {"at": SECOND * (1000 if at == MILLIS else 10**6), "price": unscaled(lsn)}
        return row_of_mysql(lsn, {"at": at, "price": numeric(10, scale)}, values, with_block)

    for system, changed in (("rescaled_off", (4, 3)), ("finer_off", (2, 6))):
        lakehouse.run(system, [ddl(1, 2, 3), row(1, 2, MILLIS, True)])
        lakehouse.run(system, [row(2, 2, MILLIS, False)])
        lakehouse.run(system, [ddl(2, *changed)])  # the rows may say it themselves, as those before did
        lakehouse.land(system, [row(3, changed[0], MICROS if changed[1] == 6 else MILLIS, False)])
        with pytest.raises(LakehouseError, match=r"column (price|at) is declared .*, and new events have"):
            lakehouse.scaffold(system)


DECIMAL = {"typeName": "DECIMAL", "length": 10, "scale": 2}


@pytest.mark.parametrize(
    ("system", "field", "before", "after", "values", "declared"),
    [
        ("unsigned_off", BIG, {"typeName": "BIGINT UNSIGNED"}, {"typeName": "BIGINT"}, (-1, -5), "uint64"),
        ("digits_off", TEXT, DECIMAL, {"typeName": "VARCHAR"}, ("1.50", "007"), r"DecimalText\(10,2\)"),
    ],
)
def test_a_type_that_only_ddl_tells_stops_the_run_beside_schema_blocks(
    lakehouse: Any, system: str, field: Field, before: Any, after: Any, values: Any, declared: str
) -> None:
    """Schema blocks of both eras are alike: -5 would be 2^64 - 5, and `007` would be 7.00."""
    from scripts.errors import LakehouseError

    lakehouse.run(system, [ddl_of_mysql(1, {"name": "v", **before}), row_of_mysql(1, {"v": field}, {"v": values[0]})])
    for landed in ([ddl_of_mysql(2, {"name": "v", **after})], [row_of_mysql(2, {"v": field}, {"v": values[1]})]):
        lakehouse.land(system, landed)  # a run may be between the two
        with pytest.raises(LakehouseError, match=f"column v is declared {declared}, and new events have {field[0]},"):
            lakehouse.scaffold(system)


def test_an_event_of_another_type_than_is_declared_is_rejected_until_it_is_declared(lakehouse: Any) -> None:
    """As where dbt alone runs. A schema that only adds columns rejects nothing."""
    lakehouse.run("undeclared", [of_schema(1, {"price": numeric(8, 2), "n": INT}, {"price": unscaled(1), "n": 1})])
    further = {"price": numeric(9, 2), "n": BIG, "more": TEXT}
    lakehouse.land("undeclared", [of_schema(2, further, {"price": unscaled(2), "n": 2, "more": "x"})])
    lakehouse.land("undeclared", [of_schema(3, {"price": numeric(8, 3), "n": TEXT}, {"price": unscaled(3), "n": "3"})])
    lakehouse.forget()
    assert lakehouse.rejected("undeclared") == [("shop.public.orders/0/3", "undeclared_schema: price, n")]
    assert lakehouse.sql("select id, cast(price as string) from undeclared.orders") == [(1, "0.01"), (2, "0.02")]

    lakehouse.build_landed("undeclared")
    assert lakehouse.rejected("undeclared") == []
    found = lakehouse.sql("select id, cast(price as string), n from undeclared.orders order by 1")
    assert found == [(1, "0.010", "1"), (2, "0.020", "2"), (3, "0.003", "3")]

    # Neither of the types, and none at all: the column had several, and only a schema block tells.
    lakehouse.land("undeclared", [of_schema(4, {"price": MICROS, "n": INT}, {"price": 4, "n": 4})])
    lakehouse.land("undeclared", [event("c", 5, {"id": 5, "price": unscaled(5), "n": 5})])
    empty = event("c", 6, {"id": 6, "price": None, "n": None})
    of_no_row = {"schema": {"type": "struct", "fields": []}, "payload": json.loads(empty["value"])}
    lakehouse.land("undeclared", [{**empty, "value": json.dumps(of_no_row)}])
    lakehouse.forget()
    assert lakehouse.rejected("undeclared") == [
        ("shop.public.orders/0/4", "undeclared_schema: price"),
        ("shop.public.orders/0/5", "undeclared_schema: price, n"),
        ("shop.public.orders/0/6", "undeclared_schema: price, n"),
    ]


def test_blocks_that_were_compared_with_other_columns_are_compared_again(lakehouse: Any) -> None:
    lakehouse.run("redeclared", [of_schema(1, {"price": numeric(8, 2)}, {"price": unscaled(1)})])
    for path in (lakehouse.project / "models").glob("s*/redeclared/*redeclared__orders.*"):
        path.write_text(path.read_text().replace("Decimal(8,2)", "Decimal(8,3)"))
    lakehouse.forget()
    assert lakehouse.rejected("redeclared") == [("shop.public.orders/0/1", "undeclared_schema: price")]


def test_several_types_that_somebody_declares_need_no_checksums(lakehouse: Any) -> None:
    lakehouse.run("by_hand", [of_schema(1, {"price": numeric(8, 2)}, {"price": unscaled(1)})])
    declare(lakehouse, "by_hand", {"price": "Decimal(8,2) | Decimal(8,3)"})
    path = lakehouse.project / "models" / "silver" / "by_hand" / "by_hand__orders.yml"
    path.write_text("".join(line for line in path.read_text().splitlines(True) if "schemas:" not in line))
    lakehouse.land("by_hand", [of_schema(2, {"price": numeric(8, 3)}, {"price": unscaled(1)})])
    lakehouse.forget()
    assert lakehouse.sql("select id, cast(price as string) from by_hand.orders order by 1") == [
        (1, "0.010"),
        (2, "0.001"),
    ]


def test_schema_blocks_that_were_compared_are_known_by_their_checksum(lakehouse: Any) -> None:
    from scripts.schema import schema_checksum

    records = [of_schema(lsn, {"price": numeric(8, lsn + 1)}, {"price": unscaled(lsn)}) for lsn in (1, 2)]
    first, other = (schema_checksum(record["value"]) for record in records)
    lakehouse.run("compared", records[:1])
    path = lakehouse.project / "models" / "silver" / "compared" / "compared__orders.yml"
    assert f"schemas: [{first}]" in path.read_text()
    lakehouse.land("compared", records[1:])
    lakehouse.forget()
    assert lakehouse.rejected("compared") == [("shop.public.orders/0/2", "undeclared_schema: price")]
    path.write_text(path.read_text().replace(str(first), f"{first}, {other}"))
    lakehouse.forget()
    assert lakehouse.rejected("compared") == []


def test_what_no_type_holds_is_rejected_or_stops_the_table(lakehouse: Lakehouse) -> None:
    from scripts.errors import LakehouseError

    lakehouse.run("not_held", [of_schema(1, {"a": numeric(8, 2), "b": TEXT}, {"a": unscaled(1), "b": "x"})])
    done = lakehouse.run("not_held", [of_schema(2, {"a": DOUBLE, "b": DOUBLE}, {"a": 0.5, "b": 0.5})])
    assert any("column a is declared Decimal(8,2), new events have double" in note for note in done.notes)
    assert lakehouse.rejected("not_held") == [("shop.public.orders/0/2", "undeclared_schema: b")]
    lakehouse.land("not_held", [of_schema(3, {"a": TEXT, "b": MICROS}, {"a": "x", "b": 1})])
    lakehouse.land("not_held", [of_schema(4, {"a": ("bytes", None, None), "b": TEXT}, {"a": "MDk=", "b": ""})])
    with pytest.raises(LakehouseError, match=r"column a is declared Decimal\(8,2\), and new events have bytes"):
        lakehouse.scaffold("not_held")


def test_whole_numbers_first_and_fractions_later(lakehouse: Lakehouse) -> None:
    """Without a schema block."""
    lakehouse.run("fractions", [event("c", 1, {"id": 1, "n": 5})])
    done = lakehouse.run("fractions", [event("c", 2, {"id": 2, "n": 2.5})])
    assert any(
        "column n was int64; new events have another type: it is number, and the table" in one for one in done.notes
    )
    assert lakehouse.sql("select id, n from fractions.orders order by 1") == [(1, 5.0), (2, 2.5)]
    assert lakehouse.rejected("fractions") == []


def test_a_column_that_becomes_a_text(lakehouse: Lakehouse) -> None:
    folder = SHARED / "faults" / "retype_mysql"
    if not folder.exists():
        pytest.skip("the faults are not beside this checkout")
    lines = (folder / "events.jsonl").read_text(encoding="utf-8").splitlines()
    lakehouse.run("retype", [json.loads(line) for line in lines[:2]])
    lakehouse.run("retype", [json.loads(line) for line in lines[2:]])
    assert lakehouse.sql("select id, q from retype.items order by 1") == [(1, "one"), (2, "2"), (3, "three")]


def test_scripts_and_macros_know_the_same_types() -> None:
    """Which values are read right as which type, and what holds values of two types."""
    from adapter import CompilerError, Macros

    from scripts.debezium_types import SEVERAL, held_as, is_misread, wider_type

    kinds = (
        "int16 int32 int64 uint64 float double string Enum Json Uuid ZonedTime Date Time MicroTime NanoTime Timestamp"
    )
    types = [*kinds.split(), "MicroTimestamp", "NanoTimestamp", "Bits(8)", "bytes", "Decimal(8,2)", "Decimal(30,9)"]
    types += ["boolean", "Point", "TimestampText", "ZonedTimestamp", "Year"]
    macros = Macros().module(model=SimpleNamespace(name="m"))
    for declared, written in itertools.product(types, types):
        pair = f"{declared} | {written}"
        if declared != written and (spark := held_as([declared, written]).replace(",", ", ")):
            assert f"as {spark})" in macros.debezium_type(pair, "x")["sql"], pair
        elif declared != written:
            with pytest.raises(CompilerError, match="no type holds the values of"):
                macros.debezium_type(pair, "x")
        kind = written.split("(")[0] + (
            written[8:-1].replace("8,", " ").replace("30,", " ") if "Dec" in written else ""
        )
        if kind in macros.kinds_read_as(declared):
            assert not is_misread(written, declared) or declared == "uint64", (declared, written)
        wide = wider_type(declared, written)
        if SEVERAL in wide:
            assert held_as(wide.split(SEVERAL)) and not is_misread(written, wide), wide


def test_a_key_has_one_type(lakehouse: Lakehouse) -> None:
    from adapter import CompilerError

    lakehouse.run("key_of_two", [event("c", 1, {"id": 1})])
    declare(lakehouse, "key_of_two", {"id": "int64 | string"})
    with pytest.raises(CompilerError, match="several types are for columns of rows outside of the key"):
        lakehouse.rows("key_of_two.orders")


@pytest.mark.parametrize(
    ("fields", "values", "expected"),
    [
        ((UNSIGNED, SIGNED), (-1, -5), [str(2**64 - 1), "-5"]),
        ((numeric(8, 2), numeric(12, 4), INT), (unscaled(1), unscaled(1), 1234567), ["0.0100", "0.0001", "1234567.0000"]),
        ((numeric(10, 31), numeric(10, 10)), (unscaled(5), unscaled(5)), ["5E-31", "5." + "0" * 21 + "E-10"]),
        ((("bytes", "Decimal", decimal(8, 2)), TEXT), (unscaled(1), "x"), ["0.01", "x"]),
        ((("bytes", CONNECT + "Decimal", {"connect.decimal.precision": "8"}), TEXT), (unscaled(1), "x"), ["1", "x"]),
    ],
)  # fmt: skip
def test_a_schema_block_says_which_of_the_types_it_is(lakehouse: Any, fields: Any, values: Any, expected: Any) -> None:
    """Of all that could read it: the one that it names, whatever came first."""
    events = [
        of_schema(at, {"v": field}, {"v": value})
        for at, (field, value) in enumerate(zip(fields, values, strict=True), 1)
    ]
    lakehouse.run("named", events)
    assert [row["v"] for row in lakehouse.printed("named.orders", "id")] == expected
    assert lakehouse.rejected("named") == []


def test_an_unsigned_number_that_becomes_signed_is_signed_from_then_on(lakehouse: Any) -> None:
    """Where the schema block tells the type of the source; `int64` alone may be either."""
    for at, field in enumerate((UNSIGNED, BIG), 1):
        lakehouse.run("signed", [of_schema(at, {"v": field}, {"v": -1})])
    lakehouse.land("signed", [of_schema(3, {"v": SIGNED}, {"v": -5})])
    lakehouse.forget()
    assert lakehouse.rejected("signed") == [("shop.public.orders/0/3", "undeclared_schema: v")]
    lakehouse.build_landed("signed")
    found = [int(value) for (value,) in lakehouse.sql("select v from signed.orders order by id")]
    assert found == [2**64 - 1, 2**64 - 1, -5] and lakehouse.rejected("signed") == []


def test_the_least_whole_number_stops_no_run(lakehouse: Any) -> None:
    lakehouse.run("least", [of_schema(1, {"v": DOUBLE}, {"v": 0.5}), of_schema(2, {"v": BIG}, {"v": -(2**63)})])
    assert lakehouse.sql("select id, v from least.orders") == [(1, 0.5)]
    assert lakehouse.rejected("least") == [("shop.public.orders/0/2", "value_not_exact: v")]


def test_a_column_that_becomes_what_it_was_is_not_told(lakehouse: Any) -> None:
    for at, (field, value) in enumerate([(INT, 1), (TEXT, "x"), (INT, 2)], 1):
        done = lakehouse.run("back", [of_schema(at, {"v": field}, {"v": value})])
    assert done.notes == []


def rewritten(record: dict[str, Any], form: str) -> dict[str, Any]:
    """The same value as other writers of JSON have it."""
    value = json.loads(record["value"])
    texts = {
        "payload first": json.dumps({"payload": value["payload"], "schema": value["schema"]}),
        "in lines": json.dumps(value, indent=1),
        "spaced": json.dumps(value, separators=(",", " : ")),
        "blank": record["value"].replace("{", "{ ", 1),
    }
    return {**record, "value": texts[form]}


@pytest.mark.parametrize("form", ["payload first", "in lines", "spaced", "blank"])
def test_a_schema_block_is_found_however_it_is_written(lakehouse: Any, form: str) -> None:
    first, other = (of_schema(at, {"price": numeric(8, at)}, {"price": unscaled(at)}) for at in (1, 2))
    lakehouse.run("written", [rewritten(first, form)])
    lakehouse.land("written", [rewritten(other, form)])
    lakehouse.forget()
    assert lakehouse.rejected("written") == [("shop.public.orders/0/2", "undeclared_schema: price")]


def test_values_of_a_column_named_payload_are_no_schemas(lakehouse: Any) -> None:
    """Else the YAML would grow by one number in each run."""
    for at in (1, 2):
        record = of_schema(at, {"payload": TEXT}, {"a": at, "payload": "x"})
        value = json.dumps(json.loads(record["value"]), separators=(",", ":"))
        lakehouse.run("outbox", [{**record, "value": value}])
    assert "schemas:" not in (lakehouse.project / "models/silver/outbox/outbox__orders.yml").read_text()


def test_a_delete_without_a_value_needs_no_schema_block(lakehouse: Any) -> None:
    """Flattened: older versions of Connect wrap the value that is none."""

    def flat(at: int, field: Field, value: Any) -> dict[str, Any]:
        columns = [
            {"type": "int32", "field": "id"},
            {"type": field[0], "field": "v"},
            {"type": "string", "field": "__op"},
        ]
        text = json.dumps({"schema": {"fields": columns}, "payload": {"id": at, "v": value, "__op": "c"}})
        return {**event("c", at, {"id": at}), "value": text}

    gone = {**flat(2, TEXT, ""), "offset": 9, "value": '{"schema":null,"payload":null}'}
    lakehouse.run("gone", [flat(1, INT, 1), flat(2, TEXT, "x"), gone], connector="flattened")
    (table,) = lakehouse.tables("gone")
    assert table.table.columns["v"] == "int32 | string"
    assert lakehouse.sql(f"select id, v from gone.{table.relation}") == [(1, "1")] and lakehouse.rejected("gone") == []


def of_cassandra(at: int, field: Field, value: Any) -> dict[str, Any]:
    """An insert whose columns are cells."""
    cells: dict[str, dict[str, Any]] = {
        "id": {"type": "int32"},
        "v": {"type": field[0], "name": field[1], "parameters": field[2]},
    }
    columns = [{"field": name, "type": "struct", "fields": [{**one, "field": "value"}]} for name, one in cells.items()]
    source = {"connector": "cassandra", "keyspace": "k", "table": "orders", "ts_ms": at, "ts_us": at}
    after = {"id": {"value": at, "set": True}, "v": {"value": value, "set": True}}
    schema = {"type": "struct", "fields": [{"type": "struct", "fields": columns, "field": "after"}]}
    payload = {"op": "i", "ts_ms": at, "source": source, "after": after}
    return {**event("c", at, {"id": at}), "value": json.dumps({"schema": schema, "payload": payload})}


def test_cells_and_keys_have_one_type(lakehouse: Any) -> None:
    from scripts.errors import LakehouseError

    lakehouse.run("cells", [of_cassandra(1, INT, 1), of_cassandra(2, TEXT, "x")])
    assert lakehouse.sql("select id, v from cells.orders") == [(1, 1)]
    lakehouse.run("cells_of_scales", [of_cassandra(1, numeric(8, 2), unscaled(1))])
    lakehouse.land("cells_of_scales", [of_cassandra(2, numeric(8, 4), unscaled(1))])
    with pytest.raises(LakehouseError, match=r"column v is declared Decimal\(8,2\), and new events have"):
        lakehouse.scaffold("cells_of_scales")

    def keyed(at: int, kind: str, key: Any) -> dict[str, Any]:
        record = of_schema(at, {"v": INT}, {"id": key, "v": at})
        value = record["value"].replace('{"type": "int32", "field": "id"}', f'{{"type": "{kind}", "field": "id"}}')
        return {**record, "key": json.dumps({"id": key}), "value": value}

    lakehouse.run("keys_of_two", [keyed(1, "int32", 1), keyed(2, "string", "x")])
    assert lakehouse.sql("select id, v from keys_of_two.orders") == [(1, 1)]
    assert lakehouse.rejected("keys_of_two") == [("shop.public.orders/0/2", "undeclared_schema: id")]
    lakehouse.run("retyped_column", [of_schema(1, {"v": INT}, {"v": 1}), of_schema(2, {"v": TEXT}, {"v": "x"})])
    with pytest.raises(LakehouseError, match=r"column v of table public.orders is int32 \| string"):
        lakehouse.scaffold("retyped_column", keys={"orders": ["v"]})
