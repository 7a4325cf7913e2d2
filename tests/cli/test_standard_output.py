"""Where the answer of a command goes is the caller's: a file on a full disk, a closed one, or a reader that is gone."""

import json
import subprocess
import sys

import pytest


def test_where_the_answer_goes_may_be_full_closed_or_gone():
    program = f"{sys.executable} -m robot_rl completion fish"
    for where, code, said in (
        (">/dev/full", 1, "robot-rl: all is done, but the answer cannot be written: No space left on device; send it"),
        (">&-", 0, ""),
        ("| exit; exit ${PIPESTATUS[0]}", 141, ""),
    ):
        done = subprocess.run(["bash", "-c", f"{program} {where}"], capture_output=True, text=True, check=False)
        assert done.returncode == code
        assert done.stderr.startswith(said)
        assert done.stderr.count("\n") == bool(said)


LOUD = """
import ctypes, os, gymnasium, numpy

class Loud(gymnasium.Env):
    observation_space = action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), numpy.float32)

    def reset(self, *, seed=None, options=None):
        print("from Python")
        ctypes.CDLL(None).puts(b"from C")
        os.system("echo from a process")
        return numpy.zeros(1, numpy.float32), {}

    def step(self, action):
        return numpy.zeros(1, numpy.float32), 0.0, False, False, {}

gymnasium.register("Loud-v0", entry_point=Loud, max_episode_steps=5)
"""


@pytest.mark.slow
def test_with_json_the_answer_stands_alone_whatever_an_environment_prints(tmp_path):
    (tmp_path / "loud.py").write_text(LOUD)
    short = ["evaluation.episodes=1", "evaluation.curve_interval=0", "evaluation.video_episodes=0"]
    program = [sys.executable, "-m", "robot_rl", "train", "gym:loud:Loud-v0", "--steps", "5", "--out", "run", "--json"]
    program += [part for setting in short for part in ("--set", setting)]
    done = subprocess.run(program, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert json.loads(done.stdout)["env_steps"] == 5
    assert [f"from {who}" in done.stderr for who in ("Python", "C", "a process")] == [True] * 3
