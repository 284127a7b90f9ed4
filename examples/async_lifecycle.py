"""A lifecycle on a machine of the `transitions` library, here its AsyncMachine.

``make_machine`` puts the same rows on any machine class of the library. Your program adds models to
the machine and triggers them in the library's way. The effects of a row go to the model's
``on_effects`` after its state has changed. Run it: python examples/async_lifecycle.py
"""

import asyncio
from collections.abc import Awaitable, Callable

from transitions.extensions.asyncio import AsyncMachine

from quadriga.fsm import ALLOCATION, Effect


class Container:
    """An allocation as the machine that runs it sees it. The guards read ``key`` and ``reason``."""

    state: str  # the machine sets it
    trigger: Callable[[str], Awaitable[bool]]  # and this method

    def __init__(self, key: str, reason: str) -> None:
        self.key = key
        self.reason = reason  # why the scheduler will release it
        self.run_limit = 0  # ns; 0 means no limit

    def on_effects(self, effects: tuple[Effect, ...]) -> None:
        for effect in effects:
            print(f"{self.key}: to do: {effect}")


async def live(container: Container) -> None:
    for trigger in ("allocate", "release", "confirm"):
        await asyncio.sleep(0)  # the other container takes its turn
        await container.trigger(trigger)
        print(f"{container.key}: {trigger} -> {container.state}")


async def main() -> None:
    containers = [Container("web-1", reason="timeout"), Container("web-2", reason="replacement")]
    machine = ALLOCATION.make_machine(machine_cls=AsyncMachine)
    for container in containers:
        machine.add_model(container)
    await asyncio.gather(*map(live, containers))


if __name__ == "__main__":
    asyncio.run(main())
