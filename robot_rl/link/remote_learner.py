"""The learner in another process, as a `LearnerPort`: it sends steps as they are played and receives parameters."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn, Self

import numpy as np
import torch

from robot_rl.config.components import TrainConfig
from robot_rl.data.replay.hindsight_memory import Relabelled
from robot_rl.data.replay.transition import Transition
from robot_rl.data.schema import Episode, Observation, Step
from robot_rl.env.environment import EnvironmentSpec
from robot_rl.errors import LinkError
from robot_rl.learn.networks.networks import Policy, make_policy
from robot_rl.learn.perception import Perception
from robot_rl.link.handshake import Agreement
from robot_rl.link.inbox import SILENCE_LIMIT, Inbox
from robot_rl.link.learner_child import LearnerProcess
from robot_rl.link.messages import (
    Demonstration,
    EpisodeLabel,
    EpisodeRewards,
    Hindsight,
    Message,
    Pretrain,
    Start,
    StateRequest,
    StepTaken,
    Stop,
)
from robot_rl.link.peer import LearnerPeer
from robot_rl.link.socket import PeerGoneError
from robot_rl.link.state_transfer import cut

EXPLORATION = "exploration"
"""Entry of a state that is the actor's own: the random state of its exploration. A learner in one process has none."""


@dataclass
class _Since:
    """Figures since the last logs."""

    started: float = field(default_factory=time.monotonic)
    waited: float = 0.0
    steps: int = 0
    lag: int = 0

    def figures(self) -> dict[str, float]:
        """Return them as shares and means."""
        elapsed = max(time.monotonic() - self.started, 1e-9)
        return {"actor_waited": self.waited / elapsed, "policy_lag": self.lag / self.steps}


