"""Runs policies in CEL as the API server does, with the interpreter of the package cel-python.

The same table ran through the API server's own code, of 1.36, when the policies were written.
"""

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import celpy
from celpy import celtypes


class JSONPatch(celtypes.MessageType):  # type: ignore[misc]
    """One operation."""


def _substring(text: str, start: int, end: int) -> celtypes.StringType:
    if not 0 <= start <= end <= len(text):
        raise IndexError(f"{start} to {end} of {text!r}")
    return celtypes.StringType(str(text)[start:end])


#: what Kubernetes adds to the language, as far as the policies use it
_FUNCTIONS = {
    "substring": _substring,
    "replace": lambda text, old, new: celtypes.StringType(str(text).replace(str(old), str(new))),
    "join": lambda texts, by: celtypes.StringType(str(by).join(str(each) for each in texts)),
}


@cache
def _program(expression: str) -> Any:
    environment = celpy.Environment(annotations={"JSONPatch": JSONPatch})
    return environment.program(environment.compile(expression), functions=_FUNCTIONS)


def evaluate(expression: str, variables: Mapping[str, Any]) -> Any:
    return _program(expression).evaluate(dict(variables))


class _Variables(celtypes.MapType):  # type: ignore[misc]
    """Evaluates each variable when an expression reads it first, as the API server does."""

    def __init__(self, declared: Iterable[Mapping[str, str]], context: dict[str, Any]) -> None:
        super().__init__()
        self._expressions = {each["name"]: each["expression"] for each in declared}
        self._context = context

    def __getitem__(self, name: str) -> Any:
        if name not in self:
            self[celtypes.StringType(name)] = evaluate(self._expressions[name], self._context)
        return super().__getitem__(name)


@dataclass
class Outcome:
    object: dict[str, Any]
    denied: list[str] = field(default_factory=list)


def admit(
    policies: Iterable[Mapping[str, Any]],
    *,
    group: str,
    resource: str,
    operation: str,
    namespace: Mapping[str, Any],
    user: Mapping[str, Any],
    found: Mapping[str, Any],
    old: Mapping[str, Any] | None,
) -> Outcome:
    """First all changes, then all checks, of the policies that apply to the request."""
    outcome = Outcome(copy.deepcopy(dict(found)))
    name = namespace["metadata"]["name"]
    request = {
        "resource": {"group": group, "version": "v1", "resource": resource},
        "operation": operation,
        "namespace": name,
        "userInfo": user,
    }
    matching = [each for each in policies if _matches(each, group, resource, operation, name)]
    for kind in ("MutatingAdmissionPolicy", "ValidatingAdmissionPolicy"):
        for policy in matching:
            if policy["kind"] == kind:
                spec = policy["spec"]
                context = {
                    "object": celpy.json_to_cel(outcome.object),
                    "oldObject": celpy.json_to_cel(old),
                    "request": celpy.json_to_cel(request),
                }
                _apply(spec, context, celpy.json_to_cel(namespace), outcome)
    return outcome


def _matches(
    policy: Mapping[str, Any], group: str, resource: str, operation: str, namespace: str
) -> bool:
    constraints = policy["spec"].get("matchConstraints")
    if constraints is None:
        return False
    for each in constraints["namespaceSelector"]["matchExpressions"]:
        assert (each["key"], each["operator"]) == ("kubernetes.io/metadata.name", "NotIn")
        if namespace in each["values"]:
            return False
    return any(
        group in rule["apiGroups"]
        and resource in rule["resources"]
        and operation in rule["operations"]
        for rule in constraints["resourceRules"]
    )


def _apply(
    spec: Mapping[str, Any], context: dict[str, Any], namespace: Any, outcome: Outcome
) -> None:
    # Conditions do not see the namespace.
    conditions = spec.get("matchConditions", [])
    if not all(evaluate(each["expression"], context) for each in conditions):
        return
    context["namespaceObject"] = namespace
    context["variables"] = _Variables(spec["variables"], context)
    for each in spec.get("mutations", []):
        for operation in evaluate(each["jsonPatch"]["expression"], context):
            _patch(outcome.object, operation)
    for each in spec.get("validations", []):
        if not evaluate(each["expression"], context):
            expression = each.get("messageExpression")
            message = evaluate(expression, context) if expression else each["message"]
            outcome.denied.append(str(message))


def _patch(found: dict[str, Any], operation: Mapping[str, Any]) -> None:
    assert operation["op"] == "add"
    *path, last = (
        name.replace("~1", "/").replace("~0", "~") for name in str(operation["path"]).split("/")[1:]
    )
    for name in path:
        found = found[name]
    value = operation["value"]
    found[last] = {} if isinstance(value, Mapping) else str(value)
