"""Garbage collection of long-running processes."""

from __future__ import annotations

import gc
from typing import Final

#: Thresholds of the garbage collector: the youngest generation is collected every 50,000 new
#: objects, the middle one every 50th time, the oldest every 100th. Most objects here are
#: long-lived, so frequent collections would cost up to a quarter of the time for nothing. But a
#: collection pauses everything else, with these thresholds for about 10 ms. A burst of ten thousand
#: pods creates 40,000 objects and passes without a collection.
_THRESHOLDS: Final = (50_000, 50, 100)

#: In a service the longest pause matters. With the second threshold above, a collection would cover
#: 2.5 million objects and take a second; with this one it covers 75,000 and takes about 20 ms. A
#: full collection takes seconds with a million pods, so it happens only after some 300 million new
#: objects.
_WHILE_SERVING: Final = (25_000, 1, 5_000)


def look_less_often(*, serving: bool = False) -> None:
    """Set the thresholds for a process with many long-lived objects."""
    gc.set_threshold(*(_WHILE_SERVING if serving else _THRESHOLDS))
