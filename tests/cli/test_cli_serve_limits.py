"""The bounds that options set: of connections to HTTP ports and of the scheduler (Q16)."""

import argparse
import asyncio
import logging
from dataclasses import asdict
from typing import Any

import pytest

from quadriga.base.pacing import LogPace
from quadriga.cli import kubernetes, serve
from quadriga.cli.errors import CommandError
from quadriga.cli.parsing import LIMITS, Limit
from quadriga.cli.serving.accept_errors import AcceptErrors
from quadriga.cli.serving.admission import connections_of
from quadriga.cli.serving.health import HealthServer
from quadriga.cli.serving.process import options_of
from quadriga.cli.serving.settings import Settings, settings_of
from quadriga.core import Options
from quadriga.core.driver.service import SchedulerService


def read(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers()
    serve.configure(commands)
    kubernetes.configure(commands)
    return parser.parse_args(words)


def settings(*words: str) -> Settings:
    return settings_of(read("serve", *words))


def test_q16_every_bound_of_messages_and_groups_has_an_option() -> None:
    assert Options(**options_of(settings())) == Options()
    names = ("text", "tags", "tag-characters", "groups", "types", "known-types", "devices")
    words = [word for name in names for word in (f"--max-{name}", "70")]
    found = options_of(settings(*words, "--max-gang-members", "7", "--max-former-users", "0"))
    assert set(asdict(found["bounds"]).values()) == {70}
    assert (found["gang_members"], found["keep_users"]) == (7, 0)
    of_groups = settings("--max-group-answers", "7", "--group-deadline", "1")
    assert (of_groups.max_group_answers, of_groups.group_deadline) == (7, 1)
    with SchedulerService(group_answers=1) as service:
        answers = service._lookups.answers
        for user in ("a", "b"):
            answers.put(user, (), 10**12)
        assert list(answers.known) == ["b"]


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.option)
def test_q16_a_limit_beyond_its_range_is_refused_by_name(limit: Limit) -> None:
    for value in (limit.low - 1, limit.high + 1):
        with pytest.raises(CommandError, match=rf"{limit.option} is .*, not within"):
            settings(limit.option, str(value))


def test_q16_the_webhook_has_the_bounds_of_connections() -> None:
    both = ("--max-connections", "7"), ("--max-connections-per-client", "3")
    for at in range(3):  # wherever the command stands
        words = [*both[:at], ("admission",), *both[at:]]
        assert connections_of(read("kubernetes", *sum(words, ()))) == (7, 3)
    assert connections_of(read("kubernetes", *sum(both, ()))) == (7, 3)
    assert connections_of(read("kubernetes", "admission")) == (1000, 500)
    with pytest.raises(CommandError, match="--max-connections is 0, not within"):
        connections_of(read("kubernetes", "--max-connections", "0"))


def test_q16_the_health_port_serves_while_one_address_holds_connections() -> None:
    async def scraped() -> bytes:
        return b""

    async def tried() -> tuple[bytes, bytes]:
        server = HealthServer(alive=str, ready=str, metrics=scraped, connections=(40, 20))
        port = await server.start("127.0.0.1", 0)
        held: list[Any] = []
        try:
            for _ in range(3):  # of at most two
                held.append(await asyncio.open_connection("127.0.0.1", port))
            reader, writer = held[-1]
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            async with asyncio.timeout(20):
                try:
                    oldest = await held[0][0].read()
                except ConnectionError:
                    oldest = b""
                return await reader.readline(), oldest
        finally:
            for _, writer in held:
                writer.close()
            await server.stop()

    assert asyncio.run(tried()) == (b"HTTP/1.1 200 OK\r\n", b"")


class Loop(asyncio.AbstractEventLoop):
    def __init__(self) -> None:
        self.handed_on: list[dict[str, Any]] = []

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        self.handed_on.append(context)


def test_q16_a_connection_that_cannot_be_accepted_is_logged_once_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = [0.0]
    handler, loop = AcceptErrors(LogPace(lambda: now[0])), Loop()
    full = OSError(24, "Too many open files")
    error = {"message": "socket.accept() out of system resource", "exception": full}
    with caplog.at_level(logging.ERROR):
        for _ in range(1000):
            handler(loop, error)
        now[0] = 61.0
        handler(loop, error)
    first, second = [record.getMessage() for record in caplog.records]
    assert "Too many open files" in first and "ulimit -n is" in first
    assert "999 errors before were left out" in second
    assert not any(record.exc_info for record in caplog.records)
    assert not loop.handed_on
    other = {"message": "Exception in callback"}
    AcceptErrors()(loop, other)
    assert loop.handed_on == [other]  # as before
