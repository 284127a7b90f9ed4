"""gRPC is an extra: the protocol and the core do without it."""

from __future__ import annotations

import subprocess
import sys


def run(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_rest_does_not_need_it_and_the_server_says_what_to_install() -> None:
    modules = (
        "quadriga.si, quadriga.si.access, quadriga.si.remote_predicates, quadriga.si.wire,"
        " quadriga.core.driver.service"
    )
    program = (
        f"import sys, {modules}; print('grpc' in sys.modules); sys.modules['grpc'] = None\n"
        "try:\n    import quadriga.si.server\n"
        "except ImportError as error:\n    print(error)\n"
    )
    loaded, told = run(program).splitlines()
    assert loaded == "False"
    assert "pip install '.[grpc]'" in told
