"""Gangs without placeholders: the real asks are the members, and are placed whole or not at all."""

from typing import Any

import pytest
from core_world import later, news, queues, reported, scripted, serve, single, state
from event_lines import RecordReader
from hypothesis import given
from hypothesis import strategies as st
from tree_side import tree

from quadriga.core import Options
from quadriga.core.model.gang import ELASTIC, PLACEHOLDERS, WAIT_LIMIT
from quadriga.si import (
    AllocationResponse,
    ApplicationResponse,
    NodeInfo,
    UpdateContainerSchedulingStateRequest,
)
from quadriga.sim.scripted.script import Script

NONE = {PLACEHOLDERS: "none"}
ADMISSIONS = ("incremental", "whole", "atomic")


def config(admission: str = "atomic") -> str:
    return queues(
        *"default small limited aware fair slots".split(),
        root=f"properties: {{gang.admission: {admission}, gang.gather.after: 1m, gang.gather.patience: 5m}}",
        small="resources: {max: {vcore: 3m}}",
        limited="limits: [{limit: each, users: ['*'], maxresources: {vcore: 3m}}]",
        aware="properties: {application.sort.policy: stateaware, gang.wait.limit: 1m}",
        fair="properties: {application.sort.policy: fair}",
        slots="maxapplications: 1",
    )


@pytest.fixture(params=ADMISSIONS)
def script(request: pytest.FixtureRequest) -> Script:
    """Two nodes of four vcores; a gang starts the same way under each admission."""
    return nodes(config(request.param))


def nodes(text: str, **extra: str) -> Script:
    options = Options(journal_size=None)
    return scripted(text, nodes=("n1", "n2"), options=options, extra=extra, vcore=4)


def announce(
    script: Script, name: str, vcore: int, queue: str = "root.default", **more: Any
) -> None:
    """Add an application whose gang has no placeholders and this size."""
    script.app(name, queue, gang={"vcore": vcore}, **{"tags": NONE, **more})


def gang(script: Script, name: str, members: int, vcore: int = 2, **more: Any) -> list[str]:
    """A gang whose members have all asked. Returns what is placed."""
    announce(script, name, members * vcore, **more)
    return news(serve(script, name, *[f"m{at}" for at in range(members)], vcore=vcore))


def lacks(script: Script, name: str = "g") -> str:
    return str(script.scheduler.application(name).gang.lacks)


def told(script: Script, name: str, key: str) -> str:
    return script.scheduler.explain(name, key).verdict


def test_k204_members_are_placed_in_one_decision_and_the_application_runs(script: Script) -> None:
    announce(script, "g", 6)
    assert news(serve(script, "g", "m0", "m1", vcore=2)) == []
    assert (state(script), lacks(script)) == ("Accepted", "asks")
    script.ask("g", "m2", vcore=2)
    assert news(script.schedule(1)) == ["g/m0-0 on n1", "g/m1-0 on n1", "g/m2-0 on n2"]
    assert state(script) == "Running"
    assert [record.target for record in script.scheduler.story("gang/g")] == ["Placed"]
    # what is asked after the start is placed alone
    assert news(serve(script, "g", "x", "y", vcore=2)) == ["g/x-0 on n2"]
    assert told(script, "g", "y").startswith("The cluster is full")


def test_k204_all_allocations_are_in_one_response_where_the_rm_takes_many() -> None:
    options = Options(batch=100)
    script = scripted(config(), nodes=("n1", "n2"), options=options, vcore=4)
    announce(script, "g", 6)
    script.ask("g", "m0", "m1", "m2", vcore=2)
    before = len(script.messages)
    script.schedule()
    update, *responses = [each.message for each in script.messages[before:]]
    assert isinstance(update, ApplicationResponse) and update.updated[0].state == "Running"
    assert [len(each.new) for each in responses] == [3]


@pytest.mark.parametrize("style", ["Soft", "Hard"])
def test_k204_it_waits_for_ever_and_without_a_timer(script: Script, style: str) -> None:
    """Neither the placeholder timeout nor ``gang.wait.limit`` is for it."""
    tags = {**NONE, WAIT_LIMIT: "60"}
    for name, vcore in (("g", 4), ("h", 40)):
        announce(script, name, vcore, "root.aware", style=style, tags=tags)
        script.ask(name, "m0", vcore=2)
    script.schedule()
    for _ in range(20):
        later(script, 3600)
        assert (state(script, "g"), state(script, "h")) == ("Accepted", "Accepted")
    assert len(news(serve(script, "g", "m1", vcore=2))) == 2


