"""The tree of queues: it follows the configuration, grows by placement, and is cleaned (2.2, 2.9).

A queue is made in ``create`` and nowhere else (but for root, which its partition makes), and told in
``configure`` what it is to be. Three things move the tree: a configuration (``follow``), an
application that is placed where no queue is yet (``grow``), and the cleaner, which removes what
drains or was made by placement once it is empty. It comes round at every tenth second, but only
while there is something for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadriga.core.config import PartitionConfig, QueueConfig, inherit, parse_properties
from quadriga.core.model.queue import LeafQueue, ParentQueue, Queue
from quadriga.core.placement import RECOVERY_QUEUE
from quadriga.core.runtime.kernel import Kernel
from quadriga.core.scheduling import limits
from quadriga.fsm import QUEUE
from quadriga.fsm import queue as queue_fsm
from quadriga.fsm.table import SECOND
from quadriga.si import RequestError

if TYPE_CHECKING:
    from quadriga.core.model.partition import Partition
    from quadriga.core.placement.quota_tags import QuotaTags

__all__ = [
    "CLEAN_EVERY",
    "check_kinds",
    "clean",
    "follow",
    "grow",
    "is_over",
    "left",
    "remove_partition_if_drained",
    "set_by_tags",
]

#: ns between two rounds of the cleaner (2.10)
CLEAN_EVERY = 10 * SECOND


def create(kernel: Kernel, parent: Queue, name: str, *, leaf: bool, managed: bool = True) -> Queue:
    """A new queue, not configured yet."""
    queue = (LeafQueue if leaf else ParentQueue)(parent.partition, parent, name)
    queue.managed = managed
    parent.children[name] = queue
    return queue


def _said_of(queue: Queue) -> tuple[object, ...]:
    """What a configuration says of the queue itself, with its quota and its guarantee first."""
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


def _tell_changes(queue: Queue, before: tuple[object, ...]) -> None:
    """The configuration may say something else than ``before``, or has it again."""
    if _said_of(queue) != before or QUEUE.allows(queue.state, queue_fsm.RESTORE):
        queue.partition.rm.observer.queue_configured(queue)
    _tell_amounts(queue, before)


def _tell_amounts(queue: Queue, before: tuple[object, ...]) -> None:
    """The quota or the guarantee may be another than ``before``."""
    if queue.max != before[0]:
        queue.partition.rm.observer.max_changed(queue)
    if queue.guaranteed != before[1]:
        queue.partition.rm.observer.guaranteed_changed(queue)


def configure(kernel: Kernel, queue: Queue, config: QueueConfig) -> None:
    """Make the queue itself what the configuration, or its template, says."""
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
    """Another sort policy has other keys, which cannot be compared with those of the old one."""
    if isinstance(queue, LeafQueue):
        for app in queue.apps.values():
            app.rank = None
    else:
        for child in queue.children.values():
            child.rank = None
    queue.reorder()


# -- the configuration -----------------------------------------------------------------------------


def check_kinds(request: str, queue: Queue, config: QueueConfig) -> None:
    """Raise ``RequestError`` where a queue in use would have to change between leaf and parent."""
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


def follow(
    kernel: Kernel, partition: Partition, config: PartitionConfig, *, new: bool = False
) -> None:
    """Make the partition, which may be ``new``, and its queues what the configuration says.

    What is configured no longer drains; what placement made stays as it is until it is empty, or
    until it is configured, which makes it a managed queue.
    """
    partition.configure(config)
    _follow(kernel, partition.root, config.root, new=new)
    limits.rebind(partition)


def _follow(kernel: Kernel, queue: Queue, config: QueueConfig | None, *, new: bool = False) -> None:
    """One queue and all below it; ``None``: it is not configured, but those above it may be."""
    if config is not None:
        before = _said_of(queue)
        queue.managed = True
        configure(kernel, queue, config)
        if not new:
            _tell_changes(queue, before)
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
        _follow(kernel, child, child_config, new=absent)
    for name in sorted(queue.children.keys() - wanted.keys()):
        child = queue.children[name]
        if config is not None:
            _drain(kernel, child)
        _follow(kernel, child, None)


def _drain(kernel: Kernel, queue: Queue) -> None:
    """It is configured no longer: it and all configured ones below drain."""
    for below in queue.walk():
        if below.managed and QUEUE.allows(below.state, queue_fsm.REMOVE):
            kernel.fire(QUEUE, below, queue_fsm.REMOVE)
        _offer_to_cleaner(kernel, below)


# -- placement -------------------------------------------------------------------------------------


def grow(kernel: Kernel, partition: Partition, path: str) -> LeafQueue:
    """The leaf of this path, made with the parents that it lacks; what exists is a parent (2.9)."""
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
    """What a queue is that placement makes: a leaf after the nearest template, and properties come
    down as for any other queue. The recovery queue is first come first served and no more."""
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


def set_by_tags(kernel: Kernel, leaf: LeafQueue, tags: QuotaTags) -> None:
    """The quotas of a namespace, as an application's tags bring them (2.4).

    They are for queues that placement made. What they do not set stays as it is.
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
    _tell_amounts(leaf, amounts)
    leaf.max_applications = applications
    partition = leaf.partition
    partition.waiting.demand_epoch += 1
    leaf.capacity_changed()
    for app in leaf.apps.values():  # in a fair queue their shares are of what is guaranteed
        app.touch()
    leaf.regained()
    leaf.refresh_admission()


