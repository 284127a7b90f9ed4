"""Shared by the tests of diagrams: a lifecycle with every awkward name, and the need of ``dot``."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterable
from functools import partial
from xml.etree import ElementTree

import pytest

from quadriga.fsm import Effect, Fired, Lifecycle, ignored, row, unbounded, within
from quadriga.fsm.table import Info


class Unhashable:
    """A guard that is an object, and one that cannot be a key."""

    __hash__ = None  # type: ignore[assignment]

    def __call__(self, entity: object, info: Info) -> bool:
        return True


def _do__it(entity: object, fired: Fired) -> Iterable[Effect]:
    return ()


ODD, ENDING = 'a "b" <c> & {d}|e\\', "ünï#;: [*] --> x\n@enduml"


@pytest.fixture
def awkward() -> Lifecycle:
    """Names that are key words, markup, empty or more than one line, in one legal table."""
    return Lifecycle(
        'my: "life" <1>;\\',
        initial="end",
        final=("state", ENDING),
        lasts={
            "end": within(1_500_000_000, then="go"),
            ODD: unbounded("go"),
            "node": within(7),
            "s1": unbounded("go"),
            "": unbounded("go"),
        },
        rows=(
            row("go", "end", ODD, when=lambda entity, info: True, emit=partial(_do__it)),
            row("go", "end", "s1", when=Unhashable()),
            row("go", "end", "node"),
            row("go", ("s1", "node", ODD, ""), "state", emit=_do__it),
            row("__up__", ODD, ENDING),
            row("back", ODD, ODD, emit=_do__it),
            row("on", "node", ""),
            ignored("other", ODD, why='because: "x" | <b> `y` -- & ; // \x07 end'),
        ),
    )


@pytest.fixture(scope="session")
def needs_dot() -> None:
    """Skip without graphviz, unless ``QUADRIGA_REQUIRE_DOT=1`` makes that a failure."""
    missing = []
    if shutil.which("dot") is None:
        missing.append("the program dot")
    try:
        import graphviz  # noqa: F401
    except ImportError:
        missing.append("the package graphviz")
    if missing:
        reason = f"{' and '.join(missing)} of graphviz is missing"
        if os.environ.get("QUADRIGA_REQUIRE_DOT") == "1":
            pytest.fail(reason)
        pytest.skip(reason)


@pytest.fixture(scope="session")
def needs_fonts(needs_dot: None) -> None:
    """Skip where another font stands for Arial, unless ``QUADRIGA_REQUIRE_FONTS=1`` makes that a failure."""
    found = ""
    if shutil.which("fc-match") is not None:
        words = ["fc-match", "--format=%{family}", "Arial"]
        found = subprocess.run(words, capture_output=True, text=True, check=False).stdout
    if not found.startswith(("Liberation Sans", "Arial")):
        reason = f"Arial is drawn as {found or 'nobody knows what'} (Debian: fonts-liberation)"
        if os.environ.get("QUADRIGA_REQUIRE_FONTS") == "1":
            pytest.fail(reason)
        pytest.skip(reason)


@pytest.fixture
def words() -> Callable[[bytes | str], set[str]]:
    """What reads every title and every line of text in an SVG image."""
    namespace = "{http://www.w3.org/2000/svg}"

    def read(svg: bytes | str) -> set[str]:
        return {
            " ".join("".join(element.itertext()).split())
            for element in ElementTree.fromstring(svg).iter()
            if element.tag in (f"{namespace}title", f"{namespace}text")
        }

    return read
