"""The numbers of the shim: every bound, rate, pause and timeout that is our choice.

Names end in the unit of a time, ``_s`` or ``_ns``, and ``_bytes``. What an operator would change is a setting of the
ConfigMap instead (`conversion.settings_table`); the limits of the API itself stand where they are applied, and
how long a state may last in the table of its lifecycle.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from quadriga.base.times import MINUTE, SECOND


@dataclass(frozen=True, slots=True)
class Tuning:
    """What each number bounds, and what happens beyond it."""

    # -- the api server: connections and requests --

    request_timeout_s: float = 10.0
    """A request without an answer within this time (s) counts as unanswered."""
    list_timeout_s: float = 60.0
    """The same for a page of a list, which may take longer."""
    retry_after_s: float = 1.0
    """After a 429 without ``Retry-After`` nothing is sent for this time (s)."""
    longest_retry_after_s: float = 60.0
    """A ``Retry-After`` beyond this (s) is obeyed for this time only."""
    connection_idle_s: float = 60.0
    """A connection that was unused for longer (s) is closed, not reused: the server may be closing it."""
    connect_timeout_s: float = 10.0
    """A connection that is not established within this time (s) is given up."""
    reply_head_bytes: int = 64 << 10
    """A response with a longer head (bytes) is no HTTP, and the connection is closed."""
    stream_unread_bytes: int = 1 << 20
    """With more unread bytes of a stream the connection is not read: then the server has to wait."""
    read_bytes: int = 32 << 10
    """Bytes of one read from a socket; a TLS record has at most 16 KiB."""
    lane_share: int = 8
    """Every this many turns one is for the other requests while writes to pods wait."""
    slow_write: int = 3
    """A write to a pod that takes this many times as long as the quickest recent one is slow."""
    quickest_forgets: int = 64
    """The time of the quickest write grows by this part with each write, so that an old one is forgotten."""
    slow_forgotten_ns: int = 10 * SECOND
    """How long (ns) after the last write to a pod it still counts that some were slow."""
    behind_pause: int = 15
    """At most this many times as long as a write to a placeholder took no other is begun, while pods are slow."""
    write_pauses_ns: tuple[int, int] = (SECOND, 30 * SECOND)
    """Pause (ns) of the writers of events and conditions after a failure, doubled up to the second one."""
    decoded_slice: int = 20
    """At most this many objects of a list are decoded before other work has its turn."""
    discovery_retry_s: float = 2.0
    """Pause (s) between attempts to discover what the server has."""
    device_classes_ns: int = MINUTE
    """DeviceClasses are listed at most once in this time (ns)."""
    token_early_ns: int = 30 * SECOND
    """A token of an exec plugin is renewed this long (ns) before its expiration."""
    plugin_timeout_s: float = 60.0
    """An exec plugin that does not answer within this time (s) is killed, and the login fails."""

    # -- events and conditions --

    events_waiting: int = 1000
    """With this many events waiting further ones are dropped; warnings are counted separately."""
    event_writes: int = 8
    """At most this many events are written at a time."""
    event_series_ns: int = 600 * SECOND
    """The same event within this time (ns) after the last one raises its count; later it is a new one."""
    event_series_pause_ns: int = 10 * SECOND
    """Time (ns) between two writes of one series."""
    events_known: int = 20_000
    """At most this many events of the last ten minutes are remembered; the oldest are forgotten first."""
    event_tries: int = 6
    """An event is given up after this many attempts."""
    condition_grace_ns: int = SECOND
    """The first condition of what need not wait for nodes is written this much later (ns), if it still waits then."""
    condition_writes: int = 8
    """At most this many conditions are written at a time."""
    explaining_share: int = 200
    """Explanations take at most one part in this many of the time."""
    explaining_saved_ns: int = SECOND // 4
    """An idle period earns at most this much time (ns) of explanations."""
    condition_message_bytes: int = 1024
    """A longer message of a condition (bytes of UTF-8) is shortened."""
    explained_slice: int = 100
    """At most this many nodes are checked against the constraints before other work has its turn."""
    explained_groups: int = 6
    """At most this many groups of nodes are named in a message."""

    # -- writes to pods, the lease --

    writes_behind: int = 64
    """At most this many writes to placeholders are under way or wait for their turn with the client. The others wait
    where one costs little and a create can still be cancelled."""
    bind_hangs_ns: int = 5 * SECOND
    """The attempts of a bind may take this much longer (ns) than the waits between them."""
    disruption_waits_s: tuple[float, ...] = (1.0, 2.0)
    """Waits (s) of the patch before a preemption: the deletion must not be delayed for long (K113)."""
    lease_jitter: float = 0.2
    """An attempt to take the lease waits up to this share longer, so that candidates do not collide."""

    # -- the loop --

    inputs_waiting: int = 100_000
    """With more waiting inputs than this the watches are not read."""
    inputs_batch: int = 256
    """At most this many inputs are handled before the actions are carried out."""
    loop_turn_s: float = 1.0
    """The loop turns at least this often (s), for the health check."""
    loop_stuck_ns: int = 10 * SECOND
    """A loop that has not turned for this time (ns) is not healthy."""
    volumes_patience_s: float = 30.0
    """The start waits this long (s) for claims, which pods may not have at all (K142)."""
    pod_groups_check_s: float = 300.0
    """Time (s) between checks whether the server has PodGroups, or has them in another version."""
    dump_timeout_s: float = 5.0
    """A state dump fails if the loop does not make it within this time (s)."""
    core_retry_s: float = 1.0
    """Pause (s) between two attempts to reach a core that does not answer."""
    settings_retry_s: float = 2.0
    """Pause (s) between two attempts to read the ConfigMaps at the start."""
    audit_pods: int = 500
    """Pods in one part of an audit; other work has its turn between two parts."""
    audit_nodes: int = 50
    """Nodes in one part of an audit."""
    audit_applications: int = 20
    """Applications in one part of an audit."""
    differences_reported: int = 20
    """At most this many differences of an audit are reported one by one; the others are counted."""
    differences_dumped: int = 100
    """At most this many differences are in a state dump."""

    # -- texts and settings --

    config_map_bytes: int = 16 << 20
    """Bytes of all unpacked archives, beyond which the ConfigMaps are refused: one has at most 1 MiB, and gzip
    shrinks text tenfold."""
    largest_gang: int = 1_000_000
    """The largest bound that a setting can give a gang, in pods; a larger one is refused."""
    largest_text: int = 1 << 18
    """The same in bytes of its definition: all annotations of a pod may have as many."""
    shown_characters: int = 200
    """A user's text that is shown in a message is cut to this many characters."""
    problems_named: int = 10
    """At most this many problems of one text are named."""
    cache_entry_bytes: int = 256
    """Bytes of an entry of the cache of definitions beside its texts."""
    names_shown: int = 5
    """At most this many names are in a message about what is missing."""
    status_reason_bytes: int = 1024
    """A longer reason in a pod's status (bytes) is cut (K34)."""

    # -- applications, gangs, nodes --

    message_items: int = 1000
    """A message to the core with this many items is sent, and the next item begins another one (K141)."""
    gang_check_ns: int = 3600 * SECOND
    """A gang that waits for something other than time is checked again after this time (ns) at the latest."""
    gang_members_ns: int = 2 * SECOND
    """A gang whose placeholders are for missing members waits this long (ns) for its members first."""
    gang_look_ns: int = 1_000_000
    """A look at a gang that still waits for members is put off for this time (ns) for each of its pods."""
    gang_creates: int = 64
    """At most this many placeholders of a gang are being created at a time."""
    all_creates: int = 512
    """The same over all gangs: other pods wait for no more writes than these, and no more manifests are in memory
    twice."""
    placeholder_pauses_ns: tuple[int, int] = (5 * SECOND, 60 * SECOND)
    """Pause (ns) before a refused placeholder is retried, doubled up to the second one (K202)."""
    placeholders_deleted: int = 64
    """At most this many placeholders are deleted in one turn of the loop."""
    gangs_checked: int = 16
    """At most this many gangs are checked again in one turn of the loop."""
    selectors_cached: int = 16
    """At most this many node selectors have their nodes cached; for further ones every node counts."""
    rejection_pauses_ns: tuple[int, int] = (SECOND, 300 * SECOND)
    """Pause (ns) before a rejected application is submitted again, doubled up to the second one."""
    rejection_forgotten_ns: int = 1200 * SECOND
    """After this time (ns) without a rejection the next one counts as the first."""
    grace_ns: int = 60 * SECOND
    """Added (ns) to a pod's grace period or a placeholder timeout."""
    longest_grace_s: int = 7 * 86_400
    """Limit (s) of a pod's grace period, which can be arbitrarily long: the pod is checked again after a week."""
    recheck_pauses_ns: tuple[int, int] = (30 * SECOND, 600 * SECOND)
    """Time (ns) after which a failed pod is tried again, doubled up to the second one."""
    answer_valid_ns: int = 3 * SECOND
    """Time (ns) for which an answer of predicates counts; a core over gRPC uses it for 2 s (K137)."""

    # -- predicates --

    cluster_slice: int = 1_000
    """At most this many profiles and nodes, or pods, are processed before other work has its turn."""
    selection_changes: int = 4_096
    """At least this many changes, and fewer than twice as many, are kept for selections that count them later; a
    selection that lacks one counts its pods again."""
    unused_signatures: int = 256
    """At most this many signatures without pods are kept for later pods."""
    refused_keys: int = 64
    """With more topology keys than this all are forgotten."""
    refused_values: int = 256
    """A topology key with this many more values than twice the nodes is forgotten."""
    refused_answers: int = 1_024
    """At most this many answers are kept."""
    pair_pauses_ns: tuple[int, int] = (30 * SECOND, 300 * SECOND)
    """Time (ns) for which a failed bind refuses the node to the pod, doubled up to the second one (K110)."""
    tentative_ns: int = SECOND
    """Time (ns) for which a positive answer counts without being confirmed (K99)."""

    # -- admission --

    review_timeout_s: int = 2
    """Time (s) that the API server gives the webhook for a review; then the failure policy decides."""
    registration_tries: int = 3
    """Attempts to write a registration that others change at the same time."""
    review_bytes: int = 16 << 20
    """A longer review is refused: an object has at most 1.5 MiB in etcd, and an update has two, as JSON."""
    secret_tries: int = 5
    """Attempts to write the Secret of the authorities that other replicas change at the same time."""
    certificate_check_s: float = 60.0
    """Time (s) between checks of the certificate and the registration."""
    admission_retry_s: float = 5.0
    """The same after a first check that failed."""
    validator_timeout_s: float = 1.5
    """Time (s) for an answer about a queue; the whole review has two."""
    validator_bytes: int = 1 << 20
    """At most this many bytes of an answer are read; the rest of a longer one is missing."""
    known_timeout_s: float = 1.0
    """Time (s) to read a namespace or an owner that a review needs; later it counts as unknown. The review has two."""


TUNING: Final = Tuning()
