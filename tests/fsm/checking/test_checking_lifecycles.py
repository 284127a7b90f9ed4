"""The scheduler's lifecycles and the shim's: every world is searched, alone and composed with one another.

docs/checking.md has the numbers of states.
"""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from quadriga.fsm import LIFECYCLES
from quadriga.fsm.checking import check, stateful
from quadriga.fsm.lifecycles.allocation import REASONS
from quadriga.k8s.lifecycles import LIFECYCLES as SHIM
from tests.fsm.checking.gang_system import gang_system
from tests.fsm.checking.shim_system import pod_system

#: words that come with triggers of the shim's lifecycles
WORDS = dict.fromkeys(("reason", "group", "name", "node", "key", "gates"), ("x",))

#: by lifecycle: the facts and the information that have no type which says their values, and the triggers that come
#: at last although no state declares them: they confirm what was asked for
DECLARED: dict[str, dict[str, Any]] = {
    "application": {
        "facts": {"run_limit": (0, 1), "gang_wait_limit": (0, 1)},
        "info": {"first_replacement": (False, True), "reason": ("told",)},
        "timeout_info": {"timer": True},
        "will": ("complete", "killed", "resumed", "run"),
    },
    "gang": {"facts": {"patience": (0, 1)}},
    "ask": {"facts": {"pending": (1, 2)}, "will": ("allocate",)},
    "allocation": {
        "facts": {"run_limit": (0, 1), "reason": REASONS},
        "timeout_info": {"timer": True},
        "will": ("allocate", "confirm"),
    },
    "node": {"info": {"draining": (False, True)}},
    "k8s-application": {
        "facts": {"delay": (0, 1)},
        "info": {**WORDS, "type": (1,)},
        "will": ("accept", "placeholder_bound", "settled", "failed"),
    },
    "k8s-task": {
        "facts": {
            "uuid": ("", "a"),
            "node": ("x", "y"),
            "group": ("", "g"),
            "release_type": (0, 2),
        },
        "info": {
            **WORDS,
            "uuid": ("a", "b"),
            "type": (1, 2, 3),
            "blocked_reason": ("", "no volume"),
            "refusal": ("", "no room"),
            "unread": (False, True),
            "step": ("bind", "volumes"),
        },
        "will": ("bound", "ended"),
    },
    "k8s-node": {"info": {**WORDS, "serving": (False, True)}, "will": ("accepted", "removed")},
    "k8s-placeholder": {"info": WORDS, "timeout_info": {"group": "g"}},
    "k8s-connection": {"info": {"why": ("", "reset")}},
    "k8s-reflector": {"will": ("stop",)},
    "k8s-shim": {"info": WORDS, "timeout_info": {"reason": "stalled"}, "will": ("done",)},
    "k8s-recovery": {"will": ("done",)},
}
ALL = LIFECYCLES | SHIM


@pytest.fixture(scope="module")
def documented() -> dict[str, tuple[int, int]]:
    """The numbers of states and moves in docs/checking.md, by the first cell of a row."""
    page = Path(__file__).resolve().parents[3] / "docs" / "checking.md"
    if not page.is_file():
        pytest.skip("docs/ is part of a checkout only")
    rows = re.findall(
        r"^\| (.+?) \| ([\d,]+) \| ([\d,]+) \|$", page.read_text("utf-8"), re.MULTILINE
    )
    number = lambda text: int(text.replace(",", ""))  # noqa: E731
    return {name: (number(states), number(moves)) for name, states, moves in rows}


@pytest.mark.parametrize("name", ALL)
def test_a_lifecycle_ends_from_every_state_whatever_its_facts_and_takes_every_row(
    name: str, documented: dict[str, tuple[int, int]]
) -> None:
    report = check(ALL[name], **DECLARED.get(name, {}))
    assert [str(row) for _, row in report.untaken] == []
    assert documented[f"`{name}`"] == (report.states, report.moves)


GANG = "a gang: application, gang, two asks, two allocations, two pods"
POD = "a pod: task, core, API server"


@pytest.mark.parametrize(
    ("title", "system"),
    [
        (f"{GANG}; one message in a channel, one lost", gang_system(lose=1, in_flight=1)),
        (f"{POD}; two messages in a channel", pod_system()),
    ],
    ids=["gang", "pod"],
)
def test_composed_lifecycles_keep_their_rules(
    title: str, system: Any, documented: dict[str, tuple[int, int]]
) -> None:
    report = check(system)
    assert documented[title] == (report.states, report.moves)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("title", "system"),
    [
        (f"{GANG}; one lost, one repeated", gang_system(lose=1, repeat=1)),
        (f"{POD}; four messages in a channel", pod_system(in_flight=4)),
    ],
    ids=["gang", "pod"],
)
def test_composed_lifecycles_keep_their_rules_on_a_worse_network(
    title: str, system: Any, documented: dict[str, tuple[int, int]]
) -> None:
    report = check(system)
    assert documented[title] == (report.states, report.moves)


TestTask = stateful(SHIM["k8s-task"], **DECLARED["k8s-task"]).TestCase
TestGang = stateful(gang_system(lose=2, repeat=2)).TestCase
# all of it is searched above
TestTask.settings = TestGang.settings = settings(
    max_examples=10, suppress_health_check=[HealthCheck.too_slow]
)
