"""The effects of the shim's lifecycles, as data. ``shim`` has one handler for each of them.

An effect says what must happen to an application or a pod. How that is written to the API server or sent to the
core is not decided here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from quadriga.fsm.table import Effect, Fired


def constant(name: str, *effects: Effect) -> Callable[[Any, Fired], tuple[Effect, ...]]:
    """Return an emitter of this name that always emits the same effects."""

    def emitter(entity: Any, fired: Fired) -> tuple[Effect, ...]:
        return effects

    emitter.__name__ = emitter.__qualname__ = name
    return emitter


# -- of every lifecycle ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Say(Effect):
    """Record a Kubernetes event (K153): for a task about its pod, for an application about its originator. With
    ``originator``, for a task about the originator."""

    reason: str
    action: str
    note: str
    warning: bool = False
    originator: bool = False


@dataclass(frozen=True, slots=True)
class Warn(Effect):
    """Log a warning."""

    text: str


# -- of an application -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AddApplication(Effect):
    """Submit the application to the core. With ``gang`` it includes the placeholder ask, if it has one."""

    gang: bool = True


@dataclass(frozen=True, slots=True)
class RemoveApplication(Effect):
    """Remove the application from the core, with all its asks and allocations."""


@dataclass(frozen=True, slots=True)
class AskForPods(Effect):
    """Ask for every real pod without a node; with ``again`` also for those that were asked for."""

    again: bool = False


@dataclass(frozen=True, slots=True)
class CreateMissing(Effect):
    """Create the placeholders that each task group lacks (K72)."""


@dataclass(frozen=True, slots=True)
class CreateAgain(Effect):
    """Create a placeholder of the group in place of a lost one, at most 3 per minute (K80)."""

    group: str


@dataclass(frozen=True, slots=True)
class DeletePlaceholders(Effect):
    """Delete every placeholder of the application, and create no more."""


@dataclass(frozen=True, slots=True)
class DropWaitingPlaceholders(Effect):
    """Delete the placeholders that have no node, and create no more."""


@dataclass(frozen=True, slots=True)
class FailPods(Effect):
    """Report to the pods without a node that their application has failed (K34)."""

    reason: str


@dataclass(frozen=True, slots=True)
class MarkResumed(Effect):
    """Mark the originator: the gang is over, which a restart must know (K77)."""


@dataclass(frozen=True, slots=True)
class HasEnded(Effect):
    """The core will say nothing more about the application: fire ``failed`` at it."""


@dataclass(frozen=True, slots=True)
class ReleasePod(Effect):
    """Fire ``release`` at the pod's task: the core releases its allocation for the reason ``type``."""

    key: str
    type: int


# -- of a task ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SendAsk(Effect):
    """Ask the core for a node; an earlier ask for the same pod is changed."""


@dataclass(frozen=True, slots=True)
class ReportPod(Effect):
    """Report the pod with its node to the core, as an existing allocation (K91, K141)."""


@dataclass(frozen=True, slots=True)
class BindPod(Effect):
    """Bind the pod to the node that the core chose, after its claims (K102 to K107)."""


@dataclass(frozen=True, slots=True)
class CancelBind(Effect):
    """Stop retrying the bind (K97)."""


@dataclass(frozen=True, slots=True)
class AskAgain(Effect):
    """Release the allocation and ask again, in one request to the core (K108)."""

    uuid: str


@dataclass(frozen=True, slots=True)
class AbandonAssumption(Effect):
    """Stop counting the pod on the node that the core chose (K108, K109)."""


@dataclass(frozen=True, slots=True)
class RefuseNode(Effect):
    """Let predicates refuse this node for the pod for a while (K110)."""

    node: str


@dataclass(frozen=True, slots=True)
class GiveBack(Effect):
    """Release an allocation that the pod cannot use (K111)."""

    uuid: str


@dataclass(frozen=True, slots=True)
class ReleaseAsk(Effect):
    """Release the ask."""


