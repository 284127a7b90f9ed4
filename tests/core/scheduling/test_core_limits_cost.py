"""What a decision costs grows neither with the cluster nor with those that wait: a lane costs one look."""

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from tree_side import limits, tree

from quadriga.core.steps import limits as scheduled
from quadriga.sim.scripted.script import Script

pytestmark = pytest.mark.interpreted  # what is compiled executes no lines


class Looks:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self._held_back = scheduled.held_back
        monkeypatch.setattr(scheduled, "held_back", self._look)

    def _look(self, *args: object) -> bool:
        self.count += 1
        return self._held_back(*args)  # type: ignore[arg-type]

    def of(self, script: Script) -> tuple[int, int]:
        """The looks of one round to the end, and the allocations that it made."""
        self.count = 0
        heard = script.schedule()
        return self.count, sum(line.startswith("new ") for line in heard)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Looks:
    return Looks(monkeypatch)


def crowd(script: Script, apps: int, users: int, *, leaf: str = "a", size: int = 5) -> None:
    for at in range(apps):
        app = f"{leaf}{at:04}"
        script.app(app, f"root.{leaf}", user=f"u{at % users:03}", groups=["g1"])
        script.ask(app, f"{app}-1", f"{app}-2", memory=size)


ONE_USER = ("users: ['*'], maxresources: {memory: 20}",)
GROUP = ("users: ['*'], maxresources: {memory: 20}", "groups: [g1], maxresources: {memory: 20}")


def new_script(*entries: str, leaves: str = "a") -> Script:
    script = Script(tree(*leaves, root=f"submitacl: '*', {limits(*entries)}"), check=False)
    script.node("n1", memory=100_000)
    return script


@pytest.mark.parametrize(("entries", "users"), [(ONE_USER, 1), (GROUP, 1), (GROUP, 25)])
@pytest.mark.parametrize("apps", [50, 250])
def test_a_release_costs_a_few_looks_whatever_waits(
    looks: Looks, apps: int, entries: tuple[str, ...], users: int
) -> None:
    script = new_script(*entries)
    crowd(script, apps, users)
    assert looks.of(script) == (5, 4)
    assert looks.of(script) == (0, 0)  # nobody asks again
    script.release("a0000", "a0000-1-0")
    count, made = looks.of(script)
    assert made == 1
    assert count == 3  # it, the next that runs, the next that has not started
    assert looks.of(script) == (0, 0)
    assert script.scheduler.check() == []


@pytest.mark.parametrize("apps", [50, 250])
def test_an_arriving_application_costs_no_look_without_room(looks: Looks, apps: int) -> None:
    script = new_script(*ONE_USER)
    crowd(script, apps, 1)
    script.schedule()
    script.app("late", "root.a", user="u000")
    script.ask("late", "l", memory=5)
    assert looks.of(script) == (0, 0)
    script.app("other", "root.a", user="u001")
    script.ask("other", "o", memory=5)
    assert looks.of(script) == (1, 1)


@pytest.mark.parametrize("apps", [50, 250])
def test_applications_that_may_not_start_cost_one_look(looks: Looks, apps: int) -> None:
    script = new_script("users: ['*'], maxapplications: 2")
    crowd(script, apps, 1)
    assert looks.of(script) == (5, 4)
    script.remove_app("a0000")
    assert looks.of(script) == (3, 2)
    assert looks.of(script) == (0, 0)
    assert script.scheduler.check() == []


@pytest.mark.parametrize("apps", [25, 100])
def test_a_limit_over_several_leaves_costs_a_look_in_each(looks: Looks, apps: int) -> None:
    script = new_script(*ONE_USER, leaves="abcd")
    for leaf in "abcd":
        crowd(script, apps, 1, leaf=leaf)
    first, made = looks.of(script)
    assert made == 4
    assert first <= 4 + 2 * 4  # of applications that run and of those that have not started
    (held, *_) = [line for line in script.log if line.startswith("new ")]
    app, uuid = held.split(" ")[1].split("/")
    script.release(app, uuid)
    count, made = looks.of(script)
    assert made == 1
    assert count <= 1 + 2 * 4


def test_users_with_room_are_found_and_without_limits_none_is_asked(looks: Looks) -> None:
    script = new_script("users: ['*'], maxresources: {memory: 5}")
    crowd(script, 400, 40)
    assert looks.of(script) == (120, 40)  # each user once with room and twice without
    script.app("late", "root.a", user="new")
    script.ask("late", "l1", "l2", memory=5)
    assert looks.of(script) == (2, 1)  # once with room, once without
    script = new_script("users: [somebody-else], maxresources: {memory: 5}")
    crowd(script, 20, 5)
    assert looks.of(script) == (0, 40)
    leaf: Any = script.scheduler.partition().queue("root.a")
    assert leaf.limited == ()


REPOSITORY = Path(__file__).resolve().parents[3]
PODS = 400


@pytest.fixture(scope="module")
def scheduling() -> Iterator[Any]:
    """bench/ is not installed; it lies beside the tests in a checkout."""
    sys.path.insert(0, str(REPOSITORY))
    try:
        yield import_module("bench.scheduling")
    finally:
        sys.path.remove(str(REPOSITORY))
        for name in [n for n in sys.modules if n.partition(".")[0] == "bench"]:
            del sys.modules[name]


def cost(scheduling: Any, *case: Any) -> int:
    """How many lines are executed until all asks have their places."""
    scheduler, requests = scheduling.prepared(scheduling.Case(*case))
    for request in requests:
        scheduler.apply(request, 0)
    count = 0

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        scheduler.schedule(0)
    finally:
        sys.settrace(before)
    assert sum(len(node.allocations) for node in scheduler.partition().nodes.values()) == PODS
    return count


def test_decisions_cost_no_more_with_more_nodes_or_asks_or_binpacking(scheduling: Any) -> None:
    many = cost(scheduling, "u50", 250, PODS)
    # a walk over the nodes would cost four times as much
    assert cost(scheduling, "u50", 1_000, PODS) < 1.2 * many
    # a walk over spent asks would cost fifty times as much at the end
    assert cost(scheduling, "u2", 250, PODS) < 1.2 * many
    # a walk past every full node would cost many times as much
    assert cost(scheduling, "u50", 250, PODS, "binpacking") < 1.5 * many
