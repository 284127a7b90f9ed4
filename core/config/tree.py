"""What a queue configuration says, as data (2.2, 2.3).

Every amount is an integer: vcore in milli, memory in bytes, other resources in
their own unit. Nothing here is changed after it is built; the dictionaries are
not to be written to either.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from quadriga.core.config.acl import ACL, DENY
from quadriga.core.config.place import Problem
from quadriga.core.config.properties import Properties

__all__ = [
    "ChildTemplate",
    "Configuration",
    "LimitConfig",
    "PartitionConfig",
    "PlacementFilter",
    "PlacementRule",
    "QueueConfig",
]


@dataclass(frozen=True, slots=True)
class LimitConfig:
    """A quota for each of the users, and one shared by each of the groups."""

    label: str
    users: tuple[str, ...]
    groups: tuple[str, ...]
    max_resources: dict[str, int] | None
    max_applications: int
    """0 is unlimited."""


@dataclass(frozen=True, slots=True)
class ChildTemplate:
    """What a dynamic leaf below the queue gets (2.9)."""

    max_applications: int
    """0 is unlimited."""
    properties: dict[str, str]
    guaranteed: dict[str, int] | None
    max: dict[str, int] | None


@dataclass(frozen=True, slots=True)
class QueueConfig:
    """One managed queue.

    `guaranteed` and `max` are None where they are not set, which includes a
    map without any amount above zero (5.1).
    """

    name: str
    """Lower case."""
    path: str
    """From the root, dotted: ``root.a.b``."""
    parent: bool
    """Whether it may have children; False is a leaf."""
    guaranteed: dict[str, int] | None = None
    max: dict[str, int] | None = None
    max_applications: int = 0
    """0 is unlimited."""
    properties: Properties = field(default_factory=Properties)
    raw_properties: dict[str, str] = field(default_factory=dict)
    """All properties as texts, the inherited ones merged in (2.2.2)."""
    submit_acl: ACL = DENY
    admin_acl: ACL = DENY
    child_template: ChildTemplate | None = None
    """The queue's own template or its nearest ancestor's; None on a leaf."""
    limits: tuple[LimitConfig, ...] = ()
    children: tuple[QueueConfig, ...] = ()


@dataclass(frozen=True, slots=True)
class PlacementFilter:
    """Whom a placement rule is for (2.3)."""

    allow: bool = True
    users: tuple[str, ...] = ()
    """Names; a single entry may be a regular expression."""
    groups: tuple[str, ...] = ()
    """Names; a single entry may be a regular expression."""


@dataclass(frozen=True, slots=True)
class PlacementRule:
    """One rule that finds the queue of an application (2.3)."""

    name: str
    """Lower case: ``provided``, ``fixed``, ``user``, ``tag``, or one not known here."""
    value: str = ""
    create: bool = False
    filter: PlacementFilter = field(default_factory=PlacementFilter)
    parent: PlacementRule | None = None


@dataclass(frozen=True, slots=True)
class PartitionConfig:
    """One partition: its queues, and how it places, sorts and preempts."""

    name: str
    root: QueueConfig
    placement_rules: tuple[PlacementRule, ...]
    limits: tuple[LimitConfig, ...]
    """As written on the partition; the root queue has them too."""
    preemption_enabled: bool
    quota_preemption_enabled: bool
    node_sort_policy: str
    """``fair`` or ``binpacking``."""
    resource_weights: dict[str, float]
    user_group_resolver: str
    """``os`` or ``ldap``."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """A whole configuration that passed every check."""

    partitions: tuple[PartitionConfig, ...]
    checksum: str
    """Upper case hexadecimal SHA-256 of the text without any checksum line."""
    warnings: tuple[Problem, ...] = ()
    """What was accepted but has no effect, such as a property that cannot be read."""
    extra: dict[str, str] = field(default_factory=dict)
    """Settings of a resource manager, where the text is a running configuration that was shown."""
