"""Plans: what a trigger of a fast machine does in a state, as one generated function of Python.

A plan calls what the library would call now, in the library's order, and nothing else. Constants of a machine
(states, transitions, callbacks that are no names) are the arguments of a factory around the plan, so machines with
equal transitions share the code. Where something has changed after a callback, ``resume`` does the rest of the
trigger step by step, as it is then.
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from keyword import iskeyword
from types import MethodType
from typing import Any, Final
from zlib import crc32

from transitions import State
from transitions.core import Condition, Event, Transition

from quadriga.fsm.fast.steps import (
    CALLING,
    CAUGHT,
    CONDITION,
    HAS_FINAL,
    SETTERS,
    STATE,
    TRANSITION,
    Rest,
    ask_on,
    call,
    constantly,
    enter,
    event_data,
    imported,
    keeps,
    leave,
    resume,
    settle,
)
from quadriga.fsm.fast.tracking import (
    Callbacks,
    Marker,
    Reporting,
    States,
    Transitions,
    follow,
    is_silent,
)

#: A transition of a plan, its conditions, its two states if it has a destination, and whether these states do
#: nothing but call their lists, and would report if that changed.
Choice = tuple[Any, Any, Any, Any, bool]


class Kind(Enum):
    """What a plan does."""

    #: fires for a model with ``args`` and ``kwargs``
    GO = "fires"
    #: fires with an ``EventData``
    GIVEN = "fires with its data"
    #: answers ``may_...``
    ASK = "asks"


#: most callbacks and conditions of a plan; the library's steps are followed where there are more
_MOST: Final = 50
_NAMES: Final[dict[str, Any]] = {
    each.__name__: each
    for each in (ask_on, call, constantly, enter, event_data, imported, leave, resume, settle)
} | {"CAUGHT": CAUGHT, "MethodType": MethodType, "put": object.__setattr__}


class _Source:
    """Shows the lines of a plan in tracebacks: stands for the loader of a module."""

    def __init__(self, text: str) -> None:
        self.text = text

    def get_source(self, name: str) -> str:
        return self.text


@lru_cache(maxsize=1024)
def _factory(source: str, name: str) -> Any:
    """Compile the source once for all machines that have this plan."""
    scope = {**_NAMES, "__name__": name, "__loader__": _Source(source)}
    exec(compile(source, name, "exec"), scope)
    return scope["factory"]


def make_plan(event: Any, machine: Any, marker: Marker, value: Any, kind: Kind) -> Any:
    """Return the plan of an event for a state name, with its source as ``__doc__``; ``None`` if the library's steps
    have to be followed."""
    name = value if type(value) is str else value.name if isinstance(value, Enum) else None
    source, states = machine.states.get(name), machine.states
    follow(marker, event, states, event.transitions, source)
    if source is None or states.__class__ is not States or not _has_plain_name(source):
        return None
    found = event.transitions.get(source.name, Callbacks() if kind is Kind.ASK else None)
    if event.transitions.__class__ is not Transitions or found.__class__ is not Callbacks:
        return None
    follow(marker, found)
    choices = []
    for each in found:
        choice = choice_of(machine, each)
        follow(marker, each, each.conditions, *each.conditions, *(choice or ())[2:4])
        if choice is None:
            return None
        choices.append(choice)
        if not each.conditions and kind is not Kind.ASK:
            break
    writer = _Writer(event, machine, marker, source, found, kind)
    if not writer.write(choices):
        return None
    text = writer.text
    # Tracebacks find the lines by the title, which is another one for another text.
    title = f"plan of {event.name!r} in {source.name!r} ({crc32(text.encode()):08x})"
    plan = _factory(text, title)(**writer.constants)
    plan.__doc__ = text
    plan.value = value  # its id is a key
    return plan


def _reports(thing: Any, library: type, names: frozenset[str]) -> bool:
    """Return whether the thing does these steps as the library does, and would report if that changed."""
    cls = type(thing)
    return (
        issubclass(cls, Reporting)
        and keeps(cls, Reporting, SETTERS)
        and keeps(cls, library, names)
        and names.isdisjoint(thing.__dict__)
    )


def _has_plain_name(state: Any) -> bool:
    return keeps(type(state), State, STATE)


def choice_of(machine: Any, transition: Any) -> Choice | None:
    """Return the transition as a choice; ``None`` if it cannot be part of a plan."""
    if not _reports(transition, Transition, TRANSITION):
        return None
    if transition.conditions.__class__ is not Callbacks or not all(
        _reports(condition, Condition, CONDITION) for condition in transition.conditions
    ):
        return None
    if not transition.dest:
        return transition, transition.conditions, None, None, True
    origin = machine.states.get(transition.source)
    dest = machine.states.get(transition.dest)
    if origin is None or dest is None:
        return None
    if not (_has_plain_name(origin) and _has_plain_name(dest)):
        return None
    fixed = _reports(origin, State, CALLING) and _reports(dest, State, CALLING)
    return transition, transition.conditions, origin, dest, fixed


#: the EventData of a plan that begins without one
_MADE: Final = "event_data(state, event, machine, model, args, kwargs, transition, result)"
_GO: Final = """\
def factory({names}):
    def plan({arguments}):
        {begin}
        try:
            while True:
{body}
                break
        except CAUGHT as error:
            data = data or {made}
            data.error = error
            if not own["_on_exception"]:
                raise
            call(machine, own["_on_exception"], data)
        finally:
            if {unsettled}own["_finalize_event"]:
                settle(machine, data or {made})
        return result if data is None else data.result
    return plan
