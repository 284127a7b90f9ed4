"""Records the messages between resource managers and a scheduler, or of any other program.

A recorder stands between the two sides. ``scheduler()`` takes the place of a `Scheduler`, ``api()`` that
of a `SchedulerAPI`: a service in this process or a client of one elsewhere. A program of another kind
calls ``add`` for each of its messages. `quadriga.diagrams.sequence` draws ``exchanges``.

Of a message of the protocol each item is one exchange (`lines`); event records are left out.
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from quadriga.si.api import RequestError, ResourceManagerCallback, SchedulerAPI, has_own
from quadriga.si.lines import lines

_S = TypeVar("_S")

#: the methods of a `ResourceManagerCallback` whose messages are recorded, also where the callback has
#: only inherited them
_TOLD = (
    "update_allocation",
    "update_application",
    "update_node",
    "update_container_scheduling_state",
)


class Exchange(NamedTuple):
    """One message from one participant to another. ``note`` explains it."""

    time_ns: int
    sender: str
    receiver: str
    label: str
    note: str = ""


class RecordingError(ValueError):
    """A file that is not a recording. The text is one line with the location and the reason."""


class Recorder:
    """The messages, in order. It may be used from several threads.

    ``limit`` messages are kept, the newest; ``None`` keeps all. ``only`` says which ones are kept at all
    (``about_name("app-1")``). ``clock`` gives the time (ns) of messages that come without one.
    """

    def __init__(
        self,
        *,
        limit: int | None = 10_000,
        only: Callable[[Exchange], bool] | None = None,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._kept: deque[Exchange] = deque(maxlen=limit)
        self._only = only
        self._clock = clock
        self._lock = threading.Lock()
        self._latest: int | None = None
        #: the number of messages that ``limit`` has displaced
        self.dropped = 0

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """The messages that are kept."""
        with self._lock:
            return tuple(self._kept)

    def add(
        self, sender: str, receiver: str, label: str, *, note: str = "", time_ns: int | None = None
    ) -> None:
        """Record one message. A time before that of the last message counts as that."""
        with self._lock:
            now = self._clock() if time_ns is None else time_ns
            if self._latest is not None and now < self._latest:
                now = self._latest  # two threads, or a clock that was set back
            self._latest = now
            exchange = Exchange(now, sender, receiver, label, note)
            if self._only is not None and not self._only(exchange):
                return
            if len(self._kept) == self._kept.maxlen:
                self.dropped += 1
            self._kept.append(exchange)

    def clear(self) -> None:
        """Forget all messages."""
        with self._lock:
            self._kept.clear()
            self.dropped = 0

    def write(self, path: str | Path) -> int:
        """Write the messages as JSON lines, for ``quadriga draw --messages``; return their number.

        Raises `OSError`.
        """
        exchanges = self.exchanges
        with Path(path).open("w", encoding="utf-8") as stream:
            for exchange in exchanges:
                stream.write(json.dumps(exchange._asdict(), ensure_ascii=False) + "\n")
        return len(exchanges)

    # -- between the two sides -------------------------------------------------------------------

    def scheduler(self, scheduler: _S, name: str = "core", manager: str = "") -> _S:
        """A `Scheduler` whose messages are recorded, with their own times.

        Everything else passes through. A resource manager is called by its rmID, or ``manager``.
        """
        return cast(_S, _RecordedScheduler(self, scheduler, name, manager))

    def api(self, api: SchedulerAPI, name: str = "core", manager: str = "") -> SchedulerAPI:
        """A `SchedulerAPI` whose messages are recorded, with those to the callbacks, at the clock's time.

        A resource manager is called by its rmID, or ``manager``.
        """
        return _RecordedApi(self, api, name, manager)


class _RecordedScheduler:
    """Records what is applied, and the outputs."""

    def __init__(self, recorder: Recorder, scheduler: Any, name: str, manager: str) -> None:
        self._recorder = recorder
        self._scheduler = scheduler
        self._name = name
        self._manager = manager

    def __getattr__(self, name: str) -> Any:
        return getattr(self._scheduler, name)

    def apply(self, message: Any, now: int) -> Any:
        manager = self._manager or message.rmID
        for line in lines(message):
            self._recorder.add(manager, self._name, line, time_ns=now)
        try:
            outputs = self._scheduler.apply(message, now)
        except RequestError as error:
            self._recorder.add(self._name, manager, _refusal(error), time_ns=now)
            raise
        return self._out(outputs, now)

    def advance(self, now: int) -> Any:
        return self._out(self._scheduler.advance(now), now)

    def schedule(self, now: int, *limits: Any, **more: Any) -> Any:
        return self._out(self._scheduler.schedule(now, *limits, **more), now)

    def _out(self, outputs: Any, now: int) -> Any:
        for rm_id, message in outputs:
            for line in lines(message):
                self._recorder.add(self._name, self._manager or rm_id, line, time_ns=now)
        return outputs


class _RecordedApi:
    """Records the requests of resource managers, and wraps their callbacks."""

    def __init__(self, recorder: Recorder, api: SchedulerAPI, name: str, manager: str) -> None:
        self._recorder = recorder
        self._api = api
        self._name = name
        self._manager = manager

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)

    def register_resource_manager(self, request: Any, callback: ResourceManagerCallback) -> Any:
        manager = self._manager or request.rmID
        recorded = cast(
            ResourceManagerCallback,
            _RecordedCallback(self._recorder, callback, self._name, manager),
        )
        return self._pass(
            request, lambda request: self._api.register_resource_manager(request, recorded)
        )

    def update_allocation(self, request: Any) -> None:
        self._pass(request, self._api.update_allocation)

    def update_application(self, request: Any) -> None:
        self._pass(request, self._api.update_application)

    def update_node(self, request: Any) -> None:
        self._pass(request, self._api.update_node)

    def update_configuration(self, request: Any) -> None:
        self._pass(request, self._api.update_configuration)

    def _pass(self, request: Any, method: Callable[[Any], Any]) -> Any:
        manager = self._manager or request.rmID
        for line in lines(request):
            self._recorder.add(manager, self._name, line)
        try:
            return method(request)
        except RequestError as error:
            self._recorder.add(self._name, manager, _refusal(error))
            raise


class _RecordedCallback:
    """Has every method that the callback has, as attributes of its own.

    A scheduler looks whether a callback answers questions itself (`has_own`), so what it inherits from
    `NullCallback` stays that.
    """

    def __init__(self, recorder: Recorder, callback: Any, name: str, manager: str) -> None:
        for method in dir(callback):
            if not method.startswith("_"):
                setattr(self, method, getattr(callback, method))

        def told(message: Any) -> None:
            for line in lines(message):
                recorder.add(name, manager, line)

        def asked(question: str, args: Any) -> None:
            recorder.add(name, manager, f"{question} {args.allocationKey} on {args.nodeID}")

        for method in _TOLD:
            if hasattr(callback, method):
                setattr(self, method, _told_first(getattr(callback, method), told))
        if has_own(callback, "predicates"):

            @wraps(callback.predicates)
            def predicates(args: Any) -> Any:
                asked("predicates", args)
                reason = callback.predicates(args)
                recorder.add(manager, name, "agreed" if reason is None else f"refused: {reason}")
                return reason

            self.predicates = predicates
        if has_own(callback, "preemption_predicates"):

            @wraps(callback.preemption_predicates)
            def preemption_predicates(args: Any) -> Any:
                asked("preemption predicates", args)
                answer = callback.preemption_predicates(args)
                said = f"victims 0 to {answer.index}" if answer.success else "no victims suffice"
                recorder.add(manager, name, said)
                return answer

            self.preemption_predicates = preemption_predicates


def _refusal(error: RequestError) -> str:
    return f"refused {error.request}: {error.reason}"


def _told_first(method: Any, told: Callable[[Any], None]) -> Any:
    @wraps(method)
    def call(message: Any) -> Any:
        told(message)
        return method(message)

    return call


def about_name(name: str) -> Callable[[Exchange], bool]:
    """Whether a message names an application, a node, an ask or an allocation.

    ``app-1`` is in ``new app-1/a-0 on n1`` and in ``add app-1``, but not in ``add app-10``.
    """

    def found(exchange: Exchange) -> bool:
        words = exchange.label.replace("/", " ").split()
        return name in words or name in exchange.label.split()

    return found


def read_exchanges(path: str | Path) -> Iterator[Exchange]:
    """Read a file of `Recorder.write`. Raises `OSError` and `RecordingError`."""
    with Path(path).open(encoding="utf-8") as stream:
        try:
            for number, text in enumerate(stream, 1):
                if text.strip():
                    yield _exchange(path, number, text)
        except UnicodeDecodeError:
            raise RecordingError(f"{path}: not a recording (not UTF-8 text)") from None


def _exchange(path: str | Path, number: int, text: str) -> Exchange:
    try:
        exchange = Exchange(**json.loads(text))
    except (ValueError, TypeError, RecursionError):
        exchange = None
    if exchange is None or not _fits(exchange):
        fields = ", ".join(Exchange._fields)
        raise RecordingError(f"{path}:{number}: not a message (an object with {fields})")
    return exchange


def _fits(exchange: Exchange) -> bool:
    texts: Iterable[object] = exchange[1:]
    return type(exchange.time_ns) is int and all(isinstance(each, str) for each in texts)
