"""What a person wrote in generated YAML survives every run, and what is generated is there."""

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import REPOSITORY
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

BEFORE = {"id": "int32", "yes": "string", "größe\x85": "double", "created at": "MicroTimestamp"}
ADDED = {"note": "string", "no": "boolean", "客户": "Decimal(10,2)", "a: b # c": "string", "it's": "any"}
PATH = "silver/s/s__t.yml"
# What nobody generates, in places where YAML readers stumble.
WORDS = [
    "plain",
    "yes",
    "0777",
    "12:30",
    "it's: # no comment",
    "größe 客户",
    "a\x85b",
    'say "so"',
    "two\n\nlines\n",
    "",
    "{{ doc('x') }}",
    "- x",
]


def declared(columns: dict[str, str], keys: list[str], topics: tuple[str, ...] = ("s.t",), **further: Any) -> Any:
    from scripts.declared import Declared
    from scripts.schema import TableSeen

    table = TableSeen(
        "postgresql", ("public", "t"), set(topics), dict(columns), list(keys), [list(keys)] if keys else []
    )
    return Declared("t", table, **further)


def text_of(table: Any) -> str:
    from scripts.table_models import render

    return render("s", table)[PATH]


def run(folder: Path, text: str, table: Any, added: dict[str, str] | None = None) -> str:
    """The text of the file after a run that generates the models of a table, or adds columns to the one that is
    declared.
    """
    from scripts.declared import declared_tables
    from scripts.scaffolded import Scaffolded
    from scripts.written_models import write_models

    path = folder / PATH
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    if added is not None:
        (known,) = declared_tables("s", folder).values()
        known.table.columns |= added
        known.table.topics |= table.table.topics
        table = known
    write_models("s", table, folder, Scaffolded())
    (known,) = declared_tables("s", folder).values()
    assert text_of(known) == text_of(table), "the declaration is what was generated"
    assert not path.with_name(f"{path.name}.intended").exists()
    return path.read_bytes().decode()


def load(text: str) -> Any:
    from scripts.written_yaml import LOADER

    return yaml.load(text, Loader=LOADER)


def models(text: str) -> dict[str, dict[str, Any]]:
    return {model["name"]: model for model in load(text)["models"]}


def edited(text: str, *changes: tuple[str, str]) -> str:
    for old, new in changes:
        assert text.count(old) >= 1, old
        text = text.replace(old, new, 1)
    return text


LIVE = "- name: live_s__t\n"


@pytest.fixture
def before(project: Path) -> str:
    return text_of(declared({"id": "int32", "name": "string"}, ["id"]))


@pytest.fixture
def after(project: Path) -> Any:
    return declared({"id": "int32", "name": "string", "note": "string"}, ["id"], ("s.t", "s.t2"))


def test_what_nobody_edited_is_written_as_it_is_generated(before: str, after: Any, tmp_path: Path) -> None:
    assert run(tmp_path, before, after) == text_of(after)


def test_a_description_and_a_test_of_a_live_column_survive_a_new_column(
    before: str, after: Any, tmp_path: Path
) -> None:
    head, live = before.split(LIVE)
    column = "  - {name: name, description: string in the events., quote: true}\n"
    mine = (
        "  # for sales\n  - name: name\n    description: How we call them  # not the legal name\n    data_tests:"
        " [not_null]\n"
    )
    text = run(tmp_path, head + LIVE + edited(live, (column, mine)), after)

    assert mine in text
    added = "  - {name: note, description: string in the events., quote: true}\n"
    assert text.endswith(mine + added)
    generated = ((added, ""), ("          note: string\n", ""), (", s.t2]", "]"))
    assert edited(text, *generated) == head + LIVE + edited(live, (column, mine))


