"""By what a row is identified: keys of messages, those that KEYS names, and shards."""

import re

from scripts.debezium_types import SEVERAL
from scripts.declared import Declared
from scripts.errors import LakehouseError, UsageError
from scripts.observe import Bronze, digest_of_keys
from scripts.schema import SHARD, TableSeen


def key_wanted(table: TableSeen, declared: Declared | None, keys: dict[str, list[str]], used: set[str]) -> list[str]:
    columns = {**(declared.table.columns if declared else {}), **table.columns}
    name, key = key_named(table, keys)
    used |= {name} - {""}
    missing = [column for column in key if column not in columns]
    if missing and columns:
        raise UsageError(f"KEYS: table {table.name} has no column {', '.join(missing)}; it has {', '.join(columns)}.")
    several = next((column for column in key if SEVERAL in columns.get(column, "")), None)
    if several is not None:
        raise UsageError(
            f"KEYS: column {several} of table {table.name} is {columns[several]}, and a column of a key has one type."
            " Name other columns."
        )
    if key and table.connector == "mongodb" and key != ["_id"]:
        raise UsageError(f"KEYS: {table.name} is a collection, and its documents are identified by _id. Leave it out.")
    return key


def key_named(table: TableSeen, keys: dict[str, list[str]]) -> tuple[str, list[str]]:
    """The name by which KEYS has a table, with or without what stands before it, and its key there."""
    names = (".".join(table.identity[at:]) for at in range(len(table.identity)))
    return next(((name, keys[name]) for name in names if name in keys), ("", []))


def keys_other_than(keys: list[list[str]], known: list[list[str]]) -> list[list[str]]:
    return [key for key in keys if set(key) not in [set(other) for other in known]]


def key_argument(table: str, columns: list[str]) -> str:
    """What to give as KEYS in a shell. Names with spaces or quotes are quoted once more."""
    part = f"{table}={','.join(columns)}"
    if re.search("[\\s'\"]", part):
        part = f"'{part}'" if '"' in part else f'"{part}"'
    return "'" + part.replace("'", "'\"'\"'") + "'"


def name_shards(
    system: str, seen: TableSeen, declared: Declared | None, wanted: list[str], servers: str | None
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
    if seen.connector == "mongodb" or seen.connector.startswith("flattened"):
        told = "is a collection" if seen.connector == "mongodb" else "has flattened rows"
        raise UsageError(f"SERVERS: {seen.name} {told}; give the events of each connector a SYSTEM of their own.")
    taken = {name.lower() for name in (*seen.columns, *(known.columns if known else ()))}
    column = shard or ("shard" if "shard" not in taken else "_shard")
    seen.columns = {column: SHARD, **seen.columns}
    unsharded = wanted or ([] if shard else known.keys if known else seen.keys)
    return [column, *unsharded] if unsharded else []


def check_built_by_others(bronze: Bronze, new: Declared) -> None:
    """Raise a `LakehouseError` where a table without models was built under another key: its models are not here."""
    silver = new.model("silver", bronze.system)
    stored = bronze.stored_keys(silver)
    if stored is not None and stored != digest_of_keys(new.table.kept(new.table.keys)):
        raise LakehouseError(
            f"system {bronze.system}, table {new.table.name}: silver.{silver} is there and was built under another key"
            " than its messages tell, by models that are not here. Put models/ back as it was then, or say by which"
            f" columns a row is identified: KEYS={key_argument(new.table.name, new.table.keys or ['<column>'])}."
        )
