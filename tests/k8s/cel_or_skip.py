"""Expressions in CEL, where the interpreter is installed."""

from collections.abc import Mapping
from typing import Any

import pytest


def evaluate(expression: str, variables: Mapping[str, Any]) -> Any:
    cel = pytest.importorskip("celpy")
    from tests.k8s import cel_policies

    return bool(cel_policies.evaluate(expression, cel.json_to_cel(dict(variables))))
