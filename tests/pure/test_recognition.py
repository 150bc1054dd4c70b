"""What the scaffold finds in events: tables, keys and types, by Python alone."""

import base64
import json
import shutil
import subprocess
import sys
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scripts.errors import LakehouseError

DAY = (date(2017, 9, 15) - date(1970, 1, 1)).days
SECOND = int(datetime(2017, 9, 15, 12, 34, 56, tzinfo=timezone.utc).timestamp())
TIME = 45_296_789_012_345  # 12:34:56.789012345 in nanoseconds


def unscaled(number: int) -> str:
    return base64.b64encode(number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)).decode()


def decimal(precision: int, scale: int) -> dict[str, Any]:
    return {"scale": str(scale), "connect.decimal.precision": str(precision)}


def test_the_scaffold_reads_numbers_that_no_type_of_python_holds() -> None:
    from scripts.values import columns_of_values, parsed_exactly

    digits = "9" * 25
    row = parsed_exactly(f'{{"a":1e-{digits},"b":0e{digits},"c":{digits * 3},"d":1.5}}')
    assert columns_of_values([row]) == {"a": "any", "b": "any", "c": "any", "d": "number"}


# What a schema block, a DDL record, a source or a key may be, if anything may be there

NAMES = (
    "schema",
    "payload",
    "before",
    "after",
    "source",
    "fields",
    "field",
    "type",
    "name",
    "id",
    "table",
    "columns",
    "items",
)
leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-9, 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(NAMES),
)
anything = st.recursive(
    leaves, lambda some: st.lists(some, max_size=3) | st.dictionaries(st.sampled_from(NAMES), some, max_size=4)
)


