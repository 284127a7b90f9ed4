"""``quadriga draw`` of any importable lifecycle, with the coverage of tests and the path of an entity."""

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quadriga.core.intake.dispatcher import NODE_ROUTES, ROUTES
from quadriga.diagrams.command import main
from quadriga.si import Recorder
from quadriga.sim.scripted.recording import Line, write_journal

SHOP = """
from quadriga.fsm import Lifecycle, row, unbounded

PRICE = 3

class Desk:
    ORDER = Lifecycle(
        "order", initial="New", final=("Paid", "Gone"), lasts={"New": unbounded("pay")},
        rows=(row("pay", "New", "Paid"), row("drop", "New", "Gone")),
    )

ORDER = Desk.ORDER
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory with modules of an embedder, as the current one."""
    (tmp_path / "shop.py").write_text(SHOP, encoding="utf-8")
    (tmp_path / "broken.py").write_text("1 / 0", encoding="utf-8")
    (tmp_path / "needy.py").write_text("import not_installed", encoding="utf-8")
    (tmp_path / "stock").mkdir()
    (tmp_path / "stock" / "__init__.py").touch()
    (tmp_path / "stock" / "shelves.py").write_text(SHOP, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    for name in ("shop", "broken", "needy", "stock", "stock.shelves"):
        sys.modules.pop(name, None)


def journal(path: Path, *lines: tuple[int, str, str, str, str]) -> Path:
    write_journal(path, [Line(seq, *line, "test") for seq, line in enumerate(lines)])
    return path


@pytest.mark.parametrize("name", ["shop:ORDER", "shop:Desk.ORDER", "stock.shelves:ORDER"])
def test_a_lifecycle_of_this_directory_or_a_package(quadriga: Any, shop: Path, name: str) -> None:
    done = quadriga("draw", name, "--format", "json")
    assert (done.code, done.err) == (0, "")
    assert json.loads(done.out)["name"] == "order"
    assert "pay" in quadriga("lifecycles", name).out
    assert quadriga("draw", "quadriga.fsm.lifecycles.node:NODE") == quadriga("draw", "node")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("shop:ODER", "shop has no ODER; did you mean ORDER?"),
        ("shop:Desk.X", "shop has no Desk.X: give shop:ORDER"),
        ("shop:PRICE", "shop:PRICE is a int, not a Lifecycle: give shop:ORDER"),
        ("shop:", "'shop:' names no table: give shop:ORDER"),
        ("json:X", "json has no X: give another module, because json has no Lifecycle"),
        ("shopp:ORDER", "there is no module 'shopp'; did you mean shop?"),
        ("stock.shelfs:ORDER", "no module 'stock.shelfs'; did you mean stock.shelves?"),
        ("shop.orders:ORDER", "there is no module 'shop.orders'"),
        ("stokc.shelves:ORDER", "there is no module 'stokc.shelves'"),
        ("broken:X", "the import of broken failed: ZeroDivisionError: division by zero"),
        ("needy:X", "needy needs the module not_installed, which is not there"),
        ("stock/shelves.py:ORDER", "is a file; name the module, as in stock.shelves:ORDER"),
        ("shop.ORDER", "for one of your own give package.module:TABLE"),
        (":ORDER", "'' is not the name of a module"),
        ("a..b:ORDER", "there is no module 'a..b'"),
    ],
)
def test_a_wrong_name_says_what_is_near(quadriga: Any, shop: Path, name: str, said: str) -> None:
    done = quadriga("draw", name)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("shop:ORDER",),
        ("shop:ORDER", "--format", "mermaid", "--dark", "--left-to-right"),
        ("shop:ODER",),
        ("shop:ORDER", "--coverage", "shop.py"),
        ("shop:ORDER", "--format", "md", "--dark"),
        ("shop:ORDER", "-o", "stock"),
        ("shop:ORDER", "-o", "order.puml"),
    ],
    ids=" ".join,
)
def test_the_command_of_the_engine_draws_the_same(
    quadriga: Any, shop: Path, arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    code, (out, err) = main(["draw", *arguments]), capsys.readouterr()
    done = quadriga("draw", *arguments)
    assert (code, out) == done[:2]
    assert err.removeprefix("quadriga-fsm: ") in done.err
    assert bool(err) == bool(done.err) == bool(code)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("shop:ORDER",), 0, "no rule is broken"),
        (("shop:ORDER", "--states", "0"), 1, "not all"),
        (("shop:Desk",), 2, "is a type, not a Lifecycle or System: give"),
    ],
)
def test_the_command_of_the_engine_checks(
    shop: Path, arguments: tuple[str, ...], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", *arguments]) == code
    assert said in "".join(capsys.readouterr())


def test_coverage_of_a_test_run(quadriga: Any, shop: Path) -> None:
    rows = [{"line": 0, "trigger": "pay", "source": "New", "count": 7}]
    (shop / "fsm.json").write_text(json.dumps({"order": {"rows": rows}}), encoding="utf-8")
    drawn = quadriga("draw", "shop:ORDER", "--coverage", "fsm.json", "--format", "mermaid")
    assert "New --> Paid : (7×) pay" in drawn.out and "New --> Gone : (0×) drop" in drawn.out
    other = quadriga("draw", "node", "--coverage", "fsm.json")
    assert (other.code, other.out) == (2, "")
    assert "the coverage has no rows of node, only order" in other.err


def test_the_path_of_an_entity_of_a_simulation(quadriga: Any, trace: Path, shop: Path) -> None:
    assert quadriga("simulate", "--trace", trace, "--journal", "run.jsonl", "--quiet").code == 0
    drawn = quadriga("draw", "--path", "run.jsonl#application/5", "--format", "mermaid")
    assert (drawn.code, drawn.err) == (0, "")
    assert "New --> Accepted : (1) ask" in drawn.out and " current\n" in drawn.out
    assert quadriga("draw", "application", "--path", "run.jsonl#application/5").code == 0
    wrong = quadriga("draw", "--path", "run.jsonl#application/555", "--format", "dot")
    assert (wrong.code, wrong.out) == (2, "")
    assert "nothing is called 'application/555' in this journal" in wrong.err


def test_the_last_of_several_lives_under_one_key_is_drawn(quadriga: Any, shop: Path) -> None:
    lives = (1, "order/1#a", "drop", "New", "Gone"), (5, "order/1#a", "pay", "New", "Paid")
    journal(shop / "a#1.jsonl", *lives, (12, "x/y", "a", "b", "c"))
    draw = ("draw", "shop:ORDER", "--path", "a#1.jsonl#order/1#a", "--format")
    drawn = quadriga(*draw, "mermaid")
    assert "(1) pay" in drawn.out and "(1) drop" not in drawn.out
    assert "begins again once" in drawn.err
    assert "<B>7 ns</B>" in quadriga(*draw, "dot").out  # until the end of the journal


def test_messages_of_one_application(quadriga: Any, trace: Path, shop: Path) -> None:
    done = quadriga("simulate", "--trace", trace, "--messages", "m.jsonl", "--quiet")
    assert (done.code, done.err) == (0, "")
    everything = quadriga("draw", "--messages", "m.jsonl", "--format", "text").out
    one = quadriga("draw", "--messages", "m.jsonl#5", "--format", "text").out
    assert "register sim" in everything
    assert "accepted 5" in one and "PLACEHOLDER_REPLACED" in one
    assert "accepted 6" not in one
    assert len(one.splitlines()) < len(everything.splitlines()) / 5
    assert quadriga("draw", "--messages", "m.jsonl#5", "--dark", "-o", "m.svg").code == 0
    assert (shop / "m.svg").read_text(encoding="utf-8").startswith("<svg ")


def test_a_flow_as_an_image_without_graphviz(quadriga: Any, tmp_path: Path) -> None:
    assert quadriga("draw", "--flow", "gang-start", "-o", tmp_path / "flow.svg").code == 0
    drawn = quadriga("draw", "--flow", "gang-start", "--format", "svg").out
    assert (tmp_path / "flow.svg").read_text(encoding="utf-8") == drawn
    assert quadriga("draw", "--flow", "gang-start", "-o", tmp_path / "flow.txt").code == 0
    assert (tmp_path / "flow.txt").read_text(encoding="utf-8").startswith("time ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--path", "j"), "has no key; give FILE#KEY"),
        (("--path", "none#order/1"), "none: No such file"),
        (("--path", "j#order/1"), "no lifecycle is called 'order'"),
        (("node", "--path", "j#order/1"), "step 1 of node: New --pay--> Paid is not in the table"),
        (("--path", "j#order/1", "--coverage", "c"), "not allowed with argument"),
        (("shop:ORDER", "--path", "j#order/1", "--format", "json"), "json cannot show a path"),
        (("shop:ORDER", "--path", "shop.py#order/1"), "not a line of a journal"),
        (("--all", "x", "--dark"), "--dark and --all DIR do not go together"),
        (("--flow", "gang-start", "--left-to-right"), "--left-to-right and --flow NAME"),
        (("--flow", "no"), "no flow is called 'no': there are gang-start, hard-timeout"),
        (("--flow", "clean-up", "--format", "png"), "a flow is drawn as mermaid, plantuml, svg"),
        (("ask", "--flow", "x"), "give the name of a lifecycle, --all DIR, --flow NAME or"),
        (("dispatcher", "--dark"), "--dark and dispatcher do not go together"),
        (("dispatcher", "--format", "svg"), "the table of messages is drawn as md"),
        (("--messages", "shop.py"), "shop.py:2: not a message"),
        (("--messages", "none.jsonl#5"), "none.jsonl: No such file"),
        (("--messages", "m#nobody"), "no message of m is about 'nobody'"),
        (("--messages", "m", "--flow", "gang-start"), "--messages FILE"),
        (("--messages", "m", "--left-to-right"), "--left-to-right and --messages FILE"),
        (("--messages", "m", "--format", "json"), "a flow is drawn as mermaid, plantuml, svg"),
        (("--messages", "m", "--format", "text", "--dark"), "text cannot show dark colours"),
        (("node", "--coverage", "shop.py"), "is not a coverage file"),
        (("node", "--coverage", "3"), "not a coverage"),
        (("node", "--coverage", "none.json"), "No such file"),
    ],
    ids=str,
)
def test_wrong_usage(quadriga: Any, shop: Path, arguments: tuple[str, ...], said: str) -> None:
    journal(shop / "j", (1, "order/1", "pay", "New", "Paid"))
    (shop / "3").write_text("3", encoding="utf-8")
    recorder = Recorder()
    recorder.add("a", "b", "add app-1")
    recorder.write("m")
    done = quadriga("draw", *arguments)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


