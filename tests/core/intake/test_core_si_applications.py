"""Applications come, are named, change and go (I20 to I24, M5, M6, X1, X15, X33, X34, 2.4, 2.9, 2.17)."""

from typing import Any

import pytest
from core_world import scripted, state
from tree_side import below, tree

from quadriga import si
from quadriga.core.runtime.dialect import EVENT_DETAIL
from quadriga.fsm import APPLICATION
from quadriga.sim.scripted.script import ONE_QUEUE, Script, resource

NAMES = pytest.mark.parametrize("names", ["quadriga", "yunikorn"])
YUNIKORN = {"Waiting": "Completing", "Killing": "Failing", "Killed": "Failed"}
NOBODY = si.UserGroupInformation()


def add(
    app_id: str = "app", queue: str = "root.default", **fields: Any
) -> si.AddApplicationRequest:
    fields.setdefault("ugi", si.UserGroupInformation(user="user"))
    return si.AddApplicationRequest(applicationID=app_id, queueName=queue, **fields)


def submit(script: Script, *new: si.AddApplicationRequest) -> list[str]:
    return script.send(si.ApplicationRequest(rmID="rm", new=new))


def rejected(script: Script, request: si.AddApplicationRequest) -> str:
    """The reason for which the application is not let in."""
    (line,) = submit(script, request)
    start = f"rejected {request.applicationID}: "
    assert line.startswith(start), line
    return line.removeprefix(start)


def updates(script: Script) -> list[tuple[str, str, str, int]]:
    return [
        (u.applicationID, u.state, u.message, u.stateTransitionTimestamp)
        for _, message in script.messages
        if isinstance(message, si.ApplicationResponse)
        for u in message.updated
    ]


# -- submission ------------------------------------------------------------------------------------


def test_i20_i23_x34_an_accepted_application_is_new_until_its_first_ask() -> None:
    script = Script()
    assert script.remove_app("nobody") == []
    assert submit(script, add()) == ["accepted app"]
    assert state(script, "app") == "New"
    assert script.advance(365 * 86400) == []
    assert state(script, "app") == "New"
    assert script.ask("app", "a", vcore=1) == ["app Accepted (ask)"]
    script.remove_app("app")
    assert script.remove_app("app") == []
    assert "unknown application 'app'" in script.scheduler.notes[-1][1]


def test_m5_one_response_says_who_is_accepted_and_rejected_and_add_comes_before_remove() -> None:
    script = Script()
    script.messages.clear()
    submit(script, add("a"), add("a"), add("b"), add("c", ugi=NOBODY))
    ((_, response),) = script.messages
    assert [a.applicationID for a in response.accepted] == ["a", "b"]
    assert [r.applicationID for r in response.rejected] == ["a", "c"]
    removal = si.RemoveApplicationRequest(applicationID="app")
    message = si.ApplicationRequest(rmID="rm", new=[add()], remove=[removal])
    assert script.send(message)[0] == "accepted app"
    assert state(script, "app") == "Killed"  # X31: from New


def test_2_4_the_texts_of_rejections() -> None:
    """The user is looked at before the id, and the id before the queue."""
    script = Script(
        tree(
            "a, resources: {max: {memory: 40, vcore: 4}}",
            "f, properties: {application.sort.policy: fair}",
            "p, " + below("q"),
        )
    )
    submit(script, add("dup", "root.a"))
    for name, queue in (("x", "root.a"), ("dup", "root.a"), ("x", "root.nope")):
        assert rejected(script, add(name, queue, ugi=NOBODY)) == "empty user cannot resolve"
    for queue in ("root.a", "root.nope"):
        assert rejected(script, add("dup", queue)) == (
            "adding application dup to partition [rm]default, but application already existed"
        )
    for queue in ("root.nope", "root.p", "", "root"):
        assert rejected(script, add("x", queue)).startswith(
            "failed to place application x: application rejected: no placement rule matched"
        )
    gang = resource({"memory": 50, "vcore": 2000})
    assert rejected(script, add("g", "root.f", placeholderAsk=gang)) == (
        "queue root.f cannot run application g with task group request: unsupported sort type"
    )
    reason = rejected(script, add("g", "root.a", placeholderAsk=gang))
    assert reason.startswith("queue root.a cannot fit application g: task group request")
    assert "larger than max queue allocation" in reason
    assert "memory=50" in reason and "memory=40" in reason and "vcore=4000" in reason
    assert "nope" in rejected(script, add("g", "root.a", partitionName="nope"))
    assert "applicationID" in rejected(script, add("", "root.a"))


