"""Resource managers register, change their configuration, and are forgotten (I7, I10, I39)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadriga.core import reservation
from quadriga.core.config import (
    ConfigError,
    Configuration,
    PartitionConfig,
    PlacementRule,
    QueueConfig,
    load,
    parse_duration,
)
from quadriga.core.dialect import Dialect
from quadriga.core.kernel import Kernel
from quadriga.core.model.partition import Partition
from quadriga.core.model.queue import LeafQueue, ParentQueue, Queue
from quadriga.fsm import QUEUE, RESOURCE_MANAGER
from quadriga.fsm import queue as queue_life
from quadriga.fsm import resource_manager as life
from quadriga.si import (
    RegisterResourceManagerRequest,
    RequestError,
    UpdateConfigurationRequest,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from quadriga.core.model.resource_manager import ResourceManager

__all__ = [
    "DEFAULT_QUEUES",
    "clean_queues",
    "drop_state",
    "read_configuration",
    "register",
    "remove_if_drained",
    "remove_partition_if_drained",
    "update_configuration",
]

#: what a resource manager gets that brings no configuration: one queue for everybody
DEFAULT_QUEUES = """\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: default
"""


def read_configuration(request: str, text: str) -> Configuration:
    """The configuration of a request. Raises ``RequestError`` with every problem and its path."""
    try:
        configuration = load(text if text.strip() else DEFAULT_QUEUES)
    except ConfigError as error:
        raise RequestError(request, "config", str(error)) from None
    unknown = [
        f"{path}: {what} are not acted on yet"
        for at, partition in enumerate(configuration.partitions)
        for path, what in _not_yet(f"partitions[{at}]", partition)
    ]
    if unknown:
        raise RequestError(request, "config", "; ".join(unknown))
    return configuration


def _not_yet(path: str, partition: PartitionConfig) -> list[tuple[str, str]]:
    """What a configuration may say and this version would silently not do: refuse it instead."""
    provided = (PlacementRule("provided"),)
    found = []
    if partition.placement_rules not in ((), provided):
        found.append((f"{path}.placementrules", "placement rules other than provided"))

    def below(queue: QueueConfig) -> None:
        if queue.limits:
            found.append((f"{path} {queue.path}.limits", "user and group limits"))
        for child in queue.children:
            below(child)

    below(partition.root)
    return found


# -- registration ----------------------------------------------------------------------------------


def register(
    kernel: Kernel,
    rm: ResourceManager,
    request: RegisterResourceManagerRequest,
    configuration: Configuration,
) -> None:
    """Take up a resource manager, new or known; one that was known starts from nothing (I7)."""
    kernel.fire(RESOURCE_MANAGER, rm, life.REGISTER)
    rm.version = request.version
    rm.policy_group = request.policyGroup
    rm.build_info = dict(request.buildInfo)
    rm.speaks_allocation_id = request.version.removeprefix("v").startswith("1.5")
    rm.configuration = configuration.checksum
    rm.extra = {}
    _extra(rm, request.extraConfig)
    for config in configuration.partitions:
        partition = Partition(rm, config)
        rm.partitions[config.name] = partition
        _apply(kernel, partition.root, config.root)


def check_extra(request: str, extra: Mapping[str, str]) -> None:
    """Raise ``RequestError`` for a value of ours that cannot be understood."""
    for key, value in sorted(extra.items()):
        field = f"extraConfig[{key}]"
        if key == "si.stateNames" and value not in {d.value for d in Dialect}:
            raise RequestError(request, field, f"{value!r} is neither quadriga nor yunikorn (X1)")
        if key == "si.messageOrder" and value not in {"design", "k8shim"}:
            raise RequestError(request, field, f"{value!r} is neither design nor k8shim (X8)")
        if key in {"rm.pauseTimeout", "release.resend"}:
            try:
                positive = parse_duration(value) > 0
            except ValueError as error:
                raise RequestError(request, field, str(error)) from None
            if not positive:
                raise RequestError(request, field, f"{value!r} is not a positive duration (2.10)")


def _extra(rm: ResourceManager, changes: Mapping[str, str]) -> None:
    """Take over settings; what an update does not name stays as it was."""
    extra = rm.extra = {**rm.extra, **changes}
    rm.dialect = Dialect(extra.get("si.stateNames", "quadriga"))
    rm.design_order = extra.get("si.messageOrder", "design") == "design"
    pause, resend = extra.get("rm.pauseTimeout"), extra.get("release.resend")
    rm.pause_timeout = parse_duration(pause) if pause else None
    rm.resend = parse_duration(resend) if resend else None
    rm.reservations = extra.get("scheduler.disableReservation", "false").lower() != "true"


def drop_state(kernel: Kernel, rm: ResourceManager) -> None:
    """Forget everything of the resource manager (I6, I7). It reports its state again or is gone."""
    for partition in rm.partitions.values():
        partition.dropped = True
    rm.partitions = {}
    rm.configuration = ""


# -- configuration ---------------------------------------------------------------------------------


def update_configuration(
    kernel: Kernel,
    rm: ResourceManager,
    request: UpdateConfigurationRequest,
    configuration: Configuration | None,
) -> None:
    """Change the running queues to what is configured now (2.2, I39); ``None`` leaves them.

    Raises ``RequestError``, before anything has changed, where a queue that is in use would have to
    change between leaf and parent.
    """
    name = type(request).__name__
    for config in configuration.partitions if configuration is not None else ():
        partition = rm.partitions.get(config.name)
        if partition is not None:
            _check_kinds(name, partition.root, config.root)
    rm.policy_group = request.policyGroup or rm.policy_group
    if request.extraConfig:
        reserved = rm.reservations
        _extra(rm, request.extraConfig)
        if rm.reservations != reserved:
            _switch_reservations(kernel, rm)
    if configuration is None or configuration.checksum == rm.configuration:
        return
    rm.configuration = configuration.checksum
    for config in configuration.partitions:
        partition = rm.partitions.get(config.name)
        if partition is None:
            partition = rm.partitions[config.name] = Partition(rm, config)
        elif QUEUE.allows(partition.state, queue_life.RESTORE):
            kernel.fire(QUEUE, partition, queue_life.RESTORE)
        _apply(kernel, partition.root, config.root)
        for queue in partition.queues():  # also of those that drain and are not configured
            queue.capacity_changed()
            if isinstance(queue, LeafQueue):
                queue.refresh_admission()
        partition.configure(config)
    configured = {config.name for config in configuration.partitions}
    for partition in [p for n, p in rm.partitions.items() if n not in configured]:
        if QUEUE.allows(partition.state, queue_life.REMOVE):
            kernel.fire(QUEUE, partition, queue_life.REMOVE)
    clean_queues(kernel, rm)


def _switch_reservations(kernel: Kernel, rm: ResourceManager) -> None:
    """Reservations were switched on or off: drop what there is, or let those who wait look again."""
    for partition in rm.partitions.values():
        if not rm.reservations:
            for kept in list(partition.reservations):
                reservation.cancel(partition, kept)
        for app in partition.applications.values():
            for group in list(app.groups.values()):
                reservation.wait_to_reserve(kernel, group)


def _check_kinds(request: str, queue: Queue, config: QueueConfig) -> None:
    wants_leaf = _is_leaf(config)
    if isinstance(queue, LeafQueue):
        if not wants_leaf and queue.apps:
            raise RequestError(
                request, "config", f"queue {queue.path} has applications and cannot be a parent"
            )
    elif wants_leaf and queue.children and queue.parent is not None:
        busy = [q.path for q in queue.walk() if isinstance(q, LeafQueue) and q.apps]
        if busy:
            raise RequestError(
                request,
                "config",
                f"queue {queue.path} cannot be a leaf: {busy[0]} has applications",
            )
    for child in config.children:
        below = queue.children.get(child.name)
        if below is not None:
            _check_kinds(request, below, child)


def _is_leaf(config: QueueConfig) -> bool:
    return not config.parent and not config.children


def _apply(kernel: Kernel, queue: Queue, config: QueueConfig) -> None:
    """Make the queue and all below it what the configuration says."""
    queue.configure(config)
    _reorder(queue)
    partition = queue.partition
    if queue.parent is None:
        queue.limits = tuple(enumerate(partition.capacity)) if partition.nodes else ()
    queue.capacity_changed()
    queue.regained()
    partition.news += 1
    if QUEUE.allows(queue.state, queue_life.RESTORE):
        kernel.fire(QUEUE, queue, queue_life.RESTORE)
    if isinstance(queue, LeafQueue):
        queue.refresh_admission()
        for app in queue.apps.values():
            app.touch()
            partition.refresh(app)
    for child_config in config.children:
        child = queue.children.get(child_config.name)
        kind = LeafQueue if _is_leaf(child_config) else ParentQueue
        if child is None or type(child) is not kind:
            child = queue.children[child_config.name] = kind(partition, queue, child_config.name)
        _apply(kernel, child, child_config)
    configured = {child.name for child in config.children}
    for child in [c for n, c in queue.children.items() if n not in configured]:
        for below in child.walk():
            if QUEUE.allows(below.state, queue_life.REMOVE):
                kernel.fire(QUEUE, below, queue_life.REMOVE)


def _reorder(queue: Queue) -> None:
    """Another sort policy has other keys, which cannot be compared with those of the old one."""
    if isinstance(queue, LeafQueue):
        for app in queue.apps.values():
            app.rank = None
        queue.serving.reorder()
        queue.admission.reorder()
    else:
        for child in queue.children.values():
            child.rank = None
        queue.reorder()


# -- cleaning --------------------------------------------------------------------------------------


def clean_queues(kernel: Kernel, rm: ResourceManager) -> None:
    """Remove what drains and is empty: queues, then partitions."""
    for partition in list(rm.partitions.values()):
        for queue in reversed(list(partition.queues())):
            _remove_if_empty(kernel, queue)
        remove_partition_if_drained(kernel, partition)


def remove_partition_if_drained(kernel: Kernel, partition: Partition) -> None:
    """A partition that is not configured any more is gone when it has nothing left."""
    if not QUEUE.allows(partition.state, queue_life.REMOVED_):
        return
    if not partition.applications and not partition.nodes:
        kernel.fire(QUEUE, partition, queue_life.REMOVED_)
        del partition.rm.partitions[partition.name]


def remove_if_drained(kernel: Kernel, queue: Queue) -> None:
    """An application left the queue: if it drains and is empty now, so may be those above."""
    for each in queue.lineage:
        _remove_if_empty(kernel, each)
    remove_partition_if_drained(kernel, queue.partition)


def _remove_if_empty(kernel: Kernel, queue: Queue) -> None:
    if queue.parent is None or not QUEUE.allows(queue.state, queue_life.REMOVED_):
        return
    if queue.children or (isinstance(queue, LeafQueue) and queue.apps):
        return
    kernel.fire(QUEUE, queue, queue_life.REMOVED_)
