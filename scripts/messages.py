"""What commands say, and how they end."""

import sys
import traceback
from typing import TextIO

from scripts.errors import LakehouseError
from scripts.spark import lakehouse_dir, log_file, ran_out_of_memory, settings


def say(text: str, file: TextIO | None = None) -> None:
    """Print lines.

    Names in them may hold anything, and a terminal obeys control characters: those are shown as escapes.
    """
    print("\n".join(shown(line) for line in text.split("\n")), file=file, flush=True)


def shown(name: str) -> str:
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in name)


def end_with(error: Exception) -> int:
    """Say why a command ends, and return its exit status.

    A bug or a broken machine gets one line here, the rest is in the log.
    """
    if isinstance(error, LakehouseError):
        say(f"\nError: {error}", sys.stderr)
    elif reason := exhausted(str(error)):
        say(f"\nError: {reason}", sys.stderr)
    else:
        with log_file().open("a", encoding="utf-8") as log:
            log.write("".join(traceback.format_exception(error)))
        lines = str(error).splitlines() or [type(error).__name__]
        is_of_py4j = lines[0].startswith("An error occurred while calling") and lines[1:]
        say(f"\nError: {lines[1].strip(': ') if is_of_py4j else lines[0]}", sys.stderr)
        say(f"The full message is in {log_file()}.", sys.stderr)
    return 1


def exhausted(message: str) -> str:
    """What the machine ran out of, and what to do, where that is why something failed with this message."""
    if any(mark in message for mark in ("No space left on device", "Disk quota exceeded", "SQLITE_FULL")):
        problem = f"the disk is full: LAKEHOUSE_DIR={lakehouse_dir()} cannot be written"
        return f"{problem}. Free space and run again; no record is lost."
    if ran_out_of_memory() or ("System memory" in message and "spark.driver.memory" in message):
        heap = settings().get("spark.driver.memory")
        return (
            f"Spark ran out of memory{f' (LAKEHOUSE_DRIVER_MEMORY={heap})' if heap else ''}. Run again with more, for"
            " instance LAKEHOUSE_DRIVER_MEMORY=4g make run; a resident Spark gets it with make up. No record is lost."
        )
    return ""
