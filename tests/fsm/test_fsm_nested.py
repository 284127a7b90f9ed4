"""States that are lifecycles themselves: tables, history, and the library's nested states."""

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest
from fsm_entities import Device, Model, Note, note, switch
from transitions.extensions import HierarchicalMachine
from transitions.extensions.asyncio import AsyncMachine, HierarchicalAsyncMachine

from quadriga.fsm import (
    STAYS,
    DefinitionError,
    Effect,
    Fired,
    Lifecycle,
    Row,
    history,
    ignored,
    path_to,
    reachable,
    row,
    tour,
    unbounded,
    within,
)
from quadriga.fsm.table import Info
from quadriga.fsm.timers import Timers


def hot(device: Device, info: Info) -> bool:
    return bool(info.get("hot"))


def broken(device: Device, fired: Fired) -> tuple[Effect, ...]:
    raise RuntimeError("an emitter fails")


# fmt: off
BURNER = Lifecycle(
    "burner",
    initial="Low",
    final=(),
    lasts={"Low": unbounded("more"), "High": unbounded("less")},
    rows=(
        row("more", "Low",  "High"),
        row("less", "High", "Low"),
        row("test", "Low",  STAYS,  emit=note),
    ),
)
HEATER = Lifecycle(
    "heater",
    initial="Idle",
    final=("Burnt",),
    lasts={"Idle": unbounded("heat"), "Hot": within(60, then="cool")},
    rows=(
        row("heat", "Idle",  "Hot"),
        row("cool", "Hot",   "Idle",  emit=note),
        row("burn", "Hot",   "Burnt"),
        ignored("cool", "Idle", why="it is cool"),
    ),
    inside={"Hot": BURNER},
)
OVEN = Lifecycle(
    "oven",
    initial="Off",
    final=("Scrapped",),
    lasts={"Off": unbounded("start"), "On": within(500, then="stop"), "Held": unbounded("resume")},
    rows=(
        row("start",  "Off",          "On"),
        row("stop",   "On",           "Off",                emit=note),
        row("hold",   ("On", "Off"),  "Held"),
        row("resume", "Held",         history("On"),        when=hot),
        row("resume", "Held",         history("On", deep=True), emit=note),
        row("reset",  "On",           "On"),
        row("warm",   "On",           "On_Hot_High"),
        row("less",   "On_Hot_Low",   "On_Idle"),
        row("test",   "On",           STAYS,                emit=note),
        row("cool",   "On_Hot",       "Off",                when=hot),
        row("scrap",  ("On_Burnt", "Off"), "Scrapped"),
        row("jam",    "On_Hot",       "Held",               emit=broken),
    ),
    inside={"On": HEATER},
)
# fmt: on


def walk(device: Device, *triggers: str, **info: Any) -> str:
    for trigger in triggers:
        OVEN.fire(device, trigger, **info)
    return device.state


def test_the_states_inside_are_states_of_the_whole_with_their_limits() -> None:
    inside = ("On_Idle", "On_Hot_Low", "On_Hot_High", "On_Burnt")
    assert OVEN.states == ("Off", *inside, "Held", "Scrapped")
    assert OVEN.children == ("Off", "On", "Held", "Scrapped")
    assert list(OVEN.composites) == ["On_Hot", "On"]
    assert OVEN.composites["On"].children == ("On_Idle", "On_Hot", "On_Burnt")
    assert OVEN.around("On_Hot_Low") == ("On", "On_Hot")
    assert OVEN.around("Off") == ()
    assert HEATER.states == ("Idle", "Hot_Low", "Hot_High", "Burnt")
    assert OVEN.lasts["On_Hot_Low"] == unbounded("more")
    assert OVEN.composites["On"].lasts == within(500, then="stop")
    assert OVEN.composites["On_Hot"].lasts == within(60, then="cool")
    assert set(OVEN.timed) == {"On", "On_Hot"}
    # a state that ends the heater has the row that leads on from it
    assert OVEN.lasts["On_Burnt"] == unbounded("scrap")


def test_a_composite_can_be_asked_for_and_is_one_of_every_state_of_its_table() -> None:
    for state, inside in (("Off", set()), ("On_Hot_Low", {"On", "On_Hot", "On_Hot_Low"})):
        device = Device(state=state)
        asked = ("On", "On_Hot", "On_Hot_Low", "On_Hot_High")
        assert {each for each in asked if OVEN.is_in(device, each)} == inside
    with pytest.raises(ValueError, match="oven: unknown state 'Onn' .*; did you mean 'On'?"):
        OVEN.is_in(device, "Onn")
    more = OVEN.extend(
        rows=(row("panic", "*", "Held"), row("boost", "*", "On")),
        lasts={"On_Hot_High": within(5, then="less")},
    )
    for trigger, sources in (("panic", {"Off", "On"}), ("boost", {"Off", "Held"})):
        assert {r.source for r in more.nested_rows if r.trigger == trigger} == sources


