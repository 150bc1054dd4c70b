"""Versions of rows: against a fold in plain Python, in any order and any number of appends, on both axes of time."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from conftest import Lakehouse
from event_factory import PLACEHOLDER, created, deleted, event, truncated, updated

Record = dict[str, Any]
Version = tuple[Any, ...]
START = 1700000000000  # milliseconds at position 0


def write_model(lakehouse: Lakehouse, system: str) -> None:
    folder = lakehouse.project / "models" / "history" / system
    folder.mkdir(parents=True)
    config = f"{{{{ config(alias = '{system}__orders') }}}}"
    text = f"{config}\n\n{{{{ debezium_history(changes = ref('stg_{system}__orders'), keys = ['id']) }}}}\n"
    (folder / f"history_{system}__orders.sql").write_text(text)


def build(lakehouse: Lakehouse, system: str, records: list[Record]) -> None:
    lakehouse.run(system, records)
    assert lakehouse.dbt("run", "--select", f"history_{system}__orders").success


def versions(records: list[Record]) -> set[Version]:
    """The versions of all rows: id, note, version, position, end, valid from, valid to; times are milliseconds."""
    changes = {}
    for record in records:
        value = json.loads(record["value"])
        changes[value["source"]["lsn"], value["op"]] = value
    found: set[Version] = set()
    open_versions: dict[int, list[Any]] = {}
    clocks: dict[int, int] = {}
    truncated_at = 0
    for (lsn, op), value in sorted(changes.items()):
        at = value["source"]["ts_ms"] - START
        if op == "t":
            truncated_at = max(truncated_at, at)
            for key, (row, since, began) in open_versions.items():
                found.add((key, *row, since, lsn, began, max(at, clocks[key])))
            open_versions.clear()
            continue
        row = (
            value["after"] or value["before"] or json.loads(next(one["key"] for one in records if one["offset"] == lsn))
        )
        key = row["id"]
        clocks[key] = at = max(clocks.get(key, 0), at, truncated_at)
        known = open_versions.pop(key, None)
        if op == "d":
            if known:
                found.add((key, *known[0], known[1], lsn, known[2], at))
            continue
        before = known[0] if known else (None, None)
        now = tuple(
            old if row[name] == PLACEHOLDER else row[name]
            for name, old in zip(("note", "version"), before, strict=True)
        )
        if known and known[0] == now:
            open_versions[key] = known
            continue
        if known:
            found.add((key, *known[0], known[1], lsn, known[2], at))
        open_versions[key] = [now, lsn, at]
    return found | {(key, *row, since, None, began, None) for key, (row, since, began) in open_versions.items()}


def stored(lakehouse: Lakehouse, system: str) -> set[Version]:
    place = "cast(substring({0}, 26, 20) as bigint)"  # the second half of a PostgreSQL position is the lsn
    columns = ", ".join(place.format(name) for name in ("_cdc_position", "_cdc_end_position"))
    times = ", ".join(f"unix_millis({name}) - {START}" for name in ("_cdc_valid_from", "_cdc_valid_to"))
    query = (
        f"select id, note, version, {columns}, {times}, _cdc_known_from, _cdc_known_to from history.{system}__orders"
    )
    rows = lakehouse.sql(query)
    assert len(rows) == len(set(rows))
    return set(rows)


def random_records(rng: random.Random, number: int, rows: int) -> list[Record]:
    """Changes of some rows, and two truncates.

    Some leave a value out or repeat one; the clock runs backwards at times.
    """
    records = []
    for lsn in range(10, 10 + number):
        key, kind = rng.randrange(1, rows + 1), rng.random()
        if lsn % (number // 2) == 20:
            record = truncated(lsn)
        elif kind < 0.15:
            record = deleted(lsn, id=key)
        else:
            record = updated(
                lsn, id=key, note=rng.choice(["a", "b", None, PLACEHOLDER]), version=rng.choice(["s", "t"])
            )
        value = json.loads(record["value"])
        value["source"]["ts_ms"] -= rng.choice([0, 0, 0, 5])
        records.append({**record, "value": json.dumps(value)})
    return [created(1, id=1, note="a", version="s"), *records]


def test_versions_and_what_was_known_of_them_are_those_of_a_fold_in_python(lakehouse: Lakehouse) -> None:
    rng, system = random.Random(0), "versions"
    first, *records = random_records(rng, 400, rows=50)
    rng.shuffle(records)
    landed: list[Record] = []
    write_model(lakehouse, system)
    known: dict[Version, tuple[int, int | None]] = {}
    closed: set[Version] = set()
    for append in range(1, 5):
        new = [first] if append == 1 else []
        new += records[(append - 1) * 100 : append * 100]
        redelivered = [
            {**one, "offset": one["offset"] + 1000 * append} for one in rng.sample(landed, min(10, len(landed)))
        ]
        landed += new
        build(lakehouse, system, new + redelivered)
        now = versions(landed)
        for version in known.keys() - now:
            closed.add((*version, known.pop(version)[0], append))
        for version in now - known.keys():
            known[version] = (append, None)
        everything = closed | {(*version, *of) for version, of in known.items()}
        assert len(now) > 40 and stored(lakehouse, system) == everything, f"append {append}"
    assert lakehouse.dbt("run", "--full-refresh", "--select", f"history_{system}__orders").success
    assert {row[:-2] for row in stored(lakehouse, system)} == versions(landed)


def test_a_history_answers_what_was_true_then_and_what_was_known_then(lakehouse: Lakehouse, project: Path) -> None:
    """`make run … HISTORY=orders` writes it; the time of landing stands where the source tells none, and new columns
    are added.
    """
    from scripts.history import write_history

    system = "asked"
    untimed = created(12, id=3, note="c", version="s")
    value = json.loads(untimed["value"])
    del value["ts_ms"], value["source"]["ts_ms"]
    read = event("r", 11, {"id": 2, "note": "b", "version": "s"}, snapshot="true")
    lakehouse.land(system, [created(10, id=1, note="a", version="s"), read])
    lakehouse.land(system, [{**untimed, "value": json.dumps(value)}])
    done = lakehouse.scaffold(system)
    assert write_history(system, ["orders"], project / "models") == [
        f"history_{system}__orders",
        f"versions_{system}__orders",
    ]
    assert write_history(system, ["public.orders"], project / "models") == []
    assert lakehouse._build.build(lakehouse.spark, [system], [done], lakehouse.said.append) == 0
    model = project / "models" / "history" / system / f"history_{system}__orders.sql"
    model.write_text(model.read_text().replace("keys = ['id'],", "keys = ['id'],\n    track = ['note'],"))
    lakehouse.run(
        system, [updated(20, id=1, note="a", version="t"), updated(30, id=1, note="b", version="u"), deleted(40, id=2)]
    )
    lakehouse.run(
        system, [updated(15, id=1, note="late", version="v"), updated(50, id=1, note="b", version="w", colour="red")]
    )

    def asked(where: str = "", **arguments: str | int) -> list[tuple[Any, ...]]:
        given = "".join(f", {name} = {value!r}" for name, value in arguments.items())
        view = model.with_name(f"then_{system}__orders.sql")
        config = f"{{{{ config(materialized = 'view', schema = '{system}_history', alias = 'then') }}}}"
        view.write_text(f"{config}\n\n{{{{ debezium_as_of(history = ref('history_{system}__orders'){given}) }}}}\n")
        assert lakehouse.dbt("run", "--select", view.stem).success
        return lakehouse.sql(f"select id, note, version from {system}_history.then {where} order by id, _cdc_position")

    assert asked() == [(1, "a", "s"), (1, "late", "v"), (1, "a", "t"), (1, "b", "w"), (2, "b", "s"), (3, "c", "s")]
    assert asked(known_at=2) == [(1, "a", "t"), (1, "b", "u"), (2, "b", "s"), (3, "c", "s")]
    assert asked("where _cdc_is_current", known_at=2) == [(1, "b", "u"), (3, "c", "s")]
    then = "timestamp '2023-11-14 22:13:20.016'"
    assert asked("where id < 3", valid_at=then) == [(1, "late", "v"), (2, "b", "s")]
    assert asked("where id < 3", valid_at=then, known_at=2) == [(1, "a", "t"), (2, "b", "s")]
    assert asked(known_at="timestamp '2020-01-01'") == []
    flags = "_cdc_is_snapshot, _cdc_valid_from_landing"
    assert lakehouse.sql(f"select id, {flags} from {system}_history.orders where id > 1 order by id") == [
        (2, True, False),
        (3, False, True),
    ]
    assert lakehouse.sql(f"select colour from {system}_history.orders where _cdc_is_current and id = 1") == [("red",)]


def test_tables_without_versions_are_named(lakehouse: Lakehouse, project: Path) -> None:
    from scripts.errors import LakehouseError
    from scripts.history import write_history

    lakehouse.land("unnamed", [{**created(10, id=1), "key": None}, event("c", 11, {"id": 1}, table="lines")])
    lakehouse.scaffold("unnamed")
    for name, told in {"orders": "has no key", "none": "Tables: public.lines, public.orders"}.items():
        with pytest.raises(LakehouseError, match=told):
            write_history("unnamed", [name], project / "models")


def test_a_truncate_leaves_no_row_under_a_key_that_is_passed_on(lakehouse: Lakehouse) -> None:
    def moved(lsn: int, offset: int, id: int, to: int) -> list[Record]:
        marks = {name: [{"key": f"__debezium.{name}key", "value": "{}"}] for name in ("new", "old")}
        gone = {**deleted(lsn, id=id), "offset": offset, "headers": marks["new"]}
        came = {**created(lsn, id=to, note="new", version="s"), "offset": offset + 1, "headers": marks["old"]}
        return [gone, came]

    def of_transaction(number: int, record: Record) -> Record:
        value = json.loads(record["value"])
        value["source"]["txId"] = number
        return {**record, "value": json.dumps(value)}

    transactions = [
        [created(10, id=1, note="old", version="s")],
        [truncated(20)],
        [created(30, id=2, note="new", version="s"), *moved(31, 31, id=2, to=1), *moved(32, 33, id=1, to=3)],
    ]
    records = [of_transaction(number, one) for number, each in enumerate(transactions, 1) for one in each]
    for system, landings in {"handed": [records], "handed_by_parts": [records[:1], records[1:3], records[3:]]}.items():
        write_model(lakehouse, system)
        for landed in landings:
            build(lakehouse, system, landed)
        current = f"select id, note from history.{system}__orders where _cdc_valid_to is null and _cdc_known_to is null"
        assert lakehouse.sql(current) == lakehouse.sql(f"select id, note from {system}.orders") == [(3, "new")]


def test_tables_of_one_name_whose_commits_would_have_one_mark_are_refused(lakehouse: Lakehouse) -> None:
    write_model(lakehouse, "one_name")
    model = lakehouse.project / "models" / "history" / "one_name" / "history_one_name__orders.sql"
    model.write_text(model.read_text().replace("config(", "config(schema = 'versions', "))
    lakehouse.land("one_name", [created(10, id=1)])
    lakehouse.scaffold("one_name")
    result = lakehouse.dbt("run", "--select", "stg_one_name__orders", "one_name__orders", "history_one_name__orders")
    failed = [str(node.message) for node in result.result if "have tables of one name, 'one_name__orders'" in str(node)]
    assert len(failed) == 2
