"""docs/readers.md: what other readers than Spark see, from the catalog file."""

import os
import re
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import REPOSITORY, Lakehouse

PAGE = (REPOSITORY / "docs" / "readers.md").read_text(encoding="utf-8")
SYSTEM = "readers"  # in place of the page's `shop`
TABLES = ("shop.public.orders", "shop.public.all_types")


def code(language: str) -> str:
    return "".join(re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))


def programs() -> dict[str, Any]:
    """The names that the page's programs define on the tables of this test."""
    program = code("python").replace(".lakehouse", os.environ["LAKEHOUSE_DIR"]).replace("shop", SYSTEM)
    names: dict[str, Any] = {}
    exec(program, names)
    return names


@pytest.fixture
def setting(project: Path) -> Iterator[Callable[[bool], None]]:
    """Makes live models what the page's YAML says, of all tables, a system and a table, or views again."""
    file = project / "dbt_project.yml"
    views = file.read_text(encoding="utf-8")
    tables = yaml.safe_load(views)
    text = code("yaml").replace("billing__invoices", f"{SYSTEM}__orders").replace("billing:", f"{SYSTEM}:")
    live = tables["models"]["debezium_lakehouse"]["live"]
    live.update(yaml.safe_load(text)["live"])

    def write(as_tables: bool) -> None:
        file.write_text(yaml.safe_dump(tables) if as_tables else views, encoding="utf-8")

    yield write
    write(False)


def landed(first: int, last: int) -> list[str]:
    """Lines of a capture, of two of its tables."""
    lines = (REPOSITORY / "tests" / "events" / "shop.jsonl").read_text(encoding="utf-8").split("\n")[first - 1 : last]
    return [line for line in lines if line.startswith(tuple(f'{{"topic":"{table}"' for table in TABLES))]


def plain(value: Any) -> Any:
    """A value as each reader has it: a map is a list of pairs or of entries, UTC has several names."""
    if isinstance(value, datetime) and value.tzinfo:
        return value.astimezone(timezone.utc)
    if isinstance(value, list):
        is_map = all(isinstance(each, dict) and each.keys() == {"key", "value"} for each in value)
        return [(each["key"], each["value"]) if is_map else plain(each) for each in value]
    return {name: plain(each) for name, each in value.items()} if isinstance(value, dict) else value


def rows(arrow: Any) -> list[str]:
    return sorted(repr(plain(row)) for row in arrow.to_pylist())


@pytest.mark.soak
def test_other_readers_see_what_spark_sees_and_live_tables_in_place_of_views(
    lakehouse: Lakehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: Callable[[bool], None]
) -> None:
    import duckdb
    import polars

    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")

    def run(first: int, last: int) -> None:
        events = tmp_path / f"{first}.jsonl"
        events.write_text("\n".join(landed(first, last)))
        lakehouse.run(SYSTEM, events)

    def tables(schema: str) -> list[str]:
        return [name for _, name in read["catalog"].list_tables(schema) if SYSTEM in schema + name]

    run(1, 43)
    setting(True)
    run(44, 150)
    read = programs()
    assert tables(SYSTEM) == ["orders"] and read["catalog"].load_table(f"{SYSTEM}.orders").format_version == 2
    table = read["state"].scan(row_filter="true")
    assert {str(one.file_format) for task in table.plan_files() for one in task.delete_files} == {"FileFormat.PUFFIN"}
    live = rows(lakehouse.table(f"{SYSTEM}.orders").toArrow())
    assert rows(read["orders"]) == rows(read["frame"].to_arrow()) == live
    assert [row[0] for row in read["largest"]] == [row["order_id"] for row in lakehouse.rows(f"{SYSTEM}.orders")[::-1]][
        :3
    ]
    of_spark = lakehouse.spark.sql(
        f"select * from staging.stg_{SYSTEM}__orders where _cdc_kind = 'change' order by _cdc_position"
    )
    assert [plain(row) for row in read["log"].to_pylist()] == [plain(row) for row in of_spark.toArrow().to_pylist()]
    for name in [(schema, table) for schema in ("silver", "staging", SYSTEM) for table in tables(schema)]:
        of_spark = rows(lakehouse.table(".".join(name)).toArrow())
        found = read["catalog"].load_table(name)
        arrow = found.scan().to_arrow()
        assert rows(arrow) == rows(duckdb.from_arrow(arrow).to_arrow_table()) == of_spark
        assert rows(polars.scan_iceberg(found).collect().to_arrow()) == of_spark

    run(151, 211)
    read = programs()
    assert rows(read["catalog"].load_table(f"{SYSTEM}.orders").scan().to_arrow()) == rows(read["orders"])
    setting(False)
    lakehouse.build_landed(SYSTEM)
    assert tables(SYSTEM) == []
    assert rows(lakehouse.table(f"{SYSTEM}.orders").toArrow()) == rows(read["orders"])
