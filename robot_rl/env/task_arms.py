"""The arms in the control loop: what is observed of each, who leads it, and the one command of all.

`RobotEnv` owns the loop and knows no arm; this file knows the arms and no loop. `TaskArm` is one arm: its part of
the observation and of the action, its limits, its hand-over. `TaskArms` is all of them: their actions side by side,
their keep-out, and one command. A robot with one arm has a single `TaskArm`, without a name.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_rl.data.schema import OPERATOR_SOURCES, Source
from robot_rl.env.action_mapping import SafeCommand, SafetyFilter, check_action
from robot_rl.env.cell_geometry.capsule import KeepOutLimits
from robot_rl.env.cell_geometry.keep_out import ArmMotion, ArmShape, KeepOut
from robot_rl.env.choice import join_grippers, split_grippers
from robot_rl.env.handover import Handover, HandoverLimits
from robot_rl.env.robot_io import Command, RobotState
from robot_rl.env.task import ArmSpec, Taken, TaskSpec
from robot_rl.errors import ActionError, ConfigError
from robot_rl.geometry import Pose, quat_conjugate, quat_rotate
from robot_rl.spec import ArraySpec

POSE = "state/tcp_pose"
PROPRIOCEPTION = {
    POSE: ArraySpec((6,), unit="m, rad", scale=(0.02, 0.02, 0.02, 0.02, 0.02, 0.1)),
    "state/tcp_twist": ArraySpec((6,), unit="m/s, rad/s", scale=(0.1, 0.1, 0.1, 0.5, 0.5, 0.5)),
    "state/wrench": ArraySpec((6,), unit="N, Nm", scale=(5.0, 5.0, 10.0, 0.1, 0.1, 0.1)),
}
"""Observations of an arm: pose of the tcp relative to its pose at reset, twist and wrench in the tcp frame."""
WRENCH = "state/wrench"
"""Observed of an arm that measures forces only."""
GRIPPER = {"state/gripper_width": ArraySpec((1,), unit="m", scale=0.04)}


def arm_key(key: str, arm: str) -> str:
    """Return the key of an observation of one of several arms, e.g. `state/left/tcp_pose` of `state/tcp_pose`."""
    prefix, what = key.split("/", 1)
    return f"{prefix}/{arm}/{what}" if arm else key


@dataclass(frozen=True, eq=False)
class Chosen:
    """What is executed in a step, and who led to it.

    Attributes:
        action: In [-1, 1], shape (n,).
        source: Who was in control: the operator if they led any arm, else the policy if it led any.
        arm_sources: The `Source` of each of several arms, int8, shape (arms,); None for one arm.
    """

    action: np.ndarray
    source: Source
    arm_sources: np.ndarray | None


class TaskArm:
    """One arm as a task uses it.

    Args:
        name: Of the arm; empty if the robot has no other.
        spec: The task, as it is for this arm alone.
        handover: How fast the commanded velocity may change when control changes hands; None lets it jump.
        measures_wrench: Whether the arm measures forces.
    """

    def __init__(self, name: str, spec: TaskSpec, handover: HandoverLimits | None, *, measures_wrench: bool) -> None:
        self.name, self.spec = name, spec
        self.safety = SafetyFilter(spec)
        self._handover = Handover(spec, handover) if handover is not None else None
        self._measures_wrench = measures_wrench
        own = {key: s for key, s in PROPRIOCEPTION.items() if key != WRENCH or measures_wrench}
        self.observation_specs = {
            arm_key(key, name): s for key, s in {**own, **(GRIPPER if spec.gripper else {})}.items()
        }
        self.T_base_reset = self._T_reset_base = Pose.identity()

    def of(self, state: RobotState) -> RobotState:
        """Return this arm's part of the robot's state."""
        return state.arms[self.name] if self.name else state

    def begin(self, state: RobotState) -> None:
        """Start an episode in which the arm is where the robot's state has it."""
        self.T_base_reset = self.of(state).T_base_tcp
        self._T_reset_base = self.T_base_reset.inverse()
        if self._handover is not None:
            self._handover.reset()

    def observe(self, state: RobotState) -> dict[str, object]:
        """Return what is observed of this arm in the robot's state."""
        state = self.of(state)
        T_reset_tcp = self._T_reset_base @ state.T_base_tcp
        to_tcp = quat_conjugate(state.T_base_tcp.quaternion)
        twist = np.concatenate((quat_rotate(to_tcp, state.twist[:3]), quat_rotate(to_tcp, state.twist[3:])))
        values: dict[str, object] = {POSE: T_reset_tcp.vector(), "state/tcp_twist": twist}
        if self._measures_wrench:
            values[WRENCH] = state.wrench
        if self.spec.gripper:
            values["state/gripper_width"] = np.array([state.gripper_width])
        return {arm_key(key, self.name): value for key, value in values.items()}

    def choose(self, wanted: np.ndarray, taken: np.ndarray | None, operator: Source) -> tuple[np.ndarray, Source]:
        """Return the operator's action where they lead this arm, else the policy's; blended at a change.

        Args:
            wanted: By the policy.
            taken: By the operator; None where the policy leads.
            operator: What the operator's steps are recorded as.

        Raises:
            ActionError: if the operator's is no action.
        """
        chosen, source = wanted, Source.POLICY
        if taken is not None:
            chosen = self.safety.check(taken)
            source = operator if chosen.any() else Source.HOLD
        if self._handover is not None:
            chosen = self._handover.blend(chosen, led_by_operator=source != Source.POLICY)
        return chosen, source


