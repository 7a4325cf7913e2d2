"""The learner of a fleet, as a `LearnerPort` of one of its robots.

The robot plays with the newest policy that it has. Its episodes reach the learner from its store, see `Uplink`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from robot_rl import __version__
from robot_rl.base_policy.run_base import open_base
from robot_rl.config.components import TrainConfig
from robot_rl.config.load import config_to_dict
from robot_rl.data.replay.hindsight_memory import Relabelled
from robot_rl.data.replay.percept import Percept
from robot_rl.data.schema import Episode, Observation, Step
from robot_rl.data.store.tail import StoreTail
from robot_rl.env.environment import Environment, waits_between_steps
from robot_rl.errors import ConfigError, LinkError
from robot_rl.fleet.access import FleetAddress
from robot_rl.fleet.uplink import Standing, Uplink
from robot_rl.learn.networks.networks import make_policy
from robot_rl.learn.perception import Perception
from robot_rl.link.messages import EpisodeLabel, EpisodeRewards, RobotHello

LOG_INTERVAL = 100
"""Steps between two records of the robot's own figures."""
KEPT = 4
"""Newest episodes whose percepts are kept until they are sent; those of older ones are computed again."""
PRETRAIN_WAIT = 2.0
"""Longest wait for updates on demonstrations between two looks at a stop request [s]."""
AHEAD = 1
"""Episodes that a robot which may wait is ahead of the learner: it plays one while the learner learns from another."""


@dataclass(frozen=True)
class FleetMember:
    """Who a robot is, and where its fleet's learner is.

    Attributes:
        name: Of the robot.
        address: Where the learner listens.
        token: That both have.
        patience: How long a robot waits for a learner that is away before it plays on with the policy that it has [s]:
            every robot at its start, a simulated one also later. A real one never waits once it plays.
    """

    name: str
    address: FleetAddress
    token: str
    patience: float = 60.0


