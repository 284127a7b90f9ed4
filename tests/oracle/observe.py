"""What a scenario does that later steps may differ by, and how totals follow from it."""

from collections import Counter
from collections.abc import Iterable

from quadriga.core.model.application import Application
from tests.oracle.scenario import V18
from tests.oracle.totals import Line
from tests.oracle.view import Key, View

# -- what steps say, before anybody plays them -----------------------------------------------------


def observe(view: View) -> None:
    """Note what this step does that later ones may differ by."""
    step, memory = view.step, view.memory
    for app_id in _removals(view):
        memory.removed.add(app_id)
        if app_id in view.facts.gangs:
            memory.leaked.update(view.facts.paths.get(app_id, ()))
    for _, line in view.theirs:
        if line[0] == "accepted":
            memory.removed.discard(line[1])
            memory.stuck.discard(line[1])
        elif line[0] == "state":
            if line[2] not in ("Accepted", "Running"):
                memory.ahead.pop(line[1], None)
            if line[2] == "Failing":
                memory.leaked.update(view.facts.paths.get(line[1], ()))
    for named, size in _asked(view):
        known = view.facts.sizes(named)
        if known:
            memory.repeated.setdefault(named, known).append(size)
    for named in ask_releases(view):
        ask = view.facts.asks[named]
        if ask.placeholder:
            memory.shrunk.add((named[0], ask.task_group))
    if view.op == "ask" and view.version == V18:  # there it is dropped without a word
        if step.get("placeholder") and not step.get("taskGroup"):
            for named, _ in _asked(view):
                memory.kept[named] = "I18"
    if view.op == "releaseAlloc" and not step.get("allocationID"):
        memory.emptied.add(step["appID"])


def _asked(view: View) -> Iterable[tuple[Key, Counter[str]]]:
    if view.op == "ask":
        size = Counter(view.step.get("resources") or {})
        for key in view.step.get("keys") or (view.step.get("key", ""),):
            yield (view.step["appID"], key), size
    elif view.op == "updateAllocation":
        for ask in view.step["request"].get("asks", ()):
            quantities = (ask.get("resourceAsk") or {}).get("resources") or {}
            size = Counter({name: int(q.get("value", 0)) for name, q in quantities.items()})
            yield (ask.get("applicationID", ""), ask.get("allocationKey", "")), size


def _removals(view: View) -> list[str]:
    if view.op == "removeApp":
        return [view.step["appID"]]
    if view.op == "updateApplication":
        return [each["applicationID"] for each in view.step["request"].get("remove", ())]
    return []


def ask_releases(view: View) -> Iterable[Key]:
    releases: list[tuple[str, str]] = []
    if view.op == "releaseAsk":
        releases = [(view.step["appID"], view.step.get("key", ""))]
    elif view.op == "updateAllocation":
        asked = view.step["request"].get("releases", {}).get("allocationAsksToRelease", ())
        releases = [(r.get("applicationID", ""), r.get("allocationKey", "")) for r in asked]
    for app_id, key in releases:
        for named in view.facts.asks:
            if named[0] == (app_id or named[0]) and named[1] == (key or named[1]):
                yield named


def apps(view: View, app_id: str) -> Iterable[Application]:
    for partition in view.core.partitions():
        if app_id in partition.applications:
            yield partition.applications[app_id]


def kept_asks(view: View, rule: str) -> None:
    """Totals count asks that only ours has; when one of them is served, the histories part."""
    kept = {named for named, why in view.memory.kept.items() if why == rule}
    if not kept:
        return
    for kind in ("new", "released", "released ask", "rejected ask", "container"):
        for said, line in view.lines(kind, missing=False):
            if line[1:3] in kept:
                if kind == "new":
                    view.stop(rule, f"{line[1]}/{line[2]} is served here, unknown there", said)
                view.allow_extra(rule, said)
    more: dict[Line, Counter[str]] = {}
    for app_id, key in kept:
        for app in apps(view, app_id):
            if (ask := app.asks.get(key)) is not None:
                quantities = app.partition.registry.mapping(ask.vector)
                amount = Counter({name: n * ask.pending for name, n in quantities.items()})
                subjects: list[Line] = [("app", app_id, "pending")]
                subjects += [("queue", queue.path, "pending") for queue in app.queue.lineage]
                for subject in subjects:
                    more[subject] = more.get(subject, Counter()) + amount
    allow_totals(view, rule, more)


def allow_totals(view: View, rule: str, more: dict[Line, Counter[str]]) -> None:
    """Totals in which ours has exactly so much more than theirs."""
    for theirs, ours in view.total_pairs():
        subject = ours[1][:-1]
        if (
            subject in more
            and Counter(dict(ours[1][-1])) == Counter(dict(theirs[1][-1])) + more[subject]
        ):
            view.allow_missing(rule, theirs)
            view.allow_extra(rule, ours)


def ahead(view: View, rule: str) -> None:
    early = [app_id for app_id, why in view.memory.ahead.items() if why == rule]
    if not early:
        return
    running: Counter[str] = Counter()
    for app_id in early:
        for app in apps(view, app_id):
            running.update(queue.path for queue in app.queue.lineage)
        for said, line in view.lines("state", missing=True):
            if line[1] == app_id and line[2] in ("Accepted", "Running"):
                view.allow_missing(rule, said)
                if line[2] == "Running":  # it has caught up
                    del view.memory.ahead[app_id]
                    break
    for theirs, ours in view.total_pairs():
        subject, what = theirs[1][1], theirs[1][2:-1]
        is_state = what == ("state",) and subject in early
        more = running[subject] if what == ("running",) else 0
        if is_state or (more and ours[1][-1] == theirs[1][-1] + more):
            view.allow_missing(rule, theirs)
            view.allow_extra(rule, ours)
