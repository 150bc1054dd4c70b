"""`make sql`: where a statement ends."""

from pathlib import Path

import pytest


@pytest.mark.parametrize(
    "typed, expected",
    [
        (["select 1;\n", "select 2;\n"], ["select 1", "select 2"]),
        (["select 1; select 2;\n"], ["select 1", "select 2"]),
        (["delete from t -- the third one;\n", "where id = 3;\n"], ["delete from t -- the third one;\nwhere id = 3"]),
        (["delete from t /* all;\n", "of it; */ where id = 3;\n"], ["delete from t /* all;\nof it; */ where id = 3"]),
        (["select 'a;\n", "b\\'; -- c', \"x;\" as `;\n", "`;\n"], ["select 'a;\nb\\'; -- c', \"x;\" as `;\n`"]),
        (["select 4 - 2 / 1;\n"], ["select 4 - 2 / 1"]),
        (["delete from t\n", None, "select 1;\n"], ["select 1"]),
    ],
)
def test_a_statement_ends_at_a_semicolon_outside_of_texts_names_and_comments(
    project: Path, typed: list[str | None], expected: list[str]
) -> None:
    from scripts.sql import statements

    found = [(statement.strip(), is_ended) for statement, is_ended in statements(typed)]
    assert found == [*((statement, True) for statement in expected), ("", False)]


def test_the_rest_has_no_end(project: Path) -> None:
    from scripts.sql import statements

    assert list(statements(["select 1;\n", "delete from t\n"]))[-1] == ("\ndelete from t\n", False)
