"""docs/rest.md and docs/pages.md say what is so: samples run, tables name what there is, pictures are there."""

import re
from pathlib import Path

import pytest

from quadriga.core.driver.service import SchedulerService
from quadriga.core.views import Views
from quadriga.web.app import create_app
from quadriga.web.pages import PAGES
from quadriga.web.pages.endpoints import ENDPOINTS, Number
from quadriga.web.reader import MAX_PENDING, OWNER_SHARE, READ_TIMEOUT
from quadriga.web.resource import BODY_TIMEOUT
from quadriga.web.responses import HEADERS
from quadriga.web.rest import routes
from quadriga.web.rest.configuration import MAX_BYTES
from quadriga.web.rest.events import BUFFER
from quadriga.web.server import CONNECTIONS, HEAD_LIMIT, HEAD_TIMEOUT, IDLE_TIMEOUT, WRITE_TIMEOUT

PAGE = Path(__file__).resolve().parents[3] / "docs" / "rest.md"
TEXT = PAGE.read_text(encoding="utf-8")
PAGES_TEXT = PAGE.with_name("pages.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("text", [TEXT, PAGES_TEXT], ids=["rest", "pages"])
def test_the_samples_run(text: str) -> None:
    samples = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert samples
    for sample in samples:
        exec(compile(sample, "docs", "exec"), {"__name__": "sample"})


def test_every_path_is_named() -> None:
    service = SchedulerService(manual=True)
    site = create_app(service, Views(service.scheduler)).state.site
    table = TEXT[TEXT.index("## Paths") : TEXT.index("## Differences from YuniKorn")]
    for resource in routes(site):
        last = [word for word in resource.path.split("/") if word and not word.startswith("{")][-1]
        assert last in table, resource.path


def test_limits_are_those_of_the_code() -> None:
    table = TEXT[TEXT.index("## Limits") : TEXT.index("## Cost of reads")]
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


def test_every_page_and_every_endpoint_is_in_a_table_with_its_parameters_and_bounds() -> None:
    assert set(re.findall(r"^\| `/ui/(\w*)", PAGES_TEXT, re.MULTILINE)) == set(PAGES)
    section = PAGES_TEXT.partition("## Data")[2].partition("All but")[0]
    rows = re.findall(r"^\| (`.*?) \|(.*)\|$", section, re.MULTILINE)
    told = {
        name: set(re.findall(r"`(\w+)`(?!\)|,? `?groups)", parameters)) - {"users", "groups"}
        for names, parameters in rows
        for name in re.findall(r"`([\w-]+)`", names)
    }
    assert told == {source.name: set(source.parameters) - {"partition"} for source in ENDPOINTS}
    for source in ENDPOINTS:
        apart = source.name in ("lifecycles", "pictures", "events")
        assert ("partition" in source.parameters) is not apart
    bounds = {
        source.name: (kind.default, kind.most)
        for source in ENDPOINTS
        if isinstance(kind := source.parameters.get("limit"), Number)
    }
    assert (bounds["applications"], bounds["events"]) == ((50, 200), (200, 500))
    pictures = re.findall(r"!\[[^\]]*\]\((.*?)\)", PAGES_TEXT)
    assert len(pictures) == 3
    for name in pictures:
        assert 0 < (PAGE.parent / name).stat().st_size < 150_000