"""
_ASK: Final = """\
def factory({names}):
    def plan({arguments}):
        {begin}
        while True:
{body}
            return False
        return ask_on(rest, data or {made}, agrees)
    return plan
"""


class _Writer:
    """Writes the source of a plan and collects its constants."""

    def __init__(
        self, event: Any, machine: Any, marker: Marker, source: Any, found: Any, kind: Kind
    ) -> None:
        self.event, self.machine, self.marker, self.source = event, machine, marker, source
        self.found, self.kind = found, kind
        self.own = machine.__dict__
        self.constants: dict[str, Any] = {
            "machine": machine,
            "own": self.own,
            "event": Event(event.name, machine) if kind is Kind.ASK else event,
            "marker": marker,
            "now": marker.now,
            "source": source,
        }
        self.lines: list[str] = []
        self.depth = 3 if kind is Kind.ASK else 4

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def constant(self, hint: str, value: Any) -> str:
        """Return the name of a constant of the plan."""
        for name, known in self.constants.items():
            if known is value and name.startswith(hint):
                return name
        name = f"{hint}_{len(self.constants)}"
        self.constants[name] = value
        return name

    def write(self, choices: list[Choice]) -> bool:
        """Write the whole plan; return false if it would need what a plan cannot do."""
        own, lists = self.own, [self.own["_prepare_event"]]
        for each, _, origin, dest, fixed in choices:
            lists += [own["_before_state_change"], own["_after_state_change"]]
            lists += [each.prepare, each.before, each.after]
            if dest is not None and fixed:
                lists += [origin.on_exit, dest.on_enter]
                lists += [own["_on_final"]] if HAS_FINAL and dest.final else []
        follow(self.marker, own["_finalize_event"], *lists)
        if not all(type(each) in (Callbacks, list, tuple) for each in lists):
            return False
        every_condition = [c for choice in choices for c in choice[1]]
        if sum(map(len, lists)) + len(every_condition) > _MOST:
            return False
        fixed = all(choice[4] for choice in choices)
        if self.kind is Kind.ASK:
            lists = [own["_prepare_event"], *(choice[0].prepare for choice in choices)]
        calls = bool(every_condition) or not all(map(is_silent, lists))
        #: whether there is an EventData from the beginning
        quiet, given = is_silent(own["_finalize_event"]), self.kind is Kind.GIVEN
        self.sent = bool(own["send_event"])
        self.data = given or (self.sent and calls)
        if self.kind is Kind.GO:
            self.data = self.data or not (fixed and quiet)
        self.model = "data.model" if self.data else "model"
        if self.kind is Kind.ASK:
            if any(each.dest == "" for each, *_ in choices):
                return False
            for number, choice in enumerate(choices):
                if self._ask(number, choice):
                    break
        else:
            self._list("prepare_event", None, own["_prepare_event"])
            for number, choice in enumerate(choices):
                self._choice(number, choice)
        begin = "data, state, transition, result = None, source, None, False"
        if given:
            begin = "model, args, kwargs, data.state, result = data.model, data.args, data.kwargs, source, False"
        elif self.data:
            begin += f"; data = {_MADE}"
        if calls and not self.sent:
            begin += "; bare = not (args or kwargs)"
        if self.kind is Kind.ASK:
            begin += "; agrees = True"
        self.text = (_ASK if self.kind is Kind.ASK else _GO).format(
            names=", ".join(self.constants),
            arguments="data" if given else "model, args, kwargs",
            begin=begin.replace("; ", "\n        "),
            body="\n".join(self.lines),
            made=_MADE,
            unsettled="marker.now is not now and " if quiet else "",
        )
        return True

    # -- callbacks ---------------------------------------------------------------------------------

    def _resolve(self, func: Any) -> str:
        """Write how a callback is found; return the expression for it."""
        if type(func) is not str:
            if not isinstance(func, str):
                return self.constant("callback", func)
            name = f"getattr({self.model}, {self.constant('name', func)})"
        elif func.isidentifier() and not iskeyword(func):
            name = f"{self.model}.{func}"
        else:
            name = f"getattr({self.model}, {func!r})"
        self.line("try:")
        self.line(f"    func = {name}")
        self.line("    if type(func) is not MethodType and not callable(func):")
        self.line("        func = constantly(func)")
        self.line("except AttributeError:")
        self.line(f"    func = imported({func!r})")
        return "func"

    def _call(self, func: Any, result: str = "") -> None:
        """Write a call of a callback."""
        name = self._resolve(func)
        if self.sent:
            self.line(f"{result}{name}(data)")
            return
        self.line("if bare:")
        self.line(f"    {result}{name}()")
        self.line("else:")
        self.line(f"    {result}{name}(*args, **kwargs)")

    def _check(self, rest: Rest, also: str = "", answer: str = "") -> None:
        """Leave the plan if something has changed."""
        self.line(f"if marker.now is not now{also}:")
        if self.kind is Kind.ASK:
            self.line(f"    rest = {self.constant('rest', rest)}")
        else:
            if not self.data:
                self.line(f"    data = {_MADE}")
            self.line(f"    resume({self.constant('rest', rest)}, data{answer})")
        self.line("    break")

    def _list(self, stage: str, transition: Any, *lists: Any) -> None:
        """Write the calls of lists that are gone through in one go."""
        for at, each in enumerate(lists):
            also = ""
            if type(each) is list:  # the caller's own, which may change without a report
                kept = self.constant("list", each), self.constant("copy_of", list(each))
                also = f" or {kept[0]} != {kept[1]}"
                self._check(self._rest(stage, transition, lists[at:], 0), also)
            if stage == "prepare_event" and self.data:
                also += " or data.state is not source"
            for position, func in enumerate(each):
                self._call(func)
                self._check(self._rest(stage, transition, lists[at:], position + 1), also)

    def _rest(self, stage: str, transition: Any, lists: Any, position: int) -> Rest:
        tried = 0 if transition is None else self._number + 1
        dest = None if transition is None else self._dest
        about = stage, self.machine, self.event, transition, dest
        return Rest(*about, lists, position, self.found, tried)

    # -- transitions ---------------------------------------------------------------------------------

    def _choice(self, number: int, choice: Choice) -> None:
        each, conditions, origin, dest, fixed = choice
        own, self._number, self._dest, depth = self.own, number, dest, self.depth
        transition = self.constant("transition", each)
        self.line(f"{'data.' if self.data else ''}transition = {transition}")
        self._list("prepare", each, each.prepare)
        self._conditions(each, conditions)
        self._list("before", each, own["_before_state_change"], each.before)
        if dest is not None:
            self._change(each, origin, dest, fixed)
        self._list("after", each, each.after, own["_after_state_change"])
        self.line("data.result = True" if self.data else "result = True")
        if conditions:
            self.line("break")
        self.depth = depth

    def _conditions(self, each: Any, conditions: Any) -> None:
        """Write the questions; what follows is inside of the answers."""
        for position, condition in enumerate(conditions):
            self._call(condition.func, "answer = ")
            target: Any = condition.target
            target = target if type(target) is bool else self.constant("target", target)
            self.line(f"agrees = answer is {target} or answer == {target}")
            rest = self._rest("conditions", each, (conditions,), position + 1)
            self._check(rest, answer=", agrees")
            self.line("if agrees:")
            self.depth += 1

    def _ask(self, number: int, choice: Choice) -> bool:
        """Write what ``Machine._can_trigger`` does for a transition; return whether it always agrees."""
        each, conditions, *_ = choice
        self._number, self._dest = number, None
        if is_silent(self.own["_prepare_event"]) and is_silent(each.prepare) and not conditions:
            self.line("return True")
            return True
        transition = self.constant("transition", each)
        self.line(f"{'data.' if self.data else ''}transition = {transition}")
        self.line("try:")
        self.depth += 1
        self._list("prepare", each, self.own["_prepare_event"], each.prepare)
        self._conditions(each, conditions)
        self.line("return True")
        self.depth = 3
        self.line("except CAUGHT as error:")
        self.line(f"    data = data or {_MADE}")
        self.line("    data.error = error")
        self.line('    if not own["_on_exception"]:')
        self.line("        raise")
        self.line('    call(machine, own["_on_exception"], data)')
        self.depth += 1
        self._check(self._rest("asked", each, (), 0))
        self.depth -= 1
        return False

    def _change(self, each: Any, origin: Any, dest: Any, fixed: bool) -> None:
        """Write the change of the state."""
        if fixed:
            self._list("on_exit", each, origin.on_exit)
        else:
            self.line(f"leave(machine, {self.constant('state', origin)}, data)")
            self._check(self._rest("on_exit", each, (), 0))
        attribute, entered = self.own["model_attribute"], self.constant("state", dest)
        reached, new = f"{self.model}.{attribute}", f"{entered}._name"
        if fixed:
            new = self.constant("new", dest.value)
        if not attribute.isidentifier() or iskeyword(attribute):
            reached = f"getattr({self.model}, {attribute!r})"
            self.line(f"setattr({self.model}, {attribute!r}, {new})")
        elif any(model is self.machine for model in self.machine.models):
            # its own __setattr__ looks only at other names
            self.line(f"if {self.model} is machine:")
            self.line(f"    put(machine, {attribute!r}, {new})")
            self.line("else:")
            self.line(f"    {reached} = {new}")
        else:
            self.line(f"{reached} = {new}")
        self.line(f"reached = {reached}")
        state = "data.state" if self.data else "state"
        self.line(f"{state} = {entered} if reached is {new} else machine.get_state(reached)")
        if fixed:
            self._list("on_enter", each, dest.on_enter)
            if HAS_FINAL and dest.final:
                self._list("on_final", each, self.own["_on_final"])
            return
        self.line(f"enter(machine, {entered}, data)")
        self._check(self._rest("on_enter", each, (), 0))
        if HAS_FINAL:
            self.line(f"if {entered}.final:")
            self.line('    call(machine, own["_on_final"], data)')
            self._check(self._rest("on_final", each, (), 0))
