"""Labels that people give to recorded episodes, on their way to the learner."""

from __future__ import annotations

from queue import SimpleQueue

from robot_rl.data.store.operator_labels import operator_words
from robot_rl.data.store.store import EpisodeStore
from robot_rl.learn.learner_port import LearnerPort


class HumanLabels:
    """Labels that the learner does not have yet, in the order in which they were given."""

    def __init__(self) -> None:
        self._waiting: SimpleQueue[tuple[str, bool]] = SimpleQueue()

    def add(self, episode_id: str, success: bool) -> None:
        """Add the label of an episode that has ended; from any thread."""
        self._waiting.put((episode_id, success))

    def deliver(self, learner: LearnerPort) -> None:
        """Send the waiting labels to the learner; never wait."""
        while not self._waiting.empty():
            learner.label_episode(*self._waiting.get())


def deliver_recorded(store: EpisodeStore, learner: LearnerPort) -> None:
    """Send all recorded labels of a store to a resumed learner, which may have been stopped before it got the last."""
    for episode_id, label in operator_words(store).items():
        learner.label_episode(episode_id, label["success"])
