"""Numbers, times and groups of nodes as they are written in options and logs."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quadriga.sim.workload import GPU, MEMORY, VCORE, NodeSpec, parse_nodes
from quadriga.sim.workload.amounts import (
    MAX_S,
    amount,
    clock,
    count,
    number,
    timestamp,
    whole_seconds,
)

GIB = 1024**3


def test_groups_of_nodes() -> None:
    nodes = parse_nodes(["9x64vcore,256Gi", "1x1500m,1.5G,8gpu,2example.com/fpga"])
    assert [node.name for node in nodes][::9] == ["node-01", "node-10"]
    assert nodes[0] == NodeSpec("node-01", {VCORE: 64_000, MEMORY: 256 * GIB})
    assert nodes[9].resources == {
        VCORE: 1500,
        MEMORY: 1_500_000_000,
        GPU: 8,
        "example.com/fpga": 2,
    }
    assert parse_nodes([]) == ()


@pytest.mark.parametrize(
    ("group", "complaint"),
    [
        ("64vcore", "'64vcore' is not a group of nodes such as 100x64vcore,256Gi"),
        ("0x64vcore", "'0x64vcore' is not a group of nodes"),
        ("2x", "'2x' is not a group of nodes"),
        ("2x64", "'2x64': '64' is not an amount such as 64vcore"),
        ("2x64vcore,", "'2x64vcore,': '' is not an amount"),
        ("2x64cores", "'2x64cores': there is no unit 'cores'; known are vcore, m, B, Ki, "),
        ("2x64vcore,1m", "vcore is given twice"),
        ("2x1vcore,99999999P", "is more than 10000000000000000"),
        ("9999999x1vcore", "more than 1000000 nodes"),
    ],
)
def test_a_wrong_group_is_one_line(group: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=r"^.+$") as caught:
        parse_nodes([group])
    assert complaint in str(caught.value)


def test_seconds_clocks_and_timestamps() -> None:
    assert whole_seconds(Decimal("-0.5")) == -1
    assert whole_seconds(Decimal("1.9")) == 1
    assert whole_seconds(Decimal("0.001"), up=True) == 1
    assert amount(Decimal("0.001")) == 1
    assert count(Decimal("3.0")) == 3
    assert clock("90:00") == 5400
    assert clock("1-00:00:01.5") == Decimal("86401.5")
    assert timestamp("1970-01-01T00:00:01.250000") == Decimal("1.25")
    assert timestamp("1969-12-31T23:59:59Z") == -1
    assert timestamp("02.01.1970", "%d.%m.%Y") == 86_400


FUNCTIONS: list[Callable[[str], object]] = [
    number,
    clock,
    timestamp,
    lambda text: timestamp(text, "%Y-%m-%d %H:%M:%S.%f %z"),
    lambda text: amount(number(text)),
    lambda text: count(number(text)),
    lambda text: whole_seconds(number(text), up=True),
    lambda text: parse_nodes([text]) and None,
]


@given(st.text() | st.from_regex(r"-?\d{1,30}(\.\d{1,30})?([eE][+-]?\d{1,7})?", fullmatch=True))
def test_any_text_has_a_value_or_a_short_reason(text: str) -> None:
    for function in FUNCTIONS:
        try:
            value = function(text)
        except ValueError as error:
            assert len(str(error)) < 300
        else:
            if isinstance(value, int):
                assert abs(value) <= max(MAX_S, 10**16)