EDITS: dict[str, Callable[[str], str]] = {
    "a comment above all": lambda text: f"# ours\n\n---\n{text}",
    "a comment below all, without an end of line": lambda text: f"{text}# ours",
    "a second model": lambda text: f"{text}- name: mine\n  description: |+\n    Of us.\n\n",
    "unit tests beside the models": lambda text: f"{text}unit_tests: []\n",
    "tests and meta of a model": lambda text: edited(
        text, (LIVE, f"{LIVE}  config: {{tags: [gold], meta: {{owner: us}}}}\n  tests: []\n")
    ),
    "a severity of a generated test": lambda text: edited(
        text, ("{newest_change_wins: {", "{newest_change_wins: {config: {severity: warn}, ")
    ),
    "no generated test": lambda text: re.sub(r"  - {unique_key:.*\n", "", text),
    "tests as they were called": lambda text: text.replace("data_tests:", "tests:"),
    "no description": lambda text: text.replace(" description: string in the events.,", ""),
    "no column": lambda text: text.replace("  - {name: name, description: string in the events., quote: true}\n", ""),
    "no columns": lambda text: text.split(LIVE)[0] + LIVE + "  description: mine\n",
    "no columns of a list that is there": lambda text: text.split(LIVE)[0] + LIVE + "  columns: []\n",
    "no live model": lambda text: text.split(LIVE)[0],
    "a column of tomorrow": lambda text: f"{text}  - name: note\n    data_tests: [not_null]\n",
    "double quotes": lambda text: text.replace("string in the events.", '"string in the events."'),
    "indented lists": lambda text: yaml.dump(yaml.safe_load(text), Dumper=Indented, sort_keys=False, indent=4),
    "brackets": lambda text: yaml.dump(yaml.safe_load(text), default_flow_style=True),
    "sorted": lambda text: yaml.dump(yaml.safe_load(text)),
    "JSON": lambda text: json.dumps(yaml.safe_load(text)),
    "line ends of Windows": lambda text: f"# ours\n{text}".replace("\n", "\r\n"),
    "a mark of its encoding": lambda text: f"\ufeff{text}",
    "tabs": lambda text: text.replace("quote: true", "quote:\ttrue"),
    "a column in lines": lambda text: edited(
        text,
        (
            "- {name: name, description: string in the events., quote: true}",
            "- name: name\n    description: string in the events.\n    quote: true",
        ),
    ),
    "a key that stands twice": lambda text: edited(text, (LIVE, f"{LIVE}  description: first\n")),
    "an anchor": lambda text: edited(
        text, (LIVE, f"{LIVE}  config: *c\n"), ("- name: s__t\n", "- name: s__t\n  config: &c {tags: [gold]}\n")
    ),
    "the declaration at another model": lambda text: moved(text),
    "topics in lines": lambda text: edited(text, ("topics: [s.t]\n", "topics: # mine\n        - s.t\n")),
    "a key of mine in the declaration": lambda text: edited(
        text, ("        connector:", "        owner: us  # mine\n        connector:")
    ),
}


class Indented(yaml.SafeDumper):
    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def moved(text: str) -> str:
    content = yaml.safe_load(text)
    content["models"][2]["config"] = content["models"][0].pop("config")
    return yaml.dump(content, sort_keys=False)


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS.keys())
def test_an_edit_survives_a_new_column_and_a_new_topic(
    edit: Callable[[str], str], before: str, after: Any, tmp_path: Path
) -> None:
    text = edit(before)
    check(text, run(tmp_path, text, after), ["note"])


def check(old: str, new: str, added: list[str], is_keyed: bool = True) -> None:
    """Whether a text is as it was, but for columns that are new in lists that are there, and the declaration."""
    characters = iter(new)
    assert all(character in characters for character in old), "all that was there is there, in its order"
    was, now = (models(text) for text in (old, new))
    for name, model in now.items():
        columns = model.get("columns")
        described = "live_s__t" if is_keyed else "s__t"
        if not (name == described and isinstance(columns, list)):
            continue
        known = [column["name"] for column in was[name]["columns"]]
        for column in added:
            (found,) = [one for one in columns if one["name"] == column]
            assert found["description"] and found["quote"] is True
        model["columns"] = [column for column in columns if column["name"] in known]
        for column in model["columns"]:  # somebody may have been there before the run
            if column["name"] in added:
                old_one = was[name]["columns"][known.index(column["name"])]
                was[name]["columns"][known.index(column["name"])] = column | old_one
    for model in (*was.values(), *now.values()):
        meta = (model.get("config") or {}).get("meta") or {}
        for generated in ("columns", "topics"):
            meta.get("debezium", {}).pop(generated, None)
    assert json.dumps(list(now.values())) == json.dumps(list(was.values()))


