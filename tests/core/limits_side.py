"""Shared by the tests of limits: one queue with limits, and applications of users and groups in it."""

from tree_side import keys, limits, tree

from quadriga.sim.scripted.script import Script


def limited(*entries: str, more: str = "") -> str:
    """``root.q`` with these limits."""
    return tree(f"q, {limits(*entries)}{more}")


def submit(
    script: Script,
    app: str,
    user: str = "ann",
    *groups: str,
    queue: str = "root.q",
    asks: int = 1,
    memory: int = 5,
) -> None:
    """An application with so many asks, named by it: ``a0``, ``a1``."""
    assert script.app(app, queue, user=user, groups=groups) == [f"accepted {app}"]
    if asks:
        script.ask(app, *(f"{app}{n}" for n in range(asks)), memory=memory)


def allocated(script: Script, limit: int | None = None) -> list[str]:
    """The keys of what is allocated in a round, or in so many."""
    return keys(script.schedule(limit))


def used(script: Script, user: str) -> int:
    """The memory that a user holds."""
    partition = script.scheduler.partition()
    return partition.registry.mapping(partition.users[user].usage).get("memory", 0)
