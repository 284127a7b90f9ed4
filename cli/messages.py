"""The dispatcher's table as a Markdown page: which message fires what, and how it is answered.

``quadriga draw dispatcher -o docs/messages.md`` writes the committed page again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

_HEAD = """\
# Messages

What each part of a message fires, and how it is answered. This page is written from the table in
`core/intake/dispatcher.py`; do not edit it. `quadriga draw dispatcher -o docs/messages.md` writes it again.

A handler fires only the triggers of its row, at entities of these lifecycles, and answers only with the fields of
its row. What follows from a trigger is in the tables of the lifecycles ([gallery](gallery/README.md)): a state
change of an application, for example, is sent as `updated`. The parts of one message are handled from top to bottom.
"""


def messages_page() -> str:
    """The page."""
    parts = _table(("message", "part", "lifecycle", "triggers", "answers"), _parts())
    actions = _table(("action", "trigger", "answers"), _actions())
    return f"{_HEAD}\n{parts}\n## Actions on nodes\n\n{actions}"


def _parts() -> Iterator[tuple[str, ...]]:
    from quadriga.core.intake.dispatcher import ROUTES

    for route in ROUTES:
        part = f"`{route.field}`" if route.field else "the whole"
        if route.of is not None:
            part += f" ({route.of.__name__.replace('_', ' ')})"
        first = (f"`{route.message.__name__}`", part)
        answers = _code(route.response) or "none"
        for lifecycle, triggers in route.concerns.items():
            yield (*first, lifecycle.replace("_", " "), _code(triggers), answers)
            first, answers = ("", ""), ""


def _actions() -> Iterator[tuple[str, ...]]:
    from quadriga.core.intake.dispatcher import NODE_ROUTES
    from quadriga.si import NodeInfo

    for route in NODE_ROUTES:
        name = NodeInfo.ActionFromRM.Name(route.action)
        yield f"`{name}`", f"`{route.trigger}`", _code(route.answers.fields)


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
