"""The workload that `scripts.setup` records a class-data archive from: what every run does, on a few events."""

import time

from scripts.loader import land_files
from scripts.setup import TRAINING_EVENTS
from scripts.spark import PROFILES, PROJECT, session


def main() -> None:
    spark = session()
    land_files(spark, "shop", [TRAINING_EVENTS])
    from dbt.cli.main import dbtRunner

    names = ["stg_shop__customers", "shop__customers", "live_shop__customers"]
    where = ["--log-level", "none", "--profiles-dir", str(PROFILES), "--project-dir", str(PROJECT)]
    for _ in range(2):
        dbtRunner().invoke(["run", "--target-path", "target/train", "--select", *names, *where])
        again = TRAINING_EVENTS.read_bytes().replace(b'"offset":', b'"offset":100')
        copy = PROJECT / "target" / "train" / "again.jsonl"
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(again)
        land_files(spark, "shop", [copy])
    spark.stop()
    time.sleep(0.1)


if __name__ == "__main__":
    main()
