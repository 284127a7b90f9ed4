"""The interface of the API client that discovery, volumes and the writers use."""

from __future__ import annotations

from typing import Protocol

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"


class NoAnswer(Exception):
    """The API server could not be reached, or the connection ended before the response. Whether the request
    took effect is unknown."""


class Requester(Protocol):
    """A client of the API server."""

    async def request(
        self, method: str, path: str, body: bytes | None = None, content_type: str = JSON
    ) -> tuple[int, bytes]:
        """Send one request; return the status and the body, whatever the status is.

        ``path`` begins with ``/`` and is quoted. Raises `NoAnswer`.
        """
