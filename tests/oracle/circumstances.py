"""What a scenario has in it, for rules that look at all of it."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from quadriga.core.config import ConfigError, QueueConfig, load
from tests.oracle.scenario import Scenario


def always(scenario: Scenario) -> bool:
    return True


def has_gangs(scenario: Scenario) -> bool:
    """Some application announces placeholders."""
    return any(step.get("placeholderAsk") for step in scenario.steps) or any(
        app.get("placeholderAsk")
        for step in scenario.steps
        if step.get("op") == "updateApplication"
        for app in step["request"].get("new", ())
    )


def has_gangs_and_quotas(scenario: Scenario) -> bool:
    return has_gangs(scenario) and any(queue.max for queue in _queues(scenario))


def limits_differ_by_level(scenario: Scenario) -> bool:
    """Some queue's max has other types than that of a queue above it."""
    return any(
        queue.max and above.max and queue.max.keys() != above.max.keys()
        for queue, lineage in _with_lineage(scenario)
        for above in lineage
    )


def shares_may_be_raw(scenario: Scenario) -> bool:
    """The README's tag or reason, or some queue beside others without anything guaranteed."""
    if "queues without guaranteed resources" in scenario.tags:
        return True
    if scenario.versions.agree is not None:
        return "order of queues" in scenario.versions.reason
    return any(
        len(queue.children) > 1 and not all(child.guaranteed for child in queue.children)
        for queue in _queues(scenario)
    )


def requires_node(scenario: Scenario) -> bool:
    return any(tag.endswith("requiredNode") for a in _asks(scenario) for tag in a.get("tags") or {})


def changes_configuration(scenario: Scenario) -> bool:
    return any(step.get("op") == "updateConfiguration" for step in scenario.steps)


def _asks(scenario: Scenario) -> Iterator[dict[str, Any]]:
    for step in scenario.steps:
        if step.get("op") == "ask":
            yield step
        elif step.get("op") == "updateAllocation":
            yield from step["request"].get("asks", ())


def _queues(scenario: Scenario) -> Iterator[QueueConfig]:
    return (queue for queue, _ in _with_lineage(scenario))


def _with_lineage(scenario: Scenario) -> Iterator[tuple[QueueConfig, tuple[QueueConfig, ...]]]:
    for text in scenario.configurations:
        yield from _queues_of(text)


@lru_cache(maxsize=100)
def _queues_of(text: str) -> list[tuple[QueueConfig, tuple[QueueConfig, ...]]]:
    try:
        configuration = load(text)
    except ConfigError:
        return []
    return [each for partition in configuration.partitions for each in _walk(partition.root, ())]


def _walk(
    queue: QueueConfig, lineage: tuple[QueueConfig, ...]
) -> Iterator[tuple[QueueConfig, tuple[QueueConfig, ...]]]:
    yield queue, lineage
    for child in queue.children:
        yield from _walk(child, (*lineage, queue))
