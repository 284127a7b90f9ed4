"""The rules about gang members and their placeholders that explain single lines; see ``explain``."""

from collections.abc import Iterator

from quadriga.core.model.allocation import Allocation
from quadriga.core.resources.vectors import covers
from tests.oracle.observe import apps
from tests.oracle.totals import Line
from tests.oracle.view import View


def gang_without_announcement(view: View) -> None:
    """X35: placeholder asks make a gang of an application that announced none."""
    for said, line in view.lines("state", missing=False):
        for app in apps(view, line[1]):
            if (
                line[2] == "Running"
                and app.is_gang
                and not app.gang.announced
                and not app.allocations
            ):
                view.allow_extra("X35", said)
                view.stop("X35", f"{line[1]} runs with its last placeholder here")
    for said, line in view.lines("new", missing=True):
        for app in apps(view, line[1]):
            if not line[5] and not app.gang.announced and app.is_gang and app.holding:
                view.allow_missing("X35", said)
                view.stop("X35", f"{line[1]}/{line[2]} is held here", said)


def member_without_placeholder(view: View) -> None:
    """X36: a real ask without a placeholder is served at once; there after its group's confirmations."""
    for said, line in view.lines("new", missing=False):
        for app in apps(view, line[1]):
            group = app.gang.task_groups.get(line[6])
            if not line[5] and group is not None and group.allocated and not group.can_replace:
                view.allow_extra("X36", said)
                view.stop("X36", f"{line[1]}/{line[2]} waits for a confirmation there", said)


def one_for_one(view: View) -> None:
    """X37: a larger real ask takes over one placeholder, or none; there all of its group are given back."""
    groups = {
        (each.ask.app.app_id, each.ask.task_group)
        for _, line in view.lines("released", missing=False)
        for each in _placeholders(view, line[1])
        if each.partner is not None and not covers(each.vector, each.partner.vector)
    }
    for said, line in view.lines("released", missing=False):
        placeholder = _placeholder(view, line)
        if line[3] == "PLACEHOLDER_REPLACED" and placeholder is not None:
            if (line[1], placeholder.ask.task_group) in groups:
                view.allow_extra("X37", said)
                view.stop("X37", f"a larger member of {line[1]} takes over {line[2]} alone")
    for said, line in view.lines("released", missing=True):
        placeholder = _placeholder(view, line)
        if (
            placeholder is None
            or line[3] != "TIMEOUT"
            or not view.op.startswith(("sched", "multi"))
        ):
            continue
        name = line[1], placeholder.ask.task_group
        waiting = placeholder.ask.app.groups.values()
        if name in groups or any(
            g.too_large_to_replace and g.task_group == name[1] for g in waiting
        ):
            view.allow_missing("X37", said)
            view.stop("X37", f"{line[1]}/{line[2]} is too small and stays here")


def another_node_than_one_that_drains(view: View) -> None:
    """X39: a member takes no placeholder's place on a draining node: it waits or lands elsewhere."""
    for said, line in view.lines("released", missing=True):
        placeholder = _placeholder(view, line)
        if placeholder is not None and line[3] == "PLACEHOLDER_REPLACED":
            if not placeholder.node.open:
                view.allow_missing("X39", said)
                view.stop("X39", f"{line[1]}/{line[2]} is on a draining node")
    closed = {
        node.node_id
        for partition in view.core.partitions()
        for node in partition.nodes.values()
        if not node.open
    }
    elsewhere = {}
    for said, line in view.lines("new", missing=True):
        if view.op == "confirm" and line[3] in closed and not line[5]:
            view.allow_missing("X39", said)
            elsewhere[line[1:3]] = line[3]
    for said, line in view.lines("new", missing=False):
        if line[1:3] in elsewhere and line[3] not in closed:
            view.allow_extra("X39", said)
    for (app_id, key), node_id in elsewhere.items():
        view.stop("X39", f"{app_id}/{key} lands on draining node {node_id} there")
    for theirs, ours in view.total_pairs():
        if ours[1][:3] in _planned_elsewhere(view):
            view.allow_missing("X39", theirs)
            view.allow_extra("X39", ours)


def _planned_elsewhere(view: View) -> set[Line]:
    return {
        ("node", real.node.node_id, "allocated")
        for partition in view.core.partitions()
        for node in partition.nodes.values()
        for real in node.allocations
        if real.partner is not None and not real.placeholder and not real.partner.node.open
    }


def _placeholder(view: View, line: Line) -> Allocation | None:
    """The placeholder that ours still has under this key."""
    return next((e for e in _placeholders(view, line[1]) if e.ask.ask_key == line[2]), None)


def _placeholders(view: View, app_id: str) -> Iterator[Allocation]:
    for app in apps(view, app_id):
        yield from app.placeholders.values()
