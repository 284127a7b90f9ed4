"""Applications are let in, named, changed and taken away (I20 to I24, M5, M6, X1, X15, X33, X34,
2.4, 2.9, 2.17)."""

from __future__ import annotations

from typing import Any

import pytest

from quadriga.core.runtime.dialect import EVENT_DETAIL
from quadriga.fsm import APPLICATION
from quadriga.si import (
    AddApplicationRequest,
    ApplicationRequest,
    ApplicationResponse,
    EventRecord,
    RemoveApplicationRequest,
    UserGroupInformation,
)
from quadriga.sim.script import Script, resource

ORDERS = pytest.mark.parametrize("order", ["design", "k8shim"])
NAMES = pytest.mark.parametrize("names", ["quadriga", "yunikorn"])
YUNIKORN = {"Waiting": "Completing", "Killing": "Failing", "Killed": "Failed"}


def tree(*queues: str, root: str = "submitacl: '*'") -> str:
    """A partition with these queues below root, each in YAML flow."""
    children = ", ".join(queues)
    return (
        f"partitions: [{{name: default, queues: [{{name: root, {root}, queues: [{children}]}}]}}]"
    )


def add(app_id: str = "app", queue: str = "root.default", **fields: Any) -> AddApplicationRequest:
    fields.setdefault("ugi", UserGroupInformation(user="user"))
    return AddApplicationRequest(applicationID=app_id, queueName=queue, **fields)


def submit(script: Script, *new: AddApplicationRequest) -> list[str]:
    return script.send(ApplicationRequest(rmID="rm", new=new))


def rejected(script: Script, request: AddApplicationRequest) -> str:
    """The reason for which the application is not let in."""
    (line,) = submit(script, request)
    start = f"rejected {request.applicationID}: "
    assert line.startswith(start), line
    return line.removeprefix(start)


def state(script: Script, app: str = "app") -> str:
    return script.scheduler.application(app).state


def updates(script: Script) -> list[tuple[str, str, str, int]]:
    return [
        (u.applicationID, u.state, u.message, u.stateTransitionTimestamp)
        for _, message in script.messages
        if isinstance(message, ApplicationResponse)
        for u in message.updated
    ]


# -- submission ------------------------------------------------------------------------------------


def test_i20_x34_an_accepted_application_is_new_until_its_first_ask() -> None:
    script = Script()
    assert submit(script, add()) == ["accepted app"]
    assert state(script) == "New"
    assert script.advance(365 * 86400) == []
    assert state(script) == "New"
    assert script.ask("app", "a", vcore=1) == ["app Accepted (ask)"]


def test_m5_one_response_says_who_is_accepted_and_who_is_rejected() -> None:
    script = Script()
    script.messages.clear()
    submit(script, add("a"), add("a"), add("b"), add("c", ugi=UserGroupInformation()))
    ((_, response),) = script.messages
    assert [a.applicationID for a in response.accepted] == ["a", "b"]
    assert [r.applicationID for r in response.rejected] == ["a", "c"]


def test_m5_add_comes_before_remove() -> None:
    script = Script()
    message = ApplicationRequest(
        rmID="rm", new=[add()], remove=[RemoveApplicationRequest(applicationID="app")]
    )
    assert script.send(message)[0] == "accepted app"
    assert state(script) == "Killed"  # X31: from New


