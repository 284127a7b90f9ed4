"""Arbitrary histories of a small cluster with the real core: all that the shim writes, sends and shows is that of
``golden/histories.json``, and nothing is left of it at the end."""

import json
import os
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

import pytest
from k8s_queues import DEFAULT, HARD, SMALL, SOFT, queues
from k8s_world import World, failed, gang
from msgspec.structs import replace

from quadriga.k8s import objects
from quadriga.k8s.shim import actions, inputs
from tests.k8s.shim.test_k8s_audit import CASES, break_it

GOLDEN = Path(__file__).parents[1] / "golden" / "histories.json"

SURE = "{name: sure, properties: {preemption.delay: 1s}, resources: {guaranteed: {vcore: 2000m}}}"
TREES = (
    queues(DEFAULT, SMALL, SURE),
    queues(DEFAULT, SMALL, SURE, properties="{gang.admission: whole}"),
    queues(DEFAULT, SMALL, SURE, rules="[{name: provided, create: false}]"),
)
WORDS = ("root.default", "root.default", "root.small", "root.sure", "", "nowhere")
QUOTA = {"yunikorn.apache.org/namespace.quota": '{"cpu": "2"}'}


class Life(World):
    rng: Random
    said: list[str]

    def _effect(self, action: actions.Action) -> None:
        if isinstance(action, actions.Send):
            request = action.request
            known = request.SerializeToString(deterministic=True)
            self.said.append(f"{type(request).__name__} {known!r}")
        else:
            self.said.append(repr(action))
        super()._effect(action)

    def any_pod(self) -> objects.Pod | None:
        return self.rng.choice([*self.pods.values()]) if self.pods else None

    # -- steps -------------------------------------------------------------------------------------

    def pod(self) -> None:
        rng = self.rng
        gates = (objects.NamedReference("wait"),) if rng.random() < 0.15 else ()
        self.add_pod(
            f"p{next(self.numbers)}",
            rng.choice(("a", "b", "c", "")),
            rng.choice(("1", "1", "2", "3", "9")),
            scheduler=rng.choice(("yunikorn",) * 7 + ("another",)),
            duration=rng.choice((None, 3, 30)),
            queue=rng.choice(WORDS),
            priority=rng.choice((None, None, 0, 5)),
            namespace=rng.choice(("default",) * 4 + ("team",)),
            node=rng.choice([""] * 9 + list(self.nodes)),
            daemon=rng.choice(("",) * 9 + ("n1",)),
            scheduling_gates=gates,
        )

    def gang(self) -> None:
        rng, name = self.rng, rng_name(self)
        groups = [gang("w", rng.randint(1, 4), rng.choice(("1", "2")))]
        if rng.random() < 0.2:
            groups.append(gang("v", 1, nodeSelector=rng.choice(({}, {"zone": "far"}))))
        more: dict[str, Any] = {
            "policy": rng.choice((SOFT, HARD, HARD, "")),
            "queue": rng.choice(WORDS),
        }
        self.add_pod(
            f"d-{name}", name, group=rng.choice(("w", "")), groups=groups, duration=20, **more
        )
        for _ in range(rng.randint(0, 3)):
            self.add_pod(f"m{next(self.numbers)}", name, group="w", duration=9)

    def pod_group(self) -> None:
        rng, name = self.rng, self.rng.choice(("g", "h"))
        self.add_group(name, rng.randint(0, 3))
        if rng.random() < 0.2:
            self.remove_group(name)
        for _ in range(rng.randint(0, 3)):
            of = objects.SchedulingGroup(name)
            self.add_pod(f"{name}{next(self.numbers)}", "grouped", duration=9, scheduling_group=of)

    def member(self) -> None:
        name = rng_name(self)
        self.add_pod(f"m{next(self.numbers)}", name, group="w", duration=self.rng.choice((None, 9)))

    def delete(self) -> None:
        if pod := self.any_pod():
            self.kubelets = self.rng.random() < 0.7
            self.delete_pod(pod.uid)
            self.kubelets = True

    def finish(self) -> None:
        if (pod := self.any_pod()) and not pod.ended:
            self.end_pod(pod.uid, self.rng.choice(("Succeeded", "Failed")))

    def change(self) -> None:
        if (pod := self.any_pod()) is None:
            return
        match self.rng.randrange(6):
            case 0:
                self.resize(pod.uid, self.rng.choice(("1", "2")))
            case 1:
                self.ungate(pod.uid)
            case 2:
                self.terminate(pod.uid)
            case 3:
                # what is too large for the shim, or is no longer
                why = self.rng.choice(("", "a label of 1 MiB"))
                self.pods[pod.uid] = pod = replace(pod, refusal=why)
                self.set_pod(pod)
            case 4:
                self.inputs.append(inputs.BindEnded(pod.uid, "gone"))
            case _:
                self.set_pod(pod)

    def placed_elsewhere(self) -> None:
        pod = self.any_pod()
        if pod is not None and self.nodes and not (pod.ended or pod.spec.node_name):
            self.place(pod.uid, self.rng.choice([*self.nodes]))

    def node(self) -> None:
        rng, name = self.rng, self.rng.choice(("n1", "n2", "n3"))
        if name not in self.nodes:
            self.add_node(name, cpu=rng.choice(("2", "4")))
        elif rng.random() < 0.25:
            self.remove_node(name)
        elif rng.random() < 0.5:
            self.cordon(name, rng.random() < 0.4)
        else:
            had = self.nodes[name]
            why = rng.choice(("", "", "9000 taints"))
            self.set_node(replace(had, status=self._status(rng.choice("134")), refusal=why))

    def _status(self, cpu: str) -> objects.NodeStatus:
        ready = objects.NodeCondition("Ready", self.rng.choice(("True", "True", "False")))
        amounts = {"cpu": cpu, "memory": "64Gi", "pods": "110"}
        return objects.NodeStatus(allocatable=amounts, conditions=(ready,))

    def other_objects(self) -> None:
        high = objects.PriorityClass(objects.Metadata(name="high", uid="class-high"), value=7)
        match self.rng.randrange(4):
            case 0:
                self.inputs.append(inputs.Changed(self.rng.choice(("ADDED", "DELETED")), high))
            case 1:
                self.inputs.append(inputs.VolumesChanged())
            case 2 if "team" in self.namespaces:
                self.inputs.append(inputs.Changed("DELETED", self.namespaces.pop("team")))
            case _:
                self.add_namespace("team", **self.rng.choice((QUOTA, {})))

    def faults(self) -> None:
        rng = self.rng
        refused = rng.choice(("name_taken", "refused"))
        answers: list[tuple[type[actions.Action], Any]] = [
            (actions.Bind, failed),
            (actions.Bind, lambda bind: inputs.BindEnded(bind.pod.uid, "gone")),
            (actions.Bind, lambda bind: replace(failed(bind), step="volumes")),
            (actions.Create, lambda create: inputs.CreateEnded(*named(create), refused, "no")),
        ]
        self.answer(*rng.choice(answers), rng.randint(1, 4))

    def moods(self) -> None:
        """Of the checks before an ask and before a bind, and of the core."""
        rng = self.rng
        self.refuse_applications = rng.random() < 0.2
        why, against = rng.choice(("", "no claim")), rng.choice((None, "port is taken"))
        self.blocked_reason = lambda pod: why if pod.metadata.name[-1] in "13" else ""
        self.cache.objection = lambda uid, node: against if uid[-1] in "24" else None  # type: ignore[method-assign]

    def settings_changed(self) -> None:
        values = settings_of(self.rng) | {"queues.yaml": self.rng.choice((*TREES, "none"))}
        errors = self.rng.choice(((), (), ("a ConfigMap is no text",)))
        self.inputs.append(inputs.ConfigurationChanged(values, errors))

    def restarts(self) -> None:
        self.settle()
        self.restart() if self.rng.random() < 0.5 else self.forget_core()

    def audits(self) -> None:
        """The core and the caches do not know the same."""
        self.settle()
        others = [pod for pod in self.pods.values() if pod.spec.scheduler_name == "another"]
        ours = [pod for pod in self.pods.values() if pod not in others]
        running = [pod for pod in ours if pod.spec.node_name]
        waiting = [pod for pod in ours if pod not in running]
        if self.shim.serving and self.nodes and others and running and waiting:
            kinds = (others, running, running, waiting)
            pods = [self.rng.choice(kind) for kind in kinds]
            node = self.rng.choice([*self.nodes])
            break_it(self, self.rng.choice([*CASES]), *pods, node=node)
        for _ in range(3):
            self.said.append(repr(self.audit()))

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

    def wait(self) -> None:
        self.run(self.rng.choice((0.3, 1, 4, 10, 30, 120)))


