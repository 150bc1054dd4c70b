"""What the README and the pages beside it claim is there."""

import ast
import functools
import os
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import REPOSITORY

from samples import samples

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
PAGES = [REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
MAKE_CALL = re.compile(r"(?:^|`|&& )make ([a-z]+)", re.MULTILINE)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"^```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["make", *arguments], cwd=REPOSITORY, capture_output=True, text=True)


@functools.cache
def functions_of(file: Path) -> set[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_make_targets_that_a_page_names_exist(page: Path) -> None:
    for target in sorted(set(MAKE_CALL.findall(page.read_text(encoding="utf-8")))):
        done = make("--dry-run", target)
        assert done.returncode == 0, f"make {target}: {done.stderr}"


def test_make_help_lists_the_targets() -> None:
    listed = set(re.findall(r"make ([a-z]+)", make("help").stdout))

    for target in listed:
        assert make("--dry-run", target).returncode == 0, target
    phony = re.search(r"^\.PHONY: (.*)", (REPOSITORY / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert phony and listed == set(phony[1].split()) - {"help"}


@pytest.mark.parametrize(
    ("java", "python", "told"),
    [
        (
            "echo 'openjdk version \"11.0.2\" 2019-01-15' >&2",
            "",
            "Java 11 was found; Spark 4 needs 17 or 21. Install Java",
        ),
        ("exit 127", "", "Java was not found. Install Java 17 or 21"),
        (
            "exit 127",
            "ensurepip",
            "this Python cannot create environments. Install its venv module (Debian: apt install",
        ),
        ("exit 127", "version_info", "Python 3.10 or newer is needed"),
    ],
    ids=["Java of a wrong version", "no Java", "no venv module", "old Python"],
)
def test_make_names_in_one_line_what_is_missing_before_it_installs(
    tmp_path: Path, java: str, python: str, told: str
) -> None:
    programs = {
        "java": java,
        "python": (
            f'case "$2" in *{python or "nothing"}*) exit 1 ;; esac; [ "$1" = -c ] || echo installs; [ "$1" = -c ]'
        ),
    }
    for name, program in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{program}\n")
        (tmp_path / name).chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    command = ["make", "--silent", "setup", f"VENV={tmp_path}/venv", f"PYTHON={tmp_path}/python"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, env=environment)

    assert done.returncode and done.stdout.startswith(f"Error: {told}") and len(done.stdout.splitlines()) == 1, (
        done.stdout
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    text = CODE.sub("", page.read_text(encoding="utf-8"))
    for link in LINK.findall(text):
        file, _, heading = link.partition("#")
        if "://" in file or heading.startswith("!/"):  # the latter lead to a place in the docs site: test_docs.py
            continue
        target = (page.parent / file).resolve() if file else page
        assert target.exists() and target.is_relative_to(REPOSITORY), f"{page.name}: {link}"
        if heading:
            headings = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            assert heading in [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in headings], link


def is_shown(file: Path, name: str) -> bool:
    """Whether a file is the case of this name, or has the test of this name."""
    return file.exists() and (file.stem == name if file.suffix == ".json" else name in functions_of(file))


def test_each_guarantee_names_a_test_that_there_is() -> None:
    page = REPOSITORY / "docs" / "guarantees.md"
    table = page.read_text(encoding="utf-8")
    rows = [line.strip("|").split("|") for line in table.splitlines() if line.startswith("|")][2:]
    cells = [cell for row in rows for cell in row[1:]]

    assert len(rows) >= 10 and {len(row) for row in rows} == {3}
    assert all("](../tests/" in cell for cell in cells), cells
    links = re.findall(r"\[`([\w-]+)`\]\((\.\./tests/[\w/-]+\.(?:py|json))\)", table)
    assert len(links) > len(rows)
    for name, file in links:
        assert is_shown((page.parent / file).resolve(), name), f"{file}: {name}"


@pytest.mark.parametrize("page", ["docs/connectors/README.md", "docs/reliability.md"])
def test_a_table_of_what_is_shown_names_tests_that_there_are(page: str) -> None:
    path = REPOSITORY / page
    text = path.read_text(encoding="utf-8")
    links = re.findall(r'^\[(\w+)\]: (\S+) "([\w-]+)"$', text, re.MULTILINE)
    body = re.sub(r"^\[\w+\]: .*$", "", text, flags=re.MULTILINE)

    labels = [label for label, _, _ in links]
    assert set(re.findall(r"\[(\w+)\](?![\[(])", body)) == set(labels) and len(labels) == len(set(labels))
    for _, file, name in links:
        assert is_shown((path.parent / file).resolve(), name), f"{file}: {name}"


def test_the_table_of_connectors_has_every_page() -> None:
    folder = REPOSITORY / "docs" / "connectors"
    pages = set(re.findall(r"\]\((\w+\.md)\)", (folder / "README.md").read_text(encoding="utf-8")))
    assert pages == {path.name for path in folder.glob("*.md")} - {"README.md"}


def test_the_readme_names_every_connector() -> None:
    table = (REPOSITORY / "docs" / "connectors" / "README.md").read_text(encoding="utf-8")
    names = re.findall(r"^\| \[([^]]+)\]\(\w+\.md\)", table, re.MULTILINE)
    named = README.split("Supported sources:")[1].split(".\n")[0].replace("\n", " ").lower()

    assert len(names) == len(list((REPOSITORY / "docs" / "connectors").glob("*.md"))) - 1  # that of the table
    assert [name for name in names if not re.search(rf"(, | and |^ ){re.escape(name.lower())}(,|$)", named)] == []


def test_the_readme_is_short_and_in_its_order() -> None:
    headings = re.findall(r"^## (.*)$", CODE.sub("", README), re.MULTILINE)
    asked = [
        "Start",
        "You write this, you get this",
        "The flow",
        "Guarantees",
        "Use",
        "Configuration",
        "Limits",
        "Alternatives",
    ]

    assert len(README.splitlines()) <= 220
    assert headings == [*asked, "Licence"]


def test_the_models_shown_are_those_of_the_repository() -> None:
    section = README.split("## You write this")[1].split("\n## ")[0]
    blocks = re.finditer(r"```jinja\n(.*?)```", section, re.DOTALL)
    shown = [(re.findall(r"`(models/[\w/]+\.sql)`", section[: block.start()])[-1], block[1]) for block in blocks]

    assert len(shown) == 3
    for path, text in shown:
        assert text == (REPOSITORY / path).read_text(encoding="utf-8"), path


def test_the_numbers_of_the_sample_are_those_of_the_repository(project: Path) -> None:
    from scripts.arguments import DEMO

    models = list((REPOSITORY / "models").rglob("*.sql"))

    assert f"Building {len(models)} models …" in README
    assert (
        len([path for path in models if path.parts[-3] == "silver"]) <= 24
    )  # a person reads the table that ends the demo
    for system in DEMO:
        events = (REPOSITORY / "samples" / f"{system}.jsonl").read_bytes().count(b"\n")
        assert f"{system}: {events} new records in 1 file(s)" in README


def test_each_table_of_the_sample_is_in_the_readme_and_said_what_it_shows() -> None:
    """The table that the demo prints is compared with the README's by `make test`."""
    page = (REPOSITORY / "samples" / "README.md").read_text(encoding="utf-8")
    described = re.findall(r"^\| `[^|]+` \| `([^|]+)` \|", page, re.MULTILINE)
    live = {
        f"{path.parts[-2]}.{path.stem.split('__', 1)[1]}" for path in (REPOSITORY / "models" / "live").rglob("*.sql")
    }
    printed = re.findall(
        r"^\S.*?  +(\w+\.\w+)  +\d", README.split("```\nmake run\n```")[1].split("```")[1], re.MULTILINE
    )

    assert {name for name in described if not name.startswith("silver.")} == live
    assert printed == described


def test_the_samples_are_cut_from_the_events_of_the_tests() -> None:
    found = {path.stem: path.read_bytes() for path in (REPOSITORY / "samples").glob("*.jsonl")}
    assert found == samples()


def test_the_settings_named_are_read() -> None:
    short = re.findall(r"^\| `([A-Z_]+)` \|", README.split("## Configuration")[1].split("\n## ")[0], re.MULTILINE)
    page = (REPOSITORY / "docs" / "configuration.md").read_text(encoding="utf-8")
    names = re.findall(
        r"`([A-Z_0-9]+)`", "\n".join(line.split("|")[1] for line in page.splitlines() if line.startswith("| `"))
    )
    read = "".join(
        path.read_text(encoding="utf-8")
        for path in [REPOSITORY / "profiles" / "profiles.yml", *(REPOSITORY / "scripts").glob("*.py")]
    )

    assert len(short) >= 4 and set(short) <= set(names)
    for name in names:
        assert re.search(rf"['\"]{name}['\"]", read), name


def test_what_a_run_says_of_rejected_records(project: Path) -> None:
    """Reasons with their numbers, the most frequent first, and the query; names may hold anything."""
    from scripts.results import REASONS_SHOWN, _rejects, counts_of_table

    def counted(
        kind: str, op: str, events: int, reason: str | None = None, newest: str | None = None
    ) -> SimpleNamespace:
        return SimpleNamespace(kind=kind, op=op, events=events, reject_reason=reason, newest=newest)

    rows = [
        counted("change", "c", 1200, newest="2026-03-04 05:01:15"),
        counted("truncate", "t", 2, newest="2026-03-05 00:00:00"),
        counted("rejected", "u", 1, "no_key"),
        counted("rejected", "c", 2, "no_position"),
        counted("rejected", "u", 1, "no_position"),
        counted("tombstone", "", 9),
    ]
    assert counts_of_table(rows) == ["1,206", "1,200", "0", "0", "2", "4", "2026-03-05 00:00:00"]
    assert counts_of_table([]) == ["0"] * 6 + ["-"]
    assert _rejects("shop", "a'b\\c\x1b[2J", rows) == [
        "shop: 4 records were rejected of a'b\\c\\x1b[2J:",
        "  3 because of no_position",
        "  1 because of no_key",
        (
            "  select reason, event_id, value from monitoring.`shop__rejected_events` where source_table ="
            " 'a\\'b\\\\c\\U0000001b[2J'"
        ),
    ]
    assert _rejects("shop", "orders", rows[:2]) == []
    many = [counted("rejected", "c", 1, f"reason {number}") for number in range(REASONS_SHOWN + 3)]
    assert _rejects("shop", None, many)[0] == "shop: 8 records were rejected of no table:"
    assert _rejects("shop", None, many)[-2:] == [
        "  3 for other reasons",
        "  select reason, event_id, value from monitoring.`shop__rejected_events` where source_table is null",
    ]


def test_a_run_shows_the_lag_of_what_changed_and_of_many_tables_only_some(project: Path) -> None:
    from scripts.results import MANY_TABLES, _lag, _shown_tables, duration

    assert [duration(seconds) for seconds in (-3, 0, 119, 120, 7199, 7200, 2 * 86400 - 1, 9e5)] == (
        ["< 0 s", "0 s", "119 s", "2 min", "119 min", "2 h", "47 h", "10 d"]
    )

    def row(kind: str, is_new: bool, second: int | None = None) -> SimpleNamespace:
        return SimpleNamespace(kind=kind, is_new=is_new, newest_second=second)

    old, late = row("change", False, 900), row("truncate", True, 500)
    assert _lag([old, row("change", True, 400), late, row("rejected", True, 990)], 1000.7) == "8 min"
    assert _lag([old], 1000) == _lag([row("tombstone", True)], 1000) == _lag([], 1000) == "-"

    tables = [SimpleNamespace(table=SimpleNamespace(name=f"t{number}")) for number in range(MANY_TABLES + 1)]
    counts = {
        ("s", "t1"): [old, late],
        ("s", "t2"): [old],
        ("s", "t3"): [row("rejected", False)],
        ("other", "t4"): [late],
    }
    assert _shown_tables("s", tables[1:], counts) == tables[1:]  # type: ignore[arg-type]
    assert _shown_tables("s", tables, counts) == [tables[1], tables[3]]  # type: ignore[arg-type]
