"""`make run`: lands events, writes models for new tables, builds what is new or changed, and shows the result.

With REPLAY (`make replay`) the rejected records are typed again besides, after a fix.
"""

import hashlib
import io
import json
import os
import shlex
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Collection
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from pyspark.sql import SparkSession

from scripts import runs
from scripts.errors import LakehouseError, ResourceError
from scripts.history import write_history
from scripts.kafka import Topics, add_connector, read_properties
from scripts.loader import Landed, event_files, land_files, land_topics
from scripts.observe import Bronze
from scripts.own_models import OwnModels, is_scaffolded, own_files
from scripts.scaffold import Declared, Scaffolded, check_system, declared_tables, digest_of_keys, scaffold
from scripts.setup import kafka_jars
from scripts.spark import (
    PROFILES,
    PROJECT,
    lakehouse_dir,
    locked,
    log_file,
    ran_out_of_memory,
    record_class_archive,
    schema_prefix,
    session,
    settings,
)

# System → its events: samples/README.md says what each table shows.
DEMO = {
    system: f"samples/{system}.jsonl"
    for system in ("shop", "billing", "sqlserver", "oracle", "mongodb", "tencent", "huawei", "lindorm")
}
DEMO_KEYS = {"lindorm": {"meters": ["meter_id"]}}  # its messages have none
DEMO_HISTORY = {"shop": ["customers"]}
PROGRESS_SECONDS = 5
REASONS_SHOWN = 5  # of a table
MANY_TABLES = 40  # of a system with more, only those are shown that have something new or rejected
HEAD = (
    "source table",
    "relation",
    "events",
    "inserts",
    "updates",
    "deletes",
    "truncates",
    "rejected",
    "live rows",
    "newest change",
    "lag",
)
# Nothing reads the manifest that dbt would write for each run; `make docs` writes its own.
DBT_OPTIONS = ["--log-level", "none", "--log-level-file", "debug", "--no-write-json"]
DBT_OPTIONS += ["--profiles-dir", str(PROFILES), "--project-dir", str(PROJECT)]


@dataclass
class Request:
    """What the user asked for: a system and its events, in files or in topics."""

    system: str
    events: str | Topics
    connector: str | None
    keys: dict[str, list[str]]
    servers: str | None = None  # what several connectors of one table are
    history: Collection[str] = ()  # tables whose versions are kept


def parse_keys(text: str) -> dict[str, list[str]]:
    """`orders=id "Gift Boxes=Box Id,line"` as table → key columns; a part with spaces is quoted.

    Raises:
        LakehouseError: a part is not of the form table=column[,column], or a quote is not closed.
    """
    parts = shlex.shlex(text, posix=True)
    parts.whitespace_split, parts.escape, parts.commenters = True, "", ""
    keys = {}
    try:
        for part in parts:
            table, equals, columns = part.partition("=")
            if not (table and equals and columns):
                raise LakehouseError(f"KEYS={text!r}: {part!r} is not of the form table=column or table=column,column.")
            keys[table] = columns.split(",")
    except ValueError:
        raise LakehouseError(
            f"KEYS={text!r}: a quote is not closed. Names with one are put in quotes of the other kind."
        ) from None
    return keys


def requests(environment: dict[str, str]) -> list[Request]:
    """The systems to load: the user's own (SYSTEM with EVENTS, with KAFKA and TOPICS, or alone), else the sample
    systems.

    Raises:
        LakehouseError: one of these is missing or is not of its form.
    """
    given = {
        name: environment.get(name, "") for name in ("EVENTS", "KAFKA", "TOPICS", "SYSTEM", "KAFKA_CONFIG", "EVERY")
    }
    events, kafka, topics, system, config, every = given.values()
    if environment.get("REPLAY") and (not system or events or kafka or every):
        raise LakehouseError(
            "make replay takes what a system has landed: make replay SYSTEM=<name>, without EVENTS, KAFKA or EVERY."
        )
    further = [name for name in ("CONNECTOR", "KEYS", "SERVERS", "HISTORY") if environment.get(name)]
    if further and not any(given.values()):
        raise LakehouseError(f"{' and '.join(further)} go with a SYSTEM: make run EVENTS=<path> SYSTEM=<name>.")
    if not any(given.values()):
        return [
            Request(name, str(PROJECT / path), None, DEMO_KEYS.get(name, {}), history=DEMO_HISTORY.get(name, []))
            for name, path in DEMO.items()
        ]
    if events and kafka:
        raise LakehouseError(
            "EVENTS and KAFKA were both given: one run reads files or topics. Run it twice with the same SYSTEM."
        )
    if (kafka or topics or config) and not (kafka and topics and system):
        missing = " and ".join(name for name in ("KAFKA", "TOPICS", "SYSTEM") if not given[name])
        raise LakehouseError(
            "KAFKA, TOPICS and SYSTEM go together: make run KAFKA=<bootstrap servers> TOPICS=<names or pattern> "
            f"SYSTEM=<name>. There is no {missing}."
        )
    if not system:
        raise LakehouseError("A run needs a SYSTEM, your name for the source: make run EVENTS=<path> SYSTEM=<name>.")
    check_system(system)
    source = Topics(kafka, topics, read_properties(config)) if kafka else events
    connector, servers = environment.get("CONNECTOR") or None, environment.get("SERVERS") or None
    try:
        history = shlex.split(environment.get("HISTORY", ""))
    except ValueError:
        raise LakehouseError(f"HISTORY={environment['HISTORY']!r}: a quote is not closed.") from None
    return [Request(system, source, connector, parse_keys(environment.get("KEYS", "")), servers, history)]


