"""What a run builds: models that are new, changed, or have new events, and tables of rejected records after a fix."""

import os
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from scripts import dbt_commands, resets, runs
from scripts.arguments import Request
from scripts.built import (
    MODELS,
    Built,
    bronze_id,
    counted_up_to,
    digest,
    digest_of_macros,
    model_files,
)
from scripts.catalog import kind_of_views, properties_of, relations_in, tables_in
from scripts.declared import declared_tables
from scripts.history import check_schemas, write_history
from scripts.names import SYSTEM_MODELS
from scripts.observe import Bronze, digest_of_keys
from scripts.own_models import OwnModels, own_files
from scripts.scaffold import scaffold
from scripts.scaffolded import Scaffolded
from scripts.spark import locked
from scripts.written_models import says

Say = Callable[[str], None]
CONFLICTS = 3  # so often are models built again that another machine has built meanwhile


def refresh(spark: SparkSession, todo: list[Request], say: Say) -> int:
    """Write and build the models whose tables have something new. Returns the number that failed."""
    runs.phase("models")
    with _building(say):
        done = [_scaffold(spark, request, say) for request in todo]
        runs.phase("build")
        return build(spark, [request.system for request in todo], done, say)


def _building(say: Say) -> AbstractContextManager[None]:
    """One run of this machine at a time is in here: two merges of one table conflict, and the later one would fail."""
    return locked("build.lock", lambda: say("Another run is building in this lakehouse; waiting for it …"))


def _scaffold(spark: SparkSession, request: Request, say: Say) -> Scaffolded:
    built, system = Built(), request.system
    known, refused = built.up_to(spark, system), set(built.state["refused"].get(system, []))
    with suppress(OSError):
        MODELS.mkdir(exist_ok=True)  # a new project of somebody's own has none
    is_read_only = not os.access(MODELS, os.W_OK)
    with _copy(MODELS) if is_read_only else nullcontext(MODELS) as models:
        check_schemas(system, bool(request.history), models)
        done = scaffold(Bronze(spark, system), request.connector, request.keys, known, models, request.servers, refused)
        done.written += write_history(system, request.history, models)
        if is_read_only:
            _note_unwritten(system, models, done)
    for note in done.notes:
        say(f"{system}: {note}")
    return done


@contextmanager
def _copy(models: Path) -> Iterator[Path]:
    """A copy of models and seeds that can be written, for as long as somebody looks at it."""
    with tempfile.TemporaryDirectory() as folder:
        for path in (path for name in (models.name, "seeds") for path in (models.parent / name).rglob("*")):
            if path.is_file():
                copy = folder / path.relative_to(models.parent)
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(path.read_bytes())
        yield Path(folder) / models.name


def _note_unwritten(system: str, copy: Path, done: Scaffolded) -> None:
    """Say of which tables models were written into a copy only. Their topics are looked at again by every run."""
    models = [
        path for path in copy.rglob("*.sql") if not says(MODELS / path.relative_to(copy), path.read_text("utf-8"))
    ]
    changed = {path.stem for path in models}
    prefixes = ("", "stg_", "live_", "history_")
    tables = declared_tables(system, copy).values()
    behind = [one for one in tables if changed & {f"{prefix}{one.model('silver', system)}" for prefix in prefixes}]
    if behind:
        runs.warn(system)
        done.refused |= {topic for one in behind for topic in one.table.topics}
        named = ", ".join(one.table.name for one in behind)
        done.notes.append(
            f"models/ is read-only, and lacks models for what has landed of {named}. It stays in bronze. Run make run"
            f" SYSTEM={system} on this lakehouse where models/ can be written, and commit them"
        )
    done.written, done.rebuilt = [], []


