"""A stock hierarchical machine and a fast one side by side: after the same calls everything is the same."""

from itertools import chain
from typing import Any

import pytest
from fsm_worlds import LISTS, OPTIONS, TRIGGERS, act, common, some, which
from hypothesis import given, settings
from hypothesis import strategies as st
from nested_world import CALLBACKS, CONDITIONS, PATHS, compare
from transitions import Machine

pytestmark = pytest.mark.skipif(
    not hasattr(Machine, "on_final"), reason="transitions 0.9.0 is not made faster"
)

INNER = tuple("1 1/a 2 x y D A A/2 C nowhere".split())
SCOPES = ("A", "B", "C", "D")
NEW = (*PATHS, "E", "A/E", "C/c", "E/e")
NAMES = ("1", "2", "x", "y")
CHANGE = st.one_of(
    *common(PATHS, NEW, CALLBACKS, CONDITIONS),
    act("inner_transition", SCOPES, TRIGGERS, INNER, INNER, some(CONDITIONS), some(CALLBACKS)),
    act("inner_state", SCOPES, ("1", "new"), some(CALLBACKS)),
    act("initial", PATHS, ("1", "2", "a", "b", "x", "u", None)),
    act("initial", PATHS, st.lists(st.sampled_from(NAMES), max_size=2)),
    act("more_initial", PATHS, NAMES),
    act("state_callback", PATHS, ("on_enter", "on_exit", "on_final"), CALLBACKS),
    act("drop_event", SCOPES, TRIGGERS),
    act("set_state", which, st.one_of(st.sampled_from(NEW), st.just(("P/u/m", "P/v")))),
    act("swap_states"),
    act("replace_step", PATHS, ("enter", "exit", "scoped_enter", "scoped_exit")),
    act("replace_method", ("callbacks", "set_state", "get_state", "build_state_tree")),
    act("separate", (".", "/", "->")),
    act("nest", ("N", "M")),
    act("renew"),
)
FIRE = act("fire", which, TRIGGERS)
NAMED = act("fire_by_name", which, (*TRIGGERS, "to_A", "to_B/x", "to_P", "to_A/1/b", "no such"))
OTHER = st.one_of(
    act("to", which, PATHS),
    act("may", which, TRIGGERS),
    act("ask", which, NEW),
    act("dispatch", TRIGGERS),
    act("within", SCOPES, which, TRIGGERS),
)
USE = st.integers(0, 9).flatmap(lambda n: FIRE if n < 6 else NAMED if n < 8 else OTHER)
#: a change, and then uses of the machine
STEP = st.builds(lambda first, uses: [first, *uses], CHANGE, st.lists(USE, min_size=3, max_size=6))
WORLD = st.fixed_dictionaries(
    OPTIONS | {"separator": st.sampled_from("__."), "enum": st.booleans(), "listed": st.booleans()}
)
START = [
    ("transition", "go", "*", "B/x", None, None, None),
    ("transition", "turn", "*", "A", "asked", None, None),
    ("transition", "stop", "A", "C", None, None, None),
]


