"""`robot-rl train TASK --robot FILE`: a run on a controller that speaks a vendor's protocol, without ROS."""

import json
import os

import pytest
import yaml
from running import robot_rl
from ur_peer import UrPeer

pytest.importorskip("rtde_control", reason="ur_rtde is not installed: pip install 'robot_rl[ur]'")


@pytest.fixture(scope="module")
def peer():
    made = UrPeer(f"127.22.{os.getpid() // 250 % 250}.{os.getpid() % 250 + 1}")
    yield made
    made.close()


def robot_file(path, address, **cell):
    content = {
        "arm": {"driver": "ur", "host": address, "watchdog": 1.0, "max_silence": 1.0},
        "limits": {"box_low": [-0.7, -0.4, 0.2], "box_high": [-0.2, 0.3, 0.8], "max_age": 1.0},
        "cell": {"judge": "goal", "scene": "none", "max_age": 1.0, **cell},
        "task": {
            "instruction": "bring the tool to the goal",
            "max_steps": 12,
            "control_period": 0.1,
            "workspace": {"low": [-0.06] * 3, "high": [0.06] * 3, "yaw": 0.1, "tilt": 0.1},
            "action_axes": ["x", "y", "z"],
            "start": {"position": [-0.492, -0.133, 0.48], "quaternion": [0.0, 0.7071, 0.7071, 0.0], "speed": 0.2},
        },
    }
    (path / "robot.yaml").write_text(yaml.safe_dump(content))
    return path / "robot.yaml"


SMALL = ("--set", "demonstrations=0", "--set", "replay.batch_size=16", "--set", "sac.hidden_sizes=[32, 32]")
SMALL += ("--set", "warmup_steps=10", "--set", "evaluation.curve_interval=0", "--set", "evaluation.video_episodes=0")


@pytest.mark.wall_clock  # the controller's watchdog stops the arm after a second
@pytest.mark.slow
def test_a_run_trains_on_the_arm_and_is_evaluated(tmp_path, peer):
    file, out = robot_file(tmp_path, peer.address), tmp_path / "run"
    flags = ("--robot", file, *SMALL, "--steps", "30", "--episodes", "1", "--out", out)
    done = robot_rl("train", "touch", *flags, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    summary = json.loads((out / "summary.json").read_text())
    assert summary["env_steps"] == 30
    provenance = json.loads((out / "provenance.json").read_text())
    assert provenance["driver"] == "ur" and provenance["commissioning"] is None
    assert "was not commissioned" in done.stderr
    assert peer.report()["set_points"] > 50
    assert not peer.report()["running"], "the arm was let go"


@pytest.mark.parametrize(
    ("cell", "flags", "named"),
    [
        ({"judge": "person", "scene": "none"}, (), "nobody judges the episodes"),
        ({"scene": "person"}, (), "nobody makes the scene ready"),
        (
            {"judge": "person", "scene": "none"},
            ("--set", "demonstrations=5", "--set", "reward.kind=labels", "--set", "reward.path=x"),
            "record demonstrations first, `robot-rl demo touch --robot",
        ),
    ],
)
def test_what_is_missing_is_one_line_before_anything_moves(tmp_path, peer, cell, flags, named):
    uploads = peer.report()["uploads"]
    file = robot_file(tmp_path, peer.address, **cell)
    done = robot_rl("train", "touch", "--robot", file, *SMALL, *flags, "--out", tmp_path / "run", cwd=tmp_path)
    assert done.returncode in (1, 2)
    assert named in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 3, done.stderr
    assert peer.report()["uploads"] == uploads, "nothing was opened"
    assert not (tmp_path / "run").exists()
