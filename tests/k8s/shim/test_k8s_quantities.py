"""Quantities against the published grammar (K86)."""

import re
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

#: texts whose values are worked out by hand: the thousandths of a cpu, and the whole number
BY_HAND = (
    ("1.5Ki", 1536000, 1536),
    ("2.5m", 3, 1),
    (".25n", 1, 1),
    ("-3E", -9223372036854775807, -3000000000000000000),
    ("1e-3", 1, 1),
    ("1.5e1", 15000, 15),
    ("-1e-9", -1, -1),
    ("9e18", 9223372036854775807, 9000000000000000000),
    ("-1e400", -9223372036854775807, -9223372036854775807),
    ("9223372036854775807m", 9223372036854775807, 9223372036854776),
    ("9223372036854775807n", 9223372036855, 9223372037),
    ("7.9999Ei", 9223372036854775807, 9223256744704315124),
    ("123456789.123456789", 123456789124, 123456790),
    ("1.1Mi", 1153433600, 1153434),
    ("128974848000m", 128974848000, 128974848),
)

#: further texts, whose values are computed as the grammar says: a number and a suffix or an exponent
COMPUTED = """
    -2.5Ki 1u 1M 1T 1P 1.5Gi 1Ei 1e3 1E3 1e+3 12E 5e-1 0e10 1e-10 1e0 2E-0 9.3e18 1e19 1e400 1e-400 0e400
    9223372036854775807 9223372036854775808 -9223372036854775808 8Ei -10E 0.0000000001 -0.0000000001
    0.9999999999 1.000000001 999m 1001m 3Gi 128974848 129M 123Mi 129e6 64Gi 250m
""".split()

UNREADABLE = (
    *("", " ", "+", "-", ".", "+.", "-.", "m", "Ki", "e3", ".m", "E", "x", "1x", "abc"),
    *("1 ", " 1", "1 Gi", "1\n", "1,5", "1_000", "0x10", "1.2.3", "1..2", "--1", "+-1", "1-", "1+"),
    *("1K", "1ki", "1mi", "1ni", "1g", "1gi", "1GI", "1KiB", "1B", "1Gb", "1mm", "1MM", "1iK"),
    *("1e", "1e+", "1e1.5", "1e3k", "1ke3", "1Kie3", "1e 3", "e", "1ee3", "1E3E"),
    *("inf", "nan", "Infinity", "½", "１", "١", "1" * 101, "true", "null"),
)


def away_from_zero(value: Fraction) -> int:
    return ceil(value) if value > 0 else floor(value)


def expected(text: str, unit: int) -> int:
    """First to the smallest unit that the API knows, then to the unit of the resource."""
    found = re.fullmatch(r"([-+.\d]+(?:[eE][-+]?\d+)?)(\D*)", text)
    value = Fraction(found[1]) * SUFFIXES[found[2]]
    whole = away_from_zero(Fraction(away_from_zero(value * 10**9), 10**9) * unit)
    return max(-INT64_MAX, min(whole, INT64_MAX))


def amounts(text: str) -> list[int]:
    return [amount(resource, text) for resource in ("cpu", "memory", "example.com/gpu")]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_k86_a_number_with_a_suffix_is_read(suffix: str) -> None:
    for mantissa in MANTISSAS:
        text = mantissa + suffix
        whole = expected(text, 1)
        assert amounts(text) == [expected(text, 1000), whole, whole], text


def test_k86_a_quantity_is_read() -> None:
    for text, milli, whole in BY_HAND:
        assert amounts(text) == [milli, whole, whole], text
    for text in COMPUTED:
        assert amounts(text) == [expected(text, 1000), expected(text, 1), expected(text, 1)], text


def test_k86_anything_else_is_refused_with_the_text() -> None:
    for text, resource in product(UNREADABLE, ("cpu", "memory")):
        with pytest.raises(QuantityError, match="is not a quantity, such as"):
            pytest.fail(f"{text!r} is {amount(resource, text)}")


def test_k86_k82_numbers_of_old_manifests_are_quantities_and_vcore_counts_by_value() -> None:
    assert amount("cpu", 2) == 2000
    assert amount("cpu", 0.5) == 500
    assert amount("memory", 1e22) == INT64_MAX
    assert amount("memory", 1e-7) == 1
    assert amount("vcore", "500") == 500
    # a quantity is at most int64, but its thousandths can be more
    assert exact("memory", "1e30") == INT64_MAX
    assert exact("cpu", "1e30") == INT64_MAX * 1000
    assert exact("cpu", "-1e30") == -INT64_MAX * 1000
    assert amount("cpu", "-1e30") == -INT64_MAX


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
