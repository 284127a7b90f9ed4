"""What ``quadriga serve`` accepts, and what it refuses before it starts anything."""

import argparse
from pathlib import Path

import pytest

from quadriga.cli import serve
from quadriga.cli.errors import CommandError
from quadriga.cli.serving.addresses import Address
from quadriga.cli.serving.settings import Settings, settings_of


def understood(*words: object) -> Settings:
    parser = argparse.ArgumentParser()
    serve.configure(parser.add_subparsers())
    return settings_of(parser.parse_args(["serve", *map(str, words)]))


def refused(*words: object) -> str:
    with pytest.raises(CommandError) as caught:
        understood(*words)
    assert caught.value.code == 2
    return str(caught.value)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Files that exist; what is in them is looked at later."""
    for name in ("cert.pem", "key.pem", "ca.pem", "tokens"):
        (tmp_path / name).write_text("x", encoding="utf-8")
    return tmp_path


def test_addresses() -> None:
    """Without options both listen on loopback, as in YuniKorn."""
    settings = understood()
    assert [settings.http, settings.grpc] == [Address("127.0.0.1", n) for n in (9080, 9081)]
    assert (settings.tls, settings.tokens, settings.journal) == (None, None, None)
    for text, address in {
        "8000": Address("127.0.0.1", 8000),
        "127.0.0.2:0": Address("127.0.0.2", 0),
        "localhost:80": Address("localhost", 80),
        "[::1]:9080": Address("::1", 9080),
        "off": None,
    }.items():
        assert understood("--http", text).http == address
    for text in ("", *"x -1 65536 a:b ::1:80 1.2.3.4: host:٣ no.host.invalid:1".split()):
        assert f"--http {text!r}" in refused(f"--http={text}")
    assert "--grpc 'no.host.invalid:1'" in refused("--grpc", "no.host.invalid:1")
    assert str(Address("::1", 80)) == "[::1]:80"
    assert str(Address("localhost", 0).at(7)) == "localhost:7"


@pytest.mark.parametrize("host", ["0.0.0.0", "", "[::]", "10.0.0.1"])
@pytest.mark.parametrize("option", ["--http", "--grpc"])
def test_plaintext_beyond_loopback_is_refused_unless_one_insists(option: str, host: str) -> None:
    message = refused(option, f"{host}:0")
    assert "plaintext" in message and "--insecure" in message
    assert understood(option, f"{host}:0", "--insecure").insecure


def test_beyond_loopback_somebody_must_be_trusted(files: Path) -> None:
    secure = ["--tls-cert", files / "cert.pem", "--tls-key", files / "key.pem"]
    assert "let anybody change anything" in refused("--grpc", "0.0.0.0:1", *secure)
    for trust in (["--tokens", files / "tokens"], ["--tls-client-ca", files / "ca.pem"]):
        assert understood("--grpc", "0.0.0.0:1", *secure, *trust).tls is not None


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--http", "off", "--grpc", "off"], "nothing to serve"),
        (["--demo", "--config", "q.yaml"], "--demo has its own queues"),
        (["--clock", "client", "--grpc", "off"], "--clock client needs gRPC"),
        (["--clock", "client", "--demo"], "--demo lives in real time"),
        (["--tls-cert", "c.pem"], "belong together"),
        (["--tls-client-ca", "c.pem"], "belong together"),
        (["--tls-cert", "no.pem", "--tls-key", "no.pem"], "--tls-cert no.pem: No such file"),
        (["--ui", "nowhere"], "no index.html"),
        (["--require-token-for-reads"], "needs --tokens or --tls-client-ca"),
        (["--grace", "nan"], "--grace is nan"),
        (["--grace", "-1"], "--grace is -1"),
        (["--health-delay", "0"], "--health-delay is 0"),
        (["--journal-size", "0"], "--journal-size is 0, not within 1 and"),
        (["--max-message-size", "65"], "--max-message-size is 65"),
        (["--max-connections", "0"], "--max-connections is 0"),
        (["--demo-speed", "0"], "--demo-speed is 0"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_makes_no_sense_is_refused_with_the_reason(words: list[str], reason: str) -> None:
    assert reason in refused(*words)
