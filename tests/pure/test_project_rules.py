"""Rules of the project, read from the manifest that `dbt parse` writes: no Spark, no data."""

import ast
import csv
import json
import re
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import REPOSITORY

Node = dict[str, Any]
MACRO = re.compile(r"(?s){%-? (?P<kind>macro|test|materialization) (?P<name>\w+).*?{%-? *end(?P=kind) *-?%}")
SIGNATURE = re.compile(r"{%-?\s*(?:macro|test)\s+\w+\s*\((.*?)\)\s*-?%}", re.DOTALL)
MODEL = re.compile(r"(?:{{ config\([^{}]*\) }}\n\n)?{{ (debezium_\w+)\(.*\) }}\n", re.DOTALL)
SQL = {"op", "snapshot", "position", "fields", "passes_keys_on", "transaction_id", "changed_at", "kind", "reject"}
METADATA = [
    "_cdc_op",
    "_cdc_is_deleted",
    "_cdc_position",
    "_cdc_is_snapshot",
    "_cdc_transaction_id",
    "_cdc_changed_at",
    "_cdc_batch",
    "_cdc_event_id",
]


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    from dbt.cli.main import dbtRunner

    target = tmp_path_factory.mktemp("parsed")
    where = ["--project-dir", str(REPOSITORY), "--profiles-dir", str(REPOSITORY / "profiles")]
    output = ["--target-path", str(target), "--log-path", str(target), "--log-level", "none"]
    result = dbtRunner().invoke(["parse", "--no-partial-parse", *where, *output])
    assert result.success, result.exception
    content: dict[str, Any] = json.loads((target / "manifest.json").read_text(encoding="utf-8"))
    return content


@pytest.fixture(scope="module")
def macros(manifest: dict[str, Any]) -> dict[str, Node]:
    return {
        macro["name"]: macro for macro in manifest["macros"].values() if macro["package_name"] == "debezium_lakehouse"
    }


@pytest.fixture(scope="module")
def models(manifest: dict[str, Any]) -> dict[str, Node]:
    return {node["name"]: node for node in manifest["nodes"].values() if node["resource_type"] == "model"}


def layer(models: dict[str, Node], name: str) -> dict[str, Node]:
    return {model["name"]: model for model in models.values() if model["fqn"][1] == name}


def scaffolded(models: dict[str, Node]) -> dict[str, Node]:
    """All but the marts, which people write."""
    return {name: model for name, model in models.items() if model["fqn"][1] != "marts"}


def declared(models: dict[str, Node], model: str) -> dict[str, Any]:
    """What the staging model of a silver or live model declares of its table."""
    staging = models[f"stg_{model.removeprefix('live_')}"]
    content: dict[str, Any] = staging["config"]["meta"]["debezium"]
    return content


def connectors() -> dict[str, dict[str, str]]:
    """Each connector with its properties."""
    with (REPOSITORY / "seeds" / "cdc_connectors.csv").open(encoding="utf-8", newline="") as seed:
        return {row["connector"]: row for row in csv.DictReader(seed)}


# Macros


def test_every_public_macro_says_what_it_gives_and_what_its_arguments_are(macros: dict[str, Node]) -> None:
    wrong = []
    for name, macro in macros.items():
        if name.startswith("_"):
            continue
        if not macro["description"].strip():
            wrong.append(f"{name} has no description")
        signature = SIGNATURE.match(macro["macro_sql"])
        if not signature:  # a materialization: dbt calls it, nobody gives it arguments
            continue
        names = re.findall(r"(\w+)(?:\s*=[^,]*)?", signature[1])
        if [argument["name"] for argument in macro["arguments"]] != names:
            wrong.append(
                f"{name} takes {names}, documented are {[argument['name'] for argument in macro['arguments']]}"
            )
        wrong += [
            f"{name}: {argument['name']} has no type or no description"
            for argument in macro["arguments"]
            if not (argument["type"] and argument["description"].strip())
        ]
    assert not wrong, "complete macros/macros.yml:\n" + "\n".join(wrong)


def test_macros_are_short() -> None:
    """A file of at most 300 lines, a macro of 60, a line of 120 characters."""
    for path in (REPOSITORY / "macros").rglob("*.sql"):
        lines = path.read_text(encoding="utf-8").splitlines()
        assert len(lines) <= 300 and max(map(len, lines)) <= 120, path
        for found in MACRO.finditer("\n".join(lines)):
            assert found[0].count("\n") < 60, f"{path}: {found['name']}"


