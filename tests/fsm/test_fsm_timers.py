"""The time limits of states: which trigger is due, when, and in which order."""

import asyncio
import random
from collections.abc import Awaitable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from transitions import Machine
from transitions.extensions.asyncio import AsyncMachine, HierarchicalAsyncMachine
from virtual_time import seconds, virtual

from quadriga.base.times import SECOND
from quadriga.fsm import STAYS, Effect, Fired, InvalidTransition, Lifecycle, row, unbounded, within
from quadriga.fsm.aio import AsyncTimers
from quadriga.fsm.table import Info
from quadriga.fsm.timers import Due, Timers


@dataclass(slots=True, eq=False)
class Call:
    """A call of a telephone: it rings, is held, and may be on for ever."""

    key: str
    state: str = "Idle"
    broken: bool = False


def is_broken(call: Call, info: Info) -> bool:
    if call.broken:
        raise OSError("no line")
    return False


# fmt: off
CALL = Lifecycle(
    "call",
    initial="Idle",
    final=("Over",),
    lasts={
        "Idle":    unbounded("dial"),
        "Ringing": within(10, then="give_up"),
        "On":      unbounded("hang_up"),
        "Held":    within(4, then="remind", backoff_to=10),
        "Lost":    within(7),
    },
    rows=(
        row("dial",    "Idle",             "Ringing"),
        row("answer",  "Ringing",          "On"),
        row("give_up", "Ringing",          "Over",    when=is_broken),
        row("give_up", "Ringing",          "Over"),
        row("hold",    "On",               "Held"),
        row("remind",  "Held",             STAYS,     why="a tone for the caller"),
        row("take",    "Held",             "On"),
        row("lose",    "On",               "Lost"),
        row("hang_up", ("On", "Lost"),     "Over"),
        row("dial",    "Lost",             "Ringing"),
    ),
)
# fmt: on


@pytest.fixture
def timers() -> Timers:
    return Timers()


def ringing(timers: Timers, key: str, now: int) -> Call:
    call = Call(key)
    timers.fire(CALL, call, "dial", now)
    return call


def due(timers: Timers, now: int) -> list[tuple[str, str | None, int]]:
    found = []
    for each in timers.due(now):
        found.append((each.key, each.trigger, each.when))
        if each.trigger is not None:
            timers.fire(each.lifecycle, each.entity, each.trigger, now)
    return found


def test_a_state_with_a_limit_ends_by_its_trigger(timers: Timers) -> None:
    call = ringing(timers, "a", now=100)
    assert timers.next_deadline() == timers.deadline(CALL, call) == 110
    assert due(timers, 109) == []
    assert due(timers, 110) == [("a", "give_up", 110)]
    assert call.state == "Over"
    assert (len(timers), timers.next_deadline(), due(timers, 10**9)) == (0, None, [])


def test_a_state_that_was_left_in_time_and_a_deleted_entity_have_no_timer(timers: Timers) -> None:
    call, deleted = ringing(timers, "a", now=0), ringing(timers, "b", now=0)
    timers.fire(CALL, call, "answer", 9)
    for _ in range(2):
        timers.stop(CALL, deleted)
    assert timers.next_deadline() is None
    assert timers.deadline(CALL, call) is None
    assert due(timers, 10**9) == []
    assert call.state == "On"


def test_a_trigger_that_changes_nothing_is_fired_ever_later_to_a_bound(timers: Timers) -> None:
    call = Call("a", "On")
    timers.fire(CALL, call, "hold", 0)
    fired: list[tuple[int, str | None, int]] = []
    while len(fired) < 5:
        now = timers.next_deadline()
        assert now is not None
        (only,) = timers.due(now)
        fired.append((only.when, only.trigger, only.earlier))
    assert fired == [(4, "remind", 0), (12, "remind", 1)] + [
        (22 + 10 * n, "remind", 2 + n) for n in range(3)
    ]
    timers.fire(CALL, call, "take", 43)
    assert due(timers, 10**9) == []


def test_what_is_fired_for_one_decides_about_the_next(timers: Timers) -> None:
    first, second = ringing(timers, "a", now=0), ringing(timers, "b", now=0)
    each = timers.due(10)
    assert next(each).entity is first
    timers.fire(CALL, second, "answer", 10)
    assert next(each, None) is None


def test_a_limit_without_a_trigger_and_a_repeated_one_are_told_once(timers: Timers) -> None:
    call = Call("a", "On")
    timers.fire(CALL, call, "lose", 0)
    assert due(timers, 8) == [("a", None, 7)]
    assert call.state == "Lost"
    assert due(timers, 10**9) == []
    timers.fire(CALL, Call("a", "On"), "hold", 0)
    assert due(timers, 1_000) == [("a", "remind", 4)]
    assert timers.next_deadline() == 1_008


def test_a_refused_trigger_leaves_the_timer_and_a_failed_one_comes_later(timers: Timers) -> None:
    call = ringing(timers, "a", now=0)
    call.broken = True
    for each in timers.due(10):
        with pytest.raises(OSError, match="no line"):
            timers.fire(CALL, call, "give_up", 10)
        timers.resume(CALL, each.entity, 15)
    call.broken = False
    assert due(timers, 14) == []
    assert due(timers, 15) == [("a", "give_up", 15)]
    call = ringing(timers, "a", now=0)
    with pytest.raises(InvalidTransition):
        timers.fire(CALL, call, "hold", 5)
    assert timers.deadline(CALL, call) == 10