def mostly(good: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(good, good, good, anything)


def objects(**members: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return mostly(st.fixed_dictionaries({}, optional={name: mostly(member) for name, member in members.items()}))


def lists(items: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return mostly(st.lists(items, max_size=2))


def one_of(*texts: str) -> st.SearchStrategy[str]:
    return st.sampled_from(texts)


fields = objects(
    field=one_of("id", "after"),
    type=one_of("int64", "array", "bytes"),
    name=one_of("org.apache.kafka.connect.data.Decimal", "io.debezium.data.Bits", "io.debezium.time.Date"),
    parameters=objects(scale=one_of("2"), length=one_of("5")),
    items=anything,
)
schemas = objects(fields=lists(objects(field=one_of("before", "after"), fields=lists(fields))))
ddl_columns = objects(
    name=one_of("id"), typeName=one_of("DECIMAL", "BIT", "DATETIME"), length=st.just(9), scale=st.just(2)
)
ddl = objects(
    id=one_of('"d"."t"'), table=objects(columns=lists(ddl_columns), primaryKeyColumnNames=lists(one_of("id")))
)
payloads = objects(
    op=one_of("c", "u", "d"),
    source=objects(connector=one_of("mysql", "postgresql"), db=one_of("d"), schema=one_of("d"), table=one_of("t")),
    after=st.dictionaries(one_of("id", "a"), anything),
    before=anything,
    tableChanges=lists(ddl),
)
values = payloads | st.fixed_dictionaries({"schema": schemas, "payload": payloads})


@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    events=st.lists(
        st.tuples(values, st.none() | objects(id=leaves, payload=objects(id=leaves))), min_size=1, max_size=3
    )
)
def test_whatever_stands_in_an_event_the_scaffold_reads_it_or_leaves_it(
    project: Path, events: list[tuple[Any, Any]]
) -> None:
    from scripts import scaffold, schema
    from scripts.declared import Declared
    from scripts.observe import Event
    from scripts.table_models import render
    from scripts.tables_seen import _tables

    deep: dict[str, Any] = {"type": "array"}
    for _ in range(900):
        deep = {"type": "array", "items": deep}
    assert schema.columns_of_schema(
        {"fields": [{"field": "after", "fields": [{"field": "id", **deep}]}]}, "after", "before"
    )
    try:
        tables = _tables([Event("topic", json.dumps(value), json.dumps(key)) for value, key in events], None, "any", {})
    except LakehouseError:  # of two connectors, or of one that there is not
        return
    for table in tables:
        if not scaffold._problem(table, None):
            assert render("any", Declared("t", table))


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
    from scripts.observe import Event
    from scripts.scaffolded import Scaffolded, tell_doubts
    from scripts.tables_seen import _tables

    members = ("typeName", "length", "scale")
    for name, (columns, rows, types) in MODES.items():
        told = [{"name": column, **dict(zip(members, kind, strict=True))} for column, kind in columns.items()]
        change = {"type": "CREATE", "id": '"d"."t"', "table": {"primaryKeyColumnNames": [], "columns": told}}
        source = {"connector": "mysql", "name": name, "db": "d", "table": "t"}
        values = [{"source": source, "databaseName": "d", "ddl": "CREATE TABLE t", "tableChanges": [change]}]
        values += [{"op": "c", "source": source, "after": dict(zip(columns, row, strict=True))} for row in rows]
        texts = [json.dumps(value).replace('"<', "").replace('>"', "") for value in values]
        events = [Event("t", text, None) for text in texts]
        (table,) = _tables(events, None, name, {})
        assert list(table.columns.values()) == types, name
        assert list(table.doubts) == ([name] if "." in name else []), name
        tell_doubts("s", table, list(columns), done := Scaffolded())
        assert len(done.notes) == len(table.doubts), name


def test_what_a_schema_block_does_not_tell_is_told_by_ddl_records(project: Path) -> None:
    """Unsigned numbers, and what is sent as text; a column that the DDL has otherwise is what the schema block says."""
    from scripts.observe import Event
    from scripts.tables_seen import _tables

    told = {
        "huge": "BIGINT UNSIGNED",
        "big": "BIGINT",
        "price": "DECIMAL",
        "hash": "BLOB",
        "words": "VARCHAR",
        "at": "DATETIME",
    }
    described = {
        "huge": "int64",
        "big": "int64",
        "price": "string",
        "hash": "string",
        "words": "string",
        "at": "string",
    }
    row = {"huge": -1, "big": -1, "price": "1.50", "hash": "deadbeef00112233", "words": "deadbeef", "at": "x"}
    columns = [{"name": name, "typeName": kind, "length": 8, "scale": 2} for name, kind in told.items()]
    change = {"type": "CREATE", "id": '"d"."t"', "table": {"primaryKeyColumnNames": [], "columns": columns}}
    source = {"connector": "mysql", "name": "s", "db": "d", "table": "t"}
    fields = [{"type": kind, "optional": True, "field": name} for name, kind in described.items()]
    schema = {"type": "struct", "fields": [{"type": "struct", "fields": fields, "optional": True, "field": "after"}]}
    ddl = {"source": source, "databaseName": "d", "ddl": "CREATE TABLE t", "tableChanges": [change]}
    values = [ddl, {"schema": schema, "payload": {"op": "c", "source": source, "after": row}}]
    (table,) = _tables([Event("t", json.dumps(value), None) for value in values], None, "s", {})
    assert table.columns == {
        **{"huge": "uint64", "big": "int64", "price": "DecimalText(8,2)"},
        **{"hash": "bytes_hex", "words": "string", "at": "string"},
    }
    assert not table.doubts and table.types_from == "schema block"


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
        found = written_otherwise(table(digits[0]), table(digits[1]), declared, {})
        assert found == ({"at": changed} if changed else {}), (of_time, of_datetime)

    def of(kind: str) -> dict[str, Any]:
        fee = {"name": "fee", "typeName": "DECIMAL", "length": 6, "scale": 2}
        return {"columns": [{"name": "v", "typeName": kind, "length": 20}, fee]}

    for of_fee, seen, changed in (
        ("Decimal(6,2)", {}, "Decimal(20,0)"),
        ("DecimalText(6,2)", {}, "DecimalText(20,0)"),  # the mode of another column
        ("Decimal(6,2)", {"v": "DecimalText(20,0)"}, "DecimalText(20,0)"),  # new rows
    ):
        declared = {"v": "string", "fee": of_fee}
        assert written_otherwise(of("VARCHAR"), of("DECIMAL"), declared, seen) == {"v": changed}
    declared = {"v": "Decimal(20,0)", "fee": "Decimal(6,2)"}  # modes of two settings have one name
    assert written_otherwise(of("DECIMAL"), of("BIGINT UNSIGNED"), declared, {}) == {"v": "uint64"}


def test_a_connector_is_its_macro_its_name_and_its_branch(project: Path, tmp_path: Path) -> None:
    """The example of the documentation, added as its first two steps say, is recognised without a line of Python."""
    page = (REPOSITORY / "docs" / "adding-a-connector.md").read_text(encoding="utf-8")
    for folder in ("scripts", "macros/connectors"):
        shutil.copytree(REPOSITORY / folder, tmp_path / folder)
    (tmp_path / "macros" / "connectors" / "sample.sql").write_text(
        page.split("```jinja\n")[1].split("```")[0], encoding="utf-8"
    )
    chooser = tmp_path / "macros" / "connectors" / "connector.sql"
    text = chooser.read_text(encoding="utf-8")
    text = text.replace("'flattened', 'generic',", "'sample', 'flattened', 'generic',")
    branch = "{%- elif connector == 'generic' -%}"
    text = text.replace(
        branch, branch.replace("generic", "sample") + " {{ return(sample_connector()) }}\n    " + branch
    )
    chooser.write_text(text, encoding="utf-8")
    source = {"connector": "sample", "db": "d", "schema": "s", "table": "t", "log_number": "7"}
    event = {"op": "c", "source": source, "before": None, "after": {"id": 1}}
    code = f"""if True:
        from scripts.dialects import dialect_of
        dialect = dialect_of({event}, None, 'topic', 'any')
        print(dialect.connector, dialect.identity({event}, 'topic'), dialect.image({event}, 'after'))
    """
    found = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)

    assert found.stdout == "sample ('s', 't') {'id': 1}\n"


def test_types_that_hold_what_several_events_have(project: Path) -> None:
    from scripts.debezium_types import is_misread, wider_type
    from scripts.declared import Declared
    from scripts.drift import _check_types
    from scripts.schema import TableSeen, column_type
    from scripts.values import columns_of_values

    assert wider_type("Decimal(8,2)", "Decimal(12,2)") == wider_type("Decimal(12,2)", "Decimal(8,2)") == "Decimal(12,2)"
    assert wider_type("array<int32>", "array<int64>") == "array<int64>" and wider_type("int32", "double") == "double"
    misread = [
        ("Decimal(12,4)", "Decimal(8,2)"),
        ("Timestamp", "MicroTimestamp"),
        ("Date", "MicroTimestamp"),
        ("double", "float"),
        ("float", "double"),
    ]
    misread += [("string", "bytes"), ("string", "Decimal(8,0)"), ("Time", "MicroTime"), ("int64", "Timestamp")]
    misread += [
        ("array<Decimal(8,3)>", "array<Decimal(8,2)>"),
        ("int64", "double"),
        ("int32", "float"),
        ("Decimal(8,2)", "double"),
    ]
    misread += [
        ("int64", "uint64"),
        ("uint64", "Decimal(20,0)"),
        ("int64", "float64"),
        ("MicroTimestamp", "TimestampText"),
    ]
    misread += [("Decimal(8,2)", "DecimalText(8,2)"), ("Date", "TimestampText")]
    exact_or_rejected = [
        ("Decimal(12,2)", "Decimal(8,2)"),
        ("int64", "int32"),
        ("string", "int32"),
    ]
    exact_or_rejected += [
        ("Timestamp", "TimestampText"),
        ("double", "Decimal(8,2)"),
        ("uint64", "int64"),
        ("int32", "string"),
    ]
    exact_or_rejected += [("Enum", "string"), ("any", "string"), ("Bits(8)", "Bits(4)"), ("Decimal(8,2)", "any")]
    exact_or_rejected += [("Timestamp", "int64"), ("Decimal(8,2)", "string")]  # what stands in the event
    exact_or_rejected += [
        ("int32", "double"),
        ("int16", "float"),
        ("int64", "Decimal(20,0)"),
        ("string", "DecimalText(8,2)"),
    ]
    assert [pair for pair in misread if not is_misread(*pair)] == []
    assert [pair for pair in exact_or_rejected if is_misread(*pair)] == []

    declared = Declared(
        "orders", TableSeen("oracle", ("S", "ORDERS"), columns={"id": "Decimal(8,2)", "n": "bytes"}, keys=["id"])
    )
    declared.table.misread = {name: ["Decimal(8,3)", "string"] for name in ("id", "n")}
    seen = TableSeen(
        "oracle", ("S", "ORDERS"), kinds={"id": {"Decimal(8,2)", "Decimal(9,2)"}, "n": {"bytes", "string"}}
    )
    _check_types("retyped_key", seen, declared, project / "models", {})
    seen.kinds["id"].add("Decimal(8,3)")  # rows would stay under keys that were misread
    with pytest.raises(LakehouseError, match="column id is declared .*It is part of the key"):
        _check_types("retyped_key", seen, declared, project / "models", {})
    declared.table.misread = {}
    seen.kinds.pop("id")
    for connector in ("oracle", "mysql"):  # whose hexadecimal digits are text in the schema block, as a text is
        declared.table.connector = connector
        told = (
            r"column n is declared bytes, and new events have string.*misread: {'n': \['<older type>'\]}.* name"
            r" 'string' there"
        )
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
        "a": "any", "b": "int64", "c": "number",
    }  # fmt: skip
    of_cockroachdb = {"type": "float64", "name": "decimal", "parameters": {"precision": "20", "scale": "2"}}
    assert column_type(of_cockroachdb) == "Decimal(20,2)"
    assert column_type({**of_cockroachdb, "parameters": {"precision": "0", "scale": "0"}}) == "any"
    of_geometry: dict[str, Any] = {
        "type": "struct",
        "name": "io.debezium.data.geometry.Geometry",
        "fields": [{"field": "wkb"}],
    }
    assert column_type(of_geometry) == "Geometry"
    assert (
        column_type({**of_geometry, "fields": [{"field": "wkb"}, {"field": "extensions"}]}) == "any"
    )  # open and closed paths
    of_bits = {"type": "bytes", "name": "io.debezium.data.Bits", "parameters": {"length": "2147483647"}}
    assert column_type(of_bits) == "Bits(2147483647)"


