"""Users and their groups: whom a request does not name, somebody looks up (I24, 2.4, 2.10)."""

from __future__ import annotations

import getpass
import os
from typing import Any

import pytest

from quadriga import si
from quadriga.core import Scheduler
from quadriga.core.driver.os_groups import OsGroups, groups_of_system
from quadriga.core.driver.service import SchedulerService
from quadriga.sim.script import Script

GUARDED = (
    "partitions: [{name: default, queues: [{name: root, queues: [{name: a, submitacl: ' dev'}]}]}]"
)

SECOND = 10**9


def submit(script: Script, app_id: str, user: str, *groups: str) -> list[str]:
    return script.app(app_id, "root.a", user=user, groups=groups)


def test_i24_groups_that_are_not_named_are_looked_up() -> None:
    script = Script(GUARDED)
    asked: list[str] = []

    def groups_of(user: str) -> tuple[str, ...]:
        asked.append(user)
        return ("dev", "ops") if user == "joe" else ()

    script.scheduler.set_group_resolver(groups_of)
    assert submit(script, "one", "joe") == ["accepted one"]
    assert script.scheduler.application("one").groups_of_user == ("dev", "ops")
    (said,) = submit(script, "two", "ann")
    assert "user ann may not submit to root.a" in said
    assert submit(script, "three", "ann", "dev") == ["accepted three"]
    assert asked == ["joe", "ann"]


def test_i24_without_a_resolver_there_are_no_groups() -> None:
    script = Script(GUARDED)
    assert submit(script, "one", "joe")[0].startswith("rejected one")
    script.scheduler.set_group_resolver(lambda user: ("dev",))
    assert submit(script, "two", "joe") == ["accepted two"]
    assert submit(script, "named", "joe", "web")[0].startswith("rejected named")  # is believed
    script.scheduler.set_group_resolver(None)
    assert submit(script, "three", "joe")[0].startswith("rejected three")


# -- the resolver of the service -------------------------------------------------------------------


class System:
    """A user database that counts the questions, and a clock."""

    def __init__(self) -> None:
        self.now = 0
        self.asked: list[str] = []
        self.groups = {"joe": ("dev",)}

    def look_up(self, user: str) -> tuple[str, ...]:
        self.asked.append(user)
        return self.groups[user]

    def resolver(self) -> OsGroups:
        return OsGroups(lambda: self.now, self.look_up)


@pytest.mark.parametrize(("user", "groups", "kept"), [("joe", ("dev",), 300), ("ann", (), 30)])
def test_2_10_an_answer_is_kept_for_a_while(user: str, groups: Any, kept: int) -> None:
    """Five minutes; that there is none for half a minute."""
    system = System()
    resolver = system.resolver()
    assert resolver(user) == groups
    system.groups[user] = ("ops",)
    system.now = kept * SECOND - 1
    assert resolver(user) == groups
    system.now += 1
    assert resolver(user) == ("ops",)
    assert system.asked == [user, user]


def test_answers_that_are_over_are_forgotten() -> None:
    system = System()
    resolver = system.resolver()
    for number in range(3000):
        system.now += SECOND
        resolver(f"user-{number}")
    assert len(resolver._answers) <= 1024


@pytest.mark.parametrize("failure", [KeyError("joe"), OSError("database is away"), ValueError()])
def test_a_failure_to_look_up_is_no_groups(failure: Exception) -> None:
    def look_up(user: str) -> tuple[str, ...]:
        raise failure

    assert OsGroups(lambda: 0, look_up)("joe") == ()


@pytest.mark.skipif(os.name != "posix", reason="the user database of POSIX")
def test_the_system_knows_the_groups_of_its_users() -> None:
    import grp
    import pwd

    me = pwd.getpwuid(os.getuid())
    groups = groups_of_system(me.pw_name)
    assert groups[0] == grp.getgrgid(me.pw_gid).gr_name
    assert list(groups[1:]) == sorted(set(groups[1:]) - {groups[0]})
    with pytest.raises(LookupError):
        groups_of_system("no such user: 7")
    assert OsGroups(lambda: 0)("no such user: 7") == ()


def service_says(service: SchedulerService, user: str) -> str:
    """The queue of an application that a user submits in-process."""
    service.register_resource_manager(
        si.RegisterResourceManagerRequest(rmID="rm", config=GUARDED), si.NullCallback()
    )
    request = si.AddApplicationRequest(
        applicationID="app", queueName="root.a", ugi=si.UserGroupInformation(user=user)
    )
    service.update_application(si.ApplicationRequest(rmID="rm", new=[request]))

    def groups(core: Scheduler) -> tuple[str, ...]:
        return core.application("app").groups_of_user

    found: tuple[str, ...] = service.read(groups)
    return " ".join(found)


def test_the_service_asks_whom_it_is_told_to_ask() -> None:
    with SchedulerService(manual=True, groups_of=lambda user: ("dev",)) as service:
        assert service_says(service, "joe") == "dev"


@pytest.mark.skipif(os.name != "posix", reason="the user database of POSIX")
def test_the_service_asks_the_operating_system_otherwise() -> None:
    user = getpass.getuser()
    with SchedulerService(manual=True, clock=lambda: SECOND) as service:
        assert service_says(service, user) == " ".join(OsGroups(lambda: 0)(user))
