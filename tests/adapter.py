"""What the tests call of the engine, without a dbt run: macros rendered to SQL, and statements run on one session.

This file and workbench.py are the only ones that know how the engine is built inside. `Macros` gives the project's
macros the few functions of dbt that they call; `Records` answers the scaffold from a list of records.
"""

import hashlib
import json
import os
import re
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jinja2
import jinja2.runtime
import pyarrow as pa
from conftest import REPOSITORY
from dbt_common.clients.agate_helper import table_from_data_flat

from scripts import bronze
from scripts.chunks import ARROW_SCHEMA
from scripts.declared import Declared
from scripts.framing import read_records
from scripts.observe import IMAGES, NO_VALUE, OF_ENVELOPES, Arrived, Bronze, Event, ddl_in_order, in_order
from scripts.spark import read_yaml
from scripts.taken import Taken
from scripts.values import parsed

OVERRIDDEN = ("debezium_new_changes", "_start_counting")  # macros that ask a table what it has merged
NOT_MACROS = re.compile(r"(?s)\{% materialization .*?\{%-? *endmaterialization *-?%\}")
TESTS = [(r"\{% test (\w+)", r"{% macro test_\1"), (r"\{% endtest %\}", "{% endmacro %}")]  # as dbt names them


class CompilerError(Exception):
    """What `exceptions.raise_compiler_error` raises."""


class _Returned(Exception):
    def __init__(self, value: object) -> None:
        self.value = value


def _return(value: object = None) -> None:
    raise _Returned(value)


_invoke = jinja2.runtime.Macro._invoke


def _invoke_and_return(self: Any, arguments: Any, autoescape: Any) -> Any:
    """Call a macro; its value is what it returns, as in dbt, else its text."""
    try:
        return _invoke(self, arguments, autoescape)
    except _Returned as returned:
        return returned.value


def _raise(message: str) -> None:
    raise CompilerError(message)


@dataclass(frozen=True)
class Relation:
    """A table or view of the catalog."""

    schema: str
    identifier: str
    is_view: bool = False

    @property
    def name(self) -> str:
        return self.identifier

    def __str__(self) -> str:
        return f"{self.schema}.{self.identifier}"

    @classmethod
    def create(cls, schema: str, identifier: str) -> "Relation":
        return cls(schema, identifier)


class Config(dict[str, Any]):
    """The `config` of a model: called in its text, asked by macros."""

    def __call__(self, **given: Any) -> str:
        self.update(given)
        return ""

    def persist_column_docs(self) -> bool:
        return False


@cache
def _compiled(overridden: tuple[str, ...]) -> tuple[jinja2.Environment, jinja2.Template]:
    jinja2.runtime.Macro._invoke = _invoke_and_return  # type: ignore[method-assign]
    files = sorted((REPOSITORY / "macros").rglob("*.sql"))
    text = "\n".join(NOT_MACROS.sub("", path.read_text(encoding="utf-8")) for path in files)
    for pattern, macro in TESTS:
        text = re.sub(pattern, macro, text)
    for name in overridden:
        assert f"macro {name}(" in text, f"the engine has no macro {name} any more: change tests/adapter.py"
        text = text.replace(f"macro {name}(", f"macro {name}_of_run(")
    environment = jinja2.Environment(extensions=["jinja2.ext.do", "jinja2.ext.loopcontrols"])
    return environment, environment.from_string(text)


@lru_cache(500)
def _template(environment: jinja2.Environment, text: str) -> jinja2.Template:
    """A model's text, which the runs of a test render again and again."""
    return environment.from_string(text)


