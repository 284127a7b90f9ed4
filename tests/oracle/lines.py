"""Messages as lines: one form for what the Go core said and for what ours says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tests.oracle.scenario import V15, Callback
from tests.oracle.totals import Line

#: an instant (ns since the start) and a line
Said = tuple[int, Line]

_TIMEOUT = "TIMEOUT"

#: kinds of lines whose order within one list of one message is nobody's promise
_LISTED = ("released", "released ask")


def about(line: Line) -> str:
    return str(line[1])


class Reader:
    """Reads one side's messages, step by step, and knows what was last said of each application."""

    def __init__(self, version: str, stateaware: Callable[[str], bool]) -> None:
        self._policies = version == V15
        self._stateaware = stateaware
        #: the state that was last said of each application
        self.last: dict[str, str] = {}

    def copy(self) -> Reader:
        other = Reader("", self._stateaware)
        other._policies, other.last = self._policies, dict(self.last)
        return other

    def read(self, op: str, callbacks: Iterable[Callback]) -> list[Said]:
        said = [
            (t, line)
            for t, kind, message in callbacks
            for line in _lines_of(kind, message, self._policies)
            if kind != "UpdateContainerSchedulingStateRequest" or op == "inspect"
        ]
        return _arranged(op, _each_release_once(list(self._news(said))))

    def state(self, app_id: str, state: str) -> str:
        return "Running" if state == "Starting" and not self._stateaware(app_id) else state

    def _news(self, said: list[Said]) -> Iterable[Said]:
        for t, line in said:
            if line[0] == "state":
                _, app_id, state, when = line
                state = self.state(app_id, state)
                if self.last.get(app_id) == state:
                    continue
                self.last[app_id] = state
                yield t, ("state", app_id, state, when)
            else:
                if line[0] == "accepted":
                    self.last.pop(line[1], None)
                yield t, line


def _each_release_once(said: list[Said]) -> list[Said]:
    """On a timeout v1.5.2 lists asks whose placeholders are allocated as released asks too."""
    seen: set[Said] = set()
    kept = []
    for each in said:
        if each[1][0] != "released" or each not in seen:
            seen.add(each)
            kept.append(each)
    return kept


def _arranged(op: str, said: list[Said]) -> list[Said]:
    """Where an order is nobody's promise, one order for both sides."""
    if op in ("advance", "sleep", "multiStep"):
        said = sorted(said, key=lambda each: (each[0], about(each[1])))
    elif op == "confirm":
        said = sorted(said, key=lambda each: about(each[1]))
    free = (*_LISTED, "new") if op == "confirm" else _LISTED
    at = 0
    while at < len(said):
        end = at + 1
        if said[at][1][0] in free:
            while end < len(said) and _belong_together(said[at], said[end]):
                end += 1
            said[at:end] = sorted(said[at:end])
        at = end
    return said


def _belong_together(one: Said, other: Said) -> bool:
    return one[0] == other[0] and one[1][0] == other[1][0]


def _lines_of(kind: str, message: Mapping[str, Any], policies: bool) -> Iterable[Line]:
    if kind == "ApplicationResponse":
        yield from (("accepted", app["applicationID"]) for app in message.get("accepted", ()))
        yield from (("rejected", app["applicationID"]) for app in message.get("rejected", ()))
        for app in message.get("updated", ()):
            when = int(app["stateTransitionTimestamp"])
            yield "state", app["applicationID"], app["state"], when
    elif kind == "NodeResponse":
        yield from (("accepted node", node["nodeID"]) for node in message.get("accepted", ()))
        yield from (("rejected node", node["nodeID"]) for node in message.get("rejected", ()))
    elif kind == "AllocationResponse":
        yield from (_new(each, policies) for each in message.get("new", ()))
        for part in ("rejected", "rejectedAllocations"):
            for each in message.get(part, ()):
                yield "rejected ask", each["applicationID"], each["allocationKey"]
        for part in ("released", "releasedAsks"):
            for each in message.get(part, ()):
                termination = each.get("terminationType", "")
                what = "released"
                if part == "releasedAsks" and termination != _TIMEOUT:
                    what = "released ask"
                yield (
                    what,
                    each["applicationID"],
                    each["allocationKey"],
                    termination,
                    each.get("partitionName", "").rpartition("]")[2],
                )
    elif kind == "UpdateContainerSchedulingStateRequest":
        app_id = message.get("applicationID") or message.get("applicartionID")
        yield "container", app_id, message["allocationKey"], message["state"]


def _new(allocation: Mapping[str, Any], policies: bool) -> Line:
    quantities = allocation.get("resourcePerAlloc", {}).get("resources", {})
    line: Line = (
        "new",
        allocation["applicationID"],
        allocation["allocationKey"],
        allocation["nodeID"],
        tuple(sorted((n, v) for n, q in quantities.items() if (v := int(q.get("value", 0))))),
        "placeholder" if allocation.get("placeholder") else "",
        allocation.get("taskGroupName", ""),
        "originator" if allocation.get("originator") else "",
    )
    if policies:
        policy = allocation.get("preemptionPolicy", {"allowPreemptSelf": True})
        line += tuple(name for name, allowed in sorted(policy.items()) if allowed)
    return line