def build(spark: SparkSession, systems: list[str], scaffolded: list[Scaffolded], say: Say) -> int:
    """Build the models that are new, changed, or have new events. Returns the number that failed."""
    built = Built()
    of_systems = dict(zip(systems, scaffolded, strict=True))
    macros, there = digest_of_macros(), relations_in(spark, "silver") | tables_in(spark, "staging")
    texts: dict[str, str] = {}
    wanted: dict[str, bool] = {}  # model → with --full-refresh
    for system, done in of_systems.items():
        of_system = _texts(system, macros)
        texts |= of_system
        wanted |= _wanted(spark, built, system, done, of_system, there)
    own = OwnModels(own_files(MODELS, macros), built.state["own"], set(systems), {*systems, *built.state["batches"]})
    if not wanted and not own.is_behind():
        say("Nothing new to build.")
        return 0
    ids = {system: bronze_id(spark, system) for system in systems}
    manifest = dbt_commands.manifest()
    if own.files:
        own.choose(manifest, wanted, [system for system, done in of_systems.items() if done.topics])
        for path, missing in sorted(own.waiting.items()):
            say(f"models/{path} waits for the tables of {' and '.join(missing)}.")
    rebuilt = {name for name, with_refresh in wanted.items() if with_refresh}
    events = {name for name in (f"{system}__events" for system in systems) if rebuilt and name in wanted}
    others = (wanted.keys() - rebuilt - events) | own.chosen.keys()
    if kind_of_views() == "table" and any(built.has_views(system) for system in systems):
        _drop_views(spark, manifest, wanted.keys() | own.chosen.keys())
    failed: list[str] = []
    # What is rebuilt reads all that the events model has: what landed has to be in there already.
    for chosen, options in ((events, []), (rebuilt, ["--full-refresh"]), (others, [])):
        if chosen:
            failed += _run(_with_live_tables(manifest, systems, chosen), options, say, chosen, manifest)
    failed += resets.ask(spark, systems, wanted, say, manifest)
    if not wanted and not own.chosen:
        say("Nothing new to build.")
    built.state["own"] = own.state_after(failed)
    if own.chosen.keys() >= set(failed):  # all tables are built; own models that failed are built with the next run
        _remember(spark, built, of_systems, texts, ids)
    built.save()
    return len(failed)


def _run(selected: list[str], options: list[str], say: Say, models: Collection[str], manifest: Any) -> list[str]:
    """Build models. Returns the names of those that failed.

    Another machine, which the lock does not keep out, may build the same tables: of two commits Iceberg refuses the
    later one. What failed is then built again from what the tables hold by now.
    """
    say(f"Building {len(models)} models …")
    for _ in range(CONFLICTS):
        conflicts: list[str] = []
        failed = dbt_commands.run(["run", "--select", *selected, *options], say, models, manifest, conflicts=conflicts)
        if not conflicts:
            return failed
        say(f"  {', '.join(conflicts)}: another machine was first; building {len(failed)} models again …")
        selected = models = failed
    return dbt_commands.run(["run", "--select", *selected, *options], say, models, manifest)


def _texts(system: str, macros: str) -> dict[str, str]:
    """The digest of each model of a system, and of what it depends on."""
    texts = {path.stem: macros + digest(path) for path in model_files(system)}
    for table in declared_tables(system, MODELS).values():
        live, silver, staging = (table.model(layer, system) for layer in ("live", "silver", "staging"))
        if live in texts:  # its text names no columns: it has those of silver, whose types are those of staging
            texts[live] += texts.get(silver, "") + texts.get(staging, "")
    return texts


def _wanted(
    spark: SparkSession, built: Built, system: str, done: Scaffolded, texts: dict[str, str], there: set[str]
) -> dict[str, bool]:
    """The models of a system to build, and whether with --full-refresh; `there` are those of silver and staging."""
    # What was built of another bronze table may be in another catalog.
    is_another = bool(built.state["batches"].get(system)) and not done.above
    edited = {name for name, text in texts.items() if is_another or built.state["models"].get(name) != text}
    wanted = dict.fromkeys(edited, False)
    for declared in declared_tables(system, MODELS).values():
        staging, silver = declared.model("staging", system), declared.model("silver", system)
        is_dropped = not {staging, silver} & texts.keys() <= there
        if is_another or is_dropped or declared.table.topics & done.topics or staging in wanted:
            wanted |= {staging: False, silver: False}
    if (done.topics or edited or is_another) and (MODELS / "monitoring" / system).exists():
        wanted |= dict.fromkeys(_monitoring(system), False)
        if (MODELS / "staging" / system / f"{system}__events.sql").exists():
            wanted[f"{system}__events"] = False
    keyed_otherwise = _keyed_otherwise(spark, system, edited & there) if edited else []
    return wanted | dict.fromkeys(done.written, False) | dict.fromkeys([*done.rebuilt, *keyed_otherwise], True)


def _monitoring(system: str) -> set[str]:
    """The models of monitoring that have to be built if something has landed: the counts, and what views would be."""
    names = SYSTEM_MODELS - {"events"} if kind_of_views() == "table" else {"event_counts"}
    return {f"{system}__{name}" for name in names} & {path.stem for path in model_files(system)}


