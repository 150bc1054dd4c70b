"""Writes the documentation site: that of dbt, with the systems that are there, and the pages of `docs/` within it.

dbt shows a column's description only at the model whose YAML has it. Generated YAML describes a column once, so each of
the other models of its table gets it here, and the metadata columns theirs.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from posixpath import dirname, join, normpath
from typing import Any

from scripts.spark import PROJECT

PAGES = Path(__file__).resolve().parent.parent / "docs"  # of this version, also in somebody's own project
LINK = re.compile(r"\[([^\[\]]*)\]\(([^()\s]+)\)")
NAMED_LINK = re.compile(r"\[([^\[\]]*)\]\[([^\[\]]+)\]")
TARGET = re.compile(r"(?m)^\[([^\[\]]+)\]: (\S+).*\n?")  # of a named link
SYSTEMS = "<!-- the systems that are there -->"


def main() -> None:
    """Write `target/static_index.html`."""
    dbt = Path(sys.executable).with_name("dbt")
    done = subprocess.run([dbt, "docs", "generate", "--quiet"], cwd=PROJECT)
    if done.returncode:
        sys.exit(done.returncode)
    target = PROJECT / os.environ.get("DBT_TARGET_PATH", "target")
    manifest, catalog = (json.loads((target / f"{name}.json").read_text("utf-8")) for name in ("manifest", "catalog"))
    describe(manifest, catalog)
    hide_helpers(manifest)
    add_pages(manifest, PAGES)
    site = (target / "index.html").read_text("utf-8")
    for name, content in (("MANIFEST", manifest), ("CATALOG", catalog)):
        site = site.replace(f'"{name}.JSON INLINE DATA"', json.dumps(content).replace("</", "<\\/"))
    (target / "static_index.html").write_text(site, "utf-8")
    print(f"The documentation is in {target}/static_index.html")


def describe(manifest: dict[str, Any], catalog: dict[str, Any]) -> None:
    """Describe the columns that only another model of their table, or a text of `docs/dbt`, describes."""
    texts = {block["name"]: " ".join(block["block_contents"].split()) for block in manifest["docs"].values()}
    systems = "|".join(re.escape(source["name"]) for source in manifest["sources"].values())
    of_layer = re.compile(f"^(stg|live|history|versions)_(?=({systems})__)")
    for unique_id, model in manifest["nodes"].items():
        there = catalog["nodes"].get(unique_id, {"columns": {}})["columns"]
        prefix, _, model_name = unique_id.rpartition(".")
        name = of_layer.sub("", model_name)
        staging = manifest["nodes"].get(f"{prefix}.stg_{name}", {"config": {}})
        is_state = model_name in (name, f"live_{name}")  # which has a row for each key
        keys = (staging["config"].get("meta") or {}).get("debezium", {}).get("keys", []) if is_state else []
        others = [manifest["nodes"].get(f"{prefix}.{layer}{name}", {"columns": {}}) for layer in ("live_", "")]
        for column in there:
            told = model["columns"].setdefault(column, {"name": column, "description": ""})
            known = [texts.get(column)] if column.startswith("_cdc_") else []
            known += [other["columns"].get(column, {}).get("description") for other in others]
            if column in keys:
                told["constraints"] = [*(told.get("constraints") or []), {"type": "primary_key"}]
            told["description"] = told["description"] or next(filter(None, known), "")


def hide_helpers(manifest: dict[str, Any]) -> None:
    """Leave out the macros that others than this project need not know: their names begin with `_`."""
    for macro in manifest["macros"].values():
        macro["docs"]["show"] &= not macro["name"].startswith("_")


def add_pages(manifest: dict[str, Any], pages: Path) -> None:
    """Add the systems to the overview, and each page of `docs/`, which the site shows at `#!/overview/<name>`."""
    docs = manifest["docs"]
    paths = [path.relative_to(pages).as_posix() for path in (*pages.glob("*.md"), *pages.glob("connectors/*.md"))]
    for path in sorted(paths):
        text, name = (pages / path).read_text("utf-8"), _page(path)
        docs[f"doc.pages.{name}"] = {
            "name": f"__{name}__",
            "package_name": "pages",
            "block_contents": _linked(text, path, paths),
        }
    for block in docs.values():
        if block["name"] == "__overview__":
            block["block_contents"] = block["block_contents"].replace(
                SYSTEMS, systems(manifest, {_page(path) for path in paths})
            )


def systems(manifest: dict[str, Any], pages: set[str]) -> str:
    """A list of the systems that have a bronze table, with their connectors and links to their models."""
    names = sorted(source["name"] for source in manifest["sources"].values() if source["source_name"] == "bronze")
    models = {model["name"]: unique_id for unique_id, model in manifest["nodes"].items()}
    lines = ["| system | connector | tables | monitoring |", "|---|---|---|---|"]
    for system in names:
        tables = [
            (name, meta)
            for name, unique_id in sorted(models.items())
            if name.startswith(f"stg_{system}__")
            and (meta := manifest["nodes"][unique_id]["config"]["meta"].get("debezium"))
        ]
        connectors = sorted({meta["connector"].partition("(")[0] for _, meta in tables})
        shown = [name.removeprefix("stg_") for name, _ in tables]
        monitoring = [
            _model(models, f"{system}__{name}", name.replace("_", " "))
            for name in ("rejected_events", "lag", "event_counts", "ddl_history", "transactions")
        ]
        cells = (
            [f"[{one}](#!/overview/{one if one in pages else 'connectors'})" for one in connectors],
            [_model(models, f"live_{one}" if f"live_{one}" in models else one, one.split("__", 1)[1]) for one in shown],
            monitoring,
        )
        lines.append(f"| {system} | {' | '.join(', '.join(cell) for cell in cells)} |")
    return "\n".join(lines)


def _model(models: dict[str, str], name: str, text: str) -> str:
    return f"[{text}](#!/model/{models[name]})" if name in models else text


def _page(path: str) -> str:
    name = path.removesuffix(".md").removesuffix("/README")
    return name.removeprefix("connectors/")


def _linked(text: str, path: str, paths: list[str]) -> str:
    """The text of a page with links as they are in the site; of those to what is not there their text is left."""

    def linked(link: re.Match[str]) -> str:
        told, to = link.groups()
        if "://" in to:
            return link[0]
        file = normpath(join(dirname(path), to.partition("#")[0])) if not to.startswith("#") else path
        return f"[{told}](#!/overview/{_page(file)})" if file in paths else told

    targets = dict(TARGET.findall(text))
    text = NAMED_LINK.sub(lambda link: f"[{link[1]}]({targets[link[2]]})" if link[2] in targets else link[0], text)
    return LINK.sub(linked, TARGET.sub("", text))


if __name__ == "__main__":
    main()
