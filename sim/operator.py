"""Scripted operator that demonstrates and intervenes about as well as a human operator.

It perceives the scene with an error that is redrawn now and then, moves at about half the speed of the arm, pauses,
overshoots, and searches when the part sticks. While a policy is in control it takes over when progress stalls, the
force grows or it is called, controls the arm for a burst of steps, and hands back. Its profile says how late, how
seldom, how long and how wrongly; `ideal` changes nothing.

Its perception is the true scene plus its error. A policy has no such input; it stands for the eyes of a human operator.
`SearchingOperator` of `sim.tasks` is told no more than the policy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from robot_rl.config.operator_profile import InterventionConfig, OperatorProfile, Told
from robot_rl.env.action_mapping import AXES
from robot_rl.env.robot_io import RobotState
from robot_rl.env.task import TaskSpec
from robot_rl.errors import ConfigError
from robot_rl.geometry import Pose, quat_conjugate, quat_from_rotvec, quat_multiply, quat_rotate, rotvec_from_quat
from sim.scene import DOWNWARD


@dataclass(frozen=True)
class OperatorSkill:
    """Accuracy of the operator's perception and motion.

    Attributes:
        position_error: Standard deviation of perceived positions [m].
        yaw_error: Standard deviation of perceived yaw angles [rad].
        resample_chance: Chance per step of a new perception error.
        speed: Range of the fraction of the largest action that is used; drawn per episode.
        action_noise: Standard deviation added to each action.
        pause: Chance per step of starting a pause.
        pause_steps: Longest pause.
    """

    position_error: float = 0.0006
    yaw_error: float = 0.008
    resample_chance: float = 0.05
    speed: tuple[float, float] = (0.35, 0.55)
    action_noise: float = 0.08
    pause: float = 0.03
    pause_steps: int = 4


@dataclass(frozen=True)
class InterventionHabit:
    """Conditions under which the operator takes over from a policy.

    Attributes:
        stall_steps: Steps without progress before it considers taking over.
        progress: Least progress towards the goal [m].
        force: Force above which it considers taking over at once [N].
        chance: Chance that it takes over when it considers it.
        burst: Shortest and longest time it stays in control [steps].
        rest: Steps after handing back in which it does not take over again.
    """

    stall_steps: int = 15
    progress: float = 0.002
    force: float = 45.0
    chance: float = 0.6
    burst: tuple[int, int] = (8, 30)
    rest: int = 8


def way_over(here: np.ndarray, goal: np.ndarray, height: float, near: float) -> float:
    """Return the length of the way of something that is lifted, carried to a goal at a height, and put down [m].

    The straight distance would grow while it is lifted, which is progress.

    Args:
        here: Where it is [m].
        goal: Where it belongs [m].
        height: At which it passes over what is in between [m].
        near: Lateral distance from the goal at which it is put down, whatever its height [m].
    """
    lateral = float(np.hypot(*(goal - here)[:2]))
    if lateral < near:
        return lateral + abs(float(here[2] - goal[2]))
    return max(height - float(here[2]), 0.0) + lateral + height - float(goal[2])


class ScriptedOperator(ABC):
    """Base class with perception, motion, pauses and interventions; a subclass plans the next goal.

    Args:
        spec: The task: its action axes and scales.
        skill: Accuracy of perception and motion.
        habit: Conditions of interventions.
    """

    told: Told = "scene"
    """What it knows of where things are."""
    hand = 0
    """Which hand of a person it is, where several arms are led; each errs in its own way."""

    def __init__(
        self, spec: TaskSpec, skill: OperatorSkill | None = None, habit: InterventionHabit | None = None
    ) -> None:
        self._spec = spec
        self.skill, self.habit = skill or OperatorSkill(), habit or InterventionHabit()
        self._axes = [AXES.index(axis) for axis in spec.action_axes]
        self._scale = np.repeat([spec.action_translation, spec.action_rotation], 3)
        self._rng = self._profile_rng = np.random.default_rng(0)
        self._intervention, self._profile = InterventionConfig(), OperatorProfile()

    def use(self, intervention: InterventionConfig) -> None:
        """Intervene as these profiles say, from the next reset on; demonstrations stay the same.

        Raises:
            ConfigError: if they are of an operator who is told something else.
        """
        if intervention.knowledge != self.told:
            raise ConfigError(
                f"intervention.told={intervention.knowledge} with task={self._spec.name}: no operator there is told "
                f"that; leave out intervention.profile={intervention.profile}, or choose task=peg_hard"
            )
        self._intervention = intervention

    # Methods of subclasses.

    @abstractmethod
    def plan(self, state: RobotState) -> tuple[Pose, float, float]:
        """Return the next goal of the tcp, the speed relative to the usual one, and the gripper action."""

    @abstractmethod
    def distance(self, state: RobotState) -> float:
        """Return the distance to the end of the task [m]; progress is a decrease of it."""

    @abstractmethod
    def begin(self) -> None:
        """Discard plans at the start of an episode or of an intervention."""

    def push(self, state: RobotState) -> np.ndarray:
        """Return the wrench entries of the action that follows from `plan`; none is pushed, unless a task says so."""
        del state
        return np.zeros(len(self._spec.wrench_axes))

    def waits(self, state: RobotState) -> bool:
        """Return whether it is not this arm's turn, so that no progress of it is no concern."""
        del state
        return False

    # Operator.

    def reset(self, seed: int, demonstrate: bool) -> None:
        """Start an episode."""
        self._rng = np.random.default_rng([seed, 2, self.hand])
        self._demonstrate = demonstrate
        self._speed = self._rng.uniform(*self.skill.speed)
        self._pause = 0
        self._burst, self._rest, self._reaction = 0, 0, 0
        self._profile = OperatorProfile() if demonstrate else self._intervention.drawn(seed)
        self._profile_rng = np.random.default_rng([seed, 11, self.hand])  # of what the profile adds
        self._absent = self._profile_rng.uniform() >= self._profile.attention
        self._astray: np.ndarray | None = None
        self._best, self._stalled = np.inf, 0
        self._called = False
        self._sample_perception_error()
        self.begin()

    def act(self, state: RobotState, T_base_reset: Pose) -> np.ndarray | None:
        """Return the action of this step, or None while the policy is in control."""
        del T_base_reset  # acts on absolute poses
        if not self._demonstrate and not self._in_control(state):
            return None
        return self._act(state)

    # Intervening.

    can_be_called = True
    """It comes."""

    def call_for_help(self) -> None:
        """Take over with the next step, or after the reaction time of the profile."""
        self._called = self._burst == 0

    def _in_control(self, state: RobotState) -> bool:
        """Return whether the operator controls this step."""
        if self._absent or (self._burst == 0 and not self._takes_over(state)):
            return False
        if self._reaction > 0:
            self._reaction -= 1
            return False
        self._burst -= 1
        if self._burst == 0:
            self._rest, self._best, self._stalled = self.habit.rest, np.inf, 0
        return True

    def _takes_over(self, state: RobotState) -> bool:
        """Start a burst, if the operator is called or, with some chance, concerned."""
        called, self._called = self._called, False
        if self.waits(state):
            self._best, self._stalled = np.inf, 0
            return False
        if not (called or (not self._intervention.call.only and self._is_concerned(state))):
            return False
        profile = self._profile
        most = self._spec.max_steps
        shortest, longest = (min(max(1, round(steps * profile.length)), most) for steps in self.habit.burst)
        self._burst = int(self._rng.integers(shortest, longest + 1))
        self._reaction = round(profile.reaction_s / self._spec.control_period)
        self._sample_perception_error()
        self._astray = self._place_astray()
        self.begin()
        return True

    def _is_concerned(self, state: RobotState) -> bool:
        """Return, with some chance, whether progress stalls or the force is large."""
        habit, profile = self.habit, self._profile
        stall_steps = max(1, round(habit.stall_steps * profile.patience))
        distance = self.distance(state)
        if distance < self._best - habit.progress:
            self._best, self._stalled = distance, 0
        else:
            self._stalled += 1
        if self._rest > 0:
            self._rest -= 1
            return False
        if self._stalled < stall_steps and state.peak_force <= habit.force:
            return False
        if self._rng.uniform() >= habit.chance * profile.readiness:
            self._stalled = stall_steps // 2
            return False
        return True

    def _place_astray(self) -> np.ndarray | None:
        """Draw where this take-over leads to, relative to the right place [m]; None: to the right place."""
        if self._profile_rng.uniform() >= self._profile.wrong:
            return None
        angle = self._profile_rng.uniform(0.0, 2.0 * np.pi)
        return self._profile.wrong_by * np.array([np.cos(angle), np.sin(angle), 0.0])

    # Perception and motion.

    def _sample_perception_error(self) -> None:
        """Draw a new perception error."""
        self._perception_offset = self._rng.normal(0.0, self.skill.position_error, 3)
        self._perception_yaw = self._rng.normal(0.0, self.skill.yaw_error)

    def perceived(self, truth: Pose) -> Pose:
        """Return the pose of an object as the operator perceives it: with the perception error."""
        turn = quat_from_rotvec(np.array([0.0, 0.0, self._perception_yaw]))
        position = truth.position + self._perception_offset
        return Pose(
            position if self._astray is None else position + self._astray, quat_multiply(turn, truth.quaternion)
        )

    def _act(self, state: RobotState) -> np.ndarray:
        rng, skill = self._rng, self.skill
        if rng.uniform() < skill.resample_chance:
            self._sample_perception_error()
        goal, pace, gripper = self.plan(state)
        if self._pause == 0 and rng.uniform() < skill.pause:
            self._pause = int(rng.integers(1, skill.pause_steps + 1))
        if self._pause > 0:
            self._pause -= 1
            motion = np.zeros(6)
        else:
            motion = self._motion(state, goal, pace)
        motion = motion + rng.normal(0.0, skill.action_noise, 6)
        action = np.append(np.clip(motion[self._axes], -1.0, 1.0), self.push(state))
        return np.append(action, gripper) if self._spec.gripper else action

    def _motion(self, state: RobotState, goal: Pose, pace: float) -> np.ndarray:
        """Return the motion towards the goal in the tcp frame, relative to the largest action. Shape (6,)."""
        here = state.T_base_tcp
        back = quat_conjugate(here.quaternion)
        error = np.concatenate(
            (
                quat_rotate(back, goal.position - here.position),
                rotvec_from_quat(quat_multiply(back, goal.quaternion)),
            )
        )
        motion = error / self._scale
        limit = min(1.0, self._speed * pace * self._profile.speed)
        # Each part is scaled as a whole, so that the path stays straight.
        for part in (slice(0, 3), slice(3, 6)):
            length = float(np.linalg.norm(motion[part]))
            if length > limit:
                motion[part] *= limit / length
        return motion


