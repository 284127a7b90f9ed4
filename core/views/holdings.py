"""What an application keeps from others without running: a gang that gathers, and reserved nodes (Q8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from quadriga.core.model.ended import EndedApplication

if TYPE_CHECKING:
    from quadriga.core.model.application import Application


class Holdings(NamedTuple):
    """``gathers``: the application is a gang that holds placeholders and lacks others.
    ``reservations`` has the node and the ask's key of each reservation, by node id."""

    gathers: bool = False
    reservations: tuple[tuple[str, str], ...] = ()


def holdings_of(app: Application | EndedApplication) -> Holdings:
    """The holdings of a living application; an ended one has none."""
    if isinstance(app, EndedApplication):
        return Holdings()
    reserved = sorted((each.node.node_id, each.ask.ask_key) for each in app.reservations)
    return Holdings(app.gathers and app.has_placeholders, tuple(reserved))