@st.composite
def edits(draw: st.DrawFn) -> Callable[[dict[str, Any]], str]:
    """Any changes of the content of the file, written in any way that dbt reads."""
    numbers = draw(
        st.lists(
            st.tuples(st.integers(0, 9), st.integers(0, 99), st.integers(0, 99), st.sampled_from(WORDS)), max_size=8
        )
    )
    style: Any = draw(
        st.fixed_dictionaries(
            {
                "default_flow_style": st.sampled_from([False, None, True]),
                "default_style": st.sampled_from([None, "'", '"']),
                "width": st.sampled_from([20, 110, 10**6]),
                "indent": st.integers(2, 6),
                "allow_unicode": st.booleans(),
                "explicit_start": st.booleans(),
                "sort_keys": st.booleans(),
            }
        )
    )
    dumper = draw(st.sampled_from([yaml.SafeDumper, Indented]))
    comments = draw(
        st.lists(st.tuples(st.integers(0, 200), st.sampled_from(["# é: {", "", "    # - x", "#"])), max_size=6)
    )

    def write(content: dict[str, Any]) -> str:
        for kind, one, other, word in numbers:
            change(content, kind, one, other, word)
        text: str = yaml.dump(content, Dumper=dumper, **style)
        if (
            style["default_flow_style"] is False
            and not style["default_style"]
            and style["width"] == 10**6
            and "\n\n" not in text
        ):
            lines = text.split("\n")
            for at, comment in comments:
                lines.insert(at % len(lines), comment)
            text = "\n".join(lines)
        return text

    return write


def change(content: dict[str, Any], kind: int, one: int, other: int, word: str) -> None:
    model = content["models"][one % len(content["models"])]
    columns = model.get("columns") or [{"name": "x"}]
    column = columns[other % len(columns)]
    tests = model.get("data_tests") or [None]
    if kind == 0:
        column["description"] = word
    elif kind == 1:
        column.setdefault("data_tests", []).append({"accepted_values": {"arguments": {"values": [word]}}})
    elif kind == 2:
        column.pop("description", None)
    elif kind == 3 and len(columns) > 1:
        columns.remove(column)
    elif kind == 4:
        columns.insert(other % len(columns), {"name": f"mine {word}", "config": {"meta": {word: [word]}}})
    elif kind == 5:
        columns.reverse()
    elif kind == 6:
        content["models"].insert(one % 4, {"name": f"mine_{other}", "description": word})
    elif kind == 7:
        tests.pop(other % len(tests))
    elif kind == 8:
        model.setdefault("config", {}).setdefault("meta", {})["owner"] = {word: [word, {word: word}]}
    else:
        content["models"].reverse()


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    write=edits(),
    added=st.lists(st.sampled_from(sorted(ADDED)), min_size=1, max_size=3, unique=True),
    is_keyed=st.booleans(),
)
def test_any_edit_survives_a_run_with_new_columns(
    project: Path, tmp_path_factory: pytest.TempPathFactory, write: Any, added: list[str], is_keyed: bool
) -> None:
    keys = ["id"] if is_keyed else []
    text = write(copy.deepcopy(load(text_of(declared(BEFORE, keys)))))
    table = declared(BEFORE, keys, ("s.t", "s.U"))
    folder = tmp_path_factory.mktemp("edited")

    new = run(folder, text, table, {name: ADDED[name] for name in added})
    check(text, new, added, is_keyed)
    assert run(folder, new, table, {}) == new, "another run changes nothing"


