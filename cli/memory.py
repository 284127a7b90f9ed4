"""How often a process of ours looks for garbage."""

from __future__ import annotations

import gc
from typing import Final

__all__ = ["look_less_often"]

#: New objects until they are looked through, and how often that is done until the older ones are looked
#: through as well. Most of what is made here stays, so looking often costs up to a quarter of the time for
#: nothing; but all that are looked at together hold everything else up, these for about 10 ms. A burst of ten
#: thousand pods makes 40,000, and passes without a look.
_THRESHOLDS: Final = (50_000, 50, 100)

#: Where others wait for the process the longest look counts. The second number above makes one of 2.5 million
#: objects, which takes a second; here it is of 75,000, about 20 ms. A look at everything takes seconds with a
#: million pods, so it comes after some 300 million new objects.
_WHILE_SERVING: Final = (25_000, 1, 5_000)


def look_less_often(*, serving: bool = False) -> None:
    """For processes with many objects that live long."""
    gc.set_threshold(*(_WHILE_SERVING if serving else _THRESHOLDS))
