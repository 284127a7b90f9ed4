"""The queue tree: changed by configurations, by placement and by the cleaner (2.2, 2.9).

``create`` makes every queue except root, which its partition makes; ``configure`` applies settings to
it. A configuration changes the tree (``apply_configuration``), and so does an application that is placed in a queue
that does not exist yet (``create_path``). The cleaner removes empty queues that drain or are dynamic. It runs
every ten seconds, but only if a queue is to be removed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadriga.base.times import SECOND
from quadriga.core.config import PartitionConfig, QueueConfig, inherit, parse_properties
from quadriga.core.model.queue import LeafQueue, ParentQueue, Queue
from quadriga.core.ordering import by_run_time
from quadriga.core.placement import RECOVERY_QUEUE
from quadriga.core.runtime.kernel import Kernel
from quadriga.core.steps import limits
from quadriga.fsm import QUEUE
from quadriga.fsm.lifecycles import queue as queue_fsm
from quadriga.si import RequestError

if TYPE_CHECKING:
    from quadriga.core.model.partition import Partition
    from quadriga.core.placement.quota_tags import QuotaTags

#: ns between two runs of the cleaner (2.10)
CLEAN_EVERY = 10 * SECOND


def create(kernel: Kernel, parent: Queue, name: str, *, leaf: bool, managed: bool = True) -> Queue:
    """Create a queue without settings."""
    queue = (LeafQueue if leaf else ParentQueue)(parent.partition, parent, name)
    queue.managed = managed
    parent.children[name] = queue
    return queue


def _settings_of(queue: Queue) -> tuple[object, ...]:
    """Return the configurable settings of the queue; the first two are its max and its guarantee."""
    return (
        queue.max,
        queue.guaranteed,
        queue.max_applications,
        queue.user_limits,
        queue.group_limits,
        queue.raw_properties,
        queue.submit_acl,
        queue.admin_acl,
        queue.template,
        queue.managed,
    )


def _notify_settings(queue: Queue, before: tuple[object, ...]) -> None:
    """Notify the observer of settings that differ from ``before``, or of a restored queue."""
    if _settings_of(queue) != before or QUEUE.allows(queue.state, queue_fsm.RESTORE):
        queue.partition.rm.observer.queue_configured(queue)
    _notify_amounts(queue, before)


def _notify_amounts(queue: Queue, before: tuple[object, ...]) -> None:
    """Notify the observer of a max or guarantee that differs from ``before``."""
    if queue.max != before[0]:
        queue.partition.rm.observer.max_changed(queue)
    if queue.guaranteed != before[1]:
        queue.partition.rm.observer.guaranteed_changed(queue)


def configure(kernel: Kernel, queue: Queue, config: QueueConfig) -> None:
    """Apply the settings of a configuration or a template to the queue."""
    partition = queue.partition
    users, groups = queue.user_limits, queue.group_limits
    queue.configure(config)
    partition.rm.observer.limits_changed(queue, users, groups)
    if queue.parent is None:
        queue.limits = tuple(enumerate(partition.capacity)) if partition.nodes else ()
    partition.waiting.demand_epoch += 1
    _reorder(queue)
    queue.regained()


def _reorder(queue: Queue) -> None:
    """Drop the cached sort keys: those of two sort policies cannot be compared."""
    if isinstance(queue, LeafQueue):
        for app in queue.apps.values():
            app.rank = None
            if queue.expected:
                by_run_time.begin(app)
        for line in {
            app.gang.line: None for app in queue.apps.values() if app.gang.line is not None
        }:
            line.renew()
    else:
        for child in queue.children.values():
            child.rank = None
    queue.reorder()


# -- the configuration -----------------------------------------------------------------------------


def check_kinds(request: str, queue: Queue, config: QueueConfig) -> None:
    """Raise ``RequestError`` if a queue in use would have to change between leaf and parent."""
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
            check_kinds(request, below, child)


def _is_leaf(config: QueueConfig) -> bool:
    return not config.parent and not config.children


def apply_configuration(
    kernel: Kernel, partition: Partition, config: PartitionConfig, *, new: bool = False
) -> None:
    """Apply a configuration to the partition, which may be ``new``, and its queues.

    Queues that are no longer configured drain. A dynamic queue stays until it is empty; if it is
    configured, it becomes a managed queue.
    """
    partition.configure(config)
    _apply(kernel, partition.root, config.root, new=new)
    limits.rebind(partition)


def _apply(kernel: Kernel, queue: Queue, config: QueueConfig | None, *, new: bool = False) -> None:
    """Apply a configuration to a queue and all below it; ``None`` if the queue is not configured."""
    if config is not None:
        before = _settings_of(queue)
        queue.managed = True
        configure(kernel, queue, config)
        if not new:
            _notify_settings(queue, before)
        if QUEUE.allows(queue.state, queue_fsm.RESTORE):
            kernel.fire(QUEUE, queue, queue_fsm.RESTORE)
    elif not queue.managed and not queue.leaf and queue.parent is not None:
        queue.template = queue.parent.template
    queue.capacity_changed()
    if isinstance(queue, LeafQueue):
        queue.refresh_admission()
        if config is not None:
            for app in queue.apps.values():
                app.touch()
                queue.partition.waiting.refresh(app)
    wanted = {child.name: child for child in config.children} if config is not None else {}
    for name, child_config in wanted.items():
        leaf = _is_leaf(child_config)
        child = queue.children.get(name)
        absent = child is None
        if child is not None and child.leaf != leaf:
            _remove_branch(kernel, child)
            child = create(kernel, queue, name, leaf=leaf)
            queue.partition.rm.observer.queue_type_changed(child)
        elif child is None:
            child = create(kernel, queue, name, leaf=leaf)
            queue.partition.rm.observer.queue_added(child)
        _apply(kernel, child, child_config, new=absent)
    for name in sorted(queue.children.keys() - wanted.keys()):
        child = queue.children[name]
        if config is not None:
            _drain(kernel, child)
        _apply(kernel, child, None)


def _drain(kernel: Kernel, queue: Queue) -> None:
    """Drain a queue that is no longer configured, and all managed queues below it."""
    for below in queue.walk():
        if below.managed and QUEUE.allows(below.state, queue_fsm.REMOVE):
            kernel.fire(QUEUE, below, queue_fsm.REMOVE)
        _start_clean_timer(kernel, below)


# -- placement -------------------------------------------------------------------------------------


def create_path(kernel: Kernel, partition: Partition, path: str) -> LeafQueue:
    """Return the leaf of this path. Missing queues are created; existing ones above are parents (2.9)."""
    queue = partition.root
    names = path.split(".")[1:]
    for depth, name in enumerate(names, 1):
        child = queue.children.get(name)
        if child is None:
            leaf = depth == len(names)
            child = create(kernel, queue, name, leaf=leaf, managed=False)
            partition.rm.observer.queue_added(child)
            configure(kernel, child, _unmanaged(queue, name, leaf=leaf))
            child.capacity_changed()
            if isinstance(child, LeafQueue):
                child.refresh_admission()
        queue = child
    assert isinstance(queue, LeafQueue)
    return queue


def _unmanaged(parent: Queue, name: str, *, leaf: bool) -> QueueConfig:
    """Return the settings of a dynamic queue.

    A leaf gets those of the nearest child template; properties are inherited as for any other queue.
    The recovery queue has only defaults.
    """
    path = f"{parent.path}.{name}"
    template = parent.template
    if path == RECOVERY_QUEUE:
        return QueueConfig(name, path, parent=False)
    own = template.properties if leaf and template is not None else {}
    raw = inherit(parent.raw_properties, own)
    properties, _ = parse_properties(raw)
    if not leaf:
        return QueueConfig(
            name, path, True, properties=properties, raw_properties=raw, child_template=template
        )
    return QueueConfig(
        name,
        path,
        parent=False,
        guaranteed=template.guaranteed if template is not None else None,
        max=template.max if template is not None else None,
        max_applications=template.max_applications if template is not None else 0,
        properties=properties,
        raw_properties=raw,
    )


def apply_quota_tags(kernel: Kernel, leaf: LeafQueue, tags: QuotaTags) -> None:
    """Apply the quotas in an application's tags to its dynamic queue (2.4).

    Values that the tags do not set stay unchanged.
    """
    if leaf.path == RECOVERY_QUEUE:
        return
    quota = tags.max or leaf.max
    guaranteed = tags.guaranteed or leaf.guaranteed
    applications = tags.max_applications or leaf.max_applications
    if (quota, guaranteed, applications) == (leaf.max, leaf.guaranteed, leaf.max_applications):
        return
    amounts = leaf.max, leaf.guaranteed
    leaf.set_amounts(quota, guaranteed)
    _notify_amounts(leaf, amounts)
    leaf.max_applications = applications
    partition = leaf.partition
    partition.waiting.demand_epoch += 1
    leaf.capacity_changed()
    for app in leaf.apps.values():  # in a fair queue their shares depend on the guarantee
        app.touch()
    leaf.regained()
    leaf.refresh_admission()


# -- the cleaner -----------------------------------------------------------------------------------


def application_left(kernel: Kernel, leaf: LeafQueue) -> None:
    """Handle a leaf that an application has left, and that may be empty now."""
    _start_clean_timer(kernel, leaf)
    remove_partition_if_drained(kernel, leaf.partition)


def _start_clean_timer(kernel: Kernel, queue: Queue) -> None:
    """Start the timer of the cleaner if the queue is to be removed."""
    partition = queue.partition
    if partition.clean_timer is None and is_removable(queue):
        delay = CLEAN_EVERY - kernel.now % CLEAN_EVERY
        partition.clean_timer = kernel.timers.start(kernel.now, delay, "partition.clean", partition)


def is_removable(queue: Queue) -> bool:
    """Whether the queue is to be removed: it is empty, and it drains or is dynamic."""
    if queue.parent is None or queue.children or (isinstance(queue, LeafQueue) and queue.apps):
        return False
    return not queue.managed or QUEUE.allows(queue.state, queue_fsm.RESTORE)


def clean(kernel: Kernel, partition: Partition) -> None:
    """Remove all queues that are to be removed, leaves before their parents."""
    _cancel_clean_timer(partition)
    for queue in reversed(list(partition.queues())):
        if is_removable(queue):
            _remove(kernel, queue)
            partition.rm.observer.queue_removed(queue)
    remove_partition_if_drained(kernel, partition)


def _cancel_clean_timer(partition: Partition) -> None:
    if partition.clean_timer is not None:
        partition.clean_timer.cancel()
        partition.clean_timer = None


def _remove(kernel: Kernel, queue: Queue) -> None:
    if QUEUE.allows(queue.state, queue_fsm.REMOVE):
        kernel.fire(QUEUE, queue, queue_fsm.REMOVE)
    kernel.fire(QUEUE, queue, queue_fsm.REMOVED_)


def _remove_branch(kernel: Kernel, queue: Queue) -> None:
    """Remove an unused queue, and all below it, that is replaced by a queue of the other type."""
    for each in reversed(list(queue.walk())):
        _remove(kernel, each)
        if each is not queue:
            queue.partition.rm.observer.queue_removed(each)


def remove_partition_if_drained(kernel: Kernel, partition: Partition) -> None:
    """Remove a partition that is no longer configured when it has no applications and nodes."""
    if not QUEUE.allows(partition.state, queue_fsm.REMOVED_):
        return
    if not partition.applications and not partition.nodes:
        _cancel_clean_timer(partition)
        kernel.fire(QUEUE, partition, queue_fsm.REMOVED_)
        del partition.rm.partitions[partition.name]
        kernel.outbox.partition_dropped(partition)
        partition.rm.observer.partition_removed(partition)
