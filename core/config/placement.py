"""Placement rules: read and checked (2.3)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from quadriga.core.config.expression import (
    GROUP_RULE,
    USER_RULE,
    Expression,
    is_group_name,
    is_user_name,
)
from quadriga.core.config.location import Location
from quadriga.core.config.tree import PlacementFilter, PlacementRule, QueueConfig

_RULE_NAME: Final = re.compile(r"[_a-zA-Z][a-zA-Z0-9_]*")
_SPECIAL: Final = re.compile(r"[\^$*+?()\[{}|]")
"""A text without any of these characters is a mistyped name, not a regular expression."""


def read_rule(location: Location) -> PlacementRule:
    """Return the rule at `location` with its parent rules."""
    fields = location.fields("name", "create", "filter", "parent", "value")
    name = fields["name"].text()
    if _RULE_NAME.fullmatch(name) is None:
        fields["name"].problem(
            f"{name!r} is not a rule name: letters, digits and _, no digit first"
        )
    return PlacementRule(
        name=name.lower(),
        value=fields["value"].text(),
        create=fields["create"].flag(default=False),
        filter=_read_filter(fields["filter"]),
        parent=read_rule(fields["parent"]) if fields["parent"].is_set else None,
    )


def _read_filter(location: Location) -> PlacementFilter:
    fields = location.fields("type", "users", "groups")
    kind = fields["type"].text()
    if kind.lower() not in ("", "allow", "deny"):
        fields["type"].problem(f"{kind!r} is neither allow nor deny")
    return PlacementFilter(
        allow=kind.lower() != "deny",
        users=_read_names(fields["users"], "user", is_user_name, USER_RULE),
        groups=_read_names(fields["groups"], "group", is_group_name, GROUP_RULE),
    )


def _read_names(
    location: Location, kind: str, valid: Callable[[str], bool], rule: str
) -> tuple[str, ...]:
    """Return the entries of the list at `location`. A single entry may be a regular expression; the
    entries of a longer list are names.

    An invalid name in a longer list is a warning, because YuniKorn accepts such lists.
    """
    entries = location.items()
    names = tuple(entry.text() for entry in entries)
    if len(names) == 1 and not valid(names[0]) and as_pattern(names[0]) is None:
        location.problem(
            f"{names[0]!r} is neither a {kind} name nor a regular expression; a name is {rule}"
        )
    if len(names) > 1:
        for entry, name in zip(entries, names, strict=True):
            if not valid(name):
                entry.warning(f"{name!r} is not a valid {kind} name and matches no one: {rule}")
    return names


def as_pattern(text: str) -> Expression | None:
    """Return the regular expression that `text`, the only entry of a filter, stands for, or None if it
    is a name (2.3)."""
    if _SPECIAL.search(text) is None:
        return None
    try:
        return Expression(text)
    except ValueError:
        return None


def check_fixed_path(location: Location, rule: PlacementRule, root: QueueConfig) -> None:
    """Record a problem if the queue that a chain's leading fixed rules name cannot be used.

    The chain begins with the outermost parent. A value that is not fully qualified
    is below the root.
    """
    chain: list[PlacementRule] = []
    step: PlacementRule | None = rule
    while step is not None:
        chain.insert(0, step)
        step = step.parent
    values = []
    for link in chain:
        if link.name != "fixed":
            break
        values.append(link.value.lower())
        if len(values) > 1 and _qualified(link.value):
            location.problem(
                f"the fixed rule with value {link.value!r} is fully qualified; "
                "only the outermost of a chain can be"
            )
            return
    if not values:
        return
    names = ".".join(values).split(".")
    if _qualified(values[0]):
        names = names[1:]
    needs_parent = len(values) < len(chain)
    if reason := _unusable(root, names, create=rule.create, needs_parent=needs_parent):
        rules = "->".join(link.name for link in chain)
        location.problem(f"placement rule ({rules}) {reason}")


def check_own_queues(
    entries: list[Location], rules: list[PlacementRule], root: QueueConfig
) -> None:
    """Warn of a rule by which everyone may name the queue that another rule gives to one namespace or
    user (D283)."""
    for own, rule in enumerate(rules):
        chain = [rule]
        while (parent := chain[-1].parent) is not None:
            chain.append(parent)
        if rule.name == "provided" or not any(each.name in ("tag", "user") for each in chain):
            continue
        above = chain[-1].value.lower() if chain[-1].name == "fixed" else "root"
        above = above if _qualified(above) else f"root.{above}"
        submits = _open_queue(root, above)
        if submits is None:
            continue
        for at, (entry, named) in enumerate(zip(entries, rules, strict=True)):
            # behind a rule that gives everyone a queue, the one in the request does not count
            reached = at < own or not (rule.create and _is_open(rule))
            if named.name == "provided" and _is_open(named) and reached:
                title = f"{rule.name} {rule.value}".strip()
                entry.warning(
                    f"everyone may name the queue that rule {own + 1} ({title}) gives to another, and run"
                    f" at its cost, since submitacl of {submits.path} is '*': give this rule a filter, or"
                    " put it after a rule that makes the queues"
                )


def _is_open(rule: PlacementRule) -> bool:
    """Whether the rule's filter passes everyone, or everyone but some."""
    return rule.filter.allow != bool(rule.filter.users or rule.filter.groups)


def _open_queue(queue: QueueConfig, path: str) -> QueueConfig | None:
    """The first queue to which everyone may submit, of those on the path and below it."""
    if not f"{path}.".startswith(f"{queue.path}.") and not queue.path.startswith(f"{path}."):
        return None
    if queue.submit_acl.everyone or queue.admin_acl.everyone:
        return queue
    return next(filter(None, (_open_queue(child, path) for child in queue.children)), None)


def _qualified(value: str) -> bool:
    return value.lower() == "root" or value.lower().startswith("root.")


def _unusable(queue: QueueConfig, names: list[str], *, create: bool, needs_parent: bool) -> str:
    """Return why the queue `names` below `queue` cannot be used; empty if it can be used."""
    whole = ".".join(["root", *names])
    for name in names:
        below = next((child for child in queue.children if child.name == name), None)
        if below is None and not queue.parent:
            return (
                f"references a queue ({whole}) which cannot exist: {queue.path} above it is a leaf"
            )
        if below is None:
            if create:
                return ""
            return f"references a non-existing queue ({whole}) and create is false"
        queue = below
    if queue.parent == needs_parent:
        return ""
    return (
        f"references a queue ({whole}) which is {'not a parent' if needs_parent else 'not a leaf'}"
    )
