"""Writes the models of histories: versions of a table's rows (docs/history.md)."""

from collections.abc import Collection
from pathlib import Path

from scripts.declared import Declared, declared_tables
from scripts.errors import UsageError
from scripts.files import put
from scripts.literals import quoted_list
from scripts.written_models import says
from scripts.written_yaml import dump

COLUMNS = (
    "_cdc_op",
    "_cdc_position",
    "_cdc_end_position",
    "_cdc_is_snapshot",
    "_cdc_event_id",
    "_cdc_valid_from",
    "_cdc_valid_to",
    "_cdc_valid_from_landing",
    "_cdc_is_current",
)
ALL_COLUMNS = (*COLUMNS, "_cdc_known_from", "_cdc_known_to", "_cdc_known_from_at", "_cdc_known_to_at")


def check_schemas(system: str, has_history: bool, models: Path) -> None:
    """Raise a `UsageError` if a system and the histories of another one would have one schema, or models of one name.

    Args:
        has_history: whether the system will have histories.
    """
    for before, after in (("", "_history"), ("history_", ""), ("versions_", "")):
        other, of_histories = system.removeprefix(before).removesuffix(after), f"{before}{system}{after}"
        if system == f"{before}{other}{after}" and any((models / "history" / other).glob("*.sql")):
            taken, owner = system, other
        elif has_history and (models / "staging" / of_histories).exists():
            taken, owner = of_histories, system
        else:
            continue
        raise UsageError(
            f"SYSTEM={taken}: the histories of {owner} have a schema or models of this name, and a system cannot have"
            " them too. Give the newer of the two another name."
        )


def write_history(system: str, names: Collection[str], models: Path) -> list[str]:
    """Write the models of the histories that are asked for, unless they are there. Returns the names of new models.

    Args:
        names: tables, as the source names them (`orders`, `public.orders`) or as the relation is named.
        models: the folder `models` of the project.

    Raises:
        UsageError: there is no such table, there are several, or it has no key.
    """
    tables = list(declared_tables(system, models).values())
    written = []
    for name in names:
        found = [one for one in tables if name in (one.table.name, one.relation)]
        found = found or [one for one in tables if name == one.table.identity[-1]]
        if len(found) != 1:
            known = ", ".join(sorted(one.table.name for one in tables)) or "none"
            raise UsageError(
                f"HISTORY={name}: {len(found) or 'no'} tables of system {system} have this name. Tables: {known}."
            )
        declared, table = found[0], found[0].table
        if not table.keys:
            raise UsageError(
                f"HISTORY={name}: {table.name} has no key, so its rows have no versions. Name one with KEYS."
            )
        for path, text in _files(system, declared).items():
            if not (models / path).exists():
                put(models / path, text)
                written += [Path(path).stem] if path.endswith(".sql") else []
    return written


def follow_keys(system: str, before: Declared, declared: Declared, models: Path) -> None:
    """Give the history of a table, if it has one that nobody has edited, the key that the table has now."""
    for path, text in _files(system, before).items():
        if says(models / path, text):
            put(models / path, _files(system, declared)[path])


def _files(system: str, declared: Declared) -> dict[str, str]:
    """The files of a history below `models/`: path → text."""
    history, versions = (f"{of}_{system}__{declared.relation}" for of in ("history", "versions"))
    table, changes = declared.table, declared.model("staging", system)
    described = (
        (history, f"All versions of the rows of `{table.name}`, and what was known of them when.", ALL_COLUMNS),
        (versions, f"The versions of the rows of `{table.name}`, as they are known now.", COLUMNS),
    )
    properties = [
        {
            "name": name,
            "description": text,
            "columns": [{"name": column, "description": f"{{{{ doc('{column}') }}}}"} for column in columns],
        }
        for name, text, columns in described
    ]
    return {
        f"history/{system}/{history}.sql": (
            f"{{{{ config(alias = '{system}__{declared.relation}') }}}}\n\n"
            "{{ debezium_history(\n"
            f"    changes = ref('{changes}'),\n"
            f"    keys = {quoted_list(table.kept(table.keys))},\n"
            ") }}\n"
        ),
        f"history/{system}/{versions}.sql": (
            f"{{{{ config(materialized = 'view', schema = '{system}_history', alias = '{declared.relation}') }}}}\n\n"
            f"{{{{ debezium_as_of(history = ref('{history}')) }}}}\n"
        ),
        f"history/{system}/{history}.yml": dump({"version": 2, "models": properties}),
    }
