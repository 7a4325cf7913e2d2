import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tagged import ACTION_SIZE, PACKER, action, episode, percept, percepts, tag

from robot_rl.data.replay.buffer import ReplayBuffer
from robot_rl.data.replay.percept import Percept, ToolElements
from robot_rl.data.replay.transition import Transition
from robot_rl.data.schema import Source
from robot_rl.errors import DataError

P, H, S = Source.POLICY, Source.HUMAN, Source.SCRIPT


def ring(capacity):
    return ReplayBuffer(capacity, PACKER.size, ACTION_SIZE)


def add(buffer, one):
    buffer.add_episode(one, percepts(one))


def stream(buffer, number, sources, end=None):
    """Appends a tagged episode step by step; `end` is what the last step is."""
    buffer.begin(percept(number, 0))
    for t, source in enumerate(sources):
        last = t == len(sources) - 1
        buffer.append(
            Transition(
                action(number, t),
                tag(number, t) + 0.5,
                last and end == "terminated",
                last and end == "truncated",
                source,
            ),
            percept(number, t + 1),
        )


def everything(buffer, n_step, discount, history=(0,), operator_only=False):
    count = buffer.operator_count if operator_only else len(buffer)
    rng = np.random.default_rng(0)  # crops images, of which there are none
    return buffer.gather(
        np.arange(count), rng, n_step=n_step, discount=discount, history=history, operator_only=operator_only
    )


def tags(rows):
    """Of (count, H * state_size) stacked observations the (count, H) tags; all elements of one must agree."""
    stacked = rows.reshape(len(rows), -1, PACKER.size)
    assert (stacked == stacked[..., :1]).all()
    return stacked[..., 0]


def naive(number, sources, end, t, n_step, discount, history):
    """One transition, in plain Python: (observation tags, action tag, reward, discount, next observation tags)."""
    total, steps, terminated = 0.0, 0, False
    while steps < n_step and t + steps < len(sources) and sources[t + steps] == sources[t]:
        total += discount**steps * (tag(number, t + steps) + 0.5)
        terminated = end == "terminated" and t + steps == len(sources) - 1
        steps += 1
    return (
        [tag(number, max(0, t - age)) for age in history],
        tag(number, t) + 0.5,
        total,
        0.0 if terminated else discount**steps,
        [tag(number, max(0, t + steps - age)) for age in history],
    )


def assert_equals_naive(sample, expected):
    assert len(sample.reward) == len(expected)
    if not expected:
        return
    observation, actions, reward, discount, next_observation = map(np.array, zip(*expected, strict=True))
    assert all(array.dtype == np.float32 for array in sample[:5])
    assert np.array_equal(tags(sample.observation), observation)
    assert np.array_equal(sample.action, np.stack([actions, actions], 1))
    assert np.allclose(sample.reward, reward, rtol=1e-6)
    assert np.allclose(sample.discount, discount, rtol=1e-6)
    assert np.array_equal(tags(sample.next_observation), next_observation)


def test_windows_by_hand():
    buffer = ring(100)
    stream(buffer, 0, [P, P, P, P], "terminated")  # rewards 0.5, 1.5, 2.5, 3.5
    sample = everything(buffer, n_step=3, discount=0.5)
    assert sample.reward.tolist() == [0.5 + 0.75 + 0.625, 1.5 + 1.25 + 0.875, 2.5 + 1.75, 3.5]
    assert sample.discount.tolist() == [0.125, 0.0, 0.0, 0.0]
    assert tags(sample.next_observation).ravel().tolist() == [3, 4, 4, 4]


def test_truncation_bootstraps_from_its_own_last_observation():
    buffer = ring(100)
    stream(buffer, 0, [P, P, P], "truncated")
    stream(buffer, 7, [P], "terminated")
    sample = everything(buffer, n_step=2, discount=0.5)
    assert sample.reward.tolist() == [0.5 + 0.75, 1.5 + 1.25, 2.5, 7000.5]
    assert sample.discount.tolist() == [0.25, 0.25, 0.5, 0.0]
    assert tags(sample.next_observation).ravel().tolist() == [2, 3, 3, 7001]


