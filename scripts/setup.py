"""`make setup`, after the Python packages: the jars that Spark needs, and an archive of their classes.

Jars are named by coordinates, resolved by Spark's own package resolution, and checked against the digests in
`scripts/jars.lock`; those of Kafka, which only a run with KAFKA needs, against `scripts/kafka.lock`; those of object
stores and of PostgreSQL, which only the outputs `s3` and `rest` need, against `scripts/store.lock`. Spark's main jars
are copied without compression.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from pyspark.find_spark_home import _find_spark_home

from scripts.arguments import OPTIONS, SOURCES
from scripts.errors import LakehouseError
from scripts.spark import PROJECT, require_java, settings

LOCKS = Path(__file__).resolve().parent
SPARK_PARTS = ("core", "catalyst", "sql")
CHANGE = {"before": None, "after": {"id": 1}, "source": {"connector": "postgresql", "table": "t", "lsn": 1}, "op": "c"}
RECORD = {"topic": "setup.public.t", "partition": 0, "offset": 0, "key": {"id": 1}, "value": CHANGE}


def locked(lock: str) -> dict[str, tuple[str, str]]:
    """Coordinates (group:artifact:version) → SHA-256 and licence of the jar, from a file beside this one."""
    lines = (LOCKS / lock).read_text(encoding="utf-8").splitlines()
    entries = (line.split() for line in lines if line and not line.startswith("#"))
    return {coordinates: (digest, licence) for coordinates, digest, licence in entries}


def jar_name(coordinates: str) -> str:
    """The name that Spark gives to a resolved jar."""
    group, artifact, version = coordinates.split(":")
    return f"{group}_{artifact}-{version}.jar"


def missing(folder: Path, lock: str = "jars.lock") -> list[str]:
    """Coordinates whose jar is not in `folder` or is not the one that was locked."""
    return [
        coordinates
        for coordinates, (digest, _) in locked(lock).items()
        if not (folder / jar_name(coordinates)).exists()
        or hashlib.sha256((folder / jar_name(coordinates)).read_bytes()).hexdigest() != digest
    ]


def cached(wanted: list[str]) -> list[Path]:
    """The folders of Maven's local cache that hold something of these coordinates.

    Source: Spark asks this cache before Maven Central (`MavenUtils`, `local-m2-cache`), and takes a jar for missing if
    the cache has its description alone.
    """
    names = (coordinates.split(":") for coordinates in wanted)
    cache = Path.home() / ".m2" / "repository"
    folders = [cache.joinpath(*group.split("."), artifact, version) for group, artifact, version in names]
    return [folder for folder in folders if folder.is_dir()]


def resolve(folder: Path, lock: str = "jars.lock") -> None:
    """Bring the locked jars into `folder`, and nothing that they depend on: what is needed is locked or comes with
    Spark.

    Raises:
        LakehouseError: a jar cannot be had, or is not the one that was locked.
    """
    wanted = missing(folder, lock)
    if not wanted:
        return
    folder.mkdir(parents=True, exist_ok=True)
    print("Resolving jars …", flush=True)
    with tempfile.TemporaryDirectory(dir=folder) as ivy:
        program = (
            "from pyspark.sql import SparkSession\n"
            f"spark = SparkSession.builder.config('spark.jars.ivy', {ivy!r})"
            f".config('spark.sql.warehouse.dir', {ivy!r})"
            ".config('spark.ui.enabled', 'false').master('local[1]').getOrCreate()\n"
            f"for jar in {wanted!r}:\n"
            "    spark.sql(f\"add jar 'ivy://{jar}?transitive=false'\")\n"
        )
        environment = {name: value for name, value in os.environ.items() if name != "SPARK_REMOTE"}
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
        for jar in (Path(ivy) / "jars").glob("*.jar"):
            jar.replace(folder / jar.name)  # at once: another process may be reading it
    (folder / "classes.jsa").unlink(missing_ok=True)  # the archive is of the jars that were there
    wrong = missing(folder, lock)
    if wrong:
        problem = re.search(r"\[?(download failed|unresolved dependency|Server access error)[^\n]*", done.stderr)
        reason = problem[0] if problem else ""
        broken = cached(wrong)
        remedy = (
            "Maven's local cache is asked first, and what it has of them may be broken: "
            f"empty {', '.join(map(str, broken))}, and run again. If that does not help, check"
            if broken
            else "Check"
        )
        raise LakehouseError(
            f"these jars could not be resolved, or are not the ones of scripts/{lock}: {', '.join(wrong)}. {reason}\n"
            f"{remedy} that Maven Central (or the mirror in ~/.m2 or Ivy's settings) can be reached, and run again."
        )


def copies_of_sparks_jars(folder: Path) -> dict[Path, Path]:
    """Spark's main jars → their copies in `folder`, which stand first on the class path (profiles.yml)."""
    jars = Path(_find_spark_home(), "jars")  # of SPARK_HOME, where that is set, as PySpark's JVM has it
    return {jar: folder / "spark" / jar.name for part in SPARK_PARTS for jar in jars.glob(f"spark-{part}_*.jar")}


