"""Jobs and gangs on a real control plane, from their manifests to the end of their books."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from manifests import GROUP, GROUPS, gang, is_placeholder, pod, queues
from plain_client import History, Object, PlainClient
from process_kubelet import ProcessKubelet, node
from scheduler_process import Quadriga, is_ours, wait

#: placeholders are placed one by one; by default none is before there is room for all
WHOLE = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        properties: {gang.admission: whole}
        queues:
          - name: default
"""

Kubelets = Callable[..., ProcessKubelet]
Schedulers = Callable[..., Quadriga]
Histories = Callable[[str], History]


def group(pod: Object) -> str:
    return str(pod["metadata"]["annotations"][GROUP])


def real(present: list[Object]) -> list[Object]:
    """Real pods of ours."""
    return [each for each in present if is_ours(each) and not is_placeholder(each)]


def placeholders(present: list[Object]) -> list[Object]:
    return [each for each in present if is_placeholder(each)]


def bound(present: list[Object]) -> list[Object]:
    return [each for each in present if each["spec"].get("nodeName")]


def all_bound(count: int) -> Callable[[list[Object]], bool]:
    """So many real pods are bound, and no placeholder is left."""
    return lambda present: len(bound(real(present))) == count == len(present)


def create(admin: PlainClient, namespace: str, things: list[Object]) -> list[Object]:
    return [admin.create(each, namespace) for each in things]


def events(history: History, namespace: str) -> list[tuple[str, str, str]]:
    """Reason, type and text of the events in a namespace, as they came."""
    return [
        (each["reason"], each["type"], each.get("message", "") or each.get("note", ""))
        for change, each in history.of(namespace)
        if change == "ADDED"
    ]


def test_t2_a_gang_of_two_groups_starts_together(
    admin: PlainClient,
    pods: History,
    namespace: str,
    kubelet: Kubelets,
    quadriga: Schedulers,
) -> None:
    kubelet(count=3)
    scheduler = quadriga()
    create(admin, namespace, gang("pair", {"leader": (2, "1"), "worker": (3, "2")}))
    present = pods.until(all_bound(5), namespace)
    first_real: int | None = None
    places: dict[str, list[tuple[str, str]]] = {"placeholder": [], "real": []}
    seen: set[str] = set()
    for index, (_, each) in enumerate(pods.of(namespace)):
        uid = each["metadata"]["uid"]
        if not each["spec"].get("nodeName") or uid in seen:
            continue
        seen.add(uid)
        kind = "placeholder" if is_placeholder(each) else "real"
        places[kind].append((group(each), each["spec"]["nodeName"]))
        if kind == "real" and first_real is None:
            first_real = index
            assert len(places["placeholder"]) == 5, "a real pod was bound before the gang was whole"
    assert sorted(places["placeholder"]) == sorted(places["real"])
    assert len(present) == 5
    scheduler.wait_books(admin)
    for each in present:
        admin.delete("Pod", namespace, each["metadata"]["name"], grace=0)
    scheduler.wait_idle()


@pytest.mark.parametrize(("text", "held"), [("", 0), (WHOLE, 2)], ids=["default", "whole"])
def test_t3_a_soft_gang_without_room_runs_one_by_one(
    text: str,
    held: int,
    admin: PlainClient,
    pods: History,
    history: Histories,
    namespace: str,
    kubelet: Kubelets,
    quadriga: Schedulers,
) -> None:
    told = history("Event")
    local = kubelet(node("small", cpu="4"))
    admin.create(queues(text))
    scheduler = quadriga()
    create(admin, namespace, gang("soft", {"worker": (4, "2")}, timeout=5))
    pods.until(
        lambda present: len(placeholders(present)) == 4 and len(bound(present)) == held, namespace
    )
    present = pods.until(
        lambda present: not placeholders(present) and len(bound(real(present))) == 2, namespace
    )
    assert "Resuming" in states(scheduler, "soft")
    # Room comes as the first ones end.
    for each in bound(real(present)):
        local.end(each["metadata"]["uid"])
    pods.until(lambda present: len(bound(real(present))) == 4, namespace)
    wanted = ["CreatingPlaceholders", "PlaceholderTimeOut", "GangSchedulingFailed"]
    if held:
        wanted.insert(1, "PlaceholderAllocated")
    told.until(lambda _: set(wanted) <= set(_actions(told, namespace)))
    actions = _actions(told, namespace)
    # The last two come at once, and are written beside each other.
    order = sorted(wanted, key=actions.index)
    assert (order[:-2], sorted(order[-2:])) == (wanted[:-2], sorted(wanted[-2:])), actions
    admin.delete_all("Pod", namespace)
    scheduler.wait_idle()