@dataclass
class Macros:
    """The macros of the project, as a Jinja module.

    Args:
        overridden: macros that are left out, because the caller gives them.
    """

    overridden: tuple[str, ...] = OVERRIDDEN

    def __post_init__(self) -> None:
        self._environment, self._template = _compiled(self.overridden)

    def module(self, **given: Any) -> Any:
        """The macros with what dbt would give them (`this`, `model`, `run_query` …); outside of a run unless `execute`
        is given.
        """
        context: dict[str, Any] = {
            "return": _return,
            "exceptions": SimpleNamespace(raise_compiler_error=_raise),
            "modules": SimpleNamespace(re=re),
            "api": SimpleNamespace(Relation=Relation),
            "tojson": json.dumps,
            "fromjson": json.loads,
            "local_md5": lambda text: hashlib.md5(text.encode()).hexdigest(),
            "execute": False,
            "config": Config(),
            "model": SimpleNamespace(name="m", resource_type="unit_test", depends_on=SimpleNamespace(nodes=[])),
            "flags": SimpleNamespace(WHICH="compile", EMPTY=False),
            "graph": {"nodes": {}, "sources": {}},
            "invocation_id": "none",
            "is_incremental": lambda: False,
            "var": lambda *_: None,
        }
        return self._template.make_module(context | given)

    def text(self, text: str, module: Any, **given: Any) -> str:
        """The SQL of a model's text."""
        macros = {name: getattr(module, name) for name in dir(module) if not name.startswith("__")}
        return _template(self._environment, text).render({**macros, **given}).strip()

    def called(self, text: str, **given: Any) -> tuple[str, dict[str, Any]]:
        """Which macro a model's text calls, and with what arguments."""
        calls: list[tuple[str, dict[str, Any]]] = []

        def noted(name: str) -> Callable[..., str]:
            return lambda **arguments: calls.append((name, arguments)) or ""  # type: ignore[func-returns-value]

        names = "changes latest log live history as_of events event_counts rejected_events ddl_history transactions lag"
        macros = {f"debezium_{name}": noted(f"debezium_{name}") for name in names.split()}
        _template(self._environment, text).render({"config": Config(), **macros, **given})
        (call,) = calls
        return call


@dataclass(frozen=True)
class Landed:
    """A row of bronze, as far as the engine reads it."""

    topic: str | None
    partition: int | None
    offset: int | None
    timestamp: int | None  # milliseconds
    key: str | None
    value: str | None
    headers: list[tuple[str, bytes | None]] | None
    batch: int
    file: str
    line: int
    error: str | None = None
    raw: bytes | None = None

    @property
    def identity(self) -> tuple[Any, ...]:
        """By which the loader knows a record again."""
        headers = tuple(self.headers or ())
        place = (self.topic, self.partition, self.offset) if self.offset is not None else (self.file, self.line)
        return *place, self.timestamp, self.key, self.value, headers, self.raw


LANDED_SCHEMA = pa.schema(  # of bronze, as far as the engine reads it
    [
        *(ARROW_SCHEMA.field(name) for name in ARROW_SCHEMA.names if name != "head"),
        ("batch", pa.int64()),
        ("landed_at", pa.timestamp("us", "UTC")),
    ]
)


def frame(spark: Any, rows: Sequence[Landed]) -> Any:
    """Landed records as rows of bronze."""
    found = [
        {
            **{name: getattr(row, name) for name in LANDED_SCHEMA.names if hasattr(row, name)},
            "timestamp": None if row.timestamp is None else row.timestamp * 1000,
            "headers": [{"key": name, "value": value} for name, value in row.headers] if row.headers else None,
            "landed_at": 0,
            "line_end": row.line,
        }
        for row in rows
    ]
    return spark.createDataFrame(pa.Table.from_pylist(found, LANDED_SCHEMA))


