"""Captures of real databases, read as a whole: the rows, with every type, that the databases had."""

import pytest
from captures import EVENTS, differences, expected
from conftest import Lakehouse


@pytest.mark.parametrize("system", ["shop", "billing"])
def test_capture_gives_the_databases_rows(lakehouse: Lakehouse, system: str) -> None:
    lakehouse.run(system, EVENTS / f"{system}.jsonl")

    assert differences(lakehouse, expected(system), system) == []
    reasons = {reason.split(":")[0] for _, reason in lakehouse.rejected(system)}
    assert reasons <= {"value_not_exact"}
    assert {event.split("/")[0].rsplit(".", 1)[1] for event, _ in lakehouse.rejected(system)} <= {"all_types"}