def test_k204_x17_its_execution_timeout_is_the_time_that_it_may_run() -> None:
    script = nodes(config())
    single(script, "s", vcore=4)
    gang(script, "g", 4, timeout_ms=5000)
    later(script, 60)
    script.release("s", "a-0")
    assert len(news(script.schedule())) == 4
    later(script, 6)
    assert state(script) == "Killing"


def test_k204_g6_a_rejected_gang_and_refused_placeholder_asks_have_a_reason(script: Script) -> None:
    announce(script, "g", 4, "root.small")
    assert "cannot fit application g: gang request" in script.log[-1]
    announce(script, "g", 4)
    (line,) = script.ask("g", "p0", placeholder=True, group="tg", vcore=2)
    assert "the tag gang.placeholders=none and takes no placeholder asks: p0" in line
    script.ask("g", "m0", vcore=2)
    (line,) = script.ask("g", "m0", placeholder=True, group="tg", vcore=2)
    assert "takes no placeholder asks: m0" in line
    assert script.scheduler.application("g").asks["m0"].placeholder is False


@pytest.mark.parametrize(
    ("said", "size"), [("some", {"vcore": 8}), ("none", None)], ids=["value", "no placeholderAsk"]
)
def test_k204_a_tag_that_says_nothing_is_ignored(said: str, size: dict[str, int] | None) -> None:
    script = nodes(config())
    script.app("g", gang=size, tags={PLACEHOLDERS: said})
    assert not script.scheduler.application("g").gang.without_placeholders
    assert any(
        "tag gang.placeholders of application g is ignored" in n for _, n in script.scheduler.notes
    )
    assert len(news(serve(script, "g", "p0", placeholder=True, group="tg", vcore=2))) == (not size)


def test_k204_while_it_waits_nothing_is_held_and_others_go_on(script: Script) -> None:
    """Also without one of its asks, for originators are members; the tag elastic changes nothing."""
    single(script, "s", vcore=1)
    announce(script, "g", 8, tags={**NONE, ELASTIC: "true"})
    script.ask("g", "m0", originator=True, vcore=2)
    assert news(serve(script, "g", "m1", "m2", "m3", vcore=2)) == []
    assert lacks(script) == "nodes"
    assert told(script, "g", "m0") == (
        "3 of 4 members of the gang could start now, and they are placed together or not at all."
    )
    script.release_ask("g", "m3")
    script.release("s", "a-0")
    assert news(script.schedule()) == []
    assert lacks(script) == "asks"
    assert told(script, "g", "m0") == (
        "The gang waits for its asks: it has announced 8m CPU, and asked for 6m CPU so far."
    )
    assert single(script, "t", vcore=4) == ["t/a-0 on n1"]
    assert news(serve(script, "g", "m4", vcore=2)) == []
    script.release("t", "a-0")
    assert len(news(script.schedule(1))) == 4


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [(2, 3, "asks"), (4, 3, "nodes"), (4, 0, "nodes")],
    ids=["grown", "shrunk", "removed"],
)
def test_k204_an_ask_that_changes_lets_the_gang_be_tried_again(
    script: Script, before: int, after: int, why: str
) -> None:
    single(script, "s", vcore=1)
    announce(script, "g", 7 if after else 4)
    script.ask("g", "m0", vcore=4)
    assert news(serve(script, "g", "m1", vcore=before)) == []
    assert lacks(script) == why
    if after:
        assert len(news(serve(script, "g", "m1", vcore=after))) == 2
    else:  # the surplus ask
        script.release_ask("g", "m1")
        assert news(script.schedule()) == ["g/m0-0 on n2"]


def test_k204_asks_that_come_again_after_all_were_removed_start_together(script: Script) -> None:
    """The application is in Completing meanwhile, and Running as soon as one of them is back."""
    single(script, "s", vcore=1)
    gang(script, "g", 4)
    script.release_ask("g")
    assert state(script) == "Waiting"
    assert news(serve(script, "g", "m0", "m1", vcore=2)) == []
    assert news(serve(script, "g", "m2", "m3", vcore=2)) == []
    script.release("s", "a-0")
    assert len(news(script.schedule(1))) == 4


