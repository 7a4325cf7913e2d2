"""How often labellers are called fit by the sequential test and by the gate's interval, and how long a person looks.

    python benchmarks/certificate_level.py

Each run draws failures one after the other. "Once" reads the interval after 1,000 failures, "always" after each.
"""

from __future__ import annotations

import numpy as np

from robot_rl.reward.validation.gates import Fitness
from robot_rl.reward.validation.sequential import Trials, judge
from robot_rl.statistics import wilson_interval

BOUND, FAILURES, RUNS = 0.01, 1000, 2000
SECONDS_PER_LOOK = 10.0
"""A person looks at the end of one episode [s]; an assumption."""


def first_fit(cumulated: np.ndarray) -> tuple[int | None, int | None, bool]:
    """Return after how many failures the sequential test and the interval first call it fit, and the interval's last.

    Args:
        cumulated: Faults after each failure, shape (FAILURES,), int.
    """
    sequential = interval = None
    for total, faults in enumerate(cumulated.tolist(), 1):
        if sequential is None and FITS_AT[faults] <= total:
            sequential = total
        if interval is None and HOLDS_AT[faults] <= total:
            interval = total
    return sequential, interval, bool(HOLDS_AT[int(cumulated[-1])] <= FAILURES)


def _least(holds: list[bool]) -> int:
    """Return the least total at which something holds; it then holds for every higher one."""
    return next((total for total, one in enumerate(holds, 1) if one), FAILURES + 1)


FITS_AT = [
    _least([k <= n and judge(Trials(k, n), BOUND) is Fitness.FIT for n in range(1, FAILURES + 1)]) for k in range(60)
]
HOLDS_AT = [_least([k <= n and wilson_interval(k, n)[1] <= BOUND for n in range(1, FAILURES + 1)]) for k in range(60)]


def main() -> None:
    """Print one line for each rate of faults."""
    print("rate     sequential  interval, once  interval, always   failures until fit (median, 90 %)   minutes")
    for rate in (0.0, 0.001, 0.002, 0.003, 0.01, 0.0101, 0.012, 0.02):
        rng = np.random.default_rng(round(rate * 1e6))
        runs = [first_fit(np.cumsum(rng.random(FAILURES) < rate)) for _ in range(RUNS)]
        fit = [sequential for sequential, _, _ in runs if sequential is not None]
        shares = [
            len(fit) / RUNS,
            sum(last for *_, last in runs) / RUNS,
            sum(one is not None for _, one, _ in runs) / RUNS,
        ]
        long = np.sort([*fit, *[np.inf] * (RUNS - len(fit))])
        median, most = long[RUNS // 2], long[int(0.9 * RUNS)]
        print(
            f"{rate:<8g} {shares[0]:10.1%} {shares[1]:15.1%} {shares[2]:17.1%}   {median:14g} {most:14g}"
            f"{median * SECONDS_PER_LOOK / 60:16.0f}"
        )


if __name__ == "__main__":
    main()
