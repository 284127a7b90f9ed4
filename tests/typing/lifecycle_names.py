"""Only mypy reads this. Each line with a ``wrong`` is an error of that code, every other line is right."""

from __future__ import annotations

from typing import Any, Final, Literal

from quadriga.core.model.application import Application
from quadriga.core.model.ask import Ask
from quadriga.core.runtime.kernel import Kernel
from quadriga.fsm import APPLICATION, ASK, LIFECYCLES, Lifecycle, path_to, row, unbounded
from quadriga.fsm import application as application_fsm

Shape = Literal["Open", "Shut"]
Push = Literal["push", "pull"]

# -- a table of one's own --------------------------------------------------------------------------

DOOR: Final[Lifecycle[Shape, Push]] = Lifecycle(
    "door",
    initial="Shut",
    final=(),
    lasts={"Open": unbounded("push"), "Shut": unbounded("pull")},
    rows=(
        row("pull", "Shut", "Open"),
        row("push", ("Open", "Shut"), "Shut"),
        row("kick", "Shut", "Open"),  # wrong: arg-type
        row("push", "Opne", "Shut"),  # wrong: arg-type
        row("push", ("Open", "Shtu"), "Shut"),  # wrong: arg-type
        row("push", "Open", "Broken"),  # wrong: arg-type
    ),
)
ODD: Final[Lifecycle[Shape, Push]] = Lifecycle(
    "odd",
    initial="Ajar",  # wrong: arg-type
    final=("Gone",),  # wrong: arg-type
    lasts={"Aslant": unbounded("push")},  # wrong: dict-item
    rows=(),
)
DOOR.total("heights", {"Open": 2, "Shut": 1})
DOOR.total("heights", {"Open": 2, "Closed": 1})  # wrong: dict-item


class Door:
    """What DOOR is the life of."""

    key = "front"

    def __init__(self) -> None:
        self.state: Shape = "Shut"


class Gate:
    """Its states are others."""

    key = "garden"

    def __init__(self) -> None:
        self.state: Literal["Locked"] = "Locked"


DOOR.fire(Door(), "pull", by="hand")
DOOR.fire(Door(), "lift")  # wrong: arg-type
DOOR.fire(Gate(), "pull")  # wrong: arg-type


# -- those of the scheduler ------------------------------------------------------------------------


def fires(kernel: Kernel, app: Application, ask: Ask) -> None:
    kernel.fire(APPLICATION, app, application_fsm.RUN)
    kernel.fire(APPLICATION, app, "run", reason="because")
    kernel.fire(APPLICATION, app, "submit")  # wrong: misc
    kernel.fire(APPLICATION, app, "rnu")  # wrong: misc
    kernel.fire(APPLICATION, ask, application_fsm.RUN)  # wrong: misc
    kernel.fire_all(ASK, [ask], "submit")
    kernel.fire_all(ASK, [ask], "run")  # wrong: misc
    kernel.fire_later(APPLICATION, app, "kill")
    kernel.fire_later(APPLICATION, app, "kil")  # wrong: misc
    APPLICATION.fire(app, "run")
    APPLICATION.fire(app, "submit")  # wrong: arg-type


def reads(app: Application, ask: Ask) -> None:
    APPLICATION.allows(app.state, "run")
    APPLICATION.allows(ask.state, "run")  # wrong: arg-type
    APPLICATION.idles("Runing", "run")  # wrong: arg-type
    APPLICATION.rows_from("Running", "run")
    APPLICATION.rows_from("Running", "rum")  # wrong: arg-type
    path_to(APPLICATION, "Running")
    app.state = "Completed"
    app.state = "Done"  # wrong: assignment
    print(ask.state == "Done")  # wrong: comparison-overlap


# -- any of them -----------------------------------------------------------------------------------


def fires_any(kernel: Kernel, lifecycle: Lifecycle, entity: Any, trigger: str) -> None:
    kernel.fire(lifecycle, entity, trigger)
    lifecycle.fire(entity, trigger)
    kernel.fire(LIFECYCLES["node"], entity, "drain")
