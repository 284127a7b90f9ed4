"""REST below /ws/v1: YuniKorn's paths, parameters, fields and texts, and some additions (2.14)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadriga.web.rest import configuration, diagnostics, events, viewing
from quadriga.web.rest.fragments import Fragments

if TYPE_CHECKING:
    from quadriga.web.resource import Resource
    from quadriga.web.site import Site

__all__ = ["routes"]


def routes(site: Site) -> list[Resource]:
    """All REST resources."""
    fragments = Fragments()
    return [
        *viewing.resources(site, fragments),
        *configuration.resources(site),
        *events.resources(site),
        *diagnostics.resources(site, fragments),
    ]
