"""The gang flows of the design document with a restart after every single message (I7, I8).

The script remembers what it was told, reports it anew, and the flow goes on as if nothing had happened.
"""

from functools import cache
from typing import Any

import pytest

from quadriga import si
from quadriga.core import Options, Output, Scheduler
from quadriga.fsm.lifecycles import application as application_fsm
from quadriga.sim.scripted.flows import FLOWS
from quadriga.sim.scripted.script import ONE_QUEUE, Script

STOPPED = si.TerminationType.STOPPED_BY_RM


class Memory(Script):
    """Restarts after so many steps; ``fresh`` with a new scheduler, else with the same one."""

    def __init__(self, order: str, restart_at: int, *, fresh: bool, unheard: bool) -> None:
        self.restart_at = restart_at
        self.fresh = fresh
        self.unheard = unheard
        self.steps = 0
        self.nodes: dict[str, si.NodeInfo] = {}
        self.apps: dict[str, si.AddApplicationRequest] = {}
        self.asks: dict[tuple[str, str], si.AllocationAsk] = {}
        self.running: dict[tuple[str, str], si.Allocation] = {}
        #: pods whose end it has told; one that was told too early ends as soon as it runs
        self.over: set[str] = set()
        #: how often each pod got a place
        self.placed: dict[tuple[str, str], int] = {}
        self.extra = {"si.messageOrder": order}
        # until the restart it is the flow that was checked without one
        super().__init__(extra=self.extra, check=not restart_at)

    # -- what it remembers -------------------------------------------------------------------------

    def send(self, message: Any) -> list[str]:
        if isinstance(message, si.NodeRequest):
            self.nodes.update((info.nodeID, info) for info in message.nodes)
        elif isinstance(message, si.ApplicationRequest):
            self.apps.update((app.applicationID, app) for app in message.new)
        elif isinstance(message, si.AllocationRequest):
            for ask in message.asks:
                self.asks[ask.applicationID, ask.allocationKey] = ask
            for gone in message.releases.allocationsToRelease:
                self.running.pop((gone.applicationID, gone.UUID), None)
                if gone.terminationType == STOPPED:
                    self.over.add(gone.UUID.rpartition("-")[0])
        return super().send(message)

    def _heard(self, outputs: list[Output]) -> list[str]:
        self.steps += 1
        here = self.steps == self.restart_at
        if here and self.unheard:
            outputs = []
        for _, message in outputs:
            if isinstance(message, si.AllocationResponse):
                for new in message.new:
                    self.running[new.applicationID, new.UUID] = new
                    pod = (new.applicationID, new.allocationKey)
                    assert pod in self.asks, f"{pod} got a place that it did not ask for"
                    del self.asks[pod]
                    self.placed[pod] = self.placed.get(pod, 0) + 1
                for over in message.releasedAsks:
                    self.asks.pop((over.applicationID, over.allocationKey), None)
                for released in message.released:
                    if released.terminationType == STOPPED:
                        self.running.pop((released.applicationID, released.UUID), None)
            elif isinstance(message, si.ApplicationResponse):
                for updated in message.updated:
                    if updated.state in application_fsm.ENDED:
                        self.apps.pop(updated.applicationID, None)
                    elif updated.state in application_fsm.GIVES_BACK:  # an ordinary one from now on
                        app = self.apps[updated.applicationID]
                        app.ClearField("placeholderAsk")
                        app.ClearField("executionTimeoutMilliSeconds")  # else a run limit (X17)
        heard = super()._heard(outputs)
        if here:
            self._restart()
        return heard

    # -- and how it begins anew --------------------------------------------------------------------

    def _restart(self) -> None:
        self.check = True
        if self.fresh:
            self.scheduler = Scheduler(Options(journal_size=None, gang_admission="whole"))
        send = super().send
        send(
            si.RegisterResourceManagerRequest(
                rmID=self.rm_id, config=ONE_QUEUE, extraConfig=self.extra
            )
        )
        for app in [app for app in self.apps if self._is_done(app)]:
            del self.apps[app]
        send(si.ApplicationRequest(rmID=self.rm_id, new=self.apps.values()))
        infos = []
        for node, info in self.nodes.items():
            report = si.NodeInfo()
            report.CopyFrom(info)
            report.existingAllocations.extend(
                each
                for (app, _), each in self.running.items()
                if each.nodeID == node and app in self.apps
            )
            infos.append(report)
        if infos:
            heard = send(si.NodeRequest(rmID=self.rm_id, nodes=infos))
            assert not [line for line in heard if line.startswith("rejected")]
        waiting = [ask for (app, _), ask in self.asks.items() if app in self.apps]
        if waiting:
            send(si.AllocationRequest(rmID=self.rm_id, asks=waiting))

    def _is_done(self, app: str) -> bool:
        """Its pods are gone: leftover placeholders go with it. A Hard gang is over with its placeholders."""
        if any(name == app for name, _ in self.asks):
            return False
        left = [each for (name, _), each in self.running.items() if name == app]
        ran = any(name == app and not self._is_placeholder(key) for name, key in self.placed)
        began = any(name == app for name, _ in self.placed)
        if self.apps[app].gangSchedulingStyle == "Hard" and began and not left:
            return True
        return ran and all(each.placeholder for each in left)

    @staticmethod
    def _is_placeholder(key: str) -> bool:
        return key.startswith("ph-")

    def finish(self) -> None:
        """Let everything come to rest."""
        for _ in range(8):
            self.schedule()
            self.confirm()
            for app, uuid in list(self.running):
                if uuid.rpartition("-")[0] in self.over:
                    self.release(app, uuid)
            self.advance(300)

    def real_pods(self) -> set[str]:
        return {key for _, key in self.placed if not self._is_placeholder(key)}


@cache
def calm_end(name: str, order: str) -> Memory:
    """Without a restart. To be read only."""
    return play(name, order)


def play(name: str, order: str, restart_at: int = 0, **how: bool) -> Memory:
    memory = Memory(order, restart_at, **{"fresh": True, "unheard": False, **how})
    FLOWS[name][1](memory)
    memory.finish()
    return memory


@pytest.mark.parametrize("unheard", [False, True], ids=["heard", "unheard"])
@pytest.mark.parametrize("fresh", [False, True], ids=["same", "fresh"])
@pytest.mark.parametrize("name", FLOWS)
def test_i7_i8_restarts_after_messages(name: str, order: str, fresh: bool, unheard: bool) -> None:
    """The same pods get their place, each once, and the application has the same end."""
    calm = calm_end(name, order)
    for step in range(2, calm.steps):
        here = f"restart after step {step}"
        memory = play(name, order, step, fresh=fresh, unheard=unheard)
        assert memory.real_pods() == calm.real_pods(), here
        assert set(memory.placed.values()) == {1}, here
        assert sorted(memory.apps) == sorted(calm.apps), here
        living = memory.scheduler.partition().applications
        assert sorted(living) == sorted(calm.scheduler.partition().applications), here
        for app_id, app in living.items():
            held = {each.ask.ask_key for each in app.allocations.values()}
            theirs = {
                each.allocationKey
                for (name_, _), each in memory.running.items()
                if name_ == app_id and not each.placeholder
            }
            assert held == theirs, here
            assert not app.placeholders, here
