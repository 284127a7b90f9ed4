"""Every order in which a few jobs may arrive and end, explored depth first; no state is explored twice.

A state is which jobs wait, in the order of their arrival, what each has on which node, and which nodes are
reserved for it. After each step the same time passes, so that nothing else depends on when the steps were.
"""

from collections.abc import Iterator
from dataclasses import replace

from finite_history import History, Run
from finite_jobs import Setting

#: arrive: the job's name and True; end: its name and False
Step = tuple[str, bool]


class _Steered(History):
    """A job ends when it is told to."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.running: dict[str, Run] = {}
        self.settle()

    def started(self, run: Run) -> None:
        self.running[run.job.name] = run


class Orders:
    """``pace`` seconds pass after each step. ``stuck`` has the paths after which a job never ends."""

    def __init__(self, setting: Setting, pace: int) -> None:
        self.setting = setting
        self.jobs = {job.name: job for job in setting.jobs}
        self.pace = pace
        self.seen: set[object] = set()
        self.stuck: list[tuple[tuple[Step, ...], str]] = []
        self.ends = 0
        self.replays = 0

    def explore(self) -> None:
        """Explore every order. Stops at the first path on which a job never ends."""
        pending: list[tuple[Step, ...]] = [()]
        while pending and not self.stuck:
            path = pending.pop()
            history = self._replay(path)
            self.replays += 1
            while self._is_new(history):
                steps = list(self._steps(history))
                if not steps:
                    steps = self._after_waiting(history, path)
                    if not steps:
                        break
                first, *others = steps
                pending += [(*path, step) for step in others]
                path = (*path, first)
                self._take(history, first)

    def _replay(self, path: tuple[Step, ...]) -> _Steered:
        history = _Steered(replace(self.setting, jobs=()))
        for step in path:
            if not (step[1] or step[0] in history.running):
                assert self._idle(history)  # it began to run while nothing else could happen
            self._take(history, step)
        return history

    def _take(self, history: _Steered, step: Step) -> None:
        name, arrives = step
        if arrives:
            history.submit(self.jobs[name])
        else:
            history.finish(history.running.pop(name))
        history.settle()
        if self.pace:
            history.wait(self.pace)

    def _steps(self, history: _Steered) -> Iterator[Step]:
        for name in self.jobs:
            if name in history.running:
                yield name, False
            elif name not in history.ended and name not in history.runs:
                yield name, True

    def _after_waiting(self, history: _Steered, path: tuple[Step, ...]) -> list[Step]:
        """All have arrived and none runs: only timers of the scheduler can help."""
        if not history.runs:
            self.ends += 1
            return []
        self._idle(history)
        if not history.running:
            self.stuck.append((path, history.picture()))
        return list(self._steps(history))

    def _idle(self, history: _Steered) -> bool:
        """Wait until a job runs, or nothing changes any more."""
        while not history.running and history.step():
            pass
        return bool(history.running)

    def _is_new(self, history: _Steered) -> bool:
        state = self._state(history)
        if state in self.seen:
            return False
        self.seen.add(state)
        return True

    def _state(self, history: _Steered) -> object:
        """Members of a task group are alike: only their numbers on each node count."""
        scheduler = history.voice.scheduler
        waiting = []
        for run in history.runs.values():
            app = scheduler.application(run.app_id)
            here = [
                (each.ask.kind.placeholder, run.groups[each.ask.ask_key], each.node.node_id)
                for each in (*app.placeholders.values(), *app.allocations.values())
            ]
            kept = [(run.groups[r.ask.ask_key], r.node.node_id) for r in app.reservations]
            waiting.append(
                (
                    run.app_id,
                    app.state,
                    run.app_id in history.running,
                    tuple(sorted(here)),
                    tuple(sorted(kept)),
                )
            )
        return frozenset(history.ended), tuple(waiting)
