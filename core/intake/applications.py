"""New and removed applications (2.4, M5)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from quadriga.base.texts import shortened
from quadriga.base.times import MILLISECOND, SECOND
from quadriga.core.config.properties import TIMEOUT_FROM
from quadriga.core.intake.fires import AdditionFires, RemovalFires
from quadriga.core.intake.routes import Answers
from quadriga.core.intake.tags import SECONDS, has_no_placeholders, run_time
from quadriga.core.model.application import Application
from quadriga.core.model.gang import PLACEHOLDERS, TIMEOUT_TAG, whole_seconds
from quadriga.core.model.partition import Partition
from quadriga.core.model.queue import LeafQueue, Queue
from quadriga.core.placement import Placed, Submission, rules_of
from quadriga.core.placement.quota_tags import read_quota_tags
from quadriga.core.resources.locality import LocalityError, Rule, read_rule
from quadriga.core.resources.vectors import Vector
from quadriga.core.runtime.kernel import Kernel
from quadriga.core.runtime.refusal import Refused
from quadriga.core.scheduling import ending
from quadriga.core.steps import limits, queue_tree
from quadriga.fsm.lifecycles import queue as queue_fsm
from quadriga.si import (
    AcceptedApplication,
    AddApplicationRequest,
    ApplicationResponse,
    RejectedApplication,
    RemoveApplicationRequest,
    TerminationType,
)
from quadriga.si.constants import APP_TAG_CREATE_FORCE, TAG_CREATION_TIME

if TYPE_CHECKING:
    from quadriga.core.model.resource_manager import ResourceManager


#: user and group of an application that runs already and names none (2.4)
NOBODY, NOGROUP = "nobody", "nogroup"


def add_applications(
    kernel: Kernel,
    rm: ResourceManager,
    requests: Iterable[AddApplicationRequest],
    fires: AdditionFires,
    answers: Answers,
) -> None:
    """Accept or reject each application; one response names all of them (M5)."""
    response = ApplicationResponse()
    for request in requests:
        app_id = request.applicationID
        try:
            _add(kernel, rm, request, fires)
        except Refused as refused:
            reason = shortened(str(refused))
            kernel.tally.applications_rejected += 1
            kernel.tally.rejected["application", refused.kind] += 1
            rm.observer.application_rejected(shortened(app_id), reason)
            response.rejected.append(RejectedApplication(applicationID=app_id, reason=reason))
        else:
            kernel.tally.applications_accepted += 1
            response.accepted.append(AcceptedApplication(applicationID=app_id))
    if requests:
        answers.send(kernel, rm, response)


def _add(
    kernel: Kernel, rm: ResourceManager, request: AddApplicationRequest, fires: AdditionFires
) -> None:
    app_id = request.applicationID
    if not app_id:
        raise Refused("an application needs an applicationID")
    if problem := kernel.options.bounds.problem_of(request):
        raise Refused(f"application {shortened(app_id)} has {problem}", "bounds")
    partition = rm.partitions.get(request.partitionName or "default")
    if partition is None:
        raise Refused(
            f"failed to add application {app_id}: "
            f"partition {request.partitionName!r} does not exist",
            "partition",
        )
    rule = _rule_of(request)
    submission = _read(kernel, request)
    try:
        placed, leaf, whole = _admit(kernel, partition, request, submission)
    except Refused as refused:
        app = _new(kernel, partition, partition.root, request, submission)
        app.rejected_message = shortened(str(refused))
        ending.record_rejected(kernel, app, fires.reject)
        raise
    app = _new(kernel, partition, leaf, request, submission)
    app.placed_by = placed.by
    app.gang.size = whole
    app.gang.announced = whole is not None
    app.gang.rule, app.gang.local = rule, rule is not None
    app.gang.hard = _is_hard(kernel, request)
    bare = whole is not None and has_no_placeholders(app.tags)
    app.gang.without_placeholders = app.gang.over = bare
    app.gang.timeout = 0 if bare else _placeholder_timeout(kernel, app, request)
    if (whole is None or bare) and request.executionTimeoutMilliSeconds > 0:
        app.run_limit = request.executionTimeoutMilliSeconds * MILLISECOND
    app.first_number = partition.serials.first(app_id, kernel.now)
    partition.applications[app_id] = app
    leaf.apps[app_id] = app
    app.above = leaf.admission
    rm.observer.application_added(app)
    limits.bind(app)


def _rule_of(request: AddApplicationRequest) -> Rule | None:
    """What the application wants of the domains of its gang (Q13). Raises ``Refused``."""
    try:
        return read_rule(request.tags)
    except LocalityError as error:
        raise Refused(f"application {request.applicationID}: {error}", "gang") from None


def _is_hard(kernel: Kernel, request: AddApplicationRequest) -> bool:
    """X41: an unknown style is noted and taken as Soft, which is the default."""
    style = request.gangSchedulingStyle
    if not style:
        return False
    if style.lower() not in ("soft", "hard"):
        text = (
            f"gangSchedulingStyle {style!r} of application {request.applicationID} is taken as Soft"
        )
        kernel.note(text)
    return style.lower() == "hard"


def _read(kernel: Kernel, request: AddApplicationRequest) -> Submission:
    """Read the submission for the placement rules. Groups that are not named are looked up (I24)."""
    user, groups = request.ugi.user, tuple(request.ugi.groups)
    # if names differ only in case, the first in order counts
    named = sorted(request.tags.items(), reverse=True) if request.tags else ()
    tags = {name.lower(): value for name, value in named}
    forced = tags.get(APP_TAG_CREATE_FORCE, "").lower() == "true"
    if user and not groups and kernel.groups_of is not None:
        groups = tuple(kernel.groups_of(user))
    if forced:
        user, groups = user or NOBODY, groups or (NOGROUP,)
    return Submission(user, groups, request.queueName, tags, forced)


def _new(
    kernel: Kernel,
    partition: Partition,
    queue: Queue,
    request: AddApplicationRequest,
    submission: Submission,
) -> Application:
    partition.submissions += 1
    app = Application(request.applicationID, partition, queue, partition.submissions, kernel.now)
    app.user = submission.user
    app.groups_of_user = submission.groups
    app.queue_asked = request.queueName
    app.tags = dict(request.tags)
    app.expected_runtime = run_time(app.tags)
    for name, rule in SECONDS.items():
        if name in app.tags and not whole_seconds(app.tags[name]):
            kernel.note(
                f"tag {name} of application {app.app_id} is ignored: "
                f"{app.tags[name]!r} is no whole number of seconds above 0 ({rule})"
            )
    if (told := app.tags.get(TIMEOUT_TAG)) is not None and told.lower() not in TIMEOUT_FROM:
        kernel.note(
            f"tag {TIMEOUT_TAG} of application {app.app_id} is ignored: {shortened(told)!r} is none of "
            f"{', '.join(TIMEOUT_FROM)} (D328)"
        )
    if PLACEHOLDERS in app.tags and not (
        has_no_placeholders(app.tags) and request.placeholderAsk.resources
    ):
        kernel.note(
            f"tag {PLACEHOLDERS} of application {app.app_id} is ignored: it says "
            f"{app.tags[PLACEHOLDERS]!r}, not 'none', or there is no placeholderAsk"
        )
    app.history.append((kernel.now, app.state))
    return app


def _admit(
    kernel: Kernel, partition: Partition, request: AddApplicationRequest, submission: Submission
) -> tuple[Placed, LeafQueue, Vector | None]:
    """Return the placement, the leaf, and the size of the gang (2.4). Raises ``Refused``.

    A queue that was created for an application that is then refused is removed by the cleaner.
    """
    app_id = request.applicationID
    if not submission.user:  # checked before everything else
        raise Refused("empty user cannot resolve")
    if partition.state not in queue_fsm.ADMITS:
        text = f"partition {partition.key} is stopped cannot add a new application {app_id}"
        raise Refused(text, "state")
    if app_id in partition.applications:
        raise Refused(
            f"adding application {app_id} to partition {partition.key}, "
            "but application already existed",
            "duplicate",
        )
    try:
        placed = rules_of(partition.config).place(submission, partition)
    except Refused as refused:
        raise Refused(f"failed to place application {app_id}: {refused}", "placement") from None
    leaf = queue_tree.create_path(kernel, partition, placed.path)
    if not leaf.managed:
        quotas = read_quota_tags(submission.tags)
        for name in quotas.unreadable:
            kernel.note(f"tag {name} of application {app_id} cannot be read: ignored")
        queue_tree.apply_quota_tags(kernel, leaf, quotas)
    try:
        return placed, leaf, _gang(partition, leaf, request)
    except Refused:
        queue_tree.application_left(kernel, leaf)
        raise


def _gang(partition: Partition, leaf: LeafQueue, request: AddApplicationRequest) -> Vector | None:
    """Return the size of the application's gang, or ``None``. Raises ``Refused`` (G6, G7)."""
    app_id = request.applicationID
    if problem := partition.registry.problem_of(request.placeholderAsk.resources):
        raise Refused(f"placeholderAsk of application {app_id} has {problem}", "bounds")
    whole = partition.registry.read(request.placeholderAsk)
    if any(value < 0 for value in whole):
        raise Refused(f"placeholderAsk of application {app_id} has a negative quantity")
    if not any(whole):
        return None
    bare = has_no_placeholders(request.tags)
    if leaf.fair and not bare:  # G7
        raise Refused(
            f"queue {leaf.path} cannot run application {app_id} with task group request: "
            "unsupported sort type",
            "gang",
        )
    # G6; root's max is the capacity of the nodes, not a quota (G12).
    for queue in leaf.lineage[:-1]:
        if any(index < len(whole) and whole[index] > limit for index, limit in queue.limits):
            text = partition.registry.text
            limits = " ".join(f"{name}={value}" for name, value in sorted(queue.max.items()))  # type: ignore[union-attr]
            raise Refused(
                f"queue {queue.path} cannot fit application {app_id}: {'gang' if bare else 'task group'} "
                f"request {text(whole)} larger than max queue allocation {limits}",
                "gang",
            )
    return whole


