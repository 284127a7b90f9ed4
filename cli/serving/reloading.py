"""Files that are reloaded while the service runs: queues, tokens, the certificate."""

from __future__ import annotations

import asyncio
import logging
import ssl
from typing import TYPE_CHECKING

from quadriga.cli.serving.queues_file import QueuesFile, QueuesFileError
from quadriga.core import RequestError
from quadriga.si.access import Access, AccessError

if TYPE_CHECKING:
    from quadriga.cli.serving.settings import TlsFiles
    from quadriga.core.driver.service import SchedulerService
    from quadriga.si.server import Server

_log = logging.getLogger("quadriga.serve")


class Reloading:
    """Each file is accepted or rejected as a whole; all problems are logged.

    ``outcomes`` counts how often files were accepted and rejected.
    """

    def __init__(
        self,
        service: SchedulerService,
        *,
        queues: QueuesFile | None,
        access: Access,
        files: TlsFiles | None,
        tls: ssl.SSLContext | None,
    ) -> None:
        self.outcomes = {"taken": 0, "refused": 0}
        #: the gRPC server, once it exists
        self.grpc: Server | None = None
        self._service = service
        self._queues = queues
        self._access = access
        self._files = files
        self._tls = tls
        self._task: asyncio.Task[None] | None = None
        self._wanted = False

    def begin(self) -> None:
        """Begin a reload (SIGHUP)."""
        _log.info("SIGHUP: reading the files again")
        try:
            self._access.reload()
        except AccessError as error:
            self._refused("the tokens", [str(error)])
        if self._tls is not None and self._files is not None:
            try:
                self._renew(self._tls, self._files)
            except (OSError, ValueError) as error:
                self._refused("the certificates", [str(error)])
        if self._queues is None:
            _log.info("there is no --config to read again")
            return
        self._wanted = True  # set also while an older version of the file is being read
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._read_while_wanted(self._queues))

    def _renew(self, tls: ssl.SSLContext, files: TlsFiles) -> None:
        from quadriga.base.tls import server_context

        # Loaded into a separate context first: files that do not belong together would leave half
        # of themselves in the active one.
        server_context(files.certificate, files.key)
        if self.grpc is not None:
            self.grpc.renew_certificates()
        tls.load_cert_chain(files.certificate, files.key)

    async def _read_while_wanted(self, queues: QueuesFile) -> None:
        while self._wanted:
            self._wanted = False
            await self._read(queues)

    async def _read(self, queues: QueuesFile) -> None:
        try:
            text = await asyncio.to_thread(queues.read)
            await asyncio.to_thread(self._service.configure, text)
        except QueuesFileError as error:
            self._refused("the queues", error.lines)
        except RequestError as error:
            self._refused("the queues", [error.reason])
        except RuntimeError as error:  # the scheduler has been stopped meanwhile
            self._refused("the queues", [str(error)])
        else:
            for line in queues.warnings:
                _log.warning("%s", line)
            self.outcomes["taken"] += 1
            _log.info("the queues are those of the file again", extra={"file": str(queues.path)})

    def _refused(self, what: str, reasons: list[str]) -> None:
        self.outcomes["refused"] += 1
        number = f"{len(reasons)} problem{'' if len(reasons) == 1 else 's'}"
        _log.error("%s stay%s as before: %s", what, "s" * (what[-1] != "s"), number)
        for reason in reasons:
            _log.error("%s", reason)

    async def ended(self) -> None:
        """Wait until no file is being read."""
        if self._task is not None:
            await self._task
