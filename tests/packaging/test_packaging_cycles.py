"""No module imports itself by way of others, and no folder does; type imports and late ones included."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

#: packages without circles, each with the folders in it that may be circular inside: such a folder
#: counts as one module
ACYCLIC: Mapping[str, tuple[str, ...]] = {
    "fsm": (),
    "si": (),
    "core": ("quadriga.core.model",),  # entities refer to one another
    "diagrams": (),
    "sim": (),
    "web": (),
    "k8s": (),
    "cli": (),
}


def imports_of(repository: Path, package: str, rooms: Iterable[str] = ()) -> dict[str, set[str]]:
    """For each module of a package the modules of the same package that it imports."""
    paths = {_name(path, repository): path for path in (repository / package).rglob("*.py")}
    graph: dict[str, set[str]] = {}
    for name, path in paths.items():
        here = graph.setdefault(_room(name, rooms), set())
        for found in _imported(ast.parse(path.read_text(encoding="utf-8")), paths):
            here.add(_room(found, rooms))
    return {name: found - {name} for name, found in graph.items()}


def between_units(graph: Mapping[str, Iterable[str]], folder: str) -> dict[str, set[str]]:
    """The same between what stands directly in a folder: its modules, and its folders as wholes."""
    found: dict[str, set[str]] = {}
    for name, imported in graph.items():
        if name.startswith(folder):
            here = found.setdefault(_unit(name, folder), set())
            here.update(_unit(each, folder) for each in imported if each.startswith(folder))
            here.discard(_unit(name, folder))
    return found


def folders_of(graph: Iterable[str]) -> list[str]:
    """Every folder that holds modules, with a full stop at the end of its name."""
    return sorted({name.rpartition(".")[0] + "." for name in graph} - {"quadriga."})


def circle_in(graph: Mapping[str, Iterable[str]]) -> str:
    """One circle as ``a -> b -> a``, or nothing."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return " -> ".join(reversed(error.args[1]))
    return ""


def _name(path: Path, repository: Path) -> str:
    parts = path.relative_to(repository).with_suffix("").parts
    return ".".join(("quadriga", *(part for part in parts if part != "__init__")))


def _unit(name: str, folder: str) -> str:
    return folder + name.removeprefix(folder).partition(".")[0]


def _room(name: str, rooms: Iterable[str]) -> str:
    for room in rooms:
        if name == room or name.startswith(room + "."):
            return room
    return name


def _imported(tree: ast.AST, known: Mapping[str, Path]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:  # a module of the package, or a name in its __init__
                module = f"{node.module}.{alias.name}"
                if module in known:
                    yield module
                elif node.module in known:
                    yield node.module


@pytest.mark.parametrize("package", ACYCLIC)
def test_no_module_imports_itself_by_way_of_others(repository: Path, package: str) -> None:
    graph = imports_of(repository, package, ACYCLIC[package])
    assert len(graph) > 1
    assert circle_in(graph) == ""


@pytest.mark.parametrize("package", ACYCLIC)
def test_no_folder_imports_itself_by_way_of_others(repository: Path, package: str) -> None:
    graph = imports_of(repository, package, ACYCLIC[package])
    circles = {folder: circle_in(between_units(graph, folder)) for folder in folders_of(graph)}
    assert f"quadriga.{package}." in circles
    assert {folder: circle for folder, circle in circles.items() if circle} == {}


def test_a_circle_of_folders_is_found(tmp_path: Path) -> None:
    # No file of these imports itself by way of others; their folders do.
    for folder in ("bank", "reeds"):
        (tmp_path / "pond" / folder).mkdir(parents=True)
        (tmp_path / "pond" / folder / "leaf.py").write_text("")
    (tmp_path / "pond" / "bank" / "frog.py").write_text("import quadriga.pond.reeds.leaf\n")
    (tmp_path / "pond" / "reeds" / "fly.py").write_text("import quadriga.pond.bank.leaf\n")
    graph = imports_of(tmp_path, "pond")
    assert circle_in(graph) == ""
    found = circle_in(between_units(graph, "quadriga.pond."))
    assert set(found.split(" -> ")) == {"quadriga.pond.bank", "quadriga.pond.reeds"}
    assert circle_in(between_units(graph, "quadriga.pond.reeds.")) == ""


def test_a_circle_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "pond"
    (folder / "reeds").mkdir(parents=True)
    (folder / "__init__.py").write_text("from quadriga.pond.frog import Frog\n")
    (folder / "frog.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from quadriga.pond import fly\n"
    )
    (folder / "fly.py").write_text("def late():\n    from quadriga.pond.reeds import stem\n")
    (folder / "reeds" / "__init__.py").write_text("")
    (folder / "reeds" / "stem.py").write_text("import quadriga.pond.reeds.leaf\n")
    (folder / "reeds" / "leaf.py").write_text("import quadriga.pond.reeds.stem\n")
    inside = circle_in(imports_of(tmp_path, "pond"))
    assert set(inside.split(" -> ")) == {f"quadriga.pond.reeds.{name}" for name in ("stem", "leaf")}
    reeds = ("quadriga.pond.reeds",)
    assert circle_in(imports_of(tmp_path, "pond", reeds)) == ""
    (folder / "reeds" / "leaf.py").write_text("from quadriga.pond import Frog\n")
    assert circle_in(imports_of(tmp_path, "pond", reeds)).count(" -> ") == 4
