"""How much of everything one client, and all of them, may have."""

from __future__ import annotations

from dataclasses import dataclass, fields

__all__ = ["LONGEST_ID", "Limits"]

#: the longest name of a resource manager
LONGEST_ID = 253


@dataclass(frozen=True, slots=True)
class Limits:
    """Safe for a server that strangers can reach. Sizes are bytes, times seconds.

    Raises ``ValueError``, with the name, for one that is not positive.
    """

    #: of one message in either direction
    message_bytes: int = 4 << 20
    #: asks, nodes, applications, releases ... of one message together
    items: int = 10_000
    #: resource managers (RMs) that are registered at a time
    resource_managers: int = 256
    #: streams of one RM, and of all; each connection may have as many as one RM
    streams_per_rm: int = 16
    streams: int = 1024
    #: requests of one RM in a second, in the long run, and how many may come at once; faster
    #: streams are read later, faster unary calls refused
    requests_per_second: float = 20_000.0
    request_burst: int = 40_000
    #: the same for the items of all its requests
    items_per_second: float = 100_000.0
    item_burst: int = 200_000
    #: requests of one stream, and their items, that the scheduler has not taken up yet: the stream
    #: is read no further while there are so many
    window: int = 64
    window_items: int = 20_000
    #: what waits for one RM: above half of it nothing more is read of the RM or decided for it,
    #: above it the RM has to register again
    backlog_bytes: int = 64 << 20
    #: consecutive messages of one kind are joined up to this size when the RM is behind
    batch_bytes: int = 256 << 10
    #: what was sent on one stream and can be sent again after a broken connection
    replay_bytes: int = 2 << 20
    #: events and scheduling states that wait for one RM; more are dropped, and counted
    news: int = 10_000
    #: until a new stream has said whose it is
    introduction_s: float = 30.0
    #: until a registered RM has opened its first stream; without one it counts as away
    attach_s: float = 60.0
    #: nodes that one predicates question is about
    predicate_batch: int = 256
    #: asks about which predicates are asked at a time; the next ones wait for their turn
    predicate_asks: int = 256
    #: until predicates that do not answer count as refused, and how long an answer holds
    predicate_timeout_s: float = 5.0
    predicate_age_s: float = 2.0
    #: requests that one step of a client's clock may name
    step_requests: int = 1_000_000
    #: between two probes of a connection that is silent, and until an answer must have come
    keepalive_s: float = 30.0
    keepalive_timeout_s: float = 20.0
    #: between two looks for RMs that have been given up
    sweep_s: float = 10.0

    def __post_init__(self) -> None:
        for each in fields(self):
            if not getattr(self, each.name) > 0:
                raise ValueError(f"limit {each.name} must be positive")
