"""Bounds of the connections to an HTTP port (Q16)."""

import asyncio
from typing import Any

import pytest

from quadriga.si.open_connections import OpenConnections


class Connection(asyncio.Transport):
    def __init__(self, address: str | None) -> None:
        super().__init__({"peername": (address, 1) if address else None})
        self.ended = False

    def is_closing(self) -> bool:
        return self.ended

    def abort(self) -> None:
        self.ended = True


def test_q16_one_address_has_a_bound_and_what_ends_makes_room(caplog: Any) -> None:
    connections = OpenConnections("the port", 4, 2)
    first, second, third = (Connection("10.0.0.1") for _ in range(3))
    assert connections.add(first) == connections.add(second) == ""
    assert connections.add(third) == (
        "10.0.0.1 has 2 connections, more are not allowed (--max-connections-per-client)"
    )
    assert "the port: 10.0.0.1 has 2 connections" in caplog.text
    assert connections.add(Connection("::ffff:10.0.0.1"))  # the same address
    assert connections.add(Connection("10.0.0.2")) == ""
    first.ended = True
    assert connections.add(third) == ""


def test_q16_the_oldest_of_the_address_goes_and_of_all_that_of_who_has_most(caplog: Any) -> None:
    connections = OpenConnections("the port", 4, 3)
    made = [Connection(address) for address in "aaaabc"]
    for each in made:
        connections.add_newest(each)
    assert [each.ended for each in made] == [True, True, False, False, False, False]
    assert len(caplog.records) == 1  # a minute


@pytest.mark.parametrize("share", [1, 10])
def test_q16_open_files_lower_both_bounds(share: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quadriga.si.descriptors.available", lambda: 1024)
    connections = OpenConnections("the port", 1000, 500, share=share)
    assert (connections.most, connections.most_of_client) == (448 // share, 224 // share)
