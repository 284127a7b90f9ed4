"""REST below /ws/v1: YuniKorn's paths, parameters, fields and texts, and a little of ours (2.14)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadriga.web.rest import configuration, diagnosis, events, viewing
from quadriga.web.rest.fragments import Fragments

if TYPE_CHECKING:
    from quadriga.web.resource import Resource
    from quadriga.web.site import Site

__all__ = ["routes"]


def routes(site: Site) -> list[Resource]:
    """Everything that REST answers."""
    fragments = Fragments()
    return [
        *viewing.resources(site, fragments),
        *configuration.resources(site),
        *events.resources(site),
        *diagnosis.resources(site, fragments),
    ]
