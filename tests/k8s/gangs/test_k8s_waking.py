"""A pod that predicates refuse is tried again as soon as they may say otherwise, although the core hears of
nothing that it counts (K110). Here the core decides only after a message or when a timer of its own is due, as
its thread does."""

from typing import Any

import pytest
from k8s_world import World, failed
from msgspec.structs import replace

from quadriga.base.times import SECOND
from quadriga.k8s import objects
from quadriga.k8s.shim.actions import Bind
from quadriga.k8s.shim.inputs import Changed, VolumesChanged
from quadriga.si import AllocationRequest

HOST = "kubernetes.io/hostname"


class SleepingWorld(World):
    """The core sleeps until a message or a timer of its own wakes it."""

    def start(self) -> None:
        self.rounds = 0
        self.heard = -1
        super().start()

    def half_step(self) -> None:
        for action in self.shim.advance(self.now):
            self.carry_out(action)
        while self.inputs:
            for action in self.shim.handle(self.inputs.popleft(), self.now):
                self.carry_out(action)
        for send in self.shim.flush():
            self.carry_out(send)
        due = self.core.read(lambda scheduler: scheduler.next_deadline())
        if len(self.sent) > self.heard or (due is not None and due <= self.now):
            self.heard = len(self.sent)
            self.rounds += 1
            self.core.step(self.now)

    def nudges(self) -> int:
        """Messages that say nothing."""
        return sum(
            isinstance(each, AllocationRequest)
            and not (each.asks or each.allocations or each.HasField("releases"))
            for each in self.sent
        )


def world(nodes: int = 1) -> SleepingWorld:
    made = SleepingWorld()
    for number in range(nodes):
        made.add_node(f"n{number}")
    made.run(1)
    return made


def node_of(made: World, pod: objects.Pod) -> str:
    return made.pods[pod.uid].spec.node_name


def waiting(made: World, times: int = 1, seconds: float = 5) -> tuple[objects.Pod, list[Any]]:
    """A pod, of which the first so many binds fail, and its binds as they come."""
    binds = made.answer(Bind, failed, times)
    pod = made.add_pod("p", "app")
    made.run(seconds)
    return pod, binds


def test_k110_the_only_node_is_tried_again_in_time_and_after_a_change() -> None:
    made = world()
    pod, _ = waiting(made)
    made.run(24)
    assert not node_of(made, pod)
    made.run(6)
    assert node_of(made, pod) == "n0"
    assert made.nudges() == 1
    made.check()
    made = world()
    pod, _ = waiting(made)
    assert not node_of(made, pod)
    node = made.nodes["n0"]
    made.set_node(replace(node, status=replace(node.status, allocatable=_TWICE)))
    made.run(1)
    assert node_of(made, pod) == "n0"


def test_k110_the_time_doubles_up_to_five_minutes() -> None:
    made = world()
    pod, binds = waiting(made, 6, seconds=1)
    times = []
    began = made.now
    for failures in (2, 3, 4, 5, 6):
        made.run(400, until=lambda failures=failures: len(binds) >= failures)  # type: ignore[misc]
        times.append((made.now - began) // SECOND)
        began = made.now
    made.run(400, until=lambda: node_of(made, pod))
    times.append((made.now - began) // SECOND)
    assert times == pytest.approx([30, 60, 120, 240, 300, 300], abs=6)
    assert node_of(made, pod) == "n0"


_TWICE = {"cpu": "8", "memory": "64Gi", "pods": "110"}


def _label(made: World, node: objects.Node, **labels: str) -> None:
    made.set_node(replace(node, metadata=replace(node.metadata, labels=labels)))


@pytest.mark.parametrize("change", ["a taint goes", "a label comes"])
def test_k119_a_node_that_predicates_accept_now(change: str) -> None:
    made = world()
    tainted = change == "a taint goes"
    if tainted:
        taints = (objects.Taint("gpu", effect="NoSchedule"),)
        made.set_node(replace(made.nodes["n0"], spec=objects.NodeSpec(taints=taints)))
        made.run(1)
    pod = made.add_pod("p", "app", node_selector={} if tainted else {"disk": "fast"})
    made.run(30)
    assert not node_of(made, pod)
    if tainted:
        made.set_node(replace(made.nodes["n0"], spec=objects.NodeSpec()))
    else:
        _label(made, made.nodes["n0"], disk="fast")
    made.run(0.1)
    assert node_of(made, pod) == "n0"


def _apart(selector: dict[str, str], **term: Any) -> objects.Affinity:
    terms = (objects.PodAffinityTerm(HOST, objects.LabelSelector(selector), **term),)
    return objects.Affinity(pod_anti_affinity=objects.PodAffinity(terms))


def relabel(made: World, pod: objects.Pod, app: str) -> None:
    pod = made.pods[pod.uid]
    labels = {**pod.metadata.labels, "app": app}
    made.set_pod(replace(pod, metadata=replace(pod.metadata, labels=labels)))


def on_host() -> SleepingWorld:
    made = world()
    _label(made, made.nodes["n0"], **{HOST: "n0"})
    return made


def test_k127_a_pod_that_is_in_the_way_gets_other_labels() -> None:
    made = on_host()
    other = made.add_pod("other", "other", labels={"app": "web"})
    made.run(1)
    pod = made.add_pod("p", "app", affinity=_apart({"app": "web"}))
    made.run(30)
    assert node_of(made, other) and not node_of(made, pod)
    relabel(made, other, "db")
    made.run(0.1)
    assert node_of(made, pod) == "n0"


def test_k127_a_namespace_gets_other_labels() -> None:
    made = on_host()
    made.add_namespace("default")
    space = made.namespaces["default"]

    def label(**labels: str) -> None:
        changed = objects.Namespace(replace(space.metadata, labels=labels))
        made.inputs.append(Changed("MODIFIED", changed))

    label(kind="web")
    made.add_pod("other", "other", labels={"app": "web"})
    made.run(1)
    term = {"namespace_selector": objects.LabelSelector({"kind": "web"})}
    pod = made.add_pod("p", "app", affinity=_apart({"app": "web"}, **term))
    made.run(30)
    assert not node_of(made, pod)
    label(kind="db")
    made.run(0.1)
    assert node_of(made, pod) == "n0"


def test_k129_k137_objects_of_volumes_wake_also_when_answers_from_before_are_void() -> None:
    made = world()
    made.run(5)
    nudges = made.nudges()
    made.inputs.extend([VolumesChanged(), VolumesChanged()])
    made.run(0.1)
    assert made.nudges() == nudges + 1
    made = world()
    made.run(5)
    nudges = made.nudges()
    made.inputs.append(VolumesChanged())
    made.run(2.5)
    assert made.nudges() == nudges + 1
    made.run(2)
    assert made.nudges() == nudges + 2
    made.run(60)
    assert made.nudges() == nudges + 2


def test_k110_what_changes_no_answer_wakes_nobody() -> None:
    made = world()
    made.run(5)
    sent = len(made.sent)
    node = made.nodes["n0"]
    made.set_node(replace(node, metadata=replace(node.metadata, annotations={"seen": "now"})))
    pod = made.add_pod("other", scheduler="default-scheduler", labels={"app": "web"})
    relabel(made, pod, "db")
    made.run(5)
    assert len(made.sent) == sent
