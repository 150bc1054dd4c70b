"""Captures of real databases, landed in any order and merged: the rows that the databases had."""

import os
import random
from functools import cache
from typing import Any

import pytest
from captures import EVENTS, _declared, captured, differences, expected, no_shards, records, table_of, with_rejects
from conftest import Lakehouse

ORDERS = 100 if "SOAK_WORLDS" in os.environ else 25


def test_capture_of_a_killed_connector_has_no_log_that_starts_over(lakehouse: Lakehouse) -> None:
    system = "seats"
    lakehouse.run(system, EVENTS / f"{system}.jsonl")

    assert differences(lakehouse, expected(system), system) == []
    assert lakehouse.resets(system) == {}  # the engine was killed: there are redeliveries
    reasons = {reason.split(":")[0] for _, reason in lakehouse.rejected(system)}
    assert reasons <= {"value_not_exact"}
    assert {event.split("/")[0].rsplit(".", 1)[1] for event, _ in lakehouse.rejected(system)} <= {"all_types"}


def test_capture_in_three_shuffled_parts_has_no_log_that_starts_over(lakehouse: Lakehouse) -> None:
    """The connector was killed: until the original of a redelivery lands, its log looks as if it had started over."""
    rows = [{**one, "topic": one["topic"].replace("seats", "thirds", 1)} for one in records("seats")]
    random.Random(33).shuffle(rows)
    for part in range(3):
        lakehouse.run("thirds", rows[part::3])
    assert differences(lakehouse, expected("seats"), "thirds") == []
    assert lakehouse.resets("thirds") == {}


@pytest.mark.parametrize("system", ["shop", pytest.param("billing", marks=pytest.mark.soak)])
def test_capture_in_many_orders_gives_the_databases_rows(lakehouse: Lakehouse, system: str) -> None:
    """Many databases with the same history, shards of each table: the events of each come in an order of its own, some
    of them again under new offsets, split at chance into two runs. The next test has the tables that are left out:
    those that shards cannot be and, for time, those of all types (of PostgreSQL)."""
    wanted, ddl, rows = expected(system), *captured(system)
    skip = {"public.all_types", "billing.all_types", *no_shards(wanted, rows)}
    some = [record for record in rows if not record["value"] or table_of(record) in wanted.keys() - skip]
    name = f"{system}_orders"
    runs: list[list[dict[str, Any]]] = [[], []]
    for case in range(ORDERS):
        chance = random.Random(case)
        for number, record in enumerate([*some, *chance.sample(some, len(some) // 5)]):
            value = record["value"] and record["value"].replace(f'"name":"{system}"', f'"name":"case{case:02}"')
            chance.choice(runs).append({**record, "offset": 1000 * case + number, "value": value})
    for number, run in enumerate(runs):
        random.Random(number).shuffle(run)
        lakehouse.run(name, run if number else ddl + run, servers="shards")

    tables = {d.table.name for d in _declared(lakehouse, name)}
    assert len(tables) >= 10 and tables == wanted.keys() - skip
    read, rejecting = cache(lakehouse.rows), with_rejects(lakehouse, name)
    for case in range(ORDERS):

        def of_case(relation: str, shard: str = f"case{case:02}") -> list[dict[str, Any]]:
            return [row for row in read(relation) if row["shard"] == shard]

        assert differences(lakehouse, wanted, name, skip, of_case, rejecting) == [], f"case {case}"


@pytest.mark.parametrize("system", ["shop", "billing"])
def test_shuffled_capture_gives_the_databases_rows(lakehouse: Lakehouse, system: str) -> None:
    """Tables that shards cannot be, and PostgreSQL's of all types, in an order by chance, some events twice, in two
    runs.
    """
    shuffled = random.Random(7)
    wanted, ddl, rows = expected(system), *captured(system)
    alone = no_shards(wanted, rows) | ({"public.all_types"} if system == "shop" else set())
    some = [record for record in rows if not record["value"] or table_of(record) in alone]
    # A row without a key is not told from an equal one.
    known = [record for record in some if record["key"] or '"op":"t"' in (record["value"] or "")]
    repeats = [{**record, "offset": record["offset"] + 100_000} for record in shuffled.sample(known, len(known) // 5)]
    mixed = some + repeats
    shuffled.shuffle(mixed)
    name = f"{system}_shuffled"
    middle = len(mixed) // 2
    lakehouse.run(name, ddl + mixed[:middle])
    lakehouse.run(name, mixed[middle:])

    assert len(alone) >= 3 and {d.table.name for d in _declared(lakehouse, name)} == alone
    assert differences(lakehouse, wanted, name, wanted.keys() - alone) == []
