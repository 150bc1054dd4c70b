"""Capture the change events of real databases with a real Debezium engine.

    python tests/capture/capture.py [--out tests/events] [--system shop|billing|seats|ferry|parcels|letters]

`shop` is a PostgreSQL 15 (records with schema blocks), `billing` a MariaDB 10.11 (records without, and with
DDL records), `seats` a small PostgreSQL whose rows pass their keys on, `ferry` one that is lost and replaced by a
replica that lagged, and whose slot is dropped and recreated, `parcels` and `letters` a small PostgreSQL and a
small MariaDB whose columns get other types (records with schema blocks). For each the script
starts a temporary server on the loopback interface, plays the chapters of `<system>.sql`, and runs the engine
beside it. It kills the engine without warning while its offsets lag behind, in the first two twice and once
inside a transaction, so that the capture holds redelivered events as real ones do. Everything is
stopped and removed in the end.

It writes, for each system:

- `<system>.jsonl`: one Kafka record a line, with the members topic, partition, offset, timestamp (ms),
  headers, key and value, the last two as the exact text of the record or null. There is no Kafka: the
  partition is 0 and the offsets number the records of a topic in the order in which the engine emitted them.
- `<system>.expected.json`: what the database holds in the end. For each `<schema or database>.<table>` its
  key, its columns with their database types, and its rows, sorted by key, each value as the database's own
  text (UTC; bytes as hex, in MariaDB bits as a number and geometry as WKT) or null.

Needs Java 17 or newer, Maven (it fetches the connectors at the first run), and the servers:
`apt-get install postgresql-15 postgresql-contrib mariadb-server maven openjdk-17-jdk-headless`.
"""

from __future__ import annotations

import argparse
import collections
import json
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from databases import CaptureError, Database, MariaDb, PostgreSql, Replica, program, wait_until

HERE = Path(__file__).resolve().parent
DEFAULT_OUT = HERE.parent / "events"

Record = dict[str, Any]
Captured = tuple[list[Record], dict[str, Any]]  # and the tables of the database

# How many records the engine emits before it flushes its offsets. The first kill comes before the first flush
# of its run, so that everything in it is redelivered; the second comes after one.
AT_ONCE = 1
LAGGING = 25