@pytest.mark.parametrize(
    ("queue", "why", "verdict"),
    [
        (
            "small",
            "quota",
            "The quota of queue root.small has 2m CPU left, and its gang asks for 3m CPU.",
        ),
        ("limited", "limit", "The limit of user user in root.limited (limit *) has 2m CPU left"),
    ],
)
def test_k204_x16_a_quota_or_a_limit_has_room_for_all_members_or_none_is_placed(
    script: Script, queue: str, why: str, verdict: str
) -> None:
    script.app("s", f"root.{queue}")
    serve(script, "s", "a", vcore=1)
    assert gang(script, "g", 3, 1, queue=f"root.{queue}") == []
    assert lacks(script) == why
    assert told(script, "g", "m0").startswith(verdict)
    script.release("s", "a-0")
    assert len(news(script.schedule(1))) == 3


def test_k204_a_slot_is_taken_when_all_are_placed(script: Script) -> None:
    """Waiting for nodes does not take the one slot of its queue."""
    assert gang(script, "g", 5, queue="root.slots") == []
    script.app("s", "root.slots")
    assert news(serve(script, "s", "a", vcore=1)) == ["s/a-0 on n1"]
    script.node("n3", vcore=4)
    assert news(script.schedule()) == []
    script.release("s", "a-0")
    later(script, 60)
    assert state(script) == "Running"


def gathering(script: Script) -> Any:
    """A gang of four that keeps the first node, while three applications are in its way."""
    single(script, "s0", "s1", "s2", vcore=2)
    assert gang(script, "g", 4) == []
    assert news(later(script, 61)) == []
    own = script.scheduler.application("g").gang
    assert own.state == "Gathering"
    return own


@pytest.mark.parametrize("key", ["m0", ""], ids=["one", "all"])
def test_k204_q3_it_gives_nodes_back_when_asks_of_it_are_removed(script: Script, key: str) -> None:
    own = gathering(script)
    reader = RecordReader(script)
    script.release_ask("g", key)
    script.schedule()
    assert own.state == "Queued"
    said = reader.new_lines("APP NONE")
    assert any("some of its asks have been removed" in each for each in said)
    script.release("s0", "a-0")
    assert len(single(script, "t", vcore=2)) == 1


def test_k204_no_hint_goes_out_while_asks_are_missing() -> None:
    script = nodes(config(), **{"si.schedulingStates": "all"})
    announce(script, "g", 20)
    script.ask("g", "m0", vcore=2)
    script.schedule()
    later(script, 60)
    (told,) = [
        m for _, m in script.messages if isinstance(m, UpdateContainerSchedulingStateRequest)
    ]
    assert told.state == UpdateContainerSchedulingStateRequest.SKIPPED
    assert told.reason == "its gang waits for asks that have not arrived"


PREEMPTING = tree(
    "low, resources: {guaranteed: {vcore: 1m}}",
    "high, properties: {preemption.delay: 1s}, resources: {guaranteed: {vcore: 6m}}",
)


def test_k204_g3_it_preempts_once_for_all_members() -> None:
    script = nodes(PREEMPTING)
    script.app("low", "root.low")
    assert len(news(serve(script, "low", *[f"a{at}" for at in range(8)], vcore=1))) == 8
    announce(script, "g", 6, "root.high")
    serve(script, "g", "m0", "m1", "m2", vcore=2, preempt=(True, True))
    later(script, 1)
    assert len(script.outstanding) == 6
    script.confirm(most=3)
    assert news(script.schedule()) == []
    script.confirm()
    assert len(news(script.schedule(1))) == 3


def test_k204_preemption_breaks_up_as_few_running_gangs_as_it_can() -> None:
    """What is asked after the start goes first, before any member."""
    script = nodes(PREEMPTING)
    announce(script, "g", 6, "root.low")
    serve(script, "g", *[f"m{at}" for at in range(6)], vcore=1)
    serve(script, "g", "x0", "x1", vcore=1)
    script.app("high", "root.high")
    serve(script, "high", "h", vcore=1, preempt=(True, True))
    later(script, 1)
    assert [each.allocationKey for each in script.outstanding] == ["x1"]


