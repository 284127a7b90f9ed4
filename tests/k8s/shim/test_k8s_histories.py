"""Arbitrary histories of a small cluster with the real core: all that the shim writes, sends and shows is that of
``golden/histories.json``, and nothing is left of it at the end."""

from collections import deque
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from k8s_queues import DEFAULT, HARD, SMALL, SOFT, queues
from k8s_world import World, failed, gang
from msgspec.structs import replace

from quadriga.k8s.objects import (
    Metadata,
    NamedReference,
    NodeCondition,
    NodeStatus,
    Pod,
    PriorityClass,
    SchedulingGroup,
)
from quadriga.k8s.shim import actions
from quadriga.k8s.shim.inputs import (
    BindEnded,
    Changed,
    ConfigurationChanged,
    CreateEnded,
    VolumesChanged,
)
from tests.histories import compare
from tests.k8s.shim.test_k8s_audit import CASES, break_it

GOLDEN = Path(__file__).parents[1] / "golden" / "histories.json"
SURE = "{name: sure, properties: {preemption.delay: 1s}, resources: {guaranteed: {vcore: 2000m}}}"
TREES = (
    queues(DEFAULT, SMALL, SURE),
    queues(DEFAULT, SMALL, SURE, properties="{gang.admission: whole}"),
    queues(DEFAULT, SMALL, SURE, rules="[{name: provided, create: false}]"),
)
QUOTA = {"yunikorn.apache.org/namespace.quota": '{"cpu": "2"}'}


class Life(World):
    rng: Random
    said: list[str]

    def _effect(self, action: actions.Action) -> None:
        if isinstance(action, actions.Send):
            sent = action.request.SerializeToString(deterministic=True)
            self.said.append(f"{type(action.request).__name__} {sent!r}")
        else:
            self.said.append(repr(action))
        super()._effect(action)

    def one(self, *choices: Any) -> Any:
        return self.rng.choice(choices)

    # -- steps -------------------------------------------------------------------------------------

    def pod(self) -> None:
        self.add_pod(
            f"p{next(self.numbers)}",
            self.one("a", "b", "c", ""),
            self.one("1", "1", "2", "3", "9"),
            scheduler=self.one(*["yunikorn"] * 7, "another"),
            duration=self.one(None, 3, 30),
            queue=self.queue(),
            priority=self.one(None, None, 0, 5),
            namespace=self.one(*["default"] * 4, "team"),
            node=self.one(*[""] * 9, *self.nodes),
            daemon=self.one(*[""] * 9, "n1"),
            scheduling_gates=self.one(*[()] * 6, (NamedReference("wait"),)),
        )

    def queue(self) -> str:
        return self.one("root.default", "root.default", "root.small", "root.sure", "", "nowhere")  # type: ignore[no-any-return]

    def gang(self) -> None:
        name, policy = self.one("x", "y", "z"), self.one(SOFT, HARD, HARD, "")
        groups = [gang("w", self.one(1, 2, 3, 4), self.one("1", "2"))]
        if self.one(*range(5)) == 0:
            groups.append(gang("v", 1, nodeSelector=self.one({}, {"zone": "far"})))
        more: dict[str, Any] = {"group": self.one("w", ""), "groups": groups, "policy": policy}
        self.add_pod(f"d-{name}", name, queue=self.queue(), duration=20, **more)
        for _ in range(self.one(0, 1, 2, 3)):
            self.add_pod(f"m{next(self.numbers)}", name, group="w", duration=9)

    def member(self) -> None:
        name, duration = self.one("x", "y", "z"), self.one(None, 9)
        self.add_pod(f"m{next(self.numbers)}", name, group="w", duration=duration)

    def pod_group(self) -> None:
        name = self.one("g", "h")
        self.add_group(name, self.one(0, 1, 2, 3))
        if self.one(*range(5)) == 0:
            self.remove_group(name)
        for _ in range(self.one(0, 1, 2, 3)):
            of = SchedulingGroup(name)
            self.add_pod(f"{name}{next(self.numbers)}", "grouped", duration=9, scheduling_group=of)

    def change(self) -> None:
        """Of some pod, by its user, its kubelet or another scheduler."""
        if not self.pods:
            return
        pod = self.one(*self.pods.values())
        match self.one(*range(16)):
            case 0 | 1 | 2:
                self.kubelets = self.one(True, True, False)
                self.delete_pod(pod.uid)
                self.kubelets = True
            case 3 | 4 | 5 if not pod.ended:
                self.end_pod(pod.uid, self.one("Succeeded", "Failed"))
            case 6 | 7 | 8 if self.nodes and not (pod.ended or pod.spec.node_name):
                self.place(pod.uid, self.one(*self.nodes))
            case 9:
                self.resize(pod.uid, self.one("1", "2"))
            case 10 | 11:
                self.ungate(pod.uid)
            case 12:
                self.terminate(pod.uid)
            case 13:
                self.inputs.append(BindEnded(pod.uid, "gone"))
            case _:  # it is too large for the shim, or is no longer
                self.set_pod(replace(pod, refusal=self.one("", "a label of 1 MiB")))

    def node(self) -> None:
        name = self.one("n1", "n2", "n3")
        if name not in self.nodes:
            self.add_node(name, cpu=self.one("2", "4"))
            return
        match self.one(*range(4)):
            case 0:
                self.remove_node(name)
            case 1:
                self.cordon(name, self.one(True, False))
            case _:
                ready = (NodeCondition("Ready", self.one("True", "True", "False")),)
                amounts = {"cpu": self.one("1", "3", "4"), "memory": "64Gi", "pods": "110"}
                status = NodeStatus(allocatable=amounts, conditions=ready)
                why = self.one("", "", "9000 taints")
                self.set_node(replace(self.nodes[name], status=status, refusal=why))

    def other_objects(self) -> None:
        high = PriorityClass(Metadata(name="high", uid="class-high"), value=7)
        match self.one(*range(4)):
            case 0:
                self.inputs.append(Changed(self.one("ADDED", "DELETED"), high))
            case 1:
                self.inputs.append(VolumesChanged())
            case 2 if "team" in self.namespaces:
                self.inputs.append(Changed("DELETED", self.namespaces.pop("team")))
            case _:
                self.add_namespace("team", **self.one(QUOTA, {}))

    def moods(self) -> None:
        """Of the API server, of the checks before an ask and before a bind, and of the core."""
        refused = self.one("name_taken", "refused")
        answers = (
            (actions.Bind, failed),
            (actions.Bind, lambda bind: BindEnded(bind.pod.uid, "gone")),
            (actions.Bind, lambda bind: replace(failed(bind), step="volumes")),
            (actions.Create, lambda create: CreateEnded(*named(create), refused, "no")),
        )
        self.answer(*self.one(*answers), self.one(0, 1, 2, 3, 4))
        self.refuse_applications = self.one(*range(5)) == 0
        why, against = self.one("", "no claim"), self.one(None, "port is taken")
        self.blocked_reason = lambda pod: why if pod.metadata.name[-1] in "13" else ""
        self.cache.objection = lambda uid, node: against if uid[-1] in "24" else None  # type: ignore[method-assign]

    def settings_changed(self) -> None:
        values = settings_of(self.rng) | {"queues.yaml": self.one(*TREES)}
        errors = self.one((), (), ("a ConfigMap is no text",))
        self.inputs.append(ConfigurationChanged(values, errors))

    def restarts(self) -> None:
        self.settle()
        self.one(self.restart, self.forget_core)()

    def audits(self) -> None:
        """The core and the caches do not know the same."""
        self.settle()
        others = [pod for pod in self.pods.values() if pod.spec.scheduler_name == "another"]
        ours = [pod for pod in self.pods.values() if pod not in others]
        running = [pod for pod in ours if pod.spec.node_name]
        kinds = others, running, running, [pod for pod in ours if pod not in running]
        if self.shim.serving and self.nodes and all(kinds):
            pods: list[Pod] = [self.one(*kind) for kind in kinds]
            break_it(self, self.one(*CASES), *pods, node=self.one(*self.nodes))
        for _ in range(3):
            self.said.append(repr(self.audit()))

    def wait(self) -> None:
        self.run(self.one(0.3, 1, 4, 10, 30, 120))

    def wind_down(self) -> None:
        """Everything goes: no book of the shim has an entry, and nothing is due."""
        self.fault, self.refuse_applications = (lambda action: None), False
        while self.pods:
            self._remove_pod(next(iter(self.pods)))
            self.run(1)
        for name in [*self.groups]:
            self.remove_group(name)
        self.run(400)
        for name in [*self.nodes]:
            self.remove_node(name)
        self.run(600)
        stay = ("_handlers", "namespaces", "classes")
        books = {name: book for name, book in vars(self.shim._kernel).items() if name not in stay}
        left = {name: book for name, book in books.items() if isinstance(book, dict | set | deque)}
        assert not any(left.values()), left
        assert self.shim.next_deadline() is None, self.shim.describe_next_timer()


