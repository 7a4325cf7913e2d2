"""The learner of a fleet: the learner of a single robot, with an online memory and a cursor for each robot.

Its checkpoint holds what it has learned and, with it, how far the store of each robot was read. A learner that is
killed goes on from there, and the robots send again what came after; so no row is lost and none comes twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from robot_rl.data.replay.percept import PerceptSpec, check_reward, checked_percept, checked_row
from robot_rl.data.replay.robots_memory import name_in_fleet
from robot_rl.data.store.tail import Cursor
from robot_rl.env.environment import EnvironmentSpec
from robot_rl.errors import ConfigError, DataError, LinkError
from robot_rl.fleet.intake import ReceivedEpisode
from robot_rl.fleet.plan import FleetPlan
from robot_rl.learn.learner import Learner
from robot_rl.learn.networks.policy_average import PolicyAverage
from robot_rl.link.handshake import Agreement
from robot_rl.link.leading_learner import open_learner
from robot_rl.link.messages import EpisodeLabel, EpisodeRewards


class FleetLearner:
    """Learns from whole episodes of several robots.

    Args:
        plan: The fleet.
        task: Facts of the environment, the same for all robots.
        percepts: Format of the percepts, the same for all robots.

    Raises:
        ConfigError: if the part of the memory of a robot is too small for an episode.

    Attributes:
        learner: The learner that they share.
        deployed: The average of its policy.
        cursors: How far the store of each robot was read, by name.
        demonstrations: Demonstrations received from each robot.
        finished: Robots that have played all that they should, and of which all is here.
        steps_planned: Online steps that each robot should play.
    """

    def __init__(self, plan: FleetPlan, task: EnvironmentSpec, percepts: PerceptSpec) -> None:
        self.plan, self.config = plan, plan.whole()
        self._task, self._percepts = task, percepts
        whole = sum(plan.shares.values())
        for name, share in plan.shares.items():
            rows = round(self.config.replay.capacity * share / whole) // self.config.learners
            if rows <= task.max_steps:
                raise ConfigError(
                    f"replay.capacity={self.config.replay.capacity} leaves {name} {rows} rows, an episode takes "
                    f"{task.max_steps + 1}; raise replay.capacity, or its share"
                )
        self.learner = open_learner(Agreement(task, percepts, self.config), plan.shares)
        self.deployed = PolicyAverage(self.learner.policy, self.config.policy_average)
        self.cursors = dict.fromkeys(plan.robots, Cursor())
        self.demonstrations = dict.fromkeys(plan.robots, 0)
        self.finished: set[str] = set()
        each = {name: plan.config_of(name) for name in plan.robots}
        self.steps_planned = {name: config.env_steps for name, config in each.items()}
        self._demonstrations_planned = {name: config.demonstrations for name, config in each.items()}

    @property
    def demonstrated(self) -> bool:
        """Whether all robots have sent their demonstrations."""
        return sum(self.demonstrations.values()) >= self.config.demonstrations

    @property
    def steps_of(self) -> dict[str, int]:
        """Online steps remembered of each robot."""
        online = self.learner.online
        return {name: len(ring) for name, ring in getattr(online, "robots", {}).items()}

    def check_episode(self, name: str, episode: ReceivedEpisode) -> None:
        """Refuse an episode that cannot be learned from, before any of it is remembered.

        Raises:
            DataError: if a value is not finite, or a shape is another one.
            LinkError: if the robot demonstrates more than the plan has.
        """
        percepts = self._percepts
        try:
            for percept in episode.percepts:
                checked_percept(percept, percepts.state_size, percepts.images, shaped=percepts.potential > 0)
            for step in episode.steps:
                checked_row("action", step.action, self._task.action_size)
                check_reward(step.reward, self._task.return_range)
            if len(episode.steps) > self._task.max_steps:
                raise DataError(f"it has {len(episode.steps)} steps, the task ends after {self._task.max_steps}")
        except DataError as error:
            raise DataError(f"episode {episode.episode_id}: {error}") from error
        allowed = self._demonstrations_planned[name]
        if episode.demonstration and self.demonstrations[name] >= allowed:
            raise LinkError(f"episode {episode.episode_id} is a demonstration, the plan has {allowed} of {name}")

    def learn(self, name: str, episode: ReceivedEpisode, on_step: Callable[[dict[str, float] | None], object]) -> None:
        """Remember an episode, and make the updates that are due for it.

        Args:
            name: Of the robot.
            episode: The next one of its store.
            on_step: Called after each online step, with logs now and then.

        Raises:
            LinkError: if it is not the next one.
            DivergedError: if a loss is not finite.
        """
        before = self.cursors[name]
        self.finished.discard(name)
        if episode.cursor.episodes != before.episodes + 1:
            raise LinkError(
                f"{name}: episode {episode.cursor.episodes - 1} arrived after {before.episodes}; one is lost or came "
                "twice"
            )
        learner, named = self.learner, name_in_fleet(name, episode.episode_id)
        if episode.demonstration:
            self._demonstrate(named, episode)
            self.demonstrations[name] += 1
        else:
            learner.begin(episode.percepts[0], named)
            for step, percept in zip(episode.steps, episode.percepts[1:], strict=True):
                learner.append(step, percept)
                logs = learner.catch_up()
                if learner.updates:
                    self.deployed.follow()
                on_step(logs)
        self.cursors[name] = episode.cursor

    def note(self, name: str, message: EpisodeLabel | EpisodeRewards) -> None:
        """Receive a label or rewards of an episode of a robot; the same again changes nothing."""
        named = name_in_fleet(name, message.episode_id)
        if isinstance(message, EpisodeLabel):
            self.learner.label_episode(named, message.success, message.since)
        else:
            self.learner.reward_episode(named, message.closeness)

    def finish(self, name: str, episodes: int) -> None:
        """Note that a robot has played all that it should.

        Raises:
            LinkError: if not all of its episodes are here.
        """
        if episodes != self.cursors[name].episodes:
            raise LinkError(f"{name} has {episodes} episodes, of which {self.cursors[name].episodes} arrived")
        self.finished.add(name)

    def pretrain(self, updates: int) -> dict[str, float]:
        """Make updates on the demonstrations alone; see `Learner.pretrain`."""
        logs = self.learner.pretrain(updates)
        if self.learner.offline_updates >= self.config.offline.steps:
            self.deployed.restart()
        return logs

    def state_dict(self) -> dict[str, Any]:
        """Return the parts of a training's checkpoint that are learned, and how far each store was read."""
        return {
            "learner": self.learner.state_dict(),
            "deployed": self.deployed.state_dict(),
            "fleet": {
                name: [*cursor, self.demonstrations[name], name in self.finished, self.steps_planned[name]]
                for name, cursor in self.cursors.items()
            },
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state_dict` returned; a robot that has more steps to play by now is not finished.

        Raises:
            CheckpointError: if it is of another algorithm or other networks.
            DataError: if it has a robot that is no longer part of the fleet.
        """
        self.learner.load_state_dict(state["learner"])
        self.deployed.load_state_dict(state["deployed"])
        for name, (episodes, fingerprint, demonstrations, finished, *planned) in state["fleet"].items():
            self.cursors[name] = Cursor(int(episodes), str(fingerprint))
            self.demonstrations[name] = int(demonstrations)
            if finished and planned in ([], [self.steps_planned[name]]):  # an earlier revision did not note them
                self.finished.add(name)

    def _demonstrate(self, name: str, episode: ReceivedEpisode) -> None:
        steps = [step._replace(undecided=False) for step in episode.steps]
        if not (steps[-1].terminated or steps[-1].truncated):
            steps[-1] = steps[-1]._replace(truncated=True)
        self.learner.demonstrate(episode.percepts, steps, name)


def facts_of(learner: Learner, wall_time: float, base: dict[str, str] | None) -> dict[str, Any]:
    """Return the facts of a checkpoint that has no robot of its own, as a training's checkpoint has them."""
    return {
        "env_steps": learner.env_steps,
        "episodes": 0,
        "stored": 0,
        "recorded": {},
        "demo_cycle_time": None,
        "wall_time": wall_time,
        "base": base,
    }