def test_2_4_the_texts_of_rejections() -> None:
    script = Script(
        tree(
            "{name: a, resources: {max: {memory: 40, vcore: 4}}}",
            "{name: f, properties: {application.sort.policy: fair}}",
            "{name: p, queues: [{name: q}]}",
        )
    )
    assert rejected(script, add(queue="root.a", ugi=UserGroupInformation())) == (
        "empty user cannot resolve"
    )
    submit(script, add("dup", "root.a"))
    assert rejected(script, add("dup", "root.a")) == (
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


def test_2_4_the_user_is_looked_at_before_the_id_and_the_queue() -> None:
    script = Script()
    submit(script, add())
    for queue in ("root.default", "root.nope"):
        request = add(queue=queue, ugi=UserGroupInformation())
        assert rejected(script, request) == "empty user cannot resolve"


def test_2_4_the_id_is_looked_at_before_the_queue() -> None:
    script = Script(tree("{name: a}"))
    submit(script, add("app", "root.a"))
    assert "already existed" in rejected(script, add("app", "root.nope"))


def test_2_4_a_rejected_application_is_remembered_and_its_id_is_free() -> None:
    script = Script(tree("{name: a}"))
    reason = rejected(script, add("app", "root.nope"))
    app = script.scheduler.application("app")
    assert (app.state, app.rejected_message) == ("Rejected", reason)
    assert submit(script, add("app", "root.a")) == ["accepted app"]
    assert state(script) == "New"
    # X34: nobody is told of Rejected as a state
    assert updates(script) == []
    script.advance(72 * 3600)
    assert list(script.scheduler.partition().ended) == []


def test_2_3_names_of_queues() -> None:
    script = Script(tree("{name: a}", "{name: x_dot_y}", "{name: p, queues: [{name: q}]}"))
    places = {"a": "root.a", "ROOT.A": "root.a", "x.y": "root.x_dot_y", "root.p.Q": "root.p.q"}
    for number, (name, path) in enumerate(places.items()):
        assert submit(script, add(f"app-{number}", name)) == [f"accepted app-{number}"]
        assert script.scheduler.application(f"app-{number}").queue.path == path


def test_2_3_root_default_takes_whoever_finds_no_queue() -> None:
    script = Script(tree("{name: default}", "{name: p, queues: [{name: q}]}"))
    for number, name in enumerate(["", "root.nope", "root.p", "root", "nope.nope", "root.."]):
        submit(script, add(f"app-{number}", name))
        assert script.scheduler.application(f"app-{number}").queue.path == "root.default"


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
    ],
)
def test_2_17_submit_and_admin_rights_count_here_and_above(
    user: str, groups: list[str], queue: str, allowed: bool
) -> None:
    script = Script(
        tree(
            "{name: open, submitacl: 'ann dev', adminacl: boss}",
            "{name: p, submitacl: lead, queues: [{name: shut}, {name: all, submitacl: '*'}]}",
            root="adminacl: super",
        )
    )
    request = add(queue=queue, ugi=UserGroupInformation(user=user, groups=groups))
    if allowed:
        assert submit(script, request) == ["accepted app"]
    else:
        assert "no placement rule matched" in rejected(script, request)


def test_2_17_root_default_has_its_own_rights() -> None:
    script = Script(tree("{name: default, submitacl: ann}", root="adminacl: super"))
    assert "no placement rule matched" in rejected(script, add(queue="root.nope"))


def test_i24_groups_may_be_empty() -> None:
    script = Script()
    request = add(ugi=UserGroupInformation(user="ann", groups=[]))
    assert submit(script, request) == ["accepted app"]
    assert script.scheduler.application("app").groups_of_user == ()


def test_x33_a_draining_queue_takes_no_applications() -> None:
    script = Script(tree("{name: a}", "{name: b}"))
    submit(script, add("one", "root.b"))
    script.configure(tree("{name: a}"))
    assert "root.b is Draining" in rejected(script, add("two", "root.b"))


def test_a_forced_application_needs_no_user() -> None:
    script = Script()
    request = add(ugi=UserGroupInformation(), tags={"application.create.force": "true"})
    assert submit(script, request) == ["accepted app"]
    assert script.scheduler.application("app").user == "nobody"


def test_i22_tags_of_the_application_are_not_those_of_its_asks() -> None:
    script = Script()
    script.node("n1", vcore=1000)
    script.node("n2", vcore=1000)
    tags = {"yunikorn.apache.org/requiredNode": "n2", "yunikorn.apache.org/allowPreemption": "no"}
    submit(script, add(tags=tags))
    script.ask("app", "a", vcore=1000)
    assert script.schedule()[-1] == "new app/a-0 on n1"
    assert dict(script.messages[-1].message.new[0].allocationTags) == {}


@pytest.mark.parametrize("timeout", [0, -1, -(2**63)])
def test_i22_an_application_without_a_timeout_runs_for_ever(timeout: int) -> None:
    script = Script()
    script.node("n1", vcore=1000)
    submit(script, add(executionTimeoutMilliSeconds=timeout))
    script.ask("app", "a", vcore=1000)
    script.schedule()
    script.advance(10 * 365 * 86400)
    assert state(script) == "Running"


@pytest.mark.parametrize(
    ("style", "hard"), [("Hard", True), ("hard", True), ("Soft", False), ("", False), ("x", False)]
)
def test_i21_the_gang_scheduling_style(style: str, hard: bool) -> None:
    script = Script()
    script.node("n1", vcore=1000)
    script.app("app", gang={"vcore": 2000}, style=style, timeout_ms=1000)
    script.ask("app", "p", "q", group="g", placeholder=True, vcore=1000)
    script.schedule()
    script.advance(1)
    assert state(script) == ("Killing" if hard else "Resuming")
    script.confirm()
    assert state(script) == ("Killed" if hard else "Accepted")


