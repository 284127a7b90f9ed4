"""The scheduler, sans-IO: messages and time in, messages out."""

from quadriga.core.explain import Check, Explanation
from quadriga.core.journal import Journal, Record
from quadriga.core.kernel import Options
from quadriga.core.outbox import Output
from quadriga.core.scheduler import Scheduler
from quadriga.core.service import SchedulerService
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
