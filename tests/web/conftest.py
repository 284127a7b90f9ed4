"""A cluster that nobody changes, and clients of it, for the tests that only read."""

import math
from collections.abc import AsyncIterator, Iterator

import pytest
from live_cluster import LiveCluster
from on_a_port import PATIENCE, Client, client_of, serving

from quadriga.web import reader


@pytest.fixture(autouse=True)
def _no_look_is_dear(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a look might take long and be cached, and a test would be shown what was before."""
    monkeypatch.setattr(reader, "CACHE_ABOVE_S", math.inf)


@pytest.fixture(scope="session")
def still() -> Iterator[LiveCluster]:
    """Something of everything. No test changes it."""
    with LiveCluster(busy=False) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def address(still: LiveCluster) -> Iterator[str]:
    """A real server of the still cluster."""
    with serving(still) as address:
        yield address


@pytest.fixture
def cluster() -> Iterator[LiveCluster]:
    """The same cluster for one test, which may change it."""
    with LiveCluster(busy=False) as cluster:
        yield cluster


@pytest.fixture
def busy() -> Iterator[LiveCluster]:
    """A cluster in which something happens all the time."""
    with LiveCluster() as cluster:
        yield cluster


@pytest.fixture
async def client(still: LiveCluster) -> AsyncIterator[Client]:
    """A client of the still cluster without a port between."""
    async with client_of(still) as client:
        yield client


@pytest.fixture
async def remote(address: str) -> AsyncIterator[Client]:
    """A client of the still cluster's server."""
    async with Client(base_url=address, timeout=PATIENCE) as client:
        yield client