# -- removal ---------------------------------------------------------------------------------------


@ORDERS
def test_i23_m6_removing_an_application_removes_all_that_is_its(order: str) -> None:
    script = Script(extra={"si.messageOrder": order})
    script.node("n1", vcore=2000)
    script.app("app")
    script.ask("app", "a", "b", "c", vcore=1000)
    script.schedule()
    script.messages.clear()
    script.remove_app("app")
    released = [m for _, m in script.messages if hasattr(m, "released")]
    (response,) = released
    assert [(r.UUID, r.message) for r in response.released] == [
        ("a-0", "Application app Removed"),
        ("b-0", "Application app Removed"),
    ]
    assert [u[1] for u in updates(script)] == ["Waiting", "Completed"]
    assert (script.messages[0].message is response) == (order == "design")
    partition = script.scheduler.partition()
    assert partition.applications == {}
    assert partition.registry.mapping(partition.root.pending) == {}
    assert partition.registry.mapping(partition.nodes["n1"].allocated) == {}
    # G55: the id is free at once
    assert script.app("app") == ["accepted app"]


def test_i23_removing_an_unknown_application_is_ignored() -> None:
    script = Script()
    assert script.remove_app("nobody") == []
    script.app("app")
    script.remove_app("app")
    assert script.remove_app("app") == []
    assert "unknown application 'app'" in script.scheduler.notes[-1][1]


# -- X1, X34: names --------------------------------------------------------------------------------


def run_through(script: Script) -> None:
    """An application that runs, waits, comes back and completes; a gang that is killed."""
    script.node("n1", vcore=1000)
    script.app("app")
    script.ask("app", "a", vcore=1000)
    script.schedule()
    script.advance(1)
    script.release("app", "a-0")
    script.ask("app", "b", vcore=1000)
    script.schedule()
    script.release("app", "b-0")
    script.advance(30)
    script.app("hard", gang={"vcore": 2000}, style="Hard", timeout_ms=5000)
    script.ask("hard", "p", "q", group="g", placeholder=True, vcore=1000)
    script.schedule()
    script.advance(5)
    script.confirm()
    script.app("soft", gang={"vcore": 2000}, style="Soft", timeout_ms=5000)
    script.ask("soft", "p", "q", group="g", placeholder=True, vcore=1000)
    script.schedule()
    script.advance(5)
    script.confirm()


@NAMES
@ORDERS
def test_x1_x34_names_of_states_and_messages(names: str, order: str) -> None:
    script = Script(extra={"si.stateNames": names, "si.messageOrder": order})
    run_through(script)
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


def test_x1_the_dialect_is_each_managers_choice() -> None:
    theirs = Script(rm_id="a", extra={"si.stateNames": "yunikorn"})
    ours = Script(rm_id="b", scheduler=theirs.scheduler)
    for script in (theirs, ours):
        script.app("app")
        script.ask("app", "a", vcore=1)
        script.release_ask("app", "a")
    assert theirs.log[-1] == "app Completing (completeApplication)"
    assert ours.log[-1] == "app Waiting (wait)"


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
    assert {state: int(number) for state, number in EVENT_DETAIL.items()} == {
        "New": 203,
        "Accepted": 204,
        "Starting": 205,
        "Running": 206,
        "Waiting": 207,
        "Completed": 208,
        "Killing": 209,
        "Killed": 210,
        "Rejected": 202,
        "Resuming": 211,
        "Expired": 212,
    }
    assert EventRecord.APP_COMPLETING == 207


# -- X15: stateaware -------------------------------------------------------------------------------

AWARE = tree(
    "{name: aware, properties: {application.sort.policy: stateaware}}",
    "{name: fifo}",
    "{name: fair, properties: {application.sort.policy: fair}}",
)


def started(queue: str, tags: dict[str, str] | None = None) -> Script:
    script = Script(AWARE)
    script.node("n1", vcore=4000)
    script.app("app", f"root.{queue}", tags=tags)
    script.ask("app", "a", vcore=1000)
    script.schedule()
    return script


@pytest.mark.parametrize("queue", ["fifo", "fair"])
def test_x15_only_stateaware_queues_know_starting(queue: str) -> None:
    assert state(started(queue)) == "Running"


