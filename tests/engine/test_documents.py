"""Documents that updates change in part, merged."""

import copy
import json
from random import Random
from typing import Any

import pytest
from conftest import Lakehouse, corpus, corpus_records
from event_factory import shuffled
from test_mongodb import Collection, sets


class Document:
    """A document as the server changes it, and what it tells of that."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.content: Any = None

    def value(self, depth: int = 0) -> Any:
        kind = self.random.choice(["number", "text", "null", "object", "array"] if depth < 3 else ["number", "text"])
        if kind == "object":
            return {
                name: self.value(depth + 1)
                for name in self.random.sample(["a", "b", 'c"d', "0", "é"], self.random.randint(0, 3))
            }
        if kind == "array":
            return [self.value(depth + 1) for _ in range(self.random.randint(0, 4))]
        return {
            "number": self.random.choice([0, -5, 2**60, 0.5]),
            "text": self.random.choice(["", '"{', "x", "\\", "\n\x01é"]),
            "null": None,
        }[kind]

    def step(self) -> dict[str, Any] | None:
        """Change some places, no place inside another that was changed, and return the update's description."""
        update: dict[str, Any] = {"updatedFields": {}, "removedFields": [], "truncatedArrays": []}
        touched: list[str] = []
        for _ in range(self.random.randint(1, 3)):
            place, path = self.content, ""
            name: Any = self.random.choice(["n", "place", "tags", "deep"])
            while self.random.random() < 0.8 and (
                name in range(len(place)) if isinstance(place, list) else name in place
            ):
                inside = place[name]
                if not isinstance(inside, dict | list) or not inside:
                    break
                place, path = inside, f"{path}{name}."
                name = self.random.choice([*inside, "new"] if isinstance(inside, dict) else range(len(inside) + 1))
            path += str(name)
            if any(f"{path}.".startswith(f"{other}.") or f"{other}.".startswith(f"{path}.") for other in touched):
                continue
            if isinstance(place, list) and any(other.startswith(path.rpartition(".")[0]) for other in touched):
                continue  # an array is cut or written, not both
            touched.append(path)
            if isinstance(place, list):
                if self.random.random() < 0.5:
                    size = self.random.randint(0, len(place))
                    del place[size:]
                    update["truncatedArrays"].append({"field": path.rpartition(".")[0], "size": size})
                else:
                    update["updatedFields"][path] = value = self.value(2)
                    place[name : name + 1] = [value]
            elif name in place and self.random.random() < 0.4:
                del place[name]
                update["removedFields"].append(path)
            else:
                update["updatedFields"][path] = place[name] = self.value()
        return {**update, "updatedFields": json.dumps(update["updatedFields"])} if touched else None


def test_corpus_of_bson_gives_each_of_its_states(lakehouse: Lakehouse) -> None:
    """Every field is text there, as another project prints it; a date is its milliseconds."""
    records = corpus_records(corpus("paimon_mongodb_bson"))
    told = json.loads((corpus("paimon_mongodb_bson") / "expected.json").read_text(encoding="utf-8"))
    insert, update, _ = told["per_event"]
    states = [insert["row"], update["row_after"], update["row_after"]]  # with the document as it was, and without
    for at, state in enumerate(states):
        lakehouse.run("paimon", [records[at]])
        rows = lakehouse.spark.sql(
            "select _id, cast(created_at as string) as created_at, created_by, tags, "
            "cast(unix_millis(updated_at) as string) as updated_at from paimon.sync_test_table"
        ).collect()
        assert [row.asDict() for row in rows] == [state], at
    for record in records[3:]:  # by an object, by a text and with the document as it was
        lakehouse.run("paimon", [record])
        assert (
            lakehouse.rows("paimon.sync_test_table")
            == told["final_state_after_all_files"]["bigdata_test.sync_test_table"]
        )
    for part in shuffled(records, seed=5):
        lakehouse.run("paimon_shuffled", part)
    assert lakehouse.rows("paimon_shuffled.sync_test_table") == []
    # The text is the key of another document.
    assert lakehouse.rejected("paimon") == [("bigdata_test.sync_test_table/0/4", "no_key")]
    copies = [(f"bigdata_test.sync_test_table/0/{offset}", "no_key") for offset in (1004, 4)]
    assert lakehouse.rejected("paimon_shuffled") == copies


