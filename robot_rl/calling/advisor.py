"""The advisor of a training: calls the operator where a rule expects the policy to fail.

It knows what the critics expect and how the episode goes, and neither who comes nor how they are told.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from robot_rl.calling.caller import Caller
from robot_rl.calling.rules import RULES, ValueTrace, expected_share
from robot_rl.config.operator_profile import CallConfig
from robot_rl.config.schedule import value_at
from robot_rl.data.schema import OPERATOR_SOURCES, Episode, Observation, Step
from robot_rl.env.environment import Environment, EnvironmentSpec, SupportsCalls
from robot_rl.env.episode_observer import EpisodeResult
from robot_rl.errors import ConfigError
from robot_rl.learn.learner_port import LearnerPort


class Advisor:
    """An observer of online episodes that calls the operator.

    Args:
        config: By which rule, and how often.
        spec: The task.
        value: Returns the return that the critics expect from the newest observation on; None: not known.
        call: Calls the operator, with the reason.
        over: Tells that nobody is needed any more: somebody leads, or the episode has ended.
        env_steps: Returns the online steps of the training so far, for a threshold that changes.
    """

    def __init__(
        self,
        config: CallConfig,
        spec: EnvironmentSpec,
        value: Callable[[], float | None],
        *,
        call: Callable[[str], object],
        over: Callable[[], object],
        env_steps: Callable[[], int] = lambda: 0,
    ) -> None:
        self._env_steps = env_steps
        self._config, self._spec, self._value, self._call, self._over = config, spec, value, call, over
        self._rule = RULES[config.rule]
        self._values: list[float] = []
        self._known = False
        self._rest, self._called = 0, False

    def on_start(self, episode_id: str, observation: Observation) -> None:
        """Begin anew."""
        del episode_id, observation
        self._values, self._known, self._rest, self._called = [], False, 0, False
        self._note_expected()

    def on_step(self, step: Step, next_observation: Observation) -> None:
        """Call, if the policy leads and the risk is large; not again before the operator has come."""
        del next_observation
        self._note_expected()
        if step.control in OPERATOR_SOURCES:
            self._rest = round(self._config.rest_s / self._spec.control_period)
            self._end_call()
            return
        self._rest -= self._rest > 0
        if self._called or self._rest > 0:
            return
        values = expected_share(np.array(self._values), self._spec)
        risk = float(self._rule(ValueTrace(values, self._spec.max_steps))[-1])
        if risk >= value_at(self._config.threshold, self._env_steps()):
            self._called = True
            self._call(f"{self._config.rule}: the policy may fail (risk {risk:.2f}); take over")

    def on_end(self, episode: Episode, result: EpisodeResult) -> None:
        """Nobody is needed any more."""
        del episode, result
        self._end_call()

    def _note_expected(self) -> None:
        """Note what the critics expect from the newest observation on.

        It is nothing before there are any. Where it is not known yet, since they are in another process and have not
        seen the episode, it is what is first known of it.
        """
        value = self._value()
        if value is None:
            value = self._values[-1] if self._values else 0.0
        elif not self._known:
            self._values, self._known = [value] * len(self._values), True
        self._values.append(value)

    def _end_call(self) -> None:
        if self._called:
            self._called = False
            self._over()


def no_script(task: str) -> ConfigError:
    """Return the error of a training in which only a script may take over, and there is none."""
    return ConfigError(
        f"intervention.call.only is for the scripted operator of a simulation in this process, and {task} has none "
        "here; leave it out: a person decides whether to come"
    )


def make_advisor(
    config: CallConfig,
    env: Environment,
    learner: LearnerPort,
    *,
    count: Callable[[], object],
    show: Sequence[Callable[[str], object]],
    log: Callable[[str], object],
    command: str,
    env_steps: Callable[[], int],
) -> Advisor | None:
    """Return the advisor of a training; None where nobody is called.

    Args:
        config: By which rule, and how often.
        env: Whose scripted operator comes, if it has one that can be called.
        learner: Whose critics are asked.
        count: Called with each call that was made; one beyond the budget of the hour is none.
        show: Show a call to people; an empty text: it is over. Without any, and without a command, the script alone is
            called; where there is no script either, it is a line for whoever looks at the terminal.
        log: Writes a line that a person may see.
        command: The user's command line, which gets the call as its last argument; empty: none.
        env_steps: Returns the online steps of the training so far.

    Raises:
        ConfigError: if what is set cannot be done here.
    """
    if config.rule == "none":
        return None
    script = env if isinstance(env, SupportsCalls) and env.can_be_called else None
    if config.only and script is None:
        raise no_script(env.environment_spec.name)
    people = Caller(command, config.per_hour, log) if show or command or script is None else None

    def call(reason: str) -> None:
        told = people is not None and people.call(reason)
        if told:
            tell(reason)
        if script is not None:
            script.call_for_help()
        if told or script is not None:
            count()

    def tell(text: str) -> None:
        for one in show:
            one(text)

    return Advisor(
        config, env.environment_spec, lambda: learner.value, call=call, over=lambda: tell(""), env_steps=env_steps
    )
