"""Expressions of configurations: they mean what they usually mean, in time that nobody can blow up."""

from __future__ import annotations

import re
import time

import pytest

from quadriga.core.config import ConfigError, load
from quadriga.core.config.expression import Expression


@pytest.mark.parametrize(
    "expression",
    ["^dev-.*$", "user[0-9]+", "(team|group)_[a-z]{2,8}", "(?i)^Ann$", "^[^.]+$", "a|b|", r"\w\d"],
)
@pytest.mark.parametrize("text", ["dev-1", "user7", "my team_ab", "ANN", "ann", "a.b", "", "ö7"])
def test_what_configurations_have(expression: str, text: str) -> None:
    expected = re.search(expression, text, re.ASCII) is not None
    assert Expression(expression).search(text) == expected


@pytest.mark.parametrize(
    "expression", ["(a+)+$", "(a|a)*$", "(.*a){20}$", "(a*)*b", "((a?){9}){9}b", "a*a*a*a*a*a*a*b"]
)
def test_no_expression_takes_for_ever(expression: str) -> None:
    begin = time.process_time()
    Expression(expression).search("a" * 1_000)
    assert time.process_time() - begin < 10  # Python's takes longer than there is time


REFUSED = [r"(a)\1", "(?=a)b", "(?<!a)b", "a++", "(?>a)", "(", "a{9999}", "((a{50}){50}){50}"]


@pytest.mark.parametrize("expression", [*REFUSED, "(" * 2_000])
def test_what_cannot_be_done_is_refused(expression: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Expression(expression)


def test_a_filter_with_one_is_a_problem_of_the_configuration() -> None:
    text = r"""
partitions:
  - name: default
    placementrules:
      - name: fixed
        value: root.a
        filter: {type: allow, users: ['(a)\1']}
    queues: [{name: root, queues: [{name: a}]}]
"""
    with pytest.raises(ConfigError, match="neither a user name nor a regular expression"):
        load(text)
