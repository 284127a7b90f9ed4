"""Random gangs on a small cluster with the real core, watched by a witness: never is a part of a gang bound before
the whole of it, be it a PodGroup (K204) or a task group without placeholders (D356)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from k8s_world import World, gang
from msgspec.structs import replace

from quadriga.k8s.objects import GangPolicy, NamedReference, Pod, SchedulingGroup, SchedulingPolicy

NAMES = ("a", "b", "c")

#: the least and the most that belongs to a step
NUMBERS = {"group": (0, 4), "minimum": (1, 4), "pods": (1, 4), "gated": (1, 1), "ungate": (0, 0)}
NUMBERS |= {"delete": (0, 9), "delete all": (0, 0), "single": (1, 2), "wait": (1, 40)}
NUMBERS |= {"shim": (0, 0), "core": (0, 0)}
STEPS = st.one_of(
    st.tuples(st.just(what), st.sampled_from(NAMES), st.integers(*numbers))
    for what, numbers in NUMBERS.items()
)


class Witness:
    """Knows the API server alone: the pods of each group, and which have a node."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.begun: set[str] = set()

    def members(self, name: str) -> list[Pod]:
        pods = self.world.pods.values()
        return [
            pod
            for pod in pods
            if pod.spec.scheduling_group is not None
            and pod.spec.scheduling_group.pod_group_name == name
        ]

    def look(self) -> None:
        """Between two turns of the shim, which binds a gang in one of them."""
        for name in NAMES:
            members = self.members(name)
            placed = [pod for pod in members if pod.spec.node_name]
            if not placed:
                self.begun.discard(name)
            elif name not in self.begun:
                group = self.world.groups.get(name)
                assert group is not None, f"{name} is bound without its group"
                gang = group.spec.scheduling_policy.gang
                least = gang.min_count if gang is not None else 1
                assert len(placed) >= least, f"{len(placed)} of {least} of {name} are bound"
                self.begun.add(name)


class WitnessedWorld(World):
    witness: Witness

    def half_step(self) -> None:
        super().half_step()
        self.witness.look()


def play(world: World, witness: Witness, step: tuple[str, str, int]) -> None:
    what, name, number = step
    members = witness.members(name)
    if what == "group" and not any(pod.spec.node_name for pod in members):
        world.add_group(name, number)
    elif what == "minimum" and name in world.groups and name not in witness.begun:
        group = world.groups[name]
        if group.spec.scheduling_policy.gang is not None:
            policy = SchedulingPolicy(gang=GangPolicy(number))
            world.set_group(replace(group, spec=replace(group.spec, scheduling_policy=policy)))
    elif what in ("pods", "gated"):
        gates = (NamedReference("wait"),) if what == "gated" else ()
        for _ in range(number):
            group_of = SchedulingGroup(name)
            pod = f"{name}-{next(world.numbers)}"
            world.add_pod(pod, "app", scheduling_group=group_of, scheduling_gates=gates)
    elif what == "ungate":
        for pod in members:
            if pod.spec.scheduling_gates:
                world.ungate(pod.uid)
    elif what == "delete" and members:
        world.delete_pod(members[number % len(members)].uid)
    elif what == "delete all":
        for pod in members:
            world.delete_pod(pod.uid)
    elif what == "single":
        world.add_pod(f"single-{next(world.numbers)}", "other", str(number), duration=20)
    elif what == "wait":
        world.run(number / 4)
    elif what == "shim":
        world.settle()
        world.restart()
    elif what == "core":
        world.settle()
        world.forget_core()


@given(st.lists(STEPS, max_size=30), st.integers(1, 3))
def test_k204_no_part_of_a_gang_is_bound(steps: list[tuple[str, str, int]], nodes: int) -> None:
    world = WitnessedWorld.__new__(WitnessedWorld)
    world.witness = witness = Witness(world)
    world.__init__()  # type: ignore[misc]
    for n in range(nodes):
        world.add_node(f"n{n}", cpu="2")
    for step in steps:
        play(world, witness, step)
    world.run(120)
    world.check()
    for name in NAMES:  # what fits is not forgotten
        group = world.groups.get(name)
        members = [pod for pod in witness.members(name) if not pod.spec.scheduling_gates]
        if group is None or any(pod.spec.node_name for pod in members):
            continue
        least = getattr(group.spec.scheduling_policy.gang, "min_count", 1)
        free = 2 * nodes - sum(1 for node in world.core_state().values() if node)
        if len(members) >= least:
            assert least > free or world.named("single"), name
    assert world.audit().standing == ()


#: how many members the task group of an application has
LEAST = {"a": 1, "b": 2, "c": 4}


class TaskGroups(Witness):
    """Placeholders count: where members do not exist in time, they keep the room of each."""

    def members(self, name: str) -> list[Pod]:
        return self.world.named(f"{name}-")

    def look(self) -> None:
        for name, least in LEAST.items():
            placed = [pod for pod in self.members(name) if pod.spec.node_name]
            kept = [p for p in self.world.named(f"tg-{name}-") if p.spec.node_name]
            if not placed:
                self.begun.discard(name)
            elif name not in self.begun:
                # the placeholder of the first member is gone before the member has its node
                found = len(placed) + len(kept)
                assert found >= least - bool(kept), f"{found} of {least} of {name} are bound"
                self.begun.add(name)


WITHOUT = ("pods", "delete", "delete all", "single", "wait", "shim", "core")


@given(st.lists(STEPS.filter(lambda step: step[0] in WITHOUT), max_size=30), st.integers(1, 3))
def test_d356_no_part_of_a_gang_without_placeholders_is_bound(
    steps: list[tuple[str, str, int]], nodes: int
) -> None:
    world = WitnessedWorld.__new__(WitnessedWorld)
    world.witness = witness = TaskGroups(world)
    world.__init__({"service.gangPlaceholders": "missing"})  # type: ignore[misc]
    for n in range(nodes):
        world.add_node(f"n{n}", cpu="2")
    for what, name, number in steps:
        if what == "pods":
            for _ in range(number):
                pod = f"{name}-{next(world.numbers)}"
                world.add_pod(pod, name, group=name, groups=[gang(name, LEAST[name])])
        else:
            play(world, witness, (what, name, number))
    world.run(120)
    world.check()
    assert world.audit().standing == ()


def test_the_witness_sees_a_part_of_a_gang(world: World) -> None:
    witness = Witness(world)
    world.add_group("a", 2)
    pod = world.add_pod("a-1", scheduling_group=SchedulingGroup("a"))
    world.place(pod.uid, "n1")
    with pytest.raises(AssertionError, match="1 of 2 of a are bound"):
        witness.look()
