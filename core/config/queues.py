"""The queue tree: read from the root down, checked on the way (2.2).

Quotas are compared as they are written, as YuniKorn does: a maximum of zero
that is below a guaranteed amount is a mistake, even though a maximum without
any amount above zero counts as not set afterwards (5.1).
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from quadriga.core.config.acl import ACL, DENY, AclError, read_acl
from quadriga.core.config.amounts import Amounts, excess, read_amounts, tighter, unless_zero
from quadriga.core.config.limits import Bounds, check_limits, read_limits
from quadriga.core.config.place import Place
from quadriga.core.config.properties import inherit, parse_properties
from quadriga.core.config.reader import Mapping, Scalar
from quadriga.core.config.tree import ChildTemplate, QueueConfig

__all__ = ["QUEUE_NAME", "ROOT", "read_root"]

ROOT: Final = "root"
QUEUE_NAME: Final = re.compile(r"[a-zA-Z0-9_:#/@-]{1,64}")
"""What a queue may be called, from YuniKorn 1.6 on; to be matched in full."""

_KEYS: Final = (
    "name",
    "parent",
    "resources",
    "maxapplications",
    "properties",
    "adminacl",
    "submitacl",
    "childtemplate",
    "queues",
    "limits",
)


@dataclass(frozen=True, slots=True)
class _Above:
    """What a queue gets from the queues above it."""

    path: str = ""
    max: Amounts | None = None
    max_applications: int = 0
    properties: dict[str, str] = field(default_factory=dict)
    template: ChildTemplate | None = None
    bounds: Bounds = field(default_factory=dict)


def read_root(queues: Place, partition_limits: Place) -> QueueConfig:
    """The root queue of a partition, inserted if `queues` is not just the root.

    The partition's limits are the root queue's; if it has its own they must be
    the same.
    """
    tops = queues.items()
    if len(tops) == 1 and _is_root(tops[0]):
        place = tops[0]
        fields = place.fields(*_KEYS)
        resources = fields["resources"].fields("guaranteed", "max")
        if resources["guaranteed"].given or resources["max"].given:
            fields["resources"].problem("root queue must not have resource limits set")
            fields["resources"] = fields["resources"].nowhere()
    else:
        place = queues.nowhere()
        fields = {**place.fields(*_KEYS), "queues": queues}
    if not fields["limits"].given:
        fields["limits"] = partition_limits
    elif partition_limits.given and read_limits(partition_limits) != read_limits(
        fields["limits"].unheard()
    ):
        partition_limits.problem("partition limits and root queue limits are not equivalent")
    root, _ = _read_queue(ROOT, place, fields, _Above())
    return root


def _is_root(place: Place) -> bool:
    name = place.node.entries.get("name") if isinstance(place.node, Mapping) else None
    return isinstance(name, Scalar) and name.text.lower() == ROOT


def _read_queue(
    name: str, place: Place, fields: dict[str, Place], above: _Above
) -> tuple[QueueConfig, Amounts]:
    """One queue with all below it, and what is guaranteed to it or, if nothing is, below it."""
    path = f"{above.path}.{name}" if above.path else name
    resources = fields["resources"].fields("guaranteed", "max")
    guaranteed = read_amounts(resources["guaranteed"])
    own_max = read_amounts(resources["max"])
    if more := excess(guaranteed, own_max):
        resources["guaranteed"].problem(f"guaranteed is larger than max: {more}")
    if more := excess(own_max, above.max):
        resources["max"].problem(f"max is larger than that of a queue above: {more}")

    max_applications = fields["maxapplications"].count()
    if above.max_applications and not 0 < max_applications <= above.max_applications:
        fields["maxapplications"].problem(
            "parent maxApplications must be larger than child maxApplications: "
            f"{max_applications or 'unlimited'} > {above.max_applications}"
        )
    raw_properties = inherit(above.properties, fields["properties"].text_map())
    properties, refused = parse_properties(raw_properties)
    for key, entry in fields["properties"].entries().items():
        if key in refused:
            entry.warning(refused[key])

    limits = read_limits(fields["limits"])
    bounds = check_limits(fields["limits"], limits, own_max, max_applications, above.bounds)
    parent = fields["parent"].flag(default=False) or path == ROOT or bool(fields["queues"].items())
    template = _read_template(fields["childtemplate"])
    if not parent and fields["childtemplate"].given:
        template = None
        fields["childtemplate"].warning("a leaf has no children that a template could be for")

    effective_max = tighter(own_max, above.max)
    template = template or (above.template if parent else None)
    down = _Above(path, effective_max, max_applications, raw_properties, template, bounds)
    children, promised = _read_children(fields["queues"], down)
    if more := excess(promised, guaranteed):
        resources["guaranteed"].problem(f"less than the sum of the children's guaranteed: {more}")
    if more := excess(promised, effective_max):
        (resources["max"] if own_max else place).problem(
            f"the sum of the children's guaranteed is larger than max: {more}"
        )
    queue = QueueConfig(
        name=name,
        path=path,
        parent=parent,
        guaranteed=unless_zero(guaranteed),
        max=unless_zero(own_max),
        max_applications=max_applications,
        properties=properties,
        raw_properties=raw_properties,
        submit_acl=_read_acl(fields["submitacl"]),
        admin_acl=_read_acl(fields["adminacl"]),
        child_template=template,
        limits=limits,
        children=children,
    )
    return queue, unless_zero(guaranteed) or promised


def _read_children(place: Place, above: _Above) -> tuple[tuple[QueueConfig, ...], Amounts]:
    children, promised = [], Counter[str]()
    names: set[str] = set()
    for child in place.items():
        fields = child.fields(*_KEYS)
        written = fields["name"].text()
        name = written.lower()
        if QUEUE_NAME.fullmatch(written) is None:
            fields["name"].problem(
                f"{written!r} is not a queue name: "
                "1 to 64 letters, digits and characters of _ - : # / @"
            )
        elif name in names:
            fields["name"].problem(f"the queue {above.path} has a child {name!r} already")
        names.add(name)
        queue, guaranteed = _read_queue(name, child, fields, above)
        children.append(queue)
        promised.update(guaranteed)
    return tuple(children), dict(promised)


def _read_template(place: Place) -> ChildTemplate | None:
    """The template at `place`; None if it says nothing."""
    fields = place.fields("maxapplications", "properties", "resources")
    resources = fields["resources"].fields("guaranteed", "max")
    template = ChildTemplate(
        max_applications=fields["maxapplications"].count(),
        properties=fields["properties"].text_map(),
        guaranteed=unless_zero(read_amounts(resources["guaranteed"])),
        max=unless_zero(read_amounts(resources["max"])),
    )
    return None if template == ChildTemplate(0, {}, None, None) else template


def _read_acl(place: Place) -> ACL:
    try:
        acl, ignored = read_acl(place.text())
    except AclError as error:
        place.problem(str(error))
        return DENY
    for sentence in ignored:
        place.warning(sentence)
    return acl