@dataclass
class Engine:
    """The Debezium engine of one system; all its runs append to one file, and to the topics of a Kafka if there is one.

    `between` is called after each of its runs, however it ended.
    """

    name: str
    connector: str
    settings: dict[str, str]
    folder: Path
    kafka: str = ""
    between: Callable[[], None] = lambda: None
    raw: Path = field(init=False)
    _class_path: str = field(init=False)

    def __post_init__(self) -> None:
        self.folder.mkdir()
        self.raw = self.folder / "records.jsonl"
        self.raw.touch()
        self._class_path = class_path(self.connector, self.folder)

    @contextmanager
    def running(self, flush_every: int, pause_ms: int = 0) -> Iterator[subprocess.Popen[bytes]]:
        """Run the engine; on leaving, stop it cleanly unless it was killed meanwhile."""
        settings = self.settings | {
            "name": self.name,
            "topic.prefix": self.name,
            "skipped.operations": "none",
            "offset.storage": "org.apache.kafka.connect.storage.FileOffsetBackingStore",
            "offset.storage.file.filename": str(self.folder / "offsets"),
            "capture.flush.every": str(flush_every),
            "capture.pause.ms": str(pause_ms),
            "capture.kafka": self.kafka,
        }
        properties = self.folder / "engine.properties"
        properties.touch(mode=0o600)
        properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        options = ["-Xmx512m", "-Duser.timezone=UTC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
        command = ["java", *options, "-cp", self._class_path, str(HERE / "CaptureEngine.java")]
        with (self.folder / "engine.log").open("ab") as log:
            engine = subprocess.Popen(
                [
                    program(command[0], "openjdk-17-jdk-headless"),
                    *command[1:],
                    str(properties),
                    str(self.raw),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            yield engine
            if engine.poll() is None:
                engine.terminate()
                engine.wait(60)
        finally:
            if engine.poll() is None:
                engine.kill()
                engine.wait()
            self._drop_unfinished_line()
        self.between()

    def wait_for(self, engine: subprocess.Popen[bytes], *texts: str, since: int = 0) -> None:
        """Wait until a record after the first `since` bytes holds all of the texts."""

        def arrived() -> bool:
            if engine.poll() is not None:
                log = (self.folder / "engine.log").read_text(errors="replace")
                raise CaptureError(f"the engine of {self.name} ended early; its log ends with:\n{log[-4000:]}")
            with self.raw.open("rb") as records:
                records.seek(since)
                return any(all(text.encode() in record for text in texts) for record in records)

        wait_until(arrived, f"a record of {self.name} that holds {' and '.join(texts)}")

    def kill(self, engine: subprocess.Popen[bytes]) -> None:
        """End the engine with SIGKILL: it flushes nothing."""
        engine.kill()
        engine.wait()

    def written(self) -> int:
        return self.raw.stat().st_size

    def written_to(self, topic: str) -> int:
        with self.raw.open(encoding="utf-8") as lines:
            return sum(line.startswith(f'{{"topic":"{topic}"') for line in lines)

    def records(self) -> list[Record]:
        """All records so far, with the coordinates that a Kafka of one partition would give them."""
        offsets: collections.Counter[str] = collections.Counter()
        records = []
        with self.raw.open(encoding="utf-8") as lines:
            for line in lines:
                raw = json.loads(line)
                topic = raw.pop("topic")
                records.append({"topic": topic, "partition": 0, "offset": offsets[topic]} | raw)
                offsets[topic] += 1
        return records

    def _drop_unfinished_line(self) -> None:
        # A broker never has half a record.
        content = self.raw.read_bytes()
        self.raw.write_bytes(content[: content.rfind(b"\n") + 1])


def class_path(connector: str, folder: Path) -> str:
    """The class path of one connector, resolved and downloaded by Maven."""
    maven = program("mvn", "maven")
    answer = folder / "class-path"
    command = [
        maven,
        "--quiet",
        "--batch-mode",
        "--strict-checksums",
        "--file",
        str(HERE / "pom.xml"),
        "dependency:build-classpath",
        f"-Dconnector={connector}",
        f"-Dmdep.outputFile={answer}",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0 or not answer.exists():
        raise CaptureError(f"Maven could not resolve the {connector} connector:\n{done.stdout}{done.stderr}")
    return answer.read_text().strip()


def chapters(system: str) -> dict[str, str]:
    """The parts of `<system>.sql` by the title in their line `-- chapter: <title>`."""
    text = (HERE / f"{system}.sql").read_text(encoding="utf-8")
    parts = re.split(r"^-- chapter: (.+)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def capture_shop(folder: Path, kafka: str = "", between: Callable[[], None] = lambda: None) -> Captured:
    """A week of the tea shop on PostgreSQL."""
    story = chapters("shop")
    database = PostgreSql(folder / "postgresql")
    with database:
        database.execute(story["opening"])
        # Four headers on every record that say nothing here would be a sixth of the file; `billing` has them.
        fewer_headers = {"extended.headers.enabled": "false"}
        settings = database.connector("shop") | converters(schemas=True) | fewer_headers
        engine = Engine("shop", "postgres", settings, folder / "engine-shop", kafka, between)

        first_days(engine, database, story, kill_at="BOX-04")

        with engine.running(LAGGING) as process:
            engine.wait_for(process, "tuesday closed")
            database.execute(story["wednesday"])
            race_for_a_coupon(database)
            database.execute(story["wednesday evening"])
            engine.wait_for(process, "wednesday closed")
            engine.kill(process)

        last_day(engine, database, story, read_last="shop.public.products")
        return engine.records(), database.tables()


def capture_billing(folder: Path, kafka: str = "", between: Callable[[], None] = lambda: None) -> Captured:
    """A week of the energy co-operative on MariaDB."""
    story = chapters("billing")
    database = MariaDb(folder / "mariadb")
    with database:
        database.execute(story["opening"])
        story = {title: "use billing;\n" + sql for title, sql in story.items()}
        settings = database.connector("billing") | converters(schemas=False)
        engine = Engine("billing", "mariadb", settings, folder / "engine-billing", kafka, between)

        first_days(engine, database, story, kill_at="T-06")

        with engine.running(LAGGING) as process:
            engine.wait_for(process, "tuesday closed")
            database.execute(story["wednesday"])
            engine.wait_for(process, "wednesday closed")
            engine.kill(process)

        last_day(engine, database, story, read_last="billing.billing.invoices")
        return engine.records(), database.tables()


def capture_seats(folder: Path, kafka: str = "", between: Callable[[], None] = lambda: None) -> Captured:
    """Statements on PostgreSQL that give rows the keys of others, which these leave only then."""
    story = chapters("seats")
    database = PostgreSql(folder / "postgresql")
    with database:
        database.execute(story["opening"])
        settings = database.connector("seats") | converters(schemas=False) | {"extended.headers.enabled": "false"}
        engine = Engine("seats", "postgres", settings, folder / "engine-seats", kafka, between)
        with engine.running(AT_ONCE) as process:
            engine.wait_for(process, r"\"snapshot\":\"last\"")
            database.execute(story["monday"])
            engine.wait_for(process, "early")
        with engine.running(LAGGING) as process:
            database.execute(story["tuesday"])
            engine.wait_for(process, "closed")
            engine.kill(process)
        with engine.running(LAGGING) as process:
            database.execute(story["wednesday"])
            engine.wait_for(process, "wednesday")
        return engine.records(), database.tables()


def capture_ferry(folder: Path, kafka: str = "", between: Callable[[], None] = lambda: None) -> Captured:
    """A PostgreSQL that is lost, with what its replica does not have yet; and a slot that is dropped and recreated."""
    story = chapters("ferry")
    primary = PostgreSql(folder / "postgresql")
    replica = Replica(folder / "replica", primary)
    with ExitStack() as servers:
        servers.enter_context(primary)
        primary.execute(story["opening"])
        settings = primary.connector("ferry") | converters(schemas=False) | {"extended.headers.enabled": "false"}
        engine = Engine("ferry", "postgres", settings, folder / "engine-ferry", kafka, between)
        with engine.running(AT_ONCE) as process:
            engine.wait_for(process, r"\"snapshot\":\"last\"")
        with engine.running(LAGGING) as process:
            primary.execute(story["monday"])
            engine.wait_for(process, "monday closed")
            engine.kill(process)
        servers.enter_context(replica)
        replica.stop_following()
        with engine.running(AT_ONCE) as process:
            primary.execute(story["tuesday"])
            engine.wait_for(process, "tuesday closed")
        replica.promote()
        snapshot_anew(engine, replica)
        with engine.running(AT_ONCE) as process:
            replica.execute(story["wednesday"])
            engine.wait_for(process, "wednesday closed")
        replica.execute("select pg_drop_replication_slot('ferry');")
        replica.execute(story["thursday"])
        snapshot_anew(engine, replica)
        with engine.running(AT_ONCE) as process:
            replica.execute(story["friday"])
            engine.wait_for(process, "friday closed")
        return engine.records(), replica.tables()


def capture_parcels(folder: Path, kafka: str = "", between: Callable[[], None] = lambda: None) -> Captured:
    """A table of PostgreSQL whose columns get other types."""
    return alter_types("parcels", PostgreSql(folder / "postgresql"), "postgres", folder, kafka, between)


def capture_letters(folder: Path, kafka: str = "", between: Callable[[], None] = lambda: None) -> Captured:
    """The same of MariaDB."""
    return alter_types("letters", MariaDb(folder / "mariadb"), "mariadb", folder, kafka, between)


def alter_types(
    system: str, database: Database, connector: str, folder: Path, kafka: str, between: Callable[[], None]
) -> Captured:
    """Two days with other types; at the end of the first the engine is killed."""
    story = chapters(system)
    with database:
        database.execute(story["opening"])
        settings = database.connector(system) | converters(schemas=True) | {"extended.headers.enabled": "false"}
        engine = Engine(system, connector, settings, folder / f"engine-{system}", kafka, between)
        begin = "use letters;\n" if connector == "mariadb" else ""
        with engine.running(AT_ONCE) as process:
            engine.wait_for(process, r"\"snapshot\":\"last\"")
        with engine.running(LAGGING) as process:
            database.execute(begin + story["monday"])
            engine.wait_for(process, "monday closed")
            engine.kill(process)
        with engine.running(AT_ONCE) as process:
            database.execute(begin + story["tuesday"])
            engine.wait_for(process, "tuesday closed")
        return engine.records(), database.tables()


def snapshot_anew(engine: Engine, database: PostgreSql) -> None:
    """Begin with a database, and a slot, that the engine's offsets know nothing of."""
    engine.settings |= {"database.port": str(database.port)}
    (engine.folder / "offsets").unlink()
    before = engine.written()
    with engine.running(AT_ONCE) as process:
        engine.wait_for(process, r"\"snapshot\":\"last\"", since=before)


def first_days(engine: Engine, database: Database, story: dict[str, str], kill_at: str) -> None:
    """Snapshot, a day with a clean end, and a day on which the engine is killed inside a transaction."""
    with engine.running(AT_ONCE) as process:
        engine.wait_for(process, r"\"snapshot\":\"last\"")
        database.execute(story["monday"])
        engine.wait_for(process, "monday closed")

    before = engine.written()
    with engine.running(LAGGING, pause_ms=40) as process:
        database.execute(story["tuesday"])
        engine.wait_for(process, kill_at, since=before)
        engine.kill(process)
    database.execute(story["tuesday night"])


def last_day(engine: Engine, database: Database, story: dict[str, str], read_last: str) -> None:
    """The day after the second kill, with a clean end. `read_last`: topic of the last table that is read once more."""
    before = engine.written()
    with engine.running(LAGGING) as process:
        database.execute(story["thursday"])
        engine.wait_for(process, "thursday closed")
        engine.wait_for(process, f'"topic":"{read_last}"', r"\"snapshot\":\"incremental\"", since=before)
        signals = engine.settings["signal.data.collection"]
        wait_until(
            lambda: (
                database.query(f"select count(*) from {signals};") == [engine.written_to(f"{engine.name}.{signals}")]
            ),
            "the marks of the incremental snapshot",
        )


def race_for_a_coupon(database: PostgreSql) -> None:
    """Two transactions at once: the one that commits last wrote its row first.

    The second inserts key 5 while the first holds it, and waits on the unique index, with its row already in
    the log; the first then deletes key 5 and commits. The table holds the second one's row although the
    greatest `lsn` of the key is the first one's delete. Only the order of commits, `source.sequence`, tells.
    """
    command, environment = database.client(), database.client_environment()
    with (
        subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, text=True) as one,
        subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, text=True) as other,
    ):
        assert one.stdin is not None
        assert other.stdin is not None
        one.stdin.write("begin; insert into coupons values (5, 'FIRST', 5), (6, 'ALSO', 6);\n")
        one.stdin.flush()
        database.wait_for_session("state = 'idle in transaction' and query like 'insert into coupons%'")
        other.stdin.write("begin; insert into coupons values (5, 'SECOND', 50);\n")
        other.stdin.flush()
        database.wait_for_session("wait_event_type = 'Lock'")
        one.stdin.write("delete from coupons where coupon_id = 5; commit;\n")
        one.stdin.close()
        other.stdin.write("commit;\n")
        other.stdin.close()
        if one.wait(60) != 0 or other.wait(60) != 0:
            raise CaptureError("a session of the race for a coupon failed")


def converters(schemas: bool) -> dict[str, str]:
    """The settings of the JSON converters."""
    return {f"{part}.converter.schemas.enable": str(schemas).lower() for part in ("key", "value", "header")}


def redelivered(records: list[Record]) -> int:
    """How many streamed records repeat an earlier one: same topic, key, op and source position."""
    seen: set[tuple[str, ...]] = set()
    repeated = 0
    for record in records:
        value = json.loads(record["value"] or "null") or {}
        event = value.get("payload", value)
        if "op" not in event or event["source"]["snapshot"] != "false":
            continue
        position = [event["source"].get(name) for name in ("sequence", "lsn", "file", "pos", "row")]
        # Rows without a key differ only by their content.
        image = [event.get("before"), event.get("after")] if record["key"] is None else None
        identity = (record["topic"], str(record["key"]), event["op"], json.dumps([position, image]))
        repeated += identity in seen
        seen.add(identity)
    return repeated


def write(out: Path, system: str, records: list[Record], tables: dict[str, Any]) -> None:
    """Write the two files of a system."""
    out.mkdir(parents=True, exist_ok=True)
    with (out / f"{system}.jsonl").open("w", encoding="utf-8", newline="\n") as lines:
        for record in records:
            lines.write(json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n")
    with (out / f"{system}.expected.json").open("w", encoding="utf-8", newline="\n") as file:
        json.dump(tables, file, ensure_ascii=False, indent=1)
        file.write("\n")


CAPTURES = {
    "shop": capture_shop,
    "billing": capture_billing,
    "seats": capture_seats,
    "ferry": capture_ferry,
    "parcels": capture_parcels,
    "letters": capture_letters,
}


def capture(system: str, out: Path) -> None:
    """Make the capture of one system in a temporary folder and write its files."""
    with tempfile.TemporaryDirectory(prefix=f"capture-{system}-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        # The servers' accounts have to reach their own folders in it.
        folder.chmod(0o711)
        records, tables = CAPTURES[system](folder)
    repeated = redelivered(records)
    if repeated == 0:
        raise CaptureError(f"{system}: the engine was killed, but no event was delivered again")
    write(out, system, records, tables)
    print(f"{system}: {len(records)} records, {repeated} of them redelivered, {len(tables)} tables")


def main() -> int:
    parser = argparse.ArgumentParser(description="Capture the change events of a real PostgreSQL and a real MariaDB.")
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT, help="folder of the files (tests/events)")
    parser.add_argument("--system", choices=sorted(CAPTURES), action="append", help="only this one; may be repeated")
    arguments = parser.parse_args()

    # So that everything is stopped as well when the script is.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        program("java", "openjdk-17-jdk-headless")
        program("mvn", "maven")
        for system in arguments.system or CAPTURES:
            capture(system, arguments.out)
    except CaptureError as error:
        print(f"capture.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
