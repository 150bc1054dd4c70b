"""Writes staging, silver and live models, sources and YAML for tables that have landed events and no model.

What the events say of a table is found in `observe`; the files are plain text of one shape. Models whose SQL was edited
by hand since are never written over, and of YAML only what is generated otherwise now. The SQL of the system as a whole
is generated at each run; its YAML is written if it is missing.
"""

import ast
import csv
import hashlib
import json
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from scripts.bronze import BRONZE_COLUMNS
from scripts.ddl import MAX_VALUES, key_of_ddl, looks_like, read_otherwise, types_of_ddl, written_otherwise
from scripts.debezium_types import ARRAY, is_misread, wider_type
from scripts.dialects import Dialect, are_alike, dialect_of
from scripts.errors import LakehouseError
from scripts.flattened import is_plain_row
from scripts.foreign import foreign_format, foreign_text, refuse_foreign_formats
from scripts.observe import Bronze
from scripts.schema import DOCUMENT, RESERVED, SHARD, TableSeen, fields_of
from scripts.spark import PROJECT, read_yaml
from scripts.values import columns_of_values, key_columns, parsed, parsed_exactly
from scripts.written_yaml import LOADER, dump, dump_in_lines, updated

NAME = re.compile(r"[a-z][a-z0-9_]*\Z")
MAX_NAME = 100  # characters of a table's name that go into the names of its files
# The models of a system as a whole are named like those of tables.
SYSTEM_MODELS = {"events", "event_counts", "rejected_events", "ddl_history", "transactions", "lag"}
# Type in a schema block → how the types begin that look the same there, and that DDL records and values tell.
NOT_IN_SCHEMA_BLOCKS = {
    "int64": ("uint64",),
    "double": ("number",),
    "string": ("DecimalText", "bytes_"),
    "TimestampText": ("ZonedTimestamp",),
}
ZONED = re.compile(r"\d(Z|[+-]\d\d(:?\d\d)?)\Z")
OF_DDL = ("mysql", "mariadb", "ticdc")  # connectors whose DDL records are read
WITHOUT_ENVELOPE = (
    "They have no envelope (op, before, after): rows need CONNECTOR=flattened, messages of an outbox are no rows"
)
DOCS_OF_TYPES = {
    "Geography",
    "Geometry",
    "Geometry (POINT)",
    "Variable scaled decimal",
}  # `doc` that Debezium writes itself
COMMENT = "__debezium.source.column.comment"  # a parameter of a column's schema
ROUTED_FROM = "__dbz__physicalTableIdentifier"  # what ByLogicalTableRouter adds to keys
METADATA = (
    "_cdc_op",
    "_cdc_is_deleted",
    "_cdc_position",
    "_cdc_is_snapshot",
    "_cdc_transaction_id",
    "_cdc_changed_at",
    "_cdc_batch",
    "_cdc_event_id",
)
INTENDED = ".intended"  # after the name of a YAML file whose models are being written
RESERVED_SYSTEMS = {"bronze", "staging", "silver", "marts", "monitoring", "lakehouse", "system", "default"}


@dataclass
class Scaffolded:
    """What one call of `scaffold` did."""

    up_to: int = 0  # the newest batch when it began: what landed meanwhile is looked at the next time
    above: int = 0  # the batch above which events were looked at
    topics: set[str | None] = field(default_factory=set)  # those that have new records
    written: list[str] = field(default_factory=list)  # names of models that are new or changed
    rebuilt: list[str] = field(default_factory=list)  # models of tables that have another key now
    refused: set[str] = field(default_factory=set)  # topics of tables of which no models could be written
    notes: list[str] = field(default_factory=list)


def check_system(system: str) -> None:
    """Raise a `LakehouseError` unless `system` can name a schema and a folder."""
    is_plain = NAME.match(system) and "__" not in system and not system.endswith("_")
    is_like_a_model = system.startswith(("stg_", "live_"))  # of another system
    if not is_plain or is_like_a_model or system in RESERVED_SYSTEMS:
        raise LakehouseError(
            f"SYSTEM={system}: expected a name of lower-case letters, digits and single underscores that begins with a "
            "letter, ends with none, does not begin with stg_ or live_, "
            f"and is none of {', '.join(sorted(RESERVED_SYSTEMS))}."
        )


def safe_name(name: str) -> str:
    """A relation name for any table name: lower case, other characters as `_`, and one before a digit (`2024` is a
    number).

    Letters lose their accents. Those of other scripts, and signs that are all of a name, become their code points in
    Unicode: so names stay apart, and do not depend on which other tables there are.
    """
    folded = "".join(map(_without_accents, name.casefold()))
    coded = re.sub(
        r"[^\x00-\x7f]+" if re.search(r"[a-z0-9_]|[^\x00-\x7f]", folded) else "(?s:.+)",
        lambda found: "_" + "_".join(f"u{ord(each):x}" for each in found[0]) + "_",
        folded,
    )
    plain = re.sub(r"[^a-z0-9_]", "_", coded)
    if coded != folded:
        plain = re.sub("_+", "_", plain).strip("_")
    plain = plain[:MAX_NAME]
    return plain if plain and not plain[0].isdigit() else f"_{plain}"


