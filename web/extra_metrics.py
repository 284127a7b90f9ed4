"""The type of metrics that other parts of a process add to the scheduler's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

#: one metric: name, ``counter`` or ``gauge``, help text, and samples with their labels
Measured = tuple[str, str, str, Sequence[tuple[Mapping[str, str], int | float]]]

#: called for every scrape
ExtraMetrics = Callable[[], Iterable[Measured]]