def settings_of(rng: Random) -> dict[str, str]:
    return {
        "service.gangScaleUp": rng.choice(("true", "false")),
        "service.gangPlaceholders": rng.choice(("missing", "always")),
        "service.gangRetries": rng.choice(("0", "5", "5", "no number")),
    }


def named(create: actions.Create) -> tuple[str, str, str]:
    return create.application_id, create.group, create.manifest["metadata"]["name"]


def rng_name(life: Life) -> str:
    return life.rng.choice(("x", "y", "z"))


STEPS = {
    Life.pod: 9, Life.gang: 4, Life.member: 3, Life.pod_group: 3, Life.delete: 3, Life.finish: 3, Life.change: 4,
    Life.placed_elsewhere: 2, Life.node: 2, Life.other_objects: 1, Life.faults: 2, Life.moods: 2, Life.wait: 9,
    Life.settings_changed: 1, Life.restarts: 0.7, Life.audits: 3,
}  # fmt: skip


def shown(life: Life) -> Iterator[object]:
    shim = life.shim
    yield from (shim.dump(), shim.next_deadline(), shim.describe_next_timer(), shim.settings)
    yield from (
        life.conditions,
        life.group_conditions,
        life.core_state(),
        sorted(life.bound.items()),
    )
    yield [(shim.ask_of(uid), shim.unoffered(uid)) for uid in life.pods]


