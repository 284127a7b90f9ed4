"""The OpenAPI document and the routes say the same, and the committed one is up to date."""

import json
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import pytest
from on_a_port import Client
from starlette.applications import Starlette
from starlette.routing import BaseRoute, Mount, Route

from quadriga.core.driver.service import SchedulerService
from quadriga.core.views import Views
from quadriga.web import print_openapi
from quadriga.web.app import create_app
from quadriga.web.openapi import Schemas, document
from quadriga.web.resource import Resource
from quadriga.web.responses import API

COMMITTED = Path(__file__).resolve().parents[3] / "docs" / "openapi.json"

#: what 2.14 asks for
PATHS = """\
clusters stack metrics config validate-conf history/apps history/containers fullstatedump partitions
events/batch events/stream
scheduler/healthcheck scheduler/node-utilizations scheduler/node-utilization
partition/{partition}/queues partition/{partition}/queue/{queue}
partition/{partition}/nodes partition/{partition}/node/{node}
partition/{partition}/queue/{queue}/applications
partition/{partition}/queue/{queue}/applications/{state}
partition/{partition}/queue/{queue}/application/{application}
partition/{partition}/application/{application} partition/{partition}/applications/{state}
partition/{partition}/usage/users partition/{partition}/usage/user/{user}
partition/{partition}/usage/groups partition/{partition}/usage/group/{group}
partition/{partition}/placementrules
""".split()


@pytest.fixture
def app() -> Starlette:
    service = SchedulerService(manual=True)
    return create_app(service, Views(service.scheduler))


def paths(routes: list[BaseRoute]) -> set[str]:
    """All below the API's prefixes, described or not."""
    found = set()
    for route in routes:
        assert isinstance(route, Resource | Route | Mount), route
        if route.path.startswith(API):
            found.add(route.path)
    return found


def test_2_14_what_is_served_is_described_and_what_is_described_is_served(app: Starlette) -> None:
    described = document(app.routes)["paths"]
    assert {f"/ws/v1/{path}" for path in PATHS} <= set(described) == paths(app.routes)
    operations = [each for path in described.values() for each in path.values()]
    ids = [each["operationId"] for each in operations if isinstance(each, dict)]
    assert len(ids) == len(set(ids)) > 30
    for route in app.routes:
        if isinstance(route, Resource):
            methods = {name.upper() for name in described[route.path]} - {"PARAMETERS"}
            assert methods | {"HEAD", "OPTIONS"} >= set(route.methods) >= methods
            names = [each["name"] for each in described[route.path].get("parameters", [])]
            assert names == route.parameters


async def test_the_committed_document_is_up_to_date_and_served(
    app: Starlette, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    print_openapi.main()
    made = capsys.readouterr().out
    assert made == COMMITTED.read_text(encoding="utf-8"), (
        "run: python -m quadriga.web.print_openapi > docs/openapi.json"
    )
    assert json.loads(made) == document(app.routes)
    assert (await client.get("/ws/v1/openapi.json")).json() == json.loads(made)


def test_a_type_becomes_a_schema() -> None:
    class Tree(TypedDict):
        """A name, and more of the kind."""

        name: str
        weight: NotRequired[float]
        size: int
        below: list[dict[str, Any]]

    schemas = Schemas()
    assert schemas.of(list[Tree]) == {
        "type": "array",
        "items": {"$ref": "#/components/schemas/Tree"},
    }
    made = schemas.components["Tree"]
    assert made["description"] == "A name, and more of the kind."
    assert made["required"] == ["below", "name", "size"]
    assert made["additionalProperties"] is False
    assert made["properties"]["size"]["format"] == "int64"
    assert schemas.of(int | None)["anyOf"][1] == {"type": "null"}
    with pytest.raises(TypeError, match="has no form in JSON"):
        schemas.of(complex)
