"""The pages in a headless Chromium; QUADRIGA_SCREENSHOTS may name a folder for pictures."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest
from on_a_port import serving

from quadriga.core.driver.service import SchedulerService
from quadriga.core.views import Views
from quadriga.fsm import LIFECYCLES
from quadriga.si import NodeInfo
from tests.si.certificates import access_by
from tests.web.pages_scene import NASTY, NASTY_NODE, NASTY_USER, Scene, wide_config

playwright = pytest.importorskip("playwright.sync_api")

#: it talks to nobody but the server of the test
FLAGS = """
--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
--disable-component-update --disable-sync
""".split()

#: nothing here takes this long (ms); it only ends a test that would hang
PATIENCE = 180_000

WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 400, "height": 800}

#: page: what must be there to be read
PAGES = {
    "": "82.2 of 114 cores",
    "queue?path=root.research.notebooks": "4 cores, 16 GiB memory",
    "applications": "train-bert",
    "application?id=train-resnet": "1 real, 3 placed of 4",
    "application?id=train-sun": "the whole gang needs 28 cores",
    "application?id=monster": "No node is large enough for",
    "application?id=lost": "root.production is a parent",
    f"application?id={quote(NASTY)}": NASTY,
    "nodes": "train-bert",
    "node?id=node-13": "not ready",
    f"node?id={quote(NASTY_NODE)}": NASTY_NODE,
    "lifecycles": "Resource manager",
    "people": NASTY_USER,
    "people?kind=groups": "7.5 of 12 cores",
    "events": "node reservation",
    "configuration": "queue: root.@recovery@",
}


def chromium() -> str:
    """Where it is. Without one the test is skipped, but not where somebody counts on it."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    missing = "no Chromium (Debian: chromium)"
    if os.environ.get("CI") or os.environ.get("QUADRIGA_REQUIRE_BROWSER") == "1":
        pytest.fail(missing)
    pytest.skip(missing)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One for all; not for the session, for it has the loop of this thread while it lives."""
    path = chromium()
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def still() -> Iterator[str]:
    """The pages of the busy scene, for those who only look."""
    with Scene() as scene, serving(scene) as address:
        yield f"{address}/ui/"


@pytest.fixture
def scene() -> Iterator[Scene]:
    with Scene() as scene:
        yield scene


@pytest.fixture
def address(scene: Scene) -> Iterator[str]:
    """Where the pages of that scene are."""
    with serving(scene) as address:
        yield f"{address}/ui/"


@pytest.fixture
def visit(browser: Any) -> Iterator[Visit]:
    with Visit(browser) as visit:
        yield visit


class Visit:
    """A page that nothing goes wrong on but what is ``expected``. The test has its clock."""

    def __init__(self, browser: Any) -> None:
        self.context = browser.new_context(color_scheme="light", viewport=WIDE)
        self.context.set_default_timeout(PATIENCE)
        self.page = self.context.new_page()
        self.page.clock.install()
        self.wrong: list[str] = []
        self.expected: Callable[[str], bool] = lambda text: False
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        self.page.on("requestfailed", self._failed)
        self.page.on("response", self._answered)

    def _said(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.wrong.append(f"{message.type}: {message.text}")

    def _failed(self, request: Any) -> None:
        if request.failure != "net::ERR_ABORTED":  # whoever leaves a page waits for nothing there
            self.wrong.append(f"failed: {request.url} {request.failure}")

    def _answered(self, response: Any) -> None:
        if response.status >= 400:
            self.wrong.append(f"{response.status}: {response.url}")

    def __enter__(self) -> Visit:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.context.close()
        if error is None:
            # a test's own scene has gone, and a page asks on until it is closed
            wrong = [text for text in self.wrong if "ERR_CONNECTION_REFUSED" not in text]
            assert [text for text in wrong if not self.expected(text)] == []

    def go(self, address: str) -> Any:
        self.page.goto(address)
        self.page.wait_for_selector("#content[aria-busy=false]")
        return self.page

    def until(self, selector: str) -> None:
        """Wait until there is such an element to be seen."""
        self.page.wait_for_selector(selector)

    def ask_again(self) -> None:
        """The page asks every two seconds."""
        self.page.clock.run_for(2100)

    def asks(self) -> list[str]:
        """What it asks for from now on."""
        asked: list[str] = []
        self.page.wait_for_load_state("networkidle")
        self.page.on("request", lambda request: asked.append(request.url))
        return asked


def shot(page: Any, name: str) -> None:
    if folder := os.environ.get("QUADRIGA_SCREENSHOTS"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=str(Path(folder) / f"{name}.png"))


# -- every page ------------------------------------------------------------------------------------


WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
UNNAMED = """[...document.querySelectorAll('button, input, select, a')].filter((each) =>
    !each.textContent.trim() && !each.labels?.length && !each.ariaLabel).length"""


def test_every_page_is_whole_in_light_and_dark_wide_and_narrow(visit: Visit, still: str) -> None:
    """And names are texts, whatever they look like."""
    for address, text in PAGES.items():
        page = visit.go(still + address)
        assert text in " ".join(page.inner_text("main").split()), address
        assert page.title().endswith("Quadriga")
        assert page.locator("h1").count() == 1
        assert page.evaluate(UNNAMED) == 0, address
        assert page.locator("main img, main script, main b[onmouseover]").count() == 0
        for width, size, scheme in (("wide", WIDE, "light"), ("narrow", NARROW, "dark")):
            page.set_viewport_size(size)
            page.emulate_media(color_scheme=scheme)
            assert page.evaluate(WIDER) <= 0, address
            shot(page, f"{address.partition('?')[0] or 'cluster'} {scheme} {width}")
    page = visit.go(f"{still}application?id={quote(NASTY)}")
    assert page.inner_text("h1").startswith(NASTY)
    page.get_by_role("link", name="root.research.notebooks").first.click()
    page.wait_for_selector("h1:has-text('root.research.notebooks')")


# -- what they tell --------------------------------------------------------------------------------


def test_one_application_shows_its_way_through_its_life(still: str, visit: Visit) -> None:
    page = visit.go(f"{still}application?id=train-resnet")
    assert page.locator(".state.here").get_attribute("data-state") == "Running"
    been = page.locator(".state.been").evaluate_all("all => all.map((one) => one.dataset.state)")
    assert sorted(been) == ["Accepted", "New"]
    edges = page.locator(".edge.been").evaluate_all("all => all.map((one) => one.dataset.edge)")
    assert sorted(edges) == ["Accepted Running", "New Accepted"]
    assert page.locator("svg [data-state]").count() == 11
    assert "min" in page.locator(".state.here .note").text_content()
    label = page.locator(".picture svg").get_attribute("aria-label")
    assert label == "States of train-resnet: New, then Accepted, then Running."
    shot(page, "application life")


#: what of a picture's words gets into the way of something, in the coordinates of the picture
CROWDED = """
svg => {
  for (const count of svg.querySelectorAll(".count")) count.textContent = "123,456";
  const boxed = (one) => ({ words: one.textContent, ...(({ x, y, width, height }) =>
    ({ x, y, right: x + width, bottom: y + height }))(one.getBBox()) });
  const meet = (a, b) => a.x < b.right && b.x < a.right && a.y < b.bottom && b.y < a.bottom;
  const labels = [...svg.querySelectorAll(".label")].map(boxed);
  const states = [...svg.querySelectorAll(".state rect:not(.inner)")].map(boxed);
  const found = [];
  labels.forEach((one, at) => {
    for (const other of labels.slice(at + 1)) if (meet(one, other)) found.push([one.words, other.words]);
    for (const state of states) if (meet(one, state)) found.push([one.words, "a state"]);
  });
  for (const state of svg.querySelectorAll(".state")) {
    const frame = boxed(state.querySelector("rect"));
    for (const text of [...state.querySelectorAll("text")].map(boxed))
      if (text.x < frame.x || text.right > frame.right) found.push([text.words, "is too wide"]);
  }
  return found;
}
"""


def test_words_of_the_pictures_fit_where_they_stand(still: str, visit: Visit) -> None:
    """What has not changed is not sent again."""
    page = visit.go(f"{still}lifecycles")
    pictures = page.locator(".picture svg")
    assert pictures.count() == page.locator("h2").count() == len(LIFECYCLES) == 7
    for picture in pictures.all():
        assert picture.evaluate(CROWDED) == []
    with page.expect_response("**/ui/data/pictures") as found:
        visit.ask_again()
    tag = found.value.headers["etag"]
    assert found.value.request.all_headers()["if-none-match"] == tag


def test_why_it_waits_names_check_numbers_and_smallest_change(still: str, visit: Visit) -> None:
    """Asks can be explained one by one."""
    page = visit.go(f"{still}application?id=notebook-0")
    failing = page.locator(".checks .fail")
    failing.nth(1).wait_for()
    assert failing.count() == 2
    text = " ".join(failing.first.inner_text().split())
    assert "asks for 14 GiB memory, 8 of 16 GiB are left" in text
    limit = "the limit of user ada in root.research.notebooks (limit *)"
    assert f"Smallest change: raise {limit}" in text and "3 min" not in text
    shot(page, "application why")

    def build(script: Any) -> None:
        script.node("n1", vcore=1000)
        script.app("two", "root.leaving")
        script.ask("two", "small", vcore=1500)
        script.ask("two", "large", vcore=9000)

    with Scene(stage=lambda scene: scene.do(build)) as scene, serving(scene) as address:
        page = visit.go(f"{address}/ui/application?id=two")
        assert "ask small" in page.inner_text(".why .head")
        page.get_by_role("row", name="large").get_by_role("button", name="explain").click()
        page.wait_for_selector(".why .head:has-text('ask large')")
        assert "ask=large" in page.url


# -- live ------------------------------------------------------------------------------------------


def test_what_happens_is_seen_without_a_reload_and_nothing_jumps(
    scene: Scene, address: str, visit: Visit
) -> None:
    visit.page.set_viewport_size({"width": 1000, "height": 500})
    page = visit.go(f"{address}applications")
    page.evaluate("window.scrollTo(0, 200); window.stays = true")
    link = page.get_by_role("link", name="notebook-4")
    link.focus()
    before = page.evaluate("window.scrollY")
    scene.do(lambda script: script.remove_app("notebook-3"))
    visit.ask_again()
    visit.until("tr:has-text('notebook-3') :text('Completed')")
    assert page.evaluate("window.stays && window.scrollY") == before
    assert page.evaluate("document.activeElement.textContent") == "notebook-4"
    scene.do(lambda script: (script.app("newcomer", "root.production.web"), None))
    visit.ask_again()
    visit.until("main :text('newcomer')")
    assert page.evaluate("document.activeElement.textContent") == "notebook-4"


def test_a_gang_is_seen_to_get_its_members(scene: Scene, address: str, visit: Visit) -> None:
    page = visit.go(f"{address}application?id=train-resnet")
    assert "1 real, 3 placed of 4" in page.inner_text(".groups")
    scene.do(lambda script: script.confirm())
    visit.ask_again()
    visit.until(".groups:has-text('2 real, 2 placed of 4')")
    assert page.get_by_text("It asks for nothing.").is_visible()
    scene.do(lambda script: script.remove_app("train-resnet"))
    visit.ask_again()
    visit.until(".state.here:not([data-state=Running])")


TWO_PARTITIONS = """\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: '*'
        queues:
          - {name: low, resources: {guaranteed: {vcore: 2000m}}}
          - name: high
            properties: {preemption.delay: 1s}
            resources: {guaranteed: {vcore: 4000m}}
  - name: other
    queues: [{name: root, submitacl: '*', queues: [{name: far}]}]
