"""`scripts.run` and its neighbours in a process that is told where to die: commands come as JSON, one on a line.

What changes something that another process sees is a boundary: a statement of Spark, a write of a DataFrame, a file of
the project or of the lakehouse. They are counted within a command, whose `at` names one of those that match a pattern,
and when to die: `before` it, `after` it, `during` it (after so many seconds) or `interrupted`, by Ctrl-C while Spark is
at it; or to be `held` before it until another line comes. Nothing of this is in the commands themselves. The end of a
command is a line that begins with `#`; a process that dies ends without.
"""

import json
import os
import re
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrameWriterV2, SparkSession
from pyspark.sql.classic.dataframe import DataFrame

# Views whose name begins with cdc_new_ are of the session alone.
CHANGES = re.compile(
    r"\s*(create|insert|merge|delete|update|alter|drop|call)\b(?! view if exists `cdc_new_)", re.IGNORECASE
)
COMMENT = re.compile(r"\A\s*/\*.*?\*/", re.DOTALL)


class Boundaries:
    """What the command has passed so far."""

    def __init__(self) -> None:
        self.begin()

    def begin(self, number: int = 0, when: str = "", pattern: str = "", seconds: float = 0.0) -> None:
        self.names: list[str] = []
        self.number, self.when, self.pattern, self.seconds = number, when, re.compile(pattern), seconds

    def passed(self, name: str, act: Callable[[], Any], torn: Callable[[], Any] = lambda: None) -> Any:
        """Do `act`, unless the process dies before; `torn` is what a process that dies so may have done of it."""
        self.names.append(re.sub(r"\s+", " ", name).strip()[:60])
        now = ""
        if self.pattern.match(self.names[-1]):
            self.number -= 1
            now = self.when if self.number == 0 else ""
        if now:
            print(f"{now} boundary {len(self.names)}: {self.names[-1]}", flush=True)
        if now == "before":
            torn()
            self.die()
        if now == "held":
            sys.stdin.readline()
        if now == "during":
            threading.Timer(self.seconds, self.die).start()
        if now == "interrupted":
            threading.Timer(self.seconds, os.killpg, (0, signal.SIGINT)).start()  # as a terminal does
        result = act()
        if now == "after":
            self.die()
        return result

    def die(self) -> None:
        os.killpg(0, signal.SIGKILL)
        signal.pause()


def watch(boundaries: Boundaries) -> None:
    """Have everything that changes something pass `boundaries`."""
    passed = boundaries.passed
    sql, write_to, write, replace, unlink = (
        SparkSession.sql,
        DataFrame.writeTo,
        Path.write_text,
        Path.replace,
        Path.unlink,
    )

    def watched_sql(self: Any, query: str, *rest: Any, **named: Any) -> Any:
        bare = COMMENT.sub("", query)
        return (
            passed(bare, lambda: sql(self, query, *rest, **named))
            if CHANGES.match(bare)
            else sql(self, query, *rest, **named)
        )

    def watched_writer(self: Any, table: str) -> Any:
        writer = write_to(self, table)
        writer.table = table
        return writer

    def watched_commit(act: Callable[..., Any]) -> Callable[..., Any]:
        return lambda self, *condition: passed(f"{act.__name__} {self.table}", lambda: act(self, *condition))

    def watched_write(self: Path, text: str, *rest: Any, **named: Any) -> Any:
        half = text[: len(text) // 2]
        return passed(
            f"write {self.name}", lambda: write(self, text, *rest, **named), lambda: write(self, half, *rest, **named)
        )

    def watched_replace(self: Path, target: Any) -> Any:
        return passed(f"replace {Path(target).name}", lambda: replace(self, target))

    def watched_unlink(self: Path, missing_ok: bool = False) -> None:
        if self.exists() or not missing_ok:
            passed(f"remove {self.name}", lambda: unlink(self))

    watched: list[tuple[Any, str, Any]] = [
        (SparkSession, "sql", watched_sql),
        (DataFrame, "writeTo", watched_writer),
        (Path, "write_text", watched_write),
        (Path, "replace", watched_replace),
        (Path, "unlink", watched_unlink),
    ]
    watched += [
        (DataFrameWriterV2, name, watched_commit(getattr(DataFrameWriterV2, name))) for name in ("append", "overwrite")
    ]
    for kind, name, method in watched:
        setattr(kind, name, method)


def obey(do: str, arguments: list[str]) -> Any:
    """`run` the pipeline, `land` events alone, run `dbt` by itself, or have Spark do some `sql`."""
    from scripts import dbt_commands, loader, run
    from scripts.files import event_files
    from scripts.kafka import Topics
    from scripts.setup import kafka_jars
    from scripts.spark import session

    if do == "run":
        return run.main()
    kafka = os.environ.get("KAFKA")
    spark = session(kafka_jars() if kafka else [])
    if do == "land" and kafka:
        return loader.land_topics(spark, os.environ["SYSTEM"], Topics(kafka, os.environ["TOPICS"])).records
    if do == "land":
        return loader.land_files(spark, os.environ["SYSTEM"], event_files(os.environ["EVENTS"])).records
    if do == "dbt":
        said: list[str] = []
        return len(dbt_commands.run(arguments, said.append)), said
    return [[row.asDict(recursive=True) for row in spark.sql(query).collect()] for query in arguments]


def main() -> None:
    boundaries = Boundaries()
    watch(boundaries)
    for line in sys.stdin:
        command = json.loads(line)
        os.environ.update(command["environment"])
        boundaries.begin(*command["at"])
        result = obey(command["do"], command["arguments"])
        print("#" + json.dumps([result, boundaries.names], default=str), flush=True)
        if result == 130:
            sys.exit(130)  # as the command itself does


if __name__ == "__main__":
    main()
