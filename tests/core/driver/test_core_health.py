"""The eleven health checks (2.12): what each finds, a busy cluster passes them; a loop that hangs is named (Q16)."""

import logging
import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from core_world import later, launch, reported, serve
from everything_life import Life

from quadriga.base.times import SECOND
from quadriga.core.checks.failures import FailureLog
from quadriga.core.checks.health import CHECK_EVERY, check_in_steps, check_interval
from quadriga.core.driver.watchdog import Watchdog
from quadriga.core.runtime.stepwise import finish
from quadriga.core.views import Views
from quadriga.si import NodeInfo, RegisterResourceManagerRequest
from quadriga.sim.scripted.script import Script

#: descriptions by name, in order
CHECKS = [
    (name, f"Check {text}")
    for name, texts in {
        "Scheduling errors": ["for scheduling error entries in metrics"],
        "Failed nodes": ["for failed nodes entries in metrics"],
        "Negative resources": [
            "for negative resources in the partitions",
            "for negative resources in the nodes",
        ],
        "Consistency of data": [
            "if a partition's allocated resource <= total resource of the partition",
            "if total partition resource == sum of the node resources from the partition",
            "if node total resource = allocated resource + occupied resource + available resource",
            "if node capacity >= allocated resources on the node",
        ],
        "Reservation check": ["the reservation nr compared to the number of nodes"],
        "Orphan allocation on node check": ["if there are orphan allocations on the nodes"],
        "Orphan allocation on app check": ["if there are orphan allocations on the applications"],
    }.items()
    for text in texts
]


def failing(script: Script) -> dict[int, str]:
    """The diagnoses of the checks that fail, by index."""
    found = finish(check_in_steps(script.scheduler.partitions()))
    checks = found["HealthChecks"]
    assert [(check["Name"], check["Description"]) for check in checks] == CHECKS
    wrong = {at: c["DiagnosisMessage"] for at, c in enumerate(checks) if not c["Succeeded"]}
    assert found["Healthy"] == (not wrong)
    return wrong


def busy() -> Script:
    """A gang half replaced, an ordinary application, a draining node, a reservation."""
    script = Script()
    for name in ("n1", "n2"):
        script.node(name, vcore=2000, memory=10)
    script.node("n3", NodeInfo.CREATE_DRAIN, occupied={"vcore": 1}, vcore=2000)
    script.app("g", gang={"vcore": 2000})
    serve(script, "g", "p1", "p2", group="tg", placeholder=True, vcore=1000)
    script.ask("g", "r", group="tg", vcore=1000)
    script.app("big")
    script.ask("big", "b", vcore=2000)
    later(script, 3)
    return script


def test_2_12_i7_a_consistent_cluster_is_healthy() -> None:
    assert failing(Script()) == {}
    script = busy()
    assert failing(script) == {}
    reservations = finish(check_in_steps(script.scheduler.partitions()))["HealthChecks"][8]
    assert reservations["DiagnosisMessage"] == "[rm]default: 1 reservations, 3 nodes"
    # a restart of the resource manager leaves nothing behind (I7)
    script.send(RegisterResourceManagerRequest(rmID="rm"))
    assert failing(script) == {}
    script.scheduler.shutdown("rm", script.now)
    assert failing(script) == {}


def first_check(views: Views, failures: FailureLog, now: int) -> tuple[bool, str]:
    """Whether the check for scheduling errors succeeds, and its diagnosis."""
    found = views.check_health(failures, now)
    check = found["HealthChecks"][0]
    assert found["Healthy"] == check["Succeeded"]
    return check["Succeeded"], check["DiagnosisMessage"]


