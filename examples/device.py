"""The driver of a device on asyncio, with nested states, history and time limits.

A thermometer hangs on a line that may be lost. While it is online it streams values or is paused, and
streaming is a lifecycle by itself: wait, ask, read. When the line comes back, the driver goes on where
it was. All waiting is in the tables: ``AsyncTimers`` fires what is due. Run it: python examples/device.py
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field

from quadriga.fsm import Effect, Fired, Lifecycle, history, ignored, row, unbounded, within
from quadriga.fsm.aio import AsyncTimers

MS = 1_000_000  # times are nanoseconds


@dataclass(frozen=True, slots=True)
class Connect(Effect):
    """Open the line."""


@dataclass(frozen=True, slots=True)
class Ask(Effect):
    """Ask the thermometer for a value."""


@dataclass(frozen=True, slots=True)
class Report(Effect):
    """Hand a value to the user."""

    celsius: float


@dataclass(slots=True, eq=False)
class Thermometer:
    """The entity. ``history`` is what lets it go on where it was; store it with the state."""

    key: str
    state: str = "Closed"
    history: dict[str, str] = field(default_factory=dict)


def connect(device: Thermometer, fired: Fired) -> Iterator[Effect]:
    yield Connect()


def ask(device: Thermometer, fired: Fired) -> Iterator[Effect]:
    yield Ask()


def report(device: Thermometer, fired: Fired) -> Iterator[Effect]:
    yield Report(fired.info["celsius"])


# fmt: off
STREAMING = Lifecycle(
    "streaming",
    initial="Waiting",
    final=(),
    lasts={"Waiting": within(5 * MS, then="ask"), "Reading": unbounded("value")},
    rows=(
        #   trigger   from       to         emit
        row("ask",    "Waiting", "Reading", emit=ask),
        row("value",  "Reading", "Waiting", emit=report),
    ),
)
ONLINE = Lifecycle(
    "online",
    initial="Streaming",
    final=(),
    lasts={"Streaming": unbounded("pause"), "Paused": unbounded("resume")},
    rows=(
        row("pause",  "Streaming", "Paused"),
        row("resume", "Paused",    "Streaming"),
        ignored("value", "Paused", why="it was asked for before the pause"),
    ),
    inside={"Streaming": STREAMING},
)
DEVICE = Lifecycle(
    "device",
    initial="Closed",
    final=(),
    lasts={
        "Closed":  unbounded("open"),
        "Opening": within(500 * MS, then="lose"),
        "Online":  unbounded("lose"),
        "Lost":    within(5 * MS, then="open"),
        # the thermometer answers at once or not at all
        "Online_Streaming_Reading": within(150 * MS, then="lose"),
    },
    rows=(
        row("open",    ("Closed", "Lost"),    "Opening",         emit=connect),
        row("opened",  "Opening",             history("Online")),
        row("lose",    ("Opening", "Online"), "Lost"),
        row("close",   ("Opening", "Online", "Lost"), "Closed"),
        ignored("lose", "Lost",               why="it is known"),
    ),
    inside={"Online": ONLINE},
)
# fmt: on


class Line:
    """A simulated line. The driver of a real one would write to a port here."""

    def __init__(self) -> None:
        self.asked = 0

    async def connect(self) -> None:
        await asyncio.sleep(0)

    async def ask(self) -> float | None:
        await asyncio.sleep(0)
        self.asked += 1
        return None if self.asked == 4 else 20.0 + self.asked  # the fourth question gets lost


class Driver:
    """Executes the effects, and fires what the line says."""

    def __init__(self, device: Thermometer, line: Line) -> None:
        self.device = device
        self.line = line
        self.timers = AsyncTimers(self.deliver)
        self.values: asyncio.Queue[float] = asyncio.Queue()
        self.opened = asyncio.Event()
        self.group = asyncio.TaskGroup()

    async def fire(self, trigger: str, **info: object) -> None:
        before = self.device.state
        await self.timers.fire(DEVICE, self.device, trigger, **info)
        print(f"{before} --{trigger}--> {self.device.state}")

    def deliver(self, device: Thermometer, effects: tuple[Effect, ...]) -> None:
        for effect in effects:
            match effect:
                case Connect():
                    self.group.create_task(self.connect())
                case Ask():
                    self.group.create_task(self.ask())
                case Report(celsius):
                    self.values.put_nowait(celsius)

    async def connect(self) -> None:
        await self.line.connect()
        await self.fire("opened")
        self.opened.set()

    async def ask(self) -> None:
        if (celsius := await self.line.ask()) is not None:
            await self.fire("value", celsius=celsius)


async def main() -> None:
    thermometer = Thermometer("attic")
    driver = Driver(thermometer, Line())
    async with driver.group as group:
        running = group.create_task(driver.timers.run())
        await driver.fire("open")
        for _ in range(2):
            print(f"{await driver.values.get()} degrees")
        await driver.fire("pause")
        driver.opened.clear()
        await driver.fire("lose")
        await driver.opened.wait()
        print(f"back, and still {thermometer.state}")
        await driver.fire("resume")
        for _ in range(2):  # the line is lost in between, because no answer comes in time
            print(f"{await driver.values.get()} degrees")
        print(f"it was lost while in {thermometer.history['Online']}")
        await driver.fire("close")
        running.cancel()


if __name__ == "__main__":
    asyncio.run(main())
