"""What `make erase` is asked for: a table and keys, or why they name no row."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

YAML = """
version: 2
models:
- name: stg_shop__{0}
  config:
    meta:
      debezium:
        connector: postgresql
        table: [{1}, {0}]
        topics: [shop.{1}.{0}]
        keys: [{2}]
        columns: {{id: int64, "box id": string}}
"""


@pytest.fixture
def models(project: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "silver" / "shop"
    folder.mkdir(parents=True)
    for name, table in {
        "orders": ("orders", "public", "id"),
        "boxes": ("boxes", "public", 'id, "box id"'),
        "boxes_2": ("boxes", "old", "id"),
        "visits": ("visits", "public", ""),
    }.items():
        (folder / f"shop__{name}.yml").write_text(YAML.format(*table))
    return tmp_path


def test_a_table_is_found_with_or_without_its_schema(models: Path) -> None:
    from scripts.erased_rows import find_table
    from scripts.errors import UsageError

    assert find_table("shop", "orders", models).relation == "orders"
    assert find_table("shop", "old.boxes", models).relation == "boxes_2"
    for name, told in (
        (
            "boxes",
            "several tables have that name. Tables of shop: old.boxes, public.boxes, public.orders, public.visits",
        ),
        ("order", "no table with models has that name"),
        ("visits", "the table has no key"),
    ):
        with pytest.raises(UsageError, match=f"TABLE={name}: {told}"):
            find_table("shop", name, models)


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("id=7", [{"id": "7"}]),
        ("id=a,b=c", [{"id": "a,b=c"}]),
        ("id=7 'id=A B'", [{"id": "7"}, {"id": "A B"}]),
        ("id=", [{"id": ""}]),
    ],
)
def test_keys_are_named_by_their_columns(models: Path, text: str, keys: list[dict[str, str]]) -> None:
    from scripts.erased_rows import find_table, parse_keys

    assert parse_keys(text, find_table("shop", "orders", models)) == keys


def test_a_key_of_several_columns_has_each_of_them_once(models: Path) -> None:
    from scripts.erased_rows import find_table, parse_keys
    from scripts.errors import UsageError

    boxes = find_table("shop", "public.boxes", models)
    assert parse_keys("'box id=a,b=c,id=1'", boxes) == [{"box id": "a,b=c", "id": "1"}]
    for text in ("id=1", "'id=1,id=2'", "'id=1,box id=2,id=3'", "7", "'id=1,box id=2"):
        with pytest.raises(UsageError, match=r"not of the form id=<value>,box id=<value>|a quote is not closed"):
            parse_keys(text, boxes)


def test_what_is_missing_is_named(project: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    from scripts import erase

    for name in ("SYSTEM", "TABLE", "KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TABLE", "orders")
    assert erase.main() == 2
    assert "there is no SYSTEM and KEY." in capsys.readouterr().err


def test_tables_that_cannot_be_erased_from_are_named(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from scripts import erase
    from scripts.erased_rows import Rows, find_table
    from scripts.errors import LakehouseError

    orders = find_table("shop", "orders", models)
    spark: Any = SimpleNamespace(catalog=SimpleNamespace(tableExists=lambda _: False))
    with pytest.raises(LakehouseError, match=r"staging.`stg_shop__orders` is not there. First: make run SYSTEM=shop"):
        Rows(spark, "shop", orders, [{"id": "7"}])
    monkeypatch.setattr(erase, "MODELS", models)
    rows: Any = None
    erase.Erasure(spark, "shop", orders, rows)._check_no_other_log()
    path = models / "silver" / "shop" / "shop__visits.yml"
    path.write_text(path.read_text().replace("shop.public.visits", "shop.public.orders"))
    with pytest.raises(LakehouseError, match=r"public.orders and public.visits read the same topic"):
        erase.Erasure(spark, "shop", orders, rows)._check_no_other_log()
