"""A lifecycle of your own: write the table, fire its triggers, draw it.

The table is checked when it is built. A state that cannot be reached, a row that can never be taken
and a state without a time limit are a ``DefinitionError`` that names the row or the state.
Run it: python examples/own_lifecycle.py
"""

from dataclasses import dataclass, field

from quadriga.fsm import DefinitionError, Effect, Fired, Lifecycle, ignored, row, unbounded, within
from quadriga.fsm.table import Info

HOUR = 3_600_000_000_000  # times are nanoseconds


@dataclass(frozen=True, slots=True)
class Mail(Effect):
    """A reminder to send. The caller of ``fire`` sends it; the table itself has no side effects."""

    text: str


@dataclass(slots=True, eq=False)
class Loan:
    """A book of a library, lent or on its shelf."""

    key: str
    state: str = "Shelved"
    reserved: bool = False
    history: list[str] = field(default_factory=list)


def is_reserved(loan: Loan, info: Info) -> bool:
    return loan.reserved


def remind(loan: Loan, fired: Fired) -> tuple[Effect, ...]:
    return (Mail(f"{loan.key} is due back"),)


# fmt: off
LOAN = Lifecycle(
    "loan",
    initial="Shelved",
    final=("Lost",),
    lasts={
        "Shelved": unbounded("lend"),
        "Lent":    within(14 * 24 * HOUR, then="fall_due"),
        "Overdue": within(90 * 24 * HOUR, then="give_up"),
        "Held":    within(3 * 24 * HOUR, then="shelve"),
    },
    rows=(
        #   trigger      from                 to         guard             emit
        row("lend",      ("Shelved", "Held"), "Lent"),
        row("fall_due",  "Lent",              "Overdue",                   emit=remind),
        row("give_back", ("Lent", "Overdue"), "Held",    when=is_reserved),
        row("give_back", ("Lent", "Overdue"), "Shelved"),
        row("shelve",    "Held",              "Shelved"),
        row("give_up",   "Overdue",           "Lost"),
        ignored("remind", "Overdue",          why="the first reminder was enough"),
    ),
)
# fmt: on


def main() -> None:
    loan = Loan("The Art of Scheduling", reserved=True)
    for trigger in ("lend", "fall_due", "remind", "give_back"):
        before = loan.state
        for effect in LOAN.fire(loan, trigger):
            print(f"to do: {effect}")
        print(f"{trigger}: {before} -> {loan.state}")

    try:
        Lifecycle(
            "loan", initial="Shelved", final=(), lasts={"Shelved": unbounded("lend")}, rows=()
        )
    except DefinitionError as error:
        print(f"not a lifecycle: {error}")

    try:
        from quadriga.diagrams import render
    except ImportError:
        print("(no quadriga.diagrams here, so no picture)")
    else:
        print(render(LOAN, "mermaid"))


if __name__ == "__main__":
    main()