def test_an_unfinished_episode_bootstraps_from_its_newest_observation():
    buffer = ring(100)
    stream(buffer, 0, [P, P])
    sample = everything(buffer, n_step=3, discount=0.5)
    assert sample.discount.tolist() == [0.25, 0.5]
    assert tags(sample.next_observation).ravel().tolist() == [2, 2]
    buffer.append(Transition(action(0, 2), 2.5, False, False, P), percept(0, 3))  # the same windows reach further now
    sample = everything(buffer, n_step=3, discount=0.5)
    assert sample.discount.tolist() == [0.125, 0.25, 0.5]
    assert tags(sample.next_observation).ravel().tolist() == [3, 3, 3]


def test_a_window_ends_where_control_changes_hands():
    buffer = ring(100)
    stream(buffer, 0, [P, P, H, H, S, P], "terminated")
    sample = everything(buffer, n_step=3, discount=0.5)
    assert tags(sample.next_observation).ravel().tolist() == [2, 2, 4, 4, 5, 6]
    assert sample.discount.tolist() == [0.25, 0.5, 0.25, 0.5, 0.5, 0.0]
    assert sample.reward.tolist() == [0.5 + 0.75, 1.5, 2.5 + 1.75, 3.5, 4.5, 5.5]
    assert buffer.operator_count == 3
    operator = everything(buffer, n_step=3, discount=0.5, operator_only=True)
    assert tags(operator.observation).ravel().tolist() == [2, 3, 4]


def test_history_repeats_the_first_observation_of_the_episode():
    buffer = ring(100)
    stream(buffer, 1, [P], "truncated")
    stream(buffer, 2, [P, P, P], "terminated")
    sample = everything(buffer, n_step=1, discount=0.9, history=(0, 1, 3))
    assert tags(sample.observation).tolist() == [
        [1000, 1000, 1000],
        [2000, 2000, 2000],
        [2001, 2000, 2000],
        [2002, 2001, 2000],
    ]
    assert tags(sample.next_observation).tolist() == [
        [1001, 1000, 1000],
        [2001, 2000, 2000],
        [2002, 2001, 2000],
        [2003, 2002, 2000],
    ]


def test_begin_closes_an_unfinished_episode_as_truncated():
    buffer = ring(100)
    stream(buffer, 0, [P, P])
    buffer.begin(percept(8, 0))  # leaves no trace: it never gets a step
    stream(buffer, 1, [P], "terminated")
    sample = everything(buffer, n_step=3, discount=0.5)
    assert tags(sample.next_observation).ravel().tolist() == [2, 2, 1001]
    assert sample.discount.tolist() == [0.25, 0.5, 0.0]


def test_an_episode_without_steps_takes_no_row():
    buffer = ring(6)
    stream(buffer, 0, [P, P], "truncated")
    buffer.begin(percept(8, 0))
    stream(buffer, 1, [P, P], "truncated")  # 3 + 3 rows: both fit
    assert tags(everything(buffer, 1, 0.9).observation).ravel().tolist() == [0, 1, 1000, 1001]


@pytest.mark.parametrize("end", ["terminated", "truncated"])
def test_nothing_follows_the_end_of_an_episode(end):
    buffer = ring(20)
    stream(buffer, 0, [P, P], end)
    with pytest.raises(DataError, match="append without begin"):
        buffer.append(Transition(action(0, 2), 0.0, False, False, P), percept(0, 3))
    assert len(buffer) == 2


def test_a_whole_episode_is_the_same_as_its_stream():
    sources = [P, H, H, P, P]
    streamed, whole = ring(50), ring(50)
    stream(streamed, 3, sources, "truncated")
    add(whole, episode(3, 5, sources=sources, end="truncated"))
    for a, b in zip(everything(streamed, 3, 0.9, (0, 2)), everything(whole, 3, 0.9, (0, 2)), strict=True):
        assert np.array_equal(a, b)


