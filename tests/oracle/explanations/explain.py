"""The rules that explain single lines: which ones, and under which circumstances."""

from collections import Counter

from tests.oracle.observe import ahead, apps, ask_releases, kept_asks
from tests.oracle.scenario import V18
from tests.oracle.totals import Line
from tests.oracle.view import View

# -- releases, removals, refusals ------------------------------------------------------------------


def answered_ask_release(view: View) -> None:
    """X30: the release of an ask by the RM is confirmed."""
    named = set(ask_releases(view))
    for said, line in view.lines("released ask", missing=False):
        if line[1:3] in named and line[3] == "STOPPED_BY_RM":
            view.allow_extra("X30", said)


def answered_release_by_key(view: View) -> None:
    """X45: beside v1.8.0 a release names a key, and takes the ask back that is pending under it."""
    if view.version != V18 or view.op != "releaseAlloc":
        return
    named = (view.step["appID"], view.step.get("allocationID", "").removesuffix("-0"))
    if named not in view.facts.asks or named in view.facts.allocated:
        return
    for said, line in view.lines("released", missing=False):
        if line[1:3] == named and line[3] == "STOPPED_BY_RM":
            view.allow_extra("X45", said)


#: the last states of a removed application; one that is New ends in Failed here
_ENDS_THERE = ("Completing", "Completed", "Expired")
_ENDS_HERE = ("Completing", "Completed", "Expired", "Failing", "Failed")


def removed_application(view: View) -> None:
    """X31: how an application that the RM has removed ends."""
    for missing in (True, False):
        for said, line in view.lines("state", missing=missing):
            ends = _ENDS_THERE if missing else _ENDS_HERE
            if line[1] in view.memory.removed and line[2] in ends:
                (view.allow_missing if missing else view.allow_extra)("X31", said)


def unknown_node(view: View) -> None:
    """X20: what concerns an unknown node, and the return of one that is not draining, is answered."""
    if view.op == "updateNode":
        infos = view.step["request"].get("nodes", ())
    elif view.op in ("nodeAction", "addNode"):
        infos = [view.step]
    else:
        return
    refused = {
        info["nodeID"]
        for info in infos
        if (
            info.get("action", "CREATE") in ("UPDATE", "DRAIN_NODE", "DECOMISSION")
            and info["nodeID"] not in view.facts.nodes
        )
        or (
            info.get("action") == "DRAIN_TO_SCHEDULABLE"
            and not view.facts.nodes.get(info["nodeID"], False)
        )
    }
    for said, line in view.lines("rejected node", missing=False):
        if line[1] in refused:
            view.allow_extra("X20", said)


def placeholder_without_group(view: View) -> None:
    """I18: a placeholder without task group is an ordinary ask, and stays; there it is rejected."""
    if view.op == "ask" and view.step.get("placeholder") and not view.step.get("taskGroup"):
        app_id = view.step["appID"]
        for said, line in view.lines("rejected ask", missing=True):
            if line[1] == app_id:
                view.allow_missing("I18", said)
                view.memory.kept[app_id, line[2]] = "I18"
        for said, line in view.lines("state", missing=False):
            if line[1] == app_id and line[2] == "Accepted":
                view.allow_extra("I18", said)
                view.memory.ahead[app_id] = "I18"
    kept_asks(view, "I18")
    ahead(view, "I18")


def on_a_draining_node(view: View) -> None:
    """I32: a draining node takes nobody new; there it takes the ask that had reserved it before the step."""
    for said, line in view.lines("new", missing=True):
        if line[3] in view.facts.closed:
            view.allow_missing("I32", said)
            view.stop("I32", f"{line[1]}/{line[2]} goes to draining node {line[3]} there", said)


def several_reservations(view: View) -> None:
    """5.8: which of several reservations of one application is used first is arbitrary."""
    theirs = next(view.lines("new", missing=True), None)
    ours = next(view.lines("new", missing=False), None)
    if theirs is None or ours is None or theirs[1][1] != ours[1][1]:
        return
    app_id = ours[1][1]
    keys = {theirs[1][2], ours[1][2]}
    if len(keys) == 2 and keys <= view.facts.reserved.get(app_id, set()):
        view.allow_missing("5.8", theirs[0])
        view.allow_extra("5.8", ours[0])
        view.stop("5.8", f"{app_id} uses another of its reservations first there", theirs[0])


