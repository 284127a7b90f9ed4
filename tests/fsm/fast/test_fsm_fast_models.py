"""Models of a fast machine share their methods, and notice nothing of it."""

import copy
import gc
import pickle
import sys
import tracemalloc
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from transitions import Machine

from quadriga.fsm import FastMachine

#: bytes; since Python 3.13 an object whose class changes gets its attributes as a dictionary of full size
DICTIONARY = 100 if sys.version_info < (3, 13) else 300
copied = pytest.mark.skipif(
    not hasattr(Machine, "on_final"), reason="transitions 0.9.0 is not made faster"
)
TRANSITIONS = [["go", "A", "B"], ["go", "B", "A"]]


class Plain:
    def __init__(self, name: str = "") -> None:
        self.name = name
        self.entered = 0

    def on_enter_B(self) -> None:
        self.entered += 1


class Slotted:
    __slots__ = ("state",)


@dataclass
class Data:
    name: str


@dataclass(slots=True)
class SlottedData:
    name: str
    state: str = ""


class Abstract(ABC):
    @abstractmethod
    def name(self) -> str: ...


class Concrete(Abstract):
    def name(self) -> str:
        return "concrete"


class Sensitive:
    subclasses = 0

    def __init_subclass__(cls) -> None:
        Sensitive.subclasses += 1


class Watching:
    def __init__(self) -> None:
        object.__setattr__(self, "names", [])

    def __setattr__(self, name: str, value: object) -> None:
        self.names.append(name)  # type: ignore[attr-defined]
        object.__setattr__(self, name, value)


class Named:
    def go(self) -> str:
        return "its own"


def machine(**options: Any) -> FastMachine:
    return FastMachine(None, states=["A", "B"], initial="A", transitions=TRANSITIONS, **options)


@pytest.mark.parametrize(
    "make",
    [Plain, Slotted, lambda: Data("x"), lambda: SlottedData("x"), Concrete, Sensitive, Watching],
)
def test_models_of_every_kind_of_class(make: Any) -> None:
    owner = machine()
    models = [make() for _ in range(3)]
    before = [type(model) for model in models]
    for model in models:
        owner.add_model(model)
    # Equal data are one model.
    if make.__class__ is not type(lambda: 0) or owner.models != [models[0]]:
        assert owner.models == models
    assert models[0].go() is True
    assert models[0].state == "B"
    assert models[0].is_B()
    assert models[0].may_go()
    assert models[0].trigger("go") is True
    assert models[0].to_B() is True
    assert [isinstance(model, cls) for model, cls in zip(models, before, strict=True)] == [True] * 3
    assert [model.__class__ for model in models] == before
    assert not hasattr(make(), "go")
    assert not hasattr(before[0], "go")
    assert Sensitive.subclasses == 0


def test_a_registered_model_equals_one_that_is_not_and_keeps_its_methods() -> None:
    one, other = SlottedData("x", "A"), SlottedData("x", "A")
    machine().add_model([one])
    assert one == other
    owner, models = machine(), [Named(), Named()]
    owner.add_model(models)
    assert [model.go() for model in models] == ["its own"] * 2
    assert owner.events["go"].trigger(models[0]) is True
    assert models[0].state == "B"  # type: ignore[attr-defined]


def test_attributes_of_a_model_hide_methods_and_go_again() -> None:
    owner, models = machine(), [Plain("a"), Plain("b"), Plain("c")]
    models[2].go = lambda: "mine"  # type: ignore[attr-defined]
    owner.add_model(models)
    first, second, third = models
    first.go = lambda: "mine"  # type: ignore[attr-defined]
    assert first.go() == third.go() == "mine"  # type: ignore[attr-defined]
    del first.go  # type: ignore[attr-defined]
    assert not hasattr(first, "go")
    assert second.go() is True  # type: ignore[attr-defined]
    del second.may_go  # type: ignore[attr-defined]
    assert not hasattr(second, "may_go")
    assert hasattr(first, "may_go")
    with pytest.raises(AttributeError):
        del second.nothing  # type: ignore[attr-defined]


