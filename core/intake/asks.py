"""Asks arrive, change and are released (I17, M2, M3, R7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from quadriga.base.times import SECOND
from quadriga.core.gangs import admission as gang_admission
from quadriga.core.intake.fires import AskFires, AskReleaseFires
from quadriga.core.intake.repeated_asks import ASKS, EncodedAsks, add_repeated
from quadriga.core.intake.routes import Answers
from quadriga.core.intake.tags import EXPECTED_RUNTIME, RUNTIME_BOUND, run_time, tag
from quadriga.core.model import accounting, predictions
from quadriga.core.model.application import Application
from quadriga.core.model.ask import PLAIN, PLAIN_BY_KEY, Ask, AskKind, Terms
from quadriga.core.model.gang import PLACEHOLDERS
from quadriga.core.resources.locality import Locality, LocalityError, read_rule
from quadriga.core.resources.vectors import Vector
from quadriga.core.runtime.kernel import Kernel
from quadriga.core.runtime.outbox import BY_SCHEDULER
from quadriga.core.runtime.refusal import Refused
from quadriga.core.scheduling.ending import Removals, reject_ask
from quadriga.core.steps import gang, reservation
from quadriga.si import (
    Allocation,
    AllocationAsk,
    AllocationAskRelease,
    AllocationRequest,
    RejectedAllocationAsk,
    RequestError,
    TerminationType,
)
from quadriga.si.constants import (
    KEY_ALLOW_PREEMPTION,
    KEY_REQUIRED_NODE,
    TAG_ALLOW_PREEMPTION,
    TAG_REQUIRED_NODE,
)

if TYPE_CHECKING:
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.resource_manager import ResourceManager

#: characters of a name that is too long
_SHOWN: Final = 50
#: at most this many encoded resources are remembered in a partition, each with its vector
_READ_LIMIT: Final = 10_000


def add_asks(
    kernel: Kernel,
    rm: ResourceManager,
    request: AllocationRequest,
    fires: AskFires,
    answers: Answers,
) -> None:
    """Add new asks and change known ones; all rejections go in one response (M3)."""
    messages, at = request.asks, 0
    encoded = EncodedAsks(request.SerializeToString(), ASKS) if len(messages) > 1 else None
    rejected = []
    while at < len(messages):
        message = messages[at]
        own = encoded.read() if encoded is not None else b""
        at += 1
        try:
            ask = add_ask(kernel, rm, message, fires)
        except Refused as refused:
            kernel.tally.rejected["ask", refused.kind] += 1
            rejected.append(
                RejectedAllocationAsk(
                    allocationKey=message.allocationKey,
                    applicationID=message.applicationID,
                    reason=str(refused),
                )
            )
        else:
            if ask is not None and encoded is not None:
                at += add_repeated(kernel, ask, own, encoded, len(messages) - at, fires)
    if rejected:
        kernel.tally.asks_rejected += len(rejected)
        answers.rejected(kernel, rm, rejected)


def add_ask(
    kernel: Kernel,
    rm: ResourceManager,
    message: AllocationAsk,
    fires: AskFires,
    *,
    by_key: bool = False,
) -> Ask | None:
    """Add the ask of a message, or change a known one. Returns the ask if it is new.

    ``by_key``: the ask came as an Allocation (X45). Raises ``Refused``.
    """
    key, app_id = message.allocationKey, message.applicationID
    if not app_id:
        raise Refused(f"ask {key!r} has no applicationID: independent asks are not supported")
    if not key:
        raise Refused(f"an ask of application {app_id} has no allocationKey")
    if problem := kernel.options.bounds.problem_of(message):
        raise Refused(
            f"ask {key[:_SHOWN]!r} of application {app_id[:_SHOWN]!r} has {problem}", "bounds"
        )
    partition = rm.partitions.get(message.partitionName or "default")
    if partition is None:
        text = f"partition {message.partitionName!r} of ask {key} does not exist"
        raise Refused(text, "partition")
    app = partition.applications.get(app_id)
    if app is None:
        text = f"failed to find application {app_id}, for allocation ask {key}"
        raise Refused(text, "application")
    vector = read_resource(partition, message, "resourcePerAlloc" if by_key else "resourceAsk")
    if partition.registry.shared and (problem := partition.registry.problem_of_shares(vector)):
        raise Refused(f"ask {key} of application {app_id} wants {problem}")
    if message.maxAllocations <= 0:
        raise Refused(
            f"invalid ask added to app {app_id} with key {key}: "
            f"maxAllocations {message.maxAllocations} is not positive"
        )
    if not fires.application.allows(app.state, fires.asked):
        raise Refused(f"application {app_id} is {app.state} and takes no asks: {key}", "state")
    if app.queue.fair and message.placeholder and message.taskGroupName:  # X35, G7
        raise Refused(
            f"queue {app.queue.path} cannot run application {app_id} with task group request: "
            f"unsupported sort type (placeholder ask {key})",
            "gang",
        )
    if app.gang.without_placeholders and message.placeholder and message.taskGroupName:
        raise Refused(
            f"application {app_id} was added with the tag {PLACEHOLDERS}=none and takes no placeholder "
            f"asks: {key}",
            "gang",
        )
    if message.maxAllocations > 1 and (app.is_gang or message.placeholder):
        _check_members(kernel, app, message)
    known = app.asks.get(key)
    if known is not None:
        _change(kernel, known, message, vector, by_key, fires)
        return None
    partition.waiting.arrivals += 1
    terms = _terms_of(kernel, message, by_key)
    kind = _kind_of(app, message, vector, terms)
    ask = Ask(app, key, kind, partition.waiting.arrivals, kernel.now)
    ask.pending, ask.terms = message.maxAllocations, terms
    app.asks[key] = ask
    if ask.kind.placeholder and not app.is_gang:
        gang.become_gang(kernel, app)
    kernel.fire(fires.ask, ask, fires.submit)
    kernel.fire(fires.application, app, fires.asked)
    rm.observer.asks_added((ask,))
    _enter(kernel, app, ask)
    return ask


def _check_members(kernel: Kernel, app: Application, message: AllocationAsk) -> None:
    """Raise ``Refused`` if the repeats of one ask make a gang larger than it may be (Q16)."""
    most = kernel.options.gang_members
    members = message.maxAllocations
    if message.placeholder:
        members += sum(group.pending for group in app.gang.task_groups.values())
        known = app.asks.get(message.allocationKey)
        if known is not None and known.kind.placeholder:
            members -= known.pending
    if members > most:
        raise Refused(
            f"maxAllocations {message.maxAllocations} of ask {message.allocationKey} would give the gang of "
            f"application {app.app_id} {members} members that wait; at most {most} are allowed "
            "(Options.gang_members)"
        )


def read_resource(partition: Partition, message: AllocationAsk, field: str) -> Vector:
    """The vector that is requested in ``field``. Raises ``Refused`` if there is no quantity above zero, or
    a negative one.

    Most asks request the same resources as an earlier ask: these are recognized by their bytes.
    """
    wire = message.resourceAsk.SerializeToString()
    known = partition.registry.decoded.get(wire)
    if known is not None:
        return known
    quantities = {name: each.value for name, each in message.resourceAsk.resources.items()}
    problem = _wrong_resource(quantities, field)
    if problem:
        raise Refused(
            f"invalid ask added to app {message.applicationID} with key "
            f"{message.allocationKey}: {problem}"
        )
    if problem := partition.registry.problem_of(quantities):
        raise Refused(
            f"ask {message.allocationKey} of application {message.applicationID} has {problem}",
            "bounds",
        )
    vector = partition.registry.read(message.resourceAsk)
    if len(partition.registry.decoded) >= _READ_LIMIT:
        partition.registry.decoded.clear()
    partition.registry.decoded[wire] = vector
    return vector


def _wrong_resource(quantities: dict[str, int], field: str) -> str:
    for name, value in sorted(quantities.items()):
        if value < 0:
            return f"{field}[{name}] is negative ({value})"
    return "" if any(quantities.values()) else f"{field} asks for nothing"


def _terms_of(kernel: Kernel, message: AllocationAsk, by_key: bool) -> Terms:
    limit = max(0, message.executionTimeoutMilliSeconds) * (SECOND // 1000)
    terms = read_terms(message.tags, message, message.Originator, limit, by_key)
    if terms.tags and EXPECTED_RUNTIME in terms.tags and not terms.expected_runtime:
        kernel.note(
            f"tag {EXPECTED_RUNTIME} of ask {message.allocationKey} of application "
            f"{message.applicationID} is ignored: {terms.tags[EXPECTED_RUNTIME]!r} is no whole number of "
            "seconds above 0"
        )
    return terms


def _kind_of(app: Application, message: AllocationAsk, vector: Vector, terms: Terms) -> AskKind:
    task_group = message.taskGroupName
    placeholder = message.placeholder and bool(task_group)  # I18
    node = required_node(terms)
    runtime = terms.expected_runtime or app.expected_runtime
    waiting = app.partition.waiting
    if not runtime and (waiting.gangs or waiting.quota_plans):
        # it may be lent what is kept for one of them (Q9)
        expected = predictions.run_time_by_terms(app, terms, task_group)
        runtime = expected.time if expected is not None else 0
    runtime = _rounded(runtime) if runtime else 0
    kinds, priority = app.partition.kinds, message.priority
    locality = None
    if app.gang.rule or (terms.tags and (placeholder or app.is_gang)):
        locality = _locality(app, message, terms)
    return kinds.of(vector, node, priority, placeholder, task_group, runtime, locality)


def _locality(app: Application, message: AllocationAsk, terms: Terms) -> Locality | None:
    """What the ask wants of the domains of its gang (Q13). Raises ``Refused``."""
    try:
        own = read_rule(terms.tags)
    except LocalityError as error:
        name = f"ask {message.allocationKey} of application {app.app_id}"
        raise Refused(f"{name}: {error}", "gang") from None
    if own is None and app.gang.rule is None:
        return None
    app.gang.local = True
    return Locality(app.gang.rule, own)


def _rounded(runtime: int) -> int:
    """Round a time (ns) up to one of eight steps between powers of two of seconds. Then few kinds of asks
    differ in nothing but the time."""
    seconds = runtime // SECOND
    step = 1 << max(0, seconds.bit_length() - 4)
    return -(-seconds // step) * step * SECOND


def read_terms(
    said: Mapping[str, str],
    message: AllocationAsk | Allocation,
    originator: bool,
    run_limit: int = 0,
    by_key: bool = False,
) -> Terms:
    """The terms of an ask, or of the report of a running allocation. Without a PreemptionPolicy its
    allocations may be preempted (X21, 2.11)."""
    tags = dict(said) if said else PLAIN.tags
    itself, others = True, False
    if message.HasField("preemptionPolicy"):
        itself = message.preemptionPolicy.allowPreemptSelf
        others = message.preemptionPolicy.allowPreemptOther
    elif tags:
        itself = tag(tags, TAG_ALLOW_PREEMPTION, KEY_ALLOW_PREEMPTION).lower() != "false"
    if itself and not (tags or originator or run_limit or others):
        return PLAIN_BY_KEY if by_key else PLAIN
    runtime = run_time(tags) if tags else 0
    bound = run_time(tags, RUNTIME_BOUND) if tags else 0
    return Terms(tags, originator, run_limit, itself, others, by_key, runtime, bound)


def required_node(terms: Terms) -> str:
    """The id of the only node for an ask with these terms; empty for any node."""
    return tag(terms.tags, TAG_REQUIRED_NODE, KEY_REQUIRED_NODE) if terms.tags else ""


def _enter(kernel: Kernel, app: Application, ask: Ask) -> None:
    """Count the ask as pending and let it wait for its turn."""
    partition = app.partition
    accounting.add_pending(ask, ask.pending)
    if ask.kind.placeholder:
        gang.count_pending(ask, ask.pending)
        app.partition.waiting.offer_replacements(app)
    elif app.gang.over:
        gang_admission.retry(app)
    partition.hints.asks[ask] = None
    reservation.enqueue(kernel, ask)


def _change(
    kernel: Kernel,
    ask: Ask,
    message: AllocationAsk,
    vector: Vector,
    by_key: bool,
    fires: AskFires,
) -> None:
    """The key of a known ask came again: the message replaces what is still to be allocated (I17).

    A replacement in flight keeps its size and stays one of the pending allocations.
    """
    app, partition = ask.app, ask.app.partition
    placeholder = message.placeholder and bool(message.taskGroupName)
    role = (placeholder, message.taskGroupName)
    if role != (ask.kind.placeholder, ask.kind.task_group) and _has_allocations(ask):
        raise Refused(
            f"ask {ask.ask_key} of application {app.app_id} has allocations as a "
            f"{'placeholder' if ask.kind.placeholder else 'real ask'} of task group "
            f"{ask.kind.task_group!r}: that cannot change",
            "state",
        )
    terms = _terms_of(kernel, message, by_key)
    kind = _kind_of(app, message, vector, terms)
    kernel.fire(fires.ask, ask, fires.update)
    in_flight = 1 if ask.planned is not None else 0
    accounting.remove_pending(ask, ask.pending - in_flight)
    reservation.cancel_all_of(partition, ask)
    partition.waiting.remove(ask)
    if ask.kind.placeholder:
        gang.count_pending(ask, -ask.pending)
    elif placeholder and not app.is_gang:
        gang.become_gang(kernel, app)
    ask.pending, ask.terms, ask.kind = message.maxAllocations, terms, kind
    # what it asks for now is new
    ask.preempted, ask.preempt_from, ask.preemption_queue = False, 0, None
    partition.rm.observer.asks_added((ask,))
    if ask.kind.placeholder:
        gang.count_pending(ask, ask.pending)
    app.partition.waiting.offer_replacements(app)
    accounting.add_pending(ask, ask.pending - in_flight)
    ask.hinted = False
    partition.hints.asks[ask] = None
    if app.gang.over:
        gang_admission.retry(app)
    if not in_flight:
        reservation.enqueue(kernel, ask)
        if ask.group is not None:
            reservation.start_reserve_timer(kernel, ask.group)


def _has_allocations(ask: Ask) -> bool:
    app = ask.app
    held = app.placeholders if ask.kind.placeholder else app.allocations
    return ask.planned is not None or any(each.ask is ask for each in held.values())


# -- releases --------------------------------------------------------------------------------------


def check_ask_releases(rm: ResourceManager, releases: Iterable[AllocationAskRelease]) -> None:
    """Refuse the whole request if one of the releases does not say what it releases (R7)."""
    for at, release in enumerate(releases):
        field = f"releases.allocationAsksToRelease[{at}]"
        if not release.partitionName:
            raise RequestError("AllocationRequest", f"{field}.partitionName", "is required")
        if not release.applicationID and not release.allocationKey:
            raise RequestError(
                "AllocationRequest", field, "needs an applicationID or an allocationKey"
            )


def release_asks(
    kernel: Kernel,
    rm: ResourceManager,
    releases: Iterable[AllocationAskRelease],
    fires: AskReleaseFires,
    answers: Answers,
) -> None:
    """Release the asks that the resource manager names, and confirm with the same type (X30).

    A type that only the scheduler creates is a late confirmation, which is ignored (X8).
    """
    removed = Removals()
    dropped: list[Ask] = []
    for release in releases:
        if release.terminationType in BY_SCHEDULER:
            kernel.note(
                f"confirmation of ask release {release.allocationKey!r} ignored: an ask ends when its "
                "release is sent"
            )
            continue
        asks = _named(rm, release)
        if not asks:
            kernel.note(f"release of unknown ask {release.allocationKey!r} ignored")
        for ask in asks:
            reject_ask(kernel, ask, fires.reject, timed_out=False)
            removed.add_ask(ask)
        dropped.extend(asks)
    if not rm.design_order:  # X8
        removed.update_applications(kernel)
    text = "ask released as per RM request"
    answers.released_asks(kernel, dropped, TerminationType.STOPPED_BY_RM, text)
    removed.update_applications(kernel)


def _named(rm: ResourceManager, release: AllocationAskRelease) -> list[Ask]:
    partition = rm.partitions.get(release.partitionName)
    if partition is None:
        return []
    key = release.allocationKey
    if not release.applicationID:
        return [app.asks[key] for app in partition.applications.values() if key in app.asks]
    app = partition.applications.get(release.applicationID)
    if app is None:
        return []
    if not key:
        return list(app.asks.values())
    return [app.asks[key]] if key in app.asks else []
