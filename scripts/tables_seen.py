"""The tables that events speak of, as their schema blocks, DDL records or values show them."""

import json
import re
from collections.abc import Callable, Mapping, Sequence, Set
from types import MappingProxyType
from typing import Any

from scripts.columns_seen import OF_DDL, comments_in_schema, complete, signed_in_schema, type_from_ddl
from scripts.debezium_types import SEVERAL, wider_type
from scripts.dialects import Dialect, are_alike, dialect_of, has_one_type
from scripts.errors import LakehouseError
from scripts.flattened import is_plain_row
from scripts.foreign import foreign_format, foreign_text, refuse_foreign_formats
from scripts.keys import keys_other_than
from scripts.observe import Bronze, Event
from scripts.schema import TableSeen, has_checksum, schema_checksum
from scripts.values import key_columns, parsed, parsed_exactly

WITHOUT_ENVELOPE = (
    "They have no envelope (op, before, after): rows need CONNECTOR=flattened, messages of an outbox are no rows"
)
TAKE_AWAY = "Of what has landed, take away the wrong ones: delete from bronze.{} where …"
ROUTED_FROM = "__dbz__physicalTableIdentifier"  # what ByLogicalTableRouter adds to keys


def observe(
    bronze: Bronze,
    connector: str | None,
    above_batch: int,
    known: Mapping[tuple[str, ...], TableSeen] = MappingProxyType({}),
    further: Set[str] = frozenset(),
    ddl: "dict[tuple[str, ...], list[dict[str, Any]]] | None" = None,
    declared: Mapping[tuple[str, ...], Mapping[str, str]] = MappingProxyType({}),
    notes: dict[str | None, str] | None = None,
) -> list[TableSeen]:
    """The tables that events speak of, as their schema blocks, DDL records or values show them.

    Looked at are those above the batch, and all of the `further` topics.

    Args:
        known: the tables that have models. A record of a foreign format in another topic is an error; in theirs it is
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
        return ddl_up_to(bronze, above_batch, tables.keys(), topics, names)

    events = bronze.sample(above_batch, further)
    return _tables(events, connector, bronze.system, known, ddl, declared, older_ddl, notes)


def _tables(
    events: Sequence[Event],
    connector: str | None,
    system: str,
    known: Mapping[tuple[str, ...], TableSeen],
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
    plain: dict[str, set[frozenset[str]]] = {}
    for topic, text, key, offset in events:
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
            if is_plain_row(payload):
                plain.setdefault(topic, set()).add(frozenset(payload))
            continue
        identity = dialect.identity(payload, topic)
        if not identity:  # no table can be told; where the topic has one, its model says what is wrong with the event
            continue
        table = tables.setdefault(identity, TableSeen(dialect.connector, identity))
        _refuse_other_connector(system, table, dialect)
        dialects.setdefault(identity, dialect)
        columns = _take(value, payload, topic, key, key is None and offset is not None, dialect, table, rows)
        table.schemas |= {schema_checksum(text): columns} if columns and has_checksum(text) else {}
    of_tables = [topic for table in [*known.values(), *tables.values()] for topic in table.topics]
    refuse_foreign_formats({topic: name for topic, name in foreign.items() if topic not in of_tables}, system)
    notes.update(dict.fromkeys(plain, WITHOUT_ENVELOPE))
    _complete_all(tables, dialects, rows, ddl, declared, older_ddl)
    _refuse_both_forms(system, tables, known, plain)
    return [tables[identity] for identity in sorted(tables)]


def _refuse_other_connector(system: str, table: TableSeen, dialect: Dialect) -> None:
    if not are_alike(table.connector, dialect.connector):
        raise LakehouseError(
            f"system {system}, table {table.name}: its events are of connectors {table.connector!r} and"
            f" {dialect.connector!r}. Give each connector's events a SYSTEM of their own. {TAKE_AWAY.format(system)}"
        )


def _refuse_both_forms(
    system: str,
    seen: Mapping[tuple[str, ...], TableSeen],
    known: Mapping[tuple[str, ...], TableSeen],
    plain: Mapping[str, Set[frozenset[str]]],
) -> None:
    """Raise a `LakehouseError` where `ExtractNewRecordState` was switched on or off in a topic: its rows would be those
    of two tables, or rejected, and the deletes of flattened ones be nothing.

    Args:
        plain: topic → the names of each row that nothing marks as a flattened one.
    """
    for table in {**seen, **known}.values():
        others = [one for one in seen.values() if one.identity not in known and one.is_flat != table.is_flat]
        both = {topic for other in others for topic in other.topics & table.topics}
        for topic in () if table.is_flat else plain.keys() & table.topics:
            columns, keys = table.columns.keys(), set(table.keys)
            found = [names for names in plain[topic] if keys <= names and names & columns]
            both |= {topic} if any(names <= columns or columns <= names for names in found) else set()
        if both:
            raise LakehouseError(
                f"system {system}, table {table.name}: topic {min(both)} has rows in envelopes, and flattened ones, as"
                " where ExtractNewRecordState is switched on. Give those that came later a SYSTEM of their own, which"
                f" begins with a snapshot of the whole table. {TAKE_AWAY.format(system)}"
            )


def _take(
    value: dict[str, Any],
    payload: dict[str, Any],
    topic: str,
    key: str | None,
    is_keyless: bool,
    dialect: Dialect,
    table: TableSeen,
    rows: dict[tuple[str, ...], list[dict[str, Any]]],
) -> dict[str, str]:
    """Take what an event says of its table. Returns the columns that its schema block describes."""
    identity = table.identity
    table.topics.add(topic)
    table.servers |= {dialect.server(payload)} - {""}
    table.source_tables |= {dialect.source_table(payload)} - {""}
    table.tells_deletes = table.tells_deletes or dialect.tells_deletes(payload)
    table.comments |= comments_in_schema(value.get("schema"), dialect)
    table.signed |= signed_in_schema(value.get("schema"), dialect)
    columns = dialect.described(value.get("schema"))
    if columns:
        table.types_from = "schema block"
    for column, kind in columns.items():
        table.columns[column] = wider_type(table.columns.get(column, kind), kind)
        table.kinds.setdefault(column, set()).add(kind)
    for image in (dialect.image(payload, "after"), dialect.image(payload, "before") if table.columns else None):
        if image is not None:
            rows.setdefault(identity, []).append(image)
    columns_of_key = dialect.keys(payload, value.get("schema")) or key_columns(parsed(key))
    if dialect.deletes_partitions and payload.get("op") == "d":  # its message has a part of the key
        columns_of_key = []
    if identity != (topic,):  # the event names its table: the parts that a router joined are tables of their own
        columns_of_key = [name for name in columns_of_key if name != ROUTED_FROM]
    has_image = any(dialect.image(payload, side) is not None for side in ("after", "before"))
    if columns_of_key or (is_keyless and has_image and dialect.has_keys_of_messages):
        table.message_keys += keys_other_than([columns_of_key], table.message_keys)
    return columns


def _complete_all(
    tables: dict[tuple[str, ...], TableSeen],
    dialects: dict[tuple[str, ...], Dialect],
    rows: dict[tuple[str, ...], list[dict[str, Any]]],
    ddl: dict[tuple[str, ...], list[dict[str, Any]]],
    declared: Mapping[tuple[str, ...], Mapping[str, str]],
    older_ddl: "Callable[[Mapping[tuple[str, ...], TableSeen]], Mapping[tuple[str, ...], Any]]",
) -> None:
    """Give tables what DDL records, values and each other tell of their columns."""
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
    type_from_ddl(tables, rows, {**ddl, **{identity: older[identity] + ddl.get(identity, []) for identity in older}})
    for identity, table in sorted(
        tables.items(), key=lambda item: item[1].types_from != "schema block"
    ):  # others learn from these
        complete(table, rows.get(identity, []), tables)
        table.columns = {
            name: kind.partition(SEVERAL)[0] if has_one_type(table, name) else kind
            for name, kind in table.columns.items()
        }
        described, table.columns = table.columns, dialects[identity].columns(table.columns)
        table.comments = {name: table.comments[name] for name in table.columns if name in table.comments}
        # What the dialect knows better than the schema block is not what events write.
        as_described = {name for name in described if table.columns.get(name) == described[name]}
        table.kinds = {name: kinds for name, kinds in table.kinds.items() if name in as_described}
        table.schemas = {
            schema: {name: kind for name, kind in kinds.items() if name in as_described}
            for schema, kinds in table.schemas.items()
        }


def ddl_up_to(
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
