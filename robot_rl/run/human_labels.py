"""What people say of recorded episodes, on its way to a learner. It does not know who speaks, or where."""

from __future__ import annotations

from queue import SimpleQueue

from robot_rl.data.store.operator_labels import operator_words
from robot_rl.data.store.store import EpisodeStore
from robot_rl.learn.learner_port import LearnerPort


class Hindsight:
    """Verdicts that have not been learned yet, in the order in which they were said."""

    def __init__(self) -> None:
        self._said: SimpleQueue[tuple[str, bool]] = SimpleQueue()

    def say(self, episode_id: str, success: bool) -> None:
        """An episode that has ended was, or was not, a success; from any thread."""
        self._said.put((episode_id, success))

    def take(self, learner: LearnerPort) -> None:
        """Tells the learner; from now on that is what it learns. Never waits."""
        while not self._said.empty():
            learner.label_episode(*self._said.get())


def tell_again(store: EpisodeStore, learner: LearnerPort) -> None:
    """Tells a learner all that was said of a store's episodes: it may have been stopped before it heard of the last."""
    for episode_id, word in operator_words(store).items():
        learner.label_episode(episode_id, word["success"])
