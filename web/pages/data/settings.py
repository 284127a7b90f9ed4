"""The configuration: placement rules, queues as YAML, extra settings of the resource manager."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from quadriga.core import Scheduler
from quadriga.core.views import as_yaml
from quadriga.core.views.configuration import configured, rule_objects
from quadriga.web.pages.data.lookup import partition_of


def configuration(scheduler: Scheduler, partition: str) -> dict[str, Any]:
    """The configuration of the partition's resource manager; ``configuration`` is not yet an object."""
    found = partition_of(scheduler, partition)
    return {
        "partition": found.key,
        "resourceManager": found.rm.rm_id,
        "rules": rule_objects(found),
        "configuration": configured(found.rm),
    }


def finish_configuration(taken: dict[str, Any]) -> dict[str, Any]:
    """The same with ``yaml`` in its place. This takes long if there are many queues."""
    found = dict(taken)
    data = found.pop("configuration").as_object()
    partitions = json.dumps(data["partitions"])
    return {
        **found,
        "checksum": data["checksum"],
        "extra": data["extra"],
        "yaml": _as_yaml(partitions),
    }


@lru_cache(maxsize=4)
def _as_yaml(partitions: str) -> str:
    """Cached, because a configuration is read much more often than it changes."""
    return as_yaml({"partitions": json.loads(partitions)})
