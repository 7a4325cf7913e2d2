"""The actor: plays episodes with a policy in an environment, and passes each step to observers. It never learns."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol, cast

import numpy as np
import torch

from robot_rl.data.schema import (
    BASE_ACTION,
    LABEL_SOURCE,
    OPERATOR_SOURCES,
    TASK_SUCCESS,
    Episode,
    EpisodeBuilder,
    Observation,
    Source,
    Step,
)
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.choice import entry_of_choice
from robot_rl.env.environment import Environment, EnvironmentSpec, stop_arm
from robot_rl.env.episode_observer import EpisodeResult, Observer
from robot_rl.env.step_info import StepInfo
from robot_rl.env.task import TASK_JUDGE
from robot_rl.errors import DivergedError, StepOrderError
from robot_rl.learn.learner_port import LearnerPort
from robot_rl.learn.networks.networks import Policy
from robot_rl.learn.perception import Perception


class Proposer(Protocol):
    """A base that proposes an action in each control period; see `ChunkPlayer`.

    Attributes:
        holding: Whether it has no action for this period, so that the arm has to hold.
    """

    holding: bool

    def begin(self, seed: int, environment: Environment, stamp: int, observation: Observation) -> np.ndarray:
        """Start an episode; return the proposal for its first observation, measured at `stamp` [ns]."""
        ...

    def observe(self, stamp: int, observation: Observation, *, led: bool = False) -> np.ndarray:
        """Return the proposal for the next observation; `led`: somebody else was in control before it."""
        ...


class Deriver(Observer, Protocol):
    """An observer that derives something from each episode, for the learner alone."""

    def on_end(self, episode: Episode, result: object) -> None:
        """Receive a finished episode, also one of a record, without a result."""
        ...

    def deliver(self, learner: LearnerPort) -> None:
        """Send what follows from the newest episode, once; after the updates for its last step."""
        ...


class Rollout:
    """Steps through episodes one control period at a time, so that a learner can take turns with it.

    Args:
        env: Where to act.
        policy: The policy that acts; None before there is one (demonstrations), or where the base acts alone.
        perception: Observation to policy input; None where there is no policy.
        history: Ages of the observations stacked for the policy [steps].
        observers: Receive every start, step and end, in this order.
        base: Proposes what the policy corrects; None: the policy acts alone.
        every: Steps from one decision of the policy to the next, in between it plays what it has decided, and where
            that is used up goes on with the last action; None: its own, `Policy.chunk`.
        beside: Receive the same, but a step only while the arm does the next one, so that an action that is due does
            not wait for them; at the latest before the end of the episode.
    """

    def __init__(
        self,
        env: Environment,
        policy: Policy | None,
        perception: Perception | None,
        history: tuple[int, ...],
        observers: Sequence[Observer] = (),
        beside: Sequence[Observer] = (),
        base: Proposer | None = None,
        every: int | None = None,
    ) -> None:
        self._base, self._every = base, every
        self._decided: deque[np.ndarray] = deque()  # actions that are still to be played
        self._proposal: np.ndarray | None = None  # of the base, for the newest observation
        self._env, self._perception, self._history = env, perception, history
        self.policy = policy
        self._observers, self._beside = tuple(observers), tuple(beside)
        self._pending: tuple[Step, Observation] | None = None  # that those beside have not received
        self._rows: deque[np.ndarray] = deque(maxlen=max(history) + 1)
        self._view: np.ndarray | None = None  # images of the newest observation for the policy
        self._builder: EpisodeBuilder | None = None
        self._newest: StepInfo | None = None  # of the last step

    @property
    def environment_spec(self) -> EnvironmentSpec:
        """The fixed facts of the environment."""
        return self._env.environment_spec

    def begin(self, seed: int, episode_id: str, *, demonstrate: bool = False) -> None:
        """Start an episode; everything random in the scene, the operator and a deployed policy follows from `seed`."""
        start = self._env.start(seed, episode_id, demonstrate=demonstrate)
        observation = start.observation
        if self._base is not None:
            proposal = self._proposed(lambda base: base.begin(seed, self._env, start.stamp_obs, start.observation))
            observation = {**observation, BASE_ACTION: proposal}
        self._rows.clear()
        self._decided.clear()
        if self.policy is not None:
            self.policy.begin(seed)
        self._perceive(observation)
        self._builder = EpisodeBuilder(episode_id)
        spec = self._env.environment_spec
        self._builder.note(task=spec.name, seed=seed, demonstration=demonstrate)
        if spec.rewards:
            self._builder.note(rewards=spec.rewards)
        if spec.actions:
            self._builder.note(actions=spec.actions)
        if start.T_base_reset is not None:  # [m, rad]; the observations are relative to it
            self._builder.note(T_base_reset=start.T_base_reset.vector().tolist())
        if start.arms:
            self._builder.note(T_base_reset_of_arms={a: pose.vector().tolist() for a, pose in start.arms.items()})
        self._previous = Source.POLICY
        self._operator_steps, self._takeovers, self._reward, self._force = 0, 0, 0.0, 0.0
        self._pending = None
        for observer in (*self._beside, *self._observers):
            observer.on_start(episode_id, observation)

    def step(
        self,
        *,
        deterministic: bool,
        last: bool = False,
        uniform: np.random.Generator | None = None,
        base_alone: bool = False,
    ) -> EpisodeResult | None:
        """Play one control period; return the result when the episode ends with it.

        Args:
            deterministic: Act as the policy is deployed: nothing is random but by the seed of the episode.
            last: Cut the episode after this step, e.g. because the run's steps are used up; it counts as truncated.
            uniform: Source of a uniformly random action to take instead of the policy's.
            base_alone: Take the base's proposal as it is.

        Raises:
            BasePolicyError: if the base fails; the arm has been stopped.
        """
        if self._builder is None:
            raise StepOrderError("no episode is running; begin() one first")
        proposal = self._proposal
        action = self._act(deterministic) if uniform is None else self._draw(uniform)
        held = self._base is not None and self._base.holding
        if proposal is not None and (base_alone or held or self.policy is None):
            action = proposal  # zeros while there is none
        info = self._env.advance(action, last=last, meanwhile=self._pass_on)
        step, observation = info.recorded, info.observation
        if step.source != Source.POLICY:  # what was decided before somebody led, or the arm was held, is out of date
            self._decided.clear()
        if self._base is not None:
            if held and step.source == Source.POLICY:
                held_arms = None if step.arm_sources is None else np.full_like(step.arm_sources, Source.HOLD)
                step = replace(step, source=Source.HOLD, arm_sources=held_arms)
            step = replace(step, action_base=proposal)
            led, stamp = step.source in OPERATOR_SOURCES, info.stamp_obs
            following = info.observation
            new = self._proposed(lambda base: base.observe(stamp, following, led=led))
            observation = {**observation, BASE_ACTION: new}
        self._builder.add(step)
        self._newest = info
        self._perceive(observation)
        if (control := step.control) != Source.HOLD:  # an operator at rest neither commands nor has handed back
            led = control in OPERATOR_SOURCES
            self._operator_steps += led
            self._takeovers += led and self._previous == Source.POLICY
            self._previous = control
        self._reward += step.reward
        self._force = max(self._force, info.force_peak)
        self._pending = step, observation
        for observer in self._observers:
            observer.on_step(step, observation)
        return self._finish(info) if info.ended else None

    def abandon(self, reason: str) -> EpisodeResult | None:
        """Close the running episode where it stands, e.g. because the robot was lost; return None if it has no step."""
        builder, self._builder = self._builder, None
        if builder is None or len(builder) == 0 or self._newest is None:
            return None
        builder.cut()
        builder.note(interrupted=True)
        self._builder = builder
        return self._finish(replace(self._newest, success=False, failure=reason))

    def play(self, seed: int, episode_id: str, *, deterministic: bool, demonstrate: bool = False) -> EpisodeResult:
        """Play a whole episode."""
        self.begin(seed, episode_id, demonstrate=demonstrate)
        while (result := self.step(deterministic=deterministic)) is None:
            pass
        return result

    def _pass_on(self) -> None:
        """Pass the last step to those beside."""
        pending, self._pending = self._pending, None
        if pending is not None:
            for observer in self._beside:
                observer.on_step(*pending)

    def _perceive(self, observation: Observation) -> None:
        if self._perception is None:
            return
        state, self._view = self._perception.view(observation)
        self._rows.append(state)

    def _proposed(self, ask: Callable[[Proposer], np.ndarray]) -> np.ndarray:
        """Ask the base for its proposal and remember it; whatever goes wrong there, the arm does not go on."""
        base = cast("Proposer", self._base)
        try:
            self._proposal = ask(base)
        except BaseException:
            stop_arm(self._env)
            raise
        return self._proposal

    def _act(self, deterministic: bool) -> np.ndarray:
        if self.policy is None:
            return np.zeros(self._env.environment_spec.action_size, np.float32)
        if not self._decided:
            actions = self.policy.chunk.split(self._decide(self.policy, deterministic))[: self._every]
            self._decided.extend(actions)
            self._decided.extend([actions[-1]] * ((self._every or 0) - len(actions)))
        return self._decided.popleft()

    def _decide(self, policy: Policy, deterministic: bool) -> np.ndarray:
        """Return what the policy decides now, the vector of a chunk of actions."""
        device, newest = policy.generator.device, len(self._rows) - 1
        stacked = np.concatenate([self._rows[max(newest - age, 0)] for age in self._history])
        state = torch.from_numpy(stacked)[None].to(device)
        images = None if self._view is None else torch.from_numpy(self._view)[None].to(device)
        action: np.ndarray = policy.act(state, images, deterministic=deterministic)[0].cpu().numpy()
        if not np.isfinite(action).all():
            raise DivergedError(
                f"the policy's action is {action.tolist()}: learning left the finite numbers; "
                "lower sac.learning_rate, or keep sac.clamp_targets on"
            )
        return action

    def _draw(self, random: np.random.Generator) -> np.ndarray:
        """Draw an action uniformly, and so the choice where its last entry is one; with a base, a correction of it."""
        spec, policy, proposal = self._env.environment_spec, self.policy, self._proposal
        action = random.uniform(-1.0, 1.0, spec.action_size).astype(np.float32)
        if proposal is not None and policy is not None:
            free, device = policy.continuous_size, policy.generator.device
            both = (torch.from_numpy(values[:free]).to(device) for values in (action, proposal))
            return np.concatenate([policy.executed(*both).cpu().numpy(), proposal[free:]])
        if spec.choices:
            action[-1] = entry_of_choice(int(random.integers(spec.choices)), spec.choices)
        return action

    def _finish(self, info: StepInfo) -> EpisodeResult:
        builder, judge = cast("EpisodeBuilder", self._builder), info.recorded.reward_source
        result = EpisodeResult(
            success=info.success,
            failure=info.failure,
            steps=len(builder),
            operator_steps=self._operator_steps,
            takeovers=self._takeovers,
            total_reward=self._reward,
            cycle_time=len(builder) * self._env.environment_spec.control_period,
            force_peak=self._force,
            metrics=dict(info.metrics),
            overruns=info.overruns,
            undecided=judge == LABEL_SOURCE and info.failure is None,
            cut=info.cut,
        )
        known = self._env.environment_spec.success and not result.undecided
        builder.note(success=result.success if known else None, failure=result.failure)
        if info.cut is not None:
            builder.note(cut=info.cut)
        if info.overruled is not None:
            builder.note(overruled=info.overruled)
        if result.undecided and TASK_SUCCESS in result.metrics:
            builder.note(task_success=bool(result.metrics[TASK_SUCCESS]))
        if judge != TASK_JUDGE:
            builder.note(judge=judge)
        episode = builder.finish(info.observation, info.stamp_obs, self._proposal)
        self._builder = None
        self._pass_on()
        for observer in (*self._beside, *self._observers):
            observer.on_end(episode, result)
        return result


class StoreRecorder:
    """An observer that records into a store: every step as it happens, and each finished episode as one.

    Args:
        store: The store.
        cut_aside: Episodes that were cut are moved aside, as they are played again under their name.
    """

    def __init__(self, store: EpisodeStore, *, cut_aside: bool = False) -> None:
        self._store, self._cut_aside = store, cut_aside

    def on_start(self, episode_id: str, observation: Observation) -> None:
        """Begin the journal of the episode."""
        del observation  # comes with the first step
        self._store.begin(episode_id)

    def on_step(self, step: Step, next_observation: Observation) -> None:
        """Pass the step to the journal, without waiting for the disk."""
        del next_observation  # comes with the next step
        self._store.record(step)

    def on_end(self, episode: Episode, result: EpisodeResult) -> None:
        """Append the episode, which replaces its journal."""
        self._store.append(episode)
        if self._cut_aside and result.cut is not None:
            self._store.set_aside([episode.episode_id], f"an episode that was cut: {result.cut}")
