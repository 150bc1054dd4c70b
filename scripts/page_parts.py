"""Parts of an HTML page: texts, tables and charts, which a browser shows without loading or executing anything.

Names, reasons and messages may hold anything: `text` writes all of them.
"""

import html
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pygal
from pygal.etree import etree
from pygal.style import Style

from scripts.messages import shown

etree.to_etree()  # also where lxml is installed, whose elements are others
FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"
# Told apart by all eyes (Okabe and Ito, "Color universal design"), on white.
COLOURS = ("#0072B2", "#009E73", "#E69F00", "#CC79A7", "#56B4E9", "#D55E00", "#8C7A00", "#7F7F7F")
SHOWN = 12  # rows of a table; the others unfold
PAGE = f"""
body {{ font: 14px/1.45 {FONT}; color: #222; max-width: 1340px; margin: 24px auto; padding: 0 20px }}
h1 {{ font-size: 24px; margin-bottom: 0 }}
h2 {{ font-size: 18px; margin: 32px 0 8px; border-bottom: 2px solid #0072B2 }}
table {{ border-collapse: collapse; width: 100%; margin: 8px 0 }}
th, td {{ padding: 3px 10px; text-align: left; vertical-align: top; overflow-wrap: anywhere; min-width: 19ch }}
th {{ border-bottom: 1px solid #888; color: #555; font-weight: 600; overflow-wrap: normal }}
tr:nth-child(even) td {{ background: #f5f7f9 }}
tr.marked td {{ color: #a33b00 }}
th.number, td.number {{ text-align: right; min-width: 0; font-variant-numeric: tabular-nums }}
td.number {{ white-space: nowrap }}
.tiles, .charts {{ display: flex; flex-wrap: wrap; gap: 12px }}
.tiles {{ margin: 16px 0 }}
.tiles div {{ background: #eef3f7; border-radius: 6px; padding: 10px 18px; color: #555 }}
.tiles b {{ display: block; font-size: 22px; color: #222 }}
figure {{ flex: 1 1 560px; max-width: 660px; margin: 0 }}
figcaption {{ font-weight: 600; margin-top: 8px }}
figure p {{ font-size: 12px; margin: 0 0 0 56px; overflow-wrap: anywhere }}
figure span {{ display: inline-block; margin-right: 14px }}
figure i {{ display: inline-block; width: 10px; height: 10px; margin-right: 5px }}
summary {{ cursor: pointer; color: #0072B2 }}
code {{ font-size: 12px }}
.problems {{ color: #a33b00 }}
"""


def text(value: object) -> str:
    """Any value as text of HTML; what is not printable as an escape."""
    return html.escape(shown(str(value)))


def size(number: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if number >= 10 or number == int(number) else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:,.1f} TB"


