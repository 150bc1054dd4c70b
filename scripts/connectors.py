"""What connectors declare: the capabilities that the macros in `macros/connectors` return, read without dbt."""

import re
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

from jinja2 import ChainableUndefined, Environment

FOLDER = Path(__file__).resolve().parent.parent / "macros" / "connectors"


class _Returned(Exception):
    """What a macro gives by `return`, which ends it."""


class _Elsewhere(ChainableUndefined):
    """A macro of another folder: it gives SQL, which only dbt reads."""

    def __call__(self, *_: Any, **__: Any) -> str:  # type: ignore[override]
        return ""


def _return(value: Any) -> None:
    raise _Returned(value)


def _call(module: Callable[[], Any], macro: str, *given: Any, **named: Any) -> Any:
    try:
        return getattr(module(), f"of_{macro}")(*given, **named)
    except _Returned as returned:
        return returned.args[0]


def _compiled(text: str, macros: dict[str, Callable[..., Any]]) -> Any:
    environment = Environment(extensions=["jinja2.ext.do", "jinja2.ext.loopcontrols"], undefined=_Elsewhere)
    return environment.from_string(text, macros).module


@cache
def _macros() -> dict[str, Callable[..., Any]]:
    """The macros in these files. A file is compiled when one of its macros is called: all files take 0.1 s."""
    macros: dict[str, Callable[..., Any]] = {"return": _return}
    for path in FOLDER.glob("*.sql"):
        text = path.read_text(encoding="utf-8")
        # Renamed, so that a macro finds the others, of its own file too, in `macros`, where `return` ends them.
        renamed = re.sub(r"macro (?=\w+\()", "macro of_", text)
        module = cache(partial(_compiled, renamed, macros))
        macros |= {name: partial(_call, module, name) for name in re.findall(r"macro (\w+)\(", text)}
    return macros


def connector_names() -> list[str]:
    """All connectors, in the order in which their events are recognised."""
    return list(_macros()["connector_names"]())


@cache
def capabilities(connector: str) -> dict[str, Any]:
    """What `envelope_capabilities` lists, with incomplete SQL; empty if there is no such connector.

    `table` is for each name of a table the members of the value, as paths, of which the first that is there has it.
    """
    name = connector.partition("(")[0]
    found = _macros()["debezium_connector"](name) if name in connector_names() else {"table": []}
    return found | {"table": [re.findall(r"_event\.payload\.([\w.]+)", name) for name in found["table"]]}
