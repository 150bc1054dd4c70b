"""Broken events by the thousand (`make soak`: a million): each lands, and is counted once, as what it is or with a
reason.
"""

import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from conftest import REPOSITORY, Lakehouse

from scripts.errors import LakehouseError

EVENTS = int(os.environ.get("SOAK_EVENTS", "2000"))
SCALAR = re.compile(r'-?\d+(?:\.\d+)?|"(?:[^"\\]|\\.)*"|true|false|null')
HOSTILE = r"""
    null true false 0 -1 1e999 -0.0 1.0E400 9223372036854775808 NaN 0x1F +1 }{ " "" {} [] {"a":{"b":[1,{"c":null}]}} [[[[[[]]]]]]
    "t" "d" "r" "initial" "9999-99-99" "\u0000" "\ud800" "__debezium_unavailable_value" "../../etc" "${jndi:ldap://x}"
"""
SCALARS = ["1" * 400, '" "', '"{{ 1/0 }}"', '"\'; drop table x; --"', *HOSTILE.split()]
GARBAGE = [chr(code) for code in (0, 10, 34, 92, 125, 233, 0x1F600)]


def broken(chance: Random, text: str) -> str:
    """A text of JSON in which something is otherwise, often so that it is still JSON."""
    for _ in range(chance.choice([1, 1, 1, 2, 5])):
        how = chance.randrange(7)
        at, length = chance.randrange(len(text) + 1), chance.choice([1, 1, 2, 10, 100])
        if how == 0:  # cut off
            text = text[:at]
        elif how == 1:  # a piece is missing
            text = text[:at] + text[at + length :]
        elif how == 2:  # a piece stands twice
            text = text[: at + length] + text[at:]
        elif how == 3:  # garbage
            text = text[:at] + "".join(chance.choice(GARBAGE) for _ in range(length % 7)) + text[at:]
        else:  # another value
            values = list(SCALAR.finditer(text))
            if values:
                found = chance.choice(values)
                text = text[: found.start()] + chance.choice(SCALARS) + text[found.end() :]
    return text


def fuzzed(chance: Random, records: list[dict[str, Any]], count: int) -> Iterator[str]:
    for number in range(count):
        record = chance.choice(records)
        which = chance.choice(["key", "value", "value", "value"])
        text = record[which]
        changed = {which: text if text is None else broken(chance, text), "offset": 1_000_000 + number}
        line = json.dumps({**record, **changed}, ensure_ascii=False)
        yield (broken(chance, line) if chance.random() < 0.02 else line).replace("\n", " ") + "\n"


@pytest.mark.loader
@pytest.mark.parametrize("system", ["shop", pytest.param("billing", marks=pytest.mark.soak)])
def test_broken_events_are_all_counted_and_none_stops_a_run(lakehouse: Lakehouse, tmp_path: Path, system: str) -> None:
    """The models are those of the whole events; the scaffold may refuse the broken ones, with a message."""
    name, seed = f"fuzzed_{system}", time.time_ns() if EVENTS > 10_000 else 7
    print(f"seed {seed}")  # shown with whatever goes wrong
    chance = Random(seed)
    events = REPOSITORY / "tests" / "events" / f"{system}.jsonl"
    whole = [record for record in map(json.loads, events.open(encoding="utf-8")) if "all_types" not in record["topic"]]
    topics = sorted({record["topic"] for record in whole})[:: 1 if EVENTS > 10_000 else 4]
    records = [record for record in whole if record["topic"] in topics or record["topic"] == system]  # and the DDL
    lakehouse.run(name, records)

    file = tmp_path / "broken.jsonl"
    count = EVENTS // 2
    with file.open("w", encoding="utf-8", errors="replace") as lines:
        lines.writelines(fuzzed(chance, records, count))
    with file.open("rb") as lines:
        blank = sum(not line.strip() for line in lines)  # cut off at the start
    landed = lakehouse.land(name, file)
    total = len(records) + landed.records
    assert landed.records + landed.repeated + blank == count, seed
    assert lakehouse.sql(f"select count(*) from bronze.{name}") == [(total,)], seed
    result = lakehouse.dbt(
        "run", "--select", *(f"path:models/{layer}/{name}" for layer in ("staging", "silver", "monitoring"))
    )
    assert result.success, (seed, [node.message for node in result.result if str(node.status) != "success"])

    counted = dict(lakehouse.sql(f"select kind, sum(events) from monitoring.{name}__event_counts group by kind"))
    # What a broken name makes another table's event is counted with that table, once the scaffold has found it in this
    # topic.
    logs = lakehouse.sql(f"show tables in staging like 'stg_{name}__*'")
    of_other = "where _cdc_kind = 'other_table' and not endswith(_cdc_event_id, '#before')"  # a key change is one event
    elsewhere = " union all ".join(f"select _cdc_event_id from staging.{log} {of_other}" for _, log, _ in logs)
    counted["other_table"] = len(lakehouse.sql(elsewhere))
    assert sum(counted.values()) == total, (seed, counted)
    assert counted["rejected"] > count // 10, (seed, counted)
    # Of a key change each half is judged, and the event is counted as its new half is.
    whole_events = f"from monitoring.{name}__rejected_events where not endswith(event_id, '#before')"
    assert lakehouse.sql(f"select count(*) {whole_events}") == [(counted["rejected"],)], seed
    documented = set(re.findall(r"^\| `(\w+)", (REPOSITORY / "docs" / "rejects.md").read_text(), re.MULTILINE))
    reasons = lakehouse.sql(f"select distinct split_part(reason, ':', 1) from monitoring.{name}__rejected_events")
    assert {reason for (reason,) in reasons} <= documented, (seed, reasons)
    silver = [path.stem for path in (lakehouse.project / "models" / "silver" / name).glob("*.sql")]
    assert lakehouse.failing(*silver, test="unique_key") == {}, seed
    try:
        lakehouse.scaffold(name)
    except LakehouseError as error:
        assert str(error).count("\n") < 20, (seed, error)
