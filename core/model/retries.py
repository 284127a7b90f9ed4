"""Reservations that may have become allocations since they were last tried (5.8).

A leaf with any of them has a want for it, so the walk down the tree finds the first one as it finds
everybody else.
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
        """It may be usable now, unless its node has no room: then the node has to gain some first.
        Where others may have to go for it, on the node that it requires, that does not matter."""
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
        """They may be usable now."""
        for each in reservations:
            self.add(each)

    def discard(self, reservation: Reservation) -> None:
        """It has been tried, or is no more."""
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
        """The want of the leaf, if it has one."""
        return RETRY_RESERVATION if leaf in self._leaves else 0

    def first_in(self, leaf: Queue) -> Application:
        """The application of the leaf that was submitted first. It must have one."""
        return min(self._leaves[leaf], key=lambda app: app.seq)

    def of(self, app: Application) -> Iterable[Reservation]:
        return self._leaves.get(app.queue, {}).get(app, ())