class Landing:
    """What the loader would land of records, in memory and without its ledger.

    Args:
        folder: where the events are written to, in files of their own.
    """

    def __init__(self, folder: Path) -> None:
        self.rows: dict[str, list[Landed]] = {}
        self._folder = folder
        self._files = 0

    def land(self, system: str, records: Any) -> list[Landed]:
        """Read records (written to a new file, in their order) or a file. Returns those that were not read before."""
        if isinstance(records, list):
            self._files += 1
            path = self._folder / f"{system}-{self._files:05}.jsonl"
            path.parent.mkdir(exist_ok=True)
            lines = (one if isinstance(one, str) else json.dumps(one, ensure_ascii=False) for one in records)
            path.write_bytes("".join(line + "\n" for line in lines).encode("utf-8", "surrogatepass"))
            records = path
        rows = self.rows.setdefault(system, [])
        known = {row.identity for row in rows}
        batch = max((row.batch for row in rows), default=0) + 1
        before = len(rows)
        for one in read_records(Path(records), Taken()):
            place = (one.topic, one.partition, one.offset, one.timestamp, one.key, one.value, one.headers)
            row = Landed(*place, batch, str(records), one.line, one.error, one.raw)
            if row.identity not in known:
                known.add(row.identity)
                rows.append(row)
        return rows[before:]


class Records(Bronze):
    """What the scaffold asks, answered from a list of landed records: all of them are looked at, in the order of
    landing.
    """

    def __init__(self, system: str, rows: Sequence[Landed]) -> None:
        self.system = system
        self._rows = rows

    def newest_batch(self) -> int:
        return max((row.batch for row in self._rows), default=0)

    def topics(self) -> set[str]:
        return {row.topic for row in self._rows if row.topic is not None}

    def sample(self, above_batch: int, further: Set[str]) -> list[Event]:
        rows = [row for row in self._rows if row.batch > above_batch or row.topic in further]
        rows = [*in_order(rows), *ddl_in_order([row for row in rows if row.value and '"tableChanges"' in row.value])]
        return [Event(row.topic, row.value, row.key, row.offset) for row in rows if row.value is not None]

    def newest_ddl(self, up_to_batch: int, topics: Set[str], names: Sequence[str] = ()) -> list[tuple[str, str]]:
        rows = [row for row in self._rows if row.batch <= up_to_batch and row.topic in topics]
        ddl = ddl_in_order([row for row in rows if row.value and '"tableChanges"' in row.value])
        values = [(str(row.topic), row.value) for row in ddl]
        return [(topic, value) for topic, value in values if not names or any(name in value for name in names)]

    def has_tombstones(self, topics: Set[str]) -> bool:
        keyed = [row for row in self._rows if row.topic in topics and row.key is not None]
        return any(row.value is None or re.match(NO_VALUE, row.value) for row in keyed)

    def has_rows_without_schema(self, topics: Set[str]) -> bool:
        values = [str(row.value) for row in self._rows if row.topic in topics and row.value is not None]
        read = [parsed(value) for value in values if not re.match(NO_VALUE, value)]
        for one in (one for one in read if isinstance(one, dict)):
            inner = one["payload"] if isinstance(one.get("payload"), dict) else {}
            named = {name for of in (one, inner) for name, value in of.items() if value is not None}
            is_described = isinstance(one.get("schema"), dict) and one["schema"].get("fields")
            if not is_described and (named & set(IMAGES) or not named & set(OF_ENVELOPES)):
                return True
        return False

    def has_keys(self, declared: Declared) -> bool:
        """Of a table that has its topics alone."""
        return any(row.topic in declared.table.topics and row.key is not None for row in self._rows)

    def arrived(self, above_batch: int) -> list[Arrived]:
        found: dict[str | None, list[Landed]] = {}
        for row in self._rows:
            if row.batch > above_batch:
                found.setdefault(row.topic, []).append(row)
        return [_arrived(topic, found[topic]) for topic in sorted(found, key=lambda topic: (topic is not None, topic))]

    def stored_keys(self, silver: str) -> str | None:
        return None

    def rename_stored(self, silver: str, column: str, name: str) -> None:
        pass