def test_a_key_that_a_table_gets_is_in_its_tests_and_what_was_edited_stays(project: Path, tmp_path: Path) -> None:
    log, table = (
        declared({"id": "int32", "v": "string"}, keys, epochs=[{"topic": "s.t", "epoch": 1}]) for keys in ([], ["id"])
    )
    text = run(tmp_path, edited(text_of(log), ("- name: s__t\n", "- name: s__t  # ours\n")), table)
    assert text.count("# ours") == 1 and models(text) == models(text_of(table))

    wider, sharded = (
        declared({"shard": "shard", "id": "int32", "v": "string"}, ["shard", "id"]),
        "# ours\n" + text_of(table),
    )
    text = run(tmp_path, sharded, wider)
    assert text.startswith("# ours\n") and models(text) == models(text_of(wider))
    assert "epochs" not in text, "what is not generated any more is gone"


def test_what_a_person_says_of_the_arguments_of_a_test_stays(before: str, project: Path, tmp_path: Path) -> None:
    mine = edited(before, ("columns: [id]", "columns: [id, name]"))
    text = run(tmp_path, mine, declared({"id": "int32", "name": "string"}, ["name"]))
    tests = {name: one["arguments"] for test in models(text)["s__t"]["data_tests"] for name, one in test.items()}
    assert (tests["unique_key"]["columns"], tests["newest_change_wins"]["keys"]) == (["id", "name"], ["name"])


def test_a_declaration_that_was_taken_out_is_put_back_beside_what_stands_there(
    before: str, after: Any, tmp_path: Path
) -> None:
    mine = re.sub(r"(?s)  config:\n.*?(?=- name: s__t)", "", before.replace("quote: true}", "quote: true}  # ours", 1))
    text = run(tmp_path, mine, after)
    assert "# ours" in text and models(text)["stg_s__t"]["config"] == models(text_of(after))["stg_s__t"]["config"]


def test_a_run_that_was_killed_finishes_edited_yaml(before: str, after: Any, tmp_path: Path) -> None:
    from scripts.declared import declared_tables
    from scripts.scaffolded import Scaffolded
    from scripts.table_models import render
    from scripts.written_models import INTENDED, _with_edits, finish_writing

    path, mine = tmp_path / PATH, f"# ours\n{before}"
    path.parent.mkdir(parents=True)
    path.write_text(mine, encoding="utf-8")
    path.with_name(path.name + INTENDED).write_text(_with_edits("s", after, path, text_of(after)), encoding="utf-8")
    finish_writing("s", tmp_path, done := Scaffolded())

    assert done.written == ["stg_s__t", "s__t", "live_s__t"] and path.read_text(encoding="utf-8").startswith("# ours\n")
    (known,) = declared_tables("s", tmp_path).values()
    assert render("s", known) == render("s", after)
    assert [found.name for found in path.parent.iterdir() if found.suffix != ".sql"] == [path.name]


def test_topics_of_an_edited_staging_model_are_taken_into_edited_yaml(before: str, tmp_path: Path) -> None:
    from scripts.declared import declared_tables
    from scripts.evolution import follow_text

    path, staging = tmp_path / PATH, tmp_path / "staging" / "s" / "stg_s__t.sql"
    run(tmp_path, f"# ours\n{before}", declared({"id": "int32", "name": "string"}, ["id"]))
    staging.write_text(edited(staging.read_text(), ("topics = ['s.t']", "topics = ['s.t', 's.T']")))
    (known,) = declared_tables("s", tmp_path).values()
    follow_text("s", known, tmp_path)
    assert path.read_text().startswith("# ours\n")
    (known,) = declared_tables("s", tmp_path).values()
    assert known.table.topics == {"s.t", "s.T"}