def lived(life: Life, seed: int) -> Iterator[str]:
    """Checksums of what was done and what is shown after each step."""
    folder = os.environ.get("QUADRIGA_HISTORIES")
    for step in range(60):
        life.rng.choices([*STEPS], [*STEPS.values()])[0](life)
        life.run(life.rng.choice((0, 0, 0.2, 1)))
        text = "\n".join(map(str, (*life.said, *shown(life))))
        life.said.clear()
        yield f"{crc32(text.encode()):08x}"
        if folder:
            (Path(folder) / f"k8s-{seed}-{step}").write_text(text, encoding="utf-8")


@pytest.mark.parametrize("seed", range(30))
def test_arbitrary_histories_are_those_that_are_known(seed: int) -> None:
    """After a change of behaviour, QUADRIGA_GOLDEN=write writes the checksums anew. QUADRIGA_HISTORIES names a folder
    for the texts behind them, so that ``diff`` shows what has changed."""
    rng = Random(seed)
    life = Life.__new__(Life)
    values = {**settings_of(rng), "service.gangRetries": "5"}
    life.rng, life.said = rng, []
    life.__init__(queues=rng.choice(TREES), unified=rng.random() < 0.2, values=values)  # type: ignore[misc]
    life.add_node("n1")
    found = list(lived(life, seed))
    known = json.loads(GOLDEN.read_text())
    if os.environ.get("QUADRIGA_GOLDEN") == "write":
        known[str(seed)] = " ".join(found)
        GOLDEN.write_text(json.dumps(known, indent=0) + "\n")
    assert found == known[str(seed)].split(), "at the first step that differs"
    life.wind_down()
