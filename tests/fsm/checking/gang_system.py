"""The scheduler's lifecycles composed: an application whose gang has one placeholder, and one member.

The resource manager is a pod for each allocation. Releases and their confirmations go over a network that loses
and repeats them. What the scheduler does between two lifecycles at once is a call.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from quadriga import fsm
from quadriga.fsm.checking import Network, Once, Part, System, World, call, put, send
from quadriga.fsm.lifecycles import allocation as allocation_fsm
from quadriga.fsm.lifecycles import application as application_fsm
from quadriga.fsm.lifecycles import effects as fx


@dataclass(frozen=True, slots=True)
class Confirm(fsm.Effect):
    """The pod is gone, as the scheduler has asked for."""


def confirm(pod: Any, fired: fsm.Fired) -> tuple[fsm.Effect, ...]:
    return (Confirm(),)


# fmt: off
POD = fsm.Lifecycle(
    "pod",
    initial="Absent",
    final=("Forgotten",),
    lasts={"Absent": fsm.unbounded("start"), "Running": fsm.unbounded("finish"), "Gone": fsm.unbounded("forget")},
    rows=(
        fsm.row("start",  "Absent",  "Running"),
        fsm.row("finish", "Running", "Gone"),
        fsm.row("stop",   "Running", "Gone",      emit=confirm),
        fsm.row("stop",   "Gone",    "Gone",      emit=confirm, why="the release came again"),
        fsm.row("forget", "Gone",    "Forgotten", why="never, in these runs"),
    ),
)
# fmt: on

PENDING = ("Pending", "Parked")


def asks(world: World) -> bool:
    return any(world[name].state in PENDING for name in ("placeholder ask", "member ask"))


def holds(world: World, name: str) -> bool:
    return world[name].state in allocation_fsm.HELD


def waits(world: World) -> bool:
    """The gang can be placed: its application is served and its placeholder is asked for."""
    served = world["app"].state in application_fsm.SERVED
    return served and world["placeholder ask"].state == "Pending"


def may_replace(world: World) -> bool:
    asked = world["app"].state in application_fsm.SERVED and world["member ask"].state == "Pending"
    return asked and world["placeholder"].state == "Allocated"


def may_allocate(world: World) -> bool:
    """The member gets a place of its own only when no placeholder is left for it."""
    served = world["app"].state in application_fsm.SERVED
    return served and not holds(world, "placeholder") and not waits(world)


# -- reactions ---------------------------------------------------------------------------------------


def after_removal(world: World) -> Iterator[Any]:
    trigger = application_fsm.AFTER_REMOVAL[world["app"].state]
    if trigger is not None:
        yield call("app", trigger)


def arrived(app: Any, info: Any) -> Iterator[Any]:
    if app.world["placeholder ask"].state == "Initial":
        yield call("placeholder ask", "submit")


def release_asks(app: Any, effect: fx.ReleaseAsks) -> Iterator[Any]:
    wanted = ("placeholder ask",) if effect.placeholders_only else ("placeholder ask", "member ask")
    for name in wanted:
        if app.world[name].state in PENDING:
            yield call(name, "reject")


def release(*names: str) -> Any:
    def reaction(app: Any, effect: Any) -> Iterator[Any]:
        for name in names:
            if app.world[name].state == "Allocated":
                yield call(name, "release", reason=allocation_fsm.TIMEOUT)
            elif app.world[name].state == "Planned" and app.world["member ask"].state == "Parked":
                yield call(name, "discard")

    return reaction


def placed(gang: Any, info: Any) -> Iterable[Any]:
    return call("placeholder ask", "allocate"), call("placeholder", "allocate"), call("app", "run")


def member_placed(ask: Any, info: Any) -> Iterable[Any]:
    return (
        (call("member", "allocate"), call("app", "run", **info)) if ask.state != "Pending" else ()
    )


def rejected(ask: Any, info: Any) -> Iterator[Any]:
    """An ask that the application itself gives up needs no further look at the application."""
    if info.get("by_manager"):
        yield from after_removal(ask.world)


def placeholder_gone(placeholder: Any, info: Any) -> Iterator[Any]:
    if placeholder.world["member ask"].state == "Parked":
        if placeholder.state == "Replaced":
            yield call("member ask", "allocate", first_replacement=True)
        else:
            yield call("member ask", "unpark")
            yield from after_removal(placeholder.world)
    else:
        yield from after_removal(placeholder.world)


def ended(app: Any, effect: Any) -> Any:
    return call("gang", "end") if app.world["gang"].state != "Ended" else ()


def remember(allocation: Any, info: Any) -> Any:
    return put(reason=allocation.reason or info["reason"])


# -- the system ----------------------------------------------------------------------------------------


def gang_system(
    application: fsm.Lifecycle = fsm.APPLICATION,
    allocation: fsm.Lifecycle = fsm.ALLOCATION,
    pod: fsm.Lifecycle = POD,
    **network: Any,
) -> System:
    def an_allocation(name: str, its_pod: str, on_end: Any, **more: Any) -> Part:
        on = {
            "allocate": call(its_pod, "start"),
            "release": remember,
            fx.RequestRelease: send(its_pod, "stop"),
            "confirm": on_end,
            "complete": on_end,
        }
        facts = {"run_limit": 0, "reason": None}
        return Part(name, allocation, facts, timeout_info={"timer": True}, on=on, **more)

    def a_pod(name: str, of: str, **more: Any) -> Part:
        return Part(
            name, pod, on={Confirm: send(of, "confirm"), "finish": call(of, "complete")}, **more
        )

    app = Part(
        "app",
        application,
        facts={
            "hard": Once(False, True),
            "starts_aware": Once(False, True),
            "started": False,
            "waited": False,
            "run_limit": 0,
            "gang_wait_limit": 0,
            "has_asks": asks,
            "has_allocations": lambda world: holds(world, "member"),
            "has_placeholders": lambda world: holds(world, "placeholder"),
            "gathers": lambda world: world["placeholder ask"].state in ("Initial", *PENDING),
            "gang_complete": lambda world: holds(world, "placeholder"),
        },
        timeout_info={"timer": True},
        may=("kill", "reject"),
        will={
            "placeholder_timeout": None,
            "ask": lambda world: world["app"].state == "New",
            "wait": lambda world: world["app"].state == "Accepted" and not asks(world),  # X31
        },
        on={
            "ask": arrived,
            "wait": lambda app, info: put(waited=app.waited or app.state == "Waiting"),
            fx.Fire: lambda app, effect: call("app", effect.trigger),
            fx.ReleaseAsks: release_asks,
            fx.ReleasePlaceholders: release("placeholder"),
            fx.ReleaseAllocations: release("placeholder", "member"),
            fx.StartedRunning: put(started=True),
            fx.LeaveQueue: ended,
        },
    )
    gang = Part(
        "gang",
        fsm.GANG,
        facts={"patience": 0},
        info={"reason": ("",)},
        may={"gather": waits, "abandon": waits},
        will={"place": waits},
        on={"place": placed},
    )
    member_ask = Part(
        "member ask",
        fsm.ASK,
        facts={"pending": 1},
        info={"by_manager": (True,)},
        may={
            "reject": lambda world: world["member ask"].state == "Pending",
            "submit": lambda world: world["app"].state in application_fsm.SERVED,
            "park": may_replace,
        },
        will={"allocate": lambda w: may_allocate(w) and w["member ask"].state == "Pending"},
        on={
            "submit": call("app", "ask"),
            "park": call("placeholder", "release", reason=allocation_fsm.REPLACEMENT),
            "allocate": member_placed,
            "reject": rejected,
        },
    )
    return System(
        app,
        gang,
        Part("placeholder ask", fsm.ASK, facts={"pending": 1}),
        member_ask,
        an_allocation("placeholder", "placeholder pod", placeholder_gone),
        an_allocation("member", "member pod", lambda it, info: after_removal(it.world)),
        a_pod("placeholder pod", "placeholder", may=("finish",)),
        a_pod("member pod", "member", will=("finish",)),
        network=Network(**network),
        always=ALWAYS,
        possible=POSSIBLE,
        eventually={"G50: the application is over, and no pod runs": is_over},
    )


def is_over(world: World) -> bool:
    return world["app"].state == "Expired" and not any(
        world[name].state == "Running" for name in ("placeholder pod", "member pod")
    )


def implies(condition: Any, then: Any) -> bool:
    return bool(not condition or then)


def everything_given_back(world: World) -> bool:
    left = asks(world) or holds(world, "placeholder") or holds(world, "member")
    return implies(world["app"].state in application_fsm.ENDED, not left)


def confirmed_is_gone(world: World) -> bool:
    return all(
        implies(
            world[name].state in ("Expired", "Preempted", "Replaced"),
            world[f"{name} pod"].state == "Gone",
        )
        for name in ("placeholder", "member")
    )


ALWAYS = {
    "G43: an application that has ended holds nothing": everything_given_back,
    "R3: an allocation whose release is confirmed has no pod": confirmed_is_gone,
    "G28: a member starts when its placeholder is gone": lambda world: implies(
        world["member pod"].state == "Running", world["placeholder pod"].state != "Running"
    ),
    "G21: an application runs after its gang or a member was placed": lambda world: implies(
        world["app"].state in application_fsm.COUNTED and not world["app"].waited,
        any(world[name].state in allocation_fsm.ONCE_HELD for name in ("placeholder", "member")),
    ),
    "I21: a Hard gang does not resume": lambda world: (
        not (world["app"].hard and world["app"].state == "Resuming")
    ),
    "Q4: only a gang whose application is served keeps nodes": lambda world: implies(
        world["gang"].state == "Gathering", world["app"].state in application_fsm.LIVING
    ),
}

POSSIBLE = {
    f"an application ends {state}": lambda world, state=state: world["app"].state == state
    for state in ("Completed", "Killed", "Rejected", "Expired")
} | {
    f"a placeholder ends {state}": lambda world, state=state: world["placeholder"].state == state
    for state in ("Expired", "Replaced", "Completed")
}
