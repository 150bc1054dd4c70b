"""Writes staging, silver and live models, sources and YAML for tables that have landed events and no model.

What the events say of a table is found in `tables_seen`; what is declared of it, in `declared`.
"""

import re
from collections.abc import Set
from pathlib import Path
from typing import Any

from scripts import runs
from scripts.columns_seen import OF_DDL
from scripts.debezium_types import is_misread, reads
from scripts.declared import Declared, declared_columns, declared_tables
from scripts.drift import check_drift, told_of_type
from scripts.evolution import follow_text, mend_names, update_table
from scripts.keys import check_built_by_others, key_named, key_wanted, name_shards
from scripts.names import relation_name, safe_name
from scripts.observe import Bronze
from scripts.scaffolded import Scaffolded, describe_new, tell_unmodelled
from scripts.schema import TableSeen
from scripts.spark import PROJECT
from scripts.system_models import leave_out_removed, write_system
from scripts.tables_seen import observe
from scripts.topics import declare_epochs, route
from scripts.written_models import files_of_others, finish_writing, write_models, write_properties

MARKS_OF_JINJA = re.compile(r"{[{%#]|[%#}]}")


def scaffold(
    bronze: Bronze,
    connector: str | None,
    keys: dict[str, list[str]],
    above_batch: int,
    models: Path = PROJECT / "models",
    servers: str | None = None,
    refused: Set[str] = frozenset(),
) -> Scaffolded:
    """Write or update the models of the tables that have events in batches above `above_batch`.

    Args:
        refused: topics of tables of which no models could be written before: all of their events are looked at.
        connector: the connector to assume; None takes it from the events. With one, all events of topics that have no
            models are looked at: without it they may have told nothing.
        keys: table (with or without what stands before its name) → key columns, for tables whose messages have no key.
        servers: what several connectors (`topic.prefix`) that send a table are: `shards`, or `one` log under several
            names.

    Raises:
        LakehouseError: the events are of another connector than the one named, or of one that is not supported; a key
            is not what the table has or had; several connectors send a table. Models of tables that came before it may
            have been written; the next run builds them.
    """
    system = bronze.system
    done = Scaffolded(bronze.newest_batch(), above_batch)
    finish_writing(system, models, done)
    known = _known(bronze, models, done)
    used = set[str]()
    modelled = {topic for declared in known.values() for topic in declared.table.topics}
    if connector:
        refused = refused | (bronze.topics() - modelled)
    refused = _with_named_keys(known, keys, used, refused)
    ddl: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    known_columns = {
        identity: {**declared.table.columns, **declared_columns(system, declared, models)}
        for identity, declared in known.items()
        if declared.table.connector in OF_DDL
    }
    odd = dict[str | None, str]()
    of_models = {identity: declared.table for identity, declared in known.items()}
    seen = observe(bronze, connector, above_batch, of_models, refused, ddl, known_columns, odd)
    wanted = {table.identity: key_wanted(table, known.get(table.identity), keys, used) for table in seen}
    check_drift(bronze, known, seen, wanted, ddl, above_batch, models, done)
    for table in seen:
        wanted[table.identity] = name_shards(system, table, known.get(table.identity), wanted[table.identity], servers)
    _model(bronze, connector, servers, seen, wanted, known, models, done)
    route(system, known, models, done)
    declare_epochs(system, known, models, done)
    tell_unmodelled(bronze, known, above_batch, odd, done)
    unused = set(keys) - used
    if unused:
        done.notes.append(f"KEYS names {', '.join(sorted(unused))}, but no such table has new events")
    if known or not (models / "bronze" / f"{system}.yml").exists() or (models / "monitoring" / system).is_dir():
        write_system(system, known, models, done)
    leave_out_removed(system, models)
    return done


def _known(bronze: Bronze, models: Path, done: Scaffolded) -> dict[tuple[str, ...], Declared]:
    """The tables that have models, once their files say what this version writes and what somebody added by hand."""
    system = bronze.system
    known = declared_tables(system, models)
    for one in known.values():
        write_properties(system, one, models)  # which a former version may have written
        follow_text(system, one, models)
        mend_names(bronze, one, models, done)
    return known


def _with_named_keys(
    known: dict[tuple[str, ...], Declared], keys: dict[str, list[str]], used: set[str], refused: Set[str]
) -> Set[str]:
    """The topics of which all events are looked at: also those of tables that get another key."""
    for one in known.values():  # a key that is named for a table with nothing new
        name, wanted_key = key_named(one.table, keys)
        used |= {name} - {""}
        if wanted_key and wanted_key != [name for name in one.table.keys if name != one.table.shard]:
            refused = refused | one.table.topics
    return refused


def _model(
    bronze: Bronze,
    connector: str | None,
    servers: str | None,
    seen: list[TableSeen],
    wanted: dict[tuple[str, ...], list[str]],
    known: dict[tuple[str, ...], Declared],
    models: Path,
    done: Scaffolded,
) -> None:
    """Write or update the models of the tables that were seen, or note why not."""
    names = [safe_name(table.identity[-1]) for table in seen if table.identity not in known]
    for table in seen:
        declared = known.get(table.identity)
        if declared:
            _leave_out_unreadable(bronze.system, table, declared, done)
        problem = _problem_or_note(bronze, connector, servers, table, known, done)
        if problem:
            if declared:  # what its models do not read is in bronze only
                runs.warn(bronze.system)
            done.refused |= set() if declared else table.topics
            done.notes.append(
                f"{table.name}: {problem}; {'its models stay as they are' if declared else 'no model was written'}"
            )
        elif declared is None:
            _write_new(bronze, table, wanted[table.identity], known, names, models, done)
        else:
            has_bare = bronze.has_rows_without_schema
            update_table(bronze.system, declared, table, wanted[table.identity], models, done, has_bare)


