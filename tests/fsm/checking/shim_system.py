"""The shim's lifecycle of a pod between the core and the API server, which are two small lifecycles here."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from quadriga.fsm import STAYS, Effect, Fired, Lifecycle, ignored, row, unbounded
from quadriga.fsm.checking import Network, Part, System, call, put, send
from quadriga.k8s.lifecycles import TASK
from quadriga.k8s.lifecycles import effects as fx


@dataclass(frozen=True, slots=True)
class Tell(Effect):
    """A message to the shim."""

    trigger: str


def tell(trigger: str) -> Any:
    def emitter(it: Any, fired: Fired) -> tuple[Effect, ...]:
        return (Tell(trigger),)

    emitter.__name__ = f"tell_{trigger}"
    return emitter


def fails(api: Any, info: Any) -> bool:
    return bool(api.bind_fails)


_LATE = "it crosses a release, or comes after the end"

# fmt: off
CORE = Lifecycle(
    "core",
    initial="Unknown",
    final=(),
    lasts={
        "Unknown":   unbounded("ask"),
        "Pending":   unbounded("allocate"),
        "Held":      unbounded("release"),
        "Releasing": unbounded("confirm"),
    },
    rows=(
        row("ask",       "Unknown",                        "Pending"),
        ignored("ask",   ("Pending", "Held", "Releasing"), why="it is asked for already"),
        row("allocate",  "Pending",                        "Held",      emit=tell("allocated")),
        row("report",    ("Unknown", "Pending", "Held"),   "Held",      emit=tell("allocated")),
        ignored("report", "Releasing",                     why=_LATE),
        row("release",   "Held",                           "Releasing", emit=tell("release")),
        row("ask_again", "Held",                           "Pending"),
        row("ask_again", ("Releasing", "Unknown"),         "Pending"),
        ignored("ask_again", "Pending",                    why=_LATE),
        row("drop_ask",  "Pending",                        "Unknown"),
        ignored("drop_ask", ("Unknown", "Held", "Releasing"), why="only an ask that waits is dropped"),
        row("confirm",   ("Pending", "Held", "Releasing"), "Unknown"),
        ignored("confirm", "Unknown",                      why=_LATE),
    ),
)
API = Lifecycle(
    "api server",
    initial="Unbound",
    final=(),
    lasts={"Unbound": unbounded("bind"), "Bound": unbounded("finish"), "Gone": unbounded("forget")},
    rows=(
        row("bind",      "Unbound",            STAYS,    when=fails, emit=tell("bind_failed")),
        row("bind",      "Unbound",            "Bound",              emit=tell("bound")),
        row("bind",      ("Bound", "Gone"),    STAYS,                emit=tell("bind_failed")),
        row("finish",    "Bound",              "Gone",               emit=tell("ended")),
        row("delete",    ("Unbound", "Bound"), "Gone",               emit=tell("ended")),
        ignored("delete", "Gone",              why="the watch has told it"),
        row("forget",    "Gone",               "Unbound"),
    ),
)
# fmt: on


def allocated(task: Any, info: Any) -> Any:
    return put(uuid="u", node="n") if task.state in ("Binding", "Bound") else ()


def ask_again(task: Any, effect: Any) -> Iterator[Any]:
    yield put(uuid="", node="")
    yield send("core", "ask_again")


def reconcile(task: Any, effect: Any) -> Any:
    return call("task", "ask") if task.state == "New" else ()


INFO = {"uuid": "u", "node": "n", "reason": "full", "type": 3, "refusal": ""}


def pod_system(task: Lifecycle = TASK, **network: Any) -> System:
    pod = Part(
        "task",
        task,
        facts={
            "uuid": "",
            "node": "",
            "group": "",
            "release_type": 0,
            "is_placeholder": False,
            "is_foreign": False,
            "app_has_ended": False,
            "may_try_again": True,
        },
        may=("discard", "withdraw"),
        will={"ask": lambda world: world["task"].state == "New"},
        on={
            "allocated": allocated,
            "release": lambda task, info: put(release_type=info["type"]),
            fx.SendAsk: send("core", "ask"),
            fx.ReleaseAsk: send("core", "drop_ask"),
            fx.ReportPod: send("core", "report"),
            fx.ConfirmRelease: send("core", "confirm"),
            fx.GiveBack: send("core", "confirm"),
            fx.AskAgain: ask_again,
            fx.BindPod: send("api server", "bind"),
            fx.DeletePod: send("api server", "delete"),
            fx.Reconcile: reconcile,
        },
        late=lambda task, t: send("core", "confirm") if t == "allocated" else (),  # K111
    )
    to_shim = {Tell: lambda it, effect: send("task", effect.trigger, **INFO)}
    core = Part("core", CORE, will=("allocate",), may=("release",), on=to_shim)
    api = Part("api server", API, {"bind_fails": (False, True)}, will=("finish",), on=to_shim)
    return System(
        pod,
        core,
        api,
        network=Network(**network),
        always={
            "K39: the core counts a pod as long as it runs": lambda world: (
                world["api server"].state != "Bound" or world["core"].state in ("Held", "Releasing")
            )
        },
        possible={
            f"the task is {state}": lambda world, state=state: world["task"].state == state
            for state in ("Asked", "Binding", "Bound", "Releasing", "Ended")
        },
        eventually={
            "K37: the pod ends, and the core knows": lambda world: (
                world["task"].state == "Ended" and world["core"].state == "Unknown"
            )
        },
    )
