"""Lifecycles checked: every state that a composition of them can get into, and random runs.

``system`` has the words in which a composition is declared, ``check`` searches it exhaustively, and
``stateful`` makes a state machine for Hypothesis of it. Without a composition both take a single lifecycle.
"""

from quadriga.fsm.checking.search import Report, Unfinished, alone, check, replay, search
from quadriga.fsm.checking.stateful import stateful
from quadriga.fsm.checking.system import Network, Once, Part, System, call, put, send
from quadriga.fsm.checking.world import Happening, Message, Move, Violation, World

__all__ = [
    "Happening",
    "Message",
    "Move",
    "Network",
    "Once",
    "Part",
    "Report",
    "System",
    "Unfinished",
    "Violation",
    "World",
    "alone",
    "call",
    "check",
    "put",
    "replay",
    "search",
    "send",
    "stateful",
]
