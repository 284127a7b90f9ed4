"""``quadriga kubernetes`` as a process: with a core inside, or with one in another process."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
import time
from argparse import Namespace
from collections.abc import Sequence
from importlib.metadata import version
from typing import Final

from quadriga.cli.connecting import connect
from quadriga.cli.errors import FOUND, INTERRUPTED, CommandError
from quadriga.cli.serving import logs
from quadriga.cli.serving.kubernetes_part import KubernetesPart
from quadriga.cli.serving.kubernetes_settings import KubernetesSettings, kubernetes_settings_of
from quadriga.cli.serving.notify import Notifier
from quadriga.cli.serving.process import give_up, serve, write_ports
from quadriga.cli.serving.scraping import plain
from quadriga.cli.serving.settings import settings_of
from quadriga.k8s.driver.core_sender import CoreWatcher
from quadriga.k8s.driver.explaining import Failing
from quadriga.si.client import Client

_log = logging.getLogger("quadriga.serve")

#: s; a second signal within this time counts as the same one
_SAME_SIGNAL_S: Final = 0.5


def schedule(arguments: Namespace) -> int:
    """Schedule until a signal arrives. Returns the exit code. Raises `CommandError`."""
    kubernetes = kubernetes_settings_of(arguments)
    if arguments.connect is None:
        connect(arguments, "kubernetes")  # its options make no sense alone
        return serve(settings_of(arguments, kubernetes))
    try:
        from quadriga.k8s.driver.core_sender import CoreWatcher
    except ImportError as error:
        raise CommandError(
            f"kubernetes: --core needs the extra 'grpc' ({error}): pip install '.[grpc]' in a checkout of Quadriga"
        ) from None
    watcher = CoreWatcher()
    client = connect(arguments, "kubernetes", watcher)
    assert client is not None
    logs.set_up(arguments.log_level, arguments.log_format)
    try:
        process = _RemoteProcess(arguments, kubernetes, client, watcher)
        return asyncio.run(process.run())
    finally:
        client.close()


class _RemoteProcess:
    """The shim alone: the core's process has the queues, the pages and REST."""

    def __init__(
        self,
        arguments: Namespace,
        settings: KubernetesSettings,
        client: Client,
        watcher: CoreWatcher,
    ) -> None:
        self._arguments = arguments
        self._settings = settings
        self._client = client
        self._watcher = watcher
        self._stopped_at = 0.0

    async def run(self) -> int:
        from quadriga.k8s.driver.explaining import RemoteCore

        self._stop: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        core = RemoteCore(self._explain)
        part = KubernetesPart(self._settings, self._client, core, self._metrics)
        self._part, self._watcher.shim = part, part.shim
        self._handle_signals()
        notifier = Notifier()
        try:
            await part.start()
            self._announce(part)
            notifier.ready(f"schedules by {self._client.address}")
            running = asyncio.ensure_future(part.run())
            ends: list[asyncio.Future[int] | asyncio.Future[None]] = [self._stop, running]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if self._stop.done():
                code = self._stop.result()
            else:
                code = FOUND
                _log.critical("kubernetes has ended by itself", exc_info=running.exception())
        finally:
            notifier.stopping()
            last = threading.Timer(self._arguments.grace + 5, give_up, (FOUND,))
            last.daemon = True
            last.start()
            await part.stop()
            last.cancel()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        _log.info("stopped")
        return code

    def _explain(self, application_id: str, allocation_key: str) -> tuple[str, Sequence[Failing]]:
        found = self._client.explain(application_id, allocation_key, predicates=False)
        return found.verdict, found.checks

    async def _metrics(self) -> bytes:
        return plain(self._part.measured())

    def _announce(self, part: KubernetesPart) -> None:
        arguments = self._arguments
        if arguments.ports_file is not None:
            ports = {"health": part.address.port} if part.address is not None else {}
            write_ports(arguments.ports_file, ports)
        rows = [("core", self._client.address), *part.rows()]
        if arguments.log_format == "text":
            print(f"quadriga {version('quadriga')} schedules Kubernetes")
            for what, where in rows:
                print(f"  {what:<16} {where}")
            print(f"process {os.getpid()}; Ctrl-C or SIGTERM stops it", flush=True)
        _log.info("ready: %s", ", ".join(where for _, where in rows), extra={"pid": os.getpid()})

    def _handle_signals(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._stopped_by, signal.SIGTERM, 0)
        loop.add_signal_handler(signal.SIGINT, self._stopped_by, signal.SIGINT, INTERRUPTED)

    def _stopped_by(self, which: signal.Signals, code: int) -> None:
        now = time.monotonic()
        if not self._stop.done():
            _log.info("%s: stopping, within %g s", which.name, self._arguments.grace)
            self._stop.set_result(code)
            self._stopped_at = now
        elif now >= self._stopped_at + _SAME_SIGNAL_S:
            _log.warning("%s again: ending at once", which.name)
            give_up(128 + which)
