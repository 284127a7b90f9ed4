"""GET /ws/v1/metrics: all counters and measurements, for Prometheus (2.15).

``Measurer`` is attached to the service and collects measurements. ``Snapshot`` holds the numbers of
one moment; it is taken in the scheduler's thread. Metric families are built and written outside
that thread. docs/metrics.md lists every metric.
"""

from quadriga.web.metrics.families import Family
from quadriga.web.metrics.meter import Measurer
from quadriga.web.metrics.scrape import QUEUE_LIMIT, Metrics, routes
from quadriga.web.site import ExtraMetrics

__all__ = ["QUEUE_LIMIT", "ExtraMetrics", "Family", "Measurer", "Metrics", "routes"]
