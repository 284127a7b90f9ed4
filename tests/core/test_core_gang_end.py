"""How gangs end (1.3): waiting, timeouts, clean-up, and ids that are used again."""

from __future__ import annotations

import pytest

from quadriga.si import AllocationResponse, NodeInfo, TerminationType
from quadriga.sim.script import Script

TIMEOUT = TerminationType.TIMEOUT
REPLACED = TerminationType.PLACEHOLDER_REPLACED
MINUTE = 60


@pytest.fixture(params=["design", "k8shim"])
def order(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def script(order: str) -> Script:
    script = Script(extra={"si.messageOrder": order})
    script.node("n1", memory=20)
    return script


def running_gang(script: Script, count: int = 2, style: str = "Soft", app: str = "g") -> None:
    """The application with all its placeholders p0, p1, ... of group tg."""
    script.app(app, gang={"memory": count}, style=style)
    keys = [f"p{n}" for n in range(count)]
    script.ask(app, *keys, group="tg", placeholder=True, memory=1)
    script.schedule()
    assert state(script, app) == "Running"


def incomplete_gang(script: Script, style: str, timeout_ms: int = 0, real: bool = False) -> None:
    """Application g with two of three placeholders: the third fits nowhere."""
    script.app("g", gang={"memory": 24}, style=style, timeout_ms=timeout_ms)
    script.ask("g", "p0", "p1", "p2", group="tg", placeholder=True, memory=8)
    if real:
        script.ask("g", "real", group="tg", memory=8)
    assert len(script.schedule()) == 2
    assert script.advance(1) == ["FAILED g/p2"]


def state(script: Script, app: str = "g") -> str:
    return script.scheduler.application(app).state


def in_order(order: str, update: str, *rest: str) -> list[str]:
    """X8: the design's order ends with the update, the k8shim's begins with it."""
    return [*rest, update] if order == "design" else [update, *rest]


def nothing_is_left(script: Script) -> bool:
    partition = script.scheduler.partition()
    books = [partition.root.allocated, partition.root.pending, partition.root.reserved_headroom]
    books.extend(account.usage for account in partition.users.values())
    books.extend(node.allocated for node in partition.nodes.values())
    return not any(any(book) for book in books)


# -- Waiting and Completed -------------------------------------------------------------------------


def test_g40_waiting_when_nothing_is_allocated_or_pending(script: Script, order: str) -> None:
    """Leftover placeholders are no active allocations and do not prevent it."""
    running_gang(script)
    script.ask("g", "real", group="tg", memory=1)
    script.schedule()
    script.confirm()
    heard = script.release("g", "real-0")
    assert heard == in_order(order, "g Waiting (wait)", "released g/real-0 STOPPED_BY_RM")
    assert list(script.scheduler.application("g").placeholders) == ["p1-0"]


def test_g40_a_gang_does_not_wait_as_its_last_placeholder_lands(script: Script) -> None:
    running_gang(script)
    assert script.advance(10 * MINUTE) == []
    assert state(script) == "Running"


def test_g40_a_pending_placeholder_ask_is_pending(script: Script) -> None:
    running_gang(script)
    script.ask("g", "real", group="tg", memory=1)
    script.schedule()
    script.confirm()
    script.ask("g", "more", group="tg", placeholder=True, memory=19)
    assert script.schedule() == []
    assert script.release("g", "real-0") == ["released g/real-0 STOPPED_BY_RM"]
    assert state(script) == "Running"
    assert "g Waiting (wait)" in script.release_ask("g", "more")


def test_g40_a_parked_ask_is_pending(script: Script) -> None:
    running_gang(script)
    script.ask("g", "m0", group="tg", memory=1)
    script.schedule()
    script.confirm()
    script.ask("g", "m1", group="tg", memory=1)
    script.schedule()
    assert script.release("g", "m0-0") == ["released g/m0-0 STOPPED_BY_RM"]
    assert script.confirm() == ["new g/m1-0 on n1"]


def test_g41_waiting_times_out_to_completed(script: Script) -> None:
    script.app("g")
    script.ask("g", "a", memory=1)
    script.schedule()
    script.release("g", "a-0")
    assert script.advance(29) == []
    assert script.advance(1) == ["g Completed (complete)"]


def test_g42_a_new_ask_returns_it_to_running(script: Script) -> None:
    script.app("g")
    script.ask("g", "a", memory=1)
    script.schedule()
    script.release("g", "a-0")
    script.advance(29)
    assert script.ask("g", "b", memory=1) == ["g Running (ask)"]
    assert script.advance(5 * MINUTE) == []
    assert script.schedule() == ["new g/b-0 on n1"]


def test_g43_completed_requires_that_nothing_is_left(script: Script) -> None:
    running_gang(script)
    script.ask("g", "real", group="tg", memory=1)
    script.schedule()
    script.confirm()
    script.release("g", "real-0")
    assert script.advance(30) == ["released g/p1-0 TIMEOUT"]
    assert state(script) == "Waiting"
    assert script.confirm() == ["g Completed (complete)"]


def test_g51_leftovers_are_released_on_the_way_to_completed(script: Script) -> None:
    running_gang(script, count=4)
    script.ask("g", "real", group="tg", memory=1)
    script.schedule()
    script.confirm()
    script.release("g", "real-0")
    assert script.advance(30) == [f"released g/p{n}-0 TIMEOUT" for n in (1, 2, 3)]
    assert script.confirm(most=2) == []  # by themselves they change no state
    assert state(script) == "Waiting"
    assert script.confirm() == ["g Completed (complete)"]
    assert nothing_is_left(script)


def test_g52_clean_up_step_by_step(script: Script, order: str) -> None:
    running_gang(script, count=2)
    script.ask("g", "m0", "m1", group="tg", memory=1)
    script.schedule()
    script.confirm()
    assert script.release("g", "m0-0") == ["released g/m0-0 STOPPED_BY_RM"]
    heard = script.release("g", "m1-0")
    assert heard == in_order(order, "g Waiting (wait)", "released g/m1-0 STOPPED_BY_RM")
    assert script.advance(30) == ["g Completed (complete)"]
    assert "g" not in script.scheduler.partition().applications
    assert nothing_is_left(script)


def test_g53_releases_come_before_the_completion(script: Script) -> None:
    """In both orders: completion waits for the confirmations of the releases."""
    running_gang(script)
    script.ask("g", "real", group="tg", memory=1)
    script.schedule()
    script.confirm()
    script.release("g", "real-0")
    start = len(script.log)
    script.advance(30)
    script.confirm()
    assert script.log[start:] == ["released g/p1-0 TIMEOUT", "g Completed (complete)"]


def test_g54_a_completed_application_leaves_its_queue(script: Script) -> None:
    script.app("g")
    script.ask("g", "a", memory=1)
    script.schedule()
    script.release("g", "a-0")
    script.advance(30)
    partition = script.scheduler.partition()
    assert "g" not in partition.applications
    assert all("g" not in leaf.apps for leaf in partition.leaves())


@pytest.mark.parametrize("ended", ["Completed", "Killed", "Rejected", "removed"])
def test_g55_an_id_can_be_used_again(script: Script, ended: str) -> None:
    if ended == "Completed":
        script.app("g")
        script.ask("g", "a", memory=1)
        script.schedule()
        script.release("g", "a-0")
        script.advance(30)
    elif ended == "Killed":
        incomplete_gang(script, "Hard")
        script.advance(15 * MINUTE)
        script.confirm()
    elif ended == "Rejected":
        assert script.app("g", gang={"memory": -1})[0].startswith("rejected g")
    else:
        running_gang(script)
        script.remove_app("g")
    assert state(script) == ("Completed" if ended == "removed" else ended)
    assert script.app("g") == ["accepted g"]
    assert script.ask("g", "a", memory=1) == ["g Accepted (ask)"]
    number = 0 if ended == "Rejected" else 1  # X46
    assert script.schedule() == ["g Running (run)", f"new g/a-{number} on n1"]
    script.advance(73 * 60 * MINUTE)  # the old one expires, the new one goes on
    assert list(script.scheduler.partition().ended) == []
    assert state(script) == "Running"
    heard = script.release("g", f"a-{number}")
    assert heard[-1] in ("g Waiting (wait)", f"released g/a-{number} STOPPED_BY_RM")
    assert state(script) == "Waiting"


def test_g55_a_gang_of_the_same_id_starts_from_nothing(script: Script) -> None:
    for _ in range(3):
        incomplete_gang(script, "Hard")
        script.advance(15 * MINUTE)
        script.confirm()
        assert state(script) == "Killed"
        assert nothing_is_left(script)


def test_g55_a_living_id_is_taken(script: Script) -> None:
    running_gang(script)
    (answer,) = script.app("g")
    assert "application already existed" in answer
    assert state(script) == "Running"


# -- the placeholder timeout -----------------------------------------------------------------------


def test_g44_the_timeout_starts_with_the_first_placeholder(script: Script) -> None:
    script.app("g", gang={"memory": 40}, style="Hard", timeout_ms=60_000)
    script.advance(60 * MINUTE)
    script.ask("g", "p0", group="tg", placeholder=True, memory=30)
    script.schedule()
    assert script.advance(60 * MINUTE) == ["FAILED g/p0"]  # nothing placed, nothing timed out
    script.ask("g", "p1", group="tg", placeholder=True, memory=10)
    assert script.schedule() == ["new g/p1-0 on n1 placeholder of tg"]
    script.advance(59)
    assert state(script) == "Accepted"
    script.advance(1)
    assert state(script) == "Killing"


def test_g44_later_placeholders_do_not_restart_it(script: Script) -> None:
    script.app("g", gang={"memory": 10}, style="Hard", timeout_ms=60_000)
    for n in range(6):
        script.ask("g", f"p{n}", group="tg", placeholder=True, memory=1)
        script.schedule()
        script.advance(10)
    assert state(script) == "Killing"


def test_g45_hard_and_soft_timeout(script: Script) -> None:
    incomplete_gang(script, "Hard")
    script.advance(15 * MINUTE)
    assert state(script) == "Killing"
    script.confirm()
    incomplete_gang(script, "Soft")
    script.advance(15 * MINUTE)
    assert state(script) == "Resuming"


def test_g45_whatever_is_pending(script: Script) -> None:
    """G24: also a gang times out whose asks have not all arrived."""
    script.app("g", gang={"memory": 3}, style="Hard", timeout_ms=60_000)
    script.ask("g", "p0", group="tg", placeholder=True, memory=1)
    script.schedule()
    script.advance(60)
    assert state(script) == "Killing"


def test_g45_a_complete_gang_does_not_time_out(script: Script) -> None:
    """After the start only the placeholders that nobody needed are given back, Hard or Soft."""
    for style in ("Hard", "Soft"):
        running_gang(script, style=style, app=style)
        script.ask(style, "real", group="tg", memory=1)
        script.schedule()
        script.confirm()
    heard = script.advance(15 * MINUTE)
    assert heard == ["released Hard/p1-0 TIMEOUT", "released Soft/p1-0 TIMEOUT"]
    assert script.confirm() == []
    assert state(script, "Hard") == state(script, "Soft") == "Running"
    groups = script.scheduler.application("Hard").gang.task_groups
    assert [(g.count, g.replaced, g.timed_out) for g in groups.values()] == [(2, 1, 1)]


def test_g45_a_gang_nobody_uses_waits_when_its_placeholders_are_gone(script: Script) -> None:
    """5.15, s6: none was replaced, so nothing is left after the timeout."""
    running_gang(script)
    script.advance(15 * MINUTE)
    assert script.confirm() == ["g Waiting (wait)"]


@pytest.mark.parametrize("style", ["Hard", "Soft"])
def test_g46_the_messages_of_a_timeout(script: Script, order: str, style: str) -> None:
    incomplete_gang(script, style)
    goes_to = "Killing" if style == "Hard" else "Resuming"
    assert script.advance(15 * MINUTE) == in_order(
        order,
        f"g {goes_to} (ResourceReservationTimeout)",
        "released ask g/p2 TIMEOUT",
        "released g/p0-0 TIMEOUT",
        "released g/p1-0 TIMEOUT",
    )


def test_g46_several_task_groups(script: Script, order: str) -> None:
    script.app("g", gang={"memory": 100}, style="Hard")
    script.ask("g", "a0", "a1", group="a", placeholder=True, memory=10)
    script.ask("g", "b0", "b1", group="b", placeholder=True, memory=40)
    script.schedule()
    script.advance(1)
    assert script.advance(15 * MINUTE) == in_order(
        order,
        "g Killing (ResourceReservationTimeout)",
        "released ask g/b0 TIMEOUT",
        "released ask g/b1 TIMEOUT",
        "released g/a0-0 TIMEOUT",
        "released g/a1-0 TIMEOUT",
    )


def test_g46_what_is_releasing_already_is_not_released_again(script: Script, order: str) -> None:
    script.app("g", gang={"memory": 24}, style="Hard")
    script.ask("g", "p0", group="tg", placeholder=True, memory=8, timeout_ms=5_000)
    script.ask("g", "p1", "p2", group="tg", placeholder=True, memory=8)
    script.schedule()
    assert script.advance(5) == ["FAILED g/p2", "released g/p0-0 TIMEOUT"]
    heard = script.advance(15 * MINUTE - 5)
    assert heard.count("released g/p1-0 TIMEOUT") == 1
    # p0 was sent again only by the watchdog: after 1, 3, and 7 minutes
    assert heard.count("released g/p0-0 TIMEOUT") == 3
    assert heard[3:] == in_order(
        order,
        "g Killing (ResourceReservationTimeout)",
        "released ask g/p2 TIMEOUT",
        "released g/p1-0 TIMEOUT",
    )


def test_g47_asks_then_allocations_then_the_update(script: Script, order: str) -> None:
    """X8: three messages; the design's order, or the one that the k8shim needs."""
    incomplete_gang(script, "Hard")
    start = len(script.messages)
    script.advance(15 * MINUTE)
    parts = [
        "asks"
        if isinstance(message, AllocationResponse) and message.releasedAsks
        else "allocations"
        if isinstance(message, AllocationResponse) and message.released
        else "update"
        for _, message in script.messages[start:]
    ]
    assert parts == in_order(order, "update", "asks", "allocations")


def test_g48_only_the_removal_of_the_placeholders_counts(script: Script) -> None:
    incomplete_gang(script, "Hard")
    script.advance(15 * MINUTE)
    app = script.scheduler.application("g")
    assert not app.asks  # rejected at once, nobody waits for their confirmations
    assert script.release_ask("g", "p2", TIMEOUT) == []
    assert script.confirm(most=1) == []
    assert state(script) == "Killing"
    assert script.confirm() == ["g Killed (killed)"]


def test_g49_the_timeout_flow(script: Script) -> None:
    incomplete_gang(script, "Hard")
    script.advance(15 * MINUTE)
    assert script.confirm() == ["g Killed (killed)"]
    assert "g" not in script.scheduler.partition().applications
    states = [state for _, state in script.scheduler.application("g").history]
    assert states == ["New", "Accepted", "Killing", "Killed"]
    assert nothing_is_left(script)


def test_g50_a_killed_application_is_out_of_its_queue(script: Script) -> None:
    incomplete_gang(script, "Hard")
    script.advance(15 * MINUTE)
    leaf = script.scheduler.application("g").queue
    assert "g" in leaf.apps
    script.confirm()
    assert "g" not in leaf.apps
    assert not leaf.admitted
    script.app("other")
    script.ask("other", "x", memory=20)
    assert "new other/x-0 on n1" in script.schedule()


def test_x2_a_soft_timeout_goes_through_resuming(script: Script) -> None:
    incomplete_gang(script, "Soft", real=True)
    script.advance(15 * MINUTE)
    assert script.confirm(most=1) == []
    assert script.schedule() == []
    assert script.confirm() == ["g Accepted (resumed)"]
    # nothing is held any more (X9)
    assert script.schedule() == ["g Running (run)", "new g/real-0 on n1"]
    states = [state for _, state in script.scheduler.application("g").history]
    assert states == ["New", "Accepted", "Resuming", "Accepted", "Running"]


def test_x29_a_soft_timeout_keeps_the_real_asks(script: Script) -> None:
    incomplete_gang(script, "Soft", real=True)
    script.ask("g", "driver", memory=1)
    heard = script.advance(15 * MINUTE)
    assert [line for line in heard if "ask" in line] == ["released ask g/p2 TIMEOUT"]
    assert sorted(script.scheduler.application("g").asks) == ["driver", "real"]
    script.confirm()
    assert script.schedule() == [
        "g Running (run)",
        "new g/real-0 on n1",
        "new g/driver-0 on n1",
    ]


def test_a_hard_timeout_rejects_the_real_asks_too(script: Script) -> None:
    incomplete_gang(script, "Hard", real=True)
    heard = script.advance(15 * MINUTE)
    assert [line for line in heard if "ask" in line] == [
        "released ask g/p2 TIMEOUT",
        "released ask g/real TIMEOUT",
    ]
    (answer,) = script.ask("g", "late", memory=1)
    assert answer.startswith("rejected ask g/late: application g is Killing")


# -- X28: a replacement is in flight when the timeout strikes --------------------------------------

UNHELD = """\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: default
            properties: {gang.hold: 'false'}
"""


def in_flight(order: str, style: str, *, other_node: bool) -> Script:
    """An incomplete gang that does not hold its members; one of them waits for its placeholder."""
    script = Script(UNHELD, extra={"si.messageOrder": order})
    script.node("n1", memory=20)
    if other_node:
        script.node("n2", memory=3)
        script.node("n2", NodeInfo.DRAIN_NODE)
    script.app("g", gang={"memory": 60}, style=style)
    script.ask("g", "p0", "p1", group="tg", placeholder=True, memory=3)
    script.ask("g", "p2", group="tg", placeholder=True, memory=54)
    script.schedule()
    if other_node:
        script.node("n2", NodeInfo.DRAIN_TO_SCHEDULABLE)
        script.scheduler.set_predicate("rm", lambda key, node, _: None if node == "n2" else "no")
    script.ask("g", "real", group="tg", memory=3)
    assert script.schedule() == ["released g/p0-0 PLACEHOLDER_REPLACED"]
    return script


@pytest.mark.parametrize("other_node", [False, True])
def test_x28_hard_only_frees_the_placeholder(order: str, other_node: bool) -> None:
    script = in_flight(order, "Hard", other_node=other_node)
    heard = script.advance(15 * MINUTE)
    timeout = [line for line in heard if not line.startswith(("FAILED", "released g/p0-0"))]
    assert timeout == in_order(
        order,
        "g Killing (ResourceReservationTimeout)",
        "released ask g/p2 TIMEOUT",
        "released ask g/real TIMEOUT",
        "released g/p1-0 TIMEOUT",
    )
    if other_node:  # what was placed there in advance is taken back
        assert not script.scheduler.partition().nodes["n2"].allocations
    assert script.confirm(REPLACED) == []
    assert script.confirm(TIMEOUT) == ["g Killed (killed)"]
    assert nothing_is_left(script)


@pytest.mark.parametrize("other_node", [False, True])
def test_x28_soft_completes_the_replacement(order: str, other_node: bool) -> None:
    script = in_flight(order, "Soft", other_node=other_node)
    heard = script.advance(15 * MINUTE)
    timeout = [line for line in heard if not line.startswith(("FAILED", "released g/p0-0"))]
    assert timeout == in_order(
        order,
        "g Resuming (ResourceReservationTimeout)",
        "released ask g/p2 TIMEOUT",
        "released g/p1-0 TIMEOUT",
    )
    node = "n2" if other_node else "n1"
    assert script.confirm(REPLACED) == [f"new g/real-0 on {node}"]
    assert state(script) == "Resuming"
    # the application follows its allocations
    assert script.confirm(TIMEOUT) == ["g Accepted (resumed)", "g Running (run)"]
    assert list(script.scheduler.application("g").allocations) == ["real-0"]


def test_x28_soft_updates_come_before_the_allocation_that_causes_them(order: str) -> None:
    script = in_flight(order, "Soft", other_node=False)
    script.advance(15 * MINUTE)
    assert script.confirm(TIMEOUT) == []
    assert script.confirm(REPLACED) == [
        "g Accepted (resumed)",
        "g Running (run)",
        "new g/real-0 on n1",
    ]


@pytest.mark.parametrize("style", ["Hard", "Soft"])
def test_x28_no_allocation_outlives_its_application(order: str, style: str) -> None:
    script = in_flight(order, style, other_node=False)
    script.advance(15 * MINUTE)
    script.remove_app("g")
    assert script.confirm() == []
    assert nothing_is_left(script)


# -- X31: the resource manager removes the application ---------------------------------------------


def test_x31_a_running_application_completes_at_once(script: Script, order: str) -> None:
    running_gang(script)
    script.ask("g", "real", group="tg", memory=1)
    script.schedule()
    script.confirm()
    updates = ["g Waiting (application removed)", "g Completed (application removed)"]
    released = ["released g/real-0 STOPPED_BY_RM", "released g/p1-0 STOPPED_BY_RM"]
    heard = script.remove_app("g")
    assert heard == (released + updates if order == "design" else updates + released)
    assert script.app("g") == ["accepted g"]
    assert nothing_is_left(script)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("New", "Killed"),
        ("Accepted", "Completed"),
        ("Starting", "Completed"),
        ("Running", "Completed"),
        ("Waiting", "Completed"),
        ("Resuming", "Killed"),
        ("Killing", "Killed"),
    ],
)
def test_x31_from_every_state(order: str, before: str, after: str) -> None:
    config = UNHELD.replace("gang.hold: 'false'", "application.sort.policy: stateaware")
    script = Script(config, extra={"si.messageOrder": order})
    script.node("n1", memory=20)
    if before in ("Starting", "Running", "Waiting"):
        script.app("g")
        script.ask("g", "a", memory=1)
        script.schedule()
        if before == "Running":
            script.advance(5 * MINUTE)
        elif before == "Waiting":
            script.release("g", "a-0")
    elif before == "Accepted":
        incomplete_gang(script, "Hard")
    elif before == "New":
        script.app("g")
    else:
        incomplete_gang(script, "Soft" if before == "Resuming" else "Hard")
        script.advance(15 * MINUTE)
    assert state(script) == before
    script.remove_app("g")
    assert state(script) == after
    assert nothing_is_left(script)
    assert script.app("g") == ["accepted g"]
    assert script.confirm() == []


