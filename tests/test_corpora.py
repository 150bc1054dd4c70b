"""Events that other projects and vendors ship, and the state that they must give: the corpora beside the repository."""

import json
import re
import struct
from base64 import b64encode
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from conftest import Lakehouse, corpus, corpus_records

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
    tables = expected(folder)["tables"]
    keys = {table: content["key"] for table, content in tables.items()}
    lakehouse.run(name, corpus_records(folder), keys=keys)

    for table, content in tables.items():
        rows = lakehouse.rows(f"{name}.{table.split('.')[-1]}")
        if content.get("types", {}).get("weight") == "FLOAT":
            for row in rows + content["rows"]:
                row["weight"] = struct.unpack("f", struct.pack("f", row["weight"]))[0]
        assert in_order(rows, content["key"]) == in_order(content["rows"], content["key"]), table
    assert lakehouse.rejected(name) == []


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
    path.write_text("\n".join(line for line in lines if line.strip()) + "\n", encoding="utf-8")
    lakehouse.run("identity", path, keys={"products": ["id"]})

    assert [reason for _, reason in lakehouse.rejected("identity")] == ["no_key"]
    ids = [row["id"] for row in lakehouse.rows("identity.products", "id")]
    assert ids == list(range(101, 112))


def test_null_value_between_events_is_a_tombstone(lakehouse: Lakehouse) -> None:
    folder = corpus("paimon_mysql_nullvalue")
    lakehouse.run("nullvalue", corpus_records(folder), keys={"test": ["id"]})

    assert lakehouse.rows("nullvalue.test", "id") == [{"id": 1, "value": "A"}, {"id": 2, "value": "B"}]
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
        rows = lakehouse.spark.sql(f"select {names} from silver.evolution__{table} order by {names}").collect()
        assert [row.asDict() for row in rows] == content["tables"][table]["rows"], table

    lakehouse.run("evolution_keyed", corpus_records(folder), keys={"t1": ["id"], "t2": ["id"]})
    assert lakehouse.rows("evolution_keyed.t2", "id") == content["with_primary_key_id"]["t2"]["rows"]


def test_temporal_types_of_postgresql(lakehouse: Lakehouse) -> None:
    folder = corpus("doris_postgres_time_types")
    lakehouse.run("doris", corpus_records(folder), keys={"time_example": ["id"]})
    row = lakehouse.spark.sql(
        """
        select id, date_format(timestamp_without_timezone, "yyyy-MM-dd'T'HH:mm:ss") as timestamp_without_timezone,
            date_format(timestamp_with_timezone, "yyyy-MM-dd'T'HH:mm:ssX") as timestamp_with_timezone,
            cast(date_only as string) as date_only, time_without_timezone, time_with_timezone, interval_period
        from doris.time_example
        """
    ).collect()[0]
    assert row.asDict() == expected(folder)["tables"]["public.time_example"]["rows"][0]


def test_schemas_keys_and_additive_columns_of_the_serde(lakehouse: Lakehouse) -> None:
    folder = corpus("debezium_serde")
    content = expected(folder)
    by_file = {record["file"]: record for record in corpus_records(folder)}
    for number, name in enumerate(["serde-with-schema.json", "serde-without-schema.json", "serde-update.json"]):
        lakehouse.run(f"serde_{number}", [by_file[name]], keys={"customers": ["id"]})
        wanted = content["per_file"][name]
        assert lakehouse.rows(f"serde_{number}.customers") == [wanted.get("after", wanted)]
    lakehouse.run("serde_3", [by_file["serde-unwrapped.json"]], "flattened", {"mysql-server-1.inventory.customers": ["id"]})
    assert lakehouse.rows("serde_3.mysql_server_1_inventory_customers") == [content["per_file"]["serde-unwrapped.json"]]
    done = lakehouse.run("serde_0", [by_file["serde-unknown-property.json"]])
    assert any("middle_name" in note for note in done.notes)
    assert lakehouse.rows("serde_0.customers")[0]["middle_name"] == "L"


