"""Partitions: read and checked, except for their queues (2.2)."""

from __future__ import annotations

from typing import Final

from quadriga.core.config.limits import read_limits
from quadriga.core.config.location import Location
from quadriga.core.config.placement import check_fixed_path, check_own_queues, read_rule
from quadriga.core.config.queues import read_root
from quadriga.core.config.tree import NODE_SORT_POLICIES, DeviceConfig, PartitionConfig

#: levels of a partition
_MOST_LEVELS: Final = 8
#: a level is a label: a prefix of 253 characters at most, a slash, and a name of 63
MAX_LEVEL: Final = 317
#: characters of a level that is shown
_SHOWN: Final = 50
_DEFAULT_NAME: Final = "default"
_DEFAULT_WEIGHTS: Final = {"vcore": 1.0, "memory": 1.0}


def read_partitions(location: Location, node_sort_policy: str) -> tuple[PartitionConfig, ...]:
    """Return the partitions in the list at `location`. Names that differ only by case are a problem.

    `node_sort_policy` is the policy of partitions that name none.
    """
    partitions = []
    names: set[str] = set()
    for entry in location.items():
        partition = _read_partition(entry, node_sort_policy)
        if partition.name.lower() in names:
            entry.problem(f"there is a partition {partition.name.lower()!r} already")
        names.add(partition.name.lower())
        partitions.append(partition)
    return tuple(partitions)


def _read_partition(location: Location, node_sort_policy: str) -> PartitionConfig:
    fields = location.fields(
        "name",
        "queues",
        "placementrules",
        "limits",
        "preemption",
        "nodesortpolicy",
        "devices",
        "usergroupresolver",
        "statedumpfilepath",
        "topology",
    )
    name = fields["name"].text()
    if name.lower() in ("", _DEFAULT_NAME):
        name = _DEFAULT_NAME
    if not fields["queues"].is_set:
        location.problem("queue config is not set")
    if fields["statedumpfilepath"].is_set:
        fields["statedumpfilepath"].warning("no longer used")

    root = read_root(fields["queues"], fields["limits"])
    rules = []
    entries = fields["placementrules"].items()
    for entry in entries:
        rule = read_rule(entry)
        check_fixed_path(entry, rule, root)
        rules.append(rule)
    check_own_queues(entries, rules, root)
    preemption = fields["preemption"].fields("enabled", "quotapreemptionenabled")
    sorting = fields["nodesortpolicy"].fields("type", "resourceweights")
    resolver = fields["usergroupresolver"].fields("type")
    return PartitionConfig(
        name=name,
        root=root,
        placement_rules=tuple(rules),
        limits=read_limits(fields["limits"].without_findings()),
        preemption_enabled=preemption["enabled"].flag(default=True),
        quota_preemption_enabled=preemption["quotapreemptionenabled"].flag(default=False),
        node_sort_policy=_read_choice(sorting["type"], node_sort_policy, *NODE_SORT_POLICIES),
        resource_weights=_read_weights(sorting["resourceweights"]),
        user_group_resolver=_read_choice(resolver["type"], "os", "os", "ldap"),
        topology=_read_levels(fields["topology"]),
        devices=_read_devices(fields["devices"]),
    )


def _read_levels(location: Location) -> tuple[str, ...]:
    """Return the labels of the levels. An empty, long or repeated one is a problem, and too many are."""
    entries = location.items()
    if len(entries) > _MOST_LEVELS:
        location.problem(f"there are {len(entries)} levels, at most {_MOST_LEVELS} are allowed")
        return ()
    labels: list[str] = []
    for entry in entries:
        label = entry.text()
        if not label or len(label) > MAX_LEVEL or label in labels:
            entry.problem(
                f"{label[:_SHOWN]!r} is a level already"
                if label in labels
                else f"a level is a label of 1 to {MAX_LEVEL} characters, not of {len(label)}"
            )
        labels.append(label)
    return tuple(labels)


def _read_choice(location: Location, default: str, *known: str) -> str:
    """Return the word, which must be a known one; `default` if there is no value."""
    word = location.text() or default
    if word not in known:
        location.problem(f"{word!r} is neither {' nor '.join(known)}")
    return word


def _read_devices(location: Location) -> tuple[DeviceConfig, ...] | None:
    """Return the devices at `location`; None if there is no list. Each type is declared once."""
    if not location.is_set:
        return None
    devices: dict[str, DeviceConfig] = {}
    for entry in location.items():
        keys = entry.fields("name", "shared")
        name = keys["name"].text()
        if not name:
            entry.problem("a device needs the name of its resource type")
        elif name in ("vcore", "memory"):
            entry.problem(f"{name} is not counted in devices")
        elif name in devices:
            entry.problem(f"{name!r} is declared already")
        devices[name] = DeviceConfig(name, keys["shared"].flag(default=False))
    return tuple(devices.values())


def _read_weights(location: Location) -> dict[str, float]:
    """Return the weights at `location`, or the default weights. A negative weight is a problem."""
    entries = location.entries()
    weights = {resource: entry.number() for resource, entry in entries.items()}
    for resource, entry in entries.items():
        if weights[resource] < 0:
            entry.problem("a weight must not be negative")
    return weights or dict(_DEFAULT_WEIGHTS)
