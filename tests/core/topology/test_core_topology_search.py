"""The search for domains (Q13) beside an exhaustive one: the same gangs fit, in no more domains."""

from itertools import product
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from quadriga.core.resources.levels import Levels
from quadriga.core.resources.locality import Rule
from quadriga.core.resources.shapes import Requirements, Shape
from quadriga.core.topology.packing import MOST_NODES, pack
from quadriga.core.topology.search import Part, Rooms, Search

LABELS = ("zone", "rack", "host")
#: at most five nodes: label values, and what each has free
NODES = st.lists(
    st.tuples(st.sampled_from("ab-"), st.sampled_from("xy-"), st.integers(0, 5)),
    min_size=1,
    max_size=5,
)
RULES = st.builds(
    lambda required, preferred, bounded, least, more: Rule(
        required, preferred, bounded, *((least, least + more) if bounded else ())
    ),
    st.sampled_from(("", "zone", "rack", "host")),
    st.sampled_from(("", "zone", "rack", "host")),
    st.sampled_from(("", "", "rack", "host")),
    st.integers(1, 2),
    st.integers(0, 2),
)


def attributes_of(nodes: list[tuple[str, str, int]]) -> list[dict[str, str]]:
    return [
        {
            **({"zone": zone} if zone != "-" else {}),
            **({"rack": rack} if rack != "-" else {}),
            "host": f"h{at}",
        }
        for at, (zone, rack, _) in enumerate(nodes)
    ]


def search(
    nodes: list[tuple[str, str, int]], parts: list[tuple[int, int]], rule: Rule, packs: bool = True
) -> dict[int, list[int]]:
    """Place parts, each so many members of a size; return the sizes on each node."""
    levels, free = Levels(), [[room] for _, _, room in nodes]
    levels.configure(LABELS)
    levels.update(object(), lambda: attributes_of(nodes))
    rooms = Rooms(
        free.__getitem__, lambda s: np.array([f[0] // s.need[0][1] for f in free], dtype=np.int64)
    )
    more: dict[str, Any] = {"running": {}, "barred": {}, "ready": None, "pack": pack}
    found = Search(
        levels, rooms, np.zeros(len(nodes)), packs=packs, most_packed=MOST_NODES, **more
    ).run(
        [Part(at, Shape(at, Requirements((s,))), n, "g", None) for at, (s, n) in enumerate(parts)],
        rule,
    )
    placed: dict[int, list[int]] = {}
    for part, position, number in found:
        placed.setdefault(position, []).extend([part.shape.vector[0]] * number)
    return placed


def path(nodes: list[tuple[str, str, int]], node: int, level: str) -> tuple[str, ...] | None:
    said = attributes_of(nodes)[node]
    if level not in said:
        return None
    return tuple(said.get(label, "") for label in LABELS[: LABELS.index(level) + 1])


def cost(nodes: list[tuple[str, str, int]], rule: Rule, used: list[int]) -> tuple[int, ...] | None:
    """How good members on these nodes are: how wide their domain is, how many of them are in no preferred one, and
    the number of those.
    ``None`` if the rule forbids it."""
    within = {level: {path(nodes, node, level) for node in used} for level in LABELS}
    if rule.required and (len(within[rule.required]) > 1 or None in within[rule.required]):
        return None
    if rule.bounded:
        counts: dict[Any, int] = {}
        for node in used:
            key = path(nodes, node, rule.bounded)
            counts[key] = counts.get(key, 0) + 1
        if None in counts or not all(rule.least <= n <= rule.most for n in counts.values()):
            return None
    if not rule.preferred:
        return (0,)
    first = LABELS.index(rule.preferred)
    if rule.required and first <= LABELS.index(rule.required):
        return (0,)
    for width, level in enumerate(reversed(LABELS[: first + 1])):
        if len(within[level]) == 1 and None not in within[level]:
            return width, outside(nodes, rule, used), len(within[rule.preferred])
    return 9, outside(nodes, rule, used), len(within[rule.preferred])


def splits_bounds(rule: Rule) -> bool:
    """Whether the bound is for domains wider than the preferred ones: the number of these may be larger."""
    wide = rule.bounded and rule.preferred
    return bool(wide) and LABELS.index(rule.bounded) < LABELS.index(rule.preferred)


def outside(nodes: list[tuple[str, str, int]], rule: Rule, used: list[int]) -> int:
    return sum(path(nodes, node, rule.preferred) is None for node in used)


@given(NODES, st.integers(1, 5), RULES, st.booleans())
def test_q13_members_of_one_shape_fit_where_they_can_in_as_few_domains_as_possible(
    nodes: list[tuple[str, str, int]], number: int, rule: Rule, packs: bool
) -> None:
    placed = search(nodes, [(1, number)], rule, packs)
    used = [node for node, members in placed.items() for _ in members]
    assert all(len(members) <= nodes[node][2] for node, members in placed.items())
    best = None
    for counts in product(*(range(min(room, number) + 1) for _, _, room in nodes)):
        if sum(counts) == number:
            found = cost(nodes, rule, [n for n, c in enumerate(counts) for _ in range(c)])
            best = found if best is None or (found is not None and found < best) else best
    assert len(used) == (number if best is not None else 0)
    if best is not None:
        mine = cost(nodes, rule, used)
        assert mine is not None
        assert mine[0] == best[0]
        if rule.least == 1 and not splits_bounds(rule):
            assert mine == best


@given(NODES.filter(lambda nodes: len(nodes) < 5), st.integers(1, 2), st.integers(1, 3))
def test_q13_members_of_two_sizes_fit_one_rack_if_they_can(
    nodes: list[tuple[str, str, int]], large: int, small: int
) -> None:
    sizes = [3] * large + [2] * small
    placed = search(nodes, [(3, large), (2, small)], Rule("rack"))
    fits = False
    for chosen in product(range(len(nodes)), repeat=len(sizes)):
        taken = [
            sum(s for s, m in zip(sizes, chosen, strict=True) if m == n) for n in range(len(nodes))
        ]
        if all(used <= room for used, (_, _, room) in zip(taken, nodes, strict=True)):
            fits = fits or cost(nodes, Rule("rack"), list(chosen)) is not None
    assert bool(placed) == fits
    assert sorted(size for e in placed.values() for size in e) == (sorted(sizes) if fits else [])
    assert all(sum(each) <= nodes[node][2] for node, each in placed.items())
    assert cost(nodes, Rule("rack"), list(placed)) is not None