def test_key_forms_identify_the_row_of_a_delete(lakehouse: Lakehouse) -> None:
    from event_factory import created, deleted

    asserted = expected(corpus("debezium_serde"))["key_forms_asserted"]
    assert [form.partition(" -> ")[2] for form in asserted] == ["{a:1}", "1", "{a:1}", "1", "null"]  # all are here
    forms = ['{"schema":{},"payload":{"id":0}}', '{"schema":{},"payload":1}', '{"id":2}', "3", '{"id":"4"}', None, "null"]
    gone = []
    for id, key in enumerate(forms):
        delete = deleted(20 + id, id=id)
        value = json.loads(delete["value"])
        value["before"] = None
        gone.append({**delete, "key": key, "value": json.dumps(value)})
    lakehouse.run("key_forms", [*(created(10 + id, id=id, note=key) for id, key in enumerate([*forms, "none"])), *gone])
    assert [row["note"] for row in lakehouse.rows("key_forms.orders", "id")] == [None, "null", "none"]
    # A key that is null names no row: where `before` does not either, the delete cannot be applied, and must not be lost.
    assert lakehouse.rejected("key_forms") == [("shop.public.orders/0/25", "no_key"), ("shop.public.orders/0/26", "no_key")]


def test_all_types_of_mysql_with_base64_and_with_numeric_decimals(lakehouse: Lakehouse) -> None:
    from scripts.scaffold import declared_tables

    folder = corpus("flinkcdc_mysql_alltypes")
    truth = expected(folder)["source_truth_selected_columns"]
    by_file: dict[str, list[dict[str, Any]]] = {}
    for record in corpus_records(folder):
        by_file.setdefault(record["file"], []).append(record)
    with_schema = by_file["debezium-data-schema-include.json"][0]
    tables = {}
    for system, name, comes_first in (
        ("flinkcdc_base64", "debezium-data-schema-exclude.json", True),
        ("flinkcdc_numeric", "debezium-data-schema-exclude-with-numeric-decimal.json", False),
    ):
        # Without schema block and without source: the types are those of the schema block of the same topic, wherever it comes.
        # For some columns that block contradicts the values, which would be rejected: the declaration is corrected.
        lakehouse.land(system, [with_schema, *by_file[name]] if comes_first else [*by_file[name], with_schema])
        lakehouse.scaffold(system, keys={"full_types": ["tiny_c"]})
        plain, described = (declared.table.columns for declared in declared_tables(system, lakehouse.project / "models").values())
        assert plain == described
        for path in (lakehouse.project / "models" / "staging" / system).glob("*.sql"):
            text = path.read_text(encoding="utf-8")
            for column, declared in CORRECTED.items():
                text = re.sub(f"'{column}': '[^']*'", f"'{column}': '{declared}'", text)
            path.write_text(text, encoding="utf-8")
        lakehouse.run(system, by_file[name])
        relation = "full_types"
        rows = lakehouse.spark.sql(f"select * except (id) from {system}.{relation}").collect()
        tables[system] = [str(row) for row in rows]
        row = lakehouse.spark.sql(
            f"select decimal_c, decimal_un_c, decimal_un_z_c, numeric_c, big_decimal_c, big_un_c, lower(hex(bit_c)) as bit_c, "
            f"date_c, time_c, year_c, enum_c, set_c, point_c from silver.{system}__{relation}"
        ).collect()[0]
        assert str(row.decimal_c) == truth["decimal_c"]
        assert str(row.decimal_un_c) == truth["decimal_un_c"]
        assert str(row.decimal_un_z_c) == truth["decimal_un_z_c"]
        assert str(row.numeric_c) == truth["numeric_c"]
        assert Decimal(row.big_decimal_c) == Decimal(truth["big_decimal_c"])
        assert str(row.big_un_c) == truth["big_un_c"]
        assert row.bit_c == truth["bit_c (8 bytes LE)"]
        assert (str(row.date_c), row.time_c, row.year_c) == ("2020-07-17", "18:00:22", 2021)
        assert (row.enum_c, row.set_c) == ("red", "a,b")
        assert json.loads(row.point_c)["x"] == 1.0  # its schema block says string
    assert tables["flinkcdc_base64"] == tables["flinkcdc_numeric"]