@pytest.mark.parametrize(
    ("mine", "told"),
    [
        ("models: [", "it is no YAML"),
        ("models:\n\t- a", "it is no YAML"),
        ("- a\n", "its meta.debezium is not of the form"),
        (
            "models:\n- name: s__t\n  config: {meta: {debezium: {connector: mysql}}}\n",
            "its meta.debezium is not of the form",
        ),
        ("models:\n- name: s__t\n  config: [a]\n", "its meta.debezium is not of the form"),
    ],
)
def test_what_is_no_declaration_is_an_error_that_names_the_file(
    project: Path, tmp_path: Path, after: Any, mine: str, told: str
) -> None:
    from scripts.errors import LakehouseError

    with pytest.raises(LakehouseError, match=f"{re.escape(PATH)}: {told}.* run again"):
        run(tmp_path, mine, after)


def test_yaml_in_which_nothing_has_a_place_is_an_error_that_names_the_file(
    before: str, after: Any, tmp_path: Path
) -> None:
    from scripts.errors import LakehouseError

    mine = before.replace("        connector: postgresql\n", "        ? connector\n        : postgresql\n")
    mine = re.sub(
        r"(?m)^        columns:\n(          .*\n)+", "        columns:\n          ? id\n          : int32\n", mine
    )
    with pytest.raises(LakehouseError, match=re.escape(PATH)):
        run(tmp_path, mine, after)
    assert (tmp_path / PATH).read_text() == mine


def test_yaml_of_a_system_as_a_whole_stays_as_somebody_edited_it(project: Path, tmp_path: Path) -> None:
    from scripts.scaffolded import Scaffolded
    from scripts.system_models import write_system

    table = declared({"id": "int32"}, ["id"], routed=True)
    paths = [
        tmp_path / "bronze/s.yml",
        tmp_path / "monitoring/s/s__monitoring.yml",
        tmp_path / "staging/s/s__events.yml",
    ]
    write_system("s", {("t",): table}, tmp_path, Scaffolded())
    for path in paths:
        path.write_text(f"# ours\n{path.read_text()}")
    write_system("s", {("t",): table}, tmp_path, Scaffolded())
    table.routed = False
    write_system("s", {("t",): table}, tmp_path, Scaffolded())
    assert all(path.read_text().startswith("# ours\n") for path in paths) and not paths[2].with_suffix(".sql").exists()

    paths[2].write_text(paths[2].read_text().removeprefix("# ours\n"))
    write_system("s", {("t",): table}, tmp_path, Scaffolded())
    assert not paths[2].exists()


def test_the_samples_have_the_yaml_that_is_generated_now(project: Path, tmp_path: Path) -> None:
    """A file that is there is not written anew: delete it, and run, after a change of what is generated."""
    from scripts.declared import declared_tables
    from scripts.scaffolded import Scaffolded
    from scripts.system_models import write_system
    from scripts.table_models import render

    samples = REPOSITORY / "models"
    for system in sorted(path.stem for path in (samples / "bronze").glob("*.yml")):
        known = declared_tables(system, samples)
        write_system(system, known, tmp_path, Scaffolded())
        for table in known.values():
            name, text = next((name, text) for name, text in render(system, table).items() if name.endswith(".yml"))
            assert (samples / name).read_text(encoding="utf-8") == text
    for path in tmp_path.rglob("*.yml"):
        assert path.read_text(encoding="utf-8") == (samples / path.relative_to(tmp_path)).read_text(encoding="utf-8")


def former(text: str) -> str:
    """YAML as it was generated before columns were described once."""
    from scripts.written_yaml import dump

    content = load(text)
    meta = content["models"][0]["config"]["meta"]["debezium"]
    columns: list[dict[str, Any]] = [
        {"name": name, "description": f"`{kind}` in the events.", "quote": True}
        for name, kind in meta["columns"].items()
    ]
    metadata = content["models"][1]["columns"]
    for model, described in zip(content["models"], (columns + metadata, columns + metadata, columns), strict=True):
        model["columns"] = copy.deepcopy(described)
        model["description"] = model["description"].partition(" Key: ")[0]
    return dump(content)


