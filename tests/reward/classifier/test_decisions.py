"""What a classifier decides with, against the long way: debouncing, gates, the choice of frames, augmentation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robot_rl.reward.classifier.augment import augmented
from robot_rl.reward.classifier.classifier import debounced, first_at_least
from robot_rl.reward.classifier.frames import NEAR, FrameLabels, choose_frames, unclear_rows
from robot_rl.reward.classifier.physical_gate import PhysicalGate, all_open, parse_gate

SCORES = st.lists(st.integers(0, 4).map(lambda level: level / 4), max_size=30).map(np.array)
BOOLEANS = st.lists(st.booleans(), min_size=1, max_size=30).map(lambda rows: np.array(rows, bool))


def first_run(score, threshold, consecutive):
    """The last frame of the first k frames in a row at or above the threshold."""
    run = 0
    for row, value in enumerate(score):
        run = run + 1 if value >= threshold else 0
        if run == consecutive:
            return row
    return None


@given(SCORES, st.integers(1, 6), st.sampled_from([0.25, 0.5, 0.75, 1.0]))
def test_an_episode_ends_with_the_first_k_frames_in_a_row(score, consecutive, threshold):
    assert first_at_least(debounced(score, consecutive), threshold) == first_run(score, threshold, consecutive)


@given(SCORES, st.integers(1, 6))
def test_a_debounced_score_is_the_least_of_the_last_k(score, consecutive):
    found = debounced(score, consecutive)
    assert found.shape == score.shape
    for row, value in enumerate(found):
        wanted = score[row - consecutive + 1 : row + 1].min() if row >= consecutive - 1 else 0.0
        assert value == wanted


@given(SCORES, st.integers(1, 5), st.sampled_from([0.25, 0.5, 1.0]))
def test_more_frames_in_a_row_never_end_an_episode_earlier(score, consecutive, threshold):
    one, more = (first_at_least(debounced(score, k), threshold) for k in (consecutive, consecutive + 1))
    assert more is None or one is not None
    assert more is None or one < more


@given(BOOLEANS, st.integers(0, 5))
def test_a_frame_is_unclear_exactly_if_success_follows_within_the_margin(shows, margin):
    unclear = unclear_rows(shows, margin)
    for row in range(len(shows)):
        assert unclear[row] == (not shows[row] and shows[row + 1 : row + 1 + margin].any())


@st.composite
def labelled(draw):
    """Frame labels of some episodes, with nothing impossible among them."""
    episodes = []
    for shows in draw(st.lists(BOOLEANS, min_size=1, max_size=6)):
        unclear = unclear_rows(shows, draw(st.integers(0, 3)))
        deceptive = np.zeros_like(shows)
        if not shows.any() and draw(st.booleans()):
            deceptive[-2:] = True
        episodes.append(FrameLabels(shows, unclear, deceptive))
    return episodes


@given(labelled(), st.integers(0, 30), st.integers(0, 60), st.integers(0, 2**31))
def test_as_many_frames_are_chosen_as_are_wanted_or_there_are(labels, positives, negatives, seed):
    chosen = choose_frames(labels, positives, negatives, np.random.default_rng(seed))
    assert len(set(chosen)) == len(chosen)
    shown = [(episode, row) for episode, row in chosen if labels[episode].shows[row]]
    others = [(episode, row) for episode, row in chosen if not labels[episode].shows[row]]
    assert len(shown) == min(positives, sum(int(one.shows.sum()) for one in labels))
    assert len(others) == min(negatives, sum(int(one.negative.sum()) for one in labels))
    assert not any(labels[episode].unclear[row] for episode, row in chosen)


@given(labelled(), st.integers(1, 30), st.integers(0, 2**31))
def test_successes_are_shared_out_evenly(labels, positives, seed):
    """No episode gives two frames more than another one that has some left."""
    chosen = choose_frames(labels, positives, 0, np.random.default_rng(seed))
    counts = [sum(episode == number for episode, _ in chosen) for number in range(len(labels))]
    for number, one in enumerate(labels):
        if counts[number] < one.shows.sum():
            assert max(counts) - counts[number] <= 1


@given(labelled(), st.integers(1, 40), st.integers(0, 2**31))
def test_what_deceived_before_is_learned_from_first(labels, negatives, seed):
    chosen = set(choose_frames(labels, 0, negatives, np.random.default_rng(seed)))
    deceptive = {(n, int(row)) for n, one in enumerate(labels) for row in np.flatnonzero(one.deceptive)}
    assert len(chosen & deceptive) == min(negatives, len(deceptive))


def test_half_of_the_negatives_are_near_a_success():
    shows = np.zeros(200, bool)
    shows[100] = True
    labels = [FrameLabels(shows, np.zeros_like(shows), np.zeros_like(shows))]
    chosen = choose_frames(labels, 1, 20, np.random.default_rng(0))
    near = [row for _, row in chosen if row != 100 and abs(row - 100) <= NEAR]
    assert len(near) == 10


@pytest.mark.parametrize("length", [12, 20, 30, 40])
def test_what_is_near_a_success_does_not_depend_on_the_length_of_the_episode(length):
    shows = np.arange(length) == length - 1
    one = FrameLabels(shows, np.zeros_like(shows), np.zeros_like(shows))
    none = np.zeros(100, bool)
    labels = [FrameLabels(none, none, none), one]  # of two negatives, one is near and one is of the failure
    chosen = {row for seed in range(300) for n, row in choose_frames(labels, 0, 2, np.random.default_rng(seed)) if n}
    assert chosen == set(range(max(0, length - 1 - NEAR), length - 1))


@given(st.integers(0, 9), st.booleans(), st.floats(-1e6, 1e6), st.sampled_from(["state/tcp_pose", "state/x_1"]))
def test_a_gate_is_read_as_it_is_written(index, below, bound, key):
    gate = PhysicalGate(key, index, below, float(f"{bound:g}"))
    assert parse_gate(str(gate)) == gate


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=20), st.floats(-5, 5))
def test_every_value_passes_one_of_two_opposite_gates_and_both_only_at_the_bound(values, bound):
    rows = {"state/x": np.array(values)[:, None]}
    low, high = (PhysicalGate("state/x", 0, below, bound) for below in (True, False))
    assert (low.open(rows) | high.open(rows)).all()
    assert (low.open(rows) & high.open(rows)).tolist() == [value == bound for value in values]
    assert all_open((low, high), rows, len(values)).tolist() == [value == bound for value in values]


@settings(max_examples=25)
@given(st.integers(0, 2**31), st.integers(8, 40), st.integers(8, 40))
def test_an_augmented_frame_is_a_frame_of_the_same_size(seed, height, width):
    frame = np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)
    before = frame.copy()
    found = augmented(frame, np.random.default_rng(seed))
    assert (found.dtype, found.shape) == (np.uint8, frame.shape)
    assert (frame == before).all()
    assert (found == augmented(frame, np.random.default_rng(seed))).all(), "the same draws, the same frame"


@pytest.mark.parametrize("level", [0, 60, 120])
def test_augmentation_keeps_an_even_surface_even_and_the_mean_brightness_near(level):
    rng, frame = np.random.default_rng(0), np.full((16, 16, 3), level, np.uint8)
    means = []
    for _ in range(200):
        found = augmented(frame, rng)
        assert np.ptp(found.reshape(-1, 3), axis=0).max() == 0
        means.append(found.mean())
    assert np.mean(means) == pytest.approx(level, abs=0.05 * level + 1)
    assert (np.std(means) > 0) == (level > 0)
