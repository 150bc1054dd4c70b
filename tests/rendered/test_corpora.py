"""Events that other projects and vendors ship, and the state that they must give: the corpora beside the repository."""

import json
import re
import struct
from base64 import b64encode
from datetime import date, datetime
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from conftest import Lakehouse, check_events, corpus, corpus_records

KEYED = {
    "risingwave_mysql_customers": "inventory.customers",
    "risingwave_mysql_lineitem_ignorecase": "mydb.lineitem",
    "flink_postgres_products": "inventory.products",
    "seatunnel_mysql_products": "inventory.products",
    "vendor_tencent_postgresql": None,
    "vendor_tencent_mysql": None,
}


CORRECTED = {
    "id": "Decimal(20,0)",
    "big_un_c": "Decimal(20,0)",
    "big_un_z_c": "Decimal(20,0)",
    "decimal_un_c": "Decimal(8,4)",
    "decimal_un_z_c": "Decimal(8,4)",
    "bit1_c": "boolean",
}


def expected(folder: Path) -> Any:
    return json.loads((folder / "expected.json").read_text(encoding="utf-8"))


def in_order(rows: list[dict[str, Any]], keys: list[str]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: [str(row[key]).zfill(20) for key in keys])


@pytest.mark.parametrize("name", KEYED)
def test_corpus_gives_its_expected_rows(lakehouse: Lakehouse, name: str) -> None:
    folder = corpus(name)
    told = expected(folder)
    tables = told["tables"]
    keys = {table: content["key"] for table, content in tables.items()}
    lakehouse.run(name, corpus_records(folder), keys=keys)

    for table, content in tables.items():
        rows = lakehouse.rows(f"{name}.{table.split('.')[-1]}")
        if content.get("types", {}).get("weight") == "FLOAT":
            for row in rows + content["rows"]:
                row["weight"] = struct.unpack("f", struct.pack("f", row["weight"]))[0]
        assert in_order(rows, content["key"]) == in_order(content["rows"], content["key"]), table
    assert lakehouse.rejected(name) == []
    if "per_event" in told:
        check_events(lakehouse, name, told["per_event"])
        for named, types in told["types"].items():
            for table in named.split(" and "):
                found = dict(lakehouse.table(f"{name}.{table.split('.')[-1]}").dtypes)
                assert found == {column: kind.lower() for column, kind in types.items()}, table


@pytest.mark.parametrize("name", ["vendor_tencent_postgresql", "vendor_tencent_mysql"])
def test_vendor_corpus_gives_its_intermediate_states(lakehouse: Lakehouse, name: str) -> None:
    folder = corpus(name)
    system = f"{name}_steps".replace("vendor_", "")
    content = expected(folder)
    steps = {step["after"]: step for step in content["intermediate_states"]}
    waiting: list[dict[str, Any]] = []
    for record in corpus_records(folder):
        waiting.append(record)
        step = steps.get(f"{record['topic']} offset {record['offset']}")
        if step:
            lakehouse.run(system, waiting)
            waiting = []
            table = step["table"]
            keys = content["tables"][table]["key"]
            rows = in_order(lakehouse.rows(f"{system}.{table.split('.')[-1]}"), keys)
            assert rows == in_order(step["rows"], keys), step["after"]


