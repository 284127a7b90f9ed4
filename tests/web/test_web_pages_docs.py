"""docs/pages.md says what is so: its sample runs, its tables name what there is, its pictures are there."""

from __future__ import annotations

import re
from pathlib import Path

from quadriga.web.pages import PAGES
from quadriga.web.pages.endpoints import ENDPOINTS
from quadriga.web.pages.parameters import Number

DOCS = Path(__file__).resolve().parents[2] / "docs"
TEXT = (DOCS / "pages.md").read_text(encoding="utf-8")


def test_the_sample_runs() -> None:
    (sample,) = re.findall(r"^```python\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    exec(compile(sample, "docs/pages.md", "exec"), {"__name__": "sample"})


def test_every_page_and_every_endpoint_is_in_a_table_with_its_parameters_and_bounds() -> None:
    assert set(re.findall(r"^\| `/ui/(\w*)", TEXT, re.MULTILINE)) == set(PAGES)
    section = TEXT.partition("## Data")[2].partition("All but")[0]
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
    assert bounds["applications"] == (50, 200)
    assert bounds["events"] == (200, 500)
    pictures = re.findall(r"!\[[^\]]*\]\((.*?)\)", TEXT)
    assert len(pictures) == 3
    for name in pictures:
        assert 0 < (DOCS / name).stat().st_size < 150_000
