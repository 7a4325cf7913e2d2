"""Labels become rewards beside the recorded ones, by a gate that can be opened only knowingly."""

import numpy as np
import pytest
from scenes import stamped_store

from robot_rl.data.store.reward_overlays import read_overlay
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import DataError, UncertifiedError
from robot_rl.reward.answer import Answer, Status
from robot_rl.reward.label_store import Label
from robot_rl.reward.labels.apply import apply_labels, check_certified
from robot_rl.reward.query import QueryKind
from robot_rl.reward.shaping import potential_between, shaped_reward
from robot_rl.reward.validation.gates import GATES, ConditionResult, Fitness, GateResult
from robot_rl.reward.validation.probability_calibration import Calibration
from robot_rl.reward.validation.verdict import judge_labels

SUCCESS_USE, *_ = GATES[QueryKind.SUCCESS]


@pytest.fixture
def store(tmp_path):
    with EpisodeStore.open(stamped_store(tmp_path / "s", 5)) as opened:
        yield opened


def label(store, name, answer, rows=(0, 9)):
    clip = {"episode_id": name, "fingerprint": store.fingerprint(name), "camera": "front", "rows": list(rows)}
    return Label("k", (clip,), answer, "")


def value(*values):
    return Answer(Status.OK, values)


def applied(store, labels, kind=QueryKind.SUCCESS, **settings):
    settings = {"calibration": None, "discount": 0.9} | settings
    return apply_labels(store, "mine", labels, kind, {"by": "test"}, **settings)


def overlay(store, name):
    return read_overlay(store.path, "mine", store.fingerprint(name))


def test_a_labelled_success_is_rewarded_at_its_end_and_only_there(store):
    names = store.ids()
    answers = [value(0.9), value(0.1), value(0.5), Answer(Status.UNSURE)]
    done = applied(store, [label(store, name, answer) for name, answer in zip(names, answers, strict=False)])
    assert (done.episodes, done.without, done.positive) == (3, (names[3], names[4]), 2)
    for name, success in zip(names[:3], (True, False, True), strict=True):
        found = overlay(store, name)
        assert found.reward.tolist() == [0.0] * (len(found.reward) - 1) + [float(success)]
        assert found.terminated is success, "a success ends the task, anything else was cut off"
        assert found.provenance["by"] == "test"
        assert store.read(name, rewards="mine").reward_source == "mine"
        assert store.read(name).reward_source != "mine", "what was recorded stays"


def test_the_calibration_decides_what_is_a_success(store):
    strict = Calibration("success", 1.0, 0.0, 0.95, (), 0)
    done = applied(store, [label(store, name, value(0.9)) for name in store.ids()], calibration=strict)
    assert (done.episodes, done.positive) == (5, 0)


def test_progress_shapes_the_recorded_reward(store):
    name = store.ids()[0]
    done = applied(store, [label(store, name, value(0.0, 0.4, 1.0), (0, 4, 9))], QueryKind.PROGRESS)
    episode, found = store.read(name), overlay(store, name)
    potential = potential_between((0, 4, 9), (0.0, 0.4, 1.0), len(episode))
    wanted = shaped_reward(episode.reward, potential, bool(episode.terminated[-1]), 0.9)
    np.testing.assert_array_equal(found.reward, wanted)
    assert (done.positive, found.terminated) == (None, None)


def test_a_label_of_an_episode_that_was_recorded_anew_is_not_used(store):
    name = store.ids()[0]
    old = Label("k", ({"episode_id": name, "fingerprint": "another", "camera": "front", "rows": [9]},), value(0.9), "")
    assert applied(store, [old]).without == tuple(store.ids())


def test_rewards_are_not_written_twice(store):
    labels = [label(store, store.ids()[0], value(0.9))]
    applied(store, labels)
    with pytest.raises(DataError):
        applied(store, labels)


def result(fitness):
    return GateResult(SUCCESS_USE, (ConditionResult(fitness, "recall: 0.7"),))


@pytest.mark.parametrize("allowed", [False, True])
def test_labels_that_passed_the_gate_may_be_used(allowed):
    passed = result(Fitness.FIT)
    assert check_certified(QueryKind.SUCCESS, passed, allowed) is passed


@pytest.mark.parametrize("fitness", [Fitness.NOT_SHOWN, Fitness.UNFIT])
def test_others_only_by_who_takes_the_risk(fitness):
    gate = result(fitness)
    with pytest.raises(UncertifiedError, match=rf"{fitness} recall: 0\.7.*more episodes.*--allow-uncalibrated"):
        check_certified(QueryKind.SUCCESS, gate, False)
    assert check_certified(QueryKind.SUCCESS, gate, True) is gate


def test_without_a_comparison_nothing_is_certified():
    with pytest.raises(UncertifiedError, match="no known outcomes to compare them with"):
        check_certified(QueryKind.SUCCESS, judge_labels(QueryKind.SUCCESS, [], {}), False)
    assert judge_labels(QueryKind.SUCCESS, [], {}).fitness is Fitness.NOT_SHOWN


def test_scores_are_rewards_of_every_step_only_for_who_takes_the_risk():
    with pytest.raises(UncertifiedError, match=r"no end of the task.*apply it as shaping.*--allow-uncalibrated"):
        check_certified(QueryKind.SCORE, None, False)
    assert check_certified(QueryKind.SCORE, None, True).fitness is Fitness.NOT_SHOWN


def scored(store):
    """Every frame's score is 0.2 + 0.001 row, so the lowest is 0.2 and the highest that of the longest episode."""
    lengths = {row.episode_id: row.length for row in store.summaries()}
    rows = {name: tuple(range(0, length + 1, length)) for name, length in lengths.items()}
    made = [label(store, name, value(*(0.2 + 0.001 * row for row in rows[name])), rows[name]) for name in lengths]
    return made, lengths, max(lengths.values())


def test_a_score_that_shapes_changes_every_return_by_its_first_potential_alone(store):
    labels, lengths, longest = scored(store)
    done = applied(store, labels, QueryKind.SCORE)
    assert (done.episodes, done.positive) == (len(lengths), None)
    for name, length in lengths.items():
        episode, found = store.read(name), overlay(store, name)
        assert found.terminated is None
        potential = np.arange(length + 1) / longest
        expected = shaped_reward(episode.reward, potential, bool(episode.terminated[-1]), 0.9)
        assert found.reward.tolist() == pytest.approx(expected.tolist(), abs=1e-4)


def test_a_score_that_is_the_reward_is_worth_a_success_to_who_stays_at_the_goal(store):
    labels, lengths, longest = scored(store)
    applied(store, labels, QueryKind.SCORE, instead=True)
    for name, length in lengths.items():
        found = overlay(store, name)
        expected = 0.1 * np.arange(1, length + 1) / longest
        assert found.reward.tolist() == pytest.approx(expected.tolist(), abs=1e-4)
        assert found.terminated is False, "a similarity marks no end"


def test_scores_that_are_all_the_same_are_no_reward(store):
    with pytest.raises(DataError, match="all scores are the same"):
        applied(store, [label(store, name, value(0.3, 0.3)) for name in store.ids()], QueryKind.SCORE)
