"""What `make run` says and does with what it is given."""

import gzip
import json
import random
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from conftest import Lakehouse
from event_factory import created, deleted, event, updated
from test_landing import bronze, text

from scripts.bronze import Landed
from scripts.errors import LakehouseError


def of_safe_topic(record: dict[str, Any]) -> dict[str, Any]:
    """Debezium puts no carriage return into the name of a topic."""
    return {**record, "topic": record["topic"].replace("\r", "_")}


TOPICS = ["../../x", "'; drop table y; --", "x" * 249, "q\"u`o'te", ""]


TABLES = [
    "a.b",
    "a`b",
    "'; drop table x; --",
    '../ünï😀 "\\n',
    "2024",
    "1e5",
    "null",
    "\n\t\r\x00\x07\x1b[2J\x7f\x9b\u202e",
]


HOSTILE = [
    "a.b",
    "back`tick``s",
    "quo\"te's",
    "with spaces  ",
    "next\x85line",
    "ünï😀",
    "select",
    "from",
    "'; drop table x; --",
    "../x",
    "back\\slash\\n",
    "a,b",
    "$.a[0]",
    "{braces}",
    "} {",
    "-- /*",
    "%s%%",
    "#hash: - [x]",
    "event",
    "position",
    "state",
    "stored",
    "_json",
    "\n",
    "\t\r\x00\x07\x1b[2J\x7f\x9b\u202e",
]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"EVENTS": "{folder}/missing.jsonl"}, "EVENTS={folder}/missing.jsonl: there is no such file"),
        ({"EVENTS": "{folder}/empty folder"}, "EVENTS={folder}/empty folder: the folder holds no files"),
        ({"EVENTS": "{folder}/utf-16.jsonl"}, "{folder}/utf-16.jsonl: the file is UTF-16"),
        ({"EVENTS": "{folder}/damaged.jsonl.gz"}, "{folder}/damaged.jsonl.gz: the compressed file is damaged"),
        ({"EVENTS": "{folder}"}, "{folder}/damaged.jsonl.gz: the compressed file is damaged"),
        ({"EVENTS": "", "SYSTEM": "never_landed"}, "SYSTEM=never_landed: nothing has landed for it."),
        ({"SYSTEM": ""}, "A run needs a SYSTEM"),
        ({"LAKEHOUSE_SCHEMA": "dev"}, "the schema of the profile is dev (LAKEHOUSE_SCHEMA): make run builds"),
        ({"REPLAY": "1", "EVENTS": "", "SYSTEM": ""}, "make replay takes what a system has landed"),
        ({"REPLAY": "1"}, "make replay takes what a system has landed"),
        ({"SYSTEM": "../x"}, "SYSTEM=../x: expected a name of lower-case letters"),
        ({"SYSTEM": "x; drop table y"}, "SYSTEM=x; drop table y: expected a name"),
        ({"SYSTEM": "silver"}, "SYSTEM=silver: expected a name"),
        ({"SYSTEM": "spark_catalog"}, "SYSTEM=spark_catalog: expected a name"),
        ({"SYSTEM": "a__b"}, "SYSTEM=a__b: expected a name"),
        ({"SYSTEM": "a_"}, "SYSTEM=a_: expected a name"),
        ({"SYSTEM": "stg_a"}, "SYSTEM=stg_a: expected a name"),
        ({"SYSTEM": "live_a"}, "SYSTEM=live_a: expected a name"),
        ({"KEYS": "orders"}, "KEYS='orders': 'orders' is not of the form table=column"),
        ({"KEYS": "it's=id"}, 'KEYS="it\'s=id": a quote is not closed.'),
        ({"LAKEHOUSE_TARGET": "nosuch"}, "LAKEHOUSE_TARGET=nosuch: profiles/profiles.yml has no such output"),
        ({"CONNECTOR": "postgres"}, "CONNECTOR=postgres: expected one of "),
        ({"SERVERS": "shard"}, "SERVERS=shard: expected shards, or one"),
        ({"KEYS": "orders=nope"}, "KEYS: table public.orders has no column nope; it has id."),
        (
            {"CONNECTOR": "mysql"},
            "CONNECTOR=mysql: the events of topic 'shop.public.orders' are of connector 'postgresql'",
        ),
    ],
    ids=lambda value: " ".join(value.values()) if isinstance(value, dict) else "",
)
def test_what_cannot_be_run_is_one_line_that_names_it(
    lakehouse: Lakehouse,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    given: dict[str, str],
    told: str,
) -> None:
    (tmp_path / "empty folder").mkdir()
    (tmp_path / "good.jsonl").write_text(text(created(10, id=1)))
    (tmp_path / "utf-16.jsonl").write_text(text(created(10, id=1)), encoding="utf-16")
    damaged = bytearray(gzip.compress(random.Random(1).randbytes(900)))
    damaged[300] ^= 255
    (tmp_path / "damaged.jsonl.gz").write_bytes(damaged)
    for name, value in {"EVENTS": "{folder}/good.jsonl", "SYSTEM": "unrunnable", **given}.items():
        monkeypatch.setenv(name, value.format(folder=tmp_path))

    assert lakehouse._run.main() == (1 if "the file is" in told or "file is damaged" in told else 2)
    errors = capsys.readouterr().err.strip().splitlines()
    assert len(errors) == 1 and errors[0].startswith("Error: " + told.format(folder=tmp_path)), errors
    models = [path for path in (lakehouse.project / "models").rglob("*") if "unrunnable" in path.parts]
    assert models == []
    if "EVENTS" in given and (lakehouse.project / "lakehouse" / "warehouse" / "bronze" / "unrunnable").exists():
        assert bronze(lakehouse, "unrunnable", "value") in ([], [created(10, id=1)["value"]])