def _leave_out_unreadable(system: str, table: TableSeen, declared: Declared, done: Scaffolded) -> None:
    """Leave out new columns that cannot be read, and say why: the others are."""
    new = [name for name in table.columns if name not in declared.table.columns]
    for name, problem in _unreadable([*declared.table.columns, *new]).items():
        if table.columns.pop(name, None):
            runs.warn(system)
            done.notes.append(f"{table.name}: {problem}; it is not read")


def _problem_or_note(
    bronze: Bronze,
    connector: str | None,
    servers: str | None,
    table: TableSeen,
    known: dict[tuple[str, ...], Declared],
    done: Scaffolded,
) -> str:
    """Why models of the table cannot be written, or written anew; empty where they can. What may still be wrong then
    is noted.
    """
    declared = known.get(table.identity)
    problem = _problem(table, declared)
    if not (problem or declared or table.tells_deletes or bronze.has_tombstones(table.topics)):
        told = "no event shows deletes: there is no __deleted, and no record without a value"
        setting = "delete.tombstone.handling.mode=rewrite"
        if connector:
            done.notes.append(
                f"{table.name}: {told}. If they do not come as the latter either, deleted rows stay: set {setting}"
            )
        else:
            problem = f"{told}. Set {setting}, or name CONNECTOR=flattened if deletes come as records without a value"
    names_told = {one.table.name for one in known.values()}  # by which records are counted
    if not problem and not declared and table.name in names_told:
        problem = (
            f"another table is called {table.name} too, with its dots elsewhere. Land its events as a SYSTEM of its own"
        )
    told_before = declared.table.source_tables if declared else set()
    if table.source_tables - told_before and len(table.source_tables | told_before) > 1:
        table.source_tables |= told_before
        told = f"its rows are of the tables {' and '.join(sorted(table.source_tables))}"
        if declared is None and servers != "one":
            problem = (
                f"{told}. Give each a topic of its own, or name SERVERS=one if they are parts of one, under one key"
            )
        else:
            done.notes.append(f"{table.name}: {told}, and become one table, by their key")
    return problem


def _write_new(
    bronze: Bronze,
    table: TableSeen,
    wanted: list[str],
    known: dict[tuple[str, ...], Declared],
    names: list[str],
    models: Path,
    done: Scaffolded,
) -> None:
    """Write the models of a table that has none."""
    table.keys = wanted or table.keys
    relation = relation_name(table, known, names, done)
    renamed = table.rename_reserved()
    new = Declared(relation, table)
    if others := files_of_others(bronze.system, new, models):
        done.refused |= table.topics
        done.notes.append(
            f"{table.name}: no model was written, as models/{others[0]} is there and says something else; take it away"
        )
        return
    if not wanted:
        check_built_by_others(bronze, new)
    describe_new(bronze.system, table, done)
    done.notes += renamed
    for name, declared in table.columns.items() if table.types_from == "schema block" else ():
        for kind in sorted(table.kinds.get(name, ())):
            if not (reads(declared, kind) or table.says_more(name, declared, kind)):
                done.notes.append(told_of_type(table.name, name, declared, kind))
    known[table.identity] = new
    write_models(bronze.system, new, models, done)


def _problem(seen: TableSeen, declared: Declared | None) -> str:
    """Why models of the table cannot be written; empty where they can."""
    columns = {**declared.table.columns, **seen.columns} if declared else seen.columns
    if not columns:
        return "no event carries a row"
    for name, kinds in {} if declared else seen.kinds.items():
        known = columns.get(name, "")
        others = [kind for kind in sorted(kinds) if is_misread(kind, known) and not seen.says_more(name, known, kind)]
        if len(kinds) == 1 or not others:
            continue
        return (
            f"column {name} is {columns[name]} in some events and {others[0]} in others, and as one type some would be"
            " read as other values. Land a snapshot of the whole table from after the change, and what follows, as a"
            " SYSTEM of its own"
        )
    if unreadable := _unreadable(list(columns)):
        return next(iter(unreadable.values()))
    named = (*seen.identity, *seen.topics, *seen.servers, *seen.source_tables)
    marked = [name for name in named if MARKS_OF_JINJA.search(name)]
    if marked:
        return f"the name {marked[0]!r} holds marks of Jinja, which no dbt project can name"
    broken = [name for name in seen.topics if re.search("[\r\x85\u2028\u2029]", name)]
    if broken:
        return f"the topic {broken[0]!r} holds a line break that is none of Unix, which dbt reads as another"
    return ""


def _unreadable(columns: list[str]) -> dict[str, str]:
    """The columns that no model can read, and why."""
    found, folded = {}, dict[str, str]()
    for name in columns:
        if MARKS_OF_JINJA.search(name):
            found[name] = f"the name {name!r} holds marks of Jinja, which no dbt project can name"
        elif not name or name.lower().startswith("_cdc_"):
            why = "is a name of the metadata columns" if name else "Iceberg cannot name"
            found[name] = f"a column is named {name!r}, which {why}"
        elif name.lower() in folded:
            first = folded[name.lower()]
            found[name] = f"columns {first!r} and {name!r} differ in case only, which Spark cannot tell apart"
        folded.setdefault(name.lower(), name)
    return found
