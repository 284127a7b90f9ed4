"""Predicates that answer later (I36, I37): their ask is set aside, and comes back with the answer."""

from collections.abc import Callable, Iterable

from core_steps import later, on_nodes, run, serve
from preemption_side import ask, filled, preempted

from quadriga.si.predicates import ANSWER_PENDING, ANSWER_PENDING_INDEX
from quadriga.sim.scripted.script import Script


class Far:
    """Knows nothing before `answer`; remembers what it was asked, question by question."""

    def __init__(
        self, fits: Callable[[str], str | None] = lambda node: None, most: int = 3
    ) -> None:
        self.fits = fits
        self.most = most
        #: so many questions at a time
        self.room = 100
        self.known: dict[tuple[str, str, bool], str | None] = {}
        self.open: dict[tuple[str, bool], list[str]] = {}
        self.batches: list[list[str]] = []

    def __call__(self, key: str, node: str, allocate: bool) -> str | None:
        if (key, node, allocate) in self.known:
            return self.known[key, node, allocate]
        self.look_ahead(key, [node], allocate)
        return ANSWER_PENDING

    def look_ahead(self, key: str, nodes: Iterable[str], allocate: bool) -> None:
        if (key, allocate) not in self.open and len(self.open) >= self.room:
            return
        batch = self.open.setdefault((key, allocate), [])
        for node in nodes:
            if len(batch) == self.most:
                return
            if node not in batch and (key, node, allocate) not in self.known:
                batch.append(node)

    def allowed(self, key: str) -> set[str]:
        known = self.known.items()
        return {node for (k, node, a), said in known if k == key and a and said is None}

    def awaits(self, key: str) -> bool:
        return any(about == key for about, _ in self.open)

    def answer(self) -> None:
        for (key, allocate), nodes in self.open.items():
            self.batches.append(nodes)
            for node in nodes:
                self.known[key, node, allocate] = self.fits(node)
        self.open.clear()


def far(script: Script, fits: Callable[[str], str | None] = lambda node: None) -> Far:
    predicate = Far(fits)
    script.scheduler.set_predicate(script.rm_id, predicate)
    return predicate


def placed(script: Script) -> list[str]:
    return [said for said in script.schedule() if said.startswith("new ")]


def cluster(nodes: int = 5) -> Script:
    script = Script()
    for number in range(1, nodes + 1):
        script.node(f"n{number}", memory=10)
    script.app("a")
    return script


def test_an_ask_waits_for_its_answer_and_others_do_not() -> None:
    script = cluster()
    predicate = far(script, lambda node: None if node == "n2" else "taint")
    assert serve(script, "a", "x", memory=1) == []
    assert predicate.open == {("x", True): ["n1", "n2", "n3"]}
    predicate.known.update({("y", f"n{number}", True): None for number in range(1, 6)})
    script.ask("a", "y", memory=1)
    assert placed(script) == ["new a/y-0 on n1"]
    predicate.answer()
    assert placed(script) == ["new a/x-0 on n2"]
    assert script.scheduler.check() == []


def test_answers_are_used_while_they_hold() -> None:
    """The order of nodes moves on while an ask waits; it is not asked about twice for that."""
    script = cluster()
    predicate = far(script)
    predicate.known.update({("x", "n4", True): None, ("x", "n2", True): "taint"})
    predicate.known["x", "n3", True] = None
    script.ask("a", "x", memory=1)
    assert placed(script) == ["new a/x-0 on n3"]
    assert not predicate.open


def test_too_many_at_a_time_keep_their_place() -> None:
    script = cluster()
    predicate = far(script)
    predicate.room = 2
    assert serve(script, "a", "x", "y", "z", memory=1) == []
    assert [key for key, _ in predicate.open] == ["x", "y"]
    assert script.schedule() == []
    assert [key for key, _ in predicate.open] == ["x", "y"]
    predicate.answer()
    assert placed(script) == ["new a/x-0 on n1", "new a/y-0 on n2"]
    assert [key for key, _ in predicate.open] == ["z"]


def test_while_it_waits_nothing_is_recorded_or_reserved() -> None:
    script = cluster(1)
    serve(script, "a", "big", memory=10)
    predicate = far(script, lambda node: "taint")
    script.ask("a", "x", memory=1)
    script.node("n9", memory=10)
    script.schedule()
    script.advance(60)
    assert placed(script) == []
    assert not script.scheduler.partition().reservations
    assert predicate.open


def test_an_ask_taken_back_meanwhile_is_gone() -> None:
    script = cluster()
    predicate = far(script)
    serve(script, "a", "x", memory=1)
    script.release_ask("a", "x")
    predicate.answer()
    assert script.schedule() == []
    assert not script.scheduler.partition().waiting.deferred_asks
    assert script.scheduler.check() == []


def gang() -> tuple[Script, Far]:
    script = on_nodes(n1={"memory": 20}, n2={"memory": 20})
    run(script, "g", "p0", gang={"memory": 1}, style="Soft", group="tg", placeholder=True, memory=1)
    predicate = far(script)
    script.ask("g", "real", group="tg", memory=1)
    return script, predicate


def test_a_gang_member_waits_for_its_placeholders_node() -> None:
    script, predicate = gang()
    assert script.schedule() == []
    assert predicate.open == {("real", False): ["n1"]}
    predicate.answer()
    assert script.schedule() == ["released g/p0-0 PLACEHOLDER_REPLACED"]
    assert script.confirm() == ["new g/real-0 on n1"]


def test_a_gang_member_waits_for_other_nodes() -> None:
    script, predicate = gang()
    predicate.fits = lambda node: None if node == "n2" else "no"
    script.schedule()
    predicate.answer()
    assert script.schedule() == []
    assert predicate.open == {("real", True): ["n2", "n1"]}
    predicate.answer()
    assert script.schedule() == ["released g/p0-0 PLACEHOLDER_REPLACED"]
    assert script.confirm() == ["new g/real-0 on n2"]


class FarVictims:
    """Preemption predicates that answer later."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, str], int | None] = {}
        self.open: dict[tuple[str, str], int] = {}

    def __call__(self, key: str, node: str, victims: list[str], start: int) -> int | None:
        if (key, node) in self.known:
            return self.known[key, node]
        self.open[key, node] = start
        return ANSWER_PENDING_INDEX

    def awaits(self, key: str) -> bool:
        return any(about == key for about, _ in self.open)


def test_i37_a_preemption_waits_and_all_of_a_batch_are_asked() -> None:
    script = filled(nodes=2)
    victims = FarVictims()
    script.scheduler.set_preemption_predicate(script.rm_id, victims)
    ask(script, "high", "h", vcore=1)
    assert preempted(later(script, 1)) == []
    assert victims.open == {("h", "n1"): 0, ("h", "n2"): 0}
    assert preempted(script.schedule()) == []
    victims.known = {("h", "n1"): None, ("h", "n2"): 0}
    victims.open.clear()
    assert preempted(script.schedule()) == ["low/n2-3-0"]
    assert script.scheduler.check() == []
