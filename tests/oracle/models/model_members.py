"""Gang members of the slow model, and the placeholders that they take over (G27 to G33, X36 to X39)."""

from tests.oracle.models import model_limits as limits
from tests.oracle.models import model_order as order
from tests.oracle.models.model_parts import (
    App,
    Ask,
    Held,
    Node,
    Resources,
    fits,
    narrower,
    plus,
    within,
)

REPLACED = "PLACEHOLDER_REPLACED"


class Members:
    """What a cycle does for gang members before all others. `Cycles` has the rest that it needs."""

    # -- plans -----------------------------------------------------------------------------------------

    def _replace(self, app: App) -> bool:
        """Let a real ask take over a placeholder of its group (5.10)."""
        for ask in app.waiting:
            found = self._choice(ask) if app.replaces(ask) else None
            if found is not None:
                key, node = found
                self._plan(ask, app.placeholders[key], node)
                self._give_back(app, key, REPLACED)
                return True
        return False

    def _goes_the_normal_way(self, ask: Ask) -> bool:
        """No placeholder is left for it (X36), or one and the free room together are too small (X37)."""
        available = self._available(ask)
        if not available:
            return not ask.app.replaces(ask)
        return self._choice(ask) is None and not any(
            fits(held.ask.resources, ask.resources) for held in available.values()
        )

    def _available(self, ask: Ask) -> dict[str, Held]:
        return {
            key: held
            for key, held in sorted(ask.app.placeholders.items())
            if not held.released and held.ask.task_group == ask.task_group
        }

    def _choice(self, ask: Ask) -> tuple[str, Node] | None:
        available = self._available(ask)
        large = [key for key, held in available.items() if fits(held.ask.resources, ask.resources)]
        first = ""
        for key in large or available:
            held = available[key]
            more = _beyond(ask.resources, held.ask.resources)
            if more and not self._within_quotas(ask.app, more):
                continue
            first = first or key
            if _takes(held.node, ask) and (not more or _fits_after(ask, held)):
                return key, held.node
        other = self._open_node(ask) if first else None
        return (first, other) if other is not None else None

    def _within_quotas(self, app: App, more: Resources) -> bool:
        room = narrower(order.headroom(app.queue, self._capacity()), limits.room_for(app))
        return within(room, more)

    def _open_node(self, ask: Ask) -> Node | None:
        for node in order.nodes(self.nodes.values(), self.partition, ask.resources):
            if node.schedulable and node.reserved_by is None:
                if fits(node.available, ask.resources):
                    return node
        return None

    def _plan(self, ask: Ask, held: Held, node: Node) -> None:
        self._unreserve(ask)
        ask.pending = False
        held.taken_by, held.target = ask, node
        held.growth = _beyond(ask.resources, held.ask.resources)
        node.allocated = plus(node.allocated, self._held_on_target(held))

    def _held_on_target(self, held: Held) -> Resources:
        return held.growth if held.target is held.node else held.taken_by.resources

    def _unplan(self, held: Held) -> None:
        if held.taken_by is not None and held.target is not None:
            held.taken_by.fallen += 1
            held.target.allocated = plus(held.target.allocated, self._held_on_target(held), -1)
        held.taken_by, held.target, held.growth = None, None, {}

    # -- confirmations ---------------------------------------------------------------------------------

    def _complete(self, app: App, key: str) -> Ask | None:
        """The placeholder is gone: where its member lands; ``None``: nowhere yet (X39)."""
        held = app.placeholders[key]
        ask, node = held.taken_by, held.target
        assert ask is not None and node is not None
        node.allocated = plus(node.allocated, self._held_on_target(held), -1)
        if not _takes(node, ask):
            swaps = _takes(held.node, ask) and (not held.growth or _fits_after(ask, held))
            node = held.node if swaps else self._open_node(ask)
            if node is held.node and not swaps:
                node = None
        held.node.allocated = plus(held.node.allocated, held.ask.resources, -1)
        del app.placeholders[key]
        app.task_groups[ask.task_group].replaced += 1
        if node is None:
            app.stranded.append(ask)
            return None
        app.allocations[ask.key] = Held(ask, node)
        node.allocated = plus(node.allocated, ask.resources)
        del app.asks[ask.key]
        return ask

    def _land(self) -> None:
        """Members without a node get one that has room by now."""
        for app in list(self.apps.values()):
            for ask in list(app.stranded):
                node = self._open_node(ask)
                if node is not None:
                    app.stranded.remove(ask)
                    del app.asks[ask.key]
                    self._landed(app, ask, node)


def _takes(node: Node, ask: Ask) -> bool:
    return node.schedulable or ask.required_node == node.node_id


def _fits_after(ask: Ask, held: Held) -> bool:
    node = held.node
    if node.reserved_by is not None and node.reserved_by is not ask:
        return False
    return fits(plus(node.available, held.ask.resources), ask.resources)


def _beyond(asked: Resources, have: Resources) -> Resources:
    return {name: v - have.get(name, 0) for name, v in asked.items() if v > have.get(name, 0)}
