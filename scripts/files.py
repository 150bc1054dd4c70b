"""The files that EVENTS names: a file, a folder, or a glob, or those of an object store (`stores.py`)."""

import glob
import os
from collections.abc import Callable, Iterable
from fnmatch import fnmatch
from pathlib import Path

from scripts.errors import LakehouseError, UsageError
from scripts.stores import HIDDEN, SCHEME, File, stored_objects


def event_files(events: str, say: Callable[[str], None] = lambda _: None) -> list[File]:
    """The files that a path, a folder or a glob pattern names, each once, sorted.

    Of a folder, also of one that a pattern matches, these are all files below it, also in folders that it links to.
    Files and folders below it that begin with `.` or `_` are left out: half-written files and markers of the programs
    that write folders (`.part`, `_SUCCESS`, `_temporary/`). A path or a pattern names such a file, too.

    Args:
        say: called with a line about files that are left out.

    Raises:
        UsageError: nothing is there.
        LakehouseError: a folder or a link in it cannot be read.
    """
    if events.startswith(SCHEME):
        return stored_objects(events, say)
    path = Path(events)
    if path.is_dir():
        found, hidden = _below(path)
    elif path.exists():
        found, hidden = [path], []
    else:
        found, hidden = _matching(events)
    if not found:
        what = "the folder holds no files" if path.is_dir() else "there is no such file, folder or match"
        what += f" but {len(hidden)} whose names begin with . or _" if hidden else ""
        raise UsageError(f"EVENTS={events}: {what}. Name a file, a folder or a glob of JSON Lines files.")
    if left_out := set(hidden) - set(found):
        say(f"{events}: {len(left_out)} files or folders skipped, as their names begin with . or _")
    files = sorted({file.resolve() for file in found})
    for file in files:
        try:
            str(file).encode()
        except UnicodeEncodeError:
            raise LakehouseError(
                f"{os.fsencode(file)!r}: the file's name is no UTF-8, so nothing can name its records. Rename it."
            ) from None
    return list[File](files)


def _matching(pattern: str) -> tuple[list[Path], list[Path]]:
    """The files that a pattern names, and the files and folders that are left out."""
    found, hidden = list[Path](), list[Path]()
    for match in map(Path, glob.glob(pattern, recursive=True)):
        _refuse_broken_link(match)
        if match.is_dir():
            is_named = all(_is_named(part, Path(pattern).parts) for part in match.parts if part.startswith(HIDDEN))
            below, left_out = _below(match) if is_named else ([], [match])
            found, hidden = found + below, hidden + left_out
        elif match.is_file():
            found.append(match)
    return found, hidden


def _is_named(hidden: str, pattern: Iterable[str]) -> bool:
    return any(part[0] == hidden[0] and fnmatch(hidden, part) for part in pattern)


def _refuse_broken_link(path: Path) -> None:
    if path.is_symlink() and not path.exists():
        raise LakehouseError(f"{path}: the link leads nowhere. All that is in EVENTS has to be readable.")


def _below(folder: Path) -> tuple[list[Path], list[Path]]:
    """All files below a folder, through links, each folder once; and the files and folders that are left out."""

    def refuse(error: OSError) -> None:
        problem = f"{error.filename}: the folder cannot be read ({error.strerror})"
        raise LakehouseError(f"{problem}. All that is in EVENTS has to be.")

    found, hidden, seen = list[Path](), list[Path](), set[Path]()
    for place, folders, names in os.walk(folder, onerror=refuse, followlinks=True):
        here = Path(place)
        seen.add(here.resolve())
        hidden += [here / name for name in (*folders, *names) if name.startswith(HIDDEN)]
        folders[:] = [name for name in folders if not name.startswith(HIDDEN) and (here / name).resolve() not in seen]
        for path in (here / name for name in names if not name.startswith(HIDDEN)):
            _refuse_broken_link(path)
            if path.is_file():
                found.append(path)
    return found, hidden


def put(path: Path, text: str) -> None:
    """Write a file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)