def test_an_empty_file_is_told_and_a_run_goes_on(
    lakehouse: Lakehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "events.jsonl"
    path.touch()
    monkeypatch.setenv("EVENTS", str(path))
    monkeypatch.setenv("SYSTEM", "empty")
    monkeypatch.chdir(tmp_path)  # the project is the one of LAKEHOUSE_PROJECT, wherever the command is called

    assert lakehouse._run.main() == 0
    output = capsys.readouterr()
    assert f"empty: {path}: the file is empty" in output.out
    assert "No tables yet." in output.out
    assert output.err == ""

    path.write_text(text(created(10, id=1)))
    assert lakehouse._run.main() == 0
    assert lakehouse.rows("empty.orders") == [{"id": 1}]
    monkeypatch.chdir(lakehouse.project)

    marts = lakehouse.project / "models" / "marts" / "empty"  # which is no folder of the scaffold
    marts.mkdir(parents=True)
    (marts / "many.sql").write_text("select count(*) as many from {{ ref('live_empty__orders') }}")
    (marts / "broken.sql").write_text("select nope from {{ ref('many') }}")
    with path.open("a") as file:
        file.write(text(created(11, id=2)))
    assert lakehouse._run.main() == 1
    told = capsys.readouterr().out
    assert "Building 5 models …" in told and "  broken: " in told and "\n1 models failed" in told
    (marts / "broken.sql").write_text("select many from {{ ref('many') }}")
    assert [lakehouse._run.main(), lakehouse.sql("select many from marts.broken")] == [0, [(2,)]]
    assert "Building 1 models …" in capsys.readouterr().out

    delays = "source_to_connector, connector_to_kafka, lag - landing_to_merge - kafka_to_landing, landing_to_merge > 0"
    (place,) = lakehouse.sql(
        f"select source_table, unix_millis(changed_at), {delays}, batch from monitoring.empty__lag"
    )
    assert place == ("public.orders", 1700000000011, Decimal("0.001"), Decimal("-0.012"), Decimal("-0.011"), True, 2)
    assert lakehouse.dbt("source", "freshness", "--select", "source:bronze.empty").success

    from scripts.built import Built

    state = Built()
    whole = state.path.read_bytes()
    for broken in (
        b"",
        whole[:-9],
        b"\xff",
        b"[]",
        b"null",
        b"{}",
        b'{"models": [], "batches": {}}',
        b'{"models": {}, "batches": {}, "bronze": {}}',
        whole.replace(b'empty": 2', b'empty": "x"'),
        whole.replace(b'"is_built"', b'"is_not"'),
    ):
        state.path.write_bytes(broken)
        assert Built().state == {
            "models": {},
            "batches": {},
            "bronze": {},
            "refused": {},
            "counted": {},
            "views": {},
            "own": {},
        }, broken
    with path.open("a") as file:
        file.write(text(created(12, id=3)))
    assert lakehouse._run.main() == 0  # builds all there is
    assert lakehouse.rows("empty.orders", "id") == [{"id": 1}, {"id": 2}, {"id": 3}]
    assert lakehouse.rows("marts.broken") == [{"many": 3}]
    assert Built().state["batches"] == {"empty": 3}


def test_a_run_that_goes_on_tells_what_fails_and_ends_where_it_can_do_nothing_more(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from scripts import build, run, runs
    from scripts.arguments import Request
    from scripts.errors import ResourceError
    from scripts.kafka import Topics

    failures = [LakehouseError("a model is wrong"), ResourceError("the disk is full")]
    said: list[str] = []

    def fails(*_: Any) -> int:
        raise failures.pop(0)

    monkeypatch.setattr(run, "land_topics", lambda *_, **__: Landed(1, batches=[1]))
    monkeypatch.setattr(build, "refresh", fails)
    monkeypatch.setattr("time.sleep", lambda _: None)
    monkeypatch.setenv("LAKEHOUSE_DIR", str(tmp_path))
    request = Request("endless", Topics("localhost:1", "t", {}), None, {})
    with pytest.raises(ResourceError, match="the disk is full"):
        run._go_on(None, request, 1, False, said.append)
    assert "Error: a model is wrong" in said and failures == []
    assert [run["problem"] for run in runs.last(1)] == ["a model is wrong"]


def test_rejected_records_are_taken_up_after_a_fix_and_all_are_accounted_for(
    lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Landed = merged + superseded + no rows + rejected, before and after; a record that is counted nowhere fails a
    test of dbt.
    """
    from scripts.arguments import Request

    later = updated(30, id=2, note="later")
    later["value"] = later["value"].replace('"op": "u"', '"op": "x"')
    tombstone = {**deleted(20, id=1), "offset": 21, "value": None}
    records = [
        created(10, id=1),
        created(11, id=2, note="first"),
        updated(15, id=1),
        deleted(20, id=1),
        tombstone,
        later,
    ]
    records.append({**created(40, id=3), "topic": "shop.public.unknown", "value": "{}"})
    lakehouse.run("replayed", records)

    def accounts() -> dict[str, int]:
        counts = dict(lakehouse.sql("select kind, sum(events) from monitoring.replayed__event_counts group by kind"))
        merged = "select count(distinct regexp_replace(_cdc_event_id, '#before$', '')) from silver.replayed__orders"
        is_superseded = (
            "_cdc_kind = 'change' and _cdc_event_id not in (select _cdc_event_id from silver.replayed__orders)"
        )
        found = {"rejected": counts.pop("rejected", 0), "merged": lakehouse.sql(merged)[0][0]}
        found["superseded"] = lakehouse.sql(f"select count(*) from staging.stg_replayed__orders where {is_superseded}")[
            0
        ][0]
        assert counts.pop("change") == found["merged"] + found["superseded"]
        found["no rows"] = sum(counts.values())
        assert sum(found.values()) == lakehouse.sql("select count(*) from bronze.replayed")[0][0] == len(records)
        return found

    assert accounts() == {"merged": 2, "superseded": 2, "no rows": 2, "rejected": 1}
    connector = lakehouse.project / "macros" / "connectors" / "connector.sql"
    before = connector.read_text()
    mart = lakehouse.project / "models" / "marts" / "notes.sql"
    mart.parent.mkdir()
    mart.write_text("select note from {{ ref('live_replayed__orders') }}")
    try:
        connector.write_text(
            before.replace("'lower(_event.payload.op)'", "\"replace(lower(_event.payload.op), 'x', 'u')\"")
        )
        replay = [Request("replayed", "", None, {})]
        monkeypatch.setenv("REPLAY", "1")
        assert lakehouse._build.replay(lakehouse.spark, replay, print) == 0
        assert accounts() == {"merged": 2, "superseded": 3, "no rows": 2, "rejected": 0}
        assert lakehouse.rows("replayed.orders") == [{"id": 2, "note": "later"}]
        assert lakehouse.rows("marts.notes") == [{"note": "later"}]
        for table in ("staging.stg_replayed__orders", "silver.replayed__orders"):  # neither was rebuilt
            assert lakehouse.sql(f"select min_by(is_current_ancestor, made_current_at) from {table}.history") == [
                (True,)
            ]
        assert lakehouse.dbt(
            "run", "--full-refresh", "--select", "replayed__orders"
        ).success  # it has read as many as there are
        check = ["test", "--select", "test_name:every_record_counted"]
        assert lakehouse.dbt(*check).success
        lakehouse.spark.sql("delete from monitoring.replayed__event_counts where kind = 'tombstone'")
        assert not lakehouse.dbt(*check).success
    finally:
        connector.write_text(before)


def test_values_of_rows_are_in_no_log_model_or_artefact(
    lakehouse: Lakehouse, capfd: pytest.CaptureFixture[str]
) -> None:
    """Not of good rows, of rejected records, of lines that are no records, of keys, nor where a log starts over."""
    secret = "marked-7b41"
    wrong = created(14, id="k5", note=secret, amount="x")
    wrong["value"] = wrong["value"].replace('"amount": "x"', f'"amount": {{"{secret}": 1}}')
    broken = created(15, id="k6", note=secret)
    broken["value"] = broken["value"][:-2]
    flat = {**created(16, id="k7"), "value": json.dumps({"note": secret})}
    rows = [created(100 + n, id=f"k{n}-{secret}", note=secret, amount=1) for n in range(4)]
    later = [updated(10, id=f"k0-{secret}", note=f"{secret} again", amount=2), deleted(11, id=f"k1-{secret}")]
    for number, record in enumerate([*rows, broken, flat, *later, wrong]):
        record["offset"] = number
    lakehouse.run("spilled", [*rows, broken, flat])
    lines = lakehouse.project / "events" / "spilled.jsonl"
    lines.write_text(f'{secret}\n["{secret}"]\n')
    lakehouse.run("spilled", lines)
    lakehouse.run("spilled", [*later, wrong])

    assert lakehouse.sql("select count(*) from spilled.orders where note = 'marked-7b41'") == [(4,)]
    assert lakehouse.resets("spilled") == {"public.orders": {"shop.public.orders/0": [6, 7, 2]}}
    found = sorted({reason for _, reason in lakehouse.rejected("spilled")})
    assert found == ["invalid_json", "not_an_envelope", "not_an_object", "value_of_wrong_type"]
    said = [*lakehouse.said]
    tests = ["test", "--select", "path:models/silver/spilled", "spilled__event_counts"]
    assert len(lakehouse._dbt_commands.run(tests, said.append)) == 2  # the reset, and the rejected records
    assert lakehouse._dbt_commands.run(["run", "--full-refresh", "--select", "spilled__orders"], said.append) == []
    missing = ["run-operation", "store_log_resets", "--args", '{"logs": ["staging.nowhere"]}']
    assert lakehouse._dbt_commands.run(missing, said.append) == ["store_log_resets"]
    assert "store_log_resets: " in said[-1] and "`staging`.`nowhere` cannot be found" in said[-1]
    assert lakehouse.dbt("docs", "generate").success
    said += capfd.readouterr()
    assert secret not in "\n".join(said)
    data = {lakehouse.project / "events", lakehouse.project / "lakehouse" / "warehouse"}
    files = [path for path in lakehouse.project.rglob("*") if path.is_file() and not data & set(path.parents)]
    assert {"dbt.log", "spark.log", "manifest.json", "catalog.json", "spilled__orders.sql"} <= {
        path.name for path in files
    }
    assert [str(path) for path in files if secret.encode() in path.read_bytes()] == []


def test_hostile_names_and_values_are_only_names_and_values(
    lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    values = [*HOSTILE, "{{ 1 }}", "{% set x = 1 %}", "{# x #}", "line\nbreak\r\t\x00", "\\u0041", "null", ""]
    records, expected = [], []
    for number, table in enumerate(TABLES):
        row = {"id": number, **{name: values[(number + at) % len(values)] for at, name in enumerate(HOSTILE)}}
        records.append(of_safe_topic(event("c", 10 + number, row, table=table)))
        expected.append(row)
    key = {name: f"{name}{{{{ 1 }}}}" for name in HOSTILE}
    records.append(event("c", 50, {**key, "note": "{{ 1 }}"}, key, table="keyed by all"))
    records.append(
        event("c", 51, {**key, "note": "gone", "ünï😀": "other"}, {**key, "ünï😀": "other"}, table="keyed by all")
    )
    records.append(event("d", 52, None, {**key, "ünï😀": "other"}, table="keyed by all"))
    for topic in TOPICS:
        envelope = json.dumps({"op": "c", "after": {"id": 1, "topic": topic}})
        records.append({"topic": topic, "offset": 1, "key": '{"id":1}', "value": envelope})
    records.append(event("c", 60, {"id": 1, "a": 2}, table="{{ 1 }}"))
    records.append(event("c", 61, {"id": 1, "{% raw %}": 2}, table="marked column"))
    records.append(event("c", 62, {"id": 1, "Name": "a", "name": "b"}, table="twice"))
    records.append(event("c", 63, {"id": 1, "_cdc_op": "a"}, table="metadata"))
    records.append(event("c", 64, {"id": 1, "": "a"}, table="nameless"))
    served = event("c", 65, {"id": 1}, table="served")
    records.append({**event("c", 66, {"id": 1}, table="returned"), "topic": "shop\rreturned"})
    records.append({**served, "value": served["value"].replace('"name": "shop"', '"name": "{{ 1/0 }}"')})
    done = lakehouse.run("hostile", records)

    problems = {
        "{{ 1 }}": "the name '{{ 1 }}' holds marks of Jinja, which no dbt project can name",
        "marked column": "the name '{% raw %}' holds marks of Jinja, which no dbt project can name",
        "twice": "columns 'Name' and 'name' differ in case only, which Spark cannot tell apart",
        "metadata": "a column is named '_cdc_op', which is a name of the metadata columns",
        "nameless": "a column is named '', which Iceberg cannot name",
        "returned": "the topic 'shop\\rreturned' holds a line break that is none of Unix, which dbt reads as another",
        "served": "the name '{{ 1/0 }}' holds marks of Jinja, which no dbt project can name",
    }
    for table, problem in problems.items():
        assert f"public.{table}: {problem}; no model was written" in done.notes
    from scripts.declared import declared_tables  # not before the project fixture has said where the project is

    declared = declared_tables("hostile", lakehouse.project / "models").values()
    relations = {table.table.identity[-1]: table.relation for table in declared}
    assert set(relations) == {*TABLES, *TOPICS, "keyed by all"}
    assert len(set(relations.values())) == len(relations)
    for row, table in zip(expected, TABLES, strict=True):
        assert lakehouse.rows(f"hostile.{relations[table]}") == [row], table
    for topic in TOPICS:
        assert lakehouse.rows(f"hostile.{relations[topic]}") == [{"id": 1, "topic": topic}]
    assert lakehouse.rows(f"hostile.{relations['keyed by all']}") == [{**key, "note": "{{ 1 }}"}]
    assert lakehouse.rejected("hostile") == []

    control = TABLES[-1]
    wider = {**expected[-1], "\x1b]0;title": "new"}
    changes = [event("u", 70, {**expected[0], "a.b": "new"}, table=TABLES[0]), event("u", 71, wider, table=control)]
    lakehouse.land("hostile", [of_safe_topic(record) for record in changes])
    monkeypatch.setenv("SYSTEM", "hostile")
    assert lakehouse._run.main() == 3  # changes of tables without models
    assert lakehouse.rows(f"hostile.{relations[TABLES[0]]}") == [{**expected[0], "a.b": "new"}]
    assert lakehouse.rows(f"hostile.{relations[control]}") == [wider]
    monkeypatch.setenv("EVENTS", "/\x1b[2J")
    assert lakehouse._run.main() == 2
    output = capsys.readouterr()
    for line in (output.out + output.err).split("\n"):
        assert line.isprintable(), line
    assert "public.\\n\\t\\r\\x00\\x07\\x1b[2J\\x7f\\x9b\\u202e" in output.out and "\\x1b]0;title" in output.out

    from scripts import report, report_page, runs

    figures: list[Any] = []

    def seen(found: Any, *rest: Any) -> str:
        figures.extend(found)
        return report_page.page(found, *rest)

    monkeypatch.setattr(report, "page", seen)
    assert report.main() == 0
    (found,) = figures
    assert found.problems == [] and set(found.rows) == {table.table.name for table in declared}
    assert sum(int(rows.counts[0]) for rows in found.rows.values()) == 18
    assert sum(one.events for one in found.events) == 18 - len(TOPICS)  # whose events say no time
    all_keys = found.rows["public.keyed by all"]
    assert (all_keys.live, all_keys.deleted, all_keys.counts[1]) == (1, 1, "2")
    assert sum(rows.deleted for rows in found.rows.values()) == 1
    assert len(found.delays) == len(found.rows) and all(one.merged for one in found.delays)
    assert {one.table.partition(".")[0] for one in found.commits} >= {"bronze", "staging", "silver", "monitoring"}
    assert [(run["status"], run["records"], run["problem"][:9]) for run in runs.last(2)] == [
        (3, 0, ""),
        (2, 0, "EVENTS=/\x1b"),
    ]
    text_of_page = (lakehouse.project / "lakehouse" / "report.html").read_text(encoding="utf-8")
    assert "public.\\n\\t\\r\\x00\\x07\\x1b[2J\\x7f\\x9b\\u202e" in text_of_page and "\x1b" not in text_of_page
    assert str(lakehouse.project / "lakehouse" / "report.html") in capsys.readouterr().out


def test_a_table_named_as_a_file_is_not_that_file(lakehouse: Lakehouse, tmp_path: Path) -> None:
    """Where a system is named `json` and lacks a table, Spark would read the path that the table's name is."""
    (tmp_path / "orders").write_text('{"id": 1}\n')
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        lakehouse.sql(f"select * from json.`{tmp_path / 'orders'}`")


def test_a_catalog_without_views_is_named(
    lakehouse: Lakehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from scripts.messages import cause

    catalog = "spark.sql.catalog.catalog_without_views"  # of all tests of this process: no system may have its name
    lakehouse.spark.conf.set(catalog, "org.apache.iceberg.spark.SparkCatalog")
    lakehouse.spark.conf.set(f"{catalog}.type", "hadoop")
    lakehouse.spark.conf.set(f"{catalog}.warehouse", str(tmp_path))
    lakehouse.sql("create namespace catalog_without_views.shop")
    with pytest.raises(Exception) as error:
        lakehouse.sql("create or replace view catalog_without_views.shop.orders as select 1 as id")
    monkeypatch.setenv("LAKEHOUSE_TARGET", "rest")
    assert cause(str(error.value)).startswith("the catalog has no views, or cannot replace them.")


def test_what_another_machine_builds_meanwhile_is_built_again(
    lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two commits Iceberg refuses the later one; a run then looks again at what there is, a bounded number of times.

    The other machine is a commit right before the run's own, of the same increment.
    """
    from scripts import build

    def note(lsn: int, text: str) -> dict[str, Any]:
        return {**event("c", lsn, {"t": text}, {}, "notes"), "key": None}

    lakehouse.run("contended", [created(10, id=1, status="new"), note(11, "a")])
    lakehouse.land("contended", [updated(20, id=1, status="paid"), note(21, "b")])
    sql, refused = type(lakehouse.spark).sql, []

    def second(self: Any, query: str, *rest: Any, **named: Any) -> Any:
        if re.search(r"insert into \S*stg_contended__notes", query):
            refused.append(query)
            sql(self, query, *rest, **named)
        return sql(self, query, *rest, **named)

    monkeypatch.setattr(type(lakehouse.spark), "sql", second)
    lakehouse.build_landed("contended")
    monkeypatch.undo()
    assert len(refused) == 1
    again = [line for line in lakehouse.said if "another machine was first" in line]
    assert again == ["  stg_contended__notes: another machine was first; building 3 models again …"]
    assert lakehouse.rows("contended.orders") == [{"id": 1, "status": "paid"}]
    assert lakehouse.sql("select t from silver.contended__notes order by t") == [("a",), ("b",)]

    tries = []

    def refuse(arguments: list[str], *_: Any, conflicts: Any = None) -> list[str]:
        tries.append(arguments)
        if conflicts is not None:
            conflicts.append("a")
        return ["a", "b"]

    monkeypatch.setattr(lakehouse._dbt_commands, "run", refuse)
    assert build._run(["a", "b", "c"], ["--full-refresh"], print, ["a", "b", "c"], None) == ["a", "b"]
    assert tries == [["run", "--select", *names, "--full-refresh"] for names in ("abc", "ab", "ab", "ab")]
