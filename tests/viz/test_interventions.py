"""Take-overs are found as they were, and drawn."""

from dataclasses import replace

import numpy as np
from PIL import Image
from tagged import episode

from robot_rl.data.interventions import interventions
from robot_rl.data.schema import Source
from robot_rl.data.store.store import EpisodeStore
from robot_rl.viz.interventions import intervention_plot

P, H, R = Source.POLICY, Source.HUMAN, Source.HOLD


def recorded(number, sources):
    """An episode with a step every 0.1 s."""
    made = episode(number, len(sources), sources=sources)
    return replace(made, stamp_obs=np.arange(len(sources) + 1) * 100_000_000)


def test_rests_belong_to_a_take_over_and_the_policy_ends_it():
    found = interventions(recorded(0, [P, H, H, R, H, R, R, P, P, H, P, R]))
    assert [(one.start, one.end) for one in found] == [(1, 5), (9, 10)]
    np.testing.assert_allclose([one.seconds for one in found], [0.4, 0.1])
    assert interventions(recorded(1, [P, P, R])) == []
    assert [(one.start, one.end) for one in interventions(recorded(2, [H, H]))] == [(0, 2)]


def test_a_picture_with_and_without_take_overs(tmp_path):
    with EpisodeStore.create(tmp_path / "store") as store:
        intervention_plot(store, [], tmp_path / "empty.png")
        store.append(recorded(0, [P, H, H, P]))
        store.append(recorded(1, [P, P, P, P]))
        log = [{"kind": "reason", "text": "stuck"}, {"kind": "note", "text": "lunch"}]
        intervention_plot(store, log, tmp_path / "plot.png")
    sizes = [Image.open(tmp_path / name).size for name in ("empty.png", "plot.png")]
    assert sizes[0] == sizes[1]
