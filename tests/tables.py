"""Tables of Iceberg that the engine builds without dbt."""

import itertools
import json
from pathlib import Path
from typing import Any

from adapter import Engine


class Tables:
    """Land records and build the tables of a system, as often as a test likes."""

    def __init__(self, spark: Any, project: Path) -> None:
        self.spark = spark
        self._models = project / "models"
        self._events = project / "events"
        self._engine = Engine(spark, self._models)
        self._files = itertools.count(1)
        self._events.mkdir(parents=True)
        (project / "seeds").mkdir()

    def land(self, system: str, records: list[dict[str, Any]]) -> None:
        from scripts.loader import land_files

        path = self._events / f"{next(self._files):05}.jsonl"
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
        land_files(self.spark, system, [path])

    def build(self, system: str, full_refresh: bool = False) -> None:
        """Write the models of new tables and build all tables, without views and counts."""
        from scripts.observe import Bronze
        from scripts.scaffold import scaffold

        if not full_refresh:
            scaffold(Bronze(self.spark, system), None, {}, 0, self._models)
        models = [path.stem for layer in ("staging", "silver") for path in (self._models / layer / system).glob("*.sql")]
        self._engine.run(models, full_refresh)

    def rows(self, system: str, table: str) -> list[dict[str, Any]]:
        """The live rows of a table, under the source's own columns."""
        rows = self.silver(system, table)
        live = [row for row in rows if not row["_cdc_is_deleted"]]
        return [{name: value for name, value in row.items() if not name.startswith("_cdc_")} for row in live]

    def silver(self, system: str, table: str) -> list[dict[str, Any]]:
        found = self.spark.table(f"silver.{system}__{table}").orderBy("id").collect()
        return [row.asDict(recursive=True) for row in found]
