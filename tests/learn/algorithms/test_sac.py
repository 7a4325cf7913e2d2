import io

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from robot_rl.config.components import SACConfig
from robot_rl.errors import CheckpointError, ConfigError, SpecError
from robot_rl.learn.algorithms.batch import Batch
from robot_rl.learn.algorithms.sac import SAC
from robot_rl.learn.networks.heads import StateHead
from robot_rl.learn.networks.networks import Policy

OBS, ACT = 4, 3


def make(seed: int = 0, gripper: bool = True, **config) -> SAC:
    settings = SACConfig(**{"hidden_sizes": (16, 16), "ensemble_size": 4, "learning_rate": 1e-2, **config})
    policy = Policy(
        head=StateHead(OBS),
        action_size=ACT,
        choices=3 if gripper else 0,
        hidden_sizes=settings.hidden_sizes,
        generator=torch.Generator().manual_seed(seed),
        gripper_exploration=settings.gripper_exploration,
    )
    return SAC(policy, return_range=(0.0, 1.0), config=settings)


def batch(n: int = 3, b: int = 8, seed: int = 0) -> Batch:
    g = torch.Generator().manual_seed(seed)
    action = torch.rand(n, b, ACT, generator=g) * 2 - 1
    action[..., -1] = action[..., -1].round()
    return Batch(
        observation=torch.randn(n, b, OBS, generator=g),
        action=action,
        reward=torch.rand(n, b, generator=g),
        discount=0.9 * torch.randint(2, (n, b), generator=g),
        next_observation=torch.randn(n, b, OBS, generator=g),
    )


