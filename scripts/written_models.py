"""How models and their YAML are written.

Models whose SQL was edited by hand since are never written over, and of YAML only what is generated otherwise now.
"""

import re
from pathlib import Path
from typing import Any

import yaml

from scripts.declared import Declared, declared_in, declared_table, holding_model
from scripts.errors import LakehouseError
from scripts.files import put
from scripts.scaffolded import Scaffolded
from scripts.spark import read_yaml
from scripts.table_models import models_of, properties_of, properties_path
from scripts.written_yaml import LOADER, dump, updated

INTENDED = ".intended"  # after the name of a YAML file whose models are being written


def says(path: Path, text: str) -> bool:
    return path.exists() and path.read_text(encoding="utf-8") == text


def is_untouched(system: str, declared: Declared, models: Path) -> bool:
    """Whether the models of a table are as they were written, but for the live one, which names no columns."""
    return all(
        says(models / name, text) for name, text in models_of(system, declared).items() if not name.startswith("live/")
    )


def files_of_others(system: str, declared: Declared, models: Path) -> list[str]:
    """Models that stand where those of a new table would: somebody wrote them by hand, or took their YAML away."""
    return [
        name
        for name, text in models_of(system, declared).items()
        if (models / name).exists() and (models / name).read_text(encoding="utf-8") != text
    ]


def write_models(system: str, declared: Declared, models: Path, done: Scaffolded) -> None:
    """Write the files of a table.

    The YAML, by which it is known again, is the first one and comes to its place as the last.
    """
    properties = models / properties_path(system, declared)
    intended = properties.with_name(properties.name + INTENDED)
    put(intended, _with_edits(system, declared, properties, properties_of(system, declared)))
    for name, text in models_of(system, declared).items():
        if not (name.startswith("live/") and (models / name).exists()):  # which says the same for ever, or was edited
            put(models / name, text)
        done.written.append(Path(name).stem)
    stale = models / "live" / system / f"{declared.model('live', system)}.sql"
    if not declared.table.keys and stale.exists():
        stale.unlink()
    intended.replace(properties)


def finish_writing(system: str, models: Path, done: Scaffolded) -> None:
    """Write what a run that was killed meant to write, so that its half of the files is not taken for edits."""
    for intended in sorted((models / "silver" / system).glob(f"*.yml{INTENDED}")):
        properties = intended.with_name(intended.name.removesuffix(INTENDED))
        wanted = declared_table(system, intended, properties.stem)
        assert wanted, f"{intended} was written as a whole"
        before = declared_table(system, properties, properties.stem) if properties.exists() else None
        texts = [models_of(system, declared) for declared in (wanted, before) if declared]
        files = {name: models / name for name in texts[0] if not name.startswith("live/")}
        there = {name: path.read_text(encoding="utf-8") for name, path in files.items() if path.exists()}
        if all(text in [known.get(name) for known in texts] for name, text in there.items()):
            write_models(system, wanted, models, done)
        else:  # edited since
            intended.unlink()


def write_properties(system: str, declared: Declared, models: Path) -> None:
    path = models / properties_path(system, declared)
    text = _with_edits(system, declared, path, properties_of(system, declared))
    if not says(path, text):
        put(path, text)


def _with_edits(system: str, declared: Declared, path: Path, text: str) -> str:
    """Generated YAML of a table, with all that a person wrote in the file that is there.

    Raises:
        LakehouseError: what is generated has no place in it.
    """
    if not path.exists():
        return text
    there, known = path.read_bytes().decode("utf-8"), declared_table(system, path, path.stem)
    before = properties_of(system, known) if known else text
    if there in (before, text):
        return text
    content = read_yaml(path)
    holder, _ = holding_model(content)
    then, now = (_declared_by(holder, yaml.load(generated, Loader=LOADER)) for generated in (before, text))
    if not known:  # somebody took the declaration out: it is new again, and all else is as it was
        del then["models"][0]["config"]
    is_former = _add_former(then, content)
    result = updated(there, then, now, str(path))
    if is_former and there == dump(content) and yaml.load(result, Loader=LOADER) == now:
        return text  # nobody has edited it
    found = declared_in(yaml.load(result, Loader=LOADER), path, declared.relation)
    if found is None or (properties_of(system, found), models_of(system, found)) != (text, models_of(system, declared)):
        raise LakehouseError(
            f"{path}: meta.debezium has no place in it. Put the file back as make run wrote it, and run again."
        )
    return result


def _add_former(then: dict[str, Any], content: dict[str, Any]) -> bool:
    """Have generated YAML describe what a former version described: each column at each model, and its type alone.
    Returns whether one has written the `content` of the file.
    """
    there = {model.get("name"): model for model in (content or {}).get("models") or []}
    is_former = False
    for model in then["models"]:
        found = there.get(model["name"], {})
        columns = found.get("columns")
        former = [one for one in columns if _is_former(one)] if isinstance(columns, list) else []
        if any("quote" in one for one in former):
            names = {one["name"] for one in former}
            others = [one for one in model.get("columns", []) if one["name"] not in names]
            model["columns"], is_former = former + others, True
            if found.get("description") == (without_key := model["description"].partition(" Key: ")[0]):
                model["description"] = without_key
    return is_former


def _is_former(column: Any) -> bool:
    told = {name: value for name, value in column.items() if name != "name"} if isinstance(column, dict) else {}
    of_source = re.fullmatch(r"`[^`]+` in the events(, where it is named `[^`]*`)?\.", str(told.get("description")))
    return told == {"description": f"{{{{ doc('{column.get('name') if told else ''}') }}}}"} or bool(
        of_source and told.keys() == {"description", "quote"} and told["quote"] is True
    )


def _declared_by(holder: str, content: dict[str, Any]) -> dict[str, Any]:
    """Generated YAML whose declaration stands with the model that has it in the file, wherever somebody has put it."""
    staging, *others = content["models"]
    if holder and holder != staging["name"]:
        known = next((model for model in others if model["name"] == holder), {"name": holder})
        known["config"] = staging.pop("config")
        content["models"] += [] if known in others else [known]
    return content
