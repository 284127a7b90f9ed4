"""The parts of the client without a network: waits, the life of a connection, orders; and its documents."""

import itertools
import random
import re
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from grpc import StatusCode
from grpc.aio import AioRpcError, Metadata
from hypothesis import given
from hypothesis import strategies as st
from transitions import MachineError

from quadriga.cli.main import main
from quadriga.si import RequestError
from quadriga.si.client import Backoff, RegisterAgain, Tls, connection_state
from quadriga.si.client.channels import ChannelFactory
from quadriga.si.client.errors import refusal, to_exception
from quadriga.si.client.outgoing import OutgoingRequests
from quadriga.si.client.registration import IncomingMessages
from quadriga.si.client.streams import STREAMS
from quadriga.si.extension.extension_pb2 import Channel
from quadriga.si.server.delivery.mailbox import MessageOrder
from quadriga.si.wire import REGISTER_AGAIN
from tests.si.remote_side import Serving

KINDS = st.sampled_from([*STREAMS])
CHANCE = st.integers().map(random.Random)


def test_waits_grow_to_a_bound_and_chance_from_outside_shortens_them() -> None:
    backoff = Backoff(first_s=1, most_s=5, factor=2, jitter=0.5, draw=lambda: 0.5)
    assert [*itertools.islice(backoff.waits(), 5)] == [0.75, 1.5, 3.0, 3.75, 3.75]
    shortened = Backoff(draw=random.Random(7).random)
    assert len({*itertools.islice(shortened.waits(), 20)}) == 20


