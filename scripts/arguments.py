"""The arguments of `make run`: which systems, from which events."""

import shlex
from collections.abc import Collection
from dataclasses import dataclass

from scripts.dialects import check_arguments
from scripts.errors import UsageError
from scripts.kafka import Topics, read_properties
from scripts.names import check_system
from scripts.spark import PROJECT

# System → its events: samples/README.md says what each table shows.
DEMO = {
    name: f"samples/{name}.jsonl" for name in "shop billing sqlserver oracle mongodb tencent huawei lindorm".split()
}
DEMO_KEYS = {"lindorm": {"meters": ["meter_id"]}}  # its messages have none
DEMO_HISTORY = {"shop": ["customers"]}
# The environment variables that say what to load, and how.
SOURCES = ("EVENTS", "KAFKA", "TOPICS", "SYSTEM", "KAFKA_CONFIG", "EVERY")
OPTIONS = ("CONNECTOR", "KEYS", "SERVERS", "HISTORY")


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
        UsageError: a part is not of the form table=column[,column], or a quote is not closed.
    """
    parts = shlex.shlex(text, posix=True)
    parts.whitespace_split, parts.escape, parts.commenters = True, "", ""
    keys = {}
    try:
        for part in parts:
            table, equals, columns = part.partition("=")
            if not (table and equals and columns):
                raise UsageError(f"KEYS={text!r}: {part!r} is not of the form table=column or table=column,column.")
            keys[table] = columns.split(",")
    except ValueError:
        raise UsageError(
            f"KEYS={text!r}: a quote is not closed. Names with one are put in quotes of the other kind."
        ) from None
    return keys


def requests(environment: dict[str, str]) -> list[Request]:
    """The systems to load: the user's own (SYSTEM with EVENTS, with KAFKA and TOPICS, or alone), else the sample
    systems.

    Raises:
        UsageError: one of these is missing or is not of its form.
    """
    given = {name: environment.get(name, "") for name in SOURCES}
    events, kafka, topics, system, config, every = given.values()
    if environment.get("REPLAY") and (not system or events or kafka or every):
        raise UsageError(
            "make replay takes what a system has landed: make replay SYSTEM=<name>, without EVENTS, KAFKA or EVERY."
        )
    further = [name for name in OPTIONS if environment.get(name)]
    if further and not any(given.values()):
        raise UsageError(f"{' and '.join(further)} go with a SYSTEM: make run EVENTS=<path> SYSTEM=<name>.")
    if not any(given.values()):
        return [
            Request(name, str(PROJECT / path), None, DEMO_KEYS.get(name, {}), history=DEMO_HISTORY.get(name, []))
            for name, path in DEMO.items()
        ]
    if events and kafka:
        raise UsageError(
            "EVENTS and KAFKA were both given: one run reads files or topics. Run it twice with the same SYSTEM."
        )
    if (kafka or topics or config) and not (kafka and topics and system):
        missing = " and ".join(name for name in ("KAFKA", "TOPICS", "SYSTEM") if not given[name])
        raise UsageError(
            "KAFKA, TOPICS and SYSTEM go together: make run KAFKA=<bootstrap servers> TOPICS=<names or pattern> "
            f"SYSTEM=<name>. There is no {missing}."
        )
    if not system:
        raise UsageError("A run needs a SYSTEM, your name for the source: make run EVENTS=<path> SYSTEM=<name>.")
    check_system(system)
    source = Topics(kafka, topics, read_properties(config)) if kafka else events
    connector, servers = environment.get("CONNECTOR") or None, environment.get("SERVERS") or None
    check_arguments(connector, servers)
    try:
        history = shlex.split(environment.get("HISTORY", ""))
    except ValueError:
        raise UsageError(f"HISTORY={environment['HISTORY']!r}: a quote is not closed.") from None
    return [Request(system, source, connector, parse_keys(environment.get("KEYS", "")), servers, history)]


def seconds_between(environment: dict[str, str]) -> int:
    """After how many seconds to look for new records again (EVERY); 0: this run is all.

    Raises:
        UsageError: EVERY is no positive number, or is given without KAFKA.
    """
    every = environment.get("EVERY", "")
    if every and not (every.isascii() and every.isdigit() and int(every)):
        raise UsageError(f"EVERY={every}: expected a number of seconds, at least 1.")
    if every and not environment.get("KAFKA"):
        raise UsageError("EVERY goes with KAFKA: a run on files ends with the files.")
    return int(every or 0)
