"""One Spark session and one dbt for all tests, in a project of their own: the repository's macros, no models."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
SHARED = REPOSITORY.parent / "shared"


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A copy of the project without models, and a lakehouse beside it."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("macros", "profiles", "docs"):
        shutil.copytree(REPOSITORY / name, folder / name)
    shutil.copy(REPOSITORY / "dbt_project.yml", folder)
    (folder / "models").mkdir()
    os.environ.setdefault("LAKEHOUSE_JARS", str(REPOSITORY / ".venv" / "jars"))
    os.environ["LAKEHOUSE_DIR"] = str(folder / "lakehouse")
    os.environ["LAKEHOUSE_PROJECT"] = str(folder)
    os.environ["DBT_PROFILES_DIR"] = str(folder / "profiles")
    os.environ["PYTHONPATH"] = str(REPOSITORY)
    os.environ.pop("SPARK_REMOTE", None)  # the tests' tables are no business of a server
    before = Path.cwd()
    os.chdir(folder)
    yield folder
    os.chdir(before)


class Lakehouse:
    """What the tests do with a lakehouse: `make run`'s own steps, and reading tables back."""

    def __init__(self, project: Path) -> None:
        from scripts import run
        from scripts.spark import PROJECT, session

        assert str(project) == os.environ["LAKEHOUSE_PROJECT"] == str(PROJECT), "scripts was imported too early"
        self.project = project
        self.spark = session()
        self._run = run
        self.said: list[str] = []
        self._files = 0

    def land(self, system: str, records: list[dict[str, Any]] | Path) -> Any:
        """Land records (written to a new file, in their order) or the file or folder at a path."""
        from scripts.loader import event_files, land_files

        if isinstance(records, list):
            self._files += 1
            path = self.project / "events" / f"{system}-{self._files:05}.jsonl"
            path.parent.mkdir(exist_ok=True)
            text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
            path.write_bytes(text.encode("utf-8", "surrogatepass"))
            records = path
        return land_files(self.spark, system, event_files(str(records)))

    def scaffold(self, system: str, connector: str | None = None, keys: dict[str, list[str]] | None = None) -> Any:
        from scripts.scaffold import scaffold

        built = self._run.Built().state["batches"].get(system, 0)
        return scaffold(self.spark, system, connector, keys or {}, built, self.project / "models")

    def run(
        self,
        system: str,
        records: list[dict[str, Any]] | Path,
        connector: str | None = None,
        keys: dict[str, list[str]] | None = None,
    ) -> Any:
        """Land, scaffold and build, as `make run EVENTS=… SYSTEM=…` does. Returns what the scaffold said."""
        self.land(system, records)
        done = self.scaffold(system, connector, keys)
        self.said = []
        failed = self._run._build(self.spark, [system], [done], self.said.append)
        assert not failed, "\n".join(self.said)
        return done

    def dbt(self, *arguments: str) -> Any:
        from dbt.cli.main import dbtRunner

        return dbtRunner().invoke([*arguments, "--log-level", "none", "--log-level-file", "none"])

    def rows(self, relation: str, order: str = "1") -> list[dict[str, Any]]:
        return [row.asDict(recursive=True) for row in self.spark.sql(f"select * from {relation} order by {order}").collect()]

    def sql(self, query: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.spark.sql(query).collect()]

    def rejected(self, system: str) -> list[tuple[Any, ...]]:
        return self.sql(f"select event_id, reason from monitoring.{system}__rejected_events order by 1, 2")


@pytest.fixture(scope="session")
def _one_lakehouse(project: Path) -> Lakehouse:
    return Lakehouse(project)


@pytest.fixture
def lakehouse(_one_lakehouse: Lakehouse) -> Iterator[Lakehouse]:
    """The lakehouse of all tests, with the models of this test only: dbt reads all that there are with every run."""
    yield _one_lakehouse
    for folder in (_one_lakehouse.project / "models").iterdir():
        shutil.rmtree(folder)


def corpus(name: str) -> Path:
    """The folder of a corpus of other projects' events; tests of it are skipped where the corpora are not."""
    if not (SHARED / "corpora").exists():
        assert not os.environ.get("CI"), "the corpora are missing in CI"
        pytest.skip("the corpora of other projects are not beside this checkout")
    return SHARED / "corpora" / name
