"""Metrics of the shim: what waits, what was written, and how old its knowledge is (K16)."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from quadriga.base.times import SECOND
from quadriga.core.driver.watchdog import Watchdog
from quadriga.k8s.driver.inbox import Inbox
from quadriga.k8s.driver.writers import Writers
from quadriga.k8s.shim.differences import KINDS, Audit
from quadriga.k8s.transport.reflector import Reflector

#: one metric: name, ``counter`` or ``gauge``, help text, and samples with their labels
Measured = tuple[str, str, str, Sequence[tuple[Mapping[str, str], int | float]]]


def measured_of(
    inbox: Inbox | None,
    writers: Writers | None,
    reflectors: Sequence[Reflector[Any]],
    leads: bool,
    audit: Audit | None,
    watchdog: Watchdog,
) -> list[Measured]:
    """Return the metrics. Writers and audits are ``None`` before the settings are read."""
    found: list[Measured] = [
        (
            "quadriga_kubernetes_leader",
            "gauge",
            "Whether this process leads, or needs no lease.",
            [({}, int(leads))],
        ),
        (
            "quadriga_kubernetes_waiting_inputs",
            "gauge",
            "Changes and answers that the shim has not looked at.",
            [({}, len(inbox) if inbox is not None else 0)],
        ),
        (
            "quadriga_kubernetes_input_delay_seconds",
            "gauge",
            "How long the oldest change or answer that waits has waited.",
            [({}, inbox.delay() / SECOND if inbox is not None else 0)],
        ),
        (
            "quadriga_kubernetes_inputs_total",
            "counter",
            "Changes and answers that the shim has looked at.",
            [({}, inbox.taken if inbox is not None else 0)],
        ),
        (
            "quadriga_kubernetes_inputs_waited_seconds_total",
            "counter",
            "Time from the arrival of changes and answers until the shim looked at them.",
            [({}, inbox.waited / SECOND if inbox is not None else 0)],
        ),
        (
            "quadriga_kubernetes_loop_busy_seconds",
            "gauge",
            "How long the loop has been at the same object.",
            [({}, watchdog.busy() / SECOND)],
        ),
        (
            "quadriga_kubernetes_slow_objects_total",
            "counter",
            "How often the loop spent more than a second on one object.",
            [({}, watchdog.count)],
        ),
        (
            "quadriga_kubernetes_objects",
            "gauge",
            "Objects of the cluster that are known, by kind.",
            [({"resource": _plural(each.key)}, each.known) for each in reflectors],
        ),
        (
            "quadriga_kubernetes_watch_age_seconds",
            "gauge",
            "Time since the API server was heard of last, by kind.",
            [
                (
                    {"resource": _plural(each.key)},
                    (time.monotonic_ns() - each.last_contact) / SECOND if each.last_contact else 0,
                )
                for each in reflectors
            ],
        ),
    ]
    if writers is not None:
        found += _of_writers(writers)
    if audit is not None:
        found += _of_audit(audit)
    return found


def _of_audit(audit: Audit) -> list[Measured]:
    report = audit.report
    return [
        (
            "quadriga_kubernetes_audits_total",
            "counter",
            "Comparisons of the cluster with what the scheduler counts.",
            [({}, report.number if report is not None else 0)],
        ),
        (
            "quadriga_kubernetes_audit_differences_total",
            "counter",
            "Differences that two audits in a row have found, by kind.",
            [({"kind": kind}, audit.stood[kind]) for kind in KINDS],
        ),
        (
            "quadriga_kubernetes_audit_standing",
            "gauge",
            "Differences that the last audit has found, and the one before it.",
            [({}, len(report.standing) if report is not None else 0)],
        ),
        (
            "quadriga_kubernetes_audit_compared",
            "gauge",
            "Things that the last audit has compared, by kind.",
            [
                ({"kind": kind}, count)
                for kind, count in sorted(report.compared.items() if report is not None else ())
            ],
        ),
    ]


def _of_writers(writers: Writers) -> list[Measured]:
    events, conditions, pods = writers.events, writers.conditions, writers.pods
    return [
        (
            "quadriga_kubernetes_waiting_writes",
            "gauge",
            "Writes that have not ended, by what is written.",
            [
                ({"of": "pods"}, pods.waiting),
                ({"of": "conditions"}, conditions.waiting),
                ({"of": "events"}, events.waiting),
                ({"of": "core"}, writers.sender.waiting),
            ],
        ),
        (
            "quadriga_kubernetes_pod_writes_total",
            "counter",
            "Writes to pods that have ended, by outcome.",
            [(_labels(name), count) for name, count in sorted(pods.counts.copy().items())],
        ),
        (
            "quadriga_kubernetes_events_total",
            "counter",
            "Kubernetes events: requests that wrote one, and events that were dropped or refused.",
            [({"outcome": name}, count) for name, count in sorted(events.counts.items())],
        ),
        (
            "quadriga_kubernetes_conditions_total",
            "counter",
            "Conditions of waiting pods: written, refused, and explanations asked for.",
            [({"outcome": name}, count) for name, count in sorted(conditions.counts.items())],
        ),
    ]


def _labels(name: str) -> dict[str, str]:
    """Return the labels for a value of ``BindEnded.bound``."""
    write, _, outcome = name.partition(".")
    return {"write": write.removesuffix("Ended").lower(), "outcome": outcome}


def _plural(path: str) -> str:
    """Return the resource at the end of a reflector's path."""
    return path.rpartition("/")[2]
