"""A resource manager of your own that reuses the lifecycle of applications, without the scheduler.

It has some slots and places gangs in them. A job is a dictionary, as it could be read from a database;
``Job`` shows the facts that the lifecycle's guards read. The program knows no rule of gangs: it reports
what has happened with every trigger that might apply, and the table decides. What the table wants done
comes back as effects. Run it: python examples/own_rm.py
"""

from __future__ import annotations

from typing import Any

from quadriga.fsm import APPLICATION, Effect
from quadriga.fsm.lifecycles import application as application_fsm
from quadriga.fsm.lifecycles import effects as fx

Record = dict[str, Any]


class Job:
    """A view of a record: the state, and what the guards read. It stores nothing itself."""

    __slots__ = ("record",)

    def __init__(self, record: Record) -> None:
        self.record = record

    @property
    def key(self) -> str:
        return str(self.record["name"])

    @property
    def state(self) -> application_fsm.State:
        state: application_fsm.State = self.record["state"]
        return state

    @state.setter
    def state(self, state: application_fsm.State) -> None:
        self.record["state"] = state

    @property
    def hard(self) -> bool:
        return bool(self.record["hard"])

    @property
    def has_asks(self) -> bool:
        return bool(self.record["placeholder_asks"] or self.record["asks"])

    @property
    def has_allocations(self) -> bool:
        return bool(self.record["members"])

    @property
    def has_placeholders(self) -> bool:
        return bool(self.record["placeholders"])

    @property
    def gathers(self) -> bool:
        return bool(self.record["placeholder_asks"])

    @property
    def gang_complete(self) -> bool:
        return self.record["placeholders"] > 0 and not self.record["placeholder_asks"]

    @property
    def started(self) -> bool:
        return bool(self.record["started"])

    # this program has neither stateaware queues nor limits of time
    starts_aware = False
    run_limit = gang_wait_limit = 0


class SlotManager:
    """Places the pods of its jobs in a number of slots."""

    def __init__(self, slots: int) -> None:
        self.free = slots
        self.jobs: dict[str, Record] = {}

    # -- what happens --------------------------------------------------------------------------

    def submit(self, name: str, size: int, *, hard: bool = False) -> None:
        """A gang asks for a placeholder for each of its members."""
        self.jobs[name] = {
            "name": name, "state": APPLICATION.initial, "hard": hard, "started": False,
            "placeholder_asks": size, "asks": 0, "placeholders": 0, "members": 0,
        }  # fmt: skip
        self.fire(name, application_fsm.ASK)

    def place(self, name: str) -> None:
        """Allocate what has room, first placeholders, then members, and say so."""
        record = self.jobs[name]
        for asks, held in (("placeholder_asks", "placeholders"), ("asks", "members")):
            while record[asks] and self.free:
                self.free -= 1
                record[asks] -= 1
                record[held] += 1
                self.fire(name, application_fsm.RUN)

    def replace(self, name: str) -> None:
        """A member asks and takes the place of a placeholder."""
        record = self.jobs[name]
        self.fire(name, application_fsm.ASK)
        record["placeholders"] -= 1
        record["members"] += 1
        self.fire(name, application_fsm.RUN)

    def finish(self, name: str) -> None:
        """A member has ended."""
        self.jobs[name]["members"] -= 1
        self.free += 1
        self.fire(name, application_fsm.WAIT)

    def confirm(self, name: str, count: int = 1) -> None:
        """Pods of placeholders that had to go are gone."""
        self.jobs[name]["placeholders"] -= count
        self.free += count
        after: application_fsm.Trigger | None = application_fsm.AFTER_REMOVAL[
            self.jobs[name]["state"]
        ]
        if after is not None:
            self.fire(name, after)

    # -- what follows --------------------------------------------------------------------------

    def fire(self, name: str, trigger: application_fsm.Trigger, **info: Any) -> None:
        record = self.jobs[name]
        before = record["state"]
        effects = APPLICATION.fire(Job(record), trigger, **info)
        stays = record["state"] == before
        print(f"  {name}: {trigger} -> {'stays ' if stays else ''}{record['state']}")
        for effect in effects:
            self.execute(record, effect)

    def execute(self, record: Record, effect: Effect) -> None:
        match effect:
            case fx.Fire(trigger):
                self.fire(record["name"], trigger)  # type: ignore[arg-type]
            case fx.ReleaseAsks(placeholders_only, _):
                record["placeholder_asks"] = 0
                record["asks"] *= placeholders_only
            case fx.ReleasePlaceholders(text) | fx.ReleaseAllocations(text):
                print(f"  {record['name']}: stop the pods: {text}")
            case fx.StartedRunning():
                record["started"] = True
            case fx.LeaveQueue():
                print(f"  {record['name']} is over")
            case _:
                pass  # this program sends no updates and counts nothing


def main() -> None:
    manager = SlotManager(slots=3)
    print("a gang of two runs once it has both placeholders")
    manager.submit("good", 2)
    manager.place("good")
    print("its two members replace them, end, and the job completes")
    manager.replace("good")
    manager.replace("good")
    manager.finish("good")
    manager.finish("good")
    manager.fire("good", application_fsm.COMPLETE)

    print("a Hard gang of four gets three placeholders; its time is up")
    manager.submit("hard", 4, hard=True)
    manager.place("hard")
    manager.fire("hard", application_fsm.WAIT)
    manager.fire("hard", application_fsm.PLACEHOLDER_TIMEOUT, reason="ResourceReservationTimeout")
    manager.confirm("hard", 2)
    manager.confirm("hard")

    print("a Soft one continues without placeholders")
    manager.submit("soft", 4)
    manager.place("soft")
    manager.fire("soft", application_fsm.PLACEHOLDER_TIMEOUT, reason="ResourceReservationTimeout")
    manager.confirm("soft", 3)
    manager.jobs["soft"]["asks"] = 1
    manager.fire("soft", application_fsm.ASK)
    manager.place("soft")


if __name__ == "__main__":
    main()
