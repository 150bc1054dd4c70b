"""Names, topics and positions that differ in case only are different ones."""

from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY
from dbt_common.clients.jinja import get_environment
from jinja2 import nodes

# Jinja's filters that take `a` and `A` for one unless they are told otherwise.
IGNORING_CASE = {"unique", "min", "max", "sort", "groupby", "dictsort"}
MACROS = sorted((REPOSITORY / "macros").rglob("*.sql"))


def filters_that_ignore_case(text: str) -> list[str]:
    """The filters in a template that ignore case, each with its line."""
    found = []
    for one in get_environment(None, capture_macros=True).parse(text).find_all(nodes.Filter):
        keywords: list[Any] = one.kwargs
        is_told = any(given.key == "case_sensitive" and given.value.as_const() is True for given in keywords)
        if one.name in IGNORING_CASE and not is_told:
            found.append(f"{one.name}, line {one.lineno}")
        named = [given.value for given in one.args if isinstance(given, nodes.Const)]
        if one.name == "map" and IGNORING_CASE & {str(name) for name in named}:
            found.append(f"map({named[0]!r}), line {one.lineno}")
    return found


@pytest.mark.parametrize("path", MACROS, ids=lambda path: path.stem)
def test_no_filter_of_a_macro_ignores_case(path: Path) -> None:
    assert filters_that_ignore_case(path.read_text(encoding="utf-8")) == [], "say case_sensitive=true"


def test_such_a_filter_is_found_wherever_it_stands() -> None:
    text = """{% macro m(topics) %}{% set a = [1, 2] | max %}{{ topics | unique | list }}
        {{ topics | map('sort') | list }}{{ topics | sort(case_sensitive=true) }}
        {{ topics | sort(case_sensitive=false) }}{# topics | min #}{% endmacro %}"""
    assert [name.partition(",")[0] for name in sorted(filters_that_ignore_case(text))] == [
        "map('sort')",
        "max",
        "sort",
        "unique",
    ]


def test_the_note_names_the_relation_that_a_table_gets(project: Path) -> None:
    from scripts.declared import Declared
    from scripts.names import relation_name
    from scripts.scaffolded import Scaffolded
    from scripts.schema import TableSeen

    done, known = Scaffolded(), dict[tuple[str, ...], Declared]()
    for name in ("Orders", "orders", "ORDERS"):
        table = TableSeen("postgresql", ("public", name))
        known[table.identity] = Declared(relation_name(table, known, ["orders"] * 3, done), table)

    told = [
        f"public.{name}: another table has that name too; the relation is " for name in ("Orders", "orders", "ORDERS")
    ]
    assert [declared.relation for declared in known.values()] == [
        "public__orders",
        "public__orders_2",
        "public__orders_3",
    ]
    assert done.notes == [f"{text}{one.relation}" for text, one in zip(told, known.values(), strict=True)]
