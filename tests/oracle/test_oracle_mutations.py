"""Every single message of the shared scenarios counts.

Each item of each message is dropped, and its node, quantity, state or reason altered; the comparison
must notice. What a rule allows is counted: a rule that excuses more than this is too wide.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.oracle.mutations import mutations_of, unnoticed
from tests.oracle.scenario import V15, V18, Answer, scenarios

#: how many alterations of all of the shared scenarios each rule may hide
ALLOWED = {
    V15: {
        "X15": 120,  # Starting is read as Running: the update to Running after it says nothing new
        "5.15": 14,  # what times out is told of as an ask and as an allocation
        "X31": 10,  # how an application ends that was removed: not at all there
        "5.6": 5,  # compared with v1.8.0 from the step on that v1.5.2 does not go on
        "X28": 3,
        "X9": 1,
    },
    V18: {"X31": 10, "X28": 3, "R6": 1},
}
#: the quick test looks at short scenarios, and alters one message in so many
SAMPLE, SHORT = 8, 65


def altered(shared: Path, version: str, every: int = 1, steps: int = 1_000) -> int:
    """How many alterations were tried. Fails if one is not noticed that no rule allows."""
    tried, found = 0, Counter[str]()
    for scenario in scenarios([shared / "data" / "oracle"]):
        if len(scenario.steps) > steps:
            continue
        n, hidden = unnoticed(scenario, version, every)
        tried, found = tried + n, found + hidden
    too_many = {why: n for why, n in found.items() if n > ALLOWED[version].get(why, 0)}
    assert not too_many
    return tried


def test_x15_x31_an_altered_message_is_noticed(shared: Path) -> None:
    assert altered(shared, V15, SAMPLE, SHORT) > 100


@pytest.mark.slow
@pytest.mark.parametrize("version", [V15, V18])
def test_x15_x31_every_altered_message_is_noticed(shared: Path, version: str) -> None:
    assert altered(shared, version) > 4_500


def test_every_kind_of_message_is_altered(shared: Path) -> None:
    """Each part of each type of message that the Go core sent, but for event records."""
    parts, altered = set(), set()
    for scenario in scenarios([shared / "data" / "oracle"]):
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
    item = {
        "nodeID": "node-1",
        "resourcePerAlloc": {"resources": {"memory": {"value": "1"}}},
    }
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
