"""One Spark session and one dbt for all tests, in a project of their own: the repository's macros, no models."""

import json
import os
import shutil
import signal
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from one_jvm import session_in_one_jvm

REPOSITORY = Path(__file__).resolve().parent.parent
SHARED = REPOSITORY.parent / "shared"


# The files whose tests take longest come first, or a worker would be alone with one of them at the end.
LONGEST = [
    "tables",
    "kafka",
    "resets",
    "dbt_runs",
    "captures",
    "end_to_end",
    "landing",
    "commands",
    "kills",
    "histories",
    "routing",
    "stories",
]
LONGEST += ["cases", "crashes", "server", "connectors", "documents", "worlds", "containers", "readers", "dbt_project"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    names = [f"test_{name}" for name in LONGEST]
    items.sort(key=lambda item: names.index(item.path.stem) if item.path.stem in names else len(names))


def pytest_configure() -> None:
    """A shell's background jobs ignore Ctrl-C, and so would the commands that the tests start and stop."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A copy of the project without models, and a lakehouse beside it."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("macros", "profiles", "docs", "seeds"):
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


@pytest.fixture(scope="session")
def spark(project: Path, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The Spark session of all tests of this process; the workers of a run have theirs in one JVM."""
    from scripts.setup import kafka_jars
    from scripts.spark import LONG_RUN, PROJECT, session

    assert str(project) == os.environ["LAKEHOUSE_PROJECT"] == str(PROJECT), "scripts was imported too early"
    with_kafka = any("broker" in getattr(item, "fixturenames", ()) for item in request.session.items)
    jars = kafka_jars() if with_kafka else []
    with pytest.MonkeyPatch.context() as patch:  # not for the processes that tests start
        # Collected by all cores, as all processes wait for it. To compile takes a large part of the time: so that is
        # done later than usual, and methods take in less of those that they call. With the first compiler alone, a
        # whole run takes a fifth longer.
        options = LONG_RUN.replace("SerialGC", "ParallelGC") + " -XX:CompileThresholdScaling=2.5"
        options += " -XX:FreqInlineSize=50 -XX:MaxInlineLevel=5 -XX:-DoEscapeAnalysis"
        patch.setenv("LAKEHOUSE_JVM_OPTIONS", os.environ.get("LAKEHOUSE_JVM_OPTIONS", options))
        if "PYTEST_XDIST_WORKER" not in os.environ:
            return session(jars)
        patch.setenv("LAKEHOUSE_DRIVER_MEMORY", "4g")
        return session_in_one_jvm(tmp_path_factory.getbasetemp().parent / "jvm", jars)


@pytest.fixture(autouse=True)
def interpreted(request: pytest.FixtureRequest) -> None:
    """The session interprets its queries: to compile one takes longer than its few rows do.

    The demo, and the commands that tests start as processes, compile theirs, as users' do. dbt sets what its profile
    says: so this is set for each test.
    """
    if "spark" in request.fixturenames:
        no_code = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
        few_rows = {"spark.sql.shuffle.partitions": "1", "spark.sql.adaptive.enabled": "false"}
        short_plans = {"spark.sql.execution.removeRedundantProjects": "false"}
        # After each of its rules Spark checks what it did; it goes on doing so in the demo and in commands.
        unchecked_plans = {"spark.sql.lightweightPlanChangeValidation": "false"}
        lands = request.path.parent.name in ("stories", "systems") or request.node.get_closest_marker("loader")
        as_dbt = {"spark.sql.ansi.enabled": "false"}  # dbt-spark turns it off, whatever a profile says
        literals = {
            "spark.sql.execution.arrow.localRelationThreshold": "0" if lands else "48MB"
        }  # 0: as the loader has it
        for name, value in {**no_code, **few_rows, **short_plans, **unchecked_plans, **as_dbt, **literals}.items():
            request.getfixturevalue("spark").conf.set(name, value)


# Models of a system that an engine's test builds itself, by `lakehouse.view`, if it reads them.
READ_BY_FEW = ("lag", "ddl_history", "transactions")


class Lakehouse:
    """What the tests do with a lakehouse: `make run`'s own steps, and reading tables back."""

    def __init__(self, project: Path, spark: Any, owners: Path) -> None:
        from scripts import bronze, build, dbt_commands, run

        self.project = project
        self.spark = spark
        self._run = run
        self._build = build
        self._dbt_commands = dbt_commands
        self.said: list[str] = []
        self.tests = ""  # the file of the test that has it
        self._owners = owners
        self._files = 0
        create_bronze = bronze.create

        def create_own(spark: Any, system: str) -> None:
            self._own(system)
            create_bronze(spark, system)

        bronze.create = create_own  # which every landing calls, also that of a whole `make run`
        self._parsed = b""
        self._engine: Any = None
        self._landing: Any = None
        self._dbt_of_run, self._manifest_of_dbt = dbt_commands.run, dbt_commands.manifest

    def _own(self, system: str) -> None:
        """Files of tests come in any order, and may share a lakehouse: none can have the system of another one."""
        owner = self._owners / system
        with suppress(FileExistsError), owner.open("x") as file:
            file.write(self.tests)
        assert owner.read_text() == self.tests, f"the system {system} is one of {owner.read_text()}: name it otherwise"

    def without_dbt(self, engine: Any, landing: Any = None) -> None:
        """From now on the engine builds what dbt would have built (None: dbt does again).

        Args:
            landing: lands records in the loader's place.
        """
        self._engine, self._landing = engine, landing
        self._dbt_commands.run = self._built_by_engine if engine else self._dbt_of_run
        self._dbt_commands.manifest = engine.manifest if engine else self._manifest_of_dbt

    def _built_by_engine(
        self, arguments: list[str], say: Any, models: Collection[str] = (), manifest: Any = None, conflicts: Any = None
    ) -> list[str]:
        if arguments[0] == "run-operation":
            return list(self._engine.operation(arguments[1], json.loads(arguments[3]), say))
        models_of_test = self.project / "models"
        selected, full_refresh = _selection(arguments, models_of_test)
        of_systems = {f"{folder.name}__{name}" for folder in models_of_test.glob("staging/*") for name in READ_BY_FEW}
        selected = [name for name in selected if name not in of_systems]
        return list(self._engine.run(selected, full_refresh, say))

    def forget_models(self) -> None:
        """As before the first test: dbt parses all models with every run, and everything anew when one is gone."""
        for folder in (self.project / "models").iterdir():
            shutil.rmtree(folder)
        if self._parsed:
            (self.project / "target" / "partial_parse.msgpack").write_bytes(self._parsed)

    def land(self, system: str, records: Any) -> Any:
        """Land records (written to a new file, in their order), the file or folder at a path, or topics."""
        from scripts.files import event_files
        from scripts.kafka import Topics
        from scripts.loader import land_files, land_topics

        if isinstance(records, Topics):
            return land_topics(self.spark, system, records)
        if self._landing:
            return self._landing.land(system, records)
        if isinstance(records, list):
            self._files += 1
            path = self.project / "events" / f"{system}-{self._files:05}.jsonl"
            path.parent.mkdir(exist_ok=True)
            text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
            path.write_bytes(text.encode("utf-8", "surrogatepass"))
            records = path
        return land_files(self.spark, system, event_files(str(records)))

    def scaffold(
        self,
        system: str,
        connector: str | None = None,
        keys: dict[str, list[str]] | None = None,
        servers: str | None = None,
    ) -> Any:
        from scripts.built import Built
        from scripts.observe import Bronze
        from scripts.scaffold import scaffold

        built = Built()
        known, refused = built.up_to(self.spark, system), set(built.state["refused"].get(system, []))
        bronze = self._landing.records(system) if self._landing else Bronze(self.spark, system)
        return scaffold(bronze, connector, keys or {}, known, self.project / "models", servers, refused)

    def run(
        self,
        system: str,
        records: Any,
        connector: str | None = None,
        keys: dict[str, list[str]] | None = None,
        servers: str | None = None,
    ) -> Any:
        """Land, scaffold and build, as `make run` does. Returns what the scaffold said."""
        self.land(system, records)
        return self.build_landed(system, connector, keys, servers)

    def build_landed(
        self,
        system: str,
        connector: str | None = None,
        keys: dict[str, list[str]] | None = None,
        servers: str | None = None,
    ) -> Any:
        """Scaffold and build. Returns what the scaffold said."""
        done = self.scaffold(system, connector, keys, servers)
        self.said = []
        failed = self._build.build(self.spark, [system], [done], self.said.append)
        assert not failed, "\n".join(self.said)
        return done

    def dbt(self, *arguments: str) -> Any:
        """A dbt command; without dbt, the engine runs models all the same."""
        if self._engine and arguments[0] == "run" and "--empty" not in arguments:
            selected, full_refresh = _selection(arguments, self.project / "models")
            result = self._engine.run(selected, full_refresh, lambda _: None)
            nodes = [
                SimpleNamespace(node=SimpleNamespace(name=name), message=result.get(name, ""))
                for name in sorted(selected)
            ]
            return SimpleNamespace(success=not result, exception=None, result=nodes)
        from dbt.cli.main import dbtRunner

        if not self._parsed:
            dbtRunner().invoke(["parse", "--quiet", "--log-level", "none", "--log-level-file", "none"])
            self._parsed = (self.project / "target" / "partial_parse.msgpack").read_bytes()
        return dbtRunner().invoke([*arguments, "--log-level", "none", "--log-level-file", "none"])

    def rows(self, relation: str, order: str = "1") -> list[dict[str, Any]]:
        return [
            row.asDict(recursive=True) for row in self.spark.sql(f"select * from {relation} order by {order}").collect()
        ]

    def printed(self, relation: str, order: str = "1") -> list[dict[str, Any]]:
        """The rows of a relation with every value as its text, bytes as base64."""
        columns = [
            f"base64(`{name}`) as `{name}`" if kind == "binary" else f"cast(`{name}` as string) as `{name}`"
            for name, kind in self.spark.table(relation).dtypes
        ]
        query = f"select {', '.join(columns)} from (select * from {relation} order by {order})"
        return [row.asDict() for row in self.spark.sql(query).collect()]

    def table(self, relation: str) -> Any:
        return self.spark.table(relation)

    def sql(self, query: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.spark.sql(query).collect()]

    def resets(self, system: str) -> dict[str, dict[str, list[int]]]:
        """What `make run` tells of resets: table → partition or file → first and last number, and how many changes."""
        from scripts import resets

        models = {path.stem for path in (self.project / "models").glob(f"staging/{system}/*.sql")}
        assert not resets.ask(self.spark, [system], models, print)
        return resets.resets(self.spark, [system])[system]

    def failing(self, *models: str, test: str = "") -> dict[str, Any]:
        """`<test> <model>` → what it finds, of the tests in the YAML of these models, run by the engine."""
        return dict(self._engine.test(models, test))

    def view(self, system: str, name: str) -> str:
        """A view of a system that only few tests read, built by the engine."""
        assert name in READ_BY_FEW
        self._engine.run([f"{system}__{name}"])
        return f"monitoring.{system}__{name}"

    def rejected(self, system: str) -> list[tuple[Any, ...]]:
        return self.sql(f"select event_id, reason from monitoring.{system}__rejected_events order by 1, 2")


def _selection(arguments: Sequence[str], models: Path) -> tuple[list[str], bool]:
    """The models that arguments of `dbt run` choose, by name, by system (`source:bronze.<system>+`) or by `path:`."""
    chosen = list(arguments[arguments.index("--select") + 1 :])
    names: list[str] = []
    for one in (text for text in chosen if not text.startswith("--")):
        if one.startswith("source:bronze."):
            names += [
                path.stem for path in models.glob(f"*/{one.removeprefix('source:bronze.').removesuffix('+')}/*.sql")
            ]
        elif one.startswith("path:"):
            names += [path.stem for path in (models.parent / one.removeprefix("path:")).rglob("*.sql")]
        else:
            names.append(one)
    return names, "--full-refresh" in arguments


@pytest.fixture(scope="session")
def _one_lakehouse(project: Path, spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Lakehouse:
    run = tmp_path_factory.getbasetemp()
    owners = (run.parent if "PYTEST_XDIST_WORKER" in os.environ else run) / "owners"
    owners.mkdir(exist_ok=True)
    return Lakehouse(project, spark, owners)


@pytest.fixture
def lakehouse(request: pytest.FixtureRequest, spark: Any) -> Iterator[Any]:
    """What a level's tests land in and build (CONTRIBUTING.md): a workbench, or the lakehouse of all tests, with or
    without dbt.

    It has the models of this test only.
    """
    level = request.path.parent.name
    if level == "rendered":
        yield request.getfixturevalue("workbench")
        return
    one: Lakehouse = request.getfixturevalue("_one_lakehouse")
    one.tests = request.path.name
    if level == "engine":
        with engine_for(one, has_loader=request.node.get_closest_marker("loader") is not None):
            yield one
        return
    yield one
    one.forget_models()


@contextmanager
def engine_for(lakehouse: Lakehouse, has_loader: bool = False) -> Iterator[None]:
    """The engine builds what dbt would, and lands by one append what the loader would; then the models are gone."""
    from adapter import Engine, LandingInBronze

    landing = None if has_loader else LandingInBronze(lakehouse.spark, lakehouse.project / "events")
    lakehouse.without_dbt(Engine(lakehouse.spark, lakehouse.project / "models"), landing)
    yield
    lakehouse.without_dbt(None)
    lakehouse.forget_models()


@pytest.fixture
def workbench(spark: Any, tmp_path: Path) -> Iterator[Any]:
    """A lakehouse without tables: what the macros make of records, asked of one session."""
    from workbench import Workbench

    workbench = Workbench(spark, tmp_path / "project")
    yield workbench
    workbench.forget()


@pytest.fixture(scope="session")
def tables(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Tables of Iceberg that the engine builds without dbt."""
    from tables import Tables

    return Tables(spark, tmp_path_factory.mktemp("engine") / "project")


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A Kafka for all tests; they use topics of their own."""
    from kafka_broker import Broker, missing_programs

    if missing := missing_programs():
        assert not os.environ.get("CI"), f"missing in CI: {missing}"
        pytest.skip(f"the broker needs {', '.join(missing)}")
    broker = Broker(tmp_path_factory.mktemp("broker"))
    yield broker
    broker.stop()


def corpus(name: str) -> Path:
    """The folder of a corpus of other projects' events; tests of it are skipped where the corpora are not."""
    if not (SHARED / "corpora").exists():
        assert not os.environ.get("CI"), "the corpora are missing in CI"
        pytest.skip("the corpora of other projects are not beside this checkout")
    return SHARED / "corpora" / name


def corpus_records(folder: Path) -> list[dict[str, Any]]:
    text = (folder / "events.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.split("\n") if line]


def check_events(
    lakehouse: Lakehouse, system: str, events: list[dict[str, Any]], read: Callable[[Any], Any] = lambda value: value
) -> None:
    """Whether each event gave in staging what its corpus says of it: the row that is left, the key that is gone, or
    nothing.

    Args:
        events: `per_event` of the corpus.
        read: a value of staging as the corpus writes it.
    """
    from scripts.declared import declared_tables

    declared = declared_tables(system, lakehouse.project / "models").values()
    found = {
        row["_cdc_event_id"]: row for one in declared for row in lakehouse.rows(f"staging.stg_{system}__{one.relation}")
    }
    of_no_table = 0
    for event in events:
        name = f"{event['topic']}/0/{event['offset']}"
        action, _, of = event["action"].partition(" ")
        change = found.pop(name, None)
        if action == "ignored":
            of_no_table += change is None
            assert change is None or change["_cdc_kind"] == of.strip("()"), name
            continue
        assert change is not None, name
        kind = {"upsert": ("c", "r", "u"), "delete": ("d",), "truncate": ("t",)}[action]
        row = {column: read(value) for column, value in change.items() if not column.startswith("_cdc_")}
        assert row == dict.fromkeys(row) | event.get("result", {}), name
        assert change["_cdc_op"] in kind and change["_cdc_reject_reason"] is None, name
    assert found == {}
    (others,) = lakehouse.sql(
        f"select coalesce(sum(events), 0) from monitoring.{system}__event_counts where source_table is null"
    )
    assert others == (of_no_table,)
