"""Texts and names as they stand in Jinja, in SQL and in descriptions."""

import re
from typing import Any


def quoted_list(names: Any) -> str:
    return "[" + ", ".join(quoted(name) for name in names) + "]"


def quoted(text: str) -> str:
    """A Jinja string literal, also of a text that holds quotes, backslashes or braces."""
    return (
        "'" + text.encode("unicode_escape").decode("ascii").replace("'", "\\'") + "'" if _is_odd(text) else f"'{text}'"
    )


def sql_text(text: str) -> str:
    """A text as a literal of Spark that a terminal shows and a person can copy: what is not printable is an escape."""
    escapes = {"\\": "\\\\", "'": "\\'"}
    shown = (escapes.get(each, each if each.isprintable() else rf"\U{ord(each):08x}") for each in text)
    return "'" + "".join(shown) + "'"


def _is_odd(text: str) -> bool:
    return any(character in "'\\{}" or ord(character) < 32 or ord(character) == 127 for character in text)


def plain(name: str) -> str:
    """A name without what dbt would render or YAML readers would stumble over in a description."""
    return re.sub(r"[{}%#\x00-\x1f`]", "_", name)
