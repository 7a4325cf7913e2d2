from dataclasses import asdict, replace

import pytest

from robot_rl.data.replay.percept import ImageSpec, PerceptSpec
from robot_rl.env.environment import EnvironmentSpec
from robot_rl.errors import LinkError
from robot_rl.fleet.agreement import Seen, check_base_alike, check_version
from robot_rl.link.messages import RobotHello

IMAGES = ImageSpec("features", (1, 2, 8, 2, 2), "float16", maker="lite0, front, wrist at 128 px", size=128)
SEEN = Seen(
    EnvironmentSpec("peg", 60, 0.1, 7, choices=3, return_range=(0.0, 1.0), actions="x 0.01 m, y 0.01 m"),
    PerceptSpec(20, IMAGES),
)


def test_what_a_robot_sees_comes_back_from_plain_values():
    again = Seen.of(asdict(SEEN.task), asdict(SEEN.percepts), "arm2")
    assert again == SEEN
    SEEN.check("arm2", again)
    with pytest.raises(LinkError, match="arm2: what it observes is not understood"):
        Seen.of({"name": 3}, {}, "arm2")


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (SEEN._replace(task=replace(SEEN.task, action_size=6)), "the number of action axes: 6, the fleet has 7"),
        (SEEN._replace(task=replace(SEEN.task, choices=0)), "the choices of the gripper: 0, the fleet has 3"),
        (
            SEEN._replace(task=replace(SEEN.task, actions="y 0.01 m, x 0.01 m")),
            "what an action moves: y 0.01 m, x 0.01 m, the fleet has x 0.01 m, y 0.01 m",
        ),
        (SEEN._replace(percepts=replace(SEEN.percepts, state_size=19)), "the size of the state: 19, the fleet has 20"),
        (SEEN._replace(percepts=replace(SEEN.percepts, images=None)), "cameras or their encoder: no images, the fleet"),
        (
            SEEN._replace(percepts=replace(SEEN.percepts, images=replace(IMAGES, maker="lite0, front at 128 px"))),
            "encoder: lite0, front at 128 px, the fleet has lite0, front, wrist at 128 px",
        ),
    ],
)
def test_a_robot_with_other_axes_or_cameras_is_refused_by_name(other, message):
    with pytest.raises(LinkError, match=message) as error:
        SEEN.check("arm2", other)
    assert str(error.value).startswith("arm2 is not like the robots of this fleet")
    SEEN.check("arm2", SEEN._replace(task=replace(SEEN.task, instruction="other words", cameras=("a",))))


def test_another_version_is_refused():
    with pytest.raises(LinkError, match=r"arm2 runs robot_rl 0\.0\.1, the learner"):
        check_version(RobotHello(robot="arm2", session=1, version="0.0.1", config={}, task={}, percepts={}))


def test_another_base_is_refused():
    hello = RobotHello(robot="arm2", session=1, version="1", config={}, task={}, percepts={}, base="1f")
    check_base_alike(hello, {"name": "chunk:base.pt", "identity": "1f"})
    with pytest.raises(LinkError, match=r"arm2 corrects the base 1f, the fleet 2e; copy the file of base\.path"):
        check_base_alike(hello, {"name": "chunk:base.pt", "identity": "2e"})
    with pytest.raises(LinkError, match="arm2 corrects the base 1f, the fleet none"):
        check_base_alike(hello, None)
