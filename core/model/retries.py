"""Reservations to retry: their node, quota or ask has changed since the last attempt (5.8).

A leaf with such reservations has a demand bit for them, so the walk down the tree finds them like asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from quadriga.core.model.shapes import RETRY_RESERVATION

if TYPE_CHECKING:
    from quadriga.core.model.application import Application
    from quadriga.core.model.queue import Queue
    from quadriga.core.model.reservation import Reservation

__all__ = ["ReservationsToRetry"]


class ReservationsToRetry:
    """A set of reservations, by leaf and application."""

    __slots__ = ("_leaves",)

    def __init__(self) -> None:
        self._leaves: dict[Queue, dict[Application, dict[Reservation, None]]] = {}

    def __bool__(self) -> bool:
        return bool(self._leaves)

    def __iter__(self) -> Iterator[Reservation]:
        return (each for apps in self._leaves.values() for own in apps.values() for each in own)

    def __contains__(self, reservation: Reservation) -> bool:
        app = reservation.ask.app
        return reservation in self._leaves.get(app.queue, {}).get(app, {})

    def add(self, reservation: Reservation) -> None:
        """Add the reservation, unless its node has no room and must gain some first.

        The room does not matter if the ask requires the node, because the ask may preempt there.
        """
        ask = reservation.ask
        group = ask.group
        if group is not None and not ask.required_node:
            if not group.shape.fits(reservation.node.available):
                return
        app = ask.app
        leaf = app.queue
        apps = self._leaves.get(leaf)
        if apps is None:
            apps = self._leaves[leaf] = {}
            leaf.announce(None, RETRY_RESERVATION)
        apps.setdefault(app, {})[reservation] = None

    def update(self, reservations: Iterable[Reservation]) -> None:
        """Add several reservations."""
        for each in reservations:
            self.add(each)

    def discard(self, reservation: Reservation) -> None:
        """Remove a reservation that was tried or has ended."""
        app = reservation.ask.app
        leaf = app.queue
        apps = self._leaves.get(leaf, {})
        own = apps.get(app, {})
        if reservation not in own:
            return
        del own[reservation]
        if not own:
            del apps[app]
            if not apps:
                del self._leaves[leaf]
                leaf.withdraw(None, RETRY_RESERVATION)

    def demand_of(self, leaf: Queue) -> int:
        """The demand bit of the leaf if it has reservations to retry, else 0."""
        return RETRY_RESERVATION if leaf in self._leaves else 0

    def first_in(self, leaf: Queue) -> Application:
        """The first submitted application with reservations to retry; the leaf must have one."""
        return min(self._leaves[leaf], key=lambda app: app.seq)

    def of(self, app: Application) -> Iterable[Reservation]:
        return self._leaves.get(app.queue, {}).get(app, ())
