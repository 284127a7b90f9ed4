"""Partitions and clusters as data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from quadriga.core.runtime.dialect import Dialect
from quadriga.core.runtime.stepwise import Steps, chunks, finish
from quadriga.core.views.quantities import amounts, percentages, provided

if TYPE_CHECKING:
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.resource_manager import ResourceManager
    from quadriga.core.views.objects import ClusterObject, PartitionObject

#: the defaults of fields that the web UI reads of every resource manager
_UNSAID: Final = {"buildDate": "", "buildVersion": "", "isPluginVersion": "false"}


def cluster_object(
    partition: Partition, rms: Iterable[ResourceManager], start_time: int
) -> ClusterObject:
    """``start_time`` (ns) is when the scheduler started; 0 (unknown) is left out."""
    build_info = [{"rmId": rm.rm_id, **_UNSAID, **rm.build_info} for rm in rms]
    found: ClusterObject = {
        "partition": partition.name,
        "clusterName": "kubernetes",
        "rmBuildInformation": [dict(sorted(each.items())) for each in build_info],
    }
    if start_time:
        found["startTime"] = start_time
    return found


def partition_in_steps(partition: Partition, dialect: Dialect) -> Steps[PartitionObject]:
    """The partition, with the number of applications by state, ended ones included."""
    states: Counter[str] = Counter()
    for apps in chunks(partition.applications.values()):
        states.update([dialect.state(app.state) for app in apps])
        yield
    for ended in chunks(partition.ended):
        states.update([dialect.state(app.state) for app in ended])
        yield
    containers = yield from containers_in_steps(partition)
    capacity = provided(partition)
    used = amounts(partition, partition.root.allocated, capacity)
    config = partition.config
    return {
        "clusterId": partition.rm.rm_id,
        "name": partition.name,
        "capacity": {
            "capacity": capacity,
            "usedCapacity": used,
            "utilization": percentages(used, capacity),
        },
        "nodeSortingPolicy": {
            "type": config.node_sort_policy,
            "resourceWeights": dict(sorted(config.resource_weights.items())),
        },
        "totalNodes": len(partition.nodes),
        "applications": {**dict(sorted(states.items())), "total": states.total()},
        "totalContainers": containers,
        "state": partition.state,
        "lastStateTransitionTime": partition.changed,
        "preemptionEnabled": config.preemption_enabled,
        "quotaPreemptionEnabled": config.quota_preemption_enabled,
    }


def containers_in_steps(partition: Partition) -> Steps[int]:
    """The number of allocations, placeholders included."""
    number = 0
    for apps in chunks(partition.applications.values()):
        number += sum([len(app.allocations) + len(app.placeholders) for app in apps])
        yield
    return number


def containers_of(partition: Partition) -> int:
    """The same, counted at once."""
    return finish(containers_in_steps(partition))