def _without_accents(letter: str) -> str:
    plain = "".join(each for each in unicodedata.normalize("NFKD", letter) if not unicodedata.combining(each))
    return plain if plain.isascii() else letter


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
                have been
            written; the next run builds them.
    """
    if servers not in (None, "one", "shards"):
        raise LakehouseError(
            f"SERVERS={servers}: expected shards, or one (docs/operating.md#one-table-of-several-connectors)."
        )
    system = bronze.system
    done = Scaffolded(bronze.newest_batch(), above_batch)
    _finish(system, models, done)
    known = declared_tables(system, models)
    for one in known.values():
        _write_properties(system, one, models)  # which a former version may have written
        _follow_text(system, one, models)
        _mend_names(bronze, one, models, done)
    used = set[str]()
    modelled = {topic for declared in known.values() for topic in declared.table.topics}
    if connector:
        refused = refused | (bronze.topics() - modelled)
    for one in known.values():  # a key that is named for a table with nothing new
        name, wanted_key = _named_key(one.table, keys)
        used |= {name} - {""}
        if wanted_key and wanted_key != [name for name in one.table.keys if name != one.table.shard]:
            refused = refused | one.table.topics
    ddl: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    known_columns = {
        identity: {**declared.table.columns, **_declared_columns(system, declared, models)}
        for identity, declared in known.items()
        if declared.table.connector in OF_DDL
    }
    odd = dict[str | None, str]()
    seen = observe(bronze, connector, above_batch, modelled, refused, ddl, known_columns, odd)
    wanted = {table.identity: _wanted_key(table, known.get(table.identity), keys, used) for table in seen}
    changed = _changed_by_ddl(bronze, known, ddl, above_batch, models)
    for table in seen:
        _check_same_table(
            system, table, known.get(table.identity), wanted[table.identity], models, changed.get(table.identity, {})
        )
    for identity in changed.keys() - {table.identity for table in seen}:  # whose rows are still to come
        possible = types_of_ddl({identity: (ddl[identity][-1], [])})[identity].possible
        of_ddl = TableSeen(known[identity].table.connector, identity, possible=possible)
        _check_types(system, of_ddl, known[identity], models, changed[identity])
    described = {
        (table.identity, name) for table in seen for name in table.kinds
    }  # by a schema block, which `_update` looks at
    for identity, columns in changed.items():
        for name in sorted(columns):
            if (identity, name) not in described and columns[name] not in known[identity].table.misread.get(name, []):
                before = _declared_columns(system, known[identity], models)[name]
                done.notes.append(_told_of_type(known[identity].table.name, name, before, columns[name]))
    for table in seen:
        wanted[table.identity] = _name_shards(system, table, known.get(table.identity), wanted[table.identity], servers)
    names = [safe_name(table.identity[-1]) for table in seen if table.identity not in known]
    for table in seen:
        declared = known.get(table.identity)
        problem = _problem(table, declared)
        if not (problem or declared or table.tells_deletes or bronze.has_tombstones(table.topics)):
            told = "no event tells of deletes: there is no __deleted, and no record without a value"
            setting = "delete.tombstone.handling.mode=rewrite"
            if connector:
                done.notes.append(
                    f"{table.name}: {told}. If they do not come as the latter either, deleted rows stay: set {setting}"
                )
            else:
                problem = (
                    f"{told}. Set {setting}, or name CONNECTOR=flattened if deletes come as records without a value"
                )
        names_told = {one.table.name for one in known.values()}  # by which records are counted
        if not problem and not declared and table.name in names_told:
            problem = (
                f"another table is called {table.name} too, with its dots elsewhere. Land its events as a SYSTEM of"
                " its own"
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
        if problem:
            done.refused |= set() if declared else table.topics
            done.notes.append(
                f"{table.name}: {problem}; {'its models stay as they are' if declared else 'no model was written'}"
            )
        elif declared is None:
            table.keys = wanted[table.identity] or table.keys
            relation = _relation_name(table, known, names, done)
            renamed = table.rename_reserved()
            new = Declared(relation, table)
            if others := _files_of_others(system, new, models):
                done.refused |= table.topics
                done.notes.append(
                    f"{table.name}: no model was written, as models/{others[0]} is there and says something else; take"
                    " it away"
                )
                continue
            if not wanted[table.identity]:
                _check_built_by_others(bronze, new)
            _describe_new(table, done)
            done.notes += renamed
            known[table.identity] = new
            _write(system, new, models, done)
        else:
            _update(system, declared, table, wanted[table.identity], models, done)
    _route(system, known, models, done)
    _declare_epochs(system, known, models, done)
    _tell_unmodelled(bronze, known, above_batch, odd, done)
    unused = set(keys) - used
    if unused:
        done.notes.append(f"KEYS names {', '.join(sorted(unused))}, but no such table has new events")
    if known or not (models / "bronze" / f"{system}.yml").exists():
        _write_system(system, known, models, done)
    return done


def _check_same_table(
    system: str,
    seen: TableSeen,
    declared: "Declared | None",
    wanted: list[str],
    models: Path,
    changed: dict[str, str],
) -> None:
    """Raise a `LakehouseError` where new events are of another connector than the table, or keyed in another way.

    Under a narrower key two rows of the source would become one, in silence.
    """
    if declared and not are_alike(declared.table.connector, seen.connector):
        raise LakehouseError(
            f"system {system}, table {seen.name}: new events are of connector {seen.connector!r}, its models are for"
            f" {declared.table.connector!r}. Give these events a SYSTEM of their own, or name their connector"
            " (CONNECTOR)."
        )
    if declared:
        _check_types(system, seen, declared, models, changed)
    if wanted or not seen.message_keys or (declared and not declared.table.keys):
        return
    known = declared.table.message_keys if declared else seen.message_keys[:1]
    other = _other_keys(seen.message_keys, known)
    if other:
        told = " and by ".join(", ".join(key) for key in known + other)
        raise LakehouseError(
            f"system {system}, table {seen.name}: its messages are keyed by {told}. Say which columns identify a row,"
            f" for instance KEYS={_key_argument(seen.name, other[-1])}; a table whose key changes is built anew."
        )


def _changed_by_ddl(
    bronze: Bronze,
    known: "dict[tuple[str, ...], Declared]",
    ddl: dict[tuple[str, ...], list[dict[str, Any]]],
    above_batch: int,
    models: Path,
) -> dict[tuple[str, ...], dict[str, str]]:
    """Of tables that have models, columns to which new DDL records give another type than declared, and the type they
    have now.
    """
    todo = {
        identity: known[identity] for identity in ddl.keys() & known.keys() if known[identity].table.connector in OF_DDL
    }
    if not todo:
        return {}
    topics = {str(table["topic"]) for identity in todo for table in ddl[identity]}
    before = _ddl_up_to(bronze, above_batch, todo.keys(), topics)
    changed: dict[tuple[str, ...], dict[str, str]] = {}
    for identity, declared in todo.items():
        columns = _declared_columns(bronze.system, declared, models)
        changed[identity] = {}
        for topic in {table["topic"] for table in ddl[identity]}:
            older, new = (
                [table for table in one.get(identity, []) if table["topic"] == topic] for one in (before, ddl)
            )
            new = [
                table for number, table in enumerate(new) if table not in new[number + 1 :]
            ]  # some are looked at twice
            if not older:
                for table in new[:-1]:
                    changed[identity] |= written_otherwise(table, new[-1], columns)
                continue
            if new[-1] == older[-1] and all(
                table in older for table in new
            ):  # sent again by a connector that was started anew
                continue
            last = _last_columns(older)  # also of a column that was dropped: its values are there
            for table in [*(table for table in new[:-1] if table not in older), new[-1]]:
                changed[identity] |= written_otherwise(last, table, columns)
                last = _last_columns([last, table])
    return changed


def _ddl_up_to(
    bronze: Bronze, batch: int, wanted: Set[tuple[str, ...]], topics: Set[str], names: Sequence[str] = ()
) -> dict[tuple[str, ...], list[dict[str, Any]]]:
    """What the newest DDL records of some topics up to a batch say of some tables, the newest last."""
    found: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for topic, text in bronze.newest_ddl(batch, topics, names):
        value = parsed(text)
        payload = value.get("payload", value) if isinstance(value, dict) else None
        changes = payload.get("tableChanges") if isinstance(payload, dict) else None
        for change in changes if isinstance(changes, list) else []:
            _note_ddl(change, found, topic, wanted)
    return found


def _declared_columns(system: str, declared: "Declared", models: Path) -> dict[str, str]:
    """The columns of a table as its staging model has them, which somebody may have edited."""
    columns: dict[str, str] = _argument(system, declared, models, "columns", dict)
    return dict(zip(declared.table.in_events(columns), columns.values(), strict=True)) or declared.table.columns


def _told_of_type(table: str, name: str, known: str, kind: str) -> str:
    others = "events that do not fit are rejected, others have what stands in the event"
    return (
        f"{table}: column {name} is declared {known}, new events have {kind};"
        f" {'values of 2^63 and above are read as negative' if kind == 'uint64' else others}."
        " Change the declaration in the staging model to take them; the next run builds the table anew."
    )


def _last_columns(tables: list[dict[str, Any]]) -> dict[str, Any]:
    """What the newest of some DDL records of a table that has a column says of it."""
    lists = [table.get("columns") for table in tables]
    columns = [column for one in lists if isinstance(one, list) for column in one if isinstance(column, dict)]
    return {"columns": list({str(column.get("name")): column for column in columns}.values())}


def _check_built_by_others(bronze: Bronze, new: "Declared") -> None:
    """Raise a `LakehouseError` where a table without models was built under another key: its models are not here."""
    silver = new.model("silver", bronze.system)
    stored = bronze.stored_keys(silver)
    if stored is not None and stored != digest_of_keys(new.table.kept(new.table.keys)):
        raise LakehouseError(
            f"system {bronze.system}, table {new.table.name}: silver.{silver} is there and was built under another key"
            " than its messages tell, by models that are not here. Put models/ back as it was then, or say by which"
            f" columns a row is identified: KEYS={_key_argument(new.table.name, new.table.keys or ['<column>'])}."
        )


def digest_of_keys(keys: list[str]) -> str:
    """What a silver table has as `cdc.keys`."""
    return hashlib.md5(json.dumps(keys).encode()).hexdigest()


def _check_types(system: str, seen: TableSeen, declared: "Declared", models: Path, changed: dict[str, str]) -> None:
    """Raise a `LakehouseError` where new events write a column in another way than its models read it, as other values.

    Args:
        changed: what DDL records say so of, where no schema block does.
    """
    table, columns = declared.table, _declared_columns(system, declared, models)
    new = {name: kind for name, kind in seen.columns.items() if name in seen.kinds and name not in columns}
    for name, known in {**columns, **new}.items():
        of_ddl = {kind for kind in seen.possible.get(name, ()) if kind.partition("(")[0] == known.partition("(")[0]}
        of_ddl |= {changed[name]} if name in changed else set()
        for kind in sorted(seen.kinds.get(name, of_ddl)):
            is_guessed = (
                name not in seen.kinds
            )  # from a DDL record, in the connector's default mode where nothing tells another
            is_accepted = kind in table.misread.get(name, []) and (is_guessed or name not in table.keys)
            is_excused = not is_guessed and _says_more(table, name, known, kind)
            if is_misread(kind, known) and not is_accepted and not is_excused:
                silver, staging = (declared.model(layer, system) for layer in ("silver", "staging"))
                in_sql = "" if name in columns else f" (and name it in models/silver/{system}/{silver}.sql)"
                way_out = (
                    "It is part of the key: land a snapshot of the table, and what follows it, as a SYSTEM of its own,"
                    " and take these events out of this one"
                    if name in table.keys
                    else (
                        "Have a snapshot of the whole table sent, land it, and declare the newer type in"
                        f" models/staging/{system}/{staging}.sql and"
                        f" models/silver/{system}/{silver}.yml{in_sql}. There, name the older one, whose events the"
                        f" snapshot replaces: misread: {{{name!r}: ['<older type>']}}."
                        f" If events are written as declared all the same, name {kind!r} there"
                    )
                )
                told = "is declared" if name in columns else "is new and would be"
                raise LakehouseError(
                    f"system {system}, table {seen.name}: column {name} {told} {known}, and new events have {kind},"
                    f" which would be read as other values. Nothing of the system is built. {way_out}"
                    " (docs/operating.md#when-a-column-changes-its-type)."
                )


def _says_more(table: TableSeen, name: str, known: str, kind: str) -> bool:
    """Whether a declared type is one that no schema block tells from `kind`: DDL records or values did, or somebody by
    hand.
    """
    while (arrays := [ARRAY.fullmatch(one) for one in (known, kind)]) and arrays[0] and arrays[1]:
        known, kind = arrays[0][1], arrays[1][1]
    if kind == "string" and known == "bytes":  # which a schema block names itself, where it is not base64 as text
        return table.columns.get(name) == "string" or table.connector == "ticdc"
    return known.startswith(NOT_IN_SCHEMA_BLOCKS.get(kind, ()))


def _key_argument(table: str, columns: list[str]) -> str:
    """What to give as KEYS in a shell. Names with spaces or quotes are quoted once more."""
    part = f"{table}={','.join(columns)}"
    if re.search("[\\s'\"]", part):
        part = f"'{part}'" if '"' in part else f'"{part}"'
    return "'" + part.replace("'", "'\"'\"'") + "'"


def _name_shards(
    system: str, seen: TableSeen, declared: "Declared | None", wanted: list[str], servers: str | None
) -> list[str]:
    """Give a table of several connectors a column that names them, if they are shards. Returns the key that is wanted
    then.

    Raises a `LakehouseError` where nobody said what they are: positions of two logs cannot be compared, and rows of two
    shards may have the same key.
    """
    known = declared.table if declared else None
    seen.servers |= known.servers if known else set()
    shard = known.shard if known else None
    if shard is None and (len(seen.servers) < 2 or known and seen.servers == known.servers or servers == "one"):
        return wanted
    if shard is None and servers is None:
        raise LakehouseError(
            f"system {system}, table {seen.name}: its events are of the connectors {' and '.join(sorted(seen.servers))}"
            " (topic.prefix). If they are shards, say SERVERS=shards: a column `shard` becomes part of the key. If"
            " they read one log, one after the other, say SERVERS=one. Else give the events of each a SYSTEM of their"
            " own."
        )
    if seen.connector == "mongodb":
        raise LakehouseError(
            f"SERVERS: {seen.name} is a collection; give the events of each connector a SYSTEM of their own."
        )
    taken = {name.lower() for name in (*seen.columns, *(known.columns if known else ()))}
    column = shard or ("shard" if "shard" not in taken else "_shard")
    seen.columns = {column: SHARD, **seen.columns}
    unsharded = wanted or ([] if shard else known.keys if known else seen.keys)
    return [column, *unsharded] if unsharded else []


def _other_keys(keys: list[list[str]], known: list[list[str]]) -> list[list[str]]:
    return [key for key in keys if set(key) not in [set(other) for other in known]]


def _problem(seen: TableSeen, declared: "Declared | None") -> str:
    """Why models of the table cannot be written; empty where they can."""
    columns = {**declared.table.columns, **seen.columns} if declared else seen.columns
    if not columns:
        return "no event carries a row"
    for name, kinds in {} if declared else seen.kinds.items():
        known = columns.get(name, "")
        others = [kind for kind in sorted(kinds) if is_misread(kind, known) and not _says_more(seen, name, known, kind)]
        if len(kinds) == 1 or not others:
            continue
        return (
            f"column {name} is {columns[name]} in some events and {others[0]} in others, and as one type some would be"
            " read as other values. Land a snapshot of the whole table from after the change, and what follows, as a"
            " SYSTEM of its own"
        )
    named = (*seen.identity, *columns, *seen.topics, *seen.servers, *seen.source_tables)
    marked = [name for name in named if re.search(r"{[{%#]|[%#}]}", name)]
    if marked:
        return f"the name {marked[0]!r} holds marks of Jinja, which no dbt project can name"
    broken = [name for name in seen.topics if re.search("[\r\x85\u2028\u2029]", name)]
    if broken:
        return f"the topic {broken[0]!r} holds a line break that is none of Unix, which dbt reads as another"
    folded: dict[str, str] = {}
    for name in columns:
        if not name or name.lower().startswith("_cdc_"):
            return (
                f"a column is named {name!r}, which"
                f" {'Iceberg cannot name' if not name else 'is a name of the metadata columns'}"
            )
        if name.lower() in folded:
            return f"columns {folded[name.lower()]!r} and {name!r} differ in case only, which Spark cannot tell apart"
        folded[name.lower()] = name
    return ""


def _tell_unmodelled(
    bronze: Bronze,
    known: dict[tuple[str, ...], "Declared"],
    above_batch: int,
    odd: dict[str | None, str],
    done: Scaffolded,
) -> None:
    """Note which topics have new records; tell of those that no model reads: heartbeats, transactions, DDL, what is
    unknown.
    """
    modelled = {topic for declared in known.values() for topic in declared.table.topics}
    arrived = bronze.arrived(above_batch)
    done.topics = {one.topic for one in arrived}
    for one in arrived:
        if one.topic and one.rejected:
            done.notes.append(
                f"{one.rejected:,} records of topic {one.topic} are rejected: {one.reasons} (docs/rejects.md)"
            )
        if one.records and one.topic not in modelled:
            what = (
                f"{one.records:,} records of topic {one.topic}"
                if one.topic
                else f"{one.records:,} values that name no topic"
            )
            told = f". {odd[one.topic]}" if one.topic in odd else ""
            done.notes.append(f"{what}: no table's events, for instance {one.first}; they stay in bronze{told}")


@dataclass
class Declared:
    """A table that has models."""

    relation: str
    table: TableSeen
    routed: bool = False  # whether its staging model reads the events model of the system
    epochs: list[dict[str, Any]] = field(default_factory=list)  # of its topics, as seeds/cdc_epochs.csv declares them

    def model(self, layer: str, system: str) -> str:
        return {"staging": "stg_", "silver": "", "live": "live_"}[layer] + f"{system}__{self.relation}"


def declared_tables(system: str, models: Path) -> dict[tuple[str, ...], Declared]:
    """The tables of the system that have models, from the `meta` of their YAML."""
    paths = sorted((models / "silver" / system).glob(f"{system}__*.yml"))
    declared = [found for path in paths if (found := _declared(system, path, path.stem)) is not None]
    return {found.table.identity: found for found in declared}


def _declared(system: str, path: Path, model: str) -> Declared | None:
    """The table that a file of YAML declares; None of a file that declares none.

    Raises:
        LakehouseError: somebody wrote what is no YAML, or no declaration.
    """
    try:
        return _declared_in(read_yaml(path), path, model.removeprefix(f"{system}__"))
    except (yaml.YAMLError, AttributeError, KeyError, TypeError, ValueError) as error:
        is_yaml = not isinstance(error, yaml.YAMLError | UnicodeDecodeError)
        problem = "its meta.debezium is not of the form that make run writes" if is_yaml else "it is no YAML"
        raise LakehouseError(
            f"{path}: {problem} ({' '.join(str(error).split())}). Correct it, and run again."
        ) from error


def _declared_in(content: Any, path: Path, relation: str) -> Declared | None:
    _, meta = _holder(content)
    if not meta:
        return None
    table = TableSeen(
        meta["connector"],
        tuple(meta["table"]),
        set(meta["topics"]),
        types_from="declared",
        servers=set(meta.get("servers", [])),
        source_tables=set(meta.get("source_tables", [])),
        misread=_misread(meta.get("misread") or {}, path),
        renamed=meta.get("renamed", {}),
    )
    comments = meta.get("comments") or {}
    table.comments = dict(zip(table.in_events(comments), comments.values(), strict=True))
    table.columns = dict(zip(table.in_events(meta["columns"]), meta["columns"].values(), strict=True))
    table.keys = table.in_events(meta["keys"])
    table.message_keys = meta.get("message_keys") or ([table.keys] if table.keys else [])
    return Declared(relation, table, meta.get("routed", False), meta.get("epochs", []))


def _holder(content: Any) -> tuple[str, dict[str, Any]]:
    """The model of a file of YAML whose `meta` declares a table, and what it says; nothing if there is none."""
    for described in (content or {}).get("models") or []:
        meta = ((described.get("config") or {}).get("meta") or {}).get("debezium")
        if meta:
            return described["name"], meta
    return "", {}


def _misread(told: Any, path: Path) -> dict[str, list[str]]:
    lists = list(told.values()) if isinstance(told, dict) else [None]
    if not all(isinstance(kinds, list) and all(isinstance(kind, str) for kind in kinds) for kinds in lists):
        raise LakehouseError(
            f"{path}: misread is {told!r}; expected columns with lists of types, as {{'price': ['Decimal(8,2)']}}."
        )
    return {str(name): kinds for name, kinds in told.items()}


def _route(system: str, known: dict[tuple[str, ...], Declared], models: Path, done: Scaffolded) -> None:
    """Have the tables that share topics read them from one model, which parses each record once, and all others read
    bronze.
    """
    sharing = _sharing_topics(list(known.values()))
    for declared in known.values():
        wanted = any(declared is other for other in sharing)
        if declared.routed == wanted:
            continue
        if is_untouched(system, declared, models):
            declared.routed = wanted
            _write(system, declared, models, done)
        elif done.written:
            told = (
                f"events = ref('{system}__events') and routed = true"
                if wanted
                else f"events = source('bronze', '{system}')"
            )
            done.notes.append(
                f"{declared.table.name}: its models were edited by hand; its staging model should have {told} now"
            )


def epochs_of(system: str, seeds: Path) -> list[dict[str, Any]]:
    """The epochs that `cdc_epochs.csv` declares for a system: from where on a topic has records of another log.

    Raises:
        LakehouseError: a line is not of the form system, topic, partition, from_offset, from_batch, epoch.
    """
    path = seeds / "cdc_epochs.csv"
    if not path.exists():
        return []
    found: list[dict[str, Any]] = []
    with path.open(encoding="utf-8", newline="") as lines:
        reader = csv.DictReader(lines, strict=True)
        expected = ["system", "topic", "partition", "from_offset", "from_batch", "epoch"]
        if reader.fieldnames != expected:
            raise LakehouseError(f"{path}: the first line is {reader.fieldnames}; expected {','.join(expected)}.")
        for row in reader:
            given = {name: value for name in expected[2:] if (value := str(row[name] or "").strip())}
            numbers = {name: int(value) for name, value in given.items() if value.isdecimal()}
            is_placed = {"partition", "from_offset"} <= numbers.keys() or (
                "from_batch" in numbers and "from_offset" not in numbers
            )
            if (
                numbers.keys() != given.keys()
                or not is_placed
                or not 1 <= numbers.get("epoch", 0) <= 9999
                or None in row
            ):
                raise LakehouseError(
                    f"{path}, line {reader.line_num}: expected {','.join(expected)}, with a partition and an offset"
                    " from 0, or a batch, or all of these, and an epoch from 1 to 9999; found"
                    f" {','.join(str(value) for value in row.values())}."
                )
            if row["system"] == system:
                found.append({"topic": row["topic"], **numbers})
    return found


def _declare_epochs(system: str, known: dict[tuple[str, ...], Declared], models: Path, done: Scaffolded) -> None:
    epochs = epochs_of(system, models.parent / "seeds")
    for declared in known.values():
        wanted = [epoch for epoch in epochs if epoch["topic"] in declared.table.topics]
        if declared.epochs == wanted:
            continue
        if not is_untouched(system, declared, models):
            done.notes.append(
                f"{declared.table.name}: its models were edited by hand; its staging model should have epochs ="
                f" {wanted} now"
            )
            continue
        declared.epochs = wanted
        done.notes.append(f"{declared.table.name}: epochs changed; the table is built anew")
        _write(system, declared, models, done)
    unused = {epoch["topic"] for epoch in epochs}.difference(*(declared.table.topics for declared in known.values()))
    if unused:
        done.notes.append(f"seeds/cdc_epochs.csv names {', '.join(sorted(unused))}, which is no topic of a table")


def _sharing_topics(tables: list[Declared]) -> list[Declared]:
    """The tables that share a topic with another one, directly or through others, where all their events name their
    tables.

    Those of one connector, the first by name: there is one events model for a system.
    """
    groups: list[list[Declared]] = []
    for declared in tables:
        joined = [group for group in groups if any(other.table.topics & declared.table.topics for other in group)]
        groups = [group for group in groups if group not in joined] + [
            [declared, *(other for group in joined for other in group)]
        ]
    fit = [group for group in groups if len(group) > 1 and all(_can_be_routed(other, group[0]) for other in group)]
    connector = min((group[0].table.connector for group in fit), default="")
    return [declared for group in fit if are_alike(group[0].table.connector, connector) for declared in group]


def _can_be_routed(declared: Declared, other: Declared) -> bool:
    names_topic = len(declared.table.identity) == 1 and declared.table.identity[0] in declared.table.topics
    return not names_topic and are_alike(declared.table.connector, other.table.connector)


def observe(
    bronze: Bronze,
    connector: str | None,
    above_batch: int,
    modelled: Set[str] = frozenset(),
    further: Set[str] = frozenset(),
    ddl: "dict[tuple[str, ...], list[dict[str, Any]]] | None" = None,
    declared: Mapping[tuple[str, ...], Mapping[str, str]] = MappingProxyType({}),
    notes: dict[str | None, str] | None = None,
) -> list[TableSeen]:
    """The tables that events speak of, as their schema blocks, DDL records or values show them.

    Looked at are those above the batch, and all of the `further` topics.

    Args:
        modelled: topics that have models. A record of a foreign format in another topic is an error; in these it is
            rejected there.
        ddl: gets what DDL records say of a table, the newest last.
        declared: the columns of the tables that have models. Of others, and of new columns, DDL records are looked for
            that had landed before, too.
        notes: gets what the values of topics are that are of no table.
    """

    def older_ddl(tables: Mapping[tuple[str, ...], TableSeen]) -> dict[tuple[str, ...], list[dict[str, Any]]]:
        """Of the connector's own topic, of the tables' (where all is in one), and of those that bare values get."""
        topics = {topic for table in tables.values() for topic in table.topics | table.servers}
        topics |= {f"{server}.{identity[0]}" for identity, table in tables.items() for server in table.servers}
        topics -= further  # of which all records are among the events
        if not topics or not above_batch:
            return {}
        names = [json.dumps(identity[-1].replace('"', '""'), ensure_ascii=False)[1:-1] for identity in sorted(tables)]
        return _ddl_up_to(bronze, above_batch, tables.keys(), topics, names)

    events = bronze.sample(above_batch, further)
    return _tables(events, connector, bronze.system, modelled, ddl, declared, older_ddl, notes)


def _tables(
    events: Sequence[tuple[str | None, str, str | None]],
    connector: str | None,
    system: str,
    modelled: Set[str],
    ddl: "dict[tuple[str, ...], list[dict[str, Any]]] | None" = None,
    declared: Mapping[tuple[str, ...], Mapping[str, str]] = MappingProxyType({}),
    older_ddl: "Callable[[Mapping[tuple[str, ...], TableSeen]], Mapping[tuple[str, ...], Any]]" = lambda _: {},
    notes: dict[str | None, str] | None = None,
) -> list[TableSeen]:
    ddl = {} if ddl is None else ddl
    notes = {} if notes is None else notes
    tables: dict[tuple[str, ...], TableSeen] = {}
    dialects: dict[tuple[str, ...], Dialect] = {}
    rows: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    foreign: dict[str | None, str] = {}
    for topic, text, key in events:
        value = parsed_exactly(text)
        if not isinstance(value, dict):
            if name := foreign_text(text):
                foreign[topic] = name
            elif text.startswith("\0"):
                notes[topic] = "They are Avro or Protobuf of a schema registry: set JsonConverter"
            continue
        is_wrapped = isinstance(value.get("payload"), dict) and value.keys() <= {"schema", "payload"}
        payload = value["payload"] if is_wrapped else value
        if payload.get("payload", ...) is None and payload.keys() <= {"schema", "payload"}:
            continue  # a tombstone with a schema block
        if format_name := foreign_format(payload):
            foreign[topic] = format_name
            continue
        if topic is None:
            notes.update({None: WITHOUT_ENVELOPE} if is_plain_row(payload) else {})
            continue
        if isinstance(payload.get("tableChanges"), list):
            for change in payload["tableChanges"]:
                _note_ddl(change, ddl, topic)
        dialect = dialect_of(payload, connector, topic, system)
        if dialect is None:
            notes.update({topic: WITHOUT_ENVELOPE} if is_plain_row(payload) else {})
            continue
        identity = dialect.identity(payload, topic)
        if not identity:  # no table can be told; where the topic has one, its model says what is wrong with the event
            continue
        table = tables.setdefault(identity, TableSeen(dialect.connector, identity))
        if not are_alike(table.connector, dialect.connector):
            raise LakehouseError(
                f"system {system}, table {table.name}: its events are of connectors {table.connector!r} and"
                f" {dialect.connector!r}. Give each connector's events a SYSTEM of their own."
            )
        dialects.setdefault(identity, dialect)
        table.topics.add(topic)
        source = payload.get("source")
        if isinstance(source, dict) and isinstance(source.get("name"), str):
            table.servers.add(source["name"])
        table.source_tables |= {dialect.source_table(payload)} - {""}
        table.tells_deletes = table.tells_deletes or dialect.tells_deletes(payload)
        table.comments |= _comments_in_schema(value.get("schema"), dialect)
        columns = dialect.described(value.get("schema"))
        if columns:
            table.types_from = "schema block"
        for column, kind in columns.items():
            table.columns[column] = wider_type(table.columns.get(column, kind), kind)
            table.kinds.setdefault(column, set()).add(kind)
        for image in (
            dialect.image(payload, dialect.after),
            dialect.image(payload, dialect.before) if table.columns else None,
        ):
            if image is not None:
                rows.setdefault(identity, []).append(image)
        columns_of_key = dialect.keys(payload, value.get("schema")) or key_columns(parsed(key))
        if identity != (topic,):  # the event names its table: the parts that a router joined are tables of their own
            columns_of_key = [name for name in columns_of_key if name != ROUTED_FROM]
        if columns_of_key:
            table.message_keys += _other_keys([columns_of_key], table.message_keys)
    read = modelled | {topic for table in tables.values() for topic in table.topics}
    refuse_foreign_formats({topic: name for topic, name in foreign.items() if topic not in read}, system)
    untold = {
        identity: table
        for identity, table in tables.items()
        if table.connector in OF_DDL
        and (
            identity not in declared
            or {name for row in rows.get(identity, []) for name in row} - declared[identity].keys()
        )
    }
    older = older_ddl(untold)
    _type_from_ddl(tables, rows, {**ddl, **{identity: older[identity] + ddl.get(identity, []) for identity in older}})
    for identity, table in sorted(
        tables.items(), key=lambda item: item[1].types_from != "schema block"
    ):  # others learn from these
        _complete(table, rows.get(identity, []), tables)
        described, table.columns = table.columns, dialects[identity].columns(table.columns)
        table.comments = {name: table.comments[name] for name in table.columns if name in table.comments}
        # What the dialect knows better than the schema block is not what events write.
        table.kinds = {
            name: kinds for name, kinds in table.kinds.items() if table.columns.get(name) == described.get(name)
        }
    return [tables[identity] for identity in sorted(tables)]


def _type_from_ddl(
    tables: dict[tuple[str, ...], TableSeen],
    rows: dict[tuple[str, ...], list[dict[str, Any]]],
    ddl: dict[tuple[str, ...], list[dict[str, Any]]],
) -> None:
    """Give tables without a schema block the columns and the key that their DDL records tell, and others what it leaves
    open.
    """
    with_ddl = {
        identity: (ddl[identity][-1], rows.get(identity, []))
        for identity, table in tables.items()
        if identity in ddl and table.connector in OF_DDL
    }
    for identity, typed in types_of_ddl(with_ddl).items():
        table = tables[identity]
        of_columns = {
            str(column.get("name")): _one_line(column.get("comment"))
            for column in ddl[identity][-1].get("columns") or []
            if isinstance(column, dict)
        }
        table.comments = {name: told for name, told in of_columns.items() if told} | table.comments
        if table.columns:
            doubtful = {name for names in typed.doubts.values() for name in names}
            told = {
                name: kind for name, kind in typed.columns.items() if name in table.columns and name not in doubtful
            }
            table.columns |= {
                name: kind
                for name, kind in told.items()
                if kind.startswith(NOT_IN_SCHEMA_BLOCKS.get(table.columns[name], ()))
            }
            continue
        table.columns, table.doubts, table.keys = typed.columns, typed.doubts, key_of_ddl(ddl[identity][-1])
        table.possible = typed.possible
        for older in ddl[identity][:-1]:
            table.older |= read_otherwise(older, with_ddl[identity][0], typed)
        settings = ", ".join(f"{setting}={mode}" for setting, mode in typed.settings.items())
        table.types_from = "DDL records" + (f" and values, which show {settings}" if settings else "")


def _comments_in_schema(schema: Any, dialect: Dialect) -> dict[str, str]:
    """What the source says of its columns, from the schema block of a value: column → comment."""
    fields = fields_of(schema)
    images = [schema] if dialect.form == "flat" else [fields.get(dialect.before), fields.get(dialect.after)]
    return {
        name: comment
        for image in images
        for name, item in fields_of(image).items()
        if (comment := _one_line((item.get("parameters") or {}).get(COMMENT) or item.get("doc")))
        and comment not in DOCS_OF_TYPES
    }


def _one_line(text: Any) -> str:
    """A comment as it can stand in YAML that dbt renders; empty if there is none."""
    line = re.sub(r"[\s\x00-\x1f\x7f-\x9f\ufeff]+", " ", text).strip() if isinstance(text, str) else ""
    return re.sub(r"\{(?=[{%#])", "{ ", line)


def _complete(table: TableSeen, rows: list[dict[str, Any]], tables: dict[tuple[str, ...], TableSeen]) -> None:
    if not table.columns:
        same_topic = [
            other for other in tables.values() if other.types_from == "schema block" and other.topics & table.topics
        ]
        if same_topic:
            table.columns, table.types_from = dict(same_topic[0].columns), "schema block of the same topic"
    if not table.columns:
        table.columns, table.types_from = columns_of_values(rows), "values"
    for name, kind in columns_of_values(rows).items():
        table.columns.setdefault(name, kind)
    if not table.types_from.startswith("schema block"):
        table.unlike = _unlike(rows)
    if table.connector == "cockroachdb":
        table.columns |= _with_zones(table.columns, rows)
    if table.connector in ("mysql", "mariadb"):
        table.columns = {name: _mysql_decimal(kind) for name, kind in table.columns.items()}
        table.kinds = {name: {_mysql_decimal(kind) for kind in kinds} for name, kinds in table.kinds.items()}
    # A key of other names (a router's, say) identifies no row of the table.
    table.message_keys = [key for key in table.message_keys if all(name in table.columns for name in key)]
    table.keys = table.message_keys[0] if table.message_keys else table.keys
    if any(key not in table.columns for key in table.keys):
        table.keys = []


def _with_zones(columns: dict[str, str], rows: list[dict[str, Any]]) -> dict[str, str]:
    """Timestamps whose texts have a zone, in arrays too: CockroachDB's schema block has one name for both kinds."""
    zoned = {}
    for name, kind in columns.items():
        if kind in ("TimestampText", "array<TimestampText>"):
            values = [row[name] for row in rows if row.get(name)]
            texts = [
                text for value in values for text in (value if isinstance(value, list) else [value]) if text is not None
            ]
            if texts and all(ZONED.search(str(text)) for text in texts):
                zoned[name] = kind.replace("TimestampText", "ZonedTimestamp")
    return zoned


