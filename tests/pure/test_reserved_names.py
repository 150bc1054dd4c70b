"""Columns that are named as Iceberg names its own are kept under other names, by which the table can be read."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jinja2
import jinja2.runtime
import pytest
from conftest import REPOSITORY

TABLE: dict[str, Any] = {
    "events": "bronze.s",
    "topics": ["s.public.t"],
    "connector": "postgresql",
    "table": ["public", "t"],
}


class _Returned(Exception):
    pass


@pytest.fixture(scope="module")
def changes() -> Iterator[Callable[..., str]]:
    """`debezium_changes` in plain Jinja: it is a function of its arguments, but for the little of dbt that is given
    here.
    """
    invoke = jinja2.runtime.Macro._invoke

    def invoked(macro: Any, arguments: Any, autoescape: Any) -> Any:
        try:
            return invoke(macro, arguments, autoescape)
        except _Returned as returned:
            return returned.args[0]

    def returns(value: Any = None) -> None:
        raise _Returned(value)

    def fails(message: str) -> None:
        raise ValueError(message)

    folders = [REPOSITORY / "macros" / name for name in ("debezium", "connectors", "types")]
    text = "\n".join(path.read_text(encoding="utf-8") for folder in folders for path in sorted(folder.glob("*.sql")))
    given = {
        "return": returns,
        "exceptions": SimpleNamespace(raise_compiler_error=fails),
        "modules": SimpleNamespace(re=re),
        "execute": False,
        "config": {},
        "model": SimpleNamespace(name="stg_s__t"),
    }
    module: Any = jinja2.Environment(extensions=["jinja2.ext.do"]).from_string(text, globals=given).module
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(jinja2.runtime.Macro, "_invoke", invoked)
        yield lambda **arguments: str(module.debezium_changes(**TABLE | arguments))


def seen(
    columns: dict[str, str], keys: list[str], renamed: dict[str, str] | None = None, connector: str = "postgresql"
) -> Any:
    from scripts.schema import TableSeen

    return TableSeen(connector, ("public", "t"), {"s.public.t"}, columns, keys, [keys], renamed=renamed or {})


def kept(table: Any) -> list[str]:
    """The names of the columns once those that are reserved have others."""
    table.rename_reserved()
    names: list[str] = table.kept(table.columns)
    return names


def test_names_that_iceberg_keeps_get_others_and_all_others_stay(project: Path) -> None:
    ours = ["_file", "_Pos", "_DELETED", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number"]
    others = ["file_path", "pos", "row", "_change_type", "_change_ordinal", "_commit_snapshot_id", "_metadata", "file"]
    assert kept(seen(dict.fromkeys(ours + others, "string"), ["_file"])) == [f"{name}_source" for name in ours] + others


def test_a_name_that_is_taken_is_not_given_again(project: Path) -> None:
    table = seen(dict.fromkeys(["_file", "_FILE_source", "_pos", "_pos_source_source"], "string"), [])
    assert table.rename_reserved() == [
        "public.t: column _file is kept as _file_source_source, because Iceberg keeps that name for itself",
        "public.t: column _pos is kept as _pos_source, because Iceberg keeps that name for itself",
    ]
    assert kept(table) == ["_file_source_source", "_FILE_source", "_pos_source", "_pos_source_source"]


def test_a_name_that_was_given_stays_whatever_comes_later(project: Path) -> None:
    table = seen({"id": "int32", "_pos": "string"}, ["id"])
    assert kept(table) == ["id", "_pos_source"]
    assert table.rename_reserved() == []
    table.columns |= {"_pos_source": "string", "_file": "string"}
    assert table.rename_reserved() == [
        "public.t: column _pos_source is kept as _pos_source_source, because another column is kept by that name",
        "public.t: column _file is kept as _file_source, because Iceberg keeps that name for itself",
    ]
    assert kept(table) == ["id", "_pos_source", "_pos_source_source", "_file_source"]


def test_models_have_the_new_names_and_say_which_they_are_in_the_events(project: Path, tmp_path: Path) -> None:
    from scripts.declared import Declared, declared_columns, declared_tables
    from scripts.table_models import render

    table = seen({"_file": "int32", "_deleted": "boolean"}, ["_file"])
    table.rename_reserved()
    files = render("s", Declared("t", table))
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")

    staging = files["staging/s/stg_s__t.sql"]
    assert "    keys = ['_file_source'],\n" in staging and "        '_deleted_source': 'boolean',\n" in staging
    assert (
        "    renamed = {\n        '_file_source': '_file',\n        '_deleted_source': '_deleted',\n    },\n" in staging
    )
    assert not re.search(r"\b_(file|deleted)\b", files["silver/s/s__t.sql"] + files["live/s/live_s__t.sql"])
    (declared,) = declared_tables("s", tmp_path).values()
    assert (declared.table.columns, declared.table.keys) == (table.columns, ["_file"])
    assert declared.table.message_keys == [["_file"]]
    assert declared_columns("s", declared, tmp_path) == table.columns
    assert render("s", declared) == files


def test_the_names_are_the_same_in_python_and_in_the_macros(project: Path) -> None:
    from scripts.schema import RESERVED

    text = (REPOSITORY / "macros" / "debezium" / "names.sql").read_text(encoding="utf-8")
    assert set(re.findall(r"'(\w+)'", text.split("macro reserved_columns")[1].split("endmacro")[0])) == RESERVED


def test_a_column_keeps_its_name_up_to_the_last_step(changes: Callable[..., str]) -> None:
    columns = {"id": "int32", "_deleted_source": "string", "note": "string"}
    sql = changes(keys=["id"], columns=columns, renamed={"_deleted_source": "_deleted"})
    plain = changes(keys=["id"], columns={"id": "int32", "x": "string", "note": "string"})

    assert "_deleted_source" not in sql.replace(" as `_deleted_source`,", "").replace("'_deleted_source'", "")
    marked = sql.replace(" as `_deleted_source`,", " as `x`,").replace("'_deleted_source'", "'x'")
    assert marked.replace("_deleted`", "x`").replace("_deleted", "x") == plain


def test_a_key_may_be_renamed(changes: Callable[..., str]) -> None:
    sql = changes(keys=["_file_source"], columns={"_file_source": "int32"}, renamed={"_file_source": "_file"})
    assert "_key.payload.`_file`" in sql and "_row_1 as `_file_source`," in sql


def test_parts_of_documents_are_named_as_their_columns_are(changes: Callable[..., str]) -> None:
    """An update of MongoDB names the field; silver looks for its column."""
    columns = {"_id": "Bson(objectId)", "_file_source": "Bson(any)", "tags": "Bson(any)"}
    given: dict[str, Any] = {"connector": "mongodb", "table": ["shop", "t"], "keys": ["_id"], "columns": columns}
    sql = changes(**given, renamed={"_file_source": "_file"})
    assert "p.path[0] in ('_file', 'tags')" in sql
    assert re.search(r"case p.path\[0\]\s+when '_file' then '_file_source' else p.path\[0\] end", sql)
    assert "case p.path[0]" not in changes(**given)


@pytest.mark.parametrize(
    ("columns", "renamed", "told"),
    [
        ({"id": "int32", "_File": "string"}, {}, "a column is named '_File', which Iceberg keeps for its metadata"),
        ({"id": "int32", "_pos": "string"}, {"_pos": "x"}, r"say renamed = {'_pos_source': '_pos'}"),
        ({"id": "int32"}, {"_pos_source": "_pos"}, "renamed has '_pos_source', which is none of the columns"),
        ({"id": "int32", "a": "string", "b": "string"}, {"b": "a"}, "two columns have one name in the events"),
    ],
)
def test_a_declaration_that_cannot_be_read_is_refused(
    changes: Callable[..., str], columns: dict[str, str], renamed: dict[str, str], told: str
) -> None:
    with pytest.raises(ValueError, match=f"debezium_changes in model stg_s__t: .*{told}"):
        changes(keys=["id"], columns=columns, renamed=renamed)
