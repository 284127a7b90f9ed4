"""The running configuration as data that could be loaded again (2.14), and the placement rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from quadriga.core.config import PartitionConfig, partition_document
from quadriga.core.config.placement import as_pattern
from quadriga.core.config.writer import write
from quadriga.core.placement import RECOVERY_QUEUE
from quadriga.fsm import QUEUE
from quadriga.fsm.lifecycles import queue as queue_fsm

if TYPE_CHECKING:
    from quadriga.core.config import PlacementFilter, PlacementRule
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.resource_manager import ResourceManager
    from quadriga.core.views.objects import PlacementObject, RuleFilter, RuleObject


@dataclass(frozen=True, slots=True)
class Configured:
    """What a resource manager is configured with: its ``partitions`` by name, the ``checksum`` of their text, and
    ``extra``, its extraConfig. None of it changes, so that the object is made outside the owner's thread."""

    partitions: tuple[PartitionConfig, ...] = ()
    checksum: str = ""
    extra: Mapping[str, str] = field(default_factory=dict)

    def as_object(self) -> dict[str, Any]:
        """The same as data. This takes long if there are many queues."""
        return {
            "partitions": [partition_document(config) for config in self.partitions],
            "checksum": self.checksum,
            "extra": dict(self.extra),
        }


def configured(rm: ResourceManager) -> Configured:
    """The running configuration of a resource manager."""
    partitions = [
        partition.config
        for _, partition in sorted(rm.partitions.items())
        if QUEUE.allows(partition.state, queue_fsm.STOP)
    ]
    return Configured(tuple(partitions), rm.configuration, dict(sorted(rm.extra.items())))


def as_yaml(configuration: Mapping[str, Any]) -> str:
    """The same as YAML, in the same order."""
    return write(dict(configuration), width=4096)


def placement_object(partition: Partition) -> PlacementObject:
    """The rules of a partition with its name, as in a state dump."""
    return {"partition": partition.name, "rules": rule_objects(partition)}


def rule_objects(partition: Partition) -> list[RuleObject]:
    """The rules in order of evaluation, with the two that are not configured: ``provided`` if there are no
    rules, and ``recovery``, which always comes last (2.3)."""
    rules = [_rule_object(rule) for rule in partition.config.placement_rules]
    if not rules:
        rules.append({"name": "provided", "parameters": {"create": "false"}})
    rules.append({"name": "recovery", "parameters": {"queue": RECOVERY_QUEUE}})
    return rules


def _rule_object(rule: PlacementRule) -> RuleObject:
    parameters = {"create": "true" if rule.create else "false"}
    if rule.name == "fixed":
        value = rule.value.lower()
        qualified = value == "root" or value.startswith("root.")
        parameters["queue"] = value
        parameters["qualified"] = "true" if qualified else "false"
    elif rule.name == "tag":
        parameters["tagName"] = rule.value.lower()
    found: RuleObject = {"name": rule.name, "parameters": dict(sorted(parameters.items()))}
    if rule.filter.users or rule.filter.groups or not rule.filter.allow:
        found["filter"] = _filter_object(rule.filter)
    if rule.parent is not None:
        found["parentRule"] = _rule_object(rule.parent)
    return found


def _filter_object(config: PlacementFilter) -> RuleFilter:
    users, user_exp = _names(config.users)
    groups, group_exp = _names(config.groups)
    return {
        "type": "allow" if config.allow else "deny",
        "userList": users,
        "groupList": groups,
        "userExp": user_exp,
        "groupExp": group_exp,
    }


def _names(names: tuple[str, ...]) -> tuple[list[str], str]:
    """The names, or the single regular expression instead of names."""
    if len(names) == 1 and as_pattern(names[0]) is not None:
        return [], names[0]
    return sorted(names), ""