# Keys and formats


@pytest.mark.parametrize(
    ("key", "columns"),
    [
        ('{"payload":"p"}', ["payload"]),
        ('{"schema":"s","payload":5}', ["schema", "payload"]),
        ('{"payload":{"id":1}}', ["id"]),
        ('{"schema":{"type":"int32"},"payload":5}', []),
        ('{"schema":null,"payload":5}', []),
        ('{"schema":null,"payload":null}', []),
    ],
)
def test_payload_in_a_key_is_a_column_unless_it_wraps_the_key(key: str, columns: list[str]) -> None:
    from scripts.values import key_columns, parsed

    assert key_columns(parsed(key)) == columns


EVENT = '{"before":null,"after":{"id":1},"source":{"connector":"postgresql"},"op":"c"}'


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (json.dumps(EVENT), "JSON in a JSON text"),
        (json.dumps(f'{{"schema":{{}},"payload":{EVENT}}}'), "JSON in a JSON text"),
        (base64.b64encode(EVENT.encode()).decode(), "JSON in base64"),
        (
            base64.b64encode(b"\0\0\0\0\x05" + EVENT.encode()).decode(),
            "JSON behind the five bytes of a schema registry",
        ),
        ("\0\0\0\0\x05" + EVENT, "JSON behind the five bytes of a schema registry"),
        # What has no event inside may be anything.
        ("\0\0\0\0\x05\x02\x06abc", None),
        ('"text"', None),
        ('"{\\"id\\":1}"', None),
        ("eyJpZCI6IDB9", None),
        ("events", None),
        ("é", None),
        ("[1]", None),
        ("null", None),
        ("", None),
    ],
)
def test_events_in_another_format_are_named(text: str, name: str | None) -> None:
    from scripts.foreign import foreign_format, foreign_text

    found = foreign_text(text)
    assert (found and found.partition(" (")[0]) == name
    assert foreign_format({"key": "k", "value": text}) == found


