"""What becomes of the models of a table when its events have new columns, topics or keys, or somebody edited them."""

from collections.abc import Callable, Set
from dataclasses import replace
from pathlib import Path

from scripts import runs
from scripts.debezium_types import SEVERAL, reads, widest_type
from scripts.declared import Declared, argument, declared_columns
from scripts.dialects import has_one_type
from scripts.drift import told_of_type
from scripts.errors import LakehouseError
from scripts.history import follow_keys
from scripts.keys import key_argument, keys_other_than
from scripts.literals import quoted, quoted_list
from scripts.observe import Bronze
from scripts.scaffolded import Scaffolded, tell_doubts
from scripts.schema import DOCUMENT, RESERVED, TableSeen
from scripts.table_models import render
from scripts.written_models import is_untouched, write_models, write_properties


def update_table(
    system: str,
    declared: Declared,
    seen: TableSeen,
    wanted: list[str],
    models: Path,
    done: Scaffolded,
    has_rows_without_schema: Callable[[Set[str]], bool] = lambda _: False,
) -> None:
    """Take new columns, topics and a key that was asked for into the models of a table.

    Args:
        has_rows_without_schema: of some topics. A table that has them keeps the types that are declared: where a column
            has two, such rows are rejected.
    """
    table = declared.table
    # Whoever wants the fields alone takes the document out of the columns.
    added = {name: kind for name, kind in seen.columns.items() if name not in table.columns and kind != DOCUMENT}
    other_keys = keys_other_than(seen.message_keys, table.message_keys)
    retyped = _widened(table, seen, has_rows_without_schema) if is_untouched(system, declared, models) else {}
    _tell_other_types(system, declared, seen, models, done, retyped)
    keys = wanted or table.keys
    topics = table.topics | seen.topics
    if any(other_keys) and not keys:
        told = key_argument(table.name, next(filter(None, other_keys)))
        done.notes.append(f"{table.name}: its messages have a key now; KEYS={told} makes the change log a table")
    # That messages have no key at all was accepted before, or `check_drift` would have refused it.
    accepted = [*table.message_keys, *(key for key in other_keys if wanted or keys and not key)]
    before = replace(declared, table=replace(table, renamed=dict(table.renamed)))
    _check_edited_key(system, before, keys, models)
    _update_properties(system, declared, seen, accepted if keys == table.keys else table.message_keys, models)
    if not added and not retyped and keys == table.keys and topics == table.topics:
        return
    if not is_untouched(system, before, models):
        runs.warn(system)
        done.notes.append(
            f"{table.name}: new columns {', '.join(added) or 'none'}, topics"
            f" {', '.join(sorted(topics - table.topics)) or 'none'}: its models were edited by hand, so add them there:"
            f" {_to_add(system, declared, added, topics - table.topics)}. Your edits are kept"
        )
        return
    if added:
        done.notes.append(f"{table.name}: new columns {', '.join(added)}")
        tell_doubts(system, seen, list(added), done)
    if topics != table.topics:
        done.notes.append(_told_of_topics(table, topics))
    if keys != table.keys:
        done.notes.append(f"{table.name}: the key is now {', '.join(keys)}; the table is rebuilt")
        done.rebuilt += [declared.model(layer, system) for layer in ("staging", "silver", "live")]
    _retype(table, retyped, done)
    table.columns |= added
    table.comments = {**table.comments, **{name: told for name, told in seen.comments.items() if name in added}}
    done.notes += table.rename_reserved()
    table.keys, table.topics, table.message_keys = keys, topics, accepted
    follow_keys(system, before, declared, models)
    write_models(system, declared, models, done)


def _update_properties(
    system: str, declared: Declared, seen: TableSeen, message_keys: list[list[str]], models: Path
) -> None:
    """What stands in the YAML of a table and changes none of its models."""
    table = declared.table
    comments = {**table.comments, **{name: told for name, told in seen.comments.items() if name in table.columns}}
    if (
        seen.servers != table.servers
        or not seen.source_tables <= table.source_tables
        or not seen.schemas.keys() <= table.schemas.keys()
        or message_keys != table.message_keys
        or comments != table.comments
    ):
        table.comments, table.message_keys, table.servers = comments, message_keys, seen.servers
        table.source_tables = table.source_tables | seen.source_tables
        table.schemas |= seen.schemas
        write_properties(system, declared, models)


