"""A busy cluster for the tests of the pages; a step (``do``) is done in the thread of the service."""

from __future__ import annotations

import json
from collections.abc import Callable

from quadriga.core import Options, Scheduler
from quadriga.core.driver.service import SchedulerService
from quadriga.core.views import Views
from quadriga.si import NodeInfo, TerminationType
from quadriga.si.constants import HOST_NAME, INSTANCE_TYPE, NODE_READY_ATTRIBUTE, RACK_NAME
from quadriga.sim.scripted.script import Script

GI = 2**30

#: names that would be scripts if anybody put them into a page as HTML
NASTY = "<img src=x onerror=\"document.title='broken'\">"
NASTY_USER = "<script>document.title='broken'</script>"
NASTY_NODE = "node-<b onmouseover=alert(1)>&amp;"

CONFIG = """\
partitions:
  - name: default
    nodesortpolicy: {type: fair}
    placementrules:
      - {name: provided, create: true}
      - name: user
        parent: {name: fixed, value: root.people}
        create: true
        filter: {type: allow, groups: [interns]}
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: production
            parent: true
            resources: {guaranteed: {vcore: 24, memory: 96Gi}, max: {vcore: 64, memory: 256Gi}}
            properties: {priority.offset: "10", preemption.policy: fence}
            queues:
              - name: web
                resources: {guaranteed: {vcore: 16, memory: 64Gi}, max: {vcore: 40, memory: 160Gi}}
              - {name: billing, maxapplications: 1, resources: {max: {vcore: 8, memory: 32Gi}}}
          - name: research
            parent: true
            resources: {max: {vcore: 56, memory: 400Gi, nvidia.com/gpu: 8}}
            queues:
              - name: gangs
                properties: {application.sort.policy: fifo}
                resources: {max: {vcore: 40, memory: 300Gi}}
              - name: notebooks
                limits:
                  - limit: each may have a little
                    users: ['*']
                    maxapplications: 3
                    maxresources: {vcore: 4, memory: 16Gi}
                  - {limit: the lab, groups: [lab], maxresources: {vcore: 12, memory: 64Gi}}
          - name: people
            parent: true
            childtemplate: {maxapplications: 4, resources: {max: {vcore: 6}}}
          - name: leaving
"""


def wide_config(parents: int, leaves: int) -> str:
    """So many queues below root, each with so many leaves."""
    sizes = {f"project-{n:02}": {"vcore": 4 + n, "memory": f"{8 + n}Gi"} for n in range(leaves)}
    below = [{"name": name, "resources": {"max": size}} for name, size in sizes.items()]
    teams = [{"name": f"team-{n:02}", "queues": below} for n in range(parents)]
    root = {"name": "root", "submitacl": "*", "queues": teams}
    return json.dumps({"partitions": [{"name": "default", "queues": [root]}]}, indent=1)


class Scene:
    """``with Scene() as scene:`` ``stage`` builds what there is; by default something of everything."""

    def __init__(self, config: str = CONFIG, stage: Callable[[Scene], None] | None = None) -> None:
        self.now = 1_767_261_600 * 10**9
        self.service = SchedulerService(
            # equal asks reserve several nodes, so that there are some to show
            Options(reservation_delay=2 * 10**9, bound_reservations=False, gang_admission="whole"),
            clock=lambda: self.now,
        )
        self.views = Views(self.service.scheduler, start_time=self.now)
        self._config = config

        def register(scheduler: Scheduler) -> Script:
            scheduler.advance(self.now)
            return Script(config, scheduler=scheduler, check=False, version="1.7.0")

        self.script: Script = self.service.read(register)
        (stage or Scene.busy)(self)

    def __enter__(self) -> Scene:
        return self

    def __exit__(self, *_: object) -> None:
        self.service.stop()

    def do(self, what: Callable[[Script], object]) -> None:
        """One step in the thread of the scheduler's owner."""

        def step(scheduler: Scheduler) -> None:
            self.script.now = self.now
            try:
                what(self.script)
                self.script.schedule()
            finally:
                self.now = self.script.now

        self.service.read(step)

    # -- what there is -----------------------------------------------------------------------------

    def busy(self) -> None:
        for part in (_nodes, _production, _gangs, _notebooks, _ends, _waiting):
            self.do(part)
        self.do(lambda script: script.advance(3))
        self.do(_late)
        self.service.read(lambda scheduler: self.views.check_health())


def _nodes(script: Script) -> None:
    for number in range(14):
        ready = "false" if number == 13 else "true"
        gpus = {"nvidia.com/gpu": 4} if number in (3, 4) else {}
        attributes = {
            HOST_NAME: f"host-{number:02}.example.org",
            RACK_NAME: f"rack-{number % 3}",
            INSTANCE_TYPE: "m5.2xlarge",
            NODE_READY_ATTRIBUTE: ready,
        }
        name = f"node-{number:02}"
        script.node(name, attributes=attributes, vcore=8_000, memory=32 * GI, **gpus)
    script.node(NASTY_NODE, vcore=2_000, memory=4 * GI, occupied={"vcore": 500, "memory": GI})
    script.node("node-13", NodeInfo.DRAIN_NODE)


