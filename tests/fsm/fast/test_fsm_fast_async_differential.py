"""A stock asynchronous machine and a fast one side by side: the same triggers, one after the other and at once, and
whatever happens has to be the same, in the same order."""

import asyncio
import contextvars
import copy
import logging
import re
import sys
from collections import Counter
from typing import Any

import fsm_worlds
import pytest
from fsm_worlds import CALLBACKS, CONDITIONS, OPTIONS, TRIGGERS, act, common, which
from hypothesis import given, settings
from hypothesis import strategies as st
from transitions.extensions.asyncio import AsyncMachine, AsyncState

from quadriga.fsm.fast.asynchronous import FastAsyncMachine

STATES = ("A", "B", "C")
VARIABLE = contextvars.ContextVar("variable", default="unset")


class Model(fsm_worlds.Model):
    async def wait(self, *args: Any, **kwargs: Any) -> bool:
        self.world.write(self, "wait", args, kwargs)
        self.world.calls += 1
        for number in range(self.world.calls % 4):
            await asyncio.sleep(0)
            self.world.story.append((self.name, "waits", number))
        return True

    async def refuse(self, *args: Any, **kwargs: Any) -> bool:
        self.world.write(self, "refuse", args, kwargs)
        return False

    async def break_down(self, *args: Any, **kwargs: Any) -> None:
        self.world.write(self, "break_down", args, kwargs)
        await asyncio.sleep(0)
        raise RuntimeError(f"{self.name} breaks down")

    async def again(self, *args: Any, **kwargs: Any) -> None:  # type: ignore[override]
        self.world.write(self, "again", args, kwargs)
        if self.world.may_go_on():
            await self.trigger("turn", "from within")  # type: ignore[attr-defined]

    def fork(self, *args: Any, **kwargs: Any) -> None:
        self.world.write(self, "fork", args, kwargs)
        if self.world.may_go_on():
            self.world.forked.append(asyncio.ensure_future(self.trigger("go", "at once")))  # type: ignore[attr-defined]

    def isolated(self, *args: Any, **kwargs: Any) -> bool:
        self.world.story.append((self.name, "found", VARIABLE.get()))
        VARIABLE.set(self.name)
        task, outer = asyncio.current_task(), self.world.outer
        self.world.story.append(
            (task is outer, outer in self.world.machine.async_tasks.get(id(self), ()))
        )
        return True


def said(result: Any) -> str:
    return re.sub(r"\d{9,}", "", repr(result))


class World(fsm_worlds.World):
    ordered_states = STATES
    state_cls = AsyncState

    def __init__(self, machine_cls: Any, options: dict[str, Any]) -> None:
        super().__init__()
        self.forked: list[Any] = []
        self.outer: Any = None
        self.models = [Model(f"model {n}", self) for n in range(4)]
        self.machine = machine_cls(
            None, states=list(STATES), initial="A", before_state_change=self.lists[0], **options
        )
        self.machine.add_model(self.models[:3])

    async def settled(self, act: tuple[Any, ...]) -> Any:
        self.outer = asyncio.current_task()
        result, *_ = self.do(act)
        if asyncio.iscoroutine(result):
            try:
                result = await result
            except Exception as error:
                result = [said(each) for each in fsm_worlds.chain_of(error)]
        forked, self.forked = self.forked, []
        ended = [said(each) for each in await asyncio.gather(*forked, return_exceptions=True)]
        while len(asyncio.all_tasks()) > 1:  # what was cancelled, or follows a first error
            await asyncio.sleep(0)
        return result, ended, [self.states(model) for model in self.models]

    async def at_once(self, fired: list[tuple[int, str]], cancelled: int, after: int) -> Any:
        tasks = [asyncio.ensure_future(self.fire(*each)) for each in fired]
        for _ in range(after):
            await asyncio.sleep(0)
        if cancelled < len(tasks):
            tasks[cancelled].cancel("enough")
        return [said(each) for each in await asyncio.gather(*tasks, return_exceptions=True)]


def story_of(world: World, sequence: list[tuple[Any, ...]]) -> list[Any]:
    handler, told = fsm_worlds.Lines(), []
    loggers = [
        logging.getLogger(name) for name in (*fsm_worlds.LOGGERS, "transitions.extensions.asyncio")
    ]

    async def main() -> None:
        for step in sequence:
            result = await world.settled(copy.deepcopy(step))
            told.append((step, result, handler.taken(), world.story[:]))
            world.story.clear()
            if sum(len(each[3]) for each in told) > 600:
                break

    for logger in loggers:
        logger.addHandler(handler)
    try:
        asyncio.run(main())
    finally:
        for logger in loggers:
            logger.setLevel(logging.NOTSET)
            logger.removeHandler(handler)
    return told


def compare(options: dict[str, Any], sequence: list[tuple[Any, ...]]) -> None:
    expected, got = (
        story_of(World(cls, options), sequence) for cls in (AsyncMachine, FastAsyncMachine)
    )
    for theirs, ours in zip(expected, got, strict=True):
        assert ours == theirs


