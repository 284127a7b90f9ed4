"""Placeholders: how they are created, counted and given up (K61 to K81)."""

from __future__ import annotations

from itertools import islice
from typing import Final

from quadriga.base.pacing import backoff
from quadriga.base.times import MINUTE, SECOND
from quadriga.k8s.conversion import placeholders
from quadriga.k8s.lifecycles import PLACEHOLDER
from quadriga.k8s.lifecycles import application as application_fsm
from quadriga.k8s.lifecycles import placeholder as placeholder_fsm
from quadriga.k8s.lifecycles import task as task_fsm
from quadriga.k8s.lifecycles.effects import (
    CancelCreate,
    CreateAgain,
    CreateMissing,
    CreatePod,
    DeletePlaceholders,
    DropWaitingPlaceholders,
    NoPlaceholders,
    TryPlaceholderAgain,
)
from quadriga.k8s.shim import actions
from quadriga.k8s.shim.applications import (
    look_again,
    look_at_changed,
    settle,
    shortage,
    submit_if_ready,
    wait_for_nodes,
    withdraw,
)
from quadriga.k8s.shim.inputs import CreateEnded
from quadriga.k8s.shim.kernel import Handlers, Kernel
from quadriga.k8s.shim.model import Application, Group, PendingPlaceholder, Task
from quadriga.k8s.shim.pod_groups import is_whole
from quadriga.k8s.shim.tasks import record_about, report_to_members
from quadriga.k8s.tuning import TUNING

_OUTCOMES: Final[dict[str, placeholder_fsm.Trigger]] = {
    "created": placeholder_fsm.CREATED_,
    "name_taken": placeholder_fsm.NAME_TAKEN,
    "refused": placeholder_fsm.REFUSED_,
}


def create_missing(kernel: Kernel, app: Application, effect: CreateMissing) -> None:
    """Create the placeholders that the gang lacks, in the order of its definition (K72)."""
    if not kernel.serving:
        return
    if lacks := shortage(kernel, app):
        wait_for_nodes(kernel, app, lacks)
        report_to_members(kernel, app, lacks)
        return
    kernel.too_large.pop(app, None)
    if app.originator is not None and not app.placeholders and not app.pending_placeholders:
        total = sum(each.spec.min_member for each in app.groups.values())
        made = "1 placeholder is" if total == 1 else f"{total} placeholders are"
        number = len(app.groups)
        note = f"{made} created for {number} task group{'' if number == 1 else 's'}"
        record_about(
            kernel, app.originator, "GangScheduling", "CreatingPlaceholders", note, warning=False
        )
    _gather(kernel, app)
    _fill(kernel)


def _gather(kernel: Kernel, app: Application) -> None:
    """Allow all missing placeholders to be created, slice by slice."""
    for group in app.groups.values():
        group.owed = max(0, app.missing(group))
    kernel.gathering[app] = None


def _fill(kernel: Kernel) -> None:
    """Create missing placeholders, a slice of each gang in turn. The next slice follows as pending placeholders
    end (Q16)."""
    waiting = kernel.gathering
    while waiting and len(kernel.pending_placeholders) < TUNING.all_creates:
        app = next(iter(waiting))
        del waiting[app]
        if app.state not in application_fsm.ASKS_PLACEHOLDERS or not kernel.serving:
            continue
        room = min(
            TUNING.gang_creates - len(app.pending_placeholders),
            TUNING.all_creates - len(kernel.pending_placeholders),
        )
        for group in app.groups.values():
            number = min(room, group.owed, app.missing(group))
            for _ in range(number):
                group.owed -= 1
                _create(kernel, app, group, 0)
            room -= max(0, number)


def create_again(
    kernel: Kernel, entity: Application | PendingPlaceholder, effect: CreateAgain
) -> None:
    """Replace a lost placeholder. After a limited number per minute, each replacement is delayed (K80)."""
    app = entity.app if isinstance(entity, PendingPlaceholder) else entity
    group = app.groups.get(effect.group)
    if group is None or app.state not in application_fsm.ASKS_PLACEHOLDERS or not kernel.serving:
        return
    if app.missing(group) - group.owed <= 0:
        return
    if lacks := shortage(kernel, app):
        wait_for_nodes(kernel, app, lacks)
        return
    most = kernel.settings.gang_retries
    if most == 0:
        return
    group.lost = [when for when in group.lost[-most:] if when > kernel.now - MINUTE]
    start = kernel.now
    if len(group.lost) >= most:
        start = group.lost[-most] + MINUTE
    group.lost.append(start)
    _create(kernel, app, group, start - kernel.now)