def test_2_12_a_scheduling_error_is_named_and_forgiven_after_ten_minutes() -> None:
    views, failures = Views(Script().scheduler), FailureLog()
    assert first_check(views, failures, 0) == (True, "scheduling errors since the start: 0")
    for at in (60, 61, 65):
        failures.note(IndexError("index 1 is out of bounds"), at * SECOND)
    failures.note(KeyError("n1"), 64 * SECOND)
    assert first_check(views, failures, 90 * SECOND) == (
        False,
        "scheduling errors since the start: 4, 4 of them recent: "
        "KeyError: 'n1' (once, at 1970-01-01T00:01:04Z); "
        "IndexError: index 1 is out of bounds (3 times, last at 1970-01-01T00:01:05Z)",
    )
    for at in (120, 64 + 599):
        assert not first_check(views, failures, at * SECOND)[0]
    assert first_check(views, failures, (65 + 600) * SECOND) == (
        True,
        "scheduling errors since the start: 4, none of them recent",
    )
    failures.note(KeyError("n2"), 700 * SECOND)
    assert first_check(views, failures, 700 * SECOND) == (
        False,
        "scheduling errors since the start: 5, 1 of them recent: "
        "KeyError: 'n2' (once, at 1970-01-01T00:11:40Z)",
    )
    # an error between two rare checks is reported by the next one
    failures.note(KeyError("n3"), 1800 * SECOND)
    assert not first_check(views, failures, 5400 * SECOND)[0]
    assert first_check(views, failures, 9000 * SECOND)[0]


def test_2_12_many_errors_are_summarised() -> None:
    failures = FailureLog()
    for at in range(5_000):
        failures.note(ValueError(f"{at % 8} \n" + "x" * 5_000), at)
    succeeded, said = first_check(Views(Script().scheduler), failures, 5_000)
    assert not succeeded
    assert said.startswith("scheduling errors since the start: 5000, at least 1000 of them recent")
    assert said.endswith("and 3 other errors")
    assert said.isprintable()
    assert len(said) < 2_000


def test_2_12_a_node_that_could_not_be_added() -> None:
    script = Script()
    script.node("n1", vcore=1, existing=[reported("k", "gone", vcore=1)])
    assert failing(script) == {1: "nodes that could not be taken up: [rm]default/n1"}
    script.node("n1", vcore=1)
    assert failing(script) == {}


def test_v2_a_node_that_lost_capacity_is_reported() -> None:
    """Legal, and nothing is evicted; but an operator should look at it, as in YuniKorn."""
    script = Script()
    script.node("n1", vcore=2000)
    launch(script, "app", "k", vcore=2000)
    script.node("n1", NodeInfo.UPDATE, vcore=500)
    assert failing(script) == {
        3: "nodes with negative resources: [rm]default/n1 available vcore=-1500",
        7: "nodes with more allocated than they have: [rm]default/n1 has vcore=500, "
        "allocated is vcore=2000",
    }
    script.release("app")
    assert failing(script) == {}


def parts(script: Script) -> Any:
    """A partition and what is in it, to be broken."""
    partition = script.scheduler.partition()
    node = partition.nodes["n1"]
    app = partition.applications["g"]
    return SimpleNamespace(
        partition=partition,
        node=node,
        app=app,
        allocation=next(iter(node.allocations)),
        vcore=partition.registry.index["vcore"],
    )


NAMESAKE = SimpleNamespace(app_id="g", placeholders={}, allocations={}, asks={})


def add(book: list[int], at: Any, value: int) -> None:
    book[at.vcore] += value


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (lambda at: add(at.partition.root.allocated, at, -1), {4}),
        (lambda at: add(at.partition.root.allocated, at, -10_000), {2, 4}),
        (lambda at: add(at.partition.capacity, at, 5), {5}),
        (lambda at: add(at.node.available, at, 7), {6}),
        (lambda at: add(at.node.allocated, at, 2000), {4, 6, 7}),
        (lambda at: add(at.node.total, at, -1 - at.node.total[at.vcore]), {3, 5, 6, 7}),
        (lambda at: at.app.placeholders.clear(), {9}),
        (lambda at: at.node.allocations.pop(at.allocation), {6, 10}),
        (lambda at: at.partition.applications.update(g=NAMESAKE), {9}),
    ],
    ids="less none more room much below unknown lost namesake".split(),
)
def test_2_12_checks_find_their_faults(damage: Callable[[Any], object], expected: set[int]) -> None:
    script = busy()
    damage(parts(script))
    found = failing(script)
    assert set(found) == expected
    for text in found.values():
        assert "none" not in text
        assert "[rm]default" in text or "g/" in text


