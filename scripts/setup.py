"""`make setup`, after the Python packages: the jars that Spark needs.

Jars are named by coordinates, resolved by Spark's own package resolution, and checked against the digests in
`scripts/jars.lock`.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from scripts.errors import LakehouseError
from scripts.spark import PROJECT, require_java

LOCK = PROJECT / "scripts" / "jars.lock"


def locked_jars() -> dict[str, str]:
    """Coordinates (group:artifact:version) → SHA-256 of the jar, from `scripts/jars.lock`."""
    lines = [line.split() for line in LOCK.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    return {line[0]: line[1] for line in lines}


def jar_name(coordinates: str) -> str:
    """The name that Spark gives to a resolved jar."""
    group, artifact, version = coordinates.split(":")
    return f"{group}_{artifact}-{version}.jar"


def missing(folder: Path) -> list[str]:
    """Coordinates whose jar is not in `folder` or is not the one that was locked."""
    return [
        coordinates
        for coordinates, digest in locked_jars().items()
        if not (folder / jar_name(coordinates)).exists()
        or hashlib.sha256((folder / jar_name(coordinates)).read_bytes()).hexdigest() != digest
    ]


def resolve(folder: Path) -> None:
    """Bring the locked jars into `folder`.

    Raises:
        LakehouseError: a jar cannot be had, or is not the one that was locked.
    """
    if not missing(folder):
        return
    folder.mkdir(parents=True, exist_ok=True)
    print("Resolving jars …", flush=True)
    with tempfile.TemporaryDirectory() as ivy:
        program = (
            "from pyspark.sql import SparkSession\n"
            f"SparkSession.builder.config('spark.jars.packages', {','.join(locked_jars())!r})"
            f".config('spark.jars.ivy', {ivy!r}).config('spark.ui.enabled', 'false').master('local[1]').getOrCreate()"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        for jar in (Path(ivy) / "jars").glob("*.jar"):
            shutil.copy(jar, folder / jar.name)
    wrong = missing(folder)
    if wrong:
        told = next((line for line in done.stderr.splitlines() if "not found" in line or "rror" in line), "")
        raise LakehouseError(
            f"these jars could not be resolved, or are not the ones of scripts/jars.lock: {', '.join(wrong)}. {told}\n"
            "Check that Maven Central (or the mirror in ~/.m2 or Ivy's settings) can be reached, and run make setup again."
        )


def main() -> int:
    folder = Path(os.environ.get("LAKEHOUSE_JARS", PROJECT / ".venv" / "jars")).resolve()
    try:
        require_java()
        resolve(folder)
    except LakehouseError as error:
        print(f"\nError: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