def test_a_row_with_one_column_is_no_key_with_its_value() -> None:
    from scripts.foreign import foreign_format

    named = 'objects of one member, whose name is the key (write {"key": …, "value": …})'
    assert foreign_format({'{"id":1}': EVENT}) == named
    for row in ({"id": 1}, {"text": "{}"}, {"payload": EVENT}, {"value": None}):
        assert foreign_format(row) is None


@pytest.mark.parametrize(
    ("name", "relation"),
    [
        ("客户", "u5ba2_u6237"),
        ("订单 2024", "u8ba2_u5355_2024"),
        ("заказы", "u437_u430_u43a_u430_u437_u44b"),
        ("naïve Straße", "naive_strasse"),
        ("--", "u2d_u2d"),
        ("💰", "u1f4b0"),
        ("Gift Boxes", "gift_boxes"),
        ("2024-stats", "_2024_stats"),
        ("_a__b_", "_a__b_"),
        ("'; drop table x; --", "___drop_table_x____"),
        ("_", "_"),
        ("", "_"),
    ],
)
def test_names_of_other_scripts_stay_apart(project: Path, name: str, relation: str) -> None:
    from scripts.names import safe_name

    assert safe_name(name) == relation


def test_tables_that_share_topics_are_read_together_where_all_their_events_name_them(project: Path) -> None:
    """Also those that share one through others; an event that names no table is that of its topic."""
    from scripts.declared import Declared
    from scripts.schema import TableSeen
    from scripts.topics import _sharing_topics

    tables = [
        ("orders", ("public", "orders"), {"a"}),
        ("lines", ("public", "lines"), {"a", "b"}),
        ("items", ("public", "items"), {"b"}),
        ("alone", ("public", "alone"), {"c"}),
        ("named", ("public", "named"), {"d"}),
        ("nameless", ("d",), {"d"}),
    ]
    known = [Declared(name, TableSeen("postgresql", identity, topics)) for name, identity, topics in tables]
    assert sorted(found.relation for found in _sharing_topics(known)) == ["items", "lines", "orders"]


