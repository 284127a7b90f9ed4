"""The numbers in UUIDs do not come again with an application's id (X46, R5)."""

from random import Random

import pytest
from core_steps import on_nodes, partitions, run, serve
from core_world import refuse

from quadriga.core.model.serials import KEPT_FOR, Serials
from quadriga.si import NodeInfo, TerminationType
from quadriga.sim.scripted.script import ONE_QUEUE, Script

SECOND = 1_000_000_000
HOUR = 3600
STOPPED = TerminationType.STOPPED_BY_RM
TIMEOUT = TerminationType.TIMEOUT
REPLACED = TerminationType.PLACEHOLDER_REPLACED


@pytest.fixture
def script() -> Script:
    return on_nodes(n1=1)


def gang_runs(script: Script, key: str = "p") -> list[str]:
    """A gang of one placeholder on the only node."""
    script.app("g", gang={"vcore": 1}, timeout_ms=10_000)
    script.ask("g", key, group="tg", placeholder=True, vcore=1)
    return script.schedule()


def held(script: Script, app: str) -> list[str]:
    found = script.scheduler.application(app)
    return [*found.allocations, *found.placeholders]


# -- a late confirmation -----------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["p", ""])
def test_x46_a_late_confirmation_by_key_is_of_what_was_asked_back(script: Script, key: str) -> None:
    gang_runs(script)
    script.advance(10)
    script.remove_app("g")
    gang_runs(script)
    assert script.release("g", "", TIMEOUT, key=key) == []
    assert held(script, "g") == ["p-1"]
    # that was the answer; another one means the pod that is there (X32)
    assert script.release("g", "", TIMEOUT, key=key)
    assert held(script, "g") == []


def test_x46_a_node_that_goes_leaves_its_release_unanswered() -> None:
    """The core completes the replacement on another node, and the confirmation comes much later."""
    script = on_nodes(n1=1)
    gang_runs(script)
    script.node("n2", vcore=1)
    refuse(script, lambda key, node: (key, node) == ("m", "n1"))
    assert serve(script, "g", "m", group="tg", vcore=1) == ["released g/p-0 PLACEHOLDER_REPLACED"]
    assert "new g/m-0 on n2" in script.node("n1", NodeInfo.DECOMISSION)
    script.remove_app("g")
    script.advance(5 * HOUR)
    assert gang_runs(script)[-1] == "new g/p-1 on n2 placeholder of tg"
    assert script.release("g", "p-0", REPLACED) == []
    assert held(script, "g") == ["p-1"]


@pytest.mark.parametrize(
    ("uuid", "key", "kind", "answers"),
    [
        ("p-0", "", TIMEOUT, True),
        ("", "p", TIMEOUT, True),
        ("", "", TIMEOUT, True),
        ("p-7", "", TIMEOUT, False),
        ("", "other", TIMEOUT, False),
        ("p-0", "", STOPPED, False),
    ],
)
def test_x46_not_before_its_releases_are_answered(
    script: Script, uuid: str, key: str, kind: TerminationType, answers: bool
) -> None:
    gang_runs(script)
    script.advance(10)
    script.remove_app("g")
    serials = script.scheduler.partition().serials
    for _ in range(5):
        script.advance(HOUR)
        assert serials.first("g", script.scheduler.now) == 1
    assert script.release("g", uuid, kind, key=key) == []
    assert serials.first("g", script.scheduler.now) == (0 if answers else 1)
    assert serials.is_empty(script.scheduler.now) is answers


def test_x46_a_partition_that_comes_back_goes_on() -> None:
    other = partitions("default", "other")
    script = Script(other)

    def one_life() -> list[str]:
        info = {"si/node-partition": "other"}
        script.node("n1", attributes=info, vcore=1)
        heard = run(script, "a", "k", partition="other", vcore=1)
        script.node("n1", NodeInfo.DECOMISSION, attributes=info)
        script.scheduler.advance(script.now)
        return heard

    assert one_life()[-1] == "new a/k-0 on n1"
    script.advance(31)  # it completes
    script.configure(ONE_QUEUE)
    assert [p.name for p in script.scheduler.partitions()] == ["default"]
    script.configure(other)
    assert one_life()[-1] == "new a/k-1 on n1"
    # what nobody needs any more is not kept
    script.advance(31)
    script.configure(ONE_QUEUE)
    script.advance(3 * HOUR)
    script.configure(ONE_QUEUE.replace("name: default", "name: third", 1))
    assert "other" not in script.scheduler.resource_managers()[0].serials


# -- bounds ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_x46_no_number_comes_again_within_an_hour_or_unanswered(seed: int) -> None:
    """Against books that forget nothing, also where there is too much to remember."""
    rng = Random(seed)
    serials = Serials(most=rng.choice((4, 20, 10_000)))
    given: dict[str, int] = {}
    ended: dict[str, int] = {}
    waiting: set[tuple[str, str]] = set()
    now = 0
    for _ in range(3_000):
        now += rng.choice((0, 1, 60, 600)) * SECOND
        app = f"app-{rng.randrange(30)}"
        if waiting and rng.random() < 0.3:
            answer = rng.choice(sorted(waiting))
            waiting.discard(answer)
            serials.answered(*answer, "")
        first = serials.first(app, now)
        recent = app in ended and ended[app] + KEPT_FOR > now
        if recent or any(name == app for name, _ in waiting):
            assert first >= given[app]
        given[app] = first + rng.randrange(3)
        if given[app] > first and rng.random() < 0.1:
            waiting.add((app, f"k-{first}"))
            serials.unanswered(app, f"k-{first}")
        ended[app] = now
        if given[app]:
            serials.ended(app, given[app], now)
        assert len(serials) <= serials._most * 2
