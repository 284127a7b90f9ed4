"""What can be seen: one row for each path, with the view that answers it (2.14)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response

from quadriga.core.views import Views
from quadriga.core.views.objects import (
    ApplicationObject,
    ApplicationSample,
    ClusterObject,
    ContainerSample,
    GroupObject,
    HealthObject,
    NodeObject,
    PartitionObject,
    PartitionUtilisation,
    PlacementObject,
    QueueObject,
    TypeUtilisation,
    UserObject,
)
from quadriga.core.views.state import APPLICATION_STATES, STATUSES
from quadriga.web.answers import JSON, Refusal, spell, text_answer
from quadriga.web.resource import Operation, Query, Resource
from quadriga.web.rest.fragments import Fragments

if TYPE_CHECKING:
    from quadriga.core.scheduler import Scheduler
    from quadriga.web.site import Site

__all__ = ["VIEWS", "View", "resources"]

Given = Mapping[str, str]

_SUBTREE: Final = Query(
    "subtree", {"type": "string"}, "If it is there, with or without a value: with all queues below."
)
_STATUS: Final = Query(
    "status",
    {"enum": ["", *STATUSES]},
    "Only applications in this state, in YuniKorn's or our name and in any case; empty: all.",
)
_ONE_PARTITION: Final = Query(
    "partition", {"type": "string", "minLength": 1}, "The partition, `default` if absent."
)

#: a percent sign that begins nothing
_STRAY: Final = re.compile(r"%(?![0-9A-Fa-f]{2}).{0,2}")


class View(NamedTuple):
    """``look`` gets the parameters of path and query by name. ``errors``: 400 where a parameter can be
    missing or wrong, 404 where something can be unknown."""

    path: str
    tag: str
    about: str
    returns: Any
    look: Callable[[Views, Given], Any]
    errors: tuple[int, ...] = (400, 404)
    query: tuple[Query, ...] = ()
    #: the values of ``{state}``, in any case
    states: tuple[str, ...] = ()
    #: how to spell what ``look`` gives, if there may be much of it
    spelled: Callable[[Fragments, Any], bytes] | None = None


#: a queue's name has no percent sign, however often it was escaped
_QUEUE_NAME: Final = {"pattern": "^[^%]+$"}

_P: Final = "/ws/v1/partition/{partition}"
_Q: Final = _P + "/queue/{queue}"

# fmt: off
VIEWS: Final = (
    View("/ws/v1/clusters", "cluster", "The cluster, once for each partition.",
         list[ClusterObject], lambda v, p: v.clusters(), ()),
    View("/ws/v1/partitions", "cluster", "All partitions.",
         list[PartitionObject], lambda v, p: v.partitions(), ()),
    View(_P + "/queues", "queues", "Root, with the whole tree.",
         QueueObject, lambda v, p: v.queues(p["partition"])),
    View(_Q, "queues", "One queue.",
         QueueObject, lambda v, p: v.queue(p["partition"], p["queue"], subtree="subtree" in p),
         query=(_SUBTREE,)),
    View(_Q + "/applications", "applications", "The living applications of a queue.",
         list[ApplicationObject], lambda v, p: v.snapshot_queue_applications(p["partition"], p["queue"]),
         spelled=Fragments.applications),
    View(_Q + "/applications/{state}", "applications",
         "The same; `active` is the only state that can be asked for.",
         list[ApplicationObject],
         lambda v, p: v.snapshot_queue_applications(
             p["partition"], p["queue"], p["state"], p.get("status", "")),
         query=(_STATUS,), states=("active",), spelled=Fragments.applications),
    View(_Q + "/application/{application}", "applications", "One application of a queue.",
         ApplicationObject,
         lambda v, p: v.application(p["partition"], p["application"], p["queue"])),
    View(_P + "/application/{application}", "applications",
         "One application, living or ended.",
         ApplicationObject, lambda v, p: v.application(p["partition"], p["application"])),
    View(_P + "/applications/{state}", "applications",
         "Applications that are `active`, `completed` (also those that were killed) or `rejected`.",
         list[ApplicationObject],
         lambda v, p: v.snapshot_applications(p["partition"], p["state"], p.get("status", "")),
         query=(_STATUS,), states=tuple(sorted(APPLICATION_STATES)),
         spelled=Fragments.applications),
    View(_P + "/nodes", "nodes", "All nodes.",
         list[NodeObject], lambda v, p: v.snapshot_nodes(p["partition"]), spelled=Fragments.nodes),
    View(_P + "/node/{node}", "nodes", "One node.",
         NodeObject, lambda v, p: v.node(p["partition"], p["node"])),
    View(_P + "/usage/users", "usage", "What all users hold, and may hold.",
         list[UserObject], lambda v, p: v.users(p["partition"])),
    View(_P + "/usage/user/{user}", "usage", "One user.",
         UserObject, lambda v, p: v.user(p["partition"], p["user"])),
    View(_P + "/usage/groups", "usage", "What all groups hold, and may hold.",
         list[GroupObject], lambda v, p: v.groups(p["partition"])),
    View(_P + "/usage/group/{group}", "usage", "One group.",
         GroupObject, lambda v, p: v.group(p["partition"], p["group"])),
    View(_P + "/placementrules", "queues", "How applications find their queues.",
         PlacementObject, lambda v, p: v.placement_rules(p["partition"])),
    View("/ws/v1/history/apps", "history", "How many applications ran, minute by minute.",
         list[ApplicationSample], lambda v, p: v.history.applications(), ()),
    View("/ws/v1/history/containers", "history", "How many allocations there were, minute by minute.",
         list[ContainerSample], lambda v, p: v.history.containers(), ()),
    View("/ws/v1/scheduler/healthcheck", "scheduler", "The result of the last health check.",
         HealthObject, lambda v, p: v.health(), (404,)),
    View("/ws/v1/scheduler/node-utilizations", "scheduler",
         "How full the nodes are, of every resource type.",
         list[PartitionUtilisation], lambda v, p: v.node_utilisations(), ()),
    View("/ws/v1/scheduler/node-utilization", "scheduler",
         "How full the nodes of a partition are of the type of which most is used (deprecated).",
         TypeUtilisation, lambda v, p: v.node_utilisation(p.get("partition", "default")),
         query=(_ONE_PARTITION,)),
)
# fmt: on


def resources(site: Site, fragments: Fragments) -> list[Resource]:
    """A resource for each view."""
    return [_resource(site, view, fragments) for view in VIEWS]


def _resource(site: Site, view: View, fragments: Fragments) -> Resource:
    long = partial(view.spelled, fragments) if view.spelled is not None else None

    async def answer(request: Request) -> Response:
        given = parameters(request, view.query)

        def look(scheduler: Scheduler) -> Any:
            return view.look(site.views, given)

        name = (view.path, *given.items())
        text = await site.reader.text(name, look, long or spell, long=long is not None)
        return text_answer(text, JSON)

    operation = Operation(answer, view.about, {JSON: view.returns}, view.errors, view.query)
    schemas: dict[str, dict[str, Any]] = {
        "queue": _QUEUE_NAME,
        "state": {"enum": list(view.states)},
    }
    return Resource(view.path, {"GET": operation}, view.tag, schemas)


def parameters(request: Request, query: tuple[Query, ...]) -> dict[str, str]:
    """Those of the path, and of the query those that have a meaning (the first, if repeated).

    Names of queues are decoded once more: YuniKorn does, so its clients escape them twice. No queue
    has a percent sign in its name.
    """
    given = dict(request.path_params)
    if "queue" in given:
        stray = _STRAY.search(given["queue"])
        if stray is not None:
            raise Refusal(400, f'invalid URL escape "{stray[0]}"')
        given["queue"] = unquote(given["queue"])
    for each in query:
        values = request.query_params.getlist(each.name)
        if values:
            given[each.name] = values[0]
    return given
