"""The lifecycle of a reflector: list the objects of one kind, then watch them (K19 to K24).

It is Listing until a complete list was delivered, then Watching. A watch that ends in the ordinary way is
reopened where it was; one whose version has expired needs a new list, and the differences are announced. After
any other error the reflector is in Backoff for a while and continues where it was: with the watch if it knows a
version, else with the list.
"""

from __future__ import annotations

from typing import Final, Literal, Protocol

from quadriga.base.times import SECOND
from quadriga.fsm import Lifecycle, row, unbounded, within
from quadriga.fsm.table import STAYS, Info, Tone
from quadriga.k8s.lifecycles.effects import List, Pause, Watch, constant

State = Literal["Listing", "Watching", "Backoff", "Stopped"]
Trigger = Literal["listed", "ended", "expired", "failed", "retry", "stop"]

LISTING: Final = "Listing"
WATCHING: Final = "Watching"
BACKOFF: Final = "Backoff"
STOPPED: Final = "Stopped"

LISTED: Final = "listed"
ENDED: Final = "ended"
EXPIRED: Final = "expired"
FAILED: Final = "failed"
RETRY: Final = "retry"
STOP: Final = "stop"


class ReflectorFacts(Protocol):
    """The facts that guards read."""

    state: State

    @property
    def key(self) -> str: ...
    @property
    def has_version(self) -> bool: ...  # there is a resource version to watch from


def has_version(reflector: ReflectorFacts, info: Info) -> bool:
    """There is a resource version to watch from."""
    return reflector.has_version


list_all = constant("list_all", List())
#: The continuation of a paged list has expired (K19).
list_whole = constant("list_whole", List(paged=False))
watch = constant("watch", Watch())
pause = constant("pause", Pause())


# fmt: off
REFLECTOR: Final[Lifecycle[State, Trigger, ReflectorFacts]] = Lifecycle(
    "k8s-reflector",
    initial=LISTING,
    final=(STOPPED,),
    lasts={
        LISTING:  unbounded(LISTED),
        WATCHING: unbounded(FAILED),
        BACKOFF:  within(30 * SECOND, then=RETRY),
    },
    rows=(
        #   trigger  from                 to        guard              emit
        row(LISTED,  LISTING,             WATCHING,                    emit=watch),
        row(EXPIRED, LISTING,             STAYS,                       emit=list_whole),
        row(EXPIRED, WATCHING,            LISTING,                     emit=list_all),
        row(ENDED,   WATCHING,            WATCHING,                      emit=watch),
        row(FAILED,  (LISTING, WATCHING), BACKOFF,                     emit=pause),
        row(RETRY,   BACKOFF,             WATCHING, when=has_version,  emit=watch),
        row(RETRY,   BACKOFF,             LISTING,                     emit=list_all),
        row(STOP,    (LISTING, WATCHING, BACKOFF), STOPPED),
    ),
)

#: The tone of each state on the pages.
TONES: Final[dict[State, Tone]] = REFLECTOR.total("TONES", {
    LISTING:  "wait",
    WATCHING: "good",
    BACKOFF:  "bad",
    STOPPED:  "done",
})
# fmt: on
