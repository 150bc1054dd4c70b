"""Names of systems and of relations."""

import re
import unicodedata

from scripts.declared import Declared
from scripts.errors import UsageError
from scripts.scaffolded import Scaffolded
from scripts.schema import TableSeen

NAME = re.compile(r"[a-z][a-z0-9_]*\Z")
MAX_NAME = 100  # characters of a table's name that go into the names of its files
# The models of a system as a whole are named like those of tables.
SYSTEM_MODELS = {"events", "event_counts", "rejected_events", "ddl_history", "transactions", "lag"}
# Schemas that hold more than one system, and names that Spark reads as a catalog.
RESERVED_SYSTEMS = {"bronze", "staging", "silver", "marts", "monitoring", "default"}
RESERVED_SYSTEMS |= {"lakehouse", "spark_catalog", "system"}


def check_system(system: str) -> None:
    """Raise a `UsageError` unless `system` can name a schema and a folder."""
    is_plain = NAME.match(system) and "__" not in system and not system.endswith("_")
    is_like_a_model = system.startswith(("stg_", "live_"))  # of another system
    if not is_plain or is_like_a_model or system in RESERVED_SYSTEMS:
        raise UsageError(
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


def relation_name(
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
