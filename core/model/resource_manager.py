"""A resource manager: its registration, its settings, its partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadriga.core.model.ended import Shelf
from quadriga.core.model.observer import Observer
from quadriga.fsm.lifecycles import application as application_fsm
from quadriga.fsm.lifecycles import resource_manager as resource_manager_fsm

if TYPE_CHECKING:
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.serials import Serials


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
