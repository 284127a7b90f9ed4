"""What a dump says of applications, queues and nodes, one line for each total."""

from collections.abc import Callable, Mapping
from typing import Any

from quadriga.core import Scheduler
from quadriga.core.runtime.dialect import Dialect

Line = tuple[Any, ...]

_ENDED = ("Completed", "Failed", "Rejected", "Expired")


def _quantities(mapping: Mapping[str, int] | None) -> Line:
    return tuple(sorted((name, value) for name, value in (mapping or {}).items() if value))


def their_totals(done: Mapping[str, Any], state: Callable[[str, str], str]) -> dict[str, set[Line]]:
    """The parts that this dump has. ``state`` is the name that an application's state has here."""
    found: dict[str, set[Line]] = {}
    if "apps" in done:
        found["apps"] = {
            line
            for app in done["apps"] or ()
            if app["applicationState"] not in _ENDED
            for line in _app(app, state)
        }
    if "queues" in done:
        found["queues"] = {line for q in done["queues"] or () for line in _queue_and_below(q)}
    if "nodes" in done:
        found["nodes"] = {
            line
            for partition in done["nodes"] or ()
            for node in partition.get("nodesInfo") or ()
            for line in _node(node)
        }
    return found


def _app(app: Mapping[str, Any], state: Callable[[str, str], str]) -> list[Line]:
    app_id = app["applicationID"]
    return [
        ("app", app_id, "state", state(app_id, app["applicationState"])),
        ("app", app_id, "queue", app["queueName"]),
        ("app", app_id, "used", _quantities(app.get("usedResource"))),
        ("app", app_id, "pending", _quantities(app.get("pendingResource"))),
        *(
            ("app", app_id, "group", group["taskGroupName"], what, group.get(what, 0))
            for group in app.get("placeholderData") or ()
            for what in ("count", "replaced", "timedout")
        ),
    ]


def _queue_and_below(queue: Mapping[str, Any]) -> list[Line]:
    path = queue["queuename"]
    found: list[Line] = [
        ("queue", path, "status", queue["status"]),
        ("queue", path, "allocated", _quantities(queue.get("allocatedResource"))),
        ("queue", path, "pending", _quantities(queue.get("pendingResource"))),
        ("queue", path, "running", queue.get("runningApps", 0)),
    ]
    for child in queue.get("children") or ():
        found.extend(_queue_and_below(child))
    return found


def _node(node: Mapping[str, Any]) -> list[Line]:
    node_id = node["nodeID"]
    return [
        ("node", node_id, "capacity", _quantities(node.get("capacity"))),
        ("node", node_id, "allocated", _quantities(node.get("allocated"))),
        ("node", node_id, "schedulable", node.get("schedulable", False)),
        ("node", node_id, "reserved", node.get("isReserved", False)),
    ]


def our_totals(core: Scheduler) -> dict[str, set[Line]]:
    found: dict[str, set[Line]] = {"apps": set(), "queues": set(), "nodes": set()}
    for partition in core.partitions():
        names = partition.registry.mapping
        dialect = Dialect(partition.rm.dialect)
        for app in partition.applications.values():
            here = ("app", app.app_id)
            found["apps"] |= {
                (*here, "state", dialect.state(app.state)),
                (*here, "queue", app.queue.path),
                (*here, "used", _quantities(names(app.allocated))),
                (*here, "pending", _quantities(names(app.pending))),
                *(
                    (*here, "group", group.name, what, count)
                    for group in app.gang.task_groups.values()
                    for what, count in (
                        ("count", group.count),
                        ("replaced", group.replaced),
                        ("timedout", group.timed_out),
                    )
                ),
            }
        for queue in partition.queues():
            here = ("queue", queue.path)
            found["queues"] |= {
                (*here, "status", queue.state),
                (*here, "allocated", _quantities(names(queue.allocated))),
                (*here, "pending", _quantities(names(queue.pending))),
                (*here, "running", queue.running),
            }
        for node in partition.nodes.values():
            here = ("node", node.node_id)
            found["nodes"] |= {
                (*here, "capacity", _quantities(names(node.total))),
                (*here, "allocated", _quantities(names(node.allocated))),
                (*here, "schedulable", node.open),
                (*here, "reserved", node.reservation is not None),
            }
    return found
