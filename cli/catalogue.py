"""The lifecycles that commands know by name: the scheduler's, the Kubernetes shim's and the simulator's."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from quadriga.cli.errors import CommandError

if TYPE_CHECKING:
    from quadriga.fsm import Lifecycle


def all_lifecycles() -> dict[str, Lifecycle]:
    """All lifecycles by name, the scheduler's first."""
    from quadriga.fsm import LIFECYCLES
    from quadriga.k8s.lifecycles import LIFECYCLES as KUBERNETES
    from quadriga.sim.lifecycles import LIFECYCLES as SIMULATED

    return {**LIFECYCLES, **KUBERNETES, **SIMULATED}


def gallery_lifecycles() -> tuple[Lifecycle, ...]:
    """The lifecycles of the gallery: the scheduler's, then the Kubernetes shim's."""
    from quadriga.fsm import LIFECYCLES
    from quadriga.k8s.lifecycles import LIFECYCLES as KUBERNETES

    return (*LIFECYCLES.values(), *KUBERNETES.values())


def find_lifecycle(name: str) -> Lifecycle:
    """The lifecycle with this name, or the one that ``package.module:TABLE`` names.

    Raises `CommandError` that lists the valid names.
    """
    if ":" in name:
        from quadriga.diagrams.errors import DiagramError
        from quadriga.diagrams.importing import import_lifecycle

        try:
            return import_lifecycle(name)
        except DiagramError as error:
            raise CommandError(str(error)) from error
    known = all_lifecycles()
    if name in known:
        return known[name]
    near = get_close_matches(name.lower(), known, 1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
    own = "; for one of your own give package.module:TABLE" if "." in name or not near else ""
    raise CommandError(f"no lifecycle is called {name!r}: {hint}{own}")
