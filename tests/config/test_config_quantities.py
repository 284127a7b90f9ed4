"""Quantities and durations (2.2.1, 2.2.2, and the examples of 5.13)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quadriga.core.config import DurationError, QuantityError, parse_duration, parse_quantity
from quadriga.core.config.quantities import INT64_MAX

POWERS = {"": 1} | {
    f"{prefix}{binary}": base**power
    for binary, base in (("", 1000), ("i", 1024))
    for power, prefix in enumerate("KMGTPE" if binary else "kMGTPE", 1)
}


@pytest.mark.parametrize(
    ("resource", "text", "amount"),
    [
        ("vcore", "2", 2000),
        ("vcore", "500m", 500),
        ("memory", "2Gi", 2147483648),
        ("memory", "1k", 1000),
        ("memory", " 2 Gi ", 2147483648),
        ("nvidia.com/gpu", "8", 8),
        ("vcore", "1k", 1_000_000),
        ("memory", "0", 0),
        ("memory", "0" * 5000 + "7", 7),
        ("memory", str(INT64_MAX), INT64_MAX),
        ("memory", "7Ei", 7 * 2**60),
    ],
)
def test_5_13_quantity(resource: str, text: str, amount: int) -> None:
    assert parse_quantity(resource, text) == amount


VCORES = ["1mi", str(INT64_MAX)]
MEMORY = ["1K", "1.5", "-1", "+1", "10m", "1ki", "", "G", "1 G i", "\u0661", "8Ei", "9" * 5000]


@pytest.mark.parametrize(
    ("resource", "text"),
    [
        *(("vcore", text) for text in VCORES),
        *(("memory", text) for text in (*MEMORY, str(INT64_MAX + 1))),
    ],
)
def test_5_13_quantity_errors(resource: str, text: str) -> None:
    with pytest.raises(QuantityError):
        parse_quantity(resource, text)


@given(st.integers(0, INT64_MAX), st.sampled_from(sorted(POWERS)))
def test_every_amount_survives_being_written(amount: int, suffix: str) -> None:
    count = amount // POWERS[suffix]
    assert parse_quantity("memory", f"{count}{suffix}") == count * POWERS[suffix]
    assert parse_quantity("vcore", f"{amount}m") == amount


@given(st.text())
def test_a_quantity_is_an_int64_or_an_error(text: str) -> None:
    try:
        amount = parse_quantity("vcore", text)
    except QuantityError:
        return
    assert 0 <= amount <= INT64_MAX


SECOND = 10**9


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("30s", 30 * SECOND),
        ("1m30s", 90 * SECOND),
        ("1h", 3600 * SECOND),
        ("1.5h", 5400 * SECOND),
        (".5s", SECOND // 2),
        ("1.s", SECOND),
        ("0", 0),
        ("-0", 0),
        ("-2ms", -2_000_000),
        ("+3us", 3000),
        ("4\u00b5s5ns", 4005),
        ("0.3ns", 0),
        ("0.1s", SECOND // 10),
    ],
)
def test_durations_are_those_of_go(text: str, nanoseconds: int) -> None:
    assert parse_duration(text) == nanoseconds


@pytest.mark.parametrize(
    "text",
    ["", "-", "30", "s", ".s", "1d", "1 s", " 1s", "1s ", "1m30", "3000000h", "1e3s", "9" * 200],
)
def test_what_go_refuses_is_refused(text: str) -> None:
    with pytest.raises(DurationError):
        parse_duration(text)


@given(st.integers(0, INT64_MAX))
def test_every_duration_survives_being_written(nanoseconds: int) -> None:
    assert parse_duration(f"{nanoseconds}ns") == nanoseconds
    seconds, rest = divmod(nanoseconds, SECOND)
    assert parse_duration(f"-{seconds}.{rest:09d}s") == -nanoseconds
