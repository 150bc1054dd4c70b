"""Where new events of a table are not as its models declare it: of another connector, key or type."""

from collections.abc import Iterator, Set
from pathlib import Path
from typing import Any

from scripts.columns_seen import OF_DDL
from scripts.ddl import guessed_otherwise, is_changed, stands_for_another, types_of_ddl, written_otherwise
from scripts.debezium_types import is_misread, widest_type
from scripts.declared import Declared, declared_columns
from scripts.dialects import are_alike, has_one_type
from scripts.errors import LakehouseError
from scripts.keys import key_argument, keys_other_than
from scripts.observe import Bronze
from scripts.scaffolded import Scaffolded
from scripts.schema import TableSeen, are_alike_in_schema_blocks, is_told_by_ddl_alone
from scripts.tables_seen import TAKE_AWAY, ddl_up_to
from scripts.written_models import is_untouched as models_are_untouched


def check_drift(
    bronze: Bronze,
    known: dict[tuple[str, ...], Declared],
    seen: list[TableSeen],
    wanted: dict[tuple[str, ...], list[str]],
    ddl: dict[tuple[str, ...], list[dict[str, Any]]],
    above_batch: int,
    models: Path,
    done: Scaffolded,
) -> None:
    """Raise a `LakehouseError` where events cannot be read by the models that are there; note other types of DDL
    records.
    """
    system = bronze.system
    # Once schema blocks are switched off, all DDL records count: those that came meanwhile were passed over.
    switched_off = {
        table.identity
        for table in seen
        if not table.kinds and table.connector in OF_DDL and table.identity in known
        if known[table.identity].table.schemas
    }
    of_ddl = {table.identity: table.columns for table in seen if table.types_from.startswith("DDL records")}
    changed, guessed = _changed_by_ddl(bronze, known, ddl, switched_off, of_ddl, above_batch, models)
    for table in seen:
        declared = known.get(table.identity)
        _check_same_table(system, table, declared, models, changed.get(table.identity, {}))
        if not wanted[table.identity]:
            _check_same_key(bronze, table, declared)
    # Rows that are still to come may say their types themselves, as those before them did.
    told_later = {identity for identity in changed if known[identity].table.schemas} - {
        table.identity for table in seen
    }
    for identity in told_later:
        columns = declared_columns(system, known[identity], models)
        changed[identity] = {
            name: kind for name, kind in changed[identity].items() if are_alike_in_schema_blocks(kind, columns[name])
        }
    for identity in changed.keys() - {table.identity for table in seen}:
        told = TableSeen(known[identity].table.connector, identity)
        if identity not in told_later:
            told.possible = types_of_ddl({identity: (ddl[identity][-1], [])})[identity].possible
        _check_types(system, told, known[identity], models, changed[identity])
    described = {  # by a schema block, which `update_table` looks at
        (table.identity, name)
        for table in seen
        for name, kinds in table.kinds.items()
        if not any(is_told_by_ddl_alone(changed.get(table.identity, {}).get(name, ""), kind) for kind in kinds)
    }
    for identity, columns in ((identity, changed[identity] | guessed[identity]) for identity in changed):
        for name in sorted(columns):
            if (identity, name) not in described and columns[name] not in known[identity].table.misread.get(name, []):
                before = declared_columns(system, known[identity], models)[name]
                done.notes.append(told_of_type(known[identity].table.name, name, before, columns[name]))


def _check_same_table(
    system: str,
    seen: TableSeen,
    declared: Declared | None,
    models: Path,
    changed: dict[str, str],
) -> None:
    """Raise a `LakehouseError` where new events are of another connector than the table, or of other types."""
    if declared and not are_alike(declared.table.connector, seen.connector):
        raise LakehouseError(
            f"system {system}, table {seen.name}: new events are of connector {seen.connector!r}, its models are for"
            f" {declared.table.connector!r}. Give these events a SYSTEM of their own, or name their connector"
            f" (CONNECTOR). {TAKE_AWAY.format(system)}"
        )
    if declared:
        _check_types(system, seen, declared, models, changed)


