"""Where a rule of v1.8.0 makes ours differ from v1.5.2: what the first difference looks like.
See D125."""

from collections.abc import Iterable

from quadriga.core.model.queue import Queue
from quadriga.fsm.lifecycles import queue as queue_fsm
from tests.oracle.observe import apps
from tests.oracle.scenario import Scenario
from tests.oracle.totals import Line
from tests.oracle.view import View

#: kinds of lines that say that the core decided something for an application
_DECIDED = ("new", "released", "state")


def limited_on_one_level(scenario: Scenario, view: View) -> bool:
    """5.1: ours decides for an application, or takes it, below queues that limit other types."""
    _, ours = view.first_apart()
    if ours is None or ours[0] not in (*_DECIDED, "accepted"):
        return False
    return any(_limits_differ(app.queue.lineage) for app in apps(view, ours[1]))


def _limits_differ(lineage: Iterable[Queue]) -> bool:
    types = [queue.max.keys() for queue in lineage if queue.max]
    return any(each != types[0] for each in types)


def another_queue_first(scenario: Scenario, view: View) -> bool:
    """5.4: the sides decide for applications of different queues; or another node is reserved."""
    if scenario.versions.first_difference == view.at and view.op.startswith(("schedule", "multi")):
        return True
    theirs, ours = view.first_apart()
    if view.op == "dump":
        return all(line[0] == "node" and line[2] == "reserved" for line in _apart(view))
    if theirs is None or ours is None or not {theirs[0], ours[0]} <= set(_DECIDED):
        return False
    one, other = _leaf(view, theirs), _leaf(view, ours)
    return one is not None and other is not None and one is not other


def not_held_up_by_a_required_node(scenario: Scenario, view: View) -> bool:
    """5.6: ours decides for an application of which an ask requires a node."""
    _, ours = view.first_apart()
    if view.op == "dump":
        return all(line[0] == "node" and line[2] == "reserved" for line in _apart(view))
    if ours is None or ours[0] not in _DECIDED:
        return False
    return any(a == ours[1] and ask.required_node for (a, _), ask in view.facts.asks.items())


def goes_to_a_draining_queue(scenario: Scenario, view: View) -> bool:
    """X33: theirs takes an application that ours refuses, and its queue is draining."""
    taken = {line[1] for _, line in view.lines("accepted", missing=True)}
    refused = {line[1] for _, line in view.lines("rejected", missing=False)}
    apart = _apart(view)
    return bool(
        taken == refused
        and all(line[0] in ("accepted", "rejected") for line in apart)
        and any(
            queue.state == queue_fsm.DRAINING
            for partition in view.core.partitions()
            for queue in partition.queues()
        )
        and taken
    )


def _apart(view: View) -> list[Line]:
    return [line for _, line in (*view.missing, *view.extra)]


def _leaf(view: View, line: Line) -> Queue | None:
    return next((app.queue for app in apps(view, line[1])), None)
