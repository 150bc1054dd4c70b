"""Formats of changes that are not Debezium's JSON, by which a run says what it was given."""

import base64
from typing import Any

from scripts.dialects import DIALECTS
from scripts.errors import LakehouseError
from scripts.flattened import Payload, is_marked_row
from scripts.values import parsed


def foreign_text(text: str) -> str | None:
    """The name of what a value is that is no JSON object but has an event inside; None: it has none."""
    if text.startswith("\0"):
        is_event = _is_event(parsed(text[5:]))
        return "JSON behind the five bytes of a schema registry (set JsonConverter)" if is_event else None
    inner = parsed(text)
    if isinstance(inner, str):
        inner = parsed(inner)
    if _is_event(inner):
        return "JSON in a JSON text (a converter wrote as text what was JSON already)"
    if not text.startswith(("e", "AAAA")):  # which are {, and the zero byte of a schema registry, in base64
        return None
    try:
        decoded = base64.b64decode(text, validate=True).decode("utf-8", "replace")
    except ValueError:
        return None
    return "JSON in base64 (decode key and value)" if _is_event(parsed(decoded)) else foreign_text(decoded)


def _is_event(value: Any) -> bool:
    payload = value.get("payload", value) if isinstance(value, dict) else None
    return isinstance(payload, dict) and any(dialect.recognises(payload) for dialect in DIALECTS)


def foreign_format(payload: Payload) -> str | None:
    """The name of a format of changes that is not Debezium's, or None where the record is of none that is known."""
    if "op" in payload or is_marked_row(payload):
        return None
    if len(payload) == 1 and _is_event(parsed(str(next(iter(payload.values()))))) and "payload" not in payload:
        return 'objects of one member, whose name is the key (write {"key": …, "value": …})'
    if isinstance(payload.get("value"), str) and (name := foreign_text(payload["value"])):
        return name
    if "isDdl" in payload or (isinstance(payload.get("data"), list) and "pkNames" in payload):
        return "Canal JSON (which Canal, DTS and DRS write)"
    if "op_type" in payload and "op_ts" in payload:
        return "Oracle GoldenGate JSON"
    if {"database", "table", "type", "ts"} <= payload.keys() and ("data" in payload or "sql" in payload):
        return "Maxwell JSON"
    if "specversion" in payload and ("iodebeziumop" in payload or str(payload.get("type")).startswith("io.debezium.")):
        return "CloudEvents (which Debezium's CloudEventsConverter writes; set JsonConverter)"
    return None


def refuse_foreign_formats(formats: dict[str | None, str], system: str) -> None:
    """Raise a `LakehouseError` that names the first topic whose records are of another format, if there is one.

    Args:
        formats: topic (None for bare values) → the name of the format.
    """
    for topic, name in sorted(formats.items(), key=str):
        where = f"topic {topic!r}" if topic else "files of bare values"
        raise LakehouseError(
            f"system {system}: the records of {where} are {name}, not Debezium JSON. Have their writer send Debezium"
            f" JSON, and land that under a SYSTEM of its own. They are in bronze.{system}; nothing of it is built until"
            f" they are taken away: delete from bronze.{system} where topic"
            f" {'= ' + repr(topic) if topic else 'is null'} and error is null"
        )
