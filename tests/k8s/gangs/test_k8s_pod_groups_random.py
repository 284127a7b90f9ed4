"""Random gangs on a small cluster with the real core, watched by a witness: never is a part of a gang bound before
the whole of it, be it a PodGroup (K204) or of task groups, with and without placeholders (K200, D356)."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from k8s_world import World, gang
from msgspec.structs import replace

from quadriga.k8s.objects import GangPolicy, NamedReference, Pod, SchedulingGroup, SchedulingPolicy
from quadriga.k8s.shim.actions import Create
from quadriga.k8s.shim.inputs import CreateEnded

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
    """A gang is whole once its members and placeholders on nodes are enough."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.whole: set[str] = set()

    def members(self, name: str) -> list[Pod]:
        return self.world.named(f"{name}-")

    def look(self) -> None:
        for name, least in LEAST.items():
            members = self.members(name)
            placed = [pod for pod in members if pod.spec.node_name]
            kept = [p for p in self.world.named(f"tg-{name}-") if p.spec.node_name]
            if not members:
                self.whole.discard(name)
            if len(placed) + len(kept) >= least:
                self.whole.add(name)
            assert name in self.whole or not placed, f"{len(placed)} of {least} of {name} are bound"

    def unplaced(self, free: int) -> list[str]:
        """Gangs that wait although so many pods have room."""
        found = []
        for name, least in LEAST.items():
            live = [pod for pod in self.members(name) if pod.status.phase in ("Pending", "Running")]
            waits = any(not pod.spec.node_name for pod in live)
            if waits and len(live) >= least and free >= least:
                found.append(name)
        return found


#: what happens to gangs of task groups, and how often
OFTEN = {"pods": 6, "suspend": 3, "end": 2, "delete": 2, "delete all": 1, "wait": 8, "single": 2}
OFTEN |= {"quota": 2, "remove node": 1, "add node": 1, "shim": 1, "core": 1}


class TaskGroupsPlay:
    """Hard gangs of task groups on nodes of two cores, with all that may happen to them."""

    def __init__(self, choose: Random, nodes: int, how: str) -> None:
        self.choose, self.nodes, self.quota = choose, {f"n{n}" for n in range(nodes)}, 99
        self.world = WitnessedWorld.__new__(WitnessedWorld)
        self.world.witness = self.witness = TaskGroups(self.world)
        self.world.__init__({"service.gangPlaceholders": how})  # type: ignore[misc]
        self.world.answer(Create, self.answer_create)
        for name in sorted(self.nodes):
            self.world.add_node(name, cpu="2")

    def answer_create(self, create: Create) -> CreateEnded | None:
        if len(self.world.pods) < self.quota:
            return None
        name = create.manifest["metadata"]["name"]
        return CreateEnded(create.application_id, create.group, name, "refused", "exceeded quota")

    def add(self, name: str, number: int) -> None:
        groups, policy = [gang(name, LEAST[name])], "gangSchedulingStyle=Hard"
        for _ in range(number):
            pod = f"{name}-{next(self.world.numbers)}"
            self.world.add_pod(pod, name, group=name, groups=groups, policy=policy)

    def step(self) -> None:
        what = self.choose.choices([*OFTEN], [*OFTEN.values()])[0]
        name, number = self.choose.choice(NAMES), self.choose.randint(*NUMBERS.get(what, (1, 3)))
        members, node = self.witness.members(name), f"n{number}"
        if what == "pods":
            self.add(name, number)
        elif what == "suspend":  # and resume
            play(self.world, self.witness, ("delete all", name, 0))
            self.add(name, len(members))
        elif what == "end":
            for pod in members:
                if pod.spec.node_name:
                    self.world.end_pod(pod.metadata.uid)
        elif what == "quota":
            self.quota = self.choose.choice([1, 3, 5, 99])
        elif what == "remove node" and node in self.nodes:
            self.nodes.remove(node)
            self.world.remove_node(node)
        elif what == "add node" and node not in self.nodes:
            self.nodes.add(node)
            self.world.add_node(node, cpu="2")
        elif what == "single":
            play(self.world, self.witness, ("single", name, 1))
        else:
            play(self.world, self.witness, (what, name, number))

    def free(self) -> int:
        pods = self.world.pods.values()
        live = [pod for pod in pods if pod.status.phase not in ("Succeeded", "Failed")]
        return 2 * len(self.nodes) - sum(pod.spec.node_name in self.nodes for pod in live)


@given(st.randoms(use_true_random=False), st.integers(1, 4), st.sampled_from(["always", "missing"]))
def test_k200_d356_no_part_of_a_gang_is_bound_and_none_is_forgotten(
    choose: Random, nodes: int, how: str
) -> None:
    found = TaskGroupsPlay(choose, nodes, how)
    for _ in range(choose.randint(5, 40)):
        found.step()
    found.quota = 99
    found.world.run(3000)
    found.world.check()
    assert not found.witness.unplaced(found.free())
    assert found.world.audit().standing == ()


def test_k200_answers_about_an_application_that_was_removed_do_not_concern_the_next_one() -> None:
    """The core fails an application that is removed before it has asked for anything."""
    found = TaskGroupsPlay(Random(), 3, "missing")
    found.quota = 1
    found.add("c", 1)
    found.world.run(2)
    for pod in found.witness.members("c"):
        found.world.delete_pod(pod.metadata.uid)
    found.add("c", 1)
    found.world.run()
    found.add("c", 3)
    found.world.run(10)
    assert all(pod.spec.node_name for pod in found.witness.members("c"))


def test_the_witness_sees_a_part_of_a_gang(world: World) -> None:
    witness = Witness(world)
    world.add_group("a", 2)
    pod = world.add_pod("a-1", scheduling_group=SchedulingGroup("a"))
    world.place(pod.uid, "n1")
    with pytest.raises(AssertionError, match="1 of 2 of a are bound"):
        witness.look()