def test_an_object_that_names_a_member_twice_is_not_changed_in_part(lakehouse: Lakehouse) -> None:
    events = Collection("named_twice")  # in a field that is no column: others would be rejected
    events.add("c", 1, '{"_id": 1, "b": 5, "x.y": {"k": 1, "k": 2}}')
    lakehouse.run("named_twice", events.records)
    events.add("u", 1, None, sets(b=6))
    with pytest.raises(AssertionError, match="a document with an object that names a member twice was changed in part"):
        lakehouse.run("named_twice", events.records[1:])
    assert lakehouse.sql("select b from named_twice.named_twice") == [(5,)]


def test_documents_without_a_connector_in_the_yaml_are_refused(lakehouse: Lakehouse) -> None:
    events = Collection("unsaid")
    events.add("c", 1, {"_id": 1, "a": 1})
    lakehouse.run("unsaid", events.records)
    properties = lakehouse.project / "models" / "silver" / "unsaid" / "unsaid__unsaid.yml"
    told = properties.read_text()
    assert told.count("connector: mongodb") == 1
    properties.write_text(told.replace("connector: mongodb", "hand: written"))
    events.add("u", 1, None, sets(a=2))
    lakehouse.land("unsaid", events.records[1:])
    result = lakehouse.dbt("run", "--select", "stg_unsaid__unsaid", "unsaid__unsaid")
    assert not result.success
    assert any(
        "reads documents that updates change in part, and does not say so" in str(node.message)
        for node in result.result
    )
    assert lakehouse.rows("unsaid.unsaid")[0]["a"] == 1

    properties.write_text(told)
    assert lakehouse.dbt("run", "--select", "stg_unsaid__unsaid", "unsaid__unsaid").success
    assert lakehouse.rows("unsaid.unsaid")[0]["a"] == 2


def test_documents_changed_in_part_are_the_servers_in_any_order(lakehouse: Lakehouse) -> None:
    """Forty random lives of documents, in the order of the source and shuffled over runs, with and without documents in
    updates.
    """
    random = Random(20261122)
    events = Collection("lives")
    wanted: dict[int, Any] = {}
    for id in range(40):
        document = Document(random)
        for _ in range(random.randint(3, 25)):
            if document.content is None or random.random() < 0.1:
                document.content = {
                    "_id": id,
                    "n": 1,
                    "place": document.value(),
                    "tags": [document.value(2) for _ in range(random.randint(0, 5))],
                    "deep": {},
                }
                events.add("c" if id not in wanted else "u", id, document.content)
            elif random.random() < 0.05:
                document.content = None
                events.add("d", id)
            elif update := document.step():
                events.add("u", id, None, copy.deepcopy(update))
            wanted[id] = copy.deepcopy(document.content)
    lakehouse.run("lives", events.records)
    for part in shuffled(events.records + random.sample(events.records, 60), seed=8):
        lakehouse.run("lives_shuffled", part)
    for system in ("lives", "lives_shuffled"):
        assert lakehouse.rejected(system) == []
        rows = {row["_id"]: row for row in lakehouse.rows(f"{system}.lives")}
        assert rows.keys() == {id for id, content in wanted.items() if content is not None}
        for id, row in rows.items():
            assert json.loads(row["document"]) == wanted[id], (system, id)
            for name in ("n", "place", "tags", "deep"):
                assert json.loads(row[name] or "null") == wanted[id].get(name), (system, id, name)
    silver = "(select * except (_cdc_batch) from silver.lives_shuffled__lives)"  # of a repeated event any
    merged = lakehouse.rows(silver)
    assert lakehouse.rows("lives.lives") == lakehouse.rows("lives_shuffled.lives")
    assert lakehouse.dbt("run", "--full-refresh", "--select", "lives_shuffled__lives").success
    assert lakehouse.rows(silver) == merged
