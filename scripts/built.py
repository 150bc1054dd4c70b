"""What was built last in a lakehouse, and what is there now: by both, a run knows what it has to build."""

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from scripts.catalog import kind_of_views, properties_of, tables_in
from scripts.files import put
from scripts.own_models import is_scaffolded
from scripts.spark import PROJECT, lakehouse_dir

MODELS = PROJECT / "models"


def newest_batch(counted: str) -> int:
    """The batch of an answer of `counted_up_to`."""
    return int(counted.split(" ")[-1])


def _counted(entry: object) -> str:
    newest_batch(str(entry))
    return str(entry)


# Parts of the state → the form of their entries.
STATE: dict[str, Callable[[Any], Any]] = {
    "models": str,  # the digest of every model
    "batches": int,  # of every system, as all that follow: the newest batch
    "bronze": str,  # of which bronze table that is
    "refused": lambda topics: list(map(str, topics)),  # topics of tables that got no models
    "counted": _counted,  # the snapshot of its counts, and the newest batch that they had
    "views": str,  # what its views are: view or table
    "own": lambda one: {  # what is known of each model that a person wrote (`OwnModels`)
        "text": str(one["text"]),
        "reads": list(map(str, one["reads"])),
        "is_built": bool(one["is_built"]),
    },
}


class Built:
    """What was built last in this lakehouse.

    Kept in one file that is replaced as a whole. Where it is lost or broken, a run builds everything once more.
    """

    def __init__(self) -> None:
        self.path = lakehouse_dir() / "built.json"
        self.state: dict[str, dict[str, Any]] = {part: {} for part in STATE}
        with suppress(FileNotFoundError, ValueError, LookupError, TypeError, AttributeError):
            found = {"own": {}, "views": {}} | json.loads(self.path.read_bytes())  # older states lack them
            self.state = {
                part: {str(name): form(entry) for name, entry in found[part].items()} for part, form in STATE.items()
            }

    def up_to(self, spark: SparkSession, system: str) -> int:
        """The newest batch that was built; 0 where bronze is another since, so that all models are run, and say so.

        So it is where the catalog was restored, whose counts are those of then, and where models are gone whose change
        logs are there, to be written anew.
        """
        known = int(self.state["batches"].get(system, 0))
        if not known or self.state["bronze"].get(system) != bronze_id(spark, system):
            return 0
        counted = self.state["counted"].get(system, "0")
        if newest_batch(counted_up_to(spark, system, counted)) < newest_batch(counted):
            return 0
        gone = {name for name in self.state["models"] if name.startswith(f"stg_{system}__")}
        gone -= {path.stem for path in model_files(system)}
        return 0 if gone and gone & tables_in(spark, "staging") else known

    def has_views(self, system: str) -> bool:
        """Whether its models were built with views."""
        return system in self.state["batches"] and self.state["views"].get(system, "view") == "view"

    def save(self) -> None:
        put(self.path, json.dumps(self.state, indent=1, sort_keys=True))


def counted_up_to(spark: SparkSession, system: str, known: str) -> str:
    """The snapshot of `event_counts`, and the newest batch that it has; 0 where there is none.

    Args:
        known: an earlier answer, which is that of now where the snapshot is the same.
    """
    counts = f"monitoring.`{system}__event_counts`"
    if not spark.catalog.tableExists(counts):
        return "none 0"
    snapshot = properties_of(spark, counts)["current-snapshot-id"]
    if known.startswith(f"{snapshot} "):
        return known
    return f"{snapshot} {spark.sql(f'select max(batch) as batch from {counts}').collect()[0].batch or 0}"


def bronze_id(spark: SparkSession, system: str) -> str:
    return properties_of(spark, f"bronze.`{system}`").get("cdc.id", "")


def model_files(system: str) -> list[Path]:
    """The models that `make run` writes for a system."""
    found = (path for layer in MODELS.iterdir() for path in (layer / system).glob("*.sql"))
    return sorted(path for path in found if is_scaffolded(path, MODELS))


def digest_of_macros() -> str:
    """A digest of what every model depends on."""
    folders = PROJECT / "macros", PROJECT / "dbt_packages" / "debezium_lakehouse" / "macros"
    texts = digest(*sorted(path for folder in folders for path in folder.rglob("*.sql")), PROJECT / "dbt_project.yml")
    return texts if kind_of_views() == "view" else f"{texts} table "


def digest(*paths: Path) -> str:
    seen = hashlib.sha256()
    for path in paths:
        seen.update(path.read_bytes())
    return seen.hexdigest()[:16]
