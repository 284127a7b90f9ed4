"""The scheduler of a real cluster, beside a real API server: ``python -m bench kubernetes [part ...]``.

etcd and the API server run on this machine, from the folder that ``.ci/cluster`` fills; nodes and pods are
nothing but objects there. Each figure is of a fresh control plane, with one scheduler at a time, and the
same watch sees the binds of all. All share the processors with the API server, so a rate is compared with
that of a loop in the same run that does nothing but bind. Small sizes are the default; ``--full`` has those
of the goals.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench import Figure
from bench._kubernetes import moments
from bench._kubernetes.deciding import Deciding
from bench._kubernetes.plane import Pods
from bench._kubernetes.runs import (
    Bound,
    bound_by_stock,
    bound_by_us,
    bound_raw,
    new_plane,
    percentile,
)
from bench._kubernetes.shapes import APART, SHAPES, add_nodes, in_turn, spread
from quadriga.cli.memory import look_less_often

_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Sizes:
    """Of the binds: nodes and pods. ``shape_nodes``: of the shapes. ``restart_nodes``, ``restart_pods``:
    of the restart. ``seconds``: of steady rates and of rest."""

    shape_nodes: int = 500
    nodes: int = 200
    pods: int = 2_000
    gang: int = 100
    restart_nodes: int = 500
    restart_pods: int = 5_000
    waiting: int = 1_000
    seconds: float = 5.0


FULL = Sizes(5_000, 1_000, 10_000, 500, 5_000, 50_000, 25_000, 15.0)


def shapes(sizes: Sizes) -> list[Figure]:
    """What the Kubernetes project measures of its own scheduler (scheduler_perf), for both schedulers."""
    figures = []
    with new_plane() as plane:
        add_nodes(plane, sizes.shape_nodes)
        for turn, shape in enumerate(SHAPES):
            stock, ours = in_turn(plane, shape, sizes.shape_nodes, turn)
            for name, found in (("kube-scheduler", stock), ("ours", ours)):
                figures += [
                    Figure(f"{shape.name}: {name}, pods a second", found.rate, "/s"),
                    Figure(
                        f"{shape.name}: {name}, its processor time of a pod", found.busy * 1e6, "us"
                    ),
                    Figure(f"{shape.name}: {name}, API server and etcd", found.server * 1e6, "us"),
                ]
            figures += [
                Figure(f"{shape.name}: ours to kube-scheduler's rate", ours.rate / stock.rate, "x"),
                Figure(f"{shape.name}: its processor time to ours", stock.busy / ours.busy, "x"),
            ]
    return figures


def binds(sizes: Sizes) -> list[Figure]:
    """K193: the rate beside the raw loop's and the stock scheduler's."""
    nodes, count = sizes.nodes, sizes.pods
    raw = [bound_raw(nodes, count)]
    ours = {}
    for applications in (1, 50):
        ours[applications] = bound_by_us(nodes, Pods(count, applications))
        # The machine may have become slower meanwhile.
        raw.append(bound_raw(nodes, count))
    stock = bound_by_stock(nodes, Pods(count))
    figures = _bound("the raw loop", raw[0])
    for number, (applications, found) in enumerate(ours.items()):
        name = f"ours, {applications} application{'s' if applications > 1 else ''}"
        beside = (raw[number].rate + raw[number + 1].rate) / 2
        figures += _bound(name, found)
        figures.append(Figure(f"{name}: the raw loop's rate to it", beside / found.rate, "x", 1.18))
    figures += _bound("kube-scheduler", stock)
    slowest, fastest = (choose(each.rate for each in raw) for choose in (min, max))
    return [
        *figures,
        Figure("ours to kube-scheduler's rate", ours[50].rate / stock.rate, "x"),
        Figure("the raw loop: fastest run to the slowest", fastest / slowest, "x"),
    ]


def _bound(name: str, found: Bound) -> list[Figure]:
    figures = [
        Figure(f"{name}: binds a second", found.rate, "/s"),
        Figure(f"{name}: processor time of a pod", found.busy / found.pods * 1e6, "us"),
        Figure(f"{name}: of the API server", found.server / found.pods * 1e6, "us"),
    ]
    threads = {_THREADS.get(thread, ""): spent for thread, spent in found.threads.items()}
    for thread, spent in threads.items():
        if thread:
            figures.append(Figure(f"{name}: of {thread}", spent / found.pods * 1e6, "us"))
    return figures


_THREADS = {
    "quadriga": "the core's thread",
    "quadriga-kubernetes": "the shim's loop",
    "quadriga-to-core": "the sender",
}


def costs(sizes: Sizes) -> list[Figure]:
    """K194: processor time of a pod while it serves, and where it goes."""
    nodes, count = sizes.nodes, sizes.pods
    raw = bound_raw(nodes, count)
    ours = bound_by_us(nodes, Pods(count, 50), arriving=True)
    a_pod = ours.busy / count
    return [
        *_bound("pods that arrive", ours),
        Figure("pods that arrive: a pod to a raw bind", a_pod / (raw.busy / count), "x"),
        *deciding(sizes),
    ]


def deciding(sizes: Sizes) -> list[Figure]:
    """The same without an API server: requests and connections are not in it."""
    figures = []
    look_less_often(serving=True)
    for name, spec, share in (
        ("equal pods", {}, 1.0),
        ("spread over 10 zones", spread(1), 1.0),
        ("no two on a node", APART, 0.5),
    ):
        count = min(sizes.pods, int(sizes.nodes * share)) if spec is APART else sizes.pods
        found = Deciding(sizes.nodes)
        try:
            bound = found.place(Pods(count, spec=spec))
        finally:
            found.close()
        if bound != count:
            raise AssertionError(f"{name}: {bound} of {count} pods were bound")
        for stage, spent in found.spent.items():
            figures.append(Figure(f"{name}: {stage}", spent / count / 1e3, "us"))
        figures.append(Figure(f"{name}: predicates of a placement", found.asked / count, ""))
        figures.append(
            Figure(f"{name}: pods a second", count * 1e9 / sum(found.spent.values()), "/s")
        )
    return figures


def constraints(sizes: Sizes) -> list[Figure]:
    """K194: pods with constraints, beside the stock scheduler."""
    figures = []
    for name, spec, count in (
        ("spread over 10 zones", spread(1), sizes.pods // 2),
        ("no two on a node", APART, min(sizes.pods // 2, sizes.nodes // 2)),
    ):
        pods = Pods(count, spec=spec)
        ours = bound_by_us(sizes.nodes, pods)
        stock = bound_by_stock(sizes.nodes, pods)
        figures += [
            Figure(f"{name}: ours, pods a second", ours.rate, "/s"),
            Figure(f"{name}: kube-scheduler, pods a second", stock.rate, "/s"),
            Figure(f"{name}: ours to kube-scheduler's rate", ours.rate / stock.rate, "x"),
        ]
    return figures


def latency(sizes: Sizes) -> list[Figure]:
    """K195: from the request that creates a pod to the request that binds it."""
    rate = 200.0
    found = moments.steady(sizes.nodes, int(rate * sizes.seconds), rate)
    figures = []
    for what, values in (("created", found.created), ("bind sent", found.bound)):
        for share in (0.5, 0.99):
            name = f"{rate:g} pods a second, {what} after: p{share * 100:g}"
            figures.append(Figure(name, percentile(values, share) * 1e3, "ms"))
    return figures


def gang(sizes: Sizes) -> list[Figure]:
    """K196."""
    seconds = moments.gang(sizes.nodes, sizes.gang)
    requests = 4 * sizes.gang
    return [
        Figure(f"a gang of {sizes.gang}: bound after", seconds, "s"),
        Figure(f"a gang of {sizes.gang}: requests a second", requests / seconds, "/s"),
    ]


def restart(sizes: Sizes) -> list[Figure]:
    """K197."""
    found = moments.restarted(sizes.restart_nodes, sizes.restart_pods)
    name = f"restart, {sizes.restart_nodes:,} nodes, {sizes.restart_pods:,} pods"
    return [
        Figure(f"{name}: all is read after", found.synced, "s"),
        Figure(f"{name}: serving after", found.ready, "s"),
        Figure(f"{name}: processor time", found.busy, "s"),
        Figure(f"{name}: memory", found.memory / _MIB, "MiB"),
        Figure(f"{name}: memory at most", found.most / _MIB, "MiB"),
    ]


def watch(sizes: Sizes) -> list[Figure]:
    """K198."""
    found = moments.changes(sizes.nodes, sizes.pods, 2_000.0, sizes.seconds)
    return [
        Figure("changes of pods: a second", found.rate, "/s"),
        Figure("changes of pods: waiting in the shim at most", found.most, ""),
        Figure("changes of pods: all heard after the last", found.emptied, "s"),
        Figure("changes of pods: processor time of each", found.busy * 1e6, "us"),
    ]


def saturated(sizes: Sizes) -> list[Figure]:
    """K199."""
    found = moments.saturated(sizes.nodes, sizes.waiting, seconds=sizes.seconds)
    name = f"{sizes.waiting:,} pods wait in a full cluster"
    return [
        Figure(f"{name}: share of a processor", found.share * 100, "%"),
        Figure(f"{name}: writes", found.writes, ""),
        Figure(f"{name}: events", found.events, ""),
    ]


#: in the order in which they run
PARTS: dict[str, Callable[[Sizes], list[Figure]]] = {
    each.__name__: each
    for each in (
        shapes, binds, costs, deciding, constraints, latency, gang, restart, watch, saturated,
    )
}  # fmt: skip


def main(words: Sequence[str]) -> None:
    from bench.__main__ import print_table

    parser = argparse.ArgumentParser(prog="python -m bench kubernetes", description=__doc__)
    parser.add_argument("part", nargs="*", help=f"what to measure: {', '.join(PARTS)}")
    parser.add_argument("--full", action="store_true", help="the sizes of the goals")
    for field in dataclasses.fields(Sizes):
        kind = float if isinstance(field.default, float) else int
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=kind)
    parser.add_argument("--json", action="store_true", help="write JSON instead of tables")
    options = parser.parse_args(words)
    if unknown := set(options.part) - set(PARTS):
        parser.error(f"no part is named {min(unknown)!r}")
    given = {
        field.name: value
        for field in dataclasses.fields(Sizes)
        if (value := getattr(options, field.name)) is not None
    }
    sizes = dataclasses.replace(FULL if options.full else Sizes(), **given)
    found = {}
    # What `costs` includes is not measured twice.
    names = options.part or [name for name in PARTS if name != "deciding"]
    for name in names:
        found[name] = PARTS[name](sizes)
        if not options.json:
            print_table(name, found[name])
    if options.json:
        figures = {
            name: [dataclasses.asdict(each) for each in rows] for name, rows in found.items()
        }
        json.dump({"sizes": dataclasses.asdict(sizes), "figures": figures}, sys.stdout, indent=1)
        print()
