"""Golden message flows: whole conversations, word for word (X8).

``golden/<flow>.txt`` has every message of a flow, in the design's order. Lines with ``>`` are what the
resource manager does, lines with ``<`` begin a message that it hears: the callback and an item;
further items of the same message are indented below. With QUADRIGA_GOLDEN=write in the environment
the files are written anew; read them before keeping them.
"""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from core_world import scripted

from quadriga.core import Output
from quadriga.si import AllocationResponse, TerminationType
from quadriga.sim.scripted.script import lines

GOLDEN = Path(__file__).parents[1] / "golden"
REPLACED = TerminationType.PLACEHOLDER_REPLACED
TIMEOUT = TerminationType.TIMEOUT

_CALLBACKS = {
    "AllocationResponse": "UpdateAllocation",
    "ApplicationResponse": "UpdateApplication",
    "NodeResponse": "UpdateNode",
    "UpdateContainerSchedulingStateRequest": "UpdateContainerSchedulingState",
}


class Flow:
    """A scripted conversation and its text."""

    def __init__(self, order: str) -> None:
        self.script = scripted(order=order)
        self.text: list[str] = []

    def do(self, what: str, *names: object, **how: object) -> None:
        """One step of the script, by the name of its method."""
        said = [f"{name}={_word(name, value)}" for name, value in how.items()]
        self._step(
            " ".join([what, *map(str, names), *said]),
            lambda: getattr(self.script, what)(*names, **how),
        )

    def confirm(self, *kinds: TerminationType, most: int | None = None) -> None:
        """Confirm what has been asked back, oldest first."""
        for release in [r for r in self.script.outstanding if r.terminationType in kinds][:most]:
            self.script.outstanding.remove(release)
            app_id, uuid, kind = release.applicationID, release.UUID, release.terminationType
            self._step(
                f"confirm {app_id}/{uuid} {TerminationType.Name(kind)}",
                partial(self.script.release, app_id, uuid, kind),
            )

    def _step(self, text: str, step: Callable[[], object]) -> None:
        start = len(self.script.messages)
        step()
        seconds = f"{self.script.now / 1e9:g}s"
        self.text.append(f"{seconds:>6} > {text}")
        for output in self.script.messages[start:]:
            self.text.extend(_told(output))


def _word(name: str, value: object) -> str:
    if name == "kind":
        return TerminationType.Name(value)  # type: ignore[arg-type]
    return " ".join(f"{k}:{v}" for k, v in value.items()) if isinstance(value, dict) else str(value)


def _told(output: Output) -> list[str]:
    message = output.message
    items = lines(message)
    if isinstance(message, AllocationResponse) and (message.released or message.releasedAsks):
        texts = [release.message for release in (*message.released, *message.releasedAsks)]
        items = [f"{item}: {text}" for item, text in zip(items, texts, strict=True)]
    callback = _CALLBACKS[type(message).__name__]
    first, *more = items
    return [f"       < {callback}: {first}", *(f"           {item}" for item in more)]


