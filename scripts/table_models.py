"""The files of a table: staging, silver and live models, and their YAML. Plain text of one shape."""

import csv
from functools import cache
from pathlib import Path
from typing import Any

from scripts.connectors import capabilities
from scripts.declared import Declared
from scripts.keys import keys_other_than
from scripts.literals import plain, quoted, quoted_list
from scripts.schema import TableSeen, columns_digest
from scripts.written_yaml import dump_in_lines

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


def render(system: str, declared: Declared) -> dict[str, str]:
    """The files of a table below `models/`: path → text."""
    return {**models_of(system, declared), properties_path(system, declared): properties_of(system, declared)}


def properties_path(system: str, declared: Declared) -> str:
    return f"silver/{system}/{declared.model('silver', system)}.yml"


def models_of(system: str, declared: Declared) -> dict[str, str]:
    """The SQL of a table's models: path below `models/` → text."""
    table = declared.table
    staging, silver, live = (declared.model(layer, system) for layer in ("staging", "silver", "live"))
    columns, keys = dict(zip(table.kept(table.columns), table.columns.values(), strict=True)), table.kept(table.keys)
    names = "\n".join(f"        {quoted(name)}," for name in columns)
    types = "\n".join(f"        {quoted(name)}: {quoted(kind)}," for name, kind in columns.items())
    events = f"ref('{system}__events')" if declared.routed else f"source('bronze', '{system}')"
    further = ("    routed = true,\n" if declared.routed else "") + _epochs(declared)
    if table.renamed:
        named = "".join(f"        {quoted(name)}: {quoted(in_events)},\n" for name, in_events in table.renamed.items())
        further += f"    renamed = {{\n{named}    }},\n"
    files = {
        f"staging/{system}/{staging}.sql": (
            "{{ debezium_changes(\n"
            f"    events = {events},\n"
            f"    topics = {quoted_list(sorted(table.topics))},\n"
            f"    connector = {quoted(table.connector)},\n"
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
    return files


def _epochs(declared: Declared) -> str:
    if not declared.epochs:
        return ""
    lines = ""
    for epoch in declared.epochs:
        numbers = "".join(f", '{name}': {number}" for name, number in epoch.items() if name != "topic")
        lines += f"        {{'topic': {quoted(epoch['topic'])}{numbers}}},\n"
    return f"    epochs = [\n{lines}    ],\n"


def properties_of(system: str, declared: Declared) -> str:
    table = declared.table
    connector, declares = _connectors()[table.connector.partition("(")[0]], capabilities(table.connector)
    order = f"Ordered by {connector['order_by']} (`{table.connector}`, {connector['source']})."
    staging, silver, live = (declared.model(layer, system) for layer in ("staging", "silver", "live"))
    source_name = plain(table.name)
    keys = table.kept(table.keys)
    columns = [
        {"name": name, "description": _description(table, in_events), "quote": True}
        for name, in_events in zip(table.kept(table.columns), table.columns, strict=True)
    ]
    in_part = ["_cdc_patches"] if declares["form"] == "document" else []
    held = ["_cdc_held", *in_part, *(["_cdc_moves"] if declares["passes_keys_on"] else [])] if table.keys else []
    metadata = [{"name": name, "description": f"{{{{ doc('{name}') }}}}"} for name in (*METADATA, *held)]
    records = "record of" if declared.routed else "record of the topics of"
    staging_model = {
        "name": staging,
        "description": f"Every landed {records} `{source_name}`, typed: one row per record.",
        "config": {"meta": {"debezium": _meta(declared)}},
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
        named = ", ".join(f"`{plain(name)}`" for name in keys)
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


def _meta(declared: Declared) -> dict[str, Any]:
    """By what a table that has models is known again."""
    table = declared.table
    keys = table.kept(table.keys)
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
    if keys_other_than(table.message_keys, [table.keys]):  # messages are keyed otherwise, and KEYS said so
        meta["message_keys"] = [list(key) for key in table.message_keys]
    if table.servers:
        meta["servers"] = sorted(table.servers)
    if table.source_tables:
        meta["source_tables"] = sorted(table.source_tables)
    if schemas := table.known_schemas():
        meta["schemas_for"], meta["schemas"] = columns_digest(meta["columns"]), schemas
    if table.misread:
        meta["misread"] = table.misread
    if declared.routed:
        meta["routed"] = True
    if declared.epochs:
        meta["epochs"] = declared.epochs
    return meta


@cache
def _connectors() -> dict[str, dict[str, str]]:
    """Each connector with its properties, as the seed `cdc_connectors` of this version has them."""
    with (Path(__file__).resolve().parent.parent / "seeds" / "cdc_connectors.csv").open(
        encoding="utf-8", newline=""
    ) as lines:
        return {row["connector"]: row for row in csv.DictReader(lines)}


def _description(table: TableSeen, name: str) -> str:
    """What a column is: whether it is part of the key, what the source says of it, and its type in the events."""
    (kept,) = table.kept([name])
    comment = table.comments.get(name, "")
    sentences = [
        "Key." if name in table.keys else "",
        comment if comment.endswith((".", "!", "?")) or not comment else f"{comment}.",
        f"{table.columns[name]} in the events{'' if kept == name else f', where it is named {plain(name)}'}.",
    ]
    return " ".join(filter(None, sentences))
