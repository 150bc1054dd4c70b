"""The Spark session, built in one place from the one place of its settings, `profiles/profiles.yml`."""

import logging
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, StrictUndefined
from pyspark.sql import SparkSession

from scripts.errors import LakehouseError

PROJECT = Path(os.environ.get("LAKEHOUSE_PROJECT", Path(__file__).resolve().parent.parent))
PROFILES = PROJECT / "profiles"
JAVA_VERSIONS = (17, 21)


def lakehouse_dir() -> Path:
    """The folder that holds all state (catalog, warehouse, logs): `LAKEHOUSE_DIR`, else `.lakehouse`."""
    return Path(os.environ.get("LAKEHOUSE_DIR", ".lakehouse"))


def log_file() -> Path:
    """Where Spark's own messages go."""
    return lakehouse_dir() / "spark.log"


def _env_var(name: str, default: str | None = None) -> str:
    value = os.environ.get(name, default)
    if value is None:
        raise LakehouseError(f"profiles/profiles.yml: the environment variable {name} is not set")
    return value


def settings() -> dict[str, str]:
    """Spark settings of the profile's target, as dbt would render them.

    Source: dbt's `profiles.yml`, whose values may call `env_var(name, default)`.
    """
    jinja = Environment(undefined=StrictUndefined)

    def render(value: Any) -> str:
        return jinja.from_string(str(value)).render(env_var=_env_var)

    profile = yaml.safe_load((PROFILES / "profiles.yml").read_text(encoding="utf-8"))["debezium_lakehouse"]
    output = profile["outputs"][render(profile["target"])]
    return {name: render(value) for name, value in output["server_side_parameters"].items()}


def record_class_archive() -> None:
    """Let this process's JVM write the archive of parsed classes when it ends, unless there is one.

    With it Spark starts in about half the time; without it everything works.
    """
    jars = Path(os.environ.get("LAKEHOUSE_JARS", ".venv/jars"))
    if jars.is_dir() and not (jars / "classes.jsa").exists():
        os.environ.setdefault("LAKEHOUSE_CLASS_ARCHIVE", f"-XX:ArchiveClassesAtExit={jars / 'classes.jsa'}")


def require_java() -> None:
    """Raise a `LakehouseError` unless `java` is there in a version that Spark 4 runs on."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    wanted = "Install Java 17 or 21 (Debian: apt install openjdk-17-jre-headless) or set JAVA_HOME to one."
    try:
        told = subprocess.run([java or "java", "-version"], capture_output=True, text=True, check=True).stderr
    except (OSError, subprocess.CalledProcessError):
        raise LakehouseError(f"Java was not found. {wanted}") from None
    version = re.search(r'version "(\d+)', told)
    if not version or int(version.group(1)) not in JAVA_VERSIONS:
        found = version.group(1) if version else told.strip()
        raise LakehouseError(f"Java {found} was found; Spark 4 needs 17 or 21. {wanted}")


@contextmanager
def _stderr_to(path: Path) -> Iterator[None]:
    """Processes started in here (Spark's JVM) write their error output to `path`, for as long as they live."""
    with path.open("ab") as log:
        terminal = os.dup(2)
        os.dup2(log.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(terminal, 2)
            os.close(terminal)


def session() -> SparkSession:
    """The session of this process: in its own JVM, or on the server that `SPARK_REMOTE` names.

    Raises:
        LakehouseError: Java is missing or of a wrong version, or the server does not answer.
    """
    lakehouse_dir().mkdir(parents=True, exist_ok=True)
    remote = os.environ.get("SPARK_REMOTE")
    if not remote:
        require_java()
    logging.getLogger("SQLQueryContextLogger").disabled = True  # prints whole stack traces beside the exception
    builder = SparkSession.builder
    for name, value in settings().items():
        builder = builder.config(name, value)
    try:
        with _stderr_to(log_file()):
            spark = builder.getOrCreate()
        if remote:
            spark.sql("select 1").collect()
    except LakehouseError:
        raise
    except Exception as error:
        if remote:
            raise LakehouseError(
                f"SPARK_REMOTE={remote}: the Spark Connect server does not answer. Start one (make up) or unset SPARK_REMOTE."
            ) from error
        raise
    return spark
