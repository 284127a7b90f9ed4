"""Which node: the lowest (score, node id) among those where the ask fits (5.7).

The index keeps the nodes in the order of their ids. For every shape of ask that is looked for it has
a column with one score for each node, infinite where the shape does not fit or the node takes nothing
new, so the exact choice is one ``argmin`` (``scores``). A change of a node is only noted in a log; a
column catches up when its shape is next looked for, so a change costs nothing for other shapes. Most
choices need no column at all: where nodes are filled evenly the first of the best nodes mostly fits
(``best_nodes``), and where they are packed the node that was chosen last comes first again. Only where
nodes have devices the score depends on the shape as well (``device_order``).

A shape for which no node has room loses its bit in ``feasible`` and is not looked for again until a
node gains room for it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from math import inf
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from quadriga.core.model.node import NodeOrder
from quadriga.core.ordering.best_nodes import BestNodes
from quadriga.core.ordering.device_order import DeviceOrder, order_of
from quadriga.core.ordering.free import FreeAmounts, Matrix
from quadriga.core.ordering.known_room import KnownRoom
from quadriga.core.ordering.lending import lends
from quadriga.core.ordering.policies import NODE_POLICIES, weigh
from quadriga.core.ordering.reservable import could_reserve, reservable_amounts
from quadriga.core.ordering.room import RoomWatch, room_on
from quadriga.core.ordering.scores import Column, Columns, Scores, inserted, removed, shifted
from quadriga.core.resources.shapes import RESERVE, Shape, Shapes
from quadriga.core.resources.units import WHOLE, room_of_nodes
from quadriga.core.resources.vectors import Registry, Totals, Vector

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    import numpy.typing as npt

    from quadriga.core.config import PartitionConfig
    from quadriga.core.model.application import Application
    from quadriga.core.model.gang import RoomWanted
    from quadriga.core.model.node import Node

#: at most this many new nodes are put between the others one by one
_FEW_NEW: Final = 16
#: to copy the list of nodes is as quick as to insert this many
_MANY_NEW: Final = 400
#: at most this many nodes that went are taken out of the columns; beyond that all are made anew
_FEW_GONE: Final = 256


def _node_id(node: Node) -> str:
    return node.node_id


class NodeIndex(NodeOrder):
    """The nodes of a partition and, for each shape, their scores."""

    __slots__ = (
        "_best_nodes",
        "_columns",
        "_config",
        "_device_types",
        "_devices",
        "_free",
        "_gone",
        "_kept",
        "_known",
        "_laid",
        "_log",
        "_log_limit",
        "_lost",
        "_most",
        "_node_ids",
        "_policy",
        "_registry",
        "_reservable",
        "_room",
        "_room_watch",
        "_sizes",
        "_stale",
        "_unreserved",
        "_values",
        "_weights",
    )

    def __init__(self, shapes: Shapes) -> None:
        super().__init__(shapes)
        self._policy = NODE_POLICIES["fair"]
        #: (type, weight) in the order of the types' names
        self._weights: tuple[tuple[int, float], ...] = ()
        #: types that are devices, and the order of nodes if some have any and the policy knows devices
        self._device_types: tuple[int, ...] = ()
        self._devices: DeviceOrder | None = None
        #: by type, the capacity of the largest node, if the policy counts in shares of it
        self._most: Totals = []
        #: nodes that any application may use; without one, no node can be reserved
        self._unreserved: dict[Node, None] = {}
        #: reserved nodes, which asks that end soon may use (Q7)
        self._kept: dict[Node, None] = {}
        #: further nodes may be reserved (Q7)
        self._reservable = True
        #: the score of each node, in node order
        self._values: Column = np.zeros(0)
        #: IDs in node order, once they are asked for
        self._node_ids: tuple[str, ...] | None = None
        self._best_nodes = BestNodes()
        #: positions of nodes that have changed since the columns were made
        self._log: list[int] = []
        self._log_limit = 0
        #: nodes came or went; the new ones are the last, and if not ``_lost`` the others are in order
        self._stale = self._lost = False
        #: positions of nodes that went since, in order: all other positions still count them
        self._gone: list[int] = []
        #: the number of nodes of each capacity, those that have a position
        self._sizes: Counter[Vector] = Counter()
        #: the number of the layout that positions are in
        self._laid = 0
        #: by shape
        self._columns: dict[Shape, Columns] = {}
        self._free = FreeAmounts()
        self._known = KnownRoom()
        self._room_watch = RoomWatch()
        #: the room for one shape on all nodes, when the log had this length and nodes were lent for this time
        self._room: tuple[tuple[Shape, int, int], Matrix] | None = None

    # -- changes -----------------------------------------------------------------------------

    def configure(self, config: PartitionConfig, registry: Registry) -> None:
        self._policy = NODE_POLICIES[config.node_sort_policy]
        self._config, self._registry = config, registry
        weights = sorted(config.resource_weights.items())
        self._weights = tuple([(registry.position(name), weight) for name, weight in weights])
        self.relayout()

    def relayout(self) -> None:
        self._stale = self._lost = True
        names = enumerate(self._registry.names if self._policy.devices else ())
        self._device_types = tuple([at for at, name in names if self._config.is_device(name)])

    def add(self, node: Node) -> None:
        self.nodes.append(node)
        self._stale = True
        self.gained(node)

    def remove(self, node: Node) -> None:
        if self._lost or node.laid < 0:
            self.nodes.remove(node)
        else:
            at = self.position(node)
            place = bisect_left(self._gone, at)
            self._gone.insert(place, at)
            del self.nodes[at - place]
            self._count_size(tuple(node.total), -1)
        node.laid = -1
        self._stale = True
        self._lost |= len(self._gone) > _FEW_GONE
        self.grown.pop(node, None)
        self._unreserved.pop(node, None)
        self._kept.pop(node, None)
        self._known.node_removed(node)
        self._room_watch.removed(node)
        if self.planned is not None:
            self.planned.stale = True
            self.planned.needs.pop(node, None)
            node.partition.gather_budget.drop(node)
        for changed in self.watchers:
            changed[node] = None

    def resized(self, node: Node, before: Vector) -> None:
        if self._lost or node.laid < 0:
            return
        self._sizes[tuple(node.total)] += 1
        self._count_size(before, -1)
        self.weigh(node)

    def changed(self, node: Node) -> None:
        self.grown[node] = None
        if node.free:
            self._unreserved[node] = None
            self._kept.pop(node, None)
        else:
            if node.reservation is not None or node.beside is not None:
                self._kept[node] = None
            if node in self._unreserved:
                del self._unreserved[node]
                if not self._unreserved:
                    self._nothing_to_reserve()
        self.took(node)

    def took(self, node: Node, shape: Shape | None = None) -> None:
        """The column that was searched last is likely to be searched again, and is kept up to date."""
        self._known.refilled_now = -1
        if self.planned is not None or self.watchers or self._room_watch.counts:
            self._report(node, shape)
        if self._lost or node.laid < 0:
            return
        score, log = self._score(node), self._log
        position = node.position if node.laid == self._laid else self.position(node)
        before, node.score = node.score, score
        self._values[position] = score
        if score <= self._best_nodes.bound:
            self._best_nodes.put(score, position)
        if shape is not None:
            columns = self._columns.get(shape)
            if columns is not None and columns.synced == len(log) and not shape.required_node:
                if (scores := columns.scores) is not None:
                    if not shape.fits(node.available):
                        score = inf
                    elif self._devices is not None and score != inf:
                        score = self._devices.score(node, shape, score)
                        before = scores.values.item(position)
                    if columns.first is not node or score > before:
                        columns.first = None
                    scores.each[position] = score
                    columns.synced += 1
        log.append(position)
        if len(log) > self._log_limit:
            self._trim()

    def _report(self, node: Node, shape: Shape | None) -> None:
        """Report the change to the planned start, to the gangs that wait for room, and to running reads."""
        if node.beside is not None and self.planned is not None:
            self.planned.took(node, shape, self.now)
            node.partition.gather_budget.changed(node)
        if self._room_watch.counts:
            self._room_watch.changed(node)
        for changed in self.watchers:
            changed[node] = None

    def gained(self, node: Node) -> None:
        self.changed(node)
        known, feasible = self._known, self.feasible
        known.node_gained(node, feasible)
        if self.planned is not None:
            self.planned.stale = True
            if node.beside is not None:
                node.partition.gather_budget.changed(node)
        if (room := node.for_all) is not None:
            if known.missing(feasible):
                feasible |= known.within(room)
            if (
                node.beside is None
                and self._reservable
                and not node.barred
                and known.missing(feasible >> RESERVE)
            ):
                feasible |= known.within(reservable_amounts(node)) << RESERVE
        for shape in known.others:
            if not shape.asks:  # idle: it is watched anew when an ask has it
                continue
            if not feasible & shape.allocate and self.takes(node, shape):
                feasible |= shape.allocate
            if (
                not feasible & shape.reserve
                and (self._reservable or shape.required_node)
                and could_reserve(node, shape)
            ):
                feasible |= shape.reserve
        self.feasible = feasible
        if self._room_watch.counts:
            self._room_watch.gained(node, self._longest, self.now)

    def plan_undone(self, feasible: int) -> None:
        self._known.searched &= ~feasible
        self.feasible = feasible

    def watch(self, shape: Shape) -> None:
        self._known.add(shape)
        self.feasible |= shape.allocate | shape.preempt
        if (self._unreserved and self._reservable) or shape.required_node:
            self.feasible |= shape.reserve

    def allow_reservations(self, allowed: bool) -> None:
        if allowed == self._reservable:
            return
        self._reservable = allowed
        if not allowed:
            self._nothing_to_reserve()
        elif self._unreserved:  # assume that any of them may be reserved until a search finds none
            self.feasible |= self._known.table << RESERVE
            for shape in self._known.others:
                if shape.asks:
                    self.feasible |= shape.reserve

    def _nothing_to_reserve(self) -> None:
        self.feasible &= ~(self._known.table << RESERVE)
        for shape in self._known.others:
            if not shape.required_node:
                self.feasible &= ~shape.reserve

    def forget(self, shape: Shape) -> None:
        self.feasible &= ~shape.bits
        self._known.forget(shape)
        self._columns.pop(shape, None)

    def takes(self, node: Node, shape: Shape) -> bool:
        if shape.required_node:  # asks that require it, and came first, have it reserved (5.6)
            kept = node.reservation
            mine = kept is None or not kept.ask.required_node
            return mine and node.node_id == shape.required_node and shape.fits(node.available)
        if node.free:
            return shape.fits(node.available)
        return lends(node, shape, self.now)

    # -- choices -----------------------------------------------------------------------------

    def full(self) -> int:
        return self._known.without_room()

    def lacks(self, shape: Shape) -> None:
        self.feasible &= ~shape.allocate

    def within(self, amounts: Totals) -> int:
        return self._known.within(amounts)

    def may_fit(self, amounts: Totals) -> int:
        return self._known.within(amounts) | ~self._known.table

    def best(self, shape: Shape) -> Node | None:
        known = self._known
        if known.searched & shape.allocate and known.without_room() & shape.allocate:
            self.lacks(shape)
            return None
        if self._stale:
            self._layout()
        if self._policy.fills_evenly and not shape.required_node:
            first = self._best_nodes.first(self.nodes) or self._find_best_nodes()
            if first is not None and shape.fits(first.available):
                return first
        columns = self._columns.get(shape)
        if columns is None or columns.scores is None or columns.synced != len(self._log):
            columns = self._synced(shape)
        if columns.first is None:
            assert columns.scores is not None
            position = columns.scores.first()
            if position < 0:
                lent = self.lent(shape)
                if not lent:
                    self.lacks(shape)
                    known.nothing_found(shape)
                    return None
                return lent[0]
            columns.first = self.nodes[position]
        return columns.first

    def _find_best_nodes(self) -> Node | None:
        """Search for the best nodes anew, as the known ones are used up; return the first of them."""
        best_nodes = self._best_nodes
        if best_nodes.whole:
            return None
        best_nodes.fill(self._values)
        return best_nodes.first(self.nodes)

    def in_order(self, shape: Shape) -> list[Node]:
        scores = self._synced(shape).scores
        assert scores is not None
        values = scores.values
        order = values.argsort(kind="stable")[: np.count_nonzero(values < inf)]
        nodes = self.nodes
        return [nodes[position] for position in order.tolist()] + self.lent(shape)

    def position(self, node: Node) -> int:
        if 0 <= node.laid != self._laid:
            known = len(self._values) - len(self._gone)
            at = bisect_left(self.nodes, node.node_id, 0, known, key=_node_id)
            for gone in self._gone:
                at += gone <= at
            node.position, node.laid = at, self._laid
        return node.position

    def amounts(self) -> tuple[Matrix, npt.NDArray[np.bool_]]:
        self._put_in_order()
        return self._free.of(self.nodes, self._log), self._values < inf

    def amounts_in_steps(self) -> Iterator[None]:
        for _ in range(8 + len(self.nodes) // 100):  # nodes may come and go faster
            self._put_in_order()
            if self._free.read_on(self.nodes, self._log):
                break
            yield

    def sizes(self) -> Counter[Vector]:
        self._put_in_order()
        return self._sizes

    def node_ids(self) -> tuple[str, ...]:
        self._put_in_order()
        if self._node_ids is None:
            self._node_ids = tuple([node.node_id for node in self.nodes])
        return self._node_ids

    def without(self, shape: Shape, refused: npt.NDArray[Any]) -> Iterator[Node]:
        scores = self._synced(shape).scores
        assert scores is not None
        left = np.where(refused, inf, scores.values)
        while len(left):
            position = int(left.argmin())
            if left.item(position) == inf:
                break
            left[position] = inf
            yield self.nodes[position]
        for node in self.lent(shape):
            if not refused[self.position(node)]:
                yield node

    def tally(self, shape: Shape, numbers: npt.NDArray[Any]) -> list[int]:
        scores = self._synced(shape).scores
        assert scores is not None
        lent = [self.position(node) for node in self.lent(shape)]
        chosen = np.concatenate((numbers[scores.values < inf], numbers[lent]))
        return list(map(int, np.bincount(chosen)))

    def lent(self, shape: Shape) -> list[Node]:
        if shape.required_node or not (shape.runtime or self.planned):
            return []
        found = [node for node in self._kept if lends(node, shape, self.now)]
        return sorted(found, key=lambda node: (self.policy_score(node, shape), node.node_id))

    def first(self, shape: Shape, number: int) -> list[Node]:
        scores = self._synced(shape).scores
        assert scores is not None
        values = scores.values
        able = values < inf
        if np.count_nonzero(able) > number:
            able = values <= np.partition(values, number - 1)[number - 1]
        positions = np.flatnonzero(able)
        order = values[positions].argsort(kind="stable")[:number]
        return [self.nodes[position] for position in positions[order]]

    @property
    def packs(self) -> bool:
        return not self._policy.fills_evenly and self._devices is None

    def policy_score(self, node: Node, shape: Shape) -> float:
        score = self._policy.score(node)
        return score if self._devices is None else self._devices.score(node, shape, score)

    def best_to_reserve(self, shape: Shape) -> Node | None:
        """Lowest FitInScore of what is free now, of nodes that are large enough when they are empty (5.7)."""
        self._put_in_order()
        node = self._of(shape).to_reserve.best(shape, self.nodes, self._log, self._values)
        if node is None:
            self.feasible &= ~shape.reserve
        return node

    def score(self, node: Node, shape: Shape) -> float:
        self._put_in_order()
        return self._score_for(node, shape)

    def _score(self, node: Node) -> float:
        """Infinite for a node that takes nothing new, else the policy's score: low is preferred."""
        if not node.open or node.reservation is not None or node.beside is not None:
            return inf
        return self._policy.score(node)

    def weigh(self, node: Node) -> None:
        weigh(node, self._weights, self._most if self._policy.absolute else node.total)

    def _find_most(self) -> Totals:
        return [max(amounts) for amounts in zip(*self._sizes, strict=True)]

    def _count_size(self, size: Vector, more: int) -> None:
        """There are this many more nodes of the size: the largest node may be another one."""
        self._sizes[size] += more
        if not self._sizes[size]:
            del self._sizes[size]
        if self._policy.absolute and self._find_most() != self._most:
            self._stale = self._lost = True
        self._find_devices()

    def _find_devices(self) -> None:
        shared, before = self._registry.shared, self._devices
        devices = {at: WHOLE if at in shared else 1 for at in self._device_types}
        self._devices = order_of(before, self._sizes, devices, self._weights)
        if self._devices is not before:
            self._columns.clear()

    # -- room for gangs ----------------------------------------------------------------------

    @property
    def _longest(self) -> int:
        """The longest time (ns) for which nodes of the planned start are lent."""
        return 0 if self.planned is None else self.planned.start - self.now

    def room(self, shape: Shape) -> int:
        return int(self.room_by_position(shape).sum())

    def room_by_position(self, shape: Shape) -> Matrix:
        # it is kept, as a gang that does not fit asks for it again
        self._put_in_order()
        state = (shape, len(self._log), self._longest)
        if self._room is None or self._room[0] != state:
            room = self._free.room(shape, self.nodes, self._log)
            takes = self._values < inf
            if shape.required_node:  # a node that drains takes who requires it
                takes = np.array([self.takes(node, shape) for node in self.nodes], dtype=bool)
            room[~takes] = 0
            if self.planned is not None and not shape.required_node:
                for node in self.planned.needs:
                    room[self.position(node)] = self.room_on(node, shape)
            self._room = state, room
        return self._room[1]

    def room_on(self, node: Node, shape: Shape) -> int:
        return room_on(node, shape, self._longest)

    def scores(self, shape: Shape | None = None) -> Column:
        self._put_in_order()
        return self._values if shape is None else self._new_scores(shape)

    def await_room(self, app: Application, alike: Hashable, wanted: tuple[RoomWanted, ...]) -> None:
        self._put_in_order()
        self._room_watch.wait(app, alike, wanted, self.nodes)

    def forget_wait(self, app: Application) -> None:
        self._room_watch.forget(app)

    def attempted(self, app: Application) -> None:
        self._room_watch.attempted(app)

    def pass_on(self) -> bool:
        return self._room_watch.waits and self._room_watch.pass_on(self.now)

    # -- columns -----------------------------------------------------------------------------

    def _put_in_order(self) -> None:
        if self._stale:
            self._layout()

    def _layout(self) -> None:
        """Put the nodes in order and forget all columns: nodes came or went."""
        self._stale, self._node_ids = False, None
        self._laid += 1
        gone = self._gone
        known = len(self._values) - len(gone)
        fresh = self.nodes[known:]
        most = self._most if self._policy.absolute else []
        grown = any(any(map(int.__gt__, node.total, most)) for node in fresh)
        if not known or self._lost or grown or len(fresh) > known:
            self._sort()
        else:
            del self.nodes[known:]
            self._free.shift(gone, self._log, self.nodes)
            self._columns = shifted(self._columns, gone, self._log, self.nodes, self._score_for)
            if gone:
                self._values = removed(self._values, gone)
                self._best_nodes.delete(gone)
            if len(fresh) > _FEW_NEW:
                self._merge(fresh)
            else:
                for node in fresh:
                    self._insert(node)
        if self._device_types or self._devices is not None:
            self._find_devices()
        self._gone, self._room = [], None
        self._free.synced = 0
        self._log.clear()

    def _insert(self, node: Node) -> None:
        """Put a node between the others."""
        at = self._place(node)
        self.nodes.insert(at, node)
        self._values = inserted(self._values, at, node.score)
        self._free.insert(at, node)
        for shape, columns in self._columns.items():
            if columns.scores is not None:
                columns.scores.insert(at, self._score_for(node, shape))
        self._best_nodes.insert([at], [node.score])

    def _merge(self, fresh: list[Node]) -> None:
        """Put many nodes between the others. What is known of single shapes is forgotten."""
        self._columns.clear()
        self._free.clear()
        fresh.sort(key=_node_id)
        places = [self._place(node) for node in fresh]
        scores = [node.score for node in fresh]
        self._values = np.insert(self._values, places, scores)
        self._best_nodes.insert(places, scores)
        if len(fresh) > _MANY_NEW:
            self.nodes += fresh
            self.nodes.sort(key=_node_id)
        else:
            for at, node in zip(places[::-1], fresh[::-1], strict=True):
                self.nodes.insert(at, node)

    def _place(self, node: Node) -> int:
        """Note what is known of a new node, and return its position between the others."""
        node.laid = 0
        self._sizes[tuple(node.total)] += 1
        self.weigh(node)
        node.score = self._score(node)
        return bisect_left(self.nodes, node.node_id, key=_node_id)

    def _score_for(self, node: Node, shape: Shape) -> float:
        """The entry of an up-to-date node in the column of the shape, which requires no node."""
        if node.score == inf or not shape.fits(node.available):
            return inf
        return node.score if self._devices is None else self._devices.score(node, shape, node.score)

    def _sort(self) -> None:
        """Put all nodes in order."""
        self._lost = False
        self._forget()
        self.nodes.sort(key=_node_id)
        self._sizes = Counter([tuple(node.total) for node in self.nodes])
        if self._policy.absolute:
            self._most = self._find_most()
        first_of_size: dict[Vector, Node] = {}
        for position, node in enumerate(self.nodes):
            node.position, node.laid = position, self._laid
            twin = first_of_size.setdefault(tuple(node.total), node)
            if twin is node:
                self.weigh(node)
            else:  # one copy for all, as each score reads it
                node.weighed, node.weight = twin.weighed, twin.weight
            node.score = self._score(node)
        self._values = np.array([node.score for node in self.nodes], dtype=np.float64)

    def _forget(self) -> None:
        self._log_limit = 4 * len(self.nodes) + 1024
        self._columns.clear()
        self._best_nodes.clear()
        self._free.clear()

    def _trim(self) -> None:
        """The log is long: columns that are behind are forgotten, and no other needs it any longer."""
        behind = len(self._log)
        for columns in self._columns.values():
            if columns.synced < behind:
                columns.scores = None
            if columns.to_reserve.synced < behind:
                columns.to_reserve.clear()
            columns.synced = columns.to_reserve.synced = 0
        if self._free.synced < behind:
            self._free.clear()
        self._free.synced = 0
        self._room = None
        self._log.clear()

    def _of(self, shape: Shape) -> Columns:
        columns = self._columns.get(shape)
        if columns is None:
            columns = self._columns[shape] = Columns()
        return columns

    def _synced(self, shape: Shape) -> Columns:
        """The columns of the shape, with the scores brought up to date."""
        if self._stale:
            self._layout()
        columns, log = self._of(shape), self._log
        scores = columns.scores
        columns.first = None
        if scores is None:
            columns.scores = Scores(self._new_scores(shape))
        elif shape.required_node:
            for position in log[columns.synced :]:
                scores.each[position] = self._required_score(self.nodes[position], shape)
        else:  # a closed or reserved node has an infinite score of its own
            nodes, need, each = self.nodes, shape.need, scores.each
            plain = self._devices is None and not shape.shares
            for position in dict.fromkeys(log[columns.synced :]):
                node = nodes[position]
                available = node.available
                for at, value in need:
                    if available[at] < value:
                        each[position] = inf
                        break
                else:
                    each[position] = node.score if plain else self._score_for(node, shape)
        columns.synced = len(log)
        return columns

    def _required_score(self, node: Node, shape: Shape) -> float:
        return 0.0 if self.takes(node, shape) else inf

    def _new_scores(self, shape: Shape) -> Column:
        if shape.required_node:
            column = np.full(len(self.nodes), inf)
            at = bisect_left(self.nodes, shape.required_node, key=_node_id)
            if at < len(column):
                column[at] = self._required_score(self.nodes[at], shape)
            return column
        if not self.nodes:
            return self._values.copy()
        free = self._free.of(self.nodes, self._log)
        if self._devices is not None:
            column = self._devices.scores(shape, self.nodes, free, self._values)
        else:
            column = self._values.copy()
        for at, value in shape.need:
            column[free[:, at] < value] = inf
        if shape.shares:
            column[room_of_nodes(shape.shares, free) < 1] = inf
        return column
