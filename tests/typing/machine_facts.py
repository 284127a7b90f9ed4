"""Only mypy reads this, with the modules that ``quadriga-fsm stubs`` writes for machines.py. As lifecycle_facts.py."""

from typing import cast

import colours_stub
import dotted_stub
import live_stub
import machines
import nested_stub
import order_stub
import parallel_stub
from transitions import EventData

from quadriga.fsm import FastMachine


class Order(order_stub.Model):
    def charge(self, amount: int, note: str = "") -> None: ...


order = Order()
done: bool = order.pay(3) and order.may_pay(amount=3, note="now") and order.is_paid()
order.state = "paid"
order.trigger("pay", 3)
order.wrap(1, 2, three=3)
order.pya(3)  # wrong: attr-defined
order.pay()  # wrong: call-arg
order.pay("3")  # wrong: arg-type
order.may_pay()  # wrong: call-arg
order.is_piad()  # wrong: attr-defined
order.to_paid()  # wrong: attr-defined
order.state = "piad"  # wrong: assignment
assert order.state != "piad"  # wrong: comparison-overlap
order.trigger("pya")  # wrong: arg-type
order.may_trigger("pya")  # wrong: arg-type
first: order_stub.Trigger = "pya"  # wrong: assignment
typed = cast(order_stub.Machine, FastMachine(order, states=["new", "paid"]))
first = typed.get_triggers("new")[0]
typed.get_triggers("enw")  # wrong: arg-type
typed.dispatch("pya")  # wrong: arg-type


class Parcel(colours_stub.Model):
    def stamp(self, event: EventData) -> None: ...


class Letter(colours_stub.Model):
    def stamp(self, event: int) -> None: ...  # wrong: override


parcel = Parcel()
parcel.colour = machines.Colour.RED
parcel.colour = "RED"  # wrong: assignment
parcel.to_colour_GREEN()
parcel.is_RED()  # wrong: attr-defined

heater = nested_stub.Model()
heater.state = "on_3_x"
heater.is_on(allow_substates=True)
heater.to("on_low")
heater.to("low")  # wrong: arg-type
heater.state = "on.low"  # wrong: assignment

dotted = dotted_stub.Model()
dotted.to_on.s3.x(1)
dotted.is_on.low(allow_substates=True)
dotted.is_on.high()  # wrong: attr-defined

parallel = parallel_stub.Model()
parallel.state = ["p_a", ["p_b", machines.Colour.RED]]
parallel.state = ["p_c"]  # wrong: list-item


async def live(model: live_stub.Model) -> None:
    assert await model.pay() and await model.may_pay() and model.is_paid()
    if model.pay():  # wrong: truthy-bool
        await model.trigger("pya")  # wrong: arg-type