def test_entities_are_told_apart_by_their_key(timers: Timers) -> None:
    ringing(timers, "a", now=0)
    loaded_again = Call("a", "Ringing")
    timers.fire(CALL, loaded_again, "answer", 5)
    assert due(timers, 10**9) == []
    # and by their lifecycle
    lamp: Lifecycle = Lifecycle(
        "lamp",
        initial="On",
        final=("Off",),
        lasts={"On": within(3, then="fade")},
        rows=(row("fade", "On", "Off"),),
    )
    bulb = Call("b", "On")
    ringing(timers, "b", now=0)
    timers.entered(lamp, bulb, 0)
    assert due(timers, 20) == [("b", "fade", 3), ("b", "give_up", 10)]


def test_a_state_that_was_changed_elsewhere_has_no_timer(timers: Timers) -> None:
    call = ringing(timers, "a", now=0)
    CALL.fire(call, "answer")
    assert timers.deadline(CALL, call) is None
    assert due(timers, 10**9) == []
    assert len(timers) == 0
    timers.entered(CALL, call, 3)  # without a limit
    timers.resume(CALL, call, 3)
    assert timers.next_deadline() is None


def test_an_entity_may_have_a_limit_of_its_own() -> None:
    own = {("slow", "Ringing"): 25, ("none", "Ringing"): 0, ("none", "Held"): 0}
    timers = Timers(lambda lifecycle, call, state: own.get((call.key, state)))
    ringing(timers, "slow", now=0)
    ringing(timers, "usual", now=0)
    ringing(timers, "none", now=0)
    assert due(timers, 0) == [("none", "give_up", 0)]
    assert due(timers, 25) == [("usual", "give_up", 10), ("slow", "give_up", 25)]
    timers.fire(CALL, Call("none", "On"), "hold", 30)
    assert [due(timers, 30), due(timers, 30), timers.next_deadline()] == [
        [("none", "remind", 30)],
        [],
        31,
    ]


def test_the_heap_does_not_grow_with_dead_timers() -> None:
    timers: Any = Timers()
    call = Call("a", "On")
    for now in range(10_000):
        timers.fire(CALL, call, "hold", now)
        timers.fire(CALL, call, "take", now)
    assert len(timers._heap) <= 1024


def test_following_a_lifecycle_is_firing_with_timers() -> None:
    # fmt: off
    line = Lifecycle(
        "line",
        initial="Free",
        final=("Dead",),
        lasts={"Free": unbounded("dial"), "Busy": within(30, then="drop")},
        rows=(
            row("dial",  "Free",  "Busy"),
            row("again", "Busy",  "Busy"),
            row("drop",  "Busy",  "Free"),
            row("cut",   "Free",  "Dead"),
        ),
        inside={"Busy": CALL.extend(rows=(row("redial", "Over", "Idle"),),
                                    lasts={"Over": unbounded("redial")})},
    )
    # fmt: on
    dice = random.Random(5)
    fired, followed = Timers(), Timers()
    one, other = Call("a", "Free"), Call("a", "Free")
    now = 0
    stop = line.watch(lambda outcome: followed.follow(line, outcome, now) if ours else None)
    for now in range(0, 3_000, 3):
        legal = [each for each in line.triggers(one.state) if each != "cut"]
        trigger = dice.choice(legal)
        ours = False
        fired.fire(line, one, trigger, now)
        ours = True
        line.fire(other, trigger)
        assert one.state == other.state
        for state in (None, "Busy"):
            assert fired.deadline(line, one, state) == followed.deadline(line, other, state)
        for timers in (fired, followed):
            for each in timers.due(now):
                assert each.state in ("Busy", one.state)
    stop()
    assert fired.next_deadline() == followed.next_deadline()


def test_many_entities_against_a_plain_search() -> None:
    # an oracle without a heap: of all that have a deadline, the least one
    random_one = random.Random(7)
    timers = Timers()
    calls = [Call(f"{n}") for n in range(40)]
    deadlines: dict[str, tuple[int, int]] = {}
    started = now = 0
    for _ in range(4_000):
        now += random_one.choice((0, 0, 1, 2))
        call = random_one.choice(calls)
        if call.state == "Over":
            call.state = "Idle"
        trigger = random_one.choice(CALL.triggers(call.state))
        before = call.state
        timers.fire(CALL, call, trigger, now)
        if call.state != before:
            deadlines.pop(call.key, None)
            if call.state in CALL.timed:
                started += 1
                deadlines[call.key] = (now + CALL.timed[call.state].ns, started)
        expected = sorted((w, order, key) for key, (w, order) in deadlines.items() if w <= now)
        found = []
        for each in timers.due(now):
            found.append((each.when, each.key))
            deadlines.pop(each.key)
            if each.earlier or each.lifecycle.timed[each.state].backoff_to:
                started += 1
                again = timers.deadline(CALL, each.entity)
                assert again is not None
                assert again > now
                deadlines[each.key] = (again, started)
        assert found == [(when, key) for when, _, key in expected]
        assert timers.next_deadline() == min((when for when, _ in deadlines.values()), default=None)


# -- on an event loop, whose time passes only where all tasks wait -----------------------------------


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


@virtual
async def test_a_clock_that_is_set_is_followed() -> None:
    now = [1_000 * SECOND]
    timers, door = running(tell, clock=lambda: now[0]), Door("front")
    for moment, follows in enumerate((lambda: asyncio.sleep(0.05), lambda: timers.wake())):
        await timers.fire(DOOR, door, "open")
        await asyncio.sleep(60)  # of the loop, and the clock stands still
        assert door.state == "Open"
        now[0] += 1_000 * SECOND
        await (follows() or asyncio.sleep(0))
        await asyncio.sleep(0)
        assert (door.state, door.heard[-1][0]) == ("Shut", 60 * (moment + 1))


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
