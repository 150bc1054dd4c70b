"""Objects of an object store (`s3://bucket/folder`), read as files are.

A local copy is read, not the object: it crosses the network once, and cannot change meanwhile.
"""

import io
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO, Any

from scripts.errors import LakehouseError, UsageError

HIDDEN = (".", "_")  # how the names of half-written files and of markers begin
SCHEME = "s3://"
COPIED_BYTES = 8 << 20  # what one request reads
ATTEMPTS = 3
# What a store answers → what that means, and what to do.
KEYS = "Check AWS_REGION and the keys: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, ~/.aws, or the role of the machine"
CAUSES = {
    "NO_SUCH_BUCKET": "the bucket does not exist. Name another",
    r"ACCESS_DENIED|ACCESS_KEY|SIGNATURE|TOKEN|UNRECOGNIZED_CLIENT|HTTP status (301|40[013])": (
        f"the object store refuses access, or no keys were found. {KEYS}"
    ),
    "NETWORK_CONNECTION": "no object store answers. Check LAKEHOUSE_S3_ENDPOINT and AWS_REGION",
}


class StoredObject:
    """An object with those methods of a path that reading a file takes. Only one `open` file may be read at a time.

    `info` is what the store said when it was asked for a list. If the object changes after that, its content lands now,
    and the next run looks at it again.
    """

    def __init__(self, store: Any, info: Any) -> None:
        self._store, self._info = store, info
        self._copy: IO[bytes] | None = None

    def __str__(self) -> str:
        return f"{SCHEME}{self._info.path}"

    def exists(self) -> bool:
        return bool(self._info.is_file)

    def stat(self) -> os.stat_result:
        """Its size and, in whole seconds, when it was written: a list and the object itself differ in more digits."""
        seconds = self._info.mtime_ns // 10**9
        exact = {f"st_{name}_ns": seconds * 10**9 for name in ("mtime", "ctime")}
        return os.stat_result((0,) * 6 + (self._info.size, 0, seconds, seconds), exact)

    def etag(self) -> str:
        """The store's name for the content, from a request of its own."""
        return str(self._head().get("ETag", b"").decode())

    def open(self, mode: str = "rb", buffering: int = 0) -> io.FileIO:
        """As that of a path."""
        self._copy = self._copy or self._copied()
        file = io.FileIO(os.dup(self._copy.fileno()), mode)
        file.seek(0)
        return file

    def close(self) -> None:
        """Delete the copy."""
        if self._copy:
            self._copy.close()
        self._copy = None

    def _copied(self) -> IO[bytes]:
        from scripts.spark import lakehouse_dir  # which reads the environment when it is imported

        copy = tempfile.TemporaryFile(dir=lakehouse_dir())  # noqa: SIM115  (no name: a killed run leaves none)
        for _ in range(ATTEMPTS):
            copy.seek(0)
            copy.truncate()
            with _explained(str(self)):
                file = self._store.open_input_file(self._info.path)
            with file:
                while part := self._part(file):
                    copy.write(part)
                if self._head() == dict(file.metadata() or {}):
                    copy.flush()
                    return copy
        raise LakehouseError(f"{self}: the object is replaced whenever it is read. Run again once it stays.")

    def _part(self, file: Any) -> bytes:
        with _explained(str(self)):
            return bytes(file.read(COPIED_BYTES))

    def _head(self) -> dict[str, bytes]:
        with _explained(str(self)), self._store.open_input_file(self._info.path) as file:
            return dict(file.metadata() or {})


File = Path | StoredObject


def located(name: str) -> File:
    """The file that the ledger calls so; it may be gone."""
    if not name.startswith(SCHEME):
        return Path(name)
    store = _store()
    with _explained(name):
        return StoredObject(store, store.get_file_info(name.removeprefix(SCHEME)))


