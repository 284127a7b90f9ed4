"""``python -m bench [name ...] [--json]``: run all measurements, or those named."""

import argparse
import dataclasses
import importlib
import json
import pkgutil

import bench
from bench import Figure


def main() -> None:
    names = sorted(m.name for m in pkgutil.iter_modules(bench.__path__) if m.name[0] != "_")
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure.")
    parser.add_argument("name", nargs="*", help=f"what to measure: {', '.join(names)}")
    parser.add_argument("--json", action="store_true", help="write JSON instead of a table")
    options = parser.parse_args()
    if unknown := set(options.name) - set(names):
        parser.error(f"no measurement is named {min(unknown)!r}")
    figures = {}
    for name in options.name or names:
        module = importlib.import_module(f"bench.{name}")
        if hasattr(module, "measure"):
            figures[name] = module.measure()
    if options.json:
        plain = {name: [dataclasses.asdict(f) for f in found] for name, found in figures.items()}
        print(json.dumps(plain, indent=1))
    else:
        for name, found in figures.items():
            print_table(name, found)


def print_table(name: str, figures: list[Figure]) -> None:
    width = max((len(figure.name) for figure in figures), default=0)
    print(name)
    for figure in figures:
        value = f"{figure.value:,.0f}" if figure.value >= 100 else f"{figure.value:.1f}"
        print(f"  {figure.name:<{width}}  {value:>10} {figure.unit}")


if __name__ == "__main__":
    main()
