"""The noise with which a policy explores: standard normal at each moment, and correlated in time.

Independent noise averages out over a few steps: it shakes an arm where it is. What has to be found a few centimetres
away is found by noise that keeps its direction for a while.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from torch import Tensor


class ExplorationNoise:
    """A sum of autoregressive processes, z_t = rho z_{t-1} + sqrt(1 - rho^2) e_t with rho = exp(-1 / tau).

    Each has an equal part of the variance. With times that are apart by a constant factor the spectrum falls about as
    1 / f between them: pink noise, which explores better than white or strongly correlated noise over many tasks
    (Eberhard et al., "Pink Noise Is All You Need", ICLR 2023). What is drawn at any one moment is standard normal, so
    that the policy is the same Gaussian.

    Args:
        times: tau of each process, in decisions of the policy; 0 is white noise, and so is none at all.
    """

    def __init__(self, times: Sequence[float] = ()) -> None:
        self._decays = [math.exp(-1.0 / time) if time else 0.0 for time in times or (0.0,)]
        self._parts: list[Tensor] | None = None

    def restart(self) -> None:
        """Forget what was drawn, e.g. because an episode begins."""
        self._parts = None

    def draw(self, fresh: Callable[[], Tensor]) -> Tensor:
        """Return the next noise; `fresh` draws standard normal noise of its shape, which is always the same."""
        drawn = [fresh() for _ in self._decays]
        if self._parts is not None:
            pairs = zip(self._decays, self._parts, drawn, strict=True)
            drawn = [rho * old + math.sqrt(1.0 - rho**2) * new if rho else new for rho, old, new in pairs]
        self._parts = drawn
        return sum(drawn[1:], drawn[0]) / math.sqrt(len(drawn))
