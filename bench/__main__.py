"""``python -m bench [name ...] [--full] [--json]``: run all measurements, or the named ones.

``python -m bench quality`` and ``python -m bench gpus`` compare schedules rather than costs, ``python -m bench
kubernetes`` needs a control plane, and ``python -m bench soak`` runs for a long time: they have options of their own.
"""

import argparse
import dataclasses
import importlib
import json
import pkgutil
import platform
import sys
from pathlib import Path

import bench
from bench import Figure
from bench._support import sizes

#: modules that run only by name, with options of their own
_BY_NAME = {
    "gpus": "bench.gpus",
    "quality": "bench.quality",
    "kubernetes": "bench.kubernetes",
    "soak": "bench._kubernetes.soak",
}


def main() -> None:
    if sys.argv[1:] and sys.argv[1] in _BY_NAME:
        importlib.import_module(_BY_NAME[sys.argv[1]]).main(sys.argv[2:])
        return
    found = {module.name for module in pkgutil.iter_modules(bench.__path__)} - set(_BY_NAME)
    names = sorted(name for name in found if name[0] != "_")
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure.")
    parser.add_argument("name", nargs="*", help=f"what to measure: {', '.join(names)}")
    parser.add_argument("--json", action="store_true", help="write JSON instead of a table")
    parser.add_argument(
        "--full", action="store_true", help="all sizes (up to an hour) instead of the small ones"
    )
    parser.add_argument("--trace", type=Path, help="a trace for `simulate`, beside the workload")
    parser.add_argument(
        "--admission",
        choices=("atomic", "whole", "incremental"),
        help="how gangs start (`gang.admission`), if not by default",
    )
    options = parser.parse_args()
    if unknown := set(options.name) - set(names):
        parser.error(f"no measurement is named {min(unknown)!r}")
    sizes.FULL = options.full
    sizes.TRACE = options.trace
    sizes.ADMISSION = options.admission
    figures: dict[str, list[Figure]] = {}
    for name in options.name or names:
        figures[name] = importlib.import_module(f"bench.{name}").measure()
        if not options.json:
            print_table(name, figures[name])
    if options.json:
        document = {
            "python": platform.python_version(),
            "machine": platform.machine(),
            "figures": {n: [dataclasses.asdict(f) for f in found] for n, found in figures.items()},
        }
        json.dump(document, sys.stdout, indent=1)
        print()


def print_table(name: str, figures: list[Figure]) -> None:
    width = max((len(figure.name) for figure in figures), default=0)
    print(name)
    for figure in figures:
        digits = 0 if abs(figure.value) >= 100 else 1 if abs(figure.value) >= 10 else 2
        goal = ""
        if figure.goal is not None:
            met = "met" if figure.value <= figure.goal else "MISSED"
            goal = f"   goal {figure.goal:g}, {met}"
        print(f"  {figure.name:<{width}}  {figure.value:>12,.{digits}f} {figure.unit:<7}{goal}")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
