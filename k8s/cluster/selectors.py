"""Label selectors and node selectors, compiled from API objects into values that compare equal if they mean the
same.

A selector that the API server would not accept selects nothing, as in kube-scheduler: for example a label
selector with an unknown operator, or a term of a node selector with an invalid requirement.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from quadriga.k8s.objects import LabelSelector, NodeSelector, NodeSelectorTerm, Requirement

_KEY = re.compile(
    r"(?=.{1,317}\Z)(?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?/)?"
    r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?\Z"
)
_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?\Z")
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}\Z")

_Operator = Literal["In", "NotIn", "Exists", "DoesNotExist"]
_Clause = tuple[str, _Operator, tuple[str, ...]]


def integer(text: str) -> int | None:
    """Return the number that the text writes in base 10 if it fits in 64 bits."""
    if not _INTEGER.match(text):
        return None
    number = int(text)
    return number if -(1 << 63) <= number < 1 << 63 else None


@dataclass(frozen=True, slots=True)
class Selector:
    """A label selector. The empty one selects everything; ``nothing`` selects nothing."""

    equal: tuple[tuple[str, str], ...] = ()
    clauses: tuple[_Clause, ...] = ()
    nothing: bool = False
    #: the label keys that it looks at
    keys: frozenset[str] = field(default=frozenset(), compare=False)

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether the labels match the selector."""
        for key, value in self.equal:
            if labels.get(key) != value:
                return False
        for key, operator, values in self.clauses:
            if operator == "In":
                if labels.get(key) not in values:
                    return False
            elif operator == "NotIn":
                if labels.get(key) in values:
                    return False
            elif (key in labels) != (operator == "Exists"):
                return False
        return not self.nothing


NOTHING = Selector(nothing=True)


def compile_selector(
    selector: LabelSelector | None, extra: Iterable[tuple[str, str]] = ()
) -> Selector:
    """Compile the selector with these additional labels. Without a selector nothing is selected."""
    if selector is None:
        return NOTHING
    equal = {*selector.match_labels.items(), *extra}
    clauses = set()
    for requirement in selector.match_expressions:
        clause = _clause(requirement)
        if clause is None:
            return NOTHING
        key, operator, values = clause
        if operator == "In" and len(values) == 1:
            equal.add((key, values[0]))
        else:
            clauses.add(clause)
    keys = {key for key, _ in equal} | {key for key, _, _ in clauses}
    return Selector(tuple(sorted(equal)), tuple(sorted(clauses)), keys=frozenset(keys))


def _clause(requirement: Requirement) -> _Clause | None:
    values = tuple(sorted(set(requirement.values)))
    match requirement.operator:
        case "In" | "NotIn" as operator:
            return (requirement.key, operator, values) if values else None
        case "Exists" | "DoesNotExist" as operator:
            return None if values else (requirement.key, operator, ())
        case _:
            return None


_NodeClause = tuple[str, str, frozenset[str], int]


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """A term of a node selector: requirements on the labels and on the name."""

    clauses: tuple[_NodeClause, ...]
    names: tuple[tuple[bool, str], ...]

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        """Return whether the node matches all requirements."""
        for wanted, other in self.names:
            if (name == other) != wanted:
                return False
        for key, operator, values, bound in self.clauses:
            value = labels.get(key)
            if operator == "In":
                if value not in values:
                    return False
            elif operator == "NotIn":
                if value in values:
                    return False
            elif operator == "Exists":
                if value is None:
                    return False
            elif operator == "DoesNotExist":
                if value is not None:
                    return False
            else:
                number = None if value is None else integer(value)
                if number is None:
                    return False
                if number <= bound if operator == "Gt" else number >= bound:
                    return False
        return True


def compile_node_selector(selector: NodeSelector) -> tuple[NodeTerm, ...]:
    """Return the terms of which one must match (K122), without those that match nothing."""
    terms = (_node_term(term) for term in selector.node_selector_terms)
    return tuple(term for term in terms if term is not None)


def _node_term(term: NodeSelectorTerm) -> NodeTerm | None:
    if not term.match_expressions and not term.match_fields:
        return None
    clauses = []
    for requirement in term.match_expressions:
        clause = _node_clause(requirement)
        if clause is None:
            return None
        clauses.append(clause)
    names = []
    for requirement in term.match_fields:
        known = requirement.key == "metadata.name" and requirement.operator in ("In", "NotIn")
        if not known or len(requirement.values) != 1:
            return None
        names.append((requirement.operator == "In", requirement.values[0]))
    return NodeTerm(tuple(clauses), tuple(names))


def _node_clause(requirement: Requirement) -> _NodeClause | None:
    """Compile a requirement; ``None`` if it is invalid, which makes its whole term match nothing."""
    key, operator, values = requirement.key, requirement.operator, requirement.values
    if not _KEY.match(key) or not all(_VALUE.match(value) for value in values):
        return None
    bound = 0
    match operator:
        case "In" | "NotIn":
            valid = bool(values)
        case "Exists" | "DoesNotExist":
            valid = not values
        case "Gt" | "Lt":
            number = integer(values[0]) if len(values) == 1 else None
            valid, bound = number is not None, number or 0
        case _:
            valid = False
    return (key, operator, frozenset(values), bound) if valid else None
