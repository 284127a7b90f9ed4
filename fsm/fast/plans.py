"""Plans: what a trigger of a fast machine does in a state, as one generated function of Python.

A plan calls what the library would call now, in the library's order, and nothing else. Constants of a machine
(states, transitions, callbacks that are no names) are the arguments of a factory around the plan, so machines with
equal transitions share the code: it is written for the first of them, and found again for the others. Where
something has changed after a callback, ``resume`` does the rest of the trigger step by step, as it is then.
See D297, D349 and D361.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from functools import lru_cache
from inspect import getattr_static
from itertools import count
from keyword import iskeyword
from types import FunctionType, NoneType
from typing import Any, Final, NamedTuple
from zlib import crc32

from transitions import State
from transitions.core import Event

from quadriga.fsm.fast.steps import (
    CALLING,
    CAUGHT,
    CONDITION,
    HAS_FINAL,
    STATE,
    TRANSITION,
    Rest,
    ask_on,
    constantly,
    event_data,
    imported,
    is_callable,
    keeps,
    reports,
    resume,
    settle,
)
from quadriga.fsm.fast.tracking import (
    LISTS,
    Callbacks,
    Marker,
    States,
    Transitions,
    follow,
    is_silent,
)

#: A transition of a plan, its conditions, its two states if it has a destination, and whether these states do
#: nothing but call their lists, and would report if that changed.
Choice = tuple[Any, Any, Any, Any, bool]


def part(parts: Any, place: Any) -> Any:
    """Return the part in this place; what is no place is itself one."""
    return parts[place] if type(place) is int else place


class Kind(Enum):
    """What a plan does."""

    #: fires for a model with ``args`` and ``kwargs``
    GO = "plans"
    #: fires with an ``EventData``
    GIVEN = "given"
    #: answers ``may_...``
    ASK = "asked"


#: most callbacks and conditions of a plan; the library's steps are followed where there are more
MOST: Final = 50
#: what plans call; ``nested_plans`` adds to it
NAMES: Final[dict[str, Any]] = {
    each.__name__: each
    for each in (Rest, ask_on, constantly, event_data, imported, is_callable, part, resume, settle)
} | {"CAUGHT": CAUGHT, "put": object.__setattr__}


class _Source:
    """Shows the lines of a plan in tracebacks: stands for the loader of a module."""

    def __init__(self, text: str) -> None:
        self.text = text

    def get_source(self, name: str) -> str:
        return self.text


@lru_cache(maxsize=1024)
def _factory(source: str, name: str) -> Any:
    """Compile the source once for all machines that have this plan."""
    scope = {**NAMES, "__name__": name, "__loader__": _Source(source)}
    exec(compile(source, name, "exec"), scope)
    return scope["factory"]


class _Shape(NamedTuple):
    """What a plan is made of."""

    #: what its source depends on
    key: tuple[Any, ...]
    #: what it may name: parts of a machine, always in the same order
    named: list[Any]
    #: those that report their changes
    followed: list[Any]


class _Parts(dict[int, Any]):
    """What a plan of a copied machine may name (``templates``), found when the first of it is needed."""

    def __init__(self, *about: Any) -> None:
        self.about = about

    def __missing__(self, at: int) -> Any:
        self.fill()
        return self[at]

    def fill(self) -> None:
        """Find them; a machine does so before it changes."""
        if not self:
            shape = _shape_of(*self.about)
            assert shape is not None
            self.update(enumerate(shape.named))


#: what a plan depends on -> its factory, its source and those of its constants that are no parts of a machine;
#: ``None`` where it has been fired once, ``False`` where there can be no plan
_known: Final[dict[tuple[Any, ...], Any]] = {}
#: stands for a plan that is not made yet
LATER: Final[Any] = object()
_LISTS: Final = tuple(f"_{name}" for name in LISTS if name != "on_exception")


def make_plan(
    event: Any, machine: Any, marker: Marker, value: Any, kind: Kind, *, again: bool = True
) -> Any:
    """Return the plan of an event for a state name, with its source as ``__doc__``; ``None`` if the library's steps
    have to be followed, ``LATER`` if it is the first of its like and not fired ``again``."""
    shape, key, origin = None, None, marker.origin
    if origin is not None and type(value) is str:
        models = machine.__dict__["models"]
        first = models[0] if models else None
        key = (origin, kind._value_, event.name, value, type(first), first is machine)
    else:
        shape = _shape_of(event, machine, marker, value, kind)
        key = shape and shape.key
    known = _known.get(key, LATER) if key else LATER
    if known is LATER and not again:
        if key:
            _remember(key, None)
        return LATER
    if shape is not None:
        follow(marker, *shape.followed)
    if known is False:
        return None
    if not known or known is LATER:
        return _write(event, machine, marker, value, kind, key)
    factory, text, others = known
    parts: Any = shape and shape.named
    if parts is None:
        parts = _Parts(event, machine, marker, value, kind)
        marker.lazy.append(parts)
    asked = Event(event.name, machine) if kind is Kind.ASK else event
    plan = factory(machine, machine.__dict__, asked, marker, marker.now, parts, *others)
    return _documented(plan, text, value)


def _write(event: Any, machine: Any, marker: Marker, value: Any, kind: Kind, key: Any) -> Any:
    shape = key and _shape_of(event, machine, marker, value, kind)
    about = choices_of(event, machine, marker, value, asks=kind is Kind.ASK)
    writer = about and Writer(
        event, machine, marker, *about[:2], kind, shape.named if shape else ()
    )
    if about is None or not writer or not writer.write(about[2]):
        if key:
            _remember(key, False)
        return None
    title = f"{event.name!r} in {about[0].name!r}"
    if shape:
        others = [*writer.constants.values()][6:]
        _remember(key, (_factory_of(writer.text, title), writer.text, others))
    return made_of(writer.text, title, writer.constants, value)


def _remember(key: tuple[Any, ...], known: Any) -> None:
    if len(_known) >= 1024:
        _known.clear()
    _known[key] = known


def _shape_of(event: Any, machine: Any, marker: Marker, value: Any, kind: Kind) -> _Shape | None:
    """Return what a plan would be made of; ``None`` if there is a part that no other machine has."""
    own, transitions = machine.__dict__, event.transitions
    states, models = own.get("states") or machine.states, own["models"]
    name = value if type(value) is str else value.name if isinstance(value, Enum) else None
    source = states.get(name) if states.__class__ is States else None
    found = None if source is None else transitions.get(source.name)
    if found.__class__ is not Callbacks or transitions.__class__ is not Transitions:
        return None
    key = [kind._value_, event.name, type(machine), own["model_attribute"], bool(own["send_event"])]
    key += type(models[0]) if models else None, any(each is machine for each in models), len(found)
    followed = [event, states, transitions, source, found]
    lists, called, reached = [own[each] for each in _LISTS], [], {name: source}
    for each in found:
        conditions, dest = each.conditions, each.dest
        if conditions.__class__ is not Callbacks or not TRANSITION.isdisjoint(each.__dict__):
            return None
        if type(each.source) is not str or type(dest) not in (str, NoneType):
            return None
        followed += each, conditions, *conditions
        key += type(each), dest, len(conditions)
        for condition in conditions:
            if not CONDITION.isdisjoint(condition.__dict__) or type(condition.target) is not bool:
                return None
            key += type(condition), condition.target
            called.append(condition.func)
        lists += each.prepare, each.before, each.after
        for name in (each.source, dest) if dest else ():
            reached[name] = states.get(name)
    for name, state in reached.items():
        if state is None or not CALLING.isdisjoint(state.__dict__):
            return None
        about = state.value
        key += name, type(state), about, type(about), HAS_FINAL and bool(state.final)
        followed.append(state)
        lists += state.on_enter, state.on_exit
    for each in lists:
        if each.__class__ is not Callbacks:
            return None
        key.append(len(each))
        called += each
    key += [each if type(each) is str else None for each in called]
    followed += lists
    functions = [each for each in called if type(each) is not str]
    if any(isinstance(each, str) for each in functions):
        return None
    first: dict[int, int] = {}  # the same part may be in two places
    key += map(first.setdefault, map(id, (*followed, *functions)), count())
    return _Shape(tuple(key), [*followed, *functions], followed)


def choices_of(
    event: Any, machine: Any, marker: Marker, value: Any, *, asks: bool
) -> tuple[Any, Any, list[Choice]] | None:
    """Return a state, its transitions, and those that may be executed; ``None`` if one cannot be part of a plan.

    The marker follows them all.
    """
    name = value if type(value) is str else value.name if isinstance(value, Enum) else None
    source, states = machine.states.get(name), machine.states
    follow(marker, event, states, event.transitions, source)
    if source is None or states.__class__ is not States or not _has_plain_name(source):
        return None
    found = event.transitions.get(source.name, Callbacks() if asks else None)
    if event.transitions.__class__ is not Transitions or found.__class__ is not Callbacks:
        return None
    follow(marker, found)
    choices = []
    for each in found:
        choice = choice_of(machine, each)
        if asks and each.dest == "":
            return None
        follow(marker, each, each.conditions, *each.conditions, *(choice or ())[2:4])
        if choice is None:
            return None
        choices.append(choice)
        if not each.conditions and not asks:
            break
    return source, found, choices


def _factory_of(text: str, about: str) -> Any:
    # Tracebacks find the lines by the title, which is another one for another text.
    return _factory(text, f"plan of {about} ({crc32(text.encode()):08x})")


def made_of(text: str, about: str, constants: dict[str, Any], value: Any) -> Any:
    """Return the function of this source."""
    return _documented(_factory_of(text, about)(**constants), text, value)


def _documented(plan: Any, text: str, value: Any) -> Any:
    plan.__doc__ = text
    plan.value = value  # its id is a key
    return plan


def has_plain_conditions(machine: Any, transition: Any) -> bool:
    """Return whether the conditions are those of the library, and would report if that changed."""
    kind = machine._fast_class.transition_cls.condition_cls
    found = transition.conditions
    return found.__class__ is Callbacks and all(reports(each, kind, CONDITION) for each in found)


def _has_plain_name(state: Any) -> bool:
    return keeps(type(state), State, STATE)


def choice_of(machine: Any, transition: Any) -> Choice | None:
    """Return the transition as a choice; ``None`` if it cannot be part of a plan."""
    fast = machine._fast_class
    if not reports(transition, fast.transition_cls, TRANSITION):
        return None
    if not has_plain_conditions(machine, transition):
        return None
    if not transition.dest:
        return transition, transition.conditions, None, None, True
    origin = machine.states.get(transition.source)
    dest = machine.states.get(transition.dest)
    if origin is None or dest is None:
        return None
    if not (_has_plain_name(origin) and _has_plain_name(dest)):
        return None
    fixed = all(reports(each, fast.state_cls, CALLING) for each in (origin, dest))
    return transition, transition.conditions, origin, dest, fixed


_GO: Final = """\
def factory({names}):
    def plan({arguments}):
{begin}
        try:
            while True:
{body}
            {remade}{changed}{resumes}(rest, data, agrees)
        except CAUGHT as error:
            {leave}{remade}data.error = error
            if not own["_on_exception"]:
                raise
            machine.callbacks(own["_on_exception"], data)
        finally:
            {leave}if {unsettled}own["_finalize_event"]:
                settle(machine, data)
        return data.result
    return plan
