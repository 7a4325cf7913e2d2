"""The prior of a lens: its directions are the covariance, and a fit that learns nothing gives the covariance back."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import FISHEYE, PINHOLE

from calibration.camera.lens_prior import LensPrior

seeds = st.integers(0, 10**6)
lenses = pytest.mark.parametrize("lens", [PINHOLE, FISHEYE], ids=lambda lens: lens.model)


def uncertain(lens, seed, rank=None):
    """The lens with a random covariance of this rank, in units as different as those of a real lens."""
    rng = np.random.default_rng(seed)
    n = len(lens.vector)
    A = rng.normal(size=(n, rank or n)) * np.array([1.0] * 4 + [1e-3] * (n - 4))[:, None]
    return dataclasses.replace(lens, covariance=tuple(map(tuple, (A @ A.T).tolist())))


@lenses
@given(seed=seeds, rank=st.integers(1, 8))
@settings(max_examples=15, deadline=None)
def test_the_directions_are_a_root_of_the_covariance(lens, seed, rank):
    lens = uncertain(lens, seed, rank)
    prior = LensPrior.from_intrinsics(lens)
    C = np.array(lens.covariance)
    unit = np.sqrt(np.diag(C))
    np.testing.assert_allclose(
        prior.directions @ prior.directions.T / np.outer(unit, unit), C / np.outer(unit, unit), atol=1e-8
    )
    assert prior.directions.shape == (len(lens.vector), min(rank, len(lens.vector)))


@lenses
@given(seed=seeds)
@settings(max_examples=10, deadline=None)
def test_moves_add_up_and_none_is_the_lens_itself(lens, seed):
    prior = LensPrior.from_intrinsics(uncertain(lens, seed))
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, prior.directions.shape[1]))
    np.testing.assert_array_equal(prior.moved(0.0 * a).vector, lens.vector)
    both = prior.moved(a).vector + prior.moved(b).vector - lens.vector
    np.testing.assert_allclose(prior.moved(a + b).vector, both, rtol=1e-12, atol=1e-12)


@lenses
def test_a_fit_that_learned_nothing_returns_the_covariance_and_one_that_learned_something_less(lens):
    lens = uncertain(lens, 0)
    prior = LensPrior.from_intrinsics(lens)
    nothing = np.zeros(prior.directions.shape[1])
    same = prior.corrected(nothing, np.eye(len(nothing)), 0.1)
    np.testing.assert_allclose(same.sigma, lens.sigma, rtol=1e-9)
    assert same.rms == 0.1
    half = prior.corrected(nothing, 0.25 * np.eye(len(nothing)), 0.1)
    np.testing.assert_allclose(half.sigma, 0.5 * lens.sigma, rtol=1e-9)


@lenses
def test_a_lens_without_covariance_is_fixed(lens):
    prior = LensPrior.from_intrinsics(lens)
    assert prior.directions.shape == (len(lens.vector), 0)
    assert prior.moved(np.zeros(0)) == lens
    assert prior.corrected(np.zeros(0), np.zeros((0, 0)), 0.2) == dataclasses.replace(lens, rms=0.2)


@lenses
def test_parameters_that_are_exactly_known_stay(lens):
    n = len(lens.vector)
    C = np.diag(np.where(np.arange(n) < 2, 1.0, 0.0))
    prior = LensPrior.from_intrinsics(dataclasses.replace(lens, covariance=tuple(map(tuple, C.tolist()))))
    assert prior.directions.shape == (n, 2)
    np.testing.assert_array_equal(prior.moved(np.array([3.0, -2.0])).vector[2:], lens.vector[2:])
