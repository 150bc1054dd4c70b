"""Tables that have models, as their YAML and the text of their staging models declare them."""

import ast
import re
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from scripts.errors import LakehouseError
from scripts.schema import TableSeen, columns_digest
from scripts.spark import read_yaml


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
    declared = [found for path in paths if (found := declared_table(system, path, path.stem)) is not None]
    return {found.table.identity: found for found in declared}


def declared_table(system: str, path: Path, model: str) -> Declared | None:
    """The table that a file of YAML declares; None of a file that declares none.

    Raises:
        LakehouseError: somebody wrote what is no YAML, or no declaration.
    """
    try:
        return declared_in(read_yaml(path), path, model.removeprefix(f"{system}__"))
    except (yaml.YAMLError, AttributeError, KeyError, TypeError, ValueError) as error:
        is_yaml = not isinstance(error, yaml.YAMLError | UnicodeDecodeError)
        problem = "its meta.debezium is not of the form that make run writes" if is_yaml else "it is no YAML"
        raise LakehouseError(
            f"{path}: {problem} ({' '.join(str(error).split())}). Correct it, and run again."
        ) from error


def declared_in(content: Any, path: Path, relation: str) -> Declared | None:
    _, meta = holding_model(content)
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
        schemas=_schemas(meta),
        renamed=meta.get("renamed", {}),
    )
    comments = meta.get("comments") or {}
    table.comments = dict(zip(table.in_events(comments), comments.values(), strict=True))
    table.columns = dict(zip(table.in_events(meta["columns"]), meta["columns"].values(), strict=True))
    table.keys = table.in_events(meta["keys"])
    table.message_keys = meta.get("message_keys") or ([table.keys] if table.keys else [])
    return Declared(relation, table, meta.get("routed", False), meta.get("epochs", []))


def holding_model(content: Any) -> tuple[str, dict[str, Any]]:
    """The model of a file of YAML whose `meta` declares a table, and what it says; nothing if there is none."""
    for described in (content or {}).get("models") or []:
        meta = ((described.get("config") or {}).get("meta") or {}).get("debezium")
        if meta:
            return described["name"], meta
    return "", {}


def _schemas(meta: dict[str, Any]) -> dict[int, dict[str, str]]:
    """The schema blocks that were compared with the columns, unless somebody has declared others since."""
    told = meta.get("schemas") or {}
    if meta.get("schemas_for") != columns_digest(meta["columns"]):
        return {}
    return {int(schema): told[schema] if isinstance(told, dict) else {} for schema in told}


def _misread(told: Any, path: Path) -> dict[str, list[str]]:
    lists = list(told.values()) if isinstance(told, dict) else [None]
    if not all(isinstance(kinds, list) and all(isinstance(kind, str) for kind in kinds) for kinds in lists):
        raise LakehouseError(
            f"{path}: misread is {told!r}; expected columns with lists of types, as {{'price': ['Decimal(8,2)']}}."
        )
    return {str(name): kinds for name, kinds in told.items()}


def declared_columns(system: str, declared: Declared, models: Path) -> dict[str, str]:
    """The columns of a table as its staging model has them, which somebody may have edited."""
    columns: dict[str, str] = argument(system, declared, models, "columns", dict)
    return dict(zip(declared.table.in_events(columns), columns.values(), strict=True)) or declared.table.columns


def argument(system: str, declared: Declared, models: Path, name: str, kind: type) -> Any:
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
