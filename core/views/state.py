"""All views of one scheduler (2.14).

A view changes nothing in the scheduler and shares nothing with it: every object is a new copy of plain
dicts, lists, texts and numbers, ready for JSON. Views are called between two steps, in a service through
``SchedulerService.read``. Those of many objects are also generators, which a service reads in slices
(``driver.slices``): ``each_...`` yields snapshots to be formatted later, ``..._in_steps`` returns the object.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, TypeVar

from quadriga.core.checks.failures import FailureLog
from quadriga.core.checks.health import CheckObject, HealthObject, check_in_steps
from quadriga.core.config import ConfigError, load
from quadriga.core.model.queue import LeafQueue
from quadriga.core.runtime.dialect import Dialect
from quadriga.core.runtime.stepwise import Steps, at_once, chunks, finish, parts
from quadriga.core.steps import limits
from quadriga.core.views.applications import (
    ApplicationSnapshot,
    EndedSnapshot,
    application_in_steps,
    application_object,
)
from quadriga.core.views.configuration import Configured, configured, placement_object, rule_objects
from quadriga.core.views.counters import (
    PartitionCounters,
    QueueCounters,
    SchedulerCounters,
    partition_counters,
    queue_counters_in_steps,
    scheduler_counters_in_steps,
)
from quadriga.core.views.dump import NO_DIAGNOSTICS, StatePart, collected, formatted
from quadriga.core.views.history import History, Sample
from quadriga.core.views.nodes import (
    NodeSnapshot,
    dominant_type,
    each_node,
    node_object,
    snapshot_node,
    types_in_steps,
    utilisation_in_steps,
)
from quadriga.core.views.partitions import cluster_object, containers_in_steps, partition_in_steps
from quadriga.core.views.quantities import amounts, sorted_amounts
from quadriga.core.views.queues import queue_in_steps
from quadriga.fsm.lifecycles import application as application_fsm

if TYPE_CHECKING:
    from quadriga.core.model.account import Holding
    from quadriga.core.model.application import Application, EndedApplication
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.queue import Queue
    from quadriga.core.scheduler import Scheduler
    from quadriga.core.views import objects
    from quadriga.core.views.objects import GroupObject, QueueUsage, UserObject

    Limited = Mapping[str, Iterable[Queue]] | None


class ViewError(LookupError):
    """``status`` is the HTTP status, ``text`` the message."""

    status = 500

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return self.text


class NotFound(ViewError):
    """There is no such partition, queue, application, node, user or group."""

    status = 404


class BadRequest(ViewError):
    """The question is invalid: an unknown state, or a missing name."""

    status = 400


Found = TypeVar("Found")

Snapshot = ApplicationSnapshot | EndedSnapshot

#: the page that has all members of a list
ALL: Final = slice(None)

#: what may be asked for with ``status``, in YuniKorn's names; our own are understood as well
_STATUS: Final = {
    dialect.state(state).lower(): state
    for dialect in (Dialect.YUNIKORN, Dialect.QUADRIGA)
    for state in application_fsm.LIVING
}
STATUSES: Final = tuple(_STATUS)
#: what may be asked for as the state of applications: any that live, or those that ended so
_ENDS: Final = {
    "rejected": application_fsm.TURNED_AWAY,
    "completed": application_fsm.ENDED - application_fsm.TURNED_AWAY,
}
APPLICATION_STATES: Final = ("active", *_ENDS)


class Views:
    """The state of ``scheduler`` as data, application states in the names of ``dialect`` (X1).

    Partitions are named without ``[rmID]``. If two resource managers have partitions of the same name,
    ``[rmID]name`` selects one; the name alone means the first by rmID. An unknown object raises
    ``NotFound``, an invalid question ``BadRequest``, with YuniKorn's texts.

    ``start_time`` (ns) is when the scheduler started, 0 if unknown. The driver calls ``sample`` every
    minute and ``check_health`` at the interval of ``health.check_interval``.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        dialect: Dialect = Dialect.YUNIKORN,
        *,
        start_time: int = 0,
        history: History | None = None,
    ) -> None:
        self.scheduler = scheduler
        self.dialect = dialect
        self.start_time = start_time
        self.history = history if history is not None else History()
        self._health: HealthObject | None = None
        #: the time of that check (ns)
        self._checked: int | None = None

    # -- clusters, partitions, queues --------------------------------------------------------------

    def clusters(self) -> list[objects.ClusterObject]:
        """One for each partition."""
        rms = self.scheduler.resource_managers()
        return [cluster_object(p, rms, self.start_time) for p in self.scheduler.partitions()]

    def partitions_in_steps(self) -> Steps[list[objects.PartitionObject]]:
        found = []
        for partition in list(self.scheduler.partitions()):
            found.append((yield from partition_in_steps(partition, self.dialect)))
        return found

    partitions = at_once(partitions_in_steps)

    def queues_in_steps(self, partition: str) -> Steps[objects.QueueObject]:
        """Root, with the whole tree."""
        return queue_in_steps(self._partition(partition).root, tree=True)

    queues = at_once(queues_in_steps)

    def queue_in_steps(
        self, partition: str, queue: str, *, subtree: bool = False
    ) -> Steps[objects.QueueObject]:
        """One queue by its path; the queues below only with ``subtree``, their names always."""
        return queue_in_steps(self._queue(self._partition(partition), queue), tree=subtree)

    queue = at_once(queue_in_steps)

    def placement_rules(self, partition: str) -> list[objects.RuleObject]:
        return rule_objects(self._partition(partition))

    # -- applications ------------------------------------------------------------------------------

    def application(
        self, partition: str, application_id: str, queue: str | None = None
    ) -> objects.ApplicationObject:
        """The living application of this id, else the last one that ended or was rejected; only in
        ``queue`` if that is given."""
        found: list[Snapshot] = parts(self.each_named(partition, application_id, queue))
        return application_object(found[0])

    def each_named(
        self, partition: str, application_id: str, queue: str | None = None
    ) -> Iterator[Snapshot | None]:
        """The snapshot of this application, in steps."""
        found = self._partition(partition)
        named = self._queue(found, queue) if queue is not None else None
        if not application_id:
            raise BadRequest("Missing parameters")
        for app in (found.applications.get(application_id), *reversed(found.ended)):
            if app is not None and app.app_id == application_id:
                if named is None or app.queue_path == named.path:
                    yield (yield from self._snapshot(app))
                    return
        raise NotFound("Application not found")

    def applications(
        self, partition: str, state: str, status: str = ""
    ) -> list[objects.ApplicationObject]:
        """The ``active``, ``rejected`` or ``completed`` (this includes killed) applications; of the active
        ones only those in the application state ``status``, in any case and dialect."""
        snapshots: list[Snapshot] = parts(self.each_application(partition, state, status))
        return list(map(application_object, snapshots))

    def queue_applications(
        self, partition: str, queue: str, state: str = "active", status: str = ""
    ) -> list[objects.ApplicationObject]:
        """The living applications of a leaf; a parent has none of its own."""
        snapshots: list[Snapshot] = parts(
            self.each_queue_application(partition, queue, state, status)
        )
        return list(map(application_object, snapshots))

    def each_application(
        self, partition: str, state: str, status: str = "", page: slice = ALL
    ) -> Iterator[Snapshot | None]:
        """``applications`` as snapshots, to be formatted later (``application_object``), those of a page.
        Living ones that end before they are reached are left out."""
        found = self._partition(partition)
        kind = state.lower()
        if kind not in APPLICATION_STATES:
            allowed = ", ".join(APPLICATION_STATES)
            raise BadRequest(f"Only following application states are allowed: {allowed}")
        if kind == "active":
            return self._active(found.applications.values(), status, page)
        return self._page(found.ended, _ENDS[kind], page)

    def each_queue_application(
        self, partition: str, queue: str, state: str = "active", status: str = "", page: slice = ALL
    ) -> Iterator[Snapshot | None]:
        """``queue_applications`` as snapshots, to be formatted later, those of a page."""
        found = self._queue(self._partition(partition), queue)
        if state.lower() != "active":
            raise BadRequest("Only following application states are allowed: active")
        apps = found.apps.values() if isinstance(found, LeafQueue) else ()
        return self._active(apps, status, page)

    def _active(
        self, apps: Iterable[Application], status: str, page: slice
    ) -> Iterator[Snapshot | None]:
        if status and status.lower() not in _STATUS:
            allowed = ", ".join(self.dialect.state(each).lower() for each in application_fsm.LIVING)
            raise BadRequest(f"Only following active statuses are allowed: {allowed}")
        wanted = (_STATUS[status.lower()],) if status else application_fsm.LIVING
        return self._page(sorted(apps, key=attrgetter("seq")), wanted, page)

    def _page(
        self,
        apps: Iterable[Application | EndedApplication],
        states: Collection[str],
        page: slice,
    ) -> Iterator[Snapshot | None]:
        """Those in one of these states that are on the page."""
        first, number = page.start or 0, 0
        for few in chunks(apps):
            for app in few:
                if app.state not in states:
                    continue
                number += 1
                if number > first:
                    yield (yield from self._snapshot(app))
                if number == page.stop:
                    return
            yield None

    def _snapshot(self, app: Application | EndedApplication) -> Steps[Snapshot]:
        return application_in_steps(app, self.scheduler.now, self.dialect)

    # -- nodes -------------------------------------------------------------------------------------

    def nodes(self, partition: str) -> list[objects.NodeObject]:
        """All nodes, by id."""
        return list(map(node_object, self.each_node(partition)))

    def each_node(self, partition: str, page: slice = ALL) -> Iterator[NodeSnapshot]:
        """``nodes`` as snapshots, to be formatted later (``node_object``), those of a page."""
        return each_node(self._partition(partition), page)

    def node(self, partition: str, node_id: str) -> objects.NodeObject:
        found = self._partition(partition).nodes.get(node_id)
        if found is None:
            raise NotFound("Node not found")
        return node_object(snapshot_node(found))

    def node_utilisations_in_steps(self) -> Steps[list[objects.PartitionUtilisation]]:
        """Every partition and resource type."""
        found = []
        for partition in list(self.scheduler.partitions()):
            found.append((yield from utilisation_in_steps(partition)))
        return found

    node_utilisations = at_once(node_utilisations_in_steps)

    def node_utilisation_in_steps(
        self, partition: str = "default"
    ) -> Steps[objects.TypeUtilisation]:
        """One partition, and the type of which the largest share is allocated (YuniKorn's older
        form)."""
        found = self._partition(partition)
        return (yield from types_in_steps(found, [dominant_type(found)]))[0]

    node_utilisation = at_once(node_utilisation_in_steps)

    # -- users and groups --------------------------------------------------------------------------

    def users_in_steps(self, partition: str) -> Steps[list[objects.UserObject]]:
        return users_in_steps(self._partition(partition))

    users = at_once(users_in_steps)

    def user_in_steps(self, partition: str, name: str) -> Steps[objects.UserObject]:
        found = self._partition(partition)
        if not name:
            raise BadRequest("User name is missing")
        return (yield from _known(user_in_steps(found, name), "User not found"))

    user = at_once(user_in_steps)

    def groups_in_steps(self, partition: str) -> Steps[list[objects.GroupObject]]:
        return groups_in_steps(self._partition(partition))

    groups = at_once(groups_in_steps)

    def group_in_steps(self, partition: str, name: str) -> Steps[objects.GroupObject]:
        found = self._partition(partition)
        if not name:
            raise BadRequest("Group name is missing")
        return (yield from _known(group_in_steps(found, name), "Group not found"))

    group = at_once(group_in_steps)

    # -- configuration -----------------------------------------------------------------------------

    def configuration(self, rm_id: str | None = None) -> dict[str, Any]:
        """The running configuration of one resource manager, by default the first by rmID;
        ``as_yaml`` makes it a loadable text."""
        return self.configured(rm_id).as_object()

    def configured(self, rm_id: str | None = None) -> Configured:
        """The same, to be made an object later."""
        for rm in self.scheduler.resource_managers():
            if rm_id in (None, rm.rm_id):
                return configured(rm)
        return Configured()

    @staticmethod
    def validate_configuration(text: str) -> dict[str, Any]:
        """Whether a configuration is valid, and all problems if it is not."""
        try:
            load(text)
        except ConfigError as error:
            return {"allowed": False, "reason": str(error)}
        return {"allowed": True, "reason": ""}

    # -- health, history, counters -----------------------------------------------------------------

    def check_health(
        self, failures: FailureLog | None = None, now: int | None = None
    ) -> HealthObject:
        """Check now, and keep the result. ``failures`` is ``SchedulerService.failure_log``, and
        ``now`` (ns) the service's time, which may be ahead of the scheduler's."""
        finish(self.health_in_steps(failures, now))
        return self.health()

    def health_in_steps(
        self, failures: FailureLog | None = None, now: int | None = None
    ) -> Steps[None]:
        now = self.scheduler.now if now is None else now
        partitions = list(self.scheduler.partitions())
        self._health = yield from check_in_steps(partitions, failures, now, self._checked)
        self._checked = now

    def health(self) -> HealthObject:
        """The result of the last check."""
        if self._health is None:
            raise NotFound("Health check is not available")
        last = self._health
        checks: list[CheckObject] = [each.copy() for each in last["HealthChecks"]]
        return {"Healthy": last["Healthy"], "HealthChecks": checks}

    def sample_in_steps(self) -> Steps[None]:
        """Add a sample of what runs now to the history."""
        now, running, held = self.scheduler.now, 0, 0
        for partition in list(self.scheduler.partitions()):
            running += partition.root.running
            held += yield from containers_in_steps(partition)
        self.history.add(Sample(now, running, held))

    sample = at_once(sample_in_steps)

    def counters(self, errors: int = 0) -> SchedulerCounters:
        """The numbers behind the scheduler's metrics (2.15)."""
        return finish(scheduler_counters_in_steps(self.scheduler, errors))

    def queue_counters(self, partition: str) -> list[QueueCounters]:
        """The numbers behind the metrics of every queue, parents first."""
        return finish(queue_counters_in_steps(self._partition(partition), self.scheduler.tally))

    def partition_counters(self, partition: str) -> PartitionCounters:
        """The present numbers of the partition."""
        return partition_counters(self._partition(partition))

    # -- everything --------------------------------------------------------------------------------

    def state_dump(
        self,
        *,
        diagnostics: Mapping[str, Any] | None = None,
        log_level: str = "INFO",
    ) -> dict[str, Any]:
        """The whole state (2.13); ``dump.as_text`` makes it a text. ``diagnostics`` are those of the resource
        managers."""
        steps = self.state_in_steps(diagnostics=diagnostics, log_level=log_level)
        return formatted(finish(steps))

    def state_in_steps(
        self, *, diagnostics: Mapping[str, Any] | None = None, log_level: str = "INFO"
    ) -> Steps[dict[str, Any]]:
        """``state_dump`` with snapshots of applications and nodes (``dump.formatted``)."""
        return collected(self.each_state(diagnostics=diagnostics, log_level=log_level))

    def each_state(
        self, *, diagnostics: Mapping[str, Any] | None = None, log_level: str = "INFO"
    ) -> Iterator[StatePart | None]:
        """The same in parts, in the order of a dump; it says between which moments it was read."""
        scheduler = self.scheduler
        partitions, first = list(scheduler.partitions()), scheduler.journal.count
        yield StatePart("timestamp", scheduler.now)
        yield StatePart("partitions", (yield from self.partitions_in_steps()))
        yield StatePart("applications", [])
        for each in partitions:
            living = self._active(each.applications.values(), "", ALL)
            for seen in chain(living, self._page(each.ended, application_fsm.ENDED, ALL)):
                yield seen and StatePart("applications", seen, member=True)
        yield StatePart("appHistory", self.history.applications())
        yield StatePart("nodes", [])
        for each in partitions:
            yield StatePart("nodes", {"partitionName": each.name, "nodesInfo": []}, member=True)
            for node in each_node(each, ALL):
                yield StatePart("nodesInfo", node, member=True)
        yield StatePart("clusterInfo", self.clusters())
        yield StatePart("containerHistory", self.history.containers())
        queues = []
        for each in partitions:
            queues.append((yield from queue_in_steps(each.root, tree=True)))
        yield StatePart("queues", queues)
        yield StatePart("placementRules", [placement_object(each) for each in partitions])
        yield StatePart(
            "rmDiagnostics", dict(diagnostics if diagnostics is not None else NO_DIAGNOSTICS)
        )
        yield StatePart("logLevel", log_level)
        yield StatePart("config", self.configuration())
        streams = [
            {"name": stream.host, "createdAt": stream.opened}
            for stream in scheduler.events.streams
            if not stream.closed
        ]
        yield StatePart("eventStreams", streams)
        yield StatePart("lastTimestamp", scheduler.now)
        yield StatePart("transitions", [first, scheduler.journal.count])

    # -- looking up --------------------------------------------------------------------------------

    def _partition(self, name: str) -> Partition:
        if not name:
            raise BadRequest("Missing parameters")
        for partition in self.scheduler.partitions():
            if name in (partition.name, partition.key):
                return partition
        raise NotFound("Partition not found")

    @staticmethod
    def _queue(partition: Partition, path: str) -> Queue:
        if not path:
            raise BadRequest("Missing parameters")
        found = partition.queue(path)
        if found is None:
            raise NotFound("Queue not found")
        return found


