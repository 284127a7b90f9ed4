"""The gang flows of the design document, recorded from runs: sender, receiver, message and time.

Each flow is a script of a resource manager. Running it records all exchanges in order, for a
sequence diagram; only the resource manager's part is written by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from quadriga.base.times import SECOND
from quadriga.si.recorder import Exchange, Recorder
from quadriga.sim.scripted.script import Script

RM: Final = "resource manager"
CORE: Final = "core"


class _Stepped(Script):
    """Advances from timer to timer, so that everything is recorded at its own instant."""

    def advance(self, seconds: float) -> list[str]:
        end = self.now + round(seconds * SECOND)
        heard: list[str] = []
        while (due := self.scheduler.next_deadline()) is not None and due <= end:
            heard.extend(super().advance((due - self.now) / SECOND))
        heard.extend(super().advance((end - self.now) / SECOND))
        return heard


# -- the flows -------------------------------------------------------------------------------------


def _gang(script: Script, room: int, style: str = "Soft") -> None:
    """A gang of three placeholders, on a node with room for exactly these."""
    script.node("n1", vcore=1000 * room)
    script.app("gang", gang={"vcore": 3000}, style=style, timeout_ms=60_000)
    script.ask("gang", "ph-0", "ph-1", "ph-2", vcore=1000, group="workers", placeholder=True)
    script.schedule()


def _start(script: Script) -> None:
    _gang(script, room=3)
    script.ask("gang", "driver", "worker-1", "worker-2", vcore=1000, group="workers")
    script.schedule()
    script.advance(2)
    script.confirm()


def _hard_timeout(script: Script) -> None:
    _gang(script, room=2, style="Hard")
    script.advance(60)
    script.confirm()


def _soft_timeout(script: Script) -> None:
    _gang(script, room=2)
    script.advance(60)
    script.confirm()
    script.ask("gang", "driver", vcore=1000)
    script.schedule()


def _clean_up(script: Script) -> None:
    _gang(script, room=3)
    script.ask("gang", "driver", vcore=1000, group="workers")
    script.schedule()
    script.advance(2)
    script.confirm()
    script.advance(30)
    script.release("gang", "driver-0")
    script.advance(30)
    script.confirm()


#: name -> (description, the resource manager's part)
FLOWS: Final[dict[str, tuple[str, Callable[[Script], None]]]] = {
    "gang-start": ("a gang starts: placeholders, then the members that replace them (G1)", _start),
    "hard-timeout": ("not all placeholders in time, Hard: killed (G45 to G50)", _hard_timeout),
    "soft-timeout": ("not all placeholders in time, Soft: goes on without (G45)", _soft_timeout),
    "clean-up": ("the last member ends, leftovers are given back (G51 to G54)", _clean_up),
}


def record(name: str, order: str = "design") -> tuple[Exchange, ...]:
    """Run a flow and return its messages. ``order`` is ``design`` or ``k8shim`` (X8).

    Raises ``KeyError`` for an unknown flow.
    """
    _, play = FLOWS[name]
    script = _Stepped(extra={"si.messageOrder": order})
    recorder = Recorder(limit=None)  # after the registration, which is the same in every flow
    script.scheduler = recorder.scheduler(script.scheduler, CORE, RM)
    play(script)
    return recorder.exchanges