def test_x31_a_removal_undoes_a_replacement_in_flight(script: Script) -> None:
    running_gang(script)
    script.ask("g", "real", group="tg", memory=1)
    script.schedule()
    script.remove_app("g")
    assert state(script) == "Completed"
    assert script.confirm() == []
    assert nothing_is_left(script)


# -- stored fields and books -----------------------------------------------------------------------


def test_g58_what_is_stored(script: Script) -> None:
    script.app("g", gang={"memory": 2}, timeout_ms=90_000)
    script.ask("g", "p0", "p1", group="tg", placeholder=True, memory=1, timeout_ms=7_000_000)
    ask = script.scheduler.application("g").asks["p0"]
    assert (ask.task_group, ask.placeholder, ask.terms.run_limit) == ("tg", True, 7_000 * 10**9)
    script.schedule()
    script.ask("g", "real", group="tg", memory=1)
    script.schedule()
    app = script.scheduler.application("g")
    assert app.gang.size is not None
    assert sum(app.gang.size) == 2
    assert app.gang.timeout == 90 * 10**9
    assert (sum(app.allocated), sum(app.allocated_placeholder)) == (0, 2)
    placeholder = app.placeholders["p0-0"]
    assert placeholder.placeholder
    assert placeholder.partner is not None
    assert placeholder.partner.uuid == "real-0"
    script.confirm()
    assert (sum(app.allocated), sum(app.allocated_placeholder)) == (1, 1)


def test_g59_placeholders_are_real_usage(script: Script) -> None:
    running_gang(script, count=15)
    partition = script.scheduler.partition()
    app = script.scheduler.application("g")
    assert sum(app.queue.allocated) == sum(partition.root.allocated) == 15
    assert sum(partition.nodes["n1"].allocated) == sum(partition.users["user"].usage) == 15
    script.app("other")
    script.ask("other", "x", memory=6)
    assert script.schedule() == []


def test_v8_an_ended_application_keeps_no_timer_but_expiry(script: Script) -> None:
    incomplete_gang(script, "Hard", timeout_ms=60_000)
    script.advance(60)
    script.confirm()
    killed = script.scheduler.now
    assert state(script) == "Killed"
    assert script.advance(72 * 60 * MINUTE - 1) == []
    assert script.scheduler.next_deadline() == killed + 72 * 3600 * 10**9
    script.advance(1)
    with pytest.raises(KeyError):
        state(script)
