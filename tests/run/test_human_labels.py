"""What people say of recorded episodes reaches a learner, also one that was stopped before it heard of it."""

import numpy as np
from fakes import fake_workcell

from robot_rl.data.store.operator_labels import label_episode
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.robot_env import RobotEnv
from robot_rl.run.demonstrate import adopt_demonstrations, record_demonstrations
from robot_rl.run.human_labels import HumanLabels, deliver_recorded


class Learner:
    def __init__(self):
        self.judged = []

    def label_episode(self, episode_id, success):
        self.judged.append((episode_id, success))


def test_a_word_is_told_once_and_in_order():
    labels, learner = HumanLabels(), Learner()
    labels.add("a", True)
    labels.add("a", False)
    labels.deliver(learner)
    labels.deliver(learner)
    assert learner.judged == [("a", True), ("a", False)]


def test_the_last_word_of_a_person_on_each_episode_is_told_again(tmp_path):
    path, learner = tmp_path / "store", Learner()
    with EpisodeStore.create(path, {}) as store:
        record_demonstrations(RobotEnv(fake_workcell()), store, episodes=3, seed=0)
        deliver_recorded(store, learner)
        assert learner.judged == []
        first, second, third = store.ids()
        for episode_id, success in ((first, False), (third, True), (third, False)):
            label_episode(path, episode_id, success, "Anna")
        deliver_recorded(store, learner)
    assert learner.judged == [(first, False), (third, False)]
    assert second not in dict(learner.judged)


def test_a_training_takes_demonstrations_as_a_person_called_them_later(tmp_path):
    env, path = RobotEnv(fake_workcell()), tmp_path / "demos"
    with EpisodeStore.create(path, {}) as store:
        record_demonstrations(env, store, episodes=3, seed=0)
        as_recorded, untouched = store.read("demonstration-0000"), store.read("demonstration-0001")
    assert (as_recorded.reward[-1], as_recorded.terminated[-1]) == (1.0, True)
    for name, words in (("demonstration-0000", (True, False)), ("demonstration-0002", (False, True))):
        for success in words:
            label_episode(path, name, success, "Anna")
    with EpisodeStore.create(tmp_path / "run", {}) as run:
        assert adopt_demonstrations(run, path, env) == 3
        taken = list(run.episodes())
        rows = run.summaries()
    assert [row.success for row in rows] == [False, True, True]
    assert [one.reward_source for one in taken] == ["operator-2", "task", "operator-2"]
    assert [one.facts.copied_from["rewards"] for one in taken] == ["operator-2", None, "operator-2"]
    for one, end in zip(taken, (0.0, 1.0, 1.0), strict=True):
        assert (one.reward[-1], one.terminated[-1], one.truncated[-1]) == (end, end > 0, end == 0)
    np.testing.assert_array_equal(taken[1].reward, untouched.reward)
    with EpisodeStore.create(tmp_path / "chosen", {}) as run:
        assert adopt_demonstrations(run, path, env, "operator-1") == 2  # rewards that are named are those
        assert [one.reward[-1] for one in run.episodes()] == [1.0, 0.0]
