"""Preemption for a gang whose members are placed in one step: victims for all members that lack room,
or none at all (G3, 5.9).

The rules are those for single asks, but the gang counts as a whole: its queue must be within its
guarantee with all members, and all members must have a node when the victims are gone. Members use free
room first; the others get the nodes with the fewest victims, one after the other. A member that requires
its node gets room there as in ``required_node``. See D145.
"""

from __future__ import annotations

from collections import deque
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from quadriga.core.preemption.candidates import Eviction, by_kind, candidates_for, of_application
from quadriga.core.preemption.guaranteed import (
    NO_CANDIDATES,
    NO_NODE,
    NOT_WITHIN,
    TOO_LITTLE,
    further_victims,
    snapshots_for,
)
from quadriga.core.preemption.on_nodes import Offer, answer, offer_on
from quadriga.core.preemption.queue_snapshot import QueueSnapshot, Refusal, Snapshots
from quadriga.core.preemption.required_node import NOT_ENOUGH, may_evict_for
from quadriga.core.preemption.shortfall import Evicted, Shortfall, add_to
from quadriga.core.resources.units import choose, give
from quadriga.core.runtime.remote_predicates import AnswerPending
from quadriga.core.topology.domains import fit, is_local
from quadriga.si.predicates import ANSWER_PENDING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from quadriga.core.model.allocation import Allocation
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import Ask, AskGroup
    from quadriga.core.model.node import Node
    from quadriga.core.preemption.candidates import Candidate
    from quadriga.core.resources.shapes import Shape
    from quadriga.core.resources.vectors import Totals, Vector
    from quadriga.core.runtime.kernel import Kernel

#: why an attempt failed, beside the reasons of single asks
NOT_WILLING: Final = "the preemption policy of a member does not let it preempt others"
NOT_YET: Final = "its members have not waited for the preemption delay"
NO_DOMAIN: Final = "in no domain that it may use would all its members have room"
NO_QUOTA: Final = "a quota or a limit would have no room for all its members"

#: a node with its offer, in the order of offers
_Entry = tuple[tuple[int, int, str], Offer]


class GangEviction(NamedTuple):
    """What to evict, for each member that needs victims, and the first member on each node that the
    gang uses. These nodes are to be reserved for the gang."""

    evictions: list[Eviction]
    nodes: dict[Node, Ask]

    @property
    def victims(self) -> tuple[Allocation, ...]:
        return tuple([victim for each in self.evictions for victim in each.victims])


# -- whether the gang may preempt ------------------------------------------------------------------


def from_queues(members: Iterable[AskGroup]) -> list[AskGroup]:
    """The groups whose asks may preempt for the guarantee of their queue: those that can run on several
    nodes."""
    return [group for group in members if not group.shape.required_node]


def due(app: Application, members: Iterable[AskGroup]) -> int:
    """The instant (ns) from which all members have waited for the preemption delay of their leaf."""
    created = max((ask.created for group in members for ask in group.asks.values()), default=0)
    return created + app.queue.properties.preemption_delay


def needs_of(app: Application, members: Iterable[AskGroup]) -> Vector:
    """What all outstanding members ask for together, with an entry for each type."""
    total = [0] * len(app.queue.allocated)
    for group in members:
        pending = group.pending
        for at, value in group.shape.need:
            total[at] += value * pending
    return tuple(total)


def refusal(app: Application, members: list[AskGroup], snapshots: Snapshots) -> Refusal | None:
    """Why the gang may not preempt for the guarantee of its queue; ``None`` if it may."""
    for group in from_queues(members):
        if not all(ask.terms.allow_preempt_other for ask in group.asks.values()):
            return Refusal(NOT_WILLING, app.queue, [])
    return snapshots.refusal(needs_of(app, members))


# -- the search ------------------------------------------------------------------------------------


def search(
    kernel: Kernel, app: Application, members: list[AskGroup], *, short_of_quota: bool
) -> GangEviction | str:
    """What to evict so that all members can start, or why that is impossible.

    ``short_of_quota``: a quota has no room for all members; nodes may have.
    """
    if kernel.measure is None:
        return _Search(kernel, app, members).run(short_of_quota)
    with kernel.measure("preemption"):
        return _Search(kernel, app, members).run(short_of_quota)


def room_without(
    kernel: Kernel,
    app: Application,
    members: list[AskGroup],
    victims: list[Candidate],
    own: Iterable[Node] = (),
) -> GangEviction | str:
    """The eviction of all these victims, if these members of a gang all have room then; or why they have not. ``own``
    are the nodes of its planned start."""
    try:
        return _Search(kernel, app, members).run_without(victims, own)
    except AnswerPending:
        return NO_NODE