def test_methods_come_and_go_with_triggers_and_states() -> None:
    owner, models = machine(), [Plain("a"), Plain("b")]
    owner.add_model(models)
    owner.add_state("C")
    owner.add_transition("turn", "*", "C")
    assert models[1].turn() and models[1].is_C()  # type: ignore[attr-defined]
    owner.remove_model(models[0])
    owner.add_transition("later", "*", "A")
    assert hasattr(models[1], "later")
    assert not hasattr(models[0], "later")
    owner.remove_transition("turn")
    assert not hasattr(models[1], "turn")
    assert hasattr(models[1], "may_turn")  # as in the library
    assert hasattr(models[0], "turn")
    newer = [Plain("c"), Plain("d")]
    owner.add_model(newer)
    with pytest.raises(ValueError, match="not a registered state"):
        owner.add_model([Plain("e"), Plain("f")], initial="nowhere")
    assert not hasattr(newer[0], "may_turn")
    assert hasattr(newer[0], "later")


@pytest.mark.parametrize("trigger", ["go", "to_A"])
def test_a_model_that_comes_after_a_trigger_was_removed_does_not_have_it(trigger: str) -> None:
    for remove in (FastMachine.remove_transition, lambda owner, name: owner.events.pop(name)):
        owner = machine()
        owner.add_model([Plain(), Plain()])
        remove(owner, trigger)
        late = Plain()
        owner.add_model(late)
        assert not hasattr(late, trigger)


@pytest.mark.parametrize("make", [Plain, lambda *_: Slotted()])
def test_an_object_of_a_models_type_is_no_model_before_it_is_added(make: Any) -> None:
    owner = machine()
    models: list[Any] = [make("a"), make("b")]
    owner.add_model(models)
    other = type(models[0])(*["c"] * hasattr(models[0], "name"))
    assert type(other) is models[0].__class__
    assert not hasattr(other, "go")
    owner.add_model(other)
    assert other.go() and other.is_B() and models[0].is_A()


def test_a_model_of_two_machines() -> None:
    first, second = machine(), machine(model_attribute="mood")
    second.add_transition("cheer", "A", "B")
    models = [Plain("a"), Plain("b")]
    first.add_model(models)
    second.add_model(models)
    assert models[0].go() and models[0].cheer()  # type: ignore[attr-defined]
    assert (models[0].state, models[0].mood) == ("B", "B")  # type: ignore[attr-defined]
    assert (models[1].state, models[1].mood) == ("A", "A")  # type: ignore[attr-defined]
    assert models[0].is_mood_B()  # type: ignore[attr-defined]


@pytest.mark.parametrize("make", [Plain, Slotted, lambda: SlottedData("x")])
@pytest.mark.parametrize(
    "again", [lambda it: pickle.loads(pickle.dumps(it)), copy.deepcopy], ids=["pickle", "deepcopy"]
)
def test_copies_have_methods_and_a_machine_of_their_own(make: Any, again: Any) -> None:
    owner, models = machine(), [make(), make()]
    owner.add_model(models)
    copied = again(owner)
    copied.models[0].go()
    assert [model.state for model in (copied.models[0], models[0])] == ["B", "A"]
    copied.add_transition("only", "B", "A")
    assert copied.models[0].only()
    assert not hasattr(models[0], "only")
    alone = again(models[1]) if models[1:] and len(owner.models) > 1 else again(models[0])
    assert alone.go() is True
    assert (alone.state, models[-1].state) == ("B", "A" if len(owner.models) > 1 else "")


def test_a_model_of_two_machines_is_copied_with_both() -> None:
    model: Any = Plain("a")
    first, second = machine(), machine()
    first.add_model(model)
    del model.go  # so that the second machine may share its methods with it
    second.add_model([Plain("b"), model])
    copied = copy.deepcopy([first, second])[1].models
    assert [each.go() for each in copied] == [True, True]
    assert [each.state for each in copied] == ["B", "B"] and model.state == "A"


def test_an_event_that_replaces_trigger_is_called_itself() -> None:
    seen = []

    class Loud(FastMachine.event_cls):  # type: ignore[misc,name-defined]
        def trigger(self, model: Any, /, *args: Any, **kwargs: Any) -> bool:
            seen.append(self.name)
            return super().trigger(model, *args, **kwargs)  # type: ignore[no-any-return]

    class LoudMachine(FastMachine):
        event_cls = Loud

    models = [Plain("a"), Plain("b")]
    LoudMachine(models, states=["A", "B"], initial="A", transitions=[["go", "A", "B"]])
    assert models[0].go()  # type: ignore[attr-defined]
    assert seen == ["go"]


