"""The model of shared topics, as dbt runs it."""

from pathlib import Path

import pytest
from conftest import Lakehouse
from test_routing import bare, change, counted, on_topic


@pytest.mark.soak
def test_nothing_is_lost_or_doubled_where_the_events_model_runs_alone_or_twice(
    lakehouse: Lakehouse, project: Path
) -> None:
    system, models = "behind", ["stg_behind__orders", "stg_behind__lines", "behind__orders"]
    models += ["behind__event_counts", "behind__rejected_events"]
    lakehouse.run(system, on_topic("t", [change("orders", "c", 10, 1), change("lines", "c", 11, 1)]))
    new = [
        {**record, "topic": "t", "offset": offset}
        for offset, record in ((20, change("orders", "c", 20, 2)), (21, bare("{")))
    ]
    lakehouse.land(system, new)

    assert lakehouse.dbt("run", "--select", *models).success
    assert lakehouse.rows("behind.orders", "id") == [{"id": 1}]
    assert lakehouse.dbt("run", "--select", "behind__events", *models).success
    assert lakehouse.rows("behind.orders", "id") == [{"id": 1}, {"id": 2}]
    model = project / "models" / "staging" / system / f"{system}__events.sql"
    model.write_text(model.read_text().replace("['t']", "['t', 'u']"))
    failed = lakehouse.dbt("run", "--select", *models)
    assert not failed.success
    assert any("dbt run --select behind__events+" in str(node.message) for node in failed.result)
    statement = (
        project / "target" / "run" / "debezium_lakehouse" / "models" / "staging" / system / f"{system}__events.sql"
    )
    with pytest.raises(Exception, match="Found conflicting files"):  # of a run that looked when this one did
        lakehouse.sql(statement.read_text())
    assert lakehouse.sql("select count(*) from staging.behind__events") == [(4,)]
    assert lakehouse.rejected(system) == [("t/0/21", "invalid_json")]
    assert (None, "rejected", "invalid_json", 1) in counted(lakehouse, system)