@dataclass(frozen=True, slots=True)
class ConfirmRelease(Effect):
    """Confirm to the core that the allocation of a pod that is gone has ended, with this type (K39, K93)."""

    type: int


@dataclass(frozen=True, slots=True)
class DeletePod(Effect):
    """Delete the pod (K112). With ``preempted`` set the condition with the reason first (K113)."""

    preempted: bool = False


@dataclass(frozen=True, slots=True)
class AnnouncePlaceholder(Effect):
    """Fire ``placeholder_bound`` at the application."""


@dataclass(frozen=True, slots=True)
class ReportForeign(Effect):
    """Report the pod as one of another scheduler, so that its resources count (K143)."""


@dataclass(frozen=True, slots=True)
class ReleaseForeign(Effect):
    """Stop counting the pod as one of another scheduler."""


@dataclass(frozen=True, slots=True)
class Reconcile(Effect):
    """Ask for the pod if its application allows it, or report it if it has a node now."""


# -- of a placeholder that is being created ----------------------------------------------------


@dataclass(frozen=True, slots=True)
class CreatePod(Effect):
    """Create the placeholder under a new name (K69, K72)."""


@dataclass(frozen=True, slots=True)
class CancelCreate(Effect):
    """Do not create the placeholder if its turn has not come (Q16)."""


@dataclass(frozen=True, slots=True)
class NoPlaceholders(Effect):
    """Fire ``placeholders_failed`` at the application."""

    reason: str
    group: str


@dataclass(frozen=True, slots=True)
class TryPlaceholderAgain(Effect):
    """Retry with a single placeholder of the group, after a pause that grows (K202)."""

    group: str


# -- of a node ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SayNode(Effect):
    """Record a Kubernetes event about a node (K153)."""

    reason: str
    note: str
    warning: bool = False


@dataclass(frozen=True, slots=True)
class CreateNode(Effect):
    """Tell the core of the node, which is closed."""


@dataclass(frozen=True, slots=True)
class ReportPodsOfNode(Effect):
    """Report the pods on the node."""


@dataclass(frozen=True, slots=True)
class OpenNode(Effect):
    """Let the core place pods there."""


@dataclass(frozen=True, slots=True)
class CloseNode(Effect):
    """Let the core place no more pods there."""


@dataclass(frozen=True, slots=True)
class UpdateNode(Effect):
    """Tell the core the resources and attributes of the node."""


@dataclass(frozen=True, slots=True)
class DropNode(Effect):
    """Tell the core that the node is gone."""


# -- of the shim -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Recover(Effect):
    """Begin this step of a start or of a recovery (K141)."""

    step: str


@dataclass(frozen=True, slots=True)
class Serve(Effect):
    """Ask for all waiting pods; from now on changes of objects are handled as they come."""


@dataclass(frozen=True, slots=True)
class StopProcess(Effect):
    """End the process."""

    code: int
    reason: str


# -- of a reflector ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class List(Effect):
    """List the objects, in pages unless a page has expired (K19), and announce the differences (K21)."""

    paged: bool = True


@dataclass(frozen=True, slots=True)
class Watch(Effect):
    """Watch from the last known resource version (K20)."""


@dataclass(frozen=True, slots=True)
class Pause(Effect):
    """Wait: 0.8 s at first, longer after each further error (K22). Then fire ``retry``."""


# -- of a connection -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Answer(Effect):
    """Hand the response to the caller; of a watch its head."""


@dataclass(frozen=True, slots=True)
class Fail(Effect):
    """Tell the caller, or the reader of a watch, that no complete response will come."""

    why: str
    #: the server has most likely not seen the request
    untouched: bool = False


@dataclass(frozen=True, slots=True)
class WakeReader(Effect):
    """Wake the reader of a watch: it has ended."""


@dataclass(frozen=True, slots=True)
class CloseSocket(Effect):
    """Close the socket; nothing is read any more."""
