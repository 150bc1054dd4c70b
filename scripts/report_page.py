"""The page of `make report`, from figures alone: no Spark, and nothing that a browser would load or execute."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pygal

from scripts.page_parts import COLOURS, PAGE, Query, chart, css, moment, size, table, text
from scripts.results import duration

OPERATIONS = {"c": "insert", "r": "snapshot", "u": "update", "d": "delete", "truncate": "truncate"}
OPERATIONS["rejected"] = "rejected"
LAYERS = ("bronze", "staging", "silver", "other")
STEPS = 48  # of a chart of growth
SERIES = len(COLOURS) - 1  # tables of a chart, before the others
POLICY = "default-src 'none'; style-src 'unsafe-inline'"  # the browser loads and executes nothing


class Events(NamedTuple):
    table: str
    op: str  # Debezium's letter, `truncate` or `rejected`
    at: int  # begin of the hour or the day
    is_hour: bool
    events: int


class Delay(NamedTuple):
    """When the newest change of a table was where, in seconds since 1970; None: not known."""

    table: str
    changed: float | None
    kafka: float | None
    landed: float | None
    merged: float | None


class Reject(NamedTuple):
    table: str | None
    reason: str
    events: int
    query: str


class Commit(NamedTuple):
    """What a snapshot left of a table (`schema.name`)."""

    table: str
    at: int
    files: int
    deletes: int
    bytes: int
    records: int
    snapshots: int = 1  # since the last such one


@dataclass
class Rows:
    """Of a table with a key `live` and `deleted` rows, of another one `log` records."""

    relation: str
    counts: Sequence[str]  # events, inserts, updates, deletes, truncates, rejected, newest change
    live: int = 0
    deleted: int = 0
    log: int | None = 0


@dataclass
class Figures:
    """What the page shows of a system."""

    system: str
    records: int = 0
    newest: int = 0  # change, in seconds since 1970
    rows: dict[str, Rows] = field(default_factory=dict)  # by the source's name of the table
    events: list[Events] = field(default_factory=list)
    delays: list[Delay] = field(default_factory=list)
    rejects: list[Reject] = field(default_factory=list)
    commits: list[Commit] = field(default_factory=list)  # in the order of time
    problems: list[str] = field(default_factory=list)


def between(first: float | None, last: float | None) -> str:
    return "-" if first is None or last is None else duration(last - first)


def events_by_time(figures: Figures) -> str:
    """Events per hour, or per day if some are older, by operation and by table."""
    if not figures.events:
        return ""
    unit, step, form = ("hour", 3600, "%m-%d %H:%M") if all(one.is_hour for one in figures.events) else (
        "day", 86_400, "%Y-%m-%d")  # fmt: skip
    number: Counter[tuple[str, str, int]] = Counter()
    for one in figures.events:
        number[OPERATIONS.get(one.op, one.op), one.table, one.at // step * step] += one.events
    last = max(at for _, _, at in number)
    slots = range(min(last - 23 * step, *(at for _, _, at in number)), last + 1, step)
    of_table: Counter[str] = Counter()
    for (_, name, _), events in number.items():
        of_table[name] += events
    greatest = [name for name, _ in of_table.most_common(SERIES)]

    def drawn(by: str, names: Sequence[str], place: Callable[[str, str], str]) -> str:
        series = {name: dict.fromkeys(slots, 0) for name in names}
        for (op, name, at), events in number.items():
            series[place(op, name)][at] += events
        labels = [moment(at, form) for at in slots]
        values = {name: list(of_name.values()) for name, of_name in series.items()}
        return chart(f"Events per {unit} (UTC), by {by}", labels, values)

    others = f"{len(of_table) - SERIES:,} others"
    names = [*greatest, others] if len(of_table) > SERIES else greatest
    operations = dict.fromkeys([*OPERATIONS.values(), *(op for op, _, _ in number)])
    return drawn("operation", list(operations), lambda op, _: op) + drawn(
        "table", names, lambda _, name: name if name in greatest else others
    )


def growth(figures: Figures, now: float) -> str:
    """Size and data files of all tables by layer, from the first snapshot that is left until now."""
    if not figures.commits:
        return ""
    first = figures.commits[0].at
    times = [first + (now - first) * step / (STEPS - 1) for step in range(STEPS)]
    newest: dict[str, Commit] = {}
    bytes_of: dict[str, list[float]] = {layer: [] for layer in LAYERS}
    files_of: dict[str, list[float]] = {layer: [] for layer in LAYERS}
    left = iter([*figures.commits, Commit("", int(now) + 1, 0, 0, 0, 0)])
    one = next(left)
    for at in times:
        while one.at <= at:
            newest[one.table] = one
            one = next(left)
        for layer in LAYERS:
            of_layer = [each for name, each in newest.items() if _layer(name) == layer]
            bytes_of[layer].append(sum(each.bytes for each in of_layer))
            files_of[layer].append(sum(each.files for each in of_layer))
    labels = [moment(at, "%m-%d %H:%M") for at in times]
    return chart("Size of the tables", labels, bytes_of, size, pygal.StackedLine) + chart(
        "Data files of the tables", labels, files_of, kind=pygal.StackedLine
    )


def _layer(name: str) -> str:
    schema = name.partition(".")[0]
    return schema if schema in LAYERS else "other"


def of_files(figures: Figures) -> str:
    snapshots: Counter[str] = Counter()
    for each in figures.commits:
        snapshots[each.table] += each.snapshots
    newest = sorted({one.table: one for one in figures.commits}.values(), key=lambda one: (-one.bytes, one.table))
    rows = [
        (one.table, size(one.bytes), one.files, one.deletes, size(one.bytes / (one.files or 1)), one.records,
         snapshots[one.table])
        for one in newest
    ]  # fmt: skip
    head = "table|>size|>data files|>delete files|>size of a file|>records|>snapshots"
    return f"<details><summary>Files of {len(rows):,} tables</summary>{table(head, rows)}</details>" if rows else ""


def of_rows(figures: Figures) -> str:
    """Tables with rejected records first, then by name."""
    rows = sorted(figures.rows.items(), key=lambda one: (-int(one[1].counts[5].replace(",", "")), one[1].relation))
    if not rows:
        return "<p>No table yet: what has landed gave none. The run that landed it said why.</p>"
    head = "source table|relation|>events|>inserts|>updates|>deletes|>truncates|>rejected|>rows|>deleted keys|newest"
    cells = [
        (name, one.relation, *one.counts[:6], one.log if one.log else one.live, "log" if one.log else one.deleted,
         one.counts[6])
        for name, one in rows
    ]  # fmt: skip
    return table(head, cells, [one.counts[5] != "0" for _, one in rows])


def of_rejects(all_figures: Sequence[Figures]) -> str:
    found = [(figures.system, one) for figures in all_figures for one in figures.rejects]
    found.sort(key=lambda each: -each[1].events)
    rows = [(system, one.table or "no table", one.reason, one.events, Query(one.query)) for system, one in found]
    return table("system|source table|reason|>records|query (make sql)", rows) if rows else "<p>None.</p>"


def of_delays(all_figures: Sequence[Figures], now: float) -> str:
    """Tables whose newest change is not merged first, then those where that took longest."""
    found = [(figures.system, one) for figures in all_figures for one in figures.delays if one.changed is not None]
    found.sort(key=lambda each: (each[1].merged is not None, (each[1].changed or 0) - (each[1].merged or 0)))
    rows = [
        (system, one.table, moment(one.changed), between(one.changed, one.merged), between(one.changed, one.kafka),
         between(one.kafka, one.landed), between(one.landed, one.merged), between(one.changed, now))
        for system, one in found
    ]  # fmt: skip
    head = "system|source table|newest change|>lag|>source to Kafka|>Kafka to landing|>landing to merge|>age now"
    return table(head, rows) if rows else "<p>Not known.</p>"


def of_runs(runs: Sequence[Mapping[str, Any]]) -> str:
    """The newest last in the chart, first in the table."""
    if not runs:
        return "<p>No run has been noted yet.</p>"
    phases = list(dict.fromkeys(phase for run in runs for phase in run["seconds"]))
    series = {phase: [float(run["seconds"].get(phase, 0)) for run in runs] for phase in phases[: len(COLOURS)]}
    labels = [moment(run["started"], "%m-%d %H:%M") for run in runs]
    rows = [
        (moment(run["started"]), ", ".join(run["systems"]), f"{sum(run['seconds'].values()):,.1f} s", run["records"],
         run["tables"], run["models"], run["status"], run["problem"])
        for run in reversed(runs)
    ]  # fmt: skip
    head = "started (UTC)|systems|>took|>records landed|>tables built|>models|>exit status|first problem"
    told = chart("Seconds of the last runs, by what they did", labels, series, lambda seconds: f"{seconds:,.3g} s")
    return f'<div class="charts">{told}</div>' + table(head, rows, [bool(run["status"]) for run in reversed(runs)])


def page(all_figures: Sequence[Figures], runs: Sequence[Mapping[str, Any]], now: float) -> str:
    """The whole page: what needs a look first."""
    all_figures = sorted(all_figures, key=lambda one: (-sum(each.events for each in one.rejects), one.system))
    problems = [f"<li>{text(one.system)}: {text(told)}</li>" for one in all_figures for told in one.problems]
    newest = [{one.table: one for one in figures.commits} for figures in all_figures]
    tiles = {
        "systems": f"{len(all_figures):,}",
        "tables": f"{sum(len(one.rows) for one in all_figures):,}",
        "records landed": f"{sum(one.records for one in all_figures):,}",
        "records rejected": f"{sum(each.events for one in all_figures for each in one.rejects):,}",
        "data": size(sum(one.bytes for of_system in newest for one in of_system.values())),
        "last run": ("failed" if runs[-1]["status"] not in (0, 3) else f"{sum(runs[-1]['seconds'].values()):,.0f} s")
        if runs
        else "-",
    }
    sections = [
        f'<section><h2>{text(one.system)}</h2><div class="charts">{events_by_time(one)}{growth(one, now)}</div>'
        f"{of_rows(one)}{of_files(one)}</section>"
        for one in all_figures
    ]
    shown_tiles = "".join(f"<div><b>{text(value)}</b>{text(name)}</div>" for name, value in tiles.items())
    unread = f"<h2>Not read</h2><ul class=problems>{''.join(problems)}</ul>" if problems else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Lakehouse report</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}"><style>{css()}{PAGE}</style></head><body>'
        f"<h1>Lakehouse report</h1><p>Of {moment(now)} UTC. All times are UTC.</p>"
        f'<div class="tiles">{shown_tiles}</div>{unread}'
        f"<h2>Rejected records</h2>{of_rejects(all_figures)}"
        f"<h2>Delays</h2><p>Of the newest change of each table: how long it took from the source to the table.</p>"
        f"{of_delays(all_figures, now)}<h2>Runs</h2>{of_runs(runs)}{''.join(sections)}</body></html>\n"
    )
