"""The queues and users that jobs of a workload get in a queue configuration that was not made for
it.

The trace names a queue for each job. The job is submitted to, in this order: the queue that the
user mapped the name to; without placement rules, the only leaf of that name anywhere in the tree;
else the name as it is, for the placement rules. The name is also the application's tag
``namespace``, which a placement rule ``tag`` usually evaluates. The user is the trace's user unless
a map replaces it, and is in a group of the same name and in the trace's group.
"""

# Not compiled: it does not run for every message.

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from quadriga import si
from quadriga.core.config import (
    DEFAULT_CONFIGURATION,
    ConfigError,
    QueueConfig,
    load,
    parse_properties,
)
from quadriga.sim.errors import ConfigurationRefused
from quadriga.sim.workload.model import Job, Workload

#: key of a queue map: all queues of the trace that are not named
EVERY_OTHER = "*"

DEFAULT_PARTITION = "default"
_NAMESPACE = "namespace"


class Destinations:
    """``partition`` is the partition called default, else the first one. ``foreign`` tells whether
    the configuration was given rather than made from the workload's queues.

    Raises `ConfigurationRefused` for an invalid configuration, one without a partition, and for a
    map with a queue or a user that the workload does not have.
    """

    def __init__(
        self,
        workload: Workload,
        config: str | None,
        *,
        queue_map: Mapping[str, str],
        user_map: Mapping[str, str],
    ) -> None:
        self.foreign = config is not None
        #: whether preemption is possible: some queue has a guarantee
        self.preempts = False
        #: the longest delay (ns) that a queue waits before it acts for a pending ask
        self.longest_delay = 0
        self.partition = DEFAULT_PARTITION
        #: the node ordering policy of the partition in a given configuration
        self.node_sort = ""
        self._leaves: dict[str, str] = {}
        if config is not None:
            self._read(config)
        self._names = {queue.original or queue.name: queue.name for queue in workload.queues}
        known = {*self._names, *self._names.values(), *(job.queue for job in workload.jobs)}
        self._map = {self._names.get(name, name): path for name, path in queue_map.items()}
        for name in queue_map:
            if name not in known and name != EVERY_OTHER:
                raise ConfigurationRefused(
                    f"the queue map names {name!r}, which is none of the workload's queues: "
                    f"{', '.join(sorted(known))}"
                )
        self._users = {name: _identity(text) for name, text in user_map.items()}
        self._own: dict[tuple[str, str | None], si.UserGroupInformation] = {}
        if user_map:
            users = {job.user for job in workload.jobs}
            for name in user_map:
                if name not in users and name != EVERY_OTHER:
                    raise ConfigurationRefused(
                        f"the user map names {name!r}, who is none of the workload's users"
                    )

    def _read(self, config: str) -> None:
        try:
            # an empty text means YuniKorn's default configuration, as for the scheduler
            partitions = load(config if config.strip() else DEFAULT_CONFIGURATION).partitions
        except ConfigError as error:
            raise ConfigurationRefused(" ".join(str(error).split())) from error
        if not partitions:
            raise ConfigurationRefused("the queue configuration has no partition to run in")
        chosen = next((p for p in partitions if p.name == DEFAULT_PARTITION), partitions[0])
        self.partition = chosen.name
        self.node_sort = chosen.node_sort_policy
        queues = list(_walk(chosen.root))
        self.preempts = chosen.preemption_enabled and any(map(_guarantees, queues))
        self.longest_delay = max(max(_delays(queue)) for queue in queues)
        if not chosen.placement_rules:
            leaves = [queue for queue in queues if not queue.parent]
            times = Counter(leaf.name for leaf in leaves)
            self._leaves = {leaf.name: leaf.path for leaf in leaves if times[leaf.name] == 1}

    def queue(self, job: Job) -> str:
        """The queue to submit the application to."""
        mapped = self._map.get(job.queue) or self._map.get(EVERY_OTHER)
        if mapped is not None:
            return mapped
        return self._leaves.get(job.queue, job.queue) if self.foreign else f"root.{job.queue}"

    def user(self, job: Job) -> si.UserGroupInformation:
        """The submitting user. Unless a map says otherwise, the user's groups are one of the same
        name, and the group of the job if the trace has it."""
        mapped = self._users.get(job.user) or self._users.get(EVERY_OTHER)
        if mapped is not None:
            return mapped
        key = job.user, job.group
        known = self._own.get(key)
        if known is None:
            groups = [job.user, *([job.group] if job.group not in (None, job.user) else ())]
            known = self._own[key] = si.UserGroupInformation(user=job.user, groups=groups)
        return known

    def tags(self, job: Job) -> dict[str, str]:
        """The application's tags."""
        return {_NAMESPACE: job.queue} if self.foreign else {}


def _identity(text: str) -> si.UserGroupInformation:
    """Parse ``name`` or ``name:group,group``."""
    user, _, groups = text.partition(":")
    return si.UserGroupInformation(user=user, groups=groups.split(",") if groups else [user])


def _walk(queue: QueueConfig) -> Iterator[QueueConfig]:
    yield queue
    for child in queue.children:
        yield from _walk(child)


def _guarantees(queue: QueueConfig) -> bool:
    template = queue.child_template
    return bool(queue.guaranteed or (template is not None and template.guaranteed))


def _delays(queue: QueueConfig) -> Iterator[int]:
    own, template = queue.properties, queue.child_template
    for properties in (own, parse_properties(template.properties)[0] if template else own):
        yield properties.preemption_delay
        yield properties.quota_preemption_delay
        yield properties.backoff_delay
        yield properties.gang_wait_limit or 0
