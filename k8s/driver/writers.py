"""Carries out the actions of the shim (``shim.actions``)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

from quadriga.k8s.driver.core_sender import CoreSender
from quadriga.k8s.shim.actions import (
    Action,
    Annotate,
    Bind,
    CancelBind,
    CancelCreate,
    CancelDelete,
    Create,
    Delete,
    DropCondition,
    FailPod,
    LogWarning,
    Record,
    Send,
    SetCondition,
    SetGroupCondition,
    Stop,
)
from quadriga.k8s.writers.condition_writer import ConditionWriter, GroupConditionWriter
from quadriga.k8s.writers.event_writer import EventWriter
from quadriga.k8s.writers.writes import PodWrites

_log = logging.getLogger("quadriga.kubernetes")


class Writers:
    """The writers of all kinds of actions. ``stop(code, reason)`` ends the process."""

    def __init__(
        self,
        sender: CoreSender,
        pods: PodWrites,
        conditions: ConditionWriter,
        groups: GroupConditionWriter,
        events: EventWriter,
        stop: Callable[[int, str], None],
    ) -> None:
        self.pods = pods
        self.conditions = conditions
        self.groups = groups
        self.events = events
        self.sender = sender
        submit = pods.submit
        self._carry: dict[type, Callable[[Any], object]] = {
            Send: lambda action: sender.send(action.request),
            Bind: submit,
            Delete: submit,
            Create: submit,
            Annotate: submit,
            FailPod: submit,
            CancelBind: lambda action: pods.cancel_bind(action.uid, "the bind was given up"),
            CancelCreate: lambda action: pods.cancel_create(action.namespace, action.name),
            CancelDelete: lambda action: pods.cancel_delete(action.uid),
            SetCondition: conditions.set,
            SetGroupCondition: groups.set,
            DropCondition: self._drop,
            Record: events.record,
            LogWarning: lambda action: _log.warning("%s", action.text),
            Stop: lambda action: stop(action.code, action.reason),
        }

    def _drop(self, action: DropCondition) -> None:
        self.conditions.drop(action.uid)
        self.groups.drop(action.uid)

    def carry_out(self, actions: Iterable[Action]) -> None:
        """Carry out the actions in their order."""
        carry = self._carry
        for action in actions:
            carry[type(action)](action)
