"""How gangs end (1.3): waiting, timeouts, clean-up, ids that are used again, and the stuck paths of 5.10."""

import pytest
from core_world import gang, in_order, launch, member, queues, running_gang, scripted, serve, state

from quadriga.si import NodeInfo, TerminationType
from quadriga.sim.scripted.script import Script

TIMEOUT = TerminationType.TIMEOUT
REPLACED = TerminationType.PLACEHOLDER_REPLACED
MINUTE = 60


def incomplete_gang(script: Script, style: str, timeout_ms: int = 0, real: bool = False) -> None:
    """Application g with two of three placeholders: the third fits nowhere."""
    script.app("g", gang={"memory": 24}, style=style, timeout_ms=timeout_ms)
    script.ask("g", "p0", "p1", "p2", group="tg", placeholder=True, memory=8)
    if real:
        script.ask("g", "real", group="tg", memory=8)
    assert len(script.schedule()) == 2
    assert script.advance(1) == ["FAILED g/p2"]


def nothing_is_left(script: Script) -> bool:
    partition = script.scheduler.partition()
    books = [partition.root.allocated, partition.root.pending, partition.root.reserved_headroom]
    books.extend(account.usage for account in partition.users.values())
    books.extend(node.allocated for node in partition.nodes.values())
    return not any(any(book) for book in books)


def with_leftovers(script: Script, count: int) -> None:
    """A gang of so many, one of which has taken over its placeholder."""
    running_gang(script, count)
    member(script, "real")
    script.confirm()


def test_g40_a_parked_ask_and_a_placeholder_ask_are_pending(script: Script) -> None:
    with_leftovers(script, 2)
    member(script, "m1")
    assert script.release("g", "real-0") == ["released g/real-0 STOPPED_BY_RM"]
    assert script.confirm() == ["new g/m1-0 on n1"]
    assert serve(script, "g", "more", group="tg", placeholder=True, memory=20) == []
    assert script.release("g", "m1-0") == ["released g/m1-0 STOPPED_BY_RM"]
    assert state(script) == "Running"
    assert "g Waiting (wait)" in script.release_ask("g", "more")


def test_g41_g42_g54_waiting_times_out_to_completed_unless_an_ask_comes(script: Script) -> None:
    launch(script, "g", "a", memory=1)
    script.release("g", "a-0")
    assert script.advance(29) == []
    assert script.ask("g", "b", memory=1) == ["g Running (ask)"]
    assert script.advance(5 * MINUTE) == []
    assert script.schedule() == ["new g/b-0 on n1"]
    script.release("g", "b-0")
    assert script.advance(29) == []
    assert script.advance(1) == ["g Completed (complete)"]
    partition = script.scheduler.partition()
    assert "g" not in partition.applications
    assert all("g" not in leaf.apps for leaf in partition.leaves())


@pytest.mark.parametrize("again", [False, True])
def test_g43_g51_g53_x26_leftovers_go_on_the_way_to_completed(script: Script, again: bool) -> None:
    """Not on entry to Waiting; completion waits for the confirmations, and an ask in the meantime ends it."""
    with_leftovers(script, 4)
    script.release("g", "real-0")
    assert script.advance(30) == [f"released g/p{n}-0 TIMEOUT" for n in (1, 2, 3)]
    assert script.confirm(most=2) == []  # by themselves they change no state
    assert state(script) == "Waiting"
    if again:
        assert script.ask("g", "again", memory=1) == ["g Running (ask)"]
        assert script.confirm() == []
        assert script.schedule() == ["new g/again-0 on n1"]
    else:
        assert script.confirm() == ["g Completed (complete)"]
        assert nothing_is_left(script)


