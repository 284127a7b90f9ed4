"""The limits of the gRPC server, for each client and for all of them together."""

from __future__ import annotations

from dataclasses import dataclass, fields

#: a name of a resource manager has at most this many characters
LONGEST_ID = 253


@dataclass(frozen=True, slots=True)
class Limits:
    """Defaults are safe for a server that strangers can reach. Sizes are in bytes, times in
    seconds.

    Raises ``ValueError`` naming the limit for a value that is not positive.
    """

    #: size of one message in either direction
    message_bytes: int = 4 << 20
    #: items in one message: asks, nodes, applications and releases together
    items: int = 10_000
    #: resource managers (RMs) registered at a time
    resource_managers: int = 256
    #: open streams of one RM, and of all RMs; a connection may have four times the first number
    streams_per_rm: int = 16
    streams: int = 1024
    #: open connections, of all and of one address; at most half of what ``ulimit -n`` allows
    connections: int = 1000
    connections_per_client: int = 500
    #: requests of one RM: average per second, and burst; above it streams are read later, and unary
    #: calls are refused
    requests_per_second: float = 20_000.0
    request_burst: int = 40_000
    #: items of these requests: average per second, and burst
    items_per_second: float = 100_000.0
    item_burst: int = 200_000
    #: requests of one stream, and their items, that the scheduler has not processed yet; at this
    #: number the stream is not read
    window: int = 64
    window_items: int = 20_000
    #: bytes that wait for one RM; above half of it nothing more is read from the RM or decided for
    #: it, above it the RM must register again
    backlog_bytes: int = 64 << 20
    #: consecutive messages of one channel are joined up to this size while the RM is behind
    batch_bytes: int = 256 << 10
    #: bytes sent on one stream that are kept to be sent again after a broken connection
    replay_bytes: int = 2 << 20
    #: events and scheduling states that wait for one RM; further ones are dropped and counted
    pending_events: int = 10_000
    #: time for a new stream to name its RM
    introduction_s: float = 30.0
    #: time for a registered RM to open its first stream, before it counts as disconnected
    attach_s: float = 60.0
    #: nodes in one question to predicates
    predicate_batch: int = 256
    #: asks of one RM with pending questions; further asks wait
    predicate_asks: int = 256
    #: time for predicates to answer before they count as refused, and time that an answer stays
    #: valid
    predicate_timeout_s: float = 5.0
    predicate_age_s: float = 2.0
    #: requests named by one step of a client's clock
    step_requests: int = 1_000_000
    #: time between two probes of a silent connection, and time for the answer
    keepalive_s: float = 30.0
    keepalive_timeout_s: float = 20.0
    #: time between two searches for RMs that the scheduler has given up
    sweep_s: float = 10.0

    def __post_init__(self) -> None:
        for each in fields(self):
            if not getattr(self, each.name) > 0:
                raise ValueError(f"limit {each.name} must be positive")
