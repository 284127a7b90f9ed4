"""The table of views: one row for each path, with the function that answers it (2.14)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response

from quadriga.core.checks.health import HealthObject
from quadriga.core.views import Views
from quadriga.core.views.objects import (
    ApplicationObject,
    ApplicationSample,
    ClusterObject,
    ContainerSample,
    GroupObject,
    NodeObject,
    PartitionObject,
    PartitionUtilisation,
    QueueObject,
    RuleObject,
    TypeUtilisation,
    UserObject,
)
from quadriga.core.views.state import APPLICATION_STATES, STATUSES
from quadriga.web.resource import Operation, Query, Resource
from quadriga.web.responses import JSON, Refusal, encode, text_response
from quadriga.web.rest.fragments import Fragments, Writer
from quadriga.web.rest.long_answers import LongAnswers

if TYPE_CHECKING:
    from quadriga.core.scheduler import Scheduler
    from quadriga.web.site import Site

Given = Mapping[str, str]

_SUBTREE: Final = Query(
    "subtree", {"type": "string"}, "If present, with or without a value: include all queues below."
)
_STATUS: Final = Query(
    "status",
    {"enum": ["", *STATUSES]},
    "Only applications in this state, by YuniKorn's or Quadriga's name, in any case; empty: all.",
)
_ONE_PARTITION: Final = Query(
    "partition", {"type": "string", "minLength": 1}, "The partition, `default` if absent."
)

#: the largest number that YuniKorn's parameters allow
_LARGEST: Final = 2**64 - 1

NUMBER: Final = {"type": "integer", "minimum": 0, "maximum": _LARGEST}

#: a page of a long list, which takes the scheduler's thread no longer than its members do
_PAGE: Final = (
    Query("limit", {**NUMBER, "minimum": 1}, "At most this number of members; absent: all."),
    Query("offset", NUMBER, "The number of members to leave out first, 0 if absent."),
)

#: a percent sign that does not begin an escape
_STRAY: Final = re.compile(r"%(?![0-9A-Fa-f]{2}).{0,2}")


class View(NamedTuple):
    """``look`` gets the path and query parameters by name, and may return steps. ``errors``: 400 if a parameter can be
    missing or invalid, 404 if something can be unknown."""

    path: str
    tag: str
    about: str
    returns: Any
    look: Callable[[Views, Given], Any]
    errors: tuple[int, ...] = (400, 404)
    query: tuple[Query, ...] = ()
    #: the values of ``{state}``, in any case
    states: tuple[str, ...] = ()
    #: what writes the members that ``look`` yields, if there may be many
    writer: Callable[[Fragments], Writer] | None = None


#: a queue's name has no percent sign, however often it was escaped
_QUEUE_NAME: Final = {"pattern": "^[^%]+$"}

_P: Final = "/ws/v1/partition/{partition}"
_Q: Final = _P + "/queue/{queue}"

# fmt: off
VIEWS: Final = (
    View("/ws/v1/clusters", "cluster", "The cluster, once for each partition.",
         list[ClusterObject], lambda v, p: v.clusters(), ()),
    View("/ws/v1/partitions", "cluster", "All partitions.",
         list[PartitionObject], lambda v, p: v.partitions_in_steps(), ()),
    View(_P + "/queues", "queues", "The queue tree, from root down.",
         QueueObject, lambda v, p: v.queues_in_steps(p["partition"])),
    View(_Q, "queues", "One queue.",
         QueueObject, lambda v, p: v.queue_in_steps(
             p["partition"], p["queue"], subtree="subtree" in p),
         query=(_SUBTREE,)),
    View(_Q + "/applications", "applications", "The active applications of a queue.",
         list[ApplicationObject], lambda v, p: v.each_queue_application(
             p["partition"], p["queue"], page=_page(p)),
         query=_PAGE, writer=Fragments.applications),
    View(_Q + "/applications/{state}", "applications",
         "The same; `active` is the only valid state.",
         list[ApplicationObject],
         lambda v, p: v.each_queue_application(
             p["partition"], p["queue"], p["state"], p.get("status", ""), _page(p)),
         query=(_STATUS, *_PAGE), states=("active",), writer=Fragments.applications),
    View(_Q + "/application/{application}", "applications", "One application of a queue.",
         ApplicationObject,
         lambda v, p: v.each_named(p["partition"], p["application"], p["queue"]),
         writer=Fragments.one),
    View(_P + "/application/{application}", "applications",
         "One application, active or ended.",
         ApplicationObject, lambda v, p: v.each_named(p["partition"], p["application"]),
         writer=Fragments.one),
    View(_P + "/applications/{state}", "applications",
         "Applications that are `active`, `completed` (including killed ones) or `rejected`.",
         list[ApplicationObject],
         lambda v, p: v.each_application(
             p["partition"], p["state"], p.get("status", ""), _page(p)),
         query=(_STATUS, *_PAGE), states=tuple(sorted(APPLICATION_STATES)),
         writer=Fragments.applications),
    View(_P + "/nodes", "nodes", "All nodes.",
         list[NodeObject], lambda v, p: v.each_node(p["partition"], _page(p)),
         query=_PAGE, writer=Fragments.nodes),
    View(_P + "/node/{node}", "nodes", "One node.",
         NodeObject, lambda v, p: v.node(p["partition"], p["node"])),
    View(_P + "/usage/users", "usage", "Usage and limits of all users.",
         list[UserObject], lambda v, p: v.users_in_steps(p["partition"])),
    View(_P + "/usage/user/{user}", "usage", "One user.",
         UserObject, lambda v, p: v.user_in_steps(p["partition"], p["user"])),
    View(_P + "/usage/groups", "usage", "Usage and limits of all groups.",
         list[GroupObject], lambda v, p: v.groups_in_steps(p["partition"])),
    View(_P + "/usage/group/{group}", "usage", "One group.",
         GroupObject, lambda v, p: v.group_in_steps(p["partition"], p["group"])),
    View(_P + "/placementrules", "queues", "The placement rules.",
         list[RuleObject], lambda v, p: v.placement_rules(p["partition"])),
    View("/ws/v1/history/apps", "history", "The number of running applications, minute by minute.",
         list[ApplicationSample], lambda v, p: v.history.applications(), ()),
    View("/ws/v1/history/containers", "history", "The number of allocations, minute by minute.",
         list[ContainerSample], lambda v, p: v.history.containers(), ()),
    View("/ws/v1/scheduler/healthcheck", "scheduler", "The result of the last health check.",
         HealthObject, lambda v, p: v.health(), (404,)),
    View("/ws/v1/scheduler/node-utilizations", "scheduler",
         "Node utilization, by resource type.",
         list[PartitionUtilisation], lambda v, p: v.node_utilisations_in_steps(), ()),
    View("/ws/v1/scheduler/node-utilization", "scheduler",
         "Node utilization of a partition, for the resource type that is used most (deprecated).",
         TypeUtilisation, lambda v, p: v.node_utilisation_in_steps(p.get("partition", "default")),
         query=(_ONE_PARTITION,)),
)
# fmt: on


def resources(site: Site, fragments: Fragments) -> list[Resource]:
    """A resource for each view."""
    return [_resource(site, view, fragments) for view in VIEWS]


def _resource(site: Site, view: View, fragments: Fragments) -> Resource:
    long = view.writer and LongAnswers(site.reader, fragments, view.writer)

    async def answer(request: Request) -> Response:
        given = parameters(request, view.query)

        def look(scheduler: Scheduler) -> Any:
            return view.look(site.views, given)

        name = (view.path, *given.items())
        if long:
            return await long.answer(request, name, look)
        return text_response(await site.reader.text(name, look, encode), JSON)

    operation = Operation(answer, view.about, {JSON: view.returns}, view.errors, view.query)
    schemas: dict[str, dict[str, Any]] = {
        "queue": _QUEUE_NAME,
        "state": {"enum": list(view.states)},
    }
    return Resource(view.path, {"GET": operation}, view.tag, schemas)


def parameters(request: Request, query: tuple[Query, ...]) -> dict[str, str]:
    """The path parameters, and the query parameters that have a meaning (the first value of each).

    Names of queues are decoded twice: YuniKorn does so, and its clients escape them twice. No queue
    name contains a percent sign.
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


def _page(given: Given) -> slice:
    """The part of a list that is asked for."""
    first, most = number(given.get("offset"), 0), number(given.get("limit"), _LARGEST)
    if most == 0:
        raise Refusal(400, '0 is not a valid value for "limit"')
    return slice(first, first + most)


def number(text: str | None, absent: int) -> int:
    """What a query parameter says that is a number."""
    if not text:
        return absent
    if not (text.isascii() and text.isdecimal()):
        raise Refusal(400, f"strconv.ParseUint: parsing {json.dumps(text)}: invalid syntax")
    if len(text.lstrip("0")) > len(str(_LARGEST)) or int(text) > _LARGEST:
        raise Refusal(400, f"strconv.ParseUint: parsing {json.dumps(text)}: value out of range")
    return int(text)
