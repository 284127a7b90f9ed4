"""The table of the JSON endpoints below ``/ui/data/``: parameters, what is read, and what is answered.

A ``look`` runs in the owner's thread and reads the scheduler, in steps if there may be much to read. A
``finish`` makes the answer of that in another thread. The reader caches looks by name, so the name contains
every parameter that the look uses. See D80.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from quadriga.core.views import BadRequest
from quadriga.web.pages.data import (
    application,
    applications,
    cluster,
    events,
    lifecycles,
    nodes,
    queues,
    settings,
    stories,
    users,
)

if TYPE_CHECKING:
    from quadriga.core import Scheduler
    from quadriga.web.site import Site

Asked = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Text:
    """A parameter: a text of at most ``most`` characters, and one of ``among`` if that is given."""

    most: int = 1024
    among: tuple[str, ...] = ()
    default: str = ""
    required: bool = False

    def read(self, name: str, text: str | None) -> str:
        if text is None or text == "":
            if self.required:
                raise BadRequest(f"{name}: is required")
            return self.default
        if len(text) > self.most:
            raise BadRequest(f"{name}: is longer than {self.most} characters")
        if self.among and text not in self.among:
            raise BadRequest(f"{name}: must be one of {', '.join(filter(None, self.among))}")
        return text


@dataclass(frozen=True, slots=True)
class Number:
    """A parameter: a whole number from ``least`` to ``most``."""

    least: int
    most: int
    default: int

    def read(self, name: str, text: str | None) -> int:
        if text is None or text == "":
            return self.default
        whole = text.isascii() and text.isdecimal() and len(text) <= len(str(self.most))
        if not whole or not self.least <= int(text) <= self.most:
            raise BadRequest(f"{name}: must be a whole number from {self.least} to {self.most}")
        return int(text)


Parameters = Mapping[str, Text | Number]


def read_parameters(given: Iterable[tuple[str, str]], known: Parameters) -> dict[str, Any]:
    """The value of each parameter, with defaults. Raises ``BadRequest`` naming the parameter that is
    unauthorized, given twice, too long or out of its range."""
    texts: dict[str, str] = {}
    for name, text in given:
        if name not in known:
            shown = name[:40]
            raise BadRequest(
                f"{shown!r}: unknown parameter; there are {', '.join(known) or 'none'}"
            )
        if name in texts:
            raise BadRequest(f"{name}: was given twice")
        texts[name] = text
    return {name: kind.read(name, texts.get(name)) for name, kind in known.items()}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One endpoint: ``/ui/data/`` and its name."""

    name: str
    about: str
    parameters: Parameters
    look: Callable[[Site, Scheduler, Asked], Any]
    finish: Callable[[Any, Asked], Any] = field(default=lambda taken, asked: taken)
    #: ``finish`` may take long even if the look does not
    long: bool = False


_PARTITION: Final = {"partition": Text()}
_ID: Final = {**_PARTITION, "id": Text(required=True)}
_PAGE: Final = {"offset": Number(0, 10_000_000, 0), "limit": Number(1, 200, 50)}


def _is_filtered(asked: Asked) -> bool:
    return bool(asked["type"] or asked["text"] or asked["about"])


ENDPOINTS: Final = (
    Endpoint(
        "overview",
        "capacity and usage, nodes and applications by state, health",
        _PARTITION,
        lambda site, core, asked: cluster.overview(
            core, site.views, asked["partition"], site.service.failures
        ),
    ),
    Endpoint(
        "queues",
        "the queue tree as rows, from one queue down",
        {**_PARTITION, "below": Text()},
        lambda site, core, asked: queues.queue_rows(core, asked["partition"], asked["below"]),
    ),
    Endpoint(
        "queue",
        "one queue, its settings and limits",
        {**_PARTITION, "path": Text(required=True)},
        lambda site, core, asked: queues.queue(core, asked["partition"], asked["path"]),
    ),
    Endpoint(
        "applications",
        "applications that fit the filters, newest first or by a column",
        {
            **_PARTITION,
            "queue": Text(),
            "user": Text(),
            "state": Text(among=applications.CHOICES),
            "text": Text(),
            "sort": Text(among=applications.SORTS),
            **_PAGE,
        },
        lambda site, core, asked: applications.application_rows(core, **asked),
    ),
    Endpoint(
        "application",
        "one application: states, task groups, asks, allocations",
        {**_ID, "sort": Text(among=application.SORTS)},
        lambda site, core, asked: application.application(
            core, asked["partition"], asked["id"], asked["sort"]
        ),
    ),
    Endpoint(
        "waits",
        "why one ask of an application waits",
        {**_ID, "ask": Text()},
        lambda site, core, asked: application.waits(
            core, asked["partition"], asked["id"], asked["ask"]
        ),
    ),
    Endpoint(
        "story",
        "what happened to an application, its asks and its allocations",
        _ID,
        lambda site, core, asked: stories.application_story(core, asked["partition"], asked["id"]),
        lambda taken, asked: stories.finish_story(taken),
    ),
    Endpoint(
        "nodes",
        "nodes that fit the filters, and how full all are",
        {
            **_PARTITION,
            "state": Text(among=nodes.CHOICES),
            "text": Text(),
            "type": Text(),
            "sort": Text(among=nodes.SORTS, default="name"),
            **_PAGE,
        },
        lambda site, core, asked: nodes.node_rows(core, **asked),
    ),
    Endpoint(
        "node",
        "one node and what runs there",
        {**_ID, "sort": Text(among=application.SORTS)},
        lambda site, core, asked: nodes.node(core, asked["partition"], asked["id"], asked["sort"]),
    ),
    Endpoint(
        "node-story",
        "what happened to a node",
        _ID,
        lambda site, core, asked: stories.node_story(core, asked["partition"], asked["id"]),
        lambda taken, asked: stories.finish_story(taken),
    ),
    Endpoint(
        "lifecycles",
        "entities by state, and transitions by edge",
        {},
        lambda site, core, asked: lifecycles.lifecycles(core),
        lambda taken, asked: lifecycles.finish_lifecycles(taken),
    ),
    Endpoint(
        "pictures",
        "where states and edges are drawn",
        {},
        lambda site, core, asked: lifecycles.pictures(),
    ),
    Endpoint(
        "people",
        "users or groups with usage and limits",
        {
            **_PARTITION,
            "kind": Text(among=users.KINDS, default="users"),
            "text": Text(),
            "sort": Text(among=users.SORTS, default="name"),
            **_PAGE,
        },
        lambda site, core, asked: users.user_rows(core, **asked),
    ),
    Endpoint(
        "configuration",
        "placement rules, queues as YAML, extra settings",
        _PARTITION,
        lambda site, core, asked: settings.configuration(core, asked["partition"]),
        lambda taken, asked: settings.finish_configuration(taken),
        long=True,
    ),
    Endpoint(
        "events",
        "the latest event records that fit",
        {
            "type": Text(among=events.TYPES),
            "text": Text(),
            "about": Text(),
            "limit": Number(1, 500, 200),
        },
        lambda site, core, asked: events.events(
            core, filtered=_is_filtered(asked), limit=asked["limit"]
        ),
        lambda taken, asked: events.finish_events(taken, **asked),
    ),
)
