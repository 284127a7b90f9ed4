"""The distributions: what is in them, and that they install and run where nothing else is.

They are built once, from a copy of the checkout. Only tox -e packaging has what that takes. The
compiled wheel also takes a C compiler, and minutes: tox -e packaging -- -m slow.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Sequence
from email import message_from_string
from email.message import Message
from pathlib import Path

import pytest

PACKAGES = ("fsm", "si", "core", "diagrams", "sim", "web", "cli")
#: what needs grpcio or starlette, which the base install goes without
EXTRAS = re.compile(
    r"quadriga/(web|si/server|si/client|cli/serving)/|_pb2_grpc\.py$|sim/remote\.py$"
)
LEFT_OUT = shutil.ignore_patterns(
    ".git",
    ".tox",
    ".venv*",
    ".*_cache",
    ".hypothesis",
    "__pycache__",
    "*.egg-info",
    "build",
    "dist",
)


def run(*words: str | Path, cwd: Path, **more: str) -> str:
    """Run a command and give what it prints; fail with all of it. ``more`` is its environment's."""
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env=os.environ | more,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def environment(folder: Path, *install: str | Path) -> Path:
    """A new environment with these installed; the folder with its commands."""
    run(sys.executable, "-m", "venv", folder, cwd=folder.parent)
    commands = folder / "bin"
    run(commands / "python", "-m", "pip", "install", "--quiet", *install, cwd=folder.parent)
    return commands


