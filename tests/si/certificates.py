"""Certificates for tests of TLS: authorities, and who is certified by them."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

_KEY = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
#: Python 3.13 wants it said
_USE = "-addext keyUsage=critical,keyCertSign,cRLSign"


def certify(folder: Path, authorities: Mapping[str, Mapping[str, str]]) -> Path:
    """Files ``NAME.pem`` and ``NAME.key`` for each authority, and for each that it certifies by the
    alternative names that are given."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificates")

    def openssl(words: str) -> None:
        subprocess.run(
            ["openssl", *shlex.split(words)], cwd=folder, check=True, capture_output=True
        )

    for ca, certified in authorities.items():
        openssl(f"req -x509 {_KEY} {_USE} -keyout {ca}.key -out {ca}.pem -subj /CN={ca}")
        for name, names in certified.items():
            (folder / "names").write_text(f"subjectAltName={names}\n", encoding="utf-8")
            openssl(f"req {_KEY} -keyout {name}.key -out {name}.csr -subj /CN={name}")
            openssl(
                f"x509 -req -in {name}.csr -CA {ca}.pem -CAkey {ca}.key -CAcreateserial"
                f" -out {name}.pem -extfile names"
            )
    return folder
