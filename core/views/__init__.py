"""The state of a scheduler as data: the objects of REST, health, counters, the state dump (2.12 to 2.15).

    views = Views(scheduler)
    views.queues("default")            # YuniKorn's JSON, as plain dicts
    views.application("default", "app-1")

``objects`` declares the fields of every object. The oracle's dumps are ``[views.queues(p)]``,
``views.applications(p, "active")`` with ``"completed"`` and ``"rejected"``, ``views.state_dump()``'s
``nodes``, ``views.partitions()``, ``views.clusters()`` and ``views.partition_counters(p)``.
See D75.
"""

# Not compiled: it does not run for every ask.

from quadriga.core.views.applications import Holdings, holdings_of
from quadriga.core.views.configuration import as_yaml
from quadriga.core.views.dump import as_text, diagnostics_of, formatted
from quadriga.core.views.history import History, Sample
from quadriga.core.views.state import BadRequest, NotFound, ViewError, Views

__all__ = [
    "BadRequest",
    "History",
    "Holdings",
    "NotFound",
    "Sample",
    "ViewError",
    "Views",
    "as_text",
    "as_yaml",
    "diagnostics_of",
    "formatted",
    "holdings_of",
]
