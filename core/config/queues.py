"""The queue tree: read and checked from the root down (2.2).

As in YuniKorn, quotas are compared as they are written: a max of zero that is
below a guaranteed amount is a problem, although a max without any amount above
zero later counts as not set (5.1).
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from quadriga.core.config.acl import ACL, DENY, AclError, read_acl
from quadriga.core.config.limits import Bounds, check_limits, read_limits
from quadriga.core.config.location import Location
from quadriga.core.config.properties import inherit, parse_properties, unknown_properties
from quadriga.core.config.quantities import Amounts, excess, read_amounts, tighter, unless_zero
from quadriga.core.config.reader import Mapping, Scalar
from quadriga.core.config.tree import ChildTemplate, QueueConfig

ROOT: Final = "root"
QUEUE_NAME: Final = re.compile(r"[a-zA-Z0-9_:#/@-]{1,64}")
"""Matches the whole of a valid queue name, as in YuniKorn since 1.6."""

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
class _Inherited:
    """Everything that a queue inherits from the queues above it, or is checked against."""

    path: str = ""
    max: Amounts | None = None
    max_applications: int = 0
    properties: dict[str, str] = field(default_factory=dict)
    template: ChildTemplate | None = None
    bounds: Bounds = field(default_factory=dict)


def read_root(queues: Location, partition_limits: Location) -> QueueConfig:
    """Return the root queue of a partition. A root is inserted unless `queues` contains only a root.

    The partition's limits apply to the root queue. If the root queue has limits of its
    own, both must be equal.
    """
    tops = queues.items()
    if len(tops) == 1 and _is_root(tops[0]):
        location = tops[0]
        fields = location.fields(*_KEYS)
        resources = fields["resources"].fields("guaranteed", "max")
        if resources["guaranteed"].is_set or resources["max"].is_set:
            fields["resources"].problem("root queue must not have resource limits set")
            fields["resources"] = fields["resources"].as_absent()
    else:
        location = queues.as_absent()
        fields = {**location.fields(*_KEYS), "queues": queues}
    if not fields["limits"].is_set:
        fields["limits"] = partition_limits
    elif partition_limits.is_set and read_limits(partition_limits) != read_limits(
        fields["limits"].without_findings()
    ):
        partition_limits.problem("partition limits and root queue limits are not equivalent")
    root, _ = _read_queue(ROOT, location, fields, _Inherited())
    return root


def _is_root(location: Location) -> bool:
    name = location.node.entries.get("name") if isinstance(location.node, Mapping) else None
    return isinstance(name, Scalar) and name.text.lower() == ROOT


def _read_queue(
    name: str, location: Location, fields: dict[str, Location], above: _Inherited
) -> tuple[QueueConfig, Amounts]:
    """Return a queue with its children, and its guaranteed amounts; if it has none, the sum of its
    children's."""
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
    _warn_of_properties(fields["properties"], refused)

    limits = read_limits(fields["limits"])
    bounds = check_limits(fields["limits"], limits, own_max, max_applications, above.bounds)
    parent = fields["parent"].flag(default=False) or path == ROOT or bool(fields["queues"].items())
    template = _read_template(fields["childtemplate"])
    if not parent and fields["childtemplate"].is_set:
        template = None
        fields["childtemplate"].warning("a template has no effect on a leaf, which has no children")

    effective_max = tighter(own_max, above.max)
    template = template or (above.template if parent else None)
    down = _Inherited(path, effective_max, max_applications, raw_properties, template, bounds)
    children, guaranteed_below = _read_children(fields["queues"], down)
    if more := excess(guaranteed_below, guaranteed):
        resources["guaranteed"].problem(f"less than the sum of the children's guaranteed: {more}")
    if more := excess(guaranteed_below, effective_max):
        (resources["max"] if own_max else location).problem(
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
    return queue, unless_zero(guaranteed) or guaranteed_below


def _read_children(
    location: Location, above: _Inherited
) -> tuple[tuple[QueueConfig, ...], Amounts]:
    children, guaranteed_below = [], Counter[str]()
    names: set[str] = set()
    for child in location.items():
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
        guaranteed_below.update(guaranteed)
    return tuple(children), dict(guaranteed_below)


def _warn_of_properties(location: Location, refused: dict[str, str]) -> None:
    """Warn of properties without effect: values that were ``refused``, and names that are unknown."""
    entries = location.entries()
    reasons = {**refused, **unknown_properties(entries)}
    for key, entry in entries.items():
        if key in reasons:
            entry.warning(reasons[key])


def _read_template(location: Location) -> ChildTemplate | None:
    """Return the template at `location`; None if it sets nothing."""
    fields = location.fields("maxapplications", "properties", "resources")
    resources = fields["resources"].fields("guaranteed", "max")
    template = ChildTemplate(
        max_applications=fields["maxapplications"].count(),
        properties=_template_properties(fields["properties"]),
        guaranteed=unless_zero(read_amounts(resources["guaranteed"])),
        max=unless_zero(read_amounts(resources["max"])),
    )
    return None if template == ChildTemplate(0, {}, None, None) else template


def _template_properties(location: Location) -> dict[str, str]:
    raw = location.text_map()
    _warn_of_properties(location, parse_properties(raw)[1])
    return raw


def _read_acl(location: Location) -> ACL:
    try:
        acl, ignored = read_acl(location.text())
    except AclError as error:
        location.problem(str(error))
        return DENY
    for sentence in ignored:
        location.warning(sentence)
    return acl
