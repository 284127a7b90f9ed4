"""Workloads for the simulator: readers of real traces, and a model that needs no file.

Times are seconds from the start of the trace, vcore is in milli, memory in bytes, GPUs in devices.
"""

from quadriga.sim.workload.cerit import read_cerit
from quadriga.sim.workload.detect import open_workload
from quadriga.sim.workload.embedded import embedded
from quadriga.sim.workload.model import (
    GPU,
    MEMORY,
    VCORE,
    Job,
    Member,
    NodeSpec,
    QueueSpec,
    Skipped,
    Workload,
    WorkloadError,
)
from quadriga.sim.workload.philly import read_philly
from quadriga.sim.workload.swf import read_swf

__all__ = [
    "GPU",
    "MEMORY",
    "VCORE",
    "Job",
    "Member",
    "NodeSpec",
    "QueueSpec",
    "Skipped",
    "Workload",
    "WorkloadError",
    "embedded",
    "open_workload",
    "read_cerit",
    "read_philly",
    "read_swf",
]