@pytest.mark.parametrize(
    "wrong",
    [{"first_s": 0}, {"first_s": 20}, {"most_s": float("inf")}, {"factor": 0.5}, {"jitter": 1.5}],
)
def test_waits_that_make_no_sense(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Backoff(**wrong)  # type: ignore[arg-type]


def test_a_certificate_needs_its_key_and_a_token_does_not_leave_the_machine_in_the_clear() -> None:
    with pytest.raises(ValueError, match="needs its key"):
        Tls(certificate=b"x")
    assert "secret" not in repr(Tls(certificate=b"x", key=b"secret"))
    for address in ("example.org:9081", "10.0.0.1:9081", "[2001:db8::1]:9081"):
        with pytest.raises(ValueError, match="can be read by others: use TLS") as error:
            ChannelFactory(address, None, "s3cret", insecure=False)
        assert "s3cret" not in str(error.value)
        ChannelFactory(address, None, "s3cret", insecure=True)
        ChannelFactory(address, Tls(), "s3cret", insecure=False)
        ChannelFactory(address, None, None, insecure=False)
    for address in ("localhost:1", "127.0.0.1:1", "[::1]:1", "unix:/run/x"):
        ChannelFactory(address, None, "s3cret", insecure=False)


@pytest.mark.parametrize("state", connection_state.STATES)
def test_the_table_says_where_every_trigger_leads(state: str) -> None:
    for trigger in {trigger for trigger, _, _ in connection_state.TABLE}:
        told: list[str] = []
        each = connection_state.ConnectionState(lambda state, why, told=told: told.append(state))  # type: ignore[misc]
        each.state = state
        found = [
            target
            for name, sources, target in connection_state.TABLE
            if name == trigger and state in (sources if isinstance(sources, tuple) else (sources,))
        ]
        if not found:
            with pytest.raises(MachineError, match=f"{state} cannot {trigger}"):
                each.fire(trigger)
        else:
            each.fire(trigger)
        after = found[0] if found and found[0] is not None else state
        assert each.state == after
        assert told == ([after] if after != state else [])


@given(st.lists(KINDS, max_size=30), CHANCE)
def test_requests_are_taken_once_in_order(kinds: list[Channel], chance: random.Random) -> None:
    """Which stream is read first is chance. When a connection breaks, what was on its way is lost."""
    outgoing = OutgoingRequests(1000, 10_000)
    for number, kind in enumerate(kinds):
        outgoing.add(kind, b"%d" % number)
    taken: list[bytes] = []
    counts: Counter[Channel] = Counter()
    way: dict[Channel, list[bytes]] = {}
    while outgoing.done < len(kinds):
        said = outgoing.next()
        if said is not None and chance.random() < 0.7:
            way.setdefault(said.stream, []).append(said.data)
        elif said is None and way and chance.random() < 0.8:
            kind = chance.choice([*way])
            taken.append(way[kind].pop(0))
            counts[kind] += 1
            if not way[kind]:
                del way[kind]
            if chance.random() < 0.5:
                outgoing.taken(counts)
        else:  # the connection breaks
            way.clear()
            for kind in STREAMS:
                outgoing.resume(kind, counts[kind])
    assert taken == [b"%d" % number for number in range(len(kinds))]


def test_what_waits_has_two_bounds_and_a_large_one_is_let_in_alone() -> None:
    outgoing = OutgoingRequests(2, 10)
    kind = next(iter(STREAMS))
    assert outgoing.has_room(11)
    outgoing.add(kind, b"x" * 6)
    assert outgoing.has_room(4)
    assert not outgoing.has_room(5)
    outgoing.add(kind, b"x")
    assert not outgoing.has_room(1)
    while outgoing.next():
        pass
    outgoing.taken({kind: 1})
    assert (len(outgoing), outgoing.done, outgoing.has_room(9)) == (1, 1, True)


@given(st.lists(KINDS, max_size=30), CHANCE)
def test_messages_are_heard_once_in_order(kinds: list[Channel], chance: random.Random) -> None:
    """Streams and the telling of their order overtake each other; then a connection breaks."""
    ordering = MessageOrder()
    log: dict[Channel, list[int]] = {kind: [] for kind in STREAMS}
    for number, kind in enumerate(kinds):
        ordering.add(kind)
        log[kind].append(number)
    incoming, heard = IncomingMessages(), []
    came: Counter[Channel] = Counter()
    while len(heard) < len(kinds):
        draw = chance.random()
        if draw < 0.2:
            told = ordering.take_unsent()
            if told is not None:
                assert incoming.order(told.first, told.messages)
        elif draw < 0.9:
            kind = chance.choice([*STREAMS])
            if came[kind] < len(log[kind]):
                incoming.arrive(kind, log[kind][came[kind]])
                came[kind] += 1
        else:
            incoming.lose()
            came = Counter(incoming.received)
            ordering.resume(incoming.received)
        heard += [message for _, message in incoming.take()]
        if chance.random() < 0.1:
            ordering.confirm(incoming.received)
    assert heard == [*range(len(kinds))]
    assert not incoming.order(len(kinds) + 1, [next(iter(STREAMS))])  # a gap


@pytest.mark.parametrize(
    "error",
    [
        RequestError("NodeRequest", "rmID", "is required"),
        RequestError("UpdateConfigurationRequest", "config", "two problems:\n  a: b\n  c: d"),
        RequestError("AllocationRequest", "releases.allocationsToRelease[3].applicationID", "no"),
        RequestError("AllocationRequest", "", "is not a message for the scheduler"),
        RequestError("time", "now", "went back from 2 to 1 ns"),
    ],
)
@pytest.mark.parametrize("rule", ["", "I10: ", "5.11: "])
def test_a_refusal_is_the_same_error_on_both_sides(error: RequestError, rule: str) -> None:
    assert refusal(rule + str(error), "Request").args == error.args
    assert refusal("go away: now", "NodeRequest").args == ("NodeRequest", "", "go away: now")


def test_i43_whose_call_finds_no_registration_is_told_to_register_again() -> None:
    """Also by the oldest grpcio, whose metadata is no mapping."""
    said = Metadata(("other", "1"), (REGISTER_AGAIN, "again"))
    lost = AioRpcError(StatusCode.NOT_FOUND, Metadata(), said, details="rm is not registered")
    assert isinstance(to_exception(lost, "ExplainRequest", "here"), RegisterAgain)
    refused = AioRpcError(StatusCode.NOT_FOUND, Metadata(), Metadata(("other", "1")), details="no")
    assert isinstance(to_exception(refused, "ExplainRequest", "here"), RequestError)


@pytest.fixture
def document(repository: Path) -> str:
    return (repository / "docs" / "client.md").read_text(encoding="utf-8")


def blocks(document: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", document, re.DOTALL | re.MULTILINE)


def test_the_program_runs(document: str, tmp_path: Path) -> None:
    (program,) = blocks(document, "python")
    words = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "accepted n1\n"), done.stderr


def test_the_commands_are_the_right_ones(document: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The second against what the first starts, but on a port that is free."""
    serve, simulate = (shlex.split(block) for block in blocks(document, "sh"))
    assert serve[:4] == ["quadriga", "serve", "--clock", "client"]
    address = serve[serve.index("--grpc") + 1]
    with Serving(steps=True) as serving:
        assert main([word.replace(address, serving.address) for word in simulate[1:]]) == 0
    said = capsys.readouterr().out
    assert "20 allocations" in said and "invariants checked nowhere" in said


def test_the_states_and_waits_are_those_of_the_code(document: str) -> None:
    states = re.findall(r"^\| `(\w+)` \| .* \| .*\|$", document, re.MULTILINE)
    assert set(states) >= {*connection_state.STATES}
    backoff = Backoff()
    assert f"{backoff.first_s:g} s at first" in document
    assert f"up to {backoff.most_s:g} s" in document


# -- docs/grpc.md ----------------------------------------------------------------------------------

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "grpc.md"
PROGRAMS = blocks(DOCUMENT.read_text("utf-8"), "python")


@pytest.mark.parametrize("program", PROGRAMS, ids=range(len(PROGRAMS)))
def test_programs_run(program: str) -> None:
    exec(compile(program, str(DOCUMENT), "exec"), {"__name__": "document"})
