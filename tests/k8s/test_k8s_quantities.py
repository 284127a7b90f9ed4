"""Quantities against the published grammar (K86)."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product
from math import ceil, floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quadriga.k8s.conversion.quantities import INT64_MAX, QuantityError, amount, exact

MANTISSAS = (
    *("0", "1", "-1", "+1", "-3", "7", "10", "100", "1024", "1000000", "01", "1.0", "00.50"),
    *("0.1", ".25", "1.5", "2.5", "-2.5", ".5", "5.", "0.001", "0.0001"),
)
SUFFIXES = {
    **{suffix: Fraction(10) ** (3 * power) for power, suffix in enumerate("num", -3)},
    **{suffix: Fraction(1000) ** power for power, suffix in enumerate(["", *"kMGTPE"])},
    **{f"{suffix}i": Fraction(1024) ** power for power, suffix in enumerate("KMGTPE", 1)},
}

#: further texts, the thousandths of a cpu that each is, the whole number that it is
READABLE = (
    ("1.5Ki", 1536000, 1536),
    ("2.5m", 3, 1),
    ("-2.5Ki", -2560000, -2560),
    (".25n", 1, 1),
    ("1u", 1, 1),
    ("1M", 1000000000, 1000000),
    ("1T", 1000000000000000, 1000000000000),
    ("1P", 1000000000000000000, 1000000000000000),
    ("-3E", -9223372036854775807, -3000000000000000000),
    ("1.5Gi", 1610612736000, 1610612736),
    ("1Ei", 9223372036854775807, 1152921504606846976),
    ("1e3", 1000000, 1000),
    ("1E3", 1000000, 1000),
    ("1e-3", 1, 1),
    ("1e+3", 1000000, 1000),
    ("12E", 9223372036854775807, 9223372036854775807),
    ("1.5e1", 15000, 15),
    ("5e-1", 500, 1),
    ("0e10", 0, 0),
    ("-1e-9", -1, -1),
    ("1e-10", 1, 1),
    ("1e0", 1000, 1),
    ("2E-0", 2000, 2),
    ("9e18", 9223372036854775807, 9000000000000000000),
    ("9.3e18", 9223372036854775807, 9223372036854775807),
    ("1e19", 9223372036854775807, 9223372036854775807),
    ("1e400", 9223372036854775807, 9223372036854775807),
    ("1e-400", 1, 1),
    ("0e400", 0, 0),
    ("-1e400", -9223372036854775807, -9223372036854775807),
    ("9223372036854775807", 9223372036854775807, 9223372036854775807),
    ("9223372036854775808", 9223372036854775807, 9223372036854775807),
    ("-9223372036854775808", -9223372036854775807, -9223372036854775807),
    ("9223372036854775807m", 9223372036854775807, 9223372036854776),
    ("9223372036854775807n", 9223372036855, 9223372037),
    ("8Ei", 9223372036854775807, 9223372036854775807),
    ("7.9999Ei", 9223372036854775807, 9223256744704315124),
    ("-10E", -9223372036854775807, -9223372036854775807),
    ("0.0000000001", 1, 1),
    ("-0.0000000001", -1, -1),
    ("0.9999999999", 1000, 1),
    ("123456789.123456789", 123456789124, 123456790),
    ("1.000000001", 1001, 2),
    ("999m", 999, 1),
    ("1001m", 1001, 2),
    ("3Gi", 3221225472000, 3221225472),
    ("1.1Mi", 1153433600, 1153434),
    ("128974848", 128974848000, 128974848),
    ("129M", 129000000000, 129000000),
    ("123Mi", 128974848000, 128974848),
    ("129e6", 129000000000, 129000000),
    ("128974848000m", 128974848000, 128974848),
    ("64Gi", 68719476736000, 68719476736),
    ("250m", 250, 1),
)

UNREADABLE = (
    *("", " ", "+", "-", ".", "+.", "-.", "m", "Ki", "e3", ".m", "E", "x", "1x", "abc"),
    *("1 ", " 1", "1 Gi", "1\n", "1,5", "1_000", "0x10", "1.2.3", "1..2", "--1", "+-1", "1-", "1+"),
    *("1K", "1ki", "1mi", "1ni", "1g", "1gi", "1GI", "1KiB", "1B", "1Gb", "1mm", "1MM", "1iK"),
    *("1e", "1e+", "1e1.5", "1e3k", "1ke3", "1Kie3", "1e 3", "e", "1ee3", "1E3E"),
    *("inf", "nan", "Infinity", "½", "１", "١", "1" * 101, "true", "null"),
)


def test_k86_the_table_has_200_values() -> None:
    texts = [mantissa + suffix for mantissa in MANTISSAS for suffix in SUFFIXES]
    others = {row[0] for row in READABLE} - set(texts)
    assert len(set(texts)) + len(others) + len(set(UNREADABLE)) >= 400


def away_from_zero(value: Fraction) -> int:
    return ceil(value) if value > 0 else floor(value)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_k86_a_number_with_a_suffix_is_read(suffix: str) -> None:
    """First to the smallest unit that the API knows, then to the unit of the resource."""
    for mantissa in MANTISSAS:
        value = Fraction(away_from_zero(Fraction(mantissa) * SUFFIXES[suffix] * 10**9), 10**9)
        for resource, unit in (("cpu", 1000), ("memory", 1), ("example.com/gpu", 1)):
            whole = away_from_zero(value * unit)
            expected = max(-INT64_MAX, min(whole, INT64_MAX))
            assert amount(resource, mantissa + suffix) == expected, (mantissa, resource)


def test_k86_a_quantity_is_read() -> None:
    for text, milli, whole in READABLE:
        found = [amount(resource, text) for resource in ("cpu", "memory", "example.com/gpu")]
        assert found == [milli, whole, whole], text


def test_k86_anything_else_is_refused_with_the_text() -> None:
    for text, resource in product(UNREADABLE, ("cpu", "memory")):
        with pytest.raises(QuantityError, match="is not a quantity, such as"):
            pytest.fail(f"{text!r} is {amount(resource, text)}")


def test_k86_numbers_of_old_manifests_are_quantities() -> None:
    assert amount("cpu", 2) == 2000
    assert amount("cpu", 0.5) == 500
    assert amount("memory", 1e22) == INT64_MAX
    assert amount("memory", 1e-7) == 1


def test_k86_a_quantity_is_at_most_int64_but_its_thousandths_can_be_more() -> None:
    assert exact("memory", "1e30") == INT64_MAX
    assert exact("cpu", "1e30") == INT64_MAX * 1000
    assert exact("cpu", "-1e30") == -INT64_MAX * 1000
    assert amount("cpu", "-1e30") == -INT64_MAX


def test_k82_vcore_by_its_own_name_is_counted_by_value() -> None:
    assert amount("vcore", "500") == 500


@given(
    st.decimals(min_value="-1e9", max_value="1e9", places=12, allow_nan=False),
    st.sampled_from([("", 0), ("m", -3), ("u", -6), ("k", 3), ("M", 6), ("e2", 2), ("E-4", -4)]),
)
def test_k86_rounding_is_away_from_zero(number: Decimal, suffix: tuple[str, int]) -> None:
    text, power = suffix
    with localcontext() as context:
        context.prec = 60
        # First to the smallest unit that the API knows, then to the unit of the resource.
        context.rounding = "ROUND_UP"
        value = number.scaleb(power).quantize(Decimal("1e-9"))
        assert amount("memory", f"{number:f}{text}") == int(value.quantize(Decimal(1)))
        assert amount("cpu", f"{number:f}{text}") == int((value * 1000).quantize(Decimal(1)))
