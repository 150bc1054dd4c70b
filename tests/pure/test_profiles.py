"""The outputs of profiles/profiles.yml, rendered as the loader and dbt read them. No Spark."""

import importlib.util
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import REPOSITORY

from scripts.errors import LakehouseError


def own_copy() -> Any:
    """`scripts.spark` under another name: the module itself may be imported only when the project of other tests is
    there.
    """
    spec = importlib.util.spec_from_file_location("spark_of_profiles", REPOSITORY / "scripts" / "spark.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


spark = own_copy()
Settings = Callable[..., dict[str, str]]
PROFILE = REPOSITORY / "profiles" / "profiles.yml"
OUTPUTS = spark.read_yaml(PROFILE)["debezium_lakehouse"]["outputs"]
READ = re.compile(r"env_var\('(\w+)'(,?)")
NEEDED: dict[str, dict[str, str]] = {
    "cluster": {},
    "s3": {
        "LAKEHOUSE_CATALOG_URI": "jdbc:postgresql://127.0.0.1:5432/lakehouse",
        "LAKEHOUSE_WAREHOUSE": "s3://bucket/lakehouse",
    },
    "rest": {"LAKEHOUSE_CATALOG_URI": "http://127.0.0.1:8181", "LAKEHOUSE_WAREHOUSE": "s3://bucket/lakehouse"},
}
CATALOG = "spark.sql.catalog.lakehouse"


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Settings of an output where only the given variables are set."""

    def rendered(target: str, **variables: str) -> dict[str, str]:
        for name in [name for name in os.environ if name.startswith(("LAKEHOUSE_", "AWS_", "SPARK_REMOTE"))]:
            monkeypatch.delenv(name)
        for name, value in {**variables, "LAKEHOUSE_TARGET": target}.items():
            monkeypatch.setenv(name, value)
        given: dict[str, str] = spark.settings()
        return given

    monkeypatch.setattr(spark, "PROFILES", PROFILE.parent)
    monkeypatch.chdir(REPOSITORY)
    return rendered


@pytest.mark.parametrize("target", OUTPUTS)
def test_output_needs_only_the_variables_that_its_page_asks_for(target: str, settings: Settings) -> None:
    needed = NEEDED.get(target, {})

    assert all(isinstance(value, str) and "{{" not in value for value in settings(target, **needed).values())
    for name in needed:
        with pytest.raises(
            LakehouseError, match=f"^the output {target} needs the environment variable {name}, which is not set"
        ):
            settings(target, **{other: value for other, value in needed.items() if other != name})


def test_output_that_is_not_there_is_named_with_those_that_are(settings: Settings) -> None:
    with pytest.raises(LakehouseError) as error:
        settings("nosuch")
    told = (
        "LAKEHOUSE_TARGET=nosuch: profiles/profiles.yml has no such output. Use one of: remote, local, thrift,"
        " cluster, s3, rest."
    )
    assert str(error.value) == told


def test_output_without_a_spark_of_its_own_asks_for_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark, "PROFILES", PROFILE.parent)
    monkeypatch.setenv("LAKEHOUSE_TARGET", "thrift")
    with pytest.raises(LakehouseError, match="^the output thrift of profiles/profiles.yml has no spark.master: name"):
        spark.local_session([])


def test_a_connect_server_of_another_version_is_named(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    server = SimpleNamespace(version="4.0.1")
    builder = SimpleNamespace(config=lambda **_: SimpleNamespace(getOrCreate=lambda: server))
    settings("remote")
    monkeypatch.setattr(spark, "SparkSession", SimpleNamespace(builder=builder))
    monkeypatch.setattr(spark, "answers", lambda *_, **__: True)
    told = "^SPARK_REMOTE=sc://host:15002: the server is Spark 4.0.1, and this client 4.1"
    with pytest.raises(LakehouseError, match=told):
        spark._remote_session("sc://host:15002/;token=hidden")


def test_dbt_finds_the_profile_from_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    from dbt.cli.resolvers import default_profiles_dir

    monkeypatch.chdir(REPOSITORY)
    assert (default_profiles_dir() / "profiles.yml").samefile(PROFILE)


@pytest.mark.parametrize("target", NEEDED)
def test_executors_and_driver_have_all_jars_at_one_path(target: str, settings: Settings) -> None:
    given = settings(target, **NEEDED[target])

    jars = REPOSITORY / ".venv" / "jars"
    assert given["spark.driver.extraClassPath"] == given["spark.executor.extraClassPath"] == f"{jars}/*:{jars}/extra/*"
    given = settings(target, **NEEDED[target], LAKEHOUSE_JARS="/jars", LAKEHOUSE_EXTRA_JARS="/more")
    assert given["spark.driver.extraClassPath"] == given["spark.executor.extraClassPath"] == "/jars/*:/more/*"


@pytest.mark.parametrize("target", NEEDED)
def test_sizes_and_addresses_come_from_the_environment(target: str, settings: Settings) -> None:
    variables = {
        "LAKEHOUSE_MASTER": "spark://master:7077",
        "LAKEHOUSE_DRIVER_HOST": "driver",
        "LAKEHOUSE_DRIVER_MEMORY": "3g",
        "LAKEHOUSE_EXECUTOR_MEMORY": "5g",
        "LAKEHOUSE_SHUFFLE_PARTITIONS": "16",
    }
    given = settings(target, **NEEDED[target], **variables)

    names = ["master", "driver.host", "driver.memory", "executor.memory", "sql.shuffle.partitions"]
    assert [given[f"spark.{name}"] for name in names] == list(variables.values())
    assert given["spark.driver.bindAddress"] == "driver"
    assert (
        settings(target, **NEEDED[target], **variables, LAKEHOUSE_DRIVER_BIND="0.0.0.0")["spark.driver.bindAddress"]
        == "0.0.0.0"
    )


def test_master_is_a_cluster_or_this_process(settings: Settings) -> None:
    masters = [settings(target, **NEEDED[target])["spark.master"] for target in NEEDED]

    assert masters == ["spark://127.0.0.1:7077", "local[*]", "local[*]"]


def test_object_store_and_catalogs(settings: Settings) -> None:
    for target, kind in (("s3", "jdbc"), ("rest", "rest")):
        given = settings(target, **NEEDED[target], AWS_REGION="eu-west-1")
        assert given[f"{CATALOG}.type"] == kind
        assert given[f"{CATALOG}.uri"] == NEEDED[target]["LAKEHOUSE_CATALOG_URI"]
        assert given[f"{CATALOG}.warehouse"] == NEEDED[target]["LAKEHOUSE_WAREHOUSE"]
        assert given[f"{CATALOG}.io-impl"] == "org.apache.iceberg.aws.s3.S3FileIO"
        assert given[f"{CATALOG}.s3.endpoint"] == "https://s3.eu-west-1.amazonaws.com"
    assert settings("rest", **NEEDED["rest"])[f"{CATALOG}.default-namespace"] == "lakehouse"


@pytest.mark.parametrize("target", NEEDED)
def test_no_secret_becomes_a_setting(target: str, settings: Settings) -> None:
    """PySpark hands settings to Spark on a command line, which every user of the machine can read."""
    aws = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"]
    secrets = [*aws, "LAKEHOUSE_CATALOG_TOKEN", "LAKEHOUSE_CATALOG_CREDENTIAL"]
    given = settings(target, **NEEDED[target], **dict.fromkeys(secrets, "hidden"))

    assert "hidden" not in " ".join(given.values())
    named = {
        name: value for name, value in given.items() if re.search("password|secret|access-key|token$|credential", name)
    }
    assert all(value.startswith("env:") for value in named.values()), named
    read = {name for name, _ in READ.findall(PROFILE.read_text("utf-8"))}
    assert not {name for name in read if re.search("PASSWORD|SECRET|KEY|TOKEN|CREDENTIAL", name)}


def test_every_variable_of_the_profile_is_explained() -> None:
    texts = ("clusters.md", "configuration.md", "dbt-project.md")
    pages = "".join((REPOSITORY / "docs" / page).read_text("utf-8") for page in texts)
    text = PROFILE.read_text("utf-8")
    read = READ.findall(text)

    names = {name for name, _ in read} | set(re.findall(r"env:(\w+)", text))
    assert names <= set(re.findall(r"`(\w+)[`=]", pages))
    required = {name for name, _ in read} - {name for name, comma in read if comma}
    assert required == {"PWD"}.union(*NEEDED.values())
    for name in required - {"PWD"}:
        assert re.search(rf"^\| `{name}` \| none \|", pages, re.MULTILINE), name


def test_ctrl_c_while_spark_starts_stops_once_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    steps = []
    try:
        with pytest.raises(KeyboardInterrupt), spark._ctrl_c_is_noted() as note:
            signal.raise_signal(signal.SIGINT)
            signal.signal(signal.SIGINT, signal.default_int_handler)  # as PySpark does
            note()
            steps.append("started")
        with pytest.raises(KeyboardInterrupt), spark._ctrl_c_is_noted():
            signal.raise_signal(signal.SIGINT)
            steps.append("waits")
            signal.raise_signal(signal.SIGINT)
            steps.append("never")
    finally:
        signal.signal(signal.SIGINT, before)
    assert steps == ["started", "waits"]


def test_a_lakehouse_that_is_no_folder_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv("LAKEHOUSE_DIR", str(file))
    with pytest.raises(LakehouseError, match="cannot be written by this user. Name another folder"):
        spark.require_folder()
