"""A stock hierarchical machine and a fast one side by side: the same calls, and whatever happens has to be the same.

The calls change the machines while they run: nested states, transitions of machines and of states, callbacks in
lists, models, the separator of names. Callbacks write down what they were called with and in which scope; some
raise, some change the machine, set the state or trigger something themselves.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nested_world import ATTRIBUTES, CALLBACKS, CONDITIONS, LISTS, PATHS, TRIGGERS, compare
from transitions import Machine

pytestmark = pytest.mark.skipif(
    not hasattr(Machine, "on_final"), reason="transitions 0.9.0 is not made faster"
)

# fmt: off
which, path, trigger = st.integers(0, 3), st.sampled_from(PATHS), st.sampled_from(TRIGGERS)
inner = st.sampled_from(("1", "1/a", "2", "x", "y", "D", "A", "A/2", "C", "nowhere"))
scope = st.sampled_from(("A", "B", "C", "D"))
new_path = st.sampled_from((*PATHS, "E", "A/E", "C/c", "E/e"))
dest = st.sampled_from((*PATHS, "E", "=", None))
callback, condition = st.sampled_from(CALLBACKS), st.sampled_from(CONDITIONS)
callbacks = st.one_of(st.none(), callback, st.lists(callback, max_size=2))
conditions = st.one_of(st.none(), condition, st.lists(condition, max_size=2))


def changes() -> st.SearchStrategy[tuple[Any, ...]]:
    just = st.just
    source = st.sampled_from((*PATHS, "*"))
    transition = st.tuples(just("transition"), trigger, source, dest, conditions, callbacks, callbacks)
    return st.one_of(
        transition,
        st.tuples(just("inner_transition"), scope, trigger, inner, inner, conditions, callbacks),
        st.tuples(just("shared_list"), trigger, path, path),
        st.tuples(just("own_list"), st.integers(0, 1), callback),
        st.tuples(just("remove_transition"), trigger, st.sampled_from((*PATHS, "*")), st.sampled_from((*PATHS, "*"))),
        st.tuples(just("ordered")),
        st.tuples(just("add_state"), new_path, st.booleans(), callbacks),
        st.tuples(just("inner_state"), scope, st.sampled_from(("1", "new")), callbacks),
        st.tuples(just("drop_state"), path),
        st.tuples(just("initial"), path, st.sampled_from(("1", "2", "a", "b", "x", "u", None))),
        st.tuples(just("initial"), path, st.lists(st.sampled_from(("1", "2", "x", "y")), max_size=2)),
        st.tuples(just("more_initial"), path, st.sampled_from(("1", "2", "x", "y"))),
        st.tuples(just("callback"), st.sampled_from(LISTS), callback),
        st.tuples(just("callbacks"), st.sampled_from(LISTS), callbacks),
        st.tuples(just("state_callback"), path, st.sampled_from(("on_enter", "on_exit", "on_final")), callback),
        st.tuples(just("by_name"), st.sampled_from(("on_enter", "on_exit")), new_path, callback),
        st.tuples(just("transition_callback"), trigger, st.sampled_from(("prepare", "before", "after")), callback),
        st.tuples(just("conditions"), trigger, st.lists(condition, max_size=2)),
        st.tuples(just("shuffle"), trigger),
        st.tuples(just("drop_source"), trigger, path),
        st.tuples(just("drop_event"), scope, trigger),
        st.tuples(just("move_source"), trigger, path, path),
        st.tuples(just("retarget"), trigger, new_path),
        st.tuples(just("final"), path, callback),
        st.tuples(just("option"), just("send_event"), st.booleans()),
        st.tuples(just("option"), just("ignore_invalid_triggers"), st.sampled_from((True, False, None))),
        st.tuples(just("option"), just("model_attribute"), st.sampled_from(ATTRIBUTES)),
        st.tuples(just("option"), just("auto_transitions"), st.booleans()),
        st.tuples(just("option"), just("_queued"), st.booleans()),
        st.tuples(just("ignore"), path, st.sampled_from((True, False, None))),
        st.tuples(just("add_model"), which, st.one_of(st.none(), new_path)),
        st.tuples(just("remove_model"), which),
        st.tuples(just("set_state"), which, st.one_of(new_path, just(("P/u/m", "P/v")))),
        st.tuples(just("put_state"), which, new_path),
        st.tuples(just("swap_states")),
        st.tuples(just("replace_step"), path, st.sampled_from(("enter", "exit", "scoped_enter", "scoped_exit"))),
        st.tuples(just("replace_method"), st.sampled_from(("callbacks", "set_state", "get_state", "build_state_tree"))),
        st.tuples(just("separate"), st.sampled_from((".", "/", "->"))),
        st.tuples(just("nest"), st.sampled_from(("N", "M"))),
        st.tuples(just("renew")),
        st.tuples(just("print_steps"), st.booleans()),
    )


def uses() -> st.SearchStrategy[tuple[Any, ...]]:
    just = st.just
    fire = st.tuples(just("fire"), which, trigger)
    named = st.sampled_from((*TRIGGERS, "to_A", "to_B/x", "to_P", "to_A/1/b", "no such"))
    others = st.one_of(
        st.tuples(just("to"), which, path),
        st.tuples(just("may"), which, trigger),
        st.tuples(just("ask"), which, new_path),
        st.tuples(just("dispatch"), trigger),
        st.tuples(just("within"), scope, which, trigger),
    )
    return st.integers(0, 9).flatmap(
        lambda n: fire if n < 6 else st.tuples(just("fire_by_name"), which, named) if n < 8 else others
    )


#: a change, and then uses of the machine
STEPS = st.lists(
    st.builds(lambda change, following: [change, *following], changes(), st.lists(uses(), min_size=3, max_size=6)),
    min_size=4, max_size=20,
)
OPTIONS = st.fixed_dictionaries({
    "send_event": st.booleans(),
    "queued": st.booleans(),
    "auto_transitions": st.booleans(),
    "ignore_invalid_triggers": st.sampled_from((None, True)),
    "separator": st.sampled_from(("_", "_", ".")),
    "enum": st.booleans(),
    "listed": st.booleans(),
})
START = [
    ("transition", "go", "*", "B/x", None, None, None),
    ("transition", "turn", "*", "A", "asked", None, None),
    ("transition", "stop", "A", "C", None, None, None),
]
# fmt: on


@given(OPTIONS, STEPS)
def test_a_fast_machine_does_what_the_librarys_does(
    options: dict[str, Any], steps: list[Any]
) -> None:
    compare(options, [*START, *chain.from_iterable(steps)])


# fmt: off
CHANGES: list[tuple[Any, ...]] = [
    ("transition", "go", "A/1/a", "D", None, None, None),
    ("transition", "go", "A", None, "no", "note", "fail"),
    ("transition", "turn", "A/1/a", "P", None, None, None),
    ("inner_transition", "A", "go", "1/a", "2", None, None),
    ("inner_transition", "A", "stop", "1", "2", "jump", "note"),
    ("inner_transition", "D", "turn", "D", "D", None, "note"),
    ("inner_transition", "B", "turn", "x", "A", None, "note"),
    ("shared_list", "go", "B/x", "C"),
    ("own_list", 0, "note"),
    ("remove_transition", "go", "A", "*"),
    ("remove_transition", "turn", "*", "*"),
    ("ordered",),
    ("add_state", "A/E", False, "note"),
    ("add_state", "E", True, "note"),
    ("inner_state", "A", "new", "note"),
    ("drop_state", "B/x"),
    ("drop_state", "A/1/a"),
    ("drop_state", "B"),
    ("initial", "A", "2"),
    ("initial", "A/1", "b"),
    ("initial", "A", None),
    ("initial", "B", "y"),
    ("initial", "C", ["nowhere"]),
    ("more_initial", "P", "u"),
    *(("callback", name, "note") for name in LISTS),
    *(("callbacks", name, ["note", "grow"]) for name in LISTS),
    *(("callback", name, "fail") for name in LISTS),
    *(("callback", name, "jump") for name in LISTS),
    *(("callback", name, "extend") for name in LISTS),
    *(("callback", name, "again") for name in LISTS),
    ("state_callback", "B/x", "on_enter", "note"),
    ("state_callback", "B/x", "on_enter", "again"),
    ("state_callback", "A/1", "on_exit", "grow"),
    ("state_callback", "A/1/a", "on_enter", "again"),
    ("state_callback", "A/1/a", "on_enter", "back"),
    ("state_callback", "A/1", "on_enter", "back"),
    ("state_callback", "A/1/b", "on_exit", "back"),
    ("state_callback", "A/1", "on_enter", "jump"),
    ("by_name", "on_enter", "B/x", "toggle"),
    *(("transition_callback", "go", kind, "grow") for kind in ("prepare", "before", "after")),
    *(("transition_callback", "turn", kind, "extend") for kind in ("prepare", "before", "after")),
    *(("transition_callback", "turn", kind, "jump") for kind in ("prepare", "before", "after")),
    ("conditions", "go", ["no"]),
    ("conditions", "turn", ["yes"]),
    ("conditions", "go", ["grow", "fail"]),
    ("conditions", "turn", ["jump", "no"]),
    ("shuffle", "turn"),
    ("drop_source", "go", "A"),
    ("drop_event", "A", "stop"),
    ("move_source", "go", "A/1/a", "B"),
    ("retarget", "go", "A/2"),
    ("retarget", "turn", "nowhere"),
    ("final", "B/x", "note"),
    ("final", "B/x", "jump"),
    ("option", "send_event", True),
    ("option", "model_attribute", "mode"),
    ("option", "_queued", True),
    ("option", "ignore_invalid_triggers", True),
    ("put_state", 0, "nowhere"),
    ("put_state", 0, "A/nowhere"),
    ("set_state", 0, ("P/u/m", "P/v")),
    ("remove_model", 1),
    ("within", "A", 0, "go"),
    ("swap_states",),
    *(("replace_step", path, name) for path in ("A", "A/1", "B/x") for name in ("enter", "exit", "scoped_enter")),
    *(("replace_method", name) for name in ("callbacks", "callback", "set_state", "get_state", "build_state_tree")),
    ("nest", "N"),
    ("renew",),
    ("separate", "/"),
    ("print_steps", True),
]
WORLDS = (
    {"separator": "_", "enum": False, "listed": False},
    {"separator": ".", "enum": False, "listed": True, "send_event": True},
    {"separator": "_", "enum": True, "listed": False, "send_event": True},
)
# fmt: on


CASES = [(change, WORLDS[0]) for change in CHANGES]
CASES += [(change, WORLDS[1 + number % 2]) for number, change in enumerate(CHANGES)]
ROUND = "go to_A to_A stop stop to_A turn turn go go to_A/1/b go to_D turn to_A to_A".split()


@pytest.mark.parametrize(("change", "options"), CASES, ids=lambda each: "-".join(map(str, each)))
def test_what_is_known_follows_every_change(
    change: tuple[Any, ...], options: dict[str, Any]
) -> None:
    first, other = ([("fire_by_name", n, trigger) for trigger in ROUND] for n in (0, 3))
    warm = [("transition", "go", "*", "B/x", None, None, None), *START[1:], *first, *first, *other]
    compare(options, [*warm, change, *first, *other, ("own_list", 1, "note"), *first])


def test_a_list_of_initial_states_may_change_without_a_report() -> None:
    there_and_back = [("fire_by_name", 0, "to_C"), ("fire_by_name", 0, "to_A")] * 2
    first = ("initial", "A", ["2"])
    compare(WORLDS[0], [first, *there_and_back, ("more_initial", "A", "1"), *there_and_back])
