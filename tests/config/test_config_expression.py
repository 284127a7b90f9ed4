"""Expressions mean what Python's engine says that they mean, in time that nobody can blow up."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quadriga.core.config import ConfigError, load
from quadriga.core.config.expression import Expression

letters = st.sampled_from(
    ["a", "b", "A", "_", "1", ".", r"\w", r"\d", r"\s", "[ab]", "[^a]", "[a-z1]"]
)
anchors = st.sampled_from(["^", "$", r"\b", r"\B", r"\A", r"\Z"])
expressions = st.recursive(
    st.one_of(letters, letters, letters, anchors),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map("".join),
        st.lists(inner, min_size=1, max_size=3).map(lambda ways: f"({'|'.join(ways)})"),
        st.tuples(
            inner, st.sampled_from(["*", "+", "?", "{2}", "{0,2}", "{1,}", "*?", "+?", "??", "{0}"])
        ).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
        inner.map(lambda text: f"(?i:{text})"),
    ),
    max_leaves=8,
)
texts = st.text("abAB1_ \n-", max_size=8)


@given(expressions, texts)
def test_it_says_what_the_other_engine_says(expression: str, text: str) -> None:
    assert Expression(expression).search(text) == (re.search(expression, text) is not None)


@pytest.mark.parametrize(
    "expression",
    ["^dev-.*$", "user[0-9]+", "(team|group)_[a-z]{2,8}", "(?i)^Ann$", "^[^.]+$", "a|b|"],
)
@pytest.mark.parametrize("text", ["dev-1", "user7", "my team_ab", "ANN", "ann", "a.b", ""])
def test_what_configurations_have(expression: str, text: str) -> None:
    assert Expression(expression).search(text) == (re.search(expression, text) is not None)


@pytest.mark.parametrize(
    "expression", ["(a+)+$", "(a|a)*$", "(.*a){20}$", "(a*)*b", "((a?){9}){9}b", "a*a*a*a*a*a*a*b"]
)
def test_no_expression_takes_for_ever(expression: str) -> None:
    begin = time.process_time()
    Expression(expression).search("a" * 1_000)
    assert time.process_time() - begin < 10  # Python's takes longer than there is time


@pytest.mark.parametrize(
    "expression", [r"(a)\1", "(?=a)b", "(?<!a)b", "(?m)^a", "a++", "(?>a)", "(", "a{9999}", "((a{50}){50}){50}",
                   "(" * 2_000, "(?a:\\w)"]
)  # fmt: skip
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