def _placeholder_timeout(kernel: Kernel, app: Application, request: AddApplicationRequest) -> int:
    """Return the timeout in ns; 0 is none.

    An unset value is 15 minutes, a negative one no timeout (X17). The age given by a tag is deducted
    (2.10).
    """
    asked = request.executionTimeoutMilliSeconds
    if asked < 0:
        return 0
    timeout = asked * MILLISECOND or kernel.options.placeholder_timeout
    created = app.tags.get(TAG_CREATION_TIME, "")
    if created.isdecimal() and len(created) < 19:
        age = kernel.now - int(created) * SECOND
        if age > 0:
            timeout = max(MILLISECOND, timeout - age)
    return min(timeout, 2**62)


def remove_applications(
    kernel: Kernel,
    rm: ResourceManager,
    requests: Iterable[RemoveApplicationRequest],
    fires: RemovalFires,
    answers: Answers,
) -> None:
    for request in requests:
        _remove(kernel, rm, request, fires, answers)


def _remove(
    kernel: Kernel,
    rm: ResourceManager,
    request: RemoveApplicationRequest,
    fires: RemovalFires,
    answers: Answers,
) -> None:
    """Remove an application with its asks and allocations (I23, M6, X31). Ignore an unknown one."""
    partition = rm.partitions.get(request.partitionName or "default")
    app = partition.applications.get(request.applicationID) if partition is not None else None
    if app is None:
        kernel.note(f"removal of unknown application {request.applicationID!r} ignored")
        return
    released = ending.remove_application(kernel, app, fires.reject, fires.complete)

    def say_released() -> None:
        text = f"Application {app.app_id} Removed"
        answers.released(kernel, released, TerminationType.STOPPED_BY_RM, text)

    if rm.design_order:
        say_released()
        ending.finish_removal(kernel, app, fires.ends)
    else:
        ending.finish_removal(kernel, app, fires.ends)
        say_released()