def test_a_whole_episode_without_an_end_is_closed():
    buffer = ring(50)
    add(buffer, episode(0, 2, end="none"))
    assert everything(buffer, 3, 0.5).discount.tolist() == [0.25, 0.5]
    with pytest.raises(DataError, match="append without begin"):
        buffer.append(Transition(action(0, 2), 0.0, False, False, P), percept(0, 3))


EPISODE = st.tuples(
    st.lists(st.sampled_from([P, H]), min_size=1, max_size=8), st.sampled_from(["terminated", "truncated", None])
)


@settings(max_examples=150, deadline=None)
@given(
    capacity=st.integers(9, 30),
    episodes=st.lists(EPISODE, min_size=1, max_size=12),
    n_step=st.integers(1, 4),
    history=st.sampled_from([(0,), (0, 1), (0, 1, 2, 5)]),
    restore_at=st.integers(0, 60),
)
def test_ring_against_a_naive_reference(capacity, episodes, n_step, history, restore_at):
    buffer, kept, step = ring(capacity), [], 0  # kept: [number, sources so far, end], oldest first
    discount = 0.9

    def make_room():
        if sum(len(sources) + 1 for _, sources, _ in kept) == capacity:
            kept.pop(0)

    for number, (sources, end) in enumerate(episodes):
        make_room()
        kept.append([number, [], None])
        buffer.begin(percept(number, 0))
        for t, source in enumerate(sources):
            last = t == len(sources) - 1
            make_room()
            kept[-1][1].append(source)
            kept[-1][2] = end if last else None
            buffer.append(
                Transition(
                    action(number, t),
                    tag(number, t) + 0.5,
                    last and end == "terminated",
                    last and end == "truncated",
                    source,
                ),
                percept(number, t + 1),
            )
            if step == restore_at:
                saved, buffer = buffer.state_dict(), ring(capacity)
                buffer.load_state_dict(saved)
            step += 1
            places = [(n, s, e, t) for n, s, e in kept for t in range(len(s))]
            expected = [naive(n, s, e, t, n_step, discount, history) for n, s, e, t in places]
            by_operator = [row for row, (_, s, _, t) in zip(expected, places, strict=True) if s[t] != P]
            assert_equals_naive(everything(buffer, n_step, discount, history), expected)
            assert_equals_naive(everything(buffer, n_step, discount, history, operator_only=True), by_operator)
            newest, _ = buffer.newest(history)
            assert tags(newest).tolist() == [[tag(number, max(0, t + 1 - age)) for age in history]]


def test_samples_are_uniform_and_repeatable():
    buffer = ring(40)
    for number in range(10):
        stream(buffer, number, [P, H, P, P, H, P], "truncated")
    options = {"n_step": 2, "discount": 0.9, "history": (0, 1)}
    sample = buffer.sample(30_000, np.random.default_rng(3), **options)
    values, counts = np.unique(tags(sample.observation)[:, 0], return_counts=True)
    assert len(values) == len(buffer) == 30  # five whole episodes fit
    assert values.min() == 5000
    assert abs(counts - 1000).max() < 5 * np.sqrt(1000)
    again = buffer.sample(30_000, np.random.default_rng(3), **options)
    assert all(np.array_equal(a, b) for a, b in zip(sample, again, strict=True))
    operator = buffer.sample(500, np.random.default_rng(3), operator_only=True, **options)
    assert set(tags(operator.observation)[:, 0] % 1000) == {1, 4}


