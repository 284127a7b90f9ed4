"""Non-blocking sockets on the event loop, with or without TLS.

The loop's own transport passes each TLS record through memory and several callbacks, which takes as much
processor time as the request itself. Here OpenSSL reads and writes the socket directly.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from asyncio import AbstractEventLoop
from collections.abc import Callable
from typing import Any, Final

from quadriga.k8s.tuning import TUNING

_NOT_NOW: Final = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Wire:
    """A connected socket. ``received(data)`` is called for each piece of data; ``ended(why)`` once at its end,
    with "" if the other side has closed it, and not after `close`."""

    __slots__ = ("_ended", "_fd", "_loop", "_paused", "_received", "_sock", "_unsent", "open")

    def __init__(
        self,
        loop: AbstractEventLoop,
        sock: socket.socket,
        received: Callable[[bytes], None],
        ended: Callable[[str], None],
    ) -> None:
        self._loop = loop
        self._sock = sock
        self._fd = sock.fileno()
        self._received = received
        self._ended = ended
        self._unsent = b""
        self._paused = False
        self.open = True
        loop.add_reader(self._fd, self._read)

    def send(self, data: bytes) -> None:
        """Send all data, now or as soon as the socket takes it."""
        if not self.open:
            return
        if self._unsent:
            self._unsent += data
            return
        try:
            sent = self._sock.send(data)
        except _NOT_NOW:
            sent = 0
        except OSError as error:
            self._end(_text(error))
            return
        if sent < len(data):
            self._unsent = data[sent:]
            self._loop.add_writer(self._fd, self._write)

    def pause(self) -> None:
        """Stop reading until `resume`."""
        if self.open and not self._paused:
            self._paused = True
            self._loop.remove_reader(self._fd)

    def resume(self) -> None:
        """Continue reading."""
        if self.open and self._paused:
            self._paused = False
            self._loop.add_reader(self._fd, self._read)
            # OpenSSL may hold data that the kernel does not report again.
            self._loop.call_soon(self._read)

    def close(self) -> None:
        """Close at once; nothing is called afterwards."""
        if self.open:
            self.open = False
            self._loop.remove_reader(self._fd)
            self._loop.remove_writer(self._fd)
            self._sock.close()

    def _read(self) -> None:
        if not self.open or self._paused:
            return
        try:
            data = self._sock.recv(TUNING.read_bytes)
        except _NOT_NOW:
            return
        except OSError as error:
            self._end(_text(error))
            return
        if not data:
            self._end("")
            return
        self._received(data)

    def _write(self) -> None:
        data, self._unsent = self._unsent, b""
        self._loop.remove_writer(self._fd)
        self.send(data)

    def _end(self, why: str) -> None:
        self.close()
        self._ended(why)


async def connect(
    loop: AbstractEventLoop, host: str, port: int, context: ssl.SSLContext | None
) -> socket.socket:
    """Return a connected socket, with a context after the handshake. Raises OSError."""
    failure: OSError | None = None
    for family, kind, protocol, _, address in await _addresses(loop, host, port):
        sock = socket.socket(family, kind, protocol)
        try:
            sock.setblocking(False)
            await loop.sock_connect(sock, address)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if context is not None:
                sock = context.wrap_socket(
                    sock, server_hostname=host, do_handshake_on_connect=False
                )
                await _shake_hands(loop, sock)
        except OSError as error:
            sock.close()
            failure = error
        except BaseException:
            sock.close()
            raise
        else:
            return sock
    raise failure or OSError(f"{host} has no address")


async def _addresses(loop: AbstractEventLoop, host: str, port: int) -> list[Any]:
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:  # it is a host name, which takes a thread to resolve
        return await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)


async def _shake_hands(loop: AbstractEventLoop, sock: ssl.SSLSocket) -> None:
    while True:
        try:
            sock.do_handshake()
            return
        except ssl.SSLWantReadError:
            await _until(loop.add_reader, loop.remove_reader, sock)
        except ssl.SSLWantWriteError:
            await _until(loop.add_writer, loop.remove_writer, sock)


async def _until(
    add: Callable[..., None],
    remove: Callable[[int], object],
    sock: socket.socket,
) -> None:
    """Wait until the socket is readable, or writable."""
    ready = asyncio.Event()
    add(sock.fileno(), ready.set)
    try:
        await ready.wait()
    finally:
        remove(sock.fileno())


def _text(error: OSError) -> str:
    return str(error) or type(error).__name__
