"""Orders in a database: states, time limits and effects survive a crash, and no effect is lost.

An effect is stored in the same transaction as the state that caused it, in a table called the outbox,
and removed after it has been delivered. If the delivery fails, or the program ends before it, the effect
is delivered later; so it may come twice, and carries a number by which the receiver recognises that.
Deadlines are stored with the orders. Run it: python examples/order_service.py
"""

import json
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from quadriga.base.times import HOUR
from quadriga.fsm import Effect, Entity, Fired, Lifecycle, Timers, row, unbounded, within


@dataclass(frozen=True, slots=True)
class Mail(Effect):
    """A message to the customer."""

    text: str


@dataclass(frozen=True, slots=True)
class Refund(Effect):
    """Money to give back."""

    cents: int


KINDS: dict[str, Callable[..., Effect]] = {"Mail": Mail, "Refund": Refund}


def tell(order: Entity, fired: Fired) -> Iterator[Effect]:
    yield Mail(f"your order is {fired.target.lower()}")


def give_back(order: Entity, fired: Fired) -> Iterator[Effect]:
    yield Refund(fired.info["paid"])


# fmt: off
ORDER = Lifecycle(
    "order",
    initial="Open",
    final=("Delivered", "Cancelled"),
    lasts={
        "Open": within(48 * HOUR, then="cancel"),
        "Paid": unbounded("deliver"),
    },
    rows=(
        #   trigger    from    to           emit
        row("pay",     "Open", "Paid",      emit=tell),
        row("deliver", "Paid", "Delivered", emit=tell),
        row("cancel",  "Open", "Cancelled", emit=tell),
        row("return",  "Paid", "Cancelled", emit=(tell, give_back)),
    ),
    renamed={"New": "Open"},  # it was called so in the first version of this program
)
# fmt: on


@dataclass(slots=True, eq=False)
class Order:
    key: str
    state: str


class Service:
    """The orders of one database file. ``send`` delivers an effect: number, key of the order, effect."""

    def __init__(self, path: str, send: Callable[[int, str, Effect], None]) -> None:
        self.db = sqlite3.connect(path, isolation_level=None)  # transactions begin where we say so
        self.db.executescript(
            "CREATE TABLE IF NOT EXISTS orders (key TEXT PRIMARY KEY, state TEXT, deadline INTEGER);"
            "CREATE TABLE IF NOT EXISTS outbox (number INTEGER PRIMARY KEY AUTOINCREMENT,"
            " key TEXT, effect TEXT)"
        )
        self.send = send
        self.timers = Timers()
        for (key,) in self.db.execute("SELECT key FROM orders ORDER BY rowid").fetchall():
            self.resume(key)

    def open(self, key: str, now: int) -> None:
        """A customer orders something."""
        order = Order(key, ORDER.initial)
        with self.db:
            self.db.execute("BEGIN IMMEDIATE")
            self.db.execute("INSERT INTO orders VALUES (?, ?, NULL)", (key, order.state))
            self.timers.entered(ORDER, order, now)
            self.store(order, ())

    def fire(self, key: str, trigger: str, now: int, **info: Any) -> None:
        """Fire a trigger at a stored order; its state and its effects are stored together, or neither."""
        order = self.load(key)
        try:
            with self.db:
                self.db.execute("BEGIN IMMEDIATE")
                self.store(order, self.timers.fire(ORDER, order, trigger, now, **info))
        except Exception:
            self.resume(key)  # the order in the database is as it was, and so is its time limit
            raise

    def advance(self, now: int) -> None:
        """Fire what is due."""
        for due in self.timers.due(now):
            self.fire(due.key, due.trigger, now)

    def deliver(self) -> None:
        """Send what is in the outbox, in order. An error leaves the rest there, for the next time."""
        for number, key, text in self.db.execute("SELECT * FROM outbox ORDER BY number").fetchall():
            kind, fields = json.loads(text)
            self.send(number, key, KINDS[kind](**fields))
            self.db.execute("DELETE FROM outbox WHERE number = ?", (number,))

    def load(self, key: str) -> Order:
        found = self.db.execute("SELECT key, state FROM orders WHERE key = ?", (key,)).fetchone()
        if found is None:
            raise KeyError(f"there is no order {key}")
        order = Order(*found)
        ORDER.migrate(order)
        return order

    def store(self, order: Order, effects: tuple[Effect, ...]) -> None:
        for effect in effects:
            text = json.dumps([type(effect).__name__, asdict(effect)])  # type: ignore[call-overload]
            self.db.execute("INSERT INTO outbox (key, effect) VALUES (?, ?)", (order.key, text))
        self.db.execute(
            "UPDATE orders SET state = ?, deadline = ? WHERE key = ?",
            (order.state, self.timers.deadline(ORDER, order), order.key),
        )

    def resume(self, key: str) -> None:
        """Continue with the deadline that is stored."""
        query = "SELECT deadline FROM orders WHERE key = ?"
        for (deadline,) in self.db.execute(query, (key,)).fetchall():
            if deadline is not None:
                self.timers.resume(ORDER, self.load(key), deadline)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        live(f"{folder}/orders.db")


def live(path: str) -> None:
    def send(number: int, key: str, effect: Effect) -> None:
        if not mail_works:
            raise ConnectionError("the mail server does not answer")
        print(f"{number}, to {key}: {effect}")

    mail_works = True
    service = Service(path, send)
    service.open("A-1", now=0)
    service.open("A-2", now=HOUR)
    service.fire("A-1", "pay", now=2 * HOUR)
    service.deliver()

    mail_works = False
    service.fire("A-1", "return", now=3 * HOUR, paid=1995)
    try:
        service.deliver()
    except ConnectionError as error:
        print(f"later: {error}")
    service.db.close()

    # the program is started again two days later
    mail_works = True
    service = Service(path, send)
    service.advance(now=50 * HOUR)
    service.deliver()
    for key in ("A-1", "A-2"):
        print(f"{key} is {service.load(key).state}")
    service.db.close()


if __name__ == "__main__":
    main()
