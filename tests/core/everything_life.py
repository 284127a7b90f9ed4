"""One scheduler with everything that may happen to it, drawn at random, one step at a time.

One or two resource managers, or one with two partitions, do anything that the protocol allows and
some things that it does not; applications, nodes and allocations of different partitions have the
same ids. What each resource manager has heard is kept here and compared with what the scheduler
knows: nothing is announced twice, released twice or lost on the way.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from random import Random
from typing import Any
from zlib import crc32

from everything_queues import USERS, configuration
from everything_waits import waits_for_nothing

from quadriga.core import Options, Output, RequestError, Scheduler
from quadriga.core.health import check_health
from quadriga.core.model.partition import Partition
from quadriga.core.outbox import TERMINATION
from quadriga.core.views import Views, as_text
from quadriga.fsm import application as app_life
from quadriga.fsm import resource_manager as rm_life
from quadriga.si import (
    Allocation,
    AllocationRelease,
    AllocationReleasesRequest,
    AllocationRequest,
    AllocationResponse,
    ApplicationRequest,
    NodeInfo,
    RegisterResourceManagerRequest,
    RemoveApplicationRequest,
    TerminationType,
)
from quadriga.si.constants import TAG_FOREIGN, TAG_REQUIRED_NODE
from quadriga.sim.script import Script, lines, resource

__all__ = ["STEPS", "Life"]

#: the ways in which resource managers and partitions may stand side by side
PLACES = (
    (("rm", ("default",)),),
    (("rm", ("default",)),),
    (("rm", ("default", "other")),),
    (("rm", ("default",)), ("rm-2", ("default",))),
)
STOPPED = (TerminationType.STOPPED_BY_RM, TerminationType.UNKNOWN_TERMINATION_TYPE)
BY_CORE = tuple(TERMINATION.values())
KINDS = (*STOPPED, *BY_CORE)

CHANGES = (
    NodeInfo.UPDATE,
    NodeInfo.DRAIN_NODE,
    NodeInfo.DRAIN_TO_SCHEDULABLE,
    NodeInfo.DECOMISSION,
)

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
        #: what its predicates refuse follows from this number; without one they are not asked
        self.salt: int | None = None
        super().__init__(
            configuration(rng, partitions),
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

    def preemption_predicate(self, key: str, node: str, victims: list[str], start: int) -> int | None:
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
        #: what the scheduler has asked back and nobody has confirmed
        self.owed: dict[Identity, TerminationType] = {}
        #: releases that have been confirmed once
        self.past: list[tuple[Identity, TerminationType]] = []

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
        for gone in message.released:
            if not gone.applicationID:  # of a foreign one, as it was asked for
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
            for each in (not uuid and asked) or named:
                self.gone(each)
                self.past.append((each, kind))
        self.voice.release(app, uuid, kind, key=key, partition=self.name)


class Life:
    """Every choice comes from ``rng``, so a history is its seed."""

    def __init__(self, rng: Random, *, curious: bool = True) -> None:
        self.rng = rng
        #: look at every view now and then, which must not change anything
        self.curious = curious
        self.now = 0
        self.steps = 0
        self.digest = hashlib.sha256()
        self.log: list[str] = []
        self.places: list[Place] = []
        self.scheduler = Scheduler(
            Options(
                journal_size=rng.choice((None, 500)),
                batch=rng.choice((1, 1, 5)),
                reservation_give_up=rng.choice((60, 3600)) * 1_000_000_000,
                audit_every=20,
            )
        )
        self.voices = [Voice(self, rm_id, names) for rm_id, names in rng.choice(PLACES)]
        self.places += [Place(voice, name) for voice in self.voices for name in voice.partitions]
        self.place = self.places[0]
        self.predicates()
        for self.place in self.places:
            for _ in range(rng.randint(1, 4)):
                self.node()
            self.app()
            self.app()

    @property
    def script(self) -> Voice:
        """The first resource manager."""
        return self.voices[0]

    def partitions(self) -> list[tuple[Place, Partition]]:
        return [(each, found) for each in self.places if (found := each.partition) is not None]

    def hear(self, outputs: list[Output], rm_id: str = "") -> list[str]:
        """Everybody hears what is for him. Returns what this one hears, in short lines."""
        heard: list[str] = []
        for to, message in outputs:
            said = message.SerializeToString(deterministic=True)
            self.digest.update(f"{to} {type(message).__name__} {len(said)}".encode() + said)
            found = lines(message)
            self.log += [f"{to}: {line}" for line in found]
            heard += found if to == rm_id else []
            if isinstance(message, AllocationResponse):
                for each in (*message.new, *message.released):
                    place = self._named(to, each.partitionName)
                    part = AllocationResponse(
                        **{"new" if isinstance(each, Allocation) else "released": [each]}
                    )
                    place.hear(part)
        wrong = self.scheduler.audit()
        assert not wrong, "\n".join(wrong)
        return heard

    def _named(self, rm_id: str, name: str) -> Place:
        return next(p for p in self.places if (p.voice.rm_id, p.name) == (rm_id, name or "default"))

    def step(self) -> None:
        """Any step, the usual ones more often."""
        getattr(self, self.rng.choices(list(STEPS), list(STEPS.values()))[0])()
        self.look()

    # -- nodes -------------------------------------------------------------------------------------

    def node(self) -> None:
        rng, place = self.rng, self.place
        name = place.name_of("n")
        more = {"gpu": rng.randint(1, 3)} if rng.random() < 0.15 else {}
        heard = place.voice.node(
            name,
            rng.choice((NodeInfo.CREATE,) * 9 + (NodeInfo.CREATE_DRAIN,)),
            attributes={"si/node-partition": place.name, "si/instance-type": rng.choice("xy")},
            occupied={"vcore": 1} if rng.random() < 0.1 else None,
            vcore=rng.randint(2, 9),
            memory=rng.randint(4, 16),
            **more,
        )
        if f"accepted node {name}" in heard:
            place.nodes.append(name)

    def recovered_node(self) -> None:
        """A node that brings allocations, as after a restart of the scheduler (2.11)."""
        rng, place = self.rng, self.place
        name = place.name_of("n")
        found = [
            self._found(app, place.name_of("r"), name)
            for app in rng.sample(place.apps, min(len(place.apps), rng.randint(1, 3)))
        ]
        claimed = {(each.applicationID, each.UUID): each.allocationKey for each in found}
        place.here |= claimed
        heard = place.voice.node(
            name,
            attributes={"si/node-partition": place.name},
            existing=found,
            vcore=6,
            memory=6,
        )
        if f"accepted node {name}" in heard:
            place.nodes.append(name)
            place.shrunk.add(name)  # recovered without a check
        else:
            place.here = {k: v for k, v in place.here.items() if k not in claimed}

    def _found(self, app: str, key: str, node: str) -> Allocation:
        rng = self.rng
        group, size = rng.choice(self.place.gangs.get(app) or [("", 1)])
        return Allocation(
            allocationKey=key,
            UUID=f"{key}-0",
            applicationID=app,
            partitionName=self.place.name,
            resourcePerAlloc=resource({"vcore": size}),
            taskGroupName=group,
            placeholder=rng.random() < 0.5,
            priority=rng.choice((0, 5)),
            nodeID=node,
        )

    def change_node(self) -> None:
        rng, place = self.rng, self.place
        if not place.nodes:
            return
        name = rng.choice(place.nodes)
        match rng.randrange(7):
            case 0:
                place.voice.node(name, NodeInfo.DRAIN_NODE)
            case 1 | 2:
                place.voice.node(name, NodeInfo.DRAIN_TO_SCHEDULABLE)
            case 3:
                place.shrunk.add(name)
                amounts = {"vcore": rng.randint(1, 10), "memory": rng.randint(2, 16)}
                place.voice.node(name, NodeInfo.UPDATE, **amounts)
            case 4:
                place.shrunk.add(name)
                place.voice.node(name, NodeInfo.UPDATE, occupied={"vcore": rng.randint(0, 3)})
            case 5:
                place.voice.node(name, NodeInfo.CREATE, vcore=1)  # it exists (I30)
            case _:
                place.nodes.remove(name)
                place.voice.node(name, NodeInfo.DECOMISSION)

    def foreign(self) -> None:
        """What others run on the nodes comes, changes, moves and goes (X19)."""
        rng, place = self.rng, self.place
        key = f"f{rng.randint(1, 4)}"
        if rng.random() < 0.3 or not place.nodes:
            gone = AllocationRelease(allocationKey=key, partitionName=place.name)
            releases = AllocationReleasesRequest(allocationsToRelease=[gone])
            place.voice.send(AllocationRequest(rmID=place.voice.rm_id, releases=releases))
            return
        name = rng.choice(place.nodes)
        place.shrunk.add(name)
        theirs = Allocation(
            allocationKey=key,
            nodeID=name,
            partitionName=place.name,
            allocationTags={TAG_FOREIGN: rng.choice(("default", "static"))},
            resourcePerAlloc=resource({"vcore": rng.randint(0, 3), "disk": 1}),
        )
        place.voice.send(AllocationRequest(rmID=place.voice.rm_id, allocations=[theirs]))

    # -- applications and asks ---------------------------------------------------------------------

    def app(self) -> None:
        rng, place = self.rng, self.place
        name = rng.choice(place.apps) if place.apps and rng.random() < 0.1 else place.name_of("app")
        partition = place.partition
        paths = [leaf.path for leaf in partition.leaves()] if partition is not None else []
        user = rng.choice(sorted(USERS))
        groups: list[tuple[str, int]] = []
        members: list[int] = []
        if rng.random() < 0.5:
            groups = [(f"g{at}", rng.randint(1, 2)) for at in range(rng.choice((1, 1, 2)))]
            members = [rng.choice((1, 2, 2, 3)) for _ in groups]
        whole = sum(n * size for n, (_, size) in zip(members, groups, strict=True))
        tags = {"namespace": rng.choice(("x", "y.z"))} if rng.random() < 0.4 else {}
        if rng.random() < 0.05:
            tags["application.create.force"] = "true"
        if rng.random() < 0.1:
            tags["namespace.resourcequota"] = '{"resources": {"vcore": {"value": 6}}}'
        heard = place.voice.app(
            name,
            rng.choice(paths) if paths and rng.random() < 0.9 else rng.choice(("root.a.b", "q", "")),
            user=user,
            groups=rng.sample(USERS[user], len(USERS[user])),
            gang={"vcore": max(1, whole + rng.choice((0,) * 8 + (-1, 1)))} if groups else None,
            style=rng.choice(("Hard", "Soft")),
            timeout_ms=rng.choice((0, 20_000, 60_000, -1) if groups else (0,) * 9 + (60_000,)),
            tags=tags,
            partition=place.name,
        )
        if f"accepted {name}" not in heard:
            return
        # an id that was used before begins anew (G55)
        place.keys = [known for known in place.keys if known[0] != name]
        place.apps = [known for known in place.apps if known != name] + [name]
        place.gangs[name] = groups
        for (group, size), count in zip(groups, members, strict=True):
            if rng.random() < 0.9:  # a part of the gang may never come
                keys = [place.name_of("p") for _ in range(count)]
                place.keys += [(name, key) for key in keys]
                self._ask(name, keys, group, size, placeholder=True)

    def ask(self) -> None:
        rng, place = self.rng, self.place
        living = sorted(place.partition.applications) if place.partition is not None else []
        if not place.apps:
            return
        app = rng.choice(living if living and rng.random() < 0.97 else place.apps)
        known = [key for name, key in place.keys if name == app]
        key = rng.choice(known) if known and rng.random() < 0.2 else place.name_of("k")
        group, size = "", rng.randint(1, 3)
        gang = place.gangs.get(app)
        if gang and rng.random() < 0.7:
            group, size = rng.choice(gang)
            size += rng.choice((0, 0, 0, -1, 1))
        place.keys.append((app, key))
        self._ask(app, [key], group, size, placeholder=rng.random() < 0.12)

    def _ask(self, app: str, keys: list[str], group: str, size: int, placeholder: bool) -> None:
        rng, place = self.rng, self.place
        members = len(keys) > 1
        required = not members and rng.random() < 0.08
        amounts: dict[str, int] = rng.choice(
            ({"vcore": size}, {"vcore": size}, {"vcore": size, "memory": 1}, {"memory": size + 1})
        )
        if rng.random() < 0.03:
            amounts = {"gpu": 1, "vcore": size}
        place.voice.ask(
            app,
            *keys,
            group=group,
            placeholder=placeholder,
            repeat=1 if members else rng.choice((1, 1, 1, 2, 3)),
            priority=rng.choice((0, 0, 0, 5, -5)),
            timeout_ms=rng.choice((0,) * 9 + (30_000,)),
            originator=rng.random() < 0.1,
            preempt=rng.choice((None, (True, True), (True, True), (False, True), (False, False))),
            tags={TAG_REQUIRED_NODE: rng.choice(place.nodes or ["n0"])} if required else None,
            partition=place.name,
            **({"vcore": size} if placeholder else amounts),
        )

    def release_ask(self) -> None:
        rng, place = self.rng, self.place
        if place.keys:
            app, key = rng.choice(place.keys)
            app, key = rng.choice(((app, key),) * 4 + ((app, ""), ("", key)))
            place.voice.release_ask(app, key, rng.choice(KINDS), partition=place.name)

    def remove_app(self) -> None:
        rng, place = self.rng, self.place
        if place.apps:
            self._remove(rng.choice(place.apps))

    def _remove(self, app: str) -> None:
        removal = RemoveApplicationRequest(applicationID=app, partitionName=self.place.name)
        voice = self.place.voice
        voice.send(ApplicationRequest(rmID=voice.rm_id, remove=[removal]))

    def nonsense(self) -> None:
        """What names nothing is rejected or ignored, and changes nothing."""
        voice, name = self.place.voice, self.place.name
        match self.rng.randrange(8):
            case 0:
                voice.ask("nobody", "k", vcore=1, partition=name)
            case 1:
                voice.ask(self.rng.choice(self.place.apps or ["nobody"]), "k0", vcore=0)
            case 2:
                voice.ask("nobody", "k", vcore=1, partition="nowhere")
            case 3:
                voice.release("nobody", "k-0", self.rng.choice(KINDS), partition=name)
            case 4:
                voice.node("n0", self.rng.choice(CHANGES), vcore=1)
            case 5:
                self._remove("nobody")
            case 6:
                voice.app("nobody", "root.q", partition="nowhere")
            case _:
                try:
                    voice.release_ask("", "", partition=name)
                except RequestError as refused:
                    assert "R7" in refused.reason

    # -- allocations -------------------------------------------------------------------------------

    def release(self) -> None:
        """The pods of some allocation end, or the resource manager says something odd about it."""
        rng, place = self.rng, self.place
        if place.here:
            (app, uuid), key = rng.choice(sorted(place.here.items()))
            kind = rng.choice((TerminationType.STOPPED_BY_RM,) * 6 + KINDS)
            uuid, key = rng.choice(((uuid, ""),) * 8 + (("", key), ("", "")))
            place.confirm(app, uuid, key, kind)

    def confirm(self) -> None:
        """In any order."""
        rng, place = self.rng, self.place
        for _ in range(rng.randint(1, 6)):
            if place.owed:
                identity, kind = rng.choice(sorted(place.owed.items()))
                place.confirm(*identity, "", kind)

    def confirm_again(self) -> None:
        if self.place.past:
            identity, kind = self.rng.choice(self.place.past)
            self.place.confirm(*identity, "", kind)

    def confirm_wrongly(self) -> None:
        if self.place.owed:
            identity, _ = self.rng.choice(sorted(self.place.owed.items()))
            self.place.confirm(*identity, "", self.rng.choice(KINDS))

    def report(self) -> None:
        """A known allocation is of another size, a pending ask turns out to run, or an allocation
        appears from nowhere (2.20)."""
        rng, place, partition = self.rng, self.place, self.place.partition
        if partition is None or not place.nodes or not partition.applications:
            return
        app = partition.applications[rng.choice(sorted(partition.applications))]
        held = [*app.allocations.values(), *app.placeholders.values()]
        key, node = place.name_of("r"), rng.choice(place.nodes)
        ours = self._found(app.app_id, key, node)
        if app.asks and rng.random() < 0.4:
            ask = app.asks[rng.choice(sorted(app.asks))]
            ours.UUID = f"{ask.ask_key}-9{place.names}"
        elif held and rng.random() < 0.7:
            known = rng.choice(held)
            ask, ours.UUID, ours.nodeID = known.ask, known.uuid, known.node.node_id
        else:
            ask = None
        if ask is not None:
            ours.allocationKey, ours.taskGroupName = ask.ask_key, ask.task_group
            ours.placeholder = ask.placeholder
            ours.resourcePerAlloc.CopyFrom(resource({"vcore": rng.randint(1, 4)}))
        place.shrunk.add(ours.nodeID)
        place.voice.send(AllocationRequest(rmID=place.voice.rm_id, allocations=[ours]))

    # -- decisions, time, connections, configurations ----------------------------------------------

    def schedule(self) -> None:
        limit = self.rng.choice((1, 2, 5, None, None, None))
        heard = self.hear(self.scheduler.schedule(self.now, limit), self.script.rm_id)
        if limit is None:
            for _ in range(3):  # whom predicates have refused is asked about in the next one only
                self.hear(self.scheduler.schedule(self.now))
            for place, partition in self.partitions():
                voice = place.voice
                if partition.rm.state == rm_life.RUNNING:
                    accepts = lambda key, node, v=voice: not v.refuses(key, node)  # noqa: E731
                    assert not (left := list(waits_for_nothing(partition, self.now, accepts))), left
        del heard

    def pass_time(self) -> None:
        self._advance(self.rng.choice((0.5, 1, 2, 2, 3, 5, 6, 16, 16, 31, 65, 700, 4000)))

    def _advance(self, seconds: float) -> None:
        self.now += round(seconds * 1e9)
        for voice in self.voices:
            voice.now = self.now
        self.hear(self.scheduler.advance(self.now))

    def inspect(self) -> None:
        self.hear(self.scheduler.inspect(self.now))
        self.scheduler.clean_queues(self.now)
        self.scheduler.take_summaries()

    def predicates(self) -> None:
        """The resource managers change their minds about what fits where."""
        for voice in self.voices:
            asked = self.rng.random() < 0.4
            voice.salt = self.rng.randrange(1000) if asked else None
            self.scheduler.set_predicate(voice.rm_id, voice.predicate if asked else None)
            also = asked and self.rng.random() < 0.6
            self.scheduler.set_preemption_predicate(
                voice.rm_id, voice.preemption_predicate if also else None
            )

    def connection(self) -> None:
        """It is lost, or comes back, perhaps too late (I6)."""
        voice = self.place.voice
        rm = self._rm(voice)
        if rm.state == rm_life.RUNNING:
            change = self.rng.choice((self.scheduler.disconnect,) * 5 + (self.scheduler.shutdown,))
            self.hear(change(voice.rm_id, self.now))
        elif rm.state == rm_life.PAUSED:
            self.hear(self.scheduler.reconnect(voice.rm_id, self.now))

    def _rm(self, voice: Voice) -> Any:
        return next(r for r in self.scheduler.resource_managers() if r.rm_id == voice.rm_id)

    def configure(self) -> None:
        voice = self.place.voice
        names = voice.partitions
        if len(names) > 1 and self.rng.random() < 0.2:
            names = names[:1]
        if self.rng.random() < 0.3:
            voice.extra["event.trackingEnabled"] = self.rng.choice(("true", "false"))
            voice.extra["si.messageOrder"] = self.rng.choice(("design", "k8shim"))
        try:
            voice.configure(configuration(self.rng, names), voice.extra)
        except RequestError as refused:  # a busy queue cannot change its kind
            assert refused.field == "config", refused

    def start_anew(self) -> None:
        """I7: the resource manager registers again and everything of it is forgotten."""
        self._register(self.place.voice)

    def _register(self, voice: Voice) -> None:
        for place in self.places:
            if place.voice is voice:
                place.forget()
        voice.send(
            RegisterResourceManagerRequest(
                rmID=voice.rm_id,
                config=configuration(self.rng, voice.partitions),
                extraConfig=voice.extra,
            )
        )
        for self.place in [place for place in self.places if place.voice is voice]:
            self.node()

    # -- what holds --------------------------------------------------------------------------------

    def look(self) -> None:
        """After every step: everything that ``Scheduler.audit``, after every message, does not say."""
        self.steps += 1
        assert not (wrong := self.scheduler.check()), "\n".join(wrong)
        for place in self.places:
            if place.partition is not None:
                self._look_at(place, place.partition)
            elif self._rm(place.voice).state == rm_life.STOPPED:
                place.forget()
            else:  # the configuration dropped it when it was empty
                assert not place.here
                place.nodes.clear()
        self._health()
        if self.curious and self.steps % 7 == 0:
            self.take_views()
        self.place = self.rng.choice(self.places)
        state = self._rm(self.place.voice).state
        if state == rm_life.STOPPED:
            self._register(self.place.voice)
        elif state == rm_life.PAUSED and self.rng.random() < 0.3:
            self.connection()

    def _look_at(self, place: Place, partition: Partition) -> None:
        held = {
            (app.app_id, each.uuid): each
            for app in partition.applications.values()
            for each in (*app.allocations.values(), *app.placeholders.values())
        }
        assert held.keys() == place.here.keys(), held.keys() ^ place.here.keys()
        going = {identity: TERMINATION[a.reason] for identity, a in held.items() if a.reason}
        assert going == place.owed, f"V9 {going} and {place.owed}"
        assert partition.nodes.keys() == set(place.nodes)
        for node in partition.nodes.values():
            if node.node_id not in place.shrunk:
                assert min(node.available) >= 0, f"V2: {node.node_id} is overcommitted"
        for queue in partition.queues():
            late = [shape for shape in queue.short_of if queue.has_room(shape)]
            assert not late, f"V7 {queue.path}: somebody waits for room that there is: {late}"
        nodes = partition.nodes.values()
        kept = {kept for node in nodes for kept in (node.reservation, *node.also_reserved)} - {None}
        assert kept == set(partition.reservations), "V3: nodes and reservations differ"
        assert kept >= {*partition.woken, *partition.stalled}, "V3: a reservation outlived itself"
        for name, app in partition.applications.items():
            assert app.state not in app_life.ENDED, f"V8: {name} is {app.state} and not forgotten"
        assert {app.state for app in partition.ended} <= app_life.ENDED

    def _health(self) -> None:
        """All checks, but nodes may have less than what runs on them, where that was said (V2)."""
        health = check_health(self.scheduler.partitions())
        failed = [each["Name"] for each in health["HealthChecks"] if not each["Succeeded"]]
        overcommitted = any(place.shrunk for place in self.places)
        rejected = any(partition.failed_nodes for _, partition in self.partitions())
        allowed = {"Negative resources", "Consistency of data"} if overcommitted else set()
        allowed |= {"Failed nodes"} if rejected else set()
        assert set(failed) <= allowed, health

    def take_views(self) -> None:
        """Everything that can be shown."""
        as_text(Views(self.scheduler).state_dump())
        for place, partition in self.partitions():
            for app in partition.applications.values():
                for key in app.asks:
                    self.scheduler.explain(app.app_id, key, place.name, place.voice.rm_id)

    # -- the end -----------------------------------------------------------------------------------

    def wind_down(self) -> None:
        """V7: everything is released and confirmed; all applications end by themselves."""
        for voice in self.voices:
            if self._rm(voice).state != rm_life.RUNNING:
                self._register(voice)
        for _ in range(4):
            for place, partition in self.partitions():
                for app in list(partition.applications):
                    place.voice.release_ask(app, partition=place.name)
                    place.confirm(app, "", "", TerminationType.STOPPED_BY_RM)
                for identity, kind in list(place.owed.items()):
                    if identity in place.owed:
                        place.confirm(*identity, "", kind)
            self.look()
            self._advance(1000)
        for place, partition in self.partitions():
            assert not place.here
            for app in partition.applications.values():
                # what its resource manager has to ask for next is its own affair (X29)
                back = app.state == app_life.ACCEPTED and app.gang_over
                assert back or app.state == app_life.NEW, f"V7 {app.app_id} is {app.state}"

    def end(self) -> None:
        """All applications are removed: nothing is left of them, in any book."""
        for voice in self.voices:
            if self._rm(voice).state != rm_life.RUNNING:
                self._register(voice)
        for self.place, partition in self.partitions():
            for app in list(partition.applications):
                self._remove(app)
            assert not self.place.here
        self.look()
        for _, partition in self.partitions():
            self._nothing_held(partition)
        for place, partition in self.partitions():
            for name in place.nodes:
                place.voice.node(name, NodeInfo.DECOMISSION)
            assert not any(partition.capacity)
        self._advance(80 * 3600)
        for _, partition in self.partitions():
            assert not partition.ended
            assert partition.state == "Active"
            assert all(q.managed and q.state == "Active" for q in partition.queues())
        assert self.scheduler.next_deadline() is None, "V8: a timer outlived everything"

    def _nothing_held(self, partition: Partition) -> None:
        for queue in partition.queues():
            books = (queue.allocated, queue.pending, queue.promised, queue.preempting)
            assert not any(map(any, books)), queue.path
            assert (queue.mask, queue.running, queue.priorities) == (0, 0, {}), queue.path
            kept = (queue.admitted, queue.gated, queue.reserving, queue.quota_timer)
            assert not any(kept), queue.path
            if queue.leaf:
                assert not (queue.apps or queue.turn), queue.path  # type: ignore[attr-defined]
        for node in partition.nodes.values():
            assert not (node.allocations or node.reservation or node.also_reserved)
            assert not any(node.allocated)
        for book in (
            partition.applications,
            partition.users,
            partition.groups,
            partition.reservations,
            partition.woken,
            partition.stalled,
            partition.refused,
            partition.aside,
            partition.unhinted,
            partition.short_ledgers,
            partition.left_out,
            partition.attempts,
        ):
            assert not book


#: what may happen, and how often
STEPS = {
    "schedule": 14,
    "ask": 20,
    "confirm": 8,
    "release": 4,
    "pass_time": 6,
    "app": 4,
    "change_node": 1.5,
    "node": 1,
    "release_ask": 1.5,
    "confirm_again": 0.5,
    "confirm_wrongly": 1,
    "recovered_node": 0.7,
    "remove_app": 0.7,
    "foreign": 1,
    "report": 1,
    "inspect": 0.7,
    "nonsense": 0.7,
    "predicates": 0.4,
    "connection": 0.5,
    "configure": 0.7,
    "start_anew": 0.05,
}
