"""A user is listed after the last application has ended, within a bound (2.14)."""

from __future__ import annotations

import pytest

from quadriga.core import Options
from quadriga.core.views import NotFound, Views
from quadriga.sim.script import ONE_QUEUE, Script


def _ended(script: Script, name: str, user: str) -> None:
    script.app(name, "root.default", user=user)
    script.remove_app(name)


def _names(script: Script) -> list[str]:
    return [user["userName"] for user in Views(script.scheduler).users("default")]


def test_2_14_a_user_stays_after_the_last_application() -> None:
    script = Script(ONE_QUEUE)
    _ended(script, "one", "ann")
    script.app("two", "root.default", user="bob")
    assert _names(script) == ["ann", "bob"]
    ann = Views(script.scheduler).user("default", "ann")
    assert ann["groups"] == {} and ann["queues"]["runningApplications"] == []
    with pytest.raises(NotFound):
        Views(script.scheduler).user("default", "carl")


def test_2_14_the_users_without_applications_are_bounded_and_the_oldest_leave() -> None:
    script = Script(ONE_QUEUE, options=Options(keep_users=2))
    for number, user in enumerate(("ann", "bob", "ann", "carl", "dora")):
        _ended(script, f"app-{number}", user)
    assert _names(script) == ["carl", "dora"]
    script.app("runs", "root.default", user="ann")
    assert _names(script) == ["ann", "carl", "dora"]
    script = Script(ONE_QUEUE, options=Options(keep_users=0))
    _ended(script, "one", "ann")
    assert _names(script) == []
