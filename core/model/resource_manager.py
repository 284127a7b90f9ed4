"""A resource manager: its registration, its settings, its partitions, its ended applications."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from quadriga.core.model.observer import Observer
from quadriga.fsm.lifecycles import application as application_fsm
from quadriga.fsm.lifecycles import resource_manager as resource_manager_fsm

if TYPE_CHECKING:
    from collections.abc import Iterable

    from quadriga.core.model.application import EndedApplication
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.serials import Serials


class Shelf:
    """Ended applications of one resource manager, oldest first, bounded in number and bytes.

    Each final state has one duration, so the next application to expire in a state is the one that
    ended first.
    """

    __slots__ = ("_lanes", "bytes", "count")

    def __init__(self, states: Iterable[str]) -> None:
        self._lanes: dict[str, deque[EndedApplication]] = {state: deque() for state in states}
        self.count = 0
        self.bytes = 0

    def add(self, app: EndedApplication) -> None:
        self._lanes[app.state].append(app)
        self.count += 1
        self.bytes += app.size

    def take_over(self, most: int | None, most_bytes: int | None) -> list[EndedApplication]:
        """Remove and return the applications beyond these bounds, oldest first."""
        removed = []
        while self.count and (
            (most is not None and self.count > most)
            or (most_bytes is not None and self.bytes > most_bytes)
        ):
            heads = [lane for lane in self._lanes.values() if lane]
            oldest = min(heads, key=lambda lane: (lane[0].finished, lane[0].seq))
            removed.append(self._take(oldest))
        return removed

    def discard(self, app: EndedApplication) -> None:
        """Remove an expired application, if it is still here."""
        for lane in self._lanes.values():
            if lane and lane[0] is app:
                self._take(lane)

    def counted(self) -> tuple[int, int]:
        """Number and bytes of the applications, recounted from scratch."""
        sizes = [app.size for lane in self._lanes.values() for app in lane]
        return len(sizes), sum(sizes)

    def _take(self, lane: deque[EndedApplication]) -> EndedApplication:
        app = lane.popleft()
        self.count -= 1
        self.bytes -= app.size
        return app


class ResourceManager:
    """``design_order`` and ``dialect`` follow its extraConfig (X1, X8)."""

    __slots__ = (
        "all_states",
        "build_info",
        "configuration",
        "design_order",
        "dialect",
        "ended",
        "entries",
        "extra",
        "observer",
        "partitions",
        "pause_timeout",
        "policy_group",
        "rejected",
        "resend",
        "reservations",
        "rm_id",
        "serials",
        "speaks_allocation_id",
        "state",
        "version",
    )

    def __init__(self, rm_id: str) -> None:
        self.rm_id = rm_id
        self.state: resource_manager_fsm.State = resource_manager_fsm.INIT
        self.entries = 0
        self.version = ""
        self.policy_group = ""
        self.build_info: dict[str, str] = {}
        self.configuration = ""
        self.extra: dict[str, str] = {}
        #: called on changes of its entities
        self.observer = Observer()
        #: names of states in its messages: a value of ``runtime.dialect.Dialect`` (X1)
        self.dialect = "quadriga"
        self.design_order = True
        self.reservations = True
        #: it receives SKIPPED and RESERVED as well as FAILED (X43)
        self.all_states = False
        #: SI 1.5 calls an allocation's UUID its allocationID (X12)
        self.speaks_allocation_id = False
        #: ns; ``None`` is the default
        self.pause_timeout: int | None = None
        self.resend: int | None = None
        self.partitions: dict[str, Partition] = {}
        #: by partition; they remain while a partition is absent from the configuration
        self.serials: dict[str, Serials] = {}
        self.forget_ended()

    def forget_ended(self) -> None:
        """Forget all ended applications."""
        #: ended applications until they expire: those that had a queue, and those without one
        self.ended = Shelf(
            state for state in application_fsm.RECORDED if state not in application_fsm.TURNED_AWAY
        )
        self.rejected = Shelf(application_fsm.TURNED_AWAY)

    def shelf(self, state: application_fsm.State) -> Shelf:
        """The store of the applications that ended in this state."""
        return self.rejected if state in application_fsm.TURNED_AWAY else self.ended

    @property
    def key(self) -> str:
        return self.rm_id
