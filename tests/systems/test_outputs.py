"""The demo's tables are the same whichever output of the profile builds them: rows counted, and checksums compared."""

import importlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from clusters import LOOPBACK, object_store, rest_catalog, standalone_cluster, thrift_server
from conftest import REPOSITORY

pytestmark = pytest.mark.soak
# What docs/clusters.md says to install for dbt through Thrift.
PYHIVE = ["PyHive==0.7.0", "thrift==0.25.0", "thrift_sasl==0.4.3", "pure-sasl==0.6.2", "future==1.0.0"]
SUM = "sum(crc32(to_json(struct(*), map('ignoreNullFields', 'false'))))"


class Project:
    """A copy of the project, in which the commands run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("macros", "models", "profiles", "docs", "seeds", "samples"):
            shutil.copytree(REPOSITORY / name, folder / name)
        shutil.copy(REPOSITORY / "dbt_project.yml", folder)
        names = ("SPARK_REMOTE", "LAKEHOUSE_TARGET", "EVENTS", "SYSTEM")
        self.environment = {
            **{name: value for name, value in os.environ.items() if name not in names},
            "LAKEHOUSE_DIR": str(folder / "lakehouse"),
            "LAKEHOUSE_PROJECT": str(folder),
            "LAKEHOUSE_JARS": os.environ.get("LAKEHOUSE_JARS", str(REPOSITORY / ".venv" / "jars")),
            "DBT_PROFILES_DIR": str(folder / "profiles"),
            "PYTHONPATH": str(REPOSITORY),
        }

    def call(self, module: str, *arguments: str, stdin: str = "", **environment: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", f"scripts.{module}", *arguments],
            cwd=self.folder,
            env={**self.environment, **environment},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=1500,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def error(self, **environment: str) -> str:
        """The last error of a run that fails."""
        done = subprocess.run(
            [sys.executable, "-m", "scripts.run"],
            cwd=self.folder,
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 1, done.stdout
        return next(line for line in done.stderr.splitlines() if line.startswith("Error: "))

    def live(self) -> list[str]:
        """The names of all live tables and views."""
        found = []
        for path in sorted((self.folder / "models" / "live").glob("*/*.sql")):
            alias = re.search(r"alias = '([^']*)'", path.read_text())
            found.append(f"`{path.parent.name}`.`{alias[1] if alias else path.stem}`")
        return found

    def built(self, **environment: str) -> list[str]:
        """Build the demo twice, the second time with nothing new; give the rows of each live table, and a sum."""
        self.call("run", **environment)
        assert "Nothing new to build." in self.call("run", **environment)
        return self.sums(**environment)

    def sums(self, **environment: str) -> list[str]:
        parts = [f"select '{name}' as t, count(*) as n, {SUM} as s from {name}" for name in self.live()]
        told = self.call("sql", stdin=" union all ".join(parts) + " order by t;", **environment)
        return [line for line in told.splitlines() if "`" in line]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    found = Project(tmp_path_factory.mktemp("local") / "project").built()
    assert len(found) > 10 and any("`shop`.`orders`" in line for line in found)
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("servers")


@pytest.fixture(scope="module")
def databases() -> Any:
    sys.path.append(str(REPOSITORY / "tests" / "capture"))
    return importlib.import_module("databases")


@pytest.fixture(scope="module")
def master(folder: Path, databases: Any) -> Iterator[str]:
    with standalone_cluster(folder, tuple(databases.free_port() for _ in range(4))) as address:
        yield address


@pytest.fixture(scope="module")
def store(folder: Path, databases: Any) -> Iterator[dict[str, str]]:
    with object_store(folder, databases.free_port()) as environment:
        yield environment


def on_cluster(master: str) -> dict[str, str]:
    return {"LAKEHOUSE_TARGET": "cluster", "LAKEHOUSE_MASTER": master, "LAKEHOUSE_EXECUTOR_MEMORY": "1g"}


def test_executors_on_a_cluster(expected: list[str], master: str, tmp_path: Path) -> None:
    assert Project(tmp_path / "project").built(**on_cluster(master)) == expected


def test_a_resident_server_on_a_cluster(expected: list[str], master: str, tmp_path: Path) -> None:
    """`make up` is a Connect server whose executors are on the cluster; then the same by SPARK_REMOTE."""
    project = Project(tmp_path / "project")
    told = project.call("server", "up", **on_cluster(master))
    try:
        assert project.built(**on_cluster(master)) == expected
        address = re.search(r"SPARK_REMOTE='([^']*)'", told)
        assert address and project.sums(SPARK_REMOTE=address[1]) == expected
    finally:
        project.call("server", "down", **on_cluster(master))


def test_tables_in_an_object_store_with_a_catalog_in_postgresql(
    expected: list[str], store: dict[str, str], databases: Any, tmp_path: Path
) -> None:
    """The password is in a file that PostgreSQL's driver reads, and is shown nowhere."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        folder.chmod(0o711)  # the server has an account of its own
        try:
            database = databases.PostgreSql(folder / "postgresql")
        except databases.CaptureError as error:
            assert not os.environ.get("CI"), error
            pytest.skip(str(error).replace("\n", " "))
        stack.enter_context(database)
        database.execute("create database lake;")
        passwords = tmp_path / "passwords"
        passwords.touch(mode=0o600)
        passwords.write_text(f"{LOOPBACK}:{database.port}:lake:{database.user}:{database.password}\n")
        project = Project(tmp_path / "project")
        found = project.built(
            LAKEHOUSE_TARGET="s3",
            LAKEHOUSE_CATALOG_URI=f"jdbc:postgresql://{LOOPBACK}:{database.port}/lake",
            LAKEHOUSE_CATALOG_USER=database.user,
            PGPASSFILE=str(passwords),
            **store,
        )
        assert found == expected
        secrets = (database.password, store["AWS_SECRET_ACCESS_KEY"])
        texts = [path.read_text(errors="replace") for path in project.folder.rglob("*") if path.is_file()]
        assert not any(secret in text for text in texts for secret in secrets)


