"""The words of a composition, what the network may do, and how broken rules are told."""

from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, Protocol

import pytest
from hypothesis import HealthCheck, Phase, settings

from quadriga.diagrams import sequence
from quadriga.fsm import (
    STAYS,
    DefinitionError,
    Effect,
    Lifecycle,
    history,
    ignored,
    row,
    unbounded,
    within,
)
from quadriga.fsm.checking import (
    Move,
    Network,
    Once,
    Part,
    System,
    Unfinished,
    Violation,
    alone,
    call,
    check,
    put,
    search,
    send,
    stateful,
)


@dataclass(frozen=True, slots=True)
class Ask(Effect):
    pass


def ask(it: Any, fired: Any) -> tuple[Effect, ...]:
    return (Ask(),)


def order(backoff: int | None = 10, *rows: Any) -> Lifecycle:
    """It asks once, and again when its time is over, for ever or only once."""
    return Lifecycle(
        "order",
        initial="Open",
        final=("Paid",),
        lasts={"Open": unbounded("send"), "Sent": within(5, then="remind", backoff_to=backoff)},
        rows=(
            row("send", "Open", "Sent", emit=ask),
            row("remind", "Sent", STAYS, emit=ask),
            row("paid", "Sent", "Paid"),
            *rows,
        ),
    )


BANK = Lifecycle(
    "bank",
    initial="Idle",
    final=(),
    lasts={"Idle": unbounded("pay"), "Booked": unbounded("close")},
    rows=(
        row("pay", "Idle", "Booked", emit=ask),
        row("pay", "Booked", "Booked", emit=ask),
        row("close", "Booked", "Idle"),
    ),
)


def shop(table: Lifecycle | None = None, **more: Any) -> System:
    options = {n: more.pop(n) for n in ("always", "possible", "eventually") if n in more}
    return System(
        Part("order", table or order(), will=("send",), on={Ask: send("bank", "pay")}),
        Part("bank", BANK, on={Ask: send("order", "paid")}),
        network=Network(**more),
        **options,
    )


def told(system: Any, **options: Any) -> str:
    return str(search(system, **options).violation)


# -- the network -------------------------------------------------------------------------------------


def test_a_message_that_is_lost_is_missed_unless_it_is_sent_again() -> None:
    check(shop(lose=3))
    check(shop(order(None)))
    assert told(shop(order(None), lose=2)).splitlines() == [
        "is not reached any more after 4 moves: every part ends",
        "  1. outside -> order: send   (Open → Sent)",
        "  2. order -> bank: pay   (is lost)",
        "  3. order -> order: time limit: remind   (stays Sent)",
        "  4. order -> bank: pay   (is lost)",
    ]


def test_a_message_that_is_repeated_arrives_twice() -> None:
    twice: Any = {"paid once": lambda w: w["bank"].state != "Booked" or not w["bank"].again}
    bank = Part(
        "bank",
        BANK,
        {"again": False, "booked": False},
        on={"pay": lambda bank, info: put(again=bank.booked, booked=True)},
    )
    asks = Part("order", order(None), will=("send",), on={Ask: send("bank", "pay")})
    for repeat, moves in ((0, 4), (1, 3)):
        system = System(asks, bank, network=Network(repeat=repeat), always=twice, eventually={})
        violation = search(system).violation
        assert violation is not None and len(violation.moves) == moves
        assert ("(and again)" in str(violation)) == bool(repeat)


def test_messages_of_one_channel_arrive_in_order_unless_they_may_be_overtaken() -> None:
    sender = Lifecycle(
        "sender",
        initial="New",
        final=("Done",),
        lasts={"New": unbounded("go")},
        rows=(row("go", "New", "Done"),),
    )
    receiver = order()
    both = (send("order", "send"), send("order", "paid"))
    parts = (Part("sender", sender, will=("go",), on={"go": both}), Part("order", receiver))
    check(System(*parts))
    swapped = search(System(*parts, network=Network(reorder=1))).violation
    assert swapped is not None and swapped.kind == "refused"
    assert str(swapped).splitlines()[-1] == "  2. sender -> order: paid   (illegal in Open)"
    with pytest.raises(Violation):
        check(System(*parts, network=Network(in_flight=1)))  # both are never on their way
    check(
        System(
            parts[0],
            Part("order", receiver, refuses=True),
            network=Network(reorder=1),
            eventually={},
        )
    )


def test_a_message_that_is_not_delayed_arrives_before_anything_else_happens() -> None:
    reminded: Any = {"it is reminded": lambda world: world.mail and len(world.mail) == 2}
    check(shop(possible=reminded))
    check(shop(possible=reminded, delay=1))
    assert told(shop(possible=reminded, delay=0)) == "is not possible: it is reminded"
    states = [search(shop(delay=delay)).states for delay in (0, 1, 2)]
    assert states == sorted(set(states))


# -- facts -----------------------------------------------------------------------------------------------


class Colour(Enum):
    RED = 1
    BLUE = 2


class Facts(Protocol):
    state: str
    size: Literal["small", "large"]

    @property
    def colour(self) -> Colour: ...
    @property
    def fast(self) -> bool: ...
    @property
    def count(self) -> int: ...


def is_wanted(it: Facts, info: Any) -> bool:
    return it.fast and it.colour is Colour.BLUE and it.size == "large" and info["by"] == "owner"


def few(it: Facts, info: Any) -> bool:
    return it.count < 2


def car(guard: Any) -> Lifecycle:
    return Lifecycle(
        "car",
        initial="New",
        final=("Sold",),
        lasts={"New": unbounded("sell")},
        rows=(row("sell", "New", "Sold", when=guard), ignored("sell", "New", why="not that one")),
    )