"""


def test_who_has_to_go_is_seen_and_for_whom(visit: Visit) -> None:
    """One of several partitions is chosen and stays chosen."""

    def fill(script: Any) -> None:
        """A queue that holds all of a node, and one below its guarantee."""
        script.node("n1", vcore=4000)
        for app in ("low", "high"):
            script.app(app, f"root.{app}")
        script.ask("low", *(f"pod-{number}" for number in range(4)), vcore=1000)
        script.schedule()
        script.ask("high", "urgent", preempt=(True, True), vcore=1000)

    stage = Scene(TWO_PARTITIONS, lambda scene: scene.do(fill))
    with stage as scene, serving(scene) as root:
        address = f"{root}/ui/"
        page = visit.go(f"{address}application?id=low")
        assert page.get_by_text("preemption", exact=True).count() == 0
        scene.do(lambda script: script.advance(2))
        visit.ask_again()
        visit.until("tr:has-text('pod-3-0') :text('Releasing')")
        assert "preemption" in page.inner_text("tr:has-text('pod-3-0')")
        page.goto(f"{address}queue?path=root.low")
        visit.until("dt:has-text('Being preempted') + dd:has-text('1 core')")
        page.goto(f"{address}application?id=high")
        visit.until(".checks li:has-text('preemption')")
        shot(page, "preempting")
        page.goto(f"{address}application?id=low")
        visit.until("h1:has-text('1 being preempted')")
        scene.do(lambda script: script.node("n1", NodeInfo.DECOMISSION))
        visit.ask_again()
        visit.until("h1:has-text('1 preempted')")
        visit.until("tr:has-text('pod-3-0'):has-text('Completed'):has-text('to run ask: urgent')")
        page.goto(f"{address}applications?state=preempted")
        visit.until("tr:has-text('low'):has-text('1 preempted')")
        shot(page, "preempted")
        visit.go(address)
        assert page.get_by_role("link", name="high").is_visible()
        page.get_by_label("Partition").select_option("[rm]other")
        page.get_by_role("link", name="far").wait_for()
        page.get_by_role("link", name="Applications").click()
        page.wait_for_selector("text=No application fits.")
        assert page.get_by_label("Partition").input_value() == "[rm]other"


def test_pause_stops_asking_and_goes_on(scene: Scene, address: str, visit: Visit) -> None:
    """A scheduler that is away is said to be, and comes back."""
    visit.expected = lambda text: "/ui/data/" in text or "ERR_FAILED" in text
    page = visit.go(address)
    with page.expect_response("**/ui/data/overview*"):
        visit.ask_again()
    page.wait_for_load_state("networkidle")
    page.get_by_role("button", name="Pause").click()
    assert page.locator("#status").inner_text() == "paused"
    asked = visit.asks()
    scene.do(lambda script: script.node("node-99", vcore=1000))
    page.clock.run_for(60_000)
    assert asked == []
    page.get_by_role("button", name="Go on").click()
    visit.until(".tile a:text-is('16')")
    assert page.locator("#status").inner_text() == "live"

    page.route("**/ui/data/**", lambda route: route.abort())
    visit.ask_again()
    banner = page.locator("#banner")
    banner.wait_for(state="visible")
    assert "The scheduler is away" in banner.inner_text()
    assert "82.2 of 115 cores" in page.inner_text("main")  # the last that it said
    shot(page, "away")
    page.unroute("**/ui/data/**")
    visit.ask_again()
    banner.wait_for(state="hidden")


def test_what_is_not_there_is_said_and_what_may_not_be_is_refused(still: str, visit: Visit) -> None:
    """And scripts in a page are refused by the browser."""
    policy = "404", "Content Security Policy", "TrustedHTML"
    visit.expected = lambda text: any(each in text for each in policy)
    page = visit.go(still)
    refused = page.evaluate(
        """() => { try { document.body.innerHTML = '<img src=x onerror=alert(1)>'; }
                   catch (error) { return error.name; } return 'taken'; }"""
    )
    assert refused == "TypeError"
    page.goto(f"{still}nothing/at/all")
    assert page.inner_text("h1") == "There is no such page"
    assert page.locator("nav a").count() == 7
    shot(page, "missing")
    page = visit.go(f"{still}application?id=nobody")
    assert "Application not found." in page.inner_text("main")
    page.get_by_role("link", name="Back").click()
    page.wait_for_selector("text=train-bert")


def test_a_page_of_something_forgotten_says_so_and_stops_asking(
    scene: Scene, address: str, visit: Visit
) -> None:
    visit.expected = lambda text: "404" in text
    page = visit.go(f"{address}application?id=nightly-1")
    page.route(
        "**/ui/data/application?*",
        lambda route: route.fulfill(status=404, json={"error": "Application not found"}),
    )
    for _ in range(3):
        with page.expect_response("**/ui/data/application?*"):
            visit.ask_again()
    page.get_by_role("button", name="Ask again").wait_for()
    text = page.inner_text("main")
    assert "It was here until now: it has ended, and the scheduler has forgotten it." in text
    assert page.locator("#status").inner_text() == "stopped"
    assert page.get_by_role("button", name="Pause").is_disabled()
    asked = visit.asks()
    page.clock.run_for(60_000)
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    page.clock.run_for(60_000)
    assert asked == []
    page.unroute("**/ui/data/application?*")
    page.get_by_role("button", name="Ask again").click()
    visit.until(".state.here")
    assert page.locator("#status").inner_text() == "live"


def test_a_page_that_waits_for_the_first_resource_manager_goes_on_asking(visit: Visit) -> None:
    with SchedulerService() as service:
        nobody = SimpleNamespace(service=service, views=Views(service.scheduler))
        with serving(nobody) as address:
            visit.expected = lambda text: "404" in text
            page = visit.go(f"{address}/ui/applications")
            assert "No resource manager has registered yet" in page.inner_text("main")
            for _ in range(4):
                with page.expect_response("**/ui/data/overview*"):
                    visit.ask_again()
            assert page.locator("#status").inner_text() == "live"


# -- by hand ---------------------------------------------------------------------------------------


def test_everything_can_be_reached_with_the_keyboard(still: str, visit: Visit) -> None:
    page = visit.go(still)

    def focused(what: str) -> Any:
        return page.evaluate(f"document.activeElement.{what}")

    page.keyboard.press("Tab")
    assert focused("textContent") == "Skip to content"
    page.keyboard.press("Enter")
    assert focused("id") == "main"
    page.keyboard.press("Tab")
    assert focused("textContent") == "15"  # the nodes
    fold = page.get_by_role("button", name="Close root.research")
    fold.focus()
    page.keyboard.press("Enter")
    assert page.get_by_role("link", name="gangs").count() == 0
    assert focused("ariaExpanded") == "false"
    page.keyboard.press("Enter")
    assert page.get_by_role("link", name="gangs").is_visible()
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(outline) == "solid"
    page.get_by_label("Find a queue").focus()
    page.keyboard.type("gangs")
    assert page.locator("tbody tr").count() == 3  # with those above it
    page.get_by_role("link", name="gangs").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("h1:has-text('root.research.gangs')")
    page = visit.go(still)  # the cards lead to what they count
    assert "Waiting" not in page.inner_text(".tiles")
    page.get_by_role("link", name="8 pending").click()
    page.wait_for_selector("text=8 applications")
    assert page.get_by_label("State").input_value() == "pending"
    assert "idle: has nothing left to do" in page.inner_text("main")


def test_columns_sort_by_keyboard_and_say_so(still: str, visit: Visit) -> None:
    page = visit.go(f"{still}applications")

    assert page.get_by_role("columnheader", name="Application").get_attribute("aria-sort") == "none"
    page.get_by_role("button", name="Application").focus()
    page.keyboard.press("Enter")
    visit.until("th[aria-sort=ascending]:has-text('Application')")
    assert "sort=id" in page.url
    assert page.evaluate("document.activeElement.textContent").startswith("Application")
    visit.until(f"tbody tr:first-child:has-text('{NASTY[:8]}')")
    page.keyboard.press("Enter")
    visit.until("th[aria-sort=descending]:has-text('Application')")
    visit.until("tbody tr:first-child:has-text('web-shop')")
    page.get_by_role("button", name="Pending").click()  # numbers: the largest first
    visit.until("th[aria-sort=descending]:has-text('Pending')")
    visit.until("tbody tr:first-child:has-text('train-sun')")
    assert page.locator("th[aria-sort=descending]").count() == 1
    page.goto(f"{still}nodes")
    page.get_by_role("button", name="memory").last.click()
    visit.until("th[aria-sort=descending]:has-text('memory')")
    visit.until(".choices [aria-pressed=true]:has-text('memory')")


def test_filters_are_in_the_address_and_pages_turn(visit: Visit) -> None:
    def build(script: Any) -> None:
        for number in range(120):
            script.app(f"job-{number:03}", "root.team-01.project-02", user=f"u{number % 2}")

    stage = Scene(wide_config(20, 25), lambda scene: scene.do(build))
    with stage as scene, serving(scene) as address:
        page = visit.go(f"{address}/ui/applications")
        assert "1 to 50 of 120" in page.inner_text(".pager")
        page.get_by_role("button", name="Next").click()
        page.wait_for_selector(".pager:has-text('51 to 100 of 120')")
        page.get_by_label("User").fill("u1")
        page.wait_for_selector(".pager:has-text('1 to 50 of 60')")
        assert "user=u1" in page.url and "offset" not in page.url
        page.get_by_label("State").select_option("Running")
        page.wait_for_selector("text=No application fits.")
        page.reload()
        page.wait_for_selector("text=No application fits.")
        assert page.get_by_label("User").input_value() == "u1"
        page = visit.go(f"{address}/ui/")
        assert page.locator("tbody tr").count() == 21  # the lower ones are closed at first
        page.get_by_role("button", name="Open root.team-07").click()
        assert page.locator("tbody tr").count() == 46
        page.get_by_label("Find a queue").fill("team-19.project-24")
        assert page.locator("tbody tr").count() == 3


def test_where_reads_need_tokens_it_asks_for(scene: Scene, visit: Visit, tmp_path: Path) -> None:
    access = access_by(tmp_path, "viewer read plain:a-long-enough-token\n")
    options: Any = {"access": access, "require_token_for_reads": True}
    with serving(scene, **options) as address:
        visit.expected = lambda text: "401" in text
        page = visit.go(f"{address}/ui/")
        assert "with a token only" in page.inner_text("#banner")
        assert "cores" not in page.inner_text("main")
        assert page.locator("#wrong").count() == 0
        page.get_by_label("with a token only").fill("not-the-right-token")
        page.get_by_role("button", name="Show").click()
        assert page.locator("#wrong").inner_text() == "This token is wrong."
        assert page.evaluate("sessionStorage.length") == 0
        shot(page, "wrong token")
        page.get_by_label("with a token only").fill("a-long-enough-token")
        page.get_by_role("button", name="Show").click()
        page.wait_for_selector("text=82.2 of 114 cores")
        assert visit.context.cookies() == []
        assert "a-long-enough" not in page.url
