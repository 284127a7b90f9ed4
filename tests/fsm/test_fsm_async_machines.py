"""Asynchronous machines: two triggers of one model at the same time."""

from __future__ import annotations

import asyncio
import random
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import pytest
from transitions.extensions.asyncio import AsyncMachine

from quadriga.fsm import NODE, Effect, Fired, Lifecycle, row, unbounded


class Server:
    key = "n-1"
    state: str

    def __init__(self) -> None:
        self.lock = asyncio.Lock()


def name_of(effects: Any) -> str:
    (effect,) = effects
    return type(effect).__name__


@pytest.mark.parametrize(
    ("options", "locked", "delivered"),
    [
        ({}, False, ["begin OpenNode", "begin CloseNode", "end CloseNode"]),
        (
            {"queued": "model"},
            False,
            ["begin OpenNode", "end OpenNode", "begin CloseNode", "end CloseNode"],
        ),
        ({}, True, ["begin OpenNode", "end OpenNode", "begin CloseNode", "end CloseNode"]),
    ],
)
def test_a_trigger_interrupts_a_delivery_unless_triggers_of_a_model_wait_for_each_other(
    options: dict[str, Any], locked: bool, delivered: list[str]
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
    assert heard == delivered


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
    rows=(
        row("press", "Off", "On",  emit=lit),
        row("press", "On",  "Off", emit=lit),
    ),
)
# fmt: on


@pytest.mark.parametrize("options", [{"queued": "model"}, {}])
def test_no_effect_is_lost_where_triggers_of_a_model_wait_for_each_other(
    options: dict[str, Any],
) -> None:
    dice = random.Random(3)
    heard: list[Effect] = []

    def deliver(model: Any, effects: Any) -> Any:
        heard.extend(effects)
        return asyncio.sleep(0) if dice.random() < 0.5 else None

    async def scene() -> None:
        lamp: Any = Server()
        LAMP.make_machine(lamp, AsyncMachine, deliver=deliver, **options)

        async def press() -> None:
            for _ in range(20):
                for _ in range(dice.randrange(5)):
                    await asyncio.sleep(0)
                async with AsyncExitStack() as stack:
                    if not options:
                        await stack.enter_async_context(lamp.lock)
                    assert await lamp.press()

        await asyncio.gather(*(press() for _ in range(4)))

    asyncio.run(scene())
    assert heard == 40 * [Lit("On"), Lit("Off")]
