"""The rules about gangs that explain single lines; see ``explain``."""

import itertools
from collections import Counter

from quadriga.core.model.application import Application
from quadriga.core.resources.vectors import covers
from tests.oracle.observe import ahead, apps, ask_releases, kept_asks
from tests.oracle.view import View


def one_replacement_in_flight(view: View) -> None:
    """X28: what a replacement in flight means when the placeholder timer fires in Accepted."""
    dying = {s[1] for _, s in view.theirs if s[0] == "state" and s[2] in ("Resuming", "Failing")}
    parked = {named: ask for named, ask in view.facts.asks.items() if ask.parked}
    flying = view.facts.replaced | parked.keys()
    view.memory.flying |= {n: (a.planned_on, a.size) for n, a in parked.items() if n[0] in dying}
    for said, line in view.lines("released", missing=True):
        if line[1] in dying and line[1:3] in flying and line[3] == "TIMEOUT":
            view.allow_missing("X28", said)
    for said, line in view.lines("released", missing=False):
        ask = view.facts.asks.get(line[1:3])
        if line[1] in dying and ask is not None and ask.parked and line[3] == "TIMEOUT":
            view.allow_extra("X28", said)  # v1.8.0 does not say that its ask timed out
    _bound_in_the_dead(view)
    for said, line in view.lines("state", missing=False):
        bound = any(other[0] == "new" and other[1] == line[1] for _, other in view.ours)
        if line[2] == "Running" and bound and view.op == "confirm":
            view.allow_extra("X28", said)
            view.memory.ahead[line[1]] = "X28"
    for said in view.ours:  # there with the second replacement of the step, here with the first
        line = said[1]
        if line[0] == "state" and line[2] == "Running" and view.op == "confirm":
            if said in view.theirs and line[1] in view.facts.gathering & view.facts.gangs:
                view.allow_moved("X28", said)
    ahead(view, "X28")


def _bound_in_the_dead(view: View) -> None:
    """Hard: there an allocation lives on in a failed application, and keeps its node."""
    ghosts = view.memory.ghosts
    for said, line in view.lines("new", missing=True):
        known = line[1] in view.facts.dying and line[3:5] == view.memory.flying.get(line[1:3])
        if view.op == "confirm" and known:
            view.allow_missing("X28", said)
            ghosts.setdefault(line[3], Counter()).update(dict(line[4]))
    if not ghosts:
        return
    for theirs, ours in view.total_pairs():
        kind, subject, what = theirs[1][:3]
        if kind == "node" and what == "allocated" and subject in ghosts:
            if Counter(dict(ours[1][3])) + ghosts[subject] == Counter(dict(theirs[1][3])):
                view.allow_missing("X28", theirs)
                view.allow_extra("X28", ours)
    for said in (*view.missing, *view.extra):
        if said[1][0] == "new":
            why = "there an allocation outlives its application and keeps its node"
            view.stop("X28", why, said)


def soft_keeps_real_asks(view: View) -> None:
    """X29: a Soft timeout takes only placeholders and placeholder asks back."""
    resumed = {line[1] for _, line in view.theirs if line[0] == "state" and line[2] == "Resuming"}
    for said, line in view.lines("released", missing=True):
        ask = view.facts.asks.get(line[1:3])
        if line[1] in resumed and line[3] == "TIMEOUT" and ask is not None:
            if not ask.placeholder and not ask.parked:
                view.allow_missing("X29", said)
                view.memory.kept[line[1:3]] = "X29"
    kept_asks(view, "X29")


def gang_runs_on_enough(view: View) -> None:
    """S5: a gang runs when its placeholders are at least what was announced, not exactly that."""
    for said, line in view.lines("state", missing=False):
        for app in apps(view, line[1]):
            if line[2] == "Running" and app.gang.size is not None and not app.gang.over:
                have = tuple(app.allocated_placeholder)
                if app.gang.lost or (covers(have, app.gang.size) and not _alike(app)):
                    view.allow_extra("S5", said)
                    view.memory.ahead[line[1]] = "S5"
    for said, line in view.lines("state", missing=True):
        if line[2] in ("Resuming", "Failing") and view.memory.ahead.get(line[1]) == "S5":
            view.stop("S5", f"the timer finds {line[1]} Accepted there", said)
            view.allow_missing("S5", said)
    ahead(view, "S5")


def _alike(app: Application) -> bool:
    names = app.partition.registry.mapping
    return names(app.allocated_placeholder) == names(app.gang.size or ())


def replacement_in_one_step(view: View) -> None:
    """G31: the last placeholder is replaced at once; there the application is Completing for a moment."""
    lines = [said for said in view.missing if said[1][0] == "state"]
    for one, other in itertools.pairwise(lines):
        if one[0] == other[0] and one[1][1] == other[1][1] and view.op == "confirm":
            if (one[1][2], other[1][2]) == ("Completing", "Running"):
                view.allow_missing("G31", one)
                view.allow_missing("G31", other)


def shrunk_group(view: View) -> None:
    """S2: after a placeholder ask was taken back a real ask is served as usual; there it never is."""
    for said, line in view.lines("new", missing=False):
        if (line[1], line[6]) in view.memory.shrunk and not line[5]:
            view.allow_extra("S2", said)
            view.stop("S2", f"{line[1]}/{line[2]} is served here and never there", said)


def waits_with_leftovers(view: View) -> None:
    """G40: leftover placeholders do not keep an application from Waiting when its last ask goes."""
    taken = {named[0] for named in ask_releases(view)}
    holding = {app_id for app_id, _ in view.facts.placeholders}
    for said, line in view.lines("state", missing=False):
        if line[1] in taken & holding and line[2] == "Completing":
            view.allow_extra("G40", said)
            view.stop("G40", f"{line[1]} waits here with placeholders left, and goes on there")