def test_every_connector_is_dispatched_checked_and_explained(macros: dict[str, Node]) -> None:
    """`envelope_capabilities` refuses names that are no capability and completes the rest: all have the same set."""
    names = set(re.findall(r"'(\w+)'", macros["connector_names"]["macro_sql"]))
    code = macros["debezium_connector"]["macro_sql"]
    files = {path.stem for path in (REPOSITORY / "macros" / "connectors").glob("*.sql")} - {"connector"}
    pages = {path.stem for path in (REPOSITORY / "docs" / "connectors").glob("*.md")}

    assert names == set(re.findall(r"'(\w+)'", code.split("raise_compiler_error")[0]))
    for file in files:
        assert f"return({file}_connector())" in code
        assert "envelope_capabilities(" in macros[f"{file}_connector"]["macro_sql"]
    assert files <= pages
    assert connectors().keys() == names
    own = {name for name in macros if re.fullmatch(r"[a-z]\w*_connector", name)} - {"debezium_connector"}
    assert own == set(re.findall(r"return\((\w+)\(\)\)", code))
    with (REPOSITORY / "seeds" / "cdc_operations.csv").open(encoding="utf-8", newline="") as seed:
        operations = {row["op"]: row["name"] for row in csv.DictReader(seed)}
    told = (
        (REPOSITORY / "docs" / "dbt" / "columns.md").read_text(encoding="utf-8").split("{% enddocs")[0]
    )  # the first is `_cdc_op`
    assert dict(re.findall(r"`(\w)` (?:snapshot )?(\w+)", told)) == operations


def test_python_reads_what_the_macros_of_each_connector_declare(project: Path) -> None:
    """The declarations stand in `macros/connectors` alone: Python has what dbt has, and knows no other connector."""
    from adapter import Macros

    from scripts.connectors import capabilities, connector_names
    from scripts.dialects import DIALECTS, PECULIAR

    macros = Macros().module()
    names = macros.connector_names()
    assert names == connector_names() == [dialect.connector for dialect in DIALECTS]
    assert len({dialect.connector for dialect in PECULIAR} & set(names)) == len(PECULIAR)
    for name in names:
        declared, read = macros.debezium_connector(name), dict(capabilities(name))
        assert declared.keys() == read.keys()
        paths = [[f"_event.payload.{path}" for path in members] for members in read.pop("table")]
        assert declared.pop("table") == [
            members[0] if len(members) == 1 else f"coalesce({', '.join(members)})" for members in paths
        ], f"{name}: a name of the table is a member, or a coalesce of members"
        assert {member for member, value in read.items() if value != declared[member]} <= SQL, name
        assert bool(read["passes_keys_on"]) == bool(declared["passes_keys_on"])
        assert {*map(bool, read["read_as"])} <= {True} and (name in read["read_as"] or not read["read_as"]), name


def test_every_connector_has_a_case_of_its_positions() -> None:
    shown: set[str] = set()
    for path in (REPOSITORY / "tests" / "cases").rglob("*.json"):
        case = json.loads(path.read_text(encoding="utf-8"))
        if any(position for changes in case.get("changes", {}).values() for _, _, position in changes):
            notes = "\n".join(note for step in case["steps"] for note in step.get("notes", []))
            shown.update(re.findall(r": (\w+), types from", notes))
    assert shown == set(connectors())


def test_only_the_connectors_files_know_connectors(macros: dict[str, Node]) -> None:
    names = "|".join(re.findall(r"'(\w+)'", macros["connector_names"]["macro_sql"]))
    for name, macro in macros.items():
        if not macro["original_file_path"].startswith("macros/connectors/"):
            code = re.sub(r"{#.*?#}", "", macro["macro_sql"], flags=re.DOTALL)
            assert not re.search(rf"['\"_]({names})['\"_]", code), name


def test_the_reasons_to_reject_are_those_that_are_documented(macros: dict[str, Node]) -> None:
    page = (REPOSITORY / "docs" / "rejects.md").read_text(encoding="utf-8").split("## Records that cannot be used")[1]
    documented = re.findall(r"^\| `(\w+)", page, re.MULTILINE)
    connectors = [m["macro_sql"] for m in macros.values() if m["original_file_path"].startswith("macros/connectors/")]
    rejects = re.findall(r"'reject': .*(?:\n +~ .*)*", "\n".join(connectors))
    code = "".join([macros["_reject_reason"]["macro_sql"], macros["_error"]["macro_sql"], *rejects])

    assert sorted(documented) == sorted(set(re.findall(r"(?:then |null, |else )'(\w+)'", code)) | {"value_not_exact"})