def _create(kernel: Kernel, app: Application, group: Group, delay: int) -> str:
    group.created += 1
    group.coming += 1
    key = f"{app.key}/{app.number}/{group.spec.name}/{group.created}"
    pending = PendingPlaceholder(key, app, group.spec.name, delay)
    app.pending_placeholders[key] = pending
    if delay > 0:
        kernel.timers.entered(PLACEHOLDER, pending, kernel.now)
    else:
        kernel.fire_placeholder(pending, placeholder_fsm.CREATE)
    return key


def _create_pod(kernel: Kernel, pending: PendingPlaceholder, effect: CreatePod) -> None:
    app = pending.app
    originator = app.originator
    assert originator is not None
    kernel.pending_placeholders.pop(pending.name, None)
    manifest = placeholders.manifest(
        app.metadata,
        app.groups[pending.group].spec,
        originator,
        kernel.suffix(),
        kernel.settings,
    )
    pending.name = manifest["metadata"]["name"]
    kernel.pending_placeholders[pending.name] = pending
    kernel.actions.append(actions.Create(app.key, pending.group, manifest))


def _cancel_create(kernel: Kernel, pending: PendingPlaceholder, effect: CancelCreate) -> None:
    kernel.actions.append(actions.CancelCreate(pending.app.metadata.namespace, pending.name))


def _go_on(kernel: Kernel, pending: PendingPlaceholder) -> None:
    """Create the remaining placeholders if this one was the probe that shows whether they are allowed again."""
    app = pending.app
    if pending.key != app.probe or pending.state not in placeholder_fsm.ALLOWED:
        return
    app.refused, app.probe = 0, ""
    _gather(kernel, app)
    if pending.state in placeholder_fsm.OVER:  # its pod was seen and is counted next
        app.groups[pending.group].owed -= 1


def create_ended(kernel: Kernel, ended: CreateEnded) -> None:
    """Handle the outcome of a ``Create``."""
    pending = kernel.pending_placeholders.get(ended.name)
    if pending is None or not PLACEHOLDER.allows(pending.state, _OUTCOMES[ended.outcome]):
        return
    kernel.fire_placeholder(
        pending, _OUTCOMES[ended.outcome], reason=ended.reason, group=pending.group
    )
    _go_on(kernel, pending)
    if pending.state in placeholder_fsm.OVER:
        _drop(kernel, pending)
    _fill(kernel)


def _drop(kernel: Kernel, pending: PendingPlaceholder) -> None:
    app = pending.app
    if app.pending_placeholders.pop(pending.key, None) is not None:
        app.groups[pending.group].coming -= 1
        if app.state in application_fsm.ASKS_PLACEHOLDERS:
            kernel.gathering[app] = None
    if kernel.pending_placeholders.get(pending.name) is pending:
        del kernel.pending_placeholders[pending.name]
    kernel.timers.stop(PLACEHOLDER, pending)


def time_is_up(
    kernel: Kernel, pending: PendingPlaceholder, trigger: placeholder_fsm.Trigger
) -> None:
    """Fire a timer of a pending placeholder: its delay is over, or its pod was not seen."""
    if pending.state not in placeholder_fsm.WAITS:
        _drop(kernel, pending)
    kernel.fire_placeholder(pending, trigger, group=pending.group)
    _fill(kernel)


def _no_placeholders(kernel: Kernel, pending: PendingPlaceholder, effect: NoPlaceholders) -> None:
    app = pending.app
    _drop(kernel, pending)
    if app.state in application_fsm.GONE:
        return
    if app.state in application_fsm.ASKS_PLACEHOLDERS and not app.refused:
        where = f"application {app.key}: a placeholder could not be created"
        kernel.actions.append(actions.LogWarning(f"{where}: {effect.reason}"))
    app.timeout_over = app.timeout_over or app.is_overdue(kernel.now)
    info = {"reason": effect.reason, "group": effect.group}
    kernel.fire_application(app, application_fsm.PLACEHOLDERS_FAILED, **info)


def _try_again(kernel: Kernel, app: Application, effect: TryPlaceholderAgain) -> None:
    """Retry with one placeholder. Those that were sent together with the refused one may be refused too and
    count as one."""
    app.held_because = ""
    report_to_members(kernel, app, "one could not be created, see the events")
    for group in app.groups.values():
        group.owed = 0
    if app.probe in app.pending_placeholders:
        return
    app.refused += 1
    pause = backoff(*TUNING.placeholder_pauses_ns, app.refused)
    app.probe = _create(kernel, app, app.groups[effect.group], pause)


def _abandon_pending(kernel: Kernel, app: Application) -> None:
    for pending in list(app.pending_placeholders.values()):
        kernel.fire_placeholder(pending, placeholder_fsm.ABANDON)
        _drop(kernel, pending)