def _gang(flow: Flow, size: int = 3, each: int = 1, **more: object) -> None:
    """A gang of three, or of one."""
    flow.do("node", "n1", memory=20)
    flow.do("app", "g", gang={"memory": size}, **more)
    keys = [f"p{n}" for n in range(size // each)]
    flow.do("ask", "g", *keys, group="tg", placeholder=True, memory=each)


def start(flow: Flow) -> None:
    """G1: placeholders, then the originator, then every member takes over a placeholder."""
    _gang(flow, style="Hard")
    flow.do("schedule")
    flow.do("ask", "g", "driver", originator=True, memory=1)
    flow.do("schedule")
    flow.do("ask", "g", "m0", "m1", "m2", group="tg", memory=1)
    flow.do("schedule")
    flow.confirm(REPLACED, most=1)
    flow.do("advance", 60)  # one confirmation is late, the release is sent again
    flow.confirm(REPLACED)


def _incomplete(flow: Flow, style: str) -> None:
    _gang(flow, 24, 8, style=style, timeout_ms=60_000)
    flow.do("ask", "g", "m0", group="tg", memory=8)
    flow.do("schedule")
    flow.do("advance", 1)
    flow.do("advance", 59)


def hard_timeout(flow: Flow) -> None:
    """G45 to G50: the gang does not get all its placeholders, and is killed."""
    _incomplete(flow, "Hard")
    flow.do("release_ask", "g", "p2", kind=TIMEOUT)
    flow.confirm(TIMEOUT)
    flow.do("app", "g")  # G55: the id is free


def soft_timeout(flow: Flow) -> None:
    """X2, X29: the gang gives its placeholders back and goes on as an ordinary application."""
    _incomplete(flow, "Soft")
    flow.do("release_ask", "g", "p2", kind=TIMEOUT)
    flow.do("schedule")
    flow.confirm(TIMEOUT)
    flow.do("schedule")


def clean_up(flow: Flow) -> None:
    """G51 to G54: the last member ends, leftovers are given back, the application completes."""
    _gang(flow)
    flow.do("schedule")
    flow.do("ask", "g", "m0", group="tg", memory=1)
    flow.do("schedule")
    flow.confirm(REPLACED)
    flow.do("release", "g", "m0-0")
    flow.do("advance", 30)
    flow.confirm(TIMEOUT)
    flow.do("app", "g")


def removal(flow: Flow) -> None:
    """X31: the resource manager removes an application while a replacement is in flight."""
    _gang(flow)
    flow.do("schedule")
    flow.do("ask", "g", "m0", "m1", group="tg", memory=1)
    flow.do("schedule", 1)
    flow.confirm(REPLACED)
    flow.do("schedule")
    flow.do("remove_app", "g")
    flow.confirm(REPLACED)


def too_large(flow: Flow) -> None:
    """5.13, S1, X37: a member larger than its placeholder takes it over all the same."""
    _gang(flow, 6, 6)
    flow.do("schedule")
    flow.do("ask", "g", "m0", group="tg", memory=10)
    flow.do("schedule")
    flow.confirm(REPLACED)


FLOWS = (
    pytest.param(start, id="g1_start"),
    pytest.param(hard_timeout, id="g45_g46_g47_hard_timeout"),
    pytest.param(soft_timeout, id="x2_soft_timeout"),
    pytest.param(clean_up, id="g52_clean_up"),
    pytest.param(removal, id="x31_removal"),
    pytest.param(too_large, id="s1_too_large"),
)


@pytest.mark.parametrize("tell", FLOWS)
def test_x8_golden_flow(tell: Callable[[Flow], None], order: str) -> None:
    flow = Flow(order)
    tell(flow)
    if order == "design" and os.environ.get("QUADRIGA_GOLDEN") == "write":
        heading = " ".join((tell.__doc__ or "").split())
        text = "\n".join([f"# {heading}", *flow.text]) + "\n"
        (GOLDEN / f"{tell.__name__}.txt").write_text(text, encoding="utf-8")
    assert flow.text == told(tell, order)


def told(tell: Callable[[Flow], None], order: str) -> list[str]:
    """What the file of this flow says, in this order of messages."""
    lines = (GOLDEN / f"{tell.__name__}.txt").read_text(encoding="utf-8").splitlines()[1:]
    return lines if order == "design" else updates_first(lines)


def updates_first(told: list[str]) -> list[str]:
    """The k8shim's order: where a step releases anything, updates of applications come before that."""
    steps: list[list[list[str]]] = []
    for line in told:
        if " > " in line[:10]:
            steps.append([[line]])
        elif line.startswith("       < "):
            steps[-1].append([line])
        else:
            steps[-1][-1].append(line)
    for step in steps:
        if any(": released " in message[0] for message in step):
            step[1:] = sorted(step[1:], key=lambda message: "UpdateApplication" not in message[0])
    return [line for step in steps for message in step for line in message]


def test_every_golden_file_belongs_to_a_flow() -> None:
    expected = {f"{flow.values[0].__name__}.txt" for flow in FLOWS}
    assert {file.name for file in GOLDEN.glob("*.txt")} == expected