def _production(script: Script) -> None:
    script.app("web-shop", "root.production.web", user="deploy", tags={"team": "shop"})
    script.ask("web-shop", "front", repeat=6, vcore=2_000, memory=8 * GI)
    script.ask("web-shop", "back", repeat=4, vcore=3_000, memory=6 * GI, priority=5)
    script.app("web-search", "root.production.web", user="deploy")
    script.ask("web-search", "index", repeat=3, vcore=4_000, memory=24 * GI)
    script.app("invoices", "root.production.billing", user="ledger")
    script.ask("invoices", "run", vcore=1_000, memory=2 * GI)
    script.schedule()
    script.advance(47)
    script.app("dunning", "root.production.billing", user="ledger")
    script.ask("dunning", "run", vcore=1_000, memory=2 * GI)


def _gangs(script: Script) -> None:
    """One that runs with some of its placeholders replaced, one that gathers, one that never fits."""
    lab = ("lab",)
    script.app("train-resnet", "root.research.gangs", user="ada", groups=lab,
               gang={"vcore": 10_000, "memory": 40 * GI}, timeout_ms=900_000)  # fmt: skip
    script.ask("train-resnet", "driver-ph", group="driver", placeholder=True,
               vcore=2_000, memory=8 * GI)  # fmt: skip
    script.ask("train-resnet", *(f"worker-ph-{n}" for n in range(4)), group="worker",
               placeholder=True, vcore=2_000, memory=8 * GI)  # fmt: skip
    script.schedule()
    script.advance(9)
    script.ask("train-resnet", "driver", group="driver", vcore=2_000, memory=8 * GI)
    script.ask("train-resnet", "worker-0", "worker-1", group="worker", vcore=2_000, memory=8 * GI)
    script.schedule()
    script.confirm(most=2)  # and one is still under way
    script.app("train-bert", "root.research.gangs", user="grace", groups=lab, style="Hard",
               gang={"vcore": 24_000, "memory": 96 * GI}, timeout_ms=600_000)  # fmt: skip
    script.ask("train-bert", *(f"bert-ph-{n}" for n in range(4)), group="trainer",
               placeholder=True, vcore=6_000, memory=24 * GI)  # fmt: skip
    script.ask("train-bert", "bert-0", group="trainer", vcore=6_000, memory=24 * GI)
    script.app("train-moon", "root.research.gangs", user="grace", groups=lab,
               gang={"vcore": 64_000, "memory": 64 * GI})  # fmt: skip
    script.app("train-sun", "root.research.gangs", user="ada", groups=lab,
               gang={"vcore": 28_000, "memory": 64 * GI})  # fmt: skip
    script.ask("train-sun", *(f"sun-ph-{n}" for n in range(7)), group="sun",
               placeholder=True, vcore=4_000, memory=8 * GI)  # fmt: skip


def _notebooks(script: Script) -> None:
    for number in range(5):
        app, user = f"notebook-{number}", ("ada", "grace", "linus")[number % 3]
        script.app(app, "root.research.notebooks", user=user, groups=("lab",))
        script.ask(app, "kernel", vcore=1_500, memory=4 * GI)
        script.advance(4)
    script.schedule()
    script.ask("notebook-0", "big", vcore=3_000, memory=14 * GI)  # more than its user may have
    script.app(NASTY, "root.research.notebooks", user=NASTY_USER, tags={"note": NASTY})
    script.ask(NASTY, "<i>pod</i>", vcore=100, memory=GI)
    script.app("trainee", "", user="ines", groups=("interns",))
    script.ask("trainee", "shell", vcore=500, memory=GI)


def _ends(script: Script) -> None:
    script.app("nightly-1", "root.leaving", user="cron")
    script.ask("nightly-1", "pod", vcore=100, memory=GI)
    script.schedule()
    script.advance(20)
    script.release("nightly-1")
    script.advance(31)
    script.app("nightly-2", "root.leaving", user="cron")
    script.ask("nightly-2", "pod", vcore=100, memory=GI)
    script.schedule()
    script.remove_app("nightly-2")
    script.app("lost", "root.production", user="cron")  # a parent takes no applications
    script.app("nightly-3", "root.leaving", user="cron")
    script.ask("nightly-3", "pod", vcore=100, memory=GI)
    script.schedule()


def _waiting(script: Script) -> None:
    """Somebody who will have a node reserved, somebody whom no node is large enough for."""
    script.app("render", "root.leaving", user="mona")
    script.ask("render", *(f"tile-{n}" for n in range(9)), vcore=3_500, memory=2 * GI)
    script.schedule()
    script.app("simulation", "root.leaving", user="mona")
    script.ask("simulation", "whole-node", vcore=8_000, memory=30 * GI, priority=3)
    script.app("monster", "root.leaving", user="mona")
    script.ask("monster", "huge", vcore=96_000, memory=2048 * GI)


def _late(script: Script) -> None:
    """The queue goes away while applications are in it; gangs time out, or not."""
    script.schedule()
    start = CONFIG.index("          - name: leaving")
    script.configure(CONFIG[:start])
    script.confirm(TerminationType.TIMEOUT)
