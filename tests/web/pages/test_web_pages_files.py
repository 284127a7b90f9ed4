"""The files of the pages are in the package, need nothing from elsewhere, and say what a browser may do."""

import re
from fnmatch import fnmatch
from importlib.resources import files
from pathlib import Path

import pytest
from live_cluster import LiveCluster
from on_a_port import Client, client_of

from quadriga.web.pages import HEADERS, PAGES

STATIC = {
    each.name: each.read_text("utf-8")
    for each in files("quadriga.web.pages").joinpath("static").iterdir()
    if each.name.endswith((".html", ".css", ".js", ".svg"))
}


async def test_every_page_has_a_policy_that_lets_in_only_what_is_ours(client: Client) -> None:
    policy = HEADERS["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    for said in ("frame-ancestors 'none'", "require-trusted-types-for 'script'"):
        assert said in policy
    assert "unsafe" not in policy and "*" not in policy
    for page in PAGES:
        answer = await client.get(f"/ui/{page}")
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        for name, value in HEADERS.items():
            assert answer.headers[name] == value
        assert "set-cookie" not in answer.headers
        assert "access-control-allow-origin" not in answer.headers


async def test_every_file_is_served_with_its_type_and_known_again(client: Client) -> None:
    kinds = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
    for name in STATIC:
        if name.endswith(".html"):
            continue
        answer = await client.get(f"/ui/static/{name}")
        assert answer.headers["content-type"].startswith(kinds[name.rpartition(".")[2]])
        assert answer.headers["x-content-type-options"] == "nosniff"
        again = await client.get(
            f"/ui/static/{name}", headers={"If-None-Match": answer.headers["etag"]}
        )
        assert (again.status_code, again.content) == (304, b"")
    icon = await client.get("/favicon.ico")  # also for what is no page
    assert (icon.status_code, icon.headers["content-type"]) == (200, "image/svg+xml")
    assert icon.text == STATIC["icon.svg"]
    for path in ("static/../__init__.py", "static/%2e%2e/__init__.py", "static/", "nothing"):
        assert (await client.get(f"/ui/{path}")).status_code == 404


async def test_an_unknown_page_is_a_page_with_the_way_to_all_others(client: Client) -> None:
    browser = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    for path, base in (
        ("/ui/nothing", "../ui/"),
        ("/ui/nothing/at/all", "../../../ui/"),
        ("/ui/static", "../ui/"),
        ("/nothing", "ui/"),
        ("/a/b", "../ui/"),
    ):
        answer = await client.get(path, headers=browser)
        assert answer.status_code == 404, path
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        for name, value in HEADERS.items():
            assert answer.headers[name] == value
        assert "<h1>There is no such page</h1>" in answer.text
        assert "<script" not in answer.text  # it asks for nothing
        there, own = (
            re.findall(r'href="([^"]*)">', html.partition("<nav")[2].partition("</nav")[0])
            for html in (answer.text, STATIC["page.html"])
        )
        assert [e.removeprefix(base) for e in there] == [each.removeprefix("./") for each in own]
        assert f'href="{base}static/style.css"' in answer.text


async def test_a_program_that_asks_for_what_is_not_there_gets_json(client: Client) -> None:
    browser = {"Accept": "text/html"}
    for path in (
        "ui/data/nothing",
        "ui/static/nothing.js",
        "ws/v1/nothing",
        "debug/nothing",
        "metrics/x",
    ):
        answer = await client.get(f"/{path}", headers=browser)
        assert answer.status_code == 404
        assert answer.json()["error" if path.startswith("ui/") else "message"] == "Not Found"
    for answer in (await client.get("/nothing"), await client.post("/nothing", headers=browser)):
        assert answer.json()["message"] == "Not Found"


async def test_the_root_leads_to_the_pages_unless_a_web_ui_is_there(
    client: Client, still: LiveCluster, tmp_path: Path
) -> None:
    for path in ("/", "/ui"):
        answer = await client.get(path)
        assert (answer.status_code, answer.headers["location"]) == (307, "/ui/")
    (tmp_path / "index.html").write_text("the other one", "utf-8")
    async with client_of(still, ui=tmp_path) as other:
        assert (await other.get("/")).text == "the other one"
        assert "Quadriga" in (await other.get("/ui/")).text


FORBIDDEN = (
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|localStorage"
    r"|document\.cookie"
)


def test_nothing_is_written_as_html_and_nothing_comes_from_elsewhere() -> None:
    for name, text in STATIC.items():
        addresses = set(re.findall(r"https?://[^\s\"'<>)]+", text))
        assert addresses <= {"http://www.w3.org/2000/svg"}, name
        if name.endswith(".js"):
            assert not re.search(FORBIDDEN, text), name
            for module in re.findall(r'from "(.*?)"', text):
                assert module.startswith("./") and module[2:] in STATIC, (name, module)
    page = STATIC["page.html"]
    assert re.findall(r"<script[^>]*>(.*?)</script>", page, re.S) == [""]
    assert not re.search(r"<style|\sstyle=|\son\w+=", page)


def test_setup_cfg_puts_every_file_into_the_wheel() -> None:
    repository = Path(__file__).resolve().parents[3]
    text = (repository / "setup.cfg").read_text("utf-8")
    (patterns,) = re.findall(r"^quadriga\.web\.pages = (.*)$", text, re.M)
    folder = repository / "web" / "pages"
    wanted = [path.relative_to(folder).as_posix() for path in (folder / "static").iterdir()]
    assert wanted
    for name in wanted:
        assert any(fnmatch(name, pattern) for pattern in patterns.split(", ")), name


# -- colours ---------------------------------------------------------------------------------------

#: texts and the grounds they stand on
PAIRS = """
ink/ground ink/paper ink/faint quiet/ground quiet/paper quiet/faint accent/paper accent/ground
accent/faint paper/accent good/good-ground wait/wait-ground bad/bad-ground bad/paper ink/bad-ground
done/done-ground
""".split()


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [e / 12.92 if e <= 0.04045 else ((e + 0.055) / 1.055) ** 2.4 for e in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_have_the_contrast_of_wcag_aa(scheme: str) -> None:
    light, dark = re.findall(r":root \{(.*?)\}", STATIC["style.css"], re.S)
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", light))
    if scheme == "dark":
        colours |= dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", dark))
    for text, ground in (pair.split("/") for pair in PAIRS):
        low, high = sorted((luminance(colours[text]), luminance(colours[ground])))
        assert (high + 0.05) / (low + 0.05) >= 4.5, (scheme, text, ground)
