"""Whatever is asked, every answer is one that the OpenAPI document describes."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis.errors import Unsatisfiable
from live_cluster import ODD, LiveCluster
from schemathesis import GenerationMode
from schemathesis.config import SchemathesisConfig
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance
from schemathesis.specs.openapi.schemas import OpenApiSchema
from starlette.applications import Starlette

from quadriga.web.app import create_app
from quadriga.web.openapi import document
from tests.si.certificates import access_by

TOKEN = "a-token-for-tests-only"

AUTHORISED = {"Authorization": f"Bearer {TOKEN}"}

#: this part of the profile's examples, for each operation
PART = 12

#: what there is, so that not every question is about nothing
NAMES = {
    "partition": ["default", "[rm]default"],
    "queue": "root root.prod root.prod.gangs root.dev root.odd:queue root.prod.made".split(),
    "application": ["gang", "hard", "busy", "done", "again", "wide", ODD],
    "node": ["node-0", "odd/node", "draining"],
    "user": ["ann", "cat", "e.f@example.org"],
    "group": ["staff", "a/b", "*"],
}

QUERIES = {"start": [0, 5, 10_000_000], "count": [1, 10, 100_000], "rmID": ["rm", "nobody"]}


def is_empty(value: object) -> bool:
    """Whether nothing is sent for the value of a query, or for a part of it; of an object its names are sent."""
    if isinstance(value, list | dict):
        return not value or any(map(is_empty, value))
    return value in ("", None)


def known(parameter: dict[str, Any]) -> None:
    """Let names that exist be tried as often as any others."""
    names = (NAMES if parameter["in"] == "path" else QUERIES).get(parameter["name"])
    if names is not None and "enum" not in parameter["schema"]:
        parameter["schema"] = {"anyOf": [{"enum": names}, parameter["schema"]]}


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Starlette]:
    access = access_by(tmp_path_factory.mktemp("access"), f"ops admin plain:{TOKEN}\n")
    with LiveCluster() as cluster:
        app = create_app(cluster.service, cluster.views, access=access)
        yield app
        assert cluster.step(lambda scheduler: cluster.script).scheduler.check() == []
        assert cluster.service.failures == 0


def described(app: Starlette, *, names: bool) -> OpenApiSchema:
    """The document, with names that exist in it."""
    found = document(app.routes)
    del found["paths"]["/ws/v1/events/stream"]  # has no end; test_web_rest_events.py
    for path in found["paths"].values() if names else ():
        for each in path.values():
            for parameter in each if isinstance(each, list) else each.get("parameters", []):
                known(parameter)
    schema = schemathesis.openapi.from_dict(found, config=SchemathesisConfig())
    schema.app = app
    return schema


# to find out what is ill-formed takes a second for each operation, however few the examples
SLOW = pytest.param(GenerationMode.NEGATIVE, marks=pytest.mark.slow)


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, SLOW])
def test_answers_are_as_described(app: Starlette, mode: GenerationMode) -> None:
    tried = []
    for found in described(app, names=mode.is_positive).get_all_operations():
        operation = found.ok()
        try:
            questions(operation, mode)()
        except Unsatisfiable:  # nothing of it could be ill-formed
            assert mode.is_negative, operation.label
        tried.append(operation.label)
    assert len(tried) > 30


def questions(
    operation: APIOperation[Any, Any, Any, Any], mode: GenerationMode
) -> Callable[[], None]:
    """Some that fit the document, or some that do not."""
    # What a configuration may say is more than a schema does, and the token is always there.
    changes = operation.method == "put"
    excluded = [positive_data_acceptance, negative_data_rejection] if changes else []

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=max(1, settings.default.max_examples // PART),
        derandomize=True,
        database=None,
        deadline=None,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )
    def answers(case: schemathesis.Case) -> None:
        # A parameter without a value counts as absent, as in YuniKorn, and is not ill-formed. 5.0, an integer
        # of JSON, is none in a query.
        values = (case.query or {}).values()
        assume(not any(is_empty(value) or isinstance(value, float) for value in values))
        case.call_and_validate(headers=AUTHORISED, excluded_checks=excluded)

    return answers