@pytest.mark.parametrize(
    ("user", "groups", "queue", "allowed"),
    [
        ("ann", [], "root.open", True),
        ("bob", [], "root.open", False),
        ("bob", ["dev"], "root.open", True),
        ("bob", ["ops", "dev"], "root.open", True),
        ("boss", [], "root.open", True),  # admin rights here
        ("super", [], "root.open", True),  # admin rights of an ancestor
        ("super", [], "root.p.shut", True),
        ("lead", [], "root.p.shut", True),  # submit rights of an ancestor
        ("lead", [], "root.open", False),
        ("ann", [], "root.p.shut", False),
        ("anybody", [], "root.p.all", True),
        ("bob", [], "root.nope", False),  # root.default has its own rights
    ],
)
def test_2_17_submit_and_admin_rights_count_here_and_above(
    user: str, groups: list[str], queue: str, allowed: bool
) -> None:
    script = Script(
        tree(
            "default, submitacl: dan",
            "open, submitacl: 'ann dev', adminacl: boss",
            "p, submitacl: lead, " + below("shut", "all, submitacl: '*'"),
            root="adminacl: super",
        )
    )
    request = add(queue=queue, ugi=si.UserGroupInformation(user=user, groups=groups))
    if allowed:
        assert submit(script, request) == ["accepted app"]
    else:
        assert "no placement rule matched" in rejected(script, request)


def half_a_gang(script: Script, app: str, style: str, seconds: int) -> None:
    """A gang gets one of its two placeholders until it times out."""
    script.app(app, gang={"vcore": 2000}, style=style, timeout_ms=seconds * 1000)
    script.ask(app, "p", "q", group="g", placeholder=True, vcore=1000)
    script.schedule()
    script.advance(seconds)


@pytest.mark.parametrize(
    ("style", "hard"), [("Hard", True), ("hard", True), ("Soft", False), ("", False), ("x", False)]
)
def test_i21_the_gang_scheduling_style(style: str, hard: bool) -> None:
    script = scripted(vcore=1000)
    half_a_gang(script, "app", style, 1)
    assert state(script, "app") == ("Killing" if hard else "Resuming")
    script.confirm()
    assert state(script, "app") == ("Killed" if hard else "Accepted")


def test_i23_m6_removing_an_application_removes_all_that_is_its(order: str) -> None:
    script = scripted(ONE_QUEUE, "app", order=order, vcore=2000)
    script.ask("app", "a", "b", "c", vcore=1000)
    script.schedule()
    script.messages.clear()
    script.remove_app("app")
    (response,) = [m for _, m in script.messages if hasattr(m, "released")]
    removed = "Application app Removed"
    assert [(r.UUID, r.message) for r in response.released] == [("a-0", removed), ("b-0", removed)]
    assert [u[1] for u in updates(script)] == ["Waiting", "Completed"]
    assert (script.messages[0].message is response) == (order == "design")
    partition = script.scheduler.partition()
    assert partition.applications == {}
    assert partition.registry.mapping(partition.root.pending) == {}
    assert partition.registry.mapping(partition.nodes["n1"].allocated) == {}
    # G55: the id is free at once
    assert script.app("app") == ["accepted app"]


# -- X1, X34: names --------------------------------------------------------------------------------


@NAMES
def test_x1_x34_names_of_states_and_messages(names: str, order: str) -> None:
    """An application that runs, waits, comes back and completes; a gang is killed, one resumes."""
    script = scripted(order=order, extra={"si.stateNames": names}, vcore=1000)
    script.app("app")
    script.ask("app", "a", vcore=1000)
    script.schedule()
    script.advance(1)
    script.release("app", "a-0")
    script.ask("app", "b", vcore=1000)
    script.schedule()
    script.release("app", "b-0")
    script.advance(30)
    for app, style in (("hard", "Hard"), ("soft", "Soft")):
        half_a_gang(script, app, style, 5)
        script.confirm()
    expected = [
        ("app", "Accepted", "ask", "runApplication", 0),
        ("app", "Running", "run", "runApplication", 0),
        ("app", "Waiting", "wait", "completeApplication", 1),
        ("app", "Running", "ask", "runApplication", 1),
        ("app", "Waiting", "wait", "completeApplication", 1),
        ("app", "Completed", "complete", "completeApplication", 31),
        ("hard", "Accepted", "ask", "runApplication", 31),
        ("hard", "Killing", "ResourceReservationTimeout", "ResourceReservationTimeout", 36),
        ("hard", "Killed", "killed", "failApplication", 36),
        ("soft", "Accepted", "ask", "runApplication", 36),
        ("soft", "Resuming", "ResourceReservationTimeout", "ResourceReservationTimeout", 41),
        ("soft", "Accepted", "resumed", "runApplication", 41),
    ]
    yunikorn = names == "yunikorn"
    assert updates(script) == [
        (app, YUNIKORN.get(to, to) if yunikorn else to, theirs if yunikorn else ours, s * 10**9)
        for app, to, ours, theirs, s in expected
    ]