class RobotPort:
    """The fleet's learner for one robot.

    Args:
        member: Who the robot is.
        env: Its environment.
        perceive: Makes its perception.
        config: Configuration of its run.
        store: Its episode store, in the directory of its run, which may come later.
        log: Receives a line when the link is made or lost.

    It waits for the learner first, so that a robot that is refused never moves.

    Raises:
        LinkError: from any method, if the learner refuses the robot. What ended the learner, e.g. a `DivergedError`,
            is raised here by its own name.
    """

    def __init__(
        self,
        member: FleetMember,
        env: Environment,
        perceive: Callable[[], Perception],
        config: TrainConfig,
        store: Path,
        log: Callable[[str], object],
    ) -> None:
        self._member, self._perceive, self._waits = member, perceive, waits_between_steps(env)
        self.perception = perceive()
        seed = int(np.random.SeedSequence((config.seed, 1)).generate_state(1)[0])
        generator = torch.Generator().manual_seed(seed)
        self._policy = make_policy(env.environment_spec, self.perception.spec, config, generator)
        self._policy_updates = 0  # that the policy has seen
        self._fresh: deque[tuple[str, list[Percept]]] = deque(maxlen=KEPT)
        self._again: Perception | None = None  # for episodes of earlier on, in the thread of the link
        self._in_episode = False
        self._alone = False  # whether the learner was given up for now
        self._since, self._steps, self._waited = time.monotonic(), 0, 0.0
        task = dataclasses.asdict(env.environment_spec)
        percepts = dataclasses.asdict(self.perception.spec)
        settings = json.loads(json.dumps(config_to_dict(config)))  # keys of schedules as text, as messages have them

        self._opened = contextlib.ExitStack()
        # Of demonstrations, whose records have no proposals; another one than acts, for the thread of the link.
        self._base = self._opened.enter_context(open_base(config, env, store.parent))
        base = self._base.facts()["identity"] if self._base is not None else ""

        def hello(session: int) -> RobotHello:
            return RobotHello(
                robot=member.name,
                session=session,
                version=__version__,
                config=settings,
                task=task,
                percepts=percepts,
                base=base,
            )

        self._log, self._tail = log, StoreTail(store)
        self.uplink = Uplink(member.address, member.token, hello, self._tail, self._percepts_of, log)
        """The link."""
        self.uplink.start()
        with contextlib.ExitStack() as on_error:
            on_error.callback(self.close)
            self.uplink.wait(lambda standing: standing.connected, member.patience)
            self._raise_failure()
            self._load_parameters()
            on_error.pop_all()

    # The learner as it was last heard.

    @property
    def policy(self) -> Any:
        """The policy that acts."""
        return self._policy

    @property
    def updates(self) -> int:
        """Updates of the fleet's learner."""
        return self.uplink.inbox.progress.updates

    @property
    def update_to_data(self) -> float:
        """Updates per step of the whole fleet."""
        return self.uplink.inbox.progress.update_to_data

    @property
    def offline_updates(self) -> int:
        """Updates on the demonstrations of all robots alone."""
        return self.uplink.inbox.progress.offline_updates

    @property
    def value(self) -> float | None:
        """None: the learner gets an episode when it has ended, so what its critics expect is of none that runs."""
        return None

    # What is played.

    def add_demonstration(self, episode: Episode) -> None:
        """Send nothing by itself: a demonstration reaches the learner from the store."""
        self.uplink.wake()

    def on_start(self, episode_id: str, observation: Observation) -> None:
        """Keep the first percept of an episode until it is sent."""
        self._in_episode = True
        self._fresh.append((episode_id, [self.perception.first(observation)]))

    def on_step(self, step: Step, next_observation: Observation) -> None:
        """Keep the percept after a step until the episode is sent."""
        self._fresh[-1][1].append(self.perception(next_observation))

    def on_end(self, episode: Episode, result: object) -> None:
        """Note the end of an episode."""
        self._in_episode = False

    def label_episode(self, episode_id: str, success: bool, since: int = 0) -> None:
        """Send the label of an episode."""
        self.uplink.note(EpisodeLabel(episode_id=episode_id, success=success, since=since))

    def reward_episode(self, episode_id: str, closeness: np.ndarray) -> None:
        """Send learned rewards of an episode."""
        self.uplink.note(EpisodeRewards(episode_id=episode_id, closeness=closeness))

    def relabelled(self, rows: Relabelled) -> None:
        """Refuse: the plan of a fleet derives no steps."""
        raise ConfigError("replay.hindsight_goals is not for fleets; set it to 0")

    # The learner's work.

    def pretrain(self, updates: int) -> dict[str, float]:
        """Wait for updates of the fleet's learner on all demonstrations; load the parameters.

        It returns after `PRETRAIN_WAIT` also where fewer were made: another robot may still demonstrate, or have been
        stopped, and then this one must be able to stop as well. The caller asks again.
        """
        wanted = self.offline_updates + updates
        self.uplink.wake()
        end = time.monotonic() + PRETRAIN_WAIT
        while self.offline_updates < wanted and time.monotonic() < end:
            self._raise_failure()
            time.sleep(0.1)
        self._load_parameters()
        return {}

    def catch_up(self) -> dict[str, float] | None:
        """Load the newest parameters; between two episodes in simulation, wait for a learner that is behind."""
        self._raise_failure()
        self._steps += 1
        if not self._in_episode:
            self.uplink.wake()
            if self._waits:
                started = time.monotonic()
                self._wait_for_learner(self._tail.scan() - AHEAD)
                self._waited += time.monotonic() - started
        self._load_parameters()
        if self._steps < LOG_INTERVAL:
            return None
        elapsed = max(time.monotonic() - self._since, 1e-9)
        standing = self.uplink.standing
        logs = {
            "actor_waited": self._waited / elapsed,
            "policy_lag": float(self.updates - self._policy_updates),
            "connected": float(standing.connected),
            "episodes_not_learned": float(len(self._tail) - standing.learned),
        }
        self._since, self._steps, self._waited = time.monotonic(), 0, 0.0
        return logs

    def state_dict(self) -> dict[str, Any]:
        """Return the policy that the robot has; what the learner has is in the learner's own checkpoint."""
        return {
            "policy": self._policy.policy_state(),
            "policy_updates": self._policy_updates,
            "exploration": self._policy.generator.get_state(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue with the policy that the robot had.

        Raises:
            ConfigError: if the state is that of a run with a learner of its own.
        """
        if "policy_updates" not in state:
            raise ConfigError("the checkpoint is of a run with a learner of its own, not of a robot of a fleet")
        self._policy.load_policy_state(state["policy"])
        self._policy_updates = int(state["policy_updates"])
        self._policy.generator.set_state(state["exploration"])

    def finish(self) -> None:
        """Wait until the learner has saved every episode of this robot.

        Raises:
            LinkError: if it is away for too long; what it lacks is in the store.
        """
        self.uplink.finish()
        there = self._tail.scan()
        while not self.uplink.wait(lambda standing: standing.finished, self._member.patience):
            self._raise_failure()
            standing = self.uplink.standing
            if not standing.connected:
                raise LinkError(
                    f"the learner is away and has saved {standing.saved} of {there} episodes of {self._member.name}; "
                    "they are in its store: start the robot again with --resume when the learner is back"
                )

    def close(self) -> None:
        """End the link."""
        self.uplink.close()
        self._opened.close()

    # How.

    def _wait_for_learner(self, episodes: int) -> None:
        """Wait until the learner has learned from so many episodes, unless it is away for longer than the patience."""

        def done(standing: Standing) -> bool:
            return standing.learned >= episodes

        patience = 0.0 if self._alone else self._member.patience
        while not self.uplink.wait(done, max(patience, 0.01)):
            self._raise_failure()
            if not self.uplink.standing.connected:
                if not self._alone:
                    self._log(f"no learner for {patience:g} s: playing on with the policy of {self._policy_updates}")
                self._alone = True
                return
        self._alone = False

    def _percepts_of(self, episode: Episode) -> Iterable[Percept]:
        """Return the percepts of a stored episode, as they were when it was played, or computed again."""
        for episode_id, percepts in list(self._fresh):
            if episode_id == episode.episode_id and len(percepts) == len(episode) + 1:
                return percepts
        self._again = self._again or self._perceive()
        if self._base is not None and episode.action_base is None:
            episode = self._base.with_proposals(episode)
        return self._again.of_rows(episode.observed)

    def _load_parameters(self) -> None:
        parameters = self.uplink.inbox.pop_parameters()
        if parameters is not None:
            state = {name: torch.from_numpy(array) for name, array in parameters.arrays.items()}
            self._policy.load_policy_state(state)
            self._policy_updates = parameters.updates

    def _raise_failure(self) -> None:
        if self.uplink.inbox.error is not None:
            raise self.uplink.inbox.error


@contextlib.contextmanager
def open_robot_port(
    member: FleetMember,
    store: Path,
    log: Callable[[str], object],
    env: Environment,
    perceive: Callable[[], Perception],
    config: TrainConfig,
) -> Iterator[RobotPort]:
    """Open the port of a robot; at an orderly end wait until the learner has everything. See `RobotPort`."""
    port = RobotPort(member, env, perceive, config, store, log)
    try:
        yield port
        port.finish()
    finally:
        port.close()
