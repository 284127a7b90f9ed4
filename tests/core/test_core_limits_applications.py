"""How many applications of a user or a group may run at once (2.5, V5)."""

from __future__ import annotations

import pytest

from quadriga.si import Allocation, TerminationType
from quadriga.sim.script import Script, resource


def one_queue(*limits: str, maximum: int = 0, properties: str = "") -> str:
    """``root.q`` with these limits, each as a flow mapping."""
    entries = ", ".join(f"{{limit: x, {each}}}" for each in limits)
    return f"""\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: q
            maxapplications: {maximum}
            properties: {{{properties}}}
            limits: [{entries}]
"""


ONE = "users: ['*'], maxapplications: 1"
TWO = "users: ['*'], maxapplications: 2"


def script_of(*limits: str, maximum: int = 0, properties: str = "") -> Script:
    script = Script(one_queue(*limits, maximum=maximum, properties=properties))
    script.node("n1", memory=100)
    return script


def submit(script: Script, app: str, user: str = "ann", *groups: str, asks: int = 1) -> None:
    script.app(app, "root.q", user=user, groups=groups)
    if asks:
        script.ask(app, *(f"{app}{n}" for n in range(asks)), memory=5)


def allocated(script: Script, limit: int | None = None) -> list[str]:
    heard = script.schedule(limit)
    return [line.split("/")[1].split(" ")[0][:-2] for line in heard if line.startswith("new ")]


def running(script: Script, user: str = "ann") -> list[str]:
    account = script.scheduler.partition().users[user]
    return [app.app_id for app in account.running_in(script.scheduler.partition().root)]


# -- admission -------------------------------------------------------------------------------------


def test_2_5_one_application_of_each_user() -> None:
    script = script_of(ONE)
    submit(script, "a", asks=2)
    submit(script, "b")
    submit(script, "c", "bob")
    assert allocated(script) == ["a0", "a1", "c0"]
    assert (running(script), running(script, "bob")) == (["a"], ["c"])


def test_2_5_the_next_starts_when_one_has_nothing_left() -> None:
    script = script_of(ONE)
    for app in ("a", "b", "c"):
        submit(script, app)
    assert allocated(script) == ["a0"]
    script.release("a", "a0-0")  # Waiting
    assert allocated(script) == ["b0"]
    assert running(script) == ["b"]


def test_2_5_an_application_that_asks_for_more_still_counts() -> None:
    """It holds nothing for the moment, but it runs: nobody takes its place."""
    script = script_of(ONE)
    submit(script, "a")
    submit(script, "b")
    script.ask("a", "big", memory=500)
    assert allocated(script) == ["a0"]
    script.release("a", "a0-0")
    assert allocated(script) == []
    assert running(script) == ["a"]
    script.release_ask("a", "big")
    assert allocated(script) == ["b0"]


def test_2_5_the_limit_is_of_applications_that_run_not_of_those_that_wait() -> None:
    script = script_of(TWO)
    submit(script, "a", asks=0)
    submit(script, "b")
    submit(script, "c")
    assert allocated(script) == ["b0", "c0"]
    script.ask("a", "a0", memory=5)
    assert allocated(script) == []


def test_2_5_back_from_waiting_it_is_served_whatever_the_limit() -> None:
    """Only applications that have not started are held back (2.9), as with maxapplications."""
    script = script_of(ONE)
    submit(script, "a")
    submit(script, "b")
    allocated(script)
    script.release("a", "a0-0")
    assert allocated(script) == ["b0"]
    script.ask("a", "again", memory=5)
    assert allocated(script) == ["again"]
    assert running(script) == ["a", "b"]
    submit(script, "c")
    script.release("a", "again-0")
    assert allocated(script) == []
    script.release("b", "b0-0")
    assert allocated(script) == ["c0"]


def test_2_5_a_group_counts_applications_of_all_its_members() -> None:
    script = script_of("groups: [g1], maxapplications: 2")
    submit(script, "a", "ann", "g1")
    submit(script, "b", "bob", "g1")
    submit(script, "c", "cem", "g1")
    submit(script, "d", "dot")
    assert allocated(script) == ["a0", "b0", "d0"]
    script.remove_app("a")
    assert allocated(script) == ["c0"]


def test_2_5_both_the_user_and_the_group_must_admit_it() -> None:
    script = script_of("users: [ann], maxapplications: 1", "groups: [g1], maxapplications: 2")
    for app, user in (("a", "ann"), ("b", "ann"), ("c", "bob"), ("d", "bob")):
        submit(script, app, user, "g1")
    assert allocated(script) == ["a0", "c0"]
    script.release("c", "c0-0")
    assert allocated(script) == ["d0"]  # b is ann's second
    script.release("a", "a0-0")
    assert allocated(script) == ["b0"]


def test_2_9_the_queue_must_admit_it_as_well() -> None:
    script = script_of(TWO, maximum=3)
    for app, user in (("a", "ann"), ("b", "ann"), ("c", "ann"), ("d", "bob"), ("e", "bob")):
        submit(script, app, user)
    assert allocated(script) == ["a0", "b0", "d0"]
    script.release("d", "d0-0")
    assert allocated(script) == ["e0"]  # c is ann's third
    script.release("a", "a0-0")
    assert allocated(script) == ["c0"]