@pytest.mark.parametrize("asked", [False, True])
def test_k204_with_a_recovered_member_it_runs_and_asks_are_placed_alone(asked: bool) -> None:
    """Those that came before it are not placed without it."""
    script = Script(config())
    announce(script, "g", 6)
    script.node("n2", vcore=4)
    if asked:
        assert news(serve(script, "g", "m1", vcore=2)) == []
    placeholder = reported("p0", placeholder=True, taskGroupName="tg", vcore=2)
    heard = script.node("n1", existing=[placeholder], vcore=4)
    assert any("is a placeholder of an application that has none" in line for line in heard)
    assert not script.scheduler.application("g").placeholders
    script.node("n1", existing=[reported("m0", vcore=2)], vcore=4)
    assert state(script) == "Running"
    if not asked:
        script.ask("g", "m1", vcore=2)
    assert news(script.schedule()) == ["g/m1-0 on n2"]


def test_k204_nothing_that_is_said_about_it_names_placeholders_or_a_timeout(script: Script) -> None:
    single(script, "s", vcore=1)
    reader = RecordReader(script)
    gang(script, "g", 4)
    later(script, 100)
    script.release_ask("g", "m3")
    script.schedule()
    said = reader.new_lines()
    for key in ("m0", "m1"):
        found = script.scheduler.explain("g", key)
        said += [f"{c.text} {c.remedy} {c.until} {c.verdict}" for c in found.checks]
        said.append(found.verdict)
    assert not [text for text in said if "placeholder" in text.lower() or "Soft" in text]


_STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("gang"),
            st.sampled_from(["default", "small", "limited", "aware", "fair"]),
            st.lists(st.integers(1, 3), min_size=1, max_size=4),
        ),
        st.tuples(st.just("single"), st.integers(1, 4), st.booleans()),
        st.tuples(st.just("node"), st.integers(1, 4), st.integers(1, 4)),
        st.tuples(st.just("drop"), st.integers(1, 4), st.none()),
        st.tuples(st.just("end"), st.integers(0, 9), st.none()),
        st.tuples(st.just("late"), st.integers(0, 9), st.none()),
        st.tuples(st.just("wait"), st.sampled_from([1, 40, 400]), st.none()),
    ),
    max_size=25,
)


@given(st.sampled_from(ADMISSIONS), _STEPS)
def test_k204_never_is_a_part_of_a_gang_placed_before_it_runs(admission: str, steps: Any) -> None:
    """Gangs beside ordinary asks and gangs with placeholders, while nodes come and go."""
    script = nodes(config(admission))
    sizes: dict[str, int] = {}
    ran: set[str] = set()
    for number, (what, one, other) in enumerate(steps):
        name, before = f"a{number}", len(script.messages)
        partition = script.scheduler.partition()
        known = f"n{one}" in partition.nodes
        if what == "gang":
            sizes[name] = sum(other)
            announce(script, name, sum(other), f"root.{one}")
            # The last one may be late.
            for at, vcore in enumerate(other[: len(other) - number % 2]):
                script.ask(name, f"m{at}", vcore=vcore)
        elif what == "single":
            script.app(name, gang={"vcore": one} if other else None)
            script.ask(name, "a", vcore=one, placeholder=other, group="tg")
        elif what == "node":
            action = NodeInfo.UPDATE if known else NodeInfo.CREATE
            script.node(f"n{one}", action, vcore=other)
        elif what == "drop" and known:
            script.node(f"n{one}", NodeInfo.DECOMISSION)
        elif what in ("end", "late") and (apps := sorted(partition.applications)):
            app = apps[one % len(apps)]
            if what == "end":
                script.remove_app(app)
            else:
                script.ask(app, "late", vcore=1)
        elif what == "wait":
            script.advance(one)
        script.schedule()
        script.confirm()
        placed: dict[str, int] = {}
        for output in script.messages[before:]:
            if isinstance(output.message, AllocationResponse):
                for new in output.message.new:
                    size = new.resourcePerAlloc.resources["vcore"].value
                    placed[new.applicationID] = placed.get(new.applicationID, 0) + size
        for app, size in placed.items():
            assert app not in sizes or app in ran or size >= sizes[app]
        ran.update(placed)
