"""What resource managers have heard, to be compared with what the scheduler knows of each partition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from zlib import crc32

from everything_queues import configuration

from quadriga.core import Output
from quadriga.core.model.partition import Partition
from quadriga.core.runtime.outbox import TERMINATION
from quadriga.si import AllocationResponse, TerminationType
from quadriga.sim.scripted.script import Script

if TYPE_CHECKING:
    from everything_life import Life

BY_CORE = tuple(TERMINATION.values())

Identity = tuple[str, str]


class Voice(Script):
    """A resource manager; what the scheduler answers reaches everybody whom it concerns."""

    def __init__(self, life: Life, rm_id: str, partitions: tuple[str, ...]) -> None:
        self.life = life
        self.partitions = partitions
        rng = life.rng
        extra = {
            "si.messageOrder": rng.choice(("design", "k8shim")),
            "si.stateNames": rng.choice(("quadriga", "yunikorn")),
            "event.trackingEnabled": rng.choice(("true", "false")),
            "rm.pauseTimeout": rng.choice(("30s", "300s")),
            "release.resend": rng.choice(("5s", "60s")),
        }
        if rng.random() < 0.1:
            extra["scheduler.disableReservation"] = "true"
        self.extra = extra
        #: the last state of each application that it was told
        self.states: dict[str, str] = {}
        #: what its predicates refuse follows from this number; without one they are not asked
        self.salt: int | None = None
        super().__init__(
            configuration(rng, partitions, crowded=life.crowded),
            extra=extra,
            rm_id=rm_id,
            scheduler=life.scheduler,
            check=False,
            version=rng.choice(("", "1.5")),
        )
        self.now = life.now

    def _heard(self, outputs: list[Output]) -> list[str]:
        return self.life.hear(outputs, self.rm_id)

    def refuses(self, key: str, node: str) -> bool:
        return self.salt is not None and crc32(f"{self.salt}/{key}/{node}".encode()) % 4 == 0

    def predicate(self, key: str, node: str, allocate: bool) -> str | None:
        return "does not fit" if self.refuses(key, node) else None

    def preemption_predicate(
        self, key: str, node: str, victims: list[str], start: int
    ) -> int | None:
        if self.refuses(key, node):
            return None
        later = crc32(f"{key}/{node}/{victims}".encode()) % 2
        return max(0, min(start + later, len(victims) - 1))


@dataclass
class Place:
    """What a resource manager knows of one of its partitions."""

    voice: Voice
    name: str

    def __post_init__(self) -> None:
        self.names = 0
        self.forget()

    def forget(self) -> None:
        """It starts anew. Names are not used again, so that nothing is mistaken for what was."""
        self.nodes: list[str] = []
        #: nodes that may be overcommitted (V2)
        self.shrunk: set[str] = set()
        self.apps: list[str] = []
        self.gangs: dict[str, list[tuple[str, int]]] = {}
        self.keys: list[Identity] = []
        #: what runs, by application and UUID, with the key of its ask
        self.here: dict[Identity, str] = {}
        #: how many there have been
        self.announced = 0
        #: what the scheduler has asked back and nobody has confirmed
        self.owed: dict[Identity, TerminationType] = {}
        #: releases that have been confirmed once
        self.past: list[tuple[Identity, TerminationType]] = []

    @property
    def key(self) -> tuple[str, str]:
        return self.voice.rm_id, self.name

    def name_of(self, kind: str) -> str:
        self.names += 1
        return f"{kind}{self.names}"

    @property
    def partition(self) -> Partition | None:
        """``None`` after the configuration, or its resource manager, has dropped it."""
        try:
            return self.voice.scheduler.partition(self.name, self.voice.rm_id)
        except KeyError:
            return None

    def hear(self, message: AllocationResponse) -> None:
        """V9: what is said makes sense, whatever has been said and confirmed before."""
        for new in message.new:
            identity = (new.applicationID, new.UUID)
            assert identity not in self.here, f"{identity} announced twice"
            self.here[identity] = new.allocationKey
            self.announced += 1
        for gone in message.released:
            if not gone.applicationID or not gone.UUID:  # of a foreign one, or a pending ask (X45)
                continue
            identity = (gone.applicationID, gone.UUID)
            assert identity in self.here, f"{identity} released, and is not there"
            if gone.terminationType in BY_CORE:
                known = self.owed.setdefault(identity, gone.terminationType)
                assert known == gone.terminationType, f"V6 {identity} released for two reasons"
            else:
                self.gone(identity)

    def gone(self, identity: Identity) -> None:
        del self.here[identity]
        self.owed.pop(identity, None)

    def confirm(self, app: str, uuid: str, key: str, kind: TerminationType) -> None:
        """The resource manager says that pods are gone, by whatever names them (R6, X32)."""
        if kind in BY_CORE:
            named = [
                each
                for each, its_key in self.here.items()
                if each[0] == app and uuid in ("", each[1]) and (uuid or key in ("", its_key))
            ]
            asked = [each for each in named if self.owed.get(each) == kind]
            if not (uuid or asked) and self.partition is not None:
                if app in self.partition.serials._unanswered:
                    return  # it could be the late answer for an application of that id before (X46)
            for each in (not uuid and asked) or named:
                self.gone(each)
                self.past.append((each, kind))
        self.voice.release(app, uuid, kind, key=key, partition=self.name)