def states(scheduler: Quadriga, app: str) -> list[str]:
    """The states that the application has had in the core."""
    found = scheduler.rest(f"/partition/default/application/{app}")
    return [each["applicationState"] for each in found["stateLog"]]


def _actions(told: History, namespace: str) -> list[str]:
    """What was done for a gang, in the order of the events about it."""
    return [
        each["action"]
        for change, each in told.of(namespace)
        if change == "ADDED" and each["reason"] == "GangScheduling"
    ]


@pytest.mark.parametrize(("text", "held"), [("", 0), (WHOLE, 2)], ids=["default", "whole"])
def test_t4_a_hard_gang_without_room_fails(
    text: str,
    held: int,
    admin: PlainClient,
    pods: History,
    namespace: str,
    kubelet: Kubelets,
    quadriga: Schedulers,
) -> None:
    kubelet(node("small", cpu="4"))
    admin.create(queues(text))
    scheduler = quadriga()
    create(admin, namespace, gang("hard", {"worker": (4, "2")}, timeout=2, style="Hard"))
    pods.until(
        lambda present: len(placeholders(present)) == 4 and len(bound(present)) == held, namespace
    )
    present = pods.until(
        lambda present: (
            len(real(present)) == 4
            and {each["status"]["phase"] for each in real(present)} == {"Failed"}
        ),
        namespace,
    )
    ended = real(present)
    assert {each["status"]["reason"] for each in ended} == {"ResourceReservationTimeout"}
    assert not bound(ended)
    # Nothing is left in ten seconds.
    pods.until(lambda present: not placeholders(present), namespace, seconds=10)
    scheduler.wait_idle(10)
    wait(lambda: scheduler.applications() == {}, "the application is no longer active", 10)


def test_t5_of_two_gangs_that_fit_alone_one_holds_nothing(
    admin: PlainClient,
    pods: History,
    namespace: str,
    kubelet: Kubelets,
    quadriga: Schedulers,
) -> None:
    kubelet(node("a", cpu="4"), node("b", cpu="4"))
    scheduler = quadriga()
    both = [gang(app, {"worker": (3, "2")}) for app in ("one", "two")]
    # Their pods come by turns.
    create(admin, namespace, [each for pair in zip(*both, strict=True) for each in pair])
    pods.until(
        lambda present: len(bound(real(present))) == 3 and len(placeholders(present)) == 3,
        namespace,
    )
    present = pods.in_namespace(namespace)
    assert not bound(placeholders(present))
    winner = {each["metadata"]["name"].partition("-")[0] for each in bound(present)}
    assert len(winner) == 1
    assert not [
        each
        for _, each in pods.of(namespace)
        if is_placeholder(each)
        and each["spec"].get("nodeName")
        and not each["metadata"]["name"].startswith(f"tg-{next(iter(winner))}-")
    ], "the other gang has held room"
    # When the first one is gone, the other one runs.
    for each in bound(present):
        admin.delete("Pod", namespace, each["metadata"]["name"], grace=0)
    pods.until(all_bound(3), namespace)
    scheduler.wait_books(admin)


def test_t6_placeholders_go_with_an_originator_that_is_deleted(
    admin: PlainClient,
    pods: History,
    namespace: str,
    kubelet: Kubelets,
    quadriga: Schedulers,
) -> None:
    admin.create(queues(""))
    kubelet(node("small", cpu="4"))
    scheduler = quadriga()
    originator = gang("driven", {"worker": (1, "2")}, minimum={"worker": 4})
    create(admin, namespace, originator)
    pods.until(lambda present: len(placeholders(present)) == 4, namespace)
    admin.delete("Pod", namespace, originator[0]["metadata"]["name"], grace=0)
    pods.until(lambda present: not present, namespace, seconds=2)
    scheduler.wait_idle()
    wait(lambda: scheduler.applications() == {}, "the application is removed")


