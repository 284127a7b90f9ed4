"""A slow model of the Go core's decisions, for scenarios that nobody played on the Go core."""

from collections.abc import Sequence
from typing import Any

from quadriga.core.config import QueueConfig, load
from tests.oracle.models import model_limits as limits
from tests.oracle.models.model_cycles import TIMEOUT, Cycles, Word
from tests.oracle.models.model_members import REPLACED
from tests.oracle.models.model_parts import App, Ask, Group, Node, Queue, Resources, plus, within

#: the steps that it can follow
OPERATIONS = frozenset(
    "register updateConfiguration addNode nodeAction addApp removeApp ask releaseAlloc releaseAsk "
    "schedule scheduleIdle advance inspect dump cleanQueues cleanExpired confirm".split()
)


class Model(Cycles):
    """Plays a scenario and says for each step what the resource manager is told of it."""

    def play(self, step: dict[str, Any]) -> list[Word]:
        self._said = []
        arguments = {key: value for key, value in step.items() if key != "op"}
        getattr(self, f"_{step['op']}")(**arguments)
        return self._said

    def starts_aware(self, app_id: str) -> bool:
        app = self.apps.get(app_id)
        return app is not None and app.starts_aware

    def _nothing(self, **_: Any) -> None:
        """Nothing that concerns decisions."""

    _inspect = _dump = _cleanQueues = _cleanExpired = _nothing

    # -- queues and nodes ------------------------------------------------------------------------------

    def _register(self, config: str, **_: Any) -> None:
        self.partition = load(config, node_sort_policy="fair").partitions[0]
        self.root = self._tree(self.partition.root, None)

    def _tree(self, config: QueueConfig, parent: Queue | None) -> Queue:
        queue = Queue(config, parent)
        queue.children = {child.name: self._tree(child, queue) for child in config.children}
        return queue

    def _updateConfiguration(self, config: str, **_: Any) -> None:
        """Only what happens to queues that are configured before and after."""
        self.partition = load(config, node_sort_policy="fair").partitions[0]
        self._follow(self.root, self.partition.root)
        for app in self.apps.values():
            if not app.bound:
                limits.bind(app)

    def _follow(self, queue: Queue, config: QueueConfig) -> None:
        queue.config = config
        for child in config.children:
            if child.name in queue.children:
                self._follow(queue.children[child.name], child)
            else:
                queue.children[child.name] = self._tree(child, queue)

    def _addNode(
        self,
        nodeID: str,
        resources: Resources | None = None,
        occupied: Resources | None = None,
        action: str = "CREATE",
        **_: Any,
    ) -> None:
        if nodeID not in self.nodes and action in ("CREATE", "CREATE_DRAIN"):
            node = Node(nodeID, resources or {}, occupied or {})
            node.schedulable = action == "CREATE"
            self.nodes[nodeID] = node

    def _nodeAction(
        self, nodeID: str, action: str, resources: Resources | None = None, **more: Any
    ) -> None:
        node = self.nodes.get(nodeID)
        if action in ("CREATE", "CREATE_DRAIN"):
            self._addNode(nodeID, resources, action=action, **more)
        elif node is None:
            return
        elif action == "UPDATE":
            if resources is not None:
                node.total = resources
            if more.get("occupied") is not None:
                node.occupied = more["occupied"]
        elif action in ("DRAIN_NODE", "DRAIN_TO_SCHEDULABLE"):
            node.schedulable = action == "DRAIN_TO_SCHEDULABLE"
        elif action == "DECOMISSION":
            if node.reserved_by is not None:
                self._unreserve(node.reserved_by)
            del self.nodes[nodeID]
            for held in [h for app in self.apps.values() for h in app.placeholders.values()]:
                if held.target is node and held.node is not node and held.taken_by is not None:
                    held.taken_by.pending = True
                    self._unplan(held)
            for key, app in sorted(
                (key, each)
                for each in self.apps.values()
                for key, held in (*each.allocations.items(), *each.placeholders.items())
                if held.node is node
            ):
                if app.allocations.pop(key, None) is None:
                    held = app.placeholders[key]
                    if held.target is not None and held.target is not node:
                        self._finish(app, key)
                        self._look_on(app, not app.placeholders)
                        continue
                    self._placeholder_gone(app, key)
                    self._look_on(app, not app.placeholders)
                else:
                    self._look_on(app, True)

    # -- applications ----------------------------------------------------------------------------------

    def _addApp(
        self,
        appID: str,
        queue: str,
        placeholderAsk: Resources | None = None,
        gangSchedulingStyle: str = "",
        executionTimeoutMs: int = 0,
        tags: dict[str, str] | None = None,
        user: str = "testuser",
        groups: Sequence[str] = (),
        **_: Any,
    ) -> None:
        at = self.root
        for name in queue.split(".")[1:]:
            if name not in at.children:
                return
            at = at.children[name]
        if appID in self.apps or not user:
            return
        fair = at.config.properties.sort_policy == "fair"
        if placeholderAsk and (fair or not self._can_fit(at, placeholderAsk)):
            return  # G6, G7
        app = App(
            appID,
            at,
            self._next(),
            placeholderAsk or {},
            executionTimeoutMs if executionTimeoutMs > 0 else 900_000,
            gangSchedulingStyle == "Hard",
            not (tags or {}).get("application.stateaware.disable"),
            user,
            tuple(groups),
        )
        limits.bind(app)
        self.apps[appID] = at.apps[appID] = app

    def _can_fit(self, leaf: Queue, whole: Resources) -> bool:
        return all(within(queue.config.max or None, whole) for queue in leaf.lineage[:-1])

    def _removeApp(self, appID: str, **_: Any) -> None:
        app = self.apps.get(appID)
        if app is not None:
            self._forget(app)
            for held in (*app.allocations.values(), *app.placeholders.values()):
                self._unplan(held)
                held.node.allocated = plus(held.node.allocated, held.ask.resources, -1)

    def _look_on(self, app: App, mattered: bool) -> None:
        """Something of it was removed: a real allocation or an ask, or the last placeholder."""
        if app.state in ("Accepted", "Starting", "Running"):
            if mattered and not app.asks and not app.allocations:
                self._enter(app, "Completing")
            else:
                self._run_if_complete(app)
        elif app.state == "Completing" and app.completing and not app.placeholders:
            self._enter(app, "Completed")
        elif app.state == "Resuming" and not app.placeholders:
            self._enter(app, "Accepted")
            if app.allocations:  # X28: it follows them
                self._run(app)
        elif app.state == "Failing" and not app.placeholders and not app.allocations:
            self._enter(app, "Failed")

    # -- asks and releases -----------------------------------------------------------------------------

    def _ask(
        self,
        appID: str,
        resources: Resources,
        keys: tuple[str, ...] = (),
        key: str = "",
        priority: int = 0,
        placeholder: bool = False,
        taskGroup: str = "",
        tags: dict[str, str] | None = None,
        originator: bool = False,
        allowPreemptSelf: bool | None = None,
        allowPreemptOther: bool | None = None,
        **_: Any,
    ) -> None:
        app = self.apps.get(appID)
        if app is None or app.state == "Failing" or not any(resources.values()):
            return
        required = (tags or {}).get("yunikorn.apache.org/requiredNode", "")
        for each in keys or (key,):
            ask = Ask(app, each, resources, priority, self._next(), self.now, required)
            ask.placeholder, ask.task_group = placeholder, taskGroup
            ask.originator = originator
            if allowPreemptSelf is not None or allowPreemptOther is not None:
                ask.allow_self = bool(allowPreemptSelf)
                ask.allow_other = bool(allowPreemptOther)
            app.asks[each] = ask
            if placeholder:
                app.task_groups.setdefault(taskGroup, Group()).count += 1
        if app.state in ("New", "Completing"):
            self._enter(app, "Accepted" if app.state == "New" else "Running")

    def _releaseAsk(self, appID: str, key: str = "", **_: Any) -> None:
        app = self.apps.get(appID)
        if app is None:
            return
        gone = [ask for ask in app.asks.values() if ask.key == (key or ask.key)]
        for ask in gone:
            self._drop(ask)
            if ask.placeholder:
                app.task_groups[ask.task_group].count -= 1
        if gone:
            self._look_on(app, True)

    def _drop(self, ask: Ask) -> None:
        self._unreserve(ask)
        del ask.app.asks[ask.key]
        for held in ask.app.placeholders.values():
            if held.taken_by is ask:
                self._unplan(held)
        if ask in ask.app.stranded:
            ask.app.stranded.remove(ask)

    def _releaseAlloc(self, appID: str, allocationID: str, **_: Any) -> None:
        app = self.apps.get(appID)
        key, _, number = allocationID.rpartition("-")
        held = None if app is None else app.allocations.get(key) or app.placeholders.get(key)
        if held is None or held.ask.fallen != int(number):
            return
        if app is not None and key in app.allocations:
            held = app.allocations.pop(key)
            held.node.allocated = plus(held.node.allocated, held.ask.resources, -1)
            self._look_on(app, True)
        elif app is not None and key in app.placeholders:
            held = app.placeholders[key]
            held.node.allocated = plus(held.node.allocated, held.ask.resources, -1)
            self._placeholder_gone(app, key)
            self._look_on(app, not app.placeholders)

    def _placeholder_gone(self, app: App, key: str) -> None:
        """Nobody takes its place; a real ask that was to take it waits again."""
        held = app.placeholders.pop(key)
        app.task_groups[held.ask.task_group].timed_out += 1
        app.lost = plus(app.lost, held.ask.resources)
        if held.taken_by is not None:
            held.taken_by.pending = True
            self._unplan(held)
        self._last_placeholder(app)

    def _last_placeholder(self, app: App) -> None:
        if not app.placeholders and app.state not in ("New", "Accepted"):
            app.placeholder_deadline = None

    def _confirm(self, types: tuple[str, ...] = ()) -> None:
        confirmed, self.outstanding = self.outstanding, []
        for app, key in confirmed:
            held = app.placeholders.get(key)
            if self.apps.get(app.app_id) is not app:
                continue
            if held is None:
                if key in app.allocations:
                    self._releaseAlloc(app.app_id, f"{key}-{app.allocations[key].ask.fallen}")
                continue
            if held.released != REPLACED or held.taken_by is None:
                held.node.allocated = plus(held.node.allocated, held.ask.resources, -1)
                self._placeholder_gone(app, key)
                self._look_on(app, not app.placeholders)
                continue
            self._finish(app, key)

    def _finish(self, app: App, key: str) -> None:
        """A placeholder is gone, and its member takes its place, or another one, or has none yet."""
        first = not app.allocations
        real = self._complete(app, key)
        self._last_placeholder(app)
        if real is None:
            return
        if app.state == "Resuming" and not app.placeholders:  # X28
            self._enter(app, "Accepted")
        self._run(app, first_replacement=first)
        self._said.append(("new", app.app_id, real.key, app.allocations[real.key].node.node_id))

    # -- time ------------------------------------------------------------------------------------------

    def _advance(self, ms: int) -> None:
        until = self.now + ms
        while True:
            due = [
                (when, app.seq, fire, app)
                for app in self.apps.values()
                for when, fire in (
                    (app.deadline, self._state_timed_out),
                    (app.placeholder_deadline, self._gang_timed_out),
                    (app.idle_deadline, self._look_whether_idle),
                )
                if when is not None and when <= until
            ]
            if not due:
                break
            self.now, _, fire, app = min(due, key=lambda each: each[:2])
            fire(app)
        self.now = until

    def _state_timed_out(self, app: App) -> None:
        app.deadline = None
        if app.state == "Starting":
            self._enter(app, "Running")
        elif app.placeholders:
            app.completing = True
            for key in app.placeholders:
                self._give_back(app, key, TIMEOUT)
        else:
            self._enter(app, "Completed")

    def _look_whether_idle(self, app: App) -> None:
        """A gang that waits for nothing fails, or, given up before, has nothing left to do (V7)."""
        app.idle_deadline = None
        if app.state != "Accepted":
            return
        empty = not app.placeholders and not any(ask.placeholder for ask in app.waiting)
        if not app.over and empty:
            self._gang_timed_out(app)
        elif app.over and not app.asks and not app.holds:
            self._enter(app, "Completing")
        else:
            app.idle_deadline = self.now + app.timeout

    def _gang_timed_out(self, app: App) -> None:
        app.placeholder_deadline = None
        if app.state == "Accepted":
            self._enter(app, "Failing" if app.hard else "Resuming")
            app.started = False  # from now on it is an ordinary application
            app.over = True
            for ask in [ask for ask in app.asks.values() if app.hard or ask.placeholder]:
                self._said.append(("released", app.app_id, ask.key, TIMEOUT))
                self._drop(ask)
                if ask.placeholder:
                    app.task_groups[ask.task_group].timed_out += 1
        for key in app.placeholders:
            self._give_back(app, key, TIMEOUT)
