from dataclasses import replace

import numpy as np
import pytest
from tagged import episode

from robot_rl.run.control_timing import ControlTiming

MS = 1_000_000


def test_percentiles_are_those_of_the_stamps():
    timing = ControlTiming(0.1)
    assert timing.summary() == {"period_error_ms": None, "observation_to_action_ms": None}
    late = np.array([0, 0, 3, 3, 1]) * MS  # a command 3 ms late, then one that is 1 ms late
    stamps = np.arange(5) * 100 * MS + late
    seen = np.append(stamps - 20 * MS, stamps[-1])
    timing.on_end(replace(episode(0, 5), stamp_action=stamps, stamp_obs=seen), None)
    summary = timing.summary()
    assert summary["period_error_ms"]["max"] == pytest.approx(3.0)
    assert summary["period_error_ms"]["p50"] == pytest.approx(1.0)  # of 0, 3, 0, 2
    assert summary["observation_to_action_ms"] == pytest.approx({"p50": 20.0, "p99": 20.0, "max": 20.0})
