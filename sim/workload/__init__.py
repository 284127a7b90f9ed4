"""Workloads for the simulator: readers of real traces, and a model that needs no file.

Times are seconds from the start of the trace, vcore is in milli, memory in bytes, GPUs in devices or in milli.
"""

# Not compiled: it does not run for every message.

from quadriga.sim.workload.cerit import read_cerit
from quadriga.sim.workload.detect import open_workload
from quadriga.sim.workload.embedded import embedded
from quadriga.sim.workload.files import MAX_BAD_LINES
from quadriga.sim.workload.lublin import lublin
from quadriga.sim.workload.mapped import read_csv
from quadriga.sim.workload.mapping import TraceMapping
from quadriga.sim.workload.model import (
    GPU,
    MEMORY,
    VCORE,
    BadLine,
    Job,
    Member,
    NodesNeeded,
    NodeSpec,
    QueueSpec,
    Skipped,
    Workload,
    WorkloadError,
)
from quadriga.sim.workload.nodes import parse_nodes
from quadriga.sim.workload.openb import read_openb
from quadriga.sim.workload.philly import read_philly
from quadriga.sim.workload.slurm import read_sacct
from quadriga.sim.workload.swf import read_swf

__all__ = [
    "GPU",
    "MAX_BAD_LINES",
    "MEMORY",
    "VCORE",
    "BadLine",
    "Job",
    "Member",
    "NodeSpec",
    "NodesNeeded",
    "QueueSpec",
    "Skipped",
    "TraceMapping",
    "Workload",
    "WorkloadError",
    "embedded",
    "lublin",
    "open_workload",
    "parse_nodes",
    "read_cerit",
    "read_csv",
    "read_openb",
    "read_philly",
    "read_sacct",
    "read_swf",
]
