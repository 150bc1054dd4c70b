"""The histories of connectors are like the events of their documentation."""

import json
import re
from pathlib import Path

from captures import records
from conftest import REPOSITORY, corpus
from event_factory import PLACEHOLDER
from histories import EXPECTED, SAMPLE, Record, sample_lines, sent_with
from test_connectors import SHARED, shared_history
from test_vendors import EVENTS, EXAMPLES

COMMON = "before after source op ts_ms transaction version connector name snapshot db"


def shown_by(records: list[Record]) -> set[tuple[str, str]]:
    """What events show of their connector: connector and column of the table of connectors."""
    from scripts.dialects import DIALECTS

    found = set()
    columns = {"c": "create", "r": "snapshot", "u": "update", "d": "delete", "t": "truncate"}
    for record in records:
        value = json.loads(record["value"]) if isinstance(record["value"], str) else record["value"]
        value = (value or {}).get("payload", value) or {}
        names = [dialect.connector for dialect in DIALECTS if dialect.recognises(value)][:1]
        source, before, after = (value.get(member) or {} for member in ("source", "before", "after"))
        told = {"order", columns.get(str(value.get("op") or value.get("OPERATION"))[:1].lower())}
        told |= {"DDL"} if value.get("tableChanges") is not None else set()
        told |= {"truncate"} if "TRUNCATE" in (value.get("ddl") or "") else set()
        told |= {"snapshot"} if str(source.get("snapshot")).lower() not in ("none", "false") else set()
        told |= {"left out"} if PLACEHOLDER in json.dumps(value) or None in after.values() else set()
        told |= {"transactions"} if (value.get("transaction") or {}).get("id") else set()
        moves = any("newkey" in header["key"] for header in record.get("headers") or [])
        told |= {"key change"} if moves or {*before} & {*after} and before.get("id") != after.get("id") else set()
        found |= {(name, column) for name in names for column in told if column}
    return found


FORKS = {
    "ticdc": f"{COMMON} table server_id gtid file pos row thread query commit_ts cluster_id",
    "yugabytedb": f"{COMMON} sequence schema table txId lsn commit_time record_time tablet_id partition_id origin_id",
    "opengauss": f"{COMMON} sequence schema table txId lsn xmin",
    "src_ibmi": f"{COMMON} sequence ts_us ts_ns receiver receiver_library",
    "cockroachdb": (
        "after key source op ts_ns changefeed_sink cluster_id cluster_name database_name db_version job_id node_id"
        " node_name origin primary_keys schema_name source_node_locality table_name crdb_internal_table_id ts_hlc"
        " mvcc_timestamp"
    ),
}


def test_the_sample_is_made_of_these_histories() -> None:
    assert SAMPLE.read_text(encoding="utf-8") == sample_lines()


def test_histories_have_every_member_that_the_documentation_shows() -> None:
    made: dict[str, set[str]] = {}
    for events, _ in EXPECTED.values():
        for record in events.records:
            value = json.loads(record["value"] or "{}")
            value = value.get("payload", value)
            made.setdefault(events.connector, set()).update(value, (value.get("source") or {}))
    compared = set()
    for line in (corpus("debezium_docs_examples") / "examples.jsonl").read_text(encoding="utf-8").splitlines():
        sample = json.loads(line)
        if sample["kind"].startswith("op=") and sample["connector"] in (
            "cassandra",
            "db2",
            "informix",
            "spanner",
            "vitess",
            "yashandb",
        ):
            value = json.loads(sample["value"]) if isinstance(sample["value"], str) else sample["value"]
            value = value.get("payload", value)
            if source := value.get("source"):
                assert not {*value, *source} - made[sample["connector"]], sample["doc"]
                compared.add(sample["connector"])
    assert len(compared) == 6

    of_its_time = [
        json.loads(line) for line in (corpus("vendor_tencent_postgresql") / "events.jsonl").open(encoding="utf-8")
    ]
    rows = [value for one in of_its_time if (value := json.loads(one["value"])["payload"])["op"] in ("c", "u", "d")]
    assert all(
        {*value, *value["source"]} <= made["postgresql"] for value in rows
    )  # openGauss writes what Debezium 1.9 did
    for name, members in FORKS.items():
        values = [(record["key"], json.loads(record["value"] or "{}")) for record in EXPECTED[name][0].records]
        key, update = next((key, value) for key, value in values if value.get("payload", {}).get("op") == "u")
        assert {*update["payload"], *update["payload"]["source"]} == set(members.split()), name
        assert set(update) == {"schema", "payload"} and (key is None or set(json.loads(key)) == set(update)), name


def test_cells_of_the_table_of_connectors_lead_to_tests_with_such_events_of_the_connector() -> None:
    """Of the tests that many connectors share; a cell may lead to others besides."""
    of_histories = [record for events, _ in EXPECTED.values() for record in events.records]
    of_histories += [record for events, _ in EXPECTED.values() for record in sent_with(events)]
    shown = {
        "hist": shown_by(of_histories),
        "shuf": shown_by(of_histories),
        "shared": shown_by([record for name, also in SHARED.items() for record in shared_history(name, also).records]),
        **{
            label: shown_by(
                [json.loads(line) for name in names for line in (EVENTS / f"{name}.jsonl").open(encoding="utf-8")]
            )
            for label, names in (("ex", EXAMPLES), ("cap", ("shop", "billing")), ("shufcap", ("shop", "billing")))
        },
    }
    page = (REPOSITORY / "docs" / "connectors" / "README.md").read_text(encoding="utf-8")
    (header,) = re.findall(r"^[|] connector .*[|]$", page, re.MULTILINE)
    columns = ["order", *(name.strip() for name in header.strip("|").split("|")[2:])]
    rows = re.findall(r"^[|] \[[^|]*[.]md\)(.*?) [|] (.*) [|]$", page, re.MULTILINE)
    wrong = []
    for told, cells in rows:
        for column, cell in zip(columns, cells.split(" | "), strict=True):
            links = re.findall(r"\[([^]]+)\]\[(\w+)\]", cell)
            wanted = {"unavailable values": "left out"}.get(column, "create" if "as creates" in cell else column)
            names = set(re.findall(r"`(\w+)`", told)) - {"flattened"}  # whose rows have no envelope
            having = {name for name in names for _, label in links if (name, wanted) in shown.get(label, ())}
            others = [label for _, label in links if label not in shown]
            in_part = "–" in cell or others
            if names and links and having != names and not (having and in_part or len(others) == len(links)):
                wrong.append((told, column, cell, names - having))
    assert len(rows) == len(list((REPOSITORY / "docs" / "connectors").glob("*.md"))) - 1
    assert wrong == []


def test_the_captures_hold_what_the_stories_say() -> None:
    for system in ("shop", "billing"):
        ops = {
            json.loads(r["value"]).get("payload", json.loads(r["value"])).get("op")
            for r in records(system)
            if r["value"]
        }
        assert {"r", "c", "u", "d", "t"} <= ops
        assert Path(EVENTS / f"{system}.jsonl").stat().st_size < 1_000_000
