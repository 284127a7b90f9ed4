"""Every single message of the shared scenarios counts."""

from collections import Counter
from collections.abc import Iterable, Mapping

import pytest

from tests.oracle.mutations import mutations_of, unnoticed
from tests.oracle.scenario import V15, V18, Answer, Scenario

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
def test_x15_x31_every_altered_message_of_long_scenarios_is_noticed(
    recordings: list[Scenario], version: str
) -> None:
    long = (each for each in recordings if len(each.steps) > SHORT)
    assert altered(long, version, ALLOWED_IN_LONG[version]) > 3_800


def test_every_kind_of_message_is_altered(recordings: list[Scenario]) -> None:
    """Each part of each type of message that the Go core sent, but for event records."""
    parts, altered = set(), set()
    for scenario in recordings:
        for version in (V15, V18):
            for at, answer in enumerate(scenario.answers(version) or ()):
                for _, kind, message in answer.callbacks:
                    named = (part for part, items in message.items() if isinstance(items, list))
                    parts |= {(kind, part) for part in named}
                for each in mutations_of(at, answer):
                    altered.add((answer.callbacks[each.message][1], each.part, each.kind))
    assert {each[:2] for each in altered if each[1]} == parts - {("EventRecord", "")}
    assert ("AllocationResponse", "new", "node") in altered
    assert ("AllocationResponse", "new", "quantity") in altered
    assert ("AllocationResponse", "released", "reason") in altered
    assert ("ApplicationResponse", "updated", "state") in altered
    assert ("UpdateContainerSchedulingStateRequest", "", "dropped") in altered


def test_an_altered_message_is_another_one() -> None:
    """... and the answer that it was made from stays as it is."""
    item = {"nodeID": "node-1", "resourcePerAlloc": {"resources": {"memory": {"value": "1"}}}}
    answer = Answer([(0, "AllocationResponse", {"new": [item]})], {"op": "schedule"})
    told = {
        each.kind: each.applied(answer).callbacks[0][2]["new"] for each in mutations_of(0, answer)
    }
    assert told.keys() == {"dropped", "node", "quantity"}
    assert told["dropped"] == []
    assert told["node"][0]["nodeID"] == "node-2"
    assert told["quantity"][0]["resourcePerAlloc"]["resources"]["memory"] == {"value": "2"}
    assert answer.callbacks[0][2]["new"] == [item]
    assert item["nodeID"] == "node-1"