def _check_same_key(bronze: Bronze, seen: TableSeen, declared: Declared | None) -> None:
    """Raise a `LakehouseError` where new messages are keyed in another way than the table, or not at all any more.

    Under a narrower key two rows of the source would become one, in silence.
    """
    if not seen.message_keys or (declared and not declared.table.keys):
        return
    known = declared.table.message_keys if declared else sorted(seen.message_keys, key=lambda key: not key)[:1]
    other = keys_other_than(seen.message_keys, [*known, declared.table.keys] if declared else known)
    if declared and [] in other and not bronze.has_keys(declared):
        other.remove([])  # messages of the table never had a key, and KEYS said by what a row is identified
    if other:
        told = " and by ".join(", ".join(key) or "nothing" for key in known + other)
        key = next(filter(None, [*reversed(other), *known]))
        unkeyed = "" if all(other) else ". If none do, give what comes without a key a SYSTEM of its own"
        narrow = next((", ".join(one) for one in known if one and set(one) < set(key)), "")
        narrow = narrow and (
            f". Deletes by {narrow} alone name no such row, unless they hold the whole row: else give what has the new"
            " key a SYSTEM of its own, which begins with a snapshot of the whole table"
        )
        raise LakehouseError(
            f"system {bronze.system}, table {seen.name}: its messages are keyed by {told}. Say which columns identify a"
            f" row, for instance KEYS={key_argument(seen.name, key)}; a table whose key changes is rebuilt{narrow}"
            f"{unkeyed}."
        )


def _changed_by_ddl(
    bronze: Bronze,
    known: dict[tuple[str, ...], Declared],
    ddl: dict[tuple[str, ...], list[dict[str, Any]]],
    all_of: Set[tuple[str, ...]],
    seen: dict[tuple[str, ...], dict[str, str]],
    above_batch: int,
    models: Path,
) -> tuple[dict[tuple[str, ...], dict[str, str]], dict[tuple[str, ...], dict[str, str]]]:
    """Of tables that have models, columns to which new DDL records give another type than declared, and the type they
    have now; the same of columns whose declared type is a guess from values, because no older DDL record has them.

    Args:
        all_of: tables of which older DDL records count too.
        seen: the types of columns in new rows, where DDL records and values tell them.
    """
    todo = {
        identity: known[identity]
        for identity in (ddl.keys() & known.keys()) | all_of
        if known[identity].table.connector in OF_DDL
    }
    if not todo:
        return {}, {}
    topics = {str(table["topic"]) for identity in todo for table in ddl.get(identity, [])}
    topics |= {server for identity in all_of for server in known[identity].table.servers}  # by which it is named
    before = ddl_up_to(bronze, above_batch, todo.keys(), topics)
    changed: dict[tuple[str, ...], dict[str, str]] = {}
    guessed: dict[tuple[str, ...], dict[str, str]] = {}
    for identity, declared in todo.items():
        columns = declared_columns(bronze.system, declared, models)
        changed[identity], guessed[identity], of_rows = {}, {}, seen.get(identity, {})
        for topic in {table["topic"] for one in (before, ddl) for table in one.get(identity, [])}:
            older, new = (
                [table for table in one.get(identity, []) if table["topic"] == topic] for one in (before, ddl)
            )
            older, new = ([], older + new) if identity in all_of else (older, new)
            if not new:
                continue
            if not declared.table.schemas:
                guessed[identity] |= guessed_otherwise(_last_columns(older), new[-1], columns, of_rows)
            new = [
                table for number, table in enumerate(new) if table not in new[number + 1 :]
            ]  # some are looked at twice
            if not older:
                for table in new[:-1]:
                    changed[identity] |= written_otherwise(table, new[-1], columns, of_rows)
                continue
            if new[-1] == older[-1] and all(
                table in older for table in new
            ):  # sent again by a connector that was restarted
                continue
            last = _last_columns(older)  # also of a column that was dropped: its values are there
            for table in [*(table for table in new[:-1] if table not in older), new[-1]]:
                changed[identity] |= written_otherwise(last, table, columns, of_rows if table is new[-1] else {})
                last = _last_columns([last, table])
    return changed, guessed


def _last_columns(tables: list[dict[str, Any]]) -> dict[str, Any]:
    """What the newest of some DDL records of a table that has a column says of it."""
    lists = [table.get("columns") for table in tables]
    columns = [column for one in lists if isinstance(one, list) for column in one if isinstance(column, dict)]
    return {"columns": list({str(column.get("name")): column for column in columns}.values())}