def test_tables_in_an_object_store_behind_a_rest_catalog(
    expected: list[str], store: dict[str, str], folder: Path, databases: Any, tmp_path: Path
) -> None:
    project, output = Project(tmp_path / "project"), {"LAKEHOUSE_TARGET": "rest", **store}
    project.call("setup", LAKEHOUSE_CATALOG_URI="unknown", **output)  # the jars, which the server needs too
    with rest_catalog(folder, databases.free_port(), store) as address:
        assert project.built(LAKEHOUSE_CATALOG_URI=address, **output) == expected


def test_dbt_through_the_thrift_server(
    expected: list[str], folder: Path, databases: Any, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The loader lands through the same server's Spark Connect."""
    library = tmp_path_factory.mktemp("pyhive")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(library)]
    subprocess.run([*pip, *PYHIVE], check=True)
    project = Project(tmp_path / "project")
    project.environment["PYTHONPATH"] += f"{os.pathsep}{library}"
    properties = project.call("server", "properties")
    (project.folder / "lakehouse").mkdir()
    ports = (databases.free_port(), databases.free_port())
    with thrift_server(folder, project.folder, properties, ports) as (port, address):
        project.call("sql", stdin="create schema default;", SPARK_REMOTE=address)
        found = project.built(LAKEHOUSE_TARGET="thrift", LAKEHOUSE_THRIFT_PORT=str(port), SPARK_REMOTE=address)
    assert found == expected


def test_a_catalog_without_views(expected: list[str], tmp_path: Path) -> None:
    """Iceberg's Hadoop catalog has none, as Glue. Each command works, and a view would have failed."""
    project = Project(tmp_path / "project")
    profile = project.folder / "profiles" / "profiles.yml"
    text = profile.read_text()
    assert text.count("lakehouse.type: jdbc") == 1
    text = re.sub('spark.sql.catalog.lakehouse.uri: "jdbc:sqlite.*', "", text)
    profile.write_text(text.replace("lakehouse.type: jdbc", "lakehouse.type: hadoop"))
    assert project.built(LAKEHOUSE_VIEWS="table") == expected
    for module in ("report", "maintain"):
        project.call(module, LAKEHOUSE_VIEWS="table")
    dbt = [str(Path(sys.executable).with_name("dbt")), "test", "--quiet"]
    environment = {**project.environment, "LAKEHOUSE_VIEWS": "table"}
    done = subprocess.run(dbt, cwd=project.folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert project.sums(LAKEHOUSE_VIEWS="table") == expected


def test_what_a_cluster_or_a_store_lacks_is_named(master: str, store: dict[str, str], tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    output = {"LAKEHOUSE_TARGET": "s3", "LAKEHOUSE_CATALOG_URI": f"jdbc:sqlite:{tmp_path}/catalog.db", **store}
    told = "the bucket of LAKEHOUSE_WAREHOUSE=s3://nosuch/tables does not exist"
    assert told in project.error(**{**output, "LAKEHOUSE_WAREHOUSE": "s3://nosuch/tables"})

    keyless = {name: value for name, value in output.items() if not name.startswith("AWS_")}
    told = project.error(**keyless, HOME=str(tmp_path), AWS_EC2_METADATA_DISABLED="true")
    assert told.startswith("Error: no keys for the object store were found.")

    profile = project.folder / "profiles" / "profiles.yml"
    text = profile.read_text()
    assert text.count("spark.executor.extraClassPath: *class_path") == 1
    profile.write_text(
        text.replace("spark.executor.extraClassPath: *class_path", "spark.executor.extraClassPath: /no/*")
    )
    assert "Error: the executors do not find Iceberg." in project.error(**on_cluster(master))