def test_t6_placeholders_go_with_an_originator_that_succeeds(
    admin: PlainClient,
    pods: History,
    namespace: str,
    kubelet: Kubelets,
    quadriga: Schedulers,
) -> None:
    local = kubelet(count=2)
    scheduler = quadriga()
    driver = gang("spark", {"driver": (1, "1"), "executor": (0, "1")}, minimum={"executor": 3})
    create(admin, namespace, driver)
    present = pods.until(
        lambda present: len(bound(placeholders(present))) == 3 and len(bound(real(present))) == 1,
        namespace,
    )
    local.end(real(present)[0]["metadata"]["uid"])
    pods.until(lambda present: not placeholders(present), namespace, seconds=2)
    scheduler.wait_idle()


def test_t7_a_placeholder_that_somebody_deletes_is_made_again(
    admin: PlainClient,
    pods: History,
    namespace: str,
    kubelet: Kubelets,
    quadriga: Schedulers,
) -> None:
    admin.create(queues(""))
    local = kubelet(node("small", cpu="4"))
    scheduler = quadriga()
    create(admin, namespace, gang("mended", {"worker": (3, "2")}))
    present = pods.until(lambda present: len(placeholders(present)) == 3, namespace)
    lost = placeholders(present)[0]["metadata"]
    admin.delete("Pod", namespace, lost["name"], grace=0)
    pods.until(
        lambda present: (
            len(placeholders(present)) == 3
            and lost["uid"] not in {each["metadata"]["uid"] for each in present}
        ),
        namespace,
    )
    local.register(node("more", cpu="4"))
    pods.until(all_bound(3), namespace)
    scheduler.wait_books(admin)


def test_t8_task_groups_with_an_error_are_told_and_the_pod_runs(
    admin: PlainClient,
    pods: History,
    history: Histories,
    namespace: str,
    kubelet: Kubelets,
    quadriga: Schedulers,
) -> None:
    told = history("Event")
    kubelet(count=1)
    quadriga()
    wrong = {GROUPS: '[{"name": "worker", "minMember": 0}]', GROUP: "worker"}
    admin.create(pod("wrong", "wrong", annotations=wrong), namespace)
    pods.until(all_bound(1), namespace)
    told.until(
        lambda present: any(
            (each["reason"], each["action"], each["type"])
            == ("GangScheduling", "TaskGroupsError", "Warning")
            for each in present
            if "action" in each
        ),
        namespace,
    )


def test_t8_of_several_ids_the_losers_are_told(
    admin: PlainClient,
    pods: History,
    history: Histories,
    namespace: str,
    kubelet: Kubelets,
    quadriga: Schedulers,
) -> None:
    told = history("Event")
    kubelet(count=1)
    scheduler = quadriga()
    several = pod("several", "label-wins", labels={"applicationId": "old-label"})
    several["metadata"]["annotations"]["yunikorn.apache.org/app-id"] = "annotation"
    admin.create(several, namespace)
    pods.until(all_bound(1), namespace)
    assert "label-wins" in scheduler.applications()
    told.until(lambda _: _told(told, namespace, "Scheduling", "annotation", "old-label"))


def test_t8_a_group_that_there_is_not_is_told_and_the_pods_run(
    admin: PlainClient,
    pods: History,
    history: Histories,
    namespace: str,
    kubelet: Kubelets,
    quadriga: Schedulers,
) -> None:
    told = history("Event")
    kubelet(count=2)
    quadriga()
    members = gang("named", {"worker": (2, "1")})
    stranger = gang("named", {"worker": (1, "1")})[0]
    stranger["metadata"]["name"] = "stranger"
    stranger["metadata"]["annotations"][GROUP] = "wroker"
    create(admin, namespace, [*members, stranger])
    pods.until(all_bound(3), namespace)
    told.until(lambda _: _told(told, namespace, "GangScheduling", "wroker"))


def _told(told: History, namespace: str, reason: str, *words: str) -> bool:
    """Whether there is a Warning of this reason with all these words."""
    return any(
        found == reason and kind == "Warning" and all(word in text for word in words)
        for found, kind, text in events(told, namespace)
    )
