"""Time limits on an event loop. The loop's time passes only where all tasks wait."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from transitions import Machine
from transitions.extensions.asyncio import AsyncMachine, HierarchicalAsyncMachine
from virtual_time import seconds, virtual

from quadriga.fsm import STAYS, Effect, Fired, Lifecycle, row, unbounded, within
from quadriga.fsm.aio import AsyncTimers
from quadriga.fsm.table import SECOND, Info
from quadriga.fsm.timers import Due


def running(*arguments: Any, **options: Any) -> AsyncTimers:
    timers = AsyncTimers(*arguments, **options)
    TASKS.append(asyncio.create_task(timers.run()))
    return timers


#: referred to, since a loop does not
TASKS: list[asyncio.Task[None]] = []


@dataclass(frozen=True, slots=True)
class Say(Effect):
    text: str


@dataclass(slots=True, eq=False)
class Door:
    key: str
    state: str = "Shut"
    stuck: bool = False
    heard: list[tuple[int, str]] = field(default_factory=list)


def is_stuck(door: Door, info: Info) -> bool:
    if door.stuck:
        raise OSError(f"{door.key} is stuck")
    return False


def say(door: Door, fired: Fired) -> tuple[Effect, ...]:
    return (Say(fired.trigger),)


# fmt: off
DOOR = Lifecycle(
    "door",
    initial="Shut",
    final=("Gone",),
    lasts={
        "Shut":   unbounded("open"),
        "Open":   within(10 * SECOND, then="close"),
        "Held":   within(4 * SECOND, then="beep", backoff_to=10 * SECOND),
        "Forced": within(60 * SECOND),
    },
    rows=(
        row("open",   "Shut",                   "Open",   emit=say),
        row("close",  "Open",                   "Open",   when=is_stuck),
        row("close",  ("Open", "Held"),         "Shut",   emit=say),
        row("hold",   "Open",                   "Held"),
        row("beep",   "Held",                   STAYS,    emit=say),
        row("force",  "Shut",                   "Forced"),
        row("remove", ("Shut", "Forced"),       "Gone"),
    ),
)
# fmt: on


def tell(door: Door, effects: tuple[Effect, ...]) -> None:
    door.heard += [(round(seconds()), effect.text) for effect in effects if isinstance(effect, Say)]


@virtual
async def test_a_door_closes_in_time() -> None:
    timers, front, back = running(tell), Door("front"), Door("back")
    assert await timers.fire(DOOR, front, "open") == (Say("open"),)
    assert timers.deadline(DOOR, front) == timers.now() + 10 * SECOND
    await asyncio.sleep(3)
    await timers.fire(DOOR, back, "open")
    await asyncio.sleep(8)
    assert (front.state, back.state) == ("Shut", "Open")
    await asyncio.sleep(20)
    assert front.heard == [(0, "open"), (10, "close")]
    assert back.heard == [(3, "open"), (13, "close")]


@virtual
async def test_a_trigger_that_stays_backs_off_until_somebody_comes() -> None:
    timers, door = running(tell), Door("front")
    await timers.fire(DOOR, door, "open")
    await timers.fire(DOOR, door, "hold")
    await asyncio.sleep(40)
    await timers.fire(DOOR, door, "close")
    await asyncio.sleep(100)
    assert [at for at, text in door.heard if text == "beep"] == [4, 12, 22, 32]


@virtual
async def test_an_earlier_timer_wakes_what_waits_for_a_later_one() -> None:
    timers, front, back = running(tell), Door("front"), Door("back", "Held")
    await timers.fire(DOOR, front, "open")
    await asyncio.sleep(1)
    timers.entered(DOOR, back)
    await asyncio.sleep(6)
    assert back.heard == [(5, "beep")]
    timers.stop(DOOR, back)
    await asyncio.sleep(60)
    assert back.heard == [(5, "beep")]
    assert front.heard[-1] == (10, "close")


@virtual
async def test_deliver_may_be_a_coroutine_function() -> None:
    async def slowly(door: Door, effects: tuple[Effect, ...]) -> None:
        await asyncio.sleep(2)
        tell(door, effects)

    timers, door = running(slowly), Door("front")
    await timers.fire(DOOR, door, "open")
    assert door.heard == [(2, "open")]
    await asyncio.sleep(20)
    assert door.heard == [(2, "open"), (12, "close")]


@virtual
async def test_a_limit_without_a_trigger_is_reported() -> None:
    reports: list[tuple[int, str]] = []

    async def report(due: Due) -> None:
        reports.append((round(seconds()), f"{due.key} {due.state}"))

    for overdue in (report, None):
        await running(overdue=overdue).fire(DOOR, Door("front"), "force")
        await asyncio.sleep(100)
    assert reports == [(60, "front Forced")]


@virtual
async def test_an_error_ends_run_and_nothing_is_lost() -> None:
    timers, front, back = AsyncTimers(tell), Door("front", stuck=True), Door("back")
    for door in (front, back):
        await timers.fire(DOOR, door, "open")
    with pytest.raises(OSError, match="front is stuck"):
        await timers.run()
    assert front.state == back.state == "Open"
    front.stuck = False
    TASKS.append(asyncio.create_task(timers.run()))
    await asyncio.sleep(1)
    assert front.heard[-1] == back.heard[-1] == (10, "close")


@virtual
async def test_failed_decides_about_errors_of_triggers_that_were_fired_by_time() -> None:
    async def failed(due: Due, error: Exception) -> None:
        door = due.entity
        door.heard.append((round(seconds()), str(error)))
        door.stuck = False
        timers.resume(DOOR, door, timers.now() + 5 * SECOND)

    timers = running(tell, failed=failed)
    front, back = Door("front", stuck=True), Door("back")
    for door in (front, back):
        await timers.fire(DOOR, door, "open")
    await asyncio.sleep(60)
    assert front.heard == [(0, "open"), (10, "front is stuck"), (15, "close")]
    assert back.heard == [(0, "open"), (10, "close")]


@virtual
async def test_an_error_of_deliver_reaches_the_caller_and_failed() -> None:
    failures: list[str] = []

    def break_down(door: Door, effects: tuple[Effect, ...]) -> None:
        raise ConnectionError(f"no answer to {effects}")

    timers = running(break_down, failed=lambda due, error: failures.append(str(error)))
    door = Door("front")
    with pytest.raises(ConnectionError):
        await timers.fire(DOOR, door, "open")
    assert door.state == "Open"
    await asyncio.sleep(60)
    assert door.state == "Shut"
    assert failures == ["no answer to (Say(text='close'),)"]


@virtual
async def test_entities_are_loaded_when_they_are_due() -> None:
    store = {"kept": "Open", "left": "Open", "deleted": "Open"}
    loaded: dict[str, Door] = {}

    def load(due: Due) -> Door | None:
        if due.key in store:
            loaded[due.key] = Door(due.key, store[due.key])
        return loaded.get(due.key)

    timers = running(tell, load=load)
    for key, state in store.items():
        timers.resume(DOOR, Door(key, state), timers.now() + 5 * SECOND)
    await asyncio.sleep(1)
    store["left"] = "Shut"  # by another program
    del store["deleted"]
    await asyncio.sleep(60)
    assert loaded["kept"].heard == [(5, "close")]
    assert loaded["left"].heard == []


@virtual
async def test_the_clock_may_be_another_one() -> None:
    start = 1_800_000_000 * SECOND  # since 1970
    timers = running(tell, clock=lambda: start + round(seconds() * SECOND))
    door = Door("front")
    await timers.fire(DOOR, door, "open")
    assert timers.deadline(DOOR, door) == start + 10 * SECOND
    await asyncio.sleep(11)
    assert door.heard[-1] == (10, "close")


@pytest.mark.parametrize(
    "machine_cls", [AsyncMachine, HierarchicalAsyncMachine, Machine], ids=lambda cls: cls.__name__
)
@virtual
async def test_time_limits_of_models_of_the_librarys_machines(machine_cls: type[Machine]) -> None:
    class Model(Door):
        __slots__ = ("__dict__",)

        def on_effects(self, effects: tuple[Effect, ...]) -> None:
            tell(self, effects)

    async def done(result: Any) -> None:
        assert (await result) if isinstance(result, Awaitable) else result

    table = DOOR.copy()
    timers = running(fire=lambda due, model: model.trigger(due.trigger))
    stop = timers.follow(table)
    front: Any = Model("front")
    back: Any = Model("back", "Open")
    table.make_machine(front, machine_cls).add_model(back)
    timers.resume(table, back, timers.now() + 3 * SECOND)
    await done(front.open())
    await asyncio.sleep(1)
    await done(front.hold())
    await asyncio.sleep(10)
    assert front.heard == [(0, "open"), (5, "beep")]
    assert back.heard == [(3, "close")]
    await done(front.close())
    await asyncio.sleep(50)
    assert len(front.heard) == 3
    stop()
    await done(front.open())
    await asyncio.sleep(50)
    assert front.state == "Open"


@virtual
async def test_an_error_of_a_machine_after_the_change_keeps_the_new_timer() -> None:
    def deliver(model: Any, effects: Any) -> None:
        if model.state == "Shut":
            raise ConnectionError

    table = DOOR.copy()
    timers = AsyncTimers(fire=lambda due, model: model.trigger(due.trigger))
    timers.follow(table)
    door: Any = SimpleNamespace(key="front", stuck=False)
    table.make_machine(door, deliver=deliver)
    door.open()
    with pytest.raises(ConnectionError):
        await timers.run()
    assert door.state == "Shut"
    assert timers.deadline(table, door) is None


@virtual
async def test_run_runs_once_at_a_time() -> None:
    timers = running(tell)
    await asyncio.sleep(1)
    with pytest.raises(RuntimeError, match="is running already"):
        await timers.run()
    task = TASKS[-1]
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    # an entity whose time is up while nothing runs is fired at as soon as it does
    door = Door("front")
    await timers.fire(DOOR, door, "open")
    await asyncio.sleep(30)
    assert door.state == "Open"
    TASKS.append(asyncio.create_task(timers.run()))
    await asyncio.sleep(1)
    assert door.heard == [(1, "open"), (31, "close")]
