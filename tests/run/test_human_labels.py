"""What people say of recorded episodes reaches a learner, also one that was stopped before it heard of it."""

from fakes import fake_workcell

from robot_rl.data.store.operator_labels import label_episode
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.robot_env import RobotEnv
from robot_rl.run.demonstrate import record_demonstrations
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
