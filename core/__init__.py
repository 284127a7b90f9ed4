"""The scheduler, sans-IO: messages and time in, messages out."""

from quadriga.core.driver.service import SchedulerService
from quadriga.core.explain.explanation import Check, Explanation
from quadriga.core.runtime.journal import Journal, Record
from quadriga.core.runtime.kernel import Options
from quadriga.core.runtime.outbox import Output
from quadriga.core.scheduler import Scheduler
from quadriga.si import RequestError

__all__ = [
    "Check",
    "Explanation",
    "Journal",
    "Options",
    "Output",
    "Record",
    "RequestError",
    "Scheduler",
    "SchedulerService",
]
