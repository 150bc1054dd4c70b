"""A lakehouse without tables: records are a list, models are rendered, and what they give is asked of one Spark
session.

The files of the models are those that the scaffold writes; nothing is landed, merged or parsed by dbt.
"""

import base64
import re
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from adapter import Config, Landed, Landing, Macros, Records, frame
from conftest import REPOSITORY
from pyspark.sql import Row

from scripts.declared import Declared, declared_tables
from scripts.scaffold import scaffold
from scripts.scaffolded import Scaffolded
from scripts.spark import read_yaml

NAME = r"(?:`(?:[^`]|``)+`|[\w]+)"


class Workbench:
    """Systems of one test. Its methods are named like those of `Lakehouse`, and give the same."""

    def __init__(self, spark: Any, project: Path) -> None:
        self.spark = spark
        self.project = project
        self._macros = Macros()
        self._landing = Landing(project / "events")
        self._landed = self._landing.rows
        self._built: dict[str, int] = {}
        self._refused: dict[str, set[str]] = {}
        self._views: dict[str, str] = {}
        (project / "models").mkdir(parents=True)
        (project / "seeds").symlink_to(REPOSITORY / "seeds")

    # What `make run` does

    def land(self, system: str, records: Any) -> SimpleNamespace:
        """Read records (written to a new file, in their order) or a file, without those that were read before."""
        rows = self._landing.land(system, records)
        return SimpleNamespace(records=sum(row.error is None for row in rows))

    def scaffold(
        self,
        system: str,
        connector: str | None = None,
        keys: dict[str, list[str]] | None = None,
        servers: str | None = None,
    ) -> Scaffolded:
        records = Records(system, self._landed.setdefault(system, []))
        known, refused = self._built.get(system, 0), self._refused.get(system, set())
        done = scaffold(records, connector, keys or {}, known, self.project / "models", servers, refused)
        self._refused[system] = refused | done.refused
        return done

    def build_landed(
        self,
        system: str,
        connector: str | None = None,
        keys: dict[str, list[str]] | None = None,
        servers: str | None = None,
    ) -> Scaffolded:
        """Write the models of what has landed. They are run when something is asked of them."""
        done = self.scaffold(system, connector, keys, servers)
        self._built[system] = done.up_to
        self.forget()
        return done

    def run(
        self,
        system: str,
        records: Any,
        connector: str | None = None,
        keys: dict[str, list[str]] | None = None,
        servers: str | None = None,
    ) -> Scaffolded:
        self.land(system, records)
        return self.build_landed(system, connector, keys, servers)

    # What can be asked

    def rows(self, relation: str, order: str = "1") -> list[dict[str, Any]]:
        query = f"select * from {self._resolved(relation)} order by {order}"
        return [row.asDict(recursive=True) for row in self.spark.sql(query).collect()]

    def plain_rows(self, relation: str) -> list[dict[str, Any]]:
        """The rows as a case has them."""
        query = f"select * from {self._resolved(relation)}"
        return [{name: plain(value) for name, value in row.asDict().items()} for row in self.spark.sql(query).collect()]

    def table(self, relation: str) -> Any:
        return self.spark.sql(f"select * from {self._resolved(relation)}")

    def dtypes(self, relation: str) -> dict[str, str]:
        return dict(self.spark.sql(f"select * from {self._resolved(relation)}").dtypes)

    def printed(self, relation: str, order: str = "1") -> list[dict[str, Any]]:
        """The rows of a relation with every value as its text, bytes as base64."""
        view = self._resolved(relation)
        columns = [
            f"base64(`{name}`) as `{name}`" if kind == "binary" else f"cast(`{name}` as string) as `{name}`"
            for name, kind in self.spark.sql(f"select * from {view}").dtypes
        ]
        query = f"select {', '.join(columns)} from (select * from {view} order by {order})"
        return [row.asDict() for row in self.spark.sql(query).collect()]

    def query(self, query: str) -> Any:
        """A query of relations by their names in the lakehouse."""
        return self.spark.sql(self._in(query))

    def sql(self, query: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.query(query).collect()]

    def rejected(self, system: str) -> list[tuple[str, str]]:
        """The rejected records of a system, each with its reason."""
        found = [(_id(row), row.error) for row in self._landed[system] if row.error]
        for one in self.tables(system):
            view = self._view("staging", one.model("staging", system))
            rows = self.spark.sql(
                f"select _cdc_event_id, _cdc_reject_reason from {view} where _cdc_reject_reason is not null"
            )
            found += [tuple(row) for row in rows.collect()]
        if any(one.routed for one in self.tables(system)):
            return [
                tuple(row)
                for row in self.sql(f"select event_id, reason from monitoring.{system}__rejected_events order by 1, 2")
            ]
        return sorted((str(event), str(reason)) for event, reason in found)

    def tables(self, system: str) -> list[Declared]:
        return sorted(declared_tables(system, self.project / "models").values(), key=lambda one: one.relation)

    def forget(self) -> None:
        """Drop what was computed: there is more now, or the test is over."""
        for view in self._views.values():
            with suppress(Exception):
                self.spark.catalog.uncacheTable(view)
            self.spark.catalog.dropTempView(view)
        self._views.clear()

    # How a relation is rendered

    def _resolved(self, relation: str) -> str:
        found = re.fullmatch(rf"({NAME})\.({NAME})", relation)
        return self._view(found[1].strip("`"), found[2].strip("`")) if found else self._in(relation)

    def _in(self, query: str) -> str:
        names = "|".join(["bronze", "staging", "silver", "monitoring", *map(re.escape, self._landed)])
        return re.sub(rf"\b({names})\.({NAME})", lambda found: self._view(found[1], found[2].strip("`")), query)

    def _view(self, schema: str, name: str) -> str:
        """The temporary view that stands for a relation; it is made when it is asked for."""
        view = f"{schema}.{name}".replace(".", "_dot_")
        if view not in self._views:
            if schema == "bronze":
                frame(self.spark, self._landed[name]).createOrReplaceTempView(view)
            else:
                self.spark.sql(self.text(schema, name)).createOrReplaceTempView(view)
            self._views[view] = view
            if schema == "staging":
                self.spark.catalog.cacheTable(view)
        return view

    def text(self, schema: str, name: str) -> str:
        """The SQL of a relation."""
        layer = schema if schema in ("staging", "silver", "monitoring") else "live"
        for path in sorted((self.project / "models" / layer).glob("*/*.sql")):
            text, system = path.read_text(encoding="utf-8"), path.parent.name
            names = [path.stem] if layer != "live" else re.findall(r"alias = '([^']*)'", text)
            if name in names and (layer != "live" or system == schema):
                return self._rendered(layer, path, text)
        raise AssertionError(f"no model gives {schema}.{name}")

    def _rendered(self, layer: str, path: Path, text: str) -> str:
        system, config = path.parent.name, Config()
        given: dict[str, Any] = {"source": lambda *names: self._view("bronze", names[-1]), "ref": self._ref}
        if layer == "silver":
            _, arguments = self._macros.called(text, **given)
            changes, keys = arguments["changes"], arguments.get("keys", [])
            given["debezium_new_changes"] = lambda *_: self._changes(changes, keys, arguments["columns"])
        if layer == "monitoring":
            given["_start_counting"] = lambda *_: self._all_records(system)
        if layer == "live":
            silver = self._macros.called(text, **given)[1]["silver"]
            names = [name for name, _ in self.spark.table(silver).dtypes if not name.startswith("_cdc_")]
            columns = ", ".join("`" + name.replace("`", "``") + "`" for name in names)
            return f"select {columns} from {silver} where not _cdc_is_deleted"
        if layer == "staging":
            for yaml in (self.project / "models" / "silver" / system).glob("*.yml"):
                described = [one for one in read_yaml(yaml).get("models", []) if one["name"] == path.stem]
                config.update(described[0].get("config", {}) if described else {})
            given["model"] = SimpleNamespace(name=path.stem, resource_type="model")
        return self._macros.text(text, self._macros.module(**given, config=config), **given, config=config)

    def _ref(self, name: str) -> str:
        return self._view("staging" if name.startswith("stg_") or name.endswith("__events") else "silver", name)

    def _changes(self, changes: str, keys: list[str], columns: list[str]) -> dict[str, Any]:
        """All changes of a table, as those that a first build takes."""
        names = [name for name, _ in self.spark.table(changes).dtypes]
        asked = [
            "count(_cdc_omitted) > 0 as has_partial",
            "max(_cdc_position) filter (where _cdc_kind = 'truncate') as truncated_at",
            "flatten(collect_set(_cdc_patches.name))" if "_cdc_patches" in names else "array()",
            "count_if(contains(_cdc_move, ' ')) > 0" if "_cdc_move" in names else "false",
        ]
        ((has_partial, truncated_at, patched, is_moved),) = self.spark.sql(
            f"select {', '.join(asked)} from {changes}"
        ).collect()
        condition = f"_cdc_position > '{truncated_at}'" if truncated_at else "true"
        return {
            "relation": changes,
            "condition": condition,
            "has_partial": has_partial,
            "is_of_documents": "_cdc_patches" in names,
            "patched": [name for name in columns if name in patched] if has_partial else [],
            "passes_keys_on": "_cdc_move" in names,
            "is_moved": is_moved,
            "stored": None,
        }

    def _all_records(self, system: str) -> dict[str, Any]:
        tables = self.tables(system)
        routed = any(one.routed for one in tables)
        of_topics = [one for one in tables if not one.routed]
        return {
            "above": 0,
            "up_to": 0,
            "known": [],
            "quiet": [],
            "rebuilt": [],
            "is_behind": False,
            "has_others": True,
            "topics": sorted({topic for one in tables for topic in one.table.topics}),
            "named": [list(one.table.identity) for one in tables],
            "unrouted": sorted({topic for one in of_topics for topic in one.table.topics}),
            "routed": [self._view("staging", f"{system}__events")] if routed else [],
        }


def _id(row: Landed) -> str:
    return f"{row.topic}/{row.partition}/{row.offset}" if row.offset is not None else f"{row.file}:{row.line}"


def plain(value: Any) -> Any:
    """A value as a case has it: what JSON holds stays, the rest is its text, bytes are base64."""
    if isinstance(value, Row):
        return plain(value.asDict())
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(bytes(value)).decode()
    if isinstance(value, float):
        return value if abs(value) < float("inf") else str(value)  # neither NaN nor infinity is JSON
    return value if value is None or isinstance(value, bool | int | str) else str(value)
