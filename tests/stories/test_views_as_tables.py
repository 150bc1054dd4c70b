"""LAKEHOUSE_VIEWS=table: what would be views are tables, as fresh as views, and no statement is about views."""

import re
from typing import Any

import pytest
from conftest import Lakehouse
from event_factory import created, deleted, event, updated

SYSTEM = "viewless"
OF_VIEWS = re.compile(r"\b(show|create|create or replace|drop)\s+views?\b", re.IGNORECASE)
RELATIONS = {
    SYSTEM: ["orders"],
    f"{SYSTEM}_history": ["orders"],
    "silver": [f"{SYSTEM}__notes"],
    "monitoring": [f"{SYSTEM}__{name}" for name in ("ddl_history", "lag", "rejected_events", "transactions")],
    "marts": ["shouted"],
}
MART = f"""{{{{ config(materialized = 'view', schema = 'marts') }}}}
select upper(text) as text from {{{{ ref('{SYSTEM}__notes') }}}}
"""


def note(lsn: int, text: str) -> dict[str, Any]:
    return {**event("c", lsn, {"text": text}, {}, "notes"), "key": None}


@pytest.mark.soak
def test_views_become_tables_which_follow_what_lands_and_views_again(
    lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    from scripts.erase import erase
    from scripts.history import write_history

    def views() -> dict[str, list[str]]:
        found = {schema: {row[1] for row in lakehouse.sql(f"show views in {schema}")} for schema in RELATIONS}
        return {schema: sorted(found[schema] & set(names)) for schema, names in RELATIONS.items()}

    def seen() -> dict[str, Any]:
        return {
            "orders": lakehouse.sql(f"select id, note from {SYSTEM}.orders order by id"),
            "versions": lakehouse.sql(f"select id, note from {SYSTEM}_history.orders order by _cdc_position"),
            "notes": lakehouse.sql(f"select text from silver.{SYSTEM}__notes order by text"),
            "shouted": lakehouse.sql("select text from marts.shouted order by text"),
            "rejected": lakehouse.sql(f"select reason from monitoring.{SYSTEM}__rejected_events"),
            "merged": lakehouse.sql(
                f"select source_table from monitoring.{SYSTEM}__lag where merged_at is not null order by 1"
            ),
        }

    lakehouse.run(SYSTEM, [created(10, id=1, note="a"), note(11, "first")])
    write_history(SYSTEM, ["orders"], lakehouse.project / "models")
    mart = lakehouse.project / "models" / "marts" / "shouted.sql"
    mart.parent.mkdir()
    mart.write_text(MART)
    lakehouse.build_landed(SYSTEM)
    before = seen()
    assert views() == RELATIONS

    monkeypatch.setenv("LAKEHOUSE_VIEWS", "table")
    lakehouse.build_landed(SYSTEM)
    assert not any(views().values()) and seen() == before

    sql, asked = type(lakehouse.spark).sql, []

    def noted(self: Any, query: str, *rest: Any, **named: Any) -> Any:
        asked.append(query)
        return sql(self, query, *rest, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(lakehouse.spark), "sql", noted)
        broken = {**created(22, id=3, note="x"), "value": '{"before": null, "after": {"id": 3, "note": '}
        lakehouse.run(SYSTEM, [created(20, id=2, note="b"), updated(21, id=1, note="c"), note(23, "second"), broken])
    assert asked and not [query for query in asked if OF_VIEWS.search(query)]
    now = seen()
    assert now["orders"] == [(1, "c"), (2, "b")] and now["versions"] == [(1, "a"), (2, "b"), (1, "c")]
    assert now["notes"] == [("first",), ("second",)] and now["shouted"] == [("FIRST",), ("SECOND",)]
    assert len(now["rejected"]) == 1 and len(now["merged"]) == 2

    monkeypatch.delenv("LAKEHOUSE_VIEWS")
    lakehouse.build_landed(SYSTEM)
    assert views() == RELATIONS and seen() == now

    monkeypatch.setenv("LAKEHOUSE_VIEWS", "table")
    lakehouse.run(SYSTEM, [deleted(30, id=2)])
    assert not any(views().values()) and seen()["orders"] == [(1, "c")]
    done = erase(lakehouse.spark, SYSTEM, "orders", "id=1")
    gone = seen()
    assert (gone["orders"], gone["versions"]) == ([], [(2, "b")]) and done[f"`{SYSTEM}`.`orders`"] == 1
    assert lakehouse.sql(f"select count(*) from {SYSTEM}.orders.snapshots") == [(1,)]


def test_another_value_is_named(lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    from scripts.catalog import kind_of_views
    from scripts.errors import UsageError

    lakehouse.run("viewing", [created(10, id=1, note="a")])
    monkeypatch.setenv("LAKEHOUSE_VIEWS", "tables")
    with pytest.raises(UsageError, match="LAKEHOUSE_VIEWS=tables: expected view or table"):
        kind_of_views()
    result = lakehouse.dbt("run", "--select", "live_viewing__orders")
    assert "LAKEHOUSE_VIEWS=tables: expected view or table." in str(result.exception or result.result[0].message)