def stored_objects(events: str, say: Callable[[str], None], store: Any = None) -> list[File]:
    """The objects that a URI names: an object, a folder or a glob pattern; sorted.

    Objects are left out as files of a folder are (`event_files`), and a wildcard of a pattern matches none of them.

    Args:
        store: a file system of pyarrow; else that of the environment.

    Raises:
        UsageError: nothing is there, or the store refuses access.
    """
    from pyarrow.fs import FileSelector  # here: few runs need it

    place = events.removeprefix(SCHEME).rstrip("/")
    if not re.fullmatch(r"[\w.-]+", place.partition("/")[0]):  # which may hold keys: they are not shown
        raise UsageError(
            "EVENTS=s3://…: expected s3://bucket/folder, with a bucket's plain name. Keys stand in AWS_ACCESS_KEY_ID"
            " and AWS_SECRET_ACCESS_KEY, or in ~/.aws."
        )
    store = store or _store()
    with _explained(f"EVENTS={events}"):
        there = store.get_file_info(place)
        if there.is_file and not events.endswith("/"):  # an object may have the name of a folder
            return [StoredObject(store, there)]
        parts = place.split("/")
        fixed = next((at for at, part in enumerate(parts) if re.search(r"[*?[]", part)), len(parts))
        fixed = fixed if there.type.name == "NotFound" else len(parts)
        base, pattern = "/".join(parts[:fixed]), parts[fixed:]
        listed = []
        with suppress(FileNotFoundError):  # were that allowed, a missing bucket would be, too
            listed = store.get_file_info(FileSelector(base, recursive=True))
    named = [(info.path.removeprefix(f"{base}/").split("/"), info) for info in listed if info.is_file]
    named = [(name, info) for name, info in named if _is_named(name, pattern, ())]
    found = [info for name, info in named if _is_named(name, pattern, HIDDEN)]
    left_out = len(named) - len(found)
    if not found:
        but = f" but {left_out} whose names begin with . or _" if left_out else ""
        raise UsageError(f"EVENTS={events}: there is no such object, folder or match{but}.")
    if left_out:
        say(f"{events}: {left_out} objects skipped, as their names begin with . or _")
    return [StoredObject(store, info) for info in sorted(found, key=lambda info: str(info.path))]


def _is_named(name: Sequence[str], pattern: Sequence[str], hidden: tuple[str, ...]) -> bool:
    """Whether a pattern matches an object or a folder that it is in, each as the parts of its name.

    A part that begins as `hidden` is matched by one that begins so too.
    """
    if not (name and pattern):
        return not pattern and not any(part.startswith(hidden) for part in name)
    first, wanted = name[0], pattern[0]
    is_shown = not first.startswith(hidden)
    if wanted == "**":
        return _is_named(name, pattern[1:], hidden) or (is_shown and _is_named(name[1:], pattern, hidden))
    is_match = fnmatchcase(first, wanted) and (is_shown or wanted[:1] == first[:1])
    return is_match and _is_named(name[1:], pattern[1:], hidden)


def _store() -> Any:
    """The object store of the environment: that of the output `s3` (profiles/profiles.yml)."""
    from pyarrow.fs import S3FileSystem

    endpoint, style = os.environ.get("LAKEHOUSE_S3_ENDPOINT"), os.environ.get("LAKEHOUSE_S3_PATH_STYLE", "false")
    return S3FileSystem(
        region=os.environ.get("AWS_REGION", "us-east-1"),
        endpoint_override=endpoint,
        force_virtual_addressing=bool(endpoint) and style.lower() != "true",
    )


@contextmanager
def _explained(name: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise LakehouseError(f"{name}: the object was deleted while the run went on. Run again.") from None
    except (OSError, ValueError) as error:
        problem = str(error).split("\n")[0]
        for pattern, cause in CAUSES.items():
            if re.search(pattern, problem):
                raise UsageError(f"{name}: {cause} (docs/clusters.md).") from None
        raise LakehouseError(f"{name}: the object store cannot be read: {problem}") from None
