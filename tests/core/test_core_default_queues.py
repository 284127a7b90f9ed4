"""Queues for resource managers that register without any of their own, and how they change (I39)."""

from __future__ import annotations

import pytest

from quadriga import si
from quadriga.core import RequestError, SchedulerService
from quadriga.core.config import DEFAULT_CONFIGURATION

NOW = 1_790_000_000 * 10**9


def queues(*names: str) -> str:
    listed = "".join(f"          - name: {name}\n" for name in names)
    return (
        "partitions:\n  - name: default\n    queues:\n      - name: root\n"
        f"        submitacl: '*'\n        queues:\n{listed}"
    )


@pytest.fixture
def service() -> SchedulerService:
    return SchedulerService(manual=True, clock=lambda: NOW)


def register(service: SchedulerService, *rm_ids: str, config: str = "") -> None:
    for rm_id in rm_ids:
        request = si.RegisterResourceManagerRequest(rmID=rm_id, config=config)
        service.register_resource_manager(request, si.NullCallback())


def add(service: SchedulerService, rm_id: str, queue: str) -> None:
    new = si.AddApplicationRequest(
        applicationID="app", queueName=queue, ugi=si.UserGroupInformation(user="u", groups=["g"])
    )
    service.update_application(si.ApplicationRequest(rmID=rm_id, new=[new]))


def active(service: SchedulerService, rm_id: str) -> list[str]:
    root = service.scheduler.partition("default", rm_id).root
    return sorted(q.name for q in root.children.values() if q.state == "Active")


def test_what_a_resource_manager_brings_wins_for_itself(service: SchedulerService) -> None:
    service.configure(queues("a"))
    register(service, "own", config=queues("b"))
    register(service, "blank", config="  \n")
    assert active(service, "blank") == ["a"]
    service.configure(queues("c"))
    assert active(service, "own") == ["b"]


def test_without_an_operator_it_is_the_default_as_ever(service: SchedulerService) -> None:
    register(service, "rm")
    add(service, "rm", "")
    [rule] = service.scheduler.partition("default", "rm").config.placement_rules
    assert rule.name == "tag"
    service.configure(" ")
    assert service._queues.text == DEFAULT_CONFIGURATION


def test_all_who_follow_get_the_new_queues_at_once(service: SchedulerService) -> None:
    service.configure(queues("a"))
    register(service, "one", "two", "leaves")
    service.shutdown("leaves")
    service.configure(queues("a", "b"))
    assert active(service, "one") == active(service, "two") == ["a", "b"]
    assert len(service._queues.followers()) == 2


def test_a_bad_text_is_refused_and_changes_nothing(service: SchedulerService) -> None:
    service.configure(queues("a"))
    register(service, "rm")
    with pytest.raises(RequestError) as caught:
        service.configure(queues("x y", "a", "a"))
    assert "2 problems" in caught.value.reason
    assert "queues[0].name" in caught.value.reason
    assert active(service, "rm") == ["a"]
    register(service, "later")
    assert active(service, "later") == ["a"]


def test_what_one_cannot_follow_nobody_does(service: SchedulerService) -> None:
    service.configure(queues("a"))
    register(service, "one", "two")
    add(service, "two", "root.a")
    parent = queues("a") + "            queues:\n              - name: below\n"
    with pytest.raises(RequestError, match="'two': queue root.a has applications"):
        service.configure(parent)
    assert active(service, "one") == ["a"]
    assert not service.scheduler.partition("default", "one").root.children["a"].children


def test_an_update_of_its_own_makes_it_independent(service: SchedulerService) -> None:
    service.configure(queues("a"))
    register(service, "rm")
    update = si.UpdateConfigurationRequest(rmID="rm", extraConfig={"rm.pauseTimeout": "1m"})
    service.update_configuration(update)
    service.configure(queues("a", "b"))
    assert active(service, "rm") == ["a", "b"], "settings alone do not"
    service.update_configuration(si.UpdateConfigurationRequest(rmID="rm", config=queues("a", "c")))
    service.configure(queues("a", "d"))
    assert active(service, "rm") == ["a", "c"]
    register(service, "rm")
    assert active(service, "rm") == ["a", "d"], "it registered anew"


def test_a_registration_that_is_refused_follows_nothing(service: SchedulerService) -> None:
    service.configure(queues("a"))
    register(service, "rm", config=queues("b"))
    bad = si.RegisterResourceManagerRequest(rmID="rm", extraConfig={"si.stateNames": "x"})
    with pytest.raises(RequestError):
        service.register_resource_manager(bad, si.NullCallback())
    service.configure(queues("c"))
    assert active(service, "rm") == ["b"]


def test_checking_an_update_changes_nothing(service: SchedulerService) -> None:
    service.configure(queues("a"))
    register(service, "rm")
    scheduler = service.scheduler
    scheduler.check_update(si.UpdateConfigurationRequest(rmID="rm", config=queues("b")))
    assert active(service, "rm") == ["a"]
    with pytest.raises(RequestError, match="not registered"):
        scheduler.check_update(si.UpdateConfigurationRequest(rmID="nobody"))