def seconds_between(environment: dict[str, str]) -> int:
    """After how many seconds to look for new records again (EVERY); 0: this run is all.

    Raises:
        LakehouseError: EVERY is no positive number, or is given without KAFKA.
    """
    every = environment.get("EVERY", "")
    if every and not (every.isascii() and every.isdigit() and int(every)):
        raise LakehouseError(f"EVERY={every}: expected a number of seconds, at least 1.")
    if every and not environment.get("KAFKA"):
        raise LakehouseError("EVERY goes with KAFKA: a run on files ends with the files.")
    return int(every or 0)


class Built:
    """What was built last in this lakehouse: the text of every model, and of every system the newest batch, of which
    bronze table it is, the newest batch that its counts had, and which of its topics are of tables that got no models;
    and what is known of the models that people wrote (`OwnModels`).

    Kept in one file that is replaced as a whole. Where it is lost or broken, a run builds everything once more.
    """

    def __init__(self) -> None:
        self.path = lakehouse_dir() / "built.json"
        self.state: dict[str, Any] = {
            "models": {},
            "batches": {},
            "bronze": {},
            "refused": {},
            "counted": {},
            "own": {},
        }
        with suppress(FileNotFoundError, ValueError, LookupError, TypeError, AttributeError):
            found = json.loads(self.path.read_bytes())
            models = {str(name): str(text) for name, text in found["models"].items()}
            batches = {str(system): int(batch) for system, batch in found["batches"].items()}
            bronze = {str(system): str(identity) for system, identity in found["bronze"].items()}
            refused = {str(system): [str(topic) for topic in topics] for system, topics in found["refused"].items()}
            counted = {str(system): int(batch) for system, batch in found["counted"].items()}
            own = {
                str(path): {
                    "text": str(one["text"]),
                    "reads": [str(name) for name in one["reads"]],
                    "is_built": bool(one["is_built"]),
                }
                for path, one in found.get("own", {}).items()
            }
            self.state = {
                "models": models,
                "batches": batches,
                "bronze": bronze,
                "refused": refused,
                "counted": counted,
                "own": own,
            }

    def up_to(self, spark: SparkSession, system: str) -> int:
        """The newest batch that was built; 0 where bronze is another since, so that all models are run, and say so.

        So it is where the catalog was restored, whose counts are those of then, and where models are gone, to be
        written anew.
        """
        known = int(self.state["batches"].get(system, 0))
        if not known or self.state["bronze"].get(system) != _bronze_id(spark, system):
            return 0
        if _counted_up_to(spark, system) < self.state["counted"].get(system, 0):
            return 0
        there = {path.stem for path in _model_files(system)}
        return known if all(name in there for name in self.state["models"] if name.startswith(f"stg_{system}__")) else 0

    def save(self) -> None:
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(self.state, indent=1, sort_keys=True), encoding="utf-8")
        part.replace(self.path)


def say(text: str, file: TextIO | None = None) -> None:
    """Print lines.

    Names in them may hold anything, and a terminal obeys control characters: those are shown as escapes.
    """
    print("\n".join(shown(line) for line in text.split("\n")), file=file, flush=True)


def shown(name: str) -> str:
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in name)


def main() -> int:
    """Run the pipeline, note what it did (scripts/runs.py), and return the exit status."""
    status = 1
    runs.begin()
    try:
        status = _main()
    finally:
        runs.end(status)
    return status


