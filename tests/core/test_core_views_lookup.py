"""Who asks for what is not there, or for what makes no sense, gets YuniKorn's answer (2.14)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from core_steps import on_nodes, serve
from core_world import queues

from quadriga.core.runtime.dialect import Dialect
from quadriga.core.views import BadRequest, NotFound, ViewError, Views
from quadriga.sim.script import Script


@pytest.fixture(scope="module")
def script() -> Script:
    """One application in every state that can be asked for, some of them twice by one id."""
    script = on_nodes(queues("a", "b"), n1=10_000)
    for name in "done again killed waiting running accepted killing resuming".split():
        queue = "root.b" if name == "running" else "root.a"
        gang = {"vcore": 2000} if name in ("killed", "killing", "resuming") else None
        style = "Soft" if name == "resuming" else "Hard"
        script.app(name, queue, gang=gang, style=style, timeout_ms=1000 if gang else 0)
    for name in ("done", "again", "waiting", "running"):
        script.ask(name, "k", vcore=100)
    serve(script, "killed", "p", group="g", placeholder=True, vcore=100)
    for name in ("done", "again"):
        script.release(name, "k-0")
    script.advance(32)
    script.confirm()
    script.app("again", "root.b")
    for name in ("killing", "resuming"):
        script.ask(name, "p", group="g", placeholder=True, vcore=100)
    script.schedule()
    script.release("waiting", "k-0")
    script.ask("accepted", "k", vcore=20_000)
    script.advance(2)
    script.app("bad", "root.c")
    return script


@pytest.fixture
def views(script: Script) -> Views:
    return Views(script.scheduler)


def ids(applications: list[Any]) -> list[str]:
    return [app["applicationID"] for app in applications]


@pytest.mark.parametrize(
    ("look", "status", "text"),
    [
        (lambda v: v.queues("nope"), 404, "Partition not found"),
        (lambda v: v.nodes("nope"), 404, "Partition not found"),
        (lambda v: v.users("nope"), 404, "Partition not found"),
        (lambda v: v.queue("default", "root.nope"), 404, "Queue not found"),
        (lambda v: v.queue("default", "a"), 404, "Queue not found"),
        (lambda v: v.queue_applications("default", "root.nope"), 404, "Queue not found"),
        (lambda v: v.application("default", "x", "root.nope"), 404, "Queue not found"),
        (lambda v: v.application("default", "x"), 404, "Application not found"),
        (lambda v: v.application("default", "running", "root.a"), 404, "Application not found"),
        (lambda v: v.node("default", "n9"), 404, "Node not found"),
        (lambda v: v.user("default", "nobody-known"), 404, "User not found"),
        (lambda v: v.group("default", "nobody-known"), 404, "Group not found"),
        (lambda v: v.health(), 404, "Health check is not available"),
        (lambda v: v.queues(""), 400, "Missing parameters"),
        (lambda v: v.queue("default", ""), 400, "Missing parameters"),
        (lambda v: v.application("default", ""), 400, "Missing parameters"),
        (lambda v: v.user("default", ""), 400, "User name is missing"),
        (lambda v: v.group("default", ""), 400, "Group name is missing"),
        (
            lambda v: v.applications("default", "running"),
            400,
            "Only following application states are allowed: active, rejected, completed",
        ),
        (
            lambda v: v.queue_applications("default", "root.a", "completed"),
            400,
            "Only following application states are allowed: active",
        ),
        (
            lambda v: v.applications("default", "active", "completed"),
            400,
            "Only following active statuses are allowed: "
            "new, accepted, starting, running, completing, failing, resuming",
        ),
    ],
)
def test_2_14_what_is_not_there(
    views: Views, look: Callable[[Views], Any], status: int, text: str
) -> None:
    with pytest.raises(ViewError) as caught:
        look(views)
    assert (caught.value.status, caught.value.text) == (status, text)
    assert str(caught.value) == text
    assert isinstance(caught.value, NotFound if status == 404 else BadRequest)


def test_2_14_active_applications_by_their_state(views: Views) -> None:
    assert ids(views.applications("default", "active")) == [
        "waiting",
        "running",
        "accepted",
        "killing",
        "resuming",
        "again",
    ]
    for status, expected in (
        ("new", ["again"]),
        ("ACCEPTED", ["accepted"]),
        ("running", ["running"]),
        ("starting", []),
        ("completing", ["waiting"]),
        ("waiting", ["waiting"]),
        ("Failing", ["killing"]),
        ("killing", ["killing"]),
        ("resuming", ["resuming"]),
    ):
        assert ids(views.applications("default", "Active", status)) == expected, status


def test_2_14_ended_applications(views: Views) -> None:
    """A status is a question about living ones only."""
    assert sorted(ids(views.applications("default", "completed"))) == ["again", "done", "killed"]
    assert ids(views.applications("default", "REJECTED", "whatever")) == ["bad"]


def test_p_2_14_one_application_is_looked_for_everywhere(views: Views) -> None:
    """YuniKorn answers 404 for ended ones; the living one of an id comes first (G55)."""
    assert views.application("default", "done")["applicationState"] == "Completed"
    assert views.application("default", "bad")["applicationState"] == "Rejected"
    assert views.application("default", "again")["applicationState"] == "New"
    assert views.application("default", "again", "root.a")["applicationState"] == "Completed"


def test_2_14_the_applications_of_a_queue(views: Views) -> None:
    assert ids(views.queue_applications("default", "root.b")) == ["running", "again"]
    assert ids(views.queue_applications("default", "root.b", status="new")) == ["again"]
    assert views.queue_applications("default", "root") == []


def test_2_14_the_status_in_the_words_of_the_dialect(script: Script) -> None:
    ours = Views(script.scheduler, Dialect.QUADRIGA)
    assert ids(ours.applications("default", "active", "completing")) == ["waiting"]
    with pytest.raises(BadRequest, match="running, waiting, killing, resuming"):
        ours.applications("default", "active", "odd")


def test_i9_two_resource_managers_with_partitions_alike() -> None:
    """The name alone is the first one's, with [rmID] before it either can be asked for."""
    first = Script(rm_id="rm:1")
    second = Script(rm_id="rm:2", scheduler=first.scheduler)
    second.app("theirs")
    views = Views(first.scheduler)
    assert views.applications("default", "active") == []
    assert ids(views.applications("[rm:2]default", "active")) == ["theirs"]
    assert [p["clusterId"] for p in views.partitions()] == ["rm:1", "rm:2"]
    assert {p["name"] for p in views.partitions()} == {"default"}
    assert views.configuration("rm:2")["checksum"] == views.configuration()["checksum"]