def test_the_types_that_are_documented_and_written_are_those_that_are_read(
    project: Path, macros: dict[str, Node]
) -> None:
    from scripts import schema

    page = (REPOSITORY / "docs" / "types.md").read_text(encoding="utf-8")
    documented = set(
        re.findall(r"`(\w+)", "\n".join(line.split("|")[1] for line in page.splitlines() if line.startswith("| `")))
    )
    known = re.findall(r"name (?:==|in) (\([^)]*\)|'\w+')", macros["debezium_type"]["macro_sql"])
    read = set(re.findall(r"'(\w+)'", " ".join(known)))

    assert documented == (read - {"Tsvector"}) | {"array"}  # as Debezium 3.5 spells TsVector
    assert {*schema.SEMANTIC_TYPES.values(), *schema.PLAIN_TYPES.values()} <= read


# Python


def test_no_module_is_longer_than_400_lines_and_no_function_than_60() -> None:
    long = []
    for path in sorted((REPOSITORY / "scripts").glob("*.py")):
        text = path.read_text(encoding="utf-8")
        lines = len(text.splitlines())
        if lines > 400:
            long.append(f"{path.name} has {lines} lines")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                lines = (node.end_lineno or 0) - node.lineno + 1
                long += [f"{node.name} of {path.name} has {lines} lines"] if lines > 60 else []
    assert not long, "take these apart by what they do:\n" + "\n".join(long)


# Models


def test_a_model_is_metadata_and_one_call(models: dict[str, Node]) -> None:
    calls = {
        "staging": {"debezium_changes", "debezium_events"},
        "silver": {"debezium_latest", "debezium_log"},
        "live": {"debezium_live"},
        "history": {"debezium_history", "debezium_as_of"},
        "monitoring": {
            "debezium_event_counts",
            "debezium_rejected_events",
            "debezium_ddl_history",
            "debezium_transactions",
            "debezium_lag",
        },
    }
    for name, model in scaffolded(models).items():
        text = MODEL.fullmatch((REPOSITORY / model["original_file_path"]).read_text(encoding="utf-8"))
        assert text and text[1] in calls[model["fqn"][1]], name


def test_each_layer_reads_the_one_below(models: dict[str, Node]) -> None:
    tables = {f"model.debezium_lakehouse.{name}" for name in (*layer(models, "silver"), *layer(models, "live"))}
    for model in layer(models, "marts").values():
        assert set(model["depends_on"]["nodes"]) <= tables
    for name, model in scaffolded(models).items():
        reads = model["depends_on"]["nodes"]
        system = model["fqn"][2]
        records = f"source.debezium_lakehouse.bronze.{system}"
        if "routed = true" in model["raw_code"]:
            records = f"model.debezium_lakehouse.{system}__events"
        below = {
            "staging": [records],
            "silver": [f"model.debezium_lakehouse.stg_{name}"],
            "live": [f"model.debezium_lakehouse.{name.removeprefix('live_')}"],
            "history": [
                f"model.debezium_lakehouse.{name.replace('history_', 'stg_').replace('versions_', 'history_')}"
            ],
        }
        if model["fqn"][1] in below:
            assert reads == below[model["fqn"][1]], name
        elif name.endswith(("__ddl_history", "__transactions")):
            assert reads == [f"source.debezium_lakehouse.bronze.{system}"], name
        else:  # every table of the system
            tables = {
                f"model.debezium_lakehouse.{other}"
                for other in (*layer(models, "staging"), *layer(models, "silver"))
                if other.startswith((f"stg_{system}__", f"{system}__")) and not other.endswith("__events")
            }
            assert set(reads) == tables | {f"source.debezium_lakehouse.bronze.{system}"}, name


def test_aliases_of_incremental_models_are_unique(models: dict[str, Node]) -> None:
    """What a commit has merged is a setting of the session until then, named by the alias: threads share a session."""
    incremental = [model for model in models.values() if model["config"]["materialized"] == "incremental"]
    aliases = Counter(
        ("history_" if model["schema"] == "history" else "") + model["alias"].lower() for model in incremental
    )

    assert set(layer(models, "silver")) <= set(aliases)
    assert [alias for alias, times in aliases.items() if times > 1] == []


