"""Windows of chunks: of one episode, whole or terminated, with the actions that were executed, whoever chose them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tagged import ACTION_SIZE, PACKER, action, percept, percepts, tag
from tagged import episode as recorded

from robot_rl.config.components import ReplayConfig
from robot_rl.data.chunk_layout import ChunkLayout
from robot_rl.data.replay.buffer import ReplayBuffer
from robot_rl.data.replay.demo_mixing import DemoMixer
from robot_rl.data.replay.robots_memory import RobotsMemory
from robot_rl.data.replay.transition import Transition
from robot_rl.data.schema import Source
from robot_rl.errors import DataError

P, H = Source.POLICY, Source.HUMAN
DISCOUNT = 0.9


def ring(capacity, length):
    chunk = ChunkLayout(length, ACTION_SIZE)
    return ReplayBuffer(capacity, PACKER.size, ACTION_SIZE, rewards=None, chunk=chunk)


class Told:
    """An episode as plain facts: which steps are decided, what they are worth, and after which nothing follows."""

    def __init__(self, number):
        self.number, self.sources, self.rewards, self.ends, self.undecided = number, [], [], [], False

    def windows(self, length, operator_only):
        """Each window that can be sampled.

        Its first tag, tags of its actions, reward, discount, tag of what it led to, and how many of its first actions
        the same hands chose.
        """
        steps, found = len(self.sources) - self.undecided, []
        for t in range(steps):
            taken, reward = 0, 0.0
            while taken < length and t + taken < steps:
                reward += DISCOUNT**taken * self.rewards[t + taken]
                taken += 1
                if self.ends[t + taken - 1]:
                    break
            ended = self.ends[t + taken - 1]
            if (taken == length or ended) and not (operator_only and self.sources[t] == P):
                actions = [tag(self.number, t + k) + 0.5 for k in range(taken)]
                discount = 0.0 if ended else DISCOUNT**taken
                alike = next((k for k in range(taken) if self.sources[t + k] != self.sources[t]), taken)
                found.append((tag(self.number, t), actions, reward, discount, tag(self.number, t + taken), alike))
        return found


def assert_exact(buffer, told, length):
    for operator_only in (False, True):
        expected = [window for one in told for window in one.windows(length, operator_only)]
        count = buffer.operator_count if operator_only else len(buffer)
        assert count == len(expected)
        ranks, rng = np.arange(count), np.random.default_rng(0)
        given = {"n_step": length, "discount": DISCOUNT, "history": (0,), "operator_only": operator_only}
        sample = buffer.gather(ranks, rng, **given)
        for row, (first, actions, reward, discount, led_to, alike) in enumerate(expected):
            assert length == 1 or sample.demonstrated[row] == alike
            chunk = sample.action[row].reshape(length, ACTION_SIZE)
            assert (sample.observation[row] == first).all()
            assert chunk[: len(actions)].tolist() == [[value] * ACTION_SIZE for value in actions]
            assert (np.abs(chunk[len(actions) :]) <= 1.0).all(), "what does not count is drawn from all actions"
            assert sample.reward[row] == pytest.approx(reward, rel=1e-5)
            assert sample.discount[row] == pytest.approx(discount)
            assert (sample.next_observation[row] == led_to).all()


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_windows_are_those_of_a_naive_reference_whatever_is_forgotten_decided_and_restored(data):
    capacity, length = 14, data.draw(st.integers(1, 5))
    buffer, kept = ring(capacity, length), []

    def make_room():
        if sum(len(one.sources) + 1 for one in kept) == capacity:
            kept.pop(0)

    for number in range(data.draw(st.integers(1, 7))):
        make_room()
        kept.append(one := Told(number))
        buffer.begin(percept(number, 0), f"episode-{number}")
        sources = data.draw(st.lists(st.sampled_from([P, H]) if length > 1 else st.just(P), min_size=1, max_size=7))
        end = data.draw(st.sampled_from(["terminated", "truncated", "undecided", None]))
        for t, source in enumerate(sources):
            last = t == len(sources) - 1
            make_room()
            terminated, undecided = last and end == "terminated", last and end == "undecided"
            reward = tag(number, t) + 0.5
            step = Transition(action(number, t), reward, terminated, False, source)
            if last and end in ("truncated", "undecided"):
                step = step._replace(truncated=True, undecided=undecided)
            buffer.append(step, percept(number, t + 1))
            one.sources.append(source)
            one.rewards.append(reward)
            one.ends.append(terminated)
            one.undecided = undecided
            assert_exact(buffer, kept, length)
        for older in data.draw(st.lists(st.sampled_from(kept), max_size=2)):
            success, since = data.draw(st.booleans()), data.draw(st.integers(0, len(older.sources)))
            since = since if success else 0
            if (older is one and end is None) or not buffer.decide(f"episode-{older.number}", 1.0, success, since):
                continue
            for t in range(len(older.sources) - 1):
                if older.ends[t]:
                    older.rewards[t], older.ends[t] = 0.0, False
            for t in range((since or len(older.sources)) - 1, len(older.sources)):
                older.rewards[t], older.ends[t] = 1.0, success
            older.undecided = False
            assert_exact(buffer, kept, length)
        if data.draw(st.booleans()):
            saved, buffer = buffer.state_dict(), ring(capacity, length)
            buffer.load_state_dict(saved)
            assert_exact(buffer, kept, length)


def test_rewards_that_come_late_are_summed_across_a_change_of_hands():
    buffer = ring(50, 3)
    buffer.begin(percept(0, 0), "one")
    for t, source in enumerate([P, H, H, P]):
        buffer.append(Transition(action(0, t), 0.0, False, t == 3, source), percept(0, t + 1))
    assert buffer.relabel("one", np.array([1.0, 2.0, 4.0, 8.0], np.float32))
    sample = buffer.gather(np.arange(2), np.random.default_rng(0), n_step=3, discount=0.5, history=(0,))
    assert sample.reward.tolist() == [1 + 1 + 1, 2 + 2 + 2]
    assert len(buffer) == 2


@given(st.integers(1, 6), st.integers(1, 4), st.booleans(), st.integers(0, 2**32 - 1))
def test_what_is_joined_is_split_again(length, size, choice, seed):
    layout = ChunkLayout(length, size, choice)
    actions = np.random.default_rng(seed).uniform(-1, 1, (3, length, size)).astype(np.float32)
    actions[:2, :, -1] = actions[:2, :1, -1]  # in the third it changes
    joined = layout.join(actions)
    assert joined.shape == (3, layout.size)
    for row, chunk in zip(joined, actions, strict=True):
        found = layout.split(row)
        assert np.array_equal(found[:, : size - choice], chunk[:, : size - choice])
    if choice:
        assert np.array_equal([layout.split(row)[:, -1] for row in joined[:2]], actions[:2, :, -1]), "it is held"
        assert np.isnan(joined[2, -1]) == (length > 1), "a choice that changed is none of a chunk"


def test_a_choice_counts_as_held_after_the_end_of_an_episode():
    layout, actions = ChunkLayout(3, 2, choice=True), np.zeros((2, 3, 2), np.float32)
    actions[0, :, 1], actions[1, :, 1] = (1.0, -1.0, -1.0), (1.0, -1.0, 1.0)
    found = layout.executed(actions, np.array([1, 2]), np.random.default_rng(0))
    assert found[0, -1] == 1.0
    assert np.isnan(found[1, -1])


def test_a_chunk_of_one_is_the_action():
    layout, actions = ChunkLayout(1, 3, choice=True), np.arange(6.0).reshape(2, 1, 3)
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    assert layout.executed(actions, np.array([1, 1]), rng).tolist() == actions[:, 0].tolist()
    assert rng.bit_generator.state == before, "nothing is drawn"


def test_demonstrations_and_steps_of_several_robots_are_mixed():
    demos = ring(50, 3)
    demos.add_episode(one := recorded(7, 6), percepts(one))
    robots = RobotsMemory(100, {"a": 1.0, "b": 1.0}, lambda rows: ring(rows, 3))
    for number, robot in enumerate("ab"):
        robots.begin(percept(number, 0), f"{robot}/x")
        for t in range(5):
            robots.append(Transition(action(number, t), 0.0, False, False, P), percept(number, t + 1))
    sample = DemoMixer(demos, robots, ReplayConfig(batch_size=40, history=(0,)), 3, DISCOUNT, marked=True).sample(
        2, np.random.default_rng(0)
    )
    assert sample.action.shape == (2, 40, 3 * ACTION_SIZE)
    firsts = sample.observation[..., 0]
    assert set(firsts[:, 20:].ravel()) == {tag(n, t) for n in (0, 1) for t in range(3)}
    inside = sample.discount > 0
    chunks = sample.action[inside].reshape(-1, 3, ACTION_SIZE)
    assert np.array_equal(chunks[..., 0], firsts[inside][:, None] + np.arange(3) + 0.5)
    assert (sample.demonstrated[:, :20] >= 1).all()
    assert (sample.demonstrated[:, :20][inside[:, :20]] == 3).all(), "whole chunks of one demonstrator"
    assert (sample.demonstrated[:, 20:] == 0).all()
    with pytest.raises(DataError, match="demonstrations have chunks"):
        DemoMixer(ring(50, 2), robots, ReplayConfig(), 3, DISCOUNT)