def test_lines_and_paths_lead_through_the_states_inside() -> None:
    assert {r.line for r in OVEN.rows if r.trigger == "reset"} == {5}
    assert {(r.line, r.source) for r in OVEN.rows if r.trigger == "more"} == {(16, "On_Hot_Low")}
    once = [r for r in OVEN.nested_rows if r.trigger == "stop"]
    assert [(r.line, r.source, r.target) for r in once] == [(1, "On", "Off")]
    assert [r.trigger for r in path_to(OVEN, "On_Hot_High")] == ["start", "warm"]
    assert [r.trigger for r in path_to(OVEN, "On_Hot")] == ["start", "heat"]
    assert path_to(OVEN, "On", start="On_Burnt") == ()
    assert set(reachable(OVEN)) == set(OVEN.states)
    assert {r for walked in tour(OVEN) for r in walked} == set(OVEN.rows)


def test_history_leads_to_the_state_that_was_left_or_to_the_initial_one() -> None:
    for info, reached in (({}, "On_Hot_High"), ({"hot": True}, "On_Hot_Low")):
        device = Device()
        walk(device, "start", "heat", "more", "hold")
        assert device.history == {"On": "On_Hot_High"}
        assert walk(device, "resume", **info) == reached
    for info in ({}, {"hot": True}):
        for stored in ({}, {"On": "On_Renamed"}):
            assert walk(Device(state="Held", history=stored), "resume", **info) == "On_Idle"


def test_history_is_written_only_when_the_composite_is_left_without_an_error() -> None:
    device = Device()
    walk(device, "start", "heat", "more", "cool")
    assert device.history == {}
    walk(device, "warm", "reset")
    assert device.history == {"On": "On_Hot_High"}
    device = Device(state="On_Hot_Low")
    with pytest.raises(RuntimeError, match="an emitter fails"):
        OVEN.fire(device, "jam")
    assert (device.state, device.history) == ("On_Hot_Low", {})


def test_an_entity_of_a_plain_class_gets_its_history_and_without_history_needs_none() -> None:
    class Plain:
        key = "plain"
        state = "Off"

    it: Any = Plain()
    assert walk(it, "start", "heat", "hold", "resume") == "On_Hot_Low"
    assert it.history == {"On": "On_Hot_Low"}

    @dataclass(slots=True)
    class Slim:
        key: str
        state: str

    heater = Slim("h", "Hot_High")
    HEATER.fire(heater, "cool")
    assert heater.state == "Idle"


def test_states_in_a_stored_history_are_renamed_too() -> None:
    bulb = switch("bulb", "Dim", "up", "Bright", "down", renamed={"Full": "Bright"})
    rows = (row("back", "Off", history("On")),)
    inside, renamed = {"On": bulb}, {"Lit": "On"}
    lamp = switch("lamp", "Off", "on", "On", "off", rows=rows, inside=inside, renamed=renamed)
    stored = Device(state="Off", history={"Lit": "Lit_Full"})
    assert lamp.migrate(stored)
    assert stored.history == {"On": "On_Bright"}
    assert not lamp.migrate(stored)
    forgotten = Device(state="Off", history={"On": "On_Gone"})
    assert lamp.migrate(forgotten)
    assert forgotten.history == {}
    lamp.fire(stored, "back")
    assert stored.state == "On_Bright"


def test_a_composite_has_a_timer_for_the_whole_stay() -> None:
    timers, device = Timers(), Device()
    timers.fire(OVEN, device, "start", 0)
    timers.fire(OVEN, device, "heat", 450)
    timers.fire(OVEN, device, "more", 455)  # inside of On_Hot, whose time goes on
    assert timers.deadline(OVEN, device) is None
    assert timers.deadline(OVEN, device, "On_Hot") == 510
    assert timers.deadline(OVEN, device, "On") == 500
    assert timers.next_deadline() == 500
    (due,) = timers.due(505)
    assert (due.state, due.trigger, due.when) == ("On", "stop", 500)
    timers.fire(OVEN, device, "stop", 505)
    assert len(timers) == 0
    assert timers.next_deadline() is None