def _retype(table: TableSeen, retyped: dict[str, str], done: Scaffolded) -> None:
    for name, kind in retyped.items():
        by_block = " each event is read as its schema block says," if SEVERAL in kind else ""
        done.notes.append(
            f"{table.name}: column {name} was {table.columns[name]}; new events have another type: it is {kind},"
            f"{by_block} and the table is rebuilt"
        )
        for kinds in table.schemas.values():  # those that were compared before had the type that is declared
            kinds.setdefault(name, table.columns[name])
    table.columns = {**table.columns, **retyped}


def _widened(table: TableSeen, seen: TableSeen, has_rows_without_schema: Callable[[Set[str]], bool]) -> dict[str, str]:
    """Columns whose new events have a type that is not declared, and the type that holds both."""
    found = {}
    for name, known in table.columns.items():
        kinds = {
            kind
            for kind in seen.kinds.get(name, ())
            if (name in seen.signed or not table.says_more(name, known, kind))
            and kind not in table.misread.get(name, [])
        }
        wide = widest_type(known, kinds)
        if seen.types_from == "values" and (known, seen.columns.get(name)) == ("int64", "number"):
            wide = "number"  # whole numbers first, fractions later
        if wide != known and (SEVERAL not in wide or not has_one_type(table, name)):
            found[name] = wide
    several = {name for name, kind in found.items() if SEVERAL in kind and SEVERAL not in table.columns[name]}
    if several and has_rows_without_schema(table.topics | seen.topics):
        return {name: kind for name, kind in found.items() if name not in several}
    return found


def _tell_other_types(
    system: str, declared: Declared, seen: TableSeen, models: Path, done: Scaffolded, retyped: dict[str, str]
) -> None:
    """Note columns whose new events, or values, are of another type than declared."""
    table = declared.table
    changed = {}
    if seen.types_from == "schema block":
        columns = declared_columns(system, declared, models)
        changed = {
            name: kind
            for name, kind in seen.columns.items()
            if columns.get(name, kind) != kind
            and name not in retyped
            and not table.says_more(name, columns[name], kind)
            and not all(reads(columns[name], one) for one in kind.split(SEVERAL))
            and kind not in table.misread.get(name, [])
        }
    done.notes += [told_of_type(table.name, name, columns[name], kind) for name, kind in changed.items()]
    for name, kinds in seen.unlike.items():
        if (
            name not in retyped
            and table.columns.get(name, "").partition("(")[0] in kinds
            and is_untouched(system, declared, models)
        ):
            done.notes.append(
                f"{table.name}: column {name} is declared {table.columns[name]}, and new values do not look so. Compare"
                " the connector's handling modes (docs/types.md), and correct `columns` in the staging model; the next"
                " run builds anew"
            )


def _told_of_topics(table: TableSeen, topics: Set[str]) -> str:
    return (
        f"{table.name}: new topics {', '.join(sorted(topics - table.topics))}. If its connector has no position, the"
        " offsets of all topics are compared: declare an epoch from offset 0 of a topic that follows another one"
        " (docs/operating.md#when-the-sources-positions-start-over)"
    )


def _check_edited_key(system: str, before: Declared, keys: list[str], models: Path) -> None:
    """Raise a `LakehouseError` where models that were edited by hand would get another key."""
    table = before.table
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


def _to_add(system: str, declared: Declared, columns: dict[str, str], topics: Set[str]) -> str:
    """What is to be written into models that were edited by hand, and where."""
    staging, silver = (f"models/{one}/{system}/{declared.model(one, system)}.sql" for one in ("staging", "silver"))
    types = ", ".join(f"{quoted(name)}: {quoted(kind)}" for name, kind in columns.items())
    names = ", ".join(map(quoted, columns))
    told = [f"{types} to columns in {staging}, {names} to columns in {silver}"] if columns else []
    return " and ".join([*told, *([f"{quoted_list(sorted(topics))[1:-1]} to topics in {staging}"] if topics else [])])


def follow_text(system: str, declared: Declared, models: Path) -> None:
    """Take topics and columns that somebody added to a staging model into its YAML: by these it is chosen, and finds
    what is new.
    """
    table = declared.table
    topics = set(argument(system, declared, models, "topics", list))
    columns = declared_columns(system, declared, models)
    if topics > table.topics or columns.items() > table.columns.items():
        table.topics = topics if topics > table.topics else table.topics
        table.columns = columns if columns.items() > table.columns.items() else table.columns
        write_properties(system, declared, models)


def mend_names(bronze: Bronze, declared: Declared, models: Path, done: Scaffolded) -> None:
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
    write_models(bronze.system, declared, models, done)
