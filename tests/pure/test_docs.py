"""The documentation site: the systems that are there, the pages of `docs/`, and a description of every column."""

import re
from pathlib import Path
from typing import Any

from conftest import REPOSITORY

OVERVIEW = "doc.p.__overview__"


def column(name: str, description: str = "") -> dict[str, Any]:
    return {"name": name, "description": description}


def manifest() -> dict[str, Any]:
    meta = {"debezium": {"connector": "flattened(__)", "keys": ["id"]}}
    nodes = {
        "stg_shop__orders": ({"meta": meta}, {}),
        "shop__orders": ({"meta": {}}, {"_cdc_op": column("_cdc_op", "Mine.")}),
        "live_shop__orders": ({"meta": {}}, {"id": column("id", "Key. int32 in the events.")}),
        "history_shop__orders": ({"meta": {}}, {}),
        "shop__lag": ({"meta": {}}, {}),
    }
    texts = {
        "__overview__": (REPOSITORY / "docs" / "dbt" / "overview.md").read_text("utf-8"),
        "_cdc_op": "What was\n  done.",
    }
    return {
        "sources": {"source.p.bronze.shop": {"name": "shop", "source_name": "bronze"}},
        "nodes": {
            f"model.p.{name}": {"name": name, "config": config, "columns": columns}
            for name, (config, columns) in nodes.items()
        },
        "docs": {
            f"doc.p.{name}": {"name": name, "package_name": "p", "block_contents": text} for name, text in texts.items()
        },
    }


def test_every_column_is_described_as_its_table_is_elsewhere_and_keys_are_marked() -> None:
    from scripts.docs import describe

    there: dict[str, Any] = {"columns": {"id": {}, "_cdc_op": {}, "other": {}}}
    names = ("stg_shop__orders", "shop__orders", "history_shop__orders")
    describe(found := manifest(), {"nodes": {f"model.p.{name}": there for name in names}})
    staging, silver, history = (found["nodes"][f"model.p.{name}"]["columns"] for name in names)
    for columns in (staging, history):
        assert {name: one["description"] for name, one in columns.items()} == {
            "id": "Key. int32 in the events.",
            "_cdc_op": "What was done.",
            "other": "",
        }
    assert silver["_cdc_op"]["description"] == "Mine." and silver["id"]["description"] == staging["id"]["description"]
    assert "constraints" not in staging["id"] and "constraints" not in history["id"]
    assert silver["id"]["constraints"] == [{"type": "primary_key"}]


def test_the_overview_lists_the_systems_that_are_there_and_every_link_leads_somewhere() -> None:
    from scripts.docs import add_pages

    add_pages(found := manifest(), REPOSITORY / "docs")
    overview = found["docs"][OVERVIEW]["block_contents"]
    assert (
        "| shop | [flattened](#!/overview/flattened) | [orders](#!/model/model.p.live_shop__orders) |"
        " rejected events, [lag](#!/model/model.p.shop__lag), event counts, ddl history, transactions |"
    ) in overview
    pages = {block["name"].strip("_"): block["block_contents"] for block in found["docs"].values()}
    for text in pages.values():
        for page in re.findall(r"\(#!/overview/([^)]*)\)", text):
            assert page in pages
        assert not re.search(r"\]\((?!https?://|#!/)|\]\[|(?m:^\[.*\]: )", text), "a link to a file"
    assert {"operating", "rejects", "history", "connectors", "mysql"} <= pages.keys()


def test_a_connector_without_a_page_is_linked_to_the_list(tmp_path: Path) -> None:
    from scripts.docs import add_pages

    (tmp_path / "connectors").mkdir()
    (tmp_path / "connectors" / "README.md").write_text(
        '[rejects](../rejects.md#why), [gone](../tests/a.py), [b](#b), [c][d]\n[d]: ../rejects.md "why"\n'
    )
    (tmp_path / "rejects.md").write_text("Why.")
    add_pages(found := manifest(), tmp_path)
    assert "[flattened](#!/overview/connectors)" in found["docs"][OVERVIEW]["block_contents"]
    text = found["docs"]["doc.pages.connectors"]["block_contents"]
    assert text == "[rejects](#!/overview/rejects), gone, [b](#!/overview/connectors), [c](#!/overview/rejects)\n"
