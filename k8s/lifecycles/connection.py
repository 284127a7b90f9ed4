"""The lifecycle of a connection to the API server: HTTP/1.1, one request at a time (K191, D317).

A connection is Idle until a request is Sent. The first bytes of the response make it Head, the end of the head
Body. A response is complete by its length, by its last chunk, or, without either, by the end of the connection.
It is handed over once all bytes that came with it are parsed: what follows it was not requested, so the
connection is not used again. A watch is Streaming instead of Body: its head is the answer, and its body is read
as it arrives, also after the end. Whatever goes wrong closes the connection.

A reused connection that ends while it is Sent was most likely closed for being idle (`Fail.untouched`).
"""

from __future__ import annotations

from typing import Final, Literal, Protocol

from quadriga.fsm import Lifecycle, ignored, row, unbounded
from quadriga.fsm.table import Effect, Fired, Info, Tone
from quadriga.k8s.lifecycles.effects import Answer, CloseSocket, Fail, WakeReader, constant

State = Literal["Idle", "Sent", "Head", "Body", "Complete", "Streaming", "Ended", "Closed"]
Trigger = Literal[
    "send", "arrive", "head", "whole", "reuse", "retire", "spoil", "expire", "end", "close"
]

IDLE: Final = "Idle"
SENT: Final = "Sent"
HEAD: Final = "Head"
BODY: Final = "Body"
COMPLETE: Final = "Complete"
STREAMING: Final = "Streaming"
ENDED: Final = "Ended"
CLOSED: Final = "Closed"

SEND: Final = "send"
ARRIVE: Final = "arrive"
HEAD_: Final = "head"
WHOLE: Final = "whole"
REUSE: Final = "reuse"
RETIRE: Final = "retire"
SPOIL: Final = "spoil"
EXPIRE: Final = "expire"
END: Final = "end"
CLOSE: Final = "close"

#: States in which all of the response was parsed.
PARSED: Final[frozenset[State]] = frozenset({COMPLETE, ENDED})


class ConnectionFacts(Protocol):
    """The facts that guards read."""

    state: State

    @property
    def key(self) -> str: ...
    @property
    def streams(self) -> bool: ...  # the request is a watch
    @property
    def used(self) -> bool: ...  # it has had a response before
    @property
    def lasts_to_the_end(self) -> bool: ...  # the head says neither a length nor chunks


def streams(connection: ConnectionFacts, info: Info) -> bool:
    """The request is a watch."""
    return connection.streams


def is_whole(connection: ConnectionFacts, info: Info) -> bool:
    """The server closed the connection, and that ends this response."""
    return not info["why"] and connection.lasts_to_the_end


answer = constant("answer", Answer())
last_answer = constant("last_answer", CloseSocket(), Answer())
close = constant("close", CloseSocket())
wake = constant("wake", WakeReader())


fail_spoiled = constant("fail_spoiled", CloseSocket(), Fail("the reply is no HTTP"))
fail_overdue = constant("fail_overdue", CloseSocket(), Fail("no answer in time"))


def fail_ended(connection: ConnectionFacts, fired: Fired) -> tuple[Effect, ...]:
    """A reused connection without a byte of the response is untouched."""
    untouched = connection.used and fired.source == SENT
    return CloseSocket(), Fail(fired.info["why"] or "the connection was closed", untouched)


# fmt: off
CONNECTION: Final[Lifecycle[State, Trigger, ConnectionFacts]] = Lifecycle(
    "k8s-connection",
    initial=IDLE,
    final=(CLOSED,),
    lasts={
        IDLE:      unbounded(CLOSE),
        SENT:      unbounded(EXPIRE),
        HEAD:      unbounded(EXPIRE),
        BODY:      unbounded(EXPIRE),
        COMPLETE:  unbounded(REUSE),
        STREAMING: unbounded(EXPIRE),
        ENDED:     unbounded(CLOSE),
    },
    rows=(
        #   trigger  from                             to         guard           emit
        row(SEND,    IDLE,                            SENT),
        # unrequested: later bytes could be taken for those of another response
        row(ARRIVE,  IDLE,                            CLOSED,                    emit=close),
        row(ARRIVE,  SENT,                            HEAD),
        ignored(ARRIVE, (HEAD, BODY, STREAMING, ENDED), why="the parser is told of more bytes in any case"),
        row(HEAD_,   HEAD,                            STREAMING, when=streams,   emit=answer),
        row(HEAD_,   HEAD,                            BODY),
        ignored(WHOLE, HEAD, why="an informational response precedes the final one"),
        row(WHOLE,   BODY,                            COMPLETE),
        row(WHOLE,   STREAMING,                       ENDED,                     emit=wake),
        row(REUSE,   COMPLETE,                        IDLE,                      emit=answer),
        row(RETIRE,  COMPLETE,                        CLOSED,                    emit=last_answer),
        row(SPOIL,   (HEAD, BODY, STREAMING),         CLOSED,                    emit=fail_spoiled),
        ignored(SPOIL, ENDED, why="the watch is complete; what follows is dropped"),
        row(EXPIRE,  (SENT, HEAD, BODY, STREAMING),   CLOSED,                    emit=fail_overdue),
        ignored(EXPIRE, (IDLE, ENDED), why="nothing is awaited"),
        row(END,     BODY,                            CLOSED,    when=is_whole,  emit=last_answer),
        row(END,     STREAMING,                       ENDED,     when=is_whole,  emit=wake),
        row(END,     (SENT, HEAD, BODY, STREAMING),   CLOSED,                    emit=fail_ended),
        row(END,     IDLE,                            CLOSED,                    emit=close),
        ignored(END, ENDED, why="the watch is complete"),
        row(CLOSE,   (IDLE, SENT, HEAD, BODY, COMPLETE, STREAMING, ENDED), CLOSED, emit=close),
    ),
)

#: The tone of each state on the pages.
TONES: Final[dict[State, Tone]] = CONNECTION.total("TONES", {
    IDLE:      "good",
    SENT:      "wait",
    HEAD:      "wait",
    BODY:      "wait",
    COMPLETE:  "wait",
    STREAMING: "good",
    ENDED:     "done",
    CLOSED:    "done",
})
# fmt: on
