"""Parameters of another network are refused on one line that says what differs, and change nothing."""

import pytest
import torch
from torch import nn

from robot_rl.errors import CheckpointError
from robot_rl.learn.networks.parameters import load_modules, load_parameters


def network(hidden=4):
    return nn.Sequential(nn.Linear(2, hidden), nn.Linear(hidden, 1), nn.Linear(1, 1))


def test_parameters_of_a_network_like_it_are_loaded():
    mine, given = network(), network().state_dict()
    load_parameters(mine, given, "critic")
    torch.testing.assert_close(mine.state_dict(), given, rtol=0, atol=0)


def test_those_of_another_one_are_named_with_both_shapes():
    mine = network()
    before = {name: value.clone() for name, value in mine.state_dict().items()}
    given = {**network(hidden=6).state_dict(), "3.weight": torch.zeros(1)}
    with pytest.raises(CheckpointError) as error:
        load_parameters(mine, given, "critic")
    assert str(error.value) == (
        "these parameters belong to another critic: 0.bias is (6,), here (4,); 0.weight is (6, 2), here (4, 2); "
        "1.weight is (1, 6), here (1, 4) and 1 more"
    )
    torch.testing.assert_close(mine.state_dict(), before, rtol=0, atol=0)


def test_a_module_that_was_not_saved_is_named_with_those_that_were():
    modules = {"policy": network(), "gripper": network()}
    with pytest.raises(CheckpointError, match=r"there are no parameters of gripper, only of critic, policy$"):
        load_modules(modules, {"policy": network().state_dict(), "critic": {}})
    with pytest.raises(CheckpointError, match=r"belong to another policy: 0\.bias is missing, here"):
        load_modules(modules, {"policy": {}, "gripper": {}})
