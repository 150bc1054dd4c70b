"""What the README and the pages beside it claim is there."""

import ast
import re
import subprocess
from pathlib import Path

import pytest
from conftest import REPOSITORY

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
PAGES = [REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
MAKE_CALL = re.compile(r"(?:^|`|&& )make ([a-z]+)", re.MULTILINE)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"^```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["make", *arguments], cwd=REPOSITORY, capture_output=True, text=True)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_make_targets_that_a_page_names_exist(page: Path) -> None:
    for target in sorted(set(MAKE_CALL.findall(page.read_text(encoding="utf-8")))):
        done = make("--dry-run", target)
        assert done.returncode == 0, f"make {target}: {done.stderr}"


def test_make_help_lists_targets_that_exist() -> None:
    targets = [line.split()[1].rstrip(",") for line in make("help").stdout.splitlines() if line.startswith("make ")]

    assert len(targets) > 5
    for target in set(targets):
        assert make("--dry-run", target).returncode == 0, target
    assert {"run", "sql", "docs", "test"} <= set(targets)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    text = CODE.sub("", page.read_text(encoding="utf-8"))
    for link in LINK.findall(text):
        file, _, heading = link.partition("#")
        if "://" in file:
            continue
        target = (page.parent / file).resolve() if file else page
        assert target.exists() and target.is_relative_to(REPOSITORY), f"{page.name}: {link}"
        if heading:
            headings = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            assert heading in [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in headings], link


def test_each_guarantee_names_a_test_that_there_is() -> None:
    table = README.split("## Guarantees")[1].split("\n## ")[0]
    rows = [line.strip("|").split("|") for line in table.splitlines() if line.startswith("|")][2:]
    cells = [cell for row in rows for cell in row[1:]]

    assert len(rows) >= 10 and {len(row) for row in rows} == {3}
    assert all("](tests/" in cell for cell in cells), cells
    for name, file in re.findall(r"\[`(\w+)`\]\((tests/\w+\.py)\)", table):
        tree = ast.parse((REPOSITORY / file).read_text(encoding="utf-8"))
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, f"{file}: {name}"


@pytest.mark.parametrize("page", ["README.md", "docs/connectors/README.md", "docs/reliability.md"])
def test_a_table_of_what_is_shown_names_tests_that_there_are(page: str) -> None:
    path = REPOSITORY / page
    text = path.read_text(encoding="utf-8")
    links = re.findall(r'^\[(\w+)\]: (\S+) "(\w+)"$', text, re.MULTILINE)
    body = re.sub(r"^\[\w+\]: .*$", "", text, flags=re.MULTILINE)

    assert set(re.findall(r"\[(\w+)\](?![\[(])", body)) == {label for label, _, _ in links}
    for _, file, name in links:
        tree = ast.parse((path.parent / file).read_text(encoding="utf-8"))
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, f"{file}: {name}"


def test_the_table_of_connectors_has_every_page() -> None:
    folder = REPOSITORY / "docs" / "connectors"
    pages = set(re.findall(r"\]\((\w+\.md)\)", (folder / "README.md").read_text(encoding="utf-8")))
    assert pages == {path.name for path in folder.glob("*.md")} - {"README.md"}


def test_the_models_shown_are_those_of_the_repository() -> None:
    section = README.split("## You write this")[1].split("\n## ")[0]
    blocks = re.finditer(r"```jinja\n(.*?)```", section, re.DOTALL)
    shown = [(re.findall(r"`(models/[\w/]+\.sql)`", section[: block.start()])[-1], block[1]) for block in blocks]

    assert len(shown) == 3
    for path, text in shown:
        assert text == (REPOSITORY / path).read_text(encoding="utf-8"), path


def test_the_numbers_of_the_sample_are_those_of_the_repository() -> None:
    models = list((REPOSITORY / "models").rglob("*.sql"))

    assert f"Building {len(models)} models …" in README
    assert f"(some of the {len([path for path in models if path.parts[-3] == 'silver'])} tables)" in README
    for system in ("shop", "billing"):
        events = (REPOSITORY / "tests" / "events" / f"{system}.jsonl").read_bytes().count(b"\n")
        assert f"{system}: {events} new records in 1 file(s)" in README


def test_the_settings_named_are_read() -> None:
    names = re.findall(r"^\| `([A-Z_]+)` \|", README.split("## Configuration")[1].split("\n## ")[0], re.MULTILINE)
    read = "".join(
        path.read_text(encoding="utf-8")
        for path in [REPOSITORY / "profiles" / "profiles.yml", *(REPOSITORY / "scripts").glob("*.py")]
    )

    assert len(names) >= 4
    for name in names:
        assert re.search(rf"['\"]{name}['\"]", read), name
