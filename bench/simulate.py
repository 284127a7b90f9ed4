"""The simulator: the time for one day of a cluster, and the whole cost of a decision in it.

The embedded workload is measured, and with ``--trace PATH`` that trace as well.
"""

from __future__ import annotations

from bench import Figure
from bench._support import sizes
from bench._support.timing import Clock, floor, service_memory
from quadriga.sim import Simulation, SimulationOptions
from quadriga.sim.workload import Workload, embedded, open_workload

_DAY = 86_400


def measure() -> list[Figure]:
    """Processor time for one day of the workload (s), and floors for each pod."""
    base = floor()
    days = 90 if sizes.FULL else 7
    figures = [Figure("floor", base, "ns")]
    figures += _run(f"embedded workload, {days} days", embedded(days), base)
    if sizes.TRACE is not None:
        figures += _run(sizes.TRACE.name, open_workload(sizes.TRACE), base)
    return figures


def _run(name: str, workload: Workload, base: float) -> list[Figure]:
    pods = sum(member.count for job in workload.jobs for member in job.members)
    span = workload.horizon_s / _DAY
    simulation = Simulation(workload, SimulationOptions())
    with service_memory(), Clock() as clock:
        simulation.run()
    return [
        Figure(f"{name}: a day", clock.spent / 1e6 / span, "ms"),
        Figure(f"{name}: a pod's whole life", clock.spent / pods / base, "floors"),
    ]
