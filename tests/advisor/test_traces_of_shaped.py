"""What the advisor looks at of a run whose rewards were shaped by a head that sees."""

import json

import numpy as np
import pytest
import torch
from running import SMALL

from robot_rl.advisor.traces import read_traces
from robot_rl.cli.main import main
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.registry import make_environment
from robot_rl.errors import RunDirectoryError
from robot_rl.learn.checkpoint import load_checkpoint
from robot_rl.learn.local_learner import LocalLearner
from robot_rl.learn.perception import make_perception
from robot_rl.reward.heads.frame_features import FrameFeatures
from robot_rl.reward.heads.progress_head import ProgressHead, ProgressNet
from robot_rl.reward.potential.progress_potential import ProgressPotential
from robot_rl.run.directory.run_directory import RunDirectory

SIZE, SCALE = 32, 0.5


def head_of(instruction):
    size = FrameFeatures("bundled", SIZE)(np.zeros((1, SIZE, SIZE, 3), np.uint8)).shape[1]
    torch.manual_seed(0)
    basis, net = torch.randn(size, 3) / size**0.5, ProgressNet(3).eval()
    torch.nn.init.normal_(net.last.weight)
    return ProgressHead("bundled", SIZE, "front", instruction, (), torch.zeros(size), basis, net)


@pytest.mark.slow
def test_values_are_what_critics_expect_and_the_potential(tmp_path):
    env = make_environment("reach")
    env.close()
    head = head_of(env.environment_spec.instruction)
    head.write(tmp_path / "head.pt")
    run, evaluated = tmp_path / "run", tmp_path / "evaluated"
    shaping = [
        f"reward.shaping.head={tmp_path / 'head.pt'}",
        f"reward.shaping.scale={SCALE}",
        "reward.allow_unfit=true",
    ]
    settings = [part for one in shaping for part in ("--set", one)]
    assert main(["train", "reach", *SMALL, *settings, "--out", str(run)]) == 0
    assert main(["eval", str(run), "--episodes", "1", "--record", str(evaluated)]) == 0
    ((trace, _),), _ = read_traces(run, evaluated)

    config = RunDirectory.read_config(run)
    learner = LocalLearner(env.environment_spec, make_perception(env.observation_specs, config), config)
    learner.load_state_dict(load_checkpoint(run / "checkpoint.pt")["learner"])
    potential = ProgressPotential(head, SCALE)
    so_far = potential.begin()
    with EpisodeStore.open(evaluated) as store:
        (episode,) = store.episodes()
    expected = []
    for row, frame in enumerate(episode.observations["images/front"]):
        if row == 0:
            learner.on_start("again", episode.seen(0))
        else:
            learner.on_step(episode.step(row - 1), episode.seen(row))
        expected.append(learner.value + so_far(potential.encode(frame)))
    np.testing.assert_allclose(trace.values, expected, atol=1e-5)
    assert np.ptp(expected) > 0.01


def test_the_run_of_a_robot_of_a_fleet_is_refused_with_where_its_learner_is(tmp_path):
    run = tmp_path / "run"
    assert main(["train", "reach", *SMALL, "--set", "env_steps=20", "--out", str(run)]) == 0
    facts = json.loads((run / "provenance.json").read_text())
    (run / "provenance.json").write_text(json.dumps({**facts, "fleet_robot": "arm1"}))
    with pytest.raises(
        RunDirectoryError, match=r"run is what arm1, a robot of a fleet, recorded; .*`learner`: name that"
    ):
        read_traces(run, tmp_path / "store")
    for flags in (["--resume", "--out", str(run)], ["--fork", str(run)], ["reach", "--init-from", str(run)]):
        before = (run / "metrics.jsonl").read_bytes()
        assert main(["train", *flags]) != 0
        assert (run / "metrics.jsonl").read_bytes() == before
