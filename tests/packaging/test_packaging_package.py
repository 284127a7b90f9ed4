"""The package `quadriga` itself, and the two distributions that a release consists of."""

import os
import shutil
import sys
from configparser import ConfigParser
from importlib.metadata import version
from pathlib import Path

import pytest

import quadriga
from tests.packaging.conftest import modules_below, run, text_of


def declared(path: Path) -> ConfigParser:
    found = ConfigParser()
    found.read(path, encoding="utf-8")
    return found


def test_it_has_a_docstring_and_a_version() -> None:
    assert (quadriga.__doc__ or "").startswith("Quadriga: a cluster scheduler core")
    assert quadriga.__version__ == version("quadriga")
    with pytest.raises(AttributeError, match=r"^module 'quadriga' has no attribute 'nothing'$"):
        _ = quadriga.nothing  # type: ignore[attr-defined]


def test_it_loads_no_other_part_and_no_metadata(tmp_path: Path) -> None:
    program = (
        "import sys; before = {*sys.modules}; import quadriga\n"
        "late = {'importlib.metadata', 'email'} - before\n"
        "print(sorted(n for n in sys.modules if n.startswith('quadriga.') or n in late))"
    )
    assert run(sys.executable, "-W", "error", "-c", program, cwd=tmp_path).strip() == "[]"


@pytest.mark.parametrize("order", [("engine", "rest"), ("rest", "engine")])
def test_parts_in_two_folders(repository: Path, tmp_path: Path, order: tuple[str, str]) -> None:
    # As in a virtual environment that also sees a folder in which the engine is installed already.
    itself = tmp_path / "engine" / "quadriga"
    shutil.copytree(repository / "packaging" / "quadriga", itself)
    engine = text_of(repository / "fsm" / "__init__.py").splitlines()
    both = "\n".join(line for line in engine if "extend_path" in line)
    parts = ("engine", "fsm", both), ("rest", "core", ""), ("rest", "fsm/lifecycles", "")
    for folder, part, text in parts:
        path = tmp_path / folder / "quadriga" / part
        path.mkdir(parents=True)
        (path / "__init__.py").write_text(text, encoding="utf-8")
    places = os.pathsep.join(str(tmp_path / each) for each in order)
    program = "import quadriga.fsm.lifecycles, quadriga.core; print(quadriga.__file__)"
    # -S: without what is installed
    said = run(sys.executable, "-S", "-c", program, cwd=tmp_path, PYTHONPATH=places)
    assert said.strip() == str(itself / "__init__.py")


def test_both_distributions_declare_the_same(repository: Path) -> None:
    whole = declared(repository / "setup.cfg")
    engine = declared(repository / "packaging" / "fsm" / "setup.cfg")
    for section, name in (
        ("metadata", "version"),
        ("metadata", "license"),
        ("metadata", "license_files"),
        ("options", "python_requires"),
        ("options.entry_points", "pytest11"),
    ):
        assert engine[section][name] == whole[section][name], name
    needs = engine["options"]["install_requires"].split()
    assert len(needs) == 1
    assert needs[0] in whole["options"]["install_requires"].split()
    modules = [path for name in ("base", "fsm", "diagrams") for path in modules_below(name)]
    folders = {path.parent for path in modules} - {repository / "fsm" / "lifecycles"}
    found = {".".join(("quadriga", *each.relative_to(repository).parts)) for each in folders}
    assert {*engine["options"]["packages"].split()} == {"quadriga", *found}
