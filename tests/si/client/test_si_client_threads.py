"""Clients that come and go in several threads of one process, which share gRPC's queue of events."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import grpc

VERSION = tuple(map(int, grpc.__version__.split(".")[:2]))

#: four threads, in each of which one client after another says a little and is closed
COME_AND_GO = """
import sys
from concurrent.futures import ThreadPoolExecutor
from quadriga.si import *
from quadriga.si.client import Client
from quadriga.sim.scripted.script import ONE_QUEUE
from tests.si.remote_side import PATIENCE, SOON, Serving

sys.setswitchinterval(1e-5)

def come_and_go(name):
    for _ in range(6):
        with Client(serving.address, backoff=SOON, timeout_s=PATIENCE) as client:
            request = RegisterResourceManagerRequest(rmID=name, config=ONE_QUEUE)
            client.register_resource_manager(request, NullCallback())
            for number in range(30):
                app = AddApplicationRequest(applicationID=f"a{number}", queueName="root.default")
                client.update_application(ApplicationRequest(rmID=name, new=[app]))

with Serving() as serving:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(come_and_go, ["rm-0", "rm-1", "rm-2", "rm-3"]))
print("all have gone")
"""


def test_i6_a_client_closed_in_one_thread_is_no_error_in_another() -> None:
    how: Any = {"capture_output": True, "text": True, "timeout": 600, "check": False}
    words = [sys.executable, "-c", COME_AND_GO]
    done = subprocess.run(words, cwd=Path(__file__).parents[3], **how)
    assert done.stdout == "all have gone\n"
    if VERSION < (1, 70):  # it also complains of the server's loop, which is none of a client's
        assert "_Loop" not in done.stderr
    else:
        assert done.stderr == ""