def hint_after_a_vain_round(view: View) -> None:
    """5.11: an ask is reported when a whole round was in vain after it came; there when it was looked at."""
    memory = view.memory
    for said, line in view.lines("container", missing=True):
        for partition in view.core.partitions():
            app = partition.applications.get(line[1])
            ask = app.asks.get(line[2]) if app is not None else None
            if ask is not None and not ask.hinted and ask.seq > partition.waiting.exhausted_at:
                view.allow_missing("5.11", said)
                memory.reported.add((line[1], line[2]))
    for said, line in view.lines("container", missing=False):
        if (line[1], line[2]) in memory.reported:
            view.allow_extra("5.11", said)


# -- what never ends there -------------------------------------------------------------------------


def stuck_completing(view: View) -> None:
    """V7: the application completes; there it loses its timer and stays in Completing (5.15, bug 3)."""
    memory = view.memory
    for said, line in view.lines("state", missing=False):
        if line[1] in memory.emptied and line[2] == "Completed":
            memory.stuck.add(line[1])
        if line[1] in memory.stuck and line[2] in ("Completed", "Expired"):
            view.allow_extra("V7", said)
    for said in list(view.missing):
        line = said[1]
        if line[0] == "app" and line[1] in memory.stuck:
            view.allow_missing("V7", said)
    refused = {line[1]: said for said, line in view.lines("rejected", missing=True)}
    for said, line in view.lines("accepted", missing=False):
        if line[1] in memory.stuck and line[1] in refused:
            view.allow_missing("V7", refused[line[1]])
            view.allow_extra("V7", said)
            view.stop("V7", f"the id {line[1]} is free here and taken there")


def user_gets_back(view: View) -> None:
    """R6: a release gives the user's quota back though asks wait; there it does not (5.15, bug 3)."""
    if view.version == V18 and view.op == "releaseAlloc":
        for said, line in view.lines("state", missing=True):
            if line[1] in view.memory.emptied and line[2] == "Completing":
                view.allow_missing("R6", said)
                view.stop("R6", f"the asks of {line[1]} are gone there")
    for said, line in view.lines("new", missing=False):
        if line[1] in view.memory.emptied:
            view.allow_extra("R6", said)
            view.stop("R6", f"the user of {line[1]} has nothing left there", said)


def leaked_place(view: View) -> None:
    """V5: a gang that never ran frees its place; there the parent counts it for ever (5.15, bug 1)."""
    for said in list(view.extra):
        line = said[1]
        if line[0] in ("new", "state"):
            for app in apps(view, line[1]):
                for queue in app.queue.lineage[1:]:
                    if queue.max_applications and queue.path in view.memory.leaked:
                        view.allow_extra("V5", said)
                        why = f"{line[1]} may start here; {queue.path} is full there"
                        view.stop("V5", why, said)
                        return


def ask_sent_again(view: View) -> None:
    """I17: the same key again changes the pending ask, else is a new one; there both stay (5.6, 5.15 bug 5)."""
    repeated = view.memory.repeated
    named = {line[1:3] for _, line in (*view.missing, *view.extra)} & repeated.keys()
    for missing in (True, False):
        for said in list(view.missing if missing else view.extra):
            follows = said[1][0] == "state" and said[1][1] in {app_id for app_id, _ in named}
            if said[1][1:3] in named or follows:
                (view.allow_missing if missing else view.allow_extra)("I17", said)
    for app_id in {app_id for app_id, _ in repeated}:
        sizes = [size for key, sent in repeated.items() if key[0] == app_id for size in sent]
        subjects = {("app", app_id, what) for what in ("used", "pending")}
        for path in view.facts.paths.get(app_id, ()):
            subjects |= {("queue", path, what) for what in ("allocated", "pending")}
        for app in apps(view, app_id):
            for each in (*app.allocations.values(), *app.placeholders.values()):
                subjects.add(("node", each.node.node_id, "allocated"))
        for theirs, ours in view.total_pairs():
            if ours[1][:3] in subjects and _some_of(sizes, theirs[1][3], ours[1][3]):
                view.allow_missing("I17", theirs)
                view.allow_extra("I17", ours)
    if "I17" in view.used:
        view.stop("I17", "an ask was sent again under a key that was in use")


def _some_of(sizes: list[Counter[str]], theirs: Line, ours: Line) -> bool:
    """Whether two totals differ by whole requests of these sizes, each counted once at most."""
    apart = Counter(dict(theirs))
    apart.subtract(dict(ours))
    found = [Counter[str]()]
    for size in sizes[:6]:
        found += [_plus(each, size, sign) for each in found for sign in (1, -1)]
    return any(all(each[name] == n for name, n in apart.items()) for each in found)


def _plus(one: Counter[str], other: Counter[str], sign: int) -> Counter[str]:
    return Counter({name: one[name] + sign * other[name] for name in {*one, *other}})