@pytest.fixture(scope="module")
def copy(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout without what work leaves behind, as a fresh clone is."""
    folder = tmp_path_factory.mktemp("clone") / "quadriga"
    shutil.copytree(repository, folder, ignore=LEFT_OUT)
    return folder


@pytest.fixture(scope="module")
def distributions(copy: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the source distribution and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("distributions")
    run(sys.executable, "-m", "build", "--outdir", folder, copy, cwd=folder)
    return folder


@pytest.fixture(scope="module")
def sdist(distributions: Path) -> Path:
    (path,) = distributions.glob("*.tar.gz")
    return path


@pytest.fixture(scope="module")
def wheel(distributions: Path) -> Path:
    (path,) = distributions.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def inside(wheel: Path) -> Sequence[str]:
    """The names of the files in the wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


@pytest.fixture(scope="module")
def metadata(wheel: Path, inside: Sequence[str]) -> Message:
    (name,) = [name for name in inside if name.endswith(".dist-info/METADATA")]
    with zipfile.ZipFile(wheel) as archive:
        return message_from_string(archive.read(name).decode("utf-8"))


@pytest.fixture(scope="module")
def clean(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The commands of an environment with the wheel and the base dependencies only."""
    return environment(tmp_path_factory.mktemp("clean") / "venv", wheel)


def test_nothing_of_ours_is_at_the_top(inside: Sequence[str]) -> None:
    # A bare `core` or `diagrams` in site-packages would break somebody else's.
    assert {name.partition("/")[0] for name in inside if ".dist-info/" not in name} == {"quadriga"}


def test_quadriga_is_a_namespace(inside: Sequence[str]) -> None:
    assert "quadriga/__init__.py" not in inside


def test_wheel_has_every_module_of_the_checkout(copy: Path, inside: Sequence[str]) -> None:
    modules = {
        f"quadriga/{path.relative_to(copy).as_posix()}"
        for package in PACKAGES
        for path in (copy / package).rglob("*.py")
    }
    assert modules == {name for name in inside if name.endswith(".py")}


def test_wheel_has_types_and_protocol(inside: Sequence[str]) -> None:
    wanted = {f"quadriga/{package}/py.typed" for package in PACKAGES}
    wanted |= {"quadriga/si/v1/si.proto", "quadriga/si/v1/si_pb2.pyi"}
    assert wanted <= set(inside)


def test_wheel_has_the_pages(copy: Path, inside: Sequence[str]) -> None:
    files = (copy / "web" / "pages" / "static").iterdir()
    wanted = {f"quadriga/web/pages/static/{path.name}" for path in files}
    assert wanted
    assert wanted | {"quadriga/web/pages/data/layouts.json"} <= set(inside)


def test_wheel_has_its_licence(inside: Sequence[str], metadata: Message) -> None:
    names = {name.rpartition("/")[2] for name in inside if ".dist-info/" in name}
    assert {"LICENSE", "NOTICE"} <= names
    assert "Apache-2.0" in (metadata["License-Expression"] or metadata["License"])


def test_base_install_is_small(metadata: Message) -> None:
    base = [text for text in metadata.get_all("Requires-Dist") if "extra ==" not in text]
    names = sorted(text.split(">")[0].split("<")[0].strip() for text in base)
    assert names == ["PyYAML", "google-re2", "numpy", "protobuf", "transitions"]


def test_sdist_carries_what_a_clone_has(copy: Path, sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        carried = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {
        path.relative_to(copy).as_posix()
        for folder in (*PACKAGES, "tests", "examples", "docs", "bench", ".ci")
        for path in (copy / folder).rglob("*")
        if path.is_file()
    }
    wanted |= {"tox.ini", "ruff.toml", "mypy.ini", "LICENSE", "NOTICE", "README.md", "CHANGELOG.md"}
    assert sorted(wanted - carried) == []


def test_a_module_that_was_deleted_is_in_no_later_wheel(copy: Path, tmp_path: Path) -> None:
    """Each build begins anew, and leaves nothing in the checkout that the next could pick up."""
    checkout = tmp_path / "checkout"
    shutil.copytree(copy, checkout)
    gone = checkout / "core" / "gone.py"
    gone.write_text("", encoding="utf-8")
    wheels = (sys.executable, "-m", "build", "--wheel", "--outdir")
    run(*wheels, tmp_path / "before", checkout, cwd=tmp_path)
    gone.unlink()
    run(*wheels, tmp_path / "after", checkout, cwd=tmp_path)
    names = {}
    for folder in ("before", "after"):
        (path,) = (tmp_path / folder).glob("*.whl")
        with zipfile.ZipFile(path) as archive:
            names[folder] = set(archive.namelist())
    assert names["before"] - names["after"] == {"quadriga/core/gone.py"}
    assert not (checkout / "build").exists()


def test_every_module_of_the_wheel_is_importable(clean: Path, inside: Sequence[str]) -> None:
    # What needs pytest is left out, and here what needs an extra too.
    files = [
        name
        for name in inside
        if name.endswith(".py") and not name.endswith(("/__main__.py", "/pytest_plugin.py"))
    ]
    program = "import importlib, sys; [importlib.import_module(name) for name in sys.argv[1:]]"
    base = [module(name) for name in files if not EXTRAS.search(name)]
    run(clean / "python", "-W", "error", "-c", program, *base, cwd=clean)
    run(sys.executable, "-W", "error", "-c", program, *map(module, files), cwd=clean)


def module(file: str) -> str:
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def test_bare_names_stay_free(clean: Path) -> None:
    program = (
        "from importlib.util import find_spec\n"
        f"print([name for name in {PACKAGES!r} if find_spec(name)])"
    )
    assert run(clean / "python", "-I", "-c", program, cwd=clean).strip() == "[]"


def test_command_knows_the_version(clean: Path, metadata: Message) -> None:
    assert metadata["Version"] in run(clean / "quadriga", "--version", cwd=clean)


def test_command_runs_as_a_newcomer_runs_it(repository: Path, copy: Path) -> None:
    # The README's own line, in a copy that is as good as a fresh clone.
    text = (repository / "README.md").read_text(encoding="utf-8")
    line = text.partition("<!-- run: the main job -->\n```sh\n")[2].partition("\n```")[0]
    assert "quadriga simulate" in line
    assert run("bash", "-euo", "pipefail", "-c", line, cwd=copy)


# -- the compiled wheel ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def compiled(copy: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel with what mypyc makes of the same copy."""
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no C compiler ({compiler})")
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        pytest.skip("there are no headers of this Python")
    folder = tmp_path_factory.mktemp("compiled")
    words = (sys.executable, "-m", "build", "--wheel", "--outdir", folder, copy)
    run(*words, cwd=folder, QUADRIGA_COMPILE="1")
    (path,) = folder.glob("*.whl")
    return path


def test_a_wheel_is_for_every_machine_unless_asked_otherwise(wheel: Path) -> None:
    assert wheel.name.endswith("-py3-none-any.whl")


@pytest.mark.slow
def test_a_compiled_wheel_has_the_same_modules(compiled: Path, inside: Sequence[str]) -> None:
    with zipfile.ZipFile(compiled) as archive:
        names = archive.namelist()
    assert {name for name in names if name.endswith(".py")} == {
        name for name in inside if name.endswith(".py")
    }
    binary = {name.partition(".")[0] for name in names if name.endswith((".so", ".pyd"))}
    wanted = {"core/scheduling/batch", "core/runtime/kernel", "core/model/queue", "fsm/lifecycle"}
    assert {f"quadriga/{name}" for name in wanted} <= binary
    assert "quadriga/fsm/table" not in binary  # whose Effect others derive from
    assert "any" not in compiled.name


@pytest.mark.slow
def test_a_compiled_wheel_decides_the_same(
    compiled: Path, clean: Path, repository: Path, tmp_path: Path
) -> None:
    commands = environment(tmp_path / "venv", compiled)
    program = "import quadriga.core.scheduling.batch as module; print(module.__file__)"
    file = run(commands / "python", "-c", program, cwd=tmp_path)
    assert not file.strip().endswith(".py")
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
