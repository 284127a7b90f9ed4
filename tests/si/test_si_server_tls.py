"""TLS and mutual TLS on loopback, with certificates made here."""

from __future__ import annotations

from pathlib import Path

import grpc
import pytest

from quadriga.si.server import Tls
from tests.si.certificates import access_by
from tests.si.wire import RM, House, house, refusal

pytestmark = pytest.mark.asyncio


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


async def test_files_that_cannot_be_used(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nowhere.pem"):
        Tls(tmp_path / "nowhere.pem", folder / "server.key").credentials()
    empty = tmp_path / "empty.pem"
    empty.write_text("")
    with pytest.raises(ValueError, match="is not PEM"):
        Tls(folder / "server.pem", empty).credentials()