def test_a_composite_that_is_entered_again_starts_its_time_again() -> None:
    timers, device = Timers(), Device()
    timers.fire(OVEN, device, "start", 0)
    timers.fire(OVEN, device, "reset", 100)  # from On_Idle to On_Idle, out of On and into it
    assert device.state == "On_Idle"
    assert timers.deadline(OVEN, device, "On") == 600
    timers.fire(OVEN, device, "hold", 200)
    timers.fire(OVEN, device, "resume", 300)
    assert timers.deadline(OVEN, device, "On") == 800


def test_a_stored_entity_goes_on_with_the_time_of_its_composite() -> None:
    timers, device = Timers(), Device(state="On_Hot_Low")
    timers.resume(OVEN, device, 400, "On")
    timers.resume(OVEN, device, 40, "On_Hot")
    timers.resume(OVEN, device, 30)  # no limit: no timer
    assert [(due.when, due.trigger) for due in timers.due(40)] == [(40, "cool")]
    timers.entered(OVEN, device, 100)
    assert timers.deadline(OVEN, device, "On_Hot") == 160
    assert timers.deadline(OVEN, device, "On") == 600
    timers.stop(OVEN, device)
    assert len(timers) == 0


LAMP_LASTS = {"Off": unbounded("on"), "On": unbounded("off")}
LAMP_ROWS = (row("on", "Off", "On"), row("off", "On", "Off"))
BULB = switch("bulb", "Dim", "up", "Bright", "down")
FUSE = Lifecycle(
    "fuse",
    initial="Whole",
    final=("Blown",),
    lasts={"Whole": unbounded("blow")},
    rows=(row("blow", "Whole", "Blown"),),
)


def lamp(*rows: tuple[Row, ...], limits: dict[str, Any] | None = None, **options: Any) -> Lifecycle:
    lasts = {**LAMP_LASTS, **(limits or {})}
    table = {"initial": "Off", "final": (), "lasts": lasts, "inside": {"On": BULB}, **options}
    return Lifecycle("lamp", rows=table.pop("rows", (*LAMP_ROWS, *rows)), **table)


# fmt: off
REFUSED: dict[str, tuple[list[tuple[Row, ...]], dict[str, Any]]] = {
    # what the error says                                             the rows, and what else is other
    "row 2: On_Dimm --dip--> Off: unknown state 'On_Dimm'; did you mean 'On_Dim'?":
        ([row("dip", "On_Dimm", "Off")], {}),
    "row 2: Off --dip--> history(Onn): unknown state 'Onn'; did you mean 'On'?":
        ([row("dip", "Off", history("Onn"))], {}),
    "row 2: Off --dip--> history(On_Dim, deep): On_Dim is not a lifecycle, so it has no history":
        ([row("dip", "Off", history("On_Dim", deep=True))], {}),
    "row 2: On_Dim --dip--> history(On): On_Dim is within On, so it was not left":
        ([row("dip", "On_Dim", history("On"))], {}),
    "row 2: On_Bright --up [hot]--> Off: the last alternative is guarded; end with a row without a guard":
        ([row("up", "On", "Off", when=hot)], {}),
    "row 2: On --flip--> Off: rows of the states inside always take this trigger":
        ([row("flip", "On", "Off"), row("flip", ("On_Dim", "On_Bright"), "Off")], {}),
    "row 3: On_Dim --up--> On_Bright: an earlier row always takes this trigger":
        ([row("up", "On_Dim", "Off")], {}),
    "row 3: On_Dim --dip--> On_Dim: another alternative leads there too, and only one of them leaves On":
        ([row("dip", "On_Dim", "On_Dim", when=hot), row("dip", "On_Dim", "On")], {}),
    "unknown state 'Onn' of inside; did you mean 'On'?": ([], {"inside": {"Onn": BULB}}),
    "state On: 'bulb' is not a lifecycle": ([], {"inside": {"On": "bulb"}}),
    "state Gone is final and cannot be a lifecycle":
        ([row("go", "On", "Gone")], {"final": ("Gone",), "inside": {"Gone": BULB}}),
    "state Stand_by: in a nested lifecycle '_' separates a state from the one around it, so no name may contain it":
        ([row("wait", "Off", "Stand_by")], {"limits": {"Stand_by": unbounded("wait")}}),
    "unknown state 'On_Brigt' of lasts; did you mean 'On_Bright'?": ([], {"limits": {"On_Brigt": within(5)}}),
    "state On: its time limit fires 'up', which is not legal in On_Bright":
        ([], {"limits": {"On": within(5, then="up")}}),
    "state On: its time limit is not positive": ([], {"limits": {"On": within(0)}}),
    "state On: unbounded, but 'of' does not lead out of it; did you mean 'off'?":
        ([], {"limits": {"On": unbounded("of")}}),
    # the row from On leads away from there too, but is not meant to
    "state On_Blown ends the lifecycle inside On, and no row leads on from it; write one, or its limit in lasts":
        ([], {"inside": {"On": FUSE}}),
}
# fmt: on


