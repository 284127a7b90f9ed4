"""Nodes for traces that list none: ``100x64vcore,256Gi,8gpu`` is a hundred equal nodes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from decimal import Decimal

from quadriga.sim.workload.amounts import (
    MAX_COUNT,
    MEMORY_UNITS,
    VCORE_UNITS,
    amount,
    number,
    quoted,
)
from quadriga.sim.workload.model import GPU, MEMORY, VCORE, Job, Member, NodeSpec, Resources

_GROUP = re.compile(r"(\d{1,9})x(.+)")
_AMOUNT = re.compile(r"(\d{1,20}(?:\.\d{1,9})?)([A-Za-z][\w./-]*)")


def parse_nodes(groups: Iterable[str]) -> tuple[NodeSpec, ...]:
    """The nodes of all groups, numbered ``node-1`` to ``node-N``.

    A group is ``COUNTxAMOUNT,AMOUNT,...``, and after an ``@`` the labels of its nodes may follow as
    ``NAME=VALUE,...``. An amount is a number with a unit: ``vcore`` or ``m``
    (milli), a unit of memory (``Gi``, ``Mi``, ``G``, ...), ``gpu``, or the name of another resource
    (``2example.com/fpga``). Raises `ValueError` with one line.
    """
    nodes: list[NodeSpec] = []
    for text in groups:
        sizes, _, said = text.partition("@")
        match = _GROUP.fullmatch(sizes)
        if match is None or not int(match[1]):
            raise ValueError(f"{quoted(text)} is not a group of nodes such as 100x64vcore,256Gi")
        if len(nodes) + int(match[1]) > MAX_COUNT:
            raise ValueError(f"more than {MAX_COUNT} nodes")
        nodes += [NodeSpec("", _resources(text, match[2]), _labels(text, said))] * int(match[1])
    return numbered(nodes)


def _labels(group: str, text: str) -> dict[str, str]:
    labels: dict[str, str] = {}
    for part in text.split(",") if text else ():
        name, _, value = part.partition("=")
        if not name or not value or name in labels:
            raise ValueError(f"{quoted(group)}: {quoted(part)} is not a new label such as rack=r1")
        labels[name] = value
    return labels


def numbered(nodes: Collection[NodeSpec]) -> tuple[NodeSpec, ...]:
    """These nodes, with equally long names in order."""
    width = len(str(len(nodes)))
    return tuple(
        NodeSpec(f"node-{n:0{width}d}", dict(each.resources), dict(each.attributes))
        for n, each in enumerate(nodes, 1)
    )


def _resources(group: str, text: str) -> Resources:
    resources: Resources = {}
    for part in text.split(","):
        match = _AMOUNT.fullmatch(part)
        if match is None:
            raise ValueError(f"{quoted(group)}: {quoted(part)} is not an amount such as 64vcore")
        name, factor = _unit(group, match[2])
        if name in resources:
            raise ValueError(f"{quoted(group)}: {name} is given twice")
        try:
            resources[name] = amount(number(match[1]) * factor)
        except ValueError as error:
            raise ValueError(f"{quoted(group)}: {error}") from None
    return resources


def _unit(group: str, unit: str) -> tuple[str, Decimal]:
    if unit in VCORE_UNITS:
        return VCORE, Decimal(VCORE_UNITS[unit])
    if unit in MEMORY_UNITS:
        return MEMORY, Decimal(MEMORY_UNITS[unit])
    if unit in ("gpu", GPU):
        return GPU, Decimal(1)
    if "/" in unit:
        return unit, Decimal(1)
    known = ", ".join((*VCORE_UNITS, *MEMORY_UNITS, "gpu"))
    raise ValueError(
        f"{quoted(group)}: there is no unit {quoted(unit)}; known are {known}"
        " and names with a slash, such as example.com/fpga"
    )


def without_unknown_memory(jobs: Iterable[Job], nodes: Sequence[NodeSpec]) -> tuple[Job, ...]:
    """The jobs, without their requests for memory if no node tells how much it has: memory is then
    no constraint, rather than one that nothing meets."""
    if any(node.resources.get(MEMORY) for node in nodes):
        return tuple(jobs)
    return tuple(
        replace(
            job,
            members=tuple(
                Member(
                    member.count,
                    {name: n for name, n in member.resources.items() if name != MEMORY},
                )
                for member in job.members
            ),
        )
        for job in jobs
    )
