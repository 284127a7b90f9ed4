"""The effects of the shim's lifecycles, as data. The room ``shim`` has one handler for each of them.

An effect says what must happen to an application or a pod. How it is written to the API server or told to
the core is not said here.
"""

from __future__ import annotations

from dataclasses import dataclass

from quadriga.fsm.table import Effect

__all__ = [
    "AbandonAssumption",
    "AddApplication",
    "AnnouncePlaceholder",
    "AskAgain",
    "AskForPods",
    "BindPod",
    "CancelBind",
    "CloseNode",
    "ConfirmRelease",
    "CreateAgain",
    "CreateMissing",
    "CreateNode",
    "CreatePod",
    "DeletePlaceholders",
    "DeletePod",
    "DropNode",
    "DropWaitingPlaceholders",
    "FailPods",
    "GiveBack",
    "HasEnded",
    "List",
    "MarkResumed",
    "NoPlaceholders",
    "OpenNode",
    "Pause",
    "Recover",
    "RefuseNode",
    "ReleaseAsk",
    "ReleaseForeign",
    "ReleasePod",
    "RemoveApplication",
    "Reconcile",
    "ReportForeign",
    "ReportPod",
    "ReportPodsOfNode",
    "Say",
    "SayNode",
    "SendAsk",
    "Serve",
    "StopProcess",
    "TryPlaceholderAgain",
    "UpdateNode",
    "Warn",
    "Watch",
]


# -- of every lifecycle ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Say(Effect):
    """A Kubernetes event (K153): of a task about its pod, of an application about its originator.
    ``originator``: of a task, but about the originator."""

    reason: str
    action: str
    note: str
    warning: bool = False
    originator: bool = False


@dataclass(frozen=True, slots=True)
class Warn(Effect):
    """A line in the log."""

    text: str


# -- of an application -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AddApplication(Effect):
    """Submit the application to the core. ``gang``: with its placeholder ask, if it has one."""

    gang: bool = True


@dataclass(frozen=True, slots=True)
class RemoveApplication(Effect):
    """Remove the application from the core, with all its asks and allocations."""


@dataclass(frozen=True, slots=True)
class AskForPods(Effect):
    """Ask for every real pod without a node; ``again``: also for those that were asked for."""

    again: bool = False


@dataclass(frozen=True, slots=True)
class CreateMissing(Effect):
    """Create the placeholders that each task group lacks (K72)."""


@dataclass(frozen=True, slots=True)
class CreateAgain(Effect):
    """Create a placeholder of the group in place of a lost one, at most 3 in a minute (K80)."""

    group: str


@dataclass(frozen=True, slots=True)
class DeletePlaceholders(Effect):
    """Delete every placeholder of the application, and create no more."""


@dataclass(frozen=True, slots=True)
class DropWaitingPlaceholders(Effect):
    """Delete the placeholders that have no node, and create no more."""


@dataclass(frozen=True, slots=True)
class FailPods(Effect):
    """Tell the pods without a node that their application has failed (K34)."""

    reason: str


@dataclass(frozen=True, slots=True)
class MarkResumed(Effect):
    """Note at the originator that the gang is over, so that a restart knows it (K77)."""


@dataclass(frozen=True, slots=True)
class HasEnded(Effect):
    """The core will say nothing more about the application: fire ``failed`` at it."""


@dataclass(frozen=True, slots=True)
class ReleasePod(Effect):
    """Fire ``release`` at the pod's task: the core gives up its allocation for the reason ``type``."""

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
    """Bind the pod to the node that the core chose; its claims first (K102 to K107)."""


@dataclass(frozen=True, slots=True)
class CancelBind(Effect):
    """Do not try the bind again (K97)."""


@dataclass(frozen=True, slots=True)
class AskAgain(Effect):
    """One request to the core: give the allocation up, and ask again (K108)."""

    uuid: str


@dataclass(frozen=True, slots=True)
class AbandonAssumption(Effect):
    """The pod no longer counts on the node that the core chose (K108, K109)."""


@dataclass(frozen=True, slots=True)
class RefuseNode(Effect):
    """Predicates refuse this node for the pod for a while (K110)."""

    node: str


@dataclass(frozen=True, slots=True)
class GiveBack(Effect):
    """Release an allocation that the pod cannot use (K111)."""

    uuid: str


@dataclass(frozen=True, slots=True)
class ReleaseAsk(Effect):
    """Take the ask back."""


@dataclass(frozen=True, slots=True)
class ConfirmRelease(Effect):
    """The pod is gone: tell the core that its allocation has ended, with this type (K39, K93)."""

    type: int


@dataclass(frozen=True, slots=True)
class DeletePod(Effect):
    """Delete the pod (K112). ``preempted``: tell it why first (K113)."""

    preempted: bool = False


@dataclass(frozen=True, slots=True)
class AnnouncePlaceholder(Effect):
    """Fire ``placeholder_bound`` at the application."""


@dataclass(frozen=True, slots=True)
class ReportForeign(Effect):
    """Report the pod as one of another scheduler, so that its room is counted (K143)."""


@dataclass(frozen=True, slots=True)
class ReleaseForeign(Effect):
    """The pod does not count as one of another scheduler any more."""


@dataclass(frozen=True, slots=True)
class Reconcile(Effect):
    """Ask for the pod if its application allows it, or report it if it has a node by now."""


# -- of a placeholder that is being created ----------------------------------------------------


@dataclass(frozen=True, slots=True)
class CreatePod(Effect):
    """Create the placeholder under a new name (K69, K72)."""


@dataclass(frozen=True, slots=True)
class NoPlaceholders(Effect):
    """Fire ``placeholders_failed`` at the application."""

    reason: str
    group: str


@dataclass(frozen=True, slots=True)
class TryPlaceholderAgain(Effect):
    """Create no placeholder but one of the group, after a pause that grows (K202)."""

    group: str


# -- of a node ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SayNode(Effect):
    """A Kubernetes event about a node (K153)."""

    reason: str
    note: str
    warning: bool = False


@dataclass(frozen=True, slots=True)
class CreateNode(Effect):
    """Tell the core of the node, closed."""


@dataclass(frozen=True, slots=True)
class ReportPodsOfNode(Effect):
    """Report what runs on the node."""


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
