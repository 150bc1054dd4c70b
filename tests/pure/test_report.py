"""The page of `make report` from literal figures."""

import re
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from test_runs import a_run

NOW = 1_795_800_600.0  # 2026-11-27 17:30:00
HOSTILE = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror='alert(1)'>",
    "</title></style></svg><iframe src=//evil>",
    "]]><!--",
    "\x00\x1b[2J\u202e&lt;b&gt;",
    "x" * 300,
    "\ud800",
]
TAGS = set(
    re.findall(
        r"\w+",
        "html head meta title style body h1 h2 p div b section table thead tbody tr th td code ul li details summary"
        " figure figcaption span i svg g rect path text",
    )
)
ATTRIBUTES = {"lang", "charset", "http-equiv", "content", "class", "style", "role"}
ATTRIBUTES |= {"xmlns", "viewbox", "x", "y", "width", "height", "rx", "ry", "d", "transform"}


class Page(HTMLParser):
    """Tags, attributes and texts of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: dict[str, set[str]] = {}
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.setdefault(name, set()).add(value or "")

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def figures(system: str, name: str, rejected: int = 0) -> Any:
    from scripts.report_page import Commit, Delay, Events, Figures, Reject, Rows

    hour = int(NOW) // 3600 * 3600
    return Figures(
        system,
        records=5,
        newest=int(NOW),
        rows={name: Rows(name, ["5", "3", "1", "1", "0", str(rejected), "2026-11-27 17:00:00"], live=2, deleted=1)},
        events=[
            Events(name, "c", hour, True, 3),
            Events(name, "u", hour - 7200, True, 1),
            Events(name, "z", hour, True, 7),
        ],
        delays=[Delay(name, NOW - 90, NOW - 60, None, NOW - 10)],
        rejects=[Reject(name, name, rejected, f"select '{name}'")] if rejected else [],
        commits=[
            Commit(f"silver.{name}", int(NOW) - 600, 1, 0, 1500, 9),
            Commit(f"silver.{name}", int(NOW), 2, 0, 9, 9),
        ],
        problems=[f"rows could not be read: {name}"],
    )


def test_names_reasons_and_messages_are_text_and_nothing_is_loaded_or_executed(project: Path) -> None:
    from scripts.report_page import page

    runs = [a_run(problem=name, systems=[name], seconds={name: 1.0}, status=1) for name in HOSTILE]
    text = page([figures(name, name, rejected=2) for name in HOSTILE], runs, NOW)
    found = Page(text)

    assert text.encode("utf-8") and all(each.isprintable() for each in text.replace("\n", ""))
    assert found.tags <= TAGS and set(found.attributes) <= ATTRIBUTES
    assert found.attributes["xmlns"] == {"http://www.w3.org/2000/svg"}  # a name, which no browser loads
    assert found.attributes["content"] == {"default-src 'none'; style-src 'unsafe-inline'"}
    assert not re.search(r"url\(|@import|expression", text) and text.count("http") == text.count('xmlns="http') + 1
    for name in (*HOSTILE[:4], "\\x00\\x1b[2J\\u202e&lt;b&gt;", "\\ud800"):
        for shown in (name, f"select '{name}'", f"rows could not be read: {name}"):
            assert shown in "".join(found.texts), shown


def test_what_needs_a_look_comes_first() -> None:
    from scripts.report_page import Delay, page

    good, bad, late, stuck = (figures(system, f"{system}_t", number) for system, number in
                              (("a_good", 0), ("b_bad", 9), ("c_late", 0), ("d_stuck", 2)))  # fmt: skip
    late.delays = [Delay("late_t", NOW - 9000, None, None, NOW - 1000)]
    stuck.delays = [Delay("stuck_t", NOW - 20, None, NOW - 10, None), Delay("none_t", None, None, None, None)]
    text = page([good, bad, late, stuck], [a_run(), a_run(started=NOW + 60, status=1, problem="the disk is full")], NOW)

    def order(section: str, *names: str) -> bool:
        part = text.split(f"<h2>{section}</h2>")[1].split("<h2>")[0]
        places = [part.index(name) for name in names]
        return places == sorted(places)

    assert (
        order("Rejected records", "b_bad_t", "d_stuck_t")
        and "a_good" not in text.split("<h2>Delays")[0].split("Rejected")[-1]
    )
    assert order("Delays", "stuck_t", "late_t", "a_good_t") and "none_t" not in text
    assert (
        order("Runs", "the disk is full", "2026-11-27 17:30:00")
        and '<tr class="marked"><td>2026-11-27 17:31:00' in text
    )
    systems = [system for system in re.findall(r"<h2>(\w+)</h2>", text) if "_" in system]
    assert systems == ["b_bad", "d_stuck", "a_good", "c_late"]
    assert '<td class="number">2 h</td>' in text and '<td class="number">10.5 s</td>' in text


def test_charts_have_hours_or_days_and_sums() -> None:
    from scripts.report_page import Commit, Events, events_by_time, growth

    one = figures("shop", "orders")
    titles = re.findall("<title>(.*?)</title>", events_by_time(one))
    assert sorted(titles) == [
        "11-27 15:00: orders 1",
        "11-27 15:00: update 1",
        "11-27 17:00: insert 3",
        "11-27 17:00: orders 10",
        "11-27 17:00: z 7",
    ]
    one.events += [Events(f"t{n}", "r", int(NOW) // 86400 * 86400 - 86400, False, 100 - n) for n in range(9)]
    by_day = events_by_time(one)
    assert "Events per day (UTC), by operation" in by_day
    assert {"2026-11-26: snapshot 864", "2026-11-26: 3 others 185", "2026-11-27: 3 others 11"} <= set(
        re.findall("<title>(.*?)</title>", by_day)
    )

    before = [
        Commit("bronze.shop", int(NOW) - 3600, 4, 0, 1000, 9),
        Commit("shop_history.x", int(NOW) - 60, 1, 0, 500, 9),
    ]
    drawn = growth(figures("shop", "orders"), NOW)
    assert "silver" in drawn and "bronze" not in drawn
    one.commits = before
    assert "bronze" in growth(one, NOW) and "other" in growth(one, NOW)
    assert growth(one, NOW).count('class="major">11-27') == 12  # six of each chart, although minutes have several steps


def test_a_lakehouse_without_tables_and_runs_has_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from scripts.report_page import Figures, page

    text = page([Figures("shop", records=3)], [], NOW)
    assert "No table yet" in text and "No run has been noted yet." in text and "<svg" not in text


def test_a_report_of_nothing_is_an_error(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from scripts import report

    def told(*tables: str, status: int = 2) -> str:
        monkeypatch.setattr(report, "all_tables", lambda _: tables)
        assert report.main() == status
        return capsys.readouterr().err.strip()

    monkeypatch.setattr(report, "session", lambda: None)
    monkeypatch.setenv("LAKEHOUSE_DIR", str(tmp_path / "none"))
    assert told() == f"Error: LAKEHOUSE_DIR={tmp_path}/none: there is no lakehouse yet. Run make run first."
    assert not (tmp_path / "none").exists()
    monkeypatch.setenv("LAKEHOUSE_DIR", str(tmp_path))
    assert told(status=1) == "Error: nothing has landed yet, so there is nothing to report. Run make run first."
    monkeypatch.setenv("SYSTEM", "<b>")
    assert told("`bronze`.`shop`") == "Error: SYSTEM=<b>: nothing has landed for it. Systems: shop."
    assert not (tmp_path / "report.html").exists()


def test_what_cannot_be_read_is_named_and_the_rest_is_there(project: Path) -> None:
    from scripts.report import Report

    class Spark:
        asked: list[str] = []

        def sql(self, statement: str) -> Any:
            self.asked.append(statement)
            if "b_bad" in statement:
                raise ValueError("no such view\nand a long plan")
            return SimpleNamespace(collect=lambda: [statement])

    report = Report(Spark(), ["a", "b", "c"], ["`bronze`.`a`", "`bronze`.`b`", "`bronze`.`c`"])
    queries = {"a": ["select 1", "select {0}"], "b": ["select b_bad"], "c": []}
    assert report.ask("delays", queries, "({0}) order by 1") == ["(select 1 union all select {0}) order by 1"]
    assert len(Spark.asked) == 3
    problems = {system: figures.problems for system, figures in report.figures.items()}
    assert problems == {"a": [], "b": ["delays could not be read: no such view"], "c": []}
    assert report.ask("rows", {"c": []}) == [] and len(Spark.asked) == 3
