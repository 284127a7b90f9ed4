"""The package is plain Python; with QUADRIGA_COMPILE=1 mypyc compiles the part of it that decides.

All that is declared is in setup.cfg. A release is built from a source distribution; it leaves the engine,
quadriga.fsm, to a distribution of its own (packaging/fsm) and depends on that one.

mypyc wants modules to lie where they are imported from, which the folders at the top of the repository do
not, so it is shown a copy that does. docs/development.md says more.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build import build
from setuptools.config.setupcfg import read_configuration

#: what it takes, beside what is installed with the package: mypy checks all types on its way
NEEDS = ["mypy[mypyc]>=2.4,<2.5", "types-grpcio", "types-protobuf"]

#: packages whose modules are compiled, but for ...
COMPILED = ("fsm", "core", "sim")
PLAIN = """
    core/checks/failures core/checks/health core/checks/invariants core/config core/driver
    core/intake/foreign core/intake/recovery core/intake/registration core/placement
    core/runtime/remote_predicates core/scheduling/explain core/scheduling/explain_nodes
    core/scheduling/explanation core/views
    fsm/derive fsm/names fsm/written
""".split()  # what is not done for every ask: read, shown, or heard from other threads
PLAIN += """
    fsm/allocation fsm/application fsm/ask fsm/gang fsm/node fsm/queue fsm/resource_manager
""".split()  # the tables: pictures show what their guards say of themselves, which mypyc leaves out
PLAIN += """
    core/model/refusal fsm/aio fsm/building fsm/compiling fsm/coverage fsm/effects fsm/errors
    fsm/explore fsm/fast_events fsm/fast_locked fsm/fast_machine fsm/fast_models fsm/fast_nested
    fsm/fast_nested_parts fsm/fast_nested_plans fsm/fast_plans
    fsm/fast_steps fsm/fast_tracking fsm/history fsm/loading fsm/machine fsm/nested_machine fsm/nesting
    fsm/observing fsm/pytest_plugin fsm/read_effects fsm/table fsm/timers fsm/validation
""".split()  # classes that others derive from, or that derive from a library's
PLAIN += """
    sim/demo sim/destinations sim/errors sim/faults sim/fitting sim/flows sim/fragmentation sim/holders
    sim/lifecycles sim/options sim/outcomes sim/quality sim/queues sim/quotas sim/recording sim/remote
    sim/rendering sim/report sim/script sim/selection sim/simulation sim/waits sim/workload
""".split()  # all but the resource manager of a simulation, which is called for every message


class Build(build):
    """Builds in a folder that is new and goes again. In build/ beside the sources, which is the usual
    one, modules stay that have been deleted since, and the next wheel would have them."""

    def initialize_options(self) -> None:
        super().initialize_options()
        self.build_base = tempfile.mkdtemp(prefix="quadriga-build-")
        atexit.register(shutil.rmtree, self.build_base, ignore_errors=True)


def is_compiled(path: Path) -> bool:
    """Whether this module is one of them; its path is relative to the repository."""
    name = path.with_suffix("")
    plain = any(each.as_posix() in PLAIN for each in (name, *name.parents))
    return name.parts[0] in COMPILED and name.name != "__init__" and not plain


def extensions() -> list[Extension]:
    """What is to be compiled, as C that mypyc has written."""
    from mypyc.build import mypycify

    copy = Path("build", "compiled")
    home = copy / "quadriga"
    shutil.rmtree(copy, ignore_errors=True)
    for folder in ("fsm", "si", "core", "sim"):
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
    for extension in found:  # scores of nodes are the same on every machine
        extension.extra_compile_args.append("-ffp-contract=off")
    return found


def without_engine() -> dict[str, object]:
    """What setup.cfg declares, but for the packages that the distribution of the engine contains."""
    declared = read_configuration("setup.cfg")
    options, version = declared["options"], declared["metadata"]["version"]
    engine = read_configuration("packaging/fsm/setup.cfg")["options"]
    return {
        "packages": [each for each in options["packages"] if each not in engine["packages"]],
        "install_requires": [f"quadriga-fsm=={version}", *options["install_requires"]],
        "entry_points": {"console_scripts": options["entry_points"]["console_scripts"]},
    }


MAKES_SDIST = "sdist" in sys.argv

if os.environ.get("QUADRIGA_COMPILE") == "1" and not MAKES_SDIST:
    # With the engine, also from an unpacked source distribution: modules that are compiled together call
    # each other directly.
    installed = read_configuration("setup.cfg")["options"]["install_requires"]
    only_asked = {"dist_info", "egg_info"}.intersection(sys.argv)
    setup(
        setup_requires=[*NEEDS, *installed],
        ext_modules=[] if only_asked else extensions(),
        cmdclass={"build": Build},
    )
elif MAKES_SDIST or Path("PKG-INFO").exists():
    setup(cmdclass={"build": Build}, **without_engine())
else:
    setup(cmdclass={"build": Build})
