"""Cycles of the slow model: who is served, replaced, or gets a node reserved (5.2 to 5.10)."""

from quadriga.core.config import PartitionConfig
from tests.oracle.models import model_limits as limits
from tests.oracle.models import model_order as order
from tests.oracle.models.model_members import Members
from tests.oracle.models.model_parts import (
    App,
    Ask,
    Held,
    Node,
    Queue,
    Resources,
    fits,
    narrower,
    plus,
    within,
)
from tests.oracle.models.model_preemption import PREEMPTED, choose

Word = tuple[str, ...]
"""``("new", app, key, node)``, ``("released", app, key, type)`` or ``("state", app, name)``."""

_RESERVATION_DELAY, _PREEMPTION_RETRY = 2_000, 15_000
_COMPLETING, _STARTING = 30_000, 300_000

TIMEOUT = "TIMEOUT"


class Cycles(Members):
    partition: PartitionConfig
    root: Queue

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.apps: dict[str, App] = {}
        #: releases that wait for their confirmation
        self.outstanding: list[tuple[App, str]] = []
        self.now = 0
        self._seq = 0
        self._said: list[Word] = []

    def _next(self) -> int:
        self._seq += 1
        return self._seq

    # -- what becomes of an application ----------------------------------------------------------------

    def _enter(self, app: App, state: str) -> None:
        if state == app.state:
            return
        app.state = state
        app.deadline = None
        if state == "Completing":
            app.deadline = self.now + _COMPLETING
        elif state == "Starting":
            app.deadline = self.now + _STARTING
        if state != "Accepted":
            app.admitted = False
        elif app.placeholder_ask and app.timeout > 0:
            app.idle_deadline = self.now + app.timeout
        if state not in ("Starting", "Running", "Resuming", "Failing"):
            app.counted = state == "Accepted" and bool(app.holds)
        elif state in ("Starting", "Running") and app.placeholders:
            app.counted = True  # back from Completing with leftovers
        app.completing = False
        self._said.append(("state", app.app_id, state))
        if state in ("Completed", "Failed"):
            self._forget(app)

    def _run(self, app: App, *, first_replacement: bool = False) -> None:
        if app.state == "Accepted":
            self._enter(app, "Starting" if app.starts_aware else "Running")
        elif app.state == "Completing" or (app.state == "Starting" and not first_replacement):
            self._enter(app, "Running")

    def _run_if_complete(self, app: App) -> None:
        if app.started and app.state == "Accepted" and app.gang_is_complete:
            self._run(app)

    def _forget(self, app: App) -> None:
        del self.apps[app.app_id], app.queue.apps[app.app_id]
        for ask in app.asks.values():
            self._unreserve(ask)

    def _give_back(self, app: App, key: str, why: str) -> None:
        held = app.placeholders.get(key) or app.allocations[key]
        if not held.released:
            held.released = why
            self.outstanding.append((app, key))
            self._said.append(("released", app.app_id, key, why))

    # -- cycles ----------------------------------------------------------------------------------------

    def _schedule(self, count: int = 1) -> None:
        for _ in range(count):
            self._cycle()

    def _scheduleIdle(self, count: int = 1000) -> None:
        for _ in range(count):
            if not self._cycle():
                return

    def _cycle(self) -> bool:
        """Whether it allocated or replaced something; one that reserves ends too (5.2)."""
        if not self.nodes:
            return False
        self._land()
        leaves = list(order.leaves(self.root, self._capacity()))
        for leaf in leaves:
            for app in sorted(leaf.apps.values(), key=lambda app: app.app_id):
                if self._may_start(app) and self._serve_reserved(app):
                    return True
        for leaf in leaves:
            for app in order.applications(leaf):
                if app.placeholders and self._replace(app):
                    return True
        for leaf in leaves:
            for app in order.applications(leaf):
                if self._may_start(app) and app.state not in ("Resuming", "Failing"):
                    done, allocated = self._serve_asks(app)
                    if done:
                        return allocated
        return False

    def _landed(self, app: App, ask: Ask, node: Node) -> None:
        first = not app.allocations
        app.allocations[ask.key] = Held(ask, node)
        node.allocated = plus(node.allocated, ask.resources)
        self._run(app, first_replacement=first)
        self._said.append(("new", app.app_id, ask.key, node.node_id))

    def _may_start(self, app: App) -> bool:
        return app.queue.admits(app) and (app.state != "Accepted" or limits.may_run(app))

    def _serve_asks(self, app: App) -> tuple[bool, bool]:
        """Whether the cycle ends here, and whether with an allocation."""
        room = order.headroom(app.queue, self._capacity())
        allowed = limits.room_for(app)
        for ask in app.waiting:
            if not ask.placeholder and not self._goes_the_normal_way(ask):
                continue
            if not within(allowed, ask.resources):
                continue
            if within(room, ask.resources):
                done, allocated = self._serve(ask)
                if done:
                    return True, allocated
            if self._preempt(ask):
                return True, False
        return False, False

    def _preempt(self, ask: Ask) -> bool:
        """Whether others have to go for the ask (5.9)."""
        if not ask.allow_other or ask.preempted or not self.partition.preemption_enabled:
            return False
        delay = ask.app.queue.config.properties.preemption_delay // 1_000_000
        if self.now <= ask.created + delay:  # it was created a little later
            return False
        if ask.checked is not None and self.now < ask.checked + _PREEMPTION_RETRY:
            return False
        ask.checked = self.now
        plan = choose(ask, self.nodes.values(), self._capacity())
        if plan is None:
            return False
        ask.preempted = True
        for victim in plan.victims:
            self._give_back(victim.ask.app, victim.ask.key, PREEMPTED)
        if ask.reserved is None and plan.node.reserved_by is None:
            ask.reserved, plan.node.reserved_by = plan.node, ask
        return True

    def _serve_reserved(self, app: App) -> bool:
        # in our order of several reservations of one application (v1.5.2: by node and key)
        reserved = [ask for ask in app.waiting if ask.reserved is not None]
        for ask in reserved:
            assert ask.reserved is not None
            if self._try(ask, ask.reserved):
                return True
        for ask in reserved:
            for node in order.nodes(self.nodes.values(), self.partition, ask.resources):
                if node.reserved_by is None and self._try(ask, node):
                    return True
        return False

    def _serve(self, ask: Ask) -> tuple[bool, bool]:
        best: Node | None = None
        tightest = 0.0
        for node in order.nodes(self.nodes.values(), self.partition, ask.resources):
            if node.reserved_by is not None or not node.schedulable:
                continue
            if not fits(node.total, ask.resources):
                continue
            if self._try(ask, node):
                return True, True
            if self.now - ask.created > _RESERVATION_DELAY and ask.reserved is None:
                score = order.fit_in_score(ask.resources, node.available)
                if best is None or score < tightest:
                    best, tightest = node, score
        if best is not None:
            ask.reserved, best.reserved_by = best, ask
            return True, False
        return False, False

    def _try(self, ask: Ask, node: Node) -> bool:
        app = ask.app
        if not node.schedulable or not fits(node.available, ask.resources):
            return False
        if node.reserved_by is not None and node.reserved_by is not ask:
            return False
        room = narrower(order.headroom(app.queue, self._capacity()), limits.room_for(app))
        if not within(room, ask.resources):
            return False
        self._unreserve(ask)
        ask.pending = False
        app.counted = app.bound = True
        del app.asks[ask.key]
        node.allocated = plus(node.allocated, ask.resources)
        if not ask.placeholder:
            app.allocations[ask.key] = Held(ask, node)
            self._run(app)
        else:
            if app.placeholder_deadline is None and app.state not in ("Resuming", "Failing"):
                app.placeholder_deadline = self.now + app.timeout
            app.placeholders[ask.key] = Held(ask, node)
            app.started = True
            self._run_if_complete(app)
        if app.state == "Accepted":
            app.admitted = True
        self._said.append(("new", app.app_id, ask.key, node.node_id))
        return True

    def _unreserve(self, ask: Ask) -> None:
        if ask.reserved is not None:
            ask.reserved.reserved_by = None
            ask.reserved = None

    def _capacity(self) -> Resources:
        whole: Resources = {}
        for node in self.nodes.values():
            whole = plus(whole, node.total)
        return whole
