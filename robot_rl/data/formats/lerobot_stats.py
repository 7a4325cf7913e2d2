"""The statistics per feature that a LeRobotDataset carries for normalisation: of each episode and of all together."""

from __future__ import annotations

from typing import Any

import numpy as np


class Statistics:
    """Collect minimum, maximum, mean, standard deviation, count; of pictures per channel, in [0, 1]."""

    def __init__(self) -> None:
        self._count = 0
        self._sums: dict[str, dict[str, np.ndarray]] = {}

    def add(self, features: dict[str, np.ndarray]) -> dict[str, Any]:
        """Count an episode in.

        Args:
            features: Each of shape (T, ...); pictures are uint8 (T, height, width, channels).

        Returns:
            Its own statistics as columns `stats/<feature>/<statistic>`.
        """
        columns: dict[str, Any] = {}
        length = len(next(iter(features.values())))
        for name, values in features.items():
            one = _of(values)
            columns |= {f"stats/{name}/{key}": _listed(value, values) for key, value in one.items() if key != "square"}
            columns[f"stats/{name}/count"] = [length]
            whole = self._sums.get(name)
            share = length / (self._count + length)
            self._sums[name] = one if whole is None else _joined(whole, one, share)
        self._count += length
        self._shapes = {name: values[:0] for name, values in features.items()}
        return columns

    def whole(self) -> dict[str, dict[str, Any]]:
        """Return the statistics of all episodes, by feature and statistic."""
        result: dict[str, dict[str, Any]] = {}
        for name, sums in self._sums.items():
            spread = np.sqrt(np.maximum(sums["square"] - sums["mean"] ** 2, 0.0))
            shown = {"min": sums["min"], "max": sums["max"], "mean": sums["mean"], "std": spread}
            like = self._shapes[name]
            result[name] = {**{key: _listed(value, like) for key, value in shown.items()}, "count": [self._count]}
        return result


def _of(values: np.ndarray) -> dict[str, np.ndarray]:
    """Statistics over the rows (over pixels too, for pictures), each of shape (elements,)."""
    if values.ndim == 4:
        rows = values.reshape(-1, values.shape[-1]) / np.float64(255.0)
    else:
        rows = values.reshape(len(values), -1).astype(np.float64)
    mean, square = rows.mean(0), (rows**2).mean(0)
    return {"min": rows.min(0), "max": rows.max(0), "mean": mean, "std": rows.std(0), "square": square}


def _joined(one: dict[str, np.ndarray], other: dict[str, np.ndarray], share: float) -> dict[str, np.ndarray]:
    """Statistics of both; `share` of the rows are the other's."""
    mixed = {key: (1 - share) * one[key] + share * other[key] for key in ("mean", "square")}
    return {"min": np.minimum(one["min"], other["min"]), "max": np.maximum(one["max"], other["max"]), **mixed}


def _listed(value: np.ndarray, like: np.ndarray) -> Any:
    """As nested lists; those of pictures have shape (channels, 1, 1)."""
    return value.reshape(-1, 1, 1).tolist() if like.ndim == 4 else value.tolist()