def test_facts_with_few_values_need_not_be_declared_and_others_are_told() -> None:
    report = check(car(is_wanted), info={"by": ("owner", "thief")})
    assert (report.states, report.moves, report.untaken) == (2, 5, ())
    assert "car has no fact 'count': declare its values in facts=" in told(car(few))
    assert check(car(few), facts={"count": (1, 2)}).states == 2
    assert "KeyError: 'by: the sender does not say it" in told(car(is_wanted))


def test_a_fact_for_ever_keeps_its_value() -> None:
    check(car(few), facts={"count": (1, 2)})
    assert (
        told(car(few), facts={"count": Once(1, 2)}).splitlines()[-1]
        == "  1. outside -> car: sell   (stays New)"
    )
    seen = {"it is new": lambda world: world["car"].count in (None, 1, 2)}
    assert search(car(few), facts={"count": Once(1, 2)}, eventually={}, always=seen).states == 3


def test_a_guard_that_changes_something_is_told_and_one_that_wavers_as_well() -> None:
    def writes(it: Any, info: Any) -> bool:
        it.count = 3
        return True

    answers = iter([True, False] * 1000)

    def wavers(it: Any, info: Any) -> bool:
        return next(answers)

    assert "car.count is read only" in told(car(writes), facts={"count": 1})
    with pytest.raises(Violation, match="two results"):
        stateful(car(wavers)).TestCase().runTest()


def test_history_and_the_limits_of_composites_are_part_of_a_world() -> None:
    inner = Lifecycle(
        "inner",
        initial="Slow",
        final=(),
        lasts={"Slow": unbounded("faster"), "Fast": unbounded("slower")},
        rows=(row("faster", "Slow", "Fast"), row("slower", "Fast", "Slow")),
    )
    fan = Lifecycle(
        "fan",
        initial="Off",
        final=("Old",),
        lasts={"Off": unbounded("resume"), "On": within(5, then="warn")},
        rows=(
            row("resume", "Off", history("On")),
            row("warn", "On", STAYS, why="it is told"),
            row("stop", "On", "Off"),
            row("scrap", "*", "Old"),
        ),
        inside={"On": inner},
    )
    report = check(fan, will=("scrap",))
    # three histories (none, Slow, Fast) of Off and Old, and of both states inside before and after the limit of On
    assert (report.states, report.untaken) == (18, ())


# -- what is wrong -----------------------------------------------------------------------------------------


def test_a_composition_with_a_mistake_is_refused() -> None:
    part = Part("order", order())
    for make, text in (
        (lambda: System(part, part), "two parts of a composition have the same name"),
        (
            lambda: System(Part("order", order(), may=("sent",))),
            "part order: unknown trigger 'sent'",
        ),
        (
            lambda: System(Part("order", order(), on={"sent": put()})),
            "unknown trigger 'sent'; did you mean 'send'",
        ),
        (lambda: check(shop(bank="x")), "unexpected keyword"),
        (lambda: check(alone(order(), on={Ask: send("bnk", "pay")})), "no part has the name 'bnk'"),
        (
            lambda: check(alone(order(), on={Ask: put(paid=1)})),
            r"put\(\) of 'paid', no first value",
        ),
        (lambda: check(alone(order(), on={Ask: 3})), "a reaction returned 3, no action"),
    ):
        with pytest.raises((DefinitionError, TypeError), match=text):
            make()


def test_a_step_that_calls_for_ever_is_told() -> None:
    loop = order(10, ignored("again", "Sent", why="it is asked to"))
    on: Any = {"again": call("order", "again")}
    assert "calls without an end" in told(loop, on=on, eventually={})


def test_a_search_that_meets_its_bound_says_so_and_judges_only_what_it_knows() -> None:
    report = search(shop(lose=2), max_states=5)
    assert (report.complete, report.violation) == (False, None)
    with pytest.raises(Unfinished, match="5 states are not all"):
        check(shop(lose=2), max_states=5)


def test_a_rule_of_one_world_is_broken_by_the_nearest() -> None:
    violation = search(shop(always={"never paid": lambda w: w["order"].state != "Paid"})).violation
    assert violation is not None
    assert violation.moves == (
        Move("fire", "order", "send"),
        Move("deliver", "bank", "pay", "order"),
        Move("deliver", "order", "paid", "bank"),
    )
    assert "order ->> bank" not in violation.as_mermaid()
    drawn = sequence(violation.happenings, "text")
    assert [name in drawn for name in ("outside", "order", "bank")] == [True] * 3
    assert violation.as_test("shop:SHOP") == (
        "from quadriga.fsm.checking import Move, replay\n"
        "from shop import SHOP\n\n\n"
        "def test_never_paid() -> None:\n"
        '    """Does not hold any more."""\n'
        "    replay(\n"
        "        SHOP,\n"
        "        Move('fire', 'order', 'send'),\n"
        "        Move('deliver', 'bank', 'pay', sender='order'),\n"
        "        Move('deliver', 'order', 'paid', sender='bank'),\n"
        "    )\n"
    )


def test_hypothesis_finds_what_is_wrong_by_chance_as_well() -> None:
    never: Any = {"never paid": lambda world: world["order"].state != "Paid"}
    case = stateful(shop(always=never)).TestCase
    case.settings = settings(
        max_examples=50,
        database=None,
        phases=[Phase.generate],  # the way to it need not be short
        suppress_health_check=[HealthCheck.too_slow],
    )
    with pytest.raises(Violation, match="never paid"):
        case().runTest()


TestShop = stateful(shop(lose=1, repeat=1, reorder=1)).TestCase
TestShop.settings = settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
