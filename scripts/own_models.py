"""The models that people write, wherever they stand in models/: which of them a run has to build.

Those are the models that read, directly or not, what the run changed, those that are new or edited, and those that
failed before. A model waits until every system that it reads has tables.
"""

import hashlib
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scripts.names import SYSTEM_MODELS

MONITORING = ("ddl_history", "rejected_events", "transactions")  # views that read bronze
# Folder of the scaffold → how the names of its tables' models begin.
PREFIXES = {"staging": "stg_", "silver": "", "live": "live_"}


def is_scaffolded(path: Path, models: Path) -> bool:
    """Whether `make run` writes this file of a model: it is one of a declared table, or of a system as a whole."""
    *folders, _ = path.relative_to(models).parts
    if len(folders) != 2:
        return False
    layer, system = folders
    if layer in ("staging", "monitoring") and path.stem in {f"{system}__{name}" for name in SYSTEM_MODELS}:
        return True
    if layer not in PREFIXES or not path.stem.startswith(f"{PREFIXES[layer]}{system}__"):
        return False
    return (models / "silver" / system / f"{path.stem.removeprefix(PREFIXES[layer])}.yml").exists()


def own_files(models: Path, shared: str) -> dict[str, str]:
    """Path of each model that a person wrote → a digest of its text, of the YAML beside and above it, and of
    `shared`.
    """
    found = {}
    for path in sorted([*models.rglob("*.sql"), *models.rglob("*.py")]):
        if not is_scaffolded(path, models):
            digest = hashlib.sha256(shared.encode())
            folders = [folder for folder in path.parents if folder.is_relative_to(models)]
            for text in (path, *(one for folder in folders for one in sorted(folder.glob("*.y*ml")))):
                digest.update(text.read_bytes())
            found[path.relative_to(models).as_posix()] = digest.hexdigest()[:16]
    return found


@dataclass
class OwnModels:
    """What a run builds of the models that people wrote.

    Args:
        files: as `own_files` gives them.
        state: what the runs before knew of each file: `text`, its digest, `reads`, the systems that it reads, and
            `is_built`, whether it was built since its text or a table changed.
        systems: the systems of this run.
        with_tables: all systems that have tables after it.
    """

    files: Mapping[str, str]
    state: Mapping[str, Any]
    systems: Set[str]
    with_tables: Set[str]
    chosen: dict[str, str] = field(default_factory=dict)  # name of a model to build → its path
    # Path of a model → the systems without tables that it reads.
    waiting: dict[str, list[str]] = field(default_factory=dict)
    _reads: dict[str, list[str]] = field(default_factory=dict)

    def is_behind(self) -> bool:
        """Whether one of them may have to be built although no table changes.

        Of a new text only dbt knows what it reads.
        """
        pending = [self._known(path) for path in self.files if self._is_pending(path)]
        return any(not known or self._is_of_run(known["reads"]) for known in pending)

    def choose(self, manifest: Any, changed: Iterable[str], landed: Iterable[str]) -> None:
        """Choose the models to build, by dbt's manifest.

        Args:
            changed: names of the scaffolded models that the run builds.
            landed: the systems whose bronze tables have new records.
        """
        manifest.build_parent_and_child_maps()
        models = {one: node for one, node in manifest.nodes.items() if node.resource_type == "model"}
        ids = {node.name: one for one, node in models.items()}
        paths = {one: Path(node.original_file_path).as_posix().partition("/")[2] for one, node in models.items()}
        of_project = f"model.{manifest.metadata.project_name}."
        own = {one: path for one, path in paths.items() if path in self.files and one.startswith(of_project)}
        systems = {one: source.name for one, source in manifest.sources.items() if source.source_name == "bronze"}
        start = [ids[name] for name in changed if name in ids]
        # The scaffolded tables that read these are among the changed ones, if a topic of theirs has something new.
        with_new = (one for one, system in systems.items() if system in landed)
        views = {ids.get(f"{system}__{name}") for system in landed for name in MONITORING}
        start += [child for one in with_new for child in manifest.child_map[one] if child in own or child in views]
        for one, path in own.items():
            sources_read = _reached(manifest.parent_map, [one]) & systems.keys()
            self._reads[path] = sorted({systems[source] for source in sources_read})
            if self._is_pending(path) and self._is_of_run(self._reads[path]):
                start.append(one)
        # Through models alone: `dbt run` builds nothing else.
        children = {one: [child for child in manifest.child_map[one] if child in models] for one in models}
        for one in _reached(children, start) & own.keys():
            path = own[one]
            if missing := sorted(set(self._reads[path]) - self.with_tables):
                self.waiting[path] = missing
            else:
                self.chosen[models[one].name] = path

    def state_after(self, failed: Iterable[str]) -> dict[str, Any]:
        """The state to keep: those that were chosen are built, but for these, which failed or were skipped."""
        not_built = {self.chosen[name] for name in failed if name in self.chosen} | self.waiting.keys()
        built = {path for path in self.files if not self._is_pending(path)} | set(self.chosen.values())
        built |= self.files.keys() - self._reads.keys()  # the file is of no model, or of a disabled one
        return {
            path: {"text": text, "reads": self._reads.get(path, []), "is_built": path in built - not_built}
            for path, text in self.files.items()
        }

    def _known(self, path: str) -> dict[str, Any]:
        known = dict(self.state.get(path, {}))
        return known if known.get("text") == self.files[path] else {}

    def _is_pending(self, path: str) -> bool:
        return not self._known(path).get("is_built", False)

    def _is_of_run(self, reads: list[str]) -> bool:
        return not reads or (bool(self.systems & set(reads)) and set(reads) <= self.with_tables)


def _reached(edges: Mapping[str, list[str]], start: Iterable[str]) -> set[str]:
    """These nodes and all to which edges lead from them."""
    found, todo = set(start), list(start)
    while todo:
        new = set(edges.get(todo.pop(), [])) - found
        found |= new
        todo += new
    return found