def unpack_sparks_jars(folder: Path) -> None:
    """Copy Spark's main jars into `folder` without compression, unless they are there."""
    copies = copies_of_sparks_jars(folder)
    there = folder / "spark"
    if there.is_dir() and set(there.iterdir()) == set(copies.values()):
        return
    with tempfile.TemporaryDirectory(dir=folder) as place:
        written = Path(place, "spark")
        written.mkdir()
        for jar, copy in copies.items():
            with zipfile.ZipFile(jar) as packed, zipfile.ZipFile(written / copy.name, "w") as unpacked:
                for entry in packed.namelist():
                    unpacked.writestr(entry, packed.read(entry))
        (folder / "classes.jsa").unlink(missing_ok=True)
        shutil.rmtree(there, ignore_errors=True)
        written.rename(there)  # whole, also if the setup is interrupted


def refuse_other_sparks_jars() -> None:
    """Raise a `LakehouseError` if the copies are of another version of Spark: its classes would be mixed with these."""
    folder = _folder()
    if others := set((folder / "spark").glob("*.jar")) - set(copies_of_sparks_jars(folder).values()):
        raise LakehouseError(
            f"{', '.join(map(str, sorted(others)))}: not of the Spark in {_find_spark_home()}. Call"
            f" {sys.executable} -m scripts.setup, which copies the jars anew."
        )


def kafka_jars(resolved: bool = True) -> list[Path]:
    """The jars of Spark's Kafka connector.

    Args:
        resolved: whether to resolve them where they are not there yet.

    Raises:
        LakehouseError: a jar cannot be had, or is not the one that was locked.
    """
    folder = _folder() / "kafka"
    if resolved:
        resolve(folder, "kafka.lock")
    return [folder / jar_name(coordinates) for coordinates in locked("kafka.lock")]


def resolve_for_output() -> None:
    """Bring the jars of the profile's output to its class path, unless LAKEHOUSE_EXTRA_JARS names others.

    Raises:
        LakehouseError: a jar cannot be had, or is not the one that was locked.
    """
    if "lakehouse.io-impl" in " ".join(settings()) and not os.environ.get("LAKEHOUSE_EXTRA_JARS"):
        resolve(_folder() / "extra", "store.lock")


def archive_classes(folder: Path) -> None:
    """Write `classes.jsa`, the archive of all classes that a run reads from the jars, unless it is there.

    With it Spark starts in about half the time; without it everything works. It is written by the JVM of a small run in
    a folder of its own, when that ends, and is for the class path of the output `local` only.
    """
    archive = folder / "classes.jsa"
    if archive.exists():
        return
    print("Archiving Spark's classes …", flush=True)
    with tempfile.TemporaryDirectory() as place:
        for name in ("macros", "profiles", "docs", "seeds"):
            shutil.copytree(PROJECT / name, Path(place, name))
        shutil.copy(PROJECT / "dbt_project.yml", place)
        Path(place, "models").mkdir()
        Path(place, "record.json").write_text(json.dumps(RECORD), encoding="utf-8")
        arguments, prefixes = {*SOURCES, *OPTIONS, "REPLAY"}, ("LAKEHOUSE_", "DBT_", "SPARK_")
        others = os.environ.keys() - arguments
        environment = {name: os.environ[name] for name in others if not name.startswith(prefixes)}
        environment |= {
            "EVENTS": "record.json",
            "SYSTEM": "setup",
            "PYTHONPATH": str(PROJECT),
            "LAKEHOUSE_PROJECT": place,
            "LAKEHOUSE_DIR": f"{place}/lakehouse",
            "LAKEHOUSE_JARS": str(folder),
            "LAKEHOUSE_CLASS_ARCHIVE": f"-XX:ArchiveClassesAtExit={place}/classes.jsa",
        }
        subprocess.run([sys.executable, "-m", "scripts.run"], cwd=place, env=environment, capture_output=True)
        if Path(place, "classes.jsa").exists():
            shutil.move(Path(place, "classes.jsa"), archive)  # whole, also if the setup is interrupted
        else:
            print("It could not be written: Spark starts more slowly.", flush=True)


def _folder() -> Path:
    return Path(os.environ.get("LAKEHOUSE_JARS", PROJECT / ".venv" / "jars")).resolve()


def main() -> int:
    try:
        require_java()
        resolve(_folder())
        unpack_sparks_jars(_folder())
        archive_classes(_folder())
        resolve_for_output()
        if sys.argv[1:] == ["all"]:  # of an image, whose runs cannot write there
            resolve(_folder() / "kafka", "kafka.lock")
            resolve(_folder() / "extra", "store.lock")
    except LakehouseError as error:
        print(f"\nError: {error}", file=sys.stderr)
        return error.status
    return 0


if __name__ == "__main__":
    sys.exit(main())
