"""The house: who may import whom, and what a module may be."""

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.packaging.conftest import PACKAGES, REPOSITORY, imports_in, modules_below, text_of

#: the rooms of core from the ground up: each may import itself and what stands before it. Rooms in one
#: line do not import each other
CORE = """
    config
    resources
    model
    ordering
    runtime
    topology
    events
    placement preemption
    steps
    gangs
    explain
    scheduling
    intake
    checks
    scheduler
    views
    driver
"""

#: the same of k8s
K8S = """
    tuning
    objects
    conversion lifecycles
    cluster
    shim
    transport
    writers
    admission
    driver
"""

#: and of the packages
HOUSE = """
    base
    fsm si
    core diagrams
    sim web k8s
    cli
"""

#: the entities and what holds them, which refer to one another: they count as one module
ENTITIES = {
    f"quadriga.core.model.{name}"
    for name in (
        *("account", "allocation", "application", "ask", "gang", "node", "observer", "partition"),
        *("queue", "resource_manager", "waiting"),
    )
}

#: what `quadriga --help` must not load: it would make the command slow
HEAVY = (
    *("numpy", "google.protobuf", "transitions", "rich", "graphviz", "yaml", "re2"),
    *("grpc", "starlette", "uvicorn", "asyncio", "aiohttp", "httptools", "msgspec", "lightkube"),
)

LONGEST = 700  # lines; about 400 is the aim
FULLEST, FULLEST_OF_TESTS = 20, 25  # modules of a folder
EMPTY_NAMES = {"utils", "util", "helpers", "helper", "manager", "managers", "misc", "common"}


def imported(path: Path, *, at_once: bool = False) -> Iterator[tuple[str, int]]:
    """The names of all modules that a file imports, with the lines; ``at_once``: when it is imported itself."""
    for node, early in imports_in(path):
        if at_once and not early:
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        else:
            yield "." * node.level + (node.module or ""), node.lineno
            if node.level == 0 and node.module == "quadriga":
                yield from ((f"quadriga.{alias.name}", node.lineno) for alias in node.names)


def ours(name: str) -> str | None:
    first, _, rest = name.partition(".")
    return rest.partition(".")[0] or None if first == "quadriga" else None


def wrong_imports(
    paths: Iterable[Path], is_wrong: Callable[[str], bool], *, at_once: bool = False
) -> list[str]:
    return [
        f"{path.relative_to(REPOSITORY)}:{line} imports {name}"
        for path in paths
        for name, line in imported(path, at_once=at_once)
        if is_wrong(name)
    ]


def below(levels: str) -> dict[str, set[str]]:
    """What each room may import: itself, and all that stand before its line."""
    found: dict[str, set[str]] = {}
    for line in levels.strip().splitlines():
        before = set(found)
        found.update({room: {*before, room} for room in line.split()})
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_point_one_way_and_are_absolute(package: str) -> None:
    # `from core import ...` would work in a checkout and nowhere else.
    allowed = below(HOUSE)[package]
    paths = modules_below(package)
    assert wrong_imports(paths, lambda name: (ours(name) or package) not in allowed) == []
    short = lambda name: name.startswith(".") or name.partition(".")[0] in PACKAGES  # noqa: E731
    assert wrong_imports(paths, short) == []


def test_the_engine_imports_the_library_and_nothing_else() -> None:
    """It is installed alone as well (packaging/fsm), with no dependency but transitions."""
    known = {*sys.stdlib_module_names, "quadriga", "transitions"}
    for path in (*modules_below("base"), *modules_below("fsm"), *modules_below("diagrams")):
        allowed = known | ({"pytest"} if path.name == "pytest_plugin.py" else set())
        foreign = lambda name: name.partition(".")[0] not in allowed  # noqa: B023, E731
        assert wrong_imports([path], foreign, at_once=True) == []
        beyond = lambda name: ours(name) not in (None, "base", "fsm", "diagrams")  # noqa: E731
        assert wrong_imports([path], beyond) == []


