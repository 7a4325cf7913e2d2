"""What people say of recorded episodes, on its way to a learner. It knows neither consoles nor stores."""

from __future__ import annotations

from queue import SimpleQueue

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
            learner.judge(*self._said.get())