class InsertionOperator(ScriptedOperator):
    """Operator that moves a downward peg over a hole, lowers it, and searches when the peg sticks.

    Args:
        spec: The task.
        hole: Function that returns the true pose of the hole's mouth in the base frame, z up.
        depth: Depth of an inserted peg [m].
        skill: Accuracy of perception and motion.
        habit: Conditions of interventions.
    """

    hover = 0.006
    """Height of the tip over the mouth before lowering [m]."""
    aligned = 0.0015
    """Lateral error below which lowering starts [m]."""
    stuck_steps = 4
    """Steps without progress in depth before it lifts the peg and tries another place."""
    lift = 0.001
    """Height of the lift [m]."""
    search = 0.0006
    """Standard deviation of the next place [m]."""
    press_gain = 1.5
    """Extra lateral push per lateral error while the tip rests on the surface."""

    def __init__(
        self,
        spec: TaskSpec,
        hole: Callable[[], Pose],
        depth: float,
        *,
        skill: OperatorSkill | None = None,
        habit: InterventionHabit | None = None,
    ) -> None:
        super().__init__(spec, skill, habit)
        self._hole, self._depth = hole, depth

    def begin(self) -> None:
        """Discard the state of the insertion."""
        self._lowering = False
        self._deepest, self._sticking = -np.inf, 0
        self._search_offset = np.zeros(2)

    def distance(self, state: RobotState) -> float:
        """Return the distance from the tip to the bottom of the insertion [m]."""
        return float(np.linalg.norm(self._hole_to_tip(state) + np.array([0.0, 0.0, self._depth])))

    def _hole_to_tip(self, state: RobotState) -> np.ndarray:
        return state.T_base_tcp.position - self._hole().position

    def plan(self, state: RobotState) -> tuple[Pose, float, float]:
        """Plan a goal over the hole first, then down; search where the peg sticks."""
        seen = self.perceived(self._hole())
        offset = state.T_base_tcp.position - seen.position
        lateral, depth = float(np.hypot(offset[0], offset[1])), float(-offset[2])
        if not self._lowering and lateral < self.aligned and depth > -2.0 * self.hover:
            self._lowering = True
        if self._lowering and depth < 0.0 and lateral > 3.0 * self.aligned:
            self._lowering = False
        downward = quat_multiply(seen.quaternion, DOWNWARD)
        if not self._lowering:
            # Already in the hole, by a policy: go on; else keep clear of the surface.
            height = self.hover if depth < 0.003 else -self._depth
            return Pose(seen.position + np.array([0.0, 0.0, height]), downward), 1.0, 0.0
        if depth > self._deepest + 0.0005:
            self._deepest, self._sticking = depth, 0
        else:
            self._sticking += 1
        if self._sticking == 0:
            self._search_offset = np.zeros(2)
        elif self._sticking >= self.stuck_steps:
            phase = (self._sticking - self.stuck_steps) % 5
            if phase == 0:  # new perception, a small lift, and a place nearby
                self._sample_perception_error()
                self._search_offset = self._rng.normal(0.0, self.search, 2)
            if phase < 2:
                return Pose(self._over(seen, self.lift), downward), 1.0, 0.0
        # Against friction, a small lateral error needs a larger push.
        push = self.press_gain * offset[:2] if depth < 0.002 else np.zeros(2)
        target = self._over(seen, -self._depth - 0.005) - np.append(push, 0.0)
        return Pose(target, downward), 0.9, 0.0

    def _over(self, seen: Pose, height: float) -> np.ndarray:
        """Return a point over the perceived mouth, moved by the present search offset [m]."""
        return seen.position + np.array([self._search_offset[0], self._search_offset[1], height])
