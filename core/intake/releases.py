"""Releases of allocations by the resource manager, and its confirmations (1.4, 5.10)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from quadriga.core.gangs.confirmations import confirm_replacements
from quadriga.core.intake import foreign
from quadriga.core.intake.fires import ReleaseFires
from quadriga.core.intake.routes import Answers
from quadriga.core.runtime.kernel import Kernel
from quadriga.core.runtime.outbox import BY_SCHEDULER, TERMINATION
from quadriga.core.scheduling.ending import Removals, end_allocation, reject_ask
from quadriga.fsm.lifecycles import allocation as allocation_fsm
from quadriga.si import AllocationRelease, RequestError

if TYPE_CHECKING:
    from quadriga.core.model.allocation import Allocation
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import Ask
    from quadriga.core.model.resource_manager import ResourceManager

_TEXT: Final = "allocation remove as per RM request"


def check_releases(rm: ResourceManager, releases: Iterable[AllocationRelease]) -> None:
    """Refuse the whole request if a release names no application.

    A release with only an allocationKey is of a foreign allocation (X19).
    """
    for at, release in enumerate(releases):
        by_key = release.allocationKey and not (release.UUID or release.allocationID)
        if not release.applicationID and not by_key:
            field = f"releases.allocationsToRelease[{at}].applicationID"
            raise RequestError("AllocationRequest", field, "is required")


def release_allocations(
    kernel: Kernel,
    rm: ResourceManager,
    releases: Iterable[AllocationRelease],
    fires: ReleaseFires,
    answers: Answers,
) -> None:
    """End allocations that the resource manager stopped, and finish releases that it confirms.

    Only releases that the resource manager started are confirmed to it (R3, R4). An unexpected
    confirmation means that the pod is gone; it is handled like a stop but not answered (X32).

    A key alone names every allocation of the ask (X12). It also releases a pending ask that came as an
    Allocation (X45). Other asks have their own release message (R7).
    """
    stopped: list[Allocation] = []
    taken_back: list[Ask] = []
    replaced: dict[Allocation, None] = {}  # an ordered set
    removed = Removals()
    for release in releases:
        if not release.applicationID:
            foreign.release(kernel, rm, release, answers)
            continue
        app = _application(rm, release)
        uuid = release.UUID or release.allocationID
        named = _named(app, uuid, release)
        stops = release.terminationType not in BY_SCHEDULER
        # if there are several, the scheduler requested the release of all of them or of none
        asked_back = (
            bool(named) and TERMINATION.get(named[0].reason or "") == release.terminationType
        )
        if not (stops or asked_back) and _is_late(rm, app, uuid, release):
            kernel.note(
                f"late confirmation of {uuid or release.allocationKey!r} of application "
                f"{release.applicationID!r} ignored: the allocation is over"
            )
            continue
        ask = None if uuid or app is None else app.asks.get(release.allocationKey)
        if ask is not None and ask.terms.by_key and stops:  # X45
            reject_ask(kernel, ask, fires.reject, timed_out=False)
            removed.add_ask(ask)
            taken_back.append(ask)
        elif not named:
            kernel.note(
                f"release of unknown allocation {uuid or release.allocationKey!r} of "
                f"application {release.applicationID!r} ignored"
            )
        for allocation in named:
            if stops:
                end_allocation(kernel, allocation, fires.complete, release.terminationType)
                stopped.append(allocation)
            elif TERMINATION.get(allocation.reason or "") != release.terminationType:
                kernel.note(f"{allocation.key} released by an unasked confirmation")
                end_allocation(kernel, allocation, fires.complete, release.terminationType)
            elif allocation.reason == allocation_fsm.REPLACEMENT:
                replaced[allocation] = None
                continue
            else:
                end_allocation(kernel, allocation, fires.confirm, release.terminationType)
            removed.add_allocation(allocation)
    answers.report_released(kernel, rm, stopped, _TEXT, removed, taken_back)
    for placeholder in confirm_replacements(kernel, replaced, fires.confirm):
        removed.add_allocation(placeholder)
    removed.update_applications(kernel)


def _application(rm: ResourceManager, release: AllocationRelease) -> Application | None:
    partition = rm.partitions.get(release.partitionName or "default")
    return partition.applications.get(release.applicationID) if partition is not None else None


def _named(app: Application | None, uuid: str, release: AllocationRelease) -> list[Allocation]:
    """Return the allocations that the release names (R6, X12)."""
    if app is None:
        return []
    if uuid:
        named = app.allocations.get(uuid) or app.placeholders.get(uuid)
        return [named] if named is not None else []
    if release.allocationKey:
        found = app.held_of(release.allocationKey)
    else:
        found = [*app.allocations.values(), *app.placeholders.values()]
    # a confirmation that names no single allocation is for those with a requested release, if any
    confirmed = [a for a in found if TERMINATION.get(a.reason or "") == release.terminationType]
    return confirmed or found


def _is_late(
    rm: ResourceManager, app: Application | None, uuid: str, release: AllocationRelease
) -> bool:
    """Whether a confirmation belongs to an earlier application with the same ID (X46)."""
    partition = rm.partitions.get(release.partitionName or "default")
    if partition is None:
        return False
    number = partition.serials.answered(release.applicationID, uuid, release.allocationKey)
    return number >= 0 and (app is None or number < app.first_number)
