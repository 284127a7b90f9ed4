"""TLS and mutual TLS of server and client on loopback, with certificates made here."""

from pathlib import Path
from typing import Any

import grpc
import pytest

from quadriga.si import RegisterResourceManagerRequest
from quadriga.si.client import Client, Unreachable
from quadriga.si.client import Tls as ClientTls
from quadriga.si.server import Tls
from tests.si.certificates import access_by
from tests.si.remote_side import PATIENCE, SOON, Heard, Serving
from tests.si.requests import nodes
from tests.si.wire import RM, House, house, refusal


def connect(place: House, folder: Path, client: str = "") -> RM:
    def read(name: str) -> bytes:
        return (folder / name).read_bytes()

    credentials = grpc.ssl_channel_credentials(
        read("ca.pem"), *((read(f"{client}.key"), read(f"{client}.pem")) if client else ())
    )
    channel = grpc.aio.secure_channel(
        place.address, credentials, options=[("grpc.use_local_subchannel_pool", 1)]
    )
    place.channels.append(channel)
    return RM(channel)


@pytest.mark.parametrize("name", ["shim", "shim.example"])
async def test_a_certificate_says_who_it_is(folder: Path, tmp_path: Path, name: str) -> None:
    access = access_by(tmp_path, f"shim rm:rm-1 certificate:{name}\n")
    tls = Tls(folder / "server.pem", folder / "server.key", folder / "ca.pem")
    async with house(tls=tls, access=access) as place:
        rm = await connect(place, folder, "shim").begin()
        rm.rm_id = "rm-2"
        assert (await refusal(rm.register()))[0] == "PERMISSION_DENIED"
        found = [
            (await refusal(connect(place, folder, client).register()))[0]
            for client in ("server", "stranger", "")
        ]
        assert found == ["UNAUTHENTICATED", "UNAVAILABLE", "UNAVAILABLE"]


def test_files_that_cannot_be_used(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nowhere.pem"):
        Tls(tmp_path / "nowhere.pem", folder / "server.key").credentials()
    empty = tmp_path / "empty.pem"
    empty.write_text("")
    with pytest.raises(ValueError, match="is not PEM"):
        Tls(folder / "server.pem", empty).credentials()


def talk(serving: Serving, timeout_s: float = PATIENCE, **how: Any) -> None:
    """Register and have a node accepted."""
    heard = Heard()
    with Client(serving.address, backoff=SOON, timeout_s=timeout_s, **how) as client:
        client.register_resource_manager(RegisterResourceManagerRequest(rmID="rm"), heard)
        client.update_node(nodes("n1"))
        heard.wait_for(lambda messages: len(messages) == 1)


def test_the_scheduler_is_known_by_its_certificate(folder: Path) -> None:
    with Serving(tls=Tls(folder / "server.pem", folder / "server.key")) as serving:
        talk(serving, tls=ClientTls.from_files(folder / "ca.pem"))
        talk(serving, tls=ClientTls.from_files(folder / "ca.pem", server_name="localhost"))
        for wrong in (
            None,  # in the clear
            ClientTls.from_files(folder / "stranger-ca.pem"),
            ClientTls.from_files(folder / "ca.pem", server_name="elsewhere"),
        ):
            with pytest.raises(Unreachable):
                talk(serving, 0.3, tls=wrong)


def test_mutual_tls_says_who_the_rm_is(folder: Path, tmp_path: Path) -> None:
    access = access_by(tmp_path, "shim rm:rm certificate:shim\n")
    tls = Tls(folder / "server.pem", folder / "server.key", folder / "ca.pem")
    with Serving(tls=tls, access=access) as serving:
        own = (folder / "shim.pem", folder / "shim.key")
        talk(serving, tls=ClientTls.from_files(folder / "ca.pem", *own))
        for strange in ((), (folder / "stranger.pem", folder / "stranger.key")):
            with pytest.raises(Unreachable):
                talk(serving, 0.3, tls=ClientTls.from_files(folder / "ca.pem", *strange))
