"""A lifecycle as JSON, complete and with the names as the code spells them, for other programs."""

from __future__ import annotations

import json
from typing import Any

from quadriga.diagrams.wording import called
from quadriga.fsm import Lifecycle, Unbounded, Within

__all__ = ["json_document"]


def json_document(lifecycle: Lifecycle) -> str:
    """The lifecycle as a JSON document. Times are in ns; a row whose target is null stays."""
    document = {
        "name": lifecycle.name,
        "initial": lifecycle.initial,
        "final": list(lifecycle.final),
        "states": [
            {"name": state, "lasts": _lasts(lifecycle, state)} for state in lifecycle.states
        ],
        "rows": [
            {
                "line": row.line,
                "trigger": row.trigger,
                "source": row.source,
                "target": row.target,
                "guard": called(row.guard) if row.guard else None,
                "emit": [called(emitter) for emitter in row.emit],
                "why": row.why,
            }
            for row in lifecycle.rows
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _lasts(lifecycle: Lifecycle, state: str) -> dict[str, Any] | None:
    """The state's time limit; null for a final state."""
    lasts = lifecycle.lasts.get(state)
    if isinstance(lasts, Unbounded):
        return {"unbounded": lasts.ends}
    if isinstance(lasts, Within):
        return {"within": lasts.ns, "then": lasts.then, "backoff_to": lasts.backoff_to}
    return None
