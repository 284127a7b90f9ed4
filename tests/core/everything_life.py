"""One scheduler with everything that may happen to it, drawn at random, one step at a time.

One or two resource managers do anything that the protocol allows and some things that it does not.
"""

import hashlib
from random import Random

from everything_looks import Watched
from everything_places import BY_CORE, Place, Voice
from everything_queues import USERS, configuration
from everything_waits import waits_for_nothing

from quadriga.core import Options, Output, RequestError, Scheduler
from quadriga.fsm.lifecycles import resource_manager as resource_manager_fsm
from quadriga.si import (
    Allocation,
    AllocationRelease,
    AllocationReleasesRequest,
    AllocationRequest,
    AllocationResponse,
    ApplicationRequest,
    ApplicationResponse,
    EventRecord,
    NodeInfo,
    RegisterResourceManagerRequest,
    RemoveApplicationRequest,
    TerminationType,
)
from quadriga.si.constants import TAG_FOREIGN, TAG_REQUIRED_NODE
from quadriga.sim.scripted.script import lines, resource

#: the ways in which resource managers and partitions may stand side by side
PLACES = (
    (("rm", ("default",)),),
    (("rm", ("default",)),),
    (("rm", ("default", "other")),),
    (("rm", ("default",)), ("rm-2", ("default",))),
)
STOPPED = (TerminationType.STOPPED_BY_RM, TerminationType.UNKNOWN_TERMINATION_TYPE)
KINDS = (*STOPPED, *BY_CORE)

POLICIES = (None, (True, True), (True, False), (False, True), (False, False))
ACTS = (NodeInfo.UPDATE, NodeInfo.DRAIN_NODE, NodeInfo.DRAIN_TO_SCHEDULABLE, NodeInfo.DECOMISSION)


