"""Which of the models that people write a run builds."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

READS = {
    "monitoring/shop/shop__transactions.sql": ["shop"],
    "marts/per_transaction.sql": ["shop__transactions"],  # path below models/ → what the model reads
    "monitoring/shop/shop__rejected_events.sql": ["shop", "stg_shop__orders"],
    "marts/rejects.sql": ["shop__rejected_events"],
    "staging/shop/stg_shop__orders.sql": ["shop"],
    "silver/shop/shop__orders.sql": ["stg_shop__orders"],
    "live/shop/live_shop__orders.sql": ["shop__orders"],
    "monitoring/shop/shop__event_counts.sql": ["shop", "stg_shop__orders"],
    "staging/crm/crm__events.sql": ["crm"],
    "staging/crm/stg_crm__people.sql": ["crm__events"],
    "silver/crm/crm__people.sql": ["stg_crm__people"],
    "marts/per_day.sql": ["live_shop__orders"],
    "marts/shop/yearly.py": ["per_day"],
    "silver/shop/shop__by_hand.sql": ["live_shop__orders"],
    "raw.sql": ["shop"],
    "marts/both.sql": ["yearly", "crm__people"],
    "marts/constant.sql": [],
    "marts/disabled.sql": [],
}


def manifest() -> Any:
    def name(one: str) -> str:
        return f"source.p.bronze.{one}" if one in ("shop", "crm") else f"model.p.{one}"

    nodes, parents = {}, {}
    for path, reads in READS.items():
        if Path(path).stem != "disabled":
            one = name(Path(path).stem)
            nodes[one] = SimpleNamespace(
                name=Path(path).stem, resource_type="model", original_file_path=f"models/{path}"
            )
            parents[one] = [name(parent) for parent in reads]
    sources = {name(one): SimpleNamespace(name=one, source_name="bronze") for one in ("shop", "crm")}
    children: dict[str, list[str]] = {one: [] for one in (*nodes, *sources)}
    for one, of in parents.items():
        for parent in of:
            children[parent].append(one)
    return SimpleNamespace(
        nodes=nodes,
        sources=sources,
        parent_map=parents,
        child_map=children,
        metadata=SimpleNamespace(project_name="p"),
        build_parent_and_child_maps=lambda: None,
    )


@pytest.fixture
def models(tmp_path: Path) -> Path:
    for path in READS:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(path)
    for table in ("shop/shop__orders", "crm/crm__people"):  # the YAML that declares a table
        (tmp_path / "silver" / f"{table}.yml").touch()
    return tmp_path


def test_a_run_builds_what_reads_a_changed_table_what_is_new_and_what_failed(project: Path, models: Path) -> None:
    from scripts.own_models import OwnModels, own_files

    of_shop = {"per_day", "yearly", "shop__by_hand", "raw", "per_transaction", "rejects"}
    files = own_files(models, "")
    assert {Path(path).stem for path in files} == of_shop | {"both", "constant", "disabled"}

    def run(
        state: dict[str, Any], system: str, changed: list[str], *with_tables: str, landed: str = "", failed: str = ""
    ) -> Any:
        own = OwnModels(own_files(models, ""), state, {system}, {system, *with_tables})
        if changed or own.is_behind():
            own.choose(manifest(), changed, [landed] if landed else [])
        return set(own.chosen), own.waiting, own.state_after([failed] if failed else [])

    orders = ["stg_shop__orders", "shop__orders"]
    chosen, waiting, state = run({}, "shop", orders)
    assert (chosen, waiting) == (of_shop | {"constant"}, {"marts/both.sql": ["crm"]})
    assert state["marts/both.sql"] == {"text": files["marts/both.sql"], "reads": ["crm", "shop"], "is_built": False}
    assert [path for path, one in state.items() if not one["is_built"]] == ["marts/both.sql"]

    assert not OwnModels(files, state, {"shop"}, {"shop"}).is_behind()  # nothing to do, and dbt is not asked
    assert run(state, "shop", ["shop__event_counts"], landed="shop")[0] == {
        "raw",
        "per_transaction",
        "rejects",
    }  # which no topic of a table tells
    chosen, waiting, state = run(state, "crm", ["crm__events", "stg_crm__people", "crm__people"], "shop", failed="both")
    assert (chosen, waiting) == ({"both"}, {})
    assert not OwnModels(files, state, {"mine"}, {"mine", "shop", "crm"}).is_behind()
    assert run(state, "shop", [], "crm")[0] == {"both"}  # which failed
    chosen, _, state = run(state, "shop", orders, "crm")
    assert chosen == of_shop - {"raw", "per_transaction"} | {"both"}

    (models / "marts" / "per_day.sql").write_text("edited")
    assert run(state, "mine", [], "shop", "crm")[0] == set()
    assert run(state, "shop", [], "crm")[0] == {"per_day", "yearly", "both"}
    (models / "marts" / "marts.yml").write_text("models: []")
    with_yaml = {"per_day", "yearly", "both", "constant", "per_transaction", "rejects"}
    assert run(state, "shop", [], "crm")[0] == with_yaml
    (models / "above.yaml").write_text("models: []")
    assert run(state, "shop", [], "crm")[0] == with_yaml | {"shop__by_hand", "raw"}