def test_a_model_whose_class_is_changed_keeps_its_methods() -> None:
    class Other:
        def on_enter_B(self) -> None:
            pass

        def kind(self) -> str:
            return "other"

    owner, models = machine(), [Plain("a"), Plain("b")]
    owner.add_model(models)
    models[0].__class__ = Other  # type: ignore[assignment]
    assert type(models[0]).__name__ == "Other" and models[0].__class__ is Other
    assert models[0].kind() == "other"  # type: ignore[attr-defined]
    assert models[0].go() and models[0].state == "B"  # type: ignore[attr-defined]
    owner.add_transition("late", "B", "A")
    assert models[0].late()  # type: ignore[attr-defined]
    owner.remove_model(models[0])
    assert [model.name for model in owner.models] == ["b"]


@pytest.fixture
def quiet() -> Iterator[None]:
    gc.collect()
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize(("make", "most"), [(Plain, DICTIONARY), (Slotted, 8)])
def test_a_model_costs_few_bytes(make: Any, most: int) -> None:
    """Beside the object itself, at most a dictionary for its attributes and a pointer."""
    owner, number = machine(), 5_000
    models = [make() for _ in range(number)]
    owner.add_model([make(), make()])
    before = tracemalloc.get_traced_memory()[0]
    owner.add_model(models)
    spent = tracemalloc.get_traced_memory()[0] - before
    assert spent / number < most + 1


# -- a machine for each object ---------------------------------------------------------------------


class Own(Plain):
    """Makes a machine of its own, always from equal arguments."""

    def __init__(self, cls: Any, arguments: dict[str, Any]) -> None:
        super().__init__()
        self.machine = cls(model=self, initial="A", transitions=[*TRANSITIONS], **arguments)


