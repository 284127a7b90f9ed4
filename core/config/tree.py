"""The queue configuration as data (2.2, 2.3).

Every amount is an integer: vcore in milli, memory in bytes, other resources in
their own unit. The objects are immutable; their dictionaries must not be changed
either.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from quadriga.core.config.acl import ACL, DENY
from quadriga.core.config.location import Problem
from quadriga.core.config.properties import Properties

#: the names that ``nodesortpolicy.type`` may have
NODE_SORT_POLICIES: Final = ("fair", "binpacking", "bestfit")
#: the policy of a partition that names none, wherever its queues are used: served, simulated or checked.
#: YuniKorn's is ``fair`` (D290)
DEFAULT_NODE_SORT_POLICY: Final = "bestfit"
#: resource types that are devices where a partition declares none; further ones end in ``/gpu``
WELL_KNOWN_DEVICES: Final = ("amd.com/gpu", "gpu", "nvidia.com/gpu")
#: at most this number of partitions is listed by name
_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class LimitConfig:
    """A quota for each of the users, and for each of the groups."""

    label: str
    users: tuple[str, ...]
    groups: tuple[str, ...]
    max_resources: dict[str, int] | None
    max_applications: int
    """0 means unlimited."""


@dataclass(frozen=True, slots=True)
class ChildTemplate:
    """Settings of the dynamic leaves below a queue (2.9)."""

    max_applications: int
    """0 means unlimited."""
    properties: dict[str, str]
    guaranteed: dict[str, int] | None
    max: dict[str, int] | None


@dataclass(frozen=True, slots=True)
class QueueConfig:
    """One managed queue.

    `guaranteed` and `max` are None if they are not set, or if no amount in them is
    above zero (5.1).
    """

    name: str
    """Lower case."""
    path: str
    """From the root, dotted: ``root.a.b``."""
    parent: bool
    """True if the queue can have children; False for a leaf."""
    guaranteed: dict[str, int] | None = None
    max: dict[str, int] | None = None
    max_applications: int = 0
    """0 means unlimited."""
    properties: Properties = field(default_factory=Properties)
    raw_properties: dict[str, str] = field(default_factory=dict)
    """All properties as texts, including inherited ones (2.2.2)."""
    submit_acl: ACL = DENY
    admin_acl: ACL = DENY
    child_template: ChildTemplate | None = None
    """The template of the queue or of its nearest ancestor that has one; None for a leaf."""
    limits: tuple[LimitConfig, ...] = ()
    children: tuple[QueueConfig, ...] = ()


@dataclass(frozen=True, slots=True)
class PlacementFilter:
    """The users and groups to which a placement rule applies (2.3)."""

    allow: bool = True
    users: tuple[str, ...] = ()
    """Names. A single entry may be a regular expression."""
    groups: tuple[str, ...] = ()
    """Names. A single entry may be a regular expression."""


@dataclass(frozen=True, slots=True)
class PlacementRule:
    """One rule that finds the queue of an application (2.3)."""

    name: str
    """Lower case: ``provided``, ``fixed``, ``user``, ``tag`` or an unknown name."""
    value: str = ""
    create: bool = False
    filter: PlacementFilter = field(default_factory=PlacementFilter)
    parent: PlacementRule | None = None


@dataclass(frozen=True, slots=True)
class DeviceConfig:
    """A resource type that is counted in devices, such as GPUs."""

    name: str
    shared: bool = False
    """Whether an ask may take a share of one (Q14). Amounts are in milli of a device then."""


@dataclass(frozen=True, slots=True)
class PartitionConfig:
    """One partition: its queues, its placement rules and its policies."""

    name: str
    root: QueueConfig
    placement_rules: tuple[PlacementRule, ...]
    limits: tuple[LimitConfig, ...]
    """The limits written for the partition. The root queue has them too."""
    preemption_enabled: bool
    quota_preemption_enabled: bool
    node_sort_policy: str
    """One of `NODE_SORT_POLICIES`."""
    resource_weights: dict[str, float]
    user_group_resolver: str
    """``os`` or ``ldap``."""
    topology: tuple[str, ...] = ()
    """The labels of nodes that name domains, from wide to narrow."""
    devices: tuple[DeviceConfig, ...] | None = None
    """The resource types that are devices; None if the partition declares none, not even an empty list."""

    def is_device(self, name: str) -> bool:
        """Return whether the resource type is a device: a declared one, else one that is well known."""
        if self.devices is None:
            return name in WELL_KNOWN_DEVICES or name.endswith("/gpu")
        return any(name == device.name for device in self.devices)

    @property
    def shared_devices(self) -> tuple[str, ...]:
        """The names of the shared devices, in order."""
        return tuple(sorted(device.name for device in self.devices or () if device.shared))


@dataclass(frozen=True, slots=True)
class Configuration:
    """A whole configuration that passed every check."""

    partitions: tuple[PartitionConfig, ...]
    checksum: str
    """Upper case hexadecimal SHA-256 of the text without any checksum line."""
    warnings: tuple[Problem, ...] = ()
    """Accepted values that have no effect, such as an invalid property, or one that is seldom meant."""
    extra: dict[str, str] = field(default_factory=dict)
    """Settings of a resource manager, if the text is the output of a running configuration."""

    @property
    def node_order(self) -> str:
        """The node ordering policy of each partition, for people: ``bestfit (partition default)``."""
        names: dict[str, list[str]] = {}
        for partition in self.partitions:
            names.setdefault(partition.node_sort_policy, []).append(partition.name)
        return ", ".join(f"{policy} ({_named(names)})" for policy, names in names.items())


def _named(partitions: list[str]) -> str:
    shown, more = partitions[:_NAMED], len(partitions) - _NAMED
    listed = ", ".join(shown) + (f" and {more} more" if more > 0 else "")
    return f"partition{'s' if len(partitions) > 1 else ''} {listed}"