@pytest.mark.parametrize("ended", ["Completed", "Killed", "Rejected", "removed"])
def test_g55_an_id_can_be_used_again(script: Script, ended: str) -> None:
    if ended == "Completed":
        launch(script, "g", "a", memory=1)
        script.release("g", "a-0")
        script.advance(30)
    elif ended == "Killed":
        for _ in range(2):  # a gang of the same id starts from nothing
            incomplete_gang(script, "Hard")
            script.advance(15 * MINUTE)
            script.confirm()
            assert state(script) == "Killed"
            assert nothing_is_left(script)
    elif ended == "Rejected":
        assert script.app("g", gang={"memory": -1})[0].startswith("rejected g")
    else:
        running_gang(script)
        (answer,) = script.app("g")  # a living id is taken
        assert "application already existed" in answer
        script.remove_app("g")
    assert state(script) == ("Completed" if ended == "removed" else ended)
    assert script.app("g") == ["accepted g"]
    assert script.ask("g", "a", memory=1) == ["g Accepted (ask)"]
    number = {"Rejected": 0, "Killed": 2}.get(ended, 1)  # X46
    assert script.schedule() == ["g Running (run)", f"new g/a-{number} on n1"]
    script.advance(73 * 60 * MINUTE)  # the old one expires, the new one goes on
    assert list(script.scheduler.partition().ended) == []
    assert state(script) == "Running"
    heard = script.release("g", f"a-{number}")
    assert heard[-1] in ("g Waiting (wait)", f"released g/a-{number} STOPPED_BY_RM")
    assert state(script) == "Waiting"


def test_g44_g45_the_timeout_starts_with_the_first_placeholder(script: Script) -> None:
    """Later ones do not restart it, and a gang times out whose asks have not all arrived."""
    script.app("g", gang={"memory": 60}, style="Hard", timeout_ms=60_000)
    script.advance(60 * MINUTE)
    serve(script, "g", "p0", group="tg", placeholder=True, memory=30)
    assert script.advance(60 * MINUTE) == ["FAILED g/p0"]  # nothing placed, nothing timed out
    for key in ("p1", "p2"):
        heard = serve(script, "g", key, group="tg", placeholder=True, memory=10)
        assert heard == [f"new g/{key}-0 on n1 placeholder of tg"]
        script.advance(29.5)
    assert state(script) == "Accepted"
    script.advance(1)
    assert state(script) == "Killing"


def test_g40_g45_a_gang_nobody_uses_waits_when_its_placeholders_are_gone(script: Script) -> None:
    """5.15, s6: none was replaced, so nothing is left after the timeout; until then it runs."""
    running_gang(script)
    assert script.advance(10 * MINUTE) == []
    assert state(script) == "Running"
    script.advance(5 * MINUTE)
    assert script.confirm() == ["g Waiting (wait)"]


def test_g46_all_task_groups_time_out_but_not_what_is_releasing(script: Script, order: str) -> None:
    script.app("g", gang={"memory": 100}, style="Hard")
    script.ask("g", "a0", group="a", placeholder=True, memory=10, timeout_ms=5_000)
    script.ask("g", "a1", group="a", placeholder=True, memory=10)
    serve(script, "g", "b0", "b1", group="b", placeholder=True, memory=40)
    assert script.advance(5) == ["FAILED g/b0", "FAILED g/b1", "released g/a0-0 TIMEOUT"]
    heard = script.advance(15 * MINUTE - 5)
    # a0 was sent again only by the watchdog: after 1, 3, and 7 minutes
    assert heard[:3] == ["released g/a0-0 TIMEOUT"] * 3
    assert heard[3:] == in_order(
        order,
        "g Killing (ResourceReservationTimeout)",
        "released ask g/b0 TIMEOUT",
        "released ask g/b1 TIMEOUT",
        "released g/a1-0 TIMEOUT",
    )


def test_g48_g49_g50_the_removal_of_the_placeholders_ends_the_application(script: Script) -> None:
    incomplete_gang(script, "Hard", real=True)
    heard = script.advance(15 * MINUTE)
    rejected = ["released ask g/p2 TIMEOUT", "released ask g/real TIMEOUT"]
    assert [line for line in heard if "ask" in line] == rejected
    (answer,) = script.ask("g", "late", memory=1)
    assert answer.startswith("rejected ask g/late: application g is Killing")
    app = script.scheduler.application("g")
    leaf = app.queue
    assert not app.asks  # rejected at once, nobody waits for their confirmations
    assert script.release_ask("g", "p2", TIMEOUT) == []
    assert script.confirm(most=1) == []
    assert (state(script), "g" in leaf.apps) == ("Killing", True)
    assert script.confirm() == ["g Killed (killed)"]
    assert "failed to find application g" in script.ask("g", "late", memory=1)[0]
    states = [state for _, state in script.scheduler.application("g").history]
    assert states == ["New", "Accepted", "Killing", "Killed"]
    assert "g" not in script.scheduler.partition().applications
    assert not (leaf.apps or leaf.admitted)
    assert nothing_is_left(script)
    assert "new other/x-0 on n1" in launch(script, "other", "x", memory=20)


