"""The recordings of the Go core, which are read once."""

from pathlib import Path

import pytest

from tests.oracle.comparison import Verdict, judge
from tests.oracle.scenario import Scenario, scenarios


@pytest.fixture(scope="session")
def recordings(shared: Path) -> list[Scenario]:
    return list(scenarios([shared / "data" / "oracle"]))


@pytest.fixture(scope="session")
def verdicts(recordings: list[Scenario]) -> list[Verdict]:
    """Each recording as it was played and compared, once."""
    return [judge(scenario) for scenario in recordings]
