"""What the tests of the core share: a script to begin with, and what they read off it."""

from collections.abc import Callable
from typing import Any

from core_steps import later, on_nodes, serve
from core_steps import run as launch
from tree_side import news as allocations

from quadriga.core import Options
from quadriga.si import Allocation, AllocationRequest
from quadriga.sim.scripted.script import ONE_QUEUE, Script, resource

__all__ = [
    "MESSAGE_ORDERS",
    "gang",
    "in_order",
    "launch",
    "later",
    "member",
    "news",
    "queues",
    "refuse",
    "report",
    "reported",
    "running_gang",
    "scripted",
    "serve",
    "single",
    "state",
    "story",
]

#: the two orders in which a resource manager can have its messages (X8)
MESSAGE_ORDERS = ("design", "k8shim")


def scripted(
    config: str = ONE_QUEUE,
    *apps: str,
    order: str = "",
    nodes: tuple[str, ...] = ("n1",),
    options: Options | None = None,
    extra: dict[str, str] | None = None,
    **each: int,
) -> Script:
    """A script with these nodes, if ``each`` has any resource, and applications: ``name`` or ``name:queue``."""
    said = {"si.messageOrder": order} if order else {}
    given: dict[str, Any] = {node: each for node in nodes if each}
    return on_nodes(config, extra={**said, **(extra or {})}, options=options, apps=apps, **given)


def queues(*paths: str, **properties: str) -> str:
    """A configuration of queues (``p.a``) for everyone; ``p_a="maxapplications: 1"`` are properties of one."""

    def told(name: str, path: str) -> str:
        prefix = f"{path}." if path else ""
        below: list[str] = []
        for each in paths:
            first = each.removeprefix(prefix).split(".")[0]
            if each.startswith(prefix) and first not in below:
                below.append(first)
        own = [properties[key]] if (key := path.replace(".", "_") or "root") in properties else []
        children = ", ".join(told(child, prefix + child) for child in below)
        lines = [f"name: {name}", *own, *([f"queues: [{children}]"] if children else [])]
        return "{" + ", ".join(lines if path else [*lines, "submitacl: '*'"]) + "}"

    return "partitions: [{name: default, queues: [" + told("root", "") + "]}]"


def state(script: Script, app: str = "g") -> str:
    """The state of the application."""
    return script.scheduler.application(app).state


def news(heard: list[str]) -> list[str]:
    """The allocations among what is heard: ``g/p0-0 on n1``."""
    return [line.split(" placeholder")[0] for line in allocations(heard)]


def reported(key: str, app: str = "g", **said: Any) -> Allocation:
    """An allocation that runs, as a resource manager reports it: its quantities, and other fields."""
    own = {n: said.pop(n) for n in [*said] if n in Allocation.DESCRIPTOR.fields_by_name}
    own = {"UUID": f"{key}-0", **own}
    return Allocation(allocationKey=key, applicationID=app, resourcePerAlloc=resource(said), **own)


def report(script: Script, *allocations: Allocation, **more: Any) -> list[str]:
    """Allocations in a request, as since SI 1.4: those that run and, since 1.6, asks."""
    return script.send(AllocationRequest(rmID="rm", allocations=allocations, **more))


def refuse(script: Script, refused: Callable[[str, str], bool], reason: str = "no") -> None:
    """Predicates refuse these (key, node)."""
    script.scheduler.set_predicate(
        script.rm_id, lambda key, node, allocate: reason if refused(key, node) else None
    )


def single(script: Script, *names: str, vcore: int) -> list[str]:
    """Applications with an ask each. Returns the allocations of a round."""
    for name in names:
        script.app(name)
        script.ask(name, "a", vcore=vcore)
    return news(script.schedule())


def story(script: Script, path: str) -> list[str]:
    """The triggers in the life of a queue."""
    return [record.trigger for record in script.scheduler.story(f"queue/[rm]default/{path}")]


def member(script: Script, *keys: str, size: int = 1, **more: Any) -> list[str]:
    """Application g asks for members of its task group tg. Returns what the decisions say."""
    return serve(script, "g", *keys, group="tg", memory=size, **more)


def in_order(order: str, update: str, *rest: str) -> list[str]:
    """X8: the design's order ends with the update, the k8shim's begins with it."""
    return [*rest, update] if order == "design" else [update, *rest]


def gang(script: Script, *keys: str, announced: int, size: int = 1, **app: Any) -> list[str]:
    """Application g announces a gang and asks for placeholders of group tg. Returns what the decisions say."""
    script.app("g", gang={"memory": announced}, **app)
    return serve(script, "g", *keys, group="tg", placeholder=True, memory=size)


def running_gang(
    script: Script, count: int = 2, size: int = 1, style: str = "Soft", app: str = "g"
) -> None:
    """The application with all its placeholders p0, p1, ... of group tg."""
    script.app(app, gang={"memory": count * size}, style=style)
    keys = [f"p{n}" for n in range(count)]
    serve(script, app, *keys, group="tg", placeholder=True, memory=size)
    assert state(script, app) == "Running"