@pytest.mark.parametrize(("package", "levels"), [("core", CORE), ("k8s", K8S)])
def test_rooms_import_only_what_stands_below_them(package: str, levels: str) -> None:
    home = REPOSITORY / package
    rooms = {p.stem for p in home.iterdir() if list(p.glob("*.py")) or p.suffix == ".py"}
    assert rooms - {"__init__", "__pycache__"} == below(levels).keys()
    for room, allowed in below(levels).items():
        paths = modules_below(f"{package}/{room}") or [home / f"{room}.py"]

        def above(name: str, allowed: set[str] = allowed) -> bool:
            return ours(name) == package and (*name.split("."), package)[2] not in allowed

        assert wrong_imports(paths, above) == []


def test_the_command_imports_late() -> None:
    # The parts of `serve` are imported as a whole, and late, so they may import what they like.
    paths = [path for path in modules_below("cli") if path.parent.name != "serving"]
    late = ("core", "sim", "diagrams", "web", "k8s")

    def too_early(name: str) -> bool:
        return ours(name) in late or name.startswith((*HEAVY, "quadriga.cli.serving"))

    assert wrong_imports(paths, too_early, at_once=True) == []


def test_help_loads_nothing_heavy() -> None:
    # A fresh interpreter: this one has everything loaded.
    program = f"""
import sys
from quadriga.cli.main import main
try:
    status = main(["--help"])
except SystemExit as stop:
    status = stop.code
loaded = [name for name in {HEAVY!r} if name in sys.modules]
print("status", status or 0, "loaded", loaded, file=sys.stderr)
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False
    )
    assert done.stderr.splitlines()[-1:] == ["status 0 loaded []"], done.stderr
    assert "simulate" in done.stdout


# -- circles ---------------------------------------------------------------------------------------

Graph = Mapping[str, set[str]]


def imports_of(repository: Path, package: str, one: Set[str] = frozenset()) -> dict[str, set[str]]:
    """For each module of a package the modules of the same package that it imports; some count as ``one``."""
    paths = {_name(path, repository): path for path in (repository / package).rglob("*.py")}
    graph: dict[str, set[str]] = {}
    for name, path in paths.items():
        here = graph.setdefault(_as_one(name, one), set())
        here.update(_as_one(found, one) for found in _imported(path, paths))
    return {name: found - {name} for name, found in graph.items()}


def between_units(graph: Graph, folder: str) -> dict[str, set[str]]:
    """The same between what stands directly in a folder: its modules, and its folders as wholes."""
    found: dict[str, set[str]] = {}
    for name, imported in graph.items():
        if name.startswith(folder):
            here = found.setdefault(_unit(name, folder), set())
            here.update(_unit(each, folder) for each in imported if each.startswith(folder))
            here.discard(_unit(name, folder))
    return found


def circle_in(graph: Graph) -> str:
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


def _as_one(name: str, one: Set[str]) -> str:
    return min(one) if name in one else name


def _imported(path: Path, known: Mapping[str, Path]) -> Iterator[str]:
    for node, _ in imports_in(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif node.module is not None:
            for alias in node.names:  # a module of the package, or a name in its __init__
                names = f"{node.module}.{alias.name}", node.module
                yield from [name for name in names if name in known][:1]


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_and_no_folder_imports_itself_by_way_of_others(package: str) -> None:
    graph = imports_of(REPOSITORY, package, ENTITIES)
    assert len(graph) > 1
    assert circle_in(graph) == ""
    folders = {name.rpartition(".")[0] + "." for name in graph} - {"quadriga."}
    circles = {folder: circle_in(between_units(graph, folder)) for folder in folders}
    assert f"quadriga.{package}." in circles
    assert {folder: circle for folder, circle in circles.items() if circle} == {}


def test_no_entity_could_be_left_out_of_the_circle() -> None:
    graph = imports_of(REPOSITORY, "core")
    for entity in ENTITIES:
        reached, ahead = set[str](), [entity]
        while ahead:
            found = graph[ahead.pop()] & ENTITIES - reached
            reached |= found
            ahead += found
        assert reached == ENTITIES


# -- what a module may be --------------------------------------------------------------------------


def test_no_module_is_too_long(modules: list[Path]) -> None:
    lengths = {path: text_of(path).count("\n") for path in modules if "_pb2" not in path.name}
    assert {path: lines for path, lines in lengths.items() if lines > LONGEST} == {}


def test_modules_are_named_for_what_they_hold(repository: Path, modules: list[Path]) -> None:
    names = {path: {path.stem, *path.relative_to(repository).parts[:-1]} for path in modules}
    assert [path for path in modules if EMPTY_NAMES & names[path]] == []


def test_test_files_have_names_of_their_own(repository: Path) -> None:
    # Folders of tests are no packages, so two files of one name would be one module.
    names = [path.name for path in (repository / "tests").rglob("test_*.py")]
    assert sorted({name for name in names if names.count(name) > 1}) == []


def test_no_file_knows_the_machine_it_was_written_on(texts: list[Path]) -> None:
    homes = ["/" + folder + "/" for folder in ("work", "root", "home", "Users")]
    # A path starts after a space, a quote or a bracket; `.../work/` is part of an address.
    looks = [mark + home for mark in " \"'`(=:\n" for home in homes]
    texts_of = ((path, "\n" + text_of(path)) for path in texts)
    assert [path for path, text in texts_of if any(home in text for home in looks)] == []


def test_no_folder_is_too_full(repository: Path, modules: list[Path]) -> None:
    counts = Counter(path.parent for path in modules if path.name != "__init__.py")
    too_full = [
        (str(folder.relative_to(repository)), count)
        for folder, count in counts.items()
        if count > (FULLEST_OF_TESTS if repository / "tests" in folder.parents else FULLEST)
    ]
    assert too_full == []


def test_every_folder_with_modules_is_a_package() -> None:
    # setup.py takes folders with an __init__ for packages.
    folders = {path.parent for package in PACKAGES for path in modules_below(package)}
    assert sorted(each for each in folders if not (each / "__init__.py").exists()) == []


def test_the_engine_knows_no_lifecycle_and_its_machine_no_engine() -> None:
    """So a reader of a lifecycle meets the engine alone, and who uses the machine alone reads nothing else."""
    engine = [path for path in modules_below("fsm") if path.parent.name != "lifecycles"]
    engine.remove(REPOSITORY / "fsm" / "__init__.py")
    assert wrong_imports(engine, lambda name: name.startswith("quadriga.fsm.lifecycles")) == []
    fast = modules_below("fsm/fast")
    beyond = lambda name: ours(name) == "fsm" and not name.startswith("quadriga.fsm.fast.")  # noqa: E731
    assert wrong_imports(fast, beyond) == []


# -- habits of the house that ruff does not know -----------------------------------------------------


LIFECYCLES = {"application", "ask", "allocation", "gang", "node", "queue", "resource_manager"}


def other_names(path: Path) -> Iterator[tuple[int, str]]:
    """Lines that import a lifecycle's file under another name than ``application_fsm`` and so on."""
    if "quadriga.fsm" not in text_of(path):
        return
    for node, _ in imports_in(path):
        if isinstance(node, ast.ImportFrom):
            for each in node.names if node.module == "quadriga.fsm.lifecycles" else ():
                name = each.asname or each.name
                if each.name in LIFECYCLES and name != f"{each.name}_fsm":
                    yield node.lineno, name
        else:
            for each in node.names:
                parent, _, last = each.name.rpartition(".")
                if parent == "quadriga.fsm.lifecycles" and last in LIFECYCLES:
                    yield node.lineno, each.asname or each.name


def compared_states(path: Path) -> Iterator[tuple[int, str]]:
    """Lines where an attribute ``state`` is compared with something for equality."""
    text = text_of(path)
    if ".state" not in text:
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any(isinstance(each, ast.Eq | ast.NotEq) for each in node.ops) and any(
                isinstance(each, ast.Attribute) and each.attr == "state" for each in sides
            ):
                yield node.lineno, ast.unparse(node)


Check = Callable[[Path], Iterator[tuple[int, str]]]


def found_by(check: Check, paths: list[Path]) -> list[str]:
    return [f"{path}:{line}: {what}" for path in paths for line, what in check(path)]


def test_every_module_calls_a_lifecycle_alike(modules: list[Path]) -> None:
    assert found_by(other_names, modules) == []


def test_core_compares_no_state() -> None:
    """It asks whether the state is in a set of its lifecycle."""
    assert found_by(compared_states, modules_below("core")) == []
