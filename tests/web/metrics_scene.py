"""A scheduler to which everything has happened that metrics tell of, and what its page says then."""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from quadriga.core import Options
from quadriga.core.driver.service import SchedulerService
from quadriga.core.driver.slices import Slices, read_in_slices
from quadriga.sim.scripted.script import Script
from quadriga.web.metrics import Metrics
from quadriga.web.site import Measured

CONFIG = """\
partitions:
  - name: default
    placementrules:
      - name: provided
        create: true
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: batch
            maxapplications: 50
            resources: {guaranteed: {vcore: 1}, max: {vcore: 60, memory: 100000}}
          - name: needy
            resources: {guaranteed: {vcore: 40}}
            properties: {preemption.delay: 1s}
          - name: gangs
            resources: {max: {vcore: 20}}
            properties: {application.sort.policy: fifo}
          - name: made
            parent: true
"""

Labels = frozenset[tuple[str, str]]


def service_of(**options: Any) -> SchedulerService:
    """A service that does nothing by itself, at an instant that never changes."""
    return SchedulerService(
        Options(journal_size=None, gang_admission="whole", node_sort_policy="fair", **options),
        manual=True,
        clock=lambda: 1_700_000_000 * 10**9,
    )


def metrics_of(service: SchedulerService, **options: Any) -> Metrics:
    return Metrics(service, **options)


def served() -> Iterator[Measured]:
    """What ``quadriga serve`` adds: of a server that has one resource manager, and of its files."""
    from quadriga.cli.serving.grpc_part import measured

    session = SimpleNamespace(backlog=7, dropped=0)
    refused = {"RESOURCE_EXHAUSTED": 1}
    server: Any = SimpleNamespace(
        streams=3, sessions={"rm": session}, refused=refused, connections=SimpleNamespace(closed=1)
    )
    yield from measured(server)
    yield "quadriga_journal_file_lost_total", "counter", "Lost.", [({}, 0)]
    outcomes = [({"outcome": outcome}, 1) for outcome in ("taken", "refused")]
    yield "quadriga_reloads_total", "counter", "Reloads.", outcomes


def values(text: str, label: str) -> set[str]:
    """All that a label says anywhere."""
    return {value for _, labels in samples(text) for name, value in labels if name == label}


def scrape(metrics: Metrics, service: SchedulerService) -> str:
    return metrics.plain(read_in_slices(service, Slices[Any](metrics.look)).result()).decode()


@lru_cache(maxsize=2)
def samples(text: str) -> dict[tuple[str, Labels], float]:
    """Every sample by name and labels; there must not be two of a kind."""
    found: dict[tuple[str, Labels], float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            name = sample.name
            if f"\n{name}" not in text:  # the parser adds it to every counter that has it not
                name = name.removesuffix("_total")
            key = name, frozenset(sample.labels.items())
            assert key not in found, key
            found[key] = sample.value
    return found


@lru_cache(maxsize=2)
def families(text: str) -> dict[str, tuple[str, str, frozenset[str]]]:
    """By the name in the TYPE line: type, help, and the names of the labels but ``le``."""
    found: dict[str, tuple[str, str, set[str]]] = {}
    for line in text.splitlines():
        if line.startswith("# HELP "):
            _, _, name, help = line.split(" ", 3)
            assert name not in found, f"{name} comes twice"
            found[name] = "", help, set()
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            found[name] = kind, found[name][1], set()
    for (name, labels), _ in samples(text).items():
        family = next(n for n in _may_belong_to(name) if n in found)
        found[family][2].update(label for label, _ in labels if label != "le")
    return {name: (kind, help, frozenset(labels)) for name, (kind, help, labels) in found.items()}


def _may_belong_to(name: str) -> Iterable[str]:
    yield name
    for suffix in ("_bucket", "_sum", "_count"):
        yield name.removesuffix(suffix)


def played(service: SchedulerService) -> Script:
    """Gangs in every phase, waits, preemption, reservations, rejections, a watchdog's report."""
    script = Script(CONFIG, scheduler=service.scheduler)
    for number in range(5):
        script.node(f"n{number}", vcore=16_000, memory=64_000)
    script.node("n0", vcore=1)  # known already
    script.app("done", "root.batch")
    script.ask("done", "pod", vcore=100, memory=10)
    script.schedule()
    script.advance(7)
    script.release("done")
    script.app("made", "root.made.here", user="somebody")
    script.ask("made", "pod", vcore=100)
    script.schedule()
    script.app("made")  # no such queue, and an id that is taken
    script.app("nowhere", "root.batch.below")
    script.ask("unknown", "pod", vcore=100)
    script.ask("made", "nothing")
    _gangs(script)
    _preemption(script)
    script.advance(1)
    script.app("wide", "root.batch")
    script.ask("wide", "too-big", vcore=15_500)
    script.schedule()
    script.advance(3)
    script.schedule()
    script.advance(61)  # a release is asked for again
    return script


def _gangs(script: Script) -> None:
    size = {"vcore": 2_000}
    script.app("gang", "root.gangs", gang=size)
    script.ask("gang", "p0", "p1", group="tg", placeholder=True, vcore=1_000)
    script.schedule()
    script.advance(2)
    script.ask("gang", "r0", group="tg", vcore=1_000)
    script.schedule()
    script.confirm()
    script.ask("gang", "r1", group="tg", vcore=1_000)
    script.schedule()  # asked back, and nobody confirms
    script.app("late", "root.gangs", gang=size, timeout_ms=1_000)
    script.ask("late", "p", group="tg", placeholder=True, vcore=1_000)
    script.schedule()
    script.outstanding.clear()
    script.advance(2)
    script.confirm()
    script.app("gathers", "root.gangs", gang={"vcore": 9_000})
    script.ask("gathers", "p", group="tg", placeholder=True, vcore=1_000)
    script.schedule()
    script.app("gated", "root.gangs", gang={"vcore": 19_000})
    script.ask("gated", "p", group="tg", placeholder=True, vcore=1_000)
    script.schedule()


def _preemption(script: Script) -> None:
    """All nodes are full of a queue above its guarantee when one comes that is below."""
    script.app("greedy", "root.batch")
    script.ask("greedy", "pods", vcore=1_000, repeat=200, preempt=(True, False))
    script.schedule()
    script.app("filler", "root.made.here")
    script.ask("filler", "pods", vcore=100, repeat=900, preempt=(False, False))
    script.schedule()
    script.app("below", "root.needy")
    script.ask("below", "pod", vcore=1_000, preempt=(True, True))
    script.schedule()
    script.advance(2)
    script.schedule()
