"""The lifecycles that a scheduler fires at: the shared ones, the same on the library's own class, or others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from quadriga.fsm import LIFECYCLES, Lifecycle

#: what ``Options.engine`` may be
ENGINES: Final = ("fast", "stock")


def check_lifecycles(own: Mapping[str, Lifecycle]) -> None:
    """Raise ``ValueError`` unless these can stand for the shared lifecycles of their names."""
    for name, lifecycle in own.items():
        shared = LIFECYCLES.get(name)
        if shared is None:
            raise ValueError(
                f"lifecycles has the unknown name {name!r}, not one of {', '.join(LIFECYCLES)}"
            )
        if lifecycle.name != name:
            raise ValueError(f"lifecycles[{name!r}] is named {lifecycle.name!r}")
        if set(lifecycle.states) != set(shared.states):
            other = sorted(set(lifecycle.states) ^ set(shared.states))
            raise ValueError(
                f"lifecycles[{name!r}] has other states than the scheduler knows: {', '.join(other)}"
            )


def lifecycles_of(engine: str, own: Mapping[str, Lifecycle]) -> dict[str, Lifecycle] | None:
    """The lifecycles by name that take the place of the shared ones; ``None``: no other ones."""
    if engine != "stock" and not own:
        return None
    shared = {
        name: lifecycle.on_stock() if engine == "stock" else lifecycle
        for name, lifecycle in LIFECYCLES.items()
    }
    return {**shared, **own}