PAGE = Path(__file__).parents[2] / "docs" / "messages.md"


def test_the_table_of_messages_is_the_committed_page(quadriga: Any, tmp_path: Path) -> None:
    page = quadriga("draw", "dispatcher").out
    stale = "the table has changed: run `quadriga draw dispatcher -o docs/messages.md`"
    assert PAGE.read_text(encoding="utf-8") == page, stale
    for route in ROUTES:
        assert f"| `{route.message.__name__}` |" in page
        for triggers in route.concerns.values():
            assert f"| {', '.join(f'`{each}`' for each in triggers)} |" in page
        assert all(f"`{field}`" in page for field in route.response)
    assert page.count("\n| `") >= len(ROUTES) + len(NODE_ROUTES)
    assert quadriga("draw", "dispatcher", "-o", str(tmp_path / "page.md")).code == 0
    assert (tmp_path / "page.md").read_text("utf-8") == page


def test_left_to_right_and_dark(quadriga: Any, tmp_path: Path) -> None:
    assert "rankdir=TB" in quadriga("draw", "ask").out
    drawn = quadriga("draw", "ask", "--left-to-right", "--dark").out
    assert "rankdir=LR" in drawn and 'bgcolor="#14181f"' in drawn
    assert quadriga("draw", "ask", "--format", "md", "--dark").code == 2
    if shutil.which("dot") is not None:
        assert quadriga("draw", "ask", "--dark", "-o", tmp_path / "ask.svg").code == 0
        assert "#14181f" in (tmp_path / "ask.svg").read_text(encoding="utf-8")