def _unlike(rows: list[dict[str, Any]]) -> dict[str, set[str]]:
    values: dict[str, list[Any]] = {}
    for row in rows[:MAX_VALUES]:
        for name, value in row.items():
            values.setdefault(name, []).append(value)
    kinds = ("Timestamp", "MicroTimestamp", "NanoTimestamp", "bytes", "bytes_url", "Decimal")
    return {name: {kind for kind in kinds if not looks_like(kind, found)} for name, found in values.items()}


def _mysql_decimal(kind: str) -> str:
    """MySQL's scales end at 30: Flink CDC has been seen to write precision and scale in each other's place."""
    decimal = re.fullmatch(r"Decimal\((\d+),(\d+)\)", kind)
    if decimal and int(decimal[2]) > 30 and int(decimal[1]) <= 30:
        return f"Decimal({decimal[2]},{decimal[1]})"
    return kind


def _note_ddl(
    change: Any,
    ddl: dict[tuple[str, ...], list[dict[str, Any]]],
    topic: str,
    wanted: Set[tuple[str, ...]] | None = None,
) -> None:
    if isinstance(change, dict) and isinstance(change.get("table"), dict) and change.get("id"):
        names = tuple(name.replace('""', '"') for name in re.findall(r'"((?:[^"]|"")*)"', str(change["id"])))[-2:]
        if wanted is None or names in wanted:
            ddl.setdefault(names, []).append({**change["table"], "topic": topic})