def _main() -> int:
    """Run the pipeline and return the exit status.

    It is 0 if every model was built, no record was deleted before it was read, no log has started over, and what has
    landed gave a table; 130 after Ctrl-C, but 0 where EVERY was going on; else 1.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # of a terminal that cannot show …
    try:
        todo = requests(dict(os.environ))
        every = seconds_between(dict(os.environ))
        runs.of([request.system for request in todo])
        if prefix := schema_prefix():
            raise LakehouseError(
                f"the schema of the profile is {prefix} (LAKEHOUSE_SCHEMA): make run builds the tables that all share. "
                "Unset it, or use dbt for tables of your own (docs/dbt-project.md)."
            )
        named = {request.system: request.events for request in todo if request.events}
        files = {system: event_files(events, say) for system, events in named.items() if isinstance(events, str)}
        dbt = threading.Thread(target=_prepare_dbt, daemon=True)  # takes seconds, as starting Spark does: both at once
        dbt.start()
        say("Starting Spark …")
        record_class_archive()
        jars = kafka_jars() if any(isinstance(request.events, Topics) for request in todo) else []
        spark = session(jars)
        if jars:
            add_connector(spark, jars)
        lost = []
        runs.phase("land")
        for request in todo:
            if request.events:
                lost += _land(spark, request, files.get(request.system, []), say).lost
            elif not spark.catalog.tableExists(f"bronze.`{request.system}`"):
                raise LakehouseError(
                    f"SYSTEM={request.system}: nothing has landed for it. Name its events: EVENTS=<path>."
                )
        runs.phase("start")
        dbt.join()
        before = {request.system: int(Built().state["batches"].get(request.system, 0)) for request in todo}
        failed = (_replay if os.environ.get("REPLAY") else _refresh)(spark, todo, say)
        runs.phase("show")
        _show(spark, before, say)
        behind = _tell_resets(spark, [request.system for request in todo], say)
        if every:
            return _go_on(spark, todo[0], every, bool(failed), say)
        if failed:
            say(
                f"\n{failed} models failed: see above, and all of it in logs/dbt.log and {log_file()}. Mend it and run"
                " again."
            )
        if lost:
            raise LakehouseError(_lost(lost))
        if failed or behind:
            return 1
        for request in todo:
            if told := _without_tables(spark, request.system):
                raise LakehouseError(told)
        _next_steps(todo, say)
        return 0
    except KeyboardInterrupt:
        say("\nStopped. What has landed stays; the next run goes on after it.")
        runs.problem("stopped")
        return 130
    except Exception as error:
        runs.problem(str(error))
        return end_with(error)


def end_with(error: Exception) -> int:
    """Say why a command ends, and return its exit status.

    A bug or a broken machine gets one line here, the rest is in the log.
    """
    if isinstance(error, LakehouseError):
        say(f"\nError: {error}", sys.stderr)
    elif reason := _want(str(error)):
        say(f"\nError: {reason}", sys.stderr)
    else:
        with log_file().open("a", encoding="utf-8") as log:
            log.write("".join(traceback.format_exception(error)))
        lines = str(error).splitlines() or [type(error).__name__]
        told = (
            lines[1].strip(": ") if lines[0].startswith("An error occurred while calling") and lines[1:] else lines[0]
        )
        say(f"\nError: {told}", sys.stderr)
        say(f"The full message is in {log_file()}.", sys.stderr)
    return 1


def _building(say: Any) -> AbstractContextManager[None]:
    """One run at a time is in here: two merges of one table conflict, and the later one would fail."""
    return locked("build.lock", lambda: say("Another run is building in this lakehouse; waiting for it …"))


def _refresh(spark: SparkSession, todo: list[Request], say: Any) -> int:
    """Write and build the models whose tables have something new. Returns the number that failed."""
    runs.phase("models")
    with _building(say):
        done = [_scaffold(spark, request, say) for request in todo]
        runs.phase("build")
        return _build(spark, [request.system for request in todo], done, say)


def _replay(spark: SparkSession, todo: list[Request], say: Any) -> int:
    """Build what is new, then type rejected records again, as change logs do with REPLAY. Returns how many models
    failed.

    What the events model rejected may be of any table that reads it: it and these tables are rebuilt.
    """
    if number := _refresh(spark, todo, say):
        return number
    chosen: dict[str, list[str]] = {"": [], "--full-refresh": []}
    for system in (request.system for request in todo):
        models = {path.stem for path in _model_files(system)}
        rejects = f"{system}__rejected_events"
        found = (
            spark.sql(f"select distinct source_table from monitoring.`{rejects}`").collect()
            if rejects in models
            else []
        )
        if not found:
            say(f"{system}: no record is rejected.")
            continue
        tables = declared_tables(system, PROJECT / "models").values()
        of_events = {one.relation for one in tables if one.routed and (None,) in found}
        for one in tables:
            if one.relation in of_events or (one.table.name,) in found:
                option = "--full-refresh" if one.relation in of_events else ""
                chosen[option] += [one.model(layer, system) for layer in ("staging", "silver")]
        chosen["--full-refresh"] += [f"{system}__events"] if of_events else []
        chosen[""] += sorted(models & {f"{system}__event_counts"})
    systems = [request.system for request in todo]
    with _building(say):
        failed: list[str] = []
        for option, names in reversed(chosen.items()):
            if names:
                say(f"Building {len(names)} models …")
                failed += _dbt(
                    ["run", *option.split(), "--select", *_with_live_tables(spark, systems, names)], say, names
                )
        built = Built()
        own = OwnModels(
            own_files(PROJECT / "models", _shared()), built.state["own"], set(), built.state["batches"].keys()
        )
        if not failed and own.files:
            manifest = _manifest()
            own.choose(manifest, [*chosen[""], *chosen["--full-refresh"]], [])
            if own.chosen:
                say(f"Building {len(own.chosen)} models …")
                failed += _dbt(["run", "--select", *sorted(own.chosen)], say, own.chosen, manifest)
            built.state["own"] = own.state_after(failed)
            built.save()
    return len(failed)


def _go_on(spark: SparkSession, request: Request, every: int, is_behind: bool, say: Any) -> int:
    """Land and build what is new every so many seconds, until Ctrl-C.

    What cannot be read or built is told, and tried again.
    """
    assert isinstance(request.events, Topics)
    say(f"\nLooking for new records every {every} s; Ctrl-C ends it.")
    runs.end(int(is_behind))
    try:
        while True:
            time.sleep(every - time.time() % every)
            runs.begin([request.system], is_round=True)
            try:
                landed = land_topics(
                    spark, request.system, request.events, warn=lambda told: say(f"Error: {_lost([told])}")
                )
                if landed.batches or landed.notes:
                    _tell(request, landed, say)
                is_behind = is_behind or bool(landed.batches)
                if is_behind:
                    is_behind = bool(_refresh(spark, [request], say))
                    _tell_resets(spark, [request.system], say)
            except ResourceError:
                raise
            except LakehouseError as error:
                is_behind = True  # what landed before it went wrong is to be built as well
                runs.problem(str(error))
                say(f"Error: {error}")
            runs.end(int(is_behind))
    except KeyboardInterrupt:
        say("\nStopped. What has landed stays; the next run goes on after it.")
        return 0


def _lost(lost: list[str]) -> str:
    return (
        f"{'; '.join(lost)}. Their changes are missing, deletes too: let the connector send an initial or blocking"
        " snapshot of these tables, as a whole, look for the rows that it did not find (docs/operating.md), and read"
        " more often."
    )


def _want(message: str) -> str:
    """What the machine ran out of, and what to do, where that is why something failed with this message."""
    if any(mark in message for mark in ("No space left on device", "Disk quota exceeded", "SQLITE_FULL")):
        return (
            f"the disk is full: LAKEHOUSE_DIR={lakehouse_dir()} cannot be written. Free space and run again; no record"
            " is lost."
        )
    if ran_out_of_memory() or ("System memory" in message and "spark.driver.memory" in message):
        heap = settings().get("spark.driver.memory")
        return (
            f"Spark ran out of memory{f' (LAKEHOUSE_DRIVER_MEMORY={heap})' if heap else ''}. Run again with more, for"
            " instance LAKEHOUSE_DRIVER_MEMORY=4g make run; a resident Spark gets it with make up. No record is lost."
        )
    return ""


def _prepare_dbt() -> None:
    """Import dbt, and have it parse the project where it never has.

    What is wrong there is told when models are built.
    """
    with suppress(Exception):  # also if the run has ended with an error meanwhile: this thread would print a traceback
        from dbt.cli.main import dbtRunner

        if not (PROJECT / "target" / "partial_parse.msgpack").exists():
            dbtRunner().invoke(["parse", *DBT_OPTIONS])


def _land(spark: SparkSession, request: Request, files: list[Path], say: Any) -> Landed:
    if isinstance(request.events, Topics):
        landed = land_topics(
            spark, request.system, request.events, say, lambda told: say(f"Error: {request.system}: {_lost([told])}")
        )
    else:
        landed = land_files(spark, request.system, files, say)
    _tell(request, landed, say, f" in {len(files)} file(s)" if files else "")
    return landed


def _tell(request: Request, landed: Landed, say: Any, where: str = "") -> None:
    runs.landed(landed.records)
    for note in landed.notes:
        say(f"{request.system}: {note}")
    repeated = f", {landed.repeated:,} were there already" if landed.repeated else ""
    invalid = (
        f", {landed.invalid:,} {'lines are no records' if where else 'are no text in UTF-8'}" if landed.invalid else ""
    )
    say(f"{request.system}: {landed.records:,} new records{where}{repeated}{invalid}")


def _scaffold(spark: SparkSession, request: Request, say: Any) -> Scaffolded:
    built = Built()
    known, refused = built.up_to(spark, request.system), set(built.state["refused"].get(request.system, []))
    bronze = Bronze(spark, request.system)
    done = scaffold(bronze, request.connector, request.keys, known, servers=request.servers, refused=refused)
    done.written += write_history(request.system, request.history, PROJECT / "models")
    for note in done.notes:
        say(f"{request.system}: {note}")
    return done


def _build(spark: SparkSession, systems: list[str], scaffolded: list[Scaffolded], say: Any) -> int:
    """Build the models that are new, changed, or have new events. Returns the number that failed."""
    built = Built()
    shared = _shared()
    texts = {}
    wanted: dict[str, bool] = {}  # model → with --full-refresh
    there = (
        {row.tableName for row in spark.sql("show tables in silver").collect()}
        if _has_schema(spark, "silver")
        else set()
    )
    batches: dict[str, int] = {}
    bronze: dict[str, str] = {}
    for system, done in zip(systems, scaffolded, strict=True):
        batches[system] = done.up_to
        bronze[system] = _bronze_id(spark, system)
        is_another = bool(built.state["batches"].get(system)) and not done.above
        files = {path.stem: shared + _digest(path) for path in _model_files(system)}
        tables = declared_tables(system, PROJECT / "models").values()
        for live, silver, staging in (
            [table.model(layer, system) for layer in ("live", "silver", "staging")] for table in tables
        ):
            if live in files:  # its text names no columns: it has those of silver, whose types are those of staging
                files[live] += files.get(silver, "") + files.get(staging, "")
        # What was built of another bronze table may be in another catalog.
        edited = {name for name, text in files.items() if is_another or built.state["models"].get(name) != text}
        changed = bool(done.topics or edited or is_another)
        texts.update(files)
        wanted.update(dict.fromkeys(edited, False))
        for declared in tables:
            silver = declared.model("silver", system)
            is_dropped = silver in files and silver not in there
            if (
                is_another
                or is_dropped
                or declared.table.topics & done.topics
                or declared.model("staging", system) in wanted
            ):
                wanted.update({declared.model("staging", system): False, silver: False})
        if changed and (PROJECT / "models" / "monitoring" / system).exists():
            wanted[f"{system}__event_counts"] = False
            if (PROJECT / "models" / "staging" / system / f"{system}__events.sql").exists():
                wanted[f"{system}__events"] = False
        wanted.update(dict.fromkeys(done.written, False))
        wanted.update(dict.fromkeys([*done.rebuilt, *_keyed_otherwise(spark, system, edited)], True))
    own = OwnModels(
        own_files(PROJECT / "models", shared), built.state["own"], set(systems), {*systems, *built.state["batches"]}
    )
    if not wanted and not own.is_behind():
        say("Nothing new to build.")
        return 0
    manifest = None
    if own.files:
        manifest = _manifest()
        own.choose(manifest, wanted, [system for system, done in zip(systems, scaffolded, strict=True) if done.topics])
        for path, missing in sorted(own.waiting.items()):
            say(f"models/{path} waits for the tables of {' and '.join(missing)}.")
    rebuilt = {name for name, with_refresh in wanted.items() if with_refresh}
    events = {name for name in (f"{system}__events" for system in systems) if rebuilt and name in wanted}
    failed: list[str] = []
    # What is built anew reads all that the events model has: what landed has to be in there already.
    for chosen, options in (
        (events, []),
        (rebuilt, ["--full-refresh"]),
        ((wanted.keys() - rebuilt - events) | own.chosen.keys(), []),
    ):
        if chosen:
            say(f"Building {len(chosen)} models …")
            failed += _dbt(
                ["run", "--select", *_with_live_tables(spark, systems, chosen), *options], say, chosen, manifest
            )
    if not wanted and not own.chosen:
        say("Nothing new to build.")
    built.state["own"] = own.state_after(failed)
    if own.chosen.keys() >= set(
        failed
    ):  # all tables are built; of the others those that failed are built with the next run
        of_systems = tuple(f"{layer}{system}__" for system in systems for layer in ("", "stg_", "live_"))
        others = {name: text for name, text in built.state["models"].items() if not name.startswith(of_systems)}
        built.state["models"] = others | texts
        built.state["batches"].update(batches)
        built.state["counted"].update({system: _counted_up_to(spark, system) for system in systems})
        built.state["bronze"].update(bronze)
        built.state["refused"].update(
            {system: sorted(done.refused) for system, done in zip(systems, scaffolded, strict=True)}
        )
    built.save()
    return len(failed)


def _with_live_tables(spark: SparkSession, systems: list[str], models: Collection[str]) -> list[str]:
    """A selection of models, in which a silver model brings its live model if that is a table; a view needs no run."""
    selected = sorted(models)
    for system in systems:
        if _has_schema(spark, system) and any(
            not row.isTemporary for row in spark.sql(f"show tables in `{system}`").collect()
        ):
            live = {path.stem for path in (PROJECT / "models" / "live" / system).glob("*.sql")} - set(models)
            selected += [f"live_{name},config.materialized:table" for name in sorted(models) if f"live_{name}" in live]
    return selected


def _counted_up_to(spark: SparkSession, system: str) -> int:
    """The newest batch that `event_counts` has; 0 where there is none."""
    counts = f"monitoring.`{system}__event_counts`"
    if not spark.catalog.tableExists(counts):
        return 0
    return int(spark.sql(f"select max(batch) as batch from {counts}").collect()[0].batch or 0)


def _bronze_id(spark: SparkSession, system: str) -> str:
    return str(spark.sql(f"show tblproperties bronze.`{system}` ('cdc.id')").collect()[0].value)


def _keyed_otherwise(spark: SparkSession, system: str, models: set[str]) -> list[str]:
    """The models of tables, among these, that have another key now: it was changed by hand, or by a run that was killed
    then.
    """
    if not models:
        return []
    there = (
        {row.tableName for row in spark.sql("show tables in silver").collect()}
        if _has_schema(spark, "silver")
        else set()
    )
    found = []
    for declared in declared_tables(system, PROJECT / "models").values():
        silver = declared.model("silver", system)
        if silver in models and silver in there:
            stored = spark.sql(f"show tblproperties silver.`{silver}` ('cdc.keys')").collect()[0].value
            if stored != digest_of_keys(declared.table.kept(declared.table.keys)):
                found += [declared.model(layer, system) for layer in ("staging", "silver", "live")]
    return found


def _model_files(system: str) -> list[Path]:
    models = PROJECT / "models"
    return sorted(
        path for layer in models.iterdir() for path in (layer / system).glob("*.sql") if is_scaffolded(path, models)
    )


def _shared() -> str:
    """A digest of what every model depends on."""
    macros = [
        *(PROJECT / "macros").rglob("*.sql"),
        *(PROJECT / "dbt_packages" / "debezium_lakehouse" / "macros").rglob("*.sql"),
    ]
    return _digest(*sorted(macros), PROJECT / "dbt_project.yml")


def _digest(*paths: Path) -> str:
    seen = hashlib.sha256()
    for path in paths:
        seen.update(path.read_bytes())
    return seen.hexdigest()[:16]


class Progress:
    """Says every few seconds how many models and tables dbt has built, and which it builds.

    Args:
        models: the names of all.
    """

    def __init__(self, models: Collection[str], say: Any) -> None:
        self.say, self.models = say, len(models)
        self.tables = {name for name in models if f"stg_{name}" in models}
        self.built: set[str] = set()
        self.running: dict[str, None] = {}  # in the order in which they started
        self.told_at = time.monotonic()
        self.lock = threading.Lock()  # dbt has several threads

    def __call__(self, event: Any) -> None:
        if event.info.name not in ("NodeStart", "NodeFinished"):
            return
        name = event.data.node_info.node_name
        with self.lock:
            if event.info.name == "NodeFinished":
                self.running.pop(name, None)
                self.built.add(name)
                return
            self.running[name] = None
            if time.monotonic() - self.told_at >= PROGRESS_SECONDS:
                self.told_at = time.monotonic()
                self.say(self.line())

    def line(self) -> str:
        tables = f", {len(self.built & self.tables)} of {len(self.tables)} tables" if self.tables else ""
        models = max(self.models, len(self.built) + len(self.running))  # live models that are tables come besides
        return f"  {len(self.built)} of {models} models built{tables}; now {', '.join(self.running)} …"


def _manifest() -> Any:
    """What dbt knows of all models: parsed once, for all that the run asks of dbt."""
    from dbt.cli.main import dbtRunner

    return _result(dbtRunner().invoke(["parse", *DBT_OPTIONS]))


def _result(result: Any) -> Any:
    """What a command of dbt gave, or the reason why it could not begin."""
    if isinstance(result.exception, KeyboardInterrupt):
        raise result.exception
    if result.exception:
        if reason := _want(str(result.exception)):
            raise ResourceError(reason)
        raise LakehouseError(f"dbt: {result.exception}")
    return result.result


def _dbt(arguments: list[str], say: Any, models: Collection[str] = (), manifest: Any = None) -> list[str]:
    """Run dbt in this process and session, and say what failed and why. Returns the names of the models that failed.

    Args:
        models: those that it builds; it says now and then how far it is. Without them it does not.
        manifest: what dbt has parsed, as `_manifest` gives it; without it dbt parses.
    """
    from dbt.cli.main import dbtRunner

    runs.building(models)
    callbacks: list[Any] = [Progress(models, say)] if models else []
    failed = []
    for node in _result(dbtRunner(manifest, callbacks).invoke([*arguments, *DBT_OPTIONS])):
        if str(node.status) in ("error", "fail", "skipped"):
            failed.append(node.node.name)
            if reason := _want(str(node.message)):
                raise ResourceError(reason)
            message = [line.strip() for line in str(node.message or "").splitlines() if line.strip()]
            told = f"{node.node.name}: {' '.join(message[:4]) if message else node.status}"
            runs.problem(told)
            say(f"  {told}")
    return failed


def _show(spark: SparkSession, before: dict[str, int], say: Any) -> None:
    """The table that ends a run: what each source table had and has; below it what was rejected, and other notes.

    Args:
        before: system → the newest batch that was built before the run.
    """
    merged_at = time.time()
    counted = set()
    if _has_schema(spark, "monitoring"):
        counted = {row.tableName for row in spark.sql("show tables in monitoring like '*__event_counts'").collect()}
    tables = {
        system: sorted(declared_tables(system, PROJECT / "models").values(), key=lambda table: table.relation)
        for system in before
        if f"{system}__event_counts" in counted
    }
    tables = {system: of_system for system, of_system in tables.items() if of_system}
    if not tables:
        say("No tables yet.")
        return
    counts = _counts(spark, {system: before[system] for system in tables})
    shown_tables = {system: _shown_tables(system, of_system, counts) for system, of_system in tables.items()}
    live = _live_rows(spark, shown_tables)
    lines: list[tuple[str, ...]] = []
    notes: list[str] = []
    for system, of_system in shown_tables.items():
        for table in of_system:
            is_log = not table.table.keys
            relation = f"silver.{table.model('silver', system)}" if is_log else f"{system}.{table.relation}"
            found = live.get((system, table.relation))
            rows = "change log" if is_log else f"{found.live_rows if found else 0:,}"
            if found and found.unknown:
                notes.append(
                    f"{relation}: rows with a NULL for a value that every landed event left out: {found.unknown:,}"
                )
            of_table = counts.get((system, table.table.name), [])
            *numbers, newest = _of_table(of_table)
            lines.append((shown(table.table.name), relation, *numbers, rows, newest, _lag(of_table, merged_at)))
    if lines:
        has_lag = any(line[-1] != "-" for line in lines)
        say("\n" + "\n".join(_aligned([line if has_lag else line[:-1] for line in [HEAD, *lines]])))
    for system, of_system in tables.items():
        if unshown := len(of_system) - len(shown_tables[system]):
            say(
                f"{system}: {unshown} of {len(of_system)} tables have nothing new and no rejected record; they are not"
                " shown."
            )
    if rejects := [line for (system, table), rows in counts.items() for line in _rejects(system, table, rows)]:
        say("\n" + "\n".join(rejects))
    unusable = {system: _sum(counts.get((system, None), []), "change_without_model") for system in tables}
    if any(unusable.values()):
        say("")
    for system, number in unusable.items():
        if number:
            say(f"{system}: {number:,} changes are of no table that has models; they are in bronze.{system}.")
    if notes:
        say("")
        for note in notes:
            say(note)
        say("Values of these rows are not known (docs/operating.md#watching says which).")


def _without_tables(spark: SparkSession, system: str) -> str:
    """What to say of a system whose records gave no table; empty where it has one, or nothing has landed."""
    if declared_tables(system, PROJECT / "models") or not spark.catalog.tableExists(f"bronze.`{system}`"):
        return ""
    rows = spark.sql(
        f"select error, count(*) as n from bronze.`{system}` group by error order by error nulls first"
    ).collect()
    if not rows:
        return ""
    found = ", ".join(
        f"{row.n:,} {f'rejected ({row.error})' if row.error else 'that are no event of a table'}" for row in rows
    )
    return (
        f"SYSTEM={system}: what has landed gave no table: {found}. The run that landed it said more. Expected are"
        " Debezium change events as JSON (README.md, docs/rejects.md). To see what is there: select * from"
        f" bronze.{system} limit 1"
    )


def _counts(spark: SparkSession, before: dict[str, int]) -> dict[tuple[str, str | None], list[Any]]:
    """System and table → how many records of each kind, operation and reason to reject have landed, up to a batch and
    above it.
    """
    columns = "source_table, kind, op, reject_reason, events, newest_change_at"
    queries = [
        f"select '{system}' as system, {columns}, batch > {batch} as is_new from monitoring.`{system}__event_counts`"
        for system, batch in before.items()
    ]
    found: dict[tuple[str, str | None], list[Any]] = {}
    for row in spark.sql(f"""
        select system, source_table, kind, op, reject_reason, is_new, sum(events) as events,
            date_format(max(newest_change_at), 'yyyy-MM-dd HH:mm:ss') as newest,
            unix_timestamp(max(newest_change_at)) as newest_second
        from ({" union all ".join(queries)}) as counts
        group by system, source_table, kind, op, reject_reason, is_new
        order by system, source_table nulls last
        """).collect():
        found.setdefault((row.system, row.source_table), []).append(row)
    return found


def _shown_tables(
    system: str, tables: list[Declared], counts: dict[tuple[str, str | None], list[Any]]
) -> list[Declared]:
    """The tables that the run shows: all, or of many those that have new records or rejected ones."""
    if len(tables) <= MANY_TABLES:
        return tables
    told = {
        table
        for (of, table), rows in counts.items()
        if of == system and any(row.is_new or row.kind == "rejected" for row in rows)
    }
    return [table for table in tables if table.table.name in told]


def _lag(rows: list[Any], now: float) -> str:
    """How long ago the source committed the newest of a table's new changes; `-` of a table without any."""
    seconds = [
        row.newest_second for row in rows if row.is_new and row.kind in ("change", "truncate") and row.newest_second
    ]
    return _duration(now - max(seconds)) if seconds else "-"


