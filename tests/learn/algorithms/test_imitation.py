"""What is imitated, and how strongly: by hand-computed terms."""

import math

import pytest
import torch

from robot_rl.config.components import SACConfig, TrainConfig
from robot_rl.config.consistency import check_consistent
from robot_rl.config.load import load_config
from robot_rl.data.chunk_layout import ChunkLayout
from robot_rl.data.replay.percept import PerceptSpec
from robot_rl.env.environment import EnvironmentSpec
from robot_rl.errors import ConfigError
from robot_rl.learn.algorithms.batch import Batch
from robot_rl.learn.algorithms.imitation import CHOICE_MARGIN, Imitation
from robot_rl.learn.learner import Learner
from robot_rl.learn.networks.heads import StateHead
from robot_rl.learn.networks.networks import Policy

POLICY = Policy(
    head=StateHead(2), action_size=3, choices=3, hidden_sizes=(4,), generator=torch.Generator(), gripper_exploration=0.0
)
DONE = torch.tensor([[0.5, -0.5, 1.0], [0.0, 0.0, 0.0]])
BATCH = Batch(
    observation=torch.zeros(2, 2),
    action=DONE,
    reward=torch.zeros(2),
    discount=torch.zeros(2),
    next_observation=torch.zeros(2, 2),
    demonstrated=torch.tensor([1.0, 0.0]),
    corrected=torch.zeros(2),
)
LATENT = torch.zeros(2, 2)
VALUES = torch.tensor([[4.0, -2.0], [0.0, 2.0]])  # |Q| is 2 in the mean


@pytest.mark.parametrize(("return_range", "size"), [((0.0, 1.0), 1.0), ((-5.0, 5.0), 10.0), (None, 2.0)])
def test_actions_are_held_to_what_was_demonstrated_in_units_of_the_return(return_range, size):
    imitation = Imitation(3.0, return_range, POLICY)
    actions = DONE[:, :2] + torch.tensor([[0.2, 0.4], [9.0, 9.0]])
    held = imitation.of_actions(actions, VALUES, BATCH, LATENT, lambda done: VALUES)
    assert held == pytest.approx(3.0 * size * (0.04 + 0.16))
    nothing = BATCH._replace(demonstrated=None)
    assert imitation.of_actions(actions, VALUES, nothing, LATENT, lambda done: VALUES) == 0.0


def test_what_critics_expect_less_of_than_of_the_policy_may_be_left_out():
    batch = BATCH._replace(demonstrated=torch.ones(2))
    corrected = batch._replace(corrected=torch.ones(2))
    actions = DONE[:, :2] + torch.tensor([[0.2, 0.4], [0.0, 1.0]])

    def expected(done):
        torch.testing.assert_close(done, DONE[:, :2])
        return VALUES + torch.tensor([-0.01, 0.01])

    both, second = (0.04 + 0.16 + 1.0) / 2, 1.0
    for rule, shown, distance in (
        ("demonstrated", corrected, both),
        ("helpful", batch, both),
        ("helpful", corrected, second),
        ("better", batch, second),
    ):
        imitation = Imitation(3.0, (0.0, 1.0), POLICY, rule=rule)
        assert imitation.of_actions(actions, VALUES, shown, LATENT, expected) == pytest.approx(3.0 * distance)