def test_models_stand_where_the_readme_says(project: Path, models: dict[str, Node]) -> None:
    from scripts.names import safe_name

    for name, model in models.items():
        kind, system = model["fqn"][1:3]
        if kind == "live":
            table = [safe_name(part) for part in declared(models, name)["table"]]
            assert name == f"live_{system}__{model['alias']}"
            assert model["schema"] == system
            assert model["alias"] in (table[-1], "__".join(table))
        elif name.startswith("history_"):
            assert (model["schema"], model["alias"]) == ("history", name.removeprefix("history_"))
        elif name.startswith("versions_"):
            assert (model["schema"], f"versions_{system}__{model['alias']}") == (f"{system}_history", name)
        else:
            assert (model["schema"], model["alias"]) == (kind, name)
    assert len({(model["schema"], model["alias"]) for model in models.values()}) == len(models)


def test_every_model_and_column_is_described(models: dict[str, Node]) -> None:
    from scripts.connectors import capabilities

    for name, model in models.items():
        kind = model["fqn"][1]
        assert model["description"].strip(), name
        assert all(column["description"].strip() for column in model["columns"].values()), name
        if kind == "marts":
            assert model["columns"], name
        if kind in ("marts", "monitoring", "history") or name.endswith("__events"):
            continue
        table = declared(models, name.removeprefix("stg_"))
        columns = list(table["columns"])
        patches = ["_cdc_patches"] if table["connector"] == "mongodb" and table["keys"] else []
        passes_keys_on = table["keys"] and capabilities(table["connector"])["passes_keys_on"]
        metadata = METADATA + (
            ["_cdc_held", *patches, *(["_cdc_moves"] if passes_keys_on else [])] if table["keys"] else []
        )
        if kind == "silver":
            columns = metadata if table["keys"] else columns + metadata
        if kind == "staging":  # the docs site has the descriptions of the other models
            columns = []
        assert list(model["columns"]) == columns, name


def test_every_table_with_a_key_has_a_live_view_and_its_tests(
    manifest: dict[str, Any], models: dict[str, Node]
) -> None:
    tests: dict[str, list[str]] = {}
    for node in manifest["nodes"].values():
        if node["resource_type"] == "test":
            tests.setdefault(node["attached_node"].rsplit(".", 1)[1], []).append(node["test_metadata"]["name"])
    live = layer(models, "live")
    for name in layer(models, "silver"):
        has_key = bool(declared(models, name)["keys"])
        assert (f"live_{name}" in live) == has_key, name
        expected = ["newest_change_wins", "no_log_reset", "unique_key"]
        if connectors()[declared(models, name)["connector"].partition("(")[0]]["snapshot_has_one_position"] == "true":
            expected.insert(2, "no_row_missed_by_snapshot")
        assert sorted(tests.get(name, [])) == (expected if has_key else ["no_log_reset"]), name
    for name in layer(models, "monitoring"):
        expected = ["every_record_counted", "rejected_share"] if name.endswith("__event_counts") else []
        assert sorted(tests.get(name, [])) == expected, name


def test_everything_locked_is_in_the_sbom_with_its_hash_and_licence() -> None:
    from scripts.sbom import document

    parts = document()["components"]
    by_name = {part["name"]: part for part in parts}
    locked = re.findall(r"^(\S+)==", (REPOSITORY / "requirements.lock").read_text(), re.MULTILINE)
    jars = [
        line
        for lock in (REPOSITORY / "scripts").glob("*.lock")
        for line in lock.read_text().splitlines()
        if line[0] != "#"
    ]
    assert len(parts) == len(locked) + len(jars) > 50
    assert all(part["hashes"] for part in parts) and "dbt-spark" in by_name
    assert by_name["pyspark"]["licenses"] == by_name["sqlite-jdbc"]["licenses"] == [{"license": {"name": "Apache-2.0"}}]
    assert by_name["orjson"]["purl"].startswith("pkg:pypi/orjson@3.")
    unstated = [part["name"] for part in parts if "licenses" not in part]
    assert set(unstated) <= {
        "exceptiongroup",
        "greenlet",
        "tomli",
        "tzdata",
    }, "packages of other Pythons and systems only"


def test_a_unit_test_of_a_history_asks_no_table() -> None:
    """dbt gives it rows, and a manifest without the change log."""
    from adapter import Macros

    model = SimpleNamespace(resource_type="unit_test", name="m")
    module = Macros().module(execute=True, flags=SimpleNamespace(WHICH="build"), model=model)
    assert "from changes" in " ".join(module.debezium_history(changes="changes", keys=["id"]).split())
