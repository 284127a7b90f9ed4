"""What can be varied in a simulation of the same workload."""

from __future__ import annotations

from dataclasses import dataclass

from quadriga.core import Options

__all__ = ["ASK_FORMS", "MESSAGE_ORDERS", "NODE_SORTS", "POLICIES", "STYLES", "SimulationOptions"]

POLICIES = ("fifo", "fair", "stateaware")
NODE_SORTS = ("fair", "binpacking")
STYLES = ("Soft", "Hard")
MESSAGE_ORDERS = ("design", "k8shim")
ASK_FORMS = ("ask", "allocation")

#: A latency or timeout beyond a year of virtual time is a slip of the pen.
_LONGEST_S = 366 * 86_400

_SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationOptions:
    """Raises `ValueError` in one line for a value that makes no sense. All times in s.

    `config` is the text of a queue configuration; without it one is made of the workload's queues,
    with `policy` and `node_sort`. `queue_map` has pairs of a queue's name in the trace (``*``: every
    other) and the queue to ask for instead, `user_map` likewise of users and who submits instead
    (``name`` or ``name:group,group``). `start_s` passes between an allocation and its pod running,
    `release_s` between the wish to stop a pod and its end, `confirm_s` between the end of a pod and
    the message that says so. A `placeholder_timeout_s` of 0 is the scheduler's own default, less
    than 0 is never (X17). With the `ask_form` ``allocation`` the resource manager speaks as one of SI
    1.6 does: an ask is an Allocation without a node, and only keys name anything (X45). `lose` and
    `repeat` are the shares of confirmations that get lost or arrive twice, drawn with `seed`. `check`
    looks for violated invariants after every step.
    """

    config: str | None = None
    queue_map: tuple[tuple[str, str], ...] = ()
    user_map: tuple[tuple[str, str], ...] = ()
    policy: str = "fifo"
    node_sort: str = "fair"
    seed: int = 1
    start_s: float = 1.0
    release_s: float = 1.0
    confirm_s: float = 1.0
    gang_style: str = "Soft"
    placeholder_timeout_s: float = 0.0
    message_order: str = "design"
    ask_form: str = "ask"
    reservations: bool = True
    lose: float = 0.0
    repeat: float = 0.0
    check: bool = False
    journal: bool = False

    def __post_init__(self) -> None:
        for name, value, known in (
            ("policy", self.policy, POLICIES),
            ("node_sort", self.node_sort, NODE_SORTS),
            ("gang_style", self.gang_style, STYLES),
            ("message_order", self.message_order, MESSAGE_ORDERS),
            ("ask_form", self.ask_form, ASK_FORMS),
        ):
            if value not in known:
                raise ValueError(f"{name} is {value!r}, not one of {', '.join(known)}")
        for name in ("start_s", "release_s", "confirm_s"):
            # written so that NaN fails too
            if not 0 <= (seconds := getattr(self, name)) <= _LONGEST_S:
                raise ValueError(f"{name} is {seconds:g}, not within 0 and {_LONGEST_S} s")
        if not abs(self.placeholder_timeout_s) <= _LONGEST_S:
            raise ValueError(
                f"placeholder_timeout_s is {self.placeholder_timeout_s:g}, over {_LONGEST_S} s"
            )
        for name in ("lose", "repeat"):
            if not 0 <= (share := getattr(self, name)) <= 1:
                raise ValueError(f"{name} is {share:g}, not a share within 0 and 1")

    @property
    def placeholder_timeout_ms(self) -> int:
        """The placeholder timeout as a message says it: 0 is the scheduler's default."""
        return round(self.placeholder_timeout_s * 1000)

    @property
    def placeholder_timeout_in_force_s(self) -> float | None:
        """How long gangs do hold placeholders; ``None`` is for ever (X17)."""
        told = self.placeholder_timeout_ms
        if told < 0:
            return None
        return told / 1000 if told else Options().placeholder_timeout / _SECOND

    def settings(self) -> dict[str, str]:
        """The extraConfig of the registration."""
        settings = {
            "si.messageOrder": self.message_order,
            "si.stateNames": "quadriga",
            "event.trackingEnabled": "false",  # the simulated resource manager reads no events
        }
        if not self.reservations:
            settings["scheduler.disableReservation"] = "true"
        return settings


def nanoseconds(seconds: float) -> int:
    """Whole ns."""
    return round(seconds * _SECOND)
