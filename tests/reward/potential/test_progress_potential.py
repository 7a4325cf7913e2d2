"""Progress as a potential, while an episode goes on: the same numbers from recorded and from running episodes."""

import numpy as np
import pytest
import torch
from pushing import scene
from running import one_thread

from robot_rl.config.components import EncoderConfig, TrainConfig
from robot_rl.errors import DataError, SpecError, StepOrderError
from robot_rl.learn.perception import make_perception
from robot_rl.reward.heads.frame_features import FrameFeatures
from robot_rl.reward.heads.progress_head import MOST_FRAMES, ProgressHead, ProgressNet, read_progress_head_file
from robot_rl.reward.heads.success_head import SuccessHead
from robot_rl.reward.potential.progress_potential import ProgressPotential
from robot_rl.spec import ArraySpec

STEPS = 40
SPECS = {
    "state/tcp": ArraySpec((3,)),
    **{f"images/{name}": ArraySpec((64, 64, 3), "uint8", low=0, high=255) for name in ("front", "wrist")},
}


@pytest.fixture(autouse=True)
def _one_thread():
    with one_thread():
        yield


@pytest.fixture(scope="module")
def frames():
    rng = np.random.default_rng(0)
    return np.stack([scene(rng, distance) for distance in np.linspace(1, 0, STEPS)])


@pytest.fixture(scope="module")
def head(frames):
    """A head that says something else of every frame: nothing is trained, but nothing is constant either."""
    features = FrameFeatures("bundled", 64)(frames[::4])
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net, basis = ProgressNet(4).eval(), torch.randn(features.shape[1], 4)
        torch.nn.init.normal_(net.last.weight)
    spread = ((features - features.mean(0)) @ basis).std(0)
    return ProgressHead("bundled", 64, "front", "push", (), features.mean(0), basis / spread, net)


def test_each_frame_is_judged_as_the_last_of_a_few_evenly_spaced_ones(head, frames):
    features = torch.randn(STEPS, len(head.mean), generator=torch.Generator().manual_seed(1))
    so_far = ProgressPotential(head, 0.5).begin()
    told = np.array([so_far(one) for one in features])
    assert 0.0 <= told.min() < told.max() <= 0.5
    np.testing.assert_allclose(told[:MOST_FRAMES], 0.5 * head(features[:MOST_FRAMES]), atol=1e-6)  # all of them
    rows = np.rint(np.linspace(0, STEPS - 1, MOST_FRAMES)).astype(int)
    assert told[-1] == pytest.approx(0.5 * float(head(features[rows])[-1]), abs=1e-6)
    again = ProgressPotential(head, 0.5).begin()
    assert [again(one) for one in features[:5]] == told[:5].tolist()


def observations(frames):
    return [
        {"state/tcp": np.full(3, t, np.float32), "images/front": frame, "images/wrist": frame[::-1].copy()}
        for t, frame in enumerate(frames)
    ]


def perceived(see, seen):
    """Potentials of an episode as it goes on, which policies look at first."""
    potentials = []
    for t, one in enumerate(seen):
        see.view(one)
        potentials.append((see if t else see.first)(one).potential)
    return np.array(potentials)


class Blind(ProgressPotential):
    """Must not look by itself."""

    def encode(self, frame):
        raise AssertionError("the features are there already")


@pytest.mark.parametrize("crops", [1, 2])
def test_features_that_the_policy_sees_by_are_not_computed_twice(head, frames, crops):
    seen = observations(frames[:6])
    settings = EncoderConfig(image_size=64, cameras=("wrist", "front"), crops=crops, precision="float32")
    config = TrainConfig(observations="pixels", encoder=settings)
    shared = perceived(make_perception(SPECS, config, Blind(head, 1.0)), seen)
    own = ProgressPotential(head, 1.0)
    np.testing.assert_allclose(perceived(make_perception(SPECS, TrainConfig(), own), seen), shared, atol=1e-3)
    exact = FrameFeatures("bundled", 64)(frames[:6])
    np.testing.assert_allclose(shared, head(exact), atol=1e-3)


def test_recorded_episodes_have_the_potentials_that_they_had_when_they_were_played(head, frames):
    see = make_perception(SPECS, TrainConfig(), ProgressPotential(head, 1.0))
    assert see.spec.potential == 1.0
    seen = observations(frames[:8])
    played = perceived(see, seen[:4])
    recorded = {key: np.stack([one[key] for one in seen]) for key in seen[0]}
    of_rows = [percept.potential for percept in see.of_rows(recorded)]
    np.testing.assert_array_equal(of_rows[:4], played)
    assert [see(one).potential for one in seen[4:]] == of_rows[4:]  # the episode that goes on has not noticed


def test_what_it_cannot_judge_is_an_error(head, tmp_path):
    see = make_perception(SPECS, TrainConfig(), ProgressPotential(head, 1.0))
    with pytest.raises(StepOrderError, match="start it with its first observation"):
        see(observations(np.zeros((1, 64, 64, 3), np.uint8))[0])
    with pytest.raises(SpecError, match="missing images/front, by which rewards are shaped"):
        see.first({"state/tcp": np.zeros(3, np.float32)})
    SuccessHead("bundled", 64, "front", "push", (), *(torch.zeros(1) for _ in range(4))).write(tmp_path / "success.pt")
    with pytest.raises(
        DataError, match="is no progress head: it is a head for labels of success; `robot-rl label train --kind"
    ):
        read_progress_head_file(tmp_path / "success.pt")
    with pytest.raises(DataError, match="no progress head there; `robot-rl label train --kind progress` makes one"):
        read_progress_head_file(tmp_path / "none.pt")