@NAMES
def test_x34_expiry_is_the_last_update_and_the_end_of_all_memory(names: str) -> None:
    script = Script(extra={"si.stateNames": names})
    script.app("app")
    script.ask("app", "a", vcore=1)
    script.remove_app("app")
    assert script.advance(72 * 3600 - 1) == []
    message = "expireApplication" if names == "yunikorn" else "expire"
    assert script.advance(1) == [f"app Expired ({message})"]
    with pytest.raises(KeyError):
        script.scheduler.application("app")


def test_i41_x1_every_state_has_its_event_number() -> None:
    assert set(EVENT_DETAIL) == set(APPLICATION.states)
    by_number = (
        "Rejected New Accepted Starting Running Waiting Completed Killing Killed Resuming Expired"
    )
    assert {state: int(number) for state, number in EVENT_DETAIL.items()} == {
        state: number for number, state in enumerate(by_number.split(), 202)
    }
    assert si.EventRecord.APP_COMPLETING == 207


# -- X15: stateaware -------------------------------------------------------------------------------

AWARE = tree(
    "aware, properties: {application.sort.policy: stateaware}",
    "fifo",
    "fair, properties: {application.sort.policy: fair}",
)


def started(queue: str, tag: str | None = None) -> Script:
    script = scripted(AWARE, vcore=4000)
    tags = {} if tag is None else {"application.stateaware.disable": tag}
    script.app("app", f"root.{queue}", tags=tags)
    script.ask("app", "a", vcore=1000)
    script.schedule()
    return script


def test_x15_starting_becomes_running_with_the_second_allocation_or_after_five_minutes() -> None:
    script = started("aware")
    script.ask("app", "b", vcore=1000)
    assert script.schedule() == ["app Running (run)", "new app/b-0 on n1"]
    assert script.advance(300) == []
    script = started("aware")
    script.advance(299.999)
    assert state(script, "app") == "Starting"
    assert script.advance(0.001) == ["app Running (run)"]
    script = started("aware")
    script.release("app", "a-0")
    assert state(script, "app") == "Waiting"
    script.advance(29)
    script.ask("app", "b", vcore=1000)
    assert state(script, "app") == "Running"
    script.advance(300)  # the timer of a Starting that is over is stale
    assert state(script, "app") == "Running"


def test_2_9_a_stateaware_queue_starts_one_application_after_the_other() -> None:
    script = scripted(AWARE, vcore=9000)
    for app in ("one", "two", "three"):
        script.app(app, "root.aware")
        script.ask(app, "a", vcore=1000)
    assert script.schedule() == ["one Starting (run)", "new one/a-0 on n1"]
    # a Starting one blocks the others also when it has nothing to ask for
    script.advance(299)
    assert script.schedule() == []
    script.advance(1)
    assert script.schedule() == ["two Starting (run)", "new two/a-0 on n1"]
    script.remove_app("two")
    assert script.schedule() == ["three Starting (run)", "new three/a-0 on n1"]
    # who runs is served all the time
    script.ask("one", "b", vcore=1000)
    assert script.schedule() == ["new one/b-0 on n1"]


# -- 2.9: maxapplications --------------------------------------------------------------------------

MOST = "maxapplications: 1"


@pytest.mark.parametrize(
    ("config", "second"),
    [
        (tree("p, " + below(f"a, {MOST}", "b")), "a"),
        (tree(f"p, {MOST}, " + below(f"a, {MOST}", f"b, {MOST}")), "b"),
        (
            tree(
                f"p, {MOST}, " + below(f"a, {MOST}", f"b, {MOST}"), root=f"submitacl: '*', {MOST}"
            ),
            "b",
        ),
    ],
    ids=["leaf", "parent", "root"],
)
def test_2_9_maxapplications_count_on_every_level(config: str, second: str) -> None:
    script = scripted(config, vcore=9000)
    for app, leaf, priority in (("one", "a", 1), ("two", second, 0)):
        script.app(app, f"root.p.{leaf}")
        script.ask(app, "k", priority=priority, vcore=1000)
    assert script.schedule() == ["one Running (run)", "new one/k-0 on n1"]
    assert state(script, "two") == "Accepted"
    # the first one is served on
    script.ask("one", "l", vcore=1000)
    assert script.schedule() == ["new one/l-0 on n1"]
    # Waiting gives the place free
    script.release("one")
    assert state(script, "one") == "Waiting"
    assert script.schedule() == ["two Running (run)", "new two/k-0 on n1"]
    # a return from Waiting may exceed it (V5)
    assert script.ask("one", "m", vcore=1000) == ["one Running (ask)"]
    assert script.schedule() == ["new one/m-0 on n1"]


def test_x23_waiting_is_neither_allocated_nor_pending() -> None:
    script = scripted(ONE_QUEUE, "app", vcore=1000)
    script.ask("app", "a", "b", vcore=1000)
    script.schedule()
    script.release("app", "a-0")
    assert state(script, "app") == "Running"  # one ask is pending
    script.schedule()
    script.release("app", "b-0")
    assert state(script, "app") == "Waiting"
