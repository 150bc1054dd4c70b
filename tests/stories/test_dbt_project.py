"""docs/dbt-project.md: this project as a package of another one, and schemas of developers."""

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import REPOSITORY, Lakehouse
from event_factory import created, deleted, updated

PAGE = (REPOSITORY / "docs" / "dbt-project.md").read_text(encoding="utf-8")
Dbt = Callable[..., Any]


@pytest.fixture
def dbt(lakehouse: Lakehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dbt:
    """dbt in a project as the page has it."""
    from dbt.cli.main import dbtRunner

    package, folder = tmp_path / "debezium-lakehouse", tmp_path / "analytics"
    (folder / "macros").mkdir(parents=True)
    package.mkdir()
    for name in ("dbt_project.yml", "docs", "macros", "profiles", "profiles.yml", "seeds"):
        (package / name).symlink_to(REPOSITORY / name)
    for sample in (REPOSITORY / "models").glob(
        "*/lindorm"
    ):  # of the samples one: dbt reads all models also where they are off
        shutil.copytree(sample, package / "models" / sample.parent.name)
    packages, project = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (folder / "packages.yml").write_text(packages)
    content = yaml.safe_load(project)
    of_package = yaml.safe_load((REPOSITORY / "dbt_project.yml").read_text(encoding="utf-8"))
    content["models"]["analytics"] = of_package["models"]["debezium_lakehouse"]
    (folder / "dbt_project.yml").write_text(yaml.safe_dump(content))
    monkeypatch.chdir(folder)
    monkeypatch.delenv("DBT_PROFILES_DIR")

    def invoke(*arguments: str) -> Any:
        return dbtRunner().invoke([*arguments, "--log-level", "none", "--log-level-file", "none"])

    assert invoke("deps").success
    (links,) = re.findall(r"^ln -s .*$", PAGE, re.MULTILINE)
    subprocess.run(links, shell=True, check=True)
    return invoke


def test_own_project_merges_and_developers_have_schemas_of_their_own(
    lakehouse: Lakehouse, dbt: Dbt, monkeypatch: pytest.MonkeyPatch
) -> None:
    from scripts.observe import Bronze
    from scripts.scaffold import scaffold

    def rows(schema: str = "crm") -> list[dict[str, Any]]:
        return lakehouse.rows(f"{schema}.orders", "id")

    def run(*arguments: str) -> set[str]:
        result = dbt(*arguments)
        assert result.success, [str(result.exception), *(str(node.message) for node in result.result or ())]
        return {one.node.package_name for one in result.result if one.node.resource_type == "model"}

    def views(schema: str) -> list[str]:
        return [name for _, name, is_temporary in lakehouse.sql(f"show views in {schema}") if not is_temporary]

    lakehouse.land("crm", [created(10, id=1, note="a"), created(11, id=2, note="b")])
    scaffold(Bronze(lakehouse.spark, "crm"), None, {}, 0, Path("models"))
    assert run("build") == {"analytics"}
    shutil.copytree("target", "shared")
    lakehouse.land("crm", [updated(20, id=1, note="new"), deleted(21, id=2)])
    for option in (["--empty"], ["--sample", "1 day"]):  # the package's hook, which refuses these, is off
        assert "would take the others for merged" in str([one.message for one in dbt("run", *option).result])
    run("run")
    assert rows() == [{"id": 1, "note": "new"}]
    assert lakehouse.sql("select count(*) from silver.crm__orders.snapshots") == [(2,)]  # built once, merged once

    run("clone", "--full-refresh", "--state", "shared")  # of the shared tables by themselves
    assert rows() == [{"id": 1, "note": "new"}]
    monkeypatch.setenv("LAKEHOUSE_SCHEMA", "dev")
    run("test", "--select", "test_name:no_log_reset", "--defer", "--state", "shared")
    run("clone", "--state", "shared")
    assert rows("dev_crm") == rows() and lakehouse.sql("select count(*) from dev_silver.crm__orders") == [(2,)]
    run("run", "--select", "crm__orders+", "--defer", "--favor-state", "--state", "shared")
    assert (views("dev_staging"), views("dev_silver")) == (["stg_crm__orders"], [])
    assert rows("dev_crm") == rows()
    lakehouse.land("crm", [updated(30, id=1, note="newest")])
    run("run", "--select", "source:bronze.crm+")
    assert rows("dev_crm") == [{"id": 1, "note": "newest"}] != rows()
    assert not {"lakehouse", "dev_bronze", "dev"} & {name for (name,) in lakehouse.sql("show schemas")}


def test_own_project_keeps_its_own_schema_names(dbt: Dbt) -> None:
    project = yaml.safe_load(Path("dbt_project.yml").read_text())
    (of_package,) = set(project["macro-paths"]) - {"macros"}
    folders = [path.name for path in Path(of_package).iterdir() if path.is_dir() and path.name != "schemas"]
    project["macro-paths"] = ["macros", *(f"{of_package}/{name}" for name in folders)]
    Path("dbt_project.yml").write_text(yaml.safe_dump(project))
    Path("macros/schemas.sql").write_text(
        "{% macro generate_schema_name(name, node) -%}\n"
        "    {{ return('theirs' if node.name == 'mine' else lakehouse_schema_name(name)) }}\n"
        "{%- endmacro %}\n"
    )
    for layer, model in (("silver", "crm__orders"), ("marts", "mine")):
        Path(f"models/{layer}").mkdir(parents=True)
        Path(f"models/{layer}/{model}.sql").write_text("select 1 as id")
    nodes = dbt("parse").result.nodes
    assert {name: nodes[f"model.analytics.{name}"].schema for name in ("crm__orders", "mine")} == {
        "crm__orders": "silver",
        "mine": "theirs",
    }
