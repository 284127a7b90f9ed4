"""The placement rules of a partition as data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadriga.core.config.placement import as_pattern
from quadriga.core.placement import RECOVERY_QUEUE

if TYPE_CHECKING:
    from quadriga.core.config import PlacementFilter, PlacementRule
    from quadriga.core.model.partition import Partition
    from quadriga.core.views.objects import PlacementObject, RuleFilter, RuleObject


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
