"""Asks that predicates refused are tried again when that may tell something else, and delay nobody (Q16)."""

from collections.abc import Callable

import numpy as np
import pytest
from core_steps import on_nodes, serve
from core_world import news

from quadriga.core import Options
from quadriga.si.predicates import KnownRefusals, Revision
from quadriga.sim.scripted.script import Script


class Labels:
    """Each ask whose key begins with the name of a node, `n2-x`, goes there and nowhere else."""

    def __init__(self) -> None:
        self.revision = Revision()
        self.asked: list[str] = []
        self.says = True
        self.everywhere: set[str] = set()

    def accepts(self, key: str, node: str) -> bool:
        return key in self.everywhere or not key.startswith("n") or key.split("-")[0] == node

    def __call__(self, key: str, node: str, allocate: bool) -> str | None:
        self.asked.append(key)
        return None if self.accepts(key, node) else "label"

    def refused_nodes(self, key: str, nodes: tuple[str, ...]) -> KnownRefusals:
        self.asked.append(key)
        numbers = np.array([not self.accepts(key, node) for node in nodes], np.int32)
        return KnownRefusals(numbers, ["label"], (self.revision,) if self.says else None)

    def change(self, key: str) -> None:
        """The ask may go anywhere from now on."""
        self.everywhere.add(key)
        self.revision.outdated, self.revision = True, Revision()

    def questions(self, about: str) -> int:
        """How many there were since this was last called."""
        number = sum(key.startswith(about) for key in self.asked)
        self.asked.clear()
        return number


@pytest.fixture
def labels() -> Labels:
    return Labels()


def cluster(labels: Labels, **nodes: int) -> Script:
    script = on_nodes(**(nodes or {"n1": 10_000, "n2": 10_000}), apps=("a",), options=Options())
    script.scheduler.set_predicate(script.rm_id, labels)
    return script


def full(labels: Labels, *waiting: str) -> Script:
    """An ask fills `n2`; these wait for it."""
    script = cluster(labels)
    assert news(serve(script, "a", "n2-first", vcore=10_000)) == ["a/n2-first-0 on n2"]
    assert news(serve(script, "a", *waiting, vcore=10_000)) == []
    labels.asked.clear()
    return script


@pytest.mark.parametrize("waiting", [3, 60])
def test_q16_what_is_placed_elsewhere_asks_about_no_refused(labels: Labels, waiting: int) -> None:
    script = full(labels, *(f"n2-{number}" for number in range(waiting)))
    for number in range(5):
        assert len(news(serve(script, "a", f"any{number}", vcore=1_000))) == 1
    assert labels.questions("n2") == 0


def test_q16_refused_asks_are_tried_with_more_room_or_new_answers(labels: Labels) -> None:
    script = full(labels, "n2-x", "n2-y")
    assert news(script.release("a", "n2-first-0") + script.schedule()) == ["a/n2-x-0 on n2"]
    script = full(labels, "n2-x", "n2-y")
    labels.change("n2-y")
    assert news(script.schedule()) == ["a/n2-y-0 on n1"]


def test_q16_a_node_that_refuses_is_asked_again_where_none_says_why(labels: Labels) -> None:
    script = full(labels, "n2-x")
    serve(script, "a", "any", vcore=1_000)
    script.release("a", "any-0")
    script.schedule()
    assert labels.questions("n2") == 0
    labels.says = False
    script = full(labels, "n2-x")
    serve(script, "a", "any", vcore=1_000)
    assert labels.questions("n2") > 0


@pytest.mark.parametrize(
    "change",
    [
        lambda script: script.node("n3", vcore=1_000),
        lambda script: script.scheduler.set_predicate(script.rm_id, None),
        lambda script: script.advance(11),
    ],
    ids=["a node comes", "other predicates", "time passes"],
)
def test_q16_refused_asks_are_retried(labels: Labels, change: Callable[[Script], object]) -> None:
    script = full(labels, "n2-x")
    labels.everywhere.add("n2-x")  # the predicates do not say it
    assert news(script.schedule()) == []
    change(script)
    assert news(script.schedule()) == ["a/n2-x-0 on n1"]


def test_q16_a_gang_with_a_refused_member_waits_for_the_same(labels: Labels) -> None:
    script = full(labels)
    script.app("g", gang={"vcore": 8_000})
    members = {"group": "tg", "placeholder": True, "vcore": 4_000}
    assert news(serve(script, "g", "n2-p0", "n2-p1", **members)) == []
    labels.asked.clear()
    serve(script, "a", "any", vcore=1_000)
    assert labels.questions("n2") == 0
    assert len(news(script.release("a", "n2-first-0") + script.schedule())) == 2


def test_q16_with_a_budget_calls_try_some_and_the_next_go_on_by_priority(labels: Labels) -> None:
    keys = [f"n2-{number}" for number in range(40)]
    script = full(labels, *keys)
    script.ask("a", "n2-urgent", vcore=10_000, priority=5)
    script.schedule()
    for key in (*keys, "n2-urgent"):
        labels.everywhere.add(key)
    labels.change("n2-urgent")
    scheduler = script.scheduler
    scheduler.schedule(script.now, budget=64)
    assert scheduler.unfinished
    assert [str(e.uuid) for e in scheduler.partition().nodes["n1"].allocations] == ["n2-urgent-0"]
    assert len({key for key in labels.asked if key.startswith("n2")}) < 20
    calls = 1
    while scheduler.unfinished:
        scheduler.schedule(script.now, budget=64)
        calls += 1
    assert calls < 20
