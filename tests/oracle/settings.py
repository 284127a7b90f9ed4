"""Queue properties that give a rule's other side: how the Go core does it (X9, X16)."""

from dataclasses import dataclass
from typing import Any

import yaml


@dataclass(frozen=True, slots=True)
class Setting:
    rule: str
    name: str
    value: str


HOLD = Setting("X9", "gang.hold", "false")
ADMISSION = Setting("X16", "gang.admission", "incremental")


def with_properties(config: str, settings: tuple[Setting, ...]) -> str:
    """The configuration with these properties on every queue."""
    if not settings or not config.strip():
        return config
    try:
        content = yaml.safe_load(config)
        for partition in content["partitions"]:
            for queue in partition["queues"]:
                _add(queue, settings)
    except (yaml.YAMLError, KeyError, TypeError, AttributeError):
        return config
    return yaml.safe_dump(content)


def _add(queue: dict[str, Any], settings: tuple[Setting, ...]) -> None:
    places = [queue]
    if "childtemplate" in queue:
        places.append(queue["childtemplate"])
    for place in places:
        properties = dict(place.get("properties") or {})
        properties.update({each.name: each.value for each in settings})
        place["properties"] = properties
    for child in queue.get("queues") or ():
        _add(child, settings)
