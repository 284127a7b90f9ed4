"""The domains of a partition: nodes with the same values of labels (Q13).

A partition declares its levels from wide to narrow. A domain of a level has the nodes with one value of its
label and of the labels of wider levels: two zones may both have a rack of the name ``r1``. A node without
the label is in no domain of the level. The index is made anew when nodes came, went or changed a label,
and only if a gang asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]

#: the whole partition as one domain, wider than each level
WHOLE: Final = -1
#: a node without the label of a level, or a level that is not declared
NO_DOMAIN: Final = -1


class Levels:
    """The levels of a partition. Domains of a level have numbers, in the order of their values."""

    __slots__ = ("_domains", "_made_for", "_names", "_parents", "labels")

    def __init__(self) -> None:
        self.labels: tuple[str, ...] = ()
        #: by level, the number of the domain of each node, by position
        self._domains: list[Numbers] = []
        #: by level, the values of each domain, from the widest level down
        self._names: list[list[tuple[str, ...]]] = []
        #: the number of the domain of a wider level that has each domain of a level
        self._parents: dict[tuple[int, int], Numbers] = {}
        #: the layout of nodes that this is for
        self._made_for: object = None

    def configure(self, labels: Sequence[str]) -> None:
        """The levels, from wide to narrow."""
        self.labels = tuple(labels)
        self.forget()

    def forget(self) -> None:
        """The labels of a node have changed."""
        self._made_for = None

    def differ(self, one: Mapping[str, str], other: Mapping[str, str]) -> bool:
        """Whether nodes with these attributes are in different domains."""
        return any(one.get(label) != other.get(label) for label in self.labels)

    def number(self, label: str) -> int | None:
        """The number of the level, 0 for the widest one; ``None`` if it is not declared."""
        return self.labels.index(label) if label in self.labels else None

    def update(self, layout: object, attributes: Callable[[], Sequence[Mapping[str, str]]]) -> None:
        """The nodes are those of this layout; ``attributes`` returns those of each node, by position."""
        if self._made_for is layout:
            return
        of_nodes = attributes()
        self._domains, self._names, self._parents = [], [], {}
        paths: list[Any] = [()] * len(of_nodes)
        for label in self.labels:
            values = [each.get(label, "") for each in of_nodes]
            paths = [(*path, value) for path, value in zip(paths, values, strict=True)]
            names = sorted({path for path in paths if path[-1]})
            numbers = {path: number for number, path in enumerate(names)}
            found = [numbers.get(path, NO_DOMAIN) for path in paths]
            self._domains.append(np.array(found, dtype=np.int64))
            self._names.append(names)
        self._made_for = layout

    def domains(self, level: int, nodes: int) -> Numbers:
        """The number of the domain of each of so many nodes, by position."""
        return self._domains[level] if level >= 0 else np.zeros(nodes, dtype=np.int64)

    def size(self, level: int) -> int:
        """The number of domains of the level."""
        return len(self._names[level]) if level >= 0 else 1

    def parents(self, narrow: int, wide: int) -> Numbers:
        """The number of the domain of level ``wide`` that each domain of level ``narrow`` is part of."""
        if wide < 0:
            return np.zeros(self.size(narrow), dtype=np.int64)
        known = self._parents.get((narrow, wide))
        if known is None:
            inner, outer = self._domains[narrow], self._domains[wide]
            known = np.full(self.size(narrow), NO_DOMAIN, dtype=np.int64)
            known[inner[inner >= 0]] = outer[inner >= 0]
            self._parents[narrow, wide] = known
        return known

    def name(self, level: int, domain: int) -> str:
        """The domain in words: its values from the widest level down."""
        return "/".join(value or "?" for value in self._names[level][domain]) if level >= 0 else ""
