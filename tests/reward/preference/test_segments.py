"""Pairs of segments: what is shown of them, and the reward that is learned from their comparison."""

import json

import numpy as np
import pytest
import torch
from model_server import ModelServer, reply
from running import robot_rl
from scenes import FRAMES, stamped_store

from robot_rl.config.labelling import FramesConfig, LabelConfig
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import ConfigError, DataError
from robot_rl.reward.budget import Budget
from robot_rl.reward.label_store import LabelStore
from robot_rl.reward.labels.units import Units
from robot_rl.reward.preference.bradley_terry import RewardEnsemble
from robot_rl.reward.preference.pairs import combine_orders
from robot_rl.reward.preference.rewards import segment_features
from robot_rl.reward.vlm.make_backend import make_backend

SEGMENTS = LabelConfig(kind="preference", pairs=40, segment=6, frames=FramesConfig(count=3))


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return stamped_store(tmp_path_factory.mktemp("segments") / "s", 5)


def prefers_larger_end(request):
    stamps = request.stamps
    half = len(stamps) // 2
    better = "first" if stamps[half - 1] > stamps[-1] else "second"
    return reply(json.dumps({"seen": f"{stamps}", "closer": better}))


def test_segments_have_their_length_and_the_two_of_a_pair_differ(path):
    with EpisodeStore.open(path) as store:
        lengths = {row.episode_id: row.length for row in store.summaries()}
        pairs = [json.loads(unit.subject) for unit in Units(store, SEGMENTS, "push it")]
    for first, second in pairs:
        assert first != second
        for clip in (first, second):
            start, middle, end = clip["rows"]
            assert (end - start, middle - start) == (6, 3)
            assert end <= lengths[clip["episode_id"]]


def test_there_must_be_two_segments(tmp_path):
    path = stamped_store(tmp_path / "s", 1)
    with EpisodeStore.open(path) as store:
        (row,) = store.summaries()
        long = LabelConfig(kind="preference", segment=row.length, frames=FramesConfig(count=3))
        with pytest.raises(DataError, match=f"fewer than two segments of {row.length} steps"):
            next(iter(Units(store, long, "push it")))


def test_a_server_is_shown_two_clips_and_its_answers_become_pairs_of_segments(path):
    flags = ("--kind", "preference", "--set", "task=push it", "--set", "segment=6", "--set", "frames.count=3")
    with ModelServer(prefers_larger_end) as server:
        done = robot_rl("label", "run", path, "--url", server.url, *flags, "--set", "pairs=4", "--name", "clips")
        assert done.returncode == 0, done.stderr
        request = server.requests[0]
    assert len(request.images) == 6
    assert request.words.count("Frame 1:") == request.words.count("Frame 3:") == 2
    assert "In which clip" in request.words
    with LabelStore(path) as labels:
        assert labels.identity("clips")["segment"] == 6
        known = combine_orders(labels.labels("clips"))
    assert len(known.pairs) == 4
    assert known.flip_rate == 0.0
    for pair in known.pairs:
        ends = [int(name.removeprefix("episode-")) * FRAMES + rows[-1] for name, rows in pair.shown]
        assert pair.value == float(ends[0] > ends[1])
        assert [len(rows) for _, rows in pair.shown] == [3, 3]


@pytest.mark.parametrize("changes", [{"kind": "success"}, {"frames": FramesConfig(count=1)}])
def test_segments_are_for_preferences_and_need_two_frames(changes):
    settings = {"kind": "preference", "segment": 6, **changes}
    with pytest.raises(ConfigError, match=r"segment=6 is for kind=preference with frames\.count of at least 2"):
        make_backend(LabelConfig(**settings), Budget(LabelConfig().budget))


def test_the_reward_of_moments_is_found_in_comparisons_of_segments():
    """The better segment is the one whose mean of the first feature is larger; that feature is the reward."""
    generator = torch.Generator().manual_seed(0)
    first, second = torch.randn(2, 300, 3, 2, generator=generator)
    ensemble = RewardEnsemble(2, torch.Generator().manual_seed(0), members=3, hidden_sizes=(32, 32))
    value = (first[..., 0].mean(1) > second[..., 0].mean(1)).float()
    info = ensemble.fit(first, second, value, steps=250, learning_rate=1e-3)
    moments = torch.randn(300, 2, generator=generator)
    assert info.accuracy > 0.85
    assert torch.corrcoef(torch.stack([ensemble(moments), moments[:, 0]]))[0, 1] > 0.9
    near, far = ensemble.pair_disagreement(first, second), ensemble.pair_disagreement(first, first)
    assert far.max() < 1e-6 < 1e-2 < near.mean(), "nothing can be learned from a segment compared with itself"


def test_a_segment_of_fewer_frames_counts_as_much_as_another():
    moments = {"a": torch.arange(10.0)[:, None], "b": torch.arange(10.0)[:, None] + 100}
    first, second = segment_features(moments, [(("a", (1, 4, 7)), ("b", (0,))), (("b", (2, 3)), ("a", (0, 1, 2)))])
    assert first[..., 0].tolist() == [[1, 4, 7], [102, 102, 103]]
    assert second[..., 0].tolist() == [[100, 100, 100], [0, 1, 2]]
    assert np.shape(segment_features(moments, [])[0]) == (0, 1, 1)