class Life(Watched):
    """Every choice comes from ``rng``, so a history is its seed."""

    def __init__(self, rng: Random, *, alone: bool = False, curious: bool = True) -> None:
        self.rng = rng
        #: there is one resource manager with one partition, and it always comes back at once
        self.alone = alone
        self.curious = curious
        #: nodes are few and everybody would preempt
        self.crowded = rng.random() < 0.5
        self.now = 0
        self.steps = 0
        self.planned = set()
        self.digest = hashlib.sha256()
        self.log: list[str] = []
        self.places: list[Place] = []
        self.scheduler = Scheduler(
            Options(
                journal_size=rng.choice((None, 500)),
                batch=rng.choice((1, 1, 5)),
                reservation_give_up=rng.choice((60, 3600)) * 1_000_000_000,
                audit_every=20,
                gang_admission=rng.choice(("atomic", "atomic", "whole", "incremental")),
            )
        )
        self.voices = [
            Voice(self, rm_id, names)
            for rm_id, names in PLACES[0 if alone else rng.randrange(len(PLACES))]
        ]
        self.places += [Place(voice, name) for voice in self.voices for name in voice.partitions]
        self.place = self.places[0]
        self.predicates()
        for place in self.places:
            self.place = place
            for _ in range(rng.randint(1, 1 if self.crowded else 4)):
                self.node()
            for _ in range(3):
                self.app()

    @property
    def script(self) -> Voice:
        """The first resource manager."""
        return self.voices[0]

    def hear(self, outputs: list[Output], rm_id: str = "") -> list[str]:
        """Everybody hears what is for him. Returns what this one hears, in short lines."""
        heard: list[str] = []
        for to, message in outputs:
            said = message.SerializeToString(deterministic=True)
            self.digest.update(f"{to} {type(message).__name__} {len(said)}".encode() + said)
            found = lines(message)
            self.log += [f"{to}: {line}" for line in found]
            heard += found if to == rm_id else []
            voice = next(voice for voice in self.voices if voice.rm_id == to)
            if not isinstance(message, EventRecord):
                voice.messages.append(Output(to, message))
            if isinstance(message, ApplicationResponse):
                voice.states |= {each.applicationID: each.state for each in message.updated}
                for each in message.accepted:
                    voice.states.pop(each.applicationID, None)
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
        return next(place for place in self.places if place.key == (rm_id, name or "default"))

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

    def another_node(self) -> None:
        if not self.crowded or len(self.place.nodes) < 2:
            self.node()

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
            name, attributes={"si/node-partition": place.name}, existing=found, vcore=6, memory=6
        )
        if f"accepted node {name}" in heard:
            place.nodes.append(name)
            place.shrunk.add(name)  # recovered without a check
            place.announced += len(claimed)
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
        if self.steps % 3 == 1:
            tags["expected.runtime"] = ("1", "30", "600", "soon")[self.steps % 4]
        if groups and self.steps % 4 == 1:
            tags[("topology.required", "topology.preferred")[self.steps % 3 == 0]] = (
                "si/instance-type"
            )
        if rng.random() < 0.1:
            tags["namespace.resourcequota"] = '{"resources": {"vcore": {"value": 6}}}'
        heard = place.voice.app(
            name,
            rng.choice(paths)
            if paths and rng.random() < 0.9
            else rng.choice(("root.a.b", "q", "")),
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
        if not living or not place.apps:
            self.app()
            return
        app = rng.choice(living if rng.random() < 0.97 else place.apps)
        known = [key for name, key in place.keys if name == app]
        keys = [place.name_of("k") for _ in range(rng.choice((1, 1, 2)))]
        if known and rng.random() < 0.2:
            keys = [rng.choice(known)]
        group, size = "", rng.randint(1, 3)
        gang = place.gangs.get(app)
        if gang and rng.random() < 0.7:
            group, size = rng.choice(gang)
            size += rng.choice((0, 0, 0, -1, 1))
        place.keys += [(app, key) for key in keys]
        self._ask(app, keys, group, size, placeholder=rng.random() < 0.12)

    def members(self) -> None:
        """The real pods of a gang that has placeholders, some of them larger than those."""
        rng, place, partition = self.rng, self.place, self.place.partition
        if partition is None:
            return
        gangs = sorted(name for name, app in partition.applications.items() if app.placeholders)
        for name in rng.sample(gangs, min(len(gangs), 2)):
            for group, size in place.gangs.get(name, []):
                key = place.name_of("m")
                place.keys.append((name, key))
                self._ask(name, [key], group, size + rng.choice((0,) * 7 + (1,)), placeholder=False)

    def press(self) -> None:
        """One application takes what there is, and another wants what its queue is guaranteed."""
        rng, place, partition = self.rng, self.place, self.place.partition
        leaves = list(partition.leaves()) if partition is not None else []
        if len(leaves) < 2:
            return
        sure = [leaf for leaf in leaves if leaf.guaranteed]
        second = rng.choice(sure or leaves)
        first = rng.choice([leaf for leaf in leaves if leaf is not second])
        for leaf, count in ((first, rng.randint(4, 12)), (second, rng.randint(1, 2))):
            name = place.name_of("app")
            user = rng.choice(sorted(USERS))
            if f"accepted {name}" not in place.voice.app(
                name, leaf.path, user=user, groups=USERS[user], partition=place.name
            ):
                return
            place.apps.append(name)
            keys = [place.name_of("k") for _ in range(count)]
            place.keys += [(name, key) for key in keys]
            place.voice.ask(
                name, *keys, preempt=(True, True), partition=place.name, vcore=rng.randint(1, 2)
            )
            self.schedule()
            self._advance(2)
        self.schedule()

    def _ask(self, app: str, keys: list[str], group: str, size: int, placeholder: bool) -> None:
        rng, place = self.rng, self.place
        several = len(keys) > 1
        required = not several and rng.random() < 0.08
        amounts: dict[str, int] = rng.choice(
            ({"vcore": size}, {"vcore": size}, {"vcore": size, "memory": 1}, {"memory": size + 1})
        )
        if rng.random() < 0.03:
            amounts = {"gpu": 1, "vcore": size}
        known = place.partition.applications.get(app) if place.partition is not None else None
        if known is not None:  # a key that has its allocation may make it grow, unchecked (X45)
            place.shrunk |= {each.node.node_id for key in keys for each in known.held_of(key)}
        place.voice.ask(
            app,
            *keys,
            group=group,
            placeholder=placeholder,
            repeat=1 if several else rng.choice((1, 1, 1, 2, 3)),
            priority=rng.choice((0, 0, 0, 5, -5)),
            timeout_ms=rng.choice((0,) * 9 + (30_000,)),
            originator=rng.random() < 0.1,
            preempt=(True, True) if self.crowded and rng.random() < 0.8 else rng.choice(POLICIES),
            tags={TAG_REQUIRED_NODE: rng.choice(place.nodes or ["n0"])} if required else None,
            partition=place.name,
            by_key=place.names % 3 == 0,  # every third in the form of SI 1.6
            **({"vcore": size} if placeholder else amounts),
        )

    def release_ask(self) -> None:
        rng, place = self.rng, self.place
        if place.keys:
            app, key = rng.choice(place.keys)
            app, key = rng.choice(((app, key),) * 4 + ((app, ""), ("", key)))
            kind = rng.choice(KINDS)
            if app and key and place.names % 3 == 0:  # an ask, its allocation, or both (X45)
                place.confirm(app, "", key, kind)
            else:
                place.voice.release_ask(app, key, kind, partition=place.name)

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
                voice.node("n0", self.rng.choice(ACTS), vcore=1)
            case 5:
                self._remove("nobody")
            case 6:
                voice.app("nobody", "root.q", partition="nowhere")
            case _:
                try:
                    voice.release_ask("", "", partition=name)
                except RequestError as refused:
                    assert refused.reason.startswith(("is required", "needs an applicationID"))

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
        """Another size, a pending ask that turns out to run, or an allocation from nowhere (2.20)."""
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
        self._decide(limit)
        if limit is not None:
            return
        for _ in range(3):  # whom predicates have refused is asked about in the next one only
            self._decide(None)
        for place, partition in self.partitions():
            voice = place.voice
            if partition.rm.state == resource_manager_fsm.RUNNING:
                left = list(waits_for_nothing(partition, self.now, voice.refuses))
                assert not left, left
                self._all_explained(place, partition)

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
        rm = self.rm_of(voice)
        if self.alone:
            self.hear(self.scheduler.disconnect(voice.rm_id, self.now))
            self._advance(self.rng.choice((0, 5)))
            self.hear(self.scheduler.reconnect(voice.rm_id, self.now))
        elif rm.state == resource_manager_fsm.RUNNING:
            change = self.rng.choice((self.scheduler.disconnect,) * 5 + (self.scheduler.shutdown,))
            self.hear(change(voice.rm_id, self.now))
        elif rm.state == resource_manager_fsm.PAUSED:
            self.hear(self.scheduler.reconnect(voice.rm_id, self.now))

    def configure(self) -> None:
        voice = self.place.voice
        names = voice.partitions
        if len(names) > 1 and self.rng.random() < 0.2:
            names = names[:1]
        if self.rng.random() < 0.3:
            voice.extra["event.trackingEnabled"] = self.rng.choice(("true", "false"))
            voice.extra["si.messageOrder"] = self.rng.choice(("design", "k8shim"))
        try:
            config = configuration(self.rng, names, crowded=self.crowded)
            voice.configure(config, voice.extra)
        except RequestError as refused:  # a busy queue cannot change its kind
            assert refused.field == "config", refused

    def start_anew(self) -> None:
        """I7: the resource manager registers again and everything of it is forgotten."""
        self._register(self.place.voice)

    def _register(self, voice: Voice) -> None:
        voice.messages.clear()
        for place in self.places:
            if place.voice is voice:
                place.forget()
        voice.send(
            RegisterResourceManagerRequest(
                rmID=voice.rm_id,
                config=configuration(self.rng, voice.partitions, crowded=self.crowded),
                extraConfig=voice.extra,
            )
        )
        for place in self.places:
            if place.voice is voice:
                self.place = place
                self.node()


#: what may happen, and how often
STEPS = {
    "schedule": 14,
    "ask": 18,
    "members": 5,
    "press": 2,
    "confirm": 8,
    "release": 4,
    "pass_time": 6,
    "app": 5,
    "change_node": 1.5,
    "another_node": 1,
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
