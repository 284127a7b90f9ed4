"""Event records of both sides: a part of the comparison of its own."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from tests.oracle.comparison import Verdict
from tests.oracle.player import START, Player
from tests.oracle.scenario import V15, Callback

Quantities = tuple[tuple[str, int], ...]


class Event(NamedTuple):
    time: int
    type: str
    change: str
    detail: str
    subject: str
    reference: str
    quantities: Quantities


#: (type, change, detail) of the records in which these rules make a difference
_BY_RULE: dict[str, set[tuple[str, str, str]]] = {
    # the real allocation of a replacement in flight is not bound in a killed application, and a
    # living one follows it
    "X28": {
        ("APP", "ADD", "APP_ALLOC"),
        ("APP", "SET", "APP_RUNNING"),
        ("NODE", "REMOVE", "NODE_ALLOC"),
        ("USERGROUP", "ADD", "UG_USER_RESOURCE"),
        ("APP", "REMOVE", "REQUEST_TIMEOUT"),
    },
    "X29": {("APP", "REMOVE", "REQUEST_TIMEOUT")},
    "S5": {("APP", "SET", "APP_RUNNING")},
    "V7": {
        ("APP", "SET", "APP_COMPLETED"),
        ("APP", "REMOVE", ""),
        ("QUEUE", "REMOVE", "QUEUE_APP"),
    },
    "I18": {("APP", "ADD", "APP_REQUEST"), ("APP", "SET", "APP_ACCEPTED")},
}

#: what an ask was told of quotas: ours looks at the end of a round that decides nothing, theirs on
#: the way to each decision
_TOLD = ("REQUEST", "NONE", "")


def _events_in(callbacks: Iterable[Callback]) -> list[tuple[Event, str]]:
    """The records among the callbacks, with their texts."""
    found = []
    for _, kind, message in callbacks:
        if kind == "EventRecord":
            event = Event(
                int(message["timestampNano"]) - START,
                message.get("type", ""),
                message.get("eventChangeType", "NONE"),
                message.get("eventChangeDetail", ""),
                message.get("objectID", ""),
                message.get("referenceID", ""),
                _quantities(message),
            )
            found.append((event, message.get("message", "")))
    return found


def _quantities(message: dict[str, Any]) -> Quantities:
    resources = message.get("resource", {}).get("resources", {})
    pairs = ((name, int(quantity.get("value", 0))) for name, quantity in resources.items())
    return tuple(sorted(pair for pair in pairs if pair[1]))


class _Circumstances:
    """What the reasons below look at: who was removed, and who was rejected, and when."""

    def __init__(self) -> None:
        self.removed: dict[str, int] = {}
        self.rejected_apps: dict[tuple[str, int], None] = {}
        self.rejected_nodes: dict[tuple[str, int], None] = {}

    def note(self, step: dict[str, Any], now: int, callbacks: Iterable[Callback]) -> None:
        if step["op"] == "removeApp":
            self.removed[step["appID"]] = now
        for _, kind, message in callbacks:
            for each in message.get("rejected", ()):
                if kind == "NodeResponse":
                    self.rejected_nodes[each["nodeID"], now] = None
                elif kind == "ApplicationResponse":
                    self.rejected_apps[each["applicationID"], now] = None


def _normalised(events: list[tuple[Event, str]], seen: _Circumstances) -> Counter[Event]:
    """The form that is the same for both."""
    found: Counter[Event] = Counter()
    usage: Counter[tuple[Event, str]] = Counter()
    state: dict[str, str] = {}
    allocated: set[tuple[str, str]] = set()
    queues: set[str] = set()
    for event, text in events:
        if event[1:4] in _OURS_ONLY:
            continue
        if event.detail in ("APP_NEW", "QUEUE_CONFIG"):  # X44: there without a detail
            event = event._replace(detail="")
        time, kind, change, detail, subject, reference, quantities = event
        if kind == "APP" and detail in ("", *_STATES):
            # what it holds "now" is a matter of order within a step; v1.8.0 does not say it
            event = event._replace(quantities=())
        if kind == "APP" and change == "SET":
            if subject in seen.removed and time >= seen.removed[subject]:
                continue  # X31: the states of a removed application
            if detail == "APP_STARTING":  # X15
                detail = "APP_RUNNING"
            if state.get(subject) == detail:
                continue
            state[subject] = detail
            event = event._replace(detail=detail)
        elif kind == "APP" and change == "ADD" and not detail:
            state.pop(subject, None)  # G55: a new one of this id
        elif detail == "APP_ALLOC":
            allocated.add((subject, reference.rpartition("-")[0]))
        if detail in ("REQUEST_CANCEL", "REQUEST_TIMEOUT") and (subject, reference) in allocated:
            continue  # an ask that is wholly allocated is over here, there it is in the list still
        if kind == "QUEUE" and change == "ADD" and not detail:
            if subject in queues:
                continue  # an update is tried on a tree of its own first, and recorded twice
            queues.add(subject)
        elif kind == "QUEUE" and change == "REMOVE" and not detail:
            queues.discard(subject)
        if kind == "NODE" and (subject, time) in seen.rejected_nodes and detail in _NODE_ADDED:
            continue  # "Node added to the scheduler", of a node that is rejected
        if (subject, time) in seen.rejected_apps and (kind, change) == ("APP", "REMOVE"):
            continue  # G6: it was in its queue for a moment
        if (reference, time) in seen.rejected_apps and detail == "QUEUE_APP":
            continue
        if text.startswith("Preempted by"):
            continue  # since 1.7
        if detail in ("UG_USER_RESOURCE", "UG_GROUP_RESOURCE"):
            # one record for each allocation, or one for all of a removed application
            for name, value in quantities:
                usage[event._replace(quantities=()), name] += value
            continue
        found[event] += 1
    for (event, name), value in usage.items():
        found[event._replace(quantities=((name, value),))] += 1
    return found


_STATES = {f"APP_{name}" for name in (
    "ACCEPTED", "STARTING", "RUNNING", "COMPLETING", "COMPLETED", "FAILING", "FAILED", "REJECT",
    "RESUMING", "EXPIRED",
)}  # fmt: skip
#: details that the Go core has and gives nothing (X44)
_OURS_ONLY = {
    ("APP", "REMOVE", "REQUEST_ALLOC"),
    ("QUEUE", "ADD", "QUEUE_ALLOC"),
    ("QUEUE", "SET", "QUEUE_CONFIG"),
}
_NODE_ADDED = ("", "NODE_SCHEDULABLE")


def events_apart(verdict: Verdict) -> list[tuple[str, Event]]:
    """The records that only one side has ("theirs", "ours"), and no reason is known for."""
    scenario = verdict.scenario
    answers = scenario.answers(V15)
    if verdict.version != V15 or answers is None:
        return []
    end = min(len(answers), len(scenario.steps))
    if verdict.stopped is not None:
        end = min(end, verdict.stopped[0])
    if verdict.difference is not None:
        end = min(end, verdict.difference.at)
    player, seen = Player(scenario.steps, verdict.settings), _Circumstances()
    theirs: list[tuple[Event, str]] = []
    ours: list[tuple[Event, str]] = []
    for step, answer in zip(scenario.steps[:end], answers, strict=False):
        now = player.now
        heard = player.play(step, (answer.done or {}).get("t")).callbacks
        seen.note(step, now, heard)
        ours += _events_in(heard)
        theirs += _events_in(answer.callbacks)
    # both have sent all up to the earlier of their last ones
    until = min((side[-1][0].time for side in (theirs, ours) if side), default=0)
    if end < len(scenario.steps):
        until = min(until, player.now - 1)
    left, right = _normalised(theirs, seen), _normalised(ours, seen)
    expected = {_TOLD}.union(*(_BY_RULE.get(rule, set()) for rule in verdict.rules))
    return [
        (side, event)
        for side, events in (("theirs", left - right), ("ours", right - left))
        for event in sorted(events.elements())
        if event.time <= until and event[1:4] not in expected
    ]