@settings(max_examples=max(1, settings.default.max_examples // 5))  # type: ignore[attr-defined]
@given(WORLD, st.lists(STEP, min_size=4, max_size=20))
def test_a_fast_machine_does_as_the_librarys(options: dict[str, Any], steps: list[Any]) -> None:
    compare(options, [*START, *chain.from_iterable(steps)])


# fmt: off
CHANGES: list[tuple[Any, ...]] = [
    ("transition", "go", "A/1/a", "D", None, None, None), ("transition", "go", "A", None, "no", "note", "fail"),
    ("transition", "turn", "A/1/a", "P", None, None, None),
    *(("inner_transition", *arguments) for arguments in (
        ("A", "go", "1/a", "2", None, None), ("A", "stop", "1", "2", "jump", "note"),
        ("D", "turn", "D", "D", None, "note"), ("B", "turn", "x", "A", None, "note"))),
    ("shared_list", "go", "B/x", "C"), ("own_list", 0, "note"), ("ordered",),
    ("remove_transition", "go", "A", "*"), ("remove_transition", "turn", "*", "*"),
    ("add_state", "A/E", False, "note"), ("add_state", "E", True, "note"), ("inner_state", "A", "new", "note"),
    ("drop_state", "B/x"), ("drop_state", "A/1/a"), ("drop_state", "B"),
    ("initial", "A", "2"), ("initial", "A/1", "b"), ("initial", "A", None), ("initial", "B", "y"),
    ("initial", "C", ["nowhere"]), ("more_initial", "P", "u"),
    *(("callback", name, c) for c in ("note", "fail", "jump", "extend", "again") for name in LISTS),
    *(("callbacks", name, ["note", "grow"]) for name in LISTS),
    ("state_callback", "B/x", "on_enter", "note"), ("state_callback", "B/x", "on_enter", "again"),
    ("state_callback", "A/1", "on_exit", "grow"), ("state_callback", "A/1/a", "on_enter", "again"),
    ("state_callback", "A/1/a", "on_enter", "back"), ("state_callback", "A/1", "on_enter", "back"),
    ("state_callback", "A/1/b", "on_exit", "back"), ("state_callback", "A/1", "on_enter", "jump"),
    ("by_name", "on_enter", "B/x", "toggle"), ("final", "B/x", "note"), ("final", "B/x", "jump"),
    *(("transition_callback", trigger, kind, callback)
      for trigger, callback in (("go", "grow"), ("turn", "extend"), ("turn", "jump"))
      for kind in ("prepare", "before", "after")),
    ("conditions", "go", ["no"]), ("conditions", "turn", ["yes"]), ("conditions", "go", ["grow", "fail"]),
    ("conditions", "turn", ["jump", "no"]), ("shuffle", "turn"), ("drop_source", "go", "A"),
    ("drop_event", "A", "stop"), ("move_source", "go", "A/1/a", "B"),
    ("retarget", "go", "A/2"), ("retarget", "turn", "nowhere"),
    ("option", "send_event", True), ("option", "model_attribute", "mode"), ("option", "_queued", True),
    ("option", "ignore_invalid_triggers", True), ("put_state", 0, "nowhere"), ("put_state", 0, "A/nowhere"),
    ("set_state", 0, ("P/u/m", "P/v")), ("remove_model", 1), ("within", "A", 0, "go"), ("swap_states",),
    *(("replace_step", path, name) for path in ("A", "A/1", "B/x") for name in ("enter", "exit", "scoped_enter")),
    *(("replace_method", name) for name in ("callbacks", "callback", "set_state", "get_state", "build_state_tree")),
    ("nest", "N"), ("renew",), ("separate", "/"), ("print_steps", True),
]
WORLDS = (
    {"separator": "_", "enum": False, "listed": False},
    {"separator": ".", "enum": False, "listed": True, "send_event": True},
    {"separator": "_", "enum": True, "listed": False, "send_event": True},
)
# fmt: on


CASES = [(change, WORLDS[number % 3]) for number, change in enumerate(CHANGES)]
ROUND = "go to_A to_A stop stop to_A turn turn go go to_A/1/b go to_D turn to_A to_A".split()


@pytest.mark.parametrize(("change", "options"), CASES, ids=lambda each: "-".join(map(str, each)))
def test_plans_follow_every_change(change: tuple[Any, ...], options: dict[str, Any]) -> None:
    first, other = ([("fire_by_name", n, trigger) for trigger in ROUND] for n in (0, 3))
    warm = [("transition", "go", "*", "B/x", None, None, None), *START[1:], *first, *first, *other]
    compare(options, [*warm, change, *first, *other, ("own_list", 1, "note"), *first])


def test_a_list_of_initial_states_may_change_without_a_report() -> None:
    there_and_back = [("fire_by_name", 0, "to_C"), ("fire_by_name", 0, "to_A")] * 2
    first = ("initial", "A", ["2"])
    compare(WORLDS[0], [first, *there_and_back, ("more_initial", "A", "1"), *there_and_back])


@pytest.mark.parametrize("path", ["A", "B/x", "C"])
@pytest.mark.parametrize("options", WORLDS)
def test_the_state_in_which_a_model_is_may_be_dropped(options: dict[str, Any], path: str) -> None:
    to = ("fire_by_name", 0, f"to_{path}")
    there = [to, ("fire", 0, "turn"), to, ("callback", "on_exception", "note")]
    gone = [("drop_state", path), *[("fire", 0, "turn"), ("fire", 0, "go")] * 2]
    compare(options, [*START, *there, *gone])


def test_what_was_first_fired_in_a_scope_follows_changes_outside_of_it() -> None:
    fired = [("fire", which, "stop") for which in (0, 1, 1)]
    options = {"separator": "_", "enum": False, "listed": False}
    compare(
        options, [START[2], ("within", "D", 0, "stop"), fired[0], ("initial", "C", "2"), *fired]
    )
