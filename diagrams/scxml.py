"""SCXML, the state machine notation of the W3C, for tools that read it.

A row that does not change the state is a transition without a target: in SCXML such a transition
neither leaves nor enters the state. A time limit that fires a trigger is a delayed ``send``, which is
cancelled when the state is left.

The null data model evaluates only ``In(...)``, so ``cond`` is the name of the guard, for the
interpreter to bind. Effects, reasons and other limits have no element in SCXML and are written in the
namespace ``urn:quadriga:lifecycle``.
"""

from __future__ import annotations

import re
from xml.sax.saxutils import quoteattr

from quadriga.diagrams.wording import function_name, identifiers
from quadriga.fsm import Lifecycle, Row, Unbounded
from quadriga.fsm.table import SECOND

__all__ = ["NAMESPACE", "scxml"]

NAMESPACE = "urn:quadriga:lifecycle"

_MISSING = "\N{REPLACEMENT CHARACTER}"
_UNWRITABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def scxml(lifecycle: Lifecycle) -> str:
    """The state machine as an SCXML document."""
    ids = identifiers(lifecycle.states)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<scxml xmlns="http://www.w3.org/2005/07/scxml" xmlns:quadriga="{NAMESPACE}"'
        + _attributes(
            version="1.0",
            datamodel="null",
            name=lifecycle.name,
            initial=ids[lifecycle.initial],
        )
        + ">",
    ]
    for state in lifecycle.states:
        lines += _state(lifecycle, state, ids)
    return "\n".join([*lines, "</scxml>"]) + "\n"


def _state(lifecycle: Lifecycle, state: str, ids: dict[str, str]) -> list[str]:
    name = {"quadriga:name": state} if ids[state] != state else {}
    if state in lifecycle.final:
        return [f"  <final{_attributes(id=ids[state], **name)}/>"]
    lasts = lifecycle.lasts[state]
    timer: list[str] = []
    if isinstance(lasts, Unbounded):
        name["quadriga:unbounded"] = lasts.ends
    elif lasts.then is None:
        name["quadriga:within"] = _seconds(lasts.ns)
    else:
        if lasts.backoff_to is not None:
            name["quadriga:backoff"] = _seconds(lasts.backoff_to)
        send = _attributes(id=f"{ids[state]}.limit", event=lasts.then, delay=_seconds(lasts.ns))
        cancel = _attributes(sendid=f"{ids[state]}.limit")
        timer = [
            f"    <onentry><send{send}/></onentry>",
            f"    <onexit><cancel{cancel}/></onexit>",
        ]
    lines = [f"  <state{_attributes(id=ids[state], **name)}>", *timer]
    for row in lifecycle.rows_from(state):
        lines += _transition(row, ids)
    return [*lines, "  </state>"]


def _transition(row: Row, ids: dict[str, str]) -> list[str]:
    attributes = {"event": row.trigger}
    if row.guard is not None:
        attributes["cond"] = function_name(row.guard)
    if row.target is not None:
        attributes["target"] = ids[row.target]
    if row.why:
        attributes["quadriga:why"] = row.why
    opening = f"    <transition{_attributes(**attributes)}"
    if not row.emit:
        return [f"{opening}/>"]
    emits = [f"      <quadriga:emit{_attributes(name=function_name(e))}/>" for e in row.emit]
    return [f"{opening}>", *emits, "    </transition>"]


def _attributes(**values: str) -> str:
    # XML has no way to write control characters, not even as references
    return "".join(
        f" {name}={quoteattr(_UNWRITABLE.sub(_MISSING, value))}" for name, value in values.items()
    )


def _seconds(ns: int) -> str:
    """A CSS2 time, exactly: ``30s``, ``0.25s``."""
    whole, rest = divmod(ns, SECOND)
    fraction = f".{rest:09}".rstrip("0") if rest else ""
    return f"{whole}{fraction}s"
