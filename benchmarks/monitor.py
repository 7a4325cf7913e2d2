"""Time until the monitor detects a labeller that rewards failures.

    python benchmarks/monitor.py
    python benchmarks/monitor.py --episode 12 --success 0.3 0.9 --errors 0.1

Simulated hours of robot time: episodes of equal length, of which a share succeeds. The labeller labels every success
as one, and a given share of the failures, too. Nothing is trained; the monitor is that of a training. It detects errors
on failures only: the fewer episodes fail, the longer it takes, and the less harm the error does.
"""

from __future__ import annotations

import argparse

import numpy as np

from robot_rl.reward.labels.hack_monitor import HackMonitor


def first_alarm(error: float, success: float, episodes: int, rng: np.random.Generator) -> int | None:
    """Return the number of episodes to the first alarm; None if there is none."""
    monitor = HackMonitor()
    succeeded, deceived = rng.uniform(size=(2, episodes)) < np.array([[success], [error]])
    for number, (good, wrong) in enumerate(zip(succeeded.tolist(), deceived.tolist(), strict=True)):
        if monitor.add(good or wrong, good) is not None:
            return number + 1
    return None


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episode", type=float, default=10.0, metavar="S", help="robot time of one (default: 10)")
    parser.add_argument("--success", type=float, nargs="+", default=[0.0, 0.3, 0.6, 0.9], help="shares that succeed")
    parser.add_argument("--errors", type=float, nargs="+", default=[0.01, 0.02, 0.05, 0.1, 0.2],
                        help="shares of the failures that are rewarded")  # fmt: skip
    parser.add_argument("--hours", type=int, default=2000, help="drawn for each figure (default: 2000)")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.episode <= 0 or arguments.hours < 1:
        parser.error("--episode and --hours must be positive")
    episodes = round(3600 / arguments.episode)
    print(f"{arguments.hours} hours of {episodes} episodes each: share with an alarm, and minutes until the first one")
    print("| failures rewarded | " + " | ".join(f"{share:.0%} succeed" for share in arguments.success) + " |")
    print("|---|" + "---|" * len(arguments.success))
    for error in arguments.errors:
        cells = []
        for success in arguments.success:
            rng = np.random.default_rng([arguments.seed, round(1e6 * error), round(1e6 * success)])
            hours = (first_alarm(error, success, episodes, rng) for _ in range(arguments.hours))
            found = [number for number in hours if number is not None]
            minutes = f", {np.median(found) * arguments.episode / 60:.0f} min" if found else ""
            cells.append(f"{len(found) / arguments.hours:.1%}{minutes}")
        print(f"| {error:.0%} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