def _drop_views(spark: SparkSession, manifest: Any, models: Collection[str]) -> None:
    """Drop the views of these models, which become tables. dbt does not see them: it asks for no views then."""
    nodes = [one for one in manifest.nodes.values() if one.resource_type == "model" and one.name in models]
    for schema in sorted({node.schema for node in nodes}):
        names = {node.alias for node in nodes if node.schema == schema}
        for name in sorted(names & tables_in(spark, schema, "views")):
            spark.sql(f"drop view `{schema}`.`{name}`")


def _keyed_otherwise(spark: SparkSession, system: str, tables: set[str]) -> list[str]:
    """The models of silver tables, among these, whose key was changed by hand, or by a run that was killed then."""
    found = []
    for declared in declared_tables(system, MODELS).values():
        silver = declared.model("silver", system)
        if declared.table.keys and silver in tables:
            keys = digest_of_keys(declared.table.kept(declared.table.keys))
            if properties_of(spark, f"silver.`{silver}`").get("cdc.keys") != keys:
                found += [declared.model(layer, system) for layer in ("staging", "silver", "live")]
    return found


def _with_live_tables(manifest: Any, systems: list[str], models: Collection[str]) -> list[str]:
    """A selection of models, in which a silver model brings its live model if that is a table; a view needs no run."""
    are_tables = kind_of_views() == "table"
    tables = {node.name for node in manifest.nodes.values() if are_tables or node.config.get("materialized") == "table"}
    live = {path.stem for system in systems for path in (MODELS / "live" / system).glob("*.sql")} - set(models)
    return [*sorted(models), *(f"live_{name}" for name in sorted(models) if f"live_{name}" in live & tables)]


def _remember(
    spark: SparkSession, built: Built, done: dict[str, Scaffolded], texts: dict[str, str], ids: dict[str, str]
) -> None:
    of_systems = tuple(f"{layer}{system}__" for system in done for layer in ("", "stg_", "live_"))
    others = {name: text for name, text in built.state["models"].items() if not name.startswith(of_systems)}
    built.state["models"] = others | texts
    built.state["bronze"] |= ids
    for system, scaffolded in done.items():
        built.state["batches"][system] = scaffolded.up_to
        built.state["views"][system] = kind_of_views()
        counted = built.state["counted"].get(system, "")
        built.state["counted"][system] = counted_up_to(spark, system, counted)
        built.state["refused"][system] = sorted(scaffolded.refused)


def replay(spark: SparkSession, todo: list[Request], say: Say) -> int:
    """Build what is new, then type rejected records again, as change logs do with REPLAY. Returns how many models
    failed.

    What the events model rejected may be of any table that reads it: it and these tables are built.
    """
    if number := refresh(spark, todo, say):
        return number
    system = todo[0].system
    names = {path.stem for path in model_files(system)}
    rejects = f"{system}__rejected_events"
    found: list[Any] = []
    if rejects in names:
        found = spark.sql(f"select distinct source_table from monitoring.`{rejects}`").collect()
    if not found:
        say(f"{system}: no record is rejected.")
    there, events = tables_in(spark, "staging"), f"{system}__events"
    base = properties_of(spark, f"staging.`{events}`").get("cdc.base") if events in there else None
    chosen = {events} & names if (None,) in found else set()
    for one in declared_tables(system, MODELS).values():
        log, silver = (one.model(layer, system) for layer in ("staging", "silver"))
        stored = properties_of(spark, f"staging.`{log}`") if log in there else {}
        # Another machine's replay may have died before the log, or silver, had what it is to have.
        is_behind = "cdc.replayed" in stored or (one.routed and stored.get("cdc.events") != base)
        if is_behind or (one.table.name,) in found or (one.routed and (None,) in found):
            chosen |= {log, silver}
    if not chosen and not found:
        return 0
    with _building(say):
        built, chosen = Built(), chosen | _monitoring(system)
        # Until all is done, the next run builds these, and what reads them: nothing else tells what was replayed.
        built.state["models"] = {name: text for name, text in built.state["models"].items() if name not in chosen}
        built.save()
        batch, refused = int(built.state["batches"][system]), set(built.state["refused"].get(system, []))
        return build(spark, [system], [Scaffolded(batch, batch, refused=refused)], say)
