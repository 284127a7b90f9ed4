"""A lifecycle on a machine of the `transitions` library, here its AsyncMachine.

``make_machine`` puts the same rows on any machine class of the library. A model that you add to it
is triggered in the library's way, and what the rows emit goes to the model's ``on_effects``, after
its state has changed. Run it: python examples/async_lifecycle.py
"""

import asyncio
from collections.abc import Awaitable, Callable

from transitions.extensions.asyncio import AsyncMachine

from quadriga.fsm import ALLOCATION, Effect


class Container:
    """An allocation seen from the machine that runs it. The guards look at the two facts."""

    state: str  # the machine sets it
    trigger: Callable[[str], Awaitable[bool]]  # and this method

    def __init__(self, key: str, reason: str) -> None:
        self.key = key
        self.reason = reason  # why it will be wanted back
        self.run_limit = 0  # ns; it may run for ever

    def on_effects(self, effects: tuple[Effect, ...]) -> None:
        for effect in effects:
            print(f"{self.key}: to do: {effect}")


async def live(container: Container) -> None:
    for trigger in ("allocate", "release", "confirm"):
        await asyncio.sleep(0)  # somebody else's turn
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
