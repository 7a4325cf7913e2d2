import math

import pytest
import torch

from robot_rl.config.components import SACConfig
from robot_rl.learn.algorithms.critic_outputs import HLGauss, Scalar, make_critic_outputs

RANGE = (-1.0, 3.0)


def hl_gauss():
    return HLGauss(RANGE, torch.device("cpu"))


@pytest.mark.parametrize("value", [-1.0, -0.99, 0.0, 0.123, 2.5, 3.0])
def test_a_histogram_has_the_return_for_its_mean_the_ends_of_the_range_too(value):
    outputs = hl_gauss()
    histogram = outputs.histogram(torch.tensor([value]))
    assert histogram.shape == (1, outputs.count)
    assert float(histogram.sum()) == pytest.approx(1.0)
    assert float(outputs.value(histogram.log()[None])) == pytest.approx(value, abs=1e-3)


def test_the_mass_of_a_bin_is_that_of_the_gaussian():
    outputs = hl_gauss()
    width = float(outputs.edges[1] - outputs.edges[0])
    centre = float(outputs.centres[20])
    mass = outputs.histogram(torch.tensor([centre]))[0]
    assert float(mass[20]) == pytest.approx(math.erf(0.5 / (0.75 * math.sqrt(2))), rel=1e-3)
    assert float(mass[21]) == pytest.approx(float(mass[19]), rel=1e-3)
    assert width == pytest.approx(4.0 / 51)


def test_descent_on_the_cross_entropy_finds_the_return():
    outputs, target = hl_gauss(), torch.tensor([0.3, 2.9])
    logits = torch.zeros(2, 2, outputs.count, requires_grad=True)
    optimizer = torch.optim.Adam([logits], lr=0.1)
    for _ in range(300):
        optimizer.zero_grad()
        outputs.loss(logits, target).backward()
        optimizer.step()
    torch.testing.assert_close(outputs.value(logits.detach()), target.expand(2, 2), atol=2e-2, rtol=0)


def test_beside_products_in_bfloat16_values_keep_their_digits():
    outputs = hl_gauss()
    near = outputs.histogram(torch.tensor([0.5000, 0.5004])).log()[None]
    with torch.autocast("cpu", torch.bfloat16):
        values = outputs.value(near)
    assert values.dtype == torch.float32
    torch.testing.assert_close(values, torch.tensor([[0.5000, 0.5004]]), atol=1e-4, rtol=0)


def test_the_default_is_the_squared_error():
    outputs = make_critic_outputs(SACConfig(), RANGE, torch.device("cpu"))
    assert isinstance(outputs, Scalar)
    values = torch.tensor([[[1.0], [2.0]], [[0.0], [0.0]]])
    assert float(outputs.loss(values, torch.tensor([1.0, 0.0]))) == pytest.approx(2.0 + 0.5)
