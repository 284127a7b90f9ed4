"""The health of the shim, for probes (K16). See D274."""

from __future__ import annotations

from dataclasses import dataclass

from quadriga.base.times import SECOND
from quadriga.k8s.tuning import TUNING


@dataclass(frozen=True, slots=True)
class Health:
    """The health. ``alive``: the loop turns. ``ready``: it holds the lease, its caches are synced and the core
    knows the cluster. ``reasons`` say what is missing. ``leader``: the other process that leads, if this one is
    a standby that lacks nothing but the lease."""

    alive: bool
    ready: bool
    reasons: tuple[str, ...] = ()
    leader: str = ""


def health_of(
    *,
    now: int,
    turned_at: int,
    leads: bool,
    unsynced: tuple[str, ...],
    serves: bool,
    stopped: str,
    rival: str = "",
    stuck: str = "",
    delay: int = 0,
    longest: int = TUNING.loop_stuck_ns,
) -> Health:
    """Return the health for these facts. Times are in ns; ``stopped`` is the reason why the shim has ended, ""
    if it has not; ``rival`` holds the lease as this process has read it. ``stuck`` names what the loop has been
    doing for more than ``longest``, and ``delay`` is how long its oldest input waits."""
    reasons = []
    alive = now - turned_at <= TUNING.loop_stuck_ns
    if stopped:
        alive = False
        reasons.append(f"it has stopped: {stopped}")
    elif not alive:
        reasons.append(f"its loop has not turned for {(now - turned_at) // SECOND} s")
    if stuck:
        reasons.append(stuck)
    late = delay > longest
    if late:
        reasons.append(f"a change or an answer has waited for {delay / SECOND:.1f} s")
    if not leads:
        reasons.append(f"{rival or 'another process'} leads")
    if unsynced:
        reasons.append(f"not listed yet: {', '.join(unsynced)}")
    if leads and not unsynced and not serves:
        reasons.append("the core is being told what runs")
    stands_by = alive and not (leads or unsynced or stuck or late)
    return Health(alive, not reasons, tuple(reasons), rival if stands_by else "")
