"""The distributions: what is in them, and that they install and run where nothing else is."""

import json
import re
import shutil
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from email import message_from_string
from email.message import Message
from pathlib import Path

import pytest

from tests.packaging.conftest import PACKAGES, REPOSITORY, Make, run

#: what needs grpcio, starlette, msgspec or aiohttp, which the base install goes without
EXTRAS = re.compile(
    r"quadriga/(web|k8s|si/server|si/client|cli/serving)/|_pb2_grpc\.py$|sim/remote\.py$"
)
#: a program that imports the modules that it is given
IMPORT = "import importlib, sys; [importlib.import_module(name) for name in sys.argv[1:]]"
LEFT_OUT = shutil.ignore_patterns(
    *".git .tox .venv* .*_cache .hypothesis __pycache__ *.egg-info build dist".split()
)

Once = Callable[[str, Make], Path]


def build(folder: Path, project: Path, *options: str, **environment: str) -> None:
    words = (sys.executable, "-m", "build", *options, "--outdir", folder, project)
    run(*words, cwd=folder, **environment)


def wheel_in(folder: Path, name: str = "*") -> Path:
    (path,) = folder.glob(f"{name}.whl")
    return path


def environment(folder: Path, *install: str | Path) -> None:
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder.parent)
    pip(folder / "bin", "install", "--quiet", *install)


def pip(commands: Path, *words: str | Path) -> str:
    python = commands / "python"
    return run(sys.executable, "-m", "pip", "--python", python, *words, cwd=commands)


@pytest.fixture(scope="session")
def copy(once: Once) -> Path:
    """A copy of the checkout without what work leaves behind, as a fresh clone is."""
    made = once("clone", lambda to: shutil.copytree(REPOSITORY, to / "quadriga", ignore=LEFT_OUT))
    return made / "quadriga"


@pytest.fixture(scope="session")
def distributions(copy: Path, once: Once) -> Path:
    """The folder with the source distributions of a release and the wheels that are built from these."""

    def make(folder: Path) -> None:
        for project in (copy, copy / "packaging" / "fsm"):
            build(folder, project)

    return once("distributions", make)


@pytest.fixture(scope="session")
def sdist(distributions: Path) -> Path:
    (path,) = distributions.glob("quadriga-*.tar.gz")
    return path


@pytest.fixture(scope="session")
def wheel(distributions: Path) -> Path:
    return wheel_in(distributions, "quadriga-*")


@pytest.fixture(scope="session")
def engine(distributions: Path) -> Path:
    return wheel_in(distributions, "quadriga_fsm-*")


@pytest.fixture(scope="session")
def built_twice(copy: Path, once: Once) -> Path:
    """The wheels that are built from one checkout itself, ``before`` and ``after`` a module is deleted."""

    def make(folder: Path) -> None:
        checkout = folder / "quadriga"
        shutil.copytree(copy, checkout)
        gone = checkout / "core" / "gone.py"
        gone.touch()
        for name in ("before", "after"):
            (folder / name).mkdir()
            build(folder / name, checkout, "--wheel", "--no-isolation")
            gone.unlink(missing_ok=True)

    return once("whole", make)


@pytest.fixture(scope="session")
def whole(built_twice: Path) -> Path:
    """The wheel that is built from the checkout itself."""
    return wheel_in(built_twice / "after")