def test_comments_of_columns_are_taken_from_schema_blocks_and_ddl_records(project: Path) -> None:
    from scripts.observe import Event
    from scripts.tables_seen import _tables

    told = [
        {"name": "id", "typeName": "BIGINT", "comment": "The\nnumber"},
        {"name": "paid", "typeName": "BIGINT", "comment": "Older"},
        {"name": "odd", "typeName": "BIGINT", "comment": None},
        {"name": "gone", "typeName": "BIGINT", "comment": "Of a column that no event has"},
    ]
    change = {"type": "CREATE", "id": '"d"."t"', "table": {"primaryKeyColumnNames": ["id"], "columns": told}}
    source = {"connector": "mysql", "name": "s", "db": "d", "table": "t"}
    fields = [
        {"type": "int64", "field": "id"},
        {"type": "int64", "field": "paid", "doc": "What was {{ paid }}"},
        {"type": "int64", "field": "odd", "parameters": {"__debezium.source.column.comment": " In  %\x85"}},
        {"type": "struct", "field": "at", "name": "io.debezium.data.geometry.Point", "doc": "Geometry (POINT)"},
    ]
    schema = {"type": "struct", "fields": [{"type": "struct", "fields": fields, "field": "after"}]}
    row = {"id": 1, "paid": 2, "odd": 3, "at": None}
    ddl = {"source": source, "databaseName": "d", "ddl": "CREATE TABLE t", "tableChanges": [change]}
    values = [ddl, {"schema": schema, "payload": {"op": "c", "source": source, "after": row}}]
    (table,) = _tables([Event("t", json.dumps(value), None) for value in values], None, "s", {})
    assert table.comments == {"id": "The number", "paid": "What was { { paid }}", "odd": "In %"}


@pytest.mark.parametrize("is_at_once", [True, False])
@pytest.mark.parametrize("row", [{"id": 1, "note": "b", "__deleted": "false"}, {"id": 1, "note": "b"}])
def test_a_topic_of_envelopes_and_flattened_rows_is_refused(row: dict[str, Any], is_at_once: bool) -> None:
    """ExtractNewRecordState was switched on or off: of two tables neither would have all rows, and tombstones would
    delete none.
    """
    from scripts.observe import Event
    from scripts.tables_seen import _tables

    source = {"connector": "postgresql", "schema": "public", "table": "t", "lsn": 1}
    old = Event("pg.public.t", json.dumps({"op": "c", "after": {"id": 1, "note": "a"}, "source": source}), '{"id": 1}')
    new = Event("pg.public.t", json.dumps(row), '{"id": 1}')
    for before, after in ((old, new), (new, old)) if "__deleted" in row or is_at_once else ((old, new),):
        known = {} if is_at_once else {one.identity: one for one in _tables([before], None, "s", {})}
        events = [before, after] if is_at_once else [after]
        with pytest.raises(LakehouseError, match=r"topic pg\.public\.t has rows in envelopes, and flattened ones"):
            _tables(events, None, "s", known)
    # What is no row of the table, a row of another topic, and what has models already, stop nothing.
    of_others = [Event(old.topic, '{"hello": 1}', None), Event("t", new.value, new.key)]
    delete = Event("pg.public.t", json.dumps({"op": "d", "source": source}), None)
    assert _tables([old, *of_others], None, "s", {}) and _tables([delete, of_others[0]], None, "s", {})
    if "__deleted" in row:
        both = {one.identity: one for event in (old, new) for one in _tables([event], None, "s", {})}
        assert len(_tables([old, new], None, "s", both)) == 2
