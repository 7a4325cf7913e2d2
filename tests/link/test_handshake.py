import dataclasses

import pytest

from robot_rl.config.components import SACConfig, TrainConfig
from robot_rl.data.replay.percept import ImageSpec, PerceptSpec
from robot_rl.env.task import TaskSpec, Workspace
from robot_rl.errors import ConfigError, LinkError
from robot_rl.link.handshake import Agreement
from robot_rl.link.messages import decode, encode

BOX = Workspace(low=(-0.1, -0.2, 0.0), high=(0.1, 0.2, 0.3), yaw=0.1, tilt=0.0)
TASK = TaskSpec(
    "t", "do it", 40, 0.1, BOX, action_axes=("x", "yaw"), gripper=True, return_range=(-1.0, 2.0)
).environment
IMAGES = ImageSpec("features", (4, 2, 8, 3, 3), "float16", maker="somebody", size=32)
AGREEMENT = Agreement(TASK, PerceptSpec(5, IMAGES), TrainConfig(processes=2, sac=SACConfig(hidden_sizes=(8, 8))))


def test_both_sides_understand_it_alike():
    received = Agreement.of(decode(encode(AGREEMENT.hello())))
    assert received == AGREEMENT
    received.check(AGREEMENT.fingerprint)


@pytest.mark.parametrize(
    "other",
    [
        AGREEMENT._replace(task=dataclasses.replace(TASK, choices=0)),
        AGREEMENT._replace(percepts=PerceptSpec(5)),
        AGREEMENT._replace(config=TrainConfig()),
    ],
)
def test_any_difference_is_noticed(other):
    assert other.fingerprint != AGREEMENT.fingerprint
    with pytest.raises(LinkError, match=r"read the configuration differently .*; run the same version"):
        Agreement.of(dataclasses.replace(AGREEMENT.hello(), fingerprint=other.fingerprint))


def test_a_field_that_this_version_does_not_have_is_noticed():
    hello = AGREEMENT.hello()
    with pytest.raises(ConfigError, match="unknown key"):
        Agreement.of(dataclasses.replace(hello, config={**hello.config, "future": 1}))
    with pytest.raises(LinkError, match="is not understood"):
        Agreement.of(dataclasses.replace(hello, task={}))
