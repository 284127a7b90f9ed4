"""The scheduler is killed at writes and at messages: nothing is lost, nothing is done twice (T9).

Each kind of step is a place to die, before the first of its kind or after the last one. The tests of recovery
in this process, with an API server of their own, die at every single step.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from fault_proxy import FaultProxy
from killer import Killer, Point, When
from manifests import APP, GROUP, WHOLE, foreign, gang, is_placeholder, job, pod, queues
from plain_client import History, Object, PlainClient
from process_kubelet import node
from scheduler_process import ENDED, wait
from whole_cluster import Cluster

WITNESSED = Path(__file__).parents[1] / "witnessed_scheduler.py"


@dataclass(frozen=True)
class Scenario:
    """``begin`` makes the objects of an application. In the end there are ``members`` real pods, ``bound``
    of them bound, and no placeholder. ``groups``: how many members each task group has. ``steps``: where it
    is killed, of the steps that every run has; each is enough once in all scenarios."""

    begin: Callable[[PlainClient, str, str], None]
    members: int
    bound: int
    steps: frozenset[str]
    groups: dict[str, int] = field(default_factory=dict)
    queues: str = ""


def a_job(admin: PlainClient, namespace: str, app: str) -> None:
    admin.create(job(app, 3, pod("", app, run="succeed")), namespace)


def a_gang(admin: PlainClient, namespace: str, app: str) -> None:
    for each in gang(app, {"leader": (1, "1"), "worker": (1, "2")}):
        admin.create(each, namespace)


def a_gang_that_gives_up(admin: PlainClient, namespace: str, app: str) -> None:
    for each in gang(app, {"worker": (3, "3")}, timeout=2):
        admin.create(each, namespace)


#: runs in which a step is looked for
ATTEMPTS = 4
RELEASES = "AllocationRequest.releases.allocationsToRelease."
SCENARIOS = {
    "job": Scenario(
        a_job,
        3,
        3,
        frozenset(
            {
                "ApplicationRequest.new",
                "ApplicationResponse.accepted",
                "AllocationRequest.asks.real",
                "predicates",
                "AllocationResponse.new.real",
                "POST pods/binding",
                RELEASES + "STOPPED_BY_RM",
            }
        ),
    ),
    "gang": Scenario(
        a_gang,
        2,
        2,
        frozenset(
            {
                "POST pods",
                "AllocationRequest.asks.placeholder",
                "AllocationResponse.new.placeholder",
                "AllocationRequest.asks.real",
                "POST pods/binding",
                "AllocationResponse.released.PLACEHOLDER_REPLACED",
                "DELETE pods",
                RELEASES + "PLACEHOLDER_REPLACED",
                "AllocationResponse.new.real",
            }
        ),
        {"leader": 1, "worker": 1},
    ),
    "gang that gives up": Scenario(
        a_gang_that_gives_up,
        3,
        2,
        frozenset(
            {
                "AllocationResponse.released.TIMEOUT",
                "AllocationResponse.releasedAsks.TIMEOUT",
                "PATCH pods",
                "DELETE pods",
                RELEASES + "TIMEOUT",
                "AllocationRequest.asks.real",
            }
        ),
        {"worker": 3},
        WHOLE,
    ),
}


@pytest.fixture
def killer(proxy: FaultProxy) -> Iterator[Killer]:
    made = Killer(proxy)
    yield made
    made.close()


def of_app(present: list[Object], app: str) -> list[Object]:
    return [each for each in present if each["metadata"].get("labels", {}).get(APP) == app]


def settled(scenario: Scenario, present: list[Object]) -> bool:
    real = [each for each in present if not is_placeholder(each)]
    placed = [each for each in real if each["spec"].get("nodeName")]
    return (
        len(present) == len(real) == scenario.members
        and len(placed) == scenario.bound
        and (scenario.begin is not a_job or all(map(has_ended, real)))
    )


def deaths(part: str, counted: Mapping[tuple[str, When], int]) -> Iterator[Point]:
    """Where to die by steps of this kind: before a write and after it, after a message to the core, before
    one from it."""
    if not part.partition(".")[0].endswith("Request"):
        yield Point(part, "before", 1)
    if not part.partition(".")[0].endswith("Response"):
        yield Point(part, "after", counted[part, "after"])


def has_ended(pod: Object) -> bool:
    return pod["status"].get("phase") in ENDED


def surplus(scenario: Scenario, present: list[Object]) -> int:
    """How many placeholders of a gang there are beyond those that its members without a node need."""
    found = 0
    for name, members in scenario.groups.items():
        there = [
            each
            for each in present
            if (each["metadata"].get("annotations") or {}).get(GROUP) == name
            and not has_ended(each)
            and (is_placeholder(each) or each["spec"].get("nodeName"))
        ]
        found += max(len(there) - members, 0)
    return found


def most_surplus(scenario: Scenario, pods: History, namespace: str, app: str) -> int:
    """The greatest surplus that there has ever been."""
    most, present = 0, dict[str, Object]()
    for change, each in pods.of(namespace):
        if not of_app([each], app):
            continue
        present[each["metadata"]["uid"]] = each
        if change == "DELETED":
            del present[each["metadata"]["uid"]]
        most = max(most, surplus(scenario, list(present.values())))
    return most


@pytest.mark.parametrize("name", SCENARIOS)
def test_t9_killed_at_every_kind_of_step(
    cluster: Cluster, name: str, proxy: FaultProxy, killer: Killer
) -> None:
    scenario = SCENARIOS[name]
    cluster.kubelet(node("a", cpu="4"), node("b", cpu="4"))
    cluster.admin.create(queues(scenario.queues))
    scheduler = cluster.quadriga(server=proxy.url, program=[WITNESSED, str(killer.port)])

    def run(app: str, point: Point | None) -> bool:
        """Whether it was killed."""
        killer.arm(scheduler, point)
        scenario.begin(cluster.admin, cluster.namespace, app)
        told = f"killed {point}"
        done = lambda: settled(scenario, cluster.present())  # noqa: E731
        wait(
            lambda: killer.killed.is_set() or (done() and books_follow()),
            f"it is killed {point}, or all is done",
            60,
            scheduler.tail,
        )
        if killed := killer.disarm():
            scheduler.kill()
            scheduler.start()
            cluster.until(lambda present: surplus(scenario, present) == 0, seconds=5, what=told)
        cluster.until(lambda present: settled(scenario, present), seconds=60, what=told)
        scheduler.wait_books(cluster.admin)
        places: dict[str, set[str]] = {}
        for _, each in cluster.changes():
            if of_app([each], app) and not is_placeholder(each):
                places.setdefault(each["metadata"]["uid"], set())
                if on := each["spec"].get("nodeName"):
                    places[each["metadata"]["uid"]].add(on)
        assert len(places) == scenario.members, f"{told}: a pod was made twice"
        assert sum(map(len, places.values())) == scenario.bound, f"{told}: {places}"
        assert most_surplus(scenario, cluster.pods, cluster.namespace, app) <= 1, told
        clear(cluster.admin, cluster.pods, cluster.namespace)
        scheduler.wait_idle()
        return killed

    def books_follow() -> bool:
        """The core has heard of the ends, so that the last messages of a run are steps as well."""
        return scenario.begin is not a_job or scheduler.usage() == {}

    # The timeout counts from when the pod was made, in whole seconds. On a busy machine the gang may give up
    # before its last placeholder is asked for, so not every run has every step.
    counted: Counter[tuple[str, When]] = Counter()
    seen: dict[str, None] = {}
    for attempt in range(ATTEMPTS):
        assert not run(f"whole-{attempt}", None)
        counted |= killer.heard
        seen |= dict.fromkeys(killer.parts)
        if scenario.steps <= seen.keys():
            break
    assert scenario.steps <= seen.keys(), scenario.steps - seen.keys()
    points = [point for part in seen if part in scenario.steps for point in deaths(part, counted)]
    for index, point in enumerate(points):
        attempts = ATTEMPTS if point.number == 1 else 1
        killed = any(run(f"run-{index}-{attempt}", point) for attempt in range(attempts))
        assert killed or point.number > 1, point


START = (
    "RegisterResourceManagerRequest",
    "ApplicationRequest.new",
    "ApplicationResponse.accepted",
    "NodeRequest.nodes.CREATE_DRAIN",
    "NodeResponse.accepted",
    "AllocationRequest.allocations.real",
    "AllocationRequest.asks.placeholder",
    "NodeRequest.nodes.DRAIN_TO_SCHEDULABLE",
)


def test_t9_killed_again_at_its_start(cluster: Cluster, proxy: FaultProxy, killer: Killer) -> None:
    """A gang runs, another one waits for room, and others use a part of it."""
    cluster.kubelet(node("a", cpu="4"), node("b", cpu="4"))
    cluster.create(foreign("other", "a", cpu="1"))
    scheduler = cluster.quadriga(server=proxy.url, program=[WITNESSED, str(killer.port)])
    cluster.create(*gang("runs", {"worker": (2, "1")}))
    cluster.until(lambda now: len(now) == 3 and all(each["spec"].get("nodeName") for each in now))
    cluster.create(*gang("waits", {"worker": (4, "2")}))
    cluster.until(lambda present: sum(map(is_placeholder, present)) == 4)
    scheduler.wait_books(cluster.admin)
    before, changes = identities(cluster.pods, cluster.namespace), len(cluster.changes())
    for part in START:
        scheduler.kill()
        point = Point(part, "after" if "Request" in part else "before", 1)
        killer.arm(scheduler, point)
        scheduler.start(ready=False)
        assert killer.killed.wait(60), (point, scheduler.tail())
        killer.disarm()
    scheduler.kill()
    scheduler.start()
    scheduler.wait_books(cluster.admin)
    assert scheduler.applications() == {"runs": "Running", "waits": "Accepted"}
    assert identities(cluster.pods, cluster.namespace) == before
    assert {change for change, _ in cluster.changes()[changes:]} <= {"MODIFIED"}


def identities(pods: History, namespace: str) -> dict[str, str]:
    """Pod → its node, if it has one."""
    return {
        each["metadata"]["uid"]: each["spec"].get("nodeName", "")
        for each in pods.in_namespace(namespace)
    }


def clear(admin: PlainClient, pods: History, namespace: str) -> None:
    for each in admin.list("Job", namespace):
        admin.delete("Job", namespace, each["metadata"]["name"])
    for each in pods.in_namespace(namespace):
        admin.delete("Pod", namespace, each["metadata"]["name"], grace=0)
    pods.until(lambda present: not present, namespace)
