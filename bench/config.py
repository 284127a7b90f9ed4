"""Configurations: loading one, checking it, and changing a running cluster to it."""

from __future__ import annotations

from bench import Figure
from bench._support import sizes
from bench._support.cluster import RM, add_nodes, registered
from bench._support.timing import Clock, floor, median_of, per_call
from quadriga import si
from quadriga.core.config import load


def measure() -> list[Figure]:
    """Times for each queue of a large configuration (ns)."""
    base = floor()
    leaves = 10_000 if sizes.FULL else 1_000
    text, changed = _text(leaves, 100), _text(leaves, 200)
    reading = per_call(lambda: load(text), 1)

    def reload() -> float:
        scheduler = registered(text)
        add_nodes(scheduler, 100)
        request = si.UpdateConfigurationRequest(rmID=RM, config=changed)
        with Clock() as clock:
            scheduler.apply(request, 0)
        return clock.spent

    return [
        Figure("floor", base, "ns"),
        Figure(f"{leaves:,} queues: read and checked, each", reading / leaves, "ns"),
        Figure(
            f"{leaves:,} queues: a running cluster changed, each", median_of(reload) / leaves, "ns"
        ),
    ]


def _text(leaves: int, quota: int) -> str:
    lines = ["partitions:", "  - name: default", "    queues:", "      - name: root"]
    lines += ["        submitacl: '*'", "        queues:"]
    for parent in range(leaves // 50):
        lines += [f"          - name: p{parent}", "            queues:"]
        for leaf in range(50):
            lines += [f"              - name: q{leaf}", "                resources:"]
            lines.append(f"                  max: {{vcore: {quota}, memory: {quota}Gi}}")
    return "\n".join(lines) + "\n"
