"""Random histories of a cluster, with faults, kills and strangers: in the end everything has run, once, and
the core counts what is there."""

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from k8s_queues import DEFAULT, SMALL, queues
from k8s_world import Killed, cluster, gang

from quadriga.k8s.shim import actions
from quadriga.k8s.shim.actions import Action
from quadriga.k8s.shim.inputs import BindEnded, CreateEnded

OPERATIONS = (
    "pod", "pod", "gang", "gang", "run", "run", "run", "delete", "delete placeholder", "end",
    "cordon", "uncordon", "remove node", "add node", "restart", "forget", "foreign", "steal", "resize",
    "kill",
)  # fmt: skip
POLICIES = (
    "",
    "placeholderTimeoutInSeconds=20 gangSchedulingStyle=Soft",
    "placeholderTimeoutInSeconds=20 gangSchedulingStyle=Hard",
)


class History:
    """One random history. Pods that nobody deletes must end."""

    def __init__(self, seed: int, admission: str, unified: bool) -> None:
        self.choose = random.Random(seed)
        properties = f"{{gang.admission: {admission}}}"
        self.world = cluster(
            nodes=3, queues=queues(DEFAULT, SMALL, properties=properties), unified=unified
        )
        self.world.fault = self.fault
        self.faults = True
        self.count = 0
        self.world.run(1)

    def fault(self, action: Action) -> BindEnded | CreateEnded | None:
        world, choose = self.world, self.choose
        if not self.faults or choose.random() > 0.15:
            return None
        if isinstance(action, actions.Create):
            name = action.manifest["metadata"]["name"]
            outcome: Any = choose.choice(["name_taken", "name_taken", "name_taken", "refused"])
            return CreateEnded(action.application_id, action.group, name, outcome, "quota")
        assert isinstance(action, actions.Bind)
        uid = action.pod.uid
        pod = world.pods.get(uid)
        kind = choose.choice(["failed", "lost", "elsewhere"])
        if pod is None or pod.spec.node_name or kind == "failed":
            if pod is not None and pod.spec.node_name:
                return None
            return BindEnded(uid, "failed", reason="500")
        if kind == "lost" and action.node in world.nodes:
            world.place(uid, action.node)
            return BindEnded(uid, "failed", reason="the reply was lost")
        other = self.room_for()
        if other is None:
            return BindEnded(uid, "failed", reason="500")
        world.place(uid, other)
        return BindEnded(uid, "elsewhere", other)

    def room_for(self) -> str | None:
        """A node that somebody else may choose: one that is nearly empty, as the core may choose it too."""
        world = self.world
        empty = [
            name
            for name in world.nodes
            if not any(pod.spec.node_name == name and not pod.ended for pod in world.pods.values())
            and name not in world.core_state().values()
        ]
        return self.choose.choice(sorted(empty)) if empty else None

    def step(self, operation: str) -> None:
        world, choose = self.world, self.choose
        self.count += 1
        live = sorted(uid for uid, pod in world.pods.items() if not pod.ended)
        if operation == "pod":
            world.add_pod(
                f"p-{self.count}",
                f"app-{choose.randrange(3)}",
                choose.choice(["1", "500m", "2"]),
                duration=choose.choice([1, 5, 30]),
            )
        elif operation == "gang":
            self.add_gang(choose.randrange(1, 4), choose.choice(POLICIES))
        elif operation == "run":
            world.run(choose.choice([0, 0.1, 1, 5, 20]))
        elif operation == "delete" and live:
            world.delete_pod(choose.choice(live))
        elif operation == "delete placeholder" and world.placeholders:
            world.delete_pod(choose.choice(world.placeholders).uid)
        elif operation == "end":
            running = [uid for uid in live if world.pods[uid].status.phase == "Running"]
            if running:
                world.end_pod(choose.choice(running), choose.choice(["Succeeded", "Failed"]))
        elif operation in ("cordon", "uncordon") and world.nodes:
            world.cordon(choose.choice(sorted(world.nodes)), operation == "cordon")
        elif operation == "remove node" and len(world.nodes) > 1:
            world.remove_node(choose.choice(sorted(world.nodes)))
        elif operation == "add node":
            for name in ("n1", "n2", "n3"):
                if name not in world.nodes:
                    world.add_node(name)
        elif operation == "restart":
            world.restart()
        elif operation == "forget":
            world.forget_core()
        elif operation == "foreign":
            name = self.room_for()
            if name is not None:
                world.add_pod(f"f-{self.count}", scheduler="other", node=name, cpu="1", duration=20)
        elif operation == "steal":
            waiting = [
                uid
                for uid in live
                if not world.pods[uid].spec.node_name and world.cache.assumed(uid) is None
            ]
            node = self.room_for()
            if waiting and node is not None:
                world.place(choose.choice(waiting), node)
        elif operation == "resize" and live:
            self.resize(choose.choice(live))
        elif operation == "kill":
            self.kill(choose.randrange(1, 12))

    def add_gang(self, members: int, policy: str) -> None:
        app = f"gang-{self.count}"
        for n in range(members):
            self.world.add_pod(
                f"{app}-{n}",
                app,
                group="w",
                groups=[gang("w", members)] if n == 0 else (),
                policy=policy if n == 0 else "",
                duration=self.choose.choice([1, 10, 40]),
            )

    def resize(self, uid: str) -> None:
        pod = self.world.pods[uid]
        if not pod.metadata.name.startswith("tg-") and pod.spec.scheduler_name != "other":
            self.world.resize(uid, "250m")

    def kill(self, after: int) -> None:
        world = self.world
        world.kill_at = world.steps + after
        world.kill_after = self.choose.random() < 0.5
        try:
            world.run(5)
            world.kill_at = -1
        except Killed:
            world.restart()

    def heal(self) -> None:
        world = self.world
        self.faults = False
        for name in sorted(world.nodes):
            world.cordon(name, unschedulable=False)
        for name in ("n1", "n2", "n3"):
            if name not in world.nodes:
                world.add_node(name)
        world.add_node("big", cpu="100")
        world.run(1)
        world.check()
        world.audit()
        assert world.audit().standing == ()
        world.run(3000)

    def judge(self) -> None:
        world = self.world
        world.check()
        for _ in range(2):
            report = world.audit()
            assert not report.standing and not report.fleeting, world.shim.audit.found
        left = [pod.metadata.name for pod in world.pods.values() if not pod.ended]
        assert left == [], world.describe()
        assert world.core_state() == {}
        assert (world.shim.dump()["applications"], world.shim.dump()["foreignPods"]) == ([], [])
        assert not world.shim._kernel.tasks
        assert not world.shim._kernel.on_node
        assert not world.shim._kernel.pending_placeholders
        assert world.shim.next_deadline() is None


def play(seed: int, operations: list[str], admission: str, unified: bool = False) -> None:
    history = History(seed, admission, unified)
    for operation in operations:
        history.step(operation)
    history.heal()
    history.judge()


#: the same ones every time
FEW = settings(
    max_examples=25, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
MANY = settings(FEW, max_examples=2 * settings.default.max_examples)


def histories(shortest: int, longest: int) -> Any:
    operations = st.lists(st.sampled_from(OPERATIONS), min_size=shortest, max_size=longest)
    admission = st.sampled_from(["atomic", "whole"])
    return given(seed=st.integers(0, 1_000_000), operations=operations, admission=admission)


@pytest.mark.parametrize("unified", [False, True], ids=["asks", "K8 unified asks"])
@FEW
@histories(5, 25)
def test_k8_whatever_happens_everything_runs_once_and_is_counted(
    seed: int, operations: list[str], admission: str, unified: bool
) -> None:
    play(seed, operations, admission, unified)


@pytest.mark.slow
@MANY
@histories(10, 60)
def test_long_histories(seed: int, operations: list[str], admission: str) -> None:
    play(seed, operations, admission)
