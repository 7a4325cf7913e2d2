"""Identification of a simulated arm, on an arm that answers linearly: exact, unbiased by its check, and honest."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from calibration.arm.arm_identification import HELD_OUT, PARAMETERS, identify_arm
from robot_rl.config.components import SimulationConfig
from robot_rl.env.playback import Motion
from robot_rl.errors import CalibrationError
from robot_rl.geometry import Pose

OWN = SimulationConfig(0.5, 0.2, 2.0, 0.5, 2000.0, 100.0, 0.01)
TRUTH = SimulationConfig(0.9, 0.35, 6.0, 1.5, 1600.0, 80.0, 0.018)
SCALES = np.array([1.0, 0.4, 4.0, 1.0, 2000.0, 100.0, 0.02])
STEPS = 30


@dataclass(frozen=True)
class LinearArm:
    """An arm whose poses are a known path plus a linear function of its settings, another for each motion."""

    own: SimulationConfig = OWN
    blind: tuple[int, ...] = ()
    """Settings that change nothing."""

    def __call__(self, motion, simulation):
        values = np.array([getattr(simulation, name) for name in PARAMETERS]) / SCALES
        values[list(self.blind)] = 0.0
        rng = np.random.default_rng(int(motion.name))
        path = 0.05 * np.sin(np.linspace(0, 3, STEPS + 1)[:, None] + rng.uniform(0, 6, 3))
        answers = rng.normal(size=(STEPS + 1, 6, len(PARAMETERS))) * np.repeat([5e-3, 1e-2], 3)[:, None]
        answers[0] = 0.0
        changes = answers @ values
        return [Pose.from_rotvec(p + c[:3], c[3:]) for p, c in zip(path, changes, strict=True)]


def motions(count=12, *, truth=TRUTH, noise=1e-4, arm=LinearArm(), seed=0):
    """What the arm with the true settings does, measured with noise."""
    rng = np.random.default_rng(seed)
    stamps = np.arange(STEPS + 1, dtype=np.int64) * 10**8
    found = []
    for i in range(count):
        motion = Motion(f"{100 * seed + i}", stamps, (), stamps[:-1], (Pose.identity(),) * STEPS)
        poses = arm(motion, truth)
        measured = [poses[0]]
        measured += [T @ Pose.from_rotvec(rng.normal(0, noise, 3), rng.normal(0, 2 * noise, 3)) for T in poses[1:]]
        found.append(replace(motion, poses=tuple(measured)))
    return found


def vector(settings):
    return np.array([getattr(settings, name) for name in PARAMETERS])


def test_without_noise_the_settings_are_exact():
    fit = identify_arm(LinearArm(), motions(noise=0.0), "fr3")
    np.testing.assert_allclose(vector(fit.result.settings), vector(TRUTH), rtol=1e-4)
    assert fit.quality.good, fit.quality.verdict
    assert (fit.errors < 1e-2 * fit.errors_before).all()
    np.testing.assert_array_equal(fit.before, vector(OWN))


def test_errors_are_as_large_as_the_covariance_states():
    distances = []
    for seed in range(8):
        result = identify_arm(LinearArm(), motions(8, seed=seed), "fr3").result
        error = vector(result.settings) - vector(TRUTH)
        distances.append(error @ np.linalg.solve(np.array(result.covariance), error))
    assert 3.5 < np.mean(distances) < 12.0  # seven settings; the standard error of the mean is 1.3


def test_motions_held_out_have_no_influence_and_are_every_fourth():
    given = motions()
    before = identify_arm(LinearArm(), given, "fr3")
    assert np.flatnonzero(before.held_out).tolist() == [3, 7, 11] == list(range(HELD_OUT - 1, 12, HELD_OUT))
    spoiled = list(given)
    shift = Pose.from_rotvec(np.full(3, 0.02), np.zeros(3))
    for i in np.flatnonzero(before.held_out):
        spoiled[i] = replace(given[i], poses=(given[i].poses[0], *(shift @ T for T in given[i].poses[1:])))
    after = identify_arm(LinearArm(), spoiled, "fr3")
    assert after.result.settings == before.result.settings
    assert after.quality.figures["held_out_rms_mm"] > before.quality.figures["held_out_rms_mm"]
    assert after.quality.figures["rms_mm"] == before.quality.figures["rms_mm"]


def test_the_order_within_the_fit_and_the_check_does_not_matter():
    given = motions()
    out = np.arange(12) % HELD_OUT == HELD_OUT - 1
    used = [m for m, o in zip(given, out, strict=True) if not o]
    rng = np.random.default_rng(0)
    shuffled = iter([used[i] for i in rng.permutation(len(used))])
    mixed = [m if o else next(shuffled) for m, o in zip(given, out, strict=True)]
    a, b = (vector(identify_arm(LinearArm(), m, "fr3").result.settings) for m in (given, mixed))
    np.testing.assert_allclose(a, b, rtol=1e-3)


def test_an_arm_that_is_right_already_stays_as_it_is():
    arm = LinearArm(own=TRUTH)
    fit = identify_arm(arm, motions(), "fr3")
    sigma = np.sqrt(np.diag(fit.result.covariance))
    assert (np.abs(vector(fit.result.settings) - vector(TRUTH)) < 4.0 * sigma).all()


@pytest.mark.parametrize("blind", [(0,), (4,), (6,)])
def test_a_setting_that_changes_nothing_is_named_and_nothing_is_good(blind):
    arm = LinearArm(blind=blind)
    quality = identify_arm(arm, motions(arm=arm), "fr3").quality
    assert not quality.good
    assert PARAMETERS[blind[0]] in quality.verdict
    assert "do not determine" in quality.verdict


def test_a_setting_beyond_its_limit_is_named():
    stiff = replace(TRUTH, translation_stiffness=30_000.0)
    quality = identify_arm(LinearArm(), motions(truth=stiff), "fr3").quality
    assert not quality.good
    assert "translation_stiffness ended at the limit" in quality.verdict


def test_more_noise_never_makes_a_bad_result_good():
    good = [identify_arm(LinearArm(), motions(noise=noise), "fr3").quality.good for noise in (1e-5, 1e-4, 1e-3, 1e-2)]
    assert good == sorted(good, reverse=True)
    assert good[0]
    assert not good[-1]


@pytest.mark.parametrize(
    ("given", "message"),
    [(motions(7), "7 free motions with 210 steps, needed are 8 with 150"), ([], "0 free motions with 0 steps")],
)
def test_too_few_motions_are_refused(given, message):
    with pytest.raises(CalibrationError, match=message):
        identify_arm(LinearArm(), given, "fr3")
