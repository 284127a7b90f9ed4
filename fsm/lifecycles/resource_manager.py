"""The lifecycle of a resource manager as the scheduler sees it (I6).

Registration is always legal: a known resource manager that registers again starts with nothing and
reports its whole state again (I7). A lost connection only pauses it, and its partitions are not
scheduled meanwhile. If it stays away too long, its state is dropped. A voluntary shutdown drops the
state at once.
"""

from __future__ import annotations

from typing import Final, Literal, Protocol

from quadriga.base.times import SECOND
from quadriga.fsm.lifecycle import Lifecycle
from quadriga.fsm.lifecycles.effects import DropState
from quadriga.fsm.table import Effect, Fired, Tone, row, unbounded, within

State = Literal["Init", "Running", "Paused", "Stopped"]
Trigger = Literal["register", "disconnect", "reconnect", "timeout", "shutdown"]

INIT: Final = "Init"
RUNNING: Final = "Running"
PAUSED: Final = "Paused"
STOPPED: Final = "Stopped"

#: States of a resource manager that has registered.
KNOWN: Final = (RUNNING, PAUSED, STOPPED)

REGISTER: Final = "register"
DISCONNECT: Final = "disconnect"
RECONNECT: Final = "reconnect"
TIMEOUT: Final = "timeout"
SHUTDOWN: Final = "shutdown"


class ResourceManagerFacts(Protocol):
    """What the emitters read."""

    state: State

    @property
    def key(self) -> str: ...


def drop_state(rm: ResourceManagerFacts, fired: Fired) -> tuple[Effect, ...]:
    return (DropState(),)


# fmt: off
RESOURCE_MANAGER: Final[Lifecycle[State, Trigger, ResourceManagerFacts]] = Lifecycle(
    "resource_manager",
    initial=INIT,
    final=(),
    lasts={
        INIT:    unbounded(REGISTER),
        RUNNING: unbounded(SHUTDOWN),
        PAUSED:  within(300 * SECOND, then=TIMEOUT),
        STOPPED: unbounded(REGISTER),
    },
    rows=(
        #   trigger     from               to        emit
        row(REGISTER,   (INIT, STOPPED),   RUNNING),
        row(REGISTER,   (RUNNING, PAUSED), RUNNING,  emit=drop_state),
        row(DISCONNECT, RUNNING,           PAUSED),
        row(RECONNECT,  PAUSED,            RUNNING),
        row(TIMEOUT,    PAUSED,            STOPPED,  emit=drop_state),
        row(SHUTDOWN,   (RUNNING, PAUSED), STOPPED,  emit=drop_state),
    ),
)

#: The tone of each state on the pages.
TONES: Final[dict[State, Tone]] = RESOURCE_MANAGER.total("TONES", {
    INIT:    "wait",
    RUNNING: "good",
    PAUSED:  "wait",
    STOPPED: "bad",
})
# fmt: on
