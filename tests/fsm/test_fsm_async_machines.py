"""Asynchronous machines: two triggers of one model at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import pytest
from fsm_entities import Model
from transitions.extensions import MachineFactory
from transitions.extensions.asyncio import AsyncMachine

from quadriga.fsm import NODE, STAYS, DefinitionError, Effect, Fired, Lifecycle, row, unbounded


class Server:
    key = "n-1"
    state: str

    def __init__(self) -> None:
        self.lock = asyncio.Lock()


def name_of(effects: Any) -> str:
    (effect,) = effects
    return type(effect).__name__


ONE_BY_ONE = "begin OpenNode, end OpenNode, begin CloseNode, end CloseNode"


@pytest.mark.parametrize(
    ("options", "locked", "delivered"),
    [
        ({}, False, "begin OpenNode, begin CloseNode, end CloseNode"),
        ({"queued": "model"}, False, ONE_BY_ONE),
        ({}, True, ONE_BY_ONE),
    ],
)
def test_a_trigger_interrupts_a_delivery_unless_triggers_of_a_model_wait_for_each_other(
    options: dict[str, Any], locked: bool, delivered: str
) -> None:
    heard: list[str] = []

    async def scene() -> None:
        begun = asyncio.Event()

        async def deliver(model: Any, effects: Any) -> None:
            heard.append(f"begin {name_of(effects)}")
            begun.set()
            for _ in range(9):
                await asyncio.sleep(0)
            heard.append(f"end {name_of(effects)}")

        server: Any = Server()
        NODE.make_machine(server, AsyncMachine, deliver=deliver, **options)

        async def fire(trigger: str) -> bool:
            async with AsyncExitStack() as stack:
                if locked:
                    await stack.enter_async_context(server.lock)
                return bool(await server.trigger(trigger))

        first = asyncio.create_task(fire("accept"))
        await begun.wait()
        results = await asyncio.gather(fire("drain"), first)
        assert server.state == "Draining"
        assert results == [True, bool(options) or locked]  # what was cancelled returns False

    asyncio.run(scene())
    assert ", ".join(heard) == delivered


@dataclass(frozen=True, slots=True)
class Lit(Effect):
    state: str


def lit(lamp: Any, fired: Fired) -> tuple[Effect, ...]:
    return (Lit(fired.target),)


# fmt: off
LAMP = Lifecycle(
    "lamp",
    initial="Off",
    final=(),
    lasts={"Off": unbounded("press"), "On": unbounded("press")},
    rows=(row("press", "Off", "On", emit=lit), row("press", "On", "Off", emit=lit)),
)
# fmt: on


# -- async guards and emitters -----------------------------------------------------------------------


async def is_charged(lamp: Any, info: Any) -> bool:
    await asyncio.sleep(0)
    return bool(info["charge"])


async def beep(lamp: Any, fired: Fired) -> AsyncIterator[Effect]:
    await asyncio.sleep(0)
    assert lamp.state == fired.source
    yield Lit(f"beep {fired.target}")


async def glow(lamp: Any, fired: Fired) -> tuple[Effect, ...]:
    await asyncio.sleep(0)
    if fired.info.get("broken"):
        raise OSError("the lamp is broken")
    return (Lit(fired.target),)


# fmt: off
TORCH = Lifecycle(
    "torch",
    initial="Off",
    final=(),
    lasts={"Off": unbounded("switch"), "Lit": unbounded("switch")},
    rows=(
        row("switch", "Off", "Lit", when=is_charged, emit=(beep, lit, glow)),
        row("switch", "Off", STAYS,                  emit=beep),
        row("switch", "Lit", "Off"),
    ),
    inside={"Lit": LAMP.extend(name="level")},
    on_exit={"Lit": beep},
)
# fmt: on


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize("nested", [False, True])
def test_asynchronous_machines_await_guards_and_emitters(nested: bool, graph: bool) -> None:
    if graph:
        pytest.importorskip("graphviz")
    machine_cls = MachineFactory.get_predefined(asyncio=True, nested=nested, graph=graph)

    class Told(Model):
        async def on_effects(self, effects: tuple[Effect, ...]) -> None:  # type: ignore[override]
            await asyncio.sleep(0)
            self.heard = effects

    async def scene() -> None:
        torch: Any = Told()
        TORCH.make_machine(torch, machine_cls)
        assert await torch.switch(charge=0)
        assert (torch.state, torch.heard) == ("Off", (Lit("beep Off"),))
        with pytest.raises(OSError, match="the lamp is broken"):
            await torch.switch(charge=1, broken=True)
        assert (torch.state, torch.heard) == ("Off", (Lit("beep Off"),))
        assert await torch.switch(charge=1)
        assert torch.state == "Lit_Off"
        assert torch.heard == (Lit("beep Lit_Off"), Lit("Lit_Off"), Lit("Lit_Off"))
        assert await torch.press()  # the lamp inside
        assert torch.state == "Lit_On"
        assert await torch.switch()
        assert (torch.state, torch.heard) == ("Off", (Lit("beep Off"),))

    asyncio.run(scene())


def test_every_class_that_cannot_await_refuses_an_asynchronous_guard() -> None:
    for locked, nested in ((False, False), (True, False), (False, True), (True, True)):
        torch: Any = Server.__new__(Server)
        TORCH.make_machine(torch, MachineFactory.get_predefined(locked=locked, nested=nested))
        with pytest.raises(DefinitionError, match="is_charged is async; only an asynchronous"):
            torch.switch(charge=1)
        assert torch.state == "Off"
