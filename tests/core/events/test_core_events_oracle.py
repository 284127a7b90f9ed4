"""Event records compared with those of the Go core v1.5.2, scenario by scenario."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.oracle.comparison import judge
from tests.oracle.events import events_apart
from tests.oracle.scenario import scenarios


@pytest.mark.parametrize("part", range(4))
def test_events_agree_with_the_go_core(shared: Path, part: int) -> None:
    apart = {
        scenario.name: found
        for scenario in [*scenarios([shared / "data" / "oracle"])][part::4]
        if (found := events_apart(judge(scenario)))
    }
    for name, found in apart.items():
        print(name)
        for side, event in found:
            print("   ", side, *event)
    assert not apart
