"""APPLICATION alone keeps the rules of the gang scheduling design (X47)."""

from collections.abc import Callable
from random import Random
from types import ModuleType
from typing import Any

import pytest

from quadriga.fsm import APPLICATION, InvalidTransition
from quadriga.fsm.lifecycles import application as application_fsm

TIMEOUT = application_fsm.PLACEHOLDER_TIMEOUT
ENDED = ("Completed", "Killed", "Rejected", "Expired")
GIVES_BACK = {*application_fsm.GANG_OVER, "Resuming", "Waiting"}

# fmt: off
FORBIDDEN = (
    # the design says                                 in these states              while               does nothing
    ("it stays Accepted while it lacks placeholders", "Accepted",                  "has_placeholders", "run"),
    ("it does not run before it has anything",        "Accepted",                  "has_asks",         "run"),
    ("a pending ask keeps it from waiting",           "Accepted Starting Running", "has_asks",         "wait"),
    ("an active allocation keeps it from waiting",    "Accepted Starting Running", "has_allocations",  "wait"),
    ("only asks and allocations end the waiting",     "Waiting",                   "has_placeholders", "run"),
    ("it completes without placeholders only",        "Waiting",                   "has_placeholders", "complete"),
    ("it completes without asks only",                "Waiting",                   "has_asks",         "complete"),
    ("it completes without allocations only",         "Waiting",                   "has_allocations",  "complete"),
    ("it times out only while it lacks placeholders", "Accepted",                  "not gathers",      TIMEOUT),
    ("it is Killed after its placeholders are gone",  "Killing",                   "has_placeholders", "killed"),
    ("it is Killed after its asks are gone",          "Killing",                   "has_asks",         "killed"),
    ("it is Killed after its allocations are gone",   "Killing",                   "has_allocations",  "killed"),
    ("a Soft gang goes on without placeholders",      "Resuming",                  "has_placeholders", "resumed"),
)
# fmt: on


def facts_of(words: str) -> dict[str, bool]:
    name = words.removeprefix("not ")
    return {name: name == words}


@pytest.mark.parametrize("hard", [False, True], ids=["soft", "hard"])
@pytest.mark.parametrize("rule", FORBIDDEN, ids=lambda rule: rule[0].replace(" ", "-"))
def test_x47_what_the_design_forbids_changes_nothing(born: Any, rule: Any, hard: bool) -> None:
    _, sources, words, trigger = rule
    for state in sources.split():
        for info in ({}, {"timer": True}, {"reason": "told"}):
            it = born(state, hard=hard, **facts_of(words))
            APPLICATION.fire(it, trigger, **info)
            assert it.state == state


# -- a program of its own --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def own_rm(example: Callable[[str], ModuleType]) -> ModuleType:
    return example("own_rm")


def broken_rules(record: dict[str, Any]) -> list[str]:
    asks = record["placeholder_asks"] + record["asks"]
    state, members, placeholders = record["state"], record["members"], record["placeholders"]
    rules = {
        "it waits without an ask and an allocation": state == "Waiting" and (asks or members),
        "it ends when nothing is left": state in ENDED and (asks or members or placeholders),
        "it runs after it had what it needs": state == "Running" and not record["complete"],
        "a Hard gang does not resume": state == "Resuming" and record["hard"],
    }
    return [rule for rule, broken in rules.items() if broken]


@pytest.mark.parametrize("seed", range(40))
def test_x47_a_program_that_fires_anything_breaks_no_rule(own_rm: ModuleType, seed: int) -> None:
    random = Random(seed)
    manager = own_rm.SlotManager(slots=random.randint(1, 6))
    moves = refused = 0
    for number in range(4):
        name = f"job-{number}"
        manager.submit(name, random.randint(1, 4), hard=random.random() < 0.5)
        record = manager.jobs[name]
        record["complete"] = False
        for _ in range(60):
            before = record["state"]
            try:
                act(manager, name, record, random)
            except InvalidTransition:
                refused += 1
            job = own_rm.Job(record)
            record["complete"] |= job.gang_complete or bool(record["members"])
            assert broken_rules(record) == []
            moves += record["state"] != before
        manager.free += record["members"] + record["placeholders"]
    assert moves
    assert refused


def act(manager: Any, name: str, record: dict[str, Any], random: Random) -> None:
    """Members come while the gang runs, and not before."""
    members, placeholders, state = record["members"], record["placeholders"], record["state"]
    what = random.choice(("place", "finish", "replace", "confirm", "anything", "anything"))
    if what == "place":
        manager.place(name)
    elif what == "finish" and members:
        manager.finish(name)
    elif what == "replace" and placeholders and state in application_fsm.COUNTED:
        manager.replace(name)
    elif what == "confirm" and placeholders and state in GIVES_BACK:
        manager.confirm(name)
    elif what == "confirm" and members and state == "Killing":
        manager.finish(name)
    elif what == "anything":
        manager.fire(name, random.choice([t for t in APPLICATION.triggers() if t != "ask"]))
