"""How much of a file has landed, and how the file is known again."""

import hashlib
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts.compression import block, opened
from scripts.stores import File

CLOCKS_APART = 15 * 60 * 10**9  # in nanoseconds: S3 refuses requests whose clock differs by more


@dataclass(frozen=True)
class Taken:
    """How much of a file has landed, and what it looked like: enough to go on after it, or to see that
    another file stands under the same name now.

    `bytes` and `lines` count the uncompressed text, `digest` is that of all of it. `whole` is of the file as it stood
    (compressed or not) when all its complete lines had been taken: its digest and its times, as `described` writes
    them; empty before that.
    """

    bytes: int = 0
    lines: int = 0
    digest: str = ""
    whole: str = ""


def file_digest(path: File) -> str:
    """Of the file as it stands (compressed or not), to recognise it again, or a copy under another name."""
    with path.open("rb") as file:
        content = hashlib.sha256()
        while part := file.read(1 << 20):
            content.update(part)
        return content.hexdigest()


def text_hash(path: File, size: int) -> Any:
    """A hash (of hashlib) over the first `size` bytes of the file's text, which can go on; None where it has fewer."""
    with opened(path) as file:
        content = hashlib.sha256()
        while size and (part := block(file, min(1 << 20, size), path)):
            content.update(part)
            size -= len(part)
        return None if size else content


def times(path: File) -> str:
    """When the file was changed last, and its size: while this stays, so does the content.

    A file that was changed just now has only the first part: another change may give it the same times. Such an object
    has its ETag instead of the second time.
    """
    state = path.stat()
    age = time.time_ns() - max(state.st_mtime_ns, state.st_ctime_ns)
    if isinstance(path, Path):
        mark = str(state.st_mtime_ns) if age > 2_000_000_000 else ""
    else:
        mark = str(state.st_mtime_ns) if age > CLOCKS_APART else path.etag()
    return f"{state.st_ctime_ns:020}" + (f" {mark} {state.st_size}" if mark else "")


def is_unchanged(whole: str, now: str) -> bool:
    """Whether the file with the times `now` is still the one of `described`."""
    return " " in now and whole.endswith(" " + now)


def described(digest: str, now: str) -> str:
    """What the ledger keeps of a file: digest and times. Of two descriptions the one with the later times is true."""
    return f"{digest} {now}"


def size_of(whole: str) -> int:
    """The size of the file that `described` describes; 0 if it does not say."""
    parts = whole.split(" ")
    return int(parts[3]) if len(parts) == 4 else 0