def _duration(seconds: float) -> str:
    """In the greatest unit that fits twice: `90 s`, `36 h`. `< 0 s` if the clock of the source is ahead."""
    if seconds < 0:
        return "< 0 s"
    for unit, of in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * of:
            return f"{seconds // of:.0f} {unit}"
    return f"{seconds:.0f} s"


def _sum(rows: list[Any], kind: str, *ops: str) -> int:
    return sum(row.events for row in rows if row.kind == kind and (not ops or row.op in ops))


def _of_table(rows: list[Any]) -> list[str]:
    """The cells of a table from `events` to `rejected`, and `newest change`."""
    numbers = [
        _sum(rows, "change", "c", "r"),
        _sum(rows, "change", "u"),
        _sum(rows, "change", "d"),
        _sum(rows, "truncate"),
        _sum(rows, "rejected"),
    ]
    events = _sum(rows, "change") + _sum(rows, "truncate") + _sum(rows, "rejected")
    return [
        *(f"{number:,}" for number in (events, *numbers)),
        max((row.newest for row in rows if row.newest), default="-"),
    ]


def _aligned(lines: list[tuple[str, ...]]) -> list[str]:
    """The lines of a table: texts on the left of their columns, numbers on the right."""
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    texts = {HEAD.index(name) for name in ("source table", "relation", "newest change")}
    return [
        "  ".join(
            cell.ljust(width) if column in texts else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]


def _rejects(system: str, table: str | None, rows: list[Any]) -> list[str]:
    """How many records of a table were rejected for which reason, and the query that shows them; empty if none was."""
    number = _sum(rows, "rejected")
    if not number:
        return []
    of_reason: Counter[str] = Counter()
    for row in rows:
        if row.kind == "rejected":
            of_reason[str(row.reject_reason)] += row.events
    reasons = sorted(of_reason.items(), key=lambda one: (-one[1], one[0]))
    records = "1 record was rejected" if number == 1 else f"{number:,} records were rejected"
    others = sum(events for _, events in reasons[REASONS_SHOWN:])
    quoted = "is null" if table is None else f"= {_sql_text(table)}"
    return [
        f"{system}: {records} of {'no table' if table is None else shown(table)}:",
        *(f"  {events:,} because of {shown(reason)}" for reason, events in reasons[:REASONS_SHOWN]),
        *([f"  {others:,} for other reasons"] if others else []),
        f"  select reason, event_id, value from monitoring.`{system}__rejected_events` where source_table {quoted}",
    ]


def _sql_text(text: str) -> str:
    """A text as a literal of Spark that a terminal shows and a person can copy: what is not printable is an escape."""
    escapes = {"\\": "\\\\", "'": "\\'"}
    shown = (escapes.get(each, each if each.isprintable() else rf"\U{ord(each):08x}") for each in text)
    return "'" + "".join(shown) + "'"


def _has_schema(spark: SparkSession, name: str) -> bool:
    return any(row.namespace == name for row in spark.sql("show namespaces").collect())


def _live_rows(spark: SparkSession, tables: dict[str, list[Declared]]) -> dict[tuple[str, str], Any]:
    """System and relation → its `live_rows`, and how many of them have a value that every event left out (`unknown`).

    All tables in one query with one aggregation: each costs. Tables without a live row are not in it.
    """
    there = {row.tableName for row in spark.sql("show tables in silver").collect()}
    queries = [
        f"select '{system}' as system, '{table.relation}' as relation, _cdc_held "
        f"from silver.`{table.model('silver', system)}` where not _cdc_is_deleted"
        for system, of_system in tables.items()
        for table in of_system
        if table.table.keys and table.model("silver", system) in there
    ]
    if not queries:
        return {}
    found = spark.sql(f"""
        select system, relation, count(*) as live_rows,
            count_if(exists(map_values(_cdc_held), held -> held not like '%.%.%.%')) as unknown
        from ({" union all ".join(queries)}) as rows group by system, relation
        """).collect()
    return {(row.system, row.relation): row for row in found}


def _resets(spark: SparkSession, system: str) -> dict[str, dict[str, list[int]]]:
    """Where the source's log started over: table → partition or file → first number, last one, and how many changes."""
    there = (
        {row.tableName for row in spark.sql("show tables in silver").collect()}
        if _has_schema(spark, "silver")
        else set()
    )
    found = {}
    for declared in declared_tables(system, PROJECT / "models").values():
        silver = declared.model("silver", system)
        if silver in there:
            stored = spark.sql(f"show tblproperties silver.`{silver}` ('cdc.resets')").collect()[0].value
            if stored.startswith("{") and (resets := json.loads(stored)):
                found[declared.table.name] = resets
    return found


def _tell_resets(spark: SparkSession, systems: list[str], say: Any) -> int:
    """Say where the source's log started over. Returns the number of tables that are behind because of it."""
    tables = 0
    for system in systems:
        for table, places in _resets(spark, system).items():
            tables += 1
            for place, (first, last, count) in places.items():
                say(
                    f"\n{system}: {table}: {count:,} changes in {place} from {first} to {last} lie below those before"
                    " them: the source's log started over, and the older states are shown."
                )
    if tables:
        say("Declare an epoch in seeds/cdc_epochs.csv (docs/operating.md#when-the-sources-positions-start-over).")
    return tables


def _next_steps(todo: list[Request], say: Any) -> None:
    say("\nNext: make sql      a SQL shell, for instance: select * from " + _example(todo[0].system) + " limit 10")
    say("      make docs     the documentation of every model and column, with lineage")
    say("      make run EVENTS=<file, folder or glob> SYSTEM=<name>     your own Debezium events")


def _example(system: str) -> str:
    keyed = [table.relation for table in declared_tables(system, PROJECT / "models").values() if table.table.keys]
    return f"{system}.{sorted(keyed)[0]}" if keyed else f"bronze.{system}"


if __name__ == "__main__":
    sys.exit(main())
