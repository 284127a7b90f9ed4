"""A soak of the Kubernetes shim: random work with faults for as long as one likes: ``python -m bench soak``.

Jobs, gangs of both styles, pods of other schedulers, deletions, cordons, lost nodes, changed queues; a share of
all writes to the API server goes wrong. Once a minute the audit compares the cluster with what is counted. By
default the API server is in memory and the time is simulated, a day in minutes; ``--real MINUTES`` takes a
real control plane, from the folder that ``.ci/cluster`` fills, and real time.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from bench._kubernetes.soaked import Soaked


def main(words: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench soak", description=__doc__)
    parser.add_argument("--hours", type=float, default=24.0, help="simulated (default: 24)")
    parser.add_argument("--real", type=float, metavar="MINUTES", help="on a real control plane")
    parser.add_argument(
        "--faults", type=float, default=0.01, help="share of writes (default: 0.01)"
    )
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(words)
    if options.real is not None:
        from bench._kubernetes import soak_real

        found = soak_real.soak(options.real, options.seed, options.faults, _tell)
    else:
        from bench._kubernetes import soak_simulated

        found = soak_simulated.soak(options.hours, options.seed, options.faults, _tell)
    report(found)


def _tell(text: str) -> None:
    print(text, flush=True)


def report(found: Soaked) -> None:
    """Print what was done and what was found. Ends the process if a difference stood."""
    for name, counts in (("done", found.made), ("faults", found.faults), ("left", found.left)):
        print(f"{name}: " + ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())))
    samples = found.samples
    for name, sample in (
        ("start", samples[0]),
        ("middle", samples[len(samples) // 2]),
        ("end", samples[-1]),
    ):
        print(f"{name}: {sample}")
    for each in found.differences:
        print(each)
    # A pod that the API server has said not to be there is found by the audit: that is no error of ours.
    forgiven = sum(count for kind, count in found.faults.items() if kind.startswith("bind: 404"))
    if sum(samples[-1].stood.values()) > forgiven:
        sys.exit("differences have stood")
