"""Tables of Iceberg that the engine builds without dbt."""

from pathlib import Path
from typing import Any

from adapter import Engine, LandingInBronze


class Tables:
    """Land records and build the tables of a system, as often as a test likes."""

    def __init__(self, spark: Any, project: Path) -> None:
        self.spark = spark
        self._models = project / "models"
        self._landing = LandingInBronze(spark, project / "events")
        self._engine = Engine(spark, self._models)
        (project / "seeds").mkdir(parents=True)

    def land(self, system: str, records: list[dict[str, Any]]) -> None:
        self._landing.land(system, records)

    def build(self, system: str, full_refresh: bool = False) -> None:
        """Write the models of new tables and build all tables, without views and counts."""
        from scripts.scaffold import scaffold

        if not full_refresh:
            scaffold(self._landing.records(system), None, {}, 0, self._models)
        models = [
            path.stem
            for layer in ("staging", "silver", "history")
            for path in (self._models / layer / system).glob("*.sql")
        ]
        self._engine.run(models, full_refresh)

    def write_history(self, system: str, table: str) -> None:
        """Have the versions of rows built, too."""
        model = self._models / "history" / system / f"history_{system}__{table}.sql"
        model.parent.mkdir(parents=True)
        config = f"{{{{ config(alias = '{system}__{table}') }}}}"
        model.write_text(
            f"{config}\n\n{{{{ debezium_history(changes = ref('stg_{system}__{table}'), keys = ['id']) }}}}\n"
        )

    def current(self, system: str, table: str) -> list[dict[str, Any]]:
        """The versions that are true now, under the source's own columns."""
        found = self.spark.sql(f"select * from history.{system}__{table} where _cdc_is_current").collect()
        return [{name: value for name, value in row.asDict().items() if not name.startswith("_cdc_")} for row in found]

    def rows(self, system: str, table: str) -> list[dict[str, Any]]:
        """The live rows of a table, under the source's own columns."""
        rows = self.silver(system, table)
        live = [row for row in rows if not row["_cdc_is_deleted"]]
        return [{name: value for name, value in row.items() if not name.startswith("_cdc_")} for row in live]

    def silver(self, system: str, table: str) -> list[dict[str, Any]]:
        found = self.spark.table(f"silver.{system}__{table}").orderBy("id").collect()
        return [row.asDict(recursive=True) for row in found]
