"""Settings that are valid each by itself, but not together."""

from __future__ import annotations

from robot_rl.config.components import TrainConfig
from robot_rl.config.environment import EnvironmentConfig
from robot_rl.config.family_mark import FAMILY_MARK
from robot_rl.errors import ConfigError


def check_consistent(config: TrainConfig) -> None:
    """Raise if settings contradict each other.

    Raises:
        ConfigError: naming them.
    """
    if config.realtime and config.processes == 1:
        raise ConfigError("realtime=true with processes=1: learning would hold up control; set processes=2")
    if FAMILY_MARK not in config.task and config.environment != EnvironmentConfig():
        raise ConfigError(
            f"settings of the section `environment` with task={config.task}: they are for environments of others, e.g. "
            "task=gym:Pendulum-v1; leave them out"
        )
    if config.base.kind != "none":
        _check_base(config)
    if config.replay.hindsight_goals:
        _check_hindsight(config)
    if config.env_steps == 0 and config.offline.steps == 0:
        raise ConfigError("env_steps=0 and offline.steps=0: nothing would be learned; set one of them")


def _check_base(config: TrainConfig) -> None:
    base = f"base.kind={config.base.kind}"
    if config.algorithm.name != "sac":
        raise ConfigError(f"{base} with algorithm.name={config.algorithm.name}: only sac learns corrections")
    if config.offline.steps:
        raise ConfigError(
            f"{base} with offline.steps={config.offline.steps}: the demonstrations teach the base alone; set "
            "offline.steps=0, and base.updates for the base"
        )
    if not config.demonstrations:
        raise ConfigError(f"{base} with demonstrations=0: there is nothing to clone; set demonstrations")
    if not config.env_steps:
        raise ConfigError(f"{base} with env_steps=0: nothing would be corrected; clone alone with algorithm.name=bc")


def _check_hindsight(config: TrainConfig) -> None:
    """Raise if steps cannot be judged by other goals.

    Raises:
        ConfigError: naming the setting that prevents it.
    """
    needed = {
        "sac.n_step=1": config.sac.n_step == 1,
        "environment.action_repeat=1": config.environment.action_repeat == 1,
        "observations=state": config.observations == "state",
        "reward.kind=task": config.reward.kind == "task",
        "reward.shaping.head=": not config.reward.shaping.head,
    }
    if missing := [setting for setting, there in needed.items() if not there]:
        raise ConfigError(
            f"replay.hindsight_goals={config.replay.hindsight_goals} needs {', '.join(missing)}: goals are judged step "
            "by step, by the environment; set that, or replay.hindsight_goals=0"
        )
