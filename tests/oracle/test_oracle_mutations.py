"""Every single message of the shared scenarios counts."""

from collections import Counter
from collections.abc import Iterable, Mapping

import pytest

from tests.oracle.mutations import unnoticed
from tests.oracle.scenario import V15, V18, Scenario

#: how many steps the scenarios have that are altered in every run
SHORT = 65
#: how many alterations of the short scenarios each rule may hide
ALLOWED = {
    V15: {
        "X15": 28,  # Starting is read as Running: the update to Running after it says nothing new
        "5.15": 14,  # what times out is told of as an ask and as an allocation
        "5.6": 5,  # compared with v1.8.0 from the step on that v1.5.2 does not go on
        "X31": 4,  # how an application ends that was removed: not at all there
        "X28": 3,
    },
    V18: {"X31": 4, "X28": 3, "R6": 1},
}
#: and of the long ones
ALLOWED_IN_LONG = {V15: {"X15": 92, "X31": 6}, V18: {"X31": 6}}


def altered(among: Iterable[Scenario], version: str, allowed: Mapping[str, int]) -> int:
    """How many alterations were tried. Fails if one is not noticed that no rule allows."""
    tried, found = 0, Counter[str]()
    for scenario in among:
        n, hidden = unnoticed(scenario, version)
        tried, found = tried + n, found + hidden
    assert {why: n for why, n in found.items() if n > allowed.get(why, 0)} == {}
    return tried


@pytest.mark.parametrize("version", [V15, V18])
def test_x15_x31_every_altered_message_is_noticed(recordings: list[Scenario], version: str) -> None:
    short = (each for each in recordings if len(each.steps) <= SHORT)
    assert altered(short, version, ALLOWED[version]) > 1_300


@pytest.mark.slow
@pytest.mark.parametrize("version", [V15, V18])
def test_x15_x31_altered_messages_are_noticed(recordings: list[Scenario], version: str) -> None:
    long = (each for each in recordings if len(each.steps) > SHORT)
    assert altered(long, version, ALLOWED_IN_LONG[version]) > 3_800