class LandingInBronze:
    """Lands records in a bronze table by one append, where the loader and its ledger are not what is tested."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self._spark = spark
        self._landing = Landing(folder)

    def land(self, system: str, records: Any) -> Any:
        """Land records or a file, without those that have landed."""
        if system not in self._landing.rows:
            bronze.create(self._spark, system)
        rows = self._landing.land(system, records)
        if rows:
            table = f"bronze.`{system}`"
            writer = frame(self._spark, rows).select(*self._spark.table(table).columns).writeTo(table)
            writer.option("snapshot-property.cdc-batch", str(rows[0].batch)).append()
        return SimpleNamespace(records=sum(row.error is None for row in rows), notes=[])

    def records(self, system: str) -> Bronze:
        """What the scaffold asks of them."""
        return _RecordsInBronze(self._spark, system, self._landing.rows.setdefault(system, []))


class _RecordsInBronze(Records):
    def __init__(self, spark: Any, system: str, rows: Sequence[Landed]) -> None:
        super().__init__(system, rows)
        of_tables = Bronze(spark, system)
        self.has_keys = of_tables.has_keys  # type: ignore[method-assign]
        self.stored_keys = of_tables.stored_keys  # type: ignore[method-assign]
        self.rename_stored = of_tables.rename_stored  # type: ignore[method-assign]


def _arrived(topic: str | None, rows: list[Landed]) -> Arrived:
    records = [row for row in rows if row.error is None]
    first = min(records, key=lambda row: (row.batch, row.line), default=None)
    reasons = sorted({row.error for row in rows if row.error})
    place = f"{first.file}:{first.line}" if first else None
    return Arrived(topic, len(records), place, len(rows) - len(records), ", ".join(reasons))


# Folder of models → schema.
LAYERS = {"staging": "staging", "silver": "silver", "live": None, "history": "history", "monitoring": "monitoring"}


class Engine:
    """What `dbt run` does with the models of a folder, on one session and without dbt: all that its materializations
    do.

    What dbt knows of the models (its graph) is made from their files.
    """

    def __init__(self, spark: Any, models: Path) -> None:
        self.said: list[str] = []
        self._spark = spark
        self._models = models
        self._macros = Macros(overridden=())
        self._runs = 0
        self._schemas: set[str] = set()

    def run(self, selected: Sequence[str] | None = None, full_refresh: bool = False, say: Any = None) -> dict[str, str]:
        """Build models, all of them unless some are selected, each after those that it reads. Returns what failed, and
        why.

        Args:
            say: is told of each that failed; without it the first failure is raised.
        """
        self._runs += 1
        graph = self._graph()
        nodes = [node for node in graph["nodes"].values() if selected is None or node.name in selected]
        failed: dict[str, str] = {}
        for node in sorted(nodes, key=lambda node: self._depth(node, graph)):
            try:
                if failed.keys() & set(node.depends_on.nodes):
                    raise CompilerError("skipped")
                self._build(node, graph, [one.name for one in nodes], full_refresh)
            except Exception as error:
                if say is None:
                    raise
                failed[node.name] = str(error)
                lines = [line.strip() for line in str(error).splitlines() if line.strip()]
                say(f"  {node.name}: {' '.join(lines[:4])}")
        return failed

    def test(self, models: Sequence[str], test: str = "") -> dict[str, Any]:
        """What `dbt test` does with the tests in the YAML of models. Returns of each that fails, as `<test> <model>`,
        the rows that it finds, or its error.

        Args:
            test: the name of the only test; empty: all.
        """
        graph, failed = self._graph(), dict[str, Any]()
        wanted = [
            (node, *named)
            for node in graph["nodes"].values()
            for one in node.data_tests
            for named in (one if isinstance(one, dict) else {one: {}}).items()
            if node.name in models and test in ("", named[0])
        ]
        assert wanted, f"{models} have no test {test}"
        for node, name, given in wanted:
            module = self._macros.module(
                execute=True,
                flags=SimpleNamespace(WHICH="test", EMPTY=False),
                graph=graph,
                model=SimpleNamespace(name=f"{name}_{node.name}", depends_on=SimpleNamespace(nodes=[node.name])),
                run_query=self._query,
            )
            arguments = {key: self._argument(graph, value) for key, value in given.get("arguments", {}).items()}
            try:
                query = getattr(module, f"test_{name}")(self._relation(graph, node.name), **arguments)
                found = self.sql(query).collect()
            except CompilerError as error:
                found = str(error)
            if found:
                failed[f"{name} {node.name}"] = found
        return failed

    def _argument(self, graph: dict[str, Any], value: Any) -> Any:
        """An argument of a test: `ref` and `source` stand for their relations."""
        call = re.fullmatch(r"(ref|source)\(.*'([^']+)'\)", str(value))
        if not call:
            return value
        return self._relation(graph, call[2]) if call[1] == "ref" else Relation("bronze", call[2])

    def _relation(self, graph: dict[str, Any], name: str) -> Relation:
        return Relation(graph["nodes"][name].schema, graph["nodes"][name].alias)

    def operation(self, name: str, arguments: dict[str, Any], say: Any) -> list[str]:
        """What `dbt run-operation` does. Returns its name if it failed, and `say` gets the reason."""
        module = self._macros.module(execute=True, run_query=self._query)
        try:
            getattr(module, name)(**arguments)
        except Exception as error:
            say(f"  {name}: {error}")
            return [name]
        return []

    def _depth(self, node: Any, graph: dict[str, Any]) -> int:
        parents = [graph["nodes"][name] for name in node.depends_on.nodes if name in graph["nodes"]]
        return 1 + max((self._depth(parent, graph) for parent in parents), default=0)

    def _graph(self) -> dict[str, Any]:
        described: dict[str, Any] = {}
        for path in self._models.rglob("*.yml"):
            described |= {model["name"]: model for model in read_yaml(path).get("models", [])}
        nodes: dict[str, Any] = {}
        for path in sorted(self._models.rglob("*.sql")):
            nodes[path.stem] = self._node(path, described.get(path.stem, {}))
        systems = {
            parent.removeprefix("source.")
            for node in nodes.values()
            for parent in node.depends_on.nodes
            if "." in parent
        }
        sources = {
            f"source.{name}": SimpleNamespace(
                schema="bronze", identifier=name, alias=None, name=name, source_name="bronze"
            )
            for name in systems
        }
        return {"nodes": nodes, "sources": sources}

    def manifest(self) -> Any:
        """What dbt's manifest says of the models, as far as `make run` asks it."""
        graph, project = self._graph(), "lakehouse"
        ids = {name: f"model.{project}.{name}" for name in graph["nodes"]}
        nodes = {ids[name]: node for name, node in graph["nodes"].items()}
        parents = {one: [ids.get(name, name) for name in node.depends_on.nodes] for one, node in nodes.items()}
        everything = [*parents, *graph["sources"]]
        return SimpleNamespace(
            metadata=SimpleNamespace(project_name=project),
            nodes=nodes,
            sources=graph["sources"],
            parent_map=parents,
            child_map={one: [child for child, of in parents.items() if one in of] for one in everything},
            build_parent_and_child_maps=lambda: None,
        )

    def _node(self, path: Path, described: dict[str, Any]) -> Any:
        text, layer, parents = path.read_text(encoding="utf-8"), path.parent.parent.name, list[str]()
        config = Config(described.get("config") or {})
        if layer in ("staging", "silver", "history"):
            config |= {"materialized": "incremental", "incremental_strategy": "debezium_merge"}
        given = {"source": lambda *names: parents.append("source." + names[-1]), "ref": parents.append}
        given["env_var"] = os.environ.get
        self._macros.called(text, **given, config=config)
        return SimpleNamespace(
            name=path.stem,
            alias=config.get("alias", path.stem),
            schema=config.get("schema", LAYERS[layer]),
            unique_id=path.stem,
            resource_type="model",
            raw_code=text,
            original_file_path=f"models/{path.relative_to(self._models).as_posix()}",
            config=config,
            columns={},
            data_tests=described.get("data_tests", []),
            depends_on=SimpleNamespace(nodes=parents),
        )

    def _build(self, node: Any, graph: dict[str, Any], selected: list[str], full_refresh: bool) -> None:
        if node.schema not in self._schemas:
            self.sql(f"create namespace if not exists {node.schema}")
            self._schemas.add(node.schema)
        this, load_relation = Relation(node.schema, node.alias), self._load_relation
        existing = load_relation(this)
        given: dict[str, Any] = {
            "execute": True,
            "flags": SimpleNamespace(WHICH="run", EMPTY=False),
            "env_var": os.environ.get,
            "invocation_args_dict": {},
            "this": this,
            "model": node,
            "config": node.config,
            "graph": graph,
            "invocation_id": f"run {self._runs} of {id(self)}",
            "selected_resources": selected,
            "source": lambda *names: Relation("bronze", names[-1]),
            "ref": lambda name: self._relation(graph, name),
            "load_relation": load_relation,
            "is_incremental": lambda: not (full_refresh or existing is None or existing.is_view),
            "adapter": SimpleNamespace(drop_relation=self._drop),
            "should_full_refresh": lambda: full_refresh,
            "should_revoke": lambda *_: False,
            "apply_grants": lambda *_: "",
            "run_hooks": lambda hooks: "" if all(self.sql(hook) for hook in hooks) else "",
            "pre_hooks": [node.config["pre_hook"]] if "pre_hook" in node.config else [],
            "post_hooks": [],
            "run_query": self._query,
            "statement": lambda *_, caller, **__: "" if self.sql(caller()) else "",
            "noop_statement": lambda *_, caller=None: "",
            "log": self._log,
            "exceptions": SimpleNamespace(raise_compiler_error=_raise, warn=self._log),
            "comment_clause": lambda: "",
            "partition_cols": lambda label: (
                f"{label} ({node.config['partition_by']})" if "partition_by" in node.config else ""
            ),
        }
        sql = self._macros.text(node.raw_code, self._macros.module(**given), **given)
        given |= {
            "sql": sql,
            "dbt": SimpleNamespace(create_or_replace_view=lambda: self._create_view(this, existing, sql)),
        }
        if node.config.get("materialized") == "incremental":
            self._macros.module(**given).debezium_merge_materialization()
        else:
            self._create_view(this, existing, sql)

    def _load_relation(self, relation: Relation) -> Relation | None:
        if self._spark.catalog.tableExists(str(relation)):
            return Relation(relation.schema, relation.identifier)
        is_view = self._catalog.viewExists(self._identifier(relation))  # `show views` is a job of Spark
        return Relation(relation.schema, relation.identifier, is_view=True) if is_view else None

    @property
    def _catalog(self) -> Any:
        return self._spark._jsparkSession.sessionState().catalogManager().catalog("lakehouse")

    def _identifier(self, relation: Relation) -> Any:
        jvm = self._spark._jvm  # by their whole names: of `jvm.java.lang`, each part would be looked for as a class
        schema = self._spark.sparkContext._gateway.new_array(getattr(jvm, "java.lang.String"), 1)
        schema[0] = relation.schema
        return getattr(jvm, "org.apache.spark.sql.connector.catalog.Identifier").of(schema, relation.identifier)

    def _create_view(self, view: Relation, existing: Relation | None, sql: str) -> str:
        if existing and not existing.is_view:
            self._drop(existing)
        self.sql(f"create or replace view {view} as {sql}")
        return ""

    def _drop(self, existing: Relation) -> str:
        self.sql(f"drop {'view' if existing.is_view else 'table'} if exists {existing}")
        return ""

    def sql(self, statement: str) -> Any:
        """Every statement of a run goes through here."""
        return self._spark.sql(statement)

    def _log(self, text: str, info: bool = False) -> str:
        self.said.append(text)
        return ""

    def _query(self, sql: str) -> Any:
        """What dbt's `run_query` gives: a table of agate, whose types dbt tells from the values."""
        found = self.sql(sql)
        names = found.columns
        return table_from_data_flat([dict(zip(names, row, strict=True)) for row in found.collect()], names)