def _drop_waiting(kernel: Kernel, app: Application, effect: DropWaitingPlaceholders) -> None:
    _abandon_pending(kernel, app)
    _discard(
        kernel,
        [each for each in app.placeholders.values() if each.state in task_fsm.UNPLACED],
        True,
    )


def _delete_placeholders(kernel: Kernel, app: Application, effect: DeletePlaceholders) -> None:
    _abandon_pending(kernel, app)
    _discard(kernel, list(app.placeholders.values()), False)
    if app.state in application_fsm.SETTLES and not app.placeholders:
        settle(kernel, app)


def _discard(kernel: Kernel, tasks: list[Task], unplaced: bool) -> None:
    """Delete placeholders: the first slice now, the rest in later turns, so that other pods do not wait for
    them. With ``unplaced`` delete only those without a node at that time."""
    for task in tasks[: TUNING.placeholders_deleted]:
        kernel.fire_task(task, task_fsm.DISCARD)
    kernel.discards.extend((task, unplaced) for task in tasks[TUNING.placeholders_deleted :])


def next_turn(kernel: Kernel) -> int | None:
    """Return when `take_turn` has work to do (ns), or ``None``."""
    if not kernel.serving:
        return None
    return kernel.now if kernel.discards or kernel.looked_at else kernel.look_due


def take_turn(kernel: Kernel) -> None:
    """Do a slice of the work that large gangs have left (Q16)."""
    if not kernel.serving:
        return
    discards = kernel.discards
    for _ in range(min(TUNING.placeholders_deleted, len(discards))):
        task, unplaced = discards.popleft()
        if kernel.tasks.get(task.key) is task and (not unplaced or task.state in task_fsm.UNPLACED):
            kernel.fire_task(task, task_fsm.DISCARD)
    if kernel.look_due is not None and kernel.look_due <= kernel.now:
        kernel.look_due, kernel.look_after = None, kernel.now + SECOND
        kernel.looked_at.update(kernel.too_large)
    for app in list(islice(kernel.looked_at, TUNING.gangs_checked)):
        del kernel.looked_at[app]
        if app.gathers_members and app.state in application_fsm.LOOKED_AT:
            _look_at_group(kernel, app)
        elif app in kernel.too_large:
            _look_again(kernel, app)


def _look_again(kernel: Kernel, app: Application) -> None:
    if app.state in application_fsm.HOLDS:
        look_again(kernel, app)
    elif app.state in application_fsm.ASKS_PLACEHOLDERS:
        create_missing(kernel, app, CreateMissing())
    else:
        del kernel.too_large[app]


def _look_at_group(kernel: Kernel, app: Application) -> None:
    """Check again a gang that is placed whole, because its members may have changed (K204)."""
    if app.state in application_fsm.UNSUBMITTED:
        submit_if_ready(kernel, app, app.tasks.values())
    elif app.state in application_fsm.HOLDS:
        look_at_changed(kernel, app)
    elif app.state in application_fsm.GATHERS and app.chosen:
        changed, app.changed = app.changed, {}
        if not is_whole(kernel, app, changed):
            withdraw(kernel, app)


def seen(kernel: Kernel, name: str) -> None:
    """Note that the pod of a pending placeholder was seen."""
    pending = kernel.pending_placeholders.get(name)
    if pending is not None and PLACEHOLDER.allows(pending.state, placeholder_fsm.SEEN_):
        kernel.fire_placeholder(pending, placeholder_fsm.SEEN_)
        _drop(kernel, pending)
        _go_on(kernel, pending)
        _fill(kernel)


def is_excess(app: Application, task: Task) -> bool:
    """Return whether the task is a placeholder that its gang does not need (K74)."""
    if app.state in application_fsm.DROPS_PLACEHOLDERS or not app.is_gang:
        return True
    group = app.groups.get(task.group)
    if group is None:
        return True
    if app.state in application_fsm.NEEDS_NO_PLACEHOLDER and not task.node:
        return True
    return app.state in application_fsm.ASKS_PLACEHOLDERS and app.missing(group) < 0


# fmt: off
#: what executes the effects of this module
EFFECTS: Final[Handlers] = {
    CreateMissing:           create_missing,
    CreateAgain:             create_again,
    CreatePod:               _create_pod,
    CancelCreate:            _cancel_create,
    NoPlaceholders:          _no_placeholders,
    TryPlaceholderAgain:     _try_again,
    DropWaitingPlaceholders: _drop_waiting,
    DeletePlaceholders:      _delete_placeholders,
}
# fmt: on