# -- the cleaner -----------------------------------------------------------------------------------


def left(kernel: Kernel, leaf: LeafQueue) -> None:
    """An application left the leaf, which may be empty now."""
    _offer_to_cleaner(kernel, leaf)
    remove_partition_if_drained(kernel, leaf.partition)


def _offer_to_cleaner(kernel: Kernel, queue: Queue) -> None:
    """If the queue is to go, let the cleaner see it when it comes round."""
    partition = queue.partition
    if partition.clean_timer is None and is_over(queue):
        delay = CLEAN_EVERY - kernel.now % CLEAN_EVERY
        partition.clean_timer = kernel.timers.start(kernel.now, delay, "partition.clean", partition)


def is_over(queue: Queue) -> bool:
    """Whether it is empty, and nobody configured it: it drains, or placement made it."""
    if queue.parent is None or queue.children or (isinstance(queue, LeafQueue) and queue.apps):
        return False
    return not queue.managed or QUEUE.allows(queue.state, queue_fsm.RESTORE)


def clean(kernel: Kernel, partition: Partition) -> None:
    """Remove all queues that are over, leafs before their parents."""
    _rest(partition)
    for queue in reversed(list(partition.queues())):
        if is_over(queue):
            _remove(kernel, queue)
            partition.rm.observer.queue_removed(queue)
    remove_partition_if_drained(kernel, partition)


def _rest(partition: Partition) -> None:
    if partition.clean_timer is not None:
        partition.clean_timer.cancel()
        partition.clean_timer = None


def _remove(kernel: Kernel, queue: Queue) -> None:
    if QUEUE.allows(queue.state, queue_fsm.REMOVE):
        kernel.fire(QUEUE, queue, queue_fsm.REMOVE)
    kernel.fire(QUEUE, queue, queue_fsm.REMOVED_)


def _remove_branch(kernel: Kernel, queue: Queue) -> None:
    """It is idle and becomes a queue of the other kind: another object in its place."""
    for each in reversed(list(queue.walk())):
        _remove(kernel, each)
        if each is not queue:
            queue.partition.rm.observer.queue_removed(each)


def remove_partition_if_drained(kernel: Kernel, partition: Partition) -> None:
    """A partition that is not configured any more is gone when it has nothing left."""
    if not QUEUE.allows(partition.state, queue_fsm.REMOVED_):
        return
    if not partition.applications and not partition.nodes:
        _rest(partition)
        kernel.fire(QUEUE, partition, queue_fsm.REMOVED_)
        del partition.rm.partitions[partition.name]
        kernel.outbox.partition_dropped(partition)
        partition.rm.observer.partition_removed(partition)