def tensors(value: object) -> list[torch.Tensor]:
    """All tensors in a nested state, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return [tensor for item in items for tensor in tensors(item)]


def same(a: object, b: object) -> bool:
    pairs = list(zip(tensors(a), tensors(b), strict=True))
    return all(torch.equal(x, y) for x, y in pairs)


@pytest.mark.parametrize("gripper", [True, False])
def test_an_update_moves_every_parameter_and_reports(gripper):
    sac = make(gripper=gripper)
    before = sac.state_dict()
    logs = sac.update(batch())
    after = sac.state_dict()
    for name, old in before["modules"].items():
        for key, value in old.items():
            assert not torch.equal(value, after["modules"][name][key]), f"{name}.{key} did not move"
    assert not torch.equal(before["log_temperature"], after["log_temperature"])
    expected = {
        "critic_loss",
        "actor_loss",
        "temperature",
        "entropy",
        "q_mean",
        "q_spread",
        "td_error",
        "target_mean",
        "clamped",
        "critic_gradient",
        "actor_gradient",
    }
    assert logs.keys() == expected | ({"gripper_loss"} if gripper else set())
    assert all(value.shape == () and not value.requires_grad and value.isfinite() for value in logs.values())


def test_an_update_follows_its_formulas():
    sac = make(target_rate=0.5)
    for seed in range(3):  # so that targets, critics and temperature have gone different ways
        sac.update(batch(seed=seed))
    data = batch(n=1, seed=5)
    s, a, reward, discount, next_s = (column[0] for column in data[:5])
    start = sac.generator.get_state()
    with torch.no_grad():
        next_a, _ = sac.policy.sample(next_s)
        drawn = sac.draw_members()
        next_q = torch.stack([sac.critic_target(torch.cat([next_s, next_a], -1))[i, :, 0] for i in drawn])
        y = (reward + discount * next_q.min(0).values).clamp(0, 1)
        q = sac.critic(torch.cat([s, a[:, :2]], -1))[..., 0]
        rows, best = torch.arange(8), sac.policy.gripper(next_s).mean(0).argmax(-1)
        gripper_y = (reward + discount * sac.gripper_target(next_s)[:, rows, best].min(0).values).clamp(0, 1)
        gripper_q = sac.policy.gripper(s)[:, rows, a[:, -1].long() + 1]
    sac.generator.set_state(start)
    logs = sac.update_critics(data)
    torch.testing.assert_close(logs["target_mean"], y.mean())
    torch.testing.assert_close(logs["q_mean"], q.mean())
    torch.testing.assert_close(logs["critic_loss"], sum((q_i - y).square().mean() for q_i in q))
    torch.testing.assert_close(logs["gripper_loss"], sum((q_i - gripper_y).square().mean() for q_i in gripper_q))

    start = sac.generator.get_state()
    with torch.no_grad():
        action, log_prob = sac.policy.sample(s)
        mean_q = sac.critic(torch.cat([s, action], -1))[..., 0].mean(0)
    alpha = sac.log_temperature.exp().item()
    sac.generator.set_state(start)
    logs = sac.update_actor(s)
    torch.testing.assert_close(logs["actor_loss"], (alpha * log_prob - mean_q).mean())
    torch.testing.assert_close(logs["entropy"], -log_prob.mean())
    assert logs["temperature"].item() == pytest.approx(alpha)


def test_the_actor_learns_from_the_last_minibatch():
    a, b, data = make(), make(), batch()
    logs = a.update(data)
    assert same(logs, b.update_critics(data) | b.update_actor(data.observation[-1]))


def test_target_entropy_counts_continuous_actions_only():
    assert make(gripper=True).target_entropy == -0.5 * (ACT - 1)
    assert make(gripper=False).target_entropy == -0.5 * ACT


def test_critic_updates_leave_the_actor_bit_identical():
    sac = make()
    sac.update(batch())
    before = sac.state_dict()
    sac.update_critics(batch(seed=1))
    after = sac.state_dict()
    actor = [name for name in before["modules"]["policy"] if name.startswith("actor.")]
    assert same([before["modules"]["policy"][n] for n in actor], [after["modules"]["policy"][n] for n in actor])
    for name in ("actor", "temperature"):
        assert same(before["optimizers"][name], after["optimizers"][name])
    assert same(before["log_temperature"], after["log_temperature"])
    assert not same(before["modules"]["critic"], after["modules"]["critic"])


def test_actor_updates_leave_the_critics_bit_identical():
    sac = make()
    sac.update(batch())
    before = sac.state_dict()
    sac.update_actor(batch(seed=1).observation[0])
    after = sac.state_dict()
    for name in ("critic", "critic_target", "gripper_target"):
        assert same(before["modules"][name], after["modules"][name])
    assert same(before["optimizers"]["critic"], after["optimizers"]["critic"])
    assert not same(before["modules"]["policy"], after["modules"]["policy"])


def test_same_seed_same_result_bit_for_bit_and_no_global_randomness():
    before = torch.get_rng_state()
    a, b, c = make(0), make(0), make(1)
    for seed in range(3):
        logs = [sac.update(batch(seed=seed)) for sac in (a, b, c)]
        assert same(logs[0], logs[1])
    assert torch.equal(torch.get_rng_state(), before)
    assert same(a.state_dict(), b.state_dict())
    assert not same(a.state_dict()["modules"], c.state_dict()["modules"])


def test_a_saved_state_continues_bit_for_bit():
    a = make(0)
    a.update(batch(seed=0))
    file = io.BytesIO()
    torch.save(a.state_dict(), file)
    observation = torch.randn(6, OBS)
    expected = [a.update(batch(seed=1)), a.policy.act(observation, deterministic=False), a.update(batch(seed=2))]

    b = make(7)
    file.seek(0)
    b.load_state_dict(torch.load(file, weights_only=True))
    assert same(
        expected, [b.update(batch(seed=1)), b.policy.act(observation, deterministic=False), b.update(batch(seed=2))]
    )
    assert same(a.state_dict(), b.state_dict())


def test_a_state_dict_is_a_copy():
    sac = make()
    sac.update(batch())
    state = sac.state_dict()
    values = [tensor.clone() for tensor in tensors(state)]
    sac.load_state_dict(state)
    sac.update(batch(seed=1))
    assert same(values, tensors(state))


def test_targets_have_no_gradient_and_no_optimizer_state():
    sac = make()
    sac.update(batch())
    targets = [*sac.critic_target.parameters(), *sac.gripper_target.parameters()]
    assert all(not target.requires_grad and target.grad is None for target in targets)
    trained = [*sac.policy.parameters(), *sac.critic.parameters(), sac.log_temperature]
    held = sum(t.numel() for t in tensors(sac.state_dict()["optimizers"]) if t.dim() > 0)
    assert held == 2 * sum(p.numel() for p in trained if p.dim() > 0)  # two moments each, nothing else


def test_targets_follow_by_the_polyak_rate():
    sac = make(target_rate=0.25)
    old = [p.clone() for p in (*sac.critic_target.parameters(), *sac.gripper_target.parameters())]
    sac.update_critics(batch(n=1))
    online = [*sac.critic.parameters(), *sac.policy.gripper.parameters()]
    new = [*sac.critic_target.parameters(), *sac.gripper_target.parameters()]
    for before, now, after in zip(old, online, new, strict=True):
        torch.testing.assert_close(after, 0.75 * before + 0.25 * now)


def test_target_subset_is_drawn_without_replacement_and_reaches_everyone():
    sac = make(ensemble_size=5, target_subset=2)
    draws = torch.stack([sac.draw_members() for _ in range(1000)])
    assert (draws[:, 0] != draws[:, 1]).all()
    counts = torch.bincount(draws.flatten(), minlength=5)
    assert (counts - 400).abs().max() < 80
    assert make(ensemble_size=2, target_subset=2).draw_members() is None


@pytest.mark.parametrize(("clamp", "expected"), [(True, 1.0), (False, 50.0)])
def test_clamping_follows_the_configuration(clamp, expected):
    data = batch()._replace(reward=torch.full((3, 8), 50.0), discount=torch.zeros(3, 8))
    assert make(clamp_targets=clamp).update(data)["target_mean"].item() == pytest.approx(expected)


def test_termination_hides_the_next_observation():
    data = batch()
    ended = data._replace(discount=torch.zeros(3, 8))
    elsewhere = ended._replace(next_observation=data.next_observation + 1)
    assert make(0).update(ended)["target_mean"] == make(0).update(elsewhere)["target_mean"]
    cut = data._replace(discount=torch.full((3, 8), 0.9))  # a time-out: what would follow still counts
    elsewhere = cut._replace(next_observation=data.next_observation + 1)
    assert make(0).update(cut)["target_mean"] != make(0).update(elsewhere)["target_mean"]


def test_the_continuous_critic_does_not_see_the_gripper():
    data = batch()
    other = data._replace(action=torch.cat([data.action[..., :-1], -data.action[..., -1:]], -1))
    a, b = make(0).update(data), make(0).update(other)
    assert a["critic_loss"] == b["critic_loss"]
    assert a["gripper_loss"] != b["gripper_loss"]


def test_update_never_waits_for_the_device():
    class NoScalars(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            assert func is not torch.ops.aten._local_scalar_dense.default, "a tensor was read back to Python"
            return func(*args, **(kwargs or {}))

    sac = make()
    with NoScalars():
        sac.update(batch())


def test_policy_state_moves_between_learners():
    a, b, observation = make(0), make(1), torch.randn(6, OBS)
    b.policy.load_policy_state(a.policy.policy_state())
    assert torch.equal(a.policy.act(observation, deterministic=True), b.policy.act(observation, deterministic=True))


def test_errors_say_what_is_wrong():
    with pytest.raises(ConfigError, match="target_subset 3 exceeds"):
        make(ensemble_size=2, target_subset=3)
    with pytest.raises(SpecError, match=r"batch\.action"):
        make().update(batch()._replace(action=torch.zeros(3, 8, 2)))
    with pytest.raises(SpecError, match=r"batch\.reward: shape \(8,\), expected \(N, B\)"):
        make().update(Batch(*(column[0] for column in batch()[:5])))
    with pytest.raises(SpecError, match=r"state: shape \(3, 8, 5\), expected \(3, 8, 4\)"):
        make().update(batch()._replace(next_observation=torch.zeros(3, 8, 5)))
    with pytest.raises(SpecError, match="images were given"):
        make().update(batch()._replace(images=torch.zeros(3, 8, 2)))
    with pytest.raises(CheckpointError, match="format"):
        make().load_state_dict({})
    with pytest.raises(CheckpointError, match="another policy: actor"):
        make().load_state_dict(make(hidden_sizes=(8,)).state_dict())
    with pytest.raises(CheckpointError, match="there are no parameters of gripper_target"):
        make().load_state_dict(make(gripper=False).state_dict())


def reach(n: int, b: int, g: torch.Generator) -> Batch:
    """Random transitions of a point on [-1, 1] that moves 0.25 a step: 1 and the end within 0.1 of the origin.

    The second action is idle. The gripper must be open on the right and closed on the left, or there is no success.
    """
    x = torch.rand(n, b, 1, generator=g) * 2 - 1
    action = torch.cat([torch.rand(n, b, 2, generator=g) * 2 - 1, torch.randint(-1, 2, (n, b, 1), generator=g)], -1)
    next_x = (x + 0.25 * action[..., :1]).clamp(-1, 1)
    done = ((next_x.abs() < 0.1) & (action[..., 2:] == x.sign())).float().squeeze(-1)
    pad = (0, OBS - 1)
    return Batch(torch.nn.functional.pad(x, pad), action, done, 0.9 * (1 - done), torch.nn.functional.pad(next_x, pad))


@pytest.mark.parametrize("critic_loss", ["squared", "hl_gauss"])
def test_it_learns_to_reach_a_point_from_random_data(critic_loss):
    sac = make(learning_rate=3e-3, hidden_sizes=(32, 32), ensemble_size=2, target_rate=0.02, critic_loss=critic_loss)
    g = torch.Generator().manual_seed(0)
    for _ in range(250):
        logs = sac.update(reach(4, 128, g))
    x = torch.linspace(-1, 1, 101).unsqueeze(-1)
    for _ in range(6):  # from the far end, four full steps of 0.25 suffice
        action = sac.policy.act(torch.nn.functional.pad(x, (0, OBS - 1)), deterministic=True)
        x = torch.where(x.abs() < 0.1, x, x + 0.25 * action[:, :1])
    assert (x.abs() < 0.1).float().mean() > 0.95
    near = torch.tensor([[-0.25], [-0.15], [0.15], [0.25]])
    choice = sac.policy.act(torch.nn.functional.pad(near, (0, OBS - 1)), deterministic=True)[:, -1]
    assert choice.tolist() == [-1.0, -1.0, 1.0, 1.0]
    assert 0 < logs["q_mean"] < 1


def test_what_was_demonstrated_is_imitated_and_nothing_else():
    shown = batch(n=1, b=16)._replace(reward=torch.zeros(1, 16), demonstrated=torch.arange(16).lt(8).float()[None])
    sac = make(imitation=20.0, learning_rate=3e-3)
    for _ in range(250):
        sac.update(shown)
    state, action = shown.observation[0], shown.action[0]
    error = (sac.policy.act(state, deterministic=True) - action).abs()
    assert error[:8].mean() < 0.1 < error[8:].mean()
    assert torch.equal(sac.policy.act(state, deterministic=True)[:8, -1], action[:8, -1]), "the gripper's choices too"


def test_a_schedule_of_imitation_ends_it():
    shown = batch()._replace(demonstrated=torch.ones(3, 8))
    with_imitation, without = make(imitation={0: 1.0, 100: 0.0}), make(imitation=0.0)
    assert with_imitation.advance(50)["imitation"] == 0.5
    with_imitation.advance(100)
    with_imitation.update(shown)
    without.update(shown)
    assert same(with_imitation.state_dict()["modules"], without.state_dict()["modules"])


def test_where_an_operator_is_followed_is_kept_and_begun_anew_in_a_fork_that_imitated_otherwise():
    shown, settings = batch()._replace(demonstrated=torch.ones(3, 8), corrected=torch.zeros(3, 8)), {"imitation": 1.0}
    one, two = make(imitated="certain", **settings), make(imitated="certain", seed=1, **settings)
    one.update(shown)
    two.load_state_dict(one.state_dict())
    one.update(shown)
    two.update(shown)
    assert same(one.state_dict(), two.state_dict())
    before = make(imitated="advantage", **settings)
    before.update(shown)
    two.load_state_dict(before.state_dict())
    two.update(shown)
