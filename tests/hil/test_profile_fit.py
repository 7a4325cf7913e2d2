"""Known profiles are recovered from the runs that they made."""

import json

import numpy as np
import pytest
from running import robot_rl

from robot_rl.config.load import load_config
from robot_rl.config.operator_profile import InterventionConfig
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.registry import make_workcell
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.task import WorkcellOptions
from robot_rl.errors import DataError, UnknownNameError
from robot_rl.hil.profile_fit import Habits, estimates, fit_profile, read_habits
from robot_rl.learn.actor import Rollout, StoreRecorder

MADE = {
    "ideal": InterventionConfig(),
    "late and short": InterventionConfig(profile="late", length=0.5),
    "wrong": InterventionConfig(wrong=1.0, wrong_by=0.15),
    "half wrong": InterventionConfig(wrong=0.5, wrong_by=0.15),
    "sporadic": InterventionConfig(attention=0.3),
}
EPISODES = 24


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A store per profile, of a policy that does nothing."""
    folder = tmp_path_factory.mktemp("runs")
    for name, intervention in MADE.items():
        options = WorkcellOptions(intervention=intervention)
        env = RobotEnv(make_workcell("reach", options), interventions=True, options=options)
        with EpisodeStore.create(folder / name) as store:
            rollout = Rollout(env, None, None, (0,), [StoreRecorder(store)])
            for seed in range(EPISODES):
                rollout.play(1000 + seed, f"episode-{seed:05d}", deterministic=True)
        env.close()
    return folder


def within(estimate, value):
    return estimate.low - 1e-9 <= value <= estimate.high + 1e-9


def test_reaction_and_length_are_recovered_with_their_intervals(runs):
    fitted = fit_profile(read_habits(runs / "late and short"), read_habits(runs / "ideal"))
    assert fitted["reaction_s"].value == pytest.approx(0.3, abs=0.051)
    assert within(fitted["reaction_s"], 0.3)
    assert fitted["length"].value == pytest.approx(0.5, abs=0.15)
    assert fitted["length"].high < 0.8
    assert fitted["wrong"].value < 0.1


def test_the_ideal_operator_fits_itself(runs):
    ideal = read_habits(runs / "ideal")
    fitted = fit_profile(ideal, ideal)
    assert fitted["reaction_s"].value == fitted["wrong"].value == 0.0
    assert fitted["length"].value == 1.0
    assert within(fitted["length"], 1.0)
    found = estimates(ideal)
    assert found["wait_s"].value == pytest.approx(0.8)  # the operator's patience on this task
    assert found["useful"].value > 0.9
    assert found["useful"].count == ideal.counts.sum() > EPISODES


def test_wrong_take_overs_show_as_useless_ones(runs):
    ideal = read_habits(runs / "ideal")
    half, all_wrong = (fit_profile(read_habits(runs / name), ideal)["wrong"] for name in ("half wrong", "wrong"))
    assert 0.15 < half.value < 0.65
    assert half.low > 0.0
    assert half.value < all_wrong.value
    assert all_wrong.value > 0.6


def test_the_share_of_episodes_that_are_watched_is_recovered(runs):
    watched = estimates(read_habits(runs / "sporadic"))["watched"]
    assert within(watched, 0.3)
    assert watched.count == EPISODES
    often = estimates(read_habits(runs / "ideal"))["per_minute"]
    assert often.low > estimates(read_habits(runs / "sporadic"))["per_minute"].high


def test_the_command_writes_a_profile_that_a_training_reads(runs, tmp_path):
    out = tmp_path / "profile.yaml"
    done = robot_rl("operator", "fit", runs / "late and short", "--reference", runs / "ideal", "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["profile"]["reaction_s"]["value"] == pytest.approx(0.3, abs=0.051)
    intervention = load_config(out).intervention
    assert intervention.drawn(0).reaction_s == pytest.approx(0.3, abs=0.051)
    assert intervention.drawn(0).length == pytest.approx(answer["profile"]["length"]["value"], abs=1e-3)
    refused = robot_rl("operator", "fit", runs / "ideal", "--out", out)
    assert refused.returncode == 2
    assert "--reference" in refused.stderr


def test_a_run_without_take_overs_or_goal_is_one_line(runs, tmp_path):
    with EpisodeStore.create(tmp_path / "none"):
        pass
    with pytest.raises(DataError, match="no take-over"):
        read_habits(tmp_path / "none")
    with pytest.raises(UnknownNameError, match="elsewhere"):
        read_habits(runs / "ideal", goal="state/elsewhere")
    assert np.isfinite(read_habits(runs / "ideal", goal="state/target").waits).all()


def test_an_episode_that_the_operator_led_from_start_to_end_has_no_rate():
    one = {"waits": np.zeros(2), "lengths": np.ones(1), "useful": np.ones(2), "counts": np.ones(2)}
    found = estimates(Habits(**one, policy_minutes=np.array([0.0, 0.2])))
    assert (found["per_minute"].value, found["per_minute"].high, found["per_minute"].count) == (5.0, 5.0, 1)
    assert "per_minute" not in estimates(Habits(**one, policy_minutes=np.zeros(2)))
