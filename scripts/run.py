"""`make run`: lands events, writes models for new tables, builds what is new or changed, and shows the result.

With REPLAY (`make replay`) the rejected records are typed again besides, after a fix.
"""

import io
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from scripts import build, dbt_commands, runs
from scripts.arguments import Request, requests, seconds_between
from scripts.bronze import Landed
from scripts.built import Built
from scripts.catalog import kind_of_views
from scripts.errors import LakehouseError, ResourceError, UsageError
from scripts.files import event_files
from scripts.kafka import Topics, add_connector
from scripts.loader import land_files, land_topics
from scripts.messages import end_with, refuse_words, say
from scripts.resets import report_resets
from scripts.results import next_steps, show, without_tables
from scripts.setup import kafka_jars
from scripts.spark import LONG_RUN, log_file, require_folder, schema_prefix, session
from scripts.stores import File

WARNED = 3  # the exit status of a run that did all that it could, but not all that there was to do
# Bytes of a first load from which on Spark's JVM gets its second compiler, which the profile leaves out for short runs.
# On two cores 1.8 GB take 70 s without it and 75 s with it, 5.3 GB 158 s and 130 s; larger ones save more.
LARGE = 4 << 30
PACKED = {".gz": 16, ".zst": 16, ".bz2": 16}  # how many times as long the text is, at least, as a rule
STOPPED = "\nStopped. What has landed stays; the next run goes on after it."


def main() -> int:
    """Run the pipeline, note what it did (scripts/runs.py), and return the exit status.

    It is 0 if every model was built, no record was deleted before it was read, and what has landed gave a table; 3 if a
    log has started over besides, changes are of no table that has models, or DDL records make types doubtful; 2 if the
    arguments or the environment have to change; 130 after Ctrl-C, but 0 where EVERY was going on; else 1.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # of a terminal that cannot show …
    status = 1
    runs.begin()
    try:
        status = _run(requests(dict(os.environ)), seconds_between(dict(os.environ)))
    except KeyboardInterrupt:
        say(STOPPED)
        runs.problem("stopped")
        status = 130
    except Exception as error:
        runs.problem(str(error))
        status = end_with(error)
    finally:
        runs.end(status)
    return status


def _run(todo: list[Request], every: int) -> int:
    systems = [request.system for request in todo]
    runs.of(systems)
    if prefix := schema_prefix():
        raise UsageError(
            f"the schema of the profile is {prefix} (LAKEHOUSE_SCHEMA): make run builds the tables that all share. "
            "Unset it, or use dbt for tables of your own (docs/dbt-project.md)."
        )
    kind_of_views()  # that it is one
    named = {request.system: request.events for request in todo if request.events}
    files = {system: event_files(events, say) for system, events in named.items() if isinstance(events, str)}
    require_folder()
    _fit_jvm_to(files)
    dbt = threading.Thread(target=dbt_commands.prepare, daemon=True)  # takes seconds, as starting Spark does
    dbt.start()
    spark = _session(with_kafka=any(isinstance(request.events, Topics) for request in todo))
    lost = []
    runs.phase("land")
    for request in todo:
        if request.events:
            lost += _land(spark, request, files.get(request.system, [])).lost
        elif not spark.catalog.tableExists(f"bronze.`{request.system}`"):
            raise UsageError(f"SYSTEM={request.system}: nothing has landed for it. Name its events: EVENTS=<path>.")
    runs.phase("start")
    dbt.join()
    before = {system: int(Built().state["batches"].get(system, 0)) for system in systems}
    failed = (build.replay if os.environ.get("REPLAY") else build.refresh)(spark, todo, say)
    runs.phase("show")
    show(spark, before)
    report_resets(spark, systems)
    if every:
        return _go_on(spark, todo[0], every, bool(failed), say)
    if failed:
        where = f"see above, and all of it in {dbt_commands.log_file()} and {log_file()}"
        say(f"\n{failed} models failed: {where}. Mend it and run again.")
    if lost:
        raise LakehouseError(_lost(lost))
    if failed:
        return 1
    for system in set(systems) - runs.warned():
        if problem := without_tables(spark, system):
            raise LakehouseError(problem)
    next_steps(systems[0])
    return WARNED if runs.warned() else 0


def _fit_jvm_to(files: Mapping[str, Sequence[File]]) -> None:
    """Let Spark's JVM compile as for a long run if a system's first load is large. Later runs read less of a folder."""
    known = Built().state["batches"]
    first = [file for system, found in files.items() if system not in known for file in found]
    sizes = [file.stat().st_size * PACKED.get(Path(str(file)).suffix, 1) for file in first if file.exists()]
    if sum(sizes) >= LARGE:
        os.environ.setdefault("LAKEHOUSE_JVM_OPTIONS", LONG_RUN)


def _session(with_kafka: bool) -> SparkSession:
    say("Starting Spark …")
    jars = kafka_jars() if with_kafka else []
    spark = session(jars)
    if jars:
        add_connector(spark, jars)
    return spark


def _land(spark: SparkSession, request: Request, files: list[File]) -> Landed:
    system, events = request.system, request.events
    if isinstance(events, Topics):
        landed = land_topics(spark, system, events, say, lambda lost: say(f"Error: {system}: {_lost([lost])}"))
    else:
        landed = land_files(spark, system, files, say)
    _report(system, landed, say, f" in {len(files)} file(s)" if files else "")
    return landed


def _report(system: str, landed: Landed, say: Callable[[str], None], where: str = "") -> None:
    runs.landed(landed.records)
    for note in landed.notes:
        say(f"{system}: {note}")
    repeated = f", {landed.repeated:,} were there already" if landed.repeated else ""
    no_records = "lines are no records" if where else "are no text in UTF-8"
    invalid = f", {landed.invalid:,} {no_records}" if landed.invalid else ""
    say(f"{system}: {landed.records:,} new records{where}{repeated}{invalid}")


def _lost(lost: list[str]) -> str:
    return (
        f"{'; '.join(lost)}. Their changes are missing, deletes too: let the connector send an initial or blocking"
        " snapshot of these tables, as a whole, look for the rows that it did not find (docs/operating.md), and read"
        " more often."
    )


def _go_on(spark: SparkSession, request: Request, every: int, is_behind: bool, say: Callable[[str], None]) -> int:
    """Land and build what is new every so many seconds, until Ctrl-C.

    What cannot be read or built is reported, and tried again.
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
                    spark, request.system, request.events, warn=lambda lost: say(f"Error: {_lost([lost])}")
                )
                if landed.batches or landed.notes:
                    _report(request.system, landed, say)
                is_behind = is_behind or bool(landed.batches)
                if is_behind:
                    is_behind = bool(build.refresh(spark, [request], say))
                    report_resets(spark, [request.system])
            except ResourceError:
                raise
            except LakehouseError as error:
                is_behind = True  # what landed before it went wrong is to be built as well
                runs.problem(str(error))
                say(f"Error: {error}")
            runs.end(int(is_behind))
    except KeyboardInterrupt:
        say(STOPPED)
        return 0


if __name__ == "__main__":
    sys.exit(refuse_words(sys.argv) or main())
