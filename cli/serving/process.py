"""The process of ``quadriga serve``: its parts, its start, and its end.

One event loop serves gRPC and HTTP; the scheduler has a thread of its own. Everything that runs is
a named part. If one part ends unexpectedly, the process ends: half a service that seems alive is
worse than one that is restarted.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import fields, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from quadriga.cli.errors import FOUND, INTERRUPTED, CommandError
from quadriga.cli.memory import look_less_often
from quadriga.cli.serving import inputs, logs
from quadriga.cli.serving.accept_errors import AcceptErrors
from quadriga.cli.serving.journal_file import JournalFile
from quadriga.cli.serving.notify import Notifier
from quadriga.cli.serving.queues_file import QueuesFile
from quadriga.cli.serving.reloading import Reloading
from quadriga.cli.serving.run_times_file import EVERY_S, RunTimesFile
from quadriga.core import Options, Scheduler
from quadriga.core.driver.service import SchedulerService
from quadriga.core.resources.message_bounds import MessageBounds
from quadriga.core.views import Views
from quadriga.si.access import Access

if TYPE_CHECKING:
    from quadriga.cli.serving.addresses import Address
    from quadriga.cli.serving.kubernetes_part import KubernetesPart
    from quadriga.cli.serving.kubernetes_settings import KubernetesSettings
    from quadriga.cli.serving.settings import Settings
    from quadriga.si.server import Server
    from quadriga.web.server import WebServer
    from quadriga.web.site import Measured

_log = logging.getLogger("quadriga.serve")

#: s between two looks at the scheduler, between two at the journal, and between two steps of the
#: demo
_LOOK_S, _JOURNAL_S, _DEMO_S = 1.0, 0.25, 0.1
#: s; a thread may run this long while another one waits for the interpreter. While the scheduler is
#: busy, the network loop waits this long several times for each answer; Python's default of 5 ms
#: would be most of its latency.
_SWITCH_S: Final = 0.001
#: s; a scheduler that does not respond for this long is logged
_STALLED_S: Final = 10.0
#: s; HTTP responses have this long to finish
_HTTP_GRACE_S: Final = 5.0
#: s; a part may exceed its grace by this much
_SLACK_S: Final = 1.0
#: s; a second signal within this time counts as the same one
_SAME_SIGNAL_S: Final = 0.5
#: s; after the grace and this time, the process ends in any case
_PATIENCE_S: Final = 5.0


def serve(settings: Settings) -> int:
    """Serve until a signal arrives. Returns the exit code. Raises `CommandError` for an invalid
    start."""
    inputs.need(settings)
    queues, text = inputs.queues(settings)
    access = inputs.access(settings)
    logs.set_up(settings.log_level, settings.log_format)
    if settings.demo or settings.client_clock:  # a line for every job would hide all others
        logging.getLogger("quadriga.applications").setLevel(logging.WARNING)
    before, threading.excepthook = threading.excepthook, _thread_failed
    look_less_often(serving=True)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_S)
    try:
        return asyncio.run(_Process(settings, queues, access).run(text))
    finally:
        sys.setswitchinterval(interval)
        threading.excepthook = before


def _thread_failed(failed: threading.ExceptHookArgs) -> None:
    """Log the end of a thread like every other error, above all of the scheduler's thread."""
    name = failed.thread.name if failed.thread is not None else "that is gone"
    _log.critical("thread %s has failed", name, exc_info=failed.exc_value)


def options_of(settings: Settings) -> dict[str, Any]:
    """The options of the scheduler that are limits."""
    bounds = {field.name: getattr(settings, f"max_{field.name}") for field in fields(MessageBounds)}
    return {
        "keep_ended": settings.max_ended,
        "keep_ended_bytes": settings.max_ended_bytes,
        "keep_rejected": settings.max_rejected,
        "keep_rejected_bytes": settings.max_rejected_bytes,
        "keep_users": settings.max_former_users,
        "gang_members": settings.max_gang_members,
        "bounds": MessageBounds(**bounds),
    }


