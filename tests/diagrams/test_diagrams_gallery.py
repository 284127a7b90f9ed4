"""The gallery is what the tables say today, other formats draw as before, the guide's samples run."""

import re
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from runpy import run_path

import pytest

from quadriga.cli.catalogue import gallery_lifecycles
from quadriga.cli.main import main as quadriga
from quadriga.diagrams import (
    FORMATS,
    GALLERY_FORMATS,
    IMAGES,
    DiagramError,
    render,
    write_gallery,
)
from quadriga.diagrams.gallery import gallery_page
from quadriga.fsm import LIFECYCLES, NODE
from quadriga.k8s.lifecycles import LIFECYCLES as KUBERNETES

DOCS = Path(__file__).parents[2] / "docs"
GALLERY = DOCS / "gallery"
GOLDEN = Path(__file__).parent / "golden"
STALE = "the tables have changed: run `quadriga draw --all docs/gallery`"
SHOWN = gallery_lifecycles()


def test_the_committed_texts_are_up_to_date(tmp_path: Path) -> None:
    for path in write_gallery(tmp_path, ["md"], SHOWN):
        if path.name != "README.md":  # it shows the pictures too
            assert (GALLERY / path.name).read_bytes() == path.read_bytes(), f"{path.name}: {STALE}"
    page = (GALLERY / "README.md").read_text(encoding="utf-8")
    assert page == gallery_page(SHOWN), STALE


@pytest.mark.parametrize("format", sorted({*FORMATS} - {*GALLERY_FORMATS, *IMAGES}))
@pytest.mark.parametrize(("example", "table"), [("device", "DEVICE"), ("own_lifecycle", "LOAN")])
def test_the_formats_that_the_gallery_does_not_have(example: str, table: str, format: str) -> None:
    name = f"{example}{FORMATS[format]}"
    drawn = render(run_path(str(DOCS.parent / "examples" / f"{example}.py"))[table], format)
    assert (GOLDEN / name).read_text(encoding="utf-8") == drawn, (
        f"in examples: `quadriga draw {example}:{table} -o ../tests/diagrams/golden/{name}`"
    )


@pytest.fixture(scope="module")
def drawn(needs_dot: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gallery")
    with redirect_stdout(StringIO()) as said:
        assert quadriga(["draw", "--all", str(folder)]) == 0
    assert said.getvalue().startswith("31 files in ")
    return folder


def test_committed_images_agree(drawn: Path, words: Callable[[bytes | str], set[str]]) -> None:
    # graphviz lays out differently from version to version; the words must be the same
    for path in drawn.glob("*.svg"):
        committed = words((GALLERY / path.name).read_bytes())
        assert committed == words(path.read_bytes()), f"{path.name}: {STALE}"


@pytest.mark.usefixtures("needs_fonts")
def test_the_committed_images_are_drawn_with_the_right_font(drawn: Path) -> None:
    """Words take the room that they take in the gallery: with another font all pictures are wider."""
    for path in drawn.glob("*.svg"):
        committed, wide = (
            int(re.search(r'<svg width="(\d+)pt"', each.read_text("utf-8"))[1])  # type: ignore[index]
            for each in (GALLERY / path.name, path)
        )
        assert wide == pytest.approx(committed, rel=0.05), path.name


def test_the_gallery_holds_nothing_else_and_the_page_links_what_is_there() -> None:
    names = {*LIFECYCLES, *KUBERNETES}
    expected = {f"{name}{FORMATS[f]}" for name in names for f in GALLERY_FORMATS}
    assert {path.name for path in GALLERY.iterdir()} == {*expected, "README.md"}
    page = (GALLERY / "README.md").read_text(encoding="utf-8")
    for link in re.findall(r"]\(([^)]+)\)", page):
        assert (GALLERY / link).is_file()


def test_two_lifecycles_of_one_name_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(DiagramError, match="two lifecycles are called node"):
        write_gallery(tmp_path / "new", ["dot"], [NODE, NODE])
    with pytest.raises(DiagramError, match="unknown format"):
        write_gallery(tmp_path / "new", ["dot", "gif"], [NODE])
    assert not (tmp_path / "new").exists()


@pytest.mark.usefixtures("needs_dot")
def test_the_samples_of_the_guide_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    guide = (DOCS / "diagrams.md").read_text(encoding="utf-8")
    samples = re.findall(r"^```python\n(.*?)^```", guide, re.MULTILINE | re.DOTALL)
    assert len(samples) >= 4
    names: dict[str, object] = {}
    for sample in samples:
        exec(compile(sample, "docs/diagrams.md", "exec"), names)
    shown = re.search(r"^```text\n(.*?)^```", guide, re.MULTILINE | re.DOTALL)
    assert names["flow"] == shown.group(1)