@pytest.mark.parametrize("message", REFUSED)
def test_a_mistake_names_the_row_as_it_is_written_or_the_state(message: str) -> None:
    rows, options = REFUSED[message]
    with pytest.raises(DefinitionError) as error:
        lamp(*rows, **options)
    assert str(error.value) == f"lamp: {message}"


def test_a_state_inside_may_be_given_a_limit_outside() -> None:
    patient = lamp(limits={"On_Bright": within(5, then="down")})
    assert patient.timed == {"On_Bright": within(5, then="down")}
    for blown in (within(5), unbounded("off")):  # where a lifecycle inside has ended
        assert lamp(limits={"On_Blown": blown}, inside={"On": FUSE}).lasts["On_Blown"] == blown


def test_an_observed_hierarchical_machine_tells_the_row_of_the_state() -> None:
    dipped = lamp(
        row("dip", "On_Dim", "On_Bright", when=hot),
        row("dip", "On", "Off", when=hot),
        row("dip", "On", STAYS, why="it is cold"),
    )
    model: Any = Model()
    dipped.make_machine(model, HierarchicalMachine)
    taken: list[str] = []
    stop = dipped.observe(lambda row: taken.append(str(row)))
    model.on()
    model.dip()  # the library asks the same guard twice: of On_Dim and of On
    model.dip(hot=True)
    model.dip(hot=True)
    stop()
    assert taken == [
        "row 0: Off --on--> On_Dim",
        "row 4: On_Dim --dip--> stays",
        "row 2: On_Dim --dip [hot]--> On_Bright",
        "row 3: On_Bright --dip [hot]--> Off",
    ]


def test_a_machine_that_joins_names_in_another_way_is_refused() -> None:
    class Dotted(HierarchicalMachine):
        class state_cls(HierarchicalMachine.state_cls):
            separator = "."

    with pytest.raises(ValueError, match="Dotted joins the names of nested states with '.'"):
        OVEN.make_machine(None, Dotted)


def test_an_asynchronous_guard_of_a_row_back_to_history() -> None:
    async def warm(device: Any, info: Info) -> bool:
        await asyncio.sleep(0)
        return bool(info["warm"])

    async def greet(device: Any, fired: Fired) -> tuple[Effect, ...]:
        await asyncio.sleep(0)
        return (Note(f"to {fired.target}"),)

    back = row("on", "Off", history("On"), when=warm, emit=greet)
    warmed = lamp(rows=(back, *LAMP_ROWS), on_exit={"On_Bright": greet})
    with pytest.raises(DefinitionError, match="warm_and_was_in_On_Bright is async"):
        warmed.fire(Device(history={"On": "On_Bright"}), "on", warm=True)

    async def live(machine_cls: Any, warm: bool) -> tuple[str, tuple[Effect, ...]]:
        model: Any = Model()
        model.history = {"On": "On_Bright"}
        warmed.make_machine(model, machine_cls)
        await model.on(warm=warm)
        reached, heard = model.state, model.heard
        await model.off()
        if reached == "On_Bright":
            assert model.heard == (Note("to Off"),)
        return reached, heard

    for machine_cls in (AsyncMachine, HierarchicalAsyncMachine):
        assert asyncio.run(live(machine_cls, True)) == ("On_Bright", (Note("to On_Bright"),))
        assert asyncio.run(live(machine_cls, False)) == ("On_Dim", ())


def test_what_is_added_to_the_machine_of_a_copy_is_among_the_rows_as_written() -> None:
    oven = OVEN.copy("oven-2")
    assert oven.nested_rows == OVEN.nested_rows
    oven.machine.add_states("Sold")
    oven.machine.add_transition("sell", "On_Idle", "Sold")
    oven.machine.remove_transition("scrap", source="Off")
    oven.machine.remove_transition("scrap", source="On_Burnt")
    now, before = set(oven.nested_rows), set(OVEN.nested_rows)
    assert [(r.trigger, r.source, r.target) for r in now - before] == [("sell", "On_Idle", "Sold")]
    assert {r.trigger for r in before - now} == {"scrap"}
    assert oven.children == ("Off", "On", "Held", "Scrapped", "Sold")
    device = Device(state="On_Idle")
    oven.fire(device, "sell")
    assert device.state == "Sold"
