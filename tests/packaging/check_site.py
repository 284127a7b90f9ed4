"""The site that tox -e site builds: no link in it leads nowhere, and it loads nothing from other hosts."""

import os
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest


class Page(HTMLParser):
    """The links and the anchors of a page, and what it loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = set()
        self.loaded: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.anchors.add(found.get("id", ""))
        if tag == "a" and "href" in found:
            self.links.add(found["href"])
        for name in ("src", "href"):
            if tag in ("script", "img", "link") and name in found:
                self.loaded.add(found[name])


@pytest.fixture(scope="module")
def pages() -> dict[Path, Page]:
    site = Path(os.environ["QUADRIGA_SITE"])
    return {path.resolve(): Page(path) for path in site.rglob("*.html")}


def is_elsewhere(link: str) -> bool:
    return "://" in link or link.startswith(("mailto:", "data:", "//"))


def test_every_link_and_anchor_leads_somewhere(pages: dict[Path, Page]) -> None:
    assert len(pages) > 80
    broken = []
    for path, page in pages.items():
        for link in page.links | page.loaded:
            name, anchor = urldefrag(link)
            if is_elsewhere(link):
                continue
            target = (path.parent / unquote(name.partition("?")[0])).resolve() if name else path
            known = pages.get(target)
            if not target.exists():
                broken.append(f"{path.name}: {link}")
            elif anchor and known and unquote(anchor) not in known.anchors:
                broken.append(f"{path.name}: {link} (no such anchor)")
    assert broken == []


def test_nothing_is_loaded_from_other_hosts(pages: dict[Path, Page]) -> None:
    loaded = {link for page in pages.values() for link in page.loaded if is_elsewhere(link)}
    assert {link for link in loaded if not link.startswith("data:")} == set()


def test_the_reference_has_the_public_names(pages: dict[Path, Page]) -> None:
    import quadriga.core
    import quadriga.fsm
    import quadriga.sim

    reference = [page for path, page in pages.items() if path.parent.match("docs/site/api")]
    shown = {anchor.rpartition(".")[2] for page in reference for anchor in page.anchors}
    for package in (quadriga.fsm, quadriga.core, quadriga.sim):
        named = [each for each in package.__all__ if callable(getattr(package, each))]
        assert [each for each in named if each not in shown] == [], package.__name__
