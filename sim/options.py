"""The options of a simulation of one workload."""

# Not compiled: it does not run for every message.

from __future__ import annotations

from dataclasses import dataclass

from quadriga.base.times import SECOND
from quadriga.core import Options
from quadriga.core.config import DEFAULT_NODE_SORT_POLICY, NODE_SORT_POLICIES, SORT_POLICIES

ADMISSIONS = ("atomic", "whole", "incremental")
STYLES = ("Soft", "Hard")
MESSAGE_ORDERS = ("design", "k8shim")
ASK_FORMS = ("ask", "allocation")

#: a latency or timeout beyond a year of virtual time is a typing error
_LONGEST_S = 366 * 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationOptions:
    """Raises `ValueError` with one line for an invalid value. All times in s.

    `config` is the text of a queue configuration; without it, one is made from the workload's
    queues, with `policy`, `node_sort` and `gang_admission`. `queue_map` has pairs of a queue name in
    the trace (``*``: all others) and the queue to submit to instead. `user_map` does the same for users
    (``name`` or ``name:group,group``). `start_s` is the delay between an allocation and the start
    of its pod, `release_s` between the request to stop a pod and its end, `confirm_s` between the
    end of a pod and its message. A `placeholder_timeout_s` of 0 means the scheduler's default, less
    than 0 no timeout (X17). With the `ask_form` ``allocation`` the resource manager uses the form
    of SI 1.6: an ask is an Allocation without a node, and everything is identified by keys (X45).
    `lose` and `repeat` are the shares of confirmations that are lost or sent twice, drawn with
    `seed`. `check` checks the invariants after every step. With `expected_runtime` the application
    of a job with a walltime has the tag ``expected.runtime``, which is the walltime in s.
    """

    config: str | None = None
    queue_map: tuple[tuple[str, str], ...] = ()
    user_map: tuple[tuple[str, str], ...] = ()
    policy: str = "fifo"
    node_sort: str = DEFAULT_NODE_SORT_POLICY
    gang_admission: str = "atomic"
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
    expected_runtime: bool = False

    def __post_init__(self) -> None:
        for name, value, known in (
            ("policy", self.policy, SORT_POLICIES),
            ("node_sort", self.node_sort, NODE_SORT_POLICIES),
            ("gang_admission", self.gang_admission, ADMISSIONS),
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
        """The placeholder timeout in the form of a message: 0 is the scheduler's default."""
        return round(self.placeholder_timeout_s * 1000)

    @property
    def placeholder_timeout_in_force_s(self) -> float | None:
        """The effective placeholder timeout; ``None`` means none (X17)."""
        told = self.placeholder_timeout_ms
        if told < 0:
            return None
        return told / 1000 if told else Options().placeholder_timeout / SECOND

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
    """Seconds as whole ns."""
    return round(seconds * SECOND)