class _Process:
    def __init__(self, settings: Settings, queues: QueuesFile | None, access: Access) -> None:
        self._settings = settings
        self._queues = queues
        self._access = access
        self._notifier = Notifier()
        self._parts: dict[asyncio.Task[None], str] = {}
        self._journal: JournalFile | None = None
        self._run_times: RunTimesFile | None = None
        self._http: WebServer | None = None
        self._grpc: Server | None = None
        self._kubernetes: KubernetesPart | None = None
        self._tls = inputs.tls(settings, access)
        self._ports: dict[str, int] = {}
        self._stopped_at = 0.0

    async def run(self, text: str | None) -> int:
        """Start, serve, and stop."""
        settings = self._settings
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(AcceptErrors())
        self._stop: asyncio.Future[int] = loop.create_future()
        self._journal = inputs.journal_file(settings)
        self._service = self._new_service()
        if settings.journal is not None:
            self._run_times = RunTimesFile(settings.journal)
            self._run_times.load(self._service.scheduler)
        self._views = Views(self._service.scheduler, start_time=time.time_ns())
        self._reloading = Reloading(
            self._service,
            # a scheduler without a thread belongs to the client that steps it
            queues=self._queues if not settings.client_clock else None,
            access=self._access,
            files=settings.tls,
            tls=self._tls,
        )
        code = FOUND
        try:
            self._service.configure(text or "")  # none: the default, whose node order is logged
            self._handle_signals()
            await self._start()
            self._announce()
            code = await self._until_stopped()
        except CommandError:
            raise
        except Exception:
            _log.critical("a part has failed at the start: stopping", exc_info=True)
        finally:
            await self._end(code)
        return code

    # -- the start -------------------------------------------------------------------------------

    def _new_service(self) -> SchedulerService:
        options = Options()
        if self._settings.demo:
            from quadriga.sim.demo import OPTIONS

            options = OPTIONS
        options = replace(options, **options_of(self._settings))
        # the client's time begins at 0, whatever the local clock says
        clock = (lambda: 0) if self._settings.client_clock else None
        return SchedulerService(
            options,
            manual=self._settings.client_clock,
            clock=clock,
            group_answers=self._settings.max_group_answers,
            group_deadline_s=self._settings.group_deadline,
        )

    async def _start(self) -> None:
        settings = self._settings
        self._run("scheduler", self._watch())
        if self._journal is not None:
            self._run("journal", self._keep_journal(self._journal))
        if self._run_times is not None:
            self._run("run times", self._keep_run_times(self._run_times))
        if settings.grpc is not None:
            await self._start_grpc(settings.grpc)
        if settings.http is not None:
            await self._start_http(settings.http)
        if settings.demo:
            self._run("demo", self._live())
        if settings.kubernetes is not None:
            await self._start_kubernetes(settings.kubernetes)

    async def _start_grpc(self, address: Address) -> None:
        from quadriga.cli.serving.grpc_part import check_free, new_server

        try:
            check_free(address)
            self._grpc = new_server(self._settings, address, self._service, self._access)
            self._ports["grpc"] = await self._grpc.start()
            self._reloading.grpc = self._grpc
        except OSError as error:
            raise _cannot_listen(address, error) from None
        except ValueError as error:
            raise CommandError(f"serve: {error}") from None

    async def _start_http(self, address: Address) -> None:
        from quadriga.web.app import create_app
        from quadriga.web.server import WebServer

        settings = self._settings
        app = create_app(
            self._service,
            self._views,
            access=self._access,
            ui=settings.ui,
            require_token_for_reads=settings.require_token_for_reads,
            extra_metrics=[self._measured],
            health_delay=settings.health_delay_s,
        )
        self._http = WebServer(
            app,
            host=address.host,
            port=address.port,
            tls=self._tls,
            connections=settings.max_connections,
            connections_per_client=settings.max_connections_per_client,
        )
        try:
            self._ports["http"] = await self._http.start()
        except OSError as error:
            raise _cannot_listen(address, error) from None
        self._run("http", self._http.ended())

    async def _start_kubernetes(self, settings: KubernetesSettings) -> None:
        from quadriga.cli.serving.kubernetes_part import KubernetesPart
        from quadriga.cli.serving.scraping import Scraping
        from quadriga.k8s.driver.explaining import LocalCore

        scraping = Scraping(self._service, self._measured)
        core = LocalCore(self._service)
        self._kubernetes = KubernetesPart(settings, self._service, core, scraping.text)
        await self._kubernetes.start()
        if self._kubernetes.address is not None:
            self._ports["health"] = self._kubernetes.address.port
        self._run("kubernetes", self._kubernetes.run())

    def _measured(self) -> Iterator[Measured]:
        """Metrics of the process that the scheduler's own metrics do not cover."""
        if self._kubernetes is not None:
            yield from self._kubernetes.measured()
        if self._grpc is not None:
            from quadriga.cli.serving.grpc_part import measured

            yield from measured(self._grpc)
        if self._journal is not None:
            about = "Changes of state that are not in the file of --journal."
            yield "quadriga_journal_file_lost_total", "counter", about, [({}, self._journal.lost)]
        about = "Reloads of the files, by outcome."
        outcomes = [({"outcome": name}, count) for name, count in self._reloading.outcomes.items()]
        yield "quadriga_reloads_total", "counter", about, outcomes

    def _run(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name=name)
        self._parts[task] = name

    def _announce(self) -> None:
        settings = self._settings
        if any(task.done() for task in self._parts):
            return
        if settings.ports_file is not None:
            write_ports(settings.ports_file, self._ports)
        rows = dict(self._addresses())
        if settings.log_format == "text":
            does = "serves" if settings.kubernetes is None else "schedules Kubernetes"
            print(f"quadriga {version('quadriga')} {does}")
            for what, where in rows.items():
                print(f"  {what:<16} {where}")
            print(f"process {os.getpid()}; Ctrl-C or SIGTERM stops it", flush=True)
        _log.info("ready: %s", ", ".join(rows.values()), extra={"pid": os.getpid()})
        self._notifier.ready(", ".join(rows.values()))

    def _addresses(self) -> list[tuple[str, str]]:
        settings = self._settings
        found = []
        if settings.http is not None:
            scheme = "https" if settings.tls is not None else "http"
            base = f"{scheme}://{settings.http.at(self._ports['http'])}"
            if settings.ui is not None:
                found.append(("web UI", f"{base}/"))
            found.append(("pages", f"{base}/ui/"))
            found.append(("REST", f"{base}/ws/v1/"))
            found.append(("metrics", f"{base}/ws/v1/metrics"))
        if settings.grpc is not None:
            how = "TLS" if settings.tls is not None else "plaintext"
            found.append(("shim, gRPC", f"{settings.grpc.at(self._ports['grpc'])} ({how})"))
        if self._kubernetes is not None:
            found.extend(self._kubernetes.rows())
        return found

    # -- while it runs ---------------------------------------------------------------------------

    async def _until_stopped(self) -> int:
        """Wait for a signal, or for the unexpected end of a part."""
        ends: list[asyncio.Future[Any]] = [self._stop, *self._parts]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if self._stop.done():
            return self._stop.result()
        if not self._service.alive:  # other parts may notice this first
            _log.critical("scheduler has ended by itself: stopping")
            return FOUND
        for task, name in self._parts.items():
            if task.done():
                error = task.exception() if not task.cancelled() else None
                _log.critical("%s has ended by itself: stopping", name, exc_info=error)
        return FOUND

    async def _read(self, look: Callable[[Scheduler], Any]) -> Any:
        return await asyncio.wrap_future(self._service.read_later(look))

    async def _watch(self) -> None:
        """Report to systemd that the scheduler responds. Raises if the scheduler has ended."""
        pause = min(_LOOK_S, self._notifier.watchdog_s or _LOOK_S)
        while True:
            answer = asyncio.ensure_future(self._read(lambda scheduler: None))
            while not (await asyncio.wait({answer}, timeout=_STALLED_S))[0]:
                _log.warning("the scheduler has not answered for %g s", _STALLED_S)
            answer.result()
            self._notifier.watchdog()
            await asyncio.sleep(pause)

    async def _keep_journal(self, file: JournalFile) -> None:
        journal = self._service.scheduler.journal
        while True:
            await asyncio.sleep(_JOURNAL_S)
            if journal.count != file.next:
                new = await self._read(lambda scheduler: file.take(scheduler.journal))
                writing = asyncio.ensure_future(asyncio.to_thread(file.write, new))
                try:
                    await asyncio.shield(writing)
                finally:
                    await writing  # no other writer meanwhile, also if this task is cancelled

    async def _keep_run_times(self, file: RunTimesFile) -> None:
        while True:
            await asyncio.sleep(EVERY_S)
            data = await self._read(lambda scheduler: scheduler.run_times())
            await asyncio.shield(asyncio.to_thread(file.write, data))

    async def _live(self) -> None:
        """Run the demo's cluster, in the scheduler's thread."""
        from quadriga.sim.demo import Demo

        demo = Demo(self._service, speed=self._settings.demo_speed)
        began = time.monotonic_ns()
        await self._read(lambda scheduler: demo.begin())
        while True:
            await self._read(lambda scheduler: demo.step(time.monotonic_ns() - began))
            await asyncio.sleep(_DEMO_S)

    # -- signals ---------------------------------------------------------------------------------

    def _handle_signals(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._stopped_by, signal.SIGTERM, 0)
        loop.add_signal_handler(signal.SIGINT, self._stopped_by, signal.SIGINT, INTERRUPTED)
        loop.add_signal_handler(signal.SIGHUP, self._reloading.begin)

    def _stopped_by(self, which: signal.Signals, code: int) -> None:
        now = time.monotonic()
        if not self._stop.done():
            _log.info("%s: stopping, within %g s", which.name, self._settings.grace_s)
            self._stop.set_result(code)
            self._stopped_at = now
            return
        if now < self._stopped_at + _SAME_SIGNAL_S:
            return  # `timeout` and some supervisors signal a process and then its group
        _log.warning("%s again: ending at once", which.name)
        give_up(128 + which)

    # -- the end ---------------------------------------------------------------------------------

    async def _end(self, code: int) -> None:
        self._notifier.stopping()
        grace = self._settings.grace_s
        last = threading.Timer(grace + _PATIENCE_S, give_up, (code or FOUND,))
        last.daemon = True
        last.start()
        if self._kubernetes is not None:  # before the core that it calls
            await self._kubernetes.stop()
        stops: list[Coroutine[Any, Any, None]] = []
        if self._http is not None:
            stops.append(self._http.stop(min(grace, _HTTP_GRACE_S)))
        if self._grpc is not None:
            stops.append(self._grpc.stop(grace))
        for task, name in self._parts.items():
            if name != "http":
                task.cancel()
        try:
            async with asyncio.timeout(grace + _SLACK_S):
                await asyncio.gather(*stops)
        except TimeoutError:
            _log.warning("not all answers ended within %g s: cut off", grace)
        for task in self._parts:
            task.cancel()
        await asyncio.gather(*self._parts, self._reloading.ended(), return_exceptions=True)
        await asyncio.to_thread(self._service.stop)
        if self._journal is not None:
            self._journal.write(self._journal.take(self._service.scheduler.journal))
            self._journal.close()
        if self._run_times is not None:
            self._run_times.write(self._service.scheduler.run_times())
        last.cancel()
        _log.info("stopped")


def give_up(code: int) -> None:
    """End the process at once."""
    for handler in logging.getLogger().handlers:
        handler.flush()
    sys.stdout.flush()
    os._exit(code)


def _cannot_listen(address: Address, error: OSError) -> CommandError:
    return CommandError(f"serve: cannot listen on {address}: {error.strerror or error}", FOUND)


def write_ports(path: Path, ports: Mapping[str, int]) -> None:
    """Write the file atomically: a waiting reader must not see half of it."""
    text = json.dumps(ports) + "\n"
    new = path.with_name(f".{path.name}.{os.getpid()}")
    new.write_text(text, encoding="utf-8")
    new.replace(path)