def _wanted_key(table: TableSeen, declared: "Declared | None", keys: dict[str, list[str]], used: set[str]) -> list[str]:
    columns = {**(declared.table.columns if declared else {}), **table.columns}
    name, key = _named_key(table, keys)
    used |= {name} - {""}
    missing = [column for column in key if column not in columns]
    if missing and columns:
        raise LakehouseError(
            f"KEYS: table {table.name} has no column {', '.join(missing)}; it has {', '.join(columns)}."
        )
    if key and table.connector == "mongodb" and key != ["_id"]:
        raise LakehouseError(
            f"KEYS: {table.name} is a collection, and its documents are identified by _id. Leave it out."
        )
    return key


def _named_key(table: TableSeen, keys: dict[str, list[str]]) -> tuple[str, list[str]]:
    """The name by which KEYS has a table, with or without what stands before it, and its key there."""
    names = (".".join(table.identity[at:]) for at in range(len(table.identity)))
    return next(((name, keys[name]) for name in names if name in keys), ("", []))


def _relation_name(
    table: TableSeen, known: dict[tuple[str, ...], Declared], new_names: list[str], done: Scaffolded
) -> str:
    """The table's name; with its schema or database where another table of the system has that name."""
    taken = SYSTEM_MODELS | {declared.relation for declared in known.values()}
    name = safe_name(table.identity[-1])
    if name in taken or new_names.count(name) > 1:
        whose = "a model of the system" if name in SYSTEM_MODELS else "another table"
        name = "__".join(safe_name(part) for part in table.identity)
    number, free = 2, name
    while free in taken:
        free, number = f"{name}_{number}", number + 1
    if free != safe_name(table.identity[-1]):
        done.notes.append(f"{table.name}: {whose} has that name too; the relation is {free}")
    return free


