"""All views of one scheduler (2.14).

A view changes nothing in the scheduler and shares nothing with it: every object is a new copy of plain
dicts, lists, texts and numbers, ready for JSON. Views are called between two steps, in a service through
``SchedulerService.read``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, TypeVar

from quadriga.core.checks.failures import FailureLog
from quadriga.core.checks.health import check_health
from quadriga.core.config import ConfigError, load
from quadriga.core.model.queue import LeafQueue
from quadriga.core.runtime.dialect import Dialect
from quadriga.core.views.applications import (
    ApplicationSnapshot,
    EndedSnapshot,
    application_object,
    snapshot_application,
)
from quadriga.core.views.configuration import configuration_object
from quadriga.core.views.counters import (
    PartitionCounters,
    QueueCounters,
    SchedulerCounters,
    partition_counters,
    queue_counters,
    scheduler_counters,
)
from quadriga.core.views.dump import NO_DIAGNOSTICS
from quadriga.core.views.errors import BadRequest, NotFound
from quadriga.core.views.history import History, Sample
from quadriga.core.views.nodes import (
    NodeSnapshot,
    dominant_type,
    node_object,
    snapshot_node,
    snapshot_nodes,
    utilisation,
    utilisation_of,
)
from quadriga.core.views.partitions import (
    applications_of,
    cluster_object,
    containers_of,
    partition_object,
)
from quadriga.core.views.placement import placement_object, rule_objects
from quadriga.core.views.queues import queue_object
from quadriga.core.views.users import group_object, group_objects, user_object, user_objects
from quadriga.fsm.lifecycles import application as application_fsm

if TYPE_CHECKING:
    from quadriga.core.model.application import Application
    from quadriga.core.model.ended import EndedApplication
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.queue import Queue
    from quadriga.core.scheduler import Scheduler
    from quadriga.core.views import objects

Found = TypeVar("Found")

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
        self._health: objects.HealthObject | None = None
        #: the time of that check (ns)
        self._checked: int | None = None

    # -- clusters, partitions, queues --------------------------------------------------------------

    def clusters(self) -> list[objects.ClusterObject]:
        """One for each partition."""
        rms = self.scheduler.resource_managers()
        return [cluster_object(p, rms, self.start_time) for p in self.scheduler.partitions()]

    def partitions(self) -> list[objects.PartitionObject]:
        return [partition_object(p, self.dialect) for p in self.scheduler.partitions()]

    def queues(self, partition: str) -> objects.QueueObject:
        """Root, with the whole tree."""
        return queue_object(self._partition(partition).root, tree=True)

    def queue(self, partition: str, queue: str, *, subtree: bool = False) -> objects.QueueObject:
        """One queue by its path; the queues below only with ``subtree``, their names always."""
        return queue_object(self._queue(self._partition(partition), queue), tree=subtree)

    def placement_rules(self, partition: str) -> list[objects.RuleObject]:
        return rule_objects(self._partition(partition))

    # -- applications ------------------------------------------------------------------------------

    def application(
        self, partition: str, application_id: str, queue: str | None = None
    ) -> objects.ApplicationObject:
        """The living application of this id, else the last one that ended or was rejected; only in
        ``queue`` if that is given."""
        found = self._partition(partition)
        named = self._queue(found, queue) if queue is not None else None
        if not application_id:
            raise BadRequest("Missing parameters")
        for app in (found.applications.get(application_id), *reversed(found.ended)):
            if app is not None and app.app_id == application_id:
                if named is None or app.queue_path == named.path:
                    return application_object(self._snapshot(app))
        raise NotFound("Application not found")

    def applications(
        self, partition: str, state: str, status: str = ""
    ) -> list[objects.ApplicationObject]:
        """The ``active``, ``rejected`` or ``completed`` (this includes killed) applications; of the active
        ones only those in the application state ``status``, in any case and dialect."""
        return list(map(application_object, self.snapshot_applications(partition, state, status)))

    def queue_applications(
        self, partition: str, queue: str, state: str = "active", status: str = ""
    ) -> list[objects.ApplicationObject]:
        """The living applications of a leaf; a parent has none of its own."""
        snapshots = self.snapshot_queue_applications(partition, queue, state, status)
        return list(map(application_object, snapshots))

    def snapshot_applications(
        self, partition: str, state: str, status: str = "", page: slice = ALL
    ) -> list[ApplicationSnapshot | EndedSnapshot]:
        """``applications`` as snapshots, to be formatted later (``application_object``), those of a page."""
        found = self._partition(partition)
        kind = state.lower()
        if kind not in APPLICATION_STATES:
            allowed = ", ".join(APPLICATION_STATES)
            raise BadRequest(f"Only following application states are allowed: {allowed}")
        if kind == "active":
            return self._active(found.applications.values(), status, page)
        chosen = [app for app in found.ended if app.state in _ENDS[kind]]
        return [self._snapshot(app) for app in chosen[page]]

    def snapshot_queue_applications(
        self, partition: str, queue: str, state: str = "active", status: str = "", page: slice = ALL
    ) -> list[ApplicationSnapshot | EndedSnapshot]:
        """``queue_applications`` as snapshots, to be formatted later, those of a page."""
        found = self._queue(self._partition(partition), queue)
        if state.lower() != "active":
            raise BadRequest("Only following application states are allowed: active")
        apps = found.apps.values() if isinstance(found, LeafQueue) else ()
        return self._active(apps, status, page)

    def _active(
        self, apps: Iterable[Application], status: str, page: slice
    ) -> list[ApplicationSnapshot | EndedSnapshot]:
        if status and status.lower() not in _STATUS:
            allowed = ", ".join(self.dialect.state(each).lower() for each in application_fsm.LIVING)
            raise BadRequest(f"Only following active statuses are allowed: {allowed}")
        wanted = _STATUS[status.lower()] if status else None
        chosen = [app for app in apps if wanted in (None, app.state)]
        chosen.sort(key=attrgetter("seq"))
        return [self._snapshot(app) for app in chosen[page]]

    def _snapshot(self, app: Application | EndedApplication) -> ApplicationSnapshot | EndedSnapshot:
        return snapshot_application(app, self.scheduler.now, self.dialect)

    # -- nodes -------------------------------------------------------------------------------------

    def nodes(self, partition: str) -> list[objects.NodeObject]:
        """All nodes, by id."""
        return list(map(node_object, self.snapshot_nodes(partition)))

    def snapshot_nodes(self, partition: str, page: slice = ALL) -> list[NodeSnapshot]:
        """``nodes`` as snapshots, to be formatted later (``node_object``), those of a page."""
        return snapshot_nodes(self._partition(partition), page)

    def node(self, partition: str, node_id: str) -> objects.NodeObject:
        found = self._partition(partition).nodes.get(node_id)
        if found is None:
            raise NotFound("Node not found")
        return node_object(snapshot_node(found))

    def node_utilisations(self) -> list[objects.PartitionUtilisation]:
        """Every partition and resource type."""
        return [utilisation(partition) for partition in self.scheduler.partitions()]

    def node_utilisation(self, partition: str = "default") -> objects.TypeUtilisation:
        """One partition, and the type of which the largest share is allocated (YuniKorn's older
        form)."""
        found = self._partition(partition)
        return utilisation_of(found, dominant_type(found))

    # -- users and groups --------------------------------------------------------------------------

    def users(self, partition: str) -> list[objects.UserObject]:
        return user_objects(self._partition(partition))

    def user(self, partition: str, name: str) -> objects.UserObject:
        found = self._partition(partition)
        if not name:
            raise BadRequest("User name is missing")
        return _known(lambda: user_object(found, name), "User not found")

    def groups(self, partition: str) -> list[objects.GroupObject]:
        return group_objects(self._partition(partition))

    def group(self, partition: str, name: str) -> objects.GroupObject:
        found = self._partition(partition)
        if not name:
            raise BadRequest("Group name is missing")
        return _known(lambda: group_object(found, name), "Group not found")

    # -- configuration -----------------------------------------------------------------------------

    def configuration(self, rm_id: str | None = None) -> dict[str, Any]:
        """The running configuration of one resource manager, by default the first by rmID;
        ``as_yaml`` makes it a loadable text."""
        for rm in self.scheduler.resource_managers():
            if rm_id in (None, rm.rm_id):
                return configuration_object(rm)
        return {"partitions": [], "checksum": "", "extra": {}}

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
    ) -> objects.HealthObject:
        """Check now, and keep the result. ``failures`` is ``SchedulerService.failure_log``, and
        ``now`` (ns) the service's time, which may be ahead of the scheduler's."""
        now = self.scheduler.now if now is None else now
        self._health = check_health(self.scheduler.partitions(), failures, now, self._checked)
        self._checked = now
        return self.health()

    def health(self) -> objects.HealthObject:
        """The result of the last check."""
        if self._health is None:
            raise NotFound("Health check is not available")
        last = self._health
        checks: list[objects.CheckObject] = [each.copy() for each in last["HealthChecks"]]
        return {"Healthy": last["Healthy"], "HealthChecks": checks}

    def sample(self) -> None:
        """Add a sample of what runs now to the history."""
        partitions = list(self.scheduler.partitions())
        running = sum(partition.root.running for partition in partitions)
        held = sum(map(containers_of, partitions))
        self.history.add(Sample(self.scheduler.now, running, held))

    def counters(self, errors: int = 0) -> SchedulerCounters:
        """The numbers behind the scheduler's metrics (2.15)."""
        return scheduler_counters(self.scheduler, errors)

    def queue_counters(self, partition: str) -> list[QueueCounters]:
        """The numbers behind the metrics of every queue, parents first."""
        return queue_counters(self._partition(partition), self.scheduler.tally)

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
        """The whole state at one moment (2.13); ``dump.as_text`` makes it a text. ``diagnostics`` are
        those of the resource managers."""
        dump = self.snapshot_state(diagnostics=diagnostics, log_level=log_level)
        dump["applications"] = list(map(application_object, dump["applications"]))
        for each in dump["nodes"]:
            each["nodesInfo"] = list(map(node_object, each["nodesInfo"]))
        return dump

    def snapshot_state(
        self,
        *,
        diagnostics: Mapping[str, Any] | None = None,
        log_level: str = "INFO",
    ) -> dict[str, Any]:
        """``state_dump`` with snapshots of applications and nodes, to be formatted later."""
        partitions = list(self.scheduler.partitions())
        return {
            "timestamp": self.scheduler.now,
            "partitions": [partition_object(each, self.dialect) for each in partitions],
            "applications": [
                self._snapshot(app) for each in partitions for app in applications_of(each)
            ],
            "appHistory": self.history.applications(),
            "nodes": [
                {"partitionName": each.name, "nodesInfo": snapshot_nodes(each, ALL)}
                for each in partitions
            ],
            "clusterInfo": self.clusters(),
            "containerHistory": self.history.containers(),
            "queues": [queue_object(each.root, tree=True) for each in partitions],
            "placementRules": [placement_object(each) for each in partitions],
            "rmDiagnostics": dict(diagnostics if diagnostics is not None else NO_DIAGNOSTICS),
            "logLevel": log_level,
            "config": self.configuration(),
            "eventStreams": [
                {"name": stream.host, "createdAt": stream.opened}
                for stream in self.scheduler.events.streams
                if not stream.closed
            ],
        }

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


def _known(look: Callable[[], Found], text: str) -> Found:
    try:
        return look()
    except KeyError:
        raise NotFound(text) from None
