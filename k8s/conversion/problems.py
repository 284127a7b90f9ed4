"""Problems with texts that users wrote: data for Kubernetes events, never exceptions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from quadriga.base.texts import shortened
from quadriga.k8s.tuning import TUNING

#: why a pod with a claim is not asked for until claims are listed; nothing is wrong (K88)
CLAIMS_UNREAD: Final = "the claims of the cluster are not known yet"


@dataclass(frozen=True, slots=True)
class Problem:
    """A Warning event for the object that has the text: reason and action (K153), and what is wrong."""

    reason: str
    action: str
    note: str


def shown(text: str) -> str:
    """Return the text in quotes, shortened if it is long."""
    return repr(shortened(text, TUNING.shown_characters, "..."))
