"""Certificates and tokens for tests: authorities, who is certified by them, and who may do what."""

import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from quadriga.si.access import Access

_KEY = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
#: Python 3.13 wants it said
_USE = "-addext keyUsage=critical,keyCertSign,cRLSign"


def certify(folder: Path, authorities: Mapping[str, Mapping[str, str]]) -> Path:
    """``NAME.pem`` and ``NAME.key`` for each authority, and for each that it certifies by its names."""
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


def tokens_in(folder: Path, text: str, mode: int = 0o600) -> Path:
    """A file of tokens as the server takes it."""
    path = folder / "tokens"
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


def access_by(folder: Path, text: str) -> Access:
    return Access.from_file(tokens_in(folder, text))
