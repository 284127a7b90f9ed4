"""The client over TLS and mutual TLS, with certificates made here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from quadriga.si import RegisterResourceManagerRequest
from quadriga.si.client import Client, Tls, Unreachable
from quadriga.si.server import Tls as ServerTls
from tests.si.certificates import access_by
from tests.si.remote_side import PATIENCE, SOON, Heard, Serving
from tests.si.requests import nodes


def talk(serving: Serving, timeout_s: float = PATIENCE, **how: Any) -> None:
    """Register and have a node accepted."""
    heard = Heard()
    with Client(serving.address, backoff=SOON, timeout_s=timeout_s, **how) as client:
        client.register_resource_manager(RegisterResourceManagerRequest(rmID="rm"), heard)
        client.update_node(nodes("n1"))
        heard.wait_for(lambda messages: len(messages) == 1)


def test_the_scheduler_is_known_by_its_certificate(folder: Path) -> None:
    with Serving(tls=ServerTls(folder / "server.pem", folder / "server.key")) as serving:
        talk(serving, tls=Tls.from_files(folder / "ca.pem"))
        talk(serving, tls=Tls.from_files(folder / "ca.pem", server_name="localhost"))
        for wrong in (
            None,  # in the clear
            Tls.from_files(folder / "stranger-ca.pem"),
            Tls.from_files(folder / "ca.pem", server_name="elsewhere"),
        ):
            with pytest.raises(Unreachable):
                talk(serving, 0.3, tls=wrong)


def test_mutual_tls_says_who_the_rm_is(folder: Path, tmp_path: Path) -> None:
    access = access_by(tmp_path, "shim rm:rm certificate:shim\n")
    tls = ServerTls(folder / "server.pem", folder / "server.key", folder / "ca.pem")
    with Serving(tls=tls, access=access) as serving:
        own = (folder / "shim.pem", folder / "shim.key")
        talk(serving, tls=Tls.from_files(folder / "ca.pem", *own))
        for strange in ((), (folder / "stranger.pem", folder / "stranger.key")):
            with pytest.raises(Unreachable):
                talk(serving, 0.3, tls=Tls.from_files(folder / "ca.pem", *strange))
