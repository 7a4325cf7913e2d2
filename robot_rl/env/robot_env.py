"""The one environment: a gymnasium `Env` over any `Workcell`, simulated or real.

It owns the loop of a control period: check the action, let the operator take over, make the command safe, send it, wait
for the deadline, read, evaluate, record. What it knows of arms, one or several, is `TaskArms`. It depends on no
learner, on no ROS, and on no simulator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np

from robot_rl.clock import NS_PER_S, Clock, Rate
from robot_rl.data.schema import Observation, Source, Step
from robot_rl.env.action_mapping import check_no_wrench, describe_actions
from robot_rl.env.environment import ObservedJudge, SupportsCalls, SupportsGivingUp, check_cameras, check_world
from robot_rl.env.handover import HandoverLimits
from robot_rl.env.move_arm import go_to_start
from robot_rl.env.robot_io import RobotState
from robot_rl.env.step_info import EpisodeStart, StepInfo
from robot_rl.env.task import Judge, Workcell, WorkcellOptions
from robot_rl.env.task_arms import Chosen, TaskArms
from robot_rl.errors import ArmStoppedError, ConfigError, StepOrderError
from robot_rl.spec import ArraySpec, to_space, validate_dict

WAIT = NS_PER_S // 200
"""Time between two polls of a robot that is late with its measurements [ns]."""


class RobotEnv(gymnasium.Env[dict[str, np.ndarray], np.ndarray]):
    """A robot that does a task, one control period per step.

    `step` returns gymnasium's five values. Success and failure set `terminated`; the step limit sets `truncated`; never
    both. It is also an `Environment`: actors call `start` and `advance`, which return the same facts typed. `info` of
    `reset` holds `start` (an `EpisodeStart`), `info` of `step` holds `step` (a `StepInfo`).

    Args:
        workcell: Robot, clock, task and operator.
        interventions: Whether the operator may take over while the policy is in control.
        options: What the workcell was made with: the cameras whose frames are observed, their size, whether the task's
            own part of the observation is included, and when after an observation its command goes out.
        handover: How fast the commanded velocity may change when control changes hands; None lets it jump.

    Raises:
        ConfigError: if a command would go out a whole control period after its observation, or later; if cameras are
            wanted and the task has none; if its world cannot be changed as the options want; if the task commands a
            wrench and the arm follows none.
        UnknownNameError: if it has no camera of that name.
    """

    metadata = {"render_modes": []}  # noqa: RUF012  (gymnasium declares it as a plain class attribute)

    def __init__(
        self,
        workcell: Workcell,
        *,
        interventions: bool = False,
        options: WorkcellOptions | None = None,
        handover: HandoverLimits | None = None,
    ) -> None:
        options = options or WorkcellOptions()
        self._cell = workcell
        self._stages = next((judge for judge in workcell.judges if isinstance(judge, ObservedJudge)), None)
        self.spec_task = workcell.task.spec
        self.environment_spec = replace(self.spec_task.environment, actions=describe_actions(self.spec_task))
        self.interventions = interventions
        """Whether the operator may take over; evaluation switches it off."""
        self._advising = False  # whether the operator only advises, in this episode
        check_cameras(options.cameras, self.environment_spec)
        check_world(options.world, self.environment_spec)
        if not workcell.takes_wrench:
            check_no_wrench(self.spec_task, "this arm")
        self._arms = TaskArms(self.spec_task, handover, measures_wrench=workcell.measures_wrench)
        self._rate = Rate(workcell.clock, self.spec_task.control_period)
        self._cameras, self._estimates = options.cameras, options.estimates
        self._reaction_time = options.reaction_time
        if self._reaction_time >= self.spec_task.control_period:
            raise ConfigError(
                f"reaction_time={self._reaction_time:g} s is no less than the control period of "
                f"{self.spec_task.name}, {self.spec_task.control_period:g} s; make it less"
            )
        self.observation_specs: dict[str, ArraySpec] = {
            **self._arms.observation_specs,
            **(workcell.task.observation_specs() if options.estimates else {}),
            **(self._stages.observation_specs if self._stages is not None else {}),
            **{
                f"images/{name}": ArraySpec((*options.image_size, 3), "uint8", low=0, high=255)
                for name in options.cameras
            },
        }
        self.observation_space = to_space(self.observation_specs)  # type: ignore[assignment]
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (self.spec_task.action_size,), np.float32)
        self._state: RobotState | None = None
        self._seen: RobotState | None = None  # the newest, also after the end of an episode
        self._demonstrate = False
        self._episode_id, self._index = "", 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Start an episode, as gymnasium has it.

        Args:
            seed: Everything random in the episode follows from it; None draws one.
            options: `demonstrate` (bool): the operator leads the whole episode. `episode_id` (str): name to record.
        """
        super().reset(seed=seed)
        options = options or {}
        if unknown := options.keys() - {"demonstrate", "episode_id"}:
            raise StepOrderError(f"unknown reset options {sorted(unknown)}; valid: demonstrate, episode_id")
        episode_seed = seed if seed is not None else int(self.np_random.integers(2**31))
        episode_id = str(options.get("episode_id", f"episode-{episode_seed}"))
        start = self.start(episode_seed, episode_id, demonstrate=bool(options.get("demonstrate", False)))
        return self._observation, {"start": start}

    def step(
        self, action: np.ndarray, *, last: bool = False, meanwhile: Callable[[], object] | None = None
    ) -> tuple[dict[str, np.ndarray], float, bool, bool, dict[str, Any]]:
        """Play one control period, as gymnasium has it; see `advance`."""
        info = self.advance(action, last=last, meanwhile=meanwhile)
        step = info.recorded
        return self._observation, step.reward, step.terminated, step.truncated, {"step": info}

    def start(self, seed: int, episode_id: str, *, demonstrate: bool = False) -> EpisodeStart:
        """Start an episode; see `Environment.start`."""
        self._demonstrate = demonstrate
        if demonstrate and self._cell.operator is None:
            raise StepOrderError(f"task {self.spec_task.name} has no operator who could demonstrate")
        self._advising = False
        self._episode_id, self._index = episode_id, 0
        self._state = None  # there is no episode until all of this has worked
        if self._cell.stops is not None and (reason := self._cell.stops.stopped) is not None:
            raise ArmStoppedError(f"the arm is stopped: {reason}")
        if self.spec_task.start is not None:
            go_to_start(self._cell.io, self._cell.clock, self.spec_task.start)
        self._cell.task.reset(seed)
        for judge in self.judges:
            judge.begin()
        if self._cell.operator is not None:
            self._cell.operator.reset(seed, demonstrate)
        self._cell.await_frames()
        state = self._cell.io.read()
        self._arms.begin(state)
        self._rate.restart()
        self._observation = self._observe(state)
        self._state = self._seen = state
        return EpisodeStart(self._observation, seed, state.stamp, self._arms.T_base_reset, arms=self._arms.resets)

    def give_up(self) -> None:
        """Wait for no person any more; see `SupportsGivingUp`."""
        if isinstance(self._cell.task, SupportsGivingUp):
            self._cell.task.give_up()

    def advance(
        self, action: np.ndarray, *, last: bool = False, meanwhile: Callable[[], object] | None = None
    ) -> StepInfo:
        """Play one control period.

        Args:
            action: The policy's action, in [-1, 1], shape (n,).
            last: Truncate the episode after this step, whatever the step limit.
            meanwhile: Called once the command is on its way, before the wait for the end of the period.

        Raises:
            ActionError: before anything moved, if the action is not finite, in range and of the right shape.
            StepOrderError: before `reset`, or after the end of an episode.
            StaleStateError: if the robot's state is too old; the arm has been stopped.
        """
        if self._state is None:
            raise StepOrderError("the episode has not started or is over; call reset() first")
        wanted = self._arms.check(action)
        try:
            return self._advance(wanted, self._state, last, meanwhile)
        except BaseException:  # Ctrl-C and bugs too: whatever it is, the arm does not go on
            self._cell.io.stop()
            self._state = None
            raise

    def _advance(
        self, wanted: np.ndarray, before: RobotState, last: bool, meanwhile: Callable[[], object] | None
    ) -> StepInfo:
        if self._reaction_time > 0.0:
            self._rate.sleep_past(self._reaction_time)
        chosen = self._choose(wanted, before)
        stamp = self._cell.clock.now()
        safe = self._arms.command(chosen.action, before, stamp)
        self._cell.io.command(safe.command)
        if meanwhile is not None:
            meanwhile()
        self._rate.sleep()

        state = self._read_after(before)
        observation, outcome = self._observe(state), self._cell.task.evaluate(state)
        for judge in self.judges:
            outcome = judge.judge(outcome, observation, self.spec_task)
        if self._stages is not None:
            observation = {**observation, **self._stages.observe()}
        failure = outcome.failure
        if not outcome.success and state.peak_force > self.spec_task.force_limit:
            failure = "force limit"
        terminated = outcome.success or failure is not None
        last = last or outcome.cut is not None or self._index + 1 >= self.spec_task.max_steps
        truncated = not terminated and last
        if outcome.held:  # what was wanted was not, or not all, done
            chosen = self._arms.held()
        step = Step(
            observation=self._observation,
            action=chosen.action,
            action_policy=wanted,
            source=chosen.source,
            reward=outcome.reward,
            reward_source=outcome.judge,
            terminated=terminated,
            truncated=truncated,
            stamp_obs=before.stamp,
            stamp_action=stamp,
            episode_id=self._episode_id,
            index=self._index,
            arm_sources=chosen.arm_sources,
        )
        self._observation = observation
        self._index += 1
        self._state = self._seen = state
        if terminated or truncated:
            self._cell.io.stop()
            self._state = None
        return StepInfo(
            recorded=step,
            observation=observation,
            stamp_obs=state.stamp,
            success=outcome.success,
            failure=failure,
            overruled=outcome.overruled,
            cut=outcome.cut if truncated else None,
            force_peak=state.peak_force,
            overruns=self._rate.overruns,
            metrics=outcome.metrics,
            clipped=safe.clipped,
        )

    def _read_after(self, before: RobotState) -> RobotState:
        """Return a state that was measured after `before`.

        On a robot whose driver is late it waits; meanwhile the arm follows the command, which expires by itself.

        Raises:
            StaleStateError: when nothing new has come until the old state is too old.
        """
        io, clock = self._cell.io, self._cell.clock
        state = io.read()
        force = state.peak_force
        while not state.newer_than(before):
            clock.sleep_until(clock.now() + WAIT)
            state = io.read()
            force = max(force, state.peak_force)
        return state if force == state.peak_force else replace(state, peak_force=force)

    def _choose(self, wanted: np.ndarray, state: RobotState) -> Chosen:
        """Return the operator's action where the operator is in control, else the policy's; blended at a change."""
        operator, taken = self._cell.operator, None
        if operator is not None and (self._demonstrate or (self.interventions and not self._advising)):
            taken = operator.act(state, self._arms.T_base_reset)
        return self._arms.choose(wanted, taken, self._cell.operator_source)

    def _observe(self, state: RobotState) -> dict[str, np.ndarray]:
        """Proprioception, the task's own entries, and frames; validated."""
        values: dict[str, object] = {
            **self._arms.observe(state),
            **(self._cell.task.observe(state, self._arms.T_base_reset) if self._estimates else {}),
            **(self._stages.observe() if self._stages is not None else {}),
            **{f"images/{name}": state.images[name] for name in self._cameras},
        }
        return validate_dict(self.observation_specs, values, "observation")

    def stop(self) -> None:
        """Stop the arm and end the episode, because what decides about its actions has failed."""
        self._cell.io.stop()
        self._state = None

    def begin_advice(self, seed: int) -> None:
        """Have the operator only advise in this episode; see `SupportsAdvice`."""
        operator = self._cell.operator
        if operator is None or self._cell.operator_source != Source.SCRIPT:
            who = "no operator" if operator is None else "a person as its operator"
            raise ConfigError(f"{self.spec_task.name} has {who} here, and a scripted base needs a scripted one")
        operator.reset(seed, True)
        self._advising = True

    def advise(self) -> np.ndarray | None:
        """Return the operator's action for the newest observation, without carrying it out."""
        if self._cell.operator is None or self._seen is None:
            return None
        return self._arms.whole(self._cell.operator.act(self._seen, self._arms.T_base_reset))

    @property
    def can_be_called(self) -> bool:
        """Whether the operator is a script that takes over when called."""
        operator = self._cell.operator
        return isinstance(operator, SupportsCalls) and operator.can_be_called

    def call_for_help(self) -> None:
        """Have the scripted operator take over; see `SupportsCalls`."""
        operator = self._cell.operator
        if isinstance(operator, SupportsCalls):
            operator.call_for_help()

    @property
    def can_demonstrate(self) -> bool:
        """Whether an operator could lead a whole episode."""
        return self._cell.operator is not None

    @property
    def judges(self) -> tuple[Judge, ...]:
        """Filters of the outcome of a step, that of its stages last."""
        return tuple(sorted(self._cell.judges, key=lambda judge: judge is self._stages))

    @property
    def clock(self) -> Clock:
        """The robot's clock."""
        return self._cell.clock

    @property
    def observation(self) -> Observation:
        """The newest observation."""
        return self._observation

    def close(self) -> None:
        """Stop the arm and releases the workcell."""
        self._cell.io.stop()
        self._cell.close()