def test_what_a_former_version_generated_becomes_short_and_what_was_edited_stays(
    before: str, project: Path, tmp_path: Path
) -> None:
    table, old = declared({"id": "int32", "name": "string"}, ["id"]), former(before)
    assert len(old.splitlines()) > 2 * len(before.splitlines())
    assert run(tmp_path, old, table) == before

    head, live = old.split(LIVE)
    column = "  - name: name\n    description: '`string` in the events.'\n    quote: true\n"
    mine = edited(head, ("    quote: true\n", "    quote: true\n    data_tests: [not_null]  # ours\n"))
    staging, silver = mine.split("- name: s__t\n")
    mine = f"{staging}- name: s__t\n" + edited(silver, ("    quote: true\n", "    quote: true  # reserved\n"))
    mine += LIVE + edited(live, (column, "  # our name\n" + column.replace("`string` in the events.", "Of us.")))
    text = run(tmp_path, mine, table)
    found = models(text)
    assert [len(found[name].get("columns", [])) for name in ("stg_s__t", "s__t", "live_s__t")] == [1, 11, 2]
    assert [one["description"] for one in found["live_s__t"]["columns"]] == ["Key. int32 in the events.", "Of us."]
    assert found["stg_s__t"]["columns"][0]["data_tests"] == ["not_null"]
    assert "[not_null]  # ours\n" in text and "  # our name\n  - name: name\n" in text
    assert "quote: true  # reserved\n" in text
    assert run(tmp_path, text, table) == text, "another run changes nothing"


def test_a_comment_in_an_entry_of_what_a_former_version_generated_stays(project: Path, tmp_path: Path) -> None:
    """Also where somebody turned the list around, which then becomes another as a whole where it is untouched."""
    from scripts.written_yaml import dump

    table, entry = declared(BEFORE, ["id"]), "  - name: _cdc_moves\n"
    content = load(former(text_of(table)))
    content["models"][1]["columns"].reverse()
    staging, silver = dump(content).split("- name: s__t\n")
    text = run(tmp_path, f"{staging}- name: s__t\n" + edited(silver, (entry, entry + "# ours: {\n")), table)
    assert "# ours: {\n" in text
    assert run(tmp_path, text, table) == text, "another run changes nothing"


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(write=edits(), added=st.lists(st.sampled_from(sorted(ADDED)), max_size=2, unique=True))
def test_any_edit_of_what_a_former_version_generated_survives(
    project: Path, tmp_path_factory: pytest.TempPathFactory, write: Any, added: list[str]
) -> None:
    before = copy.deepcopy(load(former(text_of(declared(BEFORE, ["id"])))))
    text = write(copy.deepcopy(before))
    folder = tmp_path_factory.mktemp("former")
    new = run(folder, text, declared(BEFORE, ["id"]), {name: ADDED[name] for name in added})

    # A name that its writer folded is not the one that was generated, but nobody wrote it.
    generated = [{**one, "name": ""} for model in before["models"] for one in model["columns"]]
    for name, model in models(text).items():
        now = models(new)[name]
        mine = [one for one in model.get("columns") or [] if {**one, "name": ""} not in generated]
        assert [one for one in now.get("columns") or [] if one in mine] == mine
        assert {key: now.get(key) for key in ("config", "data_tests") if name != "stg_s__t"} == {
            key: model.get(key) for key in ("config", "data_tests") if name != "stg_s__t"
        }
    kept = [line.strip() for line in text.splitlines() if line.strip().startswith("#")]
    assert [line.strip() for line in new.splitlines() if line.strip().startswith("#")] == kept
    assert run(folder, new, declared(BEFORE, ["id"]), {}) == new, "another run changes nothing"