def moment(seconds: float | None, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    try:
        return time.strftime(form, time.gmtime(seconds)) if seconds is not None else "-"
    except (ValueError, OverflowError, OSError):
        return "-"


class Query(str):
    """A text to copy."""


def table(head: str, rows: Sequence[Sequence[object]], marked: Sequence[bool] = ()) -> str:
    """A table; what is beyond the first rows unfolds.

    Args:
        head: the columns, with `|` between; before those on the right, numbers and durations, stands `>`.
        marked: which rows are red.
    """
    columns = head.split("|")
    sides = [' class="number"' if name.startswith(">") else "" for name in columns]
    top = "".join(f"<th{side}>{text(name.lstrip('>'))}</th>" for name, side in zip(columns, sides, strict=True))

    def cell(value: object) -> str:
        if isinstance(value, Query):
            return f"<code>{text(value)}</code>"
        return f"{value:,}" if isinstance(value, int) else text(value)

    lines = []
    for at, row in enumerate(rows):
        cells = "".join(f"<td{side}>{cell(value)}</td>" for value, side in zip(row, sides, strict=True))
        is_marked = ' class="marked"' if at < len(marked) and marked[at] else ""
        lines.append(f"<tr{is_marked}>{cells}</tr>")

    def of(some: list[str]) -> str:
        return f"<table><thead><tr>{top}</tr></thead><tbody>{''.join(some)}</tbody></table>"

    if len(lines) <= SHOWN:
        return of(lines)
    return f"{of(lines[:SHOWN])}<details><summary>{len(lines) - SHOWN:,} more</summary>{of(lines[SHOWN:])}</details>"


STYLE = Style(
    background="transparent",
    plot_background="transparent",
    foreground="#444",
    foreground_strong="#222",
    foreground_subtle="#ccc",
    guide_stroke_color="#ddd",
    major_guide_stroke_color="#ddd",
    guide_stroke_dasharray="1,0",
    major_guide_stroke_dasharray="1,0",
    opacity=".9",
    colors=COLOURS,
    font_family=FONT,
    label_font_size=12,
    major_label_font_size=12,
    no_data_font_size=16,
)
CONFIG: dict[str, Any] = {
    "style": STYLE,
    "js": [],
    "no_prefix": True,
    "width": 640,
    "height": 220,
    "margin": 8,
    "show_minor_x_labels": False,
    "truncate_label": -1,
    "show_legend": False,
    "show_x_guides": False,
    "max_scale": 5,
    "include_x_axis": True,
}


def chart(
    title: str,
    labels: Sequence[str],
    series: Mapping[str, Sequence[float]],
    shown_as: Callable[[float], str] = lambda number: f"{number:,.0f}",
    kind: Any = pygal.StackedBar,
) -> str:
    """A figure: a bar of each label, or an area over all, in parts."""
    each = zip(series.items(), COLOURS, strict=False)
    legend = [f'<span><i style="background:{colour}"></i>{text(name)}</span>' for (name, of), colour in each if any(of)]
    one = kind(**CONFIG, x_labels_major_every=max(1, -(-len(labels) // 6)), value_formatter=shown_as)
    if kind is pygal.StackedLine:
        one.config(fill=True, show_dots=False)
    # Of labels that are equal pygal would show all, one above the other.
    one.x_labels = [shown(label) + " " * labels[:at].count(label) for at, label in enumerate(labels)]
    for name, values in series.items():
        one.add(shown(name), [value or None for value in values])
    drawing = _svg(one, [shown(name) for name in series])
    return f"<figure><figcaption>{text(title)}</figcaption>{drawing}<p>{''.join(legend)}</p></figure>"


def _svg(one: Any, names: Sequence[str]) -> str:
    """A chart's drawing without scripts, style (`css` is that of all) and what only its scripts use. A bar has a title,
    which browsers show.
    """
    root = one.render_tree()
    for parent in list(root.iter()):
        parent.attrib.pop("id", None)
        for child in list(parent):
            if not isinstance(child.tag, str) or child.tag in ("defs", "title") or "overlay" in child.get("class", ""):
                parent.remove(child)
    for number, name in enumerate(names):
        series = [group for group in root.iter("g") if f"serie-{number} " in group.get("class", "") + " "]
        for group in [group for one in series for group in one.iter("g")]:
            parts = [part for part in group if part.tag == "desc"]
            told = {part.get("class"): part.text for part in parts}
            for part in parts:
                group.remove(part)
            if any(float(bar.get("height")) == 0 for bar in group if bar.tag == "rect"):
                group.clear()
            elif "value" in told:
                etree.SubElement(group, "title").text = f"{told.get('x_label', '')}: {name} {told['value']}"
    root.set("role", "img")
    return str(etree.tostring(root, encoding="unicode"))


def css() -> str:
    """The style of all charts: they have the same colours."""
    one = pygal.StackedBar(**CONFIG)
    for colour in COLOURS:
        one.add(colour, [1])
    return "".join(str(style.text) for style in one.render_tree().iter("style"))
