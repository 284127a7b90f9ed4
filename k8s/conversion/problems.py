"""What is wrong with a text that a user wrote: data for a Kubernetes event, never an exception."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["CLAIMS_UNREAD", "Problem", "shown"]

#: why a pod with a claim is not asked for until they are listed: nothing is wrong (K88)
CLAIMS_UNREAD: Final = "the claims of the cluster are not known yet"

#: that many characters of a user's text are shown
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Problem:
    """A Warning event for the object that has the text: reason and action (K153), and what is wrong."""

    reason: str
    action: str
    note: str


def shown(text: str) -> str:
    """The text in quotes, cut if it is long."""
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "...")