@pytest.mark.parametrize("keys", [["id"], []])
def test_generated_yaml_has_at_most_40_lines_and_two_for_each_column(project: Path, keys: list[str]) -> None:
    from scripts.table_models import _connectors

    for connector in _connectors():
        for number in (2, 60):
            table = declared({"id": "int32", **{f"c{at}": "Decimal(12,2)" for at in range(1, number)}}, keys)
            table.table.connector, table.routed = connector, True
            table.table.servers, table.table.source_tables = {"a", "b"}, {"c", "d"}
            table.table.message_keys = [["c1"], ["id"]]
            assert len(text_of(table).splitlines()) <= 40 + 2 * number


def test_a_comment_of_the_source_is_in_the_description_until_somebody_edits_it(project: Path, tmp_path: Path) -> None:
    table = declared({"id": "int32", "price": "Decimal(12,2)", "note": "string"}, ["id"])
    table.table.comments = {"id": "Who: {{ it }} is", "price": "What was paid"}
    text = run(tmp_path, text_of(declared(table.table.columns, ["id"])), table)
    assert [one["description"] for one in models(text)["live_s__t"]["columns"]] == [
        "Key. Who: {{ it }} is. int32 in the events.",
        "What was paid. Decimal(12,2) in the events.",
        "string in the events.",
    ]
    table.table.comments = {"id": "The number.", "price": "What was paid in full"}
    mine = text.replace("description: 'What was paid. D", "description: 'Our words. D")
    found = models(run(tmp_path, mine, table))["live_s__t"]["columns"]
    assert [one["description"] for one in found[:2]] == [
        "Key. The number. int32 in the events.",
        "Our words. Decimal(12,2) in the events.",
    ]


def updated_by(folder: Path, columns: dict[str, str], **further: Any) -> Any:
    """What a run says to whose events a table has some columns."""
    from scripts.declared import declared_tables
    from scripts.evolution import follow_text, update_table
    from scripts.scaffolded import Scaffolded

    (known,) = declared_tables("s", folder).values()
    follow_text("s", known, folder)
    seen = declared(columns, known.table.keys, **further).table
    update_table("s", known, seen, [], folder, done := Scaffolded())
    return done


@pytest.mark.parametrize("layer", ["staging/s/stg_s__t.sql", "silver/s/s__t.sql"])
def test_an_edited_model_is_kept_and_what_to_add_is_told_until_it_is_there(
    before: str, tmp_path: Path, layer: str
) -> None:
    from scripts import runs
    from scripts.declared import declared_tables

    columns = {"id": "int32", "name": "string", "it's": "string"}
    run(tmp_path, before, declared({"id": "int32", "name": "string"}, ["id"]))
    path = tmp_path / layer
    path.write_text(mine := f"{{# ours #}}\n{path.read_text()}")
    runs.begin()
    (note,) = updated_by(tmp_path, columns, topics=("s.t2",)).notes
    assert path.read_text() == mine and runs.warned() == {"s"}
    assert note == (
        "public.t: new columns it's, topics s.t2: its models were edited by hand, so add them there: 'it\\'s': 'string'"
        " to columns in models/staging/s/stg_s__t.sql, 'it\\'s' to columns in models/silver/s/s__t.sql and 's.t2' to"
        " topics in models/staging/s/stg_s__t.sql. Your edits are kept"
    )

    staging, silver = tmp_path / "staging/s/stg_s__t.sql", tmp_path / "silver/s/s__t.sql"
    added = ("        'name': 'string',\n", "        'name': 'string',\n        'it\\'s': 'string',\n")
    staging.write_text(edited(staging.read_text(), added, ("['s.t']", "['s.t', 's.t2']")))
    silver.write_text(edited(silver.read_text(), ("        'name',\n", "        'name',\n        'it\\'s',\n")))
    assert not updated_by(tmp_path, columns).notes and path.read_text().startswith("{# ours #}\n")
    (known,) = declared_tables("s", tmp_path).values()
    assert (known.table.columns, known.table.topics) == (columns, {"s.t", "s.t2"})


