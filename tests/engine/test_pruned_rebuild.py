"""A change log that is rebuilt after `make maintain KEEP=` keeps the rows of pruned records, and gets what is declared
now: epochs, other types, further columns."""

from typing import Any

from conftest import Lakehouse
from event_factory import created
from test_prune import age, batches, prune
from test_resets import HISTORY, RESTORED, at, epochs, of_table  # noqa: F401
from test_types_that_change import BIG, CHANGES, DOUBLE, Field, of_era, of_schema

Record = dict[str, Any]
LOG = "_cdc_position, _cdc_kind, _cdc_op, _cdc_reject_reason, _cdc_event_id"


def pruned(lakehouse: Lakehouse, system: str, *landings: list[Record]) -> None:
    """Landings of which only the newest one is left in bronze."""
    for records in landings:
        lakehouse.run(system, records)
    age(lakehouse, system, len(landings))
    prune(lakehouse, system)
    assert [batch for batch, _ in batches(lakehouse, system)] == [len(landings)]


def log(lakehouse: Lakehouse, system: str, table: str = "orders", columns: str = "id, note") -> list[tuple[Any, ...]]:
    rows = lakehouse.sql(f"select {columns}, {LOG} from staging.stg_{system}__{table} order by _cdc_event_id")
    return [tuple(map(str, row)) for row in rows]


def test_an_epoch_moves_the_rows_of_records_that_are_not_there_any_more(
    lakehouse: Lakehouse,
    epochs: Any,  # noqa: F811
) -> None:
    """As if it had been declared before the first record landed. One table has one topic, the other has two."""
    topics = {"orders": ["shop.public.orders"], "lines": ["shop.public.lines", "shop2.public.lines"]}
    old, new, last = (
        [
            {**of_table(table, record), "topic": topic}
            for table, names in topics.items()
            for topic in names
            for record in some
        ]
        for some in (
            HISTORY,
            [*RESTORED, {**HISTORY[0], "offset": 9, "value": "{"}],
            [at(20, created(400, id=4, note="x"))],
        )
    )
    declared = [f"{{}},shop.public.{table},0,3,,1" for table in topics]
    epochs(*(one.format("early") for one in declared))
    lakehouse.run("early", old + new + last)
    pruned(lakehouse, "epochal", old, new, last)
    assert lakehouse.rows("epochal.orders", "id") != lakehouse.rows("early.orders", "id")

    epochs(*(one.format(system) for one in declared for system in ("epochal", "early")))
    done = lakehouse.run("epochal", [])
    assert sum("epochs changed" in note for note in done.notes) == 2
    for table in topics:
        assert log(lakehouse, "epochal", table) == log(lakehouse, "early", table)
        assert lakehouse.rows(f"epochal.{table}", "id") == lakehouse.rows(f"early.{table}", "id")
    assert lakehouse.resets("epochal") == lakehouse.resets("early")


def test_pruned_rows_get_the_types_and_columns_that_are_declared_now(lakehouse: Lakehouse) -> None:
    wrong = {**of_era(3, 0), "value": "{"}
    pruned(lakehouse, "kept_types", [of_era(1, 0), wrong], [of_era(2, 0)])
    before = log(lakehouse, "kept_types", columns="id")
    rejected = lakehouse.rejected("kept_types")
    lakehouse.land("kept_types", [of_era(4, 1)])
    done = lakehouse.scaffold("kept_types")
    assert lakehouse._build.build(lakehouse.spark, ["kept_types"], [done], print) == 0
    assert log(lakehouse, "kept_types", columns="id")[:3] == before and rejected == lakehouse.rejected("kept_types")
    types = dict(lakehouse.table("kept_types.orders").dtypes)
    assert {name: types[name] for name in CHANGES} == {name: change[4] for name, change in CHANGES.items()}
    for row in lakehouse.printed("kept_types.orders", "id"):
        era = int(row["id"] == "4")
        assert {name: row[name] for name in CHANGES} == {name: change[5 + era] for name, change in CHANGES.items()}


def test_what_pruned_rows_cannot_be_is_refused(lakehouse: Lakehouse) -> None:
    fields: dict[str, Field] = {"n": BIG}
    pruned(lakehouse, "kept_not", [of_schema(1, fields, {"n": 2**53 + 1})], [of_schema(2, fields, {"n": 2})])
    before = log(lakehouse, "kept_not", columns="id, n")
    lakehouse.land("kept_not", [of_schema(3, {"n": DOUBLE}, {"n": 0.5})])
    told: list[str] = []
    assert lakehouse._build.build(lakehouse.spark, ["kept_not"], [lakehouse.scaffold("kept_not")], told.append) > 0
    assert "column n was bigint and is double now, and" in "\n".join(told)
    assert "make maintain has pruned batches up to 1 (KEEP)" in "\n".join(told)
    assert log(lakehouse, "kept_not", columns="id, n") == before