def _describe_new(table: TableSeen, done: Scaffolded) -> None:
    key = ", ".join(table.kept(table.keys)) if table.keys else "none: a change log only, until KEYS names one"
    done.notes.append(f"{table.name}: {table.connector}, types from {table.types_from}, key: {key}")
    _tell_doubts(table, list(table.columns), done)


def _tell_doubts(table: TableSeen, columns: list[str], done: Scaffolded) -> None:
    for setting, doubtful in table.doubts.items():
        names = ", ".join(name for name in doubtful if name in columns)
        if names:
            done.notes.append(
                f"{table.name}: no value tells the connector's {setting}, on which the types of {names} depend:"
                " declared as in its default. If it is another, correct `columns` in the staging model"
                " (docs/connectors/mysql.md#handling-modes)"
            )
    done.notes += [
        f"{table.name}: column {name} was {kind} by an older DDL record. Events from before it changed are read as "
        f"{table.columns[name]}, which may give other values: land a snapshot of the table from after that"
        for name, kind in table.older.items()
        if name in columns
    ]


def _update(
    system: str, declared: Declared, seen: TableSeen, wanted: list[str], models: Path, done: Scaffolded
) -> None:
    """Take new columns, topics and a key that was asked for into the models of a table."""
    table = declared.table
    # Whoever wants the fields alone takes the document out of the columns.
    added = {name: kind for name, kind in seen.columns.items() if name not in table.columns and kind != DOCUMENT}
    other_keys = _other_keys(seen.message_keys, table.message_keys)
    changed = {}
    if seen.types_from == "schema block":
        columns = _declared_columns(system, declared, models)
        changed = {
            name: kind
            for name, kind in seen.columns.items()
            if columns.get(name, kind) != kind
            and not _says_more(table, name, columns[name], kind)
            and kind not in table.misread.get(name, [])
        }
    done.notes += [_told_of_type(table.name, name, columns[name], kind) for name, kind in changed.items()]
    for name, kinds in seen.unlike.items():
        if table.columns.get(name, "").partition("(")[0] in kinds and is_untouched(system, declared, models):
            done.notes.append(
                f"{table.name}: column {name} is declared {table.columns[name]}, and new values do not look so. Compare"
                " the connector's handling modes (docs/types.md), and correct `columns` in the staging model; the next"
                " run builds anew"
            )
    keys = wanted or table.keys
    topics = table.topics | seen.topics
    if other_keys and not keys:
        told = _key_argument(table.name, other_keys[0])
        done.notes.append(f"{table.name}: its messages have a key now; KEYS={told} makes the change log a table")
    accepted = [*table.message_keys, *other_keys] if wanted else table.message_keys
    before = replace(declared, table=replace(table, renamed=dict(table.renamed)))
    if keys != table.keys and not is_untouched(system, before, models):
        files = (f"models/{name}" for name in render(system, before) if name.startswith(("staging/", "silver/")))
        and_a_table = (
            " Make the silver model a table, and give it a live model, as those of other tables are."
            if not table.keys
            else ""
        )
        raise LakehouseError(
            f"system {system}, table {table.name}: its key would be {', '.join(keys)} now, and its models were edited"
            f" by hand. Write keys = {table.kept(keys)!r} there, in {' and '.join(files)}, and run again with the same"
            f" arguments.{and_a_table}"
        )
    is_accepted = keys == table.keys and accepted != table.message_keys
    comments = {**table.comments, **{name: told for name, told in seen.comments.items() if name in table.columns}}
    if (
        seen.servers != table.servers
        or not seen.source_tables <= table.source_tables
        or is_accepted
        or comments != table.comments
    ):
        table.comments = comments
        table.servers, table.source_tables = seen.servers, table.source_tables | seen.source_tables
        table.message_keys = accepted if is_accepted else table.message_keys
        _write_properties(system, declared, models)
    if not added and keys == table.keys and topics == table.topics:
        return
    if not is_untouched(system, before, models):
        done.notes.append(
            f"{table.name}: new columns {', '.join(added) or 'none'}, topics"
            f" {', '.join(sorted(topics - table.topics)) or 'none'}: its models were edited by hand, so add them there:"
            f" {_to_add(system, declared, added, topics - table.topics)}. Your edits are kept"
        )
        return
    if added:
        done.notes.append(f"{table.name}: new columns {', '.join(added)}")
        _tell_doubts(seen, list(added), done)
    if keys != table.keys:
        done.notes.append(f"{table.name}: the key is now {', '.join(keys)}; the table is built anew")
        done.rebuilt += [declared.model(layer, system) for layer in ("staging", "silver", "live")]
    table.columns = {**table.columns, **added}
    table.comments = {**table.comments, **{name: told for name, told in seen.comments.items() if name in added}}
    done.notes += table.rename_reserved()
    table.keys, table.topics, table.message_keys = keys, topics, accepted
    _write(system, declared, models, done)


