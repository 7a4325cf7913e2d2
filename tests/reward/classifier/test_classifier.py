"""A reward classifier on pictures whose meaning is known: trained, judged, spoiled, and as a judge of episodes."""

import time
from dataclasses import replace

import numpy as np
import pytest
from fakes import SPEC
from pushing import pushed_episode, pushed_moments, scene

from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.task import Outcome
from robot_rl.errors import ConfigError, DataError, UncertifiedError, UnknownNameError
from robot_rl.reward.classifier.certificate import certify, check_fit
from robot_rl.reward.classifier.classifier import FrameScorer, read_classifier_file
from robot_rl.reward.classifier.frames import LabelledStore
from robot_rl.reward.classifier.physical_gate import parse_gate
from robot_rl.reward.classifier.report import evaluate_episodes, make_classifier_report
from robot_rl.reward.classifier.report_plot import draw_report
from robot_rl.reward.classifier.reward_source import ClassifierReward
from robot_rl.reward.classifier.train import ClassifierSettings, train_classifier
from robot_rl.reward.validation.gates import ConditionResult, Fitness, GateResult

SETTINGS = ClassifierSettings(size=64, positives=60, negatives=100, margin=0, copies=1, consecutive=2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("classifier")
    pushed_moments(path / "train")
    pushed_moments(path / "test", first=100)
    return path


@pytest.fixture(scope="module")
def classifier(folder):
    return train_classifier([LabelledStore(folder / "train")], "push", SETTINGS)


def gate_result(fitness):
    return GateResult("ending episodes", (ConditionResult(fitness, "recall"),))


def report_of(classifier, path, **store):
    return make_classifier_report(classifier, *evaluate_episodes(classifier, LabelledStore(path, **store).episodes(0)))


def test_it_ends_unseen_episodes_where_they_are_a_success(classifier, folder):
    report = report_of(classifier, folder / "test")
    figures = {name: figure.value for name, figure in report.figures.items()}
    assert figures["frame_roc_auc"] > 0.98
    assert figures["precision"] == 1.0
    assert figures["recall"] >= 0.8
    assert figures["delay_steps"] <= 3.0
    assert classifier.facts["held_out_false_positives"] == 0
    # 8 failures cannot show that fewer than 1 in 100 is called a success, and the report says how many could.
    assert report.gate.fitness is not Fitness.FIT
    assert any("381 without a fault would do" in text for text in report.gate.unsure)


def test_the_threshold_keeps_to_the_false_positives_that_are_allowed(folder):
    with EpisodeStore.create(folder / "noisy") as store:  # a quarter of the failures looks like a success
        for number in range(30):
            store.append(pushed_episode(number, arrives=number % 2 == 0))
            if number % 6 == 1:
                one = pushed_episode(number + 1000, arrives=True)
                store.append(replace(one, reward=np.zeros(len(one), np.float32)))
    settings = replace(SETTINGS, false_positive_rate=0.06)
    facts = train_classifier([LabelledStore(folder / "noisy")], "push", settings).facts
    assert facts["held_out_false_positives"] <= 0.06 * facts["episodes"]
    assert facts["held_out_recall"] < 0.8  # what they cost


@pytest.mark.slow
def test_a_spoiled_classifier_is_caught(folder):
    with EpisodeStore.create(folder / "flipped") as store:
        for number in range(24):
            one = pushed_episode(number, arrives=number % 3 > 0)
            store.append(replace(one, reward=1.0 - one.reward))
    spoiled = train_classifier([LabelledStore(folder / "flipped")], "push", SETTINGS)
    gate = report_of(spoiled, folder / "test").gate
    assert gate.fitness is Fitness.UNFIT
    assert "contradicts these labels" in gate.causes[0]


@pytest.mark.slow
def test_a_success_that_is_seen_in_the_first_frame_is_one_without_delay(classifier, folder):
    episodes, _ = evaluate_episodes(classifier, LabelledStore(folder / "test").episodes(0))
    at_once = [replace(one, shows=np.ones_like(one.shows), fired=0) if one.success else one for one in episodes]
    assert make_classifier_report(classifier, at_once).figures["delay_steps"].value == 0.0


def test_what_it_was_trained_on_does_not_count(classifier, folder):
    with pytest.raises(DataError, match="was trained on all 24"):
        report_of(classifier, folder / "train")
    episodes, skipped = evaluate_episodes(
        classifier, (one for name in ("train", "test") for one in LabelledStore(folder / name).episodes(0))
    )
    assert (len(episodes), skipped) == (24, 24)


def test_an_episode_that_its_task_ended_is_looked_at_as_if_it_had_stayed(classifier, folder):
    with EpisodeStore.create(folder / "ended") as store:
        for number in range(200, 212):
            store.append(pushed_episode(number, arrives=number % 3 > 0, steps=7))  # ends in the first frame of success
    report = report_of(classifier, folder / "ended")
    assert report.figures["precision"].value == 1.0
    assert report.figures["recall"].value >= 0.7


def test_held_out_episodes_that_their_task_ended_count_as_in_the_report(folder):
    """Ordinary demonstrations show their success in one frame, fewer than have to agree."""
    with EpisodeStore.create(folder / "demonstrations") as store:
        for number in range(24):
            store.append(pushed_episode(number, arrives=number % 3 > 0, steps=7))
    facts = train_classifier([LabelledStore(folder / "demonstrations")], "push", replace(SETTINGS, consecutive=3)).facts
    assert facts["held_out_recall"] > 0.7
    assert facts["held_out_success_probability"] > 0.5
    assert facts["held_out_false_positives"] == 0


def test_it_comes_back_from_its_file_as_it_was(classifier, tmp_path):
    gated = replace(classifier, gates=(parse_gate("state/tcp_pose[0] <= 0.5"),))
    gated.write(tmp_path / "c.pt")
    again, frames = (
        read_classifier_file(tmp_path / "c.pt").classifier,
        np.stack([scene(np.random.default_rng(1), 0.0)] * 2),
    )
    rows = {"images/front": frames, "state/tcp_pose": np.array([[0.0], [0.9]])}
    assert FrameScorer(again).score(rows).tolist() == FrameScorer(gated).score(rows).tolist()
    assert FrameScorer(again).score(rows)[1] == 0.0  # the gate is closed
    assert (again.gates, again.facts) == (gated.gates, gated.facts)
    (tmp_path / "x").write_bytes(b"no classifier")
    with pytest.raises(DataError, match="is no reward classifier"):
        read_classifier_file(tmp_path / "x")
    with pytest.raises(DataError, match="robot-rl classifier train"):
        read_classifier_file(tmp_path / "none")


def test_the_page_is_drawn_and_says_what_a_training_may_do(classifier, folder, tmp_path):
    path = tmp_path / "c.pt"
    classifier.write(path)
    with pytest.raises(UncertifiedError, match="has no report"):
        check_fit(read_classifier_file(path))
    report = report_of(classifier, folder / "test")
    draw_report(classifier, report, tmp_path / "page.png")
    assert (tmp_path / "page.png").read_bytes().startswith(b"\x89PNG")
    certify(read_classifier_file(path), replace(report, gate=gate_result(Fitness.FIT)))
    assert check_fit(read_classifier_file(path)).passed
    certify(read_classifier_file(path), replace(report, gate=gate_result(Fitness.NOT_SHOWN)))
    assert check_fit(read_classifier_file(path)).fitness is Fitness.NOT_SHOWN
    certify(read_classifier_file(path), replace(report, gate=gate_result(Fitness.UNFIT)))
    with pytest.raises(UncertifiedError, match=r"reward\.allow_unfit"):
        check_fit(read_classifier_file(path))
    replace(classifier, threshold=0.7).write(path)
    with pytest.raises(UncertifiedError, match="of another classifier"):
        check_fit(read_classifier_file(path))


def test_too_few_examples_and_unknown_cameras_are_refused(folder, tmp_path):
    pushed_moments(tmp_path / "few", episodes=4)
    with pytest.raises(DataError, match="too few to train on"):
        train_classifier([LabelledStore(tmp_path / "few")], "push", SETTINGS)
    with pytest.raises(UnknownNameError, match="valid: front"):
        train_classifier([LabelledStore(folder / "train")], "push", replace(SETTINGS, cameras=("wrist",)))
    with pytest.raises(ConfigError, match="no such element"):
        gates = (parse_gate("state/height[0] <= 1"),)
        train_classifier([LabelledStore(folder / "train")], "push", replace(SETTINGS, gates=gates))
    with pytest.raises(ConfigError, match=r"only 0% of the frames that show success pass it.*mostly between 0 and 0"):
        gates = (parse_gate("state/tcp_pose[0] >= 0.5"),)
        train_classifier([LabelledStore(folder / "train")], "push", replace(SETTINGS, gates=gates))


@pytest.mark.parametrize("size", [64, 32])
def test_grey_frames_are_refused_in_one_line(folder, tmp_path, size):
    """As an imported dataset may have them."""
    with EpisodeStore.create(tmp_path / "grey") as store:
        for one in LabelledStore(folder / "train").episodes(0):
            grey = one.episode.observations["images/front"][..., :1]
            store.append(replace(one.episode, observations={**one.episode.observations, "images/front": grey}))
    with pytest.raises(DataError, match=r"frames are uint8 \(\d+, 64, 64, 1\), must be RGB"):
        train_classifier([LabelledStore(tmp_path / "grey")], "push", replace(SETTINGS, size=size))


# ------------------------------------------------------------------ as a judge


def observation(number, distance):
    return {"images/front": scene(np.random.default_rng(number), distance)}


def test_as_a_judge_it_ends_an_episode_after_k_frames_and_keeps_the_truth_beside_it(classifier):
    judge = ClassifierReward(classifier, waits=True)
    judge.begin()
    said = [judge.judge(Outcome(False, 0.3), observation(n, d), SPEC) for n, d in enumerate([1.0, 0.0, 0.6, 0.0, 0.0])]
    assert [one.success for one in said] == [False, False, False, False, True]
    assert [one.reward for one in said] == [0.0, 0.0, 0.0, 0.0, SPEC.return_range[1]]
    assert said[-1].judge == "classifier"
    assert said[-1].metrics["task_success"] == 0.0
    judge.begin()
    once = judge.judge(Outcome(True, 1.0), observation(9, 0.0), SPEC)
    assert (once.success, once.metrics["task_success"]) == (False, 1.0)  # one frame is not enough in a new episode
    failed = judge.judge(Outcome(False, 0.0, failure="dropped"), observation(9, 0.0), SPEC)
    assert (failed.success, failed.failure) == (False, "dropped")


def test_beside_the_control_loop_it_answers_later_and_never_for_another_episode(classifier):
    with ClassifierReward(classifier, waits=False) as judge:
        judge.begin()
        for _ in range(3):  # what is asked now is not answered now
            assert not judge.judge(Outcome(False, 0.0), observation(0, 0.0), SPEC).success
            judge.begin()
        time.sleep(1.0)
        said, deadline = judge.judge(Outcome(False, 0.0), observation(0, 0.9), SPEC), time.monotonic() + 60
        assert said.metrics["classifier_probability"] == 0.0  # the answers about the last episode are gone
        while not said.success and time.monotonic() < deadline:
            said = judge.judge(Outcome(False, 0.0), observation(0, 0.0), SPEC)
            time.sleep(0.01)
        assert said.success


def test_what_goes_wrong_beside_the_loop_is_heard_in_it(classifier):
    with ClassifierReward(classifier, waits=False) as judge:
        judge.begin()
        with pytest.raises(DataError, match="no frames of camera front"):
            for _ in range(600):
                judge.judge(Outcome(False, 0.0), {}, SPEC)
                time.sleep(0.05)