def settings_of(rng: Random) -> dict[str, str]:
    choices = {
        "Retries": ("0", "5"),
        "ScaleUp": ("true", "false"),
        "Placeholders": ("missing", "always"),
    }
    return {f"service.gang{name}": rng.choice(values) for name, values in choices.items()}


def named(create: actions.Create) -> tuple[str, str, str]:
    return create.application_id, create.group, create.manifest["metadata"]["name"]


STEPS = {
    Life.pod: 9, Life.gang: 4, Life.member: 3, Life.pod_group: 3, Life.change: 12, Life.node: 2, Life.wait: 9,
    Life.other_objects: 1, Life.moods: 4, Life.settings_changed: 1, Life.restarts: 0.7, Life.audits: 3,
}  # fmt: skip


def lived(life: Life) -> Iterator[str]:
    """What is done in each step, and what is shown after it."""
    for _ in range(60):
        life.rng.choices([*STEPS], [*STEPS.values()])[0](life)
        life.run(life.one(0, 0, 0.2, 1))
        shim = life.shim
        timer = shim.next_deadline(), shim.describe_next_timer()
        shown = shim.dump(), timer, shim.settings, life.conditions, life.core_state()
        asks = [(shim.ask_of(uid), shim.unoffered(uid)) for uid in life.pods]
        yield "\n".join(map(str, (*life.said, *shown, asks)))
        life.said.clear()


@pytest.mark.parametrize("seed", range(30))
def test_arbitrary_histories_are_those_that_are_known(seed: int) -> None:
    rng = Random(seed)
    life = Life.__new__(Life)
    life.rng, life.said = rng, []
    more: dict[str, Any] = {"queues": rng.choice(TREES), "unified": rng.random() < 0.2}
    life.__init__(settings_of(rng), **more)  # type: ignore[misc]
    life.add_node("n1")
    compare(GOLDEN, seed, lived(life))
    life.wind_down()