def _to_add(system: str, declared: Declared, columns: dict[str, str], topics: Set[str]) -> str:
    """What is to be written into models that were edited by hand, and where."""
    staging, silver = (f"models/{one}/{system}/{declared.model(one, system)}.sql" for one in ("staging", "silver"))
    types = ", ".join(f"{_text(name)}: {_text(kind)}" for name, kind in columns.items())
    names = ", ".join(map(_text, columns))
    told = [f"{types} to columns in {staging}, {names} to columns in {silver}"] if columns else []
    return " and ".join([*told, *([f"{quoted_list(sorted(topics))[1:-1]} to topics in {staging}"] if topics else [])])


def _argument(system: str, declared: Declared, models: Path, name: str, kind: type) -> Any:
    """An argument that the staging model gives its macro, where its text is plain enough to tell; else an empty one."""
    path = models / "staging" / system / f"{declared.model('staging', system)}.sql"
    text = re.sub(r"(?s)\{#.*?#\}|(?m:^\s*--[^\n]*$)", "", path.read_text(encoding="utf-8")) if path.exists() else ""
    quoted = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
    brackets = rf"\[(?:{quoted}|[^\]'\"])*\]" if kind is list else rf"\{{(?:{quoted}|[^}}'\"])*\}}"
    found = re.search(rf"\b{name}\s*=\s*({brackets})", text)
    with suppress(ValueError, SyntaxError):
        told: Any = ast.literal_eval(found[1]) if found else kind()
        if all(isinstance(one, str) for one in (*told, *(told.values() if kind is dict else ()))):
            return told
    return kind()


def _follow_text(system: str, declared: Declared, models: Path) -> None:
    """Take topics and columns that somebody added to a staging model into its YAML: by these it is chosen, and finds
    what is new.
    """
    table = declared.table
    topics = set(_argument(system, declared, models, "topics", list))
    columns = _declared_columns(system, declared, models)
    if topics > table.topics or columns.items() > table.columns.items():
        table.topics = topics if topics > table.topics else table.topics
        table.columns = columns if columns.items() > table.columns.items() else table.columns
        _write_properties(system, declared, models)


def _mend_names(bronze: Bronze, declared: Declared, models: Path, done: Scaffolded) -> None:
    """Rename columns of a table that an older version declared, and perhaps built, under names by which it cannot be
    read.
    """
    table = declared.table
    if not RESERVED & {name.lower() for name in table.kept(table.columns)} or not is_untouched(
        bronze.system, declared, models
    ):
        return
    done.notes += table.rename_reserved()
    for kept, name in table.renamed.items():
        bronze.rename_stored(declared.model("silver", bronze.system), name, kept)
    _write(bronze.system, declared, models, done)


def is_untouched(system: str, declared: Declared, models: Path) -> bool:
    """Whether the models of a table are as they were written, but for the live one, which names no columns."""
    return all(
        _says(models / name, text)
        for name, text in render(system, declared).items()
        if name.endswith(".sql") and not name.startswith("live/")
    )


def _files_of_others(system: str, declared: Declared, models: Path) -> list[str]:
    """Models that stand where those of a new table would: somebody wrote them by hand, or took their YAML away."""
    return [
        name
        for name, text in render(system, declared).items()
        if name.endswith(".sql") and (models / name).exists() and (models / name).read_text(encoding="utf-8") != text
    ]


def _write(system: str, declared: Declared, models: Path, done: Scaffolded) -> None:
    """Write the files of a table.

    The YAML, by which it is known again, is the first one and comes to its place as the last.
    """
    files = render(system, declared)
    properties = next(name for name in files if name.endswith(".yml"))
    intended = models / f"{properties}{INTENDED}"
    put(intended, _with_edits(system, declared, models / properties, files.pop(properties)))
    for name, text in files.items():
        if not (name.startswith("live/") and (models / name).exists()):  # which says the same for ever, or was edited
            put(models / name, text)
        done.written.append(Path(name).stem)
    stale = models / "live" / system / f"{declared.model('live', system)}.sql"
    if not declared.table.keys and stale.exists():
        stale.unlink()
    intended.replace(models / properties)


def _finish(system: str, models: Path, done: Scaffolded) -> None:
    """Write what a run that was killed meant to write, so that its half of the files is not taken for edits."""
    for intended in sorted((models / "silver" / system).glob(f"*.yml{INTENDED}")):
        properties = intended.with_name(intended.name.removesuffix(INTENDED))
        wanted = _declared(system, intended, properties.stem)
        assert wanted, f"{intended} was written as a whole"
        before = _declared(system, properties, properties.stem) if properties.exists() else None
        texts = [render(system, declared) for declared in (wanted, before) if declared]
        files = {name: models / name for name in texts[0] if name.endswith(".sql") and not name.startswith("live/")}
        there = {name: path.read_text(encoding="utf-8") for name, path in files.items() if path.exists()}
        if all(text in [known.get(name) for known in texts] for name, text in there.items()):
            _write(system, wanted, models, done)
        else:  # edited since
            intended.unlink()


def _write_properties(system: str, declared: Declared, models: Path) -> None:
    for name, text in render(system, declared).items():
        if name.endswith(".yml"):
            text = _with_edits(system, declared, models / name, text)
            if not _says(models / name, text):
                put(models / name, text)


def _with_edits(system: str, declared: Declared, path: Path, text: str) -> str:
    """Generated YAML of a table, with all that a person wrote in the file that is there.

    Raises:
        LakehouseError: what is generated has no place in it.
    """
    if not path.exists():
        return text
    there, known = path.read_bytes().decode("utf-8"), _declared(system, path, path.stem)
    before = _properties(system, known) if known else text
    if there in (before, text):
        return text
    content = read_yaml(path)
    holder, _ = _holder(content)
    then, now = (_declared_by(holder, yaml.load(generated, Loader=LOADER)) for generated in (before, text))
    if not known:  # somebody took the declaration out: it is new again, and all else is as it was
        del then["models"][0]["config"]
    is_former = _add_former(then, content)
    result = updated(there, then, now, str(path))
    if is_former and there == dump(content) and yaml.load(result, Loader=LOADER) == now:
        return text  # nobody has edited it
    found = _declared_in(yaml.load(result, Loader=LOADER), path, declared.relation)
    if found is None or render(system, found) != render(system, declared):
        raise LakehouseError(
            f"{path}: meta.debezium has no place in it. Put the file back as make run wrote it, and run again."
        )
    return result


