"""A configuration as a document. Loading the document gives the same configuration.

The document has no comments, and amounts are whole numbers in base units (vcore with ``m``). The full
form also contains defaults and inherited values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quadriga.core.config.acl import ACL, WILDCARD
from quadriga.core.config.properties import inherit
from quadriga.core.config.quantities import VCORE
from quadriga.core.config.tree import (
    ChildTemplate,
    Configuration,
    LimitConfig,
    PartitionConfig,
    PlacementRule,
    QueueConfig,
)

Document = dict[str, Any]


def as_document(configuration: Configuration) -> Document:
    """Return the full form, which consists of dictionaries, lists, texts, numbers and booleans."""
    return {"partitions": [partition_document(p, full=True) for p in configuration.partitions]}


def partition_document(config: PartitionConfig, *, full: bool = False) -> Document:
    """Return one partition. Only the full form contains inherited values and defaults without effect."""
    resolver = {"type": config.user_group_resolver}
    devices = [
        {"name": device.name, **_some("shared", device.shared)} for device in config.devices or ()
    ]
    return {
        "name": config.name,
        "queues": [_queue(config.root, None, full)],
        **_some("placementrules", [_rule(rule) for rule in config.placement_rules]),
        **_some("limits", [_limit(limit) for limit in config.limits]),
        "preemption": {
            "enabled": config.preemption_enabled,
            "quotapreemptionenabled": config.quota_preemption_enabled,
        },
        "nodesortpolicy": {
            "type": config.node_sort_policy,
            "resourceweights": dict(sorted(config.resource_weights.items())),
        },
        **_some("topology", list(config.topology)),
        **({"devices": devices} if config.devices is not None else {}),
        **({"usergroupresolver": resolver} if full or resolver["type"] != "os" else {}),
    }


def _queue(config: QueueConfig, above: QueueConfig | None, full: bool) -> Document:
    inherited = inherit(above.raw_properties, {}) if above is not None and not full else {}
    own = {k: v for k, v in sorted(config.raw_properties.items()) if inherited.get(k) != v}
    template = config.child_template
    if not full and above is not None and template == above.child_template:
        template = None
    return {
        "name": config.name,
        **({"parent": config.parent} if full or config.parent else {}),
        **_some("resources", _resources(config)),
        **_some("maxapplications", config.max_applications),
        **_some("properties", own),
        **_some("adminacl", _acl(config.admin_acl)),
        **_some("submitacl", _acl(config.submit_acl)),
        **_some("childtemplate", _template(template) if template is not None else {}),
        **_some("limits", [_limit(limit) for limit in config.limits]),
        **_some("queues", [_queue(child, config, full) for child in config.children]),
    }


def _some(key: str, value: object) -> Document:
    """Return the key with its value; empty if the value is empty or zero."""
    return {key: value} if value else {}


def _template(template: ChildTemplate) -> Document:
    return {
        **_some("maxapplications", template.max_applications),
        **_some("properties", dict(sorted(template.properties.items()))),
        **_some("resources", _resources(template)),
    }


def _resources(of: QueueConfig | ChildTemplate) -> Document:
    return {
        **_some("guaranteed", _amounts(of.guaranteed or {})),
        **_some("max", _amounts(of.max or {})),
    }


def _amounts(quantities: Mapping[str, int]) -> dict[str, str]:
    return {
        name: f"{value}m" if name == VCORE else str(value)
        for name, value in sorted(quantities.items())
    }


def _acl(acl: ACL) -> str:
    if acl.everyone:
        return WILDCARD
    users, groups = ",".join(sorted(acl.users)), ",".join(sorted(acl.groups))
    return f"{users} {groups}" if groups else users


def _limit(limit: LimitConfig) -> Document:
    return {
        "limit": limit.label,
        **_some("users", list(limit.users)),
        **_some("groups", list(limit.groups)),
        **_some("maxresources", _amounts(limit.max_resources or {})),
        **_some("maxapplications", limit.max_applications),
    }


def _rule(rule: PlacementRule) -> Document:
    names = {
        **_some("users", list(rule.filter.users)),
        **_some("groups", list(rule.filter.groups)),
    }
    kind = "allow" if rule.filter.allow else "deny"
    return {
        "name": rule.name,
        "create": rule.create,
        **_some("value", rule.value),
        **_some("filter", {"type": kind, **names} if names or kind == "deny" else {}),
        **_some("parent", _rule(rule.parent) if rule.parent is not None else {}),
    }