CALLS = (*CALLBACKS, "wait", "wait", "break_down", "fork", "isolated", "again")
ASKS = (*CONDITIONS, "wait", "wait", "refuse", "isolated")
FIRE = act("fire", which, TRIGGERS)
FIRED = st.lists(st.tuples(which, st.sampled_from(TRIGGERS)), min_size=2, max_size=4)
ACTS = st.one_of(
    *[FIRE] * 4,
    *[act("at_once", FIRED, st.integers(0, 8), st.integers(0, 9))] * 4,
    act("fire_by_name", which, (*TRIGGERS, "to_A", "to_C", "no such")),
    act("may", which, TRIGGERS),
    act("dispatch", TRIGGERS),
    *[each for each in common(STATES, (*STATES, "E"), CALLS, ASKS) if "_queued" not in repr(each)],
    act("state_callback", STATES, ("on_enter", "on_exit"), CALLS),
    act("replace_method", ("callbacks", "set_state", "await_all")),
)
WORLD = st.fixed_dictionaries(OPTIONS | {"queued": st.sampled_from((False, False, True, "model"))})
START = [
    ("transition", "go", "*", "B", None, "wait", None),
    ("transition", "turn", "*", "C", "wait", None, "note"),
    ("transition", "stop", "*", "A", None, None, None),
]


@settings(max_examples=max(1, settings.default.max_examples // 2))  # type: ignore[attr-defined]
@given(WORLD, st.lists(ACTS, max_size=25))
def test_a_fast_machine_does_what_the_librarys_does(
    options: dict[str, Any], sequence: list[tuple[Any, ...]]
) -> None:
    compare(options, [*START, *sequence])


CHANGES: list[tuple[Any, ...]] = [
    ("conditions", "go", ["wait", "fail"]),
    ("callbacks", "after_state_change", ["fork", "break_down"]),
    ("callbacks", "finalize_event", "isolated"),
    ("replace_method", "await_all"),
    ("option", "send_event", True),
    ("print_steps", True),
]


@pytest.mark.parametrize("queued", [False, True, "model"])
@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_a_trigger_follows_every_change(change: tuple[Any, ...], queued: Any) -> None:
    triggers = [(n, trigger) for n in (0, 1) for trigger in ("go", "stop", "turn")]
    round_ = [*(("fire", *e) for e in triggers), ("at_once", triggers, 2, 3), ("dispatch", "go")]
    compare({"queued": queued}, [*START, *round_, change, *round_])


def test_one_callback_of_several_may_fail_while_others_have_their_turns() -> None:
    fails = ("callbacks", "prepare_event", ["fail", "wait"])
    compare({}, [*START, fails, ("replace_method", "callbacks"), ("dispatch", "go")])


@pytest.mark.skipif(sys.version_info < (3, 12), reason="tasks cannot begin at once")
@pytest.mark.parametrize(
    "callbacks", [{}, {"conditions": "yes"}, {"before": "later", "after": "yes"}]
)
def test_a_trigger_calls_a_quarter_of_what_the_librarys_calls(callbacks: Any) -> None:
    class Quick:
        def yes(self) -> bool:
            return True

        async def later(self) -> None:
            pass

    def spent(cls: Any) -> int:
        quick: Any = Quick()
        machine = cls(quick, states=["A", "B"], initial="A", auto_transitions=False)
        machine.add_transition("move", "*", "B", **callbacks)
        calls = Counter[str]()

        async def main() -> None:
            await quick.move()
            sys.setprofile(lambda frame, what, arg: calls.update([what]))
            try:
                for _ in range(20):
                    assert await quick.move()
            finally:
                sys.setprofile(None)

        asyncio.run(main())
        return calls["call"]

    assert spent(FastAsyncMachine) * 4 < spent(AsyncMachine)


def test_triggers_may_go_on_within_each_other_for_long() -> None:
    class Walker:
        steps = 0

        async def on_enter_A(self) -> None:
            self.steps += 1
            if self.steps < 400:
                await self.go()  # type: ignore[attr-defined]

    walker: Any = Walker()
    FastAsyncMachine(walker, states=["A"], initial="A", transitions=[["go", "A", "="]])
    assert asyncio.run(walker.go()) and walker.steps == 400


def test_a_loop_of_triggers_lets_timers_have_their_turn() -> None:
    async def main() -> int:
        model: Any = Model("model", World(FastAsyncMachine, {}))
        machine = FastAsyncMachine(model, states=["A"], initial="A")
        machine.add_transition("go", "A", "=", after="yes")
        done, fired = asyncio.Event(), 0
        asyncio.get_running_loop().call_later(0, done.set)
        while not done.is_set():
            await model.go()
            fired += 1
        return fired

    assert asyncio.run(main()) < 100
