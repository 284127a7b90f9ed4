"""docs/rest.md says what is so: its samples run, and every path is in its table."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from quadriga.core.driver.service import SchedulerService
from quadriga.core.views import Views
from quadriga.web.app import create_app
from quadriga.web.reader import MAX_PENDING, OWNER_SHARE, READ_TIMEOUT
from quadriga.web.resource import BODY_TIMEOUT
from quadriga.web.responses import HEADERS
from quadriga.web.rest import routes
from quadriga.web.rest.configuration import MAX_BYTES
from quadriga.web.rest.events import BUFFER
from quadriga.web.server import CONNECTIONS, HEAD_LIMIT, HEAD_TIMEOUT, IDLE_TIMEOUT, WRITE_TIMEOUT

PAGE = Path(__file__).resolve().parents[2] / "docs" / "rest.md"


@pytest.fixture(scope="module")
def page() -> str:
    return PAGE.read_text(encoding="utf-8")


def test_the_samples_run(page: str) -> None:
    samples = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert samples
    for sample in samples:
        exec(compile(sample, str(PAGE), "exec"), {"__name__": "sample"})


def test_every_path_is_named(page: str) -> None:
    service = SchedulerService(manual=True)
    site = create_app(service, Views(service.scheduler)).state.site
    table = page[page.index("## Paths") : page.index("## Differences from YuniKorn")]
    for resource in routes(site):
        last = [word for word in resource.path.split("/") if word and not word.startswith("{")][-1]
        assert last in table, resource.path


def test_limits_are_those_of_the_code(page: str) -> None:
    table = page[page.index("## Limits") : page.index("## Cost of reads")]
    assert (HEAD_LIMIT, HEAD_TIMEOUT, MAX_BYTES, BODY_TIMEOUT) == (32 << 10, 10, 1 << 20, 30)
    assert (CONNECTIONS, IDLE_TIMEOUT, MAX_PENDING, READ_TIMEOUT) == (1000, 30, 10_000, 30)
    for said in (
        "32 KiB, within 10 s",
        "1 MiB, within 30 s",
        "1000; idle ones 30 s",
        "10,000, for 30 s",
    ):
        assert said in table
    assert WRITE_TIMEOUT == 30 and "30 s for 64 kB" in table
    assert (OWNER_SHARE, BUFFER) == (0.05, 10_000)
    assert HEADERS["Access-Control-Allow-Origin"] == "*"