@pytest.mark.parametrize("seed", range(2))
def test_2_12_what_happens_between_two_steps_of_a_check_is_no_fault(seed: int) -> None:
    """Whatever comes, goes, is replaced or reported anew; and a fault that is there is still found."""
    rng = random.Random(seed)
    life = Life(rng, alone=True)
    for _ in range(40):
        life.step()
    partitions = list(life.script.scheduler.partitions())
    steps = changed = 0
    while steps < 60:
        check = check_in_steps(life.script.scheduler.partitions())
        before = life.script.scheduler.journal.count
        try:
            while True:
                next(check)
                if rng.random() < 0.3:
                    steps += 1
                    life.step()
        except StopIteration as stop:
            wrong = [each for each in stop.value["HealthChecks"] if not each["Succeeded"]]
        # a node whose capacity was lowered is reported (V2)
        assert {each["DiagnosisMessage"].partition(" ")[0] for each in wrong} <= {"nodes"}, wrong
        changed += life.script.scheduler.journal.count - before
        assert not any(partition.node_index.watchers for partition in partitions)
    assert changed > 20
    partition = next(life.script.scheduler.partitions())
    partition.capacity[0] += 1
    assert not finish(check_in_steps([partition]))["HealthChecks"][5]["Succeeded"]


def test_2_12_the_last_result_is_kept_until_the_next_check() -> None:
    script = busy()
    views = Views(script.scheduler)
    assert views.check_health()["Healthy"]
    parts(script).partition.capacity[0] += 1
    assert views.health()["Healthy"]
    assert not views.check_health()["Healthy"]
    assert not views.health()["Healthy"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, CHECK_EVERY),
        ("", CHECK_EVERY),
        ("1m", 60 * 10**9),
        ("0s", 0),
        ("0", 0),
        ("-5s", 0),
        ("soon", CHECK_EVERY),
    ],
)
def test_2_2_3_the_interval_of_checks(value: str | None, expected: int) -> None:
    extra = {} if value is None else {"health.checkInterval": value}
    assert check_interval(extra) == expected
    assert CHECK_EVERY == 30 * 10**9


class Clock:
    now = 0

    def __call__(self) -> int:
        return self.now


def test_q16_what_took_over_a_second_is_named_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    watchdog = Watchdog(clock, lambda thing: f"pod {thing}")
    watchdog.at("quick")
    clock.now += SECOND
    watchdog.at("slow")
    watchdog.detail = "ask 7"
    clock.now += 2 * SECOND
    watchdog.at("next")
    clock.now += 10
    watchdog.idle()
    clock.now += 100 * SECOND  # it waits
    watchdog.idle()
    assert caplog.messages == ["the loop spent 2.0 s on pod slow (last question: ask 7)"]
    assert (watchdog.count, watchdog.longest) == (1, 2 * SECOND)
    assert watchdog.busy() == 0
    assert watchdog.stuck(0) == ""


def test_q16_a_loop_that_hangs_is_named_by_another_thread(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    watchdog = Watchdog(clock)
    watchdog.at("pod default/endless")
    clock.now += 3 * SECOND
    assert watchdog.stuck(5 * SECOND) == ""
    clock.now += 3 * SECOND
    with caplog.at_level(logging.ERROR):
        said = [watchdog.stuck(5 * SECOND) for _ in range(3)]
    assert said == ["its loop has been at pod default/endless for 6.0 s"] * 3
    assert caplog.messages == said[:1]
    assert watchdog.busy() == 6 * SECOND
