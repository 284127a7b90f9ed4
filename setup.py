"""The package is plain Python; with QUADRIGA_COMPILE=1 mypyc compiles the part of it that decides.

All that is declared is in setup.cfg, but for the packages, which are found. A release is built from a
source distribution; it leaves the engine (quadriga.base, quadriga.fsm and its packages, quadriga.diagrams) to a
distribution of its own (packaging/fsm) and depends on that one.

mypyc wants modules to lie where they are imported from, which the folders at the top of the repository do
not, so it is shown a copy that does. docs/development.md says more. See D129 and D160.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.build import build
from setuptools.config.setupcfg import read_configuration

#: what it takes, beside what is installed with the package: mypy checks all types on its way
NEEDS = ["mypy[mypyc]>=2.4,<2.5", "types-grpcio", "types-protobuf"]

#: packages whose modules are compiled, but for ...
COMPILED = ("fsm", "core", "sim")
#: of the engine these alone. The others have classes that derive from a library's or that others derive from, say in
#: pictures what guards say of themselves, which mypyc drops, or do not run for every ask.
OF_ENGINE = ("fsm/firing.py", "fsm/lifecycle.py", "fsm/reading.py")
#: what a module of the others, or the __init__ of a folder, says that is left as it is; the reason follows
PLAIN = "\n# Not compiled: "


class Build(build):
    """Builds in a folder that is new and goes again. In build/ beside the sources, which is the usual
    one, modules stay that have been deleted since, and the next wheel would have them."""

    def initialize_options(self) -> None:
        super().initialize_options()
        self.build_base = tempfile.mkdtemp(prefix="quadriga-build-")
        atexit.register(shutil.rmtree, self.build_base, ignore_errors=True)


def is_compiled(path: Path) -> bool:
    """Whether this module is one of them; its path is relative to the repository."""
    if path.parts[0] == "fsm":
        return path.as_posix() in OF_ENGINE
    folders = [Path(folder, "__init__.py") for folder in path.parents if folder.name]
    marked = any(PLAIN in each.read_text(encoding="utf-8") for each in (path, *folders))
    return path.parts[0] in COMPILED and path.name != "__init__.py" and not marked


def extensions() -> list[Extension]:
    """What is to be compiled, as C that mypyc has written."""
    from mypyc.build import mypycify

    copy = Path("build", "compiled")
    home = copy / "quadriga"
    shutil.rmtree(copy, ignore_errors=True)
    for folder in ("base", "fsm", "si", "core", "sim"):
        shutil.copytree(folder, home / folder)
    modules = sorted(path for name in COMPILED for path in (home / name).rglob("*.py"))
    # All are named, or mypy might look at those of another version that is installed.
    named = [str(path) for path in modules if path.name != "pytest_plugin.py"]
    os.environ["MYPYPATH"] = str(copy)
    options = ["--config-file", "mypy.ini", "--namespace-packages", "--explicit-package-bases"]
    found = mypycify(
        [*options, *named],
        only_compile_paths=[str(path) for path in modules if is_compiled(path.relative_to(home))],
        group_name="quadriga",
        opt_level="2",
        debug_level="0",
    )
    # Scores of nodes are the same on every machine. The extensions share one list of arguments.
    for extension in found:
        extension.extra_compile_args = [*extension.extra_compile_args, "-ffp-contract=off"]
    return found


def packages(declared: Mapping[str, Any]) -> list[str]:
    """Every folder with an __init__ below those that setup.cfg maps to packages."""
    return [
        ".".join((name, *path.parent.relative_to(folder).parts))
        for name, folder in declared["options"]["package_dir"].items()
        for path in sorted(Path(folder).rglob("__init__.py"))
    ]


def without_engine(declared: Mapping[str, Any]) -> dict[str, Any]:
    """The packages but for those that the distribution of the engine contains, and that distribution."""
    options, version = declared["options"], declared["metadata"]["version"]
    engine = read_configuration("packaging/fsm/setup.cfg")["options"]
    commands = engine["entry_points"]["console_scripts"]
    return {
        "packages": [each for each in packages(declared) if each not in engine["packages"]],
        "install_requires": [f"quadriga-fsm=={version}", *options["install_requires"]],
        "entry_points": {
            "console_scripts": [
                each for each in options["entry_points"]["console_scripts"] if each not in commands
            ]
        },
    }


DECLARED = read_configuration("setup.cfg")
MAKES_SDIST = "sdist" in sys.argv

if os.environ.get("QUADRIGA_COMPILE") == "1" and not MAKES_SDIST:
    # With the engine, also from an unpacked source distribution: modules that are compiled together call
    # each other directly.
    installed = DECLARED["options"]["install_requires"]
    only_asked = {"dist_info", "egg_info"}.intersection(sys.argv)
    setup(
        packages=packages(DECLARED),
        setup_requires=[*NEEDS, *installed],
        ext_modules=[] if only_asked else extensions(),
        cmdclass={"build": Build},
    )
elif MAKES_SDIST or Path("PKG-INFO").exists():
    setup(cmdclass={"build": Build}, **without_engine(DECLARED))
else:
    setup(packages=packages(DECLARED), cmdclass={"build": Build})