def test_of_a_chunk_only_what_was_demonstrated_is_imitated_and_choices_that_it_holds():
    chunk = ChunkLayout(3, 2, choice=True)
    policy = Policy(
        head=StateHead(2),
        action_size=2,
        choices=3,
        hidden_sizes=(4,),
        generator=torch.Generator(),
        gripper_exploration=0.0,
        chunk=3,
    )
    assert policy.chunk == chunk
    imitation = Imitation(3.0, (0.0, 1.0), policy)
    done = torch.tensor([[0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, torch.nan], [0.0, 0.0, 0.0, 1.0]])
    batch = BATCH._replace(action=done, demonstrated=torch.tensor([2.0, 3.0, 0.0]))
    actions = torch.tensor([[0.1, 0.2, 9.0], [0.3, 0.4, 0.5], [9.0, 9.0, 9.0]])
    held = imitation.of_actions(actions, VALUES, batch, LATENT, lambda done: VALUES)
    assert held == pytest.approx(3.0 * (0.01 + 0.04 + 0.09 + 0.16 + 0.25) / 2)
    values = torch.zeros(1, 3, 3)
    values[0, 1:, 0] = 5.0  # of rows whose choice was not held, or not demonstrated
    loss = imitation.of_choices(values, torch.tensor([2, 1, 2]), batch)
    assert loss == pytest.approx(3.0 * CHOICE_MARGIN)


@pytest.mark.parametrize(("return_range", "size"), [((0.0, 1.0), 1.0), ((0.0, 10.0), 10.0), (None, 4.0)])
def test_other_choices_are_worth_less_by_a_share_of_the_return(return_range, size):
    imitation = Imitation(2.0, return_range, POLICY)
    values = 4.0 * torch.tensor([[[1.0, 1.0, 1.0], [1.0, -1.0, 1.0]]])  # one critic, two rows, three choices
    loss = imitation.of_choices(values, torch.tensor([2, 1]), BATCH)
    assert loss == pytest.approx(2.0 * CHOICE_MARGIN * size)
    shown = values + torch.tensor([0.0, 0.0, 1.0]) * CHOICE_MARGIN * size * 2
    if return_range is not None:
        assert imitation.of_choices(shown, torch.tensor([2, 1]), BATCH) == 0.0


def test_by_advantage_the_better_of_two_counts_more_and_both_as_much_as_one_each():
    imitation = Imitation(3.0, (0.0, 1.0), POLICY, rule="advantage")
    batch = BATCH._replace(demonstrated=torch.ones(2))
    actions = DONE[:, :2] + torch.tensor([[0.0, 1.0], [0.0, 2.0]])
    better = VALUES + torch.tensor([0.0, 0.4])  # one deviation above the mean of both, the other one below
    first, second = 2 * math.exp(-1) / (math.e + math.exp(-1)), 2 * math.e / (math.e + math.exp(-1))
    held = imitation.of_actions(actions, VALUES, batch, LATENT, lambda done: better)
    assert held == pytest.approx(3.0 * (first * 1.0 + second * 4.0) / 2, rel=1e-5)
    alike = imitation.of_actions(actions, VALUES, batch, LATENT, lambda done: VALUES)
    assert alike == pytest.approx(3.0 * (1.0 + 4.0) / 2)


@pytest.mark.parametrize(
    ("settings", "nothing"),
    [
        (["sac.imitation=0"], r"sac\.imitation=0: nothing is imitated; set sac\.imitation"),
        (["algorithm.chunk=3"], r"sac\.imitation=0"),
        (["base.kind=clone"], r"sac\.imitation=0"),
        (["task=gym:Pendulum-v1"], r"sac\.imitation=0"),
        (["replay.demo_fraction=0"], r"replay\.demo_fraction=0: nothing is imitated"),
    ],
)
def test_a_rule_where_nothing_is_imitated_is_refused_and_a_run_that_has_one_goes_on(settings, nothing):
    config = load_config(None, [*settings, "sac.imitated=certain"])
    with pytest.raises(ConfigError, match=rf"sac\.imitated=certain with {nothing}"):
        check_consistent(config)
    check_consistent(config, resumed=True)


def test_where_all_actions_are_choices_it_is_said_that_a_rule_has_no_effect(caplog):
    choices = EnvironmentSpec("chosen", 20, 0.1, 1, return_range=(0.0, 1.0), choices=4)
    Learner(choices, PerceptSpec(3), TrainConfig(sac=SACConfig(imitated="better")))
    assert "sac.imitated=better has no effect" in caplog.text