def test_2_5_every_level_must_admit_it() -> None:
    script = Script(
        """\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: '*'
        limits:
          - {limit: x, users: ['*'], maxapplications: 2}
        queues:
          - name: a
            limits:
              - {limit: x, users: ['*'], maxapplications: 1}
          - name: b
"""
    )
    script.node("n1", memory=100)
    for app, queue in (("a1", "a"), ("a2", "a"), ("b1", "b"), ("b2", "b")):
        script.app(app, f"root.{queue}", user="ann")
        script.ask(app, f"{app}-", memory=5)
    assert sorted(allocated(script)) == ["a1-", "b1-"]
    script.release("b1", "b1--0")
    assert allocated(script) == ["b2-"]
    script.release("a1", "a1--0")
    assert allocated(script) == ["a2-"]


def test_2_9_stateaware_and_a_limit() -> None:
    script = script_of(TWO, properties="application.sort.policy: stateaware")
    for app in ("a", "b", "c"):
        submit(script, app, asks=2)
    assert allocated(script) == ["a0", "a1", "b0", "b1"]
    script.release("a")
    assert allocated(script) == ["c0", "c1"]


# -- gangs -----------------------------------------------------------------------------------------


def gang(script: Script, app: str, style: str = "Soft", user: str = "ann") -> None:
    script.app(app, "root.q", user=user, gang={"memory": 10}, style=style, timeout_ms=60_000)
    script.ask(app, f"{app}-0", f"{app}-1", group="tg", placeholder=True, memory=5)


def test_2_5_a_gang_counts_from_its_first_placeholder() -> None:
    script = script_of(ONE)
    gang(script, "g")
    gang(script, "h")
    assert allocated(script, 1) == ["g-0"]
    assert script.scheduler.application("g").state == "Accepted"
    assert running(script) == ["g"]
    assert allocated(script) == ["g-1"]


@pytest.mark.parametrize("style", ["Soft", "Hard"])
def test_2_5_a_gang_that_timed_out_leaves_its_place(style: str) -> None:
    script = script_of(ONE)
    script.app("g", "root.q", user="ann", gang={"memory": 10}, style=style, timeout_ms=60_000)
    script.ask("g", "g-0", group="tg", placeholder=True, memory=5)
    gang(script, "h")
    assert allocated(script) == ["g-0"]
    script.advance(61)
    assert running(script) == ["g"]  # its placeholder is not confirmed gone
    script.confirm(TerminationType.TIMEOUT)
    assert allocated(script) == ["h-0", "h-1"]
    assert running(script) == ["h"]


def test_5_15_a_gang_that_is_removed_while_accepted_blocks_nobody() -> None:
    """YuniKorn keeps its place in the parent for ever (bug 1)."""
    script = script_of(ONE)
    gang(script, "g")
    gang(script, "h")
    assert allocated(script, 1) == ["g-0"]
    script.remove_app("g")
    assert allocated(script) == ["h-0", "h-1"]


def test_g52_leftover_placeholders_do_not_keep_the_place() -> None:
    script = script_of(ONE)
    gang(script, "g")
    submit(script, "b")
    allocated(script)
    script.ask("g", "real", group="tg", memory=5)
    script.schedule()
    script.confirm()
    script.release("g", "real-0")
    app = script.scheduler.application("g")
    assert (app.state, len(app.placeholders), app.counted) == ("Waiting", 1, False)
    assert allocated(script) == ["b0"]


# -- recovery and reload ---------------------------------------------------------------------------


def test_2_11_a_recovered_application_counts_without_being_asked() -> None:
    script = script_of(ONE)
    for app in ("a", "b"):
        submit(script, app, asks=0)
    existing = [
        Allocation(
            applicationID=app,
            allocationKey=f"{app}0",
            nodeID="n2",
            partitionName="default",
            resourcePerAlloc=resource({"memory": 5}),
        )
        for app in ("a", "b")
    ]
    script.node("n2", memory=100, existing=existing)
    assert running(script) == ["a", "b"]
    submit(script, "c")
    assert allocated(script) == []
    script.release("a", "a0-0")
    assert allocated(script) == []
    script.release("b", "b0-0")
    assert allocated(script) == ["c0"]


def test_2_2_a_changed_number_of_applications() -> None:
    script = script_of(ONE)
    for app in ("a", "b", "c"):
        submit(script, app)
    assert allocated(script) == ["a0"]
    script.configure(one_queue(TWO))
    assert allocated(script) == ["b0"]
    script.configure(one_queue(ONE))
    assert running(script) == ["a", "b"]
    script.release("a", "a0-0")
    assert allocated(script) == []
    script.configure(one_queue())
    assert allocated(script) == ["c0"]


# -- reservations and the oracle's hand-written scenario -------------------------------------------


def test_s36_the_last_part() -> None:
    """``a`` gets its quota back (5.15 bug 3) and goes on; ``b`` is the user's second and waits."""
    script = script_of("users: ['*'], maxresources: {memory: 20}, maxapplications: 1")
    script.app("a", "root.q", user="testuser")
    script.app("b", "root.q", user="testuser")
    script.ask("a", "a0", "a1", "a2", memory=8)
    script.ask("b", "b0", memory=8)
    assert allocated(script, 5) == ["a0", "a1"]
    script.release("a")
    assert allocated(script, 3) == ["a2"]
    assert script.scheduler.application("b").state == "Accepted"
    assert running(script, "testuser") == ["a"]
