"""The protocol as a set of facts, one for each name, number, type or signature; and who is served."""

import inspect
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from quadriga import si
from quadriga.si.client import Client
from quadriga.si.v1 import si_pb2
from tests.si.certificates import certify
from tests.si.facts import facts_of
from tests.si.remote_side import PATIENCE, SOON, Make, Serving, Wire
from tests.si.wire import RM, House, house

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]


# What later versions of the interface brought (2.20), and our whole tag keys.
ADDITIONS = """
const APPTAGCREATEFORCE = application.create.force
const APPTAGNAMESPACERESOURCEMAXAPPS = namespace.resourcemaxapps
const DOMAINYUNIKORNINTERNAL = internal.yunikorn.apache.org/; FOREIGNDEFAULT = default
const FOREIGNSTATIC = static; KEYFOREIGN = foreign
const TAGALLOWPREEMPTION = yunikorn.apache.org/allowPreemption
const TAGCREATIONTIME = yunikorn.apache.org/creationTime
const TAGDEVICES = devices
const TAGFOREIGN = internal.yunikorn.apache.org/foreign
const TAGREQUIREDNODE = yunikorn.apache.org/requiredNode
field Allocation: PreemptionPolicy preemptionPolicy = 15; bool originator = 14
field Allocation: string allocationID = 13
field AllocationRelease: string allocationID = 7
field AllocationRequest: repeated Allocation allocations = 4
field AllocationResponse: repeated RejectedAllocation rejectedAllocations = 5
field RejectedAllocation: string allocationKey = 1; string applicationID = 2; string reason = 3
message RejectedAllocation
value EventRecord.ChangeDetail: APP_CANNOTRUN_QUEUE = 213; APP_CANNOTRUN_QUOTA = 215
value EventRecord.ChangeDetail: APP_EXPIRED = 212; APP_RESUMING = 211; APP_RUNNABLE_QUEUE = 214
value EventRecord.ChangeDetail: APP_RUNNABLE_QUOTA = 216; NODE_RESERVATION = 306
value EventRecord.ChangeDetail: QUEUE_PREEMPTION = 407; UG_APP_LINK = 602; UG_GROUP_LIMIT = 601
value EventRecord.ChangeDetail: UG_GROUP_RESOURCE = 604; UG_USER_LIMIT = 600; UG_USER_RESOURCE = 603
value EventRecord.Type: USERGROUP = 5
value NodeInfo.ActionFromRM: CREATE_DRAIN = 6
"""


def _constant_facts() -> Iterator[str]:
    # Go writes HostName where we write HOST_NAME.
    for name, value in vars(si.constants).items():
        if name.isupper():
            yield f"const {name.replace('_', '')} = {value}"


def _api_facts() -> Iterator[str]:
    # Go writes UpdateNode where we write update_node.
    for protocol in (si.SchedulerAPI, si.ResourceManagerCallback, si.StateDumpPlugin):
        yield f"api {protocol.__name__}"
        for name, method in vars(protocol).items():
            if not name.startswith("_"):
                parameters = list(inspect.signature(method).parameters)[1:]
                pascal = name.title().replace("_", "")
                yield f"api {protocol.__name__}.{pascal}({', '.join(parameters)})"


def _written(text: str) -> Iterator[str]:
    """Those of a text; after a semicolon comes another fact that begins as the line does."""
    for line in text.splitlines():
        if line and not line.startswith("#"):
            head, mark, facts = line.partition(": " if ": " in line else " ")
            yield from (f"{head}{mark}{fact}" for fact in facts.split("; "))


@pytest.fixture(scope="session")
def ours() -> set[str]:
    """The facts of the package: messages, constants and interfaces."""
    file = FileDescriptorProto()
    si_pb2.DESCRIPTOR.CopyToProto(file)
    return facts_of(file) | set(_constant_facts()) | set(_api_facts())


@pytest.fixture(scope="session")
def table() -> set[str]:
    """The facts of the specification, as committed."""
    return set(_written((HERE / "facts.txt").read_text(encoding="utf-8")))


@pytest.fixture(scope="session")
def specified(table: set[str]) -> set[str]:
    """The facts of the specification, and what ours has in addition."""
    return table | set(_written(ADDITIONS))


@pytest.fixture(scope="session")
def repository() -> Path:
    """The checkout."""
    return REPOSITORY


@pytest.fixture(scope="session")
def spec_document() -> str:
    """The text of the specification, in the folder QUADRIGA_SHARED or beside the checkout."""
    shared = Path(os.environ.get("QUADRIGA_SHARED") or REPOSITORY.parent / "shared")
    path = shared / "spec" / "scheduler-interface-spec.md"
    if path.is_file():
        return path.read_text(encoding="utf-8")
    missing = f"no {path}: set QUADRIGA_SHARED to the folder with the source documents"
    if os.environ.get("QUADRIGA_REQUIRE_SHARED") == "1":
        pytest.fail(missing)
    pytest.skip(missing)


# -- a scheduler behind a server, and clients of it -------------------------------------------------


@pytest.fixture
def serving() -> Iterator[Serving]:
    with Serving() as serving:
        yield serving


@pytest.fixture
def wire(serving: Serving) -> Iterator[Wire]:
    with Wire(serving.port) as wire:
        yield wire


@pytest.fixture
def client(wire: Wire) -> Iterator[Make]:
    made: list[Client] = []

    def make(**how: Any) -> Client:
        how = {"address": wire.address, "backoff": SOON, "timeout_s": PATIENCE, **how}
        made.append(Client(**how))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
async def place() -> AsyncIterator[House]:
    async with house() as place:
        yield place


@pytest.fixture
async def virtual() -> AsyncIterator[House]:
    """Its time stands still."""
    async with house(virtual=True) as place:
        yield place


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The certificates of an authority's server and client, and a stranger's."""
    known = {"server": "DNS:localhost,IP:127.0.0.1", "shim": "DNS:shim.example"}
    authorities = {"ca": known, "stranger-ca": {"stranger": "DNS:x"}}
    return certify(tmp_path_factory.mktemp("tls"), authorities)


@pytest.fixture
async def rm(place: House) -> RM:
    """Registered there, with all its streams."""
    return await place.rm().begin()
