"""What operators read and copy is true: flags, numbers, metrics, the unit, the container file."""

import argparse
import configparser
import re
import shlex
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from quadriga.cli import serve
from tests.packaging.conftest import text_of
from tests.packaging.deployed import DEPLOY, instructions, unit


@pytest.fixture
def operations(repository: Path) -> str:
    return text_of(repository / "docs" / "operations.md")


@cache
def flags() -> dict[str, argparse.Action]:
    commands = argparse.ArgumentParser().add_subparsers()
    serve.configure(commands)
    actions = commands.choices["serve"]._actions
    return {action.option_strings[0]: action for action in actions if action.dest != "help"}


def rows(text: str, heading: str) -> list[list[str]]:
    """The cells of the first table below a heading."""
    below = text.partition(f"{heading}\n")[2]
    table = re.search(r"(?:^\|.*\n)+", below, re.MULTILINE)
    assert table, heading
    lines = table[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_every_flag_is_told_and_no_other(operations: str, repository: Path) -> None:
    from quadriga.cli.parsing import LIMITS

    cells = re.findall(r"^\| (`--.*?) \|", operations, re.MULTILINE)
    told = [flag for cell in cells for flag in re.findall(r"`(--[a-z-]+)", cell)]
    limits = {limit.option for limit in LIMITS}
    assert sorted(told) == sorted(flags().keys() - limits)
    bounds = rows(text_of(repository / "SECURITY.md"), "## Bounds")
    assert limits <= {flag for *_, cell in bounds for flag in re.findall(r"`(--[a-z-]+)", cell)}
    named = set(re.findall(r"--[a-z]+(?:-[a-z]+)*(?==|\b)", operations.partition("## Queues")[0]))
    assert named <= set(flags()) | {"--connect"}


def test_defaults_of_limits_are_those_of_the_server() -> None:
    from quadriga.cli.serving.grpc_part import limits_of
    from quadriga.cli.serving.settings import settings_of
    from quadriga.si.server import Limits

    parser = argparse.ArgumentParser()
    serve.configure(parser.add_subparsers())
    assert limits_of(settings_of(parser.parse_args(["serve"]))) == Limits()


def test_every_metric_of_the_process_is_told_and_no_other(operations: str) -> None:
    from quadriga.cli.serving.grpc_part import measured
    from quadriga.core import SchedulerService
    from quadriga.si.server import Server

    told = {
        name: kind
        for names, kind, *_ in rows(operations, "### Metrics of the process")
        for name in re.findall(r"`(\w+)`", names)
    }
    found = {name: kind for name, kind, _, _ in measured(Server(SchedulerService(manual=True)))}
    found |= {"quadriga_journal_file_lost_total": "counter", "quadriga_reloads_total": "counter"}
    assert told == found


def test_the_bounds_are_those_of_the_code(repository: Path) -> None:
    from quadriga.cli.serving import logs, queues_file
    from quadriga.core import Options
    from quadriga.core.config import expression, reader
    from quadriga.core.events import settings as events
    from quadriga.core.views import dump
    from quadriga.core.views.history import History
    from quadriga.si import access, descriptors
    from quadriga.si.server import Limits
    from quadriga.si.server import server as grpc_server
    from quadriga.web import reader as web_reader
    from quadriga.web import server
    from quadriga.web.rest import configuration

    told = {cells[0]: cells[1] for cells in rows(text_of(repository / "SECURITY.md"), "## Bounds")}

    def numbers(what: str) -> list[int]:
        [bound] = [bound for name, bound in told.items() if name.startswith(what)]
        return [int(found.replace(",", "")) for found in re.findall(r"\d[\d,]*", bound)]

    limits = Limits()
    assert numbers("gRPC: one message") == [limits.message_bytes >> 20]
    assert numbers("asks, nodes") == [limits.items]
    assert numbers("RMs registered")[0] == limits.resource_managers
    assert numbers("streams of one RM") == [limits.streams_per_rm, limits.streams]
    assert numbers("requests of one RM") == [limits.requests_per_second, limits.request_burst]
    assert numbers("items (asks") == [limits.items_per_second, limits.item_burst]
    assert numbers("requests of a stream") == [limits.window, limits.window_items]
    assert numbers("what waits for an RM")[0] == limits.backlog_bytes >> 20
    assert numbers("kept to be sent again") == [limits.replay_bytes >> 20]
    assert numbers("events and scheduling states") == [limits.pending_events]
    assert numbers("a stream that does not say") == [limits.introduction_s]
    assert numbers("a gRPC connection") == [limits.introduction_s, grpc_server._IDLE_MS // 60_000]
    assert numbers("a regular expression") == [expression._MAX_COMPILED >> 20]
    assert numbers("a configuration that is read")[0] == reader.MAX_BYTES >> 20
    assert numbers("what RMs make of") == [events._MOST]
    assert numbers("streams of health") == [limits.streams]
    assert numbers("what an RM says of itself")[1] == dump._DEEPEST
    assert numbers("predicates") == [
        limits.predicate_batch,
        limits.predicate_asks,
        limits.predicate_timeout_s,
    ]
    assert numbers("HTTP: connections")[0] == server.CONNECTIONS
    assert numbers("gRPC: connections") == [limits.connections, limits.connections_per_client]
    assert numbers("connections of gRPC")[-1] == descriptors.RESERVE
    assert numbers("the head of a request") == [
        server.HEAD_LIMIT >> 10,
        server.HEAD_TIMEOUT,
        server.IDLE_TIMEOUT,
    ]
    assert numbers("a configuration to check")[0] == configuration.MAX_BYTES >> 20
    assert numbers("share of the scheduler's time") == [web_reader.OWNER_SHARE * 100]
    assert numbers("files: queues") == [
        queues_file._MOST_BYTES >> 20,
        access._MOST_BYTES >> 20,
        access._MOST_LINES,
    ]
    default = events.EventSettings()
    assert numbers("event streams over HTTP") == [default.max_streams, default.max_streams_per_host]
    assert numbers("events in one answer") == [default.response_size]
    history = History()
    assert numbers("the scheduler's memory")[:3] == [
        Options().journal_size,
        default.ring_capacity,
        history._samples.maxlen,
    ]
    assert numbers("one line of the log") == [logs._LONGEST]


# -- the unit --------------------------------------------------------------------------------------


def test_the_unit_starts_what_there_is() -> None:
    service = dict(unit()["Service"])
    program, command, *options = shlex.split(service["ExecStart"])
    assert (Path(program).name, command) == ("quadriga", "serve")
    assert {word for word in options if word.startswith("--")} <= set(flags())
    assert (service["Type"], service["ExecReload"]) == ("notify", "/bin/kill -HUP $MAINPID")
    assert service["RestartPreventExitStatus"] == "2"
    assert int(service["TimeoutStopSec"]) > flags()["--grace"].default + 5 + 1
    for key in "NoNewPrivileges DynamicUser PrivateTmp ProtectHome RestrictNamespaces".split():
        assert service[key] == "yes"
    assert (service["CapabilityBoundingSet"], service["ProtectSystem"]) == ("", "strict")
    # what it forbids is refused and kills nobody
    assert ("SystemCallFilter", "~@privileged @resources") in unit()["Service"]
    assert service["SystemCallErrorNumber"] == "EPERM"


def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze")
    text = text_of(DEPLOY / "quadriga.service")
    file = tmp_path / "quadriga.service"
    file.write_text(text.replace("/opt/quadriga/bin/quadriga", sys.executable), encoding="utf-8")
    # exposure from 0.0 to 10.0, times ten
    for command in ("verify", "security --offline=true --threshold=20 --no-pager"):
        words = ["systemd-analyze", *command.split(), file]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), done.stdout


def test_the_drop_in_hands_credentials_over(operations: str) -> None:
    """systemd expands %d and ${STATE_DIRECTORY} in ExecStart, and nothing in an EnvironmentFile."""
    texts = re.findall(r"^```\n(.*?)^```$", operations, re.DOTALL | re.MULTILINE)
    (drop_in,) = (text for text in texts if text.startswith("[Service]"))
    lines = [line.partition("=")[::2] for line in drop_in.splitlines()[1:]]
    assert ("ExecStart", "") in lines, "without it there are two commands, which systemd refuses"
    loaded = {value.partition(":")[0] for key, value in lines if key == "LoadCredential"}
    own = dict(unit()["Service"])["ExecStart"]
    command = dict(lines)["ExecStart"]
    assert set(re.findall(r"%d/(\w+)", command)) == loaded == {"cert", "key", "tokens"}
    assert set(re.findall(r"--[a-z-]+", command)) <= set(flags())
    assert set(shlex.split(own)) <= set(shlex.split(command)), "it does what the unit does and more"
    (settings,) = (text for text in texts if text.startswith("QUADRIGA_OPTIONS="))
    assert not re.search(r"[$%]", settings), "an EnvironmentFile is not expanded"
    named = set(re.findall(r"--[a-z-]+", settings))
    assert named
    assert named <= set(flags())


# -- the container ---------------------------------------------------------------------------------


def test_the_base_image_is_named_by_version_and_digest() -> None:
    (base,) = (rest for word, rest in instructions() if word == "ARG")
    image = r"BASE=docker\.io/library/python:3\.13\.\d+-slim-bookworm@sha256:[0-9a-f]{64}"
    assert re.fullmatch(image, base)
    stages = [rest.partition(" AS ")[0] for word, rest in instructions() if word == "FROM"]
    assert stages == ["${BASE}"] * 2


@pytest.mark.parametrize("document", ["docs/operations.md", "deploy/Containerfile"])
def test_podman_keeps_the_health_check(repository: Path, document: str) -> None:
    builds = re.findall(r"podman build .*", text_of(repository / document))
    assert builds
    assert all("--format docker" in build for build in builds)


def test_the_image_has_all_packages_and_nothing_that_is_not_there(repository: Path) -> None:
    rests = (rest for word, rest in instructions() if word == "COPY")
    copied = [name for rest in rests if rest[:6] != "--from" for name in rest.split()[:-1]]
    assert [name for name in copied if not (repository / name).exists()] == []
    config = configparser.ConfigParser()
    config.read(repository / "setup.cfg")
    lines = config["options"]["package_dir"].splitlines()
    folders = {line.split("=")[1].strip() for line in lines if "=" in line}
    assert [folder for folder in folders if not {folder, folder.split("/")[0]} & set(copied)] == []


def test_the_image_is_not_for_root_and_stops_as_it_should() -> None:
    found = dict(instructions())
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", found["USER"])
    assert (found["STOPSIGNAL"], found["ENTRYPOINT"]) == ("SIGTERM", '["quadriga", "serve"]')
    assert set(re.findall(r"--[a-z-]+", found["CMD"])) <= set(flags())
    ports = {str(serve.HTTP_PORT), str(serve.GRPC_PORT)}
    assert set(found["EXPOSE"].split()) == ports
    assert f"127.0.0.1:{serve.HTTP_PORT}/livez" in text_of(DEPLOY / "healthy.py")
