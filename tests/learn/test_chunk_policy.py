"""A policy that decides for several steps: what it plays, what ends that, and what is learned of it."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from fakes import fake_workcell

from robot_rl.config.components import (
    AlgorithmConfig,
    BaseConfig,
    IQLConfig,
    ReplayConfig,
    SACConfig,
    TrainConfig,
)
from robot_rl.config.consistency import check_consistent
from robot_rl.data.chunk_layout import ChunkLayout
from robot_rl.data.replay.percept import Percept, PerceptSpec
from robot_rl.data.replay.transition import Transition
from robot_rl.data.schema import Source
from robot_rl.env.environment import EnvironmentSpec
from robot_rl.env.robot_env import RobotEnv
from robot_rl.errors import CheckpointError, ConfigError
from robot_rl.learn.actor import Rollout
from robot_rl.learn.algorithms.batch import Batch
from robot_rl.learn.algorithms.sac import SAC
from robot_rl.learn.learner import Learner
from robot_rl.learn.networks.heads import StateHead
from robot_rl.learn.networks.networks import Policy
from robot_rl.learn.perception import make_perception

CONFIG = TrainConfig(
    demonstrations=2,
    warmup_steps=4,
    update_to_data=2,
    algorithm=AlgorithmConfig(chunk=3),
    sac=SACConfig(hidden_sizes=(8,)),
    replay=ReplayConfig(capacity=200, batch_size=8),
)
LINE = EnvironmentSpec("line", max_steps=20, control_period=0.1, action_size=3)


class Numbered:
    """Decides for `length` steps; each action tells of which decision it is and which of its steps."""

    def __init__(self, length):
        self.chunk, self.generator, self.decisions = ChunkLayout(length, 3), torch.Generator(), 0

    def begin(self, seed):
        """Nothing of an episode is remembered, and it draws by itself."""

    def act(self, state, images, *, deterministic):
        self.decisions += 1
        rows = np.zeros((1, self.chunk.length, 3), np.float32)
        rows[..., 0], rows[..., 1] = 0.01 * self.decisions, 0.01 * np.arange(self.chunk.length)
        return torch.from_numpy(self.chunk.join(rows))


class Taps:
    """A person who leads in a few steps."""

    def reset(self, seed, demonstrate):
        self.steps = 0

    def act(self, state, T_base_reset):
        self.steps += 1
        return np.array([0.0, 0.0, 0.5]) if self.steps in (3, 4, 11) else None


class Keep:
    """Remembers who led in each step, and what the policy wanted there: (decision, step of it)."""

    def __init__(self):
        self.steps = []

    def on_start(self, episode_id, observation):
        self.steps.append([])

    def on_step(self, step, next_observation):
        decision, place, _ = np.round(100 * step.action_policy).astype(int).tolist()
        executed = np.array_equal(step.action, step.action_policy)
        self.steps[-1].append((Source(step.source), decision, place, executed))

    def on_end(self, episode, result):
        pass


def rolled(length, every=None, *, led=False):
    cell = replace(fake_workcell(), operator=Taps())
    env, keep, policy = RobotEnv(cell, interventions=led), Keep(), Numbered(length)
    perception = make_perception(env.observation_specs, TrainConfig())
    return Rollout(env, policy, perception, (0,), [keep], every=every), policy, keep


@pytest.mark.parametrize("length", [1, 4])
def test_a_chunk_is_played_to_its_end_and_each_episode_begins_a_new_one(length):
    rollout, policy, keep = rolled(length)
    for seed in range(2):
        rollout.begin(seed, f"e-{seed}")
        for count in range(10):
            rollout.step(deterministic=True, last=count == 9)
    first = 0
    for steps in keep.steps:
        wanted = [(Source.POLICY, first + 1 + t // length, t % length, True) for t in range(10)]
        assert steps == wanted
        first = steps[-1][1]
    assert policy.decisions == first


def test_a_person_ends_the_chunk_at_once_and_what_they_did_is_recorded():
    rollout, _, keep = rolled(4, led=True)
    rollout.begin(0, "e")
    for count in range(14):
        rollout.step(deterministic=True, last=count == 13)
    steps = keep.steps[0]
    assert [t + 1 for t, (source, *_) in enumerate(steps) if source == Source.HUMAN] == [3, 4, 11]
    decided = [(1, 0), (1, 1), (1, 2), (2, 0), (3, 0), (3, 1), (3, 2), (3, 3), (4, 0), (4, 1), (4, 2), (5, 0), (5, 1)]
    assert [(decision, place) for _, decision, place, _ in steps] == [*decided, (5, 2)]
    assert not any(executed for source, _, _, executed in steps if source == Source.HUMAN)


@pytest.mark.parametrize(("length", "every"), [(4, 2), (4, 4), (1, 3), (2, 5)])
def test_at_another_rate_of_decisions_a_chunk_is_cut_or_its_last_action_held(length, every):
    rollout, _, keep = rolled(length, every)
    rollout.begin(0, "e")
    for count in range(15):
        rollout.step(deterministic=True, last=count == 14)
    wanted = [(1 + t // every, min(t % every, length - 1)) for t in range(15)]
    assert [(decision, place) for _, decision, place, _ in keep.steps[0]] == wanted


# ----------------------------------------------------------------- learning


def learner(seed=0, **changes):
    return Learner(LINE, PerceptSpec(3), replace(CONFIG, seed=seed, **changes))


def played(mine, rng, steps, *, demonstrations=False):
    """Let it learn from random episodes of seven steps."""
    for number in range(2 if demonstrations else -(-steps // 7)):
        ring = mine.demos if demonstrations else mine.online
        ring.begin(Percept(rng.normal(size=3).astype(np.float32)), f"episode-{number}")
        for t in range(7):
            step = Transition(rng.uniform(-1, 1, 3).astype(np.float32), float(t == 6), t == 6, False, 0)
            percept = Percept(rng.normal(size=3).astype(np.float32))
            if demonstrations:
                ring.append(step, percept)
            else:
                mine.append(step, percept)
                mine.catch_up()


def parameters(mine):
    return torch.cat([value.flatten() for value in mine.policy.policy_state().values()])


def test_a_saved_learner_continues_bit_for_bit_also_in_the_midst_of_a_chunk():
    mine, rng = learner(), np.random.default_rng(0)
    played(mine, rng, 0, demonstrations=True)
    played(mine, rng, 14)
    mine.begin(Percept(np.zeros(3, np.float32)), "cut")
    for _ in range(2):  # no whole chunk yet
        mine.append(Transition(np.ones(3, np.float32), 0.0, False, False, 0), Percept(np.ones(3, np.float32)))
        mine.catch_up()
    other = learner(seed=5)
    other.load_state_dict(mine.state_dict())
    for one in (mine, other):
        played(one, np.random.default_rng(1), 14)
    assert mine.updates == other.updates == 2 * (30 - 4)
    assert torch.equal(parameters(mine), parameters(other))
    assert mine.algorithm.n_step == 3
    assert mine.policy.action_size == 9
    with pytest.raises(CheckpointError, match=r"another policy: actor\.last"):
        learner(algorithm=AlgorithmConfig(chunk=2)).load_state_dict(mine.state_dict())


def test_each_step_of_a_chunk_is_learned_though_its_reward_comes_at_the_end():
    generator = torch.Generator().manual_seed(0)
    config = SACConfig(hidden_sizes=(16,), learning_rate=1e-2, temperature=1e-4)
    policy = Policy(head=StateHead(1), action_size=2, choices=2, hidden_sizes=(16,), generator=generator, chunk=3)
    sac = SAC(policy, return_range=(0.0, 1.0), config=config)
    goal, state = torch.tensor([0.6, -0.6, 0.2]), torch.zeros(1, 64, 1)
    for _ in range(250):
        action = torch.rand(1, 64, 4, generator=generator) * 2 - 1
        action[..., 3] = torch.randint(0, 2, (1, 64), generator=generator) * 2.0 - 1.0
        reward = 0.8 - 0.2 * (action[..., :3] - goal).square().sum(-1) + 0.1 * action[..., 3]
        changed = torch.arange(64) % 2 == 0  # there somebody took over, and it ends well whatever was chosen first
        reward[:, changed] += 0.1 - 0.1 * action[:, changed, 3]
        action[:, changed, 3] = torch.nan
        sac.update(Batch(state, action, reward, torch.zeros(1, 64), state))
    found = policy.chunk.split(policy.act(state[0, :1], deterministic=True)[0].numpy())
    assert found[:, 0] == pytest.approx(goal.numpy(), abs=0.3)
    assert found[:, 1].tolist() == [1.0] * 3, "the choice is held for the chunk"


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"algorithm": AlgorithmConfig(name="iql", chunk=5)}, "algorithm.name=iql: only sac learns chunks"),
        ({"sac": SACConfig(n_step=3)}, r"sac\.n_step=3: the rewards of a chunk's own steps are summed"),
        ({"base": BaseConfig(kind="chunk")}, r"base\.kind=chunk: a correction is decided in every step"),
        ({"offline": IQLConfig(steps=5)}, r"offline\.steps=5: IQL learns no chunks"),
        ({"processes": 2, "learners": 2}, "learners=2: not for several learners yet"),
        ({"replay": ReplayConfig(hindsight_goals=4)}, r"replay\.hindsight_goals=4: goals are judged step by step"),
        (
            {"replay": ReplayConfig(simulated="dynamics_gap")},
            r"replay\.simulated=dynamics_gap: that gap is one of steps",
        ),
        ({"demonstrations": 0, "warmup_steps": 4}, "demonstrations=0 and warmup_steps=4: no chunk is whole by then"),
    ],
)
def test_what_does_not_go_with_chunks_is_refused_by_one_line(changes, said):
    config = TrainConfig(algorithm=AlgorithmConfig(chunk=5))
    check_consistent(config)
    assert (config.sac.n_step, TrainConfig().sac.n_step) == (1, 3), "the default of n_step follows"
    with pytest.raises(ConfigError, match=said) as raised:
        check_consistent(replace(config, **changes))
    assert "\n" not in str(raised.value)


def test_a_chunk_that_no_episode_has_room_for_and_one_of_choices_alone_are_refused():
    with pytest.raises(ConfigError, match=r"algorithm\.chunk=21: an episode of line has at most 20 steps"):
        learner(algorithm=AlgorithmConfig(chunk=21))
    with pytest.raises(ConfigError, match=r"algorithm\.chunk=3 with actions that are choices alone"):
        Learner(replace(LINE, action_size=1, choices=4), PerceptSpec(3), CONFIG)
