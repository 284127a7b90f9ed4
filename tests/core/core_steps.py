"""Steps that most scenarios of the core begin with: nodes, and applications that ask for something."""

from collections.abc import Iterable, Mapping
from typing import Any

from quadriga.sim.scripted.script import ONE_QUEUE, Script


def partitions(*names: str) -> str:
    """A configuration with these partitions, each with one queue for everyone, ``root.default``."""
    _, _, one = ONE_QUEUE.partition("\n")
    return "partitions:\n" + "".join(one.replace("default", name, 1) for name in names)


def on_nodes(config: str = ONE_QUEUE, /, **given: Any) -> Script:
    """A script with nodes: vcores, ``n1=4000``, or more; ``apps`` are ``name`` or ``name:queue``."""
    known = ("extra", "options", "version", "check", "scheduler", "rm_id", "policy_group")
    script = Script(config, **{name: given.pop(name) for name in known if name in given})
    apps = given.pop("apps", ())
    for node, size in given.items():
        script.node(node, **(size if isinstance(size, dict) else {"vcore": size}))
    for app in apps:
        script.app(*app.split(":"))
    return script


def refused(heard: list[str], what: str, why: str = "") -> None:
    """All that is heard is that this was rejected, and why."""
    (line,) = heard
    assert line.startswith(f"rejected {what}: ") and why in line


def submit(
    script: Script,
    app: str,
    *keys: str,
    queue: str = "root.default",
    user: str = "user",
    groups: Iterable[str] = (),
    gang: Mapping[str, int] | None = None,
    style: str = "Soft",
    partition: str = "",
    **asked: Any,
) -> list[str]:
    """An application with an ask for each key; what is heard of the asks."""
    script.app(app, queue, user=user, groups=groups, gang=gang, style=style, partition=partition)
    return script.ask(app, *keys, partition=partition, **asked)


def run(script: Script, app: str, *keys: str, **given: Any) -> list[str]:
    """``submit``, and what is decided then."""
    submit(script, app, *keys, **given)
    return script.schedule()


def serve(script: Script, app: str, *keys: str, **asked: Any) -> list[str]:
    """More asks of an application, and what is decided then."""
    script.ask(app, *keys, **asked)
    return script.schedule()


def later(script: Script, seconds: float) -> list[str]:
    """What is decided after this time."""
    script.advance(seconds)
    return script.schedule()
