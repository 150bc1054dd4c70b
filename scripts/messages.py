"""What commands say, and how they end."""

import os
import re
import sys
import traceback
from pathlib import Path
from typing import TextIO

from scripts.errors import LakehouseError
from scripts.spark import lakehouse_dir, local_target, log_file, ran_out_of_memory, settings

# What a message of Java says → what that means here, and what to do.
CAUSES = {
    # The second is what Scala says of a task whose classes are missing.
    r"ClassNotFoundException: org\.apache\.iceberg|DefaultSerializationProxy": (
        "the executors do not find Iceberg. Put the jars of LAKEHOUSE_JARS at the same path on every worker"
    ),
    "NoSuchBucket": "the bucket of LAKEHOUSE_WAREHOUSE does not exist. Create it, or name another",
    r"Status Code: 40[013]\b|AccessDenied": (
        "the object store refuses access to LAKEHOUSE_WAREHOUSE. Check AWS_REGION and the keys: AWS_ACCESS_KEY_ID and"
        " AWS_SECRET_ACCESS_KEY, ~/.aws, or the role of the machine"
    ),
    r"(Creat|Replac)ing a view is not supported|does not support endpoint: \S+ \S*/views|does not support views": (
        "the catalog has no views, or cannot replace them. Set LAKEHOUSE_VIEWS=table"
    ),
    "Unable to load credentials": (
        "no keys for the object store were found. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or use ~/.aws or a"
        " machine with a role"
    ),
}


def say(text: str, file: TextIO | None = None) -> None:
    """Print lines.

    Names in them may hold anything, and a terminal obeys control characters: those are shown as escapes.
    """
    print("\n".join(shown(line) for line in text.split("\n")), file=file, flush=True)


def shown(name: str) -> str:
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in name)


def refuse_words(words: list[str]) -> int:
    """2 if a command was called with words behind its file's name, and why; else 0."""
    if len(words) > 1:
        command = f".venv/bin/python -m scripts.{Path(words[0]).stem}"
        problem = f"{words[1]}: arguments are environment variables. Write them before the command"
        say(f"Error: {problem}: {' '.join(words[1:])} {command}", sys.stderr)
        return 2
    return 0


def end_with(error: Exception) -> int:
    """Say why a command ends, and return its exit status.

    A bug or a broken machine gets one line here, the rest is in the log.
    """
    if isinstance(error, LakehouseError):
        say(f"\nError: {error}", sys.stderr)
        return error.status
    if reason := exhausted(str(error)):
        say(f"\nError: {reason}", sys.stderr)
    else:
        with log_file().open("a", encoding="utf-8") as log:
            log.write("".join(traceback.format_exception(error)))
        lines = str(error).splitlines() or [type(error).__name__]
        is_of_py4j = lines[0].startswith("An error occurred while calling") and lines[1:]
        # PySpark shows of an exception its first line alone.
        problem = cause(f"{error}\n{getattr(error, '_stackTrace', '')}") or (
            lines[1].strip(": ") if is_of_py4j else lines[0]
        )
        say(f"\nError: {problem}", sys.stderr)
        say(f"The full message is in {log_file()}.", sys.stderr)
    return 1


def cause(message: str) -> str:
    """What is wrong with a cluster, a catalog or an object store, if that is why something failed with this message;
    empty otherwise."""
    if local_target() == "local" and not os.environ.get("SPARK_REMOTE"):
        return ""
    found = next((told for pattern, told in CAUSES.items() if re.search(pattern, message)), "")
    place = os.environ.get("LAKEHOUSE_WAREHOUSE", "")
    return found and f"{found.replace('LAKEHOUSE_WAREHOUSE', f'LAKEHOUSE_WAREHOUSE={place}')} (docs/clusters.md)."


def exhausted(message: str) -> str:
    """What the machine ran out of, and what to do, where that is why something failed with this message."""
    if any(mark in message for mark in ("No space left on device", "Disk quota exceeded", "SQLITE_FULL")):
        disks = f"that of LAKEHOUSE_DIR={lakehouse_dir()}, or of Spark's own files (SPARK_LOCAL_DIRS, /tmp)"
        return f"a disk is full: {disks}. Free space and run again; no record is lost."
    if ran_out_of_memory() or ("System memory" in message and "spark.driver.memory" in message):
        heap = settings().get("spark.driver.memory")
        return (
            f"Spark ran out of memory{f' (LAKEHOUSE_DRIVER_MEMORY={heap})' if heap else ''}. Run again with more, for"
            " instance LAKEHOUSE_DRIVER_MEMORY=4g make run; a resident Spark gets it with make up. No record is lost."
        )
    return ""
