import json
from dataclasses import replace

import pytest
from fakes import SPEC

from robot_rl.config.components import SimulationConfig
from robot_rl.env.cell_geometry.camera_mount import CameraMount
from robot_rl.errors import LinkError
from robot_rl.run.directory.calibrations import CalibrationRecord
from robot_rl.spec import ArraySpec
from ros_nodes.interface.task_messages import (
    MAX_TEXT,
    Advance,
    CameraCalibration,
    Estimates,
    OutcomeMessage,
    TaskHead,
    from_text,
    to_text,
)
from sim.tasks.two_arms.handover import SPEC as HANDOVER

MOUNT = CameraMount("tcp", (0.1, -0.2, 1 / 3), (1.0, 0.0, 0.0, 0.0))
MESSAGES = (
    TaskHead(
        SPEC,
        {"state/goal": ArraySpec((3,), unit="m", scale=(0.1, 0.2, 0.3))},
        "script",
        True,
        (64, 48),
        ("a",),
        SimulationConfig(small_joint_friction=0.1, command_delay=0.0),
    ),
    TaskHead(HANDOVER, {}, "script", True, (64, 48), (), None),
    Estimates(3, 17, {"state/goal": [0.1, 1 / 3, -1e-300]}),
    OutcomeMessage(3, 17, True, 1.0, None, {"distance": 0.1 + 0.2}),
    Advance(2**62, -1, frames=True),
    CameraCalibration(
        CalibrationRecord("wrist", "a.yaml", "hand_eye", "8144", (640, 480), "fr3", "ab" * 32, "a: 1\n"), MOUNT
    ),
    CameraCalibration(None, None),
)


@pytest.mark.parametrize("message", MESSAGES, ids=lambda m: type(m).__name__)
def test_a_message_is_read_back_as_it_was(message):
    assert from_text(type(message), to_text(message)) == message


def test_a_head_of_a_time_when_forces_were_always_observed_is_read():
    old = json.loads(to_text(MESSAGES[0]))
    assert old.pop("measures_wrench") is True
    assert from_text(TaskHead, json.dumps(old)) == MESSAGES[0]
    for measures in (False, None):
        head = replace(MESSAGES[0], measures_wrench=measures)
        assert from_text(TaskHead, to_text(head)) == head


def changed(**changes):
    return json.dumps({**json.loads(to_text(MESSAGES[3])), **changes})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[1, 2", "malformed"),
        ("[1, 2]", "no version"),
        (changed(version=99), "version 99, this program reads 3; run the same robot_rl"),
        (changed(stamp="noon"), "stamp"),
        (changed(color="red"), "color"),
        (changed(metrics={"a": "b"}), "metrics"),
        ("1" * (MAX_TEXT + 1), "allowed are"),
    ],
)
def test_what_is_no_message_of_this_version_is_refused(text, reason):
    with pytest.raises(LinkError, match=reason):
        from_text(OutcomeMessage, text)
