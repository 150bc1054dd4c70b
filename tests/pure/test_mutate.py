"""The slips of `make mutate`, without running a test on any of them."""

from pathlib import Path

import pytest
from mutate import PROJECT, Mutation, MutationError, copy_of, failing, mutated, mutations


def test_each_slip_fits_the_code() -> None:
    slips = mutations()
    for slip in slips:
        assert mutated((PROJECT / slip.file).read_text(encoding="utf-8"), slip)
    assert len(slips) >= 40
    files = [*PROJECT.glob("macros/**/*.sql"), *PROJECT.glob("scripts/*.py")]
    untouched = {path.stem for path in files} - {Path(slip.file).stem for slip in slips}
    assert untouched <= {
        "__init__",
        "errors",
        "sql",
        "check_demo",
        "docs",
    }  # which compute nothing that ends in a table


@pytest.mark.parametrize("text", ["", "a b a", "c"], ids=["nowhere", "twice", "the same"])
def test_a_slip_that_does_not_fit_is_refused(text: str) -> None:
    slip = Mutation(7, "name", "file.sql", text[:1] or "z", "c", "nothing", [])
    with pytest.raises(MutationError, match=r"mutation 7 \(name\): its text stands [012] times in file.sql"):
        mutated(text, slip)


def test_names_stand_once(tmp_path: Path) -> None:
    path = tmp_path / "mutations.yml"
    path.write_text("- &one {name: a, file: f, old: o, new: n, wrong: w}\n- *one\n", encoding="utf-8")
    with pytest.raises(MutationError, match="a stands there twice"):
        mutations(path)


def test_the_first_test_that_fails_is_told_and_the_project_stays_as_it_is() -> None:
    with copy_of(PROJECT) as copy:
        (copy / "tests" / "pure" / "test_slip.py").write_text(
            "def test_a():\n    pass\ndef test_b():\n    assert 0\n", encoding="utf-8"
        )
        assert failing(copy, ["tests/pure/test_slip.py::test_a"]) == []
        assert failing(copy, ["tests/pure/test_slip.py"], "-x") == ["tests/pure/test_slip.py::test_b"]
        with pytest.raises(MutationError, match="ended with 4"):
            failing(copy, ["tests/pure/test_slip.py::test_c"])
    assert not (PROJECT / "tests" / "pure" / "test_slip.py").exists() and not copy.exists()