def files(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return [name for name in archive.namelist() if ".dist-info/" not in name]


def said_of(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [each for each in archive.namelist() if each.endswith(".dist-info/METADATA")]
        return message_from_string(archive.read(name).decode("utf-8"))


def needed(metadata: Message) -> list[str]:
    """What is installed with a distribution if no extra is asked for."""
    base = [text for text in metadata.get_all("Requires-Dist") if "extra ==" not in text]
    return sorted(re.split("[<>=]", text)[0].strip() for text in base)


@pytest.fixture(scope="session")
def inside(engine: Path, wheel: Path) -> Sequence[str]:
    return [*files(engine), *files(wheel)]


@pytest.fixture(scope="session")
def metadata(wheel: Path) -> Message:
    return said_of(wheel)


@pytest.fixture(scope="session")
def clean(engine: Path, wheel: Path, once: Once) -> Path:
    """The commands of an environment with a release and its base dependencies, installed without network."""

    def make(folder: Path) -> None:
        dist = folder / "dist"
        words = ("-m", "pip", "download", "--quiet", "--dest", dist, engine, wheel)
        run(sys.executable, *words, cwd=folder)
        environment(folder / "venv", "--no-index", "--find-links", dist, "quadriga")

    return once("clean", make) / "venv" / "bin"


@pytest.fixture(scope="session")
def alone(engine: Path, once: Once) -> Path:
    """The commands of an environment with the engine, and with pytest and xdist for its plugin."""
    return once("alone", lambda made: environment(made, engine, "pytest", "pytest-xdist")) / "bin"


def test_nothing_of_ours_is_at_the_top(inside: Sequence[str]) -> None:
    # A bare `core` or `diagrams` in site-packages would break somebody else's.
    assert {name.partition("/")[0] for name in inside} == {"quadriga"}


def test_the_two_wheels_share_no_file_and_have_all(
    engine: Path, wheel: Path, whole: Path, inside: Sequence[str]
) -> None:
    # If both had a file, to uninstall one of them would break the other.
    assert {*files(engine)} & {*files(wheel)} == set()
    assert "quadriga/__init__.py" in files(engine)
    assert sorted(inside) == sorted(files(whole))


def test_wheel_has_the_modules_types_protocol_and_pages(copy: Path, inside: Sequence[str]) -> None:
    modules = {
        f"quadriga/{path.relative_to(copy).as_posix()}"
        for package in PACKAGES
        for path in (copy / package).rglob("*.py")
    }
    modules.add("quadriga/__init__.py")
    assert modules == {name for name in inside if name.endswith(".py")}
    wanted = {f"quadriga/{package}/py.typed" for package in PACKAGES}
    wanted |= {"quadriga/si/v1/si.proto", "quadriga/si/v1/si_pb2.pyi"}
    pages = [path.name for path in (copy / "web" / "pages" / "static").iterdir()]
    assert pages
    wanted |= {f"quadriga/web/pages/static/{name}" for name in pages}
    assert wanted | {"quadriga/web/pages/data/layouts.json"} <= set(inside)


def test_the_index_would_take_them(distributions: Path, engine: Path, wheel: Path) -> None:
    """What an index and readers of wheels look at: metadata, the page, names, files that do not belong."""
    run(
        *(sys.executable, "-m", "twine", "check", "--strict", *sorted(distributions.iterdir())),
        cwd=distributions,
    )
    for path in (engine, wheel):
        run(sys.executable, "-m", "check_wheel_contents", "--no-config", path, cwd=distributions)


def test_no_address_leads_nowhere(engine: Path, metadata: Message) -> None:
    """Neither distribution has a home or an author with an address yet, so they name none."""
    for said in (said_of(engine), metadata):
        named = ("Home-page", "Author-email", "Maintainer-email", "Project-URL", "Download-URL")
        assert [name for name in named if said[name]] == []


def test_wheels_have_their_licence(engine: Path, wheel: Path) -> None:
    for path in (engine, wheel):
        with zipfile.ZipFile(path) as archive:
            names = {name.rpartition("/")[2] for name in archive.namelist() if "licenses/" in name}
        assert {"LICENSE", "NOTICE"} <= names
        metadata = said_of(path)
        assert "Apache-2.0" in (metadata["License-Expression"] or metadata["License"])


def test_base_install_is_small_and_the_rest_needs_its_engine(
    engine: Path, metadata: Message, whole: Path
) -> None:
    scheduler = ["PyYAML", "google-re2", "numpy", "protobuf", "transitions"]
    assert needed(said_of(engine)) == ["transitions"]
    assert needed(metadata) == sorted([*scheduler, "quadriga-fsm"])
    assert needed(said_of(whole)) == scheduler
    version = metadata["Version"]
    assert said_of(engine)["Version"] == version
    assert f"quadriga-fsm=={version}" in metadata.get_all("Requires-Dist")


def test_the_source_distribution_says_what_its_wheel_says(sdist: Path, metadata: Message) -> None:
    # Some installers read it there.
    with tarfile.open(sdist) as archive:
        (name,) = [each for each in archive.getnames() if re.fullmatch("[^/]+/PKG-INFO", each)]
        found = archive.extractfile(name)
        assert found is not None
        said = message_from_string(found.read().decode("utf-8"))
    assert said.get_all("Requires-Dist") == metadata.get_all("Requires-Dist")


def test_sdist_carries_what_a_clone_has(copy: Path, sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        carried = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {
        path.relative_to(copy).as_posix()
        for folder in (*PACKAGES, "packaging", "tests", "examples", "docs", "bench", ".ci")
        for path in (copy / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    wanted |= {"tox.ini", "ruff.toml", "mypy.ini", "LICENSE", "NOTICE", "README.md", "CHANGELOG.md"}
    assert sorted(wanted - carried) == []


def test_a_module_that_was_deleted_is_in_no_later_wheel(built_twice: Path) -> None:
    """Each build begins anew, and leaves nothing in the checkout that the next could pick up."""
    before, after = ({*files(wheel_in(built_twice / name))} for name in ("before", "after"))
    assert before - after == {"quadriga/core/gone.py"}
    assert not (built_twice / "quadriga" / "build").exists()


def test_every_module_of_the_wheel_is_importable(clean: Path, inside: Sequence[str]) -> None:
    # What needs pytest is left out, and here what needs an extra too.
    names = [
        name
        for name in inside
        if name.endswith(".py") and not name.endswith(("/__main__.py", "/pytest_plugin.py"))
    ]
    base = [module(name) for name in names if not EXTRAS.search(name)]
    run(clean / "python", "-W", "error", "-c", IMPORT, *base, cwd=clean)
    run(sys.executable, "-W", "error", "-c", IMPORT, *map(module, names), cwd=clean)


def module(file: str) -> str:
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def test_the_version_is_known(clean: Path, alone: Path, metadata: Message) -> None:
    version = metadata["Version"]
    assert version in run(clean / "quadriga", "--version", cwd=clean)
    program = "import quadriga; assert quadriga.__doc__; print(quadriga.__version__)"
    for commands in (clean, alone):
        assert run(commands / "python", "-c", program, cwd=commands).strip() == version


# -- the engine alone ------------------------------------------------------------------------------


def test_the_engine_installs_nothing_but_the_library(alone: Path) -> None:
    listed = json.loads(pip(alone, "list", "--format=json"))
    names = {each["name"].lower() for each in listed} - {"pip", "setuptools", "wheel"}
    of_pytest = {*"pytest iniconfig packaging pluggy pygments pytest-xdist execnet".split()}
    assert names - of_pytest == {"quadriga-fsm", "transitions", "six"}


def test_the_engine_alone_runs(alone: Path, engine: Path, repository: Path, tmp_path: Path) -> None:
    names = [module(name) for name in files(engine) if name.endswith(".py")]
    names = [name for name in names if not name.endswith(".__main__")]
    run(alone / "python", "-W", "error", "-c", IMPORT, *names, cwd=tmp_path)
    for example in ("own_lifecycle", "order_service", "device"):
        path = repository / "examples" / f"{example}.py"
        assert run(alone / "python", "-W", "error", path, cwd=tmp_path)
    asked = (
        "try:\n    from quadriga.fsm import ASK\nexcept ImportError as error:\n    print(error)\n"
    )
    said = run(alone / "python", "-W", "error", "-c", asked, cwd=tmp_path)
    assert said.strip() == "ASK is a lifecycle of the scheduler: install the distribution quadriga"
    page = said_of(engine).get_payload()
    (sample,) = re.findall("```python\n(.*?)```", str(page), re.DOTALL)
    (tmp_path / "shop.py").write_text(sample, encoding="utf-8")
    drawn = run(alone / "quadriga-fsm", "draw", "shop:DOOR", "--format", "mermaid", cwd=tmp_path)
    assert "Closed --> Open : open" in drawn


def test_the_plugin_runs_with_pytest_and_the_engine_alone(alone: Path, tmp_path: Path) -> None:
    (tmp_path / "test_node.py").write_text(
        "from types import SimpleNamespace\n"
        "import pytest\n"
        "from quadriga.fsm import Lifecycle, row, unbounded\n"
        "from quadriga.fsm.pytest_plugin import track\n"
        "def draining(node, info):\n"
        "    return info['draining']\n"
        "LASTS = {'New': unbounded('accept')}\n"
        "NODE = Lifecycle('node', initial='New', final=('Open', 'Closed'), lasts=LASTS, rows=(\n"
        "    row('accept', 'New', 'Closed', when=draining), row('accept', 'New', 'Open')))\n"
        "track(NODE)\n"
        "@pytest.mark.parametrize('closed', [False, True])\n"
        "def test_a_node_is_accepted(closed):\n"
        "    NODE.fire(SimpleNamespace(key='n-1', state='New'), 'accept', draining=closed)\n",
        encoding="utf-8",
    )
    report = tmp_path / "fsm.json"
    words = (alone / "python", "-W", "error", "-m", "pytest", f"--fsm-coverage-report={report}")
    counts = []
    for more in ((), ("-n", "2")):  # with two workers, each of which runs one of the two tests
        said = run(*words, *more, cwd=tmp_path)
        assert "node: 2 of 2" in said and "100.0 % of all guards seen true and false" in said
        counts.append(json.loads(report.read_text(encoding="utf-8")))
        report.unlink()
    assert counts[0] == counts[1]


def test_to_build_the_engine_leaves_nothing_behind(distributions: Path, copy: Path) -> None:
    left = {path.name for path in (copy / "packaging" / "fsm").iterdir()}
    assert left - {"__pycache__"} == {"README.md", "gather.py", "pyproject.toml", "setup.cfg"}


def test_command_runs_as_a_newcomer_runs_it(repository: Path, copy: Path) -> None:
    # The README's own line, in a copy that is as good as a fresh clone.
    text = (repository / "README.md").read_text(encoding="utf-8")
    line = text.partition("<!-- run: the main job -->\n```sh\n")[2].partition("\n```")[0]
    assert "quadriga simulate" in line
    assert run("bash", "-euo", "pipefail", "-c", line, cwd=copy)


# -- the compiled wheel ----------------------------------------------------------------------------


@pytest.fixture(scope="session")
def compiled(copy: Path, once: Once) -> Path:
    """The wheel with what mypyc makes of the same copy."""
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no C compiler ({compiler})")
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        pytest.skip("there are no headers of this Python")
    made = once("compiled", lambda folder: build(folder, copy, "--wheel", QUADRIGA_COMPILE="1"))
    return wheel_in(made)


def test_a_wheel_is_for_every_machine_by_default(engine: Path, wheel: Path, whole: Path) -> None:
    for path in (engine, wheel, whole):
        assert path.name.endswith("-py3-none-any.whl")


@pytest.mark.slow
def test_a_compiled_wheel_has_the_same_modules(compiled: Path, inside: Sequence[str]) -> None:
    with zipfile.ZipFile(compiled) as archive:
        names = archive.namelist()
    assert {n for n in names if n.endswith(".py")} == {n for n in inside if n.endswith(".py")}
    binary = {name.partition(".")[0] for name in names if name.endswith((".so", ".pyd"))}
    wanted = {"core/scheduling/batch", "core/runtime/kernel", "core/model/queue", "fsm/lifecycle"}
    assert {f"quadriga/{name}" for name in wanted} <= binary
    assert "quadriga/fsm/table" not in binary  # whose Effect others derive from
    assert "any" not in compiled.name


@pytest.mark.slow
def test_a_compiled_wheel_decides_the_same(
    compiled: Path, clean: Path, repository: Path, tmp_path: Path
) -> None:
    environment(tmp_path / "venv", compiled)
    commands = tmp_path / "venv" / "bin"
    program = "import quadriga.core.scheduling.batch as module; print(module.__file__)"
    assert not run(commands / "python", "-c", program, cwd=tmp_path).strip().endswith(".py")
    for example in ("own_lifecycle", "embed_lifecycle", "embed_core"):
        words = ("-W", "error", repository / "examples" / f"{example}.py")
        said = run(commands / "python", *words, cwd=tmp_path)
        assert said == run(clean / "python", *words, cwd=tmp_path)
    words = ("draw", "application", "--format", "md")  # with what its guards say of themselves
    drawn = run(commands / "quadriga", *words, cwd=tmp_path)
    assert drawn == run(clean / "quadriga", *words, cwd=tmp_path)
    journals = []
    for at, folder in enumerate((commands, clean)):
        journal = tmp_path / f"{at}.jsonl"
        words = ("--days", "10", "--lose", "0.05", "--check", "--quiet", "--journal", journal)
        run(folder / "quadriga", "simulate", *words, cwd=tmp_path)
        journals.append(journal.read_bytes())
    assert journals[0] == journals[1]