def test_x15_starting_becomes_running_with_the_second_allocation() -> None:
    script = started("aware")
    assert state(script) == "Starting"
    script.ask("app", "b", vcore=1000)
    assert script.schedule() == ["app Running (run)", "new app/b-0 on n1"]
    assert script.advance(300) == []


def test_x15_starting_becomes_running_after_five_minutes() -> None:
    script = started("aware")
    script.advance(299.999)
    assert state(script) == "Starting"
    assert script.advance(0.001) == ["app Running (run)"]


@pytest.mark.parametrize("value", ["true", "false", "x"])
def test_x15_the_tag_leaves_starting_out(value: str) -> None:
    assert state(started("aware", {"application.stateaware.disable": value})) == "Running"


def test_x15_an_empty_tag_is_no_tag() -> None:
    assert state(started("aware", {"application.stateaware.disable": ""})) == "Starting"


def test_2_9_a_stateaware_queue_starts_one_application_after_the_other() -> None:
    script = Script(AWARE)
    script.node("n1", vcore=9000)
    for app in ("one", "two", "three"):
        script.app(app, "root.aware")
        script.ask(app, "a", vcore=1000)
    assert script.schedule() == ["one Starting (run)", "new one/a-0 on n1"]
    # a Starting one blocks the others also when it has nothing to ask for
    assert script.schedule() == []
    script.advance(300)
    assert script.schedule() == ["two Starting (run)", "new two/a-0 on n1"]
    script.remove_app("two")
    assert script.schedule() == ["three Starting (run)", "new three/a-0 on n1"]
    # who runs is served all the time
    script.ask("one", "b", vcore=1000)
    assert script.schedule() == ["new one/b-0 on n1"]


def test_x15_the_timer_of_a_starting_that_is_over_is_stale() -> None:
    script = started("aware")
    script.release("app", "a-0")
    assert state(script) == "Waiting"
    script.advance(29)
    script.ask("app", "b", vcore=1000)
    assert state(script) == "Running"
    script.advance(300)
    assert state(script) == "Running"


# -- 2.9: maxapplications --------------------------------------------------------------------------


@pytest.mark.parametrize("level", ["leaf", "parent", "root"])
def test_2_9_maxapplications_count_on_every_level(level: str) -> None:
    most = "maxapplications: 1"
    leaves = [f"{{name: {n}{', ' + most if level != 'never' else ''}}}" for n in "ab"]
    if level == "leaf":
        leaves = ["{name: a, maxapplications: 1}", "{name: b}"]
    parent = f"{{name: p, {most if level != 'leaf' else 'parent: true'}, "
    parent += f"queues: [{', '.join(leaves)}]}}"
    root = "submitacl: '*'" + (f", {most}" if level == "root" else "")
    script = Script(tree(parent, root=root))
    script.node("n1", vcore=9000)
    other = "a" if level == "leaf" else "b"
    for app, leaf in (("one", "a"), ("two", other)):
        script.app(app, f"root.p.{leaf}")
        script.ask(app, "k", vcore=1000)
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


def test_2_9_a_gang_that_gathers_counts_and_frees_its_place_when_it_goes() -> None:
    script = Script(tree("{name: p, maxapplications: 1, queues: [{name: a, maxapplications: 1}]}"))
    script.node("n1", vcore=1000)
    script.app("gang", "root.p.a", gang={"vcore": 2000})
    script.app("app", "root.p.a")
    script.ask("gang", "p", "q", group="g", placeholder=True, vcore=1000)
    script.ask("app", "k", vcore=500)
    assert script.schedule() == ["new gang/p-0 on n1 placeholder of g"]
    script.node("n2", vcore=500)
    assert script.schedule() == []
    script.remove_app("gang")
    assert script.schedule()[0] == "app Running (run)"


def test_2_9_a_new_application_takes_no_place() -> None:
    script = Script(tree("{name: a, maxapplications: 1}"))
    script.node("n1", vcore=1000)
    script.app("one", "root.a")
    script.app("two", "root.a")
    script.ask("two", "k", vcore=1000)
    assert script.schedule() == ["two Running (run)", "new two/k-0 on n1"]


def test_x23_waiting_is_neither_allocated_nor_pending() -> None:
    script = Script()
    script.node("n1", vcore=1000)
    script.app("app")
    script.ask("app", "a", "b", vcore=1000)
    script.schedule()
    script.release("app", "a-0")
    assert state(script) == "Running"  # one ask is pending
    script.schedule()
    script.release("app", "b-0")
    assert state(script) == "Waiting"