def test_x2_x29_a_soft_timeout_goes_through_resuming(script: Script) -> None:
    """The real asks stay, and are not held any more (X9)."""
    incomplete_gang(script, "Soft", real=True)
    script.ask("g", "driver", memory=1)
    heard = script.advance(15 * MINUTE)
    assert [line for line in heard if "ask" in line] == ["released ask g/p2 TIMEOUT"]
    assert sorted(script.scheduler.application("g").asks) == ["driver", "real"]
    assert script.confirm(most=1) == script.schedule() == []
    assert script.confirm() == ["g Accepted (resumed)"]
    started = ["g Running (run)", "new g/real-0 on n1", "new g/driver-0 on n1"]
    assert script.schedule() == started
    states = [state for _, state in script.scheduler.application("g").history]
    assert states == ["New", "Accepted", "Resuming", "Accepted", "Running"]


def in_flight(order: str, style: str, *, other_node: bool) -> Script:
    """An incomplete gang that does not hold its members; one of them waits for its placeholder."""
    config = queues("default", default="properties: {gang.hold: 'false'}")
    script = scripted(config, order=order, memory=20)
    if other_node:
        script.node("n2", memory=3)
        script.node("n2", NodeInfo.DRAIN_NODE)
    script.app("g", gang={"memory": 60}, style=style)
    script.ask("g", "p0", "p1", group="tg", placeholder=True, memory=3)
    serve(script, "g", "p2", group="tg", placeholder=True, memory=54)
    if other_node:
        script.node("n2", NodeInfo.DRAIN_TO_SCHEDULABLE)
        script.scheduler.set_predicate("rm", lambda key, node, _: None if node == "n2" else "no")
    assert member(script, "real", size=3) == ["released g/p0-0 PLACEHOLDER_REPLACED"]
    return script


