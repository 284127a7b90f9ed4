"""GET /ws/v1/metrics: everything that can be counted and measured, for Prometheus (2.15).

``Measurer`` is attached to the service and follows it; ``Snapshot`` has the numbers of one moment,
gathered in the scheduler's thread; families are made of it and written outside. docs/metrics.md names
every metric.
"""

from quadriga.web.extra_metrics import ExtraMetrics
from quadriga.web.metrics.families import Family
from quadriga.web.metrics.meter import Measurer
from quadriga.web.metrics.page import QUEUE_LIMIT, Metrics, routes

__all__ = ["QUEUE_LIMIT", "ExtraMetrics", "Family", "Measurer", "Metrics", "routes"]
