import pytest
import torch
from tiny_heads import CAMERAS, FEATURES, FRAMES, STATE, batch, generator, head, images, sac

from robot_rl.errors import ConfigError, SpecError
from robot_rl.learn.networks.heads import STATE_WIDTH
from robot_rl.learn.networks.image_networks import make_image_network


def test_each_camera_goes_through_its_own_formula():
    net, state, seen = head(), torch.randn(7, STATE, generator=generator(3)), images(7)
    net.standardise(images(100, seed=9))
    out = net(state, seen) / net.gains
    assert out.shape == (7, net.size)
    for camera in range(CAMERAS):
        maps = seen[:, camera].float() * net.scale[camera] + net.shift[camera]
        embedded = torch.stack([(maps[:, :, :, :, None] * net.kernel[camera].view(5, 3, 3, 2)).sum((2, 3))])[0]
        bottleneck = torch.nn.functional.layer_norm(embedded.flatten(1) @ net.weight[camera] + net.bias[camera], (8,))
        torch.testing.assert_close(out[:, 8 * camera : 8 * camera + 8], bottleneck.tanh())
    torch.testing.assert_close(out[:, -STATE:], state)


def test_standardised_features_have_mean_0_and_deviation_1_over_time():
    net, seen = head(), 5.0 + 3.0 * images(400)
    net.standardise(seen)
    maps = seen.float() * net.scale + net.shift
    torch.testing.assert_close(maps.mean(0), torch.zeros_like(maps[0]), atol=1e-3, rtol=0)
    torch.testing.assert_close(maps.std((0, 3, 4)), torch.ones(CAMERAS, 5), atol=2e-2, rtol=0)
    torch.nn.Module.load_state_dict(head(seed=1), net.state_dict())  # travels with the parameters


@pytest.mark.parametrize("gripper", [False, True])
@pytest.mark.parametrize("spec", [FEATURES, FRAMES], ids=["features", "frames"])
def test_critics_train_all_of_the_head_and_the_actor_none_of_it(spec, gripper):
    learner, data = sac(spec, gripper), batch(spec)
    eyes = learner.policy.head

    def values():
        return {name: value.clone() for name, value in eyes.named_parameters()}

    before = values()
    learner.update_actor(data.observation[0], data.images[0])
    assert all(torch.equal(value, before[name]) for name, value in values().items())
    logs = learner.update(data)
    assert all(value.isfinite() for value in logs.values())
    unmoved = [name for name, value in values().items() if torch.equal(value, before[name])]
    assert unmoved == []


def test_the_policy_acts_by_what_it_sees():
    policy, state = sac().policy, torch.zeros(4, STATE)
    a, b = (policy.act(state, images(4, seed=seed), deterministic=True) for seed in (1, 2))
    assert not torch.allclose(a, b)


@pytest.mark.parametrize(("name", "shape"), [("conv", (32, 4, 4)), ("resnet10", (512, 2, 2))])
def test_trained_encoders_see_the_same_from_the_same_seed(name, shape):
    first, again, other = (make_image_network(name, generator(seed)) for seed in (0, 0, 1))
    assert first.map_shape(64) == shape
    x = torch.rand(2, 3, 64, 64, generator=generator()) * 255
    assert torch.equal(first(x), again(x))
    assert not torch.allclose(first(x), other(x))
    assert 0.01 < first(x).std() < 100  # the signal neither dies nor explodes


def test_what_does_not_fit_is_refused():
    data = batch(FEATURES)
    with pytest.raises(SpecError, match=r"images: shape \(2, 8, 2, 4, 3, 3\), expected \(2, 8, 2, 5, 3, 3\)"):
        sac().update(data._replace(images=data.images[:, :, :, :4]))
    with pytest.raises(SpecError, match=r"no images for a policy with images; expected shape \(2, 8, 2, 5, 3, 3\)"):
        sac().update(data._replace(next_images=None))
    with pytest.raises(SpecError, match="images were given to a policy that learns from state alone"):
        sac(None).update(data)
    with pytest.raises(ConfigError, match="'bundled' is not trained with the head; valid: conv, resnet10"):
        make_image_network("bundled", generator())


def test_a_head_learns_to_see_the_way_to_the_goal_where_it_is_known():
    algorithm = sac(pose=(1, 2))
    algorithm.policy.head.standardise(images(64))
    examples = batch(FEATURES, n=2, b=16)
    way = examples.observation[..., 1:3] * 0.5 + examples.images.float().mean((2, 3, 4, 5))[..., None]
    way[:, ::2] = float("nan")
    known = examples._replace(to_goal=way)
    errors = [float(algorithm.update(known)["goal_loss"]) for _ in range(300)]
    assert errors[-1] < 0.2 * errors[0]


def test_an_unknown_way_to_the_goal_teaches_nothing():
    way = torch.full((2, 8, 2), float("nan"))
    with_it, without = sac(pose=(1, 2)), sac(pose=(1, 2))
    with_it.update(batch(FEATURES)._replace(to_goal=way))
    without.update(batch(FEATURES))
    for name, value in without.policy.state_dict().items():
        torch.testing.assert_close(with_it.policy.state_dict()[name], value)


def test_the_networks_are_shown_the_way_in_finer_units():
    net, state, seen = head(pose=(1, 2)), torch.randn(7, STATE, generator=generator(3)), images(7)
    latent, bare = net(state, seen), head()
    plain = bare(state, seen) / bare.gains
    torch.testing.assert_close(latent[:, :-2] / net.gains[:-2], plain)
    torch.testing.assert_close(net.to_goal(latent), plain @ net.goal)


def test_every_part_of_the_input_has_the_same_say():
    """The variance of what a fresh layer makes of parts whose elements are of order one."""
    net, size, width = head(pose=(1, 2), bottleneck=32), 3, 4000
    ones = net.with_action(net.gains[None], torch.ones(1, size))
    weight = torch.randn(net.size + size, width, generator=generator()) / (net.size + size) ** 0.5
    parts = (ones[0, :, None] * weight).split([32, 32, STATE_WIDTH, STATE, 2, size])
    for part in parts:
        assert float(part.sum(0).var()) == pytest.approx(1 / 5, rel=0.15)  # of the five parts beside the action