def _add_former(then: dict[str, Any], content: dict[str, Any]) -> bool:
    """Have generated YAML describe what a former version described: each column at each model, and its type alone.
    Returns whether one has written the `content` of the file.
    """
    there = {model.get("name"): model for model in (content or {}).get("models") or []}
    is_former = False
    for model in then["models"]:
        found = there.get(model["name"], {})
        columns = found.get("columns")
        former = [one for one in columns if _is_former(one)] if isinstance(columns, list) else []
        if any("quote" in one for one in former):
            names = {one["name"] for one in former}
            others = [one for one in model.get("columns", []) if one["name"] not in names]
            model["columns"], is_former = former + others, True
            if found.get("description") == (without_key := model["description"].partition(" Key: ")[0]):
                model["description"] = without_key
    return is_former


def _is_former(column: Any) -> bool:
    told = {name: value for name, value in column.items() if name != "name"} if isinstance(column, dict) else {}
    of_source = re.fullmatch(r"`[^`]+` in the events(, where it is named `[^`]*`)?\.", str(told.get("description")))
    return told == {"description": f"{{{{ doc('{column.get('name') if told else ''}') }}}}"} or bool(
        of_source and told.keys() == {"description", "quote"} and told["quote"] is True
    )


def _declared_by(holder: str, content: dict[str, Any]) -> dict[str, Any]:
    """Generated YAML whose declaration stands with the model that has it in the file, wherever somebody has put it."""
    staging, *others = content["models"]
    if holder and holder != staging["name"]:
        known = next((model for model in others if model["name"] == holder), {"name": holder})
        known["config"] = staging.pop("config")
        content["models"] += [] if known in others else [known]
    return content