class RemoteLearner:
    """A `LearnerPort` whose learner works in another process, side by side with the actor.

    Nothing but `pretrain`, `catch_up`, `state_dict` and `load_state_dict` ever waits. `catch_up` is called between
    two steps: it takes over the newest parameters, and waits while the actor is more than `max_lead_steps` ahead of the
    learner. On a clock that goes on meanwhile (`wait_between_steps` is false) it waits between episodes only, because
    an arm must not be left without commands. The learner never runs ahead: it makes the updates that each step is
    worth, then waits for the next. So the update-to-data ratio holds, and the actor's policy is at most the lead and
    one publication old.

    Args:
        task: Facts of the environment.
        perception: Shared with the actor, so that each observation is encoded once.
        config: Configuration of the run.
        wait_between_steps: Whether it does no harm to wait inside an episode.
        peer: The learner at the other end; None starts a process for it.

    Raises:
        LinkError: from any method, if the learner's process is gone, silent, or sends what it should not. What ended
            the learner, e.g. a `DivergedError`, is raised here by its own name.
    """

    def __init__(
        self,
        task: EnvironmentSpec,
        perception: Perception,
        config: TrainConfig,
        *,
        wait_between_steps: bool,
        peer: LearnerPeer | None = None,
    ) -> None:
        self._max_lead, self._wait_between_steps = config.max_lead_steps, wait_between_steps
        self.perception = perception
        seed = int(np.random.SeedSequence((config.seed, 1)).generate_state(1)[0])  # not the learner's own
        self._policy = make_policy(task, perception.spec, config, torch.Generator().manual_seed(seed))
        self._policy_updates = 0  # that the policy has seen
        self._sent = 0  # online steps
        self._in_episode, self._episode_id = False, ""
        self._since = _Since()
        self._inbox = Inbox()
        self._agreement = Agreement(task, perception.spec, config)
        self.peer = peer or LearnerProcess()
        """The learner at the other end."""
        self.peer.open(self._inbox.put, self._inbox.fail, self._inbox.restart)
        with contextlib.ExitStack() as on_error:
            on_error.callback(self.close)
            self._post(self._agreement.hello())
            self._wait_until_ready()
            on_error.pop_all()

    @property
    def policy(self) -> Policy:
        """The policy that acts, on the CPU; its parameters change only inside `catch_up` and the state methods."""
        return self._policy

    @property
    def updates(self) -> int:
        """Updates so far, as the learner last reported."""
        return self._inbox.progress.updates

    @property
    def update_to_data(self) -> float:
        """Updates per online step since learning started, as the learner last reported."""
        return self._inbox.progress.update_to_data

    @property
    def offline_updates(self) -> int:
        """Updates on the demonstrations alone, as the learner last reported."""
        return self._inbox.progress.offline_updates

    @property
    def value(self) -> float | None:
        """Return that the critics expect from an observation of late on, as the learner last reported.

        None until it has reported one of the present episode.
        """
        progress = self._inbox.progress
        return progress.value if progress.episode_id == self._episode_id else None

    @property
    def lead(self) -> int:
        """Steps taken that the learner has not learned from."""
        return self._sent - self._inbox.progress.env_steps

    # To the learner.

    def add_demonstration(self, episode: Episode) -> None:
        """Send a demonstration."""
        steps = Transition.of_episode(episode)
        if not (steps[-1].terminated or steps[-1].truncated):
            steps[-1] = steps[-1]._replace(truncated=True)
        self._post(
            Demonstration(
                percepts=list(self.perception.of_rows(episode.observed)), steps=steps, episode_id=episode.episode_id
            )
        )

    def on_start(self, episode_id: str, observation: Observation) -> None:
        """Send the start of an online episode."""
        self._in_episode, self._episode_id = True, episode_id
        if not self._since.steps:
            self._since = _Since()  # what came before the first step does not count
        self._post(Start(percept=self.perception.first(observation), episode_id=episode_id))

    def on_step(self, step: Step, next_observation: Observation) -> None:
        """Send an online step."""
        percept = self.perception(next_observation)
        self._post(StepTaken(number=self._sent, step=Transition.of(step), percept=percept))
        self._sent += 1

    def on_end(self, episode: Episode, result: object) -> None:
        """Note the end of an online episode; all its steps are sent already."""
        self._in_episode = False

    def label_episode(self, episode_id: str, success: bool, since: int = 0) -> None:
        """Send the label of an online episode."""
        self._post(EpisodeLabel(episode_id=episode_id, success=success, since=since))

    def reward_episode(self, episode_id: str, closeness: np.ndarray) -> None:
        """Send learned rewards of an episode."""
        self._post(EpisodeRewards(episode_id=episode_id, closeness=closeness))

    def relabelled(self, rows: Relabelled) -> None:
        """Send transitions derived from an online episode."""
        self._post(Hindsight(rows=rows))

    # From the learner.

    def pretrain(self, updates: int) -> dict[str, float]:
        """Have updates made on the demonstrations alone, and load the parameters; return mean logs."""
        wanted = self.offline_updates + updates
        self._post(Pretrain(updates=updates))
        self._wait_until(lambda: self.offline_updates >= wanted, "learning from the demonstrations")
        self._load_parameters()
        return self._inbox.pop_logs() or {}

    def catch_up(self) -> dict[str, float] | None:
        """Load the newest parameters, and wait where the actor is too far ahead; return logs now and then.

        The logs also hold `actor_waited`, a share of the time since the last ones, and `policy_lag`, the critic updates
        made that the policy had not seen yet, as a mean.
        """
        if self._wait_between_steps or not self._in_episode:
            started = time.monotonic()
            self._wait_until(lambda: self.lead <= self._max_lead, "learning from the last steps")
            self._since.waited += time.monotonic() - started
        self._raise_failure()
        self._load_parameters()
        self._since.steps += 1
        self._since.lag += self.updates - self._policy_updates
        logs = self._inbox.pop_logs()
        if logs is None:
            return None
        since, self._since = self._since, _Since()
        return {**logs, **since.figures()}

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the learner after all steps; its policy acts from then on."""
        self._post(StateRequest())
        state = self._inbox.wait_for_state()
        if state is None:
            self._give_up("sending its state")
        self._load_parameters()
        self.peer.restart_from(lambda: [self._agreement.hello(), *cut(state)])
        return {**state, EXPLORATION: self._policy.generator.get_state()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state_dict` returned, here or in a run of one process."""
        for part in cut({key: value for key, value in state.items() if key != EXPLORATION}):
            self._post(part)
        self._wait_until_ready()
        self._sent = self._inbox.progress.env_steps
        if EXPLORATION in state:
            self._policy.generator.set_state(state[EXPLORATION])

    def close(self) -> None:
        """End the link; a second call does nothing."""
        polite = self._inbox.error is None and self.lead <= self._max_lead  # else it has much to do, or is gone
        self.peer.close(Stop() if polite else None)

    def __enter__(self) -> Self:
        """Return the learner itself."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the link."""
        self.close()

    # How.

    def _post(self, message: Message) -> None:
        self._raise_failure()
        self.peer.post(message)

    def _load_parameters(self) -> None:
        parameters = self._inbox.pop_parameters()
        if parameters is not None and parameters.updates >= self._policy_updates:  # a new learner starts from the old
            state = {name: torch.from_numpy(array) for name, array in parameters.arrays.items()}
            self._policy.load_policy_state(state)
            self._policy_updates = parameters.updates

    def _wait_until_ready(self) -> None:
        """Wait for a learner that is as agreed, and load its policy."""
        ready = self._inbox.wait_for_ready()
        if ready is None:
            self._give_up("getting ready")
        self._agreement.check(ready.fingerprint)
        self._load_parameters()

    def _wait_until(self, done: Callable[[], bool], doing: str) -> None:
        if not self._inbox.wait_for(done):
            self._give_up(doing)

    def _raise_failure(self) -> None:
        """Raise the error that has ended the link, if there is one."""
        error = self._inbox.error
        if isinstance(error, PeerGoneError):
            raise LinkError(self.peer.describe_end()) from error
        if error is not None:
            raise error

    def _give_up(self, doing: str) -> NoReturn:
        self._raise_failure()
        raise LinkError(f"no message of the learner for {SILENCE_LIMIT} s while {doing}; is its process stopped?")
