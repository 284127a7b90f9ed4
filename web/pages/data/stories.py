"""The story of one entity, from the journal."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any, Final, NamedTuple

from quadriga.core import Scheduler
from quadriga.core.runtime.journal import Journal
from quadriga.fsm import ALLOCATION, APPLICATION, ASK, NODE, Entity
from quadriga.fsm.lifecycles import allocation as allocation_fsm
from quadriga.fsm.table import Edge
from quadriga.web.pages.data.lookup import application_of, node_of

#: The most records in one answer.
_MOST: Final = 200

Chosen = Callable[[str, Any], bool]


class StorySnapshot(NamedTuple):
    """A copy of the journal, and a predicate that selects the entities of the story."""

    journal: Journal
    chosen: Chosen


def application_story(scheduler: Scheduler, partition: str, app_id: str) -> StorySnapshot:
    """The story of the application, its asks and its allocations."""
    found = application_of(scheduler, partition, app_id)
    home, seq = found.partition, found.seq

    def chosen(lifecycle: str, entity: Any) -> bool:
        if lifecycle == ALLOCATION.name:
            app = entity.ask.app
        elif lifecycle == ASK.name:
            app = entity.app
        elif lifecycle == APPLICATION.name:
            app = entity
        else:
            return False
        # an ended application is represented by its summary
        return app.seq == seq and app.partition is home

    return StorySnapshot(scheduler.journal.copy(), chosen)


def node_story(scheduler: Scheduler, partition: str, node_id: str) -> StorySnapshot:
    """The story of the node alone."""
    node = node_of(scheduler, partition, node_id)

    def chosen(lifecycle: str, entity: Entity) -> bool:
        return lifecycle == NODE.name and entity is node

    return StorySnapshot(scheduler.journal.copy(), chosen)


def finish_story(taken: StorySnapshot) -> dict[str, Any]:
    """The latest records, newest first. ``since`` is the time of the oldest record in the journal, of any
    entity: the story does not have earlier transitions."""
    journal, chosen = taken
    records = list(islice(journal.entries_of(chosen), _MOST + 1))
    return {
        "since": journal.since,
        "remembered": len(journal),
        "forgotten": journal.count > len(journal),
        "more": len(records) > _MOST,
        "rows": [
            {
                "seq": seq,
                "time": time,
                "kind": edge.lifecycle,
                "key": entity.key,
                "trigger": edge.trigger,
                "source": edge.source,
                "target": edge.target,
                "cause": cause,
                "reason": _reason(entity, edge),
            }
            for seq, time, entity, edge, cause in records[:_MOST]
        ],
    }


def _reason(entity: Any, edge: Edge) -> str:
    """The reason of a release, on the transitions to and from Releasing."""
    if edge.lifecycle != ALLOCATION.name or allocation_fsm.RELEASING not in (
        edge.source,
        edge.target,
    ):
        return ""
    return ": ".join(filter(None, (entity.reason, entity.message)))
