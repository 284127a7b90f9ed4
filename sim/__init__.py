"""The simulator: runs workloads through the scheduler in virtual time.

``Simulation(workload).run()`` returns a ``Report``; ``render`` formats it as text. Workloads come
from ``quadriga.sim.workload``: real traces, or a model that needs no file.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quadriga.sim.errors import ConfigurationRefused, SimulationError
    from quadriga.sim.faults import LOSE_NODE, RESTART_MANAGER, RESTART_SCHEDULER, Fault, World
    from quadriga.sim.lifecycles import LIFECYCLES, SHIM_APPLICATION, SHIM_TASK
    from quadriga.sim.options import SimulationOptions
    from quadriga.sim.queues import queue_configuration
    from quadriga.sim.remote import RemoteScheduler, RemoteSimulation
    from quadriga.sim.reports.rendering import render
    from quadriga.sim.reports.report import Report
    from quadriga.sim.scripted.recording import JournalError, read_journal, write_journal
    from quadriga.sim.selection import first
    from quadriga.sim.simulation import Simulation

__all__ = [
    "LIFECYCLES",
    "LOSE_NODE",
    "RESTART_MANAGER",
    "RESTART_SCHEDULER",
    "SHIM_APPLICATION",
    "SHIM_TASK",
    "ConfigurationRefused",
    "Fault",
    "JournalError",
    "RemoteScheduler",
    "RemoteSimulation",
    "Report",
    "Simulation",
    "SimulationError",
    "SimulationOptions",
    "World",
    "first",
    "queue_configuration",
    "read_journal",
    "render",
    "write_journal",
]

# Imported on first use: reading a trace or a journal does not need the scheduler.
_MODULES = {
    "ConfigurationRefused": "errors",
    "Fault": "faults",
    "JournalError": "scripted.recording",
    "LIFECYCLES": "lifecycles",
    "LOSE_NODE": "faults",
    "RESTART_MANAGER": "faults",
    "RESTART_SCHEDULER": "faults",
    "RemoteScheduler": "remote",
    "RemoteSimulation": "remote",
    "Report": "reports.report",
    "SHIM_APPLICATION": "lifecycles",
    "SHIM_TASK": "lifecycles",
    "Simulation": "simulation",
    "SimulationError": "errors",
    "SimulationOptions": "options",
    "World": "faults",
    "first": "selection",
    "queue_configuration": "queues",
    "read_journal": "scripted.recording",
    "render": "reports.rendering",
    "write_journal": "scripted.recording",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        globals()[name] = found
        return found