def test_delete_that_names_no_row_is_rejected(lakehouse: Lakehouse) -> None:
    folder = corpus("flink_postgres_products")
    lines = (folder / "debezium-postgres-data-replica-identity.txt").read_text(encoding="utf-8").split("\n")
    path = lakehouse.project / "events" / "identity.jsonl"
    path.parent.mkdir(exist_ok=True)
    lines = [line for line in lines if line.strip()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    lakehouse.run("identity", path, keys={"products": ["id"]})

    assert [reason for _, reason in lakehouse.rejected("identity")] == ["no_key"]
    newest = json.loads(lines[-2])["after"]
    assert (newest["id"], newest["weight"]) == (111, 5.17)
    assert lakehouse.rows("identity.products", "id") == [
        *expected(folder)["tables"]["inventory.products"]["rows"],
        newest,
    ]


def test_null_value_between_events_is_a_tombstone(lakehouse: Lakehouse) -> None:
    folder = corpus("paimon_mysql_nullvalue")
    lakehouse.run("nullvalue", corpus_records(folder), keys={"test": ["id"]})

    rows = expected(folder)["tables"]["value table"]["rows"]
    assert lakehouse.rows("nullvalue.test", "id") == [
        {**row, "id": int(row["id"])} for row in rows
    ]  # a number in the events
    assert lakehouse.rejected("nullvalue") == []
    assert lakehouse.sql("select kind, sum(events) from monitoring.nullvalue__event_counts group by 1 order by 1") == [
        ("change", 2),
        ("tombstone", 1),
    ]


def test_columns_added_in_mid_stream_without_positions(lakehouse: Lakehouse) -> None:
    folder = corpus("paimon_mysql_database_schemaevolution")
    content = expected(folder)
    lakehouse.run("evolution", corpus_records(folder)[:4])
    lakehouse.run("evolution", corpus_records(folder)[4:])
    for table in ("t1", "t2"):
        names = ", ".join(content["tables"][table]["rows"][0])
        rows = lakehouse.rows(f"(select {names} from silver.evolution__{table})", names)
        assert rows == content["tables"][table]["rows"], table

    lakehouse.run("evolution_keyed", corpus_records(folder), keys={"t1": ["id"], "t2": ["id"]})
    assert lakehouse.rows("evolution_keyed.t1", "id") == content["tables"]["t1"]["rows"]
    assert lakehouse.rows("evolution_keyed.t2", "id") == content["with_primary_key_id"]["t2"]["rows"]
    assert lakehouse.rejected("evolution") == lakehouse.rejected("evolution_keyed") == []


def test_temporal_types_of_postgresql(lakehouse: Any) -> None:
    folder = corpus("doris_postgres_time_types")
    lakehouse.run("doris", corpus_records(folder), keys={"time_example": ["id"]})
    row = lakehouse.query(
        """
        select id, date_format(timestamp_without_timezone, "yyyy-MM-dd'T'HH:mm:ss") as timestamp_without_timezone,
            date_format(timestamp_with_timezone, "yyyy-MM-dd'T'HH:mm:ssX") as timestamp_with_timezone,
            cast(date_only as string) as date_only, time_without_timezone, time_with_timezone, interval_period
        from doris.time_example
        """
    ).collect()[0]
    assert row.asDict() == expected(folder)["tables"]["public.time_example"]["rows"][0]
    assert lakehouse.rejected("doris") == []


def test_schemas_keys_and_additive_columns_of_the_serde(lakehouse: Lakehouse) -> None:
    folder = corpus("debezium_serde")
    content = expected(folder)
    by_file = {record["file"]: record for record in corpus_records(folder)}
    for number, name in enumerate(["serde-with-schema.json", "serde-without-schema.json", "serde-update.json"]):
        lakehouse.run(f"serde_{number}", [by_file[name]], keys={"customers": ["id"]})
        wanted = content["per_file"][name]
        assert lakehouse.rows(f"serde_{number}.customers") == [wanted.get("after", wanted)]
    lakehouse.run(
        "serde_3", [by_file["serde-unwrapped.json"]], "flattened", {"mysql-server-1.inventory.customers": ["id"]}
    )
    assert lakehouse.rows("serde_3.mysql_server_1_inventory_customers") == [content["per_file"]["serde-unwrapped.json"]]
    done = lakehouse.run("serde_0", [by_file["serde-unknown-property.json"]])
    assert any("middle_name" in note for note in done.notes)
    assert lakehouse.rows("serde_0.customers") == [
        {**content["per_file"]["serde-with-schema.json"], "middle_name": "L"}
    ]
    assert [lakehouse.rejected(f"serde_{number}") for number in range(4)] == [[]] * 4


def test_key_forms_identify_the_row_of_a_delete(lakehouse: Lakehouse) -> None:
    from event_factory import created, deleted

    asserted = expected(corpus("debezium_serde"))["key_forms_asserted"]
    assert [form.partition(" -> ")[2] for form in asserted] == ["{a:1}", "1", "{a:1}", "1", "null"]  # all are here
    forms = [
        '{"schema":{},"payload":{"id":0}}',
        '{"schema":{},"payload":1}',
        '{"id":2}',
        "3",
        '{"id":"4"}',
        None,
        "null",
    ]
    gone = []
    for id, key in enumerate(forms):
        delete = deleted(20 + id, id=id)
        value = json.loads(delete["value"])
        value["before"] = None
        gone.append({**delete, "key": key, "value": json.dumps(value)})
    lakehouse.run("key_forms", [*(created(10 + id, id=id, note=key) for id, key in enumerate([*forms, "none"])), *gone])
    assert [row["note"] for row in lakehouse.rows("key_forms.orders", "id")] == [None, "null", "none"]
    # A key that is null names no row: where `before` does not either, the delete cannot be applied, and must not be
    # lost.
    assert lakehouse.rejected("key_forms") == [
        ("shop.public.orders/0/25", "no_key"),
        ("shop.public.orders/0/26", "no_key"),
    ]


def test_all_types_of_mysql_with_base64_and_with_numeric_decimals(lakehouse: Lakehouse) -> None:
    """Six events of one row, in four tables: two databases, and in each of two systems events without `source`.

    Types are those of the one schema block that describes the envelope, wherever it comes in the topic:
    `full_types/0/5` has one of the bare row beside an envelope. A schema is that of its payload, "fields matched by
    `field`": its fields are no image, and tell nothing. For some columns the block contradicts the values, which would
    be rejected: the declaration is corrected.
    """
    from scripts.declared import declared_tables

    folder = corpus("flinkcdc_mysql_alltypes")
    truth = expected(folder)["source_truth_selected_columns"]
    by_file: dict[str, list[dict[str, Any]]] = {}
    for record in corpus_records(folder):
        by_file.setdefault(record["file"], []).append(record)
    base64, numeric, described = (
        by_file[f"debezium-data-schema-{name}.json"] for name in ("exclude", "exclude-with-numeric-decimal", "include")
    )
    bare = json.loads(described[1]["value"])
    assert {"id", "tiny_c"} <= {field["field"] for field in bare["schema"]["fields"]} and bare["payload"].keys() >= {
        "before",
        "after",
    }

    # The update as it is written with numbers for decimals, and what else these values stand for.
    update = json.loads(numeric[1]["value"], parse_float=Decimal)["after"]
    times = {"date_c": date(2020, 7, 17), "time_c": "18:00:22", "datetime3_c": datetime(2020, 7, 17, 18, 0, 22, 123000)}
    times |= {"datetime6_c": datetime(2020, 7, 17, 18, 0, 22, 123456), "timestamp_c": datetime(2020, 7, 17, 18, 33, 22)}
    snapshot = {"timestamp_c": datetime(2020, 7, 17, 18, 0, 22), "json_c": '{"key1": "value1"}'}  # of the row before it
    found = []
    for system, records in (("flinkcdc_base64", [*described, *base64]), ("flinkcdc_numeric", [*numeric, *described])):
        lakehouse.land(system, records)
        lakehouse.scaffold(system, keys={"full_types": ["tiny_c"]})
        declared = declared_tables(system, lakehouse.project / "models")
        assert len({str(one.table.columns) for one in declared.values()}) == 1
        for path in (lakehouse.project / "models" / "staging" / system).glob("*.sql"):
            text = path.read_text(encoding="utf-8")
            for column, kind in CORRECTED.items():
                text = re.sub(f"'{column}': '[^']*'", f"'{column}': '{kind}'", text)
            path.write_text(text, encoding="utf-8")
        lakehouse.build_landed(system)
        for identity, one in declared.items():
            (row,) = lakehouse.rows(f"{system}.{one.relation}")
            found.append((identity[0], row))
        # The three models read one topic, and each refuses what is not of its connector.
        refused = {"full_types/0/4": "other_connector", "full_types/0/5": "other_connector"}
        refused |= {f"full_types/0/{record['offset']}": "no_position" for record in records if record not in described}
        assert dict(lakehouse.rejected(system)) == refused

    assert len(found) == 6
    for table, row in found:
        wanted = update | times | (snapshot if table == "column_type_test_2jid2b" else {})
        assert row.keys() == wanted.keys()
        for name, value in row.items():
            told = wanted[name]
            if isinstance(value, bytes | bytearray):
                assert b64encode(value).decode() == told, (table, name)
            elif isinstance(value, float):
                single = name in ("real_c", "float_c")
                assert value == (struct.unpack("f", struct.pack("f", told))[0] if single else float(told)), (
                    table,
                    name,
                )
            elif isinstance(told, dict):
                assert json.loads(value) == told, (table, name)  # its schema block says string
            else:
                assert value == told if name in times else str(value) == str(told), (table, name)
    row = found[0][1]
    for name in (
        "decimal_c",
        "decimal_un_c",
        "decimal_un_z_c",
        "numeric_c",
        "big_decimal_c",
        "big_un_c",
        "year_c",
        "enum_c",
        "set_c",
    ):
        assert str(row[name]) == str(truth[name]), name
    assert (str(row["date_c"]), row["bit_c"].hex()) == (truth["date_c"], truth["bit_c (8 bytes LE)"])
    assert truth["time_c"].startswith(row["time_c"]) and json.loads(row["point_c"])["x"] == 1.0


GEOMETRIES = ("Point", "LineString", "Polygon", "MultiPoint", "MultiLineString", "MultiPolygon", "GeometryCollection")


def _geometry(data: BytesIO, within: str = "") -> str:
    """Well-known binary, little-endian, as the other project prints it: otherwise within a collection."""

    def points(depth: int) -> list[Any]:
        if depth == 0:
            return [int(number) for number in struct.unpack("<2d", data.read(16))]
        return [points(depth - 1) for _ in range(*struct.unpack("<I", data.read(4)))]

    order, kind = struct.unpack("<bI", data.read(5))
    name = GEOMETRIES[kind - 1]
    assert order == 1
    if kind <= 3:
        shown = json.dumps(points(kind - 1), separators=(",", ":"))
    else:
        parts = [_geometry(data, name) for _ in range(*struct.unpack("<I", data.read(4)))]
        shown = f"[{','.join(parts)}]"
    if within == "GeometryCollection":
        return name + shown.replace("[", "(").replace("]", ")")
    return shown if within else f"{name}{'' if kind == 7 else ' '}{shown}"


def test_all_types_of_mysql_with_schema_block(lakehouse: Lakehouse) -> None:
    folder = corpus("paimon_mysql_alltype")
    wanted = dict(expected(folder)["tables"]["paimon_sync_table.all_types_table"]["rows"][0])
    lakehouse.run("paimon_types", corpus_records(folder), keys={"all_types_table": ["pt", "_id"]})
    (row,) = lakehouse.rows("paimon_types.all_types_table")

    types = dict(lakehouse.table("paimon_types.all_types_table").dtypes)

    renamed = {name.split("(")[0]: value for name, value in wanted.items()}
    assert renamed.keys() - {"_date_epoch_day", "_time_ms"} == row.keys()
    assert renamed.pop("_bit") == list(row["_bit"])
    assert str(row["_date"]) == renamed["_date"] and renamed.pop("_date_epoch_day") == 19439
    assert row["_time"] == renamed.pop("_time") and renamed.pop("_time_ms") == 36803000
    assert row["_timestamp"].isoformat() == renamed.pop("_timestamp")
    renamed.pop("_date")
    for name in ("_bin", "_varbin", "_tinyblob", "_blob", "_mediumblob", "_longblob"):
        assert bytes(row[name]).decode() == renamed.pop(name).replace("\\0", "\0")
    for name in ("geometry", "linestring", "polygon", "multipoint", "multiline", "multipolygon", "geometrycollection"):
        assert _geometry(BytesIO(row[f"_{name}"]["wkb"])) == renamed.pop(f"_{name}"), name
    told = json.loads(renamed.pop("_point"))
    assert [row["_point"]["x"], row["_point"]["y"]] == told["coordinates"]
    assert (
        _geometry(BytesIO(row["_point"]["wkb"]))
        == f"{told['type']} {json.dumps(told['coordinates'], separators=(',', ':'))}"
    )
    assert {found["srid"] for found in row.values() if isinstance(found, dict)} == {None}
    for name, value in renamed.items():
        found = row[name]
        if name.startswith("_datetime") or name == "_timestamp0":
            assert found == datetime.fromisoformat(value), name
        elif name.startswith(("_float", "_real")) and types[name] == "float":
            assert found == struct.unpack("f", struct.pack("f", value))[0], name
        else:
            assert str(found) == str(value), name
    assert lakehouse.rejected("paimon_types") == []


def test_positions_compare_as_the_peers_assert(lakehouse: Lakehouse) -> None:
    from event_factory import PLACEHOLDER, created, deleted, event

    vectors = json.loads((corpus("hudi_ordering_cases") / "vectors.json").read_text(encoding="utf-8"))

    def mysql(number: int, offset: int, winner: str | None, **source: Any) -> dict[str, Any]:
        record = created(1, id=number, winner=winner) if winner else deleted(1, id=number)
        value = json.loads(record["value"])
        value["source"].update({"connector": "mysql", "db": "shop", "row": 0, "lsn": None, **source})
        return {**record, "value": json.dumps(value), "offset": offset}

    assert (vectors["equal_position"], vectors["incoming_seq_null"]) == ("incoming wins", "error")
    cases = vectors["mysql_seq_is_current_latest"] + [{"current": "7.7", "incoming": "7.7", "current_wins": False}]
    events = []
    for number, case in enumerate(cases):
        for offset, role in enumerate(("current", "incoming")):
            file, pos = case[role].split(".")
            events.append(mysql(number, 2 * number + offset, role, file=f"mysql-bin.{file}", pos=int(pos)))
    assert vectors["delete"] == "op d removes the row when it wins"
    for number, gone_at in ((40, 9), (41, 1000)):
        events.append(mysql(number, number, "current", file="mysql-bin.000007", pos=100))
        events.append(mysql(number, number + 2, None, file="mysql-bin.000007", pos=gone_at))
    # Without a place in the binlog: an error there, a reject here. Without a file too it is no error here: writers that
    # leave out
    # both are to be read, and sort before everything ("if file is null or '' → file_no = -1").
    events.append(mysql(0, 50, "no place", file="mysql-bin.000009", pos=None))
    events.append(mysql(0, 51, "no file", file=None, pos=None))

    def postgresql(
        number: int, lsn: int, op: str, offset: int, note: str | None = None, photo: str | None = None
    ) -> dict[str, Any]:
        row = None if op == "d" else {"id": number, "note": note, "photo": photo}
        record = event(op, lsn, row, {"id": number}, "toast", offset)
        columns = [
            {"field": "id", "type": "int32"},
            {"field": "note", "type": "string"},
            {"field": "photo", "type": "bytes"},
        ]
        schema = {"type": "struct", "fields": [{"field": "after", "type": "struct", "fields": columns}]}
        value = json.dumps({"schema": schema, "payload": json.loads(record["value"])}, separators=(",", ":"))
        return {**record, "value": value}

    left_out, picture = b64encode(PLACEHOLDER.encode()).decode(), b64encode(b"picture").decode()
    assert PLACEHOLDER in vectors["postgres"]["toast"] and "lower lsn is ignored" in vectors["postgres"]["order"]
    events += [postgresql(number, 100, "c", number, "stored", picture) for number in range(7)]
    events += [
        postgresql(0, 99, "u", 10, "late", None),
        postgresql(1, 1000, "u", 11, "newer", None),  # as a text it is before 99
        postgresql(2, 101, "u", 12, PLACEHOLDER, left_out),
        postgresql(3, 101, "u", 13, None, left_out),
        postgresql(4, 101, "d", 14),
        postgresql(5, 99, "d", 15),
        postgresql(6, 100, "u", 16, "equal", left_out),
    ]
    lakehouse.run("hudi", events)

    winners = [row["winner"] for row in lakehouse.rows("hudi.orders", "id")]
    assert winners == ["current" if case["current_wins"] else "incoming" for case in cases] + ["current"]
    assert lakehouse.rejected("hudi") == [("shop.public.orders/0/50", "no_position")]
    rows = [
        (row["id"], row["note"], row["photo"] and bytes(row["photo"])) for row in lakehouse.rows("hudi.toast", "id")
    ]
    assert rows == [
        (0, "stored", b"picture"),
        (1, "newer", None),
        (2, "stored", b"picture"),
        (3, None, b"picture"),
        (5, "stored", b"picture"),
        (6, "equal", b"picture"),
    ]


def _check_members(row: dict[str, Any], text: str) -> None:
    """Whether a row of `ddl_history` has all that the record tells of its table."""
    value = json.loads(text)
    (change,) = value.get("payload", value)["tableChanges"] or [{}]
    table = change.get("table") or {}
    assert row["table_comment"] == table.get("comment", change.get("comment"))
    assert row["default_charset"] == table.get("defaultCharsetName")
    assert row["attributes"] == table.get("attributes")
    for found, told in zip(row["columns"] or [], table.get("columns", []), strict=True):
        assert set(told) <= set(found)
        assert found == {name: told.get(name) for name in found}


def test_ddl_records_of_both_shapes_of_tencent(lakehouse: Lakehouse) -> None:
    folder = corpus("vendor_tencent_mysql_ddl")
    lakehouse.run("tencent_ddl", corpus_records(folder))
    found = lakehouse.rows("monitoring.tencent_ddl__ddl_history", "event_id")
    values = {
        f"{record['topic']}/{record['partition']}/{record['offset']}": record["value"]
        for record in corpus_records(folder)
    }
    wanted = sorted(expected(folder)["per_event"], key=lambda event: f"{event['topic']}/0/{event['offset']}")
    assert len(found) == len(wanted)
    for row, event in zip(found, wanted, strict=True):
        result = event["result"]
        for ours, theirs in {
            "server": "server",
            "database_name": "database",
            "kind": "kind",
            "ddl": "ddl",
            "table_change": "tableChange",
            "table_name": "table",
        }.items():
            assert row[ours] == result[theirs], (result["kind"], ours)
        assert row["renamed_from"] == result.get("renamed_from"), result["ddl"]
        assert row["primary_key"] == result["primaryKey"]
        told = [{name: column[name] for name in result["columns"][0]} for column in row["columns"] or []]
        assert told == [{name: column.get(name) for name in result["columns"][0]} for column in result["columns"]]
        _check_members(row, values[row["event_id"]])
        for name, value in result["position"].items():
            if value is not None:
                assert row["position"][name] == str(value).lower() if isinstance(value, bool) else str(value), name


def test_types_are_those_of_the_newest_ddl_over_several_landings(lakehouse: Lakehouse) -> None:
    """Spark reads the newest of several files first."""
    from event_factory import created

    from scripts.declared import declared_tables

    def ddl(offset: int, *columns: str) -> dict[str, Any]:
        told = [
            {"name": name, "jdbcType": 91, "typeName": "DATE", "position": at} for at, name in enumerate(columns, 1)
        ]
        change = {"type": "ALTER", "id": '"shop"."orders"', "table": {"primaryKeyColumnNames": ["id"], "columns": told}}
        source = {"connector": "mysql", "name": "shop", "db": "shop", "table": "orders"}
        value = {"source": source, "databaseName": "shop", "ddl": "ALTER TABLE orders", "tableChanges": [change]}
        return {"topic": "shop", "partition": 0, "offset": offset, "key": None, "value": json.dumps(value)}

    row = created(10, id=1, ordered=19000, paid=19001)
    row["value"] = row["value"].replace('"postgresql"', '"mysql"')
    for landing in ([ddl(1, "id", "ordered"), row], [ddl(2, "id", "ordered", "paid")]):
        lakehouse.land("newest_ddl", landing)
    lakehouse.scaffold("newest_ddl")

    (declared,) = declared_tables("newest_ddl", lakehouse.project / "models").values()
    assert declared.table.columns == {"id": "Date", "ordered": "Date", "paid": "Date"}


def test_ddl_record_within_a_history_record(lakehouse: Lakehouse) -> None:
    folder = corpus("paimon_mysql_ddl_event")
    lakehouse.run("paimon_ddl", corpus_records(folder))
    row = lakehouse.rows("monitoring.paimon_ddl__ddl_history")[0]
    assert (row["table_change"], row["database_name"], row["table_name"]) == ("ALTER", "tinyint1_not_bool_test", "t1")
    payload = json.loads(corpus_records(folder)[0]["value"])["payload"]
    record = json.loads(payload["historyRecord"])
    (change,) = record["tableChanges"]
    assert (row["kind"], row["ddl"]) == ("ALTER TABLE", record["ddl"])
    assert [column["name"] for column in row["columns"]] == [column["name"] for column in change["table"]["columns"]]
    assert row["primary_key"] == change["table"]["primaryKeyColumnNames"]


@pytest.mark.parametrize(
    ("name", "file", "system"),
    [
        ("risingwave_mysql_customers", "debezium_log.1", "risingwave_mysql_blocks"),
        ("flinkcdc_pipeline_customers_products", "debezium-json-with-schema.txt", "flinkcdc_schema"),
    ],
)
def test_corpus_with_schema_blocks_gives_the_same_rows(lakehouse: Lakehouse, name: str, file: str, system: str) -> None:
    folder = corpus(name)
    lines = [line for line in (folder / file).read_text(encoding="utf-8").splitlines() if line.startswith("{")]
    tables = expected(folder)["tables"]
    records = [{"topic": "t", "partition": 0, "offset": at, "value": line} for at, line in enumerate(lines)]
    lakehouse.run(system, records, keys={table: content["key"] for table, content in tables.items()})
    for table, content in tables.items():
        rows = in_order(lakehouse.rows(f"{system}.{table.split('.')[-1]}"), content["key"])
        wanted = in_order(content["rows"], content["key"])
        for row in [*rows, *wanted]:
            if "weight" in row:  # a FLOAT
                row["weight"] = struct.unpack("f", struct.pack("f", row["weight"]))[0]
        columns = dict.fromkeys(wanted[-1])  # of which some came later: older rows have none
        assert rows == [columns | row for row in wanted], table
    assert lakehouse.rejected(system) == []