def _check_types(system: str, seen: TableSeen, declared: Declared, models: Path, changed: dict[str, str]) -> None:
    """Raise a `LakehouseError` where new events write a column in another way than its models read it, as other values.

    Args:
        changed: what DDL records say so of, where no schema block does.
    """
    columns = declared_columns(system, declared, models)
    is_untouched = models_are_untouched(system, declared, models)
    new = {name: kind for name, kind in seen.columns.items() if name in seen.kinds and name not in columns}
    for name, known in {**columns, **new}.items():
        by_ddl_alone = name not in seen.kinds
        misread = _misread_by_ddl if by_ddl_alone else _misread_by_blocks
        for kind, wide in misread(seen, declared.table, name, known, changed):
            if wide and is_untouched:  # `update_table` declares it
                continue
            told = "is declared" if name in columns else "is new and would be"
            raise LakehouseError(
                f"system {system}, table {seen.name}: column {name} {told} {known}, and new events have {kind},"
                " which would be read as other values. Nothing of the system is built."
                f" {_way_out(system, declared, name, kind, wide, name in columns, by_ddl_alone)}"
                " (docs/operating.md#when-a-column-changes-its-type)."
            )


def _misread_by_blocks(
    seen: TableSeen, table: TableSeen, name: str, known: str, changed: dict[str, str]
) -> Iterator[tuple[str, str]]:
    """The types in schema blocks of new events that `known` reads as other values, each with the type that holds both,
    or an empty text.
    """
    for kind in sorted(seen.kinds[name]):
        says_more = table.says_more(name, known, kind) and name not in seen.signed
        # A DDL record alone tells: the schema blocks before and after it are alike.
        by_ddl = says_more and name in changed and is_changed(changed[name], known)
        is_accepted = kind in table.misread.get(name, []) and name not in table.keys
        if not is_accepted and (by_ddl or (is_misread(kind, known) and not says_more)):
            wide = "" if by_ddl or has_one_type(table, name) else widest_type(known, seen.kinds[name])
            yield kind, "" if not wide or is_misread(kind, wide) else wide


def _misread_by_ddl(
    seen: TableSeen, table: TableSeen, name: str, known: str, changed: dict[str, str]
) -> Iterator[tuple[str, str]]:
    """The types that DDL records alone say, in the connector's default mode where nothing tells another."""
    # Each row says its types itself, those that are to come, too: a DDL record alone tells only what it cannot say.
    has_blocks = seen.kinds or (table.schemas and not seen.types_from)
    is_other = is_changed if has_blocks else stands_for_another
    kinds = {kind for kind in seen.possible.get(name, ()) if kind.partition("(")[0] == known.partition("(")[0]}
    kinds |= {changed[name]} if name in changed else set()
    for kind in sorted(kinds - set(table.misread.get(name, []))):
        if is_other(kind, known):
            yield kind, ""


def _way_out(
    system: str, declared: Declared, name: str, kind: str, wide: str, has_column: bool, by_ddl_alone: bool
) -> str:
    """What to do about a column whose new events have another type, which `wide` holds too."""
    silver, staging = (declared.model(layer, system) for layer in ("silver", "staging"))
    in_sql = "" if has_column else f" (and name it in models/silver/{system}/{silver}.sql)"
    files = f"models/staging/{system}/{staging}.sql and models/silver/{system}/{silver}.yml{in_sql}"
    if wide:
        return (
            f"Its models were edited by hand: declare it {wide!r} in {files}, and each event is read as its own schema"
            " block says"
        )
    if name in declared.table.keys:
        unsigned = f"if no value was negative, declare it {kind!r} in {files}; else " if kind == "uint64" else ""
        misread = f"write misread: {{{name!r}: [{kind!r}]}} in models/silver/{system}/{silver}.yml"
        stays = f", and for the DDL record, which stays, {misread}" if by_ddl_alone else ""
        return (
            f"It is part of the key: {unsigned}land a snapshot of the table, and what follows it, as a SYSTEM of its"
            f" own, and take these events out of this one{stays}"
        )
    return (
        f"Have a snapshot of the whole table sent, land it, and declare the newer type in {files}. There, name the"
        f" older one, whose events the snapshot replaces: misread: {{{name!r}: ['<older type>']}}. If events are"
        f" written as declared all the same, name {kind!r} there"
    )


def told_of_type(table: str, name: str, known: str, kind: str) -> str:
    others = "events that do not fit are rejected, others have what stands in the event"
    return (
        f"{table}: column {name} is declared {known}, new events have {kind};"
        f" {'values of 2^63 and above are read as negative' if kind == 'uint64' else others}."
        " Change the declaration in the staging model to take them; the next run builds the table anew."
    )