def test_a_restored_buffer_samples_and_grows_identically():
    original = ring(23)
    for number in range(6):
        stream(original, number, [P, H, H, P], "terminated")
    stream(original, 6, [H, P])  # unfinished
    restored = ring(23)
    for number in range(3):  # what was there before, and where in the ring it was, does not matter
        stream(restored, 50 + number, [H] * 9, "truncated")
    restored.load_state_dict(original.state_dict())
    options = {"n_step": 3, "discount": 0.97, "history": (0, 1)}
    rngs = np.random.default_rng(0), np.random.default_rng(0)
    for t in range(2, 40):
        a, b = (buffer.sample(64, rng, **options) for buffer, rng in zip((original, restored), rngs, strict=True))
        assert all(x.tobytes() == y.tobytes() for x, y in zip(a[:5], b[:5], strict=True))
        for buffer in (original, restored):
            if t % 5 == 0:
                buffer.begin(percept(100 + t, 0))
            buffer.append(Transition(action(100, t), float(t), False, False, H if t % 3 else P), percept(100, t + 1))
    assert all(isinstance(value, int | np.ndarray) for value in original.state_dict().values())


def test_a_state_that_does_not_fit_is_refused():
    buffer = ring(50)
    stream(buffer, 0, [P] * 10)
    saved = buffer.state_dict()
    with pytest.raises(DataError, match="has 11 rows, this ring 8"):
        ring(8).load_state_dict(saved)
    with pytest.raises(DataError, match=r"state: shape \(11, 3\), expected \(11, 4\)"):
        ReplayBuffer(50, 4, ACTION_SIZE).load_state_dict(saved)
    del saved["reward"]
    with pytest.raises(DataError, match=r"lacks \['reward'\]"):
        ring(50).load_state_dict(saved)


def test_an_episode_longer_than_the_ring_is_refused_and_nothing_breaks():
    buffer = ring(5)
    stream(buffer, 0, [P], "terminated")
    with pytest.raises(DataError, match=r"episode-1: needs 6 rows, the replay has 5; raise replay\.capacity"):
        add(buffer, episode(1, 5))
    assert len(buffer) == 1
    with pytest.raises(DataError, match="needs 6 rows, the replay has 5"):
        stream(buffer, 2, [P] * 5)
    assert tags(everything(buffer, 1, 0.9).observation).ravel().tolist() == [2000, 2001, 2002, 2003]
    stream(buffer, 3, [P, P], "terminated")
    assert tags(everything(buffer, 1, 0.9).observation).ravel().tolist() == [3000, 3001]


def test_bad_values_are_refused_and_not_stored():
    buffer = ring(10)
    good = (action(0, 0), 0.5, False, False, P, percept(0, 1))
    with pytest.raises(DataError, match="append without begin"):
        buffer.append(Transition(*good[:5]), good[5])
    with pytest.raises(DataError, match=r"state has shape \(2,\), expected \(3,\)"):
        buffer.begin(Percept(np.zeros(2)))
    buffer.begin(percept(0, 0))
    for position, bad, message in (
        (0, np.zeros(5), r"action has shape \(5,\)"),
        (1, np.nan, "reward is nan"),
        (5, Percept(np.full(3, np.inf)), "state has a NaN or an infinity"),
        (2, True, None),
    ):
        values = list(good)
        values[position] = bad
        if message is None:
            values[3], message = True, "both terminated and truncated"
        with pytest.raises(DataError, match=message):
            buffer.append(Transition(*values[:5]), values[5])
    assert len(buffer) == 0
    with pytest.raises(DataError, match="no transitions to sample"):
        buffer.sample(1, np.random.default_rng(0), n_step=1, discount=0.9, history=(0,))
    buffer.append(Transition(*good[:5]), good[5])
    with pytest.raises(DataError, match="no operator transitions"):
        buffer.sample(1, np.random.default_rng(0), n_step=1, discount=0.9, history=(0,), operator_only=True)
    with pytest.raises(DataError, match="episode-1: 2 observations, expected 3"):
        buffer.add_episode(episode(1, 2), percepts(episode(1, 1)))
    with pytest.raises(DataError, match=r"episode-1: replay: state has shape \(2,\)"):
        buffer.add_episode(episode(1, 1), [percept(1, 0), Percept(np.zeros(2))])
    with pytest.raises(DataError, match="capacity is 1"):
        ring(1)