@pytest.mark.parametrize("other_node", [False, True])
def test_x28_hard_only_frees_the_placeholder(order: str, other_node: bool) -> None:
    script = in_flight(order, "Hard", other_node=other_node)
    assert timed_out(script) == in_order(
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


def timed_out(script: Script) -> list[str]:
    """The messages of the timeout, without hints and what is sent again."""
    heard = script.advance(15 * MINUTE)
    return [line for line in heard if not line.startswith(("FAILED", "released g/p0-0"))]


@pytest.mark.parametrize("other_node", [False, True])
def test_x28_soft_completes_the_replacement(order: str, other_node: bool) -> None:
    script = in_flight(order, "Soft", other_node=other_node)
    assert timed_out(script) == in_order(
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
    config = queues("default", default="properties: {application.sort.policy: stateaware}")
    script = scripted(config, order=order, memory=20)
    if before in ("Starting", "Running", "Waiting"):
        launch(script, "g", "a", memory=1)
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


def test_g58_what_is_stored(script: Script) -> None:
    script.app("g", gang={"memory": 2}, timeout_ms=90_000)
    script.ask("g", "p0", "p1", group="tg", placeholder=True, memory=1, timeout_ms=7_000_000)
    app = script.scheduler.application("g")
    ask = app.asks["p0"]
    assert (ask.task_group, ask.placeholder, ask.terms.run_limit) == ("tg", True, 7_000 * 10**9)
    assert (sum(app.gang.size or ()), app.gang.timeout) == (2, 90 * 10**9)
    script.schedule()
    member(script, "real")
    placeholder = app.placeholders["p0-0"]
    assert placeholder.placeholder and placeholder.partner
    assert placeholder.partner.uuid == "real-0"
    assert (sum(app.allocated), sum(app.allocated_placeholder)) == (0, 2)
    script.confirm()
    assert (sum(app.allocated), sum(app.allocated_placeholder)) == (1, 1)


MINUTE = 60
HOUR = 3600


def counts(script: Script) -> tuple[int, int, int]:
    (group,) = script.scheduler.application("g").gang.task_groups.values()
    return group.count, group.replaced, group.timed_out


def test_s2_a_pending_placeholder_taken_back_is_not_waited_for(script: Script) -> None:
    script.app("g", gang={"memory": 2})
    script.ask("g", "p0", "p1", "p2", group="tg", placeholder=True, memory=1)
    serve(script, "g", "huge", group="tg", placeholder=True, memory=100)
    assert state(script) == "Running"
    assert counts(script) == (4, 0, 0)
    script.release_ask("g", "huge")
    assert counts(script) == (3, 0, 0)
    script.ask("g", *[f"m{n}" for n in range(4)], group="tg", memory=1)
    assert script.schedule()[-1] == "new g/m3-0 on n1"  # X36
    assert len(script.confirm()) == 3


@pytest.mark.parametrize(
    ("style", "during", "after"),
    [("Hard", "Killing", "g Killed (killed)"), ("Soft", "Resuming", "g Accepted (resumed)")],
)
@pytest.mark.parametrize(
    ("first", "waits"),
    [("60s", (60, 120, 240, 480, 600, 600)), ("5s", (5, 10, 20, 40, 80, 160, 320, 600, 600))],
)
def test_s4_an_unconfirmed_release_is_sent_again(
    order: str, style: str, during: str, after: str, first: str, waits: tuple[int, ...]
) -> None:
    """After a minute, or what the RM says, then at twice the interval each time, up to ten minutes."""
    extra = {} if first == "60s" else {"release.resend": first}
    script = scripted(order=order, extra=extra, memory=20)
    gang(script, "p0", "p1", announced=40, size=20, style=style, timeout_ms=60_000)
    script.advance(60)
    for wait in waits:
        assert state(script) == during
        assert script.advance(wait - 1) == []
        assert script.advance(1) == ["released g/p0-0 TIMEOUT"]
    overdue = {(key, state) for _, key, state in script.scheduler.overdue}
    assert overdue == {("application/g", during), ("allocation/g/p0-0", "Releasing")}
    script.outstanding.clear()
    assert script.release("g", "p0-0", TerminationType.TIMEOUT) == [after]


@pytest.mark.parametrize("style", ["Hard", "Soft"])
def test_s5_a_lost_placeholder_counts_where_the_style_is_soft(script: Script, style: str) -> None:
    """Hard waits for the timer."""
    gang(script, "p0", "p1", announced=3, style=style)
    script.release("g", "p0-0")
    script.ask("g", "p2", group="tg", placeholder=True, memory=1)
    assert ("g Running (run)" in script.schedule()) == (style == "Soft")
    if style == "Hard":
        assert state(script) == "Accepted"
        script.advance(15 * MINUTE)
        assert state(script) == "Killing"


def test_s5_sizes_that_step_over_the_sum_are_enough(script: Script) -> None:
    assert gang(script, "p0", "p1", announced=5, size=3)[1] == "g Running (run)"


def test_s5_soft_the_loss_itself_may_complete_it(script: Script) -> None:
    """Nothing more will land: what is lost and what is there are all of it."""
    script.node("n1", memory=2)
    gang(script, "p0", "p1", announced=3, style="Soft")
    serve(script, "g", "p2", group="tg", placeholder=True, memory=1)
    assert state(script) == "Running"


def test_v7_s3_a_gang_whose_placeholders_are_pending_waits_on_and_says_so(script: Script) -> None:
    """It is larger than the cluster and asks for nodes (G12)."""
    gang(script, "p", announced=500, size=500)
    assert script.advance(1) == ["FAILED g/p"]
    assert script.advance(100 * HOUR) == []
    assert state(script) == "Accepted"
    script.ask("g", "real", memory=1)
    script.release_ask("g", "p")  # now nothing can come of it any more
    script.advance(15 * MINUTE)
    assert "new g/real-0 on n1" in script.schedule()