"""
_ASK: Final = """\
def factory({names}):
    def plan(model, args, kwargs):
{begin}
        while True:
{body}
            return False
        return {resumes}(rest, {data}, agrees)
    return plan
"""


class Writer:
    """Writes the source of a plan and collects its constants."""

    #: the EventData of a plan that begins without one
    made = "event_data(part(parts, state), event, machine, model, args, kwargs, part(parts, transition))"
    resumes = "resume"
    #: whether there may be scopes to leave
    scoped = False

    def __init__(
        self,
        event: Any,
        machine: Any,
        marker: Marker,
        source: Any,
        found: Any,
        kind: Kind,
        named: Sequence[Any] = (),
    ) -> None:
        self.event, self.machine, self.marker, self.source = event, machine, marker, source
        self.found, self.kind = found, kind
        self.own = machine.__dict__
        self.cls = type(machine.models[0]) if machine.models else object
        self.constants: dict[str, Any] = {
            "machine": machine,
            "own": self.own,
            "event": Event(event.name, machine) if kind is Kind.ASK else event,
            "marker": marker,
            "now": marker.now,
            "parts": named,
        }
        #: where parts stand that no constant is made for
        self.places = {id(each): at for at, each in reversed([*enumerate(named)])}
        if kind is Kind.ASK:
            self.resumes = "ask_on"
        self.lines: list[str] = []
        self.depth = 3 if kind is Kind.ASK else 4

    def line(self, *texts: str) -> None:
        self.lines += ["    " * self.depth + text for text in texts]

    def constant(self, hint: str, value: Any) -> str:
        """Return the expression for a part of the machine or a constant of the plan."""
        if id(value) in self.places:
            return f"parts[{self.places[id(value)]}]"
        for name, known in self.constants.items():
            if known is value and name.startswith(hint):
                return name
        name = f"{hint}_{len(self.constants)}"
        self.constants[name] = value
        return name

    def place(self, hint: str, value: Any) -> str:
        """Return the expression for what ``part`` makes a part of the machine of."""
        return str(self.places.get(id(value), "")) or self.constant(hint, value)

    def write(self, choices: list[Choice]) -> bool:
        """Write the whole plan; return false if it would need what a plan cannot do."""
        own, asks = self.own, self.kind is Kind.ASK
        lists = [own["_prepare_event"], *(choice[0].prepare for choice in choices)]
        for each, _, origin, dest, fixed in () if asks else choices:
            lists += [own["_before_state_change"], own["_after_state_change"]]
            lists += [each.before, each.after]
            if dest is not None and fixed:
                lists += [origin.on_exit, dest.on_enter]
                lists += [own["_on_final"]] if HAS_FINAL and dest.final else []
        conditions = sum(len(choice[1]) for choice in choices)
        if not self.begin(lists, conditions, not all(choice[4] for choice in choices)):
            return False
        self._write_body(choices)
        self.finish()
        return True

    def begin(self, lists: list[Any], conditions: int, enters: bool) -> bool:
        """Decide what the plan needs, for these lists and so many conditions; return false if that is too much.

        ``enters``: it lets states enter and leave themselves.
        """
        asks = self.kind is Kind.ASK
        follow(self.marker, self.own["_finalize_event"], *lists)
        if not all(type(each) in (Callbacks, list, tuple) for each in lists):
            return False
        if sum(map(len, lists)) + conditions > MOST:
            return False
        calls = bool(conditions) or not all(map(is_silent, lists))
        #: whether nothing is called at the end
        self.quiet = asks or is_silent(self.own["_finalize_event"])
        self.calls, self.sent = calls, bool(self.own["send_event"])
        #: whether there is an EventData from the beginning
        self.data = self.kind is Kind.GIVEN or (self.sent and calls)
        self.data |= not asks and (enters or not self.quiet)
        self.model = "data.model" if self.data else "model"
        return True

    def first_lines(self) -> list[str]:
        if self.kind is Kind.GIVEN:
            return [f"data.state = {self.constant('source', self.source)}"]
        if self.data:
            source = self.constant("source", self.source)
            return [f"data = event_data({source}, event, machine, model, args, kwargs)"]
        silent, source = is_silent(self.own["_prepare_event"]), self.place("source", self.source)
        return ["data = None", f"state = {source}", *([] if silent else ["transition = None"])]

    def finish(self) -> None:
        first, given = self.first_lines(), self.kind is Kind.GIVEN
        if given and self.calls and not self.sent:
            first.append("args, kwargs = data.args, data.kwargs")
        if self.calls and not self.sent:
            first.append("bare = not args and not kwargs")
        unsettled = "marker.now is not now and " if self.data else "data is not None and "
        self.text = (_ASK if self.kind is Kind.ASK else _GO).format(
            names=", ".join(self.constants),
            arguments="data" if given else "model, args, kwargs",
            begin="\n".join(f"        {line}" for line in first),
            body="\n".join(self.lines),
            data="data" if self.data else f"data or {self.made}",
            remade="" if self.data else f"data = data or {self.made}; ",
            changed="" if self.quiet else "if rest is not None: ",
            resumes=self.resumes,
            leave="ascend(machine, 0)\n            " if self.scoped else "",
            unsettled=unsettled if self.quiet else "",
        )

    def _write_body(self, choices: list[Choice]) -> None:
        if self.kind is Kind.ASK:
            for number, choice in enumerate(choices):
                if self._ask(number, choice):
                    return
            return
        self._list("prepare_event", None, self.own["_prepare_event"])
        for number, choice in enumerate(choices):
            self._choice(number, choice)
        if all(choice[1] for choice in choices):
            self._done(False)

    def _done(self, result: bool) -> None:
        """End the plan."""
        if result and self.data:
            self.line("data.result = True")
        self.line(*([f"return {result}"] if self.quiet else ["rest = None", "break"]))

    # -- callbacks ---------------------------------------------------------------------------------

    def _call(self, func: Any, rest: str, result: str = "") -> None:
        """Write a call of a callback. ``rest``: what is left before it."""
        if not isinstance(func, str):
            self._pass(self.constant("callback", func), result)
            return
        plain = type(func) is str and func.isidentifier() and not iskeyword(func)
        name = f"{self.model}.{func}" if plain else f"getattr({self.model}, {self._name(func)})"
        found = getattr_static(self.cls, func, None)
        if plain and (found is None or type(found) is FunctionType):
            # a method, so that the interpreter need not make an object of it
            self.line("try:")
            self.depth += 1
            self._pass(name, result)
            self.depth -= 1
            self.line("except (AttributeError, TypeError):")
            self.line(f"    if is_callable({self.model}, {func!r}):")
            self.line("        raise")
            self._leave(rest, "True")
            return
        self.line(
            "try:",
            f"    func = {name}",
            "    if not callable(func):",
            "        func = constantly(func)",
            "except AttributeError:",
            f"    func = imported({self._name(func)})",
        )
        self._pass("func", result)

    def _name(self, func: Any) -> str:
        return repr(func) if type(func) is str else self.constant("name", func)

    def _pass(self, func: str, result: str) -> None:
        """Write a call with the arguments."""
        if self.sent:
            self.line(f"{result}{func}(data)")
            return
        self.line("if bare:", f"    {result}{func}()")
        self.line("else:", f"    {result}{func}(*args, **kwargs)")

    def _leave(self, rest: str, agrees: str) -> None:
        self.line(f"    rest, agrees = {rest}, {agrees}", "    break")

    def _check(self, rest: str, also: str = "", agrees: str = "True") -> None:
        """Leave the plan if something has changed."""
        self.line(f"if marker.now is not now{also}:")
        self._leave(rest, agrees)

    def _list(self, stage: str, transition: Any, *lists: Any) -> None:
        """Write the calls of lists that are gone through in one go."""
        for at, each in enumerate(lists):
            also = ""
            if type(each) is list:  # the caller's own, which may change without a report
                kept = self.constant("list", each), self.constant("copy_of", list(each))
                also = f" or {kept[0]} != {kept[1]}"
                self._check(self._rest(stage, transition, lists[at:], 0), also)
            if stage == "prepare_event" and self.data and self.source is not None:
                also += f" or data.state is not {self.constant('source', self.source)}"
            for position, func in enumerate(each):
                self._call(func, self._rest(stage, transition, lists[at:], position))
                self._check(self._rest(stage, transition, lists[at:], position + 1), also)

    def _rest(self, stage: str, transition: Any, lists: Any, position: int) -> str:
        """Return the expression for what is left of a trigger."""
        tried, about = 0, "None, None"
        if transition is not None:
            dest = self._dest and self.constant("state", self._dest)
            tried, about = self._number + 1, f"{self.constant('transition', transition)}, {dest}"
        left = "".join(f"{self.constant('list', each)}, " for each in lists)
        found = self.constant("found", self.found)
        return f"Rest({stage!r}, machine, event, {about}, ({left}), {position}, {found}, {tried})"

    # -- transitions ---------------------------------------------------------------------------------

    def _choice(self, number: int, choice: Choice) -> None:
        each, conditions, origin, dest, fixed = choice
        own, self._number, self._dest, depth = self.own, number, dest, self.depth
        self._tell("transition", each)
        self._list("prepare", each, each.prepare)
        self._conditions(each, conditions)
        self._list("before", each, own["_before_state_change"], each.before)
        if dest is not None:
            self._change(each, origin, dest, fixed)
        self._list("after", each, each.after, own["_after_state_change"])
        self._done(True)
        self.depth = depth

    def _tell(self, what: str, part: Any, unless: str = "") -> None:
        """Write what the trigger's data get to know: where there are none, what is needed to make them."""
        found = self.constant(what, part) if self.data else self.place(what, part)
        self.line(f"{'data.' if self.data else ''}{what} = {found}{unless}")

    def _conditions(self, each: Any, conditions: Any) -> None:
        """Write the questions; what follows is inside of the answers."""
        for position, condition in enumerate(conditions):
            about = "conditions", each, (conditions,)
            self._call(condition.func, self._rest(*about, position), "answer = ")
            target: Any = condition.target
            target = target if type(target) is bool else self.constant("target", target)
            self.line(f"agrees = answer is {target} or answer == {target}")
            self._check(self._rest(*about, position + 1), agrees="agrees")
            self.line("if agrees:")
            self.depth += 1

    def _ask(self, number: int, choice: Choice) -> bool:
        """Write what ``Machine._can_trigger`` does for a transition; return whether it always agrees."""
        each, conditions, *_ = choice
        self._number, self._dest = number, None
        if is_silent(self.own["_prepare_event"]) and is_silent(each.prepare) and not conditions:
            self.line("return True")
            return True
        self._tell("transition", each)
        self.line("try:")
        self.depth += 1
        self._list("prepare", each, self.own["_prepare_event"], each.prepare)
        self._conditions(each, conditions)
        self.line("return True")
        self.depth = 3
        self.line(
            "except CAUGHT as error:",
            f"    {'' if self.data else f'data = data or {self.made}; '}data.error = error",
            '    if not own["_on_exception"]:',
            "        raise",
            '    machine.callbacks(own["_on_exception"], data)',
        )
        self.depth += 1
        self._check(self._rest("asked", each, (), 0))
        self.depth -= 1
        return False

    def _change(self, each: Any, origin: Any, dest: Any, fixed: bool) -> None:
        """Write the change of the state."""
        if fixed:
            self._list("on_exit", each, origin.on_exit)
        else:
            self.line(f"{self.constant('state', origin)}.exit(data)")
            self._check(self._rest("on_exit", each, (), 0))
        entered = self.constant("state", dest)
        new = self.constant("new", dest.value) if fixed else f"{entered}._name"
        self._set(new)
        self.line(f"reached = {self._attribute()}")
        self._tell("state", dest, f" if reached is {new} else machine.get_state(reached)")
        if fixed:
            # what sets the state may change the machine
            self._check(self._rest("on_enter", each, (dest.on_enter,), 0))
            self._list("on_enter", each, dest.on_enter)
            if HAS_FINAL and dest.final:
                self._list("on_final", each, self.own["_on_final"])
            return
        self.line(f"{entered}.enter(data)")
        self._check(self._rest("on_enter", each, (), 0))
        if HAS_FINAL:
            self.line(f"if {entered}.final:")
            self.line('    machine.callbacks(own["_on_final"], data)')
            self._check(self._rest("on_final", each, (), 0))

    def _attribute(self) -> str:
        """Return the expression for the state of the model."""
        attribute = self.own["model_attribute"]
        plain = attribute.isidentifier() and not iskeyword(attribute)
        return f"{self.model}.{attribute}" if plain else f"getattr({self.model}, {attribute!r})"

    def _set(self, new: str) -> None:
        """Write how the model gets the state."""
        attribute, reached = self.own["model_attribute"], self._attribute()
        if reached.startswith("getattr"):
            self.line(f"setattr({self.model}, {attribute!r}, {new})")
        elif any(model is self.machine for model in self.machine.models):
            # its own __setattr__ looks only at other names
            self.line(f"if {self.model} is machine:", f"    put(machine, {attribute!r}, {new})")
            self.line("else:", f"    {reached} = {new}")
        else:
            self.line(f"{reached} = {new}")