def test_sampling_is_fast():
    buffer = ReplayBuffer(20_000, 30, 7)
    rng = np.random.default_rng(0)
    for _ in range(150):
        buffer.begin(Percept(np.zeros(30)))
        for t in range(100):
            buffer.append(Transition(np.zeros(7), 0.0, t == 99, False, P), Percept(np.zeros(30)))
    seconds = []
    for _ in range(50):
        start = time.perf_counter()
        buffer.sample(1024, rng, n_step=3, discount=0.97, history=(0, 1, 2, 3))
        seconds.append(time.perf_counter() - start)
    print(f"1024 transitions: {1e3 * min(seconds):.2f} ms")
    assert min(seconds) < 3e-3  # 0.35 ms on an idle core


@given(
    st.lists(st.tuples(st.integers(1, 9), st.sampled_from(["terminated", "truncated", None])), min_size=1, max_size=12)
)
def test_the_way_to_the_goal_is_known_of_episodes_that_succeeded_and_of_no_others(ends):
    buffer = ReplayBuffer(25, PACKER.size, ACTION_SIZE, tools=ToolElements((1, 2)))
    for number, (length, end) in enumerate(ends):
        stream(buffer, number, [P] * length, end)
    restored = ReplayBuffer(31, PACKER.size, ACTION_SIZE, tools=ToolElements((1, 2)))
    restored.load_state_dict(buffer.state_dict())
    expected = {}
    for number, (length, end) in enumerate(ends):
        for t in range(length):
            way = tag(number, length) - tag(number, t) if end == "terminated" else np.nan
            expected[tag(number, t)] = np.full(2, way, np.float32)
    for one in (buffer, restored):
        sample = everything(one, 3, 0.9)
        for row, way in zip(tags(sample.observation)[:, 0].tolist(), sample.to_goal, strict=True):
            np.testing.assert_array_equal(way, expected[row])


def test_a_failure_is_no_goal():
    buffer = ReplayBuffer(10, PACKER.size, ACTION_SIZE, tools=ToolElements((1, 2)))
    buffer.begin(percept(0, 0))
    buffer.append(Transition(action(0, 0), 0.0, True, False, P), percept(0, 1))
    assert np.isnan(everything(buffer, 1, 0.9).to_goal).all()


def test_before_the_first_observation_there_is_no_newest():
    assert ring(9).newest((0,)) is None


def test_steps_of_another_run_are_known_as_such_and_their_windows_have_one_step():
    old, ring = (ReplayBuffer(100, PACKER.size, ACTION_SIZE, origins=origins) for origins in (False, True))
    old.add_episode(episode(1, 6), percepts(episode(1, 6)))
    state = old.state_dict()
    ring.load_state_dict({**state, "simulated": np.ones(len(state["reward"]), bool)})
    ring.add_episode(episode(2, 6), percepts(episode(2, 6)))
    sample = ring.gather(np.arange(12), np.random.default_rng(0), n_step=3, discount=0.5, history=(0,))
    taken = np.arange(12) < 6
    np.testing.assert_array_equal(sample.simulated, taken)
    now, soon, later = (column[:, 0] for column in (sample.observation, sample.following, sample.next_observation))
    np.testing.assert_array_equal(soon, now + 1)
    np.testing.assert_array_equal(later[taken], now[taken] + 1)
    np.testing.assert_array_equal(later[~taken][:3], now[~taken][:3] + 3)
    again = ReplayBuffer(100, PACKER.size, ACTION_SIZE, origins=True)
    again.load_state_dict(state)
    assert not again.gather(
        np.arange(6), np.random.default_rng(0), n_step=1, discount=0.5, history=(0,)
    ).simulated.any()
