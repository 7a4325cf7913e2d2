"""`robot-rl calibrate sim`: a simulated arm with planted friction, stiffness and delay is found again from episodes."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch

from calibration.arm.arm_identification import PARAMETERS, identify_arm
from calibration.arm.episode_motions import motions_of
from calibration.result import SimulatedArm, load_result
from robot_rl.cli.main import main
from robot_rl.config.components import SimulationConfig
from robot_rl.config.load import load_config
from robot_rl.data.chunk_layout import ChunkLayout
from robot_rl.data.schema import Source
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.registry import make_workcell
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.task import WorkcellOptions
from robot_rl.errors import CalibrationError, DataError
from robot_rl.learn.actor import Rollout, StoreRecorder
from robot_rl.learn.networks.networks import Policy
from robot_rl.learn.perception import Perception

TRUTH = SimulationConfig(
    large_joint_friction=0.9,
    small_joint_friction=0.35,
    large_joint_damping=6.0,
    small_joint_damping=1.5,
    translation_stiffness=1600.0,
    rotation_stiffness=80.0,
    command_delay=0.018,
)
EPISODES, STEPS = 8, 24


class ToAndFro(Policy):
    """Draws an action every third step, small or large, upwards at first: motion without contact."""

    def __init__(self, size):
        torch.nn.Module.__init__(self)
        self.chunk = ChunkLayout(1, size)
        self.generator = torch.Generator()
        self._rng, self._steps, self._size = np.random.default_rng(7), 0, size

    def begin(self, seed):
        """Nothing of an episode is remembered, and it draws by itself."""

    def act(self, state, images=None, *, deterministic):
        if self._steps % 3 == 0:
            self._action = self._rng.uniform(-1, 1, self._size) * self._rng.choice([0.3, 1.0])
            self._action[2] = -abs(self._action[2]) if self._steps % 30 < 15 else 0.3 * self._action[2]
        self._steps += 1
        return torch.from_numpy(self._action.astype(np.float32))[None]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("recorded") / "episodes"
    cell = make_workcell("peg_insert", WorkcellOptions(simulation=TRUTH))
    env = RobotEnv(cell)
    env.interventions = False
    with EpisodeStore.create(path) as store:
        rollout = Rollout(
            env, ToAndFro(env.spec_task.action_size), Perception(env.observation_specs), (0,), [StoreRecorder(store)]
        )
        for number in range(EPISODES):
            rollout.begin(number, f"episode-{number}")
            for step in range(STEPS):
                if rollout.step(deterministic=False, last=step == STEPS - 1) is not None:
                    break
    return path


@pytest.fixture(scope="module")
def motions(store):
    with EpisodeStore.open(store) as opened:
        return list(motions_of(opened.episodes(), make_workcell("peg_insert").task.spec))


def test_a_motion_is_what_was_sent_and_measured(store, motions):
    with EpisodeStore.open(store) as opened:
        episode = opened.read("episode-0")
    motion = motions[0]
    assert motion.name == "episode-0"
    assert len(motion.poses) == len(motion.stamps) == len(motion.targets) + 1
    reset = np.array(episode.metadata["T_base_reset"])
    assert motion.poses[0].vector() == pytest.approx(reset, abs=1e-6)
    played = make_workcell("peg_insert").playback(motion, TRUTH)  # nothing but noise is left
    errors = [a.position - b.position for a, b in zip(motion.poses, played, strict=True)]
    assert np.abs(errors).max() < 6 * 5e-5


def test_motions_end_at_contact_and_where_the_arm_was_held(store):
    task = make_workcell("peg_insert").task.spec
    with EpisodeStore.open(store) as opened:
        episode = opened.read("episode-0")
    wrench, source = episode.observations["state/wrench"].copy(), episode.source.copy()
    wrench[12:, 0] = 10.0
    source[8] = Source.HOLD
    touched = replace(episode, observations={**episode.observations, "state/wrench": wrench})
    held = replace(episode, source=source)
    lengths = [len(motion.targets) for motion in motions_of([episode, touched, held], task)]
    assert lengths == [len(motions_before(episode, task)), 11, 8]
    with pytest.raises(DataError, match="lacks its start pose"):
        next(motions_of([replace(episode, metadata={})], task))
    blind = {key: column for key, column in episode.observations.items() if key != "state/wrench"}
    with pytest.raises(DataError, match="episode-0 has no forces"):  # of an arm that measures none
        next(motions_of([replace(episode, observations=blind)], task))


def test_a_motion_ends_where_a_wrench_is_commanded(store):
    task = make_workcell("peg_insert").task.spec
    pushing = replace(task, wrench_axes=("z",), action_force=5.0)
    with EpisodeStore.open(store) as opened:
        episode = opened.read("episode-0")
    entries = np.zeros((len(episode), 1), np.float32)
    entries[9:] = 0.5
    action = np.concatenate((episode.action, entries), axis=1)
    more = replace(episode, action=action, action_policy=action, action_base=None)
    targets = motions_before(more, pushing)
    assert len(targets) == 9
    whole = motions_before(episode, task)
    assert all(np.array_equal(a.position, b.position) for a, b in zip(targets, whole, strict=False))


def motions_before(episode, task):
    return next(motions_of([episode], task)).targets


@pytest.mark.slow
def test_planted_settings_are_found_and_motions_held_out_fit(store, tmp_path, capsys):
    out, config = tmp_path / "arm.yaml", tmp_path / "config.yaml"
    command = ["calibrate", "sim", store, "--task", "peg_insert", "--robot", "fr3", "--out", out, "--json"]
    code = main([str(word) for word in (*command, "--train-config", config)])
    said = json.loads(capsys.readouterr().out)
    assert code == 0, said["quality"]
    result, quality = load_result(out, SimulatedArm)
    for name in PARAMETERS:
        assert getattr(result.settings, name) == pytest.approx(getattr(TRUTH, name), rel=0.05), name
    figures = quality.figures
    assert figures["held_out_rms_mm"] < 0.5 * figures["held_out_rms_before_mm"]
    assert figures["held_out_rms_deg"] < 0.5 * figures["held_out_rms_before_deg"]
    assert asdict(load_config(config, []).simulation) == asdict(result.settings)
    assert "data:image/png" in out.with_suffix(".html").read_text()


def test_motions_that_cannot_tell_are_refused(motions, store, tmp_path, capsys):
    playback = make_workcell("peg_insert").playback
    with pytest.raises(CalibrationError, match="needed are 8 with 150"):
        identify_arm(playback, motions[:3], "fr3")
    still = [
        replace(motion, poses=(motion.poses[0],) * len(motion.poses), targets=(motion.poses[0],) * len(motion.targets))
        for motion in motions
    ]
    with pytest.raises(CalibrationError, match="needed are 20 mm; move it more"):
        identify_arm(playback, still[:1] * 10, "fr3")
    command = ["calibrate", "sim", str(store), "--task", "reach", "--robot", "fr3", "--out", str(tmp_path / "arm.yaml")]
    assert main(command) == 1
    assert "has episodes of peg_insert, not of reach" in capsys.readouterr().err
    assert not (tmp_path / "arm.yaml").exists()
