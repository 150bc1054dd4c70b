"""Types that records of earlier landings tell."""

import json
from typing import Any

import pytest
from conftest import Lakehouse
from event_factory import created, event, of_mysql
from test_types import CONNECT, DEBEZIUM, SECOND, decimal, unscaled

from scripts.errors import LakehouseError


def priced(lsn: int, scale: int, price: int, snapshot: str = "false", **others: str) -> dict[str, Any]:
    """An event with a schema block that says how many digits of `price` stand behind the point."""
    fields: list[dict[str, Any]] = [{"type": "int32", "field": "id"}]
    fields.append({"type": "bytes", "name": CONNECT + "Decimal", "parameters": decimal(10, scale), "field": "price"})
    fields += [{"type": "int64", "name": DEBEZIUM + f"time.{kind}", "field": name} for name, kind in others.items()]
    schema = {"type": "struct", "fields": [{"type": "struct", "fields": fields, "optional": True, "field": "after"}]}
    row = {"id": lsn % 10, "price": unscaled(price), **dict.fromkeys(others, SECOND * 1000)}
    record = event("r" if snapshot == "true" else "c", lsn, row, snapshot=snapshot)
    return {**record, "value": json.dumps({"schema": schema, "payload": json.loads(record["value"])})}


def test_a_column_that_is_written_in_another_way_is_read_so_or_refused(lakehouse: Lakehouse) -> None:
    """Another scale, another unit: every value would fit the declared type, and be another one."""

    def prices() -> list[tuple[Any, ...]]:
        return lakehouse.sql("select id, cast(price as string) from rescaled.orders order by id")

    lakehouse.run("rescaled", [priced(11, 2, 1234), priced(12, 2, 500)])
    # A batch may have events of both kinds, in any order of its partitions; and dbt may run alone.
    lakehouse.land("rescaled", [priced(22, 3, 1234), priced(23, 2, 700)])
    assert lakehouse.dbt("run", "--select", "source:bronze.rescaled+").success
    assert prices() == [(1, "12.34"), (2, "5.00"), (3, "7.00")]
    assert lakehouse.rejected("rescaled") == [("shop.public.orders/0/22", "undeclared_schema: price")]
    done = lakehouse.build_landed("rescaled")
    assert any("column price was Decimal(10,2); new events have another type" in note for note in done.notes)
    for late in ([], [priced(13, 2, 1), priced(24, 3, 1)]):
        lakehouse.run("rescaled", late)
        assert prices()[:3] == [(1, "12.340"), (2, "1.234"), (3, "7.000")]
    assert prices()[3:] == [(4, "0.001")] and lakehouse.rejected("rescaled") == []
    staging = lakehouse.project / "models" / "staging" / "rescaled" / "stg_rescaled__orders.sql"
    assert "'price': 'Decimal(10,2) | Decimal(10,3)'," in staging.read_text()
    staging.write_text(staging.read_text() + "{# edited #}\n")
    lakehouse.land("rescaled", [priced(35, 4, 1)])
    with pytest.raises(LakehouseError, match=r"declare it 'Decimal\(10,2\) \| Decimal\(10,3\) \| Decimal\(10,4\)' in"):
        lakehouse.scaffold("rescaled")

    for system, records, found in (
        ("rescaled_at_once", [priced(11, 2, 1234), priced(12, 3, 500)], ["12.340", "0.500"]),
        ("reunited_at_once", [priced(11, 2, 1, at="Timestamp"), priced(12, 2, 1, at="MicroTimestamp")], ["0.01"] * 2),
    ):
        lakehouse.run(system, records)
        assert lakehouse.sql(f"select cast(price as string) from {system}.orders order by id") == [
            (price,) for price in found
        ]

    def altered(at: int, length: int, scale: int | None = None) -> list[dict[str, Any]]:
        """A DDL record that gives two columns so many digits behind the second and the point, and a row."""
        scale = length if scale is None else scale
        columns = [{"name": "id", "typeName": "INT"}, {"name": "at", "typeName": "DATETIME", "length": length}]
        columns.append({"name": "price", "typeName": "DECIMAL", "length": 10, "scale": scale})
        change = {
            "type": "CREATE",
            "id": '"public"."orders"',
            "table": {"primaryKeyColumnNames": ["id"], "columns": columns},
        }
        ddl = {"source": {"connector": "mysql", "db": "public"}, "ddl": "ALTER", "tableChanges": [change]}
        row = of_mysql(
            event("c", 10 + at, {"id": at, "at": SECOND * (1000 if length <= 3 else 10**6), "price": unscaled(1234)})
        )
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
        (
            "altered_price",
            altered(9, 3, scale=6),
            r"price is declared Decimal\(10,3\), and new events have Decimal\(10,6\)",
        ),
    ):
        for landing in (ddl, row):  # whose rows come with a later run
            lakehouse.land(system, [landing])
            with pytest.raises(LakehouseError, match=reason):
                lakehouse.scaffold(system)


@pytest.mark.loader
def test_ddl_records_that_landed_before_a_row_give_its_types(lakehouse: Lakehouse) -> None:
    """As they do where a run lands what there is every minute."""
    from scripts.observe import Bronze
    from scripts.scaffold import scaffold

    def ddl(at: int, *columns: dict[str, Any]) -> dict[str, Any]:
        change = {
            "type": "ALTER",
            "id": '"public"."orders"',
            "table": {"primaryKeyColumnNames": ["id"], "columns": columns},
        }
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


def test_a_new_column_of_two_types_is_read_as_both(lakehouse: Lakehouse) -> None:
    """It came with one scale and had another one before the next run."""
    lakehouse.run("new_rescaled", [event("c", 11, {"id": 1})])
    lakehouse.run("new_rescaled", [priced(22, 2, 1234), priced(23, 4, 12345)])
    found = lakehouse.sql("select id, cast(price as string) from new_rescaled.orders order by id")
    assert found == [(1, None), (2, "12.3400"), (3, "1.2345")]
