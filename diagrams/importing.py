"""Lifecycles from any module that can be imported: ``package.module:TABLE``."""

from __future__ import annotations

import os
import pkgutil
import sys
from collections.abc import Iterable
from difflib import get_close_matches
from importlib import import_module
from types import ModuleType
from typing import Any

from quadriga.diagrams.errors import DiagramError
from quadriga.fsm import Lifecycle


def import_lifecycle(name: str) -> Lifecycle:
    """The lifecycle that ``package.module:TABLE`` names; the current directory is searched first.

    ``TABLE`` may have dots, for a table in a class. Raises ``DiagramError`` that names what is missing
    and what resembles it.
    """
    from quadriga.fsm import Lifecycle

    found: Lifecycle = import_table(name, Lifecycle)
    return found


def import_table(name: str, *kinds: type) -> Any:
    """Like ``import_lifecycle``, for an object of one of these classes. Raises ``DiagramError`` that names what is
    missing and what resembles it.
    """
    module_name, _, path = name.partition(":")
    if module_name.endswith(".py") or "/" in module_name:
        inner = module_name.removesuffix(".py").strip("./").replace("/", ".")
        raise DiagramError(
            f"{module_name!r} is a file; name the module, as in {inner}:{path or 'TABLE'}"
        )
    module = _import(module_name)
    if not path:
        raise DiagramError(f"{name!r} names no table: give {_choice(module, kinds)}")
    found: Any = module
    for part in path.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            near = _near(path, _tables(module, kinds)) or f": give {_choice(module, kinds)}"
            raise DiagramError(f"{module_name} has no {path}{near}") from None
    if not isinstance(found, kinds):
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise DiagramError(
            f"{name} is a {type(found).__name__}, not a {wanted}: give {_choice(module, kinds)}"
        )
    return found


def _import(name: str) -> ModuleType:
    # the first place of the path is the script's directory when the command is installed
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if name != missing and not name.startswith(f"{missing}."):
            raise DiagramError(f"{name} needs the module {missing}, which is not there") from error
        raise DiagramError(
            f"there is no module {name!r}{_near(name, _modules(name))}"
            " (searched: the current directory and the installed packages)"
        ) from None
    except ValueError:  # an empty part of the name
        raise DiagramError(f"{name!r} is not the name of a module") from None
    except (Exception, SystemExit) as error:  # any code may run in an import
        what = f"{type(error).__name__}: {error}"
        raise DiagramError(f"the import of {name} failed: {what}") from error


def _modules(name: str) -> list[str]:
    """The modules beside the missing one."""
    package, _, _ = name.rpartition(".")
    places = None
    if package:
        try:
            places = import_module(package).__path__
        except Exception:  # then the package is what is missing: look for that
            return _modules(package)
    prefix = f"{package}." if package else ""
    return [f"{prefix}{found.name}" for found in pkgutil.iter_modules(places)]


def _tables(module: ModuleType, kinds: tuple[type, ...]) -> list[str]:
    return [name for name, value in vars(module).items() if isinstance(value, kinds)]


def _choice(module: ModuleType, kinds: tuple[type, ...]) -> str:
    tables = [f"{module.__name__}:{table}" for table in _tables(module, kinds)]
    wanted = " or ".join(kind.__name__ for kind in kinds)
    return " or ".join(tables) or f"another module, because {module.__name__} has no {wanted}"


def _near(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, list(known), 1)
    return f"; did you mean {near[0]}?" if near else ""