def test_a_history_follows_the_key_of_its_table_unless_it_was_edited(before: str, tmp_path: Path) -> None:
    from scripts.declared import declared_tables
    from scripts.evolution import update_table
    from scripts.history import write_history
    from scripts.scaffolded import Scaffolded

    run(tmp_path, before, declared({"id": "int32", "name": "string"}, ["id"]))
    assert write_history("s", ["t"], tmp_path) == ["history_s__t", "versions_s__t"]
    history = tmp_path / "history/s/history_s__t.sql"

    def keyed(*keys: str) -> str:
        (known,) = declared_tables("s", tmp_path).values()
        seen = declared({"id": "int32", "name": "string"}, known.table.keys).table
        update_table("s", known, seen, list(keys), tmp_path, Scaffolded())
        return history.read_text()

    assert "keys = ['id', 'name']," in keyed("id", "name")
    history.write_text(mine := history.read_text().replace(") }}", "    track = ['name'],\n) }}"))
    assert keyed("id") == mine


def test_no_system_has_the_schema_of_the_histories_of_another(before: str, tmp_path: Path) -> None:
    from scripts.errors import UsageError
    from scripts.history import check_schemas, write_history

    run(tmp_path, before, declared({"id": "int32", "name": "string"}, ["id"]))
    check_schemas("s_history", False, tmp_path)
    write_history("s", ["t"], tmp_path)
    for system in ("s", "history", "s_history_history"):
        check_schemas(system, True, tmp_path)
    with pytest.raises(UsageError, match="SYSTEM=s_history: the histories of s have a schema"):
        check_schemas("s_history", False, tmp_path)
    for name in ("versions_s", "history_s", "s_history"):
        with pytest.raises(UsageError, match=f"SYSTEM={name}: the histories of s have a schema or models"):
            check_schemas(name, False, tmp_path)
        (tmp_path / "staging" / name).mkdir()
        with pytest.raises(UsageError, match=f"SYSTEM={name}: the histories of s have a schema or models"):
            check_schemas("s", True, tmp_path)
        (tmp_path / "staging" / name).rmdir()


def test_what_somebody_removed_stops_neither_its_system_nor_others(project: Path, tmp_path: Path) -> None:
    from scripts.declared import Declared, declared_tables
    from scripts.scaffolded import Scaffolded
    from scripts.schema import TableSeen
    from scripts.system_models import leave_out_removed, write_system
    from scripts.written_models import write_models

    for name in ("one", "two"):
        table = TableSeen("postgresql", ("public", name), {f"s.{name}"}, {"id": "int32"}, ["id"], [["id"]])
        write_models("s", Declared(name, table), tmp_path, Scaffolded())
    write_system("s", declared_tables("s", tmp_path), tmp_path, Scaffolded())
    counts = tmp_path / "monitoring/s/s__event_counts.sql"
    before = counts.read_text()
    leave_out_removed("other", tmp_path)
    assert counts.read_text() == before and "stg_s__one" in before
    for name, left in (("one", {"stg_s__two", "s__two"}), ("two", set())):
        for path in tmp_path.rglob(f"*s__{name}.*"):
            path.unlink()
        leave_out_removed("s", tmp_path)
        assert f"stg_s__{name}" in counts.read_text(), "its own run writes them all"
        leave_out_removed("other", tmp_path)
        assert set(re.findall(r"ref\('(\w+)'\)", counts.read_text())) == left


def test_an_edited_live_model_stays_and_its_table_gets_new_columns(before: str, tmp_path: Path) -> None:
    run(tmp_path, before, declared({"id": "int32", "name": "string"}, ["id"]))
    live = tmp_path / "live/s/live_s__t.sql"
    live.write_text(mine := edited(live.read_text(), ("config(", "config(materialized = 'table', ")))
    done = updated_by(tmp_path, {"id": "int32", "name": "string", "note": "string"})
    assert done.notes == ["public.t: new columns note"] and live.read_text() == mine
    assert "'note'" in (tmp_path / "silver/s/s__t.sql").read_text()