class Selfish(FastMachine):
    """A machine that is its own model."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        super().__init__(states=["A", "B"], initial="A", transitions=TRANSITIONS, **arguments)


MINE: list[str] = []


@pytest.mark.parametrize(
    "arguments",
    [
        {"states": ["A", "B"]},
        {"states": ["A", "C"], "send_event": True, "after_state_change": MINE},
        {"states": [{"name": "A", "ignore_invalid_triggers": True, "on_exit": MINE}, "C"]},
        {"states": [{"name": "B"}, "A"], "auto_transitions": False, "finalize_event": "missing"},
        {"states": ["A", "B"], "queued": True, "model_attribute": "phase"},
        {"states": ["A", "trigger"], "name": "it"},
    ],
    ids=str,
)
def test_a_copy_of_an_equal_machine_is_what_the_library_builds(arguments: dict[str, Any]) -> None:
    def shown(part: Any) -> Any:
        if isinstance(part, list):
            return [shown(each) for each in part]
        own = getattr(part, "__dict__", None)
        skipped = ("subscribers",)
        return {n: shown(v) for n, v in own.items() if n not in skipped} if own else part

    def described(own: Own) -> Any:
        machine = own.machine
        rows = [(t.source, t.dest) for t in machine.get_transitions()]
        states = [shown(each) for each in machine.states.values()]
        lists = [machine.after_state_change, machine.finalize_event, machine.before_state_change]
        kept = lists[0] is MINE, any(each.on_exit is MINE for each in machine.states.values())
        return sorted(vars(own)), list(machine.events), rows, states, lists, kept

    expected = described(Own(Machine, arguments))
    for _ in range(4):
        assert described(Own(FastMachine, arguments)) == expected


@copied
def test_copied_machines_are_apart_and_keep_the_lists_of_their_callers() -> None:
    first, second, third, fourth = (
        Own(FastMachine, {"states": ["A", "B", "D"], "prepare_event": MINE}) for _ in range(4)
    )
    assert fourth.machine.prepare_event is MINE and "transitions" not in vars(
        fourth.machine.events["go"]
    )
    third.machine.events["go"].transitions["A"][0].before.append("missing")
    third.machine.states["B"].on_exit.append("missing")
    with pytest.raises(AttributeError, match="missing"):
        third.go()
    for own in (
        first,
        second,
        fourth,
        *copy.deepcopy([first, fourth]),
        pickle.loads(pickle.dumps(fourth)),
    ):
        assert [own.go() for _ in range(30)] == [True] * 30
        assert own.entered == 15 and own.state == "A" and own.is_A()
    fourth.machine.add_transition("stop", "A", "D")
    assert fourth.stop() and not hasattr(third, "stop")


@copied
def test_a_machine_that_is_its_own_model_is_copied() -> None:
    machines = [Selfish({}) for _ in range(4)]
    for at, each in enumerate(machines):
        assert each.go() and each.is_B() and each.to_A() and each.state == "A"
        assert "_later" in vars(each.events["go"]) or at < 2
        assert each.models == [each] and each.go.func.__self__.machine is machines[at]


@copied
def test_a_method_replaced_on_a_class_is_called_by_machines_built_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Own(FastMachine):
        pass

    def built() -> Any:
        return Own(states=["A"], initial="A")

    assert not any(built().before_state_change for _ in range(3))

    def add_states(machine: Any, states: Any, *args: Any, **kwargs: Any) -> None:
        FastMachine.add_states(machine, [*states, "B"], *args, **kwargs)

    monkeypatch.setattr(Own, "add_states", add_states, raising=False)
    assert list(built().states) == ["A", "B"]


class Changing:
    """Has a machine of its own, which a callback or a condition changes."""

    def __init__(self, cls: Any, change: Any, at: str) -> None:
        self.change, self.at, self.story = change, at, list[Any]()
        row: Any = {"trigger": "go", "conditions": "check", "prepare": "note", "after": "note"}
        rows = [{**row, "source": a, "dest": b} for a, b in ("AB", "BC", "CA")]
        self.machine = cls(self, states=["A", "B", "C"], initial="A", transitions=rows)

    def _seen(self, what: str) -> None:
        self.story.append((what, self.state))
        if len(self.story) > 3 and what == self.at:
            change, self.change = self.change, lambda _: None
            change(self.machine)

    def check(self) -> bool:
        self._seen("check")
        return True

    def no(self) -> bool:
        self.story.append(("no", self.state))
        return False

    def note(self) -> None:
        self._seen("note")

    def told(self, *args: Any) -> None:
        about = [(each.transition.dest, each.state.name) for each in args]
        self.story.append(("told", self.state, about))


def _rows(machine: Any) -> list[Any]:
    return machine.get_transitions("go")


@copied
@pytest.mark.parametrize("at", ["check", "note", "before"])
@pytest.mark.parametrize(
    "change",
    [
        lambda machine: machine.add_transition("go", "B", "A"),
        lambda machine: machine.remove_transition("go"),
        lambda machine: machine.remove_transition("go", "B"),
        lambda machine: _rows(machine)[1].before.append("told"),
        lambda machine: _rows(machine)[1].conditions.clear(),
        lambda machine: _rows(machine)[1].add_callback("after", "told"),
        lambda machine: setattr(_rows(machine)[1], "dest", "A"),
        lambda machine: setattr(_rows(machine)[1].conditions[0], "func", "no"),
        lambda machine: setattr(_rows(machine)[1].conditions[0], "target", False),
        lambda machine: machine.states["C"].on_enter.append("told"),
        lambda machine: machine.states.pop("C"),
        lambda machine: setattr(machine, "states", {**machine.states}),
        lambda machine: setattr(machine, "before_state_change", "told"),
        lambda machine: setattr(machine, "model_attribute", "mode"),
        lambda machine: setattr(machine, "on_exception", "told"),
        lambda machine: machine.add_states("D"),
    ],
)
def test_copied_machines_follow_their_changes(change: Any, at: str) -> None:
    stories = []
    for cls in (Machine, FastMachine):
        made: list[Any] = [Changing(cls, change, at) for _ in range(4)]
        for each in made:
            if at == "before":
                change(each.machine)
            for _ in range(7):
                try:
                    each.story.append((each.may_go(), each.go()))
                except Exception as error:
                    each.story.append(repr(error).replace("Fast", ""))
        stories.append([each.story for each in made])
    assert stories[0] == stories[1]