class TaskArms:
    """All arms of a task.

    Args:
        spec: The task.
        handover: As for `TaskArm`.
        measures_wrench: Whether the arms measure forces.

    Raises:
        ConfigError: if an arm has an axis that does not exist, or the task cannot be one of several arms.
    """

    def __init__(self, spec: TaskSpec, handover: HandoverLimits | None = None, *, measures_wrench: bool = True) -> None:
        self._spec = spec
        self._arms = [TaskArm(n, s, handover, measures_wrench=measures_wrench) for n, s in spec.each.items()]
        own = [arm.spec.action_size - arm.spec.grippers for arm in self._arms]
        ends = list(itertools.accumulate(own, initial=0))
        self._parts = [slice(*both) for both in itertools.pairwise(ends)]
        self.observation_specs = {key: s for arm in self._arms for key, s in arm.observation_specs.items()}
        self._keep_out: KeepOut | None = None
        if spec.arms and spec.start is not None:
            raise ConfigError(f"{spec.name} has several arms, and start brings one to its place; leave it out")
        pushing = [arm.name for arm in self._arms if arm.spec.wrench_axes]
        if spec.keep_out is not None and pushing:
            raise ConfigError(
                f"{spec.name}: wrench_axes of {', '.join(pushing)}: a feed-forward wrench could push arms together "
                "that keep_out keeps apart; leave out wrench_axes, or make the workspaces so that they do not meet"
            )
        if spec.keep_out is not None:
            self._keep_out = keep_out_of(spec.arms, spec.keep_out)

    def check(self, action: object) -> np.ndarray:
        """Return an action of all arms as float32, shape (n,).

        Raises:
            ActionError: if its shape is wrong, it is not finite, or it leaves [-1, 1].
        """
        return check_action(action, self._spec)

    def begin(self, state: RobotState) -> None:
        """Start an episode with the arms where the state has them.

        Raises:
            ConfigError: if the robot has other arms than the task, or workspaces meet and nothing keeps the arms apart.
        """
        if state.arms.keys() != self._spec.arms.keys():
            raise ConfigError(
                f"{self._spec.name} is for {_names(self._spec.arms)}, and the robot has {_names(state.arms)}"
            )
        for arm in self._arms:
            arm.begin(state)
        if self._keep_out is None:
            self._check_apart()

    @property
    def T_base_reset(self) -> Pose:
        """Pose of the first arm's tcp at the start of the episode, in its base frame."""
        return self._arms[0].T_base_reset

    @property
    def resets(self) -> dict[str, Pose]:
        """The same of each of several arms, by name; empty for one."""
        return {arm.name: arm.T_base_reset for arm in self._arms if arm.name}

    def observe(self, state: RobotState) -> dict[str, object]:
        """Return what is observed of all arms."""
        return {key: value for arm in self._arms for key, value in arm.observe(state).items()}

    def choose(self, wanted: np.ndarray, taken: Taken | None, operator: Source) -> Chosen:
        """Return what is executed, arm by arm: the operator's action where they lead, else the policy's.

        Args:
            wanted: By the policy, checked, shape (n,).
            taken: By the operator, of the arms that they lead; None where the policy leads all.
            operator: What the operator's steps are recorded as.

        Raises:
            ActionError: if the operator's is no action, or is of an arm that is not there.
        """
        theirs = self.by_arm(taken)
        mine = self._split(wanted)
        made = [arm.choose(part, theirs.get(arm.name), operator) for arm, part in zip(self._arms, mine, strict=True)]
        as_wanted = all(np.array_equal(action, part) for (action, _), part in zip(made, mine, strict=True))
        sources = [source for _, source in made]
        led = next((s for s in sources if s in OPERATOR_SOURCES), None)
        source = led or (Source.POLICY if Source.POLICY in sources else Source.HOLD)
        several = np.array(sources, np.int8) if self._spec.arms else None
        return Chosen(wanted if as_wanted else self._join([action for action, _ in made]), source, several)

    def held(self) -> Chosen:
        """Return a step in which all arms were held, whatever was wanted."""
        sources = np.full(len(self._arms), Source.HOLD, np.int8) if self._spec.arms else None
        return Chosen(np.zeros(self._spec.action_size, np.float32), Source.HOLD, sources)

    def whole(self, taken: Taken | None) -> np.ndarray | None:
        """Return an operator's action as one of all arms; those that they do not lead are at rest.

        Raises:
            ActionError: if it is of an arm that is not there.
        """
        if not isinstance(taken, Mapping):
            return taken
        theirs = self.by_arm(taken)
        return self._join([theirs.get(a.name, np.zeros(a.spec.action_size, np.float32)) for a in self._arms])

    def by_arm(self, taken: Taken | None) -> Mapping[str, np.ndarray]:
        """Return an operator's actions by arm; none where the policy leads all. A single arm has no name.

        Raises:
            ActionError: if it is no action, or of an arm that is not there.
        """
        if taken is None:
            return {}
        if not isinstance(taken, Mapping):
            if not self._spec.arms:
                return {"": taken}
            parts = self._split(self.check(taken))
            return {arm.name: part for arm, part in zip(self._arms, parts, strict=True)}
        if unknown := sorted(taken.keys() - {arm.name for arm in self._arms}):
            raise ActionError(
                f"the operator leads {', '.join(unknown)}, and {self._spec.name} is for {_names(self._spec.arms)}"
            )
        return taken

    def command(self, action: np.ndarray, state: RobotState, stamp: int) -> SafeCommand:
        """Return the one command of all arms for a checked action.

        Args:
            action: In [-1, 1], shape (n,).
            state: Newest state.
            stamp: Now [ns].
        """
        parts = zip(self._arms, self._split(action), strict=True)
        safe = [arm.safety.apply(part, arm.of(state), arm.T_base_reset, stamp) for arm, part in parts]
        if not self._spec.arms:
            return safe[0]
        if self._keep_out is not None:
            safe = self._kept_apart(safe, state)
        points = {arm.name: s.command.set_point for arm, s in zip(self._arms, safe, strict=True)}
        return SafeCommand(
            Command.of_arms(stamp, safe[0].command.ttl, points), np.concatenate([s.clipped for s in safe])
        )

    def _kept_apart(self, safe: Sequence[SafeCommand], state: RobotState) -> list[SafeCommand]:
        """Return the commands with the set-points moved back where the arms would come too close."""
        motions = {
            arm.name: ArmMotion(
                arm.of(state).T_base_tcp,
                arm.of(state).twist[:3],
                s.command.T_base_target,
                lambda position, arm=arm: arm.safety.confine(position, arm.T_base_reset),  # type: ignore[misc]
            )
            for arm, s in zip(self._arms, safe, strict=True)
        }
        targets = self._keep_out.limit(motions) if self._keep_out is not None else {}
        kept = []
        for arm, s in zip(self._arms, safe, strict=True):
            moved = s.command.T_base_target.position - targets[arm.name].position
            clipped = s.clipped + np.concatenate((moved, np.zeros(3)))
            kept.append(SafeCommand(replace(s.command, T_base_target=targets[arm.name]), clipped))
        return kept

    def _split(self, action: np.ndarray) -> list[np.ndarray]:
        """Return the action of each arm: its axes, its wrench, then its gripper if it has one."""
        if not self._spec.arms:
            return [action]
        grippers = iter(split_grippers(float(action[-1]), self._spec.grippers) if self._spec.grippers else ())
        return [
            np.append(action[part], np.float32(next(grippers))) if arm.spec.grippers else action[part].copy()
            for arm, part in zip(self._arms, self._parts, strict=True)
        ]

    def _join(self, actions: Sequence[np.ndarray]) -> np.ndarray:
        """Return the action of all arms."""
        if not self._spec.arms:
            return actions[0]
        both = list(zip(self._arms, actions, strict=True))
        own = [action[: len(action) - arm.spec.grippers] for arm, action in both]
        grippers = [float(action[-1]) for arm, action in both if arm.spec.grippers]
        return np.concatenate([*own, [join_grippers(grippers)] if grippers else []]).astype(np.float32)

    def _check_apart(self) -> None:
        """Check that the workspaces of any two arms do not meet, by the boxes around them in the frame of the cell."""
        boxes = {arm.name: self._box(arm) for arm in self._arms if arm.name}
        for (a, (low_a, high_a)), (b, (low_b, high_b)) in itertools.combinations(boxes.items(), 2):
            shared = np.minimum(high_a, high_b) - np.maximum(low_a, low_b)
            if (shared > 0.0).all():
                raise ConfigError(
                    f"{self._spec.name}: the workspaces of {a} and {b} cross by {1e3 * shared.min():.0f} mm, and "
                    "nothing keeps the arms apart; give the task a keep_out, or make the workspaces smaller"
                )

    def _box(self, arm: TaskArm) -> tuple[np.ndarray, np.ndarray]:
        low_high = zip(arm.spec.workspace.low, arm.spec.workspace.high, strict=True)
        corners = np.array(list(itertools.product(*low_high))) + arm.T_base_reset.position
        T_cell_base = self._spec.arms[arm.name].T_cell_base
        placed = T_cell_base.position + corners @ T_cell_base.matrix.T
        return placed.min(axis=0), placed.max(axis=0)


LAST_SLACK = 1 / 3
"""Share of the slack that the last check has."""


def keep_out_of(arms: Mapping[str, ArmSpec], limits: KeepOutLimits) -> KeepOut:
    """Return how near the arms of a task may come to each other."""
    return KeepOut(limits, {name: ArmShape(arm.T_cell_base, arm.capsules) for name, arm in arms.items()})


def last_keep_out_of(spec: TaskSpec) -> KeepOut | None:
    """Return the same as the last check of commands has it, or None if the arms cannot meet.

    It has less slack, so that it changes nothing which the policy's side has kept apart at the same state, and no
    largest distance between tools: it only ever moves set-points apart.
    """
    limits = spec.keep_out
    if limits is None:
        return None
    return keep_out_of(
        spec.arms, replace(limits, slack=LAST_SLACK * limits.slack, tool_distance=(limits.tool_distance[0], math.inf))
    )


def _names(arms: Mapping[str, object]) -> str:
    return f"the arms {', '.join(arms)}" if arms else "one arm without a name"
