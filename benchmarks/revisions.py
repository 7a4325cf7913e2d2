"""Two revisions side by side: `robot-rl bench` of two checkouts in turn, and the ratio of each figure.

    python benchmarks/revisions.py OLD NEW data learner [--rounds 5]

OLD and NEW are checkouts, each after `make setup`. The order changes each round, so that both get the quiet moments.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1", "MUJOCO_GL": "egl"}


def run_bench(checkout: Path, bench: str) -> dict[str, float]:
    """Return the figures of one benchmark of a checkout, by name."""
    command = [str(checkout.resolve() / ".venv/bin/robot-rl"), "bench", bench, "--json"]
    done = subprocess.run(command, cwd=checkout, env=ENVIRONMENT, stdout=subprocess.PIPE, check=True)
    return dict(_numbers(json.loads(done.stdout), ()))


def _numbers(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, float]]:
    """List the numbers of a nested answer with their dotted names."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _numbers(part, (*path, key))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield ".".join(path), float(value)


def main() -> None:
    """Print, for each figure, the medians of both revisions, their ratio and the range of each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path, help="a checkout")
    parser.add_argument("new", type=Path, help="a checkout")
    parser.add_argument("benches", nargs="+", metavar="BENCH", help="data, env, learner or replay")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    checkouts = {"old": arguments.old, "new": arguments.new}
    print(f"{'figure':50} {'old':>10} {'new':>10} {'new/old':>8}  range of old, of new")
    for bench in arguments.benches:
        rounds: dict[str, list[dict[str, float]]] = {"old": [], "new": []}
        for number in range(arguments.rounds):
            for side in ("old", "new") if number % 2 == 0 else ("new", "old"):
                rounds[side].append(run_bench(checkouts[side], bench))
        for name in rounds["new"][0]:
            old, new = ([figures[name] for figures in rounds[side] if name in figures] for side in ("old", "new"))
            if not old or not median(old):
                print(f"{bench + '.' + name:50} {'-':>10} {median(new):10.4g}")
                continue
            spread = "  ".join(f"{min(figures):.4g} to {max(figures):.4g}" for figures in (old, new))
            ratio = median(new) / median(old)
            print(f"{bench + '.' + name:50} {median(old):10.4g} {median(new):10.4g} {ratio:8.3f}  {spread}")


if __name__ == "__main__":
    main()