class _Search:
    """One attempt: the places and the victims found so far. Nothing is changed by it."""

    __slots__ = (
        "_app",
        "_by_node",
        "_chosen",
        "_chosen_nodes",
        "_evicted",
        "_fixed",
        "_found",
        "_free",
        "_kernel",
        "_members",
        "_nodes",
        "_partition",
        "_predicate",
        "_snapshots",
        "_victims",
    )

    def __init__(self, kernel: Kernel, app: Application, members: list[AskGroup]) -> None:
        self._kernel = kernel
        self._app = app
        self._partition = app.partition
        self._predicate = kernel.predicates.get(app.partition.rm.rm_id)
        self._members = members
        self._snapshots = snapshots_for(kernel, app.queue)
        #: what nodes have free with the places and victims so far, where that is not what they have now
        self._free: dict[Node, Totals] = {}
        #: the nodes used, each with its first member
        self._nodes: dict[Node, Ask] = {}
        #: a node for each member of a group, where domains matter (Q13)
        self._chosen_nodes: dict[AskGroup, list[Node]] = {}
        #: the victims so far, each with the member that it makes room for
        self._chosen: dict[Candidate, Ask] = {}
        self._victims: set[Allocation] = set()
        self._evicted = Evicted()
        #: the victims are given, and no others are searched
        self._fixed = False
        #: the candidates for the guarantee of the queue, once they are needed
        self._found: list[Candidate] | None = None
        self._by_node: dict[Node, list[Candidate]] = {}

    def run(self, short_of_quota: bool) -> GangEviction | str:
        local = is_local(self._members)
        why = self._find_candidates() if short_of_quota or (local and not self._fixed) else ""
        if local and not why:
            why = self._choose_domains()
        for group in sorted(self._members, key=self._order):
            why = why or self._place(group)
        if why:
            return why
        more: list[Candidate] | None = []
        if self._found is not None:
            shortfall = Shortfall(self._path, needs_of(self._app, self._members))
            rest = [each for each in self._found if each.allocation not in self._victims]
            rest.sort(key=lambda each: each.willing_first)
            more = further_victims(shortfall, self._chosen, rest)
        if more is None:
            return NOT_WITHIN
        if not (self._chosen or more):
            return NO_NODE
        if not self._fits_quotas([*self._chosen, *more]):
            return NO_QUOTA
        return GangEviction(self._evictions(more), self._nodes)

    def run_without(self, victims: list[Candidate], own: Iterable[Node] = ()) -> GangEviction | str:
        """As ``run``, with these victims and no others, and with these nodes of its own."""
        self._fixed = True
        for node in own:
            self._free_of(node)
        for victim in victims:
            self._choose(victim, self._members[0].head, self._free_of(victim.allocation.node))
        return self.run(False)

    @property
    def _path(self) -> list[QueueSnapshot]:
        return self._snapshots.path

    def _order(self, group: AskGroup) -> tuple[bool, float, object]:
        """Members that require a node come first, then the largest ones."""
        shape, capacity = group.shape, self._partition.capacity
        shares: Any = [value / capacity[at] for at, value in shape.need if capacity[at]]
        largest: float = max(shares, default=0.0)
        return not shape.required_node, -largest, group.rank or group.make_rank()

    def _find_candidates(self) -> str:
        """Find the candidates for the guarantee of the queue, or say why there are none."""
        app, members = self._app, self._members
        refused = refusal(app, members, self._snapshots)
        if refused is not None:
            return refused.why
        own = from_queues(members)
        if not self._partition.config.preemption_enabled or due(app, own) > self._kernel.now:
            return NOT_YET
        total = needs_of(app, members)
        priority = min((group.priority for group in own), default=0)
        found = candidates_for(app.queue, priority, total, self._snapshots)
        found = [each for each in found if each.allocation not in self._victims]
        if not found:
            return NO_CANDIDATES
        with_all = Shortfall(self._path, total)
        with_all.evict_all([*self._chosen, *found])
        if not with_all.covered:
            return TOO_LITTLE
        self._found = found
        for candidate in found:
            self._by_node.setdefault(candidate.allocation.node, []).append(candidate)
        return ""

    def _choose_domains(self) -> str:
        """Find nodes in domains that the gang may use where all members would have room without candidates
        (Q13)."""
        free = {}
        for node in self._partition.node_index.nodes:
            if node.open and (node.reservation is None or node.reservation.ask.app is self._app):
                free[node] = list(self._available(node))
                for candidate in self._by_node.get(node, ()):
                    add_to(free[node], candidate.allocation.vector)
                    give(free[node], candidate.allocation.units)
        own = [each.node for each in self._app.reservations if each.node in free]
        for part, node, number in fit(self._partition, self._members, free, own=own).places:
            group = next(iter(part.key)).group
            self._chosen_nodes.setdefault(group, []).extend([node] * number)
        return "" if self._chosen_nodes else NO_DOMAIN

    def _place_on(self, group: AskGroup, asks: list[Ask]) -> str:
        """Place the asks on the nodes that were chosen for their group."""
        shape = group.shape
        for ask, chosen in zip(asks, self._chosen_nodes[group], strict=True):
            node = self._next_ready(deque((chosen,)), ask, shape)
            if node is None and not self._fixed:
                offers = [(each.order, each) for each in (self._offer(chosen, shape),) if each]
                node = self._evict_on_best_node(ask, shape, offers)
            if node is None:
                return NO_NODE
            self._take(node, shape)
            self._nodes.setdefault(node, ask)
        return ""

    def _take(self, node: Node, shape: Shape) -> None:
        free = self._free_of(node)
        add_to(free, shape.vector, -1)
        if shape.shares:
            give(free, choose(shape.shares, free), -1)

    # -- places ------------------------------------------------------------------------------------

    def _place(self, group: AskGroup) -> str:
        """Find a node for each ask of the group; return why there is none."""
        shape = group.shape
        asks = [ask for ask in group.asks.values() for _ in range(ask.pending)]
        if self._chosen_nodes:
            return self._place_on(group, asks)
        ready = deque(self._with_room(shape, len(asks)))
        offers: list[_Entry] | None = None
        for ask in asks:
            node = self._next_ready(ready, ask, shape)
            if node is None and self._fixed:
                return NO_NODE
            if node is None and shape.required_node:
                node = self._evict_on_required_node(ask, shape)
                if node is None:
                    return NOT_ENOUGH
            elif node is None:
                if self._found is None:
                    why = self._find_candidates()
                    if why:
                        return why
                if offers is None:
                    offers = self._offers(shape)
                node = self._evict_on_best_node(ask, shape, offers)
                if node is None:
                    return NO_NODE
            if node not in ready:  # it may have room for the next one
                ready.appendleft(node)
            self._take(node, shape)
            self._nodes.setdefault(node, ask)
        return ""

    def _with_room(self, shape: Shape, number: int) -> list[Node]:
        """The nodes with room for an ask of the shape, best first: those that the gang uses or keeps,
        and enough others."""
        if shape.required_node:
            node = self._partition.nodes.get(shape.required_node)
            nodes = [] if node is None else [node]
        else:
            index = self._partition.node_index
            most = number + len(self._free) if self._predicate is None else len(index.nodes)
            known = dict.fromkeys(each.node for each in self._app.reservations)
            known.update(dict.fromkeys(self._free))
            known.update(dict.fromkeys(index.first(shape, most)))
            nodes = list(known)
        return [n for n in nodes if self._may_use(n, shape) and shape.fits(self._available(n))]

    def _may_use(self, node: Node, shape: Shape) -> bool:
        """Whether the node takes allocations of this gang. A required node may be reserved for an ask
        that can run elsewhere."""
        kept = node.reservation
        if not node.open or kept is None or kept.ask.app is self._app:
            return node.open
        return bool(shape.required_node) and not kept.ask.required_node

    def _available(self, node: Node) -> Totals:
        """What the node has free, to be read."""
        known = self._free.get(node)
        return node.available if known is None else known

    def _free_of(self, node: Node) -> Totals:
        """What the node has free, to be changed."""
        known = self._free.get(node)
        if known is None:
            known = self._free[node] = list(node.available)
        return known

    def _next_ready(self, ready: deque[Node], ask: Ask, shape: Shape) -> Node | None:
        while ready and not shape.fits(self._available(ready[0])):
            ready.popleft()
        if self._predicate is None:
            return ready[0] if ready else None
        for node in ready:
            if shape.fits(self._available(node)):
                said = self._predicate(ask.ask_key, node.node_id, True)
                if said is ANSWER_PENDING:
                    raise AnswerPending
                if said is None:
                    return node
        return None

    # -- victims -----------------------------------------------------------------------------------

    def _evict_on_required_node(self, ask: Ask, shape: Shape) -> Node | None:
        """Choose victims on the node that the ask requires, whatever is guaranteed to their queues."""
        node = self._partition.nodes.get(shape.required_node)
        if node is None or not self._may_use(node, shape):
            return None
        found = [
            candidate
            for app in dict.fromkeys(allocation.ask.app for allocation in node.allocations)
            if app is not self._app
            for candidate in of_application(app, self._snapshots.of(app.queue))
            if candidate.allocation.node is node
            and candidate.allocation not in self._victims
            and may_evict_for(ask, candidate)
        ]
        free = self._free_of(node)
        for candidate in sorted(found, key=by_kind):
            self._choose(candidate, ask, free)
            self._evicted.force(candidate)
            if shape.fits(free):
                return node
        return None

    def _offers(self, shape: Shape) -> list[_Entry]:
        """A heap with the offer of each node that has candidates."""
        offers = []
        for node in self._by_node:
            if self._may_use(node, shape) and not shape.fits(self._available(node)):
                offer = self._offer(node, shape)
                if offer is not None:
                    offers.append((offer.order, offer))
        heapify(offers)
        return offers

    def _offer(self, node: Node, shape: Shape) -> Offer | None:
        here = [c for c in self._by_node[node] if c.allocation not in self._victims]
        return offer_on(node, shape, here, self._available(node), self._evicted)

    def _evict_on_best_node(self, ask: Ask, shape: Shape, offers: list[_Entry]) -> Node | None:
        """Choose the node with the fewest victims, and these victims.

        An offer was made before other victims were chosen, so it is made anew when it is first in order.
        """
        later: list[_Entry] = []
        node = None
        while offers and node is None:
            made, old = heappop(offers)
            if shape.fits(self._available(old.node)):  # the predicates refuse it for this member
                later.append((made, old))
                continue
            offer = self._offer(old.node, shape)
            if offer is None:
                continue
            if offer.order > made and offers and offer.order > offers[0][0]:
                heappush(offers, (offer.order, offer))
                continue
            said = answer(self._kernel, self._partition.rm.rm_id, ask, offer)
            if isinstance(said, Offer):
                node = said.node
                free = self._free_of(node)
                for candidate in said.chosen:
                    self._choose(candidate, ask, free)
                    self._evicted.force(candidate)
                later.append((made, said))  # more victims there may make room for the next member
            elif said is ANSWER_PENDING:
                raise AnswerPending
            else:
                later.append((offer.order, offer))
        for entry in later:
            heappush(offers, entry)
        return node

    def _choose(self, candidate: Candidate, ask: Ask, free: Totals) -> None:
        self._chosen[candidate] = ask
        self._victims.add(candidate.allocation)
        add_to(free, candidate.allocation.vector)
        give(free, candidate.allocation.units)

    # -- the result --------------------------------------------------------------------------------

    def _fits_quotas(self, victims: list[Candidate]) -> bool:
        """Whether every quota and limit has room for all members without the victims. What others have
        preempted is theirs."""
        app, total = self._app, needs_of(self._app, self._members)
        freed = {queue: [0] * len(total) for queue in app.queue.lineage}
        for victim in victims:
            for queue in victim.allocation.ask.app.queue.lineage:
                if queue in freed:
                    add_to(freed[queue], victim.allocation.vector)
        for queue, back in freed.items():
            asked = total
            if queue.parent is None:  # root's max does not bound members that require their node
                asked = needs_of(app, from_queues(self._members))
            for at, limit in queue.limits:
                kept = queue.reserved_headroom[at] - app.own_headroom(at)
                if queue.parent is None:  # root's quota is what the nodes have
                    kept = 0
                if asked[at] > max(0, limit - queue.allocated[at] + back[at] - kept):
                    return False
        return not any(
            total[at] > max(0, limit - ledger.usage[at])
            for ledger in app.limiting
            for at, limit in ledger.resources
        )

    def _evictions(self, more: list[Candidate]) -> list[Eviction]:
        """One eviction for each member that needs victims; the first one has those elsewhere as well."""
        victims: dict[Ask, list[Allocation]] = {}
        for candidate, ask in self._chosen.items():
            victims.setdefault(ask, []).append(candidate.allocation)
        if more:
            first = next(iter(victims), None) or self._members[0].head
            victims.setdefault(first, []).extend([each.allocation for each in more])
        found = []
        for ask, allocations in victims.items():
            kind = "daemon set ask" if ask.required_node else "ask"
            text = f"preempting allocations to free up resources to run {kind}: {ask.ask_key}"
            found.append(Eviction(tuple(allocations), ask, text))
        return found
