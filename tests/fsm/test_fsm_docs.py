"""docs/fsm.md, its pages and the tutorial say what is so: their programs run. ``tests/typing`` checks their types."""

import json
import re
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from quadriga import fsm
from quadriga.base.times import HOUR
from tests.packaging.conftest import run

#: each page of the tutorial, and the name of the program that its blocks are
PAGES = {
    "first-lifecycle": "shop",
    "timeouts": "timeouts",
    "persistence": "persistence",
    "async": "door",
    "testing": "test_shop",
}
#: the pages of docs/fsm, each of which goes on with the program of those before it
PARTS = ("tables", "nested", "effects", "time-limits", "machines", "coverage")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(page: str, language: str) -> list[str]:
    return [code for found, code in BLOCK.findall(page) if found == language]


@pytest.fixture(scope="module")
def pages(repository: Path) -> dict[str, str]:
    if not (repository / "docs" / "tutorial").is_dir():
        pytest.skip("docs/ is part of a checkout only")
    docs = repository / "docs"
    found = {path.stem: path.read_text(encoding="utf-8") for path in docs.glob("tutorial/*.md")}
    assert sorted(PARTS) == sorted(path.stem for path in docs.glob("fsm/*.md"))
    parts = [docs / "fsm.md", *(docs / "fsm" / f"{name}.md" for name in PARTS)]
    found["fsm"] = "\n".join(path.read_text(encoding="utf-8") for path in parts)
    return found


@pytest.fixture(scope="module")
def programs(pages: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tutorial")
    for page, name in {**PAGES, "fsm": "fsm"}.items():
        code = "\n\n".join(blocks(pages[page], "python"))
        (folder / f"{name}.py").write_text(code, encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", [*(n for n in PAGES.values() if not n.startswith("test_")), "fsm"])
def test_every_program_runs(programs: Path, name: str) -> None:
    run(sys.executable, "-W", "error", f"{name}.py", cwd=programs)


def test_tests_pass_with_the_coverage_and_pictures(programs: Path, pages: dict[str, str]) -> None:
    commands = "\n".join(blocks(pages["testing"], "console")).splitlines()
    (tests,) = (command for command in commands if command.startswith("pytest"))
    words = [*tests.split(), "--fsm-coverage-report=fsm.json"]
    said = run(sys.executable, "-m", *words, cwd=programs)
    assert "3 passed" in said
    (shown,) = blocks(pages["testing"], "text")
    assert shown in said
    for command in commands:
        if command.startswith("quadriga "):
            run(sys.executable, "-m", "quadriga.cli", *command.split()[1:], cwd=programs)
    for picture in ("order.md", "tested.dot"):
        assert "deliver" in (programs / picture).read_text(encoding="utf-8")


def test_the_first_block_has_ten_lines_and_each_page_leads_on(pages: dict[str, str]) -> None:
    assert len(blocks(pages["first-lifecycle"], "python")[0].splitlines()) <= 10
    order = [*PAGES, "first-gang"]
    assert sorted(pages) == sorted([*order, "fsm"])
    for page, following in pairwise(order):
        assert re.search(rf"^Next: \[.*\]\({following}\.md\)", pages[page], re.MULTILINE), page


def test_public_names_are_explained_and_samples_of_a_known_kind(pages: dict[str, str]) -> None:
    assert [name for name in fsm.__all__ if not re.search(rf"\b{name}\b", pages["fsm"])] == []
    fences = re.findall(r"^```(\w*)$", pages["fsm"], re.MULTILINE)
    assert set(fences[::2]) <= {"python", "console", "ini", "json", ""}
    assert set(fences[1::2]) == {""}


# -- no effect is lost: the order service of the examples --------------------------------------------


Start = Callable[..., Any]


@pytest.fixture(scope="module")
def service(example: Callable[[str], ModuleType]) -> ModuleType:
    return example("order_service")


@pytest.fixture
def start(service: ModuleType, tmp_path: Path) -> Iterator[Start]:
    running: list[Any] = []

    def begin(send: Callable[..., None]) -> Any:
        running.append(service.Service(str(tmp_path / "orders.db"), send))
        return running[-1]

    yield begin
    for each in running:
        each.db.close()


class Post:
    def __init__(self, failures: int = 0) -> None:
        self.sent: list[tuple[int, str, str]] = []
        self.failures = failures

    def __call__(self, number: int, key: str, effect: Any) -> None:
        if self.failures:
            self.failures -= 1
            raise ConnectionError
        self.sent.append((number, key, type(effect).__name__))


ALL = [(1, "A-1", "Mail"), (2, "A-1", "Mail"), (3, "A-1", "Refund")]


def cancelled(service: Any) -> None:
    service.open("A-1", 0)
    service.fire("A-1", "pay", 1)
    service.fire("A-1", "return", 2, paid=5)


def test_what_could_not_be_delivered_is_delivered_later_in_order(start: Start) -> None:
    post = Post(failures=2)
    service = start(post)
    cancelled(service)
    for _ in range(2):
        with pytest.raises(ConnectionError):
            service.deliver()
    assert post.sent == []
    service.deliver()
    service.deliver()
    assert post.sent == ALL


def test_what_was_delivered_at_the_end_comes_again_with_its_number(start: Start) -> None:
    sent: list[int] = []

    def end(number: int, key: str, effect: Any) -> None:
        sent.append(number)
        raise KeyboardInterrupt

    service = start(end)
    cancelled(service)
    with pytest.raises(KeyboardInterrupt):
        service.deliver()
    post = Post()
    start(post).deliver()
    assert (sent, post.sent) == ([1], ALL)


def test_a_state_is_not_stored_without_its_effects(start: Start, monkeypatch: Any) -> None:
    service = start(Post())
    service.open("A-1", 0)

    def fail(*anything: object) -> str:
        raise OSError("no space left")

    with monkeypatch.context() as broken:
        broken.setattr(json, "dumps", fail)
        with pytest.raises(OSError, match="no space left"):
            service.fire("A-1", "pay", HOUR)
    assert service.load("A-1").state == "Open"
    assert service.timers.next_deadline() == 48 * HOUR
    service.advance(48 * HOUR)
    assert service.load("A-1").state == "Cancelled"


def test_a_time_limit_that_could_not_be_stored_is_due_again(start: Start, monkeypatch: Any) -> None:
    service = start(Post())
    service.open("A-1", 0)
    with monkeypatch.context() as broken:
        broken.setattr(json, "dumps", None)
        with pytest.raises(TypeError):
            service.advance(50 * HOUR)
    assert service.load("A-1").state == "Open"
    service.advance(50 * HOUR)
    assert service.load("A-1").state == "Cancelled"


def test_library_machines_store_effects(start: Start, example: Callable[[str], ModuleType]) -> None:
    service, order = start(post := Post()), example("order_service").ORDER
    service.open("A-1", 0)

    def trigger(name: str, **info: Any) -> None:
        """Load, fire and store. An error in between leaves the database as it was."""
        loaded = service.load("A-1")
        model: Any = SimpleNamespace(key=loaded.key, state=loaded.state)
        order.make_machine(model, deliver=service.store)
        with service.db:
            service.db.execute("BEGIN IMMEDIATE")
            model.trigger(name, **info)

    trigger("pay")
    assert service.load("A-1").state == "Paid"
    with pytest.raises(KeyError, match="paid"):
        trigger("return")
    trigger("return", paid=5)
    service.deliver()
    assert post.sent == ALL
