"""A base cloned from cameras, with an encoder that is frozen and with one that is trained."""

import numpy as np
import pytest

from robot_rl.base_policy.contract import BaseSetup, Stamped, make_base
from robot_rl.config.components import BaseConfig, EncoderConfig, ReplayConfig, TrainConfig
from robot_rl.data.schema import Episode, Source
from robot_rl.env.environment import EnvironmentSpec
from robot_rl.spec import ArraySpec

SIZE, MARK, STEPS, COUNT = 64, 16, 4, 20
TASK = EnvironmentSpec("line", max_steps=30, control_period=0.1, action_size=2)
OBSERVATIONS = {"images/front": ArraySpec((SIZE, SIZE, 3), "uint8")}


def demonstration(number):
    """The way to go is where the white square is, 1 at an edge of the frame, and nothing else tells it."""
    way = np.random.default_rng(number).uniform(-1, 1, 2).astype(np.float32)
    frame = np.zeros((SIZE, SIZE, 3), np.uint8)
    row, column = ((way + 1) / 2 * (SIZE - MARK)).astype(int)
    frame[row : row + MARK, column : column + MARK] = 255
    last = np.arange(STEPS) == STEPS - 1
    return Episode(
        episode_id=f"demo-{number}",
        observations={"images/front": np.repeat(frame[None], STEPS + 1, 0)},
        action=np.repeat(way[None], STEPS, 0),
        action_policy=np.zeros((STEPS, 2), np.float32),
        source=np.full(STEPS, Source.SCRIPT, np.int8),
        reward=last.astype(np.float32),
        terminated=last,
        truncated=np.zeros(STEPS, bool),
        stamp_obs=10**9 + 10**8 * np.arange(STEPS + 1),
        stamp_action=10**9 + 10**8 * np.arange(STEPS),
        metadata={"seed": number, "success": True},
    )


@pytest.mark.parametrize("encoder", ["conv", "bundled"])
@pytest.mark.parametrize("kind", ["clone", "chunk"])
def test_it_goes_where_it_sees_that_was_demonstrated(encoder, kind):
    config = TrainConfig(
        task="line",
        observations="pixels",
        base=BaseConfig(kind=kind, updates=300, horizon=2, history=1),
        replay=ReplayConfig(batch_size=32),
        encoder=EncoderConfig(encoder, ("front",), SIZE, shift=2),
    )
    base = make_base(BaseSetup("", TASK, OBSERVATIONS, config))
    figures = base.train([demonstration(number) for number in range(COUNT)], lambda *report: None)
    assert (figures["episodes"], figures["steps"]) == (COUNT, COUNT * STEPS)
    errors, ways = [], []
    base.begin(0, None)
    for number in range(COUNT):
        shown = demonstration(number)
        chunk = base.plan([Stamped(10**9, {key: rows[0] for key, rows in shown.observations.items()})])
        errors.append(np.abs(chunk.actions[0] - shown.action[0]).mean())
        ways.append(np.abs(shown.action[0]).mean())
    assert np.mean(errors) < 0.5 * np.mean(ways)
