"""TLS and mutual TLS on loopback, with certificates made here."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import grpc
import pytest

from quadriga.si.access import Access
from quadriga.si.server import Tls
from tests.si.wire import RM, House, house, node, until

pytestmark = [
    pytest.mark.asyncio,
    pytest.mark.skipif(shutil.which("openssl") is None, reason="needs the openssl command"),
]


def openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An authority, a server's certificate and two clients'; and a stranger's."""
    made = tmp_path_factory.mktemp("tls")
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    for authority in ("ca", "stranger-ca"):
        openssl(
            made, "req", "-x509", *key, "-subj", f"/CN={authority}", "-days", "2",
            "-keyout", f"{authority}.key", "-out", f"{authority}.pem",
        )  # fmt: skip
    names = {"server": "DNS:localhost,IP:127.0.0.1", "shim": "DNS:shim.example"}
    for name, authority in (("server", "ca"), ("shim", "ca"), ("stranger", "stranger-ca")):
        openssl(
            made,
            "req",
            *key,
            "-subj",
            f"/CN={name}",
            "-keyout",
            f"{name}.key",
            "-out",
            f"{name}.csr",
        )
        (made / f"{name}.ext").write_text(f"subjectAltName={names.get(name, 'DNS:x')}\n")
        openssl(
            made, "x509", "-req", "-in", f"{name}.csr", "-CA", f"{authority}.pem",
            "-CAkey", f"{authority}.key", "-CAcreateserial", "-days", "2",
            "-extfile", f"{name}.ext", "-out", f"{name}.pem",
        )  # fmt: skip
    return made


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


async def test_tls(folder: Path) -> None:
    tls = Tls(folder / "server.pem", folder / "server.key")
    async with house(tls=tls) as place:
        rm = await connect(place, folder).begin()
        await rm.say(node("n1"))
        await until(lambda: rm.nodes == ["n1"])
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await place.rm("plain").register()
        assert refused.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_mutual_tls_needs_a_certificate_of_the_authority(folder: Path) -> None:
    tls = Tls(folder / "server.pem", folder / "server.key", folder / "ca.pem")
    async with house(tls=tls) as place:
        await connect(place, folder, "shim").begin()
        for client in ("", "stranger"):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await connect(place, folder, client).register()
            assert refused.value.code() is grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize("name", ["shim", "shim.example"])
async def test_a_certificate_says_who_it_is(folder: Path, tmp_path: Path, name: str) -> None:
    path = tmp_path / "tokens"
    path.write_text(f"shim rm:rm-1 certificate:{name}\n")
    path.chmod(0o600)
    tls = Tls(folder / "server.pem", folder / "server.key", folder / "ca.pem")
    async with house(tls=tls, access=Access.from_file(path)) as place:
        rm = await connect(place, folder, "shim").begin()
        rm.rm_id = "rm-2"
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await rm.register()
        assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await connect(place, folder, "server").register()
        assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED


async def test_files_that_cannot_be_used(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nowhere.pem"):
        Tls(tmp_path / "nowhere.pem", folder / "server.key").credentials()
    empty = tmp_path / "empty.pem"
    empty.write_text("")
    with pytest.raises(ValueError, match="is not PEM"):
        Tls(folder / "server.pem", empty).credentials()
