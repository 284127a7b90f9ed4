"""``FastLockedMachine``: the library's ``LockedMachine`` with the triggers of ``FastMachine``.

The contexts of the machine and of the model are entered around a trigger as in the library; inside, the plans
of ``FastMachine`` are followed. The models have methods of their own, as in the library.

``quadriga.fsm`` does not import this module, because it imports the extensions of the library.
"""

from __future__ import annotations

from contextlib import ExitStack
from threading import get_ident
from typing import Any

from transitions.extensions.locking import IdentManager, LockedMachine, PicklableLock

from quadriga.fsm.fast.events import FastEvent
from quadriga.fsm.fast.machine import FastMachine


class FastLockedEvent(FastEvent):
    """A trigger within the contexts of the machine and of the model, which a thread enters once."""

    def trigger(self, model: Any, *args: Any, **kwargs: Any) -> Any:
        owns = object.__getattribute__(self.machine, "__dict__")  # its own way takes long
        ident, this_thread = owns["_ident"], get_ident()
        if ident.current == this_thread:
            return FastEvent.trigger(self, model, *args, **kwargs)
        contexts = owns["model_context_map"][id(model)]
        if (
            len(contexts) == 2
            and contexts[1] is ident
            and type(ident) is IdentManager
            and type(contexts[0]) is PicklableLock
        ):  # only the machine's own context: the same without the calls
            with contexts[0].lock:
                ident.current = this_thread
                try:
                    return FastEvent.trigger(self, model, *args, **kwargs)
                finally:
                    ident.current = 0
        with ExitStack() as entered:
            for context in contexts:
                entered.enter_context(context)
            return FastEvent.trigger(self, model, *args, **kwargs)
        return None  # a context has suppressed an error


class FastLockedMachine(LockedMachine, FastMachine):
    """A drop-in for ``transitions.extensions.LockedMachine``."""

    event_cls = FastLockedEvent  # type: ignore[assignment]  # it does the same as LockedEvent

    def _can_trigger(self, *args: Any, **kwargs: Any) -> bool:
        # no plan, since each step enters the contexts
        return super(FastMachine, self)._can_trigger(*args, **kwargs)  # type: ignore[no-any-return,misc]


FastLockedMachine._fast_class = FastLockedMachine