def put(path: Path, text: str) -> None:
    """Write a file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def render(system: str, declared: Declared) -> dict[str, str]:
    """The files of a table below `models/`: path → text."""
    table = declared.table
    staging, silver, live = (declared.model(layer, system) for layer in ("staging", "silver", "live"))
    columns, keys = dict(zip(table.kept(table.columns), table.columns.values(), strict=True)), table.kept(table.keys)
    names = "\n".join(f"        {_text(name)}," for name in columns)
    types = "\n".join(f"        {_text(name)}: {_text(kind)}," for name, kind in columns.items())
    events = f"ref('{system}__events')" if declared.routed else f"source('bronze', '{system}')"
    further = ("    routed = true,\n" if declared.routed else "") + _epochs(declared)
    if table.renamed:
        named = "".join(f"        {_text(name)}: {_text(in_events)},\n" for name, in_events in table.renamed.items())
        further += f"    renamed = {{\n{named}    }},\n"
    files = {
        f"staging/{system}/{staging}.sql": (
            "{{ debezium_changes(\n"
            f"    events = {events},\n"
            f"    topics = {quoted_list(sorted(table.topics))},\n"
            f"    connector = {_text(table.connector)},\n"
            f"    table = {quoted_list(table.identity)},\n"
            f"    keys = {quoted_list(keys)},\n"
            f"    columns = {{\n{types}\n    }},\n{further}) }}}}\n"
        )
    }
    if table.keys:
        files[f"silver/{system}/{silver}.sql"] = (
            "{{ debezium_latest(\n"
            f"    changes = ref('{staging}'),\n"
            f"    keys = {quoted_list(keys)},\n"
            f"    columns = [\n{names}\n    ],\n"
            ") }}\n"
        )
        files[f"live/{system}/{live}.sql"] = (
            f"{{{{ config(schema = '{system}', alias = '{declared.relation}') }}}}\n\n"
            f"{{{{ debezium_live(silver = ref('{silver}')) }}}}\n"
        )
    else:
        files[f"silver/{system}/{silver}.sql"] = (
            f"{{{{ debezium_log(\n    changes = ref('{staging}'),\n    columns = [\n{names}\n    ],\n) }}}}\n"
        )
    files[f"silver/{system}/{silver}.yml"] = _properties(system, declared)
    return files


def _epochs(declared: Declared) -> str:
    if not declared.epochs:
        return ""
    lines = ""
    for epoch in declared.epochs:
        numbers = "".join(f", '{name}': {number}" for name, number in epoch.items() if name != "topic")
        lines += f"        {{'topic': {_text(epoch['topic'])}{numbers}}},\n"
    return f"    epochs = [\n{lines}    ],\n"


@cache
def _connectors() -> dict[str, dict[str, str]]:
    """Each connector with its properties, as the seed `cdc_connectors` of this version has them."""
    with (Path(__file__).resolve().parent.parent / "seeds" / "cdc_connectors.csv").open(
        encoding="utf-8", newline=""
    ) as lines:
        return {row["connector"]: row for row in csv.DictReader(lines)}


def _properties(system: str, declared: Declared) -> str:
    table = declared.table
    connector = _connectors()[table.connector.partition("(")[0]]
    order = f"Ordered by {connector['order_by']} (`{table.connector}`, {connector['source']})."
    staging, silver, live = (declared.model(layer, system) for layer in ("staging", "silver", "live"))
    source_name = _plain(table.name)
    keys = table.kept(table.keys)
    columns = [
        {"name": name, "description": _description(table, in_events), "quote": True}
        for name, in_events in zip(table.kept(table.columns), table.columns, strict=True)
    ]
    in_part = ["_cdc_patches"] if table.connector == "mongodb" and table.keys else []
    passed_on = table.keys and connector["passes_keys_on"] == "true"
    held = ["_cdc_held", *in_part, *(["_cdc_moves"] if passed_on else [])] if table.keys else []
    metadata = [{"name": name, "description": f"{{{{ doc('{name}') }}}}"} for name in (*METADATA, *held)]
    meta: dict[str, Any] = {
        "connector": table.connector,
        "table": list(table.identity),
        "topics": sorted(table.topics),
        "keys": list(keys),
        "columns": dict(zip(table.kept(table.columns), table.columns.values(), strict=True)),
    }
    if table.comments:
        meta["comments"] = dict(zip(table.kept(table.comments), table.comments.values(), strict=True))
    if table.renamed:
        meta["renamed"] = dict(table.renamed)
    if _other_keys(table.message_keys, [table.keys]):  # messages are keyed otherwise, and KEYS said so
        meta["message_keys"] = [list(key) for key in table.message_keys]
    if table.servers:
        meta["servers"] = sorted(table.servers)
    if table.source_tables:
        meta["source_tables"] = sorted(table.source_tables)
    if table.misread:
        meta["misread"] = table.misread
    if declared.routed:
        meta["routed"] = True
    if declared.epochs:
        meta["epochs"] = declared.epochs
    records = "record of" if declared.routed else "record of the topics of"
    staging_model = {
        "name": staging,
        "description": f"Every landed {records} `{source_name}`, typed: one row per record.",
        "config": {"meta": {"debezium": meta}},
    }
    no_log_reset = {"no_log_reset": {"arguments": {"source_table": source_name}}}
    # The columns of the source are described once: at the live model, from which the others have their comments.
    silver_model: dict[str, Any] = {
        "name": silver,
        "description": f"Newest state of every key of `{source_name}`, deleted keys included. {order}"
        if table.keys
        else (
            f"Change log of `{source_name}`, which has no key: every change as it came. Name a key to get a table of"
            f" rows. {order}"
        ),
        "columns": metadata if table.keys else columns + metadata,
        "data_tests": [no_log_reset],
    }
    models = [staging_model, silver_model]
    if table.keys:
        silver_model["data_tests"] = [
            {"unique_key": {"arguments": {"columns": list(keys)}}},
            {"newest_change_wins": {"arguments": {"changes": f"ref('{staging}')", "keys": list(keys)}}},
            no_log_reset,
        ]
        if connector["snapshot_has_one_position"] == "true" and not table.shard:  # shards have a snapshot each
            arguments = {"changes": f"ref('{staging}')", "keys": list(keys)}
            silver_model["data_tests"].append({"no_row_missed_by_snapshot": {"arguments": arguments}})
        named = ", ".join(f"`{_plain(name)}`" for name in keys)
        models.append(
            {
                "name": live,
                "description": (
                    f"The rows that `{source_name}` has in the source, under its own column names. Key: {named}."
                ),
                "columns": columns,
            }
        )
    return dump_in_lines({"version": 2, "models": models})


def _description(table: TableSeen, name: str) -> str:
    """What a column is: whether it is part of the key, what the source says of it, and its type in the events."""
    (kept,) = table.kept([name])
    comment = table.comments.get(name, "")
    sentences = [
        "Key." if name in table.keys else "",
        comment if comment.endswith((".", "!", "?")) or not comment else f"{comment}.",
        f"{table.columns[name]} in the events{'' if kept == name else f', where it is named {_plain(name)}'}.",
    ]
    return " ".join(filter(None, sentences))


# The models of a system as a whole: name → its description, with the system to be filled in, and its columns.
MONITORING: dict[str, tuple[str, dict[str, str]]] = {
    "event_counts": (
        "What the landed records of system `{}` were, per table and batch.",
        {
            "batch": "Number of the bronze batch.",
            "source_table": "The table's name in the source; NULL for records that are no table's.",
            "kind": "What the records are, as `_cdc_kind` of the staging model says.",
            "op": (
                "The operation as Debezium's letter, which the seed `cdc_operations` explains; NULL where there is"
                " none."
            ),
            "reject_reason": "Why the records cannot be used; NULL where they can.",
            "events": "Number of such records.",
            "newest_change_at": "When the source made the newest of the changes, in UTC.",
        },
    ),
    "rejected_events": (
        "Records of system `{}` that cannot be used, why, and what they hold.",
        {
            "source_table": "The table's name in the source; NULL for a line that is no record.",
            "reason": "Why the record cannot be used. The reasons are a closed list: docs/rejects.md.",
            "event_id": "The record in bronze: topic/partition/offset, or file:line.",
            "batch": "Number of the bronze batch.",
            "key": "The Kafka key, as it came.",
            "value": "The value, as it came; of a line that is no record, the line.",
        },
    ),
    "ddl_history": (
        "The DDL statements of system `{}`, as its DDL records tell them.",
        {
            "server": "Name of the connector (`topic.prefix`).",
            "database_name": "Database of the statement.",
            "schema_name": "Schema of the statement.",
            "table_name": "Table of the change, or of the statement where no change of a table is told.",
            "renamed_from": "The name that the table had before the statement, where that renames it.",
            "kind": "The statement's first words, such as `ALTER TABLE`.",
            "ddl": "The statement.",
            "table_change": "What became of the table: `CREATE`, `ALTER` or `DROP`.",
            "primary_key": "Columns of the primary key afterwards.",
            "columns": "Columns afterwards, as the connector tells them.",
            "table_comment": "Comment of the table afterwards.",
            "default_charset": "Character set of the table's columns that name none.",
            "attributes": "Further attributes of the table, as the connector tells them.",
            "position": "Where the statement stands in the source's log, as the connector tells it.",
            "order_key": (
                "A text that sorts the statements as the source made them: by the place in its log, then by partition"
                " and offset, else by file and line. Statements without a place come first. A log that started over is"
                " not told apart."
            ),
            "event_id": "The record in bronze: topic/partition/offset, or file:line.",
            "batch": "Number of the bronze batch.",
        },
    ),
    "transactions": (
        "Transactions of system `{}`: events expected and landed.",
        {
            "transaction_id": "The transaction's own name.",
            "has_begun": "Whether its first marker has landed.",
            "has_ended": "Whether its last marker has landed.",
            "expected_events": "Number of its events, as the last marker tells; NULL before.",
            "ended_at": "Time of the last marker, in UTC.",
            "landed_events": "Number of its events that have landed.",
        },
    ),
    "lag": (
        "How late the tables of system `{}` are: the way of the newest change of each, and how long it took.",
        {
            "source_table": "The table's name in the source.",
            "changed_at": "When the source committed the change, in UTC; NULL for a table without changes.",
            "connector_at": "When the connector read it (`ts_ms` of the event); NULL if the event does not say it.",
            "kafka_at": (
                "Timestamp of the Kafka record; NULL for a bare value, and if bronze does not hold it any more."
            ),
            "landed_at": "When the change landed in bronze.",
            "merged_at": "When the change was merged; NULL before, and if the snapshot of that merge has expired.",
            "source_to_connector": "Seconds from the commit to the connector.",
            "connector_to_kafka": "Seconds from the connector to Kafka.",
            "kafka_to_landing": "Seconds from Kafka to bronze.",
            "landing_to_merge": "Seconds from bronze to the table.",
            "lag": "Seconds from the commit to the table. Below 0, the clock of the source is ahead.",
            "batch": "Number of the bronze batch that landed the change.",
        },
    ),
}


def _bronze_columns() -> dict[str, str]:
    return dict(re.findall(r"(\w+) \S.* comment '(.*)'", BRONZE_COLUMNS))


def _described(columns: dict[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "description": text} for name, text in columns.items()]


def _write_system(system: str, known: dict[tuple[str, ...], Declared], models: Path, done: Scaffolded) -> None:
    """The source and the models of the system as a whole."""
    tables = "".join(
        f"        {_text(table.table.name)}: [ref('{table.model('staging', system)}'),"
        f" ref('{table.model('silver', system)}')],\n"
        for table in sorted(known.values(), key=lambda declared: declared.relation)
    )
    call = (
        "{{{{ {macro}(\n    events = source('bronze', '{system}'),\n    tables = {{\n{tables}    }},\n{further}) }}}}\n"
    )
    routed = [declared.table for declared in known.values() if declared.routed]
    events = f"    routed = ref('{system}__events'),\n" if routed else ""
    counts, rejected = f"{system}__event_counts", f"{system}__rejected_events"
    ddl, transactions, lag = (f"{system}__{name}" for name in ("ddl_history", "transactions", "lag"))
    records = "{{{{ {macro}(events = source('bronze', '{system}')) }}}}\n"
    source = {
        "version": 2,
        "sources": [
            {
                "name": "bronze",
                "description": "Landed records, one table per system, byte for byte as they came.",
                "tables": [
                    {
                        "name": system,
                        "description": f"All records of system `{system}`, of all its topics.",
                        # `dbt source freshness` warns if nothing has landed for a day. The file is a person's from then
                        # on.
                        "config": {
                            "loaded_at_field": "landed_at",
                            "freshness": {"warn_after": {"count": 1, "period": "day"}},
                        },
                        "columns": _described(_bronze_columns()),
                    }
                ],
            }
        ],
    }
    counted = {"every_record_counted": {"arguments": {"records": f"source('bronze', '{system}')"}}}
    properties = {
        "version": 2,
        "models": [
            {"name": f"{system}__{name}", "description": told.format(system), "columns": _described(columns)}
            | ({"data_tests": ["rejected_share", counted]} if name == "event_counts" else {})
            for name, (told, columns) in MONITORING.items()
        ],
    }
    config = (
        "{{ config(materialized = 'incremental', incremental_strategy = 'debezium_merge', file_format = 'iceberg')"
        " }}\n\n"
    )
    files = {
        f"bronze/{system}.yml": dump(source),
        f"monitoring/{system}/{counts}.sql": (
            config + call.format(macro="debezium_event_counts", system=system, tables=tables, further="")
        ),
        f"monitoring/{system}/{rejected}.sql": call.format(
            macro="debezium_rejected_events", system=system, tables=tables, further=events
        ),
        f"monitoring/{system}/{ddl}.sql": records.format(macro="debezium_ddl_history", system=system),
        f"monitoring/{system}/{transactions}.sql": records.format(macro="debezium_transactions", system=system),
        f"monitoring/{system}/{lag}.sql": call.format(macro="debezium_lag", system=system, tables=tables, further=""),
        f"monitoring/{system}/{system}__monitoring.yml": dump(properties),
    }
    events = f"staging/{system}/{system}__events"
    if routed:
        files |= _events_model(system, events, routed)
    else:
        (models / f"{events}.sql").unlink(missing_ok=True)
        if _says(models / f"{events}.yml", _events_properties(system)):
            (models / f"{events}.yml").unlink()
    for name, text in files.items():
        path = models / name
        # The YAML of a system as a whole says the same for ever: if the file says something else, somebody edited it.
        if not (path.exists() if path.suffix == ".yml" else _says(path, text)):
            put(path, text)
            if path.suffix == ".sql":
                done.written.append(path.stem)


def _says(path: Path, text: str) -> bool:
    return path.exists() and path.read_text(encoding="utf-8") == text


def _events_model(system: str, path: str, routed: list[TableSeen]) -> dict[str, str]:
    """The files of the model that the staging models of tables with shared topics read."""
    topics = sorted(set[str]().union(*(table.topics for table in routed)))
    materialized = "materialized = 'incremental', incremental_strategy = 'debezium_merge', file_format = 'iceberg'"
    return {
        f"{path}.sql": (
            f"{{{{ config({materialized}, partition_by = 'source_table') }}}}\n\n"
            "{{ debezium_events(\n"
            f"    events = source('bronze', '{system}'),\n"
            f"    topics = {quoted_list(topics)},\n"
            f"    connector = {_text(min(table.connector for table in routed))},\n"
            ") }}\n"
        ),
        f"{path}.yml": _events_properties(system),
    }


def _events_properties(system: str) -> str:
    columns = {
        **{name: told for name, told in _bronze_columns().items() if name != "error"},
        "source_table": "The table that the record names, as a JSON array of names; NULL where it names none.",
        "kind": "What a record is that names no table.",
        "error": "Why a record that names no table cannot be used.",
    }
    properties = {
        "name": f"{system}__events",
        "description": (
            f"The records of the topics of system `{system}` that carry several tables, each with its table."
        ),
        "columns": _described(columns),
    }
    return dump({"version": 2, "models": [properties]})


def _plain(name: str) -> str:
    """A name without what dbt would render or YAML readers would stumble over in a description."""
    return re.sub(r"[{}%#\x00-\x1f`]", "_", name)


def _text(text: str) -> str:
    """A Jinja string literal, also of a text that holds quotes, backslashes or braces."""
    return (
        "'" + text.encode("unicode_escape").decode("ascii").replace("'", "\\'") + "'" if _is_odd(text) else f"'{text}'"
    )


def _is_odd(text: str) -> bool:
    return any(character in "'\\{}" or ord(character) < 32 or ord(character) == 127 for character in text)


def quoted_list(names: Any) -> str:
    return "[" + ", ".join(_text(name) for name in names) + "]"
