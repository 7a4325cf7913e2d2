"""Several real processes that share the updates of an algorithm, beside one that makes them alone."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from running import environment

from robot_rl.learn.parallel.ranks import ALONE

PART = Path(__file__).with_name("part.py")
RULES = ("helpful", "advantage", "certain")
NAMES = ("sac", "gripper", "pixels", *RULES, "iql", "dqn", "bc")


def learned(folder, size):
    """Parameters by algorithm, of each of `size` processes."""
    outs = [folder / f"{size}-{rank}.npz" for rank in range(size)]
    commands = [[sys.executable, PART, str(rank), str(size), folder / "meeting", out] for rank, out in enumerate(outs)]
    processes = [subprocess.Popen(command, env=environment(), stderr=subprocess.PIPE) for command in commands]
    for process in processes:
        said = process.communicate(timeout=120)[1]
        assert process.returncode == 0, said.decode()
    return [dict(np.load(out)) for out in outs]


@pytest.fixture(scope="module")
def parameters(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    return learned(folder, 1)[0], learned(folder, 2)


@pytest.mark.parametrize("name", NAMES)
def test_two_processes_learn_what_one_learns_from_the_whole_batch(parameters, name):
    one, (first, second) = parameters
    np.testing.assert_array_equal(first[name], second[name])
    rounded = 1e-7 if name in RULES else 1e-12  # Adam makes whole steps of gradients that are rounding errors alone
    np.testing.assert_allclose(first[name], one[name], rtol=1e-9, atol=rounded)


def test_alone_nothing_is_divided_copied_or_exchanged():
    tensors = [torch.arange(6.0).view(3, 2), torch.ones(())]
    assert ALONE.own(tensors[0]) is tensors[0]
    assert all(mine is given for mine, given in zip(ALONE.average(tensors), tensors, strict=True))
    rng = np.random.default_rng(0)
    assert ALONE.source(rng) is rng