def test_all_types_of_mysql_with_schema_block(lakehouse: Lakehouse) -> None:
    folder = corpus("paimon_mysql_alltype")
    wanted = dict(expected(folder)["tables"]["paimon_sync_table.all_types_table"]["rows"][0])
    lakehouse.run("paimon_types", corpus_records(folder), keys={"all_types_table": ["pt", "_id"]})
    row = lakehouse.rows("paimon_types.all_types_table")[0]

    renamed = {name.split("(")[0]: value for name, value in wanted.items()}
    assert renamed.pop("_bit") == list(row["_bit"])
    assert str(row["_date"]) == renamed["_date"] and renamed.pop("_date_epoch_day") == 19439
    assert row["_time"] == renamed.pop("_time") and renamed.pop("_time_ms") == 36803000
    assert row["_timestamp"].isoformat() == renamed.pop("_timestamp")
    renamed.pop("_date")
    for name in ("_bin", "_varbin", "_tinyblob", "_blob", "_mediumblob", "_longblob"):
        assert bytes(row[name]).decode() == renamed.pop(name).replace("\\0", "\0")
    for name in (
        "_geometry",
        "_linestring",
        "_polygon",
        "_multipoint",
        "_multiline",
        "_multipolygon",
        "_geometrycollection",
    ):
        assert row[name]["wkb"] and renamed.pop(name)
    assert (row["_point"]["x"], row["_point"]["y"]) == (1.0, 1.0) and renamed.pop("_point")
    for name, value in renamed.items():
        found = row[name]
        if name.startswith("_datetime") or name == "_timestamp0":
            assert found == datetime.fromisoformat(value), name
        elif isinstance(found, Decimal):
            assert found == Decimal(value), name
        elif isinstance(value, float):
            assert found == pytest.approx(value, rel=1e-7), name
        else:
            assert str(found) == str(value), name


def test_positions_compare_as_the_peers_assert(lakehouse: Lakehouse) -> None:
    from event_factory import PLACEHOLDER, created, event

    vectors = json.loads((corpus("hudi_ordering_cases") / "vectors.json").read_text(encoding="utf-8"))

    def mysql(number: int, offset: int, winner: str, **source: Any) -> dict[str, Any]:
        record = created(1, id=number, winner=winner)
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
    # Without a place in the binlog: an error there, a reject here. Without a file too it is no error here: writers that leave out
    # both are to be read, and sort before everything ("if file is null or '' → file_no = -1").
    events.append(mysql(0, 50, "no place", file="mysql-bin.000009", pos=None))
    events.append(mysql(0, 51, "no file", file=None, pos=None))

    def postgresql(
        number: int, lsn: int, op: str, offset: int, note: str | None = None, photo: str | None = None
    ) -> dict[str, Any]:
        row = None if op == "d" else {"id": number, "note": note, "photo": photo}
        record = event(op, lsn, row, {"id": number}, "toast", offset)
        columns = [{"field": "id", "type": "int32"}, {"field": "note", "type": "string"}, {"field": "photo", "type": "bytes"}]
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
    assert winners == ["current" if case["current_wins"] else "incoming" for case in cases]
    assert lakehouse.rejected("hudi") == [("shop.public.orders/0/50", "no_position")]
    rows = [(row["id"], row["note"], row["photo"] and bytes(row["photo"])) for row in lakehouse.rows("hudi.toast", "id")]
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
    values = {f"{record['topic']}/{record['partition']}/{record['offset']}": record["value"] for record in corpus_records(folder)}
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

    from scripts.scaffold import declared_tables

    def ddl(offset: int, *columns: str) -> dict[str, Any]:
        told = [{"name": name, "jdbcType": 91, "typeName": "DATE", "position": at} for at, name in enumerate(columns, 1)]
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
        found = [{column: row[column] for column in other} for row, other in zip(rows, wanted, strict=True)]
        assert found == wanted, table
    assert lakehouse.rejected(system) == []