def _known(look: Steps[Found], text: str) -> Steps[Found]:
    try:
        return (yield from look)
    except KeyError:
        raise NotFound(text) from None


T = TypeVar("T")


def users_in_steps(partition: Partition) -> Steps[list[UserObject]]:
    """Every user with an application or a limit of their own, by name."""
    return (yield from _gather(partition, user_in_steps))


def _gather(
    partition: Partition, look: Callable[..., Steps[T]], *, groups: bool = False
) -> Steps[list[T]]:
    found = []
    limited = yield from limits.limited_in_steps(partition, groups=groups)
    names = yield from limits.names_in_steps(partition, limited, groups=groups)
    for name in names:
        with suppress(KeyError):  # it has gone meanwhile
            found.append((yield from look(partition, name, limited)))
        yield
    return found


def user_in_steps(partition: Partition, name: str, limited: Limited = None) -> Steps[UserObject]:
    """One user. Raises ``KeyError`` for an unknown one. ``limited`` are the queues with limits, if known."""
    holding = yield from limits.holding_in_steps(partition, name, limited=limited)
    account = partition.users.get(name)
    return {
        "userName": name,
        "groups": (yield from limits.groups_in_steps(account)) if account is not None else {},
        "queues": (yield from _usage(partition, holding)),
    }


def groups_in_steps(partition: Partition) -> Steps[list[GroupObject]]:
    """Every group with an application or a limit, by name; ``*`` stands for all others."""
    return (yield from _gather(partition, group_in_steps, groups=True))


def group_in_steps(partition: Partition, name: str, limited: Limited = None) -> Steps[GroupObject]:
    """One group, as ``user_in_steps``."""
    holding = yield from limits.holding_in_steps(partition, name, group=True, limited=limited)
    return {
        "groupName": name,
        "applications": list(holding.running),
        "queues": (yield from _usage(partition, holding)),
    }


def _usage(partition: Partition, holding: Holding) -> Steps[QueueUsage]:
    yield
    children = []
    for child in holding.children:
        children.append((yield from _usage(partition, child)))
    found: QueueUsage = {
        "queuePath": holding.path,
        "resourceUsage": amounts(partition, holding.usage),
        "runningApplications": list(holding.running),
        "children": children,
    }
    if holding.limit is not None:
        if holding.limit.max is not None:
            found["maxResources"] = sorted_amounts(holding.limit.max)
        if holding.limit.applications:
            found["maxApplications"] = holding.limit.applications
    return found
