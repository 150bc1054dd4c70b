"""Captures of a real PostgreSQL and a real MariaDB (tests/capture) against the databases' own final rows."""

import json
import math
import re
import struct
from collections.abc import Callable, Collection
from datetime import date, datetime, timedelta
from decimal import Decimal
from ipaddress import ip_interface
from typing import Any

from conftest import REPOSITORY, Lakehouse

EVENTS = REPOSITORY / "tests" / "events"
Read = Callable[[str], list[dict[str, Any]]]

# Where the source's events do not hold what the source's table holds: table, key, column → what they hold. All else is
# compared.
HELD_INSTEAD: dict[tuple[str, str, str], Any] = {
    # Debezium sends a plain null for an unchanged TOASTed value of these types.
    ("public.certificates", "1", "exponent"): None,
    ("public.certificates", "1", "weights"): None,
    # Debezium's snapshot reads money as a double; its VariableScaleDecimal has no NaN, its array of an enum no NULL.
    ("public.all_types", "2", "c_money"): Decimal("-92233720368547760.00"),
    ("public.all_types", "4", "c_money"): Decimal("92233720368547760.00"),
    **{("public.all_types", key, name): None for key in ("4", "14") for name in ("c_numeric", "c_enums")},
    # Beyond the range of its microseconds.
    **{("public.all_types", key, "c_interval"): 2**63 - 1 for key in ("4", "14")},
    # ADD COLUMN … DEFAULT sends no events for the rows there are.
    ("billing.contracts", "2", "discount"): None,
    # Debezium takes the year 1 for a year of two digits, and escapes commas when it streams.
    **{("billing.all_types", key, "c_date"): date(2001, 1, 1) for key in ("2", "12")},
    ("billing.all_types", "14", "c_enum"): "a\\,b",
}
# Rows that are rejected, for the columns named: beyond year 9999, before year 1 or infinite. In the snapshot
# Debezium gives the first day of year 1 in another calendar. The other columns are compared in staging.
INFINITE = "c_date, c_timestamp_0, c_timestamp_3, c_timestamp, c_timestamptz, c_dates, c_timestamps, c_timestamptzs"
REJECTED = {
    "public.all_types": {
        "2": "c_date, c_timestamp_0, c_timestamp, c_timestamptz",
        "4": INFINITE,
        "12": "c_date, c_timestamp, c_timestamptz",
        "14": INFINITE,
    }
}
DAY = 86_400_000_000
MICROSECONDS = {"day": DAY, "mon": DAY * 1461 // 48, "year": DAY * 1461 // 4}  # as Debezium counts them


def records(system: str) -> list[dict[str, Any]]:
    text = (EVENTS / f"{system}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.split("\n") if line]


def expected(system: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((EVENTS / f"{system}.expected.json").read_text(encoding="utf-8"))
    return content


def same(found: Any, text: str | None, kind: str) -> bool:
    """Whether a value of a live view is the value that the database prints as `text`."""
    if found is None or text is None:
        return found is None and text is None
    if isinstance(found, bool):
        return found == (text in ("true", "t", "1"))
    if kind == "interval":
        return bool(found == interval(text))
    if isinstance(found, int):
        is_bits = kind in ("bit(5)", "bit varying(12)")  # PostgreSQL prints their digits, MariaDB the number
        return found == int(text or "0", 2 if is_bits else 10)  # of no bits the event is that of zero
    if isinstance(found, Decimal):
        return found == Decimal(text.replace("$", "").replace(",", ""))
    if isinstance(found, float):
        if kind == "float":  # MariaDB prints six digits
            return float(f"{found:.6g}") == float(text)
        if kind == "real":
            return struct.pack("f", found) == struct.pack("f", float(text)) or (math.isnan(found) and text == "NaN")
        return found == float(text) or (math.isnan(found) and text == "NaN")
    if isinstance(found, bytes | bytearray):
        if "bit" in kind:
            return int.from_bytes(found, "big") == int(text, 2 if "varying" in kind else 10)
        return bytes(found) == bytes.fromhex(text.removeprefix("\\x"))
    if isinstance(found, datetime):
        return found.replace(tzinfo=None) == datetime.fromisoformat(re.sub(r"([+-]\d\d)$", r"\1:00", text)).replace(
            tzinfo=None
        )
    if isinstance(found, date):
        return found.isoformat() == text
    if isinstance(found, list):
        items = array_items(text)
        return len(items) == len(found) and all(
            same(a, b, kind.removesuffix("[]")) for a, b in zip(found, items, strict=True)
        )
    if isinstance(found, dict):
        numbers = re.findall(r"-?(?:\d[\d.e+]*|Infinity|NaN)", text)
        name, coordinates = geometry(found["wkb"])
        given = [coordinates] + ([[found["x"], found["y"]]] if "x" in found else [])
        is_kind = name == "POINT" if kind == "point" else text.startswith(name + "(")
        return is_kind and all(same(a, b, "double") for point in given for a, b in zip(point, numbers, strict=True))
    if kind.startswith("json") or kind == "longtext":
        return bool(json.loads(found, parse_float=Decimal) == json.loads(text, parse_float=Decimal))
    if kind == "hstore":
        return bool(json.loads(found) == dict(hstore_items(text)))
    if kind.startswith("time") and "with time zone" in kind:
        clock, sign, zone_text = re.split("([+-])", text)
        hours, minutes = zone_text[:2], zone_text[2:].removeprefix(":")
        zone = timedelta(hours=int(hours), minutes=int(minutes or 0)) * (-1 if sign == "-" else 1)
        moment = datetime.fromisoformat(f"2000-01-02T{clock}") - zone
        return str(found) == (f"{moment:%H:%M:%S.%f}".rstrip("0").rstrip(".")) + "Z"
    if kind in ("inet", "cidr"):  # Debezium leaves out the mask of a single address
        return ip_interface(str(found)) == ip_interface(text)
    if kind.startswith("time"):
        return str(found) == (re.sub(r"\.?0+$", "", text) if "." in text else text)
    if kind.startswith("numeric") or kind.startswith("decimal"):
        return Decimal(found) == Decimal(text)
    if kind.startswith("char"):
        return str(found).rstrip() == text.rstrip()
    return str(found) == text


def interval(text: str) -> int:
    """The microseconds of an interval as PostgreSQL prints it."""
    total = sum(int(count) * MICROSECONDS[unit] for count, unit in re.findall(r"([+-]?\d+) (day|mon|year)s?", text))
    if clock := re.search(r"([+-]?)(\d+):(\d\d):(\d\d)(?:\.(\d+))?$", text):
        sign, hours, minutes, seconds, fraction = clock.groups()
        time = (int(hours) * 3600 + int(minutes) * 60 + int(seconds)) * 1_000_000 + int((fraction or "0").ljust(6, "0"))
        total += -time if sign == "-" else time
    return total


def geometry(wkb: bytes) -> tuple[str, list[float]]:
    """Kind and coordinates of a point, a line or a polygon in well-known binary."""
    order = "<" if wkb[0] else ">"
    kind, body = struct.unpack(order + "I", wkb[1:5])[0], wkb[5:]
    head = {1: 0, 2: 4, 3: 8}[kind]  # the number of points; before it, of a polygon, of rings
    assert (len(body) - head) % 16 == 0 and (kind < 3 or body[:4] == struct.pack(order + "I", 1)), "one ring"
    name = {1: "POINT", 2: "LINESTRING", 3: "POLYGON("}[kind]
    return name, list(struct.unpack(f"{order}{(len(body) - head) // 8}d", body[head:]))


def array_items(text: str) -> list[str | None]:
    items = re.findall(r'"((?:[^"\\]|\\.)*)"|([^,{}"]+)', text)
    return [
        unescaped(quoted) if quoted or plain == "" else (None if plain == "NULL" else plain) for quoted, plain in items
    ]


def hstore_items(text: str) -> list[tuple[str, str | None]]:
    found = re.findall(r'"((?:[^"\\]|\\.)*)"=>(?:"((?:[^"\\]|\\.)*)"|(NULL))', text)
    return [(unescaped(key), None if null else unescaped(value)) for key, value, null in found]


def unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def with_rejects(lakehouse: Lakehouse, system: str) -> set[str]:
    return {
        table for (table,) in lakehouse.sql(f"select distinct source_table from monitoring.{system}__rejected_events")
    }


def differences(
    lakehouse: Lakehouse,
    tables: dict[str, Any],
    system: str,
    skip: Collection[str] = (),
    read: Read | None = None,
    rejecting: Collection[str] | None = None,
) -> list[str]:
    """Rows and values in which the live views differ from the databases' tables, those explained above left out.

    Args:
        read: relation → its rows, where these are not all of them.
        rejecting: the tables that have rejected events, whose staging is read; None looks.
    """
    from scripts.declared import declared_tables

    found, read = [], read or lakehouse.rows
    rejecting = with_rejects(lakehouse, system) if rejecting is None else rejecting
    declared = {d.table.name: d for d in declared_tables(system, lakehouse.project / "models").values()}
    for table, content in tables.items():
        if table in skip:
            continue
        if not content["key"]:
            log = read(f"silver.`{declared[table].model('silver', system)}`")
            found += [f"{table}: {problem}" for problem in differences_of_a_log(log, content)]
            continue
        wanted = {tuple(row[key] for key in content["key"]): row for row in content["rows"]}
        rows = by_key(read(f"{system}.`{declared[table].relation}`"), content)
        staging = f"staging.`{declared[table].model('staging', system)}` where _cdc_kind = 'rejected'"
        # As often as they were delivered.
        rows_of_rejected = read(staging) if table in rejecting else []
        rejected = {tuple(str(row[key]) for key in content["key"]): row for row in rows_of_rejected}
        reasons = {key[0]: row["_cdc_reject_reason"].removeprefix("value_not_exact: ") for key, row in rejected.items()}
        if reasons != REJECTED.get(table, {}):
            found.append(f"{table}: rejected is {reasons}")
        if rows.keys() | rejected.keys() != wanted.keys() or rows.keys() & rejected.keys():
            found.append(f"{table}: keys {sorted(rows)} and rejected {sorted(rejected)} instead of {sorted(wanted)}")
            continue
        for key, row in wanted.items():
            given = rows.get(key) or rejected[key]
            inexact = reasons.get(key[0], "").split(", ")
            for column, text in row.items():
                if column in inexact:
                    is_right = given[column] is None
                elif (table, key[0], column) in HELD_INSTEAD:
                    is_right = given[column] == HELD_INSTEAD[table, key[0], column]
                else:
                    is_right = same(given[column], text, content["columns"][column])
                if not is_right:
                    found.append(f"{table} {key} {column}: {given[column]!r} instead of {text!r}")
    return found


def by_key(rows: list[dict[str, Any]], content: dict[str, Any]) -> dict[tuple[str, ...], dict[str, Any]]:
    found = {tuple(str(row[key]) for key in content["key"]): row for row in rows}
    assert len(found) == len(rows), "a key stands twice"
    return found


def differences_of_a_log(log: list[dict[str, Any]], content: dict[str, Any]) -> list[str]:
    """What a change log without a key tells: a row that was written is in the table, or was deleted, or was updated."""
    columns = content["columns"]
    # A change that was delivered again has the position of the first one; equal rows of a snapshot share theirs.
    streamed = {(row["_cdc_position"].rsplit(".", 2)[0], row["_cdc_op"]): row for row in log if row["_cdc_op"] != "r"}
    changes = [row for row in log if row["_cdc_op"] == "r"] + list(streamed.values())
    left = [row for row in changes if row["_cdc_op"] != "d"]
    found = []
    for gone in (row for row in changes if row["_cdc_op"] == "d"):
        if not take(left, [row for row in left if all(row[name] == gone[name] for name in columns)]):
            found.append(f"{gone} was deleted and never written")
    for wanted in content["rows"]:
        if not take(
            left, [row for row in left if all(same(row[name], wanted[name], kind) for name, kind in columns.items())]
        ):
            found.append(f"{wanted} is missing")
    if len(left) != sum(row["_cdc_op"] == "u" for row in changes):
        found.append(f"{left} are too many or too few for its updates")
    return found


def take(rows: list[dict[str, Any]], alike: list[dict[str, Any]]) -> bool:
    """Remove one of the rows that are alike. Whether there is one."""
    if alike:
        rows.remove(alike[0])
    return bool(alike)


def captured(system: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The DDL records of a capture, and the others."""
    ddl = [record for record in records(system) if "." not in record["topic"]]
    return ddl, [record for record in records(system) if "." in record["topic"]]


def no_shards(wanted: dict[str, Any], rows: list[dict[str, Any]]) -> set[str]:
    """Tables that shards cannot be: without a key equal rows would not be told apart, and a truncate would be one of
    all shards.
    """
    return {table for table, content in wanted.items() if not content["key"]} | {
        table_of(record) for record in rows if '"op":"t"' in (record["value"] or "")
    }


def table_of(record: dict[str, Any]) -> str:
    value = json.loads(record["value"])
    source = value.get("payload", value)["source"]
    return f"{source.get('schema') or source['db']}.{source.get('table')}"


def _declared(lakehouse: Lakehouse, system: str) -> list[Any]:
    from scripts.declared import declared_tables

    return list(declared_tables(system, lakehouse.project / "models").values())
