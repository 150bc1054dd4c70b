"""Cuts the events of the demo from the captures and the vendors' examples in `tests/events`: `python tests/samples.py`.

No record is changed. `samples/README.md` says what each table shows.
"""

import json
from pathlib import Path
from typing import Any

EVENTS = Path(__file__).parent / "events"
SAMPLES = Path(__file__).parent.parent / "samples"

# File of `tests/events` → the system that it is a sample of, and the topics that are cut out.
CHOICE = {
    "shop": (
        "shop",
        [
            f"shop.public.{name}"
            for name in ["customers", "orders", "products", "reviews", "stock", "Gift_Boxes", "page_views", "all_types"]
        ],
    ),
    "billing": (
        "billing",
        [
            "billing",
            *(
                f"billing.billing.{name}"
                for name in ["accounts", "contracts", "invoices", "payments", "reminders", "tariffs"]
            ),
        ],
    ),
    "sqlserver": ("sqlserver", ["crm.sales.dbo.subscriptions"]),
    "oracle": ("oracle", ["erp.LOGISTICS.SHIPMENTS"]),
    "mongodb": ("mongodb", ["field.greenhouse.beds", "field.greenhouse.readings"]),
    "tencent_postgresql": ("tencent", ["port_pg.public.shipments"]),
    "tencent_mysql": ("tencent", ["fleet_my.depot.vehicles"]),
    "huawei_cdl": ("huawei", ["cdl_invoice_lines"]),
    "huawei_cdl_debezium": ("huawei", ["cdl_invoice_lines_dbz"]),
    "lindorm_sql": ("lindorm", ["lindorm_meters"]),
    "lindorm_hbase": ("lindorm", ["lindorm_sensors"]),
}


def is_of_another_table(record: dict[str, Any], topics: list[str]) -> bool:
    """Whether a DDL record of MariaDB is about a database or a table that is not in the demo."""
    value = json.loads(record["value"])
    changed = [change["id"].replace('"', "") for change in value.get("tableChanges", [])]
    return value["databaseName"] == "archive" or any(f"billing.{name}" not in topics for name in changed)


def samples() -> dict[str, bytes]:
    """System → the lines of its sample file."""
    found: dict[str, bytes] = {}
    for file, (system, topics) in CHOICE.items():
        lines = (EVENTS / f"{file}.jsonl").read_bytes().splitlines(keepends=True)
        taken = [(line, record) for line in lines if (record := json.loads(line))["topic"] in topics]
        kept = [
            line for line, record in taken if record["topic"] != "billing" or not is_of_another_table(record, topics)
        ]
        found[system] = found.get(system, b"") + b"".join(kept)
    return found


if __name__ == "__main__":
    for system, lines in samples().items():
        (SAMPLES / f"{system}.jsonl").write_bytes(lines)
